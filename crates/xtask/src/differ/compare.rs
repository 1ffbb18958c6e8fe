//! What two servers answered, compared: the first difference, by how much it matters.

use super::statements::{Kind, Statement};
use sqltest::client::{Answer, Column, Field};
use sqltest::render;
use std::collections::BTreeSet;
use std::fmt;

/// Answers to a statement: its own, and after a change the rows of the changed table.
pub type Reply = Result<Vec<Told>, String>;

/// One answer and its warnings (level, number, text).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The answer.
    pub answer: Answer,
    /// What SHOW WARNINGS said.
    pub warnings: Vec<[String; 3]>,
}

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

/// The first difference between Gannet's and MariaDB's replies.
pub fn difference(statement: &Statement, ours: &Reply, theirs: &[Told]) -> Option<Difference> {
    let Ok(ours) = ours else { return Some(Difference::Lost) };
    let ordered = statement.is_ordered() || statement.kind == Kind::Change;
    let pairs = || ours.iter().zip(theirs);
    pairs()
        .find_map(|(here, there)| answers(&here.answer, &there.answer, ordered))
        .or_else(|| pairs().find_map(|(here, there)| warnings(here, there, statement)))
}

fn answers(ours: &Answer, theirs: &Answer, ordered: bool) -> Option<Difference> {
    match (ours, theirs) {
        (Answer::Error(here), Answer::Error(there)) => {
            if here.code != there.code {
                return Some(Difference::Errors(here.code, there.code));
            }
            (here != there).then_some(Difference::ErrorText(here.code))
        }
        (Answer::Error(here), _) => Some(Difference::OnlyOurs(here.code)),
        (_, Answer::Error(there)) => Some(Difference::OnlyTheirs(there.code)),
        (Answer::Done(here), Answer::Done(there)) => {
            let same = here.affected_rows == there.affected_rows && here.info == there.info;
            (!same).then_some(Difference::Count)
        }
        (
            Answer::Rows { columns: our_columns, rows: our_rows, .. },
            Answer::Rows { columns, rows, .. },
        ) => self::rows(our_rows, rows, columns, ordered)
            .or_else(|| our_columns.iter().zip(columns).find_map(|(a, b)| column(a, b))),
        _ => Some(Difference::Form),
    }
}

type Row = Vec<Field>;

fn rows(ours: &[Row], theirs: &[Row], columns: &[Column], ordered: bool) -> Option<Difference> {
    if ours == theirs {
        return None;
    }
    if ours.len() != theirs.len() {
        return Some(Difference::Count);
    }
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let (sorted_ours, sorted_theirs) = (sorted(ours), sorted(theirs));
    if sorted_ours == sorted_theirs {
        return ordered.then_some(Difference::Order);
    }
    let (ours, theirs) =
        if ordered { (ours.to_vec(), theirs.to_vec()) } else { (sorted_ours, sorted_theirs) };
    let cells = ours.iter().zip(&theirs).flat_map(|(a, b)| a.iter().zip(b).zip(columns));
    let mut other = cells.filter(|((here, there), _)| here != there);
    let ((here, there), column) = other.next()?;
    Some(match here.is_some() == there.is_some() {
        true => Difference::Value(render::type_name(column.type_code)),
        false => Difference::Null,
    })
}

/// Lengths of text are not compared: no client needs them, and each function has its own.
fn is_text(column: &Column) -> bool {
    matches!(column.type_code, 15 | 249..=254)
}

/// What a column's description says of the column itself.
fn column(ours: &Column, theirs: &Column) -> Option<Difference> {
    // By these bits MariaDB notes for itself that a column is part of a key or grouped by.
    const INTERNAL: u16 = 16384 | 32768;
    let kind = render::type_name(theirs.type_code);
    if ours.type_code != theirs.type_code {
        return Some(Difference::Type(render::type_name(ours.type_code), kind));
    }
    let what = if ours.collation != theirs.collation {
        "collation"
    } else if ours.decimals != theirs.decimals {
        "decimals"
    } else if (ours.flags ^ theirs.flags) & 1 != 0 {
        "nullability"
    } else if (ours.flags ^ theirs.flags) & 32 != 0 {
        "sign"
    } else if (ours.flags ^ theirs.flags) & !INTERNAL != 0 {
        "flags"
    } else if ours.length != theirs.length && !is_text(theirs) {
        "length"
    } else if ours.name != theirs.name {
        "name"
    } else {
        return None;
    };
    Some(Difference::Column(what, kind))
}

/// Without a table warnings are compared one by one. With one their number depends on how often
/// a value is looked at, so each is compared once.
fn warnings(ours: &Told, theirs: &Told, statement: &Statement) -> Option<Difference> {
    if statement.kind == Kind::Query && !statement.root.sql().contains(" FROM t") {
        let same = ours.warnings.len() == theirs.warnings.len();
        let pairs = ours.warnings.iter().zip(&theirs.warnings);
        if same && pairs.clone().all(|(a, b)| a == b) {
            return None;
        }
    }
    let set = |told: &Told| -> BTreeSet<[String; 3]> { told.warnings.iter().cloned().collect() };
    let (here, there) = (set(ours), set(theirs));
    let extra = here.difference(&there).next().map(|warning| warning[1].clone());
    let missing = there.difference(&here).next().map(|warning| warning[1].clone());
    match (extra, missing) {
        (Some(extra), Some(missing)) if extra == missing => Some(Difference::WarningText(extra)),
        (_, Some(missing)) => Some(Difference::WarningMissing(missing)),
        (Some(extra), None) => Some(Difference::WarningExtra(extra)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Node, Role};
    use super::*;
    use sqltest::client::ServerError;

    fn column_of(type_code: u8) -> Column {
        Column {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: "c".into(),
            org_name: String::new(),
            collation: 63,
            length: 1,
            type_code,
            flags: 0,
            decimals: 0,
        }
    }

    fn told(values: &[Option<&str>], warnings: &[[&str; 3]]) -> Told {
        let rows = values.iter().map(|v| vec![v.map(|v| v.as_bytes().to_vec())]).collect();
        let columns = vec![column_of(3)];
        let warnings = warnings.iter().map(|w| w.map(String::from)).collect();
        Told { answer: Answer::Rows { columns, rows, status: 0, warnings: 0 }, warnings }
    }

    fn compare(ours: Told, theirs: Told) -> Option<String> {
        let root = Node::leaf(Role::Fixed, "SELECT a FROM t1");
        let statement = Statement { kind: Kind::Query, root, prepared: false };
        difference(&statement, &Ok(vec![ours]), &[theirs]).map(|it| it.to_string())
    }

    #[test]
    fn differences_are_named() {
        let one = || told(&[Some("1"), Some("2")], &[]);
        assert_eq!(compare(one(), one()), None);
        assert_eq!(compare(one(), told(&[Some("2"), Some("1")], &[])), None);
        let is = |theirs, text: &str| assert_eq!(compare(one(), theirs).as_deref(), Some(text));
        is(told(&[Some("1")], &[]), "count");
        is(told(&[Some("1"), None], &[]), "null");
        is(told(&[Some("1"), Some("3")], &[]), "value int");
        is(told(&[Some("1"), Some("2")], &[["Warning", "1292", "x"]]), "warning missing 1292");
        let error = ServerError { code: 1690, state: "22003".into(), message: "big".into() };
        let refused = Told { answer: Answer::Error(error), warnings: Vec::new() };
        is(refused.clone(), "error only there 1690");
        assert_eq!(compare(refused, one()).as_deref(), Some("error only here 1690"));
    }

    #[test]
    fn warnings_about_rows_are_a_set() {
        let warning = ["Warning", "1292", "x"];
        let often = told(&[], &[warning, warning]);
        assert_eq!(compare(often.clone(), told(&[], &[warning])), None);
        let other = told(&[], &[["Warning", "1292", "y"]]);
        assert_eq!(compare(often, other).as_deref(), Some("warning text 1292"));
    }
}
