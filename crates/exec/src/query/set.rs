//! UNION, EXCEPT, INTERSECT.

use super::keys::Keys;
use super::output::Distinct;
use super::sorter::Sorter;
use super::{Limit, RowTarget, collect};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use plan::physical::{SetOperation, SetPlan};
use types::{ColumnType, Value, ValueRef};

/// Runs a combination of queries; LIMIT of the whole is applied here.
pub fn run_set(
    exec: &mut Exec<'_>,
    plan: &SetPlan,
    outer: &[Value],
    target: &mut RowTarget<'_>,
) -> Result<u64, ExecError> {
    let types: Vec<ColumnType> = plan.columns.iter().map(|c| c.result.column_type).collect();
    let limit = Limit::of(&plan.limit, exec.eval)?;
    let mut rows = collect(exec, &plan.first, outer)?;
    for (operation, query) in &plan.rest {
        let right = collect(exec, query, outer)?;
        rows = combine(exec, *operation, rows, right, &types)?;
    }
    let offset = usize::try_from(limit.offset).unwrap_or(usize::MAX);
    let mut give = |exec: &mut Exec<'_>, row: &[ValueRef<'_>]| -> Result<bool, ExecError> {
        exec.tick()?;
        Ok(target(exec.eval, row)?.is_continue())
    };
    if plan.order_by.is_empty() {
        let count = usize::try_from(limit.count).unwrap_or(usize::MAX);
        for row in rows.iter().skip(offset).take(count) {
            let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            if !give(exec, &values)? {
                break;
            }
        }
        return Ok(0);
    }
    let type_of = |position: usize| types[position];
    let mut sorter = Sorter::new(&plan.order_by, type_of, types.len(), limit.needed(), exec.memory);
    for row in rows {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        sorter.add(&values)?;
    }
    sorter.sort();
    sorter.give(offset, |row| give(exec, row))?;
    Ok(0)
}

fn identity(row: &[Value], types: &[ColumnType]) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, column_type) in row.iter().zip(types) {
        order::push_identity(value.as_ref(), column_type, &mut key);
    }
    key
}

fn combine(
    exec: &Exec<'_>,
    operation: SetOperation,
    mut left: Vec<Vec<Value>>,
    right: Vec<Vec<Value>>,
    types: &[ColumnType],
) -> Result<Vec<Vec<Value>>, ExecError> {
    if operation == SetOperation::UnionAll {
        left.extend(right);
        return Ok(left);
    }
    let mut other = Keys::default();
    match operation {
        SetOperation::Union | SetOperation::UnionAll => left.extend(right),
        SetOperation::Except | SetOperation::Intersect => {
            for row in &right {
                other.insert(&identity(row, types));
            }
        }
    }
    let mut distinct = Distinct::default();
    let mut kept = Vec::new();
    for row in left {
        let wanted = match operation {
            SetOperation::Except => other.find(&identity(&row, types)).is_none(),
            SetOperation::Intersect => other.find(&identity(&row, types)).is_some(),
            SetOperation::Union | SetOperation::UnionAll => true,
        };
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        if wanted && distinct.is_new(&values, types, exec.memory)? {
            kept.push(row);
        }
    }
    Ok(kept)
}
