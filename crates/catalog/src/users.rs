//! Accounts: who may log in from where, and what they may do.

use crate::{Privilege, PrivilegeSet};
use std::fmt;

/// Host part of an account: an address or name, with `%` (anything) and `_` (one character).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPattern(pub String);

impl HostPattern {
    /// Matches one of the names a client is known by.
    pub fn matches(&self, host: &str) -> bool {
        if let Some((network, mask)) = self.0.split_once('/') {
            return in_network(network, mask, host);
        }
        like(self.0.to_ascii_lowercase().as_bytes(), host.to_ascii_lowercase().as_bytes())
    }

    /// Order in which accounts are tried: without wildcards first, then the
    /// longer fixed beginning first.
    fn specificity(&self) -> usize {
        self.0.bytes().position(|b| b == b'%' || b == b'_').unwrap_or(usize::MAX)
    }
}

/// `192.168.1.0/255.255.255.0`: the address without the bits that the mask leaves free.
fn in_network(network: &str, mask: &str, host: &str) -> bool {
    let address = |text: &str| text.parse::<std::net::Ipv4Addr>().ok().map(u32::from);
    match (address(network), address(mask), address(host)) {
        (Some(network), Some(mask), Some(host)) => host & mask == network,
        _ => false,
    }
}

/// `%` and `_` matching with `\` as escape, on bytes.
pub(crate) fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_percent: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'%') => {
                last_percent = Some((p, t));
                p += 1;
                continue;
            }
            Some(b'_') => Some(1),
            Some(b'\\') if pattern.get(p + 1) == Some(&text[t]) => Some(2),
            Some(byte) if *byte == text[t] => Some(1),
            _ => None,
        };
        match (step, last_percent) {
            (Some(width), _) => {
                p += width;
                t += 1;
            }
            (None, Some((percent, from))) => {
                last_percent = Some((percent, from + 1));
                p = percent + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|byte| *byte == b'%')
}

/// `'user'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// User name, compared byte by byte.
    pub user: String,
    /// Where from.
    pub host: HostPattern,
}

impl Account {
    /// From its two parts.
    pub fn new(user: &str, host: &str) -> Self {
        Self { user: user.to_owned(), host: HostPattern(host.to_owned()) }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "'{}'@'{}'", self.user, self.host.0)
    }
}

/// How an account proves itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// mysql_native_password without a password: for root only from the loopback and the
    /// socket.
    NoPassword,
    /// mysql_native_password: SHA1(SHA1(password)).
    NativePassword([u8; 20]),
    /// Cannot log in; ACCOUNT LOCK of format 1, which forgot the password.
    Locked,
    /// caching_sha2_password: `$A$005$`, salt and hash; empty without a password.
    CachingSha2(String),
    /// ed25519: the public key of the password.
    Ed25519([u8; 32]),
}

/// What a client's connection must be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRequirement {
    /// REQUIRE NONE.
    #[default]
    Nothing,
    /// REQUIRE SSL.
    Tls,
    /// REQUIRE X509: a certificate of the client's that `ssl_ca` vouches for.
    Certificate,
}

/// Limits of an account; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// MAX_QUERIES_PER_HOUR.
    pub queries_per_hour: u32,
    /// MAX_UPDATES_PER_HOUR.
    pub updates_per_hour: u32,
    /// MAX_CONNECTIONS_PER_HOUR.
    pub connections_per_hour: u32,
    /// MAX_USER_CONNECTIONS; a negative one permits none.
    pub user_connections: i32,
    /// MAX_STATEMENT_TIME, microseconds.
    pub statement_micros: u64,
}

/// How long a password is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PasswordLifetime {
    /// `default_password_lifetime`.
    #[default]
    Default,
    /// PASSWORD EXPIRE NEVER.
    Never,
    /// PASSWORD EXPIRE INTERVAL so many DAY.
    Days(u16),
}

/// What an account has beside its way to log in and its privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountAttributes {
    /// ACCOUNT LOCK.
    pub locked: bool,
    /// REQUIRE.
    pub tls: TlsRequirement,
    /// WITH.
    pub limits: AccountLimits,
    /// PASSWORD EXPIRE: nothing but SET PASSWORD is allowed.
    pub expired: bool,
    /// PASSWORD EXPIRE INTERVAL.
    pub lifetime: PasswordLifetime,
    /// When the password was set, microseconds since 1970; 0 if that is not known.
    pub password_set_micros: i64,
}

/// Privileges on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnGrant {
    /// Database.
    pub schema: String,
    /// Table or view.
    pub table: String,
    /// Column, compared without regard to case.
    pub column: String,
    /// SELECT, INSERT, UPDATE, REFERENCES.
    pub set: PrivilegeSet,
}

/// A role that an account or a role has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// Name of the role.
    pub role: String,
    /// May give it to others.
    pub admin: bool,
}

impl Authentication {
    /// From the `*` and 40 hexadecimal digits that PASSWORD() gives; empty is no password.
    pub fn from_hash_text(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::NoPassword);
        }
        let digits = text.strip_prefix('*').filter(|d| d.len() == 40 && d.is_ascii())?;
        let mut hash = [0; 20];
        for (position, byte) in hash.iter_mut().enumerate() {
            let pair = &digits[position * 2..position * 2 + 2];
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self::NativePassword(hash))
    }

    /// What SHOW CREATE USER and mysql.user show.
    pub fn hash_text(&self) -> String {
        match self {
            Self::NativePassword(hash) => {
                let mut text = String::from("*");
                hash.iter().for_each(|byte| text.push_str(&format!("{byte:02X}")));
                text
            }
            Self::CachingSha2(hash) => hash.clone(),
            Self::NoPassword | Self::Locked | Self::Ed25519(_) => String::new(),
        }
    }
}

/// An account with its authentication and privileges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPrivileges {
    /// Who.
    pub account: Account,
    /// How it logs in.
    pub authentication: Authentication,
    /// Granted ON *.*.
    pub global: PrivilegeSet,
    /// Granted ON `pattern`.*, in order of granting.
    pub schemas: Vec<(String, PrivilegeSet)>,
    /// Granted ON `schema`.`table`.
    pub tables: Vec<(String, String, PrivilegeSet)>,
    /// Granted on single columns.
    pub columns: Vec<ColumnGrant>,
    /// It is a role: nobody logs in as it. The host of its account is empty.
    pub is_role: bool,
    /// Roles that it has, in order of granting.
    pub roles: Vec<RoleGrant>,
    /// SET DEFAULT ROLE.
    pub default_role: Option<String>,
    /// Lock, limits, TLS.
    pub attributes: AccountAttributes,
}

impl UserPrivileges {
    /// An account with no privileges.
    pub fn new(account: Account, authentication: Authentication) -> Self {
        Self {
            account,
            authentication,
            global: PrivilegeSet::NONE,
            schemas: Vec::new(),
            tables: Vec::new(),
            columns: Vec::new(),
            is_role: false,
            roles: Vec::new(),
            default_role: None,
            attributes: AccountAttributes::default(),
        }
    }

    /// A role with no privileges.
    pub fn new_role(name: &str) -> Self {
        let account = Account::new(name, "");
        Self { is_role: true, ..Self::new(account, Authentication::NoPassword) }
    }

    /// Takes over all privileges of another, as an enabled role's.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.global = self.global | other.global;
        self.schemas.extend(other.schemas.iter().cloned());
        self.tables.extend(other.tables.iter().cloned());
        self.columns.extend(other.columns.iter().cloned());
    }

    fn columns_of(&self, schema: &str, table: &str) -> impl Iterator<Item = &ColumnGrant> {
        self.columns.iter().filter(move |grant| grant.schema == schema && grant.table == table)
    }

    /// Holds `privilege` on some column of the table, if not on all of it.
    pub fn may_some_column(&self, privilege: Privilege, schema: &str, table: &str) -> bool {
        self.columns_of(schema, table).any(|grant| grant.set.has(privilege))
    }

    /// May do `privilege` on a column, by a grant on it or on the table.
    pub fn may_column(
        &self,
        privilege: Privilege,
        schema: &str,
        table: &str,
        column: &str,
    ) -> bool {
        self.may(privilege, schema, table) || self.on_column(schema, table, column).has(privilege)
    }

    /// What is held on a column alone.
    pub fn on_column(&self, schema: &str, table: &str, column: &str) -> PrivilegeSet {
        let own = self.columns_of(schema, table);
        let own = own.filter(|grant| grant.column.eq_ignore_ascii_case(column));
        own.fold(PrivilegeSet::NONE, |set, grant| set | grant.set)
    }

    /// Everything held on all tables of a schema.
    pub fn on_schema(&self, schema: &str) -> PrivilegeSet {
        let mut set = self.global;
        for (pattern, privileges) in &self.schemas {
            if like(pattern.as_bytes(), schema.as_bytes()) {
                set = set | *privileges;
            }
        }
        set
    }

    /// Everything held on one table.
    pub fn on_table(&self, schema: &str, table: &str) -> PrivilegeSet {
        let mut set = self.on_schema(schema);
        for (table_schema, table_name, privileges) in &self.tables {
            if table_schema == schema && table_name == table {
                set = set | *privileges;
            }
        }
        set
    }

    /// May do `privilege` on a table. Reading information_schema is free to all.
    pub fn may(&self, privilege: Privilege, schema: &str, table: &str) -> bool {
        self.global.has(privilege) || self.on_table(schema, table).has(privilege)
    }

    /// Those of `wanted` that are not held on the table, and on none of its columns.
    pub fn missing(&self, wanted: PrivilegeSet, schema: &str, table: &str) -> PrivilegeSet {
        if self.global.contains(wanted) {
            return PrivilegeSet::NONE;
        }
        let of_columns = self.columns_of(schema, table);
        let held = of_columns.fold(self.on_table(schema, table), |held, grant| held | grant.set);
        wanted.without(held)
    }

    /// May know that the schema exists: holds anything on it or in it, or SHOW DATABASES.
    pub fn sees_schema(&self, schema: &str) -> bool {
        self.global.has(Privilege::ShowDatabases)
            || !self.on_schema(schema).is_empty()
            || self.tables.iter().any(|(s, _, set)| s == schema && !set.is_empty())
            || self.columns.iter().any(|grant| grant.schema == schema)
    }

    /// May know that the table exists.
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        !self.on_table(schema, table).is_empty() || self.columns_of(schema, table).next().is_some()
    }

    pub(crate) fn matches_host(&self, hosts: &[&str]) -> bool {
        hosts.iter().any(|host| self.account.host.matches(host))
    }

    /// Order in which accounts are tried: by host, then those with a name before the anonymous.
    pub(crate) fn specificity(&self) -> (usize, bool) {
        (self.account.host.specificity(), !self.account.user.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_matches_as_grants_do() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("%", "anything", true),
            ("192.168.%", "192.168.0.7", true),
            ("192.168.%", "192.169.0.7", false),
            ("a_c", "abc", true),
            ("a\\_c", "abc", false),
            ("a\\_c", "a_c", true),
            ("%b%d", "abcbd", true),
            ("%b%d", "abcbde", false),
            ("", "", true),
            ("", "x", false),
            ("abc%", "ab", false),
        ] {
            assert_eq!(like(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn privileges_add_up_from_the_levels() {
        let mut user = UserPrivileges::new(Account::new("a", "%"), Authentication::NoPassword);
        user.global = PrivilegeSet::NONE.with(Privilege::Insert);
        user.schemas.push(("s%".to_owned(), PrivilegeSet::NONE.with(Privilege::Select)));
        user.tables.push((
            "x".to_owned(),
            "t".to_owned(),
            PrivilegeSet::NONE.with(Privilege::Delete),
        ));
        assert!(user.may(Privilege::Select, "shop", "t"));
        assert!(!user.may(Privilege::Select, "x", "t"));
        assert!(user.may(Privilege::Delete, "x", "t"));
        assert!(!user.may(Privilege::Delete, "x", "u"));
        assert!(user.may(Privilege::Insert, "anywhere", "t"));
    }

    #[test]
    fn a_privilege_on_a_column_is_not_one_on_the_table() {
        let mut user = UserPrivileges::new(Account::new("a", "%"), Authentication::NoPassword);
        user.columns.push(ColumnGrant {
            schema: "s".to_owned(),
            table: "t".to_owned(),
            column: "c".to_owned(),
            set: PrivilegeSet::NONE.with(Privilege::Select),
        });
        assert!(!user.may(Privilege::Select, "s", "t"));
        assert!(user.may_some_column(Privilege::Select, "s", "t"));
        assert!(user.may_column(Privilege::Select, "s", "t", "C"));
        assert!(!user.may_column(Privilege::Update, "s", "t", "c"));
        assert!(!user.may_column(Privilege::Select, "s", "t", "d"));
        assert!(user.sees_table("s", "t") && user.sees_schema("s"));
        assert!(!user.sees_table("s", "u"));
    }

    #[test]
    fn hosts_may_be_networks() {
        let pattern = HostPattern("192.168.1.0/255.255.255.0".to_owned());
        assert!(pattern.matches("192.168.1.77"));
        assert!(!pattern.matches("192.168.2.77") && !pattern.matches("localhost"));
    }

    #[test]
    fn password_hashes_are_read_as_written() {
        let text = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
        let parsed = Authentication::from_hash_text(text).unwrap();
        assert_eq!(parsed.hash_text(), text);
        assert_eq!(Authentication::from_hash_text("*12"), None);
        assert_eq!(Authentication::from_hash_text(""), Some(Authentication::NoPassword));
    }
}
