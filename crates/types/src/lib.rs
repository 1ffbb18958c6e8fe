//! Values and their types: what a column holds, how it compares, how it is stored.
//!
//! Architecture invariant: this room knows neither SQL text nor pages. It turns values into
//! bytes (row payloads, memcmp keys, text) and back, with MySQL's rules for range, rounding
//! and comparison.

pub mod column_type;

pub use column_type::{CollationId, ColumnType, TypeKind};
