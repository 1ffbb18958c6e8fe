//! What a running statement has at hand.

use crate::ExecError;
use crate::change::load::FileInput;
use crate::query::Recursions;
use crate::spill::Spill;
use base::memory::MemoryAccount;
use catalog::information_schema::SessionTables;
use catalog::{Catalog, UserPrivileges};
use engine_api::{ReadGate, RowBatch, RowRef, Transaction};
use expr::EvalContext;
use plan::Profile;
use runtime::CancelToken;
use std::sync::Arc;
use types::row::IndexLayout;
use types::{SqlError, ValueRef, codes};

/// Everything that operators share during one statement.
pub struct Exec<'a> {
    /// Settings, parameters, warnings, arena.
    pub eval: &'a mut EvalContext,
    /// The transaction that reads and changes.
    pub transaction: &'a mut dyn Transaction,
    /// Definitions.
    pub catalog: &'a Arc<Catalog>,
    /// Who runs it, for information_schema.
    pub user: &'a UserPrivileges,
    /// What the sessions know, for information_schema.
    pub session: &'a dyn SessionTables,
    /// Memory of the statement.
    pub memory: &'a Arc<MemoryAccount>,
    /// Where goes what its memory does not hold.
    pub spill: &'a Arc<Spill>,
    /// Tells that it was killed.
    pub cancel: &'a CancelToken,
    /// CLIENT_FOUND_ROWS: matched rather than changed rows are counted.
    pub count_matched: bool,
    /// auto_increment_increment.
    pub auto_increment_increment: u64,
    /// auto_increment_offset.
    pub auto_increment_offset: u64,
    /// sql_select_limit.
    pub select_limit: u64,
    /// Counts what the steps of the plan do, for ANALYZE.
    pub profile: Option<&'a mut Profile>,
    /// The transaction lasts for this statement only: its rollback undoes a failure.
    pub is_autocommit: bool,
    /// max_recursive_iterations.
    pub recursion_limit: u64,
    /// The rows that recursive tables gave last.
    pub recursions: Recursions,
    /// The file of LOAD DATA.
    pub input: Option<&'a mut dyn FileInput>,
}

/// What a statement does, for the process list: numbers for [`CancelToken::set_phase`].
pub mod phase {
    /// It begins.
    pub const INIT: u8 = 0;
    /// Rows are read and sent.
    pub const SENDING: u8 = 1;
    /// Rows are sorted.
    pub const SORTING: u8 = 2;
    /// Rows are changed or deleted.
    pub const UPDATING: u8 = 3;
    /// Rows are inserted.
    pub const INSERTING: u8 = 4;
    /// A definition is changed.
    pub const DEFINING: u8 = 5;
    /// Rows are copied into a new form of their table.
    pub const COPYING: u8 = 6;
    /// The transaction is committed.
    pub const COMMITTING: u8 = 7;

    /// The name in the process list.
    pub fn name(phase: u8) -> &'static str {
        const NAMES: [&str; 8] = [
            "Init",
            "Sending data",
            "Creating sort index",
            "Updating",
            "Update",
            "altering table",
            "copy to tmp table",
            "Commit",
        ];
        NAMES.get(usize::from(phase)).copied().unwrap_or("Init")
    }
}

/// Takes the rows of a result whose columns it knows.
pub trait RowSink {
    /// Called once, before the first row. Rows that leave before the statement has ended must
    /// pass the gate first.
    fn begin(&mut self, gate: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError>;
    /// One row; values have the columns' types. May park while the client is slow.
    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError>;
    /// Whether rows may come as they are stored: the sink was made for what
    /// [`crate::stored_columns`] says of the plan.
    fn takes_stored(&self) -> bool {
        false
    }
    /// Rows of the table whose columns are the result. Asked for only by [`RowSink::takes_stored`].
    fn stored(&mut self, _rows: StoredRows<'_>) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Rows as they are stored.
#[derive(Clone, Copy, Debug)]
pub enum StoredRows<'a> {
    /// One row.
    Row(RowRef<'a>),
    /// Rows of a scan, those with these numbers.
    Rows(&'a RowBatch, &'a [u32]),
    /// The same of an index that holds all columns of the result.
    Keys(&'a IndexLayout, &'a RowBatch, &'a [u32]),
}

impl Exec<'_> {
    /// To be called for every row of a loop.
    #[inline]
    pub fn tick(&mut self) -> Result<(), ExecError> {
        runtime::yield_if_due();
        if self.cancel.is_cancelled() {
            return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]).into());
        }
        Ok(())
    }

    /// The same where the fiber does not give way: ends a statement that was killed.
    pub fn check_cancelled(&self) -> Result<(), ExecError> {
        match self.cancel.is_cancelled() {
            true => Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]).into()),
            false => Ok(()),
        }
    }

    /// Charges memory that the statement keeps; fails the statement, not the server.
    pub fn charge(&self, bytes: usize) -> Result<(), ExecError> {
        let charged = self.memory.charge(bytes as u64);
        charged.map_err(|_| SqlError::new(&codes::OUT_OF_SORTMEMORY, &[]).into())
    }
}
