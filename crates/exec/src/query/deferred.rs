//! What aggregates would keep beyond the budget: values of DISTINCT, items of GROUP_CONCAT and of
//! JSON lists.
//!
//! 1. Accumulators keep them in memory until the budget is used up. Then all of it comes here, and
//!    so does what comes later ([`Accumulator::update_or_defer`]).
//! 2. Of a group and an aggregate each value of DISTINCT counts once: at once where it is seen to
//!    be the first, or when all rows have come (`distinct.rs`). Values that had been counted
//!    before they came here are marked so.
//! 3. Items of lists are sorted by group, aggregate, their keys and their numbers. A list is
//!    written when its group is finished; only its text is in memory, and charged.

use super::Flow;
use super::distinct::{Distinct, Seen};
use super::output::refused;
use super::sorter::{Reader, Sorter};
use crate::ExecError;
use crate::context::Exec;
use crate::spill::Charged;
use expr::Columns;
use expr::aggregate::{Accumulator, Aggregate, Deferred, DeferredValue, Item, ListText};
use plan::physical::SortKey;
use std::sync::Arc;
use types::{CollationId, ColumnType, TypeKind, Value, ValueRef};

/// Kinds of rows that [`Distinct`] looks at, which are: identity, group, aggregate, number, kind,
/// then a value, or an item's key and its text.
mod kind {
    pub const COUNTED: u64 = 0;
    pub const VALUE: u64 = 1;
    pub const ITEM: u64 = 2;
}

/// Values of such a row, and those that tell it apart.
const DISTINCT_WIDTH: usize = 7;
/// Values of a row of an item: group, aggregate, key, number, text.
const ITEM_WIDTH: usize = 5;

/// See the head of the file.
pub struct DeferredValues<'p> {
    calls: &'p [Aggregate],
    distinct: Option<Distinct>,
    items: Option<Sorter>,
    /// Values so far.
    numbered: u64,
    memory: Arc<base::memory::MemoryAccount>,
    spill: Arc<crate::spill::Spill>,
}

fn number_type() -> ColumnType {
    ColumnType::integer(TypeKind::BigInt, true)
}

fn bytes_type() -> ColumnType {
    ColumnType::text(TypeKind::VarBinary, u32::MAX, CollationId::BINARY)
}

impl<'p> DeferredValues<'p> {
    /// Nothing yet.
    pub fn new(calls: &'p [Aggregate], exec: &Exec<'_>) -> Self {
        let (memory, spill) = (exec.memory.clone(), exec.spill.clone());
        Self { calls, distinct: None, items: None, numbered: 0, memory, spill }
    }

    /// Takes over what the accumulators of a group keep.
    pub fn take_over(
        &mut self,
        group: usize,
        accumulators: &mut [Accumulator],
    ) -> Result<(), ExecError> {
        for (call, accumulator) in accumulators.iter_mut().enumerate() {
            let kept = accumulator.take_kept();
            for identity in kept.identities {
                runtime::yield_if_due();
                self.mark(group, call, &identity)?;
            }
            for item in kept.items {
                runtime::yield_if_due();
                self.number();
                self.add_item(group, call, self.numbered, &item.key, &item.text)?;
            }
        }
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered
    }

    /// A value that has been counted.
    pub fn mark(&mut self, group: usize, call: usize, identity: &[u8]) -> Result<(), ExecError> {
        let number = self.number();
        let rest = (kind::COUNTED, ValueRef::Null, ValueRef::Null);
        self.see((group, call), identity, number, rest).map(|_| ())
    }

    fn see(
        &mut self,
        (group, call): (usize, usize),
        identity: &[u8],
        number: u64,
        (kind, first, second): (u64, ValueRef<'_>, ValueRef<'_>),
    ) -> Result<Seen, ExecError> {
        let distinct = self.distinct.get_or_insert_with(|| {
            let types = vec![bytes_type(), number_type(), number_type()];
            Distinct::new(types, &self.memory, &self.spill)
        });
        distinct.see(&[
            ValueRef::Bytes(identity),
            ValueRef::UInt(group as u64),
            ValueRef::UInt(call as u64),
            ValueRef::UInt(number),
            ValueRef::UInt(kind),
            first,
            second,
        ])
    }

    /// Takes a row of a group into account; `accumulator` is that of aggregate `call`.
    pub fn update(
        &mut self,
        exec: &Exec<'_>,
        group: usize,
        call: usize,
        accumulator: &mut Accumulator,
        row: &dyn Columns,
    ) -> Result<(), ExecError> {
        let aggregate = &self.calls[call];
        let Some(deferred) = accumulator.update_or_defer(aggregate, exec.eval, row)? else {
            return Ok(());
        };
        let number = self.number();
        let Deferred { identity, value } = deferred;
        if let Some(identity) = identity {
            let rest = match &value {
                DeferredValue::Value(value) => (kind::VALUE, value.as_ref(), ValueRef::Null),
                DeferredValue::Item(Item { key, text }) => {
                    (kind::ITEM, ValueRef::Bytes(key), ValueRef::Bytes(text))
                }
            };
            if self.see((group, call), &identity, number, rest)? != Seen::First {
                return Ok(());
            }
        }
        match value {
            DeferredValue::Value(value) => {
                accumulator.add_value(aggregate, exec.eval, value.as_ref())?;
                Ok(())
            }
            DeferredValue::Item(item) => self.add_item(group, call, number, &item.key, &item.text),
        }
    }

    fn add_item(
        &mut self,
        group: usize,
        call: usize,
        number: u64,
        key: &[u8],
        text: &[u8],
    ) -> Result<(), ExecError> {
        let items = self.items.get_or_insert_with(|| {
            let keys: Vec<SortKey> =
                (0..4).map(|position| SortKey { position, descending: false }).collect();
            let types = |position| if position == 2 { bytes_type() } else { number_type() };
            Sorter::new(&keys, types, ITEM_WIDTH, u64::MAX, &self.memory, &self.spill)
        });
        let number = match self.calls[call].gives_later_first() {
            true => u64::MAX - number,
            false => number,
        };
        items.add(&[
            ValueRef::UInt(group as u64),
            ValueRef::UInt(call as u64),
            ValueRef::Bytes(key),
            ValueRef::UInt(number),
            ValueRef::Bytes(text),
        ])
    }

    /// All rows have come: `count` gets the values of DISTINCT that count and were not counted
    /// yet, with their group and aggregate. Returns the items of lists.
    pub fn finish(
        mut self,
        mut count: impl FnMut(usize, usize, ValueRef<'_>) -> Result<(), ExecError>,
    ) -> Result<Option<Sorter>, ExecError> {
        if let Some(mut distinct) = self.distinct.take() {
            let number = |value: ValueRef<'_>| match value {
                ValueRef::UInt(number) => number,
                _ => 0,
            };
            let _ = distinct.drain(DISTINCT_WIDTH, |row| {
                let (group, call) = (number(row[1]) as usize, number(row[2]) as usize);
                match number(row[4]) {
                    kind::VALUE => count(group, call, row[5])?,
                    kind::ITEM => {
                        let (key, text) = (row[5].bytes(), row[6].bytes());
                        let (key, text) = (key.unwrap_or_default(), text.unwrap_or_default());
                        self.add_item(group, call, number(row[3]), key, text)?;
                    }
                    _ => {}
                }
                Ok(Flow::Continue(()))
            })?;
        }
        if let Some(items) = &mut self.items {
            items.sort()?;
        }
        Ok(self.items)
    }
}

/// The lists of groups, one after the other.
pub struct Lists<'s> {
    reader: Reader<'s>,
    /// Group and aggregate of the next item, and its text.
    next: Option<(u64, u64)>,
    text: Vec<u8>,
    charged: Charged,
}

impl<'s> Lists<'s> {
    /// Made of what [`DeferredValues::finish`] returned.
    pub fn new(items: &'s Sorter, exec: &Exec<'_>) -> Result<Self, ExecError> {
        let charged = Charged::none(exec.memory);
        let mut lists = Self { reader: items.reader()?, next: None, text: Vec::new(), charged };
        lists.advance()?;
        Ok(lists)
    }

    fn advance(&mut self) -> Result<(), ExecError> {
        self.next = None;
        let Some(mut row) = self.reader.next_row()? else { return Ok(()) };
        let (group, call) = (row.next_value(), row.next_value());
        if let (ValueRef::UInt(group), ValueRef::UInt(call)) = (group, call) {
            self.next = Some((group, call));
        }
        self.text.clear();
        self.text.extend_from_slice(row.value(2).bytes().unwrap_or_default());
        Ok(())
    }

    /// The list of an aggregate of a group: asked for in their order.
    pub fn value(
        &mut self,
        exec: &Exec<'_>,
        (group, number): (usize, usize),
        call: &Aggregate,
    ) -> Result<Value, ExecError> {
        let wanted = Some((group as u64, number as u64));
        let mut list = ListText::new(call, exec.eval)?;
        let mut is_open = true;
        while self.next == wanted {
            runtime::yield_if_due();
            is_open = is_open && list.push(&self.text, exec.eval);
            let more = list.bytes().saturating_sub(self.charged.bytes() as usize);
            if more > 0 && !self.charged.add(more.max(4096)) {
                return Err(refused());
            }
            self.advance()?;
        }
        self.charged.clear();
        Ok(list.finish())
    }
}
