//! Accounts and CREATE USER.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// `user`, `'user'@'host'`, CURRENT_USER.
    pub(super) fn account_name(&mut self) -> Result<AccountName> {
        if self.at(K::CURRENT_USER) {
            self.advance();
            if self.eat(Symbol::LeftParenthesis) {
                self.expect(Symbol::RightParenthesis)?;
            }
            let (user, host) = (String::new(), None);
            return Ok(AccountName { user, host, current: true, current_role: false });
        }
        if self.eat(K::CURRENT_ROLE) {
            if self.eat(Symbol::LeftParenthesis) {
                self.expect(Symbol::RightParenthesis)?;
            }
            let (user, host) = (String::new(), None);
            return Ok(AccountName { user, host, current: false, current_role: true });
        }
        let user = self.name_or_text()?;
        let mut host = None;
        if self.at(Symbol::At) {
            let at = self.advance();
            host = Some(match self.token.kind {
                Kind::Text => self.text_string()?,
                Kind::QuotedName => {
                    let token = self.advance();
                    self.to_utf8(unquote(self.bytes(token), false))?
                }
                _ if self.token.start == at.end => self.raw_word(at.end)?,
                _ => return Err(self.unexpected()),
            });
        }
        let host = host.map(|host| host.to_ascii_lowercase());
        Ok(AccountName { user, host, current: false, current_role: false })
    }

    /// CREATE USER behind `CREATE [OR REPLACE]`.
    pub(super) fn create_user(&mut self, or_replace: bool) -> Result<Statement> {
        self.advance();
        let if_clause = self.if_not_exists()?;
        let users = self.list(Self::user_specification)?;
        let options = self.account_options()?;
        Ok(Statement::CreateUser(CreateUser { or_replace, if_clause, users, options }))
    }

    /// ALTER USER behind `ALTER`.
    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        self.advance();
        let if_clause = self.if_exists()?;
        let users = self.list(Self::user_specification)?;
        let options = self.account_options()?;
        Ok(Statement::AlterUser(CreateUser { or_replace: false, if_clause, users, options }))
    }

    /// CREATE ROLE behind `CREATE [OR REPLACE]`.
    pub(super) fn create_role(&mut self, or_replace: bool) -> Result<Statement> {
        self.advance();
        let if_not_exists = self.if_not_exists()?;
        let roles = self.list(Self::name_or_text)?;
        let admin = match self.eat(K::WITH) {
            true => {
                self.expect(K::ADMIN)?;
                Some(self.account_name()?)
            }
            false => None,
        };
        let create = CreateRole { or_replace, if_not_exists, roles, admin };
        Ok(Statement::CreateRole(Box::new(create)))
    }

    /// DROP ROLE behind `DROP`.
    pub(super) fn drop_role(&mut self) -> Result<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        let roles = self.list(Self::name_or_text)?;
        Ok(Statement::DropRole(DropRole { if_exists, roles }))
    }

    /// A role's name, or NONE.
    pub(super) fn role_or_none(&mut self) -> Result<Option<String>> {
        let none = !self.at(Kind::Text) && !self.at(Kind::QuotedName) && self.at_word(b"none");
        let name = self.name_or_text()?;
        Ok((!none).then_some(name))
    }

    /// DROP USER behind `DROP`.
    pub(super) fn drop_user(&mut self) -> Result<Statement> {
        self.advance();
        let if_exists = self.if_exists()?;
        let accounts = self.list(Self::account_name)?;
        Ok(Statement::DropUser(DropUser { if_exists, accounts }))
    }

    /// RENAME USER behind `RENAME`.
    pub(super) fn rename_user(&mut self) -> Result<Statement> {
        self.advance();
        self.list(|parser| {
            let from = parser.account_name()?;
            parser.expect(K::TO)?;
            Ok((from, parser.account_name()?))
        })
        .map(Statement::RenameUser)
    }

    /// An account with an optional IDENTIFIED.
    pub(super) fn user_specification(&mut self) -> Result<UserSpecification> {
        let account = self.account_name()?;
        let authentication =
            if self.eat(K::IDENTIFIED) { Some(self.authentication()?) } else { None };
        Ok(UserSpecification { account, authentication })
    }

    fn authentication(&mut self) -> Result<AuthenticationClause> {
        if self.eat(K::BY) {
            if self.eat(K::PASSWORD) {
                return self.text_literal().map(AuthenticationClause::PasswordHash);
            }
            return self.text_literal().map(AuthenticationClause::Password);
        }
        if !self.eat(K::VIA) {
            self.expect(K::WITH)?;
        }
        let name = self.name_or_text()?;
        let (mut hash, mut password) = (None, None);
        if self.eat(K::BY) {
            password = Some(self.text_literal()?);
        } else if self.eat(K::USING) || self.eat(K::AS) {
            if self.at(K::PASSWORD) {
                self.advance();
                self.expect(Symbol::LeftParenthesis)?;
                password = Some(self.text_literal()?);
                self.expect(Symbol::RightParenthesis)?;
            } else {
                hash = Some(self.text_literal()?);
            }
        }
        let mut alternatives = None;
        if self.at(K::OR) {
            let start = self.token.start;
            while self.eat(K::OR) {
                self.name_or_text()?;
                if self.eat(K::USING) || self.eat(K::AS) {
                    if self.eat(K::PASSWORD) {
                        self.skip_parenthesized()?;
                    } else {
                        self.text_literal()?;
                    }
                }
            }
            alternatives = Some(self.source(start, self.previous_end));
        }
        Ok(AuthenticationClause::Plugin { name, hash, password, alternatives })
    }

    /// REQUIRE, WITH limits, ACCOUNT, PASSWORD EXPIRE.
    pub(super) fn account_options(&mut self) -> Result<Vec<String>> {
        let mut options = Vec::new();
        loop {
            let start = self.token.start;
            if self.eat(K::REQUIRE) {
                self.require()?;
            } else if self.at(K::WITH) && self.limit_follows() {
                self.advance();
                while let Kind::Word(K::NONE | K::MAX_USER_CONNECTIONS | K::MAX_STATEMENT_TIME) =
                    self.token.kind
                {
                    self.advance();
                    if !matches!(self.token.kind, Kind::Integer | Kind::Decimal) {
                        return Err(self.unexpected());
                    }
                    self.advance();
                }
            } else if self.eat(K::ACCOUNT) {
                if !self.eat(K::UNLOCK) {
                    self.expect(K::LOCK)?;
                }
            } else if self.at(K::PASSWORD) {
                self.password_expire()?;
            } else {
                return Ok(options);
            }
            options.push(self.source(start, self.previous_end));
        }
    }

    fn limit_follows(&self) -> bool {
        let mut lexer = self.lexer;
        let word = lexer.next();
        self.to_utf8_lossy(self.bytes(word)).to_ascii_uppercase().starts_with("MAX_")
    }

    fn require(&mut self) -> Result<()> {
        if self.at_any(&[K::SSL, K::X509]) || self.at_word(b"none") {
            self.advance();
            return Ok(());
        }
        let mut found = false;
        loop {
            if self.at_any(&[K::SUBJECT, K::ISSUER]) || self.at_word(b"cipher") {
                self.advance();
                self.text_literal()?;
                self.eat(K::AND);
                found = true;
            } else if found {
                return Ok(());
            } else {
                return Err(self.unexpected());
            }
        }
    }

    fn at_word(&self, word: &[u8]) -> bool {
        self.bytes(self.token).eq_ignore_ascii_case(word)
    }

    fn password_expire(&mut self) -> Result<()> {
        self.advance();
        self.expect(K::EXPIRE)?;
        if self.eat(K::NEVER) || self.eat(K::DEFAULT) {
            return Ok(());
        }
        if self.eat(K::INTERVAL) {
            self.number()?;
            self.expect(K::DAY)?;
        }
        Ok(())
    }
}
