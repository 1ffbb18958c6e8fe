//! Filling tables: in parallel, and resumed where it stopped.
//!
//! 1. The rows of a workload are divided into jobs. What a job inserts is decided by its number and
//!    the workload's seed, so jobs may run in any order, on any number of connections.
//! 2. A job is one transaction, and marks itself done in `gannet_lab_load` within it: after a crash
//!    every job is there whole or not at all, and those that are missing are done on resuming.
//! 3. The mark table belongs to one description of a workload; a load with another one begins from
//!    empty tables.
//! 4. What is done when all rows are there (indexes, foreign keys) cannot be in a transaction: on
//!    resuming it is done again, and that something is there already is no failure then.
//! 5. No empty INSERT is ever sent.

mod batch;

pub use batch::Batch;

use crate::client::{Connection, Failure, Target};
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

const MARKS: &str = "gannet_lab_load";

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
}

struct Shared {
    loading: Arc<dyn Loading>,
    target: Target,
    left: Mutex<std::vec::IntoIter<u64>>,
    progress: Mutex<Progress>,
    report: Box<dyn Fn(Progress) + Send + Sync>,
}

/// Loads with so many connections. With `resume` jobs that are marked are left out, if the marks
/// are of the same load. `report` is called after every job.
pub fn load(
    target: &Target,
    loading: Arc<dyn Loading>,
    connections: u32,
    resume: bool,
    report: impl Fn(Progress) + Send + Sync + 'static,
) -> Result<Progress, Failure> {
    let mut first = Connection::open(target)?;
    let done = if resume { marks(&mut first, &loading.description())? } else { None };
    let done = match done {
        Some(done) => done,
        None => {
            begin(&mut first, &*loading)?;
            BTreeSet::new()
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
        left: Mutex::new(left.into_iter()),
        progress: Mutex::new(progress),
        report: Box::new(report),
    });
    let loaders = (0..connections.max(1)).map(|_| {
        let shared = shared.clone();
        runtime::spawn("loader", move || shared.run())
    });
    join(loaders.collect())?;
    for group in loading.finish() {
        let statements = group.into_iter().map(|sql| {
            let target = target.clone();
            runtime::spawn("finish", move || {
                let done = Connection::open(&target)?.command(&sql);
                done.map(drop).or_else(|failure| match failure {
                    Failure::Server { number, .. } if resume && is_there(number) => Ok(()),
                    failure => Err(failure),
                })
            })
        });
        join(statements.collect())?;
    }
    let progress = *shared.progress.lock();
    Ok(progress)
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

/// The jobs that are marked as done, if the marks are of this load.
fn marks(connection: &mut Connection, description: &str) -> Result<Option<BTreeSet<u64>>, Failure> {
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
    let mut done = BTreeSet::new();
    connection.query(&format!("SELECT job FROM {MARKS} WHERE job>=0"), |row| {
        done.extend(row.integer(0).map(|job| job as u64));
        Ok(())
    })?;
    Ok(Some(done))
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
            let Some(job) = self.left.lock().next() else { return Ok(()) };
            connection.command("BEGIN")?;
            let mut batch = Batch::new(&mut connection);
            self.loading.job(job, &mut batch)?;
            let (rows, bytes) = batch.finish()?;
            connection.command(&format!("INSERT INTO {MARKS} (job) VALUES ({job})"))?;
            connection.command("COMMIT")?;
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
}
