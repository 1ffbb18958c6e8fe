//! The io_uring loop.
//!
//! Invariants:
//! 1. The ring is made and used by the worker's thread only (SINGLE_ISSUER).
//! 2. What an entry points to stays valid until its completion: a fiber's memory because the
//!    fiber waits, the wake-up count and the alarm because they live as long as the ring.
//! 3. One read of the wake-up descriptor is always in flight.
//! 4. Every entry has one completion, also those that fail; a send completes within the call that
//!    submits it, and so does a change of the alarm. So a call that submits N of them and waits has
//!    to wait for N + 1 completions.
//! 5. One alarm at most is set. It rings when the worker has to wake up or before, never later: it
//!    is left alone where it rings early enough, because to set and clear a timer of the kernel
//!    for every sleep costs more than to wake up for nothing now and then.
//!
//! What waiting connections need, and the answers that they wait behind, is queued and handed
//! over together at the end of a turn, see `outbox` and `buffers`.

use super::buffers::{self, ReceiveBuffers};
use super::event_loop::{FileOperation, Token, complete};
use super::outbox::{Outbox, Placed};
use crate::clock::monotonic_nanos;
use crate::mailbox::Mailbox;
use crate::worker::{Twin, Worker};
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, FsyncFlags, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;

/// Entries of the submission queue; the completion queue has eight times as many.
const ENTRIES: u32 = 256;
/// Completions copied out at a time.
const BATCH: usize = 64;
/// A receive that finds nothing is the rule: wait first (IORING_RECVSEND_POLL_FIRST).
const POLL_FIRST: u16 = 1;

/// Token, result and flags of a completion.
type Completion = (u64, i32, u32);

pub(crate) struct UringLoop {
    ring: RefCell<IoUring>,
    wake_descriptor: RawFd,
    wake_count: Box<Cell<u64>>,
    alarm: Box<Alarm>,
    has_taskrun_flag: bool,
    no_iowait: u32,
    batch: RefCell<Vec<Completion>>,
    /// Completions taken out to make room, not delivered yet.
    set_aside: RefCell<Vec<Completion>>,
    pub(super) outbox: Outbox,
    /// Entries in the queue that complete within the call that submits them.
    prompt_queued: Cell<u32>,
    /// Receives submitted or queued, not completed.
    receives: Cell<usize>,
    /// None where the kernel does not know of such. Behind the ring: see its invariant 2.
    buffers: Option<ReceiveBuffers>,
}

/// The worker's timer in the kernel (invariant 5).
struct Alarm {
    /// When it rings, in nanoseconds of the monotonic clock; `u64::MAX`: not set.
    at_nanos: Cell<u64>,
    /// How long until then, where the kernel reads it.
    wait: Cell<Timespec>,
}

impl UringLoop {
    pub(crate) fn new(mailbox: &'static Mailbox) -> io::Result<Self> {
        let (ring, has_taskrun_flag) = make_ring()?;
        let params = ring.params();
        // A kernel with extended arguments (5.11) can change a timeout, too.
        if !(params.is_feature_ext_arg() && params.is_feature_nodrop()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Fsync::CODE,
            opcode::PollAdd::CODE,
            opcode::AsyncCancel::CODE,
            opcode::Send::CODE,
            opcode::Recv::CODE,
        ];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let no_iowait = match params.is_feature_no_iowait() {
            true => EnterFlags::NO_IOWAIT.bits(),
            false => 0,
        };
        let buffers = ReceiveBuffers::new(&ring).ok();
        let this = Self {
            ring: RefCell::new(ring),
            wake_descriptor: mailbox.wake_descriptor()?,
            wake_count: Box::new(Cell::new(0)),
            alarm: Box::new(Alarm {
                at_nanos: Cell::new(u64::MAX),
                wait: Cell::new(Timespec::new()),
            }),
            has_taskrun_flag,
            no_iowait,
            batch: RefCell::new(Vec::with_capacity(BATCH)),
            set_aside: RefCell::new(Vec::new()),
            outbox: Outbox::new(),
            prompt_queued: Cell::new(0),
            receives: Cell::new(0),
            buffers,
        };
        this.read_wake_descriptor();
        Ok(this)
    }

    /// Invariant 3.
    fn read_wake_descriptor(&self) {
        let place = self.wake_count.as_ptr().cast();
        let read = opcode::Read::new(Fd(self.wake_descriptor), place, 8).build();
        self.push(read.user_data(Token::WakeUp.to_bits()));
    }

    fn push(&self, entry: Entry) {
        self.push_linked(&[entry]);
    }

    /// Queues entries that belong together, so that a full queue does not part them.
    fn push_linked(&self, entries: &[Entry]) {
        let mut ring = self.ring.borrow_mut();
        // SAFETY: invariant 2.
        while unsafe { ring.submission().push_multiple(entries) }.is_err() {
            // Prompt completions are counted for the next call only.
            self.prompt_queued.set(0);
            if let Err(error) = ring.submit() {
                let number = error.raw_os_error();
                let is_passing = matches!(number, Some(libc::EINTR | libc::EAGAIN | libc::EBUSY));
                assert!(is_passing, "io_uring refuses to submit: {error}");
                // Busy means that completions are in the way; the next poll delivers them.
                let entries = ring.completion();
                let entries = entries.map(completion);
                self.set_aside.borrow_mut().extend(entries);
            }
        }
    }

    pub(crate) fn poll_add(&self, fd: RawFd, events: u32, token: Token) {
        let poll = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(poll.user_data(token.to_bits()));
    }

    /// The token is told when bytes have come; mostly they come with it.
    pub(crate) fn receive(&self, fd: RawFd, token: Token) {
        self.receives.set(self.receives.get() + 1);
        if self.buffers.is_none() {
            return self.poll_add(fd, libc::POLLIN as u32, token);
        }
        let receive = opcode::Recv::new(Fd(fd), std::ptr::null_mut(), 0);
        let receive = receive.buf_group(buffers::GROUP).ioprio(POLL_FIRST).build();
        self.push(receive.flags(Flags::BUFFER_SELECT).user_data(token.to_bits()));
    }

    /// Whether the kernel may still write into the buffers.
    pub(crate) fn has_receives(&self) -> bool {
        self.receives.get() > 0
    }

    /// Sends an answer with the next hand-over.
    pub(crate) fn send(&self, fd: RawFd, answer: Placed, place: u32, sequence: u32) {
        let (number, address, length) = self.outbox.queue(answer, place, sequence);
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        let send = opcode::Send::new(Fd(fd), address, length as u32).flags(flags).build();
        self.push(send.user_data(Token::Sent { number }.to_bits()));
        self.prompt_queued.set(self.prompt_queued.get() + 1);
    }

    pub(crate) fn poll_cancel(&self, token: Token) {
        let cancel = opcode::AsyncCancel::new(token.to_bits()).build();
        self.push(cancel.user_data(Token::Nobody.to_bits()));
    }

    pub(crate) fn cancel_polls(&self) {
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::any()).build();
        self.push(cancel.user_data(Token::Nobody.to_bits()));
    }

    pub(crate) fn start_file(&self, worker: &Worker, operation: FileOperation) {
        let slot = worker.current_fiber().slot;
        let token = |part| Token::Fiber { slot, part }.to_bits();
        match operation {
            FileOperation::Read { fd, address, length, offset } => {
                let read = opcode::Read::new(Fd(fd), address, length).offset(offset).build();
                self.push(read.user_data(token(0)));
            }
            FileOperation::Write { fd, address, length, offset, durable } => {
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                let write = opcode::Write::new(Fd(fd), address, length).offset(offset);
                self.push(write.rw_flags(flags).build().user_data(token(0)));
            }
            FileOperation::Sync { fd } => self.push(sync_entry(fd).user_data(token(0))),
            FileOperation::WriteAndSync { fd, address, length, offset } => {
                let write = opcode::Write::new(Fd(fd), address, length).offset(offset).build();
                let write = write.user_data(token(0)).flags(Flags::IO_LINK);
                self.push_linked(&[write, sync_entry(fd).user_data(token(1))]);
            }
        }
    }

    pub(crate) fn poll(&self, worker: &Worker, wait_nanos: Option<u64>) {
        self.enter(wait_nanos);
        loop {
            let mut batch = self.batch.take();
            batch.append(&mut self.set_aside.borrow_mut());
            let mut ring = self.ring.borrow_mut();
            let entries = ring.completion().take(BATCH);
            batch.extend(entries.map(completion));
            drop(ring);
            let count = batch.len();
            for position in 0..count {
                prefetch_ahead(worker, &batch, position);
                self.deliver(worker, batch[position]);
            }
            batch.clear();
            self.batch.replace(batch);
            if count < BATCH {
                return;
            }
        }
    }

    fn deliver(&self, worker: &Worker, (bits, result, flags): Completion) {
        let token = Token::from_bits(bits);
        match token {
            Token::WakeUp if result != -libc::ECANCELED => self.read_wake_descriptor(),
            Token::Alarm => self.alarm.at_nanos.set(u64::MAX),
            Token::Sent { number } => {
                if let Some(unsent) = self.outbox.completed(number, result)
                    && let Twin::Real(real) = &worker.twin
                {
                    real.connections.unsent(worker, unsent);
                }
            }
            Token::Connection { .. } => {
                self.receives.set(self.receives.get() - 1);
                match (cqueue::buffer_select(flags), &self.buffers) {
                    (Some(number), Some(buffers)) => {
                        let length = usize::try_from(result).unwrap_or(0);
                        complete(worker, token, result, buffers.bytes(number, length));
                        buffers.give(number);
                    }
                    _ => complete(worker, token, result, &[]),
                }
            }
            _ => complete(worker, token, result, &[]),
        }
    }

    /// Sees to it that the worker wakes up within so many nanoseconds.
    fn set_alarm(&self, wait_nanos: u64) {
        if wait_nanos == u64::MAX {
            return;
        }
        let (former, wanted) =
            (self.alarm.at_nanos.get(), monotonic_nanos().saturating_add(wait_nanos));
        if former <= wanted {
            return;
        }
        self.alarm.at_nanos.set(wanted);
        let (seconds, nanos) = (wait_nanos / 1_000_000_000, wait_nanos % 1_000_000_000);
        self.alarm.wait.set(Timespec::new().sec(seconds).nsec(nanos as u32));
        let (wait, alarm) = (self.alarm.wait.as_ptr(), Token::Alarm.to_bits());
        if former == u64::MAX {
            return self.push(opcode::Timeout::new(wait).build().user_data(alarm));
        }
        // If it is not there to be changed it rings now, and is set by the next call.
        let update = opcode::TimeoutUpdate::new(alarm, wait).build();
        self.push(update.user_data(Token::Nobody.to_bits()));
        self.prompt_queued.set(self.prompt_queued.get() + 1);
    }

    /// Submits, runs the kernel's deferred work, and waits if wanted.
    fn enter(&self, wait_nanos: Option<u64>) {
        self.set_alarm(wait_nanos.unwrap_or(u64::MAX));
        let mut ring = self.ring.borrow_mut();
        let queue = ring.submission();
        let queued = queue.len();
        let nothing_deferred = self.has_taskrun_flag && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if wait_nanos.is_none() && queued == 0 && nothing_deferred {
            return;
        }
        // Invariant 4.
        let prompt = self.prompt_queued.replace(0);
        let want = if wait_nanos.is_some() { 1 + prompt } else { 0 };
        let flags = EnterFlags::GETEVENTS.bits() | self.no_iowait;
        // SAFETY: no argument is passed; entries obey invariant 2.
        let entered =
            unsafe { ring.submitter().enter::<libc::sigset_t>(queued as u32, want, flags, None) };
        if let Err(error) = entered {
            let number = error.raw_os_error().unwrap_or(0);
            let passing = [libc::EINTR, libc::EAGAIN, libc::EBUSY];
            assert!(passing.contains(&number), "io_uring_enter: {error}");
        }
    }
}

/// Asks for what the next completions need while the one at this position is delivered.
fn prefetch_ahead(worker: &Worker, batch: &[Completion], position: usize) {
    let Twin::Real(real) = &worker.twin else { return };
    for (step, distance) in [6, 4, 2].into_iter().enumerate() {
        if let Some((bits, ..)) = batch.get(position + distance)
            && let Token::Connection { place, .. } = Token::from_bits(*bits)
        {
            real.connections.prefetch_received(place, step);
        }
    }
}

fn completion(entry: cqueue::Entry) -> Completion {
    (entry.user_data(), entry.result(), entry.flags())
}

fn sync_entry(fd: RawFd) -> Entry {
    opcode::Fsync::new(Fd(fd)).flags(FsyncFlags::DATASYNC).build()
}

/// The best ring that this kernel gives, and whether it shows pending deferred work.
fn make_ring() -> io::Result<(IoUring, bool)> {
    let mut builder = IoUring::builder();
    builder.setup_clamp().setup_cqsize(ENTRIES * 8);
    let mut best = builder.clone();
    best.setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all();
    if let Ok(ring) = best.build(ENTRIES) {
        return Ok((ring, true));
    }
    let mut middle = builder.clone();
    middle.setup_coop_taskrun().setup_taskrun_flag();
    if let Ok(ring) = middle.build(ENTRIES) {
        return Ok((ring, true));
    }
    builder.build(ENTRIES).map(|ring| (ring, false))
}
