//! Generated columns and defaults that are expressions: their text, and what rows compute by it.
//!
//! 1. A definition has the expression as SHOW CREATE TABLE shows it. It is bound to all columns of
//!    the table as it will be, so it is put in when those are known.
//! 2. Until then the text is empty.

use super::alter_plan::{Work, find};
use super::{DdlContext, check};
use crate::ExecError;
use engine_api::{
    ColumnDefault, ColumnDefinition, ForeignKeyDefinition, ReferentialAction, TableDefinition,
};
use plan::ComputedClause;
use plan::physical::Computed;
use syntax::ast::{AlterAction, AlterTable, ColumnSpecification, Expression, IndexSpecification};
use types::{SqlError, codes};

/// An expression that was written for a column.
pub struct Written<'a> {
    /// The column.
    pub column: &'a str,
    /// Where it stands.
    pub clause: ComputedClause,
    /// The expression.
    pub expression: &'a Expression,
}

/// The expression of a column as written, if it has one.
pub fn of_column(written: &ColumnSpecification) -> Option<Written<'_>> {
    let column = written.name.as_str();
    if let Some(generated) = &written.generated {
        let clause = ComputedClause::Generated;
        return Some(Written { column, clause, expression: &generated.expression });
    }
    let expression = written.default.as_ref()?;
    Some(Written { column, clause: ComputedClause::Default, expression })
}

/// Puts the texts of expressions into the definitions of their columns.
pub fn put<'a>(
    context: &DdlContext<'_>,
    written: impl Iterator<Item = Written<'a>>,
    columns: &mut [ColumnDefinition],
) -> Result<(), ExecError> {
    for Written { column, clause, expression } in written {
        let same = |known: &ColumnDefinition| known.name.eq_ignore_ascii_case(column);
        let Some(position) = columns.iter().position(same) else { continue };
        let is_empty = columns[position].computed_by().is_some_and(str::is_empty);
        if !is_empty {
            continue;
        }
        let made = check::with_planning(context, |planning| {
            plan::computed_text(planning, columns, position, clause, expression)
        })?;
        if let ColumnDefault::Expression(text) | ColumnDefault::Generated { expression: text, .. } =
            &mut columns[position].default
        {
            *text = made;
        }
    }
    Ok(())
}

/// What rows of a table compute.
pub fn bind(
    context: &DdlContext<'_>,
    table: &TableDefinition,
) -> Result<Option<Box<Computed>>, ExecError> {
    check::with_planning(context, |planning| plan::computed(planning, table))
}

/// What rows with these columns compute while they are copied; `indexed` names those that an
/// index is over.
pub fn bind_columns(
    context: &DdlContext<'_>,
    columns: &[ColumnDefinition],
    indexed: &[&str],
    checks: &[&str],
) -> Result<Option<Box<Computed>>, ExecError> {
    let is_indexed = |at: usize| {
        let name = &columns[at].name;
        indexed.iter().any(|other| other.eq_ignore_ascii_case(name))
    };
    check::with_planning(context, |planning| {
        plan::computed_columns(planning, columns, &is_indexed, checks)
    })
}

/// The expression that an action gives a column.
fn expression_of(action: &AlterAction) -> Option<Written<'_>> {
    match action {
        AlterAction::AddColumn { column, .. } | AlterAction::ChangeColumn { column, .. } => {
            of_column(column)
        }
        AlterAction::AlterDefault { name, default: Some(expression) } => {
            let clause = ComputedClause::Default;
            Some(Written { column: name, clause, expression })
        }
        _ => None,
    }
}

/// Puts the expressions of columns into their definitions, and binds all of them to the columns
/// as they will be.
pub(super) fn put_altered(
    context: &DdlContext<'_>,
    alter: &AlterTable,
    table: &TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    if work.columns.iter().all(|(column, _)| column.computed_by().is_none()) {
        return Ok(());
    }
    let mut columns: Vec<_> = work.columns.iter().map(|(column, _)| column.clone()).collect();
    put(context, alter.actions.iter().filter_map(expression_of), &mut columns)?;
    let added = work.add.iter().flat_map(|index| &index.parts).map(|part| part.column.as_str());
    let known = table.indexes.iter().flat_map(|index| &index.parts);
    let known = known.map(|part| table.columns[part.column].name.as_str());
    let indexed: Vec<&str> = added.chain(known).collect();
    let checks = table.options.checks.iter().map(|(_, text)| text.as_str());
    let checks: Vec<&str> =
        checks.chain(columns.iter().map(|column| column.check.as_str())).collect();
    work.computed = bind_columns(context, &columns, &indexed, &checks)?;
    for ((column, _), made) in work.columns.iter_mut().zip(columns) {
        *column = made;
    }
    Ok(())
}

/// 1905 for actions that would change generated columns, 1901 for those that would change what
/// STORED ones are made of.
pub fn check_key(
    table: &TableDefinition,
    key: &ForeignKeyDefinition,
    positions: &[usize],
) -> Result<(), ExecError> {
    use ReferentialAction as A;
    let clause = match (key.on_update, key.on_delete) {
        (A::SetNull, _) => "ON UPDATE SET NULL",
        (A::Cascade, _) => "ON UPDATE CASCADE",
        (_, A::SetNull) => "ON DELETE SET NULL",
        _ => return Ok(()),
    };
    for position in positions {
        let own = &table.columns[*position];
        if own.is_generated() {
            let code = &codes::WRONG_FK_OPTION_FOR_GENERATED_COLUMN;
            return Err(SqlError::new(code, &[&clause]).into());
        }
        let name = catalog::describe::quote_name(&own.name);
        let reads = |column: &&ColumnDefinition| match &column.default {
            ColumnDefault::Generated { expression, stored } => {
                *stored && expression.contains(&name)
            }
            _ => false,
        };
        if let Some(reader) = table.columns.iter().find(reads) {
            let arguments: [&dyn std::fmt::Display; 3] =
                [&own.name, &"GENERATED ALWAYS AS", &reader.name];
            let code = &codes::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED;
            return Err(SqlError::new(code, &arguments).into());
        }
    }
    Ok(())
}

/// 1907 for a change that would make a column VIRTUAL, or no longer.
pub fn check_change(old: &ColumnDefinition, new: &ColumnDefinition) -> Result<(), ExecError> {
    if is_virtual(old) == is_virtual(new) {
        return Ok(());
    }
    Err(SqlError::new(&codes::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, &[]).into())
}

fn is_virtual(column: &ColumnDefinition) -> bool {
    matches!(column.default, ColumnDefault::Generated { stored: false, .. })
}

/// 1903 for a primary key that is added over a generated column.
pub(super) fn check_primary(work: &Work, written: &IndexSpecification) -> Result<(), ExecError> {
    let mut columns = written.parts.iter().filter_map(|part| find(work, &part.column));
    if columns.any(|at| work.columns[at].0.is_generated()) {
        return Err(SqlError::new(&codes::PRIMARY_KEY_BASED_ON_GENERATED_COLUMN, &[]).into());
    }
    Ok(())
}

/// Renames a column in the expressions of all.
pub fn rename<'c>(columns: impl Iterator<Item = &'c mut ColumnDefinition>, from: &str, to: &str) {
    for column in columns {
        if let ColumnDefault::Expression(text) | ColumnDefault::Generated { expression: text, .. } =
            &mut column.default
        {
            *text = renamed(text, from, to);
        }
    }
}

/// An expression as it is kept, with another name for a column: names stand between backticks.
pub fn renamed(text: &str, from: &str, to: &str) -> String {
    let (from, to) = (catalog::describe::quote_name(from), catalog::describe::quote_name(to));
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(['`', '\'']) {
        let quote = rest.as_bytes()[start];
        made.push_str(&rest[..start]);
        let length = quoted_length(&rest.as_bytes()[start..], quote);
        let quoted = &rest[start..start + length];
        made.push_str(if quoted.eq_ignore_ascii_case(&from) { &to } else { quoted });
        rest = &rest[start + length..];
    }
    made + rest
}

/// The length of a name or a string with its quotes. A quote within is doubled, or stands behind a
/// backslash in a string.
fn quoted_length(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' if quote == b'\'' => at += 2,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::renamed;

    #[test]
    fn names_are_renamed_and_strings_are_not() {
        let text = r"concat(`a`,'`a`','it\'s `a`',`A`,`x``a`,`a``x`) + `a`";
        let expected = r"concat(`b``c`,'`a`','it\'s `a`',`b``c`,`x``a`,`a``x`) + `b``c`";
        assert_eq!(renamed(text, "a", "b`c"), expected);
        assert_eq!(renamed("'", "a", "b"), "'");
    }
}
