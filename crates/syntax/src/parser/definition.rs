//! CREATE, DROP, RENAME, TRUNCATE other than CREATE TABLE.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// CREATE.
    pub(super) fn create(&mut self) -> Result<Statement> {
        let start = self.token;
        self.advance();
        let or_replace = self.at(K::OR);
        if or_replace {
            self.advance();
            self.expect(K::REPLACE)?;
        }
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::TABLE => Ok(Statement::CreateTable(Box::new(self.create_table(or_replace, false)?))),
            K::TEMPORARY if self.peek_is(K::TABLE) => {
                self.advance();
                Ok(Statement::CreateTable(Box::new(self.create_table(or_replace, true)?)))
            }
            K::DATABASE | K::SCHEMA => self.create_database(or_replace),
            K::INDEX | K::UNIQUE | K::FULLTEXT | K::SPATIAL | K::ONLINE => {
                Ok(Statement::CreateIndex(Box::new(self.create_index(or_replace)?)))
            }
            K::USER => self.create_user(or_replace),
            K::ROLE => self.create_role(or_replace),
            K::VIEW | K::ALGORITHM | K::SQL => self.create_view(or_replace),
            K::DEFINER => self.create_with_definer(or_replace, start),
            K::TRIGGER
            | K::PROCEDURE
            | K::FUNCTION
            | K::EVENT
            | K::SEQUENCE
            | K::SERVER
            | K::PACKAGE
            | K::AGGREGATE
            | K::TEMPORARY
            | K::TABLESPACE
            | K::LOGFILE => self.other(start),
            _ => Err(self.unexpected()),
        }
    }

    /// A statement kept as text. It begins at `start`; the next token is the second word of its
    /// feature.
    pub(super) fn other(&mut self, start: Token) -> Result<Statement> {
        self.other_statement(start).map(Statement::Other)
    }

    /// See [`Parser::other`].
    pub(super) fn other_statement(&mut self, start: Token) -> Result<OtherStatement> {
        let mut feature = self.to_utf8_lossy(self.bytes(start)).to_ascii_uppercase();
        if let Kind::Word(_) = self.token.kind {
            feature.push(' ');
            feature.push_str(&self.to_utf8_lossy(self.bytes(self.token)).to_ascii_uppercase());
        }
        // Bodies of stored programs hold semicolons: the rest of the text belongs to them.
        while !self.at(Kind::End) {
            if self.at(Kind::Invalid) {
                return Err(self.unexpected());
            }
            self.advance();
        }
        let text = self.source(start.start, self.previous_end);
        Ok(OtherStatement { feature, text })
    }

    fn create_with_definer(&mut self, or_replace: bool, start: Token) -> Result<Statement> {
        let mut ahead = self.lexer;
        for _ in 0..12 {
            match ahead.next().kind {
                Kind::Word(K::VIEW) => return self.create_view(or_replace),
                Kind::Word(K::TRIGGER | K::PROCEDURE | K::FUNCTION | K::EVENT | K::PACKAGE) => {
                    break;
                }
                Kind::End => return Err(self.unexpected()),
                _ => {}
            }
        }
        self.other(start)
    }

    fn alter_view(&mut self) -> Result<Statement> {
        self.create_view(false).map(Self::altered_view)
    }

    /// ALTER VIEW has the form of CREATE VIEW.
    fn altered_view(statement: Statement) -> Statement {
        match statement {
            Statement::CreateView(mut view) => {
                view.alter = true;
                Statement::CreateView(view)
            }
            other => other,
        }
    }

    fn create_view(&mut self, or_replace: bool) -> Result<Statement> {
        let mut attributes = Vec::new();
        loop {
            if self.eat(K::ALGORITHM) {
                self.expect(Symbol::Equal)?;
                attributes.push(("ALGORITHM".to_string(), self.word()?));
            } else if self.eat(K::DEFINER) {
                self.expect(Symbol::Equal)?;
                let start = self.token.start;
                self.account_name()?;
                attributes.push(("DEFINER".into(), self.source(start, self.previous_end)));
            } else if self.eat(K::SQL) {
                self.expect(K::SECURITY)?;
                attributes.push(("SQL SECURITY".into(), self.word()?));
            } else {
                break;
            }
        }
        self.expect(K::VIEW)?;
        if self.if_not_exists()? {
            attributes.push(("IF NOT EXISTS".into(), String::new()));
        }
        let name = self.table_name()?;
        let columns = if self.at(Symbol::LeftParenthesis) { self.name_list()? } else { Vec::new() };
        self.expect(K::AS)?;
        if !self.begins_query() {
            return Err(self.unexpected());
        }
        let query = Box::new(self.query()?);
        let mut check_option = None;
        if self.eat(K::WITH) {
            let word = if self.eat(K::LOCAL) {
                "LOCAL"
            } else {
                self.eat(K::CASCADED);
                "CASCADED"
            };
            self.expect(K::CHECK)?;
            self.expect(K::OPTION)?;
            check_option = Some(word.to_string());
        }
        let alter = false;
        let view = CreateView { alter, or_replace, attributes, name, columns, query, check_option };
        Ok(Statement::CreateView(Box::new(view)))
    }

    fn create_index(&mut self, or_replace: bool) -> Result<CreateIndex> {
        self.eat(K::ONLINE);
        let kind = match self.token.kind {
            Kind::Word(K::UNIQUE) => IndexKind::Unique,
            Kind::Word(K::FULLTEXT) => IndexKind::FullText,
            Kind::Word(K::SPATIAL) => IndexKind::Spatial,
            _ => IndexKind::Plain,
        };
        if kind != IndexKind::Plain {
            self.advance();
        }
        self.expect(K::INDEX)?;
        let if_not_exists = self.if_not_exists()?;
        let mut index = IndexSpecification {
            kind,
            symbol: None,
            name: Some(self.new_name()?),
            if_not_exists,
            parts: Vec::new(),
            using: None,
            comment: None,
            key_block_size: None,
            ignored: None,
            other: Vec::new(),
        };
        self.index_using(&mut index)?;
        self.expect(K::ON)?;
        let table = self.table_name()?;
        self.wait_seconds()?;
        self.index_columns(&mut index)?;
        let hints = self.alter_hints()?;
        Ok(CreateIndex { or_replace, index, table, hints })
    }

    fn alter_hints(&mut self) -> Result<Vec<(String, String)>> {
        let mut hints = Vec::new();
        while self.at_any(&[K::ALGORITHM, K::LOCK]) {
            hints.push(self.alter_hint()?);
        }
        Ok(hints)
    }

    fn create_database(&mut self, or_replace: bool) -> Result<Statement> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_name()?;
        let options = self.database_options()?;
        Ok(Statement::CreateDatabase(CreateDatabase { or_replace, if_not_exists, name, options }))
    }

    /// ALTER DATABASE behind `ALTER`; `DATABASE` is the next token.
    pub(super) fn alter_database(&mut self) -> Result<Statement> {
        self.advance();
        let begins_options = self.at_charset_words()
            || self.at_any(&[K::DEFAULT, K::COLLATE])
            || (self.at(K::COMMENT)
                && matches!(self.peek().kind, Kind::Text | Kind::Symbol(Symbol::Equal)));
        let name = if begins_options { None } else { Some(self.name()?) };
        let options = self.database_options()?;
        if options == DatabaseOptions::default() {
            return Err(self.unexpected());
        }
        Ok(Statement::AlterDatabase(AlterDatabase { name, options }))
    }

    fn database_options(&mut self) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            if self.at(K::DEFAULT) {
                self.advance();
                if !self.at_charset_words() && !self.at(K::COLLATE) {
                    return Err(self.unexpected());
                }
            }
            if self.at_charset_words() {
                self.advance_charset_words()?;
                self.eat(Symbol::Equal);
                options.charset = Some(self.charset_name()?);
            } else if self.eat(K::COLLATE) {
                self.eat(Symbol::Equal);
                options.collation = Some(self.name_or_binary()?);
            } else if self.eat(K::COMMENT) {
                self.eat(Symbol::Equal);
                options.comment = Some(self.text_literal()?);
            } else {
                return Ok(options);
            }
        }
    }

    /// ALTER.
    pub(super) fn alter(&mut self) -> Result<Statement> {
        let start = self.advance();
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::TABLE | K::ONLINE | K::IGNORE => self.alter_table_statement(),
            K::DATABASE | K::SCHEMA => self.alter_database(),
            K::USER => self.alter_user(),
            K::VIEW | K::ALGORITHM | K::SQL => self.alter_view(),
            K::DEFINER => self.create_with_definer(false, start).map(Self::altered_view),
            K::PROCEDURE
            | K::FUNCTION
            | K::EVENT
            | K::SEQUENCE
            | K::SERVER
            | K::TABLESPACE
            | K::LOGFILE
            | K::PACKAGE => self.other(start),
            _ => Err(self.unexpected()),
        }
    }

    /// DROP.
    pub(super) fn drop_statement(&mut self) -> Result<Statement> {
        let start = self.advance();
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        match keyword {
            K::TABLE | K::TABLES => self.drop_table(false).map(Statement::DropTable),
            K::TEMPORARY if matches!(self.peek().kind, Kind::Word(K::TABLE | K::TABLES)) => {
                self.advance();
                self.drop_table(true).map(Statement::DropTable)
            }
            K::VIEW => self.drop_table(false).map(Statement::DropView),
            K::DATABASE | K::SCHEMA => {
                self.advance();
                let if_exists = self.if_exists()?;
                Ok(Statement::DropDatabase(DropDatabase { if_exists, name: self.name()? }))
            }
            K::INDEX | K::ONLINE => {
                self.eat(K::ONLINE);
                self.expect(K::INDEX)?;
                let if_exists = self.if_exists()?;
                let name = self.index_name()?;
                self.expect(K::ON)?;
                let table = self.table_name()?;
                self.wait_seconds()?;
                Ok(Statement::DropIndex(DropIndex { if_exists, name, table }))
            }
            K::PREPARE => {
                self.advance();
                self.name().map(Statement::Deallocate)
            }
            K::USER => self.drop_user(),
            K::ROLE => self.drop_role(),
            K::TRIGGER
            | K::PROCEDURE
            | K::FUNCTION
            | K::EVENT
            | K::SEQUENCE
            | K::SERVER
            | K::PACKAGE
            | K::TEMPORARY
            | K::TABLESPACE
            | K::LOGFILE => self.other(start),
            _ => Err(self.unexpected()),
        }
    }

    fn drop_table(&mut self, temporary: bool) -> Result<DropTable> {
        self.advance();
        let if_exists = self.if_exists()?;
        let names = self.list(Self::table_name)?;
        self.wait_seconds()?;
        let cascade = if self.eat(K::CASCADE) {
            Some(true)
        } else if self.eat(K::RESTRICT) {
            Some(false)
        } else {
            None
        };
        Ok(DropTable { temporary, if_exists, names, cascade })
    }

    /// RENAME.
    pub(super) fn rename(&mut self) -> Result<Statement> {
        self.advance();
        if self.at(K::USER) {
            return self.rename_user();
        }
        if !self.eat(K::TABLES) {
            self.expect(K::TABLE)?;
        }
        self.if_exists()?;
        self.list(|parser| {
            let from = parser.table_name()?;
            parser.wait_seconds()?;
            parser.expect(K::TO)?;
            Ok((from, parser.table_name()?))
        })
        .map(Statement::RenameTable)
    }

    /// TRUNCATE.
    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.advance();
        self.eat(K::TABLE);
        let table = self.table_name()?;
        self.wait_seconds()?;
        Ok(Statement::TruncateTable(table))
    }
}
