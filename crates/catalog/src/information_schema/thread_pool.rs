//! The THREAD_POOL tables. A group is a worker, the reserved one the last; a thread of MariaDB's
//! pool is the fiber of a statement here; a listener is a worker's event loop.

use super::{Row, Scope};
use crate::Result;
use runtime::{WaitClass, WorkerFigures};
use types::Value;

fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn each_worker(row: impl Fn(&WorkerFigures) -> Vec<u64>) -> Vec<Row> {
    let numbered = |(number, worker): (usize, &WorkerFigures)| {
        let values = row(worker).into_iter().map(count);
        std::iter::once(count(number as u64)).chain(values).collect()
    };
    runtime::worker_figures().iter().enumerate().map(numbered).collect()
}

pub(super) fn groups(_: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(each_worker(|worker| {
        let waiting = worker.statements.saturating_sub(worker.active);
        let stalled = u64::from(worker.is_stalled);
        let active = worker.statements - waiting;
        vec![worker.connections, worker.statements, active, waiting, worker.queued, 1, stalled]
    }))
}

pub(super) fn queues(_: &Scope<'_>) -> Result<Vec<Row>> {
    let row = |waiting: &runtime::QueuedConnection| {
        vec![
            count(waiting.worker as u64),
            count(waiting.position as u64),
            // High is 0, low is 1.
            count(u64::from(!waiting.urgent)),
            Value::UInt(waiting.id),
            count(waiting.waited_micros),
        ]
    };
    Ok(runtime::queued_connections().iter().map(row).collect())
}

pub(super) fn statistics(_: &Scope<'_>) -> Result<Vec<Row>> {
    Ok(each_worker(|worker| {
        vec![
            worker.begun,
            worker.begun_by_stall,
            worker.sleeps,
            worker.woken_for_backlog,
            worker.throttles,
            worker.slices,
            worker.sleeps,
            worker.polls,
            worker.stolen,
            worker.begun,
        ]
    }))
}

/// MariaDB's reasons in its order, each with the waits of statements that are of its kind.
const REASONS: &[(&str, &[WaitClass])] = &[
    (
        "UNKNOWN",
        &[
            WaitClass::Other,
            WaitClass::Join,
            WaitClass::Helper,
            WaitClass::FiberMutex,
            WaitClass::FreeFrame,
            WaitClass::LogSpace,
            WaitClass::Admission,
            WaitClass::Idle,
        ],
    ),
    ("SLEEP", &[WaitClass::Sleep]),
    ("DISKIO", &[WaitClass::FileRead, WaitClass::FileWrite, WaitClass::PageRead]),
    ("ROW_LOCK", &[WaitClass::RowLock]),
    ("GLOBAL_LOCK", &[]),
    ("META_DATA_LOCK", &[WaitClass::MetadataLock]),
    ("TABLE_LOCK", &[]),
    ("USER_LOCK", &[]),
    ("BINLOG", &[]),
    ("GROUP_COMMIT", &[WaitClass::LogDurable]),
    ("SYNC", &[WaitClass::FileSync]),
    ("NET", &[WaitClass::Network]),
];

pub(super) fn waits(_: &Scope<'_>) -> Result<Vec<Row>> {
    let waits = runtime::statement_wait_counts();
    let row = |(reason, classes): &(&'static str, &[WaitClass])| {
        let of_reason = waits.iter().filter(|(class, _)| classes.contains(class));
        let sum = of_reason.map(|(_, number)| number).sum();
        vec![Value::text(*reason), count(sum)]
    };
    Ok(REASONS.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_has_one_reason() {
        for class in WaitClass::ALL {
            let reasons = REASONS.iter().filter(|(_, classes)| classes.contains(&class));
            assert_eq!(reasons.count(), 1, "{class:?}");
        }
    }
}
