//! `gannet-lab plot`

use super::Outcome;
use crate::report;
use crate::results::Experiment;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A folder of results, or its run.json.
    folder: PathBuf,
    /// Where the report goes; into the folder if not said.
    #[arg(long)]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let experiment = Experiment::read_from(&arguments.folder)?;
    let beside = match arguments.folder.is_dir() {
        true => Some(arguments.folder.as_path()),
        false => arguments.folder.parent(),
    };
    let output = arguments.output.as_deref().or(beside);
    let output = output.ok_or("a folder of results is wanted")?;
    report::write(output, &experiment)?;
    println!("{}", output.join("report.html").display());
    Ok(())
}
