//! A layer of memory over a directory: files below it are read, what is written stays in memory
//! and is gone with the [`Cover`]. For checks that run the code of a start on a directory they
//! must not change.
//!
//! 1. While a directory is covered nothing below it is written, created, renamed or removed on
//!    the disk; every read and every listing sees the layer's state.
//! 2. A file is found in the layer by its present path; its content lies over the file that had
//!    that path when it was first met, wherever the layer has renamed it to since.
//! 3. Nothing in here is locked while the file below is read.
//!
//! One directory of a runtime can be covered at a time. Memory: what was written, in blocks of
//! 4 KiB; holes take none.

use crate::file::{File, OpenOptions};
use crate::worker::{self, Twin};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const BLOCK_BYTES: u64 = 4096;

/// The directory is covered until this is dropped.
#[derive(Debug)]
pub struct Cover {
    layer: Arc<Layer>,
}

/// What stands over a directory; see the head of this file.
pub(crate) struct Layer {
    root: PathBuf,
    names: Mutex<Names>,
}

impl fmt::Debug for Layer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Layer({})", self.root.display())
    }
}

#[derive(Default)]
struct Names {
    /// Files met so far; `None`: removed or renamed away.
    files: BTreeMap<PathBuf, Option<Arc<ShadowFile>>>,
    directories: BTreeSet<PathBuf>,
}

/// A file of the layer.
pub(crate) struct ShadowFile {
    below: Option<File>,
    content: Mutex<Content>,
}

impl fmt::Debug for ShadowFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ShadowFile({} bytes)", lock(&self.content).length)
    }
}

#[derive(Default)]
struct Content {
    length: u64,
    /// The file below counts up to here; what lies behind was cut off.
    below_length: u64,
    /// Blocks that differ from the file below; `None`: zeroes.
    blocks: BTreeMap<u64, Option<Box<[u8]>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Covers a directory of this runtime. Panics if one is covered already.
pub fn cover(directory: impl AsRef<Path>) -> Cover {
    let root = directory.as_ref().to_path_buf();
    let layer = Arc::new(Layer { root, names: Mutex::default() });
    place(|place| {
        base::invariant!(place.is_none(), "a directory is covered already");
        *place = Some(layer.clone());
    });
    Cover { layer }
}

impl Cover {
    /// Bytes of memory that the layer's files take.
    pub fn bytes(&self) -> u64 {
        let names = lock(&self.layer.names);
        let blocks =
            |file: &Arc<ShadowFile>| lock(&file.content).blocks.values().flatten().count() as u64;
        names.files.values().flatten().map(blocks).sum::<u64>() * BLOCK_BYTES
    }
}

impl Drop for Cover {
    fn drop(&mut self) {
        if worker::try_current().is_some() {
            place(|place| *place = None);
        }
    }
}

fn place<T>(f: impl FnOnce(&mut Option<Arc<Layer>>) -> T) -> T {
    match &worker::current().twin {
        Twin::Real(real) => f(&mut lock(&real.group.cover)),
        Twin::Sim(sim) => f(&mut sim.cover.borrow_mut()),
    }
}

/// The layer that covers this path, if any.
pub(crate) fn over(path: &Path) -> Option<Arc<Layer>> {
    place(|place| place.clone()).filter(|layer| path.starts_with(&layer.root))
}

fn not_found() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl Layer {
    /// The file with this name, met for the first time or again. Parks.
    fn find(&self, path: &Path) -> io::Result<Option<Arc<ShadowFile>>> {
        if let Some(known) = lock(&self.names).files.get(path) {
            return Ok(known.clone());
        }
        let below = match OpenOptions::new().open_below(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let length = below.len()?;
        let content = Content { length, below_length: length, ..Content::default() };
        let file = ShadowFile { below: Some(below), content: Mutex::new(content) };
        let mut names = lock(&self.names);
        let known = names.files.entry(path.to_path_buf()).or_insert(Some(Arc::new(file)));
        Ok(known.clone())
    }

    fn set(&self, path: &Path, file: Option<Arc<ShadowFile>>) {
        lock(&self.names).files.insert(path.to_path_buf(), file);
    }

    pub(crate) fn open(
        &self,
        path: &Path,
        create: bool,
        truncate: bool,
        must_be_new: bool,
    ) -> io::Result<Arc<ShadowFile>> {
        let file = match self.find(path)? {
            Some(_) if must_be_new => return Err(io::ErrorKind::AlreadyExists.into()),
            Some(file) => file,
            None if create || must_be_new => {
                let file = ShadowFile { below: None, content: Mutex::default() };
                let file = Arc::new(file);
                self.set(path, Some(file.clone()));
                file
            }
            None => return Err(not_found()),
        };
        if truncate {
            *lock(&file.content) = Content::default();
        }
        Ok(file)
    }

    pub(crate) fn create_directories(&self, path: &Path) {
        let mut names = lock(&self.names);
        let inside = path.ancestors().take_while(|it| it.starts_with(&self.root));
        names.directories.extend(inside.map(Path::to_path_buf));
    }

    /// The names that the layer makes of those below.
    pub(crate) fn names(
        &self,
        path: &Path,
        below: io::Result<Vec<String>>,
    ) -> io::Result<Vec<String>> {
        let names = lock(&self.names);
        let below = match below {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && names.directories.contains(path) =>
            {
                Vec::new()
            }
            listed => listed?,
        };
        let mut listed: BTreeSet<String> = below.into_iter().collect();
        let inside = |other: &Path| other.parent() == Some(path);
        let name_of = |other: &Path| other.file_name().map(|it| it.to_string_lossy().into_owned());
        let directories = names.directories.iter().filter(|it| inside(it));
        listed.extend(directories.filter_map(|it| name_of(it)));
        for (other, file) in names.files.iter().filter(|(other, _)| inside(other)) {
            match (name_of(other), file) {
                (Some(name), Some(_)) => drop(listed.insert(name)),
                (Some(name), None) => drop(listed.remove(&name)),
                (None, _) => {}
            }
        }
        Ok(listed.into_iter().collect())
    }

    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.find(path)?.ok_or_else(not_found)?;
        self.set(path, None);
        Ok(())
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.find(from)?.ok_or_else(not_found)?;
        self.set(to, Some(file));
        if from != to {
            self.set(from, None);
        }
        Ok(())
    }

    /// Whether the layer knows if there is such a name.
    pub(crate) fn knows(&self, path: &Path) -> Option<bool> {
        let names = lock(&self.names);
        let is_directory = names.directories.contains(path).then_some(true);
        is_directory.or_else(|| names.files.get(path).map(Option::is_some))
    }
}

impl ShadowFile {
    /// Reads up to the end of the file; returns how many bytes. Parks.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (length, below_length) = {
            let content = lock(&self.content);
            (content.length, content.below_length)
        };
        let read = length.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..read];
        let from_below = below_length.saturating_sub(offset).min(read as u64) as usize;
        let (lower, rest) = buffer.split_at_mut(from_below);
        if let Some(file) = self.below.as_ref().filter(|_| from_below > 0) {
            file.read_at(lower, offset)?;
        }
        rest.fill(0);
        let content = lock(&self.content);
        let end = offset + read as u64;
        let touched = offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
        for (&block, bytes) in content.blocks.range(touched) {
            let start = (block * BLOCK_BYTES).max(offset);
            let stop = ((block + 1) * BLOCK_BYTES).min(end);
            let target = &mut buffer[(start - offset) as usize..(stop - offset) as usize];
            match bytes {
                Some(bytes) => {
                    let within = (start - block * BLOCK_BYTES) as usize;
                    target.copy_from_slice(&bytes[within..within + target.len()]);
                }
                None => target.fill(0),
            }
        }
        Ok(read)
    }

    /// Writes all bytes. Parks.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let within = (at % BLOCK_BYTES) as usize;
            let length = (BLOCK_BYTES as usize - within).min(bytes.len() - done);
            let block = at / BLOCK_BYTES;
            let mut changed = vec![0; BLOCK_BYTES as usize].into_boxed_slice();
            if length < BLOCK_BYTES as usize {
                self.read_at(&mut changed, block * BLOCK_BYTES)?;
            }
            changed[within..within + length].copy_from_slice(&bytes[done..done + length]);
            let mut content = lock(&self.content);
            content.blocks.insert(block, Some(changed));
            content.length = content.length.max(at + length as u64);
            done += length;
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        lock(&self.content).length
    }

    /// Cuts off or extends with zeroes. Parks.
    pub(crate) fn set_len(&self, length: u64) -> io::Result<()> {
        let within = length % BLOCK_BYTES;
        if within > 0 && length < self.len() {
            // What a later growth shows of the last block must be zero.
            self.write_at(&vec![0; (BLOCK_BYTES - within) as usize], length)?;
        }
        let mut content = lock(&self.content);
        content.length = length;
        content.below_length = content.below_length.min(length);
        content.blocks.retain(|&block, _| block * BLOCK_BYTES < length);
        Ok(())
    }

    /// Extends over a range that has no content yet.
    pub(crate) fn allocate_zeroed(&self, offset: u64, length: u64) {
        let mut content = lock(&self.content);
        content.length = content.length.max(offset + length);
    }

    /// Makes a range zero. Parks.
    pub(crate) fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        let end = (offset + length).min(self.len());
        let mut at = offset;
        while at < end {
            let stop = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
            if at.is_multiple_of(BLOCK_BYTES) && stop <= end {
                lock(&self.content).blocks.insert(at / BLOCK_BYTES, None);
            } else {
                self.write_at(&vec![0; (stop.min(end) - at) as usize], at)?;
            }
            at = stop;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{SimConfig, Simulation};
    use base::Random;

    /// One random operation on a file; the same on the layer and on a plain file.
    fn change(file: &File, random: &mut Random) -> io::Result<()> {
        let at = random.below(40_000);
        let length = random.below(12_000);
        match random.below(6) {
            0 => file.set_len(random.below(50_000)),
            1 => file.punch_hole(at, length),
            2 => file.allocate_zeroed(file.len()?, length),
            _ => {
                let mut bytes = vec![0; length as usize];
                random.fill(&mut bytes);
                file.write_at(&bytes, at)
            }
        }
    }

    fn content(path: &str) -> Vec<u8> {
        crate::fs::read(path).expect("it is there")
    }

    #[test]
    fn the_layer_behaves_as_the_disk_would_and_leaves_it_alone() {
        for seed in 0..200 {
            let mut simulation = Simulation::new(SimConfig::new(seed));
            let ended = simulation.run(move || {
                for directory in ["a", "b"] {
                    crate::fs::create_dir_all(directory).expect("created");
                    let create = OpenOptions::new().create(true);
                    let file = create.open(format!("{directory}/file")).expect("created");
                    let mut random = Random::new(seed);
                    (0..5).for_each(|_| change(&file, &mut random).expect("no faults"));
                }
                let before = content("a/file");
                let covered = cover("a");
                for directory in ["a", "b"] {
                    let mut random = Random::new(seed + 1);
                    let file = OpenOptions::new().open(format!("{directory}/file")).expect("there");
                    for _ in 0..20 {
                        change(&file, &mut random).expect("no faults");
                    }
                    file.sync_data().expect("no faults");
                }
                assert_eq!(content("a/file"), content("b/file"), "seed {seed}");
                drop(covered);
                assert_eq!(content("a/file"), before, "seed {seed}");
            });
            ended.expect("no crash");
        }
    }

    #[test]
    fn names_change_in_the_layer_only() {
        let mut simulation = Simulation::new(SimConfig::new(1));
        let ended = simulation.run(|| {
            crate::fs::create_dir_all("d/e").expect("created");
            let create = OpenOptions::new().create(true);
            for name in ["d/one", "d/two"] {
                let file = create.open(name).expect("created");
                file.write_at(name.as_bytes(), 0).expect("written");
            }
            let covered = cover("d");
            let names = || crate::fs::read_dir("d").expect("listed");
            crate::fs::rename("d/one", "d/three").expect("renamed");
            crate::fs::remove_file("d/two").expect("removed");
            crate::fs::create_dir_all("d/f/g").expect("created");
            drop(create.open("d/f/new").expect("created"));
            crate::fs::sync_dir("d").expect("nothing to do");
            assert_eq!(names(), ["e", "f", "three"]);
            assert_eq!(crate::fs::read_dir("d/f").expect("listed"), ["g", "new"]);
            assert_eq!(content("d/three"), b"d/one");
            assert!(OpenOptions::new().open("d/two").is_err());
            assert!(!crate::fs::exists("d/one").expect("known"));
            assert!(crate::fs::exists("d/f/g").expect("known"));
            assert!(crate::fs::remove_file("d/two").is_err());
            assert!(OpenOptions::new().create_new(true).open("d/three").is_err());
            drop(create.open("d/one").expect("created anew"));
            assert_eq!(content("d/one"), b"");
            assert_eq!(covered.bytes(), 0, "nothing was written");
            drop(covered);
            assert_eq!(names(), ["e", "one", "two"]);
            assert_eq!(content("d/one"), b"d/one");
        });
        ended.expect("no crash");
    }
}
