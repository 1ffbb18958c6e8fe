//! Transactions: identifiers, versions and their undo, snapshots, row locks, commit order.
//!
//! Room invariants:
//! 1. The newest version of a row lives in its tree entry; the entry's word is 0 (visible to all)
//!    or the address of an undo record that leads to the version before. See [`undo`].
//! 2. The commit timestamp of a transaction is the end LSN of its commit record. Timestamps are
//!    published in log order, under a latch inside which nothing parks. See [`system`].
//! 3. Undo is forgotten (words frozen) and rows are purged only at or below both the oldest
//!    snapshot and the durable end of the log. So a dependency on a commit that may still be
//!    lost is never erased, and a reader that waits for the highest timestamp it met has waited
//!    for everything it saw.
//! 4. A writer holds its rows through the word (implicit exclusive lock) to its end. Explicit
//!    locks are for readers that lock and for writers that wait. See [`lock`].
//! 5. Waits park with no latch held and end by grant, timeout, cancellation or as a deadlock's
//!    victim.
//!
//! The room knows keys and entries as bytes; it knows no pages, trees or tables. Applying undo to
//! a tree is the engine's work.

mod chunk;
mod image;
pub mod lock;
mod owner;
mod record;
mod recovered;
mod slots;
mod spill;
pub mod system;
mod transaction;
pub mod undo;
mod version;

pub use chunk::UndoFull;
pub use image::{BeforeImage, LoggedUndo, NewUndo};
pub use lock::report::{
    DeadlockMember, DeadlockView, LockPart, LockView, LockingView, TransactionView,
};
pub use lock::{Acquired, LockError, LockMode, WaitRule};
pub use owner::{Label, Owner};
pub use record::UndoRecord;
pub use system::{PurgeBatch, RecoveredChange, TransactionSystem, TxnError, TxnOptions};
pub use transaction::{ReadGate, Transaction, UndoPosition};
pub use undo::UndoSpace;
pub use version::{Reader, Seen, WordState};
