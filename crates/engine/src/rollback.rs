//! Undoing changes of a running transaction, newest first.
//!
//! 1. Each step puts the entry back as it was and logs that as a compensation record which names
//!    the next change to undo, so that a crash in between continues where it stopped.
//! 2. The entry carries the word of the change being undone: nobody else can have touched it.
//! 3. Rows that were there before stay locked when the transaction goes on (ROLLBACK TO
//!    SAVEPOINT, a statement that failed), as InnoDB keeps them. Rows that vanish do not: their
//!    lock was the row itself.

use crate::core::Core;
use crate::error::{from_lock, from_tree};
use crate::transaction::EngineTransaction;
use base::{Lsn, TreeId, TrxId};
use btree::{Change, DELETED, LogPart, Tree};
use engine_api::{EngineError, Result};
use std::time::Duration;
use txn::{BeforeImage, LoggedUndo, WordState};
use wal::{RecordBuilder, RecordKind, UndoKind};

/// Between two looks whether space has returned.
const SPACE_PAUSE: Duration = Duration::from_millis(50);

/// One change to take back, with everything copied out of the undo.
#[derive(Default)]
pub(crate) struct UndoStep {
    pub(crate) tree: TreeId,
    pub(crate) key: Vec<u8>,
    pub(crate) kind: Option<UndoKind>,
    /// `txn::LoggedUndo`: the change's word, and flags, word and payload before.
    pub(crate) logged: Vec<u8>,
    /// Record to undo after this one.
    pub(crate) undo_next: Lsn,
}

impl UndoStep {
    /// Takes the change back in `tree`. False when the entry does not carry the change's word.
    pub(crate) fn apply(
        &self,
        core: &Core,
        tree: &Tree,
        trx: TrxId,
        record: &mut RecordBuilder,
    ) -> Result<bool> {
        let malformed = || EngineError::Corrupt {
            object: core.tree_name(self.tree),
            detail: "malformed undo".to_owned(),
        };
        let undo = LoggedUndo::parse(&self.logged).ok_or_else(malformed)?;
        let undo_next = self.undo_next.get().to_le_bytes();
        let log = LogPart { kind: RecordKind::Compensation, trx, logical: &undo_next };
        let (mut fits, mut payload) = (true, Vec::new());
        let modified = tree.modify(&self.key, record, &mut |change: &mut Change<'_>| {
            let Some(entry) = change.entry().filter(|entry| entry.word == undo.word) else {
                return;
            };
            if self.kind == Some(UndoKind::Insert) {
                return change.remove(log);
            }
            if undo.before == BeforeImage::Same {
                return change.set_header(undo.before_flags, undo.before_word, log);
            }
            payload.clear();
            payload.extend_from_slice(entry.payload);
            fits = undo.before.apply(&mut payload);
            if fits {
                change.replace(undo.before_flags, undo.before_word, &payload, log);
            }
        });
        let modified = modified.map_err(|error| from_tree(error, || core.tree_name(self.tree)))?;
        if !fits {
            return Err(malformed());
        }
        if undo.before_flags & DELETED != 0 {
            // Purge may have met the entry while it was live and passed on.
            core.revisit(self.tree, &self.key, undo.before_word);
        }
        Ok(modified.record().is_some())
    }
}

/// Undoes the newest changes of `trx` until `count` are left. `keeps_locks`: see invariant 3.
pub(crate) fn undo_to(trx: &mut EngineTransaction, count: u64, keeps_locks: bool) -> Result<()> {
    let mut step = UndoStep::default();
    while trx.trx.undo_count() > count {
        let Some(position) = trx.trx.newest_undo() else { break };
        step.undo_next = position.undo_next;
        let mut held_before = None;
        trx.core.txn.undo().read(position.word, |record| {
            step.tree = record.tree();
            step.kind = Some(record.kind());
            let was_live =
                record.kind() != UndoKind::Insert && record.before_flags() & DELETED == 0;
            held_before = was_live.then(|| record.before_word());
            step.key.clear();
            step.key.extend_from_slice(record.key());
            step.logged.clear();
            LoggedUndo {
                word: position.word,
                before_word: record.before_word(),
                before_flags: record.before_flags(),
                before: record.before(),
            }
            .encode(&mut step.logged);
        });
        let tree = trx.core.tree(step.tree)?.undoing();
        if let Some(before) = held_before.filter(|_| keeps_locks)
            && trx.core.is_clustered(step.tree)
            && trx.trx.word_state(before) != WordState::Own
        {
            trx.trx.keep_locked(step.tree, &step.key).map_err(from_lock)?;
        }
        let id = trx.trx.id();
        let applied = loop {
            match step.apply(&trx.core, &tree, id, &mut trx.buffers.record) {
                // Half a rollback helps nobody: it goes on when space has returned.
                Err(EngineError::DiskFull) => {
                    base::probe!("engine.rollback_waits_for_space");
                    runtime::sleep(SPACE_PAUSE);
                }
                applied => break applied?,
            }
        };
        if !applied {
            return Err(EngineError::Corrupt {
                object: trx.core.tree_name(step.tree),
                detail: "an entry changed by a running transaction is not there".to_owned(),
            });
        }
        trx.trx.undone();
        runtime::yield_if_due();
    }
    Ok(())
}
