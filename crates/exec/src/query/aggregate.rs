//! Grouping by hashing.
//!
//! A group is found by the bytes that tell its keys apart (`order::push_identity`). Where rows come
//! in batches (`vector.rs`), a key that is a number or a text column has a shorter way to groups
//! that came before, and aggregates with kernels are kept in arrays (`packed.rs`).
//!
//! Beyond the budget (`overflow.rs`):
//! 1. Where rows come in the order of the keys, all groups but the last are finished: their rows go
//!    to a file, which is read first in the end.
//! 2. Elsewhere no group is added any more. Rows of others go to files chosen by the key's hash,
//!    and are grouped file by file when the groups in memory are finished.
//! 3. What aggregates keep, values of DISTINCT and lists, moves to files for itself
//!    (`deferred.rs`), for the groups in memory. Where rows come in the order of the keys, all
//!    groups are finished then before a new one begins.

use super::Flow;
use super::block::BlockRun;
use super::deferred::{DeferredValues, Lists};
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::packed::{Packed, Places};
use super::vector::Columns as BatchColumns;
use crate::ExecError;
use crate::context::Exec;
use crate::frame::Frame;
use crate::order;
use crate::spill::Charged;
use expr::vector::{Batch, Kernel};
use expr::{Columns, Expr, ExprKind};
use group::Group;
use hashbrown::HashMap;
use overflow::{Overflow, rows_here};
use plan::physical::AggregatePlan;
use types::row::{Lane, Numbers};
use types::{Value, ValueRef};

mod group;
mod overflow;

/// The shorter way from a key to its group.
enum ShortWay {
    /// One group.
    One,
    /// The key is a number. NULL has a place of its own.
    Number { kernel: Kernel, places: HashMap<i64, u32>, null: Option<u32> },
    /// The key is this column; `texts` are those that came before as they were written.
    Text { position: usize, texts: Keys, places: Vec<u32>, asked: usize },
    /// None.
    Long,
}

/// Memory of a number's way.
const NUMBER_BYTES: usize = 32;
/// Longest text that has a short way.
const TEXT_BYTES: usize = 64;
/// Texts that have a short way.
const TEXTS_MAX: usize = 4096;

/// How batches are taken.
struct Vectors {
    way: ShortWay,
    /// For each aggregate, if it has kernels.
    packed: Vec<Option<Packed>>,
    /// Group of each row of the batch.
    places: Vec<u32>,
    numbers: Numbers,
}

/// The groups seen so far, in the order in which they came.
pub struct Groups<'p> {
    plan: &'p AggregatePlan,
    /// Key number N is that of group N.
    places: Keys,
    groups: Vec<Group>,
    identity: Vec<u8>,
    charged: Charged,
    vectors: Option<Box<Vectors>>,
    overflow: Option<Box<Overflow>>,
    /// Bytes charged for what aggregates keep.
    kept_bytes: usize,
    /// Where it goes when it does not fit.
    deferred: Option<Box<DeferredValues<'p>>>,
}

/// The group of a row that has to wait.
const LATER: u32 = u32::MAX;

impl<'p> Groups<'p> {
    /// No group; without GROUP BY the one group of all rows.
    pub fn new(plan: &'p AggregatePlan, exec: &Exec<'_>) -> Self {
        if !plan.keys.is_empty() && !plan.sorted {
            exec.spill.count_table();
        }
        let mut groups = Self {
            plan,
            places: Keys::default(),
            groups: Vec::new(),
            identity: Vec::new(),
            charged: Charged::none(exec.memory),
            vectors: None,
            overflow: None,
            kept_bytes: 0,
            deferred: None,
        };
        if plan.keys.is_empty() {
            groups.begin(Vec::new());
        }
        groups
    }

    fn begin(&mut self, keys: Vec<Value>) {
        let accumulators = self.plan.calls.iter().map(|call| call.accumulator()).collect();
        self.groups.push(Group { keys, carried: Vec::new(), accumulators });
    }

    /// Keeps the values that are carried over, once for each group.
    fn carry(&mut self, place: usize, frame: &dyn Columns) {
        let group = &mut self.groups[place];
        if group.carried.len() < self.plan.carried.len() {
            let carried = self.plan.carried.iter().map(|&at| frame.column(at).to_owned());
            group.carried = carried.collect();
        }
    }

    /// Adds a frame to its group.
    pub fn add(&mut self, exec: &mut Exec<'_>, frame: &dyn Columns) -> Result<Flow, ExecError> {
        let place = match self.plan.keys.is_empty() {
            true => Some(0),
            false => self.find(exec, frame)?,
        };
        if let Some(place) = place {
            self.update(exec, frame, place)?;
            self.write_finished(exec)?;
        }
        Ok(Flow::Continue(()))
    }

    fn update(
        &mut self,
        exec: &Exec<'_>,
        frame: &dyn Columns,
        place: usize,
    ) -> Result<(), ExecError> {
        self.carry(place, frame);
        let group = &mut self.groups[place];
        if let Some(deferred) = &mut self.deferred {
            for (number, accumulator) in group.accumulators.iter_mut().enumerate() {
                deferred.update(exec, place, number, accumulator, frame)?;
            }
            return Ok(());
        }
        let mut kept = 0;
        for (accumulator, call) in group.accumulators.iter_mut().zip(&self.plan.calls) {
            let before = accumulator.kept_bytes();
            accumulator.update(call, exec.eval, frame)?;
            kept += accumulator.kept_bytes() - before;
        }
        self.charge_kept(exec, kept)
    }

    /// Charges what is kept; without room for it the groups overflow.
    fn charge(&mut self, exec: &Exec<'_>, bytes: usize) {
        let more = self.charged.bytes() + bytes as u64;
        if more > exec.spill.budgets().table || !self.charged.add(bytes) {
            self.set_overflow(exec);
        }
    }

    /// The group of a frame; none if the frame has to wait.
    fn find(&mut self, exec: &Exec<'_>, frame: &dyn Columns) -> Result<Option<usize>, ExecError> {
        let mut values: Vec<ValueRef<'_>> = Vec::with_capacity(self.plan.keys.len());
        for key in &self.plan.keys {
            values.push(key.eval_result(exec.eval, frame)?);
        }
        self.find_keys(exec, frame, &values)
    }

    /// The same with the values of the keys.
    fn find_keys(
        &mut self,
        exec: &Exec<'_>,
        frame: &dyn Columns,
        values: &[ValueRef<'_>],
    ) -> Result<Option<usize>, ExecError> {
        self.identity.clear();
        for (key, value) in self.plan.keys.iter().zip(values) {
            order::push_identity(*value, &key.result.column_type, &mut self.identity);
        }
        if self.overflow.as_ref().is_some_and(|overflow| overflow.puts_off()) {
            let found = self.places.find(&self.identity);
            if found.is_none() {
                self.put_off(frame, values)?;
            }
            return Ok(found);
        }
        if self.deferred.is_some() && self.plan.sorted && self.places.find(&self.identity).is_none()
        {
            self.write_all(exec)?;
        }
        let (place, is_new) = self.places.insert(&self.identity);
        if is_new {
            let keys: Vec<Value> = values.iter().map(|&value| value.to_owned()).collect();
            let bytes =
                2 * self.identity.len() + KEY_OVERHEAD_BYTES + 96 + 64 * self.plan.calls.len();
            self.begin(keys);
            self.charge(exec, bytes);
        }
        Ok(Some(place))
    }

    /// Adds the selected rows of the batch in the slot of step `depth`. False if they must be
    /// added one by one.
    pub fn add_batch(
        &mut self,
        exec: &mut Exec<'_>,
        run: &mut BlockRun<'p>,
        depth: usize,
        selected: &[u32],
    ) -> Result<bool, ExecError> {
        if self.deferred.is_some() && self.plan.sorted {
            // A group is finished when the next begins, which is in the middle of a batch.
            return Ok(false);
        }
        let (slot, first) = (run.steps[depth].slot, run.plan.tables[depth].first_position);
        let mut vectors = match self.vectors.take() {
            Some(vectors) => vectors,
            None => Box::new(self.make_vectors(exec, &run.frame, slot, first)),
        };
        if vectors.packed.is_empty() {
            self.vectors = Some(vectors);
            return Ok(false);
        }
        let frame = &mut run.frame;
        self.assign(exec, frame, (slot, first), selected, &mut vectors)?;
        let here = self.overflow.as_ref().and_then(|_| rows_here(&mut vectors.places, selected));
        let selected = here.as_deref().unwrap_or(selected);
        let places = match vectors.way {
            ShortWay::One => Places::One,
            _ => Places::Each(&vectors.places),
        };
        let (mut row_wise, mut kept) = (Vec::new(), 0);
        let columns = BatchColumns::of(frame, slot, first);
        let batch = columns.as_ref().map(|columns| columns as &dyn Batch);
        for (number, packed) in vectors.packed.iter_mut().enumerate() {
            let added = packed.as_mut().map(|packed| {
                let before = packed.kept_bytes();
                let added = packed.add(batch, selected, places, self.groups.len());
                kept += packed.kept_bytes() - before;
                added
            });
            if added != Some(Ok(())) {
                row_wise.push(number);
            }
        }
        if !row_wise.is_empty() {
            for (at, &row) in selected.iter().enumerate() {
                frame.stand_at(slot, row as usize);
                let place = if let Places::Each(places) = places { places[at] } else { 0 };
                let accumulators = &mut self.groups[place as usize].accumulators;
                for &number in &row_wise {
                    if let Some(deferred) = &mut self.deferred {
                        let (group, accumulator) = (place as usize, &mut accumulators[number]);
                        deferred.update(exec, group, number, accumulator, frame)?;
                        continue;
                    }
                    let call = &self.plan.calls[number];
                    let before = accumulators[number].kept_bytes();
                    accumulators[number].update(call, exec.eval, frame)?;
                    kept += accumulators[number].kept_bytes() - before;
                }
                exec.eval.reset_arena();
            }
        }
        self.vectors = Some(vectors);
        self.charge_kept(exec, kept)?;
        self.write_finished(exec)?;
        Ok(true)
    }

    /// How batches can be taken; without `packed` not at all.
    fn make_vectors(&self, exec: &Exec<'_>, frame: &Frame, slot: usize, first: usize) -> Vectors {
        let columns = BatchColumns::of(frame, slot, first);
        let no_columns = super::vector::NoTable;
        let shape = columns.as_ref().map(BatchColumns::shape);
        let shape: &dyn expr::vector::Shape = match &shape {
            Some(shape) => shape,
            None => &no_columns,
        };
        let way = match self.plan.keys.as_slice() {
            [] => ShortWay::One,
            [key] => ShortWay::of(key, exec, shape),
            _ => ShortWay::Long,
        };
        let calls = &self.plan.calls;
        let packed: Vec<_> = calls.iter().map(|call| Packed::new(call, exec.eval, shape)).collect();
        // Keys of all rows come before the aggregates of any: that must not show in the warnings.
        let is_column = |expr: &Expr| matches!(expr.kind, ExprKind::Column { .. });
        let keys_are_quiet = !matches!(way, ShortWay::Long) || self.plan.keys.iter().all(is_column);
        let calls_are_quiet = calls
            .iter()
            .zip(&packed)
            .all(|(call, packed)| packed.is_some() || call.arguments.iter().all(is_column));
        let useful = packed.iter().any(Option::is_some) && (keys_are_quiet || calls_are_quiet);
        let packed = if useful { packed } else { Vec::new() };
        Vectors { way, packed, places: Vec::new(), numbers: Numbers::default() }
    }

    /// The group of a row of the batch, by the long way.
    fn find_row(
        &mut self,
        exec: &Exec<'_>,
        frame: &mut Frame<'_>,
        slot: usize,
        row: u32,
    ) -> Result<u32, ExecError> {
        frame.stand_at(slot, row as usize);
        let Some(place) = self.find(exec, frame)? else { return Ok(LATER) };
        self.carry(place, frame);
        Ok(place as u32)
    }

    /// Finds the group of every selected row.
    fn assign(
        &mut self,
        exec: &Exec<'_>,
        frame: &mut Frame<'_>,
        (slot, first): (usize, usize),
        selected: &[u32],
        vectors: &mut Vectors,
    ) -> Result<(), ExecError> {
        vectors.places.clear();
        if let ShortWay::Number { kernel, .. } = &mut vectors.way
            && let Some(columns) = BatchColumns::of(frame, slot, first)
            && kernel.eval(&columns, selected, &mut vectors.numbers).is_ok()
        {
            return self.assign_numbers(exec, frame, slot, selected, vectors);
        }
        match &vectors.way {
            ShortWay::One => {
                if let Some(&row) = selected.first() {
                    frame.stand_at(slot, row as usize);
                    self.carry(0, frame);
                }
            }
            ShortWay::Text { .. } => self.assign_texts(exec, frame, slot, selected, vectors)?,
            ShortWay::Number { .. } | ShortWay::Long => {
                for &row in selected {
                    vectors.places.push(self.find_row(exec, frame, slot, row)?);
                }
            }
        }
        Ok(())
    }

    fn assign_numbers(
        &mut self,
        exec: &Exec<'_>,
        frame: &mut Frame<'_>,
        slot: usize,
        selected: &[u32],
        vectors: &mut Vectors,
    ) -> Result<(), ExecError> {
        let Vectors { way, places, numbers, .. } = vectors;
        let ShortWay::Number { places: known, null, .. } = way else { return Ok(()) };
        for (at, &row) in selected.iter().enumerate() {
            let number = numbers.values[at];
            let place = match (numbers.is_null(at), *null) {
                (true, Some(place)) => place,
                (true, None) => {
                    let place = self.find_row(exec, frame, slot, row)?;
                    *null = (place != LATER).then_some(place);
                    place
                }
                (false, _) => match known.get(&number) {
                    Some(place) => *place,
                    None => {
                        let place = self.find_row(exec, frame, slot, row)?;
                        if place != LATER {
                            self.charge(exec, NUMBER_BYTES);
                            known.insert(number, place);
                        }
                        place
                    }
                },
            };
            places.push(place);
        }
        Ok(())
    }

    fn assign_texts(
        &mut self,
        exec: &Exec<'_>,
        frame: &mut Frame<'_>,
        slot: usize,
        selected: &[u32],
        vectors: &mut Vectors,
    ) -> Result<(), ExecError> {
        let Vectors { way, places: found, .. } = vectors;
        let ShortWay::Text { position, texts, places, asked } = way else { return Ok(()) };
        *asked += selected.len();
        for &row in selected {
            frame.stand_at(slot, row as usize);
            let text = frame.column(*position).bytes();
            let text = text.filter(|text| text.len() <= TEXT_BYTES);
            if let Some(number) = text.and_then(|text| texts.find(text)) {
                found.push(places[number]);
                continue;
            }
            let place = self.find_row(exec, frame, slot, row)?;
            found.push(place);
            let text = frame.column(*position).bytes();
            if let Some(text) = text.filter(|text| text.len() <= TEXT_BYTES)
                && places.len() < TEXTS_MAX
                && place != LATER
            {
                texts.insert(text);
                places.push(place);
            }
        }
        if places.len() >= TEXTS_MAX && *asked < 4 * TEXTS_MAX {
            // Nearly every text is another one.
            *way = ShortWay::Long;
        }
        Ok(())
    }

    /// Gives every group: its keys, its aggregates, the values carried over. `frame` has the
    /// latter for the group of no rows.
    pub fn finish(
        mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut GroupTarget<'_>,
    ) -> Result<(), ExecError> {
        if self.overflow.is_some() {
            return self.finish_overflow(exec, frame, target);
        }
        self.finish_groups(exec, frame, target).map(|_| ())
    }

    /// Gives the groups in memory.
    fn finish_groups(
        &mut self,
        exec: &mut Exec<'_>,
        frame: &dyn Columns,
        target: &mut GroupTarget<'_>,
    ) -> Result<Flow, ExecError> {
        let items = self.finish_deferred(exec)?;
        let mut lists = items.as_ref().map(|items| Lists::new(items, exec)).transpose()?;
        let vectors = self.vectors.take();
        let packed = vectors.as_ref().map_or(&[][..], |vectors| vectors.packed.as_slice());
        for (number, group) in std::mem::take(&mut self.groups).into_iter().enumerate() {
            exec.tick()?;
            let row = group.finish(self.plan, (number, packed), exec, frame, lists.as_mut())?;
            let flow = target(exec, &row)?;
            exec.eval.reset_arena();
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue(()))
    }
}

/// Takes the rows of groups.
pub type GroupTarget<'t> = dyn FnMut(&mut Exec<'_>, &Vec<Value>) -> Result<Flow, ExecError> + 't;

impl ShortWay {
    fn of(key: &Expr, exec: &Exec<'_>, shape: &dyn expr::vector::Shape) -> Self {
        // Kernels round as results are rounded; keys are not rounded.
        let keeps =
            |kernel: &Kernel| kernel.is_exact() || !matches!(kernel.lane(), Lane::Decimal { .. });
        let kernel = Kernel::of_result(key, exec.eval, shape).filter(keeps);
        match (kernel, &key.kind) {
            (Some(kernel), _) => Self::Number { kernel, places: HashMap::new(), null: None },
            (None, ExprKind::Column { position, .. })
                if shape.holds(*position) && key.result.is_string() =>
            {
                let (texts, places) = (Keys::default(), Vec::new());
                Self::Text { position: *position, texts, places, asked: 0 }
            }
            _ => Self::Long,
        }
    }
}
