//! Sessions: connections, variables, transactions and the dispatch of every statement.
//!
//! A [`ClientConnection`] is what the runtime drives; once logged in it owns a [`Session`]. The
//! session parses statements (`syntax`), plans them (`plan`), runs them (`exec`) and writes
//! answers through `wire` into its output buffer. What all sessions share is [`ServerState`].
//!
//! Invariants:
//! 1. An idle session holds no stack, no latch and, in autocommit mode, no transaction and no
//!    metadata lock.
//! 2. Every command gets exactly one answer (those of the protocol that have none, none), in
//!    order.
//! 3. The status flags of every OK and EOF say whether a transaction is open after it.
//! 4. Error numbers, states and texts come from `types::codes`; engine errors are mapped in
//!    `catalog::engine_error`.

mod access;
mod account_connections;
mod account_options;
mod accounts;
mod admin;
mod analyze;
mod answer;
mod authenticate;
mod bound;
mod bulk;
mod connection;
mod cursor;
mod dispatch;
mod execute;
mod explain;
mod flushing;
mod gate;
mod generalize;
mod into;
mod load;
mod login;
mod monitors;
mod named;
mod named_locks;
mod outfile;
mod plan_cache;
mod planned;
mod prepared;
mod process;
mod read_lock;
mod roles;
mod room;
mod server_state;
mod session;
mod set;
mod settings;
mod shared_prepared;
mod show;
mod show_grants;
mod spare;
mod statement;
mod statement_kind;
pub mod status;
mod system_variables;
mod table_locks;
mod track;
mod transaction;
mod transport;
pub mod variables;
mod views;
mod xa;
mod xa_name;

pub use answer::{Outlet, Protocol};
pub use connection::ClientConnection;
pub use process::{Door, Process, ProcessInfo, ProcessList};
pub use server_state::{DESCRIPTORS_FOR_FILES, ServerState, version_text};
pub use session::{Identity, Session};
pub use transport::{TlsError, TlsFiles, TlsServer};

pub(crate) use prepared::PreparedStatements;
pub(crate) use session::Diagnostics;
pub(crate) use statement::{Failure, parse_error};
