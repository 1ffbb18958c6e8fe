//! Subqueries as columns of the frame.

use super::block::BlockRun;
use super::in_rows::{self, InRows};
use super::{Flow, run_query};
use crate::ExecError;
use crate::context::Exec;
use crate::frame::Failures;
use expr::{Columns, Expr, ExprKind};
use plan::physical::{Apply, ApplyKind, LateCondition};
use types::{SqlError, Value, ValueRef, codes};

/// What is kept of a subquery that does not depend on the frame.
pub enum Once {
    /// Its value.
    Value(Value),
    /// Its rows, with which operands are compared.
    Rows(Box<InRows>),
}

/// Fills in the positions of the given subqueries, but of those that are run late.
pub fn fill(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'_>,
    applies: &[Apply],
) -> Result<(), ExecError> {
    for apply in applies.iter().filter(|apply| !apply.is_late) {
        let outcome = value(exec, &run.frame, &mut run.once, apply);
        run.frame.check_reads()?;
        match deferred(outcome)? {
            Ok(value) => run.frame.set_value(apply.position, value),
            Err(error) => run.frame.set_failure(apply.position, error),
        }
    }
    Ok(())
}

impl BlockRun<'_> {
    /// Whether a row passes what of ON reads subqueries.
    pub fn passes_late(
        &mut self,
        exec: &mut Exec<'_>,
        late: &LateCondition,
    ) -> Result<bool, ExecError> {
        fill(exec, self, &late.applies)?;
        let holds = late.condition.eval_bool(exec.eval, &self.frame)?;
        self.frame.check_reads()?;
        Ok(holds == Some(true))
    }

    /// Whether the conditions hold that are the same for all rows: first those that need no
    /// subquery, so that none is run in vain.
    pub fn passes_constants(&mut self, exec: &mut Exec<'_>) -> Result<bool, ExecError> {
        let plan = self.plan;
        let conditions: &[Expr] = match &plan.constant_filter {
            None => &[],
            Some(Expr { kind: ExprKind::And(list), .. }) => list,
            Some(one) => std::slice::from_ref(one),
        };
        let needs_subquery = |condition: &&Expr| {
            let mut found = false;
            condition.for_each_column(&mut |position| {
                found |= plan.constant_applies.iter().any(|apply| apply.position == position);
            });
            found
        };
        let (later, first): (Vec<&Expr>, Vec<&Expr>) = conditions.iter().partition(needs_subquery);
        for condition in first {
            if condition.eval_bool(exec.eval, &self.frame)? != Some(true) {
                if plan.aggregate.is_some() {
                    // The group of no rows has their values.
                    fill(exec, self, &plan.constant_applies)?;
                }
                return Ok(false);
            }
        }
        fill(exec, self, &plan.constant_applies)?;
        for condition in later {
            let holds = condition.eval_bool(exec.eval, &self.frame)?;
            self.frame.check_reads()?;
            if holds != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Takes apart what a subquery came to: an error of its values counts only where its value is
/// read, every other one at once.
pub fn deferred(outcome: Result<Value, ExecError>) -> Result<Result<Value, SqlError>, ExecError> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(ExecError { sql, transaction_ended: false })
            if sql.is(&codes::SUBQUERY_NO_1_ROW) || sql.is(&codes::DATA_OUT_OF_RANGE) =>
        {
            Ok(Err(sql))
        }
        Err(error) => Err(error),
    }
}

/// A row of groups with the values of the subqueries that read them.
pub struct LateRow {
    values: Vec<Value>,
    failures: Failures,
}

impl LateRow {
    /// Adds the subqueries' values to the row of a group. In the one group of no rows
    /// (`is_empty`) none but IN is run: it is NULL, or has found nothing.
    pub fn new(
        exec: &mut Exec<'_>,
        values: Vec<Value>,
        applies: &[Apply],
        kept: &mut Vec<(usize, Once)>,
        is_empty: bool,
    ) -> Result<Self, ExecError> {
        let mut row = Self { values, failures: Failures::default() };
        for apply in applies {
            let not_run = match apply.kind {
                _ if !is_empty => None,
                ApplyKind::Scalar => Some(Value::Null),
                ApplyKind::Exists => Some(Value::Int(0)),
                ApplyKind::Quantified { all, .. } => Some(Value::Int(all.into())),
                ApplyKind::In { .. } => None,
            };
            if let Some(value) = not_run {
                row.values.push(value);
                continue;
            }
            let outcome = value(exec, &row, kept, apply);
            row.check_reads()?;
            match deferred(outcome)? {
                Ok(value) => row.values.push(value),
                Err(error) => {
                    row.failures.note(row.values.len(), error);
                    row.values.push(Value::Null);
                }
            }
        }
        Ok(row)
    }

    /// See [`crate::frame::Frame::check_reads`].
    pub fn check_reads(&mut self) -> Result<(), SqlError> {
        self.failures.check()
    }
}

impl Columns for LateRow {
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.failures.reads(position);
        self.values.column(position)
    }
}

/// The value of a subquery over a frame. `kept` has what is known of subqueries that do not
/// depend on it, by position.
pub fn value(
    exec: &mut Exec<'_>,
    frame: &dyn Columns,
    kept: &mut Vec<(usize, Once)>,
    apply: &Apply,
) -> Result<Value, ExecError> {
    let once = apply.outer_positions.is_empty();
    let known = kept.iter().position(|(position, _)| *position == apply.position);
    let outer: Vec<Value> =
        apply.outer_positions.iter().map(|&position| frame.column(position).to_owned()).collect();
    if let ApplyKind::In { .. } | ApplyKind::Quantified { .. } = apply.kind {
        let truth = if once {
            let number = match known {
                Some(number) => number,
                None => {
                    let rows = Box::new(InRows::collect(exec, apply)?);
                    kept.push((apply.position, Once::Rows(rows)));
                    kept.len() - 1
                }
            };
            match &mut kept[number].1 {
                Once::Rows(rows) => in_rows::compare(exec, frame, apply, rows)?,
                Once::Value(_) => None,
            }
        } else {
            in_rows::compare_as_they_come(exec, frame, apply, &outer)?
        };
        return Ok(truth.map_or(Value::Null, |truth| Value::Int(i64::from(truth))));
    }
    if let Some(Once::Value(value)) = known.map(|number| &kept[number].1) {
        return Ok(value.clone());
    }
    let value = match apply.kind {
        ApplyKind::Exists => Value::Int(i64::from(exists(exec, apply, &outer)?)),
        _ => scalar(exec, apply, &outer)?,
    };
    if once {
        kept.push((apply.position, Once::Value(value.clone())));
    }
    Ok(value)
}

fn exists(exec: &mut Exec<'_>, apply: &Apply, outer: &[Value]) -> Result<bool, ExecError> {
    let mut found = false;
    run_query(exec, &apply.query, outer, &mut |_, _| {
        found = true;
        Ok(Flow::Break(()))
    })?;
    Ok(found)
}

fn scalar(exec: &mut Exec<'_>, apply: &Apply, outer: &[Value]) -> Result<Value, ExecError> {
    let mut value = None;
    run_query(exec, &apply.query, outer, &mut |_, values| {
        if value.is_some() {
            return Err(SqlError::new(&codes::SUBQUERY_NO_1_ROW, &[]).into());
        }
        value = Some(values.first().map_or(Value::Null, |&value| value.to_owned()));
        Ok(Flow::Continue(()))
    })?;
    Ok(value.unwrap_or(Value::Null))
}
