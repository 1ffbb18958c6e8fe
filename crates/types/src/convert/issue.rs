//! What there is to say about a stored value.

use crate::Charset;
use crate::error::{ErrorCode, Level, SqlError, Warning, codes};

/// Something about a value that was not stored as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreIssue {
    /// It was moved to the nearest value in range (1264).
    OutOfRange,
    /// A part of it that mattered was cut off (1265).
    Truncated,
    /// A part of it that did not matter was cut off (a note 1265).
    Shortened,
    /// Characters were cut off (1406 in strict mode, else 1265).
    TooLong,
    /// More bits than a BIT column has (1406 in strict mode, else 1264).
    TooManyBits,
    /// It is no value of the type (1366).
    Incorrect {
        /// Name of the type: integer, decimal, double, string.
        kind: &'static str,
        /// The value as messages show it.
        shown: String,
    },
    /// It is no date or time (1292 in strict mode, else 1265, or 1264 if out of range).
    IncorrectTemporal {
        /// date, time, datetime.
        kind: &'static str,
        /// The value as messages show it.
        shown: String,
        /// It is one, but not one of the column's range.
        out_of_range: bool,
    },
}

/// Which column of which row, for messages.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPlace<'a> {
    /// Database.
    pub schema: &'a str,
    /// Table.
    pub table: &'a str,
    /// Column.
    pub column: &'a str,
    /// Number of the row in the statement, from 1.
    pub row: u64,
}

impl StoreIssue {
    /// Whether it fails a statement in strict mode.
    pub fn is_error(&self) -> bool {
        *self != StoreIssue::Shortened
    }

    /// As an error in strict mode.
    pub fn error(&self, place: &ColumnPlace<'_>) -> SqlError {
        let (code, message) = match self {
            StoreIssue::TooLong | StoreIssue::TooManyBits => short(&codes::DATA_TOO_LONG, place),
            StoreIssue::IncorrectTemporal { kind, shown, .. } => {
                (&codes::TRUNCATED_WRONG_VALUE, incorrect(kind, shown, place))
            }
            other => other.plain(place),
        };
        SqlError::with_message(code, message)
    }

    /// As a warning or note.
    pub fn warning(&self, place: &ColumnPlace<'_>) -> Warning {
        let (code, message) = self.plain(place);
        let level = if self.is_error() { Level::Warning } else { Level::Note };
        Warning { level, code: code.number, message }
    }

    fn plain(&self, place: &ColumnPlace<'_>) -> (&'static ErrorCode, String) {
        match self {
            StoreIssue::OutOfRange
            | StoreIssue::TooManyBits
            | StoreIssue::IncorrectTemporal { out_of_range: true, .. } => {
                short(&codes::WARN_DATA_OUT_OF_RANGE, place)
            }
            StoreIssue::Incorrect { kind, shown } => {
                (&codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, incorrect(kind, shown, place))
            }
            _ => short(&codes::WARN_DATA_TRUNCATED, place),
        }
    }
}

fn short(code: &'static ErrorCode, place: &ColumnPlace<'_>) -> (&'static ErrorCode, String) {
    (code, code.message(&[&place.column, &place.row]))
}

fn incorrect(kind: &str, shown: &str, place: &ColumnPlace<'_>) -> String {
    codes::TRUNCATED_WRONG_VALUE_FOR_FIELD.message(&[
        &kind,
        &shown,
        &place.schema,
        &place.table,
        &place.column,
        &place.row,
    ])
}

/// Text as messages show it: printable characters as they are, other bytes as `\xHH`.
pub fn printable(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character < ' ' {
                shown.push_str(&format!("\\x{:02X}", u32::from(character)));
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02X}"));
        }
    }
    shown
}

/// Text of a character set as messages show it: NUL as `\0000`, bytes that are none of its
/// characters as `\xHH`. Other control characters are left to the message, which counts each as
/// one.
pub fn shown_text(bytes: &[u8], charset: Charset) -> String {
    if charset == Charset::Binary {
        return bytes.iter().fold(String::with_capacity(bytes.len()), |mut out, byte| {
            match byte {
                0x20..0x7f => out.push(char::from(*byte)),
                _ => out.push_str(&format!("\\x{byte:02X}")),
            }
            out
        });
    }
    let mut converted = Vec::with_capacity(2 * bytes.len());
    let text = match charset {
        Charset::Latin1 => {
            charset.convert(bytes, Charset::Utf8mb4, &mut converted);
            &converted
        }
        _ => bytes,
    };
    let mut shown = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        shown.push_str(&chunk.valid().replace('\0', "\\0000"));
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02X}")));
    }
    shown
}

/// The start of bytes that are no text of a character set: at most six, ASCII as it is,
/// and dots if there are more.
pub fn printable_start(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for &byte in bytes.iter().take(6) {
        if (0x20..0x7f).contains(&byte) {
            shown.push(char::from(byte));
        } else {
            shown.push_str(&format!("\\x{byte:02X}"));
        }
    }
    if bytes.len() > 6 {
        shown.push_str("...");
    }
    shown
}
