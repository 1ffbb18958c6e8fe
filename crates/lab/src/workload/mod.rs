//! What is asked of a server.
//!
//! 1. What a client asks is decided by its seed, before it asks: [`Client::next`] draws everything
//!    that is random, [`Client::perform`] only talks. Two runs of one seed ask the same in each
//!    client, however fast the servers are.
//! 2. An operation that failed with a conflict can be performed again as it is.

pub mod sysbench;

use crate::client::Failure;
use crate::driver::session::Session;

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

    /// Performs what was decided. In case of a failure a transaction may be left open.
    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure>;
}
