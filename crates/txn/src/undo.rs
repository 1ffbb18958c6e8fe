//! Undo arenas: where the former versions of rows live.
//!
//! A *word* is the address of an undo record: `0 | arena 7 bits | offset 56 bits`, or 0 for "no
//! undo". Each worker appends to its own arena; an arena is a sequence of chunks.
//!
//! Invariants:
//! 1. Offsets of an arena only grow, across restarts too: a run starts above the highest word
//!    that can be on any page. So a word below the run's base is of a former run and its version
//!    is visible to all.
//! 2. A record is complete before its word reaches a page, and does not change afterwards except
//!    for its dead mark and, in a header, the state.
//! 3. A chunk is retired as a whole when no active transaction has a record in it and every
//!    transaction that had one ended at or below the limit given to [`UndoSpace::retire`]. A word
//!    whose chunk is gone is visible to all.
//! 4. A retired chunk's memory is reused after every worker has passed a scheduling point;
//!    readers keep no record across one (records are lent to closures).
//! 5. A transaction's header may be retired before its records only when both are visible to
//!    all, so a missing header means the same as a missing record.
//! 6. Records that were rolled back are marked dead before their transaction ends; a reader that
//!    copied the entry earlier skips to the version before.
//! 7. Records of transactions that were prepared when the server stopped are made anew under
//!    their former words, before anybody reads, and stay to the end of the run (see
//!    [`crate::recovered`]).
//! 8. Beyond the memory budget chunks are memory behind which stands a file (see
//!    [`crate::spill`]); readers need not know. Their memory is let go again and again.

use crate::chunk::{Chunk, ChunkMemory, UndoFull, refused};
use crate::image::NewUndo;
use crate::record::{DEAD, RECORD_HEADER_BYTES, UndoRecord, fixed_part};
use crate::recovered::RecoveredRecords;
use crate::spill::Spill;
use base::{Lsn, MemoryAccount};
use runtime::mapping::Mapping;
use runtime::sync::Mutex;
use smallvec::SmallVec;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Bits of a word that hold the offset in the arena.
const OFFSET_BITS: u32 = 56;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// Largest number of arenas a word can name.
const ARENAS_MAX: usize = 128;
/// Chunks an arena can have outstanding; 64 GiB of the usual size.
const DIRECTORY_SLOTS: usize = 1 << 18;
/// Free standard chunks kept for reuse.
const POOL_CHUNKS: usize = 16;
/// Chunks that must be at hand before changes are latched, besides one for each arena.
const RESERVE_CHUNKS: usize = 8;
/// Chunks in files whose memory one round lets go of.
const LET_GO_CHUNKS: usize = 64;

/// State of a header: still running.
const ACTIVE: u64 = 0;
/// State of a header: rolled back. Larger numbers are commit timestamps.
const ABORTED: u64 = 1;

const TRANSACTION_HEADER_BYTES: usize = 16;

/// Offset part of a word.
pub fn word_offset(word: u64) -> u64 {
    word & OFFSET_MASK
}

/// Names a chunk for the accounting of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkId {
    arena: u8,
    number: u64,
}

/// The chunks that a transaction has records in.
pub(crate) type Chunks = SmallVec<[ChunkId; 2]>;

struct ArenaState {
    /// The chunk being filled and the offset in it.
    current: *mut Chunk,
    top: usize,
    next_number: u64,
    /// Chunks no longer filled, oldest first.
    sealed: Vec<*mut Chunk>,
    /// Where in `sealed` the next round lets memory go.
    let_go_at: usize,
}

// SAFETY: the pointers are to chunks owned by the arena; all access is under its mutex.
unsafe impl Send for ArenaState {}

impl ArenaState {
    /// Lets go of memory of some sealed chunks in files: what nobody reads need not stay.
    fn let_go(&mut self) {
        for _ in 0..LET_GO_CHUNKS.min(self.sealed.len()) {
            self.let_go_at = if self.let_go_at < self.sealed.len() { self.let_go_at } else { 0 };
            // SAFETY: sealed chunks are alive while they are in the list.
            unsafe { &*self.sealed[self.let_go_at] }.memory.let_go();
            self.let_go_at += 1;
        }
    }
}

struct Arena {
    state: Mutex<ArenaState>,
    directory: Directory,
}

/// Chunks by number modulo its length. Most of it is never touched and takes no memory.
struct Directory(Mapping);

impl Directory {
    fn new() -> Self {
        let bytes = DIRECTORY_SLOTS * size_of::<AtomicPtr<Chunk>>();
        Self(Mapping::anonymous(bytes, false).expect("address space for a table of pointers"))
    }

    #[inline]
    fn slot(&self, number: u64) -> &AtomicPtr<Chunk> {
        let at = (number % DIRECTORY_SLOTS as u64) as usize;
        // SAFETY: within the mapping, which is page aligned and begins as zeroes (null pointers).
        unsafe { &*self.0.as_ptr().cast::<AtomicPtr<Chunk>>().add(at) }
    }
}

/// All undo of a running system.
pub struct UndoSpace {
    arenas: Box<[Arena]>,
    chunk_bytes: usize,
    base: u64,
    /// Words with offsets below are of former runs and visible to all: the base, or less if there
    /// are words in `recovered`.
    frozen_below: AtomicU64,
    recovered: RecoveredRecords,
    account: Arc<MemoryAccount>,
    spill: Arc<Spill>,
    pool: Arc<Mutex<Vec<ChunkMemory>>>,
}

impl std::fmt::Debug for UndoSpace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "UndoSpace({} bytes used)", self.account.used_bytes())
    }
}

/// State of a transaction as its header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderState {
    /// Visible to all.
    Gone,
    Active(u64),
    Aborted,
    Committed(Lsn),
}

impl UndoSpace {
    /// Arenas for `workers` workers; what `budget_bytes` do not hold goes to files in `directory`.
    /// `base` is above the offset of every word of former runs;
    /// `chunk_bytes` is a power of two of at least 1 KiB.
    pub fn new(
        workers: usize,
        chunk_bytes: usize,
        budget_bytes: u64,
        directory: Option<PathBuf>,
        base: u64,
    ) -> Self {
        base::invariant!(chunk_bytes.is_power_of_two() && chunk_bytes >= 1024, "chunk size");
        let first = base.div_ceil(chunk_bytes as u64).max(1);
        let arena = |_| Arena {
            state: Mutex::new(ArenaState {
                current: std::ptr::null_mut(),
                top: 0,
                next_number: first,
                sealed: Vec::new(),
                let_go_at: 0,
            }),
            directory: Directory::new(),
        };
        Self {
            arenas: (0..workers.clamp(1, ARENAS_MAX)).map(arena).collect(),
            chunk_bytes,
            base: first * chunk_bytes as u64,
            frozen_below: AtomicU64::new(first * chunk_bytes as u64),
            recovered: RecoveredRecords::default(),
            account: MemoryAccount::new(budget_bytes),
            spill: Spill::new(directory, chunk_bytes),
            pool: Arc::new(Mutex::new(Vec::new())),
        }
    }

    /// Bytes of undo memory in use.
    pub fn used_bytes(&self) -> u64 {
        self.account.used_bytes()
    }

    /// Bytes of undo in files.
    pub fn spilled_bytes(&self) -> u64 {
        self.spill.used_bytes()
    }

    /// Makes sure that the next chunks can be had without asking the system. May block the worker
    /// for a moment; call it without a latch, before every change.
    #[inline]
    pub(crate) fn reserve(&self) -> Result<(), UndoFull> {
        let chunks = self.arenas.len() + RESERVE_CHUNKS;
        let left = self.account.limit_bytes().saturating_sub(self.account.used_bytes());
        if left >= (chunks * self.chunk_bytes) as u64 || self.spill.free_count() >= chunks {
            return Ok(());
        }
        self.spill.grow().map_err(|error| refused(&self.account, &error))
    }

    /// Budget in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.account.limit_bytes()
    }

    /// Words with offsets below are of former runs.
    pub fn first_offset(&self) -> u64 {
        self.base
    }

    /// An offset above that of every word handed out so far.
    pub fn high_water(&self) -> u64 {
        let next = self.arenas.iter().map(|arena| arena.state.lock().next_number).max();
        next.unwrap_or(1) * self.chunk_bytes as u64
    }

    /// The word was handed out before the server was started last, and not by a transaction that
    /// was prepared then; or it is zero, since no chunk has that number.
    #[inline]
    pub(crate) fn is_of_earlier_run(&self, word: u64) -> bool {
        word & OFFSET_MASK < self.frozen_below.load(Ordering::Relaxed)
    }

    /// Makes the record of a change that a prepared transaction of a former run has made, under
    /// the word that its entry has.
    pub(crate) fn recover(
        &self,
        word: u64,
        header: u64,
        (previous, previous_lsn): (u64, Lsn),
        new: &NewUndo<'_>,
    ) {
        let (_, _, _, image) = new.before.parts();
        let mut bytes = fixed_part(header, previous, previous_lsn, new).to_vec();
        bytes.extend_from_slice(new.key);
        bytes.extend_from_slice(image);
        self.recovered.insert(word, &bytes);
        self.frozen_below.fetch_min(word & OFFSET_MASK, Ordering::SeqCst);
    }

    #[inline]
    fn chunk(&self, word: u64) -> Option<&Chunk> {
        if self.is_of_earlier_run(word) {
            return None;
        }
        let offset = word & OFFSET_MASK;
        let number = offset / self.chunk_bytes as u64;
        let arena = self.arenas.get((word >> OFFSET_BITS) as usize)?;
        let pointer = arena.directory.slot(number).load(Ordering::Acquire);
        // SAFETY: a chunk in the directory is alive, and stays so until every worker has passed
        // a scheduling point after its removal (invariant 4).
        let chunk = unsafe { pointer.as_ref()? };
        (chunk.number == number).then_some(chunk)
    }

    #[inline]
    fn locate(&self, word: u64) -> Option<NonNull<u8>> {
        let Some(chunk) = self.chunk(word) else {
            return match word & OFFSET_MASK < self.base {
                true => self.recovered.find(word),
                false => None,
            };
        };
        let within = ((word & OFFSET_MASK) - chunk.number * self.chunk_bytes as u64) as usize;
        // SAFETY: words handed out point into the chunk's memory.
        Some(unsafe { chunk.memory.start.add(within) })
    }

    /// Lends the record at `word` to `f`, which must not park or yield; `None` when its version
    /// is visible to all.
    #[inline]
    pub fn read<R>(&self, word: u64, f: impl FnOnce(UndoRecord<'_>) -> R) -> Option<R> {
        if word == 0 {
            return None;
        }
        let start = self.locate(word)?;
        Some(f(UndoRecord::lent(start)))
    }

    /// Marks a record as rolled back.
    pub(crate) fn mark_dead(&self, word: u64) {
        self.read(word, |record| record.header_cell().fetch_or(DEAD, Ordering::Release));
    }

    fn header_cells(&self, header: u64) -> Option<(&AtomicU64, &AtomicU64)> {
        let start = self.locate(header)?;
        // SAFETY: a header is two 8-aligned words that are only accessed atomically.
        Some(unsafe { (start.cast::<AtomicU64>().as_ref(), start.add(8).cast().as_ref()) })
    }

    /// State of the transaction with this header.
    #[inline]
    pub(crate) fn state(&self, header: u64) -> HeaderState {
        let Some((id, state)) = self.header_cells(header) else { return HeaderState::Gone };
        match state.load(Ordering::Acquire) {
            ACTIVE => HeaderState::Active(id.load(Ordering::Relaxed)),
            ABORTED => HeaderState::Aborted,
            timestamp => HeaderState::Committed(Lsn::new(timestamp)),
        }
    }

    /// Publishes the end of a transaction: its commit timestamp, or `None` when rolled back.
    pub(crate) fn publish(&self, header: u64, committed: Option<Lsn>) {
        let (_, state) = self.header_cells(header).expect("an active transaction keeps its undo");
        state.store(committed.map_or(ABORTED, Lsn::get), Ordering::Release);
    }

    /// Reserves `bytes` in the arena of the current worker.
    fn allocate(&self, bytes: usize, users: &mut Chunks) -> Result<(u64, NonNull<u8>), UndoFull> {
        let number_of_arena = runtime::current_worker() % self.arenas.len();
        let arena = &self.arenas[number_of_arena];
        let bytes = (bytes + 7) & !7;
        let mut state = arena.state.lock();
        let (chunk, within) = if bytes > self.chunk_bytes {
            let chunk = self.install(arena, &mut state, bytes)?;
            state.sealed.push(chunk);
            (chunk, 0)
        } else {
            if state.current.is_null() || state.top + bytes > self.chunk_bytes {
                let chunk = self.install(arena, &mut state, self.chunk_bytes)?;
                let full = std::mem::replace(&mut state.current, chunk);
                state.top = 0;
                if !full.is_null() {
                    state.sealed.push(full);
                }
            }
            let within = state.top;
            state.top += bytes;
            (state.current, within)
        };
        // SAFETY: the chunk was installed and cannot be retired before this mutex is released:
        // it is current, or was sealed in this call and gets a user below.
        let chunk = unsafe { &*chunk };
        let id = ChunkId { arena: number_of_arena as u8, number: chunk.number };
        if users.last() != Some(&id) && !users.contains(&id) {
            chunk.users.fetch_add(1, Ordering::Relaxed);
            users.push(id);
        }
        drop(state);
        let offset = chunk.number * self.chunk_bytes as u64 + within as u64;
        // SAFETY: `within + bytes` is at most the size of the chunk's memory.
        let start = unsafe { chunk.memory.start.add(within) };
        Ok(((number_of_arena as u64) << OFFSET_BITS | offset, start))
    }

    /// Makes a chunk of at least `bytes` and puts it into the directory.
    fn install(
        &self,
        arena: &Arena,
        state: &mut ArenaState,
        bytes: usize,
    ) -> Result<*mut Chunk, UndoFull> {
        // An idle transaction may still have a chunk of long ago: its place is left out.
        let is_free =
            |number: &u64| arena.directory.slot(*number).load(Ordering::Relaxed).is_null();
        let numbers = state.next_number..state.next_number + DIRECTORY_SLOTS as u64;
        let number = numbers.into_iter().find(is_free);
        let number =
            number.ok_or(UndoFull { limit_bytes: self.account.limit_bytes(), errno: 0 })?;
        let is_large = bytes != self.chunk_bytes;
        let pooled = if is_large { None } else { self.pool.lock().pop() };
        let memory = match pooled {
            Some(memory) => memory,
            None => ChunkMemory::new(bytes, is_large, &self.account, &self.spill)?,
        };
        let chunk = Box::into_raw(Box::new(Chunk {
            number,
            memory,
            users: AtomicU32::new(0),
            released_at: AtomicU64::new(0),
        }));
        state.next_number = number + bytes.div_ceil(self.chunk_bytes) as u64;
        arena.directory.slot(number).store(chunk, Ordering::Release);
        Ok(chunk)
    }

    /// Writes a transaction's header.
    pub(crate) fn add_header(&self, id: u64, users: &mut Chunks) -> Result<u64, UndoFull> {
        let (word, start) = self.allocate(TRANSACTION_HEADER_BYTES, users)?;
        // SAFETY: 16 bytes at `start` were reserved for this header and are 8-aligned.
        unsafe {
            start.cast::<u64>().write(id);
            start.add(8).cast::<u64>().write(ACTIVE);
        }
        Ok(word)
    }

    /// Writes a record; nobody knows its word yet.
    pub(crate) fn add(
        &self,
        header: u64,
        previous: u64,
        previous_lsn: Lsn,
        new: &NewUndo<'_>,
        users: &mut Chunks,
    ) -> Result<u64, UndoFull> {
        let (_, _, _, image) = new.before.parts();
        let total = RECORD_HEADER_BYTES + new.key.len() + image.len();
        let (word, start) = self.allocate(total, users)?;
        let fixed = fixed_part(header, previous, previous_lsn, new);
        // SAFETY: `total` bytes at `start` were reserved for this record; no one else has its
        // address yet.
        unsafe {
            let to = start.as_ptr();
            to.copy_from_nonoverlapping(fixed.as_ptr(), RECORD_HEADER_BYTES);
            let to = to.add(RECORD_HEADER_BYTES);
            to.copy_from_nonoverlapping(new.key.as_ptr(), new.key.len());
            to.add(new.key.len()).copy_from_nonoverlapping(image.as_ptr(), image.len());
        }
        Ok(word)
    }

    /// A transaction that ended at `timestamp` gives up its chunks.
    pub(crate) fn release(&self, users: &mut Chunks, timestamp: Lsn) {
        for id in users.drain(..) {
            let word = u64::from(id.arena) << OFFSET_BITS | (id.number * self.chunk_bytes as u64);
            let chunk = self.chunk(word).expect("a chunk with users is not retired");
            chunk.released_at.fetch_max(timestamp.get(), Ordering::Relaxed);
            chunk.users.fetch_sub(1, Ordering::Release);
        }
    }

    /// Retires every sealed chunk whose transactions ended at or below `limit`; returns how many.
    pub fn retire(&self, limit: Lsn) -> usize {
        let mut retired = 0;
        for arena in &self.arenas {
            let mut state = arena.state.lock();
            state.sealed.retain(|&pointer| {
                // SAFETY: sealed chunks are alive until this function takes them out.
                let chunk = unsafe { &*pointer };
                let unused = chunk.users.load(Ordering::Acquire) == 0
                    && chunk.released_at.load(Ordering::Relaxed) <= limit.get();
                if unused {
                    let slot = arena.directory.slot(chunk.number);
                    slot.store(std::ptr::null_mut(), Ordering::Release);
                    retired += 1;
                    // SAFETY: made by Box::into_raw in `install`; out of the directory and the
                    // list, so this is the only owner.
                    self.reuse_later(unsafe { Box::from_raw(pointer) });
                }
                !unused
            });
            state.let_go();
        }
        retired
    }

    fn reuse_later(&self, chunk: Box<Chunk>) {
        let (pool, standard) = (self.pool.clone(), self.chunk_bytes);
        runtime::quiescent::defer(move || {
            let memory = chunk.memory;
            let mut pool = pool.lock();
            if memory.is_heap() && memory.bytes == standard && pool.len() < POOL_CHUNKS {
                pool.push(memory);
            }
        });
    }
}

impl Drop for UndoSpace {
    fn drop(&mut self) {
        for arena in &mut self.arenas {
            let state = arena.state.get_mut();
            let current = std::mem::replace(&mut state.current, std::ptr::null_mut());
            let chunks = state.sealed.drain(..).chain([current]);
            for pointer in chunks.filter(|pointer| !pointer.is_null()) {
                // SAFETY: every chunk was made by Box::into_raw and is in exactly one of the
                // two places; nobody else uses the space any more.
                drop(unsafe { Box::from_raw(pointer) });
            }
        }
    }
}
