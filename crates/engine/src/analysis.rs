//! First pass over the log: what the redo pass and the undo of losers must know.
//!
//! 1. Of a transaction without a commit or abort record its newest change that was not undone is
//!    kept, and nothing else: transactions may be long. The changes name each other backwards.
//! 2. A compensation record names the next change to undo: all later changes of that transaction
//!    have been undone.
//! 3. A prepared transaction is no loser unless its rollback has begun: then it has a
//!    compensation record behind the prepare record.
//! 4. A page that was freed, or formatted anew, needs no record below that (amendment 6): its
//!    former content may be gone.

use crate::counters::RecoveredCounters;
use crate::prepared;
use base::{Lsn, PageId, TrxId};
use std::collections::{BTreeMap, HashMap};
use txn::LoggedUndo;
use txn::undo::word_offset;
use wal::{LogicalUndo, Record, RecordKind, RecordView};

/// Pages of an extent, which are freed together when a tree is dropped.
const EXTENT_PAGES: u64 = pagestore::space::EXTENT_PAGES;

/// What the log tells.
#[derive(Default)]
pub(crate) struct Analysis {
    /// Transactions without an end and the start of the newest change not undone; zero: none.
    pub(crate) losers: BTreeMap<TrxId, Lsn>,
    /// Transactions that were prepared and neither ended nor began to roll back, with the names
    /// given to them.
    pub(crate) prepared: BTreeMap<TrxId, Vec<u8>>,
    /// Starts of records, about so many bytes of log apart: where it can be read from again.
    pub(crate) marks: Vec<Lsn>,
    window_bytes: u64,
    pub(crate) counters: RecoveredCounters,
    /// One above the highest transaction number met.
    pub(crate) next_trx: u64,
    /// Above the offset of every word met.
    pub(crate) undo_high_water: u64,
    pub(crate) records: u64,
    /// Page -> end of the last record that freed or formatted it.
    renewed_pages: HashMap<u64, Lsn>,
    renewed_extents: HashMap<u64, Lsn>,
}

impl Analysis {
    /// Nothing read yet; the losers will be undone in windows of so many bytes of log.
    pub(crate) fn new(window_bytes: u64) -> Self {
        Self { window_bytes, ..Self::default() }
    }

    /// Takes in one record; the error says what is malformed.
    pub(crate) fn note(&mut self, record: &Record<'_>) -> Result<(), String> {
        let view = RecordView::parse(record.bytes).map_err(|error| error.to_string())?;
        self.records += 1;
        let window_ends = |mark: &Lsn| record.start.get() >= mark.get() + self.window_bytes;
        if self.marks.last().is_none_or(window_ends) {
            self.marks.push(record.start);
        }
        self.next_trx = self.next_trx.max(view.trx().get() + 1);
        for op in view.page_ops() {
            if is_format(op.op) {
                self.renewed_pages.insert(op.pid.get(), record.end);
            }
            for freed in pagestore::space::freed_by(op.pid, op.op, op.payload)? {
                self.note_freed(freed, record.end);
            }
        }
        match view.kind() {
            RecordKind::Change => self.note_change(&view, record.start)?,
            RecordKind::Compensation => self.note_compensation(&view)?,
            RecordKind::Commit | RecordKind::Abort => {
                self.losers.remove(&view.trx());
                self.prepared.remove(&view.trx());
            }
            RecordKind::Prepare if !base::mutant!("prepared_forgotten") => {
                let name = prepared::name_of(view.logical()).ok_or("malformed prepare record")?;
                self.prepared.insert(view.trx(), name.to_vec());
            }
            RecordKind::Meta => {
                let noted = self.counters.note(view.logical());
                noted.ok_or("malformed counter record")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn note_freed(&mut self, freed: std::ops::Range<PageId>, end: Lsn) {
        let (first, last) = (freed.start.get(), freed.end.get());
        if last - first == EXTENT_PAGES && first.is_multiple_of(EXTENT_PAGES) {
            self.renewed_extents.insert(first / EXTENT_PAGES, end);
            return;
        }
        for number in first..last {
            self.renewed_pages.insert(number, end);
        }
    }

    fn note_change(&mut self, view: &RecordView<'_>, start: Lsn) -> Result<(), String> {
        let undo = LogicalUndo::parse(view.logical()).map_err(|error| error.to_string())?;
        let logged = LoggedUndo::parse(undo.before).ok_or("malformed undo part")?;
        self.undo_high_water = self.undo_high_water.max(word_offset(logged.word) + 1);
        self.losers.insert(view.trx(), start);
        Ok(())
    }

    fn note_compensation(&mut self, view: &RecordView<'_>) -> Result<(), String> {
        let bytes = view.logical().first_chunk::<8>().ok_or("malformed compensation record")?;
        let undo_next = Lsn::new(u64::from_le_bytes(*bytes));
        self.prepared.remove(&view.trx());
        if let Some(newest) = self.losers.get_mut(&view.trx()) {
            *newest = undo_next;
        }
        Ok(())
    }

    /// Whether a record ending at `end` says nothing any more about this page.
    pub(crate) fn is_outdated(&self, page: PageId, end: Lsn) -> bool {
        if base::mutant!("redo_of_freed_pages") {
            return false;
        }
        let number = page.get();
        let newer = |renewed: Option<&Lsn>| renewed.is_some_and(|renewed| *renewed > end);
        newer(self.renewed_pages.get(&number))
            || newer(self.renewed_extents.get(&(number / EXTENT_PAGES)))
    }
}

/// Whether an op gives its page a new content whatever was there.
pub(crate) fn is_format(op: u8) -> bool {
    btree::is_format(op) || op == pagestore::space::OP_MAP_FORMAT
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::TreeId;
    use txn::BeforeImage;
    use wal::{RecordBuilder, UndoKind};

    fn note(analysis: &mut Analysis, at: u64, build: impl FnOnce(&mut RecordBuilder)) {
        let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(5));
        build(&mut builder);
        let bytes = builder.to_bytes();
        let (start, end) = (Lsn::new(at), Lsn::new(at + 100));
        analysis.note(&Record { start, end, bytes: &bytes }).unwrap();
    }

    fn change(builder: &mut RecordBuilder, word: u64) {
        let undo = LogicalUndo {
            tree: TreeId::new(20).get(),
            kind: UndoKind::Insert,
            prev_lsn: Lsn::ZERO,
            key: b"k",
            before: &[],
        };
        undo.encode(builder.logical_mut());
        let before = BeforeImage::Same;
        LoggedUndo { word, before_word: 0, before_flags: 0, before }.encode(builder.logical_mut());
    }

    #[test]
    fn losers_keep_what_is_not_undone() {
        let mut analysis = Analysis::new(150);
        for at in [1000, 1100, 1200] {
            note(&mut analysis, at, |builder| change(builder, at));
        }
        note(&mut analysis, 1300, |builder| {
            builder.set_kind(RecordKind::Compensation);
            builder.logical(&1000u64.to_le_bytes());
        });
        assert_eq!(analysis.losers[&TrxId::new(5)], Lsn::new(1000));
        assert_eq!((analysis.next_trx, analysis.undo_high_water), (6, 1201));
        note(&mut analysis, 1400, |builder| builder.set_kind(RecordKind::Commit));
        assert!(analysis.losers.is_empty());
        assert_eq!(analysis.marks, [1000, 1200, 1400].map(Lsn::new));
    }
}
