//! As what values are compared, and the comparison itself.

use crate::coerce;
use crate::context::{EvalContext, NoColumns, detached};
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::result_type::ResultType;
use crate::temporal;
use crate::whole;
use crate::years::full_year;
use std::cmp::Ordering;
use std::sync::Arc;
use types::temporal::{DateRules, parse_datetime, parse_time};
use types::{CollationId, Decimal, SqlError, TypeKind, Value, ValueRef};

/// As what two values are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompareRule {
    /// 64 bit integers, signed and unsigned mixed.
    Integer,
    /// DECIMAL.
    Decimal,
    /// DOUBLE.
    Double,
    /// DOUBLE of which both sides show so many digits after the point at most: numbers are equal
    /// that are nearer to each other than half of the last one. No key order and no hash is theirs.
    Near(u8),
    /// A column of BIGINT and a number that is known before the rows: exactly, where as DOUBLE
    /// whole numbers from 2^53 on would not be told apart.
    Whole,
    /// Text under a collation.
    Text(CollationId),
    /// Date and time.
    DateTime,
    /// Duration.
    Time,
    /// What a constant is converted by that is compared with a YEAR: below 100 it stands for a
    /// year of 1970 to 2069. Nothing is compared by it.
    Year,
}

/// What a side of a comparison brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Null,
    Integer,
    Decimal,
    Double,
    Text,
    DateTime,
    Time,
}

impl Class {
    fn of(result: &ResultType) -> Self {
        match result.column_type.kind {
            TypeKind::Null => Class::Null,
            TypeKind::Decimal => Class::Decimal,
            TypeKind::Float | TypeKind::Double => Class::Double,
            TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => Class::DateTime,
            TypeKind::Time => Class::Time,
            kind if kind.is_integer() => Class::Integer,
            TypeKind::Year | TypeKind::Bit => Class::Integer,
            _ => Class::Text,
        }
    }

    /// The rule for two classes; the collation of a text rule is filled in later.
    fn rule(self, other: Self) -> CompareRule {
        use Class::{DateTime, Decimal, Double, Integer, Null, Text, Time};
        match (self, other) {
            (Time, Time | Null | Text | Integer | Decimal | Double)
            | (Null | Text | Integer | Decimal | Double, Time) => CompareRule::Time,
            (DateTime | Time, _) | (_, DateTime) => CompareRule::DateTime,
            (Text, Text | Null) | (Null, Text | Null) => CompareRule::Text(CollationId::BINARY),
            (Integer, Integer | Null) | (Null, Integer) => CompareRule::Integer,
            (Integer, Text) | (Text, Integer) => CompareRule::Decimal,
            (Integer | Decimal | Null, Integer | Decimal | Null) => CompareRule::Decimal,
            _ => CompareRule::Double,
        }
    }
}

fn class_of(expr: &Expr, other: &Expr) -> Class {
    let own = Class::of(&expr.result);
    if expr.is_hex_literal() && !matches!(Class::of(&other.result), Class::Text | Class::Null) {
        return Class::Integer;
    }
    own
}

/// Whether a value is known when the statement begins: user variables and subqueries that read
/// nothing of the row are, other than in [`Expr::is_constant`].
fn is_fixed(expr: &Expr) -> bool {
    let mut fixed = match &expr.kind {
        ExprKind::Column { .. } | ExprKind::Assign(..) => false,
        ExprKind::Call { function, .. } => !function.is_volatile(),
        ExprKind::External(external) => {
            let mut reads = false;
            external.columns(&mut |_| reads = true);
            !reads
        }
        _ => true,
    };
    expr.for_each_child(&mut |child| fixed &= is_fixed(child));
    fixed
}

impl CompareRule {
    /// The rule for two expressions, before collations are decided.
    pub(crate) fn of_pair(left: &Expr, right: &Expr) -> Self {
        let decimal_beside = |value: &Expr, constant: &Expr| {
            value.result.column_type.kind == TypeKind::Decimal
                && constant.result.is_string()
                && constant.is_constant()
                && !is_fixed(value)
        };
        if decimal_beside(left, right) || decimal_beside(right, left) {
            return CompareRule::Decimal;
        }
        match Self::of_candidate(left, right) {
            CompareRule::Double => {
                let digits = left.result.decimals().max(right.result.decimals());
                let is_fixed = digits < types::column_type::SCALE_NOT_FIXED;
                if is_fixed { CompareRule::Near(digits) } else { CompareRule::Double }
            }
            rule => rule,
        }
    }

    /// The same with an order of its own: as what the sides are converted, and of which the least
    /// and the greatest value are found.
    pub fn exact(self) -> Self {
        match self {
            CompareRule::Near(_) => CompareRule::Double,
            rule => rule,
        }
    }

    /// The same for an operand and one of several values that it is compared with.
    pub(crate) fn of_candidate(left: &Expr, right: &Expr) -> Self {
        class_of(left, right).rule(class_of(right, left))
    }

    /// The rule for two values of one type.
    pub fn of_type(result: &ResultType) -> Self {
        match Class::of(result).rule(Class::of(result)) {
            CompareRule::Text(_) => CompareRule::Text(result.collation()),
            rule => rule,
        }
    }

    /// Whether dates or times are compared.
    #[inline]
    pub(crate) fn is_temporal(self) -> bool {
        matches!(self, CompareRule::DateTime | CompareRule::Time)
    }

    /// The rule for several operands that are compared with each other.
    pub(crate) fn of_list(operands: &[Expr]) -> Self {
        let classes: Vec<_> = operands.iter().map(|e| Class::of(&e.result)).collect();
        let has = |class: Class| classes.contains(&class);
        if has(Class::DateTime) {
            CompareRule::DateTime
        } else if has(Class::Time) {
            CompareRule::Time
        } else if classes.iter().all(|c| matches!(c, Class::Text | Class::Null)) {
            CompareRule::Text(CollationId::BINARY)
        } else if classes.iter().all(|c| matches!(c, Class::Integer | Class::Null)) {
            CompareRule::Integer
        } else if has(Class::Double) {
            CompareRule::Double
        } else if has(Class::Text) {
            // One after the other, and NULL counts as text.
            let mut whole = Class::Null;
            for class in classes {
                whole = match (whole, class) {
                    (Class::Null, Class::Null) => Class::Text,
                    (Class::Null, class) => class,
                    (Class::Integer, Class::Text | Class::Null) => Class::Decimal,
                    (Class::Text, Class::Integer) => Class::Decimal,
                    (Class::Decimal, Class::Text | Class::Null) => Class::Double,
                    (Class::Text, Class::Decimal) => Class::Double,
                    (Class::Integer, Class::Decimal) => Class::Decimal,
                    (whole, _) => whole,
                };
            }
            if whole == Class::Double { CompareRule::Double } else { CompareRule::Decimal }
        } else {
            CompareRule::Decimal
        }
    }

    /// A constant converted to what it is compared as. Text that is not wholly such a value
    /// warns when it is first evaluated.
    pub(crate) fn prepare_constant(self, expr: Expr) -> Expr {
        let rule = self.exact();
        if matches!(expr.kind, ExprKind::Parameter(_)) {
            return rule.prepare_parameter(expr);
        }
        let ExprKind::Literal(Literal { value, form, .. }) = &expr.kind else { return expr };
        let (prepared, clean) = match (rule, value) {
            (CompareRule::Text(_), _) | (_, Value::Null) => return expr,
            (_, Value::Bytes(_)) if *form == LiteralForm::Hex && !rule.is_temporal() => {
                return crate::builder::number_of_hex(expr);
            }
            (CompareRule::Decimal, Value::Int(v)) => (Value::Decimal(Decimal::from(*v)), true),
            (CompareRule::Decimal, Value::UInt(v)) => (Value::Decimal(Decimal::from(*v)), true),
            (CompareRule::Double, Value::Int(v)) => (Value::Double(*v as f64), true),
            (CompareRule::Double, Value::UInt(v)) => (Value::Double(*v as f64), true),
            (CompareRule::Double, Value::Decimal(v)) => (Value::Double(v.to_f64()), true),
            (CompareRule::DateTime, Value::Date(date)) => {
                (Value::DateTime(date.at_midnight()), true)
            }
            (_, Value::Bytes(text)) => match rule.of_text(text, temporal::COMPARE_RULES) {
                Some(converted) => converted,
                None => return expr,
            },
            _ => return expr,
        };
        let result = ResultType::of(type_of_prepared(&prepared), false);
        let kind = if clean {
            ExprKind::Literal(Literal::new(prepared, LiteralForm::Computed))
        } else {
            ExprKind::Converted { original: Arc::new(expr), value: Some(prepared), rule }
        };
        Expr { kind, result }
    }

    /// Text as what the rule compares, and whether all of it was used; `None` where that
    /// depends on the statement.
    fn of_text(self, text: &[u8], rules: DateRules) -> Option<(Value, bool)> {
        Some(match self {
            CompareRule::Decimal => {
                let parsed = Decimal::parse(text);
                let whole = parsed.length == text.len() && parsed.length > 0;
                (Value::Decimal(parsed.value), whole && !parsed.overflow)
            }
            CompareRule::Double => {
                let parsed = types::number::parse_double(text);
                let whole = parsed.length == text.len() && parsed.length > 0;
                (Value::Double(parsed.value), whole && !parsed.overflow)
            }
            CompareRule::DateTime => match parse_datetime(text, rules) {
                Some(parsed) => {
                    (Value::DateTime(parsed.value), !parsed.truncated && parsed.digits <= 6)
                }
                None => (Value::DateTime(Default::default()), false),
            },
            CompareRule::Time => match parse_time(text, rules) {
                Some(parsed) => {
                    let clean = !parsed.truncated && !parsed.out_of_range && parsed.digits <= 6;
                    (Value::Time(temporal::as_time(parsed.value)), clean)
                }
                None => (Value::Time(types::Time(0)), false),
            },
            CompareRule::Whole => {
                let whole = whole::of_text(text).map(|whole| (whole, true));
                return whole.or_else(|| CompareRule::Decimal.of_text(text, rules));
            }
            CompareRule::Near(_)
            | CompareRule::Integer
            | CompareRule::Text(_)
            | CompareRule::Year => return None,
        })
    }

    /// A parameter that holds text is converted when the statement runs.
    fn prepare_parameter(self, expr: Expr) -> Expr {
        let column_type = match self {
            _ if !expr.result.is_string() => return expr,
            CompareRule::Text(_) | CompareRule::Integer | CompareRule::Year => return expr,
            CompareRule::Decimal => types::ColumnType::decimal(65, 30, false),
            CompareRule::Double | CompareRule::Near(_) | CompareRule::Whole => {
                types::ColumnType::double()
            }
            CompareRule::DateTime => types::ColumnType::temporal(TypeKind::DateTime, 6),
            CompareRule::Time => types::ColumnType::temporal(TypeKind::Time, 6),
        };
        let result = ResultType::of(column_type, expr.result.nullable);
        let kind = ExprKind::Converted { original: Arc::new(expr), value: None, rule: self };
        Expr { kind, result }
    }

    /// A constant converted as a comparison by this rule does, with its warnings.
    pub(crate) fn convert(self, context: &EvalContext, constant: &Expr) -> Result<Value, SqlError> {
        let value = constant.eval(context, &NoColumns)?;
        let result = &constant.result;
        if value.is_null() {
            return Ok(Value::Null);
        }
        Ok(match self {
            CompareRule::Decimal => Value::Decimal(coerce::to_decimal(context, value, result)?),
            CompareRule::Double | CompareRule::Near(_) => {
                Value::Double(coerce::to_double(context, value, result)?)
            }
            CompareRule::Whole => whole::exact_number(context, value, result)?,
            CompareRule::DateTime | CompareRule::Time => {
                let is_time = self == CompareRule::Time;
                crate::compared::convert_compared(context, value, constant, is_time)?.to_owned()
            }
            CompareRule::Year => match (full_year(value), value) {
                (Some(year), _) => Value::Int(year),
                (None, ValueRef::Bytes(_)) => {
                    Value::Decimal(coerce::to_decimal(context, value, result)?)
                }
                (None, value) => value.to_owned(),
            },
            CompareRule::Integer | CompareRule::Text(_) => value.to_owned(),
        })
    }

    /// The same for the value of a parameter, if that gives no warning.
    pub(crate) fn converted_cleanly<'a>(self, value: ValueRef<'a>) -> Option<ValueRef<'a>> {
        if self == CompareRule::Year {
            return full_year(value).map(ValueRef::Int);
        }
        let ValueRef::Bytes(text) = value else { return value.is_null().then_some(value) };
        let (value, clean) = self.of_text(text, temporal::COMPARE_RULES)?;
        clean.then(|| detached(&value))
    }

    /// The same without warnings.
    pub(crate) fn convert_quietly<'a>(
        self,
        context: &'a EvalContext,
        constant: &'a Expr,
    ) -> Result<ValueRef<'a>, SqlError> {
        let value = constant.eval(context, &NoColumns)?;
        if let (CompareRule::Year, Some(year)) = (self, full_year(value)) {
            return Ok(ValueRef::Int(year));
        }
        let ValueRef::Bytes(text) = value else { return Ok(value) };
        let converted = self.of_text(text, temporal::COMPARE_RULES);
        Ok(converted.map_or(value, |(value, _)| detached(&value)))
    }
}

impl CompareRule {
    /// Converts text that is compared as a number, for the warnings alone.
    #[cold]
    pub(crate) fn warn_of(
        self,
        context: &EvalContext,
        (value, result): (ValueRef<'_>, &ResultType),
    ) -> Result<(), SqlError> {
        match (self, value) {
            (CompareRule::Decimal, ValueRef::Bytes(_)) => {
                coerce::to_decimal(context, value, result).map(|_| ())
            }
            (CompareRule::Double, ValueRef::Bytes(_)) => {
                coerce::to_double(context, value, result).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

/// Static type of a converted constant.
fn type_of_prepared(value: &Value) -> types::ColumnType {
    match value {
        Value::Decimal(v) => {
            let precision = v.precision().max(v.integer_digits() + u32::from(v.scale()));
            ResultType::decimal(precision, u32::from(v.scale()), false, false).column_type
        }
        Value::Double(_) => types::ColumnType::double(),
        Value::DateTime(_) => types::ColumnType::temporal(TypeKind::DateTime, 6),
        _ => types::ColumnType::temporal(TypeKind::Time, 6),
    }
}

/// Compares integers of either sign type.
#[inline]
pub(crate) fn compare_integers(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    Some(match (a, b) {
        (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(&b),
        (ValueRef::UInt(a), ValueRef::UInt(b)) => a.cmp(&b),
        (ValueRef::Int(a), ValueRef::UInt(b)) => {
            u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b))
        }
        (ValueRef::UInt(a), ValueRef::Int(b)) => {
            u64::try_from(b).map_or(Ordering::Greater, |b| a.cmp(&b))
        }
        _ => return None,
    })
}

/// Compares two values of known types by a rule; `None` if one is NULL (or text that is no
/// date where dates are compared and it counts as NULL).
#[inline]
pub fn compare_values(
    context: &EvalContext,
    rule: CompareRule,
    left: (ValueRef<'_>, &ResultType),
    right: (ValueRef<'_>, &ResultType),
) -> Result<Option<Ordering>, SqlError> {
    let (a, b) = (left.0, right.0);
    if a.is_null() || b.is_null() {
        if let (ValueRef::Bytes(_), ValueRef::Null) = (a, b) {
            // It is converted before the second turns out to be NULL.
            rule.warn_of(context, left)?;
        }
        return Ok(None);
    }
    Ok(Some(match (rule, a, b) {
        (CompareRule::Integer, ..) if let Some(order) = compare_integers(a, b) => order,
        (CompareRule::Text(collation), ValueRef::Bytes(a), ValueRef::Bytes(b)) => {
            collation.info().compare(a, b)
        }
        (CompareRule::DateTime, ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
        (CompareRule::DateTime, ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
        (CompareRule::DateTime, ValueRef::Date(a), ValueRef::DateTime(b)) => {
            a.at_midnight().cmp(&b)
        }
        (CompareRule::DateTime, ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (CompareRule::Time, ValueRef::Time(a), ValueRef::Time(b)) => a.cmp(&b),
        (CompareRule::Decimal, ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(&b),
        (CompareRule::Double, ValueRef::Double(a), ValueRef::Double(b)) => order_doubles(a, b),
        _ => return compare_converted(context, rule, left, right),
    }))
}

/// Doubles in numeric order; NaN does not occur.
#[inline]
pub(crate) fn order_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

fn compare_converted(
    context: &EvalContext,
    rule: CompareRule,
    left: (ValueRef<'_>, &ResultType),
    right: (ValueRef<'_>, &ResultType),
) -> Result<Option<Ordering>, SqlError> {
    Ok(Some(match rule {
        CompareRule::Integer | CompareRule::Year => {
            let a = coerce::to_integer(context, left.0, left.1)?;
            let b = coerce::to_integer(context, right.0, right.1)?;
            a.cmp(&b)
        }
        CompareRule::Decimal => {
            let a = coerce::to_decimal(context, left.0, left.1)?;
            let b = coerce::to_decimal(context, right.0, right.1)?;
            a.cmp(&b)
        }
        CompareRule::Double => {
            let a = coerce::to_double(context, left.0, left.1)?;
            let b = coerce::to_double(context, right.0, right.1)?;
            order_doubles(a, b)
        }
        CompareRule::Near(digits) => {
            let a = coerce::to_double(context, left.0, left.1)?;
            let b = coerce::to_double(context, right.0, right.1)?;
            let least = 5.0 / 10f64.powi(i32::from(digits) + 1);
            if (a - b).abs() < least { Ordering::Equal } else { order_doubles(a, b) }
        }
        CompareRule::Whole => {
            let a = whole::exact_number(context, left.0, left.1)?;
            let b = whole::exact_number(context, right.0, right.1)?;
            whole::order(&a, &b)
        }
        CompareRule::Text(collation) => {
            let a = coerce::to_text(context, left.0, left.1);
            let b = coerce::to_text(context, right.0, right.1);
            collation.info().compare(a, b)
        }
        CompareRule::DateTime => {
            let a = temporal::datetime_to_compare(context, left.0, left.1)?;
            let b = temporal::datetime_to_compare(context, right.0, right.1)?;
            a.cmp(&b)
        }
        CompareRule::Time => {
            let a = temporal::time_to_compare(context, left.0, left.1)?;
            let b = temporal::time_to_compare(context, right.0, right.1)?;
            a.cmp(&b)
        }
    }))
}
