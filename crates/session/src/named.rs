//! PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE PREPARE: statements that SQL prepares.

use crate::Session;
use crate::answer::Outlet;
use crate::bound::Bound;
use crate::planned::SessionPlan;
use crate::prepared::PreparedStatement;
use crate::session::Diagnostics;
use crate::statement::{Answer, Failure, Run};
use crate::statement_kind::keeps_warnings;
use std::sync::Arc;
use syntax::ast::{Expression, Statement};
use types::{SqlError, Value, codes};

impl Session {
    /// PREPARE, EXECUTE and EXECUTE IMMEDIATE of SQL.
    pub(crate) fn named_statement(
        &mut self,
        statement: &Statement,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        match statement {
            Statement::Prepare(prepare) => {
                let text = self.statement_source(&prepare.source)?;
                let server = self.server.clone();
                self.prepared.remove_named(&server, &prepare.name);
                let prepared = self.prepare_statement(&text)?;
                self.begin_diagnostics(&prepared.statement);
                self.prepared.insert_named(&server, &prepare.name, prepared)?;
                self.tell_state();
                let info = "Statement prepared".to_owned();
                Ok(Answer::Done(exec::Outcome { info, ..exec::Outcome::default() }))
            }
            Statement::Execute(execute) => {
                let Some(prepared) = self.prepared.get_named(&execute.name) else {
                    let arguments: [&dyn std::fmt::Display; 2] = [&execute.name, &"EXECUTE"];
                    return Err(SqlError::new(&codes::UNKNOWN_STMT_HANDLER, &arguments).into());
                };
                let (statement, plan) = (prepared.statement.clone(), prepared.plan.clone());
                let count = prepared.parameters;
                let (answer, made) =
                    self.execute_named(&statement, plan, count, &execute.arguments, outlet)?;
                if let (Some(plan), Some(prepared)) = (made, self.prepared.get_named(&execute.name))
                {
                    prepared.keep(plan);
                }
                Ok(answer)
            }
            Statement::ExecuteImmediate(execute) => {
                let text = self.statement_source(&execute.source)?;
                let PreparedStatement { statement, plan, parameters, .. } =
                    self.prepare_statement(&text)?;
                let arguments = &execute.arguments;
                let (answer, _) =
                    self.execute_named(&statement, plan, parameters, arguments, outlet)?;
                Ok(answer)
            }
            _ => Ok(Answer::ok()),
        }
    }

    /// A statement that reads or changes tables takes away the diagnostics of the one before.
    fn begin_diagnostics(&mut self, statement: &Statement) {
        if !keeps_warnings(statement) {
            self.diagnostics = Diagnostics::default();
        }
    }

    /// The text of PREPARE's string or variable.
    fn statement_source(&mut self, source: &Expression) -> Result<Vec<u8>, SqlError> {
        match self.constant(source)?.0 {
            Value::Bytes(text) => Ok(text),
            Value::Null => Ok(b"NULL".to_vec()),
            other => {
                let mut text = Vec::new();
                let column = types::ColumnType::NULL;
                let zone = self.settings.time_zone;
                wire::text::push_text(&mut text, other.as_ref(), &column, zone);
                Ok(text)
            }
        }
    }

    fn execute_named(
        &mut self,
        statement: &Statement,
        plan: Option<Arc<SessionPlan>>,
        count: usize,
        arguments: &[Expression],
        outlet: &mut dyn Outlet,
    ) -> Result<(Answer, Option<Arc<SessionPlan>>), Failure> {
        if arguments.len() != count {
            return Err(SqlError::new(&codes::WRONG_ARGUMENTS, &[&"EXECUTE"]).into());
        }
        let values = arguments.iter().map(|argument| self.constant(argument));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let (values, types): (Vec<_>, Vec<_>) = values.into_iter().unzip();
        self.begin_diagnostics(statement);
        let outer = std::mem::replace(&mut self.eval.parameters, values);
        let run = Run { plan: plan.as_ref(), bound: Bound::Types(&types), ..Run::text() };
        let mut made = None;
        let result = self.execute_statement(statement, run, outlet, &mut made);
        self.eval.parameters = outer;
        result.map(|answer| (answer, made))
    }

    /// DEALLOCATE PREPARE.
    pub(crate) fn deallocate(&mut self, name: &str) -> Result<Answer, Failure> {
        let server = self.server.clone();
        if self.prepared.remove_named(&server, name) {
            self.tell_state();
            return Ok(Answer::ok());
        }
        let arguments: [&dyn std::fmt::Display; 2] = [&name, &"DEALLOCATE PREPARE"];
        Err(SqlError::new(&codes::UNKNOWN_STMT_HANDLER, &arguments).into())
    }
}
