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
            // Without operations there is no ratio; a warning tells of them.
            let is_known = |runs: &[&Run]| !runs.is_empty() && !runs.iter().any(|r| r.is_idle());
            if is_known(&first) && is_known(&second) {
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

/// Who is faster, by how much: a sentence for each subject and step, and one for all steps with
/// which a subject is not to be told from the first; no ratio where settings forbid it.
pub fn headlines(experiment: &Experiment) -> Vec<String> {
    let forbidding: Vec<String> =
        parity(experiment).into_iter().filter(ParityRow::forbids).map(|row| row.what).collect();
    if experiment.subjects.len() > 1 && !forbidding.is_empty() {
        return vec![format!(
            "No comparison: the servers differ in {}.",
            forbidding.join(" and in ")
        )];
    }
    let names: Vec<&str> =
        experiment.subjects.iter().map(|subject| subject.name.as_str()).collect();
    let all = comparisons(experiment);
    let mut told = Vec::new();
    for (subject, name) in names.iter().enumerate().skip(1) {
        let (alike, apart): (Vec<&Comparison>, Vec<&Comparison>) = all
            .iter()
            .filter(|comparison| comparison.subject == subject)
            .partition(|comparison| comparison.throughput.verdict == Verdict::NotDistinguishable);
        told.extend(apart.into_iter().map(|comparison| different(names[0], name, comparison)));
        told.extend(indistinguishable(names[0], name, &alike));
    }
    told
}

/// How many times the throughput.
fn times(ratio: &Ratio) -> String {
    let Ratio { ratio, low, high, .. } = ratio;
    match high.is_finite() {
        true => format!("{ratio:.2} times the throughput, {low:.2} to {high:.2}"),
        false => format!("{ratio:.2} times the throughput in too few runs to be sure"),
    }
}

fn different(a: &str, b: &str, comparison: &Comparison) -> String {
    let what = if comparison.throughput.verdict == Verdict::Higher { "faster" } else { "slower" };
    let label = comparison.step.label();
    format!("{b} is {what} than {a} with {label}: {}.", times(&comparison.throughput))
}

/// One sentence for all; `None` for none.
fn indistinguishable(a: &str, b: &str, alike: &[&Comparison]) -> Option<String> {
    let begin = format!("{b} and {a} are not distinguishable");
    if let [only] = alike {
        return Some(format!("{begin} with {}: {}.", only.step.label(), times(&only.throughput)));
    }
    let ratios = || alike.iter().map(|comparison| comparison.throughput.ratio);
    let (low, high) = (ratios().reduce(f64::min)?, ratios().reduce(f64::max)?);
    let clients = alike.iter().map(|comparison| comparison.step.clients.to_string());
    let labels = match alike.iter().all(|comparison| comparison.step.rate.is_none()) {
        true => format!("{} clients", clients.collect::<Vec<_>>().join(", ")),
        false => {
            let labels = alike.iter().map(|comparison| comparison.step.label());
            labels.collect::<Vec<_>>().join("; ")
        }
    };
    let unsure = match alike.iter().all(|comparison| comparison.throughput.high.is_finite()) {
        true => "",
        false => " in too few runs to be sure",
    };
    Some(format!("{begin} with {labels}: {low:.2} to {high:.2} times the throughput{unsure}."))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn steps_that_are_alike_share_a_sentence() {
        let told = headlines(&sample::experiment(2, &[1, 8, 16], 1));
        let begin = "second <b> and first are not distinguishable with 1, 8, 16 clients: ";
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(begin) && told[0].ends_with("to be sure."), "{told:?}");
        let told = headlines(&sample::experiment(2, &[8, 16], 3));
        assert!(told.len() == 2 && told[1].contains("is faster than first with 16 clients"));
    }
}
