//! A bank for tests that end servers: transfers between accounts that also change items, of which
//! there are more than the buffer pool holds. The clients keep a ledger of what the server
//! acknowledged. After each restart, with every row read:
//!
//! 1. every acknowledged transfer is in the history table;
//! 2. every transfer in the history was sent by a client, and its commit was sent too;
//! 3. each balance is the opening balance plus what the history says (nothing partial), and the
//!    sum of the balances is what it was;
//! 4. each item was changed as often as the history says, last by the transfer of which the
//!    history says so, and its body is, byte for byte, what that transfer wrote;
//! 5. the secondary indexes and the clustered one tell the same story, and CHECK TABLE agrees.

use crate::Outcome;
use crate::random::Random;
use sqltest::client::{Answer, Connection, Field, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ACCOUNTS: u64 = 200;
const OPENING_BALANCE: i64 = 1000;
const CLIENTS: u64 = 8;
/// Items inserted by one statement.
const ITEMS_A_STATEMENT: u64 = 100;
/// Longest body of an item.
const BODY_BYTES_MAX: u64 = 2000;
/// One transfer in so many changes items in many places, so that many pages get dirty.
const SWEEP_ONE_IN: u64 = 8;
const SWEEP_ITEMS: u64 = 6;

/// All codecs that a table can ask for, as its option names them.
pub const CODECS: [&str; 8] = ["none", "zlib", "lz4", "lzo", "lzma", "bzip2", "snappy", "zstd"];

/// What the clients know.
#[derive(Default)]
struct Ledger {
    /// Transfers whose COMMIT was answered with OK.
    acknowledged: BTreeSet<u64>,
    /// Transfers whose COMMIT was sent.
    sent: BTreeSet<u64>,
}

/// The bank: what its tables are like, and the ledger.
#[derive(Clone)]
pub struct Bank {
    items: u64,
    codec: String,
    ledger: Arc<Mutex<Ledger>>,
}

/// What a verification went through.
pub struct Verified {
    /// Transfers in the history.
    pub transfers: usize,
    /// Rows of all tables that were read and compared.
    pub rows: usize,
    /// Transfers that were acknowledged.
    pub acknowledged: usize,
}

/// Clients at work.
pub struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    /// Waits for the clients; they notice that the server is gone.
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            let _ = client.join();
        }
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What transfer `id` writes into an item (0: what the set-up did): words that compress and
/// letters that do not.
fn body(item: u64, id: u64) -> String {
    let mut random = Random::new(item.wrapping_mul(0x9e37_79b9) ^ (id << 20));
    let length = (100 + random.below(BODY_BYTES_MAX - 100)) as usize;
    let mut text = String::new();
    while text.len() < length {
        match random.below(3) {
            0 => text.push_str("the quick account of item and transfer, "),
            1 => text.push_str("Lorem ipsum dolor sit amet; "),
            _ => drop(write!(text, "{:016x} ", random.next())),
        }
    }
    text.truncate(length);
    text
}

fn connect(port: u16) -> std::io::Result<Connection> {
    Connection::open(&Options { database: "bank".into(), ..Options::local(port) })
}

/// The table option that asks for a codec.
pub fn codec_option(codec: &str) -> String {
    format!("PAGE_COMPRESSED=1 PAGE_COMPRESSION_ALGORITHM='{codec}'")
}

impl Bank {
    /// A bank with items of about 1 kB whose pages the codec compresses; `mixed`: all codecs in
    /// turn, changed by ALTER TABLE while the clients work.
    pub fn new(items: u64, codec: &str) -> Result<Bank, String> {
        if codec != "mixed" && !CODECS.contains(&codec) {
            return Err(format!("no codec '{codec}'; there are mixed {}", CODECS.join(" ")));
        }
        Ok(Bank { items, codec: codec.to_owned(), ledger: Arc::default() })
    }

    /// Makes and fills the tables.
    pub fn create(&self, port: u16) -> Outcome {
        let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
        let mut run = |sql: &str| connection.execute(sql).map(drop).map_err(|e| e.to_string());
        let option = codec_option(if self.codec == "mixed" { "lz4" } else { &self.codec });
        run("CREATE DATABASE bank")?;
        run(&format!(
            "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL, \
             note VARCHAR(100) NOT NULL, KEY balance_key (balance), KEY note_key (note)) {option}"
        ))?;
        run(&format!(
            "CREATE TABLE bank.history (id BIGINT UNSIGNED PRIMARY KEY, source INT NOT NULL, \
             target INT NOT NULL, amount BIGINT NOT NULL, KEY source_key (source), \
             KEY target_key (target)) {option}"
        ))?;
        run(&format!(
            "CREATE TABLE bank.item (id INT PRIMARY KEY, changes INT NOT NULL, \
             transfer BIGINT UNSIGNED NOT NULL, body TEXT NOT NULL, KEY transfer_key (transfer)) \
             {option}"
        ))?;
        run(&format!(
            "CREATE TABLE bank.item_history (item INT, changes INT, \
             transfer BIGINT UNSIGNED NOT NULL, PRIMARY KEY (item, changes)) {option}"
        ))?;
        for id in 0..ACCOUNTS {
            run(&format!(
                "INSERT INTO bank.account VALUES ({id}, {OPENING_BALANCE}, 'account {id}')"
            ))?;
        }
        for first in (0..self.items).step_by(ITEMS_A_STATEMENT as usize) {
            let items = first..(first + ITEMS_A_STATEMENT).min(self.items);
            let rows = items.map(|item| format!("({item}, 0, 0, '{}')", body(item, 0)));
            let rows: Vec<String> = rows.collect();
            run(&format!("INSERT INTO bank.item VALUES {}", rows.join(", ")))?;
        }
        Ok(())
    }

    /// Starts the clients. Transfers have numbers that no other round uses.
    pub fn start_load(&self, port: u16, round: u64, seed: u64) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |number: u64| {
            let (bank, stop) = (self.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut random = Random::new(seed ^ number);
                let mut id = (round * CLIENTS + number) << 32;
                // The connection ends with the server: any error ends this client.
                let _ = bank.transfers(port, &mut random, &mut id, &stop);
            })
        };
        let mut clients: Vec<_> = (0..CLIENTS).map(client).collect();
        if self.codec == "mixed" {
            let stop = stop.clone();
            clients.push(std::thread::spawn(move || {
                let _ = change_codecs(port, &mut Random::new(seed ^ CLIENTS), &stop);
            }));
        }
        Load { stop, clients }
    }

    fn transfers(
        &self,
        port: u16,
        random: &mut Random,
        id: &mut u64,
        stop: &AtomicBool,
    ) -> std::io::Result<()> {
        let mut connection = connect(port)?;
        while !stop.load(Ordering::Relaxed) {
            *id += 1;
            let statements = self.statements(random, *id);
            if !all_succeed(&mut connection, &statements)? {
                continue;
            }
            if random.below(20) == 0 {
                connection.execute("ROLLBACK")?;
                continue;
            }
            lock(&self.ledger).sent.insert(*id);
            if let Answer::Done(_) = connection.query_one("COMMIT")? {
                lock(&self.ledger).acknowledged.insert(*id);
            }
        }
        Ok(())
    }

    fn statements(&self, random: &mut Random, id: u64) -> Vec<String> {
        let (source, target) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let amount = random.below(50) as i64 + 1;
        let mut statements = vec![
            "BEGIN".to_string(),
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
            format!(
                "UPDATE account SET balance = balance + {amount}, note = 'transfer {id}' \
                 WHERE id = {target}"
            ),
            format!("INSERT INTO history VALUES ({id}, {source}, {target}, {amount})"),
        ];
        if self.items == 0 {
            return statements;
        }
        let count = if random.below(SWEEP_ONE_IN) == 0 { SWEEP_ITEMS } else { 1 };
        let items: BTreeSet<u64> = (0..count).map(|_| random.below(self.items)).collect();
        for item in items {
            statements.push(format!(
                "UPDATE item SET changes = changes + 1, transfer = {id}, body = '{}' \
                 WHERE id = {item}",
                body(item, id)
            ));
            statements.push(format!(
                "INSERT INTO item_history SELECT id, changes, transfer FROM item WHERE id = {item}"
            ));
        }
        statements
    }

    /// Checks the promises at the head of the file.
    pub fn verify(&self, port: u16) -> Result<Verified, String> {
        let ledger = lock(&self.ledger);
        let mut connection = connect(port).map_err(|e| e.to_string())?;
        let mut rows =
            |sql: &str| connection.execute(sql).map_err(|error| format!("{sql}: {error}"));
        let found = verify_transfers(&mut rows, &ledger)?;
        let items = verify_items(&mut rows, &found, self.items)?;
        let mut indexes = vec![
            ("account", "id", "balance_key"),
            ("account", "id", "note_key"),
            ("history", "id", "source_key"),
            ("history", "id", "target_key"),
        ];
        indexes.extend((self.items > 0).then_some(("item", "id", "transfer_key")));
        for (table, column, index) in indexes {
            let from = |hint: &str| format!("SELECT COUNT(*), SUM({column}) FROM {table} {hint}");
            let by_key = rows(&from("FORCE INDEX (PRIMARY)"))?;
            if by_key != rows(&from(&format!("FORCE INDEX ({index})")))? {
                return Err(format!("index {index} of {table} disagrees with the rows"));
            }
        }
        for row in rows("CHECK TABLE account, history, item, item_history")? {
            if row[3].as_deref() != Some(b"OK") {
                return Err(format!("CHECK TABLE: {row:?}"));
            }
        }
        Ok(Verified {
            transfers: found.len(),
            rows: found.len() + ACCOUNTS as usize + items,
            acknowledged: ledger.acknowledged.len(),
        })
    }
}

/// Changes the codec of one table after the other.
fn change_codecs(port: u16, random: &mut Random, stop: &AtomicBool) -> std::io::Result<()> {
    let mut connection = connect(port)?;
    while !stop.load(Ordering::Relaxed) {
        let table = ["item", "item_history", "history", "account"][random.below(4) as usize];
        let codec = CODECS[random.below(CODECS.len() as u64) as usize];
        connection.query_one(&format!("ALTER TABLE {table} {}", codec_option(codec)))?;
        std::thread::sleep(std::time::Duration::from_millis(20 + random.below(100)));
    }
    Ok(())
}

/// False when the server refused one with an error that asks for a retry; rolled back then.
fn all_succeed(connection: &mut Connection, statements: &[String]) -> std::io::Result<bool> {
    for statement in statements {
        if let Answer::Error(error) = connection.query_one(statement)? {
            if !matches!(error.code, 1213 | 1205 | 1412) {
                return Err(std::io::Error::other(error.message));
            }
            connection.execute("ROLLBACK")?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn number(field: &Field) -> Result<i64, String> {
    let text = field.as_deref().map(String::from_utf8_lossy).ok_or("NULL in the bank")?;
    text.parse().map_err(|_| format!("not a number: {text}"))
}

type Rows<'a> = dyn FnMut(&str) -> Result<Vec<Vec<Field>>, String> + 'a;

/// Promises 1 to 3; the transfers in the history.
fn verify_transfers(rows: &mut Rows<'_>, ledger: &Ledger) -> Result<BTreeSet<u64>, String> {
    let mut expected: BTreeMap<i64, i64> =
        (0..ACCOUNTS).map(|id| (id as i64, OPENING_BALANCE)).collect();
    let mut found = BTreeSet::new();
    for row in rows("SELECT id, source, target, amount FROM history")? {
        let (id, amount) = (number(&row[0])? as u64, number(&row[3])?);
        if !ledger.sent.contains(&id) {
            return Err(format!("transfer {id} is there, but its commit was never sent"));
        }
        found.insert(id);
        *expected.entry(number(&row[1])?).or_default() -= amount;
        *expected.entry(number(&row[2])?).or_default() += amount;
    }
    if let Some(lost) = ledger.acknowledged.difference(&found).next() {
        return Err(format!("transfer {lost} was acknowledged and is lost"));
    }
    let mut sum = 0;
    for row in rows("SELECT id, balance FROM account")? {
        let (id, balance) = (number(&row[0])?, number(&row[1])?);
        if expected.remove(&id) != Some(balance) {
            return Err(format!("account {id} has {balance}, the history says otherwise"));
        }
        sum += balance;
    }
    if !expected.is_empty() || sum != ACCOUNTS as i64 * OPENING_BALANCE {
        return Err(format!("{} accounts are missing, the sum is {sum}", expected.len()));
    }
    Ok(found)
}

/// Promise 4; how many rows of items and their history were read.
fn verify_items(
    rows: &mut Rows<'_>,
    transfers: &BTreeSet<u64>,
    items: u64,
) -> Result<usize, String> {
    // By item: how often it was changed, and by which transfer at last.
    let mut last: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let history = rows("SELECT item, changes, transfer FROM item_history ORDER BY item, changes")?;
    for row in &history {
        let item = number(&row[0])? as u64;
        let (changes, transfer) = (number(&row[1])? as u64, number(&row[2])? as u64);
        if !transfers.contains(&transfer) {
            return Err(format!("item {item} was changed by {transfer}, of which half is missing"));
        }
        let before = last.insert(item, (changes, transfer)).map_or(0, |(changes, _)| changes);
        if changes != before + 1 {
            return Err(format!("item {item}: after change {before} comes {changes}"));
        }
    }
    let mut read = 0;
    for first in (0..items).step_by(5000) {
        let sql = format!(
            "SELECT id, changes, transfer, body FROM item WHERE id >= {first} AND id < {} \
             ORDER BY id",
            first + 5000
        );
        for row in rows(&sql)? {
            let item = number(&row[0])? as u64;
            let seen = (number(&row[1])? as u64, number(&row[2])? as u64);
            let expected = last.get(&item).copied().unwrap_or_default();
            if seen != expected || item != read {
                return Err(format!(
                    "item {item} has {seen:?}, its history says {expected:?} (row {read})"
                ));
            }
            if row[3].as_deref() != Some(body(item, seen.1).as_bytes()) {
                return Err(format!("item {item}: the body is not what transfer {} wrote", seen.1));
            }
            read += 1;
        }
    }
    if read != items {
        return Err(format!("{read} items of {items} are there"));
    }
    Ok(read as usize + history.len())
}
