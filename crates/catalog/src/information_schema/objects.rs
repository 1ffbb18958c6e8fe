//! Databases, tables, columns and indexes.

use super::{
    Emit, INFORMATION_SCHEMA, number, optional_text, tables as virtual_tables, text, unsigned,
    yes_no,
};
use crate::describe;
use crate::{Schema, TableEntry, VirtualContext, VirtualFilter};
use engine_api::{ColumnDefinition, IndexDefinition, Statistics, TableDefinition};
use std::sync::Arc;
use types::{CollationId, ColumnType, SqlError, Timestamp, TypeKind, Value};

type Rows = Result<(), SqlError>;

fn catalog_name() -> Value {
    text("def")
}

/// The filter leaves the name in.
fn wanted(filter: &Option<String>, name: &str) -> bool {
    filter.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
}

/// Calls `visit` for each table of the engine that the user may see and the filter wants.
fn each_table(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    visit: &mut dyn FnMut(&Schema, &Arc<TableEntry>) -> bool,
) {
    for schema in context.catalog.schemas() {
        if !wanted(&filter.schema, &schema.name) {
            continue;
        }
        for entry in schema.tables() {
            let name = &entry.definition().name;
            if wanted(&filter.table, name)
                && context.user.sees_table(&schema.name, name)
                && !visit(&schema, entry)
            {
                return;
            }
        }
    }
}

fn wants_virtual(filter: &VirtualFilter) -> bool {
    wanted(&filter.schema, INFORMATION_SCHEMA)
}

fn statistics_of(entry: &TableEntry) -> Option<Statistics> {
    entry.handle().ok().map(|table| table.statistics())
}

fn created(context: &VirtualContext<'_>, table: &TableDefinition) -> Value {
    let local = context.time_zone.to_local(Timestamp(table.created_micros));
    Value::DateTime(local.truncated(0))
}

pub(super) fn schemata(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    let row = |name: &str, collation: CollationId, comment: &str| {
        let info = collation.info();
        [
            catalog_name(),
            text(name),
            text(info.charset.name()),
            text(info.name),
            Value::Null,
            text(comment),
        ]
    };
    if wants_virtual(filter) && !emit(&row(INFORMATION_SCHEMA, CollationId(33), "")) {
        return Ok(());
    }
    for schema in context.catalog.schemas() {
        let seen = context.user.sees_schema(&schema.name);
        if seen && wanted(&filter.schema, &schema.name) {
            let options = &schema.options;
            if !emit(&row(&schema.name, options.collation, &options.comment)) {
                break;
            }
        }
    }
    Ok(())
}

pub(super) fn tables(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    if wants_virtual(filter) {
        for table in virtual_tables().iter().filter(|t| wanted(&filter.table, t.name())) {
            if !emit(&virtual_table_row(table.name())) {
                return Ok(());
            }
        }
    }
    each_table(context, filter, &mut |_, entry| emit(&table_row(context, entry)));
    Ok(())
}

fn virtual_table_row(name: &str) -> [Value; 23] {
    let mut row = [const { Value::Null }; 23];
    row[0] = catalog_name();
    row[1] = text(INFORMATION_SCHEMA);
    row[2] = text(name);
    row[3] = text("SYSTEM VIEW");
    row[4] = text("MEMORY");
    row[5] = unsigned(11);
    row[6] = text("Fixed");
    row[17] = text("utf8mb3_general_ci");
    row[19] = text("");
    row[20] = text("");
    row[22] = text("Y");
    row
}

fn table_row(context: &VirtualContext<'_>, entry: &TableEntry) -> [Value; 23] {
    let table = entry.definition();
    let handle = entry.handle();
    let mut row = [const { Value::Null }; 23];
    row[0] = catalog_name();
    row[1] = text(&table.schema);
    row[2] = text(&table.name);
    row[3] = text("BASE TABLE");
    row[4] = text("InnoDB");
    row[5] = unsigned(10);
    row[6] = text("Dynamic");
    row[14] = created(context, table);
    row[17] = text(table.collation.name());
    row[19] = text(create_options(table));
    row[20] = text(&table.options.comment);
    row[22] = text("N");
    match handle {
        Ok(handle) => {
            let statistics = handle.statistics();
            row[7] = unsigned(statistics.rows);
            row[8] = unsigned(statistics.data_bytes.checked_div(statistics.rows).unwrap_or(0));
            row[9] = unsigned(statistics.data_bytes);
            row[10] = unsigned(0);
            row[11] = unsigned(statistics.index_bytes);
            row[12] = unsigned(0);
            row[21] = unsigned(0);
            if table.auto_increment_column().is_some() {
                row[13] = unsigned(handle.next_auto_increment());
            }
        }
        // As MariaDB does for a table that it cannot open: what is known, and why.
        Err(error) => row[20] = text(error.to_string()),
    }
    row
}

fn create_options(table: &TableDefinition) -> String {
    let options = table.options.other.iter().map(|(name, value)| format!("{name}={value}"));
    options.collect::<Vec<_>>().join(" ")
}

pub(super) fn partitions(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = table_row(context, entry);
        let mut row = [const { Value::Null }; 25];
        row[..3].clone_from_slice(&table[..3]);
        row[12..15].clone_from_slice(&table[7..10]);
        row[16] = table[11].clone();
        row[17] = table[12].clone();
        row[18] = table[14].clone();
        row[22] = text("");
        row[23] = text("");
        emit(&row)
    });
    Ok(())
}

pub(super) fn columns(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    if wants_virtual(filter) {
        for table in virtual_tables().iter().filter(|t| wanted(&filter.table, t.name())) {
            for (position, column) in table.columns().iter().enumerate() {
                let names = (INFORMATION_SCHEMA, table.name());
                if !emit(&column_row(names, position, column, "", "select")) {
                    return Ok(());
                }
            }
        }
    }
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        let privileges = column_privileges(context, table);
        table.columns.iter().enumerate().all(|(position, column)| {
            let key = describe::column_key(table, position);
            let names = (table.schema.as_str(), table.name.as_str());
            emit(&column_row(names, position, column, key, &privileges))
        })
    });
    Ok(())
}

fn column_privileges(context: &VirtualContext<'_>, table: &TableDefinition) -> String {
    use crate::Privilege::{Insert, References, Select, Update};
    let held = context.user.on_table(&table.schema, &table.name);
    let names = [Select, Insert, Update, References].into_iter().filter(|p| held.has(*p));
    names.map(|p| p.name().to_ascii_lowercase()).collect::<Vec<_>>().join(",")
}

fn column_row(
    (schema, table): (&str, &str),
    position: usize,
    column: &ColumnDefinition,
    key: &str,
    privileges: &str,
) -> [Value; 22] {
    let column_type = &column.column_type;
    let (characters, octets) = text_lengths(column_type);
    let (precision, scale) = numeric_precision(column_type);
    let fraction = match column_type.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            unsigned(u64::from(column_type.scale))
        }
        _ => Value::Null,
    };
    let info = column_type.collation.info();
    let has_charset = describe::is_text(column_type.kind);
    [
        catalog_name(),
        text(schema),
        text(table),
        text(&column.name),
        unsigned(position as u64 + 1),
        optional_text(describe::default_text(column)),
        yes_no(column.nullable),
        text(describe::data_type(column_type.kind)),
        characters,
        octets,
        precision,
        scale,
        fraction,
        if has_charset { text(info.charset.name()) } else { Value::Null },
        if has_charset { text(info.name) } else { Value::Null },
        text(describe::column_type_text(column_type)),
        text(key),
        text(describe::extra(column)),
        text(privileges),
        text(&column.comment),
        text("NEVER"),
        Value::Null,
    ]
}

/// CHARACTER_MAXIMUM_LENGTH and CHARACTER_OCTET_LENGTH.
fn text_lengths(column_type: &ColumnType) -> (Value, Value) {
    let bytes = u64::from(column_type.collation.charset().max_bytes());
    let both = |length: u64| (unsigned(length), unsigned(length));
    match column_type.kind {
        TypeKind::Char | TypeKind::VarChar => {
            let length = u64::from(column_type.length);
            (unsigned(length), unsigned(length * bytes))
        }
        TypeKind::Binary | TypeKind::VarBinary => both(u64::from(column_type.length)),
        TypeKind::TinyText | TypeKind::TinyBlob => both(255),
        TypeKind::Text | TypeKind::Blob => both(65_535),
        TypeKind::MediumText | TypeKind::MediumBlob => both(16_777_215),
        TypeKind::LongText | TypeKind::LongBlob => both(4_294_967_295),
        _ => (Value::Null, Value::Null),
    }
}

/// NUMERIC_PRECISION and NUMERIC_SCALE.
fn numeric_precision(column_type: &ColumnType) -> (Value, Value) {
    let integer = |signed: u64, as_unsigned: u64| {
        let digits = if column_type.unsigned { as_unsigned } else { signed };
        (unsigned(digits), unsigned(0))
    };
    match column_type.kind {
        TypeKind::TinyInt => integer(3, 3),
        TypeKind::SmallInt => integer(5, 5),
        TypeKind::MediumInt => integer(7, 7),
        TypeKind::Int => integer(10, 10),
        TypeKind::BigInt => integer(19, 20),
        TypeKind::Decimal => {
            (unsigned(u64::from(column_type.precision)), unsigned(u64::from(column_type.scale)))
        }
        TypeKind::Float | TypeKind::Double => {
            let digits = if column_type.kind == TypeKind::Float { 12 } else { 22 };
            match column_type.scale {
                31 => (unsigned(digits), Value::Null),
                scale => (unsigned(u64::from(column_type.length)), unsigned(u64::from(scale))),
            }
        }
        _ => (Value::Null, Value::Null),
    }
}

/// The indexes that users see, unique ones first as SHOW INDEX lists them.
pub(crate) fn listed_indexes(table: &TableDefinition) -> Vec<(usize, &IndexDefinition)> {
    let all = table.indexes.iter().enumerate();
    let mut indexes: Vec<_> = all.filter(|(_, index)| !index.parts.is_empty()).collect();
    indexes.sort_by_key(|(_, index)| (!index.primary, !index.unique));
    indexes
}

pub(super) fn statistics(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        let estimates = statistics_of(entry);
        for (position, index) in listed_indexes(table) {
            for (sequence, part) in index.parts.iter().enumerate() {
                let column = &table.columns[part.column];
                let distinct = estimates
                    .as_ref()
                    .and_then(|s| s.distinct.get(position)?.get(sequence).copied());
                let row = [
                    catalog_name(),
                    text(&table.schema),
                    text(&table.name),
                    number(usize::from(!index.unique)),
                    text(&table.schema),
                    text(&index.name),
                    number(sequence + 1),
                    text(&column.name),
                    text(if part.descending { "D" } else { "A" }),
                    distinct.map_or(Value::Null, |d| number(d as usize)),
                    part.prefix.map_or(Value::Null, |length| number(length as usize)),
                    Value::Null,
                    text(if column.nullable { "YES" } else { "" }),
                    text("BTREE"),
                    text(""),
                    text(&index.comment),
                    text("NO"),
                ];
                if !emit(&row) {
                    return false;
                }
            }
        }
        true
    });
    Ok(())
}

pub(super) fn key_column_usage(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        let unique = listed_indexes(table).into_iter().filter(|(_, index)| index.unique);
        for (_, index) in unique {
            for (sequence, part) in index.parts.iter().enumerate() {
                let row = [
                    catalog_name(),
                    text(&table.schema),
                    text(&index.name),
                    catalog_name(),
                    text(&table.schema),
                    text(&table.name),
                    text(&table.columns[part.column].name),
                    number(sequence + 1),
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ];
                if !emit(&row) {
                    return false;
                }
            }
        }
        true
    });
    Ok(())
}

pub(super) fn table_constraints(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        let mut unique = listed_indexes(table).into_iter().filter(|(_, index)| index.unique);
        unique.all(|(_, index)| {
            emit(&[
                catalog_name(),
                text(&table.schema),
                text(&index.name),
                text(&table.schema),
                text(&table.name),
                text(if index.primary { "PRIMARY KEY" } else { "UNIQUE" }),
            ])
        })
    });
    Ok(())
}

fn full_name(table: &TableDefinition) -> Value {
    text(format!("{}/{}", table.schema, table.name))
}

pub(super) fn innodb_tables(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        emit(&[
            unsigned(table.id.0),
            full_name(table),
            number(33),
            unsigned(table.columns.len() as u64),
            unsigned(table.id.0),
            text("Dynamic"),
            unsigned(0),
            text("Single"),
        ])
    });
    Ok(())
}

pub(super) fn innodb_tablestats(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        let statistics = statistics_of(entry).unwrap_or_default();
        let next = entry.handle().map_or(0, |handle| handle.next_auto_increment());
        emit(&[
            unsigned(table.id.0),
            full_name(table),
            number(1),
            unsigned(statistics.rows),
            unsigned(statistics.data_bytes),
            unsigned(statistics.index_bytes),
            unsigned(0),
            unsigned(next),
            number(1),
        ])
    });
    Ok(())
}

pub(super) fn innodb_indexes(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        table.indexes.iter().all(|index| {
            let clustered = index.primary || index.parts.is_empty();
            let name = if index.parts.is_empty() { "GEN_CLUST_INDEX" } else { &index.name };
            let kind = usize::from(clustered) | usize::from(index.unique) << 1;
            emit(&[
                unsigned(u64::from(index.tree.0)),
                text(name),
                unsigned(table.id.0),
                number(kind),
                number(index.parts.len()),
                number(index.root.0 as usize),
                number(table.id.0 as usize),
                number(50),
            ])
        })
    });
    Ok(())
}

pub(super) fn innodb_columns(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        table.columns.iter().enumerate().all(|(position, column)| {
            emit(&[
                unsigned(table.id.0),
                text(&column.name),
                unsigned(position as u64),
                number(column.column_type.kind as usize),
                number(usize::from(!column.nullable)),
                number(column.column_type.length as usize),
            ])
        })
    });
    Ok(())
}

pub(super) fn innodb_fields(
    context: &VirtualContext<'_>,
    filter: &VirtualFilter,
    emit: &mut Emit<'_>,
) -> Rows {
    each_table(context, filter, &mut |_, entry| {
        let table = entry.definition();
        table.indexes.iter().all(|index| {
            index.parts.iter().enumerate().all(|(position, part)| {
                emit(&[
                    unsigned(u64::from(index.tree.0)),
                    text(&table.columns[part.column].name),
                    unsigned(position as u64),
                ])
            })
        })
    });
    Ok(())
}
