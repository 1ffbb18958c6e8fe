//! Removing rows whose deletion everybody sees, and forgetting undo nobody needs.
//!
//! 1. A delete mark is removed when its commit is at or below both the oldest snapshot and the
//!    durable log, and the entry still carries the word of that deletion.
//! 2. The queue of commits is lost at a restart: readers that meet a deleted entry whose undo is
//!    gone queue it again, and a sweep over all trees meets those that nobody reads.
//! 3. A batch's undo is released after its marks were dealt with.

use crate::core::Core;
use crate::error::from_log;
use base::{TreeId, TrxId};
use btree::{Batch, Change, DELETED, Direction, LogPart};
use engine_api::{EngineError, Result};
use runtime::sync::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::Duration;
use txn::{PurgeBatch, WordState};
use wal::{RecordBuilder, RecordKind, UndoKind};

/// Deleted entries remembered at most; further ones wait for the next visitor.
const REVISITS_MAX: usize = 4096;
/// Bytes of a leaf that the sweep copies at a time.
const SWEEP_BYTES: usize = 64 << 10;
/// Undo records of one batch between two looks at the memory of undo.
const UNDO_PAUSE: u32 = 4096;
/// Between two attempts on a full disk.
const SPACE_PAUSE: Duration = Duration::from_millis(50);

static PURGED: base::metrics::Counter =
    base::metrics::Counter::new("purged_entries", "deleted entries removed from trees");

/// A deleted entry to look at.
#[derive(Debug)]
struct Visit {
    tree: TreeId,
    key: Vec<u8>,
    word: u64,
}

/// Deleted entries that no queued commit leads to.
#[derive(Debug, Default)]
pub(crate) struct Revisits(Mutex<VecDeque<Visit>>);

impl Revisits {
    pub(crate) fn push(&self, tree: TreeId, key: &[u8], word: u64) {
        let mut queue = self.0.lock();
        let known = queue.back().is_some_and(|last| last.tree == tree && last.key == key);
        if queue.len() < REVISITS_MAX && !known {
            queue.push_back(Visit { tree, key: key.to_vec(), word });
        }
    }

    fn pop(&self) -> Option<Visit> {
        self.0.lock().pop_front()
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Half of the places are left to visitors.
    fn is_half_full(&self) -> bool {
        self.len() >= REVISITS_MAX / 2
    }
}

/// Entries of a leaf looked at by the sweep at a time.
const SWEEP_ENTRIES: usize = 1024;

/// Whether deleted entries are known that are still in their trees.
pub(crate) fn is_pending(core: &Core) -> bool {
    core.txn.purge_length() > 0 || core.revisits.len() > 0
}

/// Removes everything that can be removed before a shutdown, for `limit` at most: what is left
/// costs the next start a sweep.
pub(crate) fn finish(core: &Core, limit: Duration) -> Result<()> {
    let deadline = runtime::now() + limit;
    while is_pending(core) && runtime::now() < deadline {
        core.wal.wait_durable(core.wal.end()).map_err(|error| from_log(&error))?;
        if round(core)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Looks at every entry of every tree once, slowly, for deleted ones that a former run has left.
pub(crate) fn sweep(core: &Core) {
    let mut batch = Batch::new();
    for tree in core.tree_ids() {
        let Ok(tree) = core.tree(tree) else { continue };
        let mut cursor = tree.cursor(Direction::Forward);
        cursor.leave_values();
        // A damaged or dropped tree is left to those who read it.
        while let Ok(true) = cursor.next_batch(&mut batch, SWEEP_ENTRIES, SWEEP_BYTES) {
            for item in batch.iter() {
                core.visit_deleted(tree.id(), item.key, item.entry.flags, item.entry.word);
            }
            runtime::sleep(core.options.sweep_pause);
            while core.revisits.is_half_full() && !core.is_stopping() {
                runtime::sleep(core.options.purge_interval);
            }
            if core.is_stopping() {
                return;
            }
        }
    }
    core.sweep_pending.store(false, Ordering::Relaxed);
    base::probe!("engine.purge.swept");
}

/// One round over everything that may be removed now; returns the number of entries removed.
pub(crate) fn round(core: &Core) -> Result<u64> {
    let _alone = core.purging.lock();
    let mut removed = Removed::default();
    let outcome = remove_all(core, &mut removed);
    core.thinning.note(&removed.by_tree);
    PURGED.add(removed.sum);
    outcome.map(|()| removed.sum)
}

/// Entries that a round has removed.
#[derive(Default)]
struct Removed {
    sum: u64,
    by_tree: BTreeMap<TreeId, u64>,
}

impl Removed {
    fn add(&mut self, tree: TreeId) {
        self.sum += 1;
        *self.by_tree.entry(tree).or_default() += 1;
    }
}

fn remove_all(core: &Core, removed: &mut Removed) -> Result<()> {
    let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
    let limit = core.txn.forget_limit();
    while let Some(batch) = core.txn.next_purge(limit) {
        let result = purge_batch(core, &batch, &mut record, removed);
        core.txn.purged(batch);
        result?;
        runtime::yield_if_due();
    }
    for _ in 0..core.revisits.len() {
        let Some(visit) = core.revisits.pop() else { break };
        if core.txn.undo().word_state(visit.word, 0) == WordState::Frozen
            && remove(core, visit.tree, &visit.key, visit.word, &mut record)?
        {
            removed.add(visit.tree);
        }
        runtime::yield_if_due();
    }
    core.txn.retire_undo();
    Ok(())
}

fn purge_batch(
    core: &Core,
    batch: &PurgeBatch,
    record: &mut RecordBuilder,
    removed: &mut Removed,
) -> Result<()> {
    let mut word = batch.last_undo;
    let (mut key, mut steps) = (Vec::new(), 0u32);
    while word != 0 {
        steps += 1;
        if steps.is_multiple_of(UNDO_PAUSE) {
            // What was read of a long chain need not stay in memory.
            core.txn.retire_undo();
        }
        let step = core.txn.undo().read(word, |undo| {
            let marks = undo.kind() == UndoKind::DeleteMark;
            key.clear();
            if marks {
                key.extend_from_slice(undo.key());
            }
            (marks.then(|| undo.tree()), undo.previous_of_transaction())
        });
        let Some((tree, previous)) = step else { break };
        if let Some(tree) = tree
            && remove(core, tree, &key, word, record)?
        {
            removed.add(tree);
        }
        word = previous;
        runtime::yield_if_due();
    }
    Ok(())
}

/// Removes an entry if it is still deleted by the change with this word.
fn remove(
    core: &Core,
    tree: TreeId,
    key: &[u8],
    word: u64,
    record: &mut RecordBuilder,
) -> Result<bool> {
    // A tree that is gone took its entries along.
    let Ok(tree) = core.tree(tree) else { return Ok(false) };
    let log = LogPart { kind: RecordKind::Structure, trx: TrxId::ZERO, logical: &[] };
    let removed = loop {
        let mut modify = || {
            tree.modify(key, record, &mut |change: &mut Change<'_>| {
                let marked = change
                    .entry()
                    .is_some_and(|entry| entry.flags & DELETED != 0 && entry.word == word);
                if marked {
                    change.remove(log);
                }
            })
            .map_err(|error| crate::error::from_tree(error, || core.tree_name(tree.id())))
        };
        let removed = core.refuse_what_cannot_be_undone(0).and_then(|()| modify());
        // What gives space back waits for space: a batch passed over would stay in its tree.
        match removed {
            Err(EngineError::DiskFull) if !core.is_stopping() => {
                base::probe!("engine.purge.waits_for_space");
                runtime::sleep(SPACE_PAUSE);
            }
            removed => break removed,
        }
    };
    match removed {
        Ok(removed) => Ok(removed.record().is_some()),
        // Damage of one tree must not stop the purge of the others; one that is being dropped may
        // look damaged.
        Err(EngineError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
