//! `cargo xtask bench sysbench`: Debian's sysbench against Gannet and MariaDB in turn, or MySQL, or
//! an earlier build of Gannet (`before.rs`). Prints, per
//! script, protocol and number of clients, CPU per transaction (user and system time of the server
//! process between the end of the warm-up and the end of the run) and transactions a second.
//!
//! Client and server share the machine's cores, so throughput has a ceiling that no server can
//! pass: beside its ratio stands the one that a server without any cost of its own would reach (all
//! cores divided by what sysbench itself used per transaction against Gannet).

use super::cpu::{Sample, Used};
use super::load::{in_turn, quietest};
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use super::{Plan, before};
use crate::Outcome;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A script, and what it may cost in CPU per transaction against MariaDB, in all and in user mode.
struct Script {
    name: &'static str,
    cpu: Option<f64>,
    user: Option<f64>,
}

const fn script(name: &'static str, cpu: Option<f64>, user: Option<f64>) -> Script {
    Script { name, cpu, user }
}

/// Those without a limit are only shown.
const SCRIPTS: [Script; 10] = [
    script("oltp_point_select", Some(0.55), Some(0.35)),
    script("oltp_read_only", Some(0.5), None),
    script("oltp_read_write", Some(0.45), None),
    script("oltp_write_only", Some(0.45), None),
    script("oltp_update_index", Some(0.45), None),
    script("oltp_update_non_index", Some(0.45), None),
    script("oltp_insert", Some(0.45), None),
    script("oltp_delete", None, None),
    script("select_random_points", None, None),
    script("select_random_ranges", None, None),
];
const CLIENTS: [u32; 3] = [8, 64, 256];
const QUICK_CLIENTS: [u32; 1] = [16];
/// Throughput against MariaDB's where it is limited, and there how many clients.
const THROUGHPUT: f64 = 1.5;
const THROUGHPUT_CLIENTS: u32 = 64;

/// What one run measured.
struct Run {
    per_second: f64,
    user_us: f64,
    system_us: f64,
    client_us: f64,
    p95_ms: f64,
    errors: f64,
    others_percent: f64,
}

impl Run {
    fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

/// One cell of the table.
struct Cell<'a> {
    script: &'a Script,
    /// `auto` prepares, `disable` sends text.
    mode: &'static str,
    clients: u32,
    /// What Gannet is measured beside.
    peer: &'static str,
}

/// Runs all cells.
pub fn run(plan: &Plan) -> Outcome {
    let names = plan.arguments.names();
    if let Some(name) = names.iter().skip(1).find(|n| SCRIPTS.iter().all(|s| s.name != **n)) {
        return Err(format!("there is no script '{name}'"));
    }
    let built = Built::build()?;
    let before = plan.arguments.value("--before");
    let peer = match before {
        Some(binary) => built.before(Path::new(binary), "1G")?,
        None if plan.arguments.has("--mysql") => built.mysql("1G")?,
        None => built.mariadb("1G", false)?,
    };
    let subjects = [built.gannet("1G")?, peer];
    for subject in &subjects {
        subject.execute(&["CREATE DATABASE sbtest"])?;
        prepare(plan, subject)?;
    }
    let modes: &[&'static str] = match () {
        () if plan.arguments.has("--prepared") => &["auto"],
        () if plan.arguments.has("--text") => &["disable"],
        () => &["auto", "disable"],
    };
    let mut limits = Limits::default();
    let peer = subjects[1].name;
    match before {
        Some(_) => println!("{}", before::HEAD),
        None => println!("gannet / {peer}; medians of {} pairs (least..most)", plan.pairs),
    }
    for script in SCRIPTS.iter().filter(|script| plan.chooses(script.name)) {
        for &mode in modes {
            for clients in plan.clients(&QUICK_CLIENTS, &CLIENTS)? {
                let cell = Cell { script, mode, clients, peer };
                if before.is_some() {
                    cell.beside_earlier_build(plan, &subjects, &mut limits)?;
                    continue;
                }
                let runs = in_turn(2, plan.pairs, |place| {
                    quietest(|| cell.run(plan, &subjects[place]), |run| run.others_percent)
                })?;
                cell.judge(&runs[0], &runs[1], &mut limits);
            }
        }
    }
    limits.finish()
}

/// sysbench with what all its runs share.
fn sysbench(plan: &Plan, subject: &Subject, script: &str) -> Command {
    let mut command = Command::new("sysbench");
    command
        .arg(script)
        .args(["--mysql-host=127.0.0.1", "--mysql-user=root", "--mysql-db=sbtest"])
        .arg(format!("--mysql-port={}", subject.server.port))
        .arg(format!("--tables={}", plan.tables))
        .arg(format!("--table-size={}", plan.rows));
    command
}

fn prepare(plan: &Plan, subject: &Subject) -> Outcome {
    println!("{}: filling {} tables of {} rows", subject.name, plan.tables, plan.rows);
    let output = sysbench(plan, subject, "oltp_common")
        .args(["--threads=2", "prepare"])
        .output()
        .map_err(|e| format!("sysbench: {e}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("sysbench: {}", String::from_utf8_lossy(&output.stdout))),
    }
}

impl Cell<'_> {
    fn name(&self) -> String {
        let protocol = if self.mode == "auto" { "prepared" } else { "text" };
        format!("{} {protocol} {}", self.script.name, self.clients)
    }

    /// sysbench with the cell's script, clients and protocol.
    fn sysbench(&self, plan: &Plan, subject: &Subject) -> Command {
        let mut command = sysbench(plan, subject, self.script.name);
        command
            .arg(format!("--threads={}", self.clients))
            .arg(format!("--db-ps-mode={}", self.mode))
            .arg("--mysql-ignore-errors=1213,1020,1205");
        command
    }

    /// The two builds in turn within a second; see `before.rs`.
    fn beside_earlier_build(
        &self,
        plan: &Plan,
        subjects: &[Subject; 2],
        limits: &mut Limits,
    ) -> Outcome {
        let script = lab::workload::sysbench::Script::of_name(self.script.name);
        let counter = script.and_then(|script| script.counter());
        let counter = counter.ok_or("no server counts the transactions of this script")?;
        let clients = subjects.each_ref().map(|subject| self.sysbench(plan, subject));
        let rounds = before::measure(plan, subjects, clients, counter)?;
        before::judge(&self.name(), &rounds, limits);
        Ok(())
    }

    /// Runs sysbench once. Its checkpoint at the end of the warm-up begins its counters anew.
    fn run(&self, plan: &Plan, subject: &Subject) -> Result<Run, String> {
        let warm_up = plan.warm_up.ceil();
        let mut child = self
            .sysbench(plan, subject)
            .arg(format!("--time={}", warm_up + plan.seconds))
            .arg(format!("--report-checkpoints={warm_up}"))
            .args(["--percentile=95", "run"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("sysbench: {e}"))?;
        let watched = watch(&mut child, subject.server.id());
        let status = child.wait().map_err(|e| format!("sysbench: {e}"))?;
        let (used, text) = watched?;
        if !status.success() {
            return Err(format!("{}: sysbench {}: {text}", subject.name, self.script.name));
        }
        let transactions = value(&text, "transactions:")?.max(1.0);
        Ok(Run {
            per_second: transactions / used.seconds,
            user_us: used.server.user / transactions,
            system_us: used.server.system / transactions,
            client_us: used.client.total() / transactions,
            p95_ms: value(&text, "95th percentile:")?,
            errors: value(&text, "ignored errors:")?,
            others_percent: used.others_percent,
        })
    }

    fn judge(&self, ours: &[Run], theirs: &[Run], limits: &mut Limits) {
        let cpu = (Spread::of(ours, Run::cpu_us), Spread::of(theirs, Run::cpu_us));
        let user = (Spread::of(ours, |r| r.user_us), Spread::of(theirs, |r| r.user_us));
        let system = (Spread::of(ours, |r| r.system_us), Spread::of(theirs, |r| r.system_us));
        let client = (Spread::of(ours, |r| r.client_us), Spread::of(theirs, |r| r.client_us));
        let rate = (Spread::of(ours, |r| r.per_second), Spread::of(theirs, |r| r.per_second));
        let p95 = (Spread::of(ours, |r| r.p95_ms), Spread::of(theirs, |r| r.p95_ms));
        let others = Spread::of(ours, |r| r.others_percent)
            .median
            .max(Spread::of(theirs, |r| r.others_percent).median);
        let errors = |runs: &[Run]| runs.iter().map(|r| r.errors).sum::<f64>();
        let ratio = |pair: (Spread, Spread)| pair.0.median / pair.1.median;
        let ceiling = cores() * 1e6 / client.0.median / rate.1.median;
        let name = self.name();
        println!(
            "{name:36} CPU us {} / {} = {:.2}; user {:.1} / {:.1} = {:.2}; sys {:.1} / {:.1}; \
             client {:.1} / {:.1}; \
             tx/s {} / {} = {:.2}, ceiling {ceiling:.2}; p95 ms {:.2} / {:.2}; \
             errors {:.0} / {:.0}; others {others:.0} %",
            cpu.0,
            cpu.1,
            ratio(cpu),
            user.0.median,
            user.1.median,
            ratio(user),
            system.0.median,
            system.1.median,
            client.0.median,
            client.1.median,
            rate.0,
            rate.1,
            ratio(rate),
            p95.0.median,
            p95.1.median,
            errors(ours),
            errors(theirs),
        );
        if let Some(limit) = self.script.cpu {
            limits.at_most(&format!("{name}: CPU / {}'s", self.peer), ratio(cpu), limit);
            if self.clients == THROUGHPUT_CLIENTS {
                let what = format!("{name}: throughput / {}'s", self.peer);
                limits.at_least(&what, ratio(rate), THROUGHPUT);
            }
        }
        if let Some(limit) = self.script.user {
            limits.at_most(&format!("{name}: user time / {}'s", self.peer), ratio(user), limit);
        }
    }
}

/// Cores that servers and client may use.
fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// Reads sysbench's output to its end; what was used between the checkpoint and the last report,
/// and that report.
fn watch(child: &mut Child, server: u32) -> Result<(Used, String), String> {
    let stdout = child.stdout.take().ok_or("sysbench has no output")?;
    let (mut begin, mut end, mut text) = (None, None, String::new());
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|e| format!("sysbench: {e}"))?;
        if line.contains("Checkpoint report") {
            begin = Some(Sample::take(server, child.id())?);
        } else if line.starts_with("SQL statistics:") {
            end = Some(Sample::take(server, child.id())?);
            text.clear();
        }
        text.push_str(&line);
        text.push('\n');
    }
    match (begin, end) {
        (Some(begin), Some(end)) => Ok((end.since(&begin), text)),
        (None, Some(_)) => Err(format!("sysbench began after its warm-up (--warm-up): {text}")),
        _ => Err(format!("sysbench: {text}")),
    }
}

fn value(text: &str, name: &str) -> Result<f64, String> {
    let rest = text.split(name).nth(1).ok_or(format!("sysbench did not print '{name}'"))?;
    let word = rest.split_whitespace().next().unwrap_or("");
    word.parse().map_err(|_| format!("sysbench printed '{name} {word}'"))
}
