//! One part of a key: encode, skip, read back.
//!
//! Form: a nullable part begins with 0 (NULL, nothing follows) or 1; then the value in the key
//! form of [`FixedCodec`], or the sort key of its collation. A descending part has all its bytes
//! inverted. ENUM and SET have the key form of their numbers.

use super::LayoutError;
use super::codec::FixedCodec;
use super::layout::LayoutColumn;
use crate::collation::{self, Collation};
use crate::column_type::{ColumnType, TypeKind};
use crate::value::ValueRef;

/// A part of an index as declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyPart {
    /// Position of the column in the table.
    pub column: usize,
    /// Only the first so many characters (bytes for binary types).
    pub prefix: Option<u32>,
    /// DESC.
    pub descending: bool,
}

impl KeyPart {
    /// A whole column, ascending.
    pub fn ascending(column: usize) -> Self {
        Self { column, prefix: None, descending: false }
    }
}

/// A part of an index with all that is needed to encode and read it.
#[derive(Clone, Copy, Debug)]
pub struct KeyColumn {
    /// Position of the column in the table.
    pub column: usize,
    /// NULL allowed: the part begins with a marker byte.
    pub nullable: bool,
    /// Bytes are inverted.
    pub descending: bool,
    /// Characters (bytes) that count.
    pub prefix: Option<u32>,
    /// How a value of fixed width is stored; `None` for text and binary of varying width.
    pub codec: Option<FixedCodec>,
    collation: &'static Collation,
    /// The type of ENUM and SET, whose values are texts and whose keys are numbers.
    of_members: Option<ColumnType>,
}

impl KeyColumn {
    /// A part over `columns`; `None` if it names no column.
    pub fn new(columns: &[LayoutColumn], part: &KeyPart) -> Option<Self> {
        let column = columns.get(part.column)?;
        let of_members = Some(column.column_type).filter(|it| it.members.is_some());
        let codec = match FixedCodec::of(&column.column_type) {
            _ if of_members.is_some() => {
                Some(FixedCodec::UInt(if column.column_type.kind == TypeKind::Set { 8 } else { 2 }))
            }
            Some(FixedCodec::Bytes(length)) => {
                let kept = part.prefix.map_or(length, |p| p.min(u32::from(length)) as u8);
                Some(FixedCodec::Bytes(kept))
            }
            other => other,
        };
        Some(Self {
            column: part.column,
            nullable: column.nullable,
            descending: part.descending,
            prefix: part.prefix,
            codec,
            collation: column.column_type.collation.info(),
            of_members,
        })
    }

    /// Whether both parts have the same bytes in all rows of the table that both are of.
    pub fn is_same(&self, other: &KeyColumn) -> bool {
        self.column == other.column
            && self.prefix == other.prefix
            && self.descending == other.descending
    }

    /// Width in bytes if it is the same for all values.
    pub fn fixed_width(&self) -> Option<usize> {
        self.codec.filter(|_| !self.nullable).map(FixedCodec::width)
    }

    /// Whether the column's value can be read back from the key.
    pub fn is_readable(&self) -> bool {
        match self.codec {
            Some(FixedCodec::Bytes(_)) => self.prefix.is_none() && !self.descending,
            Some(codec) => self.of_members.is_none() && codec.is_lossless_in_key(),
            None => false,
        }
    }

    /// Collation of a text part.
    pub fn collation(&self) -> &'static Collation {
        self.collation
    }

    /// Appends the part for a value of the column's type.
    pub fn push(&self, value: ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), LayoutError> {
        let start = out.len();
        let wrong = LayoutError::WrongType { column: self.column };
        if value.is_null() {
            if !self.nullable {
                return Err(LayoutError::UnexpectedNull { column: self.column });
            }
            out.push(0);
        } else {
            if self.nullable {
                out.push(1);
            }
            match (self.codec, value) {
                (Some(FixedCodec::Bytes(kept)), ValueRef::Bytes(bytes)) => {
                    let kept = &bytes[..bytes.len().min(usize::from(kept))];
                    if !FixedCodec::Bytes(self.codec.map_or(0, |c| c.width() as u8))
                        .push_key(ValueRef::Bytes(kept), out)
                    {
                        return Err(wrong);
                    }
                }
                (Some(codec), _) => {
                    if !codec.push_key(value, out) {
                        let number = self.member_number(value).ok_or(wrong)?;
                        codec.push_key(ValueRef::UInt(number), out);
                    }
                }
                (None, ValueRef::Bytes(text)) => {
                    collation::push_sort_key(self.collation, self.cut(text), out);
                }
                (None, _) => return Err(wrong),
            }
        }
        self.invert(&mut out[start..]);
        Ok(())
    }

    fn member_number(&self, value: ValueRef<'_>) -> Option<u64> {
        self.of_members?.member_number(value.bytes()?)
    }

    /// Appends what all keys share whose text begins with `text` (for LIKE 'text%'). False if
    /// the part is not text; a range then has to start from what comes before.
    pub fn push_text_prefix(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if self.codec.is_some() {
            return false;
        }
        let start = out.len();
        if self.nullable {
            out.push(1);
        }
        collation::push_prefix_sort_key(self.collation, self.cut(text), out);
        self.invert(&mut out[start..]);
        true
    }

    /// Appends the marker that all values but NULL begin with (nothing if NULL is not
    /// allowed): the prefix of `IS NOT NULL`.
    pub fn push_not_null_marker(&self, out: &mut Vec<u8>) {
        if self.nullable {
            out.push(if self.descending { !1 } else { 1 });
        }
    }

    fn cut<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        match self.prefix {
            Some(count) => &text[..self.collation.charset.byte_offset(text, count as usize)],
            None => text,
        }
    }

    fn invert(&self, bytes: &mut [u8]) {
        if self.descending {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }

    /// Length in bytes of this part at the start of `key`; `None` if the bytes end early.
    pub fn length(&self, key: &[u8]) -> Option<usize> {
        let mask = if self.descending { 0xff } else { 0 };
        let mut at = 0;
        if self.nullable {
            if key.first()? ^ mask == 0 {
                return Some(1);
            }
            at = 1;
        }
        let length = match self.codec {
            Some(codec) => codec.width(),
            None => collation::sort_key_end(self.collation, key.get(at..)?, mask)?,
        };
        (at + length <= key.len()).then_some(at + length)
    }

    /// Reads the value back from the part's bytes (as [`KeyColumn::length`] delimits them).
    /// NULL if the part is not readable.
    #[inline]
    pub fn read<'a>(&self, part: &'a [u8]) -> ValueRef<'a> {
        let (Some(codec), true) = (self.codec, self.is_readable()) else {
            return ValueRef::Null;
        };
        let body = if self.nullable {
            let mask = if self.descending { 0xff } else { 0 };
            match part.split_first() {
                Some((&marker, body)) if marker ^ mask == 1 => body,
                _ => return ValueRef::Null,
            }
        } else {
            part
        };
        if body.len() != codec.width() {
            return ValueRef::Null;
        }
        if self.descending { codec.read_inverted_key(body) } else { codec.read_key(body) }
    }
}
