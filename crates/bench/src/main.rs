//! `gannet-bench`: load from one thread, the constant server, the device's latency.

use bench::options::Options;
use bench::{client, constant, device};
use std::process::ExitCode;

const USAGE: &str = "usage: gannet-bench COMMAND
  client --port P --sql TEMPLATE [--connections N] [--text] [--statements N] [--seconds S]
         [--warm-up S] [--tables N] [--rows N] [--database D] [--idle] [--hold]
      One thread, N connections, each sends its next statement when the last is answered.
      {table} {id} {id+99} {k} {next} {c} {pad} in a template stand for values. Prints
      'measuring' when the warm-up ends, then one line of figures. --idle only connects;
      --hold stays connected until standard input ends.
  constant [--port P] [--workers N]
      A server of the same runtime and wire code that answers every statement with a constant.
  device --file PATH [--seconds S] [--exchange]
      Latency of a direct write of 4 KiB and its sync, one after the other; --exchange sends a
      message to another thread and back between two of them, as a client with its commits.
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = Options::new(words.get(1..).unwrap_or(&[]));
    let outcome = match words.first().map(String::as_str) {
        Some("client") => client::run(&options),
        Some("constant") => constant::run(&options),
        Some("device") => device::run(&options),
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
