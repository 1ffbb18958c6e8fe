//! The registry: what is known of each variable.

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

    fn read(text: &'static str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let definitions: Vec<_> =
            lines.enumerate().map(|(index, line)| read_line(index, line)).collect();
        let by_name = definitions.iter().map(|d| (d.name, d.index)).collect();
        Self { definitions, by_name }
    }
}

fn read_line(index: usize, line: &'static str) -> Definition {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (name, scope, kind, default) = (next(), next(), next(), next());
    let (minimum, maximum, block, words, flags) = (next(), next(), next(), next(), next());
    let kind = match kind {
        "B" => Kind::Boolean,
        "I" => Kind::Integer,
        "U" => Kind::Unsigned,
        "D" => Kind::Double,
        "E" => Kind::Enumeration,
        "M" => Kind::Set,
        "F" => Kind::Flags,
        _ => Kind::Text,
    };
    let default = match kind {
        Kind::Boolean => VariableValue::Boolean(default == "ON"),
        Kind::Integer => VariableValue::Integer(default.parse().unwrap_or(0)),
        Kind::Unsigned => VariableValue::Unsigned(default.parse().unwrap_or(0)),
        Kind::Double => VariableValue::Double(default.parse().unwrap_or(0.0)),
        _ => VariableValue::text(default),
    };
    Definition {
        index,
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
        maximum_exact: maximum.parse().unwrap_or(u64::MAX),
    }
}

/// The registry of this build.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| Registry::read(include_str!("../../data/variables.tsv")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_is_well_formed() {
        let registry = registry();
        assert!(registry.len() > 400);
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
