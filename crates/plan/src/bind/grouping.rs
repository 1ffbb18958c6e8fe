//! From the plain frame to the frame behind a grouping.

use super::order::same;
use super::window::{self, BoundWindow, WINDOW};
use super::*;
use crate::physical::{AggregatePlan, RollupPlan, SelectPlan};
use expr::ExprKind;
use expr::aggregate::{Aggregate, AggregateFunction, ConcatOptions};

/// First position, while mapping, of values that are carried over.
const CARRIED: usize = 1 << 27;

/// A grouping being made.
pub(super) struct Grouping<'b> {
    builder: Builder<'b>,
    keys: Vec<Expr>,
    calls: Vec<Aggregate>,
    carried: Vec<usize>,
    /// Subqueries whose value does not depend on the block's rows.
    constant_applies: Vec<bool>,
    /// ONLY_FULL_GROUP_BY.
    full: bool,
}

impl<'b> Grouping<'b> {
    pub(super) fn new(
        builder: Builder<'b>,
        keys: Vec<Expr>,
        block: &mut Block,
        full: bool,
    ) -> Self {
        let constant_applies = block.applies.iter().map(Apply::is_virtually_constant).collect();
        let calls = std::mem::take(&mut block.aggregates);
        Self { builder, keys, calls, carried: Vec::new(), constant_applies, full }
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
        window::each_value(plan, windows, &mut |value| self.finish_expr(value));
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
            CARRIED..WINDOW => first + position - CARRIED,
            _ => position,
        });
    }

    /// The plan's part; `position` brings virtual positions to the frame's.
    pub(super) fn finish(self, position: &mut dyn FnMut(usize) -> usize) -> AggregatePlan {
        let Self { mut keys, mut calls, mut carried, .. } = self;
        keys.iter_mut().for_each(|key| key.map_columns(position));
        for call in &mut calls {
            call.arguments.iter_mut().for_each(|argument| argument.map_columns(position));
            call.concat.order_by.iter_mut().for_each(|(key, _)| key.map_columns(position));
        }
        carried.iter_mut().for_each(|carried| *carried = position(*carried));
        AggregatePlan { keys, calls, sorted: false, carried, rollup: None }
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

impl Apply {
    /// Whether it reads no row of its block, by virtual positions.
    fn is_virtually_constant(&self) -> bool {
        let mut constant = self.outer_positions.iter().all(|p| (OUTER..APPLY).contains(p));
        self.for_each_operand(&mut |operand| {
            operand.for_each_column(&mut |p| constant &= (OUTER..APPLY).contains(&p));
        });
        constant
    }
}
