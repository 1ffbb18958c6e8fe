//! Subqueries as columns of the frame.

use super::block::BlockRun;
use super::{Flow, collect, run_query};
use crate::ExecError;
use crate::context::Exec;
use expr::{CompareOperator, CompareRule, Expr, compare_values};
use plan::physical::{Apply, ApplyKind, ResultColumn};
use std::sync::Arc;
use types::{SqlError, Value, codes};

/// What is kept of a subquery that does not depend on the frame.
#[derive(Clone)]
pub enum Once {
    /// Its value.
    Value(Value),
    /// Its rows, with which operands are compared.
    Rows(Arc<Vec<Vec<Value>>>),
}

/// Fills in the positions of the given subqueries.
pub fn fill(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'_>,
    applies: &[Apply],
) -> Result<(), ExecError> {
    for apply in applies {
        let value = value(exec, run, apply)?;
        run.frame.set_value(apply.position, value);
    }
    Ok(())
}

fn value(exec: &mut Exec<'_>, run: &mut BlockRun<'_>, apply: &Apply) -> Result<Value, ExecError> {
    let once = apply.outer_positions.is_empty();
    let known = run.once.iter().find(|(position, _)| *position == apply.position);
    let known = known.map(|(_, known)| known.clone());
    let outer: Vec<Value> = apply
        .outer_positions
        .iter()
        .map(|&position| expr::Columns::column(&run.frame, position).to_owned())
        .collect();
    let needs_rows = matches!(apply.kind, ApplyKind::In { .. } | ApplyKind::Quantified { .. });
    if needs_rows {
        let rows = match known {
            Some(Once::Rows(rows)) => rows,
            _ => Arc::new(collect(exec, &apply.query, &outer)?),
        };
        if once {
            run.once.push((apply.position, Once::Rows(rows.clone())));
        }
        return compare_with_rows(exec, run, apply, &rows);
    }
    if let Some(Once::Value(value)) = known {
        return Ok(value);
    }
    let value = match apply.kind {
        ApplyKind::Exists => Value::Int(i64::from(exists(exec, apply, &outer)?)),
        _ => scalar(exec, apply, &outer)?,
    };
    if once {
        run.once.push((apply.position, Once::Value(value.clone())));
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

fn compare_with_rows(
    exec: &Exec<'_>,
    run: &BlockRun<'_>,
    apply: &Apply,
    rows: &[Vec<Value>],
) -> Result<Value, ExecError> {
    let columns = apply.query.columns();
    let truth = match &apply.kind {
        ApplyKind::In { operand, rules } => is_in(exec, run, operand, rules, columns, rows)?,
        ApplyKind::Quantified { operand, operator, rule, all } => {
            let left = (operand, *operator, *rule);
            quantified(exec, run, left, *all, columns, rows)?
        }
        ApplyKind::Scalar | ApplyKind::Exists => None,
    };
    Ok(truth.map_or(Value::Null, |truth| Value::Int(i64::from(truth))))
}

/// `operand IN (rows)`: NULL if no row is equal but one could be.
fn is_in(
    exec: &Exec<'_>,
    run: &BlockRun<'_>,
    operand: &[Expr],
    rules: &[CompareRule],
    columns: &[ResultColumn],
    rows: &[Vec<Value>],
) -> Result<Option<bool>, ExecError> {
    let mut values = Vec::with_capacity(operand.len());
    for expr in operand {
        values.push(expr.eval(exec.eval, &run.frame)?);
    }
    let mut unknown = false;
    for row in rows {
        let mut equal = Some(true);
        for (place, right) in row.iter().enumerate().take(values.len()) {
            let left = (values[place], &operand[place].result);
            let right = (right.as_ref(), &columns[place].result);
            match compare_values(exec.eval, rules[place], left, right)? {
                Some(order) if order.is_eq() => {}
                Some(_) => {
                    equal = Some(false);
                    break;
                }
                None => equal = None,
            }
        }
        match equal {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

fn quantified(
    exec: &Exec<'_>,
    run: &BlockRun<'_>,
    (operand, operator, rule): (&Expr, CompareOperator, CompareRule),
    all: bool,
    columns: &[ResultColumn],
    rows: &[Vec<Value>],
) -> Result<Option<bool>, ExecError> {
    let left = operand.eval(exec.eval, &run.frame)?;
    let mut unknown = false;
    for row in rows {
        let right = row.first().map_or(types::ValueRef::Null, Value::as_ref);
        let right = (right, &columns[0].result);
        match compare_values(exec.eval, rule, (left, &operand.result), right)? {
            None => unknown = true,
            Some(order) if operator.accepts(order) != all => return Ok(Some(!all)),
            Some(_) => {}
        }
    }
    Ok(if unknown { None } else { Some(all) })
}
