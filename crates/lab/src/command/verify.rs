//! `gannet-lab verify`

use super::flags::{self, Described, Place, flags};
use super::workload::Choice;
use super::{Outcome, description, subjects};
use crate::client::Connection;
use crate::workload::Violation;
use clap::Args;

pub(super) type Arguments = flags::Arguments<Choice, Own>;

/// What is no part of a description.
#[derive(Clone, Debug, Args)]
pub(super) struct Own {
    #[command(flatten)]
    place: Place,
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let place = &arguments.outer.place;
    let parts = description::parts(&arguments, place, &[])?;
    let mut broken = 0;
    for (name, table) in &parts {
        let described = Described::of(flags().words(table)?)?;
        described.choice.check()?;
        for subject in subjects::running(table)? {
            let explained = |failure: crate::client::Failure| failure.explained(&subject.target);
            let mut connection = Connection::open(&subject.target).map_err(explained)?;
            let violations = described.choice.verify(&mut connection).map_err(explained)?;
            if parts.len() > 1 || place.dsn.len() != 1 {
                let part = name.iter().map(String::as_str).chain([subject.name.as_str()]);
                println!("{}:", part.collect::<Vec<_>>().join(", "));
            }
            violations.iter().for_each(show);
            if violations.is_empty() {
                println!("VERIFIED: the data keep all rules of the workload");
            }
            broken += violations.len();
        }
    }
    if broken == 0 { Ok(()) } else { Err(format!("{broken} rules are broken")) }
}

fn show(violation: &Violation) {
    println!("FAILED: {}: {} rows, such as", violation.rule, violation.rows);
    violation.examples.iter().for_each(|example| println!("    {example}"));
}
