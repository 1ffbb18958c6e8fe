//! Statements: from text to an answer.
//!
//! A statement goes through [`Session::run_statement`]: warnings of the former one are
//! forgotten, [`Session::execute_statement`] does what its kind asks, the transaction ends if it
//! lasts no longer than the statement, and exactly one answer is written.

use crate::Session;
use crate::answer::{AnswerSink, Nowhere, Outlet, Protocol, ResultFormat};
use crate::bound::Bound;
use crate::execute::Extras;
use crate::into::into_of;
use crate::plan_cache::Found;
use crate::planned::SessionPlan;
use crate::statement_kind::{keeps_warnings, phase_of};
use crate::status::{StatusCounter, statement_counter};
use exec::{ExecError, Outcome};
use runtime::CancelReason;
use std::sync::Arc;
use syntax::ParseError;
use syntax::ast::{Completion, Statement};
use types::{SqlError, codes};
use wire::capability::MULTI_STATEMENTS;
use wire::response;

/// Why a statement failed, and whether its transaction is gone.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) sql: SqlError,
    pub(crate) transaction_ended: bool,
}

impl From<SqlError> for Failure {
    fn from(sql: SqlError) -> Self {
        Self { sql, transaction_ended: false }
    }
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self { sql: error.sql, transaction_ended: error.transaction_ended }
    }
}

impl From<catalog::CatalogError> for Failure {
    fn from(error: catalog::CatalogError) -> Self {
        SqlError::from(error).into()
    }
}

/// The parser's error as a client sees it.
pub(crate) fn parse_error(error: ParseError) -> SqlError {
    let mut sqlstate = *b"42000";
    if error.sqlstate.len() == sqlstate.len() {
        sqlstate.copy_from_slice(error.sqlstate.as_bytes());
    }
    SqlError { code: error.code, sqlstate, message: error.message }
}

/// 1064 at what follows a statement where nothing may follow.
pub(crate) fn rest_is_not_expected(text: &[u8], end: usize) -> SqlError {
    let rest = &text[end.min(text.len())..];
    let start = end + rest.len() - rest.trim_ascii_start().len();
    let line = 1 + text[..start].iter().filter(|byte| **byte == b'\n').count();
    let near: String = String::from_utf8_lossy(&text[start..]).chars().take(80).collect();
    SqlError::with_message(
        &codes::PARSE_ERROR,
        format!(
            "You have an error in your SQL syntax; check the manual that corresponds to your \
             MariaDB server version for the right syntax to use near '{near}' at line {line}"
        ),
    )
}

/// How a statement is run.
pub(crate) struct Run<'a> {
    /// How rows are written.
    pub(crate) protocol: Protocol,
    /// The plan that was made for it.
    pub(crate) plan: Option<&'a Arc<SessionPlan>>,
    /// The client has the definitions of that plan's columns.
    pub(crate) definitions_known: bool,
    /// How the client bound the parameters.
    pub(crate) bound: Bound<'a>,
}

impl Run<'_> {
    /// A statement of COM_QUERY.
    pub(crate) fn text() -> Self {
        let bound = Bound::ByValue;
        Self { protocol: Protocol::Text, plan: None, definitions_known: false, bound }
    }
}

/// What [`Session::execute_statement`] leaves to be written.
pub(crate) enum Answer {
    /// An OK packet.
    Done(Outcome),
    /// The end of the rows, which are written.
    Rows(Outcome),
}

impl Answer {
    /// An OK packet that says nothing more.
    pub(crate) fn ok() -> Self {
        Self::Done(Outcome::default())
    }
}

impl Session {
    /// COM_QUERY: one statement, or several if the client may send them.
    pub(crate) fn query(&mut self, text: &[u8], outlet: &mut dyn Outlet) {
        let mut at = 0;
        loop {
            let rest = &text[at..];
            let found = self.look_up(rest);
            let end = match found {
                Found::Known { entry, end } => {
                    if !self.note_what_follows(rest, end) {
                        return;
                    }
                    self.run_known(entry, outlet);
                    end
                }
                Found::No | Found::New => {
                    let is_new = matches!(found, Found::New);
                    match self.parse_and_run(rest, is_new, outlet) {
                        Some(end) => end,
                        None => return,
                    }
                }
            };
            if !self.more_results || self.closing {
                return;
            }
            at += end;
        }
    }

    /// Runs the first statement of a text that has no plan yet; where it ends.
    fn parse_and_run(
        &mut self,
        text: &[u8],
        is_new: bool,
        outlet: &mut dyn Outlet,
    ) -> Option<usize> {
        let parsed = match syntax::parse(text, &self.settings.parse) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.eval.begin_statement(self.statement_time());
                self.put_error(&parse_error(error));
                return None;
            }
        };
        if crate::load::is_local(&parsed.statement) && !outlet.can_receive() {
            // The connection has to read the client's file: it runs the rest of the text.
            self.loading = Some(text.to_vec());
            return None;
        }
        let end = parsed.end.min(text.len());
        if !self.note_what_follows(text, end) {
            return None;
        }
        // Names may mean temporary tables: what is learned then is of no use to others.
        let learns = is_new && self.temporary.is_none();
        let learned = if learns { self.learn(text, &parsed.statement) } else { None };
        match learned {
            Some(statement) => self.run_learned(statement, outlet),
            None => {
                self.run_statement(&parsed.statement, Run::text(), outlet);
            }
        }
        Some(end)
    }

    /// Whether another statement follows; false (and error 1064) if none may.
    fn note_what_follows(&mut self, text: &[u8], end: usize) -> bool {
        self.more_results = !text[end..].trim_ascii().is_empty();
        if self.more_results && self.capabilities & MULTI_STATEMENTS == 0 {
            self.eval.begin_statement(self.statement_time());
            self.put_error(&rest_is_not_expected(text, end));
            return false;
        }
        true
    }

    /// Runs a statement and writes its answer. Returns the plan if a new one was made.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        run: Run<'_>,
        outlet: &mut dyn Outlet,
    ) -> Option<Arc<SessionPlan>> {
        self.eval.begin_statement(self.statement_time());
        if let Some(counter) = statement_counter(statement) {
            self.status.add(counter, 1);
        }
        let mark = self.out.mark();
        let timer = self.start_timer();
        let mut planned = None;
        let result = self.execute_statement(statement, run, outlet, &mut planned);
        let ended = match &result {
            Ok(_) => self.end_statement(false),
            Err(failure) => self.end_failed(failure),
        };
        self.end_write();
        drop(timer);
        match (result, ended) {
            (Ok(answer), Ok(())) => self.put_answer(statement, &answer),
            (_, Err(error)) | (Err(Failure { sql: error, .. }), Ok(())) => {
                // Rows of a failed statement that the client has not seen are taken back.
                self.out.rewind(mark);
                self.eval.facts.row_count = -1;
                let error = self.kill_error(error);
                self.put_error(&error);
            }
        }
        planned
    }

    /// Undoes a statement that failed. The statement's own error is what the client must know;
    /// without a log nobody is told anything more.
    #[cold]
    fn end_failed(&mut self, failure: &Failure) -> Result<(), SqlError> {
        let waited = self.wait_read_durable();
        if failure.transaction_ended {
            self.transaction_ended();
        } else {
            let _outcome = self.end_statement(true);
        }
        waited
    }

    /// An interrupted statement says by whom.
    fn kill_error(&mut self, error: SqlError) -> SqlError {
        if !error.is(&codes::QUERY_INTERRUPTED) {
            return error;
        }
        match self.process.cancel_token().reason() {
            Some(CancelReason::Timeout) => SqlError::new(&codes::STATEMENT_TIMEOUT, &[]),
            Some(CancelReason::KillConnection) => SqlError::new(&codes::CONNECTION_KILLED, &[]),
            Some(CancelReason::KillQuery | CancelReason::ClientGone) | None => error,
        }
    }

    fn put_answer(&mut self, statement: &Statement, answer: &Answer) {
        let (outcome, rows) = match answer {
            Answer::Done(outcome) => (outcome, false),
            Answer::Rows(outcome) => (outcome, true),
        };
        let facts = &mut self.eval.facts;
        let is_query = rows || matches!(statement, Statement::Query(_));
        facts.row_count = if is_query { -1 } else { outcome.affected_rows as i64 };
        if let Some(id) = outcome.last_insert_id.or(self.eval.assigned_insert_id.get()) {
            facts.last_insert_id = id;
        }
        if matches!(statement, Statement::Query(_)) {
            facts.found_rows = outcome.found_rows;
        }
        let reads_tables = self.reads_tables && matches!(statement, Statement::Query(_));
        if self.eval.warning_count() > 0 || reads_tables || !keeps_warnings(statement) {
            self.keep_diagnostics();
        }
        if rows {
            let warnings = self.eval.warning_count().min(u64::from(u16::MAX)) as u16;
            self.end_rows(warnings);
        } else {
            self.put_ok(outcome);
        }
    }

    /// The end of a statement's rows.
    fn end_rows(&mut self, warnings: u16) {
        let (status, capabilities) = (self.status_flags(), self.capabilities);
        if self.changes.is_some() {
            self.track_result();
            let keeps = capabilities & wire::capability::DEPRECATE_EOF == 0;
            if let Some(changes) = self.take_changes(keeps) {
                let changes = Some(&changes[..]);
                let ok = response::Ok { warnings, status, changes, ..Default::default() };
                return response::end_of_rows_with_changes(&mut self.out, &ok, capabilities);
            }
        }
        response::end_of_rows(&mut self.out, warnings, status, capabilities);
    }

    /// A sink for the rows of this statement, and how they look.
    pub(crate) fn result_format(&self, protocol: Protocol, skip_definitions: bool) -> ResultFormat {
        let cached = self.capabilities & wire::capability::CACHE_METADATA != 0;
        ResultFormat {
            protocol,
            capabilities: self.capabilities,
            time_zone: self.settings.time_zone,
            status: self.status_flags_before_rows(),
            skip_definitions: skip_definitions && cached,
        }
    }

    /// Does what the statement asks; rows are written, OK packets are left to the caller.
    pub(crate) fn execute_statement(
        &mut self,
        statement: &Statement,
        run: Run<'_>,
        outlet: &mut dyn Outlet,
        planned: &mut Option<Arc<SessionPlan>>,
    ) -> Result<Answer, Failure> {
        self.process.cancel_token().set_phase(phase_of(statement));
        match statement {
            Statement::Query(query) => {
                if query.locking.as_ref().is_some_and(|locking| locking.exclusive) {
                    self.begin_write(Some(statement))?;
                }
                self.run_planned(statement, run, outlet, planned)
            }
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                self.check_may_write()?;
                self.begin_write(Some(statement))?;
                self.run_planned(statement, run, outlet, planned)
            }
            Statement::LoadData(load) => self.load_data(statement, load, outlet),
            Statement::Do(expressions) => {
                expressions.iter().try_for_each(|expression| self.do_value(expression))?;
                Ok(Answer::ok())
            }
            Statement::CreateTable(_)
            | Statement::AlterTable(_)
            | Statement::DropTable(_)
            | Statement::RenameTable(_)
            | Statement::TruncateTable(_)
            | Statement::CreateIndex(_)
            | Statement::DropIndex(_)
            | Statement::CreateDatabase(_)
            | Statement::AlterDatabase(_)
            | Statement::DropDatabase(_) => self.define(statement),
            Statement::CreateView(create) => self.create_view(create),
            Statement::LockTables(lock) => self.lock_tables(lock),
            Statement::DropView(drop) => self.drop_views(drop),
            Statement::Show(show) => self.show(show, run.protocol, outlet),
            Statement::Describe(describe) => self.describe_table(describe, run.protocol, outlet),
            Statement::Explain(explain) => self.explain(explain, run.protocol, outlet),
            Statement::Prepare(_) | Statement::Execute(_) | Statement::ExecuteImmediate(_) => {
                self.named_statement(statement, outlet)
            }
            Statement::Deallocate(name) => self.deallocate(name),
            Statement::Xa(xa) => self.xa(xa, run.protocol, outlet),
            Statement::TableMaintenance(maintenance) => {
                self.maintain(maintenance, run.protocol, outlet)
            }
            Statement::SetStatement(items, statement) => {
                self.set_statement(items, statement, run, outlet, planned)
            }
            other => self.administer(other),
        }
    }

    /// Statements without rows that do not read or change tables.
    fn administer(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        match statement {
            Statement::Use(name) => self.use_database(name)?,
            Statement::Set(items) => self.set(items)?,
            Statement::SetTransaction(set) => self.set_transaction(set)?,
            Statement::Begin(begin) => {
                self.begin(begin)?;
                self.track_begin(begin, None);
            }
            Statement::Commit(completion) => self.complete_statement(true, *completion)?,
            Statement::Rollback(completion) => self.complete_statement(false, *completion)?,
            Statement::Savepoint(name) => self.savepoint(name)?,
            Statement::RollbackTo(name) => self.rollback_to(name)?,
            Statement::ReleaseSavepoint(name) => self.release_savepoint(name)?,
            Statement::UnlockTables => {
                if self.locked_tables.is_some() {
                    self.unlock_tables()?;
                }
                self.release_read_lock();
            }
            Statement::Kill(kill) => self.kill_statement(kill)?,
            Statement::Flush(flush) => self.flush(flush)?,
            Statement::Shutdown => self.shutdown()?,
            Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::DropUser(_)
            | Statement::RenameUser(_)
            | Statement::CreateRole(_)
            | Statement::DropRole(_)
            | Statement::Grant(_)
            | Statement::Revoke(_) => {
                self.commit_implicitly()?;
                self.begin_write(None)?;
                self.change_accounts(statement)?;
            }
            other => {
                return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&other.feature()]).into());
            }
        }
        Ok(Answer::ok())
    }

    fn complete_statement(&mut self, commit: bool, completion: Completion) -> Result<(), SqlError> {
        if self.complete(commit, completion)? {
            self.closing = true;
        }
        Ok(())
    }

    /// Runs a query or a change of rows by its plan.
    fn run_planned(
        &mut self,
        statement: &Statement,
        run: Run<'_>,
        outlet: &mut dyn Outlet,
        planned: &mut Option<Arc<SessionPlan>>,
    ) -> Result<Answer, Failure> {
        if let Some(plan) = run.plan
            && self.may_run(plan)?
        {
            let format = self.result_format(run.protocol, run.definitions_known);
            return self.execute_plan(plan, format, outlet, None);
        }
        if let (Statement::Query(query), Some(into)) = (statement, into_of(statement)) {
            return self.select_into(query, into);
        }
        let plan = self.plan_for_values(statement, run.plan.map(|plan| &**plan), run.bound)?;
        if plan.prepared.is_change() && self.locked_tables.is_none() {
            self.lock_for(&plan)?;
        }
        if plan.prepared.is_reusable() {
            *planned = Some(plan.clone());
        }
        let format = self.result_format(run.protocol, false);
        self.execute_plan(&plan, format, outlet, None)
    }

    /// Executes a plan with this session's transaction. With a profile, what its steps do is
    /// counted and its rows go nowhere.
    pub(crate) fn execute_plan(
        &mut self,
        plan: &SessionPlan,
        format: ResultFormat,
        outlet: &mut dyn Outlet,
        profile: Option<&mut plan::Profile>,
    ) -> Result<Answer, Failure> {
        let prepared = &plan.prepared;
        self.reads_tables = !prepared.tables().is_empty();
        let extras = Extras { profile, ..Extras::default() };
        let (mut begun, mut rows, mut sent) = (false, 0, 0);
        let outcome = self.with_exec(prepared, extras, |exec, out| {
            if exec.profile.is_some() {
                return exec::execute(exec, prepared.plan(), &mut Nowhere);
            }
            let mut sink = AnswerSink::new(out, outlet, format, &plan.shape);
            let outcome = exec::execute(exec, prepared.plan(), &mut sink);
            (begun, rows, sent) = (sink.begun, sink.rows, sink.bytes_sent);
            outcome
        })?;
        self.status.add(StatusCounter::RowsSent, rows);
        self.status.add(StatusCounter::BytesSent, sent);
        Ok(if begun { Answer::Rows(outcome) } else { Answer::Done(outcome) })
    }
}
