//! Function calls and the words that begin an expression.

use super::*;

/// Reserved words that are functions when a parenthesis follows.
const RESERVED_FUNCTIONS: [Keyword; 9] = [
    Keyword::LEFT,
    Keyword::RIGHT,
    Keyword::IF,
    Keyword::REPLACE,
    Keyword::INSERT,
    Keyword::REPEAT,
    Keyword::DATABASE,
    Keyword::SCHEMA,
    Keyword::MOD,
];

impl Parser<'_> {
    /// An expression that begins with an unquoted word.
    #[inline(never)]
    pub(super) fn word_primary(&mut self, keyword: Keyword) -> Result<Expression> {
        match keyword {
            Keyword::CASE => self.case(),
            Keyword::EXISTS => {
                self.advance();
                self.parenthesized_query().map(Expression::Exists)
            }
            Keyword::CONVERT => self.convert(),
            Keyword::MATCH => self.match_against(),
            Keyword::DEFAULT => self.default_expression(),
            Keyword::VALUES => self.values_of_column(),
            Keyword::VALUE if self.peek_is(Symbol::LeftParenthesis) => self.values_of_column(),
            Keyword::CHAR => self.char_function(),
            Keyword::ROW if self.peek_is(Symbol::LeftParenthesis) => self.row(),
            Keyword::ROW_NUMBER if self.peek_is(Symbol::LeftParenthesis) => {
                self.advance();
                self.plain_call("row_number".into())
            }
            Keyword::NEXT | Keyword::PREVIOUS if self.peek_is(Keyword::VALUE) => {
                self.sequence_value(keyword == Keyword::PREVIOUS)
            }
            Keyword::CURRENT_DATE | Keyword::UTC_DATE => self.date_word(keyword),
            Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::UTC_TIME
            | Keyword::UTC_TIMESTAMP => self.time_word(keyword),
            Keyword::CURRENT_USER | Keyword::CURRENT_ROLE => {
                self.advance();
                self.empty_parentheses()?;
                let user = keyword == Keyword::CURRENT_USER;
                Ok(Self::call(if user { "current_user" } else { "current_role" }, Vec::new()))
            }
            keyword if RESERVED_FUNCTIONS.contains(&keyword) => {
                let token = self.advance();
                if !self.at(Symbol::LeftParenthesis) {
                    return Err(self.unexpected());
                }
                let name = self.to_utf8_lossy(self.bytes(token));
                self.plain_call(name)
            }
            keyword if keyword.is_reserved() => Err(self.unexpected()),
            _ => self.name_or_call(),
        }
    }

    /// A column, a call, or one of the functions with a syntax of their own.
    #[inline(never)]
    pub(super) fn name_or_call(&mut self) -> Result<Expression> {
        let token = self.token;
        let adjacent = self.text.get(token.end) == Some(&b'(');
        let calls = adjacent || self.peek_is(Symbol::LeftParenthesis);
        if calls && token.kind != Kind::QuotedName {
            let word = self.to_utf8_lossy(self.bytes(token)).to_ascii_lowercase();
            if (adjacent || self.options.ignore_space)
                && let Some(call) = self.special_call(&word)?
            {
                return Ok(call);
            }
        }
        let name = self.name()?;
        if calls {
            return self.plain_call(name);
        }
        let column = self.column_name_after(name)?;
        if self.at(Symbol::LeftParenthesis) && column.schema.is_none() && column.table.is_some() {
            let mut call = self.plain_call(column.name)?;
            if let Expression::Function(function) = &mut call {
                function.schema = column.table;
            }
            return Ok(call);
        }
        Ok(Expression::Column(column))
    }

    /// `(arguments)` of an ordinary function, and OVER.
    #[inline(never)]
    fn plain_call(&mut self, name: String) -> Result<Expression> {
        self.expect(Symbol::LeftParenthesis)?;
        let arguments = match arity(&name) {
            Some((least, most)) => self.counted_arguments(least, most)?,
            None => self.arguments()?,
        };
        let call = Expression::Function(Box::new(FunctionCall { schema: None, name, arguments }));
        self.over(call)
    }

    /// Arguments up to and with the closing parenthesis. A stored function's argument may have
    /// an alias, which is dropped as MariaDB does for built-in ones (1583 is not raised).
    #[inline(never)]
    fn arguments(&mut self) -> Result<Vec<Expression>> {
        if self.eat(Symbol::RightParenthesis) {
            return Ok(Vec::new());
        }
        let arguments = self.list(Self::expression)?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(arguments)
    }

    /// Arguments of a function whose number of them is a matter of grammar.
    #[inline(never)]
    fn counted_arguments(&mut self, least: usize, most: usize) -> Result<Vec<Expression>> {
        let mut arguments = Vec::new();
        while arguments.len() < most && !(arguments.is_empty() && self.at(Symbol::RightParenthesis))
        {
            if !arguments.is_empty() && !self.eat(Symbol::Comma) {
                break;
            }
            arguments.push(self.expression()?);
        }
        if arguments.len() < least {
            return Err(self.unexpected());
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(arguments)
    }

    /// Functions whose names are words of the grammar when a parenthesis follows at once.
    #[inline(never)]
    fn special_call(&mut self, word: &str) -> Result<Option<Expression>> {
        if let Some(function) = super::aggregate::aggregate(word) {
            return self.aggregate_call(function).map(Some);
        }
        let call = match word {
            "cast" => self.cast()?,
            "extract" => self.extract()?,
            "trim" => self.trim()?,
            "substring" | "substr" | "mid" => self.substring()?,
            "position" => self.position()?,
            "date_add" | "date_sub" | "adddate" | "subdate" => self.date_arithmetic(word)?,
            "timestampadd" | "timestampdiff" => self.timestamp_function(word)?,
            "get_format" => self.get_format()?,
            "weight_string" => self.weight_string()?,
            "sysdate" | "now" | "curtime" => self.precision_call(word)?,
            _ => return Ok(None),
        };
        Ok(Some(call))
    }

    pub(super) fn open_call(&mut self) -> Result<()> {
        self.advance();
        self.expect(Symbol::LeftParenthesis)
    }

    #[inline(never)]
    fn cast(&mut self) -> Result<Expression> {
        self.open_call()?;
        let operand = Box::new(self.expression()?);
        self.expect(Keyword::AS)?;
        let target = Box::new(self.cast_type()?);
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Cast { operand, target })
    }

    #[inline(never)]
    fn convert(&mut self) -> Result<Expression> {
        self.open_call()?;
        let operand = Box::new(self.expression()?);
        if self.eat(Keyword::USING) {
            let charset = self.charset_name()?;
            self.expect(Symbol::RightParenthesis)?;
            return Ok(Expression::ConvertUsing { operand, charset });
        }
        self.expect(Symbol::Comma)?;
        let target = Box::new(self.cast_type()?);
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Cast { operand, target })
    }

    #[inline(never)]
    fn char_function(&mut self) -> Result<Expression> {
        self.open_call()?;
        let arguments = self.list(Self::expression)?;
        let charset = if self.eat(Keyword::USING) { Some(self.charset_name()?) } else { None };
        self.expect(Symbol::RightParenthesis)?;
        let call = Self::call("char", arguments);
        Ok(match charset {
            Some(charset) => Expression::ConvertUsing { operand: Box::new(call), charset },
            None => call,
        })
    }

    #[inline(never)]
    fn match_against(&mut self) -> Result<Expression> {
        self.advance();
        let parenthesis = self.eat(Symbol::LeftParenthesis);
        let columns = self.list(Self::column_name)?;
        if parenthesis {
            self.expect(Symbol::RightParenthesis)?;
        }
        self.expect(Keyword::AGAINST)?;
        self.expect(Symbol::LeftParenthesis)?;
        let against = Box::new(self.bit_expression()?);
        let start = self.token.start;
        while self.at_any(&[
            Keyword::IN,
            Keyword::BOOLEAN,
            Keyword::NATURAL,
            Keyword::LANGUAGE,
            Keyword::MODE,
            Keyword::WITH,
            Keyword::QUERY,
            Keyword::EXPANSION,
        ]) {
            self.advance();
        }
        let mode = self.source(start, self.previous_end).to_ascii_uppercase();
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Match { columns, against, mode })
    }

    #[inline(never)]
    fn default_expression(&mut self) -> Result<Expression> {
        self.advance();
        if !self.eat(Symbol::LeftParenthesis) {
            return Ok(Expression::Default(None));
        }
        let column = self.column_name()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Default(Some(column)))
    }

    #[inline(never)]
    fn values_of_column(&mut self) -> Result<Expression> {
        self.advance();
        self.expect(Symbol::LeftParenthesis)?;
        let column = self.column_name()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Values(column))
    }

    #[inline(never)]
    fn sequence_value(&mut self, previous: bool) -> Result<Expression> {
        self.advance();
        self.advance();
        self.expect(Keyword::FOR)?;
        Ok(Expression::SequenceValue { sequence: self.table_name()?, previous })
    }

    fn empty_parentheses(&mut self) -> Result<()> {
        if self.eat(Symbol::LeftParenthesis) {
            self.expect(Symbol::RightParenthesis)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn date_word(&mut self, keyword: Keyword) -> Result<Expression> {
        self.advance();
        self.empty_parentheses()?;
        let utc = keyword == Keyword::UTC_DATE;
        Ok(Self::call(if utc { "utc_date" } else { "curdate" }, Vec::new()))
    }

    #[inline(never)]
    fn time_word(&mut self, keyword: Keyword) -> Result<Expression> {
        self.advance();
        let name = match keyword {
            Keyword::CURRENT_TIME => "curtime",
            Keyword::UTC_TIME => "utc_time",
            Keyword::UTC_TIMESTAMP => "utc_timestamp",
            _ => "now",
        };
        let arguments = self.precision()?;
        Ok(Self::call(name, arguments))
    }

    #[inline(never)]
    fn precision_call(&mut self, name: &str) -> Result<Expression> {
        self.advance();
        let arguments = self.precision()?;
        Ok(Self::call(name, arguments))
    }

    /// Nothing, `()` or `(digits)`.
    fn precision(&mut self) -> Result<Vec<Expression>> {
        if !self.eat(Symbol::LeftParenthesis) || self.eat(Symbol::RightParenthesis) {
            return Ok(Vec::new());
        }
        let digits = self.number()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(vec![Expression::Literal(Literal::Integer(digits))])
    }

    #[inline(never)]
    fn extract(&mut self) -> Result<Expression> {
        self.open_call()?;
        let unit = self.interval_unit()?;
        self.expect(Keyword::FROM)?;
        let operand = self.expression()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call("extract", vec![Expression::Unit(unit), operand]))
    }

    #[inline(never)]
    fn trim(&mut self) -> Result<Expression> {
        self.open_call()?;
        let name = match self.token.kind {
            Kind::Word(Keyword::LEADING) => Some("trim_leading"),
            Kind::Word(Keyword::TRAILING) => Some("trim_trailing"),
            Kind::Word(Keyword::BOTH) => Some("trim"),
            _ => None,
        };
        if name.is_some() {
            self.advance();
        }
        let mut arguments = Vec::new();
        if name.is_some() && self.eat(Keyword::FROM) {
            arguments.push(self.expression()?);
        } else {
            let first = self.expression()?;
            if name.is_some() || self.at(Keyword::FROM) {
                self.expect(Keyword::FROM)?;
                arguments.push(self.expression()?);
            }
            arguments.push(first);
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call(name.unwrap_or("trim"), arguments))
    }

    #[inline(never)]
    fn substring(&mut self) -> Result<Expression> {
        self.open_call()?;
        let mut arguments = vec![self.expression()?];
        if self.eat(Keyword::FROM) {
            arguments.push(self.expression()?);
            if self.eat(Keyword::FOR) {
                arguments.push(self.expression()?);
            }
        } else {
            self.expect(Symbol::Comma)?;
            arguments.push(self.expression()?);
            if self.eat(Symbol::Comma) {
                arguments.push(self.expression()?);
            }
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call("substring", arguments))
    }

    #[inline(never)]
    fn position(&mut self) -> Result<Expression> {
        self.open_call()?;
        let needle = self.bit_expression()?;
        self.expect(Keyword::IN)?;
        let haystack = self.expression()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call("locate", vec![needle, haystack]))
    }

    #[inline(never)]
    fn date_arithmetic(&mut self, word: &str) -> Result<Expression> {
        self.open_call()?;
        let base = Box::new(self.expression()?);
        self.expect(Symbol::Comma)?;
        let subtract = word.ends_with("sub") || word.starts_with("sub");
        let (amount, unit) = if self.eat(Keyword::INTERVAL) {
            (self.expression()?, self.interval_unit()?)
        } else if word.starts_with("date_") {
            return Err(self.unexpected());
        } else {
            (self.expression()?, IntervalUnit::Day)
        };
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::DateArithmetic { base, amount: Box::new(amount), unit, subtract })
    }

    #[inline(never)]
    fn timestamp_function(&mut self, word: &str) -> Result<Expression> {
        self.open_call()?;
        let unit = self.interval_unit()?;
        self.expect(Symbol::Comma)?;
        let first = self.expression()?;
        self.expect(Symbol::Comma)?;
        let second = self.expression()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call(word, vec![Expression::Unit(unit), first, second]))
    }

    #[inline(never)]
    fn get_format(&mut self) -> Result<Expression> {
        self.open_call()?;
        let kind = self.word()?;
        if !["DATE", "TIME", "DATETIME", "TIMESTAMP"].contains(&kind.as_str()) {
            return Err(self.unexpected());
        }
        self.expect(Symbol::Comma)?;
        let format = self.expression()?;
        self.expect(Symbol::RightParenthesis)?;
        let kind = Literal::String { bytes: kind.into_bytes(), charset: None };
        Ok(Self::call("get_format", vec![Expression::Literal(kind), format]))
    }

    #[inline(never)]
    fn weight_string(&mut self) -> Result<Expression> {
        self.open_call()?;
        let mut operand = self.expression()?;
        if self.eat(Keyword::AS) {
            let target = Box::new(self.cast_type()?);
            operand = Expression::Cast { operand: Box::new(operand), target };
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call("weight_string", vec![operand]))
    }

    #[inline(never)]
    fn row(&mut self) -> Result<Expression> {
        self.open_call()?;
        let mut items = self.arguments()?;
        match items.len() {
            0 => Err(self.unexpected()),
            1 => Ok(items.remove(0)),
            _ => Ok(Expression::Row(items)),
        }
    }
}

/// Fewest and most arguments of functions that the grammar itself knows.
fn arity(name: &str) -> Option<(usize, usize)> {
    const KNOWN: [(&str, usize, usize); 24] = [
        ("ascii", 1, 1),
        ("charset", 1, 1),
        ("collation", 1, 1),
        ("date", 1, 1),
        ("day", 1, 1),
        ("format", 2, 3),
        ("hour", 1, 1),
        ("if", 3, 3),
        ("insert", 4, 4),
        ("left", 2, 2),
        ("microsecond", 1, 1),
        ("minute", 1, 1),
        ("mod", 2, 2),
        ("month", 1, 1),
        ("quarter", 1, 1),
        ("repeat", 2, 2),
        ("replace", 3, 3),
        ("reverse", 1, 1),
        ("right", 2, 2),
        ("second", 1, 1),
        ("time", 1, 1),
        ("timestamp", 1, 2),
        ("truncate", 2, 2),
        ("year", 1, 1),
    ];
    let known = KNOWN.iter().find(|(word, ..)| word.eq_ignore_ascii_case(name));
    known.map(|(_, least, most)| (*least, *most))
}
