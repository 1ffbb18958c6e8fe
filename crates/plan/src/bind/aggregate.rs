//! Aggregate calls: collected in the block, standing in expressions as columns from
//! [`AGGREGATE`] on.
//!
//! An aggregate belongs to the innermost block whose columns it reads, if aggregates may stand
//! where that block has the subquery around it; otherwise to the nearest block outside that
//! allows it, and at last to its own. Subqueries inside of that one get its value from there.

use super::*;
use crate::physical::LimitPlan;
use expr::aggregate::{AggregateFunction, ConcatOptions};

impl<'q> Binder<'_, '_, 'q> {
    pub(super) fn bind_aggregate(&mut self, call: &'q ast::AggregateCall) -> Result<Expr> {
        let inside = self.blocks.len() - 1;
        let allows = |block: &Block| block.clause.allows_aggregates() && !block.in_aggregate;
        let allowed = allows(&self.blocks[inside]);
        if self.block().in_aggregate || !self.blocks.iter().any(allows) {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        let function = match aggregate_function(call.function)? {
            AggregateFunction::Count if call.arguments.is_empty() => AggregateFunction::CountRows,
            function => function,
        };
        let outer: Vec<usize> = self.blocks.iter().map(|block| block.outer.len()).collect();
        self.block().in_aggregate = true;
        let arguments = self.bind_aggregate_arguments(call);
        self.block().in_aggregate = false;
        let (mut arguments, mut order_by) = arguments?;
        if arguments.iter().any(|argument| self.block().is_of_groups(argument)) {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        let owner = self.owner_of(&arguments);
        let outside = self.blocks[owner..inside].iter().position(&allows);
        let level = outside.map_or(inside, |number| owner + number);
        if level < inside {
            let keys = order_by.iter_mut().map(|(key, _)| key);
            let mut values = arguments.iter_mut().chain(keys);
            values.try_for_each(|value| self.move_outward(value, level))?;
            let inner = self.blocks.iter_mut().zip(outer).skip(level + 1);
            inner.for_each(|(block, outer)| block.outer.truncate(outer));
        } else if !allowed {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        let separator = call.separator.clone();
        let limit = match &call.limit {
            None => None,
            limit => {
                let LimitPlan { count, offset } = self.bind_limit(limit.as_ref())?;
                Some((offset, count))
            }
        };
        let concat = ConcatOptions { order_by, separator, limit };
        let bound = self.builder().aggregate(function, call.distinct, arguments, concat)?;
        Ok(self.add_aggregate(level, bound))
    }

    /// Brings a value that reads only columns of block `level` and those outside of it to there.
    fn move_outward(&self, value: &mut Expr, level: usize) -> Result<()> {
        let mut inner = false;
        value.map_columns(&mut |position| {
            let mut position = position;
            for block in self.blocks[level + 1..].iter().rev() {
                match block.outer.get(position.wrapping_sub(OUTER)) {
                    Some(outer) => position = *outer,
                    None => inner = true,
                }
            }
            position
        });
        match inner {
            true => Err(unsupported("a subquery in an aggregate of an outer query")),
            false => Ok(()),
        }
    }

    /// The innermost block whose columns the arguments read; the one being bound without any.
    fn owner_of(&self, arguments: &[Expr]) -> usize {
        let inside = self.blocks.len() - 1;
        let mut owner = None;
        let mut read = |position| owner = owner.max(Some(self.level_of(position)));
        for argument in arguments {
            argument.for_each_column(&mut |position| match position {
                APPLY..AGGREGATE => {
                    let apply = &self.blocks[inside].applies[position - APPLY];
                    apply.outer_positions.iter().for_each(|&position| read(position));
                    apply.for_each_operand(&mut |operand| operand.for_each_column(&mut read));
                }
                position => read(position),
            });
        }
        owner.unwrap_or(inside)
    }

    /// The block that a column of the one being bound comes from.
    fn level_of(&self, position: usize) -> usize {
        let mut level = self.blocks.len() - 1;
        let mut position = position;
        while (OUTER..APPLY).contains(&position) && level > 0 {
            position = self.blocks[level].outer[position - OUTER];
            level -= 1;
        }
        level
    }

    #[allow(clippy::type_complexity, reason = "arguments and order, used once")]
    fn bind_aggregate_arguments(
        &mut self,
        call: &'q ast::AggregateCall,
    ) -> Result<(Vec<Expr>, Vec<(Expr, bool)>)> {
        let arguments: Vec<Expr> =
            call.arguments.iter().map(|a| self.bind_scalar(a)).collect::<Result<_>>()?;
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for item in &call.order_by {
            let value = match self.position(&item.expression) {
                Some(number) => arguments
                    .get((number as u32 as usize).wrapping_sub(1))
                    .cloned()
                    .ok_or_else(|| {
                        SqlError::new(&codes::BAD_FIELD_ERROR, &[&number, &Clause::OrderBy.name()])
                    })?,
                None => self.bind_scalar(&item.expression)?,
            };
            order_by.push((value, item.descending));
        }
        Ok((arguments, order_by))
    }

    /// The column that stands for an aggregate of block `level`; equal calls share one.
    fn add_aggregate(&mut self, level: usize, call: Aggregate) -> Expr {
        let result = call.result;
        let shown = shown(&call);
        let call = counted(call);
        let printed = format!("{call:?}");
        let builder = self.builder();
        let aggregates = &mut self.blocks[level].aggregates;
        let found = aggregates.iter().position(|known| format!("{known:?}") == printed);
        let number = found.unwrap_or_else(|| {
            aggregates.push(call);
            aggregates.len() - 1
        });
        let position = self.pass_inward(level, AGGREGATE + number);
        builder.column(position, result, shown)
    }
}

/// COUNT of values that cannot be NULL counts rows: nobody computes them.
fn counted(call: Aggregate) -> Aggregate {
    let is_of_rows = call.function == AggregateFunction::Count
        && !call.distinct
        && call.arguments.iter().all(|it| !it.result.nullable && it.has_no_effect());
    match is_of_rows {
        true => Aggregate { function: AggregateFunction::CountRows, arguments: vec![], ..call },
        false => call,
    }
}

/// An aggregate as messages show it.
fn shown(call: &Aggregate) -> String {
    use AggregateFunction as F;
    let name = match call.function {
        F::CountRows => return "count(0)".into(),
        F::Count => "count",
        F::Sum => "sum",
        F::Average => "avg",
        F::Minimum => "min",
        F::Maximum => "max",
        F::GroupConcat => "group_concat",
        F::JsonArray => "json_arrayagg",
        F::JsonObject => "json_objectagg",
        F::BitAnd => "bit_and",
        F::BitOr => "bit_or",
        F::BitXor => "bit_xor",
        F::StandardDeviation => "std",
        F::SampleStandardDeviation => "stddev_samp",
        F::Variance => "variance",
        F::SampleVariance => "var_samp",
        F::AnyValue => "any_value",
    };
    let distinct = if call.distinct { "distinct " } else { "" };
    let arguments: Vec<String> = call.arguments.iter().map(Expr::to_string).collect();
    let mut text = format!("{name}({distinct}{}", arguments.join(","));
    for (number, (key, descending)) in call.concat.order_by.iter().enumerate() {
        let joint = if number == 0 { " order by " } else { "," };
        let direction = if *descending { "DESC" } else { "ASC" };
        text.push_str(&format!("{joint}{key} {direction}"));
    }
    if call.function == F::GroupConcat {
        let separator = call.concat.separator.as_deref().unwrap_or(b",");
        text.push_str(&format!(" separator '{}'", String::from_utf8_lossy(separator)));
    }
    text + ")"
}

pub(super) fn aggregate_function(function: ast::AggregateFunction) -> Result<AggregateFunction> {
    use AggregateFunction as F;
    use ast::AggregateFunction as A;
    Ok(match function {
        A::Count => F::Count,
        A::Sum => F::Sum,
        A::Average => F::Average,
        A::Minimum => F::Minimum,
        A::Maximum => F::Maximum,
        A::GroupConcat => F::GroupConcat,
        A::StandardDeviation => F::StandardDeviation,
        A::SampleStandardDeviation => F::SampleStandardDeviation,
        A::Variance => F::Variance,
        A::SampleVariance => F::SampleVariance,
        A::BitAnd => F::BitAnd,
        A::BitOr => F::BitOr,
        A::BitXor => F::BitXor,
        A::JsonArray => F::JsonArray,
        A::JsonObject => F::JsonObject,
    })
}
