//! The record format, shared by every room that logs.
//!
//! ```text
//! Record := len u32 | kind u8 | flags u8 | page_op_count u16 | trx u64
//!           | PageOp * page_op_count | logical bytes (the rest)
//! PageOp := pid u48 | op u8 | reserved u8 (0) | prev_lsn u64 | payload_len u32 | payload
//! ```
//!
//! All integers little-endian. `len` is the exact length of the record, its own four bytes
//! included. In the stream a record starts at a multiple of [`RECORD_ALIGN`] and is followed by
//! zero bytes up to the next multiple, so a record of `len` bytes at `start` ends at
//! `start + align(len)`; that end is the LSN that goes into page headers.
//!
//! Invariants:
//! 1. A record is atomic: the batch that carries it is covered by one checksum, so a structure
//!    change over several pages is one record and needs no grouping at redo.
//! 2. Every page op carries the LSN its page had before (`prev_lsn`), so redo proves continuity.
//! 3. Parsing never panics and never reads outside the given bytes, whatever they hold.

use base::{Lsn, PageId, TrxId};

/// Records start at multiples of this many bytes.
pub const RECORD_ALIGN: usize = 8;
/// Bytes before the first page op.
pub const RECORD_HEADER_BYTES: usize = 16;
/// Bytes of a page op before its payload.
pub const PAGE_OP_HEADER_BYTES: usize = 20;

/// What a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// Page ops of one row change, with the logical undo part ([`LogicalUndo`]).
    Change = 1,
    /// Structure modification or allocation: redo only, never undone.
    Structure = 2,
    /// A transaction committed; its end LSN is the commit timestamp.
    Commit = 3,
    /// A rollback is complete.
    Abort = 4,
    /// A transaction is prepared (two-phase commit); logical bytes name it.
    Prepare = 5,
    /// Compensation while undoing: page ops, logical = next record to undo (LSN u64, 0 = none).
    Compensation = 6,
    /// Checkpoint note; logical bytes belong to the engine.
    Checkpoint = 7,
    /// Dictionary or other metadata; logical bytes belong to the engine.
    Meta = 8,
    /// Page format or bulk load.
    Load = 9,
}

impl RecordKind {
    /// The kind with this code, if it is known.
    pub fn from_u8(code: u8) -> Option<RecordKind> {
        Some(match code {
            1 => RecordKind::Change,
            2 => RecordKind::Structure,
            3 => RecordKind::Commit,
            4 => RecordKind::Abort,
            5 => RecordKind::Prepare,
            6 => RecordKind::Compensation,
            7 => RecordKind::Checkpoint,
            8 => RecordKind::Meta,
            9 => RecordKind::Load,
            _ => return None,
        })
    }
}

/// Op code ranges, one per owner, so that redo can dispatch by the code alone.
pub mod op_range {
    use std::ops::RangeInclusive;
    /// Page store: format, patch, free.
    pub const PAGE_STORE: RangeInclusive<u8> = 0x01..=0x0f;
    /// Allocation map.
    pub const SPACE: RangeInclusive<u8> = 0x10..=0x1f;
    /// B-tree nodes.
    pub const BTREE: RangeInclusive<u8> = 0x20..=0x4f;
    /// Engine.
    pub const ENGINE: RangeInclusive<u8> = 0x50..=0xff;
}

/// Bytes that do not form a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Fewer bytes than the length field or the fixed part asks for.
    #[error("record needs {needed} bytes, only {available} are there")]
    Truncated {
        /// Bytes the record or one of its parts asks for.
        needed: usize,
        /// Bytes available.
        available: usize,
    },
    /// The kind byte is not known.
    #[error("unknown record kind {0}")]
    UnknownKind(u8),
    /// A page op points outside the record.
    #[error("page op {index} reaches beyond the record (offset {offset} of {len})")]
    PageOpBounds {
        /// Which page op, from 0.
        index: usize,
        /// Offset in the record at which parsing stopped.
        offset: usize,
        /// Length of the record.
        len: usize,
    },
    /// The logical part does not have the expected shape.
    #[error("logical part is malformed: {0}")]
    Logical(&'static str),
}

/// `len` rounded up to [`RECORD_ALIGN`].
#[inline]
pub fn aligned_len(len: usize) -> usize {
    (len + RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1)
}

/// Builds one record in a reusable buffer: no allocation in the steady state.
///
/// Page ops and logical bytes may be added in any order. After [`crate::Wal::append`] call
/// [`RecordBuilder::reset`] to start the next record in the same buffers.
#[derive(Debug, Clone)]
pub struct RecordBuilder {
    /// Header (`len` and `page_op_count` still zero) and page ops.
    body: Vec<u8>,
    logical: Vec<u8>,
    page_op_count: u16,
}

impl RecordBuilder {
    /// An empty record of this kind. `trx` is 0 for records of no transaction.
    pub fn new(kind: RecordKind, trx: TrxId) -> RecordBuilder {
        let mut builder = RecordBuilder {
            body: Vec::with_capacity(256),
            logical: Vec::with_capacity(128),
            page_op_count: 0,
        };
        builder.reset(kind, trx);
        builder
    }

    /// Forgets the content and starts a record of this kind.
    pub fn reset(&mut self, kind: RecordKind, trx: TrxId) {
        self.body.clear();
        self.logical.clear();
        self.page_op_count = 0;
        self.body.extend_from_slice(&[0, 0, 0, 0, kind as u8, 0, 0, 0]);
        self.body.extend_from_slice(&trx.get().to_le_bytes());
    }

    /// Gives buffers above `limit_bytes` back; forgets the content then.
    pub fn trim(&mut self, limit_bytes: usize) {
        if self.body.capacity() + self.logical.capacity() > limit_bytes {
            *self = RecordBuilder::new(self.kind(), self.trx());
        }
    }

    /// Changes the kind, keeping everything else.
    pub fn set_kind(&mut self, kind: RecordKind) {
        self.body[4] = kind as u8;
    }

    /// Changes the transaction, keeping everything else.
    pub fn set_trx(&mut self, trx: TrxId) {
        self.body[8..16].copy_from_slice(&trx.get().to_le_bytes());
    }

    /// Sets the flags byte; its meaning belongs to the writer of the kind.
    pub fn set_flags(&mut self, flags: u8) {
        self.body[5] = flags;
    }

    /// The kind given last.
    pub fn kind(&self) -> RecordKind {
        RecordKind::from_u8(self.body[4]).expect("only reset and set_kind write this byte")
    }

    /// The transaction given last.
    pub fn trx(&self) -> TrxId {
        let mut bytes = [0u8; 8];
        bytes.copy_from_slice(&self.body[8..16]);
        TrxId::new(u64::from_le_bytes(bytes))
    }

    /// Adds a page op. `prev_lsn` is the page's LSN before the op; `write` appends the payload.
    /// Returns the payload, so that the caller can apply what redo would apply.
    pub fn page_op(
        &mut self,
        pid: PageId,
        op: u8,
        prev_lsn: Lsn,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> &[u8] {
        base::invariant!(self.page_op_count < u16::MAX, "at most 65,535 page ops a record");
        self.body.extend_from_slice(&pid.get().to_le_bytes()[..6]);
        self.body.extend_from_slice(&[op, 0]);
        self.body.extend_from_slice(&prev_lsn.get().to_le_bytes());
        let length_at = self.body.len();
        self.body.extend_from_slice(&[0; 4]);
        write(&mut self.body);
        let payload_len = (self.body.len() - length_at - 4) as u32;
        self.body[length_at..length_at + 4].copy_from_slice(&payload_len.to_le_bytes());
        self.page_op_count += 1;
        &self.body[length_at + 4..]
    }

    /// Appends to the logical part.
    pub fn logical(&mut self, bytes: &[u8]) {
        self.logical.extend_from_slice(bytes);
    }

    /// The buffer of the logical part, to be appended to in place.
    pub fn logical_mut(&mut self) -> &mut Vec<u8> {
        &mut self.logical
    }

    /// Page ops added so far.
    pub fn page_op_count(&self) -> usize {
        usize::from(self.page_op_count)
    }

    /// Exact length of the record as it stands, in bytes.
    pub fn len(&self) -> usize {
        self.body.len() + self.logical.len()
    }

    /// Whether neither page ops nor logical bytes were added.
    pub fn is_empty(&self) -> bool {
        self.len() == RECORD_HEADER_BYTES
    }

    /// Bytes the record takes in the log stream: what [`crate::Wal::admit`] must be asked for.
    pub fn stream_len(&self) -> usize {
        aligned_len(self.len())
    }

    /// The first 16 bytes with every field filled in.
    pub(crate) fn header(&self) -> [u8; RECORD_HEADER_BYTES] {
        let mut header = [0u8; RECORD_HEADER_BYTES];
        header.copy_from_slice(&self.body[..RECORD_HEADER_BYTES]);
        header[0..4].copy_from_slice(&(self.len() as u32).to_le_bytes());
        header[6..8].copy_from_slice(&self.page_op_count.to_le_bytes());
        header
    }

    /// What follows the header: page ops, then the logical part.
    pub(crate) fn parts(&self) -> [&[u8]; 2] {
        [&self.body[RECORD_HEADER_BYTES..], &self.logical]
    }

    /// The record as one byte string (tests, tools).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.header().to_vec();
        self.parts().iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }
}

/// One page op of a parsed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageOpView<'a> {
    /// The page changed.
    pub pid: PageId,
    /// What is done; ranges in [`op_range`].
    pub op: u8,
    /// The page's LSN before the op (0 for a page that had none).
    pub prev_lsn: Lsn,
    /// Argument of the op; its owner parses it.
    pub payload: &'a [u8],
}

/// A parsed record over borrowed bytes. All bounds were checked by [`RecordView::parse`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Exactly the record, header included.
    bytes: &'a [u8],
    kind: RecordKind,
    /// Offset at which the logical part starts.
    logical_at: usize,
}

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn read_u48(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word[..6].copy_from_slice(&bytes[at..at + 6]);
    u64::from_le_bytes(word)
}

impl<'a> RecordView<'a> {
    /// Parses the record at the start of `bytes`; bytes beyond its length are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<RecordView<'a>, RecordError> {
        if bytes.len() < RECORD_HEADER_BYTES {
            return Err(RecordError::Truncated {
                needed: RECORD_HEADER_BYTES,
                available: bytes.len(),
            });
        }
        let len = read_u32(bytes, 0) as usize;
        if len < RECORD_HEADER_BYTES || len > bytes.len() {
            let needed = len.max(RECORD_HEADER_BYTES);
            return Err(RecordError::Truncated { needed, available: bytes.len() });
        }
        let bytes = &bytes[..len];
        let kind = RecordKind::from_u8(bytes[4]).ok_or(RecordError::UnknownKind(bytes[4]))?;
        let mut at = RECORD_HEADER_BYTES;
        for index in 0..usize::from(read_u16(bytes, 6)) {
            let out_of_bounds = RecordError::PageOpBounds { index, offset: at, len };
            if len - at < PAGE_OP_HEADER_BYTES {
                return Err(out_of_bounds);
            }
            let payload_len = read_u32(bytes, at + 16) as usize;
            at += PAGE_OP_HEADER_BYTES;
            if payload_len > len - at {
                return Err(out_of_bounds);
            }
            at += payload_len;
        }
        Ok(RecordView { bytes, kind, logical_at: at })
    }

    /// What the record is for.
    pub fn kind(&self) -> RecordKind {
        self.kind
    }

    /// The flags byte.
    pub fn flags(&self) -> u8 {
        self.bytes[5]
    }

    /// The transaction, 0 if none.
    pub fn trx(&self) -> TrxId {
        TrxId::new(read_u64(self.bytes, 8))
    }

    /// How many page ops there are.
    pub fn page_op_count(&self) -> usize {
        usize::from(read_u16(self.bytes, 6))
    }

    /// The page ops in the order they were added.
    pub fn page_ops(&self) -> PageOps<'a> {
        PageOps { rest: &self.bytes[RECORD_HEADER_BYTES..self.logical_at] }
    }

    /// The bytes after the page ops.
    pub fn logical(&self) -> &'a [u8] {
        &self.bytes[self.logical_at..]
    }

    /// The whole record.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Iterator over the page ops of a record.
#[derive(Debug, Clone)]
pub struct PageOps<'a> {
    /// Page ops not yet returned; bounds were checked when the record was parsed.
    rest: &'a [u8],
}

impl<'a> Iterator for PageOps<'a> {
    type Item = PageOpView<'a>;

    fn next(&mut self) -> Option<PageOpView<'a>> {
        if self.rest.len() < PAGE_OP_HEADER_BYTES {
            return None;
        }
        let (head, tail) = self.rest.split_at(PAGE_OP_HEADER_BYTES);
        let payload_len = read_u32(head, 16) as usize;
        let (payload, rest) = tail.split_at_checked(payload_len)?;
        self.rest = rest;
        Some(PageOpView {
            pid: PageId::new(read_u48(head, 0)),
            op: head[6],
            prev_lsn: Lsn::new(read_u64(head, 8)),
            payload,
        })
    }
}

/// How a row change is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum UndoKind {
    /// The key did not exist: remove it. No before image.
    Insert = 1,
    /// The entry existed: restore flags and payload from the before image.
    Update = 2,
    /// The delete mark was set or cleared: restore from the before image.
    DeleteMark = 3,
}

/// The logical part of a [`RecordKind::Change`] record: enough for recovery to undo the change
/// by key descent, wherever the entry has moved to since.
///
/// ```text
/// tree u32 | undo_kind u8 | prev_lsn_of_trx u64 | key_len u16 | key | before image (the rest)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalUndo<'a> {
    /// Tree id.
    pub tree: u32,
    /// How to take it back.
    pub kind: UndoKind,
    /// Start LSN of the transaction's former Change record; 0 = this is its first.
    pub prev_lsn: Lsn,
    /// Key of the entry.
    pub key: &'a [u8],
    /// Entry flags and payload before the change (layout of the btree's owner).
    pub before: &'a [u8],
}

/// Bytes of a [`LogicalUndo`] before the key.
const UNDO_HEADER_BYTES: usize = 15;

impl<'a> LogicalUndo<'a> {
    /// Appends the encoding to `out` (usually [`RecordBuilder::logical_mut`]). Keys are shorter
    /// than 64 KiB.
    pub fn encode(&self, out: &mut Vec<u8>) {
        base::invariant!(self.key.len() <= usize::from(u16::MAX), "keys are below 64 KiB");
        out.extend_from_slice(&self.tree.to_le_bytes());
        out.push(self.kind as u8);
        out.extend_from_slice(&self.prev_lsn.get().to_le_bytes());
        out.extend_from_slice(&(self.key.len() as u16).to_le_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.before);
    }

    /// Parses the logical part of a Change record.
    pub fn parse(bytes: &'a [u8]) -> Result<LogicalUndo<'a>, RecordError> {
        if bytes.len() < UNDO_HEADER_BYTES {
            return Err(RecordError::Logical("undo part shorter than its header"));
        }
        let kind = match bytes[4] {
            1 => UndoKind::Insert,
            2 => UndoKind::Update,
            3 => UndoKind::DeleteMark,
            _ => return Err(RecordError::Logical("unknown undo kind")),
        };
        let key_len = usize::from(read_u16(bytes, 13));
        let rest = &bytes[UNDO_HEADER_BYTES..];
        let Some((key, before)) = rest.split_at_checked(key_len) else {
            return Err(RecordError::Logical("undo key reaches beyond the record"));
        };
        Ok(LogicalUndo {
            tree: read_u32(bytes, 0),
            kind,
            prev_lsn: Lsn::new(read_u64(bytes, 5)),
            key,
            before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> RecordBuilder {
        let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(77));
        builder.set_flags(3);
        builder.page_op(PageId::MAX, 0x21, Lsn::new(4096), |payload| {
            payload.extend_from_slice(b"first")
        });
        let undo = LogicalUndo {
            tree: 9,
            kind: UndoKind::Update,
            prev_lsn: Lsn::new(5000),
            key: b"key",
            before: b"before image",
        };
        undo.encode(builder.logical_mut());
        builder.page_op(PageId::new(5), 0x22, Lsn::new(0), |_| {});
        builder
    }

    #[test]
    fn builder_and_view_agree() {
        let bytes = sample().to_bytes();
        let view = RecordView::parse(&bytes).expect("just built");
        assert_eq!(view.kind(), RecordKind::Change);
        assert_eq!((view.flags(), view.trx().get()), (3, 77));
        let ops: Vec<PageOpView> = view.page_ops().collect();
        assert_eq!(ops.len(), 2);
        assert_eq!(ops[0].pid, PageId::MAX);
        assert_eq!((ops[0].op, ops[0].payload), (0x21, &b"first"[..]));
        assert_eq!((ops[1].pid.get(), ops[1].prev_lsn.get(), ops[1].payload.len()), (5, 0, 0));
        let undo = LogicalUndo::parse(view.logical()).expect("just built");
        assert_eq!((undo.tree, undo.key, undo.before), (9, &b"key"[..], &b"before image"[..]));
        assert_eq!((undo.kind, undo.prev_lsn.get()), (UndoKind::Update, 5000));
    }

    #[test]
    fn reset_reuses_the_buffers() {
        let mut builder = sample();
        let first = builder.to_bytes();
        builder.reset(RecordKind::Commit, TrxId::new(1));
        assert!(builder.is_empty());
        assert_eq!(builder.len(), RECORD_HEADER_BYTES);
        assert_eq!(builder.kind(), RecordKind::Commit);
        assert_ne!(first, builder.to_bytes());
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_survived() {
        let bytes = sample().to_bytes();
        for end in 0..bytes.len() {
            assert!(RecordView::parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            for value in 0..=255u8 {
                let mut changed = bytes.clone();
                changed[at] = value;
                if let Ok(view) = RecordView::parse(&changed) {
                    let payload: usize = view.page_ops().map(|op| op.payload.len()).sum();
                    assert!(payload <= changed.len());
                    let _ = LogicalUndo::parse(view.logical());
                }
            }
        }
    }

    #[test]
    fn lengths_are_aligned_in_the_stream() {
        assert_eq!(aligned_len(16), 16);
        assert_eq!(aligned_len(17), 24);
        let builder = sample();
        assert_eq!(builder.stream_len() % RECORD_ALIGN, 0);
        assert!(builder.stream_len() - builder.len() < RECORD_ALIGN);
    }
}
