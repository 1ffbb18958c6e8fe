//! `gannet-lab doctor`

mod judge;
mod server;

use super::Outcome;
use super::dsn;
use crate::client::Target;
use crate::machine::{Machine, busy};
use crate::parity::Confines;
use crate::server::{Description, Engine, Kind, MYROCKS, start};
use clap::Args;
use judge::{Asked, Finding, Gravity, of_machine};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A server to be measured: mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE.
    #[arg(long, value_parser = dsn::parse)]
    dsn: Vec<Target>,
    /// Start a server as `run` would, and look at it: gannet, mariadb, myrocks (MariaDB with that
    /// engine) or mysql, with =PROGRAM for another than the installed one.
    #[arg(long, value_parser = described)]
    start: Vec<Description>,
    /// Clients that are to run at the same time.
    #[arg(long, default_value_t = 64)]
    clients: u32,
    /// Where data and results will lie.
    #[arg(long, default_value = ".")]
    data: Vec<PathBuf>,
    /// Seconds to watch what else runs.
    #[arg(long, default_value_t = 2.0)]
    watch: f64,
    /// Whatever is worth a word makes the exit code 1, not only what spoils a measurement.
    #[arg(long)]
    strict: bool,
}

/// `KIND` or `KIND=PROGRAM`.
fn described(text: &str) -> Result<Description, String> {
    let (kind, program) = match text.split_once('=') {
        Some((kind, program)) => (kind, Some(PathBuf::from(program))),
        None => (text, None),
    };
    let (kind, engine) = match kind {
        MYROCKS => (Kind::Mariadb, Engine::Rocksdb),
        kind => (kind.parse()?, Engine::default()),
    };
    let mut description = Description { program, ..Description::new(kind) };
    description.settings.engine = engine;
    Ok(description)
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let mut findings = Vec::new();
    let asked = Asked { clients: arguments.clients, is_debug: cfg!(debug_assertions) };
    let busy = busy(Duration::from_secs_f64(arguments.watch.clamp(0.1, 600.0)), &[]);
    let machine = Machine::here(&arguments.data);
    findings.extend(of_machine(&machine, &busy, &asked));
    let own = Confines::of(std::process::id());
    for target in &arguments.dsn {
        findings.extend(server::look(target, &machine, own.as_ref(), &asked));
    }
    for description in &arguments.start {
        findings.extend(started(description, &machine, own.as_ref(), &asked));
    }
    findings.iter().for_each(|finding| println!("{finding}"));
    conclude(&findings, arguments.strict)
}

/// A server for as long as it is looked at.
fn started(
    description: &Description,
    machine: &Machine,
    own: Option<&Confines>,
    asked: &Asked,
) -> Vec<Finding> {
    let folder = std::env::temp_dir().join(format!("gannet-lab-doctor-{}", std::process::id()));
    let name = description.kind.word();
    let found = match start(description, name, &folder) {
        Ok(server) => {
            let mut found: Vec<Finding> = server
                .notes()
                .iter()
                .map(|note| Finding::new(Gravity::Known, &format!("{name}: {note}"), ""))
                .collect();
            found.extend(server::look(&server.target(), machine, own, asked));
            let stopped = server.stop();
            found.extend(stopped.err().map(|error| Finding::new(Gravity::Spoils, &error, "")));
            found
        }
        Err(error) => vec![Finding::new(Gravity::Spoils, &error, "see its log above")],
    };
    // It is in the folder for what is temporary.
    let _left = std::fs::remove_dir_all(&folder);
    found
}

/// The exit code: an error if something spoils a measurement.
fn conclude(findings: &[Finding], is_strict: bool) -> Outcome {
    let count = |gravity: Gravity| findings.iter().filter(|f| f.gravity == gravity).count();
    let (spoils, matters) = (count(Gravity::Spoils), count(Gravity::Matters));
    match (spoils, matters) {
        (0, 0) => {
            println!("nothing here spoils a measurement");
            Ok(())
        }
        (0, _) if !is_strict => {
            println!("nothing here spoils a measurement; {matters} things matter");
            Ok(())
        }
        _ => Err(format!("{spoils} things would spoil a measurement, {matters} matter")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_whether_something_spoils() {
        let of = |gravity| vec![Finding::new(gravity, "x", "y")];
        assert!(conclude(&[], true).is_ok());
        assert!(conclude(&of(Gravity::Known), true).is_ok());
        assert!(conclude(&of(Gravity::Matters), false).is_ok());
        assert!(conclude(&of(Gravity::Matters), true).is_err());
        assert!(conclude(&of(Gravity::Spoils), false).is_err());
    }

    #[test]
    fn a_server_to_start_is_a_kind_and_perhaps_a_program() {
        assert_eq!(described("mariadb"), Ok(Description::new(Kind::Mariadb)));
        let given = described("mysql=/opt/mysql").expect("valid");
        assert_eq!(given.program, Some(PathBuf::from("/opt/mysql")));
        let myrocks = described("myrocks").expect("valid");
        assert_eq!((myrocks.kind, myrocks.settings.engine), (Kind::Mariadb, Engine::Rocksdb));
        assert!(described("postgres").is_err());
    }
}
