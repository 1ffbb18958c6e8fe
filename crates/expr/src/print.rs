//! Expressions as text, as error messages and EXPLAIN show them.

use crate::builder::HEX_DIGITS;
use crate::coerce::printable;
use crate::expression::{Expr, ExprKind, Literal, LiteralForm, Test};
use std::fmt::{self, Display, Formatter};
use types::{TypeKind, Value};

impl Display for Expr {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        print(self, formatter)
    }
}

/// Binding strength of an expression's outermost operator; operands that bind weaker are put
/// in parentheses.
fn strength(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Assign(..) => 0,
        ExprKind::Or(_) => 1,
        ExprKind::Xor(..) => 2,
        ExprKind::And(_) => 3,
        ExprKind::Not(_) => 4,
        ExprKind::Between { .. } | ExprKind::Case { .. } => 5,
        ExprKind::Compare { .. }
        | ExprKind::CompareRows { .. }
        | ExprKind::Is { .. }
        | ExprKind::Like { .. }
        | ExprKind::In { .. } => 6,
        ExprKind::Call { function, .. } => match function.name() {
            "|" => 7,
            "&" => 8,
            "<<" | ">>" => 9,
            "^" => 12,
            "-" | "~" => 13,
            _ => 20,
        },
        ExprKind::Arithmetic { operator, .. } => match operator.symbol() {
            "+" | "-" => 10,
            _ => 11,
        },
        ExprKind::DateArithmetic { .. } => 10,
        _ => 20,
    }
}

fn operand(expr: &Expr, least: u8, formatter: &mut Formatter<'_>) -> fmt::Result {
    if strength(expr) < least { write!(formatter, "({expr})") } else { write!(formatter, "{expr}") }
}

fn infix(
    left: &Expr,
    symbol: &str,
    right: &Expr,
    own: u8,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    operand(left, own, formatter)?;
    write!(formatter, " {symbol} ")?;
    operand(right, own + 1, formatter)
}

fn list(items: &[Expr], separator: &str, least: u8, formatter: &mut Formatter<'_>) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            formatter.write_str(separator)?;
        }
        operand(item, least, formatter)?;
    }
    Ok(())
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

fn print(expr: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    let own = strength(expr);
    match &expr.kind {
        ExprKind::Literal(literal) => print_literal(literal, expr, formatter),
        ExprKind::Column { name, .. } => formatter.write_str(name),
        ExprKind::Parameter(_) => formatter.write_str("?"),
        ExprKind::UserVariable(name) => write!(formatter, "@`{name}`"),
        ExprKind::Assign(name, value) => write!(formatter, "@`{name}`:={value}"),
        ExprKind::Row(items) => {
            formatter.write_str("(")?;
            list(items, ",", 0, formatter)?;
            formatter.write_str(")")
        }
        ExprKind::Not(inner) => {
            formatter.write_str("!")?;
            operand(inner, 13, formatter)
        }
        ExprKind::And(items) => list(items, " and ", own, formatter),
        ExprKind::Or(items) => list(items, " or ", own, formatter),
        ExprKind::Xor(left, right) => infix(left, "xor", right, own, formatter),
        ExprKind::Is { operand: inner, test, negated } => {
            operand(inner, own + 1, formatter)?;
            let word = match test {
                Test::Null => "null",
                Test::True => "true",
                Test::False => "false",
            };
            write!(formatter, " is{} {word}", not(*negated))
        }
        ExprKind::Compare { operator, left, right, .. }
        | ExprKind::CompareRows { operator, left, right, .. } => {
            infix(left, operator.symbol(), right, own, formatter)
        }
        ExprKind::Between { .. } | ExprKind::In { .. } | ExprKind::Like { .. } => {
            print_predicate(expr, own, formatter)
        }
        ExprKind::Arithmetic { operator, left, right } => {
            infix(left, operator.symbol(), right, own, formatter)
        }
        ExprKind::DateArithmetic { base, amount, unit, subtract } => {
            operand(base, own, formatter)?;
            let sign = if *subtract { "-" } else { "+" };
            write!(formatter, " {sign} interval {amount} {}", unit.name())
        }
        ExprKind::Case { operand: subject, branches, otherwise } => {
            let subject = subject.as_ref().map(|(subject, _)| subject.as_ref());
            print_case(subject, branches, otherwise.as_deref(), formatter)
        }
        ExprKind::Cast { operand: inner, .. } => print_cast(expr, inner, formatter),
        ExprKind::ConvertText(inner) => {
            let target = expr.result.collation();
            let same =
                inner.result.is_string() && inner.result.collation().charset() == target.charset();
            if same {
                write!(formatter, "{inner} collate {}", target.name())
            } else {
                write!(formatter, "convert({inner} using {})", target.charset().name())
            }
        }
        ExprKind::UnitCall { function, unit, arguments } => {
            print_unit_call(function.name(), unit.name(), arguments, formatter)
        }
        ExprKind::Call { function, arguments } => {
            print_call(function.name(), arguments, own, formatter)
        }
        ExprKind::Converted { original, .. } => print(original, formatter),
        ExprKind::External(external) => formatter.write_str(&external.print()),
    }
}

fn print_call(
    name: &str,
    arguments: &[Expr],
    own: u8,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    match (name, arguments) {
        ("|" | "&" | "^" | "<<" | ">>", [left, right]) => infix(left, name, right, own, formatter),
        ("-" | "~", [inner]) => {
            formatter.write_str(name)?;
            operand(inner, own, formatter)
        }
        _ => {
            // The server has one name for both.
            let name = if name == "length" { "octet_length" } else { name };
            write!(formatter, "{name}(")?;
            list(arguments, ",", 0, formatter)?;
            formatter.write_str(")")
        }
    }
}

fn print_literal(literal: &Literal, expr: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    match &literal.value {
        Value::Null => formatter.write_str("NULL"),
        Value::Int(v) if literal.form == LiteralForm::Boolean => {
            formatter.write_str(if *v == 0 { "0" } else { "1" })
        }
        Value::UInt(number) if literal.form == LiteralForm::Hex => {
            let digits = expr.result.column_type.precision;
            let bytes = HEX_DIGITS.iter().position(|d| *d == digits).unwrap_or(1);
            write!(formatter, "0x{number:0width$x}", width = 2 * bytes)
        }
        Value::Double(number) if literal.form == LiteralForm::Plain => {
            let length = expr.result.column_type.length as usize;
            match with_exponent(*number, length) {
                Some(text) => formatter.write_str(&text),
                None => write_value(literal, expr, formatter),
            }
        }
        Value::Bytes(bytes) if literal.form == LiteralForm::Hex => {
            formatter.write_str("0x")?;
            bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
        }
        Value::Bytes(bytes) => {
            write!(formatter, "'{}'", printable(bytes).replace('\'', "\\'"))
        }
        _ => write_value(literal, expr, formatter),
    }
}

/// A number with an exponent as it was most likely written, in so many characters; `None` if it
/// cannot have been.
fn with_exponent(number: f64, length: usize) -> Option<String> {
    let shortest = format!("{number:e}");
    let zeros = length.checked_sub(shortest.len())?;
    let (mantissa, exponent) = shortest.split_once('e')?;
    match (zeros, mantissa.contains('.')) {
        (0, _) => Some(shortest),
        (1..4, true) => Some(format!("{mantissa}{:0<zeros$}e{exponent}", "")),
        (2..4, false) => Some(format!("{mantissa}.{:0<rest$}e{exponent}", "", rest = zeros - 1)),
        _ => None,
    }
}

/// A value that needs no more than its text, and the word of its type.
fn write_value(literal: &Literal, expr: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    let column_type = &expr.result.column_type;
    let text = types::text::to_text(literal.value.as_ref(), column_type, types::TimeZone::System);
    let text = String::from_utf8_lossy(&text);
    match &literal.value {
        Value::Date(_) => write!(formatter, "DATE'{text}'"),
        Value::Time(_) => write!(formatter, "TIME'{text}'"),
        Value::DateTime(_) | Value::Timestamp(_) => write!(formatter, "TIMESTAMP'{text}'"),
        _ => formatter.write_str(&text),
    }
}

fn print_cast(expr: &Expr, inner: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    let column_type = &expr.result.column_type;
    write!(formatter, "cast({inner} as ")?;
    match column_type.kind {
        kind if kind.is_integer() => {
            formatter.write_str(if column_type.unsigned { "unsigned" } else { "signed" })?;
        }
        TypeKind::Decimal => {
            write!(formatter, "decimal({},{})", column_type.precision, column_type.scale)?;
        }
        TypeKind::Double => formatter.write_str("double")?,
        TypeKind::Float => formatter.write_str("float")?,
        TypeKind::Date => formatter.write_str("date")?,
        TypeKind::Time | TypeKind::DateTime => {
            let name = if column_type.kind == TypeKind::Time { "time" } else { "datetime" };
            formatter.write_str(name)?;
            if column_type.scale > 0 {
                write!(formatter, "({})", column_type.scale)?;
            }
        }
        TypeKind::VarBinary => write!(formatter, "char({}) charset binary", column_type.length)?,
        _ => {
            let charset = column_type.collation.charset().name();
            write!(formatter, "char({}) charset {charset}", column_type.length)?;
        }
    }
    formatter.write_str(")")
}

/// BETWEEN, IN and LIKE.
fn print_predicate(expr: &Expr, own: u8, formatter: &mut Formatter<'_>) -> fmt::Result {
    match &expr.kind {
        ExprKind::Between { operand: inner, low, high, negated, .. } => {
            operand(inner, own + 1, formatter)?;
            write!(formatter, "{} between ", not(*negated))?;
            operand(low, own + 1, formatter)?;
            formatter.write_str(" and ")?;
            operand(high, own + 1, formatter)
        }
        ExprKind::In { operand: inner, list: candidates, negated } => {
            operand(inner, own + 1, formatter)?;
            write!(formatter, "{} in (", not(*negated))?;
            for (i, (candidate, _)) in candidates.iter().enumerate() {
                write!(formatter, "{}{candidate}", if i > 0 { "," } else { "" })?;
            }
            formatter.write_str(")")
        }
        ExprKind::Like { operand: inner, pattern, negated, .. } => {
            operand(inner, own + 1, formatter)?;
            write!(formatter, "{} like ", not(*negated))?;
            operand(pattern, own + 1, formatter)
        }
        _ => Ok(()),
    }
}

fn print_case(
    subject: Option<&Expr>,
    branches: &[(Expr, Expr)],
    otherwise: Option<&Expr>,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    formatter.write_str("case ")?;
    if let Some(subject) = subject {
        write!(formatter, "{subject} ")?;
    }
    for (when, then) in branches {
        write!(formatter, "when {when} then {then} ")?;
    }
    if let Some(otherwise) = otherwise {
        write!(formatter, "else {otherwise} ")?;
    }
    formatter.write_str("end")
}

fn print_unit_call(
    name: &str,
    unit: &str,
    arguments: &[Expr],
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    if name == "extract" {
        write!(formatter, "extract({unit} from ")?;
    } else {
        write!(formatter, "{name}({},", unit.to_uppercase())?;
    }
    list(arguments, ",", 0, formatter)?;
    formatter.write_str(")")
}
