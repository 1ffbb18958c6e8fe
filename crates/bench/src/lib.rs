//! The tools of `cargo xtask bench` that have to be fast themselves: a client of one thread for
//! thousands of connections, and the limit that it is measured against: a server made of the same
//! runtime and wire code that answers every statement with a constant.
//!
//! The client knows a server by its socket only, so it measures any server alike.

mod answers;
pub mod client;
pub mod constant;
pub mod device;
pub mod histogram;
mod link;
pub mod options;

/// What a command gives back: an error is a sentence for the person at the terminal.
pub type Outcome = Result<(), String>;
