//! CHECK TABLE: structure of the trees, and agreement of the indexes.
//!
//! Every visible secondary entry must lead to a row whose key it is, and there must be as many
//! entries as rows. As a row has one key in an index, the two together mean that entries and rows
//! correspond one to one.

use crate::scan::EngineCursor;
use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use engine_api::{
    Cursor, FlushPolicy, Isolation, KeyRange, LockMode, LockWait, Result, RowBuffer, ScanDirection,
    ScanOptions, TableFinding, TransactionOptions,
};
use std::sync::Arc;
use std::time::Duration;

/// Findings of one kind reported at most.
const FINDINGS_MAX: usize = 100;
/// A finding about the structure counts when it is seen so many times in a row.
const ATTEMPTS: usize = 3;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(20);

fn reading() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::RepeatableRead,
        snapshot_isolation: true,
        read_only: true,
        lock_wait_timeout: Duration::from_secs(1),
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    }
}

impl TableParts {
    fn scan_all(self: &Arc<Self>, trx: &mut EngineTransaction, index: usize) -> EngineCursor {
        let options = ScanOptions {
            index,
            range: KeyRange::all(),
            direction: ScanDirection::Forward,
            lock: LockMode::None,
            lock_wait: LockWait::Wait,
            covering: index != 0,
        };
        EngineCursor::new(self.clone(), trx, options)
    }

    /// Checks everything; findings are sentences for the user.
    pub(crate) fn check_table(self: &Arc<Self>) -> Result<Vec<TableFinding>> {
        let mut findings = Vec::new();
        for position in 0..self.trees.len() {
            self.check_structure(position, &mut findings);
        }
        if findings.is_empty() {
            self.check_agreement(&mut findings)?;
        }
        Ok(findings)
    }

    /// Verifies one tree. A change in progress may look like damage, so what is found must be
    /// found again.
    fn check_structure(&self, position: usize, findings: &mut Vec<TableFinding>) {
        let _no_purge = self.core.purging.lock();
        let mut seen: Vec<String> = Vec::new();
        for attempt in 0..ATTEMPTS {
            let details = match self.trees[position].verify() {
                Ok(found) => found
                    .findings
                    .into_iter()
                    .map(|finding| format!("page {}: {}", finding.pid, finding.detail))
                    .collect(),
                Err(error) => vec![error.to_string()],
            };
            if attempt > 0 {
                seen.retain(|detail| details.contains(detail));
            } else {
                seen = details;
            }
            if seen.is_empty() {
                return;
            }
            runtime::sleep(ATTEMPT_PAUSE);
        }
        let object = self.object(position);
        findings
            .extend(seen.into_iter().map(|detail| TableFinding { object: object.clone(), detail }));
    }

    fn check_agreement(self: &Arc<Self>, findings: &mut Vec<TableFinding>) -> Result<()> {
        let mut trx = EngineTransaction::new(self.core.clone(), reading());
        trx.trx.snapshot();
        let mut rows = 0u64;
        let mut cursor = self.scan_all(&mut trx, 0);
        let mut row = RowBuffer::default();
        while cursor.next(&mut trx, &mut row)? {
            rows += 1;
            if let Err(error) = self.keys.verify(&row.key, &row.payload)
                && findings.len() < FINDINGS_MAX
            {
                let detail = format!("row at key {:02x?}: {error}", row.key);
                findings.push(TableFinding { object: self.object(0), detail });
            }
        }
        for position in 1..self.trees.len() {
            self.check_secondary(&mut trx, position, rows, findings)?;
        }
        Ok(())
    }

    fn check_secondary(
        self: &Arc<Self>,
        trx: &mut EngineTransaction,
        position: usize,
        rows: u64,
        findings: &mut Vec<TableFinding>,
    ) -> Result<()> {
        let unique = self.definition.indexes[position].unique;
        let mut report = |detail: String| {
            if findings.len() < FINDINGS_MAX {
                findings.push(TableFinding { object: self.object(position), detail });
            }
        };
        let (mut entry, mut row) = (RowBuffer::default(), RowBuffer::default());
        let (mut expected, mut last) = (Vec::new(), Vec::new());
        let mut entries = 0u64;
        let mut cursor = self.scan_all(trx, position);
        while cursor.next(trx, &mut entry)? {
            entries += 1;
            let split = self.keys.split(position, &entry.key)?;
            let own = &entry.key[..split.own_bytes];
            if unique && !split.has_null && last == own {
                report(format!("two entries with the unique value {own:02x?}"));
            }
            last.clear();
            last.extend_from_slice(own);
            row.key.clear();
            row.key.extend_from_slice(&entry.key[split.own_bytes..]);
            if !self.read_plain(trx, &entry.key[split.own_bytes..], &mut row)? {
                report(format!("entry {:02x?} has no row", entry.key));
                continue;
            }
            self.keys.secondary_key(position, &row, &mut expected)?;
            if expected != entry.key {
                report(format!("entry {:02x?} differs from its row's key", entry.key));
            }
        }
        if entries != rows {
            report(format!("{entries} entries for {rows} rows"));
        }
        Ok(())
    }
}
