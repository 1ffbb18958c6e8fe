//! The real twin: a worker thread per core, each with an event loop.

mod alone;
mod backlog;
mod balance;
mod buffers;
mod connections;
mod core_wait;
mod epoll;
mod event_loop;
mod file;
mod group;
mod helpers;
mod net;
mod outbox;
mod own_core;
mod service;
mod turn;
mod uring;

pub(crate) use buffers::BUFFER_BYTES;
pub(crate) use file::RealFile;
pub use group::{Config, Ring, Runtime};
pub(crate) use group::{RealTwin, fill_from_system};
pub(crate) use helpers::run_on_helper;
pub(crate) use net::RealStream;
pub(crate) use outbox::{ANSWER_BYTES_MAX, Placed};
pub(crate) use service::RealListener;
