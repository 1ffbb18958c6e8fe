//! Creating and dropping tables and indexes.
//!
//! 1. A tree is created before anything names it; the shape that names it is a row of the
//!    dictionary tree, changed within the transaction. If the transaction does not commit, the
//!    tree is an orphan: dropped by the rollback, or by the next start.
//! 2. A tree is dropped after the commit that removed its shape is durable; if a crash comes
//!    first, it is an orphan for the next start.

use crate::core::Core;
use crate::dictionary;
use crate::error::from_tree;
use crate::shape;
use crate::statistics;
use crate::transaction::{EngineTransaction, TreeStep};
use base::{IndexId, TableId, TreeId};
use btree::Tree;
use engine_api::{Result, TableDefinition};

/// Largest page class of a tree.
const CLASS_MAX: u8 = 15;

/// The page class for an index: keys of the declared size must fit an eighth of a page.
fn page_class(core: &Core, table: &TableDefinition, position: usize) -> u8 {
    let row = table.row_layout();
    let key_bytes = |position: usize| -> usize {
        let layout = table.index_layout(&row, position);
        let part = |part: &types::row::KeyColumn| {
            let declared = table.columns.get(part.column).map_or(0, |it| it.column_type.length);
            let units = part.prefix.map_or(declared, |prefix| prefix.min(declared)) as usize;
            // Two bytes of weight a character, an escape here and there, the terminator.
            part.fixed_width().unwrap_or(2 * units + units / 8 + 4)
        };
        layout.parts().iter().map(part).sum()
    };
    let own = if position == 0 { 0 } else { key_bytes(position) };
    let clustered = if table.hidden_row_id { 8 } else { key_bytes(0) };
    let wanted = (own + clustered) * 8;
    let fits = |class: &u8| 1usize << class >= wanted;
    (core.options.page_class..=CLASS_MAX).find(fits).unwrap_or(CLASS_MAX)
}

/// Makes the tree of one index and fills the definition in.
fn create_index_tree(
    trx: &mut EngineTransaction,
    table: &mut TableDefinition,
    position: usize,
) -> Result<Tree> {
    let core = trx.core.clone();
    let class = page_class(&core, table, position);
    let id = TreeId::new(core.counters.take_tree(&core.wal)?);
    let name = format!("{}.{} index {}", table.schema, table.name, table.indexes[position].name);
    crate::storage::set_codec(&core.store, id, &table.options.codec);
    let tree = Tree::create(core.store.clone(), core.wal.clone(), id, class)
        .map_err(|error| from_tree(error, || name.clone()))?;
    core.add_tree(tree.clone(), name, position == 0);
    trx.steps.push(TreeStep::Created { at: trx.trx.undo_count(), tree: id });
    let index = &mut table.indexes[position];
    index.id = IndexId::new(id.get());
    index.tree = id;
    index.root = tree.root();
    index.page_class = class;
    Ok(tree)
}

fn put_shape(trx: &mut EngineTransaction, table: &TableDefinition) -> Result<()> {
    dictionary::set(trx, &shape::shape_key(table.id), Some(&shape::encode(table)))
}

/// Undoes everything a failed call has done.
fn whole<T>(
    trx: &mut EngineTransaction,
    change: impl FnOnce(&mut EngineTransaction) -> Result<T>,
) -> Result<T> {
    trx.prepare_write()?;
    let (changes, steps) = (trx.trx.undo_count(), trx.steps.len());
    let result = change(trx);
    if result.is_err() && trx.steps.len() >= steps {
        trx.undo_to_step(changes, steps)?;
    }
    result
}

/// Creates the trees of a table and fills in its ids.
pub(crate) fn create_table(trx: &mut EngineTransaction, table: &mut TableDefinition) -> Result<()> {
    whole(trx, |trx| {
        for position in 0..table.indexes.len() {
            create_index_tree(trx, table, position)?;
        }
        // The number of the clustered tree is never used again, so it serves for the table too.
        table.id = TableId::new(u64::from(table.indexes[0].tree.get()));
        put_shape(trx, table)
    })
}

/// Gives a table's trees back after the commit.
pub(crate) fn drop_table(trx: &mut EngineTransaction, table: &TableDefinition) -> Result<()> {
    whole(trx, |trx| {
        let at = trx.trx.undo_count();
        for index in &table.indexes {
            trx.steps.push(TreeStep::Dropped { at, tree: index.tree });
        }
        trx.steps.push(TreeStep::Forgotten { at, table: table.id });
        statistics::forget(trx, table.id)?;
        dictionary::set(trx, &shape::shape_key(table.id), None)
    })
}

/// Makes an empty tree for a new index and remembers it in the shape.
pub(crate) fn add_index(
    trx: &mut EngineTransaction,
    table: &mut TableDefinition,
    position: usize,
) -> Result<Tree> {
    let tree = create_index_tree(trx, table, position)?;
    put_shape(trx, table)?;
    Ok(tree)
}

/// Gives the tree of one index back after the commit.
pub(crate) fn drop_index(
    trx: &mut EngineTransaction,
    table: &TableDefinition,
    position: usize,
) -> Result<()> {
    whole(trx, |trx| {
        let at = trx.trx.undo_count();
        trx.steps.push(TreeStep::Dropped { at, tree: table.indexes[position].tree });
        let mut rest = table.clone();
        rest.indexes.remove(position);
        put_shape(trx, &rest)
    })
}

/// Puts changed options into the shape; pages are compressed by them after the commit.
pub(crate) fn change_options(trx: &mut EngineTransaction, table: &TableDefinition) -> Result<()> {
    whole(trx, |trx| {
        let at = trx.trx.undo_count();
        let compression = crate::storage::compression(&table.options.codec);
        for index in &table.indexes {
            trx.steps.push(TreeStep::Compressed { at, tree: index.tree, compression });
        }
        put_shape(trx, table)
    })
}

/// Runs a change that may leave trees half made.
pub(crate) fn guarded<T>(
    trx: &mut EngineTransaction,
    change: impl FnOnce(&mut EngineTransaction) -> Result<T>,
) -> Result<T> {
    whole(trx, change)
}
