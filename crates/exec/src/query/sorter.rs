//! ORDER BY: rows kept until all have come.
//!
//! Rows lie packed in one piece of memory. They are sorted by an eight-byte head of their first
//! key, which decides nearly always, then by their keys, then by the order in which they came.
//! With a LIMIT only the best rows so far are kept.

use super::output::charge;
use crate::{ExecError, order};
use base::memory::MemoryAccount;
use plan::physical::SortKey;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{ColumnType, ValueRef, collation};

/// A value in packed rows.
#[derive(Clone, Copy)]
enum Packed {
    /// Anything that is no text.
    Plain(ValueRef<'static>),
    /// Text: where it begins and how long it is.
    Bytes(usize, usize),
}

/// Rows of equal width.
struct Rows {
    width: usize,
    values: Vec<Packed>,
    bytes: Vec<u8>,
}

impl Rows {
    fn new(width: usize) -> Self {
        Self { width, values: Vec::new(), bytes: Vec::new() }
    }

    fn push(&mut self, row: &[ValueRef<'_>]) {
        for value in row {
            let packed = match value.without_bytes() {
                Ok(plain) => Packed::Plain(plain),
                Err(bytes) => {
                    self.bytes.extend_from_slice(bytes);
                    Packed::Bytes(self.bytes.len() - bytes.len(), bytes.len())
                }
            };
            self.values.push(packed);
        }
    }

    fn value(&self, row: usize, column: usize) -> ValueRef<'_> {
        match self.values[row * self.width + column] {
            Packed::Plain(value) => value,
            Packed::Bytes(start, length) => ValueRef::Bytes(&self.bytes[start..start + length]),
        }
    }

    fn row(&self, row: usize) -> impl Iterator<Item = ValueRef<'_>> {
        (0..self.width).map(move |column| self.value(row, column))
    }
}

/// A row's place in the order.
#[derive(Clone, Copy)]
struct Place {
    head: u64,
    row: usize,
}

/// See the head of the file.
pub struct Sorter {
    keys: Vec<(SortKey, ColumnType)>,
    /// Only so many rows are wanted.
    most: usize,
    rows: Rows,
    places: Vec<Place>,
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
            rows: Rows::new(width),
            places: Vec::new(),
            charged_bytes: 0,
            memory: memory.clone(),
        }
    }

    /// Takes a row.
    pub fn add(&mut self, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        let bytes = packed_bytes(row);
        charge(&self.memory, bytes)?;
        self.charged_bytes += bytes;
        let head = self.keys.first().map_or(0, |(key, column_type)| {
            let head = head(row[key.position], column_type);
            if key.descending { !head } else { head }
        });
        self.places.push(Place { head, row: self.places.len() });
        self.rows.push(row);
        if self.places.len() >= self.most.saturating_mul(2).max(1024) {
            self.trim();
        }
        Ok(())
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let by_keys = || {
            for (key, column_type) in &self.keys {
                let value = |place: &Place| self.rows.value(place.row, key.position);
                let order = order::compare(value(a), value(b), column_type.collation.info());
                let order = if key.descending { order.reverse() } else { order };
                if order.is_ne() {
                    return order;
                }
            }
            Ordering::Equal
        };
        a.head.cmp(&b.head).then_with(by_keys).then(a.row.cmp(&b.row))
    }

    fn sort(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort_unstable_by(|a, b| self.compare(a, b));
        places.truncate(self.most);
        self.places = places;
    }

    /// Forgets the rows that LIMIT will not show.
    fn trim(&mut self) {
        if self.places.len() <= self.most {
            return;
        }
        self.sort();
        let mut kept = Rows::new(self.rows.width);
        let mut kept_bytes = 0;
        let mut row = Vec::with_capacity(kept.width);
        for (number, place) in self.places.iter_mut().enumerate() {
            row.clear();
            row.extend(self.rows.row(place.row));
            kept_bytes += packed_bytes(&row);
            kept.push(&row);
            place.row = number;
        }
        drop(row);
        self.rows = kept;
        self.memory.release((self.charged_bytes - kept_bytes) as u64);
        self.charged_bytes = kept_bytes;
    }

    /// Gives the rows in order, from number `offset` on, until `give` refuses one.
    pub fn finish<E>(
        mut self,
        offset: usize,
        mut give: impl FnMut(&[ValueRef<'_>]) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.sort();
        let mut row = Vec::with_capacity(self.rows.width);
        for place in self.places.iter().skip(offset) {
            row.clear();
            row.extend(self.rows.row(place.row));
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

/// Memory of a kept row.
fn packed_bytes(row: &[ValueRef<'_>]) -> usize {
    let text = |value: &ValueRef<'_>| if let ValueRef::Bytes(b) = value { b.len() } else { 0 };
    row.len() * size_of::<Packed>() + size_of::<Place>() + row.iter().map(text).sum::<usize>()
}

/// A number in the order of the values: the smaller one comes first, equal ones tell nothing.
fn head(value: ValueRef<'_>, column_type: &ColumnType) -> u64 {
    const SIGN: u64 = 1 << 63;
    match value {
        ValueRef::Null | ValueRef::Decimal(_) => 0,
        // Signed and unsigned numbers may meet in one column.
        ValueRef::Int(v) if v < 0 => (v as u64 ^ SIGN) >> 1,
        ValueRef::Int(v) => SIGN | v as u64 >> 1,
        ValueRef::UInt(v) => SIGN | v >> 1,
        ValueRef::Float(v) => float_head(f64::from(v)),
        ValueRef::Double(v) => float_head(v),
        ValueRef::Bytes(text) => collation::sort_key_head(column_type.collation.info(), text),
        ValueRef::Date(v) => SIGN.wrapping_add_signed(i64::from(v.0)),
        ValueRef::DateTime(v) => SIGN ^ v.0 as u64,
        ValueRef::Timestamp(v) => SIGN ^ v.0 as u64,
        ValueRef::Time(v) => SIGN ^ v.0 as u64,
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
        for group in [&mixed[..], &doubles, &texts] {
            for &a in group.iter().chain([&ValueRef::Null]) {
                for &b in group.iter().chain([&ValueRef::Null]) {
                    let order = order::compare(a, b, text_type().collation.info());
                    let heads = head(a, &text_type()).cmp(&head(b, &text_type()));
                    assert!(heads.is_eq() || heads == order, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
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
