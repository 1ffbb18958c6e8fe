//! A Pratt parser of expressions.

use super::Fixture;
use expr::{
    ArithmeticOperator, BitOperator, Builder, CastTarget, CompareOperator, Expr, Settings, Test,
};
use types::temporal::IntervalUnit;
use types::{Charset, SqlError, collation};

/// Binds the expression in `text` over the fixture's columns.
pub fn parse(text: &str, fixture: &Fixture, settings: &Settings) -> Result<Expr, SqlError> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0, fixture, builder: Builder::new(settings) };
    let expr = parser.expression(0)?;
    assert!(parser.at == tokens.len(), "rest of {text}: {:?}", &tokens[parser.at..]);
    Ok(expr)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Number(String),
    Text(Vec<u8>),
    Hex(Vec<u8>, bool),
    Symbol(&'static str),
}

const SYMBOLS: &[&str] = &[
    "<=>", ":=", "<<", ">>", "<=", ">=", "<>", "!=", "&&", "||", "(", ")", ",", "+", "-", "*", "/",
    "%", "=", "<", ">", "|", "&", "^", "~", "!", "@",
];

fn hex(digits: &str) -> Vec<u8> {
    let padded = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_string() };
    (0..padded.len() / 2)
        .map(|i| u8::from_str_radix(&padded[2 * i..2 * i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

fn bits(digits: &str) -> Vec<u8> {
    let padded = format!("{digits:0>width$}", width = digits.len().div_ceil(8) * 8);
    padded
        .as_bytes()
        .chunks(8)
        .map(|chunk| chunk.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0')))
        .collect()
}

fn quoted(bytes: &[u8], at: &mut usize) -> Vec<u8> {
    let mut text = Vec::new();
    *at += 1;
    loop {
        match bytes[*at] {
            b'\'' if bytes.get(*at + 1) == Some(&b'\'') => {
                text.push(b'\'');
                *at += 2;
            }
            b'\'' => {
                *at += 1;
                return text;
            }
            b'\\' => {
                match bytes[*at + 1] {
                    b'n' => text.push(b'\n'),
                    b't' => text.push(b'\t'),
                    b'0' => text.push(0),
                    b'%' => text.extend(b"\\%"),
                    b'_' => text.extend(b"\\_"),
                    other => text.push(other),
                }
                *at += 2;
            }
            byte => {
                text.push(byte);
                *at += 1;
            }
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let rest = &text[at..];
        let byte = bytes[at];
        if byte == b' ' {
            at += 1;
        } else if byte == b'\'' {
            found.push(Token::Text(quoted(bytes, &mut at)));
        } else if let Some(digits) = rest.strip_prefix("0x") {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
            found.push(Token::Hex(hex(&digits[..end]), true));
            at += 2 + end;
        } else if rest.starts_with("x'") || rest.starts_with("b'") {
            at += 1;
            let digits = quoted(bytes, &mut at);
            let digits = std::str::from_utf8(&digits).expect("digits");
            let token = if byte == b'x' {
                Token::Hex(hex(digits), false)
            } else {
                Token::Hex(bits(digits), true)
            };
            found.push(token);
        } else if byte.is_ascii_digit()
            || (byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            let start = at;
            while at < bytes.len()
                && (bytes[at].is_ascii_digit()
                    || bytes[at] == b'.'
                    || bytes[at] == b'e'
                    || (matches!(bytes[at], b'-' | b'+') && bytes[at - 1] == b'e'))
            {
                at += 1;
            }
            found.push(Token::Number(text[start..at].to_string()));
        } else if byte.is_ascii_alphabetic() || byte == b'_' {
            let start = at;
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            found.push(Token::Word(text[start..at].to_ascii_lowercase()));
        } else {
            let symbol = SYMBOLS.iter().find(|s| rest.starts_with(**s)).expect("a symbol");
            found.push(Token::Symbol(symbol));
            at += symbol.len();
        }
    }
    found
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    fixture: &'a Fixture,
    builder: Builder<'a>,
}

type Parsed = Result<Expr, SqlError>;

impl Parser<'_> {
    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Symbol(s)) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str) {
        assert!(self.symbol(symbol), "{symbol} expected at {:?}", self.tokens.get(self.at));
    }

    fn name(&mut self) -> String {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                word.clone()
            }
            other => panic!("a word expected, not {other:?}"),
        }
    }

    fn number(&mut self) -> u32 {
        match self.tokens.get(self.at) {
            Some(Token::Number(number)) => {
                self.at += 1;
                number.parse().expect("a number")
            }
            other => panic!("a number expected, not {other:?}"),
        }
    }

    fn expression(&mut self, least: u8) -> Parsed {
        let mut left = self.prefix()?;
        loop {
            let start = self.at;
            match self.infix(left, least)? {
                (expr, true) => left = expr,
                (expr, false) => {
                    self.at = start;
                    return Ok(expr);
                }
            }
        }
    }

    /// One operator and its right side, if it binds at least as strongly as asked.
    fn infix(&mut self, left: Expr, least: u8) -> Result<(Expr, bool), SqlError> {
        let builder = self.builder;
        let token = match self.tokens.get(self.at) {
            Some(Token::Symbol(symbol)) => (*symbol).to_string(),
            Some(Token::Word(word)) => word.clone(),
            _ => return Ok((left, false)),
        };
        self.at += 1;
        let strength = match token.as_str() {
            "or" | "||" => 1,
            "xor" => 2,
            "and" | "&&" => 3,
            "between" | "not" => 5,
            "=" | "<=>" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "like" | "in" => 6,
            "|" => 7,
            "&" => 8,
            "<<" | ">>" => 9,
            "+" | "-" => 10,
            "*" | "/" | "div" | "%" | "mod" => 11,
            "^" => 12,
            "collate" => 14,
            _ => return Ok((left, false)),
        };
        if strength < least {
            return Ok((left, false));
        }
        let compare = |symbol: &str| match symbol {
            "=" => Some(CompareOperator::Equal),
            "<=>" => Some(CompareOperator::NullSafeEqual),
            "<>" | "!=" => Some(CompareOperator::NotEqual),
            "<" => Some(CompareOperator::Less),
            "<=" => Some(CompareOperator::LessOrEqual),
            ">" => Some(CompareOperator::Greater),
            ">=" => Some(CompareOperator::GreaterOrEqual),
            _ => None,
        };
        let arithmetic = |symbol: &str| match symbol {
            "+" => Some(ArithmeticOperator::Add),
            "-" => Some(ArithmeticOperator::Subtract),
            "*" => Some(ArithmeticOperator::Multiply),
            "/" => Some(ArithmeticOperator::Divide),
            "div" => Some(ArithmeticOperator::IntegerDivide),
            "%" | "mod" => Some(ArithmeticOperator::Modulo),
            _ => None,
        };
        let bit = |symbol: &str| match symbol {
            "|" => Some(BitOperator::Or),
            "&" => Some(BitOperator::And),
            "^" => Some(BitOperator::Xor),
            "<<" => Some(BitOperator::ShiftLeft),
            ">>" => Some(BitOperator::ShiftRight),
            _ => None,
        };
        let expr = match token.as_str() {
            "not" | "between" | "like" | "in" => {
                let negated = token == "not";
                let word = if negated { self.name() } else { token };
                self.predicate(left, &word, negated)?
            }
            "is" => {
                let negated = self.word("not");
                let test = match self.name().as_str() {
                    "true" => Test::True,
                    "false" => Test::False,
                    _ => Test::Null,
                };
                builder.is(left, test, negated)?
            }
            "collate" => {
                let name = self.name();
                builder.collate(left, &name)?
            }
            "+" | "-" if self.word("interval") => {
                let amount = self.expression(0)?;
                let unit = self.unit();
                builder.date_arithmetic(left, amount, unit, token == "-")?
            }
            _ => {
                let right = self.expression(strength + 1)?;
                if let Some(operator) = compare(&token) {
                    builder.compare(operator, left, right)?
                } else if let Some(operator) = arithmetic(&token) {
                    builder.arithmetic(operator, left, right)?
                } else if let Some(operator) = bit(&token) {
                    builder.bit(operator, left, right)?
                } else {
                    match token.as_str() {
                        "or" | "||" => builder.or(left, right)?,
                        "xor" => builder.xor(left, right)?,
                        _ => builder.and(left, right)?,
                    }
                }
            }
        };
        Ok((expr, true))
    }

    fn predicate(&mut self, left: Expr, word: &str, negated: bool) -> Parsed {
        let builder = self.builder;
        match word {
            "between" => {
                let low = self.expression(7)?;
                assert!(self.word("and"), "AND expected");
                let high = self.expression(7)?;
                builder.between(left, low, high, negated)
            }
            "like" => {
                let pattern = self.expression(7)?;
                let escape = if self.word("escape") { Some(self.expression(7)?) } else { None };
                builder.like(left, pattern, escape, negated)
            }
            _ => {
                self.expect("(");
                let list = self.list()?;
                builder.in_list(left, list, negated)
            }
        }
    }

    /// Expressions up to the closing parenthesis.
    fn list(&mut self) -> Result<Vec<Expr>, SqlError> {
        let mut list = Vec::new();
        if self.symbol(")") {
            return Ok(list);
        }
        loop {
            list.push(self.expression(0)?);
            if self.symbol(")") {
                return Ok(list);
            }
            self.expect(",");
        }
    }

    fn prefix(&mut self) -> Parsed {
        let builder = self.builder;
        let token = self.tokens.get(self.at).cloned().expect("an operand");
        self.at += 1;
        match token {
            Token::Symbol("(") => {
                let mut list = self.list()?;
                Ok(if list.len() == 1 { list.remove(0) } else { builder.row(list) })
            }
            Token::Symbol("-") => builder.negate(self.expression(13)?),
            Token::Symbol("+") => self.expression(13),
            Token::Symbol("~") => builder.bit_not(self.expression(13)?),
            Token::Symbol("!") => builder.not(self.expression(13)?),
            Token::Number(number) if number.contains('e') => builder.float(&number),
            Token::Number(number) => match number.parse::<u64>() {
                Ok(value) if !number.contains('.') => Ok(builder.integer(value)),
                _ => builder.decimal(&number),
            },
            Token::Text(text) => builder.text(text, None),
            Token::Hex(bytes, numeric) => builder.hex(bytes, numeric, None),
            Token::Word(word) => self.word_operand(&word),
            other => panic!("an operand expected, not {other:?}"),
        }
    }

    fn word_operand(&mut self, word: &str) -> Parsed {
        let builder = self.builder;
        let next = self.tokens.get(self.at).cloned();
        match (word, next) {
            ("null", _) => Ok(builder.null()),
            ("true", _) => Ok(builder.boolean(true)),
            ("false", _) => Ok(builder.boolean(false)),
            ("not", _) => builder.not(self.expression(4)?),
            ("binary", Some(token)) if token != Token::Symbol("(") => {
                let operand = self.expression(13)?;
                builder.cast(operand, CastTarget::Binary { length: None })
            }
            ("date" | "time" | "timestamp", Some(Token::Text(text))) => {
                self.at += 1;
                let text = String::from_utf8(text).expect("text");
                match word {
                    "date" => builder.date(&text),
                    "time" => builder.time(&text),
                    _ => builder.timestamp(&text),
                }
            }
            (introducer, Some(Token::Text(text))) if introducer.starts_with('_') => {
                self.at += 1;
                builder.text(text, Some(&introducer[1..]))
            }
            (introducer, Some(Token::Hex(bytes, numeric))) if introducer.starts_with('_') => {
                self.at += 1;
                builder.hex(bytes, numeric, Some(&introducer[1..]))
            }
            ("case", _) => self.case(),
            (name, Some(Token::Symbol("("))) => {
                self.at += 1;
                self.call(name)
            }
            (name, _) => match self.fixture.column(name) {
                Some(position) => Ok(builder.column(
                    position,
                    self.fixture.results[position],
                    format!("`sbtest`.`t`.`{name}`"),
                )),
                None => builder.call(name, Vec::new()),
            },
        }
    }

    fn case(&mut self) -> Parsed {
        let operand = if self.word("when") { None } else { Some(self.expression(0)?) };
        if operand.is_some() {
            assert!(self.word("when"), "WHEN expected");
        }
        let (mut branches, mut otherwise) = (Vec::new(), None);
        loop {
            let when = self.expression(0)?;
            assert!(self.word("then"), "THEN expected");
            branches.push((when, self.expression(0)?));
            if self.word("when") {
                continue;
            }
            if self.word("else") {
                otherwise = Some(self.expression(0)?);
            }
            assert!(self.word("end"), "END expected");
            return self.builder.case(operand, branches, otherwise);
        }
    }

    fn call(&mut self, name: &str) -> Parsed {
        let builder = self.builder;
        match name {
            "cast" => {
                let operand = self.expression(0)?;
                assert!(self.word("as"), "AS expected");
                let target = self.target();
                self.expect(")");
                builder.cast(operand, target)
            }
            "convert" => {
                let operand = self.expression(0)?;
                if self.word("using") {
                    let charset = self.name();
                    self.expect(")");
                    return builder.convert_using(operand, &charset);
                }
                self.expect(",");
                let target = self.target();
                self.expect(")");
                builder.cast(operand, target)
            }
            "extract" => {
                let unit = self.unit();
                assert!(self.word("from"), "FROM expected");
                let operand = self.expression(0)?;
                self.expect(")");
                builder.unit_call("extract", unit, vec![operand])
            }
            "timestampdiff" | "timestampadd" => {
                let unit = self.unit();
                self.expect(",");
                let arguments = self.list()?;
                builder.unit_call(name, unit, arguments)
            }
            "date_add" | "date_sub" | "adddate" | "subdate" => {
                let base = self.expression(0)?;
                self.expect(",");
                let subtract = name == "date_sub" || name == "subdate";
                let (amount, unit) = if self.word("interval") {
                    (self.expression(0)?, self.unit())
                } else {
                    (self.expression(0)?, IntervalUnit::Day)
                };
                self.expect(")");
                builder.date_arithmetic(base, amount, unit, subtract)
            }
            "trim" => self.trim(),
            "position" => {
                let needle = self.expression(7)?;
                assert!(self.word("in"), "IN expected");
                let text = self.expression(0)?;
                self.expect(")");
                builder.call("locate", vec![needle, text])
            }
            "row" => {
                let list = self.list()?;
                Ok(builder.row(list))
            }
            "char" => {
                let mut list = vec![self.expression(0)?];
                while self.symbol(",") {
                    list.push(self.expression(0)?);
                }
                let charset = if self.word("using") { Some(self.name()) } else { None };
                self.expect(")");
                let call = builder.call("char", list)?;
                match charset {
                    Some(charset) => builder.convert_using(call, &charset),
                    None => Ok(call),
                }
            }
            _ => {
                let arguments = self.list()?;
                builder.call(name, arguments)
            }
        }
    }

    fn trim(&mut self) -> Parsed {
        let name = ["leading", "trailing", "both"].into_iter().find(|word| self.word(word));
        let first = if self.word("from") { None } else { Some(self.expression(0)?) };
        let mut arguments = Vec::new();
        if first.is_some() && !self.word("from") {
            arguments.extend(first);
        } else {
            arguments.push(self.expression(0)?);
            arguments.extend(first);
        }
        self.expect(")");
        let name = match name {
            Some("leading") => "trim_leading",
            Some("trailing") => "trim_trailing",
            _ => "trim",
        };
        self.builder.call(name, arguments)
    }

    fn target(&mut self) -> CastTarget {
        let name = self.name();
        let mut numbers = Vec::new();
        if self.symbol("(") {
            numbers.push(self.number());
            while self.symbol(",") {
                numbers.push(self.number());
            }
            self.expect(")");
        }
        let length = numbers.first().copied();
        match name.as_str() {
            "signed" | "integer" => CastTarget::Signed,
            "unsigned" => CastTarget::Unsigned,
            "decimal" => CastTarget::Decimal {
                precision: length.unwrap_or(10),
                scale: numbers.get(1).copied().unwrap_or(0),
            },
            "double" => CastTarget::Double,
            "float" => CastTarget::Float,
            "char" => {
                let mut collation = None;
                if self.word("character") {
                    assert!(self.word("set"), "SET expected");
                    let charset = Charset::by_name(&self.name()).expect("a character set");
                    collation = Some(collation::default_of(charset).id);
                }
                CastTarget::Char { length, collation }
            }
            "binary" => CastTarget::Binary { length },
            "date" => CastTarget::Date,
            "time" => CastTarget::Time(length.unwrap_or(0) as u8),
            "datetime" => CastTarget::DateTime(length.unwrap_or(0) as u8),
            other => panic!("unknown type {other}"),
        }
    }

    fn unit(&mut self) -> IntervalUnit {
        use IntervalUnit as U;
        let name = self.name();
        let all = [
            U::Microsecond,
            U::Second,
            U::Minute,
            U::Hour,
            U::Day,
            U::Week,
            U::Month,
            U::Quarter,
            U::Year,
            U::SecondMicrosecond,
            U::MinuteMicrosecond,
            U::MinuteSecond,
            U::HourMicrosecond,
            U::HourSecond,
            U::HourMinute,
            U::DayMicrosecond,
            U::DaySecond,
            U::DayMinute,
            U::DayHour,
            U::YearMonth,
        ];
        all.into_iter().find(|unit| unit.name() == name).expect("a unit")
    }
}
