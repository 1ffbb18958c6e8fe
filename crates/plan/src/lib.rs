//! From a parsed statement to a plan: names, types, access paths.
//!
//! [`prepare`] binds a statement to the catalog and chooses how it is run; `exec` runs the
//! result, a [`physical::Plan`], any number of times. [`constant`] and [`filter`] bind single
//! expressions for SET, SHOW ... WHERE and the like. [`explain`] shows a plan as MariaDB does.
//!
//! Rules:
//! 1. A plan holds no values of parameters and no state.
//! 2. What the parser takes and nothing executes is error 1235 with the feature's name.
//! 3. An access path only narrows what is read; every condition stays in the plan.
//!
//! Architecture invariant: this room reads no rows and knows no pages. It asks the engine for
//! statistics.

mod bind;
mod check;
mod computed;
mod context;
mod explain;
mod foreign;
mod optimize;
pub mod physical;
mod prepared;
mod profile;
pub mod text;
mod view;
mod walk;

pub use bind::table::column_flags;
pub use check::{check_text, checks, partition_condition};
pub use computed::{ComputedClause, computed, computed_columns, computed_text, refused_columns};
pub use context::{LockedTables, PlanContext, StatTables, SystemVariables};
pub use explain::{ExplainOptions, explain, explain_json, json_answer};
pub use prepared::{Prepared, constant, filter, prepare, select_values};
pub use profile::{Profile, StepCounts};
pub use view::{DefinedView, define_view, shown_query, view_columns};
