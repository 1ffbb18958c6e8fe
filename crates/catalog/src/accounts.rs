//! Creating, changing and finding accounts.

use crate::{
    Account, AccountAttributes, Authentication, Catalog, CatalogError, Privilege, PrivilegeSet,
    Result, UserPrivileges,
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

    fn store_user(&self, user: UserPrivileges) -> Result<()> {
        let mut trx = self.begin();
        self.engine().dictionary_put(&mut *trx, &user_key(&user.account), &user.encode())?;
        trx.commit()?;
        let mut users = self.users.write();
        users.insert(user.account.clone(), Arc::new(user));
        drop(users);
        self.changed();
        Ok(())
    }

    /// All accounts in order.
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
        let candidates = users.values().filter(|candidate| named(&candidate.account.user));
        let matching = candidates.filter(|candidate| candidate.matches_host(hosts));
        matching.max_by_key(|candidate| candidate.specificity()).cloned()
    }

    /// CREATE USER. Fails with 1396 if it exists.
    pub fn create_user(&self, user: UserPrivileges) -> Result<()> {
        if self.user(&user.account).is_some() {
            let accounts = user.account.to_string();
            return Err(CatalogError::CannotUser { operation: "CREATE USER", accounts });
        }
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
        changed.authentication = authentication.unwrap_or(changed.authentication);
        edit(&mut changed.attributes);
        self.store_user(changed)
    }

    /// DROP USER. Fails with 1396 if it does not exist.
    pub fn drop_user(&self, account: &Account) -> Result<()> {
        if self.user(account).is_none() {
            let accounts = account.to_string();
            return Err(CatalogError::CannotUser { operation: "DROP USER", accounts });
        }
        let mut trx = self.begin();
        self.engine().dictionary_delete(&mut *trx, &user_key(account))?;
        trx.commit()?;
        self.users.write().remove(account);
        self.changed();
        Ok(())
    }

    /// RENAME USER. Fails with 1396 if `from` does not exist or `to` does.
    pub fn rename_user(&self, from: &Account, to: Account) -> Result<()> {
        let taken = self.user(&to).is_some();
        let (Some(user), false) = (self.user(from), taken) else {
            let accounts = from.to_string();
            return Err(CatalogError::CannotUser { operation: "RENAME USER", accounts });
        };
        let renamed = UserPrivileges { account: to, ..(*user).clone() };
        let mut trx = self.begin();
        self.engine().dictionary_delete(&mut *trx, &user_key(from))?;
        let (key, record) = (user_key(&renamed.account), renamed.encode());
        self.engine().dictionary_put(&mut *trx, &key, &record)?;
        trx.commit()?;
        let mut users = self.users.write();
        users.remove(from);
        users.insert(renamed.account.clone(), Arc::new(renamed));
        drop(users);
        self.changed();
        Ok(())
    }

    /// GRANT to an existing account. Fails with 1141 if there is none.
    pub fn grant(&self, account: &Account, level: &GrantLevel, set: PrivilegeSet) -> Result<()> {
        self.edit_privileges(account, level, &mut |held| held | set)
    }

    /// REVOKE from an existing account. Fails with 1141 if there is none.
    pub fn revoke(&self, account: &Account, level: &GrantLevel, set: PrivilegeSet) -> Result<()> {
        self.edit_privileges(account, level, &mut |held| held.without(set))
    }

    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM account.
    pub fn revoke_all(&self, account: &Account) -> Result<()> {
        let user = self.existing(account)?;
        let bare = UserPrivileges::new(account.clone(), user.authentication.clone());
        self.store_user(UserPrivileges { attributes: user.attributes, ..bare })
    }

    fn existing(&self, account: &Account) -> Result<Arc<UserPrivileges>> {
        let missing = || CatalogError::NoSuchGrant(account.user.clone(), account.host.0.clone());
        self.user(account).ok_or_else(missing)
    }

    fn edit_privileges(
        &self,
        account: &Account,
        level: &GrantLevel,
        edit: &mut dyn FnMut(PrivilegeSet) -> PrivilegeSet,
    ) -> Result<()> {
        let mut user = (*self.existing(account)?).clone();
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
        self.store_user(user)
    }
}

fn user_key(account: &Account) -> Vec<u8> {
    [b"u", account.user.as_bytes(), b"\0", account.host.0.as_bytes()].concat()
}
