//! Functions of DOUBLE, and small ones of integers.

use super::random::RandomGenerator;
use super::typing::{int, resolve_double, resolve_int_2};
use super::{Frame, Function, MANY, Nature, any_nullable};
use crate::arithmetic::{division_by_zero, double_result};
use crate::builder::{Builder, Domain, number_of_hex};
use crate::coerce;
use crate::expression::Expr;
use crate::result_type::ResultType;
use types::{Decimal, SqlError, ValueRef};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("sqrt", 1, 1, resolve_double, sqrt),
    Function::new("exp", 1, 1, resolve_double, exp),
    Function::new("ln", 1, 1, resolve_double, ln),
    Function::new("log", 1, 2, resolve_double, log),
    Function::new("log2", 1, 1, resolve_double, log2),
    Function::new("log10", 1, 1, resolve_double, log10),
    Function::new("pow", 2, 2, resolve_double, pow),
    Function::new("sin", 1, 1, resolve_double, sin),
    Function::new("cos", 1, 1, resolve_double, cos),
    Function::new("tan", 1, 1, resolve_double, tan),
    Function::new("cot", 1, 1, resolve_double, cot),
    Function::new("asin", 1, 1, resolve_double, asin),
    Function::new("acos", 1, 1, resolve_double, acos),
    Function::new("atan", 1, 2, resolve_double, atan),
    Function::new("atan2", 1, 2, resolve_double, atan),
    Function::new("degrees", 1, 1, resolve_like_argument, degrees),
    Function::new("radians", 1, 1, resolve_like_argument, radians),
    Function::new("pi", 0, 0, resolve_pi, pi).being(Nature::Number),
    Function::new("sign", 1, 1, resolve_int_2, sign),
    Function::new("bit_count", 1, 1, resolve_bit_count, bit_count),
    Function::new("interval", 2, MANY, resolve_interval, interval).being(Nature::Interval),
    Function::new("rand", 0, 1, resolve_like_argument, rand).volatile(),
];

type Evaluated<'a> = Result<ValueRef<'a>, SqlError>;

fn resolve_like_argument(
    _: &Builder<'_>,
    _: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    Ok(ResultType::double(any_nullable(arguments)))
}

/// Applies a function of one double; a result that is no number is out of range.
fn apply<'a>(frame: &Frame<'a>, function: fn(f64) -> f64) -> Evaluated<'a> {
    match frame.double(0)? {
        Some(x) => double_result(frame.expr, function(x), frame.context),
        None => Ok(ValueRef::Null),
    }
}

/// The same for a function that has no value (NULL) outside an interval.
fn apply_within<'a>(
    frame: &Frame<'a>,
    function: fn(f64) -> f64,
    inside: fn(f64) -> bool,
) -> Evaluated<'a> {
    match frame.double(0)? {
        Some(x) if inside(x) => double_result(frame.expr, function(x), frame.context),
        _ => Ok(ValueRef::Null),
    }
}

/// The same for a logarithm: not above zero is a division by zero.
fn apply_log<'a>(frame: &Frame<'a>, function: fn(f64) -> f64) -> Evaluated<'a> {
    match frame.double(0)? {
        Some(x) if x > 0.0 => double_result(frame.expr, function(x), frame.context),
        Some(_) => division_by_zero(frame.context),
        None => Ok(ValueRef::Null),
    }
}

fn sqrt(frame: Frame<'_>) -> Evaluated<'_> {
    apply_within(&frame, f64::sqrt, |x| x >= 0.0)
}

fn exp(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, f64::exp)
}

fn ln(frame: Frame<'_>) -> Evaluated<'_> {
    apply_log(&frame, f64::ln)
}

fn log2(frame: Frame<'_>) -> Evaluated<'_> {
    apply_log(&frame, f64::log2)
}

fn log10(frame: Frame<'_>) -> Evaluated<'_> {
    apply_log(&frame, f64::log10)
}

fn log(frame: Frame<'_>) -> Evaluated<'_> {
    if frame.count() == 1 {
        return apply_log(&frame, f64::ln);
    }
    let Some(base) = frame.double(0)? else { return Ok(ValueRef::Null) };
    if base <= 0.0 {
        return division_by_zero(frame.context);
    }
    let Some(x) = frame.double(1)? else { return Ok(ValueRef::Null) };
    if base <= 0.0 || x <= 0.0 || base == 1.0 {
        return division_by_zero(frame.context);
    }
    double_result(frame.expr, x.ln() / base.ln(), frame.context)
}

fn pow(frame: Frame<'_>) -> Evaluated<'_> {
    let Some(x) = frame.double(0)? else { return Ok(ValueRef::Null) };
    let Some(y) = frame.double(1)? else { return Ok(ValueRef::Null) };
    double_result(frame.expr, x.powf(y), frame.context)
}

fn sin(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, f64::sin)
}

fn cos(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, f64::cos)
}

fn tan(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, f64::tan)
}

fn cot(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, |x| 1.0 / x.tan())
}

fn asin(frame: Frame<'_>) -> Evaluated<'_> {
    apply_within(&frame, f64::asin, |x| (-1.0..=1.0).contains(&x))
}

fn acos(frame: Frame<'_>) -> Evaluated<'_> {
    apply_within(&frame, f64::acos, |x| (-1.0..=1.0).contains(&x))
}

fn atan(frame: Frame<'_>) -> Evaluated<'_> {
    if frame.count() == 1 {
        return apply(&frame, f64::atan);
    }
    let Some(y) = frame.double(0)? else { return Ok(ValueRef::Null) };
    let Some(x) = frame.double(1)? else { return Ok(ValueRef::Null) };
    double_result(frame.expr, y.atan2(x), frame.context)
}

fn degrees(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, |x| x * (180.0 / std::f64::consts::PI))
}

fn radians(frame: Frame<'_>) -> Evaluated<'_> {
    apply(&frame, |x| x * (std::f64::consts::PI / 180.0))
}

fn resolve_pi(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let mut result = ResultType::double_of_scale(6, false);
    result.column_type.length = 8;
    Ok(result)
}

fn pi(_: Frame<'_>) -> Evaluated<'_> {
    Ok(ValueRef::Double(std::f64::consts::PI))
}

fn sign(frame: Frame<'_>) -> Evaluated<'_> {
    let sign = if Domain::of(frame.result(0)) == Domain::Double {
        frame.double(0)?.map(|x| i64::from(x > 0.0) - i64::from(x < 0.0))
    } else {
        let sign = |x: Decimal| i64::from(!x.is_zero()) * if x.is_negative() { -1 } else { 1 };
        frame.decimal(0)?.map(sign)
    };
    Ok(sign.map_or(ValueRef::Null, ValueRef::Int))
}

fn resolve_bit_count(
    builder: &Builder<'_>,
    function: &'static Function,
    arguments: &mut [Expr],
) -> Result<ResultType, SqlError> {
    arguments[0] = number_of_hex(arguments[0].clone());
    resolve_int_2(builder, function, arguments)
}

fn bit_count(frame: Frame<'_>) -> Evaluated<'_> {
    let value = frame.number(0)?;
    if value.is_null() {
        return Ok(ValueRef::Null);
    }
    let bits = coerce::to_bits(frame.context, value, frame.result(0))?;
    Ok(ValueRef::Int(i64::from(bits.count_ones())))
}

fn resolve_interval(
    _: &Builder<'_>,
    _: &'static Function,
    _: &mut [Expr],
) -> Result<ResultType, SqlError> {
    let mut result = int(2, false);
    // As of a number without a sign.
    result.column_type.precision = 2;
    Ok(result)
}

/// Number of arguments after the first, in order, that are not above it; -1 for NULL.
fn interval(frame: Frame<'_>) -> Evaluated<'_> {
    let is_exact = |i: usize| {
        let kind = frame.result(i).column_type.kind;
        !kind.is_string() && !kind.is_floating()
    };
    let exact = if is_exact(0) { frame.decimal(0)? } else { None };
    let value = match (exact, is_exact(0)) {
        (Some(exact), _) => Some(exact.to_f64()),
        (None, true) => None,
        (None, false) => frame.double(0)?,
    };
    crate::predicates::warn_of_constants(frame.arguments, frame.context, frame.row)?;
    let Some(value) = value else { return Ok(ValueRef::Int(-1)) };
    for i in 1..frame.count() {
        let above = match exact {
            Some(exact) if is_exact(i) => frame.decimal(i)?.is_some_and(|limit| limit > exact),
            _ => frame.double(i)?.is_some_and(|limit| limit > value),
        };
        if above {
            return Ok(ValueRef::Int(i as i64 - 1));
        }
    }
    Ok(ValueRef::Int(frame.count() as i64 - 1))
}

/// RAND(seed) with a constant seed goes on in its series from row to row.
fn rand(frame: Frame<'_>) -> Evaluated<'_> {
    let mut random = frame.context.random.borrow_mut();
    if frame.count() == 0 {
        return Ok(ValueRef::Double(random.session.next_f64()));
    }
    let address = std::ptr::from_ref(frame.expr) as usize;
    drop(random);
    let seed = frame.wide(0)?.unwrap_or(0) as u32;
    random = frame.context.random.borrow_mut();
    if !frame.arguments[0].is_constant() {
        return Ok(ValueRef::Double(RandomGenerator::seeded(seed).next_f64()));
    }
    let series = random.seeded.entry(address).or_insert_with(|| RandomGenerator::seeded(seed));
    Ok(ValueRef::Double(series.next_f64()))
}
