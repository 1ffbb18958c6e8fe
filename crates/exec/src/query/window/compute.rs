//! What a window function makes of the rows of a partition.

use super::edges::{Edges, Peers, integer};
use crate::ExecError;
use crate::context::Exec;
use expr::Expr;
use expr::aggregate::Aggregate;
use plan::physical::{WindowFunction, WindowKind, WindowStep};
use types::{SqlError, Value, ValueRef, codes};

type Rows<'r> = &'r [Vec<Value>];

/// The function's value for each row.
pub fn values(
    exec: &mut Exec<'_>,
    step: &WindowStep,
    function: &WindowFunction,
    rows: Rows<'_>,
    peers: &Peers,
) -> Result<Vec<Value>, ExecError> {
    match &function.kind {
        WindowKind::Aggregate(call) => aggregates(exec, step, function, call, rows, peers),
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            of_frames(exec, step, function, rows, peers)
        }
        WindowKind::Lag | WindowKind::Lead => of_others(exec, function, rows),
        WindowKind::Ntile => tiles(exec, &function.arguments[0], rows),
        kind => Ok((0..rows.len()).map(|at| place(kind, at, rows.len(), peers)).collect()),
    }
}

/// Where a row stands among the others.
fn place(kind: &WindowKind, at: usize, count: usize, peers: &Peers) -> Value {
    let number = |number: usize| Value::Int(number as i64);
    let run = peers.of(at);
    match kind {
        WindowKind::RowNumber => number(at + 1),
        WindowKind::Rank => number(run.start + 1),
        WindowKind::DenseRank => number(peers.number(at) + 1),
        WindowKind::PercentRank if count > 1 => {
            Value::Double(run.start as f64 / (count - 1) as f64)
        }
        WindowKind::PercentRank => Value::Double(0.0),
        _ => Value::Double(run.end as f64 / count as f64),
    }
}

fn tiles(exec: &Exec<'_>, tiles: &Expr, rows: Rows<'_>) -> Result<Vec<Value>, ExecError> {
    let mut values = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let tiles = integer(tiles.eval(exec.eval, row)?).filter(|tiles| *tiles > 0);
        let tiles = tiles.ok_or_else(|| SqlError::new(&codes::INVALID_NTILE_ARGUMENT, &[]))?;
        let (at, count, tiles) = (at as u64, rows.len() as u64, tiles as u64);
        // The first tiles have one row more where the rows cannot be dealt out evenly.
        let (few, larger) = (count / tiles, count % tiles);
        let in_larger = larger * (few + 1);
        let tile = match at < in_larger {
            true => at / (few + 1),
            false => larger + (at - in_larger) / few.max(1),
        };
        values.push(Value::Int(tile as i64 + 1));
    }
    Ok(values)
}

/// LAG and LEAD.
fn of_others(
    exec: &Exec<'_>,
    function: &WindowFunction,
    rows: Rows<'_>,
) -> Result<Vec<Value>, ExecError> {
    let mut values = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let distance = match function.arguments.get(1) {
            None => 1,
            Some(distance) => integer(distance.eval(exec.eval, row)?).unwrap_or(0),
        };
        let at = at as i64;
        let other = match function.kind {
            WindowKind::Lag => at.checked_sub(distance),
            _ => at.checked_add(distance),
        };
        let other = other.and_then(|other| usize::try_from(other).ok());
        values.push(match other.and_then(|other| rows.get(other)) {
            None => Value::Null,
            Some(row) => ValueRef::to_owned(function.arguments[0].eval_result(exec.eval, row)?),
        });
    }
    Ok(values)
}

/// FIRST_VALUE, LAST_VALUE, NTH_VALUE.
fn of_frames(
    exec: &Exec<'_>,
    step: &WindowStep,
    function: &WindowFunction,
    rows: Rows<'_>,
    peers: &Peers,
) -> Result<Vec<Value>, ExecError> {
    let edges = Edges::new(exec, step, &function.frame, rows)?;
    let mut values = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let mut frame = edges.of(at, rows, peers);
        let wanted = match function.kind {
            WindowKind::FirstValue => frame.next(),
            WindowKind::LastValue => frame.next_back(),
            _ => {
                let number = integer(function.arguments[1].eval(exec.eval, row)?).unwrap_or(0);
                let number = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                number.and_then(|number| frame.nth(number))
            }
        };
        values.push(match wanted.and_then(|wanted| rows.get(wanted)) {
            None => Value::Null,
            Some(row) => ValueRef::to_owned(function.arguments[0].eval_result(exec.eval, row)?),
        });
    }
    Ok(values)
}

fn aggregates(
    exec: &mut Exec<'_>,
    step: &WindowStep,
    function: &WindowFunction,
    call: &Aggregate,
    rows: Rows<'_>,
    peers: &Peers,
) -> Result<Vec<Value>, ExecError> {
    let edges = Edges::new(exec, step, &function.frame, rows)?;
    let mut values: Vec<Value> = Vec::with_capacity(rows.len());
    let mut accumulator = call.accumulator();
    let mut known = 0..0;
    for at in 0..rows.len() {
        let frame = edges.of(at, rows, peers);
        if at > 0 && frame == known {
            let same = values[at - 1].clone();
            values.push(same);
            continue;
        }
        // A frame that only grows goes on where the one before ended.
        let grows = frame.start == known.start && frame.end >= known.end;
        let from = if grows { known.end } else { frame.start };
        if !grows {
            accumulator = call.accumulator();
        }
        for row in &rows[from..frame.end] {
            exec.tick()?;
            accumulator.update(call, exec.eval, row)?;
        }
        values.push(accumulator.value(call, exec.eval)?);
        known = frame;
    }
    Ok(values)
}
