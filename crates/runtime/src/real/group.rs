//! The workers of one runtime: start, main loop, end.

use super::alone::Alone;
use super::backlog::{Backlog, Queued};
use super::balance::{Balance, Loads};
use super::connections::{Connections, Task};
use super::core_wait::CoreWait;
use super::event_loop::EventLoop;
use super::helpers::Helpers;
use super::own_core::Cores;
use super::turn::{Pace, turn};
use crate::Pressure;
use crate::admission::{Figures, QueuedConnection, SharedSettings, WorkerFigures};
use crate::clock::{Instant, ticks, ticks_per_microsecond};
use crate::join::Packet;
use crate::mailbox::{Mailbox, Message, NewFiber};
use crate::overlay::Layer;
use crate::park::WaitClass;
use crate::quiescent::Epoch;
use crate::signal::{Arrived, Signal};
use crate::worker::{self, Installed, Twin, Worker};
use base::Random;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Which event loop workers use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ring {
    /// io_uring where it is permitted, the fall-back elsewhere.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// epoll for sockets, helper threads for files.
    Fallback,
}

/// How a runtime is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Worker threads; 0: one per core that this process may use.
    pub workers: usize,
    /// One more worker, which gets no work but that of [`crate::net::serve_reserved`].
    pub reserved_worker: bool,
    /// Bytes reserved for a fiber's stack.
    pub stack_bytes: usize,
    /// The event loop.
    pub ring: Ring,
    /// Helper threads for [`crate::blocking`] and the fall-back's file operations.
    pub helper_threads: usize,
    /// Catches SIGTERM, SIGINT and SIGHUP and gives them to [`crate::signal::wait`]. For one
    /// runtime of the process.
    pub handle_signals: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: 0,
            reserved_worker: false,
            stack_bytes: crate::DEFAULT_STACK_BYTES,
            ring: Ring::Auto,
            helper_threads: 4,
            handle_signals: false,
        }
    }
}

/// What the workers of one runtime share.
pub(crate) struct Group {
    /// The reserved worker's is the last, if there is one.
    pub(super) mailboxes: Vec<&'static Mailbox>,
    backlogs: Vec<Backlog<Box<Task>>>,
    figures: Vec<Arc<Figures>>,
    core_waits: Vec<CoreWait>,
    pub(super) cores: Arc<Cores>,
    pub(super) loads: Loads,
    pub(crate) admission: SharedSettings,
    /// How many workers are not reserved.
    regular: usize,
    pub(crate) epoch: Epoch,
    pub(crate) helpers: Helpers,
    arrived: Arrived,
    pub(crate) cover: Mutex<Option<Arc<Layer>>>,
}

impl Group {
    /// How many workers there are, without the reserved one.
    pub(crate) fn worker_count(&self) -> usize {
        self.regular
    }

    pub(crate) fn reserved_worker(&self) -> Option<usize> {
        (self.regular < self.mailboxes.len()).then_some(self.regular)
    }

    pub(crate) fn parks(&self, class: WaitClass) -> u64 {
        self.figures.iter().map(|figures| figures.parks[class as usize].get()).sum()
    }

    pub(crate) fn statement_waits(&self, class: WaitClass) -> u64 {
        self.figures.iter().map(|figures| figures.statement_waits[class as usize].get()).sum()
    }

    pub(crate) fn worker_figures(&self) -> Vec<WorkerFigures> {
        let now = ticks();
        let of = |number: usize| {
            let figures = &self.figures[number];
            let queued = self.backlogs[number].len() as u64;
            let in_turn = now.saturating_sub(figures.turn_ticks.get());
            WorkerFigures {
                queued,
                is_asleep: self.mailboxes[number].is_sleeping(),
                is_stalled: queued > 0 && in_turn > self.admission.stall_ticks(),
                ..WorkerFigures::of(figures)
            }
        };
        (0..self.figures.len()).map(of).collect()
    }

    /// How long a worker has waited for a core; none where the kernel does not count it.
    pub(super) fn core_wait(&self, number: usize) -> Option<Duration> {
        self.core_waits[number].waited()
    }

    /// The worker keeps to a core of its own, or not.
    pub(super) fn note_own_core(&self, number: usize, has: bool) {
        self.figures[number].own_core.set(u64::from(has));
    }

    /// Of the workers on the average; the reserved one has too little to do to tell.
    pub(crate) fn pressure(&self) -> Pressure {
        let count = self.regular as u32;
        let waits = self.core_waits[..self.regular].iter().map(CoreWait::waited);
        let crowded = self.figures[..self.regular].iter().map(|it| it.crowded_ticks.get());
        let crowded_us = crowded.sum::<u64>() / ticks_per_microsecond();
        Pressure {
            core_wait: waits.sum::<Option<Duration>>().unwrap_or_default() / count,
            crowded: Duration::from_micros(crowded_us) / count,
        }
    }

    pub(crate) fn queued_connections(&self) -> Vec<QueuedConnection> {
        let mut queued = Vec::new();
        let now = ticks();
        for (worker, backlog) in self.backlogs.iter().enumerate() {
            backlog.visit(|position, task| {
                let waited = now.saturating_sub(task.since_ticks());
                queued.push(QueuedConnection {
                    worker,
                    position,
                    urgent: task.is_urgent(),
                    id: task.id(),
                    waited_micros: waited / ticks_per_microsecond(),
                });
            });
        }
        queued
    }

    pub(crate) fn mailbox(&self, number: usize) -> &'static Mailbox {
        self.mailboxes[number]
    }

    /// Starts a fiber on a worker from any thread.
    pub(crate) fn start(&self, number: usize, name: &'static str, body: Box<dyn FnOnce() + Send>) {
        self.mailboxes[number].send(Message::Start(NewFiber { name, body }));
    }

    pub(crate) fn arrived_signals(&self) -> &Arrived {
        &self.arrived
    }

    /// The other workers, beginning with the next one.
    pub(super) fn others(&self, number: usize) -> impl Iterator<Item = usize> {
        let count = self.regular;
        let distances = if number < count { 1..count } else { 0..0 };
        distances.map(move |distance| (number + distance) % count)
    }

    /// Wakes one other worker, if one sleeps, so that it steals.
    pub(super) fn wake_another(&self, number: usize) {
        if self.others(number).any(|other| self.mailboxes[other].wake()) {
            self.figures[number].woken_for_backlog.add(1);
        }
    }

    /// Whether another worker offers its backlog.
    pub(super) fn is_backlog_elsewhere(&self, number: usize) -> bool {
        self.others(number).any(|other| self.backlogs[other].is_offered())
    }

    /// The older half of the backlog of a worker that offers it.
    pub(super) fn steal(
        &self,
        number: usize,
        leave: impl Fn(&mut Box<Task>) -> Option<u32>,
    ) -> VecDeque<Box<Task>> {
        let mut stolen = self.others(number).map(|other| self.backlogs[other].steal(&leave));
        stolen.find(|stolen| !stolen.is_empty()).unwrap_or_default()
    }
}

/// The part of a worker that only the real twin has.
pub(crate) struct RealTwin {
    pub(crate) group: Arc<Group>,
    pub(crate) event_loop: EventLoop,
    pub(crate) connections: Connections,
    pub(crate) pace: Pace,
    pub(super) balance: Balance,
    pub(super) alone: Alone,
    random: RefCell<Random>,
}

impl RealTwin {
    pub(crate) fn random_u64(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// The connections that wait for their turn on this worker.
    pub(super) fn backlog(&self, worker: &Worker) -> &Backlog<Box<Task>> {
        &self.group.backlogs[worker.number]
    }

    pub(crate) fn connection_timer(&self, worker: &Worker, place: u32, now: Instant) {
        self.connections.timer(worker, self, place, now);
    }
}

/// Random bytes from the kernel.
pub(crate) fn fill_from_system(bytes: &mut [u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: the rest of the slice is valid for writes.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        assert!(got > 0 || errno() == libc::EINTR, "the system has no random bytes");
        done += got.max(0) as usize;
    }
}

pub(super) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Worker threads that run fibers. Dropping it ends them: fibers that are left are unwound at
/// the call that parked them.
pub struct Runtime {
    group: Arc<Group>,
    threads: Vec<thread::JoinHandle<()>>,
    uses_uring: bool,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Runtime({} workers)", self.group.worker_count())
    }
}

impl Runtime {
    /// Starts the workers.
    pub fn start(config: Config) -> io::Result<Self> {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        let regular = if config.workers == 0 { available() } else { config.workers };
        let count = regular + usize::from(config.reserved_worker);
        ticks_per_microsecond();
        let mailboxes: Vec<_> = (0..count).map(|_| Mailbox::take()).collect();
        for mailbox in &mailboxes {
            mailbox.wake_descriptor()?;
        }
        let cores = Arc::new(Cores::of_process(regular));
        let group = Arc::new(Group {
            mailboxes,
            backlogs: (0..count).map(|_| Backlog::new()).collect(),
            figures: (0..count).map(|_| Arc::default()).collect(),
            core_waits: (0..count).map(|_| CoreWait::default()).collect(),
            cores: cores.clone(),
            loads: Loads::new(count, regular),
            admission: SharedSettings::new(),
            regular,
            epoch: Epoch::new(),
            helpers: Helpers::new(config.helper_threads.max(1), cores),
            arrived: Arrived::default(),
            cover: Mutex::default(),
        });
        let (started, starts) = mpsc::channel();
        let mut threads = Vec::new();
        for number in 0..count {
            let (group, config, started) = (group.clone(), config.clone(), started.clone());
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            threads.push(thread.spawn(move || worker_thread(number, group, &config, &started))?);
        }
        drop(started);
        let mut runtime = Self { group, threads, uses_uring: true };
        for _ in 0..count {
            let start = starts.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            runtime.uses_uring &= start?;
        }
        if config.handle_signals {
            wait_for_signals(&runtime.group)?;
        }
        Ok(runtime)
    }

    /// Whether all workers use io_uring.
    pub fn uses_uring(&self) -> bool {
        self.uses_uring
    }

    /// Runs `f` in a fiber on the first worker and waits for its end, blocking this thread. A
    /// panic of `f` goes on here.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        assert!(worker::try_current().is_none(), "Runtime::run blocks: not inside a runtime");
        let packet = Packet::new();
        let (ended, end) = mpsc::channel();
        let body = packet.clone();
        self.group.start(
            0,
            "root",
            Box::new(move || {
                body.run(f);
                // The caller has gone only if its thread was killed.
                let _ = ended.send(());
            }),
        );
        end.recv().expect("the runtime ended before the function returned");
        match packet.take() {
            Some(Ok(value)) => value,
            Some(Err(panic)) => panic.resume(),
            None => unreachable!("the packet is filled before the end is told"),
        }
    }

    /// Ends the workers: operations in flight are waited for, parked fibers unwound. A server
    /// lets its fibers end by themselves first.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for mailbox in &self.group.mailboxes {
            mailbox.send(Message::Stop);
        }
        for thread in self.threads.drain(..) {
            // A worker's own panic was printed by its hook; there is nothing left to do.
            let _ = thread.join();
        }
        self.group.helpers.stop();
        for mailbox in &self.group.mailboxes {
            mailbox.give_back();
        }
    }
}

/// A panic outside fibers (in the scheduler, in a deferred function) leaves a server that
/// answers nobody; better none.
struct FatalWorkerPanic;

impl Drop for FatalWorkerPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("a worker panicked outside its fibers: the process ends");
            std::process::abort();
        }
    }
}

fn worker_thread(
    number: usize,
    group: Arc<Group>,
    config: &Config,
    started: &mpsc::Sender<io::Result<bool>>,
) {
    base::metrics::set_thread_shard(number);
    let _fatal = FatalWorkerPanic;
    let mailbox = group.mailbox(number);
    let event_loop = match EventLoop::new(config.ring, mailbox) {
        Ok(event_loop) => event_loop,
        Err(error) => {
            // Nobody listens only when `start` failed already.
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(event_loop.is_uring()));
    let mut seed = [0; 8];
    fill_from_system(&mut seed);
    let figures = group.figures[number].clone();
    group.core_waits[number].begin();
    let twin = RealTwin {
        group,
        event_loop,
        connections: Connections::new(),
        pace: Pace::new(),
        balance: Balance::default(),
        alone: Alone::new(),
        random: RefCell::new(Random::new(u64::from_le_bytes(seed))),
    };
    let worker =
        Box::new(Worker::new(number, mailbox, config.stack_bytes, figures, Twin::Real(twin)));
    let _installed = Installed::new(&worker);
    let Twin::Real(real) = &worker.twin else { unreachable!("made real above") };
    real.group.epoch.go_online(mailbox);
    while !worker.is_stopping() {
        turn(&worker, real);
    }
    end_worker(&worker, real);
}

/// Waits for what the kernel still does with fibers' memory, then unwinds the fibers.
fn end_worker(worker: &Worker, real: &RealTwin) {
    real.event_loop.cancel_polls(worker);
    // Once at least: what is queued names descriptors that close below.
    real.event_loop.poll(worker, None);
    while worker.has_operations() || real.event_loop.has_receives() {
        worker.take_messages();
        real.event_loop.poll(worker, Some(1_000_000));
    }
    worker.halt();
    real.connections.close_all(real.backlog(worker));
    Epoch::go_offline(worker.mailbox);
}

/// The pipe's end that the signal handler writes to.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(number: libc::c_int) {
    let (byte, pipe) = ([number as u8], SIGNAL_PIPE.load(Ordering::Relaxed));
    // SAFETY: one valid byte; write is async-signal-safe. A full pipe has enough signals in it.
    unsafe { libc::write(pipe, byte.as_ptr().cast(), 1) };
}

/// Installs the handlers, and a thread that turns signals into wake-ups until the process ends.
fn wait_for_signals(group: &Arc<Group>) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; the handler only loads an atomic and writes.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error());
        }
        SIGNAL_PIPE.store(ends[1], Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            if libc::sigaction(signal, &action, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    let (group, pipe) = (Arc::downgrade(group), ends[0]);
    let wait = move || loop {
        let mut byte = [0u8; 1];
        // SAFETY: one valid byte.
        if unsafe { libc::read(pipe, byte.as_mut_ptr().cast(), 1) } != 1 {
            continue;
        }
        let Some(group) = group.upgrade() else { return };
        group.arrived.push(match i32::from(byte[0]) {
            libc::SIGTERM => Signal::Terminate,
            libc::SIGINT => Signal::Interrupt,
            _ => Signal::HangUp,
        });
    };
    thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}
