//! The command line.

use crate::campaign::{self, Campaign};
use crate::faults;
use crate::life::{self, Subject};
use crate::mutants;
use crate::subjects;
use std::sync::Arc;

const USAGE: &str = "usage: gannet-sim [--seeds N] [--first SEED] [--operations N] [--threads N]
                  [--engine gannet|memory]
       gannet-sim --seed SEED [--operations N] [--engine ..]   replay one seed, twice
       gannet-sim --faults [--seeds N] [--first SEED] [--seed SEED]
       gannet-sim --server [--seeds N] [--first SEED] [--seed SEED]   through the protocol
       gannet-sim --mutants [--only NAME] [--seeds N]          every defect must be found
       with --mutant NAME that defect is switched on";

/// What was asked for.
struct Arguments {
    campaign: Campaign,
    seed: Option<u64>,
    mutants: bool,
    faults: bool,
    only: Option<String>,
    mutant: Option<String>,
    engine: String,
}

fn parse(arguments: &[String]) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        campaign: Campaign { first: 0, seeds: 100, operations: 2_000, threads: 2 },
        seed: None,
        mutants: false,
        faults: false,
        only: None,
        mutant: None,
        engine: "gannet".to_owned(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut text = || rest.next().cloned().ok_or(format!("{argument} wants a value\n{USAGE}"));
        let number = |text: String| {
            text.parse::<u64>().map_err(|_| format!("'{text}' is not a number\n{USAGE}"))
        };
        match argument.as_str() {
            "--seeds" => parsed.campaign.seeds = number(text()?)?,
            "--first" => parsed.campaign.first = number(text()?)?,
            "--operations" => parsed.campaign.operations = number(text()?)?,
            "--threads" => parsed.campaign.threads = number(text()?)?.max(1),
            "--seed" => parsed.seed = Some(number(text()?)?),
            "--only" => parsed.only = Some(text()?),
            "--mutant" => parsed.mutant = Some(text()?),
            "--engine" => parsed.engine = text()?,
            "--mutants" => parsed.mutants = true,
            "--faults" => parsed.faults = true,
            _ => return Err(format!("unknown argument '{argument}'\n{USAGE}")),
        }
    }
    Ok(parsed)
}

/// Does what the arguments ask for.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let arguments = parse(arguments)?;
    let subject = subjects::by_name(&arguments.engine)?;
    campaign::name_seed_in_panics();
    if !cfg!(debug_assertions) && (arguments.mutants || arguments.mutant.is_some()) {
        return Err("mutants are compiled only into builds with debug assertions".to_owned());
    }
    if arguments.mutants {
        return mutants::hunt(&arguments.campaign, arguments.only.as_deref());
    }
    base::mutant::switch(arguments.mutant.as_deref());
    if arguments.faults {
        let mut campaign = arguments.campaign;
        if let Some(seed) = arguments.seed {
            (campaign.first, campaign.seeds) = (seed, 1);
        }
        println!("{}", faults::campaign(&campaign)?);
        return Ok(());
    }
    if let Some(seed) = arguments.seed {
        return replay(&subject, seed, arguments.campaign.operations);
    }
    let summary = campaign::run(&subject, &arguments.campaign)?;
    println!("{summary}");
    if arguments.mutant.is_some() {
        return Ok(());
    }
    summary.require(&subject, arguments.campaign.seeds)
}

/// Runs a seed twice: the second time must be like the first, event by event.
fn replay(subject: &Arc<dyn Subject>, seed: u64, operations: u64) -> Result<(), String> {
    let first = life::run_seed(subject, seed, operations).map_err(|failure| failure.to_string())?;
    println!("{first:#?}");
    let second =
        life::run_seed(subject, seed, operations).map_err(|failure| failure.to_string())?;
    if first.trace != second.trace {
        return Err(format!("seed {seed} is not reproducible: two runs differ"));
    }
    Ok(())
}
