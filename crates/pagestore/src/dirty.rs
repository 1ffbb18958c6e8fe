//! Dirty pages in the order of the log, and the copies on their way to disk.
//!
//! 1. Every page whose descriptor has a `rec_lsn` has an entry here with that LSN, which came after
//!    it. Entries may be stale (page freed or flushed meanwhile) and are checked when taken. Where
//!    pages are written because their frames are wanted, nearly all become so, and would be as many
//!    as there were changes in the log that is kept for them: they are swept out.
//! 2. A taken batch is registered with its lowest LSN in the same critical section that removes
//!    the entries, so `oldest` never misses a page between queue and disk.
//! 3. A batch begins with pages found elsewhere (cold dirty frames). Their entries may still be in
//!    the queue, or in the same batch: a page may have several entries, never none.
//! 4. What is staged has a `rec_lsn` not below that of its entry, so the batch covers it, and other
//!    entries of the page are stale from then on (flush.rs).
//! 5. `floor` is never above `oldest`: it is lowered and set under the queue's lock. So who only
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
    /// So many of the pages, the first ones, were found elsewhere (invariant 3).
    found: usize,
    pub(crate) pages: Vec<DirtyPage>,
    /// There is more in the queue of what was asked for.
    pub(crate) leaves_more: bool,
}

impl Batch {
    /// Pages that did not come from the queue.
    pub(crate) fn found(&self) -> &[DirtyPage] {
        &self.pages[..self.found]
    }
}

/// Log bytes per bucket of the queue.
const BUCKET_SHIFT: u32 = 16;

#[derive(Debug, Default)]
struct Queue {
    buckets: BTreeMap<u64, Vec<DirtyPage>>,
    in_flight: BTreeMap<u64, Lsn>,
    next_ticket: u64,
    length: usize,
    /// Buckets from here on are swept next.
    swept: u64,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct DirtyQueue {
    queue: Mutex<Queue>,
    /// Invariant 5; the maximum when nothing is dirty.
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

    /// Takes a batch of `count` pages at most: those found elsewhere, which are dirty, then the
    /// oldest entries with a `rec_lsn` below `below`.
    pub(crate) fn take(&self, found: Vec<DirtyPage>, count: usize, below: Lsn) -> Option<Batch> {
        let mut queue = self.queue.lock();
        found.iter().for_each(|page| self.lower_floor(page.rec_lsn));
        let (found, mut pages) = (found.len(), found);
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
        queue.length -= pages.len() - found;
        let leaves_more = queue.count_below(below, 1) > 0;
        let oldest = pages.iter().map(|page| page.rec_lsn).min()?;
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.in_flight.insert(ticket, oldest);
        Some(Batch { ticket, found, pages, leaves_more })
    }

    /// How many entries have a `rec_lsn` below `below`, about (whole buckets but for one); no
    /// more than `enough` are counted for.
    pub(crate) fn count_below(&self, below: Lsn, enough: usize) -> usize {
        self.queue.lock().count_below(below, enough)
    }

    /// The batch is done with: on disk, apart from `later`, which were never staged and return to
    /// the queue (invariant 3), and `unstaged`, which were and return too.
    pub(crate) fn finish(&self, batch: &Batch, later: &[DirtyPage], unstaged: &[DirtyPage]) {
        let mut queue = self.queue.lock();
        let later = if base::mutant!("unwritten_page_forgotten") { &[] } else { later };
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

    /// Invariant 5; the queue is locked.
    fn lower_floor(&self, rec_lsn: Lsn) {
        if rec_lsn.get() < self.floor() {
            self.floor.store(rec_lsn.get(), Ordering::Relaxed);
        }
    }

    /// Removes the entries of one bucket that are not `current`, each time those of the next one;
    /// returns whether that was the last bucket.
    pub(crate) fn sweep(&self, current: impl Fn(&DirtyPage) -> bool) -> bool {
        let mut queue = self.queue.lock();
        let from = queue.swept;
        let Some((&bucket, entries)) = queue.buckets.range_mut(from..).next() else {
            queue.swept = 0;
            return true;
        };
        let before = entries.len();
        entries.retain(|page| current(page) && !base::mutant!("dirty_page_swept"));
        if entries.len() * 2 <= entries.capacity() {
            entries.shrink_to_fit();
        }
        let left = entries.len();
        if left == 0 {
            queue.buckets.remove(&bucket);
        }
        queue.length -= before - left;
        queue.swept = bucket + 1;
        false
    }

    /// Entries in the queue, stale ones included.
    pub(crate) fn length(&self) -> usize {
        self.queue.lock().length
    }
}

impl Queue {
    fn count_below(&self, below: Lsn, enough: usize) -> usize {
        let (mut count, last) = (0, below.get() >> BUCKET_SHIFT);
        for (&bucket, entries) in self.buckets.range(..=last) {
            count += match bucket == last {
                true => entries.iter().filter(|page| page.rec_lsn < below).count(),
                false => entries.len(),
            };
            if count >= enough {
                break;
            }
        }
        count
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
        let first = queue.take(Vec::new(), 1, Lsn::MAX).expect("four pages");
        assert_eq!(first.pages[0].pid, PageId::new(2));
        let second = queue.take(Vec::new(), 2, Lsn::MAX).expect("three pages");
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
    fn a_page_found_elsewhere_is_never_without_an_entry() {
        let queue = DirtyQueue::new();
        let [(frame, pid, rec_lsn), other] = [page(1, 5000), page(2, 6000)];
        queue.push(frame, pid, rec_lsn);
        queue.push(other.0, other.1, other.2);
        let found = DirtyPage { frame, pid, rec_lsn };
        let batch = queue.take(vec![found], 1, Lsn::MAX).expect("one page");
        assert_eq!((batch.found(), batch.leaves_more), (&[found][..], true));
        queue.finish(&batch, &[], &[]);
        assert_eq!(queue.length(), 2, "its own entry is stale now");
        // Found, and in the queue: neither could be written.
        let batch = queue.take(vec![found], 9, Lsn::MAX).expect("three pages");
        assert_eq!((batch.pages.len(), batch.leaves_more, queue.length()), (3, false, 0));
        assert_eq!(queue.oldest(), Some(rec_lsn));
        queue.finish(&batch, &[found, found], &[]);
        assert_eq!((queue.length(), queue.oldest()), (2, Some(rec_lsn)));
        let batch = queue.take(Vec::new(), 9, Lsn::MAX).expect("two entries");
        queue.finish(&batch, &[], &[found]);
        assert_eq!((queue.length(), queue.oldest()), (1, Some(rec_lsn)));
    }

    #[test]
    fn a_sweep_leaves_what_is_current() {
        let queue = DirtyQueue::new();
        for number in 0..1000 {
            let (frame, pid, lsn) = page(number, 10_000 + number * 1000);
            queue.push(frame, pid, lsn);
        }
        let current = |page: &DirtyPage| page.frame >= 300 && page.frame % 100 == 0;
        let mut steps = 1;
        while !queue.sweep(current) {
            steps += 1;
        }
        assert_eq!(steps, 17, "a million bytes of log in buckets of 64 KiB, and the end");
        assert_eq!((queue.length(), queue.floor()), (7, 10_000), "the floor is not looked for");
        assert_eq!((queue.oldest(), queue.floor()), (Some(Lsn::new(310_000)), 310_000));
        assert!(!queue.sweep(|_| false), "from the begin again");
        assert_eq!((queue.length(), queue.oldest()), (6, Some(Lsn::new(410_000))));
        let batch = queue.take(Vec::new(), 9, Lsn::MAX).expect("six pages");
        assert_eq!(batch.pages.len(), 6);
        assert!(queue.sweep(|_| true), "nothing is left");
        assert_eq!(queue.oldest(), Some(Lsn::new(410_000)), "in flight");
    }

    #[test]
    fn what_is_due_is_counted_until_it_is_enough() {
        let queue = DirtyQueue::new();
        for number in 0..100 {
            let (frame, pid, lsn) = page(number, 10_000 + number * 10_000);
            queue.push(frame, pid, lsn);
        }
        assert_eq!(queue.count_below(Lsn::new(10_000), 1000), 0);
        assert_eq!(queue.count_below(Lsn::new(10_001), 1000), 1);
        assert_eq!(queue.count_below(Lsn::new(510_000), 1000), 50);
        assert_eq!(queue.count_below(Lsn::MAX, 1000), 100);
        assert!((20..40).contains(&queue.count_below(Lsn::MAX, 20)));
    }

    #[test]
    fn nothing_below_the_target_is_nothing() {
        let queue = DirtyQueue::new();
        let (frame, pid, lsn) = page(1, 5000);
        queue.push(frame, pid, lsn);
        assert!(queue.take(Vec::new(), 9, Lsn::new(5000)).is_none());
        assert!(queue.take(Vec::new(), 9, Lsn::new(5001)).is_some());
        assert!(queue.take(Vec::new(), 9, Lsn::MAX).is_none());
    }
}
