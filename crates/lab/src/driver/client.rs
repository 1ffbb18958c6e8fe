//! A client at work.

use super::recorder::{End, Ended};
use super::session::{Protocol, Session};
use super::{Load, OnConflict, Plan, Ready, Shared, own_schedule};
use crate::client::{Failure, Target};
use crate::results::Statements;
use crate::schedule::Schedule;
use crate::workload::{Client, Seat};
use runtime::Instant;
use std::sync::Arc;
use std::time::Duration;

/// The pause before a lost connection is opened again, at first.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// A server that takes connections and is killed before it has accepted them may leave clients with
/// one that nobody will ever answer: so no login of a run takes longer, and hardly longer than the
/// run.
const PATIENCE: Duration = Duration::from_secs(20);
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// A server that nobody could connect to for so long when the run ended is gone.
const GONE_AT_THE_END: Duration = Duration::from_secs(2);
/// A client that waits for its time looks so often whether the run goes on.
const NAP: Duration = Duration::from_millis(250);

/// Where a client's connections lead.
pub(super) struct Place {
    target: Target,
    statements: Arc<[String]>,
    connections: usize,
    protocol: Protocol,
    holds: bool,
}

impl Place {
    pub(super) fn new(seat: Seat, plan: &Plan) -> Self {
        let mut target = plan.target.clone();
        target.database = seat.database.unwrap_or(target.database);
        let Seat { statements, connections, .. } = seat;
        let (protocol, holds) = (plan.protocol, plan.holds_threads);
        Self { target, statements, connections, protocol, holds }
    }

    /// `patience`: how long each answer of a login may take, if less than the target says.
    pub(super) fn open(
        &self,
        client: &mut dyn Client,
        patience: Duration,
    ) -> Result<Vec<Session>, Failure> {
        let read_timeout = self.target.read_timeout.min(patience);
        let target = Target { read_timeout, ..self.target.clone() };
        let open = if self.holds { Session::open_holding } else { Session::open };
        let open = |_| open(&target, &self.statements, self.protocol);
        let mut sessions = (0..self.connections).map(open).collect::<Result<Vec<_>, _>>()?;
        client.connected(&mut sessions)?;
        Ok(sessions)
    }
}

pub(super) struct Running {
    shared: Arc<Shared>,
    number: usize,
    client: Box<dyn Client>,
    place: Place,
    own_schedule: Option<Schedule>,
    sessions: Vec<Session>,
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>, number: usize, ready: Ready) -> Self {
        let Ready { client, place, sessions } = ready;
        let own_schedule = client.schedule().or_else(|| own_schedule(&shared.plan, number));
        let running = Self { shared, number, client, place, own_schedule, sessions };
        running.tell_handles();
        running
    }

    pub(super) fn run(mut self) {
        let end = self.shared.control.end();
        self.client.wait(end);
        while let Some(intended) = self.start(end) {
            let operation = self.client.next();
            let intended = intended + self.pause();
            let sent = runtime::now();
            self.shared.state.lock().begin(sent);
            let (how, retries) = self.perform(end);
            let now = runtime::now();
            let mut statements = Statements::default();
            for session in &mut self.sessions {
                statements.add(session.take_sent());
            }
            let mut state = self.shared.state.lock();
            state.waiting -= 1;
            state.heard = now;
            if let End::Failed(number, _) = &how {
                state.failing_since.get_or_insert(now);
                if state.failing_for(now) >= self.shared.plan.give_up {
                    let last = match number {
                        0 => "a lost connection".to_string(),
                        number => format!("error {number}"),
                    };
                    let seconds = self.shared.plan.give_up.as_secs();
                    self.shared.control.give_up(format!(
                        "nothing has succeeded for {seconds} s; the last was {last}"
                    ));
                }
            } else {
                state.failing_since = None;
            }
            let ended = Ended { operation, intended, sent, end: now, how, retries, statements };
            state.recorder.add(ended);
            drop(state);
            self.client.wait(end);
            if self.shared.plan.holds_threads {
                // It never parks, and others may have to run there.
                runtime::yield_if_due();
            }
        }
    }

    fn tell_handles(&self) {
        let handles = self.sessions.iter().map(Session::handle).collect();
        self.shared.control.keep_handles(self.number, handles);
    }

    /// Keying and thinking, which make an operation's intended start later in a closed load.
    fn pause(&mut self) -> Duration {
        let pause = self.client.pause();
        let is_open = self.own_schedule.is_some() || self.shared.plan.load != Load::Closed;
        if pause.is_zero() || is_open {
            return Duration::ZERO;
        }
        self.nap_until(runtime::now() + pause);
        pause
    }

    /// Waits for the next intended start; `None` when the run is over.
    fn start(&mut self, end: Instant) -> Option<Instant> {
        let paused_until = self.shared.control.paused_until();
        if runtime::now() < paused_until {
            self.nap_until(paused_until.min(end));
        }
        if self.shared.control.is_over() {
            return None;
        }
        let after = match (&mut self.own_schedule, &self.shared.schedule) {
            (Some(own), _) => own.next()?,
            (None, Some(schedule)) => schedule.lock().next()?,
            (None, None) => {
                let now = runtime::now();
                return (now < end).then_some(now);
            }
        };
        let intended = self.shared.begin + after;
        if intended >= end {
            return None;
        }
        if intended > runtime::now() {
            self.nap_until(intended);
            if self.shared.control.is_over() {
                return None;
            }
            let late = runtime::now() - intended;
            self.shared.state.lock().recorder.add_lateness(late);
        }
        Some(intended)
    }

    /// Waits until then, or until the run is over.
    fn nap_until(&self, then: Instant) {
        loop {
            let now = runtime::now();
            if now >= then || self.shared.control.is_over() {
                return;
            }
            runtime::sleep((then - now).min(NAP));
        }
    }

    /// Performs what the client decided, again after conflicts if the plan says so.
    fn perform(&mut self, end: Instant) -> (End, u64) {
        let mut retries = 0;
        loop {
            let failure = match self.client.perform(&mut self.sessions) {
                Ok(()) => return (End::Completed, retries),
                Err(failure) => failure,
            };
            let failed = self.note(&failure);
            let recovered = match &failure {
                Failure::Server { .. } => self.roll_back(),
                Failure::Connection(_) => false,
            };
            if !recovered {
                self.connect_again(end);
                return (failed, retries);
            }
            let again = self.shared.plan.on_conflict == OnConflict::Retry;
            let is_over = runtime::now() >= end || self.shared.control.is_over();
            if !again || !failure.is_conflict() || is_over {
                return (failed, retries);
            }
            retries += 1;
        }
    }

    /// Keeps the text of a failure, and ends the run if it is of the kind that ends runs.
    fn note(&self, failure: &Failure) -> End {
        let mut state = self.shared.state.lock();
        let plan = &self.shared.plan;
        let Failure::Server { number, state: sql_state, message } = failure else {
            state.recorder.add_message(0, || failure.to_string());
            return End::Failed(0, String::new());
        };
        state.recorder.add_message(*number, || message.clone());
        if !failure.is_conflict() {
            state.errors += 1;
            if state.errors > plan.errors_max {
                let most = plan.errors_max;
                self.shared.control.give_up(format!("more than {most} errors, such as {failure}"));
            }
        } else if plan.on_conflict == OnConflict::Abort {
            self.shared.control.give_up(format!("a conflict, which was to end the run: {failure}"));
        }
        if failure.is_hopeless() {
            self.shared.control.give_up(failure.explained(&plan.target));
        }
        End::Failed(*number, sql_state.clone())
    }

    /// Ends transactions that an error left open; false if a connection is lost.
    fn roll_back(&mut self) -> bool {
        self.sessions.iter_mut().all(|session| session.command("ROLLBACK").is_ok())
    }

    /// Opens the connections anew, until it succeeds or the run is over.
    fn connect_again(&mut self, end: Instant) {
        let shared = self.shared.clone();
        let mut pause = FIRST_PAUSE;
        while runtime::now() < end && !shared.control.is_over() {
            let patience = (end - runtime::now()).clamp(LEAST_PATIENCE, PATIENCE);
            match self.place.open(&mut *self.client, patience) {
                Ok(sessions) => {
                    self.sessions = sessions;
                    self.tell_handles();
                    shared.state.lock().recorder.add_reconnected(runtime::now());
                    return;
                }
                Err(failure) => {
                    let now = runtime::now();
                    let failing = {
                        let mut state = shared.state.lock();
                        // A refusal is an answer of a kind.
                        state.heard = now;
                        state.failing_since.get_or_insert(now);
                        state.failing_for(now)
                    };
                    let is_away =
                        failing >= GONE_AT_THE_END && !shared.control.is_interfered_with();
                    let is_last = now + pause >= end && is_away;
                    if failing >= shared.plan.give_up || is_last {
                        let why = failure.explained(&shared.plan.target);
                        shared.control.give_up(format!("the server is gone: {why}"));
                    }
                }
            }
            self.nap_until((runtime::now() + pause).min(end));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
