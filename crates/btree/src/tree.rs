//! The tree: where it is, how it is opened, created and read by key.

use crate::descent::{LeafHint, Stop};
use crate::edit::{self, Fences};
use crate::entry::{EntryBuffer, OVERFLOW};
use crate::error::TreeError;
use crate::layout::{max_inline_bytes, max_key_bytes};
use crate::modify::{Change, Modified};
use crate::node;
use crate::overflow::Reference;
use crate::page_read::PageRead;
use crate::redo::{self, op};
use base::{PageId, TreeId, TrxId};
use pagestore::header::class_bytes;
use pagestore::{ExclusivePage, PageStore, Retry, StoreError};
use std::sync::Arc;
use wal::{Claim, Permit, RecordBuilder, RecordKind, Wal};

/// A B+tree. A cheap handle: clone it freely, use it from any fiber.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) store: PageStore,
    pub(crate) wal: Arc<Wal>,
    pub(crate) id: TreeId,
    pub(crate) root: PageId,
    pub(crate) class: u8,
    /// For what its changes take room in the log.
    claim: Claim,
}

/// Log bytes admitted for a structure change beside its page images: record and op headers,
/// separators, ops of the allocation map.
pub(crate) const RECORD_BYTES: usize = 8192;
/// Log bytes that allocating or freeing one page takes at most, its map page's op apart.
pub(crate) const MAP_BYTES_A_PAGE: usize = 16;

/// Lookups that were disturbed so often hold the leaf shared.
const OPTIMISTIC_TRIES: u32 = 8;

/// How often an operation may meet a page that is gone before that counts as damage: a page freed
/// between reading its number and loading it is ordinary, the same again and again is not.
const VANISHED_PAGES: usize = 32;

impl Tree {
    /// The tree whose root is page `root`; `class` is the log2 of its page size. Reads nothing.
    pub fn open(store: PageStore, wal: Arc<Wal>, id: TreeId, root: PageId, class: u8) -> Tree {
        Tree { store, wal, id, root, class, claim: Claim::Work }
    }

    /// Creates an empty tree and logs it as one Structure record. The root keeps its page number
    /// for life. Parks; after a crash the tree exists if the record was durable.
    pub fn create(
        store: PageStore,
        wal: Arc<Wal>,
        id: TreeId,
        class: u8,
    ) -> Result<Tree, TreeError> {
        let mut tree = Tree::open(store, wal, id, PageId::ZERO, class);
        let reservation = tree.store.space().reserve(id, class, 1)?;
        let root = reservation.pids()[0];
        tree.root = root;
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        let mut empty = vec![0; tree.page_bytes()];
        edit::init(&mut empty, 0, Fences::default())
            .map_err(|error| TreeError::damaged(id, root, error.into()))?;
        let permit = tree.wal.admit(RECORD_BYTES)?;
        tree.retry(|_| {
            record.reset(RecordKind::Structure, TrxId::ZERO);
            let mut page = tree.store.new_page(root, class)?;
            let map = tree.store.space().log_change(&[root], &[], &mut record)?;
            perform(&mut record, &mut page, op::BUILD, |out| redo::encode_build(out, id, &empty));
            let range = tree.wal.append(&permit, &record);
            page.mark_dirty(range);
            map.mark_dirty(range);
            Ok(())
        })?;
        drop(permit);
        reservation.keep();
        Ok(tree)
    }

    /// The same tree for undoing changes: on a full disk it may use what is left of the log for
    /// that.
    pub fn undoing(mut self) -> Tree {
        self.claim = Claim::Undo;
        self
    }

    /// Room in the log. Parks.
    pub(crate) fn admit(&self, bytes: usize) -> Result<Permit<'_>, TreeError> {
        Ok(self.wal.admit_as(self.claim, bytes)?)
    }

    /// Room in the log for what can as well be done later: not waited for on a full disk. Parks.
    pub(crate) fn admit_later(&self, bytes: usize) -> Result<Permit<'_>, TreeError> {
        Ok(self.wal.admit_as(Claim::Later, bytes)?)
    }

    /// Number of the tree.
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Page of the root, the same for the tree's life.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// Log2 of the page size.
    pub fn class(&self) -> u8 {
        self.class
    }

    /// Pages allocated to the tree: nodes and overflow pages.
    pub fn store_pages(&self) -> u64 {
        self.store.space().pages_of(self.id)
    }

    /// Page size in bytes.
    pub fn page_bytes(&self) -> usize {
        class_bytes(self.class)
    }

    /// Longest key in bytes.
    pub fn max_key_bytes(&self) -> usize {
        max_key_bytes(self.page_bytes())
    }

    /// Whether an entry of this size stays inside the leaf.
    pub(crate) fn is_inline(&self, key_bytes: usize, payload_bytes: usize) -> bool {
        use crate::layout::{LEAF_HEADER_BYTES, SLOT_BYTES};
        key_bytes + payload_bytes + LEAF_HEADER_BYTES + SLOT_BYTES
            <= max_inline_bytes(self.page_bytes())
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), TreeError> {
        let limit_bytes = self.max_key_bytes();
        if key.len() > limit_bytes {
            return Err(TreeError::KeyTooLong { key_bytes: key.len(), limit_bytes });
        }
        Ok(())
    }

    /// Runs an operation until it succeeds; see [`PageStore::run_with_retry`]. The operation holds
    /// latches only inside. Gets the number of tries before.
    pub(crate) fn retry<T>(
        &self,
        mut operation: impl FnMut(u32) -> Result<T, Stop>,
    ) -> Result<T, TreeError> {
        let mut vanished = 0;
        loop {
            let outcome = self.store.run_with_retry(|tries| match operation(tries) {
                Ok(value) => Ok(Ok(value)),
                Err(Stop::Retry(retry)) => Err(retry),
                Err(Stop::Damaged(pid, detail)) => Ok(Err((pid, detail))),
            });
            match outcome {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err((pid, detail))) => {
                    return Err(TreeError::Damaged { tree: self.id, pid, detail: detail.into() });
                }
                Err(StoreError::NoSuchPage(_)) if vanished < VANISHED_PAGES => {
                    base::probe!("btree.page_vanished");
                    vanished += 1;
                    runtime::yield_now();
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Changes the entry of `key` under the latch of its leaf: `decide` looks at the entry and
    /// calls at most one action of [`Change`]. It must not park and may be called again (a split,
    /// a page miss, a larger permit), so its effects outside must be repeatable.
    ///
    /// `record` is only a buffer; keep one per session. Parks before the latch and after it.
    pub fn modify(
        &self,
        key: &[u8],
        record: &mut RecordBuilder,
        decide: &mut dyn FnMut(&mut Change<'_>),
    ) -> Result<Modified, TreeError> {
        self.modify_near(key, record, &mut LeafHint::default(), decide)
    }

    /// Looks `key` up and copies its entry, marked as deleted or not. Latches nothing, allocates
    /// nothing once `out` has grown; parks if a page must be read.
    pub fn get(&self, key: &[u8], out: &mut EntryBuffer) -> Result<bool, TreeError> {
        self.get_near(key, out, &mut LeafHint::default())
    }

    /// As [`Tree::get`], trying the hint first and leaving the leaf found in it.
    pub fn get_near(
        &self,
        key: &[u8],
        out: &mut EntryBuffer,
        hint: &mut LeafHint,
    ) -> Result<bool, TreeError> {
        let found = match self.try_get(key, out, hint) {
            Ok(found) => found,
            Err(_) => self.get_again(key, out)?,
        };
        if !found || out.flags & OVERFLOW == 0 {
            return Ok(found);
        }
        self.finish_get(key, out)
    }

    fn try_get(
        &self,
        key: &[u8],
        out: &mut EntryBuffer,
        hint: &mut LeafHint,
    ) -> Result<bool, Stop> {
        let leaf = self.leaf_near(key, hint)?;
        let found = copy_entry(&leaf, key, out);
        leaf.validate()?;
        Ok(found)
    }

    /// The lookup after a first try was disturbed. On a leaf that changes all the time it ends up
    /// holding the leaf shared, so that it comes to an end.
    #[cold]
    fn get_again(&self, key: &[u8], out: &mut EntryBuffer) -> Result<bool, TreeError> {
        self.retry(|tries| {
            if tries < OPTIMISTIC_TRIES && !base::buggify!() {
                return self.try_get(key, out, &mut LeafHint::default());
            }
            base::probe!("btree.shared_lookup");
            let leaf = self.leaf_of(key)?;
            let page = self.store.shared_page(leaf.pid())?;
            leaf.validate()?;
            Ok(copy_entry(&page[..], key, out))
        })
    }

    /// Replaces the reference in `out` by the value, looking the key up again when the value has
    /// been replaced meanwhile.
    fn finish_get(&self, key: &[u8], out: &mut EntryBuffer) -> Result<bool, TreeError> {
        let mut value = Vec::new();
        let mut former: Option<Vec<u8>> = None;
        loop {
            let reference = self.reference(&out.payload)?;
            if self.read_value(&reference, &mut value, None)? {
                out.flags &= !OVERFLOW;
                out.payload = value;
                return Ok(true);
            }
            if former.as_ref() == Some(&out.payload) {
                return Err(self.damaged(reference.root, "overflow pages do not hold the value"));
            }
            former = Some(std::mem::take(&mut out.payload));
            if !self.get_again(key, out)? {
                return Ok(false);
            }
            if out.flags & OVERFLOW == 0 {
                return Ok(true);
            }
        }
    }

    /// Parses a reference found in a leaf of this tree.
    pub(crate) fn reference(&self, stored: &[u8]) -> Result<Reference, TreeError> {
        Reference::decode(stored)
            .ok_or_else(|| self.damaged(self.root, "malformed overflow reference"))
    }

    pub(crate) fn damaged(&self, pid: PageId, detail: &str) -> TreeError {
        TreeError::Damaged { tree: self.id, pid, detail: detail.to_owned() }
    }
}

/// Copies the entry of `key` out of a leaf; `false` if there is none.
fn copy_entry<P: PageRead + ?Sized>(leaf: &P, key: &[u8], out: &mut EntryBuffer) -> bool {
    let (index, exact) = node::lower_bound(leaf, key);
    if exact {
        let header = node::leaf_header(leaf, node::slot(leaf, index));
        out.flags = header.flags;
        out.word = header.word;
        out.payload.clear();
        leaf.append_to(header.payload_offset, header.payload_len, &mut out.payload);
    }
    exact
}

impl From<Retry> for Stop {
    fn from(retry: Retry) -> Stop {
        Stop::Retry(retry)
    }
}

/// Adds an op to the record and applies it to the page: the forward half of redo's one code path.
/// The page was found sound when it was read and the caller has checked that the op fits, so an
/// op that does not apply is a bug, met before more damage is done.
pub(crate) fn perform(
    record: &mut RecordBuilder,
    page: &mut ExclusivePage<'_>,
    op: u8,
    encode: impl FnOnce(&mut Vec<u8>),
) {
    let (pid, before) = (page.pid(), page.page_lsn());
    let payload = record.page_op(pid, op, before, encode);
    let applied = redo::apply(page, op, payload);
    base::invariant!(applied.is_ok(), "op {op:#04x} does not apply to page {pid}: {applied:?}");
}
