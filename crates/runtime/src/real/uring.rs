//! The io_uring loop.
//!
//! Invariants:
//! 1. The ring is made and used by the worker's thread only (SINGLE_ISSUER).
//! 2. What an entry points to stays valid until its completion: a fiber's memory because the
//!    fiber waits, the wake-up count because it lives as long as the ring.
//! 3. One read of the wake-up descriptor is always in flight.

use super::event_loop::{FileOperation, Token, complete};
use crate::mailbox::Mailbox;
use crate::worker::Worker;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, cqueue, opcode};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;

/// Entries of the submission queue; the completion queue has eight times as many.
const ENTRIES: u32 = 256;
/// Completions copied out at a time.
const BATCH: usize = 64;

pub(crate) struct UringLoop {
    ring: RefCell<IoUring>,
    wake_descriptor: RawFd,
    wake_count: Box<Cell<u64>>,
    has_taskrun_flag: bool,
    no_iowait: u32,
    batch: RefCell<Vec<(u64, i32)>>,
    /// Completions taken out to make room, not delivered yet.
    set_aside: RefCell<Vec<(u64, i32)>>,
}

impl UringLoop {
    pub(crate) fn new(mailbox: &'static Mailbox) -> io::Result<Self> {
        let (ring, has_taskrun_flag) = make_ring()?;
        let params = ring.params();
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
        ];
        if !needed.into_iter().all(|code| probe.is_supported(code)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let no_iowait = match params.is_feature_no_iowait() {
            true => EnterFlags::NO_IOWAIT.bits(),
            false => 0,
        };
        let this = Self {
            ring: RefCell::new(ring),
            wake_descriptor: mailbox.wake_descriptor()?,
            wake_count: Box::new(Cell::new(0)),
            has_taskrun_flag,
            no_iowait,
            batch: RefCell::new(Vec::with_capacity(BATCH)),
            set_aside: RefCell::new(Vec::new()),
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
            if let Err(error) = ring.submit() {
                let number = error.raw_os_error();
                let is_passing = matches!(number, Some(libc::EINTR | libc::EAGAIN | libc::EBUSY));
                assert!(is_passing, "io_uring refuses to submit: {error}");
                // Busy means that completions are in the way; the next poll delivers them.
                let entries = ring.completion();
                let entries = entries.map(|it: cqueue::Entry| (it.user_data(), it.result()));
                self.set_aside.borrow_mut().extend(entries);
            }
        }
    }

    pub(crate) fn poll_add(&self, fd: RawFd, events: u32, token: Token) {
        let poll = opcode::PollAdd::new(Fd(fd), events).build();
        self.push(poll.user_data(token.to_bits()));
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
            FileOperation::Write { fd, address, length, offset } => {
                let write = opcode::Write::new(Fd(fd), address, length).offset(offset).build();
                self.push(write.user_data(token(0)));
            }
            FileOperation::Sync { fd } => self.push(sync_entry(fd).user_data(token(0))),
            FileOperation::WriteAndSync { fd, address, length, offset } => {
                let write = opcode::Write::new(Fd(fd), address, length).offset(offset).build();
                let write = write.user_data(token(0)).flags(Flags::IO_LINK);
                self.push_linked(&[write, sync_entry(fd).user_data(token(1))]);
            }
        }
    }

    pub(crate) fn has_completions(&self) -> bool {
        let mut ring = self.ring.borrow_mut();
        if !ring.completion().is_empty() {
            return true;
        }
        self.has_taskrun_flag && ring.submission().taskrun()
    }

    pub(crate) fn poll(&self, worker: &Worker, wait_nanos: Option<u64>) {
        self.enter(wait_nanos);
        loop {
            let mut batch = self.batch.take();
            batch.append(&mut self.set_aside.borrow_mut());
            let mut ring = self.ring.borrow_mut();
            let entries = ring.completion().take(BATCH);
            batch.extend(entries.map(|it: cqueue::Entry| (it.user_data(), it.result())));
            drop(ring);
            let count = batch.len();
            for (bits, result) in batch.drain(..) {
                let token = Token::from_bits(bits);
                if token == Token::WakeUp && result != -libc::ECANCELED {
                    self.read_wake_descriptor();
                }
                complete(worker, token, result);
            }
            self.batch.replace(batch);
            if count < BATCH {
                return;
            }
        }
    }

    /// Submits, runs the kernel's deferred work, and waits if wanted.
    fn enter(&self, wait_nanos: Option<u64>) {
        let mut ring = self.ring.borrow_mut();
        let queue = ring.submission();
        let queued = queue.len();
        let nothing_deferred = self.has_taskrun_flag && !queue.taskrun() && !queue.cq_overflow();
        drop(queue);
        if wait_nanos.is_none() && queued == 0 && nothing_deferred {
            return;
        }
        let timeout = wait_nanos.filter(|&nanos| nanos < u64::MAX).map(|nanos| {
            Timespec::new().sec(nanos / 1_000_000_000).nsec((nanos % 1_000_000_000) as u32)
        });
        let mut arguments = SubmitArgs::new();
        if let Some(timeout) = &timeout {
            arguments = arguments.timespec(timeout);
        }
        let want = u32::from(wait_nanos.is_some());
        let flags = (EnterFlags::GETEVENTS | EnterFlags::EXT_ARG).bits() | self.no_iowait;
        // SAFETY: the arguments are valid for the call; entries obey invariant 2.
        let entered =
            unsafe { ring.submitter().enter(queued as u32, want, flags, Some(&arguments)) };
        if let Err(error) = entered {
            let number = error.raw_os_error().unwrap_or(0);
            let passing = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];
            assert!(passing.contains(&number), "io_uring_enter: {error}");
        }
    }
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
