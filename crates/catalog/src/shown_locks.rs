//! The metadata locks that a session holds, for others to look at.
//!
//! 1. Only the session writes, two stores for a lock; the list is read while it changes, and what
//!    is read of one lock is right, of all of them it is of about one moment.
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

/// See the head of the file.
#[derive(Default)]
pub struct ShownLocks {
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
    #[inline]
    pub(crate) fn put(&self, at: usize, lock: &Arc<MetadataLock>, kind: LockKind, is_pinned: bool) {
        let pin = if is_pinned { PINNED } else { 0 };
        let word = address_of(lock) | kind as usize | pin;
        let since = runtime::turn_time().as_nanos();
        match self.first.get(at) {
            Some(place) => {
                let same = place.word.load(Ordering::Relaxed) & ADDRESS_MASK == address_of(lock);
                if !same {
                    place.since_nanos.store(since, Ordering::Relaxed);
                }
                place.word.store(word, Ordering::Relaxed);
            }
            None => self.put_more(at - PLACES, word, since),
        }
    }

    #[cold]
    fn put_more(&self, at: usize, word: usize, since: u64) {
        let mut more = self.more.lock();
        let since = match more.get(at) {
            Some((before, since)) if before & ADDRESS_MASK == word & ADDRESS_MASK => *since,
            _ => since,
        };
        more.truncate(at);
        more.push((word, since));
    }

    /// Of `count` locks only the first `kept` are left.
    #[inline]
    pub(crate) fn truncate(&self, kept: usize, count: usize) {
        for place in self.first.iter().take(count).skip(kept) {
            place.word.store(0, Ordering::Relaxed);
        }
        if count > PLACES {
            self.more.lock().truncate(kept.saturating_sub(PLACES));
        }
    }

    /// Those that are held now.
    pub(crate) fn list(&self) -> Vec<ShownLock> {
        let pairs = |place: &Place| {
            (place.word.load(Ordering::Relaxed), place.since_nanos.load(Ordering::Relaxed))
        };
        let mut words: Vec<(usize, u64)> = self.first.iter().map(pairs).collect();
        words.extend(self.more.lock().iter().copied());
        let held = words.into_iter().filter(|(word, _)| *word != 0);
        held.map(|(word, since)| ShownLock {
            address: word & ADDRESS_MASK,
            kind: LockKind::ALL[word & KIND_MASK],
            is_pinned: word & PINNED != 0,
            since: Instant::from_nanos(since),
        })
        .collect()
    }
}
