//! Aggregates of many groups as arrays: one number a group instead of an accumulator.
//!
//! 1. What is kept here joins what the group's accumulator has when the groups are finished: rows
//!    may go either way, batch by batch. DISTINCT alone goes this way for all rows or for none, or
//!    until what was seen moves elsewhere.
//! 2. Sums are exact: 128 bits hold 2^63 rows of 64 bit numbers.

use crate::ExecError;
use expr::aggregate::{Accumulator, Aggregate, AggregateFunction};
use expr::vector::{Batch, Kernel, Overflow, Shape};
use expr::{EvalContext, ExprKind};
use hashbrown::HashSet;
use types::row::{Lane, Numbers};
use types::{SqlError, TypeKind, ValueRef};

/// Which group each selected row belongs to.
#[derive(Clone, Copy)]
pub enum Places<'a> {
    /// All to group 0.
    One,
    /// A group for each.
    Each(&'a [u32]),
}

impl Places<'_> {
    #[inline]
    fn of(self, at: usize) -> usize {
        match self {
            Self::One => 0,
            Self::Each(places) => places[at] as usize,
        }
    }
}

enum State {
    Rows(Vec<i64>),
    /// Rows in which a column of any type is not NULL.
    Present {
        position: usize,
        counts: Vec<i64>,
    },
    Sum {
        kernel: Kernel,
        sums: Vec<(i128, i64)>,
    },
    Extreme {
        kernel: Kernel,
        greatest: bool,
        best: Vec<Option<i64>>,
    },
    /// COUNT, SUM and AVG of DISTINCT.
    Distinct {
        kernel: Kernel,
        seen: HashSet<(u32, i64)>,
        sums: Vec<(i128, i64)>,
        /// What was seen is kept elsewhere: nothing is taken any more.
        is_full: bool,
    },
}

/// Memory of a value that was seen, with the room that a set has to spare.
const SEEN_BYTES: usize = 40;

/// See the head of the file.
pub struct Packed {
    state: State,
    numbers: Numbers,
}

impl Packed {
    /// For an aggregate that can be kept so.
    pub fn new(call: &Aggregate, context: &EvalContext, shape: &dyn Shape) -> Option<Self> {
        use AggregateFunction as F;
        let state = match (call.function, call.arguments.as_slice()) {
            (F::CountRows, _) => State::Rows(Vec::new()),
            (F::Count | F::Sum | F::Average | F::Minimum | F::Maximum, [argument]) => {
                let kernel = Kernel::of_result(argument, context, shape);
                match (call.function, &argument.kind) {
                    (F::Count, ExprKind::Column { position, .. })
                        if !call.distinct && shape.holds(*position) =>
                    {
                        State::Present { position: *position, counts: Vec::new() }
                    }
                    (F::Minimum | F::Maximum, _) => {
                        let greatest = call.function == F::Maximum;
                        State::Extreme { kernel: kernel?, greatest, best: Vec::new() }
                    }
                    (F::Sum | F::Average, _) => {
                        Self::sum(call, Kernel::of_value(argument, context, shape)?)?
                    }
                    _ => Self::sum(call, kernel?)?,
                }
            }
            _ => return None,
        };
        Some(Self { state, numbers: Numbers::default() })
    }

    fn sum(call: &Aggregate, kernel: Kernel) -> Option<State> {
        let counts = call.function == AggregateFunction::Count;
        let is_number = matches!(kernel.lane(), Lane::Int | Lane::UInt | Lane::Decimal { .. });
        if !counts && (!is_number || call.result.column_type.kind != TypeKind::Decimal) {
            return None;
        }
        match (call.distinct, kernel.is_column()) {
            (true, true) => {
                let (seen, sums) = (HashSet::new(), Vec::new());
                Some(State::Distinct { kernel, seen, sums, is_full: false })
            }
            (true, false) => None,
            (false, _) => Some(State::Sum { kernel, sums: Vec::new() }),
        }
    }

    /// Takes the selected rows of a batch. After an overflow nothing is taken.
    pub fn add(
        &mut self,
        batch: Option<&dyn Batch>,
        selected: &[u32],
        places: Places<'_>,
        groups: usize,
    ) -> Result<(), Overflow> {
        let numbers = &mut self.numbers;
        if let State::Rows(counts) = &mut self.state {
            counts.resize(groups, 0);
            match places {
                Places::One => counts[0] += selected.len() as i64,
                Places::Each(places) => places.iter().for_each(|&at| counts[at as usize] += 1),
            }
            return Ok(());
        }
        let Some(batch) = batch else { return Err(Overflow) };
        match &mut self.state {
            State::Rows(_) => {}
            State::Present { position, counts } => {
                counts.resize(groups, 0);
                for (at, row) in selected.iter().enumerate() {
                    let present = !batch.value(*position, *row).is_null();
                    counts[places.of(at)] += i64::from(present);
                }
            }
            State::Sum { kernel, sums } => {
                kernel.eval(batch, selected, numbers)?;
                sums.resize(groups, (0, 0));
                add_sums(numbers, places, sums);
            }
            State::Extreme { kernel, greatest, best } => {
                kernel.eval(batch, selected, numbers)?;
                best.resize(groups, None);
                let greatest = *greatest;
                for (at, &number) in numbers.values.iter().enumerate() {
                    if numbers.is_null(at) {
                        continue;
                    }
                    let best = &mut best[places.of(at)];
                    let better = best
                        .is_none_or(|best| if greatest { number > best } else { number < best });
                    if better {
                        *best = Some(number);
                    }
                }
            }
            State::Distinct { is_full: true, .. } => return Err(Overflow),
            State::Distinct { kernel, seen, sums, .. } => {
                kernel.eval(batch, selected, numbers)?;
                sums.resize(groups, (0, 0));
                for (at, &number) in numbers.values.iter().enumerate() {
                    let place = places.of(at);
                    if !numbers.is_null(at) && seen.insert((place as u32, number)) {
                        sums[place].0 += i128::from(number);
                        sums[place].1 += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of the values kept for DISTINCT, as they grow.
    pub fn kept_bytes(&self) -> usize {
        match &self.state {
            State::Distinct { seen, .. } => seen.len() * SEEN_BYTES,
            _ => 0,
        }
    }

    /// Gives away the values kept for DISTINCT, with their groups. No more are taken.
    pub fn take_seen(
        &mut self,
        mut give: impl FnMut(usize, ValueRef<'_>) -> Result<(), ExecError>,
    ) -> Result<(), ExecError> {
        let State::Distinct { kernel, seen, is_full, .. } = &mut self.state else { return Ok(()) };
        *is_full = true;
        let lane = kernel.lane();
        std::mem::take(seen)
            .into_iter()
            .try_for_each(|(group, number)| give(group as usize, lane.value(number)))
    }

    /// Adds what is kept of a group to its accumulator.
    pub fn finish(
        &self,
        group: usize,
        call: &Aggregate,
        context: &EvalContext,
        accumulator: &mut Accumulator,
    ) -> Result<(), SqlError> {
        match &self.state {
            State::Rows(counts) | State::Present { counts, .. } => {
                accumulator.add_count(counts.get(group).copied().unwrap_or(0));
            }
            State::Sum { kernel, sums } | State::Distinct { kernel, sums, .. } => {
                let Some(&(sum, count)) = sums.get(group) else { return Ok(()) };
                accumulator.add_count(count);
                accumulator.add_sum(kernel.lane(), sum, count)?;
            }
            State::Extreme { kernel, best, .. } => {
                if let Some(&Some(number)) = best.get(group) {
                    accumulator.add_value(call, context, kernel.lane().value(number))?;
                }
            }
        }
        Ok(())
    }
}

/// The sum of numbers. Their halves are added apart, several at a time: neither half's sum can
/// leave 64 bits.
fn wide_sum(numbers: &[i64]) -> i128 {
    let sum_of = |numbers: &[i64]| {
        let (mut high, mut low) = (0_i64, 0_u64);
        for &number in numbers {
            high += number >> 32;
            low += u64::from(number as u32);
        }
        (i128::from(high) << 32) + i128::from(low)
    };
    numbers.chunks(1 << 30).map(sum_of).sum()
}

fn add_sums(numbers: &Numbers, places: Places<'_>, sums: &mut [(i128, i64)]) {
    if let (Places::One, true) = (places, numbers.nulls.is_empty()) {
        sums[0].0 += wide_sum(&numbers.values);
        sums[0].1 += numbers.values.len() as i64;
        return;
    }
    for (at, &number) in numbers.values.iter().enumerate() {
        if !numbers.is_null(at) {
            let sum = &mut sums[places.of(at)];
            sum.0 += i128::from(number);
            sum.1 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_as_wide_as_they_have_to_be() {
        let ends = [i64::MIN, i64::MAX, -1, 0, 1, 1 << 32, -(1 << 32), u32::MAX.into()];
        for length in 0..40 {
            for start in 0..ends.len() {
                let numbers: Vec<i64> = ends
                    .iter()
                    .cycle()
                    .skip(start)
                    .step_by(3)
                    .take(length)
                    .chain(&[i64::MIN; 3][..length % 4])
                    .copied()
                    .collect();
                let expected: i128 = numbers.iter().map(|&number| i128::from(number)).sum();
                assert_eq!(wide_sum(&numbers), expected, "{numbers:?}");
            }
        }
    }
}
