//! The room's doors.

use crate::bind::source::bind_with_source;
use crate::bind::{Binder, Clause, ColumnList, NamedColumn, NamedTable, unsupported};
use crate::context::PlanContext;
use crate::optimize::ValueShare;
use crate::physical::{InsertRows, Plan, QueryPlan, ResultColumn};
use catalog::TableEntry;
use expr::Expr;
use std::sync::Arc;
use syntax::ast::{Expression, InsertSource, Statement};
use types::{SqlError, Value};

/// A plan with what it depends on.
#[derive(Clone)]
pub struct Prepared {
    plan: Plan,
    tables: Vec<Arc<TableEntry>>,
    is_reusable: bool,
    /// What its choice depends on, of the statement's own block.
    value_shares: Box<[ValueShare]>,
    is_described_by_values: bool,
}

impl Prepared {
    /// What the executor runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Columns of the result; none for changes.
    pub fn columns(&self) -> &[ResultColumn] {
        match &self.plan {
            Plan::Query(query) => query.columns(),
            Plan::Insert(insert) => &insert.returning_columns,
            Plan::Delete(delete) => &delete.returning_columns,
            Plan::Update(_) | Plan::UpdateJoin(_) | Plan::DeleteJoin(_) => &[],
        }
    }

    /// The engine's tables that it reads or changes.
    pub fn tables(&self) -> &[Arc<TableEntry>] {
        &self.tables
    }

    /// It changes rows.
    pub fn is_change(&self) -> bool {
        !matches!(self.plan, Plan::Query(_))
    }

    /// It reads and changes nothing.
    pub fn uses_no_table(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether it was chosen for values like these.
    pub fn fits_values(&self, values: &[Value]) -> bool {
        self.value_shares.iter().all(|share| share.fits(values))
    }

    /// Whether another plan of the statement was chosen for values like its own.
    pub fn is_for_values_of(&self, other: &Self) -> bool {
        let (own, others) = (&self.value_shares, &other.value_shares);
        own.len() == others.len() && own.iter().zip(others).all(|(one, other)| one.is_like(other))
    }

    /// What it says of its columns depends on the values of parameters: it has to be planned for
    /// those of each execution.
    pub fn is_described_by_values(&self) -> bool {
        self.is_described_by_values
    }

    /// It may be run again: it holds no value of a variable. Its tables, the settings, the
    /// default database and the types of the parameters are the caller's to compare.
    pub fn is_reusable(&self) -> bool {
        self.is_reusable
    }
}

/// Cost from which planning once more with the values is worth it.
const COSTLY: f64 = 2000.0;

impl Prepared {
    /// A query that reads much and that could be read in several ways: a plan made without the
    /// values of its parameters may be a bad one for some of them.
    pub fn depends_on_values(&self) -> bool {
        let Plan::Query(QueryPlan::Select(select)) = &self.plan else { return false };
        let has_choice = match &select.tables[..] {
            [] => false,
            [one] => one.possible_keys.len() > 1,
            _ => true,
        };
        has_choice && select.estimate.cost > COSTLY
    }
}

/// Plans SELECT, INSERT, REPLACE, UPDATE, DELETE. Other statements are the session's own.
pub fn prepare(statement: &Statement, context: &mut PlanContext<'_>) -> Result<Prepared, SqlError> {
    if let Statement::Insert(insert) = statement
        && !insert.on_duplicate.is_empty()
        && matches!(insert.source, InsertSource::Query(_))
    {
        return bind_with_source(insert, context, |binder, plan| {
            prepared(binder, Plan::Insert(Box::new(plan)))
        });
    }
    let mut binder = Binder::new(context);
    let plan = match statement {
        Statement::Query(query) => Plan::Query(binder.bind_query(query)?),
        Statement::Insert(insert) => Plan::Insert(Box::new(binder.bind_insert(insert)?)),
        Statement::LoadData(load) => Plan::Insert(Box::new(binder.bind_load(load)?)),
        Statement::Update(update) => binder.bind_update(update)?,
        Statement::Delete(delete) => binder.bind_delete(delete)?,
        other => return Err(unsupported(other.feature())),
    };
    Ok(prepared(binder, plan))
}

fn prepared(binder: Binder<'_, '_, '_>, plan: Plan) -> Prepared {
    let is_described_by_values = binder.described && matches!(plan, Plan::Query(_));
    let is_reusable = binder.reusable && !is_described_by_values && is_small(&plan);
    let value_shares = value_shares(&plan).into();
    let tables = entries(binder);
    Prepared { plan, tables, is_reusable, value_shares, is_described_by_values }
}

fn value_shares(plan: &Plan) -> Vec<ValueShare> {
    let select = match plan {
        Plan::Query(QueryPlan::Select(select)) => select,
        Plan::Update(update) => &update.select,
        Plan::Delete(delete) => &delete.select,
        _ => return Vec::new(),
    };
    select.value_shares.clone()
}

/// Rows of one INSERT above which its plan is not worth keeping.
const KEPT_ROWS_MAX: usize = 1000;

fn is_small(plan: &Plan) -> bool {
    match plan {
        Plan::Insert(insert) => match &insert.source {
            InsertRows::Values(rows) => rows.len() <= KEPT_ROWS_MAX,
            InsertRows::Literals(_) => false,
            InsertRows::Query(_) | InsertRows::File(_) => true,
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
    let mut binder = Binder::new(context);
    let plan = Plan::Query(binder.bind_row_query(expressions)?);
    Ok(Prepared {
        plan,
        tables: entries(binder),
        is_reusable: false,
        is_described_by_values: false,
        value_shares: Box::default(),
    })
}

fn entries(binder: Binder<'_, '_, '_>) -> Vec<Arc<TableEntry>> {
    binder.entries.into_iter().map(|entry| entry.0).collect()
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
    });
    let columns = ColumnList::Listed(named.collect());
    let table = NamedTable::new(String::new(), String::new(), 0, columns);
    let block = binder.block();
    block.columns = table.width();
    block.clause = Clause::Where;
    block.tables.push(table);
    let bound = binder.bind_value(expression)?;
    let block = binder.pop_block();
    if !block.applies.is_empty() {
        return Err(unsupported("a subquery here"));
    }
    Ok(bound)
}
