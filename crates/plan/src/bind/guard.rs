//! Privileges on columns.
//!
//! 1. A table is opened by a privilege on it or on any of its columns. Who holds SELECT on all of
//!    it is asked nothing more; else the table carries a [`Guard`], and each column that a name
//!    or `*` finds is asked for (1143, for `*` 1142).
//! 2. A column that is written needs INSERT or UPDATE on the table or on it.
//! 3. All of this happens while a statement is planned: a plan is made for the privileges of its
//!    user, and made again when they change.

use super::*;
use catalog::{Privilege, PrivilegeSet};

/// A table whose columns are not all readable.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Its database.
    pub schema: String,
    /// Its name.
    pub table: String,
}

/// Database and name of what a column is written to.
type FullName<'n> = (&'n str, &'n str);

impl Binder<'_, '_, '_> {
    /// Holds the privilege on the table or on some of its columns.
    pub(super) fn may_open(&self, privilege: Privilege, schema: &str, table: &str) -> bool {
        let user = self.context.user;
        user.may(privilege, schema, table)
            || user.may_some_column(privilege, schema, table)
            || (self.reads_targets
                && privilege == Privilege::Select
                && (user.may(Privilege::Update, schema, table)
                    || user.may_some_column(Privilege::Update, schema, table)))
    }

    /// What asks for the columns of a table when they are read; none for who may read them all.
    pub(super) fn guard_of(&self, schema: &str, table: &str) -> Option<Arc<Guard>> {
        if self.context.user.may(Privilege::Select, schema, table) {
            return None;
        }
        Some(Arc::new(Guard { schema: schema.to_owned(), table: table.to_owned() }))
    }

    /// Fails with 1143 unless the column of a table of the block may be read.
    pub(super) fn check_readable(&self, table: &NamedTable, offset: usize) -> Result<()> {
        let Some(guard) = table.guard.as_ref().filter(|_| !self.assigns) else { return Ok(()) };
        self.check_column(Privilege::Select, (&guard.schema, &guard.table), table.name(offset))
    }

    /// Fails with 1142 unless every column of the tables may be read, for `*`.
    pub(super) fn check_all_readable(&self, tables: std::ops::Range<usize>) -> Result<()> {
        let Some(block) = self.blocks.last() else { return Ok(()) };
        for table in &block.tables[tables] {
            let Some(guard) = &table.guard else { continue };
            let mut columns = 0..table.width();
            if columns.any(|offset| self.check_readable(table, offset).is_err()) {
                return Err(self.denied(Privilege::Select, &guard.schema, &guard.table));
            }
        }
        Ok(())
    }

    /// Fails with 1143 unless the privilege is held on the column or its table.
    pub(super) fn check_column(
        &self,
        privilege: Privilege,
        table: FullName<'_>,
        column: &str,
    ) -> Result<()> {
        let user = self.context.user;
        if user.may_column(privilege, table.0, table.1, column) {
            return Ok(());
        }
        let (name, host) = (&user.account.user, self.client_host());
        let arguments: [&dyn std::fmt::Display; 5] =
            [&privilege.name(), name, &host, &column, &table.1];
        Err(SqlError::new(&codes::COLUMNACCESS_DENIED_ERROR, &arguments))
    }

    /// Fails with 1143 unless the columns of the target may be written.
    pub(super) fn check_written(
        &self,
        privilege: Privilege,
        target: &catalog::TableEntry,
        columns: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let definition = target.definition();
        let table = match &self.target_view {
            None => (definition.schema.as_str(), definition.name.as_str()),
            Some(view) => (view.schema.as_str(), view.name.as_str()),
        };
        if target.is_temporary() || self.context.user.may(privilege, table.0, table.1) {
            return Ok(());
        }
        for column in columns {
            let shown = self.target_view.as_ref().and_then(|view| {
                let mut shown = view.columns.iter().filter(|(_, at)| *at == column);
                shown.next().map(|(name, _)| name.as_str())
            });
            let name = shown.unwrap_or(&definition.columns[column].name);
            self.check_column(privilege, table, name)?;
        }
        Ok(())
    }

    /// Where the client is, as messages say it.
    fn client_host(&self) -> &str {
        let user = &self.context.eval.facts.user;
        user.rsplit_once('@').map_or("", |(_, host)| host)
    }

    /// Error 1142.
    pub(super) fn denied(&self, privilege: Privilege, schema: &str, table: &str) -> SqlError {
        self.denied_all(privilege.into(), schema, table)
    }

    /// Error 1142 about all that is missing.
    pub(super) fn denied_all(&self, missing: PrivilegeSet, schema: &str, table: &str) -> SqlError {
        let (name, host) = (&self.context.user.account.user, self.client_host());
        let arguments: [&dyn std::fmt::Display; 5] =
            [&missing.commands(), name, &host, &schema, &table];
        SqlError::new(&codes::TABLEACCESS_DENIED_ERROR, &arguments)
    }
}
