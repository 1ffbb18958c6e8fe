//! What a window function makes of the rows of a partition, row by row.

use super::edges::{Edges, Peers, integer};
use super::rows::PartitionRows;
use crate::ExecError;
use crate::context::Exec;
use expr::Expr;
use expr::aggregate::{Accumulator, Aggregate};
use plan::physical::{WindowFunction, WindowKind, WindowStep};
use std::ops::Range;
use types::{SqlError, Value, ValueRef, codes};

/// A function on its way through a partition.
pub struct Running<'p> {
    function: &'p WindowFunction,
    edges: Edges<'p>,
    /// Of an aggregate: what it has of the rows `known`, and its value.
    accumulator: Option<Accumulator>,
    known: Range<usize>,
    last: Value,
}

impl<'p> Running<'p> {
    /// Before the first row.
    pub fn new(
        exec: &Exec<'_>,
        step: &WindowStep,
        function: &'p WindowFunction,
        rows: &mut PartitionRows,
    ) -> Result<Self, ExecError> {
        Ok(Self {
            function,
            edges: Edges::new(exec, step, &function.frame, rows)?,
            accumulator: None,
            known: 0..0,
            last: Value::Null,
        })
    }

    /// The value for row `at`, to which `peers` have come.
    pub fn value(
        &mut self,
        exec: &mut Exec<'_>,
        at: usize,
        rows: &mut PartitionRows,
        peers: &Peers,
    ) -> Result<Value, ExecError> {
        let function = self.function;
        match &function.kind {
            WindowKind::Aggregate(call) => self.aggregate(exec, call, at, rows, peers),
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                self.of_frame(exec, at, rows, peers)
            }
            WindowKind::Lag | WindowKind::Lead => of_other(exec, function, at, rows),
            WindowKind::Ntile => tile(exec, &function.arguments[0], at, rows),
            kind => Ok(place(kind, at, rows.len(), peers)),
        }
    }

    /// FIRST_VALUE, LAST_VALUE, NTH_VALUE.
    fn of_frame(
        &mut self,
        exec: &Exec<'_>,
        at: usize,
        rows: &mut PartitionRows,
        peers: &Peers,
    ) -> Result<Value, ExecError> {
        let arguments = &self.function.arguments;
        let mut frame = self.edges.of(at, rows, peers)?;
        let wanted = match self.function.kind {
            WindowKind::FirstValue => frame.next(),
            WindowKind::LastValue => frame.next_back(),
            _ => {
                let number = integer(arguments[1].eval(exec.eval, rows.row(at)?)?).unwrap_or(0);
                let number = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                number.and_then(|number| frame.nth(number))
            }
        };
        match wanted.filter(|wanted| *wanted < rows.len()) {
            None => Ok(Value::Null),
            Some(wanted) => value_of(exec, &arguments[0], wanted, rows),
        }
    }

    fn aggregate(
        &mut self,
        exec: &mut Exec<'_>,
        call: &Aggregate,
        at: usize,
        rows: &mut PartitionRows,
        peers: &Peers,
    ) -> Result<Value, ExecError> {
        let frame = self.edges.of(at, rows, peers)?;
        if at > 0 && frame == self.known {
            return Ok(self.last.clone());
        }
        // A frame that only grows goes on where the one before ended.
        let known = &self.known;
        let grows = at > 0 && frame.start == known.start && frame.end >= known.end;
        let from = if grows { known.end } else { frame.start };
        if !grows {
            self.accumulator = None;
        }
        let accumulator = self.accumulator.get_or_insert_with(|| call.accumulator());
        for number in from..frame.end {
            exec.tick()?;
            accumulator.update(call, exec.eval, rows.row(number)?)?;
            exec.eval.reset_arena();
        }
        self.last = accumulator.value(call, exec.eval)?;
        self.known = frame;
        Ok(self.last.clone())
    }
}

/// What an expression makes of a row.
fn value_of(
    exec: &Exec<'_>,
    expr: &Expr,
    at: usize,
    rows: &mut PartitionRows,
) -> Result<Value, ExecError> {
    Ok(ValueRef::to_owned(expr.eval_result(exec.eval, rows.row(at)?)?))
}

/// Where a row stands among the others.
fn place(kind: &WindowKind, at: usize, count: usize, peers: &Peers) -> Value {
    let number = |number: usize| Value::Int(number as i64);
    let run = peers.run();
    match kind {
        WindowKind::RowNumber => number(at + 1),
        WindowKind::Rank => number(run.start + 1),
        WindowKind::DenseRank => number(peers.number() + 1),
        WindowKind::PercentRank if count > 1 => {
            Value::Double(run.start as f64 / (count - 1) as f64)
        }
        WindowKind::PercentRank => Value::Double(0.0),
        _ => Value::Double(run.end as f64 / count as f64),
    }
}

fn tile(
    exec: &Exec<'_>,
    tiles: &Expr,
    at: usize,
    rows: &mut PartitionRows,
) -> Result<Value, ExecError> {
    let count = rows.len() as u64;
    let tiles = integer(tiles.eval(exec.eval, rows.row(at)?)?).filter(|tiles| *tiles > 0);
    let tiles = tiles.ok_or_else(|| SqlError::new(&codes::INVALID_NTILE_ARGUMENT, &[]))?;
    let (at, tiles) = (at as u64, tiles as u64);
    // The first tiles have one row more where the rows cannot be dealt out evenly.
    let (few, larger) = (count / tiles, count % tiles);
    let in_larger = larger * (few + 1);
    let tile = match at < in_larger {
        true => at / (few + 1),
        false => larger + (at - in_larger) / few.max(1),
    };
    Ok(Value::Int(tile as i64 + 1))
}

/// LAG and LEAD.
fn of_other(
    exec: &Exec<'_>,
    function: &WindowFunction,
    at: usize,
    rows: &mut PartitionRows,
) -> Result<Value, ExecError> {
    let distance = match function.arguments.get(1) {
        None => 1,
        Some(distance) => integer(distance.eval(exec.eval, rows.row(at)?)?).unwrap_or(0),
    };
    let at = at as i64;
    let other = match function.kind {
        WindowKind::Lag => at.checked_sub(distance),
        _ => at.checked_add(distance),
    };
    let other = other.and_then(|other| usize::try_from(other).ok());
    match other.filter(|other| *other < rows.len()) {
        None => Ok(Value::Null),
        Some(other) => value_of(exec, &function.arguments[0], other, rows),
    }
}
