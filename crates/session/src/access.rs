//! What a user may do: checks before a statement runs.

use crate::Session;
use catalog::information_schema;
use catalog::{Privilege, UserPrivileges};
use syntax::ast::{Statement, TableName};
use types::{SqlError, codes};

type Done = Result<(), SqlError>;

/// 1142.
pub(crate) fn denied(
    command: &str,
    user: &UserPrivileges,
    host: &str,
    schema: &str,
    table: &str,
) -> SqlError {
    let arguments: [&dyn std::fmt::Display; 5] =
        [&command, &user.account.user, &host, &schema, &table];
    SqlError::new(&codes::TABLEACCESS_DENIED_ERROR, &arguments)
}

impl Session {
    /// Holds globally whatever a plan can need, so that a plan made for another user will do.
    pub(crate) fn may_change_all_rows(&self) -> bool {
        let rows = [Privilege::Select, Privilege::Insert, Privilege::Update, Privilege::Delete];
        rows.into_iter().all(|privilege| self.user.global.has(privilege))
    }

    /// Fails with 1227 unless the user holds the privilege globally.
    pub(crate) fn require_global(&self, privilege: Privilege) -> Done {
        if self.user.global.has(privilege) {
            return Ok(());
        }
        Err(SqlError::new(&codes::SPECIFIC_ACCESS_DENIED_ERROR, &[&privilege.name()]))
    }

    /// Fails with 1044 unless the user may know of the database.
    pub(crate) fn check_sees_schema(&self, schema: &str) -> Done {
        let virtual_schema = schema.eq_ignore_ascii_case(information_schema::SCHEMA_NAME);
        if virtual_schema || self.user.sees_schema(schema) {
            return Ok(());
        }
        let account = &self.user.account;
        let arguments: [&dyn std::fmt::Display; 3] = [&account.user, &account.host.0, &schema];
        Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments))
    }

    /// Fails with 1142 unless the user may know of the table.
    pub(crate) fn check_sees_table(&self, schema: &str, table: &str) -> Done {
        let virtual_schema = schema.eq_ignore_ascii_case(information_schema::SCHEMA_NAME);
        if virtual_schema || self.user.sees_table(schema, table) {
            return Ok(());
        }
        Err(denied("SELECT", &self.user, &self.identity.host, schema, table))
    }

    /// Fails with 1142 unless the user holds the privilege on the table.
    pub(crate) fn require(&self, privilege: Privilege, name: &TableName) -> Done {
        let schema = match &name.schema {
            Some(schema) => schema.clone(),
            None => self.current_database()?,
        };
        let is_temporary = self.temporary_table(&schema, &name.name).is_some();
        if is_temporary || self.user.may(privilege, &schema, &name.name) {
            return Ok(());
        }
        Err(denied(privilege.name(), &self.user, &self.identity.host, &schema, &name.name))
    }

    fn require_on_schema(&self, privilege: Privilege, schema: &str) -> Done {
        if self.user.on_schema(schema).has(privilege) {
            return Ok(());
        }
        let account = &self.user.account;
        let arguments: [&dyn std::fmt::Display; 3] = [&account.user, &account.host.0, &schema];
        Err(SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments))
    }

    /// The privileges that a definition statement needs.
    pub(crate) fn check_definition_privileges(&self, statement: &Statement) -> Done {
        use Privilege::{Alter, Create, Drop, Index, Insert};
        match statement {
            Statement::CreateTable(create) if create.temporary => {
                let schema = match &create.name.schema {
                    Some(schema) => schema.clone(),
                    None => self.current_database()?,
                };
                self.require_on_schema(Privilege::CreateTemporaryTables, &schema)
            }
            Statement::DropTable(drop) if drop.temporary => Ok(()),
            Statement::CreateTable(create) => self.require(Create, &create.name),
            Statement::AlterTable(alter) => self.require(Alter, &alter.table),
            Statement::CreateIndex(create) => self.require(Index, &create.table),
            Statement::DropIndex(drop) => self.require(Index, &drop.table),
            Statement::TruncateTable(table) => self.require(Drop, table),
            Statement::DropTable(drop) => {
                drop.names.iter().try_for_each(|table| self.require(Drop, table))
            }
            Statement::RenameTable(pairs) => pairs.iter().try_for_each(|(from, to)| {
                self.require(Alter, from)?;
                self.require(Drop, from)?;
                self.require(Create, to)?;
                self.require(Insert, to)
            }),
            Statement::CreateDatabase(create) => self.require_on_schema(Create, &create.name),
            Statement::DropDatabase(drop) => self.require_on_schema(Drop, &drop.name),
            Statement::AlterDatabase(alter) => match &alter.name {
                Some(name) => self.require_on_schema(Alter, name),
                None => self.require_on_schema(Alter, &self.current_database()?),
            },
            _ => Ok(()),
        }
    }
}
