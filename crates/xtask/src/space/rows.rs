//! Rows of the table, and statements that several connections share.

use super::{Subject, connect};
use crate::Outcome;
use crate::random::Random;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const ROWS_A_STATEMENT: u64 = 1000;
/// Characters of a group of digits with its hyphen.
const GROUP: usize = 12;
/// Groups that rows take theirs from; so many that a page has hardly any twice.
const GROUPS: usize = 1 << 17;

/// Makes rows faster than servers take them.
struct Rows {
    digits: String,
    count: u64,
}

impl Rows {
    fn new(count: u64) -> Self {
        let mut random = Random::new(count);
        let mut digits = String::with_capacity(GROUPS * GROUP);
        for _ in 0..GROUPS {
            let _infallible = write!(digits, "{:011}-", random.below(100_000_000_000));
        }
        Self { digits, count }
    }

    fn groups(&self, groups: usize, random: &mut Random) -> &str {
        let first = random.below((GROUPS - groups) as u64) as usize * GROUP;
        &self.digits[first..first + groups * GROUP]
    }

    /// The statement with the rows of this number, the same in every run.
    fn insert(&self, table: &str, number: u64) -> String {
        let mut random = Random::new(self.count ^ (number << 32));
        let first = number * ROWS_A_STATEMENT;
        let mut sql = format!("INSERT INTO {table} VALUES ");
        for id in first..(first + ROWS_A_STATEMENT).min(self.count) {
            let comma = if id == first { "" } else { "," };
            let k = random.below(self.count);
            let (c, pad) = (self.groups(10, &mut random), self.groups(4, &mut random));
            let _infallible = write!(sql, "{comma}({id},{k},'{c}','text of a row {pad}')");
        }
        sql
    }
}

impl Subject {
    /// Makes a table and fills it in the order of its key, nearly, as several connections do.
    pub(super) fn load(&mut self, table: &str, count: u64) -> Outcome {
        self.execute(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, k INT NOT NULL, c VARCHAR(120) NOT NULL, \
             pad VARCHAR(80) NOT NULL, KEY k (k))"
        ))?;
        let rows = Rows::new(count);
        let begin = Instant::now();
        let statements = count.div_ceil(ROWS_A_STATEMENT);
        self.share_out(statements, &|number| rows.insert(table, number))?;
        println!("{}: {count} rows in {:.1} s", self.name, begin.elapsed().as_secs_f64());
        Ok(())
    }

    /// Executes the statements of all numbers below the count, each by whichever connection is
    /// free.
    pub(super) fn share_out(&self, count: u64, sql: &(dyn Fn(u64) -> String + Sync)) -> Outcome {
        let next = AtomicU64::new(0);
        let client = || -> Outcome {
            let mut connection = connect(self.server.port, "space")?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let sql = sql(number);
                let shown = sql.get(..60).unwrap_or(&sql);
                let done = connection.execute(&sql);
                done.map_err(|error| format!("{}: {shown}: {error}", self.name))?;
            }
        };
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.connections).map(|_| scope.spawn(client)).collect();
            let mut ended = clients.into_iter().map(|client| client.join());
            ended.try_for_each(|ended| ended.unwrap_or_else(|_| Err("a client panicked".into())))
        })
    }
}
