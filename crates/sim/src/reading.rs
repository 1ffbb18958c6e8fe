//! Looking at whole tables.

use crate::client::promise_of;
use crate::session::{Session, Stop, check};
use crate::world::{OpenTable, SLOTS, World, options, sure};
use engine_api::{
    EngineError, FlushPolicy, KeyRange, LockMode, LockWait, RowBuffer, ScanDirection, ScanOptions,
    Transaction,
};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// All rows of a table by its clustered index.
pub fn read_all(table: &OpenTable, trx: &mut dyn Transaction) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let options = ScanOptions {
        index: 0,
        range: KeyRange::all(),
        direction: ScanDirection::Forward,
        lock: LockMode::None,
        lock_wait: LockWait::Wait,
        covering: false,
    };
    let mut cursor = sure("scan", table.table.scan(trx, options));
    let mut rows = BTreeMap::new();
    let mut row = RowBuffer::default();
    while sure("next", cursor.next(trx, &mut row)) {
        let former = rows.insert(row.key.clone(), row.payload.clone());
        assert!(former.is_none(), "violation: a scan met a row twice");
    }
    rows
}

/// CHECK TABLE finds nothing.
pub fn check_table(table: &OpenTable) {
    match table.table.check() {
        Ok(findings) => assert!(findings.is_empty(), "violation: CHECK TABLE: {findings:?}"),
        Err(EngineError::Unsupported(_)) => {}
        Err(error) => panic!("violation: CHECK TABLE failed: {error}"),
    }
}

/// Reads every key that ever had a row: what is read is right, or an error that faults explain.
/// Returns how many were right.
pub fn verify_rows(world: &Arc<World>) -> u64 {
    let promise = promise_of(FlushPolicy::EverySecond);
    let mut session = Session::begin(world.clone(), options(), promise);
    let mut right = 0;
    for table in (0..SLOTS).filter_map(|slot| world.table(slot)) {
        let keys = world.model().keys(table.model_table, Bound::Unbounded, Bound::Unbounded);
        for key in keys {
            let mut row = RowBuffer::default();
            let read = session
                .call(|trx| table.table.get(trx, &key, LockMode::None, LockWait::Wait, &mut row));
            match read {
                Ok((begin, found)) => {
                    let seen = found.then_some(&row.payload[..]);
                    let snapshot = session.snapshot(begin);
                    check(world.model().observe(snapshot, table.model_table, &key, seen));
                    right += 1;
                }
                Err(Stop::Statement) => {}
                Err(Stop::Transaction) => panic!("violation: a plain read ended its transaction"),
            }
        }
    }
    session.roll_back();
    right
}
