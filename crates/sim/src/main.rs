//! `gannet-sim`: runs seeds, replays one, hunts mutants.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ran = match arguments.iter().position(|argument| argument == "--server") {
        Some(_) => sim::server_life::command(&arguments),
        None => sim::command::run(&arguments),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("gannet-sim: {message}");
            ExitCode::FAILURE
        }
    }
}
