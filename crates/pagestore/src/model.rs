//! Models of the latch and of a frame's change of page, in every order and with every visibility
//! of stores that the memory model allows; see `cargo xtask model`.

use crate::array::PageEntry;
use crate::evict::evict_page;
use crate::frames::FrameDescriptor;
use crate::latch::Latch;
use crate::location::Place;
use base::PageId;
use base::primitives::{AtomicU64, Mutex, Ordering, UnsafeCell, explore, lock, thread};
use std::sync::Arc;

/// A writer changes two words under the latch; a reader that validates saw both or neither.
fn optimistic_reader_and_writer() {
    let shared = Arc::new((Latch::default(), [AtomicU64::new(0), AtomicU64::new(0)]));
    let writer = {
        let shared = shared.clone();
        thread::spawn(move || {
            let (latch, words) = &*shared;
            assert!(latch.try_exclusive(), "nobody else holds it");
            words[0].store(1, Ordering::Relaxed);
            words[1].store(1, Ordering::Relaxed);
            latch.release_exclusive();
        })
    };
    let (latch, words) = &*shared;
    if let Some(version) = latch.optimistic() {
        let seen = [&words[0], &words[1]].map(|word| word.load(Ordering::Relaxed));
        if latch.validate(version) {
            assert_eq!(seen[0], seen[1], "half a change was read");
        }
    }
    writer.join().expect("no panic");
}

#[test]
fn who_validates_saw_one_state() {
    explore(3, None, optimistic_reader_and_writer);
}

#[test]
#[should_panic(expected = "half a change")]
fn a_reader_without_its_fence_is_found() {
    explore(3, Some("latch_reader_without_fence"), optimistic_reader_and_writer);
}

#[test]
#[should_panic(expected = "half a change")]
fn a_writer_without_its_fence_is_found() {
    explore(3, Some("latch_writer_without_fence"), optimistic_reader_and_writer);
}

#[test]
#[should_panic(expected = "half a change")]
fn a_version_that_stays_is_found() {
    explore(3, Some("latch_version_stays"), optimistic_reader_and_writer);
}

/// An exclusive holder, one who upgrades what it read, and a shared holder: `loom` reports any
/// two accesses of the cell that are not ordered.
#[test]
fn holders_exclude_each_other() {
    explore(3, None, || {
        let shared = Arc::new((Latch::default(), UnsafeCell::new(0u64)));
        let add = |shared: &(Latch, UnsafeCell<u64>)| {
            // SAFETY: the exclusive latch is held, which is what the model checks.
            shared.1.with_mut(|number| unsafe { *number += 1 });
            shared.0.release_exclusive();
        };
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let held = shared.0.exclusive();
                if held {
                    add(&shared);
                }
                u64::from(held)
            })
        };
        let upgrader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let version = shared.0.optimistic();
                let held = version.is_some_and(|version| shared.0.upgrade(version));
                if held {
                    add(&shared);
                }
                u64::from(held)
            })
        };
        let read = |shared: &(Latch, UnsafeCell<u64>)| {
            // SAFETY: as above, held shared.
            shared.1.with(|number| unsafe { *number })
        };
        if shared.0.shared() {
            assert!(read(&shared) <= 2);
            shared.0.release_shared();
        }
        let added = writer.join().expect("no panic") + upgrader.join().expect("no panic");
        assert!(shared.0.exclusive(), "all let go");
        assert_eq!(read(&shared), added);
    });
}

/// A page, its frame, and a word of the frame's bytes.
struct Frame {
    entry: PageEntry,
    descriptor: FrameDescriptor,
    word: AtomicU64,
    free: Mutex<bool>,
}

const PAGE: u64 = 5;
const FRAME: u32 = 0;
/// The word while the page is in the frame, and when another page is.
const OURS: u64 = 1;
const THEIRS: u64 = 2;

impl Frame {
    fn new() -> Arc<Self> {
        let frame = Self {
            entry: PageEntry::new(Place::resident(FRAME, 12)),
            descriptor: FrameDescriptor::new(),
            word: AtomicU64::new(OURS),
            free: Mutex::new(false),
        };
        frame.descriptor.adopt(PageId::new(PAGE), 0);
        Arc::new(frame)
    }

    /// Evicts the page if it can be.
    fn evict(&self) {
        if evict_page(&self.entry, &self.descriptor, PageId::new(PAGE), FRAME, || {}) {
            *lock(&self.free) = true;
        }
    }

    /// Reads another page into the frame if it is free.
    fn use_again(&self) {
        if std::mem::take(&mut *lock(&self.free)) {
            self.descriptor.take();
            self.word.store(THEIRS, Ordering::Relaxed);
        }
    }
}

/// Runs both in threads of their own beside the caller.
fn evict_and_use_again(frame: &Arc<Frame>) -> [thread::JoinHandle<()>; 2] {
    let (evicted, used) = (frame.clone(), frame.clone());
    [thread::spawn(move || evicted.evict()), thread::spawn(move || used.use_again())]
}

/// A reader that holds nothing, while the frame goes to another page.
fn optimistic_reader_and_eviction() {
    let frame = Frame::new();
    let others = evict_and_use_again(&frame);
    if let Some(version) = frame.entry.latch.optimistic()
        && frame.entry.place().is_resident()
    {
        let word = frame.word.load(Ordering::Relaxed);
        if frame.entry.latch.validate(version) {
            assert_eq!(word, OURS, "another page was read");
        }
    }
    others.into_iter().for_each(|other| other.join().expect("no panic"));
}

#[test]
fn who_validates_read_the_page() {
    explore(3, None, optimistic_reader_and_eviction);
}

#[test]
#[should_panic(expected = "another page was read")]
fn a_frame_taken_without_a_fence_is_found() {
    explore(3, Some("frame_taken_without_fence"), optimistic_reader_and_eviction);
}

/// A page is pinned under the shared latch, as `SharedPage::pin` does, and stays.
fn pin_and_eviction() {
    let frame = Frame::new();
    let others = evict_and_use_again(&frame);
    if frame.entry.latch.shared() {
        let pinned = frame.entry.place().is_resident();
        if pinned {
            frame.descriptor.pins.fetch_add(1, Ordering::Relaxed);
        }
        frame.entry.latch.release_shared();
        if pinned {
            assert_eq!(frame.word.load(Ordering::Relaxed), OURS, "a pinned page was evicted");
            frame.descriptor.pins.fetch_sub(1, Ordering::Release);
        }
    }
    others.into_iter().for_each(|other| other.join().expect("no panic"));
}

#[test]
fn a_pinned_page_stays() {
    explore(3, None, pin_and_eviction);
}

#[test]
#[should_panic(expected = "a pinned page was evicted")]
fn an_eviction_that_ignores_pins_is_found() {
    explore(3, Some("evicted_although_pinned"), pin_and_eviction);
}
