//! Test files.
//!
//! A `.test` file is a list of statements, each ended by `;` at the end of a line. Lines that
//! begin with `#` are comments; lines that begin with `--` are directives for the next
//! statement:
//!
//! * `-- connection NAME`: from here on use (and open, if new) the named connection;
//! * `-- sorted`: compare the rows without regard to their order;
//! * `-- prepared [VALUE]...`: run it as a prepared statement with these parameters, separated
//!   by tabs or two spaces (`NULL` is NULL);
//! * `-- differs REASON`: Gannet answers otherwise on purpose; its answer stands in the
//!   `.gannet` file beside the `.result` file, the reason in COMPAT.md;
//! * `-- no-compare`: run it, do not compare (an answer that names times or versions).
//!
//! The `.result` file beside it holds what MariaDB answered, written by `--bless` only.

use crate::client::{Answer, Connection, Options};
use crate::render;
use std::collections::BTreeMap;
use std::io;

/// One statement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line of its first character, from 1.
    pub line: usize,
    /// Named connection.
    pub connection: String,
    /// Text without the final `;`.
    pub sql: String,
    /// Rows in any order.
    pub sorted: bool,
    /// Parameters of a prepared statement.
    pub prepared: Option<Vec<Option<String>>>,
    /// Reason why Gannet answers otherwise.
    pub differs: Option<String>,
    /// Run without comparing.
    pub no_compare: bool,
}

/// Parses a test file.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let blank = Step {
        line: 0,
        connection: "default".into(),
        sql: String::new(),
        sorted: false,
        prepared: None,
        differs: None,
        no_compare: false,
    };
    let mut step = blank.clone();
    for (number, line) in text.lines().enumerate() {
        if step.sql.is_empty() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(directive) = line.strip_prefix("-- ") {
                apply_directive(&mut step, directive)
                    .map_err(|problem| format!("line {}: {problem}", number + 1))?;
                continue;
            }
            step.line = number + 1;
        } else {
            step.sql.push('\n');
        }
        step.sql.push_str(line);
        if let Some(sql) = step.sql.trim_end().strip_suffix(';') {
            step.sql = sql.to_string();
            let connection = step.connection.clone();
            steps.push(std::mem::replace(&mut step, Step { connection, ..blank.clone() }));
        }
    }
    if step.sql.is_empty() { Ok(steps) } else { Err(format!("line {}: no end", step.line)) }
}

fn apply_directive(step: &mut Step, directive: &str) -> Result<(), String> {
    let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    match word {
        "connection" => step.connection = rest.trim().to_string(),
        "sorted" => step.sorted = true,
        "no-compare" => step.no_compare = true,
        "differs" => step.differs = Some(rest.to_string()),
        "prepared" => {
            let values = rest.split(['\t']).flat_map(|part| part.split("  "));
            let values = values.map(str::trim).filter(|v| !v.is_empty());
            let values = values.map(|v| (v != "NULL").then(|| v.to_string()));
            step.prepared = Some(values.collect());
        }
        _ => return Err(format!("unknown directive '{word}'")),
    }
    Ok(())
}

/// One line of the file's outcome: the statement, the answer, whether to compare it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The statement.
    pub step: Step,
    /// Rendered answer.
    pub text: String,
}

/// Runs all steps against one server in a database of their own.
pub fn run(steps: &[Step], options: &Options, database: &str) -> io::Result<Vec<Outcome>> {
    let mut first = Connection::open(options)?;
    first.execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
    first.execute(&format!("CREATE DATABASE {database}"))?;
    let mut connections: BTreeMap<String, Connection> = BTreeMap::new();
    let mut outcomes = Vec::new();
    let own = Options { database: database.into(), ..options.clone() };
    for step in steps {
        if !connections.contains_key(&step.connection) {
            connections.insert(step.connection.clone(), Connection::open(&own)?);
        }
        let connection = connections
            .get_mut(&step.connection)
            .ok_or_else(|| io::Error::other("connection is missing"))?;
        let text = run_step(connection, step)
            .map_err(|e| io::Error::other(format!("line {}: {e}: {}", step.line, step.sql)))?;
        outcomes.push(Outcome { step: step.clone(), text });
    }
    drop(connections);
    first.execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
    Ok(outcomes)
}

fn run_step(connection: &mut Connection, step: &Step) -> io::Result<String> {
    let answers = match &step.prepared {
        None => connection.query(&step.sql)?,
        Some(parameters) => match connection.prepare(&step.sql)? {
            Err(error) => vec![Answer::Error(error)],
            Ok(statement) => {
                let values: Vec<Option<&[u8]>> =
                    parameters.iter().map(|p| p.as_ref().map(|v| v.as_bytes())).collect();
                let answer = connection.execute_prepared(&statement, &values)?;
                connection.close_prepared(&statement)?;
                vec![answer]
            }
        },
    };
    let warnings = if is_diagnostic(&step.sql) { Vec::new() } else { connection.warnings()? };
    let mut text = String::new();
    let last = answers.len().saturating_sub(1);
    for (position, answer) in answers.iter().enumerate() {
        let warnings: &[[String; 3]] = if position == last { &warnings } else { &[] };
        text += &render::answer(answer, warnings, step.sorted);
    }
    Ok(text)
}

/// Statements after which SHOW WARNINGS would tell of an older statement.
fn is_diagnostic(sql: &str) -> bool {
    let start = sql.trim_start().get(..8).unwrap_or("").to_ascii_lowercase();
    start.starts_with("show war") || start.starts_with("show err")
}

/// The text of a result file.
pub fn to_text(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        out += &format!("> {}\n", outcome.step.sql.replace('\n', "\n> "));
        out += if outcome.step.no_compare { "(not compared)\n" } else { &outcome.text };
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_statements_and_directives() {
        let steps = parse(
            "# comment\nSELECT 1;\n-- sorted\n-- connection b\nSELECT\n2;\n\
             -- prepared 1  NULL\nSELECT ?, ?;\n",
        )
        .unwrap();
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[1].sql, "SELECT\n2");
        assert!(steps[1].sorted && !steps[2].sorted);
        assert_eq!(steps[2].connection, "b");
        assert_eq!(steps[2].prepared, Some(vec![Some("1".into()), None]));
        assert!(parse("SELECT 1").is_err());
        assert!(parse("-- nonsense\nSELECT 1;").is_err());
    }
}
