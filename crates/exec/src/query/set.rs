//! UNION, EXCEPT, INTERSECT.

use super::output::{Distinct, Sorter};
use super::{Limit, RowTarget, collect};
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use plan::physical::{SetOperation, SetPlan};
use std::collections::HashSet;
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
    if !plan.order_by.is_empty() {
        let type_of = |position: usize| types[position];
        let mut sorter = Sorter::new(&plan.order_by, type_of, limit.needed(), exec.memory);
        for row in rows {
            sorter.add(row)?;
        }
        rows = sorter.finish();
    }
    let offset = usize::try_from(limit.offset).unwrap_or(usize::MAX);
    let count = usize::try_from(limit.count).unwrap_or(usize::MAX);
    for row in rows.iter().skip(offset).take(count) {
        exec.tick()?;
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        if target(exec.eval, &values)?.is_break() {
            break;
        }
    }
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
    let other: HashSet<Vec<u8>> = match operation {
        SetOperation::Union | SetOperation::UnionAll => {
            left.extend(right);
            HashSet::new()
        }
        SetOperation::Except | SetOperation::Intersect => {
            right.iter().map(|row| identity(row, types)).collect()
        }
    };
    let mut distinct = Distinct::default();
    let mut kept = Vec::new();
    for row in left {
        let wanted = match operation {
            SetOperation::Except => !other.contains(&identity(&row, types)),
            SetOperation::Intersect => other.contains(&identity(&row, types)),
            SetOperation::Union | SetOperation::UnionAll => true,
        };
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        if wanted && distinct.is_new(&values, types, exec.memory)? {
            kept.push(row);
        }
    }
    Ok(kept)
}
