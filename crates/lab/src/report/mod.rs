//! Reports: one HTML file without anything from elsewhere, and a summary in Markdown.
//!
//! 1. Everything in a report is computed from [`Experiment`], so that it can be made again.
//! 2. A ratio is shown with its interval, or called what it is: a guess from too few runs.
//! 3. What voids a comparison stands above it, in red: unequal durability or memory, a driver
//!    without processor to spare, a run that ended early, data that break their rules. With unequal
//!    durability or memory there is no ratio in the headline at all.

mod charts;
mod comparison;
mod files;
mod html;
mod markdown;
mod plot;
mod tables;
mod text;
mod warnings;
pub(crate) mod words;

pub use comparison::{Comparison, comparisons, headlines};
pub use files::write;
pub use html::html;
pub use markdown::markdown;
pub use text::text;
pub use warnings::warnings;

use crate::results::{Experiment, ParityRow};

/// Settings side by side: as they were looked at when it ran, or from what is kept of the servers'
/// variables.
pub fn parity(experiment: &Experiment) -> Vec<ParityRow> {
    match experiment.parity.is_empty() {
        true => crate::parity::of(&experiment.subjects, &[]),
        false => experiment.parity.clone(),
    }
}

/// The figure of a run that a workload is known by, if it has another than operations a second:
/// the name and the operation that counts, in a minute.
pub(crate) fn metric(experiment: &Experiment) -> Option<(&'static str, &'static str)> {
    // Only audited results may be called tpmC.
    let has_orders = |run: &crate::results::Run| {
        run.operations.iter().any(|operation| operation.name == NEW_ORDER)
    };
    experiment.runs.first().filter(|run| has_orders(run)).map(|_| ("NOPM", NEW_ORDER))
}

const NEW_ORDER: &str = "new_order";

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
