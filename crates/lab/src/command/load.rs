//! `gannet-lab load`

use super::workload::Choice;
use super::{Outcome, Server};
use crate::load::Progress;
use clap::Args;
use runtime::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    server: Server,
    /// Connections that load at the same time.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Go on where a load of the same description stopped.
    #[arg(long)]
    resume: bool,
}

/// Time between two lines of progress.
const REPORT_EVERY: Duration = Duration::from_secs(2);

pub(super) fn run(arguments: Arguments) -> Outcome {
    let begin = runtime::now();
    let last = Arc::new(Mutex::new(begin));
    let report = move |progress: Progress| {
        let now = runtime::now();
        let mut last = last.lock();
        if now - *last >= REPORT_EVERY || progress.finishing > 0 {
            *last = now;
            println!("{}", line(&progress, now - begin));
        }
    };
    let Arguments { choice, server, connections, resume } = arguments;
    choice.check()?;
    let table_options = "";
    let progress = choice.load(&server.dsn, table_options, (connections, resume), report).map_err(
        |failure| format!("{}; `--resume` goes on from here", failure.explained(&server.dsn)),
    )?;
    println!("{}", summary(&progress));
    Ok(())
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
