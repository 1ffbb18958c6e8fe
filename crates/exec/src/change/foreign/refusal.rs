//! The errors of foreign keys, with the constraint as MariaDB words it.

use super::ForeignChecks;
use crate::ExecError;
use crate::context::Exec;
use engine_api::{DuplicateKey, RowBuffer};
use plan::physical::{ChildLink, ParentLink};
use types::row::RowView;
use types::{SqlError, codes};

impl ForeignChecks<'_> {
    pub(super) fn no_parent(&self, table: usize, link: &ParentLink) -> SqlError {
        let child = self.entry(table).definition();
        let text = catalog::constraint_in_table(child, &child.foreign_keys[link.key], false);
        SqlError::new(&codes::NO_REFERENCED_ROW_2, &[&text])
    }

    fn child_text(&self, link: &ChildLink) -> String {
        let child = self.entry(link.table).definition();
        catalog::constraint_in_table(child, &child.foreign_keys[link.key], false)
    }

    pub(super) fn has_child(&self, link: &ChildLink) -> SqlError {
        SqlError::new(&codes::ROW_IS_REFERENCED_2, &[&self.child_text(link)])
    }

    pub(super) fn too_deep(&self, link: &ChildLink) -> SqlError {
        let text = self.child_text(link);
        let message = format!("Got error 193 '{text}' from InnoDB");
        SqlError::with_message(&codes::GET_ERRMSG, message)
    }

    pub(super) fn duplicate_child(
        &self,
        exec: &Exec<'_>,
        (table, link): (usize, &ChildLink),
        new: Option<&RowBuffer>,
        duplicate: &DuplicateKey,
    ) -> SqlError {
        let (parent, child) = (self.entry(table), self.entry(link.table));
        let layout = &parent.layouts().row;
        let mut record = Vec::new();
        if let Some(new) = new {
            let view = RowView::new(layout, &new.key, &new.payload);
            for (number, at) in link.parent_columns.iter().enumerate() {
                if number > 0 {
                    record.push(b'-');
                }
                let column_type = &parent.definition().columns[*at].column_type;
                let zone = exec.eval.settings.time_zone;
                types::text::write_text(view.get(*at), column_type, zone, &mut record);
            }
        }
        let record = String::from_utf8_lossy(&record);
        let index = &child.definition().indexes[duplicate.index].name;
        let arguments: [&dyn std::fmt::Display; 4] =
            [&parent.definition().name, &record, &child.definition().name, index];
        SqlError::new(&codes::FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO, &arguments)
    }
}

/// Whether an error is a foreign key's, which IGNORE leaves the row out for.
pub(super) fn is_foreign(error: &ExecError) -> bool {
    let foreign = [
        &codes::NO_REFERENCED_ROW_2,
        &codes::ROW_IS_REFERENCED_2,
        &codes::FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO,
    ];
    foreign.into_iter().any(|code| error.sql.is(code))
}
