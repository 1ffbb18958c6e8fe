//! Values of the columns of a UNION, as a temporary table keeps them: numbers in the range and
//! with the digits of the column, without a word about what is lost; text of numbers with the
//! digits that the values have.

use crate::coerce;
use crate::expression::{ArithmeticOperator, Expr, ExprKind};
use crate::functions::{Frame, Function, resolve_as_first};
use crate::result_type::ResultType;
use types::convert::store;
use types::{SqlError, TypeKind, ValueRef, number};

/// No name finds it, and it is not printed.
static STORED: Function = Function::new("", 1, 1, resolve_as_first, eval);

impl Expr {
    /// Its value as a column of another type, of numbers or of text made of numbers, keeps it.
    pub fn stored(self, result: ResultType) -> Self {
        let kind = ExprKind::Call { function: &STORED, arguments: vec![self] };
        Self { kind, result }
    }

    /// Whether a column of numbers may have to change the value, though it is of the same type.
    pub fn may_exceed_its_type(&self) -> bool {
        let is_limited = match self.result.column_type.kind {
            TypeKind::Decimal => true,
            kind => kind.is_floating() && self.result.column_type.scale < 31,
        };
        is_limited && !matches!(self.kind, ExprKind::Column { .. } | ExprKind::Literal(_))
    }
}

fn eval(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let source = &frame.arguments[0];
    let value = source.eval(frame.context, frame.row)?;
    let target = &frame.expr.result.column_type;
    if value.is_null() {
        return Ok(value);
    }
    if target.kind.is_string() {
        return Ok(text(&frame, source, value));
    }
    if target.kind == TypeKind::Decimal && source.result.column_type.kind.is_integer() {
        // Whole numbers are never cut: how many digits a function may make is only a guess.
        let exact = coerce::to_decimal(frame.context, value, &source.result)?;
        return Ok(ValueRef::Decimal(exact.with_scale(target.scale)));
    }
    let settings = frame.context.store_settings();
    let stored = store(value, &source.result.column_type, target, &settings).value.into_owned();
    Ok(crate::context::detached(&stored))
}

fn text<'a>(frame: &Frame<'a>, source: &Expr, value: ValueRef<'a>) -> ValueRef<'a> {
    let mut out = Vec::with_capacity(24);
    match value {
        ValueRef::Bytes(_) => return value,
        ValueRef::UInt(number) => number::write_unsigned(number, &mut out),
        ValueRef::Double(exact) => {
            number::write_double(exact, &mut out);
            shorten(exact, frame, &mut out);
        }
        ValueRef::Float(exact) => {
            number::write_float(exact, &mut out);
            shorten(f64::from(exact), frame, &mut out);
        }
        ValueRef::Decimal(exact) => match &source.kind {
            // A difference of nothing has no digits.
            ExprKind::Arithmetic {
                operator: ArithmeticOperator::Add | ArithmeticOperator::Subtract,
                ..
            } if exact.is_zero() => out.push(b'0'),
            _ => exact.write_text(&mut out),
        },
        other => return ValueRef::Bytes(coerce::to_text(frame.context, other, &source.result)),
    }
    frame.keep(&out)
}

/// The text of a number in as many characters as the column has.
fn shorten(exact: f64, frame: &Frame<'_>, out: &mut Vec<u8>) {
    let width = frame.expr.result.text_length() as usize;
    if out.len() > width {
        out.clear();
        number::write_double_within(exact, width, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, EvalContext, NoColumns, Settings};
    use types::{ColumnType, Decimal, Value};

    #[test]
    fn numbers_are_cut_to_the_column() {
        let settings = Settings::default();
        let builder = Builder::new(&settings);
        let context = EvalContext::new();
        let exact = ResultType::decimal(6, 1, false, true);
        let days = builder.computed(Value::Int(200_003), ResultType::bigint(false, false));
        let value = days.stored(exact).eval(&context, &NoColumns).unwrap().to_owned();
        assert_eq!(value, Value::Decimal(Decimal::new(2_000_030, 1)));
        let wide = ResultType::decimal(65, 0, false, false);
        let large = builder.computed(Value::Decimal(Decimal::new(200_003, 0)), wide);
        let cut = large.stored(exact);
        let value = cut.eval(&context, &NoColumns).unwrap().to_owned();
        assert_eq!(value, Value::Decimal(Decimal::new(999_999, 1)));
        let mut short = ColumnType::double();
        (short.length, short.scale) = (19, 2);
        let far = builder.computed(Value::Double(1e30), ResultType::double(false));
        let cut = far.stored(ResultType::of(short, true));
        let value = cut.eval(&context, &NoColumns).unwrap().to_owned();
        assert_eq!(value, Value::Double(1e17));
    }
}
