//! The tables of a report, as cells; HTML and Markdown draw them.

mod cost;
mod outcome;
mod setting;
mod speed;

use super::comparison::comparisons;
use crate::results::{Experiment, Run, Step};
use crate::statistics::median;
use crate::statistics::ratio::Ratio;

/// A table.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// Below it; empty for nothing.
    pub(super) note: String,
    /// Shown when it is asked for.
    pub(super) is_folded: bool,
}

impl Table {
    fn new(title: &str, head: &[&str], rows: Vec<Vec<Cell>>) -> Self {
        Self {
            title: title.into(),
            head: head.iter().map(|word| word.to_string()).collect(),
            rows,
            note: String::new(),
            is_folded: false,
        }
    }

    fn noted(self, note: &str) -> Self {
        Self { note: note.into(), ..self }
    }

    fn folded(self) -> Self {
        Self { is_folded: true, ..self }
    }
}

/// A cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) mark: Mark,
}

/// How a cell is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    /// A ratio above 1.05.
    Above,
    /// A ratio below 0.95.
    Below,
    /// To be looked at.
    Odd,
    /// It voids something.
    Bad,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, mark: Mark::Plain }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

/// The tables that stand above the plots, and those below. Empty ones are left out.
pub(super) fn tables(experiment: &Experiment) -> (Vec<Table>, Vec<Table>) {
    let above = vec![
        speed::ratios(experiment),
        speed::cells(experiment),
        speed::stability(experiment),
        speed::limits(experiment),
        speed::by_step(experiment),
        cost::relative(experiment),
        cost::absolute(experiment),
        cost::amplification(experiment),
        cost::wear(experiment),
    ];
    let below = vec![
        speed::operations(experiment),
        outcome::failures(experiment),
        outcome::errors(experiment),
        outcome::findings(experiment),
        setting::loads(experiment),
        setting::spaces(experiment),
        setting::files(experiment),
        setting::parity_table(experiment),
        setting::order(experiment),
        setting::machine(experiment),
    ];
    let full = |tables: Vec<Table>| tables.into_iter().filter(|t| !t.rows.is_empty()).collect();
    (full(above), full(below))
}

/// Blue above 1.05, yellow below 0.95, as readers of such tables expect.
fn mark_of(ratio: f64) -> Mark {
    match ratio {
        r if r > 1.05 => Mark::Above,
        r if r < 0.95 => Mark::Below,
        _ => Mark::Plain,
    }
}

fn ratio_cell(ratio: &Ratio) -> Cell {
    let text = match ratio.high.is_finite() {
        true => format!("{:.2} ({:.2} to {:.2})", ratio.ratio, ratio.low, ratio.high),
        false => format!("{:.2} (too few runs)", ratio.ratio),
    };
    Cell { text, mark: mark_of(ratio.ratio) }
}

fn plain_ratio(value: f64) -> Cell {
    match value.is_finite() {
        true => Cell { text: format!("{value:.2}"), mark: mark_of(value) },
        false => "–".into(),
    }
}

/// Each subject with each step, if it has runs of it.
fn each_cell(experiment: &Experiment) -> Vec<(usize, Step, Vec<&Run>)> {
    let subjects = 0..experiment.subjects.len();
    let of_step = |step: Step| {
        subjects.clone().map(move |subject| (subject, step, experiment.cell(subject, step)))
    };
    let all = experiment.steps().into_iter().flat_map(of_step);
    all.filter(|(_, _, runs)| !runs.is_empty()).collect()
}

fn middle(runs: &[&Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(&runs.iter().map(|run| of(run)).collect::<Vec<_>>())
}

/// The step's cells: clients, and the rate if any step has one.
fn step_cells(experiment: &Experiment, step: Step) -> Vec<Cell> {
    let mut cells: Vec<Cell> = vec![step.clients.to_string().into()];
    if has_rates(experiment) {
        cells.push(step.rate.map_or_else(|| "–".into(), |rate| rate.to_string().into()));
    }
    cells
}

fn step_words(experiment: &Experiment) -> Vec<&'static str> {
    if has_rates(experiment) { vec!["clients", "asked/s"] } else { vec!["clients"] }
}

fn has_rates(experiment: &Experiment) -> bool {
    experiment.runs.iter().any(|run| run.rate.is_some())
}

/// The words of a head: the step's, then others.
fn head<'a>(before: &[&'a str], experiment: &Experiment, after: &[&'a str]) -> Vec<&'a str> {
    let mut words = before.to_vec();
    words.extend(step_words(experiment));
    words.extend(after);
    words
}
