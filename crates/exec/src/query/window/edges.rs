//! Which rows of a partition a function looks at.

use super::rows::PartitionRows;
use crate::ExecError;
use crate::context::Exec;
use crate::order;
use expr::Expr;
use plan::physical::{FrameEdge, FramePlan, WindowPlan, WindowStep};
use std::cmp::Ordering;
use std::ops::Range;
use types::{CollationId, Decimal, Value, ValueRef};

/// The present row and those that are equal to it in the window's order.
#[derive(Default)]
pub struct Peers {
    run: Range<usize>,
    /// Runs of equal rows before.
    number: usize,
}

impl Peers {
    /// The rows that are equal to the present one, and it.
    pub fn run(&self) -> Range<usize> {
        self.run.clone()
    }

    /// How many other values of the order come before the present row.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Comes to row `at`, the one behind the present one.
    pub fn come_to(
        &mut self,
        at: usize,
        step: &WindowStep,
        plan: &WindowPlan,
        rows: &mut PartitionRows,
    ) -> Result<(), ExecError> {
        if at < self.run.end {
            return Ok(());
        }
        self.number += usize::from(at > 0);
        self.run = at..rows.len();
        if step.order.is_empty() {
            return Ok(());
        }
        let (mut first, mut other) = (Vec::new(), Vec::new());
        push_identity(rows.row(at)?, step, plan, &mut first);
        for end in at + 1..rows.len() {
            runtime::yield_if_due();
            other.clear();
            push_identity(rows.row(end)?, step, plan, &mut other);
            if first != other {
                self.run.end = end;
                break;
            }
        }
        Ok(())
    }
}

fn push_identity(row: &[Value], step: &WindowStep, plan: &WindowPlan, out: &mut Vec<u8>) {
    for key in &step.order {
        let column_type = super::type_of(plan, key.position);
        order::push_identity(row[key.position].as_ref(), &column_type, out);
    }
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
    /// Where the frame before began and ended, if values bound it.
    bounded: Range<usize>,
}

impl<'p> Edges<'p> {
    /// For one partition.
    pub fn new(
        exec: &Exec<'_>,
        step: &WindowStep,
        frame: &'p FramePlan,
        rows: &mut PartitionRows,
    ) -> Result<Self, ExecError> {
        let mut distance = |edge: &FrameEdge| -> Result<i64, ExecError> {
            let FrameEdge::Rows { count, following } = edge else { return Ok(0) };
            let count = count_of(exec, count, rows)?;
            Ok(if *following { count } else { -count })
        };
        Ok(Self {
            frame,
            descending: step.order.first().is_some_and(|key| key.descending),
            start: distance(&frame.start)?,
            end: distance(&frame.end)?,
            bounded: 0..0,
        })
    }

    /// The frame of row `at`, to which `peers` have come.
    pub fn of(
        &mut self,
        at: usize,
        rows: &mut PartitionRows,
        peers: &Peers,
    ) -> Result<Range<usize>, ExecError> {
        let frame = self.frame;
        let start = match &frame.start {
            FrameEdge::Unbounded => 0,
            FrameEdge::Current if frame.rows => at,
            FrameEdge::Current => peers.run().start,
            FrameEdge::Rows { .. } => moved(at, self.start, rows.len()),
            FrameEdge::Range { bound } => match bound_of(at, *bound, rows)? {
                None => peers.run().start,
                Some(bound) => {
                    let before = self.before();
                    let is_outside = |order| order == before;
                    let from = self.bounded.start;
                    self.bounded.start = self.walk(rows, &bound, from, is_outside)?;
                    self.bounded.start
                }
            },
        };
        let end = match &frame.end {
            FrameEdge::Unbounded => rows.len(),
            FrameEdge::Current if frame.rows => at + 1,
            FrameEdge::Current => peers.run().end,
            FrameEdge::Rows { .. } => moved(at, self.end.saturating_add(1), rows.len()),
            FrameEdge::Range { bound } => match bound_of(at, *bound, rows)? {
                None => peers.run().end,
                Some(bound) => {
                    let behind = self.before().reverse();
                    let is_inside = |order| order != behind;
                    let from = self.bounded.end;
                    self.bounded.end = self.walk(rows, &bound, from, is_inside)?;
                    self.bounded.end
                }
            },
        };
        Ok(start..end.max(start))
    }

    /// How a value that comes before another compares with it.
    fn before(&self) -> Ordering {
        if self.descending { Ordering::Greater } else { Ordering::Less }
    }

    /// The first row of which `is_before` says no of its comparison with a bound. Bounds move on
    /// with the rows: it is looked for from where it was for the row before.
    fn walk(
        &self,
        rows: &mut PartitionRows,
        bound: &Value,
        from: usize,
        is_before: impl Fn(Ordering) -> bool,
    ) -> Result<usize, ExecError> {
        let (key, count) = (self.frame.range_key, rows.len());
        let mut passes = |at: usize| -> Result<bool, ExecError> {
            let row = rows.row(at)?;
            let value = key.map_or(ValueRef::Null, |key| row[key].as_ref());
            let binary = CollationId::BINARY.info();
            Ok(is_before(order::compare(value, bound.as_ref(), binary)))
        };
        let mut at = from;
        while at > 0 && !passes(at - 1)? {
            at -= 1;
        }
        while at < count && passes(at)? {
            at += 1;
        }
        Ok(at)
    }
}

/// The value at the frame's edge; none if the row's own is NULL.
fn bound_of(at: usize, bound: usize, rows: &mut PartitionRows) -> Result<Option<Value>, ExecError> {
    let value = &rows.row(at)?[bound];
    Ok((!value.is_null()).then(|| value.clone()))
}

fn moved(at: usize, distance: i64, count: usize) -> usize {
    let moved = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(distance).max(0);
    usize::try_from(moved).unwrap_or(usize::MAX).min(count)
}

fn count_of(exec: &Exec<'_>, count: &Expr, rows: &mut PartitionRows) -> Result<i64, ExecError> {
    if rows.len() == 0 {
        return Ok(0);
    }
    Ok(integer(count.eval(exec.eval, rows.row(0)?)?).unwrap_or(0))
}
