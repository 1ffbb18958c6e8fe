//! Rows that come from the definitions.

use super::{Row, SCHEMA_NAME, Scope, optional_text};
use crate::describe;
use crate::{Result, Schema, TableEntry};
use engine_api::{
    ColumnDefinition, IndexDefinition, Statistics, TableDefinition, TableOptions, TableSizes,
};
use std::sync::Arc;
use types::collation;
use types::{ColumnType, DateTime, TypeKind, Value};

pub(super) fn text(value: impl AsRef<[u8]>) -> Value {
    Value::text(value)
}

fn yes_no(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// Schemas in scope that the reader may see.
fn schemas(scope: &Scope<'_>) -> Vec<Arc<Schema>> {
    let mut schemas = scope.catalog.schemas();
    schemas.retain(|schema| {
        scope.schema.is_none_or(|wanted| wanted == schema.name)
            && scope.user.sees_schema(&schema.name)
    });
    schemas
}

/// Calls `each` for every table in scope that the reader may see.
pub(super) fn for_each_table(
    scope: &Scope<'_>,
    mut each: impl FnMut(&Schema, &Arc<TableEntry>) -> Result<()>,
) -> Result<()> {
    for_each_entry(scope, |schema, entry| match entry.view() {
        None => each(schema, entry),
        Some(_) => Ok(()),
    })
}

/// The same for tables and views.
pub(super) fn for_each_entry(
    scope: &Scope<'_>,
    mut each: impl FnMut(&Schema, &Arc<TableEntry>) -> Result<()>,
) -> Result<()> {
    if let Some(temporary) = scope.temporary {
        let schema = scope.catalog.schema(&temporary.definition().schema);
        return schema.map_or(Ok(()), |schema| each(&schema, temporary));
    }
    for schema in schemas(scope) {
        for table in schema.tables() {
            let name = &table.definition().name;
            let wanted = scope.table.is_none_or(|wanted| wanted == name);
            if wanted && scope.user.sees_table(&schema.name, name) {
                each(&schema, table)?;
            }
        }
    }
    Ok(())
}

pub(super) fn character_sets(_: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |default: &'static collation::Collation| {
        vec![
            text(default.charset.name()),
            text(default.name),
            text(describe::charset_description(default.charset)),
            Value::Int(i64::from(default.charset.max_bytes())),
        ]
    };
    Ok(describe::charsets().map(row).collect())
}

pub(super) fn collations(_: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |collation: &collation::Collation| {
        vec![
            text(collation.name),
            text(collation.charset.name()),
            Value::Int(i64::from(collation.id.0)),
            text(if collation.is_default { "Yes" } else { "" }),
            text("Yes"),
            Value::Int(1),
        ]
    };
    Ok(collation::all().iter().map(row).collect())
}

pub(super) fn collation_applicability(_: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |collation: &collation::Collation| {
        vec![
            text(collation.name),
            text(collation.charset.name()),
            text(collation.name),
            Value::Int(i64::from(collation.id.0)),
            text(if collation.is_default { "Yes" } else { "" }),
        ]
    };
    Ok(collation::all().iter().map(row).collect())
}

pub(super) fn engines(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let transactions = scope.catalog.engine().capabilities().transactions;
    Ok(vec![vec![
        text("InnoDB"),
        text("DEFAULT"),
        text("Gannet's flash engine: transactions, row-level locking, compressed pages"),
        yes_no(transactions),
        yes_no(transactions),
        yes_no(transactions),
    ]])
}

pub(super) fn schemata(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |name: &str, charset: &str, collation: &str, comment: &str| {
        vec![text("def"), text(name), text(charset), text(collation), Value::Null, text(comment)]
    };
    let mut rows = Vec::new();
    if scope.schema.is_none_or(|wanted| wanted.eq_ignore_ascii_case(SCHEMA_NAME)) {
        rows.push(row(SCHEMA_NAME, "utf8mb3", "utf8mb3_general_ci", ""));
    }
    for schema in schemas(scope) {
        let own = schema.options.collation;
        rows.push(row(&schema.name, own.charset().name(), own.name(), &schema.options.comment));
    }
    Ok(rows)
}

/// Estimates and sizes of a table.
type Figures = (Statistics, TableSizes);

/// Those of one table; a damaged table shows none rather than failing the
/// query.
fn table_statistics(table: &TableEntry) -> (Option<Figures>, Option<u64>) {
    let Ok(handle) = table.handle() else { return (None, None) };
    let has_counter = table.definition().auto_increment_column().is_some();
    let next = has_counter.then(|| handle.next_auto_increment());
    (Some((handle.statistics(), handle.sizes())), next)
}

pub(super) fn tables(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = virtual_tables(scope);
    for_each_entry(scope, |schema, table| {
        let definition = table.definition();
        if table.view().is_some() {
            let mut row = vec![text("def"), text(&schema.name), text(&definition.name)];
            row.push(text("VIEW"));
            row.extend(std::iter::repeat_n(Value::Null, 16));
            row.push(text("VIEW"));
            row.extend([Value::Null, Value::Null]);
            rows.push(row);
            return Ok(());
        }
        let (statistics, next) = table_statistics(table);
        let number = |value: Option<u64>| value.map_or(Value::Null, Value::UInt);
        let of = |field: fn(&Figures) -> u64| number(statistics.as_ref().map(field));
        let created = DateTime::from_epoch_micros(definition.created_micros);
        rows.push(vec![
            text("def"),
            text(&schema.name),
            text(&definition.name),
            text("BASE TABLE"),
            text("InnoDB"),
            Value::UInt(10),
            text(row_format(&definition.options)),
            of(|(estimates, _)| estimates.rows),
            of(|(estimates, sizes)| sizes.data_bytes / estimates.rows.max(1)),
            of(|(_, sizes)| sizes.data_bytes),
            Value::UInt(0),
            of(|(_, sizes)| sizes.index_bytes),
            of(|(_, sizes)| sizes.free_bytes),
            number(next),
            created.map_or(Value::Null, |at| Value::DateTime(at.truncated(0))),
            Value::Null,
            Value::Null,
            text(definition.collation.name()),
            Value::Null,
            text(create_options(definition)),
            text(&definition.options.comment),
            Value::UInt(0),
            text("N"),
        ]);
        Ok(())
    })?;
    Ok(rows)
}

/// An index's name; a clustered tree without a primary key has InnoDB's.
pub(super) fn index_name(index: &IndexDefinition) -> &str {
    if index.parts.is_empty() { "GEN_CLUST_INDEX" } else { &index.name }
}

/// ROW_FORMAT as it is called in listings; without one the table has the default's.
pub(super) fn row_format(options: &TableOptions) -> &'static str {
    let of = |name: &str| options.plain().find(|(known, _)| known == name);
    match of("ROW_FORMAT").map(|(_, value)| value.as_str()) {
        _ if options.compressed_block_class().is_some() => "Compressed",
        Some("COMPACT") => "Compact",
        Some("REDUNDANT") => "Redundant",
        _ => "Dynamic",
    }
}

/// CREATE_OPTIONS: what was written beyond the defaults, separated by blanks.
fn create_options(table: &TableDefinition) -> String {
    let plain = table.options.plain();
    let mut options: Vec<_> =
        plain.map(|(name, value)| format!("{}={value}", name.to_ascii_lowercase())).collect();
    if crate::Partitions::of(table).is_some() {
        options.push("partitioned".to_owned());
    }
    let quoted = table.options.quoted();
    options.extend(quoted.map(|(name, value)| format!("`{name}`='{value}'")));
    options.join(" ")
}

fn virtual_tables(scope: &Scope<'_>) -> Vec<Row> {
    if scope.schema.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(SCHEMA_NAME)) {
        return Vec::new();
    }
    let wanted = |name: &str| scope.table.is_none_or(|table| table.eq_ignore_ascii_case(name));
    let all = super::all().iter().filter(|table| wanted(table.name));
    all.map(|table| {
        let mut row = vec![text("def"), text(SCHEMA_NAME), text(table.name), text("SYSTEM VIEW")];
        row.push(text("MEMORY"));
        row.push(Value::UInt(11));
        row.push(text("Fixed"));
        row.extend(std::iter::repeat_n(Value::Null, 10));
        row.push(text("utf8mb3_general_ci"));
        row.push(Value::Null);
        row.extend([text(""), text(""), Value::UInt(0), text("Y")]);
        row
    })
    .collect()
}

pub(super) fn partitions(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_table(scope, |schema, table| {
        let definition = table.definition();
        let statistics = table_statistics(table).0.unwrap_or_default();
        let created = DateTime::from_epoch_micros(definition.created_micros);
        let start = vec![text("def"), text(&schema.name), text(&definition.name)];
        let Some(partitions) = crate::Partitions::of(definition) else {
            let mut row = start;
            row.extend(std::iter::repeat_n(Value::Null, 9));
            row.extend(partition_figures(&statistics, 1, created));
            row.extend([text(""), text(""), Value::Null]);
            rows.push(row);
            return Ok(());
        };
        let names = partitions.names();
        let (method, expression) = partitions.method();
        let expression = match expression {
            "" => Value::Null,
            expression => text(expression),
        };
        for (at, name) in names.iter().enumerate() {
            let mut row = start.clone();
            let number = Value::UInt(at as u64 + 1);
            row.extend([text(name), Value::Null, number, Value::Null, text(&method), Value::Null]);
            let description = match partitions.description(at) {
                // As MariaDB has it.
                Some(word) if word == crate::partition::DEFAULT => text("0"),
                description => optional_text(description),
            };
            row.extend([expression.clone(), Value::Null, description]);
            row.extend(partition_figures(&statistics, names.len() as u64, created));
            let comment = partitions.comments.get(at).map_or("", String::as_str);
            row.extend([text(comment), text("default"), Value::Null]);
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Rows and bytes of one of so many partitions: they share one tree.
fn partition_figures(
    (estimates, sizes): &Figures,
    parts: u64,
    created: Option<DateTime>,
) -> Vec<Value> {
    let mut row = vec![
        Value::UInt(estimates.rows / parts),
        Value::UInt(sizes.data_bytes / estimates.rows.max(1)),
        Value::UInt(sizes.data_bytes / parts),
        Value::UInt(0),
        Value::UInt(sizes.index_bytes / parts),
        Value::UInt(sizes.free_bytes / parts),
    ];
    row.push(created.map_or(Value::Null, |at| Value::DateTime(at.truncated(0))));
    row.extend(std::iter::repeat_n(Value::Null, 3));
    row
}

/// Precision and scale of a number, as COLUMNS has them.
fn numeric_precision(column_type: &ColumnType) -> (Option<u64>, Option<u64>) {
    let digits = match column_type.kind {
        TypeKind::TinyInt => 3,
        TypeKind::SmallInt => 5,
        TypeKind::MediumInt if column_type.unsigned => 8,
        TypeKind::MediumInt => 7,
        TypeKind::Int => 10,
        TypeKind::BigInt if column_type.unsigned => 20,
        TypeKind::BigInt => 19,
        TypeKind::Decimal => {
            return (Some(column_type.precision.into()), Some(column_type.scale.into()));
        }
        TypeKind::Bit => return (Some(column_type.length.into()), None),
        TypeKind::Float | TypeKind::Double
            if column_type.scale < types::column_type::SCALE_NOT_FIXED =>
        {
            return (Some(column_type.length.into()), Some(column_type.scale.into()));
        }
        TypeKind::Float => return (Some(12), None),
        TypeKind::Double => return (Some(22), None),
        _ => return (None, None),
    };
    (Some(digits), Some(0))
}

/// Length in characters and in bytes of a text or binary type.
fn character_lengths(column_type: &ColumnType) -> Option<(u64, u64)> {
    let bytes_per_character = u64::from(column_type.collation.charset().max_bytes());
    let length = u64::from(column_type.length);
    let whole = match column_type.kind {
        TypeKind::Char | TypeKind::VarChar | TypeKind::Enum | TypeKind::Set => {
            return Some((length, length * bytes_per_character));
        }
        TypeKind::Binary | TypeKind::VarBinary => return Some((length, length)),
        TypeKind::TinyText | TypeKind::TinyBlob => 255,
        TypeKind::Text | TypeKind::Blob => 65_535,
        TypeKind::MediumText | TypeKind::MediumBlob => 16_777_215,
        TypeKind::LongText | TypeKind::LongBlob => 4_294_967_295,
        _ => return None,
    };
    Some((whole, whole))
}

/// What the reader may do with a column of the table, of what columns have privileges for.
fn column_privileges(scope: &Scope<'_>, table: &TableDefinition, column: &str) -> Option<String> {
    use crate::Privilege::{Insert, References, Select, Update};
    let of_table = scope.user.on_table(&table.schema, &table.name);
    let held = of_table | scope.user.on_column(&table.schema, &table.name, column);
    let words =
        [(Select, "select"), (Insert, "insert"), (Update, "update"), (References, "references")];
    let named = words.iter().filter(|(privilege, _)| held.has(*privilege) || is_own(scope));
    let named: Vec<&str> = named.map(|(_, word)| *word).collect();
    (!named.is_empty()).then(|| named.join(","))
}

/// A temporary table of the session itself.
fn is_own(scope: &Scope<'_>) -> bool {
    scope.temporary.is_some_and(|entry| entry.is_temporary())
}

fn column_row(
    table: &TableDefinition,
    position: usize,
    column: &ColumnDefinition,
    privileges: String,
) -> Row {
    let column_type = &column.column_type;
    let number = |value: Option<u64>| value.map_or(Value::Null, Value::UInt);
    let lengths = character_lengths(column_type);
    let (precision, scale) = numeric_precision(column_type);
    let fraction = match column_type.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => Some(column_type.scale.into()),
        _ => None,
    };
    let is_text = describe::is_text(column_type.kind);
    let of_text = |name: &'static str| if is_text { text(name) } else { Value::Null };
    vec![
        text("def"),
        text(&table.schema),
        text(&table.name),
        text(&column.name),
        Value::UInt(position as u64 + 1),
        optional_text(describe::default_expression(column)),
        yes_no(column.nullable),
        text(describe::type_name(column_type.kind)),
        number(lengths.map(|(characters, _)| characters)),
        number(lengths.map(|(_, bytes)| bytes)),
        number(precision),
        number(scale),
        number(fraction),
        of_text(column_type.collation.charset().name()),
        of_text(column_type.collation.name()),
        text(describe::type_text(column_type)),
        text(describe::key_text(table, position)),
        text(describe::extra_text(column)),
        text(privileges),
        text(&column.comment),
        text(if column.is_generated() { "ALWAYS" } else { "NEVER" }),
        optional_text(column.computed_by().filter(|_| column.is_generated()).map(str::to_owned)),
    ]
}

pub(super) fn columns(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_entry(scope, |_, table| {
        let definition = table.definition();
        for (position, column) in definition.columns.iter().enumerate() {
            if let Some(privileges) = column_privileges(scope, definition, &column.name) {
                rows.push(column_row(definition, position, column, privileges));
            }
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Calls `each` for every index that SQL sees: not the hidden one of a table without a key.
pub(super) fn for_each_index(
    scope: &Scope<'_>,
    mut each: impl FnMut(&Schema, &TableEntry, usize, &IndexDefinition),
) -> Result<()> {
    for_each_table(scope, |schema, table| {
        for (position, index) in describe::shown_indexes(table.definition()) {
            if !index.parts.is_empty() {
                each(schema, table, position, index);
            }
        }
        Ok(())
    })
}

pub(super) fn statistics(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_index(scope, |schema, table, position, index| {
        let definition = table.definition();
        let statistics = table_statistics(table).0.unwrap_or_default();
        let distinct = statistics.0.distinct.get(position);
        for (sequence, part) in index.parts.iter().enumerate() {
            let column = &definition.columns[part.column];
            let cardinality = distinct.and_then(|d| d.get(sequence)).copied();
            rows.push(vec![
                text("def"),
                text(&schema.name),
                text(&definition.name),
                Value::Int(i64::from(!index.unique)),
                text(&schema.name),
                text(&index.name),
                Value::UInt(sequence as u64 + 1),
                text(&column.name),
                text(if part.descending { "D" } else { "A" }),
                Value::Int(cardinality.unwrap_or(statistics.0.rows) as i64),
                part.prefix.map_or(Value::Null, |p| Value::Int(i64::from(p))),
                Value::Null,
                text(if column.nullable { "YES" } else { "" }),
                text("BTREE"),
                text(""),
                text(&index.comment),
                text("NO"),
            ]);
        }
    })?;
    Ok(rows)
}

pub(super) fn views(scope: &Scope<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for_each_entry(scope, |schema, entry| {
        let Some(view) = entry.view() else { return Ok(()) };
        rows.push(vec![
            text("def"),
            text(&schema.name),
            text(&entry.definition().name),
            text(&view.query),
            text(view.check_option.word()),
            yes_no(view.is_updatable),
            text(format!("{}@{}", view.definer.0, view.definer.1)),
            text(if view.invoker { "INVOKER" } else { "DEFINER" }),
            text(&view.charset_client),
            text(&view.collation_connection),
            text(view.algorithm.word()),
        ]);
        Ok(())
    })?;
    Ok(rows)
}
