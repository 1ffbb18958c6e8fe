//! The reservation ring: where records are copied side by side by many fibers on many cores,
//! and from where the flush leader takes them in stream order.
//!
//! A record takes its place with one fetch-add on `tail`, is copied without any lock, and is
//! published by storing its first word last. The first word holds the record's length, which is
//! never zero, so the leader finds the completed prefix by walking from length to length and
//! stops at the first word that is still zero: no second array, no second atomic operation.
//!
//! ```text
//!      taken                tail
//!        |  published ...  |
//!  ------#########..####----------   (ring of capacity words, index = lsn mod capacity)
//!                 ^ reserved, not yet published: first word still zero
//! ```
//!
//! Invariants:
//! 1. `taken <= published prefix <= tail <= taken + capacity`: callers hold a permit for every
//!    byte they reserve (`budget`), and a permit's bytes return only when the leader has taken
//!    them out and zeroed them.
//! 2. Every word outside `[taken, tail)` is zero when a reservation may reach it.
//! 3. Only the leader advances `taken`; only the reserver writes words of its reservation, and
//!    its first word last (Release), so that an Acquire of a non-zero first word sees the record.
//! 4. Records start at multiples of 8, so a first word is never shared between two records.

use crate::record::{RECORD_ALIGN, RECORD_HEADER_BYTES, RecordBuilder, aligned_len};
use base::primitives::{AtomicU64, Ordering};
use base::{invariant, planted};

const WORD: u64 = RECORD_ALIGN as u64;

/// Models use a ring of a few words.
const CAPACITY_BYTES_MIN: usize = if cfg!(loom) { 64 } else { 4096 };

/// A ring on a cache line of its own per hot field.
#[derive(Debug)]
#[repr(align(64))]
struct HotWord(AtomicU64);

/// See the module text.
#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
    mask: u64,
    /// Next byte of the stream to be reserved.
    tail: HotWord,
    /// Bytes of the ring neither reserved nor promised to a permit.
    budget: HotWord,
}

impl Ring {
    /// A ring of `capacity_bytes` (a power of two, at least 4 KiB) whose stream begins at `start`.
    pub(crate) fn new(capacity_bytes: usize, start: u64) -> Ring {
        invariant!(capacity_bytes.is_power_of_two(), "the ring is a power of two");
        invariant!(
            capacity_bytes >= CAPACITY_BYTES_MIN && start.is_multiple_of(WORD),
            "ring start and size"
        );
        let count = capacity_bytes / RECORD_ALIGN;
        Ring {
            words: (0..count).map(|_| AtomicU64::new(0)).collect(),
            mask: count as u64 - 1,
            tail: HotWord(AtomicU64::new(start)),
            budget: HotWord(AtomicU64::new(capacity_bytes as u64)),
        }
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        (self.mask + 1) * WORD
    }

    /// End of the last reservation.
    pub(crate) fn tail(&self) -> u64 {
        self.tail.0.load(Ordering::SeqCst)
    }

    /// Bytes that [`Ring::try_promise`] could still give.
    pub(crate) fn available_bytes(&self) -> u64 {
        self.budget.0.load(Ordering::Acquire)
    }

    /// Promises `bytes` of the ring to the caller, or refuses.
    pub(crate) fn try_promise(&self, bytes: u64) -> bool {
        self.budget
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(bytes))
            .is_ok()
    }

    /// Takes a promise back, or frees bytes that the leader has taken out.
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.budget.0.fetch_add(bytes, Ordering::AcqRel);
        invariant!(before + bytes <= self.capacity_bytes(), "1: more freed than the ring holds");
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[((position / WORD) & self.mask) as usize]
    }

    /// Reserves, copies and publishes one record; the caller holds a promise of its
    /// `stream_len`. Returns start and end in the stream. Never waits.
    pub(crate) fn append(&self, record: &RecordBuilder) -> (u64, u64) {
        let stream_len = record.stream_len() as u64;
        let start = self.tail.0.fetch_add(stream_len, Ordering::SeqCst);
        self.copy(start, record);
        (start, start + stream_len)
    }

    fn copy(&self, start: u64, record: &RecordBuilder) {
        let header = record.header();
        let (first, second) = header.split_at(RECORD_ALIGN);
        let mut position = start + RECORD_HEADER_BYTES as u64;
        // Bytes of a word begun by the first part and ended by the second.
        let mut carry = [0u8; RECORD_ALIGN];
        let mut carried = 0;
        for mut part in record.parts() {
            if carried > 0 {
                let filling = part.len().min(RECORD_ALIGN - carried);
                carry[carried..carried + filling].copy_from_slice(&part[..filling]);
                carried += filling;
                part = &part[filling..];
                if carried < RECORD_ALIGN {
                    continue;
                }
                self.word(position).store(u64::from_le_bytes(carry), Ordering::Relaxed);
                position += WORD;
            }
            let (whole, rest) = part.as_chunks::<RECORD_ALIGN>();
            for chunk in whole {
                self.word(position).store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
                position += WORD;
            }
            carry = [0; RECORD_ALIGN];
            carry[..rest.len()].copy_from_slice(rest);
            carried = rest.len();
        }
        if carried > 0 {
            self.word(position).store(u64::from_le_bytes(carry), Ordering::Relaxed);
        }
        self.word(start + WORD).store(word_of(second), Ordering::Relaxed);
        // Invariant 3: published by the first word.
        let publish = match planted!("ring_published_too_early") {
            true => Ordering::Relaxed,
            false => Ordering::Release,
        };
        self.word(start).store(word_of(first), publish);
    }

    /// The end of the published records from `from` on, at most `limit_bytes` further (one
    /// record is returned whole even if it is longer). `from` = nothing is published there yet.
    pub(crate) fn published(&self, from: u64, limit_bytes: u64) -> u64 {
        let mut end = from;
        let tail = self.tail();
        while end < tail {
            let first = self.word(end).load(Ordering::Acquire);
            if first == 0 {
                break;
            }
            let next = end + aligned_len(first as u32 as usize) as u64;
            if next - from > limit_bytes && end > from {
                break;
            }
            end = next;
        }
        end
    }

    /// Copies `[from, end)`, a published range, to `places`, one after the other, and frees it.
    /// Each place is a multiple of 8 long, and the last one may be longer than what is left.
    /// Only the leader calls it.
    pub(crate) fn take<'p>(
        &self,
        from: u64,
        end: u64,
        places: impl IntoIterator<Item = &'p mut [u8]>,
    ) {
        if planted!("ring_freed_too_early") {
            self.give_back(end - from);
        }
        let mut position = from;
        for place in places {
            let wanted = place.len().min((end - position) as usize);
            let (chunks, _) = place[..wanted].as_chunks_mut::<RECORD_ALIGN>();
            for chunk in chunks {
                let word = self.word(position);
                *chunk = word.load(Ordering::Relaxed).to_le_bytes();
                // Invariant 2; made visible to the next reserver by the release in `give_back`.
                word.store(0, Ordering::Relaxed);
                position += WORD;
            }
        }
        invariant!(position == end, "the places hold the range");
        if !planted!("ring_freed_too_early") {
            self.give_back(end - from);
        }
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0u8; RECORD_ALIGN];
    word.copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::{RecordKind, RecordView};
    use base::{Lsn, PageId, Random, TrxId};
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn record(random: &mut Random, trx: u64) -> RecordBuilder {
        let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(trx));
        let ops = random.below(3);
        for op in 0..ops {
            let len = random.index(60);
            builder.page_op(PageId::new(trx), op as u8, Lsn::new(trx), |payload| {
                payload.extend((0..len).map(|byte| byte as u8 ^ trx as u8))
            });
        }
        let len = random.index(40);
        builder.logical(&vec![trx as u8; len]);
        builder
    }

    #[test]
    fn records_come_back_byte_for_byte_over_many_wraps() {
        let mut random = Random::new(5);
        let ring = Ring::new(4096, 4096);
        let (mut taken, mut expected) = (4096, Vec::new());
        for trx in 1..2000u64 {
            let builder = record(&mut random, trx);
            let len = builder.stream_len() as u64;
            if !ring.try_promise(len) {
                let end = ring.published(taken, u64::MAX);
                let mut out = vec![0; (end - taken) as usize];
                ring.take(taken, end, [&mut out[..]]);
                assert_eq!(out, expected);
                (taken, expected) = (end, Vec::new());
                assert!(ring.try_promise(len));
            }
            let (start, end) = ring.append(&builder);
            assert_eq!(start, taken + expected.len() as u64);
            expected.extend(builder.to_bytes());
            expected.resize((end - taken) as usize, 0);
        }
    }

    #[test]
    fn the_limit_cuts_at_a_record_boundary_but_never_a_record() {
        let ring = Ring::new(4096, 8);
        let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(1));
        builder.logical(&[1; 84]);
        assert_eq!(builder.stream_len(), 104);
        assert!(ring.try_promise(312));
        (0..3).for_each(|_| assert!(ring.append(&builder).1 > 0));
        assert_eq!(ring.published(8, 250), 8 + 208);
        assert_eq!(ring.published(8, 50), 8 + 104);
        assert_eq!(ring.published(8, 312), 8 + 312);
    }

    /// Writers on four threads against one taker: every record arrives whole, in stream order.
    #[test]
    fn writers_on_many_threads_never_tear_a_record() {
        const WRITERS: u64 = 4;
        const EACH: u64 = 5_000;
        let ring = Arc::new(Ring::new(8192, 4096));
        let done = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let ring = ring.clone();
                std::thread::spawn(move || {
                    let mut random = Random::new(writer);
                    for number in 0..EACH {
                        let builder = record(&mut random, writer << 32 | (number + 1));
                        while !ring.try_promise(builder.stream_len() as u64) {
                            std::thread::yield_now();
                        }
                        ring.append(&builder);
                    }
                })
            })
            .collect();
        let taker = {
            let (ring, done) = (ring.clone(), done.clone());
            std::thread::spawn(move || {
                let mut replays: Vec<Random> = (0..WRITERS).map(Random::new).collect();
                let mut next = [1u64; WRITERS as usize];
                let (mut taken, mut out) = (4096, Vec::new());
                loop {
                    let finished = done.load(Ordering::Acquire);
                    let end = ring.published(taken, 2048);
                    out.resize((end - taken) as usize, 0);
                    ring.take(taken, end, [&mut out[..]]);
                    taken = end;
                    let mut rest = &out[..];
                    while !rest.is_empty() {
                        let view = RecordView::parse(rest).expect("a published record is whole");
                        let writer = (view.trx().get() >> 32) as usize;
                        assert_eq!(view.trx().get() as u32 as u64, next[writer]);
                        let wanted = record(&mut replays[writer], view.trx().get());
                        assert_eq!(view.bytes(), wanted.to_bytes());
                        next[writer] += 1;
                        rest = &rest[aligned_len(view.bytes().len())..];
                    }
                    if finished && taken == ring.tail() {
                        return next;
                    }
                    std::thread::yield_now();
                }
            })
        };
        writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
        done.store(true, Ordering::Release);
        let next = taker.join().expect("the taker does not panic");
        assert_eq!(next, [EACH + 1; WRITERS as usize]);
        assert_eq!(ring.available_bytes(), ring.capacity_bytes());
    }
}

/// Every order of writers and the leader; see `cargo xtask model`.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::record::{RecordKind, RecordView};
    use base::TrxId;
    use base::primitives::{explore, thread};
    use std::sync::Arc;

    const RING_BYTES: usize = 64;
    const RECORD_BYTES: u64 = 24;

    fn record(trx: u64) -> RecordBuilder {
        let mut builder = RecordBuilder::new(RecordKind::Change, TrxId::new(trx));
        builder.logical(&[trx as u8; 2]);
        assert_eq!(builder.stream_len() as u64, RECORD_BYTES);
        builder
    }

    /// One record is in the ring; two writers append one each, of which the last must wait until
    /// room is given back, and the leader takes all three out. The stream wraps on the way.
    fn two_writers_and_a_leader() {
        let ring = Arc::new(Ring::new(RING_BYTES, 40));
        assert!(ring.try_promise(RECORD_BYTES));
        ring.append(&record(1));
        let writers: Vec<_> = [2, 3]
            .map(|trx| {
                let ring = ring.clone();
                thread::spawn(move || {
                    while !ring.try_promise(RECORD_BYTES) {
                        thread::yield_now();
                    }
                    ring.append(&record(trx));
                })
            })
            .into();
        let (mut taken, mut seen) = (40, Vec::new());
        while seen.len() < 3 {
            let end = ring.published(taken, u64::MAX);
            if end == taken {
                thread::yield_now();
                continue;
            }
            let mut out = vec![0; (end - taken) as usize];
            ring.take(taken, end, [&mut out[..]]);
            taken = end;
            for bytes in out.chunks(RECORD_BYTES as usize) {
                let view = RecordView::parse(bytes).expect("a published record is whole");
                assert_eq!(view.bytes(), record(view.trx().get()).to_bytes());
                seen.push(view.trx().get());
            }
        }
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(ring.available_bytes(), RING_BYTES as u64);
    }

    #[test]
    fn no_record_is_torn_or_lost() {
        explore(2, None, two_writers_and_a_leader);
    }

    #[test]
    #[should_panic]
    fn a_record_published_before_it_is_whole_is_found() {
        explore(2, Some("ring_published_too_early"), two_writers_and_a_leader);
    }

    #[test]
    #[should_panic]
    fn room_freed_before_it_is_clean_is_found() {
        explore(2, Some("ring_freed_too_early"), two_writers_and_a_leader);
    }
}
