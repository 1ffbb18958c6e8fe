//! How the rows of a table are found: scans, points, ranges, hash tables.

use engine_api::ScanDirection;
use expr::Expr;

/// How the rows of a table are found.
#[derive(Clone, Debug)]
pub enum Access {
    /// All rows in the order of an index.
    Scan {
        /// Position in `TableDefinition::indexes`.
        index: usize,
        /// Order.
        direction: ScanDirection,
        /// The index alone has all the columns that are read.
        covering: bool,
    },
    /// At most one row: every part of the clustered key has a value.
    Point {
        /// A value for each part, comparable with it as it is.
        key: Vec<Expr>,
    },
    /// Rows in ranges of an index.
    Ranges {
        /// Position in `TableDefinition::indexes`.
        index: usize,
        /// Ranges; sorted and made disjoint at execution.
        ranges: Vec<RangePlan>,
        /// Order.
        direction: ScanDirection,
        /// The index alone has all the columns that are read.
        covering: bool,
    },
    /// A hash table of the rows, made once and probed for every row of the tables before.
    Hash {
        /// How the rows that go into it are found.
        build: Box<Access>,
        /// Conditions on this table alone, applied before a row goes into it.
        build_condition: Option<Expr>,
        /// Equalities: a value of the tables before, a value of this table. Only pairs of numbers,
        /// of strings with one collation, or of one temporal type; the equality itself stays in
        /// the step's condition.
        keys: Vec<(Expr, Expr)>,
    },
}

/// One range of an index: equal leading parts, then bounds of the next part.
#[derive(Clone, Debug, Default)]
pub struct RangePlan {
    /// Values of the leading parts.
    pub equal: Vec<RangeValue>,
    /// Low end of the part behind them; none is open (NULLs are left out when `not_null`).
    pub lower: Option<RangeEnd>,
    /// High end.
    pub upper: Option<RangeEnd>,
    /// The part behind `equal` is not NULL (it has a bound or IS NOT NULL).
    pub not_null: bool,
}

/// A value that a part must equal.
#[derive(Clone, Debug)]
pub enum RangeValue {
    /// `part = expression`: NULL finds nothing.
    Equal(Expr),
    /// `part <=> expression`.
    NullSafe(Expr),
    /// `part IS NULL`.
    Null,
}

/// One end of a range.
#[derive(Clone, Debug)]
pub enum RangeEnd {
    /// Compared with a value.
    Value {
        /// Value; NULL finds nothing.
        value: Expr,
        /// The value itself is in the range.
        inclusive: bool,
    },
    /// Text that begins with what comes before the first wildcard of this LIKE pattern; stands
    /// at both ends of the range.
    LikePrefix {
        /// Pattern.
        pattern: Expr,
        /// Escape character.
        escape: Option<u32>,
    },
}
