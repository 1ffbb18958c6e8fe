//! Expressions by precedence climbing.

use super::*;

/// Binding powers, weakest first.
mod power {
    pub const OR: u8 = 1;
    pub const XOR: u8 = 2;
    pub const AND: u8 = 3;
    pub const NOT: u8 = 4;
    pub const COMPARISON: u8 = 5;
    pub const PREDICATE: u8 = 6;
    pub const BIT_OR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const SHIFT: u8 = 9;
    pub const SUM: u8 = 10;
    pub const PRODUCT: u8 = 11;
    pub const POWER: u8 = 12;
    pub const CONCATENATION: u8 = 13;
    pub const SIGN: u8 = 14;
    pub const BANG: u8 = 15;
    pub const COLLATE: u8 = 16;
}

/// Longest chain of operators of one precedence: such a chain leans to the left and is walked by
/// recursion later.
const CHAIN_MAX: u32 = 128;

/// What an infix position holds.
enum Infix {
    Or,
    And,
    Binary(BinaryOperator),
    Sum { subtract: bool },
    Is,
    Predicate,
    Collate,
}

impl Parser<'_> {
    /// An expression.
    pub(super) fn expression(&mut self) -> Result<Expression> {
        self.expression_above(0)
    }

    /// An expression of operators that bind stronger than comparison (`bit_expr`).
    pub(super) fn bit_expression(&mut self) -> Result<Expression> {
        self.expression_above(power::BIT_OR)
    }

    /// An expression without infix operators.
    pub(super) fn lone_expression(&mut self) -> Result<Expression> {
        self.deeper(|parser| parser.prefix(power::BIT_OR))
    }

    /// An expression whose operators bind at least as strong as `weakest`.
    fn expression_above(&mut self, weakest: u8) -> Result<Expression> {
        self.deeper(|parser| {
            let left = parser.prefix(weakest)?;
            parser.infix_chain(left, weakest)
        })
    }

    fn infix_chain(&mut self, mut left: Expression, weakest: u8) -> Result<Expression> {
        let mut length = 0;
        while let Some((infix, strength)) = self.infix() {
            if strength < weakest {
                break;
            }
            length += 1;
            if length > CHAIN_MAX && !matches!(infix, Infix::Or | Infix::And) {
                return Err(ParseError::too_deep());
            }
            left = self.infix_rest(left, infix, strength)?;
        }
        Ok(left)
    }

    /// The infix operator that follows and how strong it binds.
    fn infix(&self) -> Option<(Infix, u8)> {
        use BinaryOperator as B;
        let binary = |operator, strength| Some((Infix::Binary(operator), strength));
        match self.token.kind {
            Kind::Symbol(symbol) => match symbol {
                Symbol::DoubleBar if self.options.pipes_as_concat => {
                    binary(B::Concat, power::CONCATENATION)
                }
                Symbol::DoubleBar => Some((Infix::Or, power::OR)),
                Symbol::DoubleAmpersand => Some((Infix::And, power::AND)),
                Symbol::Equal => binary(B::Equal, power::COMPARISON),
                Symbol::NullSafeEqual => binary(B::NullSafeEqual, power::COMPARISON),
                Symbol::NotEqual => binary(B::NotEqual, power::COMPARISON),
                Symbol::Less => binary(B::Less, power::COMPARISON),
                Symbol::LessOrEqual => binary(B::LessOrEqual, power::COMPARISON),
                Symbol::Greater => binary(B::Greater, power::COMPARISON),
                Symbol::GreaterOrEqual => binary(B::GreaterOrEqual, power::COMPARISON),
                Symbol::Bar => binary(B::BitOr, power::BIT_OR),
                Symbol::Ampersand => binary(B::BitAnd, power::BIT_AND),
                Symbol::ShiftLeft => binary(B::ShiftLeft, power::SHIFT),
                Symbol::ShiftRight => binary(B::ShiftRight, power::SHIFT),
                Symbol::Plus => Some((Infix::Sum { subtract: false }, power::SUM)),
                Symbol::Minus => Some((Infix::Sum { subtract: true }, power::SUM)),
                Symbol::Star => binary(B::Multiply, power::PRODUCT),
                Symbol::Slash => binary(B::Divide, power::PRODUCT),
                Symbol::Percent => binary(B::Modulo, power::PRODUCT),
                Symbol::Caret => binary(B::BitXor, power::POWER),
                _ => None,
            },
            Kind::Word(keyword) => match keyword {
                Keyword::OR => Some((Infix::Or, power::OR)),
                Keyword::XOR => binary(B::Xor, power::XOR),
                Keyword::AND => Some((Infix::And, power::AND)),
                Keyword::IS => Some((Infix::Is, power::COMPARISON)),
                Keyword::IN
                | Keyword::BETWEEN
                | Keyword::LIKE
                | Keyword::REGEXP
                | Keyword::RLIKE => Some((Infix::Predicate, power::PREDICATE)),
                Keyword::SOUNDS if self.peek_is(Keyword::LIKE) => {
                    Some((Infix::Predicate, power::PREDICATE))
                }
                Keyword::NOT => self.negated_predicate(),
                Keyword::DIV => binary(B::IntegerDivide, power::PRODUCT),
                Keyword::MOD => binary(B::Modulo, power::PRODUCT),
                Keyword::COLLATE => Some((Infix::Collate, power::COLLATE)),
                _ => None,
            },
            _ => None,
        }
    }

    fn negated_predicate(&self) -> Option<(Infix, u8)> {
        match self.peek().kind {
            Kind::Word(
                Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::REGEXP | Keyword::RLIKE,
            ) => Some((Infix::Predicate, power::PREDICATE)),
            _ => None,
        }
    }

    /// Takes the operator and its right side.
    #[inline(never)]
    fn infix_rest(&mut self, left: Expression, infix: Infix, strength: u8) -> Result<Expression> {
        match infix {
            Infix::Or => self.logical(left, LogicalOperator::Or, strength),
            Infix::And => self.logical(left, LogicalOperator::And, strength),
            Infix::Is => self.is_test(left),
            Infix::Predicate => self.predicate(left),
            Infix::Collate => {
                self.advance();
                let collation = self.name_or_binary()?;
                Ok(Expression::Collate { operand: Box::new(left), collation })
            }
            Infix::Sum { subtract } => {
                self.advance();
                if self.at(Keyword::INTERVAL) {
                    return self.sum_with_interval(left, subtract);
                }
                let operator =
                    if subtract { BinaryOperator::Subtract } else { BinaryOperator::Add };
                let right = self.expression_above(strength + 1)?;
                Ok(Expression::Binary(operator, Box::new(left), Box::new(right)))
            }
            Infix::Binary(operator) => {
                self.advance();
                if strength == power::COMPARISON
                    && self.at_any(&[Keyword::ANY, Keyword::ALL, Keyword::SOME])
                    && self.peek_is(Symbol::LeftParenthesis)
                {
                    return self.quantified(left, operator);
                }
                let right = self.expression_above(strength + 1)?;
                Ok(Expression::Binary(operator, Box::new(left), Box::new(right)))
            }
        }
    }

    #[inline(never)]
    fn logical(
        &mut self,
        left: Expression,
        operator: LogicalOperator,
        strength: u8,
    ) -> Result<Expression> {
        self.advance();
        let right = self.expression_above(strength + 1)?;
        Ok(match left {
            Expression::Logical(same, mut operands) if same == operator => {
                operands.push(right);
                Expression::Logical(operator, operands)
            }
            left => Expression::Logical(operator, vec![left, right]),
        })
    }

    #[inline(never)]
    fn is_test(&mut self, operand: Expression) -> Result<Expression> {
        self.advance();
        let negated = self.eat(Keyword::NOT);
        let test = match self.token.kind {
            Kind::Word(Keyword::NULL) => IsTest::Null,
            Kind::Word(Keyword::TRUE) => IsTest::True,
            Kind::Word(Keyword::FALSE) => IsTest::False,
            Kind::Word(Keyword::UNKNOWN) => IsTest::Unknown,
            _ => return Err(self.unexpected()),
        };
        self.advance();
        Ok(Expression::Is { operand: Box::new(operand), test, negated })
    }

    #[inline(never)]
    fn quantified(&mut self, left: Expression, operator: BinaryOperator) -> Result<Expression> {
        let all = self.at(Keyword::ALL);
        self.advance();
        let query = self.parenthesized_query()?;
        Ok(Expression::Quantified { operand: Box::new(left), operator, all, query })
    }

    #[inline(never)]
    fn predicate(&mut self, left: Expression) -> Result<Expression> {
        let negated = self.eat(Keyword::NOT);
        let operand = Box::new(left);
        let Kind::Word(keyword) = self.advance().kind else { return Err(self.unexpected()) };
        match keyword {
            Keyword::IN => self.in_list(operand, negated),
            Keyword::BETWEEN => {
                let low = Box::new(self.expression_above(power::BIT_OR)?);
                self.expect(Keyword::AND)?;
                let high = Box::new(self.expression_above(power::PREDICATE)?);
                Ok(Expression::Between { operand, low, high, negated })
            }
            Keyword::LIKE => {
                let pattern = Box::new(self.expression_above(power::BIT_OR)?);
                let escape = if self.eat(Keyword::ESCAPE) {
                    Some(Box::new(self.expression_above(power::BIT_OR)?))
                } else {
                    None
                };
                Ok(Expression::Like { operand, pattern, escape, negated })
            }
            Keyword::SOUNDS => {
                self.expect(Keyword::LIKE)?;
                let right = Box::new(self.expression_above(power::BIT_OR)?);
                Ok(Expression::Binary(BinaryOperator::SoundsLike, operand, right))
            }
            _ => {
                let pattern = Box::new(self.expression_above(power::BIT_OR)?);
                Ok(Expression::Regexp { operand, pattern, negated })
            }
        }
    }

    #[inline(never)]
    fn in_list(&mut self, operand: Box<Expression>, negated: bool) -> Result<Expression> {
        if self.begins_query_in_parentheses() {
            let query = self.parenthesized_query()?;
            return Ok(Expression::InSubquery { operand, query, negated });
        }
        let list = self.parenthesized_list(Self::expression)?;
        Ok(Expression::In { operand, list, negated })
    }

    /// `+ INTERVAL 1 DAY`, or `+ INTERVAL(a, b)` the function.
    #[inline(never)]
    fn sum_with_interval(&mut self, left: Expression, subtract: bool) -> Result<Expression> {
        self.advance();
        let amount = if self.at(Symbol::LeftParenthesis) {
            self.advance();
            let first = self.expression()?;
            if self.at(Symbol::Comma) {
                let right = self.interval_function(first)?;
                let right = self.infix_chain(right, power::PRODUCT)?;
                let operator =
                    if subtract { BinaryOperator::Subtract } else { BinaryOperator::Add };
                return Ok(Expression::Binary(operator, Box::new(left), Box::new(right)));
            }
            self.expect(Symbol::RightParenthesis)?;
            self.infix_chain(first, 0)?
        } else {
            self.expression()?
        };
        let unit = self.interval_unit()?;
        Ok(Expression::DateArithmetic {
            base: Box::new(left),
            amount: Box::new(amount),
            unit,
            subtract,
        })
    }

    /// The rest of `INTERVAL(first` as the function.
    #[inline(never)]
    fn interval_function(&mut self, first: Expression) -> Result<Expression> {
        let mut arguments = vec![first];
        while self.eat(Symbol::Comma) {
            arguments.push(self.expression()?);
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(Self::call("interval", arguments))
    }

    /// A unit of an interval.
    #[inline(never)]
    pub(super) fn interval_unit(&mut self) -> Result<IntervalUnit> {
        let Kind::Word(_) = self.token.kind else { return Err(self.unexpected()) };
        let word = self.to_utf8_lossy(self.bytes(self.token));
        let unit = IntervalUnit::from_word(&word).ok_or_else(|| self.unexpected())?;
        self.advance();
        Ok(unit)
    }

    /// A prefix operator with its operand, or a primary.
    #[inline(never)]
    fn prefix(&mut self, weakest: u8) -> Result<Expression> {
        let (operator, strength) = match self.token.kind {
            Kind::Word(Keyword::NOT) if self.options.high_not_precedence => {
                (UnaryOperator::Not, power::BANG)
            }
            Kind::Word(Keyword::NOT) if weakest <= power::NOT => (UnaryOperator::Not, power::NOT),
            Kind::Symbol(Symbol::Exclamation) => (UnaryOperator::Not, power::BANG),
            Kind::Symbol(Symbol::Minus) => (UnaryOperator::Minus, power::SIGN),
            Kind::Symbol(Symbol::Plus) => (UnaryOperator::Plus, power::SIGN),
            Kind::Symbol(Symbol::Tilde) => (UnaryOperator::BitNot, power::SIGN),
            Kind::Word(Keyword::BINARY) => {
                self.advance();
                let operand = Box::new(self.expression_above(power::SIGN)?);
                let target = TypeName { kind: TypeNameKind::Binary, ..TypeName::default() };
                return Ok(Expression::Cast { operand, target: Box::new(target) });
            }
            Kind::Word(Keyword::INTERVAL) => return self.interval_prefix(),
            _ => return self.primary(),
        };
        self.advance();
        let operand = self.expression_above(strength)?;
        Ok(Expression::Unary(operator, Box::new(operand)))
    }

    /// `INTERVAL 1 DAY + date`, or `INTERVAL(a, b)` the function.
    #[inline(never)]
    fn interval_prefix(&mut self) -> Result<Expression> {
        self.advance();
        let amount = if self.at(Symbol::LeftParenthesis) {
            self.advance();
            let first = self.expression()?;
            if self.at(Symbol::Comma) {
                return self.interval_function(first);
            }
            self.expect(Symbol::RightParenthesis)?;
            self.infix_chain(first, 0)?
        } else {
            self.expression()?
        };
        let unit = self.interval_unit()?;
        self.expect(Symbol::Plus)?;
        let base = self.expression_above(power::SUM + 1)?;
        Ok(Expression::DateArithmetic {
            base: Box::new(base),
            amount: Box::new(amount),
            unit,
            subtract: false,
        })
    }

    /// Something that is complete in itself.
    fn primary(&mut self) -> Result<Expression> {
        if let Some(literal) = self.literal()? {
            return Ok(Expression::Literal(literal));
        }
        match self.token.kind {
            Kind::Parameter => self.parameter(),
            Kind::Symbol(Symbol::LeftParenthesis) => self.parenthesized(),
            Kind::Symbol(Symbol::LeftBrace) => self.odbc_escape(),
            Kind::Symbol(Symbol::At) => self.user_variable_expression(),
            Kind::Symbol(Symbol::DoubleAt) => {
                self.system_variable().map(Expression::SystemVariable)
            }
            Kind::Symbol(Symbol::Dot) => self.column_name().map(Expression::Column),
            Kind::QuotedName => self.name_or_call(),
            Kind::Word(keyword) => self.word_primary(keyword),
            _ => Err(self.unexpected()),
        }
    }

    /// `?`.
    #[inline(never)]
    pub(super) fn parameter(&mut self) -> Result<Expression> {
        if !self.options.parameters {
            return Err(self.unexpected());
        }
        self.advance();
        let number = self.parameters;
        self.parameters += 1;
        if self.parameters > u32::from(u16::MAX) {
            return Err(ParseError::too_many_parameters());
        }
        Ok(Expression::Parameter(number))
    }

    #[inline(never)]
    fn parenthesized(&mut self) -> Result<Expression> {
        if self.begins_query_in_parentheses() {
            let query = self.parenthesized_query()?;
            return Ok(Expression::Subquery(query));
        }
        self.advance();
        let first = self.expression()?;
        if !self.at(Symbol::Comma) {
            self.expect(Symbol::RightParenthesis)?;
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(Symbol::Comma) {
            items.push(self.expression()?);
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(Expression::Row(items))
    }

    /// `{d '2000-01-01'}`, `{fn now()}`, `{oj ...}` without meaning.
    #[inline(never)]
    fn odbc_escape(&mut self) -> Result<Expression> {
        self.advance();
        let word = self.word()?;
        let escape = match word.as_str() {
            "D" => Some(OdbcEscape::Date),
            "T" => Some(OdbcEscape::Time),
            "TS" => Some(OdbcEscape::Timestamp),
            _ => None,
        };
        let expression = match escape.filter(|_| self.at(Kind::Text)) {
            Some(escape) => Expression::Literal(Literal::Escaped(escape, self.text_string()?)),
            None => self.expression()?,
        };
        self.expect(Symbol::RightBrace)?;
        Ok(expression)
    }

    /// A name, or the reserved word BINARY where a character set or collation is named.
    pub(super) fn name_or_binary(&mut self) -> Result<String> {
        if self.eat(Keyword::BINARY) {
            return Ok("binary".into());
        }
        self.name_or_text()
    }

    /// CASE.
    #[inline(never)]
    pub(super) fn case(&mut self) -> Result<Expression> {
        self.advance();
        let operand =
            if self.at(Keyword::WHEN) { None } else { Some(Box::new(self.expression()?)) };
        let mut branches = Vec::new();
        while self.eat(Keyword::WHEN) {
            let condition = self.expression()?;
            self.expect(Keyword::THEN)?;
            branches.push((condition, self.expression()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected());
        }
        let otherwise =
            if self.eat(Keyword::ELSE) { Some(Box::new(self.expression()?)) } else { None };
        self.expect(Keyword::END)?;
        Ok(Expression::Case { operand, branches, otherwise })
    }

    /// A call of a built-in function.
    pub(super) fn call(name: &str, arguments: Vec<Expression>) -> Expression {
        Expression::Function(Box::new(FunctionCall { schema: None, name: name.into(), arguments }))
    }
}
