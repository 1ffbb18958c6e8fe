//! SHOW.

use super::*;
use Keyword as K;

/// Forms of SHOW that are kept as their words.
const OTHER: [&str; 26] = [
    "PROFILES",
    "AUTHORS",
    "CONTRIBUTORS",
    "BINARY LOGS",
    "MASTER LOGS",
    "MASTER STATUS",
    "BINLOG STATUS",
    "BINLOG EVENTS",
    "SLAVE STATUS",
    "REPLICA STATUS",
    "ALL SLAVES STATUS",
    "ALL REPLICAS STATUS",
    "SLAVE HOSTS",
    "REPLICA HOSTS",
    "RELAYLOG EVENTS",
    "LOCALES",
    "USER_STATISTICS",
    "CLIENT_STATISTICS",
    "INDEX_STATISTICS",
    "TABLE_STATISTICS",
    "USER_VARIABLES",
    "QUERY_RESPONSE_TIME",
    "PACKAGE",
    "STORAGE ENGINES",
    "PROFILE",
    "QUERY_CACHE_INFO",
];

impl Parser<'_> {
    /// SHOW.
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.advance();
        let kind = self.show_kind()?;
        let mut show = Show { kind, like: None, filter: None };
        let filtered = matches!(
            show.kind,
            ShowKind::Databases
                | ShowKind::Tables { .. }
                | ShowKind::TableStatus { .. }
                | ShowKind::OpenTables { .. }
                | ShowKind::Columns { .. }
                | ShowKind::Indexes { .. }
                | ShowKind::Variables(_)
                | ShowKind::Status(_)
                | ShowKind::CharacterSets
                | ShowKind::Collations
                | ShowKind::Triggers { .. }
                | ShowKind::Events { .. }
                | ShowKind::RoutineStatus(_)
                | ShowKind::Other(_)
        );
        if filtered && self.eat(K::LIKE) {
            show.like = Some(self.text_literal()?);
        } else if filtered && self.eat(K::WHERE) {
            show.filter = Some(self.expression()?);
        }
        Ok(Statement::Show(Box::new(show)))
    }

    fn show_kind(&mut self) -> Result<ShowKind> {
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::DATABASES | K::SCHEMAS => self.shown(ShowKind::Databases),
            K::FULL => self.show_full(),
            K::TABLES => self.show_tables(false),
            K::COLUMNS | K::FIELDS => self.show_columns(false),
            K::PROCESSLIST => self.shown(ShowKind::ProcessList { full: false }),
            K::TABLE if self.peek_is(K::STATUS) => {
                self.advance();
                self.advance();
                Ok(ShowKind::TableStatus { schema: self.shown_schema()? })
            }
            K::OPEN => {
                self.advance();
                self.expect(K::TABLES)?;
                Ok(ShowKind::OpenTables { schema: self.shown_schema()? })
            }
            K::INDEX | K::INDEXES | K::KEYS => {
                self.advance();
                Ok(ShowKind::Indexes { table: self.shown_table()? })
            }
            K::GLOBAL | K::SESSION | K::LOCAL | K::VARIABLES | K::STATUS => self.show_variables(),
            K::CREATE => self.show_create(),
            K::GRANTS => {
                self.advance();
                let account = if self.eat(K::FOR) { Some(self.account_name()?) } else { None };
                Ok(ShowKind::Grants(account))
            }
            K::WARNINGS | K::ERRORS => self.show_conditions(keyword == K::WARNINGS),
            K::ENGINES => self.shown(ShowKind::Engines),
            K::STORAGE if self.peek_is(K::ENGINES) => {
                self.advance();
                self.shown(ShowKind::Engines)
            }
            K::ENGINE => self.show_engine(),
            K::CHARACTER | K::CHARSET | K::CHAR => {
                if !self.at_charset_words() {
                    return Err(self.unexpected());
                }
                self.advance_charset_words()?;
                Ok(ShowKind::CharacterSets)
            }
            K::COLLATION => self.shown(ShowKind::Collations),
            K::PLUGINS => {
                self.advance();
                if self.eat(K::SONAME) {
                    self.text_literal()?;
                }
                Ok(ShowKind::Plugins)
            }
            K::PRIVILEGES => self.shown(ShowKind::Privileges),
            K::TRIGGERS => {
                self.advance();
                Ok(ShowKind::Triggers { schema: self.shown_schema()? })
            }
            K::EVENTS => {
                self.advance();
                Ok(ShowKind::Events { schema: self.shown_schema()? })
            }
            K::PROCEDURE | K::FUNCTION | K::PACKAGE => self.show_routine(),
            K::EXPLAIN | K::ANALYZE => self.show_explain(),
            _ => self.show_by_words(),
        }
    }

    fn shown(&mut self, kind: ShowKind) -> Result<ShowKind> {
        self.advance();
        Ok(kind)
    }

    fn show_full(&mut self) -> Result<ShowKind> {
        self.advance();
        match self.token.kind {
            Kind::Word(K::TABLES) => self.show_tables(true),
            Kind::Word(K::COLUMNS | K::FIELDS) => self.show_columns(true),
            Kind::Word(K::PROCESSLIST) => self.shown(ShowKind::ProcessList { full: true }),
            _ => Err(self.unexpected()),
        }
    }

    fn show_tables(&mut self, full: bool) -> Result<ShowKind> {
        self.advance();
        Ok(ShowKind::Tables { full, schema: self.shown_schema()? })
    }

    fn show_columns(&mut self, full: bool) -> Result<ShowKind> {
        self.advance();
        Ok(ShowKind::Columns { full, table: self.shown_table()? })
    }

    /// FROM or IN a database, if it follows.
    fn shown_schema(&mut self) -> Result<Option<String>> {
        if self.eat(K::FROM) || self.eat(K::IN) { self.name().map(Some) } else { Ok(None) }
    }

    /// FROM table [FROM schema].
    fn shown_table(&mut self) -> Result<TableName> {
        if !self.eat(K::FROM) {
            self.expect(K::IN)?;
        }
        let mut table = self.table_name()?;
        if let Some(schema) = self.shown_schema()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn show_variables(&mut self) -> Result<ShowKind> {
        let scope = match self.token.kind {
            Kind::Word(K::GLOBAL) => VariableScope::Global,
            Kind::Word(K::SESSION | K::LOCAL) => VariableScope::Session,
            _ => VariableScope::Default,
        };
        if scope != VariableScope::Default {
            self.advance();
        }
        if self.eat(K::VARIABLES) {
            return Ok(ShowKind::Variables(scope));
        }
        self.expect(K::STATUS)?;
        Ok(ShowKind::Status(scope))
    }

    fn show_create(&mut self) -> Result<ShowKind> {
        self.advance();
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::TABLE => {
                self.advance();
                self.table_name().map(ShowKind::CreateTable)
            }
            K::VIEW => {
                self.advance();
                self.table_name().map(ShowKind::CreateView)
            }
            K::DATABASE | K::SCHEMA => {
                self.advance();
                let if_not_exists = self.if_not_exists()?;
                Ok(ShowKind::CreateDatabase { name: self.name()?, if_not_exists })
            }
            K::USER => {
                self.advance();
                let ends = self.at(Kind::End) || self.at(Symbol::Semicolon);
                Ok(ShowKind::CreateUser(if ends { None } else { Some(self.account_name()?) }))
            }
            K::PROCEDURE | K::FUNCTION | K::TRIGGER | K::EVENT | K::SEQUENCE => {
                let word = self.word()?;
                Ok(ShowKind::CreateOther(word, self.table_name()?))
            }
            K::PACKAGE => {
                let mut word = self.word()?;
                if let Kind::Word(K::NONE) = self.token.kind
                    && self.bytes(self.token).eq_ignore_ascii_case(b"body")
                {
                    self.advance();
                    word.push_str(" BODY");
                }
                Ok(ShowKind::CreateOther(word, self.table_name()?))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn show_conditions(&mut self, warnings: bool) -> Result<ShowKind> {
        self.advance();
        let (mut offset, mut count) = (0, None);
        if self.eat(K::LIMIT) {
            let first = self.number()?;
            if self.eat(Symbol::Comma) {
                offset = first;
                count = Some(self.number()?);
            } else {
                count = Some(first);
                if self.eat(K::OFFSET) {
                    offset = self.number()?;
                }
            }
        }
        Ok(if warnings {
            ShowKind::Warnings { offset, count }
        } else {
            ShowKind::Errors { offset, count }
        })
    }

    fn show_engine(&mut self) -> Result<ShowKind> {
        self.advance();
        let name = self.name_or_text()?;
        let token = self.token;
        let word = self.word()?;
        if !["STATUS", "MUTEX", "LOGS"].contains(&word.as_str()) {
            return Err(self.unexpected_at(token));
        }
        Ok(ShowKind::Engine(name.to_ascii_uppercase(), word))
    }

    fn show_routine(&mut self) -> Result<ShowKind> {
        let mut word = self.word()?;
        if word == "PACKAGE" && self.bytes(self.token).eq_ignore_ascii_case(b"body") {
            self.advance();
            word.push_str(" BODY");
        }
        if self.at(K::CODE) {
            return Err(self.unexpected());
        }
        self.expect(K::STATUS)?;
        Ok(ShowKind::RoutineStatus(word))
    }

    fn show_explain(&mut self) -> Result<ShowKind> {
        self.advance();
        if self.at(K::FORMAT) {
            self.advance();
            self.expect(Symbol::Equal)?;
            self.name_or_text()?;
        }
        self.expect(K::FOR)?;
        self.expression().map(ShowKind::ExplainFor)
    }

    /// `COUNT(*) WARNINGS` and the forms kept as words.
    fn show_by_words(&mut self) -> Result<ShowKind> {
        let start = self.token;
        let mut words = self.word()?;
        if words == "COUNT" && self.at(Symbol::LeftParenthesis) {
            self.advance();
            self.expect(Symbol::Star)?;
            self.expect(Symbol::RightParenthesis)?;
            if self.eat(K::WARNINGS) {
                return Ok(ShowKind::WarningCount);
            }
            self.expect(K::ERRORS)?;
            return Ok(ShowKind::ErrorCount);
        }
        loop {
            if OTHER.contains(&words.as_str()) {
                break;
            }
            let goes_on = OTHER.iter().any(|form| {
                form.strip_prefix(words.as_str()).is_some_and(|rest| rest.starts_with(' '))
            });
            if !goes_on {
                return Err(if self.previous_end == start.end {
                    self.unexpected_at(start)
                } else {
                    self.unexpected()
                });
            }
            words.push(' ');
            words.push_str(&self.word()?);
        }
        if words == "PROFILE" || words.ends_with("EVENTS") || words.ends_with("STATUS") {
            while !self.at(Kind::End)
                && !self.at(Symbol::Semicolon)
                && !self.at_any(&[K::LIKE, K::WHERE])
            {
                if self.at(Kind::Invalid) {
                    return Err(self.unexpected());
                }
                self.advance();
            }
        }
        Ok(ShowKind::Other(words))
    }
}
