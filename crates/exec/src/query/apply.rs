//! Subqueries as columns of the frame.

use super::block::BlockRun;
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::{Flow, collect, run_query};
use crate::ExecError;
use crate::context::Exec;
use crate::frame::Failures;
use expr::{Columns, CompareOperator, CompareRule, Expr, ExprKind, compare_values};
use plan::physical::{Apply, ApplyKind, LateCondition, ResultColumn};
use std::sync::Arc;
use types::collation;
use types::{SqlError, Value, ValueRef, codes};

/// What is kept of a subquery that does not depend on the frame.
#[derive(Clone)]
pub enum Once {
    /// Its value.
    Value(Value),
    /// Its rows, with which operands are compared.
    Rows(Arc<InRows>),
}

/// The rows of a subquery on the right side of IN, ANY and ALL.
pub struct InRows {
    rows: Vec<Vec<Value>>,
    /// The rows by their values, where there are many.
    table: Option<InTable>,
}

/// Finds the rows that may be equal to an operand.
struct InTable {
    keys: Keys,
    /// Rows of key number N.
    rows: Vec<Vec<u32>>,
    /// Rows with a NULL, which may be equal to anything.
    unknown: Vec<u32>,
}

/// Fewer rows are compared one by one.
const TABLE_ROWS: usize = 16;

/// The key of values that are compared by these rules, if they have one: values that compare as
/// equal have the same.
fn key_of<'v>(
    values: impl Iterator<Item = ValueRef<'v>>,
    rules: &[CompareRule],
) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (value, rule) in values.zip(rules) {
        let number = match (rule, value) {
            (CompareRule::Text(collation), ValueRef::Bytes(text)) => {
                collation::push_sort_key(collation.info(), text, &mut key);
                key.push(0);
                continue;
            }
            (CompareRule::Integer, ValueRef::Int(number)) => number as f64,
            (CompareRule::Integer, ValueRef::UInt(number)) => number as f64,
            _ => return None,
        };
        key.extend_from_slice(&number.to_bits().to_le_bytes());
    }
    Some(key)
}

impl InRows {
    fn new(exec: &Exec<'_>, rows: Vec<Vec<Value>>, kind: &ApplyKind) -> Result<Self, ExecError> {
        let table = match kind {
            ApplyKind::In { rules, .. } if rows.len() >= TABLE_ROWS => {
                InTable::new(exec, &rows, rules)?
            }
            _ => None,
        };
        Ok(Self { rows, table })
    }
}

impl InTable {
    fn new(
        exec: &Exec<'_>,
        rows: &[Vec<Value>],
        rules: &[CompareRule],
    ) -> Result<Option<Self>, ExecError> {
        let mut table = Self { keys: Keys::default(), rows: Vec::new(), unknown: Vec::new() };
        for (number, row) in rows.iter().enumerate() {
            runtime::yield_if_due();
            if row.iter().any(Value::is_null) {
                table.unknown.push(number as u32);
                continue;
            }
            let Some(key) = key_of(row.iter().map(Value::as_ref), rules) else { return Ok(None) };
            let (place, is_new) = table.keys.insert(&key);
            if is_new {
                exec.charge(key.len() + KEY_OVERHEAD_BYTES + 32)?;
                table.rows.push(Vec::new());
            }
            table.rows[place].push(number as u32);
        }
        Ok(Some(table))
    }

    /// The rows with which values without NULL must be compared.
    fn candidates(&self, values: &[ValueRef<'_>], rules: &[CompareRule]) -> Option<Vec<u32>> {
        if values.iter().any(|value| value.is_null()) {
            return None;
        }
        let key = key_of(values.iter().copied(), rules)?;
        let equal = self.keys.find(&key).map_or(&[][..], |place| &self.rows[place]);
        // Of one column a NULL says all that any of them can.
        let most = if values.len() == 1 { 1 } else { self.unknown.len() };
        Some(equal.iter().chain(self.unknown.iter().take(most)).copied().collect())
    }
}

/// Fills in the positions of the given subqueries.
pub fn fill(
    exec: &mut Exec<'_>,
    run: &mut BlockRun<'_>,
    applies: &[Apply],
) -> Result<(), ExecError> {
    for apply in applies {
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
    let known = kept.iter().find(|(position, _)| *position == apply.position);
    let known = known.map(|(_, known)| known.clone());
    let outer: Vec<Value> =
        apply.outer_positions.iter().map(|&position| frame.column(position).to_owned()).collect();
    let needs_rows = matches!(apply.kind, ApplyKind::In { .. } | ApplyKind::Quantified { .. });
    if needs_rows {
        let rows = match known {
            Some(Once::Rows(rows)) => rows,
            _ => {
                let rows = collect(exec, &apply.query, &outer)?;
                match once {
                    true => Arc::new(InRows::new(exec, rows, &apply.kind)?),
                    false => Arc::new(InRows { rows, table: None }),
                }
            }
        };
        if once {
            kept.push((apply.position, Once::Rows(rows.clone())));
        }
        return compare_with_rows(exec, frame, apply, &rows);
    }
    if let Some(Once::Value(value)) = known {
        return Ok(value);
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

fn compare_with_rows(
    exec: &Exec<'_>,
    frame: &dyn Columns,
    apply: &Apply,
    rows: &InRows,
) -> Result<Value, ExecError> {
    let columns = apply.query.columns();
    let truth = match &apply.kind {
        ApplyKind::In { operand, rules } => is_in(exec, frame, operand, rules, columns, rows)?,
        ApplyKind::Quantified { operand, operator, rule, all } => {
            let left = (operand, *operator, *rule);
            quantified(exec, frame, left, *all, columns, &rows.rows)?
        }
        ApplyKind::Scalar | ApplyKind::Exists => None,
    };
    Ok(truth.map_or(Value::Null, |truth| Value::Int(i64::from(truth))))
}

/// `operand IN (rows)`: NULL if no row is equal but one could be.
fn is_in(
    exec: &Exec<'_>,
    frame: &dyn Columns,
    operand: &[Expr],
    rules: &[CompareRule],
    columns: &[ResultColumn],
    rows: &InRows,
) -> Result<Option<bool>, ExecError> {
    if rows.rows.is_empty() {
        return Ok(Some(false));
    }
    let mut values = Vec::with_capacity(operand.len());
    for (expr, rule) in operand.iter().zip(rules) {
        values.push(expr.eval_compared(*rule, exec.eval, frame)?);
    }
    if let [ValueRef::Null] = values[..] {
        return Ok(None);
    }
    let candidates = rows.table.as_ref().and_then(|table| table.candidates(&values, rules));
    let chosen = candidates.as_deref().unwrap_or(&[]).iter();
    let chosen = chosen.filter_map(|&number| rows.rows.get(number as usize));
    let all = if candidates.is_some() { &[] } else { rows.rows.as_slice() };
    let mut unknown = false;
    for row in chosen.chain(all) {
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
    frame: &dyn Columns,
    (operand, operator, rule): (&Expr, CompareOperator, CompareRule),
    all: bool,
    columns: &[ResultColumn],
    rows: &[Vec<Value>],
) -> Result<Option<bool>, ExecError> {
    let left = operand.eval_compared(rule, exec.eval, frame)?;
    let mut unknown = false;
    for row in rows {
        let right = row.first().map_or(ValueRef::Null, Value::as_ref);
        let right = (right, &columns[0].result);
        match compare_values(exec.eval, rule, (left, &operand.result), right)? {
            None => unknown = true,
            Some(order) if operator.accepts(order) != all => return Ok(Some(!all)),
            Some(_) => {}
        }
    }
    Ok(if unknown { None } else { Some(all) })
}
