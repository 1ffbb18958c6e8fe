//! MariaDB's bulk execution: one prepared INSERT, UPDATE or DELETE for many sets of parameters.
//!
//! Invariants:
//! 1. All sets or none: an error undoes the whole command, as one INSERT of many rows.
//! 2. One answer: the rows of all executions together, the first insert id.
//! 3. DEFAULT and IGNORE stand for a whole value that is stored, nowhere else (4032).

use crate::Session;
use crate::answer::{Outlet, Protocol};
use crate::planned::SessionPlan;
use crate::prepared::{PreparedStatement, unknown_handler};
use crate::statement::{Answer, Failure, Run};
use crate::status::StatusCounter;
use exec::Outcome;
use std::sync::Arc;
use syntax::ast::{Assignment, Begin, Expression, InsertSource, Statement};
use types::{SqlError, Value, codes};
use wire::bulk::{BulkParameters, Indicator};
use wire::capability::STMT_BULK_OPERATIONS;

/// How one set of parameters is run.
fn run_of(plan: Option<&Arc<SessionPlan>>) -> Run<'_> {
    Run { protocol: Protocol::Binary, plan, definitions_known: true, ..Run::text() }
}

/// The statement with DEFAULT or nothing in place of some parameters.
struct WithDefaults {
    /// What each parameter is; values are all the same.
    kinds: Vec<Kind>,
    statement: Statement,
    plan: Option<Arc<SessionPlan>>,
}

/// What all executions did.
#[derive(Default)]
struct Total {
    affected: u64,
    insert_id: u64,
    last_insert_id: Option<u64>,
    matched: u64,
    sets: u64,
}

/// `Rows matched: n` of an UPDATE's information.
fn matched_of(info: &str) -> u64 {
    let rest = info.strip_prefix("Rows matched: ").unwrap_or_default();
    rest.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What a set has for a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    Default,
    Ignore,
}

impl Kind {
    fn of(indicator: &Indicator) -> Self {
        match indicator {
            Indicator::Value(_) => Self::Value,
            Indicator::Default => Self::Default,
            Indicator::Ignore => Self::Ignore,
        }
    }
}

/// Puts DEFAULT in the place of parameters, or the column as it is for those to be ignored; none
/// if one of them is in another place than that of a whole value.
fn with_defaults(statement: &Statement, kinds: &[Kind]) -> Option<Statement> {
    let mut changed = statement.clone();
    let mut replaced = 0;
    let mut kind_of = |value: &Expression| match value {
        Expression::Parameter(number) => {
            let kind = kinds.get(*number as usize).copied().unwrap_or(Kind::Value);
            replaced += usize::from(kind != Kind::Value);
            kind
        }
        _ => Kind::Value,
    };
    let mut assign = |assignments: &mut [Assignment]| {
        for assignment in assignments {
            match kind_of(&assignment.value) {
                Kind::Value => {}
                Kind::Default => assignment.value = Expression::Default(None),
                Kind::Ignore => assignment.value = Expression::Column(assignment.column.clone()),
            }
        }
    };
    match &mut changed {
        Statement::Insert(insert) => {
            assign(&mut insert.on_duplicate);
            if let InsertSource::Values(rows) = &mut insert.source {
                for value in rows.iter_mut().flatten() {
                    if kind_of(value) != Kind::Value {
                        *value = Expression::Default(None);
                    }
                }
            }
        }
        Statement::Update(update) => assign(&mut update.assignments),
        _ => {}
    }
    let wanted = kinds.iter().filter(|kind| **kind != Kind::Value).count();
    (replaced == wanted).then_some(changed)
}

impl Total {
    fn add(&mut self, outcome: &Outcome) {
        self.affected += outcome.affected_rows;
        self.matched += matched_of(&outcome.info);
        self.sets += 1;
        if self.insert_id == 0 {
            self.insert_id = outcome.insert_id;
            self.last_insert_id = outcome.last_insert_id;
        }
    }

    fn outcome(&self, statement: &Statement, warnings: u64) -> Outcome {
        let (affected, sets) = (self.affected, self.sets);
        let info = match statement {
            Statement::Insert(_) => {
                let duplicates = affected.saturating_sub(sets);
                format!("Records: {sets}  Duplicates: {duplicates}  Warnings: {warnings}")
            }
            Statement::Update(_) => {
                format!("Rows matched: {}  Changed: {affected}  Warnings: {warnings}", self.matched)
            }
            _ => String::new(),
        };
        Outcome {
            affected_rows: affected,
            insert_id: self.insert_id,
            last_insert_id: self.last_insert_id,
            info,
            ..Outcome::default()
        }
    }
}

impl Session {
    /// COM_STMT_BULK_EXECUTE.
    pub(crate) fn bulk_command(
        &mut self,
        id: u32,
        flags: u16,
        parameters: &[u8],
        outlet: &mut dyn Outlet,
    ) {
        self.status.add(StatusCounter::Questions, 1);
        self.status.add(StatusCounter::ComStmtExecute, 1);
        let Some(mut prepared) = self.prepared.take(id) else {
            let error = unknown_handler(id, "mysqld_stmt_bulk_execute");
            return self.put_error(&error);
        };
        let text = prepared.text.clone();
        self.running("Execute", &text, |session| {
            let result = session.execute_bulk(&mut prepared, flags, parameters, outlet);
            session.eval.parameters.clear();
            match result {
                Ok(outcome) => {
                    session.eval.facts.row_count = outcome.affected_rows as i64;
                    if let Some(id) = outcome.last_insert_id {
                        session.eval.facts.last_insert_id = id;
                    }
                    session.keep_diagnostics();
                    session.put_ok(&outcome);
                }
                Err(error) => {
                    session.eval.facts.row_count = -1;
                    session.put_error(&error);
                }
            }
        });
        self.prepared.put_back(id, prepared);
    }

    fn execute_bulk(
        &mut self,
        prepared: &mut PreparedStatement,
        flags: u16,
        payload: &[u8],
        outlet: &mut dyn Outlet,
    ) -> Result<Outcome, SqlError> {
        self.eval.begin_statement(self.statement_time());
        let returns_rows = |statement: &Statement| match statement {
            Statement::Insert(insert) => !insert.returning.is_empty(),
            Statement::Update(_) => false,
            Statement::Delete(delete) => !delete.returning.is_empty(),
            _ => true,
        };
        let is_offered = self.capabilities & STMT_BULK_OPERATIONS != 0;
        if !is_offered || prepared.parameters == 0 || returns_rows(&prepared.statement) {
            return Err(SqlError::new(&codes::UNSUPPORTED_PS, &[]));
        }
        let malformed = |_| SqlError::new(&crate::dispatch::MALFORMED_PACKET, &[]);
        let count = prepared.parameters;
        let sets = BulkParameters::begin(payload, flags, count, &mut prepared.types);
        let mut sets = sets.map_err(malformed)?;
        let passing = self.settings.autocommit && !self.transaction.is_explicit();
        if passing {
            self.begin(&Begin { consistent_snapshot: false, read_only: None })?;
        }
        self.ensure_transaction()?;
        let savepoint = self.transaction.engine().map(|open| open.savepoint());
        let mut total = Total::default();
        let mut defaults = None;
        let result = loop {
            match sets.next_set().map_err(malformed) {
                Ok(Some(set)) => match self.execute_set(prepared, set, &mut defaults, outlet) {
                    Ok(outcome) => total.add(&outcome),
                    Err(failure) => break Err(failure),
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            }
        };
        if let Err(failure) = result {
            if failure.transaction_ended {
                self.transaction_ended();
            } else if passing {
                self.rollback()?;
            } else if let (Some(open), Some(savepoint)) = (self.transaction.engine(), savepoint) {
                let undone = open.rollback_to(savepoint);
                undone.map_err(|error| catalog::engine_error(&error, ""))?;
            }
            return Err(failure.sql);
        }
        match passing {
            true => self.commit()?,
            false => self.wait_read_durable()?,
        }
        Ok(total.outcome(&prepared.statement, self.eval.warning_count()))
    }

    fn execute_set(
        &mut self,
        prepared: &mut PreparedStatement,
        set: Vec<Indicator>,
        defaults: &mut Option<WithDefaults>,
        outlet: &mut dyn Outlet,
    ) -> Result<Outcome, Failure> {
        let is_value = |indicator: &Indicator| matches!(indicator, Indicator::Value(_));
        let kinds: Option<Vec<Kind>> =
            (!set.iter().all(is_value)).then(|| set.iter().map(Kind::of).collect());
        self.eval.parameters.clear();
        self.eval.parameters.extend(set.into_iter().map(|indicator| match indicator {
            Indicator::Value(value) => value,
            Indicator::Default | Indicator::Ignore => Value::Null,
        }));
        let mut made = None;
        let answer = if let Some(kinds) = kinds {
            if defaults.as_ref().is_none_or(|known| known.kinds != kinds) {
                let lacking = || SqlError::new(&codes::INVALID_DEFAULT_PARAM, &[]);
                let statement = with_defaults(&prepared.statement, &kinds).ok_or_else(lacking)?;
                *defaults = Some(WithDefaults { kinds, statement, plan: None });
            }
            let Some(WithDefaults { statement, plan, .. }) = defaults else {
                return Err(SqlError::new(&codes::UNKNOWN_ERROR, &[]).into());
            };
            let run = run_of(plan.as_ref());
            let answer = self.execute_statement(statement, run, outlet, &mut made)?;
            *plan = made.or(plan.take());
            answer
        } else {
            let plan = prepared.plan.clone();
            let run = run_of(plan.as_ref());
            let answer = self.execute_statement(&prepared.statement, run, outlet, &mut made)?;
            made.into_iter().for_each(|plan| prepared.keep(plan));
            answer
        };
        match answer {
            Answer::Done(outcome) | Answer::Rows(outcome) => Ok(outcome),
        }
    }
}
