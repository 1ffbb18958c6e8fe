//! The commands of `gannet-lab`.

mod baseline;
mod calibrate;
mod compare;
mod description;
mod doctor;
mod drive;
mod dsn;
mod flags;
mod interrupt;
mod load;
mod one_table;
mod plot;
mod recipes;
mod run;
mod spec;
mod subjects;
mod trials;
mod verify;
mod workload;

use clap::{Parser, Subcommand};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// What came of a command: a message for the terminal if it failed.
pub type Outcome = Result<(), String>;

/// Whether a command may remove this folder at its end: nobody has anything in it.
fn is_ours_alone(folder: &Path) -> Outcome {
    let is_used = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    match is_used {
        true => Err(format!(
            "{} is not empty, and this command removes it at its end: empty it, or name another \
             folder with --output",
            folder.display()
        )),
        false => Ok(()),
    }
}

/// Prints what somebody may want to see a part of only: it is no error that a reader has gone.
fn show(text: &str) -> Outcome {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Loads, measures and verifies any server that speaks the MySQL protocol.
#[derive(Debug, Parser)]
#[command(name = "gannet-lab", version, about)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the driver beside sysbench, each with processors of its own; the exit code says
    /// whether they agree.
    Calibrate(calibrate::Arguments),
    /// Be one of the clients that `calibrate` compares, until it is killed.
    #[command(hide = true)]
    Drive(drive::Arguments),
    /// Say what here would spoil a measurement, and how to mend it; the exit code says whether.
    Doctor(doctor::Arguments),
    /// Make and fill the tables of a workload.
    Load(load::Arguments),
    /// Run a workload and measure.
    Run(flags::Arguments),
    /// Compare a server with itself many times; the exit code says whether chance alone was taken
    /// for a difference.
    Trials(trials::Arguments),
    /// List the experiments that are built in, for `run NAME`.
    Recipes,
    /// Check the data of a workload; the exit code says whether it is right.
    Verify(verify::Arguments),
    /// Compare folders of results: those of the others with those of the first.
    Compare(compare::Arguments),
    /// Make the report of a folder of results again from its run.json.
    Plot(plot::Arguments),
    /// Look for what became worse from one folder of results to another; the exit code says
    /// whether anything did.
    Baseline(baseline::Arguments),
}

impl CommandLine {
    /// Workers of the runtime that the command wants.
    pub fn workers(&self) -> usize {
        match &self.command {
            Command::Drive(arguments) => arguments.workers(),
            _ => 1,
        }
    }
}

/// Executes a command. Call it in a fiber.
pub fn run(line: CommandLine) -> Outcome {
    // These end in order.
    if !matches!(line.command, Command::Run(_) | Command::Load(_)) {
        interrupt::ends();
    }
    match line.command {
        Command::Calibrate(arguments) => calibrate::run(arguments),
        Command::Drive(arguments) => drive::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Load(arguments) => load::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Trials(arguments) => trials::run(arguments),
        Command::Recipes => recipes::run(),
        Command::Verify(arguments) => verify::run(arguments),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Plot(arguments) => plot::run(arguments),
        Command::Baseline(arguments) => baseline::run(arguments),
    }
}
