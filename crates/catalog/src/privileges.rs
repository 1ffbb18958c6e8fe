//! Privileges as a bit set, with MariaDB's names.

use std::fmt;
use std::ops::BitOr;

macro_rules! privileges {
    ($($variant:ident = $bit:literal, $name:literal, $levels:literal, $doc:literal;)*) => {
        /// One privilege. The numbers are those of the dictionary and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Privilege {
            $(#[doc = $doc] $variant = $bit,)*
        }

        impl Privilege {
            /// Every privilege in SHOW GRANTS' order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Name as GRANT and SHOW GRANTS write it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Levels at which it can be granted: 1 global, 2 database, 4 table (a sum).
            pub fn levels(self) -> u8 {
                match self { $(Self::$variant => $levels,)* }
            }
        }
    };
}

privileges! {
    Select = 0, "SELECT", 7, "Read rows.";
    Insert = 1, "INSERT", 7, "Insert rows.";
    Update = 2, "UPDATE", 7, "Change rows.";
    Delete = 3, "DELETE", 7, "Delete rows.";
    Create = 4, "CREATE", 7, "Create databases and tables.";
    Drop = 5, "DROP", 7, "Drop databases and tables.";
    Reload = 6, "RELOAD", 1, "FLUSH.";
    Shutdown = 7, "SHUTDOWN", 1, "SHUTDOWN.";
    Process = 8, "PROCESS", 1, "See other users' sessions.";
    File = 9, "FILE", 1, "Read and write files of the server.";
    References = 10, "REFERENCES", 7, "Create foreign keys.";
    Index = 11, "INDEX", 7, "Create and drop indexes.";
    Alter = 12, "ALTER", 7, "Change tables.";
    ShowDatabases = 13, "SHOW DATABASES", 1, "See all databases.";
    Super = 14, "SUPER", 1, "Administration; uses the reserved connection slot.";
    CreateTemporaryTables = 15, "CREATE TEMPORARY TABLES", 3, "Create temporary tables.";
    LockTables = 16, "LOCK TABLES", 3, "LOCK TABLES.";
    ReplicationSlave = 17, "REPLICATION SLAVE", 1, "Read the binary log.";
    BinlogMonitor = 18, "BINLOG MONITOR", 1, "See the state of the binary log.";
    Execute = 19, "EXECUTE", 3, "Call routines.";
    CreateView = 20, "CREATE VIEW", 7, "Create views.";
    ShowView = 21, "SHOW VIEW", 7, "See view definitions.";
    CreateRoutine = 22, "CREATE ROUTINE", 3, "Create routines.";
    AlterRoutine = 23, "ALTER ROUTINE", 3, "Change and drop routines.";
    CreateUser = 24, "CREATE USER", 1, "Create, change and drop accounts.";
    Event = 25, "EVENT", 3, "Create events.";
    Trigger = 26, "TRIGGER", 7, "Create triggers.";
    CreateTablespace = 27, "CREATE TABLESPACE", 1, "Accepted.";
    DeleteHistory = 28, "DELETE HISTORY", 7, "Accepted.";
    SetUser = 29, "SET USER", 1, "Accepted.";
    FederatedAdmin = 30, "FEDERATED ADMIN", 1, "Accepted.";
    ConnectionAdmin = 31, "CONNECTION ADMIN", 1, "Kill other users' sessions.";
    ReadOnlyAdmin = 32, "READ_ONLY ADMIN", 1, "Write while read_only is on.";
    ReplicationSlaveAdmin = 33, "REPLICATION SLAVE ADMIN", 1, "Accepted.";
    ReplicationMasterAdmin = 34, "REPLICATION MASTER ADMIN", 1, "Accepted.";
    BinlogAdmin = 35, "BINLOG ADMIN", 1, "Accepted.";
    BinlogReplay = 36, "BINLOG REPLAY", 1, "Accepted.";
    SlaveMonitor = 37, "SLAVE MONITOR", 1, "Accepted.";
    GrantOption = 63, "GRANT OPTION", 7, "Give one's privileges to others.";
}

impl Privilege {
    /// The privilege that GRANT calls `name`, without regard to case; synonyms included.
    pub fn parse(name: &str) -> Option<Self> {
        let name = match name.to_ascii_uppercase().as_str() {
            "REPLICATION CLIENT" => "BINLOG MONITOR".to_owned(),
            "REPLICATION REPLICA" => "REPLICATION SLAVE".to_owned(),
            other => other.to_owned(),
        };
        Self::ALL.iter().copied().find(|p| p.name() == name)
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PrivilegeSet(u64);

impl PrivilegeSet {
    /// None (USAGE).
    pub const NONE: Self = Self(0);

    /// Everything that ALL PRIVILEGES means at `level` (1 global, 2 database, 4 table), without
    /// GRANT OPTION.
    pub fn all_at(level: u8) -> Self {
        Privilege::ALL
            .iter()
            .filter(|p| p.levels() & level != 0 && **p != Privilege::GrantOption)
            .fold(Self::NONE, |set, p| set.with(*p))
    }

    /// From the dictionary's number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The dictionary's number: bit `Privilege as u8` of each.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// With one more.
    #[must_use]
    pub fn with(self, privilege: Privilege) -> Self {
        Self(self.0 | 1 << privilege as u8)
    }

    /// Without those of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Holds `privilege`.
    pub fn has(self, privilege: Privilege) -> bool {
        self.0 & (1 << privilege as u8) != 0
    }

    /// Holds all of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Holds nothing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The commands that messages name when these are missing: `INSERT, CREATE`.
    pub fn commands(self) -> String {
        let name = |privilege: Privilege| match privilege {
            Privilege::GrantOption => "GRANT",
            other => other.name(),
        };
        self.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Members in SHOW GRANTS' order.
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.iter().copied().filter(move |p| self.has(*p))
    }
}

impl From<Privilege> for PrivilegeSet {
    fn from(privilege: Privilege) -> Self {
        Self::NONE.with(privilege)
    }
}

impl BitOr for PrivilegeSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for PrivilegeSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for privilege in Privilege::ALL {
            assert_eq!(Privilege::parse(&privilege.name().to_lowercase()), Some(*privilege));
        }
        assert_eq!(Privilege::parse("FLY"), None);
    }

    #[test]
    fn all_at_table_level_has_no_global_privileges() {
        let table = PrivilegeSet::all_at(4);
        assert!(table.has(Privilege::Select) && !table.has(Privilege::Super));
        assert!(!table.has(Privilege::GrantOption));
        assert!(PrivilegeSet::all_at(1).contains(table));
    }
}
