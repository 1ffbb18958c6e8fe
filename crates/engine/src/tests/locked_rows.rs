//! Scans that do not wait, over a row that another transaction has locked: shared and exclusive,
//! forward and backward, by the clustered index and by secondary ones.

use super::*;
use engine_api::EngineError;
use std::ops::Bound;

const LAST: i64 = 5;
const LOCKED: i64 = 3;

/// What the other transaction has done to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Shared,
    Exclusive,
    Changed,
    Deleted,
}

/// The ids of the rows that a scan behind id 1 gives, and the error that ended it.
fn read(
    t: &Tested,
    trx: &mut dyn Transaction,
    options: ScanOptions,
) -> (Vec<i64>, Option<EngineError>) {
    let mut ids = Vec::new();
    let mut buffer = RowBuffer::default();
    let mut cursor = match t.table.scan(trx, options) {
        Ok(cursor) => cursor,
        Err(error) => return (ids, Some(error)),
    };
    loop {
        match cursor.next(trx, &mut buffer) {
            // Every key ends with the clustered one.
            Ok(true) => ids.extend((1..=LAST).find(|id| buffer.key.ends_with(&t.key(*id)))),
            Ok(false) => return (ids, None),
            Err(error) => return (ids, Some(error)),
        }
    }
}

fn filled() -> (Arc<Engine>, Tested) {
    let engine = new_engine();
    let t = Tested::create(&*engine);
    let mut trx = engine.begin(options());
    for id in 1..=LAST {
        t.insert(&mut *trx, &row(id, id, Some(id), b"c")).unwrap().unwrap();
    }
    trx.commit().unwrap();
    (engine, t)
}

fn hold(t: &Tested, trx: &mut dyn Transaction, how: Hold) {
    match how {
        Hold::Shared => drop(t.get(trx, LOCKED, LockMode::Shared).unwrap().unwrap()),
        Hold::Exclusive => drop(t.get(trx, LOCKED, LockMode::Exclusive).unwrap().unwrap()),
        Hold::Changed => {
            t.update(trx, LOCKED, |row| row.c = b"new".to_vec()).unwrap().unwrap().unwrap();
        }
        Hold::Deleted => assert!(t.delete(trx, LOCKED).unwrap()),
    }
}

/// All scans at one isolation level over a row that is held in one way.
fn scan_over(level: Isolation, how: Hold) {
    let (engine, t) = filled();
    let mut holder = engine.begin(options());
    hold(&t, &mut *holder, how);
    for number in 0..48 {
        let index = number % 3;
        let lock = [LockMode::Shared, LockMode::Exclusive][number / 3 % 2];
        let direction = [ScanDirection::Forward, ScanDirection::Backward][number / 6 % 2];
        let lock_wait = [LockWait::SkipLocked, LockWait::NoWait][number / 12 % 2];
        let covering = number / 24 == 1;
        let what = (level, how, index, lock, direction, lock_wait, covering);
        let mut lower = t.key(1);
        if index == 2 {
            // A value of a column that may be NULL has a byte before it.
            lower.insert(0, 1);
        }
        let range = KeyRange { lower: Bound::Excluded(lower), upper: Bound::Unbounded };
        let options = ScanOptions { index, range, direction, lock, lock_wait, covering };
        let mut trx = engine.begin(isolation(level));
        let (ids, error) = read(&t, &mut *trx, options);
        // A shared covering scan of a locking level reads entries and leaves the rows alone.
        let of_entries = covering && index != 0 && lock == LockMode::Shared;
        let is_in_the_way = match how {
            Hold::Shared => lock == LockMode::Exclusive,
            Hold::Exclusive | Hold::Changed => !of_entries || level == Isolation::ReadCommitted,
            Hold::Deleted => true,
        };
        let mut expected: Vec<i64> = (2..=LAST).collect();
        if direction == ScanDirection::Backward {
            expected.reverse();
        }
        let place = expected.iter().position(|id| *id == LOCKED).unwrap();
        let mut expected_error = None;
        match lock_wait {
            _ if !is_in_the_way => {}
            LockWait::SkipLocked => drop(expected.remove(place)),
            _ => {
                expected.truncate(place);
                expected_error = Some(EngineError::LockNotAvailable);
            }
        }
        assert_eq!((ids, error), (expected, expected_error), "{what:?}");
        trx.rollback().unwrap();
    }
    holder.rollback().unwrap();
    assert!(engine.core.txn.locks().is_empty());
    engine.close().unwrap();
}

#[test]
fn scans_that_do_not_wait_stop_at_or_skip_a_locked_row() {
    for level in [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable] {
        for how in [Hold::Shared, Hold::Exclusive, Hold::Changed, Hold::Deleted] {
            simulate(7, move || scan_over(level, how));
        }
    }
}

/// A row that is not there is kept from coming; not by a transaction that ends with the statement
/// that looked for it and nothing else.
#[test]
fn a_missing_row_is_kept_away_by_who_goes_on() {
    simulate(8, || {
        let (engine, t) = filled();
        let tree = t.table.definition().indexes[0].tree;
        let looks = |ends_with_statement: bool, reads_one_key: bool| {
            let mut trx = engine.begin(TransactionOptions { ends_with_statement, ..options() });
            trx.begin_statement();
            if reads_one_key {
                trx.read_one_key();
            }
            assert!(t.get(&mut *trx, 99, LockMode::Exclusive).unwrap().is_none());
            let keeps = engine.core.txn.begin().is_watched(tree);
            trx.rollback().unwrap();
            keeps
        };
        assert_eq!([looks(false, false), looks(false, true), looks(true, false)], [true; 3]);
        assert!(!looks(true, true));
        assert!(engine.core.txn.locks().is_empty());
        engine.close().unwrap();
    });
}
