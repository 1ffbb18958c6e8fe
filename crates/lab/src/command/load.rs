//! `gannet-lab load`

use super::flags::{self, Described, Filled, Place, flags};
use super::{Outcome, description, interrupt, subjects};
use crate::experiment::Subject;
use crate::load::{Progress, Way};
use clap::Args;
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(super) type Arguments = flags::Arguments<Filled, Own>;

/// What is no part of a description.
#[derive(Clone, Debug, Args)]
pub(super) struct Own {
    #[command(flatten)]
    place: Place,
    /// Go on where a load of the same description stopped.
    #[arg(long)]
    resume: bool,
}

/// Time between two lines of progress.
const REPORT_EVERY: Duration = Duration::from_secs(2);

pub(super) fn run(arguments: Arguments) -> Outcome {
    let Own { place, resume } = &arguments.outer;
    let parts = description::parts(&arguments, place, &[])?;
    let stop = interrupt::asks().stop;
    // Parts that differ in what is asked have the same tables.
    let mut filled = BTreeSet::new();
    for (name, table) in &parts {
        let described = Described::of(flags().words(table)?)?;
        described.choice.check()?;
        let connections = described.load.loaders.connections;
        for subject in subjects::running(table)? {
            let tables = described.choice.load_description(&subject.table_options);
            if !filled.insert((subject.name.clone(), tables)) {
                continue;
            }
            let part = name.iter().map(String::as_str).chain([subject.name.as_str()]);
            if parts.len() > 1 || place.dsn.len() != 1 {
                println!("{}:", part.collect::<Vec<_>>().join(", "));
            }
            let way = Way { connections, resume: *resume, stop: stop.clone() };
            fill(&described, &subject, &way)?;
        }
    }
    Ok(())
}

fn fill(described: &Described, subject: &Subject, way: &Way) -> Outcome {
    let Subject { target, table_options, .. } = subject;
    let report = told(REPORT_EVERY, |line| println!("{line}"));
    let progress =
        described.choice.load(target, table_options, way, report).map_err(|failure| {
            format!("{}; `--resume` goes on from here", failure.explained(target))
        })?;
    if !progress.is_whole() {
        let Progress { jobs_done, jobs, .. } = progress;
        return Err(format!(
            "interrupted: {jobs_done} of {jobs} parts are loaded; `--resume` goes on from here"
        ));
    }
    println!("{}", summary(&progress));
    Ok(())
}

/// Tells how a load goes on, by lines that are not too many.
pub(super) fn told(
    every: Duration,
    tell: impl Fn(&str) + Clone + Send + Sync + 'static,
) -> impl Fn(Progress) + Clone + Send + Sync + 'static {
    let begin = runtime::now();
    let last = Arc::new(Mutex::new(begin));
    move |progress: Progress| {
        let now = runtime::now();
        let mut last = last.lock();
        if now - *last >= every || progress.finishing > 0 {
            *last = now;
            tell(&line(&progress, now - begin));
        }
    }
}

/// What was done.
fn summary(progress: &Progress) -> String {
    if progress.was_there() {
        return format!("all {} parts were there", progress.jobs);
    }
    let seconds = progress.rows_time.as_secs_f64().max(1e-3);
    let mut text = format!(
        "loaded {} rows, {:.1} MB in {seconds:.1} s: {:.0} rows/s, {:.1} MB/s",
        progress.rows,
        progress.bytes as f64 / 1e6,
        progress.rows as f64 / seconds,
        progress.bytes as f64 / 1e6 / seconds,
    );
    if progress.finishing > 0 {
        text.push_str(&format!("; keys in {:.1} s", progress.finish_time.as_secs_f64()));
    }
    if progress.jobs_before > 0 {
        text.push_str(&format!("; {} of {} parts were there", progress.jobs_before, progress.jobs));
    }
    text
}

/// A line of progress with the time that is left at this pace.
fn line(progress: &Progress, elapsed: Duration) -> String {
    let done = progress.jobs_done - progress.jobs_before;
    let left = progress.jobs - progress.jobs_done;
    if left == 0 && progress.finishing > 0 {
        let number = progress.finished + 1;
        return format!("all rows are there; keys, part {number} of {}", progress.finishing);
    }
    let seconds = elapsed.as_secs_f64();
    format!(
        "{:.1} % loaded, {:.0} rows/s, {:.1} MB/s, {:.0} s left",
        progress.jobs_done as f64 * 100.0 / progress.jobs as f64,
        progress.rows as f64 / seconds,
        progress.bytes as f64 / 1e6 / seconds,
        seconds / done.max(1) as f64 * left as f64
    )
}
