//! `gannet check`: verify a data directory that no server uses.
//!
//! First everything on disk that a checksum covers is read. If that is clean the database is
//! opened as a start would (a crashed one is recovered by it), and every table's trees and indexes
//! are compared with its rows. The directory is not changed: what recovery writes stays in memory.

use crate::log;
use std::path::Path;

/// Exit code when something is damaged.
const EXIT_FINDINGS: i32 = 1;
/// Exit code when the check was not possible.
const EXIT_FAILED: i32 = 2;
/// Memory for pages while tables are checked, in bytes.
const POOL_BYTES: usize = 256 << 20;

/// Verifies the directory and prints what is wrong; the exit code: 0 clean, 1 findings, 2 not
/// possible. With `regions` every region that is covered by a checksum is listed instead, one
/// per line: kind, file, offset, length.
pub fn run(path: &str, regions: bool) -> i32 {
    let missing = !runtime::fs::exists(format!("{path}/data")).unwrap_or(false);
    if missing {
        log::error(&format!("'{path}' is not a data directory"));
        return EXIT_FAILED;
    }
    let result = match regions {
        true => list_regions(Path::new(path)),
        false => check(Path::new(path)),
    };
    result.unwrap_or_else(|error| {
        log::error(&error.to_string());
        EXIT_FAILED
    })
}

fn list_regions(path: &Path) -> Result<i32, engine::OpenError> {
    for region in engine::offline::regions(path)? {
        let (kind, file) = (&region.kind, &region.file);
        log::print(&format!("{kind} {file} {} {}", region.offset, region.length));
    }
    Ok(0)
}

fn check(path: &Path) -> Result<i32, engine::OpenError> {
    let report = engine::offline::check(path, POOL_BYTES)?;
    for note in &report.notes {
        log::print(&format!("note: {note}"));
    }
    for finding in &report.findings {
        log::print(&finding.to_string());
    }
    if !report.findings.is_empty() {
        log::print(&format!("{} findings", report.findings.len()));
        return Ok(EXIT_FINDINGS);
    }
    if report.is_recovered {
        log::print("note: the server did not end in order; checked as a start would recover it");
    }
    log::print(&format!("clean: {} pages, {} tables", report.pages, report.tables));
    Ok(0)
}
