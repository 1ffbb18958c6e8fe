//! `gannet-sim`: runs seeds, replays one, hunts mutants.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match sim::command::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gannet-sim: {message}");
            ExitCode::FAILURE
        }
    }
}
