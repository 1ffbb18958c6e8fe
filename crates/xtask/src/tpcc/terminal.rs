//! A client's connection: the same statement as text or prepared.

use sqltest::client::{Answer, Connection, Field, Prepared};
use sqltest::parameter::Parameter;
use std::collections::BTreeMap;

/// Why a transaction does not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Deadlock, conflict or timeout, by its number: it is to be begun anew.
    Again(u16),
    /// The connection is gone.
    Lost(String),
    /// An answer that must not be.
    Wrong(String),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Again(code) => write!(f, "error {code}"),
            Self::Lost(message) | Self::Wrong(message) => f.write_str(message),
        }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::Lost(error.to_string())
    }
}

/// Result of a step.
pub(crate) type Step<T> = Result<T, Stop>;

/// A connection that sends text, or prepares every statement once.
pub(crate) struct Terminal {
    connection: Connection,
    prepared: Option<BTreeMap<String, Prepared>>,
}

impl Terminal {
    pub(crate) fn new(connection: Connection, prepares: bool) -> Self {
        Self { connection, prepared: prepares.then(BTreeMap::new) }
    }

    /// Runs a statement with its parameters in the places of `?`.
    pub(crate) fn run(&mut self, sql: &str, parameters: &[&str]) -> Step<Vec<Vec<Field>>> {
        let answer = match &mut self.prepared {
            None => self.connection.query_one(&with_values(sql, parameters))?,
            Some(prepared) => {
                if !prepared.contains_key(sql) {
                    let made = self.connection.prepare(sql)?;
                    let made = made.map_err(|e| Stop::Wrong(format!("{sql}: {}", e.message)))?;
                    prepared.insert(sql.to_string(), made);
                }
                let values: Vec<Parameter> = parameters.iter().map(|p| typed(p)).collect();
                self.connection.execute_typed(&prepared[sql], 0, &values)?
            }
        };
        match answer {
            Answer::Done(_) => Ok(Vec::new()),
            Answer::Rows { rows, .. } => Ok(rows),
            Answer::Error(error) if matches!(error.code, 1020 | 1213 | 1205) => {
                Err(Stop::Again(error.code))
            }
            Answer::Error(error) => {
                Err(Stop::Wrong(format!("{sql}: {} {}", error.code, error.message)))
            }
        }
    }

    /// The only row.
    pub(crate) fn row(&mut self, sql: &str, parameters: &[&str]) -> Step<Vec<Field>> {
        let mut rows = self.run(sql, parameters)?;
        match rows.pop() {
            Some(row) if rows.is_empty() => Ok(row),
            _ => Err(Stop::Wrong(format!("{sql} {parameters:?}: not one row"))),
        }
    }

    /// BEGIN, COMMIT, ROLLBACK, SET.
    pub(crate) fn command(&mut self, sql: &str) -> Step<()> {
        match self.connection.query_one(sql)? {
            Answer::Error(error) if matches!(error.code, 1020 | 1213 | 1205) => {
                Err(Stop::Again(error.code))
            }
            Answer::Error(error) => {
                Err(Stop::Wrong(format!("{sql}: {} {}", error.code, error.message)))
            }
            _ => Ok(()),
        }
    }
}

/// A number as a driver binds it, anything else as a string.
fn typed(value: &str) -> Parameter {
    let kind = match (value.parse::<i64>(), value.parse::<f64>()) {
        (Ok(_), _) => "bigint",
        (_, Ok(_)) => "decimal",
        _ => "string",
    };
    let parameter = Parameter::parse(&format!("{kind}:{value}"));
    parameter.unwrap_or_else(|_| Parameter::text(Some(value.as_bytes())))
}

/// The text with values: numbers as they are, anything else quoted.
fn with_values(sql: &str, parameters: &[&str]) -> String {
    let mut pieces = sql.split('?');
    let mut text = pieces.next().unwrap_or_default().to_string();
    for (piece, value) in pieces.zip(parameters) {
        if value.parse::<f64>().is_ok() {
            text += value;
        } else {
            text += &format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"));
        }
        text += piece;
    }
    text
}

/// A field's text; empty for NULL.
pub(crate) fn text(field: &Field) -> String {
    String::from_utf8_lossy(field.as_deref().unwrap_or_default()).into_owned()
}

/// A field that is a whole number.
pub(crate) fn number(field: &Field) -> Step<u64> {
    text(field).parse().map_err(|_| Stop::Wrong(format!("{:?} is not a number", text(field))))
}

/// A DECIMAL with two places, in cents.
pub(crate) fn cents(field: &Field) -> Step<u64> {
    let text = text(field);
    text.replace('.', "").parse().map_err(|_| Stop::Wrong(format!("{text} is not an amount")))
}

/// Cents as a DECIMAL.
pub(crate) fn amount(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_places() {
        assert_eq!(with_values("a = ? AND b = ?", &["1", "it's"]), "a = 1 AND b = 'it\\'s'");
        assert_eq!(cents(&Some(b"12.30".to_vec())).unwrap(), 1230);
        assert_eq!(amount(1205), "12.05");
    }
}
