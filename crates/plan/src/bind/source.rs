//! Columns of its SELECT in ON DUPLICATE KEY UPDATE.
//!
//! A name that the target does not have is looked for in the tables of the SELECT: the statement
//! is bound once more with that column behind those that are inserted. As in MariaDB only a SELECT
//! without grouping has such columns; one with DISTINCT would have other rows with them.

use super::{Binder, Clause};
use crate::context::PlanContext;
use crate::physical::{InsertPlan, InsertRows, QueryPlan};
use expr::ResultType;
use syntax::ast::{self, ColumnName, InsertSource, QueryBody, SelectItem};
use types::{SqlError, codes};

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct SourceColumns {
    names: Vec<ColumnName>,
    /// Their types, once the SELECT is bound.
    results: Vec<ResultType>,
    /// Position of the first.
    first_position: usize,
    /// What was looked for in vain.
    missing: Option<ColumnName>,
}

impl SourceColumns {
    /// Position and type of a column.
    pub(super) fn find(&mut self, name: &ColumnName) -> Option<(usize, ResultType)> {
        match self.names.iter().position(|known| known == name) {
            Some(at) => self.results.get(at).map(|result| (self.first_position + at, *result)),
            None => {
                self.missing = Some(name.clone());
                None
            }
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The SELECT is bound: its columns behind the first `inserted` are these.
    pub(super) fn settle(&mut self, plan: &QueryPlan, inserted: usize, first_position: usize) {
        self.results = plan.columns()[inserted..].iter().map(|column| column.result).collect();
        self.first_position = first_position;
    }
}

/// The SELECT that has columns for ON DUPLICATE KEY UPDATE.
fn source_of(insert: &mut ast::Insert) -> Option<&mut ast::Select> {
    let InsertSource::Query(query) = &mut insert.source else { return None };
    let QueryBody::Select(select) = &mut query.body else { return None };
    (!select.options.distinct && select.group_by.is_empty()).then_some(select)
}

/// Binds an INSERT, and what it is bound with.
pub(crate) fn bind_with_source<T>(
    insert: &ast::Insert,
    context: &mut PlanContext<'_>,
    finish: impl FnOnce(Binder<'_, '_, '_>, InsertPlan) -> T,
) -> Result<T, SqlError> {
    let mut extended = insert.clone();
    let mut names: Vec<ColumnName> = Vec::new();
    let mut unknown = None;
    loop {
        let mut binder = Binder::new(context);
        binder.source.names.clone_from(&names);
        let error = match binder.bind_insert(&extended) {
            Ok(plan) => {
                let is_grouped = matches!(&plan.source,
                    InsertRows::Query(QueryPlan::Select(select)) if select.aggregate.is_some());
                return match unknown.filter(|_| is_grouped) {
                    Some(error) => Err(error),
                    None => Ok(finish(binder, plan)),
                };
            }
            Err(error) => error,
        };
        let missing = binder.source.missing.take();
        drop(binder);
        if let Some(name) = names.last()
            && error.is(&codes::NON_UNIQ_ERROR)
        {
            let clause = Clause::OnDuplicate.name();
            return Err(SqlError::new(&codes::NON_UNIQ_ERROR, &[name, &clause]));
        }
        if !error.is(&codes::BAD_FIELD_ERROR) {
            return Err(error);
        }
        let (Some(name), Some(select)) = (missing, source_of(&mut extended)) else {
            return Err(unknown.unwrap_or(error));
        };
        let expression = ast::Expression::Column(name.clone());
        let text = name.to_string();
        select.items.push(SelectItem::Expression { expression, alias: None, text });
        names.push(name);
        unknown = Some(error);
    }
}
