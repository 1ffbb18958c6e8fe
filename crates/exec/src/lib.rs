//! Running plans: operators, changes of rows, definitions.
//!
//! Rows are pushed: a block's tables are nested loops that bind one row after the other in a
//! [`frame::Frame`], and every complete frame goes on to grouping, sorting or straight to the
//! [`RowSink`], which writes values into the connection's buffer. A point read builds nothing in
//! between.
//!
//! Rules:
//! 1. An access (index range, hash table) only narrows: the conditions of a step are evaluated
//!    on every row that it gives, except for one that the planner knows the access to enforce
//!    exactly (`TableStep::tested` has the rest).
//! 2. A statement that fails leaves no change: [`execute`] rolls back to where it began.
//! 3. Every loop over rows calls [`Exec::tick`]: it lets other fibers run and ends the statement
//!    when it was killed.
//! 4. What a statement keeps (sorted rows, groups, hash tables) is charged to its memory account,
//!    and goes to temporary files beyond its budget ([`Spill`]).
//!
//! Architecture invariant: this room does not know the wire format.

mod ahead;
mod change;
mod context;
pub mod ddl;
mod error;
mod frame;
mod key;
mod order;
mod query;
mod spare;
mod spill;
mod store;

pub use ahead::prefetch_row;
pub use change::load::FileInput;
pub use context::{Exec, RowSink, StoredRows, phase};
pub use error::ExecError;
pub use query::{Recursions, stored_columns};
pub use spill::{BUDGET_BYTES_MIN, Budgets, Spill, WorkCounts};

use plan::physical::{InsertRows, Plan};

/// What a statement answers when it has no result set, and what is remembered of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows changed (or, for a query, found).
    pub affected_rows: u64,
    /// Insert id of the answer.
    pub insert_id: u64,
    /// What LAST_INSERT_ID() says from now on; none leaves it.
    pub last_insert_id: Option<u64>,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like.
    pub info: String,
    /// Rows that the query would have had without LIMIT.
    pub found_rows: u64,
    /// A result set went to the sink.
    pub has_rows: bool,
}

/// Whether a change depends on plain reads, of a query or of subqueries.
fn reads_for_change(plan: &Plan) -> bool {
    let select = match plan {
        Plan::Insert(insert) => return matches!(insert.source, InsertRows::Query(_)),
        Plan::Update(update) => &update.select,
        Plan::Delete(delete) => &delete.select,
        Plan::Query(_) | Plan::UpdateJoin(_) | Plan::DeleteJoin(_) => return false,
    };
    !select.constant_applies.is_empty() || select.tables.iter().any(|it| !it.applies.is_empty())
}

/// Runs a plan. On an error everything that the statement changed is undone, unless the
/// transaction ends with it ([`Exec::is_autocommit`]) and is rolled back by the caller; if
/// [`ExecError::transaction_ended`] the engine has rolled back the whole transaction.
pub fn execute(
    exec: &mut Exec<'_>,
    plan: &Plan,
    sink: &mut dyn RowSink,
) -> Result<Outcome, ExecError> {
    let savepoint = exec.transaction.begin_statement();
    if reads_for_change(plan) {
        exec.transaction.lock_plain_reads();
    }
    let result = match plan {
        Plan::Query(query) => query::run_statement(exec, query, sink),
        Plan::Insert(insert) => change::insert::run(exec, insert, sink),
        Plan::Update(update) => change::update::run(exec, update),
        Plan::Delete(delete) => change::delete::run(exec, delete, sink),
        Plan::UpdateJoin(change) => change::join::update(exec, change),
        Plan::DeleteJoin(change) => change::join::delete(exec, change),
    };
    if let Err(error) = &result
        && !error.transaction_ended
        && !exec.is_autocommit
    {
        exec.transaction.rollback_to(savepoint)?;
    }
    result
}
