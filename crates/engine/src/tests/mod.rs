//! Tests of the engine as a whole.

mod bank;
mod check;
mod checkpoint;
mod crash;
mod half_undone;
mod lock_limits;
mod locked_rows;
mod lockstep;
mod prepared;
mod read_ahead;
mod row_compression;
mod rows;
mod space;
mod statistics;

use crate::{Engine, EngineOptions};
use base::{IndexId, PageId, TableId, TreeId};
use engine_api::{
    ColumnDefault, ColumnDefinition, Engine as _, EngineError, FlushPolicy, IndexDefinition,
    IndexPart, Isolation, KeyRange, LockMode, LockWait, RowBuffer, ScanDirection, ScanOptions,
    Table, TableDefinition, TableOptions, Transaction, TransactionOptions,
};
use std::sync::Arc;
use std::time::Duration;
use types::{CollationId, ColumnType, TypeKind, ValueRef};

/// Options with everything tiny, so that little work reaches every branch.
pub(crate) fn tiny(datadir: impl Into<std::path::PathBuf>, pool_bytes: usize) -> EngineOptions {
    let mut options = EngineOptions::new(datadir, pool_bytes);
    options.huge_pages = false;
    options.undo_chunk_bytes = 4096;
    options.log_ring_bytes = 512 << 10;
    options.first_log_file_bytes = 64 << 10;
    options.max_log_file_bytes = 256 << 10;
    options.log_cap_bytes = 1 << 20;
    options.recovery_window_bytes = 16 << 10;
    options.segment_bytes = 256 << 10;
    options.segments_per_file = 16;
    options.group_bytes = 32 << 10;
    options.max_pages = 1 << 16;
    options.checkpoint_interval = Duration::from_millis(20);
    options
}

/// A fresh engine on the simulated disk.
pub(crate) fn new_engine() -> Arc<Engine> {
    Engine::open(tiny("/database", 4 << 20)).unwrap().0
}

pub(crate) fn options() -> TransactionOptions {
    TransactionOptions {
        isolation: Isolation::RepeatableRead,
        snapshot_isolation: true,
        read_only: false,
        lock_wait_timeout: Duration::from_secs(600),
        flush_policy: FlushPolicy::Synchronous,
        connection: 0,
        ends_with_statement: false,
    }
}

pub(crate) fn isolation(isolation: Isolation) -> TransactionOptions {
    TransactionOptions { isolation, ..options() }
}

fn integer(id: u32, name: &str, nullable: bool) -> ColumnDefinition {
    let column_type = ColumnType {
        kind: TypeKind::Int,
        unsigned: false,
        zerofill: false,
        length: 11,
        precision: 0,
        scale: 0,
        collation: CollationId::BINARY,
        members: None,
    };
    ColumnDefinition {
        id,
        name: name.into(),
        column_type,
        nullable,
        default: ColumnDefault::None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        check: String::new(),
    }
}

pub(crate) fn index(name: &str, unique: bool, columns: &[usize]) -> IndexDefinition {
    let part = |&column: &usize| IndexPart { column, prefix: None, descending: false };
    IndexDefinition {
        id: IndexId::ZERO,
        name: name.into(),
        unique,
        primary: name == "PRIMARY",
        generated: false,
        parts: columns.iter().map(part).collect(),
        comment: String::new(),
        tree: TreeId::ZERO,
        root: PageId::ZERO,
        page_class: 0,
        collation_version: 0,
        repeats_key: false,
    }
}

/// `t (id INT PRIMARY KEY, k INT, u INT NULL, c VARBINARY(20000), KEY k, UNIQUE u)`.
pub(crate) fn definition() -> TableDefinition {
    let mut text = integer(4, "c", false);
    text.column_type.kind = TypeKind::VarBinary;
    text.column_type.length = 20_000;
    TableDefinition {
        id: TableId::ZERO,
        version: 1,
        schema: "test".into(),
        name: "t".into(),
        columns: vec![integer(1, "id", false), integer(2, "k", false), integer(3, "u", true), text],
        indexes: vec![
            index("PRIMARY", true, &[0]),
            index("k", false, &[1]),
            index("u", true, &[2]),
        ],
        hidden_row_id: false,
        collation: CollationId::BINARY,
        foreign_keys: Vec::new(),
        options: TableOptions::default(),
        created_micros: 0,
    }
}

/// A row of [`definition`] as values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) k: i64,
    pub(crate) u: Option<i64>,
    pub(crate) c: Vec<u8>,
}

pub(crate) fn row(id: i64, k: i64, u: Option<i64>, c: &[u8]) -> Row {
    Row { id, k, u, c: c.to_vec() }
}

/// A table under test with its layouts.
#[derive(Clone)]
pub(crate) struct Tested {
    pub(crate) table: Arc<dyn Table>,
}

impl Tested {
    pub(crate) fn create(engine: &dyn engine_api::Engine) -> Self {
        Self::create_as(engine, definition())
    }

    pub(crate) fn create_as(
        engine: &dyn engine_api::Engine,
        mut definition: TableDefinition,
    ) -> Self {
        let mut trx = engine.begin(options());
        engine.create_table(&mut *trx, &mut definition).unwrap();
        trx.commit().unwrap();
        Self { table: engine.open_table(Arc::new(definition)).unwrap() }
    }

    pub(crate) fn encode(&self, row: &Row) -> RowBuffer {
        let mut buffer = RowBuffer::default();
        let u = row.u.map_or(ValueRef::Null, ValueRef::Int);
        let values = [ValueRef::Int(row.id), ValueRef::Int(row.k), u, ValueRef::Bytes(&row.c)];
        let layout = self.table.definition().row_layout();
        layout.encode(&values, &mut buffer.key, &mut buffer.payload).unwrap();
        buffer
    }

    pub(crate) fn decode(&self, buffer: &RowBuffer) -> Row {
        let layout = self.table.definition().row_layout();
        let view = types::row::RowView::new(&layout, &buffer.key, &buffer.payload);
        let int = |at: usize| match view.get(at) {
            ValueRef::Int(value) => Some(value),
            _ => None,
        };
        let ValueRef::Bytes(c) = view.get(3) else { panic!("column c is bytes") };
        Row { id: int(0).unwrap(), k: int(1).unwrap(), u: int(2), c: c.to_vec() }
    }

    pub(crate) fn key(&self, id: i64) -> Vec<u8> {
        self.encode(&row(id, 0, None, b"")).key
    }

    pub(crate) fn insert(
        &self,
        trx: &mut dyn Transaction,
        row: &Row,
    ) -> engine_api::Result<Result<(), engine_api::DuplicateKey>> {
        self.table.insert(trx, &mut self.encode(row))
    }

    pub(crate) fn get(
        &self,
        trx: &mut dyn Transaction,
        id: i64,
        lock: LockMode,
    ) -> engine_api::Result<Option<Row>> {
        let mut buffer = RowBuffer::default();
        let found = self.table.get(trx, &self.key(id), lock, LockWait::Wait, &mut buffer)?;
        Ok(found.then(|| self.decode(&buffer)))
    }

    /// Reads under a lock and writes back what `change` makes of it.
    pub(crate) fn update(
        &self,
        trx: &mut dyn Transaction,
        id: i64,
        change: impl FnOnce(&mut Row),
    ) -> engine_api::Result<Option<Result<(), engine_api::DuplicateKey>>> {
        let Some(old) = self.get(trx, id, LockMode::Exclusive)? else { return Ok(None) };
        let mut new = old.clone();
        change(&mut new);
        self.table.update(trx, &self.encode(&old), &self.encode(&new)).map(Some)
    }

    pub(crate) fn delete(&self, trx: &mut dyn Transaction, id: i64) -> engine_api::Result<bool> {
        let Some(old) = self.get(trx, id, LockMode::Exclusive)? else { return Ok(false) };
        self.table.delete(trx, &self.encode(&old))?;
        Ok(true)
    }

    pub(crate) fn scan(
        &self,
        trx: &mut dyn Transaction,
        index: usize,
        lock: LockMode,
        direction: ScanDirection,
    ) -> engine_api::Result<Vec<Row>> {
        let options = ScanOptions {
            index,
            range: KeyRange::all(),
            direction,
            lock,
            lock_wait: LockWait::Wait,
            covering: false,
        };
        let mut cursor = self.table.scan(trx, options)?;
        let (mut rows, mut buffer) = (Vec::new(), RowBuffer::default());
        while cursor.next(trx, &mut buffer)? {
            rows.push(self.decode(&buffer));
        }
        Ok(rows)
    }

    pub(crate) fn all(&self, trx: &mut dyn Transaction) -> Vec<Row> {
        self.scan(trx, 0, LockMode::None, ScanDirection::Forward).unwrap()
    }

    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.table.check().unwrap(), Vec::new());
    }
}

pub(crate) fn simulate<T: 'static>(seed: u64, f: impl FnOnce() -> T + 'static) -> T {
    let config = runtime::sim::SimConfig::new(seed);
    runtime::sim::Simulation::new(config).run(f).expect("the simulation ends well")
}
