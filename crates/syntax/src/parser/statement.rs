//! Which statement it is.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// A statement without its semicolon.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        if self.at(Symbol::LeftParenthesis) {
            if !self.begins_query() {
                return Err(self.unexpected_after_parentheses());
            }
            return self.query_statement();
        }
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::SELECT | K::WITH => self.query_statement(),
            K::VALUES => self.query_statement(),
            K::INSERT | K::REPLACE => Ok(Statement::Insert(Box::new(self.insert()?))),
            K::UPDATE => Ok(Statement::Update(Box::new(self.update()?))),
            K::DELETE => Ok(Statement::Delete(Box::new(self.delete()?))),
            K::SET => self.set(),
            K::SHOW => self.show(),
            K::BEGIN
            | K::START
            | K::COMMIT
            | K::ROLLBACK
            | K::SAVEPOINT
            | K::RELEASE
            | K::XA
            | K::LOCK
            | K::UNLOCK => self.transaction_statement(keyword),
            K::CREATE => self.create(),
            K::ALTER => self.alter(),
            K::DROP => self.drop_statement(),
            K::RENAME => self.rename(),
            K::TRUNCATE => self.truncate(),
            K::LOAD => {
                if matches!(self.peek().kind, Kind::Word(K::DATA | K::XML)) {
                    return Ok(Statement::LoadData(Box::new(self.load_data()?)));
                }
                let start = self.advance();
                if self.at(K::INDEX) { self.other(start) } else { Err(self.unexpected()) }
            }
            K::USE => {
                self.advance();
                self.name().map(Statement::Use)
            }
            K::EXPLAIN | K::DESCRIBE | K::DESC => self.explain(),
            K::DO => {
                self.advance();
                self.list(Self::expression).map(Statement::Do)
            }
            K::CALL => self.call_statement(),
            _ => self.administration_statement(keyword),
        }
    }

    fn query_statement(&mut self) -> Result<Statement> {
        Ok(Statement::Query(Box::new(self.query()?)))
    }

    /// Error at the first token behind the opening parentheses of what is not a query.
    fn unexpected_after_parentheses(&mut self) -> ParseError {
        while self.eat(Symbol::LeftParenthesis) {}
        self.unexpected()
    }

    fn call_statement(&mut self) -> Result<Statement> {
        self.advance();
        let procedure = self.table_name()?;
        let mut arguments = Vec::new();
        if self.eat(Symbol::LeftParenthesis) && !self.eat(Symbol::RightParenthesis) {
            arguments = self.list(Self::expression)?;
            self.expect(Symbol::RightParenthesis)?;
        }
        Ok(Statement::Call(Call { procedure, arguments }))
    }

    fn transaction_statement(&mut self, keyword: Keyword) -> Result<Statement> {
        let start = self.token;
        match keyword {
            K::BEGIN => {
                self.advance();
                self.eat(K::WORK);
                Ok(Statement::Begin(Begin::default()))
            }
            K::START if self.peek_is(K::TRANSACTION) => self.start_transaction(),
            K::START => {
                self.advance();
                if self.at_any(&[K::SLAVE, K::ALL, K::REPLICA]) {
                    return self.other(start);
                }
                Err(self.unexpected())
            }
            K::COMMIT => {
                self.advance();
                self.eat(K::WORK);
                self.completion().map(Statement::Commit)
            }
            K::ROLLBACK => self.rollback(),
            K::SAVEPOINT => {
                self.advance();
                self.name().map(Statement::Savepoint)
            }
            K::RELEASE => {
                self.advance();
                self.expect(K::SAVEPOINT)?;
                self.name().map(Statement::ReleaseSavepoint)
            }
            K::LOCK => self.lock_tables(),
            K::UNLOCK => {
                self.advance();
                if !self.eat(K::TABLES) {
                    self.expect(K::TABLE)?;
                }
                Ok(Statement::UnlockTables)
            }
            _ => self.xa_statement(),
        }
    }

    fn start_transaction(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let mut begin = Begin::default();
        if !self.at_any(&[K::WITH, K::READ]) {
            return Ok(Statement::Begin(begin));
        }
        loop {
            if self.eat(K::WITH) {
                self.expect(K::CONSISTENT)?;
                self.expect(K::SNAPSHOT)?;
                begin.consistent_snapshot = true;
            } else if self.eat(K::READ) {
                let read_only = self.eat(K::ONLY);
                if !read_only {
                    self.expect(K::WRITE)?;
                }
                if begin.read_only.is_some() {
                    return Err(self.unexpected());
                }
                begin.read_only = Some(read_only);
            } else {
                return Err(self.unexpected());
            }
            if !self.eat(Symbol::Comma) {
                return Ok(Statement::Begin(begin));
            }
        }
    }

    fn rollback(&mut self) -> Result<Statement> {
        self.advance();
        self.eat(K::WORK);
        if self.eat(K::TO) {
            self.eat(K::SAVEPOINT);
            return self.name().map(Statement::RollbackTo);
        }
        self.completion().map(Statement::Rollback)
    }

    fn completion(&mut self) -> Result<Completion> {
        let mut completion = Completion::default();
        if self.eat(K::AND) {
            completion.chain = Some(!self.eat(K::NO));
            self.expect(K::CHAIN)?;
        }
        if self.at(K::NO) {
            self.advance();
            self.expect(K::RELEASE)?;
            completion.release = Some(false);
        } else if self.at(K::RELEASE) {
            // A connection that ends has no next transaction.
            if completion.chain == Some(true) {
                return Err(self.unexpected());
            }
            self.advance();
            completion.release = Some(true);
        }
        Ok(completion)
    }

    fn lock_tables(&mut self) -> Result<Statement> {
        self.advance();
        if !self.eat(K::TABLES) {
            self.expect(K::TABLE)?;
        }
        let tables = self.list(|parser| {
            let name = parser.table_name()?;
            let alias = parser.table_alias()?;
            let mut lock = TableLock { name, alias, write: false, local: false };
            if parser.eat(K::READ) {
                lock.local = parser.eat(K::LOCAL);
            } else {
                if parser.eat(K::LOW_PRIORITY) || parser.at(K::WRITE) {
                    lock.write = true;
                }
                parser.expect(K::WRITE)?;
            }
            Ok(lock)
        })?;
        let wait_seconds = self.wait_seconds()?;
        Ok(Statement::LockTables(LockTables { tables, wait_seconds }))
    }

    /// EXPLAIN, DESCRIBE, DESC.
    fn explain(&mut self) -> Result<Statement> {
        self.advance();
        let mut explain = Explain {
            analyze: false,
            extended: false,
            partitions: false,
            format: None,
            statement: None,
            connection: None,
        };
        if self.at(K::ANALYZE) {
            self.advance();
            explain.analyze = true;
        }
        if self.at(K::EXTENDED) && !self.describes_table() {
            self.advance();
            explain.extended = true;
        } else if self.at(K::PARTITIONS) && !self.describes_table() {
            self.advance();
            explain.partitions = true;
        }
        if self.at(K::FORMAT) && self.peek_is(Symbol::Equal) {
            self.advance();
            self.advance();
            explain.format = Some(self.name_or_text()?.to_ascii_uppercase());
        }
        if self.at(K::FOR) {
            self.advance();
            self.expect(K::CONNECTION)?;
            explain.connection = Some(self.number()?);
            return Ok(Statement::Explain(Box::new(explain)));
        }
        let explainable =
            [K::SELECT, K::INSERT, K::REPLACE, K::UPDATE, K::DELETE, K::WITH, K::VALUES];
        if self.at_any(&explainable) || self.at(Symbol::LeftParenthesis) {
            explain.statement = Some(self.statement()?);
            return Ok(Statement::Explain(Box::new(explain)));
        }
        if explain.extended || explain.partitions || explain.analyze || explain.format.is_some() {
            return Err(self.unexpected());
        }
        let table = self.table_name()?;
        let column = if self.at(Kind::Text) {
            Some(self.text_string()?)
        } else if self.at_name() {
            Some(self.name()?)
        } else {
            None
        };
        Ok(Statement::Describe(Describe { table, column }))
    }

    /// Whether the word that follows EXPLAIN is a table's name since nothing explainable follows.
    fn describes_table(&self) -> bool {
        !matches!(
            self.peek().kind,
            Kind::Word(
                K::SELECT
                    | K::INSERT
                    | K::REPLACE
                    | K::UPDATE
                    | K::DELETE
                    | K::WITH
                    | K::VALUES
                    | K::FORMAT
            ) | Kind::Symbol(Symbol::LeftParenthesis)
        )
    }
}
