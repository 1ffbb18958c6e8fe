//! Opening and closing the storage engine with the settings of the server.

use crate::log;
use crate::serve::ServeError;
use engine::{Engine, EngineOptions, RecoverySummary};
use session::variables::GlobalVariables;
use std::sync::Arc;

/// An opened engine.
pub struct OpenedEngine {
    engine: Arc<Engine>,
}

/// Opens the engine of a data directory, which recovers it or initialises it.
pub fn open(directory: &str, globals: &GlobalVariables) -> Result<OpenedEngine, ServeError> {
    let pool_bytes = globals.value("innodb_buffer_pool_size").number();
    let pool_bytes = usize::try_from(pool_bytes).unwrap_or(usize::MAX);
    let mut options = EngineOptions::new(directory, pool_bytes);
    options.on_fatal = Arc::new(stop_at_once);
    let opened = Engine::open(options);
    let (engine, summary) = opened.map_err(|error| ServeError::Engine(error.to_string()))?;
    tell(&summary);
    Ok(OpenedEngine { engine })
}

/// What is durable is no longer known: only a recovery can tell, so the process ends here.
fn stop_at_once(reason: &str) {
    log::error(&format!("storage has failed, the server stops: {reason}"));
    std::process::abort();
}

fn tell(summary: &RecoverySummary) {
    if summary.created || summary.was_clean {
        return;
    }
    log::note(&format!(
        "recovered in {} ms: {} log records, {} page changes applied, {} transactions rolled back",
        summary.micros / 1000,
        summary.records,
        summary.redone,
        summary.losers
    ));
}

impl OpenedEngine {
    /// The engine for the catalog.
    pub fn engine(&self) -> Arc<dyn engine_api::Engine> {
        self.engine.clone()
    }

    /// Writes what is not written and closes.
    pub fn close(self) {
        if let Err(error) = self.engine.close() {
            log::error(&format!("the engine did not close in order: {error}"));
        }
    }
}
