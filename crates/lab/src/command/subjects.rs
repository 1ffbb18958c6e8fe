//! The servers of a description.

use super::dsn;
use super::spec::{SERVER, SUBJECT, lay_over, unknown};
use crate::client::Target;
use crate::experiment::Subject;
use crate::server::{self, Description, Engine, Kind, MYROCKS};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::{Table, Value};

/// A server as it is described.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Described {
    name: String,
    place: Place,
    table_options: String,
    optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Dsn(String),
    Started(Box<Description>),
}

/// Keys of a subject that are no part of what a started server is.
const OWN: [&str; 4] = ["name", "dsn", "table_options", "optional"];
const STARTED: [&str; 8] =
    ["kind", "program", "data", "port", "cpus", "user", "password", "settings"];

/// Reads [[subject]]; [server] are settings of all that are started.
pub(super) fn read(table: &Table) -> Result<Vec<Described>, String> {
    let shared = table.get(SERVER).and_then(Value::as_table).cloned().unwrap_or_default();
    let subjects = table.get(SUBJECT).and_then(Value::as_array).cloned().unwrap_or_default();
    let found: Result<Vec<Described>, String> =
        subjects.iter().filter_map(Value::as_table).map(|one| subject(one, &shared)).collect();
    let found = found?;
    if found.is_empty() {
        return Err("no server: name one with --dsn or --start, or as [[subject]]".into());
    }
    for (number, one) in found.iter().enumerate() {
        if found[..number].iter().any(|other| other.name == one.name) {
            return Err(format!("two subjects are called '{}': give them names", one.name));
        }
    }
    Ok(found)
}

fn subject(table: &Table, shared: &Table) -> Result<Described, String> {
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_string);
    let known = OWN.iter().chain(&STARTED).copied();
    if let Some(key) = table.keys().find(|key| !known.clone().any(|known| known == *key)) {
        return Err(unknown("[[subject]]", key, known));
    }
    let (name, kind) = (text("name"), text("kind"));
    let table_options = text("table_options").unwrap_or_default();
    let optional = table.get("optional").and_then(Value::as_bool).unwrap_or(false);
    let (name, place) = match (text("dsn"), kind) {
        (Some(dsn), None) => {
            // Named by its place, without its password.
            let place = dsn.rsplit_once('@').map_or(dsn.as_str(), |(_, place)| place);
            let place = place.split(['/', '?']).next().unwrap_or(place);
            (name.unwrap_or_else(|| place.to_string()), Place::Dsn(dsn))
        }
        (None, Some(kind)) => {
            let name = name.unwrap_or(kind);
            let mut described = table.clone();
            OWN.iter().for_each(|key| drop(described.remove(*key)));
            let mut settings = shared.clone();
            if let Some(Value::Table(own)) = described.remove("settings") {
                lay_over(&mut settings, own);
            }
            described.insert("settings".into(), Value::Table(settings));
            let description = Description::deserialize(Value::Table(described))
                .map_err(|error| format!("subject '{name}': {}", error.to_string().trim()))?;
            (name, Place::Started(Box::new(description)))
        }
        _ => return Err("a [[subject]] needs either a dsn or a kind".into()),
    };
    Ok(Described { name, place, table_options, optional })
}

/// The subjects that the command line names, as a description has them.
pub(super) fn on_command_line(dsn: &[String], start: &[String]) -> Result<Vec<Value>, String> {
    let text = |(key, value): &(&str, &str)| (key.to_string(), Value::String(value.to_string()));
    let table = |pairs: &[(&str, &str)]| -> Table { pairs.iter().map(text).collect() };
    let mut found = Vec::new();
    for text in dsn {
        match text.split_once("=mysql://") {
            Some((name, rest)) => {
                found.push(table(&[("name", name), ("dsn", &format!("mysql://{rest}"))]));
            }
            None => found.push(table(&[("dsn", text)])),
        }
    }
    for text in start {
        let (name, rest) = text.split_once('=').unwrap_or(("", text));
        let (kind, program) = rest.split_once(':').unwrap_or((rest, ""));
        let kinds = ["gannet", "mariadb", MYROCKS, "mysql"];
        if !kinds.contains(&kind) {
            return Err(format!("--start {text}: '{kind}' is none of {}", kinds.join(", ")));
        }
        let name = if name.is_empty() { kind } else { name };
        let is_myrocks = kind == MYROCKS;
        let kind = if is_myrocks { Kind::Mariadb.word() } else { kind };
        let mut one = table(&[("name", name), ("kind", kind)]);
        if !program.is_empty() {
            one.insert("program".into(), program.into());
        }
        if is_myrocks {
            let settings = table(&[("engine", Engine::Rocksdb.word())]);
            one.insert("settings".into(), settings.into());
        }
        found.push(one);
    }
    Ok(found.into_iter().map(Value::Table).collect())
}

/// The servers of a description that run already; those that the lab would start are left out.
pub(super) fn running(table: &Table) -> Result<Vec<Subject>, String> {
    let mut found = Vec::new();
    for one in read(table)? {
        if let Place::Dsn(text) = &one.place {
            let mut subject = Subject::running(&one.name, dsn::parse(text)?);
            subject.table_options = one.table_options.clone();
            found.push(subject);
        }
    }
    match found.is_empty() {
        true => Err("no server that runs: name one with --dsn (servers that the lab starts are \
                     loaded and verified by `run`)"
            .into()),
        false => Ok(found),
    }
}

/// The servers of a description as they run; those that the lab started end with it.
#[derive(Default)]
pub(super) struct Running {
    described: Vec<Described>,
    subjects: Vec<Subject>,
    /// What is to be known of them: those that were left out, what they cannot keep.
    pub(super) notes: Vec<String>,
}

impl Running {
    /// Starts what is described, unless just that runs already.
    pub(super) fn start(
        &mut self,
        wanted: &[Described],
        results: &Path,
        tell: &dyn Fn(&str),
    ) -> Result<&[Subject], String> {
        if self.described == wanted {
            return Ok(&self.subjects);
        }
        self.stop()?;
        for one in wanted {
            match &one.place {
                Place::Dsn(text) => {
                    let target: Target = dsn::parse(text)?;
                    let mut subject = Subject::running(&one.name, target);
                    subject.table_options = one.table_options.clone();
                    self.subjects.push(subject);
                }
                Place::Started(description) => {
                    if let (true, Err(why)) = (one.optional, server::is_available(description)) {
                        self.notes.push(format!("{} is left out: {why}", one.name));
                        continue;
                    }
                    tell(&format!("starting {}", one.name));
                    let started = server::start(description, &folder(&one.name), results)
                        .map_err(|why| format!("{} does not start: {why}", one.name))?;
                    let notes = started.notes().iter();
                    self.notes.extend(notes.map(|note| format!("{}: {note}", one.name)));
                    let mut subject = Subject::started(&one.name, Arc::new(Ours(started)));
                    let both = [&subject.table_options, &one.table_options];
                    let said = both.iter().filter(|text| !text.is_empty());
                    subject.table_options =
                        said.map(|text| text.as_str()).collect::<Vec<_>>().join(" ");
                    self.subjects.push(subject);
                }
            }
        }
        if self.subjects.is_empty() {
            return Err(format!("none of the servers is here: {}", self.notes.join("; ")));
        }
        self.described = wanted.to_vec();
        Ok(&self.subjects)
    }

    /// Ends what was started, in order.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.described.clear();
        self.notes.clear();
        let mut outcome = Ok(());
        for subject in self.subjects.drain(..) {
            let Some(process) = subject.process.filter(|process| process.id().is_some()) else {
                continue;
            };
            let stopped = process.stop();
            outcome = outcome.and(stopped.map_err(|why| format!("{}: {why}", subject.name)));
        }
        outcome
    }
}

/// A name as a folder's.
fn folder(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    name.chars().map(plain).collect()
}

/// A server of ours as the experiment sees it.
struct Ours(Arc<server::Started>);

impl crate::experiment::Process for Ours {
    fn target(&self) -> Target {
        self.0.target()
    }

    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn data(&self) -> Option<PathBuf> {
        Some(self.0.data())
    }

    fn kind(&self) -> String {
        self.0.kind().word().to_string()
    }

    fn facts(&self) -> std::collections::BTreeMap<String, String> {
        self.0.facts()
    }

    fn command(&self) -> Vec<String> {
        self.0.command()
    }

    fn table_options(&self) -> String {
        self.0.table_options()
    }

    fn kill(&self) -> Result<(), String> {
        self.0.kill()
    }

    fn start(&self) -> Result<(), String> {
        self.0.restart()
    }

    fn cold_start(&self) -> Result<String, String> {
        self.0.cold_start().map(|beginning| beginning.words())
    }

    fn signal(&self, number: i32) -> Result<(), String> {
        self.0.signal(number)
    }

    fn stop(&self) -> Result<(), String> {
        self.0.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> Result<Vec<Described>, String> {
        read(&text.parse().expect("TOML"))
    }

    #[test]
    fn settings_of_a_subject_lie_over_those_of_all() {
        let found = described(
            "[server]\nmemory='64M'\ndurability=2\n\
             [[subject]]\nkind='gannet'\n\
             [[subject]]\nname='B'\nkind='mariadb'\nsettings={durability=1}\n\
             [[subject]]\ndsn='mysql://root:secret@127.0.0.1:3307/test'",
        )
        .expect("valid");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["gannet", "B", "127.0.0.1:3307"]);
        let settings = |number: usize| match &found[number].place {
            Place::Started(description) => description.settings.clone(),
            Place::Dsn(dsn) => panic!("{dsn}"),
        };
        assert_eq!(settings(0).memory.bytes(), 64 << 20);
        assert_eq!(settings(1).memory.bytes(), 64 << 20);
        assert_ne!(settings(0).durability, settings(1).durability);
    }

    #[test]
    fn errors_name_what_to_change() {
        let cases = [
            ("", "--dsn or --start"),
            ("[[subject]]\nname='x'", "either a dsn or a kind"),
            ("[[subject]]\nkind='gannet'\nprogramm='x'", "is 'program' meant?"),
            ("[[subject]]\nkind='oracle'", "oracle"),
            ("[server]\nmemori='1G'\n[[subject]]\nkind='gannet'", "memori"),
            ("[[subject]]\nkind='gannet'\n[[subject]]\nkind='gannet'", "two subjects"),
        ];
        for (text, wanted) in cases {
            let error = described(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn words_become_subjects() {
        let texts = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let values = on_command_line(
            &texts(&["A=mysql://root@127.0.0.1/test"]),
            &texts(&["gannet", "new=mariadb:/opt/mariadbd", "myrocks"]),
        );
        let table =
            Table::from_iter([("subject".to_string(), Value::Array(values.expect("valid")))]);
        let found = read(&table).expect("valid");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["A", "gannet", "new", "myrocks"]);
        let Place::Started(myrocks) = &found[3].place else { panic!("it is to be started") };
        assert_eq!((myrocks.kind, myrocks.settings.engine), (Kind::Mariadb, Engine::Rocksdb));
        let error = on_command_line(&[], &texts(&["oracle"])).expect_err("unknown");
        assert!(error.contains("gannet, mariadb, myrocks, mysql"), "{error}");
    }
}
