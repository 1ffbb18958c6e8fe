//! Transactions in two phases: preparing, and undo records of those that were prepared when the
//! server stopped.
//!
//! The entries that such a transaction has changed carry words of the former run. Their records
//! are made again from the log, and found by these words, so that entries and log stay as they
//! are, and a second crash finds what the first one found.
//!
//! 1. All are made before the first reader; they stay until the server ends, so what was found
//!    once may be looked at as long as the undo space lives.
//! 2. After the first word is complete it changes only atomically, as in chunks.

use crate::chunk::UndoFull;
use crate::image::{LoggedUndo, NewUndo};
use crate::owner::Owner;
use crate::system::{RecoveredChange, TransactionSystem, TxnError};
use crate::transaction::Transaction;
use base::Lsn;
use hashbrown::HashMap;
use runtime::sync::Mutex;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use wal::{LsnRange, RecordBuilder, RecordKind, UndoKind};

/// Records by word.
#[derive(Default)]
pub(crate) struct RecoveredRecords(Mutex<HashMap<u64, Box<[AtomicU64]>>>);

impl RecoveredRecords {
    /// Keeps a complete record.
    pub(crate) fn insert(&self, word: u64, bytes: &[u8]) {
        let cell = |part: &[u8]| {
            let mut full = [0; 8];
            full[..part.len()].copy_from_slice(part);
            AtomicU64::new(u64::from_ne_bytes(full))
        };
        self.0.lock().insert(word, bytes.chunks(8).map(cell).collect());
    }

    /// The record of this word.
    #[cold]
    pub(crate) fn find(&self, word: u64) -> Option<NonNull<u8>> {
        let records = self.0.lock();
        let cells = records.get(&word)?;
        NonNull::new(cells.as_ptr().cast_mut().cast())
    }
}

impl Transaction {
    /// See [`TransactionSystem::continue_prepared`].
    pub(crate) fn continued(
        system: Arc<TransactionSystem>,
        owner: Arc<Owner>,
        first_lsn: Lsn,
        changes: &[RecoveredChange],
    ) -> Result<Option<Self>, UndoFull> {
        let mut this = Self::new(system);
        let slot = this.slot();
        this.system.slots.set_first_lsn(slot, first_lsn);
        this.header = this.system.undo.add_header(owner.number(), &mut this.chunks)?;
        this.owner = Some(owner);
        for change in changes {
            let Some(undo) = LoggedUndo::parse(&change.logged) else { return Ok(None) };
            let new = NewUndo {
                tree: change.tree,
                kind: change.kind,
                key: &change.key,
                before_flags: undo.before_flags,
                before_word: undo.before_word,
                before: undo.before,
            };
            let previous = (this.last_undo, change.previous);
            this.system.undo.recover(undo.word, this.header, previous, &new);
            let record = LsnRange { start: change.start, end: change.start };
            this.changed(undo.word, record, change.kind == UndoKind::DeleteMark);
        }
        Ok(Some(this))
    }

    /// Makes `record` (kind Prepare) the last word of a transaction that has changed something:
    /// a recovery keeps it with its changes. Returns its end; durability is the caller's next
    /// step.
    pub fn prepare(&mut self, record: &mut RecordBuilder) -> Result<Lsn, TxnError> {
        base::invariant!(record.kind() == RecordKind::Prepare, "a prepare needs its record");
        record.set_trx(self.id());
        let permit = self.system.wal.admit(record.stream_len())?;
        Ok(self.system.wal.append(&permit, record).end)
    }
}
