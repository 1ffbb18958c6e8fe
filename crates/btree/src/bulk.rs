//! Filling an empty tree from sorted entries, bottom-up.
//!
//! 1. Every page is written once, completely, by one BUILD op in a Load record that also allocates
//!    it; no page gets a second version under one LSN.
//! 2. Nothing of the tree is reachable before the last record, which writes the root.
//! 3. A crash or an error before that leaves pages that belong to the tree but hang nowhere: the
//!    owner drops the tree and creates it anew.

use crate::build;
use crate::descent::Stop;
use crate::edit::{self, EditError, Fences};
use crate::entry::OVERFLOW;
use crate::error::TreeError;
use crate::layout::{CHILD_BYTES, LEAF_HEADER_BYTES, SLOT_BYTES, SLOTS};
use crate::node;
use crate::redo::{self, op};
use crate::split::separator;
use crate::tree::{MAP_BYTES_A_PAGE, RECORD_BYTES, Tree, perform};
use base::{PageId, TrxId};
use wal::{RecordBuilder, RecordKind};

/// What a bulk load has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkSummary {
    /// Entries loaded.
    pub entries: u64,
    /// Leaves written.
    pub leaf_pages: u64,
    /// Inner nodes written, the root included if it is one.
    pub inner_pages: u64,
}

/// One entry waiting for its leaf; key and payload lie in `Leaves::bytes`.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    key_at: usize,
    payload_at: usize,
    end: usize,
    flags: u8,
    word: u64,
}

/// Entries not yet in a leaf.
#[derive(Debug, Default)]
struct Leaves {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    /// Bytes the waiting entries take in a leaf without a prefix, slots included.
    entry_bytes: usize,
    /// Lower fence of the leaf under construction.
    lower: Option<Vec<u8>>,
}

impl Leaves {
    fn key(&self, index: usize) -> &[u8] {
        let entry = self.waiting[index];
        &self.bytes[entry.key_at..entry.payload_at]
    }

    fn entry_bytes(&self, index: usize) -> usize {
        let entry = self.waiting[index];
        entry.end - entry.key_at + LEAF_HEADER_BYTES + SLOT_BYTES
    }

    /// Bytes of a leaf of the first `count` entries, which take `entry_bytes`.
    fn leaf_bytes(&self, count: usize, entry_bytes: usize, upper: Option<&[u8]>) -> usize {
        let prefix = match (&self.lower, upper) {
            (Some(lower), Some(upper)) => node::common_prefix(lower, upper),
            _ => 0,
        };
        let fences = self.lower.as_ref().map_or(0, Vec::len) + upper.map_or(0, <[u8]>::len);
        SLOTS + fences + entry_bytes - count * prefix
    }

    /// How many of the waiting entries make a leaf of at most `limit` bytes: at least one and not
    /// all of them.
    fn first_leaf(&self, limit: usize) -> usize {
        let mut entry_bytes = self.entry_bytes;
        for count in (1..self.waiting.len()).rev() {
            entry_bytes -= self.entry_bytes(count);
            let upper = separator(self.key(count - 1), self.key(count));
            if count == 1 || self.leaf_bytes(count, entry_bytes, Some(upper)) <= limit {
                return count;
            }
        }
        1
    }

    /// Builds a leaf of the first `count` entries.
    fn build(
        &self,
        page_bytes: usize,
        count: usize,
        upper: Option<&[u8]>,
    ) -> Result<Vec<u8>, EditError> {
        let mut page = vec![0; page_bytes];
        edit::init(&mut page, 0, Fences { lower: self.lower.as_deref(), upper })?;
        for entry in &self.waiting[..count] {
            let key = &self.bytes[entry.key_at..entry.payload_at];
            let payload = &self.bytes[entry.payload_at..entry.end];
            build::append_leaf(&mut page, key, (entry.flags, entry.word), payload)?;
        }
        build::finish(&mut page);
        Ok(page)
    }

    /// Forgets the first `count` entries.
    fn consume(&mut self, count: usize) {
        let gone: usize = (0..count).map(|index| self.entry_bytes(index)).sum();
        self.entry_bytes -= gone;
        let start = self.waiting.get(count).map_or(self.bytes.len(), |entry| entry.key_at);
        self.bytes.drain(..start);
        self.waiting.drain(..count);
        for entry in &mut self.waiting {
            entry.key_at -= start;
            entry.payload_at -= start;
            entry.end -= start;
        }
    }
}

/// Children not yet in an inner node of one level.
#[derive(Debug, Default)]
struct Children {
    /// Children with the separator that ends their range.
    waiting: Vec<(PageId, Vec<u8>)>,
    bytes: usize,
    lower: Option<Vec<u8>>,
    /// Whether a node of this level has been written.
    written: bool,
}

impl Children {
    /// Builds a node of all waiting children. `last` is the rightmost one if it is not among them.
    fn build(
        &self,
        page_bytes: usize,
        level: usize,
        last: PageId,
        upper: Option<&[u8]>,
    ) -> Result<Vec<u8>, EditError> {
        let mut page = vec![0; page_bytes];
        edit::init(&mut page, level, Fences { lower: self.lower.as_deref(), upper })?;
        for (child, separator) in &self.waiting {
            build::append_separator(&mut page, separator, child.get())?;
        }
        edit::set_child(&mut page, self.waiting.len(), last.get())?;
        build::finish(&mut page);
        Ok(page)
    }
}

/// Loads a tree; push entries in key order, then finish.
#[derive(Debug)]
pub struct BulkLoader {
    tree: Tree,
    fill_bytes: usize,
    leaves: Leaves,
    /// Levels 1, 2, ...
    levels: Vec<Children>,
    last_key: Option<Vec<u8>>,
    record: RecordBuilder,
    summary: BulkSummary,
}

impl BulkLoader {
    /// Begins to load `tree`, which must be empty. Pages are filled to `fill_percent` (50 to 100).
    pub fn new(tree: &Tree, fill_percent: usize) -> Result<BulkLoader, TreeError> {
        let empty = tree.retry(|_| {
            let root = tree.store.shared_page(tree.root)?;
            Ok(is_empty_root(&root))
        })?;
        if !empty {
            return Err(TreeError::NotAscending);
        }
        Ok(BulkLoader {
            tree: tree.clone(),
            fill_bytes: tree.page_bytes() * fill_percent.clamp(50, 100) / 100,
            leaves: Leaves::default(),
            levels: Vec::new(),
            last_key: None,
            record: RecordBuilder::new(RecordKind::Load, TrxId::ZERO),
            summary: BulkSummary::default(),
        })
    }

    /// Adds the next entry, whose key must be above all before. Parks.
    pub fn push(
        &mut self,
        key: &[u8],
        flags: u8,
        word: u64,
        payload: &[u8],
    ) -> Result<(), TreeError> {
        self.tree.check_key(key)?;
        if self.last_key.as_deref().is_some_and(|last| last >= key) {
            return Err(TreeError::NotAscending);
        }
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(key);
        if self.tree.is_inline(key.len(), payload.len()) {
            self.add(key, flags, word, payload);
        } else {
            let reference = self.load_value(payload)?;
            self.add(key, flags | OVERFLOW, word, &reference);
        }
        self.summary.entries += 1;
        // The prefix is not known before the next key; this guess only decides when to look.
        let leaves = &self.leaves;
        let likely = leaves.leaf_bytes(leaves.waiting.len(), leaves.entry_bytes, Some(key));
        if leaves.waiting.len() > 1 && likely > self.fill_bytes {
            self.emit_leaf()?;
        }
        Ok(())
    }

    /// Writes what is left and the root, which makes the tree visible.
    pub fn finish(mut self) -> Result<BulkSummary, TreeError> {
        let page_bytes = self.tree.page_bytes();
        while self.leaves.leaf_bytes(self.leaves.waiting.len(), self.leaves.entry_bytes, None)
            > page_bytes
        {
            self.emit_leaf()?;
        }
        let count = self.leaves.waiting.len();
        let image = self.leaves.build(page_bytes, count, None).map_err(|e| self.refused(e))?;
        self.summary.leaf_pages += 1;
        if self.levels.is_empty() {
            self.write_root(&image)?;
            return Ok(self.summary);
        }
        let mut last = self.write_page(&image)?;
        let mut level = 1;
        loop {
            let children = &self.levels[level - 1];
            let image = children
                .build(page_bytes, level, last, None)
                .map_err(|error| self.refused(error))?;
            self.summary.inner_pages += 1;
            if !children.written {
                self.write_root(&image)?;
                return Ok(self.summary);
            }
            last = self.write_page(&image)?;
            level += 1;
        }
    }

    fn add(&mut self, key: &[u8], flags: u8, word: u64, payload: &[u8]) {
        let leaves = &mut self.leaves;
        let key_at = leaves.bytes.len();
        leaves.bytes.extend_from_slice(key);
        let payload_at = leaves.bytes.len();
        leaves.bytes.extend_from_slice(payload);
        let end = leaves.bytes.len();
        leaves.waiting.push(Waiting { key_at, payload_at, end, flags, word });
        leaves.entry_bytes += leaves.entry_bytes(leaves.waiting.len() - 1);
    }

    /// Writes one leaf of the waiting entries; the last one always waits on.
    fn emit_leaf(&mut self) -> Result<(), TreeError> {
        let count = self.leaves.first_leaf(self.fill_bytes);
        let upper = separator(self.leaves.key(count - 1), self.leaves.key(count)).to_vec();
        let image = self
            .leaves
            .build(self.tree.page_bytes(), count, Some(&upper))
            .map_err(|error| self.refused(error))?;
        let pid = self.write_page(&image)?;
        self.leaves.consume(count);
        self.leaves.lower = Some(upper.clone());
        self.summary.leaf_pages += 1;
        self.add_child(1, pid, upper)
    }

    /// Adds a finished child to its parent level, writing the parent when it is full.
    fn add_child(&mut self, level: usize, pid: PageId, upper: Vec<u8>) -> Result<(), TreeError> {
        if self.levels.len() < level {
            self.levels.push(Children::default());
        }
        let page_bytes = self.tree.page_bytes();
        let children = &mut self.levels[level - 1];
        let bytes = upper.len() + CHILD_BYTES + SLOT_BYTES;
        let fences = children.lower.as_ref().map_or(0, Vec::len) + upper.len();
        if children.waiting.len() < 2 || SLOTS + fences + children.bytes + bytes <= self.fill_bytes
        {
            children.bytes += bytes;
            children.waiting.push((pid, upper));
            return Ok(());
        }
        let image = children.build(page_bytes, level, pid, Some(&upper));
        children.waiting.clear();
        children.bytes = 0;
        children.lower = Some(upper.clone());
        children.written = true;
        let image = image.map_err(|error| self.refused(error))?;
        let pid = self.write_page(&image)?;
        self.summary.inner_pages += 1;
        self.add_child(level + 1, pid, upper)
    }

    /// Writes one page under a new number.
    fn write_page(&mut self, image: &[u8]) -> Result<PageId, TreeError> {
        let tree = &self.tree;
        let reservation = tree.store.space().reserve(tree.id, tree.class, 1)?;
        let pid = reservation.pids()[0];
        tree.store.reserve_frames(tree.class, 1)?;
        let permit = tree.wal.admit(image.len() + RECORD_BYTES)?;
        let record = &mut self.record;
        tree.retry(|_| {
            record.reset(RecordKind::Load, TrxId::ZERO);
            let mut page = tree.store.new_page(pid, tree.class)?;
            let map = tree.store.space().log_change(&[pid], &[], record)?;
            perform(record, &mut page, op::BUILD, |out| redo::encode_build(out, tree.id, image));
            let range = tree.wal.append(&permit, record);
            page.mark_dirty(range);
            map.mark_dirty(range);
            Ok(())
        })?;
        reservation.keep();
        Ok(pid)
    }

    fn write_root(&mut self, image: &[u8]) -> Result<(), TreeError> {
        let tree = &self.tree;
        let permit = tree.wal.admit(image.len() + RECORD_BYTES)?;
        let record = &mut self.record;
        let written = tree.retry(|_| {
            let mut root = tree.store.exclusive(tree.root)?;
            if !is_empty_root(&root) {
                return Ok(false);
            }
            record.reset(RecordKind::Load, TrxId::ZERO);
            perform(record, &mut root, op::BUILD, |out| redo::encode_build(out, tree.id, image));
            let range = tree.wal.append(&permit, record);
            root.mark_dirty(range);
            Ok(true)
        })?;
        if written { Ok(()) } else { Err(TreeError::NotAscending) }
    }

    /// Writes a large payload and allocates its pages; returns the stored form.
    fn load_value(&mut self, payload: &[u8]) -> Result<Vec<u8>, TreeError> {
        let tree = &self.tree;
        let value = tree.write_value(payload.to_vec())?;
        let permit = tree.wal.admit(RECORD_BYTES + MAP_BYTES_A_PAGE * value.pages.len())?;
        let record = &mut self.record;
        tree.retry(|_| -> Result<(), Stop> {
            record.reset(RecordKind::Load, TrxId::ZERO);
            let map = tree.store.space().log_change(&value.pages, &[], record)?;
            let range = tree.wal.append(&permit, record);
            map.mark_dirty(range);
            Ok(())
        })?;
        let stored = value.reference.encode().to_vec();
        value.keep();
        Ok(stored)
    }

    fn refused(&self, error: EditError) -> TreeError {
        TreeError::damaged(self.tree.id, self.tree.root, error.into())
    }
}

fn is_empty_root(root: &[u8]) -> bool {
    node::level(root) == 0 && node::count(root) == 0
}
