//! GRANT and REVOKE.

use super::*;
use Keyword as K;

/// Privileges of more than one word, by their words in capitals.
const LONG_PRIVILEGES: [&str; 32] = [
    "ALL PRIVILEGES",
    "ALTER ROUTINE",
    "CREATE ROUTINE",
    "CREATE TABLESPACE",
    "CREATE TEMPORARY TABLES",
    "CREATE USER",
    "CREATE VIEW",
    "SHOW VIEW",
    "SHOW DATABASES",
    "SHOW CREATE ROUTINE",
    "LOCK TABLES",
    "REPLICATION CLIENT",
    "REPLICATION SLAVE",
    "REPLICATION SLAVE ADMIN",
    "REPLICATION MASTER ADMIN",
    "REPLICATION REPLICA",
    "REPLICATION REPLICA ADMIN",
    "BINLOG ADMIN",
    "BINLOG MONITOR",
    "BINLOG REPLAY",
    "CONNECTION ADMIN",
    "DELETE HISTORY",
    "DELETE VERSIONING ROWS",
    "FEDERATED ADMIN",
    "GRANT OPTION",
    "READ ONLY ADMIN",
    "READ_ONLY ADMIN",
    "REPLICA MONITOR",
    "SLAVE MONITOR",
    "SET USER",
    "CREATE SERVER",
    "SHOW USER",
];

/// Privileges of one word.
const SHORT_PRIVILEGES: [&str; 21] = [
    "ALL",
    "ALTER",
    "CREATE",
    "DELETE",
    "DROP",
    "EVENT",
    "EXECUTE",
    "FILE",
    "INDEX",
    "INSERT",
    "PROCESS",
    "PROXY",
    "REFERENCES",
    "RELOAD",
    "SELECT",
    "SHUTDOWN",
    "SUPER",
    "TRIGGER",
    "UPDATE",
    "USAGE",
    "DATABASES",
];

impl Parser<'_> {
    /// GRANT.
    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.advance();
        let privileges = self.privileges()?;
        let level = if self.eat(K::ON) { Some(self.grant_level()?) } else { None };
        self.expect(K::TO)?;
        let users = self.list(Self::user_specification)?;
        let mut grant =
            Grant { privileges, level, users, grant_option: false, options: Vec::new() };
        grant.options = self.account_options()?;
        if self.eat(K::WITH) {
            loop {
                if self.at(K::GRANT) || self.at(K::ADMIN) {
                    self.advance();
                    self.expect(K::OPTION)?;
                    grant.grant_option = true;
                } else if let Kind::Word(
                    K::NONE | K::MAX_USER_CONNECTIONS | K::MAX_STATEMENT_TIME,
                ) = self.token.kind
                {
                    let word = self.word()?;
                    let value = self.number()?;
                    grant.options.push(format!("WITH {word} {value}"));
                } else {
                    break;
                }
            }
        }
        Ok(Statement::Grant(Box::new(grant)))
    }

    /// REVOKE.
    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.advance();
        let admin_option = self.at(K::ADMIN) && self.peek_is(K::OPTION);
        if admin_option {
            self.advance();
            self.advance();
            self.expect(K::FOR)?;
        }
        let mut privileges = self.privileges()?;
        let mut all = false;
        let level = if self.eat(K::ON) { Some(self.grant_level()?) } else { None };
        if level.is_none() {
            let names: Vec<&str> = privileges.iter().map(|p| p.name.as_str()).collect();
            if matches!(names[..], ["ALL PRIVILEGES", "GRANT OPTION"]) {
                all = true;
                privileges.clear();
            }
        }
        self.expect(K::FROM)?;
        let users = self.list(Self::account_name)?;
        Ok(Statement::Revoke(Box::new(Revoke { privileges, all, admin_option, level, users })))
    }

    fn privileges(&mut self) -> Result<Vec<PrivilegeName>> {
        self.list(|parser| {
            let name = parser.privilege_name()?;
            let of_columns = matches!(&*name, "SELECT" | "INSERT" | "UPDATE" | "REFERENCES");
            let columns = match of_columns && parser.at(Symbol::LeftParenthesis) {
                true => parser.name_list()?,
                false => Vec::new(),
            };
            Ok(PrivilegeName { name, columns })
        })
    }

    fn privilege_name(&mut self) -> Result<String> {
        if let Kind::Word(_) = self.token.kind {
            let mut lexer = self.lexer;
            let mut words = self.to_utf8_lossy(self.bytes(self.token)).to_ascii_uppercase();
            let mut best = SHORT_PRIVILEGES.contains(&words.as_str()).then(|| (1, words.clone()));
            for count in 2..=3 {
                let token = lexer.next();
                let Kind::Word(_) = token.kind else { break };
                words.push(' ');
                words.push_str(&self.to_utf8_lossy(self.bytes(token)).to_ascii_uppercase());
                if LONG_PRIVILEGES.contains(&words.as_str()) {
                    best = Some((count, words.clone()));
                }
            }
            if let Some((count, name)) = best {
                for _ in 0..count {
                    self.advance();
                }
                let name = if name == "ALL" { "ALL PRIVILEGES".into() } else { name };
                return Ok(name);
            }
        }
        // A role.
        let account = self.account_name()?;
        Ok(account.user)
    }

    fn grant_level(&mut self) -> Result<GrantLevel> {
        let routine = matches!(
            (self.token.kind, self.peek().kind),
            (Kind::Word(K::PROCEDURE | K::FUNCTION | K::PACKAGE), Kind::Word(_) | Kind::QuotedName)
        );
        if routine {
            let word = self.word()?;
            return Ok(GrantLevel::Routine(word, self.table_name()?));
        }
        self.eat(K::TABLE);
        if self.eat(Symbol::Star) {
            if self.eat(Symbol::Dot) {
                self.expect(Symbol::Star)?;
                return Ok(GrantLevel::Global);
            }
            return Ok(GrantLevel::Schema(None));
        }
        let first = self.name()?;
        if !self.eat(Symbol::Dot) {
            return Ok(GrantLevel::Table(TableName { schema: None, name: first }));
        }
        if self.eat(Symbol::Star) {
            return Ok(GrantLevel::Schema(Some(first)));
        }
        let name = self.name_after_dot()?;
        Ok(GrantLevel::Table(TableName { schema: Some(first), name }))
    }
}
