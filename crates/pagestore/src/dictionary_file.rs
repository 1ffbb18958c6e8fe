//! Files of compression dictionaries: one dictionary in each, never changed.
//!
//! `dictionary.TTTTTTTTTT.NNNNN` is number N of tree T. Two equal copies, the second at half the
//! length of the file; each:
//!
//! ```text
//! offset size field
//!      0    8 magic "GANNDICT"
//!      8    4 CRC-32C of bytes 12 up to the end of the content
//!     12    2 format version (1)
//!     14    2 number
//!     16   16 UUID of the database
//!     32    4 tree
//!     36    4 length of the content
//!     40    1 how Zstandard searches when it writes pages with it (codec::Search; 0: by the level)
//!     41    1 which pages of the tree are written with LZ4 instead (training.rs, invariant 4)
//!     42   22 reserved (0)
//!     64      content: a dictionary as Zstandard's format has it; then zeroes up to 4 KiB
//! ```
//!
//! 1. A file is made under another name, synced, and then given its own: under its own name it is
//!    whole, whatever the power did. The directory is synced before anybody hears of it; a start
//!    does that again, for a process that was killed in between.
//! 2. Rot of one copy is served by the other. Without either, the pages that need the dictionary
//!    are corrupt, and nothing else is.

use crate::bytes::{put, u16_at, u32_at, u64_at, uuid_at};
use crate::error::StoreError;
use crate::files::{WriteError, is_full};
use crate::training::Lz4Pages;
use base::TreeId;
use base::checksum::crc32c;
use codec::Search;
use runtime::file::{AlignedBuf, OpenOptions};
use std::fmt;
use std::path::Path;

/// A dictionary takes at most so many bytes.
pub(crate) const CONTENT_BYTES_MAX: usize = 64 << 10;
/// How the files' names begin.
const FILE_PREFIX: &str = "dictionary.";
/// One that is being made.
const UNFINISHED: &str = "dictionary.new";
const MAGIC: u64 = u64::from_le_bytes(*b"GANNDICT");
const FORMAT_VERSION: u16 = 1;
const HEADER_BYTES: usize = 64;
const BLOCK_BYTES: usize = 4096;
/// Copies in a file.
pub(crate) const COPIES: usize = 2;

/// What a dictionary is called: pages of a tree name only those of that tree, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DictionaryName {
    pub(crate) tree: TreeId,
    /// From 1.
    pub(crate) number: u16,
}

impl fmt::Display for DictionaryName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{FILE_PREFIX}{:010}.{:05}", self.tree.get(), self.number)
    }
}

impl DictionaryName {
    /// The name in a file's name.
    fn parse(file: &str) -> Option<DictionaryName> {
        let (tree, number) = file.strip_prefix(FILE_PREFIX)?.split_once('.')?;
        let name =
            DictionaryName { tree: TreeId::new(tree.parse().ok()?), number: number.parse().ok()? };
        (name.number > 0 && name.to_string() == file).then_some(name)
    }
}

/// A dictionary, how pages are searched that are written with it, and which are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) search: Search,
    pub(crate) lz4_pages: Lz4Pages,
}

/// What stands in a file.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Bytes of a copy, padding included.
    pub(crate) copy_bytes: usize,
    /// Each copy, or what is wrong with it.
    pub(crate) copies: [Result<Content, &'static str>; COPIES],
}

impl Stored {
    /// The content, from whichever copy has it.
    pub(crate) fn content(self) -> Result<Content, &'static str> {
        let [first, second] = self.copies;
        first.or(second)
    }
}

/// Bytes in a file that holds a dictionary of so many.
pub(crate) fn file_bytes(content_bytes: usize) -> usize {
    COPIES * (HEADER_BYTES + content_bytes).next_multiple_of(BLOCK_BYTES)
}

/// Bytes that a copy's checksum vouches for, magic and checksum included.
pub(crate) fn covered_bytes(content_bytes: usize) -> usize {
    HEADER_BYTES + content_bytes
}

/// Writes a copy to the start of `out`, but for the zeroes behind it.
pub(crate) fn encode(uuid: [u8; 16], name: DictionaryName, content: &Content, out: &mut [u8]) {
    put(out, 0, &MAGIC.to_le_bytes());
    put(out, 12, &FORMAT_VERSION.to_le_bytes());
    put(out, 14, &name.number.to_le_bytes());
    put(out, 16, &uuid);
    put(out, 32, &name.tree.get().to_le_bytes());
    put(out, 36, &(content.bytes.len() as u32).to_le_bytes());
    put(out, 40, &[content.search.number(), content.lz4_pages.number()]);
    put(out, HEADER_BYTES, &content.bytes);
    let crc = crc32c(&out[12..HEADER_BYTES + content.bytes.len()]);
    put(out, 8, &crc.to_le_bytes());
}

/// The content of a copy.
pub(crate) fn decode(
    uuid: [u8; 16],
    name: DictionaryName,
    copy: &[u8],
) -> Result<Content, &'static str> {
    if copy.len() < HEADER_BYTES {
        return Err("a copy of the dictionary is cut off");
    }
    if u64_at(copy, 0) != MAGIC {
        return Err("a copy of the dictionary is unreadable");
    }
    let end = HEADER_BYTES + (u32_at(copy, 36) as usize).min(copy.len());
    let covered = copy.get(12..end).ok_or("a copy of the dictionary is cut off")?;
    if crc32c(covered) != u32_at(copy, 8) {
        return Err("the checksum of a copy of the dictionary does not agree");
    }
    if u16_at(copy, 12) != FORMAT_VERSION {
        return Err("a dictionary of a format that this version does not know");
    }
    let is_meant = u16_at(copy, 14) == name.number && u32_at(copy, 32) == name.tree.get();
    if uuid_at(copy, 16) != uuid || !is_meant {
        return Err("a dictionary of another database or tree");
    }
    let bytes = copy[HEADER_BYTES..end].to_vec();
    let lz4_pages = Lz4Pages::from_number(copy[41]);
    Ok(Content { bytes, search: Search::from_number(copy[40]), lz4_pages })
}

/// The dictionaries whose files are there, in order. Parks.
pub(crate) fn list(dir: &Path) -> Result<Vec<DictionaryName>, StoreError> {
    let names = runtime::fs::read_dir(dir)
        .map_err(|error| StoreError::io(&dir.display().to_string(), &error))?;
    let mut names: Vec<_> = names.iter().filter_map(|name| DictionaryName::parse(name)).collect();
    names.sort_unstable();
    Ok(names)
}

/// Length of a file in bytes. Parks.
pub(crate) fn length(dir: &Path, name: DictionaryName) -> Result<u64, StoreError> {
    let file = OpenOptions::new().direct(true).open(dir.join(name.to_string()));
    let length = file.and_then(|file| file.len());
    length.map_err(|error| StoreError::io(&name.to_string(), &error))
}

/// Removes what a process that died has left unfinished. Parks.
pub(crate) fn remove_unfinished(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(UNFINISHED);
    let removed = runtime::fs::exists(&path).and_then(|is_there| match is_there {
        true => runtime::fs::remove_file(&path),
        false => Ok(()),
    });
    removed.map_err(|error| StoreError::io(UNFINISHED, &error))
}

/// Reads a file whole. Parks.
pub(crate) fn read(
    dir: &Path,
    uuid: [u8; 16],
    name: DictionaryName,
) -> Result<Stored, std::io::Error> {
    let file = OpenOptions::new().direct(true).open(dir.join(name.to_string()))?;
    let length = file.len()?.min(file_bytes(CONTENT_BYTES_MAX) as u64) as usize;
    let mut bytes = AlignedBuf::zeroed(length.next_multiple_of(COPIES * BLOCK_BYTES));
    file.read_up_to(&mut bytes, 0)?;
    let copy_bytes = bytes.len() / COPIES;
    let copies = [0, copy_bytes].map(|start| decode(uuid, name, &bytes[start..start + copy_bytes]));
    Ok(Stored { copy_bytes, copies })
}

/// Makes the file of a dictionary; it is durable then (invariant 1). Parks.
pub(crate) fn write(
    dir: &Path,
    uuid: [u8; 16],
    name: DictionaryName,
    content: &Content,
) -> Result<(), WriteError> {
    let length = file_bytes(content.bytes.len());
    let mut bytes = AlignedBuf::zeroed(length);
    let (first, second) = bytes.split_at_mut(length / COPIES);
    encode(uuid, name, content, first);
    second.copy_from_slice(first);
    let path = dir.join(UNFINISHED);
    let written = remove_unfinished(dir)
        .map_err(|error| std::io::Error::other(error.to_string()))
        .and_then(|()| OpenOptions::new().create(true).direct(true).open(&path))
        .and_then(|file| {
            file.write_at(&bytes, 0)?;
            if base::mutant!("dictionary_unsynced") { Ok(()) } else { file.sync_data() }
        })
        .and_then(|()| runtime::fs::rename(&path, dir.join(name.to_string())))
        .and_then(|()| match base::mutant!("dictionary_name_unsynced") {
            true => Ok(()),
            false => runtime::fs::sync_dir(dir),
        });
    written.map_err(|error| match is_full(&error) {
        true => WriteError::Full,
        false => WriteError::Failed(format!("{name}: {error}")),
    })
}

/// Removes the file of a dictionary that nobody needs; if that is not durable, a start finds it
/// again. Parks.
pub(crate) fn remove(dir: &Path, name: DictionaryName) -> std::io::Result<()> {
    runtime::fs::remove_file(dir.join(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{CrashKind, SimConfig, Simulation};

    const UUID: [u8; 16] = [7; 16];

    fn name(tree: u32, number: u16) -> DictionaryName {
        DictionaryName { tree: TreeId::new(tree), number }
    }

    #[test]
    fn names_of_files_say_tree_and_number() {
        assert_eq!(name(17, 3).to_string(), "dictionary.0000000017.00003");
        for one in [name(17, 3), name(u32::MAX, u16::MAX), name(1, 1)] {
            assert_eq!(DictionaryName::parse(&one.to_string()), Some(one));
        }
        let others =
            ["dictionary.new", "dictionary.17.3", "dictionary.0000000017.00000", "pages.0"];
        assert!(others.iter().all(|other| DictionaryName::parse(other).is_none()));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let content: Vec<u8> = (0..1000u32).map(|number| (number * number) as u8).collect();
        let content = Content {
            bytes: content,
            search: Search::from_number(17),
            lz4_pages: Lz4Pages::Rewritten,
        };
        let mut bytes = vec![0; file_bytes(content.bytes.len()) / COPIES];
        encode(UUID, name(9, 2), &content, &mut bytes);
        assert_eq!(decode(UUID, name(9, 2), &bytes), Ok(content.clone()));
        for other in [name(9, 1), name(8, 2)] {
            assert!(decode(UUID, other, &bytes).is_err());
        }
        assert!(decode([8; 16], name(9, 2), &bytes).is_err());
        assert!(decode(UUID, name(9, 2), &bytes[..900]).is_err(), "cut off");
        for place in 0..covered_bytes(content.bytes.len()) {
            for bit in 0..8 {
                bytes[place] ^= 1 << bit;
                assert!(decode(UUID, name(9, 2), &bytes).is_err(), "byte {place} bit {bit}");
                bytes[place] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn a_file_is_whole_or_not_there_whenever_the_power_fails() {
        let (mut whole, mut absent) = (0, 0);
        for step in 1..60 {
            let config = SimConfig { crash_at_step: Some(step), ..SimConfig::new(step) };
            let mut simulation = Simulation::new(config);
            let content = Content {
                bytes: vec![step as u8; 5000],
                search: Search::ByLevel,
                lz4_pages: Lz4Pages::None,
            };
            let expected = content.clone();
            let acknowledged = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let (told, dir) = (acknowledged.clone(), Path::new("/data"));
            let _ = simulation.run(move || {
                runtime::fs::create_dir_all(dir).expect("no faults");
                runtime::fs::sync_dir("/").expect("no faults");
                write(dir, UUID, name(20, 1), &content).expect("no faults");
                told.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            let kind = if step % 3 == 0 { CrashKind::Process } else { CrashKind::Power };
            let disk = simulation.crash(kind);
            let mut simulation = Simulation::with_disk(SimConfig::new(step), disk);
            let found = simulation.run(move || {
                if !runtime::fs::exists(dir).expect("no faults") {
                    return None;
                }
                remove_unfinished(dir).expect("no faults");
                let names = list(dir).expect("no faults");
                names.first().map(|&name| read(dir, UUID, name).expect("no faults").copies)
            });
            match found.expect("no crash") {
                Some(copies) => {
                    assert_eq!(copies, [Ok(expected.clone()), Ok(expected)], "step {step}");
                    whole += 1;
                }
                None => {
                    let told = acknowledged.load(std::sync::atomic::Ordering::Relaxed);
                    assert!(!told, "step {step}: a file that was durable is gone");
                    absent += 1;
                }
            }
        }
        assert!(whole > 5 && absent > 5, "{whole} whole, {absent} not there");
    }
}
