//! `cargo xtask bench commit-latency`: one client's commits, from append to durable inside the
//! server, beside what the device itself takes for a write and its sync: one after the other
//! without a pause, and in the rhythm of a client, with a message and its answer between two
//! writes. The second is what the limit is about: a processor that wakes up for each write hands it
//! over later, whoever writes. The server counts sums, so means are compared, in short turns of
//! which the middle one counts. Before, commits go on until the log uses its files again: new
//! ones are filled with zeroes on the same device.

use super::Plan;
use super::load::{Load, number};
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use crate::{Outcome, process, servers};
use std::path::Path;

const SQL: &str = "UPDATE sbtest1 SET c={c} WHERE id={id}";
/// What the server may add, in microseconds.
const ABOVE_DEVICE_US: f64 = 20.0;
/// At some 7,000 commits a second, each of a block, more than the files of a log may take.
const BEFORE_SECONDS: f64 = 15.0;
/// Turns of device and server; short ones, because the device's pace changes.
const TURNS: usize = 5;

/// One turn.
struct Turn {
    /// Mean of the device's writes with their sync without a pause.
    tight_us: f64,
    /// The same in the rhythm of a client, and their median.
    device_us: f64,
    device_median_us: f64,
    /// Mean of the commits' waits.
    wait_us: f64,
    /// Mean of the server's own writes with their sync.
    write_us: f64,
    /// Median that the client saw.
    client_us: f64,
}

/// Device and server in turn.
pub fn run(plan: &Plan) -> Outcome {
    let built = Built::build()?;
    let subject = built.gannet("1G")?;
    let plan = &Plan { tables: 1, rows: 10_000, ..plan.like() };
    subject.fill(plan)?;
    Load { seconds: BEFORE_SECONDS, ..Load::new(plan, SQL, 1) }.run_once(&subject)?;
    let folder = servers::fresh_folder("bench-device")?;
    let mut turns = Vec::new();
    for _ in 0..TURNS * plan.pairs {
        turns.push(turn(plan, &subject, &folder)?);
    }
    let of = |figure: fn(&Turn) -> f64| Spread::of(&turns, figure);
    println!("device: write and sync, no pause, mean us      {}", of(|t| t.tight_us));
    println!("device: in the rhythm of a client, mean us     {}", of(|t| t.device_us));
    println!("device: in the rhythm of a client, median us   {}", of(|t| t.device_median_us));
    println!("server: its write and sync, mean us            {}", of(|t| t.write_us));
    println!("server: from append to durable, mean us        {}", of(|t| t.wait_us));
    println!("client: an update, median us                   {}", of(|t| t.client_us));
    println!(
        "append to durable above the device without a pause, us {}",
        of(|t| t.wait_us - t.tight_us)
    );
    let mut limits = Limits::default();
    let above = of(|t| t.wait_us - t.device_us).median;
    limits.at_most("append to durable above the device in that rhythm, us", above, ABOVE_DEVICE_US);
    limits.finish()
}

fn turn(plan: &Plan, subject: &Subject, folder: &Path) -> Result<Turn, String> {
    let seconds = (plan.seconds / TURNS as f64).max(0.5);
    let tight = device(subject, folder, seconds, &[])?;
    let line = device(subject, folder, seconds, &["--exchange"])?;
    let before = Counters::read(subject)?;
    let load = Load { seconds, warm_up: 0.2, ..Load::new(plan, SQL, 1) };
    let figures = load.run_once(subject)?;
    let after = Counters::read(subject)?;
    let mean_us = |nanos: f64, count: f64| nanos / count.max(1.0) / 1000.0;
    Ok(Turn {
        tight_us: number(&tight, "mean_us"),
        device_us: number(&line, "mean_us"),
        device_median_us: number(&line, "p50_us"),
        wait_us: mean_us(after.wait_nanos - before.wait_nanos, after.commits - before.commits),
        write_us: mean_us(after.write_nanos - before.write_nanos, after.writes - before.writes),
        client_us: figures.p50_us,
    })
}

/// The line of `gannet-bench device`.
fn device(
    subject: &Subject,
    folder: &Path,
    seconds: f64,
    options: &[&str],
) -> Result<String, String> {
    let output = process::with_descriptors(&subject.tool)
        .args(["device", "--seconds", &seconds.to_string(), "--file"])
        .arg(folder.join("file"))
        .args(options)
        .output()
        .map_err(|e| format!("gannet-bench: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The log's counters.
struct Counters {
    commits: f64,
    wait_nanos: f64,
    writes: f64,
    write_nanos: f64,
}

impl Counters {
    fn read(subject: &Subject) -> Result<Self, String> {
        Ok(Self {
            commits: subject.status("Gannet_log_commits")?,
            wait_nanos: subject.status("Gannet_log_commit_wait_nanos")?,
            writes: subject.status("Gannet_log_synced_writes")?,
            write_nanos: subject.status("Gannet_log_synced_write_nanos")?,
        })
    }
}
