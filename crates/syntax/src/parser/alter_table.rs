//! ALTER TABLE.

use super::create_table::Constraint;
use super::*;
use Keyword as K;

impl Parser<'_> {
    /// ALTER [ONLINE] [IGNORE] TABLE; `ALTER` has been taken.
    fn alter_table(&mut self) -> Result<AlterTable> {
        let online = self.eat(K::ONLINE);
        let ignore = self.eat(K::IGNORE);
        self.expect(K::TABLE)?;
        let if_exists = self.if_exists()?;
        let table = self.table_name()?;
        let wait_seconds = self.wait_seconds()?;
        let mut alter =
            AlterTable { online, ignore, if_exists, table, wait_seconds, actions: Vec::new() };
        if self.at(Kind::End) || self.at(Symbol::Semicolon) {
            return Ok(alter);
        }
        loop {
            if !self.at(K::PARTITION) {
                self.alter_action(&mut alter.actions)?;
            }
            if self.at(K::PARTITION) {
                let partition = Box::new(self.partition_by()?);
                alter.actions.push(AlterAction::PartitionBy(partition));
            }
            if !self.eat(Symbol::Comma) {
                return Ok(alter);
            }
        }
    }

    /// ALTER TABLE, or the upkeep of partitions that is written like it.
    pub(super) fn alter_table_statement(&mut self) -> Result<Statement> {
        let mut alter = self.alter_table()?;
        match alter.actions.pop() {
            Some(AlterAction::MaintainPartitions(mut upkeep)) if alter.actions.is_empty() => {
                upkeep.tables.push(alter.table);
                Ok(Statement::TableMaintenance(*upkeep))
            }
            last => {
                alter.actions.extend(last);
                Ok(Statement::AlterTable(Box::new(alter)))
            }
        }
    }

    /// WAIT n (n), NOWAIT (0).
    pub(super) fn wait_seconds(&mut self) -> Result<Option<u64>> {
        if self.eat(K::NOWAIT) {
            return Ok(Some(0));
        }
        if self.eat(K::WAIT) {
            return self.number().map(Some);
        }
        Ok(None)
    }

    fn alter_action(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        let Kind::Word(keyword) = self.token.kind else { return Err(self.unexpected()) };
        let action = match keyword {
            K::ADD => return self.alter_add(actions),
            K::DROP => self.alter_drop(actions.is_empty())?,
            K::MODIFY | K::CHANGE => self.alter_change(keyword == K::CHANGE)?,
            K::ALTER => self.alter_column()?,
            K::RENAME => self.alter_rename()?,
            K::CONVERT => self.alter_charset()?,
            K::ORDER => {
                self.advance();
                self.expect(K::BY)?;
                AlterAction::OrderBy(self.list(|parser| {
                    let name = parser.name()?;
                    if !parser.eat(K::ASC) {
                        parser.eat(K::DESC);
                    }
                    Ok(name)
                })?)
            }
            K::ENABLE | K::DISABLE => {
                self.advance();
                self.expect(K::KEYS)?;
                AlterAction::Keys(keyword == K::ENABLE)
            }
            K::FORCE => {
                self.advance();
                AlterAction::Force
            }
            K::ALGORITHM | K::LOCK => {
                let (name, value) = self.alter_hint()?;
                AlterAction::Hint(name, value)
            }
            K::COALESCE | K::TRUNCATE | K::REORGANIZE | K::REBUILD => self.alter_partitions()?,
            K::ANALYZE | K::CHECK | K::OPTIMIZE | K::REPAIR => self.alter_maintain_partitions()?,
            K::DISCARD | K::IMPORT | K::EXCHANGE | K::REMOVE | K::PARTITION => {
                AlterAction::Other(self.rest_as_text()?)
            }
            _ => {
                let options = self.table_options(true)?;
                if options.is_empty() {
                    return Err(self.unexpected());
                }
                AlterAction::Options(options)
            }
        };
        actions.push(action);
        Ok(())
    }

    /// MODIFY and CHANGE.
    fn alter_change(&mut self, renames: bool) -> Result<AlterAction> {
        self.advance();
        self.eat(K::COLUMN);
        let if_exists = self.if_exists()?;
        let present = if renames { Some(self.name()?) } else { None };
        let column = Box::new(self.column_specification()?);
        let place = self.column_place()?;
        let name = present.unwrap_or_else(|| column.name.clone());
        Ok(AlterAction::ChangeColumn { name, column, place, if_exists })
    }

    /// CONVERT TO CHARACTER SET.
    fn alter_charset(&mut self) -> Result<AlterAction> {
        self.advance();
        self.expect(K::TO)?;
        if !self.at_charset_words() {
            return Err(self.unexpected());
        }
        self.advance_charset_words()?;
        let charset = if self.eat(K::DEFAULT) { None } else { Some(self.charset_name()?) };
        let collation = if self.eat(K::COLLATE) { Some(self.name_or_binary()?) } else { None };
        Ok(AlterAction::ConvertCharset { charset, collation })
    }

    /// `ALGORITHM [=] word`, `LOCK [=] word`.
    pub(super) fn alter_hint(&mut self) -> Result<(String, String)> {
        let name = self.word()?;
        self.eat(Symbol::Equal);
        let allowed: &[&str] = if name == "LOCK" {
            &["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"]
        } else {
            &["DEFAULT", "INPLACE", "COPY", "NOCOPY", "INSTANT"]
        };
        let token = self.token;
        let value = self.word()?;
        if !allowed.contains(&value.as_str()) {
            let (code, kind) =
                if name == "LOCK" { (1801, "LOCK type") } else { (1800, "ALGORITHM") };
            let message = format!("Unknown {kind} '{}'", self.to_utf8_lossy(self.bytes(token)));
            return Err(ParseError::other(code, "HY000", message));
        }
        Ok((name, value))
    }

    fn column_place(&mut self) -> Result<ColumnPlace> {
        if self.eat(K::FIRST) {
            return Ok(ColumnPlace::First);
        }
        if self.eat(K::AFTER) {
            return self.name().map(ColumnPlace::After);
        }
        Ok(ColumnPlace::Default)
    }

    fn alter_add(&mut self, actions: &mut Vec<AlterAction>) -> Result<()> {
        self.advance();
        if self.at(K::PARTITION) {
            actions.push(self.alter_add_partition()?);
            return Ok(());
        }
        if self.at_any(&[K::PERIOD, K::SYSTEM]) {
            let text = format!("ADD {}", self.rest_as_text()?);
            actions.push(AlterAction::Other(text));
            return Ok(());
        }
        if let Some(constraint) = self.table_constraint()? {
            actions.push(match constraint {
                Constraint::Index(index) => AlterAction::AddIndex(Box::new(index)),
                Constraint::Foreign(key) => AlterAction::AddForeignKey(Box::new(key)),
                Constraint::Check(check) => AlterAction::AddCheck(Box::new(check)),
            });
            return Ok(());
        }
        self.eat(K::COLUMN);
        let if_not_exists = self.if_not_exists()?;
        if self.eat(Symbol::LeftParenthesis) {
            let columns = self.list(Self::column_specification)?;
            self.expect(Symbol::RightParenthesis)?;
            actions.extend(columns.into_iter().map(|column| AlterAction::AddColumn {
                column: Box::new(column),
                place: ColumnPlace::Default,
                if_not_exists,
            }));
            return Ok(());
        }
        let column = Box::new(self.column_specification()?);
        let place = self.column_place()?;
        actions.push(AlterAction::AddColumn { column, place, if_not_exists });
        Ok(())
    }

    fn alter_drop(&mut self, first: bool) -> Result<AlterAction> {
        self.advance();
        let Kind::Word(keyword) = self.token.kind else { return self.drop_column() };
        match keyword {
            K::PRIMARY => {
                self.advance();
                self.expect(K::KEY)?;
                Ok(AlterAction::DropPrimaryKey)
            }
            K::INDEX | K::KEY => {
                self.advance();
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropIndex { name: self.index_name()?, if_exists })
            }
            K::FOREIGN => {
                self.advance();
                self.expect(K::KEY)?;
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropForeignKey { name: self.name()?, if_exists })
            }
            K::CONSTRAINT => {
                self.advance();
                let if_exists = self.if_exists()?;
                Ok(AlterAction::DropConstraint { name: self.name()?, if_exists })
            }
            K::PARTITION if first => self.alter_drop_partition(),
            K::PARTITION => Err(self.unexpected()),
            K::SYSTEM | K::PERIOD => {
                Ok(AlterAction::Other(format!("DROP {}", self.rest_as_text()?)))
            }
            _ => self.drop_column(),
        }
    }

    /// The name of an index, where PRIMARY is allowed.
    pub(super) fn index_name(&mut self) -> Result<String> {
        if self.eat(K::PRIMARY) { Ok("PRIMARY".into()) } else { self.name() }
    }

    fn drop_column(&mut self) -> Result<AlterAction> {
        self.eat(K::COLUMN);
        let if_exists = self.if_exists()?;
        let name = self.name()?;
        if !self.eat(K::RESTRICT) {
            self.eat(K::CASCADE);
        }
        Ok(AlterAction::DropColumn { name, if_exists })
    }

    fn alter_column(&mut self) -> Result<AlterAction> {
        self.advance();
        if self.at_any(&[K::INDEX, K::KEY]) {
            self.advance();
            let name = self.index_name()?;
            let ignored = !self.eat(K::NOT);
            self.expect(K::IGNORED)?;
            return Ok(AlterAction::AlterIndexIgnored { name, ignored });
        }
        self.eat(K::COLUMN);
        let name = self.name()?;
        if self.eat(K::DROP) {
            self.expect(K::DEFAULT)?;
            return Ok(AlterAction::AlterDefault { name, default: None });
        }
        self.expect(K::SET)?;
        self.expect(K::DEFAULT)?;
        let default = Some(self.default_value()?);
        Ok(AlterAction::AlterDefault { name, default })
    }

    fn alter_rename(&mut self) -> Result<AlterAction> {
        self.advance();
        if self.eat(K::COLUMN) {
            let name = self.name()?;
            self.expect(K::TO)?;
            return Ok(AlterAction::RenameColumn { name, to: self.name()? });
        }
        if self.eat(K::INDEX) || self.eat(K::KEY) {
            let name = self.index_name()?;
            self.expect(K::TO)?;
            return Ok(AlterAction::RenameIndex { name, to: self.name()? });
        }
        if !self.eat(K::TO) && !self.eat(K::AS) {
            self.eat(Symbol::Equal);
        }
        self.table_name().map(AlterAction::Rename)
    }
}
