//! Kernels that give truth values.

use super::number::Kernel;
use super::text::TextTest;
use super::{Batch, Compile, Overflow, Shape};
use crate::compare::CompareRule;
use crate::context::EvalContext;
use crate::expression::{CompareOperator, Expr, ExprKind, Test};
use types::row::{Lane, Numbers};

/// SQL's truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// Not so.
    False,
    /// So.
    True,
    /// NULL.
    Unknown,
}

impl From<bool> for Truth {
    #[inline]
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Compare {
        operator: CompareOperator,
        left: Kernel,
        right: Kernel,
    },
    /// Both ends belong to it.
    Between {
        operand: Kernel,
        low: i64,
        high: i64,
        negated: bool,
    },
    /// `list` is sorted. `unknown`: it has a NULL, so nothing is surely not in it.
    In {
        operand: Kernel,
        list: Vec<i64>,
        unknown: bool,
        negated: bool,
    },
    IsNull {
        position: usize,
        /// Its numbers tell.
        has_lane: bool,
        negated: bool,
    },
    Text(TextTest),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

/// See the head of the room.
#[derive(Clone, Debug)]
pub struct Condition {
    kind: Kind,
    numbers: Numbers,
    truths: Vec<Truth>,
}

/// Both sides as numbers that are ordered as the rule orders the values.
fn aligned(rule: CompareRule, a: Kernel, b: Kernel) -> Option<(Kernel, Kernel)> {
    let is_integer = |kernel: &Kernel| matches!(kernel.lane(), Lane::Int | Lane::UInt);
    let null = |kernel: &Kernel| kernel.constant() == Some(None);
    if null(&a) || null(&b) {
        return None;
    }
    match (rule, a.lane(), b.lane()) {
        (CompareRule::Integer, ..) => (is_integer(&a) && is_integer(&b)).then_some((a, b)),
        (CompareRule::Decimal, ..) => {
            let scale = a.scale()?.max(b.scale()?);
            Some((a.rescaled(scale)?, b.rescaled(scale)?))
        }
        (CompareRule::DateTime, Lane::Date, Lane::Date)
        | (CompareRule::DateTime, Lane::DateTime, Lane::DateTime)
        | (CompareRule::DateTime, Lane::Timestamp, Lane::Timestamp)
        | (CompareRule::Time, Lane::Time, Lane::Time) => Some((a, b)),
        (CompareRule::DateTime, Lane::Date, Lane::DateTime) => Some((a.at_midnight(), b)),
        (CompareRule::DateTime, Lane::DateTime, Lane::Date) => Some((a, b.at_midnight())),
        _ => None,
    }
}

impl Condition {
    fn new(kind: Kind) -> Self {
        Self { kind, numbers: Numbers::default(), truths: Vec::new() }
    }

    /// The leading conjuncts of a condition that have kernels, and the position of the first that
    /// has none. `conjuncts` are those of an AND, or the condition itself.
    pub fn leading(
        conjuncts: &[Expr],
        context: &EvalContext,
        shape: &dyn Shape,
    ) -> (Vec<Self>, usize) {
        let compile = Compile { context, shape };
        let found: Vec<Self> =
            conjuncts.iter().map_while(|expr| Self::compile_all(expr, compile)).collect();
        let length = found.len();
        (found, length)
    }

    /// A kernel for the whole of a condition.
    pub(super) fn compile_all(expr: &Expr, compile: Compile<'_>) -> Option<Self> {
        Self::compile(expr, compile).map(Self::new)
    }

    fn compile(expr: &Expr, compile: Compile<'_>) -> Option<Kind> {
        let number = |expr: &Expr| Kernel::compile(expr, compile, false);
        match &expr.kind {
            ExprKind::Compare { operator, rule, left, right } => {
                if *operator == CompareOperator::NullSafeEqual {
                    return None;
                }
                if let CompareRule::Text(collation) = rule {
                    return TextTest::compare(*operator, *collation, left, right, compile)
                        .map(Kind::Text);
                }
                // Operators of comparison see the digits that a DECIMAL shows.
                let shown = |expr: &Expr| {
                    let (kernel, scale) = (number(expr)?, expr.result.column_type.scale);
                    match kernel.lane() {
                        Lane::Decimal { scale: own }
                            if *rule == CompareRule::Decimal && own > scale =>
                        {
                            kernel.rescaled(scale)
                        }
                        _ => Some(kernel),
                    }
                };
                let (left, right) = aligned(*rule, shown(left)?, shown(right)?)?;
                if left.constant().is_some() {
                    let operator = operator.swapped();
                    return Some(Kind::Compare { operator, left: right, right: left });
                }
                Some(Kind::Compare { operator: *operator, left, right })
            }
            ExprKind::Between { operand, low, high, rule, negated } => {
                let (own, low) = aligned(*rule, number(operand)?, number(low)?)?;
                let (own, high) = aligned(*rule, own, number(high)?)?;
                // Aligning with the high end may have changed what the low end is compared with.
                let (own, low) = aligned(*rule, own, low)?;
                let (low, high) = (low.constant()??, high.constant()??);
                Some(Kind::Between { operand: own, low, high, negated: *negated })
            }
            ExprKind::In { operand, list, negated } => {
                if let Some(test) = TextTest::in_list(operand, list, *negated, compile) {
                    return Some(Kind::Text(test));
                }
                Self::in_list(number(operand)?, list, *negated, compile)
            }
            ExprKind::Is { operand, test: Test::Null, negated } => match &operand.kind {
                ExprKind::Column { position, .. } if compile.shape.holds(*position) => {
                    let has_lane = compile.shape.lane(*position).is_some();
                    Some(Kind::IsNull { position: *position, has_lane, negated: *negated })
                }
                _ => None,
            },
            ExprKind::Like { operand, pattern, escape, collation, negated } => {
                let test =
                    TextTest::like(operand, pattern, *escape, *collation, *negated, compile)?;
                Some(Kind::Text(test))
            }
            ExprKind::And(list) => Some(Kind::And(Self::list(list, compile)?)),
            ExprKind::Or(list) => Some(Kind::Or(Self::list(list, compile)?)),
            ExprKind::Not(operand) => {
                Some(Kind::Not(Box::new(Self::compile_all(operand, compile)?)))
            }
            _ => None,
        }
    }

    fn list(list: &[Expr], compile: Compile<'_>) -> Option<Vec<Self>> {
        list.iter().map(|expr| Self::compile_all(expr, compile)).collect()
    }

    fn in_list(
        operand: Kernel,
        list: &[(Expr, Vec<CompareRule>)],
        negated: bool,
        compile: Compile<'_>,
    ) -> Option<Kind> {
        let mut own = operand;
        let mut candidates = Vec::with_capacity(list.len());
        let mut unknown = false;
        // The operand takes the shape that all candidates need; then these take its shape.
        for (candidate, rules) in list {
            let kernel = Kernel::compile(candidate, compile, false)?;
            match kernel.constant()? {
                None => unknown = true,
                Some(_) => {
                    let [rule] = rules.as_slice() else { return None };
                    let (shaped, kernel) = aligned(*rule, own, kernel)?;
                    own = shaped;
                    candidates.push((*rule, kernel));
                }
            }
        }
        let lane = own.lane();
        let mut numbers = Vec::with_capacity(candidates.len());
        for (rule, candidate) in candidates {
            let (shaped, candidate) = aligned(rule, own, candidate)?;
            own = shaped;
            numbers.push(candidate.constant()??);
        }
        if own.lane() != lane {
            return None;
        }
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return None;
        }
        Some(Kind::In { operand: own, list: numbers, unknown, negated })
    }

    /// The truth of the condition for every selected row.
    pub fn eval(
        &mut self,
        batch: &dyn Batch,
        selected: &[u32],
        out: &mut Vec<Truth>,
    ) -> Result<(), Overflow> {
        out.clear();
        let numbers = &mut self.numbers;
        match &mut self.kind {
            Kind::Compare { operator, left, right } => {
                left.eval(batch, selected, numbers)?;
                if let Some(Some(constant)) = right.constant() {
                    compare_constant(*operator, &numbers.values, constant, out);
                } else {
                    let mut other = Numbers::default();
                    right.eval(batch, selected, &mut other)?;
                    let pairs = numbers.values.iter().zip(&other.values);
                    out.extend(pairs.map(|(a, b)| Truth::from(operator.accepts(a.cmp(b)))));
                    put_unknown(&other.nulls, out);
                }
                put_unknown(&numbers.nulls, out);
            }
            Kind::Between { operand, low, high, negated } => {
                operand.eval(batch, selected, numbers)?;
                let (low, high, negated) = (*low, *high, *negated);
                let inside = |v: &i64| Truth::from((low <= *v && *v <= high) != negated);
                out.extend(numbers.values.iter().map(inside));
                put_unknown(&numbers.nulls, out);
            }
            Kind::In { operand, list, unknown, negated } => {
                operand.eval(batch, selected, numbers)?;
                in_numbers(list, *unknown, *negated, &numbers.values, out);
                put_unknown(&numbers.nulls, out);
            }
            Kind::IsNull { position, has_lane: true, negated } => {
                batch.numbers(*position, selected, numbers);
                let null = |at: usize| numbers.is_null(at) != *negated;
                out.extend((0..selected.len()).map(|at| Truth::from(null(at))));
            }
            Kind::IsNull { position, has_lane: false, negated } => {
                let null = |row: &u32| batch.value(*position, *row).is_null() != *negated;
                out.extend(selected.iter().map(|row| Truth::from(null(row))));
            }
            Kind::Text(test) => test.eval(batch, selected, out),
            Kind::And(list) => combine(list, Truth::True, batch, selected, &mut self.truths, out)?,
            Kind::Or(list) => combine(list, Truth::False, batch, selected, &mut self.truths, out)?,
            Kind::Not(operand) => {
                operand.eval(batch, selected, out)?;
                for truth in out {
                    *truth = match *truth {
                        Truth::False => Truth::True,
                        Truth::True => Truth::False,
                        Truth::Unknown => Truth::Unknown,
                    };
                }
            }
        }
        Ok(())
    }

    /// Takes the rows out of the selection for which the condition is false; those for which it
    /// is unknown too, unless they are to be kept. After an overflow the selection is as it was.
    pub fn filter(
        &mut self,
        batch: &dyn Batch,
        selected: &mut Vec<u32>,
        keep_unknown: bool,
        truths: &mut Vec<Truth>,
    ) -> Result<(), Overflow> {
        self.eval(batch, selected, truths)?;
        let mut kept = 0;
        for at in 0..selected.len() {
            selected[kept] = selected[at];
            let keep = truths[at] == Truth::True || keep_unknown && truths[at] == Truth::Unknown;
            kept += usize::from(keep);
        }
        selected.truncate(kept);
        Ok(())
    }
}

/// AND (`neutral` is true) or OR (it is false) of the conditions.
fn combine(
    list: &mut [Condition],
    neutral: Truth,
    batch: &dyn Batch,
    selected: &[u32],
    truths: &mut Vec<Truth>,
    out: &mut Vec<Truth>,
) -> Result<(), Overflow> {
    let decisive = if neutral == Truth::True { Truth::False } else { Truth::True };
    out.resize(selected.len(), neutral);
    for condition in list {
        condition.eval(batch, selected, truths)?;
        for (all, one) in out.iter_mut().zip(&*truths) {
            *all = match (*all, *one) {
                (all, one) if all == decisive || one == decisive => decisive,
                (all, one) if all == neutral && one == neutral => neutral,
                _ => Truth::Unknown,
            };
        }
    }
    Ok(())
}

fn put_unknown(nulls: &[bool], out: &mut [Truth]) {
    for (truth, null) in out.iter_mut().zip(nulls) {
        if *null {
            *truth = Truth::Unknown;
        }
    }
}

/// One loop for each operator.
fn compare_constant(
    operator: CompareOperator,
    values: &[i64],
    constant: i64,
    out: &mut Vec<Truth>,
) {
    macro_rules! every {
        ($test:expr) => {
            out.extend(values.iter().map(|value| Truth::from($test(*value))))
        };
    }
    match operator {
        CompareOperator::Equal | CompareOperator::NullSafeEqual => every!(|v| v == constant),
        CompareOperator::NotEqual => every!(|v| v != constant),
        CompareOperator::Less => every!(|v| v < constant),
        CompareOperator::LessOrEqual => every!(|v| v <= constant),
        CompareOperator::Greater => every!(|v| v > constant),
        CompareOperator::GreaterOrEqual => every!(|v| v >= constant),
    }
}

/// Up to so many candidates are looked at one after the other.
const FEW: usize = 16;

fn in_numbers(list: &[i64], unknown: bool, negated: bool, values: &[i64], out: &mut Vec<Truth>) {
    let found = Truth::from(!negated);
    let missing = if unknown { Truth::Unknown } else { Truth::from(negated) };
    let (low, high) = (list.first().copied(), list.last().copied());
    out.extend(values.iter().map(|value| {
        let is_in = if list.len() <= FEW {
            list.iter().fold(false, |any, candidate| any | (candidate == value))
        } else {
            low <= Some(*value) && Some(*value) <= high && list.binary_search(value).is_ok()
        };
        if is_in { found } else { missing }
    }));
}
