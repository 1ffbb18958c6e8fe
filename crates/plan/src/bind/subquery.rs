//! Subqueries in expressions: each becomes an [`Apply`] of the block and stands in the
//! expression as a column from [`APPLY`] on.

use super::expression::compare_operator;
use super::*;
use crate::physical::{ApplyKind, QueryPlan};
use expr::{Coercibility, CompareOperator, CompareRule, ExprKind};

/// It is a row of values without conditions.
fn has_one_row(query: &ast::Query) -> bool {
    let ast::QueryBody::Select(select) = &query.body else { return false };
    select.from.is_empty()
        && select.filter.is_none()
        && select.having.is_none()
        && query.limit.is_none()
}

impl<'q> Binder<'_, '_, 'q> {
    /// Binds the query in a block of its own; the positions of this block that it reads.
    fn bind_inner(&mut self, query: &'q ast::Query) -> Result<(QueryPlan, Vec<usize>)> {
        let clause = self.block().clause;
        let in_aggregate = std::mem::take(&mut self.block().in_aggregate);
        let mut outer = Vec::new();
        let plan = self.bind_query_with(query, &mut outer);
        self.block().clause = clause;
        self.block().in_aggregate = in_aggregate;
        Ok((plan?, outer))
    }

    fn add_apply(
        &mut self,
        kind: ApplyKind,
        (query, outer_positions): (QueryPlan, Vec<usize>),
        result: ResultType,
    ) -> Expr {
        let applies = &mut self.block().applies;
        let name = format!("subquery#{}", applies.len());
        let position = APPLY + applies.len();
        applies.push(Apply { position, kind, outer_positions, query, is_late: false });
        self.builder().column(position, result, name)
    }

    pub(super) fn bind_scalar_subquery(&mut self, query: &'q ast::Query) -> Result<Expr> {
        let mut inner = self.bind_inner(query)?;
        if let (QueryPlan::Select(select), false) = (&mut inner.0, has_one_row(query))
            && let [value, ..] = &mut select.projection[..]
        {
            let taken = std::mem::replace(value, self.builder().null());
            *value = taken.kept();
        }
        let columns = inner.0.columns();
        if columns.len() != 1 {
            return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1]));
        }
        let nullable = columns[0].result.nullable || !has_one_row(query);
        let mut result = columns[0].result.of_expression().with_nullable(nullable);
        let tableless = match &inner.0 {
            QueryPlan::Select(select) if select.tables.is_empty() => select.projection.first(),
            _ => None,
        };
        // What is selected from a table is no constant, and a variable alone has its own digits.
        result.is_computed = tableless.is_none();
        result.is_variable =
            tableless.is_some_and(|it| matches!(it.kind, ExprKind::UserVariable(_)));
        if result.is_computed && !columns[0].result.is_column {
            result = match &inner.0 {
                QueryPlan::Select(_) => result.with_length_of_digits(),
                QueryPlan::Set(_) => result.with_room_for_sign(),
            };
        }
        Ok(self.add_apply(ApplyKind::Scalar, inner, result))
    }

    pub(super) fn bind_exists(&mut self, query: &'q ast::Query) -> Result<Expr> {
        self.request_forms(&[]);
        let mut inner = self.bind_inner(query)?;
        if let QueryPlan::Select(select) = &mut inner.0 {
            self.select_nothing(select);
        }
        let forms = self.forms.take();
        // As text it is bytes, of the strength of a literal.
        let coercibility = Coercibility::Coercible;
        let result = ResultType { coercibility, ..ResultType::boolean(false) };
        let value = self.add_apply(ApplyKind::Exists, inner, result);
        self.keep_forms(forms);
        Ok(value)
    }

    /// EXISTS does not compute what is selected.
    fn select_nothing(&mut self, select: &mut crate::physical::SelectPlan) {
        if select.distinct || !select.order_by.is_empty() || select.aggregate.is_some() {
            return;
        }
        let builder = self.builder();
        for value in &mut select.projection {
            if !matches!(value.kind, ExprKind::Column { .. }) {
                *value = builder.boolean(true);
            }
        }
    }

    pub(super) fn bind_in_subquery(
        &mut self,
        operand: &'q ast::Expression,
        query: &'q ast::Query,
        negated: bool,
    ) -> Result<Expr> {
        let operand = self.bind(operand)?;
        let applied = self.apply_in(operand, query)?;
        if !negated {
            return Ok(applied);
        }
        let mut refused = self.builder().not(applied)?;
        refused.result.nullable = true;
        Ok(refused)
    }

    fn apply_in(&mut self, operand: Expr, query: &'q ast::Query) -> Result<Expr> {
        let mut operands = match operand.kind {
            ExprKind::Row(items) => items,
            kind => vec![Expr { kind, result: operand.result }],
        };
        for operand in &mut operands {
            operand.result.is_variable &= !operand.result.column_type.unsigned;
        }
        self.request_forms(&operands);
        let mut inner = self.bind_inner(query)?;
        let mut forms = self.forms.take();
        if inner.0.columns().len() != operands.len() {
            return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&operands.len()]));
        }
        let reads = !has_one_row(query);
        let mut rules = Vec::with_capacity(operands.len());
        let mut nullable = false;
        for (position, operand) in operands.iter_mut().enumerate() {
            let column = inner.0.columns()[position].result;
            nullable |= operand.result.nullable || column.nullable || reads;
            let equal = CompareOperator::Equal;
            let (rule, is_changed) = self.rule_of(operand, equal, &mut inner.0, position)?;
            if is_changed {
                forms = None;
            }
            rules.push(rule);
        }
        let kind = ApplyKind::In { operand: operands, rules };
        let value = self.add_apply(kind, inner, ResultType::boolean(nullable));
        self.keep_forms(forms);
        Ok(value)
    }

    /// How a value is compared with a column of a subquery, and whether that was refused before
    /// what it selects was converted.
    fn rule_of(
        &self,
        operand: &mut Expr,
        operator: CompareOperator,
        query: &mut QueryPlan,
        position: usize,
    ) -> Result<(CompareRule, bool)> {
        let mut given = operand.clone();
        match self.rule(operand, operator, query.columns()[position].result) {
            Ok((rule, true)) => Ok((rule, false)),
            Ok((rule, false)) => {
                let selected = self.selected_rule(&mut given, operator, query, position)?;
                Ok((selected.unwrap_or(rule), false))
            }
            Err(error) => {
                *operand = given;
                let selected = self.selected_rule(operand, operator, query, position);
                let rule = selected.ok().flatten();
                Ok((rule.ok_or(error)?, true))
            }
        }
    }

    /// The same where what the subquery selects has to be converted.
    fn selected_rule(
        &self,
        operand: &mut Expr,
        operator: CompareOperator,
        query: &mut QueryPlan,
        position: usize,
    ) -> Result<Option<CompareRule>> {
        let QueryPlan::Select(select) = query else { return Ok(None) };
        let Some(selected) = select.projection.get_mut(position) else { return Ok(None) };
        let compared = self.builder().compare(operator, operand.clone(), selected.clone())?;
        let ExprKind::Compare { rule, left, right, .. } = compared.kind else { return Ok(None) };
        select.columns[position].result = right.result;
        (*operand, *selected) = (*left, *right);
        Ok(Some(rule))
    }

    /// How a value is compared with a column of a subquery, and whether with the column as it is.
    fn rule(
        &self,
        operand: &mut Expr,
        operator: CompareOperator,
        column: ResultType,
    ) -> Result<(CompareRule, bool)> {
        let builder = self.builder();
        let other = builder.column(0, column, "");
        let taken = std::mem::replace(operand, builder.null());
        let compared = builder.compare(operator, taken, other)?;
        match compared.kind {
            ExprKind::Compare { rule, left, right, .. } => {
                *operand = *left;
                Ok((rule, matches!(right.kind, ExprKind::Column { .. })))
            }
            _ => Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1])),
        }
    }

    pub(super) fn bind_quantified(
        &mut self,
        operand: &'q ast::Expression,
        operator: ast::BinaryOperator,
        all: bool,
        query: &'q ast::Query,
    ) -> Result<Expr> {
        let operator = compare_operator(operator).ok_or_else(|| unsupported("this operator"))?;
        match (operator, all) {
            (CompareOperator::Equal, false) => {
                let operand = self.bind(operand)?;
                return self.apply_in(operand, query);
            }
            (CompareOperator::NotEqual, true) => {
                let operand = self.bind(operand)?;
                let applied = self.apply_in(operand, query)?;
                return self.builder().not(applied);
            }
            _ => {}
        }
        let mut operand = self.bind_scalar(operand)?;
        let mut inner = self.bind_inner(query)?;
        if inner.0.columns().len() != 1 {
            return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1]));
        }
        let column = inner.0.columns()[0].result;
        let given = operand.clone();
        let rule = match self.rule_of(&mut operand, operator, &mut inner.0, 0) {
            Ok((rule, _)) => rule,
            // Of a subquery of tables that reads nothing around it the sides change places.
            Err(_) if inner.1.is_empty() && !has_one_row(query) => {
                let builder = self.builder();
                let selected = builder.column(0, column, "");
                return builder.compare(operator.swapped(), selected, given);
            }
            Err(error) => return Err(error),
        };
        let kind = ApplyKind::Quantified { operand, operator, rule, all };
        Ok(self.add_apply(kind, inner, ResultType::boolean(true)))
    }
}
