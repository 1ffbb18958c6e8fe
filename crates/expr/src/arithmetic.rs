//! `+ - * / DIV %` on integers, DECIMAL and DOUBLE.

use crate::builder::Domain;
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{ArithmeticOperator, Expr, ExprKind, Literal, LiteralForm};
use std::sync::Arc;
use types::{Decimal, SqlError, SqlMode, Value, ValueRef, codes};

/// 1690 with the expression's text, in which parameters stand with their values.
#[cold]
pub(crate) fn out_of_range(kind: &str, expr: &Expr, context: &EvalContext) -> SqlError {
    let mut shown = expr.clone();
    put_values(&mut shown, &context.parameters);
    SqlError::new(&codes::DATA_OUT_OF_RANGE, &[&kind, &shown.to_string()])
}

/// Puts literals in the place of parameters.
fn put_values(expr: &mut Expr, values: &[Value]) {
    match &mut expr.kind {
        ExprKind::Parameter(index) => {
            if let Some(value) = values.get(*index) {
                let literal = Literal::new(value.clone(), LiteralForm::Plain);
                expr.kind = ExprKind::Literal(literal);
            }
        }
        ExprKind::Converted { original, .. } => put_values(Arc::make_mut(original), values),
        _ => expr.for_each_child_mut(&mut |child| put_values(child, values)),
    }
}

#[cold]
fn bigint_out_of_range(expr: &Expr, context: &EvalContext) -> SqlError {
    let unsigned = expr.result.column_type.unsigned;
    out_of_range(if unsigned { "BIGINT UNSIGNED" } else { "BIGINT" }, expr, context)
}

/// An integer result in the type of the expression.
pub(crate) fn integer_result<'a>(
    expr: &Expr,
    value: i128,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    if expr.result.column_type.unsigned {
        u64::try_from(value).map(ValueRef::UInt).map_err(|_| bigint_out_of_range(expr, context))
    } else {
        i64::try_from(value).map(ValueRef::Int).map_err(|_| bigint_out_of_range(expr, context))
    }
}

/// Warns of a division by zero and gives NULL.
pub(crate) fn division_by_zero<'a>(context: &EvalContext) -> Result<ValueRef<'a>, SqlError> {
    if context.settings.sql_mode.contains(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        context.warn(&codes::DIVISION_BY_ZERO, &[])?;
    }
    Ok(ValueRef::Null)
}

/// Evaluates an arithmetic expression.
pub(crate) fn eval<'a>(
    expr: &'a Expr,
    operator: ArithmeticOperator,
    left: &'a Expr,
    right: &'a Expr,
    context: &'a EvalContext,
    row: &'a dyn Columns,
) -> Result<ValueRef<'a>, SqlError> {
    let a = left.operand(context, row)?;
    if a.is_null() && is_lazy(expr, operator, left, right) {
        return Ok(ValueRef::Null);
    }
    let b = right.operand(context, row)?;
    if a.is_null() || b.is_null() {
        // The server converts both before it looks for NULL; only text can warn.
        if let (ValueRef::Bytes(_), Domain::Double) = (a, Domain::of(&expr.result)) {
            coerce::to_double(context, a, &left.result)?;
        }
        if let (ValueRef::Bytes(_), Domain::Double) = (b, Domain::of(&expr.result)) {
            coerce::to_double(context, b, &right.result)?;
        }
        let is_exact =
            operator == ArithmeticOperator::IntegerDivide && is_lazy(expr, operator, left, right);
        if is_exact && matches!(a, ValueRef::Bytes(_) | ValueRef::Double(_)) {
            coerce::to_decimal(context, a, &left.result)?;
        }
        return Ok(ValueRef::Null);
    }
    if operator == ArithmeticOperator::IntegerDivide {
        return integer_divide(expr, (a, left), (b, right), context);
    }
    match Domain::of(&expr.result) {
        Domain::Integer => {
            if let (ValueRef::Int(x), ValueRef::Int(y)) = (a, b)
                && !expr.result.column_type.unsigned
            {
                return signed(expr, operator, x, y, context);
            }
            let x = coerce::to_integer(context, a, &left.result)?;
            let y = coerce::to_integer(context, b, &right.result)?;
            wide(expr, operator, x, y, context)
        }
        Domain::Decimal => {
            let x = coerce::to_decimal(context, a, &left.result)?;
            let y = coerce::to_decimal(context, b, &right.result)?;
            decimal(expr, operator, &x, &y, context)
        }
        Domain::Double => {
            let x = coerce::to_double(context, a, &left.result)?;
            let y = coerce::to_double(context, b, &right.result)?;
            double(expr, operator, x, y, context)
        }
    }
}

/// Whether the right side is left alone where the left one is NULL: operations on DECIMAL.
#[cold]
fn is_lazy(expr: &Expr, operator: ArithmeticOperator, left: &Expr, right: &Expr) -> bool {
    match operator {
        ArithmeticOperator::IntegerDivide => {
            Domain::of(&left.result).join(Domain::of(&right.result)) != Domain::Integer
        }
        _ => Domain::of(&expr.result) == Domain::Decimal,
    }
}

fn signed<'a>(
    expr: &Expr,
    operator: ArithmeticOperator,
    a: i64,
    b: i64,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let result = match operator {
        ArithmeticOperator::Add => a.checked_add(b),
        ArithmeticOperator::Subtract => a.checked_sub(b),
        ArithmeticOperator::Multiply => a.checked_mul(b),
        _ if b == 0 => return division_by_zero(context),
        _ => Some(a.wrapping_rem(b)),
    };
    result.map(ValueRef::Int).ok_or_else(|| bigint_out_of_range(expr, context))
}

fn wide<'a>(
    expr: &Expr,
    operator: ArithmeticOperator,
    a: i128,
    b: i128,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let result = match operator {
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => {
            a.checked_mul(b).ok_or_else(|| bigint_out_of_range(expr, context))?
        }
        _ if b == 0 => return division_by_zero(context),
        _ => a % b,
    };
    integer_result(expr, result, context)
}

fn decimal<'a>(
    expr: &Expr,
    operator: ArithmeticOperator,
    a: &Decimal,
    b: &Decimal,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let increment = context.settings.div_precision_increment;
    let result = match operator {
        ArithmeticOperator::Add => a.add(b).map(Some),
        ArithmeticOperator::Subtract => a.subtract(b).map(Some),
        ArithmeticOperator::Multiply => a.multiply(b).map(Some),
        ArithmeticOperator::Divide | ArithmeticOperator::IntegerDivide => a.divide(b, increment),
        ArithmeticOperator::Modulo => a.remainder(b),
    };
    // A quotient of zero, and a product that would be -0.0, have no digits behind the point; it
    // is seen where they are stored as text.
    let is_bare = match operator {
        ArithmeticOperator::Divide | ArithmeticOperator::Modulo => a.is_zero(),
        ArithmeticOperator::Multiply => a.is_negative() != b.is_negative(),
        _ => false,
    };
    match result {
        Ok(Some(value)) if is_bare && value.is_zero() => Ok(ValueRef::Decimal(value.with_scale(0))),
        Ok(Some(value)) => Ok(ValueRef::Decimal(value)),
        Ok(None) => division_by_zero(context),
        Err(_) => Err(out_of_range("DECIMAL", expr, context)),
    }
}

fn double<'a>(
    expr: &Expr,
    operator: ArithmeticOperator,
    a: f64,
    b: f64,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let result = match operator {
        ArithmeticOperator::Add => a + b,
        ArithmeticOperator::Subtract => a - b,
        ArithmeticOperator::Multiply => a * b,
        _ if b == 0.0 => return division_by_zero(context),
        ArithmeticOperator::Modulo => a % b,
        _ => a / b,
    };
    double_result(expr, result, context)
}

/// A double that must be finite.
pub(crate) fn double_result<'a>(
    expr: &Expr,
    value: f64,
    context: &EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    if value.is_finite() {
        Ok(ValueRef::Double(value))
    } else {
        Err(out_of_range("DOUBLE", expr, context))
    }
}

/// DIV: integers divide as such, everything else as DECIMAL, cut to a whole number.
fn integer_divide<'a>(
    expr: &'a Expr,
    (a, left): (ValueRef<'a>, &'a Expr),
    (b, right): (ValueRef<'a>, &'a Expr),
    context: &'a EvalContext,
) -> Result<ValueRef<'a>, SqlError> {
    let integers = Domain::of(&left.result).join(Domain::of(&right.result)) == Domain::Integer;
    if integers {
        let x = coerce::to_integer(context, a, &left.result)?;
        let y = coerce::to_integer(context, b, &right.result)?;
        if y == 0 {
            return division_by_zero(context);
        }
        return integer_result(expr, x / y, context);
    }
    let x = coerce::to_decimal(context, a, &left.result)?;
    let y = coerce::to_decimal(context, b, &right.result)?;
    match x.divide(&y, 0) {
        Ok(None) => division_by_zero(context),
        Ok(Some(quotient)) => {
            let unsigned = expr.result.column_type.unsigned;
            let whole = quotient.truncated(0).mantissa();
            let fits = |whole: &i128| match unsigned {
                true => u64::try_from(*whole).is_ok(),
                false => i64::try_from(*whole).is_ok(),
            };
            if let Some(whole) = whole.filter(fits) {
                return integer_result(expr, whole, context);
            }
            let kind = if unsigned { "UNSIGNED INT" } else { "INT" };
            context.warn(&codes::DATA_OVERFLOW, &[&quotient.truncated(0), &kind])?;
            Err(bigint_out_of_range(expr, context))
        }
        Err(_) => Err(bigint_out_of_range(expr, context)),
    }
}
