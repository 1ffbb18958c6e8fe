//! SHOW GRANTS and SHOW CREATE USER.

use crate::transport::ed25519;
use crate::{Session, account_options};
use catalog::describe::quote_name;
use catalog::information_schema::VirtualType;
use catalog::show::ShowAnswer;
use catalog::{
    Account, Authentication, CatalogError, Privilege, PrivilegeSet, RoleGrant, UserPrivileges,
};
use std::sync::Arc;
use syntax::ast::AccountName;
use types::{SqlError, Value, codes};

impl Session {
    /// Whom a SHOW is about; of others only with SELECT on the database `mysql` (1044). A role
    /// that the user has is no other.
    fn shown_user(&self, name: Option<&AccountName>) -> Result<Arc<UserPrivileges>, SqlError> {
        if name.is_some_and(|name| name.current_role) && self.role.is_none() {
            let Account { user, host } = self.user.account.clone();
            return Err(CatalogError::NoSuchGrant(user, host.0).into());
        }
        let account = name.map_or(self.user.account.clone(), |name| self.account(name));
        let catalog = &self.server.catalog;
        let is_own_role = account.host.0.is_empty()
            && catalog.applicable_roles(&self.user.account).contains(&account.user);
        let may_see = account == self.user.account
            || is_own_role
            || self.user.on_schema("mysql").has(Privilege::Select);
        if !may_see {
            let own = &self.user.account;
            let arguments: [&dyn std::fmt::Display; 3] = [&own.user, &own.host.0, &"mysql"];
            return Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments));
        }
        let missing =
            || CatalogError::NoSuchGrant(account.user.clone(), account.host.0.clone()).into();
        catalog.user(&account).ok_or_else(missing)
    }

    /// SHOW GRANTS.
    pub(crate) fn show_grants(&self, name: Option<&AccountName>) -> Result<ShowAnswer, SqlError> {
        let user = self.shown_user(name)?;
        let mut lines = Vec::new();
        grants_of(&user, &mut lines);
        let enabled = match (name, user.is_role) {
            (_, true) => Some(user.account.user.clone()),
            (None, _) => self.role.clone(),
            _ => None,
        };
        if let Some(enabled) = enabled {
            let below = self.server.catalog.roles_below(&enabled);
            let skipped = usize::from(user.is_role);
            for role in below.iter().skip(skipped) {
                if let Some(role) = self.server.catalog.role(role) {
                    grants_of(&role, &mut lines);
                }
            }
        }
        let shows_public = name.is_none() && !user.is_role;
        if let Some(public) = self.server.catalog.role(catalog::PUBLIC).filter(|_| shows_public) {
            grants_of(&public, &mut lines);
        }
        if let Some(role) = &user.default_role {
            let to = account_text(&user.account);
            lines.push(format!("SET DEFAULT ROLE {} FOR {to}", quote_name(role)));
        }
        let title = match user.is_role {
            true => format!("Grants for {}", user.account.user),
            false => format!("Grants for {}@{}", user.account.user, user.account.host.0),
        };
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
        let lifetime = account_options::expire_clause(&user.attributes);
        let text = format!(
            "CREATE USER {}{}{}{}{}{}",
            account_text(&user.account),
            identified(&user.authentication),
            account_options::require_clause(&user.attributes),
            account_options::with_clause(&user.attributes, ""),
            if is_locked { " ACCOUNT LOCK" } else { "" },
            if user.attributes.expired { " PASSWORD EXPIRE" } else { &lifetime },
        );
        let mut rows = vec![vec![Value::text(text)]];
        if user.attributes.expired && !lifetime.is_empty() {
            let text = format!("ALTER USER {}{lifetime}", account_text(&user.account));
            rows.push(vec![Value::text(text)]);
        }
        let title = format!("CREATE USER for {}@{}", user.account.user, user.account.host.0);
        Ok(ShowAnswer { columns: vec![(title, VirtualType::Varchar(1024), false)], rows })
    }
}

fn grant_option(set: PrivilegeSet) -> &'static str {
    match set.has(Privilege::GrantOption) {
        true => " WITH GRANT OPTION",
        false => "",
    }
}

/// The lines of an account or role: its roles, then what it holds from the widest level on.
fn grants_of(user: &UserPrivileges, lines: &mut Vec<String>) {
    let to = account_text(&user.account);
    for RoleGrant { role, admin } in &user.roles {
        let admin = if *admin { " WITH ADMIN OPTION" } else { "" };
        lines.push(format!("GRANT {} TO {to}{admin}", quote_name(role)));
    }
    let global = user.global;
    let with = account_options::with_clause(&user.attributes, grant_option(global));
    let identified = if user.is_role { String::new() } else { identified(&user.authentication) };
    if to != catalog::PUBLIC || !global.is_empty() {
        lines.push(format!(
            "GRANT {} ON *.* TO {to}{identified}{}{with}",
            privileges_text(global, 1),
            account_options::require_clause(&user.attributes),
        ));
    }
    for (schema, set) in &user.schemas {
        let (quoted, text) = (quote_name(schema), privileges_text(*set, 2));
        lines.push(format!("GRANT {text} ON {quoted}.* TO {to}{}", grant_option(*set)));
    }
    let mut tables: Vec<(&str, &str)> =
        user.tables.iter().map(|(schema, table, _)| (schema.as_str(), table.as_str())).collect();
    for grant in &user.columns {
        let name = (grant.schema.as_str(), grant.table.as_str());
        if !tables.contains(&name) {
            tables.push(name);
        }
    }
    for (schema, table) in tables {
        let found = user.tables.iter().find(|(s, t, _)| s == schema && t == table);
        let set = found.map_or(PrivilegeSet::NONE, |(_, _, set)| *set);
        let text = with_columns(user, (schema, table), set);
        let (schema, table) = (quote_name(schema), quote_name(table));
        lines.push(format!("GRANT {text} ON {schema}.{table} TO {to}{}", grant_option(set)));
    }
}

/// The privileges on a table and its columns: `SELECT, INSERT (a, b)`.
fn with_columns(user: &UserPrivileges, table: (&str, &str), set: PrivilegeSet) -> String {
    let of_table = |grant: &&catalog::ColumnGrant| (&*grant.schema, &*grant.table) == table;
    let columns: Vec<_> = user.columns.iter().filter(of_table).collect();
    if columns.is_empty() || set.contains(PrivilegeSet::all_at(4)) {
        return privileges_text(set, 4);
    }
    let mut parts = Vec::new();
    for privilege in Privilege::ALL.iter().filter(|p| **p != Privilege::GrantOption) {
        let with = columns.iter().filter(|grant| grant.set.has(*privilege));
        let names: Vec<String> = with.map(|grant| quote_name(&grant.column)).collect();
        let name = privilege.name();
        match (set.has(*privilege), names.is_empty()) {
            (true, true) => parts.push(name.to_owned()),
            (true, false) => parts.push(format!("{name}, {name} ({})", names.join(", "))),
            (false, false) => parts.push(format!("{name} ({})", names.join(", "))),
            (false, true) => {}
        }
    }
    parts.join(", ")
}

fn account_text(account: &Account) -> String {
    match account.host.0.is_empty() {
        true if account.user == catalog::PUBLIC => account.user.clone(),
        true => quote_name(&account.user),
        false => format!("{}@{}", quote_name(&account.user), quote_name(&account.host.0)),
    }
}

fn privileges_text(set: PrivilegeSet, level: u8) -> String {
    if set.contains(PrivilegeSet::all_at(level)) {
        return "ALL PRIVILEGES".to_owned();
    }
    let named = set.iter().filter(|privilege| *privilege != Privilege::GrantOption);
    let names: Vec<_> = named.map(Privilege::name).collect();
    if names.is_empty() { "USAGE".to_owned() } else { names.join(", ") }
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
