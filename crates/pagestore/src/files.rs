//! The data files: one address space of segments, cut into files.
//!
//! Segment n is in file `pages.NNNNNN` with number n / segments_per_file. Files are sparse: space
//! is taken when a group is written and returned by punching holes and cutting off the tail.

use crate::error::StoreError;
use runtime::file::{AlignedBuf, DIRECT_ALIGNMENT, File, OpenOptions};
use runtime::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};

/// How a data file's name begins.
pub(crate) const FILE_PREFIX: &str = "pages.";
/// The system's number for "no space left on device".
const ENOSPC: i32 = 28;
/// The system's number for "disk quota exceeded".
const EDQUOT: i32 = 122;

/// Why a write did not succeed.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The disk is full: the same write may be tried again later.
    Full,
    /// Anything else: fatal.
    Failed(String),
}

/// The data files of a store.
#[derive(Debug)]
pub(crate) struct DataFiles {
    dir: PathBuf,
    segment_bytes: u64,
    segments_per_file: u32,
    files: Mutex<Vec<Option<File>>>,
}

/// Name of the file with this number.
pub(crate) fn file_name(number: usize) -> String {
    format!("{FILE_PREFIX}{number:06}")
}

fn write_error(number: usize, within: u64, error: &io::Error) -> WriteError {
    match is_full(error) {
        true => WriteError::Full,
        false => WriteError::Failed(format!("{} at {within}: {error}", file_name(number))),
    }
}

/// Whether a write found no space.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(ENOSPC | EDQUOT))
}

fn file_number(name: &str) -> Option<usize> {
    name.strip_prefix(FILE_PREFIX)?.parse().ok()
}

impl DataFiles {
    /// Opens the files that are there. Parks.
    pub(crate) fn open(
        dir: &Path,
        segment_bytes: u64,
        segments_per_file: u32,
    ) -> Result<DataFiles, StoreError> {
        let names = runtime::fs::read_dir(dir)
            .map_err(|error| StoreError::io(&dir.display().to_string(), &error))?;
        let mut files: Vec<Option<File>> = Vec::new();
        for number in names.iter().filter_map(|name| file_number(name)) {
            if number >= files.len() {
                files.resize(number + 1, None);
            }
            let name = file_name(number);
            let file = OpenOptions::new().direct(true).open(dir.join(&name));
            files[number] = Some(file.map_err(|error| StoreError::io(&name, &error))?);
        }
        let files = Mutex::new(files);
        Ok(DataFiles { dir: dir.to_owned(), segment_bytes, segments_per_file, files })
    }

    /// Size of a segment in bytes.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// File number and offset of an offset in the segment space.
    fn split(&self, offset: u64) -> (usize, u64) {
        let file_bytes = self.segment_bytes * u64::from(self.segments_per_file);
        ((offset / file_bytes) as usize, offset % file_bytes)
    }

    /// File name and offset of an offset in the segment space, for messages.
    pub(crate) fn describe(&self, offset: u64) -> (String, u64) {
        let (number, within) = self.split(offset);
        (file_name(number), within)
    }

    fn file(&self, number: usize) -> Option<File> {
        self.files.lock().get(number).cloned().flatten()
    }

    fn file_or_create(&self, number: usize) -> io::Result<File> {
        if let Some(file) = self.file(number) {
            return Ok(file);
        }
        let path = self.dir.join(file_name(number));
        let file = OpenOptions::new().create(true).direct(true).open(path)?;
        runtime::fs::sync_dir(&self.dir)?;
        let mut files = self.files.lock();
        if number >= files.len() {
            files.resize(number + 1, None);
        }
        Ok(files[number].get_or_insert(file).clone())
    }

    /// How many segments the files reach over.
    pub(crate) fn segment_count(&self) -> Result<u32, StoreError> {
        let files: Vec<Option<File>> = self.files.lock().clone();
        for (number, file) in files.iter().enumerate().rev() {
            let Some(file) = file else { continue };
            let length = file.len().map_err(|error| StoreError::io(&file_name(number), &error))?;
            if length > 0 {
                let before = number as u64 * u64::from(self.segments_per_file);
                return Ok((before + length.div_ceil(self.segment_bytes)) as u32);
            }
        }
        Ok(0)
    }

    /// Reads from the segment space; what lies beyond a file's end reads as zeroes. Offset and
    /// length are multiples of 4 KiB and stay within one segment. Parks.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), StoreError> {
        let (number, within) = self.split(offset);
        let Some(file) = self.file(number) else {
            buffer.fill(0);
            return Ok(());
        };
        let length = file
            .read_up_to(buffer, within)
            .map_err(|error| StoreError::io(&file_name(number), &error))?;
        buffer[length..].fill(0);
        Ok(())
    }

    /// Reads any range of bytes of one segment: into `buffer`, enlarged to whole blocks. Returns
    /// where in the buffer the range starts. Parks.
    pub(crate) fn read_range(
        &self,
        buffer: &mut AlignedBuf,
        offset: u64,
        length: usize,
    ) -> Result<usize, StoreError> {
        let start = offset - offset % DIRECT_ALIGNMENT as u64;
        let end = (offset + length as u64).next_multiple_of(DIRECT_ALIGNMENT as u64);
        buffer.resize_unspecified((end - start) as usize);
        self.read(buffer, start)?;
        Ok((offset - start) as usize)
    }

    /// Writes whole blocks, with a sync if asked. Parks.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64, sync: bool) -> Result<(), WriteError> {
        let (number, within) = self.split(offset);
        let outcome = self.file_or_create(number).and_then(|file| {
            if sync { file.write_and_sync(bytes, within) } else { file.write_at(bytes, within) }
        });
        outcome.map_err(|error| write_error(number, within, &error))
    }

    /// Allocates space without changing what is there. Parks.
    pub(crate) fn allocate(&self, offset: u64, length: u64) -> Result<(), WriteError> {
        let (number, within) = self.split(offset);
        let outcome = self.file_or_create(number).and_then(|file| file.allocate(within, length));
        outcome.map_err(|error| write_error(number, within, &error))
    }

    /// Syncs every file. Parks.
    pub(crate) fn sync(&self) -> Result<(), String> {
        let files: Vec<Option<File>> = self.files.lock().clone();
        for (number, file) in files.iter().enumerate() {
            if let Some(file) = file {
                file.sync_data().map_err(|error| format!("{}: {error}", file_name(number)))?;
            }
        }
        Ok(())
    }

    /// Gives space of one segment back to the file system. Failing costs only space. Parks.
    pub(crate) fn punch(&self, offset: u64, length: u64) -> io::Result<()> {
        let (number, within) = self.split(offset);
        match self.file(number) {
            Some(file) => file.punch_hole(within, length),
            None => Ok(()),
        }
    }

    /// Cuts the files off behind `segments` segments. Failing costs only space. Parks.
    pub(crate) fn truncate(&self, segments: u32) -> io::Result<()> {
        let (last, keep) = self.split(u64::from(segments) * self.segment_bytes);
        let files: Vec<Option<File>> = self.files.lock().clone();
        for (number, file) in files.iter().enumerate().skip(last) {
            let Some(file) = file else { continue };
            let wanted = if number == last { keep } else { 0 };
            if file.len()? > wanted {
                file.set_len(wanted)?;
            }
        }
        Ok(())
    }
}
