//! Undoing transactions that a crash left without an end.
//!
//! 1. What the analysis keeps of a transaction is the start of its newest change that was not
//!    undone, whatever the number of its changes. Every change names the one before it (as it was
//!    when the change was made, so what had been undone by then is left out).
//! 2. The log is read again backwards, a window at a time; of a window only the changes of losers
//!    are kept. So the memory needed does not depend on the length of a transaction.
//! 3. Losers held their rows exclusively: their order among each other does not matter.
//! 4. Each step logs a compensation record that names the next one; a crash in between continues
//!    after it.

use crate::analysis::Analysis;
use crate::core::Core;
use crate::recovery::OpenError;
use crate::rollback::UndoStep;
use base::{Lsn, TreeId, TrxId};
use engine_api::EngineError;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use wal::{LogicalUndo, Reader, RecordBuilder, RecordKind, RecordView};

type Result<T> = std::result::Result<T, OpenError>;

/// The log that recovery works on.
pub(crate) struct LogRange<'a> {
    pub(crate) directory: &'a Path,
    pub(crate) uuid: [u8; 16],
    pub(crate) end: Lsn,
}

/// Changes of losers in one window of the log.
#[derive(Default)]
pub(crate) struct Window {
    /// By transaction, in order of the log: where the record begins and its logical part below.
    changes: BTreeMap<TrxId, Vec<(Lsn, Range<usize>)>>,
    bytes: Vec<u8>,
}

impl Window {
    /// Reads the changes of `losers` that begin in `range`.
    pub(crate) fn read(
        log: &LogRange<'_>,
        range: Range<Lsn>,
        losers: &BTreeMap<TrxId, Lsn>,
    ) -> Result<Self> {
        base::probe!("engine.undo.window");
        let mut window = Self::default();
        let reader = Reader::open(log.directory, log.uuid, range.start, log.end)?;
        let mut reader = reader.complete_at(log.end);
        while let Some(record) = reader.next_record()? {
            if record.start >= range.end {
                break;
            }
            let view = RecordView::parse(record.bytes)
                .map_err(|error| OpenError::Damaged(format!("at {}: {error}", record.start)))?;
            let newest = losers.get(&view.trx());
            if view.kind() == RecordKind::Change && newest.is_some_and(|it| record.start <= *it) {
                let from = window.bytes.len();
                window.bytes.extend_from_slice(view.logical());
                let change = (record.start, from..window.bytes.len());
                window.changes.entry(view.trx()).or_default().push(change);
            }
            // Behind the end new records are being written.
            if record.end >= range.end {
                break;
            }
        }
        Ok(window)
    }

    pub(crate) fn step(&self, trx: TrxId, start: Lsn, step: &mut UndoStep) -> Result<()> {
        let missing = |what: &str| {
            OpenError::Damaged(format!("{what} of unfinished transaction {trx} at {start}"))
        };
        let changes = self.changes.get(&trx).map_or(&[][..], Vec::as_slice);
        let found = changes.binary_search_by_key(&start, |(start, _)| *start);
        let (_, place) = &changes[found.map_err(|_| missing("no change"))?];
        let undo = LogicalUndo::parse(&self.bytes[place.clone()]);
        let undo = undo.map_err(|_| missing("malformed change"))?;
        step.tree = TreeId::new(undo.tree);
        step.kind = Some(undo.kind);
        step.undo_next = undo.prev_lsn;
        step.key.clear();
        step.key.extend_from_slice(undo.key);
        step.logged.clear();
        step.logged.extend_from_slice(undo.before);
        Ok(())
    }
}

/// Takes back what unfinished transactions have left; returns the number of changes.
pub(crate) fn undo(core: &Arc<Core>, log: &LogRange<'_>, analysis: &mut Analysis) -> Result<u64> {
    let mut losers = std::mem::take(&mut analysis.losers);
    if base::mutant!("undo_skips_loser") {
        losers.pop_first();
    }
    let mut record = RecordBuilder::new(RecordKind::Compensation, TrxId::ZERO);
    let (mut undone, mut end) = (0, log.end);
    end_undone(core, &mut losers, &mut record)?;
    for &start in analysis.marks.iter().rev() {
        if losers.values().any(|newest| *newest >= start) {
            let window = Window::read(log, start..end, &losers)?;
            for (trx, newest) in &mut losers {
                undone += undo_in_window(core, *trx, newest, start, &window, &mut record)?;
            }
            end_undone(core, &mut losers, &mut record)?;
        }
        end = start;
    }
    match losers.first_key_value() {
        None => Ok(undone),
        Some((trx, newest)) => Err(OpenError::Damaged(format!(
            "the log does not reach back to {newest}, where unfinished transaction {trx} began"
        ))),
    }
}

/// Undoes one transaction down to the start of the window.
fn undo_in_window(
    core: &Arc<Core>,
    trx: TrxId,
    newest: &mut Lsn,
    start: Lsn,
    window: &Window,
    record: &mut RecordBuilder,
) -> Result<u64> {
    let (mut undone, mut step) = (0, UndoStep::default());
    while *newest >= start {
        window.step(trx, *newest, &mut step)?;
        if step.undo_next >= *newest {
            return Err(OpenError::Damaged(format!("change at {newest} names a later one")));
        }
        undone += u64::from(undo_step(core, trx, &step, record)?);
        *newest = step.undo_next;
        runtime::yield_if_due();
    }
    Ok(undone)
}

/// Transactions with nothing left to undo get their last record.
fn end_undone(
    core: &Arc<Core>,
    losers: &mut BTreeMap<TrxId, Lsn>,
    record: &mut RecordBuilder,
) -> Result<()> {
    let undone = |(trx, newest): (&TrxId, &Lsn)| (*newest == Lsn::ZERO).then_some(*trx);
    let ended: Vec<TrxId> = losers.iter().filter_map(undone).collect();
    for trx in ended {
        losers.remove(&trx);
        record.reset(RecordKind::Abort, trx);
        let permit = core.wal.admit_internal(record.stream_len())?;
        core.wal.append(&permit, record);
    }
    Ok(())
}

fn undo_step(
    core: &Arc<Core>,
    id: TrxId,
    step: &UndoStep,
    record: &mut RecordBuilder,
) -> Result<bool> {
    // A tree that is not named any more goes as a whole.
    let Ok(tree) = core.tree(step.tree) else { return Ok(false) };
    match step.apply(core, &tree.undoing(), id, record) {
        Ok(true) => Ok(true),
        Ok(false) => Err(OpenError::Damaged(format!(
            "{}: a change of unfinished transaction {id} is not in its tree",
            core.tree_name(step.tree)
        ))),
        Err(EngineError::Corrupt { .. }) => {
            base::probe!("engine.undo.damaged_tree");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
