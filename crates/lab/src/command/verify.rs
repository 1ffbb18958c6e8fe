//! `gannet-lab verify`

use super::workload::Choice;
use super::{Outcome, Server};
use crate::client::Connection;
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    server: Server,
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    arguments.choice.check()?;
    let mut connection =
        Connection::open(&arguments.server.dsn).map_err(|failure| failure.to_string())?;
    let violations =
        arguments.choice.verify(&mut connection).map_err(|failure| failure.to_string())?;
    if violations.is_empty() {
        println!("VERIFIED: the data keep all rules of the workload");
        return Ok(());
    }
    for violation in &violations {
        println!("FAILED: {}: {} rows, such as", violation.rule, violation.rows);
        violation.examples.iter().for_each(|example| println!("    {example}"));
    }
    Err(format!("{} rules are broken", violations.len()))
}
