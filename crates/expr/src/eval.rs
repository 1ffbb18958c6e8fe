//! Evaluation.

use crate::compare::CompareRule;
use crate::context::{Columns, EvalContext, detached};
use crate::expression::{Expr, ExprKind, Test};
use crate::functions::Frame;
use crate::predicates::{
    all, any, between, choose_searched, choose_simple, compare, compare_rows, in_list, ruled,
};
use crate::{arithmetic, coerce, functions};
use types::{SqlError, Value, ValueRef, codes};

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
            ExprKind::Case { .. } => match self.chosen(context, row)? {
                Some(expr) => functions::control::converted(self, expr, context, row),
                None => Ok(ValueRef::Null),
            },
            ExprKind::DateArithmetic { base, amount, unit, subtract } => {
                functions::temporal_units::add(self, base, amount, *unit, *subtract, context, row)
            }
            ExprKind::Cast { operand, pads, cuts, .. } => {
                functions::cast::eval(self, operand, (*pads, *cuts), context, row)
            }
            ExprKind::ConvertText(operand) => {
                functions::cast::convert_text(self, operand, context, row)
            }
            ExprKind::ConvertSafely(..) => functions::cast::convert_safely(self, context, row),
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

    /// The branch that a CASE takes.
    pub(crate) fn chosen(
        &self,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<&Expr>, SqlError> {
        let ExprKind::Case { operand, branches, otherwise } = &self.kind else { return Ok(None) };
        let chosen = match operand {
            None => choose_searched(branches, context, row)?,
            Some((operand, rules)) => choose_simple(operand, rules, branches, context, row)?,
        };
        Ok(chosen.or(otherwise.as_deref()))
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
            _ => self.eval(context, row).map(|value| self.as_compared(value)),
        }
    }

    /// A value of its own as comparisons see it: a DECIMAL with the digits that its type shows.
    pub fn as_compared<'a>(&self, value: ValueRef<'a>) -> ValueRef<'a> {
        crate::predicates::as_shown(value, self)
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
            date @ (ValueRef::Date(_) | ValueRef::DateTime(_)) => {
                crate::allowed::allowed(self, date, context, row)?
            }
            other => other,
        })
    }

    /// Its value as a change stores it: with all of its digits, but no date that the session's
    /// rules do not allow where it is one of several.
    pub fn eval_stored<'a>(
        &'a self,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        match self.operand(context, row)? {
            date @ (ValueRef::Date(_) | ValueRef::DateTime(_)) => {
                crate::allowed::allowed(self, date, context, row)
            }
            other => Ok(other),
        }
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
                let Some(a) = left.truth(context, row)? else { return Ok(None) };
                Ok(right.truth(context, row)?.map(|b| a != b))
            }
            ExprKind::Is { operand, test, negated } => {
                let holds = match test {
                    Test::Null => is_null(operand, context, row)?,
                    Test::True => operand.truth(context, row)? == Some(true),
                    Test::False => operand.truth(context, row)? == Some(false),
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
                if text.is_null() && !pattern.is_constant() {
                    return Ok(None);
                }
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

    /// The same where no condition stands: text of a table's column is taken as a DOUBLE, too.
    pub(crate) fn truth(
        &self,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<bool>, SqlError> {
        if let ExprKind::Column { position, .. } = &self.kind
            && let value @ ValueRef::Bytes(_) = row.column(*position)
        {
            return coerce::to_truth(context, value, &self.result).map(Some);
        }
        self.eval_bool(context, row)
    }

    /// Its value as an operand of a comparison by a rule: dates and times are converted.
    pub fn eval_compared<'a>(
        &'a self,
        rule: CompareRule,
        context: &'a EvalContext,
        row: &'a dyn Columns,
    ) -> Result<ValueRef<'a>, SqlError> {
        ruled(self, rule, context, row)
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

/// Whether an operand is NULL. Of one that cannot be nothing else matters, not even that its value
/// is out of range.
fn is_null(operand: &Expr, context: &EvalContext, row: &dyn Columns) -> Result<bool, SqlError> {
    match operand.eval(context, row) {
        Err(error) if error.code == codes::DATA_OUT_OF_RANGE.number && !operand.result.nullable => {
            Ok(false)
        }
        value => Ok(value?.is_null()),
    }
}
