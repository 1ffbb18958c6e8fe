//! Opening and closing the storage engine with the settings of the server.

use crate::log;
use crate::serve::{ServeError, Surroundings};
use engine::{Engine, EngineOptions, FLUSHERS_MAX, RecoverySummary};
use session::variables::{GlobalVariables, Origin, VariableValue, registry};
use std::sync::Arc;

/// Exit code of a server whose storage has failed; recovery at the next start is the repair.
const EXIT_STORAGE_FAILED: i32 = 3;

/// An opened engine.
pub struct OpenedEngine {
    engine: Arc<Engine>,
    /// The database was made by this start.
    pub created: bool,
}

/// Opens the engine of a data directory, which recovers it or initialises it.
pub fn open(
    directory: &str,
    globals: &GlobalVariables,
    surroundings: &dyn Surroundings,
) -> Result<OpenedEngine, ServeError> {
    let pool_bytes = globals.value("innodb_buffer_pool_size").number();
    let pool_bytes = usize::try_from(pool_bytes).unwrap_or(usize::MAX);
    let mut options = EngineOptions::new(directory, pool_bytes);
    options.log_cap_bytes = globals.value("innodb_log_file_size").number();
    let block_bytes = globals.value("innodb_log_write_ahead_size").number();
    if !block_bytes.is_power_of_two() {
        let told = format!("innodb_log_write_ahead_size={block_bytes} is not a power of two");
        return Err(ServeError::Engine(told));
    }
    options.log_block_bytes_min = block_bytes as usize;
    let cleaners = registry().find("innodb_page_cleaners");
    options.flushers = cleaners
        .filter(|definition| globals.origin(definition) == Origin::Option)
        .map(|definition| globals.get(definition).number() as usize);
    let flushers = options.flushers.unwrap_or_else(runtime::worker_count).min(FLUSHERS_MAX);
    globals.set_known("innodb_page_cleaners", VariableValue::Unsigned(flushers as u64));
    options.rollback_on_timeout = globals.value("innodb_rollback_on_timeout").is_on();
    options.on_fatal = Arc::new(|failure| {
        log::error(&format!("storage has failed, the server stops: {failure}"));
        std::process::exit(EXIT_STORAGE_FAILED)
    });
    options.on_damage = Arc::new(log::error);
    options.on_disk_full = Arc::new(log::error);
    surroundings.tune(&mut options);
    let opened = Engine::open(options);
    let (engine, summary) = opened.map_err(|error| ServeError::Engine(error.to_string()))?;
    report(&summary);
    Ok(OpenedEngine { engine, created: summary.created })
}

fn report(summary: &RecoverySummary) {
    if summary.created || summary.was_clean {
        return;
    }
    let [mapping, reading, redo, undo] = summary.phase_micros.map(|micros| micros as f64 / 1e6);
    log::note(&format!(
        "recovered after a crash in {:.3} s: {} log records read, {} page changes redone, {} \
         transactions rolled back ({} changes); pages {mapping:.3} s, log {reading:.3} s, redo \
         {redo:.3} s, undo {undo:.3} s",
        summary.micros as f64 / 1e6,
        summary.records,
        summary.redone,
        summary.losers,
        summary.undone
    ));
}

impl OpenedEngine {
    /// The engine for the catalog.
    pub fn engine(&self) -> Arc<dyn engine_api::Engine> {
        self.engine.clone()
    }

    /// Writes what is not written and closes, so that the next start has nothing to redo.
    pub fn close(self) {
        if let Err(error) = self.engine.close() {
            log::error(&format!("the storage engine did not close in order: {error}"));
        }
    }
}
