//! A table in the cache.

use crate::information_schema::{self, VirtualTable};
use crate::{CatalogError, MetadataLock, Result, ViewDefinition};
use engine_api::{Engine, Table, TableDefinition};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use types::row::{IndexLayout, RowLayout};

/// The layouts of a table, made once for all statements.
#[derive(Debug)]
pub struct TableLayouts {
    /// Rows.
    pub row: Arc<RowLayout>,
    /// Keys of each index, in the order of the definition.
    pub indexes: Vec<IndexLayout>,
}

/// Which estimates of a table a plan was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimateAge {
    analyses: u64,
    /// Changes of the table at which the estimates are too old.
    changes_max: u64,
}

/// Changes of a table that never make its estimates too old.
const CHANGES_FREE: u64 = 1000;

/// A table as the cache holds it: one version of its definition and, once somebody needed it,
/// the engine's handle.
pub struct TableEntry {
    /// Its query, if it is a view.
    view: Option<Box<ViewDefinition>>,
    definition: Arc<TableDefinition>,
    engine: Arc<dyn Engine>,
    layouts: OnceLock<TableLayouts>,
    opened: OnceLock<Arc<dyn Table>>,
    replaced: AtomicBool,
    /// How often ANALYZE was asked for.
    analyses: AtomicU64,
    lock: Arc<MetadataLock>,
    is_temporary: bool,
}

impl TableEntry {
    pub(crate) fn new(
        definition: TableDefinition,
        engine: Arc<dyn Engine>,
        lock: Arc<MetadataLock>,
    ) -> Arc<Self> {
        Arc::new(Self::make(definition, engine, lock, false))
    }

    /// A temporary table.
    pub(crate) fn new_temporary(
        definition: TableDefinition,
        engine: Arc<dyn Engine>,
        lock: Arc<MetadataLock>,
    ) -> Arc<Self> {
        Arc::new(Self::make(definition, engine, lock, true))
    }

    fn make(
        definition: TableDefinition,
        engine: Arc<dyn Engine>,
        lock: Arc<MetadataLock>,
        is_temporary: bool,
    ) -> Self {
        Self {
            lock,
            view: None,
            definition: Arc::new(definition),
            engine,
            layouts: OnceLock::new(),
            opened: OnceLock::new(),
            replaced: AtomicBool::new(false),
            analyses: AtomicU64::new(0),
            is_temporary,
        }
    }

    /// Whether one session alone knows it.
    pub fn is_temporary(&self) -> bool {
        self.is_temporary
    }

    /// A view; its definition describes its columns.
    pub(crate) fn new_view(
        definition: TableDefinition,
        view: ViewDefinition,
        engine: Arc<dyn Engine>,
        lock: Arc<MetadataLock>,
    ) -> Arc<Self> {
        let mut entry = Self::new(definition, engine, lock);
        if let Some(entry) = Arc::get_mut(&mut entry) {
            entry.view = Some(Box::new(view));
        }
        entry
    }

    /// What it is if it is a view.
    pub fn view(&self) -> Option<&ViewDefinition> {
        self.view.as_deref()
    }

    /// The metadata lock of its name.
    pub fn lock(&self) -> &Arc<MetadataLock> {
        &self.lock
    }

    /// The definition.
    pub fn definition(&self) -> &Arc<TableDefinition> {
        &self.definition
    }

    /// How its rows and keys are laid out.
    pub fn layouts(&self) -> &TableLayouts {
        self.layouts.get_or_init(|| {
            let row = Arc::new(self.definition.row_layout());
            let indexes = 0..self.definition.indexes.len();
            let indexes = indexes.map(|at| self.definition.index_layout(&row, at)).collect();
            TableLayouts { row, indexes }
        })
    }

    /// The engine's table, if it is open.
    pub fn open_handle(&self) -> Option<&Arc<dyn Table>> {
        self.opened.get()
    }

    /// The engine's table; opened at the first call. Fails if its trees are damaged, or it is a
    /// view.
    pub fn handle(&self) -> Result<&Arc<dyn Table>> {
        if self.view.is_some() {
            let (schema, name) = (&self.definition.schema, &self.definition.name);
            return Err(CatalogError::NotBaseTable(schema.clone(), name.clone()));
        }
        if let Some(table) = self.opened.get() {
            return Ok(table);
        }
        // Opening may read pages, so it is done before: of two who do it at a time one is lost.
        let table = self.engine.open_table(self.definition.clone())?;
        Ok(self.opened.get_or_init(|| table))
    }

    /// The age of a plan's estimates that are taken now.
    pub fn estimate_age(&self) -> EstimateAge {
        let analyses = self.analyses.load(Ordering::Relaxed);
        let changes_max = match self.handle() {
            Ok(table) => table.changes() + (table.statistics().rows / 2).max(CHANGES_FREE),
            Err(_) => u64::MAX,
        };
        EstimateAge { analyses, changes_max }
    }

    /// Whether estimates of this age still serve: no ANALYZE, and not half the table changed.
    pub fn is_of_age(&self, age: &EstimateAge) -> bool {
        let changes = self.opened.get().map_or(0, |table| table.changes());
        age.analyses == self.analyses.load(Ordering::Relaxed) && changes <= age.changes_max
    }

    /// ANALYZE: plans are to be made anew.
    pub fn note_analysis(&self) {
        self.analyses.fetch_add(1, Ordering::Relaxed);
    }

    /// The name means something else from now on.
    pub(crate) fn set_replaced(&self) {
        self.replaced.store(true, Ordering::Release);
    }

    /// Still what its name means: not dropped, renamed or altered since.
    pub fn is_current(&self) -> bool {
        !self.replaced.load(Ordering::Acquire)
    }
}

/// What a table name means.
#[derive(Clone)]
pub enum TableRef {
    /// A table of the engine.
    Base(Arc<TableEntry>),
    /// A table of information_schema.
    Virtual(&'static VirtualTable),
    /// A view.
    View(Arc<TableEntry>),
}

impl TableRef {
    /// The engine's table; information_schema can be read only (1044).
    pub fn base(self) -> Result<Arc<TableEntry>> {
        match self {
            Self::Base(entry) => Ok(entry),
            Self::View(view) => {
                let (schema, name) = (&view.definition().schema, &view.definition().name);
                Err(CatalogError::NotBaseTable(schema.clone(), name.clone()))
            }
            Self::Virtual(_) => {
                Err(CatalogError::SystemDatabase(information_schema::SCHEMA_NAME.to_string()))
            }
        }
    }
}
