//! Queries: WITH, set operations, and what applies to the whole.

use super::*;
use crate::physical::{LimitPlan, QueryPlan};
use engine_api::{LockMode, LockWait};

/// What a query's tail adds to its one block, or to its set operation.
#[derive(Clone, Copy)]
pub(super) struct Tail<'q> {
    pub order_by: &'q [ast::OrderItem],
    pub limit: Option<&'q ast::Limit>,
    pub locking: Option<ast::Locking>,
}

impl<'q> Binder<'_, '_, 'q> {
    /// A query that stands in no block.
    pub(crate) fn bind_query(&mut self, query: &'q ast::Query) -> Result<QueryPlan> {
        let mut outer = Vec::new();
        let plan = self.bind_query_with(query, &mut outer)?;
        debug_assert!(outer.is_empty(), "nothing encloses the query");
        Ok(plan)
    }

    /// A query; the positions of the enclosing block that it reads are added to `outer`.
    pub(super) fn bind_query_with(
        &mut self,
        query: &'q ast::Query,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        if query.into.is_some() {
            return Err(unsupported("SELECT ... INTO"));
        }
        let common = self.common.len();
        if let Some(with) = &query.with {
            for table in &with.tables {
                let visible = self.common.len();
                let recursive = with.recursive && super::recursive::reads_itself(table);
                self.common.push(CommonTableScope { table, visible, recursive });
            }
        }
        let tail =
            Tail { order_by: &query.order_by, limit: query.limit.as_ref(), locking: query.locking };
        let plan = self.bind_body(&query.body, tail, outer);
        self.common.truncate(common);
        plan
    }

    pub(super) fn bind_body(
        &mut self,
        body: &'q ast::QueryBody,
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        let request = self.forms_request.take();
        if let ast::QueryBody::Select(select) = body {
            let plan = self.bind_select(select, tail, outer, request)?;
            self.branches.clear();
            return Ok(QueryPlan::Select(Box::new(plan)));
        }
        if let ast::QueryBody::Nested(query) = body
            && tail.is_empty()
        {
            self.forms_request = request;
            return self.bind_query_with(query, outer);
        }
        let plan = self.bind_combined(body, tail, outer);
        self.unplanned = None;
        plan
    }

    /// A body that is more than one block.
    fn bind_combined(
        &mut self,
        body: &'q ast::QueryBody,
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        match body {
            ast::QueryBody::Select(select) => {
                let plan = self.bind_select(select, tail, outer, None)?;
                Ok(QueryPlan::Select(Box::new(plan)))
            }
            ast::QueryBody::Set { first, rest } => self.bind_set(first, rest, tail, outer),
            ast::QueryBody::Nested(query) => self.bind_nested(query, tail, outer),
            ast::QueryBody::Values(rows) => self.bind_values_rows(rows, tail, outer),
        }
    }

    /// `(query) ORDER BY ... LIMIT ...`: the inner query's own tail wins where it has one.
    fn bind_nested(
        &mut self,
        query: &'q ast::Query,
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        if query.order_by.is_empty() && query.limit.is_none() && query.with.is_none() {
            return self.bind_body(&query.body, tail, outer);
        }
        let first = self.bind_query_with(query, outer)?;
        self.branches.clear();
        self.finish_set(first, Vec::new(), tail)
    }

    /// The place of a table of WITH among those that can be named here.
    pub(super) fn common_table(&self, name: &str) -> Option<usize> {
        self.common.iter().rposition(|scope| scope.table.name == name)
    }

    /// A table of WITH by name, planned where it is used.
    pub(super) fn bind_common_table(&mut self, name: &str) -> Result<Option<QueryPlan>> {
        let Some(found) = self.common_table(name) else { return Ok(None) };
        let scope = self.common[found].clone();
        let hidden = self.common.split_off(scope.visible);
        let outside = std::mem::take(&mut self.blocks);
        let plan = match scope.recursive {
            true => self.bind_recursive(scope.table),
            false => self.bind_query(&scope.table.query),
        };
        self.blocks = outside;
        self.common.extend(hidden);
        let mut plan = plan?;
        let names = &scope.table.columns;
        if !names.is_empty() {
            if names.len() != plan.columns().len() {
                return Err(SqlError::new(&codes::WITH_COL_WRONG_LIST, &[]));
            }
            for (column, name) in plan.columns_mut().iter_mut().zip(names) {
                column.name.clone_from(name);
            }
        }
        Ok(Some(plan))
    }

    /// LIMIT: literals and parameters.
    pub(super) fn bind_limit(&mut self, limit: Option<&'q ast::Limit>) -> Result<LimitPlan> {
        let Some(limit) = limit else { return Ok(LimitPlan::default()) };
        if limit.rows_examined.is_some() {
            return Err(unsupported("LIMIT ROWS EXAMINED"));
        }
        if limit.with_ties {
            return Err(unsupported("FETCH ... WITH TIES"));
        }
        let count = limit.count.as_ref().map(|count| self.bind_scalar(count)).transpose()?;
        let offset = limit.offset.as_ref().map(|offset| self.bind_scalar(offset)).transpose()?;
        Ok(LimitPlan { count, offset })
    }
}

impl Tail<'_> {
    /// Nothing applies.
    pub(super) const NONE: Self = Self { order_by: &[], limit: None, locking: None };

    fn is_empty(&self) -> bool {
        self.order_by.is_empty() && self.limit.is_none() && self.locking.is_none()
    }
}

/// The row locks that a locking clause asks for.
pub(super) fn lock_of(locking: Option<ast::Locking>) -> (LockMode, LockWait) {
    let Some(locking) = locking else { return (LockMode::None, LockWait::Wait) };
    let mode = if locking.exclusive { LockMode::Exclusive } else { LockMode::Shared };
    let wait = match locking.wait {
        ast::LockingWait::NoWait | ast::LockingWait::Seconds(0) => LockWait::NoWait,
        ast::LockingWait::SkipLocked => LockWait::SkipLocked,
        ast::LockingWait::Seconds(seconds) => {
            LockWait::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX))
        }
        ast::LockingWait::Default => LockWait::Wait,
    };
    (mode, wait)
}
