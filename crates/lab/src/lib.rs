//! Gannet: the `lab` room. Workloads, load, measurement and reports for any server that speaks the
//! MySQL protocol.

pub mod account;
pub mod client;
pub mod command;
pub mod distribution;
pub mod driver;
pub mod experiment;
pub mod load;
pub mod machine;
pub mod parity;
pub mod progress;
pub mod recipe;
pub mod report;
pub mod results;
pub mod schedule;
pub mod server;
pub mod statistics;
pub mod workload;
