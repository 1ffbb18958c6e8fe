//! The transaction system: identifiers, commit order, snapshots, what may be forgotten.
//!
//! ```text
//! active --commit: [latch: append record, header = LSN, latest = LSN]--> committed
//!        --rollback: undo applied, [latch: append, header = aborted, latest = LSN]--> aborted
//! committed: locks released, followers woken, THEN the log is waited for
//! ```
//!
//! 1. `latest` only grows, and every commit at or below it is published in its header: both are
//!    stored under the commit latch in the order of the log.
//! 2. Nothing parks under the commit latch; room in the log is promised before.
//! 3. A rollback ends with a timestamp too, so that undo that a reader may still look through is
//!    kept until the readers from before are gone.

use crate::chunk::UndoFull;
use crate::lock::LockTable;
use crate::owner::{Label, Owner};
use crate::slots::Slots;
use crate::transaction::Transaction;
use crate::undo::{Chunks, UndoSpace};
use base::{Lsn, TreeId, TrxId};
use hashbrown::HashMap;
use runtime::sync::Mutex;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::{Claim, RecordBuilder, RecordKind, UndoKind, Wal, WalError};

/// Why a transaction cannot go on.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TxnError {
    /// The log refused.
    #[error(transparent)]
    Log(#[from] WalError),
    /// No memory for undo.
    #[error(transparent)]
    Undo(#[from] UndoFull),
}

/// How a system starts.
#[derive(Clone, Debug)]
pub struct TxnOptions {
    /// Workers of the runtime: one undo arena each.
    pub workers: usize,
    /// Size of an undo chunk in bytes, a power of two.
    pub undo_chunk_bytes: usize,
    /// Memory for undo in bytes; what is more goes to files.
    pub undo_budget_bytes: u64,
    /// Memory for the locks of transactions that hold many, bytes.
    pub lock_memory_bytes: u64,
    /// Directory of those files; none: undo is limited to the memory.
    pub undo_directory: Option<PathBuf>,
    /// Above the offset of every word of former runs.
    pub undo_base: u64,
    /// First transaction id to give out.
    pub first_id: TrxId,
    /// Timestamp below which everything is committed and visible: the end of the recovered log.
    pub start: Lsn,
}

/// A committed transaction that left delete marks for purge.
#[derive(Debug)]
pub struct PurgeBatch {
    /// Commit timestamp.
    pub timestamp: Lsn,
    /// Its newest undo record; follow [`crate::UndoRecord::previous_of_transaction`].
    pub last_undo: u64,
    chunks: Chunks,
}

/// A change that a prepared transaction of a former run has made.
#[derive(Clone, Debug)]
pub struct RecoveredChange {
    /// Start of its log record.
    pub start: Lsn,
    /// Start of the log record of the transaction's change before; zero for the first.
    pub previous: Lsn,
    /// Tree of the entry.
    pub tree: TreeId,
    /// What was done.
    pub kind: UndoKind,
    /// Key of the entry.
    pub key: Vec<u8>,
    /// `LoggedUndo` as it stands in the log.
    pub logged: Vec<u8>,
}

const ACTIVE_SHARDS: usize = 32;

/// Spreads ids, which are given out in order: a multiplication is enough.
#[derive(Clone, Copy, Default)]
struct IdHasher(u64);

impl std::hash::Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}

type IdMap<T> = HashMap<u64, T, std::hash::BuildHasherDefault<IdHasher>>;
type ActiveShard = Mutex<IdMap<Arc<Owner>>>;

/// All transactions of an engine.
pub struct TransactionSystem {
    pub(crate) wal: Arc<Wal>,
    pub(crate) undo: UndoSpace,
    pub(crate) locks: LockTable,
    pub(crate) slots: Slots,
    active: Box<[ActiveShard]>,
    next_id: AtomicU64,
    latest: AtomicU64,
    commit_latch: Mutex<()>,
    purge_queue: Mutex<VecDeque<PurgeBatch>>,
}

impl std::fmt::Debug for TransactionSystem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TransactionSystem(latest {})", self.latest())
    }
}

impl TransactionSystem {
    /// A system without transactions.
    pub fn new(wal: Arc<Wal>, options: &TxnOptions) -> Arc<Self> {
        let active = (0..ACTIVE_SHARDS).map(|_| Mutex::new(IdMap::default())).collect();
        Arc::new(Self {
            wal,
            undo: UndoSpace::new(
                options.workers,
                options.undo_chunk_bytes,
                options.undo_budget_bytes,
                options.undo_directory.clone(),
                options.undo_base,
            ),
            locks: LockTable::new(options.lock_memory_bytes),
            slots: Slots::new(),
            active,
            next_id: AtomicU64::new(options.first_id.get().max(1)),
            latest: AtomicU64::new(options.start.get()),
            commit_latch: Mutex::new(()),
            purge_queue: Mutex::new(VecDeque::new()),
        })
    }

    /// Begins a transaction.
    pub fn begin(self: &Arc<Self>) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Continues a transaction that was prepared when the server stopped, from its changes,
    /// oldest first. Called before anybody reads. `None` when a change is malformed.
    pub fn continue_prepared(
        self: &Arc<Self>,
        id: TrxId,
        first_lsn: Lsn,
        changes: &[RecoveredChange],
    ) -> Result<Option<Transaction>, UndoFull> {
        let owner = Owner::new(id.get(), Label::default());
        self.shard(id.get()).lock().insert(id.get(), owner.clone());
        Transaction::continued(self.clone(), owner, first_lsn, changes)
    }

    /// Where versions live.
    pub fn undo(&self) -> &UndoSpace {
        &self.undo
    }

    /// Explicit row locks.
    pub fn locks(&self) -> &LockTable {
        &self.locks
    }

    /// The latest timestamp published.
    pub fn latest(&self) -> Lsn {
        Lsn::new(self.latest.load(Ordering::Acquire))
    }

    pub(crate) fn latest_cell(&self) -> &AtomicU64 {
        &self.latest
    }

    /// The next transaction id; every id given out is below.
    pub fn next_id(&self) -> TrxId {
        TrxId::new(self.next_id.load(Ordering::SeqCst))
    }

    pub(crate) fn register(&self, label: Label) -> Arc<Owner> {
        let owner = Owner::new(self.next_id.fetch_add(1, Ordering::SeqCst), label);
        self.shard(owner.number()).lock().insert(owner.number(), owner.clone());
        owner
    }

    fn shard(&self, id: u64) -> &ActiveShard {
        &self.active[id as usize % ACTIVE_SHARDS]
    }

    pub(crate) fn unregister(&self, owner: &Owner) {
        self.shard(owner.number()).lock().remove(&owner.number());
        owner.end();
    }

    pub(crate) fn owner(&self, id: TrxId) -> Option<Arc<Owner>> {
        self.shard(id.get()).lock().get(&id.get()).cloned()
    }

    /// Transactions that have locked or written and not ended, by number.
    pub(crate) fn owners(&self) -> Vec<Arc<Owner>> {
        let mut owners = Vec::new();
        self.active.iter().for_each(|shard| owners.extend(shard.lock().values().cloned()));
        owners.sort_by_key(|owner| owner.number());
        owners
    }

    /// Appends the last record of a transaction and publishes its end (invariants 1 and 2).
    pub(crate) fn publish_end(&self, header: u64, record: &RecordBuilder) -> Result<Lsn, TxnError> {
        let committed = record.kind() == RecordKind::Commit;
        let bytes = record.stream_len();
        let permit = match committed {
            true => self.wal.admit_as(Claim::Undo, bytes)?,
            false => self.wal.admit_internal(bytes)?,
        };
        if base::mutant!("publish_without_latch") {
            let timestamp = self.wal.append(&permit, record).end;
            runtime::yield_now();
            self.undo.publish(header, committed.then_some(timestamp));
            self.latest.fetch_max(timestamp.get(), Ordering::SeqCst);
            return Ok(timestamp);
        }
        let _latch = self.commit_latch.lock();
        let timestamp = self.wal.append(&permit, record).end;
        self.undo.publish(header, committed.then_some(timestamp));
        self.latest.store(timestamp.get(), Ordering::SeqCst);
        Ok(timestamp)
    }

    pub(crate) fn queue_purge(&self, timestamp: Lsn, last_undo: u64, chunks: Chunks) {
        let batch = PurgeBatch { timestamp, last_undo, chunks };
        let mut queue = self.purge_queue.lock();
        // Commits of different workers may arrive out of order by a little.
        let place = queue.iter().rposition(|other| other.timestamp < timestamp);
        queue.insert(place.map_or(0, |place| place + 1), batch);
    }

    /// No reader, present or to come, needs versions that ended at or below this, and the log is
    /// durable up to it (room invariant 3).
    pub fn forget_limit(&self) -> Lsn {
        let floor = self.slots.oldest_floor(&self.latest);
        if base::mutant!("freeze_above_durable") { floor } else { floor.min(self.wal.durable()) }
    }

    /// The oldest committed transaction with delete marks, if they may be removed.
    pub fn next_purge(&self, limit: Lsn) -> Option<PurgeBatch> {
        let mut queue = self.purge_queue.lock();
        if queue.front()?.timestamp > limit {
            return None;
        }
        queue.pop_front()
    }

    /// The marks of a batch have been dealt with: its undo may go.
    pub fn purged(&self, mut batch: PurgeBatch) {
        self.undo.release(&mut batch.chunks, batch.timestamp);
    }

    /// Committed transactions that wait for purge (the history list length).
    pub fn purge_length(&self) -> usize {
        self.purge_queue.lock().len()
    }

    /// Retires undo that nobody needs; returns the number of chunks.
    pub fn retire_undo(&self) -> usize {
        self.undo.retire(self.forget_limit())
    }

    /// No transaction that runs now has a log record before this.
    pub fn oldest_active_lsn(&self) -> Lsn {
        let limit = self.wal.end();
        self.slots.oldest_first_lsn(limit)
    }

    /// Transactions that have written and not ended.
    pub fn active_writers(&self) -> usize {
        self.slots.writers()
    }
}
