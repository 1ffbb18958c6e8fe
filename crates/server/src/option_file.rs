//! my.cnf: groups of options.
//!
//! A line is a comment (`#`, `;`), a group (`[mysqld]`), an include (`!include`,
//! `!includedir`) or an option `name`, `name=value` with optional quotes, escapes and a comment
//! behind. Options before the first group are an error, as they are for MariaDB.

use thiserror::Error;

/// Groups whose options this server takes.
const GROUPS: &[&str] = &["mysqld", "server", "mariadb", "mariadbd", "gannet", "mariadb-10.11"];

/// An option file cannot be understood.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{file}, line {line}: {problem}")]
pub struct OptionFileError {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// What an option file says to this server, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// An option of one of our groups.
    Option {
        /// Name as written.
        name: String,
        /// Value, if there is an `=`.
        value: Option<String>,
    },
    /// Read another file here.
    Include(String),
    /// Read all `*.cnf` of a directory here, in order of name.
    IncludeDirectory(String),
}

/// Reads a file's text. `suffix` is added to the group names that also count
/// (`--defaults-group-suffix`).
pub fn parse(file: &str, text: &str, suffix: &str) -> Result<Vec<Entry>, OptionFileError> {
    let mut entries = Vec::new();
    let mut ours = None;
    for (number, line) in text.lines().enumerate() {
        let problem = |problem: &str| OptionFileError {
            file: file.to_owned(),
            line: number + 1,
            problem: problem.to_owned(),
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(directory) = line.strip_prefix("!includedir") {
            entries.push(Entry::IncludeDirectory(directory.trim().to_owned()));
        } else if let Some(path) = line.strip_prefix("!include") {
            entries.push(Entry::Include(path.trim().to_owned()));
        } else if let Some(group) = line.strip_prefix('[') {
            let Some((name, _)) = group.split_once(']') else {
                return Err(problem("a group without ']'"));
            };
            let name = name.trim();
            let plain = name.strip_suffix(suffix).unwrap_or(name);
            ours = Some(GROUPS.contains(&name) || GROUPS.contains(&plain));
        } else {
            match ours {
                None => return Err(problem("an option before the first group")),
                Some(false) => {}
                Some(true) => entries.push(option(line)),
            }
        }
    }
    Ok(entries)
}

fn option(line: &str) -> Entry {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(unquote(value.trim()))),
        None => (line.split('#').next().unwrap_or(line), None),
    };
    Entry::Option { name: name.trim().to_owned(), value }
}

/// Takes off quotes and a trailing comment, and resolves escapes.
fn unquote(text: &str) -> String {
    let mut characters = text.chars().peekable();
    let quote = characters.next_if(|c| *c == '"' || *c == '\'');
    let mut value = String::new();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('b') => value.push('\u{8}'),
                Some('s') => value.push(' '),
                Some(quoted @ ('\\' | '"' | '\'')) => value.push(quoted),
                Some(other) => value.extend(['\\', other]),
                None => value.push('\\'),
            },
            end if Some(end) == quote => return value,
            '#' if quote.is_none() => break,
            other => value.push(other),
        }
    }
    if quote.is_none() { value.trim_end().to_owned() } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: Option<&str>) -> Entry {
        Entry::Option { name: name.to_owned(), value: value.map(str::to_owned) }
    }

    #[test]
    fn our_groups_are_taken_and_others_left() {
        let text = "# comment\n[client]\nport=1\n[mysqld]\nport = 3307 # behind\nskip-networking\n\
                    ; other comment\n[gannet]\nsocket='/a b/c#d'\nsql_mode=\"A,B\"\n\
                    !includedir /etc/my.cnf.d/\n[mysqldump]\nquick\n[mariadbd]\ntmpdir=C:\\s\\x\n";
        assert_eq!(
            parse("my.cnf", text, "").unwrap(),
            [
                option("port", Some("3307")),
                option("skip-networking", None),
                option("socket", Some("/a b/c#d")),
                option("sql_mode", Some("A,B")),
                Entry::IncludeDirectory("/etc/my.cnf.d/".to_owned()),
                option("tmpdir", Some("C: \\x")),
            ]
        );
    }

    #[test]
    fn a_group_suffix_adds_groups() {
        let text = "[mysqld1]\na=1\n[mysqld2]\nb=2\n[mysqld]\nc=3\n";
        assert_eq!(
            parse("f", text, "2").unwrap(),
            [option("b", Some("2")), option("c", Some("3"))]
        );
    }

    #[test]
    fn what_cannot_be_understood_names_its_line() {
        let error = parse("f", "\nport=1\n", "").unwrap_err();
        assert_eq!(error.to_string(), "f, line 2: an option before the first group");
        assert_eq!(parse("f", "[mysqld\n", "").unwrap_err().line, 1);
    }
}
