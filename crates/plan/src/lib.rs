//! Gannet: the `plan` room.

mod context;
pub mod physical;
mod prepared;

pub use context::{PlanContext, SystemVariables};
pub use prepared::{Prepared, constant, explain, filter, prepare};
