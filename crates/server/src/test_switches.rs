//! What tests of the real process may turn, by the environment. Builds without debug assertions,
//! which are those that people run, do not look at it.

use engine::EngineOptions;
use std::time::Duration;

/// Switches on the defect that `GANNET_MUTANT` names: a test of the tests must find it.
pub(crate) fn switch_mutant() {
    if cfg!(debug_assertions)
        && let Ok(name) = std::env::var("GANNET_MUTANT")
    {
        crate::log::warning(&format!("GANNET_MUTANT: the defect '{name}' is switched on"));
        base::mutant::switch(Some(&name));
    }
}

/// Makes the store's units small, so that little data has many of them.
pub(crate) fn tune(options: &mut EngineOptions) {
    if !cfg!(debug_assertions) {
        return;
    }
    if let Some(bytes) = number("GANNET_SEGMENT_BYTES") {
        options.segment_bytes = bytes;
        options.segments_per_file = 8;
        options.group_bytes = options.group_bytes.min(bytes as usize / 8);
    }
    if let Some(bytes) = number("GANNET_LOG_FILE_BYTES") {
        options.first_log_file_bytes = bytes;
        options.max_log_file_bytes = bytes * 4;
        options.log_cap_bytes = bytes * 8;
    }
    if let Some(milliseconds) = number("GANNET_CHECKPOINT_MS") {
        options.checkpoint_interval = Duration::from_millis(milliseconds);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}
