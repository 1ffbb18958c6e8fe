//! What conditions say of single columns of a table, and the index ranges that follow.

mod near;

use super::column_position;
use super::conjuncts::flatten;
use crate::physical::{RangeEnd, RangePlan, RangeValue};
use engine_api::{ColumnDefinition, IndexDefinition};
use expr::{Builder, CastTarget, CompareOperator, CompareRule, Expr, ExprKind, Test};
use types::{TypeKind, Value};

/// Most ranges of one access.
const RANGES_MAX: usize = 16_384;

/// What one condition says of one column.
#[derive(Clone, Debug)]
enum Constraint {
    /// It is one of these.
    Points(Vec<RangeValue>),
    /// It lies between these.
    Interval { lower: Option<RangeEnd>, upper: Option<RangeEnd> },
}

/// What the conditions of a conjunction say.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Column of the table, constraint.
    columns: Vec<(usize, Constraint)>,
    /// Disjunctions: one of the branches holds.
    alternatives: Vec<Vec<Facts>>,
}

/// Reads facts off conditions on one table.
pub(super) struct FactReader<'a> {
    pub builder: &'a Builder<'a>,
    /// First position of the table's columns.
    pub first: usize,
    /// Its columns.
    pub columns: &'a [ColumnDefinition],
    /// Whether a value is known before the table is read.
    pub is_known: &'a dyn Fn(&Expr) -> bool,
}

/// Ranges of one index that hold all rows that pass the conditions.
#[derive(Clone, Debug)]
pub(super) struct IndexRanges {
    pub ranges: Vec<RangePlan>,
    /// Leading parts that are equal to one value in every range.
    pub equal_parts: usize,
    /// Leading parts used at all.
    pub used_parts: usize,
}

impl FactReader<'_> {
    /// Facts of a conjunction.
    pub(super) fn read<'e>(&self, conjuncts: impl Iterator<Item = &'e Expr>) -> Facts {
        let mut facts = Facts::default();
        for conjunct in conjuncts {
            self.add(conjunct, &mut facts);
        }
        facts
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        let column = column_position(expr)?.checked_sub(self.first)?;
        (column < self.columns.len()).then_some(column)
    }

    /// Whether keys are in another order than the values: numbers and texts of ENUM and SET.
    fn has_other_order(&self, column: usize) -> bool {
        self.columns[column].column_type.members.is_some()
    }

    fn add(&self, condition: &Expr, facts: &mut Facts) {
        match &condition.kind {
            ExprKind::Compare { operator, rule, left, right } => {
                if let Some(column) = self.column(left) {
                    self.add_compare(column, *operator, *rule, right, facts);
                } else if let Some(column) = self.column(right) {
                    self.add_compare(column, operator.swapped(), *rule, left, facts);
                }
            }
            ExprKind::Between { operand, low, high, rule, negated: false } => {
                let Some(column) = self.column(operand) else { return };
                if self.has_other_order(column) {
                    return;
                }
                let margin = self.margin(column, *rule);
                let end = |value, sign| self.end(column, *rule, margin, value, sign);
                let (lower, upper) = (end(low, -1.0), end(high, 1.0));
                if lower.is_some() || upper.is_some() {
                    facts.columns.push((column, Constraint::Interval { lower, upper }));
                }
            }
            ExprKind::In { operand, list, negated: false } => self.add_in(operand, list, facts),
            ExprKind::Is { operand, test: Test::Null, negated } => {
                let Some(column) = self.column(operand) else { return };
                let constraint = if *negated {
                    Constraint::Interval { lower: None, upper: None }
                } else {
                    Constraint::Points(vec![RangeValue::Null])
                };
                facts.columns.push((column, constraint));
            }
            ExprKind::Like { operand, pattern, escape, collation, negated: false } => {
                let Some(column) = self.column(operand) else { return };
                let column_type = &self.columns[column].column_type;
                let usable = column_type.kind.is_string()
                    && column_type.collation == *collation
                    && (self.is_known)(pattern)
                    && begins_plainly(pattern);
                if usable {
                    let end =
                        || RangeEnd::LikePrefix { pattern: (**pattern).clone(), escape: *escape };
                    let (lower, upper) = (Some(end()), Some(end()));
                    facts.columns.push((column, Constraint::Interval { lower, upper }));
                }
            }
            ExprKind::Or(branches) => {
                let branches: Vec<Facts> = branches.iter().map(|b| self.read_branch(b)).collect();
                let says =
                    |branch: &Facts| !branch.columns.is_empty() || !branch.alternatives.is_empty();
                if branches.iter().all(says) {
                    facts.alternatives.push(branches);
                }
            }
            ExprKind::And(inner) => inner.iter().for_each(|inner| self.add(inner, facts)),
            ExprKind::CompareRows { operator: CompareOperator::Equal, rules, left, right } => {
                let (ExprKind::Row(left), ExprKind::Row(right)) = (&left.kind, &right.kind) else {
                    return;
                };
                for ((left, right), rule) in left.iter().zip(right).zip(rules) {
                    if let Some(column) = self.column(left) {
                        self.add_compare(column, CompareOperator::Equal, *rule, right, facts);
                    }
                }
            }
            _ => {}
        }
    }

    fn read_branch(&self, branch: &Expr) -> Facts {
        let mut conjuncts = Vec::new();
        flatten(branch.clone(), &mut conjuncts);
        self.read(conjuncts.iter())
    }

    fn add_compare(
        &self,
        column: usize,
        operator: CompareOperator,
        rule: CompareRule,
        value: &Expr,
        facts: &mut Facts,
    ) {
        let is_point = matches!(operator, CompareOperator::Equal | CompareOperator::NullSafeEqual);
        if !is_point && self.has_other_order(column) {
            return;
        }
        if let Some(margin) = self.margin(column, rule) {
            return self.add_near(column, operator, margin, value, facts);
        }
        let Some(value) = self.value(column, rule, value) else { return };
        let end = |inclusive| Some(RangeEnd::Value { value: value.clone(), inclusive });
        let constraint = match operator {
            CompareOperator::Equal => Constraint::Points(vec![RangeValue::Equal(value)]),
            CompareOperator::NullSafeEqual => Constraint::Points(vec![RangeValue::NullSafe(value)]),
            CompareOperator::NotEqual => return,
            CompareOperator::Less => Constraint::Interval { lower: None, upper: end(false) },
            CompareOperator::LessOrEqual => Constraint::Interval { lower: None, upper: end(true) },
            CompareOperator::Greater => Constraint::Interval { lower: end(false), upper: None },
            CompareOperator::GreaterOrEqual => {
                Constraint::Interval { lower: end(true), upper: None }
            }
        };
        facts.columns.push((column, constraint));
    }

    fn add_in(&self, operand: &Expr, list: &[(Expr, Vec<CompareRule>)], facts: &mut Facts) {
        if let ExprKind::Row(operands) = &operand.kind {
            let mut branches = Vec::with_capacity(list.len());
            for (candidate, rules) in list {
                let ExprKind::Row(values) = &candidate.kind else { return };
                let mut branch = Facts::default();
                for ((operand, value), rule) in operands.iter().zip(values).zip(rules) {
                    if let Some(column) = self.column(operand) {
                        self.add_compare(column, CompareOperator::Equal, *rule, value, &mut branch);
                    }
                }
                if branch.columns.is_empty() {
                    return;
                }
                branches.push(branch);
            }
            facts.alternatives.push(branches);
            return;
        }
        let Some(column) = self.column(operand) else { return };
        let is_near = |(_, rules): &(Expr, Vec<CompareRule>)| {
            rules.first().is_some_and(|rule| self.margin(column, *rule).is_some())
        };
        if list.iter().any(is_near) {
            return self.add_alternatives(column, list, facts);
        }
        let mut points = Vec::with_capacity(list.len());
        for (candidate, rules) in list {
            let Some(rule) = rules.first() else { return };
            match self.value(column, *rule, candidate) {
                Some(value) => points.push(RangeValue::Equal(value)),
                None => return,
            }
        }
        if points.len() <= RANGES_MAX {
            facts.columns.push((column, Constraint::Points(points)));
        }
    }

    /// A value in a form that can be placed in the column's key order, if that order is the
    /// comparison's.
    fn value(&self, column: usize, rule: CompareRule, value: &Expr) -> Option<Expr> {
        if !(self.is_known)(value) {
            return None;
        }
        let column_type = &self.columns[column].column_type;
        if let ExprKind::Converted { value: Some(converted), .. } = &value.kind {
            // What the comparison warns of, the range need not say again.
            return Some(self.builder.computed(converted.clone(), value.result));
        }
        let kind = value.result.column_type.kind;
        let cast = |target| self.builder.cast(value.clone(), target).ok();
        if kind == TypeKind::Null {
            return Some(value.clone());
        }
        match rule {
            CompareRule::Integer if column_type.kind.is_integer() => Some(value.clone()),
            CompareRule::Decimal
                if column_type.kind.is_integer() || column_type.kind == TypeKind::Decimal =>
            {
                if kind.is_string() {
                    cast(CastTarget::Decimal { precision: 65, scale: 30 })
                } else {
                    Some(value.clone())
                }
            }
            CompareRule::Whole if kind.is_number() => Some(value.clone()),
            CompareRule::Double if has_double_order(column_type.kind) => {
                if kind.is_string() || kind == TypeKind::Decimal {
                    cast(CastTarget::Double)
                } else {
                    Some(value.clone())
                }
            }
            CompareRule::Text(collation)
                if column_type.kind.is_string()
                    && column_type.collation == collation
                    && kind.is_string() =>
            {
                Some(value.clone())
            }
            CompareRule::DateTime
                if matches!(
                    column_type.kind,
                    TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp
                ) =>
            {
                match kind {
                    TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => {
                        Some(value.clone())
                    }
                    // A literal that is still text is no date. What is no date in a column is
                    // compared as zero, which no cast gives.
                    kind if kind.is_string() && value.literal().is_none() && is_free(value) => {
                        cast(CastTarget::DateTime(6))
                    }
                    _ => None,
                }
            }
            CompareRule::Time if column_type.kind == TypeKind::Time => match kind {
                TypeKind::Time => Some(value.clone()),
                kind if kind.is_string() && value.literal().is_none() && is_free(value) => {
                    cast(CastTarget::Time(6))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether keys of such columns can be placed among numbers that are compared as DOUBLE.
fn has_double_order(kind: TypeKind) -> bool {
    kind.is_integer() || matches!(kind, TypeKind::Float | TypeKind::Double | TypeKind::Decimal)
}

/// Whether a pattern begins with something other than a wildcard, as far as is known.
fn begins_plainly(pattern: &Expr) -> bool {
    match pattern.literal() {
        Some(Value::Bytes(text)) => !matches!(text.first(), None | Some(b'%' | b'_')),
        Some(_) => false,
        None => true,
    }
}

/// Whether a point depends on the row of another table.
fn reads_columns(points: &[RangeValue]) -> bool {
    let mut reads = false;
    for point in points {
        if let RangeValue::Equal(value) | RangeValue::NullSafe(value) = point {
            value.for_each_column(&mut |_| reads = true);
        }
    }
    reads
}

impl Facts {
    /// The constraint on a column: the fewest points, or all bounds together.
    fn on_column(&self, column: usize) -> Option<Constraint> {
        let mut best: Option<Constraint> = None;
        for (at, constraint) in &self.columns {
            if *at != column {
                continue;
            }
            best = Some(match (best, constraint) {
                (None, constraint) => constraint.clone(),
                (Some(Constraint::Points(a)), Constraint::Points(b))
                    if (b.len(), reads_columns(b)) < (a.len(), reads_columns(&a)) =>
                {
                    constraint.clone()
                }
                (Some(Constraint::Interval { .. }), Constraint::Points(_)) => constraint.clone(),
                (
                    Some(Constraint::Interval { lower, upper }),
                    Constraint::Interval { lower: other_lower, upper: other_upper },
                ) => Constraint::Interval {
                    lower: lower.or_else(|| other_lower.clone()),
                    upper: upper.or_else(|| other_upper.clone()),
                },
                (Some(kept), _) => kept,
            });
        }
        best
    }

    /// The ranges of an index, if the conditions say anything of its first part.
    pub(super) fn ranges(&self, index: &IndexDefinition) -> Option<IndexRanges> {
        let direct = self.direct_ranges(index);
        let mut best = direct;
        for branches in &self.alternatives {
            let Some(union) = self.union_ranges(index, branches) else { continue };
            let better = match &best {
                None => true,
                Some(best) => union.used_parts > best.used_parts,
            };
            if better {
                best = Some(union);
            }
        }
        best
    }

    fn union_ranges(&self, index: &IndexDefinition, branches: &[Facts]) -> Option<IndexRanges> {
        let mut union = IndexRanges { ranges: Vec::new(), equal_parts: 0, used_parts: usize::MAX };
        for branch in branches {
            let mut both = Facts { columns: branch.columns.clone(), alternatives: Vec::new() };
            both.columns.extend(self.columns.iter().cloned());
            both.alternatives.clone_from(&branch.alternatives);
            let ranges = both.ranges(index)?;
            union.used_parts = union.used_parts.min(ranges.used_parts);
            union.ranges.extend(ranges.ranges);
            if union.ranges.len() > RANGES_MAX {
                return None;
            }
        }
        Some(union)
    }

    fn direct_ranges(&self, index: &IndexDefinition) -> Option<IndexRanges> {
        let mut ranges = vec![RangePlan::default()];
        let (mut equal_parts, mut used_parts) = (0, 0);
        for part in &index.parts {
            match self.on_column(part.column) {
                None => break,
                Some(Constraint::Points(points)) => {
                    if ranges.len().saturating_mul(points.len()) > RANGES_MAX {
                        break;
                    }
                    if points.len() == 1 && ranges.len() == 1 && equal_parts == used_parts {
                        equal_parts += 1;
                    }
                    used_parts += 1;
                    ranges = multiply(ranges, &points);
                    if part.prefix.is_some() {
                        break;
                    }
                }
                Some(Constraint::Interval { lower, upper }) => {
                    for range in &mut ranges {
                        range.lower.clone_from(&lower);
                        range.upper.clone_from(&upper);
                        range.not_null = true;
                    }
                    used_parts += 1;
                    break;
                }
            }
        }
        (used_parts > 0).then_some(IndexRanges { ranges, equal_parts, used_parts })
    }
}

fn multiply(ranges: Vec<RangePlan>, points: &[RangeValue]) -> Vec<RangePlan> {
    let mut product = Vec::with_capacity(ranges.len() * points.len());
    for range in ranges {
        if let [point] = points {
            let mut range = range;
            range.equal.push(point.clone());
            product.push(range);
            continue;
        }
        for point in points {
            let mut next = range.clone();
            next.equal.push(point.clone());
            product.push(next);
        }
    }
    product
}
/// Whether a value depends on no row.
fn is_free(value: &Expr) -> bool {
    let mut free = true;
    value.for_each_column(&mut |_| free = false);
    free
}
