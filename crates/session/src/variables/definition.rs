//! The registry: what is known of each variable.
//!
//! A row of `data/variables/*.tsv` has, separated by tabs: the name; the scope (G global, S
//! session and global, O session only); the type (Boolean, signed Integer, Unsigned, both in
//! small letters where MariaDB says INT instead of BIGINT, Double, Text, Name of something that
//! is listed elsewhere, Enumeration, Many of a set, Flags); the default; the smallest and the
//! largest number; the number that it is a multiple of; the words; and letters: R read only;
//! C, O or N for an option of the command line whose value must, may or cannot be written;
//! W it takes effect; K it keeps its default, as another value would promise what is not done.

use super::VariableValue;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the server.
    Global,
    /// A value per session and a global one that new sessions start with.
    Session,
    /// A value per session only.
    SessionOnly,
}

/// What a variable holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Boolean,
    /// Signed integer.
    Integer,
    /// Unsigned integer.
    Unsigned,
    /// Floating point number.
    Double,
    /// Text.
    Text,
    /// One of `Definition::words`.
    Enumeration,
    /// Some of `Definition::words`.
    Set,
    /// `word=on|off` for each of `Definition::words`.
    Flags,
}

/// One variable.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Position in the registry.
    pub index: usize,
    /// Name in lower case.
    pub name: &'static str,
    /// Scope.
    pub scope: Scope,
    /// Kind.
    pub kind: Kind,
    /// Compiled-in value.
    pub default: VariableValue,
    /// Smallest number.
    pub minimum: f64,
    /// Largest number.
    pub maximum: f64,
    /// Integers are multiples of this, if not zero.
    pub block: u64,
    /// Words of enumerations and sets.
    pub words: Vec<&'static str>,
    /// SET refuses it.
    pub read_only: bool,
    /// SET takes the default only: other values would promise what the server does not do.
    pub is_fixed: bool,
    /// It does more than being shown.
    pub has_effect: bool,
    /// Minimum, maximum and block size as the data file writes them.
    pub written_range: [&'static str; 3],
    /// MariaDB's word for the type.
    pub type_name: &'static str,
    /// Whether the option of the command line needs a value, if there is one.
    pub option_argument: Option<&'static str>,
    /// A number in the data for a variable of kind Unsigned may exceed what `f64` holds exactly:
    /// the exact largest value.
    pub maximum_exact: u64,
}

/// All variables, in order of name.
pub struct Registry {
    definitions: Vec<Definition>,
    by_name: HashMap<&'static str, usize>,
}

/// Names that mean another variable; they are not listed by SHOW.
const ALIASES: &[(&str, &str)] = &[
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
    ("replica_net_timeout", "net_read_timeout"),
];

impl Registry {
    /// A variable by name, without regard to case, `-` standing for `_`.
    pub fn find(&self, name: &str) -> Option<&Definition> {
        let name = name.to_ascii_lowercase().replace('-', "_");
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        let name = alias.map_or(name.as_str(), |(_, meant)| meant);
        self.by_name.get(name).map(|index| &self.definitions[*index])
    }

    /// All variables in order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.definitions.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.definitions.len()
    }

    /// Never: there is always the data file.
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// Position of a variable that this crate relies on.
    pub(crate) fn position(&self, name: &'static str) -> usize {
        *self.by_name.get(name).expect("a variable named in code is in the data file, see tests")
    }

    /// A variable that this crate relies on.
    pub(crate) fn known(&self, name: &'static str) -> &Definition {
        &self.definitions[self.position(name)]
    }

    fn read(texts: &[&'static str]) -> Self {
        let lines = texts.iter().flat_map(|text| text.lines());
        let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
        let mut definitions: Vec<_> = lines.map(read_line).collect();
        definitions.sort_by_key(|definition| definition.name);
        for (index, definition) in definitions.iter_mut().enumerate() {
            definition.index = index;
        }
        let by_name = definitions.iter().map(|d| (d.name, d.index)).collect();
        Self { definitions, by_name }
    }
}

fn kind_of(letter: &str) -> (Kind, &'static str) {
    match letter {
        "B" => (Kind::Boolean, "BOOLEAN"),
        "I" => (Kind::Integer, "BIGINT"),
        "i" => (Kind::Integer, "INT"),
        "U" => (Kind::Unsigned, "BIGINT UNSIGNED"),
        "u" => (Kind::Unsigned, "INT UNSIGNED"),
        "D" => (Kind::Double, "DOUBLE"),
        "E" => (Kind::Enumeration, "ENUM"),
        "M" => (Kind::Set, "SET"),
        "F" => (Kind::Flags, "FLAGSET"),
        "N" => (Kind::Text, "ENUM"),
        _ => (Kind::Text, "VARCHAR"),
    }
}

fn read_line(line: &'static str) -> Definition {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (name, scope, kind, default) = (next(), next(), next(), next());
    let (minimum, maximum, block, words, flags) = (next(), next(), next(), next(), next());
    let (kind, type_name) = kind_of(kind);
    let default = match kind {
        Kind::Boolean => VariableValue::Boolean(default == "ON"),
        Kind::Integer => VariableValue::Integer(default.parse().unwrap_or(0)),
        Kind::Unsigned => VariableValue::Unsigned(default.parse().unwrap_or(0)),
        Kind::Double => VariableValue::Double(default.parse().unwrap_or(0.0)),
        _ => VariableValue::text(default),
    };
    Definition {
        index: 0,
        name,
        scope: match scope {
            "G" => Scope::Global,
            "O" => Scope::SessionOnly,
            _ => Scope::Session,
        },
        kind,
        default,
        minimum: minimum.parse().unwrap_or(0.0),
        maximum: maximum.parse().unwrap_or(f64::MAX),
        block: block.parse().unwrap_or(0),
        words: words.split(',').filter(|word| !word.is_empty()).collect(),
        read_only: flags.contains('R'),
        is_fixed: flags.contains('K'),
        has_effect: flags.contains('W'),
        written_range: [minimum, maximum, block],
        type_name,
        option_argument: match flags.chars().find(|flag| "CON".contains(*flag)) {
            Some('C') => Some("REQUIRED"),
            Some('O') => Some("OPTIONAL"),
            Some(_) => Some("NONE"),
            None => None,
        },
        maximum_exact: maximum.parse().unwrap_or(u64::MAX),
    }
}

/// The registry of this build.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        Registry::read(&[
            include_str!("../../data/variables/connections.tsv"),
            include_str!("../../data/variables/general.tsv"),
            include_str!("../../data/variables/logs.tsv"),
            include_str!("../../data/variables/queries.tsv"),
            include_str!("../../data/variables/replication.tsv"),
            include_str!("../../data/variables/storage.tsv"),
        ])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_well_formed() {
        let registry = registry();
        assert!(registry.len() > 550);
        for definition in registry.iter() {
            assert_eq!(registry.find(definition.name).map(|d| d.index), Some(definition.index));
            assert!(
                definition
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            );
            if definition.kind == Kind::Enumeration {
                let default = definition.default.show();
                assert!(
                    definition.words.contains(&default.as_str()),
                    "{}: {default}",
                    definition.name
                );
            }
        }
        assert!(registry.iter().is_sorted_by_key(|d| d.name));
    }

    #[test]
    fn exactly_one_variable_matches_what_tpcc_asks() {
        let matching: Vec<_> = registry()
            .iter()
            .filter(|d| d.name.starts_with('t') && d.name.ends_with("_isolation"))
            .map(|d| d.name)
            .collect();
        assert_eq!(matching, ["tx_isolation"]);
        assert_eq!(registry().find("Transaction-Isolation").unwrap().name, "tx_isolation");
    }
}
