//! Keys of secondary indexes: the declared parts followed by what the clustered key says more.
//!
//! 1. A part of a key is a function of its column's value, its prefix and its direction alone. So
//!    where an index has a part with the same column, prefix and direction as a part of the
//!    clustered key, the bytes are the same, whatever the encoding loses of the value.
//! 2. An entry leaves such parts of the clustered key out ([`IndexLayout::new`]); the others follow
//!    in their order. Entries with equal own parts are in the order of their clustered keys.
//! 3. Versions that knew no other way repeat the whole clustered key; their indexes stay as they
//!    are and are read as such ([`IndexLayout::repeating`]).

use super::LayoutError;
use super::key::{KeyColumn, KeyPart};
use super::layout::{RowLayout, RowView};
use crate::value::ValueRef;
use std::ops::Range;

/// The parts of a key, and where they begin as far as that is the same in all keys.
#[derive(Clone, Debug)]
struct Parts {
    columns: Vec<KeyColumn>,
    /// Of the parts up to the first one behind a part of varying width.
    starts: Vec<usize>,
}

/// Numbers of parts that follow each other; one that ends with the last part goes to the end of the
/// key, so it may be of parts that nothing is known about (a hidden row id).
type Run = Range<usize>;

impl Parts {
    fn new(columns: Vec<KeyColumn>) -> Self {
        let mut starts = vec![0];
        let mut start = 0;
        for width in columns.iter().map_while(KeyColumn::fixed_width) {
            start += width;
            starts.push(start);
        }
        Self { columns, starts }
    }

    /// Where part `number` begins. `known` is a part and its beginning from a former call with this
    /// key, at first (0, 0).
    fn start(&self, number: usize, key: &[u8], known: &mut (usize, usize)) -> Option<usize> {
        if let Some(start) = self.starts.get(number) {
            return Some(*start);
        }
        let fixed = self.starts.len() - 1;
        if known.0 < fixed || known.0 > number {
            *known = (fixed, self.starts[fixed]);
        }
        while known.0 < number {
            known.1 += self.columns.get(known.0)?.length(key.get(known.1..)?)?;
            known.0 += 1;
        }
        Some(known.1)
    }

    /// Appends what the runs of parts are in `key`.
    fn copy(&self, runs: &[Run], key: &[u8], out: &mut Vec<u8>) -> Result<(), LayoutError> {
        let mut known = (0, 0);
        for run in runs {
            let mut copied = || {
                let start = self.start(run.start, key, &mut known)?;
                let is_last = run.end >= self.columns.len();
                let end = if is_last { key.len() } else { self.start(run.end, key, &mut known)? };
                key.get(start..end)
            };
            out.extend_from_slice(copied().ok_or(LayoutError::Malformed("key too short"))?);
        }
        Ok(())
    }
}

/// Joins numbers that follow each other.
fn runs(numbers: impl Iterator<Item = usize>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    runs
}

/// The layout of one index's keys.
#[derive(Clone, Debug)]
pub struct IndexLayout {
    /// How many of the parts are declared.
    own: usize,
    /// The declared parts and those of the clustered key that follow; none for a hidden row id.
    entry: Parts,
    clustered: Parts,
    /// What of the clustered key follows the declared parts.
    rest: Vec<Run>,
    /// Where the clustered key is in an entry.
    clustered_in_entry: Vec<Run>,
}

impl IndexLayout {
    /// The layout of a secondary index of the table of `row` (invariant 2).
    pub fn new(row: &RowLayout, parts: &[KeyPart]) -> Self {
        let own = Self::own(row, parts);
        let same = |part: &KeyColumn| own.iter().position(|known| known.is_same(part));
        let places: Vec<Option<usize>> = row.clustered_key().iter().map(same).collect();
        Self::with_places(row, own, &places)
    }

    /// The layout of a secondary index whose entries repeat the whole clustered key (invariant 3).
    pub fn repeating(row: &RowLayout, parts: &[KeyPart]) -> Self {
        let places = vec![None; row.clustered_key().len()];
        Self::with_places(row, Self::own(row, parts), &places)
    }

    fn own(row: &RowLayout, parts: &[KeyPart]) -> Vec<KeyColumn> {
        parts.iter().filter_map(|part| KeyColumn::new(row.columns(), part)).collect()
    }

    /// `places`: for each part of the clustered key which of the own parts it is.
    fn with_places(row: &RowLayout, own: Vec<KeyColumn>, places: &[Option<usize>]) -> Self {
        let clustered = Parts::new(row.clustered_key().to_vec());
        let (own_count, mut columns) = (own.len(), own);
        if places.is_empty() {
            // The engine makes the key: all of it follows.
            let (rest, clustered_in_entry) = (runs(0..1), runs(own_count..own_count + 1));
            let entry = Parts::new(columns);
            return Self { own: own_count, entry, clustered, rest, clustered_in_entry };
        }
        let left = |number: &usize| places[*number].is_none();
        let rest = runs((0..places.len()).filter(left));
        let clustered_in_entry = runs(places.iter().enumerate().map(|(number, place)| {
            place.unwrap_or_else(|| {
                columns.push(clustered.columns[number]);
                columns.len() - 1
            })
        }));
        let entry = Parts::new(columns);
        Self { own: own_count, entry, clustered, rest, clustered_in_entry }
    }

    /// The layout of the clustered index itself: nothing follows its parts.
    pub fn clustered(row: &RowLayout) -> Self {
        let entry = Parts::new(row.clustered_key().to_vec());
        let own = entry.columns.len();
        let whole = runs(0..own.max(1));
        let clustered = entry.clone();
        Self { own, entry, clustered, rest: Vec::new(), clustered_in_entry: whole }
    }

    /// The declared parts.
    pub fn parts(&self) -> &[KeyColumn] {
        &self.entry.columns[..self.own]
    }

    /// The parts of an entry: the declared ones and those of the clustered key that follow them.
    pub fn entry_parts(&self) -> &[KeyColumn] {
        &self.entry.columns
    }

    /// Appends the key of a row: its parts and the rest of `clustered_key`.
    pub fn push_key(
        &self,
        row: &RowView<'_>,
        clustered_key: &[u8],
        key: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        for part in self.parts() {
            part.push(row.get(part.column), key)?;
        }
        self.clustered.copy(&self.rest, clustered_key, key)
    }

    /// Appends only the declared parts, as a uniqueness check needs them; true if one of them
    /// is NULL (such a key conflicts with nothing).
    pub fn push_parts(&self, row: &RowView<'_>, key: &mut Vec<u8>) -> Result<bool, LayoutError> {
        let mut has_null = false;
        for part in self.parts() {
            let value = row.get(part.column);
            has_null |= value.is_null();
            part.push(value, key)?;
        }
        Ok(has_null)
    }

    /// Appends the first `values.len()` parts for a lookup.
    pub fn push_values(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        for (part, value) in self.parts().iter().zip(values) {
            part.push(*value, key)?;
        }
        Ok(())
    }

    /// Length in bytes of the declared parts at the start of a key.
    pub fn parts_length(&self, key: &[u8]) -> Result<usize, LayoutError> {
        let length = self.entry.start(self.own, key, &mut (0, 0));
        length.filter(|it| *it <= key.len()).ok_or(LayoutError::Malformed("index key too short"))
    }

    /// Appends the clustered key of the row that an entry is of.
    pub fn push_clustered_key(&self, entry: &[u8], key: &mut Vec<u8>) -> Result<(), LayoutError> {
        self.entry.copy(&self.clustered_in_entry, entry, key)
    }

    /// The parts of a key one after another, with the value where it can be read back (reports).
    /// Ends early where the bytes do.
    pub fn values<'a>(&self, key: &'a [u8]) -> Vec<(&'a [u8], Option<ValueRef<'a>>)> {
        let (mut values, mut at) = (Vec::new(), 0);
        for part in &self.entry.columns {
            let rest = key.get(at..).unwrap_or(&[]);
            let Some(length) = part.length(rest) else { break };
            let bytes = &rest[..length];
            // A marker alone is NULL, whatever the type.
            let is_readable = part.is_readable() || (part.nullable && length == 1);
            values.push((bytes, is_readable.then(|| part.read(bytes))));
            at += length;
        }
        values
    }

    /// Whether a column of the table can be read from the keys of this index.
    pub fn covers(&self, column: usize) -> bool {
        let of_column = |part: &KeyColumn| part.column == column && part.is_readable();
        self.entry.columns.iter().any(of_column)
    }

    /// The value of a column of the table as a key holds it; NULL if it does not.
    #[inline]
    pub fn column<'a>(&self, key: &'a [u8], column: usize) -> ValueRef<'a> {
        let mut at = 0;
        for part in &self.entry.columns {
            let rest = key.get(at..).unwrap_or(&[]);
            let Some(length) = part.length(rest) else { return ValueRef::Null };
            if part.column == column && part.is_readable() {
                return part.read(&rest[..length]);
            }
            at += length;
        }
        ValueRef::Null
    }

    /// Reads the columns of the table that a key holds into `row` (one slot a column of the
    /// table); the others are left as they are.
    pub fn read_columns<'a>(
        &self,
        key: &'a [u8],
        row: &mut [ValueRef<'a>],
    ) -> Result<(), LayoutError> {
        let mut at = 0;
        for part in &self.entry.columns {
            let rest = key.get(at..).unwrap_or(&[]);
            let length = part.length(rest).ok_or(LayoutError::Malformed("index key too short"))?;
            if let (true, Some(slot)) = (part.is_readable(), row.get_mut(part.column)) {
                *slot = part.read(&rest[..length]);
            }
            at += length;
        }
        Ok(())
    }
}
