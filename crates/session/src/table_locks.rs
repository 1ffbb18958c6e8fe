//! LOCK TABLES and UNLOCK TABLES.
//!
//! The locks are metadata locks that stay when transactions end: READ keeps others from writing,
//! WRITE keeps them away. While a session has some, it uses no other tables (1100), and writes
//! only what it has locked for that (1099).

use crate::Session;
use crate::statement::{Answer, Failure};
use catalog::information_schema::SCHEMA_NAME;
use catalog::{LockKind, Privilege, TableRef};
use plan::LockedTables;
use syntax::ast::{Flush, LockTables, Statement, TableLock, TableName};
use types::{SqlError, codes};

impl Session {
    /// LOCK TABLES: what is open is committed, former locks are given up.
    pub(crate) fn lock_tables(&mut self, statement: &LockTables) -> Result<Answer, Failure> {
        for table in &statement.tables {
            let schema = match &table.name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            let is_temporary = self.temporary_table(&schema, &table.name.name).is_some();
            if !is_temporary && !schema.eq_ignore_ascii_case(SCHEMA_NAME) {
                self.require_on_schema(Privilege::LockTables, &schema)?;
                self.require_all(&[Privilege::Select], &table.name)?;
            }
        }
        for (number, table) in statement.tables.iter().enumerate() {
            let alias = |table: &TableLock| {
                let schema = table.name.schema.as_deref().or(self.database());
                let alias = table.alias.as_ref().unwrap_or(&table.name.name);
                (schema.map(str::to_owned), alias.clone())
            };
            let own = alias(table);
            if statement.tables[..number].iter().any(|other| alias(other) == own) {
                return Err(SqlError::new(&codes::NONUNIQ_TABLE, &[&own.1]).into());
            }
        }
        self.unlock_tables()?;
        self.commit_implicitly()?;
        let mut locked = LockedTables::default();
        let mut wanted = Vec::new();
        let server = self.server.clone();
        for table in &statement.tables {
            let schema = match &table.name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            let name = table.name.name.clone();
            let temporary = self.temporary.as_ref();
            if temporary.is_some_and(|known| known.find(&schema, &name).is_some()) {
                continue;
            }
            if let TableRef::Virtual(_) = server.catalog.find(&schema, &name)? {
                continue;
            }
            let kind = if table.write { LockKind::Exclusive } else { LockKind::NoWrite };
            wanted.push((server.catalog.lock(&schema, &name), kind));
            let alias = table.alias.as_deref().unwrap_or(&name);
            locked.add(&schema, &name, alias, table.write);
        }
        if statement.tables.iter().any(|table| table.write) {
            self.begin_write(None)?;
        }
        self.locks.acquire_all(wanted)?;
        // What was there when it was asked for may be gone by now.
        for (schema, name) in locked.names() {
            if let Err(error) = server.catalog.find(schema, name) {
                self.locks.release_all();
                return Err(error.into());
            }
        }
        self.locks.pin();
        self.locked_tables = Some(Box::new(locked));
        self.track_locked(true);
        Ok(Answer::ok())
    }

    /// UNLOCK TABLES, also by BEGIN: what was changed under the locks is committed first.
    pub(crate) fn unlock_tables(&mut self) -> Result<(), SqlError> {
        if self.locked_tables.take().is_some() {
            let committed = self.commit_before_begin();
            self.locks.unpin();
            self.track_locked(false);
            return committed;
        }
        self.commit_before_begin()
    }

    /// A definition may be changed only of tables that are locked for writing.
    pub(crate) fn check_locked_definition(&self, statement: &Statement) -> Result<(), SqlError> {
        let Some(locked) = &self.locked_tables else { return Ok(()) };
        let names: Vec<&TableName> = match statement {
            Statement::CreateTable(create) => vec![&create.name],
            Statement::AlterTable(alter) => vec![&alter.table],
            Statement::CreateIndex(create) => vec![&create.table],
            Statement::DropIndex(drop) => vec![&drop.table],
            Statement::TruncateTable(name) => vec![name],
            Statement::DropTable(drop) => drop.names.iter().collect(),
            Statement::RenameTable(_) | Statement::DropDatabase(_) => {
                return Err(SqlError::new(&codes::LOCK_OR_ACTIVE_TRANSACTION, &[]));
            }
            _ => return Ok(()),
        };
        for name in names {
            let schema = match &name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            match statement {
                Statement::DropTable(_) => locked.check_definition(&schema, &name.name)?,
                _ => locked.check((&schema, &name.name), &name.name, true)?,
            }
        }
        Ok(())
    }

    /// FLUSH TABLES needs its tables, or all that are locked, for writing (1099, 1100).
    pub(crate) fn check_locked_flush(&self, flush: &Flush) -> Result<(), SqlError> {
        let Some(locked) = &self.locked_tables else { return Ok(()) };
        for name in &flush.tables {
            let schema = name.schema.as_deref().or(self.database()).unwrap_or_default();
            locked.check_definition(schema, &name.name)?;
        }
        if flush.items.iter().any(|item| item == "TABLES") {
            for (schema, name) in locked.names() {
                locked.check_definition(schema, name)?;
            }
        }
        Ok(())
    }

    /// Tables that were dropped are not locked any more; without the last one nothing is.
    pub(crate) fn forget_dropped(&mut self, statement: &Statement) {
        let Statement::DropTable(drop) = statement else { return };
        let database = self.database().unwrap_or_default().to_owned();
        let Some(locked) = &mut self.locked_tables else { return };
        let mut is_empty = false;
        for name in &drop.names {
            let schema = name.schema.as_deref().unwrap_or(&database);
            is_empty |= locked.remove(schema, &name.name);
        }
        if is_empty {
            self.locked_tables = None;
            self.locks.unpin();
            self.track_locked(false);
        }
    }
}
