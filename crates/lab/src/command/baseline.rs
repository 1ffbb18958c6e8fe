//! `gannet-lab baseline`: for checks that run by themselves.
//!
//! 1. Something is worse if its median is worse by more than the threshold and the verdict says
//!    that scatter does not explain it.
//! 2. Results that cannot say so (another workload, too few runs) are an error, never a pass.

use super::Outcome;
use super::compare::names;
use crate::report::words::figure;
use crate::results::{Experiment, Run, Step};
use crate::statistics::ratio::{Ratio, Verdict, compare};
use clap::Args;
use std::path::PathBuf;

/// Runs of each that a verdict needs: the ranks of three and three are never beyond chance.
const RUNS_MIN: usize = 4;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A folder of results that is good enough.
    old: PathBuf,
    /// The folder that is looked at.
    new: PathBuf,
    /// How much worse is still good enough, such as 2.5%.
    #[arg(long, default_value = "2.5%", value_parser = threshold)]
    threshold: f64,
}

/// A share from a text in percent.
fn threshold(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("'{text}' is no threshold; 2.5% is one")),
    }
}

pub(super) fn run(arguments: Arguments) -> Outcome {
    let old = Experiment::read_from(&arguments.old)?;
    let new = Experiment::read_from(&arguments.new)?;
    let names = names(&[arguments.old, arguments.new]);
    let lines = judged(&old, &new, arguments.threshold)?;
    println!("{} against {}:", names[1], names[0]);
    lines.iter().for_each(|line| println!("{}", line.text()));
    let worse = lines.iter().filter(|line| line.is_worse).count();
    match worse {
        0 => Ok(()),
        count => {
            let percent = figure(arguments.threshold * 100.0);
            Err(format!("{count} of {} figures are more than {percent} % worse", lines.len()))
        }
    }
}

/// A figure that was judged.
#[derive(Debug)]
struct Line {
    subject: String,
    step: Step,
    what: &'static str,
    ratio: Ratio,
    is_worse: bool,
}

impl Line {
    fn text(&self) -> String {
        let Ratio { ratio, low, high, .. } = self.ratio;
        format!(
            "{} {}, {}, {}: {ratio:.3} ({low:.3} to {high:.3})",
            if self.is_worse { "WORSE" } else { "ok   " },
            self.subject,
            self.step.label(),
            self.what
        )
    }
}

/// A figure of a run, and whether more of it is better.
type Judged = (&'static str, fn(&Run) -> Option<f64>, bool);

const JUDGED: [Judged; 4] = [
    ("operations/s", |run| Some(run.throughput().max(1e-9)), true),
    ("p95 latency", |run| Some(run.micros[1].max(1) as f64), false),
    ("server CPU/op", |run| Some(run.server_cost?.cpu_micros().max(1e-3)), false),
    // Below a kilobyte for each operation it is chance.
    (
        "written bytes/op",
        |run| run.server_cost.map(|cost| cost.written_bytes).filter(|bytes| *bytes >= 1000.0),
        false,
    ),
];

fn judged(old: &Experiment, new: &Experiment, threshold: f64) -> Result<Vec<Line>, String> {
    if old.workload != new.workload {
        return Err(format!("the workloads differ: {}; {}", old.workload, new.workload));
    }
    let mut lines = Vec::new();
    for (number, subject) in old.subjects.iter().enumerate() {
        let same = new.subjects.iter().position(|other| other.name == subject.name);
        let is_only = old.subjects.len() == 1 && new.subjects.len() == 1;
        let Some(other) = same.or(is_only.then_some(0)) else { continue };
        for step in old.steps() {
            let (a, b) = (old.cell(number, step), new.cell(other, step));
            if a.is_empty() || b.is_empty() {
                continue;
            }
            let fewest = a.len().min(b.len());
            if fewest < RUNS_MIN {
                return Err(format!(
                    "{}, {}: there are {fewest} runs, {RUNS_MIN} of each are needed: use --rounds",
                    subject.name,
                    step.label()
                ));
            }
            for (what, of, more_is_better) in JUDGED {
                let values = |runs: &[&Run]| runs.iter().map(|run| of(run)).collect();
                let (a, b): (Option<Vec<f64>>, Option<Vec<f64>>) = (values(&a), values(&b));
                let (Some(a), Some(b)) = (a, b) else { continue };
                let ratio = compare(&a, &b, old.seed);
                let is_worse = match more_is_better {
                    true => ratio.verdict == Verdict::Lower && ratio.ratio < 1.0 - threshold,
                    false => ratio.verdict == Verdict::Higher && ratio.ratio > 1.0 + threshold,
                };
                let subject = subject.name.clone();
                lines.push(Line { subject, step, what, ratio, is_worse });
            }
        }
    }
    if lines.is_empty() {
        return Err("the folders have no subject and step in common".into());
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn worse(old: &Experiment, new: &Experiment) -> Vec<&'static str> {
        let lines = judged(old, new, 0.025).expect("comparable");
        lines.into_iter().filter(|line| line.is_worse).map(|line| line.what).collect()
    }

    #[test]
    fn what_became_worse_is_named() {
        let old = sample::experiment(2, &[8], 3);
        assert_eq!(worse(&old, &old), [""; 0]);
        let mut slower = old.clone();
        sample::slow_down(&mut slower, 1, 0.9);
        assert_eq!(worse(&old, &slower), ["operations/s"]);
        assert_eq!(worse(&slower, &old), [""; 0], "faster is no fault");
        let lines = judged(&old, &slower, 0.2).expect("comparable");
        assert!(lines.iter().all(|line| !line.is_worse), "a tenth is below a fifth");
    }

    #[test]
    fn what_cannot_be_judged_is_an_error() {
        let old = sample::experiment(1, &[8], 3);
        let few = sample::experiment(1, &[8], 1);
        let error = judged(&old, &few, 0.025).expect_err("too few");
        assert!(error.contains("--rounds"), "{error}");
        let other = Experiment { workload: "another".into(), ..old.clone() };
        assert!(judged(&old, &other, 0.025).is_err());
        let elsewhere = sample::experiment(1, &[16], 3);
        assert!(judged(&old, &elsewhere, 0.025).is_err());
    }

    #[test]
    fn thresholds_are_in_percent() {
        assert_eq!(["2.5%", "2.5 %", "3"].map(threshold), [Ok(0.025), Ok(0.025), Ok(0.03)]);
        assert!(threshold("much").is_err() && threshold("-1%").is_err());
    }
}
