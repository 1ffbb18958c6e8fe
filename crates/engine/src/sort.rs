//! Sorting byte strings within a memory limit, with runs in `tmp/` when it is passed.
//!
//! 1. All sorts of an engine share one limit: each may hold the limit divided by the number of
//!    sorts under way, and spills what it holds when that becomes more. What counts is what is
//!    allocated, not what is filled.
//! 2. A run is a file of `length u32 | bytes`, in order. What a crash leaves there is removed by
//!    the next start.
//! 3. At most [`MERGE_WAYS`] runs are merged at once; more are first merged to fewer.

use engine_api::{EngineError, Result};
use runtime::file::{File, OpenOptions};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs merged at once; each needs a block in memory.
const MERGE_WAYS: usize = 16;
const BLOCK_BYTES: usize = 32 << 10;
/// What holds strings grows by one part of so many of the share at most: where it has grown to the
/// share little of it is empty.
const GROWTH_PARTS: usize = 16;
/// The system's number for a full disk.
const NO_SPACE: i32 = 28;
static RUN_NUMBER: AtomicU64 = AtomicU64::new(0);

fn failed(error: std::io::Error) -> EngineError {
    match error.raw_os_error() {
        Some(NO_SPACE) => EngineError::DiskFull,
        _ => EngineError::Failed(format!("temporary file: {error}")),
    }
}

/// What all sorts of an engine may hold in memory together.
#[derive(Debug)]
pub(crate) struct SortMemory {
    limit_bytes: usize,
    sorts: AtomicUsize,
}

impl SortMemory {
    /// `limit_bytes` for all sorts; one alone gets a block at least.
    pub(crate) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { limit_bytes, sorts: AtomicUsize::new(0) })
    }
}

/// The part of one sort.
struct Share(Arc<SortMemory>);

impl Share {
    fn of(memory: &Arc<SortMemory>) -> Self {
        memory.sorts.fetch_add(1, Ordering::Relaxed);
        Self(memory.clone())
    }

    fn bytes(&self) -> usize {
        let sorts = self.0.sorts.load(Ordering::Relaxed).max(1);
        (self.0.limit_bytes / sorts).max(BLOCK_BYTES)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.sorts.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes strings in any order.
pub(crate) struct Sorter {
    directory: PathBuf,
    share: Share,
    bytes: Vec<u8>,
    places: Vec<Place>,
    runs: Vec<RunFile>,
}

/// Where a string begins and ends in the bytes held, of which there are less than 4 GiB.
type Place = (u32, u32);
const PLACE_BYTES: usize = size_of::<Place>();
/// Most bytes held, whatever the limit.
const HELD_BYTES_MAX: usize = 1 << 30;

/// A run's file, removed when dropped.
struct RunFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if !std::thread::panicking() && runtime::fs::remove_file(&self.path).is_err() {
            base::probe!("engine.sort.run_left_to_restart");
        }
    }
}

impl Sorter {
    /// A sorter with runs in `datadir`/tmp.
    pub(crate) fn new(datadir: &Path, memory: &Arc<SortMemory>) -> Self {
        Self {
            directory: datadir.join("tmp"),
            share: Share::of(memory),
            bytes: Vec::new(),
            places: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a string.
    pub(crate) fn push(&mut self, item: &[u8]) -> Result<()> {
        if !self.make_room(item.len()) && !self.places.is_empty() {
            self.spill()?;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(item);
        self.places.push((start, self.bytes.len() as u32));
        Ok(())
    }

    /// Makes room for a string of so many bytes; false if that would be more than the share.
    fn make_room(&mut self, item_bytes: usize) -> bool {
        let most = self.share.bytes().min(HELD_BYTES_MAX);
        let capacity = |now: usize, needed: usize| {
            let grown = now + now.min(most / GROWTH_PARTS);
            if needed <= now { now } else { grown.max(needed) }
        };
        let bytes = capacity(self.bytes.capacity(), self.bytes.len() + item_bytes);
        let (places, needed) = (self.places.capacity(), self.places.len() + 1);
        let places = capacity(places * PLACE_BYTES, needed * PLACE_BYTES) / PLACE_BYTES;
        let fits = bytes + places * PLACE_BYTES <= most;
        if fits {
            self.bytes.reserve_exact(bytes - self.bytes.len());
            self.places.reserve_exact(places - self.places.len());
        }
        fits
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let item = |place: &Place| &bytes[place.0 as usize..place.1 as usize];
        let pacer = runtime::Pacer::default();
        self.places.sort_unstable_by(|a, b| {
            pacer.step();
            item(a).cmp(item(b))
        });
    }

    fn new_run(&self) -> Result<RunWriter> {
        base::probe!("engine.sort.spilled");
        runtime::fs::create_dir_all(&self.directory).map_err(failed)?;
        let number = RUN_NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("sort-{number}"));
        let file = OpenOptions::new().create(true).truncate(true).open(&path).map_err(failed)?;
        let run = RunFile { path, file, length: 0 };
        Ok(RunWriter { run, block: Vec::with_capacity(BLOCK_BYTES) })
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let mut run = self.new_run()?;
        for &(start, end) in &self.places {
            run.push(&self.bytes[start as usize..end as usize])?;
        }
        self.runs.push(run.finish()?);
        let held = self.bytes.len() + self.places.len() * PLACE_BYTES;
        self.bytes.clear();
        self.places.clear();
        // The share may have become smaller since they grew, or the strings longer: then what was
        // allocated for one of the two is not what the other needs.
        let allocated = self.allocated_bytes();
        if allocated > self.share.bytes() || held < allocated / 2 {
            (self.bytes, self.places) = (Vec::new(), Vec::new());
        }
        Ok(())
    }

    fn allocated_bytes(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * PLACE_BYTES
    }

    /// Merges runs until few are left (invariant 3). Nothing is held in memory meanwhile.
    fn merge_runs(&mut self) -> Result<()> {
        if self.runs.len() <= MERGE_WAYS {
            return Ok(());
        }
        base::probe!("engine.sort.merged_runs");
        if !self.places.is_empty() {
            self.spill()?;
        }
        (self.bytes, self.places) = (Vec::new(), Vec::new());
        let mut item = Vec::new();
        while self.runs.len() > MERGE_WAYS {
            let sources = self.runs.drain(..MERGE_WAYS).map(Source::of_run).collect();
            let mut sorted = Sorted::over(sources, None)?;
            let mut merged = self.new_run()?;
            while sorted.next(&mut item)? {
                merged.push(&item)?;
                runtime::yield_if_due();
            }
            self.runs.push(merged.finish()?);
        }
        Ok(())
    }

    /// The strings in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        self.merge_runs()?;
        self.sort();
        let mut sources: Vec<_> = self.runs.drain(..).map(Source::of_run).collect();
        sources.push(Source::Memory { bytes: self.bytes, places: self.places, next: 0 });
        Sorted::over(sources, Some(self.share))
    }
}

/// A run being written.
struct RunWriter {
    run: RunFile,
    block: Vec<u8>,
}

impl RunWriter {
    fn push(&mut self, item: &[u8]) -> Result<()> {
        self.block.extend_from_slice(&(item.len() as u32).to_le_bytes());
        self.block.extend_from_slice(item);
        if self.block.len() >= BLOCK_BYTES {
            self.run.append(&mut self.block)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RunFile> {
        self.run.append(&mut self.block)?;
        Ok(self.run)
    }
}

impl RunFile {
    fn append(&mut self, block: &mut Vec<u8>) -> Result<()> {
        if !block.is_empty() {
            self.file.write_at(block, self.length).map_err(failed)?;
            self.length += block.len() as u64;
            block.clear();
        }
        Ok(())
    }
}

enum Source {
    Memory { bytes: Vec<u8>, places: Vec<Place>, next: usize },
    Run { run: RunFile, block: Vec<u8>, at: usize, offset: u64 },
}

impl Source {
    fn of_run(run: RunFile) -> Self {
        Self::Run { run, block: Vec::new(), at: 0, offset: 0 }
    }

    /// The next string into `item`; false at the end.
    fn next(&mut self, item: &mut Vec<u8>) -> Result<bool> {
        item.clear();
        match self {
            Self::Memory { bytes, places, next } => {
                let Some(&(start, end)) = places.get(*next) else { return Ok(false) };
                item.extend_from_slice(&bytes[start as usize..end as usize]);
                *next += 1;
            }
            Self::Run { run, block, at, offset } => {
                if !fill(run, block, at, offset, 4)? {
                    return Ok(false);
                }
                let length = block[*at..*at + 4].try_into().map_or(0, u32::from_le_bytes) as usize;
                *at += 4;
                if !fill(run, block, at, offset, length)? {
                    let short = "temporary file: a run ends early".to_owned();
                    return Err(EngineError::Failed(short));
                }
                item.extend_from_slice(&block[*at..*at + length]);
                *at += length;
            }
        }
        Ok(true)
    }
}

/// Makes `wanted` bytes available in the block at `at`; false if the run is at its end.
fn fill(
    run: &RunFile,
    block: &mut Vec<u8>,
    at: &mut usize,
    offset: &mut u64,
    wanted: usize,
) -> Result<bool> {
    if block.len() - *at >= wanted {
        return Ok(true);
    }
    block.drain(..*at);
    *at = 0;
    let have = block.len();
    let rest = (run.length - *offset) as usize;
    let read = rest.min(BLOCK_BYTES.max(wanted - have));
    block.resize(have + read, 0);
    run.file.read_at(&mut block[have..], *offset).map_err(failed)?;
    *offset += read as u64;
    Ok(block.len() >= wanted)
}

/// Gives the strings in order.
pub(crate) struct Sorted {
    sources: Vec<Source>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// Given up with the last string's memory.
    _share: Option<Share>,
}

impl Sorted {
    fn over(sources: Vec<Source>, share: Option<Share>) -> Result<Self> {
        let mut sorted = Self { sources, heap: BinaryHeap::new(), _share: share };
        for number in 0..sorted.sources.len() {
            sorted.refill(number, Vec::new())?;
        }
        Ok(sorted)
    }

    fn refill(&mut self, number: usize, mut item: Vec<u8>) -> Result<()> {
        if self.sources[number].next(&mut item)? {
            self.heap.push(Reverse((item, number)));
        }
        Ok(())
    }

    /// The next string into `item`; false at the end.
    pub(crate) fn next(&mut self, item: &mut Vec<u8>) -> Result<bool> {
        let Some(Reverse((smallest, number))) = self.heap.pop() else { return Ok(false) };
        item.clear();
        item.extend_from_slice(&smallest);
        self.refill(number, smallest)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use runtime::sim::{SimConfig, Simulation};

    /// Sorts `count` random strings in each of `sorts` sorts at once.
    fn sort(limit_bytes: usize, sorts: usize, count: usize) {
        let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(1) });
        let result = simulation.run(move || {
            let memory = SortMemory::new(limit_bytes);
            let mut sorters: Vec<_> =
                (0..sorts).map(|_| Sorter::new(Path::new("/data"), &memory)).collect();
            let mut random = Random::new(7);
            let mut expected = Vec::new();
            for _ in 0..count {
                let length = random.index(40);
                let item: Vec<u8> = (0..length).map(|_| random.next_u32() as u8).collect();
                for sorter in &mut sorters {
                    sorter.push(&item).expect("no faults");
                    let share = (limit_bytes / sorts).max(BLOCK_BYTES);
                    assert!(sorter.allocated_bytes() <= share, "what is empty counts, too");
                }
                expected.push(item);
            }
            expected.sort();
            for sorter in sorters {
                let mut sorted = sorter.finish().expect("no faults");
                assert!(sorted.sources.len() <= MERGE_WAYS + 1);
                let mut item = Vec::new();
                for wanted in &expected {
                    assert!(sorted.next(&mut item).expect("no faults"));
                    assert_eq!(&item, wanted);
                }
                assert!(!sorted.next(&mut item).expect("no faults"));
            }
            assert_eq!(memory.sorts.load(Ordering::Relaxed), 0);
            let left = runtime::fs::read_dir(Path::new("/data/tmp")).unwrap_or_default();
            assert!(left.is_empty(), "{left:?}");
        });
        result.unwrap_or_else(|end| panic!("{end}"));
    }

    #[test]
    fn strings_that_become_longer_find_room() {
        let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(1) });
        let result = simulation.run(|| {
            let mut sorter = Sorter::new(Path::new("/data"), &SortMemory::new(256 << 10));
            (0..50_000).for_each(|_| sorter.push(&[1]).expect("no faults"));
            let before = sorter.runs.len();
            (0..200).for_each(|_| sorter.push(&[2; 4 << 10]).expect("no faults"));
            let runs = sorter.runs.len() - before;
            assert!(runs < 8, "{runs} runs of 800 KiB");
        });
        result.unwrap_or_else(|end| panic!("{end}"));
    }

    #[test]
    fn in_memory() {
        sort(16 << 20, 1, 5000);
    }

    #[test]
    fn sorts_share_the_limit_and_many_runs_are_merged() {
        sort(256 << 10, 3, 60_000);
    }
}
