//! Evaluation.

use crate::compare::{CompareRule, compare_values};
use crate::context::{Columns, EvalContext, detached};
use crate::expression::{CompareOperator, Expr, ExprKind, Test};
use crate::functions::Frame;
use crate::{arithmetic, coerce, functions};
use types::{SqlError, Value, ValueRef};

/// SQL's truth value as a value.
fn truth<'a>(value: Option<bool>) -> ValueRef<'a> {
    value.map_or(ValueRef::Null, |value| ValueRef::Int(value.into()))
}

impl Expr {
    /// Its value for a row. A DECIMAL may carry more digits than its type shows; see
    /// [`Expr::eval_result`].
    pub fn eval<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        match &self.kind {
            ExprKind::Column { position, .. } => Ok(row.column(*position)),
            ExprKind::Literal(literal) => Ok(literal.value.as_ref()),
            ExprKind::Parameter(index) => {
                Ok(context.parameters.get(*index).map_or(ValueRef::Null, Value::as_ref))
            }
            ExprKind::Arithmetic { operator, left, right } => {
                arithmetic::eval(self, *operator, left, right, context, row)
            }
            ExprKind::Call { function, arguments } => {
                function.eval(Frame { expr: self, arguments, context, row })
            }
            ExprKind::UnitCall { function, arguments, .. } => {
                function.eval(Frame { expr: self, arguments, context, row })
            }
            ExprKind::Case { operand, branches, otherwise } => {
                let chosen = match operand {
                    None => choose_searched(branches, context, row)?,
                    Some((operand, rules)) => {
                        choose_simple(operand, rules, branches, context, row)?
                    }
                };
                match chosen.or(otherwise.as_deref()) {
                    Some(expr) => functions::control::converted(self, expr, context, row),
                    None => Ok(ValueRef::Null),
                }
            }
            ExprKind::DateArithmetic { base, amount, unit, subtract } => {
                functions::temporal_units::add(self, base, amount, *unit, *subtract, context, row)
            }
            ExprKind::Cast { operand, pads, .. } => {
                functions::cast::eval(self, operand, *pads, context, row)
            }
            ExprKind::ConvertText(operand) => {
                functions::cast::convert_text(self, operand, context, row)
            }
            ExprKind::UserVariable(name) => Ok(read_variable(name, context)),
            ExprKind::Assign(name, value) => {
                let result = value.eval_result(context, row)?;
                let zone = context.settings.time_zone;
                let variable = crate::builder::variable_of(result, &value.result, zone);
                context.variables.borrow_mut().insert(name.clone(), variable);
                if value.result.column_type.kind.is_temporal() {
                    return Ok(match result {
                        ValueRef::Null => ValueRef::Null,
                        _ => ValueRef::Bytes(coerce::to_text(context, result, &value.result)),
                    });
                }
                Ok(result)
            }
            ExprKind::Converted { original, value: Some(value), rule } => {
                if context.is_first_evaluation(original) {
                    rule.convert(context, original)?;
                }
                Ok(value.as_ref())
            }
            ExprKind::Converted { original, value: None, rule } => {
                context.converted(original, |original| rule.convert(context, original))
            }
            ExprKind::External(external) => external.eval(context, row),
            _ => Ok(truth(self.eval_bool(context, row)?)),
        }
    }

    /// Its value to look a key up with: a constant that was converted with a loss does not
    /// warn here, but where the condition is checked on the rows found.
    pub fn key_value<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        match &self.kind {
            ExprKind::Converted { value: Some(value), .. } => Ok(value.as_ref()),
            ExprKind::Converted { original, value: None, rule } => {
                rule.convert_quietly(context, original)
            }
            _ => self.eval(context, row),
        }
    }

    /// Its value, with a short way for what most operands are.
    #[inline(always)]
    pub(crate) fn operand<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        match &self.kind {
            ExprKind::Column { position, .. } => Ok(row.column(*position)),
            ExprKind::Literal(literal) => Ok(literal.value.as_ref()),
            _ => self.eval(context, row),
        }
    }

    /// Its value with the digits that its type fixes, as it is sent to the client or stored.
    pub fn eval_result<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        Ok(match self.operand(context, row)? {
            ValueRef::Decimal(value) if !self.result.is_variable => {
                ValueRef::Decimal(value.with_scale(self.result.column_type.scale))
            }
            other => other,
        })
    }

    /// Whether it is true for a row; `None` for NULL.
    pub fn eval_bool(
        &self,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<bool>, SqlError> {
        match &self.kind {
            ExprKind::Compare { operator, rule, left, right } => {
                compare(*operator, *rule, left, right, context, row)
            }
            ExprKind::And(list) => all(list, context, row),
            ExprKind::Or(list) => any(list, context, row),
            ExprKind::Not(operand) => Ok(operand.eval_bool(context, row)?.map(|value| !value)),
            ExprKind::Xor(left, right) => {
                let Some(a) = left.eval_bool(context, row)? else { return Ok(None) };
                Ok(right.eval_bool(context, row)?.map(|b| a != b))
            }
            ExprKind::Is { operand, test, negated } => {
                let holds = match test {
                    Test::Null => operand.eval(context, row)?.is_null(),
                    Test::True => operand.eval_bool(context, row)? == Some(true),
                    Test::False => operand.eval_bool(context, row)? == Some(false),
                };
                Ok(Some(holds != *negated))
            }
            ExprKind::Between { operand, low, high, rule, negated } => {
                let found = between(operand, low, high, *rule, context, row)?;
                Ok(found.map(|value| value != *negated))
            }
            ExprKind::In { operand, list, negated } => {
                let found = in_list(operand, list, context, row)?;
                Ok(found.map(|value| value != *negated))
            }
            ExprKind::Like { operand, pattern, escape, collation, negated } => {
                let text = operand.eval(context, row)?;
                let like = pattern.eval(context, row)?;
                if text.is_null() || like.is_null() {
                    return Ok(None);
                }
                let text = coerce::to_text(context, text, &operand.result);
                let like = coerce::to_text(context, like, &pattern.result);
                let matches = types::collation::like(collation.info(), text, like, *escape);
                Ok(Some(matches != *negated))
            }
            ExprKind::CompareRows { operator, rules, left, right } => {
                compare_rows(*operator, rules, left, right, context, row)
            }
            ExprKind::Row(_) => Ok(None),
            _ => {
                let value = self.eval(context, row)?;
                if value.is_null() {
                    return Ok(None);
                }
                // Text of a table's column is taken as a DECIMAL.
                if let (ExprKind::Column { name, .. }, ValueRef::Bytes(_)) = (&self.kind, value)
                    && name.starts_with('`')
                {
                    let exact = coerce::to_decimal(context, value, &self.result)?;
                    return Ok(Some(!exact.is_zero()));
                }
                coerce::to_truth(context, value, &self.result).map(Some)
            }
        }
    }

    /// Whether a row passes a condition: true, not false and not NULL.
    #[inline]
    pub fn accepts(&self, context: &EvalContext, row: &dyn Columns) -> Result<bool, SqlError> {
        Ok(self.eval_bool(context, row)? == Some(true))
    }

    /// Its value as text for a message, a key or a file.
    pub fn eval_text(
        &self,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<Vec<u8>>, SqlError> {
        let value = self.eval(context, row)?;
        if value.is_null() {
            return Ok(None);
        }
        let mut out = Vec::new();
        coerce::write_text(context, value, &self.result, &mut out);
        Ok(Some(out))
    }
}

fn read_variable<'a>(name: &str, context: &'a EvalContext) -> ValueRef<'a> {
    let variables = context.variables.borrow();
    match variables.get(name).map(|variable| &variable.value) {
        None => ValueRef::Null,
        Some(Value::Bytes(bytes)) => ValueRef::Bytes(context.keep(bytes)),
        Some(value) => detached(value),
    }
}

#[inline]
fn compare(
    operator: CompareOperator,
    rule: CompareRule,
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let a = left.operand(context, row)?;
    let null_safe = operator == CompareOperator::NullSafeEqual;
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
    let order = compare_values(context, rule, (a, &left.result), (b, &right.result))?;
    Ok(order.map(|order| operator.accepts(order)))
}

/// Stops at the first false; NULL only if nothing is false.
fn all(list: &[Expr], context: &EvalContext, row: &dyn Columns) -> Result<Option<bool>, SqlError> {
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
fn any(list: &[Expr], context: &EvalContext, row: &dyn Columns) -> Result<Option<bool>, SqlError> {
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

fn between(
    operand: &Expr,
    low: &Expr,
    high: &Expr,
    rule: CompareRule,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let value = operand.operand(context, row)?;
    if value.is_null() {
        return Ok(None);
    }
    let (a, b) = (low.operand(context, row)?, high.operand(context, row)?);
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

fn in_list(
    operand: &Expr,
    list: &[(Expr, Vec<CompareRule>)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
    let mut unknown = false;
    if matches!(operand.kind, ExprKind::Row(_)) {
        for (candidate, rules) in list {
            match rows_equal(rules, operand, candidate, context, row)? {
                Some(true) => return Ok(Some(true)),
                Some(false) => {}
                None => unknown = true,
            }
        }
        return Ok(if unknown { None } else { Some(false) });
    }
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(None);
    }
    for (candidate, rules) in list {
        let other = candidate.eval(context, row)?;
        let rule = rules[0];
        let order =
            compare_values(context, rule, (value, &operand.result), (other, &candidate.result))?;
        match order {
            Some(order) if order.is_eq() => return Ok(Some(true)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

/// The elements of a row constructor.
fn elements(expr: &Expr) -> &[Expr] {
    match &expr.kind {
        ExprKind::Row(list) => list,
        _ => std::slice::from_ref(expr),
    }
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

fn compare_rows(
    operator: CompareOperator,
    rules: &[CompareRule],
    left: &Expr,
    right: &Expr,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<bool>, SqlError> {
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
        let x = (a.eval(context, row)?, &a.result);
        let y = (b.eval(context, row)?, &b.result);
        match compare_values(context, *rule, x, y)? {
            None => return Ok(None),
            Some(order) if order.is_ne() => return Ok(Some(operator.accepts(order))),
            Some(_) => {}
        }
    }
    Ok(Some(operator.accepts(std::cmp::Ordering::Equal)))
}

fn choose_searched<'a>(
    branches: &'a [(Expr, Expr)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<&'a Expr>, SqlError> {
    for (when, then) in branches {
        if when.accepts(context, row)? {
            return Ok(Some(then));
        }
    }
    Ok(None)
}

fn choose_simple<'a>(
    operand: &'a Expr,
    rules: &[CompareRule],
    branches: &'a [(Expr, Expr)],
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<&'a Expr>, SqlError> {
    let value = operand.eval(context, row)?;
    if value.is_null() {
        return Ok(None);
    }
    for ((when, then), rule) in branches.iter().zip(rules) {
        let other = when.eval(context, row)?;
        let order =
            compare_values(context, *rule, (value, &operand.result), (other, &when.result))?;
        if order.is_some_and(std::cmp::Ordering::is_eq) {
            return Ok(Some(then));
        }
    }
    Ok(None)
}
