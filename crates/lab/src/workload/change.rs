//! Changes of tables while a workload runs: how long they take, how far they are, and what they
//! cost those who work.
//!
//! 1. Each statement begins at its time, on a connection of its own; one that is late begins when
//!    the one before has ended.
//! 2. What the server says of its progress is asked on another connection: `PROGRESS` of
//!    information_schema.PROCESSLIST (MariaDB, Gannet), else performance_schema's stages (MySQL).
//!    A server that says nothing is no failure.
//! 3. A statement that the run does not see the end of is waited for: half a change says nothing.

use super::{Beside, Finding};
use crate::client::{Connection, Failure, Target};
use runtime::sync::{Event, Mutex};
use runtime::{Instant, WaitClass};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How often progress is asked for.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Progress is told when it has grown by so many percent.
const TELL_EVERY_PERCENT: f64 = 10.0;

/// A statement that lasts longer is expected to tell of its progress.
const SILENT_SECONDS: f64 = 1.0;

/// A statement with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// After the begin of the measured time.
    pub at: Duration,
    /// The statement.
    pub sql: String,
}

impl FromStr for Change {
    type Err = String;

    /// `SECONDS=STATEMENT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = "SECONDS=STATEMENT is wanted, such as 30=ALTER TABLE t ADD COLUMN c INT";
        let (seconds, sql) = text.split_once('=').ok_or(form)?;
        let seconds = seconds.trim().parse::<f64>().ok().filter(|seconds| *seconds >= 0.0);
        let at = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let sql = sql.trim().trim_end_matches(';').to_string();
        match at {
            Some(at) if !sql.is_empty() => Ok(Self { at, sql }),
            _ => Err(form.into()),
        }
    }
}

/// How a statement went.
#[derive(Clone, Debug, PartialEq)]
struct Executed {
    sql: String,
    /// Seconds since the begin of the measured time.
    begin: f64,
    end: f64,
    error: Option<String>,
    /// The server told how far it was.
    told_progress: bool,
}

/// See the module.
pub struct Changes {
    changes: Vec<Change>,
    executed: Mutex<Vec<Executed>>,
}

impl Changes {
    /// These, in the order of their times.
    pub fn new(mut changes: Vec<Change>) -> Self {
        changes.sort_by_key(|change| change.at);
        Self { changes, executed: Mutex::new(Vec::new()) }
    }

    fn one(&self, target: &Target, begin: Instant, change: &Change, tell: &dyn Fn(String)) {
        let since = || (runtime::now() - begin).as_secs_f64();
        let began = since();
        tell(format!("begins: {}", change.sql));
        let (result, told_progress) = execute(target, &change.sql, tell);
        let end = since();
        let error = result.err().map(|failure| failure.to_string());
        match &error {
            None => tell(format!("ended after {:.2} s: {}", end - began, change.sql)),
            Some(error) => tell(format!("failed after {:.2} s: {error}", end - began)),
        }
        let sql = change.sql.clone();
        self.executed.lock().push(Executed { sql, begin: began, end, error, told_progress });
    }
}

impl Beside for Changes {
    fn run(&self, target: &Target, begin: Instant, end: Instant, tell: &dyn Fn(String)) {
        self.executed.lock().clear();
        for change in &self.changes {
            let due = begin + change.at;
            if due >= end {
                tell(format!("after the end of the run, so not executed: {}", change.sql));
                continue;
            }
            let now = runtime::now();
            if due > now {
                runtime::sleep(due - now);
            }
            self.one(target, begin, change, tell);
        }
    }

    fn findings(&self, completed_per_second: &[u64], space: &[(f64, u64)]) -> Vec<Finding> {
        let executed = self.executed.lock();
        executed.iter().map(|one| finding(one, completed_per_second, space)).collect()
    }
}

/// Executes a statement and tells of its progress; whether there was any to tell.
fn execute(target: &Target, sql: &str, tell: &dyn Fn(String)) -> (Result<(), Failure>, bool) {
    let opened = Connection::open(target).and_then(|mut connection| {
        let id = connection.single("SELECT CONNECTION_ID()")?.unwrap_or_default();
        Ok((connection, id))
    });
    let (mut connection, id) = match opened {
        Ok(opened) => opened,
        Err(failure) => return (Err(failure), false),
    };
    let (text, done) = (sql.to_string(), Arc::new(Event::new()));
    let ended = done.clone();
    let fiber = runtime::spawn("change", move || {
        let result = connection.command(&text).map(drop);
        ended.set();
        result
    });
    let mut progress = Progress::new(target, &id);
    while !done.is_set() {
        done.wait(WaitClass::Other, Some(runtime::now() + ASK_EVERY));
        if !done.is_set() {
            progress.ask(tell);
        }
    }
    let result = fiber.join().map_err(|panic| std::io::Error::other(panic.to_string()));
    (result.map_err(Failure::from).and_then(|done| done), progress.told.is_some())
}

/// How far a statement of another connection is.
struct Progress {
    connection: Option<Connection>,
    queries: Vec<String>,
    told: Option<(String, f64)>,
}

impl Progress {
    fn new(target: &Target, id: &str) -> Self {
        let queries = vec![
            format!(
                "SELECT CONCAT(STAGE, '/', MAX_STAGE, ' ', COALESCE(STATE, '')), PROGRESS \
                 FROM information_schema.PROCESSLIST WHERE ID={id}"
            ),
            format!(
                "SELECT SUBSTRING_INDEX(EVENT_NAME, '/', -1), 100*WORK_COMPLETED/WORK_ESTIMATED \
                 FROM performance_schema.events_stages_current s JOIN performance_schema.threads t \
                 ON t.THREAD_ID=s.THREAD_ID WHERE t.PROCESSLIST_ID={id} AND WORK_ESTIMATED>0"
            ),
        ];
        Self { connection: Connection::open(target).ok(), queries, told: None }
    }

    /// Asks in the first way that the server knows.
    fn ask(&mut self, tell: &dyn Fn(String)) {
        let Some(connection) = &mut self.connection else { return };
        let Some(query) = self.queries.first() else { return };
        let mut found = None;
        let asked = connection.query(query, |row| {
            let text = |column| row.text(column).map(|t| String::from_utf8_lossy(&t).into_owned());
            let percent = text(1).and_then(|percent| percent.parse::<f64>().ok());
            found = text(0).zip(percent);
            Ok(())
        });
        match asked {
            Ok(_) => {}
            Err(Failure::Server { .. }) => drop(self.queries.remove(0)),
            Err(Failure::Connection(_)) => self.connection = None,
        }
        let Some((stage, percent)) = found.filter(|(_, percent)| *percent > 0.0) else { return };
        let is_news = self
            .told
            .as_ref()
            .is_none_or(|(before, told)| *before != stage || percent >= told + TELL_EVERY_PERCENT);
        if is_news {
            tell(format!("{percent:.0} % of stage {}", stage.trim()));
            self.told = Some((stage, percent));
        }
    }
}

/// The most seconds behind each other below half of what was usual before, and those with nothing.
fn stalls(completed: &[u64], usual: f64) -> (usize, usize) {
    let (mut longest, mut current) = (0, 0);
    for &count in completed {
        current = if (count as f64) < usual / 2.0 { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    (longest, completed.iter().filter(|&&count| count == 0).count())
}

/// What a change cost those who worked meanwhile, in one line.
fn finding(one: &Executed, completed: &[u64], space: &[(f64, u64)]) -> Finding {
    let lasted = one.end - one.begin;
    let mut found = match &one.error {
        None => format!("{lasted:.2} s"),
        Some(error) => format!("{error} after {lasted:.2} s"),
    };
    if one.told_progress {
        found.push_str(", with progress");
    } else if lasted > SILENT_SECONDS {
        found.push_str(", without a word of its progress");
    }
    let (first, last) = (one.begin as usize, (one.end.ceil() as usize).min(completed.len()));
    if first < last && first > 0 {
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        let (before, during) = (mean(&completed[..first]), mean(&completed[first..last]));
        let share = during * 100.0 / before.max(1e-9);
        let (longest, empty) = stalls(&completed[first..last], before);
        found.push_str(&format!(
            "; {during:.0} operations/s, {share:.0} % of those before; longest stall {longest} s, \
             {empty} s with none"
        ));
    }
    let at = |from: f64, to: f64| {
        space.iter().filter(move |(second, _)| (from..=to).contains(second)).map(|(_, b)| *b)
    };
    let peak = at(one.begin, one.end + 1.0).max();
    if let (Some(before), Some(peak)) = (at(0.0, one.begin).next_back(), peak) {
        let mebibytes = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
        let more = mebibytes(peak.saturating_sub(before));
        found.push_str(&format!("; {:.1} MiB at most, {more:.1} more", mebibytes(peak)));
    }
    let wanted = if one.error.is_some() { "no error".into() } else { String::new() };
    Finding { name: one.sql.clone(), found, wanted, met: one.error.is_none() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read() {
        let change: Change = "2.5=ALTER TABLE t ADD COLUMN c INT DEFAULT 7;".parse().expect("one");
        assert_eq!(change.at, Duration::from_millis(2500));
        assert_eq!(change.sql, "ALTER TABLE t ADD COLUMN c INT DEFAULT 7");
        for wrong in ["ALTER TABLE t", "x=ALTER TABLE t", "3= ;", "-1=OPTIMIZE TABLE t"] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn stalls_and_space_are_those_of_the_change() {
        let one = Executed {
            sql: "OPTIMIZE TABLE t".into(),
            begin: 4.2,
            end: 7.5,
            error: None,
            told_progress: true,
        };
        let completed = [100, 100, 100, 100, 100, 0, 0, 50, 100, 100];
        let space: Vec<(f64, u64)> =
            (0..10).map(|s| (f64::from(s), if s == 6 { 9 << 20 } else { 4 << 20 })).collect();
        let found = finding(&one, &completed, &space);
        assert_eq!(
            found.found,
            "3.30 s, with progress; 38 operations/s, 38 % of those before; longest stall 2 s, 2 s \
             with none; 9.0 MiB at most, 5.0 more"
        );
        assert!(found.met && found.wanted.is_empty());
        let failed = Executed { error: Some("error 1235".into()), told_progress: false, ..one };
        let found = finding(&failed, &[], &[]);
        assert!(!found.met);
        assert_eq!(found.found, "error 1235 after 3.30 s, without a word of its progress");
    }
}
