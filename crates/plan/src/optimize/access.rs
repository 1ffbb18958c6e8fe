//! How one table can be read, and what that costs.

use super::conjuncts::Conjunct;
use super::facts::{FactReader, Facts, IndexRanges};
use super::hints::allowed_indexes;
use super::selectivity::{Numbers, query_cost, query_rows, range_rows};
use super::{Problem, cost, estimate, ordering};
use crate::physical::{Access, QueryPlan, RangePlan, RangeValue, TableSource};
use catalog::TableEntry;
use engine_api::{IndexDefinition, LockMode, ScanDirection};
use expr::{CompareOperator, CompareRule, Expr, ExprKind};
use std::ops::Range;
use types::{SqlError, TypeKind};

/// One way to read a source.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub access: Access,
    /// What one reading costs.
    pub cost: f64,
    /// What is paid once, before the first reading.
    pub once: f64,
    /// Rows that one reading gives, before conditions.
    pub rows: f64,
    /// Share of those rows that the conditions leave.
    pub selectivity: f64,
    /// The rows come in the wanted order.
    pub ordered: bool,
}

impl Candidate {
    /// Whether it goes through the clustered index.
    fn reads_rows(&self) -> bool {
        match &self.access {
            Access::Scan { index, .. } | Access::Ranges { index, .. } => *index == 0,
            Access::Point { .. } => true,
            Access::Hash { .. } => false,
        }
    }
}

/// All ways to read a source behind others.
pub(super) struct Ways {
    pub candidates: Vec<Candidate>,
    /// Rows that join one row of the sources before, whichever way they are read.
    pub rows: f64,
}

impl Problem<'_> {
    /// The ways to read a source when `bound` sources have rows.
    pub(super) fn ways(&self, source: usize, bound: u64) -> Result<Ways, SqlError> {
        let known = self.positions.constant_applies();
        let own = 1u64 << source;
        let is_left = self.sources[source].left_join.is_some();
        let conjuncts = if is_left { &self.on[source] } else { &self.conjuncts };
        let usable: Vec<&Conjunct> = conjuncts
            .iter()
            .filter(|c| c.sources & own != 0 && c.is_ready(bound | own, known))
            .collect();
        let mut candidates = match &self.sources[source].table {
            TableSource::Base(entry) => self.base(source, bound, &entry.0, &usable)?,
            TableSource::Derived(query) => vec![self.derived(query, &usable, source)],
            TableSource::Virtual { .. } | TableSource::Recursive { .. } => {
                vec![self.whole(cost::DERIVED_ROWS, &usable, source)]
            }
        };
        let is_one_row = matches!(&candidates[..], [one] if one.rows == 1.0);
        let least = candidates.iter().map(|it| it.rows * it.selectivity).reduce(f64::min);
        let mut rows = least.unwrap_or(1.0);
        if !is_one_row {
            let all = match &self.sources[source].table {
                TableSource::Base(entry) => self.numbers(source, &entry.0)?.rows,
                _ => candidates.first().map_or(1.0, |it| it.rows),
            };
            rows = rows.min(all * self.selectivity(&usable, self.columns_of(source), &[]));
        }
        if bound != 0
            && let Some(hash) = self.hash(source, bound, &usable)?
        {
            candidates.push(hash);
        }
        Ok(Ways { candidates, rows })
    }

    fn base(
        &self,
        source: usize,
        bound: u64,
        entry: &TableEntry,
        usable: &[&Conjunct],
    ) -> Result<Vec<Candidate>, SqlError> {
        let facts = self.facts(source, bound, entry, usable);
        let definition = entry.definition();
        if self.sources[source].hints.is_empty()
            && let Some(key) = constant_point(&facts, &definition.indexes[0])
        {
            // One row comes in any order, but the tables behind it do not.
            let ordered = self.wanted.is_some()
                && (self.sources.len() == 1
                    || self.order_of(source, entry, 0, key.len(), true).is_some());
            return Ok(vec![one_row(key, ordered)]);
        }
        let numbers = self.numbers(source, entry)?;
        let allowed = allowed_indexes(entry, &self.sources[source].hints);
        let mut found = Vec::new();
        for (number, index) in definition.indexes.iter().enumerate() {
            if index.parts.is_empty() {
                continue;
            }
            let Some(ranges) = facts.ranges(index) else { continue };
            if allowed.ranges[number] {
                found.push((number, ranges));
            }
        }
        let asks = found.len() > 1
            || self.sources.len() > 1
            || found.first().is_some_and(|(number, _)| *number != 0);
        let mut candidates = Vec::new();
        // A statement that locks what it reads does not lock all rows where an equality leads to
        // those it wants.
        let by_equality = self.lock != LockMode::None
            && found.iter().any(|(_, it)| it.ranges.iter().all(|range| !range.equal.is_empty()));
        for (number, ranges) in found {
            let asked = if asks {
                estimate::rows(entry, number, &ranges.ranges, self.values)
            } else {
                None
            };
            let rows = match asked {
                Some(rows) => rows.clamp(1.0, numbers.rows),
                None => range_rows(&ranges, &definition.indexes[number], number, numbers),
            };
            candidates.push(self.ranges(source, entry, number, ranges, rows, usable));
        }
        let forced = (allowed.forced || by_equality) && !candidates.is_empty();
        // Nor does it lock the whole of an index that covers it where there is a range: it would
        // read entries whose rows others have locked.
        let by_range = self.lock != LockMode::None && !candidates.is_empty();
        let may_lock_all =
            |index: usize, scan: &Candidate| index == 0 || scan.ordered && self.limit.is_some();
        if !forced {
            for (number, index) in definition.indexes.iter().enumerate() {
                if number == 0 || (allowed.scans[number] && !index.parts.is_empty()) {
                    let scan = self.scan(source, entry, number, numbers, usable);
                    candidates.extend(scan.filter(|it| !by_range || may_lock_all(number, it)));
                }
            }
            if allowed.forced && candidates.iter().any(|it| it.ordered && !it.reads_rows()) {
                candidates.retain(|it| it.ordered);
            }
        }
        Ok(candidates)
    }

    /// The indexes that conditions could use if all other sources had rows.
    pub(super) fn possible_keys(&self, source: usize) -> Vec<usize> {
        let TableSource::Base(entry) = &self.sources[source].table else { return Vec::new() };
        let definition = entry.0.definition();
        if definition.indexes.len() == 1 && definition.indexes[0].parts.is_empty() {
            return Vec::new();
        }
        let known = self.positions.constant_applies();
        let own = 1u64 << source;
        // A table that may have no row can be looked up only after those that it depends on.
        let is_left = self.sources[source].left_join.is_some();
        let others = self
            .sources
            .iter()
            .enumerate()
            .filter(|(_, other)| is_left || other.left_join.is_none());
        let bound = others.fold(0u64, |set, (number, _)| set | 1 << number) & !own;
        let conjuncts = if is_left { &self.on[source] } else { &self.conjuncts };
        let usable: Vec<&Conjunct> = conjuncts
            .iter()
            .filter(|c| c.sources & own != 0 && c.is_ready(bound | own, known))
            .collect();
        let facts = self.facts(source, bound, &entry.0, &usable);
        let allowed = allowed_indexes(&entry.0, &self.sources[source].hints);
        let indexes = definition.indexes.iter().enumerate();
        let possible = indexes.filter(|(number, index)| {
            allowed.ranges[*number] && !index.parts.is_empty() && facts.ranges(index).is_some()
        });
        possible.map(|(number, _)| number).collect()
    }

    fn facts(&self, source: usize, bound: u64, entry: &TableEntry, usable: &[&Conjunct]) -> Facts {
        let definition = entry.definition();
        let known = self.positions.constant_applies();
        // RAND() and the like have a value for each row that is tested.
        let is_known = |expr: &Expr| {
            let (sources, applies) = self.positions.reads(expr);
            sources & !bound == 0 && applies & !known == 0 && expr.has_no_effect()
        };
        let reader = FactReader {
            builder: &self.builder,
            first: self.sources[source].first,
            columns: &definition.columns,
            is_known: &is_known,
        };
        reader.read(usable.iter().map(|conjunct| &conjunct.expr))
    }

    /// Whether an index alone has all columns that are read of a source.
    fn is_covering(&self, source: usize, entry: &TableEntry, index: usize) -> bool {
        if index == 0 || self.lock == LockMode::Exclusive {
            return false;
        }
        let layout = &entry.layouts().indexes[index];
        let used = self.used[source].iter().enumerate();
        used.filter(|(_, used)| **used).all(|(column, _)| layout.covers(column))
    }

    fn ranges(
        &self,
        source: usize,
        entry: &TableEntry,
        index: usize,
        found: IndexRanges,
        rows: f64,
        usable: &[&Conjunct],
    ) -> Candidate {
        let definition = &entry.definition().indexes[index];
        let covering = self.is_covering(source, entry, index);
        let row_cost = match (index, covering) {
            (0, _) => cost::ROW,
            (_, true) => cost::COVERED_ROW,
            (_, false) => cost::FETCHED_ROW,
        };
        let count = found.ranges.len() as f64;
        let full = definition.parts.len();
        let is_point = index == 0
            && found.equal_parts == full
            && found.used_parts == full
            && definition.parts.iter().all(|part| part.prefix.is_none())
            && point_key(&found.ranges).is_some();
        let is_constant = point_key(&found.ranges).is_some_and(|key| reads_nothing(&key));
        let order = self.order_of(source, entry, index, found.equal_parts, is_point);
        let direction = order.unwrap_or(ScanDirection::Forward);
        let access = match (is_point, point_key(&found.ranges)) {
            (true, Some(key)) => Access::Point { key },
            _ => Access::Ranges { index, ranges: found.ranges, direction, covering },
        };
        let first = self.sources[source].first;
        let used = definition.parts.iter().take(found.used_parts);
        let used: Vec<usize> = used.map(|part| first + part.column).collect();
        let selectivity = self.selectivity(usable, self.columns_of(source), &used);
        let ranges_cost = count * cost::DESCENT + rows * (row_cost + self.lock_cost());
        Candidate {
            access,
            cost: match is_point {
                true if is_constant => cost::POINT,
                true if self.remembers_rows(source, entry) => cost::POINT_REMEMBERED,
                true => cost::POINT_OF_JOIN,
                false => ranges_cost,
            },
            once: 0.0,
            rows,
            selectivity,
            ordered: order.is_some(),
        }
    }

    /// Whether an execution remembers the rows that lookups have found in a source.
    fn remembers_rows(&self, source: usize, entry: &TableEntry) -> bool {
        let is_small = |numbers: &Numbers| numbers.rows <= cost::REMEMBERED_ROWS_MAX;
        self.lock == LockMode::None && self.numbers(source, entry).is_ok_and(is_small)
    }

    /// Positions of a source's columns.
    pub(super) fn columns_of(&self, source: usize) -> Range<usize> {
        let source = &self.sources[source];
        source.first..source.first + source.width
    }

    /// What a row lock costs, most of it paid by others.
    fn lock_cost(&self) -> f64 {
        if self.lock == LockMode::None { 0.0 } else { cost::LOCKED_ROW }
    }

    fn scan(
        &self,
        source: usize,
        entry: &TableEntry,
        index: usize,
        numbers: &Numbers,
        usable: &[&Conjunct],
    ) -> Option<Candidate> {
        let covering = self.is_covering(source, entry, index);
        let order = self.order_of(source, entry, index, 0, false);
        if index != 0 && !covering && order.is_none() {
            return None;
        }
        let row_cost = match (index, covering) {
            (0, _) => cost::ROW,
            (_, true) => cost::COVERED_ROW,
            (_, false) => cost::FETCHED_ROW,
        };
        let direction = order.unwrap_or(ScanDirection::Forward);
        Some(Candidate {
            access: Access::Scan { index, direction, covering },
            cost: cost::DESCENT + numbers.rows * (row_cost + self.lock_cost()),
            once: 0.0,
            rows: numbers.rows,
            selectivity: self.selectivity(usable, self.columns_of(source), &[]),
            ordered: order.is_some(),
        })
    }

    /// The direction in which an index gives the wanted order, if it does.
    fn order_of(
        &self,
        source: usize,
        entry: &TableEntry,
        index: usize,
        equal_parts: usize,
        is_point: bool,
    ) -> Option<ScanDirection> {
        let wanted = self.wanted.as_ref()?;
        let first = self.sources[source].first;
        let width = self.sources[source].width;
        ordering::direction(entry.definition(), index, equal_parts, is_point, first, width, wanted)
    }

    /// All rows of something that has no index.
    fn whole(&self, rows: f64, usable: &[&Conjunct], source: usize) -> Candidate {
        Candidate {
            access: Access::Scan { index: 0, direction: ScanDirection::Forward, covering: false },
            cost: rows * cost::ROW,
            once: 0.0,
            rows,
            selectivity: self.selectivity(usable, self.columns_of(source), &[]),
            ordered: false,
        }
    }

    /// The rows of a query in FROM.
    fn derived(&self, query: &QueryPlan, usable: &[&Conjunct], source: usize) -> Candidate {
        let whole = self.whole(query_rows(query).max(1.0), usable, source);
        Candidate { once: query_cost(query) + whole.rows * cost::HASHED_ROW, ..whole }
    }

    /// A hash table of the source's rows, if equalities with bound sources allow it.
    fn hash(
        &self,
        source: usize,
        bound: u64,
        usable: &[&Conjunct],
    ) -> Result<Option<Candidate>, SqlError> {
        let own = 1u64 << source;
        let mut keys = Vec::new();
        let mut share = 1.0;
        for conjunct in usable {
            let ExprKind::Compare { operator: CompareOperator::Equal, rule, left, right } =
                &conjunct.expr.kind
            else {
                continue;
            };
            if conjunct.applies != 0 || !is_hashable(*rule, left, right) {
                continue;
            }
            let (reads_left, reads_right) =
                (self.positions.reads(left).0, self.positions.reads(right).0);
            if reads_left == own && reads_right & own == 0 && reads_right & bound != 0 {
                share *= self.share_of(conjunct);
                keys.push(((**right).clone(), (**left).clone()));
            } else if reads_right == own && reads_left & own == 0 && reads_left & bound != 0 {
                share *= self.share_of(conjunct);
                keys.push(((**left).clone(), (**right).clone()));
            }
        }
        if keys.is_empty() {
            return Ok(None);
        }
        let alone: Vec<&Conjunct> =
            usable.iter().filter(|c| c.sources == own && c.applies == 0).copied().collect();
        let candidates = match &self.sources[source].table {
            TableSource::Base(entry) => self.base(source, 0, &entry.0, &alone)?,
            TableSource::Derived(query) => vec![self.derived(query, &alone, source)],
            TableSource::Virtual { .. } | TableSource::Recursive { .. } => {
                vec![self.whole(cost::DERIVED_ROWS, &alone, source)]
            }
        };
        let Some(build) = candidates.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost)) else {
            return Ok(None);
        };
        let kept = build.rows * build.selectivity;
        let alone: Vec<Conjunct> = alone.into_iter().cloned().collect();
        let rows = kept * share;
        Ok(Some(Candidate {
            access: Access::Hash {
                build: Box::new(build.access),
                build_condition: super::conjuncts::and_all(alone),
                keys,
            },
            cost: cost::PROBE + rows * cost::COVERED_ROW,
            once: build.once + build.cost + kept * cost::HASHED_ROW,
            rows,
            selectivity: 1.0,
            ordered: false,
        }))
    }
}

/// The clustered key of the one row that can pass, if it depends on no other row: no other way
/// of reading can be better.
fn constant_point(facts: &Facts, clustered: &IndexDefinition) -> Option<Vec<Expr>> {
    if clustered.parts.is_empty() || clustered.parts.iter().any(|part| part.prefix.is_some()) {
        return None;
    }
    let found = facts.ranges(clustered)?;
    let key = point_key(&found.ranges)?;
    (key.len() == clustered.parts.len() && reads_nothing(&key)).then_some(key)
}

/// The row with a known clustered key.
fn one_row(key: Vec<Expr>, ordered: bool) -> Candidate {
    Candidate {
        access: Access::Point { key },
        cost: cost::POINT,
        once: 0.0,
        rows: 1.0,
        selectivity: 1.0,
        ordered,
    }
}

/// The key of the one row, if the one range is made of equalities.
fn point_key(ranges: &[RangePlan]) -> Option<Vec<Expr>> {
    let [range] = ranges else { return None };
    if range.lower.is_some() || range.upper.is_some() {
        return None;
    }
    let values = range.equal.iter().map(|value| match value {
        RangeValue::Equal(value) => Some(value.clone()),
        RangeValue::NullSafe(_) | RangeValue::Null => None,
    });
    values.collect()
}

/// Whether values depend on no row.
fn reads_nothing(values: &[Expr]) -> bool {
    let mut free = true;
    values.iter().for_each(|value| value.for_each_column(&mut |_| free = false));
    free
}

/// Whether equal values of both sides have equal hashes: see `Access::Hash`.
fn is_hashable(rule: CompareRule, left: &Expr, right: &Expr) -> bool {
    let (a, b) = (&left.result.column_type, &right.result.column_type);
    match rule {
        CompareRule::Integer | CompareRule::Decimal => a.kind.is_number() && b.kind.is_number(),
        CompareRule::Double => a.kind.is_number() && b.kind.is_number(),
        CompareRule::Text(collation) => {
            a.kind.is_string()
                && b.kind.is_string()
                && a.collation == collation
                && b.collation == collation
        }
        CompareRule::DateTime | CompareRule::Time => {
            a.kind == b.kind && a.kind.is_temporal() && a.kind != TypeKind::Null
        }
        CompareRule::Near(_) | CompareRule::Whole | CompareRule::Year => false,
    }
}
