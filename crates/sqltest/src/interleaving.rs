//! Interleavings of several connections as data: who waits for whom, what each is answered.
//!
//! A `.spec` file has `setup SQL` lines, which are run before every case, and cases:
//!
//! ```text
//! case lost update
//! levels read-committed repeatable-read
//! a: BEGIN
//! b: UPDATE t SET v = 1 WHERE id = 1
//! a: COMMIT
//! b: (answer)
//! ```
//!
//! A `levels` line before the first case is for all cases that have none. Without it a case runs
//! at all four levels. `repeatable-read` is two runs, with `innodb_snapshot_isolation` on and off;
//! `serializable` has it on; `-on` and `-off` behind a name choose. `(answer)` is a step that
//! waits for the answer of a statement that waits, such as its timeout; `(disconnect)` ends the
//! connection.
//!
//! 1. A step is over when its statement is answered, or the server says that it waits.
//! 2. After a step all that it set free is answered before the next step begins; answers of
//!    statements that had waited stand in the order of the connections' names.
//! 3. The step of a connection that still waits is put off until its statement is answered, so
//!    that one case serves levels that wait at different places.
//! 4. Whether a statement waits is asked of the server (Gannet's list of processes; MariaDB's
//!    monitor of InnoDB, whose table INNODB_TRX is only renewed every 100 ms, and its list of
//!    processes), several times: no duration decides.
//! 5. Cases run beside each other (one after another if the file has a line `alone`), each in a
//!    database and with connections of its own; the
//!    database's name is replaced by that of the file in what is shown.

use crate::client::{Answer, Connection, Options};
use crate::render;
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A statement counts as waiting when the server says so this often, in a row.
const CONFIRMATIONS: u32 = 3;

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(4);

/// No statement is without answer and not waiting for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a case may run at: the level's name in files and in SQL, what is said of the switch, and
/// the switch.
const MODES: [(&str, &str, &str, bool); 6] = [
    ("read-uncommitted", "READ UNCOMMITTED", "", true),
    ("read-committed", "READ COMMITTED", "", true),
    ("repeatable-read", "REPEATABLE READ", ", snapshot on", true),
    ("repeatable-read", "REPEATABLE READ", ", snapshot off", false),
    ("serializable", "SERIALIZABLE", "", true),
    ("serializable", "SERIALIZABLE", ", snapshot off", false),
];

/// The runs of a case that names no levels.
const EVERY_LEVEL: [usize; 5] = [0, 1, 2, 3, 4];

/// The runs a word of a `levels` line stands for.
fn modes_of(word: &str) -> Option<&'static [usize]> {
    Some(match word {
        "read-uncommitted" => &[0],
        "read-committed" => &[1],
        "repeatable-read" => &[2, 3],
        "repeatable-read-on" => &[2],
        "repeatable-read-off" => &[3],
        "serializable" | "serializable-on" => &[4],
        "serializable-off" => &[5],
        _ => return None,
    })
}

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Statements before every case.
    pub setup: Vec<String>,
    /// One case after another.
    pub is_alone: bool,
    /// In order.
    pub cases: Vec<Case>,
}

/// One interleaving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// What it is called in the results.
    pub name: String,
    /// The levels it runs at, as positions in a table of them.
    pub modes: Vec<usize>,
    /// Connection and statement.
    pub steps: Vec<(String, String)>,
}

/// Reads a file. The error names the line.
pub fn parse(text: &str) -> Result<Spec, String> {
    let mut spec = Spec::default();
    let mut usual = EVERY_LEVEL.to_vec();
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {what}: {line}", place + 1);
        if let Some(sql) = line.strip_prefix("setup ") {
            spec.setup.push(sql.to_string());
        } else if line == "alone" {
            spec.is_alone = true;
        } else if let Some(name) = line.strip_prefix("case ") {
            if spec.cases.iter().any(|other| other.name == name) {
                return Err(wrong("there is a case of this name"));
            }
            let (name, modes) = (name.to_string(), usual.clone());
            spec.cases.push(Case { name, modes, steps: Vec::new() });
        } else if let Some(words) = line.strip_prefix("levels ") {
            let modes: Option<Vec<_>> = words.split_whitespace().map(modes_of).collect();
            let modes = modes.ok_or_else(|| wrong("there is no such level"))?.concat();
            match spec.cases.last_mut() {
                Some(case) => case.modes = modes,
                None => usual = modes,
            }
        } else {
            let case = spec.cases.last_mut().ok_or_else(|| wrong("no case has begun"))?;
            let (name, sql) = line.split_once(": ").ok_or_else(|| wrong("not a step"))?;
            case.steps.push((name.to_string(), sql.to_string()));
        }
    }
    Ok(spec)
}

/// What a case showed at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Case, level, switch.
    pub title: String,
    /// Statements and answers.
    pub text: String,
}

/// Runs all cases of a file, `lanes` of them beside each other, in databases whose names begin
/// with `database`.
pub fn run(spec: &Spec, options: &Options, database: &str, lanes: usize) -> io::Result<Vec<Shown>> {
    let runs: Vec<(&Case, usize)> = spec
        .cases
        .iter()
        .flat_map(|case| case.modes.iter().map(move |mode| (case, *mode)))
        .collect();
    let next = AtomicUsize::new(0);
    let shown: Mutex<Vec<Option<Shown>>> = Mutex::new(vec![None; runs.len()]);
    let lane = &|number: usize| -> io::Result<()> {
        let own = format!("{database}_lane{number}");
        let mut monitor = Monitor::open(options)?;
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, mode)) = runs.get(place) else { break };
            let title = format!("{} · {}{}", case.name, MODES[*mode].0, MODES[*mode].2);
            let text = monitor
                .prepare(spec, &own)
                .and_then(|()| Stage::new(options, &mut monitor, &own, *mode).play(case))
                .map_err(|error| io::Error::other(format!("{title}: {error}")))?;
            let text = text.replace(&own, database);
            shown.lock().map_err(|_| io::Error::other("a lane has panicked"))?[place] =
                Some(Shown { title, text });
        }
        monitor.connection.execute(&format!("DROP DATABASE IF EXISTS {own}"))?;
        Ok(())
    };
    let lanes = if spec.is_alone { 1 } else { lanes.max(1) };
    std::thread::scope(|scope| -> io::Result<()> {
        let threads: Vec<_> = (0..lanes).map(|number| scope.spawn(move || lane(number))).collect();
        let ends = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a lane has panicked")))
        });
        ends.collect::<Vec<_>>().into_iter().collect()
    })?;
    let shown = shown.into_inner().map_err(|_| io::Error::other("a lane has panicked"))?;
    Ok(shown.into_iter().flatten().collect())
}

/// The text of a result file.
pub fn to_text<'a>(shown: impl IntoIterator<Item = &'a Shown>) -> String {
    shown.into_iter().map(|it| format!("== {}\n{}\n", it.title, it.text)).collect()
}

/// The connection that prepares the cases of a lane and asks who waits.
struct Monitor {
    connection: Connection,
    is_gannet: bool,
}

impl Monitor {
    fn open(options: &Options) -> io::Result<Self> {
        let connection = Connection::open(options)?;
        let is_gannet = connection.server_version.contains("gannet");
        Ok(Self { connection, is_gannet })
    }

    fn prepare(&mut self, spec: &Spec, database: &str) -> io::Result<()> {
        self.connection.execute(&format!("DROP DATABASE IF EXISTS {database}"))?;
        self.connection.execute(&format!("CREATE DATABASE {database}"))?;
        self.connection.execute(&format!("USE {database}"))?;
        for statement in &spec.setup {
            self.connection.execute(statement)?;
        }
        Ok(())
    }

    /// Whether the server says that this connection waits for a lock.
    fn waits(&mut self, id: u64) -> io::Result<bool> {
        let question = format!(
            "SELECT 1 FROM information_schema.processlist WHERE id = {id} AND state LIKE \
             'Waiting for %lock'"
        );
        if !self.connection.execute(&question)?.is_empty() {
            return Ok(true);
        }
        if self.is_gannet {
            return Ok(false);
        }
        let rows = self.connection.execute("SHOW ENGINE INNODB STATUS")?;
        let text = rows.first().and_then(|row| row.last().cloned().flatten()).unwrap_or_default();
        Ok(is_lock_wait(&String::from_utf8_lossy(&text), id))
    }
}

/// Whether InnoDB's monitor shows the transaction of this connection as one that waits.
fn is_lock_wait(status: &str, id: u64) -> bool {
    let transactions = status.split("\n---TRANSACTION ").skip(1);
    let thread = format!("MariaDB thread id {id},");
    transactions
        .map(|one| one.split("\n---").next().unwrap_or_default())
        .any(|one| one.contains(&thread) && one.lines().any(|line| line.starts_with("LOCK WAIT ")))
}

/// One connection with a thread that waits for its answers.
struct Player {
    id: u64,
    statements: Sender<String>,
    answers: Receiver<io::Result<Answer>>,
    thread: JoinHandle<()>,
    is_waiting: bool,
}

impl Player {
    fn open(options: &Options, settings: &[String]) -> io::Result<Self> {
        let mut connection = Connection::open(options)?;
        for statement in settings {
            connection.execute(statement)?;
        }
        let id = u64::from(connection.id);
        let (statements, orders) = channel::<String>();
        let (replies, answers) = channel();
        let thread = std::thread::spawn(move || {
            for sql in orders {
                if replies.send(connection.query_one(&sql)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { id, statements, answers, thread, is_waiting: false })
    }
}

/// The connections of one case.
struct Stage<'a> {
    options: Options,
    settings: [String; 2],
    monitor: &'a mut Monitor,
    players: BTreeMap<String, Player>,
}

impl<'a> Stage<'a> {
    fn new(options: &Options, monitor: &'a mut Monitor, database: &str, mode: usize) -> Self {
        let (_, level, _, switch) = MODES[mode];
        let settings = [
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            format!("SET SESSION innodb_snapshot_isolation = {switch}"),
        ];
        let options = Options { database: database.into(), ..options.clone() };
        Self { options, settings, monitor, players: BTreeMap::new() }
    }

    fn play(&mut self, case: &Case) -> io::Result<String> {
        let mut text = String::new();
        let mut put_off: Vec<&(String, String)> = Vec::new();
        for step in &case.steps {
            put_off.push(step);
            if self.position_of_ready(&put_off).is_none() {
                text += &format!("{}> {}\n(later)\n", step.0, step.1);
            }
            while let Some(at) = self.position_of_ready(&put_off) {
                let (name, sql) = put_off.remove(at);
                self.step(name, sql, &mut text)?;
            }
        }
        for (name, sql) in put_off {
            text += &format!("{name}> {sql}\n(never)\n");
        }
        Ok(text)
    }

    /// The first step that can be taken: its connection does not wait, and has nothing earlier to
    /// do.
    fn position_of_ready(&self, steps: &[&(String, String)]) -> Option<usize> {
        let waits = |name: &str| self.players.get(name).is_some_and(|player| player.is_waiting);
        steps.iter().enumerate().position(|(at, (name, sql))| {
            let earlier = steps[..at].iter().any(|(other, _)| other == name);
            !earlier && (!waits(name) || sql == "(answer)")
        })
    }

    fn step(&mut self, name: &str, sql: &str, text: &mut String) -> io::Result<()> {
        *text += &format!("{name}> {sql}\n");
        if !self.players.contains_key(name) {
            let player = Player::open(&self.options, &self.settings)?;
            self.players.insert(name.to_string(), player);
        }
        if sql == "(disconnect)" {
            return self.disconnect(name);
        }
        let answer = match sql {
            "(answer)" => self.answer_of(name)?,
            sql => self.send(name, sql)?,
        };
        *text += &match answer {
            Some(answer) => render::answer(&answer, false),
            None if sql == "(answer)" => "(has been)\n".to_string(),
            None => "(waits)\n".to_string(),
        };
        for (name, answer) in self.set_free()? {
            *text += &format!("{name}: {}", render::answer(&answer, false));
        }
        Ok(())
    }

    fn player(&mut self, name: &str) -> io::Result<&mut Player> {
        self.players.get_mut(name).ok_or_else(|| io::Error::other(format!("{name}: nobody")))
    }

    fn send(&mut self, name: &str, sql: &str) -> io::Result<Option<Answer>> {
        let player = self.player(name)?;
        player.statements.send(sql.to_string()).map_err(io::Error::other)?;
        player.is_waiting = true;
        self.settle(name)
    }

    /// Ends a connection that does not wait; over when the server knows it no more.
    fn disconnect(&mut self, name: &str) -> io::Result<()> {
        let Some(player) = self.players.remove(name) else {
            return Err(io::Error::other(format!("{name}: nobody")));
        };
        drop(player.statements);
        player.thread.join().map_err(|_| io::Error::other("a player has panicked"))?;
        let question =
            format!("SELECT 1 FROM information_schema.processlist WHERE id = {}", player.id);
        let begin = Instant::now();
        while !self.monitor.connection.execute(&question)?.is_empty() {
            if begin.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("{name} does not go")));
            }
            std::thread::sleep(ASK_EVERY);
        }
        Ok(())
    }

    /// What a statement is answered that waits; nothing if it has been answered.
    fn answer_of(&mut self, name: &str) -> io::Result<Option<Answer>> {
        let player = self.player(name)?;
        if !player.is_waiting {
            return Ok(None);
        }
        let answer = player.answers.recv_timeout(PATIENCE).map_err(io::Error::other)?;
        player.is_waiting = false;
        answer.map(Some)
    }

    /// Answers of those who waited and do not any more, by name (invariant 2): asked of all until
    /// nothing changes, since the end of one statement may set another free.
    fn set_free(&mut self) -> io::Result<BTreeMap<String, Answer>> {
        let mut answers = BTreeMap::new();
        loop {
            let waiting = self.players.iter().filter(|(_, player)| player.is_waiting);
            let waiting: Vec<String> = waiting.map(|(name, _)| name.clone()).collect();
            let before = answers.len();
            for name in waiting {
                if let Some(answer) = self.settle(&name)? {
                    answers.insert(name, answer);
                }
            }
            if answers.len() == before {
                return Ok(answers);
            }
        }
    }

    /// The answer to what a connection has sent, or none if it waits.
    fn settle(&mut self, name: &str) -> io::Result<Option<Answer>> {
        let begin = Instant::now();
        let mut confirmed = 0;
        loop {
            let player = self.player(name)?;
            match player.answers.recv_timeout(ASK_EVERY) {
                Ok(answer) => {
                    player.is_waiting = false;
                    return answer.map(Some);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("it is gone")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if confirmed == CONFIRMATIONS {
                return Ok(None);
            }
            let id = player.id;
            confirmed = if self.monitor.waits(id)? { confirmed + 1 } else { 0 };
            if begin.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("{name} neither waits nor is answered")));
            }
        }
    }
}

/// Whoever still waits is interrupted, so that every thread ends.
impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for player in self.players.values().filter(|player| player.is_waiting) {
            // It may have ended meanwhile; then there is nothing to interrupt.
            let _ = self.monitor.connection.query_one(&format!("KILL {}", player.id));
        }
        for player in std::mem::take(&mut self.players).into_values() {
            drop(player.statements);
            let _ = player.thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let text = "# skew\nsetup CREATE TABLE t (id INT)\ncase one\nlevels serializable\n\
                    a: BEGIN\nb: SELECT ': '\ncase two\na: COMMIT\n";
        let spec = parse(text).expect("a good file");
        assert_eq!(spec.setup, ["CREATE TABLE t (id INT)"]);
        assert_eq!(
            (&spec.cases[0].modes[..], &spec.cases[1].modes[..]),
            (&[4][..], &EVERY_LEVEL[..])
        );
        assert_eq!(spec.cases[0].steps[1], ("b".to_string(), "SELECT ': '".to_string()));
        assert_eq!((spec.cases.len(), spec.cases[1].steps.len()), (2, 1));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, line) in [
            ("a: BEGIN\n", "line 1"),
            ("case x\nlevels none\n", "line 2"),
            ("case x\n\nwhat\n", "line 3"),
            ("case x\ncase x\n", "line 2"),
        ] {
            let error = parse(text).expect_err("a bad file");
            assert!(error.starts_with(line), "{error}");
        }
    }

    #[test]
    fn levels_before_the_first_case_are_for_all() {
        let text = "levels read-committed repeatable-read-off\ncase x\nb: COMMIT\ncase y\n\
                    levels serializable-off\nb: COMMIT\n";
        let spec = parse(text).expect("a good file");
        assert_eq!((&spec.cases[0].modes[..], &spec.cases[1].modes[..]), (&[1, 3][..], &[5][..]));
    }

    #[test]
    fn the_monitor_tells_who_waits() {
        let status = "TRANSACTIONS\n------------\nLIST:\n\
            ---TRANSACTION 41, ACTIVE 0 sec starting index read\n\
            mysql tables in use 1, locked 1\n\
            LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)\n\
            MariaDB thread id 7, OS thread handle 1, query id 16 127.0.0.1 root Updating\n\
            UPDATE t SET v = 1\n\
            ------- TRX HAS BEEN WAITING 1 ns FOR THIS LOCK TO BE GRANTED:\n\
            ---TRANSACTION 40, ACTIVE 0 sec\n\
            2 lock struct(s), heap size 1128, 1 row lock(s)\n\
            MariaDB thread id 70, OS thread handle 2, query id 15 127.0.0.1 root\n";
        assert!(is_lock_wait(status, 7));
        assert!(!is_lock_wait(status, 70));
        assert!(!is_lock_wait(status, 8));
    }
}
