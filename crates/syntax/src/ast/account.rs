//! Accounts, roles and privileges.

use super::TableName;

/// `'user'@'host'`, CURRENT_USER, or a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AccountName {
    /// User; empty with `current`.
    pub user: String,
    /// Host; none when not written (then `%`).
    pub host: Option<String>,
    /// CURRENT_USER.
    pub current: bool,
    /// CURRENT_ROLE.
    pub current_role: bool,
}

/// CREATE USER, ALTER USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateUser {
    /// OR REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS (CREATE), IF EXISTS (ALTER).
    pub if_clause: bool,
    /// Users.
    pub users: Vec<UserSpecification>,
    /// REQUIRE, WITH limits, ACCOUNT LOCK, PASSWORD EXPIRE, as written.
    pub options: Vec<String>,
}

/// A user with how it logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserSpecification {
    /// Who.
    pub account: AccountName,
    /// Authentication; none leaves it (ALTER, GRANT) or means no password (CREATE).
    pub authentication: Option<AuthenticationClause>,
}

/// IDENTIFIED ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthenticationClause {
    /// BY 'clear'.
    Password(Vec<u8>),
    /// BY PASSWORD '*hash'.
    PasswordHash(Vec<u8>),
    /// VIA plugin, WITH plugin.
    Plugin {
        /// Plugin.
        name: String,
        /// USING or AS 'hash'.
        hash: Option<Vec<u8>>,
        /// USING PASSWORD('clear'), WITH plugin BY 'clear'.
        password: Option<Vec<u8>>,
        /// OR further plugins, as written.
        alternatives: Option<String>,
    },
}

/// DROP USER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropUser {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Whom.
    pub accounts: Vec<AccountName>,
}

/// CREATE ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRole {
    /// OR REPLACE.
    pub or_replace: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Names.
    pub roles: Vec<String>,
    /// WITH ADMIN; none is the current user.
    pub admin: Option<AccountName>,
}

/// DROP ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropRole {
    /// IF EXISTS.
    pub if_exists: bool,
    /// Names.
    pub roles: Vec<String>,
}

/// On what a privilege is granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantLevel {
    /// `*.*`.
    Global,
    /// `schema.*`; none is `*`, the session's database.
    Schema(Option<String>),
    /// A table.
    Table(TableName),
    /// FUNCTION, PROCEDURE, PACKAGE: the word and the name.
    Routine(String, TableName),
}

/// One privilege.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivilegeName {
    /// Words in capitals: `SELECT`, `ALL PRIVILEGES`, `CREATE TEMPORARY TABLES`, ...
    pub name: String,
    /// Columns.
    pub columns: Vec<String>,
}

/// GRANT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Privileges; roles when `level` is none.
    pub privileges: Vec<PrivilegeName>,
    /// ON; none for a grant of roles.
    pub level: Option<GrantLevel>,
    /// TO.
    pub users: Vec<UserSpecification>,
    /// WITH GRANT OPTION, WITH ADMIN OPTION.
    pub grant_option: bool,
    /// REQUIRE and WITH limits, as written.
    pub options: Vec<String>,
}

/// REVOKE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoke {
    /// Privileges; roles when `level` is none and `all` is false.
    pub privileges: Vec<PrivilegeName>,
    /// ALL PRIVILEGES, GRANT OPTION FROM.
    pub all: bool,
    /// ADMIN OPTION FOR, of roles.
    pub admin_option: bool,
    /// ON.
    pub level: Option<GrantLevel>,
    /// FROM.
    pub users: Vec<AccountName>,
}
