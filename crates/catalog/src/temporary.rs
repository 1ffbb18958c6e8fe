//! Temporary tables: tables of the engine that one session knows.
//!
//! 1. Their names are looked up before those of the catalog, so they hide tables of the same name.
//! 2. Nobody else uses them, so their metadata locks are their own and never waited for.
//! 3. Each has a record in the dictionary that says nothing but that it is to be dropped: what
//!    sessions leave behind when the server ends is dropped at the next start.
//! 4. A table whose rows an open transaction has changed must stay until that has ended, since a
//!    rollback goes through its trees: it is dropped later ([`TemporaryTables::leave`]).

use crate::catalog::{is_valid_name, is_virtual_schema};
use crate::encoding::{decode_table, encode_table};
use crate::{Catalog, CatalogError, MetadataLock, Result, TableEntry};
use engine_api::{FlushPolicy, Isolation, TableDefinition, Transaction, TransactionOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The temporary tables of a session.
#[derive(Default)]
pub struct TemporaryTables {
    tables: BTreeMap<(String, String), Arc<TableEntry>>,
    /// Dropped, but perhaps changed by the open transaction.
    left: Vec<Arc<TableEntry>>,
}

/// The prefix of the records of temporary tables in the dictionary.
pub(crate) const PREFIX: &[u8] = b"x";

fn record_key(definition: &TableDefinition) -> Vec<u8> {
    [PREFIX, &definition.id.0.to_be_bytes()].concat()
}

impl TemporaryTables {
    /// There is nothing to look up and nothing left to drop.
    pub fn is_unused(&self) -> bool {
        self.tables.is_empty() && self.left.is_empty()
    }

    /// A table by name.
    pub fn find(&self, schema: &str, name: &str) -> Option<&Arc<TableEntry>> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&(schema.to_owned(), name.to_owned()))
    }

    /// Whether the name of one of these tables means another one here.
    pub fn hides(&self, entries: &[Arc<TableEntry>]) -> bool {
        entries.iter().any(|entry| {
            let definition = entry.definition();
            let found = self.find(&definition.schema, &definition.name);
            found.is_some_and(|found| !Arc::ptr_eq(found, entry))
        })
    }

    /// Takes a table's name away; it is dropped by [`Catalog::drop_left`].
    pub fn leave(&mut self, schema: &str, name: &str) -> bool {
        let found = self.tables.remove(&(schema.to_owned(), name.to_owned()));
        let is_found = found.is_some();
        if let Some(entry) = found {
            entry.set_replaced();
            self.left.push(entry);
        }
        is_found
    }

    /// Takes all names away.
    pub fn leave_all(&mut self) {
        for (_, entry) in std::mem::take(&mut self.tables) {
            entry.set_replaced();
            self.left.push(entry);
        }
    }
}

impl Catalog {
    /// CREATE TEMPORARY TABLE. Fails with 1050 and 1049.
    pub fn create_temporary(
        &self,
        temporary: &mut TemporaryTables,
        mut definition: TableDefinition,
    ) -> Result<Arc<TableEntry>> {
        let (schema, name) = (definition.schema.clone(), definition.name.clone());
        self.check_new_name(&schema, &name)?;
        if temporary.find(&schema, &name).is_some() {
            return Err(CatalogError::TableExists(name));
        }
        definition.version = 1;
        let mut trx = self.begin_temporary();
        self.engine().create_table(&mut *trx, &mut definition)?;
        let (key, record) = (record_key(&definition), encode_table(&definition));
        self.engine().dictionary_put(&mut *trx, &key, &record)?;
        trx.commit()?;
        let entry = self.temporary_entry(definition);
        temporary.tables.insert((schema, name), entry.clone());
        Ok(entry)
    }

    /// A change of a temporary table, as [`Catalog::change_table`].
    pub fn change_temporary<E: From<CatalogError>>(
        &self,
        temporary: &mut TemporaryTables,
        (schema, name): (&str, &str),
        edit: &mut dyn FnMut(
            &mut dyn Transaction,
            &mut TableDefinition,
        ) -> std::result::Result<(), E>,
    ) -> std::result::Result<Arc<TableEntry>, E> {
        let missing = || CatalogError::NoSuchTable(schema.to_owned(), name.to_owned());
        let entry = temporary.find(schema, name).cloned().ok_or_else(missing)?;
        let mut definition = (**entry.definition()).clone();
        let mut trx = self.begin_temporary();
        edit(&mut *trx, &mut definition)?;
        definition.version += 1;
        let engine = self.engine();
        let old = record_key(entry.definition());
        let (key, record) = (record_key(&definition), encode_table(&definition));
        engine.dictionary_delete(&mut *trx, &old).map_err(CatalogError::from)?;
        engine.dictionary_put(&mut *trx, &key, &record).map_err(CatalogError::from)?;
        trx.commit().map_err(CatalogError::from)?;
        entry.set_replaced();
        let entry = self.temporary_entry(definition);
        temporary.tables.insert((schema.to_owned(), name.to_owned()), entry.clone());
        Ok(entry)
    }

    /// RENAME of a temporary table. Fails with 1146, 1049 and 1050.
    pub fn rename_temporary(
        &self,
        temporary: &mut TemporaryTables,
        from: (&str, &str),
        to: (&str, &str),
    ) -> Result<()> {
        self.check_new_name(to.0, to.1)?;
        if temporary.find(to.0, to.1).is_some() {
            return Err(CatalogError::TableExists(to.1.to_owned()));
        }
        let renamed = self.change_temporary::<CatalogError>(temporary, from, &mut |_, table| {
            table.schema = to.0.to_owned();
            table.name = to.1.to_owned();
            Ok(())
        })?;
        temporary.tables.remove(&(from.0.to_owned(), from.1.to_owned()));
        temporary.tables.insert((to.0.to_owned(), to.1.to_owned()), renamed);
        Ok(())
    }

    /// Drops the tables whose names were taken away. No transaction of the session is open.
    pub fn drop_left(&self, temporary: &mut TemporaryTables) -> Result<()> {
        if temporary.left.is_empty() {
            return Ok(());
        }
        let mut trx = self.begin_temporary();
        for entry in &temporary.left {
            self.engine().drop_table(&mut *trx, entry.definition())?;
            self.engine().dictionary_delete(&mut *trx, &record_key(entry.definition()))?;
        }
        trx.commit()?;
        temporary.left.clear();
        Ok(())
    }

    /// Drops what sessions of a server that has ended left behind.
    pub(crate) fn drop_left_behind(&self, records: Vec<(Vec<u8>, Vec<u8>)>) -> Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut trx = self.begin();
        for (key, record) in records {
            let unreadable =
                |error| CatalogError::Dictionary { object: "a temporary table".to_owned(), error };
            let definition = decode_table(&record).map_err(unreadable)?;
            self.engine().drop_table(&mut *trx, &definition)?;
            self.engine().dictionary_delete(&mut *trx, &key)?;
        }
        trx.commit()?;
        Ok(())
    }

    /// A transaction whose changes need not outlive the server.
    fn begin_temporary(&self) -> Box<dyn Transaction> {
        self.engine().begin(TransactionOptions {
            isolation: Isolation::ReadCommitted,
            snapshot_isolation: false,
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            flush_policy: FlushPolicy::EverySecond,
            connection: 0,
            ends_with_statement: false,
        })
    }

    /// Fails with 1103, 1044 or 1049 unless a table may have this name.
    fn check_new_name(&self, schema: &str, name: &str) -> Result<()> {
        if !is_valid_name(name) {
            return Err(CatalogError::WrongTableName(name.to_owned()));
        }
        if is_virtual_schema(schema) {
            return Err(CatalogError::SystemDatabase(schema.to_owned()));
        }
        match self.schema(schema) {
            Some(_) => Ok(()),
            None => Err(CatalogError::UnknownDatabase(schema.to_owned())),
        }
    }

    fn temporary_entry(&self, definition: TableDefinition) -> Arc<TableEntry> {
        let lock = Arc::new(MetadataLock::new(&definition.schema, &definition.name));
        TableEntry::new_temporary(definition, self.engine().clone(), lock)
    }
}
