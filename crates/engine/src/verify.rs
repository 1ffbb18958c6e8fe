//! The offline check of a data directory: page store and log, byte by byte. Nothing is written.
//! Indexes are compared with their tables by an engine that is open (`Table::check`).

use crate::recovery::{OpenError, Places, anchor_scan_lsn};
use pagestore::Superblock;
use runtime::file::OpenOptions;
use std::path::{Path, PathBuf};

/// Something damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryFinding {
    /// File relative to the data directory.
    pub file: String,
    /// What is wrong, with its place.
    pub detail: String,
}

/// Bytes in use that a checksum covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedRegion {
    /// superblock, segment_header, group_directory, blob, log_header or log_batch.
    pub kind: String,
    /// File relative to the data directory.
    pub file: String,
    /// First byte.
    pub offset: u64,
    /// Length in bytes, padding not counted.
    pub length: u64,
}

/// What a check went through and found.
#[derive(Clone, Debug, Default)]
pub struct DirectoryReport {
    /// Damage; empty for a clean directory.
    pub findings: Vec<DirectoryFinding>,
    /// Everything that was verified.
    pub regions: Vec<CheckedRegion>,
    /// Pages with a copy on disk.
    pub pages: u64,
    /// Log records read.
    pub records: u64,
}

/// Verifies the directory of an engine that does not run. Errors are those of the file system
/// and a directory that is in use; damage is in the report.
pub fn check_directory(datadir: &Path) -> Result<DirectoryReport, OpenError> {
    let places = Places::new(datadir);
    let io = |action, path: &Path, source| OpenError::Io { action, path: path.to_owned(), source };
    let lock = OpenOptions::new().create(true).open(&places.lock);
    let lock = lock.map_err(|error| io("open", &places.lock, error))?;
    if !lock.try_lock_exclusive().map_err(|error| io("lock", &places.lock, error))? {
        return Err(OpenError::Locked(datadir.to_owned()));
    }
    let mut report = DirectoryReport::default();
    check_pages(&places, &mut report)?;
    match Superblock::load(&places.data) {
        Ok(Some(superblock)) => check_log(datadir, &places, &superblock, &mut report)?,
        Ok(None) if report.findings.is_empty() => {
            return Err(OpenError::Damaged("there is no database here".to_owned()));
        }
        // The page store has reported it.
        Ok(None) | Err(_) => {}
    }
    Ok(report)
}

fn check_pages(places: &Places, report: &mut DirectoryReport) -> Result<(), OpenError> {
    let checked = pagestore::check(&places.data, Some(btree::check_page))?;
    report.pages = checked.pages;
    for finding in checked.findings {
        let detail = format!("offset {}: {}", finding.offset, finding.detail);
        report.findings.push(DirectoryFinding { file: format!("data/{}", finding.file), detail });
    }
    for region in checked.regions {
        report.regions.push(CheckedRegion {
            kind: region.kind.to_string(),
            file: format!("data/{}", region.file),
            offset: region.offset,
            length: region.length,
        });
    }
    Ok(())
}

fn check_log(
    datadir: &Path,
    places: &Places,
    superblock: &Superblock,
    report: &mut DirectoryReport,
) -> Result<(), OpenError> {
    let relative =
        |path: PathBuf| path.strip_prefix(datadir).unwrap_or(&path).to_string_lossy().into_owned();
    let from = anchor_scan_lsn(superblock).unwrap_or(superblock.redo_lsn);
    let checked = wal::verify(&places.log, superblock.uuid, from, superblock.durable_lsn)?;
    report.records = checked.records;
    for finding in checked.findings {
        let file = relative(finding.file);
        report.findings.push(DirectoryFinding { file, detail: finding.detail });
    }
    for region in checked.regions {
        report.regions.push(CheckedRegion {
            kind: region.kind.name().to_owned(),
            file: relative(region.file),
            offset: region.offset,
            length: region.len,
        });
    }
    Ok(())
}
