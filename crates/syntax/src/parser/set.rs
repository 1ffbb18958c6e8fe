//! SET.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// SET.
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.advance();
        if self.at(K::STATEMENT) && !self.assignment_follows() {
            return self.set_statement();
        }
        if let Some(transaction) = self.set_transaction()? {
            return Ok(Statement::SetTransaction(transaction));
        }
        let mut items = Vec::new();
        let mut scope = VariableScope::Default;
        loop {
            items.push(self.set_item(&mut scope)?);
            if !self.eat(Symbol::Comma) {
                return Ok(Statement::Set(items));
            }
        }
    }

    /// Whether the next word is itself a variable that is set.
    fn assignment_follows(&self) -> bool {
        matches!(self.peek().kind, Kind::Symbol(Symbol::Equal | Symbol::Assign | Symbol::Dot))
    }

    fn set_statement(&mut self) -> Result<Statement> {
        self.advance();
        let mut scope = VariableScope::Default;
        let items = self.list(|parser| parser.set_item(&mut scope))?;
        self.expect(K::FOR)?;
        let statement = self.deeper(Self::statement)?;
        Ok(Statement::SetStatement(items, Box::new(statement)))
    }

    /// `[GLOBAL|SESSION] TRANSACTION ...`, if that is what follows.
    fn set_transaction(&mut self) -> Result<Option<SetTransaction>> {
        let scoped = self.at_any(&[K::GLOBAL, K::SESSION, K::LOCAL]);
        if scoped && self.peek_is(K::TRANSACTION) {
            let global = self.advance().kind == Kind::Word(K::GLOBAL);
            let scope = if global { VariableScope::Global } else { VariableScope::Session };
            return self.transaction_characteristics(scope).map(Some);
        }
        if self.at(K::TRANSACTION) && !self.assignment_follows() {
            return self.transaction_characteristics(VariableScope::Default).map(Some);
        }
        Ok(None)
    }

    fn transaction_characteristics(&mut self, scope: VariableScope) -> Result<SetTransaction> {
        self.advance();
        let mut transaction = SetTransaction { scope, isolation: None, read_only: None };
        loop {
            if self.at(K::ISOLATION) && transaction.isolation.is_none() {
                self.advance();
                self.expect(K::LEVEL)?;
                transaction.isolation = Some(self.isolation_level()?);
            } else if self.at(K::READ) && transaction.read_only.is_none() {
                self.advance();
                let read_only = self.eat(K::ONLY);
                if !read_only {
                    self.expect(K::WRITE)?;
                }
                transaction.read_only = Some(read_only);
            } else {
                return Err(self.unexpected());
            }
            if !self.eat(Symbol::Comma) {
                return Ok(transaction);
            }
        }
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        if self.eat(K::SERIALIZABLE) {
            return Ok(IsolationLevel::Serializable);
        }
        if self.eat(K::REPEATABLE) {
            self.expect(K::READ)?;
            return Ok(IsolationLevel::RepeatableRead);
        }
        self.expect(K::READ)?;
        if self.eat(K::COMMITTED) {
            return Ok(IsolationLevel::ReadCommitted);
        }
        self.expect(K::UNCOMMITTED)?;
        Ok(IsolationLevel::ReadUncommitted)
    }

    fn set_item(&mut self, scope: &mut VariableScope) -> Result<SetItem> {
        match self.token.kind {
            Kind::Symbol(Symbol::At) => {
                let name = self.user_variable()?;
                self.assign_symbol()?;
                Ok(SetItem::User { name, value: self.expression()? })
            }
            Kind::Symbol(Symbol::DoubleAt) => {
                let SystemVariable { scope, instance, name } = self.system_variable()?;
                self.assign_symbol()?;
                Ok(SetItem::System { scope, instance, name, value: self.set_value()? })
            }
            Kind::Word(K::NAMES) if !self.assignment_follows() => self.set_names(),
            Kind::Word(K::CHARACTER | K::CHAR) if self.peek_is(K::SET) => self.set_charset(),
            Kind::Word(K::CHARSET) if !self.assignment_follows() => self.set_charset(),
            Kind::Word(K::PASSWORD) => self.set_password(),
            Kind::Word(K::ROLE) if !self.assignment_follows() => {
                self.advance();
                self.role_or_none().map(SetItem::Role)
            }
            Kind::Word(K::DEFAULT) if self.peek_is(K::ROLE) => {
                self.advance();
                self.advance();
                let role = self.role_or_none()?;
                let account = if self.eat(K::FOR) { Some(self.account_name()?) } else { None };
                Ok(SetItem::DefaultRole { role, account })
            }
            Kind::Word(word @ (K::GLOBAL | K::SESSION | K::LOCAL)) => {
                if !self.assignment_follows() {
                    self.advance();
                    let global = word == K::GLOBAL;
                    *scope = if global { VariableScope::Global } else { VariableScope::Session };
                }
                self.set_variable(*scope)
            }
            _ => self.set_variable(*scope),
        }
    }

    fn assign_symbol(&mut self) -> Result<()> {
        if self.eat(Symbol::Assign) { Ok(()) } else { self.expect(Symbol::Equal) }
    }

    fn set_variable(&mut self, scope: VariableScope) -> Result<SetItem> {
        let first = if self.at(K::DEFAULT) {
            self.advance();
            "default".to_string()
        } else {
            self.name()?
        };
        let (instance, name) = if self.eat(Symbol::Dot) {
            (Some(first), self.name_after_dot()?)
        } else {
            (None, first)
        };
        self.assign_symbol()?;
        Ok(SetItem::System { scope, instance, name, value: self.set_value()? })
    }

    /// DEFAULT, a word that ends the value, or an expression.
    fn set_value(&mut self) -> Result<SetValue> {
        if self.at(K::DEFAULT) && !self.peek_is(Symbol::LeftParenthesis) {
            self.advance();
            return Ok(SetValue::Default);
        }
        if let Kind::Word(keyword) = self.token.kind {
            let word = matches!(keyword, K::ON | K::ALL | K::BINARY | K::ROW | K::SYSTEM);
            let ends = matches!(
                self.peek().kind,
                Kind::End | Kind::Symbol(Symbol::Comma | Symbol::Semicolon) | Kind::Word(K::FOR)
            );
            if ends && (word || !keyword.is_reserved()) {
                let token = self.advance();
                return self.to_utf8(self.bytes(token).to_vec()).map(SetValue::Word);
            }
        }
        self.expression().map(SetValue::Expression)
    }

    fn set_names(&mut self) -> Result<SetItem> {
        self.advance();
        if self.eat(K::DEFAULT) {
            return Ok(SetItem::Names { charset: None, collation: None });
        }
        let charset = Some(self.charset_name()?);
        let collation = if self.eat(K::COLLATE) && !self.eat(K::DEFAULT) {
            Some(self.name_or_binary()?)
        } else {
            None
        };
        Ok(SetItem::Names { charset, collation })
    }

    fn set_charset(&mut self) -> Result<SetItem> {
        self.advance_charset_words()?;
        if self.eat(K::DEFAULT) {
            return Ok(SetItem::CharacterSet(None));
        }
        Ok(SetItem::CharacterSet(Some(self.charset_name()?)))
    }

    fn set_password(&mut self) -> Result<SetItem> {
        self.advance();
        let account = if self.eat(K::FOR) { Some(self.account_name()?) } else { None };
        self.assign_symbol()?;
        let password = if self.at_any(&[K::PASSWORD, K::OLD_PASSWORD]) {
            self.advance();
            self.expect(Symbol::LeftParenthesis)?;
            let clear = self.text_literal()?;
            self.expect(Symbol::RightParenthesis)?;
            Password::Clear(clear)
        } else {
            Password::Hash(self.text_literal()?)
        };
        Ok(SetItem::Password { account, password })
    }
}
