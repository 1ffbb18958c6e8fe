//! Where the columns of a table are.

use super::LayoutError;
use super::codec::FixedCodec;
use super::key::{KeyColumn, KeyPart};
use crate::column_type::ColumnType;
use crate::value::ValueRef;

/// What a layout needs to know of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayoutColumn {
    /// Type.
    pub column_type: ColumnType,
    /// NULL allowed.
    pub nullable: bool,
}

/// Where a column is. A `null_bit` is for [`is_null`].
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// At a fixed offset of the clustered key; never NULL.
    Key {
        /// In bytes.
        offset: u32,
        /// How it is stored.
        codec: FixedCodec,
        /// Inverted.
        descending: bool,
    },
    /// At a fixed offset of the payload.
    Fixed {
        /// In bytes.
        offset: u32,
        /// How it is stored.
        codec: FixedCodec,
        /// Which bit says that it is NULL.
        null_bit: u16,
    },
    /// In the payload, number `index` of those of varying width.
    Varying {
        /// For [`RowLayout::varying`].
        index: u16,
        /// Which bit says that it is NULL.
        null_bit: u16,
    },
}

/// Reads one column of varying width from payloads: offsets that the layout fixes are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Varying {
    /// Where the ends begin.
    ends: u32,
    index: u16,
    /// Columns of varying width.
    count: u16,
}

impl Varying {
    /// The bytes of the column in a payload in which it is not NULL.
    #[inline]
    pub fn read(self, payload: &[u8]) -> &[u8] {
        payload.get(self.range(payload)).unwrap_or(&[])
    }

    /// Where they are.
    #[inline]
    fn range(self, payload: &[u8]) -> std::ops::Range<usize> {
        if payload.first().is_some_and(|byte| byte & WIDE_ENDS != 0) {
            return self.range_of_ends::<4>(payload);
        }
        // Both ends with one look, as nearly all columns have them.
        let ends = self.ends as usize;
        if let Some(before) = usize::from(self.index).checked_sub(1)
            && let Some([a, b, c, d]) = payload.get(ends + 2 * before..ends + 2 * before + 4)
        {
            let data = ends + 2 * usize::from(self.count);
            let start = usize::from(u16::from_le_bytes([*a, *b]));
            return data + start..data + usize::from(u16::from_le_bytes([*c, *d]));
        }
        self.range_of_ends::<2>(payload)
    }

    #[inline(always)]
    fn range_of_ends<const WIDTH: usize>(self, payload: &[u8]) -> std::ops::Range<usize> {
        let ends = self.ends as usize;
        let data = ends + WIDTH * usize::from(self.count);
        let end_at = |index: u16| read_end(payload, ends, usize::from(index), WIDTH);
        let start = if self.index == 0 { 0 } else { end_at(self.index - 1) };
        data + start..data + end_at(self.index)
    }
}

/// Whether the column of this bit is NULL in a payload; true outside of the payload.
#[inline]
pub fn is_null(payload: &[u8], null_bit: u16) -> bool {
    null_bit != NEVER
        && payload
            .get(1 + usize::from(null_bit >> 3))
            .is_none_or(|byte| byte >> (null_bit & 7) & 1 != 0)
}

/// `null_bit` of a column that is never NULL.
pub(super) const NEVER: u16 = u16::MAX;
/// Flag in the first byte of a payload: ends of varying columns are 4 bytes wide.
const WIDE_ENDS: u8 = 0x80;
/// Longest varying part with 2 byte ends.
const NARROW_MAX: usize = u16::MAX as usize;

/// The layout of a table's rows.
#[derive(Clone, Debug)]
pub struct RowLayout {
    columns: Vec<LayoutColumn>,
    pub(super) places: Vec<Place>,
    key: Vec<KeyColumn>,
    varying: Vec<usize>,
    /// First byte after version, null bitmap and fixed columns.
    ends_offset: usize,
    schema_version: u8,
}

impl RowLayout {
    /// The layout of `columns` with the clustered key `clustered` (empty for a hidden row id,
    /// whose key the engine makes). `schema_version` is below 128.
    pub fn new(columns: &[LayoutColumn], clustered: &[KeyPart], schema_version: u8) -> Self {
        let key: Vec<_> =
            clustered.iter().filter_map(|part| KeyColumn::new(columns, part)).collect();
        let mut places: Vec<Option<Place>> = vec![None; columns.len()];
        let mut offset = 0;
        for part in &key {
            let Some(width) = part.fixed_width() else { break };
            if let (true, Some(codec)) = (part.is_readable(), part.codec) {
                let place = Place::Key { offset, codec, descending: part.descending };
                places[part.column].get_or_insert(place);
            }
            offset += width as u32;
        }
        let stored = |places: &[Option<Place>]| -> Vec<usize> {
            (0..columns.len()).filter(|&i| places[i].is_none()).collect()
        };
        let stored = stored(&places);
        let nullable = stored.iter().filter(|&&i| columns[i].nullable).count();
        let mut offset = 1 + nullable.div_ceil(8);
        let (mut next_bit, mut varying) = (0, Vec::new());
        for i in stored {
            let mut null_bit = NEVER;
            if columns[i].nullable {
                null_bit = next_bit;
                next_bit += 1;
            }
            places[i] = Some(match FixedCodec::of(&columns[i].column_type) {
                Some(codec) => {
                    let place = Place::Fixed { offset: offset as u32, codec, null_bit };
                    offset += codec.width();
                    place
                }
                None => {
                    varying.push(i);
                    Place::Varying { index: varying.len() as u16 - 1, null_bit }
                }
            });
        }
        Self {
            columns: columns.to_vec(),
            places: places.into_iter().flatten().collect(),
            key,
            varying,
            ends_offset: offset,
            schema_version: schema_version & !WIDE_ENDS,
        }
    }

    /// The columns.
    pub fn columns(&self) -> &[LayoutColumn] {
        &self.columns
    }

    /// Where a column is, if there is such a column.
    pub fn place(&self, column: usize) -> Option<Place> {
        self.places.get(column).copied()
    }

    /// The reader of a column of varying width; see [`Place::Varying`].
    #[inline]
    pub fn varying(&self, index: u16) -> Varying {
        Varying { ends: self.ends_offset as u32, index, count: self.varying.len() as u16 }
    }

    /// The parts of the clustered key.
    pub fn clustered_key(&self) -> &[KeyColumn] {
        &self.key
    }

    /// Encodes a row whose values have the columns' types. `key` and `payload` are replaced;
    /// with a hidden row id `key` is left empty.
    pub fn encode(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        self.check_count(values)?;
        self.encode_with(|column| values[column], key, payload)
    }

    /// As [`RowLayout::encode`], with the values asked for by column.
    pub fn encode_with<'v>(
        &self,
        value: impl Fn(usize) -> ValueRef<'v>,
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        key.clear();
        for part in &self.key {
            part.push(value(part.column), key)?;
        }
        self.encode_payload_with(value, payload)
    }

    fn check_count(&self, values: &[ValueRef<'_>]) -> Result<(), LayoutError> {
        let (expected, found) = (self.columns.len(), values.len());
        if expected != found { Err(LayoutError::WrongCount { expected, found }) } else { Ok(()) }
    }

    /// Appends the clustered key of a row.
    pub fn push_clustered_key(
        &self,
        values: &[ValueRef<'_>],
        key: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        for part in &self.key {
            let value = values.get(part.column).copied().unwrap_or(ValueRef::Null);
            part.push(value, key)?;
        }
        Ok(())
    }

    /// Encodes the payload alone.
    pub fn encode_payload(
        &self,
        values: &[ValueRef<'_>],
        payload: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        self.check_count(values)?;
        self.encode_payload_with(|column| values[column], payload)
    }

    fn encode_payload_with<'v>(
        &self,
        value_of: impl Fn(usize) -> ValueRef<'v>,
        payload: &mut Vec<u8>,
    ) -> Result<(), LayoutError> {
        payload.clear();
        let length = |i: usize| value_of(i).bytes().map_or(0, <[u8]>::len);
        let total: usize = self.varying.iter().map(|&i| length(i)).sum();
        let wide = total > NARROW_MAX;
        let end_bytes = if wide { 4 } else { 2 };
        let data = self.ends_offset + end_bytes * self.varying.len();
        payload.reserve(data + total);
        payload.resize(data, 0);
        payload[0] = self.schema_version | if wide { WIDE_ENDS } else { 0 };
        let mut end = 0usize;
        for (column, place) in self.places.iter().enumerate() {
            let null_bit = match *place {
                Place::Key { .. } => continue,
                Place::Fixed { null_bit, .. } | Place::Varying { null_bit, .. } => null_bit,
            };
            let value = value_of(column);
            if value.is_null() {
                if null_bit == NEVER {
                    return Err(LayoutError::UnexpectedNull { column });
                }
                payload[1 + usize::from(null_bit / 8)] |= 1 << (null_bit % 8);
            }
            match *place {
                Place::Fixed { offset, codec, .. } if !value.is_null() => {
                    let range = offset as usize..offset as usize + codec.width();
                    if !codec.write_payload(value, &mut payload[range]) {
                        return Err(LayoutError::WrongType { column });
                    }
                }
                Place::Varying { index, .. } => {
                    if !value.is_null() {
                        let bytes = value.bytes().ok_or(LayoutError::WrongType { column })?;
                        payload.extend_from_slice(bytes);
                        end += bytes.len();
                    }
                    let at = self.ends_offset + end_bytes * usize::from(index);
                    payload[at..at + end_bytes]
                        .copy_from_slice(&(end as u32).to_le_bytes()[..end_bytes]);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Puts another value of a column into a payload of this layout, when no other column moves by
    /// that; false, and the payload is as before, if the row has to be encoded anew.
    pub fn patch(
        &self,
        column: usize,
        value: ValueRef<'_>,
        payload: &mut [u8],
    ) -> Result<bool, LayoutError> {
        let is_present = payload.first().is_some_and(|it| it & !WIDE_ENDS == self.schema_version);
        if !is_present || payload.len() < self.ends_offset || self.is_in_key(column) {
            return Ok(false);
        }
        match self.places.get(column) {
            Some(&Place::Fixed { offset, codec, null_bit }) => {
                if value.is_null() && null_bit == NEVER {
                    return Err(LayoutError::UnexpectedNull { column });
                }
                let target = &mut payload[offset as usize..offset as usize + codec.width()];
                if value.is_null() {
                    target.fill(0);
                } else if !codec.write_payload(value, target) {
                    return Err(LayoutError::WrongType { column });
                }
                if null_bit != NEVER {
                    let byte = &mut payload[1 + usize::from(null_bit / 8)];
                    let bit = 1 << (null_bit % 8);
                    *byte = if value.is_null() { *byte | bit } else { *byte & !bit };
                }
                Ok(true)
            }
            Some(&Place::Varying { index, null_bit }) => {
                let view = RowView::new(self, &[], payload);
                let Some(new) = value.bytes().filter(|_| !view.is_null(null_bit)) else {
                    return Ok(false);
                };
                let range = view.varying_range(usize::from(index));
                match payload.get_mut(range) {
                    Some(present) if present.len() == new.len() => {
                        present.copy_from_slice(new);
                        Ok(true)
                    }
                    _ => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// Whether a column is (only) in the clustered key, so that changing it moves the row.
    pub fn is_in_key(&self, column: usize) -> bool {
        self.key.iter().any(|part| part.column == column)
    }

    /// Checks the shape of a row's bytes.
    pub fn verify(&self, key: &[u8], payload: &[u8]) -> Result<(), LayoutError> {
        let mut at = 0;
        for part in &self.key {
            let rest = key.get(at..).unwrap_or(&[]);
            at += part.length(rest).ok_or(LayoutError::Malformed("clustered key too short"))?;
        }
        if !self.key.is_empty() && at != key.len() {
            return Err(LayoutError::Malformed("clustered key too long"));
        }
        let first = *payload.first().ok_or(LayoutError::Malformed("empty payload"))?;
        if first & !WIDE_ENDS != self.schema_version {
            return Err(LayoutError::Malformed("unknown schema version"));
        }
        let width = if first & WIDE_ENDS != 0 { 4 } else { 2 };
        let data = self.ends_offset + width * self.varying.len();
        if payload.len() < data {
            return Err(LayoutError::Malformed("payload too short"));
        }
        let mut last = 0;
        for index in 0..self.varying.len() {
            let end = read_end(payload, self.ends_offset, index, width);
            if end < last {
                return Err(LayoutError::Malformed("ends of columns out of order"));
            }
            last = end;
        }
        if data + last != payload.len() {
            return Err(LayoutError::Malformed("payload length differs from its columns"));
        }
        Ok(())
    }
}

/// End of varying column `index` relative to the varying data; 0 outside the payload.
#[inline(always)]
fn read_end(payload: &[u8], ends_offset: usize, index: usize, width: usize) -> usize {
    let at = ends_offset + width * index;
    match payload.get(at..at + width) {
        Some([a, b]) => usize::from(u16::from_le_bytes([*a, *b])),
        Some([a, b, c, d]) => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => 0,
    }
}

/// A row's bytes with its layout.
#[derive(Clone, Copy, Debug)]
pub struct RowView<'a> {
    layout: &'a RowLayout,
    key: &'a [u8],
    payload: &'a [u8],
}

impl<'a> RowView<'a> {
    /// A view; nothing is read yet.
    #[inline]
    pub fn new(layout: &'a RowLayout, key: &'a [u8], payload: &'a [u8]) -> Self {
        Self { layout, key, payload }
    }

    /// The layout.
    pub fn layout(&self) -> &'a RowLayout {
        self.layout
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.layout.places.len()
    }

    /// Whether the table has no columns.
    pub fn is_empty(&self) -> bool {
        self.layout.places.is_empty()
    }

    #[inline]
    fn is_null(&self, null_bit: u16) -> bool {
        is_null(self.payload, null_bit)
    }

    /// The value of a column, in constant time and without copying.
    #[inline]
    pub fn get(&self, column: usize) -> ValueRef<'a> {
        let Some(place) = self.layout.places.get(column) else { return ValueRef::Null };
        match *place {
            Place::Key { offset, codec, descending } => {
                let offset = offset as usize;
                match self.key.get(offset..offset + codec.width()) {
                    Some(bytes) if descending => codec.read_inverted_key(bytes),
                    Some(bytes) => codec.read_key(bytes),
                    None => ValueRef::Null,
                }
            }
            Place::Fixed { offset, codec, null_bit } => {
                if self.is_null(null_bit) {
                    return ValueRef::Null;
                }
                let offset = offset as usize;
                match self.payload.get(offset..offset + codec.width()) {
                    Some(bytes) => codec.read_payload(bytes),
                    None => ValueRef::Null,
                }
            }
            Place::Varying { index, null_bit } => {
                if self.is_null(null_bit) {
                    return ValueRef::Null;
                }
                ValueRef::Bytes(self.layout.varying(index).read(self.payload))
            }
        }
    }

    /// Varying column number `index`, if it is not NULL.
    #[inline]
    pub(super) fn text(&self, index: usize, null_bit: u16) -> Option<&'a [u8]> {
        if self.is_null(null_bit) {
            None
        } else {
            Some(self.layout.varying(index as u16).read(self.payload))
        }
    }

    /// Where a varying column lies in the payload.
    #[inline]
    fn varying_range(&self, index: usize) -> std::ops::Range<usize> {
        self.layout.varying(index as u16).range(self.payload)
    }
}
