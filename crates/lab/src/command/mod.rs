//! The commands of `gannet-lab`.

mod dsn;
mod load;
mod run;
mod verify;
mod workload;

use clap::{Args, Parser, Subcommand};

/// What came of a command: a message for the terminal if it failed.
pub type Outcome = Result<(), String>;

/// Loads, measures and verifies any server that speaks the MySQL protocol.
#[derive(Debug, Parser)]
#[command(name = "gannet-lab", version, about)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make and fill the tables of a workload.
    Load(load::Arguments),
    /// Run a workload and measure.
    Run(run::Arguments),
    /// Check the data of a workload; the exit code says whether it is right.
    Verify(verify::Arguments),
}

/// Where the server is.
#[derive(Clone, Debug, Args)]
struct Server {
    /// The server: mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE.
    #[arg(long, value_parser = dsn::parse)]
    dsn: crate::client::Target,
}

/// Executes a command. Call it in a fiber.
pub fn run(line: CommandLine) -> Outcome {
    match line.command {
        Command::Load(arguments) => load::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Verify(arguments) => verify::run(arguments),
    }
}
