//! The room's doors.

use crate::bind::{Binder, Clause, NamedColumn, NamedTable, unsupported};
use crate::context::PlanContext;
use crate::physical::{EntryHandle, InsertRows, Plan, ResultColumn};
use catalog::{Catalog, MetadataLockSet};
use expr::{Expr, ResultType};
use syntax::ast::{Expression, Statement};
use types::SqlError;

/// A plan with what it depends on.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What `exec` runs.
    pub plan: Plan,
    /// Types that were assumed for the parameters.
    pub parameter_types: Vec<ResultType>,
    /// The catalog's version when the plan was made.
    pub catalog_version: u64,
    /// Tables of the engine that it reads or changes.
    pub tables: Vec<EntryHandle>,
    /// May be run again: it holds no value of a variable. (Settings such as sql_mode,
    /// collation_connection and the default database are the session's to compare.)
    pub reusable: bool,
}

impl Prepared {
    /// The result set's columns; empty if the statement has none.
    pub fn columns(&self) -> &[ResultColumn] {
        match &self.plan {
            Plan::Query(query) => query.columns(),
            Plan::Insert(insert) => &insert.returning_columns,
            Plan::Update(_) | Plan::Delete(_) => &[],
        }
    }

    /// Whether the statement only reads and locks nothing.
    pub fn is_query(&self) -> bool {
        matches!(self.plan, Plan::Query(_))
    }

    /// Takes the shared metadata locks of the tables for another execution. False if a
    /// definition has changed meanwhile: the statement must be prepared again.
    pub fn lock_tables(
        &self,
        catalog: &Catalog,
        locks: &mut MetadataLockSet,
    ) -> Result<bool, SqlError> {
        for table in &self.tables {
            let definition = table.0.definition();
            let lock = catalog.lock(&definition.schema, &definition.name);
            locks.acquire(&lock, catalog::LockKind::Shared)?;
            if !table.0.is_current() {
                return Ok(false);
            }
        }
        Ok(catalog.version() == self.catalog_version)
    }

    /// Whether values of these types fit the plan.
    pub fn fits(&self, parameters: &[ResultType]) -> bool {
        self.parameter_types.len() == parameters.len()
            && self.parameter_types.iter().zip(parameters).all(|(a, b)| {
                a.column_type.kind == b.column_type.kind
                    && a.column_type.unsigned == b.column_type.unsigned
                    && a.column_type.scale == b.column_type.scale
                    && a.column_type.collation == b.column_type.collation
            })
    }
}

/// Plans SELECT, INSERT, REPLACE, UPDATE, DELETE. Other statements are the session's own.
pub fn prepare(statement: &Statement, context: &mut PlanContext<'_>) -> Result<Prepared, SqlError> {
    let catalog_version = context.catalog.version();
    let parameter_types = context.parameters.to_vec();
    let mut binder = Binder::new(context);
    let plan = match statement {
        Statement::Query(query) => Plan::Query(binder.bind_query(query)?),
        Statement::Insert(insert) => Plan::Insert(Box::new(binder.bind_insert(insert)?)),
        Statement::Update(update) => Plan::Update(Box::new(binder.bind_update(update)?)),
        Statement::Delete(delete) => Plan::Delete(Box::new(binder.bind_delete(delete)?)),
        other => return Err(unsupported(other.feature())),
    };
    let tables = std::mem::take(&mut binder.entries);
    let reusable = binder.reusable && is_small(&plan);
    Ok(Prepared { plan, parameter_types, catalog_version, tables, reusable })
}

/// Rows of one INSERT above which its plan is not worth keeping.
const KEPT_ROWS_MAX: usize = 1000;

fn is_small(plan: &Plan) -> bool {
    match plan {
        Plan::Insert(insert) => match &insert.source {
            InsertRows::Values(rows) => rows.len() <= KEPT_ROWS_MAX,
            InsertRows::Query(_) => true,
        },
        _ => true,
    }
}

/// Binds an expression without tables: SET, KILL, EXECUTE ... USING. A subquery is error 1235;
/// [`select_values`] takes them.
pub fn constant(expression: &Expression, context: &mut PlanContext<'_>) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(context);
    binder.push_block()?;
    binder.block().clause = Clause::Where;
    let bound = binder.bind_value(expression)?;
    let block = binder.pop_block();
    if !block.applies.is_empty() {
        return Err(unsupported("a subquery here"));
    }
    Ok(bound)
}

/// A query of one row with the values of expressions, which may have subqueries.
pub fn select_values(
    expressions: &[Expression],
    context: &mut PlanContext<'_>,
) -> Result<Prepared, SqlError> {
    let catalog_version = context.catalog.version();
    let parameter_types = context.parameters.to_vec();
    let mut binder = Binder::new(context);
    let plan = Plan::Query(binder.bind_row_query(expressions)?);
    let tables = std::mem::take(&mut binder.entries);
    Ok(Prepared { plan, parameter_types, catalog_version, tables, reusable: false })
}

/// Binds a condition over rows of the given columns, by position: SHOW ... WHERE.
pub fn filter(
    expression: &Expression,
    columns: &[ResultColumn],
    context: &mut PlanContext<'_>,
) -> Result<Expr, SqlError> {
    let mut binder = Binder::new(context);
    binder.push_block()?;
    let named = columns.iter().map(|column| NamedColumn {
        name: column.name.clone(),
        result: column.result,
        printed: format!("`{}`", column.name).into(),
        org_name: column.name.clone(),
        org_table: column.org_table.clone(),
        schema: column.schema.clone(),
        flags: 0,
        hidden: false,
    });
    let columns: Vec<NamedColumn> = named.collect();
    let block = binder.block();
    block.columns = columns.len();
    block.clause = Clause::Where;
    block.tables.push(NamedTable {
        alias: String::new(),
        schema: String::new(),
        first: 0,
        columns,
    });
    let bound = binder.bind_value(expression)?;
    let block = binder.pop_block();
    if !block.applies.is_empty() {
        return Err(unsupported("a subquery here"));
    }
    Ok(bound)
}
