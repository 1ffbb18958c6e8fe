//! What a reader must know before any figure.

use super::parity;
use crate::results::{Experiment, Note, ParityRow, Run, Weight};
use crate::statistics::steady::Verdict;

/// A driver that is later than this, microseconds, makes latencies its own.
const LATENESS_MAX: u64 = 10_000;

/// A driver that did not wake for so long, microseconds, was stopped or had no processor.
const STOOD_STILL: u64 = 1_000_000;

/// Other work on the machine that is more than this share of its processors.
const OTHERS_MAX: f64 = 0.1;

/// Above this it decides about the figures.
const OTHERS_GRAVE: f64 = 0.3;

/// All of them, the grave ones first.
pub fn warnings(experiment: &Experiment) -> Vec<Note> {
    let mut found = experiment.notes.clone();
    let mut add = |is_grave, text| found.push(Note { text, is_grave });
    if let Some(why) = &experiment.ended {
        add(true, format!("The experiment ended early: {why}. What is here was measured before."));
    }
    if experiment.subjects.len() > 1 {
        for row in parity(experiment).iter().filter(|row| row.forbids()) {
            add(true, unequal(experiment, row));
        }
    }
    for (number, subject) in experiment.subjects.iter().enumerate() {
        let name = &subject.name;
        for broken in subject.violations.iter().flatten() {
            add(true, format!("{name}: FAILED: {}: {} rows.", broken.rule, broken.rows));
        }
        let runs: Vec<&Run> = experiment.runs.iter().filter(|r| r.subject == number).collect();
        for (is_grave, text) in of_runs(&runs) {
            add(is_grave, format!("{name}: {text}"));
        }
    }
    found.sort_by_key(|warning| !warning.is_grave);
    found
}

fn unequal(experiment: &Experiment, row: &ParityRow) -> String {
    let what = match row.weight {
        Weight::Durability => "durability",
        _ => "memory",
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
    let names = experiment.subjects.iter().map(|subject| subject.name.as_str());
    let told: Vec<String> =
        names.zip(&row.values).map(|(name, v)| format!("{name} {}", value(v))).collect();
    format!("The servers differ in {what}: {}: {}.", row.what, told.join(", "))
}

/// What is wrong with the runs of a subject.
fn of_runs(runs: &[&Run]) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for run in runs {
        let label = run.step().label();
        if let Some(why) = &run.given_up {
            found.push((true, format!("{label}, round {}: ended early: {why}.", run.round + 1)));
        }
    }
    let count = |is: &dyn Fn(&Run) -> bool| runs.iter().filter(|run| is(run)).count();
    let all = runs.len();
    let mut idle: Vec<String> =
        runs.iter().filter(|run| run.is_idle()).map(|run| run.step().label()).collect();
    idle.dedup();
    if !idle.is_empty() {
        let text = format!(
            "no operation was completed in the measured time with {}: no ratio; measure for \
             longer.",
            idle.join("; ")
        );
        found.push((true, text));
    }
    let limited = count(&Run::is_client_limited);
    if limited > 0 {
        let text = format!(
            "in {limited} of {all} runs the driver used more than 70 % of its processor: the \
             server may be faster than shown."
        );
        found.push((true, text));
    }
    let longest = runs.iter().filter_map(|run| Some(run.lateness_micros?[4]));
    let stood_still: Vec<u64> = longest.filter(|late| *late >= STOOD_STILL).collect();
    if let Some(most) = stood_still.iter().max() {
        let text = format!(
            "in {} of {all} runs the driver itself stood still, for up to {:.1} s: it was stopped \
             or had no processor, and nothing in these runs is the server's doing alone.",
            stood_still.len(),
            *most as f64 / 1e6
        );
        found.push((true, text));
    }
    let late = count(&|run| run.lateness_micros.is_some_and(|late| late[2] > LATENESS_MAX));
    if late > 0 {
        let text = format!(
            "in {late} of {all} runs the driver itself was more than {} ms late in one of a \
             hundred cases: that is in its latencies.",
            LATENESS_MAX / 1000
        );
        found.push((false, text));
    }
    let others: Vec<f64> = runs.iter().filter_map(|run| run.other_share()).collect();
    let most = others.iter().copied().fold(0.0, f64::max);
    let disturbed = others.iter().filter(|share| **share > OTHERS_MAX).count();
    if disturbed > 0 {
        let text = format!(
            "in {disturbed} of {all} runs other processes used up to {:.0} % of the machine's \
             processors.",
            most * 100.0
        );
        found.push((most > OTHERS_GRAVE, text));
    }
    let unsteady = count(&|run| run.trend().verdict == Verdict::NotSteady);
    if unsteady > 0 {
        let text = format!("{unsteady} of {all} runs were not steady: they rose or fell.");
        found.push((false, text));
    }
    found.extend(missed(runs).into_iter().map(|text| (false, text)));
    found
}

/// What was wanted of runs and not found; different findings of the same step in one sentence.
fn missed(runs: &[&Run]) -> Vec<String> {
    let mut missed: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        for finding in run.findings.iter().filter(|finding| !finding.met) {
            let label = run.step().label();
            let what = format!("{label}: {}: {} was wanted", finding.name, finding.wanted);
            match missed.iter_mut().find(|(known, _)| *known == what) {
                Some((_, found)) if found.contains(&finding.found.as_str()) => {}
                Some((_, found)) => found.push(&finding.found),
                None => missed.push((what, vec![&finding.found])),
            }
        }
    }
    let text = |(what, found): (String, Vec<&str>)| format!("{what}, {} found.", found.join("; "));
    missed.into_iter().map(text).collect()
}
