//! Subjects against the first.

use super::parity;
use crate::results::{Experiment, ParityRow, Run, Step};
use crate::statistics::ratio::{Ratio, Verdict, compare};

/// What a subject achieved over the first one with a step.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// What was varied.
    pub step: Step,
    /// Which subject, from 1.
    pub subject: usize,
    /// Of operations a second.
    pub throughput: Ratio,
    /// Of the 95th percentile of latency.
    pub latency: Ratio,
    /// Of processor time per operation, where it is known.
    pub cpu: Option<Ratio>,
    /// Of bytes written per operation, where they are known.
    pub written: Option<Ratio>,
}

/// All steps and subjects but the first.
pub fn comparisons(experiment: &Experiment) -> Vec<Comparison> {
    let mut found = Vec::new();
    for step in experiment.steps() {
        let first = experiment.cell(0, step);
        for subject in 1..experiment.subjects.len() {
            let second = experiment.cell(subject, step);
            if !first.is_empty() && !second.is_empty() {
                found.push(of(step, subject, &first, &second, experiment.seed));
            }
        }
    }
    found
}

fn of(step: Step, subject: usize, a: &[&Run], b: &[&Run], seed: u64) -> Comparison {
    // Ratios of what may be 0 need a least value that no figure is near.
    let ratio = |of: &dyn Fn(&Run) -> Option<f64>| {
        let values = |runs: &[&Run]| runs.iter().map(|run| of(run)).collect::<Option<Vec<f64>>>();
        Some(compare(&values(a)?, &values(b)?, seed))
    };
    let sure = |of: &dyn Fn(&Run) -> f64| ratio(&|run| Some(of(run))).expect("always known");
    let cost = |of: fn(&crate::results::Cost) -> f64, least: f64| {
        ratio(&move |run| Some(of(&run.server_cost?).max(least)))
    };
    Comparison {
        step,
        subject,
        throughput: sure(&|run| run.throughput().max(1e-9)),
        latency: sure(&|run| run.micros[1].max(1) as f64),
        cpu: cost(|cost| cost.cpu_micros(), 1e-3),
        written: cost(|cost| cost.written_bytes, 1.0).filter(|_| {
            // Below a byte for each operation the ratio is one of chance.
            let writes = |run: &&Run| run.server_cost.is_some_and(|c| c.written_bytes >= 1.0);
            a.iter().chain(b).all(writes)
        }),
    }
}

/// One sentence for each subject and step: who is faster, by how much; no ratio where settings
/// forbid it.
pub fn headlines(experiment: &Experiment) -> Vec<String> {
    let name = |subject: usize| experiment.subjects[subject].name.as_str();
    let forbidding: Vec<String> =
        parity(experiment).into_iter().filter(ParityRow::forbids).map(|row| row.what).collect();
    if experiment.subjects.len() > 1 && !forbidding.is_empty() {
        return vec![format!(
            "No comparison: the servers differ in {}.",
            forbidding.join(" and in ")
        )];
    }
    let sentence = |comparison: Comparison| {
        let (a, b) = (name(0), name(comparison.subject));
        let Ratio { ratio, low, high, verdict } = comparison.throughput;
        let interval = match high.is_finite() {
            true => format!("{ratio:.2} times the throughput, {low:.2} to {high:.2}"),
            false => format!("{ratio:.2} times the throughput in too few runs to be sure"),
        };
        let label = comparison.step.label();
        match verdict {
            Verdict::Higher => format!("{b} is faster than {a} with {label}: {interval}."),
            Verdict::Lower => format!("{b} is slower than {a} with {label}: {interval}."),
            Verdict::NotDistinguishable => {
                format!("{b} and {a} are not distinguishable with {label}: {interval}.")
            }
        }
    };
    comparisons(experiment).into_iter().map(sentence).collect()
}
