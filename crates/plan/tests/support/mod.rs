//! An engine without rows whose tables have the statistics that their COMMENT says:
//! `rows 100000; k_1 100; nk 5,50` (distinct values per number of leading parts).

use base::{PageId, TrxId};
use engine_api::*;
use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use types::row::{KeyColumn, KeyPart, LayoutColumn};

#[derive(Default)]
pub struct PaperEngine {
    dictionary: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    next_table: Mutex<u64>,
}

struct PaperTransaction;
struct NoGate;

impl ReadGate for NoGate {
    fn wait_durable(&self) -> Result<()> {
        Ok(())
    }
}

impl Transaction for PaperTransaction {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn id(&self) -> TrxId {
        TrxId::new(0)
    }
    fn has_written(&self) -> bool {
        false
    }
    fn open_snapshot(&mut self) {}
    fn begin_statement(&mut self) -> Savepoint {
        Savepoint(0)
    }
    fn savepoint(&mut self) -> Savepoint {
        Savepoint(0)
    }
    fn rollback_to(&mut self, _: Savepoint) -> Result<()> {
        Ok(())
    }
    fn commit(self: Box<Self>) -> Result<()> {
        Ok(())
    }
    fn rollback(self: Box<Self>) -> Result<()> {
        Ok(())
    }
    fn wait_read_durable(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_unchanged(&mut self) -> Result<bool> {
        Ok(true)
    }
    fn commit_and_keep(&mut self) -> Result<bool> {
        Ok(true)
    }
    fn set_options(&mut self, _: TransactionOptions) {}
    fn read_gate(&mut self) -> Arc<dyn ReadGate> {
        Arc::new(NoGate)
    }
    fn set_lock_wait_timeout(&mut self, _: Duration) {}
    fn read_present(&mut self, _: bool) {}
}

impl Engine for PaperEngine {
    fn name(&self) -> &'static str {
        "paper"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { transactions: true, secondary_indexes: true, key_bytes_max: 3072 }
    }
    fn begin(&self, _: TransactionOptions) -> Box<dyn Transaction> {
        Box::new(PaperTransaction)
    }
    fn create_table(&self, _: &mut dyn Transaction, table: &mut TableDefinition) -> Result<()> {
        let mut next = self.next_table.lock().expect("not poisoned");
        *next += 1;
        table.id = base::TableId::new(*next);
        for (number, index) in table.indexes.iter_mut().enumerate() {
            index.root = PageId::new(*next * 100 + number as u64);
        }
        Ok(())
    }
    fn drop_table(&self, _: &mut dyn Transaction, _: &TableDefinition) -> Result<()> {
        Ok(())
    }
    fn build_index(
        &self,
        _: &mut dyn Transaction,
        _: &mut TableDefinition,
        _: usize,
    ) -> Result<std::result::Result<(), DuplicateKey>> {
        Ok(Ok(()))
    }
    fn drop_index(&self, _: &mut dyn Transaction, _: &TableDefinition, _: usize) -> Result<()> {
        Ok(())
    }
    fn change_options(&self, _: &mut dyn Transaction, _: &TableDefinition) -> Result<()> {
        Ok(())
    }
    fn open_table(&self, table: Arc<TableDefinition>) -> Result<Arc<dyn Table>> {
        let statistics = statistics_of(&table);
        Ok(Arc::new(PaperTable(table, statistics)))
    }
    fn dictionary_get(&self, _: &mut dyn Transaction, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.dictionary.lock().expect("not poisoned").get(key).cloned())
    }
    fn dictionary_put(&self, _: &mut dyn Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        self.dictionary.lock().expect("not poisoned").insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    fn dictionary_delete(&self, _: &mut dyn Transaction, key: &[u8]) -> Result<()> {
        self.dictionary.lock().expect("not poisoned").remove(key);
        Ok(())
    }
    fn dictionary_scan(
        &self,
        _: &mut dyn Transaction,
        prefix: &[u8],
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let dictionary = self.dictionary.lock().expect("not poisoned");
        let pairs = dictionary.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(pairs.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
    fn status(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

struct PaperTable(Arc<TableDefinition>, Statistics);

impl PaperTable {
    /// How many parts of an index a key has.
    fn parts_of(&self, index: usize, key: &[u8]) -> usize {
        let columns: Vec<LayoutColumn> = self.0.columns.iter().map(layout_column).collect();
        let (mut at, mut parts) = (0, 0);
        for part in &self.0.indexes[index].parts {
            let (column, prefix, descending) = (part.column, part.prefix, part.descending);
            let part = KeyColumn::new(&columns, &KeyPart { column, prefix, descending });
            let length = part.and_then(|part| part.length(&key[at..]));
            let Some(length) = length.filter(|length| *length > 0 && at < key.len()) else { break };
            at += length;
            parts += 1;
        }
        parts
    }
}

fn layout_column(column: &engine_api::ColumnDefinition) -> LayoutColumn {
    LayoutColumn { column_type: column.column_type, nullable: column.nullable }
}

fn no_rows<T>() -> Result<T> {
    Err(EngineError::Unsupported("rows on paper"))
}

impl Table for PaperTable {
    fn definition(&self) -> &Arc<TableDefinition> {
        &self.0
    }
    fn insert(
        &self,
        _: &mut dyn Transaction,
        _: &mut RowBuffer,
    ) -> Result<std::result::Result<(), DuplicateKey>> {
        no_rows()
    }
    fn update(
        &self,
        _: &mut dyn Transaction,
        _: &RowBuffer,
        _: &RowBuffer,
    ) -> Result<std::result::Result<(), DuplicateKey>> {
        no_rows()
    }
    fn delete(&self, _: &mut dyn Transaction, _: &RowBuffer) -> Result<()> {
        no_rows()
    }
    fn get(
        &self,
        _: &mut dyn Transaction,
        _: &[u8],
        _: LockMode,
        _: LockWait,
        _: &mut RowBuffer,
    ) -> Result<bool> {
        no_rows()
    }
    fn scan(&self, _: &mut dyn Transaction, _: ScanOptions) -> Result<Box<dyn Cursor>> {
        no_rows()
    }
    fn unlock_row(&self, _: &mut dyn Transaction, _: &RowBuffer) {}
    fn reserve_auto_increment(&self, _: u64, _: u64, _: u64) -> Result<u64> {
        no_rows()
    }
    fn observe_auto_increment(&self, _: u64) -> Result<()> {
        no_rows()
    }
    fn next_auto_increment(&self) -> u64 {
        1
    }
    fn set_auto_increment(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn statistics(&self) -> Statistics {
        self.1.clone()
    }
    fn changes(&self) -> u64 {
        0
    }
    /// What the distinct values say of equal parts; else a twentieth of the rows, and a hundredth of
    /// that where the ends begin with the same part.
    fn estimate_range(&self, index: usize, range: &KeyRange) -> u64 {
        let bytes = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.clone(),
            Bound::Unbounded => Vec::new(),
        };
        let (low, high) = (bytes(&range.lower), bytes(&range.upper));
        let of_prefix = KeyRange::prefix(low.clone());
        if (&range.lower, &range.upper) == (&of_prefix.lower, &of_prefix.upper) {
            let statistics = self.statistics();
            let parts = self.parts_of(index, &low);
            let distinct = statistics.distinct.get(index).and_then(|d| d.get(parts.max(1) - 1));
            return match distinct {
                Some(distinct) if *distinct > 0 => (statistics.rows / distinct).max(1),
                _ => statistics.rows / 10,
            };
        }
        let shared = low.iter().zip(&high).take_while(|(a, b)| a == b).count();
        self.statistics().rows / if shared >= 4 { 2000 } else { 20 }
    }
    fn check(&self) -> Result<Vec<TableFinding>> {
        Ok(Vec::new())
    }
}

fn statistics_of(table: &TableDefinition) -> Statistics {
    let mut statistics = Statistics { rows: 1000, ..Statistics::default() };
    let mut known: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let described = table.options.comment.split(';').filter(|_| table.schema != "mysql");
    for part in described {
        let mut words = part.split_whitespace();
        let (Some(name), Some(numbers)) = (words.next(), words.next()) else { continue };
        let numbers = numbers.split(',').map(|n| n.parse().expect("a number")).collect();
        known.insert(name.to_string(), numbers);
    }
    if let Some(rows) = known.get("rows") {
        statistics.rows = rows[0];
    }
    let distinct = |index: &IndexDefinition| {
        let all = vec![statistics.rows; index.parts.len()];
        known.get(&index.name).cloned().unwrap_or(all)
    };
    statistics.distinct = table.indexes.iter().map(distinct).collect();
    statistics
}
