//! What is asked of a server.
//!
//! 1. What a client asks is decided by its seed, before it asks: [`Client::next`] draws everything
//!    that is random, [`Client::perform`] only talks. Two runs of one seed ask the same in each
//!    client, however fast the servers are.
//! 2. An operation that failed with a conflict can be performed again as it is.

pub mod linkbench;
pub mod sysbench;
pub mod tpcc;

use crate::client::{Connection, Failure};
use crate::driver::session::Session;
use std::time::Duration;

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

    /// A client, by number from 0.
    fn client(&self, number: u32) -> Box<dyn Client>;
}

/// One of the clients of a workload.
pub trait Client: Send {
    /// Decides the next operation and returns its number.
    fn next(&mut self) -> usize;

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
