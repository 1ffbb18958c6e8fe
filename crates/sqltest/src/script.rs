//! Test files.
//!
//! A `.test` file is a list of statements, each ended by `;` at the end of a line. Lines that
//! begin with `#` are comments; lines that begin with `--` are directives for the next
//! statement:
//!
//! * `-- connection NAME [OPTION]...`: from here on use (and open, if new) the named connection.
//!   Options of a new one: `found-rows`, `session-track`, `deprecate-eof`, `connect-attrs`,
//!   `no-multi` (one statement a command), `no-local` (no files are sent), `no-database`,
//!   `collation=NUMBER`, `user=NAME`, `password=TEXT`;
//! * `-- sorted`: compare the rows without regard to their order;
//! * `-- hide COLUMN...`: these columns of the answer are shown as `*`, such as estimates;
//! * `-- prepared [VALUE]...`: run it as a prepared statement with these parameters, separated
//!   by tabs or two spaces (`NULL` is NULL, `int:5` an INT, see `Parameter::parse`);
//! * `-- prepare NAME`: prepare it and keep it under this name;
//! * `-- packets`: from here on show of every answer what its packets say: status flags, number
//!   of warnings, everything of the columns;
//! * `-- differs REASON`: Gannet answers otherwise on purpose; its answer stands in the
//!   `.gannet` file beside the `.result` file, the reason in COMPAT.md;
//! * `-- local END`: the lines that follow, up to one that is END, are what the client sends when
//!   the next statement asks for a file; `-- local-bytes TEXT` the same in one line, where `\n`,
//!   `\r`, `\t`, `\\` and `\xHH` are bytes;
//! * `-- no-compare`: run it, do not compare (an answer that names times or versions).
//!
//! or steps of their own, without a statement:
//!
//! * `-- execute NAME [VALUE]...` and `-- cursor NAME [VALUE]...`: execute what was prepared,
//!   the second with a cursor; `-- fetch NAME ROWS` reads it; the name `LAST` means what was
//!   prepared last, as drivers do that do not wait for its number;
//! * `-- long NAME POSITION TEXT`: send a parameter beforehand (its value is `long-data:`);
//! * `-- reset NAME`, `-- close NAME`: of a prepared statement;
//! * `-- ping`, `-- reset-connection`, `-- database NAME`, `-- set-option NUMBER`: commands;
//! * `-- disconnect`: ends the connection; the name can be opened anew.
//!
//! The `.result` file beside it holds what MariaDB answered, written by `--bless` only.

use crate::client::{self, Answer, Connection, Options, Prepared};
use crate::packet::protocol_error;
use crate::parameter::Parameter;
use crate::render;
use std::collections::BTreeMap;
use std::io;

/// How a step is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// As text.
    Query,
    /// Prepared, executed once, closed.
    Prepared(Vec<Parameter>),
    /// Prepared and kept.
    Prepare(String),
    /// Execution of a kept statement, with a cursor or without.
    Execute {
        /// Its name.
        name: String,
        /// Whether rows are fetched later.
        cursor: bool,
        /// Its parameters.
        values: Vec<Parameter>,
    },
    /// A command about a kept statement or the connection: its words.
    Command(Vec<String>),
}

/// One statement of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Line of its first character, from 1.
    pub line: usize,
    /// Named connection.
    pub connection: String,
    /// How a connection that is new is opened.
    pub connection_options: Vec<String>,
    /// Text without the final `;`, or the directive that stands for itself.
    pub sql: String,
    /// How it is sent.
    pub action: Action,
    /// Rows in any order.
    pub sorted: bool,
    /// Names of columns whose values are not compared.
    pub hidden: Vec<String>,
    /// Show what the packets say.
    pub packets: bool,
    /// Reason why Gannet answers otherwise.
    pub differs: Option<String>,
    /// Run without comparing.
    pub no_compare: bool,
    /// What is sent when the server asks for a file.
    pub local: Vec<u8>,
}

impl Step {
    fn first() -> Self {
        Self {
            line: 0,
            connection: "default".into(),
            connection_options: Vec::new(),
            sql: String::new(),
            action: Action::Query,
            sorted: false,
            hidden: Vec::new(),
            packets: false,
            differs: None,
            no_compare: false,
            local: Vec::new(),
        }
    }

    /// The step after this one, with what stays.
    fn next(&self) -> Self {
        Self {
            connection: self.connection.clone(),
            connection_options: self.connection_options.clone(),
            packets: self.packets,
            ..Self::first()
        }
    }
}

/// Parses a test file.
pub fn parse(text: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut step = Step::first();
    let mut file_end: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(end) = &file_end {
            if line == end {
                file_end = None;
            } else {
                step.local.extend_from_slice(line.as_bytes());
                step.local.push(b'\n');
            }
            continue;
        }
        if step.sql.is_empty() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            step.line = number + 1;
            if let Some(end) = line.strip_prefix("-- local ") {
                file_end = Some(end.trim().to_string());
                continue;
            }
            if let Some(directive) = line.strip_prefix("-- ") {
                let stands_alone = apply_directive(&mut step, directive)
                    .map_err(|problem| format!("line {}: {problem}", number + 1))?;
                if stands_alone {
                    step.sql = directive.trim_end().to_string();
                    let next = step.next();
                    steps.push(std::mem::replace(&mut step, next));
                }
                continue;
            }
        } else {
            step.sql.push('\n');
        }
        step.sql.push_str(line);
        if let Some(sql) = step.sql.trim_end().strip_suffix(';') {
            step.sql = sql.to_string();
            let next = step.next();
            steps.push(std::mem::replace(&mut step, next));
        }
    }
    if step.sql.is_empty() { Ok(steps) } else { Err(format!("line {}: no end", step.line)) }
}

/// True for a directive that is a step of its own.
fn apply_directive(step: &mut Step, directive: &str) -> Result<bool, String> {
    let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
    let (name, values) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    match word {
        "connection" => {
            step.connection = name.to_string();
            step.connection_options = values.split_whitespace().map(String::from).collect();
        }
        "local-bytes" => step.local = unescaped(rest)?,
        "sorted" => step.sorted = true,
        "hide" => step.hidden = rest.split_whitespace().map(String::from).collect(),
        "packets" => step.packets = true,
        "no-compare" => step.no_compare = true,
        "differs" => step.differs = Some(rest.to_string()),
        "prepared" => step.action = Action::Prepared(parameters(rest)?),
        "prepare" => step.action = Action::Prepare(name.to_string()),
        "execute" | "cursor" => {
            step.action = Action::Execute {
                name: name.to_string(),
                cursor: word == "cursor",
                values: parameters(values)?,
            };
            return Ok(true);
        }
        "fetch" | "long" | "reset" | "close" | "ping" | "reset-connection" | "database"
        | "set-option" | "disconnect" => {
            step.action = Action::Command(directive.split_whitespace().map(String::from).collect());
            return Ok(true);
        }
        _ => return Err(format!("unknown directive '{word}'")),
    }
    Ok(false)
}

/// The bytes of a text with escapes.
fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16).map_err(|_| format!("'{digits}' is no byte"))?
            }
            _ => return Err(format!("unknown escape in '{text}'")),
        });
    }
    Ok(bytes)
}

fn parameters(text: &str) -> Result<Vec<Parameter>, String> {
    let values = text.split('\t').flat_map(|part| part.split("  "));
    values.map(str::trim).filter(|v| !v.is_empty()).map(Parameter::parse).collect()
}

/// One line of the file's outcome: the statement, the answer, whether to compare it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The statement.
    pub step: Step,
    /// Rendered answer.
    pub text: String,
}

/// A connection with the statements that were prepared on it.
struct Client {
    connection: Connection,
    statements: BTreeMap<String, Prepared>,
}

impl Client {
    fn open(step: &Step, options: &Options, database: &str) -> io::Result<Self> {
        let mut options = Options { database: database.into(), ..options.clone() };
        for option in &step.connection_options {
            match option.as_str() {
                "found-rows" => options.capabilities |= client::CLIENT_FOUND_ROWS,
                "session-track" => options.capabilities |= client::CLIENT_SESSION_TRACK,
                "deprecate-eof" => options.capabilities |= client::CLIENT_DEPRECATE_EOF,
                "connect-attrs" => options.capabilities |= client::CLIENT_CONNECT_ATTRS,
                "no-multi" => options.capabilities &= !client::CLIENT_MULTI_STATEMENTS,
                "no-local" => options.capabilities &= !client::CLIENT_LOCAL_FILES,
                "no-database" => options.database.clear(),
                other if other.starts_with("user=") => options.user = other[5..].into(),
                other if other.starts_with("password=") => options.password = other[9..].into(),
                other => {
                    let collation = other.strip_prefix("collation=").and_then(|n| n.parse().ok());
                    let unknown = || io::Error::other(format!("unknown option '{other}'"));
                    options.collation = collation.ok_or_else(unknown)?;
                }
            }
        }
        Ok(Self { connection: Connection::open(&options)?, statements: BTreeMap::new() })
    }

    fn statement(&self, name: &str) -> io::Result<Prepared> {
        if name == "LAST" {
            let (parameters, columns) = (Vec::new(), Vec::new());
            return Ok(Prepared { id: u32::MAX, parameter_count: 0, parameters, columns });
        }
        let unknown = || io::Error::other(format!("'{name}' is not prepared"));
        self.statements.get(name).cloned().ok_or_else(unknown)
    }
}

/// Runs all steps against one server in a database of their own.
pub fn run(steps: &[Step], options: &Options, database: &str) -> io::Result<Vec<Outcome>> {
    let mut first = Connection::open(options)?;
    first.execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
    first.execute(&format!("CREATE DATABASE {database}"))?;
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut outcomes = Vec::new();
    for step in steps {
        let located =
            |e: io::Error| io::Error::other(format!("line {}: {e}: {}", step.line, step.sql));
        if step.sql == "disconnect" {
            clients.remove(&step.connection);
            outcomes.push(Outcome { step: step.clone(), text: "disconnected\n".into() });
            continue;
        }
        let name = &step.connection;
        if !clients.contains_key(name) {
            let client = Client::open(step, options, database).map_err(located)?;
            clients.insert(name.clone(), client);
        }
        let client = clients.get_mut(name).ok_or_else(|| io::Error::other("no connection"))?;
        let text = run_step(client, step).map_err(located)?;
        outcomes.push(Outcome { step: step.clone(), text });
    }
    drop(clients);
    first.execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
    Ok(outcomes)
}

fn run_step(client: &mut Client, step: &Step) -> io::Result<String> {
    client.connection.set_local_file(&step.local);
    let answers = match &step.action {
        Action::Query => client.connection.query(&step.sql)?,
        Action::Prepared(values) => match client.connection.prepare(&step.sql)? {
            Err(error) => vec![Answer::Error(error)],
            Ok(statement) => {
                let answer = client.connection.execute_typed(&statement, 0, values)?;
                client.connection.close_prepared(&statement)?;
                vec![answer]
            }
        },
        Action::Prepare(name) => match client.connection.prepare(&step.sql)? {
            Err(error) => vec![Answer::Error(error)],
            Ok(statement) => {
                let text = render::prepared(&statement);
                client.statements.insert(name.clone(), statement);
                return Ok(text);
            }
        },
        Action::Execute { name, cursor, values } => {
            let statement = client.statement(name)?;
            vec![client.connection.execute_typed(&statement, u8::from(*cursor), values)?]
        }
        Action::Command(words) => match command(client, words)? {
            Some(answer) => vec![answer],
            None => return Ok("sent\n".into()),
        },
    };
    rendered(client, step, &answers)
}

fn rendered(client: &mut Client, step: &Step, answers: &[Answer]) -> io::Result<String> {
    let mut text = String::new();
    for answer in answers {
        let hidden = render::hidden(answer, &step.hidden);
        let answer = hidden.as_ref().unwrap_or(answer);
        text += &if step.packets {
            render::packets(answer, step.sorted)
        } else {
            render::answer(answer, step.sorted)
        };
    }
    let Some(last) = answers.last() else { return Ok(text) };
    let said = match last {
        Answer::Done(done) => done.warnings != 0,
        Answer::Rows { warnings, .. } => *warnings != 0,
        Answer::Error(_) => true,
    };
    if !is_diagnostic(&step.sql) && (said || !step.packets) {
        text += &render::warnings(last, &client.connection.warnings()?);
    }
    Ok(text)
}

/// Sends a command; `None` if it has no answer.
fn command(client: &mut Client, words: &[String]) -> io::Result<Option<Answer>> {
    let word = |position: usize| words.get(position).map_or("", String::as_str);
    let number = |position: usize| -> io::Result<u32> {
        word(position).parse().map_err(|_| io::Error::other("a number is wanted"))
    };
    let connection = &mut client.connection;
    match word(0) {
        "ping" => connection.command(0x0e, &[])?,
        "reset-connection" => connection.command(0x1f, &[])?,
        "database" => connection.command(0x02, word(1).as_bytes())?,
        "set-option" => {
            connection.command(0x1b, &number(1)?.to_le_bytes()[..2])?;
            let packet = connection.read()?;
            return connection.read_end(&packet).map(Some);
        }
        "fetch" => {
            let (statement, rows) = (client.statement(word(1))?, number(2)?);
            return client.connection.fetch(&statement, rows).map(Some);
        }
        "reset" => {
            let statement = client.statement(word(1))?;
            client.connection.command(0x1a, &statement.id.to_le_bytes())?;
        }
        "close" => {
            let statement = client.statement(word(1))?;
            client.connection.close_prepared(&statement)?;
            return Ok(None);
        }
        "long" => {
            let mut body = client.statement(word(1))?.id.to_le_bytes().to_vec();
            body.extend_from_slice(&number(2)?.to_le_bytes()[..2]);
            body.extend_from_slice(words[3..].join(" ").as_bytes());
            client.connection.command(0x18, &body)?;
            return Ok(None);
        }
        other => return Err(protocol_error(&format!("unknown command '{other}'"))),
    }
    client.connection.read_answer(false).map(|(answer, _)| Some(answer))
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
            "# comment\nSELECT 1;\n-- sorted\n-- connection b found-rows\nSELECT\n2;\n\
             -- prepared 1  NULL\nSELECT ?, ?;\n-- packets\n-- execute s int:7\nSELECT 3;\n",
        )
        .unwrap();
        assert_eq!(steps.len(), 5);
        assert_eq!(steps[1].sql, "SELECT\n2");
        assert!(steps[1].sorted && !steps[2].sorted && !steps[2].packets && steps[4].packets);
        assert_eq!((steps[2].connection.as_str(), steps[2].line), ("b", 8));
        assert_eq!(steps[2].connection_options, ["found-rows"]);
        let values = ["1", "NULL"].map(|word| Parameter::parse(word).unwrap());
        assert_eq!(steps[2].action, Action::Prepared(values.to_vec()));
        assert!(matches!(&steps[3].action, Action::Execute { name, .. } if name == "s"));
        assert_eq!(steps[3].sql, "execute s int:7");
        assert!(parse("SELECT 1").is_err());
        assert!(parse("-- nonsense\nSELECT 1;").is_err());
    }
}
