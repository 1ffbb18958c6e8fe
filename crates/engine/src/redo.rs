//! Second pass over the log: every page is brought up to its end.
//!
//! 1. An op is applied only to a page that has exactly the LSN the op names as the one before;
//!    pages at or above the record have it already. So redo may be cut off and begin again.
//! 2. Records are applied one after the other, in order; the pages they need are asked for some
//!    records ahead, so that the device reads many at a time.
//! 3. A page found damaged is left alone with all its records: it stays an error for those who
//!    read it, and everything else is served.

use crate::analysis::{Analysis, is_format};
use crate::losers::LogRange;
use crate::recovery::OpenError;
use base::Lsn;
use pagestore::{PageStore, StoreError};
use std::collections::VecDeque;
use wal::{PageOpView, Reader, Record, RecordKind, RecordView};

type Result<T> = std::result::Result<T, OpenError>;

/// Records read ahead at most.
const AHEAD_RECORDS: usize = 192;
/// Bytes of records read ahead, about.
const AHEAD_BYTES: usize = 1 << 20;
/// Of so many pages of the pool one may be asked for ahead.
const POOL_SHARE: usize = 8;

/// The pass.
pub(crate) struct Redo<'a> {
    pub(crate) store: &'a PageStore,
    pub(crate) analysis: &'a Analysis,
    /// Pages that the pool holds, about.
    pub(crate) pool_pages: usize,
}

/// A record waiting for its turn.
#[derive(Default)]
struct Waiting {
    start: Lsn,
    end: Lsn,
    bytes: Vec<u8>,
}

impl Redo<'_> {
    /// Applies the log from `from` on; returns the number of ops applied.
    pub(crate) fn run(&self, log: &LogRange<'_>, from: Lsn) -> Result<u64> {
        let reader = Reader::open(log.directory, log.uuid, from, log.end)?;
        let mut reader = reader.complete_at(log.end);
        let records_max = (self.pool_pages / POOL_SHARE).clamp(1, AHEAD_RECORDS);
        let mut ahead: VecDeque<Waiting> = VecDeque::new();
        let (mut spare, mut bytes_ahead, mut applied) = (Vec::new(), 0, 0);
        loop {
            while ahead.len() < records_max && bytes_ahead < AHEAD_BYTES {
                let Some(record) = reader.next_record()? else { break };
                let mut waiting: Waiting = spare.pop().unwrap_or_default();
                (waiting.start, waiting.end) = (record.start, record.end);
                waiting.bytes.clear();
                waiting.bytes.extend_from_slice(record.bytes);
                bytes_ahead += record.bytes.len();
                self.ask_for_pages(&record);
                ahead.push_back(waiting);
            }
            let Some(waiting) = ahead.pop_front() else { return Ok(applied) };
            bytes_ahead -= waiting.bytes.len();
            let (start, end) = (waiting.start, waiting.end);
            applied += self.apply_record(&Record { start, end, bytes: &waiting.bytes })?;
            spare.push(waiting);
            runtime::yield_if_due();
        }
    }

    /// What is malformed is told when the record's turn comes.
    fn ask_for_pages(&self, record: &Record<'_>) {
        let Ok(view) = RecordView::parse(record.bytes) else { return };
        for op in view.page_ops() {
            if !is_format(op.op) && !self.analysis.is_outdated(op.pid, record.end) {
                self.store.prefetch(&[op.pid]);
            }
        }
    }

    fn apply_record(&self, record: &Record<'_>) -> Result<u64> {
        let view = RecordView::parse(record.bytes)
            .map_err(|error| OpenError::Damaged(format!("at {}: {error}", record.start)))?;
        let mut applied = 0;
        for op in view.page_ops() {
            if self.analysis.is_outdated(op.pid, record.end) {
                base::probe!("engine.redo.outdated");
                continue;
            }
            match self.apply(record, view.kind(), &op) {
                Ok(done) => applied += u64::from(done),
                // The page stays damaged on disk; those who read it are told.
                Err(OpenError::Store(StoreError::Corrupt { .. })) => {
                    base::probe!("engine.redo.damaged_page");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(applied)
    }

    /// Applies one op unless its page has it already.
    fn apply(&self, record: &Record<'_>, kind: RecordKind, op: &PageOpView<'_>) -> Result<bool> {
        let formats = is_format(op.op);
        let page = match self.store.redo_page(op.pid, None) {
            Ok(page) => Some(page),
            Err(StoreError::NoSuchPage(_) | StoreError::Corrupt { .. }) if formats => None,
            Err(StoreError::NoSuchPage(_)) if op.prev_lsn == Lsn::ZERO => None,
            Err(error) => return Err(error.into()),
        };
        let present = page.as_ref().map(|page| page.page_lsn());
        if present.is_some_and(|lsn| lsn >= record.end) {
            return Ok(false);
        }
        let damaged = |detail: String| {
            OpenError::Damaged(format!(
                "redo of the log record at {} on page {}: {detail}",
                record.start, op.pid
            ))
        };
        if base::mutant!("redo_skips_record") && kind == RecordKind::Compensation {
            return Ok(false);
        }
        let mut page = match page {
            Some(page) if !formats => {
                if page.page_lsn() != op.prev_lsn && !base::mutant!("redo_skips_record") {
                    let found = page.page_lsn();
                    return Err(damaged(format!("the page has LSN {found}, not {}", op.prev_lsn)));
                }
                page
            }
            other => {
                drop(other);
                let class = format_class(op.op, op.payload)
                    .ok_or_else(|| damaged("the page does not exist".to_owned()))?;
                self.store.redo_page(op.pid, Some(class))?
            }
        };
        let applied = if wal::record::op_range::BTREE.contains(&op.op) {
            btree::apply(&mut page, op.op, op.payload).map_err(|error| error.to_string())
        } else {
            pagestore::redo::apply(&mut page, op.op, op.payload).map_err(|error| error.to_string())
        };
        applied.map_err(damaged)?;
        page.mark_dirty(wal::LsnRange { start: record.start, end: record.end });
        Ok(true)
    }
}

/// Size class of the page that a format op writes.
fn format_class(op: u8, payload: &[u8]) -> Option<u8> {
    if wal::record::op_range::BTREE.contains(&op) {
        btree::format_class(op, payload)
    } else {
        pagestore::redo::format_class(op, payload)
    }
}
