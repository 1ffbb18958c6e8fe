//! Accounts and privileges: CREATE USER, GRANT, SHOW GRANTS.

use crate::access::denied;
use crate::transport::ed25519;
use crate::{Session, account_options};
use catalog::information_schema::VirtualType;
use catalog::show::ShowAnswer;
use catalog::{
    Account, AccountAttributes, Authentication, CatalogError, GrantLevel, Privilege, PrivilegeSet,
    UserPrivileges,
};
use syntax::ast::{
    self, AccountName, AuthenticationClause, CreateUser, DropUser, Grant, Password, Revoke,
    SetItem, Statement,
};
use types::error::ErrorCode;
use types::{SqlError, Value, Warning, codes};
use wire::caching_sha2;

type Done = Result<(), SqlError>;

/// 1524.
static PLUGIN_IS_NOT_LOADED: ErrorCode = ErrorCode {
    number: 1524,
    sqlstate: "HY000",
    name: "PLUGIN_IS_NOT_LOADED",
    template: "Plugin '{}' is not loaded",
};

impl Session {
    fn account(&self, name: &AccountName) -> Account {
        if name.current {
            return self.user.account.clone();
        }
        Account::new(&name.user, name.host.as_deref().unwrap_or("%"))
    }

    /// CREATE, ALTER, DROP and RENAME USER, GRANT, REVOKE.
    pub(crate) fn change_accounts(&mut self, statement: &Statement) -> Done {
        match statement {
            Statement::CreateUser(create) => self.create_users(create),
            Statement::AlterUser(alter) => self.alter_users(alter),
            Statement::DropUser(drop) => self.drop_users(drop),
            Statement::RenameUser(pairs) => self.rename_users(pairs),
            Statement::Grant(grant) => self.grant(grant),
            Statement::Revoke(revoke) => self.revoke(revoke),
            _ => Ok(()),
        }
    }

    fn user_note(&self, code: u16, message: String) {
        self.eval.push_warning(Warning { level: types::Level::Note, code, message });
    }

    fn create_users(&mut self, create: &CreateUser) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let mut attributes = AccountAttributes::default();
        account_options::read(&create.options)?.apply(&mut attributes);
        let mut failed = Vec::new();
        for user in &create.users {
            let account = self.account(&user.account);
            let authentication = authentication(user.authentication.as_ref())?;
            let new = UserPrivileges::new(account.clone(), authentication);
            let new = UserPrivileges { attributes, ..new };
            let exists = self.server.catalog.user(&account).is_some();
            match (exists, create.or_replace, create.if_clause) {
                (true, true, _) => {
                    self.server.catalog.drop_user(&account)?;
                    self.server.catalog.create_user(new)?;
                }
                (true, false, true) => {
                    let text = format!("Can't create user {account}; it already exists");
                    self.user_note(1973, text);
                }
                (true, false, false) => failed.push(account.to_string()),
                (false, ..) => self.server.catalog.create_user(new)?,
            }
        }
        cannot("CREATE USER", failed)
    }

    fn alter_users(&mut self, alter: &CreateUser) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let options = account_options::read(&alter.options)?;
        let mut failed = Vec::new();
        for user in &alter.users {
            let account = self.account(&user.account);
            if self.server.catalog.user(&account).is_none() {
                if !alter.if_clause {
                    failed.push(account.to_string());
                }
                continue;
            }
            let new = user.authentication.as_ref().map(|clause| authentication(Some(clause)));
            let edit = |attributes: &mut AccountAttributes| options.apply(attributes);
            self.server.catalog.alter_user(&account, new.transpose()?, &edit)?;
        }
        cannot("ALTER USER", failed)
    }

    fn drop_users(&mut self, drop: &DropUser) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let mut failed = Vec::new();
        for name in &drop.accounts {
            let account = self.account(name);
            match self.server.catalog.drop_user(&account) {
                Err(CatalogError::CannotUser { .. }) if drop.if_exists => {
                    let text = format!("Can't drop user {account}; it doesn't exist");
                    self.user_note(1974, text);
                }
                Err(CatalogError::CannotUser { .. }) => failed.push(account.to_string()),
                other => other?,
            }
        }
        cannot("DROP USER", failed)
    }

    fn rename_users(&mut self, pairs: &[(AccountName, AccountName)]) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let mut failed = Vec::new();
        for (from, to) in pairs {
            let (from, to) = (self.account(from), self.account(to));
            match self.server.catalog.rename_user(&from, to) {
                Err(CatalogError::CannotUser { .. }) => failed.push(from.to_string()),
                other => other?,
            }
        }
        cannot("RENAME USER", failed)
    }

    /// The level of a GRANT or REVOKE.
    fn grant_level(&self, level: &ast::GrantLevel) -> Result<GrantLevel, SqlError> {
        Ok(match level {
            ast::GrantLevel::Global => GrantLevel::Global,
            ast::GrantLevel::Schema(Some(schema)) => GrantLevel::Schema(schema.clone()),
            ast::GrantLevel::Schema(None) => GrantLevel::Schema(self.current_database()?),
            ast::GrantLevel::Table(table) => {
                let schema = match &table.schema {
                    Some(schema) => schema.clone(),
                    None => self.current_database()?,
                };
                GrantLevel::Table(schema, table.name.clone())
            }
            ast::GrantLevel::Routine(..) => return Err(unsupported("GRANT ON a routine")),
        })
    }

    /// Who gives privileges must hold them with GRANT OPTION.
    fn check_may_grant(&self, level: &GrantLevel, set: PrivilegeSet) -> Done {
        let held = match level {
            GrantLevel::Global => self.user.global,
            GrantLevel::Schema(schema) => self.user.on_schema(schema),
            GrantLevel::Table(schema, table) => self.user.on_table(schema, table),
        };
        let account = &self.user.account;
        if held.has(Privilege::GrantOption) && held.contains(set) {
            return Ok(());
        }
        match level {
            GrantLevel::Global => {
                let arguments: [&dyn std::fmt::Display; 3] =
                    [&account.user, &account.host.0, &"YES"];
                Err(SqlError::new(&codes::ACCESS_DENIED_ERROR, &arguments))
            }
            GrantLevel::Schema(schema) => {
                let arguments: [&dyn std::fmt::Display; 3] =
                    [&account.user, &account.host.0, schema];
                Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments))
            }
            GrantLevel::Table(schema, table) => {
                Err(denied("GRANT", &self.user, &self.identity.host, schema, table))
            }
        }
    }

    fn grant(&mut self, grant: &Grant) -> Done {
        let Some(level) = &grant.level else {
            return Err(unsupported("roles"));
        };
        let options = account_options::read(&grant.options)?;
        let level = self.grant_level(level)?;
        let mut set = privilege_set(&grant.privileges, level.bit())?;
        if grant.grant_option {
            set = set.with(Privilege::GrantOption);
        }
        self.check_may_grant(&level, set)?;
        for user in &grant.users {
            let account = self.account(&user.account);
            let exists = self.server.catalog.user(&account).is_some();
            match (&user.authentication, exists) {
                // sql_mode NO_AUTO_CREATE_USER, which is on: no account without a password.
                (None, false) => {
                    return Err(SqlError::with_message(
                        &codes::PASSWORD_NO_MATCH,
                        "Can't find any matching row in the user table",
                    ));
                }
                (None, true) => {}
                (Some(clause), false) => {
                    self.require_global(Privilege::CreateUser)?;
                    let authentication = authentication(Some(clause))?;
                    let new = UserPrivileges::new(account.clone(), authentication);
                    self.server.catalog.create_user(new)?;
                }
                (Some(clause), true) => {
                    self.require_global(Privilege::CreateUser)?;
                    let new = Some(authentication(Some(clause))?);
                    self.server.catalog.alter_user(&account, new, &|_| ())?;
                }
            }
            if !grant.options.is_empty() {
                let edit = |attributes: &mut AccountAttributes| options.apply(attributes);
                self.server.catalog.alter_user(&account, None, &edit)?;
            }
            self.server.catalog.grant(&account, &level, set)?;
        }
        Ok(())
    }

    fn revoke(&mut self, revoke: &Revoke) -> Done {
        if revoke.all {
            self.require_global(Privilege::CreateUser)?;
            for name in &revoke.users {
                self.server.catalog.revoke_all(&self.account(name))?;
            }
            return Ok(());
        }
        let Some(level) = &revoke.level else {
            return Err(unsupported("roles"));
        };
        let level = self.grant_level(level)?;
        let set = privilege_set(&revoke.privileges, level.bit())?;
        self.check_may_grant(&level, set)?;
        for name in &revoke.users {
            self.server.catalog.revoke(&self.account(name), &level, set)?;
        }
        Ok(())
    }

    /// SET PASSWORD.
    pub(crate) fn set_password(&mut self, item: &SetItem) -> Done {
        let SetItem::Password { account, password } = item else {
            return Ok(());
        };
        let own = self.user.account.clone();
        let account = account.as_ref().map_or(own.clone(), |name| self.account(name));
        if account != own {
            self.require_global(Privilege::CreateUser)?;
        }
        let present = self.server.catalog.user(&account);
        let authentication = match (password, present.as_ref().map(|user| &user.authentication)) {
            (Password::Clear(clear), Some(Authentication::CachingSha2(_))) => caching_sha2(clear),
            (Password::Clear(clear), Some(Authentication::Ed25519(_))) => ed25519_key(clear)?,
            (Password::Clear(clear), _) => from_clear(clear),
            (Password::Hash(hash), Some(Authentication::CachingSha2(_))) => caching_hash(hash)?,
            (Password::Hash(hash), _) => from_hash(hash)?,
        };
        Ok(self.server.catalog.alter_user(&account, Some(authentication), &|_| ())?)
    }

    fn shown_user(
        &self,
        name: Option<&AccountName>,
    ) -> Result<std::sync::Arc<UserPrivileges>, SqlError> {
        let account = name.map_or(self.user.account.clone(), |name| self.account(name));
        if account != self.user.account && !self.user.may(Privilege::Select, "mysql", "user") {
            return Err(denied("SELECT", &self.user, &self.identity.host, "mysql", "user"));
        }
        let missing =
            || CatalogError::NoSuchGrant(account.user.clone(), account.host.0.clone()).into();
        self.server.catalog.user(&account).ok_or_else(missing)
    }

    /// SHOW GRANTS.
    pub(crate) fn show_grants(&self, name: Option<&AccountName>) -> Result<ShowAnswer, SqlError> {
        let user = self.shown_user(name)?;
        let to = account_text(&user.account);
        let option = |set: PrivilegeSet| match set.has(Privilege::GrantOption) {
            true => " WITH GRANT OPTION",
            false => "",
        };
        let global = user.global;
        let with = account_options::with_clause(&user.attributes, option(global));
        let mut lines = vec![format!(
            "GRANT {} ON *.* TO {to}{}{}{with}",
            privileges_text(global, 1),
            identified(&user.authentication),
            account_options::require_clause(&user.attributes),
        )];
        for (schema, set) in &user.schemas {
            let quoted = catalog::describe::quote_name(schema);
            let text = privileges_text(*set, 2);
            lines.push(format!("GRANT {text} ON {quoted}.* TO {to}{}", option(*set)));
        }
        for (schema, table, set) in &user.tables {
            let schema = catalog::describe::quote_name(schema);
            let table = catalog::describe::quote_name(table);
            let text = privileges_text(*set, 4);
            lines.push(format!("GRANT {text} ON {schema}.{table} TO {to}{}", option(*set)));
        }
        let title = format!("Grants for {}@{}", user.account.user, user.account.host.0);
        Ok(ShowAnswer {
            columns: vec![(title, VirtualType::Varchar(1024), false)],
            rows: lines.into_iter().map(|line| vec![Value::text(line)]).collect(),
        })
    }

    /// SHOW CREATE USER.
    pub(crate) fn show_create_user(
        &self,
        name: Option<&AccountName>,
    ) -> Result<ShowAnswer, SqlError> {
        let user = self.shown_user(name)?;
        let is_locked = user.attributes.locked || user.authentication == Authentication::Locked;
        let text = format!(
            "CREATE USER {}{}{}{}{}",
            account_text(&user.account),
            identified(&user.authentication),
            account_options::require_clause(&user.attributes),
            account_options::with_clause(&user.attributes, ""),
            if is_locked { " ACCOUNT LOCK" } else { "" },
        );
        let title = format!("CREATE USER for {}@{}", user.account.user, user.account.host.0);
        Ok(ShowAnswer {
            columns: vec![(title, VirtualType::Varchar(1024), false)],
            rows: vec![vec![Value::text(text)]],
        })
    }
}

fn account_text(account: &Account) -> String {
    let quote = catalog::describe::quote_name;
    format!("{}@{}", quote(&account.user), quote(&account.host.0))
}

fn privileges_text(set: PrivilegeSet, level: u8) -> String {
    if set.contains(PrivilegeSet::all_at(level)) {
        return "ALL PRIVILEGES".to_owned();
    }
    let named = set.iter().filter(|privilege| *privilege != Privilege::GrantOption);
    let names: Vec<_> = named.map(Privilege::name).collect();
    if names.is_empty() { "USAGE".to_owned() } else { names.join(", ") }
}

fn unsupported(feature: &str) -> SqlError {
    SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature])
}

fn cannot(operation: &'static str, failed: Vec<String>) -> Done {
    if failed.is_empty() {
        return Ok(());
    }
    Err(CatalogError::CannotUser { operation, accounts: failed.join(",") }.into())
}

/// IDENTIFIED ... of SHOW GRANTS and SHOW CREATE USER.
fn identified(authentication: &Authentication) -> String {
    match authentication {
        Authentication::NativePassword(_) => {
            format!(" IDENTIFIED BY PASSWORD '{}'", authentication.hash_text())
        }
        Authentication::CachingSha2(hash) => {
            let quoted = hash.replace('\\', "\\\\").replace('\'', "''");
            match hash.is_empty() {
                true => " IDENTIFIED VIA caching_sha2_password".to_owned(),
                false => format!(" IDENTIFIED VIA caching_sha2_password USING '{quoted}'"),
            }
        }
        Authentication::Ed25519(key) => {
            format!(" IDENTIFIED VIA ed25519 USING '{}'", ed25519::text(key))
        }
        Authentication::NoPassword | Authentication::Locked => String::new(),
    }
}

/// An account of caching_sha2_password with a password in clear.
fn caching_sha2(clear: &[u8]) -> Authentication {
    if clear.is_empty() {
        return Authentication::CachingSha2(String::new());
    }
    let mut random = [0; caching_sha2::SALT_BYTES];
    runtime::random_bytes(&mut random);
    let salt = wire::handshake::scramble_from_random(random);
    let clear = clear.to_vec();
    let hash = runtime::blocking(move || caching_sha2::make_hash(&clear, &salt));
    Authentication::CachingSha2(hash)
}

fn wrong_hash() -> SqlError {
    SqlError::with_message(
        &codes::PASSWD_LENGTH,
        "The password hash doesn't have the expected format",
    )
}

fn caching_hash(hash: &[u8]) -> Result<Authentication, SqlError> {
    let text = String::from_utf8_lossy(hash).into_owned();
    match text.is_empty() || caching_sha2::is_hash(&text) {
        true => Ok(Authentication::CachingSha2(text)),
        false => Err(wrong_hash()),
    }
}

fn ed25519_key(clear: &[u8]) -> Result<Authentication, SqlError> {
    let key = ed25519::public_key(clear).ok_or_else(wrong_hash)?;
    Ok(Authentication::Ed25519(key))
}

/// VIA a plugin by name.
fn by_plugin(
    name: &str,
    hash: Option<&[u8]>,
    password: Option<&[u8]>,
) -> Result<Authentication, SqlError> {
    match (name.to_ascii_lowercase().as_str(), hash, password) {
        ("mysql_native_password", Some(hash), _) => from_hash(hash),
        ("mysql_native_password", None, password) => Ok(from_clear(password.unwrap_or_default())),
        ("caching_sha2_password", Some(hash), _) => caching_hash(hash),
        ("caching_sha2_password", None, password) => Ok(caching_sha2(password.unwrap_or_default())),
        ("ed25519", Some(hash), _) => {
            let key = ed25519::from_text(&String::from_utf8_lossy(hash));
            key.map(Authentication::Ed25519).ok_or_else(wrong_hash)
        }
        ("ed25519", None, Some(password)) => ed25519_key(password),
        ("ed25519", None, None) => Err(wrong_hash()),
        _ => Err(SqlError::new(&PLUGIN_IS_NOT_LOADED, &[&name])),
    }
}

fn from_clear(clear: &[u8]) -> Authentication {
    match clear.is_empty() {
        true => Authentication::NoPassword,
        false => Authentication::NativePassword(wire::handshake::native_password_hash(clear)),
    }
}

fn from_hash(hash: &[u8]) -> Result<Authentication, SqlError> {
    let text = String::from_utf8_lossy(hash);
    let wrong = || {
        SqlError::with_message(
            &codes::PASSWD_LENGTH,
            "Password hash should be a 41-digit hexadecimal number",
        )
    };
    Authentication::from_hash_text(&text).ok_or_else(wrong)
}

fn authentication(clause: Option<&AuthenticationClause>) -> Result<Authentication, SqlError> {
    match clause {
        None => Ok(Authentication::NoPassword),
        Some(AuthenticationClause::Password(clear)) => Ok(from_clear(clear)),
        Some(AuthenticationClause::PasswordHash(hash)) => from_hash(hash),
        Some(AuthenticationClause::Plugin { name, hash, password, .. }) => {
            by_plugin(name, hash.as_deref(), password.as_deref())
        }
    }
}

fn privilege_set(names: &[ast::PrivilegeName], level: u8) -> Result<PrivilegeSet, SqlError> {
    let mut set = PrivilegeSet::NONE;
    for name in names {
        if !name.columns.is_empty() {
            return Err(unsupported("privileges on columns"));
        }
        match name.name.as_str() {
            "ALL" | "ALL PRIVILEGES" => set = set | PrivilegeSet::all_at(level),
            "USAGE" => {}
            other => {
                let privilege = Privilege::parse(other)
                    .ok_or_else(|| unsupported(&format!("privilege {other}")))?;
                if privilege.levels() & level == 0 {
                    let text = "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES";
                    let table = "Illegal GRANT/REVOKE command; please consult the manual to see \
                                 which privileges can be used";
                    return Err(match level {
                        2 => SqlError::with_message(&codes::WRONG_USAGE, text),
                        _ => SqlError::with_message(&codes::ILLEGAL_GRANT_FOR_TABLE, table),
                    });
                }
                set = set.with(privilege);
            }
        }
    }
    Ok(set)
}
