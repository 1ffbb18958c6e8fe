//! Gaps that are locked: intervals of keys of a tree into which nobody else inserts.
//!
//! 1. An interval is of keys, never of pages, and never of entries: splits, merges and the removal
//!    of entries change nothing, and what its owner inserts lies in it as before.
//! 2. Taking an interval never waits, and intervals of several owners may overlap. Only an insert
//!    waits: until no interval of another owner contains its key.
//! 3. A tree with intervals, or one that is about to get some, is watched. An insert into a
//!    watched tree asks under its leaf's latch; one that may go on raises the tree's count of
//!    inserts before it changes the leaf. One atomic load tells that a tree is not watched.
//! 4. Whoever will take intervals watches the tree, then remembers the count, then reads entries.
//!    While the count is the same no entry has come in between those that were read.
//! 5. Neighbouring intervals of an owner are one: a scan holds one interval, however many entries
//!    it has passed.
//! 6. Shared and exclusive intervals keep the same out. The mode is kept for reports, one for all
//!    intervals of an owner in a tree.

use super::held::FREE_LOCKS;
use super::table::{KeyBytes, LockTable};
use super::{LockError, LockMode, WaitPoint, WaitRule};
use crate::owner::{GRANTED, Owner};
use base::{MemoryAccount, TreeId};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of shards; a power of two.
const SHARDS: usize = 256;

/// What an interval takes beside its two keys, bytes.
const INTERVAL_BYTES: usize = 128;

/// The smallest key beyond an interval; `None`: there is no end.
type High = Option<Vec<u8>>;

/// Trees in which a transaction has intervals.
pub(crate) type WatchedTrees = Vec<TreeId>;

/// All intervals of one owner in one tree, by their smallest keys; they do not touch each other.
#[derive(Debug, Default)]
struct Intervals(BTreeMap<Vec<u8>, High>);

impl Intervals {
    fn contains(&self, key: &[u8]) -> bool {
        self.end_of(key).is_some()
    }

    /// The end of the interval with this key.
    fn end_of(&self, key: &[u8]) -> Option<&High> {
        let before = (Bound::Unbounded, Bound::Included(key));
        let (_, high) = self.0.range::<[u8], _>(before).next_back()?;
        high.as_deref().is_none_or(|high| key < high).then_some(high)
    }

    fn add(&mut self, low: &[u8], high: Option<&[u8]>) {
        if high.is_some_and(|high| high <= low) {
            return;
        }
        let reaches = |end: &High, key: &[u8]| end.as_deref().is_none_or(|end| end >= key);
        let before = (Bound::Unbounded, Bound::Included(low));
        let last = self.0.range_mut::<[u8], _>(before).next_back();
        let start = match last.filter(|(_, end)| reaches(end, low)) {
            Some((start, end)) => {
                let beyond = match (end.as_deref(), high) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(end), Some(high)) => high > end,
                };
                if !beyond {
                    return;
                }
                *end = high.map(<[u8]>::to_vec);
                start.clone()
            }
            None => {
                self.0.insert(low.to_vec(), high.map(<[u8]>::to_vec));
                low.to_vec()
            }
        };
        self.absorb(&start, high);
    }

    /// Takes those that begin within the interval from `start` to `high` into it.
    fn absorb(&mut self, start: &[u8], high: Option<&[u8]>) {
        loop {
            let behind = (Bound::Excluded(start), Bound::Unbounded);
            let next = self.0.range::<[u8], _>(behind).next();
            let Some((low, end)) = next.filter(|(low, _)| high.is_none_or(|h| low.as_slice() <= h))
            else {
                return;
            };
            let (low, end) = (low.clone(), end.clone());
            self.0.remove(&low);
            let reaches_on = match (&end, high) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(end), Some(high)) => end.as_slice() > high,
            };
            if reaches_on {
                // It was the last: nothing of its owner touches it.
                self.0.insert(start.to_vec(), end);
                return;
            }
        }
    }
}

struct Holder {
    owner: Arc<Owner>,
    intervals: Intervals,
    mode: LockMode,
    /// More intervals than these are paid for first, as locks of records are.
    paid_intervals: usize,
    charged_bytes: u64,
}

impl Holder {
    fn new(owner: &Arc<Owner>) -> Self {
        Self {
            owner: owner.clone(),
            intervals: Intervals::default(),
            mode: LockMode::Shared,
            paid_intervals: FREE_LOCKS,
            charged_bytes: 0,
        }
    }

    #[cold]
    fn pay(&mut self, account: &MemoryAccount) -> Result<(), LockError> {
        let keys = |(low, high): (&Vec<u8>, &High)| low.len() + high.as_ref().map_or(0, Vec::len);
        let key_bytes: usize = self.intervals.0.iter().map(keys).sum();
        let bytes = (self.paid_intervals * INTERVAL_BYTES + key_bytes) as u64;
        account.charge(bytes).map_err(|_| LockError::TableFull)?;
        self.charged_bytes += bytes;
        self.paid_intervals *= 2;
        Ok(())
    }
}

/// An insert that waits, or would.
pub(super) struct GapConflict {
    pub(super) tree: TreeId,
    pub(super) key: KeyBytes,
    /// Who waits.
    pub(super) waiter: u64,
    /// Whose interval has the key, its mode and its end.
    pub(super) holder: u64,
    pub(super) mode: LockMode,
    pub(super) end: Option<Vec<u8>>,
}

/// What is known of a watched tree.
struct Watched {
    tree: TreeId,
    inserts: u64,
    holders: Vec<Holder>,
    /// Inserts that wait, in the order of their arrival.
    waiters: Vec<(Arc<Owner>, KeyBytes)>,
}

impl Watched {
    fn blockers<'a>(
        &'a self,
        owner: &'a Arc<Owner>,
        key: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<Owner>> {
        let others = self.holders.iter().filter(|it| !Arc::ptr_eq(&it.owner, owner));
        others.filter(|it| it.intervals.contains(key)).map(|it| &it.owner)
    }

    /// Everybody who keeps the waiting `owner` from inserting `key`.
    fn conflicts<'a>(
        &'a self,
        owner: &'a Arc<Owner>,
        key: &'a KeyBytes,
    ) -> impl Iterator<Item = GapConflict> {
        let others = self.holders.iter().filter(|it| !Arc::ptr_eq(&it.owner, owner));
        others.filter_map(|holder| {
            let end = holder.intervals.end_of(key)?;
            Some(GapConflict {
                tree: self.tree,
                key: key.clone(),
                waiter: owner.number(),
                holder: holder.owner.number(),
                mode: holder.mode,
                end: end.clone(),
            })
        })
    }

    /// Lets those go on whom nobody keeps any more.
    fn wake(&self) {
        for (waiter, key) in &self.waiters {
            if self.blockers(waiter, key).next().is_none() {
                waiter.decide(GRANTED);
            }
        }
    }
}

#[derive(Default)]
struct Shard {
    /// Holders in all trees of the shard.
    holders: AtomicU32,
    trees: Mutex<Vec<Watched>>,
}

/// All intervals of all trees.
pub(crate) struct GapTable {
    shards: Box<[Shard]>,
    memory: Arc<MemoryAccount>,
}

impl GapTable {
    pub(crate) fn new(memory: Arc<MemoryAccount>) -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect(), memory }
    }

    fn shard(&self, tree: TreeId) -> &Shard {
        &self.shards[tree.get() as usize % SHARDS]
    }

    /// Whether inserts into the tree must ask (invariant 3).
    #[inline]
    pub(crate) fn is_watched(&self, tree: TreeId) -> bool {
        self.shard(tree).holders.load(Ordering::Acquire) != 0
    }

    /// Begins to watch the tree for `owner`, if it is not done yet, and tells its inserts.
    pub(crate) fn watch(
        &self,
        owner: &Arc<Owner>,
        watched: &mut WatchedTrees,
        tree: TreeId,
    ) -> u64 {
        let shard = self.shard(tree);
        let mut trees = shard.trees.lock();
        let position = trees.iter().position(|it| it.tree == tree).unwrap_or_else(|| {
            trees.push(Watched { tree, inserts: 0, holders: Vec::new(), waiters: Vec::new() });
            trees.len() - 1
        });
        let entry = &mut trees[position];
        if !watched.contains(&tree) {
            watched.push(tree);
            entry.holders.push(Holder::new(owner));
            shard.holders.fetch_add(1, Ordering::SeqCst);
            owner.add_weight(1);
        }
        entry.inserts
    }

    /// Takes the interval from `low` to before `high`, unless something was inserted into the tree
    /// since `inserts` were counted: then false. An error when there is no memory for more.
    pub(crate) fn lock(
        &self,
        owner: &Arc<Owner>,
        tree: TreeId,
        (low, high): (&[u8], Option<&[u8]>),
        mode: LockMode,
        inserts: Option<u64>,
    ) -> Result<bool, LockError> {
        let mut trees = self.shard(tree).trees.lock();
        let Some(entry) = trees.iter_mut().find(|it| it.tree == tree) else { return Ok(false) };
        if inserts.is_some_and(|count| count != entry.inserts) {
            return Ok(false);
        }
        let mine = entry.holders.iter_mut().find(|it| Arc::ptr_eq(&it.owner, owner));
        if let Some(holder) = mine {
            if holder.intervals.0.len() >= holder.paid_intervals {
                holder.pay(&self.memory)?;
            }
            holder.intervals.add(low, high);
            holder.mode = holder.mode.max(mode);
        }
        Ok(true)
    }

    /// All inserts that wait, and what keeps them waiting.
    pub(super) fn conflicts(&self) -> Vec<GapConflict> {
        let mut conflicts = Vec::new();
        for shard in &self.shards {
            for entry in shard.trees.lock().iter() {
                for (waiter, key) in &entry.waiters {
                    conflicts.extend(entry.conflicts(waiter, key));
                }
            }
        }
        conflicts
    }

    /// What of `blocker` keeps `owner` from inserting `key`.
    pub(super) fn conflict(
        &self,
        owner: &Arc<Owner>,
        blocker: &Arc<Owner>,
        tree: TreeId,
        key: &KeyBytes,
    ) -> Option<GapConflict> {
        let trees = self.shard(tree).trees.lock();
        let entry = trees.iter().find(|it| it.tree == tree)?;
        entry.conflicts(owner, key).find(|it| it.holder == blocker.number())
    }

    /// Whether `owner` may insert `key` now; if so, it is counted. `None` has no intervals.
    pub(crate) fn may_insert(&self, owner: Option<&Arc<Owner>>, tree: TreeId, key: &[u8]) -> bool {
        let mut trees = self.shard(tree).trees.lock();
        let Some(entry) = trees.iter_mut().find(|it| it.tree == tree) else { return true };
        let others = entry.holders.iter();
        let mut others = others.filter(|it| owner.is_none_or(|own| !Arc::ptr_eq(&it.owner, own)));
        if others.any(|it| it.intervals.contains(key)) {
            return false;
        }
        entry.inserts += 1;
        true
    }

    /// Registers an insert that waits; false if nobody is in its way.
    fn enqueue(&self, owner: &Arc<Owner>, tree: TreeId, key: &[u8]) -> bool {
        let mut trees = self.shard(tree).trees.lock();
        let Some(entry) = trees.iter_mut().find(|it| it.tree == tree) else { return false };
        if entry.blockers(owner, key).next().is_none() {
            return false;
        }
        let key = KeyBytes::from_slice(key);
        entry.waiters.push((owner.clone(), key.clone()));
        owner.begin_wait(WaitPoint::Gap { tree, key });
        true
    }

    fn dequeue(&self, owner: &Arc<Owner>, tree: TreeId) {
        let mut trees = self.shard(tree).trees.lock();
        let Some(position) = trees.iter().position(|it| it.tree == tree) else { return };
        let entry = &mut trees[position];
        entry.waiters.retain(|(other, _)| !Arc::ptr_eq(other, owner));
        if entry.waiters.is_empty() && entry.holders.is_empty() {
            trees.swap_remove(position);
        }
    }

    /// Whom an insert of `key` by `owner` waits for.
    pub(crate) fn blockers_of(
        &self,
        owner: &Arc<Owner>,
        tree: TreeId,
        key: &[u8],
    ) -> Vec<Arc<Owner>> {
        let trees = self.shard(tree).trees.lock();
        let entry = trees.iter().find(|it| it.tree == tree);
        entry.map_or(Vec::new(), |entry| entry.blockers(owner, key).cloned().collect())
    }

    /// Gives all intervals of `owner` back.
    pub(crate) fn release_all(&self, owner: &Arc<Owner>, watched: &mut WatchedTrees) {
        for tree in watched.drain(..) {
            let shard = self.shard(tree);
            let mut trees = shard.trees.lock();
            let Some(position) = trees.iter().position(|it| it.tree == tree) else { continue };
            let entry = &mut trees[position];
            entry.holders.retain(|it| {
                let stays = !Arc::ptr_eq(&it.owner, owner);
                if !stays && it.charged_bytes > 0 {
                    self.memory.release(it.charged_bytes);
                }
                stays
            });
            shard.holders.fetch_sub(1, Ordering::SeqCst);
            entry.wake();
            if entry.waiters.is_empty() && entry.holders.is_empty() {
                trees.swap_remove(position);
            }
        }
    }
}

impl LockTable {
    /// Waits until `owner` may perhaps insert `key`: the caller asks again.
    pub(crate) fn wait_to_insert(
        &self,
        owner: &Arc<Owner>,
        tree: TreeId,
        key: &[u8],
        rule: WaitRule,
    ) -> Result<(), LockError> {
        if !self.gaps.enqueue(owner, tree, key) {
            return Ok(());
        }
        base::probe!("txn.lock.insert_waits_for_gap");
        let outcome = self.wait(owner, rule, None);
        self.gaps.dequeue(owner, tree);
        match outcome {
            LockError::Unavailable => Ok(()),
            other => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    const TREE: TreeId = TreeId::new(77);

    #[test]
    fn intervals_become_one_where_they_touch() {
        let mut intervals = Intervals::default();
        for (low, high) in [("b", Some("d")), ("f", Some("h")), ("d", Some("f")), ("m", None)] {
            intervals.add(low.as_bytes(), high.map(str::as_bytes));
        }
        assert_eq!(intervals.0.len(), 2);
        for (key, expected) in [("a", false), ("b", true), ("e", true), ("h", false), ("z", true)] {
            assert_eq!(intervals.contains(key.as_bytes()), expected, "{key}");
        }
        intervals.add(b"a", Some(b"n"));
        assert_eq!(intervals.0.into_iter().collect::<Vec<_>>(), [(b"a".to_vec(), None)]);
    }

    #[test]
    fn any_order_of_intervals_covers_the_same_keys() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut intervals, mut model) = (Intervals::default(), [false; 64]);
            for _ in 0..random.below(12) {
                let (low, length) = (random.below(64), random.below(12));
                let high = (low + length).min(64);
                let end = (high < 64).then_some([high as u8]);
                intervals.add(&[low as u8], end.as_ref().map(|it| it.as_slice()));
                (low..high).for_each(|key| model[key as usize] = true);
                for (key, expected) in model.iter().enumerate() {
                    assert_eq!(intervals.contains(&[key as u8]), *expected, "seed {seed}, {key}");
                }
            }
            let all: Vec<_> = intervals.0.into_iter().collect();
            for pair in all.windows(2) {
                assert!(pair[0].1.as_ref().is_some_and(|end| *end < pair[1].0), "seed {seed}");
            }
        }
    }

    #[test]
    fn an_insert_is_counted_or_kept_out() {
        let config = runtime::sim::SimConfig::new(1);
        let ended = runtime::sim::Simulation::new(config).run(insert_is_counted_or_kept_out);
        ended.expect("the simulation ends well");
    }

    fn insert_is_counted_or_kept_out() {
        let table = GapTable::new(MemoryAccount::new(u64::MAX));
        let owner = |number| Owner::new(number, crate::owner::Label::default());
        let (one, two) = (owner(1), owner(2));
        let mut trees = WatchedTrees::new();
        assert!(!table.is_watched(TREE));
        let inserts = table.watch(&one, &mut trees, TREE);
        assert!(table.is_watched(TREE) && table.may_insert(Some(&two), TREE, b"k"));
        let lock = |inserts| {
            let limits = (&b"a"[..], Some(&b"z"[..]));
            table.lock(&one, TREE, limits, LockMode::Exclusive, Some(inserts)).unwrap()
        };
        assert!(!lock(inserts), "k came in between");
        let inserts = table.watch(&one, &mut trees, TREE);
        assert!(lock(inserts));
        assert!(!table.may_insert(Some(&two), TREE, b"k"));
        assert!(!table.may_insert(None, TREE, b"k"));
        assert!(table.may_insert(Some(&one), TREE, b"k"), "one's own interval");
        assert!(table.may_insert(Some(&two), TREE, b"z"));
        table.release_all(&one, &mut trees);
        assert!(!table.is_watched(TREE) && table.may_insert(Some(&two), TREE, b"k"));
    }
}
