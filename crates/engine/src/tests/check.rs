//! CHECK TABLE and `gannet check` find entries that do not agree with the rows, however they differ.

use super::*;
use base::TrxId;
use btree::{Change, EntryBuffer, LogPart, Tree};
use wal::{RecordBuilder, RecordKind};

const ROWS: i64 = 500;
const LOG: LogPart<'static> =
    LogPart { kind: RecordKind::Change, trx: TrxId::new(1), logical: b"" };

/// A table whose indexes are changed behind its back.
struct Desk {
    engine: Arc<Engine>,
    tested: Tested,
}

impl Desk {
    fn new() -> Self {
        let engine = new_engine();
        let tested = Tested::create(&*engine);
        let mut trx = engine.begin(options());
        for id in 0..ROWS {
            let u = (id % 10 != 0).then_some(id * 3);
            tested.insert(&mut *trx, &row(id, id % 50, u, b"some text")).unwrap().unwrap();
        }
        trx.commit().unwrap();
        tested.assert_sound();
        Self { engine, tested }
    }

    fn tree(&self, index: usize) -> Tree {
        self.engine.core.tree(self.tested.table.definition().indexes[index].tree).unwrap()
    }

    /// The key in an index of a row that need not be there.
    fn key(&self, index: usize, row: &Row) -> Vec<u8> {
        let keys = crate::keys::TableKeys::new(self.tested.table.definition());
        let mut key = Vec::new();
        keys.secondary_key(index, &self.tested.encode(row), &mut key).unwrap();
        key
    }

    fn remove(&self, index: usize, row: &Row) {
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        let mut remove = |change: &mut Change<'_>| {
            assert!(change.entry().is_some());
            change.remove(LOG);
        };
        self.tree(index).modify(&self.key(index, row), &mut record, &mut remove).unwrap();
    }

    /// Adds an entry like that of row 1.
    fn add(&self, index: usize, new: &Row) {
        let mut like = EntryBuffer::new();
        assert!(self.tree(index).get(&self.key(index, &stored(1)), &mut like).unwrap());
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
        let mut add = |change: &mut Change<'_>| {
            change.insert(like.flags, like.word, &like.payload, LOG);
        };
        self.tree(index).modify(&self.key(index, new), &mut record, &mut add).unwrap();
    }

    /// What is found, in the first index of the findings.
    fn findings(&self) -> Vec<String> {
        let found = self.tested.table.check().unwrap();
        assert!(found.iter().all(|finding| finding.object == found[0].object), "one index only");
        found.into_iter().map(|finding| finding.detail).collect()
    }
}

/// A row as it was put in.
fn stored(id: i64) -> Row {
    row(id, id % 50, (id % 10 != 0).then_some(id * 3), b"")
}

/// Changes an index and looks for all of these words, and for as many findings.
fn check(change: impl FnOnce(&Desk) + 'static, wanted: &'static [&'static str]) {
    simulate(3, move || {
        let desk = Desk::new();
        change(&desk);
        let found = desk.findings();
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.contains(wanted), "{found:?}");
        }
    });
}

#[test]
fn an_entry_that_is_missing_is_found() {
    check(|desk| desk.remove(1, &stored(77)), &["the 499 entries are not those of 500 rows"]);
    check(|desk| desk.remove(2, &stored(77)), &["the 499 entries are not those of 500 rows"]);
}

#[test]
fn an_entry_too_many_is_found() {
    check(|desk| desk.add(1, &row(ROWS, 3, None, b"")), &["has no row", "the 501 entries"]);
    check(|desk| desk.add(1, &row(77, 3, None, b"")), &["differs from", "the 501 entries"]);
}

#[test]
fn an_entry_in_the_place_of_another_is_found() {
    check(
        |desk| {
            desk.remove(1, &stored(77));
            desk.add(1, &row(ROWS, 27, None, b""));
        },
        &["has no row", "the 500 entries"],
    );
    check(
        |desk| {
            desk.remove(1, &stored(77));
            desk.add(1, &row(77, 28, None, b""));
        },
        &["differs from its row's key", "the 500 entries"],
    );
    check(
        |desk| {
            desk.remove(2, &stored(77));
            desk.add(2, &row(77, 0, None, b""));
        },
        &["differs from its row's key", "the 500 entries"],
    );
}

#[test]
fn a_unique_value_twice_is_found() {
    check(
        |desk| {
            desk.remove(2, &stored(77));
            desk.add(2, &row(77, 0, Some(78 * 3), b""));
        },
        &["two entries with the unique value", "differs from its row's key", "the 500 entries"],
    );
}
