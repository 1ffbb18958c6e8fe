//! What conditions say of single columns of a table, and the index ranges that follow.

use super::column_position;
use super::conjuncts::flatten;
use crate::physical::{RangeEnd, RangePlan, RangeValue};
use engine_api::{ColumnDefinition, IndexDefinition};
use expr::{
    ArithmeticOperator, Builder, CastTarget, CompareOperator, CompareRule, Expr, ExprKind,
    ResultType, Test,
};
use types::{ColumnType, TypeKind, Value};

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
                let end = |value| {
                    self.value(column, *rule, value)
                        .map(|value| RangeEnd::Value { value, inclusive: true })
                };
                let (lower, upper) = (end(low), end(high));
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
        if let CompareRule::Near(digits) = rule {
            return self.add_near(column, operator, digits, value, facts);
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

    /// Values so near that they are equal lie in a range around this one. It is twice as wide as
    /// the comparison allows, which tests its rows again. Of a value from another table it would
    /// be a range for each row, and no fact is made.
    fn add_near(
        &self,
        column: usize,
        operator: CompareOperator,
        digits: u8,
        value: &Expr,
        facts: &mut Facts,
    ) {
        let mut is_of_row = false;
        value.for_each_column(&mut |_| is_of_row = true);
        let Some(value) = self.value(column, CompareRule::Double, value) else { return };
        if is_of_row {
            return;
        }
        let margin = 10f64.powi(-i32::from(digits));
        let beside = |operator, sign: f64| {
            let value = match value.literal() {
                Some(Value::Int(number)) => Ok(self.double(*number as f64 + sign * margin)),
                Some(Value::Double(number)) => Ok(self.double(*number + sign * margin)),
                Some(Value::Decimal(number)) => Ok(self.double(number.to_f64() + sign * margin)),
                _ => self.builder.arithmetic(operator, value.clone(), self.double(margin)),
            };
            value.ok().map(|value| RangeEnd::Value { value, inclusive: true })
        };
        use ArithmeticOperator::{Add, Subtract};
        let (lower, upper) = match operator {
            CompareOperator::NullSafeEqual if matches!(value.literal(), Some(Value::Null)) => {
                let points = vec![RangeValue::NullSafe(value)];
                return facts.columns.push((column, Constraint::Points(points)));
            }
            // What is not known yet may be NULL.
            CompareOperator::NullSafeEqual if value.literal().is_none() => return,
            CompareOperator::Equal | CompareOperator::NullSafeEqual => {
                (beside(Subtract, -1.0), beside(Add, 1.0))
            }
            CompareOperator::Less | CompareOperator::LessOrEqual => (None, beside(Add, 1.0)),
            CompareOperator::Greater | CompareOperator::GreaterOrEqual => {
                (beside(Subtract, -1.0), None)
            }
            CompareOperator::NotEqual => return,
        };
        if lower.is_some() || upper.is_some() {
            facts.columns.push((column, Constraint::Interval { lower, upper }));
        }
    }

    fn double(&self, value: f64) -> Expr {
        self.builder.computed(Value::Double(value), ResultType::double(false))
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
            CompareRule::Double if double_is_exact(column_type) => {
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

/// Whether comparing the column as DOUBLE keeps its values apart.
fn double_is_exact(column: &ColumnType) -> bool {
    match column.kind {
        TypeKind::Float | TypeKind::Double => true,
        TypeKind::Decimal => u32::from(column.precision) <= f64::DIGITS,
        kind => kind.is_integer() && kind != TypeKind::BigInt,
    }
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
