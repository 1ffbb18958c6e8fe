//! Merging leaves that deletes have left sparse, along the whole tree.
//!
//! A removal looks at its own leaf only now and then, and when it does the neighbours may still be
//! too full; what deletes spread over a tree leave is closed up by a walk afterwards.
//!
//! 1. The walk's place is a key, as a cursor's: whatever splits and merges happen meanwhile, the
//!    leaf that holds the key is where it goes on.
//! 2. Each step is one merge of merge.rs, with its record; what is contended is left as it is.
//! 3. Leaves are asked for ahead, because the walk may be the first to read them in a long time.

use crate::descent::{Descent, Stop};
use crate::error::TreeError;
use crate::merge::{self, Outcome};
use crate::node::{self, Route};
use crate::tree::{RECORD_BYTES, Tree};
use base::{PageId, TrxId};
use wal::{Permit, RecordBuilder, RecordKind};

/// Children that are asked for at a time.
const PREFETCH_LEAVES: usize = 32;
/// Tries under contention before a leaf is left as it is.
const MAX_TRIES: u32 = 16;
/// Leaves looked at for one estimate.
const SAMPLED_LEAVES: usize = 16;

/// What became of the leaf of a key.
enum Step {
    /// It has taken its right neighbour over.
    Merged { parent_underfull: bool },
    /// There is nothing to do; the next leaf begins at the key now in the buffer.
    Next,
    /// It is the last one.
    End,
}

impl Tree {
    /// The mean share of their page that a few random leaves fill, 0 to 1. Parks.
    pub fn sample_fill(&self) -> Result<f64, TreeError> {
        let mut sum = 0;
        for _ in 0..SAMPLED_LEAVES {
            sum += self.retry(|_| {
                let leaf = self.descend_by(0, |page| {
                    (runtime::random_u64() % (node::count(page) as u64 + 1)) as usize
                })?;
                let used = merge::used(&leaf.page);
                leaf.page.validate()?;
                Ok(used)
            })?;
        }
        Ok(sum as f64 / (SAMPLED_LEAVES * self.page_bytes()) as f64)
    }

    /// Merges neighbouring leaves that fit one page, beginning with the leaf of `key`, looking at
    /// `leaves` of them at most. Leaves in `key` where to go on; `false` at the end of the tree.
    /// Parks; holds no latch while parked.
    pub fn merge_sparse(&self, key: &mut Vec<u8>, leaves: usize) -> Result<bool, TreeError> {
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        let mut next = Vec::new();
        for _ in 0..leaves {
            let permit = self.admit_later(self.page_bytes() + RECORD_BYTES)?;
            let step = self.retry(|tries| {
                self.close_up(key, tries > MAX_TRIES, &mut next, &permit, &mut record)
            })?;
            drop(permit);
            match step {
                Step::Merged { parent_underfull: true } => self.merge_levels(key, 1)?,
                Step::Merged { parent_underfull: false } => {}
                Step::Next => std::mem::swap(key, &mut next),
                Step::End => return Ok(false),
            }
            runtime::yield_if_due();
        }
        Ok(true)
    }

    /// Merges the right neighbour into the leaf of `key` if both fit one page; otherwise, or if
    /// it `only_moves`, puts the leaf's upper fence into `next`.
    fn close_up(
        &self,
        key: &[u8],
        only_moves: bool,
        next: &mut Vec<u8>,
        permit: &Permit<'_>,
        record: &mut RecordBuilder,
    ) -> Result<Step, Stop> {
        let Descent { page, parent, .. } = self.descend(key, Route::Containing, 0)?;
        let Some((parent, index)) = parent else {
            page.validate()?;
            return Ok(Step::End);
        };
        let last = node::count(&parent);
        if index < last && !only_moves {
            if index.is_multiple_of(PREFETCH_LEAVES / 2) {
                let ahead = (index + 1..=last.min(index + PREFETCH_LEAVES))
                    .filter_map(|at| PageId::checked(node::child(&parent, at)));
                let ahead: Vec<PageId> = ahead.collect();
                parent.validate()?;
                self.store.prefetch(&ahead);
            }
            let right = node::child(&parent, index + 1);
            parent.validate()?;
            let Some(right) = PageId::checked(right) else {
                return Err(Stop::Damaged(parent.pid(), "child number above 48 bits"));
            };
            let right = self.store.optimistic(right)?;
            parent.validate()?;
            let is_likely = merge::is_likely(&page, &right);
            page.validate()?;
            right.validate()?;
            if is_likely
                && let Some(Outcome::Merged { parent_underfull }) =
                    self.merge_pair((parent, index), [page, right], permit, record)?
            {
                return Ok(Step::Merged { parent_underfull });
            }
        }
        let leaf = self.store.shared_page(page.pid())?;
        page.validate()?;
        next.clear();
        match node::upper_fence(&leaf[..]) {
            Some(fence) => next.extend_from_slice(fence),
            None => return Ok(Step::End),
        }
        Ok(Step::Next)
    }
}
