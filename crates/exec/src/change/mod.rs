//! Statements that change rows.

mod computed;
pub mod delete;
pub mod foreign;
pub mod insert;
pub mod join;
mod late;
pub mod load;
mod row;
pub mod update;

pub use computed::compute;
pub use row::{breaks_check, column_filler, duplicate_entry, duplicate_in, zero_of};

/// Whether the rows to change are one row of one table, found by its key, and nothing else is read.
fn is_one_key(plan: &plan::physical::SelectPlan) -> bool {
    let [step] = plan.tables.as_slice() else { return false };
    matches!(step.access, plan::physical::Access::Point { .. })
        && step.applies.is_empty()
        && plan.constant_applies.is_empty()
}
