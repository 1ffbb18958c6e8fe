//! What databases, tables and users exist.
//!
//! Definitions live in the engine's dictionary (a small transactional key-value tree) under
//! keys of this room, and in memory in a cache that is read without touching the engine.
//!
//! Invariants:
//! 1. The cache is changed only after the engine transaction that changed the dictionary has
//!    committed, and only by a holder of the exclusive metadata lock of the name concerned.
//! 2. Whoever holds a shared metadata lock on a table's name sees one definition of it; its
//!    trees are neither dropped nor rebuilt until the lock is given back.
//! 3. [`Catalog::version`] grows with every change of a definition, a schema or a privilege: a
//!    cached plan whose version equals it needs no other check; otherwise it compares
//!    [`TableEntry::is_current`] for its tables.
//! 4. Metadata locks are fiber-aware, first come first served, and bounded by a timeout (1205).
//!
//! How a statement uses it: `plan` calls [`Catalog::open`] for every table name with the
//! session's [`MetadataLockSet`]; the session releases the set when the transaction ends (after
//! the statement in autocommit mode). DDL calls the operation ([`Catalog::create_table`],
//! [`Catalog::change_table`] ...), which takes the exclusive lock itself, runs in its own engine
//! transaction and returns when it is durable.
//!
//! Database and table names are compared byte by byte (`lower_case_table_names=0`), except
//! those of `information_schema`.

mod accounts;
mod catalog;
pub mod describe;
mod encoding;
mod error;
mod foreign;
pub mod information_schema;
mod kept_statistics;
mod locks;
mod monitor;
pub mod partition;
mod privileges;
mod roles;
mod schema;
pub mod show;
mod shown_locks;
mod sql_error;
mod statistics_tables;
mod table_entry;
mod temporary;
mod user_record;
mod users;
mod view;

pub use accounts::GrantLevel;
pub use catalog::Catalog;
pub use encoding::DecodeError;
pub use error::{CatalogError, Result};
pub use foreign::{QualifiedName, action_words, constraint_in_table, constraint_text};
pub use kept_statistics::{KeptColumn, KeptStatistics};
pub use locks::{LockKind, MetadataLock, MetadataLockSet};
pub use monitor::{Monitor, MonitorChange, named as metrics_named};
pub use partition::Partitions;
pub use privileges::{Privilege, PrivilegeSet};
pub use roles::{PUBLIC, role_name};
pub use schema::{Schema, SchemaOptions};
pub use shown_locks::{ShownLock, ShownLocks};
pub use sql_error::engine_error;
pub use table_entry::{EstimateAge, TableEntry, TableLayouts, TableRef};
pub use temporary::TemporaryTables;
pub use users::{
    Account, AccountAttributes, AccountLimits, Authentication, ColumnGrant, HostPattern,
    PasswordLifetime, RoleGrant, TlsRequirement, UserPrivileges,
};
pub use view::{CheckOption, ViewAlgorithm, ViewDefinition};
