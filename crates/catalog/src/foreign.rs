//! Which tables refer to which: foreign keys seen from the parent.
//!
//! 1. The children of a name are known whether or not a table of that name exists, since a child
//!    may be made before its parent (foreign_key_checks=0).
//! 2. When a table is published, its parents and children get new entries of the same definition:
//!    no plan that was made with the old relations is current any more. Whoever changes relations
//!    holds the exclusive metadata locks of the relatives too ([`Catalog::lock_family`]).

use crate::{Catalog, MetadataLockSet, Result, TableEntry, TableRef, describe};
use engine_api::{ForeignKeyDefinition, ReferentialAction, TableDefinition};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// A table's database and name.
pub type QualifiedName = (String, String);

/// Children by the name of their parent.
#[derive(Default)]
pub(crate) struct Families {
    children: HashMap<QualifiedName, BTreeSet<QualifiedName>>,
}

impl Families {
    pub(crate) fn add(&mut self, child: &TableDefinition) {
        for key in &child.foreign_keys {
            let parent = (key.parent_schema.clone(), key.parent_table.clone());
            let child = (child.schema.clone(), child.name.clone());
            self.children.entry(parent).or_default().insert(child);
        }
    }

    pub(crate) fn remove(&mut self, child: &TableDefinition) {
        let name = (child.schema.clone(), child.name.clone());
        for key in &child.foreign_keys {
            let parent = (key.parent_schema.clone(), key.parent_table.clone());
            if let Some(children) = self.children.get_mut(&parent) {
                children.remove(&name);
                if children.is_empty() {
                    self.children.remove(&parent);
                }
            }
        }
    }

    pub(crate) fn of(&self, parent: &QualifiedName) -> Vec<QualifiedName> {
        let children = self.children.get(parent);
        children.map_or(Vec::new(), |children| children.iter().cloned().collect())
    }
}

/// The words of an action.
pub fn action_words(action: ReferentialAction) -> &'static str {
    match action {
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::NoAction => "NO ACTION",
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(describe::quote_name).collect::<Vec<_>>().join(", ")
}

/// `CONSTRAINT ... FOREIGN KEY ... REFERENCES ...` as messages and SHOW CREATE TABLE have it. The
/// parent's database is named if it is not the child's, or always.
pub fn constraint_text(
    child: &TableDefinition,
    key: &ForeignKeyDefinition,
    always_schema: bool,
) -> String {
    let columns = child.foreign_key_columns(key);
    let columns = columns.iter().filter_map(|at| child.columns.get(*at)).map(|c| c.name.as_str());
    let mut text = format!(
        "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES ",
        describe::quote_name(&key.name),
        names(columns)
    );
    if always_schema || key.parent_schema != child.schema {
        let _ = write!(text, "{}.", describe::quote_name(&key.parent_schema));
    }
    let parent_columns = names(key.parent_columns.iter().map(String::as_str));
    let _ = write!(text, "{} ({parent_columns})", describe::quote_name(&key.parent_table));
    for (event, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
        if action != ReferentialAction::Restrict {
            let _ = write!(text, " ON {event} {}", action_words(action));
        }
    }
    text
}

/// The constraint behind its table, as errors 1451 and 1452 name it.
pub fn constraint_in_table(
    child: &TableDefinition,
    key: &ForeignKeyDefinition,
    always_schema: bool,
) -> String {
    format!(
        "{}.{}, {}",
        describe::quote_name(&child.schema),
        describe::quote_name(&child.name),
        constraint_text(child, key, always_schema)
    )
}

impl Catalog {
    /// Names of the tables with a foreign key to this one, itself among them.
    pub fn children(&self, schema: &str, table: &str) -> Vec<QualifiedName> {
        let families = self.families.read();
        if families.children.is_empty() {
            return Vec::new();
        }
        families.of(&(schema.to_owned(), table.to_owned()))
    }

    /// A table of the engine by name, if there is one.
    pub fn find_base(&self, schema: &str, table: &str) -> Option<Arc<TableEntry>> {
        match self.find(schema, table) {
            Ok(TableRef::Base(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The name of the first child other than the table itself and those in `without`, with the
    /// foreign key that makes it one.
    pub fn child_besides(
        &self,
        (schema, table): (&str, &str),
        without: &[QualifiedName],
    ) -> Option<(Arc<TableEntry>, ForeignKeyDefinition)> {
        for child in self.children(schema, table) {
            if (child.0.as_str(), child.1.as_str()) == (schema, table) || without.contains(&child) {
                continue;
            }
            let Some(entry) = self.find_base(&child.0, &child.1) else { continue };
            let mut keys = entry.definition().foreign_keys.iter();
            let key = keys.find(|k| k.parent_schema == schema && k.parent_table == table).cloned();
            if let Some(key) = key {
                return Some((entry, key));
            }
        }
        None
    }

    /// Names of a table's parents and children, those of `more` among the parents.
    fn relatives(&self, schema: &str, table: &str) -> Vec<QualifiedName> {
        let mut names = self.children(schema, table);
        if let Some(entry) = self.find_base(schema, table) {
            let keys = entry.definition().foreign_keys.iter();
            names.extend(keys.map(|key| (key.parent_schema.clone(), key.parent_table.clone())));
        }
        names
    }

    /// Locks names that are to be changed, the other names given, and all their relatives, for a
    /// change of definitions. Relations that others changed meanwhile are locked too.
    pub fn lock_family(
        &self,
        locks: &mut MetadataLockSet,
        names: &[(&str, &str)],
        more: &[QualifiedName],
    ) -> Result<()> {
        let mut locked: BTreeSet<QualifiedName> = BTreeSet::new();
        loop {
            let mut wanted: BTreeSet<QualifiedName> = more.iter().cloned().collect();
            for (schema, table) in names {
                wanted.insert(((*schema).to_owned(), (*table).to_owned()));
                wanted.extend(self.relatives(schema, table));
            }
            if wanted.is_subset(&locked) {
                return Ok(());
            }
            locked.extend(wanted);
            let all: Vec<(&str, &str)> =
                locked.iter().map(|(schema, table)| (schema.as_str(), table.as_str())).collect();
            self.lock_names(locks, &all)?;
        }
    }

    /// Whether a constraint of this name is in the database, outside of one table.
    pub fn has_foreign_key(&self, schema: &str, name: &str, except: &str) -> bool {
        let Some(found) = self.schema(schema) else { return false };
        found.tables().filter(|entry| entry.definition().name != except).any(|entry| {
            entry.definition().foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(name))
        })
    }

    /// Brings the families up to date after a table was published in place of `old`, and gives
    /// its relatives new entries.
    pub(crate) fn note_family(
        &self,
        old: Option<&TableDefinition>,
        new: Option<&TableDefinition>,
        (schema, name): (&str, &str),
    ) {
        let mut relatives: BTreeSet<QualifiedName> = BTreeSet::new();
        {
            let mut families = self.families.write();
            if let Some(old) = old {
                families.remove(old);
            }
            if let Some(new) = new {
                families.add(new);
            }
            if families.children.is_empty() && old.is_none_or(|old| old.foreign_keys.is_empty()) {
                return;
            }
            relatives.extend(families.of(&(schema.to_owned(), name.to_owned())));
        }
        for key in old.into_iter().chain(new).flat_map(|table| &table.foreign_keys) {
            relatives.insert((key.parent_schema.clone(), key.parent_table.clone()));
        }
        relatives.remove(&(schema.to_owned(), name.to_owned()));
        for (schema, table) in relatives {
            if let Some(entry) = self.find_base(&schema, &table) {
                let again = self.entry((**entry.definition()).clone());
                self.put_entry(&schema, &table, Some(again));
            }
        }
    }
}
