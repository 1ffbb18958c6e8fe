//! Foreign keys of a statement that changes rows: which tables its rows depend on, and which
//! depend on them. Made with the plan, so that a table without foreign keys costs nothing more
//! than finding that out there.
//!
//! 1. All tables are opened with a shared metadata lock and belong to the tables of the plan: a
//!    change of one of them, or of the relations, makes the plan obsolete.
//! 2. Tables that a cascade may change are described in full, parents that are only looked up are
//!    not.

use crate::bind::{Binder, Result};
use crate::physical::{ChildLink, EntryHandle, ForeignKeys, ForeignTable, ParentLink};
use catalog::{TableEntry, TableRef};
use engine_api::{ForeignKeyDefinition, TableDefinition};
use std::sync::Arc;

/// What a statement does to the rows of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Rows come in, none goes.
    Insert,
    /// Rows go.
    Delete,
    /// Rows change, or come and go.
    Change,
}

/// The tables found so far.
#[derive(Default)]
struct Graph {
    tables: Vec<Found>,
}

struct Found {
    table: ForeignTable,
    /// A cascade may change its rows.
    is_reached: bool,
    /// Its parents and children are known.
    is_linked: bool,
}

impl Graph {
    fn position(&mut self, entry: &Arc<TableEntry>) -> usize {
        let known = self.tables.iter().position(|table| Arc::ptr_eq(&table.table.entry.0, entry));
        known.unwrap_or_else(|| {
            let entry = EntryHandle(entry.clone());
            let table =
                ForeignTable { entry, parents: Vec::new(), children: Vec::new(), computed: None };
            self.tables.push(Found { table, is_reached: false, is_linked: false });
            self.tables.len() - 1
        })
    }
}

/// The positions of the parent's columns, if the parent has all of them.
fn parent_columns(parent: &TableDefinition, key: &ForeignKeyDefinition) -> Option<Vec<usize>> {
    key.parent_columns.iter().map(|name| parent.column_position(name)).collect()
}

impl Binder<'_, '_, '_> {
    /// The foreign keys that a change of `target`'s rows must look at; none if there are none or
    /// they are not checked. Of an update only keys whose columns are `assigned` matter.
    pub(crate) fn foreign_keys(
        &mut self,
        target: &Arc<TableEntry>,
        effect: Effect,
        assigned: Option<&[usize]>,
    ) -> Result<Option<Box<ForeignKeys>>> {
        let definition = target.definition();
        if !self.context.eval.settings.foreign_key_checks {
            return Ok(None);
        }
        let is_assigned = |column: usize| assigned.is_none_or(|all| all.contains(&column));
        let has_parents = effect != Effect::Delete && !definition.foreign_keys.is_empty();
        let children = self.context.catalog.children(&definition.schema, &definition.name);
        let has_children = effect != Effect::Insert && !children.is_empty();
        if !has_parents && !has_children {
            return Ok(None);
        }
        let mut graph = Graph::default();
        let first = graph.position(target);
        if has_parents {
            self.link_parents(&mut graph, first)?;
            // A row that moves comes in anew, with all its keys.
            let moves = definition.indexes[0].parts.iter().any(|part| is_assigned(part.column));
            let links = &mut graph.tables[first].table.parents;
            links.retain(|link| moves || link.columns.iter().any(|column| is_assigned(*column)));
        }
        if has_children {
            self.link_children(&mut graph, first)?;
            graph.tables[first].is_linked = true;
            let links = &mut graph.tables[first].table.children;
            links.retain(|link| link.parent_columns.iter().any(|column| is_assigned(*column)));
            if links.is_empty() {
                graph.tables.iter_mut().for_each(|found| found.is_reached = false);
            }
            // Everything that a cascade may reach.
            let next = |graph: &Graph| {
                graph.tables.iter().position(|table| table.is_reached && !table.is_linked)
            };
            while let Some(at) = next(&graph) {
                self.link_parents(&mut graph, at)?;
                self.link_children(&mut graph, at)?;
                graph.tables[at].is_linked = true;
            }
        }
        let target = &graph.tables[first].table;
        if target.parents.is_empty() && target.children.is_empty() {
            return Ok(None);
        }
        let tables = graph.tables.into_iter().map(|found| found.table).collect();
        Ok(Some(Box::new(ForeignKeys { tables })))
    }

    /// Opens a relative: no privilege on it is needed.
    fn open_relative(&mut self, schema: &str, name: &str) -> Result<Option<Arc<TableEntry>>> {
        let opened = self.context.catalog.open_table(self.context.locks, schema, name);
        match opened {
            Ok(TableRef::Base(entry)) => {
                self.note_entry(&entry);
                Ok(Some(entry))
            }
            Ok(_) | Err(catalog::CatalogError::NoSuchTable(..)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn link_parents(&mut self, graph: &mut Graph, at: usize) -> Result<()> {
        let entry = graph.tables[at].table.entry.0.clone();
        let child = entry.definition();
        let mut links = Vec::with_capacity(child.foreign_keys.len());
        for (number, key) in child.foreign_keys.iter().enumerate() {
            let columns = child.foreign_key_columns(key);
            let parent = match self.open_relative(&key.parent_schema, &key.parent_table)? {
                None => None,
                Some(parent) => {
                    let positions = parent_columns(parent.definition(), key);
                    let index = positions.and_then(|at| parent.definition().index_over(&at));
                    index.map(|index| (graph.position(&parent), index))
                }
            };
            let own_index = child.index_over(&columns).unwrap_or(0);
            links.push((own_index, ParentLink { key: number, columns, parent }));
        }
        // Checked in the order of the child's indexes, as they are when rows are put into them.
        links.sort_by_key(|(index, _)| *index);
        graph.tables[at].table.parents = links.into_iter().map(|(_, link)| link).collect();
        Ok(())
    }

    fn link_children(&mut self, graph: &mut Graph, at: usize) -> Result<()> {
        let entry = graph.tables[at].table.entry.0.clone();
        let parent = entry.definition();
        let mut links = Vec::new();
        for (schema, name) in self.context.catalog.children(&parent.schema, &parent.name) {
            let Some(child) = self.open_relative(&schema, &name)? else { continue };
            for (number, key) in child.definition().foreign_keys.iter().enumerate() {
                if key.parent_schema != parent.schema || key.parent_table != parent.name {
                    continue;
                }
                let Some(parent_columns) = parent_columns(parent, key) else { continue };
                let columns = child.definition().foreign_key_columns(key);
                let Some(index) = child.definition().index_over(&columns) else { continue };
                let order = (parent.index_over(&parent_columns), key.name.clone());
                let table = graph.position(&child);
                graph.tables[table].is_reached = true;
                if graph.tables[table].table.computed.is_none() {
                    let made = crate::computed::computed(self.context, child.definition())?;
                    graph.tables[table].table.computed = made;
                }
                let (on_delete, on_update) = (key.on_delete, key.on_update);
                links.push((
                    order,
                    ChildLink {
                        table,
                        key: number,
                        index,
                        columns,
                        parent_columns,
                        on_delete,
                        on_update,
                    },
                ));
            }
        }
        links.sort_by(|(one, _), (other, _)| one.cmp(other));
        graph.tables[at].table.children = links.into_iter().map(|(_, link)| link).collect();
        Ok(())
    }
}
