//! Set-up and full check of a simulated server, through the protocol.

use crate::server_client::{SharedLedger, definitions, lock};
use crate::server_items::{ALL_ITEMS, ITEM_STRIDE, integer, items_of};
use crate::server_ledger::{ACCOUNTS, BALANCE, Items, Transfer};
use crate::wire_client::{Row, WireClient};
use runtime::net::Address;
use std::collections::BTreeMap;

const TABLES: [&str; 4] = [
    "CREATE TABLE IF NOT EXISTS account (id INT PRIMARY KEY, balance BIGINT NOT NULL, \
     twice BIGINT AS (balance * 2) VIRTUAL, KEY balance (balance), KEY twice (twice))",
    "CREATE TABLE IF NOT EXISTS transfer (id BIGINT PRIMARY KEY, source INT NOT NULL, \
     target INT NOT NULL, amount INT NOT NULL, KEY source (source), KEY target (target, amount)) \
     PAGE_COMPRESSED=1 PAGE_COMPRESSION_ALGORITHM='snappy'",
    "CREATE TABLE IF NOT EXISTS item (id INT PRIMARY KEY, k INT NOT NULL, \
     name VARCHAR(40) NOT NULL, body VARCHAR(1000), sum INT AS (k + id) VIRTUAL, \
     size INT AS (LENGTH(name)) STORED, KEY k (k), UNIQUE KEY name (name), KEY sum (sum, size)) \
     PAGE_COMPRESSED=1 PAGE_COMPRESSION_ALGORITHM='zlib' PAGE_COMPRESSION_LEVEL=1",
    // No primary key: rows are known by a number that no statement shows.
    "CREATE TABLE IF NOT EXISTS note (id INT NOT NULL, k INT NOT NULL, name VARCHAR(40) NOT NULL, \
     body VARCHAR(1000), KEY id (id), KEY k (k)) \
     PAGE_COMPRESSED=1 PAGE_COMPRESSION_ALGORITHM='lzo'",
];

/// A connection for set-up and checks: every statement must succeed.
struct Sure(WireClient);

impl Sure {
    fn new(address: &Address) -> Self {
        let client = WireClient::connect(address, false);
        Self(client.unwrap_or_else(|error| panic!("violation: login: {error:?}")))
    }

    fn rows(&mut self, sql: &str) -> Vec<Row> {
        let answer = self.0.query(sql);
        answer.unwrap_or_else(|error| panic!("violation: {sql}: {error:?}")).rows
    }
}

/// Creates what is missing: the set-up of a former life may have been cut off anywhere.
pub fn set_up(address: &Address, ledger: &SharedLedger) {
    if lock(ledger).is_set_up {
        return;
    }
    let mut sure = Sure::new(address);
    sure.rows("CREATE DATABASE IF NOT EXISTS bank");
    sure.rows("USE bank");
    for table in TABLES {
        sure.rows(table);
    }
    let count = integer(&sure.rows("SELECT COUNT(*) FROM account")[0], 0);
    if count == 0 {
        let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
        sure.rows(&format!("INSERT INTO account (id, balance) VALUES {}", rows.join(", ")));
    } else {
        assert_eq!(count, ACCOUNTS as i64, "violation: half of a statement is there");
    }
    lock(ledger).is_set_up = true;
}

/// Checks everything against the ledger while no client works; what was under way is settled.
pub fn check_all(address: &Address, ledger: &SharedLedger) {
    if !lock(ledger).is_set_up {
        return;
    }
    let mut sure = Sure::new(address);
    sure.rows("USE bank");
    check_transfers(&mut sure, ledger);
    check_items(&mut sure, ledger);
    let found = definitions(&mut sure.0);
    let found = found.unwrap_or_else(|error| panic!("violation: definitions: {error:?}"));
    lock(ledger).definitions.settle(found, "definitions");
    let scratch = if found.scratch.is_some() { &["scratch"][..] } else { &[] };
    for table in ["account", "transfer", "item", "note"].iter().chain(scratch) {
        check_indexes(&mut sure, table);
    }
    check_generated(&mut sure, "account", "twice", "balance * 2");
    check_generated(&mut sure, "item", "sum", "k + id");
    check_generated(&mut sure, "item", "size", "LENGTH(name)");
    lock(ledger).counts.checks += 1;
}

/// A generated column has its value, in rows and in the index over it.
fn check_generated(sure: &mut Sure, table: &str, column: &str, value: &str) {
    let own = format!("SELECT SUM({value}), COUNT(*) FROM {table} FORCE INDEX (PRIMARY)");
    let own = sure.rows(&own);
    for index in ["PRIMARY", if column == "size" { "sum" } else { column }] {
        let condition = if index == "PRIMARY" { "1" } else { &format!("{index} > -2147483648") };
        let sql = format!(
            "SELECT SUM({column}), COUNT(*) FROM {table} FORCE INDEX ({index}) WHERE {condition}"
        );
        assert_eq!(sure.rows(&sql), own, "violation: {sql}");
    }
}

fn check_transfers(sure: &mut Sure, ledger: &SharedLedger) {
    let transfer = |row: &Row| {
        let field = |place| integer(row, place);
        let transfer =
            Transfer { source: field(1) as u64, target: field(2) as u64, amount: field(3) };
        (field(0) as u64, transfer)
    };
    let rows = sure.rows("SELECT id, source, target, amount FROM transfer");
    let found: BTreeMap<u64, Transfer> = rows.iter().map(transfer).collect();
    lock(ledger).settle_transfers(&found);
    let balances = sure.rows("SELECT id, balance FROM account ORDER BY id");
    let balances: Vec<i64> = balances.iter().map(|row| integer(row, 1)).collect();
    let expected = lock(ledger).balances();
    assert_eq!(balances, expected, "violation: balances do not follow from the transfers");
    let sum: i64 = balances.iter().sum();
    assert_eq!(sum, ACCOUNTS as i64 * BALANCE, "violation: the sum");
}

fn check_items(sure: &mut Sure, ledger: &SharedLedger) {
    let mut all = items_of(&sure.rows(ALL_ITEMS));
    for table in ["item", "note"] {
        let sql = format!("SELECT * FROM {table} WHERE name NOT LIKE CONCAT('%-', LENGTH(body))");
        assert!(sure.rows(&sql).is_empty(), "violation: {sql}");
    }
    let clients = lock(ledger).items.len();
    for client in 0..clients {
        let rest = all.split_off(&(ITEM_STRIDE * (client as i64 + 1)));
        let mut ledger = lock(ledger);
        let is_change =
            ledger.items[client].maybe.as_ref() == Some(&all) && ledger.items[client].known != all;
        ledger.counts.happened += u64::from(is_change);
        ledger.items[client].settle(all, "items");
        all = rest;
    }
    assert_eq!(all, Items::new(), "violation: rows of nobody");
}

/// Every index has the rows that the table has, and CHECK TABLE finds nothing.
fn check_indexes(sure: &mut Sure, table: &str) {
    let mut indexes: Vec<(String, String)> = Vec::new();
    for row in sure.rows(&format!("SHOW INDEX FROM {table}")) {
        let text = |place: usize| row.get(place).cloned().flatten().unwrap_or_default();
        if text(3) == "1" {
            indexes.push((text(2), text(4)));
        }
    }
    assert!(!indexes.is_empty(), "violation: {table} has no index");
    let clustered = if table == "note" { "IGNORE INDEX (id, k)" } else { "FORCE INDEX (PRIMARY)" };
    let all = sure.rows(&format!("SELECT COUNT(*), SUM(id) FROM {table} {clustered}"));
    for (index, column) in indexes {
        let low = if column == "name" { "''" } else { "-2147483648" };
        let sql = format!(
            "SELECT COUNT(*), SUM(id) FROM {table} FORCE INDEX ({index}) WHERE {column} >= {low}"
        );
        assert_eq!(sure.rows(&sql), all, "violation: {sql}");
    }
    for row in sure.rows(&format!("CHECK TABLE {table}")) {
        let text = row.last().cloned().flatten().unwrap_or_default();
        assert_eq!(text, "OK", "violation: CHECK TABLE {table}: {row:?}");
    }
}

/// SHUTDOWN.
pub fn shut_down(address: &Address) {
    Sure::new(address).rows("SHUTDOWN");
}
