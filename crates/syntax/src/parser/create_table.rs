//! CREATE TABLE: columns, keys, options.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// CREATE TABLE behind `CREATE [OR REPLACE] [TEMPORARY]`; `TABLE` is the next token.
    pub(super) fn create_table(
        &mut self,
        or_replace: bool,
        temporary: bool,
    ) -> Result<CreateTable> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let name = self.new_table_name()?;
        let mut table = CreateTable {
            or_replace,
            temporary,
            if_not_exists,
            name,
            like: None,
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            periods: Vec::new(),
            options: Vec::new(),
            partition_by: None,
            query: None,
        };
        if self.eat(K::LIKE) {
            table.like = Some(self.table_name()?);
            return Ok(table);
        }
        if self.at(Symbol::LeftParenthesis) && self.peek_is(K::LIKE) {
            self.advance();
            self.advance();
            table.like = Some(self.table_name()?);
            self.expect(Symbol::RightParenthesis)?;
            return Ok(table);
        }
        if self.at(Symbol::LeftParenthesis) && !self.begins_query_in_parentheses() {
            self.advance();
            self.list(|parser| parser.table_element(&mut table))?;
            self.expect(Symbol::RightParenthesis)?;
        }
        table.options = self.table_options(false)?;
        if self.at(K::PARTITION) {
            table.partition_by = Some(self.partition_by()?);
        }
        self.create_table_query(&mut table)?;
        if table.columns.is_empty() && table.query.is_none() {
            return Err(self.no_columns());
        }
        Ok(table)
    }

    /// Error 1113 where the table ended properly, 1064 where something else follows.
    fn no_columns(&self) -> ParseError {
        if self.at(Kind::End) || self.at(Symbol::Semicolon) {
            let message = "A table must have at least 1 column".to_string();
            return ParseError::other(1113, "42000", message);
        }
        self.unexpected()
    }

    fn create_table_query(&mut self, table: &mut CreateTable) -> Result<()> {
        let replace = self.eat(K::REPLACE);
        let ignore = !replace && self.eat(K::IGNORE);
        let written_as = self.eat(K::AS);
        if self.begins_query() {
            let query = Box::new(self.query()?);
            table.query = Some(CreateTableQuery { ignore, replace, query });
        } else if replace || ignore || written_as {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// PARTITION BY up to the AS, SELECT or end that follows, as written.
    pub(super) fn partition_text(&mut self) -> Result<String> {
        let start = self.token.start;
        self.advance();
        self.expect(K::BY)?;
        while !self.at(Kind::End) && !self.at(Symbol::Semicolon) {
            if self.at_any(&[K::AS, K::SELECT, K::IGNORE, K::REPLACE, K::REMOVE]) {
                break;
            }
            if self.at(Symbol::LeftParenthesis) {
                self.skip_parenthesized()?;
            } else if self.at(Kind::Invalid) {
                return Err(self.unexpected());
            } else {
                self.advance();
            }
        }
        Ok(self.source(start, self.previous_end))
    }

    fn table_element(&mut self, table: &mut CreateTable) -> Result<()> {
        if self.at(K::PERIOD) && self.peek_is(K::FOR) {
            let start = self.token.start;
            self.advance();
            self.advance();
            self.name()?;
            self.skip_parenthesized()?;
            table.periods.push(self.source(start, self.previous_end));
            return Ok(());
        }
        match self.table_constraint()? {
            Some(Constraint::Index(index)) => table.indexes.push(index),
            Some(Constraint::Foreign(key)) => table.foreign_keys.push(key),
            Some(Constraint::Check(check)) => table.checks.push(check),
            None => {
                let column = self.column_specification()?;
                table.columns.push(column);
            }
        }
        Ok(())
    }

    /// A key, foreign key or check, if one follows.
    pub(super) fn table_constraint(&mut self) -> Result<Option<Constraint>> {
        let mut symbol = None;
        let mut if_not_exists = false;
        if self.eat(K::CONSTRAINT) {
            if_not_exists = self.if_not_exists()?;
            if self.at_name() {
                symbol = Some(self.name()?);
            }
            let allowed = [K::CHECK, K::PRIMARY, K::UNIQUE, K::FOREIGN];
            if !self.at_any(if if_not_exists { &allowed[..1] } else { &allowed }) {
                return Err(self.unexpected());
            }
        }
        let kind = match self.token.kind {
            Kind::Word(K::PRIMARY) => {
                self.advance();
                self.expect(K::KEY)?;
                IndexKind::Primary
            }
            Kind::Word(K::UNIQUE) => {
                self.advance();
                self.eat_index_word();
                IndexKind::Unique
            }
            Kind::Word(K::FULLTEXT) => {
                self.advance();
                self.eat_index_word();
                IndexKind::FullText
            }
            Kind::Word(K::SPATIAL) => {
                self.advance();
                self.eat_index_word();
                IndexKind::Spatial
            }
            Kind::Word(K::INDEX | K::KEY) => {
                self.advance();
                IndexKind::Plain
            }
            Kind::Word(K::FOREIGN) => {
                return self.foreign_key(symbol).map(|key| Some(Constraint::Foreign(key)));
            }
            Kind::Word(K::CHECK) => {
                self.advance();
                let expression = self.parenthesized_expression()?;
                return Ok(Some(Constraint::Check(Check {
                    name: symbol,
                    if_not_exists,
                    expression,
                })));
            }
            _ => return Ok(None),
        };
        self.index_rest(kind, symbol).map(|index| Some(Constraint::Index(index)))
    }

    pub(super) fn parenthesized_expression(&mut self) -> Result<Expression> {
        self.expect(Symbol::LeftParenthesis)?;
        let expression = self.expression()?;
        self.expect(Symbol::RightParenthesis)?;
        Ok(expression)
    }

    /// FOREIGN KEY behind its CONSTRAINT.
    fn foreign_key(&mut self, symbol: Option<String>) -> Result<ForeignKey> {
        self.advance();
        self.expect(K::KEY)?;
        let if_not_exists = self.if_not_exists()?;
        let name = if self.at_name() { Some(self.name()?) } else { None };
        let columns = self.index_parts()?;
        if !self.at(K::REFERENCES) {
            return Err(self.unexpected());
        }
        let references = self.references()?;
        Ok(ForeignKey { symbol, name, if_not_exists, columns, references })
    }

    fn references(&mut self) -> Result<References> {
        self.advance();
        let table = self.table_name()?;
        let columns = if self.at(Symbol::LeftParenthesis) {
            self.index_parts()?.into_iter().map(|part| part.column).collect()
        } else {
            Vec::new()
        };
        let mut references =
            References { table, columns, match_kind: None, on_delete: None, on_update: None };
        if self.eat(K::MATCH) {
            references.match_kind = Some(self.word()?);
        }
        while self.at(K::ON) && matches!(self.peek().kind, Kind::Word(K::DELETE | K::UPDATE)) {
            self.advance();
            let delete = self.advance().kind == Kind::Word(K::DELETE);
            let action = self.referential_action()?;
            if delete {
                references.on_delete = Some(action);
            } else {
                references.on_update = Some(action);
            }
        }
        Ok(references)
    }

    fn referential_action(&mut self) -> Result<ReferentialAction> {
        if self.eat(K::RESTRICT) {
            return Ok(ReferentialAction::Restrict);
        }
        if self.eat(K::CASCADE) {
            return Ok(ReferentialAction::Cascade);
        }
        if self.eat(K::SET) {
            if self.eat(K::DEFAULT) {
                return Ok(ReferentialAction::SetDefault);
            }
            self.expect(K::NULL)?;
            return Ok(ReferentialAction::SetNull);
        }
        self.expect(K::NO)?;
        self.expect(K::ACTION)?;
        Ok(ReferentialAction::NoAction)
    }

    /// A column with its type and attributes.
    pub(super) fn column_specification(&mut self) -> Result<ColumnSpecification> {
        let name = self.new_name()?;
        let mut column = ColumnSpecification {
            name,
            type_name: TypeName::default(),
            nullable: None,
            default: None,
            on_update: None,
            auto_increment: false,
            primary_key: false,
            unique: false,
            comment: None,
            generated: None,
            checks: Vec::new(),
            references: None,
            invisible: false,
            compressed: None,
            other: Vec::new(),
        };
        if self.eat(K::SERIAL) {
            column.type_name =
                TypeName { kind: TypeNameKind::BigInt, unsigned: true, ..TypeName::default() };
            column.nullable = Some(false);
            column.auto_increment = true;
            column.unique = true;
        } else {
            column.type_name = self.type_name()?;
        }
        if self.at(K::COLLATE) {
            self.column_clause(&mut column, K::COLLATE)?;
        }
        if self.at(K::GENERATED) || self.at(K::AS) {
            self.generated(&mut column)?;
            return Ok(column);
        }
        while self.column_attribute(&mut column)? {}
        Ok(column)
    }

    /// One attribute of a column; false if none follows.
    fn column_attribute(&mut self, column: &mut ColumnSpecification) -> Result<bool> {
        let keyword = match self.token.kind {
            Kind::Word(keyword) => keyword,
            Kind::QuotedName => Keyword::NONE,
            _ => return Ok(false),
        };
        match keyword {
            K::NONE => {
                // An engine's own attribute.
                let name = self.name()?;
                self.expect(Symbol::Equal)?;
                let value = self.option_value()?;
                column.other.push((name, format!("{value:?}")));
                return Ok(true);
            }
            K::NULL => column.nullable = Some(true),
            K::NOT => {
                self.advance();
                if !self.at(K::NULL) {
                    return Err(self.unexpected());
                }
                column.nullable = Some(false);
            }
            K::AUTO_INCREMENT => column.auto_increment = true,
            K::INVISIBLE => column.invisible = true,
            K::KEY => column.primary_key = true,
            K::PRIMARY => {
                self.advance();
                if !self.at(K::KEY) {
                    return Err(self.unexpected());
                }
                column.primary_key = true;
            }
            _ => return self.column_clause(column, keyword),
        }
        self.advance();
        Ok(true)
    }

    /// An attribute with something behind its word.
    fn column_clause(
        &mut self,
        column: &mut ColumnSpecification,
        keyword: Keyword,
    ) -> Result<bool> {
        match keyword {
            K::DEFAULT => {
                self.advance();
                column.default = Some(self.default_value()?);
            }
            K::ON if self.peek_is(K::UPDATE) => {
                self.advance();
                self.advance();
                column.on_update = Some(self.default_value()?);
            }
            K::UNIQUE => {
                self.advance();
                self.eat(K::KEY);
                column.unique = true;
            }
            K::SERIAL => {
                self.advance();
                self.expect(K::DEFAULT)?;
                self.expect(K::VALUE)?;
                column.nullable = Some(false);
                column.auto_increment = true;
                column.unique = true;
            }
            K::COMMENT => {
                self.advance();
                column.comment = Some(self.text_literal()?);
            }
            K::COLLATE => {
                self.advance();
                column.type_name.collation = Some(self.name_or_binary()?);
            }
            K::CONSTRAINT | K::CHECK => {
                if self.eat(K::CONSTRAINT) && self.at_name() {
                    self.name()?;
                }
                self.expect(K::CHECK)?;
                column.checks.push(self.parenthesized_expression()?);
            }
            K::REFERENCES => column.references = Some(self.references()?),
            K::COMPRESSED => {
                self.advance();
                let method =
                    if self.eat(Symbol::Equal) { self.name()? } else { "zlib".to_string() };
                column.compressed = Some(method);
            }
            K::COLUMN_FORMAT | K::STORAGE => {
                let name = self.word()?;
                let value = if self.eat(K::DEFAULT) { "DEFAULT".into() } else { self.word()? };
                column.other.push((name, value));
            }
            K::WITH | K::WITHOUT if self.peek_is(K::SYSTEM) => {
                let with = self.word()?;
                self.advance();
                self.expect(K::VERSIONING)?;
                column.other.push((format!("{with} SYSTEM VERSIONING"), String::new()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The value of DEFAULT and ON UPDATE: a signed literal, a call, or `(expression)`.
    pub(super) fn default_value(&mut self) -> Result<Expression> {
        if self.at(Symbol::LeftParenthesis) && !self.begins_query_in_parentheses() {
            return self.parenthesized_expression();
        }
        self.lone_expression()
    }

    /// GENERATED ALWAYS AS, and the attributes that a generated column may have.
    fn generated(&mut self, column: &mut ColumnSpecification) -> Result<()> {
        if self.eat(K::GENERATED) {
            self.expect(K::ALWAYS)?;
        }
        self.expect(K::AS)?;
        if self.eat(K::ROW) {
            let edge = self.word()?;
            column.other.push((format!("GENERATED ALWAYS AS ROW {edge}"), String::new()));
            return Ok(());
        }
        let expression = self.generated_value()?;
        let stored = if self.eat(K::STORED) || self.eat(K::PERSISTENT) {
            true
        } else {
            self.eat(K::VIRTUAL);
            false
        };
        column.generated = Some(Generated { expression, stored });
        loop {
            match self.token.kind {
                Kind::Word(keyword @ (K::UNIQUE | K::COMMENT)) => {
                    self.column_clause(column, keyword)?;
                }
                Kind::Word(K::INVISIBLE) => {
                    self.advance();
                    column.invisible = true;
                }
                Kind::Word(keyword @ (K::CONSTRAINT | K::CHECK)) => {
                    return self.column_clause(column, keyword).map(drop);
                }
                _ => return Ok(()),
            }
        }
    }

    /// The expression of a generated column; several are a row, which no column can hold.
    fn generated_value(&mut self) -> Result<Expression> {
        self.expect(Symbol::LeftParenthesis)?;
        let mut expressions = vec![self.expression()?];
        while self.eat(Symbol::Comma) {
            expressions.push(self.expression()?);
        }
        self.expect(Symbol::RightParenthesis)?;
        match expressions.pop() {
            Some(only) if expressions.is_empty() => Ok(only),
            last => {
                expressions.extend(last);
                Ok(Expression::Row(expressions))
            }
        }
    }
}

/// What stands in a table's parentheses beside columns.
pub(super) enum Constraint {
    Index(IndexSpecification),
    Foreign(ForeignKey),
    Check(Check),
}
