//! How many rows there may be.

use super::conjuncts::Conjunct;
use super::facts::IndexRanges;
use super::{cost, estimate};
use crate::physical::{RangePlan, RangeValue};
use catalog::TableEntry;
use engine_api::{IndexDefinition, Statistics};
use expr::{CompareOperator, Expr, ExprKind};
use std::ops::Range;
use std::sync::Arc;
use types::SqlError;

/// Numbers about a base table.
pub(super) struct Numbers {
    statistics: Arc<Statistics>,
    /// Rows, at least one.
    pub rows: f64,
    /// The engine's estimate for the ranges in question.
    pub asked: Option<f64>,
}

impl Numbers {
    /// The engine's numbers.
    pub(super) fn of(entry: &TableEntry) -> Result<Self, SqlError> {
        let statistics = Arc::new(entry.handle()?.statistics());
        let rows = (statistics.rows as f64).max(1.0);
        Ok(Self { statistics, rows, asked: None })
    }

    /// The same with an estimate of ranges that have bounds.
    pub(super) fn with_estimate(
        &self,
        asks: bool,
        entry: &TableEntry,
        index: usize,
        found: &IndexRanges,
    ) -> Self {
        let asked = match asks {
            true => estimate::rows(entry, index, &found.ranges),
            false => None,
        };
        Self { statistics: self.statistics.clone(), rows: self.rows, asked }
    }

    /// Rows for one value of the first `parts` parts of an index.
    fn rows_of_prefix(&self, index: usize, parts: usize) -> f64 {
        let known = self.statistics.distinct.get(index).and_then(|d| d.get(parts.wrapping_sub(1)));
        match known {
            Some(distinct) if *distinct > 0 => (self.rows / *distinct as f64).max(1.0),
            _ => (self.rows * cost::EQUALITY.powi(parts as i32)).max(1.0),
        }
    }
}

/// Rows that ranges of an index may hold.
pub(super) fn range_rows(
    found: &IndexRanges,
    index: &IndexDefinition,
    number: usize,
    numbers: &Numbers,
) -> f64 {
    let mut rows = 0.0;
    for range in &found.ranges {
        rows += one_range_rows(range, index, number, numbers);
    }
    rows.min(numbers.rows).max(1.0)
}

fn one_range_rows(
    range: &RangePlan,
    index: &IndexDefinition,
    number: usize,
    numbers: &Numbers,
) -> f64 {
    let parts = range.equal.len();
    let finds_one = index.unique && parts == index.parts.len();
    if finds_one && range.equal.iter().all(|value| matches!(value, RangeValue::Equal(_))) {
        return 1.0;
    }
    let rows = if parts == 0 { numbers.rows } else { numbers.rows_of_prefix(number, parts) };
    match (&range.lower, &range.upper) {
        (Some(_), Some(_)) => rows * cost::TWO_BOUNDS,
        (Some(_), None) | (None, Some(_)) => rows * cost::ONE_BOUND,
        (None, None) => rows,
    }
}

/// The share of rows that conditions leave, those left out that read nothing of the table but
/// the columns at `used` positions: they have made the access already.
pub(super) fn selectivity(conjuncts: &[&Conjunct], own: Range<usize>, used: &[usize]) -> f64 {
    let rest = conjuncts.iter().filter(|conjunct| {
        let mut reads_more = false;
        conjunct.expr.for_each_column(&mut |position| {
            reads_more |= own.contains(&position) && !used.contains(&position);
        });
        reads_more
    });
    rest.map(|conjunct| share(&conjunct.expr)).product::<f64>().max(1e-6)
}

fn share(condition: &Expr) -> f64 {
    match &condition.kind {
        ExprKind::Compare { operator, .. } => match operator {
            CompareOperator::Equal | CompareOperator::NullSafeEqual => cost::EQUALITY,
            CompareOperator::NotEqual => 0.9,
            _ => cost::ONE_BOUND,
        },
        ExprKind::Between { negated: false, .. } => cost::TWO_BOUNDS,
        ExprKind::In { list, negated: false, .. } => (cost::EQUALITY * list.len() as f64).min(0.5),
        _ => cost::OTHER,
    }
}
