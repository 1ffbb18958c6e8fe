//! The clients of a table: one inserts at the end, one deletes at the begin, one asks.

use super::rows::{self, REGISTERS, Row, Statement, number, price_max};
use super::{Asked, Options, Step, Table};
use crate::client::{Failure, Value};
use crate::driver::session::Session;
use crate::schedule::{Arrivals, Profile, Schedule};
use crate::workload::{self, Which};
use base::Random;
use runtime::{Instant, WaitClass};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long one that deletes waits for one that inserts, at most.
const WAIT: Duration = Duration::from_secs(1);

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Insert,
    Delete,
    Query,
}

impl Role {
    /// Names of the operations, by number.
    pub(super) const NAMES: [&'static str; 3] = ["insert", "delete", "query"];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A query that was decided.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Query {
    /// The row at this share of the table.
    Point(f64),
    Market(f64),
    Register(u64, f64),
    PriceDate(f64),
}

/// See the module.
pub(super) struct Client {
    step: Step,
    tables: Arc<[Table]>,
    table: usize,
    role: Role,
    random: Random,
    rows: Vec<Row>,
    query: Query,
}

impl Client {
    pub(super) fn new(
        options: &Options,
        tables: Arc<[Table]>,
        table: usize,
        role: Role,
        which: Which,
    ) -> Self {
        let random = which.random(options.seed);
        let query = Query::Point(0.0);
        Self { step: options.step, tables, table, role, random, rows: Vec::new(), query }
    }

    fn shared(&self) -> &Table {
        &self.tables[self.table]
    }

    fn draw_query(&mut self, asked: Asked) -> Query {
        if asked == Asked::Points {
            return Query::Point(self.random.fraction());
        }
        let price = self.random.fraction() * price_max();
        match self.random.below(3) {
            0 => Query::Market(price),
            1 => Query::Register(self.random.below(REGISTERS), price),
            _ => Query::PriceDate(price),
        }
    }

    fn insert(&self, session: &mut Session) -> Result<(), Failure> {
        let first = self.shared().end.load(Relaxed);
        let moments: Vec<String> = (first..).take(self.rows.len()).map(rows::moment).collect();
        let rows = self.rows.iter().zip(&moments).zip(first..);
        let values: Vec<Value<'_>> =
            rows.flat_map(|((row, moment), id)| row.values(id, moment)).collect();
        session.run(number(Statement::Insert, self.table), &values)?;
        self.shared().end.store(first + self.rows.len() as u64, Relaxed);
        self.shared().inserted.fetch_add(1, Relaxed);
        self.shared().grown.wake_all();
        Ok(())
    }

    fn delete(&self, session: &mut Session) -> Result<(), Failure> {
        let first = self.shared().first.load(Relaxed);
        let end = first + self.step.rows();
        session.run(number(Statement::Delete, self.table), &[first.into(), end.into()])?;
        self.shared().first.store(end, Relaxed);
        self.shared().deleted.fetch_add(1, Relaxed);
        Ok(())
    }

    fn ask(&self, session: &mut Session) -> Result<(), Failure> {
        let (statement, values) = match self.query {
            Query::Point(share) => {
                let shared = self.shared();
                let (first, end) = (shared.first.load(Relaxed), shared.end.load(Relaxed));
                let id = first + (end.saturating_sub(first) as f64 * share) as u64;
                (Statement::Point, vec![id.into()])
            }
            Query::Market(price) => (Statement::Market, vec![Value::Double(price)]),
            Query::PriceDate(price) => (Statement::PriceDate, vec![Value::Double(price)]),
            Query::Register(register, price) => {
                (Statement::Register, vec![register.into(), Value::Double(price)])
            }
        };
        session.run(number(statement, self.table), &values).map(drop)
    }

    /// The interval of the ids that are there; empty at 0 for a table without rows.
    fn interval(&self, session: &mut Session) -> Result<(u64, u64), Failure> {
        let mut found = (0, 0);
        session.execute(number(Statement::Interval, self.table), &[], |row| {
            let value = |column| row.integer(column).unwrap_or(1) as u64;
            found = (value(0), value(1));
            Ok(())
        })?;
        Ok(found)
    }
}

impl workload::Client for Client {
    fn schedule(&self) -> Option<Schedule> {
        match self.step {
            Step::Query { rate, .. } if self.role != Role::Query => {
                let transactions = rate as f64 / self.step.rows() as f64;
                Some(Schedule::new(Arrivals::Uniform, Profile::constant(transactions), 0))
            }
            _ => None,
        }
    }

    /// One that deletes keeps behind one that inserts, unless nothing is inserted any more: a run
    /// that is given up must not wait for its end.
    fn wait(&mut self, end: Instant) {
        if self.role != Role::Delete {
            return;
        }
        let shared = self.shared();
        let grown = || shared.deleted.load(Relaxed) < shared.inserted.load(Relaxed);
        let until = end.min(runtime::now() + WAIT);
        shared.grown.wait_until(WaitClass::Other, Some(until), grown);
    }

    fn connected(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let (first, end) = self.interval(&mut sessions[0])?;
        let shared = self.shared();
        // What a lost connection left behind is known again by asking.
        match self.role {
            Role::Insert => shared.end.store(end, Relaxed),
            Role::Delete => shared.first.store(first, Relaxed),
            Role::Query if shared.end.load(Relaxed) == 0 => {
                shared.first.store(first, Relaxed);
                shared.end.store(end, Relaxed);
            }
            Role::Query => {}
        }
        Ok(())
    }

    fn decided(&self) -> String {
        match self.role {
            Role::Insert => format!("{:?}", self.rows),
            Role::Delete => String::new(),
            Role::Query => format!("{:?}", self.query),
        }
    }

    fn next(&mut self) -> usize {
        match (self.role, self.step) {
            (Role::Insert, step) => {
                self.rows = (0..step.rows()).map(|_| Row::draw(&mut self.random)).collect();
            }
            (Role::Query, Step::Query { asked, .. }) => self.query = self.draw_query(asked),
            _ => {}
        }
        self.role as usize
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let session = &mut sessions[0];
        match self.role {
            Role::Insert => self.insert(session),
            Role::Delete => self.delete(session),
            Role::Query => self.ask(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Client as _;

    fn client(step: Step, role: Role, number: u32) -> Client {
        let options = Options { tables: 2, table_size: 100, step, seed: 3 };
        let which = Which { number, turn: 0 };
        Client::new(&options, super::super::tables(&options), 0, role, which)
    }

    #[test]
    fn a_seed_and_a_number_decide_rows_and_queries() {
        let step = Step::Query { asked: Asked::Ranges, rate: 100 };
        let asked = |role, number| {
            let mut client = client(step, role, number);
            let one = |_| {
                client.next();
                (client.rows.clone(), client.query)
            };
            (0..50).map(one).collect::<Vec<_>>()
        };
        for role in [Role::Insert, Role::Query] {
            assert_eq!(asked(role, 1), asked(role, 1));
            assert_ne!(asked(role, 1), asked(role, 2));
        }
    }

    #[test]
    fn the_three_keys_are_asked_equally_often() {
        let step = Step::Query { asked: Asked::Ranges, rate: 100 };
        let (draws, mut client) = (30_000, client(step, Role::Query, 0));
        let mut counts = [0; 3];
        for _ in 0..draws {
            client.next();
            let kind = match client.query {
                Query::Market(_) => 0,
                Query::Register(..) => 1,
                _ => 2,
            };
            counts[kind] += 1;
        }
        for count in counts {
            assert!((f64::from(count) - f64::from(draws) / 3.0).abs() < 500.0, "{counts:?}");
        }
    }

    #[test]
    fn writers_of_a_query_step_keep_their_rate() {
        let step = Step::Query { asked: Asked::Points, rate: 100 };
        assert!(client(step, Role::Query, 0).schedule().is_none());
        let mut schedule = client(step, Role::Insert, 1).schedule().expect("one");
        // Ten rows each: ten transactions a second.
        assert_eq!(schedule.nth(99), Some(Duration::from_secs(10)));
        let step = Step::Insert { rows: 50 };
        assert!(client(step, Role::Delete, 1).schedule().is_none());
    }
}
