//! Gannet: the `lab` room. Workloads, load, measurement and reports for any server that speaks the
//! MySQL protocol.

pub mod account;
pub mod client;
pub mod command;
pub mod distribution;
pub mod driver;
pub mod load;
pub mod schedule;
pub mod statistics;
pub mod workload;
