//! What is asked of a server.
//!
//! 1. What a client asks is decided by its seed, before it asks: [`Client::next`] draws everything
//!    that is random, [`Client::perform`] only talks. Two runs of one seed ask the same in each
//!    client, however fast the servers are. Of the clock are only the times that LinkBench writes
//!    into what it changes.
//! 2. An operation that failed with a conflict can be performed again as it is.
//! 3. Clients are made anew for every run, in the order of their numbers, and each run of a server
//!    draws anew ([`Which::turn`]): asked the same again it would write what is there already,
//!    which costs a server less than a change.

pub mod change;
pub mod idle;
pub mod insert;
pub mod linkbench;
pub mod mixed;
pub mod storm;
pub mod sysbench;
pub mod tpcc;

use crate::client::{Connection, Failure, Target};
use crate::driver::Operation;
use crate::driver::session::Session;
pub use crate::results::Finding;
use crate::schedule::Schedule;
use base::Random;
use runtime::Instant;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Which client of which run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Its number, from 0.
    pub number: u32,
    /// How many runs its server had before.
    pub turn: u32,
}

impl Which {
    /// A stream of its own.
    pub fn random(self, seed: u64) -> Random {
        // An odd factor: the streams of the turns of all seeds are far from each other.
        let turn = u64::from(self.turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random::new(seed.wrapping_add(turn) ^ (u64::from(self.number) + 1) << 32)
    }
}

/// What a client connects with, where clients differ.
pub struct Seat {
    /// Its statements.
    pub statements: Arc<[String]>,
    /// How many connections it has.
    pub connections: usize,
    /// Its database, if it is not the run's.
    pub database: Option<String>,
}

/// What is held while a run lasts.
#[derive(Default)]
pub struct Held {
    /// Dropped at the end.
    pub guard: Option<Box<dyn Any + Send>>,
    /// What the report tells of it.
    pub notes: Vec<String>,
}

impl Finding {
    /// A figure of which nothing is wanted.
    pub fn figure(name: &str, found: String) -> Self {
        Self { name: name.into(), found, wanted: String::new(), met: true }
    }
}

/// What goes on beside the clients of a run, such as changes of tables.
pub trait Beside: Send + Sync {
    /// Goes on from the begin of the measured time to its end; tells what happens as it happens.
    fn run(&self, target: &Target, begin: Instant, end: Instant, tell: &dyn Fn(String));

    /// What is to be said of the run: from the operations of each second of the measured time, and
    /// from allocated bytes at seconds since its begin.
    fn findings(&self, completed_per_second: &[u64], space: &[(f64, u64)]) -> Vec<Finding> {
        let _figures = (completed_per_second, space);
        Vec::new()
    }
}

/// A kind of load, shared by its clients.
pub trait Workload: Send + Sync {
    /// What operations are called, by their numbers.
    fn operations(&self) -> Vec<&'static str>;

    /// The statements with `?` for values that clients execute by number.
    fn statements(&self) -> Vec<String>;

    /// How many connections each client has.
    fn connections(&self) -> usize {
        1
    }

    /// How many clients there are when so many are asked for.
    fn clients(&self, asked: u32) -> u32 {
        asked
    }

    /// What a client connects with, if not with [`Self::statements`] and [`Self::connections`].
    fn seat(&self, number: u32) -> Option<Seat> {
        let _alike = number;
        None
    }

    /// A client.
    fn client(&self, which: Which) -> Box<dyn Client>;

    /// Called when a run begins, before clients connect.
    fn hold(&self, target: &Target) -> Result<Held, Failure> {
        let _nothing = target;
        Ok(Held::default())
    }

    /// What is to be said of a run.
    fn findings(&self, operations: &[Operation], measured: Duration) -> Vec<Finding> {
        let _figures = (operations, measured);
        Vec::new()
    }
}

/// One of the clients of a workload.
pub trait Client: Send {
    /// Decides the next operation and returns its number.
    fn next(&mut self) -> usize;

    /// What was decided, for a log of operations: the same for the same seed.
    fn decided(&self) -> String {
        String::new()
    }

    /// Told once, before anything else, where the run is.
    fn told(&mut self, target: &Target) {
        let _connected_by_the_driver = target;
    }

    /// Called before an operation's intended start is taken. It may wait, no longer than to the
    /// end of the run.
    fn wait(&mut self, end: Instant) {
        let _at_once = end;
    }

    /// When its operations are meant to begin, if it has a schedule of its own: that goes on beside
    /// whatever the load of the run is. Called once, before the run.
    fn schedule(&self) -> Option<Schedule> {
        None
    }

    /// Called with new connections, at the begin and after some were lost.
    fn connected(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let _as_they_are = sessions;
        Ok(())
    }

    /// How long the client waits before what was decided begins, in a closed load: keying and
    /// thinking.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Performs what was decided. In case of a failure a transaction may be left open.
    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure>;
}

/// Rows that break a rule of a workload's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What should hold.
    pub rule: String,
    /// How many rows break it.
    pub rows: u64,
    /// The first of them, columns separated by commas.
    pub examples: Vec<String>,
}

/// Rows that a violation shows.
const EXAMPLES: usize = 10;

impl Violation {
    /// Runs a query that must find no rows.
    pub(crate) fn check(
        connection: &mut Connection,
        rule: &str,
        sql: &str,
    ) -> Result<Option<Self>, Failure> {
        let mut examples = Vec::new();
        let done = connection.query(sql, |row| {
            if examples.len() < EXAMPLES {
                let value = |column| match row.text(column) {
                    Some(text) => String::from_utf8_lossy(&text).into_owned(),
                    None => "NULL".into(),
                };
                examples.push((0..row.columns()).map(value).collect::<Vec<_>>().join(", "));
            }
            Ok(())
        })?;
        Ok((done.rows > 0).then(|| Self { rule: rule.into(), rows: done.rows, examples }))
    }
}
