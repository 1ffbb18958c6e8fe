//! Commands of the protocol.

use crate::answer::{Outlet, Protocol, describe};
use crate::bound::Bound;
use crate::prepared::{PreparedStatement, unknown_handler};
use crate::shared_prepared::SharedStatement;
use crate::status::StatusCounter;
use crate::{Diagnostics, Session};
use exec::Outcome;
use std::sync::Arc;
use syntax::ast::Statement;
use types::error::{ErrorCode, Warning};
use types::{SqlError, codes};
use wire::handshake::SCRAMBLE_BYTES;
use wire::response::{self, ColumnDescription};
use wire::{Command, Execute, MalformedPacket};

/// 1835.
pub(crate) static MALFORMED_PACKET: ErrorCode = ErrorCode {
    number: 1835,
    sqlstate: "HY000",
    name: "MALFORMED_PACKET",
    template: "Malformed communication packet",
};

impl From<MalformedPacket> for crate::Failure {
    fn from(_: MalformedPacket) -> Self {
        SqlError::new(&MALFORMED_PACKET, &[]).into()
    }
}

impl Session {
    /// Executes one command and writes its answer. True if the connection is to be closed.
    pub(crate) fn command(
        &mut self,
        payload: &[u8],
        scramble: &[u8; SCRAMBLE_BYTES],
        outlet: &mut dyn Outlet,
    ) -> bool {
        self.more_results = false;
        self.eval.clear_warnings();
        self.refresh_user();
        let command = match Command::parse(payload, self.capabilities) {
            Ok(command) => command,
            Err(MalformedPacket) => {
                self.put_error(&SqlError::new(&MALFORMED_PACKET, &[]));
                return self.closing;
            }
        };
        if self.user_version == crate::gate::GATED
            && let Err(error) = self.pass_gate(&command)
        {
            self.put_error(&error);
            return self.closing;
        }
        let result = match command {
            Command::Quit => {
                self.closing = true;
                return true;
            }
            Command::Query(text) => {
                self.status.add(StatusCounter::Questions, 1);
                self.running("Query", text, |session| session.query(text, outlet));
                return self.closing || self.loading.is_some();
            }
            Command::Execute(execute) => {
                self.execute_command(&execute, outlet);
                return self.closing;
            }
            Command::Prepare(text) => {
                self.running("Prepare", text, |session| session.prepare_command(text));
                return self.closing;
            }
            Command::SendLongData { statement, parameter, data } => {
                self.send_long_data(statement, usize::from(parameter), data);
                return self.closing;
            }
            Command::CloseStatement(id) => {
                self.status.add(StatusCounter::ComStmtClose, 1);
                self.prepared.remove(&self.server.clone(), id);
                return self.closing;
            }
            Command::ChangeUser(request) => match self.change_user(&request, scramble) {
                Ok(true) => {
                    self.put_ok(&Outcome::default());
                    Ok(())
                }
                // The next packet is no command: the connection must look.
                Ok(false) => return true,
                Err(error) => Err(error),
            },
            other => self.rare_command(&other, outlet),
        };
        if let Err(error) = result {
            self.put_error(&error);
        }
        self.closing
    }

    /// Runs what a command left to be run where the client's file can be received. True if the
    /// connection is to be closed.
    pub(crate) fn resume(&mut self, text: &[u8], outlet: &mut dyn Outlet) -> bool {
        self.running("Query", text, |session| session.query(text, outlet));
        self.closing
    }

    /// Commands that few clients send and that write answers of their own.
    fn rare_command(
        &mut self,
        command: &Command<'_>,
        outlet: &mut dyn Outlet,
    ) -> Result<(), SqlError> {
        match *command {
            Command::BulkExecute { statement, flags, parameters } => {
                self.bulk_command(statement, flags, parameters, outlet);
                Ok(())
            }
            Command::ProcessInfo => {
                let text = b"SHOW PROCESSLIST";
                self.running("Query", text, |session| session.query(text, outlet));
                Ok(())
            }
            Command::Fetch { statement, rows } => {
                self.status.add(StatusCounter::ComStmtFetch, 1);
                self.fetch(statement, rows, outlet)
            }
            Command::FieldList { table, pattern } => self.field_list(table, pattern),
            Command::Statistics => {
                self.put_statistics();
                Ok(())
            }
            Command::SetOption(option) => self.set_option(option),
            _ => self.plain_command(command),
        }
    }

    /// Commands that are answered with OK or an error.
    fn plain_command(&mut self, command: &Command<'_>) -> Result<(), SqlError> {
        match command {
            Command::Ping => {}
            Command::InitDatabase(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                self.status.add(StatusCounter::ComChangeDb, 1);
                self.use_database(&name)?;
            }
            Command::ResetStatement(id) => {
                self.status.add(StatusCounter::ComStmtReset, 1);
                let found = self.prepared.get(*id);
                let found = found.ok_or_else(|| unknown_handler(*id, "mysqld_stmt_reset"))?;
                found.reset();
                found.cursor = None;
            }
            Command::ResetConnection => self.reset_connection()?,
            Command::ProcessKill(id) => self.kill(u64::from(*id), false)?,
            Command::Refresh(_) => self.require_global(catalog::Privilege::Reload)?,
            Command::Shutdown => self.shutdown()?,
            Command::Debug => {
                self.require_global(catalog::Privilege::Super)?;
                let status = self.status_flags();
                response::end_of_rows(&mut self.out, 0, status, self.capabilities);
                return Ok(());
            }
            _ => return Err(SqlError::new(&codes::UNKNOWN_COM_ERROR, &[])),
        }
        self.put_ok(&Outcome::default());
        Ok(())
    }

    /// Shows what runs in the process list meanwhile.
    pub(crate) fn running(
        &mut self,
        command: &'static str,
        text: &[u8],
        run: impl FnOnce(&mut Self),
    ) {
        self.status.add(StatusCounter::Queries, 1);
        let query_id = self.server.processes.next_query_id();
        self.process.begin(command, text, query_id);
        run(self);
        self.process.end();
    }

    /// Writes an OK packet with what the statement did.
    pub(crate) fn put_ok(&mut self, outcome: &Outcome) {
        let changes = match self.changes.is_some() {
            true => self.take_changes(false),
            false => None,
        };
        let ok = response::Ok {
            affected_rows: outcome.affected_rows,
            last_insert_id: outcome.insert_id,
            status: self.status_flags(),
            warnings: self.eval.warning_count().min(u64::from(u16::MAX)) as u16,
            info: &outcome.info,
            changes: changes.as_deref(),
        };
        response::ok(&mut self.out, &ok, self.capabilities);
        self.passing_status = 0;
    }

    /// Writes an ERR packet and remembers the error for SHOW WARNINGS.
    pub(crate) fn put_error(&mut self, error: &SqlError) {
        // Errors with a reason stand among the warnings already, in their place.
        let warning = Warning::from(error);
        if !self.eval.warnings().contains(&warning) {
            self.eval.push_warning(warning);
        }
        self.keep_diagnostics();
        self.more_results = false;
        response::error(&mut self.out, error.code, error.sqlstate_text(), &error.message);
    }

    /// The statement's warnings become those of SHOW WARNINGS.
    pub(crate) fn keep_diagnostics(&mut self) {
        if self.eval.warning_count() == 0 && self.diagnostics.warnings == 0 {
            return;
        }
        self.diagnostics = Diagnostics {
            list: self.eval.warnings(),
            warnings: self.eval.warning_count(),
            errors: self.eval.error_count(),
        };
    }

    /// A statement panicked: its transaction is rolled back, the connection closes.
    pub(crate) fn panicked(&mut self, message: &str) {
        eprintln!("gannet: [ERROR] connection {}: internal error: {message}", self.process.id());
        self.out.clear();
        self.close();
        let error = SqlError::with_message(
            &codes::UNKNOWN_ERROR,
            "Internal error; the connection is closed and its transaction rolled back",
        );
        self.put_error(&error);
        self.process.end();
    }

    fn put_statistics(&mut self) {
        let server = &self.server;
        let uptime = server.uptime_seconds();
        let queries = crate::status::server().find(|(name, _)| *name == "Questions");
        let questions = queries.map_or(0, |(_, value)| value);
        let text = format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: 0  Opens: 0  \
             Open tables: 0  Queries per second avg: {:.3}",
            server.processes.count(),
            questions as f64 / uptime.max(1) as f64
        );
        self.out.begin().extend_from_slice(text.as_bytes());
        self.out.end();
    }

    fn set_option(&mut self, option: u16) -> Result<(), SqlError> {
        match option {
            0 => self.capabilities |= wire::capability::MULTI_STATEMENTS,
            1 => self.capabilities &= !wire::capability::MULTI_STATEMENTS,
            _ => return Err(SqlError::new(&codes::UNKNOWN_COM_ERROR, &[])),
        }
        let status = self.status_flags();
        response::end_of_rows(&mut self.out, 0, status, self.capabilities);
        Ok(())
    }

    /// COM_FIELD_LIST: the columns of a table with their defaults.
    fn field_list(&mut self, table: &[u8], pattern: &[u8]) -> Result<(), SqlError> {
        let table = String::from_utf8_lossy(table).into_owned();
        let database = self.current_database()?;
        let columns = self.table_columns(&database, &table)?;
        let rules = types::CollationId::UTF8MB4_GENERAL_CI.info();
        for (column, default) in &columns {
            let escape = Some(u32::from('\\'));
            let name = column.name.as_bytes();
            if pattern.is_empty() || types::collation::like(rules, name, pattern, escape) {
                let description = describe(column, self.settings.results);
                response::column(&mut self.out, &description, Some(default.as_deref()));
            }
        }
        let status = self.status_flags();
        response::end_of_rows(&mut self.out, 0, status, self.capabilities);
        Ok(())
    }

    fn prepare_command(&mut self, text: &[u8]) {
        self.status.add(StatusCounter::ComStmtPrepare, 1);
        self.prepared.begin_prepare();
        self.eval.begin_statement(self.statement_time());
        let result = self.prepare_statement(text).and_then(|statement| {
            let columns = statement.plan.as_ref().map_or(Vec::new(), |plan| {
                plan.prepared.columns().iter().map(|c| describe(c, self.settings.results)).collect()
            });
            let parameters = statement.parameters;
            let server = self.server.clone();
            let id = self.prepared.insert(&server, statement)?;
            Ok((id, parameters, columns))
        });
        let (id, parameters, columns) = match result {
            Ok(prepared) => prepared,
            Err(error) => return self.put_error(&error),
        };
        let parameters = vec![parameter_description(); parameters];
        let warnings = self.eval.warning_count().min(u64::from(u16::MAX)) as u16;
        let status = self.status_flags();
        let out = &mut self.out;
        response::prepared(out, id, &parameters, &columns, warnings, status, self.capabilities);
    }

    /// Parses and plans one statement for PREPARE (1295 for those that cannot be prepared).
    pub(crate) fn prepare_statement(&mut self, text: &[u8]) -> Result<PreparedStatement, SqlError> {
        let shared = self.parse_for_prepare(text)?;
        let plan = self.plan_for_prepare(&shared.statement, shared.plan_for_prepare())?;
        Ok(PreparedStatement {
            statement: shared.statement.clone(),
            text: shared.text.clone(),
            parameters: shared.parameters,
            plan: plan.map(|plan| shared.share(plan)),
            shared,
            types: Default::default(),
            long_data: Vec::new(),
            long_data_too_large: false,
            definitions_sent: true,
            cursor: None,
        })
    }

    /// The tree of a statement to prepare; another session's, if one has prepared the same text.
    fn parse_for_prepare(&mut self, text: &[u8]) -> Result<Arc<SharedStatement>, SqlError> {
        let options = syntax::ParseOptions { parameters: true, ..self.settings.parse };
        self.share_prepared(text, &options, || {
            let parsed = syntax::parse(text, &options).map_err(crate::parse_error)?;
            if !text[parsed.end.min(text.len())..].trim_ascii().is_empty() {
                return Err(crate::statement::rest_is_not_expected(text, parsed.end));
            }
            if matches!(
                parsed.statement,
                Statement::Prepare(_) | Statement::Execute(_) | Statement::Deallocate(_)
            ) {
                return Err(SqlError::new(&codes::UNSUPPORTED_PS, &[]));
            }
            Ok((parsed.statement, parsed.parameters as usize))
        })
    }

    fn execute_command(&mut self, execute: &Execute<'_>, outlet: &mut dyn Outlet) {
        self.status.add(StatusCounter::Questions, 1);
        self.status.add(StatusCounter::ComStmtExecute, 1);
        let Some(mut prepared) = self.prepared.take(execute.statement) else {
            let error = unknown_handler(execute.statement, "mysqld_stmt_execute");
            return self.put_error(&error);
        };
        self.execute_prepared(&mut prepared, execute, outlet);
        self.prepared.put_back(execute.statement, prepared);
    }

    fn execute_prepared(
        &mut self,
        prepared: &mut PreparedStatement,
        execute: &Execute<'_>,
        outlet: &mut dyn Outlet,
    ) {
        if prepared.long_data_too_large {
            prepared.reset();
            let error = SqlError::with_message(
                &codes::UNKNOWN_ERROR,
                "Parameter of prepared statement which is set through \
                 mysql_send_long_data() is longer than 'max_allowed_packet' bytes",
            );
            return self.put_error(&error);
        }
        let read = prepared.read_parameters(execute.parameters, &mut self.eval.parameters);
        if let Err(MalformedPacket) = read {
            return self.put_error(&SqlError::new(&MALFORMED_PACKET, &[]));
        }
        if execute.cursor != 0 || prepared.cursor.is_some() {
            prepared.cursor = None;
            if execute.cursor != 0 && matches!(*prepared.statement, Statement::Query(_)) {
                self.open_cursor(prepared);
                return self.eval.parameters.clear();
            }
        }
        prepared.choose_plan(&self.eval.parameters);
        let mut made = None;
        self.running("Execute", &prepared.text, |session| {
            let run = crate::statement::Run {
                protocol: Protocol::Binary,
                plan: prepared.plan.as_ref(),
                definitions_known: prepared.definitions_sent,
                bound: Bound::Codes(&prepared.types),
            };
            made = session.run_statement(&prepared.statement, run, outlet);
        });
        self.eval.parameters.clear();
        // A new plan was made: it is kept, and the client has its definitions now.
        if let Some(plan) = made {
            prepared.keep(plan);
            prepared.definitions_sent = true;
        }
    }

    fn send_long_data(&mut self, id: u32, parameter: usize, data: &[u8]) {
        self.status.add(StatusCounter::ComStmtSendLongData, 1);
        let limit = self.settings.packet_bytes_max;
        if let Some(prepared) = self.prepared.get(id) {
            prepared.append_long_data(parameter, data, limit);
        }
    }
}

/// What COM_STMT_PREPARE says of every parameter.
fn parameter_description() -> ColumnDescription {
    ColumnDescription {
        name: b"?".to_vec(),
        collation: types::CollationId::BINARY.0,
        type_code: wire::binary::type_code::VAR_STRING,
        flags: expr::flags::BINARY,
        ..ColumnDescription::default()
    }
}
