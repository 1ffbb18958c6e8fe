//! Roles: accounts that nobody logs in as, and whose privileges others can enable.
//!
//! 1. A role has a name and the empty host. It can have roles itself; there are no rings.
//! 2. What a session may do is what its account holds, what the role that it has enabled holds
//!    with all roles of that, and what PUBLIC holds. The sum is made once for an account and a
//!    role, and kept until an account changes: sessions of one account share it, and with it
//!    their plans.

use crate::{Account, Catalog, CatalogError, Result, RoleGrant, UserPrivileges};
use std::collections::HashMap;
use std::sync::Arc;

/// Sums of privileges by account and enabled role.
pub(crate) type EnabledRoles = HashMap<(Account, Option<String>), Arc<UserPrivileges>>;

/// The role that everybody has.
pub const PUBLIC: &str = "PUBLIC";

/// The name of a role as it is known: PUBLIC in any case.
pub fn role_name(catalog: &Catalog, name: &str) -> Option<String> {
    if name.eq_ignore_ascii_case(PUBLIC) {
        return Some(PUBLIC.to_owned());
    }
    catalog.role(name).map(|_| name.to_owned())
}

fn role_account(name: &str) -> Account {
    Account::new(name, "")
}

impl Catalog {
    /// A role by its name.
    pub fn role(&self, name: &str) -> Option<Arc<UserPrivileges>> {
        self.user(&role_account(name)).filter(|found| found.is_role)
    }

    /// What a session of the account may do with a role enabled; none without the account.
    pub fn enabled(&self, account: &Account, role: Option<&str>) -> Option<Arc<UserPrivileges>> {
        let user = self.user(account)?;
        let public = self.role(PUBLIC);
        if role.is_none() && public.is_none() {
            return Some(user);
        }
        let key = (account.clone(), role.map(str::to_owned));
        if let Some(known) = self.enabled.lock().get(&key) {
            return Some(known.clone());
        }
        // Who changes an account forgets the sums while holding this lock for writing.
        let users = self.users.read();
        let mut sum = (**users.get(account)?).clone();
        let mut names = self.closure(&users, role.into_iter().map(str::to_owned).collect());
        names.push(PUBLIC.to_owned());
        for name in names {
            if let Some(held) = users.get(&role_account(&name)) {
                sum.absorb(held);
            }
        }
        let sum = Arc::new(sum);
        self.enabled.lock().insert(key, sum.clone());
        Some(sum)
    }

    /// The names and everything that they have as roles, in the order in which it is found.
    fn closure(&self, users: &crate::accounts::Accounts, first: Vec<String>) -> Vec<String> {
        let mut names = first;
        let mut next = 0;
        while next < names.len() {
            if let Some(role) = users.get(&role_account(&names[next])) {
                for grant in &role.roles {
                    if !names.contains(&grant.role) {
                        names.push(grant.role.clone());
                    }
                }
            }
            next += 1;
        }
        names
    }

    /// A role and all that it has.
    pub fn roles_below(&self, role: &str) -> Vec<String> {
        let users = self.users.read();
        self.closure(&users, vec![role.to_owned()])
    }

    /// Every role that an account can enable.
    pub fn applicable_roles(&self, account: &Account) -> Vec<String> {
        let users = self.users.read();
        let own = users.get(account).map(|user| user.roles.iter().map(|g| g.role.clone()));
        self.closure(&users, own.into_iter().flatten().collect())
    }

    /// CREATE ROLE; `admin` may give it to others. Fails with 1396 if there is one.
    pub fn create_role(&self, name: &str, admin: Option<&Account>) -> Result<()> {
        let failed =
            || CatalogError::CannotUser { operation: "CREATE ROLE", accounts: format!("'{name}'") };
        if self.user(&role_account(name)).is_some() {
            return Err(failed());
        }
        let mut kept = vec![UserPrivileges::new_role(name)];
        if let Some(admin) = admin {
            let mut admin = (*self.existing(admin)?).clone();
            admin.roles.push(RoleGrant { role: name.to_owned(), admin: true });
            kept.push(admin);
        }
        self.store_users(Vec::new(), kept)
    }

    /// DROP ROLE: everybody loses it. Fails with 1396 if there is none.
    pub fn drop_role(&self, name: &str) -> Result<()> {
        if self.role(name).is_none() {
            let accounts = format!("'{name}'");
            return Err(CatalogError::CannotUser { operation: "DROP ROLE", accounts });
        }
        let users = self.users();
        let holders = users.iter().filter(|user| user.roles.iter().any(|grant| grant.role == name));
        let without = holders.map(|user| {
            let mut user = (**user).clone();
            user.roles.retain(|grant| grant.role != name);
            user
        });
        let without = without.collect();
        self.store_users(vec![role_account(name)], without)
    }

    /// GRANT role TO account. Fails with 1959 if there is no such role, with 1961 if the account
    /// would have itself or does not exist.
    pub fn grant_role(&self, role: &str, to: &Account, admin: bool) -> Result<()> {
        if self.role(role).is_none() {
            return Err(CatalogError::InvalidRole(role.to_owned()));
        }
        let refused = || {
            let to = if to.host.0.is_empty() { format!("'{}'", to.user) } else { to.to_string() };
            CatalogError::CannotGrantRole(role.to_owned(), to)
        };
        let user = self.user(to).ok_or(CatalogError::NoSuchUser)?;
        if user.is_role && self.roles_below(role).contains(&to.user) {
            return Err(refused());
        }
        let mut user = (*user).clone();
        match user.roles.iter_mut().find(|grant| grant.role == role) {
            Some(grant) => grant.admin |= admin,
            None => user.roles.push(RoleGrant { role: role.to_owned(), admin }),
        }
        self.store_user(user)
    }

    /// REVOKE [ADMIN OPTION FOR] role FROM account. Fails with 1962 if it does not have it.
    pub fn revoke_role(&self, role: &str, from: &Account, only_admin: bool) -> Result<()> {
        let refused = || {
            let whom = &from.user;
            let is_role = from.host.0.is_empty();
            let from = if is_role { format!("'{whom}'") } else { from.to_string() };
            CatalogError::CannotRevokeRole(role.to_owned(), from)
        };
        let user = self.user(from).ok_or_else(refused)?;
        let mut user = (*user).clone();
        let at = user.roles.iter().position(|grant| grant.role == role).ok_or_else(refused)?;
        match only_admin {
            true => user.roles[at].admin = false,
            false => drop(user.roles.remove(at)),
        }
        self.store_user(user)
    }

    /// SET DEFAULT ROLE.
    pub fn set_default_role(&self, account: &Account, role: Option<&str>) -> Result<()> {
        let mut user = (*self.existing(account)?).clone();
        user.default_role = role.map(str::to_owned);
        self.store_user(user)
    }
}
