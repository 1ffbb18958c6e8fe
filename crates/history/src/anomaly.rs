//! Kinds of anomalies, and which level forbids which.

use std::collections::BTreeMap;
use std::fmt;

/// Examples kept of each kind.
const EXAMPLES_MAX: usize = 5;

/// What can be wrong with a history, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A read shows what nobody wrote.
    Garbage,
    /// A list has an element twice.
    Duplicate,
    /// Two reads of an object contradict each other about the order of its versions.
    IncompatibleOrder,
    /// What a committed transaction wrote is missing from a read that began later.
    LostWrite,
    /// A transaction does not see its own write.
    Internal,
    /// A cycle of write-write dependencies (dirty write).
    G0,
    /// A read of what an aborted transaction wrote.
    G1a,
    /// A read of what its writer overwrote later.
    G1b,
    /// A cycle of write-write and write-read dependencies.
    G1c,
    /// A read does not show a transaction that had ended before the reader began.
    StaleRead,
    /// Two reads of an object in a transaction differ by what others wrote.
    NonRepeatableRead,
    /// Two committed transactions replaced the same version.
    LostUpdate,
    /// A cycle with one read-write dependency (read skew).
    GSingle,
    /// A cycle with several read-write dependencies, no two of them in a row (long fork).
    GNonadjacent,
    /// A cycle with read-write dependencies in a row (write skew).
    G2Item,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Garbage => "garbage",
            Self::Duplicate => "duplicate",
            Self::IncompatibleOrder => "incompatible-order",
            Self::LostWrite => "lost-write",
            Self::Internal => "internal",
            Self::G0 => "G0",
            Self::G1a => "G1a",
            Self::G1b => "G1b",
            Self::G1c => "G1c",
            Self::StaleRead => "stale-read",
            Self::NonRepeatableRead => "non-repeatable-read",
            Self::LostUpdate => "lost-update",
            Self::GSingle => "G-single",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2Item => "G2-item",
        })
    }
}

/// Levels of isolation as MySQL names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Dirty reads are allowed.
    ReadUncommitted,
    /// Each statement sees what is committed.
    ReadCommitted,
    /// REPEATABLE READ without `innodb_snapshot_isolation`: reads are repeatable, but a write sees
    /// newer versions than they did.
    RepeatableReadLegacy,
    /// REPEATABLE READ as snapshot isolation.
    SnapshotIsolation,
    /// Everything is as if one after the other.
    Serializable,
}

impl Level {
    /// Whether it must not happen at this level.
    pub fn forbids(self, anomaly: Anomaly) -> bool {
        let least = match anomaly {
            Anomaly::Garbage
            | Anomaly::Duplicate
            | Anomaly::IncompatibleOrder
            | Anomaly::LostWrite
            | Anomaly::Internal
            | Anomaly::G0 => Self::ReadUncommitted,
            Anomaly::G1a | Anomaly::G1b | Anomaly::G1c | Anomaly::StaleRead => Self::ReadCommitted,
            Anomaly::NonRepeatableRead
            | Anomaly::LostUpdate
            | Anomaly::GSingle
            | Anomaly::GNonadjacent => Self::SnapshotIsolation,
            Anomaly::G2Item => Self::Serializable,
        };
        self as u8 >= least as u8
    }
}

/// One anomaly, told with the transactions that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub anomaly: Anomaly,
    /// What was seen.
    pub text: String,
}

/// All anomalies of a history: how many of each kind, and a few of them told.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    kinds: BTreeMap<Anomaly, (usize, Vec<Finding>)>,
}

impl Findings {
    pub(crate) fn add(&mut self, anomaly: Anomaly, text: impl FnOnce() -> String) {
        let (count, examples) = self.kinds.entry(anomaly).or_default();
        *count += 1;
        if examples.len() < EXAMPLES_MAX {
            examples.push(Finding { anomaly, text: text() });
        }
    }

    /// How many of each kind, the worst kind first.
    pub fn counts(&self) -> impl Iterator<Item = (Anomaly, usize)> {
        self.kinds.iter().map(|(&anomaly, (count, _))| (anomaly, *count))
    }

    /// Examples of what the level forbids, the worst kind first.
    pub fn forbidden_at(&self, level: Level) -> impl Iterator<Item = &Finding> {
        let all = self.kinds.values().flat_map(|(_, examples)| examples);
        all.filter(move |finding| level.forbids(finding.anomaly))
    }
}
