//! What servers are told, once for all kinds of them.

use super::engine::Engine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A number of bytes, written as a number or with K, M, G or T behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Word", into = "String")]
pub struct Size(pub u64);

impl Size {
    /// Reads `512M`, `1G`, `4096`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no size; a number with K, M, G or T is wanted");
        let text = text.trim();
        let upper = text.to_ascii_uppercase();
        let short = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, shift) = match short.chars().last().ok_or_else(wrong)? {
            'K' => (&short[..short.len() - 1], 10),
            'M' => (&short[..short.len() - 1], 20),
            'G' => (&short[..short.len() - 1], 30),
            'T' => (&short[..short.len() - 1], 40),
            _ => (short, 0),
        };
        let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(wrong)
    }

    /// Bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
        let fits = |shift: u32| self.0 != 0 && self.0.is_multiple_of(1u64 << shift);
        match units.into_iter().find(|(shift, _)| fits(*shift)) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

impl TryFrom<Word> for Size {
    type Error = String;

    fn try_from(word: Word) -> Result<Self, String> {
        Size::parse(&word.0)
    }
}

/// A value of a variable; numbers and truth values need no quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "String")]
pub struct Word(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl From<Written> for Word {
    fn from(written: Written) -> Self {
        Word(match written {
            Written::Flag(flag) => if flag { "ON" } else { "OFF" }.to_string(),
            Written::Number(number) => number.to_string(),
            Written::Text(text) => text,
        })
    }
}

impl From<Word> for String {
    fn from(word: Word) -> String {
        word.0
    }
}

/// Variables by name.
pub type Variables = BTreeMap<String, Word>;

/// Isolation of transactions that ask for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// What others have not committed is seen.
    ReadUncommitted,
    /// Each statement sees what is committed at its begin.
    ReadCommitted,
    /// Each transaction sees what is committed at its first read.
    #[default]
    RepeatableRead,
    /// As if one after the other.
    Serializable,
}

impl Isolation {
    /// As options and variables spell it.
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "READ-UNCOMMITTED",
            Isolation::ReadCommitted => "READ-COMMITTED",
            Isolation::RepeatableRead => "REPEATABLE-READ",
            Isolation::Serializable => "SERIALIZABLE",
        }
    }
}

/// How the pages of the workload's tables lie on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As the server does when a table says nothing: Gannet by LZ4, the others not at all.
    #[default]
    Default,
    /// As they are.
    None,
    /// Each page compressed by itself, with a hole behind it.
    Page,
    /// `ROW_FORMAT=COMPRESSED`.
    Row,
}

/// How connections get threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threads {
    /// As the server does by default.
    #[default]
    Default,
    /// One each.
    PerConnection,
    /// A few for all.
    Pool,
}

/// The one description of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Leave everything as the server has it by default; only what is needed to reach it is set,
    /// and `variables` are.
    pub defaults: bool,
    /// Memory for pages.
    pub memory: Size,
    /// What a commit waits for: 1 for the device, 2 for the operating system, 0 for nothing.
    pub durability: u8,
    /// Bytes of log before pages must be written.
    pub log_capacity: Size,
    /// Isolation.
    pub isolation: Isolation,
    /// Whether a transaction of repeatable reads is told that a row which it changes has been
    /// changed since (`innodb_snapshot_isolation`, where there is that variable).
    pub snapshot_isolation: bool,
    /// Character set of databases and tables.
    pub character_set: String,
    /// Collation; the general one of the character set if absent.
    pub collation: Option<String>,
    /// `sql_mode`.
    pub sql_mode: String,
    /// Pages are written twice, where a page that was written by half cannot be mended otherwise.
    pub doublewrite: bool,
    /// The binary log, and with it its own write at every commit.
    pub binlog: bool,
    /// Pages go past the cache of the operating system.
    pub direct_io: bool,
    /// Storage engine of the tables; MyRocks needs a subject of its own, of kind MariaDB.
    pub engine: Engine,
    /// Compression of the tables.
    pub compression: Compression,
    /// zlib, lz4, lzo, lzma, bzip2, snappy or zstd; the server's own choice if absent.
    pub compression_algorithm: Option<String>,
    /// Connections at most.
    pub max_connections: u32,
    /// TLS is offered.
    pub tls: bool,
    /// How connections get threads.
    pub threads: Threads,
    /// `performance_schema`.
    pub performance_schema: bool,
    /// Further variables, for servers of every kind.
    pub variables: Variables,
    /// Further variables for Gannet.
    pub gannet: Variables,
    /// Further variables for MariaDB.
    pub mariadb: Variables,
    /// Further variables for MySQL.
    pub mysql: Variables,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            defaults: false,
            memory: Size(512 << 20),
            durability: 1,
            log_capacity: Size(512 << 20),
            isolation: Isolation::default(),
            snapshot_isolation: true,
            character_set: "utf8mb4".into(),
            collation: None,
            sql_mode: "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
                .into(),
            doublewrite: true,
            binlog: false,
            direct_io: true,
            engine: Engine::default(),
            compression: Compression::Default,
            compression_algorithm: None,
            max_connections: 5000,
            tls: false,
            threads: Threads::Default,
            performance_schema: false,
            variables: Variables::new(),
            gannet: Variables::new(),
            mariadb: Variables::new(),
            mysql: Variables::new(),
        }
    }
}

/// Algorithms that some server knows.
const ALGORITHMS: [&str; 7] = ["zlib", "lz4", "lzo", "lzma", "bzip2", "snappy", "zstd"];

impl Settings {
    /// The collation of databases and tables.
    pub fn collation(&self) -> String {
        match (&self.collation, self.character_set.as_str()) {
            (Some(collation), _) => collation.clone(),
            (None, "latin1") => "latin1_swedish_ci".into(),
            (None, "binary") => "binary".into(),
            (None, set) => format!("{set}_general_ci"),
        }
    }

    /// What no server of any kind can keep.
    pub fn check(&self) -> Result<(), String> {
        if self.durability > 2 {
            return Err(format!("durability {}: 0, 1 or 2 is wanted", self.durability));
        }
        if self.memory.bytes() < 5 << 20 {
            return Err(format!("memory {}: at least 5M is wanted", self.memory));
        }
        if self.log_capacity.bytes() < 8 << 20 {
            return Err(format!("log_capacity {}: at least 8M is wanted", self.log_capacity));
        }
        match &self.compression_algorithm {
            Some(name) if !ALGORITHMS.contains(&name.as_str()) => {
                Err(format!("compression_algorithm '{name}': there are {}", ALGORITHMS.join(", ")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [("512M", 512 << 20), ("1g", 1 << 30), ("4096", 4096), ("8KiB", 8192)]
        {
            assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "M", "1.5G", "-1", "99999999999T", "ten"] {
            assert!(Size::parse(text).is_err(), "{text}");
        }
        assert_eq!(Size(3 << 29).to_string(), "1536M");
        assert_eq!(Size(4097).to_string(), "4097");
    }

    #[test]
    fn settings_are_read_and_written_alike() {
        let text = r#"{"memory": "1G", "log_capacity": 67108864, "durability": 2,
            "isolation": "read-committed", "compression": "page", "compression_algorithm": "lz4",
            "variables": {"innodb_io_capacity": 2000, "innodb_flush_sync": false, "x": "y"}}"#;
        let settings: Settings = serde_json::from_str(text).expect("valid");
        assert_eq!((settings.memory, settings.log_capacity), (Size(1 << 30), Size(64 << 20)));
        assert_eq!(settings.isolation, Isolation::ReadCommitted);
        let words: Vec<&str> = settings.variables.values().map(|word| word.0.as_str()).collect();
        assert_eq!(words, ["OFF", "2000", "y"]);
        let again = serde_json::to_string(&settings).expect("texts and numbers");
        assert_eq!(serde_json::from_str::<Settings>(&again).expect("its own"), settings);
        assert!(settings.check().is_ok());
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_word_of_help() {
        let error = serde_json::from_str::<Settings>(r#"{"memroy": "1G"}"#).expect_err("a slip");
        assert!(error.to_string().contains("memroy"), "{error}");
        let error = serde_json::from_str::<Settings>(r#"{"memory": "much"}"#).expect_err("words");
        assert!(error.to_string().contains("no size"), "{error}");
        let wrong = [
            Settings { durability: 3, ..Settings::default() },
            Settings { memory: Size(1), ..Settings::default() },
            Settings { log_capacity: Size(1), ..Settings::default() },
            Settings { compression_algorithm: Some("rar".into()), ..Settings::default() },
        ];
        assert!(wrong.iter().all(|settings| settings.check().is_err()));
    }
}
