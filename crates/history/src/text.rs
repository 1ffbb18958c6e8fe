//! Histories as text, a line a transaction, so that one can be kept and judged again:
//!
//! `CLIENT OUTCOME BEGIN END: OPERATION; OPERATION`, an operation being `append KEY ELEMENT`,
//! `list KEY [ELEMENT ELEMENT]`, `write KEY VALUE` or `register KEY VERSION VALUE`. Empty lines
//! and those that begin with `#` are left out.

use crate::transaction::{History, Operation, Outcome, Transaction};
use std::fmt;

const OUTCOMES: [(&str, Outcome); 3] = [
    ("committed", Outcome::Committed),
    ("aborted", Outcome::Aborted),
    ("unknown", Outcome::Unknown),
];

/// A transaction with its number, for people.
pub(crate) fn line(number: u32, transaction: &Transaction) -> String {
    format!("t{number}: {transaction}")
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append { key, element } => write!(out, "append {key} {element}"),
            Self::List { key, elements } => {
                let words: Vec<String> = elements.iter().map(u64::to_string).collect();
                write!(out, "list {key} [{}]", words.join(" "))
            }
            Self::Write { key, value } => write!(out, "write {key} {value}"),
            Self::Register { key, version, value } => {
                write!(out, "register {key} {version} {value}")
            }
        }
    }
}

impl fmt::Display for Transaction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = OUTCOMES.iter().find(|it| it.1 == self.outcome).map_or("", |it| it.0);
        let Self { client, begin_nanos, end_nanos, .. } = self;
        write!(out, "{client} {name} {begin_nanos} {end_nanos}:")?;
        for (place, operation) in self.operations.iter().enumerate() {
            write!(out, "{} {operation}", if place > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for History {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transactions.iter().try_for_each(|transaction| writeln!(out, "{transaction}"))
    }
}

impl History {
    /// Reads what [`fmt::Display`] prints. The error says which line is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let parsed = lines.map(|(place, line)| {
            transaction(line)
                .ok_or_else(|| format!("line {}: not a transaction: {line}", place + 1))
        });
        Ok(Self { transactions: parsed.collect::<Result<_, _>>()? })
    }
}

fn transaction(line: &str) -> Option<Transaction> {
    let (head, rest) = line.split_once(':')?;
    let mut words = head.split_whitespace();
    let client = words.next()?.parse().ok()?;
    let name = words.next()?;
    let outcome = OUTCOMES.iter().find(|it| it.0 == name)?.1;
    let (begin_nanos, end_nanos) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let parts = rest.split(';').map(str::trim).filter(|part| !part.is_empty());
    let operations = parts.map(operation).collect::<Option<_>>()?;
    Some(Transaction { client, outcome, begin_nanos, end_nanos, operations })
}

fn operation(text: &str) -> Option<Operation> {
    let (name, rest) = text.split_once(' ')?;
    let numbers: Vec<u64> = rest
        .split(|letter: char| letter.is_whitespace() || letter == '[' || letter == ']')
        .filter(|word| !word.is_empty())
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    match (name, numbers.as_slice()) {
        ("append", &[key, element]) => Some(Operation::Append { key, element }),
        ("list", [key, elements @ ..]) => {
            Some(Operation::List { key: *key, elements: elements.to_vec() })
        }
        ("write", &[key, value]) => Some(Operation::Write { key, value }),
        ("register", &[key, version, value]) => Some(Operation::Register { key, version, value }),
        _ => None,
    }
}
