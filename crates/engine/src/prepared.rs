//! Transactions in two phases: the prepare record, and what a recovery does with it.
//!
//! Logical part of a prepare record: `version u8 (1) | name (the rest)`.
//!
//! 1. When the prepare record is durable, so is every change of the transaction; from then on only
//!    its own commit or rollback ends it, in this run or a later one.
//! 2. A recovery makes the undo of a prepared transaction anew (`txn`): its changes stay in their
//!    entries, invisible, and keep their rows locked. Explicit locks, of reads and of gaps, are
//!    gone, as in InnoDB.
//! 3. The log is kept from the transaction's first change as for any that runs, so a later
//!    recovery finds the same again.

use crate::analysis::Analysis;
use crate::core::Core;
use crate::error::from_txn;
use crate::losers::{LogRange, Window};
use crate::recovery::OpenError;
use crate::rollback::UndoStep;
use crate::transaction::EngineTransaction;
use base::{Lsn, TrxId};
use engine_api::{
    EngineError, FlushPolicy, Isolation, PreparedTransaction, Result, TransactionOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use txn::{RecoveredChange, Transaction};
use wal::RecordKind;

const VERSION: u8 = 1;

/// The logical part of a prepare record.
fn encode_name(name: &[u8]) -> Vec<u8> {
    [&[VERSION], name].concat()
}

/// The name in the logical part of a prepare record.
pub(crate) fn name_of(logical: &[u8]) -> Option<&[u8]> {
    logical.split_first().filter(|(version, _)| **version == VERSION).map(|(_, name)| name)
}

impl EngineTransaction {
    /// A transaction that was prepared when the server stopped.
    pub(crate) fn continued(
        core: Arc<Core>,
        trx: Transaction,
        options: TransactionOptions,
    ) -> Self {
        let mut this = Self::new(core, options);
        this.trx = trx;
        this.is_prepared = true;
        this
    }

    /// See [`engine_api::Transaction::prepare`].
    pub(crate) fn prepare_now(&mut self, name: &[u8]) -> Result<()> {
        self.refuse_when_half_undone()?;
        if !self.steps.is_empty() {
            return Err(EngineError::Unsupported("XA PREPARE of changed definitions"));
        }
        self.trx.close_snapshot();
        if self.trx.header() == 0 {
            return self.trx.wait_met_durable().map_err(|error| from_txn(&error));
        }
        let record = &mut self.buffers.record;
        record.reset(RecordKind::Prepare, TrxId::ZERO);
        record.logical(&encode_name(name));
        let end = self.trx.prepare(record).map_err(|error| from_txn(&error))?;
        self.is_prepared = true;
        let waited = self.core.wal.wait_durable(end);
        waited.map_err(|error| EngineError::Failed(error.to_string()))
    }
}

/// Takes the prepared transactions out of the losers and continues them.
pub(crate) fn continue_all(
    core: &Arc<Core>,
    log: &LogRange<'_>,
    analysis: &mut Analysis,
) -> std::result::Result<Vec<PreparedTransaction>, OpenError> {
    let names = std::mem::take(&mut analysis.prepared);
    let Some(&begin) = analysis.marks.first().filter(|_| !names.is_empty()) else {
        return Ok(Vec::new());
    };
    base::probe!("engine.prepared_continued");
    let newest: BTreeMap<TrxId, Lsn> =
        names.keys().map(|trx| (*trx, analysis.losers.remove(trx).unwrap_or(Lsn::ZERO))).collect();
    let window = Window::read(log, begin..log.end, &newest)?;
    let mut continued = Vec::new();
    for (trx, name) in names {
        let changes = changes_of(&window, trx, newest[&trx])?;
        let first = changes.first().map_or(log.end, |change| change.start);
        let damaged = || OpenError::Damaged(format!("a change of prepared transaction {trx}"));
        let inner = core.txn.continue_prepared(trx, first, &changes);
        let inner = inner.map_err(|error| OpenError::Damaged(error.to_string()))?;
        let mut trees: Vec<_> = changes.iter().map(|change| change.tree).collect();
        trees.sort_unstable();
        trees.dedup();
        let inner = inner.ok_or_else(damaged)?;
        let transaction = EngineTransaction::continued(core.clone(), inner, options());
        continued.push(PreparedTransaction { name, transaction: Box::new(transaction), trees });
    }
    Ok(continued)
}

/// What is left of them is a commit or a rollback.
fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::RepeatableRead,
        snapshot_isolation: false,
        read_only: false,
        lock_wait_timeout: Duration::from_secs(50),
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    }
}

/// The changes that were not undone, oldest first.
fn changes_of(
    window: &Window,
    trx: TrxId,
    newest: Lsn,
) -> std::result::Result<Vec<RecoveredChange>, OpenError> {
    let (mut changes, mut step, mut at) = (Vec::new(), UndoStep::default(), newest);
    while at != Lsn::ZERO {
        window.step(trx, at, &mut step)?;
        let (Some(kind), previous) = (step.kind, step.undo_next) else { break };
        if previous >= at {
            return Err(OpenError::Damaged(format!("change at {at} names a later one")));
        }
        changes.push(RecoveredChange {
            start: at,
            previous,
            tree: step.tree,
            kind,
            key: step.key.clone(),
            logged: step.logged.clone(),
        });
        at = previous;
    }
    changes.reverse();
    Ok(changes)
}
