//! `cargo xtask`: the one door to everything that a developer or the checking machine runs.

mod analytics;
mod arguments;
mod bank;
mod bench;
mod bigger_command;
mod codecs;
mod connectors_command;
mod coverage_command;
mod crash_command;
mod differ;
mod dump_command;
mod flip_command;
mod flip_data;
mod full_disk_command;
mod fuzz_command;
mod instructions;
mod interleaving_command;
mod isolation;
mod miri_command;
mod model_command;
mod mysql;
mod packages;
mod plans;
mod power_cut_command;
mod process;
mod random;
mod servers;
mod space;
mod spill_command;
mod sqltest_command;
mod test_command;
mod tidy;
mod tpcc;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a command gives back: an error is a sentence for the person at the terminal.
type Outcome = Result<(), String>;

const USAGE: &str = "usage: cargo xtask COMMAND
  test                      install what tests need, then run all of them (what CI runs)
  tidy                      style as a test: layers, sizes, forbidden calls, the ways
  sqltest [--bless] [--own] [NAME]
                            compare SQL answers and interleavings with MariaDB's; --bless asks a
                            live MariaDB, --own records interleavings that differ on purpose
  coverage                  functions and clauses that too few blessed statements use
  connectors [NAME...]      small applications through real connectors (JDBC, Go, Node, Python,
                            PHP), the same with MariaDB and with Gannet
  differ [--seed N] [--minutes M] [--statements N] [--one SEED] [--text]
                            random statements to Gannet and to a MariaDB, answers compared, what
                            differs shrunk; --one shows a seed's, --text only prints statements
  crash [--rounds N] [--seed S] [--codec NAME] [--items N] [--debug]
                            kill -9 under bank transfers, then check every promise and row
  power-cut [--rounds N] [--seed S] [--codec NAME] [--mutants] [--debug]
                            the same on a file system that loses what was not synced (FUSE)
  isolation [--level NAME] [--transactions N] [--crash] [--mariadb] [--release]
                            what concurrent clients see at each level, judged
  tpcc [--seconds N] [--crash] [--mariadb]
                            TPC-C's five transactions, its twelve conditions, also after kill -9
  plans [--mariadb] [--all] [--bless] [TEXT]
                            plans against forced orders and indexes, by rows read; those of the
                            analytics benchmark against recorded ones
  space [--megabytes N] [--pool N] [--connections N] [--drop] [--mariadb] [--release] [--model]
                            files after deletes, DROP, TRUNCATE, OPTIMIZE (--drop: DROP alone); a
                            model of collection
  codecs [--megabytes N] [--pool N] [--codecs A,B] [--rows KIND] [--release]
                            bytes of the same rows under every codec and in MariaDB's ways, MyRocks
                            among them
  full-disk [--megabytes N] [--release]
                            a small file system filled up under load (needs root: mount)
  spill [--release]         resident memory of operators with ten times their budget
  dump [--release]          MariaDB to Gannet and back by mariadb-dump, compared
  flip [--places N] [--at-once N] [--debug]
                            flipped bytes in pages of every codec, log, superblock: all found,
                            none served
  fuzz [TARGET] [SECONDS]   libFuzzer on packets, statements, log records, pages
  model [NAME]              the lock-free protocols in every order (loom)
  miri                      every pointer of the unsafe code that Miri can follow
  mysql                     MySQL of Debian's unstable distribution, unpacked with its libraries,
                            for the lab and for `bench sysbench --mysql`
  bigger [--megabytes N] [--pool N] [--seconds S] [--codec NAME] [--debug] [--mariadb]
                            data many times the buffer pool: memory, checksums, restart
  instructions [--bless] [--profile] [NAME...]
                            instructions per statement against docs/instructions.tsv (callgrind)
  bench NAME [--quick]      beside MariaDB or beside the limit: sysbench, limit, connections,
                            commit-latency, hot-row, starvation, analytics
";

/// Root of the workspace.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or(&[]);
    let outcome = match arguments.first().map(String::as_str) {
        Some("test") => test_command::run(),
        Some("tidy") => tidy::run(&root()),
        Some("coverage") => coverage_command::run(&root()),
        Some("connectors") => connectors_command::run(rest),
        Some("crash") => crash_command::run(rest),
        Some("power-cut") => power_cut_command::run(rest),
        Some("differ") => differ::run(rest),
        Some("isolation") => isolation::run(rest),
        Some("flip") => flip_command::run(rest),
        Some("tpcc") => tpcc::run(rest),
        Some("fuzz") => fuzz_command::run(rest),
        Some("bigger") => bigger_command::run(rest),
        Some("model") => model_command::run(rest),
        Some("miri") => miri_command::run(),
        Some("mysql") => mysql::run(),
        Some("bench") => bench::run(rest),
        Some("instructions") => instructions::run(rest),
        Some("space") => space::run(rest),
        Some("codecs") => codecs::run(rest),
        Some("full-disk") => full_disk_command::run(rest),
        Some("spill") => spill_command::run(rest),
        Some("plans") => plans::run(&root(), rest),
        Some("dump") => dump_command::run(&root(), rest),
        Some("sqltest") => sqltest_command::run(&root(), rest),
        _ => Err(USAGE.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
