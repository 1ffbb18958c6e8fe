//! Checkpoints: how far back a recovery must begin, and which log may be reused.
//!
//! The log is kept from the lowest of the redo LSN, the first record of the oldest transaction
//! that has not ended (amendment 10), and the last record with all counters.
//!
//! 1. Order (amendment 9): choose the redo LSN; make the pages below it durable; write the
//!    superblock; only then recycle log.
//! 2. The superblock must not forget what only a record that may still be lost has settled. A
//!    transaction counts as ended once its last record is appended, a freed page as clean once
//!    the record that freed it is. So the oldest transaction is looked up first, then the redo
//!    LSN, and then the log is made durable to its end of that time, all before the superblock.
//!    Otherwise a crash that takes the last record leaves changes of a transaction that recovery
//!    has never heard of, and half of it stays.

use crate::core::Core;
use crate::error::{from_log, from_store};
use crate::purge;
use crate::recovery::Anchor;
use base::Lsn;
use engine_api::Result;
use std::sync::atomic::Ordering;
use wal::LsnRange;

static CHECKPOINTS: base::metrics::Counter =
    base::metrics::Counter::new("checkpoints", "checkpoints written");

/// What the last checkpoint left.
#[derive(Debug, Default)]
pub(crate) struct CheckpointState {
    /// The record with all counters.
    counters: Option<LsnRange>,
    /// Redo LSN that the superblock names.
    redo: Lsn,
}

/// Writes a checkpoint; `clean` marks the end of an orderly shutdown.
pub(crate) fn checkpoint(core: &Core, clean: bool) -> Result<()> {
    let mut state = core.checkpointing.lock();
    let _under_way = base::under_way::begin("engine.checkpoint");
    let store_error = |error| from_store(&error, || "data".to_owned());
    let counters = match state.counters {
        // Nothing was logged since.
        Some(written) if written.end == core.wal.end() => written,
        _ => core.counters.write_all(&core.wal)?,
    };
    state.counters = Some(counters);
    let wants_sweep = core.sweep_pending.load(Ordering::Relaxed) || purge::is_pending(core);
    let has_active = core.txn.active_writers() > 0;
    let oldest_active = core.txn.oldest_active_lsn();
    core.note_undoable();
    // Invariant 2: it returns when the log is durable to an end taken within.
    let redo = core.store.checkpoint_barrier().map_err(store_error)?;
    let scan = redo.min(oldest_active).min(counters.start);
    let scan = if base::mutant!("log_of_active_recycled") { redo } else { scan };
    if !base::mutant!("checkpoint_before_data_sync") {
        core.store.sync_data().map_err(store_error)?;
    }
    let durable = core.wal.durable();
    let written = core.store.write_superblock(|superblock| {
        superblock.is_clean = clean;
        superblock.redo_lsn = redo;
        superblock.durable_lsn = durable;
        superblock.oldest_active_first_lsn = if has_active { oldest_active } else { Lsn::ZERO };
        superblock.next_trx = core.txn.next_id().get();
        superblock.next_tree = u64::from(core.counters.next_tree());
        superblock.next_undo_address = core.txn.undo().high_water();
        let (root, class) = (core.dictionary().root(), core.dictionary().class());
        superblock.engine = Anchor { root, class, scan, wants_sweep }.encode();
    });
    written.map_err(store_error)?;
    state.redo = redo;
    CHECKPOINTS.add(1);
    core.store.remove_unused_dictionaries(redo);
    core.wal.recycle_before(scan).map_err(|error| from_log(&error))
}

/// Whether a checkpoint would give back a file of the log.
pub(crate) fn gives_back_log(core: &Core) -> bool {
    let kept = core.txn.oldest_active_lsn().min(core.store.oldest_unwritten());
    core.wal.has_files_before(kept)
}

/// Whether a checkpoint would say anything new.
pub(crate) fn is_due(core: &Core) -> bool {
    let state = core.checkpointing.lock();
    let logged = state.counters.is_none_or(|written| written.end < core.wal.end());
    logged || core.store.oldest_unwritten() > state.redo
}
