//! Gannet: the `runtime` room. Fibers, one executor per core, clock, files, sockets; the real twin
//! (io_uring, or epoll and helper threads) and the simulated twin (one thread, one seed) behind
//! the same functions. The only room that names threads and system calls.
//!
//! ```no_run
//! let runtime = runtime::Runtime::start(runtime::Config::default()).expect("threads");
//! let answer = runtime.run(|| {
//!     let fiber = runtime::spawn("answer", || 42);
//!     fiber.join().expect("no panic")
//! });
//! assert_eq!(answer, 42);
//! ```
//!
//! Rules for code that runs in fibers:
//! 1. Write it straight; where it must wait it calls this crate, which parks the fiber and lets
//!    the worker go on. A fiber never changes its worker.
//! 2. Hold nothing short-lived across a wait: no latch, no [`sync::Mutex`] or std guard, no
//!    `RefCell` borrow, no borrow of a thread-local, no pointer protected by [`quiescent`].
//! 3. Long loops call [`yield_if_due`]; it costs a few nanoseconds and keeps a fiber's turn below
//!    200 us. That call is a wait in the sense of rule 2.
//! 4. A destructor must not wait when it may run because of a panic (the process would end).
//! 5. Catch panics with [`catch_panic`], and protect half-done changes with [`abort_on_panic`].
//! 6. For replayable simulations: no order from a hash map with a random hasher, no std clock,
//!    thread, file or random number.

mod admission;
mod bell;
mod cancel;
mod clock;
mod fiber;
pub mod file;
pub mod fs;
mod guard;
mod join;
mod limits;
mod mailbox;
pub mod mapping;
pub mod net;
pub mod overlay;
mod park;
mod prefetch;
pub mod quiescent;
mod ready;
mod real;
pub mod signal;
pub mod sim;
mod slice;
mod stack;
pub mod sync;
mod timer;
mod worker;

pub use admission::{AdmissionSettings, QueuedConnection, WorkerFigures};
pub use cancel::{
    CancelReason, CancelToken, current_cancel_token, is_current_cancelled, with_cancel,
};
pub use clock::Instant;
pub use guard::{AbortOnPanic, abort_on_panic};
pub use join::{FiberPanic, JoinHandle, catch_panic};
pub use limits::{raise_descriptor_limit, return_freed_c_memory};
pub use park::{Unparker, WaitClass, Wake, current_unparker, park, park_uncancellable};
pub use prefetch::{prefetch, prefetch_bytes};
pub use real::{Config, Ring, Runtime};

use std::sync::atomic::Ordering;
use std::time::Duration;
use worker::Twin;

/// Bytes reserved for a fiber's stack unless the configuration says otherwise. Only what a fiber
/// touches takes memory.
pub const DEFAULT_STACK_BYTES: usize = if cfg!(debug_assertions) { 512 * 1024 } else { 256 * 1024 };

/// Starts a fiber on this worker. Its name shows in reports.
pub fn spawn<T: Send + 'static>(
    name: &'static str,
    f: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let worker = worker::current();
    let packet = join::Packet::new();
    let handle = JoinHandle::new(packet.clone());
    worker.start(name, worker.current_home(), move || packet.run(f));
    handle
}

/// Starts a fiber on the worker with this number (modulo the number of workers).
pub fn spawn_on<T: Send + 'static>(
    number: usize,
    name: &'static str,
    f: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let worker = worker::current();
    let number = number % worker_count();
    let packet = join::Packet::new();
    let handle = JoinHandle::new(packet.clone());
    match &worker.twin {
        Twin::Real(real) if number != worker.number => {
            real.group.start(number, name, Box::new(move || packet.run(f)));
        }
        _ => {
            worker.start(name, number, move || packet.run(f));
        }
    }
    handle
}

/// How many workers the runtime has.
pub fn worker_count() -> usize {
    match &worker::current().twin {
        Twin::Real(real) => real.group.worker_count(),
        Twin::Sim(sim) => sim.workers,
    }
}

/// The number of the worker that the current fiber runs on.
pub fn current_worker() -> usize {
    worker::current().current_home()
}

/// The time when the present turn of the worker began, without a look at the clock: less than a
/// millisecond ago, unless some fiber runs on without [`yield_if_due`].
#[inline]
pub fn turn_time() -> Instant {
    worker::current().turn_time()
}

/// Whether the caller runs in a fiber.
pub fn in_fiber() -> bool {
    worker::try_current().is_some_and(worker::Worker::in_fiber)
}

/// Lets the other fibers that are ready run first.
pub fn yield_now() {
    worker::current().yield_now();
}

/// Yields if the fiber has used up its time slice. Cheap: for every row of a long loop.
#[inline]
pub fn yield_if_due() {
    worker::current().yield_if_due();
}

/// Yields now and then in loops whose steps are shorter than the look at the scheduler, such as
/// the comparisons of a sort.
#[derive(Debug, Default)]
pub struct Pacer {
    steps: std::cell::Cell<u32>,
}

/// Steps of a [`Pacer`] between two looks.
const PACER_STEPS: u32 = 64;

impl Pacer {
    /// One step; every 64th is a [`yield_if_due`].
    #[inline]
    pub fn step(&self) {
        let steps = self.steps.get() + 1;
        if steps < PACER_STEPS {
            self.steps.set(steps);
            return;
        }
        self.steps.set(0);
        yield_if_due();
    }
}

/// Parks for this time; earlier only when the fiber is cancelled (`Cancelled`).
pub fn sleep(duration: Duration) -> Wake {
    let deadline = now() + duration;
    loop {
        match park(WaitClass::Sleep, Some(deadline)) {
            Wake::Unparked => {}
            wake => return wake,
        }
    }
}

/// The monotonic clock; virtual in a simulation.
pub fn now() -> Instant {
    worker::current().now()
}

/// The wall clock: microseconds since 1970, UTC; virtual in a simulation.
pub fn wall_clock_micros() -> i64 {
    let worker = worker::current();
    match &worker.twin {
        Twin::Real(_) => worker.wall_micros(),
        Twin::Sim(sim) => sim.wall_micros(),
    }
}

/// A random number, decided by the seed in a simulation. Not for secrets.
pub fn random_u64() -> u64 {
    match &worker::current().twin {
        Twin::Real(real) => real.random_u64(),
        Twin::Sim(sim) => sim.user_random(),
    }
}

/// Random bytes for secrets, from the system (decided by the seed in a simulation).
pub fn random_bytes(bytes: &mut [u8]) {
    match &worker::current().twin {
        Twin::Real(_) => real::fill_from_system(bytes),
        Twin::Sim(sim) => {
            for chunk in bytes.chunks_mut(8) {
                chunk.copy_from_slice(&sim.user_random().to_le_bytes()[..chunk.len()]);
            }
        }
    }
}

/// Runs `f` on a helper thread while the fiber is parked: for slow codecs and system calls that
/// block. `f` must not use this crate. In a simulation it runs at once.
pub fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
    match &worker::current().twin {
        Twin::Real(real) => real::run_on_helper(real, f),
        Twin::Sim(_) => f(),
    }
}

/// How many fibers of this worker (of the whole simulation) have not ended.
pub fn live_fibers() -> usize {
    worker::current().live_fibers()
}

/// Limits the statements that are in execution at once; see `admission.rs`. Nothing is limited in
/// a simulation.
pub fn set_admission(settings: &AdmissionSettings) {
    if let Twin::Real(real) = &worker::current().twin {
        real.group.admission.set(settings, real.group.worker_count());
    }
}

/// What each worker does; the reserved one is the last.
pub fn worker_figures() -> Vec<WorkerFigures> {
    let worker = worker::current();
    match &worker.twin {
        Twin::Real(real) => real.group.worker_figures(),
        Twin::Sim(_) => vec![WorkerFigures::of(&worker.admission.figures)],
    }
}

/// What tells that a runtime has too few cores for its work, since it started, on the average of
/// its workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pressure {
    /// How long they were ready to run and had no core; zero where the kernel does not count it.
    pub core_wait: Duration,
    /// How long they ran while fibers waited for other fibers.
    pub crowded: Duration,
}

/// See [`Pressure`].
pub fn pressure() -> Pressure {
    match &worker::current().twin {
        Twin::Real(real) => real.group.pressure(),
        Twin::Sim(sim) => sim.cores.pressure(sim.now()),
    }
}

/// Connections that wait for their turn on a worker.
pub fn queued_connections() -> Vec<QueuedConnection> {
    match &worker::current().twin {
        Twin::Real(real) => real.group.queued_connections(),
        Twin::Sim(_) => Vec::new(),
    }
}

/// Waits of statements of this runtime, by class.
pub fn statement_wait_counts() -> Vec<(WaitClass, u64)> {
    let worker = worker::current();
    let count = |class: WaitClass| match &worker.twin {
        Twin::Real(real) => real.group.statement_waits(class),
        Twin::Sim(_) => 0,
    };
    WaitClass::ALL.into_iter().map(|class| (class, count(class))).collect()
}

/// Parks since the process began, by class.
pub fn wait_counts() -> Vec<(WaitClass, u64)> {
    let worker = worker::try_current();
    let count = |class: WaitClass| {
        let ended = worker::WAITS.parks[class as usize].load(Ordering::Relaxed);
        ended + worker.map_or(0, |worker| worker.parks_of_all(class))
    };
    WaitClass::ALL.into_iter().map(|class| (class, count(class))).collect()
}
