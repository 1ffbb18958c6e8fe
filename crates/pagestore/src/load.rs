//! Reading pages that are not in memory.
//!
//! 1. Nothing is latched while a read is under way; one fiber reads a page, others wait for it.
//! 2. A page is published only if its copy and its delta are still where they were read: what
//!    changed meanwhile (moved, freed, a segment used again) shows as another place, and the
//!    reader starts over.
//! 3. Bytes that fail verification are read once more; then the page is corrupt, which is an
//!    error of that page only.

use crate::blob::{self, BlobHeader};
use crate::counters::add;
use crate::delta::{self, SinceBase};
use crate::error::StoreError;
use crate::guard::Pin;
use crate::header::class_bytes;
use crate::location::{Location, Place};
use crate::recent::{Reads, Remembered};
use crate::short_delta;
use crate::store::{PageStore, Shared};
use base::{PageId, probe};
use runtime::file::AlignedBuf;
use runtime::sync::{Event, Mutex};
use runtime::{JoinHandle, WaitClass, yield_now};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages being read, and buffers for that.
#[derive(Debug, Default)]
pub(crate) struct Loads {
    under_way: Mutex<BTreeMap<PageId, Arc<Event>>>,
    buffers: Mutex<Vec<AlignedBuf>>,
}

/// Buffers kept for reads.
const BUFFERS_KEPT: usize = 32;

/// A page's delta: where it is on disk, and its bytes from memory or from somebody who reads them.
pub(crate) struct DeltaReading {
    place: Location,
    found: Option<Remembered>,
    under_way: Option<JoinHandle<Result<Vec<u8>, StoreError>>>,
}

/// Ends a read, whatever happens to its fiber.
pub(crate) struct UnderWay {
    store: PageStore,
    pid: PageId,
    done: Arc<Event>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.store.shared().loads.under_way.lock().remove(&self.pid);
        self.done.set();
    }
}

impl Loads {
    /// How many pages are being read.
    pub(crate) fn count(&self) -> usize {
        self.under_way.lock().len()
    }

    /// A buffer to read into.
    pub(crate) fn buffer(&self) -> AlignedBuf {
        self.buffers.lock().pop().unwrap_or_else(|| AlignedBuf::zeroed(0))
    }

    /// A buffer is there for others.
    pub(crate) fn keep(&self, buffer: AlignedBuf) {
        let mut buffers = self.buffers.lock();
        if buffers.len() < BUFFERS_KEPT {
            buffers.push(buffer);
        }
    }

    /// Whether somebody reads the page.
    pub(crate) fn is_reading(&self, pid: PageId) -> bool {
        self.under_way.lock().contains_key(&pid)
    }
}

impl PageStore {
    /// Registers the caller as the reader of a page, or returns what to wait for.
    pub(crate) fn begin_load(&self, pid: PageId) -> Result<UnderWay, Arc<Event>> {
        let mut under_way = self.shared().loads.under_way.lock();
        if let Some(done) = under_way.get(&pid) {
            return Err(done.clone());
        }
        let done = Arc::new(Event::new());
        under_way.insert(pid, done.clone());
        Ok(UnderWay { store: self.clone(), pid, done })
    }

    /// Brings the page into memory and keeps it there while the pin lives. A page that was freed
    /// meanwhile is [`StoreError::NoSuchPage`]. Parks.
    pub fn load(&self, pid: PageId) -> Result<Pin, StoreError> {
        let entry = self.shared().array.get(pid).ok_or(StoreError::NoSuchPage(pid))?;
        loop {
            match self.shared_page(pid) {
                Ok(page) => return Ok(page.pin(self)),
                Err(crate::Retry::Miss(_)) => {}
                Err(_) => {
                    yield_now();
                    continue;
                }
            }
            let place = entry.place();
            if place.is_resident() {
                continue;
            }
            if place == Place::NONE {
                return Err(self.shared().missing(pid));
            }
            match self.begin_load(pid) {
                Err(done) => {
                    done.wait_uncancellable(WaitClass::PageRead, None);
                }
                Ok(under_way) => {
                    let pin = self.read_page(pid, place.location());
                    drop(under_way);
                    if let Some(pin) = pin? {
                        return Ok(pin);
                    }
                }
            }
        }
    }

    /// Reads the page at `location` and publishes it. `None` if the page is elsewhere by now.
    fn read_page(&self, pid: PageId, location: Location) -> Result<Option<Pin>, StoreError> {
        let frame = self.shared().wait_for_frame(location.class())?;
        let delta = self.begin_delta(pid);
        self.publish_page(pid, location, frame, (None, delta))
    }

    /// Fills a frame with the page at `location` and publishes it, from what was `read` before:
    /// the full copy, if it was, and the delta. As [`PageStore::read_page`].
    pub(crate) fn publish_page(
        &self,
        pid: PageId,
        location: Location,
        frame: u32,
        (copy, reading): (Option<&[u8]>, DeltaReading),
    ) -> Result<Option<Pin>, StoreError> {
        let shared = self.shared();
        let class = location.class();
        // SAFETY: the frame was taken from the free list, so this fiber alone may write it
        // (frames.rs invariant 2); stale optimistic readers only do atomic loads and fail to
        // validate, because the page that was here before has another place by now.
        let page = unsafe {
            std::slice::from_raw_parts_mut(shared.frames.address(frame), class_bytes(class))
        };
        let entry = shared.array.entry(pid);
        let delta = reading.place;
        let is_there = || {
            entry.place() == Place::on_disk(location) && shared.array.delta(pid).location() == delta
        };
        let mut outcome = self.put_together(pid, location, copy, reading, page);
        if outcome.is_err() && is_there() {
            add(&shared.counters.read_retries, 1);
            shared.recent_deltas.forget(&shared.frames, pid);
            let reading = self.begin_delta(pid);
            outcome = self.put_together(pid, location, None, reading, page);
        }
        if !is_there() {
            probe!("pagestore_page_moved_while_read");
            shared.frames.give_back(frame, class);
            return Ok(None);
        }
        let (since, short) = match outcome {
            Ok(read) => read,
            Err(error) => {
                shared.frames.give_back(frame, class);
                add(&shared.counters.corrupt_pages, 1);
                return Err(error);
            }
        };
        while !entry.latch.exclusive() {
            yield_now();
        }
        if !is_there() {
            entry.latch.release_unchanged();
            shared.frames.give_back(frame, class);
            return Ok(None);
        }
        let descriptor = shared.frames.descriptor(frame);
        descriptor.adopt(pid, location.word());
        shared.frames.set_since_base(frame, since);
        if let Some(short) = short {
            shared.recent_deltas.remember(&shared.frames, pid, delta, &short);
        }
        let pin = Pin::new(shared.clone(), pid, frame);
        entry.set_place(Place::resident(frame, class));
        entry.latch.release_exclusive();
        add(&shared.counters.misses, 1);
        Ok(Some(pin))
    }

    /// Finds a page's delta in memory or begins to read it, if it has one.
    pub(crate) fn begin_delta(&self, pid: PageId) -> DeltaReading {
        let shared = self.shared();
        let place = shared.array.delta(pid).location();
        let mut reading = DeltaReading { place, found: None, under_way: None };
        if place.is_none() {
            return reading;
        }
        reading.found = shared.recent_deltas.find(&shared.frames, pid, place);
        if reading.found.is_none() {
            let store = self.clone();
            let read = move || store.shared().read_delta(pid, place);
            reading.under_way = Some(runtime::spawn("delta-read", read));
        }
        reading
    }

    /// Reads a page's full copy, if nobody has, while its delta is read; puts them together and
    /// verifies the page. Returns the delta as memory is to have it, if it has not yet. Parks.
    fn put_together(
        &self,
        pid: PageId,
        location: Location,
        copy: Option<&[u8]>,
        reading: DeltaReading,
        page: &mut [u8],
    ) -> Result<(SinceBase, Option<Remembered>), StoreError> {
        let shared = self.shared();
        let DeltaReading { place: delta, found, under_way } = reading;
        let decode = |blob: &BlobHeader, bytes: &[u8]| {
            if blob.codec != codec::CodecId::None {
                add(&shared.counters.decompressed_pages, 1);
            }
            shared.unpack(blob, bytes, page)?;
            Ok(SinceBase { base: blob.as_base(), ..SinceBase::default() })
        };
        let full = match copy {
            Some(bytes) => shared.verify_blob(pid, location, bytes, decode),
            None => shared.with_blob(pid, location, decode),
        };
        let read = under_way.map(|reading| reading.join().unwrap_or_else(|panic| panic.resume()));
        let base = full?;
        let changes = match (found, read) {
            (Some(found), _) => {
                add(&shared.counters.delta_hits, 1);
                probe!("pagestore_delta_found");
                Some(found)
            }
            (None, Some(bytes)) => {
                let bytes = bytes?;
                add(&shared.counters.delta_reads, 1);
                probe!("pagestore_delta_read");
                Some(Remembered::Written(bytes))
            }
            (None, None) => None,
        };
        let (since, short) = match changes {
            Some(changes) => {
                let applied = shared.apply(&changes, base, page);
                applied.map_err(|detail| shared.corrupt(pid, delta, &detail))?
            }
            None => (base, None),
        };
        let checked = shared.page_check.map_or(Ok(()), |check| check(page));
        checked.map(|()| (since, short)).map_err(|detail| shared.corrupt(pid, location, detail))
    }
}

impl Shared {
    /// The error for a page without a place.
    fn missing(&self, pid: PageId) -> StoreError {
        if self.space.mirror.lock().is_allocated(pid) {
            let detail = "the page is allocated but no copy of it exists".to_owned();
            StoreError::Corrupt { pid, detail }
        } else {
            StoreError::NoSuchPage(pid)
        }
    }

    /// Puts a delta on its base, which stands in `page`. Returns it as memory is to have it, if it
    /// is not so yet. Parks.
    fn apply(
        &self,
        delta: &Remembered,
        base: SinceBase,
        page: &mut [u8],
    ) -> Result<(SinceBase, Option<Remembered>), Arc<str>> {
        let bytes = match delta {
            Remembered::Written(bytes) => bytes,
            Remembered::Short(bytes) => {
                return Ok((short_delta::apply(bytes, base.base, page)?, None));
            }
        };
        let blob = blob::verify(bytes)?;
        let dictionary = self.dictionary_of(&blob)?;
        let former = self.recent_deltas.has_memory().then(|| page.to_vec());
        let since = delta::apply(&blob, bytes, base.base, dictionary.as_deref(), page)?;
        let short = former.map(|former| short_delta::encode(&former, page, &since));
        Ok((since, short.map(Remembered::Short)))
    }

    /// The verified delta of a page. Parks.
    fn read_delta(&self, pid: PageId, delta: Location) -> Result<Vec<u8>, StoreError> {
        self.with_blob(pid, delta, |_, blob| Ok(blob.to_vec()))
    }

    /// Looks at how many deltas were read of late, and from where.
    pub(crate) fn look_at_deltas(&self) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let reads = Reads {
            pages: count(&self.counters.misses),
            deltas: count(&self.counters.delta_reads),
            found: count(&self.counters.delta_hits),
        };
        self.recent_deltas.look(&self.frames, reads);
    }

    /// Reads and verifies one blob of the page and hands it on. Parks, and `then` may.
    pub(crate) fn with_blob<T>(
        &self,
        pid: PageId,
        location: Location,
        then: impl FnOnce(&BlobHeader, &[u8]) -> Result<T, Arc<str>>,
    ) -> Result<T, StoreError> {
        let Some(disk) = &self.disk else { return Err(StoreError::NoSuchPage(pid)) };
        let mut buffer = self.loads.buffer();
        let read = disk.read_copy(location, &mut buffer);
        let outcome = read.and_then(|bytes| self.verify_blob(pid, location, bytes, then));
        add(&self.counters.reads, 1);
        add(&self.counters.read_bytes, buffer.len() as u64);
        self.loads.keep(buffer);
        outcome
    }

    /// Verifies the bytes at one place of the page and hands them on.
    fn verify_blob<T>(
        &self,
        pid: PageId,
        location: Location,
        bytes: &[u8],
        then: impl FnOnce(&BlobHeader, &[u8]) -> Result<T, Arc<str>>,
    ) -> Result<T, StoreError> {
        let verified = blob::verify(bytes).map_err(Arc::from).and_then(|blob| {
            let is_meant =
                blob.pid == pid && blob.class == location.class() && location.matches_crc(blob.crc);
            if is_meant {
                then(&blob, bytes)
            } else {
                Err("another page's or an older copy stands here".into())
            }
        });
        verified.map_err(|detail: Arc<str>| self.corrupt(pid, location, &detail))
    }

    /// The error for what is wrong with a page, at the place of one of its copies.
    fn corrupt(&self, pid: PageId, location: Location, detail: &str) -> StoreError {
        let place = self.disk.as_ref().map(|disk| disk.files.describe(location.offset_bytes()));
        let (file, offset) = place.unwrap_or_default();
        StoreError::Corrupt { pid, detail: format!("{detail} ({file} at offset {offset})") }
    }
}
