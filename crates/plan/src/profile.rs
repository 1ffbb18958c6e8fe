//! What an execution of a plan did, step by step: what ANALYZE shows.

use crate::physical::TableStep;
use std::collections::HashMap;

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Times that its rows were looked for.
    pub loops: u64,
    /// Rows that its access gave.
    pub rows: u64,
    /// Rows that passed its conditions.
    pub passed: u64,
    /// Rows read to make its hash table.
    pub built: u64,
}

/// Counts of the steps of one plan.
#[derive(Debug, Default)]
pub struct Profile {
    /// By the step's address: a plan stays where it is while it is run and shown.
    steps: HashMap<usize, StepCounts>,
    /// Time of the whole statement, microseconds.
    pub total_us: u64,
}

impl Profile {
    /// The counts of a step, to be added to.
    pub fn step_mut(&mut self, step: &TableStep) -> &mut StepCounts {
        self.steps.entry(std::ptr::from_ref(step) as usize).or_default()
    }

    /// The counts of a step.
    pub fn step(&self, step: &TableStep) -> StepCounts {
        self.steps.get(&(std::ptr::from_ref(step) as usize)).copied().unwrap_or_default()
    }
}

impl StepCounts {
    /// Rows a loop; none if there was no loop.
    pub fn rows_per_loop(&self) -> Option<f64> {
        (self.loops > 0).then(|| self.rows as f64 / self.loops as f64)
    }

    /// Percentage of the rows that passed; none if there was no loop.
    pub fn percent_passed(&self) -> Option<f64> {
        (self.loops > 0).then(|| match self.rows {
            0 => 100.0,
            rows => 100.0 * self.passed as f64 / rows as f64,
        })
    }
}
