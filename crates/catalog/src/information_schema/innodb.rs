//! INNODB_TRX, INNODB_LOCKS, INNODB_LOCK_WAITS, and the last deadlock in words.
//!
//! A lock's id is `transaction:tree:hash of the key`; as in MariaDB only locks that somebody waits
//! for are shown. Values of text in a key cannot be read back from their weights and are shown as
//! the weights' bytes. A wait for the end of a transaction that has written a row has no lock of
//! its own: it is shown on no table.

use super::rows::index_name;
use super::{OpenTransaction, Process, Row, Scope, optional_text};
use crate::{Catalog, CatalogError, Privilege, Result, TableEntry};
use base::TreeId;
use engine_api::{DeadlockReport, Isolation, LockReport, LockedPart, TransactionReport};
use std::fmt::Write;
use std::sync::Arc;
use types::{DateTime, Timestamp, Value, ValueRef};

/// Ids of transactions that have only read begin here, as in MariaDB far above all others.
const READERS: u64 = 1 << 48;
/// Characters of a statement that are shown.
const QUERY_LENGTH: usize = 1024;
/// What one explicit lock takes, in bytes.
const LOCK_BYTES: u64 = 136;

fn level_name(level: Isolation) -> &'static str {
    match level {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

fn count(number: u64) -> Value {
    Value::UInt(number)
}

/// Who may see transactions and statements of others.
pub(super) fn check_privilege(scope: &Scope<'_>) -> Result<()> {
    match scope.user.global.has(Privilege::Process) {
        true => Ok(()),
        false => Err(CatalogError::PrivilegeNeeded("PROCESS")),
    }
}

/// The local time so many microseconds ago.
fn ago(scope: &Scope<'_>, micros: u64) -> Value {
    let now = scope.session.wall_clock_micros();
    let whole_second = (now - micros as i64).div_euclid(1_000_000) * 1_000_000;
    let local: DateTime = scope.session.time_zone().to_local(Timestamp(whole_second));
    Value::DateTime(local)
}

/// An index of a table, found by its tree.
struct Place {
    table: Arc<TableEntry>,
    index: usize,
}

impl Place {
    fn find(catalog: &Catalog, tree: TreeId) -> Option<Self> {
        for schema in catalog.schemas() {
            for table in schema.tables() {
                let indexes = &table.definition().indexes;
                if let Some(index) = indexes.iter().position(|index| index.tree == tree) {
                    return Some(Self { table: table.clone(), index });
                }
            }
        }
        None
    }

    fn table_name(&self) -> String {
        let definition = self.table.definition();
        format!("`{}`.`{}`", definition.schema, definition.name)
    }

    fn index_name(&self) -> String {
        index_name(&self.table.definition().indexes[self.index]).to_owned()
    }

    fn key_text(&self, key: &[u8]) -> String {
        if self.table.definition().hidden_row_id && self.index == 0 {
            return hexadecimal(key);
        }
        let values = self.table.layouts().indexes[self.index].values(key);
        let texts = values.iter().map(|(bytes, value)| value_text(bytes, value.as_ref()));
        texts.collect::<Vec<_>>().join(", ")
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = "0x".to_owned();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn value_text(bytes: &[u8], value: Option<&ValueRef<'_>>) -> String {
    match value {
        None => hexadecimal(bytes),
        Some(ValueRef::Null) => "NULL".to_owned(),
        Some(ValueRef::Int(number)) => number.to_string(),
        Some(ValueRef::UInt(number)) => number.to_string(),
        Some(ValueRef::Float(number)) => number.to_string(),
        Some(ValueRef::Double(number)) => number.to_string(),
        Some(ValueRef::Decimal(number)) => number.to_string(),
        Some(ValueRef::Date(date)) => format!("'{date}'"),
        Some(ValueRef::DateTime(time)) => format!("'{time}'"),
        Some(ValueRef::Time(time)) => format!("'{time}'"),
        Some(ValueRef::Bytes(text)) => match std::str::from_utf8(text) {
            Ok(text) => format!("'{}'", text.replace('\'', "\\'")),
            Err(_) => hexadecimal(text),
        },
        Some(ValueRef::Timestamp(_)) => hexadecimal(bytes),
    }
}

fn lock_id(lock: &LockReport) -> String {
    let key = lock.key.as_deref().unwrap_or_default();
    // FNV-1a: the same key has the same id in every report.
    let hash = key
        .iter()
        .fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{}:{}:{hash}", lock.transaction, lock.tree.get())
}

/// In the words of INNODB_LOCKS, which does not tell a record from a next-key lock.
fn mode_name(lock: &LockReport) -> &'static str {
    // Behind the last entry there is only a gap, of which it need not be said.
    let is_gap =
        matches!(lock.part, LockedPart::Gap | LockedPart::InsertIntention) && lock.key.is_some();
    match (lock.is_exclusive, is_gap) {
        (true, false) => "X",
        (true, true) => "X,GAP",
        (false, false) => "S",
        (false, true) => "S,GAP",
    }
}

fn lock_data(place: Option<&Place>, lock: &LockReport) -> Option<String> {
    match &lock.key {
        Some(key) => Some(place.map_or_else(|| hexadecimal(key), |place| place.key_text(key))),
        None if lock.tree == TreeId::default() => None,
        None => Some("supremum pseudo-record".to_owned()),
    }
}

pub(super) fn locks(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let report = scope.catalog.engine().locking();
    let row = |lock: &LockReport| {
        let place = Place::find(scope.catalog, lock.tree);
        vec![
            Value::text(lock_id(lock)),
            count(lock.transaction),
            Value::text(mode_name(lock)),
            Value::text("RECORD"),
            Value::text(place.as_ref().map(Place::table_name).unwrap_or_default()),
            optional_text(place.as_ref().map(Place::index_name)),
            count(u64::from(lock.tree.get())),
            Value::Null,
            Value::Null,
            optional_text(lock_data(place.as_ref(), lock)),
        ]
    };
    Ok(report.locks.iter().map(row).collect())
}

pub(super) fn lock_waits(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let report = scope.catalog.engine().locking();
    let row = |(wanted, blocking): &(usize, usize)| {
        let (wanted, blocking) = (&report.locks[*wanted], &report.locks[*blocking]);
        vec![
            count(wanted.transaction),
            Value::text(lock_id(wanted)),
            count(blocking.transaction),
            Value::text(lock_id(blocking)),
        ]
    };
    Ok(report.waits.iter().map(row).collect())
}

/// The columns of INNODB_TRX that differ between those who write and those who only read.
fn transaction_row(
    scope: &Scope<'_>,
    transaction: &TransactionReport,
    requested: Option<String>,
    process: Option<&Process>,
) -> Row {
    let waits = transaction.waiting_micros;
    let query = process.and_then(|process| process.info.as_ref());
    let query = query.map(|text| text.chars().take(QUERY_LENGTH).collect());
    let has_rows = u64::from(transaction.locks + transaction.modified > 0);
    let locks = transaction.locks + u64::from(waits.is_some());
    vec![
        count(transaction.id),
        Value::text(if waits.is_some() { "LOCK WAIT" } else { "RUNNING" }),
        ago(scope, transaction.age_micros),
        optional_text(requested),
        waits.map_or(Value::Null, |micros| ago(scope, micros)),
        count(transaction.weight),
        count(u64::from(transaction.connection)),
        optional_text(query),
        Value::text(if waits.is_some() { "starting index read" } else { "" }),
        count(u64::from(waits.is_some())),
        count(has_rows.max(u64::from(waits.is_some()))),
        count(locks),
        count(locks * LOCK_BYTES),
        count(locks),
        count(transaction.modified),
        count(0),
        Value::text(level_name(transaction.isolation)),
        Value::Int(1),
        Value::Int(1),
        Value::Null,
        Value::Int(0),
        Value::Int(0),
    ]
}

pub(super) fn transactions(scope: &Scope<'_>) -> Result<Vec<Row>> {
    check_privilege(scope)?;
    let report = scope.catalog.engine().locking();
    let processes = scope.session.processes();
    let of = |connection: u32| processes.iter().find(|it| it.id == u64::from(connection));
    let mut rows = Vec::new();
    for transaction in &report.transactions {
        let waits = |it: &&LockReport| it.transaction == transaction.id && !it.is_granted;
        let requested = report.locks.iter().find(waits).map(lock_id);
        rows.push(transaction_row(scope, transaction, requested, of(transaction.connection)));
    }
    // Those that have read and neither locked nor changed anything.
    for process in &processes {
        let is_listed = |it: &TransactionReport| u64::from(it.connection) == process.id;
        let Some(OpenTransaction { age_micros, isolation }) = process.transaction else { continue };
        if report.transactions.iter().any(is_listed) {
            continue;
        }
        let transaction = TransactionReport {
            id: READERS + process.id,
            connection: process.id as u32,
            isolation,
            age_micros,
            waiting_micros: None,
            locks: 0,
            modified: 0,
            weight: 0,
        };
        rows.push(transaction_row(scope, &transaction, None, Some(process)));
    }
    Ok(rows)
}

fn mode_words(lock: &LockReport) -> String {
    let mode = if lock.is_exclusive { "X" } else { "S" };
    let part = match lock.part {
        LockedPart::Record => " locks rec but not gap",
        LockedPart::Gap => " locks gap before rec",
        LockedPart::NextKey => "",
        LockedPart::InsertIntention => " locks gap before rec insert intention",
    };
    let waiting = if lock.is_granted { "" } else { " waiting" };
    format!("lock_mode {mode}{part}{waiting}")
}

fn push_lock(text: &mut String, catalog: &Catalog, lock: Option<&LockReport>) {
    let Some(lock) = lock else {
        text.push_str("the end of a transaction that has written a row\n\n");
        return;
    };
    let place = Place::find(catalog, lock.tree);
    let index = place.as_ref().map_or_else(|| format!("{}", lock.tree), Place::index_name);
    let table = place.as_ref().map_or_else(|| "(dropped)".to_owned(), Place::table_name);
    let _ = writeln!(
        text,
        "RECORD LOCKS space id {} index {index} of table {table} trx id {} {}\nRecord lock: {}\n",
        lock.tree.get(),
        lock.transaction,
        mode_words(lock),
        lock_data(place.as_ref(), lock).unwrap_or_default()
    );
}

/// The section of SHOW ENGINE INNODB STATUS below its title and time.
pub fn deadlock_text(catalog: &Catalog, report: &DeadlockReport) -> String {
    let mut text = String::new();
    for (number, member) in report.members.iter().enumerate() {
        let transaction = &member.transaction;
        let _ = writeln!(
            text,
            "*** ({}) TRANSACTION:\nTRANSACTION {}, ACTIVE {} sec starting index read\n\
             mysql tables in use 1, locked 1\n\
             LOCK WAIT {} lock struct(s), heap size {}, {} row lock(s), undo log entries {}\n\
             MariaDB thread id {}\n{}",
            number + 1,
            transaction.id,
            transaction.age_micros / 1_000_000,
            transaction.locks + 1,
            (transaction.locks + 1) * LOCK_BYTES,
            transaction.locks + 1,
            transaction.modified,
            transaction.connection,
            String::from_utf8_lossy(&member.statement)
        );
        text.push_str("*** WAITING FOR THIS LOCK TO BE GRANTED:\n");
        push_lock(&mut text, catalog, member.wanted.as_ref());
        text.push_str("*** CONFLICTING WITH:\n");
        push_lock(&mut text, catalog, member.conflicting.as_ref());
    }
    let _ = writeln!(text, "*** WE ROLL BACK TRANSACTION ({})", report.victim + 1);
    text
}
