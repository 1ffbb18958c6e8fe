//! One client: transactions of a few operations, noted as they are answered.

use super::Subject;
use super::workload::Step;
use crate::random::Random;
use history::{Operation, Outcome, Transaction};
use sqltest::client::{Answer, Connection, Field, Options};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Errors after which a transaction is rolled back and another one begun: deadlock, lock wait
/// timeout, MariaDB's write conflict.
const RETRY: [u16; 3] = [1213, 1205, 1020];

/// A client waits so long for a server that is being started.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients have in common.
pub(crate) struct Shared {
    pub(crate) port: u16,
    pub(crate) subject: &'static Subject,
    pub(crate) seed: u64,
    /// Transactions to be begun.
    pub(crate) wanted: u64,
    clock: Instant,
    begun: AtomicU64,
    /// Unique elements and values.
    pub(crate) next_element: AtomicU64,
    done: Mutex<Vec<Transaction>>,
    fault: Mutex<Option<String>>,
    finished: AtomicU64,
    stopped: AtomicBool,
}

impl Shared {
    pub(crate) fn new(port: u16, subject: &'static Subject, wanted: u64, seed: u64) -> Self {
        Self {
            port,
            subject,
            seed,
            wanted,
            clock: Instant::now(),
            begun: AtomicU64::new(0),
            next_element: AtomicU64::new(1),
            done: Mutex::default(),
            fault: Mutex::default(),
            finished: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// All clients have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.finished.load(Ordering::SeqCst) == u64::from(super::CLIENTS)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// What ended a client that should have gone on.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn into_transactions(self) -> Vec<Transaction> {
        self.done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection, once the server is there.
    pub(crate) fn connect(&self) -> Result<Connection, String> {
        let begin = Instant::now();
        loop {
            let options =
                Options { read_timeout: Duration::from_secs(120), ..Options::local(self.port) };
            let opened = Connection::open(&options).and_then(|mut connection| {
                for statement in self.subject.settings() {
                    connection.execute(&statement)?;
                }
                Ok(connection)
            });
            match opened {
                Ok(connection) => return Ok(connection),
                Err(error) if begin.elapsed() > PATIENCE || self.stopped.load(Ordering::SeqCst) => {
                    return Err(format!("no connection: {error}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// Runs transactions until enough were begun by all.
pub(crate) fn run(shared: &Shared, number: u32) {
    if let Err(fault) = transactions(shared, number) {
        shared.stop();
        shared.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }
    shared.finished.fetch_add(1, Ordering::SeqCst);
}

fn transactions(shared: &Shared, number: u32) -> Result<(), String> {
    let mut random = Random::new(shared.seed ^ (u64::from(number) + 1) << 32);
    let mut connection = shared.connect()?;
    loop {
        let place = shared.begun.fetch_add(1, Ordering::SeqCst);
        if place >= shared.wanted || shared.stopped.load(Ordering::SeqCst) {
            return Ok(());
        }
        let steps = Step::transaction(shared, &mut random, place);
        let mut open = Open::new(shared, number);
        let is_rolled_back = random.below(20) == 0;
        let result = open.run(&mut connection, &steps, is_rolled_back);
        let transaction = open.end(shared);
        shared.done.lock().unwrap_or_else(PoisonError::into_inner).push(transaction);
        match result {
            Ok(()) => {}
            Err(Failure::Lost) => connection = shared.connect()?,
            Err(Failure::Refused(message)) => return Err(message),
        }
    }
}

/// Why a client cannot go on as it is.
enum Failure {
    /// The connection broke.
    Lost,
    /// An error that has no place here.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// A transaction that runs.
struct Open {
    transaction: Transaction,
}

impl Open {
    fn new(shared: &Shared, client: u32) -> Self {
        let outcome = Outcome::Aborted;
        let (begin_nanos, operations) = (shared.nanos(), Vec::new());
        let transaction = Transaction { client, outcome, begin_nanos, end_nanos: 0, operations };
        Self { transaction }
    }

    fn end(self, shared: &Shared) -> Transaction {
        Transaction { end_nanos: shared.nanos(), ..self.transaction }
    }

    fn run(
        &mut self,
        connection: &mut Connection,
        steps: &[Step],
        is_rolled_back: bool,
    ) -> Result<(), Failure> {
        if let ([step], false) = (steps, is_rolled_back)
            && step.is_one_statement()
        {
            return self.autocommit(connection, step);
        }
        connection.query_one("BEGIN")?;
        for step in steps {
            if !self.step(connection, step)? {
                connection.query_one("ROLLBACK")?;
                return Ok(());
            }
        }
        if is_rolled_back {
            connection.query_one("ROLLBACK")?;
            return Ok(());
        }
        self.transaction.outcome = Outcome::Unknown;
        self.settle(connection.query_one("COMMIT")?)
    }

    fn autocommit(&mut self, connection: &mut Connection, step: &Step) -> Result<(), Failure> {
        self.transaction.outcome = Outcome::Unknown;
        let text = &step.statements(0)[0];
        if let Some(written) = step.written() {
            self.transaction.operations.push(written);
            let answer = connection.query_one(text)?;
            return match &answer {
                Answer::Done(done) if done.affected_rows != 1 => Err(unreadable(text)),
                _ => self.settle(answer),
            };
        }
        match connection.query_one(text)? {
            Answer::Rows { rows, .. } => {
                let seen = step.read(&rows).ok_or_else(|| unreadable(text))?;
                self.transaction.operations.push(seen);
                self.transaction.outcome = Outcome::Committed;
                Ok(())
            }
            other => self.settle(other),
        }
    }

    /// Notes how a commit was answered.
    fn settle(&mut self, answer: Answer) -> Result<(), Failure> {
        match answer {
            Answer::Error(error) if RETRY.contains(&error.code) => {
                self.transaction.outcome = Outcome::Aborted;
                Ok(())
            }
            Answer::Error(error) => Err(refused(error.code, &error.message)),
            Answer::Done(_) | Answer::Rows { .. } => {
                self.transaction.outcome = Outcome::Committed;
                Ok(())
            }
        }
    }

    /// False when the server asks for a retry.
    fn step(&mut self, connection: &mut Connection, step: &Step) -> Result<bool, Failure> {
        let mut version = 0;
        for place in 0..step.statements(version).len() {
            let statements = step.statements(version);
            let text = &statements[place];
            if place + 1 == statements.len() {
                // Before it is sent: others may see it though nobody answers.
                self.transaction.operations.extend(step.written());
            }
            match connection.query_one(text)? {
                Answer::Rows { rows, .. } => {
                    let seen = step.read(&rows).ok_or_else(|| unreadable(text))?;
                    if let Operation::Register { version: seen, .. } = seen {
                        version = seen;
                    }
                    self.transaction.operations.push(seen);
                }
                Answer::Done(done) if done.affected_rows == 1 => {}
                Answer::Done(done) => {
                    let count = done.affected_rows;
                    return Err(Failure::Refused(format!("{text}: {count} rows were changed")));
                }
                Answer::Error(error) if RETRY.contains(&error.code) => return Ok(false),
                Answer::Error(error) => return Err(refused(error.code, &error.message)),
            }
        }
        Ok(true)
    }
}

fn refused(code: u16, message: &str) -> Failure {
    // 1053, 1927: the server stops, the connection is about to break.
    if matches!(code, 1053 | 1927) {
        return Failure::Lost;
    }
    Failure::Refused(format!("error {code}: {message}"))
}

/// A row that is always there is missing, or holds what nobody wrote.
fn unreadable(statement: &str) -> Failure {
    Failure::Refused(format!("{statement}: the answer makes no sense"))
}

/// A number of a result.
pub(crate) fn number(field: &Field) -> Option<u64> {
    std::str::from_utf8(field.as_deref()?).ok()?.parse().ok()
}
