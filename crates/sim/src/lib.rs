//! Gannet: the whole engine under simulation.
//!
//! A seed decides everything: the shapes of the tables, the knobs of the engine, what the clients
//! do, how the fibers interleave, when the power fails and what the disk keeps. Clients run
//! transactions through `engine-api` only; [`model`] says what they may see and what a crash may
//! leave. A failing seed is replayed with `cargo run -p gannet-sim -- --seed N`.
//!
//! * [`model`]: the rules, without an engine.
//! * [`tables`], [`world`]: tables, and what the fibers of a life share.
//! * [`client`], [`session`]: what a client does, and how engine and model hear of it.
//! * [`knobs`]: what a seed chooses.
//! * [`life`]: lives and crashes of one seed.
//! * [`families`]: foreign keys under concurrency.
//! * [`faults`]: disks that fail, are full, rot or lie.
//! * [`large_answer`]: answers that leave in parts show only what is durable.
//! * [`server_life`]: the same for the whole server, through [`wire_client`].

pub mod campaign;
pub mod client;
pub mod command;
pub mod families;
pub mod faults;
pub mod knobs;
pub mod large_answer;
pub mod life;
pub mod model;
pub mod mutants;
pub mod reading;
pub mod server_check;
pub mod server_client;
pub mod server_items;
pub mod server_ledger;
pub mod server_life;
pub mod session;
pub mod subjects;
pub mod tables;
pub mod tail;
pub mod wire_client;
pub mod world;
