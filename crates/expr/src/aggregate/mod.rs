//! Aggregate functions: result type, accumulation, result.
//!
//! The planner makes an [`Aggregate`] with [`Builder::aggregate`](crate::Builder::aggregate); the
//! executor keeps one [`Accumulator`] a group, feeds it every row of the group and takes the
//! value, which the expressions above the grouping see as a column.

mod accumulate;
mod list;
mod resolve;

pub use accumulate::{Accumulator, Deferred, DeferredValue, KeptValues};
pub use list::{Item, ListText};

use crate::expression::Expr;
use crate::result_type::ResultType;

/// Aggregate functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AggregateFunction {
    /// COUNT(*): rows.
    CountRows,
    /// COUNT(a, ...): rows in which none of the arguments is NULL.
    Count,
    /// SUM.
    Sum,
    /// AVG.
    Average,
    /// MIN.
    Minimum,
    /// MAX.
    Maximum,
    /// GROUP_CONCAT.
    GroupConcat,
    /// JSON_ARRAYAGG.
    JsonArray,
    /// JSON_OBJECTAGG.
    JsonObject,
    /// BIT_AND.
    BitAnd,
    /// BIT_OR.
    BitOr,
    /// BIT_XOR.
    BitXor,
    /// STD, STDDEV, STDDEV_POP.
    StandardDeviation,
    /// STDDEV_SAMP.
    SampleStandardDeviation,
    /// VARIANCE, VAR_POP.
    Variance,
    /// VAR_SAMP.
    SampleVariance,
    /// The value of any row of the group (ANY_VALUE, and columns that GROUP BY determines).
    AnyValue,
}

/// ORDER BY, SEPARATOR and LIMIT of GROUP_CONCAT.
#[derive(Clone, Debug, Default)]
pub struct ConcatOptions {
    /// Keys and whether each is descending.
    pub order_by: Vec<(Expr, bool)>,
    /// Separator; `,` by default.
    pub separator: Option<Vec<u8>>,
    /// Values left out and values taken, which read no columns.
    pub limit: Option<(Option<Expr>, Option<Expr>)>,
}

/// A bound aggregate.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// Which one.
    pub function: AggregateFunction,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments, over the rows that are grouped.
    pub arguments: Vec<Expr>,
    /// Options of GROUP_CONCAT.
    pub concat: ConcatOptions,
    /// Type of the value.
    pub result: ResultType,
}
