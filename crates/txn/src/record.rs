//! An undo record as its reader sees it. The invariants are those of [`crate::undo`], by number.

use crate::image::{BeforeImage, NewUndo};
use base::{Lsn, TreeId};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use wal::UndoKind;

/// Set in a record's header word once it was rolled back.
pub(crate) const DEAD: u64 = 1 << 63;
/// Bytes of a record before its key.
pub(crate) const RECORD_HEADER_BYTES: usize = 56;

/// A record's bytes before its key.
pub(crate) fn fixed_part(
    header: u64,
    previous: u64,
    previous_lsn: Lsn,
    new: &NewUndo<'_>,
) -> [u8; RECORD_HEADER_BYTES] {
    let (form, prefix, suffix, image) = new.before.parts();
    base::invariant!(new.key.len() <= usize::from(u16::MAX), "keys are below 64 KiB");
    let mut fixed = [0u8; RECORD_HEADER_BYTES];
    fixed[0..8].copy_from_slice(&header.to_le_bytes());
    fixed[8..16].copy_from_slice(&new.before_word.to_le_bytes());
    fixed[16..24].copy_from_slice(&previous.to_le_bytes());
    fixed[24..32].copy_from_slice(&previous_lsn.get().to_le_bytes());
    fixed[32..36].copy_from_slice(&new.tree.get().to_le_bytes());
    fixed[36..38].copy_from_slice(&(new.key.len() as u16).to_le_bytes());
    fixed[38] = new.kind as u8;
    fixed[39] = new.before_flags;
    fixed[40..44].copy_from_slice(&(image.len() as u32).to_le_bytes());
    fixed[44] = form;
    fixed[48..52].copy_from_slice(&prefix.to_le_bytes());
    fixed[52..56].copy_from_slice(&suffix.to_le_bytes());
    fixed
}

/// A record lent by [`crate::UndoSpace::read`].
#[derive(Clone, Copy)]
pub struct UndoRecord<'a> {
    start: NonNull<u8>,
    _lent: std::marker::PhantomData<&'a u8>,
}

impl<'a> UndoRecord<'a> {
    /// The record at `start`, which must be complete and stay so while it is lent.
    pub(crate) fn lent(start: NonNull<u8>) -> Self {
        Self { start, _lent: std::marker::PhantomData }
    }

    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        // SAFETY: offset + N lies within the fixed part of a complete record (invariant 2); the
        // bytes other than the first word do not change.
        unsafe { self.start.add(offset).cast::<[u8; N]>().read() }
    }

    fn word(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes(offset))
    }

    pub(crate) fn header_cell(&self) -> &'a AtomicU64 {
        // SAFETY: records are 8-aligned, and this word is only accessed atomically once the
        // record is complete.
        unsafe { self.start.cast::<AtomicU64>().as_ref() }
    }

    /// Address of the transaction's header.
    pub fn header(&self) -> u64 {
        self.header_cell().load(Ordering::Acquire) & !DEAD
    }

    /// The change was rolled back.
    pub fn is_dead(&self) -> bool {
        self.header_cell().load(Ordering::Acquire) & DEAD != 0
    }

    /// Word before the change.
    pub fn before_word(&self) -> u64 {
        self.word(8)
    }

    /// The transaction's undo record before this one; 0 when it is the first.
    pub fn previous_of_transaction(&self) -> u64 {
        self.word(16)
    }

    /// Start of the log record of the transaction's change before this one.
    pub fn previous_lsn(&self) -> Lsn {
        Lsn::new(self.word(24))
    }

    /// Tree of the entry.
    pub fn tree(&self) -> TreeId {
        TreeId::new(u32::from_le_bytes(self.bytes(32)))
    }

    /// What was done.
    pub fn kind(&self) -> UndoKind {
        match self.bytes::<1>(38) {
            [1] => UndoKind::Insert,
            [2] => UndoKind::Update,
            _ => UndoKind::DeleteMark,
        }
    }

    /// Flags before the change.
    pub fn before_flags(&self) -> u8 {
        self.bytes::<1>(39)[0]
    }

    fn slice(&self, offset: usize, length: usize) -> &'a [u8] {
        // SAFETY: key and image lie behind the fixed part of a complete record with the lengths
        // it names, and do not change (invariant 2); the borrow ends with the lending closure.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), length) }
    }

    fn key_bytes(&self) -> usize {
        usize::from(u16::from_le_bytes(self.bytes(36)))
    }

    /// Key of the entry.
    pub fn key(&self) -> &'a [u8] {
        self.slice(RECORD_HEADER_BYTES, self.key_bytes())
    }

    /// Payload before the change.
    pub fn before(&self) -> BeforeImage<'a> {
        let length = u32::from_le_bytes(self.bytes(40)) as usize;
        let bytes = self.slice(RECORD_HEADER_BYTES + self.key_bytes(), length);
        let [form] = self.bytes::<1>(44);
        let prefix = u32::from_le_bytes(self.bytes(48));
        let suffix = u32::from_le_bytes(self.bytes(52));
        BeforeImage::from_parts(form, prefix, suffix, bytes).expect("written by this process")
    }
}
