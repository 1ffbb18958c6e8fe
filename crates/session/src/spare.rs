//! Engine transactions that have ended without a change and serve again. They are of all sessions,
//! a stack for each worker: the last one used is in the worker's cache, where one that each of
//! thousands of sessions kept for itself would not be.

use engine_api::Transaction;
use runtime::sync::Mutex;

/// Kept for each worker; statements that wait for something at the same time need more.
const KEPT_MAX: usize = 64;

/// Alone in its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Stack(Mutex<Vec<Box<dyn Transaction>>>);

/// See the head of the file.
pub(crate) struct SpareTransactions {
    by_worker: Box<[Stack]>,
}

impl SpareTransactions {
    /// None yet. Runs in a fiber.
    pub(crate) fn new() -> Self {
        let workers = runtime::worker_count().max(1);
        Self { by_worker: (0..workers).map(|_| Stack::default()).collect() }
    }

    fn here(&self) -> &Mutex<Vec<Box<dyn Transaction>>> {
        &self.by_worker[runtime::current_worker() % self.by_worker.len()].0
    }

    /// The one that was used last on this worker.
    pub(crate) fn take(&self) -> Option<Box<dyn Transaction>> {
        self.here().lock().pop()
    }

    /// Keeps one.
    pub(crate) fn put(&self, transaction: Box<dyn Transaction>) {
        let mut kept = self.here().lock();
        if kept.len() < KEPT_MAX {
            return kept.push(transaction);
        }
        drop(kept);
        drop(transaction);
    }

    /// The server stops.
    pub(crate) fn clear(&self) {
        for stack in &self.by_worker {
            let kept = std::mem::take(&mut *stack.0.lock());
            drop(kept);
        }
    }
}
