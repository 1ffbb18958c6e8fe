//! Opening and closing the storage engine with the settings of the server.

use crate::serve::ServeError;
use engine::memory::MemoryEngine;
use session::variables::GlobalVariables;
use std::sync::Arc;

/// An opened engine.
pub struct OpenedEngine {
    engine: Arc<MemoryEngine>,
}

/// Opens the engine of a data directory, which recovers it or initialises it.
pub fn open(_directory: &str, _globals: &GlobalVariables) -> Result<OpenedEngine, ServeError> {
    Ok(OpenedEngine { engine: Arc::new(MemoryEngine::new()) })
}

impl OpenedEngine {
    /// The engine for the catalog.
    pub fn engine(&self) -> Arc<dyn engine_api::Engine> {
        self.engine.clone()
    }

    /// Writes what is not written and closes.
    pub fn close(self) {}
}
