//! Verification of a whole database that no server uses, for `gannet check`.
//!
//! 1. First the files as they are: log, superblock, segments, every page copy. If anything is
//!    found the check ends there.
//! 2. Only then is the database opened as a start would, which recovers it if its server did not
//!    end in order, and every tree and the agreement of every table's indexes are checked.
//! 3. Nothing in the directory is changed: recovery runs over a layer of memory
//!    ([`runtime::overlay`]). What a crash left stays as it is, for another look. (A lock file is
//!    created if it is not there.)

use crate::options::EngineOptions;
use crate::recovery::{Anchor, OpenError, Places};
use crate::table::EngineTable;
use crate::{Engine, dictionary};
use btree::Tree;
use pagestore::Superblock;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Something wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    /// A file relative to the data directory, or a table and index.
    pub object: String,
    /// Where in the file, bytes.
    pub offset: Option<u64>,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for CheckFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => {
                write!(formatter, "{} at offset {offset}: {}", self.object, self.detail)
            }
            None => write!(formatter, "{}: {}", self.object, self.detail),
        }
    }
}

/// Bytes in use that a checksum covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRegion {
    /// superblock, segment_header, group_directory, blob, log_header or log_batch.
    pub kind: String,
    /// File relative to the data directory.
    pub file: String,
    /// First byte.
    pub offset: u64,
    /// Number of bytes, without padding.
    pub length: u64,
}

/// What a check went through and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// What is wrong; empty for a sound database.
    pub findings: Vec<CheckFinding>,
    /// What a power failure may leave and the next start sets right.
    pub notes: Vec<CheckFinding>,
    /// Everything in the files that was verified.
    pub regions: Vec<CheckRegion>,
    /// Page copies read.
    pub pages: u64,
    /// Tables checked; zero when the files are damaged.
    pub tables: u64,
    /// The server did not end in order: the tables were checked as a start would recover them.
    pub is_recovered: bool,
}

impl CheckReport {
    fn found(&mut self, object: impl Into<String>, detail: impl Into<String>) {
        let (object, detail) = (object.into(), detail.into());
        self.findings.push(CheckFinding { object, offset: None, detail });
    }
}

/// Verifies the database in `datadir`; `pool_bytes` is the memory for pages. Fails where it
/// cannot be read at all or a server uses it.
pub fn check(datadir: &Path, pool_bytes: usize) -> Result<CheckReport, OpenError> {
    let places = Places::new(datadir);
    let _lock = places.lock_exclusively(datadir)?;
    let mut report = check_files(datadir, &places)?;
    if report.findings.is_empty() {
        let covered = runtime::overlay::cover(datadir);
        match Engine::open(EngineOptions::new(datadir, pool_bytes)) {
            Ok((engine, summary)) => {
                report.is_recovered = !summary.was_clean;
                check_tables(&engine, &mut report);
            }
            Err(error) => report.found("database", error.to_string()),
        }
        drop(covered);
    }
    Ok(report)
}

/// Lists the regions of the files without opening the database.
pub fn regions(datadir: &Path) -> Result<Vec<CheckRegion>, OpenError> {
    let places = Places::new(datadir);
    let _lock = places.lock_exclusively(datadir)?;
    check_files(datadir, &places).map(|report| report.regions)
}

fn relative(datadir: &Path, path: &Path) -> String {
    path.strip_prefix(datadir).unwrap_or(path).display().to_string()
}

fn check_files(datadir: &Path, places: &Places) -> Result<CheckReport, OpenError> {
    let mut report = CheckReport::default();
    let pages = pagestore::check(&places.data, Some(btree::check_page))?;
    report.pages = pages.pages;
    let in_data = |file: &str| format!("data/{file}");
    let in_report = |finding: &pagestore::Finding| CheckFinding {
        object: in_data(&finding.file),
        offset: Some(finding.offset),
        detail: finding.detail.clone(),
    };
    report.findings.extend(pages.findings.iter().map(in_report));
    report.notes.extend(pages.notes.iter().map(in_report));
    report.regions.extend(pages.regions.iter().map(|region| CheckRegion {
        kind: region.kind.to_string(),
        file: in_data(&region.file),
        offset: region.offset,
        length: region.length,
    }));
    let superblock = match Superblock::load(&places.data) {
        Ok(Some(superblock)) => superblock,
        Ok(None) => {
            report.found("data/superblock", "there is no superblock");
            return Ok(report);
        }
        // Reported with its place above.
        Err(_) => return Ok(report),
    };
    let Some(Anchor { scan: scan_lsn, .. }) = Anchor::decode(&superblock.engine) else {
        report.found("data/superblock", "it does not name the dictionary");
        return Ok(report);
    };
    let known_durable = superblock.durable_lsn.max(pages.max_page_lsn);
    let log = wal::verify(&places.log, superblock.uuid, scan_lsn, known_durable)?;
    for finding in log.findings {
        report.found(relative(datadir, &finding.file), finding.detail);
    }
    report.regions.extend(log.regions.iter().map(|region| CheckRegion {
        kind: region.kind.name().to_owned(),
        file: relative(datadir, &region.file),
        offset: region.offset,
        length: region.len,
    }));
    Ok(report)
}

fn check_tables(engine: &Arc<Engine>, report: &mut CheckReport) {
    check_pages(engine, "dictionary", engine.core.dictionary(), report);
    match dictionary::shapes(&engine.core, false) {
        Ok(shapes) => {
            for definition in shapes {
                check_one_table(engine, definition, report);
                report.tables += 1;
            }
        }
        Err(error) => report.found("dictionary", error.to_string()),
    }
    if let Err(error) = engine.close() {
        report.found("database", format!("closing it: {error}"));
    }
}

fn check_one_table(
    engine: &Arc<Engine>,
    definition: engine_api::TableDefinition,
    report: &mut CheckReport,
) {
    let name = format!("{}.{}", definition.schema, definition.name);
    let table = match EngineTable::new(engine.core.clone(), Arc::new(definition)) {
        Ok(table) => table,
        Err(error) => return report.found(name, error.to_string()),
    };
    let before = report.findings.len();
    for (position, tree) in table.trees.iter().enumerate() {
        check_pages(engine, &table.object(position), tree, report);
    }
    if report.findings.len() > before {
        return;
    }
    let mut findings = Vec::new();
    if let Err(error) = table.check_agreement(&mut findings) {
        report.found(name, error.to_string());
    }
    for finding in findings {
        report.found(finding.object, finding.detail);
    }
}

/// The tree is sound, and its pages are those that the allocation map gives it.
fn check_pages(engine: &Engine, name: &str, tree: &Tree, report: &mut CheckReport) {
    let _no_purge = engine.core.purging.lock();
    match tree.verify() {
        Ok(found) => {
            for finding in &found.findings {
                report.found(name, format!("page {}: {}", finding.pid, finding.detail));
            }
            let allocated = engine.core.store.space().pages_of(tree.id());
            let reached = found.pages.len() as u64;
            if found.findings.is_empty() && allocated != reached {
                report.found(name, format!("{allocated} pages allocated, {reached} in the tree"));
            }
        }
        Err(error) => report.found(name, error.to_string()),
    }
}
