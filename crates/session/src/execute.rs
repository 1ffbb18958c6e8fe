//! Running a plan with what the session has: its transaction, memory, settings.

use crate::Session;
use crate::statement::Failure;
use crate::system_variables::session_view;
use engine_api::Transaction;
use exec::{Exec, ExecError, FileInput, Recursions};
use types::{SqlError, codes};
use wire::OutputBuffer;

/// What an execution has besides.
#[derive(Default)]
pub(crate) struct Extras<'a> {
    /// Counts what the steps do.
    pub(crate) profile: Option<&'a mut plan::Profile>,
    /// The file of LOAD DATA.
    pub(crate) input: Option<&'a mut dyn FileInput>,
}

impl Session {
    /// Calls `run` with everything that a plan needs to be executed, and the buffer of the answer.
    /// Memory and counts of the execution are the session's own again afterwards.
    pub(crate) fn with_exec<T>(
        &mut self,
        prepared: &plan::Prepared,
        extras: Extras<'_>,
        run: impl FnOnce(&mut Exec<'_>, &mut OutputBuffer) -> Result<T, ExecError>,
    ) -> Result<T, Failure> {
        if self.changes.is_some() {
            self.track_plan(prepared);
        }
        let without_tables = prepared.uses_no_table();
        let is_autocommit = self.settings.autocommit && !self.transaction.is_explicit();
        let mut passing: Option<Box<dyn Transaction>> = None;
        match without_tables {
            true => passing = Some(self.passing_transaction()),
            false => self.ensure_transaction()?,
        }
        let server = self.server.clone();
        let tables = session_view!(self, &server);
        let transaction: &mut dyn Transaction = match &mut passing {
            Some(passing) => passing.as_mut(),
            None => {
                let own = self.transaction.engine();
                own.ok_or_else(|| SqlError::new(&codes::UNKNOWN_ERROR, &[]))?
            }
        };
        let mut exec = Exec {
            eval: &mut self.eval,
            transaction,
            catalog: &server.catalog,
            user: &self.user,
            session: &tables,
            memory: &self.memory,
            spill: &self.spill,
            cancel: self.process.cancel_token(),
            count_matched: self.capabilities & wire::capability::FOUND_ROWS != 0,
            auto_increment_increment: self.settings.auto_increment_increment,
            auto_increment_offset: self.settings.auto_increment_offset,
            select_limit: self.settings.select_limit,
            profile: extras.profile,
            is_autocommit,
            recursion_limit: self.settings.recursion_limit,
            recursions: Recursions::default(),
            // Made anew, since it lives no longer than the rest.
            input: match extras.input {
                Some(input) => Some(input),
                None => None,
            },
        };
        let result = run(&mut exec, &mut self.out);
        self.memory.release_all();
        if let Some(counts) = self.spill.take_counts() {
            self.status.add_work(&counts);
        }
        let result = result?;
        if let Some(passing) = passing {
            self.end_engine(passing).map_err(|error| catalog::engine_error(&error, ""))?;
        }
        Ok(result)
    }
}
