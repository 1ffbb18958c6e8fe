//! Values and their types: what a column holds, how it compares, how it is stored.
//!
//! Architecture invariant: this room knows neither SQL text nor pages. It turns values into
//! bytes (row payloads, memcmp keys, text) and back, with MySQL's rules for range, rounding
//! and comparison.

pub mod charset;
pub mod collation;
pub mod column_type;
pub mod convert;
pub mod decimal;
pub mod error;
pub mod members;
pub mod number;
pub mod row;
pub mod sql_mode;
pub mod temporal;
pub mod text;
pub mod value;

pub use charset::Charset;
pub use collation::Collation;
pub use column_type::{CollationId, ColumnType, TypeKind};
pub use decimal::Decimal;
pub use error::{Level, SqlError, Warning, codes};
pub use members::Members;
pub use sql_mode::SqlMode;
pub use temporal::{Date, DateTime, Time, TimeZone, Timestamp};
pub use value::{Value, ValueRef};
