//! From the plain frame to the frame behind a grouping.

use super::order::same;
use super::window::{self, BoundWindow, WINDOW};
use super::*;
use crate::physical::{AggregatePlan, ApplyKind, RollupPlan, SelectPlan};
use expr::ExprKind;
use expr::aggregate::{Aggregate, AggregateFunction, ConcatOptions};

/// First position, while mapping, of values that are carried over.
const CARRIED: usize = 1 << 27;
/// First position, while mapping, of subqueries that read the groups.
const LATE: usize = CARRIED + (1 << 26);

/// A grouping being made.
pub(super) struct Grouping<'b> {
    builder: Builder<'b>,
    keys: Vec<Expr>,
    calls: Vec<Aggregate>,
    carried: Vec<usize>,
    /// Subqueries whose value does not depend on the block's rows.
    constant_applies: Vec<bool>,
    /// Subqueries that read the groups, each behind those that it reads.
    late: Vec<Late>,
    /// ONLY_FULL_GROUP_BY.
    full: bool,
}

/// A subquery that reads aggregates, or other subqueries that do: it is run for each group.
struct Late {
    apply: Apply,
    /// What it reads of the block: its outer positions.
    outer: Vec<Expr>,
}

impl<'b> Grouping<'b> {
    pub(super) fn new(
        builder: Builder<'b>,
        keys: Vec<Expr>,
        block: &mut Block,
        full: bool,
    ) -> Self {
        let constant_applies = block.applies.iter().map(Apply::is_virtually_constant).collect();
        let late = take_late(&builder, block);
        let mut calls = std::mem::take(&mut block.aggregates);
        let counts = calls.iter().any(|it| it.function == AggregateFunction::CountRows);
        if keys.is_empty() && !late.is_empty() && !counts {
            // They are not run for the group of no rows.
            let options = ConcatOptions::default();
            let count = builder.aggregate(AggregateFunction::CountRows, false, vec![], options);
            calls.extend(count);
        }
        Self { builder, keys, calls, carried: Vec::new(), constant_applies, late, full }
    }

    /// Brings everything that stands behind the grouping to the grouped frame.
    pub(super) fn map_block(
        &mut self,
        plan: &mut SelectPlan,
        windows: &mut [BoundWindow],
    ) -> Result<()> {
        let mut outcome = Ok(());
        window::each_value(plan, windows, &mut |value| {
            if outcome.is_ok() {
                outcome = self.map(value);
            }
        });
        outcome?;
        self.map_late()?;
        window::each_value(plan, windows, &mut |value| self.finish_expr(value));
        Ok(())
    }

    /// Brings what the subqueries that read the groups read to the grouped frame.
    fn map_late(&mut self) -> Result<()> {
        for number in 0..self.late.len() {
            let mut outer = std::mem::take(&mut self.late[number].outer);
            outer.iter_mut().try_for_each(|value| self.map(value))?;
            let mut kind = std::mem::replace(&mut self.late[number].apply.kind, ApplyKind::Scalar);
            let mut outcome = Ok(());
            kind.for_each_operand_mut(&mut |operand| {
                if outcome.is_ok() {
                    outcome = self.map(operand);
                }
            });
            let late = &mut self.late[number];
            (late.outer, late.apply.kind) = (outer, kind);
            outcome?;
        }
        Ok(())
    }

    /// Brings an expression over the plain frame to the grouped one. Positions of carried
    /// values are final only after [`Grouping::finish_expr`].
    pub(super) fn map(&mut self, expr: &mut Expr) -> Result<()> {
        if let Some(key) = self.keys.iter().position(|key| same(key, expr)) {
            let name = match &expr.kind {
                ExprKind::Column { name, .. } => name.clone(),
                _ => format!("key#{key}").into(),
            };
            expr.kind = ExprKind::Column { position: key, name };
            return Ok(());
        }
        if let ExprKind::Column { position, name } = &expr.kind {
            let (position, name) = (*position, name.clone());
            let mapped = self.map_column(position, expr.result, &name)?;
            expr.kind = ExprKind::Column { position: mapped, name };
            return Ok(());
        }
        let mut outcome = Ok(());
        expr.for_each_child_mut(&mut |child| {
            if outcome.is_ok() {
                outcome = self.map(child);
            }
        });
        outcome
    }

    fn map_column(
        &mut self,
        position: usize,
        result: ResultType,
        name: &Arc<str>,
    ) -> Result<usize> {
        if position >= WINDOW {
            return Ok(position);
        }
        if position >= AGGREGATE {
            return Ok(self.keys.len() + position - AGGREGATE);
        }
        if position >= APPLY
            && let Some(number) = self.late.iter().position(|it| it.apply.position == position)
        {
            return Ok(LATE + number);
        }
        let constant = match position {
            p if p >= APPLY => self.constant_applies.get(p - APPLY).copied().unwrap_or(false),
            p => p >= OUTER,
        };
        if constant {
            let found = self.carried.iter().position(|known| *known == position);
            let number = found.unwrap_or_else(|| {
                self.carried.push(position);
                self.carried.len() - 1
            });
            return Ok(CARRIED + number);
        }
        if self.full && position < OUTER {
            let plain = name.replace('`', "");
            return Err(SqlError::new(&codes::WRONG_FIELD_WITH_GROUP, &[&plain]));
        }
        let column = self.builder.column(position, result, name.clone());
        let call = self.builder.aggregate(
            AggregateFunction::AnyValue,
            false,
            vec![column],
            ConcatOptions::default(),
        )?;
        let known = self.calls.iter().position(|known| {
            known.function == AggregateFunction::AnyValue
                && known.arguments.iter().zip(&call.arguments).all(|(a, b)| same(a, b))
        });
        let number = known.unwrap_or_else(|| {
            self.calls.push(call);
            self.calls.len() - 1
        });
        Ok(self.keys.len() + number)
    }

    /// Gives carried values their final positions.
    pub(super) fn finish_expr(&self, expr: &mut Expr) {
        let first = self.keys.len() + self.calls.len();
        expr.map_columns(&mut |position| match position {
            CARRIED..LATE => first + position - CARRIED,
            LATE..WINDOW => first + self.carried.len() + position - LATE,
            _ => position,
        });
    }

    /// The subqueries that read the groups, over the grouped frame.
    fn finish_late(&mut self) -> Vec<Apply> {
        let first = self.keys.len() + self.calls.len() + self.carried.len();
        let mut applies = Vec::with_capacity(self.late.len());
        for (number, mut late) in std::mem::take(&mut self.late).into_iter().enumerate() {
            late.outer.iter_mut().for_each(|value| self.finish_expr(value));
            let mut apply = late.apply;
            apply.position = first + number;
            apply.outer_positions =
                late.outer.iter().filter_map(crate::optimize::column_position).collect();
            apply.kind.for_each_operand_mut(&mut |operand| self.finish_expr(operand));
            applies.push(apply);
        }
        applies
    }

    /// The plan's part; `position` brings virtual positions to the frame's.
    pub(super) fn finish(mut self, position: &mut dyn FnMut(usize) -> usize) -> AggregatePlan {
        let applies = self.finish_late();
        let Self { mut keys, mut calls, mut carried, .. } = self;
        keys.iter_mut().for_each(|key| key.map_columns(position));
        for call in &mut calls {
            call.arguments.iter_mut().for_each(|argument| argument.map_columns(position));
            call.concat.order_by.iter_mut().for_each(|(key, _)| key.map_columns(position));
        }
        carried.iter_mut().for_each(|carried| *carried = position(*carried));
        AggregatePlan { keys, calls, sorted: false, carried, applies, rollup: None }
    }
}

impl AggregatePlan {
    /// Adds WITH ROLLUP; the keys are sorted as GROUP BY says.
    pub(super) fn roll_up(&mut self, builder: &Builder<'_>, descending: Vec<bool>) {
        let mut inputs = self.keys.clone();
        let mut calls = self.calls.clone();
        let mut take = |expr: &mut Expr| {
            let column = builder.column(inputs.len(), expr.result, "");
            inputs.push(std::mem::replace(expr, column));
        };
        for call in &mut calls {
            call.arguments.iter_mut().for_each(&mut take);
            call.concat.order_by.iter_mut().for_each(|(key, _)| take(key));
        }
        let carried = self.carried.iter();
        inputs.extend(carried.map(|&position| builder.column(position, ResultType::null(), "")));
        self.rollup = Some(Box::new(RollupPlan { inputs, calls, descending }));
    }
}

impl Block {
    /// Whether the value at a virtual position is known only behind the grouping.
    pub(super) fn reads_groups(&self, position: usize) -> bool {
        match position {
            AGGREGATE.. => true,
            APPLY.. => self.applies.get(position - APPLY).is_some_and(|apply| {
                let mut found = false;
                apply.for_each_read(&mut |read| found = found || self.reads_groups(read));
                found
            }),
            _ => false,
        }
    }

    /// Whether a value is known only behind the grouping.
    pub(super) fn is_of_groups(&self, value: &Expr) -> bool {
        let mut found = false;
        value.for_each_column(&mut |position| found = found || self.reads_groups(position));
        found
    }

    /// The value at a virtual position.
    fn value_at(&self, builder: &Builder<'_>, position: usize) -> Expr {
        let apply = position.checked_sub(APPLY).and_then(|number| self.applies.get(number));
        if let Some(apply) = apply {
            let result = match apply.kind {
                ApplyKind::Scalar => apply.query.columns()[0].result.with_nullable(true),
                _ => ResultType::boolean(true),
            };
            return builder.column(position, result, "");
        }
        match self.column_at(position) {
            Some((_, column)) => builder.column(position, column.result, column.printed),
            // Of what is grouped or carried over the type does not matter.
            None => builder.column(position, ResultType::null(), ""),
        }
    }
}

/// Takes the subqueries that read the groups out of a block.
fn take_late(builder: &Builder<'_>, block: &mut Block) -> Vec<Late> {
    let mut late: Vec<Late> = Vec::new();
    for apply in &block.applies {
        if block.reads_groups(apply.position) {
            let outer = apply.outer_positions.iter();
            let outer = outer.map(|&position| block.value_at(builder, position)).collect();
            late.push(Late { apply: apply.clone(), outer });
        }
    }
    block.applies.retain(|apply| !late.iter().any(|it| it.apply.position == apply.position));
    late
}

impl Apply {
    /// Whether it reads no row of its block, by virtual positions.
    fn is_virtually_constant(&self) -> bool {
        let mut constant = true;
        self.for_each_read(&mut |p| constant &= (OUTER..APPLY).contains(&p));
        constant
    }
}
