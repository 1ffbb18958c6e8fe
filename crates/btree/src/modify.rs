//! Changing one entry under its leaf's exclusive latch.
//!
//! 1. The caller's closure runs under the latch: it must not park, and it may run several times
//!    (after a split, a page miss, a longer permit), each time on the entry as it then is.
//! 2. The log record is complete, its room admitted and every page it names latched before the
//!    first byte of a page changes; from there on nothing can fail.
//! 3. Record order is page order: the record is appended before the latch is let go.
//! 4. No permit is held while another is waited for: a split drops this operation's permit.

use crate::descent::{LeafHint, Stop};
use crate::edit::Patch;
use crate::entry::{EntryRef, OVERFLOW};
use crate::error::TreeError;
use crate::layout::{LEAF_HEADER_BYTES, SLOT_BYTES};
use crate::node::{self, LeafHeader};
use crate::page_read::slice;
use crate::redo::{self, op};
use crate::tree::Tree;
use crate::value::{StoredValue, WrittenValue};
use base::TrxId;
use base::difference::Kept;
use pagestore::{ExclusivePage, MapChange};
use wal::{LsnRange, Permit, RecordBuilder, RecordKind};

/// The caller's part of the log record of a change.
#[derive(Clone, Copy, Debug)]
pub struct LogPart<'a> {
    /// Kind of the record, usually `Change` or `Compensation`.
    pub kind: RecordKind,
    /// The transaction.
    pub trx: TrxId,
    /// Logical bytes, see `wal::LogicalUndo`.
    pub logical: &'a [u8],
}

/// What a modification did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modified {
    /// The closure left the entry alone; nothing was logged.
    Nothing,
    /// The closure changed the entry; the record's place in the log.
    Logged(LsnRange),
}

impl Modified {
    /// The record, if there is one.
    pub fn record(self) -> Option<LsnRange> {
        match self {
            Modified::Nothing => None,
            Modified::Logged(range) => Some(range),
        }
    }
}

/// What the closure's call came to.
enum Outcome {
    /// No action called.
    Untouched,
    /// The page is changed and the record complete.
    Applied { shrunk: bool },
    /// The leaf must be split: bytes the entry takes, and whether it replaces one.
    NoRoom { bytes: usize, replaces: bool },
    /// The payload must go to overflow pages first.
    Large(Vec<u8>),
    /// The record needs this many bytes of the log.
    Permit(usize),
    /// A page of the allocation map could not be latched.
    Stop(Stop),
}

/// The entry under the latch and what the caller may do with it: at most one action a call.
pub struct Change<'a> {
    tree: &'a Tree,
    key: &'a [u8],
    leaf: ExclusivePage<'a>,
    index: usize,
    header: Option<LeafHeader>,
    record: &'a mut RecordBuilder,
    permit: &'a Permit<'a>,
    /// The old payload if it is stored in overflow pages.
    old_value: Option<&'a StoredValue>,
    /// A new payload already written to overflow pages.
    new_value: Option<&'a WrittenValue>,
    new_value_used: bool,
    old_value_freed: bool,
    map_changes: Vec<MapChange<'a>>,
    outcome: Outcome,
}

impl std::fmt::Debug for Change<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Change(tree {}, {:?}, {:?})", self.tree.id, self.leaf, self.header)
    }
}

/// Record bytes besides the leaf op's own payload and the logical part.
const RECORD_OVERHEAD_BYTES: usize =
    wal::record::RECORD_HEADER_BYTES + wal::record::PAGE_OP_HEADER_BYTES + 32;

impl<'a> Change<'a> {
    /// The key being modified.
    pub fn key(&self) -> &[u8] {
        self.key
    }

    /// The entry as it is, if the key exists.
    pub fn entry(&self) -> Option<EntryRef<'_>> {
        let header = self.header?;
        let payload = match self.old_value {
            Some(value) => &value.bytes,
            None => slice(&self.leaf, header.payload_offset, header.payload_len),
        };
        Some(EntryRef { flags: header.flags & !OVERFLOW, word: header.word, payload })
    }

    /// Inserts an entry. The key must not exist.
    pub fn insert(&mut self, flags: u8, word: u64, payload: &[u8], log: LogPart<'_>) {
        base::invariant!(self.header.is_none(), "insert of a key that exists");
        let Some((flags, stored)) = self.stored_form(flags, payload) else { return };
        let suffix_len = self.key.len() - node::prefix_len(&self.leaf[..]).min(self.key.len());
        let bytes = suffix_len + LEAF_HEADER_BYTES + stored.len() + SLOT_BYTES;
        if node::free_bytes(&self.leaf) < bytes {
            self.outcome = Outcome::NoRoom { bytes, replaces: false };
            return;
        }
        let (index, key) = (self.index, self.key);
        let suffix = &key[key.len() - suffix_len..];
        self.log_and_apply(op::INSERT_ENTRY, bytes, log, false, |_, out| {
            redo::encode_insert(out, index, suffix, (flags, word), &stored);
        });
    }

    /// Replaces flags, word and payload. The key must exist. Only the bytes of the payload that
    /// differ are logged.
    pub fn replace(&mut self, flags: u8, word: u64, payload: &[u8], log: LogPart<'_>) {
        self.replace_keeping((flags, word), payload, None, log);
    }

    /// As [`Change::replace`]; `kept`, if given, is what `payload` has in common with the payload
    /// that [`Change::entry`] shows.
    pub fn replace_keeping(
        &mut self,
        (flags, word): (u8, u64),
        payload: &[u8],
        kept: Option<Kept>,
        log: LogPart<'_>,
    ) {
        let old = self.existing();
        let Some((flags, stored)) = self.stored_form(flags, payload) else { return };
        let slot = node::slot(&self.leaf[..], self.index);
        let old_bytes = node::entry_bytes(&self.leaf, slot) + SLOT_BYTES;
        let bytes = old_bytes - old.payload_len + stored.len();
        if node::free_bytes(&self.leaf) + old_bytes < bytes {
            self.outcome = Outcome::NoRoom { bytes, replaces: true };
            return;
        }
        let index = self.index;
        let shrunk = stored.len() < old.payload_len;
        // Values in overflow pages are another thing than what the leaf stores.
        let kept = kept.filter(|_| (old.flags | flags) & OVERFLOW == 0);
        self.log_and_apply(op::REPLACE_ENTRY, stored.len(), log, shrunk, |leaf, out| {
            let before = slice(leaf, old.payload_offset, old.payload_len);
            let kept = kept.unwrap_or_else(|| Kept::between(before, &stored));
            debug_assert_eq!(kept, Kept::between(before, &stored), "given by the caller");
            redo::encode_replace(out, index, (flags, word), Patch::keeping(&stored, kept));
        });
    }

    /// Sets flags and word, keeping the payload. The key must exist.
    pub fn set_header(&mut self, flags: u8, word: u64, log: LogPart<'_>) {
        let (old, index) = (self.existing(), self.index);
        base::invariant!(flags & OVERFLOW == 0, "the overflow flag belongs to the tree");
        let flags = flags | old.flags & OVERFLOW;
        self.begin(log);
        if self.admitted(op::SET_HEADER.into()) {
            self.apply(op::SET_HEADER, |_, out| {
                redo::encode_set_header(out, index, flags, word);
            });
            self.outcome = Outcome::Applied { shrunk: false };
        }
    }

    /// Removes the entry. The key must exist.
    pub fn remove(&mut self, log: LogPart<'_>) {
        let index = self.index;
        self.existing();
        self.log_and_apply(op::REMOVE_ENTRY, 0, log, true, |_, out| {
            redo::encode_remove(out, index);
        });
    }

    fn existing(&self) -> LeafHeader {
        base::invariant!(self.header.is_some(), "change of a key that does not exist");
        self.header.expect("checked in the line above")
    }

    /// The payload as the leaf stores it: itself, or the reference of the value written before.
    /// `None` if it has to be written first; the outcome says so.
    fn stored_form<'p>(
        &mut self,
        flags: u8,
        payload: &'p [u8],
    ) -> Option<(u8, std::borrow::Cow<'p, [u8]>)> {
        base::invariant!(flags & OVERFLOW == 0, "the overflow flag belongs to the tree");
        self.new_value_used = false;
        if self.tree.is_inline(self.key.len(), payload.len()) {
            return Some((flags, payload.into()));
        }
        match self.new_value {
            Some(value) if value.bytes == payload => {
                self.new_value_used = true;
                Some((flags | OVERFLOW, value.reference.encode().to_vec().into()))
            }
            _ => {
                self.outcome = Outcome::Large(payload.to_vec());
                None
            }
        }
    }

    fn begin(&mut self, log: LogPart<'_>) {
        base::invariant!(
            !matches!(self.outcome, Outcome::Applied { .. }),
            "one action for each call of the closure"
        );
        self.record.reset(log.kind, log.trx);
        self.record.logical(log.logical);
    }

    /// Whether the permit covers the record with a leaf op of `op_bytes` added (an upper bound).
    fn admitted(&mut self, op_bytes: usize) -> bool {
        let needed = self.record.stream_len() + op_bytes + RECORD_OVERHEAD_BYTES;
        let admitted = self.permit.remaining_bytes() >= needed as u64;
        if !admitted {
            self.outcome = Outcome::Permit(needed);
        }
        admitted
    }

    fn apply(&mut self, op: u8, encode: impl FnOnce(&[u8], &mut Vec<u8>)) {
        // The op is encoded from the page as it is, then applied; `perform` borrows the page only
        // for the second half, so the first works on the bytes under the same latch.
        let (pid, before) = (self.leaf.pid(), self.leaf.page_lsn());
        let leaf: &[u8] = &self.leaf;
        let payload = self.record.page_op(pid, op, before, |out| encode(leaf, out));
        let applied = redo::apply(&mut self.leaf, op, payload);
        base::invariant!(applied.is_ok(), "op {op:#04x} on page {pid}: {applied:?}");
    }

    /// Completes the record (overflow pages allocated and freed, the leaf op) and applies the op.
    fn log_and_apply(
        &mut self,
        op: u8,
        op_bytes: usize,
        log: LogPart<'_>,
        shrunk: bool,
        encode: impl FnOnce(&[u8], &mut Vec<u8>),
    ) {
        self.begin(log);
        if let Err(stop) = self.log_map_changes() {
            self.outcome = Outcome::Stop(stop);
            return;
        }
        if self.admitted(op_bytes) {
            self.apply(op, encode);
            self.outcome = Outcome::Applied { shrunk };
        }
    }

    fn log_map_changes(&mut self) -> Result<(), Stop> {
        self.map_changes.clear();
        let (tree, new_value, old_value) = (self.tree, self.new_value, self.old_value);
        let allocated = new_value.filter(|_| self.new_value_used).map_or(&[][..], |v| &v.pages);
        let freed = old_value.map_or(&[][..], |value| &value.pages);
        self.old_value_freed = old_value.is_some();
        if !allocated.is_empty() || !freed.is_empty() {
            let change = tree.store.space().log_change(allocated, freed, self.record)?;
            self.map_changes.push(change);
        }
        Ok(())
    }
}

/// State of one `modify` across its attempts.
struct Attempts<'w> {
    permit: Option<Permit<'w>>,
    permit_bytes: usize,
    old_value: Option<StoredValue>,
    /// A reference whose pages did not hold its value.
    outdated: Option<Vec<u8>>,
    new_value: Option<WrittenValue>,
}

/// A finished modification and what is left to do without the latch.
struct Done {
    modified: Modified,
    shrunk: bool,
    new_value_used: bool,
    old_value_freed: bool,
}

/// What an attempt asks for before the next one.
enum Next {
    Done(Done),
    LoadValue(Vec<u8>),
    Refused(Outcome),
}

/// Bytes of log admitted at first: enough for an ordinary row.
const FIRST_PERMIT_BYTES: usize = 1024;
/// Splits one modification may need before that counts as damage: one a level and some more for
/// the room others take in between.
const MAX_SPLITS: usize = 1000;

impl Tree {
    /// As [`Tree::modify`], trying the hint first and leaving the leaf found in it.
    pub fn modify_near(
        &self,
        key: &[u8],
        record: &mut RecordBuilder,
        hint: &mut LeafHint,
        decide: &mut dyn FnMut(&mut Change<'_>),
    ) -> Result<Modified, TreeError> {
        self.check_key(key)?;
        let mut attempts = Attempts {
            permit: None,
            permit_bytes: FIRST_PERMIT_BYTES + 2 * key.len(),
            old_value: None,
            outdated: None,
            new_value: None,
        };
        for _ in 0..MAX_SPLITS {
            if attempts.permit.is_none() {
                attempts.permit = Some(self.admit(attempts.permit_bytes)?);
            }
            let next = self.retry(|_| self.try_modify((key, hint), record, &attempts, decide))?;
            match next {
                Next::Done(done) => {
                    attempts.settle_values(self, &done);
                    if done.shrunk && self.merge_after_shrink(key).is_err() {
                        // The change itself is done and logged; what kept the merge from happening
                        // will be met again by whoever needs it.
                        base::probe!("btree.merge_failed");
                    }
                    return Ok(done.modified);
                }
                Next::LoadValue(stored) => self.load_old_value(&mut attempts, stored)?,
                Next::Refused(outcome) => self.prepare(key, &mut attempts, outcome)?,
            }
        }
        Err(self.damaged(self.root, "no room for an entry after many splits"))
    }

    /// Reads the value a leaf entry refers to, for the closure to see. A value replaced meanwhile
    /// is simply asked for again by the next attempt.
    fn load_old_value(
        &self,
        attempts: &mut Attempts<'_>,
        stored: Vec<u8>,
    ) -> Result<(), TreeError> {
        attempts.old_value = self.load_stored_value(&stored)?;
        if attempts.old_value.is_none() {
            if attempts.outdated.as_ref() == Some(&stored) {
                return Err(self.damaged(self.root, "overflow pages do not hold the value"));
            }
            attempts.outdated = Some(stored);
        }
        Ok(())
    }

    /// Does what the refused attempt asked for.
    fn prepare(
        &self,
        key: &[u8],
        attempts: &mut Attempts<'_>,
        outcome: Outcome,
    ) -> Result<(), TreeError> {
        attempts.permit = None;
        match outcome {
            Outcome::NoRoom { bytes, replaces } => self.split_leaf(key, bytes, replaces),
            Outcome::Permit(bytes) => {
                let limit_bytes = self.wal.max_record_bytes();
                if bytes > limit_bytes {
                    return Err(TreeError::ValueTooLong { value_bytes: bytes, limit_bytes });
                }
                attempts.permit_bytes = attempts.permit_bytes.max(bytes);
                Ok(())
            }
            Outcome::Large(payload) => {
                attempts.new_value = None;
                attempts.new_value = Some(self.write_value(payload)?);
                Ok(())
            }
            Outcome::Untouched | Outcome::Applied { .. } | Outcome::Stop(_) => Ok(()),
        }
    }

    fn try_modify(
        &self,
        (key, hint): (&[u8], &mut LeafHint),
        record: &mut RecordBuilder,
        attempts: &Attempts<'_>,
        decide: &mut dyn FnMut(&mut Change<'_>),
    ) -> Result<Next, Stop> {
        let leaf = self.leaf_near(key, hint)?.upgrade()?;
        debug_assert!(
            node::in_range(&leaf[..], key) || base::mutant!("trust_leaf_hint"),
            "descent ended in another leaf"
        );
        hint.is_last = node::upper_fence(&leaf).is_none();
        let (index, exact) = node::lower_bound(&leaf[..], key);
        let header = exact.then(|| node::leaf_header(&leaf[..], node::slot(&leaf[..], index)));
        let mut old_value = None;
        if let Some(header) = header
            && header.flags & OVERFLOW != 0
        {
            let stored = slice(&leaf, header.payload_offset, header.payload_len);
            old_value = attempts.old_value.as_ref().filter(|value| value.stored[..] == *stored);
            if old_value.is_none() {
                return Ok(Next::LoadValue(stored.to_vec()));
            }
        }
        let permit = attempts.permit.as_ref().expect("admitted before the attempt");
        let mut change = Change {
            tree: self,
            key,
            leaf,
            index,
            header,
            record,
            permit,
            old_value,
            new_value: attempts.new_value.as_ref(),
            new_value_used: false,
            old_value_freed: false,
            map_changes: Vec::new(),
            outcome: Outcome::Untouched,
        };
        decide(&mut change);
        self.conclude(change)
    }

    /// Appends the record of an applied change, still under the latch.
    fn conclude(&self, change: Change<'_>) -> Result<Next, Stop> {
        let Change { mut leaf, record, permit, map_changes, outcome, .. } = change;
        let mut done = Done {
            modified: Modified::Nothing,
            shrunk: false,
            new_value_used: change.new_value_used,
            old_value_freed: change.old_value_freed,
        };
        match outcome {
            Outcome::Applied { shrunk } => {
                let range = self.wal.append(permit, record);
                leaf.mark_dirty(range);
                for change in map_changes {
                    change.mark_dirty(range);
                }
                done.modified = Modified::Logged(range);
                done.shrunk = shrunk && self.is_underfull(&leaf);
                Ok(Next::Done(done))
            }
            Outcome::Untouched => Ok(Next::Done(done)),
            Outcome::Stop(stop) => Err(stop),
            outcome => Ok(Next::Refused(outcome)),
        }
    }
}

impl Attempts<'_> {
    /// Settles overflow pages after a change: the new ones belong to the tree now (or go away with
    /// their owner if they were not used after all), the old ones are dropped if they were freed.
    fn settle_values(&mut self, tree: &Tree, done: &Done) {
        let Modified::Logged(range) = done.modified else { return };
        if done.new_value_used
            && let Some(value) = self.new_value.take()
        {
            value.keep();
        }
        if done.old_value_freed {
            let pages = self.old_value.take().map_or(Vec::new(), |value| value.pages);
            for pid in pages {
                tree.store.discard(pid, range.end);
            }
        }
    }
}
