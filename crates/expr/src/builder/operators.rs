//! Arithmetic and bit operators: their result types.

use super::{Builder, scalar};
use crate::expression::{ArithmeticOperator, BitOperator, Expr, ExprKind, Literal, LiteralForm};
use crate::functions::read_number::{MOMENT_NUMBER, is_moment_text, is_text_extreme};
use crate::functions::{self, Nature};
use crate::result_type::ResultType;
use types::column_type::SCALE_NOT_FIXED;
use types::temporal::IntervalUnit;
use types::{ColumnType, SqlError, SqlMode, TypeKind, Value, codes};

/// As what an arithmetic operation computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Domain {
    /// 64 bit integers.
    Integer,
    /// DECIMAL.
    Decimal,
    /// DOUBLE.
    Double,
}

impl Domain {
    /// The domain that an operand brings.
    pub(crate) fn of(result: &ResultType) -> Self {
        let column_type = &result.column_type;
        match column_type.kind {
            kind if kind.is_integer() => Domain::Integer,
            TypeKind::Year | TypeKind::Bit | TypeKind::Enum | TypeKind::Set => Domain::Integer,
            TypeKind::Decimal => Domain::Decimal,
            kind if kind.is_temporal() && column_type.scale > 0 => Domain::Decimal,
            kind if kind.is_temporal() => Domain::Integer,
            _ if result.is_hex => Domain::Integer,
            _ => Domain::Double,
        }
    }

    /// The domain of an expression; hexadecimal literals count as integers.
    pub(crate) fn of_expr(expr: &Expr) -> Self {
        if expr.is_hex_literal() { Domain::Integer } else { Self::of(&expr.result) }
    }

    /// The wider of two.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Domain::Double, _) | (_, Domain::Double) => Domain::Double,
            (Domain::Decimal, _) | (_, Domain::Decimal) => Domain::Decimal,
            _ => Domain::Integer,
        }
    }
}

/// The type of an integer result of so many digits.
fn integer_result(precision: u32, unsigned: bool, nullable: bool) -> ResultType {
    let length = precision + u32::from(!unsigned);
    let kind = if length >= 10 { TypeKind::BigInt } else { TypeKind::Int };
    let mut column_type = ColumnType::integer(kind, unsigned);
    column_type.length = length;
    column_type.precision = precision.min(255) as u8;
    ResultType::of(column_type, nullable)
}

/// Whether a sum or product of integers is unsigned: one side is, of dates and times both.
fn is_unsigned(left: &ResultType, right: &ResultType) -> bool {
    let sides = [left.column_type, right.column_type];
    match sides.iter().any(|side| side.kind.is_temporal()) {
        true => sides.iter().all(|side| side.unsigned),
        false => sides.iter().any(|side| side.unsigned),
    }
}

/// A date or time without digits after the point makes a whole number of a DECIMAL without.
fn is_whole_beside_date(left: &Expr, right: &Expr) -> bool {
    let sides = [&left.result, &right.result];
    sides.iter().any(|side| side.column_type.kind.is_temporal())
        && sides.iter().all(|side| side.decimal_scale() == 0)
}

/// Characters that a whole number of 64 bits is taken to have at most.
const INTEGER_DIGITS_MAX: u32 = 21;

/// The type of what is divided by DIV: the opposite of a DOUBLE is as long as the DOUBLE itself.
fn dividend_type(left: &Expr) -> ResultType {
    let mut positive = left;
    while let ExprKind::Call { function, arguments } = &positive.kind
        && std::ptr::eq(*function, &functions::NEGATE)
        && matches!(arguments[0].result.column_type.kind, TypeKind::Float | TypeKind::Double)
    {
        positive = &arguments[0];
    }
    let mut result = left.result;
    if !std::ptr::eq(positive, left) {
        result.column_type.length = positive.result.text_length();
    }
    result
}

/// The type of `left DIV ...`.
fn quotient_type(left: &ResultType, unsigned: bool) -> ResultType {
    let length = match Domain::of(left) {
        Domain::Double if left.decimals() < SCALE_NOT_FIXED && left.decimals() > 0 => {
            left.text_length().saturating_sub(u32::from(left.decimals()))
        }
        Domain::Double => left.text_length(),
        _ => left.integer_digits(),
    };
    let length = length.min(INTEGER_DIGITS_MAX);
    let mut result = ResultType::integer_of_length(length.max(1), unsigned, true);
    // What is computed with it has a place for the sign within the length.
    let digits = length.saturating_sub(u32::from(!unsigned));
    result.column_type.precision = digits.clamp(1, 20) as u8;
    result
}

impl Builder<'_> {
    /// `left operator right`.
    pub fn arithmetic(
        &self,
        operator: ArithmeticOperator,
        left: Expr,
        right: Expr,
    ) -> Result<Expr, SqlError> {
        scalars(operator.symbol(), &left, &right)?;
        let (left, right) = (number_of_hex(left), number_of_hex(right));
        let mut domain = Domain::of_expr(&left).join(Domain::of_expr(&right));
        match operator {
            ArithmeticOperator::Divide if domain == Domain::Integer => domain = Domain::Decimal,
            ArithmeticOperator::IntegerDivide => domain = Domain::Integer,
            ArithmeticOperator::Add
            | ArithmeticOperator::Subtract
            | ArithmeticOperator::Multiply
                if domain == Domain::Decimal && is_whole_beside_date(&left, &right) =>
            {
                domain = Domain::Integer;
            }
            _ => {}
        }
        let of_left = match operator {
            ArithmeticOperator::IntegerDivide => dividend_type(&left),
            _ => left.result,
        };
        let result = self.arithmetic_type(operator, domain, &of_left, &right.result);
        let extreme = match operator {
            ArithmeticOperator::IntegerDivide => text_as_decimal,
            _ => text_as_double,
        };
        let (left, right) = (extreme(left), extreme(right));
        let kind = ExprKind::Arithmetic { operator, left: Box::new(left), right: Box::new(right) };
        Ok(Expr { kind, result })
    }

    fn arithmetic_type(
        &self,
        operator: ArithmeticOperator,
        domain: Domain,
        left: &ResultType,
        right: &ResultType,
    ) -> ResultType {
        use ArithmeticOperator::{Add, Divide, IntegerDivide, Modulo, Multiply, Subtract};
        let dividing = matches!(operator, Divide | IntegerDivide | Modulo);
        let nullable = left.nullable || right.nullable || dividing;
        let (precision_l, precision_r) = (left.decimal_precision(), right.decimal_precision());
        let (scale_l, scale_r) =
            (u32::from(left.decimal_scale()), u32::from(right.decimal_scale()));
        let (unsigned_l, unsigned_r) = (left.column_type.unsigned, right.column_type.unsigned);
        let unsigned = is_unsigned(left, right);
        let integer_digits = left.integer_digits().max(right.integer_digits());
        match (domain, operator) {
            (_, IntegerDivide) => quotient_type(left, unsigned_l || unsigned_r),
            (Domain::Double, Modulo) => {
                let mut result = self.double_type(operator, left, right, nullable);
                result.column_type.unsigned = unsigned_l;
                result
            }
            (Domain::Double, _) => self.double_type(operator, left, right, nullable),
            (Domain::Integer, Add | Subtract) => {
                let no_unsigned = operator == Subtract
                    && self.settings.sql_mode.contains(SqlMode::NO_UNSIGNED_SUBTRACTION);
                let mut result = integer_result(integer_digits + 1, unsigned, nullable);
                result.column_type.unsigned = unsigned && !no_unsigned;
                result
            }
            (Domain::Integer, Multiply) => {
                integer_result(precision_l + precision_r, unsigned, nullable)
            }
            (Domain::Integer, _) => {
                let precision = precision_l.max(precision_r);
                integer_result(precision, unsigned_l, nullable)
            }
            (Domain::Decimal, Add | Subtract) => {
                let scale = scale_l.max(scale_r);
                let unsigned = unsigned_l && unsigned_r;
                ResultType::decimal(integer_digits + 1 + scale, scale, unsigned, nullable)
            }
            (Domain::Decimal, Multiply) => ResultType::decimal(
                (precision_l + precision_r).min(u32::from(types::decimal::PRECISION_MAX)),
                scale_l + scale_r,
                unsigned_l && unsigned_r,
                nullable,
            ),
            (Domain::Decimal, Divide) => {
                let increment = u32::from(self.settings.div_precision_increment);
                let scale = (scale_l + increment).min(u32::from(types::decimal::SCALE_MAX));
                let precision = precision_l + scale_r + increment;
                ResultType::decimal(precision, scale, unsigned_l && unsigned_r, nullable)
            }
            (Domain::Decimal, _) => {
                let scale = scale_l.max(scale_r);
                let precision = precision_l.max(precision_r);
                ResultType::decimal(precision, scale, unsigned_l, nullable)
            }
        }
    }

    /// Type of a DOUBLE result: digits after the point are kept where both sides have them
    /// fixed.
    fn double_type(
        &self,
        operator: ArithmeticOperator,
        left: &ResultType,
        right: &ResultType,
        nullable: bool,
    ) -> ResultType {
        let scale = left.decimals().max(right.decimals()).min(SCALE_NOT_FIXED);
        let mut result = ResultType::double_of_scale(scale, nullable);
        if operator == ArithmeticOperator::Divide && scale < SCALE_NOT_FIXED {
            let increment = self.settings.div_precision_increment;
            let length = result.column_type.length + u32::from(increment);
            result = ResultType::double_of_scale(scale + increment, nullable);
            let own = left.text_length() + u32::from(scale + increment);
            let own = own.saturating_sub(u32::from(left.decimals())).max(1);
            result.column_type.length = own.min(length);
        }
        result
    }

    /// `-operand`.
    pub fn negate(&self, operand: Expr) -> Result<Expr, SqlError> {
        let operand = as_number(scalar(operand)?);
        if let Some(folded) = negated_literal(&operand) {
            return Ok(folded);
        }
        let is_truth = operand.result.is_truth;
        let mut expr = self.call_internal(&functions::NEGATE, vec![operand])?;
        expr.result.column_type.unsigned = false;
        expr.result.is_truth = is_truth;
        Ok(expr)
    }

    /// The number of a value of ENUM or SET, by which it is ordered.
    pub fn member_number(&self, operand: Expr) -> Result<Expr, SqlError> {
        self.call_internal(&functions::MEMBER_NUMBER, vec![operand])
    }

    /// `~operand`.
    pub fn bit_not(&self, operand: Expr) -> Result<Expr, SqlError> {
        self.call_internal(&functions::BIT_NOT, vec![as_bits(scalar(operand)?)])
    }

    /// `left operator right` on bits.
    pub fn bit(&self, operator: BitOperator, left: Expr, right: Expr) -> Result<Expr, SqlError> {
        let function = match operator {
            BitOperator::Or => &functions::BIT_OR,
            BitOperator::And => &functions::BIT_AND,
            BitOperator::Xor => &functions::BIT_XOR,
            BitOperator::ShiftLeft => &functions::SHIFT_LEFT,
            BitOperator::ShiftRight => &functions::SHIFT_RIGHT,
        };
        let operands = vec![as_bits(scalar(left)?), as_bits(scalar(right)?)];
        self.call_internal(function, operands)
    }

    /// `base ± INTERVAL amount unit`.
    pub fn date_arithmetic(
        &self,
        base: Expr,
        amount: Expr,
        unit: IntervalUnit,
        subtract: bool,
    ) -> Result<Expr, SqlError> {
        let (base, amount) = (scalar(base)?, scalar(amount)?);
        if base.result.is_json {
            return Err(SqlError::new(
                &codes::ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
                &[&base.result.type_name(), &"interval", &"date_add_interval"],
            ));
        }
        let result = functions::temporal_units::interval_result(self, &base, &amount, unit);
        let kind = ExprKind::DateArithmetic {
            base: Box::new(base),
            amount: Box::new(amount),
            unit,
            subtract,
        };
        Ok(Expr { kind, result })
    }

    /// A call of a function that has no name in SQL.
    pub(crate) fn call_internal(
        &self,
        function: &'static functions::Function,
        mut arguments: Vec<Expr>,
    ) -> Result<Expr, SqlError> {
        let result = function.resolve(self, &mut arguments)?;
        Ok(Expr { kind: ExprKind::Call { function, arguments }, result })
    }
}

/// 4078 if one of two operands is a row.
fn scalars(operation: &str, left: &Expr, right: &Expr) -> Result<(), SqlError> {
    let is_row = |expr: &Expr| matches!(expr.kind, ExprKind::Row(_));
    if !is_row(left) && !is_row(right) {
        return Ok(());
    }
    let name = |expr: &Expr| if is_row(expr) { "row" } else { expr.result.type_name() };
    Err(SqlError::new(
        &codes::ILLEGAL_PARAMETER_DATA_TYPES2_FOR_OPERATION,
        &[&name(left), &name(right), &operation],
    ))
}

/// Decimal digits of so many bytes of a hexadecimal literal.
pub(crate) const HEX_DIGITS: [u8; 9] = [0, 3, 5, 8, 10, 13, 15, 17, 20];

/// All hexadecimal literals of a list as numbers, and GREATEST and LEAST of texts too.
pub(crate) fn numbers_of_hex(arguments: &mut [Expr]) {
    for argument in arguments {
        if argument.is_hex_literal() || is_text_extreme(argument) || is_moment_text(argument) {
            *argument = as_number(argument.clone());
        }
    }
}

/// What counts otherwise in numeric context than its text does.
pub(crate) fn as_number(expr: Expr) -> Expr {
    text_as_double(number_of_hex(expr))
}

/// The same of an operand of bit operators, which take a DECIMAL.
fn as_bits(expr: Expr) -> Expr {
    text_as_decimal(number_of_hex(expr))
}

/// A text that is wanted as a number, or as a condition, and counts as another one than it says
/// (see `functions/read_number.rs`).
pub fn text_as_double(expr: Expr) -> Expr {
    match &expr {
        extreme if is_text_extreme(extreme) => {
            extreme_of(expr, ResultType::double(true), text_as_double)
        }
        moment if is_moment_text(moment) => {
            let scale = moment.result.decimals().min(31);
            number_of_moment(expr, ResultType::double_of_scale(scale, true))
        }
        _ => expr,
    }
}

/// The number of a date or time that is a text.
fn number_of_moment(expr: Expr, wanted: ResultType) -> Expr {
    let result = wanted.with_nullable(expr.result.nullable);
    let kind = ExprKind::Call { function: &MOMENT_NUMBER, arguments: vec![expr] };
    Expr { kind, result }
}

/// The same of a text that is wanted as a DECIMAL; also of GREATEST and LEAST that have a text.
pub(crate) fn text_as_decimal(expr: Expr) -> Expr {
    let has_text = |arguments: &[Expr]| arguments.iter().any(|it| it.result.is_string());
    match &expr.kind {
        ExprKind::Call { arguments, .. }
            if expr.nature() == Nature::Extreme
                && !expr.result.column_type.kind.is_temporal()
                && has_text(arguments) =>
        {
            let exact = ResultType::decimal(65, 30, false, true);
            extreme_of(expr, exact, text_as_decimal)
        }
        _ if is_moment_text(&expr) => {
            number_of_moment(expr, ResultType::decimal(20, 6, false, true))
        }
        _ => expr,
    }
}

/// GREATEST and LEAST of arguments of another type.
fn extreme_of(expr: Expr, wanted: ResultType, inner: fn(Expr) -> Expr) -> Expr {
    let ExprKind::Call { function, arguments } = expr.kind else { return expr };
    let number = |operand: Expr| {
        let result = wanted.with_nullable(operand.result.nullable);
        let operand = Box::new(inner(operand));
        Expr { kind: ExprKind::Cast { operand, pads: false, cuts: false, name: None }, result }
    };
    let arguments = arguments.into_iter().map(number).collect();
    let result = wanted.with_nullable(expr.result.nullable);
    Expr { kind: ExprKind::Call { function, arguments }, result }
}

/// A hexadecimal literal in numeric context is an unsigned integer.
pub fn number_of_hex(expr: Expr) -> Expr {
    match &expr.kind {
        ExprKind::Literal(Literal {
            value: Value::Bytes(bytes), form: LiteralForm::Hex, ..
        }) => {
            let value = crate::coerce::hex_number(bytes);
            let length = (bytes.len() as u32).max(1);
            let mut result = ResultType::integer_of_length(length, true, false);
            result.column_type.precision = HEX_DIGITS[length.min(8) as usize];
            let literal = Literal::new(Value::UInt(value), LiteralForm::Hex);
            Expr { kind: ExprKind::Literal(literal), result }
        }
        _ => expr,
    }
}

/// A literal number with its sign changed, or `None`.
fn negated_literal(operand: &Expr) -> Option<Expr> {
    let ExprKind::Literal(Literal { value, form: LiteralForm::Plain, written }) = &operand.kind
    else {
        return None;
    };
    let mut result = operand.result;
    let value = match value {
        Value::Int(v) if *v != i64::MIN => {
            result = integer_literal_type(-v);
            Value::Int(-v)
        }
        Value::UInt(v) if *v == 1 << 63 => {
            result = integer_literal_type(i64::MIN);
            Value::Int(i64::MIN)
        }
        Value::Decimal(v) if !v.is_zero() && !v.is_negative() => Value::Decimal(v.negated()),
        Value::Double(v) => {
            result.column_type.length += 1;
            Value::Double(-v)
        }
        _ => return None,
    };
    let mut literal = Literal::new(value, LiteralForm::Plain);
    literal.written = written.as_ref().map(|text| match text.strip_prefix('-') {
        Some(positive) => positive.into(),
        None => format!("-{text}").into(),
    });
    Some(Expr { kind: ExprKind::Literal(literal), result })
}

/// The type of an integer literal with its sign.
fn integer_literal_type(value: i64) -> ResultType {
    let digits = value.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
    let length = digits + u32::from(value < 0);
    let mut result = ResultType::integer_of_length(length, false, false);
    result.column_type.precision = digits as u8;
    result
}
