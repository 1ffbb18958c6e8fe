//! Load by the client of one thread (`gannet-bench client`), and what it did to the server.

use super::Plan;
use super::cpu::{self, Sample};
use super::subject::Subject;
use crate::process;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A run is disturbed when others took more of a core, in percent.
pub const OTHERS_PERCENT_MAX: f64 = 40.0;
/// How often a disturbed run is repeated.
pub const RETRIES: usize = 3;

/// A run with a larger share of errors shows nothing.
const ERRORS_MAX: f64 = 0.001;

/// Every run has values of its own: an update to what a row has already is none.
static NEXT_SEED: AtomicU32 = AtomicU32::new(1);

/// What is sent, by how many.
#[derive(Clone)]
pub struct Load {
    /// A statement with places for values.
    pub sql: String,
    /// Text instead of prepared.
    pub is_text: bool,
    /// Connections, of one thread.
    pub connections: u32,
    /// Prepared statements of each.
    pub statements: u32,
    /// Tables that connections take turns with.
    pub tables: u32,
    /// Rows of each.
    pub rows: u32,
    /// Seconds before measuring.
    pub warm_up: f64,
    /// Measured seconds.
    pub seconds: f64,
}

/// One run.
#[derive(Clone, Default)]
pub struct Figures {
    /// Statements answered a second.
    pub per_second: f64,
    /// Percentiles of the time to an answer, in microseconds.
    pub p50_us: f64,
    /// 95 %.
    pub p95_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// Longest time to an answer; also of statements without one at the end.
    pub max_us: f64,
    /// Answers that were errors.
    pub errors: f64,
    /// The server's CPU per statement in user mode, in microseconds.
    pub user_us: f64,
    /// The same in the kernel.
    pub system_us: f64,
    /// CPU of everything else on the machine, in percent of a core.
    pub others_percent: f64,
    /// Resident memory of the server at the end, in kB.
    pub resident_kb: f64,
}

impl Figures {
    /// CPU per statement.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

/// The client as a process, killed when dropped.
pub struct Client {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    /// Starts `gannet-bench client` with these options.
    pub fn start(tool: &Path, port: u16, options: &[String]) -> Result<Self, String> {
        let mut child = process::with_descriptors(tool)
            .args(["client", "--port", &port.to_string()])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("gannet-bench: {e}"))?;
        let stdout = child.stdout.take().ok_or("gannet-bench has no output")?;
        Ok(Self { child, lines: BufReader::new(stdout) })
    }

    /// The rest of the next line that begins with a word.
    pub fn wait_for(&mut self, word: &str) -> Result<String, String> {
        let mut line = String::new();
        loop {
            line.clear();
            let count = self.lines.read_line(&mut line).map_err(|e| e.to_string())?;
            if count == 0 {
                return Err(format!("the load ended before '{word}'"));
            }
            if let Some(rest) = line.strip_prefix(word) {
                return Ok(rest.trim().to_string());
            }
        }
    }
}

/// The number behind `name=` in a line.
pub fn number(line: &str, name: &str) -> f64 {
    let words = line.split_whitespace().filter_map(|word| word.split_once('='));
    words.filter(|(n, _)| *n == name).find_map(|(_, value)| value.parse().ok()).unwrap_or(0.0)
}

impl Load {
    /// A prepared statement on the plan's tables.
    pub fn new(plan: &Plan, sql: &str, connections: u32) -> Self {
        Self {
            sql: sql.to_string(),
            is_text: false,
            connections,
            statements: 1,
            tables: plan.tables,
            rows: plan.rows,
            warm_up: plan.warm_up,
            seconds: plan.seconds,
        }
    }

    /// The words of `gannet-bench client`.
    pub fn options(&self) -> Vec<String> {
        let seed = NEXT_SEED.fetch_add(1, Ordering::Relaxed);
        let pairs: [(&str, String); 8] = [
            ("--sql", self.sql.clone()),
            ("--connections", self.connections.to_string()),
            ("--statements", self.statements.to_string()),
            ("--tables", self.tables.to_string()),
            ("--rows", self.rows.to_string()),
            ("--warm-up", self.warm_up.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--seed", seed.to_string()),
        ];
        let mut words: Vec<String> =
            pairs.into_iter().flat_map(|(name, value)| [name.to_string(), value]).collect();
        if self.is_text {
            words.push("--text".to_string());
        }
        words
    }

    /// Runs once, whatever else is going on.
    pub fn run_once(&self, subject: &Subject) -> Result<Figures, String> {
        let mut words = self.options();
        words.push("--hold".to_string());
        let server = subject.server.id();
        let mut client = Client::start(&subject.tool, subject.server.port, &words)?;
        let of = |e: String| format!("{}: {e}", subject.name);
        client.wait_for("measuring").map_err(of)?;
        let before = Sample::take(server, client.child.id())?;
        let line = client.wait_for("measured").map_err(of)?;
        let used = Sample::take(server, client.child.id())?.since(&before);
        let (statements, errors) = (number(&line, "statements").max(1.0), number(&line, "errors"));
        if errors > statements * ERRORS_MAX {
            return Err(of(format!("{}: too many errors: {line}", self.sql)));
        }
        Ok(Figures {
            per_second: number(&line, "per_second"),
            p50_us: number(&line, "p50_us"),
            p95_us: number(&line, "p95_us"),
            p99_us: number(&line, "p99_us"),
            max_us: number(&line, "max_us"),
            errors,
            user_us: used.server.user / statements,
            system_us: used.server.system / statements,
            others_percent: used.others_percent,
            resident_kb: cpu::resident_kb(server)?,
        })
    }

    /// Runs, again while disturbed; the quietest run counts.
    pub fn run(&self, subject: &Subject) -> Result<Figures, String> {
        quietest(|| self.run_once(subject), |figures| figures.others_percent)
    }
}

/// Repeats what was disturbed.
pub fn quietest<T>(
    mut run: impl FnMut() -> Result<T, String>,
    others_percent: impl Fn(&T) -> f64,
) -> Result<T, String> {
    let mut best = run()?;
    for _ in 0..RETRIES {
        if others_percent(&best) <= OTHERS_PERCENT_MAX {
            break;
        }
        let next = run()?;
        if others_percent(&next) < others_percent(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// Every subject `pairs` times in turn, the order reversed each time: A B, B A, A B. Gives the
/// results by subject.
pub fn in_turn<T>(
    subjects: usize,
    pairs: usize,
    mut run: impl FnMut(usize) -> Result<T, String>,
) -> Result<Vec<Vec<T>>, String> {
    let mut results: Vec<Vec<T>> = (0..subjects).map(|_| Vec::new()).collect();
    for pair in 0..pairs {
        for place in 0..subjects {
            let subject = if pair % 2 == 0 { place } else { subjects - 1 - place };
            results[subject].push(run(subject)?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns() {
        let mut order = Vec::new();
        let results = in_turn(2, 3, |subject| {
            order.push(subject);
            Ok(order.len())
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!(results, Ok(vec![vec![1, 4, 5], vec![2, 3, 6]]));
    }

    #[test]
    fn a_disturbed_run_is_repeated_and_the_quietest_counts() {
        let mut percents = [90.0, 60.0, 30.0, 10.0].into_iter();
        let got = quietest(|| percents.next().ok_or(String::new()), |percent| *percent);
        assert_eq!(got, Ok(30.0));
    }

    #[test]
    fn numbers_are_found_by_name() {
        let line = "statements=12 p95_us=3.5 error_1213=2";
        assert_eq!((number(line, "p95_us"), number(line, "error")), (3.5, 0.0));
    }
}
