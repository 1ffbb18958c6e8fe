//! KILL, FLUSH, upkeep of tables, prepared statements.

use super::*;
use Keyword as K;

/// What FLUSH takes, besides tables.
const FLUSHED: [&str; 32] = [
    "PRIVILEGES",
    "STATUS",
    "HOSTS",
    "LOGS",
    "ENGINE LOGS",
    "ERROR LOGS",
    "BINARY LOGS",
    "GENERAL LOGS",
    "SLOW LOGS",
    "RELAY LOGS",
    "QUERY CACHE",
    "USER_RESOURCES",
    "DES_KEY_FILE",
    "MASTER",
    "SLAVE",
    "SSL",
    "GLOBAL STATUS",
    "SESSION STATUS",
    "LOCAL STATUS",
    "USER_STATISTICS",
    "CLIENT_STATISTICS",
    "TABLE_STATISTICS",
    "INDEX_STATISTICS",
    "USER_VARIABLES",
    "THREADS",
    "CHANGED_PAGE_BITMAPS",
    "DISK",
    "QUERY_RESPONSE_TIME",
    "OPTIMIZER_COSTS",
    "LOCALES",
    "BINARY",
    "QUERY_CACHE",
];

impl Parser<'_> {
    /// Statements that begin with `keyword` and are about the server.
    pub(super) fn administration_statement(&mut self, keyword: Keyword) -> Result<Statement> {
        let start = self.token;
        match keyword {
            K::KILL => self.kill(),
            K::FLUSH => self.flush(),
            K::ANALYZE => self.analyze(),
            K::OPTIMIZE => self.maintenance(MaintenanceOperation::Optimize),
            K::CHECK => self.maintenance(MaintenanceOperation::Check),
            K::REPAIR => self.maintenance(MaintenanceOperation::Repair),
            K::CHECKSUM => self.maintenance(MaintenanceOperation::Checksum),
            K::PREPARE => self.prepare(),
            K::EXECUTE => self.execute(),
            K::DEALLOCATE => {
                self.advance();
                self.expect(K::PREPARE)?;
                self.name().map(Statement::Deallocate)
            }
            K::GRANT => self.grant(),
            K::REVOKE => self.revoke(),
            K::SHUTDOWN => {
                self.advance();
                if self.at(K::WAIT) {
                    self.advance();
                    self.expect(K::FOR)?;
                    self.expect(K::ALL)?;
                    if !self.eat(K::SLAVES) {
                        self.expect(K::REPLICAS)?;
                    }
                }
                Ok(Statement::Shutdown)
            }
            K::HANDLER => {
                self.advance();
                let mut other = self.other_statement(start)?;
                other.feature = "HANDLER".into();
                Ok(Statement::Handler(other))
            }
            K::RESET => {
                self.advance();
                self.other_statement(start).map(Statement::Reset)
            }
            K::CHANGE
            | K::STOP
            | K::PURGE
            | K::BINLOG
            | K::INSTALL
            | K::UNINSTALL
            | K::SIGNAL
            | K::RESIGNAL
            | K::HELP
            | K::CACHE => {
                self.advance();
                self.other(start)
            }
            K::GET => {
                self.advance();
                self.other(start)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn kill(&mut self) -> Result<Statement> {
        self.advance();
        let mut hard = true;
        if self.eat(K::SOFT) {
            hard = false;
        } else {
            self.eat(K::HARD);
        }
        let query = self.eat(K::QUERY);
        if !query {
            self.eat(K::CONNECTION);
        }
        let target = if query && self.at(K::ID) {
            self.advance();
            KillTarget::QueryId(self.expression()?)
        } else if self.at(K::USER) {
            self.advance();
            KillTarget::User(self.account_name()?)
        } else {
            KillTarget::Connection(self.expression()?)
        };
        Ok(Statement::Kill(Kill { hard, query, target }))
    }

    fn flush(&mut self) -> Result<Statement> {
        self.advance();
        let local = self.local_word();
        let mut flush = Flush {
            local,
            items: Vec::new(),
            tables: Vec::new(),
            read_lock: false,
            for_export: false,
        };
        if self.at_any(&[K::TABLE, K::TABLES]) {
            self.advance();
            self.flush_tables(&mut flush)?;
            return Ok(Statement::Flush(flush));
        }
        flush.items = self.list(Self::flush_item)?;
        Ok(Statement::Flush(flush))
    }

    /// LOCAL, NO_WRITE_TO_BINLOG.
    fn local_word(&mut self) -> bool {
        if self.at(K::LOCAL) && self.peek_is(K::STATUS) {
            return false;
        }
        self.eat(K::LOCAL) || self.eat(K::NO_WRITE_TO_BINLOG)
    }

    fn flush_tables(&mut self, flush: &mut Flush) -> Result<()> {
        if self.at_name() {
            flush.tables = self.list(Self::table_name)?;
        }
        if self.eat(K::WITH) {
            self.expect(K::READ)?;
            self.expect(K::LOCK)?;
            flush.read_lock = true;
        } else if self.eat(K::FOR) {
            self.expect(K::EXPORT)?;
            flush.for_export = true;
        }
        if flush.tables.is_empty() {
            flush.items.push("TABLES".into());
        }
        Ok(())
    }

    fn flush_item(&mut self) -> Result<String> {
        let token = self.token;
        let mut item = self.word()?;
        if let Kind::Word(_) = self.token.kind
            && !self.at(K::WITH)
        {
            let two = format!("{item} {}", self.to_utf8_lossy(self.bytes(self.token)));
            let two = two.to_ascii_uppercase();
            if FLUSHED.contains(&two.as_str()) {
                self.advance();
                item = two;
            }
        }
        if FLUSHED.contains(&item.as_str()) { Ok(item) } else { Err(self.unexpected_at(token)) }
    }

    /// ANALYZE TABLE, or ANALYZE statement.
    fn analyze(&mut self) -> Result<Statement> {
        let table_words = [K::TABLE, K::TABLES, K::LOCAL, K::NO_WRITE_TO_BINLOG];
        if matches!(self.peek().kind, Kind::Word(word) if table_words.contains(&word)) {
            return self.maintenance(MaintenanceOperation::Analyze);
        }
        self.advance();
        let mut format = None;
        if self.at(K::FORMAT) && self.peek_is(Symbol::Equal) {
            self.advance();
            self.advance();
            format = Some(self.name_or_text()?.to_ascii_uppercase());
        }
        let statement = self.deeper(|parser| {
            let words =
                [K::SELECT, K::INSERT, K::REPLACE, K::UPDATE, K::DELETE, K::WITH, K::VALUES];
            if parser.at_any(&words) || parser.at(Symbol::LeftParenthesis) {
                return parser.statement();
            }
            Err(parser.unexpected())
        })?;
        Ok(Statement::Explain(Box::new(Explain {
            analyze: true,
            extended: false,
            partitions: false,
            format,
            statement: Some(statement),
            connection: None,
        })))
    }

    fn maintenance(&mut self, operation: MaintenanceOperation) -> Result<Statement> {
        self.advance();
        let local = self.local_word();
        if !self.eat(K::TABLES) {
            self.expect(K::TABLE)?;
        }
        let tables = self.list(Self::table_name)?;
        let options = self.maintenance_options(operation)?;
        let partitions = None;
        let made = TableMaintenance { operation, local, tables, partitions, options };
        Ok(Statement::TableMaintenance(made))
    }

    /// Words behind the names of tables or partitions.
    pub(super) fn maintenance_options(
        &mut self,
        operation: MaintenanceOperation,
    ) -> Result<Vec<String>> {
        let mut options = Vec::new();
        while !self.at(Kind::End) && !self.at(Symbol::Semicolon) {
            match self.token.kind {
                Kind::Word(
                    K::QUICK
                    | K::EXTENDED
                    | K::FAST
                    | K::MEDIUM
                    | K::CHANGED
                    | K::USE_FRM
                    | K::FOR
                    | K::UPGRADE
                    | K::FORCE
                    | K::PERSISTENT
                    | K::ALL
                    | K::COLUMNS
                    | K::INDEXES
                    | K::WAIT
                    | K::NOWAIT,
                ) => options.push(self.word()?),
                Kind::Symbol(Symbol::LeftParenthesis)
                    if operation == MaintenanceOperation::Analyze =>
                {
                    options.push(format!("({})", self.skip_parenthesized()?));
                }
                Kind::Integer if options.last().is_some_and(|word| word == "WAIT") => {
                    options.push(self.number()?.to_string());
                }
                _ => return Err(self.unexpected()),
            }
        }
        Ok(options)
    }

    fn prepare(&mut self) -> Result<Statement> {
        self.advance();
        let name = self.name()?;
        self.expect(K::FROM)?;
        let source = self.expression()?;
        Ok(Statement::Prepare(Prepare { name, source }))
    }

    fn execute(&mut self) -> Result<Statement> {
        self.advance();
        if self.eat(K::IMMEDIATE) {
            let source = self.expression()?;
            let arguments = self.using()?;
            return Ok(Statement::ExecuteImmediate(ExecuteImmediate { source, arguments }));
        }
        let name = self.name()?;
        let arguments = self.using()?;
        Ok(Statement::Execute(Execute { name, arguments }))
    }

    fn using(&mut self) -> Result<Vec<Expression>> {
        if self.eat(K::USING) { self.list(Self::expression) } else { Ok(Vec::new()) }
    }
}
