//! The tables, and what a transaction does to them.

use super::client::{Shared, number};
use crate::random::Random;
use history::{History, Operation, Outcome, Transaction};
use sqltest::client::Field;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Objects of each kind in use at a time.
const WINDOW: u64 = 6;

/// After so many transactions the window moves on by one object.
const TRANSACTIONS_PER_OBJECT: u64 = 25;

/// Rows of one INSERT or SELECT.
const ROWS: u64 = 500;

/// One operation of a transaction, as statements.
pub(crate) enum Step {
    /// Reads a list, perhaps locking it.
    List { key: u64, locks: bool },
    /// Appends to a list.
    Append { key: u64, element: u64 },
    /// Reads a register, perhaps locking it.
    Register { key: u64, locks: bool },
    /// Reads a register and replaces it by what the client computes.
    Replace { key: u64, value: u64 },
    /// Replaces a register in one statement.
    Write { key: u64, value: u64 },
}

impl Step {
    /// What a transaction does, the `place`th that is begun.
    pub(crate) fn transaction(shared: &Shared, random: &mut Random, place: u64) -> Vec<Self> {
        let count = 1 + random.below(5);
        (0..count).map(|_| Self::choose(shared, random, place)).collect()
    }

    fn choose(shared: &Shared, random: &mut Random, place: u64) -> Self {
        let key = place / TRANSACTIONS_PER_OBJECT + random.below(WINDOW) * random.below(2);
        let element = || shared.next_element.fetch_add(1, Ordering::Relaxed);
        let locks = random.below(8) == 0;
        match random.below(20) {
            0..6 => Self::List { key, locks },
            6..12 => Self::Append { key, element: element() },
            12..16 => Self::Register { key, locks },
            _ if shared.subject.keeps_updates() => Self::Replace { key, value: element() },
            _ => Self::Write { key, value: element() },
        }
    }

    /// Whether it can run without BEGIN and COMMIT.
    pub(crate) fn is_one_statement(&self) -> bool {
        !matches!(self, Self::Replace { .. })
    }

    /// The statements; `version` is what a first one has read.
    pub(crate) fn statements(&self, version: u64) -> Vec<String> {
        let lock = |locks: bool| if locks { " FOR UPDATE" } else { "" };
        match self {
            Self::List { key, locks } => {
                vec![format!(
                    "SELECT elements FROM isolation.lists WHERE id = {key}{}",
                    lock(*locks)
                )]
            }
            Self::Append { key, element } => vec![format!(
                "UPDATE isolation.lists SET elements = CONCAT(elements, ' {element}') \
                 WHERE id = {key}"
            )],
            Self::Register { key, locks } => vec![read_register(*key, lock(*locks))],
            Self::Replace { key, value } => vec![
                read_register(*key, ""),
                format!(
                    "UPDATE isolation.registers SET version = {}, value = {value} WHERE id = {key}",
                    version + 1
                ),
            ],
            Self::Write { key, value } => vec![format!(
                "UPDATE isolation.registers SET version = version + 1, value = {value} \
                 WHERE id = {key}"
            )],
        }
    }

    /// What its writing statement did.
    pub(crate) fn written(&self) -> Option<Operation> {
        match *self {
            Self::Append { key, element } => Some(Operation::Append { key, element }),
            Self::Replace { key, value } | Self::Write { key, value } => {
                Some(Operation::Write { key, value })
            }
            Self::List { .. } | Self::Register { .. } => None,
        }
    }

    /// What its reading statement showed.
    pub(crate) fn read(&self, rows: &[Vec<Field>]) -> Option<Operation> {
        match *self {
            Self::List { key, .. } => {
                Some(Operation::List { key, elements: elements(&rows.first()?[0])? })
            }
            Self::Register { key, .. } | Self::Replace { key, .. } => {
                let row = rows.first()?;
                let (version, value) = (number(&row[0])?, number(&row[1])?);
                Some(Operation::Register { key, version, value })
            }
            Self::Append { .. } | Self::Write { .. } => None,
        }
    }
}

fn read_register(key: u64, lock: &str) -> String {
    format!("SELECT version, value FROM isolation.registers WHERE id = {key}{lock}")
}

fn elements(field: &Field) -> Option<Vec<u64>> {
    let text = std::str::from_utf8(field.as_deref()?).ok()?;
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// Objects that the transactions can reach.
fn objects(shared: &Shared) -> u64 {
    shared.wanted / TRANSACTIONS_PER_OBJECT + WINDOW
}

/// Makes the tables: empty lists and registers in version 0.
pub(crate) fn create(shared: &Shared) -> Result<(), String> {
    let mut connection = shared.connect()?;
    let mut execute = |sql: &str| connection.execute(sql).map_err(|e| format!("{sql}: {e}"));
    execute("CREATE DATABASE isolation")?;
    execute(
        "CREATE TABLE isolation.lists (id BIGINT UNSIGNED PRIMARY KEY, elements TEXT NOT NULL) \
         ENGINE=InnoDB",
    )?;
    execute(
        "CREATE TABLE isolation.registers (id BIGINT UNSIGNED PRIMARY KEY, \
         version BIGINT NOT NULL, value BIGINT NOT NULL) ENGINE=InnoDB",
    )?;
    for first in (0..objects(shared)).step_by(ROWS as usize) {
        let keys = first..(first + ROWS).min(objects(shared));
        let rows = |row: fn(u64) -> String| keys.clone().map(row).collect::<Vec<_>>().join(", ");
        let lists = rows(|key| format!("({key}, '')"));
        execute(&format!("INSERT INTO isolation.lists VALUES {lists}"))?;
        let registers = rows(|key| format!("({key}, 0, 0)"));
        execute(&format!("INSERT INTO isolation.registers VALUES {registers}"))?;
    }
    Ok(())
}

/// The history of all clients, closed by a reader of everything.
pub(crate) fn finish(shared: Shared) -> Result<History, String> {
    let begin_nanos = shared.nanos();
    let mut connection = shared.connect()?;
    let mut query = |sql: &str| connection.execute(sql).map_err(|e| format!("{sql}: {e}"));
    let mut operations = Vec::new();
    query("BEGIN")?;
    for row in query("SELECT id, elements FROM isolation.lists")? {
        let list = number(&row[0]).zip(elements(&row[1]));
        let (key, elements) = list.ok_or(format!("a list is not one: {row:?}"))?;
        operations.push(Operation::List { key, elements });
    }
    for row in query("SELECT id, version, value FROM isolation.registers")? {
        let numbers: Option<Vec<u64>> = row.iter().map(number).collect();
        let Some(&[key, version, value]) = numbers.as_deref() else {
            return Err(format!("a register is not one: {row:?}"));
        };
        operations.push(Operation::Register { key, version, value });
    }
    query("COMMIT")?;
    let end_nanos = shared.nanos();
    let (client, outcome) = (super::CLIENTS, Outcome::Committed);
    let last = Transaction { client, outcome, begin_nanos, end_nanos, operations };
    let mut transactions = shared.into_transactions();
    let clients: BTreeSet<u32> = transactions.iter().map(|it| it.client).collect();
    if clients.len() < super::CLIENTS as usize {
        return Err(format!("only {} clients did anything", clients.len()));
    }
    transactions.push(last);
    Ok(History { transactions })
}
