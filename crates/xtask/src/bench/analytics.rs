//! `cargo xtask bench analytics`: scans, aggregates and joins of a million rows, see
//! [`crate::analytics`]. `--quick` takes a tenth of them.

use super::Plan;
use super::cpu::Sample;
use super::load::{in_turn, quietest};
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use crate::Outcome;
use crate::analytics::{self, DATABASE, Query, Shapes};
use sqltest::client::Field;
use std::time::Instant;

/// Time against MariaDB's.
const RATIO: f64 = 0.5;

/// Loads both servers, then runs every query on them in turn.
pub fn run(plan: &Plan) -> Outcome {
    let (queries, recorded) = (analytics::queries()?, analytics::recorded()?);
    let built = Built::build()?;
    let subjects = [built.gannet("1G")?, built.mariadb("1G", false)?];
    for subject in &subjects {
        let begin = Instant::now();
        let loaded = analytics::load(&mut subject.connect("")?, plan.is_quick);
        loaded.map_err(|error| format!("{}: {error}", subject.name))?;
        println!("{}: loaded in {:.1} s", subject.name, begin.elapsed().as_secs_f64());
    }
    let mut limits = Limits::default();
    let mut shapes = Shapes::new();
    for Query { name, sql } in queries.iter().filter(|query| plan.chooses(&query.name)) {
        // The first run of each brings data into memory and tells whether the answers agree.
        let answers = [answer(&subjects[0], sql)?, answer(&subjects[1], sql)?];
        if answers[0] != answers[1] {
            return Err(format!("{name}: the answers differ:\n{}\n{}", answers[0], answers[1]));
        }
        let mut connection = subjects[0].connect(DATABASE)?;
        shapes.insert(name.clone(), analytics::shape(&mut connection, sql)?);
        let runs = in_turn(2, plan.pairs, |place| {
            quietest(|| time(plan, &subjects[place], sql), |run| run.others_percent)
        })?;
        let time = |place: usize| Spread::of(&runs[place], |run| run.milliseconds);
        let cpu = |place: usize| Spread::of(&runs[place], |run| run.cpu_milliseconds).median;
        let others = |place: usize| Spread::of(&runs[place], |run| run.others_percent).median;
        let (ours, theirs) = (time(0), time(1));
        let ratio = ours.median / theirs.median;
        println!(
            "{name:18} ms {ours} / {theirs} = {ratio:.2}; CPU ms {:.0} / {:.0} = {:.2}; others \
             {:.0} %",
            cpu(0),
            cpu(1),
            cpu(0) / cpu(1),
            others(0).max(others(1))
        );
        limits.at_most(&format!("{name}: time / MariaDB's"), ratio, RATIO);
    }
    let differing = analytics::differing(&recorded, &shapes) as f64;
    limits.at_most("plans other than those recorded", differing, 0.0);
    limits.finish()
}

/// What one execution of a query took, on average.
struct Run {
    milliseconds: f64,
    cpu_milliseconds: f64,
    others_percent: f64,
}

/// Executes a query for a while: the kernel's account of CPU is coarse.
fn time(plan: &Plan, subject: &Subject, sql: &str) -> Result<Run, String> {
    let mut connection = subject.connect(DATABASE)?;
    let (server, client) = (subject.server.id(), std::process::id());
    let before = Sample::take(server, client)?;
    let (begin, mut executions) = (Instant::now(), 0.0);
    while executions == 0.0 || begin.elapsed().as_secs_f64() < plan.seconds / 10.0 {
        connection.execute(sql).map_err(|e| format!("{}: {e}", subject.name))?;
        executions += 1.0;
    }
    let used = Sample::take(server, client)?.since(&before);
    Ok(Run {
        milliseconds: used.seconds * 1000.0 / executions,
        cpu_milliseconds: used.server.total() / 1000.0 / executions,
        others_percent: used.others_percent,
    })
}

/// The rows of a query as text.
fn answer(subject: &Subject, sql: &str) -> Result<String, String> {
    let mut connection = subject.connect(DATABASE)?;
    let rows = connection.execute(sql).map_err(|e| format!("{}: {e}", subject.name))?;
    let text = |field: &Field| match field {
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        None => "NULL".to_string(),
    };
    let lines = rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join("\t"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
