//! Rows and keys as bytes.
//!
//! A row is stored as a clustered key and a payload. [`RowLayout`] says where each column is;
//! [`RowView`] reads a column in constant time without copying; [`IndexLayout`] makes the keys
//! of secondary indexes and reads columns back from them. `docs/file-format.md` describes the
//! bytes.
//!
//! 1. A column whose value can be read back from a fixed place of the clustered key is stored
//!    only there.
//! 2. Memcmp order of keys is the order of the columns' values, NULL first (last when
//!    descending).
//! 3. Reading never panics, whatever the bytes: what is outside reads as NULL or empty, and
//!    [`RowLayout::verify`] tells.

mod codec;
mod index;
mod key;
mod layout;
mod vector;

pub use codec::FixedCodec;
pub use index::IndexLayout;
pub use key::{KeyColumn, KeyPart};
pub use layout::{LayoutColumn, Place, RowLayout, RowView, Varying, is_null};
pub use vector::{Lane, Numbers, RowBytes};

use thiserror::Error;

/// Why a row or key could not be encoded, or what is wrong with its bytes.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum LayoutError {
    /// The value is not of the column's type: it was not converted before.
    #[error("column {column} holds a value of another type")]
    WrongType {
        /// Position of the column.
        column: usize,
    },
    /// NULL for a column that takes none.
    #[error("column {column} is NULL")]
    UnexpectedNull {
        /// Position of the column.
        column: usize,
    },
    /// The number of values differs from the number of columns.
    #[error("{found} values for {expected} columns")]
    WrongCount {
        /// Columns of the layout.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// The bytes are not a row or key of this layout.
    #[error("malformed bytes: {0}")]
    Malformed(&'static str),
}

#[cfg(test)]
mod tests;
