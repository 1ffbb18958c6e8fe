//! What a user may do: checks before a statement runs.

use crate::Session;
use catalog::information_schema;
use catalog::{Privilege, PrivilegeSet, UserPrivileges};
use syntax::ast::{AlterAction, AlterTable, CreateTable, References, Statement, TableName};
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
        Err(self.denied_schema(&self.user.account.host.0, schema))
    }

    /// Fails with 1142 unless the user may know of the table; `command` is what is denied.
    pub(crate) fn check_sees_table(&self, command: &str, schema: &str, table: &str) -> Done {
        let virtual_schema = schema.eq_ignore_ascii_case(information_schema::SCHEMA_NAME);
        if virtual_schema || self.user.sees_table(schema, table) {
            return Ok(());
        }
        Err(denied(command, &self.user, &self.identity.host, schema, table))
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

    /// Fails with 1142, which names what is missing, unless the user holds all of these on the
    /// table.
    pub(crate) fn require_all(&self, wanted: &[Privilege], name: &TableName) -> Done {
        let schema = match &name.schema {
            Some(schema) => schema.clone(),
            None => self.current_database()?,
        };
        if self.temporary_table(&schema, &name.name).is_some() {
            return Ok(());
        }
        let wanted = wanted.iter().fold(PrivilegeSet::NONE, |set, one| set.with(*one));
        let missing = self.user.missing(wanted, &schema, &name.name);
        if missing.is_empty() {
            return Ok(());
        }
        Err(denied(&missing.commands(), &self.user, &self.identity.host, &schema, &name.name))
    }

    pub(crate) fn require_on_schema(&self, privilege: Privilege, schema: &str) -> Done {
        if self.user.on_schema(schema).has(privilege) {
            return Ok(());
        }
        Err(self.denied_schema(&self.user.account.host.0, schema))
    }

    /// 1044.
    pub(crate) fn denied_schema(&self, host: &str, schema: &str) -> SqlError {
        let arguments: [&dyn std::fmt::Display; 3] = [&self.user.account.user, &host, &schema];
        SqlError::new(&codes::DBACCESS_DENIED_ERROR, &arguments)
    }

    /// What CREATE TABLE needs: also of the tables that it is made from, or refers to.
    fn check_create_table(&self, create: &CreateTable) -> Done {
        use Privilege::{Create, CreateTemporaryTables, Drop, Insert, Select};
        if create.temporary {
            let schema = match &create.name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            self.require_on_schema(CreateTemporaryTables, &schema)?;
        } else {
            let mut wanted = vec![Create];
            wanted.extend(create.query.is_some().then_some(Insert));
            wanted.extend(create.or_replace.then_some(Drop));
            self.require_all(&wanted, &create.name)?;
        }
        if let Some(like) = &create.like {
            self.require_all(&[Select], like)?;
        }
        let of_columns = create.columns.iter().filter_map(|column| column.references.as_ref());
        let all = create.foreign_keys.iter().map(|key| &key.references).chain(of_columns);
        all.into_iter().try_for_each(|references| self.check_references(references, &create.name))
    }

    /// A parent needs REFERENCES; without a database it is in that of the child.
    fn check_references(&self, references: &References, child: &TableName) -> Done {
        let parent = TableName {
            schema: references.table.schema.clone().or_else(|| child.schema.clone()),
            name: references.table.name.clone(),
        };
        self.require_all(&[Privilege::References], &parent)
    }

    /// What ALTER TABLE needs, by what it does.
    fn check_alter_table(&self, alter: &AlterTable) -> Done {
        use Privilege::{Alter, Create, Drop, Insert};
        let renames = alter.actions.iter().find_map(|action| match action {
            AlterAction::Rename(to) => Some(to),
            _ => None,
        });
        match renames {
            None => self.require(Alter, &alter.table)?,
            Some(to) => {
                self.require_all(&[Alter, Drop], &alter.table)?;
                self.require_all(&[Create, Insert], to)?;
            }
        }
        alter.actions.iter().try_for_each(|action| match action {
            AlterAction::AddForeignKey(key) => self.check_references(&key.references, &alter.table),
            _ => Ok(()),
        })
    }

    /// The privileges that a definition statement needs.
    pub(crate) fn check_definition_privileges(&self, statement: &Statement) -> Done {
        use Privilege::{Alter, Create, Drop, Index, Insert};
        match statement {
            Statement::DropTable(drop) if drop.temporary => Ok(()),
            Statement::CreateTable(create) => self.check_create_table(create),
            Statement::AlterTable(alter) => self.check_alter_table(alter),
            Statement::CreateIndex(create) => self.require(Index, &create.table),
            Statement::DropIndex(drop) => self.require(Index, &drop.table),
            Statement::TruncateTable(table) => self.require(Drop, table),
            Statement::DropTable(drop) => {
                drop.names.iter().try_for_each(|table| self.require(Drop, table))
            }
            Statement::RenameTable(pairs) => pairs.iter().try_for_each(|(from, to)| {
                self.require_all(&[Alter, Drop], from)?;
                self.require_all(&[Create, Insert], to)
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
