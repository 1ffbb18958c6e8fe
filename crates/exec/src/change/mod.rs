//! Statements that change rows.

mod computed;
pub mod delete;
pub mod foreign;
pub mod insert;
pub mod join;
pub mod load;
mod row;
pub mod update;

pub use computed::compute;
pub use row::{breaks_check, column_filler, duplicate_entry, duplicate_in, zero_of};
