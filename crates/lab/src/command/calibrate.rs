//! `gannet-lab calibrate`: the driver beside sysbench, on the same server and the same rows.
//!
//! 1. Server and client have a processor each. On shared ones a cheaper client leaves more of them
//!    to the server, and the comparison measures that.
//! 2. The clients take turns, there and back. A ratio is that of one round's runs; the median of
//!    the rounds is judged: what neighbours take of the machine for a minute meets both sides of
//!    a round, and many short rounds tell more than a few long ones.
//! 3. A server's cost of an answer holds the waking of who waits for it. sysbench has a thread for
//!    each client, nearly always asleep; the lab has one for all, which is often awake when the
//!    next answer comes. So throughput and the server's cost are judged with a thread for each of
//!    the lab's clients, too, which wait in a call of the system as sysbench's do: to tell a ring
//!    of many waits costs a server more than to wake a thread. The client's cost is judged as the
//!    lab runs, with one for all.
//! 4. What else runs is said before: one thread of ours gets a smaller share of a busy processor
//!    than the many of sysbench.
//! 5. All are counted from the end of their warm-up to the end of their last second, by the same
//!    figures of the kernel. What cannot be told is an error, never 0.

mod figures;
mod processors;
mod rounds;
mod sysbench;

use super::Outcome;
use super::one_table::{OneTable, script_of};
use crate::account::{Account, Subject};
use crate::client::Target;
use crate::driver::{self, Plan};
use crate::experiment::order;
use crate::machine::busy;
use crate::server::{Description, Program, Started, start};
use crate::workload::sysbench::{Script, Sysbench};
use clap::Args;
use figures::{Found, between_looks, used_between};
use processors::Processors;
use rounds::{Ratio, median};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    table: OneTable,
    /// Scripts, by sysbench's names.
    #[arg(long, value_delimiter = ',', default_values = SCRIPTS)]
    scripts: Vec<String>,
    /// Seconds of a run that count.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds before them.
    #[arg(long, default_value_t = 3)]
    warm_up: u64,
    /// Processors of the server, as taskset writes them; the first one if nothing is said.
    #[arg(long)]
    server_cpus: Option<String>,
    /// Processors of the clients; the second one if nothing is said.
    #[arg(long)]
    client_cpus: Option<String>,
    /// What a commit waits for: 2 the operating system, whose pace does not change from run to run
    /// as a device's (1) does, or 0 nothing.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(..=2))]
    durability: u8,
    /// Where the server keeps its data while it runs.
    #[arg(long, default_value = "lab-calibration")]
    output: PathBuf,
}

/// Those that are compared if nothing is said.
const SCRIPTS: [&str; 5] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
];

impl Arguments {
    /// One for each client.
    pub(super) fn workers(&self) -> usize {
        self.table.clients.max(1) as usize
    }
}

/// Those that take turns; the lab with a thread for each client, and with one for all.
const SYSBENCH: usize = 0;
const LAB_EACH: usize = 1;
const LAB: usize = 2;
const CLIENTS: usize = 3;

/// Throughput and the server's processor time may differ by so much.
const SERVER_DIFFERENCE: f64 = 0.05;
/// The driver may cost so much of what sysbench does.
const CLIENT_RATIO: f64 = 1.0;

/// Others that use more of a processor disturb.
const BUSY: f64 = 0.1;

pub(super) fn run(arguments: Arguments) -> Outcome {
    super::is_ours_alone(&arguments.output)?;
    sysbench::check()?;
    let scripts = arguments.scripts.iter().map(|name| script_of(name));
    let scripts: Vec<Script> = scripts.collect::<Result<_, String>>()?;
    let (server, clients) = (&arguments.server_cpus, &arguments.client_cpus);
    let processors = Processors::choose(server.as_deref(), clients.as_deref())?;
    processors.pin()?;
    let mut description =
        Description { cpus: processors.server.clone(), ..arguments.table.description() };
    description.settings.durability = arguments.durability;
    let program = Program::find(description.kind, description.program.as_deref())?;
    println!("{}; {}", program.text, sysbench::version()?);
    let (clients, durability) = (arguments.table.clients, arguments.durability);
    println!("{processors}; {clients} clients, durability {durability}");
    let others = busy(Duration::from_secs(1), &[]);
    if others.cores > BUSY {
        println!("others use {:.2} processors: these figures say little", others.cores);
    }
    let server = start(&description, "calibration", &arguments.output)?;
    let mut missed = Vec::new();
    for script in scripts {
        missed.extend(compare(&arguments, &server, script)?);
    }
    server.stop()?;
    drop(server);
    // Only the server's log is in it.
    let _left = std::fs::remove_dir_all(&arguments.output);
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
}

/// The clients in turn; the limits that were missed.
fn compare(
    arguments: &Arguments,
    server: &Arc<Started>,
    script: Script,
) -> Result<Vec<String>, String> {
    let target = server.target();
    let workload = arguments.table.fill(script, &target)?;
    let id = server.id().ok_or("the server has ended")?;
    let mut found: [Vec<Found>; CLIENTS] = Default::default();
    let table = &arguments.table;
    let mut turn = 0;
    for round in 0..table.rounds.max(1) {
        for client in order(CLIENTS, round) {
            let one = match client {
                SYSBENCH => sysbench::run(arguments, script, &target, id)?,
                LAB_EACH => ours(arguments, (table.clients, turn), &workload, (&target, id))?,
                _ => ours(arguments, (1, turn), &workload, (&target, id))?,
            };
            turn += 1;
            found[client].push(one);
        }
    }
    Ok(judge(script.name(), &found))
}

/// A run of this driver, its clients on so many threads, after so many others. As sysbench does
/// it asks what was not asked before: values that are there already change nothing.
fn ours(
    arguments: &Arguments,
    (threads, turn): (u32, u32),
    workload: &Sysbench,
    (target, server): (&Target, u32),
) -> Result<Found, String> {
    let warm_up = Duration::from_secs(arguments.warm_up);
    let plan = Plan {
        clients: arguments.table.clients,
        threads,
        holds_threads: threads > 1,
        turn,
        warm_up,
        measured: Duration::from_secs(arguments.seconds),
        ..Plan::new(target.clone())
    };
    // No connection of the account's own: sysbench has none either.
    let subject = Subject { server: Some(server), ..Subject::default() };
    let account = Account::begin(subject, between_looks(arguments.seconds));
    let measured = driver::run(workload, plan);
    let ended = runtime::now();
    let origin = measured.as_ref().map_or(ended, |measured| measured.begin);
    let accounts = account.end(origin);
    let measured = measured.map_err(|failure| failure.explained(target))?;
    if let Some(why) = measured.given_up {
        return Err(format!("the run ended early: {why}"));
    }
    let seconds = arguments.seconds as f64;
    let server = used_between(&accounts.samples, |sample| sample.server, seconds);
    let client = used_between(&accounts.samples, |sample| sample.client, seconds);
    let transactions = measured.record.completed_per_second().iter().sum::<u64>() as f64;
    let server = server.map_err(|why| format!("the server's account: {why}"))?;
    let client = client.map_err(|why| format!("the client's account: {why}"))?;
    Found::of((server, client), transactions, seconds)
}

/// Prints medians, ratios with their intervals and the verdict; the limits that were missed.
fn judge(name: &str, found: &[Vec<Found>; CLIENTS]) -> Vec<String> {
    let rows: [(&str, fn(&Found) -> f64); 3] = [
        ("transactions/s", |found| found.per_second),
        ("server CPU us", |found| found.server_micros),
        ("client CPU us", |found| found.client_micros),
    ];
    println!("{name}, medians; ratios to sysbench's (95 % interval)");
    println!(
        "  {:14} {:>9}  {:>9} {:^21}  {:>9} {:^21}",
        "", "sysbench", "threads", "a thread for each", "one", "one thread for all"
    );
    let mut missed = Vec::new();
    for (place, (what, of)) in rows.into_iter().enumerate() {
        let figures = found.each_ref().map(|runs| runs.iter().map(of).collect::<Vec<f64>>());
        let medians = figures.each_ref().map(|values| median(values.clone()));
        let each = Ratio::of_rounds(&figures[SYSBENCH], &figures[LAB_EACH]);
        let one = Ratio::of_rounds(&figures[SYSBENCH], &figures[LAB]);
        println!(
            "  {what:14} {:9.1}  {:9.1} {each:^21}  {:9.1} {one:^21}",
            medians[SYSBENCH], medians[LAB_EACH], medians[LAB]
        );
        let (ratio, is_kept) = match place {
            2 => (&one, one.median <= CLIENT_RATIO),
            _ => (&each, (each.median - 1.0).abs() <= SERVER_DIFFERENCE),
        };
        if !is_kept {
            missed.push(format!("{name}: {what} is {ratio} of sysbench's"));
        }
    }
    println!("  {}", if missed.is_empty() { "agrees" } else { "MISSED" });
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_or_named() {
        let found = |per_second, server_micros, client_micros| {
            vec![Found { per_second, server_micros, client_micros }; 6]
        };
        let sysbench = || found(1000.0, 50.0, 20.0);
        // A thread for each client may cost more, one for all may make a faster server.
        let same = [sysbench(), found(1040.0, 48.5, 30.0), found(1100.0, 45.0, 19.0)];
        assert_eq!(judge("x", &same), [""; 0]);
        let other = [sysbench(), found(1060.0, 40.0, 19.0), found(1000.0, 50.0, 20.5)];
        let missed = judge("x", &other);
        assert_eq!(missed.len(), 3);
        assert!(missed[0].contains("transactions/s is 1.060"), "{missed:?}");
    }
}
