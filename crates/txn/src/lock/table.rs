//! The table of explicit locks.

use super::gap::GapTable;
use super::held::{HeldLock, HeldLocks};
use super::queue::{Queue, Request, Requests};
use super::report::LastDeadlock;
use super::{Acquired, LockError, LockMode, WaitPoint, WaitRule, deadlock};
use crate::owner::{Owner, VICTIM, WAITING};
use base::{MemoryAccount, TreeId};
use hashbrown::HashTable;
use runtime::Wake;
use runtime::sync::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Key of a locked entry; short ones need no allocation.
pub(crate) type KeyBytes = SmallVec<[u8; 24]>;

/// Number of shards; a power of two.
const SHARDS: usize = 256;

/// Queues that an empty shard keeps room for.
const KEPT_QUEUES: usize = 1 << 10;

/// How long a transaction that keeps a lock waits before it looks again; it never gives up.
const KEEP_ROUND: Duration = Duration::from_secs(3600);

static LOCK_WAITS: base::metrics::Counter =
    base::metrics::Counter::new("row_lock_waits", "row locks that had to be waited for");
static LOCK_TIME_MICROS: base::metrics::Counter =
    base::metrics::Counter::new("row_lock_time_micros", "microseconds spent in row lock waits");
static DEADLOCKS: base::metrics::Counter =
    base::metrics::Counter::new("deadlocks", "cycles of waits that were found");
static TIMEOUTS: base::metrics::Counter =
    base::metrics::Counter::new("row_lock_timeouts", "row lock waits that timed out");

pub(super) type Shard = HashTable<Queue>;

/// All explicit row locks.
pub struct LockTable {
    pub(super) shards: Box<[Mutex<Shard>]>,
    search: Mutex<()>,
    pub(super) deadlocks: LastDeadlock,
    waiting: AtomicU64,
    pub(crate) gaps: GapTable,
    memory: Arc<MemoryAccount>,
}

impl std::fmt::Debug for LockTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "LockTable({} waiting)", self.waiting.load(Ordering::Relaxed))
    }
}

impl Default for LockTable {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

/// FNV-1a over tree and key with a final mix: cheap for short keys, the same in every run.
fn hash_of(tree: TreeId, key: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ u64::from(tree.get());
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    for byte in rest {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}

impl LockTable {
    /// A table without locks; those of large transactions may take `memory_bytes` together.
    pub fn new(memory_bytes: u64) -> Self {
        let memory = MemoryAccount::new(memory_bytes);
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect();
        Self {
            shards,
            search: Mutex::new(()),
            deadlocks: LastDeadlock::default(),
            waiting: AtomicU64::new(0),
            gaps: GapTable::new(memory.clone()),
            memory,
        }
    }

    pub(super) fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 48) as usize % SHARDS]
    }

    /// What locks are accounted with.
    pub fn memory(&self) -> &MemoryAccount {
        &self.memory
    }

    /// Transactions waiting now.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Explicit locks and requests there are.
    pub fn len(&self) -> usize {
        let requests = |shard: &Mutex<Shard>| -> usize {
            shard.lock().iter().map(|queue| queue.requests.len()).sum()
        };
        self.shards.iter().map(requests).sum()
    }

    /// Whether nothing is locked explicitly.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a lock, waiting as `rule` allows. On an error nothing new is held.
    pub(crate) fn acquire(
        &self,
        owner: &Arc<Owner>,
        held: &mut HeldLocks,
        (tree, key): (TreeId, &[u8]),
        mode: LockMode,
        rule: WaitRule,
    ) -> Result<Acquired, LockError> {
        held.make_room(&self.memory)?;
        let hash = hash_of(tree, key);
        {
            let mut shard = self.shard(hash).lock();
            let entry = shard.entry(hash, |it| it.is_for(tree, key), |it| it.hash);
            let queue = entry.or_insert_with(|| Queue::new(hash, tree, key)).into_mut();
            let mine = |it: &Request| it.granted && Arc::ptr_eq(&it.owner, owner);
            if queue.requests.iter().any(|it| mine(it) && it.mode.covers(mode)) {
                return Ok(Acquired::Already);
            }
            let end = queue.requests.len();
            let granted = queue.blockers(owner, mode, end).next().is_none();
            if !granted && rule == WaitRule::Never {
                return Err(LockError::Unavailable);
            }
            queue.requests.push(Request { owner: owner.clone(), mode, granted });
            if granted {
                held.locks.push(HeldLock { hash, tree, key: queue.key.clone() });
                owner.add_weight(1);
                return Ok(Acquired::Now);
            }
            let key = queue.key.clone();
            owner.begin_wait(WaitPoint::Lock { hash, tree, key, can_fail: true });
        }
        let outcome = self.wait(owner, rule, None);
        if self.settle_request(hash, tree, key, owner) {
            held.locks.push(HeldLock { hash, tree, key: KeyBytes::from_slice(key) });
            owner.add_weight(1);
            return Ok(Acquired::AfterWait);
        }
        Err(outcome)
    }

    /// Makes the lock that `owner` has of an entry by its version word an explicit one, ahead of
    /// everybody (invariant 8). Waits, without a limit, for those who are about to read the word.
    /// An error only when the runtime ends, or everybody in a cycle does what this does.
    pub(crate) fn keep(
        &self,
        owner: &Arc<Owner>,
        held: &mut HeldLocks,
        (tree, key): (TreeId, &[u8]),
    ) -> Result<(), LockError> {
        let (hash, mode) = (hash_of(tree, key), LockMode::Exclusive);
        let mut outcome = LockError::Unavailable;
        while matches!(outcome, LockError::Unavailable | LockError::Timeout) {
            {
                let mut shard = self.shard(hash).lock();
                let entry = shard.entry(hash, |it| it.is_for(tree, key), |it| it.hash);
                let queue = entry.or_insert_with(|| Queue::new(hash, tree, key)).into_mut();
                let mine = |it: &Request| it.granted && Arc::ptr_eq(&it.owner, owner);
                if queue.requests.iter().any(|it| mine(it) && it.mode.covers(mode)) {
                    return Ok(());
                }
                let granted = queue.requests.iter().all(|it| !it.granted || mine(it));
                queue.requests.insert(0, Request { owner: owner.clone(), mode, granted });
                let key = queue.key.clone();
                if granted {
                    held.locks.push(HeldLock { hash, tree, key });
                    owner.add_weight(1);
                    return Ok(());
                }
                owner.begin_wait(WaitPoint::Lock { hash, tree, key, can_fail: false });
            }
            base::probe!("txn.lock.keep_waits");
            outcome = self.wait(owner, WaitRule::Until(runtime::now() + KEEP_ROUND), None);
            if self.settle_request(hash, tree, key, owner) {
                held.locks.push(HeldLock { hash, tree, key: KeyBytes::from_slice(key) });
                owner.add_weight(1);
                return Ok(());
            }
        }
        Err(outcome)
    }

    /// Parks a registered wait to its end; the error holds only if the wait was not granted.
    /// `holder` got an explicit lock by this wait (invariant 7).
    pub(super) fn wait(
        &self,
        owner: &Arc<Owner>,
        rule: WaitRule,
        holder: Option<&Arc<Owner>>,
    ) -> LockError {
        let WaitRule::Until(deadline) = rule else {
            owner.end_wait();
            return LockError::Unavailable;
        };
        LOCK_WAITS.add(1);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let begun = runtime::now();
        if let Some(holder) = holder
            && deadlock::search(self, &self.search, holder)
        {
            base::probe!("txn.deadlock.through_the_holder");
            DEADLOCKS.add(1);
        }
        // Nobody can wait for a transaction that never had a lock or a row, except behind it in
        // the queue that it joined last: such a wait closes no cycle (invariant 6).
        if owner.weight() > 0 && deadlock::search(self, &self.search, owner) {
            DEADLOCKS.add(1);
        }
        let wake = owner.park(deadline);
        LOCK_TIME_MICROS.add(begun.elapsed().as_micros() as u64);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        match (owner.end_wait(), wake) {
            (VICTIM, _) => LockError::Deadlock,
            (WAITING, Wake::Cancelled) => LockError::Cancelled,
            (WAITING, Wake::TimedOut) => {
                TIMEOUTS.add(1);
                LockError::Timeout
            }
            // A stale grant of an earlier wait: the caller tries again from the start.
            _ => LockError::Unavailable,
        }
    }

    /// After a wait: true when the request was granted, else it is taken out.
    fn settle_request(&self, hash: u64, tree: TreeId, key: &[u8], owner: &Arc<Owner>) -> bool {
        let mut shard = self.shard(hash).lock();
        let Ok(mut entry) = shard.find_entry(hash, |it| it.is_for(tree, key)) else {
            return false;
        };
        let queue = entry.get_mut();
        let waits = |it: &Request| !it.granted && Arc::ptr_eq(&it.owner, owner);
        let Some(position) = queue.requests.iter().position(waits) else { return true };
        queue.requests.remove(position);
        queue.grant();
        if queue.requests.is_empty() {
            entry.remove();
        }
        false
    }

    /// The entry of a lock just granted to `owner` turns out to be written by `holder`, which
    /// still runs: gives the holder the lock it has by its version word and queues `owner`
    /// behind it. Returns like [`LockTable::acquire`]; at once when the holder has ended.
    pub(crate) fn wait_behind(
        &self,
        owner: &Arc<Owner>,
        held: &mut HeldLocks,
        holder: &Arc<Owner>,
        (tree, key): (TreeId, &[u8]),
        rule: WaitRule,
    ) -> Result<Acquired, LockError> {
        if rule == WaitRule::Never {
            return Err(LockError::Unavailable);
        }
        let hash = hash_of(tree, key);
        {
            let mut shard = self.shard(hash).lock();
            let Ok(mut entry) = shard.find_entry(hash, |it| it.is_for(tree, key)) else {
                return Ok(Acquired::AfterWait);
            };
            let queue = entry.get_mut();
            let mine = |it: &Request| it.granted && Arc::ptr_eq(&it.owner, owner);
            // The one taken last.
            let Some(position) = queue.requests.iter().rposition(mine) else {
                return Ok(Acquired::AfterWait);
            };
            let lock = HeldLock { hash, tree, key: queue.key.clone() };
            let theirs = |it: &Request| it.granted && Arc::ptr_eq(&it.owner, holder);
            let mode = LockMode::Exclusive;
            let present = queue.requests.iter().any(|it| theirs(it) && it.mode.covers(mode));
            if !present && !holder.inherit(lock) {
                return Ok(Acquired::AfterWait);
            }
            queue.requests[position].granted = false;
            let request = Request { owner: holder.clone(), mode, granted: true };
            if !present {
                queue.requests.insert(0, request);
            }
            // The holder itself may be queued here behind the lock that was just taken back.
            queue.grant();
            let key = queue.key.clone();
            owner.begin_wait(WaitPoint::Lock { hash, tree, key, can_fail: true });
        }
        if let Some(at) = held.locks.iter().rposition(|it| it.is_for(hash, tree, key)) {
            held.locks.swap_remove(at);
        }
        base::probe!("txn.lock.implicit_made_explicit");
        let outcome = self.wait(owner, rule, Some(holder));
        if self.settle_request(hash, tree, key, owner) {
            held.locks.push(HeldLock { hash, tree, key: KeyBytes::from_slice(key) });
            return Ok(Acquired::AfterWait);
        }
        Err(outcome)
    }

    /// Waits for the end of `target`, which holds a row by its version word. Returns when it has
    /// ended, perhaps earlier: the caller looks again.
    pub(crate) fn wait_for_transaction(
        &self,
        owner: &Arc<Owner>,
        target: &Arc<Owner>,
        rule: WaitRule,
    ) -> Result<(), LockError> {
        if rule == WaitRule::Never {
            return Err(LockError::Unavailable);
        }
        owner.begin_wait(WaitPoint::Transaction(target.clone()));
        if !target.follow(owner) {
            owner.end_wait();
            return Ok(());
        }
        let outcome = self.wait(owner, rule, None);
        target.unfollow(owner);
        match outcome {
            LockError::Unavailable => Ok(()),
            other => Err(other),
        }
    }

    /// Whether a lock of another transaction keeps `owner` from changing the entry.
    pub(crate) fn is_locked_by_other(
        &self,
        owner: Option<&Arc<Owner>>,
        tree: TreeId,
        key: &[u8],
    ) -> bool {
        let hash = hash_of(tree, key);
        let shard = self.shard(hash).lock();
        let Some(queue) = shard.find(hash, |it| it.is_for(tree, key)) else { return false };
        let is_own = |it: &Request| owner.is_some_and(|own| Arc::ptr_eq(&it.owner, own));
        queue.requests.iter().any(|it| it.granted && !is_own(it))
    }

    /// Gives the lock that was taken last on a key back before the end of the transaction; one that
    /// was held before, as a shared one that was raised, stays.
    pub(crate) fn release_newest(
        &self,
        owner: &Arc<Owner>,
        held: &mut HeldLocks,
        tree: TreeId,
        key: &[u8],
    ) {
        let hash = hash_of(tree, key);
        // Usually the last one taken.
        let Some(position) = held.locks.iter().rposition(|it| it.is_for(hash, tree, key)) else {
            return;
        };
        let lock = held.locks.swap_remove(position);
        self.release(&lock, |requests| {
            // Of one owner they stand in the order in which they were taken.
            let mine = |it: &Request| it.granted && Arc::ptr_eq(&it.owner, owner);
            if let Some(newest) = requests.iter().rposition(mine) {
                requests.remove(newest);
            }
        });
    }

    /// Gives the lock taken last back if it is on this key and nobody waits for it.
    pub(crate) fn release_last_if_alone(
        &self,
        owner: &Arc<Owner>,
        held: &mut HeldLocks,
        tree: TreeId,
        key: &[u8],
    ) {
        let is_it = |it: &HeldLock| it.tree == tree && it.key.as_slice() == key;
        let Some(hash) = held.locks.last().filter(|it| is_it(it)).map(|it| it.hash) else { return };
        let mut shard = self.shard(hash).lock();
        let Ok(mut entry) = shard.find_entry(hash, |it| it.is_for(tree, key)) else { return };
        let requests = &mut entry.get_mut().requests;
        if requests.len() == 1 && Arc::ptr_eq(&requests[0].owner, owner) {
            entry.remove();
            held.locks.pop();
        }
    }

    /// `remove` takes requests out of the queue of a lock; who waited behind them goes on.
    fn release(&self, lock: &HeldLock, remove: impl FnOnce(&mut Requests)) {
        let mut shard = self.shard(lock.hash).lock();
        let is_it = |it: &Queue| it.is_for(lock.tree, &lock.key);
        let Ok(mut entry) = shard.find_entry(lock.hash, is_it) else { return };
        let queue = entry.get_mut();
        remove(&mut queue.requests);
        if queue.requests.is_empty() {
            entry.remove();
            if shard.capacity() > KEPT_QUEUES && shard.is_empty() {
                *shard = Shard::new();
            }
        } else {
            queue.grant();
        }
    }

    /// Gives all locks back.
    pub(crate) fn release_all(&self, owner: &Arc<Owner>, held: &mut HeldLocks) {
        for lock in held.locks.drain(..).chain(owner.end_inheritance()) {
            self.release(&lock, |requests| {
                requests.retain(|it| !(it.granted && Arc::ptr_eq(&it.owner, owner)));
            });
        }
        held.give_back(&self.memory);
    }

    /// Everybody whom the waiting `owner` waits for now.
    pub(crate) fn blockers_of(&self, owner: &Arc<Owner>) -> Vec<Arc<Owner>> {
        match owner.wait_point() {
            None => Vec::new(),
            Some(WaitPoint::Transaction(target)) => vec![target],
            Some(WaitPoint::Gap { tree, key }) => self.gaps.blockers_of(owner, tree, &key),
            Some(WaitPoint::Lock { hash, tree, key, .. }) => {
                let shard = self.shard(hash).lock();
                let Some(queue) = shard.find(hash, |it| it.is_for(tree, &key)) else {
                    return Vec::new();
                };
                let waits = |it: &Request| !it.granted && Arc::ptr_eq(&it.owner, owner);
                let Some(position) = queue.requests.iter().position(waits) else {
                    return Vec::new();
                };
                let mode = queue.requests[position].mode;
                queue.blockers(owner, mode, position).map(|it| it.owner.clone()).collect()
            }
        }
    }
}
