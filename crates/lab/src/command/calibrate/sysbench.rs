//! sysbench as a process.

use super::Arguments;
use super::figures::{Found, used};
use crate::account::Figures;
use crate::client::Target;
use crate::workload::sysbench::Script;
use runtime::net::Address;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Whether it is there.
pub(super) fn check() -> Result<(), String> {
    version().map(|_| ())
}

/// What it says of itself.
pub(super) fn version() -> Result<String, String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.map_err(|error| format!("sysbench: {error}; install it"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A moment of a run.
struct Moment {
    at: Instant,
    server: Figures,
    client: Figures,
}

impl Moment {
    fn now(server: u32, client: u32) -> Result<Self, String> {
        let of = |id| Figures::of(id).ok_or("a process has ended");
        Ok(Self { at: Instant::now(), server: of(server)?, client: of(client)? })
    }
}

/// A run. It inherits the processors of this process.
pub(super) fn run(
    arguments: &Arguments,
    script: Script,
    target: &Target,
    server: u32,
) -> Result<Found, String> {
    let Address::Tcp(address) = &target.address else { return Err("no port".into()) };
    let mut command = Command::new("sysbench");
    command
        .arg(script.name())
        .arg(format!("--mysql-host={}", address.ip()))
        .arg(format!("--mysql-port={}", address.port()))
        .arg(format!("--mysql-user={}", target.user))
        .arg(format!("--mysql-password={}", target.password))
        .arg(format!("--mysql-db={}", target.database))
        .args(["--tables=1", "--rand-type=uniform", "--db-ps-mode=auto"])
        .arg(format!("--table-size={}", arguments.table.rows))
        .arg(format!("--threads={}", arguments.table.clients))
        .arg(format!("--time={}", arguments.warm_up + arguments.seconds))
        .arg(format!("--report-checkpoints={}", arguments.warm_up))
        .args(["--mysql-ignore-errors=1213,1020,1205", "run"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // Its output is read while nothing else is to be done.
    runtime::blocking(move || watch(command, server))
}

/// Its checkpoint at the end of the warm-up begins its counters anew.
fn watch(mut command: Command, server: u32) -> Result<Found, String> {
    let mut child = command.spawn().map_err(|error| format!("sysbench: {error}"))?;
    let output = child.stdout.take().ok_or("sysbench has no output")?;
    let id = child.id();
    let read = follow(output, || Moment::now(server, id));
    let status = child.wait().map_err(|error| format!("sysbench: {error}"))?;
    let (begin, end, text) = read?;
    if !status.success() {
        return Err(format!("sysbench: {status}: {text}"));
    }
    let transactions = number(&text, "transactions:")?;
    let seconds = (end.at - begin.at).as_secs_f64();
    let server = used(&begin.server, &end.server);
    Found::of((server, used(&begin.client, &end.client)), transactions, seconds)
}

/// Reads to the end; the moments of the checkpoint and of the last report, and that report.
fn follow<M>(
    output: impl Read,
    look: impl Fn() -> Result<M, String>,
) -> Result<(M, M, String), String> {
    let (mut begin, mut end, mut text) = (None, None, String::new());
    for line in BufReader::new(output).lines() {
        let line = line.map_err(|error| format!("sysbench: {error}"))?;
        if line.contains("Checkpoint report") {
            begin = Some(look()?);
        } else if line.starts_with("SQL statistics:") {
            end = Some(look()?);
            text.clear();
        }
        text.push_str(&line);
        text.push('\n');
    }
    match (begin, end) {
        (Some(begin), Some(end)) => Ok((begin, end, text)),
        _ => Err(format!("sysbench: {text}")),
    }
}

fn number(text: &str, name: &str) -> Result<f64, String> {
    let rest = text.split(name).nth(1).ok_or(format!("sysbench did not print '{name}'"))?;
    let word = rest.split_whitespace().next().unwrap_or("");
    word.parse().map_err(|_| format!("sysbench printed '{name} {word}'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const OUTPUT: &str = "\
[ 3s ] Checkpoint report:
SQL statistics:
    transactions:                        7      (3.0 per sec.)
SQL statistics:
    transactions:                        1234   (411.0 per sec.)
";

    #[test]
    fn the_last_report_counts_from_the_checkpoint() {
        let calls = Cell::new(0);
        let look = || {
            calls.set(calls.get() + 1);
            Ok(calls.get())
        };
        let (begin, end, text) = follow(OUTPUT.as_bytes(), look).expect("whole");
        assert_eq!((begin, end), (1, 3));
        assert_eq!(number(&text, "transactions:"), Ok(1234.0));
        assert!(follow(&b"FATAL: no\n"[..], look).expect_err("no report").contains("FATAL"));
    }
}
