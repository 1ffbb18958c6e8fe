//! One slot per open transaction: the snapshot it may read from and its first log record.
//!
//! 1. A slot's floor is published before the snapshot it protects is read from the latest commit
//!    timestamp; whoever computes the oldest floor reads the latest timestamp first. So a
//!    snapshot is never older than a floor that was computed without seeing it.
//! 2. Slots that were never used take no memory: they are as the system gives them, zeroes, so
//!    words hold the complement of what they say.

use base::Lsn;
use runtime::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Slots there are: open transactions at one time.
pub(crate) const SLOTS: usize = 1 << 16;
const NONE: u64 = u64::MAX;

/// A position that is [`NONE`] while it is all zeroes (invariant 2).
#[repr(transparent)]
struct Position(AtomicU64);

impl Position {
    fn load(&self, ordering: Ordering) -> u64 {
        !self.0.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.0.store(!value, ordering);
    }
}

/// Alone in its cache line: sessions on different cores set theirs at every statement.
#[repr(align(64))]
struct Slot {
    floor: Position,
    first_lsn: Position,
}

pub(crate) struct Slots {
    slots: Box<[Slot]>,
    used: AtomicUsize,
    free: Mutex<Vec<u32>>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        // SAFETY: a slot is two atomic words, for which zeroes are as good as any value.
        let slots = unsafe { Box::new_zeroed_slice(SLOTS).assume_init() };
        Self { slots, used: AtomicUsize::new(0), free: Mutex::new(Vec::new()) }
    }

    pub(crate) fn take(&self) -> u32 {
        let mut free = self.free.lock();
        free.pop().unwrap_or_else(|| {
            let next = self.used.fetch_add(1, Ordering::SeqCst);
            base::invariant!(next < SLOTS, "more than {SLOTS} open transactions");
            next as u32
        })
    }

    pub(crate) fn give_back(&self, slot: u32) {
        self.clear_floor(slot);
        self.slots[slot as usize].first_lsn.store(NONE, Ordering::SeqCst);
        self.free.lock().push(slot);
    }

    /// Publishes a floor and returns the snapshot it protects: `latest` read afterwards.
    pub(crate) fn set_floor(&self, slot: u32, latest: &AtomicU64) -> Lsn {
        let floor = latest.load(Ordering::Relaxed);
        self.slots[slot as usize].floor.store(floor, Ordering::SeqCst);
        Lsn::new(latest.load(Ordering::SeqCst))
    }

    pub(crate) fn clear_floor(&self, slot: u32) {
        self.slots[slot as usize].floor.store(NONE, Ordering::Release);
    }

    pub(crate) fn set_first_lsn(&self, slot: u32, lsn: Lsn) {
        self.slots[slot as usize].first_lsn.store(lsn.get(), Ordering::SeqCst);
    }

    /// No snapshot, open or to come, is older than this.
    pub(crate) fn oldest_floor(&self, latest: &AtomicU64) -> Lsn {
        let latest = latest.load(Ordering::SeqCst);
        Lsn::new(self.minimum(latest, |slot| &slot.floor))
    }

    /// No open transaction has a log record before this; `limit` when there is none.
    pub(crate) fn oldest_first_lsn(&self, limit: Lsn) -> Lsn {
        Lsn::new(self.minimum(limit.get(), |slot| &slot.first_lsn))
    }

    fn minimum(&self, limit: u64, field: impl Fn(&Slot) -> &Position) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        let values = self.slots[..used].iter().map(|slot| field(slot).load(Ordering::SeqCst));
        values.fold(limit, u64::min)
    }

    /// Transactions that have written and not ended.
    pub(crate) fn writers(&self) -> usize {
        let used = self.used.load(Ordering::SeqCst);
        let first = |slot: &&Slot| slot.first_lsn.load(Ordering::Relaxed) != NONE;
        self.slots[..used].iter().filter(first).count()
    }
}
