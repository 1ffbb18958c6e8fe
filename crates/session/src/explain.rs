//! EXPLAIN and ANALYZE of statements.

use crate::Session;
use crate::answer::{Outlet, Protocol};
use crate::into::{into_of, without_into};
use crate::planned::SessionPlan;
use crate::statement::{Answer, Failure};
use catalog::Privilege;
use std::sync::Arc;
use syntax::ast::{self, Statement};
use types::error::ErrorCode;
use types::{SqlError, codes};

/// 1345.
static VIEW_NO_EXPLAIN: ErrorCode = ErrorCode {
    number: 1345,
    sqlstate: "HY000",
    name: "VIEW_NO_EXPLAIN",
    template: "ANALYZE/EXPLAIN/SHOW can not be issued; lacking privileges for underlying table",
};

impl Session {
    /// Who is shown how a view is read needs SHOW VIEW on it and SELECT on its tables (1345).
    fn check_may_explain(&self, plan: &SessionPlan) -> Result<(), SqlError> {
        let tables = plan.prepared.tables();
        let may = |entry: &catalog::TableEntry, privilege| {
            let definition = entry.definition();
            entry.is_temporary() || self.user.may(privilege, &definition.schema, &definition.name)
        };
        let has_views = tables.iter().any(|entry| entry.view().is_some());
        let allowed = |entry: &Arc<catalog::TableEntry>| {
            may(entry, Privilege::Select)
                && (entry.view().is_none() || may(entry, Privilege::ShowView))
        };
        if !has_views || tables.iter().all(allowed) {
            return Ok(());
        }
        Err(SqlError::new(&VIEW_NO_EXPLAIN, &[]))
    }

    /// EXPLAIN.
    pub(crate) fn explain(
        &mut self,
        explain: &ast::Explain,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let unsupported = |what: &str| SqlError::new(&codes::NOT_SUPPORTED_YET, &[&what]);
        let is_json = match explain.format.as_deref() {
            None | Some("TRADITIONAL") => false,
            Some("JSON") => true,
            Some(other) => {
                return Err(SqlError::new(&codes::UNKNOWN_EXPLAIN_FORMAT, &[&other]).into());
            }
        };
        let Some(statement) = &explain.statement else {
            return Err(unsupported("EXPLAIN FOR CONNECTION").into());
        };
        // The rows would go somewhere: nowhere here.
        let without_target = match statement {
            Statement::Query(query) if into_of(statement).is_some() => {
                Some(Statement::Query(Box::new(without_into(query))))
            }
            _ => None,
        };
        let statement = without_target.as_ref().unwrap_or(statement);
        if explain.analyze && !matches!(statement, Statement::Query(_)) {
            self.check_may_write()?;
            self.begin_write(Some(statement))?;
        }
        let plan = self.plan(statement)?;
        self.check_may_explain(&plan)?;
        let mut profile = plan::Profile::default();
        if explain.analyze {
            let begun = runtime::now();
            let format = self.result_format(protocol, false);
            self.execute_plan(&plan, format, outlet, Some(&mut profile))?;
            profile.total_us = begun.elapsed().as_micros() as u64;
        }
        let profile = explain.analyze.then_some(&profile);
        if is_json {
            let text = plan::explain_json(&plan.prepared, profile);
            let name = if explain.analyze { "ANALYZE" } else { "EXPLAIN" };
            let (columns, rows) = plan::json_answer(name, text);
            return self.send_rows(&columns, rows, protocol, outlet);
        }
        let options = plan::ExplainOptions {
            extended: explain.extended,
            partitions: explain.partitions,
            profile,
        };
        let (columns, rows) = plan::explain(&plan.prepared, options)?;
        self.send_rows(&columns, rows, protocol, outlet)
    }
}
