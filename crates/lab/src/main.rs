//! The `gannet-lab` binary: see `gannet-lab --help`.

use clap::Parser;
use lab::command::{CommandLine, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = CommandLine::parse();
    let config = runtime::Config { workers: 1, ..runtime::Config::default() };
    let outcome = match runtime::Runtime::start(config) {
        Ok(runtime) => runtime.run(move || run(command)),
        Err(error) => Err(format!("the threads do not start: {error}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gannet-lab: {message}");
            ExitCode::FAILURE
        }
    }
}
