//! The tables `mysql.table_stats`, `mysql.column_stats` and `mysql.index_stats`: as MariaDB has
//! them, made when they are not there.

use crate::{Catalog, Result, TableEntry};
use base::{IndexId, PageId, TableId, TreeId};
use engine_api::{
    ColumnDefinition, Cursor, IndexDefinition, IndexPart, KeyRange, LockMode, LockWait, RowBuffer,
    ScanDirection, ScanOptions, Table, TableDefinition, TableOptions, Transaction,
};
use std::sync::Arc;
use types::row::RowView;
use types::{CollationId, ColumnType, Members, TypeKind, Value, ValueRef};

pub(crate) const TABLE_STATS: &str = "table_stats";
pub(crate) const COLUMN_STATS: &str = "column_stats";
pub(crate) const INDEX_STATS: &str = "index_stats";
/// Their database.
const SCHEMA: &str = "mysql";
const UTF8MB3_BIN: CollationId = CollationId(83);

/// Rows of one of them.
pub(crate) type Rows = Vec<Vec<Value>>;

fn column_type(kind: TypeKind, length: u32) -> ColumnType {
    let collation = match kind {
        TypeKind::VarChar | TypeKind::Enum => UTF8MB3_BIN,
        _ => CollationId::BINARY,
    };
    ColumnType {
        kind,
        unsigned: matches!(kind, TypeKind::BigInt | TypeKind::Int | TypeKind::TinyInt),
        zerofill: false,
        length,
        precision: match kind {
            TypeKind::BigInt => 20,
            TypeKind::Int => 10,
            TypeKind::TinyInt => 3,
            TypeKind::Decimal => 12,
            _ => 0,
        },
        scale: if kind == TypeKind::Decimal { 4 } else { 0 },
        collation,
        members: (kind == TypeKind::Enum).then(|| {
            let names = ["SINGLE_PREC_HB", "DOUBLE_PREC_HB", "JSON_HB"];
            Members::of(names.iter().map(|name| name.as_bytes().to_vec()).collect())
        }),
    }
}

fn table(
    name: &str,
    comment: &str,
    keys: usize,
    columns: &[(&str, ColumnType)],
) -> TableDefinition {
    let columns = columns.iter().enumerate().map(|(at, (name, column_type))| {
        let plain = ColumnDefinition::plain(at as u32 + 1, name, *column_type);
        match at < keys {
            true => {
                let default = engine_api::ColumnDefault::None;
                ColumnDefinition { nullable: false, default, ..plain }
            }
            false => plain,
        }
    });
    let part = |column| IndexPart { column, prefix: None, descending: false };
    let primary = IndexDefinition {
        id: IndexId::ZERO,
        name: "PRIMARY".to_owned(),
        primary: true,
        parts: (0..keys).map(part).collect(),
        tree: TreeId::ZERO,
        root: PageId::ZERO,
        ..IndexDefinition::hidden()
    };
    TableDefinition {
        id: TableId::ZERO,
        version: 1,
        schema: SCHEMA.to_owned(),
        name: name.to_owned(),
        columns: columns.collect(),
        indexes: vec![primary],
        hidden_row_id: false,
        collation: UTF8MB3_BIN,
        foreign_keys: Vec::new(),
        options: TableOptions { comment: comment.to_owned(), ..TableOptions::default() },
        created_micros: runtime::wall_clock_micros(),
    }
}

fn definitions() -> [TableDefinition; 3] {
    let name = column_type(TypeKind::VarChar, 64);
    let value = column_type(TypeKind::VarBinary, 255);
    let number = column_type(TypeKind::Decimal, 14);
    let size = column_type(TypeKind::TinyInt, 3);
    // The longest member.
    let kind = column_type(TypeKind::Enum, 14);
    let histogram = column_type(TypeKind::LongBlob, u32::MAX);
    let [db, of_table] = [("db_name", name), ("table_name", name)];
    [
        table(
            TABLE_STATS,
            "Statistics on Tables",
            2,
            &[db, of_table, ("cardinality", column_type(TypeKind::BigInt, 21))],
        ),
        table(
            COLUMN_STATS,
            "Statistics on Columns",
            3,
            &[
                db,
                of_table,
                ("column_name", name),
                ("min_value", value),
                ("max_value", value),
                ("nulls_ratio", number),
                ("avg_length", number),
                ("avg_frequency", number),
                ("hist_size", size),
                ("hist_type", kind),
                ("histogram", histogram),
            ],
        ),
        table(
            INDEX_STATS,
            "Statistics on Indexes",
            4,
            &[
                db,
                of_table,
                ("index_name", name),
                ("prefix_arity", column_type(TypeKind::Int, 11)),
                ("avg_frequency", number),
            ],
        ),
    ]
}

/// A scan of the clustered key.
fn scan(
    table: &dyn Table,
    trx: &mut dyn Transaction,
    range: KeyRange,
    lock: LockMode,
) -> Result<Box<dyn Cursor>> {
    let (direction, lock_wait) = (ScanDirection::Forward, LockWait::Wait);
    let options = ScanOptions { index: 0, range, direction, lock, lock_wait, covering: false };
    Ok(table.scan(trx, options)?)
}

/// The clustered keys of a table's rows.
fn keys_of(entry: &TableEntry, (schema, table): (&str, &str)) -> Option<KeyRange> {
    let mut prefix = Vec::new();
    let values = [ValueRef::Bytes(schema.as_bytes()), ValueRef::Bytes(table.as_bytes())];
    for (part, value) in entry.layouts().row.clustered_key().iter().zip(values) {
        part.push(value, &mut prefix).ok()?;
    }
    Some(KeyRange::prefix(prefix))
}

fn values(entry: &TableEntry, row: &RowBuffer) -> Vec<Value> {
    let view = RowView::new(&entry.layouts().row, &row.key, &row.payload);
    (0..view.len()).map(|at| view.get(at).to_owned()).collect()
}

impl Catalog {
    /// Makes those that are not there, in one transaction, and reads them.
    pub(crate) fn open_statistics(&self) -> Result<()> {
        if self.schema(SCHEMA).is_none() {
            return Ok(());
        }
        let is_missing = |it: &TableDefinition| self.find_base(SCHEMA, &it.name).is_none();
        let missing: Vec<TableDefinition> = definitions().into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            let mut trx = self.begin();
            let mut made = Vec::with_capacity(missing.len());
            for mut definition in missing {
                self.engine().create_table(&mut *trx, &mut definition)?;
                self.put_table(&mut *trx, &definition)?;
                made.push(definition);
            }
            trx.commit()?;
            for definition in made {
                let name = definition.name.clone();
                self.put_entry(SCHEMA, &name, Some(self.entry(definition)));
            }
        }
        self.reload_statistics();
        Ok(())
    }

    /// One of the tables, as it was made: who has altered it loses its use.
    fn statistics_table(&self, name: &str) -> Option<Arc<TableEntry>> {
        let entry = self.find_base(SCHEMA, name)?;
        let expected = definitions().into_iter().find(|it| it.name == name)?;
        let own = entry.definition();
        let same =
            own.columns.len() == expected.columns.len()
                && own.columns.iter().zip(&expected.columns).all(|(one, other)| {
                    one.name == other.name && one.column_type == other.column_type
                })
                && own.indexes[0].parts == expected.indexes[0].parts;
        same.then_some(entry)
    }

    /// All rows of one of the tables.
    pub(crate) fn statistics_rows(&self, name: &str) -> Result<Rows> {
        let Some(entry) = self.statistics_table(name) else { return Ok(Vec::new()) };
        let mut trx = self.begin();
        let mut cursor = scan(&**entry.handle()?, &mut *trx, KeyRange::all(), LockMode::None)?;
        let (mut rows, mut row) = (Vec::new(), RowBuffer::default());
        while cursor.next(&mut *trx, &mut row)? {
            rows.push(values(&entry, &row));
        }
        drop(cursor);
        trx.rollback()?;
        Ok(rows)
    }

    /// Takes out what the tables have about a table, gives it the name `to` if there is one, and
    /// puts other rows there.
    pub(crate) fn replace_statistics(
        &self,
        from: (&str, &str),
        to: Option<(&str, &str)>,
        rows: &[Rows; 3],
    ) -> Result<()> {
        if from.0 == SCHEMA && [TABLE_STATS, COLUMN_STATS, INDEX_STATS].contains(&from.1) {
            return Ok(());
        }
        let mut trx = self.begin();
        let mut has_changed = false;
        for (name, rows) in [TABLE_STATS, COLUMN_STATS, INDEX_STATS].into_iter().zip(rows) {
            let Some(entry) = self.statistics_table(name) else { continue };
            let Some(keys) = keys_of(&entry, from) else { continue };
            let table = entry.handle()?;
            let (mut old, mut row) = (Vec::new(), RowBuffer::default());
            let mut cursor = scan(&**table, &mut *trx, keys, LockMode::Exclusive)?;
            while cursor.next(&mut *trx, &mut row)? {
                old.push(row.clone());
            }
            drop(cursor);
            let moved = to.into_iter().flat_map(|to| {
                old.iter().map(move |row| (to, row)).map(|((schema, table), row)| {
                    let mut row = values(&entry, row);
                    row[0] = Value::text(schema);
                    row[1] = Value::text(table);
                    row
                })
            });
            let new: Rows = moved.chain(rows.iter().cloned()).collect();
            has_changed |= !old.is_empty() || !new.is_empty();
            for row in &old {
                table.delete(&mut *trx, row)?;
            }
            for values in new {
                let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                let (key, payload) = (&mut row.key, &mut row.payload);
                if entry.layouts().row.encode(&values, key, payload).is_ok() {
                    // What a former table of the name `to` has left stays.
                    let _duplicate = table.insert(&mut *trx, &mut row)?;
                }
            }
        }
        match has_changed {
            true => trx.commit()?,
            false => trx.rollback()?,
        }
        Ok(())
    }
}
