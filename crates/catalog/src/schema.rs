//! Databases: their options, their records, CREATE, ALTER and DROP DATABASE.

use crate::catalog::{is_valid_name, is_virtual_schema, table_key};
use crate::encoding::{DecodeError, Reader, Writer};
use crate::{Catalog, CatalogError, LockKind, MetadataLockSet, Result, TableEntry};
use std::collections::BTreeMap;
use std::sync::Arc;
use types::CollationId;

const SCHEMA_FORMAT: u8 = 1;

/// Options of CREATE DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaOptions {
    /// Default collation of new tables.
    pub collation: CollationId,
    /// COMMENT.
    pub comment: String,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self { collation: CollationId::UTF8MB4_GENERAL_CI, comment: String::new() }
    }
}

/// A database. A value of the cache: it does not change, a new one replaces it.
#[derive(Clone)]
pub struct Schema {
    /// Name.
    pub name: String,
    /// Its options.
    pub options: SchemaOptions,
    pub(crate) tables: BTreeMap<String, Arc<TableEntry>>,
}

impl Schema {
    /// Its tables in order of name.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableEntry>> {
        self.tables.values()
    }

    /// A table by name.
    pub fn table(&self, name: &str) -> Option<&Arc<TableEntry>> {
        self.tables.get(name)
    }
}

impl Catalog {
    /// CREATE DATABASE. Fails with 1007 or 1102.
    pub fn create_schema(
        &self,
        locks: &mut MetadataLockSet,
        name: &str,
        options: SchemaOptions,
    ) -> Result<()> {
        if is_virtual_schema(name) {
            return Err(CatalogError::DatabaseExists(name.to_owned()));
        }
        if !is_valid_name(name) {
            return Err(CatalogError::WrongDatabaseName(name.to_owned()));
        }
        locks.acquire_all(vec![(self.lock(name, ""), LockKind::Exclusive)])?;
        if self.schema(name).is_some() {
            return Err(CatalogError::DatabaseExists(name.to_owned()));
        }
        self.put_schema(name, &options)?;
        let schema = Schema { name: name.to_owned(), options, tables: BTreeMap::new() };
        let mut schemas = self.schemas.write();
        schemas.insert(name.to_owned(), Arc::new(schema));
        drop(schemas);
        self.changed();
        Ok(())
    }

    fn put_schema(&self, name: &str, options: &SchemaOptions) -> Result<()> {
        let mut trx = self.begin();
        self.engine().dictionary_put(&mut *trx, &schema_key(name), &encode_schema(options))?;
        trx.commit()?;
        Ok(())
    }

    /// ALTER DATABASE.
    pub fn alter_schema(
        &self,
        locks: &mut MetadataLockSet,
        name: &str,
        options: SchemaOptions,
    ) -> Result<()> {
        locks.acquire_all(vec![(self.lock(name, ""), LockKind::Exclusive)])?;
        if self.schema(name).is_none() {
            return Err(CatalogError::UnknownDatabase(name.to_owned()));
        }
        self.put_schema(name, &options)?;
        self.edit_schema(name, |schema| schema.options = options);
        Ok(())
    }

    /// DROP DATABASE with all its tables, in one transaction. Returns the number of tables.
    pub fn drop_schema(&self, locks: &mut MetadataLockSet, name: &str) -> Result<usize> {
        if is_virtual_schema(name) || name == "mysql" {
            return Err(CatalogError::SystemDatabase(name.to_owned()));
        }
        locks.acquire_all(vec![(self.lock(name, ""), LockKind::Exclusive)])?;
        let missing = || CatalogError::DatabaseMissing(name.to_owned());
        let schema = self.schema(name).ok_or_else(missing)?;
        let tables = schema.tables.keys();
        let wanted = tables.map(|table| (self.lock(name, table), LockKind::Exclusive)).collect();
        locks.acquire_all(wanted)?;
        let schema = self.schema(name).ok_or_else(missing)?;
        let mut trx = self.begin();
        for (table, entry) in &schema.tables {
            if entry.view().is_some() {
                let key = crate::view::view_key(name, table);
                self.engine().dictionary_delete(&mut *trx, &key)?;
                continue;
            }
            self.engine().drop_table(&mut *trx, entry.definition())?;
            self.engine().dictionary_delete(&mut *trx, &table_key(name, table))?;
        }
        self.engine().dictionary_delete(&mut *trx, &schema_key(name))?;
        trx.commit()?;
        for entry in schema.tables.values() {
            entry.set_replaced();
        }
        self.schemas.write().remove(name);
        for (table, entry) in &schema.tables {
            self.move_statistics((name, table), None);
            self.note_family(Some(entry.definition()), None, (name, table));
        }
        self.changed();
        Ok(schema.tables.len())
    }
}

pub(crate) fn schema_key(name: &str) -> Vec<u8> {
    [b"s", name.as_bytes()].concat()
}

pub(crate) fn encode_schema(options: &SchemaOptions) -> Vec<u8> {
    let mut out = Writer::new(SCHEMA_FORMAT);
    out.u16(options.collation.0);
    out.string(&options.comment);
    out.finish()
}

pub(crate) fn decode_schema(bytes: &[u8]) -> std::result::Result<SchemaOptions, DecodeError> {
    let mut input = Reader::new(bytes, SCHEMA_FORMAT)?;
    let options = SchemaOptions { collation: CollationId(input.u16()?), comment: input.string()? };
    input.finish()?;
    Ok(options)
}
