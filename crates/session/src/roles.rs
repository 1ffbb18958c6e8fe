//! CREATE ROLE, DROP ROLE, GRANT and REVOKE of roles, SET ROLE, SET DEFAULT ROLE.

use crate::Session;
use crate::accounts::cannot;
use catalog::{Account, CatalogError, Privilege};
use syntax::ast::{AccountName, CreateRole, DropRole, Grant, Revoke};
use types::{SqlError, Warning, codes};

type Done = Result<(), SqlError>;

fn invalid(role: &str) -> SqlError {
    CatalogError::InvalidRole(role.to_owned()).into()
}

impl Session {
    /// CREATE ROLE.
    pub(crate) fn create_roles(&mut self, create: &CreateRole) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let admin = match &create.admin {
            None => self.user.account.clone(),
            Some(name) => self.account(name),
        };
        let mut failed = Vec::new();
        for role in &create.roles {
            if role.eq_ignore_ascii_case(catalog::PUBLIC) || role.eq_ignore_ascii_case("NONE") {
                return Err(invalid(&role.to_ascii_uppercase()));
            }
            let exists = self.server.catalog.role(role).is_some();
            match (exists, create.or_replace, create.if_not_exists) {
                (true, true, _) => {
                    self.server.catalog.drop_role(role)?;
                    self.server.catalog.create_role(role, Some(&admin))?;
                }
                (true, false, true) => {
                    self.user_note(1975, format!("Can't create role '{role}'; it already exists"));
                }
                (true, false, false) => failed.push(format!("'{role}'")),
                (false, ..) => self.server.catalog.create_role(role, Some(&admin))?,
            }
        }
        cannot("CREATE ROLE", failed)
    }

    /// DROP ROLE.
    pub(crate) fn drop_roles(&mut self, drop: &DropRole) -> Done {
        self.require_global(Privilege::CreateUser)?;
        let mut failed = Vec::new();
        for role in &drop.roles {
            match self.server.catalog.drop_role(role) {
                Err(CatalogError::CannotUser { .. }) if drop.if_exists => {
                    self.user_note(1976, format!("Can't drop role '{role}'; it doesn't exist"));
                }
                Err(CatalogError::CannotUser { .. }) => failed.push(format!("'{role}'")),
                other => other?,
            }
        }
        cannot("DROP ROLE", failed)
    }

    /// Who gives or takes a role must have it WITH ADMIN OPTION, himself or by his role (1698).
    fn check_may_give(&self, role: &str) -> Done {
        if self.server.catalog.role(role).is_none() {
            return Err(invalid(role));
        }
        let catalog = &self.server.catalog;
        let own = catalog.user(&self.user.account);
        let below = self.role.iter().flat_map(|role| catalog.roles_below(role));
        let enabled = below.filter_map(|name| catalog.role(&name));
        let mut holders = own.into_iter().chain(enabled);
        if holders.any(|held| held.roles.iter().any(|grant| grant.role == role && grant.admin)) {
            return Ok(());
        }
        let account = &self.user.account;
        let arguments: [&dyn std::fmt::Display; 2] = [&account.user, &account.host.0];
        Err(SqlError::new(&codes::ACCESS_DENIED_NO_PASSWORD_ERROR, &arguments))
    }

    /// GRANT role TO account.
    pub(crate) fn grant_roles(&mut self, grant: &Grant) -> Done {
        for role in &grant.privileges {
            self.check_may_give(&role.name)?;
            for user in &grant.users {
                let to = self.account(&user.account);
                let given = self.server.catalog.grant_role(&role.name, &to, grant.grant_option);
                if matches!(given, Err(CatalogError::NoSuchUser)) {
                    self.tell_no_such_user(&role.name, &to);
                }
                given?;
            }
        }
        Ok(())
    }

    /// The errors of a GRANT to nobody: the second says what it was about.
    fn tell_no_such_user(&self, role: &str, to: &Account) {
        let about = CatalogError::CannotGrantRole(role.to_owned(), to.to_string());
        for error in [CatalogError::NoSuchUser, about] {
            self.eval.push_warning(Warning::from(&SqlError::from(error)));
        }
    }

    /// REVOKE role FROM account.
    pub(crate) fn revoke_roles(&mut self, revoke: &Revoke) -> Done {
        for role in &revoke.privileges {
            self.check_may_give(&role.name)?;
            for user in &revoke.users {
                let from = self.account(user);
                self.server.catalog.revoke_role(&role.name, &from, revoke.admin_option)?;
            }
        }
        Ok(())
    }

    /// Whether the account has the role itself: only then it can be enabled.
    fn has_role(&self, account: &Account, role: &str) -> bool {
        let user = self.server.catalog.user(account);
        user.is_some_and(|user| user.roles.iter().any(|grant| grant.role == role))
    }

    /// Fails with 1959 unless the account can enable the role. Who can know of the role is told
    /// that it was not granted to `whom`.
    fn check_has_role(&self, account: &Account, role: &str, whom: (&str, &str)) -> Done {
        if self.server.catalog.role(role).is_none() {
            return Err(invalid(role));
        }
        if self.has_role(account, role) {
            return Ok(());
        }
        let knows = self.user.on_schema("mysql").has(Privilege::Select)
            || self.server.catalog.applicable_roles(account).iter().any(|known| known == role);
        if !knows {
            return Err(invalid(role));
        }
        let (user, host) = (whom.0.to_owned(), whom.1.to_owned());
        Err(CatalogError::RoleNotGranted(user, host, role.to_owned()).into())
    }

    /// SET ROLE. Fails with 1959.
    pub(crate) fn set_role(&mut self, role: Option<&str>) -> Done {
        if let Some(role) = role {
            let account = &self.user.account;
            self.check_has_role(account, role, (&account.user, &self.identity.host))?;
        }
        self.role = role.map(str::to_owned);
        self.eval.facts.current_role.clone_from(&self.role);
        self.take_privileges();
        Ok(())
    }

    /// The default role of an account that has just logged in, if it still has it.
    pub(crate) fn enable_default_role(&mut self) {
        let role = self.user.default_role.clone();
        let role = role.filter(|role| self.has_role(&self.user.account, role));
        self.role = role.filter(|role| self.server.catalog.role(role).is_some());
        self.eval.facts.current_role.clone_from(&self.role);
        self.take_privileges();
    }

    /// SET DEFAULT ROLE; for others with UPDATE on the database `mysql`.
    pub(crate) fn set_default_role(
        &mut self,
        role: Option<&str>,
        of: Option<&AccountName>,
    ) -> Done {
        let account = of.map_or(self.user.account.clone(), |name| self.account(name));
        if account != self.user.account && !self.user.on_schema("mysql").has(Privilege::Update) {
            let own = &self.user.account;
            let arguments: [&dyn std::fmt::Display; 3] = [&own.user, &own.host.0, &"mysql"];
            return Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments));
        }
        if let Some(role) = role {
            self.check_has_role(&account, role, (&account.user, &account.host.0))?;
        }
        Ok(self.server.catalog.set_default_role(&account, role)?)
    }
}
