//! `cargo xtask bench analytics`: scans, aggregates and joins of a million rows. Data and queries
//! are `tests/bench/analytics/data.sql` and `queries.sql` (`name: query`, one a line). `--quick`
//! takes only the first INSERT of every table.

use super::Plan;
use super::load::in_turn;
use super::report::{Limits, Spread};
use super::subject::{Built, Subject};
use crate::Outcome;
use std::collections::HashSet;
use std::time::Instant;

const FOLDER: &str = "tests/bench/analytics";
const DATABASE: &str = "analytics";
/// Time against MariaDB's.
const RATIO: f64 = 0.5;

/// Loads both servers, then runs every query on them in turn.
pub fn run(plan: &Plan) -> Outcome {
    let read = |name: &str| {
        let path = crate::root().join(FOLDER).join(name);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (data, queries) = (read("data.sql")?, read("queries.sql")?);
    let built = Built::build()?;
    let subjects = [built.gannet("1G")?, built.mariadb("1G", false)?];
    for subject in &subjects {
        let begin = Instant::now();
        load(plan, subject, &data)?;
        println!("{}: loaded in {:.1} s", subject.name, begin.elapsed().as_secs_f64());
    }
    let mut limits = Limits::default();
    let lines = queries.lines().filter(|line| !line.starts_with("--"));
    let named = lines.filter_map(|line| line.split_once(": "));
    for (name, sql) in named.filter(|(name, _)| plan.chooses(name)) {
        // The first run of each brings data into memory and tells whether the answers agree.
        let answers = [answer(&subjects[0], sql)?.1, answer(&subjects[1], sql)?.1];
        if answers[0] != answers[1] {
            return Err(format!("{name}: the answers differ:\n{}\n{}", answers[0], answers[1]));
        }
        let runs = in_turn(2, plan.pairs, |place| Ok(answer(&subjects[place], sql)?.0))?;
        let milliseconds = |place: usize| Spread::of(&runs[place], |seconds| seconds * 1000.0);
        let (ours, theirs) = (milliseconds(0), milliseconds(1));
        let ratio = ours.median / theirs.median;
        println!("{name:18} ms {ours} / {theirs} = {ratio:.2}");
        limits.at_most(&format!("{name}: time / MariaDB's"), ratio, RATIO);
    }
    limits.finish()
}

fn load(plan: &Plan, subject: &Subject, data: &str) -> Outcome {
    subject.execute(&[&format!("CREATE DATABASE {DATABASE}")])?;
    let mut connection = subject.connect(DATABASE)?;
    let lines: Vec<&str> = data.lines().filter(|line| !line.starts_with("--")).collect();
    let mut filled = HashSet::new();
    for sql in lines.join("\n").split(";\n").map(|sql| sql.trim().trim_end_matches(';')) {
        let table = sql.strip_prefix("INSERT INTO ").and_then(|rest| rest.split(' ').next());
        let is_first = table.is_none_or(|table| filled.insert(table.to_string()));
        if !sql.is_empty() && (is_first || !plan.is_quick) {
            connection.execute(sql).map_err(|e| format!("{}: {e}", subject.name))?;
        }
    }
    Ok(())
}

/// Seconds of a query, and its rows as text.
fn answer(subject: &Subject, sql: &str) -> Result<(f64, String), String> {
    let mut connection = subject.connect(DATABASE)?;
    let begin = Instant::now();
    let rows = connection.execute(sql).map_err(|e| format!("{}: {e}", subject.name))?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut text = String::new();
    for row in rows {
        for field in row {
            match field {
                Some(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                None => text.push_str("NULL"),
            }
            text.push('\t');
        }
        text.push('\n');
    }
    Ok((seconds, text))
}
