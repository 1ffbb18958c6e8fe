//! Comparisons, BETWEEN, IN, AND, OR and the choice of CASE, evaluated.

use crate::coerce;
use crate::compare::{CompareRule, compare_values};
use crate::context::{Columns, EvalContext};
use crate::expression::{CompareOperator, Expr, ExprKind};
use crate::functions::read_number::{self, is_moment_text};
use types::{SqlError, ValueRef};

/// `left operator right`.
#[inline]
pub(crate) fn compare(
    operator: CompareOperator,
    rule: CompareRule,
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let null_safe = operator == CompareOperator::NullSafeEqual;
    if rule.is_temporal() {
        return compare_moments(operator, rule, left, right, context, row);
    }
    let a = left.operand(context, row)?;
    if a.is_null() && !null_safe {
        return Ok(None);
    }
    let b = right.operand(context, row)?;
    if let (CompareRule::Integer, ValueRef::Int(a), ValueRef::Int(b)) = (rule, a, b) {
        return Ok(Some(operator.accepts(a.cmp(&b))));
    }
    if null_safe && (a.is_null() || b.is_null()) {
        return Ok(Some(a.is_null() && b.is_null()));
    }
    let (a, b) = match rule {
        CompareRule::Decimal => (as_shown(a, left), as_shown(b, right)),
        _ => (a, b),
    };
    let order = compare_values(context, rule, (a, &left.result), (b, &right.result))?;
    Ok(order.map(|order| operator.accepts(order)))
}

/// A DECIMAL with the digits that its type shows: operators of comparison see no more.
#[inline]
pub(crate) fn as_shown<'a>(value: ValueRef<'a>, of: &Expr) -> ValueRef<'a> {
    match value {
        ValueRef::Decimal(exact)
            if exact.scale() > of.result.column_type.scale && !of.result.is_variable =>
        {
            ValueRef::Decimal(exact.with_scale(of.result.column_type.scale))
        }
        _ => value,
    }
}

/// The same for dates and times: each side is converted as it is read.
fn compare_moments(
    operator: CompareOperator,
    rule: CompareRule,
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let null_safe = operator == CompareOperator::NullSafeEqual;
    let a = crate::compared::compared(left, rule, context, row)?;
    if a.is_null() && !null_safe {
        return Ok(None);
    }
    let b = crate::compared::compared(right, rule, context, row)?;
    if null_safe && (a.is_null() || b.is_null()) {
        return Ok(Some(a.is_null() && b.is_null()));
    }
    let order = compare_values(context, rule, (a, &left.result), (b, &right.result))?;
    Ok(order.map(|order| operator.accepts(order)))
}

/// An operand as a rule compares it.
pub(crate) fn ruled<'a>(
    expr: &'a Expr,
    rule: CompareRule,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    if rule.is_temporal() {
        return crate::compared::compared(expr, rule, context, row);
    }
    expr.operand(context, row)
}

/// An operand that is compared with several others: its value as it is, and as dates and times,
/// each computed when it is first asked for.
struct Operand<'a> {
    expr: &'a Expr,
    plain: Option<ValueRef<'a>>,
    moment: Option<(CompareRule, ValueRef<'a>)>,
}

impl<'a> Operand<'a> {
    fn new(expr: &'a Expr) -> Self {
        Self { expr, plain: None, moment: None }
    }

    fn by(
        &mut self,
        rule: CompareRule,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        if rule.is_temporal() {
            if let Some((known, value)) = self.moment
                && known == rule
            {
                return Ok(value);
            }
            let value = crate::compared::compared(self.expr, rule, context, row)?;
            self.moment = Some((rule, value));
            return Ok(value);
        }
        if is_moment_text(self.expr) && !matches!(rule, CompareRule::Text(_)) {
            return read_number::value(self.expr, context, row);
        }
        if let Some(value) = self.plain {
            return Ok(value);
        }
        let value = self.expr.eval(context, row)?;
        self.plain = Some(value);
        Ok(value)
    }
}

/// Stops at the first false; NULL only if nothing is false.
pub(crate) fn all(
    list: &[Expr],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(true);
    for operand in list {
        match operand.eval_bool(context, row)? {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Stops at the first true; NULL only if nothing is true.
pub(crate) fn any(
    list: &[Expr],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(false);
    for operand in list {
        match operand.eval_bool(context, row)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

pub(crate) fn between(
    operand: &Expr,
    low: &Expr,
    high: &Expr,
    rule: CompareRule,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let value = ruled(operand, rule, context, row)?;
    if value.is_null() {
        return Ok(None);
    }
    let (a, b) = (ruled(low, rule, context, row)?, ruled(high, rule, context, row)?);
    // Text is converted once for both comparisons.
    let value = match (rule, value) {
        (CompareRule::Decimal, ValueRef::Bytes(_)) => {
            ValueRef::Decimal(coerce::to_decimal(context, value, &operand.result)?)
        }
        (CompareRule::Double, ValueRef::Bytes(_)) => {
            ValueRef::Double(coerce::to_double(context, value, &operand.result)?)
        }
        _ => value,
    };
    if let (CompareRule::Integer, ValueRef::Int(value), ValueRef::Int(a), ValueRef::Int(b)) =
        (rule, value, a, b)
    {
        return Ok(Some(a <= value && value <= b));
    }
    let (value, a, b) = ((value, &operand.result), (a, &low.result), (b, &high.result));
    let above = compare_values(context, rule, value, a)?.map(|order| order.is_ge());
    let below = compare_values(context, rule, value, b)?.map(|order| order.is_le());
    Ok(match (above, below) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

pub(crate) fn in_list(
    operand: &Expr,
    list: &[(Expr, Vec<CompareRule>)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    if matches!(operand.kind, ExprKind::Row(_)) {
        return in_rows(operand, list, context, row);
    }
    let mut unknown = false;
    let mut own = Operand::new(operand);
    for (position, (candidate, rules)) in list.iter().enumerate() {
        let rule = rules[0];
        let value = own.by(rule, context, row)?;
        if value.is_null() {
            warn_of_rest(list, position, context, row)?;
            return Ok(None);
        }
        let other = ruled(candidate, rule, context, row)?;
        let order =
            compare_values(context, rule, (value, &operand.result), (other, &candidate.result))?;
        match order {
            Some(order) if order.is_eq() => {
                warn_of_rest(list, position + 1, context, row)?;
                return Ok(Some(true));
            }
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

/// A row in a list of rows: all of its values are converted first, NULL or not, then those of each
/// candidate until one differs. The columns are compared alike in all candidates.
fn in_rows(
    operand: &Expr,
    list: &[(Expr, Vec<CompareRule>)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let Some((_, rules)) = list.first() else { return Ok(Some(false)) };
    let own = elements(operand);
    warn_of_row(operand, context, row)?;
    for (candidate, _) in list {
        warn_of_row(candidate, context, row)?;
    }
    warn_of_sorted(list, context, row)?;
    let values = context.arena.alloc_slice_fill_copy(own.len(), ValueRef::Null);
    for ((value, element), rule) in values.iter_mut().zip(own).zip(rules) {
        *value = converted(element, *rule, context, row)?;
    }
    let mut unknown = false;
    for (candidate, rules) in list {
        let mut equal = Some(true);
        let pairs = own.iter().zip(values.iter()).zip(elements(candidate)).zip(rules);
        for (((element, &value), other), rule) in pairs {
            let side = (converted(other, *rule, context, row)?, &other.result);
            let order = compare_values(context, *rule, (value, &element.result), side)?;
            match order {
                None => equal = None,
                Some(order) if order.is_eq() => {}
                Some(_) => {
                    equal = Some(false);
                    break;
                }
            }
        }
        match equal {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

/// Rows of constants that are not NULL are sorted, and for that converted, before the first
/// comparison.
fn warn_of_sorted(
    list: &[(Expr, Vec<CompareRule>)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<(), SqlError> {
    let converted = |element: &&Expr| matches!(element.kind, ExprKind::Converted { .. });
    let mut rows = list.iter().map(|(candidate, _)| candidate);
    if !rows.clone().flat_map(elements).any(|element| converted(&element))
        || !rows.all(|candidate| candidate.is_constant() && !candidate.result.nullable)
    {
        return Ok(());
    }
    let all = list.iter().flat_map(|(candidate, _)| elements(candidate));
    all.filter(converted).try_for_each(|element| element.eval(context, row).map(|_| ()))
}

/// An operand converted to what a rule compares; NULL stays NULL.
fn converted<'a>(
    expr: &'a Expr,
    rule: CompareRule,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let value = ruled(expr, rule, context, row)?;
    Ok(match (rule, value) {
        (CompareRule::Decimal, ValueRef::Bytes(_)) => {
            ValueRef::Decimal(coerce::to_decimal(context, value, &expr.result)?)
        }
        (CompareRule::Decimal, _) => as_shown(value, expr),
        (CompareRule::Double, ValueRef::Bytes(_)) => {
            ValueRef::Double(coerce::to_double(context, value, &expr.result)?)
        }
        _ => value,
    })
}

/// Constants of an IN list that are all compared in one way are converted whether or not a row
/// comes to them: those that may warn stand first (see [`may_warn`]).
#[inline]
fn warn_of_rest(
    list: &[(Expr, Vec<CompareRule>)],
    from: usize,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<(), SqlError> {
    match list.get(from) {
        Some(first) if may_warn(first) && are_alike(list) => {
            let rest = list[from..].iter().take_while(|it| may_warn(it));
            rest.into_iter().try_for_each(|(candidate, rules)| {
                let value = ruled(candidate, rules[0], context, row)?;
                rules[0].warn_of(context, (value, &candidate.result))
            })
        }
        _ => Ok(()),
    }
}

/// Whether the evaluation of a constant may warn; a number may where it is to be a date.
fn may_warn((candidate, rules): &(Expr, Vec<CompareRule>)) -> bool {
    let is_number = candidate.result.column_type.kind.is_number();
    !matches!(candidate.kind, ExprKind::Literal(_) | ExprKind::Parameter(_))
        || (is_number && rules.iter().any(|rule| rule.is_temporal()))
}

/// Whether a list has only constants, which are compared in one way.
fn are_alike(list: &[(Expr, Vec<CompareRule>)]) -> bool {
    list.iter().all(|(candidate, rules)| *rules == list[0].1 && candidate.is_constant())
}

/// Puts constants that may warn before the others, in a list of constants that are compared in one
/// way.
pub(crate) fn put_warning_first(list: &mut [(Expr, Vec<CompareRule>)]) {
    if list.iter().any(may_warn) && are_alike(list) {
        list.sort_by_key(|candidate| !may_warn(candidate));
    }
}

/// The elements of a row constructor.
fn elements(expr: &Expr) -> &[Expr] {
    match &expr.kind {
        ExprKind::Row(list) => list,
        _ => std::slice::from_ref(expr),
    }
}

/// The constants with which a row begins, up to a NULL, are evaluated whether or not a comparison
/// comes to them: while the statement is prepared, so that their warnings are no errors.
pub(crate) fn warn_of_constants(
    elements: &[Expr],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<(), SqlError> {
    let are_errors = context.warnings_are_errors.replace(false);
    let evaluated = evaluate_constants(elements, context, row);
    context.warnings_are_errors.set(are_errors);
    evaluated
}

fn evaluate_constants(
    elements: &[Expr],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<(), SqlError> {
    for element in elements {
        match &element.kind {
            ExprKind::Literal(literal) if literal.value.is_null() => break,
            ExprKind::Literal(_) | ExprKind::Parameter(_) | ExprKind::Converted { .. } => {}
            ExprKind::Row(inner) => evaluate_constants(inner, context, row)?,
            _ if element.is_constant() => {
                if element.eval(context, row)?.is_null() {
                    break;
                }
            }
            _ => break,
        }
    }
    Ok(())
}

#[inline]
fn warn_of_row(expr: &Expr, context: &EvalContext, row: &dyn Columns) -> Result<(), SqlError> {
    warn_of_constants(elements(expr), context, row)
}

fn rows_equal(
    rules: &[CompareRule],
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let mut result = Some(true);
    for ((a, b), rule) in elements(left).iter().zip(elements(right)).zip(rules) {
        match compare(CompareOperator::Equal, *rule, a, b, context, row)? {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => result = None,
        }
    }
    Ok(result)
}

pub(crate) fn compare_rows(
    operator: CompareOperator,
    rules: &[CompareRule],
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    warn_of_row(left, context, row)?;
    warn_of_row(right, context, row)?;
    match operator {
        CompareOperator::Equal => return rows_equal(rules, left, right, context, row),
        CompareOperator::NotEqual => {
            return Ok(rows_equal(rules, left, right, context, row)?.map(|equal| !equal));
        }
        CompareOperator::NullSafeEqual => {
            for ((a, b), rule) in elements(left).iter().zip(elements(right)).zip(rules) {
                if compare(operator, *rule, a, b, context, row)? != Some(true) {
                    return Ok(Some(false));
                }
            }
            return Ok(Some(true));
        }
        _ => {}
    }
    for ((a, b), rule) in elements(left).iter().zip(elements(right)).zip(rules) {
        let x = (ruled(a, *rule, context, row)?, &a.result);
        let y = (ruled(b, *rule, context, row)?, &b.result);
        match compare_values(context, *rule, x, y)? {
            None => return Ok(None),
            Some(order) if order.is_ne() => return Ok(Some(operator.accepts(order))),
            Some(_) => {}
        }
    }
    Ok(Some(operator.accepts(std::cmp::Ordering::Equal)))
}

pub(crate) fn choose_searched<'a>(
    branches: &'a [(Expr, Expr)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<&'a Expr>, SqlError> {
    for (when, then) in branches {
        if when.truth(context, row)? == Some(true) {
            return Ok(Some(then));
        }
    }
    Ok(None)
}

pub(crate) fn choose_simple<'a>(
    operand: &'a Expr,
    rules: &[CompareRule],
    branches: &'a [(Expr, Expr)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<&'a Expr>, SqlError> {
    let mut own = Operand::new(operand);
    for ((when, then), rule) in branches.iter().zip(rules) {
        let value = own.by(*rule, context, row)?;
        if value.is_null() {
            return Ok(None);
        }
        let other = ruled(when, *rule, context, row)?;
        let order =
            compare_values(context, *rule, (value, &operand.result), (other, &when.result))?;
        if order.is_some_and(std::cmp::Ordering::is_eq) {
            return Ok(Some(then));
        }
    }
    Ok(None)
}
