//! Style as a test. Each check returns findings; one finding fails the run.

mod layers;
mod rules;
mod sizes;
mod source;
mod ways;

use source::SourceFile;
use std::path::{Path, PathBuf};

/// Runs every check and prints what was looked at.
pub fn run(root: &Path) -> Result<(), String> {
    let files = rust_files(root)?;
    let mut findings = Vec::new();
    findings.extend(layers::check(root)?);
    findings.extend(ways::check(root, &files)?);
    findings.extend(sizes::check(&files));
    for file in &files {
        findings.extend(rules::check(file));
    }
    findings.extend(rules::check_words(root)?);
    if findings.is_empty() {
        println!("tidy: {} source files, no findings", files.len());
        return Ok(());
    }
    Err(format!("{}\ntidy: {} findings", findings.join("\n"), findings.len()))
}

fn rust_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut paths = Vec::new();
    walk(&root.join("crates"), &mut paths)?;
    paths.sort();
    paths.iter().map(|path| SourceFile::load(root, path)).collect()
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                walk(&path, paths)?;
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}
