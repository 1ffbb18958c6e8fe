//! Changing one entry of a tree: versions, locks and conflicts are decided under its latch.
//!
//! 1. An entry whose word belongs to another active transaction is not touched: the caller waits
//!    and tries again.
//! 2. The undo record is complete before the entry names it, and counts only once the change is
//!    in the log.
//! 3. A deleted entry keeps its payload: the version before needs only its flags.
//! 4. Whether a gap or an entry is locked is asked in every run of the closure: the latch may have
//!    been let go in between.

use crate::error::{from_tree, from_undo};
use crate::transaction::EngineTransaction;
use base::difference::Kept;
use base::{Lsn, TrxId};
use btree::{Change, DELETED, LogPart, Tree};
use engine_api::{EngineError, Result};
use txn::{BeforeImage, LoggedUndo, NewUndo, Transaction, UndoFull, WordState};
use wal::{LogicalUndo, RecordKind, UndoKind};

/// What is to be done to an entry.
#[derive(Clone, Copy)]
pub(crate) enum Intent<'a> {
    /// A new live entry, perhaps over a deleted one.
    Insert(&'a [u8]),
    /// Another payload for a live entry.
    Update(&'a [u8]),
    /// Insert or update, whichever applies.
    Put(&'a [u8]),
    /// The deleted mark.
    Delete,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Done.
    Done,
    /// A live entry is there (insert).
    Exists,
    /// There is no live entry (update, delete).
    Missing,
    /// Another transaction, still active, has changed the entry.
    Busy(TrxId),
    /// The entry changed after the snapshot given.
    Conflict,
    /// Another transaction has locked the gap that the key belongs to.
    GapLocked,
    /// Another transaction has locked the entry (of a secondary index).
    EntryLocked,
}

/// Remembers the undo record between two runs of the closure.
#[derive(Default)]
struct Pending {
    /// Before word and flags of the entry (`None`: no entry), and the record's word.
    made: Option<(Option<(u64, u8)>, u64)>,
    deletes: bool,
}

struct Step<'a> {
    trx: &'a mut Transaction,
    logical: &'a mut Vec<u8>,
    tree: base::TreeId,
    key: &'a [u8],
    intent: Intent<'a>,
    snapshot: Option<Lsn>,
    pending: &'a mut Pending,
}

impl Step<'_> {
    /// Whether locks of gaps, or of entries of a secondary index, keep the change out. Such locks
    /// are there only in watched trees.
    fn refused(&self, is_live: bool) -> Option<Written> {
        if !self.trx.is_watched(self.tree) {
            return None;
        }
        match self.intent {
            Intent::Insert(_) | Intent::Put(_) if !is_live => {
                let admitted = self.trx.may_insert(self.tree, self.key);
                (!admitted).then_some(Written::GapLocked)
            }
            Intent::Delete if self.trx.is_locked_by_other(self.tree, self.key) => {
                Some(Written::EntryLocked)
            }
            _ => None,
        }
    }

    /// The closure of `Tree::modify`.
    fn decide(&mut self, change: &mut Change<'_>) -> std::result::Result<Written, UndoFull> {
        let intent = self.intent;
        let present = change.entry().map(|entry| (entry.word, entry.flags));
        let is_live = present.is_some_and(|(_, flags)| flags & DELETED == 0);
        if let Some((word, _)) = present {
            match self.trx.word_state(word) {
                WordState::Active(other) => return Ok(Written::Busy(other)),
                WordState::Committed(at) if self.snapshot.is_some_and(|limit| at > limit) => {
                    // A duplicate is told as such whenever it was committed.
                    let duplicate = is_live && matches!(intent, Intent::Insert(_));
                    return Ok(if duplicate { Written::Exists } else { Written::Conflict });
                }
                _ => {}
            }
        }
        match intent {
            Intent::Insert(_) if is_live => return Ok(Written::Exists),
            Intent::Update(_) | Intent::Delete if !is_live => return Ok(Written::Missing),
            _ => {}
        }
        if let Some(refused) = self.refused(is_live) {
            return Ok(refused);
        }
        let (word, kept) = self.undo_word(change, present)?;
        let (kind, trx) = (RecordKind::Change, self.trx.id());
        let log = LogPart { kind, trx, logical: self.logical };
        match (intent, present) {
            (Intent::Delete, Some((_, flags))) => change.set_header(flags | DELETED, word, log),
            (Intent::Insert(payload) | Intent::Put(payload), None) => {
                change.insert(0, word, payload, log);
            }
            (Intent::Insert(payload) | Intent::Update(payload) | Intent::Put(payload), Some(_)) => {
                change.replace_keeping((0, word), payload, kept, log);
            }
            (Intent::Delete | Intent::Update(_), None) => return Ok(Written::Missing),
        }
        Ok(Written::Done)
    }

    /// Makes the undo record, once, and the logical part of the log record. Returns the record's
    /// word and what the new payload has in common with the present one.
    fn undo_word(
        &mut self,
        change: &Change<'_>,
        present: Option<(u64, u8)>,
    ) -> std::result::Result<(u64, Option<Kept>), UndoFull> {
        let entry = change.entry();
        let mut kept = None;
        let (kind, before) = match (self.intent, &entry) {
            (_, None) => (UndoKind::Insert, BeforeImage::Same),
            (Intent::Delete, Some(_)) => (UndoKind::DeleteMark, BeforeImage::Same),
            (Intent::Insert(new) | Intent::Update(new) | Intent::Put(new), Some(entry)) => {
                let common = *kept.insert(Kept::between(entry.payload, new));
                (UndoKind::Update, BeforeImage::keeping(entry.payload, new.len(), common))
            }
        };
        let (before_word, before_flags) = present.unwrap_or((0, 0));
        let (tree, key) = (self.tree, change.key());
        let new = NewUndo { tree, kind, key, before_flags, before_word, before };
        let word = match self.pending.made {
            Some((same, word)) if same == present => word,
            _ => self.trx.add_undo(&new)?,
        };
        self.pending.made = Some((present, word));
        self.pending.deletes = kind == UndoKind::DeleteMark;
        self.logical.clear();
        let prev_lsn = self.trx.last_lsn();
        LogicalUndo { tree: tree.get(), kind, prev_lsn, key, before: &[] }.encode(self.logical);
        LoggedUndo { word, before_word, before_flags, before }.encode(self.logical);
        Ok((word, kept))
    }
}

/// Changes the entry of `key`. `snapshot` makes changes committed after it a conflict.
pub(crate) fn write_entry(
    trx: &mut EngineTransaction,
    tree: &Tree,
    key: &[u8],
    intent: Intent<'_>,
    snapshot: Option<Lsn>,
) -> Result<Written> {
    let mut pending = Pending::default();
    let mut outcome = Ok(Written::Missing);
    let EngineTransaction { trx: inner, buffers, core, unpaid_log_bytes, logged_bytes, .. } = trx;
    let buffers = &mut **buffers;
    let modified = {
        let logical = &mut buffers.logical;
        let (tree_id, pending) = (tree.id(), &mut pending);
        let mut step = Step { trx: inner, logical, tree: tree_id, key, intent, snapshot, pending };
        let mut decide = |change: &mut Change<'_>| outcome = step.decide(change);
        tree.modify_near(key, &mut buffers.record, &mut buffers.leaf, &mut decide)
    };
    let modified = modified.map_err(|error| from_tree(error, || core.tree_name(tree.id())))?;
    let outcome = outcome.map_err(from_undo)?;
    match (modified.record(), pending.made) {
        (Some(record), Some((_, word))) => {
            let record_bytes = record.end.get() - record.start.get();
            *unpaid_log_bytes += record_bytes;
            *logged_bytes += record_bytes;
            inner.changed(word, record, pending.deletes);
        }
        (None, _) if outcome == Written::Done => {
            return Err(EngineError::Failed("a change was decided but not made".to_owned()));
        }
        _ => {}
    }
    Ok(outcome)
}
