//! SELECT ... INTO: the one row of a query goes into user variables (files: `outfile.rs`).

use crate::Session;
use crate::execute::Extras;
use crate::statement::{Answer, Failure};
use engine_api::ReadGate;
use exec::{Outcome, RowSink};
use expr::ResultType;
use std::sync::Arc;
use syntax::ast::{Expression, Into, IntoVariable, Query, QueryBody, Statement};
use types::{Level, SqlError, Value, ValueRef, Warning, codes};

/// The INTO of a query, wherever it stands.
pub(crate) fn into_of(statement: &Statement) -> Option<&Into> {
    let Statement::Query(query) = statement else { return None };
    let inner = match &query.body {
        QueryBody::Select(select) => &select.into,
        QueryBody::Set { rest, .. } => match &rest.last()?.body {
            QueryBody::Select(select) => &select.into,
            _ => &None,
        },
        _ => &None,
    };
    query.into.as_ref().or(inner.as_ref())
}

/// The query without its INTO.
pub(crate) fn without_into(query: &Query) -> Query {
    let mut query = query.clone();
    query.into = None;
    let last = match &mut query.body {
        QueryBody::Set { rest, .. } => rest.last_mut().map(|member| &mut member.body),
        body => Some(body),
    };
    if let Some(QueryBody::Select(select)) = last {
        select.into = None;
    }
    query
}

/// INTO stands behind the query, where it should not.
fn stands_last(query: &Query) -> bool {
    query.into.is_some() || matches!(query.body, QueryBody::Set { .. })
}

/// Keeps one row; a second one is an error.
#[derive(Default)]
struct OneRow {
    row: Option<Vec<Value>>,
}

impl RowSink for OneRow {
    fn begin(&mut self, _: Option<Arc<dyn ReadGate>>) -> Result<(), SqlError> {
        Ok(())
    }

    fn row(&mut self, values: &[ValueRef<'_>]) -> Result<(), SqlError> {
        if self.row.is_some() {
            return Err(SqlError::new(&codes::TOO_MANY_ROWS, &[]));
        }
        self.row = Some(values.iter().map(|&value| ValueRef::to_owned(value)).collect());
        Ok(())
    }
}

/// Error 1327: there are no programs, so no local variables either.
fn undeclared(name: &str) -> SqlError {
    let text = format!("Undeclared variable: {name}");
    SqlError { code: 1327, sqlstate: *b"42000", message: text }
}

impl Session {
    /// Runs a query whose result goes elsewhere. Fails with 1172, 1222, 1290 and 1327.
    pub(crate) fn select_into(&mut self, query: &Query, into: &Into) -> Result<Answer, Failure> {
        if stands_last(query) {
            let written = "<select expression> INTO <destination>;";
            let better = "'SELECT <select list> INTO <destination> FROM...'";
            let arguments: [&dyn std::fmt::Display; 2] = [&written, &better];
            let warning = SqlError::new(&codes::WARN_DEPRECATED_SYNTAX, &arguments);
            self.eval.push_warning(Warning { level: Level::Warning, ..Warning::from(&warning) });
        }
        let statement = Statement::Query(Box::new(without_into(query)));
        let variables = match into {
            Into::Variables(variables) => variables,
            Into::Outfile { path, format } => {
                return self.select_into_file(&statement, path, Some(format));
            }
            Into::Dumpfile(path) => return self.select_into_file(&statement, path, None),
        };
        let mut names = Vec::with_capacity(variables.len());
        for variable in variables {
            match variable {
                IntoVariable::User(name) => names.push(name.to_lowercase()),
                IntoVariable::Local(name) => {
                    return Err(undeclared(name).into());
                }
            }
        }
        let plan = self.plan(&statement)?;
        if plan.prepared.columns().len() != names.len() {
            return Err(SqlError::new(&codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]).into());
        }
        let mut sink = OneRow::default();
        let prepared = &plan.prepared;
        let outcome = self.with_exec(prepared, Extras::default(), |exec, _| {
            exec::execute(exec, prepared.plan(), &mut sink)
        });
        if let Some(row) = sink.row {
            let zone = self.eval.settings.time_zone;
            let variables = self.eval.variables.get_mut();
            for ((name, value), column) in names.into_iter().zip(row).zip(plan.prepared.columns()) {
                let variable = expr::variable_of(value.as_ref(), &column.result, zone);
                variables.insert(name, variable);
            }
        } else if outcome.is_ok() {
            self.eval.warn(&codes::SP_FETCH_NO_DATA, &[])?;
        }
        let outcome = outcome?;
        Ok(Answer::Done(Outcome { has_rows: false, ..outcome }))
    }

    /// DO: a value that there is not is no error, though told as one.
    pub(crate) fn do_value(&mut self, expression: &Expression) -> Result<(), SqlError> {
        let done = match self.constant(expression) {
            Err(error) if error.is(&codes::NOT_SUPPORTED_YET) => self.selected(expression),
            done => done,
        };
        match done {
            Err(error)
                if error.is(&codes::SUBQUERY_NO_1_ROW) || error.is(&codes::DATA_OUT_OF_RANGE) =>
            {
                self.eval.push_warning(Warning { level: Level::Error, ..Warning::from(&error) });
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// The value of an expression with subqueries.
    pub(crate) fn selected(
        &mut self,
        expression: &Expression,
    ) -> Result<(Value, ResultType), SqlError> {
        let prepared = self.plan_value(expression)?;
        // Statements that read tables do not leave the warnings of the one before.
        self.keep_diagnostics();
        let mut sink = OneRow::default();
        let outcome = self.with_exec(&prepared, Extras::default(), |exec, _| {
            exec::execute(exec, prepared.plan(), &mut sink)
        });
        outcome.map_err(|failure| failure.sql)?;
        let value = sink.row.and_then(|row| row.into_iter().next()).unwrap_or(Value::Null);
        let result = prepared.columns().first().map_or_else(ResultType::null, |it| it.result);
        Ok((value, result))
    }
}
