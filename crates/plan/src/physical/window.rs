//! Window functions.

use super::SortKey;
use expr::aggregate::Aggregate;
use expr::{Expr, ResultType};

/// The window functions of a block. Behind them there is another frame: the inputs, then the
/// results.
#[derive(Clone, Debug)]
pub struct WindowPlan {
    /// Values over the block's frame (the grouped one, if it groups).
    pub inputs: Vec<Expr>,
    /// Types of the functions' values.
    pub results: Vec<ResultType>,
    /// Functions by the order that they ask for, at least one.
    pub steps: Vec<WindowStep>,
}

/// Functions over rows of one order.
#[derive(Clone, Debug)]
pub struct WindowStep {
    /// PARTITION BY, positions of inputs.
    pub partition: Vec<usize>,
    /// ORDER BY, positions of inputs.
    pub order: Vec<SortKey>,
    /// The functions.
    pub functions: Vec<WindowFunction>,
}

/// A window function.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    /// Position in [`WindowPlan::results`].
    pub result: usize,
    /// Which one.
    pub kind: WindowKind,
    /// Arguments over the inputs; those of an aggregate it has itself.
    pub arguments: Vec<Expr>,
    /// Rows that it looks at.
    pub frame: FramePlan,
}

/// Window functions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lag,
    Lead,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Aggregate),
}

/// ROWS and RANGE.
#[derive(Clone, Debug)]
pub struct FramePlan {
    /// ROWS: the edges are rows, not values.
    pub rows: bool,
    /// Where it begins.
    pub start: FrameEdge,
    /// Where it ends.
    pub end: FrameEdge,
    /// The input that edges of RANGE are compared with.
    pub range_key: Option<usize>,
}

/// An edge of a frame.
#[derive(Clone, Debug)]
pub enum FrameEdge {
    /// That of the partition.
    Unbounded,
    /// The row itself; for RANGE with those that are equal to it.
    Current,
    /// So many rows away.
    Rows {
        /// How many, a constant.
        count: Expr,
        /// Behind the row rather than before it.
        following: bool,
    },
    /// At the value of this input.
    Range {
        /// Its position.
        bound: usize,
    },
}
