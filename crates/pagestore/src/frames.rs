//! The buffer pool's frames: memory, descriptors, size classes, free lists.
//!
//! Frame memory is one mapping, cut into chunks; a chunk serves one size class at a time. A frame
//! is named by its offset in units of 4 KiB, so a frame of 16 KiB uses every fourth number.
//!
//! 1. Frame memory is never unmapped or given back while the store lives, so an optimistic reader
//!    holding a stale frame number still reads mapped memory inside the mapping.
//! 2. A frame belongs to exactly one of: a free list, a page (descriptor names it and the page's
//!    place names the frame), one caller that holds its number between the two, or a chunk that is
//!    lent (frames/lent.rs).
//! 3. A frame's class changes only while its whole chunk is free of pages (see `rebalance`).

mod figures;
mod lent;

pub use figures::PoolFigures;
pub(crate) use lent::Lent;

use crate::chunks::{FINGERPRINT_PARTS, Fingerprints};
use crate::delta::{self, Base, SinceBase};
use crate::error::StoreError;
use crate::header::{CLASS_COUNT, CLASS_MIN, class_bytes};
use base::primitives::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use base::{Lsn, planted};
use runtime::mapping::Mapping;
use runtime::sync::Mutex;
use std::sync::atomic::AtomicU8;

/// Frame numbers count units of this many bytes.
pub(crate) const UNIT_BYTES: usize = 4096;
/// Descriptor value for "no page".
pub(crate) const NO_PAGE: u64 = u64::MAX;
/// Descriptor value for "taken by somebody who will put a page in".
const TAKEN: u64 = u64::MAX - 1;
/// What the pool takes for each unit beside its bytes: the descriptor, the set of chunks, and its
/// part of the fingerprints.
const BESIDE_UNIT_BYTES: usize =
    size_of::<FrameDescriptor>() + size_of::<ChunkSet>() + UNIT_BYTES / FINGERPRINT_PARTS;
/// Smallest and largest chunk.
const CHUNK_BYTES_MIN: usize = 32 << 10;
pub(crate) const CHUNK_BYTES_MAX: usize = 2 << 20;

/// What the pool knows about a frame beside its bytes. One cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct FrameDescriptor {
    /// The page in the frame, or [`NO_PAGE`].
    pub(crate) pid: AtomicU64,
    /// Location word of the newest copy on disk; 0 none.
    pub(crate) location: AtomicU64,
    /// Start of the first record since the last copy was staged for writing; 0 = unchanged.
    pub(crate) rec_lsn: AtomicU64,
    /// Ticket of the flush that carries a copy of this page; 0 = none.
    pub(crate) flush_ticket: AtomicU64,
    /// Holders of [`crate::Pin`]s; the frame is not evicted while there are any.
    pub(crate) pins: AtomicU32,
    /// Where the page's fingerprints are, plus one; 0 = it has none (chunks.rs).
    fingerprints: AtomicU32,
    /// What a delta of the page would have to say, but for the chunks; see [`SinceBase`].
    base_lsn: AtomicU64,
    base_crc: AtomicU32,
    deltas: AtomicU32,
}

/// The chunks of the page in a frame that may differ from its base. Beside the descriptors, which
/// have no room for it: who looks for a page needs it not.
type ChunkSet = [AtomicU64; 2];

impl FrameDescriptor {
    pub(crate) fn new() -> FrameDescriptor {
        FrameDescriptor {
            pid: AtomicU64::new(NO_PAGE),
            location: AtomicU64::new(0),
            rec_lsn: AtomicU64::new(0),
            flush_ticket: AtomicU64::new(0),
            pins: AtomicU32::new(0),
            fingerprints: AtomicU32::new(0),
            base_lsn: AtomicU64::new(0),
            base_crc: AtomicU32::new(0),
            deltas: AtomicU32::new(0),
        }
    }

    /// The full copy on disk that a delta of the page would belong to, its LSN zero if there is
    /// none. Under the page's latch, like all that follows.
    pub(crate) fn base(&self) -> Base {
        Base {
            lsn: Lsn::new(self.base_lsn.load(Ordering::Relaxed)),
            crc: self.base_crc.load(Ordering::Relaxed),
        }
    }

    fn set_base(&self, base: Base, deltas: u16) {
        self.base_lsn.store(base.lsn.get(), Ordering::Relaxed);
        self.base_crc.store(base.crc, Ordering::Relaxed);
        self.deltas.store(u32::from(deltas), Ordering::Relaxed);
    }

    /// Where the page's fingerprints are, if it has any.
    #[inline]
    pub(crate) fn fingerprints(&self) -> Option<u32> {
        self.fingerprints.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether the page has changes that are not on disk, staged or not.
    pub(crate) fn is_dirty(&self) -> bool {
        self.rec_lsn.load(Ordering::Relaxed) != 0 || self.flush_ticket.load(Ordering::Relaxed) != 0
    }

    /// Readies the descriptor for a page; the caller owns the frame (invariant 2). Pins stay:
    /// their holders count down whatever became of the page. No delta can be written of it until
    /// somebody tells what it is the change of.
    pub(crate) fn adopt(&self, pid: base::PageId, location: u64) {
        self.set_base(Base::default(), 0);
        self.location.store(location, Ordering::Relaxed);
        self.rec_lsn.store(0, Ordering::Relaxed);
        self.flush_ticket.store(0, Ordering::Relaxed);
        self.pid.store(pid.get(), Ordering::Release);
    }

    /// The frame goes from the free list to somebody who will write a page into it. The fence
    /// orders the latch word by which the former page left before the bytes of the next one: an
    /// optimistic reader that still looks here and sees one of them fails to validate.
    pub(crate) fn take(&self) {
        self.pid.store(TAKEN, Ordering::Relaxed);
        if !planted!("frame_taken_without_fence") {
            fence(Ordering::Release);
        }
    }

    /// The frame holds no page any more.
    pub(crate) fn abandon(&self) {
        self.pid.store(NO_PAGE, Ordering::Release);
        self.location.store(0, Ordering::Relaxed);
        self.rec_lsn.store(0, Ordering::Relaxed);
        self.flush_ticket.store(0, Ordering::Relaxed);
    }
}

/// Free frames and chunks of one size class.
#[derive(Debug, Default)]
pub(crate) struct ClassFrames {
    pub(crate) free: Vec<u32>,
    pub(crate) chunks: Vec<u32>,
    /// Where the clock hand stands: position in `chunks`, frame within the chunk.
    pub(crate) hand: (usize, u32),
}

/// Counters of one size class that are read without its lock.
#[derive(Debug, Default)]
pub(crate) struct ClassCounts {
    /// Length of the free list.
    pub(crate) free: AtomicUsize,
    /// Frames in the class's chunks.
    pub(crate) total: AtomicUsize,
    /// Frames whose page is dirty.
    pub(crate) dirty: AtomicUsize,
    /// Frames freed by the clock since the last look at the balance.
    pub(crate) evicted: AtomicU64,
    /// Frames taken since the last look at the reserve.
    pub(crate) taken: AtomicUsize,
    /// Free frames that what was taken of late asks for.
    pub(crate) demand: AtomicUsize,
}

const CHUNK_UNASSIGNED: u8 = 0;
/// Added to the class of a chunk that is being emptied for another class.
const CHUNK_DRAINING: u8 = 0x80;

/// The pool's memory and who has which part of it.
#[derive(Debug)]
pub(crate) struct Frames {
    memory: Mapping,
    descriptors: Box<[FrameDescriptor]>,
    changed: Box<[ChunkSet]>,
    chunk_units: u32,
    /// Class of each chunk, with [`CHUNK_DRAINING`], or [`CHUNK_UNASSIGNED`].
    chunk_class: Box<[AtomicU8]>,
    unassigned: Mutex<Vec<u32>>,
    /// Chunks being emptied.
    pub(crate) draining: Mutex<Vec<u32>>,
    classes: [Mutex<ClassFrames>; CLASS_COUNT],
    counts: [ClassCounts; CLASS_COUNT],
    prints: Fingerprints,
    lending: lent::Lending,
}

impl Frames {
    /// A pool that takes `pool_bytes` with what is known of its frames, rounded down to whole
    /// chunks (at least four). `key` is random (chunks.rs).
    pub(crate) fn new(pool_bytes: usize, huge_pages: bool, key: u64) -> Result<Frames, StoreError> {
        let chunk_bytes =
            (pool_bytes / 32).next_power_of_two().clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let beside = chunk_bytes / UNIT_BYTES * BESIDE_UNIT_BYTES;
        let chunks = (pool_bytes / (chunk_bytes + beside)).max(4);
        let bytes = chunks * chunk_bytes;
        let units = u32::try_from(bytes / UNIT_BYTES)
            .map_err(|_| StoreError::Incompatible(format!("a pool of {bytes} bytes")))?;
        let memory = Mapping::anonymous(bytes, huge_pages)
            .map_err(|error| StoreError::io("buffer pool", &error))?;
        Ok(Frames {
            memory,
            descriptors: (0..units).map(|_| FrameDescriptor::new()).collect(),
            changed: (0..units).map(|_| ChunkSet::default()).collect(),
            chunk_units: (chunk_bytes / UNIT_BYTES) as u32,
            chunk_class: (0..chunks).map(|_| AtomicU8::new(CHUNK_UNASSIGNED)).collect(),
            unassigned: Mutex::new((0..chunks as u32).rev().collect()),
            draining: Mutex::new(Vec::new()),
            classes: std::array::from_fn(|_| Mutex::new(ClassFrames::default())),
            counts: std::array::from_fn(|_| ClassCounts::default()),
            prints: Fingerprints::new(bytes, key)?,
            lending: lent::Lending::default(),
        })
    }

    /// Bytes of all frames.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// First byte of a frame.
    #[inline]
    pub(crate) fn address(&self, frame: u32) -> *mut u8 {
        debug_assert!((frame as usize) < self.descriptors.len());
        // SAFETY: frame numbers come from chunks of this mapping, so the offset is inside it.
        unsafe { self.memory.as_ptr().add(frame as usize * UNIT_BYTES) }
    }

    /// All descriptors, those of no frame among them.
    pub(crate) fn descriptors(&self) -> &[FrameDescriptor] {
        &self.descriptors
    }

    /// Descriptor of a frame.
    #[inline]
    pub(crate) fn descriptor(&self, frame: u32) -> &FrameDescriptor {
        &self.descriptors[frame as usize]
    }

    /// Free list, chunks and clock hand of a class.
    pub(crate) fn class(&self, class: u8) -> &Mutex<ClassFrames> {
        &self.classes[usize::from(class - CLASS_MIN)]
    }

    /// Counters of a class.
    #[inline]
    pub(crate) fn counts(&self, class: u8) -> &ClassCounts {
        &self.counts[usize::from(class - CLASS_MIN)]
    }

    /// Frames of `class` in one chunk, as (first, step, count).
    fn frames_of(&self, chunk: u32, class: u8) -> impl Iterator<Item = u32> + use<> {
        let step = (class_bytes(class) / UNIT_BYTES) as u32;
        let first = chunk * self.chunk_units;
        (first..first + self.chunk_units).step_by(step as usize)
    }

    /// How many frames of `class` one chunk holds.
    pub(crate) fn frames_per_chunk(&self, class: u8) -> u32 {
        self.chunk_units / (class_bytes(class) / UNIT_BYTES) as u32
    }

    /// The `index`th frame of `class` in `chunk`.
    pub(crate) fn frame_at(&self, chunk: u32, class: u8, index: u32) -> u32 {
        chunk * self.chunk_units + index * (class_bytes(class) / UNIT_BYTES) as u32
    }

    /// Takes a frame from the free list or an unassigned chunk.
    pub(crate) fn take_free(&self, class: u8) -> Option<u32> {
        let mut frames = self.class(class).lock();
        let frame = match frames.free.pop() {
            Some(frame) => Some(frame),
            None => {
                self.assign_chunk(class, &mut frames);
                frames.free.pop()
            }
        };
        self.counts(class).free.store(frames.free.len(), Ordering::Relaxed);
        if let Some(frame) = frame {
            self.counts(class).taken.fetch_add(1, Ordering::Relaxed);
            self.descriptor(frame).take();
        }
        frame
    }

    /// Whether there are chunks that serve no class yet.
    pub(crate) fn has_unassigned(&self) -> bool {
        !self.unassigned.lock().is_empty()
    }

    /// Whether the frame's chunk serves this class and is not being emptied. Stays so while the
    /// class is locked.
    pub(crate) fn serves(&self, frame: u32, class: u8) -> bool {
        let chunk = (frame / self.chunk_units) as usize;
        self.chunk_class[chunk].load(Ordering::Relaxed) == class
    }

    /// Gives an unassigned chunk to the class whose lock the caller holds.
    pub(crate) fn assign_chunk(&self, class: u8, frames: &mut ClassFrames) -> bool {
        let Some(chunk) = self.unassigned.lock().pop() else { return false };
        self.chunk_class[chunk as usize].store(class, Ordering::Relaxed);
        frames.chunks.push(chunk);
        frames.free.extend(self.frames_of(chunk, class));
        self.counts(class)
            .total
            .fetch_add(self.frames_per_chunk(class) as usize, Ordering::Relaxed);
        self.counts(class).free.store(frames.free.len(), Ordering::Relaxed);
        true
    }

    /// What is known of the copies on disk of the page in a frame. Under its latch.
    pub(crate) fn since_base(&self, frame: u32) -> SinceBase {
        let descriptor = self.descriptor(frame);
        let words = self.changed[frame as usize].each_ref();
        SinceBase {
            base: descriptor.base(),
            changed: delta::joined(words.map(|word| word.load(Ordering::Relaxed))),
            count: descriptor.deltas.load(Ordering::Relaxed) as u16,
        }
    }

    /// Remembers what is known of the copies on disk of the page in a frame: exclusively, or by
    /// the holder of the flush ticket.
    pub(crate) fn set_since_base(&self, frame: u32, since: SinceBase) {
        self.descriptor(frame).set_base(since.base, since.count);
        let words = self.changed[frame as usize].iter().zip(delta::halves(since.changed));
        words.for_each(|(word, half)| word.store(half, Ordering::Relaxed));
    }

    /// Takes fingerprints of the page in a frame, if there is room for them.
    pub(crate) fn take_fingerprints(&self, frame: u32, page: &[u8]) {
        if let Some(slot) = self.prints.take() {
            self.prints.record(slot, page);
            self.descriptor(frame).fingerprints.store(slot + 1, Ordering::Relaxed);
        }
    }

    /// The chunks of the page in a frame that changed since its fingerprints were taken; `None` if
    /// it has none.
    pub(crate) fn changed_chunks(&self, frame: u32, page: &[u8]) -> Option<u128> {
        let slot = self.descriptor(frame).fingerprints()?;
        Some(self.prints.changed(slot, page))
    }

    /// The page in a frame needs its fingerprints no longer.
    pub(crate) fn drop_fingerprints(&self, frame: u32) {
        let descriptor = self.descriptor(frame);
        if let Some(slot) = descriptor.fingerprints() {
            descriptor.fingerprints.store(0, Ordering::Relaxed);
            self.prints.give_back(slot);
        }
    }

    /// Gives a frame back to the free list of its class, unless its chunk is being emptied.
    pub(crate) fn give_back(&self, frame: u32, class: u8) {
        self.drop_fingerprints(frame);
        let mut frames = self.class(class).lock();
        self.descriptor(frame).abandon();
        if !self.is_draining(frame) {
            frames.free.push(frame);
            self.counts(class).free.store(frames.free.len(), Ordering::Relaxed);
        }
    }

    /// Whether the frame's chunk is being emptied for another class.
    pub(crate) fn is_draining(&self, frame: u32) -> bool {
        let chunk = (frame / self.chunk_units) as usize;
        self.chunk_class[chunk].load(Ordering::Relaxed) & CHUNK_DRAINING != 0
    }

    /// Begins to empty one chunk of `class`, one without pinned frames, so that at least `keep`
    /// chunks stay: its free frames leave the free list. Returns it.
    pub(crate) fn start_drain(&self, class: u8, keep: usize) -> Option<u32> {
        let mut frames = self.class(class).lock();
        let count = frames.chunks.len();
        if count <= keep {
            return None;
        }
        let is_pinned = |&chunk: &u32| {
            let pins = |frame| self.descriptor(frame).pins.load(Ordering::Relaxed);
            self.frames_of(chunk, class).any(|frame| pins(frame) > 0)
        };
        let positions = (0..count).map(|step| (frames.hand.0 + step) % count);
        let position = positions.into_iter().find(|&at| !is_pinned(&frames.chunks[at]))?;
        let chunk = frames.chunks.swap_remove(position);
        frames.hand = (position, 0);
        self.chunk_class[chunk as usize].store(class | CHUNK_DRAINING, Ordering::Relaxed);
        let units = chunk * self.chunk_units..(chunk + 1) * self.chunk_units;
        frames.free.retain(|frame| !units.contains(frame));
        self.counts(class).free.store(frames.free.len(), Ordering::Relaxed);
        self.counts(class)
            .total
            .fetch_sub(self.frames_per_chunk(class) as usize, Ordering::Relaxed);
        self.draining.lock().push(chunk);
        Some(chunk)
    }

    /// Class that a draining chunk served.
    pub(crate) fn drained_class(&self, chunk: u32) -> u8 {
        self.chunk_class[chunk as usize].load(Ordering::Relaxed) & !CHUNK_DRAINING
    }

    /// Frames of a draining chunk that still hold pages, or are about to.
    pub(crate) fn occupied(&self, chunk: u32) -> Vec<u32> {
        self.frames_of(chunk, self.drained_class(chunk))
            .filter(|&frame| self.descriptor(frame).pid.load(Ordering::Acquire) != NO_PAGE)
            .collect()
    }

    /// A draining chunk stays with its class after all.
    pub(crate) fn cancel_drain(&self, chunk: u32) {
        let class = self.drained_class(chunk);
        let mut frames = self.class(class).lock();
        let mut draining = self.draining.lock();
        if !draining.contains(&chunk) {
            return;
        }
        draining.retain(|&other| other != chunk);
        self.chunk_class[chunk as usize].store(class, Ordering::Relaxed);
        frames.chunks.push(chunk);
        let is_free = |&frame: &u32| self.descriptor(frame).pid.load(Ordering::Relaxed) == NO_PAGE;
        frames.free.extend(self.frames_of(chunk, class).filter(is_free));
        self.counts(class).free.store(frames.free.len(), Ordering::Relaxed);
        self.counts(class)
            .total
            .fetch_add(self.frames_per_chunk(class) as usize, Ordering::Relaxed);
    }

    /// A draining chunk is empty: it is lent if somebody asked, else any class may have it.
    pub(crate) fn finish_drain(&self, chunk: u32) {
        let mut draining = self.draining.lock();
        if !draining.contains(&chunk) {
            return;
        }
        draining.retain(|&other| other != chunk);
        if !self.lend(chunk) {
            self.chunk_class[chunk as usize].store(CHUNK_UNASSIGNED, Ordering::Relaxed);
            self.unassigned.lock().push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::PageId;

    #[test]
    fn chunks_go_to_the_class_that_asks() {
        let frames = Frames::new(128 << 10, false, 1).expect("small pool");
        assert_eq!(frames.chunk_class.len(), 4);
        let small: Vec<u32> = (0..8).map(|_| frames.take_free(13).expect("free")).collect();
        let big = frames.take_free(15).expect("free");
        assert!(small.iter().all(|&frame| !(big..big + 8).contains(&frame)));
        let other = frames.take_free(15).expect("the last chunk");
        assert!(frames.take_free(15).is_none());
        assert!(frames.take_free(13).is_none());
        frames.give_back(other, 15);
        assert_eq!(frames.take_free(15), Some(other));
    }

    #[test]
    fn a_drained_chunk_changes_class() {
        let frames = Frames::new(128 << 10, false, 1).expect("small pool");
        let taken: Vec<u32> = (0..16).map(|_| frames.take_free(13).expect("free")).collect();
        for (number, &frame) in taken.iter().enumerate() {
            frames.descriptor(frame).adopt(PageId::new(number as u64), 0);
        }
        assert!(frames.take_free(15).is_none());
        let chunk = frames.start_drain(13, 1).expect("four chunks");
        let occupied = frames.occupied(chunk);
        assert_eq!(occupied.len(), 4);
        for frame in occupied {
            frames.give_back(frame, 13);
        }
        assert!(frames.take_free(13).is_none(), "freed frames of the chunk are not handed out");
        assert!(frames.occupied(chunk).is_empty());
        frames.cancel_drain(chunk);
        let again = frames.take_free(13).expect("its class has it back");
        frames.give_back(again, 13);
        assert_eq!(frames.start_drain(13, 1).map(|it| frames.occupied(it).len()), Some(4));
        frames.finish_drain(chunk);
        assert!(frames.take_free(15).is_none(), "that chunk was not draining");
    }
}
