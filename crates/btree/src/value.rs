//! Writing and reading overflow values; the format is in `overflow.rs`.
//!
//! 1. Pages are written while still unallocated in the map; the record that makes the leaf point to
//!    the value allocates them. A [`WrittenValue`] dropped before that gives everything back.
//! 2. A reader that meets a page without the expected stamp reports the value as outdated, and
//!    its caller looks at the leaf again.

use crate::error::TreeError;
use crate::overflow::{self, PID_BYTES, Reference};
use crate::page_read::PageRead;
use crate::redo::op;
use crate::tree::{RECORD_BYTES, Tree, perform};
use base::{Lsn, PageId, TrxId};
use pagestore::{Reservation, StoreError};
use wal::{RecordBuilder, RecordKind};

/// An overflow value as found in a leaf.
#[derive(Debug)]
pub(crate) struct StoredValue {
    /// The reference's bytes.
    pub stored: Vec<u8>,
    /// The value.
    pub bytes: Vec<u8>,
    /// All its pages.
    pub pages: Vec<PageId>,
}

/// A value in overflow pages that no leaf points to yet.
#[derive(Debug)]
pub(crate) struct WrittenValue {
    /// The value.
    pub bytes: Vec<u8>,
    /// What the leaf will store.
    pub reference: Reference,
    /// All its pages, the data pages first.
    pub pages: Vec<PageId>,
    /// How many of the pages were written, and the end of the last one's record.
    written: usize,
    end: Lsn,
    /// Present until the value belongs to the tree.
    reservation: Option<Reservation>,
    tree: Tree,
}

impl WrittenValue {
    /// The value is linked into the tree: its pages are the tree's.
    pub(crate) fn keep(mut self) {
        if let Some(reservation) = self.reservation.take() {
            reservation.keep();
        }
    }
}

impl Drop for WrittenValue {
    fn drop(&mut self) {
        // A destructor must not wait while a panic unwinds; the pages are then dropped at the next
        // start, as after any crash.
        if self.reservation.is_some() && !std::thread::panicking() {
            base::probe!("btree.overflow_value_dropped");
            for pid in &self.pages[..self.written] {
                self.tree.store.discard(*pid, self.end);
            }
        }
    }
}

/// Prefetch is asked for this many pages of a value at a time.
const PREFETCH_PAGES: usize = 16;

impl Tree {
    /// Writes `bytes` to overflow pages. Parks, holds no latch between pages.
    pub(crate) fn write_value(&self, bytes: Vec<u8>) -> Result<WrittenValue, TreeError> {
        base::probe!("btree.overflow_written");
        let class = overflow::class_for(self.class, bytes.len());
        let counts = overflow::pages_per_level(class, bytes.len() as u64);
        let total: u64 = counts.iter().sum();
        let reservation = self.store.space().reserve(self.id, class, total as usize)?;
        let pages = reservation.pids().to_vec();
        let reference = Reference {
            length: bytes.len() as u64,
            stamp: runtime::random_u64(),
            root: pages[pages.len() - 1],
            class,
            levels: (counts.len() - 1) as u8,
        };
        let mut value = WrittenValue {
            bytes: Vec::new(),
            reference,
            pages,
            written: 0,
            end: Lsn::ZERO,
            reservation: Some(reservation),
            tree: self.clone(),
        };
        self.write_levels(&mut value, &bytes, &counts)?;
        value.bytes = bytes;
        Ok(value)
    }

    fn write_levels(
        &self,
        value: &mut WrittenValue,
        bytes: &[u8],
        counts: &[u64],
    ) -> Result<(), TreeError> {
        let content_bytes = overflow::content_bytes(value.reference.class);
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        let mut below: Vec<u8> = Vec::new();
        for (level, count) in counts.iter().enumerate() {
            let content = if level == 0 { bytes } else { &std::mem::take(&mut below)[..] };
            let piece_bytes =
                if level == 0 { content_bytes } else { content_bytes / PID_BYTES * PID_BYTES };
            for ordinal in 0..*count as usize {
                let start = ordinal * piece_bytes;
                let piece = &content[start..(start + piece_bytes).min(content.len())];
                let pid = value.pages[value.written];
                self.write_page(value, &mut record, (level as u8, ordinal as u32), piece)?;
                below.extend_from_slice(&pid.get().to_le_bytes()[..PID_BYTES]);
            }
        }
        Ok(())
    }

    fn write_page(
        &self,
        value: &mut WrittenValue,
        record: &mut RecordBuilder,
        (level, ordinal): (u8, u32),
        content: &[u8],
    ) -> Result<(), TreeError> {
        let Reference { class, stamp, .. } = value.reference;
        let pid = value.pages[value.written];
        self.store.reserve_frames(class, 1)?;
        let permit = self.admit(content.len() + RECORD_BYTES)?;
        value.end = self.retry(|_| {
            record.reset(RecordKind::Structure, TrxId::ZERO);
            let mut page = self.store.new_page(pid, class)?;
            perform(record, &mut page, op::OVERFLOW, |out| {
                overflow::encode_page(out, (self.id, class), (stamp, level, ordinal), content);
            });
            let range = self.wal.append(&permit, record);
            page.mark_dirty(range);
            Ok(range.end)
        })?;
        value.written += 1;
        Ok(())
    }

    /// Reads the value of a reference into `out` (and its page numbers into `pages`). `false` if
    /// the pages hold something else by now.
    pub(crate) fn read_value(
        &self,
        reference: &Reference,
        out: &mut Vec<u8>,
        mut pages: Option<&mut Vec<PageId>>,
    ) -> Result<bool, TreeError> {
        out.clear();
        let mut current = vec![reference.root];
        for level in (0..=reference.levels).rev() {
            let mut below = Vec::new();
            for (ordinal, pid) in current.iter().enumerate() {
                if ordinal.is_multiple_of(PREFETCH_PAGES) && current.len() > 1 {
                    let ahead = (ordinal + PREFETCH_PAGES).min(current.len());
                    self.store.prefetch(&current[ordinal..ahead]);
                }
                let target = if level == 0 { &mut *out } else { &mut below };
                let expected = (reference.stamp, level, ordinal as u32);
                if !self.read_overflow_page(*pid, expected, target)? {
                    return Ok(false);
                }
            }
            if let Some(pages) = pages.as_deref_mut() {
                pages.extend_from_slice(&current);
            }
            let next = below.chunks_exact(PID_BYTES).map(|chunk| {
                PageId::new(u64::from(chunk.u32_at(0)) | u64::from(chunk.u16_at(4)) << 32)
            });
            current = next.collect();
        }
        Ok(out.len() as u64 == reference.length)
    }

    /// Appends the content of one page. `false` if it is not the page expected.
    fn read_overflow_page(
        &self,
        pid: PageId,
        expected: (u64, u8, u32),
        out: &mut Vec<u8>,
    ) -> Result<bool, TreeError> {
        let read = self.store.run_with_retry(|_| {
            let page = self.store.shared_page(pid)?;
            let content = overflow::content(&page, expected);
            out.extend_from_slice(content.unwrap_or(&[]));
            Ok(content.is_some())
        });
        match read {
            Ok(current) => Ok(current),
            Err(StoreError::NoSuchPage(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the value behind a leaf entry's stored bytes; `None` if it has been replaced.
    pub(crate) fn load_stored_value(
        &self,
        stored: &[u8],
    ) -> Result<Option<StoredValue>, TreeError> {
        let reference = self.reference(stored)?;
        let mut value =
            StoredValue { stored: stored.to_vec(), bytes: Vec::new(), pages: Vec::new() };
        let current = self.read_value(&reference, &mut value.bytes, Some(&mut value.pages))?;
        Ok(current.then_some(value))
    }
}
