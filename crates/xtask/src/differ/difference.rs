//! In what two answers differ.

use std::fmt;

/// In what two answers differ. Its text is what the rules of `explained.txt` name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The connection to Gannet broke.
    Lost,
    /// Only Gannet refuses, with this number.
    OnlyOurs(u16),
    /// Only MariaDB refuses, with this number.
    OnlyTheirs(u16),
    /// Both refuse with other numbers: Gannet's, MariaDB's.
    Errors(u16, u16),
    /// The error's SQLSTATE or text.
    ErrorText(u16),
    /// One answers rows, the other does not.
    Form,
    /// Number of rows, or of affected ones.
    Count,
    /// Text of an OK packet.
    Info,
    /// NULL here, a value there.
    Null,
    /// A value; the type is MariaDB's.
    Value(&'static str),
    /// Rows in another order.
    Order,
    /// Type of a column: Gannet's, MariaDB's.
    Type(&'static str, &'static str),
    /// Something else of a column's description, of a column of this type.
    Column(&'static str, &'static str),
    /// A warning of this number is missing.
    WarningMissing(String),
    /// Gannet warns with this number, MariaDB does not.
    WarningExtra(String),
    /// Warnings of this number have other texts or levels.
    WarningText(String),
}

impl Difference {
    /// What it is about: what a client computes with, how that is described, or what it is told.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Lost | Self::Form | Self::Count | Self::Null | Self::Value(_) | Self::Order => {
                "values and rows"
            }
            Self::OnlyOurs(_) | Self::OnlyTheirs(_) => "refused by one",
            Self::Type(..) | Self::Column(..) => "types and metadata",
            Self::Errors(..) | Self::ErrorText(_) => "errors",
            Self::Info | Self::WarningMissing(_) | Self::WarningExtra(_) | Self::WarningText(_) => {
                "warnings"
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => write!(out, "connection lost"),
            Self::OnlyOurs(code) => write!(out, "error only here {code}"),
            Self::OnlyTheirs(code) => write!(out, "error only there {code}"),
            Self::Errors(ours, theirs) => write!(out, "error here {ours} there {theirs}"),
            Self::ErrorText(code) => write!(out, "error text {code}"),
            Self::Form => write!(out, "form"),
            Self::Count => write!(out, "count"),
            Self::Info => write!(out, "info"),
            Self::Null => write!(out, "null"),
            Self::Value(kind) => write!(out, "value {kind}"),
            Self::Order => write!(out, "order"),
            Self::Type(ours, theirs) => write!(out, "type here {ours} there {theirs}"),
            Self::Column(what, kind) => write!(out, "column {what} of {kind}"),
            Self::WarningMissing(code) => write!(out, "warning missing {code}"),
            Self::WarningExtra(code) => write!(out, "warning extra {code}"),
            Self::WarningText(code) => write!(out, "warning text {code}"),
        }
    }
}
