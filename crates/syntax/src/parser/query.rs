//! SELECT, set operations, WITH, ORDER BY, LIMIT, locking and INTO.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// A query with everything that may follow its body.
    #[inline(never)]
    pub(super) fn query(&mut self) -> Result<Query> {
        self.deeper_by(QUERY_DEPTH, |parser| {
            let with = if parser.at(K::WITH) { Some(parser.with()?) } else { None };
            let body = parser.query_body(0)?;
            let mut query =
                Query { with, body, order_by: Vec::new(), limit: None, locking: None, into: None };
            parser.query_tail(&mut query)?;
            Ok(query)
        })
    }

    /// Whether a query begins here, perhaps behind parentheses.
    pub(super) fn begins_query(&self) -> bool {
        let mut lexer = self.lexer;
        let mut kind = self.token.kind;
        while kind == Kind::Symbol(Symbol::LeftParenthesis) {
            kind = lexer.next().kind;
        }
        match kind {
            Kind::Word(K::SELECT | K::WITH) => true,
            Kind::Word(K::VALUES) => lexer.next().kind == Kind::Symbol(Symbol::LeftParenthesis),
            _ => false,
        }
    }

    /// Whether `(` follows and a query is what the parentheses hold, rather than an expression
    /// that begins with a subquery such as `((SELECT 1) + 1)`.
    pub(super) fn begins_query_in_parentheses(&self) -> bool {
        if !self.at(Symbol::LeftParenthesis) {
            return false;
        }
        let mut lexer = self.lexer;
        let mut depth = 0;
        let mut kind = lexer.next().kind;
        while kind == Kind::Symbol(Symbol::LeftParenthesis) {
            depth += 1;
            kind = lexer.next().kind;
        }
        match kind {
            Kind::Word(K::SELECT | K::WITH) => Self::closes_as_query(lexer, depth),
            Kind::Word(K::VALUES) => {
                depth == 0 && lexer.next().kind == Kind::Symbol(Symbol::LeftParenthesis)
            }
            _ => false,
        }
    }

    /// Follows a query that stands in `depth` inner parentheses to where those close: what
    /// stands behind each of them must go on with a query, not with an operator.
    fn closes_as_query(mut lexer: Lexer<'_>, depth: usize) -> bool {
        let mut innermost = depth;
        let mut open = depth;
        while open > 0 {
            match lexer.next().kind {
                Kind::Symbol(Symbol::LeftParenthesis) => open += 1,
                Kind::Symbol(Symbol::RightParenthesis) => open -= 1,
                Kind::End | Kind::Invalid => return true,
                _ => {}
            }
            if open < innermost {
                innermost = open;
                let mut ahead = lexer;
                let goes_on = matches!(
                    ahead.next().kind,
                    Kind::Symbol(Symbol::RightParenthesis)
                        | Kind::Word(
                            K::UNION
                                | K::EXCEPT
                                | K::INTERSECT
                                | K::ORDER
                                | K::LIMIT
                                | K::FOR
                                | K::LOCK
                                | K::INTO
                        )
                );
                if !goes_on {
                    return false;
                }
            }
        }
        true
    }

    /// `(query)`.
    #[inline(never)]
    pub(super) fn parenthesized_query(&mut self) -> Result<Box<Query>> {
        self.expect(Symbol::LeftParenthesis)?;
        if !self.begins_query() {
            return Err(self.unexpected());
        }
        let query = self.query()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(Box::new(query))
    }

    #[inline(never)]
    fn with(&mut self) -> Result<With> {
        self.advance();
        let recursive = self.eat(K::RECURSIVE);
        let tables = self.list(|parser| {
            let name = parser.name()?;
            let columns =
                if parser.at(Symbol::LeftParenthesis) { parser.name_list()? } else { Vec::new() };
            parser.expect(K::AS)?;
            let query = *parser.parenthesized_query()?;
            Ok(CommonTable { name, columns, query })
        })?;
        Ok(With { recursive, tables })
    }

    /// A body whose set operators bind at least as strong as `weakest` (INTERSECT is 1).
    #[inline(never)]
    fn query_body(&mut self, weakest: u8) -> Result<QueryBody> {
        let first = self.query_primary()?;
        let mut rest = Vec::new();
        loop {
            let (operator, strength) = match self.token.kind {
                Kind::Word(K::UNION) => (SetOperator::Union, 0),
                Kind::Word(K::EXCEPT) => (SetOperator::Except, 0),
                Kind::Word(K::INTERSECT) => (SetOperator::Intersect, 1),
                _ => break,
            };
            if strength < weakest {
                break;
            }
            self.advance();
            let all = self.eat(K::ALL);
            if !all {
                self.eat(K::DISTINCT);
            }
            let body = self.deeper(|parser| parser.query_body(strength + 1))?;
            rest.push(SetMember { operator, all, body });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(QueryBody::Set { first: Box::new(first), rest })
    }

    #[inline(never)]
    fn query_primary(&mut self) -> Result<QueryBody> {
        match self.token.kind {
            Kind::Word(K::SELECT) => Ok(QueryBody::Select(Box::new(self.select()?))),
            Kind::Word(K::VALUES) => {
                self.advance();
                self.list(|parser| parser.parenthesized_list(Self::expression))
                    .map(QueryBody::Values)
            }
            Kind::Symbol(Symbol::LeftParenthesis) => {
                self.parenthesized_query().map(QueryBody::Nested)
            }
            _ => Err(self.unexpected()),
        }
    }

    #[inline(never)]
    fn query_tail(&mut self, query: &mut Query) -> Result<()> {
        if self.at(K::INTO) {
            query.into = Some(self.query_target()?);
        }
        query.order_by = self.order_by()?;
        if !query.order_by.is_empty() && matches!(&query.body, QueryBody::Select(s) if s.rollup) {
            return Err(ParseError::incorrect_usage("CUBE/ROLLUP", "ORDER BY"));
        }
        query.limit = self.limit()?;
        query.locking = self.locking()?;
        if self.at(K::INTO) && query.into.is_none() {
            query.into = Some(self.query_target()?);
        }
        if query.locking.is_none() {
            query.locking = self.locking()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn select(&mut self) -> Result<Select> {
        self.advance();
        let mut select = Select { options: self.select_options()?, ..Select::default() };
        select.items = self.select_items()?;
        if self.at(K::INTO) {
            select.into = Some(self.query_target()?);
        }
        self.select_rest(&mut select)?;
        Ok(select)
    }

    #[inline(never)]
    fn select_options(&mut self) -> Result<SelectOptions> {
        let mut options = SelectOptions::default();
        let mut all = false;
        loop {
            let Kind::Word(keyword) = self.token.kind else { return Ok(options) };
            match keyword {
                K::DISTINCT | K::DISTINCTROW => options.distinct = true,
                K::ALL => all = true,
                K::HIGH_PRIORITY => options.high_priority = true,
                K::STRAIGHT_JOIN => options.straight_join = true,
                K::SQL_SMALL_RESULT => options.small_result = true,
                K::SQL_BIG_RESULT => options.big_result = true,
                K::SQL_BUFFER_RESULT => options.buffer_result = true,
                K::SQL_CACHE => options.cache = Some(true),
                K::SQL_NO_CACHE => options.cache = Some(false),
                K::SQL_CALC_FOUND_ROWS => options.calculate_found_rows = true,
                _ => return Ok(options),
            }
            if all && options.distinct {
                return Err(ParseError::incorrect_usage("ALL", "DISTINCT"));
            }
            self.advance();
        }
    }

    #[inline(never)]
    fn select_rest(&mut self, select: &mut Select) -> Result<()> {
        if self.eat(K::FROM) {
            if !self.eat(K::DUAL) {
                select.from = self.list(Self::table_reference)?;
            }
        } else if !self.at(K::WHERE) && !self.at(K::HAVING) && !self.at(K::GROUP) {
            return Ok(());
        }
        if self.eat(K::WHERE) {
            select.filter = Some(self.expression()?);
        }
        if self.at(K::GROUP) {
            self.advance();
            self.expect(K::BY)?;
            select.group_by = self.list(Self::order_item)?;
            select.rollup = self.eat_two(K::WITH, K::ROLLUP);
        }
        if self.eat(K::HAVING) {
            select.having = Some(self.expression()?);
        }
        if self.at(K::WINDOW) {
            self.advance();
            select.windows = self.list(|parser| {
                let name = parser.name()?;
                parser.expect(K::AS)?;
                Ok((name, parser.window_definition()?))
            })?;
        }
        if self.at(K::PROCEDURE) {
            self.advance();
            let start = self.token.start;
            self.name()?;
            self.skip_parenthesized()?;
            select.procedure = Some(self.source(start, self.previous_end));
        }
        Ok(())
    }

    /// A select list or what follows RETURNING; `*` can only be the first item.
    pub(super) fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        let mut items = Vec::new();
        if self.eat(Symbol::Star) {
            items.push(SelectItem::Wildcard);
            if !self.eat(Symbol::Comma) {
                return Ok(items);
            }
        }
        loop {
            items.push(self.select_item()?);
            if !self.eat(Symbol::Comma) {
                return Ok(items);
            }
        }
    }

    #[inline(never)]
    fn select_item(&mut self) -> Result<SelectItem> {
        if let Some(table) = self.table_wildcard()? {
            return Ok(SelectItem::TableWildcard(table));
        }
        let start = self.token.start;
        let expression = self.expression()?;
        let text = without_version_marks(self.source(start, self.previous_end));
        let alias = self.alias(true)?;
        Ok(SelectItem::Expression { expression, alias, text })
    }

    /// `table.*` or `schema.table.*`.
    #[inline(never)]
    fn table_wildcard(&mut self) -> Result<Option<TableName>> {
        let dot = Kind::Symbol(Symbol::Dot);
        if !self.at_name() || self.peek_kind(1) != dot {
            return Ok(None);
        }
        let star = Kind::Symbol(Symbol::Star);
        let parts = if self.peek_kind(2) == star {
            1
        } else if self.peek_kind(3) == dot && self.peek_kind(4) == star {
            2
        } else {
            return Ok(None);
        };
        let first = self.name()?;
        self.advance();
        let table = if parts == 1 {
            TableName { schema: None, name: first }
        } else {
            let name = self.name_after_dot()?;
            self.advance();
            TableName { schema: Some(first), name }
        };
        self.advance();
        Ok(Some(table))
    }

    /// ORDER BY, if it follows.
    pub(super) fn order_by(&mut self) -> Result<Vec<OrderItem>> {
        if !self.at(K::ORDER) {
            return Ok(Vec::new());
        }
        self.advance();
        self.expect(K::BY)?;
        self.list(Self::order_item)
    }

    fn order_item(&mut self) -> Result<OrderItem> {
        let expression = self.expression()?;
        let descending = self.eat(K::DESC);
        if !descending {
            self.eat(K::ASC);
        }
        Ok(OrderItem { expression, descending })
    }

    /// LIMIT, OFFSET and FETCH, if they follow.
    #[inline(never)]
    pub(super) fn limit(&mut self) -> Result<Option<Limit>> {
        if self.eat(K::LIMIT) {
            return self.limit_rest().map(Some);
        }
        let mut offset = None;
        if self.eat(K::OFFSET) {
            offset = Some(self.limit_value()?);
            if !self.eat(K::ROWS) {
                self.expect(K::ROW)?;
            }
        }
        if self.at(K::FETCH) {
            self.advance();
            if !self.eat(K::FIRST) {
                self.expect(K::NEXT)?;
            }
            let one = Expression::Literal(Literal::Integer(1));
            let bare = self.at_any(&[K::ROW, K::ROWS]);
            let count = if bare { one } else { self.limit_value()? };
            if !self.eat(K::ROWS) {
                self.expect(K::ROW)?;
            }
            let with_ties = self.eat_two(K::WITH, K::TIES);
            if !with_ties {
                self.expect(K::ONLY)?;
            }
            return Ok(Some(Limit { count: Some(count), offset, with_ties, rows_examined: None }));
        }
        Ok(offset.map(|offset| Limit {
            count: None,
            offset: Some(offset),
            with_ties: false,
            rows_examined: None,
        }))
    }

    fn limit_rest(&mut self) -> Result<Limit> {
        let mut limit = Limit { count: None, offset: None, with_ties: false, rows_examined: None };
        if !self.at(K::ROWS) {
            let first = self.limit_value()?;
            if self.eat(Symbol::Comma) {
                limit.offset = Some(first);
                limit.count = Some(self.limit_value()?);
            } else {
                limit.count = Some(first);
                if self.eat(K::OFFSET) {
                    limit.offset = Some(self.limit_value()?);
                }
            }
        }
        if self.eat(K::ROWS) {
            self.expect(K::EXAMINED)?;
            limit.rows_examined = Some(self.limit_value()?);
        }
        Ok(limit)
    }

    /// A number, a parameter or a local variable.
    fn limit_value(&mut self) -> Result<Expression> {
        match self.token.kind {
            Kind::Integer | Kind::HexNumber => match self.literal()? {
                Some(literal) => Ok(Expression::Literal(literal)),
                None => Err(self.unexpected()),
            },
            Kind::Parameter => self.parameter(),
            _ if self.at_name() => {
                let name = self.name()?;
                let message = format!("Undeclared variable: {name}");
                Err(ParseError::other(1327, "42000", message))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// FOR UPDATE and LOCK IN SHARE MODE, if they follow.
    #[inline(never)]
    fn locking(&mut self) -> Result<Option<Locking>> {
        let exclusive = if self.eat(K::FOR) {
            self.expect(K::UPDATE)?;
            true
        } else if self.at(K::LOCK) && self.peek_is(K::IN) {
            self.advance();
            self.advance();
            self.expect(K::SHARE)?;
            self.expect(K::MODE)?;
            false
        } else {
            return Ok(None);
        };
        let wait = if self.eat(K::NOWAIT) {
            LockingWait::NoWait
        } else if self.eat(K::WAIT) {
            LockingWait::Seconds(self.number()?)
        } else if self.eat(K::SKIP) {
            self.expect(K::LOCKED)?;
            LockingWait::SkipLocked
        } else {
            LockingWait::Default
        };
        Ok(Some(Locking { exclusive, wait }))
    }

    #[inline(never)]
    fn query_target(&mut self) -> Result<Into> {
        self.advance();
        if self.eat(K::OUTFILE) {
            let path = self.text_literal()?;
            let format = self.file_format()?;
            return Ok(Into::Outfile { path, format });
        }
        if self.eat(K::DUMPFILE) {
            return Ok(Into::Dumpfile(self.text_literal()?));
        }
        let variables = self.list(|parser| {
            if parser.at(Symbol::At) {
                return Ok(IntoVariable::User(parser.user_variable()?));
            }
            Ok(IntoVariable::Local(parser.name()?))
        })?;
        Ok(Into::Variables(variables))
    }
}

/// Source text without the marks of version comments, as MariaDB names items by it.
fn without_version_marks(text: String) -> String {
    if !text.contains("/*!") && !text.contains("/*M!") {
        return text;
    }
    let mut result = String::with_capacity(text.len());
    let mut rest = text.as_str();
    let mut open = false;
    while !rest.is_empty() {
        let mark = ["/*!", "/*M!"].iter().find(|mark| rest.starts_with(**mark));
        if let Some(mark) = mark {
            rest = rest[mark.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
            open = true;
        } else if open && rest.starts_with("*/") {
            rest = &rest[2..];
            open = false;
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            result.push_str(&rest[..next]);
            rest = &rest[next..];
        }
    }
    result
}
