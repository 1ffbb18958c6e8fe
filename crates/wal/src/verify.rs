//! Offline check of the whole log, for `gannet check`.

use crate::listing;
use crate::reader::{ReadError, Reader};
use crate::record::RecordView;
use crate::sector::SECTOR_BYTES;
use crate::types::LogEnd;
use base::Lsn;
use std::path::{Path, PathBuf};

/// Something wrong in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// File or directory.
    pub file: PathBuf,
    /// What is wrong, with offsets and LSNs.
    pub detail: String,
}

/// What kind of thing a [`Region`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// Header of a log file.
    Header,
    /// A batch.
    Batch,
}

impl RegionKind {
    /// The name `gannet check --regions` prints.
    pub fn name(self) -> &'static str {
        match self {
            RegionKind::Header => "log_header",
            RegionKind::Batch => "log_batch",
        }
    }
}

/// A place in a file where a changed byte is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// What lies there.
    pub kind: RegionKind,
    /// The file.
    pub file: PathBuf,
    /// First byte.
    pub offset: u64,
    /// Bytes, padding not counted (a change there is noticed too).
    pub len: u64,
}

/// What a check went through and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// What is wrong; empty for a clean log.
    pub findings: Vec<Finding>,
    /// Every file header and batch that was read.
    pub regions: Vec<Region>,
    /// Where the check began.
    pub first_lsn: Lsn,
    /// Where the log ends, if that could be proven.
    pub end: Option<LogEnd>,
    /// Batches read.
    pub batches: u64,
    /// Records read.
    pub records: u64,
    /// Bytes of batches read.
    pub file_bytes: u64,
}

/// Reads every batch and every record that has not been recycled and reports what is damaged.
/// `from` is the redo LSN of the superblock (the log must reach back to it); `known_durable` as
/// in [`Reader::open`]. Fails only where the directory cannot be read at all.
pub fn verify(
    dir: &Path,
    database_uuid: [u8; 16],
    from: Lsn,
    known_durable: Lsn,
) -> Result<VerifyReport, ReadError> {
    let listing = listing::list(dir, &database_uuid).map_err(|source| ReadError::Io {
        action: "list",
        file: dir.to_path_buf(),
        source,
    })?;
    let mut report = VerifyReport::default();
    let newest = listing.logs.iter().rev().find(|log| log.header.is_some());
    let newest_sequence = newest.map_or(0, |log| log.sequence);
    // Oldest file of the unbroken row that ends with the newest one.
    let mut first = None;
    for log in listing.logs.iter().rev() {
        if log.header.is_none() && (log.header_damaged || log.sequence < newest_sequence) {
            let detail = "the file header is damaged".to_owned();
            report.findings.push(Finding { file: log.path.clone(), detail });
        }
        let Some(header) = log.header else { continue };
        match first {
            Some((next_sequence, _)) if log.sequence + 1 != next_sequence => break,
            _ => first = Some((log.sequence, header.first_lsn)),
        }
    }
    let start = first.map_or(from, |(_, first_lsn)| Lsn::new(first_lsn).min(from));
    report.first_lsn = start;
    match read_all(dir, database_uuid, start, known_durable, &mut report) {
        Err(error @ ReadError::Io { .. }) => return Err(error),
        Err(error) => {
            let file = match &error {
                ReadError::LogRot { file, .. }
                | ReadError::TailRot { file, .. }
                | ReadError::Malformed { file, .. } => file.clone(),
                _ => dir.to_path_buf(),
            };
            report.findings.push(Finding { file, detail: error.to_string() });
        }
        Ok(()) => {}
    }
    Ok(report)
}

fn read_all(
    dir: &Path,
    database_uuid: [u8; 16],
    from: Lsn,
    known_durable: Lsn,
    report: &mut VerifyReport,
) -> Result<(), ReadError> {
    let mut reader = Reader::open(dir, database_uuid, from, known_durable)?;
    reader.keep_places();
    while let Some(record) = reader.next_record()? {
        report.records += 1;
        // The reader has split the batch; the inside of the record is looked at here.
        if let Err(error) = RecordView::parse(record.bytes) {
            let detail = format!("record at LSN {}: {error}", record.start);
            report.findings.push(Finding { file: dir.to_path_buf(), detail });
        }
    }
    let counts = reader.counts();
    report.batches = counts.batches;
    report.file_bytes = counts.file_bytes;
    report.end = reader.end();
    let mut file_sequence = None;
    for place in reader.take_places() {
        let file = dir.join(listing::log_name(place.file_sequence));
        if file_sequence.replace(place.file_sequence) != Some(place.file_sequence) {
            let (kind, len) = (RegionKind::Header, SECTOR_BYTES as u64);
            report.regions.push(Region { kind, file: file.clone(), offset: 0, len });
        }
        let (kind, offset, len) = (RegionKind::Batch, place.offset, place.len);
        report.regions.push(Region { kind, file, offset, len });
    }
    Ok(())
}
