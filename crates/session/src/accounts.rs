//! Accounts and privileges: CREATE USER, GRANT, REVOKE.

use crate::access::denied;
use crate::transport::ed25519;
use crate::{Session, account_options};
use catalog::{
    Account, AccountAttributes, Authentication, CatalogError, GrantLevel, Privilege, PrivilegeSet,
    TableRef, UserPrivileges,
};
use syntax::ast::{
    self, AccountName, AuthenticationClause, CreateUser, DropUser, Grant, Password, Revoke,
    SetItem, Statement,
};
use types::error::ErrorCode;
use types::{SqlError, Warning, codes};
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
    /// The account of a user: never a role's.
    fn user_account(&self, name: &AccountName) -> Account {
        match name.current {
            true => self.user.account.clone(),
            false => Account::new(&name.user, name.host.as_deref().unwrap_or("%")),
        }
    }

    /// Whom a name means. A name without a host is that of a role, if there is one.
    pub(crate) fn account(&self, name: &AccountName) -> Account {
        if name.current {
            return self.user.account.clone();
        }
        if name.current_role {
            return Account::new(self.role.as_deref().unwrap_or_default(), "");
        }
        match &name.host {
            Some(host) => Account::new(&name.user, host),
            None => match catalog::role_name(&self.server.catalog, &name.user) {
                Some(role) => Account::new(&role, ""),
                None => Account::new(&name.user, "%"),
            },
        }
    }

    /// The table of a grant is there, or is to be created; its columns are there.
    fn check_granted_table(&self, level: &GrantLevel, wanted: &Wanted) -> Done {
        let GrantLevel::Table(schema, table) = level else { return Ok(()) };
        if wanted.set.has(Privilege::Create) && wanted.columns.is_empty() {
            return Ok(());
        }
        let found = self.server.catalog.find(schema, table)?;
        let (TableRef::Base(entry) | TableRef::View(entry)) = found else { return Ok(()) };
        for (column, _) in &wanted.columns {
            if entry.definition().column_position(column).is_none() {
                return Err(SqlError::new(&codes::BAD_FIELD_ERROR, &[column, table]));
            }
        }
        Ok(())
    }

    /// CREATE, ALTER, DROP and RENAME USER, GRANT, REVOKE.
    pub(crate) fn change_accounts(&mut self, statement: &Statement) -> Done {
        match statement {
            Statement::CreateUser(create) => self.create_users(create),
            Statement::AlterUser(alter) => self.alter_users(alter),
            Statement::DropUser(drop) => self.drop_users(drop),
            Statement::RenameUser(pairs) => self.rename_users(pairs),
            Statement::CreateRole(create) => self.create_roles(create),
            Statement::DropRole(drop) => self.drop_roles(drop),
            Statement::Grant(grant) => self.grant(grant),
            Statement::Revoke(revoke) => self.revoke(revoke),
            _ => Ok(()),
        }
    }

    pub(crate) fn user_note(&self, code: u16, message: String) {
        self.eval.push_warning(Warning { level: types::Level::Note, code, message });
    }

    fn create_users(&mut self, create: &CreateUser) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let mut attributes = AccountAttributes::default();
        account_options::read(&create.options)?.apply(&mut attributes);
        let mut failed = Vec::new();
        for user in &create.users {
            let account = self.user_account(&user.account);
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
            let account = self.user_account(&user.account);
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
            let account = self.user_account(name);
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
            let (from, to) = (self.user_account(from), self.user_account(to));
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
    fn check_may_grant(&self, level: &GrantLevel, wanted: &Wanted) -> Done {
        let held = match level {
            GrantLevel::Global => self.user.global,
            GrantLevel::Schema(schema) => self.user.on_schema(schema),
            GrantLevel::Table(schema, table) => self.user.on_table(schema, table),
        };
        let account = &self.user.account;
        let holds_column = |(column, set): &(String, PrivilegeSet)| match level {
            GrantLevel::Table(schema, table) => {
                (held | self.user.on_column(schema, table, column)).contains(*set)
            }
            _ => false,
        };
        if held.has(Privilege::GrantOption)
            && held.contains(wanted.set)
            && wanted.columns.iter().all(holds_column)
        {
            return Ok(());
        }
        match level {
            GrantLevel::Global => {
                let using = if self.user.authentication == Authentication::NoPassword {
                    "NO"
                } else {
                    "YES"
                };
                let arguments: [&dyn std::fmt::Display; 3] =
                    [&account.user, &account.host.0, &using];
                Err(SqlError::new(&codes::ACCESS_DENIED_ERROR, &arguments))
            }
            GrantLevel::Schema(schema) => {
                let arguments: [&dyn std::fmt::Display; 3] =
                    [&account.user, &account.host.0, schema];
                Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments))
            }
            GrantLevel::Table(schema, table) => {
                let of_columns = wanted.columns.iter().filter(|column| !holds_column(column));
                let all = of_columns.fold(wanted.set, |set, (_, of_column)| set | *of_column);
                let missing = all.with(Privilege::GrantOption).without(held).commands();
                Err(denied(&missing, &self.user, &self.identity.host, schema, table))
            }
        }
    }

    fn grant(&mut self, grant: &Grant) -> Done {
        let Some(level) = &grant.level else {
            return self.grant_roles(grant);
        };
        let options = account_options::read(&grant.options)?;
        let level = self.grant_level(level)?;
        let mut wanted = wanted(&grant.privileges, level.bit())?;
        if grant.grant_option {
            wanted.set = wanted.set.with(Privilege::GrantOption);
        }
        self.check_may_grant(&level, &wanted)?;
        self.check_granted_table(&level, &wanted)?;
        for user in &grant.users {
            let account = self.account(&user.account);
            self.prepare_grantee(&account, user.authentication.as_ref())?;
            if !grant.options.is_empty() {
                let edit = |attributes: &mut AccountAttributes| options.apply(attributes);
                self.server.catalog.alter_user(&account, None, &edit)?;
            }
            self.server.catalog.grant(&account, &level, wanted.set, &wanted.columns)?;
        }
        Ok(())
    }

    /// An account that a GRANT names with a password is made, or gets that password.
    fn prepare_grantee(&self, account: &Account, clause: Option<&AuthenticationClause>) -> Done {
        match (clause, self.server.catalog.user(account).is_some()) {
            (None, false) if account.user.eq_ignore_ascii_case(catalog::PUBLIC) => {
                Ok(self.server.catalog.create_role(catalog::PUBLIC, None)?)
            }
            // sql_mode NO_AUTO_CREATE_USER, which is on: no account without a password.
            (None, false) => Err(SqlError::with_message(
                &codes::PASSWORD_NO_MATCH,
                "Can't find any matching row in the user table",
            )),
            (None, true) => Ok(()),
            (Some(clause), false) => {
                self.require_global(Privilege::CreateUser)?;
                let new = UserPrivileges::new(account.clone(), authentication(Some(clause))?);
                Ok(self.server.catalog.create_user(new)?)
            }
            (Some(clause), true) => {
                self.require_global(Privilege::CreateUser)?;
                let new = Some(authentication(Some(clause))?);
                Ok(self.server.catalog.alter_user(account, new, &|_| ())?)
            }
        }
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
            return self.revoke_roles(revoke);
        };
        let level = self.grant_level(level)?;
        let wanted = wanted(&revoke.privileges, level.bit())?;
        self.check_may_grant(&level, &wanted)?;
        for name in &revoke.users {
            let account = self.account(name);
            self.server.catalog.revoke(&account, &level, wanted.set, &wanted.columns)?;
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
            self.require_on_schema(Privilege::Update, "mysql")?;
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
}

fn unsupported(feature: &str) -> SqlError {
    SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature])
}

pub(crate) fn cannot(operation: &'static str, failed: Vec<String>) -> Done {
    if failed.is_empty() {
        return Ok(());
    }
    Err(CatalogError::CannotUser { operation, accounts: failed.join(",") }.into())
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
    let key = ed25519::public_key(clear);
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

/// The privileges that a GRANT or REVOKE names.
struct Wanted {
    /// Those of the whole level.
    set: PrivilegeSet,
    /// Those of single columns.
    columns: Vec<(String, PrivilegeSet)>,
}

fn wanted(names: &[ast::PrivilegeName], level: u8) -> Result<Wanted, SqlError> {
    let mut wanted = Wanted { set: PrivilegeSet::NONE, columns: Vec::new() };
    for name in names {
        match name.name.as_str() {
            "ALL" | "ALL PRIVILEGES" => wanted.set = wanted.set | PrivilegeSet::all_at(level),
            "USAGE" => {}
            other => {
                let privilege = Privilege::parse(other)
                    .ok_or_else(|| unsupported(&format!("privilege {other}")))?;
                if !name.columns.is_empty() {
                    if level != 4 {
                        return Err(SqlError::new(&codes::ILLEGAL_GRANT_FOR_TABLE, &[]));
                    }
                    for column in &name.columns {
                        wanted.columns.push((column.clone(), privilege.into()));
                    }
                    continue;
                }
                if privilege.levels() & level == 0 {
                    let text = "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES";
                    let table = "Illegal GRANT/REVOKE command; please consult the manual to see \
                                 which privileges can be used";
                    return Err(match level {
                        2 => SqlError::with_message(&codes::WRONG_USAGE, text),
                        _ => SqlError::with_message(&codes::ILLEGAL_GRANT_FOR_TABLE, table),
                    });
                }
                wanted.set = wanted.set.with(privilege);
            }
        }
    }
    Ok(wanted)
}
