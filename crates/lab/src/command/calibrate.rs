//! `gannet-lab calibrate`: the driver beside sysbench, on the same server and the same rows.
//!
//! 1. Server and client have a processor each. On shared ones a cheaper client leaves more of them
//!    to the server, and the comparison measures that.
//! 2. The clients take turns within a second, all connected, one of them running and the others
//!    stopped (`calibrate/slices.rs`). What neighbours take of the machine changes from second to
//!    second, and runs of a second scatter by a fifth where that is so. A ratio is that of one
//!    round, there and back; the median of the rounds is judged.
//! 3. A server's cost of an answer holds the waking of who waits for it. sysbench has a thread for
//!    each client, nearly always asleep; the lab has one for all, which is often awake when the
//!    next answer comes. So throughput and the server's cost are judged with a thread for each of
//!    the lab's clients, too, which wait in a call of the system as sysbench's do: to tell a ring
//!    of many waits costs a server more than to wake a thread. The client's cost is judged as the
//!    lab runs, with one for all.
//! 4. What else runs is said before: one thread of ours gets a smaller share of a busy processor
//!    than the many of sysbench.
//! 5. An interval that is wider than what is to be told decides nothing, and that is said.

mod clients;
mod processors;
mod slices;

use super::Outcome;
use super::one_table::{OneTable, script_of};
use crate::client::{Connection, Target};
use crate::experiment::order;
use crate::machine::busy;
use crate::server::{Description, Program, Started, start};
use crate::statistics::median;
use crate::statistics::rounds::{Ratio, Verdict};
use crate::workload::sysbench::Script;
use clap::Args;
use clients::{Client, Kind};
use processors::Processors;
use slices::{Counted, Found};
use std::ops::Range;
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
    /// Rounds; each client has two slices of time in each.
    #[arg(long, default_value_t = 40)]
    rounds: usize,
    /// Milliseconds of a slice.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(50..))]
    slice_ms: u64,
    /// Seconds that each client runs before its first slice.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
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

/// Throughput and the server's processor time of the lab, in parts of sysbench's.
const SERVER_LIMITS: Range<f64> = 0.95..1.05;
/// The lab's own processor time in parts of sysbench's.
const CLIENT_LIMITS: Range<f64> = 0.0..1.0;

/// Others that use more of a processor disturb.
const BUSY: f64 = 0.1;

pub(super) fn run(arguments: Arguments) -> Outcome {
    super::is_ours_alone(&arguments.output)?;
    let sysbench = clients::version()?;
    let scripts = arguments.scripts.iter().map(|name| script_of(name));
    let scripts: Vec<Script> = scripts.collect::<Result<_, String>>()?;
    let (server, clients) = (&arguments.server_cpus, &arguments.client_cpus);
    let processors = Processors::choose(server.as_deref(), clients.as_deref())?;
    processors.pin()?;
    let mut description =
        Description { cpus: processors.server.clone(), ..arguments.table.description() };
    description.settings.durability = arguments.durability;
    let program = Program::find(description.kind, description.program.as_deref())?;
    println!("{}; {sysbench}", program.text);
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
    let all = server.target();
    let mut clients = Vec::new();
    for kind in Kind::ALL {
        let target = Target { database: kind.database().into(), ..all.clone() };
        arguments.table.fill(script, &target)?;
        let mut client = Client::start(kind, arguments, script, &target)?;
        runtime::sleep(Duration::from_secs(arguments.warm_up));
        client.stop()?;
        clients.push(client);
    }
    let connection = Connection::open(&all).map_err(|failure| failure.explained(&all))?;
    let id = server.id().ok_or("the server has ended")?;
    let mut counted = Counted::new(id, connection, script)?;
    let length = Duration::from_millis(arguments.slice_ms);
    let mut found = Kind::ALL.map(|_| Vec::new());
    for round in 0..arguments.rounds.max(1) {
        for place in order(clients.len(), round) {
            found[place].push(counted.slice(&mut clients[place], length)?);
        }
    }
    Ok(judge(script.name(), &found))
}

/// Prints medians, ratios with their intervals and the verdict; the limits that were missed.
fn judge(name: &str, found: &[Vec<Found>; 3]) -> Vec<String> {
    type Row = (&'static str, fn(&Found) -> f64, Kind, Range<f64>);
    let rows: [Row; 3] = [
        ("transactions/s", |found| found.per_second, Kind::LabEach, SERVER_LIMITS),
        ("server CPU us", |found| found.server_micros, Kind::LabEach, SERVER_LIMITS),
        ("client CPU us", |found| found.client_micros, Kind::Lab, CLIENT_LIMITS),
    ];
    println!("{name}, medians; ratios to sysbench's (95 % interval)");
    println!(
        "  {:14} {:>9}  {:>9} {:^21}  {:>9} {:^21}",
        "", "sysbench", "threads", "a thread for each", "one", "one thread for all"
    );
    let mut missed = Vec::new();
    for (what, of, judged, limits) in rows {
        let figures = found.each_ref().map(|slices| slices.iter().map(of).collect::<Vec<f64>>());
        let [sysbench, each, one] = figures.each_ref().map(|values| median(values));
        let ratio_of = |kind: Kind| Ratio::of_rounds(&figures[0], &figures[kind as usize]);
        println!(
            "  {what:14} {sysbench:9.1}  {each:9.1} {:^21}  {one:9.1} {:^21}",
            ratio_of(Kind::LabEach),
            ratio_of(Kind::Lab)
        );
        let ratio = ratio_of(judged);
        missed.extend(match ratio.verdict(&limits) {
            Verdict::Kept => None,
            Verdict::Missed => Some(format!("{name}: {what} is {ratio} of sysbench's")),
            Verdict::CannotTell => Some(format!(
                "{name}: {what} is {ratio} of sysbench's, which decides nothing: more --rounds, \
                 or a quieter machine"
            )),
        });
    }
    println!("  {}", if missed.is_empty() { "agrees" } else { "DOES NOT AGREE" });
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_kept_or_named() {
        let found = |per_second, server_micros, client_micros| {
            vec![Found { per_second, server_micros, client_micros }; 12]
        };
        let sysbench = || found(1000.0, 50.0, 20.0);
        // A thread for each client may cost more, one for all may make a faster server.
        let same = [sysbench(), found(1040.0, 48.5, 30.0), found(1100.0, 45.0, 19.0)];
        assert_eq!(judge("x", &same), [""; 0]);
        let other = [sysbench(), found(1060.0, 40.0, 19.0), found(1000.0, 50.0, 20.5)];
        let missed = judge("x", &other);
        assert_eq!(missed.len(), 3);
        assert!(missed[0].contains("transactions/s is 1.060"), "{missed:?}");
        let few = same.map(|mut slices| slices.split_off(10));
        let undecided = judge("x", &few);
        assert_eq!(undecided.len(), 3, "two slices have no interval");
        assert!(undecided[0].contains("--rounds"), "{undecided:?}");
    }
}
