//! Metadata locks: who uses a name, and who changes what it means.
//!
//! Invariants:
//! 1. `state` counts holders; its `EXCLUSIVE` and `WAITERS` bits change only under `queue`.
//! 2. While `WAITERS` is set nobody is granted by the fast path, so a DDL statement in the
//!    queue is not starved by later readers. Readers pass those who wait for something else than
//!    readers.
//! 3. A waiter is in the queue until it is granted (by whoever released) or removes itself.
//! 4. A set holds a lock at most once; dropping the set releases everything.
//! 5. A statement that needs several names asks for all of them at once and takes them in the
//!    order of their names, so two such statements never wait for each other.
//! 6. It waits in slices: when a slice is over it leaves the queue and gives back what it took in
//!    the same call, and tries again with a longer one. So a transaction that uses one of its
//!    names and waits for another one goes on after the first slice, and readers behind a
//!    statement that waits for a long transaction are not stopped for as long as that lasts.

use crate::{CatalogError, Result, ShownLocks};
use runtime::sync::Mutex;
use runtime::{Instant, Unparker, WaitClass, Wake};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const EXCLUSIVE: u64 = 1 << 62;
const WAITERS: u64 = 1 << 63;
const HOLDERS: u64 = EXCLUSIVE - 1;

/// The first wait of a statement that changes definitions; later ones double.
const FIRST_SLICE: Duration = Duration::from_secs(1);
/// The longest one: long enough for transactions that overlap all the time to come to an end.
const LAST_SLICE: Duration = Duration::from_secs(64);
/// Those who waited behind it go on meanwhile.
const BETWEEN_SLICES: Duration = Duration::from_millis(20);

/// How a name is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// The definition is used; it must not change.
    Shared,
    /// The same, and rows are changed.
    Write,
    /// LOCK TABLES ... READ: nobody changes rows.
    NoWrite,
    /// The definition is changed; nobody else uses it.
    Exclusive,
}

/// Holders are counted by kind.
const SHARED_UNIT: u64 = 1;
const WRITE_UNIT: u64 = 1 << 22;
const NO_WRITE_UNIT: u64 = 1 << 42;
const WRITERS: u64 = NO_WRITE_UNIT - WRITE_UNIT;
const NO_WRITERS: u64 = EXCLUSIVE - NO_WRITE_UNIT;

impl LockKind {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 4] = [Self::Shared, Self::Write, Self::NoWrite, Self::Exclusive];

    fn unit(self) -> u64 {
        match self {
            Self::Shared => SHARED_UNIT,
            Self::Write => WRITE_UNIT,
            Self::NoWrite => NO_WRITE_UNIT,
            Self::Exclusive => EXCLUSIVE,
        }
    }

    /// The holders that it cannot be granted beside.
    fn blockers(self) -> u64 {
        match self {
            Self::Shared => EXCLUSIVE,
            Self::Write => EXCLUSIVE | NO_WRITERS,
            Self::NoWrite => EXCLUSIVE | WRITERS,
            Self::Exclusive => EXCLUSIVE | HOLDERS,
        }
    }

    /// Whether who holds this needs not ask for `other`.
    fn covers(self, other: Self) -> bool {
        self == other || self == Self::Exclusive || other == Self::Shared
    }
}

struct Waiter {
    kind: LockKind,
    granted: Arc<AtomicBool>,
    fiber: Unparker,
}

/// The lock of one name. It belongs to the name, so it outlives DROP and CREATE.
pub struct MetadataLock {
    schema: String,
    name: String,
    state: AtomicU64,
    queue: Mutex<VecDeque<Waiter>>,
}

impl MetadataLock {
    /// The lock of table `name` in `schema`; an empty `name` is the schema itself.
    pub fn new(schema: &str, name: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
            state: AtomicU64::new(0),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// Schema and table (empty for the schema itself) that the lock protects.
    pub fn object(&self) -> (&str, &str) {
        (&self.schema, &self.name)
    }

    fn try_fast(&self, kind: LockKind) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & (kind.blockers() | WAITERS) != 0 {
                return false;
            }
            let next = state + kind.unit();
            match self.state.compare_exchange_weak(
                state,
                next,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
    }

    /// Grants whoever may go from the head of the queue. Called with the queue locked.
    fn grant_waiters(&self, queue: &mut VecDeque<Waiter>) {
        while let Some(first) = queue.front() {
            let state = self.state.load(Ordering::Acquire);
            if state & first.kind.blockers() != 0 {
                break;
            }
            self.state.fetch_add(first.kind.unit(), Ordering::AcqRel);
            first.granted.store(true, Ordering::Release);
            first.fiber.unpark();
            queue.pop_front();
        }
        if queue.is_empty() {
            self.state.fetch_and(!WAITERS, Ordering::AcqRel);
        }
    }

    fn acquire(&self, kind: LockKind, deadline: Instant) -> Result<()> {
        if self.try_fast(kind) {
            return Ok(());
        }
        let granted = Arc::new(AtomicBool::new(false));
        let mut queue = self.queue.lock();
        let is_exclusive = |waiter: &Waiter| waiter.kind == LockKind::Exclusive;
        let state = self.state.load(Ordering::Acquire);
        if kind == LockKind::Shared
            && state & WAITERS != 0
            && state & EXCLUSIVE == 0
            && !queue.iter().any(is_exclusive)
        {
            // Those who wait here wait for others than readers.
            self.state.fetch_add(SHARED_UNIT, Ordering::AcqRel);
            return Ok(());
        }
        self.state.fetch_or(WAITERS, Ordering::AcqRel);
        let fiber = runtime::current_unparker();
        queue.push_back(Waiter { kind, granted: granted.clone(), fiber });
        self.grant_waiters(&mut queue);
        drop(queue);
        let mut wake = Wake::Unparked;
        while !granted.load(Ordering::Acquire) && wake == Wake::Unparked {
            wake = runtime::park(WaitClass::MetadataLock, Some(deadline));
        }
        let mut queue = self.queue.lock();
        if granted.load(Ordering::Acquire) {
            return Ok(());
        }
        queue.retain(|waiter| !Arc::ptr_eq(&waiter.granted, &granted));
        self.grant_waiters(&mut queue);
        Err(match wake {
            Wake::Cancelled => CatalogError::Interrupted,
            Wake::TimedOut | Wake::Unparked => CatalogError::LockWaitTimeout,
        })
    }

    /// A holder of a shared lock begins to write. Nobody can have been granted what it would have
    /// to wait for, except for a reader that keeps writers out; so it passes those who wait.
    fn try_write(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        while state & (EXCLUSIVE | NO_WRITERS) == 0 {
            let next = state - SHARED_UNIT + WRITE_UNIT;
            match self.state.compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    fn release(&self, kind: LockKind) {
        if self.state.fetch_sub(kind.unit(), Ordering::AcqRel) & WAITERS != 0 {
            let mut queue = self.queue.lock();
            self.grant_waiters(&mut queue);
        }
    }
}

/// The metadata locks of one session: kept until the transaction ends.
pub struct MetadataLockSet {
    held: Vec<(Arc<MetadataLock>, LockKind)>,
    /// So many of the first locks stay until they are unpinned (LOCK TABLES).
    pinned: usize,
    timeout: Duration,
    /// Where others can look at them.
    shown: Option<Arc<ShownLocks>>,
}

impl Default for MetadataLockSet {
    fn default() -> Self {
        Self::new(Duration::from_secs(86_400))
    }
}

impl MetadataLockSet {
    /// An empty set whose waits end after `timeout` (`lock_wait_timeout`).
    pub fn new(timeout: Duration) -> Self {
        Self { held: Vec::new(), pinned: 0, timeout, shown: None }
    }

    /// Lets others look at what is held from now on.
    pub fn show_in(&mut self, shown: Arc<ShownLocks>) {
        for (at, (lock, kind)) in self.held.iter().enumerate() {
            shown.push(at, lock, *kind);
        }
        self.shown = Some(shown);
    }

    /// What is held, for somebody else; this set is empty then.
    pub fn split_off(&mut self) -> Self {
        let mut fresh = Self::new(self.timeout);
        self.hide_from(0);
        fresh.shown = self.shown.take();
        std::mem::replace(self, fresh)
    }

    /// How lock number `at` is held has changed.
    fn show(&self, at: usize) {
        if let (Some(shown), Some((lock, kind))) = (&self.shown, self.held.get(at)) {
            shown.change(at, lock, *kind, at < self.pinned);
        }
    }

    /// Those from `kept` on are given back next.
    #[inline]
    fn hide_from(&self, kept: usize) {
        if let Some(shown) = &self.shown {
            shown.truncate(kept);
        }
    }

    fn push(&mut self, lock: &Arc<MetadataLock>, kind: LockKind) {
        if let Some(shown) = &self.shown {
            shown.push(self.held.len(), lock, kind);
        }
        self.held.push((lock.clone(), kind));
    }

    /// Gives one of them back.
    fn give_back(&mut self, position: usize) {
        if let Some(shown) = &self.shown {
            shown.remove(position);
        }
        let (lock, kind) = self.held.remove(position);
        self.pinned -= usize::from(position < self.pinned);
        lock.release(kind);
    }

    /// The limit of waits.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Changes the limit of later waits.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Takes `lock` unless the set holds it already (at least as strongly). A shared lock is
    /// made exclusive by giving it up first: whoever asks must read the definition again.
    pub fn acquire(&mut self, lock: &Arc<MetadataLock>, kind: LockKind) -> Result<()> {
        if let Some(position) = self.held.iter().position(|(l, _)| Arc::ptr_eq(l, lock)) {
            let held = self.held[position].1;
            if held.covers(kind) {
                return Ok(());
            }
            if kind == LockKind::Write && held == LockKind::Shared && lock.try_write() {
                self.held[position].1 = LockKind::Write;
                self.show(position);
                return Ok(());
            }
            self.give_back(position);
        }
        // The clock is not read for a lock that nobody is in the way of.
        if !lock.try_fast(kind) {
            lock.acquire(kind, runtime::now() + self.timeout)?;
        }
        self.push(lock, kind);
        Ok(())
    }

    /// Takes all of `wanted` for a change of definitions, or none (invariants 5 and 6). Of a
    /// name wanted twice the stronger kind counts. Locks held before stay as they are, unless
    /// one is to be made exclusive, as by [`MetadataLockSet::acquire`].
    pub fn acquire_all(&mut self, mut wanted: Vec<(Arc<MetadataLock>, LockKind)>) -> Result<()> {
        wanted.sort_by(|(a, kind_a), (b, kind_b)| {
            let rank = |kind: &LockKind| *kind != LockKind::Exclusive;
            a.object().cmp(&b.object()).then(rank(kind_a).cmp(&rank(kind_b)))
        });
        wanted.dedup_by(|(later, _), (first, _)| Arc::ptr_eq(later, first));
        let covered = |held: &[(Arc<MetadataLock>, LockKind)], lock: &Arc<MetadataLock>, kind| {
            held.iter().any(|(other, held)| Arc::ptr_eq(other, lock) && held.covers(kind))
        };
        wanted.retain(|(lock, kind)| !covered(&self.held, lock, *kind));
        for (lock, _) in &wanted {
            if let Some(at) = self.held.iter().position(|(other, _)| Arc::ptr_eq(other, lock)) {
                self.give_back(at);
            }
        }
        let end = runtime::now() + self.timeout;
        let before = self.held.len();
        let mut slice = FIRST_SLICE;
        loop {
            let deadline = (runtime::now() + slice).min(end);
            let taken = wanted.iter().try_for_each(|(lock, kind)| {
                lock.acquire(*kind, deadline)?;
                self.push(lock, *kind);
                Ok(())
            });
            match taken {
                Err(CatalogError::LockWaitTimeout) if runtime::now() < end => {}
                result => {
                    if result.is_err() {
                        self.release_after(before);
                    }
                    return result;
                }
            }
            base::probe!("catalog.metadata_lock.slice_over");
            self.release_after(before);
            runtime::sleep(BETWEEN_SLICES);
            slice = (slice * 2).min(LAST_SLICE);
        }
    }

    /// Whether `lock` is held, in whatever kind.
    pub fn holds(&self, lock: &Arc<MetadataLock>) -> bool {
        self.held.iter().any(|(l, _)| Arc::ptr_eq(l, lock))
    }

    /// Number of locks held; with [`MetadataLockSet::release_after`] a savepoint.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// No lock is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Gives back everything but what is pinned.
    pub fn release_all(&mut self) {
        self.release_after(0);
    }

    /// What is held now stays beyond the end of transactions.
    pub fn pin(&mut self) {
        self.pinned = self.held.len();
        (0..self.pinned).for_each(|at| self.show(at));
    }

    /// Gives back everything.
    pub fn unpin(&mut self) {
        self.pinned = 0;
        self.release_all();
    }

    /// Gives back the locks taken after there were `count`.
    pub fn release_after(&mut self, count: usize) {
        let kept = count.max(self.pinned);
        if self.held.len() <= kept {
            return;
        }
        self.hide_from(kept);
        while self.held.len() > kept {
            if let Some((lock, kind)) = self.held.pop() {
                lock.release(kind);
            }
        }
    }
}

impl Drop for MetadataLockSet {
    fn drop(&mut self) {
        self.unpin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, Simulation};

    fn lock() -> Arc<MetadataLock> {
        Arc::new(MetadataLock::new("test", "t"))
    }

    fn simulate(seed: u64, test: impl FnOnce() + Send + 'static) {
        Simulation::new(SimConfig::new(seed)).run(test).expect("the simulation ends by itself");
    }

    #[test]
    fn shared_locks_are_compatible_and_exclusive_is_not() {
        simulate(1, || {
            let lock = lock();
            let mut a = MetadataLockSet::new(Duration::ZERO);
            let mut b = MetadataLockSet::new(Duration::ZERO);
            a.acquire(&lock, LockKind::Shared).unwrap();
            b.acquire(&lock, LockKind::Shared).unwrap();
            let mut c = MetadataLockSet::new(Duration::from_millis(1));
            let refused = c.acquire(&lock, LockKind::Exclusive);
            assert_eq!(refused, Err(CatalogError::LockWaitTimeout));
            a.release_all();
            b.release_all();
            c.acquire(&lock, LockKind::Exclusive).unwrap();
            assert!(a.acquire(&lock, LockKind::Shared).is_err());
            c.release_all();
            a.acquire(&lock, LockKind::Shared).unwrap();
            assert_eq!(lock.state.load(Ordering::Relaxed), 1);
        });
    }

    #[test]
    fn writers_and_those_who_keep_them_out_exclude_each_other() {
        simulate(3, || {
            let lock = lock();
            let mut reader = MetadataLockSet::new(Duration::from_millis(1));
            let mut writer = MetadataLockSet::new(Duration::from_millis(1));
            let mut keeper = MetadataLockSet::new(Duration::from_millis(1));
            writer.acquire(&lock, LockKind::Write).unwrap();
            reader.acquire(&lock, LockKind::Shared).unwrap();
            assert!(keeper.acquire_all(vec![(lock.clone(), LockKind::NoWrite)]).is_err());
            writer.release_all();
            keeper.acquire_all(vec![(lock.clone(), LockKind::NoWrite)]).unwrap();
            keeper.pin();
            keeper.release_all();
            assert!(reader.acquire(&lock, LockKind::Write).is_err());
            reader.acquire(&lock, LockKind::Shared).unwrap();
            assert!(writer.acquire(&lock, LockKind::Write).is_err());
            keeper.unpin();
            reader.acquire(&lock, LockKind::Write).unwrap();
            assert_eq!(reader.len(), 1);
            drop(reader);
            assert_eq!(lock.state.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn one_set_upgrades_its_own_lock() {
        simulate(2, || {
            let lock = lock();
            let mut a = MetadataLockSet::new(Duration::ZERO);
            a.acquire(&lock, LockKind::Shared).unwrap();
            a.acquire(&lock, LockKind::Shared).unwrap();
            assert_eq!(a.len(), 1);
            a.acquire(&lock, LockKind::Exclusive).unwrap();
            assert_eq!(a.len(), 1);
            drop(a);
            assert_eq!(lock.state.load(Ordering::Relaxed), 0);
        });
    }

    /// Statements that want several names in any order, and transactions that use one name and
    /// then another one: all of them end, long before a wait times out.
    #[test]
    fn statements_over_several_names_do_not_wait_for_each_other() {
        for seed in 0..30 {
            simulate(seed, || {
                let names = ["a", "b", "c"];
                let locks: Vec<_> =
                    names.iter().map(|name| Arc::new(MetadataLock::new("test", name))).collect();
                let fibers: Vec<_> = (0..6)
                    .map(|number| {
                        let locks = locks.clone();
                        runtime::spawn("statement", move || {
                            for round in 0..8 {
                                let mut set = MetadataLockSet::new(Duration::from_secs(1000));
                                let (first, second) = (number % 3, (number + 1 + round % 2) % 3);
                                let both = [first, second].map(|at| locks[at].clone());
                                if number < 4 {
                                    let kind = LockKind::Exclusive;
                                    let wanted = both.map(|lock| (lock, kind)).to_vec();
                                    set.acquire_all(wanted).unwrap();
                                    assert_eq!(set.len(), 2);
                                    runtime::sleep(Duration::from_micros(30));
                                    continue;
                                }
                                for lock in &both {
                                    set.acquire(lock, LockKind::Shared).unwrap();
                                    let pause = runtime::random_u64() % 60;
                                    runtime::sleep(Duration::from_micros(pause));
                                }
                            }
                        })
                    })
                    .collect();
                fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
                assert!(runtime::now().as_nanos() < 400_000_000_000, "waits in a circle");
                for lock in &locks {
                    assert_eq!(lock.state.load(Ordering::Relaxed), 0);
                }
            });
        }
    }

    /// A transaction that comes back for a second name is not held up by a statement that has
    /// that name and waits for the first one.
    #[test]
    fn a_transaction_goes_on_before_a_statement_over_two_names() {
        simulate(7, || {
            let [a, b] = ["a", "b"].map(|name| Arc::new(MetadataLock::new("test", name)));
            let mut reader = MetadataLockSet::new(Duration::from_secs(1000));
            reader.acquire(&b, LockKind::Shared).unwrap();
            let wanted = vec![(b.clone(), LockKind::Exclusive), (a.clone(), LockKind::Exclusive)];
            let statement = runtime::spawn("statement", move || {
                let mut set = MetadataLockSet::new(Duration::from_secs(1000));
                set.acquire_all(wanted).map(|()| set.len())
            });
            runtime::sleep(Duration::from_millis(5));
            let begun = runtime::now();
            reader.acquire(&a, LockKind::Shared).unwrap();
            assert!(begun.elapsed() <= FIRST_SLICE + BETWEEN_SLICES);
            drop(reader);
            assert_eq!(statement.join().unwrap(), Ok(2));
        });
    }

    /// Readers and a writer over many seeds: the writer is alone, nobody waits for ever, and the
    /// lock is free in the end.
    #[test]
    fn an_exclusive_holder_is_alone() {
        for seed in 0..50 {
            simulate(seed, || {
                let lock = lock();
                let inside = Arc::new(AtomicU64::new(0));
                let fibers: Vec<_> = (0..6)
                    .map(|number| {
                        let (lock, inside) = (lock.clone(), inside.clone());
                        runtime::spawn("locker", move || {
                            for round in 0..20 {
                                let exclusive = (number + round) % 5 == 0;
                                let (kind, weight) = match exclusive {
                                    true => (LockKind::Exclusive, 1000),
                                    false => (LockKind::Shared, 1),
                                };
                                let mut set = MetadataLockSet::new(Duration::from_secs(60));
                                set.acquire(&lock, kind).unwrap();
                                let before = inside.fetch_add(weight, Ordering::SeqCst);
                                assert!(before < 1000 && (!exclusive || before == 0));
                                runtime::sleep(Duration::from_micros(runtime::random_u64() % 50));
                                inside.fetch_sub(weight, Ordering::SeqCst);
                            }
                        })
                    })
                    .collect();
                fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
                assert_eq!(lock.state.load(Ordering::Relaxed), 0);
            });
        }
    }
}
