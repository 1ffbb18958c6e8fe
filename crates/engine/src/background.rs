//! Fibers that work beside the transactions: purge and checkpoint.

use crate::core::Core;
use crate::purge;
use runtime::sync::Mutex;
use runtime::{JoinHandle, WaitClass};
use std::sync::Arc;

/// The running fibers.
pub(crate) struct Background {
    fibers: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    /// Starts them.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let purging = core.clone();
        let fibers = vec![runtime::spawn("purge", move || purge_loop(&purging))];
        Self { fibers: Mutex::new(fibers) }
    }

    /// Waits for their end; they end after [`Core::begin_stop`].
    pub(crate) fn join(&self) {
        let fibers = std::mem::take(&mut *self.fibers.lock());
        for fiber in fibers {
            if let Err(panic) = fiber.join() {
                panic.resume();
            }
        }
    }
}

fn purge_loop(core: &Core) {
    while !core.is_stopping() {
        let deadline = runtime::now() + core.options.purge_interval;
        core.purge_wanted.take(WaitClass::Idle, Some(deadline));
        if core.is_stopping() {
            break;
        }
        // What fails is tried again in the next round; a failed log ends the process elsewhere.
        if purge::round(core).is_err() {
            base::probe!("engine.purge.round_failed");
        }
    }
}
