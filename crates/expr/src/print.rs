//! Expressions as text, as error messages and EXPLAIN show them.

use crate::builder::HEX_DIGITS;
use crate::coerce::printable;
use crate::expression::{Expr, ExprKind, Literal, LiteralForm, Test};
use std::fmt::{self, Display, Formatter};
use types::{Charset, TypeKind, Value};

impl Expr {
    /// Whether its text is not that of a name, a literal or a call, so that a DEFAULT shows it
    /// in parentheses.
    pub fn is_infix(&self) -> bool {
        matches!(self.kind, ExprKind::Cast { .. } | ExprKind::Case { .. }) || strength(self) < 20
    }
}

/// Names that functions are shown by, where they are called by another.
fn shown_name(name: &str) -> &str {
    match name {
        "length" => "octet_length",
        "character_length" => "char_length",
        "day" => "dayofmonth",
        "substring" | "mid" => "substr",
        "lower" => "lcase",
        "upper" => "ucase",
        "now" | "localtime" | "localtimestamp" => "current_timestamp",
        "current_date" => "curdate",
        "current_time" => "curtime",
        "schema" => "database",
        "session_user" | "system_user" => "user",
        name => name,
    }
}

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
        ExprKind::Not(inner) => match (negated(inner), &inner.kind) {
            (Some(shown), _) => strength(&shown),
            (None, ExprKind::Column { .. }) => 6,
            (None, _) => 13,
        },
        ExprKind::Between { .. } => 5,
        ExprKind::Compare { .. }
        | ExprKind::CompareRows { .. }
        | ExprKind::Is { .. }
        | ExprKind::Like { .. }
        | ExprKind::In { .. } => 6,
        ExprKind::Call { function, arguments } => match function.name() {
            "" => arguments.first().map_or(0, strength),
            "|" => 7,
            "&" => 8,
            "<<" | ">>" => 9,
            "^" => 12,
            "-" | "~" => 13,
            "regexp" | "isnull" => 6,
            "datediff" => 10,
            _ => 20,
        },
        ExprKind::ConvertText(inner) if is_collate(expr, inner) => 14,
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

/// Conditions of AND and OR: a column as one is shown as compared with zero.
fn conditions(
    items: &[Expr],
    separator: &str,
    least: u8,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            formatter.write_str(separator)?;
        }
        match item.kind {
            ExprKind::Column { .. } => write!(formatter, "{item} <> 0")?,
            _ => operand(item, least, formatter)?,
        }
    }
    Ok(())
}

fn print_not(inner: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    match (negated(inner), &inner.kind) {
        (Some(shown), _) => print(&shown, formatter),
        (None, ExprKind::Column { .. }) => write!(formatter, "{inner} = 0"),
        (None, _) => {
            formatter.write_str("!")?;
            operand(inner, 13, formatter)
        }
    }
}

/// The opposite of a condition where it has a form without NOT, as the server's parser makes it.
fn negated(expr: &Expr) -> Option<Expr> {
    use crate::operator::CompareOperator as C;
    let mut made = expr.clone();
    match &mut made.kind {
        ExprKind::Compare { operator, .. } => {
            *operator = match operator {
                C::Equal => C::NotEqual,
                C::NotEqual => C::Equal,
                C::Less => C::GreaterOrEqual,
                C::LessOrEqual => C::Greater,
                C::Greater => C::LessOrEqual,
                C::GreaterOrEqual => C::Less,
                C::NullSafeEqual => return None,
            }
        }
        ExprKind::Is { negated, .. }
        | ExprKind::Between { negated, .. }
        | ExprKind::In { negated, .. }
        | ExprKind::Like { negated, .. } => *negated = !*negated,
        ExprKind::And(items) | ExprKind::Or(items) => {
            let opposite = |item: Expr| {
                let result = item.result;
                let not = |item| Expr { kind: ExprKind::Not(Box::new(item)), result };
                negated(&item).unwrap_or_else(|| not(item))
            };
            let items = std::mem::take(items).into_iter().map(opposite).collect();
            let is_and = matches!(expr.kind, ExprKind::And(_));
            made.kind = if is_and { ExprKind::Or(items) } else { ExprKind::And(items) };
        }
        _ => return None,
    }
    Some(made)
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
        ExprKind::Not(inner) => print_not(inner, formatter),
        ExprKind::And(items) => conditions(items, " and ", own, formatter),
        ExprKind::Or(items) => conditions(items, " or ", own, formatter),
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
            let symbol = operator.symbol();
            let symbol = if symbol == "%" { "MOD" } else { symbol };
            infix(left, symbol, right, own, formatter)
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
        ExprKind::ConvertText(inner) | ExprKind::ConvertSafely(inner, _) => {
            let target = expr.result.collation();
            if is_collate(expr, inner) {
                operand(inner, own, formatter)?;
                write!(formatter, " collate {}", target.name())
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

/// Whether text only gets another collation of its character set.
fn is_collate(expr: &Expr, inner: &Expr) -> bool {
    let same = inner.result.collation().charset() == expr.result.collation().charset();
    inner.result.is_string() && same
}

fn print_call(
    name: &str,
    arguments: &[Expr],
    own: u8,
    formatter: &mut Formatter<'_>,
) -> fmt::Result {
    match (name, arguments) {
        ("", [inner]) => print(inner, formatter),
        ("|" | "&" | "^" | "<<" | ">>", [left, right]) => infix(left, name, right, own, formatter),
        ("regexp", [left, right]) => infix(left, name, right, own, formatter),
        ("-" | "~", [inner]) => {
            formatter.write_str(name)?;
            operand(inner, own, formatter)
        }
        ("date" | "time", [value]) => write!(formatter, "cast({value} as {name})"),
        ("isnull", [value]) => {
            operand(value, own + 1, formatter)?;
            formatter.write_str(" is null")
        }
        ("datediff", [left, right]) => {
            write!(formatter, "to_days({left}) - to_days({right})")
        }
        ("weekofyear", [value]) => write!(formatter, "week({value},3)"),
        ("round" | "yearweek", [value]) => write!(formatter, "{name}({value},0)"),
        ("instr", [text, needle]) => write!(formatter, "locate({needle},{text})"),
        ("timestamp", [value]) => write!(formatter, "cast({value} as datetime)"),
        ("trim" | "trim_leading" | "trim_trailing", [value, removed]) => {
            let side = name.strip_prefix("trim_").unwrap_or("both");
            write!(formatter, "trim({side} {removed} from {value})")
        }
        _ => {
            write!(formatter, "{}(", shown_name(name))?;
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
        Value::Double(_) if let Some(written) = &literal.written => formatter.write_str(written),
        Value::Bytes(bytes) if literal.form == LiteralForm::Hex => {
            formatter.write_str("0x")?;
            bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
        }
        Value::Bytes(bytes) => print_text(bytes, expr, formatter),
        _ => write_value(literal, expr, formatter),
    }
}

/// A string as it can be read again.
fn print_text(bytes: &[u8], expr: &Expr, formatter: &mut Formatter<'_>) -> fmt::Result {
    let column_type = &expr.result.column_type;
    let charset = column_type.collation.charset();
    if charset == Charset::Binary && column_type.unsigned {
        formatter.write_str("X'")?;
        bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02X}"))?;
        return formatter.write_str("'");
    }
    let mut converted = Vec::new();
    if charset.convert(bytes, Charset::Utf8mb4, &mut converted) > 0 || charset == Charset::Binary {
        converted = printable(bytes).into_bytes();
    }
    formatter.write_str("'")?;
    for character in String::from_utf8_lossy(&converted).chars() {
        match character {
            '\'' => formatter.write_str("\\'")?,
            '\\' if charset != Charset::Binary => formatter.write_str("\\\\")?,
            '\0' => formatter.write_str("\\0")?,
            '\n' => formatter.write_str("\\n")?,
            '\r' => formatter.write_str("\\r")?,
            '\x1a' => formatter.write_str("\\Z")?,
            character => write!(formatter, "{character}")?,
        }
    }
    formatter.write_str("'")
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
        _ => {
            formatter.write_str("char")?;
            let is_binary = column_type.kind == TypeKind::VarBinary;
            let bytes = u64::from(inner.result.collation().charset().max_bytes());
            let own = inner.result.characters() * if is_binary { bytes } else { 1 };
            if u64::from(column_type.length) != own {
                write!(formatter, "({})", column_type.length)?;
            }
            let charset = column_type.collation.charset().name();
            write!(formatter, " charset {}", if is_binary { "binary" } else { charset })?;
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
        ExprKind::Like { operand: inner, pattern, negated, escape, .. } => {
            operand(inner, own + 1, formatter)?;
            // Two blanks, as the server prints it.
            formatter.write_str(if *negated { "  not like " } else { " like " })?;
            operand(pattern, own + 1, formatter)?;
            match escape {
                Some(92) => Ok(()),
                None => formatter.write_str(" escape ''"),
                Some(code) => {
                    let escape = char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    let before = if escape == '\'' { "\\" } else { "" };
                    write!(formatter, " escape '{before}{escape}'")
                }
            }
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
