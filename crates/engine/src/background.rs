//! Fibers that work beside the transactions: purge, the merges that follow it, checkpoint, the
//! pages of dropped trees, the estimates of tables and, after some starts, a sweep.

use crate::core::Core;
use crate::{checkpoint, drops, purge, statistics, thinning};
use runtime::sync::Mutex;
use runtime::{JoinHandle, WaitClass, Wake};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Between two checkpoints at most, while the log finds no space for its next file.
const SHORT_OF_LOG_PAUSE: Duration = Duration::from_millis(200);

/// Between two checkpoints it is looked so often whether one would give back a file of the log.
const CHECKPOINT_LOOKS: u32 = 5;

/// The running fibers.
pub(crate) struct Background {
    fibers: Mutex<Vec<JoinHandle<()>>>,
}

impl Background {
    /// Starts them.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let (purging, checkpointing, sampling) = (core.clone(), core.clone(), core.clone());
        let (dropping, merging) = (core.clone(), core.clone());
        let mut fibers = vec![
            runtime::spawn("purge", move || purge_loop(&purging)),
            runtime::spawn("checkpoint", move || checkpoint_loop(&checkpointing)),
            runtime::spawn("statistics", move || statistics_loop(&sampling)),
            runtime::spawn("drop", move || drops::run(&dropping)),
            runtime::spawn("merge", move || thinning::run(&merging)),
        ];
        if core.sweep_pending.load(Ordering::Relaxed) {
            let sweeping = core.clone();
            fibers.push(runtime::spawn("sweep", move || purge::sweep(&sweeping)));
        }
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

fn checkpoint_loop(core: &Core) {
    // What redo has brought up to date is written at once: if this run is cut short too, the next
    // start need not repeat it.
    if core.store.flush_until(core.wal.end()).is_err() {
        base::probe!("engine.first_flush_failed");
    }
    while !core.is_stopping() {
        let is_short = core.wal.is_short_of_space();
        if is_short {
            // Ahead of their pace, so that checkpoints give back every older file.
            core.wal.retry_space();
            core.store.hasten_flush(core.wal.end());
        }
        // What fails is tried again; a failed log or data file ends the process elsewhere.
        if checkpoint::is_due(core) && checkpoint::checkpoint(core, false).is_err() {
            base::probe!("engine.checkpoint.failed");
        }
        let interval = core.options.checkpoint_interval;
        let pause = if is_short { interval.min(SHORT_OF_LOG_PAUSE) } else { interval };
        wait_for_checkpoint(core, pause);
        if is_short {
            // Those who wait for space ask for more than would help.
            runtime::sleep(pause / 4);
        }
    }
}

/// Waits until the next checkpoint is due: after `pause`, when one is asked for, or when one would
/// give back a file of the log. Of a log that grows fast several would be given back at once, and
/// as many kept as spares until then (wal/src/spares.rs, invariant 4).
fn wait_for_checkpoint(core: &Core, pause: Duration) {
    for _ in 0..CHECKPOINT_LOOKS {
        let look = runtime::now() + pause / CHECKPOINT_LOOKS;
        let woken = core.checkpoint_wanted.take(WaitClass::Idle, Some(look));
        let is_asked_for = woken != Wake::TimedOut;
        if is_asked_for || core.is_stopping() || checkpoint::gives_back_log(core) {
            return;
        }
    }
}

fn statistics_loop(core: &Core) {
    while !core.is_stopping() {
        let deadline = runtime::now() + core.options.statistics_interval;
        core.statistics_wanted.take(WaitClass::Idle, Some(deadline));
        statistics::round(core);
    }
}
