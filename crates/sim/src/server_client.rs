//! One client of a simulated server: transfers, rows of its own, reads, definitions, KILL, and
//! connections that end without a word.

use crate::server_items::{
    ALL_ITEMS, ITEM_STRIDE, ITEMS_MAX, NOTES, NOTES_MAX, OF_ITEM, OF_NOTE, integer, items_of,
};
use crate::server_ledger::{ACCOUNTS, BALANCE, Items, Ledger, Transfer};
use crate::wire_client::{Answer, ClientError, Parameter, Row, Statement, WireClient};
use base::Random;
use runtime::net::Address;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The ledger is shared; it is never locked across a wait.
pub type SharedLedger = Arc<Mutex<Ledger>>;

/// Locks the ledger.
pub fn lock(ledger: &SharedLedger) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

type Outcome<T = ()> = Result<T, ClientError>;

/// A client with its connection.
pub struct ServerClient {
    number: usize,
    address: Address,
    ledger: SharedLedger,
    random: Random,
    connection: WireClient,
    prepared: BTreeMap<&'static str, Statement>,
}

fn number(value: i64) -> Parameter {
    Parameter::Number(value)
}

/// A statement with its parameters written into it.
fn substituted(sql: &str, parameters: &[Parameter]) -> String {
    let mut parts = sql.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, parameter) in parts.zip(parameters) {
        match parameter {
            Parameter::Number(number) => text.push_str(&number.to_string()),
            Parameter::Text(value) => text.push_str(&format!("'{value}'")),
        }
        text.push_str(part);
    }
    text
}

fn connect(address: &Address, random: &mut Random) -> Outcome<WireClient> {
    let mut connection = WireClient::connect(address, random.one_in(2))?;
    connection.query("USE bank")?;
    if random.one_in(3) {
        connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")?;
    }
    Ok(connection)
}

fn violation(error: &ClientError, what: &str) -> ! {
    panic!("violation: {what}: {error:?}")
}

impl ServerClient {
    /// Connects; called again and again until nobody kills the connection meanwhile.
    pub fn new(number: usize, address: Address, ledger: SharedLedger, mut random: Random) -> Self {
        let connection = loop {
            match connect(&address, &mut random) {
                Ok(connection) => break connection,
                Err(error) if is_kill(&error) => {}
                Err(error) => violation(&error, "a login"),
            }
        };
        lock(&ledger).connections[number] = connection.id;
        Self { number, address, ledger, random, connection, prepared: BTreeMap::new() }
    }

    /// Works until the seed has run its statements.
    pub fn run(mut self) {
        let pause_max_micros = *self.random.pick(&[1, 100, 2_000]);
        while lock(&self.ledger).statements_left > 0 {
            let pause = self.random.below(pause_max_micros);
            runtime::sleep(Duration::from_micros(pause));
            match self.step() {
                Ok(()) => {}
                Err(ClientError::Server { code: 1213 | 1205, .. }) => self.give_way(),
                Err(error) if is_kill(&error) => {
                    lock(&self.ledger).counts.lost += 1;
                    self.reconnect();
                }
                Err(error) => violation(&error, "a statement"),
            }
        }
    }

    /// A deadlock or a timeout: the transaction is rolled back and forgotten.
    fn give_way(&mut self) {
        lock(&self.ledger).counts.conflicts += 1;
        match self.connection.query("ROLLBACK") {
            Ok(_) => lock(&self.ledger).items[self.number].maybe = None,
            Err(error) if is_kill(&error) => self.reconnect(),
            Err(error) => violation(&error, "ROLLBACK"),
        }
    }

    /// Sends a statement, as text or prepared.
    fn run_sql(&mut self, sql: &'static str, parameters: &[Parameter]) -> Outcome<Answer> {
        let is_prepared = self.random.one_in(2);
        let mut ledger = lock(&self.ledger);
        ledger.statements_left -= 1;
        ledger.counts.statements += 1;
        ledger.counts.executed += u64::from(is_prepared);
        drop(ledger);
        if !is_prepared {
            return self.connection.query(&substituted(sql, parameters));
        }
        let statement = match self.prepared.get(sql) {
            Some(&statement) => statement,
            None => {
                let statement = self.connection.prepare(sql)?;
                assert_eq!(statement.parameters, parameters.len(), "violation: {sql}");
                self.prepared.insert(sql, statement);
                statement
            }
        };
        self.connection.execute(statement, parameters)
    }

    /// Sends a change that must change one row.
    fn change(&mut self, sql: &'static str, parameters: &[Parameter]) -> Outcome {
        self.change_rows(sql, parameters, 1)
    }

    /// Sends a change that must change so many rows.
    fn change_rows(&mut self, sql: &'static str, parameters: &[Parameter], rows: u64) -> Outcome {
        let answer = self.run_sql(sql, parameters)?;
        assert_eq!(answer.affected_rows, rows, "violation: {sql} {parameters:?}");
        Ok(())
    }

    fn step(&mut self) -> Outcome {
        if self.number == 0 && self.random.one_in(8) {
            return self.define();
        }
        match self.random.below(100) {
            0..=34 => self.transfer(),
            35..=64 => self.change_items(),
            65..=84 => self.read_items(),
            85..=91 => self.sum(),
            92..=93 => self.kill(),
            94..=95 => self.vanish(),
            _ => self.sum(),
        }
    }

    fn begin_transfer(&mut self) -> Outcome<(u64, Transfer)> {
        let source = self.random.below(ACCOUNTS);
        let target = (source + 1 + self.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let transfer = Transfer { source, target, amount: self.random.range(1..50) as i64 };
        let mut ledger = lock(&self.ledger);
        ledger.last_transfer += 1;
        let id = ledger.last_transfer;
        ledger.owners.insert(id, self.number);
        drop(ledger);
        self.run_sql("BEGIN", &[])?;
        let (from, to) = (number(source as i64), number(target as i64));
        let amount = number(transfer.amount);
        if self.random.one_in(3) {
            let sql = "SELECT balance FROM account WHERE id = ? FOR UPDATE";
            let answer = self.run_sql(sql, std::slice::from_ref(&from))?;
            assert_eq!(answer.rows.len(), 1, "violation: {sql}");
        }
        let take = "UPDATE account SET balance = balance - ? WHERE id = ?";
        self.change(take, &[amount.clone(), from.clone()])?;
        let give = "UPDATE account SET balance = balance + ? WHERE id = ?";
        self.change(give, &[amount.clone(), to.clone()])?;
        let insert = "INSERT INTO transfer VALUES (?, ?, ?, ?)";
        self.change(insert, &[number(id as i64), from, to, amount])?;
        Ok((id, transfer))
    }

    fn transfer(&mut self) -> Outcome {
        let (id, transfer) = self.begin_transfer()?;
        if self.random.one_in(10) {
            self.run_sql("ROLLBACK", &[])?;
            return Ok(());
        }
        lock(&self.ledger).under_way.insert(id, transfer);
        self.run_sql("COMMIT", &[])?;
        let mut ledger = lock(&self.ledger);
        ledger.under_way.remove(&id);
        ledger.transfers.insert(id, transfer);
        ledger.counts.commits += 1;
        Ok(())
    }

    /// One change of a row of its own; `items` are as the transaction sees them.
    fn change_item(&mut self, items: &mut Items, is_autocommit: bool) -> Outcome {
        let is_note = self.random.one_in(3);
        let (first, count, changes) =
            if is_note { (NOTES, NOTES_MAX, OF_NOTE) } else { (0, ITEMS_MAX, OF_ITEM) };
        let id = first + ITEM_STRIDE * self.number as i64 + self.random.below(count) as i64;
        let k = self.random.below(100) as i64;
        let body = "x".repeat(self.random.index(600));
        // The name ends with the length of the body, so that each tells of the other.
        let name = format!("n{id}-{}-{}", self.random.below(1_000_000), body.len());
        if is_note && self.random.one_in(4) {
            return self.change_notes(items, id, body, is_autocommit);
        }
        let (sql, parameters) = match items.get_mut(&id) {
            None => {
                items.insert(id, (k, name.clone()));
                (
                    changes.insert,
                    vec![number(id), number(k), Parameter::Text(name), Parameter::Text(body)],
                )
            }
            Some(item) if self.random.one_in(2) => {
                item.1 = name.clone();
                (changes.rename, vec![Parameter::Text(name), Parameter::Text(body), number(id)])
            }
            Some(item) if self.random.one_in(2) => {
                item.0 += 1;
                (changes.count, vec![number(id)])
            }
            Some(_) => {
                items.remove(&id);
                (changes.delete, vec![number(id)])
            }
        };
        if is_autocommit {
            lock(&self.ledger).items[self.number].maybe = Some(items.clone());
        }
        self.change(sql, &parameters)
    }

    /// Several rows without a primary key get another length in one statement.
    fn change_notes(
        &mut self,
        items: &mut Items,
        first: i64,
        body: String,
        is_autocommit: bool,
    ) -> Outcome {
        let last = first + self.random.below(NOTES_MAX) as i64;
        let mut changed = 0;
        for (id, item) in items.range_mut(first..=last) {
            *item = (item.0 + 1, format!("r{id}-{}", body.len()));
            changed += 1;
        }
        if is_autocommit {
            lock(&self.ledger).items[self.number].maybe = Some(items.clone());
        }
        let sql = "UPDATE note SET body = ?, name = CONCAT('r', id, '-', LENGTH(body)), k = k + 1 \
                   WHERE id BETWEEN ? AND ?";
        self.change_rows(sql, &[Parameter::Text(body), number(first), number(last)], changed)
    }

    fn change_items(&mut self) -> Outcome {
        let mut items = lock(&self.ledger).items[self.number].known.clone();
        if self.random.one_in(2) {
            self.change_item(&mut items, true)?;
        } else {
            self.run_sql("START TRANSACTION", &[])?;
            for _ in 0..1 + self.random.below(5) {
                self.change_item(&mut items, false)?;
            }
            if self.random.one_in(8) {
                self.run_sql("ROLLBACK", &[])?;
                return Ok(());
            }
            lock(&self.ledger).items[self.number].maybe = Some(items);
            self.run_sql("COMMIT", &[])?;
        }
        let mut ledger = lock(&self.ledger);
        ledger.items[self.number].acknowledge();
        ledger.counts.commits += 1;
        Ok(())
    }

    fn read_items(&mut self) -> Outcome {
        let known = lock(&self.ledger).items[self.number].known.clone();
        let choice = self.random.below(6);
        let (begin, count) = if choice >= 4 { (NOTES, NOTES_MAX) } else { (0, ITEMS_MAX) };
        let first = begin + ITEM_STRIDE * self.number as i64 + self.random.below(count) as i64;
        let (sql, last) = match choice {
            4 => {
                let sql = "SELECT id, k, name FROM note FORCE INDEX (id) WHERE id BETWEEN ? AND ?";
                (sql, first + 9)
            }
            5 => {
                let sql = "SELECT id, k, name FROM note FORCE INDEX (k) \
                           WHERE k >= 0 AND id BETWEEN ? AND ?";
                (sql, first + ITEMS_MAX as i64)
            }
            0 => ("SELECT id, k, name FROM item WHERE id BETWEEN ? AND ?", first),
            1 => ("SELECT id, k, name FROM item WHERE id >= ? AND id <= ? ORDER BY k", first + 9),
            2 => {
                let sql = "SELECT id, k, name FROM item FORCE INDEX (k) \
                           WHERE k >= 0 AND id BETWEEN ? AND ?";
                (sql, first + ITEMS_MAX as i64)
            }
            _ => {
                let sql = "SELECT id, k, name FROM item FORCE INDEX (name) \
                           WHERE name > 'n' AND id BETWEEN ? AND ?";
                (sql, first + ITEMS_MAX as i64)
            }
        };
        let answer = self.run_sql(sql, &[number(first), number(last)])?;
        let expected: Items =
            known.range(first..=last).map(|(id, item)| (*id, item.clone())).collect();
        assert_eq!(items_of(&answer.rows), expected, "violation: {sql} {first} {last}");
        Ok(())
    }

    fn sum(&mut self) -> Outcome {
        let answer = self.run_sql("SELECT COUNT(*), SUM(balance) FROM account", &[])?;
        let row = answer.rows.first().cloned().unwrap_or_default();
        let sums = (integer(&row, 0), integer(&row, 1));
        assert_eq!(sums, (ACCOUNTS as i64, ACCOUNTS as i64 * BALANCE), "violation: the sum");
        Ok(())
    }

    fn kill(&mut self) -> Outcome {
        let connections = lock(&self.ledger).connections.clone();
        let id = *self.random.pick(&connections);
        if id == 0 || id == self.connection.id {
            return Ok(());
        }
        let sql = match self.random.one_in(2) {
            true => format!("KILL QUERY {id}"),
            false => format!("KILL {id}"),
        };
        lock(&self.ledger).counts.kills += 1;
        match self.connection.query(&sql) {
            Ok(_) | Err(ClientError::Server { code: 1094, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Leaves without a word, in a transaction or with its COMMIT on the way.
    fn vanish(&mut self) -> Outcome {
        let (id, transfer) = self.begin_transfer()?;
        if self.random.one_in(2) {
            lock(&self.ledger).under_way.insert(id, transfer);
            self.connection.send_only("COMMIT")?;
        } else if self.random.one_in(2) {
            self.connection.send_only("SELECT balance FROM account FOR UPDATE")?;
        }
        lock(&self.ledger).counts.dropped += 1;
        self.reconnect();
        Ok(())
    }

    /// A new connection; then, once the old one has ended, what became of what it had sent.
    fn reconnect(&mut self) {
        let old = self.connection.id;
        let mut random = self.random.fork();
        loop {
            let fresh = connect(&self.address, &mut random);
            let settled = fresh.and_then(|fresh| {
                self.prepared.clear();
                self.connection = fresh;
                lock(&self.ledger).connections[self.number] = self.connection.id;
                self.await_end(old)?;
                self.settle()
            });
            match settled {
                Ok(()) => return,
                Err(error) if is_kill(&error) => {}
                Err(error) => violation(&error, "a new connection"),
            }
        }
    }

    fn await_end(&mut self, old: u32) -> Outcome {
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {old}");
        for _ in 0..10_000 {
            let answer = self.connection.query(&sql)?;
            if answer.rows.first().is_some_and(|row| integer(row, 0) == 0) {
                return Ok(());
            }
            runtime::sleep(Duration::from_millis(10));
        }
        panic!("violation: connection {old} does not end");
    }

    fn settle(&mut self) -> Outcome {
        let first = ITEM_STRIDE * self.number as i64;
        let last = first + ITEM_STRIDE - 1;
        let sql = format!("SELECT * FROM ({ALL_ITEMS}) i WHERE id BETWEEN {first} AND {last}");
        let items = items_of(&self.connection.query(&sql)?.rows);
        lock(&self.ledger).items[self.number].settle(items, "items after a lost connection");
        let mine = self.my_transfers();
        for id in mine {
            let sql = format!("SELECT id FROM transfer WHERE id = {id}");
            let answer = self.connection.query(&sql)?;
            lock(&self.ledger).settle_transfer(id, !answer.rows.is_empty());
        }
        if self.number == 0 {
            let found = definitions(&mut self.connection)?;
            lock(&self.ledger).definitions.settle(found, "definitions after a lost connection");
        }
        Ok(())
    }

    /// Transfers of this client whose COMMIT was not answered.
    fn my_transfers(&self) -> Vec<u64> {
        let ledger = lock(&self.ledger);
        let is_mine = |id: &&u64| ledger.owners.get(id) == Some(&self.number);
        ledger.under_way.keys().filter(is_mine).copied().collect()
    }

    /// Creates or drops a table or an index.
    fn define(&mut self) -> Outcome {
        let mut after = lock(&self.ledger).definitions.known;
        let sql = if self.random.one_in(2) {
            after.extra = !after.extra;
            match after.extra {
                true => "CREATE INDEX extra ON item (k, body(20))",
                false => "DROP INDEX extra ON item",
            }
        } else {
            match after.scratch {
                None => {
                    after.scratch = Some(0);
                    "CREATE TABLE scratch (id INT AUTO_INCREMENT PRIMARY KEY, v INT, KEY (v))"
                }
                Some(0) => {
                    after.scratch = Some(3);
                    "INSERT INTO scratch (v) VALUES (1), (2), (2)"
                }
                Some(_) if self.random.one_in(2) => {
                    after.scratch = Some(0);
                    "TRUNCATE TABLE scratch"
                }
                Some(_) => {
                    after.scratch = None;
                    "DROP TABLE scratch"
                }
            }
        };
        lock(&self.ledger).definitions.maybe = Some(after);
        match self.run_sql(sql, &[]) {
            Ok(_) => {}
            Err(ClientError::Server { code: 1213 | 1205, .. }) => {
                lock(&self.ledger).definitions.maybe = None;
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let mut ledger = lock(&self.ledger);
        ledger.definitions.acknowledge();
        ledger.counts.definitions += 1;
        Ok(())
    }
}

/// The definitions as the server shows them.
pub fn definitions(connection: &mut WireClient) -> Outcome<crate::server_ledger::Definitions> {
    let tables = connection.query("SHOW TABLES LIKE 'scratch'")?;
    let scratch = match tables.rows.is_empty() {
        true => None,
        false => {
            let answer = connection.query("SELECT COUNT(*) FROM scratch")?;
            answer.rows.first().map(|row| integer(row, 0) as u64)
        }
    };
    let indexes = connection.query("SHOW INDEX FROM item")?;
    let is_extra = |row: &Row| row.get(2).cloned().flatten().as_deref() == Some("extra");
    Ok(crate::server_ledger::Definitions { scratch, extra: indexes.rows.iter().any(is_extra) })
}

/// The connection was killed or lost, or its statement was interrupted.
fn is_kill(error: &ClientError) -> bool {
    matches!(error, ClientError::Lost | ClientError::Server { code: 1317 | 1927, .. })
}
