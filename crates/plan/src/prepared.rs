//! The planner's entry points.

use crate::PlanContext;
use crate::physical::{Plan, ResultColumn};
use catalog::TableEntry;
use expr::{EvalContext, Expr};
use std::sync::Arc;
use syntax::ast::{Expression, Statement};
use types::{SqlError, Value, codes};

/// A plan with what it was made from.
pub struct Prepared {
    plan: Plan,
    tables: Vec<Arc<TableEntry>>,
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
            Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_) => &[],
        }
    }

    /// The engine's tables that it reads or changes.
    pub fn tables(&self) -> &[Arc<TableEntry>] {
        &self.tables
    }

    /// It reads and changes nothing.
    pub fn uses_no_table(&self) -> bool {
        self.tables.is_empty()
    }
}

fn unsupported<T>(feature: &str) -> Result<T, SqlError> {
    Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature]))
}

/// Plans a statement.
pub fn prepare(statement: &Statement, _: &mut PlanContext<'_>) -> Result<Prepared, SqlError> {
    unsupported(statement.feature())
}

/// Binds an expression without tables.
pub fn constant(_: &Expression, _: &mut PlanContext<'_>) -> Result<Expr, SqlError> {
    unsupported("an expression")
}

/// Binds a condition over given columns.
pub fn filter(
    _: &Expression,
    _: &[ResultColumn],
    _: &mut PlanContext<'_>,
) -> Result<Expr, SqlError> {
    unsupported("SHOW ... WHERE")
}

/// Columns and rows of EXPLAIN.
pub fn explain(
    _: &Prepared,
    _: &EvalContext,
) -> Result<(Vec<ResultColumn>, Vec<Vec<Value>>), SqlError> {
    unsupported("EXPLAIN")
}
