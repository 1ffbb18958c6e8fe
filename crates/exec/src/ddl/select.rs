//! CREATE TABLE ... SELECT: columns of a query, and its rows.

use super::{CreateQuery, DdlContext, create_empty};
use crate::Recursions;
use crate::change::insert;
use crate::context::{Exec, RowSink};
use crate::{ExecError, Outcome};
use catalog::TableEntry;
use engine_api::{ColumnDefault, ColumnDefinition, ReadGate, TableDefinition, Transaction};
use plan::Prepared;
use plan::physical::{
    EntryHandle, InsertPlan, InsertRows, Plan, QueryPlan, ResultColumn, TableSource,
};
use std::sync::Arc;
use syntax::ast::CreateTable;
use types::{CollationId, ColumnType, SqlError, TypeKind, ValueRef, codes};

/// Longest text of an expression, in characters, that becomes a VARCHAR.
const VARCHAR_CHARACTERS_MAX: u32 = 512;

/// An INSERT without RETURNING sends no rows.
struct NoRows;

impl RowSink for NoRows {
    fn begin(&mut self, _: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, _: &[ValueRef<'_>]) -> Result<(), SqlError> {
        Ok(())
    }
}

fn query_of(prepared: &Prepared) -> Option<&QueryPlan> {
    match prepared.plan() {
        Plan::Query(query) => Some(query),
        _ => None,
    }
}

/// Adds the columns of the query behind those that were written; a column of both keeps what was
/// written, in the query's place.
pub fn add_columns(table: &mut TableDefinition, query: &Prepared) -> Result<(), ExecError> {
    let columns = query.columns();
    for (number, column) in columns.iter().enumerate() {
        let same = |other: &ResultColumn| other.name.eq_ignore_ascii_case(&column.name);
        if columns[..number].iter().any(same) {
            return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&column.name]).into());
        }
        let written = table.column_position(&column.name);
        let mut made = match written {
            Some(at) => table.columns.remove(at),
            None => column_of(column, query),
        };
        made.id = 0;
        table.columns.push(made);
    }
    for (number, column) in table.columns.iter_mut().enumerate() {
        column.id = number as u32 + 1;
    }
    Ok(())
}

fn column_of(column: &ResultColumn, query: &Prepared) -> ColumnDefinition {
    let original = query.tables().iter().find_map(|entry| {
        let definition = entry.definition();
        let same = definition.schema == column.schema && definition.name == column.org_table;
        let at = definition.column_position(&column.org_name).filter(|_| same)?;
        Some(&definition.columns[at])
    });
    let nullable = column.result.nullable;
    let mut made = ColumnDefinition {
        id: 0,
        name: column.name.clone(),
        column_type: stored_type(column),
        nullable,
        default: if nullable { ColumnDefault::Null } else { ColumnDefault::None },
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        check: String::new(),
    };
    if let Some(original) = original {
        made.column_type = original.column_type;
        made.comment.clone_from(&original.comment);
        made.on_update_now = original.on_update_now;
        if made.nullable && !original.nullable {
            made.default = ColumnDefault::None;
        }
        let direct = reads_directly(query, column);
        let is_copied = match &original.default {
            ColumnDefault::None | ColumnDefault::Generated { .. } => false,
            // Its columns may be others here.
            ColumnDefault::Expression(text) => text.starts_with('(') && !text.contains('`'),
            _ => true,
        };
        if direct && is_copied {
            made.default = original.default.clone();
        }
        if direct && original.auto_increment {
            made.default = ColumnDefault::Constant(b"0".to_vec());
        }
    }
    made
}

/// Whether a column's table stands in the query's own FROM, not in that of a derived table.
fn reads_directly(query: &Prepared, column: &ResultColumn) -> bool {
    let Some(QueryPlan::Select(select)) = query_of(query) else { return false };
    select.tables.iter().any(|step| match &step.source {
        TableSource::Base(entry) => {
            // A derived table that was merged has left its table, not its name.
            entry.0.definition().name == column.org_table && step.alias == column.table
        }
        _ => false,
    })
}

/// The type of a column that holds values of an expression.
fn stored_type(column: &ResultColumn) -> ColumnType {
    let mut made = column.result.stored_in_column().column_type;
    made.unsigned &= !made.kind.is_string();
    match made.kind {
        TypeKind::Null => {
            made = ColumnType::text(TypeKind::Binary, 0, CollationId::BINARY);
        }
        TypeKind::VarChar | TypeKind::Char if made.length == 0 => made.kind = TypeKind::Char,
        // NULL of a derived table that was kept.
        TypeKind::Binary if made.length == 0 => {}
        kind if kind.is_string() && !kind.is_large() => {
            let binary = made.collation == CollationId::BINARY;
            made.kind = match (made.length > VARCHAR_CHARACTERS_MAX, binary) {
                (false, false) => TypeKind::VarChar,
                (false, true) => TypeKind::VarBinary,
                (true, false) => large(made.length, TypeKind::Text, TypeKind::MediumText),
                (true, true) => large(made.length, TypeKind::Blob, TypeKind::MediumBlob),
            };
        }
        _ => {}
    }
    made
}

fn large(length: u32, small: TypeKind, medium: TypeKind) -> TypeKind {
    if length > 65_535 { medium } else { small }
}

/// Fails with 1093 if the query reads the table that is to be replaced.
pub fn check_not_used(
    create: &CreateTable,
    schema: &str,
    query: &Prepared,
) -> Result<(), ExecError> {
    let name = &create.name.name;
    let used = query.tables().iter().any(|entry| {
        let other = entry.definition();
        let same = other.schema == schema && other.name == *name;
        same && entry.is_temporary() == create.temporary
    });
    if used {
        return Err(SqlError::new(&codes::UPDATE_TABLE_USED, &[name, &"CREATE"]).into());
    }
    Ok(())
}

/// Makes the table and inserts the query's rows: both or neither.
pub fn create_filled(
    context: &mut DdlContext<'_>,
    create: &CreateTable,
    definition: TableDefinition,
    query: CreateQuery<'_>,
) -> Result<(Arc<TableEntry>, Outcome), ExecError> {
    let (schema, name) = (definition.schema.clone(), definition.name.clone());
    let mut outcome = Outcome::default();
    if !create.temporary {
        let catalog = context.catalog.clone();
        let mut locks = std::mem::take(context.locks);
        let made = catalog.create_filled(&mut locks, definition, &mut |transaction, entry| {
            outcome = fill(context, create, transaction, entry, query)?;
            Ok::<(), ExecError>(())
        });
        *context.locks = locks;
        return made.map(|entry| (entry, outcome));
    }
    let entry = create_empty(context, true, definition)?;
    // The rows belong to the session's transaction: its snapshot would not see another one's.
    let Some(transaction) = context.transaction.take() else {
        return Err(SqlError::new(&codes::UNKNOWN_ERROR, &[]).into());
    };
    let savepoint = transaction.begin_statement();
    let filled = fill(context, create, transaction, &entry, query);
    let undone = match &filled {
        Err(error) if !error.transaction_ended => transaction.rollback_to(savepoint),
        _ => Ok(()),
    };
    context.transaction = Some(transaction);
    match filled {
        Ok(outcome) => Ok((entry, outcome)),
        Err(error) => {
            context.temporary.leave(&schema, &name);
            undone?;
            Err(error)
        }
    }
}

fn fill(
    context: &mut DdlContext<'_>,
    create: &CreateTable,
    transaction: &mut dyn Transaction,
    entry: &Arc<TableEntry>,
    made: CreateQuery<'_>,
) -> Result<Outcome, ExecError> {
    let (Some(query), Some(written)) = (query_of(made.plan), &create.query) else {
        return Ok(Outcome::default());
    };
    let definition = entry.definition();
    let checks = super::check::bound(context, definition)?;
    let columns = query.columns().iter();
    let columns: Vec<usize> =
        columns.filter_map(|column| definition.column_position(&column.name)).collect();
    let mut computed = super::computed::bind(context, definition)?;
    if let Some(computed) = &mut computed {
        computed.refused = plan::refused_columns(definition, &columns);
    }
    let plan = InsertPlan {
        view: None,
        check: None,
        target: EntryHandle(entry.clone()),
        columns,
        source: InsertRows::Query(query.clone()),
        replace: written.replace,
        ignore: written.ignore,
        on_duplicate: Vec::new(),
        returning: Vec::new(),
        returning_columns: Vec::new(),
        subqueries: None,
        foreign_keys: None,
        checks,
        computed,
    };
    let mut exec = Exec {
        eval: &mut *context.eval,
        transaction,
        catalog: context.catalog,
        user: made.user,
        session: made.session,
        memory: context.memory,
        spill: made.spill,
        cancel: context.cancel,
        count_matched: false,
        auto_increment_increment: 1,
        auto_increment_offset: 1,
        select_limit: u64::MAX,
        profile: None,
        is_autocommit: false,
        input: None,
        recursion_limit: made.recursion_limit,
        recursions: Recursions::default(),
    };
    insert::run(&mut exec, &plan, &mut NoRows)
}
