//! Which rows of a partition a function looks at.

use crate::ExecError;
use crate::context::Exec;
use crate::order;
use expr::Expr;
use plan::physical::{FrameEdge, FramePlan, WindowPlan, WindowStep};
use std::cmp::Ordering;
use std::ops::Range;
use types::{CollationId, Decimal, Value, ValueRef};

/// Rows that are equal to the window's order, one run behind the other.
pub struct Peers {
    runs: Vec<Range<usize>>,
    /// The run of each row.
    run_of: Vec<usize>,
}

impl Peers {
    /// The rows that are equal to row `at`.
    pub fn of(&self, at: usize) -> Range<usize> {
        self.runs[self.run_of[at]].clone()
    }

    /// How many other values of the order come before row `at`.
    pub fn number(&self, at: usize) -> usize {
        self.run_of[at]
    }
}

/// Finds the runs of equal rows.
pub fn peers(step: &WindowStep, plan: &WindowPlan, rows: &[Vec<Value>]) -> Peers {
    let mut peers = Peers { runs: Vec::new(), run_of: Vec::with_capacity(rows.len()) };
    let (mut last, mut identity) = (Vec::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        identity.clear();
        for key in &step.order {
            let column_type = super::type_of(plan, key.position);
            order::push_identity(row[key.position].as_ref(), &column_type, &mut identity);
        }
        if at == 0 || identity != last {
            peers.runs.push(at..at);
            std::mem::swap(&mut last, &mut identity);
        }
        if let Some(run) = peers.runs.last_mut() {
            run.end = at + 1;
        }
        peers.run_of.push(peers.runs.len() - 1);
    }
    peers
}

/// A number as an integer; none for NULL.
pub fn integer(value: ValueRef<'_>) -> Option<i64> {
    Some(match value {
        ValueRef::Null => return None,
        ValueRef::Int(number) => number,
        ValueRef::UInt(number) => i64::try_from(number).unwrap_or(i64::MAX),
        ValueRef::Double(number) => number.round() as i64,
        ValueRef::Float(number) => number.round() as i64,
        ValueRef::Decimal(number) => whole(&number),
        ValueRef::Bytes(text) => {
            i64::try_from(types::number::parse_integer(text).value.to_u64().0).unwrap_or(i64::MAX)
        }
        _ => 0,
    })
}

fn whole(number: &Decimal) -> i64 {
    let scale = 10i128.checked_pow(u32::from(number.scale())).unwrap_or(i128::MAX);
    let mantissa = number.mantissa().unwrap_or(i128::MAX);
    i64::try_from(mantissa / scale).unwrap_or(i64::MAX)
}

/// The rows of a frame.
pub struct Edges<'p> {
    frame: &'p FramePlan,
    descending: bool,
    /// Rows from the present one to where a frame of ROWS begins and ends.
    start: i64,
    end: i64,
}

impl<'p> Edges<'p> {
    /// For one partition.
    pub fn new(
        exec: &Exec<'_>,
        step: &WindowStep,
        frame: &'p FramePlan,
        rows: &[Vec<Value>],
    ) -> Result<Self, ExecError> {
        let distance = |edge: &FrameEdge| -> Result<i64, ExecError> {
            let FrameEdge::Rows { count, following } = edge else { return Ok(0) };
            let count = count_of(exec, count, rows)?;
            Ok(if *following { count } else { -count })
        };
        Ok(Self {
            frame,
            descending: step.order.first().is_some_and(|key| key.descending),
            start: distance(&frame.start)?,
            end: distance(&frame.end)?,
        })
    }

    /// The frame of row `at`.
    pub fn of(&self, at: usize, rows: &[Vec<Value>], peers: &Peers) -> Range<usize> {
        let start = match &self.frame.start {
            FrameEdge::Unbounded => 0,
            FrameEdge::Current if self.frame.rows => at,
            FrameEdge::Current => peers.of(at).start,
            FrameEdge::Rows { .. } => moved(at, self.start, rows.len()),
            FrameEdge::Range { bound } => match self.bound(at, *bound, rows) {
                None => peers.of(at).start,
                Some(bound) => self.first_not(rows, bound, self.before()),
            },
        };
        let end = match &self.frame.end {
            FrameEdge::Unbounded => rows.len(),
            FrameEdge::Current if self.frame.rows => at + 1,
            FrameEdge::Current => peers.of(at).end,
            FrameEdge::Rows { .. } => moved(at, self.end.saturating_add(1), rows.len()),
            FrameEdge::Range { bound } => match self.bound(at, *bound, rows) {
                None => peers.of(at).end,
                Some(bound) => {
                    let behind = self.before().reverse();
                    rows.partition_point(|row| self.compare(row, bound) != behind)
                }
            },
        };
        start..end.max(start)
    }

    /// How a value that comes before another compares with it.
    fn before(&self) -> Ordering {
        if self.descending { Ordering::Greater } else { Ordering::Less }
    }

    fn first_not(&self, rows: &[Vec<Value>], bound: ValueRef<'_>, before: Ordering) -> usize {
        rows.partition_point(|row| self.compare(row, bound) == before)
    }

    fn compare(&self, row: &[Value], bound: ValueRef<'_>) -> Ordering {
        let key = self.frame.range_key.map_or(ValueRef::Null, |key| row[key].as_ref());
        order::compare(key, bound, CollationId::BINARY.info())
    }

    /// The value at the frame's edge; none if the row's own is NULL.
    fn bound<'r>(&self, at: usize, bound: usize, rows: &'r [Vec<Value>]) -> Option<ValueRef<'r>> {
        let value = rows[at][bound].as_ref();
        (!value.is_null()).then_some(value)
    }
}

fn moved(at: usize, distance: i64, count: usize) -> usize {
    let moved = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(distance).max(0);
    usize::try_from(moved).unwrap_or(usize::MAX).min(count)
}

fn count_of(exec: &Exec<'_>, count: &Expr, rows: &[Vec<Value>]) -> Result<i64, ExecError> {
    let Some(row) = rows.first() else { return Ok(0) };
    Ok(integer(count.eval(exec.eval, row)?).unwrap_or(0))
}
