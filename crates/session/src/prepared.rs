//! Prepared statements: of the protocol by number, of SQL by name.

use crate::ServerState;
use crate::cursor::Cursor;
use crate::planned::SessionPlan;
use crate::room;
use crate::shared_prepared::SharedStatement;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syntax::ast::Statement;
use types::{SqlError, codes};
use wire::MalformedPacket;
use wire::binary::{ParameterTypes, read_parameters};

/// A statement with its plan.
pub(crate) struct PreparedStatement {
    /// The tree, to plan again when a definition has changed.
    pub(crate) statement: Arc<Statement>,
    /// Statement text, for the process list.
    pub(crate) text: Arc<[u8]>,
    /// Number of `?`.
    pub(crate) parameters: usize,
    /// What all sessions share that prepared this text.
    pub(crate) shared: Arc<SharedStatement>,
    /// The plan, for statements that have one.
    pub(crate) plan: Option<Arc<SessionPlan>>,
    /// Types of the last execution's parameters.
    pub(crate) types: ParameterTypes,
    /// What COM_STMT_SEND_LONG_DATA gave.
    pub(crate) long_data: Vec<Option<Vec<u8>>>,
    /// Long data went over max_allowed_packet: the next execution fails.
    pub(crate) long_data_too_large: bool,
    /// The client has the definitions of this plan's columns.
    pub(crate) definitions_sent: bool,
    /// Rows that wait for COM_STMT_FETCH.
    pub(crate) cursor: Option<Box<Cursor>>,
}

/// All statements of a session.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    /// In order of their numbers; one that runs is not there.
    by_id: Vec<(u32, Option<Box<PreparedStatement>>)>,
    /// Where the one that ran last is.
    last_run: usize,
    by_name: HashMap<String, PreparedStatement>,
    last_id: u32,
    /// The one of the last COM_STMT_PREPARE, if that succeeded.
    last_prepared: Option<u32>,
}

/// By this number a client that does not wait for the answer to COM_STMT_PREPARE means the
/// statement that it prepared last (MariaDB Connector/J 3 and C do).
const LAST_PREPARED: u32 = u32::MAX;

/// The error for a number that is not a statement's.
pub(crate) fn unknown_handler(id: u32, command: &str) -> SqlError {
    SqlError::new(&codes::UNKNOWN_STMT_HANDLER, &[&id, &command])
}

impl PreparedStatement {
    /// Before an execution with these values: if its plan was chosen for others, the one that fits
    /// of those that were made for the same text.
    pub(crate) fn choose_plan(&mut self, values: &[types::Value]) {
        if let Some(plan) = &self.plan
            && !plan.prepared.fits_values(values)
            && let Some(other) = self.shared.plan_for(values)
        {
            self.plan = Some(other);
            self.definitions_sent = false;
        }
    }

    /// A new plan was made: the one to keep, which may be another session's of the same kind.
    pub(crate) fn keep(&mut self, plan: Arc<SessionPlan>) {
        self.plan = Some(self.shared.share(plan));
    }

    /// Reads the parameters that COM_STMT_EXECUTE sent into `values`; long data is consumed.
    pub(crate) fn read_parameters(
        &mut self,
        payload: &[u8],
        values: &mut Vec<types::Value>,
    ) -> Result<(), MalformedPacket> {
        let (count, types) = (self.parameters, &mut self.types);
        let read = wire::binary::read_parameters(payload, count, types, &self.long_data, values);
        self.reset();
        read
    }

    /// Forgets long data: COM_STMT_RESET, and after an execution.
    pub(crate) fn reset(&mut self) {
        self.long_data.clear();
        self.long_data_too_large = false;
    }

    /// COM_STMT_SEND_LONG_DATA.
    pub(crate) fn append_long_data(&mut self, parameter: usize, data: &[u8], limit_bytes: usize) {
        if parameter >= self.parameters {
            return;
        }
        if self.long_data.len() <= parameter {
            self.long_data.resize(self.parameters, None);
        }
        let held: usize = self.long_data.iter().flatten().map(Vec::len).sum();
        if held + data.len() > limit_bytes {
            self.long_data_too_large = true;
            return;
        }
        self.long_data[parameter].get_or_insert_default().extend_from_slice(data);
    }
}

impl PreparedStatements {
    fn position(&self, id: u32) -> Result<usize, usize> {
        match self.by_id.get(self.last_run) {
            Some((last, _)) if *last == id => Ok(self.last_run),
            _ => {
                let id = match id {
                    LAST_PREPARED => self.last_prepared.unwrap_or(LAST_PREPARED),
                    id => id,
                };
                self.by_id.binary_search_by_key(&id, |(id, _)| *id)
            }
        }
    }

    /// Asks for the memory of the list, see [`runtime::prefetch`].
    pub(crate) fn prefetch(&self) {
        runtime::prefetch(&self.by_id[..]);
    }

    /// Asks for the memory of the statement that ran last, after [`PreparedStatements::prefetch`]:
    /// many clients execute one again and again.
    pub(crate) fn prefetch_last(&self) {
        if let Some((_, Some(statement))) = self.by_id.get(self.last_run) {
            runtime::prefetch(&**statement);
        }
    }

    /// Asks for the row that an execution will read, if it is of the statement that ran last.
    pub(crate) fn prefetch_row(&self, execute: &wire::Execute<'_>) {
        if let Some((id, Some(statement))) = self.by_id.get(self.last_run)
            && *id == execute.statement
            && let Some(plan) = &statement.plan
            && statement.long_data.is_empty()
        {
            let (count, mut types) = (statement.parameters, statement.types.clone());
            let mut room = room::take();
            let values = &mut room.parameters;
            if read_parameters(execute.parameters, count, &mut types, &[], values).is_ok() {
                exec::prefetch_row(plan.prepared.plan(), values);
            }
            room::give(room);
        }
    }

    fn count_in(server: &ServerState) -> Result<(), SqlError> {
        let limit = server.globals.value("max_prepared_stmt_count").number();
        let before = server.prepared_count.fetch_add(1, Ordering::Relaxed);
        if before >= limit {
            server.prepared_count.fetch_sub(1, Ordering::Relaxed);
            return Err(SqlError::new(&codes::MAX_PREPARED_STMT_COUNT_REACHED, &[&limit]));
        }
        Ok(())
    }

    /// Keeps a statement; its number.
    pub(crate) fn insert(
        &mut self,
        server: &ServerState,
        statement: PreparedStatement,
    ) -> Result<u32, SqlError> {
        Self::count_in(server)?;
        let position = loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if let Err(position) = self.position(self.last_id) {
                break position;
            }
        };
        self.by_id.insert(position, (self.last_id, Some(Box::new(statement))));
        self.last_prepared = Some(self.last_id);
        Ok(self.last_id)
    }

    /// Keeps a statement under a name, in place of one that has it.
    pub(crate) fn insert_named(
        &mut self,
        server: &ServerState,
        name: &str,
        statement: PreparedStatement,
    ) -> Result<(), SqlError> {
        self.remove_named(server, name);
        Self::count_in(server)?;
        self.by_name.insert(name.to_lowercase(), statement);
        Ok(())
    }

    /// COM_STMT_PREPARE begins: none is the last one until it succeeds.
    pub(crate) fn begin_prepare(&mut self) {
        self.last_prepared = None;
    }

    /// A statement by number.
    pub(crate) fn get(&mut self, id: u32) -> Option<&mut PreparedStatement> {
        let position = self.position(id).ok()?;
        self.by_id[position].1.as_deref_mut()
    }

    /// Takes a statement by number out, to run it; [`PreparedStatements::put_back`] follows.
    pub(crate) fn take(&mut self, id: u32) -> Option<Box<PreparedStatement>> {
        self.last_run = self.position(id).ok()?;
        self.by_id[self.last_run].1.take()
    }

    /// The statement has run.
    pub(crate) fn put_back(&mut self, id: u32, statement: Box<PreparedStatement>) {
        if let Ok(position) = self.position(id) {
            self.by_id[position].1 = Some(statement);
        }
    }

    /// A statement by name.
    pub(crate) fn get_named(&mut self, name: &str) -> Option<&mut PreparedStatement> {
        self.by_name.get_mut(&name.to_lowercase())
    }

    /// Forgets a statement.
    pub(crate) fn remove(&mut self, server: &ServerState, id: u32) -> bool {
        let found = self.position(id).map(|position| self.by_id.remove(position)).is_ok();
        server.prepared_count.fetch_sub(u64::from(found), Ordering::Relaxed);
        found
    }

    /// Forgets a statement by name.
    pub(crate) fn remove_named(&mut self, server: &ServerState, name: &str) -> bool {
        let found = self.by_name.remove(&name.to_lowercase()).is_some();
        server.prepared_count.fetch_sub(u64::from(found), Ordering::Relaxed);
        found
    }

    /// Forgets all.
    pub(crate) fn close_all(&mut self, server: &ServerState) {
        let count = (self.by_id.len() + self.by_name.len()) as u64;
        server.prepared_count.fetch_sub(count, Ordering::Relaxed);
        self.by_id.clear();
        self.by_name.clear();
    }
}
