//! The metadata locks that a session holds, for others to look at.
//!
//! 1. Only the session writes: three stores for a lock, one for giving all of them back. The list
//!    is read while it changes, and shows the locks of about one moment.
//! 2. A place holds the lock's address with kind and pin in its lowest bits. Addresses are
//!    compared with those of the locks that the catalog knows, and never followed.

use crate::{LockKind, MetadataLock};
use runtime::Instant;
use runtime::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Locks that have a place of their own: more are rare.
const PLACES: usize = 4;

const KIND_MASK: usize = 0b11;
const PINNED: usize = 0b100;
const ADDRESS_MASK: usize = !(KIND_MASK | PINNED);

#[derive(Default)]
struct Place {
    word: AtomicUsize,
    since_nanos: AtomicU64,
}

impl Place {
    fn load(&self) -> (usize, u64) {
        (self.word.load(Ordering::Relaxed), self.since_nanos.load(Ordering::Relaxed))
    }
}

/// See the head of the file.
#[derive(Default)]
pub struct ShownLocks {
    /// Places that mean something.
    count: AtomicUsize,
    first: [Place; PLACES],
    more: Mutex<Vec<(usize, u64)>>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownLock {
    /// Where the lock is, to be compared.
    pub(crate) address: usize,
    /// How it is held.
    pub kind: LockKind,
    /// By LOCK TABLES.
    pub is_pinned: bool,
    /// Since when.
    pub since: Instant,
}

impl std::fmt::Debug for ShownLocks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.list()).finish()
    }
}

pub(crate) fn address_of(lock: &Arc<MetadataLock>) -> usize {
    Arc::as_ptr(lock) as usize
}

impl ShownLocks {
    /// A lock is taken: number `at`, the last one.
    #[inline]
    pub(crate) fn push(&self, at: usize, lock: &Arc<MetadataLock>, kind: LockKind) {
        let since = runtime::turn_time().as_nanos();
        self.store(at, (address_of(lock) | kind as usize, since));
        self.count.store(at + 1, Ordering::Release);
    }

    /// Only the first `kept` locks are left.
    #[inline]
    pub(crate) fn truncate(&self, kept: usize) {
        self.count.store(kept, Ordering::Release);
    }

    /// Lock number `at` is held in another way, since when it was.
    pub(crate) fn change(&self, at: usize, lock: &Arc<MetadataLock>, kind: LockKind, pin: bool) {
        let pin = if pin { PINNED } else { 0 };
        let (_, since) = self.load(at);
        self.store(at, (address_of(lock) | kind as usize | pin, since));
    }

    /// Lock number `at` is given back, those behind it move up.
    #[cold]
    pub(crate) fn remove(&self, at: usize) {
        let last = self.count.load(Ordering::Relaxed) - 1;
        for at in at..last {
            self.store(at, self.load(at + 1));
        }
        self.truncate(last);
    }

    /// Word and time of lock number `at`.
    fn load(&self, at: usize) -> (usize, u64) {
        match self.first.get(at) {
            Some(place) => place.load(),
            None => self.more.lock()[at - PLACES],
        }
    }

    #[inline]
    fn store(&self, at: usize, shown: (usize, u64)) {
        match self.first.get(at) {
            Some(place) => {
                place.since_nanos.store(shown.1, Ordering::Relaxed);
                place.word.store(shown.0, Ordering::Relaxed);
            }
            None => self.store_more(at - PLACES, shown),
        }
    }

    #[cold]
    fn store_more(&self, at: usize, shown: (usize, u64)) {
        let mut more = self.more.lock();
        if more.len() <= at {
            more.resize(at + 1, (0, 0));
        }
        more[at] = shown;
    }

    /// Those that are held now.
    pub(crate) fn list(&self) -> Vec<ShownLock> {
        let count = self.count.load(Ordering::Acquire);
        let mut words: Vec<(usize, u64)> = self.first.iter().map(Place::load).collect();
        words.extend(self.more.lock().iter().copied());
        words.truncate(count);
        let shown = |(word, since)| ShownLock {
            address: word & ADDRESS_MASK,
            kind: LockKind::ALL[word & KIND_MASK],
            is_pinned: word & PINNED != 0,
            since: Instant::from_nanos(since),
        };
        words.into_iter().map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, Simulation};

    /// More locks than places: each is shown as it is held, since when it was, wherever it moves.
    #[test]
    fn what_is_held_is_shown() {
        let mut simulation = Simulation::new(SimConfig::new(1));
        let ended = simulation.run(|| {
            let locks: Vec<_> = (0..PLACES + 3)
                .map(|number| Arc::new(MetadataLock::new("test", &number.to_string())))
                .collect();
            let shown = ShownLocks::default();
            for (at, lock) in locks.iter().enumerate() {
                runtime::sleep(std::time::Duration::from_secs(1));
                shown.push(at, lock, LockKind::Shared);
            }
            runtime::sleep(std::time::Duration::from_secs(1));
            let mut expected = shown.list();
            assert!(expected.iter().map(|shown| shown.address).eq(locks.iter().map(address_of)));
            assert!(expected.is_sorted_by(|one, next| one.since < next.since));
            for at in [1, PLACES + 1] {
                shown.change(at, &locks[at], LockKind::Write, true);
                expected[at].kind = LockKind::Write;
                expected[at].is_pinned = true;
            }
            assert_eq!(shown.list(), expected);
            shown.remove(2);
            expected.remove(2);
            assert_eq!(shown.list(), expected);
            shown.truncate(1);
            shown.push(1, &locks[0], LockKind::Exclusive);
            let listed = shown.list();
            assert_eq!((listed.len(), listed[1].kind), (2, LockKind::Exclusive));
            assert!(listed[1].since > expected[1].since);
        });
        ended.expect("the simulation ends by itself");
    }
}
