//! Sorting byte strings within a memory limit, with runs in `tmp/` when it is passed.
//!
//! A run is a file of `length u32 | bytes`, in order. What a crash leaves there is removed by the
//! next start.

use engine_api::{EngineError, Result};
use runtime::file::{File, OpenOptions};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK_BYTES: usize = 64 << 10;
/// The system's number for a full disk.
const NO_SPACE: i32 = 28;
static RUN_NUMBER: AtomicU64 = AtomicU64::new(0);

fn failed(error: std::io::Error) -> EngineError {
    match error.raw_os_error() {
        Some(NO_SPACE) => EngineError::DiskFull,
        _ => EngineError::Failed(format!("temporary file: {error}")),
    }
}

/// Takes strings in any order.
pub(crate) struct Sorter {
    directory: PathBuf,
    limit_bytes: usize,
    bytes: Vec<u8>,
    places: Vec<(usize, usize)>,
    runs: Vec<RunFile>,
}

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
    pub(crate) fn new(datadir: &Path, limit_bytes: usize) -> Self {
        Self {
            directory: datadir.join("tmp"),
            limit_bytes: limit_bytes.max(BLOCK_BYTES),
            bytes: Vec::new(),
            places: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a string.
    pub(crate) fn push(&mut self, item: &[u8]) -> Result<()> {
        let held = self.bytes.len() + self.places.len() * size_of::<(usize, usize)>();
        if held + item.len() > self.limit_bytes && !self.places.is_empty() {
            self.spill()?;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(item);
        self.places.push((start, self.bytes.len()));
        Ok(())
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.places.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        base::probe!("engine.sort.spilled");
        runtime::fs::create_dir_all(&self.directory).map_err(failed)?;
        let number = RUN_NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("sort-{number}"));
        let file = OpenOptions::new().create(true).truncate(true).open(&path).map_err(failed)?;
        let mut run = RunFile { path, file, length: 0 };
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        for &(start, end) in &self.places {
            block.extend_from_slice(&((end - start) as u32).to_le_bytes());
            block.extend_from_slice(&self.bytes[start..end]);
            if block.len() >= BLOCK_BYTES {
                run.append(&mut block)?;
            }
        }
        run.append(&mut block)?;
        self.runs.push(run);
        self.bytes.clear();
        self.places.clear();
        Ok(())
    }

    /// The strings in order.
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        self.sort();
        let mut sources = Vec::new();
        for run in std::mem::take(&mut self.runs) {
            sources.push(Source::Run { run, block: Vec::new(), at: 0, offset: 0 });
        }
        let (bytes, places) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.places));
        sources.push(Source::Memory { bytes, places, next: 0 });
        let mut sorted = Sorted { sources, heap: BinaryHeap::new() };
        for number in 0..sorted.sources.len() {
            sorted.refill(number, Vec::new())?;
        }
        Ok(sorted)
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
    Memory { bytes: Vec<u8>, places: Vec<(usize, usize)>, next: usize },
    Run { run: RunFile, block: Vec<u8>, at: usize, offset: u64 },
}

impl Source {
    /// The next string into `item`; false at the end.
    fn next(&mut self, item: &mut Vec<u8>) -> Result<bool> {
        item.clear();
        match self {
            Self::Memory { bytes, places, next } => {
                let Some(&(start, end)) = places.get(*next) else { return Ok(false) };
                item.extend_from_slice(&bytes[start..end]);
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
}

impl Sorted {
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
