//! The load: clients as fibers of one worker.
//!
//! 1. A closed load has a fixed number of clients, each with one operation at a time. An open load
//!    has a schedule of intended starts; a free client takes the next, and waits for it or is late
//!    for it. Nothing a server does changes an intended start.
//! 2. Connecting and preparing are no part of any latency. Clients begin together, at the begin
//!    of the warm-up.
//! 3. A conflict is retried as the plan says, within the operation's latency, and counted.
//! 4. A lost connection is opened again; while that fails the client waits longer and longer. When
//!    no operation has succeeded for [`GIVE_UP`] the run ends, and says why.

mod recorder;
pub mod session;

pub use recorder::{End, Latencies, Operation, QUANTILES, Record, Recorder, Second};

use crate::client::{Failure, Target};
use crate::schedule::{Arrivals, Schedule};
use crate::workload::{Client, Workload};
use runtime::Instant;
use runtime::sync::Mutex;
use session::{Protocol, Session};
use std::sync::Arc;
use std::time::Duration;

/// A run in which nothing has succeeded for so long is over.
pub const GIVE_UP: Duration = Duration::from_secs(10);
/// The pause before a lost connection is opened again, at first.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// When operations begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// As soon as the one before has ended.
    Closed,
    /// By a schedule of so many a second.
    Open {
        /// How gaps are distributed.
        arrivals: Arrivals,
        /// Of all clients together.
        rate_per_second: f64,
    },
}

/// What a client does about a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The same again.
    Retry,
    /// An error; the next operation.
    Fail,
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
}

/// What came of a run.
pub struct Measured {
    /// What was counted.
    pub record: Record,
    /// Why it ended early, if it did.
    pub given_up: Option<String>,
}

/// What the clients of a run share.
struct Shared {
    plan: Plan,
    statements: Arc<[String]>,
    begin: Instant,
    schedule: Option<Mutex<Schedule>>,
    state: Mutex<State>,
}

struct State {
    recorder: Recorder,
    last_success: Instant,
    given_up: Option<String>,
}

impl State {
    /// An operation ended with an error: the last one of the run, if none succeeds any more.
    fn failed(&mut self, number: u16, now: Instant) {
        if now - self.last_success >= GIVE_UP && self.given_up.is_none() {
            let seconds = GIVE_UP.as_secs();
            let why = format!("nothing has succeeded for {seconds} s; the last error: {number}");
            self.given_up = Some(why);
        }
    }
}

/// Runs a workload. Call it in a fiber; what the worker does else delays the clients.
pub fn run(workload: &dyn Workload, plan: Plan) -> Result<Measured, Failure> {
    let statements: Arc<[String]> = workload.statements().into();
    let open = |_| Session::open(&plan.target, &statements, plan.protocol);
    let mut clients = Vec::new();
    for number in 0..plan.clients {
        let sessions: Result<Vec<_>, _> = (0..workload.connections()).map(open).collect();
        let (mut client, mut sessions) = (workload.client(number), sessions?);
        client.connected(&mut sessions)?;
        clients.push((client, sessions));
    }
    let begin = runtime::now();
    let shared = Arc::new(Shared {
        statements,
        begin,
        schedule: schedule(&plan),
        state: Mutex::new(State {
            recorder: Recorder::new(&workload.operations(), begin + plan.warm_up, plan.measured),
            last_success: begin,
            given_up: None,
        }),
        plan,
    });
    let fibers: Vec<_> = clients
        .into_iter()
        .map(|(client, sessions)| {
            let shared = shared.clone();
            runtime::spawn("client", move || Running { shared, client, sessions }.run())
        })
        .collect();
    for fiber in fibers {
        fiber.join().map_err(|panic| std::io::Error::other(panic.to_string()))?;
    }
    let shared = Arc::into_inner(shared).expect("every client has ended");
    let State { recorder, given_up, .. } = shared.state.into_inner();
    Ok(Measured { record: recorder.finish(), given_up })
}

fn schedule(plan: &Plan) -> Option<Mutex<Schedule>> {
    match plan.load {
        Load::Closed => None,
        Load::Open { arrivals, rate_per_second } => {
            Some(Mutex::new(Schedule::new(arrivals, rate_per_second, plan.seed)))
        }
    }
}

/// A client at work.
struct Running {
    shared: Arc<Shared>,
    client: Box<dyn Client>,
    sessions: Vec<Session>,
}

impl Running {
    fn run(mut self) {
        let end = self.shared.begin + self.shared.plan.warm_up + self.shared.plan.measured;
        while let Some(intended) = self.start(end) {
            let operation = self.client.next();
            let intended = intended + self.pause();
            let sent = runtime::now();
            let (how, retries) = self.perform(end);
            let now = runtime::now();
            let mut state = self.shared.state.lock();
            match &how {
                End::Completed => state.last_success = now,
                End::Failed(number, _) => state.failed(*number, now),
            }
            state.recorder.add(operation, intended, sent, now, how, retries);
        }
    }

    /// Keying and thinking, which make an operation's intended start later in a closed load.
    fn pause(&mut self) -> Duration {
        let pause = self.client.pause();
        if pause.is_zero() || self.shared.schedule.is_some() {
            return Duration::ZERO;
        }
        runtime::sleep(pause);
        pause
    }

    /// Waits for the next intended start; `None` when the run is over.
    fn start(&self, end: Instant) -> Option<Instant> {
        if self.shared.state.lock().given_up.is_some() {
            return None;
        }
        let Some(schedule) = &self.shared.schedule else {
            let now = runtime::now();
            return (now < end).then_some(now);
        };
        let after = schedule.lock().next()?;
        let intended = self.shared.begin + after;
        if intended >= end {
            return None;
        }
        let now = runtime::now();
        if intended > now {
            runtime::sleep(intended - now);
            let late = runtime::now() - intended;
            self.shared.state.lock().recorder.add_lateness(late);
        }
        Some(intended)
    }

    /// Performs what the client decided, again after conflicts if the plan says so.
    fn perform(&mut self, end: Instant) -> (End, u64) {
        let mut retries = 0;
        loop {
            let failure = match self.client.perform(&mut self.sessions) {
                Ok(()) => return (End::Completed, retries),
                Err(failure) => failure,
            };
            let failed = match &failure {
                Failure::Server { number, state, .. } => End::Failed(*number, state.clone()),
                Failure::Connection(_) => End::Failed(0, String::new()),
            };
            let recovered = match &failure {
                Failure::Server { .. } => self.roll_back(),
                Failure::Connection(_) => false,
            };
            if !recovered {
                self.connect_again(end);
                return (failed, retries);
            }
            let again = self.shared.plan.on_conflict == OnConflict::Retry;
            if !again || !failure.is_conflict() || runtime::now() >= end {
                return (failed, retries);
            }
            retries += 1;
        }
    }

    /// Ends transactions that an error left open; false if a connection is lost.
    fn roll_back(&mut self) -> bool {
        self.sessions.iter_mut().all(|session| session.command("ROLLBACK").is_ok())
    }

    /// Opens the connections anew, until it succeeds or the run is over.
    fn connect_again(&mut self, end: Instant) {
        let shared = self.shared.clone();
        let mut pause = FIRST_PAUSE;
        while runtime::now() < end && shared.state.lock().given_up.is_none() {
            let open =
                |_| Session::open(&shared.plan.target, &shared.statements, shared.plan.protocol);
            let opened: Result<Vec<_>, _> = (0..self.sessions.len()).map(open).collect();
            let opened = opened.and_then(|mut sessions| {
                self.client.connected(&mut sessions)?;
                Ok(sessions)
            });
            match opened {
                Ok(sessions) => {
                    self.sessions = sessions;
                    return;
                }
                Err(failure) => {
                    let mut state = shared.state.lock();
                    if runtime::now() - state.last_success >= GIVE_UP {
                        state.given_up = Some(format!("the server is gone: {failure}"));
                    }
                }
            }
            runtime::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
