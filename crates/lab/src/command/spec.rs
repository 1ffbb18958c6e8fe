//! Descriptions of runs in TOML.
//!
//! 1. A section's keys are the flags of the command line with `_` for `-`: both are read by the
//!    same code, with the same names, defaults and errors.
//! 2. What is said on the command line takes the place of what the file says. What comes of both is
//!    the effective description, which stays with the results: to run it is to run the same again.
//! 3. An unknown key is an error that names the nearest one that there is.

use clap::Command;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Sections whose keys are flags.
pub(super) const WORKLOAD: &str = "workload";
pub(super) const LOAD: &str = "load";
pub(super) const RUN: &str = "run";
/// Settings of all started servers.
pub(super) const SERVER: &str = "server";
/// Servers, an array.
pub(super) const SUBJECT: &str = "subject";
/// Runs one after the other, each with what differs from the rest of the file.
const PART: &str = "part";
/// The positional argument's key.
const NAME: &str = "name";
const TOP: [&str; 9] = ["title", "needs", "scale", WORKLOAD, LOAD, RUN, SERVER, SUBJECT, PART];

/// The flags of each section.
pub(super) struct Flags {
    sections: BTreeMap<&'static str, Vec<String>>,
}

impl Flags {
    /// From commands that have a section's flags and nothing else.
    pub(super) fn new(sections: [(&'static str, Command); 3]) -> Self {
        let keys = |command: &Command| -> Vec<String> {
            command.get_arguments().map(|argument| argument.get_id().to_string()).collect()
        };
        let sections = sections.iter().map(|(name, command)| (*name, keys(command))).collect();
        Self { sections }
    }

    /// The section of a flag.
    pub(super) fn section_of(&self, id: &str) -> Option<&'static str> {
        let holds = |(_, ids): &(&&'static str, &Vec<String>)| ids.iter().any(|known| known == id);
        self.sections.iter().find(holds).map(|(section, _)| *section)
    }

    /// Words for clap.
    pub(super) fn words(&self, table: &Table) -> Result<Vec<String>, String> {
        let name = section(table, WORKLOAD).and_then(|workload| workload.get(NAME));
        let name = name.and_then(Value::as_str);
        let mut words = vec![name.ok_or("[workload] needs a name, such as \"sysbench\"")?.into()];
        for (name, ids) in &self.sections {
            for (key, value) in section(table, name).into_iter().flatten() {
                if *name == WORKLOAD && key == NAME {
                    continue;
                }
                if !ids.contains(key) {
                    let known = ids.iter().map(String::as_str);
                    return Err(unknown(&format!("[{name}]"), key, known));
                }
                put_words(&mut words, name, key, value)?;
            }
        }
        Ok(words)
    }
}

fn put_words(
    words: &mut Vec<String>,
    section: &str,
    key: &str,
    value: &Value,
) -> Result<(), String> {
    let flag = format!("--{}", key.replace('_', "-"));
    match value {
        Value::Boolean(true) => words.push(flag),
        Value::Boolean(false) => {}
        Value::Array(values) => {
            for value in values {
                let word = word(value).ok_or_else(|| format!("[{section}] {key}: {value}"))?;
                words.push(format!("{flag}={word}"));
            }
        }
        value => {
            let word = word(value)
                .ok_or_else(|| format!("[{section}] {key} is no value of a flag: {value}"))?;
            words.push(format!("{flag}={word}"));
        }
    }
    Ok(())
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(is_true) => Some(is_true.to_string()),
        _ => None,
    }
}

fn section<'a>(table: &'a Table, name: &str) -> Option<&'a Table> {
    table.get(name).and_then(Value::as_table)
}

/// Reads a description; `from` is its name for messages.
pub(super) fn read(text: &str, from: &str) -> Result<Table, String> {
    let table: Table = text.parse().map_err(|error| format!("{from}: {error}"))?;
    check_keys(&table).map_err(|error| format!("{from}: {error}"))?;
    Ok(table)
}

/// Keys above sections, and that sections are sections.
fn check_keys(table: &Table) -> Result<(), String> {
    for (key, value) in table {
        let is_right = match key.as_str() {
            WORKLOAD | LOAD | RUN | SERVER | "scale" => value.is_table(),
            SUBJECT | PART => value.as_array().is_some_and(|all| all.iter().all(Value::is_table)),
            "title" | "needs" => value.is_str(),
            NAME => true,
            _ => return Err(unknown("the file", key, TOP.into_iter())),
        };
        if !is_right {
            return Err(format!("{key} is not what it should be: {value}"));
        }
        if key == PART {
            for part in value.as_array().into_iter().flatten().filter_map(Value::as_table) {
                check_keys(part)?;
            }
        }
    }
    Ok(())
}

/// Lays one table over another: tables are joined, all else takes the place of what was there.
pub(super) fn lay_over(table: &mut Table, over: Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// The parts of a description, each whole, with its name; one without a name if there are none.
pub(super) fn parts(table: &Table, over: &Table) -> Result<Vec<(Option<String>, Table)>, String> {
    let mut whole = table.clone();
    let parts = whole.remove(PART);
    let parts = parts.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
    if parts.is_empty() {
        lay_over(&mut whole, over.clone());
        return Ok(vec![(None, whole)]);
    }
    let mut found = Vec::new();
    for part in parts.iter().filter_map(Value::as_table) {
        let mut part = part.clone();
        let name = part.remove(NAME).and_then(|name| name.as_str().map(str::to_string));
        let name = name.ok_or("each [[part]] needs a name")?;
        let mut table = whole.clone();
        lay_over(&mut table, part);
        lay_over(&mut table, over.clone());
        found.push((Some(name), table));
    }
    Ok(found)
}

/// A message about an unknown key.
pub(super) fn unknown<'a>(
    place: &str,
    key: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    match nearest(key, known.clone()) {
        Some(nearest) => format!("{place} has no key '{key}': is '{nearest}' meant?"),
        None => {
            let all: Vec<&str> = known.collect();
            format!("{place} has no key '{key}'; there are {}", all.join(", "))
        }
    }
}

/// The word that is reached with the fewest changes of a letter, if they are few.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const CHANGES_MAX: usize = 3;
    let most = CHANGES_MAX.min(word.chars().count().div_ceil(2));
    let all = known.map(|candidate| (distance(word, candidate), candidate));
    all.min().filter(|(changes, _)| *changes <= most).map(|(_, candidate)| candidate)
}

/// Levenshtein's distance (1965), by Wagner and Fischer's table (1974), a row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 0..b.len() {
            let changed = diagonal + usize::from(letter != b[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn flags() -> Flags {
        let command = |ids: &[&'static str]| {
            ids.iter().fold(Command::new("x"), |command, id| command.arg(Arg::new(*id)))
        };
        Flags::new([
            (WORKLOAD, command(&["script", "table_size", "constant_data"])),
            (LOAD, command(&["connections"])),
            (RUN, command(&["clients", "seconds"])),
        ])
    }

    const TEXT: &str = r#"
        title = "two parts"
        [workload]
        name = "sysbench"
        script = "oltp_read_only"
        constant_data = true
        [run]
        clients = [4, 8]
        [[part]]
        name = "short"
        run = { seconds = 5 }
        [[part]]
        name = "writes"
        workload = { script = "oltp_write_only", constant_data = false }
    "#;

    #[test]
    fn parts_become_words_and_flags_win() {
        let table = read(TEXT, "x.toml").expect("valid");
        let over: Table = "[run]\nclients = [2]".parse().expect("TOML");
        let words = |over: &Table| -> Vec<(Option<String>, String)> {
            let parts = parts(&table, over).expect("named");
            let words = |(name, table): (Option<String>, Table)| {
                (name, flags().words(&table).expect("known keys").join(" "))
            };
            parts.into_iter().map(words).collect()
        };
        let short = "sysbench --clients=4 --clients=8 --seconds=5 --constant-data \
                     --script=oltp_read_only";
        let writes = "sysbench --clients=4 --clients=8 --script=oltp_write_only";
        let named = |name: &str, words: &str| (Some(name.to_string()), words.to_string());
        assert_eq!(words(&Table::new()), [named("short", short), named("writes", writes)]);
        assert_eq!(words(&over)[1].1, "sysbench --clients=2 --script=oltp_write_only");
    }

    #[test]
    fn unknown_keys_name_the_nearest() {
        let words = |text: &str| flags().words(&read(text, "x.toml").expect("TOML"));
        let error = words("[workload]\nname='a'\n[run]\nclint = 5").expect_err("unknown");
        assert_eq!(error, "[run] has no key 'clint': is 'clients' meant?");
        let error = words("[workload]\nname='a'\n[load]\nxyzzy = 5").expect_err("unknown");
        assert_eq!(error, "[load] has no key 'xyzzy'; there are connections");
        let error = words("[run]\nseconds = 5").expect_err("no workload");
        assert!(error.contains("[workload] needs a name"), "{error}");
        let error = read("[runs]\nx = 5", "x.toml").expect_err("unknown");
        assert_eq!(error, "x.toml: the file has no key 'runs': is 'run' meant?");
        let error = read("run = 5", "x.toml").expect_err("no section");
        assert_eq!(error, "x.toml: run is not what it should be: 5");
        let error = read("[run\nseconds = 5", "x.toml").expect_err("no TOML");
        assert!(error.starts_with("x.toml: ") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn distances() {
        let cases = [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("a", "b", 1)];
        for (a, b, wanted) in cases {
            assert_eq!((distance(a, b), distance(b, a)), (wanted, wanted), "{a} {b}");
        }
        assert_eq!(nearest("secnds", ["clients", "seconds"].into_iter()), Some("seconds"));
        assert_eq!(nearest("zzzzzz", ["clients", "seconds"].into_iter()), None);
    }
}
