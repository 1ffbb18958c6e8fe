//! What INSERT, REPLACE and LOAD DATA tell.

use super::Inserter;
use crate::Outcome;
use crate::context::Exec;
use plan::physical::InsertRows;

impl Inserter<'_> {
    /// What an INSERT or REPLACE tells.
    pub(super) fn outcome(self, exec: &Exec<'_>) -> Outcome {
        let is_list = match &self.plan.source {
            InsertRows::Values(rows) => rows.len() > 1,
            InsertRows::Literals(_) | InsertRows::Query(_) => true,
            InsertRows::File(_) => return self.outcome_of_file(exec),
        };
        let duplicates = match self.plan.ignore && !self.plan.replace {
            true => self.records - self.inserted - self.replaced,
            false => self.replaced,
        };
        let (records, warnings) = (self.records, exec.eval.warning_count());
        let info = || format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warnings}");
        let assigned = exec.eval.assigned_insert_id.get();
        let explicit = self.generated.last;
        Outcome {
            affected_rows: self.affected,
            insert_id: self.generated.first.or(assigned).unwrap_or(explicit),
            last_insert_id: self.generated.first.or(assigned),
            info: if is_list { info() } else { String::new() },
            has_rows: !self.plan.returning.is_empty(),
            ..Outcome::default()
        }
    }

    fn outcome_of_file(self, exec: &Exec<'_>) -> Outcome {
        let (records, deleted) = (self.records, self.replaced);
        let (skipped, warnings) = (records - self.inserted, exec.eval.warning_count());
        Outcome {
            affected_rows: self.affected,
            last_insert_id: self.generated.first.or(exec.eval.assigned_insert_id.get()),
            info: format!(
                "Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}"
            ),
            ..Outcome::default()
        }
    }
}
