//! A BIGINT column beside numbers that are not integers: DOUBLE, DECIMAL and text, as literals, as
//! parameters (some drivers send every number as DOUBLE) and in user variables.
//!
//! 1. As DOUBLE a value of the column from 2^53 on is also its neighbours', and no range of an
//!    index holds just those that are equal then. So what is known before the rows is compared
//!    exactly.
//! 2. A literal that is a whole number of 64 bits becomes one: integers are compared.
//! 3. A parameter becomes an integer once in a statement, if it is one, else a DOUBLE; its static
//!    type is DOUBLE in both cases, which only comparisons and ranges by [`CompareRule::Whole`]
//!    see.
//! 4. Text is read, and warns, as where DECIMAL is compared.

use crate::coerce;
use crate::compare::{CompareRule, order_doubles};
use crate::context::{EvalContext, NoColumns};
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::result_type::ResultType;
use std::cmp::Ordering;
use std::sync::Arc;
use types::{SqlError, TypeKind, Value, ValueRef};

/// The rule where an operand is a BIGINT column and the others are known numbers that `rule` would
/// compare as DOUBLE; these come back converted.
pub(crate) fn rule_beside(
    operation: &str,
    rule: CompareRule,
    operands: &mut [Expr],
) -> Option<CompareRule> {
    let mut columns = match operation {
        "case" => 0..0,
        "between" | "in" => 0..1,
        _ => 0..operands.len(),
    };
    columns.find_map(|column| rule_of_column(operands, column, rule))
}

fn rule_of_column(operands: &mut [Expr], column: usize, rule: CompareRule) -> Option<CompareRule> {
    let expr = &operands[column];
    let is_bigint = expr.result.column_type.kind == TypeKind::BigInt;
    if !is_bigint || !matches!(expr.kind, ExprKind::Column { .. }) {
        return None;
    }
    let mut converted = Vec::with_capacity(operands.len());
    for (place, operand) in operands.iter().enumerate() {
        converted.push(if place == column { operand.clone() } else { known_number(operand)? });
    }
    let all_whole = converted.iter().all(|operand| operand.result.column_type.kind.is_integer());
    let decided = match rule {
        _ if all_whole => CompareRule::Integer,
        CompareRule::Double => CompareRule::Whole,
        _ => return None,
    };
    operands.iter_mut().zip(converted).for_each(|(place, operand)| *place = operand);
    Some(decided)
}

/// A number that is known before the rows, as it is compared with the column.
fn known_number(expr: &Expr) -> Option<Expr> {
    let kind = expr.result.column_type.kind;
    let is_number = kind.is_integer()
        || kind.is_string()
        || matches!(kind, TypeKind::Double | TypeKind::Decimal | TypeKind::Float);
    match &expr.kind {
        _ if !is_number || expr.result.is_json || expr.is_hex_literal() => None,
        ExprKind::UserVariable(_) => Some(expr.clone()),
        ExprKind::Parameter(_) if kind.is_integer() => Some(expr.clone()),
        ExprKind::Parameter(_) => Some(parameter(expr)),
        ExprKind::Literal(Literal { value, .. }) => {
            let (whole, rule) = match value {
                Value::Bytes(text) => (of_text(text), CompareRule::Decimal),
                value => (of_number(value.as_ref()), CompareRule::Double),
            };
            Some(match whole {
                Some(number) => integer(number),
                None => rule.prepare_constant(expr.clone()),
            })
        }
        _ => match &negated(expr)?.kind {
            ExprKind::Parameter(_) => Some(parameter(expr)),
            _ => computed_number(expr),
        },
    }
}

/// A literal or parameter, a number, whose negative this is.
fn negated(expr: &Expr) -> Option<&Expr> {
    let ExprKind::Call { function, arguments } = &expr.kind else { return None };
    let [operand] = &arguments[..] else { return None };
    let is_known = matches!(operand.kind, ExprKind::Literal(_) | ExprKind::Parameter(_));
    let is_number = operand.result.column_type.kind.is_number();
    (function.name() == "-" && is_known && is_number).then_some(operand)
}

fn parameter(expr: &Expr) -> Expr {
    let (original, rule) = (Arc::new(expr.clone()), CompareRule::Whole);
    let kind = ExprKind::Converted { original, value: None, rule };
    Expr { kind, result: ResultType::double(expr.result.nullable) }
}

/// The negative of a literal.
fn computed_number(expr: &Expr) -> Option<Expr> {
    let number = expr.eval_result(&EvalContext::new(), &NoColumns).ok()?.to_owned();
    Some(match of_number(number.as_ref()) {
        Some(number) => integer(number),
        None => {
            let kind = ExprKind::Literal(Literal::new(number, LiteralForm::Computed));
            CompareRule::Double.prepare_constant(Expr { kind, result: expr.result })
        }
    })
}

fn integer(number: Value) -> Expr {
    let result = ResultType::bigint(matches!(number, Value::UInt(_)), false);
    Expr { kind: ExprKind::Literal(Literal::new(number, LiteralForm::Computed)), result }
}

fn of_integer(number: i128) -> Option<Value> {
    let signed = i64::try_from(number).map(Value::Int);
    signed.or_else(|_| u64::try_from(number).map(Value::UInt)).ok()
}

/// A number that is whole and has 64 bits.
fn of_number(value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Int(_) | ValueRef::UInt(_) => Some(value.to_owned()),
        // Beyond the limits of i128 it becomes the nearer one, which has more than 64 bits.
        ValueRef::Double(number) if number.fract() == 0.0 => of_integer(number as i128),
        ValueRef::Decimal(number) if number.floor() == number => {
            number.with_scale(0).mantissa().and_then(of_integer)
        }
        _ => None,
    }
}

/// Text that is a whole number of 64 bits and nothing else.
pub(crate) fn of_text(text: &[u8]) -> Option<Value> {
    let parsed = types::number::parse_integer(text);
    if parsed.length != text.len() || parsed.length == 0 || parsed.overflow {
        return None;
    }
    let magnitude = i128::from(parsed.value.magnitude);
    of_integer(if parsed.value.negative { -magnitude } else { magnitude })
}

/// An integer where the value is one of 64 bits, else a DOUBLE.
pub(crate) fn exact_number(
    context: &EvalContext,
    value: ValueRef<'_>,
    result: &ResultType,
) -> Result<Value, SqlError> {
    if let ValueRef::Bytes(text) = value {
        if let Some(number) = of_text(text) {
            return Ok(number);
        }
        let number = coerce::to_decimal(context, value, result)?;
        let whole = of_number(ValueRef::Decimal(number));
        return Ok(whole.unwrap_or(Value::Double(number.to_f64())));
    }
    if let Some(number) = of_number(value) {
        return Ok(number);
    }
    let number = coerce::to_double(context, value, result)?;
    Ok(of_number(ValueRef::Double(number)).unwrap_or(Value::Double(number)))
}

/// Integers and DOUBLEs in the order of their values, of which none is rounded.
pub(crate) fn order(a: &Value, b: &Value) -> Ordering {
    let beside = |integer: i128, number: f64| {
        let floor = number.floor();
        let fraction = if number > floor { Ordering::Less } else { Ordering::Equal };
        integer.cmp(&(floor as i128)).then(fraction)
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => order_doubles(*a, *b),
        (Value::Double(a), b) => beside(integer_of(b), *a).reverse(),
        (a, Value::Double(b)) => beside(integer_of(a), *b),
        (a, b) => integer_of(a).cmp(&integer_of(b)),
    }
}

fn integer_of(value: &Value) -> i128 {
    match value {
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_are_ordered_exactly() {
        let odd = Value::Int((1 << 53) + 1);
        let even = Value::Double((1u64 << 53) as f64);
        assert_eq!(order(&odd, &even), Ordering::Greater);
        assert_eq!(order(&even, &odd), Ordering::Less);
        assert_eq!(order(&Value::UInt(u64::MAX), &Value::Double(2f64.powi(64))), Ordering::Less);
        assert_eq!(order(&Value::Int(i64::MIN), &Value::Double(-(2f64.powi(63)))), Ordering::Equal);
        assert_eq!(order(&Value::Int(-1), &Value::Double(-1.5)), Ordering::Greater);
        assert_eq!(order(&Value::Double(-1e300), &Value::Int(i64::MIN)), Ordering::Less);
    }

    #[test]
    fn whole_numbers_of_64_bits_are_found() {
        assert_eq!(of_text(b"18446744073709551615"), Some(Value::UInt(u64::MAX)));
        assert_eq!(of_text(b"18446744073709551616"), None);
        assert_eq!(of_text(b"-9223372036854775809"), None);
        assert_eq!(of_text(b"5.0"), None);
        assert_eq!(of_text(b"5 "), None);
        assert_eq!(of_number(ValueRef::Double(5e0)), Some(Value::Int(5)));
        assert_eq!(of_number(ValueRef::Double(1e300)), None);
        assert_eq!(of_number(ValueRef::Double(f64::NAN)), None);
    }
}
