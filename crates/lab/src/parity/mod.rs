//! Whether servers that are compared are set alike, read from what is in effect.
//!
//! 1. Nothing is believed from a command line or an option file: a server that ignores an option
//!    without a word has voided comparisons before.
//! 2. Values are compared by what they mean. Names that one kind of server has and another spells
//!    otherwise, or has no longer, are one row.
//! 3. A row where durability or memory differ forbids a ratio in the headline.

mod process;
mod rules;

pub use process::Confines;

use crate::results::{ParityRow, Subject, Weight};
use crate::server::{Engine, Kind, Version};
use std::collections::BTreeMap;

/// A server as it says that it is set.
#[derive(Clone, Copy, Debug)]
pub struct Settled<'a> {
    /// `version_comment` and `version`.
    pub version: &'a str,
    /// Its global variables.
    pub variables: &'a BTreeMap<String, String>,
    /// What its process may use, if it is on this machine.
    pub confines: Option<&'a Confines>,
}

/// What a rule reads of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    /// Compared.
    means: String,
    /// Shown.
    shown: String,
}

impl Reading {
    fn new(means: impl Into<String>, shown: impl Into<String>) -> Self {
        Self { means: means.into(), shown: shown.into() }
    }

    fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { means: text.clone(), shown: text }
    }
}

/// How two readings are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// They mean the same.
    Exactly,
    /// Numbers within 3 %: servers round to units of their own.
    Nearly,
}

/// One setting.
struct Rule {
    what: &'static str,
    meaning: &'static str,
    weight: Weight,
    compared: Compared,
    read: fn(&Server<'_>) -> Option<Reading>,
    /// What should be known when values differ.
    note: &'static str,
}

/// A server as rules see it.
struct Server<'a> {
    kind: Kind,
    version: Version,
    engine: Engine,
    variables: &'a BTreeMap<String, String>,
    confines: Option<&'a Confines>,
}

impl Server<'_> {
    /// A variable, or that of the tables' engine for one of InnoDB.
    fn value(&self, name: &str) -> Option<&str> {
        self.variables.get(self.engine.variable(name)?).map(String::as_str)
    }

    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.value(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.trim().parse().ok()
    }

    fn is_on(&self, name: &str) -> Option<bool> {
        self.value(name).map(|value| matches!(value.to_ascii_uppercase().as_str(), "ON" | "1"))
    }
}

impl<'a> From<&Settled<'a>> for Server<'a> {
    fn from(settled: &Settled<'a>) -> Self {
        let kind = Kind::recognise(settled.version);
        // What a fork says of itself may hold a number before the version's.
        let version = settled.variables.get("version").map_or(settled.version, String::as_str);
        let version = Version::find(version).unwrap_or_default();
        let Settled { variables, confines, .. } = *settled;
        let engine = Engine::in_effect(variables);
        Self { kind, version, engine, variables, confines }
    }
}

/// The settings side by side; rows that no server has are left out.
pub fn table(servers: &[Settled<'_>]) -> Vec<ParityRow> {
    let servers: Vec<Server<'_>> = servers.iter().map(Server::from).collect();
    rules::all().filter_map(|rule| row(rule, &servers)).collect()
}

fn row(rule: &Rule, servers: &[Server<'_>]) -> Option<ParityRow> {
    let readings: Vec<Option<Reading>> = servers.iter().map(rule.read).collect();
    if readings.iter().all(Option::is_none) {
        return None;
    }
    let equal = readings.windows(2).all(|pair| is_equal(rule.compared, &pair[0], &pair[1]));
    Some(ParityRow {
        what: rule.what.into(),
        meaning: rule.meaning.into(),
        values: readings.into_iter().map(|reading| Some(reading?.shown)).collect(),
        weight: rule.weight,
        equal,
        note: if equal { String::new() } else { rule.note.into() },
    })
}

fn is_equal(compared: Compared, a: &Option<Reading>, b: &Option<Reading>) -> bool {
    const NEARLY: f64 = 0.03;
    let number = |reading: &Option<Reading>| reading.as_ref()?.means.parse::<f64>().ok();
    match (compared, number(a), number(b)) {
        (Compared::Nearly, Some(a), Some(b)) => (a - b).abs() <= NEARLY * a.max(b),
        _ => a.as_ref().map(|a| &a.means) == b.as_ref().map(|b| &b.means),
    }
}

/// The settings of the subjects of an experiment; with the ids of the processes that are on this
/// machine.
pub fn of(subjects: &[Subject], processes: &[Option<u32>]) -> Vec<ParityRow> {
    let none = std::iter::repeat(&None);
    let confines: Vec<Option<Confines>> = subjects
        .iter()
        .zip(processes.iter().chain(none))
        .map(|(_, id)| id.and_then(Confines::of))
        .collect();
    let settled: Vec<Settled<'_>> = subjects
        .iter()
        .zip(&confines)
        .map(|(subject, confines)| Settled {
            version: &subject.version,
            variables: &subject.variables,
            confines: confines.as_ref(),
        })
        .collect();
    table(&settled)
}

/// The rows that forbid a ratio in the headline.
pub fn forbids(rows: &[ParityRow]) -> Vec<&ParityRow> {
    rows.iter().filter(|row| row.forbids()).collect()
}

#[cfg(test)]
mod tests;
