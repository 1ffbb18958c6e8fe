//! Where the session meets the planner: plans, constants, definitions.

use crate::Session;
use crate::answer::ResultShape;
use crate::bound::{Bound, ParameterKind};
use crate::statement::{Answer, Failure};
use crate::system_variables::session_view;
use catalog::{EstimateAge, TableEntry, UserPrivileges};
use engine_api::{FlushPolicy, Isolation, Transaction, TransactionOptions};
use expr::{Coercibility, Columns, Expr, NoColumns, ResultType};
use plan::physical::ResultColumn;
use plan::{PlanContext, Prepared};
use std::sync::Arc;
use std::time::Duration;
use syntax::ast::{self, Expression, Literal, Statement, UnaryOperator};
use types::{CollationId, SqlError, Value};

/// Borrows of a session what the planner needs.
macro_rules! plan_context {
    ($session:ident, $server:expr, $view:ident, $context:ident, $parameters:expr) => {
        plan_context!($session, $server, $view, $context, $parameters, &[]);
    };
    ($session:ident, $server:expr, $view:ident, $context:ident, $parameters:expr, $values:expr) => {
        let $view = session_view!($session, $server);
        let database = $session.eval.facts.database.clone();
        let mut $context = PlanContext {
            catalog: &$server.catalog,
            locks: &mut $session.locks,
            user: &$session.user,
            temporary: $session.temporary.as_deref(),
            database: database.as_deref(),
            eval: &$session.eval,
            variables: &$view,
            parameters: $parameters,
            stat_tables: $session.settings.stat_tables,
            values: $values,
            locked: $session.locked_tables.as_deref(),
        };
    };
}

/// A plan with what it was made for.
pub(crate) struct SessionPlan {
    pub(crate) prepared: Prepared,
    /// How its result looks.
    pub(crate) shape: ResultShape,
    /// How old the estimates of its tables were.
    ages: Vec<EstimateAge>,
    /// Kinds of the parameters.
    parameters: Vec<ParameterKind>,
    database: Option<String>,
    conditions: PlanConditions,
    /// Whose privileges were checked when it was made.
    user: Arc<UserPrivileges>,
}

impl SessionPlan {
    /// Made for the same account, settings, parameters and tables as another.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let (tables, others) = (self.prepared.tables(), other.prepared.tables());
        Arc::ptr_eq(&self.user, &other.user)
            && self.database == other.database
            && self.conditions == other.conditions
            && self.parameters == other.parameters
            && self.prepared.is_for_values_of(&other.prepared)
            && tables.len() == others.len()
            && tables.iter().zip(others).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// Made before the types of parameters were known.
    pub(crate) fn is_for_prepare(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Its tables and their estimates are what they were.
    pub(crate) fn is_current(&self) -> bool {
        let mut tables = self.prepared.tables().iter().zip(&self.ages);
        tables.all(|(entry, age)| entry.is_current() && entry.is_of_age(age))
    }
}

/// Settings that a plan is made for.
#[derive(Clone, PartialEq)]
pub(crate) struct PlanConditions {
    expressions: expr::Settings,
    results: Option<CollationId>,
    stat_tables: plan::StatTables,
}

impl Session {
    /// A transaction for a statement that reads no table; nothing remains of it.
    pub(crate) fn passing_transaction(&mut self) -> Box<dyn Transaction> {
        self.begin_engine(TransactionOptions {
            isolation: Isolation::ReadCommitted,
            snapshot_isolation: false,
            read_only: true,
            lock_wait_timeout: Duration::ZERO,
            flush_policy: FlushPolicy::Synchronous,
            connection: self.process.id(),
            ends_with_statement: false,
        })
    }

    /// Plans a statement now, for the parameters that are bound.
    pub(crate) fn plan(&mut self, statement: &Statement) -> Result<Arc<SessionPlan>, SqlError> {
        let collation = self.settings.connection;
        let kinds = self.eval.parameters.iter().map(ParameterKind::of);
        let types = kinds.map(|kind| kind.result_type(collation)).collect();
        self.plan_with(statement, types, &[])
    }

    /// The same for the values of the parameters, which the client bound with these types, where
    /// what it says of its columns depends on them.
    pub(crate) fn plan_for_values(
        &mut self,
        statement: &Statement,
        known: Option<&SessionPlan>,
        bound: Bound<'_>,
    ) -> Result<Arc<SessionPlan>, SqlError> {
        let by_values = |plan: &SessionPlan| plan.prepared.is_described_by_values();
        if !known.is_some_and(by_values) || self.eval.parameters.is_empty() {
            return self.plan(statement);
        }
        let (values, types) = bound.typed(&self.eval.parameters, self.settings.connection);
        self.plan_with(statement, types, &values)
    }

    fn plan_with(
        &mut self,
        statement: &Statement,
        types: Vec<ResultType>,
        values: &[Value],
    ) -> Result<Arc<SessionPlan>, SqlError> {
        let server = self.server.clone();
        plan_context!(self, &server, view, context, &types, values);
        let parameters = self.eval.parameters.iter().map(ParameterKind::of).collect();
        let prepared = plan::prepare(statement, &mut context)?;
        Ok(Arc::new(SessionPlan {
            shape: ResultShape::of_plan(prepared.plan(), prepared.columns(), self.settings.results),
            ages: prepared.tables().iter().map(|entry| entry.estimate_age()).collect(),
            prepared,
            parameters,
            database: self.eval.facts.database.clone(),
            conditions: PlanConditions {
                expressions: self.eval.settings.clone(),
                results: self.settings.results,
                stat_tables: self.settings.stat_tables,
            },
            user: self.user.clone(),
        }))
    }

    /// Plans the query of a view that is being defined.
    pub(crate) fn define_view(
        &mut self,
        create: &ast::CreateView,
        name: (&str, &str),
        how: (catalog::ViewAlgorithm, catalog::CheckOption),
    ) -> Result<plan::DefinedView, SqlError> {
        let server = self.server.clone();
        plan_context!(self, &server, view, context, &[]);
        plan::define_view(create, name, how, &mut context)
    }

    /// The columns of a view as they are now (1356).
    pub(crate) fn view_columns(
        &mut self,
        entry: &Arc<TableEntry>,
    ) -> Result<Vec<plan::physical::ResultColumn>, SqlError> {
        let server = self.server.clone();
        let held = self.locks.len();
        let columns = {
            plan_context!(self, &server, view, context, &[]);
            plan::view_columns(entry, &mut context)
        };
        self.locks.release_after(held);
        columns
    }

    /// Whether the settings are those that a plan was made for.
    fn fulfills(&self, conditions: &PlanConditions) -> bool {
        conditions.expressions == self.eval.settings
            && conditions.results == self.settings.results
            && conditions.stat_tables == self.settings.stat_tables
    }

    /// Whether the values bound to parameters are of these kinds.
    fn has_parameters_of(&self, kinds: &[ParameterKind]) -> bool {
        let values = &self.eval.parameters;
        values.len() == kinds.len()
            && values.iter().zip(kinds).all(|(value, kind)| ParameterKind::of(value) == *kind)
    }

    /// Locks the tables of a plan against changes of their definition, and against those who keep
    /// writers out if it changes rows.
    pub(crate) fn lock_for(&mut self, plan: &SessionPlan) -> Result<(), SqlError> {
        let kind = match plan.prepared.is_change() {
            true => catalog::LockKind::Write,
            false => catalog::LockKind::Shared,
        };
        for entry in plan.prepared.tables() {
            self.locks.acquire(entry.lock(), kind)?;
        }
        Ok(())
    }

    /// Whether a plan may be run now: nothing that it is built on has changed. Its tables are
    /// locked against changes of their definition.
    pub(crate) fn may_run(&mut self, plan: &SessionPlan) -> Result<bool, SqlError> {
        let tables = plan.prepared.tables();
        if self.locked_tables.is_some() {
            return Ok(false);
        }
        self.lock_for(plan)?;
        if let Some(temporary) = &self.temporary
            && temporary.hides(tables)
        {
            return Ok(false);
        }
        let allowed = Arc::ptr_eq(&plan.user, &self.user) || self.may_change_all_rows();
        Ok(allowed
            && plan.prepared.is_reusable()
            && plan.is_current()
            && plan.database.as_deref() == self.database()
            && self.fulfills(&plan.conditions)
            && self.has_parameters_of(&plan.parameters)
            && plan.prepared.fits_values(&self.eval.parameters))
    }

    /// The plan of a statement that is being prepared; none for statements without one.
    pub(crate) fn plan_for_prepare(
        &mut self,
        statement: &Statement,
        known: Option<Arc<SessionPlan>>,
    ) -> Result<Option<Arc<SessionPlan>>, SqlError> {
        let result = match statement {
            statement if crate::into::into_of(statement).is_some() => Ok(None),
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_) => match known.map(|plan| (self.may_run(&plan), plan)) {
                Some((Ok(true), plan)) => Ok(Some(plan)),
                Some((Err(error), _)) => Err(error),
                Some((Ok(false), _)) | None => self.plan(statement).map(Some),
            },
            _ => Ok(None),
        };
        if !self.transaction.is_open() {
            self.locks.release_all();
        }
        result
    }

    /// The value of an expression without tables.
    pub(crate) fn constant(
        &mut self,
        expression: &Expression,
    ) -> Result<(Value, ResultType), SqlError> {
        if let Some(constant) = self.literal(expression) {
            return Ok(constant);
        }
        let server = self.server.clone();
        plan_context!(self, &server, view, context, &[]);
        let bound = plan::constant(expression, &mut context)?;
        let value = bound.eval(&self.eval, &NoColumns)?.to_owned();
        Ok((value, bound.result))
    }

    /// A query for the value of an expression with subqueries.
    pub(crate) fn plan_value(&mut self, expression: &Expression) -> Result<Prepared, SqlError> {
        let server = self.server.clone();
        plan_context!(self, &server, view, context, &[]);
        plan::select_values(std::slice::from_ref(expression), &mut context)
    }

    /// Plain literals, as most SET statements have them; saves binding an expression.
    fn literal(&self, expression: &Expression) -> Option<(Value, ResultType)> {
        match expression {
            Expression::Literal(Literal::Null) => Some((Value::Null, ResultType::null())),
            Expression::Literal(Literal::String { bytes, charset: None }) => {
                let collation = self.settings.connection;
                let characters = collation.charset().character_count(bytes) as u64;
                let coercibility = Coercibility::Coercible;
                let ascii = bytes.is_ascii();
                let result = ResultType::string(characters, collation, coercibility, ascii, false);
                Some((Value::Bytes(bytes.clone()), result))
            }
            other => {
                let number = literal_number(other)?;
                let length = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 1;
                let length = length + u32::from(number < 0);
                let result = ResultType::integer_of_length(length, false, false);
                Some((Value::Int(number), result))
            }
        }
    }

    /// A condition over the columns of a SHOW.
    pub(crate) fn bind_filter(
        &mut self,
        filter: &Expression,
        columns: &[ResultColumn],
    ) -> Result<Expr, SqlError> {
        let server = self.server.clone();
        plan_context!(self, &server, view, context, &[]);
        plan::filter(filter, columns, &mut context)
    }

    /// Whether a row passes a bound condition.
    pub(crate) fn passes(&self, filter: &Expr, row: &dyn Columns) -> Result<bool, SqlError> {
        filter.eval_bool(&self.eval, row).map(|passes| passes == Some(true))
    }

    /// CREATE, ALTER, DROP, RENAME and TRUNCATE: the transaction before is committed, but for
    /// CREATE and DROP TEMPORARY TABLE.
    pub(crate) fn define(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        self.check_definition_privileges(statement)?;
        self.check_locked_definition(statement)?;
        let is_temporary = match statement {
            Statement::CreateTable(create) => create.temporary,
            Statement::DropTable(drop) => drop.temporary,
            _ => false,
        };
        if !is_temporary {
            // It ends a read only transaction, so only the session's own choice refuses it.
            self.commit_implicitly()?;
        }
        self.check_may_write()?;
        self.begin_write(Some(statement))?;
        let changes_temporary =
            matches!(statement, Statement::AlterTable(_)) && self.changes_only_temporary(statement);
        let query = self.plan_of_create(statement)?;
        if is_temporary && query.is_some() {
            self.ensure_transaction()?;
        }
        let server = self.server.clone();
        let database = self.eval.facts.database.clone();
        let mut temporary = self.temporary.take().unwrap_or_default();
        let tables = session_view!(self, &server);
        let query = query.as_deref().map(|plan| exec::ddl::CreateQuery {
            plan: &plan.prepared,
            spill: &self.spill,
            user: &self.user,
            session: &tables,
            recursion_limit: self.settings.recursion_limit,
        });
        let mut context = exec::ddl::DdlContext {
            catalog: &server.catalog,
            locks: &mut self.locks,
            eval: &mut self.eval,
            schema: database.as_deref(),
            memory: &self.memory,
            cancel: self.process.cancel_token(),
            temporary: &mut temporary,
            transaction: self.transaction.engine(),
            query,
        };
        let outcome = exec::ddl::execute(&mut context, statement);
        if !temporary.is_unused() {
            self.temporary = Some(temporary);
        }
        if !is_temporary {
            self.locks.release_all();
        }
        self.memory.release_all();
        let outcome = outcome?.unwrap_or_default();
        if is_temporary || changes_temporary {
            self.tell_state();
        }
        if let Statement::DropDatabase(_) = statement {
            self.passing_status |= wire::capability::status::DB_DROPPED;
        }
        self.forget_dropped(statement);
        if let (Statement::DropDatabase(drop), Some(current)) = (statement, self.database())
            && drop.name == current
        {
            self.set_database(None);
        }
        Ok(Answer::Done(outcome))
    }

    /// The plan of the SELECT of CREATE TABLE.
    fn plan_of_create(
        &mut self,
        statement: &Statement,
    ) -> Result<Option<Arc<SessionPlan>>, SqlError> {
        let Statement::CreateTable(create) = statement else { return Ok(None) };
        let Some(written) = &create.query else { return Ok(None) };
        self.plan(&Statement::Query(written.query.clone())).map(Some)
    }
}

/// A plain integer, perhaps with a minus.
fn literal_number(expression: &Expression) -> Option<i64> {
    match expression {
        Expression::Literal(Literal::Integer(number)) => i64::try_from(*number).ok(),
        Expression::Unary(UnaryOperator::Minus, operand) => {
            literal_number(operand).and_then(i64::checked_neg)
        }
        _ => None,
    }
}
