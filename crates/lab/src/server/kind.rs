//! Kinds of servers, and how to tell them apart.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Gannet.
    Gannet,
    /// MariaDB.
    Mariadb,
    /// MySQL, and what is built on it.
    Mysql,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Gannet, Kind::Mariadb, Kind::Mysql];

    /// As it is written in a description.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Gannet => "gannet",
            Kind::Mariadb => "mariadb",
            Kind::Mysql => "mysql",
        }
    }

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Gannet => "Gannet",
            Kind::Mariadb => "MariaDB",
            Kind::Mysql => "MySQL",
        }
    }

    /// What a text says that a server or its program tells of itself: `version_comment` and
    /// `version`, or the answer to `--version`.
    pub fn recognise(text: &str) -> Kind {
        let text = text.to_ascii_lowercase();
        match () {
            () if text.contains("gannet") => Kind::Gannet,
            () if text.contains("mariadb") => Kind::Mariadb,
            () => Kind::Mysql,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.word() == text);
        found.ok_or_else(|| format!("'{text}': there are gannet, mariadb and mysql"))
    }
}

/// Major, minor, patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first version number in a text, other than the `5.5.5-` that MariaDB puts before its
    /// own for old clients.
    pub fn find(text: &str) -> Option<Self> {
        let text = text.replace("5.5.5-10.", "10.").replace("5.5.5-11.", "11.");
        let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        words.filter_map(Self::of_word).next()
    }

    fn of_word(word: &str) -> Option<Self> {
        let mut parts = word.trim_matches('.').split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self(major, minor, parts.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_apart_by_what_they_say() {
        let cases = [
            ("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu", Kind::Mariadb),
            ("mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)", Kind::Mysql),
            ("gannet 0.1.0", Kind::Gannet),
            ("Gannet 11.4.0-MariaDB-gannet-0.1.0", Kind::Gannet),
            ("Percona Server (GPL), Release 29, Revision 1 8.0.37-29", Kind::Mysql),
        ];
        for (text, kind) in cases {
            assert_eq!(Kind::recognise(text), kind, "{text}");
        }
        assert!("postgresql".parse::<Kind>().is_err());
    }

    #[test]
    fn versions_are_found() {
        let found = |text| Version::find(text).expect(text);
        assert_eq!(found("Ver 10.11.19-MariaDB-0+deb12u1"), Version(10, 11, 19));
        assert_eq!(found("5.5.5-10.4.2-MariaDB"), Version(10, 4, 2));
        assert_eq!(found("mysqld  Ver 8.4.3 for Linux"), Version(8, 4, 3));
        assert_eq!(found("gannet 0.1"), Version(0, 1, 0));
        assert_eq!(Version::find("no number 7 of three"), None);
        assert!(Version(10, 4, 99) < Version(10, 5, 0));
    }
}
