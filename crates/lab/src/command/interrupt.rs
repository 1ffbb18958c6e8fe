//! Ctrl-C and SIGTERM: the terminal is left as it was, whatever happens.

use crate::driver::Stop;
use crate::progress::Dashboard;
use runtime::sync::Mutex;
use std::process::exit;
use std::sync::Arc;

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// What runs when somebody interrupts.
#[derive(Clone, Default)]
pub(super) struct Interrupted {
    /// Asked to end by the first signal.
    pub(super) stop: Arc<Stop>,
    /// Left at every signal.
    pub(super) dashboard: Arc<Mutex<Option<Arc<Dashboard>>>>,
}

/// From now on the first signal asks runs and loads to end, and the next one ends the program.
pub(super) fn asks() -> Interrupted {
    let interrupted = Interrupted::default();
    let Interrupted { stop, dashboard } = interrupted.clone();
    drop(runtime::spawn("interrupt", move || {
        while runtime::signal::wait().is_some() {
            let shown = dashboard.lock().clone();
            shown.iter().for_each(|dashboard| dashboard.leave());
            if stop.is_asked() {
                exit(INTERRUPTED);
            }
            eprintln!("ending in order, what is there is kept; once more ends at once");
            stop.ask();
        }
    }));
    interrupted
}

/// From now on a signal ends the program.
pub(super) fn ends() {
    drop(runtime::spawn("interrupt", || {
        if runtime::signal::wait().is_some() {
            exit(INTERRUPTED);
        }
    }));
}
