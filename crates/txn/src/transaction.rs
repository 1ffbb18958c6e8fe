//! One transaction.

use crate::chunk::UndoFull;
use crate::image::NewUndo;
use crate::lock::{HeldLocks, WatchedTrees};
use crate::owner::{Label, Owner};
use crate::slots::SLOTS;
use crate::system::{TransactionSystem, TxnError};
use crate::undo::Chunks;
use crate::version::{Reader, Seen, WordState};
use base::{Lsn, TrxId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::{LsnRange, RecordBuilder, RecordKind, Wal};

mod locks;

/// Slots above are given back by transactions that wait for their next use.
const KEPT_SLOTS: u32 = SLOTS as u32 / 2;

/// A transaction. It must be ended by [`Transaction::commit`] or, after its changes were undone,
/// [`Transaction::end_rollback`]; dropping one that has changes is a broken invariant.
pub struct Transaction {
    pub(crate) system: Arc<TransactionSystem>,
    pub(crate) owner: Option<Arc<Owner>>,
    slot: Option<u32>,
    has_floor: bool,
    snapshot: Option<Lsn>,
    pub(crate) header: u64,
    pub(crate) last_undo: u64,
    last_lsn: Lsn,
    undo_count: u64,
    pub(crate) chunks: Chunks,
    held: HeldLocks,
    watched: WatchedTrees,
    /// Highest commit timestamp met; shared with [`ReadGate`]s, written only here.
    met: Arc<AtomicU64>,
    has_delete_marks: bool,
    label: Label,
}

/// The newest undo record of a transaction, to be undone next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoPosition {
    /// Its word.
    pub word: u64,
    /// Start of the log record of the change before; what a compensation record names.
    pub undo_next: Lsn,
}

/// Holds back what a transaction has read until it is durable (room invariant 3).
#[derive(Debug)]
pub struct ReadGate {
    met: Arc<AtomicU64>,
    wal: Arc<Wal>,
}

impl ReadGate {
    /// Parks until everything that the transaction has met up to now is durable; a comparison of
    /// two numbers when it is. Not cancellable.
    pub fn wait_durable(&self) -> Result<(), TxnError> {
        if base::mutant!("answer_before_durable") {
            return Ok(());
        }
        wait_durable(&self.wal, Lsn::new(self.met.load(Ordering::Acquire)))
    }
}

fn wait_durable(wal: &Wal, met: Lsn) -> Result<(), TxnError> {
    if met > wal.durable() {
        base::probe!("txn.read_waits_for_log");
        wal.wait_durable(met)?;
    }
    Ok(())
}

impl std::fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Transaction({}, {} changes)", self.id(), self.undo_count)
    }
}

impl Transaction {
    pub(crate) fn new(system: Arc<TransactionSystem>) -> Self {
        Self {
            system,
            owner: None,
            slot: None,
            has_floor: false,
            snapshot: None,
            header: 0,
            last_undo: 0,
            last_lsn: Lsn::ZERO,
            undo_count: 0,
            chunks: Chunks::new(),
            held: HeldLocks::new(),
            watched: WatchedTrees::new(),
            met: Arc::new(AtomicU64::new(0)),
            has_delete_marks: false,
            label: Label::default(),
        }
    }

    /// Says whose it is, before it has locked or written anything.
    pub fn set_label(&mut self, label: Label) {
        self.label = label;
    }

    /// The system it belongs to.
    pub fn system(&self) -> &Arc<TransactionSystem> {
        &self.system
    }

    /// Id; zero until it has written or locked.
    pub fn id(&self) -> TrxId {
        self.owner.as_ref().map_or(TrxId::ZERO, |owner| TrxId::new(owner.number()))
    }

    /// Address of its header; 0 until it has written.
    pub fn header(&self) -> u64 {
        self.header
    }

    /// Changes made and not undone.
    pub fn undo_count(&self) -> u64 {
        self.undo_count
    }

    pub(crate) fn slot(&mut self) -> u32 {
        *self.slot.get_or_insert_with(|| self.system.slots.take())
    }

    fn owner(&mut self) -> &Arc<Owner> {
        self.owner.get_or_insert_with(|| self.system.register(self.label))
    }

    /// Makes sure that undo which ends from now on is kept for this transaction's reads. Called
    /// at the start of every read that takes no snapshot.
    #[inline]
    pub fn protect_reads(&mut self) {
        if !self.has_floor {
            let slot = self.slot();
            self.system.slots.set_floor(slot, self.system.latest_cell());
            self.has_floor = true;
        }
    }

    /// The snapshot, taken now if there is none.
    #[inline]
    pub fn snapshot(&mut self) -> Lsn {
        match self.snapshot {
            Some(snapshot) => snapshot,
            None => self.take_snapshot(),
        }
    }

    fn take_snapshot(&mut self) -> Lsn {
        let slot = self.slot();
        let snapshot = self.system.slots.set_floor(slot, self.system.latest_cell());
        self.has_floor = true;
        self.snapshot = Some(snapshot);
        snapshot
    }

    /// The snapshot, if one was taken.
    pub fn open_snapshot(&self) -> Option<Lsn> {
        self.snapshot
    }

    /// Drops the snapshot and the protection of reads (a statement ends at READ COMMITTED).
    pub fn close_snapshot(&mut self) {
        self.snapshot = None;
        if let Some(slot) = self.slot
            && self.has_floor
        {
            self.system.slots.clear_floor(slot);
            self.has_floor = false;
        }
    }

    /// Drops the protection taken by [`Transaction::protect_reads`] unless a snapshot needs it.
    pub fn end_protection(&mut self) {
        if self.snapshot.is_none() {
            self.close_snapshot();
        }
    }

    /// How this transaction reads from its snapshot.
    #[inline]
    pub fn reader(&mut self) -> Reader {
        Reader { snapshot: self.snapshot(), own_header: self.header, uncommitted: false }
    }

    /// How this transaction reads what is newest: all commits, and with `uncommitted` more.
    #[inline]
    pub fn newest_reader(&mut self, uncommitted: bool) -> Reader {
        self.protect_reads();
        Reader { snapshot: Lsn::MAX, own_header: self.header, uncommitted }
    }

    /// See [`crate::UndoSpace::version`]; remembers the timestamps met.
    #[inline]
    pub fn version(
        &mut self,
        reader: &Reader,
        (flags, word, payload): (u8, u64, &[u8]),
        older: &mut Vec<u8>,
    ) -> Seen {
        // Most rows were there before the server was started: everybody sees them.
        if self.system.undo.is_of_earlier_run(word) {
            return Seen::Current;
        }
        let mut met = Lsn::ZERO;
        let seen = self.system.undo.version(reader, flags, word, payload, older, &mut met);
        if met > Lsn::ZERO {
            self.meet(met);
        }
        seen
    }

    /// Who wrote `word`; a commit is remembered as met.
    #[inline]
    pub fn word_state(&mut self, word: u64) -> WordState {
        let state = self.system.undo.word_state(word, self.header);
        if let WordState::Committed(at) = state {
            self.meet(at);
        }
        state
    }

    /// A commit was met. Nobody else writes the cell, so no read-modify-write is needed.
    #[inline]
    fn meet(&mut self, at: Lsn) {
        if at.get() > self.met.load(Ordering::Relaxed) {
            self.met.store(at.get(), Ordering::Release);
        }
    }

    /// Highest commit timestamp met: what must be durable before an answer leaves.
    pub fn met(&self) -> Lsn {
        Lsn::new(self.met.load(Ordering::Relaxed))
    }

    /// The transaction has ended, and what its end had to wait for has been waited for: the value
    /// serves again and has met nothing yet.
    pub fn forget_met(&mut self) {
        base::invariant!(self.header == 0, "a transaction with changes commits or rolls back");
        self.met.store(0, Ordering::Release);
    }

    /// Parks until everything met is durable. Not cancellable.
    pub fn wait_met_durable(&self) -> Result<(), TxnError> {
        wait_durable(&self.system.wal, self.met())
    }

    /// What parts of an answer pass through that leave while the statement still reads.
    pub fn read_gate(&self) -> ReadGate {
        ReadGate { met: self.met.clone(), wal: self.system.wal.clone() }
    }

    /// Prepares for changes: id, first log position, header, room for undo. Call before latching.
    pub fn prepare_write(&mut self) -> Result<(), UndoFull> {
        self.system.undo.reserve()?;
        if self.header == 0 {
            let id = self.owner().number();
            let slot = self.slot();
            self.system.slots.set_first_lsn(slot, self.system.wal.end());
            self.header = self.system.undo.add_header(id, &mut self.chunks)?;
        }
        Ok(())
    }

    /// Writes an undo record and returns its word. Nothing parks. The record counts only after
    /// [`Transaction::changed`]; one that is never linked is garbage until the end.
    pub fn add_undo(&mut self, new: &NewUndo<'_>) -> Result<u64, UndoFull> {
        base::invariant!(self.header != 0, "prepare_write comes before changes");
        self.system.undo.add(self.header, self.last_undo, self.last_lsn, new, &mut self.chunks)
    }

    /// Start of the log record of the newest change, which the next one names.
    pub fn last_lsn(&self) -> Lsn {
        self.last_lsn
    }

    /// The change with this word is in its tree and in the log.
    pub fn changed(&mut self, word: u64, record: LsnRange, delete_mark: bool) {
        self.last_undo = word;
        self.last_lsn = record.start;
        self.undo_count += 1;
        self.has_delete_marks |= delete_mark;
        self.owner().add_change();
    }

    /// What is to be undone next, `None` when nothing is left.
    pub fn newest_undo(&self) -> Option<UndoPosition> {
        (self.undo_count > 0).then(|| UndoPosition {
            word: self.last_undo,
            undo_next: self
                .system
                .undo
                .read(self.last_undo, |record| record.previous_lsn())
                .expect("an active transaction keeps its undo"),
        })
    }

    /// The newest change has been undone in its tree.
    pub fn undone(&mut self) {
        let undo = &self.system.undo;
        let before = undo.read(self.last_undo, |record| {
            (record.previous_of_transaction(), record.previous_lsn())
        });
        let (last_undo, last_lsn) = before.expect("an active transaction keeps its undo");
        undo.mark_dead(self.last_undo);
        (self.last_undo, self.last_lsn) = (last_undo, last_lsn);
        self.undo_count -= 1;
        self.owner().take_change_back();
    }

    /// Commits: appends `record` (kind Commit), publishes, releases locks. Durability is the
    /// caller's next step. On an error the transaction is as before.
    pub fn commit(&mut self, record: &mut RecordBuilder) -> Result<Option<Lsn>, TxnError> {
        if self.header == 0 {
            self.leave(None);
            return Ok(None);
        }
        base::invariant!(record.kind() == RecordKind::Commit, "a commit needs its record");
        record.set_trx(self.id());
        if base::mutant!("release_before_commit_record")
            && let Some(owner) = &self.owner
        {
            self.system.locks.release_all(owner, &mut self.held);
            self.system.undo.publish(self.header, Some(self.system.latest()));
            runtime::yield_now();
        }
        let timestamp = self.system.publish_end(self.header, record)?;
        self.meet(timestamp);
        if self.has_delete_marks && self.undo_count > 0 {
            let chunks = std::mem::take(&mut self.chunks);
            self.system.queue_purge(timestamp, self.last_undo, chunks);
        }
        self.leave(Some(timestamp));
        Ok(Some(timestamp))
    }

    /// Ends a transaction that has changed nothing; the value is as a new one.
    pub fn end_unchanged(&mut self) {
        base::invariant!(self.header == 0, "a transaction with changes commits or rolls back");
        // The slot serves again, so that the list of free ones is not fought for.
        if self.owner.is_none() && self.slot.is_some_and(|slot| slot < KEPT_SLOTS) {
            self.close_snapshot();
        } else {
            self.leave(None);
        }
    }

    /// Ends a rollback after everything was undone.
    pub fn end_rollback(&mut self, record: &mut RecordBuilder) -> Result<(), TxnError> {
        base::invariant!(self.undo_count == 0, "a rollback ends when everything is undone");
        if self.header == 0 {
            self.leave(None);
            return Ok(());
        }
        record.reset(RecordKind::Abort, self.id());
        let timestamp = self.system.publish_end(self.header, record)?;
        self.leave(Some(timestamp));
        Ok(())
    }

    fn leave(&mut self, timestamp: Option<Lsn>) {
        if let Some(timestamp) = timestamp {
            self.system.undo.release(&mut self.chunks, timestamp);
        }
        if let Some(owner) = self.owner.take() {
            self.system.locks.release_all(&owner, &mut self.held);
            if !self.watched.is_empty() {
                self.system.locks.gaps.release_all(&owner, &mut self.watched);
            }
            self.system.unregister(&owner);
        }
        if let Some(slot) = self.slot.take() {
            self.system.slots.give_back(slot);
        }
        self.has_floor = false;
        self.snapshot = None;
        self.header = 0;
        self.last_undo = 0;
        self.last_lsn = Lsn::ZERO;
        self.undo_count = 0;
        self.has_delete_marks = false;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // While a panic unwinds nothing may be locked; what is left keeps readers correct.
        if std::thread::panicking() {
            return;
        }
        if self.header == 0 {
            self.leave(None);
        } else {
            // The engine rolls back before it drops. What remains keeps its locks and its undo:
            // readers stay correct, recovery will undo it.
            base::probe!("txn.dropped_with_changes");
        }
    }
}
