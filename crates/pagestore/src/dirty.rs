//! Dirty pages in the order of the log, and the copies on their way to disk.
//!
//! 1. Every page whose descriptor has a `rec_lsn` has an entry here with that LSN; entries may be
//!    stale (page freed or flushed meanwhile) and are checked when taken.
//! 2. A taken batch is registered with its lowest LSN in the same critical section that removes
//!    the entries, so `oldest` never misses a page between queue and disk.
//! 3. `floor` is never above `oldest`: it is lowered and set under the queue's lock. So who only
//!    wants to know that the oldest change is young enough needs neither lock nor search.

use base::{Lsn, PageId};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// One page that was clean and became dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyPage {
    pub(crate) frame: u32,
    pub(crate) pid: PageId,
    pub(crate) rec_lsn: Lsn,
}

/// Pages taken for flushing; give it back with [`DirtyQueue::finish`].
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) ticket: u64,
    /// Whether the pages came from the queue, so that those not written must return to it.
    was_queued: bool,
    pub(crate) pages: Vec<DirtyPage>,
}

/// Log bytes per bucket of the queue.
const BUCKET_SHIFT: u32 = 16;

#[derive(Debug, Default)]
struct Queue {
    buckets: BTreeMap<u64, Vec<DirtyPage>>,
    in_flight: BTreeMap<u64, Lsn>,
    next_ticket: u64,
    length: usize,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct DirtyQueue {
    queue: Mutex<Queue>,
    /// Invariant 3; the maximum when nothing is dirty.
    floor: AtomicU64,
}

impl DirtyQueue {
    pub(crate) fn new() -> DirtyQueue {
        let queue = Mutex::new(Queue { next_ticket: 1, ..Queue::default() });
        DirtyQueue { queue, floor: AtomicU64::new(u64::MAX) }
    }

    /// Adds a page. Returns whether the queue was empty before.
    pub(crate) fn push(&self, frame: u32, pid: PageId, rec_lsn: Lsn) -> bool {
        let mut queue = self.queue.lock();
        queue.length += 1;
        self.lower_floor(rec_lsn);
        let is_first = queue.length == 1;
        let bucket = queue.buckets.entry(rec_lsn.get() >> BUCKET_SHIFT).or_default();
        bucket.push(DirtyPage { frame, pid, rec_lsn });
        is_first
    }

    /// Takes up to `count` of the oldest entries with a `rec_lsn` below `below`.
    pub(crate) fn take_oldest(&self, count: usize, below: Lsn) -> Option<Batch> {
        let mut queue = self.queue.lock();
        let mut pages = Vec::new();
        while pages.len() < count
            && let Some(mut bucket) = queue.buckets.first_entry()
        {
            let entries = bucket.get_mut();
            entries.sort_unstable_by_key(|page| std::cmp::Reverse(page.rec_lsn));
            while pages.len() < count
                && let Some(page) = entries.pop_if(|page| page.rec_lsn < below)
            {
                pages.push(page);
            }
            if entries.is_empty() {
                bucket.remove();
            } else {
                break;
            }
        }
        queue.length -= pages.len();
        queue.register(pages, true)
    }

    /// Registers pages found elsewhere (cold dirty frames) as a batch; their entries in the queue
    /// stay, and become stale.
    pub(crate) fn adopt(&self, pages: Vec<DirtyPage>) -> Option<Batch> {
        let mut queue = self.queue.lock();
        pages.iter().for_each(|page| self.lower_floor(page.rec_lsn));
        queue.register(pages, false)
    }

    /// The batch is done with: on disk, apart from `later`, which were never staged and return to
    /// the queue if they came from it, and `unstaged`, which were and return in any case.
    pub(crate) fn finish(&self, batch: &Batch, later: &[DirtyPage], unstaged: &[DirtyPage]) {
        let mut queue = self.queue.lock();
        let later = if batch.was_queued { later } else { &[] };
        for &page in later.iter().chain(unstaged) {
            queue.length += 1;
            self.lower_floor(page.rec_lsn);
            queue.buckets.entry(page.rec_lsn.get() >> BUCKET_SHIFT).or_default().push(page);
        }
        queue.in_flight.remove(&batch.ticket);
    }

    /// The lowest LSN of entries and batches: redo from there repeats every change not on disk.
    /// May be too low because of stale entries, never too high.
    pub(crate) fn oldest(&self) -> Option<Lsn> {
        let queue = self.queue.lock();
        let queued = queue.buckets.values().next();
        let queued = queued.and_then(|pages| pages.iter().map(|page| page.rec_lsn).min());
        let in_flight = queue.in_flight.values().min().copied();
        let oldest = queued.into_iter().chain(in_flight).min();
        self.floor.store(oldest.map_or(u64::MAX, Lsn::get), Ordering::Relaxed);
        oldest
    }

    /// At most what [`DirtyQueue::oldest`] says: what it said last, or what was pushed since.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// Invariant 3; the queue is locked.
    fn lower_floor(&self, rec_lsn: Lsn) {
        if rec_lsn.get() < self.floor() {
            self.floor.store(rec_lsn.get(), Ordering::Relaxed);
        }
    }

    /// Entries in the queue, stale ones included.
    pub(crate) fn length(&self) -> usize {
        self.queue.lock().length
    }
}

impl Queue {
    fn register(&mut self, pages: Vec<DirtyPage>, was_queued: bool) -> Option<Batch> {
        let oldest = pages.iter().map(|page| page.rec_lsn).min()?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.in_flight.insert(ticket, oldest);
        Some(Batch { ticket, was_queued, pages })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(number: u64, lsn: u64) -> (u32, PageId, Lsn) {
        (number as u32, PageId::new(number), Lsn::new(lsn))
    }

    #[test]
    fn oldest_covers_the_queue_and_what_is_on_its_way() {
        let queue = DirtyQueue::new();
        assert_eq!((queue.oldest(), queue.floor()), (None, u64::MAX));
        for (number, lsn) in [(1, 900_000), (2, 5000), (3, 70_000), (4, 5100)] {
            let (frame, pid, lsn) = page(number, lsn);
            queue.push(frame, pid, lsn);
        }
        assert_eq!(queue.floor(), 5000, "known without a search");
        assert_eq!(queue.oldest(), Some(Lsn::new(5000)));
        let first = queue.take_oldest(1, Lsn::MAX).expect("four pages");
        assert_eq!(first.pages[0].pid, PageId::new(2));
        let second = queue.take_oldest(2, Lsn::MAX).expect("three pages");
        let pids: Vec<_> = second.pages.iter().map(|page| page.pid.get()).collect();
        assert_eq!(pids, [4, 3]);
        assert_eq!(queue.oldest(), Some(Lsn::new(5000)), "in flight");
        queue.finish(&first, &[], &[]);
        assert_eq!(queue.floor(), 5000, "never too high");
        assert_eq!((queue.oldest(), queue.floor()), (Some(Lsn::new(5100)), 5100));
        queue.finish(&second, &second.pages[1..], &[]);
        assert_eq!((queue.oldest(), queue.length()), (Some(Lsn::new(70_000)), 2));
    }

    #[test]
    fn pages_found_elsewhere_return_only_when_they_were_staged() {
        let queue = DirtyQueue::new();
        let (frame, pid, rec_lsn) = page(1, 5000);
        queue.push(frame, pid, rec_lsn);
        let found = DirtyPage { frame, pid, rec_lsn };
        let batch = queue.adopt(vec![found]).expect("one page");
        queue.finish(&batch, &[found], &[]);
        assert_eq!(queue.length(), 1);
        let batch = queue.adopt(vec![found]).expect("one page");
        queue.finish(&batch, &[], &[found]);
        assert_eq!(queue.length(), 2);
        assert!(queue.adopt(Vec::new()).is_none());
    }

    #[test]
    fn nothing_below_the_target_is_nothing() {
        let queue = DirtyQueue::new();
        let (frame, pid, lsn) = page(1, 5000);
        queue.push(frame, pid, lsn);
        assert!(queue.take_oldest(9, Lsn::new(5000)).is_none());
        assert!(queue.take_oldest(9, Lsn::new(5001)).is_some());
        assert!(queue.take_oldest(9, Lsn::MAX).is_none());
    }
}
