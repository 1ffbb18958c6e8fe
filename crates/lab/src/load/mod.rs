//! Filling tables: in parallel, and resumed where it stopped.
//!
//! 1. The rows of a workload are divided into jobs. What a job inserts is decided by its number and
//!    the workload's seed alone (no clock: [`LOADED_AT_SECONDS`]), so jobs may run in any order, on
//!    any number of connections, today or tomorrow.
//! 2. A job is one transaction, and marks itself done in `gannet_lab_load` within it: after a crash
//!    every job is there whole or not at all, and those that are missing are done on resuming.
//! 3. The mark table belongs to one description of a workload; a load with another one begins from
//!    empty tables.
//! 4. What is done when all rows are there (indexes, foreign keys) cannot be in a transaction: on
//!    resuming it is done again, and that something is there already is no failure then.
//! 5. No empty INSERT is ever sent.
//! 6. A load that is asked to stop, or of which one job failed, begins no other job.

mod batch;
mod form;

pub use batch::Batch;
pub use form::{Keys, TableForm};

use crate::client::{Connection, Failure, Target};
use crate::driver::Stop;
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MARKS: &str = "gannet_lab_load";
/// A job that meets more conflicts one after the other fails.
const CONFLICTS_MAX: u32 = 20;

/// The moment of all rows that have one, in seconds since 1970: 2024-01-01 00:00:00. What is
/// changed later is later.
pub const LOADED_AT_SECONDS: u64 = 1_704_067_200;

/// No such database.
const UNKNOWN_DATABASE: u16 = 1049;

/// The tables and rows of a workload.
pub trait Loading: Send + Sync + 'static {
    /// Tells this load from others: the workload and what decides its rows.
    fn description(&self) -> String;

    /// What is said on every connection first.
    fn connected(&self) -> &'static str {
        "SET foreign_key_checks=0, unique_checks=0"
    }

    /// Makes the tables anew, without rows.
    fn begin(&self) -> Vec<String>;

    /// How many jobs there are.
    fn jobs(&self) -> u64;

    /// Inserts the rows of a job.
    fn job(&self, job: u64, batch: &mut Batch<'_>) -> Result<(), Failure>;

    /// What is done when all rows are there; statements of a group run at the same time.
    fn finish(&self) -> Vec<Vec<String>> {
        Vec::new()
    }
}

/// How a load goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Jobs done, those of before included.
    pub jobs_done: u64,
    /// All jobs.
    pub jobs: u64,
    /// Jobs that were done before.
    pub jobs_before: u64,
    /// Rows inserted now.
    pub rows: u64,
    /// Bytes of the statements that inserted them.
    pub bytes: u64,
    /// Groups of statements after the rows (keys), and how many of them are done.
    pub finishing: usize,
    /// See [`Self::finishing`].
    pub finished: usize,
    /// How long inserting took, when all rows are there.
    pub rows_time: Duration,
    /// How long what came after took.
    pub finish_time: Duration,
}

impl Progress {
    /// Of two loads, one after the other.
    pub fn and(self, other: Self) -> Self {
        Self {
            jobs_done: self.jobs_done + other.jobs_done,
            jobs: self.jobs + other.jobs,
            jobs_before: self.jobs_before + other.jobs_before,
            rows: self.rows + other.rows,
            bytes: self.bytes + other.bytes,
            finishing: self.finishing + other.finishing,
            finished: self.finished + other.finished,
            rows_time: self.rows_time + other.rows_time,
            finish_time: self.finish_time + other.finish_time,
        }
    }

    /// Nothing was to be done: a load of the same description was there, whole.
    pub fn was_there(&self) -> bool {
        self.jobs > 0 && self.jobs_before == self.jobs
    }

    /// Nothing is left to be done; else it was asked to stop.
    pub fn is_whole(&self) -> bool {
        self.jobs_done == self.jobs && self.finished == self.finishing
    }
}

/// How a load is done.
#[derive(Clone, Debug)]
pub struct Way {
    /// Connections that load at the same time.
    pub connections: u32,
    /// Jobs that are marked are left out, if the marks are of the same load; a load that is whole
    /// is left as it is.
    pub resume: bool,
    /// Ends it when it is asked.
    pub stop: Arc<Stop>,
}

impl Way {
    /// From empty tables, with so many connections.
    pub fn new(connections: u32) -> Self {
        Self { connections, resume: false, stop: Arc::default() }
    }
}

struct Shared {
    loading: Arc<dyn Loading>,
    target: Target,
    stop: Arc<Stop>,
    left: Mutex<std::vec::IntoIter<u64>>,
    progress: Mutex<Progress>,
    report: Box<dyn Fn(Progress) + Send + Sync>,
}

/// Loads, into a database that is made if it is not there. `report` is called after every job.
pub fn load(
    target: &Target,
    loading: Arc<dyn Loading>,
    way: &Way,
    report: impl Fn(Progress) + Send + Sync + 'static,
) -> Result<Progress, Failure> {
    let mut first = connect(target)?;
    let done = if way.resume { marks(&mut first, &loading.description())? } else { None };
    let Marks { done, is_whole } = match done {
        Some(marks) => marks,
        None => {
            begin(&mut first, &*loading)?;
            Marks::default()
        }
    };
    let left: Vec<u64> = (0..loading.jobs()).filter(|job| !done.contains(job)).collect();
    let jobs_before = done.len() as u64;
    let progress = Progress {
        jobs_done: jobs_before,
        jobs_before,
        jobs: loading.jobs(),
        ..Progress::default()
    };
    let shared = Arc::new(Shared {
        loading: loading.clone(),
        target: target.clone(),
        stop: way.stop.clone(),
        left: Mutex::new(left.into_iter()),
        progress: Mutex::new(progress),
        report: Box::new(report),
    });
    let begin = runtime::now();
    let loaders = (0..way.connections.max(1)).map(|_| {
        let shared = shared.clone();
        runtime::spawn("loader", move || {
            shared.run().inspect_err(|_| *shared.left.lock() = Vec::new().into_iter())
        })
    });
    join(loaders.collect())?;
    shared.progress.lock().rows_time = runtime::now() - begin;
    if !is_whole {
        finish(&shared, way.resume)?;
        if shared.progress.lock().is_whole() {
            first.command(&format!("REPLACE INTO {MARKS} VALUES (-2, 'whole')"))?;
        }
    }
    let progress = *shared.progress.lock();
    Ok(progress)
}

/// Logs in, and makes the database if it is not there.
pub fn connect(target: &Target) -> Result<Connection, Failure> {
    match Connection::open(target) {
        Err(Failure::Server { number: UNKNOWN_DATABASE, .. }) => {
            let without = Target { database: String::new(), ..target.clone() };
            let name = target.database.replace('`', "``");
            let sql = format!("CREATE DATABASE IF NOT EXISTS `{name}`");
            Connection::open(&without)?.command(&sql)?;
            Connection::open(target)
        }
        opened => opened,
    }
}

/// What is done when all rows are there.
fn finish(shared: &Shared, resume: bool) -> Result<(), Failure> {
    let begin = runtime::now();
    let groups = shared.loading.finish();
    shared.progress.lock().finishing = groups.len();
    for group in groups {
        let progress = *shared.progress.lock();
        if shared.stop.is_asked() || progress.jobs_done < progress.jobs {
            break;
        }
        (shared.report)(progress);
        let statements = group.into_iter().map(|sql| {
            let target = shared.target.clone();
            runtime::spawn("finish", move || {
                let done = Connection::open(&target)?.command(&sql);
                done.map(drop).or_else(|failure| match failure {
                    Failure::Server { number, .. } if resume && is_there(number) => Ok(()),
                    failure => Err(failure),
                })
            })
        });
        join(statements.collect())?;
        shared.progress.lock().finished += 1;
    }
    shared.progress.lock().finish_time = runtime::now() - begin;
    Ok(())
}

/// Errors that say that a key or a foreign key of this name is there.
fn is_there(number: u16) -> bool {
    matches!(number, 1005 | 1022 | 1061 | 1826)
}

/// Waits for all; the first failure of them.
fn join(fibers: Vec<runtime::JoinHandle<Result<(), Failure>>>) -> Result<(), Failure> {
    let ended: Vec<_> = fibers.into_iter().map(|fiber| fiber.join()).collect();
    for end in ended {
        end.map_err(|panic| std::io::Error::other(panic.to_string()))??;
    }
    Ok(())
}

/// What is known of a load before.
#[derive(Default)]
struct Marks {
    done: BTreeSet<u64>,
    /// What comes after the rows was done as well.
    is_whole: bool,
}

/// What is marked as done, if the marks are of this load.
fn marks(connection: &mut Connection, description: &str) -> Result<Option<Marks>, Failure> {
    let exists = connection.single(&format!(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=DATABASE() \
         AND table_name='{MARKS}'"
    ))?;
    if exists.as_deref() != Some("1") {
        return Ok(None);
    }
    let comment = connection.single(&format!("SELECT description FROM {MARKS} WHERE job=-1"))?;
    if comment.as_deref() != Some(description) {
        return Ok(None);
    }
    let mut marks = Marks::default();
    connection.query(&format!("SELECT job FROM {MARKS} WHERE job<>-1"), |row| {
        match row.integer(0) {
            Some(job @ 0..) => drop(marks.done.insert(job as u64)),
            Some(_) => marks.is_whole = true,
            None => {}
        }
        Ok(())
    })?;
    Ok(Some(marks))
}

fn begin(connection: &mut Connection, loading: &dyn Loading) -> Result<(), Failure> {
    connection.command(&format!("DROP TABLE IF EXISTS {MARKS}"))?;
    for sql in loading.begin() {
        connection.command(&sql)?;
    }
    connection.command(&format!(
        "CREATE TABLE {MARKS} (job BIGINT NOT NULL PRIMARY KEY, description TEXT)"
    ))?;
    let description = loading.description().replace('\'', "''");
    connection.command(&format!("INSERT INTO {MARKS} VALUES (-1, '{description}')"))?;
    Ok(())
}

impl Shared {
    fn run(&self) -> Result<(), Failure> {
        let mut connection = Connection::open(&self.target)?;
        connection.command(self.loading.connected())?;
        loop {
            let next = if self.stop.is_asked() { None } else { self.left.lock().next() };
            let Some(job) = next else { return Ok(()) };
            let (rows, bytes) = self.job(&mut connection, job)?;
            let progress = {
                let mut progress = self.progress.lock();
                progress.jobs_done += 1;
                progress.rows += rows;
                progress.bytes += bytes;
                *progress
            };
            (self.report)(progress);
        }
    }

    /// Loads the rows of a job; begins again where others were in its way: loaders that fill the
    /// pages of one index may deadlock. Returns rows and bytes.
    fn job(&self, connection: &mut Connection, job: u64) -> Result<(u64, u64), Failure> {
        for _ in 0..CONFLICTS_MAX {
            match self.try_job(connection, job) {
                Err(failure) if failure.is_conflict() => drop(connection.command("ROLLBACK")?),
                outcome => return outcome,
            }
        }
        self.try_job(connection, job)
    }

    fn try_job(&self, connection: &mut Connection, job: u64) -> Result<(u64, u64), Failure> {
        connection.command("BEGIN")?;
        let mut batch = Batch::new(connection);
        self.loading.job(job, &mut batch)?;
        let loaded = batch.finish()?;
        connection.command(&format!("INSERT INTO {MARKS} (job) VALUES ({job})"))?;
        connection.command("COMMIT")?;
        Ok(loaded)
    }
}
