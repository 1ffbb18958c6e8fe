//! A database and its options.

use crate::TableEntry;
use std::collections::BTreeMap;
use std::sync::Arc;
use types::CollationId;

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
