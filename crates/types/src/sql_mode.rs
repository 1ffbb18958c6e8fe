//! `sql_mode` as a set of bits, with MariaDB's names and order.

use std::fmt;

/// A set of SQL modes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SqlMode(pub u64);

/// Declares the single modes in the order of their bits.
macro_rules! modes {
    ($($name:ident = $bit:literal, $text:literal;)*) => {
        impl SqlMode {
            $(
                #[doc = $text]
                pub const $name: Self = Self(1 << $bit);
            )*
        }
        const NAMES: &[(SqlMode, &str)] = &[$((SqlMode::$name, $text)),*];
    };
}

modes! {
    REAL_AS_FLOAT = 0, "REAL_AS_FLOAT";
    PIPES_AS_CONCAT = 1, "PIPES_AS_CONCAT";
    ANSI_QUOTES = 2, "ANSI_QUOTES";
    IGNORE_SPACE = 3, "IGNORE_SPACE";
    IGNORE_BAD_TABLE_OPTIONS = 4, "IGNORE_BAD_TABLE_OPTIONS";
    ONLY_FULL_GROUP_BY = 5, "ONLY_FULL_GROUP_BY";
    NO_UNSIGNED_SUBTRACTION = 6, "NO_UNSIGNED_SUBTRACTION";
    NO_DIR_IN_CREATE = 7, "NO_DIR_IN_CREATE";
    POSTGRESQL = 8, "POSTGRESQL";
    ORACLE = 9, "ORACLE";
    MSSQL = 10, "MSSQL";
    DB2 = 11, "DB2";
    MAXDB = 12, "MAXDB";
    NO_KEY_OPTIONS = 13, "NO_KEY_OPTIONS";
    NO_TABLE_OPTIONS = 14, "NO_TABLE_OPTIONS";
    NO_FIELD_OPTIONS = 15, "NO_FIELD_OPTIONS";
    MYSQL323 = 16, "MYSQL323";
    MYSQL40 = 17, "MYSQL40";
    ANSI = 18, "ANSI";
    NO_AUTO_VALUE_ON_ZERO = 19, "NO_AUTO_VALUE_ON_ZERO";
    NO_BACKSLASH_ESCAPES = 20, "NO_BACKSLASH_ESCAPES";
    STRICT_TRANS_TABLES = 21, "STRICT_TRANS_TABLES";
    STRICT_ALL_TABLES = 22, "STRICT_ALL_TABLES";
    NO_ZERO_IN_DATE = 23, "NO_ZERO_IN_DATE";
    NO_ZERO_DATE = 24, "NO_ZERO_DATE";
    ALLOW_INVALID_DATES = 25, "ALLOW_INVALID_DATES";
    ERROR_FOR_DIVISION_BY_ZERO = 26, "ERROR_FOR_DIVISION_BY_ZERO";
    TRADITIONAL = 27, "TRADITIONAL";
    NO_AUTO_CREATE_USER = 28, "NO_AUTO_CREATE_USER";
    HIGH_NOT_PRECEDENCE = 29, "HIGH_NOT_PRECEDENCE";
    NO_ENGINE_SUBSTITUTION = 30, "NO_ENGINE_SUBSTITUTION";
    PAD_CHAR_TO_FULL_LENGTH = 31, "PAD_CHAR_TO_FULL_LENGTH";
    EMPTY_STRING_IS_NULL = 32, "EMPTY_STRING_IS_NULL";
    SIMULTANEOUS_ASSIGNMENT = 33, "SIMULTANEOUS_ASSIGNMENT";
    TIME_ROUND_FRACTIONAL = 34, "TIME_ROUND_FRACTIONAL";
}

impl SqlMode {
    /// No mode set.
    pub const EMPTY: Self = Self(0);
    /// The server's default.
    pub const DEFAULT: Self = Self(
        Self::STRICT_TRANS_TABLES.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_AUTO_CREATE_USER.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    /// Whether all modes of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set with `other` added.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Strict for tables of a transactional engine.
    pub fn is_strict(self) -> bool {
        self.0 & (Self::STRICT_TRANS_TABLES.0 | Self::STRICT_ALL_TABLES.0) != 0
    }

    /// Reads a comma separated list; the offending word on failure. Names that stand for a
    /// group (ANSI, TRADITIONAL, ORACLE ...) set the group too, as the server does.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut mode = Self::EMPTY;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let upper = word.to_ascii_uppercase();
            let found = NAMES.iter().find(|(_, name)| *name == upper);
            let Some((bit, _)) = found else { return Err(word.to_string()) };
            mode = mode.with(*bit);
        }
        Ok(mode.expanded())
    }

    /// Adds what group names stand for.
    pub fn expanded(self) -> Self {
        const QUOTING: u64 =
            SqlMode::PIPES_AS_CONCAT.0 | SqlMode::ANSI_QUOTES.0 | SqlMode::IGNORE_SPACE.0;
        const NO_OPTIONS: u64 =
            SqlMode::NO_KEY_OPTIONS.0 | SqlMode::NO_TABLE_OPTIONS.0 | SqlMode::NO_FIELD_OPTIONS.0;
        let mut bits = self.0;
        if self.contains(Self::ANSI) {
            bits |= QUOTING | Self::REAL_AS_FLOAT.0;
        }
        if self.contains(Self::ORACLE) {
            bits |= QUOTING
                | NO_OPTIONS
                | Self::NO_AUTO_CREATE_USER.0
                | Self::SIMULTANEOUS_ASSIGNMENT.0;
        }
        for group in [Self::MSSQL, Self::POSTGRESQL, Self::DB2] {
            if self.contains(group) {
                bits |= QUOTING | NO_OPTIONS;
            }
        }
        if self.contains(Self::MAXDB) {
            bits |= QUOTING | NO_OPTIONS | Self::NO_AUTO_CREATE_USER.0;
        }
        for group in [Self::MYSQL40, Self::MYSQL323] {
            if self.contains(group) {
                bits |= Self::HIGH_NOT_PRECEDENCE.0;
            }
        }
        if self.contains(Self::TRADITIONAL) {
            bits |= Self::STRICT_TRANS_TABLES.0
                | Self::STRICT_ALL_TABLES.0
                | Self::NO_ZERO_IN_DATE.0
                | Self::NO_ZERO_DATE.0
                | Self::ERROR_FOR_DIVISION_BY_ZERO.0
                | Self::NO_AUTO_CREATE_USER.0
                | Self::NO_ENGINE_SUBSTITUTION.0;
        }
        Self(bits)
    }
}

impl fmt::Display for SqlMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, name) in NAMES {
            if self.contains(*bit) {
                write!(formatter, "{separator}{name}")?;
                separator = ",";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_in_server_order_and_parses_back() {
        let text = SqlMode::DEFAULT.to_string();
        assert_eq!(
            text,
            "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,\
             NO_ENGINE_SUBSTITUTION"
        );
        assert_eq!(SqlMode::parse(&text), Ok(SqlMode::DEFAULT));
        assert_eq!(SqlMode::parse("ansi_quotes,Nope"), Err("Nope".to_string()));
        assert_eq!(
            SqlMode::parse("ansi").map(|m| m.to_string()),
            Ok("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI".to_string())
        );
    }
}
