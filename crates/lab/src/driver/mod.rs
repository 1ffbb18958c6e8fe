//! The load: clients as fibers of one worker, or of as many as the plan says.
//!
//! 1. A closed load has a fixed number of clients, each with one operation at a time. An open load
//!    has a schedule of intended starts; a free client takes the next, and waits for it or is late
//!    for it. Nothing a server does changes an intended start.
//! 2. A client may have a schedule of its own ([`Client::schedule`], [`Load::Open`]'s
//!    `per_client`), to which 1 applies as well.
//! 3. Connecting is no part of any latency, nor is preparing what the warm-up has executed.
//!    Clients begin together, at the begin of the warm-up.
//! 4. A conflict is retried as the plan says, within the operation's latency, and counted.
//! 5. A lost connection is opened again; while that fails the client waits longer and longer. When
//!    no operation has succeeded for [`Plan::give_up`], when errors show that none can
//!    ([`Failure::is_hopeless`]) or when there were too many, the run ends, and says why.
//! 6. No client waits for ever: one fiber looks after all of them, and closes the connections of
//!    those that are not answered.

mod client;
mod control;
mod figures;
mod fine;
mod recorder;
pub mod session;

pub use control::{Control, Mark, Planned, Stop, Tell, Watch};
pub use figures::{Interval, QUANTILES, Second, bucket_begin_micros, bucket_of};
pub use fine::{Fine, Gap};
pub use recorder::{End, Ended, Latencies, Operation, Record, Recorder};

use crate::client::{Failure, Target};
use crate::schedule::{Arrivals, Profile, Schedule};
use crate::workload::{Client, Finding, Seat, Which, Workload};
use client::{Place, Running};
use runtime::Instant;
use runtime::sync::Mutex;
use session::{Protocol, Session};
use std::sync::Arc;
use std::time::Duration;

/// [`Plan::give_up`] unless the plan says otherwise.
pub const GIVE_UP: Duration = Duration::from_secs(10);
/// [`Plan::errors_max`] for each client unless the plan says otherwise.
pub const ERRORS_MAX: u64 = 100;
/// Connections that are opened at the same time.
const CONNECTING: usize = 32;

/// When operations begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// As soon as the one before has ended.
    Closed,
    /// By a schedule.
    Open {
        /// How gaps are distributed.
        arrivals: Arrivals,
        /// Operations a second of all clients together; its time begins with the measured time.
        rate: Profile,
        /// Each client has its share of the rate for itself: nobody else begins what it is late
        /// for.
        per_client: bool,
    },
}

/// What a client does about a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The same again.
    Retry,
    /// An error; the next operation.
    Ignore,
    /// The run ends.
    Abort,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// How statements are sent.
    pub protocol: Protocol,
    /// Clients at the same time.
    pub clients: u32,
    /// Workers of the runtime that they are spread over; with 1 they are the caller's.
    pub threads: u32,
    /// Clients hold their threads while they wait for answers, as those of programs with a thread
    /// for each client do. For plans with as many threads: an answer may cost a server less if a
    /// thread that sleeps in a call waits for it than if a ring of many waits does.
    pub holds_threads: bool,
    /// When operations begin.
    pub load: Load,
    /// Not counted.
    pub warm_up: Duration,
    /// Counted.
    pub measured: Duration,
    /// About conflicts.
    pub on_conflict: OnConflict,
    /// Decides the schedule.
    pub seed: u64,
    /// How many runs the server had before; clients draw anew in each.
    pub turn: u32,
    /// A run in which nothing has succeeded for so long is over.
    pub give_up: Duration,
    /// A run with more errors of the server than that, conflicts apart, is over.
    pub errors_max: u64,
}

impl Plan {
    /// One client, prepared statements, a minute without a warm-up.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            protocol: Protocol::Prepared,
            clients: 1,
            threads: 1,
            holds_threads: false,
            load: Load::Closed,
            warm_up: Duration::ZERO,
            measured: Duration::from_secs(60),
            on_conflict: OnConflict::Retry,
            seed: 1,
            turn: 0,
            give_up: GIVE_UP,
            errors_max: u64::MAX,
        }
    }

    /// The worker of a client; called on that of the run.
    fn worker(&self, number: u32) -> usize {
        runtime::current_worker() + (number % self.threads.max(1)) as usize
    }

    /// Operations a second on average of the measured time; absent in a closed load.
    pub fn rate(&self) -> Option<f64> {
        match &self.load {
            Load::Closed => None,
            Load::Open { rate, .. } => Some(rate.mean(Duration::ZERO, self.measured)),
        }
    }
}

/// What came of a run.
pub struct Measured {
    /// What was counted.
    pub record: Record,
    /// Why it ended early, if it did.
    pub given_up: Option<String>,
    /// When the measured time began.
    pub begin: Instant,
    /// What happened besides.
    pub marks: Vec<Mark>,
    /// What the workload says of it.
    pub findings: Vec<Finding>,
    /// What was held beside it.
    pub notes: Vec<String>,
}

/// What the clients of a run share.
struct Shared {
    plan: Plan,
    /// Of the warm-up.
    begin: Instant,
    schedule: Option<Mutex<Schedule>>,
    state: Mutex<State>,
    control: Arc<Control>,
}

struct State {
    recorder: Recorder,
    /// When the first operation failed after which none has succeeded.
    failing_since: Option<Instant>,
    /// Clients that wait for answers.
    waiting: usize,
    /// When the last operation ended, or the first client began to wait.
    heard: Instant,
    /// Errors of the server, conflicts apart.
    errors: u64,
}

impl State {
    /// A client asks.
    fn begin(&mut self, now: Instant) {
        if self.waiting == 0 {
            self.heard = now;
        }
        self.waiting += 1;
    }

    /// How long nobody has heard of the server though somebody waits.
    fn silent_for(&self, now: Instant) -> Duration {
        if self.waiting == 0 { Duration::ZERO } else { now - self.heard }
    }

    /// How long everything has failed.
    fn failing_for(&self, now: Instant) -> Duration {
        self.failing_since.map_or(Duration::ZERO, |since| now - since)
    }
}

/// Runs a workload. Call it in a fiber; what the worker does else delays the clients.
pub fn run(workload: &dyn Workload, plan: Plan) -> Result<Measured, Failure> {
    watched(workload, plan, Watch::default())
}

/// The same, looked at and interfered with.
pub fn watched(workload: &dyn Workload, plan: Plan, watch: Watch) -> Result<Measured, Failure> {
    let held = workload.hold(&plan.target)?;
    let clients = connect(workload, &plan)?;
    let begin = runtime::now();
    let measured_begin = begin + plan.warm_up;
    let times = (begin, plan.warm_up, plan.measured);
    let control = Arc::new(Control::new(measured_begin, measured_begin + plan.measured));
    let shared = Arc::new(Shared {
        begin,
        schedule: shared_schedule(&plan),
        state: Mutex::new(State {
            recorder: Recorder::new(&workload.operations(), times, watch.tell.is_some()),
            failing_since: None,
            waiting: 0,
            heard: begin,
            errors: 0,
        }),
        control: control.clone(),
        plan,
    });
    let fibers: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, ready)| {
            let worker = shared.plan.worker(number as u32);
            let running = Running::new(shared.clone(), number, ready);
            runtime::spawn_on(worker, "client", move || running.run())
        })
        .collect();
    let watching = {
        let (shared, watch) = (shared.clone(), watch.clone());
        runtime::spawn("watch", move || control::look_after(&shared, &watch))
    };
    let events: Vec<_> = watch.events.into_iter().map(|planned| planned.start(&control)).collect();
    let mut panicked = None;
    for fiber in fibers {
        panicked = fiber.join().err().or(panicked);
    }
    // Clients that have nothing to do any more end before the run does.
    let now = runtime::now();
    let end = if control.is_over() { now } else { now.max(control.end()) };
    control.finish();
    for fiber in events.into_iter().chain([watching]) {
        panicked = fiber.join().err().or(panicked);
    }
    if let Some(panic) = panicked {
        return Err(std::io::Error::other(panic.to_string()).into());
    }
    let shared = Arc::into_inner(shared).expect("all fibers that share it have ended");
    let record = shared.state.into_inner().recorder.finish(end);
    Ok(Measured {
        findings: workload.findings(&record.operations, shared.plan.measured),
        record,
        given_up: control.why_over(),
        begin: measured_begin,
        marks: control.take_marks(),
        notes: held.notes,
    })
}

/// A client with its connections.
struct Ready {
    client: Box<dyn Client>,
    place: Place,
    sessions: Vec<Session>,
}

/// Makes the clients and opens their connections, some at the same time.
fn connect(workload: &dyn Workload, plan: &Plan) -> Result<Vec<Ready>, Failure> {
    let alike: Arc<[String]> = workload.statements().into();
    let count = workload.clients(plan.clients);
    let mut ready = Vec::with_capacity(count as usize);
    let numbers: Vec<u32> = (0..count).collect();
    for some in numbers.chunks(CONNECTING) {
        let open = |&number: &u32| {
            let seat = workload.seat(number).unwrap_or_else(|| Seat {
                statements: alike.clone(),
                connections: workload.connections(),
                database: None,
            });
            let mut client = workload.client(Which { number, turn: plan.turn });
            client.told(&plan.target);
            let place = Place::new(seat, plan);
            runtime::spawn_on(plan.worker(number), "connect", move || {
                let sessions = place.open(&mut *client, Duration::MAX)?;
                Ok::<_, Failure>(Ready { client, place, sessions })
            })
        };
        let fibers: Vec<_> = some.iter().map(open).collect();
        let opened: Vec<_> = fibers.into_iter().map(|fiber| fiber.join()).collect();
        for one in opened {
            ready.push(one.map_err(|panic| std::io::Error::other(panic.to_string()))??);
        }
    }
    Ok(ready)
}

fn shared_schedule(plan: &Plan) -> Option<Mutex<Schedule>> {
    match &plan.load {
        Load::Open { arrivals, rate, per_client: false } => {
            let profile = rate.clone().delayed(plan.warm_up);
            Some(Mutex::new(Schedule::new(*arrivals, profile, plan.seed)))
        }
        _ => None,
    }
}

/// A client's own schedule, if the load gives it one.
fn own_schedule(plan: &Plan, number: usize) -> Option<Schedule> {
    match &plan.load {
        Load::Open { arrivals, rate, per_client: true } => {
            let share = 1.0 / f64::from(plan.clients.max(1));
            let profile = rate.clone().scaled(share).delayed(plan.warm_up);
            let seed =
                plan.seed.wrapping_add((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            Some(Schedule::new(*arrivals, profile, seed))
        }
        _ => None,
    }
}
