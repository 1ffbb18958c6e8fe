//! The plots of a report.
//!
//! 1. The step with the highest throughput of the first subject is shown open, the others folded.
//! 2. What is drawn over time is one run of a cell, the one of the middle throughput: means of
//!    several would hide what a stall is. Medians and bands are of all of them.

mod latency;
mod sizes;
mod sweep;
mod throughput;
mod usage;

use super::plot::Figure;
use crate::results::{Event, Experiment, Phase, PhaseKind, Run, Step};
use crate::statistics::median;

/// Plots under a heading.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) figures: Vec<Figure>,
    /// Shown when they are asked for: what it is, and the plots.
    pub(super) folded: Vec<(String, Vec<Figure>)>,
}

/// All plots, in their order. Sections without any are left out.
pub(super) fn sections(experiment: &Experiment) -> Vec<Section> {
    let main = main_step(experiment);
    let mut sections = vec![Section {
        title: "Throughput and latency by load".into(),
        figures: sweep::figures(experiment),
        folded: Vec::new(),
    }];
    let by_step = |title: &str, of: &dyn Fn(Step, bool) -> Vec<Figure>| {
        let main = main?;
        let others = experiment.steps().into_iter().filter(|step| *step != main);
        Some(Section {
            title: format!("{title}, {}", main.label()),
            figures: of(main, true),
            folded: others
                .map(|step| (format!("{title}, {}", step.label()), of(step, false)))
                .filter(|(_, figures)| !figures.is_empty())
                .collect(),
        })
    };
    sections
        .extend(by_step("Throughput over time", &|step, _| throughput::figures(experiment, step)));
    sections
        .extend(by_step("Latency", &|step, is_main| latency::figures(experiment, step, is_main)));
    sections.extend(by_step("Resources over time", &|step, _| usage::figures(experiment, step)));
    sections.push(Section {
        title: "Load and space".into(),
        figures: sizes::figures(experiment),
        folded: Vec::new(),
    });
    sections.retain(|section| !section.figures.is_empty());
    sections
}

/// See rule 1.
pub(super) fn main_step(experiment: &Experiment) -> Option<Step> {
    let throughput = |step: &Step| {
        let runs = experiment.cell(0, *step);
        median(&runs.iter().map(|run| run.throughput()).collect::<Vec<_>>())
    };
    experiment.steps().into_iter().max_by(|a, b| throughput(a).total_cmp(&throughput(b)))
}

/// A run that is drawn.
#[derive(Clone, Copy)]
struct Shown<'a> {
    run: &'a Run,
    /// Its place among the runs, from 1.
    number: usize,
}

impl std::ops::Deref for Shown<'_> {
    type Target = Run;

    fn deref(&self) -> &Run {
        self.run
    }
}

/// See rule 2.
fn representative<'a>(experiment: &'a Experiment, runs: &[&'a Run]) -> Option<Shown<'a>> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(|a, b| a.throughput().total_cmp(&b.throughput()));
    let run = *sorted.get(sorted.len() / 2)?;
    let place = experiment.runs.iter().position(|other| std::ptr::eq(other, run));
    Some(Shown { run, number: place.unwrap_or_default() + 1 })
}

/// The run of each subject that is drawn.
fn shown(experiment: &Experiment, step: Step) -> Vec<(usize, &str, Shown<'_>)> {
    let cells = cells(experiment, step).into_iter();
    cells
        .filter_map(|(subject, name, runs)| {
            Some((subject, name, representative(experiment, &runs)?))
        })
        .collect()
}

/// The subjects that have runs of a step, with their names and runs.
fn cells(experiment: &Experiment, step: Step) -> Vec<(usize, &str, Vec<&Run>)> {
    let of = |(number, subject)| {
        let subject: &crate::results::Subject = subject;
        (number, subject.name.as_str(), experiment.cell(number, step))
    };
    let all = experiment.subjects.iter().enumerate().map(of);
    all.filter(|(_, _, runs)| !runs.is_empty()).collect()
}

/// From the begin of the warm-up to the end of the run, seconds.
fn span(run: &Run) -> (f64, f64) {
    let events = run.events.iter().map(|event| event.seconds);
    let begin = -(run.warm_up.len() as f64);
    (begin, events.fold(run.seconds.len() as f64, f64::max))
}

/// Stretches that are not measured.
fn shaded(run: &Run) -> impl Iterator<Item = &Phase> {
    run.phases.iter().filter(|phase| phase.kind != PhaseKind::Measure)
}

/// What the numbers of marks mean, and the shading.
fn note_of(run: &Run) -> String {
    let mut parts: Vec<String> = Vec::new();
    if shaded(run).any(|phase| phase.begin < 0.0) {
        parts.push("Shaded: before the measured time, which begins at 0.".into());
    }
    parts.extend(events_text(&run.events));
    parts.join(" ")
}

/// Marks that have a text below a plot.
const EVENTS_TOLD: usize = 12;

fn events_text(events: &[Event]) -> Option<String> {
    let text = |(number, event): (usize, &Event)| {
        format!("{}: {} (at {:.1} s)", number + 1, event.text, event.seconds)
    };
    let told: Vec<String> = events.iter().enumerate().take(EVENTS_TOLD).map(text).collect();
    let more = match events.len().checked_sub(EVENTS_TOLD) {
        None | Some(0) => String::new(),
        Some(more) => format!("; {more} more are in run.json"),
    };
    let text = || format!("Marks, here and in the other plots: {}{more}.", told.join("; "));
    (!told.is_empty()).then(text)
}
