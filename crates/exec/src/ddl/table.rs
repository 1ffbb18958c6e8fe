//! CREATE TABLE as written becomes a definition.

use super::{DdlContext, collation_of, column, compression, computed, foreign, index};
use crate::ExecError;
use engine_api::{ColumnDefault, PLAIN_OPTIONS, TableDefinition, TableOptions};
use syntax::ast::{CreateTable, IndexKind, IndexSpecification, OptionValue, TableOption};
use types::{CollationId, SqlError, codes};

const COLUMNS_MAX: usize = 1017;

/// What the options of a table say.
pub struct Options {
    /// Default collation.
    pub collation: CollationId,
    /// Comment and options to keep.
    pub kept: TableOptions,
    /// AUTO_INCREMENT.
    pub auto_increment: Option<u64>,
}

pub(super) fn word(value: &OptionValue) -> String {
    match value {
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Word(word) => word.clone(),
        OptionValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
        OptionValue::Names(_) | OptionValue::Default => String::new(),
    }
}

/// Reads the options of CREATE or ALTER TABLE.
pub fn options(
    written: &[TableOption],
    default: CollationId,
    former: TableOptions,
) -> Result<Options, ExecError> {
    let mut options = Options { collation: default, kept: former, auto_increment: None };
    let find = |name: &str| written.iter().find(|o| o.name == name).map(|o| word(&o.value));
    let (charset, collate) = (find("CHARSET"), find("COLLATE"));
    options.collation = collation_of(charset.as_deref(), collate.as_deref(), default)?;
    for option in written {
        let value = word(&option.value);
        match option.name.as_str() {
            "ENGINE" if !value.eq_ignore_ascii_case("innodb") => {
                return Err(SqlError::new(&codes::UNKNOWN_STORAGE_ENGINE, &[&value]).into());
            }
            "COMMENT" => options.kept.comment = value,
            "AUTO_INCREMENT" => options.auto_increment = value.parse().ok(),
            name if PLAIN_OPTIONS.contains(&name) => {
                options.kept.other.retain(|(kept, _)| kept != name);
                let value = if name == "ROW_FORMAT" { value.to_uppercase() } else { value };
                let is_default = match name {
                    "KEY_BLOCK_SIZE" => value == "0",
                    _ => option.value == OptionValue::Default || value == "DEFAULT",
                };
                if !is_default {
                    options.kept.other.push((name.to_string(), value));
                }
            }
            name if compression::QUOTED.contains(&name) => {
                options.kept.other.retain(|(kept, _)| !kept.eq_ignore_ascii_case(name));
                if option.value != OptionValue::Default {
                    options.kept.other.push((option.written.clone(), value));
                }
            }
            _ => {}
        }
    }
    Ok(options)
}

/// The definition, and the AUTO_INCREMENT counter's first value if it was given.
pub fn definition(
    context: &DdlContext<'_>,
    create: &CreateTable,
    schema: &str,
) -> Result<(TableDefinition, Option<u64>), ExecError> {
    let of_schema = context.catalog.schema(schema).map(|schema| schema.options.collation);
    let default = of_schema.unwrap_or(CollationId::UTF8MB4_GENERAL_CI);
    let options = options(&create.options, default, TableOptions::default())?;
    let mut table = TableDefinition {
        id: base::TableId(0),
        version: 0,
        schema: schema.to_string(),
        name: create.name.name.clone(),
        columns: Vec::new(),
        indexes: Vec::new(),
        hidden_row_id: false,
        collation: options.collation,
        foreign_keys: Vec::new(),
        options: options.kept,
        created_micros: 0,
    };
    if create.columns.is_empty() && context.query.is_none() {
        return Err(SqlError::new(&codes::TABLE_MUST_HAVE_COLUMNS, &[]).into());
    }
    if create.columns.len() > COLUMNS_MAX {
        return Err(SqlError::new(&codes::TOO_MANY_FIELDS, &[]).into());
    }
    for written in &create.columns {
        if table.column_position(&written.name).is_some() {
            return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&written.name]).into());
        }
        let mut column = column::column(context.eval, written, options.collation)?;
        column.id = table.columns.len() as u32 + 1;
        table.columns.push(column);
    }
    if let Some(query) = context.query {
        super::select::add_columns(&mut table, query.plan)?;
    }
    let written = create.columns.iter().filter_map(computed::of_column);
    computed::put(context, written, &mut table.columns)?;
    super::check::put(context, create, &mut table)?;
    let mut indexes: Vec<IndexSpecification> =
        create.columns.iter().flat_map(index::of_column).collect();
    indexes.extend(create.indexes.iter().cloned());
    index::add_all(&mut table, &indexes)?;
    check_primary(&table)?;
    let inline = create.columns.iter().filter_map(foreign::of_column);
    let keys: Vec<_> = inline.chain(create.foreign_keys.iter().cloned()).collect();
    for key in &keys {
        if let Some(wanted) = foreign::needed_index(&mut table, key)? {
            let made = index::definition(&table, &wanted)?;
            table.indexes.push(engine_api::IndexDefinition { generated: true, ..made });
        }
    }
    while let Some(position) = foreign::superseded(&table) {
        table.indexes.remove(position);
    }
    for key in &keys {
        foreign::add_key(context, &mut table, key, foreign::Operation::Create)?;
    }
    check_auto_increment(&table)?;
    if let Some(partition) = &create.partition_by {
        super::partition::apply(context, &mut table, partition)?;
    }
    compression::apply(context, &create.options, &mut table, compression::Operation::Create)?;
    Ok((table, options.auto_increment))
}

/// Primary key columns take no NULL, whatever was written.
pub fn forbid_null(table: &mut TableDefinition, position: usize) {
    let column = &mut table.columns[position];
    column.nullable = false;
    if column.default == ColumnDefault::Null {
        column.default = ColumnDefault::None;
    }
}

/// 1903 for a primary key with a generated column.
pub fn check_primary(table: &TableDefinition) -> Result<(), ExecError> {
    let parts = table.indexes.first().filter(|index| index.primary).map(|index| &index.parts);
    if parts.into_iter().flatten().any(|part| table.columns[part.column].is_generated()) {
        return Err(SqlError::new(&codes::PRIMARY_KEY_BASED_ON_GENERATED_COLUMN, &[]).into());
    }
    Ok(())
}

/// At most one AUTO_INCREMENT column, and it begins an index.
pub fn check_auto_increment(table: &TableDefinition) -> Result<(), ExecError> {
    let mut columns = table.columns.iter().enumerate().filter(|(_, c)| c.auto_increment);
    let Some((position, _)) = columns.next() else { return Ok(()) };
    let begins = |index: &engine_api::IndexDefinition| {
        index.parts.first().is_some_and(|part| part.column == position)
    };
    if columns.next().is_some() || !table.indexes.iter().any(begins) {
        return Err(SqlError::new(&codes::WRONG_AUTO_KEY, &[]).into());
    }
    Ok(())
}

/// Whether a written index is the primary key.
pub fn is_primary(index: &IndexSpecification) -> bool {
    index.kind == IndexKind::Primary
}
