//! UNION, EXCEPT, INTERSECT and VALUES.

use super::order::Ordered;
use super::query::Tail;
use super::*;
use crate::physical::{
    BlockEstimate, LimitPlan, QueryPlan, ResultColumn, SelectPlan, SetOperation, SetPlan, SortKey,
};
use engine_api::{LockMode, LockWait};
use types::Value;

impl<'q> Binder<'_, '_, 'q> {
    /// A chain of set operations, from left to right.
    pub(super) fn bind_set(
        &mut self,
        first: &'q ast::QueryBody,
        members: &'q [ast::SetMember],
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        let takes_conditions = self.depth > 0 && tail.limit.is_none();
        let first = self.bind_body(first, Tail::NONE, outer)?;
        let mut branches = vec![self.unplanned.take()];
        let mut rest = Vec::with_capacity(members.len());
        for member in members {
            let operation = set_operation(member.operator, member.all)?;
            let query = self.bind_body(&member.body, Tail::NONE, outer)?;
            branches.push(self.unplanned.take());
            if query.columns().len() != first.columns().len() {
                return Err(SqlError::new(&codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            rest.push((operation, query));
        }
        let plan = self.finish_set(first, rest, tail)?;
        self.branches.clear();
        if takes_conditions && branches.iter().any(Option::is_some) {
            let columns = plan.columns();
            for branch in branches.iter_mut().flatten() {
                self.convert_select(&mut Arc::make_mut(branch).plan, columns, &[])?;
            }
            self.branches = branches;
        }
        Ok(plan)
    }

    /// Puts a set plan together: common types, ORDER BY, LIMIT.
    pub(super) fn finish_set(
        &mut self,
        first: QueryPlan,
        rest: Vec<(SetOperation, QueryPlan)>,
        tail: Tail<'q>,
    ) -> Result<QueryPlan> {
        let (mut first, mut rest) = (first, rest);
        let mut columns = first.columns().to_vec();
        let is_kept = !tail.order_by.is_empty()
            || rest.iter().any(|(operation, _)| *operation == SetOperation::Union);
        for (position, column) in columns.iter_mut().enumerate() {
            let all = std::iter::once(&first).chain(rest.iter().map(|(_, query)| query));
            let types: Vec<ResultType> = all.map(|q| q.columns()[position].result).collect();
            if types.len() > 1 {
                let common = self.common_type(&types)?;
                let nullable = types.iter().any(|result| result.nullable);
                column.result = common.with_nullable(nullable);
                column.org_name.clear();
                column.table.clear();
                column.org_table.clear();
                column.schema.clear();
                column.flags = 0;
                if is_kept {
                    super::select::describe_as_kept(column);
                }
            }
        }
        let refusals = self.union_refusals(&first, &rest);
        let queries = std::iter::once(&mut first).chain(rest.iter_mut().map(|(_, query)| query));
        let mut queries = queries;
        queries.try_for_each(|query| self.convert(query, &columns, &refusals))?;
        let (order_by, sort_values) = self.bind_set_order(tail.order_by, &columns)?;
        self.push_block()?;
        let limit = self.bind_limit(tail.limit);
        self.pop_block();
        let (limit, recursion) = (limit?, None);
        let set = SetPlan { first, rest, sort_values, order_by, limit, columns, recursion };
        Ok(QueryPlan::Set(Box::new(set)))
    }

    /// The type that values of all these types have together, as UNION decides it.
    fn common_type(&self, types: &[ResultType]) -> Result<ResultType> {
        self.builder().union_type(types)
    }

    /// The errors of the columns of several character sets, should their texts have to be
    /// converted and cannot be.
    fn union_refusals(
        &self,
        first: &QueryPlan,
        rest: &[(SetOperation, QueryPlan)],
    ) -> Vec<Option<SqlError>> {
        let all = || std::iter::once(first).chain(rest.iter().map(|(_, query)| query));
        let columns = 0..first.columns().len();
        let types = columns.map(|position| {
            all().map(|query| query.columns()[position].result).collect::<Vec<ResultType>>()
        });
        let charset = |result: &ResultType| result.collation().charset();
        let is_mixed = |types: &Vec<ResultType>| {
            let mut texts = types.iter().filter(|result| result.is_string());
            let one = texts.next().map(charset);
            texts.any(|other| Some(charset(other)) != one)
        };
        let refusal = |types: &Vec<ResultType>| self.builder().union_refusal(types);
        types.map(|types| is_mixed(&types).then(|| refusal(&types))).collect()
    }

    /// Makes a query give values of the columns' types; `refusals` are the errors of those that
    /// cannot be converted.
    fn convert(
        &self,
        query: &mut QueryPlan,
        columns: &[ResultColumn],
        refusals: &[Option<SqlError>],
    ) -> Result<()> {
        match query {
            QueryPlan::Select(select) => self.convert_select(select, columns, refusals),
            QueryPlan::Set(set) => {
                self.convert(&mut set.first, columns, refusals)?;
                for (_, query) in &mut set.rest {
                    self.convert(query, columns, refusals)?;
                }
                for (own, column) in set.columns.iter_mut().zip(columns) {
                    own.result = column.result;
                }
                Ok(())
            }
        }
    }

    fn convert_select(
        &self,
        select: &mut SelectPlan,
        columns: &[ResultColumn],
        refusals: &[Option<SqlError>],
    ) -> Result<()> {
        for (position, (value, column)) in select.projection.iter_mut().zip(columns).enumerate() {
            if value.result.column_type == column.result.column_type && !value.may_exceed_its_type()
            {
                continue;
            }
            let taken = std::mem::replace(value, self.builder().null());
            let refusal = refusals.get(position).and_then(Option::as_ref);
            let refused = |error: SqlError| match refusal {
                Some(refusal) if error.is(&codes::CANT_AGGREGATE_2COLLATIONS) => refusal.clone(),
                _ => error,
            };
            *value = self.converted(taken, column.result).map_err(refused)?;
            if let Some(refusal) = refusal {
                value.for_each_child_mut(&mut |child| child.refuse_with(refusal));
            }
        }
        for (own, column) in select.columns.iter_mut().zip(columns) {
            own.result = column.result;
        }
        Ok(())
    }

    /// `CASE WHEN TRUE THEN value ELSE (a NULL of the wanted type) END`: CASE converts text, dates
    /// and times; numbers are stored.
    fn converted(&self, value: Expr, result: ResultType) -> Result<Expr> {
        let builder = self.builder();
        let mut value = value;
        // The column of a union knows that a variable has no sign.
        value.result.is_variable &= !value.result.column_type.unsigned;
        let kind = result.column_type.kind;
        let from = value.result.column_type.kind;
        if (kind.is_number() || kind.is_string()) && from.is_number() {
            return Ok(value.stored(result));
        }
        let other = builder.computed(Value::Null, result);
        let mut case = builder.case(None, vec![(builder.boolean(true), value)], Some(other))?;
        case.result = result;
        Ok(case)
    }

    /// ORDER BY of a set operation, over its columns: the keys, and the values that are no columns.
    fn bind_set_order(
        &mut self,
        items: &'q [ast::OrderItem],
        columns: &[ResultColumn],
    ) -> Result<(Vec<SortKey>, Vec<Expr>)> {
        self.push_block()?;
        let builder = self.builder();
        let values: Vec<Expr> = columns
            .iter()
            .enumerate()
            .map(|(position, column)| builder.column(position, column.result, column.name.as_str()))
            .collect();
        let block = self.block();
        block.aliases = columns
            .iter()
            .zip(&values)
            .map(|(column, value)| Alias { name: column.name.clone(), expr: value.clone() })
            .collect();
        let mut keys = Vec::with_capacity(items.len());
        let mut others = Vec::new();
        let mut outcome = Ok(());
        for item in items {
            let descending = item.descending;
            match self.bind_order_item(&item.expression, Clause::OrderBy, &values) {
                Ok(Ordered::Item(position)) => {
                    keys.push(SortKey { position, descending });
                }
                Ok(Ordered::Nothing) => {}
                Ok(Ordered::Value(value)) => {
                    keys.push(SortKey { position: columns.len() + others.len(), descending });
                    others.push(value);
                }
                Err(error) => outcome = Err(error),
            }
        }
        let block = self.pop_block();
        if !block.applies.is_empty() || !block.aggregates.is_empty() {
            outcome = Err(unsupported("subqueries and aggregates in ORDER BY of a UNION"));
        }
        outcome.map(|()| (keys, others))
    }

    /// VALUES (..), (..) as a query: a UNION ALL of selects without tables.
    pub(super) fn bind_values_rows(
        &mut self,
        rows: &'q [Vec<ast::Expression>],
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
    ) -> Result<QueryPlan> {
        let mut queries = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != rows[0].len() {
                return Err(SqlError::new(&codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
            }
            queries.push(QueryPlan::Select(Box::new(self.bind_row(row, outer)?)));
        }
        let mut queries = queries.into_iter();
        let Some(first) = queries.next() else { return Err(unsupported("VALUES without rows")) };
        let rest = queries.map(|query| (SetOperation::UnionAll, query)).collect();
        self.finish_set(first, rest, tail)
    }
}

fn set_operation(operator: ast::SetOperator, all: bool) -> Result<SetOperation> {
    match (operator, all) {
        (ast::SetOperator::Union, true) => Ok(SetOperation::UnionAll),
        (ast::SetOperator::Union, false) => Ok(SetOperation::Union),
        (ast::SetOperator::Except, false) => Ok(SetOperation::Except),
        (ast::SetOperator::Intersect, false) => Ok(SetOperation::Intersect),
        (ast::SetOperator::Except, true) => Ok(SetOperation::ExceptAll),
        (ast::SetOperator::Intersect, true) => Ok(SetOperation::IntersectAll),
    }
}

/// A block with a projection and nothing else.
pub(crate) fn empty_select(projection: Vec<Expr>, columns: Vec<ResultColumn>) -> SelectPlan {
    SelectPlan {
        outer_columns: 0,
        frame_columns: 0,
        constant_filter: None,
        constant_applies: Vec::new(),
        tables: Vec::new(),
        aggregate: None,
        having: None,
        window: None,
        projection,
        distinct: false,
        order_by: Vec::new(),
        in_order: false,
        equal_are_neighbours: false,
        limit: LimitPlan::default(),
        calculate_found_rows: false,
        lock: LockMode::None,
        lock_wait: LockWait::Wait,
        columns,
        estimate: BlockEstimate { rows: 1.0, cost: 0.0 },
        value_shares: Vec::new(),
    }
}
