//! The simulation itself: configuration, virtual clock, choice of the next fiber, its end.

use super::cores::Cores;
use super::disk::{CrashKind, Disk, DiskConfig};
use super::net::SimNetwork;
use crate::clock::Instant;
use crate::join::Packet;
use crate::mailbox::{Mailbox, Signal};
use crate::overlay::Layer;
use crate::park::{WaitClass, Wake};
use crate::worker::{self, Installed, Twin, Worker};
use base::Random;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Nanoseconds that reading the clock takes; so a loop that waits for time to pass ends.
const CLOCK_READ_NANOS: u64 = 40;
/// Virtual microseconds at the start of every simulation: 2026-01-01 00:00:00 UTC.
const START_WALL_MICROS: i64 = 1_767_225_600_000_000;

/// How a simulation is set up. [`SimConfig::new`] chooses what is usual.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Decides everything random.
    pub seed: u64,
    /// What [`crate::worker_count`] says; all run in one thread.
    pub workers: usize,
    /// Bytes reserved for a fiber's stack.
    pub stack_bytes: usize,
    /// The simulation ends with [`SimEnd::TooLong`] after this many steps (fiber runs).
    pub steps_max: u64,
    /// The power fails at this step, if it is reached.
    pub crash_at_step: Option<u64>,
    /// The power fails at this virtual time since the start, if it is reached.
    pub crash_after: Option<Duration>,
    /// Whether `buggify!` fires.
    pub buggify: bool,
    /// Chance that a connection breaks at a write, either way.
    pub connection_reset: f64,
    /// The disk, used by [`Simulation::new`]; a disk carried over keeps its own.
    pub disk: DiskConfig,
}

impl SimConfig {
    /// The usual set-up for a seed: 2 workers, a disk without faults, fault points on for two
    /// thirds of the seeds.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 2,
            stack_bytes: crate::DEFAULT_STACK_BYTES,
            steps_max: 50_000_000,
            crash_at_step: None,
            crash_after: None,
            connection_reset: 0.0,
            buggify: !seed.is_multiple_of(3),
            disk: DiskConfig::default(),
        }
    }
}

/// Why [`Simulation::run`] did not return the function's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimEnd {
    /// The crash that was asked for.
    Crashed,
    /// No fiber can run and no timer is set; the text lists who waits for what.
    Deadlock(String),
    /// A fiber panicked and nobody joins it, or the function given to `run` panicked.
    Panicked(String),
    /// More than `steps_max` steps; the text lists who waits for what at that moment.
    TooLong(String),
}

impl fmt::Display for SimEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crashed => write!(formatter, "crashed"),
            Self::Deadlock(report) => write!(formatter, "deadlock; fibers:\n{report}"),
            Self::Panicked(message) => write!(formatter, "{message}"),
            Self::TooLong(report) => {
                write!(formatter, "more steps than allowed; fibers:\n{report}")
            }
        }
    }
}

impl std::error::Error for SimEnd {}

/// How the next fiber is chosen; one per seed.
#[derive(Clone, Copy)]
enum Choice {
    /// Every ready fiber is equally likely.
    Even,
    /// The newest one mostly, so that some fibers get far ahead.
    NewestMostly,
    /// The oldest one mostly, which is how the real twin behaves under load.
    OldestMostly,
}

/// The part of a worker that only simulations have.
pub(crate) struct SimTwin {
    pub(crate) workers: usize,
    pub(crate) disk: Disk,
    pub(crate) network: RefCell<SimNetwork>,
    pub(crate) cover: RefCell<Option<Arc<Layer>>>,
    random: RefCell<Random>,
    user_random: RefCell<Random>,
    pub(crate) cores: Cores,
    connection_reset: f64,
    choice: Choice,
    now_nanos: Cell<u64>,
    ready: RefCell<Vec<u32>>,
    hash: Cell<u64>,
    steps: Cell<u64>,
    end: RefCell<Option<SimEnd>>,
}

impl SimTwin {
    fn new(config: &SimConfig, disk: Disk) -> Self {
        let mut random = Random::new(config.seed);
        let choice =
            *random.pick(&[Choice::Even, Choice::Even, Choice::NewestMostly, Choice::OldestMostly]);
        let user_random = random.fork();
        Self {
            workers: config.workers.max(1),
            disk,
            network: RefCell::new(SimNetwork::default()),
            cover: RefCell::default(),
            random: RefCell::new(random),
            user_random: RefCell::new(user_random),
            cores: Cores::default(),
            connection_reset: config.connection_reset,
            choice,
            now_nanos: Cell::new(1_000_000_000),
            ready: RefCell::new(Vec::new()),
            hash: Cell::new(config.seed),
            steps: Cell::new(0),
            end: RefCell::new(None),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now_nanos.set(self.now_nanos.get() + CLOCK_READ_NANOS);
        Instant::from_nanos(self.now_nanos.get())
    }

    pub(crate) fn wall_micros(&self) -> i64 {
        START_WALL_MICROS + (self.now().as_nanos() / 1_000) as i64
    }

    /// Random numbers for the program; apart from those that choose the schedule.
    pub(crate) fn user_random(&self) -> u64 {
        self.user_random.borrow_mut().next_u64()
    }

    /// A random number in `range`, from the schedule's stream.
    pub(crate) fn random_in(&self, range: std::ops::Range<u64>) -> u64 {
        self.random.borrow_mut().range(range)
    }

    /// Whether a connection breaks at this write.
    pub(crate) fn breaks_connection(&self) -> bool {
        self.connection_reset > 0.0 && self.random.borrow_mut().chance(self.connection_reset)
    }

    pub(crate) fn push_ready(&self, slot: u32) {
        self.ready.borrow_mut().push(slot);
    }

    /// Whether the running fiber is to be interrupted at a `yield_if_due`.
    pub(crate) fn is_slice_over(&self) -> bool {
        self.random.borrow_mut().one_in(16)
    }

    pub(crate) fn end_by_panic(&self, message: String) {
        self.end.borrow_mut().get_or_insert(SimEnd::Panicked(message));
    }

    /// Mixes a value into the trace hash.
    pub(crate) fn trace(&self, value: u64) {
        let mixed = (self.hash.get() ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.hash.set(mixed ^ (mixed >> 29));
    }

    /// Parks the current fiber, as an operation in flight, for a random time around `nanos`.
    pub(crate) fn operation(&self, worker: &Worker, class: WaitClass, nanos: u64) {
        if worker.is_halting() {
            return;
        }
        let deadline = self.now() + Duration::from_nanos(self.latency(nanos));
        worker.begin_operation(1);
        let fiber = worker.current_fiber();
        worker.wait_operation(class, Some(deadline));
        worker.deliver(fiber, Signal::Io { part: 0, result: 0 }, false);
    }

    /// A time around `nanos`: mostly a half to one and a half of it, now and then much longer.
    pub(crate) fn latency(&self, nanos: u64) -> u64 {
        let mut random = self.random.borrow_mut();
        let usual = nanos / 2 + random.below(nanos + 1);
        if random.one_in(64) { usual * random.range(2..40) } else { usual }
    }

    fn choose(&self) -> Option<u32> {
        let mut ready = self.ready.borrow_mut();
        if ready.is_empty() {
            return None;
        }
        let mut random = self.random.borrow_mut();
        let any = random.index(ready.len());
        let mostly = !random.one_in(4);
        let place = match self.choice {
            Choice::Even => any,
            Choice::NewestMostly if mostly => ready.len() - 1,
            Choice::OldestMostly if mostly => 0,
            Choice::NewestMostly | Choice::OldestMostly => any,
        };
        Some(ready.remove(place))
    }

    /// One fiber run, or a jump to the next timer. `Err` ends the simulation.
    fn step(&self, worker: &Worker, limits: &Limits) -> Result<(), SimEnd> {
        if let Some(end) = self.end.borrow().clone() {
            return Err(end);
        }
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > limits.steps_max {
            return Err(SimEnd::TooLong(worker.describe_fibers()));
        }
        let now = Instant::from_nanos(self.now_nanos.get());
        if limits.crash_at_step == Some(steps) || limits.crash_at.is_some_and(|at| now >= at) {
            return Err(SimEnd::Crashed);
        }
        worker.take_messages();
        worker.fire_timers(now);
        if let Some(slot) = self.choose() {
            let passed = self.random_in(100..4_000);
            self.now_nanos.set(now.as_nanos() + passed);
            self.trace(u64::from(slot) << 40 ^ now.as_nanos());
            worker.run_fiber(slot);
            return Ok(());
        }
        match worker.next_deadline() {
            Some(deadline) => {
                self.now_nanos.set(self.now_nanos.get().max(deadline.as_nanos()));
                Ok(())
            }
            None => Err(SimEnd::Deadlock(worker.describe_fibers())),
        }
    }
}

struct Limits {
    steps_max: u64,
    crash_at_step: Option<u64>,
    crash_at: Option<Instant>,
}

/// A simulated computer, from power-on to its crash or end. See the head of the module.
pub struct Simulation {
    worker: Box<Worker>,
    limits: Limits,
    seed: u64,
    _buggify: Option<base::buggify::SwitchedOn>,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Simulation(seed {}, {} steps)", self.seed, self.steps())
    }
}

impl Simulation {
    /// A computer with an empty disk.
    pub fn new(config: SimConfig) -> Self {
        let disk = Disk::new(config.disk, config.seed);
        Self::with_disk(config, disk)
    }

    /// A computer with a disk that a former simulation left.
    pub fn with_disk(config: SimConfig, disk: Disk) -> Self {
        disk.power_on();
        let buggify = config.buggify.then(|| base::buggify::switch_on(config.seed));
        let twin = SimTwin::new(&config, disk);
        let start = Instant::from_nanos(twin.now_nanos.get());
        let limits = Limits {
            steps_max: config.steps_max,
            crash_at_step: config.crash_at_step,
            crash_at: config.crash_after.map(|after| start + after),
        };
        let worker = Box::new(Worker::new(
            0,
            Mailbox::take(),
            config.stack_bytes,
            Arc::default(),
            Twin::Sim(twin),
        ));
        Self { worker, limits, seed: config.seed, _buggify: buggify }
    }

    fn twin(&self) -> &SimTwin {
        self.worker.sim().expect("a simulation's worker has the simulated twin")
    }

    /// Runs `f` in a fiber until it returns; fibers it leaves behind stay parked and go on at the
    /// next `run`. After an `Err` nothing runs any more: [`Simulation::crash`] gives the disk.
    pub fn run<T: 'static>(&mut self, f: impl FnOnce() -> T + 'static) -> Result<T, SimEnd> {
        let _installed = Installed::new(&self.worker);
        let packet = Packet::new();
        let body = packet.clone();
        if self.twin().end.borrow().is_none() {
            self.worker.start("root", 0, move || body.run(f));
        }
        loop {
            if let Some(result) = packet.take() {
                return result.map_err(|panic| {
                    self.twin().end_by_panic(panic.to_string());
                    SimEnd::Panicked(panic.to_string())
                });
            }
            if let Err(end) = self.twin().step(&self.worker, &self.limits) {
                self.twin().end.borrow_mut().get_or_insert(end.clone());
                return Err(end);
            }
        }
    }

    /// Ends the computer as the given kind of crash does and returns its disk.
    pub fn crash(self, kind: CrashKind) -> Disk {
        let disk = self.twin().disk.clone();
        drop(self);
        disk.crash(kind);
        disk
    }

    /// The disk, for looking at it and for faults while the simulation goes on.
    pub fn disk(&self) -> Disk {
        self.twin().disk.clone()
    }

    /// Lets the power fail after this many further steps.
    pub fn crash_after_steps(&mut self, steps: u64) {
        self.limits.crash_at_step = Some(self.steps() + steps);
    }

    /// A number that two runs share only if everything happened in the same order at the same
    /// time. See [`trace`].
    pub fn trace_hash(&self) -> u64 {
        self.twin().hash.get() ^ self.twin().now_nanos.get()
    }

    /// Fiber runs so far.
    pub fn steps(&self) -> u64 {
        self.twin().steps.get()
    }

    /// Virtual time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.twin().now_nanos.get() - 1_000_000_000)
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        let _installed = Installed::new(&self.worker);
        self.twin().disk.power_off();
        self.worker.halt();
        self.worker.mailbox.give_back();
    }
}

/// Ends the simulation as a crash at this point; the current fiber never returns. Panics outside
/// a simulation.
pub fn crash_now() -> ! {
    let worker = worker::current();
    let sim = worker.sim().expect("crash_now works only inside a simulation");
    sim.end.borrow_mut().get_or_insert(SimEnd::Crashed);
    loop {
        let wake = worker.park(WaitClass::Other, None, false);
        assert!(wake != Wake::Cancelled, "the simulation is over");
    }
}

/// The disk of the simulation that the current fiber runs in, `None` in the real twin.
pub fn disk() -> Option<Disk> {
    worker::current().sim().map(|sim| sim.disk.clone())
}

/// Mixes a value of the program into the trace hash, so that two runs are compared by it too.
/// Does nothing in the real twin.
pub fn trace(value: u64) {
    if let Some(sim) = worker::try_current().and_then(Worker::sim) {
        sim.trace(value);
    }
}

/// A place where another core could come in between, for code that holds no latch and no pointer
/// protected by [`crate::quiescent`]. Only a simulation ever yields here.
#[inline]
pub fn interleave_point() {
    if let Some(worker) = worker::try_current()
        && let Some(sim) = worker.sim()
        && worker.in_fiber()
        && sim.random.borrow_mut().one_in(8)
    {
        worker.yield_now();
    }
}
