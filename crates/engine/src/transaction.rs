//! A transaction of the engine: its versions and locks (`txn`), its buffers, its table changes.
//!
//! ```text
//! begin -> (statements) -> commit: record appended, published, locks gone -> durable -> trees of
//!                                  dropped tables given back -> Ok
//!                       -> rollback: changes undone newest first, each with a compensation record
//! ```
//!
//! 1. A deadlock, a write conflict, a full table of locks and, if the engine is told so, a timeout
//!    of a lock wait roll the whole transaction back before the error is returned;
//!    the value can be used on as a fresh transaction with the same options.
//! 2. Undoing runs under a cancel token of its own: KILL does not leave half a rollback.
//! 3. A transaction of which something was to be undone and could not be (a page cannot be read)
//!    is never committed: it takes no more changes, its commit rolls back and fails, and it reads
//!    nothing either, as it would see its own changes in a state that no statement has left.
//! 4. A prepared transaction that is dropped stays as it is, for a later run.
//! 5. Trees created are dropped when their creation is undone; trees dropped go away only after
//!    the commit is durable.

use crate::buffers::BufferLease;
use crate::core::Core;
use crate::error::{from_lock, from_txn, from_undo};
use base::{Lsn, TableId, TreeId, TrxId};
use engine_api::{
    EngineError, Isolation, LockWait, ReadGate, Result, Savepoint, Transaction as ApiTransaction,
    TransactionOptions,
};
use pagestore::Compression;
use runtime::CancelToken;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use txn::{LockError, Reader, Transaction, WaitRule};
use wal::{FlushPolicy, RecordKind};

/// Version of the logical part of commit records:
/// `version u8 | flags u8 (0) | microseconds since 1970 i64 | extensions (none)`.
const COMMIT_VERSION: u8 = 1;

/// A transaction that has logged so much pays for it before its end (see `slow_down`).
const PAID_AT_ONCE_BYTES: u64 = 64 << 10;
/// What a commit record and its padding count for there.
const COMMIT_BYTES: u64 = 512;

/// What a transaction does to trees as wholes.
pub(crate) enum TreeStep {
    /// Created at this point; dropped when that is undone.
    Created { at: u64, tree: TreeId },
    /// To be dropped after the commit.
    Dropped { at: u64, tree: TreeId },
    /// The table's counters go after the commit.
    Forgotten { at: u64, table: TableId },
    /// Pages are compressed in this way after the commit.
    Compressed { at: u64, tree: TreeId, compression: Compression },
}

impl TreeStep {
    fn at(&self) -> u64 {
        match self {
            Self::Created { at, .. }
            | Self::Dropped { at, .. }
            | Self::Forgotten { at, .. }
            | Self::Compressed { at, .. } => *at,
        }
    }
}

/// See the head of the file.
pub(crate) struct EngineTransaction {
    pub(crate) core: Arc<Core>,
    pub(crate) trx: Transaction,
    pub(crate) options: TransactionOptions,
    pub(crate) buffers: BufferLease,
    /// Made at the first use.
    gate: Option<Arc<dyn ReadGate>>,
    pub(crate) steps: Vec<TreeStep>,
    /// The last row lock was new to the transaction: `unlock_row` may give it back.
    pub(crate) last_lock_is_new: bool,
    /// Locking reads are of what is there now (`read_present`).
    present: bool,
    /// Plain reads of this statement lock shared.
    locks_plain_reads: bool,
    /// What this statement does not find is nobody's concern when it ends: it looks for one row,
    /// and the transaction ends with it.
    pub(crate) forgets_absence: bool,
    /// Duplicates that this statement meets are locked exclusively.
    pub(crate) expects_duplicates: bool,
    /// A row lock was waited for: entries read before are out of date.
    pub(crate) has_waited: bool,
    finished: bool,
    /// Undoing has begun and not come to its end (invariant 3).
    is_half_undone: bool,
    /// Nobody but its commit or rollback ends it (invariant 4).
    pub(crate) is_prepared: bool,
    /// Bytes logged for which it has not been slowed down yet.
    pub(crate) unpaid_log_bytes: u64,
    /// Bytes logged by its changes.
    pub(crate) logged_bytes: u64,
}

/// The engine's own type behind the border's trait object.
pub(crate) fn own(trx: &mut dyn ApiTransaction) -> &mut EngineTransaction {
    trx.as_any_mut().downcast_mut().expect("an engine is given its own transactions")
}

impl EngineTransaction {
    pub(crate) fn new(core: Arc<Core>, options: TransactionOptions) -> Self {
        let mut trx = core.txn.begin();
        trx.set_label(crate::report::label(&options));
        let buffers = BufferLease::new(core.take_buffers());
        Self {
            core,
            trx,
            options,
            buffers,
            gate: None,
            steps: Vec::new(),
            last_lock_is_new: false,
            present: false,
            locks_plain_reads: false,
            forgets_absence: false,
            expects_duplicates: false,
            has_waited: false,
            finished: false,
            is_half_undone: false,
            is_prepared: false,
            unpaid_log_bytes: 0,
            logged_bytes: 0,
        }
    }

    /// How plain reads read at this isolation level.
    #[inline]
    pub(crate) fn reader(&mut self) -> Reader {
        match self.options.isolation {
            Isolation::ReadUncommitted => self.trx.newest_reader(true),
            _ => self.trx.reader(),
        }
    }

    /// Until when a lock may be waited for.
    pub(crate) fn wait_rule(&self) -> WaitRule {
        WaitRule::Until(runtime::now() + self.options.lock_wait_timeout)
    }

    /// How long a locking read of this kind may wait.
    pub(crate) fn wait_rule_of(&self, wait: LockWait) -> WaitRule {
        match wait {
            LockWait::Wait => self.wait_rule(),
            LockWait::Seconds(seconds) => {
                WaitRule::Until(runtime::now() + Duration::from_secs(seconds.into()))
            }
            LockWait::NoWait | LockWait::SkipLocked => WaitRule::Never,
        }
    }

    /// Whether plain reads take shared locks.
    #[inline]
    pub(crate) fn plain_reads_lock(&self) -> bool {
        self.options.isolation == Isolation::Serializable || self.locks_plain_reads
    }

    /// Whether what this transaction reads under locks is kept from growing, too.
    #[inline]
    pub(crate) fn locks_gaps(&self) -> bool {
        matches!(self.options.isolation, Isolation::RepeatableRead | Isolation::Serializable)
    }

    /// The snapshot that rows about to be changed must not be newer than, if there is one.
    pub(crate) fn conflict_snapshot(&self) -> Option<Lsn> {
        let checks = self.options.snapshot_isolation
            && self.options.isolation == Isolation::RepeatableRead
            && !self.present;
        self.trx.open_snapshot().filter(|_| checks)
    }

    /// Between two statements: what was read is not read again, except from a snapshot that lasts.
    fn forget_statement(&mut self) {
        match self.options.isolation {
            Isolation::RepeatableRead => self.trx.end_protection(),
            _ => self.trx.close_snapshot(),
        }
    }

    /// Called before every change.
    pub(crate) fn prepare_write(&mut self) -> Result<()> {
        if self.options.read_only {
            return Err(EngineError::Unsupported("changes in a read only transaction"));
        }
        self.core.refuse_when_stopping()?;
        self.refuse_when_half_undone()?;
        if self.unpaid_log_bytes >= PAID_AT_ONCE_BYTES {
            self.slow_down();
        }
        self.trx.protect_reads();
        self.trx.prepare_write().map_err(from_undo)
    }

    /// Passes a lock error on; some roll everything back first (invariant 1).
    pub(crate) fn locked<T>(&mut self, result: std::result::Result<T, LockError>) -> Result<T> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.lock_failed(error)),
        }
    }

    #[cold]
    fn lock_failed(&mut self, error: LockError) -> EngineError {
        let told = match error {
            LockError::Timeout | LockError::Unavailable
                if self.core.options.rollback_on_timeout =>
            {
                EngineError::TimedOutAndRolledBack
            }
            other => from_lock(other),
        };
        if !told.has_ended_transaction() {
            return told;
        }
        self.roll_back_all().err().unwrap_or(told)
    }

    /// The row has changed since the snapshot: rolls everything back and says so.
    pub(crate) fn write_conflict(&mut self) -> EngineError {
        base::probe!("engine.write_conflict");
        match self.roll_back_all() {
            Ok(()) => EngineError::WriteConflict,
            Err(error) => error,
        }
    }

    pub(crate) fn refuse_when_half_undone(&self) -> Result<()> {
        if self.is_half_undone { Err(EngineError::HalfUndone) } else { Ok(()) }
    }

    /// Undoes changes until `count` are left. `keeps_locks`: the transaction goes on, and the rows
    /// stay locked.
    pub(crate) fn undo_to(&mut self, count: u64, keeps_locks: bool) -> Result<()> {
        self.refuse_when_half_undone()?;
        self.undo_at_last(count, keeps_locks)
    }

    /// As [`Self::undo_to`], also where undoing has failed before.
    fn undo_at_last(&mut self, count: u64, keeps_locks: bool) -> Result<()> {
        self.is_half_undone = true;
        if self.trx.undo_count() > count {
            let token = CancelToken::new();
            let undo = || crate::rollback::undo_to(self, count, keeps_locks);
            runtime::with_cancel(&token, undo)?;
        }
        while self.steps.last().is_some_and(|step| step.at() >= count) {
            if let Some(TreeStep::Created { tree, .. }) = self.steps.pop() {
                self.core.drop_tree(tree);
            }
        }
        self.is_half_undone = false;
        Ok(())
    }

    /// As [`Self::undo_to`], keeping only the first `steps` of those that are left.
    pub(crate) fn undo_to_step(&mut self, count: u64, steps: usize) -> Result<()> {
        let kept: Vec<_> = self.steps.drain(..steps.min(self.steps.len())).collect();
        let undone = self.undo_to(count, true);
        self.steps.splice(0..0, kept);
        undone
    }

    fn roll_back_all(&mut self) -> Result<()> {
        // Steps carry the number of changes before them, so zero undoes all of them.
        self.undo_at_last(0, false)?;
        self.logged_bytes = 0;
        self.trx.end_rollback(&mut self.buffers.record).map_err(|error| from_txn(&error))
    }

    fn commit_now(&mut self) -> Result<()> {
        if let Err(error) = self.refuse_when_half_undone() {
            self.roll_back_all()?;
            return Err(error);
        }
        let record = &mut self.buffers.record;
        record.reset(RecordKind::Commit, TrxId::ZERO);
        record.logical(&[COMMIT_VERSION, 0]);
        record.logical(&runtime::wall_clock_micros().to_le_bytes());
        let begun = runtime::now();
        match self.trx.commit(record) {
            Ok(None) => self.trx.wait_met_durable().map_err(|error| from_txn(&error)),
            Ok(Some(timestamp)) if self.steps.is_empty() => {
                self.wait_for_log(timestamp)?;
                self.core.wal.count_commit(begun);
                self.slow_down();
                Ok(())
            }
            Ok(Some(timestamp)) => {
                let waited = self.core.wal.wait_durable(timestamp);
                waited.map_err(|error| EngineError::Failed(error.to_string()))?;
                self.finish_steps();
                Ok(())
            }
            // Prepared it stays, and may be tried again.
            Err(error) if self.is_prepared => Err(from_txn(&error)),
            Err(error) => {
                self.roll_back_all()?;
                Err(from_txn(&error))
            }
        }
    }

    /// Waits as the transaction's policy says. The log's own policy follows the laxer ones, so
    /// that its once-a-second sync runs; a synchronous commit does not depend on it.
    fn wait_for_log(&self, timestamp: Lsn) -> Result<()> {
        let wal = &self.core.wal;
        let policy = match self.options.flush_policy {
            engine_api::FlushPolicy::Synchronous => FlushPolicy::EveryCommit,
            engine_api::FlushPolicy::EverySecond => FlushPolicy::EverySecond,
            engine_api::FlushPolicy::WriteOnly => FlushPolicy::WriteEveryCommit,
        };
        let waited = if policy == FlushPolicy::EveryCommit {
            wal.wait_durable(timestamp)
        } else {
            if wal.policy() != policy {
                wal.set_policy(policy);
            }
            wal.wait_commit(timestamp)
        };
        waited.map_err(|error| EngineError::Failed(error.to_string()))
    }

    /// While pages are written more slowly than they are changed, or more garbage is made than is
    /// collected, who changes them waits a little, by what he has logged: at the commit, after it
    /// let go of everything, and in transactions that log much between two changes.
    fn slow_down(&mut self) {
        let logged = std::mem::take(&mut self.unpaid_log_bytes) + COMMIT_BYTES;
        let delay = self.core.store.throttle_delay(logged).max(self.core.store.collection_delay());
        if !delay.is_zero() {
            base::probe!("engine.commit_slowed_down");
            runtime::sleep(delay);
        }
    }

    /// The commit is durable: dropped trees are forgotten and give their space back in the
    /// background. What a crash cuts off is found again as an orphan by the next start.
    fn finish_steps(&mut self) {
        for step in std::mem::take(&mut self.steps) {
            match step {
                TreeStep::Created { .. } => {}
                TreeStep::Dropped { tree, .. } => self.core.drop_tree(tree),
                TreeStep::Forgotten { table, .. } => self.core.counters.forget(table),
                TreeStep::Compressed { tree, compression, .. } => {
                    self.core.store.set_compression(tree, compression);
                }
            }
        }
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        // While a panic unwinds nothing may wait or lock; recovery is the repair.
        if std::thread::panicking() {
            return;
        }
        if !self.finished && !self.is_prepared && self.roll_back_all().is_err() {
            base::probe!("engine.rollback_at_drop_failed");
        }
        if let Some(buffers) = self.buffers.end() {
            self.core.give_back_buffers(buffers);
        }
    }
}

struct Gate(txn::ReadGate);

impl ReadGate for Gate {
    fn wait_durable(&self) -> Result<()> {
        self.0.wait_durable().map_err(|error| from_txn(&error))
    }
}

impl ApiTransaction for EngineTransaction {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn id(&self) -> TrxId {
        if self.trx.header() == 0 { TrxId::ZERO } else { self.trx.id() }
    }

    fn has_written(&self) -> bool {
        self.trx.undo_count() > 0 || !self.steps.is_empty()
    }

    fn open_snapshot(&mut self) {
        self.trx.snapshot();
    }

    fn begin_statement(&mut self) -> Savepoint {
        self.forget_statement();
        self.locks_plain_reads = false;
        self.forgets_absence = false;
        self.expects_duplicates = false;
        self.savepoint()
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.trx.undo_count())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.undo_to(savepoint.0, true)
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.finished = true;
        self.commit_now()
    }

    fn prepare(&mut self, name: &[u8]) -> Result<()> {
        self.prepare_now(name)
    }

    fn end_unchanged(&mut self) -> Result<bool> {
        if self.trx.header() != 0 || !self.steps.is_empty() || self.is_half_undone {
            return Ok(false);
        }
        self.trx.wait_met_durable().map_err(|error| from_txn(&error))?;
        self.trx.end_unchanged();
        self.buffers.trim();
        Ok(true)
    }

    fn commit_and_keep(&mut self) -> Result<bool> {
        // After an error nothing is to be rolled back by the drop.
        self.finished = true;
        self.commit_now()?;
        self.finished = false;
        self.is_prepared = false;
        self.last_lock_is_new = false;
        self.trx.forget_met();
        self.buffers.trim();
        Ok(true)
    }

    fn set_options(&mut self, options: TransactionOptions) {
        self.trx.set_label(crate::report::label(&options));
        self.options = options;
    }

    fn rollback(mut self: Box<Self>) -> Result<()> {
        self.finished = true;
        self.roll_back_all()?;
        if !self.is_prepared || base::mutant!("prepared_rollback_not_durable") {
            return Ok(());
        }
        // Who is told that it is gone must not find it again.
        let waited = self.core.wal.wait_durable(self.core.wal.end());
        waited.map_err(|error| EngineError::Failed(error.to_string()))
    }

    fn wait_read_durable(&mut self) -> Result<()> {
        // An idle session keeps no more of the past than its level asks for (amendment 15).
        self.forget_statement();
        self.trx.wait_met_durable().map_err(|error| from_txn(&error))
    }

    fn read_gate(&mut self) -> Arc<dyn ReadGate> {
        let trx = &self.trx;
        self.gate.get_or_insert_with(|| Arc::new(Gate(trx.read_gate()))).clone()
    }

    fn lock_plain_reads(&mut self) {
        let options = &self.options;
        self.locks_plain_reads =
            options.isolation == Isolation::RepeatableRead && !options.snapshot_isolation;
    }

    fn read_one_key(&mut self) {
        self.forgets_absence = self.options.ends_with_statement;
    }

    fn expect_duplicates(&mut self) {
        self.expects_duplicates = true;
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.options.lock_wait_timeout = timeout;
    }

    fn read_present(&mut self, on: bool) {
        self.present = on;
    }
}
