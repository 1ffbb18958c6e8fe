//! Creating, changing and finding accounts.

use crate::{
    Account, AccountAttributes, Authentication, Catalog, CatalogError, ColumnGrant, Privilege,
    PrivilegeSet, Result, UserPrivileges,
};
use engine_api::Transaction;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Accounts = BTreeMap<Account, Arc<UserPrivileges>>;

/// What a GRANT or REVOKE is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantLevel {
    /// `*.*`
    Global,
    /// `schema.*`; the name is a pattern.
    Schema(String),
    /// `schema.table`
    Table(String, String),
}

impl GrantLevel {
    /// The bit of [`Privilege::levels`].
    pub fn bit(&self) -> u8 {
        match self {
            Self::Global => 1,
            Self::Schema(_) => 2,
            Self::Table(..) => 4,
        }
    }
}

impl Catalog {
    pub(crate) fn load_accounts(&self, pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        let mut users = self.users.write();
        for (key, value) in pairs {
            let user = UserPrivileges::decode(&value).map_err(|error| {
                let object = format!("user {}", String::from_utf8_lossy(&key[1..]));
                CatalogError::Dictionary { object: object.replace('\0', "@"), error }
            })?;
            users.insert(user.account.clone(), Arc::new(user));
        }
        Ok(())
    }

    /// Adds root@localhost without a password to a new dictionary.
    pub(crate) fn put_root(&self, trx: &mut dyn Transaction) -> Result<()> {
        let root = Account::new("root", "localhost");
        let mut user = UserPrivileges::new(root, Authentication::NoPassword);
        user.global = PrivilegeSet::all_at(1).with(Privilege::GrantOption);
        self.engine().dictionary_put(trx, &user_key(&user.account), &user.encode())?;
        self.users.write().insert(user.account.clone(), Arc::new(user));
        Ok(())
    }

    pub(crate) fn store_user(&self, user: UserPrivileges) -> Result<()> {
        self.store_users(Vec::new(), vec![user])
    }

    /// Takes accounts away and stores others, in one transaction.
    pub(crate) fn store_users(&self, gone: Vec<Account>, kept: Vec<UserPrivileges>) -> Result<()> {
        let mut trx = self.begin();
        for account in &gone {
            self.engine().dictionary_delete(&mut *trx, &user_key(account))?;
        }
        for user in &kept {
            let (key, record) = (user_key(&user.account), user.encode());
            self.engine().dictionary_put(&mut *trx, &key, &record)?;
        }
        trx.commit()?;
        let mut users = self.users.write();
        gone.iter().for_each(|account| drop(users.remove(account)));
        users.extend(kept.into_iter().map(|user| (user.account.clone(), Arc::new(user))));
        self.enabled.lock().clear();
        drop(users);
        self.changed();
        Ok(())
    }

    /// All accounts and roles in order.
    pub fn users(&self) -> Vec<Arc<UserPrivileges>> {
        let users = self.users.read();
        users.values().cloned().collect()
    }

    /// An account by its exact name.
    pub fn user(&self, account: &Account) -> Option<Arc<UserPrivileges>> {
        let users = self.users.read();
        users.get(account).cloned()
    }

    /// The account that a client logging in as `user` gets: of those with this name or none whose
    /// host matches one of `hosts` (all names and addresses the client is known by), the one with
    /// the most specific host; of those with the same, the one with a name.
    pub fn find_user(&self, user: &str, hosts: &[&str]) -> Option<Arc<UserPrivileges>> {
        let users = self.users.read();
        let named = |name: &str| name == user || name.is_empty();
        let candidates = users.values().filter(|candidate| !candidate.is_role);
        let candidates = candidates.filter(|candidate| named(&candidate.account.user));
        let matching = candidates.filter(|candidate| candidate.matches_host(hosts));
        matching.max_by_key(|candidate| candidate.specificity()).cloned()
    }

    /// CREATE USER. Fails with 1396 if it exists.
    pub fn create_user(&self, mut user: UserPrivileges) -> Result<()> {
        if self.user(&user.account).is_some() {
            let accounts = user.account.to_string();
            return Err(CatalogError::CannotUser { operation: "CREATE USER", accounts });
        }
        user.attributes.password_set_micros = runtime::wall_clock_micros();
        self.store_user(user)
    }

    /// ALTER USER, SET PASSWORD: another way to log in, other attributes. Fails with 1396 if it
    /// does not exist.
    pub fn alter_user(
        &self,
        account: &Account,
        authentication: Option<Authentication>,
        edit: &dyn Fn(&mut AccountAttributes),
    ) -> Result<()> {
        let Some(user) = self.user(account) else {
            let accounts = account.to_string();
            return Err(CatalogError::CannotUser { operation: "ALTER USER", accounts });
        };
        let mut changed = (*user).clone();
        if let Some(authentication) = authentication {
            changed.authentication = authentication;
            changed.attributes.expired = false;
            changed.attributes.password_set_micros = runtime::wall_clock_micros();
        }
        edit(&mut changed.attributes);
        self.store_user(changed)
    }

    /// DROP USER. Fails with 1396 if it does not exist.
    pub fn drop_user(&self, account: &Account) -> Result<()> {
        if self.user(account).is_none() {
            let accounts = account.to_string();
            return Err(CatalogError::CannotUser { operation: "DROP USER", accounts });
        }
        self.store_users(vec![account.clone()], Vec::new())
    }

    /// RENAME USER. Fails with 1396 if `from` does not exist or `to` does.
    pub fn rename_user(&self, from: &Account, to: Account) -> Result<()> {
        let taken = self.user(&to).is_some();
        let (Some(user), false) = (self.user(from), taken) else {
            let accounts = from.to_string();
            return Err(CatalogError::CannotUser { operation: "RENAME USER", accounts });
        };
        let renamed = UserPrivileges { account: to, ..(*user).clone() };
        self.store_users(vec![from.clone()], vec![renamed])
    }

    /// GRANT to an existing account: the privileges of a level, and those of single columns.
    /// Fails with 1141 if there is no such account.
    pub fn grant(
        &self,
        account: &Account,
        level: &GrantLevel,
        set: PrivilegeSet,
        columns: &[(String, PrivilegeSet)],
    ) -> Result<()> {
        let mut user = (*self.existing(account)?).clone();
        edit_level(&mut user, level, &mut |held| held | set);
        if let GrantLevel::Table(schema, table) = level {
            for (column, set) in columns {
                edit_column(&mut user, (schema, table, column), &mut |held| held | *set);
            }
        }
        self.store_user(user)
    }

    /// REVOKE from an existing account. Privileges on columns end with those on their table.
    /// Fails with 1141 if there is no such account, with 1147 if it has none of the privileges
    /// on a table.
    pub fn revoke(
        &self,
        account: &Account,
        level: &GrantLevel,
        set: PrivilegeSet,
        columns: &[(String, PrivilegeSet)],
    ) -> Result<()> {
        let mut user = (*self.existing(account)?).clone();
        if let GrantLevel::Table(schema, table) = level {
            let has_columns = user.columns.iter().any(|c| c.schema == *schema && c.table == *table);
            let has_table = user.tables.iter().any(|(s, t, _)| s == schema && t == table);
            let lacks = |(column, _): &(String, PrivilegeSet)| {
                user.on_column(schema, table, column).is_empty()
            };
            if !has_columns && !has_table || columns.iter().any(lacks) {
                let Account { user, host } = account.clone();
                return Err(CatalogError::NoSuchTableGrant(user, host.0, table.clone()));
            }
        }
        edit_level(&mut user, level, &mut |held| held.without(set));
        if let GrantLevel::Table(schema, table) = level {
            let mut all = user.columns.iter().map(|grant| grant.column.clone()).collect::<Vec<_>>();
            all.dedup();
            for column in &all {
                edit_column(&mut user, (schema, table, column), &mut |held| held.without(set));
            }
            for (column, set) in columns {
                edit_column(&mut user, (schema, table, column), &mut |held| held.without(*set));
            }
        }
        self.store_user(user)
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM account. Its roles go, too.
    pub fn revoke_all(&self, account: &Account) -> Result<()> {
        let user = self.existing(account)?;
        let bare = UserPrivileges::new(account.clone(), user.authentication.clone());
        let (attributes, is_role) = (user.attributes, user.is_role);
        self.store_user(UserPrivileges { attributes, is_role, ..bare })
    }

    pub(crate) fn existing(&self, account: &Account) -> Result<Arc<UserPrivileges>> {
        let missing = || CatalogError::NoSuchGrant(account.user.clone(), account.host.0.clone());
        self.user(account).ok_or_else(missing)
    }
}

type Edit<'a> = &'a mut dyn FnMut(PrivilegeSet) -> PrivilegeSet;

/// Changes what an account holds at a level.
fn edit_level(user: &mut UserPrivileges, level: &GrantLevel, edit: Edit<'_>) {
    match level {
        GrantLevel::Global => user.global = edit(user.global),
        GrantLevel::Schema(pattern) => {
            let position = user.schemas.iter().position(|(p, _)| p == pattern);
            let held = position.map_or(PrivilegeSet::NONE, |at| user.schemas.remove(at).1);
            let now = edit(held);
            if !now.is_empty() {
                user.schemas.push((pattern.clone(), now));
            }
        }
        GrantLevel::Table(schema, table) => {
            let position = user.tables.iter().position(|(s, t, _)| s == schema && t == table);
            let held = position.map_or(PrivilegeSet::NONE, |at| user.tables.remove(at).2);
            let now = edit(held);
            if !now.is_empty() {
                user.tables.push((schema.clone(), table.clone(), now));
            }
        }
    }
}

/// Changes what an account holds on a column.
fn edit_column(user: &mut UserPrivileges, column: (&str, &str, &str), edit: Edit<'_>) {
    let (schema, table, column) = column;
    let same = |grant: &ColumnGrant| {
        grant.schema == schema && grant.table == table && grant.column.eq_ignore_ascii_case(column)
    };
    let position = user.columns.iter().position(same);
    match position {
        Some(at) => {
            user.columns[at].set = edit(user.columns[at].set);
            if user.columns[at].set.is_empty() {
                user.columns.remove(at);
            }
        }
        None => {
            let set = edit(PrivilegeSet::NONE);
            if !set.is_empty() {
                let (schema, table) = (schema.to_owned(), table.to_owned());
                user.columns.push(ColumnGrant { schema, table, column: column.to_owned(), set });
            }
        }
    }
}

fn user_key(account: &Account) -> Vec<u8> {
    [b"u", account.user.as_bytes(), b"\0", account.host.0.as_bytes()].concat()
}
