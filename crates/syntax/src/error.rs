//! Errors of lexer and parser, with MariaDB's numbers and texts.

use std::fmt;

/// Why a statement was refused by the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// 1064: not in the grammar.
    Syntax,
    /// 1065: nothing but blanks and comments.
    Empty,
    /// 1059: a name of more than 64 characters.
    IdentifierTooLong,
    /// 1300: a name that is not valid in its character set.
    InvalidCharacters,
    /// 1221: two clauses that exclude each other.
    IncorrectUsage,
    /// 1436: nested deeper than the parser allows.
    TooDeep,
    /// 1390: more than 65,535 parameters.
    TooManyParameters,
    /// Another error that MariaDB raises while parsing; see `ParseError::code`.
    Other,
}

/// An error of the parser, ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Family, for callers that care.
    pub kind: ParseErrorKind,
    /// MariaDB's error number.
    pub code: u16,
    /// Five characters.
    pub sqlstate: &'static str,
    /// MariaDB's text.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.code, self.sqlstate, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Most characters of the rest of the statement that a 1064 quotes.
const NEAR_CHARACTERS: usize = 80;

impl ParseError {
    /// Error 1064 at byte `offset` of `text`.
    pub(crate) fn syntax(text: &[u8], offset: usize) -> Self {
        let offset = offset.min(text.len());
        let line = 1 + text[..offset].iter().filter(|byte| **byte == b'\n').count();
        let rest = String::from_utf8_lossy(&text[offset..]);
        let near: String = rest.chars().take(NEAR_CHARACTERS).collect();
        Self {
            kind: ParseErrorKind::Syntax,
            code: 1064,
            sqlstate: "42000",
            message: format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your \
                 MariaDB server version for the right syntax to use near '{near}' at line {line}"
            ),
        }
    }

    pub(crate) fn empty() -> Self {
        Self::new(ParseErrorKind::Empty, 1065, "42000", "Query was empty".into())
    }

    pub(crate) fn identifier_too_long(name: &str) -> Self {
        let message = format!("Identifier name '{name}' is too long");
        Self::new(ParseErrorKind::IdentifierTooLong, 1059, "42000", message)
    }

    pub(crate) fn invalid_characters(bytes: &[u8]) -> Self {
        let shown: String = bytes.iter().take(6).map(|b| format!("\\x{b:02X}")).collect();
        let message = format!("Invalid utf8mb4 character string: '{shown}'");
        Self::new(ParseErrorKind::InvalidCharacters, 1300, "HY000", message)
    }

    pub(crate) fn incorrect_usage(one: &str, other: &str) -> Self {
        let message = format!("Incorrect usage of {one} and {other}");
        Self::new(ParseErrorKind::IncorrectUsage, 1221, "HY000", message)
    }

    pub(crate) fn too_deep() -> Self {
        let message = "Thread stack overrun: the statement is nested too deeply".to_string();
        Self::new(ParseErrorKind::TooDeep, 1436, "HY000", message)
    }

    pub(crate) fn too_many_parameters() -> Self {
        let message = "Prepared statement contains too many placeholders".to_string();
        Self::new(ParseErrorKind::TooManyParameters, 1390, "HY000", message)
    }

    pub(crate) fn other(code: u16, sqlstate: &'static str, message: String) -> Self {
        Self::new(ParseErrorKind::Other, code, sqlstate, message)
    }

    fn new(kind: ParseErrorKind, code: u16, sqlstate: &'static str, message: String) -> Self {
        Self { kind, code, sqlstate, message }
    }
}
