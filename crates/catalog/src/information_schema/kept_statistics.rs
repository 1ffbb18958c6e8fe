//! `mysql.table_stats`, `column_stats` and `index_stats`.

use super::VirtualType::{
    BigIntUnsigned, Blob, Decimal, IntUnsigned, TinyIntUnsigned, VarBinary, Varchar,
};
use super::columns::{optional, required};
use super::{ACCOUNTS_SCHEMA, Row, Scope, VirtualColumn};
use crate::kept_statistics::KeptStatistics;
use crate::{Privilege, Result};
use engine_api::TableDefinition;
use std::sync::Arc;
use types::{Decimal as Number, Value};

pub(super) const TABLE_STATS: &[VirtualColumn] = &[
    required("db_name", Varchar(64)),
    required("table_name", Varchar(64)),
    optional("cardinality", BigIntUnsigned(21)),
];

pub(super) const COLUMN_STATS: &[VirtualColumn] = &[
    required("db_name", Varchar(64)),
    required("table_name", Varchar(64)),
    required("column_name", Varchar(64)),
    optional("min_value", VarBinary(255)),
    optional("max_value", VarBinary(255)),
    optional("nulls_ratio", Decimal(12, 4)),
    optional("avg_length", Decimal(12, 4)),
    optional("avg_frequency", Decimal(12, 4)),
    optional("hist_size", TinyIntUnsigned(3)),
    optional("hist_type", Varchar(14)),
    optional("histogram", Blob),
];

pub(super) const INDEX_STATS: &[VirtualColumn] = &[
    required("db_name", Varchar(64)),
    required("table_name", Varchar(64)),
    required("index_name", Varchar(64)),
    required("prefix_arity", IntUnsigned(11)),
    optional("avg_frequency", Decimal(12, 4)),
];

/// Tables that have statistics and that the reader may see.
fn tables(scope: &Scope<'_>) -> Vec<(Arc<TableDefinition>, Arc<KeptStatistics>)> {
    let sees_all = scope.user.on_schema(ACCOUNTS_SCHEMA).has(Privilege::Select);
    let all = scope.catalog.all_kept_statistics();
    let known = all.into_iter().filter_map(|((schema, table), kept)| {
        let entry = scope.catalog.find(&schema, &table).ok()?.base().ok()?;
        let sees = sees_all || scope.user.may(Privilege::Select, &schema, &table);
        sees.then(|| (entry.definition().clone(), kept))
    });
    known.collect()
}

fn fraction(value: Option<f64>) -> Value {
    let number = value.and_then(Number::from_f64).and_then(|it| it.value.rounded(4));
    number.map_or(Value::Null, Value::Decimal)
}

fn names(definition: &TableDefinition) -> [Value; 2] {
    [Value::text(&definition.schema), Value::text(&definition.name)]
}

pub(super) fn table_stats(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let rows = tables(scope).into_iter().map(|(definition, kept)| {
        let mut row = names(&definition).to_vec();
        row.push(Value::UInt(kept.cardinality));
        row
    });
    Ok(rows.collect())
}

pub(super) fn column_stats(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (definition, kept) in tables(scope) {
        for (name, column) in &kept.columns {
            if !definition.columns.iter().any(|known| known.name == *name) {
                continue;
            }
            let mut row = names(&definition).to_vec();
            let bytes = |value: Option<&Vec<u8>>| match value {
                Some(value) => Value::Bytes(value.clone()),
                None => Value::Null,
            };
            let (kind, histogram) = match &column.histogram {
                Some((kind, histogram)) => (Value::text(kind), bytes(Some(histogram))),
                None => (Value::Null, Value::Null),
            };
            row.extend([
                Value::text(name),
                bytes(column.extremes.as_ref().map(|extremes| &extremes.0)),
                bytes(column.extremes.as_ref().map(|extremes| &extremes.1)),
                fraction(column.shape.map(|shape| shape.0)),
                fraction(column.shape.map(|shape| shape.1)),
                fraction(column.frequency),
                column.histogram_size.map_or(Value::Null, |size| Value::UInt(size.into())),
                kind,
                histogram,
            ]);
            rows.push(row);
        }
    }
    Ok(rows)
}

pub(super) fn index_stats(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (definition, kept) in tables(scope) {
        for (name, parts) in &kept.indexes {
            if !definition.indexes.iter().any(|known| known.name == *name) {
                continue;
            }
            for (number, frequency) in parts.iter().enumerate() {
                let mut row = names(&definition).to_vec();
                row.push(Value::text(name));
                row.push(Value::UInt(number as u64 + 1));
                row.push(fraction(*frequency));
                rows.push(row);
            }
        }
    }
    Ok(rows)
}
