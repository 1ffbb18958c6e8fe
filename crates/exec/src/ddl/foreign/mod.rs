//! Foreign keys as written become definitions; what they forbid is in `guard`, tables that have
//! rows already in `build`.
//!
//! What is checked, and in which order, is MariaDB's: the keys' own form first (1072, 1239), then
//! what InnoDB asks (1005 with errno 150 or 121, the reason as a warning).

mod build;
mod guard;

pub use build::{add_to_table, drop_superseded, superseded};
pub use guard::{
    check_altered, check_may_drop, check_may_drop_schema, check_may_truncate,
    check_waiting_children,
};

use super::DdlContext;
use crate::ExecError;
use catalog::{QualifiedName, constraint_text};
use engine_api::{ForeignKeyDefinition, ReferentialAction, TableDefinition};
use syntax::ast::{self, ColumnSpecification, IndexKind, IndexSpecification, TableName};
use types::{ColumnType, Level, SqlError, Warning, codes};

type Done = Result<(), ExecError>;

/// The foreign key that a column's REFERENCES asks for.
pub fn of_column(column: &ColumnSpecification) -> Option<ast::ForeignKey> {
    let references = column.references.clone()?;
    let part = ast::IndexPartSpecification {
        column: column.name.clone(),
        prefix: None,
        descending: false,
    };
    Some(ast::ForeignKey {
        symbol: None,
        name: None,
        if_not_exists: false,
        columns: vec![part],
        references,
    })
}

fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    use ast::ReferentialAction as A;
    match written {
        // InnoDB takes SET DEFAULT for RESTRICT.
        None | Some(A::Restrict | A::SetDefault) => ReferentialAction::Restrict,
        Some(A::Cascade) => ReferentialAction::Cascade,
        Some(A::SetNull) => ReferentialAction::SetNull,
        Some(A::NoAction) => ReferentialAction::NoAction,
    }
}

/// Database and name of a written key's parent.
pub fn parent_of(child_schema: &str, written: &ast::ForeignKey) -> QualifiedName {
    let parent: &TableName = &written.references.table;
    let schema = parent.schema.clone().unwrap_or_else(|| child_schema.to_string());
    (schema, parent.name.clone())
}

/// What is being done, for the text of errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// CREATE TABLE.
    Create,
    /// ALTER TABLE.
    Alter,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Alter => "Alter",
        }
    }
}

/// Error 1005 with its reason: a warning before, one behind.
fn cannot_create(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    errno: (u16, &str),
    reason: String,
) -> ExecError {
    let warn = |code: u16, message: String| {
        context.eval.push_warning(Warning { level: Level::Warning, code, message });
    };
    let (number, words) = errno;
    warn(number, reason);
    let full = format!("{number} \"{words}\"");
    let error = SqlError::new(&codes::CANT_CREATE_TABLE, &[&table.schema, &table.name, &full]);
    context.eval.push_warning(Warning::from(&error));
    match number {
        121 => warn(1022, codes::DUP_KEY.message(&[&table.name])),
        _ => warn(1215, codes::CANNOT_ADD_FOREIGN.message(&[&table.name])),
    }
    error.into()
}

fn badly_formed(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    (operation, columns): (Operation, &str),
    with: &str,
    reason: &str,
) -> ExecError {
    let text = format!(
        "{}  table `{}`.`{}` {with}foreign key ({columns}) constraint failed. {reason}",
        operation.word(),
        table.schema,
        table.name
    );
    cannot_create(context, table, (150, "Foreign key constraint is incorrectly formed"), text)
}

/// The index that a written key needs for its own columns, before it is known whether another
/// index serves; none if there is one already.
pub fn needed_index(
    table: &mut TableDefinition,
    written: &ast::ForeignKey,
) -> Result<Option<IndexSpecification>, ExecError> {
    let mut columns = Vec::with_capacity(written.columns.len());
    for part in &written.columns {
        let position = table.column_position(&part.column);
        let missing = || SqlError::new(&codes::KEY_COLUMN_DOES_NOT_EXIST, &[&part.column]);
        columns.push(position.ok_or_else(missing)?);
    }
    let references = &written.references.columns;
    if !references.is_empty() && references.len() != columns.len() {
        let name = written.symbol.as_deref().or(written.name.as_deref());
        let name = name.unwrap_or("foreign key without name");
        let reason = "Key reference and table reference don't match";
        return Err(SqlError::new(&codes::WRONG_FK_DEF, &[&name, &reason]).into());
    }
    let is_whole = written.columns.iter().all(|part| part.prefix.is_none());
    let name = written.symbol.clone().or_else(|| written.name.clone());
    if let Some(at) = table.index_over(&columns).filter(|_| is_whole) {
        let found = &table.indexes[at];
        if !found.generated || found.parts.len() > columns.len() || name.is_none() {
            return Ok(None);
        }
        // The newer name counts, as if the former index gave way to a new one.
        let name = name.unwrap_or_default();
        let mut others = table.indexes.iter().enumerate().filter(|(other, _)| *other != at);
        if others.any(|(_, other)| other.name.eq_ignore_ascii_case(&name)) {
            return Err(SqlError::new(&codes::DUP_KEYNAME, &[&name]).into());
        }
        let mut renamed = table.indexes.remove(at);
        renamed.name = name;
        table.indexes.push(renamed);
        return Ok(None);
    }
    Ok(Some(IndexSpecification {
        kind: IndexKind::Plain,
        symbol: None,
        name,
        if_not_exists: false,
        parts: written.columns.clone(),
        using: None,
        comment: None,
        key_block_size: None,
        ignored: None,
        other: Vec::new(),
    }))
}

/// The first number that a generated name may have.
fn next_number(table: &TableDefinition) -> u64 {
    let prefix = format!("{}_ibfk_", table.name);
    let numbers = table.foreign_keys.iter().filter_map(|key| {
        key.name.strip_prefix(prefix.as_str()).and_then(|number| number.parse::<u64>().ok())
    });
    numbers.max().unwrap_or(0) + 1
}

/// Adds a written key, whose index is there, to a definition. `checks`: foreign_key_checks.
pub fn add_key(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    written: &ast::ForeignKey,
    operation: Operation,
) -> Done {
    let name = written.symbol.clone().or_else(|| written.name.clone());
    let name = name.unwrap_or_else(|| format!("{}_ibfk_{}", table.name, next_number(table)));
    let positions: Vec<usize> =
        written.columns.iter().filter_map(|part| table.column_position(&part.column)).collect();
    let own_names = || positions.iter().map(|at| table.columns[*at].name.clone()).collect();
    let (parent_schema, parent_table) = parent_of(&table.schema, written);
    let key = ForeignKeyDefinition {
        name,
        columns: positions.iter().map(|at| table.columns[*at].id).collect(),
        parent_schema,
        parent_table,
        parent_columns: match written.references.columns.is_empty() {
            true => own_names(),
            false => written.references.columns.clone(),
        },
        on_delete: action(written.references.on_delete),
        on_update: action(written.references.on_update),
    };
    let taken = table.foreign_keys.iter().any(|other| other.name.eq_ignore_ascii_case(&key.name));
    if taken || context.catalog.has_foreign_key(&table.schema, &key.name, &table.name) {
        let text = format!(
            "CREATE or ALTER TABLE `{}`.`{}` failed: duplicate name, {}",
            table.schema,
            table.name,
            constraint_text(table, &key, false)
        );
        let errno = (121, "Duplicate key on write or update");
        return Err(cannot_create(context, table, errno, text));
    }
    super::computed::check_key(table, &key, &positions)?;
    check_parent(context, table, &key, &positions, operation)?;
    table.foreign_keys.push(key);
    table.foreign_keys.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(())
}

/// What InnoDB asks of parent and child when a key is made.
fn check_parent(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    key: &ForeignKeyDefinition,
    positions: &[usize],
    operation: Operation,
) -> Done {
    let names: Vec<&str> = positions.iter().map(|at| table.columns[*at].name.as_str()).collect();
    let names = names.join(", ");
    let fails = |reason: &str| badly_formed(context, table, (operation, &names), "with ", reason);
    let set_null = [key.on_delete, key.on_update].contains(&ReferentialAction::SetNull);
    if let Some(at) = positions.iter().find(|at| set_null && !table.columns[**at].nullable) {
        let column = &table.columns[*at].name;
        return Err(fails(&format!(
            "You have defined a SET NULL condition but column '{column}' is defined as NOT NULL."
        )));
    }
    let is_itself = key.parent_schema == table.schema && key.parent_table == table.name;
    let entry = context.catalog.find_base(&key.parent_schema, &key.parent_table);
    let parent: &TableDefinition = match (&entry, is_itself) {
        (_, true) => table,
        (Some(entry), false) => entry.definition(),
        (None, false) if context.eval.settings.foreign_key_checks => {
            return Err(fails(&format!(
                "Referenced table `{}`.`{}` not found in the data dictionary.",
                key.parent_schema, key.parent_table
            )));
        }
        (None, false) => return Ok(()),
    };
    let mut columns = Vec::with_capacity(positions.len());
    for name in &key.parent_columns {
        let Some(at) = parent.column_position(name) else {
            let reason = format!("Column {name} was not found.");
            return Err(badly_formed(context, table, (operation, &names), "", &reason));
        };
        columns.push(at);
    }
    if table.index_over(positions).is_none() {
        return Err(fails(
            "There is only prefix index in the referenced table where the referenced columns \
             appear as the first columns.",
        ));
    }
    for (own, other) in positions.iter().zip(&columns) {
        let (own, other) = (&table.columns[*own], &parent.columns[*other]);
        if !are_comparable(&own.column_type, &other.column_type) {
            return Err(fails(&format!(
                "Field type or character set for column '{}' does not match referenced column \
                 '{}'.",
                own.name, other.name
            )));
        }
    }
    if parent.index_over(&columns).is_none() && context.eval.settings.foreign_key_checks {
        return Err(fails(
            "There is no index in the referenced table where the referenced columns appear as \
             the first columns.",
        ));
    }
    Ok(())
}

/// Whether values of one column can be looked up as keys of the other.
fn are_comparable(one: &ColumnType, other: &ColumnType) -> bool {
    use types::TypeKind as K;
    let family = |kind: K| match kind {
        K::Char | K::VarChar => K::VarChar,
        K::Binary | K::VarBinary => K::VarBinary,
        kind => kind,
    };
    let same_family = family(one.kind) == family(other.kind);
    match family(one.kind) {
        K::VarChar => same_family && one.collation == other.collation,
        K::VarBinary => same_family && (one.kind == other.kind),
        K::Decimal => same_family && (one.precision, one.scale) == (other.precision, other.scale),
        _ => same_family && one.unsigned == other.unsigned && one.scale == other.scale,
    }
}
