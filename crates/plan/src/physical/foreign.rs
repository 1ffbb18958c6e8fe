//! Foreign keys of the tables that a statement changes.

use super::{Computed, EntryHandle};
use engine_api::ReferentialAction;

/// Foreign keys that a statement must look at. The first table is the one that it changes; the
/// others are its relatives as far as checks and cascades may reach.
#[derive(Clone, Debug)]
pub struct ForeignKeys {
    /// Tables.
    pub tables: Vec<ForeignTable>,
}

/// A table with what its rows refer to and what refers to them.
#[derive(Clone, Debug)]
pub struct ForeignTable {
    /// The table.
    pub entry: EntryHandle,
    /// What a row that comes in must find.
    pub parents: Vec<ParentLink>,
    /// What a row that goes is asked for.
    pub children: Vec<ChildLink>,
    /// What a row that a cascade changes computes.
    pub computed: Option<Box<Computed>>,
}

/// A foreign key seen from the child.
#[derive(Clone, Debug)]
pub struct ParentLink {
    /// Position in `TableDefinition::foreign_keys` of the child.
    pub key: usize,
    /// The child's columns.
    pub columns: Vec<usize>,
    /// Position in [`ForeignKeys::tables`] and the index that begins with the parent's columns;
    /// none if there is no such table or index, then no value has a parent.
    pub parent: Option<(usize, usize)>,
}

/// A foreign key seen from the parent.
#[derive(Clone, Debug)]
pub struct ChildLink {
    /// Position in [`ForeignKeys::tables`].
    pub table: usize,
    /// Position in `TableDefinition::foreign_keys` of the child.
    pub key: usize,
    /// The child's index that begins with its columns.
    pub index: usize,
    /// The child's columns.
    pub columns: Vec<usize>,
    /// The parent's columns.
    pub parent_columns: Vec<usize>,
    /// ON DELETE.
    pub on_delete: ReferentialAction,
    /// ON UPDATE.
    pub on_update: ReferentialAction,
}
