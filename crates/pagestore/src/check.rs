//! Offline verification of a data directory, for `gannet check`: every copy of the superblock,
//! every segment header and trailer, every directory and footer, every blob, every dictionary.
//!
//! Nothing is written. What recovery would tolerate (one of two copies damaged, a footer that can
//! be rebuilt) is reported here all the same. Unfinished groups behind what is known to be
//! durable are no finding; a superblock that a power failure cut off is a note.

use crate::blob::{self, BlobHeader};
use crate::delta;
use crate::dictionary_file::{self, DictionaryName};
use crate::error::StoreError;
use crate::files::DataFiles;
use crate::header::{CLASS_MAX, class_bytes};
use crate::location::Place;
use crate::mapping::{Survey, open_files, survey};
use crate::options::{PageCheck, StoreOptions};
use crate::scan::{NoGroup, ScannedGroup, Scanner, verify_entry};
use crate::segment::{BLOCK_BYTES, COPY_BYTES, COPY_OFFSETS, Found};
use crate::superblock::{self, CopyState, SUPERBLOCK_FILE, Superblock};
use base::{Lsn, PageId};
use codec::{CodecId, Dictionary};
use runtime::file::AlignedBuf;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Kinds of checked regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegionKind {
    /// A copy of the superblock.
    Superblock,
    /// A copy of a segment's header or trailer.
    SegmentHeader,
    /// Header and directory of a group, or a segment's footer.
    GroupDirectory,
    /// A page's newest full copy, or its delta.
    Blob,
    /// A copy of a compression dictionary.
    Dictionary,
}

impl fmt::Display for RegionKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RegionKind::Superblock => "superblock",
            RegionKind::SegmentHeader => "segment_header",
            RegionKind::GroupDirectory => "group_directory",
            RegionKind::Blob => "blob",
            RegionKind::Dictionary => "dictionary",
        })
    }
}

/// Bytes in use that a checksum covers, without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What stands there.
    pub kind: RegionKind,
    /// File name within the data directory.
    pub file: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// Something damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// File name within the data directory.
    pub file: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at offset {}: {}", self.file, self.offset, self.detail)
    }
}

/// What a check has seen.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Damage, in the order of files and offsets.
    pub findings: Vec<Finding>,
    /// What a power failure may leave and the next start sets right.
    pub notes: Vec<Finding>,
    /// Everything in use that was verified.
    pub regions: Vec<Region>,
    /// Pages with a copy on disk.
    pub pages: u64,
    /// Blobs verified, dead ones included.
    pub blobs: u64,
    /// The highest page LSN met: the log was durable up to there.
    pub max_page_lsn: Lsn,
}

/// Verifies the data directory of a store that is not running. `page_check` is applied to the
/// newest copy of every page. Errors are those of the file system; damage is in the report. Parks.
pub fn check(dir: &Path, page_check: Option<PageCheck>) -> Result<CheckReport, StoreError> {
    let mut report = CheckReport::default();
    let Some(superblock) = check_superblock(dir, &mut report)? else { return Ok(report) };
    let options = StoreOptions { page_check, ..StoreOptions::new(dir) };
    let files = open_files(&options, &superblock)?;
    let dictionaries = check_dictionaries(dir, &superblock, &mut report)?;
    let surveyed = match survey(&files, &superblock, options.max_pages) {
        Ok(surveyed) => surveyed,
        Err(StoreError::Damaged { file, offset, detail }) => {
            report.findings.push(Finding { file, offset, detail });
            return Ok(report);
        }
        Err(other) => return Err(other),
    };
    report.max_page_lsn = surveyed.max_page_lsn;
    let mut checker = Checker {
        files: &files,
        survey: &surveyed,
        dictionaries,
        page_check,
        report,
        page: Vec::new(),
    };
    checker.page.resize(class_bytes(CLASS_MAX), 0);
    checker.run()?;
    Ok(checker.report)
}

/// Checks the copies of the superblock and returns the one that counts.
fn check_superblock(
    dir: &Path,
    report: &mut CheckReport,
) -> Result<Option<Superblock>, StoreError> {
    let Some(copies) = superblock::read_copies(dir)? else { return Ok(None) };
    let is_torn = |slot: &[CopyState]| slot.contains(&CopyState::Torn);
    let both_torn = copies.chunks_exact(superblock::COPIES_A_SLOT).all(is_torn);
    for (number, copy) in copies.iter().enumerate() {
        let offset = (number * superblock::COPY_BYTES) as u64;
        let file = SUPERBLOCK_FILE.to_owned();
        match copy {
            CopyState::Empty => {}
            CopyState::Torn => {
                let detail = "a copy of the superblock is of a write that was cut off".to_owned();
                let found = if both_torn { &mut report.findings } else { &mut report.notes };
                found.push(Finding { file, offset, detail });
            }
            CopyState::Damaged => {
                let detail = "a copy of the superblock is unreadable".to_owned();
                report.findings.push(Finding { file, offset, detail });
            }
            CopyState::Good(_) => {
                let length = superblock::COPY_BYTES as u64;
                let kind = RegionKind::Superblock;
                report.regions.push(Region { kind, file, offset, length });
            }
        }
    }
    match Superblock::load(dir) {
        Err(StoreError::Damaged { .. }) => Ok(None),
        other => other,
    }
}

/// Checks both copies of every dictionary; returns those that can be read.
fn check_dictionaries(
    dir: &Path,
    superblock: &Superblock,
    report: &mut CheckReport,
) -> Result<Dictionaries, StoreError> {
    let mut dictionaries = Dictionaries::new();
    for name in dictionary_file::list(dir)? {
        let file = name.to_string();
        let stored = dictionary_file::read(dir, superblock.uuid, name);
        let stored = stored.map_err(|error| StoreError::io(&file, &error))?;
        for (number, copy) in stored.copies.iter().enumerate() {
            let (offset, file) = ((number * stored.copy_bytes) as u64, file.clone());
            match copy {
                Ok(content) => {
                    let length = dictionary_file::covered_bytes(content.bytes.len()) as u64;
                    let kind = RegionKind::Dictionary;
                    report.regions.push(Region { kind, file, offset, length });
                }
                Err(detail) => {
                    let detail = (*detail).to_owned();
                    report.findings.push(Finding { file, offset, detail });
                }
            }
        }
        match stored.content().map(|content| Dictionary::new(&content.bytes)) {
            Ok(Some(dictionary)) => drop(dictionaries.insert(name, dictionary)),
            Ok(None) => {
                let detail = "its checksums agree, but it is no dictionary".to_owned();
                report.findings.push(Finding { file, offset: 0, detail });
            }
            Err(_) => {}
        }
        runtime::yield_if_due();
    }
    Ok(dictionaries)
}

/// Those that can be read.
type Dictionaries = BTreeMap<DictionaryName, Dictionary>;

/// The dictionary that a blob needs, if it needs one. `Err`: it is not there. If it is damaged,
/// that is found where it lies; if there is no file, the page may be of a tree that is gone, and
/// otherwise whoever reads the tree meets it.
fn dictionary_of<'a>(
    dictionaries: &'a Dictionaries,
    blob: &BlobHeader,
) -> Result<Option<&'a Dictionary>, NoDictionary> {
    match blob.dictionary {
        0 => Ok(None),
        number => {
            let name = DictionaryName { tree: blob.tree, number };
            dictionaries.get(&name).map(Some).ok_or(NoDictionary)
        }
    }
}

/// See [`dictionary_of`].
struct NoDictionary;

/// One run over the segments.
struct Checker<'a> {
    files: &'a DataFiles,
    survey: &'a Survey,
    dictionaries: Dictionaries,
    page_check: Option<PageCheck>,
    report: CheckReport,
    page: Vec<u8>,
}

impl Checker<'_> {
    fn find(&mut self, offset: u64, detail: impl Into<String>) {
        let (file, offset) = self.files.describe(offset);
        self.report.findings.push(Finding { file, offset, detail: detail.into() });
    }

    fn region(&mut self, kind: RegionKind, offset: u64, length: u64) {
        let (file, offset) = self.files.describe(offset);
        self.report.regions.push(Region { kind, file, offset, length });
    }

    fn run(&mut self) -> Result<(), StoreError> {
        let survey = self.survey;
        let mut scanner = Scanner::new(self.files);
        for (number, is_closed, groups) in survey.accepted() {
            self.check_blocks(&mut scanner, number, is_closed)?;
            for group in groups {
                self.check_group(&mut scanner, number, group)?;
                runtime::yield_if_due();
            }
        }
        for number in 0..survey.array.high_water() {
            let place = survey.array.entry(PageId::new(number)).place();
            self.report.pages += u64::from(place != Place::NONE);
        }
        Ok(())
    }

    /// Header, trailer and footer of a segment.
    fn check_blocks(
        &mut self,
        scanner: &mut Scanner<'_>,
        number: u32,
        is_closed: bool,
    ) -> Result<(), StoreError> {
        let start = u64::from(number) * self.files.segment_bytes();
        if let Found::Good(_, damaged) = scanner.header(number)? {
            self.copies(start, damaged, "segment header");
        }
        if !is_closed {
            return Ok(());
        }
        let end = start + self.files.segment_bytes() - BLOCK_BYTES as u64;
        let Found::Good(trailer, damaged) = scanner.trailer(number)? else { return Ok(()) };
        self.copies(end, damaged, "segment trailer");
        let footer = start + u64::from(trailer.footer_offset);
        match scanner.footer(number, &trailer) {
            Ok(_) if trailer.footer_bytes == 0 => {}
            Ok(_) => {
                let length = u64::from(trailer.footer_bytes);
                self.region(RegionKind::GroupDirectory, footer, length);
            }
            Err(NoGroup::Store(error)) => return Err(error),
            Err(NoGroup::Ends(detail)) => self.find(footer, detail),
        }
        Ok(())
    }

    fn copies(&mut self, block: u64, damaged: usize, what: &str) {
        if damaged > 0 {
            self.find(block, format!("a copy of the {what} is unreadable"));
        }
        for offset in COPY_OFFSETS {
            self.region(RegionKind::SegmentHeader, block + offset as u64, COPY_BYTES as u64);
        }
    }

    fn check_group(
        &mut self,
        scanner: &mut Scanner<'_>,
        number: u32,
        group: &ScannedGroup,
    ) -> Result<(), StoreError> {
        let position = group.offset - u64::from(number) * self.files.segment_bytes();
        let header = &group.header;
        match scanner.group(number, header.segment_seq, position, header.index) {
            Ok(found) if found.head == group.head => {
                let length = group.head.len() as u64;
                self.region(RegionKind::GroupDirectory, group.offset, length);
            }
            Ok(_) => self.find(group.offset, "a directory and the footer do not agree"),
            Err(NoGroup::Store(error)) => return Err(error),
            Err(NoGroup::Ends(detail)) => self.find(group.offset, detail),
        }
        let bytes = scanner.read_group(group)?;
        for entry in &group.entries {
            self.report.blobs += 1;
            let offset = group.offset + u64::from(entry.offset_bytes);
            if let Err(detail) = verify_entry(bytes, entry) {
                self.find(offset, format!("page {}: {detail}", entry.pid));
                continue;
            }
            let location = group.location_of(entry);
            let start = entry.offset_bytes as usize;
            let blob = &bytes[start..start + entry.length_bytes as usize];
            let array = &self.survey.array;
            if array.entry(entry.pid).place() == Place::on_disk(location) {
                self.check_page(blob, offset);
            } else if array.delta(entry.pid).location() == location {
                self.check_delta(blob, offset)?;
            }
        }
        Ok(())
    }

    /// The newest copy of a page: it must decompress to an intact page.
    fn check_page(&mut self, bytes: &[u8], offset: u64) {
        let Ok(blob) = blob::verify(bytes) else { return };
        probe_codec(blob.codec);
        let page = &mut self.page[..class_bytes(blob.class)];
        let outcome = dictionary_of(&self.dictionaries, &blob).map_or(Ok(()), |dictionary| {
            if dictionary.is_some() {
                base::probe!("pagestore.checked.dictionary");
            }
            blob::decode(&blob, bytes, dictionary, page)?;
            page_outcome(self.page_check, page)
        });
        self.note_blob(&blob, offset, outcome);
    }

    /// The delta of a page: with its full copy, it must give an intact page. If the full copy is
    /// damaged, that is found where it lies.
    fn check_delta(&mut self, bytes: &[u8], offset: u64) -> Result<(), StoreError> {
        let Ok(blob) = blob::verify(bytes) else { return Ok(()) };
        let place = self.survey.array.entry(blob.pid).place().location();
        let mut buffer = AlignedBuf::zeroed(0);
        let length = place.length_bytes() as usize;
        let start = self.files.read_range(&mut buffer, place.offset_bytes(), length)?;
        let full = &buffer[start..start + length];
        let page = &mut self.page[..class_bytes(place.class())];
        let base = blob::verify(full).ok().and_then(|base| {
            let dictionary = dictionary_of(&self.dictionaries, &base).ok()?;
            blob::decode(&base, full, dictionary, page).ok().map(|()| base.as_base())
        });
        let dictionary = dictionary_of(&self.dictionaries, &blob).ok();
        let outcome = base.zip(dictionary).map_or(Ok(()), |(base, dictionary)| {
            delta::apply(&blob, bytes, base, dictionary, page)?;
            page_outcome(self.page_check, page)
        });
        self.note_blob(&blob, offset, outcome);
        Ok(())
    }

    fn note_blob(&mut self, blob: &BlobHeader, offset: u64, outcome: Result<(), &'static str>) {
        if let Err(detail) = outcome {
            self.find(offset, format!("page {}: {detail}", blob.pid));
        }
        let length = (blob::BLOB_HEADER_BYTES + blob.payload_bytes as usize) as u64;
        self.region(RegionKind::Blob, offset, length);
    }
}

/// The owner's own rules for the body of a page.
fn page_outcome(check: Option<PageCheck>, page: &[u8]) -> Result<(), &'static str> {
    check.map_or(Ok(()), |check| check(page))
}

/// Which codecs the checks of simulations have met.
fn probe_codec(codec: CodecId) {
    match codec {
        CodecId::None => base::probe!("pagestore.checked.none"),
        CodecId::Lz4 => base::probe!("pagestore.checked.lz4"),
        CodecId::Zstd => base::probe!("pagestore.checked.zstd"),
        CodecId::Zlib => base::probe!("pagestore.checked.zlib"),
        CodecId::Lzo => base::probe!("pagestore.checked.lzo"),
        CodecId::Lzma => base::probe!("pagestore.checked.lzma"),
        CodecId::Bzip2 => base::probe!("pagestore.checked.bzip2"),
        CodecId::Snappy => base::probe!("pagestore.checked.snappy"),
    }
}
