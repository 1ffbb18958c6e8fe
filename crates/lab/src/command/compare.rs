//! `gannet-lab compare`

use super::Outcome;
use crate::report;
use crate::results::{Experiment, combined};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folders of results; ratios are against the first subject of the first.
    #[arg(required = true, num_args = 2..)]
    folders: Vec<PathBuf>,
    /// Where a report of all of them goes; none is written if not said.
    #[arg(long)]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let names = names(&arguments.folders);
    let read = names
        .into_iter()
        .zip(&arguments.folders)
        .map(|(name, folder)| Experiment::read_from(folder).map(|experiment| (name, experiment)));
    let mut experiment = combined(read.collect::<Result<_, String>>()?)?;
    experiment.command = std::env::args().collect();
    if let Some(output) = &arguments.output {
        report::write(output, &experiment)?;
    }
    super::show(&report::text(&experiment))
}

/// The last parts of the paths; whole paths where those are the same.
pub(super) fn names(folders: &[PathBuf]) -> Vec<String> {
    let last = |folder: &Path| {
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let short: Vec<String> = folders.iter().map(|folder| last(folder)).collect();
    let is_clear = |name: &String| {
        !name.is_empty() && short.iter().filter(|other| *other == name).count() == 1
    };
    let pairs = folders.iter().zip(&short);
    pairs
        .map(|(folder, name)| match is_clear(name) {
            true => name.clone(),
            false => folder.display().to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_one_name_have_their_paths() {
        let folders = ["old/lab", "new/lab", "other/"].map(PathBuf::from);
        assert_eq!(names(&folders), ["old/lab", "new/lab", "other"]);
    }
}
