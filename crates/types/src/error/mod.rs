//! Errors and warnings as a client sees them: number, SQLSTATE, message.
//!
//! The numbers, states and texts are MariaDB 10.11's; [`codes`] holds the table. Rooms above
//! make a [`SqlError`] from a code and its arguments; no text is written twice.

pub mod codes;
mod codes_more;

use std::fmt::{self, Display, Write};

/// One row of the error table.
#[derive(Debug)]
pub struct ErrorCode {
    /// Error number, e.g. 1062.
    pub number: u16,
    /// Five character SQLSTATE.
    pub sqlstate: &'static str,
    /// Name without its `ER_` prefix.
    pub name: &'static str,
    /// Text with places for arguments: `{}` as it is, `{Tn}` cut to n bytes with dots,
    /// `{Q}` quoted with backticks.
    pub template: &'static str,
}

impl ErrorCode {
    /// The message with its arguments filled in; a missing argument leaves its place empty.
    /// Control characters but tabs and ends of lines are shown as `\00HH`.
    pub fn message(&self, arguments: &[&dyn Display]) -> String {
        let mut text = String::with_capacity(self.template.len() + 32);
        let mut rest = self.template;
        let mut arguments = arguments.iter();
        while let Some(open) = rest.find('{') {
            let Some(length) = rest[open..].find('}') else { break };
            text.push_str(&rest[..open]);
            let place = &rest[open + 1..open + length];
            rest = &rest[open + length + 1..];
            let argument = arguments.next().map(|a| a.to_string()).unwrap_or_default();
            match (place.strip_prefix('T').map(str::parse::<usize>), place) {
                (Some(Ok(limit)), _) => push_cut(&mut text, &argument, limit),
                (_, "Q") => {
                    let _ = write!(text, "`{}`", argument.replace('`', "``"));
                }
                _ => text.push_str(&argument),
            }
        }
        text.push_str(rest);
        with_hidden_shown(text)
    }
}

fn is_hidden(character: char) -> bool {
    character.is_ascii_control() && !matches!(character, '\t' | '\n' | '\r')
}

fn with_hidden_shown(text: String) -> String {
    if !text.contains(is_hidden) {
        return text;
    }
    let mut shown = String::with_capacity(2 * text.len());
    for character in text.chars() {
        match is_hidden(character) {
            true => shown.push_str(&format!("\\00{:02X}", u32::from(character))),
            false => shown.push(character),
        }
    }
    shown
}

/// Appends at most `limit` bytes of `argument`, ending in three dots when it was cut. A character
/// of four bytes counts one: it is a question mark in MariaDB's messages.
fn push_cut(text: &mut String, argument: &str, limit: usize) {
    let counted = |it: char| if it.len_utf8() == 4 { 1 } else { it.len_utf8() };
    if argument.len() <= limit || argument.chars().map(counted).sum::<usize>() <= limit {
        text.push_str(argument);
        return;
    }
    let mut room = limit.saturating_sub(3);
    for character in argument.chars() {
        let Some(left) = room.checked_sub(counted(character)) else { break };
        room = left;
        text.push(character);
    }
    text.push_str("...");
}

/// An error on its way to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// Error number.
    pub code: u16,
    /// SQLSTATE, five ASCII characters (SIGNAL may set any).
    pub sqlstate: [u8; 5],
    /// Message text.
    pub message: String,
}

impl SqlError {
    /// An error of the table with its arguments.
    pub fn new(code: &ErrorCode, arguments: &[&dyn Display]) -> Self {
        Self::with_message(code, code.message(arguments))
    }

    /// An error of the table with a text of its own.
    pub fn with_message(code: &ErrorCode, message: impl Into<String>) -> Self {
        let mut sqlstate = *b"HY000";
        sqlstate.copy_from_slice(code.sqlstate.as_bytes());
        Self { code: code.number, sqlstate, message: with_hidden_shown(message.into()) }
    }

    /// The state as text.
    pub fn sqlstate_text(&self) -> &str {
        std::str::from_utf8(&self.sqlstate).unwrap_or("HY000")
    }

    /// Whether this is the error of the table row `code`.
    pub fn is(&self, code: &ErrorCode) -> bool {
        self.code == code.number
    }
}

impl Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.code, self.sqlstate_text(), self.message)
    }
}

impl std::error::Error for SqlError {}

/// Severity of a warning as SHOW WARNINGS names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something the user may want to know.
    Note,
    /// A value was changed or a default taken.
    Warning,
    /// The statement failed.
    Error,
}

impl Level {
    /// The word in SHOW WARNINGS.
    pub fn name(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// One line of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Severity.
    pub level: Level,
    /// Number from the same table as errors.
    pub code: u16,
    /// Text.
    pub message: String,
}

impl Warning {
    /// A warning of the table with its arguments.
    pub fn new(code: &ErrorCode, arguments: &[&dyn Display]) -> Self {
        Self { level: Level::Warning, code: code.number, message: code.message(arguments) }
    }

    /// A note of the table with its arguments.
    pub fn note(code: &ErrorCode, arguments: &[&dyn Display]) -> Self {
        Self { level: Level::Note, code: code.number, message: code.message(arguments) }
    }
}

impl From<&SqlError> for Warning {
    fn from(error: &SqlError) -> Self {
        Self { level: Level::Error, code: error.code, message: error.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_filled_in_cut_and_quoted() {
        let e = SqlError::new(&codes::BAD_FIELD_ERROR, &[&"a", &"field list"]);
        assert_eq!(e.to_string(), "1054 (42S22): Unknown column 'a' in 'field list'");
        let long = "x".repeat(300);
        let e = SqlError::new(&codes::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &long]);
        assert_eq!(e.message.len(), "Truncated incorrect INTEGER value: ''".len() + 128);
        assert!(e.message.ends_with("xxx...'"));
        let faces = "😀".repeat(128);
        let e = SqlError::new(&codes::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &faces]);
        assert!(e.message.ends_with("😀'"));
        let e = SqlError::new(&codes::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &(faces + "xx")]);
        assert!(e.message.ends_with("😀...'"));
        let bells = "\u{7}".repeat(128);
        let e = SqlError::new(&codes::TRUNCATED_WRONG_VALUE, &[&"INTEGER", &bells]);
        assert!(e.message.ends_with("\\0007\\0007'"), "{}", e.message);
        let e = SqlError::new(&codes::CANT_CREATE_TABLE, &[&"a`b", &"t", &1]);
        assert_eq!(e.message, "Can't create table `a``b`.`t` (errno: 1)");
    }
}
