//! Estimates in the dictionary.
//!
//! ```text
//! key   = 0 | 's' | table id u64 BE
//! value = version u8 (1) | rows u64 | data bytes u64 | index bytes u64
//!         | index count u16 | indexes | column count u16 (0: not sampled) | rows u64 | columns
//! index = tree u32 | part count u16 | different values u64 for each number of leading parts
//! column: see `engine_api::ColumnStatistics::encode`
//! ```
//! All integers little-endian except in the key. A record that cannot be read says nothing: the
//! table is sampled.

use super::{KeptColumns, KeptStatistics, SMALL_ROWS};
use crate::core::Core;
use crate::dictionary;
use crate::shape::{ENGINE_PREFIX, shape_key};
use crate::table::TableParts;
use crate::transaction::EngineTransaction;
use base::{TableId, TreeId};
use engine_api::{
    ColumnStatistics, FlushPolicy, Isolation, Result, Statistics, Transaction, TransactionOptions,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const VERSION: u8 = 1;
/// Longest record: estimates about columns that would make it longer are not kept.
const RECORD_BYTES_MAX: usize = 64 << 10;

fn key(table: TableId) -> Vec<u8> {
    let mut key = vec![ENGINE_PREFIX, b's'];
    key.extend_from_slice(&table.get().to_be_bytes());
    key
}

fn transaction(core: &Arc<Core>, read_only: bool) -> EngineTransaction {
    let options = TransactionOptions {
        isolation: Isolation::ReadCommitted,
        snapshot_isolation: false,
        read_only,
        lock_wait_timeout: Duration::from_secs(1),
        flush_policy: FlushPolicy::EverySecond,
        connection: 0,
        ends_with_statement: false,
    };
    EngineTransaction::new(core.clone(), options)
}

/// The table is dropped: so is its record, in the same transaction.
pub(crate) fn forget(trx: &mut EngineTransaction, table: TableId) -> Result<()> {
    dictionary::set(trx, &key(table), None)
}

/// Takes over what a former run has kept of a table.
pub(super) fn load(table: &TableParts) {
    let mut trx = transaction(&table.core, true);
    let found = dictionary::get(&mut trx, &key(table.definition.id));
    // Nothing was changed; the transaction ends with it.
    let ended = Box::new(trx).rollback();
    let (Ok(Some(record)), Ok(())) = (found, ended) else { return };
    let Some((statistics, columns)) = decode(&record) else { return };
    if !table.has_trees(&statistics.trees) {
        return;
    }
    let fits = |it: &KeptColumns| it.columns.len() == table.definition.columns.len();
    let estimates = &table.counters.estimates;
    *estimates.columns.lock() = columns.filter(fits);
    *estimates.statistics.lock() = Some(statistics);
}

/// Keeps the estimates of a table if the dictionary does not have them. What fails is tried again
/// when they are made anew.
pub(super) fn save(table: &TableParts) {
    let estimates = &table.counters.estimates;
    if !estimates.is_unsaved.swap(false, Ordering::Relaxed) {
        return;
    }
    let statistics = estimates.statistics.lock().clone();
    let Some(statistics) = statistics.filter(|it| it.statistics.rows >= SMALL_ROWS) else { return };
    let columns = estimates.columns.lock().clone();
    let record = encode(&statistics, columns.as_ref());
    if put(table, &record).is_err() {
        base::probe!("engine.statistics.not_saved");
    }
}

fn put(table: &TableParts, record: &[u8]) -> Result<()> {
    let mut trx = transaction(&table.core, false);
    // Who drops the table locks the same key: either sees what the other did.
    let id = table.definition.id;
    let is_there = dictionary::set(&mut trx, &key(id), Some(record))
        .and_then(|()| dictionary::get(&mut trx, &shape_key(id)));
    match is_there {
        Ok(Some(_)) => Box::new(trx).commit(),
        Ok(None) => Box::new(trx).rollback(),
        Err(error) => {
            Box::new(trx).rollback()?;
            Err(error)
        }
    }
}

/// Keeps what is not kept yet: before a shutdown.
pub(crate) fn save_all(core: &Core) {
    for counters in core.counters.all() {
        let table = counters.estimates.open.lock().upgrade();
        if let Some(table) = table {
            save(&table);
        }
    }
}

fn encode(kept: &KeptStatistics, columns: Option<&KeptColumns>) -> Vec<u8> {
    let mut out = vec![VERSION];
    let own = &kept.statistics;
    for number in [own.rows, own.data_bytes, own.index_bytes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&(kept.trees.len() as u16).to_le_bytes());
    for (tree, distinct) in kept.trees.iter().zip(&own.distinct) {
        out.extend_from_slice(&tree.get().to_le_bytes());
        out.extend_from_slice(&(distinct.len() as u16).to_le_bytes());
        distinct.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }
    let end = out.len();
    if let Some(columns) = columns {
        out.extend_from_slice(&(columns.columns.len() as u16).to_le_bytes());
        out.extend_from_slice(&columns.rows.to_le_bytes());
        columns.columns.iter().for_each(|column| column.encode(&mut out));
    }
    if columns.is_none() || out.len() > RECORD_BYTES_MAX {
        out.truncate(end);
        out.extend_from_slice(&[0; 10]);
    }
    out
}

/// The next `N` bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn decode(record: &[u8]) -> Option<(KeptStatistics, Option<KeptColumns>)> {
    let mut rest = record;
    if take::<1>(&mut rest)? != [VERSION] {
        return None;
    }
    let mut number = || take(&mut rest).map(u64::from_le_bytes);
    let (rows, data_bytes, index_bytes) = (number()?, number()?, number()?);
    let (mut trees, mut distinct) = (Vec::new(), Vec::new());
    for _ in 0..u16::from_le_bytes(take(&mut rest)?) {
        trees.push(TreeId::new(u32::from_le_bytes(take(&mut rest)?)));
        let parts = u16::from_le_bytes(take(&mut rest)?);
        let parts = (0..parts).map(|_| take(&mut rest).map(u64::from_le_bytes));
        distinct.push(parts.collect::<Option<Vec<u64>>>()?);
    }
    let count = u16::from_le_bytes(take(&mut rest)?);
    let sampled = u64::from_le_bytes(take(&mut rest)?);
    let columns = (0..count).map(|_| ColumnStatistics::decode(&mut rest).map(Arc::new));
    let columns: Arc<[Arc<ColumnStatistics>]> = columns.collect::<Option<_>>()?;
    let kept = KeptStatistics {
        changes: 0,
        trees: trees.into(),
        is_of_former_run: true,
        counts_deleted: false,
        statistics: Statistics { rows, data_bytes, index_bytes, distinct },
    };
    let columns = (count > 0).then_some(KeptColumns { changes: 0, rows: sampled, columns });
    rest.is_empty().then_some((kept, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_cut_ones_say_nothing() {
        let values = (0..300u32).map(|n| (Box::from((n % 90).to_be_bytes()), n / 50)).collect();
        let column = Arc::new(ColumnStatistics::of_sample(values, 20, 3200.0));
        let statistics = Statistics {
            rows: 3200,
            data_bytes: 8192,
            index_bytes: 77,
            distinct: vec![vec![3200], vec![90, 3200]],
        };
        let kept = KeptStatistics {
            changes: 5,
            trees: [TreeId::new(17), TreeId::new(18)].into(),
            is_of_former_run: false,
            counts_deleted: true,
            statistics: statistics.clone(),
        };
        let columns = KeptColumns { changes: 5, rows: 320, columns: [column.clone()].into() };
        let record = encode(&kept, Some(&columns));
        let (read, read_columns) = decode(&record).unwrap();
        assert_eq!((read.trees, read.changes), (kept.trees.clone(), 0));
        assert_eq!(read.statistics.distinct, statistics.distinct);
        assert_eq!(read_columns.unwrap().columns[0], column);
        for end in 0..record.len() {
            assert!(decode(&record[..end]).is_none(), "{end}");
        }
        let alone = encode(&kept, None);
        assert!(decode(&alone).unwrap().1.is_none());
    }
}
