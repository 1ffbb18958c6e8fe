//! CHECK TABLE: structure of the trees, and agreement of the indexes.
//!
//! A row has one key in an index, so the visible entries must be the keys of the rows. Both are
//! read in the order in which they lie, and compared are their numbers and sums of hashes
//! ([`KeySum`]): looking up the row of every entry would read a table larger than memory once for
//! each of its rows. That is done only where the sums differ, to say which entry is wrong.

use crate::scan::EngineCursor;
use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use engine_api::{
    Cursor, FlushPolicy, Isolation, KeyRange, LockMode, LockWait, Result, RowBuffer, ScanDirection,
    ScanOptions, TableFinding, TransactionOptions,
};
use std::hash::{DefaultHasher, Hasher};
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

    /// Compares the rows with the entries of every secondary index.
    pub(crate) fn check_agreement(
        self: &Arc<Self>,
        findings: &mut Vec<TableFinding>,
    ) -> Result<()> {
        let mut trx = EngineTransaction::new(self.core.clone(), reading());
        trx.trx.snapshot();
        let mut sums = vec![KeySum::default(); self.trees.len()];
        let mut cursor = self.scan_all(&mut trx, 0);
        let (mut row, mut key) = (RowBuffer::default(), Vec::new());
        while cursor.next(&mut trx, &mut row)? {
            if let Err(error) = self.keys.verify(&row.key, &row.payload) {
                let detail = format!("row at key {:02x?}: {error}", row.key);
                findings.push(TableFinding { object: self.object(0), detail });
                if findings.len() < FINDINGS_MAX {
                    continue;
                }
                return Ok(());
            }
            for (position, sum) in sums.iter_mut().enumerate().skip(1) {
                self.keys.secondary_key(position, &row, &mut key)?;
                sum.add(&key);
            }
        }
        if findings.is_empty() {
            for (position, sum) in sums.into_iter().enumerate().skip(1) {
                self.check_secondary(&mut trx, position, sum, findings)?;
            }
        }
        Ok(())
    }

    /// `rows` is what the rows' keys add up to.
    fn check_secondary(
        self: &Arc<Self>,
        trx: &mut EngineTransaction,
        position: usize,
        rows: KeySum,
        findings: &mut Vec<TableFinding>,
    ) -> Result<()> {
        let unique = self.definition.indexes[position].unique;
        let mut report = |detail: String| {
            if findings.len() < FINDINGS_MAX {
                findings.push(TableFinding { object: self.object(position), detail });
            }
        };
        let (mut entry, mut last) = (RowBuffer::default(), Vec::new());
        let mut entries = KeySum::default();
        let mut cursor = self.scan_all(trx, position);
        while cursor.next(trx, &mut entry)? {
            entries.add(&entry.key);
            if !unique {
                continue;
            }
            let split = self.keys.split(position, &entry.key)?;
            let own = &entry.key[..split.own_bytes];
            if !split.has_null && last == own {
                report(format!("two entries with the unique value {own:02x?}"));
            }
            last.clear();
            last.extend_from_slice(own);
        }
        if entries != rows {
            self.find_wrong_entries(trx, position, &mut report)?;
            report(format!("the {} entries are not those of {} rows", entries.count, rows.count));
        }
        Ok(())
    }

    /// Looks up the row of every entry.
    fn find_wrong_entries(
        self: &Arc<Self>,
        trx: &mut EngineTransaction,
        position: usize,
        report: &mut dyn FnMut(String),
    ) -> Result<()> {
        let (mut entry, mut row) = (RowBuffer::default(), RowBuffer::default());
        let mut expected = Vec::new();
        let mut cursor = self.scan_all(trx, position);
        while cursor.next(trx, &mut entry)? {
            let mut clustered = std::mem::take(&mut row.key);
            self.keys.clustered_key(position, &entry.key, &mut clustered)?;
            let found = self.read_plain(trx, &clustered, &mut row);
            row.key = clustered;
            if !found? {
                report(format!("entry {:02x?} has no row", entry.key));
                continue;
            }
            self.keys.secondary_key(position, &row, &mut expected)?;
            if expected != entry.key {
                report(format!("entry {:02x?} differs from its row's key", entry.key));
            }
        }
        Ok(())
    }
}

/// Keys in any order: how many, and the sum of their hashes. Those of others have the same sum by a
/// chance of one in 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeySum {
    count: u64,
    hashes: u64,
}

impl KeySum {
    fn add(&mut self, key: &[u8]) {
        let mut hasher = DefaultHasher::new();
        hasher.write(key);
        self.count += 1;
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }
}
