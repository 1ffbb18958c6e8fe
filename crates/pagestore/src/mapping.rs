//! Mapping recovery: which copy of each page is the newest, read from the segments.
//!
//! Group directories and their copies in the footers are the log of the translation array; no
//! other record of the mapping is ever written.
//!
//! 1. What counts is the newest full copy of each page and the newest delta that belongs to it:
//!    which they are is newest.rs's.
//! 2. The sync record that knows most (superblock, segment headers) says what must be there:
//!    closed segments not listed must have their footer, listed segments their durable groups.
//!    Anything of that missing is damage, reported with file and offset: skipping it would bring
//!    back old pages (amendments 3 and 5).
//! 3. Behind that, groups count while they are intact blob by blob; the first one that is not
//!    ends its segment. It was never synced, so the older copies of its pages are still there.
//! 4. What was accepted is made durable, and unfinished segments get a footer that lists exactly
//!    what was accepted, before anything new is written. A crash meanwhile repeats the same.

use crate::array::TranslationArray;
use crate::disk::encode_footer;
use crate::error::StoreError;
use crate::files::{DataFiles, WriteError};
use crate::location::Place;
use crate::options::StoreOptions;
use crate::scan::{NoGroup, ScannedGroup, Scanner};
use crate::segment::{BLOCK_BYTES, Found, SegmentHeader, SyncRecord};
use crate::segments::{SegmentState, SegmentTable, SegmentUse};
use crate::space::MAP_PAGES;
use crate::superblock::Superblock;
use base::{Lsn, PageId, probe};
use std::collections::BTreeSet;

/// What mapping recovery found; handed to [`crate::PageStore::open`].
pub struct Recovered {
    pub(crate) superblock: Superblock,
    pub(crate) files: DataFiles,
    pub(crate) array: TranslationArray,
    pub(crate) table: SegmentTable,
    pub(crate) torn_groups: u64,
    max_page_lsn: Lsn,
    page_count: u64,
}

impl std::fmt::Debug for Recovered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Recovered({} pages, LSN {})", self.page_count, self.max_page_lsn)
    }
}

impl Recovered {
    /// The highest page LSN on disk: the log was durable up to there, so a log that ends below
    /// it is damaged (amendment 2).
    pub fn max_page_lsn(&self) -> Lsn {
        self.max_page_lsn
    }

    /// Pages with a copy on disk, unallocated ones included.
    pub fn page_count(&self) -> u64 {
        self.page_count
    }
}

/// A segment with the groups that count.
pub(crate) struct Accepted {
    pub(crate) header: SegmentHeader,
    pub(crate) groups: Vec<ScannedGroup>,
    /// It has no footer that lists exactly these groups.
    needs_footer: bool,
}

/// What a look at the segments of a store gives; nothing is written.
pub(crate) struct Survey {
    pub(crate) segments: Vec<Option<Accepted>>,
    /// Segments with a header that says that they are free: their space is allocated.
    free: BTreeSet<usize>,
    pub(crate) array: TranslationArray,
    pub(crate) torn_groups: u64,
    record: SyncRecord,
    pub(crate) max_page_lsn: Lsn,
    pub(crate) page_count: u64,
}

/// Rebuilds the translation array and segment table of the store whose superblock this is, and
/// makes what it found durable. The log must not be open for writing yet. Parks.
pub fn recover(options: &StoreOptions, superblock: &Superblock) -> Result<Recovered, StoreError> {
    let files = open_files(options, superblock)?;
    // A process that died between creating a file and syncing the directory left a name that
    // the next power failure would take away.
    runtime::fs::sync_dir(&options.dir)
        .map_err(|error| StoreError::io(&options.dir.display().to_string(), &error))?;
    let survey = survey(&files, superblock, options.max_pages)?;
    write_footers(&files, superblock, &survey)?;
    files.sync().map_err(StoreError::Poisoned)?;
    let table = build_table(&files, &survey);
    Ok(Recovered {
        superblock: superblock.clone(),
        files,
        table,
        torn_groups: survey.torn_groups,
        max_page_lsn: survey.max_page_lsn,
        page_count: survey.page_count,
        array: survey.array,
    })
}

/// Opens the data files with the geometry of the superblock.
pub(crate) fn open_files(
    options: &StoreOptions,
    superblock: &Superblock,
) -> Result<DataFiles, StoreError> {
    let bytes = superblock.segment_bytes;
    let plausible = bytes.is_multiple_of(BLOCK_BYTES as u64)
        && (64 << 10..=1 << 30).contains(&bytes)
        && superblock.segments_per_file > 0;
    if !plausible {
        let detail = format!("segments of {bytes} bytes, {} a file", superblock.segments_per_file);
        return Err(StoreError::Incompatible(detail));
    }
    DataFiles::open(&options.dir, bytes, superblock.segments_per_file)
}

pub(crate) fn damaged(files: &DataFiles, offset: u64, detail: &str) -> StoreError {
    let (file, offset) = files.describe(offset);
    StoreError::Damaged { file, offset, detail: detail.to_owned() }
}

/// Reads the segments and builds the mapping. Parks.
pub(crate) fn survey(
    files: &DataFiles,
    superblock: &Superblock,
    max_pages: u64,
) -> Result<Survey, StoreError> {
    let mut scanner = Scanner::new(files);
    let headers = read_headers(files, &mut scanner, superblock)?;
    let records = headers.iter().flatten().map(|header| header.sync.clone());
    let record = records.fold(superblock.sync.clone(), SyncRecord::newer);
    check_listed(files, &headers, &record)?;
    let mut survey = Survey {
        segments: Vec::with_capacity(headers.len()),
        free: BTreeSet::new(),
        array: TranslationArray::new(max_pages.next_multiple_of(MAP_PAGES))?,
        torn_groups: 0,
        record,
        max_page_lsn: Lsn::ZERO,
        page_count: 0,
    };
    for (number, header) in headers.into_iter().enumerate() {
        let accepted = match header {
            Some(header) if !header.is_free => {
                Some(survey.read_segment(files, &mut scanner, number as u32, header)?)
            }
            Some(_) => {
                survey.free.insert(number);
                None
            }
            None => None,
        };
        survey.segments.push(accepted);
    }
    survey.build_mapping(files)?;
    Ok(survey)
}

/// The header of every segment; `None` where there is none.
fn read_headers(
    files: &DataFiles,
    scanner: &mut Scanner<'_>,
    superblock: &Superblock,
) -> Result<Vec<Option<SegmentHeader>>, StoreError> {
    let count = files.segment_count()?;
    let mut headers = Vec::with_capacity(count as usize);
    for number in 0..count {
        let offset = u64::from(number) * files.segment_bytes();
        let header = match scanner.header(number)? {
            Found::Nothing => None,
            Found::Damaged => return Err(damaged(files, offset, "segment header is unreadable")),
            Found::Good(header, _) => Some(header),
        };
        if let Some(header) = &header
            && (header.uuid != superblock.uuid
                || header.number != number
                || header.segment_bytes != files.segment_bytes())
        {
            return Err(damaged(files, offset, "header of another segment or database"));
        }
        headers.push(header);
        runtime::yield_if_due();
    }
    Ok(headers)
}

/// Every listed segment with durable groups must be there.
fn check_listed(
    files: &DataFiles,
    headers: &[Option<SegmentHeader>],
    record: &SyncRecord,
) -> Result<(), StoreError> {
    for open in record.open.iter().filter(|open| open.groups > 0) {
        let header = headers.get(open.number as usize).and_then(Option::as_ref);
        if header.is_none_or(|header| header.seq != open.seq || header.is_free) {
            let offset = u64::from(open.number) * files.segment_bytes();
            return Err(damaged(files, offset, "a segment with durable groups is missing"));
        }
    }
    Ok(())
}

impl Survey {
    /// Segments in use: number, whether closed with a footer that counts, groups.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = (u32, bool, &[ScannedGroup])> {
        let segments = self.segments.iter().flatten();
        segments.map(|it| (it.header.number, !it.needs_footer, &it.groups[..]))
    }

    /// How many groups of a segment are known to be durable; `None`: all that its footer lists.
    fn durable_groups(&self, number: u32, seq: u64) -> Option<u32> {
        let mut listed = self.record.open.iter();
        match listed.find(|open| open.number == number && open.seq == seq) {
            Some(open) => Some(open.groups),
            None if seq >= self.record.next_segment_seq => Some(0),
            None => None,
        }
    }

    fn read_segment(
        &mut self,
        files: &DataFiles,
        scanner: &mut Scanner<'_>,
        number: u32,
        header: SegmentHeader,
    ) -> Result<Accepted, StoreError> {
        let (groups, needs_footer) = match self.durable_groups(number, header.seq) {
            None => (read_closed(files, scanner, number, header.seq)?, false),
            Some(durable) => (self.walk(files, scanner, number, header.seq, durable)?, true),
        };
        Ok(Accepted { header, groups, needs_footer })
    }

    /// Walks an unfinished segment: the first `durable` groups must be there, later ones count
    /// while they are intact.
    fn walk(
        &mut self,
        files: &DataFiles,
        scanner: &mut Scanner<'_>,
        number: u32,
        seq: u64,
        durable: u32,
    ) -> Result<Vec<ScannedGroup>, StoreError> {
        let mut groups = Vec::new();
        let mut position = BLOCK_BYTES as u64;
        let start = u64::from(number) * files.segment_bytes();
        loop {
            let index = groups.len() as u32;
            let found = scanner.group(number, seq, position, index);
            let found = match found {
                Ok(group) if index >= durable => scanner.verify_blobs(&group).map(|()| group),
                other => other,
            };
            match found {
                Ok(group) => {
                    position += u64::from(group.header.total_bytes);
                    groups.push(group);
                }
                Err(NoGroup::Store(error)) => return Err(error),
                Err(NoGroup::Ends(detail)) if index < durable => {
                    return Err(damaged(files, start + position, detail));
                }
                Err(NoGroup::Ends(detail)) => {
                    if detail != "no group header" && detail != "end of the segment" {
                        probe!("pagestore_torn_group");
                        self.torn_groups += 1;
                    }
                    return Ok(groups);
                }
            }
            runtime::yield_if_due();
        }
    }
}

/// The groups of a closed segment, from its footer; from the groups themselves if only the
/// footer's bytes are damaged.
fn read_closed(
    files: &DataFiles,
    scanner: &mut Scanner<'_>,
    number: u32,
    seq: u64,
) -> Result<Vec<ScannedGroup>, StoreError> {
    let start = u64::from(number) * files.segment_bytes();
    let end = start + files.segment_bytes() - BLOCK_BYTES as u64;
    let trailer = match scanner.trailer(number)? {
        Found::Good(trailer, _) if trailer.seq == seq && trailer.number == number => trailer,
        _ => return Err(damaged(files, end, "trailer of a closed segment is unreadable")),
    };
    match scanner.footer(number, &trailer) {
        Ok(groups) => return Ok(groups),
        Err(NoGroup::Store(error)) => return Err(error),
        Err(NoGroup::Ends(_)) => probe!("pagestore_footer_rebuilt"),
    }
    let mut position = BLOCK_BYTES as u64;
    let mut groups = Vec::new();
    for index in 0..trailer.group_count {
        let group = match scanner.group(number, seq, position, index) {
            Ok(group) => group,
            Err(NoGroup::Store(error)) => return Err(error),
            Err(NoGroup::Ends(detail)) => return Err(damaged(files, start + position, detail)),
        };
        position += u64::from(group.header.total_bytes);
        groups.push(group);
    }
    Ok(groups)
}

/// Rule 4: closes what the former run left open.
fn write_footers(
    files: &DataFiles,
    superblock: &Superblock,
    survey: &Survey,
) -> Result<(), StoreError> {
    for (number, accepted) in survey.segments.iter().enumerate() {
        let Some(accepted) = accepted.as_ref().filter(|accepted| accepted.needs_footer) else {
            continue;
        };
        let footer: Vec<u8> =
            accepted.groups.iter().flat_map(|group| &group.head).copied().collect();
        let (bytes, offset) = encode_footer(
            superblock.uuid,
            number as u32,
            accepted.header.seq,
            files.segment_bytes(),
            accepted.groups.len() as u32,
            &footer,
        );
        let start = number as u64 * files.segment_bytes();
        files.write(&bytes, start + offset, false).map_err(|error| match error {
            WriteError::Full => StoreError::DiskFull,
            WriteError::Failed(reason) => StoreError::Poisoned(reason),
        })?;
    }
    Ok(())
}

fn build_table(files: &DataFiles, survey: &Survey) -> SegmentTable {
    let states = survey.segments.iter().enumerate().map(|(number, accepted)| match accepted {
        Some(accepted) => {
            let groups = accepted.groups.iter();
            let written = groups.map(|group| u64::from(group.header.total_bytes)).sum::<u64>();
            let state = SegmentState::recovered(
                SegmentUse::Closed,
                accepted.header.seq,
                accepted.groups.len() as u32,
            );
            state.written(written, files.segment_bytes())
        }
        None => SegmentState::found_free(survey.free.contains(&number)),
    });
    let last_group = groups_of(survey).map(|group| group.header.group_seq).max().unwrap_or(0);
    let segment_bytes = files.segment_bytes();
    let mut table =
        SegmentTable::recovered(states.collect(), segment_bytes, &survey.record, last_group);
    for number in 0..survey.array.high_water() {
        let pid = PageId::new(number);
        let copies =
            [survey.array.entry(pid).place().location(), survey.array.delta(pid).location()];
        for copy in copies.into_iter().filter(|copy| !copy.is_none()) {
            table.born(copy);
        }
    }
    for group in groups_of(survey) {
        for entry in group.entries.iter().filter(|entry| entry.is_deferred()) {
            let location = group.location_of(entry);
            if survey.array.entry(entry.pid).place() == Place::on_disk(location) {
                table.defer(location);
            }
        }
    }
    table
}

fn groups_of(survey: &Survey) -> impl Iterator<Item = &ScannedGroup> {
    survey.segments.iter().flatten().flat_map(|accepted| &accepted.groups)
}
