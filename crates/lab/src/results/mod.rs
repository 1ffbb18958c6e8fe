//! What was found, as it is kept: `run.json` of a folder of results.
//!
//! 1. Everything that a report shows is computed from an [`Experiment`], so that it can be made
//!    again from its `run.json`, and compared with others.
//! 2. What could not be measured is absent, never 0.
//! 3. Times of a run are seconds since its measured time began; what was before is negative.

mod combine;
mod cost;
mod run;

pub use combine::combined;
pub use cost::{Cost, Limit};
pub use run::{
    DeviceProbe, Event, Finding, Operation, Phase, PhaseKind, Point, Run, Second, Statements, Step,
};

use crate::account::SpaceAt;
use crate::workload::Violation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of this form; a reader refuses others.
pub const SCHEMA: u32 = 2;

/// The file of a folder of results that everything else can be made from.
pub const RUN_JSON: &str = "run.json";

/// All runs of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// The words of the command line.
    pub command: Vec<String>,
    /// The description it was run from, if there was one: a text in TOML.
    #[serde(default)]
    pub spec: Option<String>,
    /// The workload with its parameters.
    pub workload: String,
    /// Decided everything random.
    pub seed: u64,
    /// When it began, microseconds since 1970, UTC.
    #[serde(default)]
    pub began_micros: i64,
    /// The machine: kernel, processors, memory.
    pub machine: BTreeMap<String, String>,
    /// Why it ended before everything was run; what is here was measured before.
    #[serde(default)]
    pub ended: Option<String>,
    /// What a reader must know before any figure.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// The servers, in the order of their letters. Ratios are against the first.
    pub subjects: Vec<Subject>,
    /// Settings in effect, side by side.
    #[serde(default)]
    pub parity: Vec<ParityRow>,
    /// The runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// A sentence above all figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// Whether figures say nothing because of it, or less than they seem to.
    pub is_grave: bool,
}

/// A server under test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Subject {
    /// How it is called in the report.
    pub name: String,
    /// How it was started, if the lab did.
    #[serde(default)]
    pub origin: Option<Origin>,
    /// What it calls itself.
    pub version: String,
    /// Its effective variables.
    pub variables: BTreeMap<String, String>,
    /// How its tables were filled, if the lab did.
    #[serde(default)]
    pub load: Option<Loaded>,
    /// What its data took, at named moments.
    #[serde(default)]
    pub spaces: Vec<SpaceAt>,
    /// What its data break after the runs; absent if nobody looked.
    pub violations: Option<Vec<Broken>>,
}

/// How a server was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// gannet, mariadb or mysql.
    pub kind: String,
    /// The program and its arguments.
    pub command_line: Vec<String>,
    /// What is particular about its tables, such as a compression; empty for nothing.
    pub variant: String,
}

/// A load of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// How long it took, indexes included.
    pub seconds: f64,
    /// Rows inserted.
    pub rows: u64,
    /// Bytes of the statements that inserted them.
    pub bytes: u64,
}

/// A setting of all servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParityRow {
    /// What is set.
    pub what: String,
    /// What it decides; empty where the name says it.
    #[serde(default)]
    pub meaning: String,
    /// The value of each subject; absent where it has no such setting.
    pub values: Vec<Option<String>>,
    /// How much depends on it.
    pub weight: Weight,
    /// Whether the values mean the same.
    pub equal: bool,
    /// What a reader should know about it; empty for nothing.
    #[serde(default)]
    pub note: String,
}

/// How much depends on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Weight {
    /// What survives a loss of power: unequal, a comparison says nothing.
    Durability,
    /// Memory of the server: unequal, a comparison says nothing.
    Memory,
    /// What statements do or cost.
    Behaviour,
    /// Nothing but what a reader may want to know.
    Information,
}

impl ParityRow {
    /// Whether it voids a comparison.
    pub fn forbids(&self) -> bool {
        !self.equal && matches!(self.weight, Weight::Durability | Weight::Memory)
    }
}

/// A rule that data break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// What should hold.
    pub rule: String,
    /// How many rows break it.
    pub rows: u64,
}

impl From<&Violation> for Broken {
    fn from(violation: &Violation) -> Self {
        Self { rule: violation.rule.clone(), rows: violation.rows }
    }
}

/// The part of [`Experiment`] that every version has.
#[derive(Deserialize)]
struct Versioned {
    schema: u32,
}

impl Experiment {
    /// Reads what was kept; refuses what another version wrote.
    pub fn read(text: &str) -> Result<Self, String> {
        let versioned: Versioned = serde_json::from_str(text)
            .map_err(|error| format!("no results of gannet-lab: {error}"))?;
        if versioned.schema != SCHEMA {
            return Err(format!(
                "its schema is {}, this gannet-lab reads {SCHEMA}: use the gannet-lab that wrote \
                 it, or run the experiment again",
                versioned.schema
            ));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Reads `run.json` of a folder, or the file itself; the error names it.
    pub fn read_from(place: &Path) -> Result<Self, String> {
        let file = if place.is_dir() { place.join(RUN_JSON) } else { place.to_path_buf() };
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}; a folder of results is wanted", show(&file)))?;
        Self::read(&text).map_err(|error| format!("{}: {error}", show(&file)))
    }

    /// As it is kept: without the passwords of DSNs.
    pub fn json(&self) -> String {
        let command = self.command.iter().map(|word| without_passwords(word)).collect();
        let spec = self.spec.as_deref().map(without_passwords);
        let kept = Self { command, spec, ..self.clone() };
        let mut text = serde_json::to_string(&kept).expect("numbers and texts only");
        text.push('\n');
        text
    }

    /// The steps, in the order in which they first ran.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for run in &self.runs {
            if !steps.contains(&run.step()) {
                steps.push(run.step());
            }
        }
        steps
    }

    /// The runs of a subject with a step.
    pub fn cell(&self, subject: usize, step: Step) -> Vec<&Run> {
        let wanted = |run: &&Run| run.subject == subject && run.step() == step;
        self.runs.iter().filter(wanted).collect()
    }
}

/// A text with stars in place of the passwords of DSNs in it.
pub fn without_passwords(text: &str) -> String {
    let mut pieces = text.split("://");
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        out.push_str("://");
        let end = piece.find(|c: char| c.is_whitespace() || c == '/' || c == '"');
        let (place, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let account = place.rsplit_once('@').and_then(|(account, host)| {
            let (user, _password) = account.split_once(':')?;
            Some(format!("{user}:***@{host}"))
        });
        out.push_str(account.as_deref().unwrap_or(place));
        out.push_str(rest);
    }
    out
}

fn show(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_kept() {
        let wanted = [
            ("A=mysql://u:p@ss@h:1/d", "A=mysql://u:***@h:1/d"),
            ("dsn = \"mysql://u:p@h/d\"\nx = 1", "dsn = \"mysql://u:***@h/d\"\nx = 1"),
            ("mysql://u@h:3306/d", "mysql://u@h:3306/d"),
            ("--rate=5", "--rate=5"),
        ];
        for (text, shown) in wanted {
            assert_eq!(without_passwords(text), shown);
        }
    }

    #[test]
    fn another_schema_is_refused_with_what_to_do() {
        let error = Experiment::read("{\"schema\":1,\"servers\":[]}").expect_err("old");
        assert!(error.contains("schema is 1") && error.contains("reads 2"), "{error}");
        let error = Experiment::read("{\"rows\":1}").expect_err("something else");
        assert!(error.contains("no results of gannet-lab"), "{error}");
        let error = Experiment::read_from(Path::new("/nowhere")).expect_err("not there");
        assert!(error.contains("/nowhere"), "{error}");
    }
}
