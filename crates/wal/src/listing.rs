//! What is in the directory of a log: names, sequences, headers.

use crate::format::{FileHeader, is_former_format};
use crate::sector::{self, SECTOR_BYTES};
use runtime::file::{AlignedBuf, DIRECT_ALIGNMENT, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a log file for direct reading and writing.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().direct(true).open(path)
}

pub(crate) fn log_name(sequence: u64) -> String {
    format!("wal-{sequence:010}.log")
}

fn parse_name(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.strip_suffix(".log")?.parse().ok()
}

/// A file with a `wal-` name.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    /// The sequence in its name.
    pub(crate) sequence: u64,
    pub(crate) len: u64,
    /// Its header if it is part of the log (invariant 1).
    pub(crate) header: Option<FileHeader>,
    /// Whether the sector of the header is neither empty nor as anybody has written it.
    pub(crate) header_damaged: bool,
}

/// What is in the directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By sequence.
    pub(crate) logs: Vec<LogFile>,
    pub(crate) spares: Vec<(PathBuf, u64)>,
    pub(crate) unfinished: Vec<PathBuf>,
    /// Above every number in the name of a spare.
    pub(crate) next_spare: u64,
}

/// Reads names and headers of all log files in `dir`.
pub(crate) fn list(dir: &Path, database_uuid: &[u8; 16]) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for name in runtime::fs::read_dir(dir)? {
        let path = dir.join(&name);
        if let Some(sequence) = parse_name(&name, "wal-") {
            match inspect(path, sequence, database_uuid) {
                Ok(file) => listing.logs.push(file),
                // Renamed between listing and opening, by a log that is in use already.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        } else if let Some(number) = parse_name(&name, "spare-") {
            listing.next_spare = listing.next_spare.max(number + 1);
            match open_file(&path) {
                Ok(file) => listing.spares.push((path, usable_len(&file)?)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        } else if parse_name(&name, "new-").is_some() {
            listing.unfinished.push(path);
        }
    }
    listing.logs.sort_by_key(|file| file.sequence);
    Ok(listing)
}

/// The length of a file without what stands behind its last multiple of [`DIRECT_ALIGNMENT`]: files
/// are made so, and one that was cut off or written behind its end by mistake is read all the same.
fn usable_len(file: &File) -> io::Result<u64> {
    let len = file.len()?;
    Ok(len - len % DIRECT_ALIGNMENT as u64)
}

fn inspect(path: PathBuf, sequence: u64, database_uuid: &[u8; 16]) -> io::Result<LogFile> {
    let file = open_file(&path)?;
    let len = usable_len(&file)?;
    let mut block = AlignedBuf::zeroed(len.min(DIRECT_ALIGNMENT as u64) as usize);
    file.read_at(&mut block, 0)?;
    if is_former_format(&block) {
        let told = "this log has format 1; this version reads format 2";
        return Err(io::Error::new(io::ErrorKind::InvalidData, told));
    }
    let header = FileHeader::decode(&block, database_uuid);
    let header = header.filter(|header| header.sequence == sequence);
    let header_damaged = block.get(..SECTOR_BYTES).is_some_and(sector::is_damaged);
    Ok(LogFile { path, sequence, len, header, header_damaged })
}
