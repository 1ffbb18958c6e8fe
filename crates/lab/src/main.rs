//! The `gannet-lab` binary: see `gannet-lab --help`.

use clap::Parser;
use lab::command::{CommandLine, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = CommandLine::parse();
    // Every client has a descriptor or two; what the limit is then is `doctor`'s to say.
    let _limit = runtime::raise_descriptor_limit();
    let workers = command.workers();
    let config = runtime::Config { workers, handle_signals: true, ..runtime::Config::default() };
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
