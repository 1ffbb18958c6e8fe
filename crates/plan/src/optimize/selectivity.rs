//! How many rows there may be: from the engine's numbers about tables, indexes and columns, and
//! guesses where it has none.

use super::conjuncts::Conjunct;
use super::facts::IndexRanges;
use super::kept::KeptValues;
use super::{Problem, column_position, cost, estimate};
use crate::physical::{QueryPlan, RangePlan, RangeValue, TableSource};
use catalog::{KeptStatistics, TableEntry};
use engine_api::{ColumnStatistics, IndexDefinition, Statistics};
use expr::{CompareOperator, Expr, ExprKind, Test};
use std::ops::{Bound, Range};
use std::sync::Arc;
use types::row::{KeyColumn, KeyPart};
use types::{SqlError, TypeKind, Value};

/// Least share of rows that conditions are expected to leave.
const SHARE_MIN: f64 = 1e-9;

/// Numbers about a base table.
pub(super) struct Numbers {
    statistics: Statistics,
    /// Rows, at least one.
    pub rows: f64,
    /// What `mysql.table_stats` and its kin say, if that is to be gone by.
    kept: Option<Arc<KeptStatistics>>,
}

impl Numbers {
    /// The engine's numbers, with those that are kept before them where `prefers_kept`.
    fn of(
        entry: &TableEntry,
        kept: Option<Arc<KeptStatistics>>,
        prefers_kept: bool,
    ) -> Result<Self, SqlError> {
        let mut statistics = entry.handle()?.statistics();
        if let Some(kept) = kept.as_ref().filter(|_| prefers_kept) {
            statistics.rows = kept.cardinality.unwrap_or(statistics.rows);
            take_frequencies(&mut statistics, entry, kept);
        }
        let rows = (statistics.rows as f64).max(1.0);
        Ok(Self { statistics, rows, kept })
    }

    /// Rows for one value of the first `parts` parts of an index.
    fn rows_of_prefix(&self, index: usize, parts: usize) -> f64 {
        let known = self.statistics.distinct.get(index).and_then(|d| d.get(parts.wrapping_sub(1)));
        match known {
            Some(distinct) if *distinct > 0 => (self.rows / *distinct as f64).max(1.0),
            _ => (self.rows * cost::EQUALITY.powi(parts as i32)).max(1.0),
        }
    }

    /// What is kept of the values of a column.
    fn kept_values(&self, entry: &TableEntry, column: usize) -> Option<KeptValues> {
        let kept = self.kept.as_ref()?;
        let own = &entry.definition().columns[column];
        let part = KeyColumn::new(entry.layouts().row.columns(), &KeyPart::ascending(column));
        KeptValues::of(kept, &own.name, &own.column_type, part, self.rows)
    }

    /// Different values of a column that an index begins with.
    fn distinct_of_index(&self, entry: &TableEntry, column: usize) -> Option<f64> {
        let indexes = entry.definition().indexes.iter().enumerate();
        let own = indexes.filter(|(_, index)| {
            index.parts.first().is_some_and(|part| part.column == column && part.prefix.is_none())
        });
        let found = own.filter_map(|(number, index)| {
            let known = self.statistics.distinct.get(number)?.first().copied()? as f64;
            let is_key = index.unique && index.parts.len() == 1;
            Some(if is_key { self.rows } else { known }).filter(|distinct| *distinct > 0.0)
        });
        found.reduce(f64::max)
    }
}

/// Puts what is kept of indexes in the place of the engine's numbers.
fn take_frequencies(statistics: &mut Statistics, entry: &TableEntry, kept: &KeptStatistics) {
    let rows = statistics.rows as f64;
    for (number, index) in entry.definition().indexes.iter().enumerate() {
        let (Some(parts), Some(own)) =
            (kept.indexes.get(&index.name), statistics.distinct.get_mut(number))
        else {
            continue;
        };
        for (frequency, own) in parts.iter().zip(own) {
            if let Some(frequency) = frequency.filter(|it| *it > 0.0) {
                *own = ((rows / frequency) as u64).max(1);
            }
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

/// A column of a source with what is known of its values.
struct Known<'p> {
    entry: &'p TableEntry,
    column: usize,
    statistics: Option<Arc<ColumnStatistics>>,
    kept: Option<KeptValues>,
    values: &'p [Value],
    rows: f64,
}

impl Known<'_> {
    /// A constant in the column's key form.
    fn key(&self, value: &Expr) -> Option<Vec<u8>> {
        let columns = self.entry.layouts().row.columns();
        let part = KeyColumn::new(columns, &KeyPart::ascending(self.column))?;
        let mut key = Vec::new();
        estimate::push_value(self.constant(value)?, &part, columns, &mut key)?;
        Some(key)
    }

    fn constant<'e>(&'e self, value: &'e Expr) -> Option<&'e Value> {
        estimate::constant(value, self.values)
    }

    /// Whether keys are in the order of the values.
    fn is_ordered(&self) -> bool {
        self.entry.definition().columns[self.column].column_type.members.is_none()
    }

    /// Share of rows between two constants; each is a value and whether it is in the range.
    fn between(&self, lower: Option<(&Expr, bool)>, upper: Option<(&Expr, bool)>) -> Option<f64> {
        if let Some(kept) = self.kept.as_ref().filter(|_| self.is_ordered()) {
            let constant = |end: Option<(&Expr, bool)>| match end {
                None => Some(None),
                Some((value, _)) => Some(Some(self.constant(value)?.clone())),
            };
            let (lower, upper) = (constant(lower)?, constant(upper)?);
            return kept.between(lower.as_ref(), upper.as_ref());
        }
        let statistics = self.statistics.as_ref().filter(|_| self.is_ordered())?;
        let key = |end: Option<(&Expr, bool)>| match end {
            None => Some(None),
            Some((value, inclusive)) => Some(Some((self.key(value)?, inclusive))),
        };
        let (lower, upper) = (key(lower)?, key(upper)?);
        Some(statistics.between(bound(&lower), bound(&upper)))
    }

    fn nulls(&self) -> Option<f64> {
        match &self.kept {
            Some(kept) => Some(kept.nulls),
            None => Some(self.statistics.as_ref()?.nulls),
        }
    }

    fn equal(&self, value: &Expr) -> Option<f64> {
        if let Some(kept) = &self.kept {
            return kept.equal(self.constant(value));
        }
        let statistics = self.statistics.as_ref()?;
        match self.constant(value) {
            Some(_) => Some(statistics.equal(&self.key(value)?)),
            None => Some(statistics.equal_unknown()),
        }
    }
}

/// An end of a range: a key and whether it is in the range.
fn bound(end: &Option<(Vec<u8>, bool)>) -> Bound<&[u8]> {
    match end {
        None => Bound::Unbounded,
        Some((key, true)) => Bound::Included(key),
        Some((key, false)) => Bound::Excluded(key),
    }
}

impl Problem<'_> {
    /// Numbers about a source that is a base table.
    pub(super) fn numbers(&self, source: usize, entry: &TableEntry) -> Result<&Numbers, SqlError> {
        if let Some(known) = self.numbers[source].get() {
            return Ok(known);
        }
        let kept = self.stat_tables.of(entry);
        let numbers = Numbers::of(entry, kept, self.stat_tables.prefers_kept())?;
        Ok(self.numbers[source].get_or_init(|| numbers))
    }

    /// The share of rows that conditions leave, those left out that read nothing of the table but
    /// the columns at `used` positions: they have made the access already.
    pub(super) fn selectivity(
        &self,
        conjuncts: &[&Conjunct],
        own: Range<usize>,
        used: &[usize],
    ) -> f64 {
        let rest = conjuncts.iter().filter(|conjunct| {
            let mut reads_more = false;
            conjunct.expr.for_each_column(&mut |position| {
                reads_more |= own.contains(&position) && !used.contains(&position);
            });
            reads_more
        });
        rest.map(|conjunct| self.share_of(conjunct)).product::<f64>().max(SHARE_MIN)
    }

    /// The share of rows that a condition leaves, remembered.
    pub(super) fn share_of(&self, conjunct: &Conjunct) -> f64 {
        *conjunct.share.get_or_init(|| self.share(&conjunct.expr))
    }

    /// The share of rows that a condition leaves.
    fn share(&self, condition: &Expr) -> f64 {
        let share = match &condition.kind {
            ExprKind::Compare { operator, left, right, .. } => {
                self.share_of_compare(*operator, left, right)
            }
            ExprKind::Between { operand, low, high, negated, .. } => {
                let known = self.known(operand);
                let ends = (Some((&**low, true)), Some((&**high, true)));
                let share = known.and_then(|known| known.between(ends.0, ends.1));
                let share = share.unwrap_or(cost::TWO_BOUNDS);
                if *negated { 1.0 - share } else { share }
            }
            ExprKind::In { operand, list, negated, .. } => {
                let equal = |(value, _): &(Expr, _)| {
                    self.share_of_compare(CompareOperator::Equal, operand, value)
                };
                let share = list.iter().map(equal).sum::<f64>();
                if *negated { 1.0 - share.min(0.95) } else { share }
            }
            ExprKind::Is { operand, test: Test::Null, negated } => {
                let nulls = self.known(operand).and_then(|known| known.nulls());
                let nulls = nulls.unwrap_or(cost::EQUALITY);
                if *negated { 1.0 - nulls } else { nulls }
            }
            ExprKind::And(list) => list.iter().map(|inner| self.share(inner)).product(),
            ExprKind::Or(list) => {
                1.0 - list.iter().map(|inner| 1.0 - self.share(inner)).product::<f64>()
            }
            ExprKind::Not(inner) => 1.0 - self.share(inner),
            _ => cost::OTHER,
        };
        share.clamp(SHARE_MIN, 1.0)
    }

    fn share_of_compare(&self, operator: CompareOperator, left: &Expr, right: &Expr) -> f64 {
        use CompareOperator::{Equal, NotEqual, NullSafeEqual};
        let (operator, column, value) = match self.is_own_column(left) {
            true => (operator, left, right),
            false => (operator.swapped(), right, left),
        };
        let equal = || -> Option<f64> {
            if self.is_own_column(value) {
                let distinct = [column, value].map(|side| self.distinct(side));
                let most = distinct.into_iter().flatten().reduce(f64::max)?;
                return Some(1.0 / most.max(1.0));
            }
            if let Some(share) = self.known(column).and_then(|known| {
                // Of a value that the sample has not met there may be one.
                known.equal(value).map(|share| share.max(0.5 / known.rows))
            }) {
                return Some(share);
            }
            Some(1.0 / self.distinct(column)?.max(1.0))
        };
        match operator {
            Equal | NullSafeEqual => equal().unwrap_or(cost::EQUALITY),
            NotEqual => 1.0 - equal().unwrap_or(cost::EQUALITY),
            _ => {
                let end = |inclusive| Some((value, inclusive));
                let (lower, upper) = match operator {
                    CompareOperator::Less => (None, end(false)),
                    CompareOperator::LessOrEqual => (None, end(true)),
                    CompareOperator::Greater => (end(false), None),
                    _ => (end(true), None),
                };
                let known = self.known(column).filter(|_| self.constant(value).is_some());
                let share = known.and_then(|known| known.between(lower, upper));
                share.unwrap_or(cost::ONE_BOUND)
            }
        }
    }

    /// The value of a literal, or of a parameter that is bound.
    pub(super) fn constant<'e>(&'e self, expr: &'e Expr) -> Option<&'e Value> {
        estimate::constant(expr, self.values)
    }

    fn is_own_column(&self, expr: &Expr) -> bool {
        column_position(expr).is_some_and(|at| self.source_of(at).is_some())
    }

    /// The source that has a position of the frame.
    fn source_of(&self, position: usize) -> Option<usize> {
        self.sources.iter().position(|s| (s.first..s.first + s.width).contains(&position))
    }

    /// What the engine knows of a column.
    fn known(&self, expr: &Expr) -> Option<Known<'_>> {
        let position = column_position(expr)?;
        let source = self.source_of(position)?;
        let TableSource::Base(entry) = &self.sources[source].table else { return None };
        let column = position - self.sources[source].first;
        let numbers = self.numbers(source, &entry.0).ok()?;
        let kept = match self.stat_tables.knows_columns() {
            true => numbers.kept_values(&entry.0, column),
            false => None,
        };
        let statistics = match kept {
            Some(_) => None,
            None => entry.0.handle().ok()?.column_statistics(column),
        };
        let (values, rows) = (self.values, numbers.rows);
        Some(Known { entry: &entry.0, column, statistics, kept, values, rows })
    }

    /// Different values of a column.
    fn distinct(&self, expr: &Expr) -> Option<f64> {
        let position = column_position(expr)?;
        let source = self.source_of(position)?;
        let own = &self.sources[source];
        match &own.table {
            TableSource::Base(entry) => {
                let column = position - own.first;
                let numbers = self.numbers(source, &entry.0).ok()?;
                if let Some(distinct) = numbers.distinct_of_index(&entry.0, column) {
                    return Some(distinct);
                }
                if self.stat_tables.knows_columns()
                    && let Some(kept) = numbers.kept_values(&entry.0, column)
                {
                    return kept.distinct(numbers.rows);
                }
                let known = entry.0.handle().ok()?.column_statistics(column)?;
                (known.distinct > 0.0).then_some(known.distinct)
            }
            TableSource::Derived(query) => distinct_of_derived(query, position - own.first),
            TableSource::Virtual { .. } | TableSource::Recursive { .. } => None,
        }
    }

    /// Different values of expressions together, as far as is known, out of `rows`.
    pub(super) fn groups(&self, keys: &[Expr], rows: f64) -> f64 {
        let of_key = |key: &Expr| self.distinct(key).unwrap_or_else(|| rows.sqrt().max(10.0));
        keys.iter().map(of_key).product::<f64>().min(rows).max(1.0)
    }
}

/// Different values of a column of a derived table.
fn distinct_of_derived(query: &QueryPlan, column: usize) -> Option<f64> {
    let rows = query_rows(query);
    let QueryPlan::Select(select) = query else { return Some(rows) };
    let is_key = match &select.aggregate {
        Some(aggregate) => aggregate.keys.len() <= 1,
        None => select.distinct && select.columns.len() == 1,
    };
    let kind = select.columns.get(column)?.result.column_type.kind;
    Some(if is_key || kind == TypeKind::Null { rows } else { rows.powf(0.75) })
}

/// Rows that a query may give.
pub(crate) fn query_rows(query: &QueryPlan) -> f64 {
    match query {
        QueryPlan::Select(select) => select.estimate.rows,
        QueryPlan::Set(set) => {
            query_rows(&set.first) + set.rest.iter().map(|(_, q)| query_rows(q)).sum::<f64>()
        }
    }
}

/// What running a query costs.
pub(crate) fn query_cost(query: &QueryPlan) -> f64 {
    match query {
        QueryPlan::Select(select) => select.estimate.cost,
        QueryPlan::Set(set) => {
            query_cost(&set.first) + set.rest.iter().map(|(_, q)| query_cost(q)).sum::<f64>()
        }
    }
}
