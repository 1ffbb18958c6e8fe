//! ORDER BY: rows kept until all have come.
//!
//! Rows lie packed in one piece of memory (`rows.rs`). They are sorted by an eight-byte head of
//! their first key, which decides nearly always, then by their keys, then by the order in which
//! they came. Many rows are distributed by the bytes of their heads first. With a LIMIT only the
//! best rows so far are kept, and once there are enough the head of the last one tells what need
//! not be kept at all.

use super::output::charge;
use super::rows::{PackedRows, packed_bytes};
use crate::{ExecError, order};
use base::memory::MemoryAccount;
use plan::physical::SortKey;
use std::cmp::Ordering;
use std::sync::Arc;
use types::row::Lane;
use types::{ColumnType, ValueRef, collation};

/// A row's place in the order.
#[derive(Clone, Copy)]
struct Place {
    head: u64,
    /// Where the row begins in the packed rows.
    start: usize,
}

/// See the head of the file.
pub struct Sorter {
    keys: Vec<(SortKey, ColumnType)>,
    /// Only so many rows are wanted.
    most: usize,
    width: usize,
    rows: PackedRows,
    places: Vec<Place>,
    /// Rows with a greater head are not wanted.
    cutoff: Option<u64>,
    /// One key, whose heads are equal only where the values are.
    is_exact: bool,
    charged_bytes: usize,
    memory: Arc<MemoryAccount>,
}

impl Sorter {
    /// Keeps the first `needed` rows of `width` values in the order of `keys`.
    pub fn new(
        keys: &[SortKey],
        types: impl Fn(usize) -> ColumnType,
        width: usize,
        needed: u64,
        memory: &Arc<MemoryAccount>,
    ) -> Self {
        Self {
            keys: keys.iter().map(|key| (*key, types(key.position))).collect(),
            most: usize::try_from(needed).unwrap_or(usize::MAX),
            width,
            rows: PackedRows::default(),
            places: Vec::new(),
            cutoff: None,
            is_exact: keys.len() == 1,
            charged_bytes: 0,
            memory: memory.clone(),
        }
    }

    /// Takes a row.
    pub fn add(&mut self, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        let head = self.keys.first().map_or(0, |(key, column_type)| {
            let head = head(row[key.position], column_type);
            if key.descending { !head } else { head }
        });
        if self.cutoff.is_some_and(|cutoff| head > cutoff) {
            return Ok(());
        }
        let bytes = size_of::<Place>() + packed_bytes(row);
        charge(&self.memory, bytes)?;
        self.charged_bytes += bytes;
        self.is_exact = self.is_exact && is_exact(row[self.keys[0].0.position], &self.keys[0].1);
        self.rows.push(row);
        self.places.push(Place { head, start: self.rows.start(self.places.len()) });
        if self.places.len() >= self.most.saturating_mul(2).max(TRIM_ROWS) {
            self.trim();
        }
        Ok(())
    }

    /// Rows whose head (that of the first key, inverted if descending) is greater are not wanted.
    pub fn cutoff(&self) -> Option<u64> {
        self.cutoff
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let by_keys = || {
            for (key, column_type) in &self.keys {
                let value = |place: &Place| self.rows.row_at(place.start).value(key.position);
                let order = order::compare(value(a), value(b), column_type.collation.info());
                let order = if key.descending { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            Ordering::Equal
        };
        a.head.cmp(&b.head).then_with(by_keys).then(a.start.cmp(&b.start))
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        let pacer = runtime::Pacer::default();
        let compare = |a: &Place, b: &Place| {
            pacer.step();
            self.compare(a, b)
        };
        let more = (places.len() * size_of::<Place>()) as u64;
        if places.len() >= DISTRIBUTED_ROWS && self.memory.charge(more).is_ok() {
            distribute(&mut places);
            self.memory.release(more);
            let differ = if self.is_exact { &mut [] } else { &mut places[..] };
            for equal in differ.chunk_by_mut(|a, b| a.head == b.head) {
                equal.sort_unstable_by(compare);
            }
        } else {
            places.sort_unstable_by(compare);
        }
        places.truncate(self.most);
        self.places = places;
    }

    /// Forgets the rows that LIMIT will not show.
    fn trim(&mut self) {
        if self.places.len() <= self.most {
            return;
        }
        self.sort();
        self.cutoff = self.places.last().map(|place| place.head);
        let mut kept = PackedRows::default();
        for (number, place) in self.places.iter_mut().enumerate() {
            kept.push_from(&self.rows, place.start, self.width);
            place.start = kept.start(number);
        }
        let bytes = kept.byte_len() + size_of::<Place>() * self.places.len();
        self.rows = kept;
        self.memory.release(self.charged_bytes.saturating_sub(bytes) as u64);
        self.charged_bytes = self.charged_bytes.min(bytes);
    }

    /// Gives the rows in order, from number `offset` on, until `give` refuses one.
    pub fn finish<E>(
        mut self,
        offset: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.sort();
        let mut row = Vec::with_capacity(self.width);
        for (number, place) in self.places.iter().enumerate().skip(offset) {
            if number % AHEAD == 0 {
                let ahead = self.places.iter().skip(number + AHEAD).take(AHEAD);
                self.rows.touch(ahead.map(|place| place.start));
            }
            row.clear();
            let mut values = self.rows.row_at(place.start);
            row.extend((0..self.width).map(|_| values.next_value()));
            if !give(&row)? {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        self.memory.release(self.charged_bytes as u64);
    }
}

/// Rows whose memory is asked for ahead.
const AHEAD: usize = 16;

/// Whether equal heads tell that a value like this is equal: a number of at most 64 bits, whole in
/// its head, and none that NULL's head stands for.
fn is_exact(value: ValueRef<'_>, column_type: &ColumnType) -> bool {
    match Lane::of(value) {
        Some((Lane::Int | Lane::UInt, _)) => false,
        Some((Lane::Decimal { scale }, number)) => scale == column_type.scale && number != i64::MIN,
        Some((_, number)) => number != i64::MIN,
        None => value.is_null(),
    }
}

/// From so many rows on they are distributed by their heads.
const DISTRIBUTED_ROWS: usize = 1024;
/// Rows kept before those that LIMIT will not show are forgotten for the first time.
const TRIM_ROWS: usize = 256;

/// Sorts by the heads alone; equal ones keep their order. One pass for each byte in which the
/// heads differ.
fn distribute(places: &mut Vec<Place>) {
    const STEP: usize = 4096;
    let first = places.first().map_or(0, |place| place.head);
    let differing = places.iter().fold(0, |bits, place| bits | (place.head ^ first));
    let mut target = vec![Place { head: 0, start: 0 }; places.len()];
    for byte in (0..8).filter(|byte| differing >> (8 * byte) & 0xff != 0) {
        let digit = |place: &Place| (place.head >> (8 * byte)) as usize & 0xff;
        let mut ends = [0usize; 256];
        for some in places.chunks(STEP) {
            some.iter().for_each(|place| ends[digit(place)] += 1);
            runtime::yield_if_due();
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        for some in places.chunks(STEP) {
            for place in some {
                let at = &mut ends[digit(place)];
                target[*at] = *place;
                *at += 1;
            }
            runtime::yield_if_due();
        }
        std::mem::swap(places, &mut target);
    }
}

/// A number in the order of the values: the smaller one comes first, equal ones tell nothing.
pub fn head(value: ValueRef<'_>, column_type: &ColumnType) -> u64 {
    match value {
        ValueRef::Null => 0,
        // Signed and unsigned numbers may meet in one column.
        ValueRef::UInt(v) => SIGN | v >> 1,
        ValueRef::Float(v) => float_head(f64::from(v)),
        ValueRef::Double(v) => float_head(v),
        ValueRef::Bytes(text) => collation::sort_key_head(column_type.collation.info(), text),
        // All have the digits of the type; should one not, rounding keeps the order.
        ValueRef::Decimal(v) => match v.with_scale(column_type.scale).mantissa() {
            Some(digits) => {
                let digits = digits.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                head_of_number(Lane::Decimal { scale: 0 }, Some(digits))
            }
            None if v.is_negative() => 0,
            None => u64::MAX,
        },
        other => match Lane::of(other) {
            Some((lane, number)) => head_of_number(lane, Some(number)),
            // A packed moment that is no moment.
            None => u64::MAX,
        },
    }
}

const SIGN: u64 = 1 << 63;

/// The head of a value that is a number in a lane: a DECIMAL with the digits of its type.
pub fn head_of_number(lane: Lane, number: Option<i64>) -> u64 {
    let Some(number) = number else { return 0 };
    match lane {
        Lane::Int if number < 0 => (number as u64 ^ SIGN) >> 1,
        Lane::Int | Lane::UInt => SIGN | number as u64 >> 1,
        _ => SIGN ^ number as u64,
    }
}

/// IEEE numbers in the order of unsigned integers; the two zeros are one.
fn float_head(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, Simulation};
    use types::{CollationId, TypeKind, Value};

    fn text_type() -> ColumnType {
        ColumnType::text(TypeKind::VarChar, 10, CollationId::UTF8MB4_GENERAL_CI)
    }

    #[test]
    fn heads_never_contradict_the_comparison() {
        let integers = [i64::MIN, -2, -1, 0, 1, 2, i64::MAX].map(ValueRef::Int);
        let unsigned = [0, 1, u64::MAX - 1, u64::MAX].map(ValueRef::UInt);
        let doubles = [f64::MIN, -1.5, -0.0, 0.0, 1e-300, 7.0, f64::MAX].map(ValueRef::Double);
        let texts = ["", " ", "a", "B", "b ", "é", "aaaaaaaaa", "aaaaaaaab"];
        let texts = texts.map(|text| ValueRef::Bytes(text.as_bytes()));
        let mixed: Vec<_> = integers.into_iter().chain(unsigned).collect();
        let decimals = [-5i128, -4, 0, 4, 5, i128::from(i64::MAX), i128::MAX, i128::MIN];
        let decimals = decimals.map(|v| ValueRef::Decimal(types::Decimal::new(v, 0)));
        for group in [&mixed[..], &doubles, &texts, &decimals] {
            for &a in group.iter().chain([&ValueRef::Null]) {
                for &b in group.iter().chain([&ValueRef::Null]) {
                    let order = order::compare(a, b, text_type().collation.info());
                    let heads = head(a, &text_type()).cmp(&head(b, &text_type()));
                    assert!(heads.is_eq() || heads == order, "{a:?} {b:?}");
                }
            }
        }
    }

    /// Sorts yield, which they can do only inside a runtime.
    fn in_runtime(test: fn()) {
        let config = SimConfig::new(1);
        Simulation::new(config).run(test).expect("the simulation ends by itself");
    }

    #[test]
    fn sorts() {
        in_runtime(many_rows_are_sorted_by_distribution);
        in_runtime(the_best_rows_are_kept_in_the_order_in_which_equal_ones_came);
    }

    fn many_rows_are_sorted_by_distribution() {
        let memory = MemoryAccount::new(8 << 20);
        let keys = [SortKey { position: 0, descending: false }];
        let column_type = ColumnType::decimal(12, 2, false);
        let mut sorter = Sorter::new(&keys, |_| column_type, 2, u64::MAX, &memory);
        let number = |row: i64| (row * 7919 % 10_007 - 5_000) * 1_000_003;
        for row in 0..20_000i64 {
            let value = types::Decimal::new(number(row).into(), 2);
            let key = if row % 50 == 0 { ValueRef::Null } else { ValueRef::Decimal(value) };
            sorter.add(&[key, ValueRef::Int(row)]).expect("within the limit");
        }
        let mut expected: Vec<i64> = (0..20_000).collect();
        expected.sort_by_key(|&row| ((row % 50 != 0).then(|| number(row)), row));
        let mut given = Vec::new();
        let finished: Result<(), ()> = sorter.finish(0, |row| {
            given.push(row[1].to_owned());
            Ok(true)
        });
        finished.expect("nothing fails");
        assert!(given == expected.into_iter().map(Value::Int).collect::<Vec<_>>());
        assert_eq!(memory.used_bytes(), 0);
    }

    fn the_best_rows_are_kept_in_the_order_in_which_equal_ones_came() {
        let memory = MemoryAccount::new(1 << 20);
        for descending in [false, true] {
            let keys = [SortKey { position: 0, descending }];
            let mut sorter = Sorter::new(&keys, |_| text_type(), 2, 300, &memory);
            for number in 0..5_000i64 {
                let text = format!("same start of all {:03}", number * 7 % 100);
                let row = [ValueRef::Bytes(text.as_bytes()), ValueRef::Int(number)];
                sorter.add(&row).expect("within the limit");
            }
            let mut expected: Vec<_> = (0..5_000i64).map(|n| (n * 7 % 100, n)).collect();
            expected.sort_by_key(|(key, number)| (if descending { -key } else { *key }, *number));
            let mut given = Vec::new();
            let finished: Result<(), ()> = sorter.finish(10, |row| {
                given.push(row[1].to_owned());
                Ok(true)
            });
            finished.expect("nothing fails");
            let expected: Vec<_> =
                expected[10..300].iter().map(|(_, number)| Value::Int(*number)).collect();
            assert_eq!(given, expected);
            assert_eq!(memory.used_bytes(), 0);
        }
    }
}
