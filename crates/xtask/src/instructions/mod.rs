//! `cargo xtask instructions`: what the commonest statements cost in instructions, counted by
//! callgrind, so that a change for the worse is seen on a machine that is too busy to time.
//!
//! 1. `docs/instructions.tsv` has the statements, and what each cost when it was last blessed.
//! 2. One client, one worker, a table of its own for every statement that
//!    writes, fixed random seeds; every statement is warm when the counting begins.
//! 3. A figure is the least of [`ROUNDS`] rounds, because what the server does beside (timers,
//!    flushing) only adds. It contains all that the process does in user mode, network included.

mod callgrind;
mod statements;

use crate::arguments::Arguments;
use crate::process::Server;
use crate::{Outcome, packages, servers};
use callgrind::Profile;
use sqltest::client::{Connection, Options};
use sqltest::template;
use statements::{Client, Statement};
use std::path::Path;

const FILE: &str = "docs/instructions.tsv";
/// Executions that bring plan, pages and branches of the server's caches up.
const WARM_UP: u32 = 150;
/// Executions of a round, for a statement below and above [`LONG_INSTRUCTIONS`].
const EXECUTIONS: [u32; 2] = [1000, 150];
/// A statement that costs more is long.
const LONG_INSTRUCTIONS: f64 = 100_000.0;
/// Rounds; the least one counts.
const ROUNDS: usize = 7;
/// Tables `sbtest1`...; statements that write have one each.
const TABLES: u32 = 12;
const ROWS: u32 = 10_000;
/// A statement that costs this many percent more fails.
const LIMIT_PERCENT: f64 = 2.0;

/// Counts and compares; `--bless` writes the file, `--profile` prints where the instructions go,
/// `--binary FILE` counts those of a server that is built already.
pub fn run(words: &[String]) -> Outcome {
    let arguments = Arguments::new(words, &["--bless", "--profile"], &["--binary"])?;
    let names = arguments.names();
    packages::install(&packages::VALGRIND)?;
    let path = crate::root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{FILE}: {e}"))?;
    let mut all = statements::parse(&text)?;
    let chosen = |s: &Statement| names.is_empty() || names.iter().any(|n| s.name.contains(n));
    if !all.iter().any(chosen) {
        return Err(format!("{FILE} has no statement {names:?}"));
    }
    let binary = match arguments.value("--binary") {
        Some(built) => built.into(),
        None => servers::build_gannet(true)?,
    };
    let folder = servers::fresh_folder("instructions")?;
    let data = folder.join("data");
    load(&binary, &data)?;
    let server = callgrind::start(&binary, &data, &folder)?;
    let mut failures = Vec::new();
    println!("{:28} {:>9} {:>9} {:>7}  spread", "instructions per execution", "blessed", "now", "");
    for statement in all.iter_mut().filter(|s| chosen(s)) {
        let rounds = measure(&server, statement, &folder)?;
        let (least, most) = (&rounds[0], &rounds[ROUNDS - 1]);
        let now = least.total();
        let spread = (most.total() / now - 1.0) * 100.0;
        let percent = (now / statement.instructions - 1.0) * 100.0;
        println!(
            "{:28} {:9.0} {now:9.0} {percent:+6.1}%  {spread:.1}%",
            statement.name, statement.instructions
        );
        if percent > LIMIT_PERCENT || statement.instructions == 0.0 {
            failures.push(statement.name.clone());
        }
        if arguments.has("--profile") {
            least.print();
        }
        statement.instructions = now;
    }
    if arguments.has("--bless") {
        let text = statements::bless(&text, &all);
        return std::fs::write(&path, text).map_err(|e| format!("{FILE}: {e}"));
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "over {LIMIT_PERCENT} % more instructions than in {FILE}: {}. If that is the price of \
         something wanted: cargo xtask instructions --bless",
        failures.join(", ")
    ))
}

/// Fills the tables with a server that nobody watches.
fn load(binary: &Path, data: &Path) -> Outcome {
    let mut server = servers::start_gannet(binary, data, 0, &["--innodb-buffer-pool-size=256M"])?;
    let mut connection =
        Connection::open(&Options::local(server.port)).map_err(|e| e.to_string())?;
    template::fill(&mut connection, TABLES, ROWS).map_err(|e| e.to_string())?;
    if server.stop() { Ok(()) } else { Err("the server did not stop cleanly".into()) }
}

/// The rounds of one statement, the least first.
fn measure(server: &Server, statement: &Statement, folder: &Path) -> Result<Vec<Profile>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", statement.name);
    let mut client = Client::open(server.port, statement, ROWS).map_err(failed)?;
    callgrind::dump(server.id(), folder, 1)?;
    client.execute(WARM_UP).map_err(failed)?;
    let warm_up = callgrind::dump(server.id(), folder, WARM_UP)?;
    let executions = EXECUTIONS[usize::from(warm_up.total() > LONG_INSTRUCTIONS)];
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        client.execute(executions).map_err(failed)?;
        rounds.push(callgrind::dump(server.id(), folder, executions)?);
    }
    rounds.sort_by(|a, b| a.total().total_cmp(&b.total()));
    Ok(rounds)
}
