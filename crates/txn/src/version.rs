//! Which version of an entry a reader sees.

use crate::undo::{HeaderState, UndoSpace};
use base::{Lsn, TrxId};
use wal::UndoKind;

/// Who reads: a snapshot and, if it has written, the reader's own transaction.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Commits up to this timestamp are seen. `Lsn::MAX` sees every commit.
    pub snapshot: Lsn,
    /// Header of the own transaction, 0 if there is none.
    pub own_header: u64,
    /// Sees what is not committed too.
    pub uncommitted: bool,
}

/// What stands behind the word of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordState {
    /// Visible to every snapshot there is or will be.
    Frozen,
    /// Written by the asking transaction.
    Own,
    /// Written by this transaction, which still runs.
    Active(TrxId),
    /// Written by a transaction that committed at this timestamp.
    Committed(Lsn),
    /// Rolled back: the entry was copied earlier and has changed since.
    Stale,
}

/// What a reader sees of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The entry as it stands.
    Current,
    /// An older version: its flags; its payload is in the buffer given.
    Older {
        /// Entry flags of that version.
        flags: u8,
    },
    /// Nothing: the entry was inserted later.
    Absent,
    /// The undo does not fit the entry.
    Damaged,
}

impl UndoSpace {
    /// Tells who wrote `word`.
    #[inline]
    pub fn word_state(&self, word: u64, own_header: u64) -> WordState {
        // What earlier runs wrote is the commonest, and told by the word alone.
        if self.is_of_earlier_run(word) {
            return WordState::Frozen;
        }
        self.state_of_this_run(word, own_header)
    }

    fn state_of_this_run(&self, word: u64, own_header: u64) -> WordState {
        let state = self.read(word, |record| {
            let header = record.header();
            if record.is_dead() {
                return WordState::Stale;
            }
            if header == own_header {
                return WordState::Own;
            }
            match self.state(header) {
                HeaderState::Gone => WordState::Frozen,
                HeaderState::Active(id) => WordState::Active(TrxId::new(id)),
                HeaderState::Aborted => WordState::Stale,
                // The dead mark is set before the commit is published: look again.
                HeaderState::Committed(_) if record.is_dead() => WordState::Stale,
                HeaderState::Committed(at) => WordState::Committed(at),
            }
        });
        state.unwrap_or(WordState::Frozen)
    }

    #[inline]
    fn sees(&self, word: u64, reader: &Reader, met: &mut Lsn) -> bool {
        match self.word_state(word, reader.own_header) {
            WordState::Frozen | WordState::Own => true,
            WordState::Active(_) => reader.uncommitted,
            WordState::Stale => false,
            WordState::Committed(at) => {
                let seen = at <= reader.snapshot;
                if seen {
                    *met = (*met).max(at);
                }
                seen
            }
        }
    }

    /// Finds the version of an entry that `reader` sees. An older payload is left in `older`.
    /// `met` is raised to the commit timestamp of the version seen. Must not be called with an
    /// entry copied before the last scheduling point unless the reader's floor is older.
    #[inline(never)]
    pub fn version(
        &self,
        reader: &Reader,
        flags: u8,
        word: u64,
        payload: &[u8],
        older: &mut Vec<u8>,
        met: &mut Lsn,
    ) -> Seen {
        if self.sees(word, reader, met) {
            return Seen::Current;
        }
        self.older_version(reader, flags, word, payload, older, met)
    }

    #[inline(never)]
    fn older_version(
        &self,
        reader: &Reader,
        mut flags: u8,
        mut word: u64,
        payload: &[u8],
        older: &mut Vec<u8>,
        met: &mut Lsn,
    ) -> Seen {
        older.clear();
        older.extend_from_slice(payload);
        loop {
            let step = self.read(word, |record| {
                if record.kind() == UndoKind::Insert {
                    return Err(Seen::Absent);
                }
                if !record.before().apply(older) {
                    return Err(Seen::Damaged);
                }
                Ok((record.before_flags(), record.before_word()))
            });
            match step {
                // Retired between two looks: everybody sees what was reached.
                None => return Seen::Older { flags },
                Some(Err(end)) => return end,
                Some(Ok(before)) => (flags, word) = before,
            }
            if self.sees(word, reader, met) {
                return Seen::Older { flags };
            }
        }
    }
}
