//! Metadata locks: who uses a name, and who changes what it means.
//!
//! Invariants:
//! 1. `state` counts holders; its `EXCLUSIVE` and `WAITERS` bits change only under `queue`.
//! 2. While `WAITERS` is set nobody is granted by the fast path, so a DDL statement in the
//!    queue is not starved by later readers.
//! 3. A waiter is in the queue until it is granted (by whoever released) or removes itself.
//! 4. A set holds a lock at most once; dropping the set releases everything.

use crate::{CatalogError, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

const EXCLUSIVE: u64 = 1 << 62;
const WAITERS: u64 = 1 << 63;
const HOLDERS: u64 = EXCLUSIVE - 1;

/// How a name is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// The definition is used; it must not change.
    Shared,
    /// The definition is changed; nobody else uses it.
    Exclusive,
}

struct Waiter {
    kind: LockKind,
    granted: Arc<AtomicBool>,
}

/// The lock of one name. It belongs to the name, so it outlives DROP and CREATE.
pub struct MetadataLock {
    schema: String,
    name: String,
    state: AtomicU64,
    queue: Mutex<VecDeque<Waiter>>,
    changed: Condvar,
}

impl MetadataLock {
    /// The lock of table `name` in `schema`; an empty `name` is the schema itself.
    pub fn new(schema: &str, name: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            name: name.to_owned(),
            state: AtomicU64::new(0),
            queue: Mutex::new(VecDeque::new()),
            changed: Condvar::new(),
        }
    }

    /// Schema and table (empty for the schema itself) that the lock protects.
    pub fn object(&self) -> (&str, &str) {
        (&self.schema, &self.name)
    }

    fn try_fast(&self, kind: LockKind) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let next = match kind {
                LockKind::Shared if state & (EXCLUSIVE | WAITERS) == 0 => state + 1,
                LockKind::Exclusive if state == 0 => EXCLUSIVE,
                _ => return false,
            };
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
            let free = match first.kind {
                LockKind::Shared => state & EXCLUSIVE == 0,
                LockKind::Exclusive => state & (EXCLUSIVE | HOLDERS) == 0,
            };
            if !free {
                break;
            }
            let grant = match first.kind {
                LockKind::Shared => 1,
                LockKind::Exclusive => EXCLUSIVE,
            };
            self.state.fetch_add(grant, Ordering::AcqRel);
            first.granted.store(true, Ordering::Release);
            queue.pop_front();
        }
        if queue.is_empty() {
            self.state.fetch_and(!WAITERS, Ordering::AcqRel);
        }
        self.changed.notify_all();
    }

    fn acquire(&self, kind: LockKind, timeout: Duration) -> Result<()> {
        if self.try_fast(kind) {
            return Ok(());
        }
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = Arc::new(AtomicBool::new(false));
        self.state.fetch_or(WAITERS, Ordering::AcqRel);
        queue.push_back(Waiter { kind, granted: granted.clone() });
        self.grant_waiters(&mut queue);
        let (mut queue, _) = self
            .changed
            .wait_timeout_while(queue, timeout, |_| !granted.load(Ordering::Acquire))
            .unwrap_or_else(PoisonError::into_inner);
        if granted.load(Ordering::Acquire) {
            return Ok(());
        }
        queue.retain(|w| !Arc::ptr_eq(&w.granted, &granted));
        self.grant_waiters(&mut queue);
        Err(CatalogError::LockWaitTimeout)
    }

    fn release(&self, kind: LockKind) {
        let held = match kind {
            LockKind::Shared => 1,
            LockKind::Exclusive => EXCLUSIVE,
        };
        if self.state.fetch_sub(held, Ordering::AcqRel) & WAITERS != 0 {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            self.grant_waiters(&mut queue);
        }
    }
}

/// The metadata locks of one session: kept until the transaction ends.
pub struct MetadataLockSet {
    held: Vec<(Arc<MetadataLock>, LockKind)>,
    timeout: Duration,
}

impl Default for MetadataLockSet {
    fn default() -> Self {
        Self::new(Duration::from_secs(86_400))
    }
}

impl MetadataLockSet {
    /// An empty set whose waits end after `timeout` (`lock_wait_timeout`).
    pub fn new(timeout: Duration) -> Self {
        Self { held: Vec::new(), timeout }
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
            if kind == LockKind::Shared || held == LockKind::Exclusive {
                return Ok(());
            }
            self.held.swap_remove(position);
            lock.release(held);
        }
        lock.acquire(kind, self.timeout)?;
        self.held.push((lock.clone(), kind));
        Ok(())
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

    /// Gives back everything.
    pub fn release_all(&mut self) {
        for (lock, kind) in self.held.drain(..) {
            lock.release(kind);
        }
    }

    /// Gives back the locks taken after there were `count`.
    pub fn release_after(&mut self, count: usize) {
        while self.held.len() > count {
            if let Some((lock, kind)) = self.held.pop() {
                lock.release(kind);
            }
        }
    }
}

impl Drop for MetadataLockSet {
    fn drop(&mut self) {
        self.release_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Arc<MetadataLock> {
        Arc::new(MetadataLock::new("test", "t"))
    }

    #[test]
    fn shared_locks_are_compatible_and_exclusive_is_not() {
        let lock = lock();
        let mut a = MetadataLockSet::new(Duration::ZERO);
        let mut b = MetadataLockSet::new(Duration::ZERO);
        a.acquire(&lock, LockKind::Shared).unwrap();
        b.acquire(&lock, LockKind::Shared).unwrap();
        let mut c = MetadataLockSet::new(Duration::from_millis(1));
        assert_eq!(c.acquire(&lock, LockKind::Exclusive), Err(CatalogError::LockWaitTimeout));
        a.release_all();
        b.release_all();
        c.acquire(&lock, LockKind::Exclusive).unwrap();
        assert_eq!(a.acquire(&lock, LockKind::Shared), Err(CatalogError::LockWaitTimeout));
        c.release_all();
        a.acquire(&lock, LockKind::Shared).unwrap();
        assert_eq!(lock.state.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn one_set_upgrades_its_own_lock() {
        let lock = lock();
        let mut a = MetadataLockSet::new(Duration::ZERO);
        a.acquire(&lock, LockKind::Shared).unwrap();
        a.acquire(&lock, LockKind::Shared).unwrap();
        assert_eq!(a.len(), 1);
        a.acquire(&lock, LockKind::Exclusive).unwrap();
        assert_eq!(a.len(), 1);
        drop(a);
        assert_eq!(lock.state.load(Ordering::Relaxed), 0);
    }
}
