//! Costs in units of one row read in key order, and what is guessed where nothing is known.

/// A row of a sequential scan.
pub(super) const ROW: f64 = 1.0;
/// A key of a secondary index that is not followed to its row.
pub(super) const COVERED_ROW: f64 = 0.8;
/// A row fetched through a secondary index.
pub(super) const FETCHED_ROW: f64 = 4.0;
/// Coming to the first key of a range.
pub(super) const DESCENT: f64 = 3.0;
/// One row by its whole clustered key, known from the start.
pub(super) const POINT: f64 = 1.0;
/// One row by its whole clustered key, taken from the rows of other tables.
pub(super) const POINT_OF_JOIN: f64 = 2.0;
/// The same in a table of which the execution remembers the rows that it has found.
pub(super) const POINT_REMEMBERED: f64 = 0.5;
/// Tables with more rows are not remembered (`exec::query::remembered`).
pub(super) const REMEMBERED_ROWS_MAX: f64 = (1u64 << 18) as f64;
/// A row that is locked whether it is wanted or not.
pub(super) const LOCKED_ROW: f64 = 5.0;
/// A row put into a hash table.
pub(super) const HASHED_ROW: f64 = 0.7;
/// A probe of a hash table.
pub(super) const PROBE: f64 = 0.6;
/// A row that is sorted, per doubling of their number.
pub(super) const SORTED_ROW: f64 = 0.25;

/// Share of rows that an equality leaves when nothing is known of the column.
pub(super) const EQUALITY: f64 = 0.1;
/// Share of rows that one bound leaves.
pub(super) const ONE_BOUND: f64 = 0.3;
/// Share of rows that two bounds leave.
pub(super) const TWO_BOUNDS: f64 = 0.05;
/// Share of rows that another condition leaves.
pub(super) const OTHER: f64 = 0.5;

/// Rows of a derived table about which nothing is known.
pub(super) const DERIVED_ROWS: f64 = 100.0;

/// What sorting so many rows costs.
pub(super) fn sort(rows: f64) -> f64 {
    rows * rows.max(2.0).log2() * SORTED_ROW
}
