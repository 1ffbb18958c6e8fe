//! `gannet check`: verify a data directory that no server uses.
//!
//! First everything on disk that a checksum covers is read, and nothing is written. If that is
//! clean the database is opened as a start would (a crashed one is recovered by it), and every
//! table's indexes are compared with its rows.

use crate::log;
use crate::serve::ServeError;
use catalog::Catalog;
use engine::{Engine, EngineOptions};
use std::path::Path;

/// Exit code when something is damaged.
const EXIT_FINDINGS: i32 = 1;
/// Exit code when the check was not possible.
const EXIT_FAILED: i32 = 2;
/// Memory for pages while tables are checked, in bytes.
const POOL_BYTES: usize = 256 << 20;

/// Verifies the directory and prints what is wrong; the exit code: 0 clean, 1 findings, 2 not
/// possible. With `regions` every region that is covered by a checksum is listed instead of
/// opening the database.
pub fn run(path: &str, regions: bool) -> i32 {
    let missing = !runtime::fs::exists(format!("{path}/data")).unwrap_or(false);
    if missing {
        log::error(&format!("'{path}' is not a data directory"));
        return EXIT_FAILED;
    }
    let report = match engine::check_directory(Path::new(path)) {
        Ok(report) => report,
        Err(error) => {
            log::error(&error.to_string());
            return EXIT_FAILED;
        }
    };
    for finding in &report.findings {
        log::print(&format!("{}: {}", finding.file, finding.detail));
    }
    if regions {
        for region in &report.regions {
            log::print(&format!(
                "{} {} {} {}",
                region.kind, region.file, region.offset, region.length
            ));
        }
    }
    if !report.findings.is_empty() {
        log::print(&format!("{} findings", report.findings.len()));
        return EXIT_FINDINGS;
    }
    if regions {
        return 0;
    }
    match check_tables(path) {
        Ok((tables, 0)) => {
            log::print(&format!(
                "clean: {} pages, {} log records, {tables} tables with their indexes",
                report.pages, report.records
            ));
            0
        }
        Ok((_, findings)) => {
            log::print(&format!("{findings} findings"));
            EXIT_FINDINGS
        }
        Err(error) => {
            log::print(&format!("{error}"));
            EXIT_FINDINGS
        }
    }
}

/// Opens the database and checks every table; how many there are and how many findings.
fn check_tables(path: &str) -> Result<(usize, usize), ServeError> {
    let opened = Engine::open(EngineOptions::new(path, POOL_BYTES));
    let (engine, _) = opened.map_err(|error| ServeError::Engine(error.to_string()))?;
    let catalog = Catalog::open(engine.clone())?;
    let (mut tables, mut findings) = (0, 0);
    for schema in catalog.schemas() {
        for entry in schema.tables() {
            tables += 1;
            let name = format!("{}.{}", schema.name, entry.definition().name);
            let checked = entry.handle().and_then(|table| Ok(table.check()?));
            match checked {
                Ok(found) => {
                    findings += found.len();
                    for finding in found {
                        log::print(&format!("{name}: {}: {}", finding.object, finding.detail));
                    }
                }
                Err(error) => {
                    findings += 1;
                    log::print(&format!("{name}: {error}"));
                }
            }
        }
    }
    engine.close().map_err(|error| ServeError::Engine(error.to_string()))?;
    Ok((tables, findings))
}
