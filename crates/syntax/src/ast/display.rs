//! Expressions as text, every operator in its own parentheses: what tests and plan trees show.

use super::*;
use std::fmt::{self, Display, Formatter};

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Default(Some(column)) => write!(f, "DEFAULT({column})"),
            Self::Column(column) => column.fmt(f),
            Self::Parameter(number) => write!(f, "?{number}"),
            Self::UserVariable(name) => write!(f, "@{name}"),
            Self::AssignUserVariable(name, value) => write!(f, "(@{name} := {value})"),
            Self::SystemVariable(variable) => variable.fmt(f),
            Self::Unary(operator, operand) => write!(f, "({} {operand})", operator.symbol()),
            Self::Binary(operator, left, right) => {
                write!(f, "({left} {} {right})", operator.symbol())
            }
            Self::Logical(operator, operands) => {
                let word = if *operator == LogicalOperator::And { "AND" } else { "OR" };
                f.write_str("(")?;
                for (position, operand) in operands.iter().enumerate() {
                    if position > 0 {
                        write!(f, " {word} ")?;
                    }
                    operand.fmt(f)?;
                }
                f.write_str(")")
            }
            Self::Case { operand, branches, otherwise } => {
                fmt_case(f, operand.as_deref(), branches, otherwise.as_deref())
            }
            Self::Cast { operand, target } => write!(f, "CAST({operand} AS {target})"),
            Self::ConvertUsing { operand, charset } => {
                write!(f, "CONVERT({operand} USING {charset})")
            }
            Self::Collate { operand, collation } => write!(f, "({operand} COLLATE {collation})"),
            Self::Function(call) => {
                if let Some(schema) = &call.schema {
                    write!(f, "{schema}.")?;
                }
                write!(f, "{}({})", call.name.to_ascii_lowercase(), List(&call.arguments))
            }
            Self::Aggregate(call) => call.fmt(f),
            Self::Window(call) => {
                write!(f, "{} OVER ", call.function)?;
                match &call.name {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:?}", call.window),
                }
            }
            Self::DateArithmetic { base, amount, unit, subtract } => {
                let sign = if *subtract { '-' } else { '+' };
                write!(f, "({base} {sign} INTERVAL {amount} {})", unit.word())
            }
            Self::Unit(unit) => f.write_str(unit.word()),
            Self::Row(items) => write!(f, "ROW({})", List(items)),
            Self::Default(_) => f.write_str("DEFAULT"),
            Self::Values(column) => write!(f, "VALUES({column})"),
            Self::Match { columns, against, mode } => {
                write!(f, "MATCH({}) AGAINST({against} {mode})", List(columns))
            }
            Self::SequenceValue { sequence, previous } => {
                let word = if *previous { "PREVIOUS" } else { "NEXT" };
                write!(f, "{word} VALUE FOR {sequence}")
            }
            predicate => predicate.fmt_predicate(f),
        }
    }
}

fn fmt_case(
    f: &mut Formatter<'_>,
    operand: Option<&Expression>,
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
) -> fmt::Result {
    f.write_str("CASE")?;
    if let Some(operand) = operand {
        write!(f, " {operand}")?;
    }
    for (condition, value) in branches {
        write!(f, " WHEN {condition} THEN {value}")?;
    }
    if let Some(otherwise) = otherwise {
        write!(f, " ELSE {otherwise}")?;
    }
    f.write_str(" END")
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

impl Expression {
    fn fmt_predicate(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::In { operand, list, negated } => {
                write!(f, "({operand} {}IN ({}))", not(*negated), List(list))
            }
            Self::InSubquery { operand, query, negated } => {
                write!(f, "({operand} {}IN ({query:?}))", not(*negated))
            }
            Self::Between { operand, low, high, negated } => {
                write!(f, "({operand} {}BETWEEN {low} AND {high})", not(*negated))
            }
            Self::Like { operand, pattern, escape, negated } => {
                write!(f, "({operand} {}LIKE {pattern}", not(*negated))?;
                if let Some(escape) = escape {
                    write!(f, " ESCAPE {escape}")?;
                }
                f.write_str(")")
            }
            Self::Regexp { operand, pattern, negated } => {
                write!(f, "({operand} {}REGEXP {pattern})", not(*negated))
            }
            Self::Is { operand, test, negated } => {
                write!(f, "({operand} IS {}{})", not(*negated), test.word())
            }
            Self::Subquery(query) => write!(f, "({query:?})"),
            Self::Exists(query) => write!(f, "EXISTS({query:?})"),
            Self::Quantified { operand, operator, all, query } => {
                let word = if *all { "ALL" } else { "ANY" };
                write!(f, "({operand} {} {word} ({query:?}))", operator.symbol())
            }
            _ => Ok(()),
        }
    }
}

/// Items with commas between them.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, item) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Bytes as a quoted string; bytes outside of UTF-8 are escaped.
struct Quoted<'a>(&'a [u8]);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("'")?;
        for chunk in self.0.utf8_chunks() {
            f.write_str(&chunk.valid().replace('\'', "''"))?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        f.write_str("'")
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(true) => f.write_str("TRUE"),
            Self::Boolean(false) => f.write_str("FALSE"),
            Self::Integer(value) => value.fmt(f),
            Self::Decimal(text) | Self::Float(text) => f.write_str(text),
            Self::String { bytes, charset } => {
                if let Some(charset) = charset {
                    write!(f, "_{charset}")?;
                }
                Quoted(bytes).fmt(f)
            }
            Self::Hex { bytes, number, charset } => {
                if let Some(charset) = charset {
                    write!(f, "_{charset}")?;
                }
                f.write_str(if *number { "0x" } else { "x'" })?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(if *number { "" } else { "'" })
            }
            Self::Bits(bytes) => {
                f.write_str("0b")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:08b}"))
            }
            Self::Date(text) => write!(f, "DATE'{text}'"),
            Self::Time(text) => write!(f, "TIME'{text}'"),
            Self::Timestamp(text) => write!(f, "TIMESTAMP'{text}'"),
            Self::Escaped(escape, text) => {
                f.write_str(match escape {
                    OdbcEscape::Date => "{d ",
                    OdbcEscape::Time => "{t ",
                    OdbcEscape::Timestamp => "{ts ",
                })?;
                Quoted(text.as_bytes()).fmt(f)?;
                f.write_str("}")
            }
        }
    }
}

impl Display for ColumnName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        if let Some(table) = &self.table {
            write!(f, "{table}.")?;
        }
        f.write_str(&self.name)
    }
}

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.name)
    }
}

impl Display for SystemVariable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.scope {
            VariableScope::Default => "@@",
            VariableScope::Session => "@@session.",
            VariableScope::Global => "@@global.",
        })?;
        if let Some(instance) = &self.instance {
            write!(f, "{instance}.")?;
        }
        f.write_str(&self.name)
    }
}

impl Display for AggregateCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.function.name())?;
        f.write_str("(")?;
        if self.distinct {
            f.write_str("distinct ")?;
        }
        if self.arguments.is_empty() {
            f.write_str("*")?;
        }
        List(&self.arguments).fmt(f)?;
        for (position, item) in self.order_by.iter().enumerate() {
            f.write_str(if position == 0 { " order by " } else { ", " })?;
            write!(f, "{}{}", item.expression, if item.descending { " desc" } else { "" })?;
        }
        if let Some(separator) = &self.separator {
            write!(f, " separator {}", Quoted(separator))?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " {limit:?}")?;
        }
        f.write_str(")")
    }
}

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{:?}", self.kind).to_ascii_lowercase())?;
        match (self.length, self.scale) {
            (Some(length), Some(scale)) => write!(f, "({length},{scale})")?,
            (Some(length), None) => write!(f, "({length})")?,
            _ => {}
        }
        for (position, member) in self.members.iter().enumerate() {
            f.write_str(if position == 0 { "(" } else { "," })?;
            Quoted(member).fmt(f)?;
        }
        if !self.members.is_empty() {
            f.write_str(")")?;
        }
        for (given, word) in
            [(self.unsigned, " unsigned"), (self.zerofill, " zerofill"), (self.binary, " binary")]
        {
            if given {
                f.write_str(word)?;
            }
        }
        if let Some(charset) = &self.charset {
            write!(f, " charset {charset}")?;
        }
        if let Some(collation) = &self.collation {
            write!(f, " collate {collation}")?;
        }
        Ok(())
    }
}

impl UnaryOperator {
    /// As written in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Minus => "-",
            Self::Plus => "+",
            Self::Not => "NOT",
            Self::BitNot => "~",
        }
    }
}

impl BinaryOperator {
    /// As written in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Xor => "XOR",
            Self::Equal => "=",
            Self::NullSafeEqual => "<=>",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::BitOr => "|",
            Self::BitAnd => "&",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::IntegerDivide => "DIV",
            Self::Modulo => "%",
            Self::BitXor => "^",
            Self::Concat => "||",
            Self::SoundsLike => "SOUNDS LIKE",
        }
    }
}

impl IsTest {
    /// As written in SQL.
    pub fn word(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::True => "TRUE",
            Self::False => "FALSE",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl AggregateFunction {
    /// MariaDB's canonical name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Average => "avg",
            Self::Minimum => "min",
            Self::Maximum => "max",
            Self::GroupConcat => "group_concat",
            Self::StandardDeviation => "std",
            Self::SampleStandardDeviation => "stddev_samp",
            Self::Variance => "variance",
            Self::SampleVariance => "var_samp",
            Self::BitAnd => "bit_and",
            Self::BitOr => "bit_or",
            Self::BitXor => "bit_xor",
            Self::JsonArray => "json_arrayagg",
            Self::JsonObject => "json_objectagg",
        }
    }
}

/// Units with their words, singular first.
const UNITS: [(IntervalUnit, &str); 20] = [
    (IntervalUnit::Microsecond, "MICROSECOND"),
    (IntervalUnit::Second, "SECOND"),
    (IntervalUnit::Minute, "MINUTE"),
    (IntervalUnit::Hour, "HOUR"),
    (IntervalUnit::Day, "DAY"),
    (IntervalUnit::Week, "WEEK"),
    (IntervalUnit::Month, "MONTH"),
    (IntervalUnit::Quarter, "QUARTER"),
    (IntervalUnit::Year, "YEAR"),
    (IntervalUnit::SecondMicrosecond, "SECOND_MICROSECOND"),
    (IntervalUnit::MinuteMicrosecond, "MINUTE_MICROSECOND"),
    (IntervalUnit::MinuteSecond, "MINUTE_SECOND"),
    (IntervalUnit::HourMicrosecond, "HOUR_MICROSECOND"),
    (IntervalUnit::HourSecond, "HOUR_SECOND"),
    (IntervalUnit::HourMinute, "HOUR_MINUTE"),
    (IntervalUnit::DayMicrosecond, "DAY_MICROSECOND"),
    (IntervalUnit::DaySecond, "DAY_SECOND"),
    (IntervalUnit::DayMinute, "DAY_MINUTE"),
    (IntervalUnit::DayHour, "DAY_HOUR"),
    (IntervalUnit::YearMonth, "YEAR_MONTH"),
];

impl IntervalUnit {
    /// As written in SQL.
    pub fn word(self) -> &'static str {
        UNITS.iter().find(|(unit, _)| *unit == self).map_or("", |(_, word)| *word)
    }

    /// By its word in any case, with or without the `SQL_TSI_` of ODBC.
    pub fn from_word(word: &str) -> Option<Self> {
        let word = match word.get(..8) {
            Some(prefix) if prefix.eq_ignore_ascii_case("SQL_TSI_") => &word[8..],
            _ => word,
        };
        UNITS.iter().find(|(_, name)| name.eq_ignore_ascii_case(word)).map(|(unit, _)| *unit)
    }
}
