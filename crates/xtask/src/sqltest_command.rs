//! `cargo xtask sqltest`: every file of `tests/sql` against Gannet, compared with what MariaDB
//! answered; `--bless` asks a live MariaDB for the expectations.

use crate::{Outcome, process, servers};
use sqltest::client::Options;
use sqltest::script::{self, Step};
use std::path::{Path, PathBuf};

/// Runs or blesses the files whose path contains the given name.
pub fn run(root: &Path, arguments: &[String]) -> Outcome {
    let bless = arguments.iter().any(|a| a == "--bless");
    let release = arguments.iter().any(|a| a == "--release");
    let name = arguments.iter().find(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let mut files = Vec::new();
    collect(&root.join("tests/sql"), &mut files)?;
    files.retain(|f| f.to_string_lossy().contains(&name));
    files.sort();
    if files.is_empty() {
        return Err(format!("no test file has '{name}' in its path"));
    }
    let folder = servers::fresh_folder("sqltest")?;
    if bless {
        let port = process::free_port()?;
        // Its pool, so that its tables have rows; answers are the same otherwise.
        let options = ["--thread-handling=pool-of-threads"];
        let mut server = servers::start_mariadb(&folder, port, &options)?;
        for file in &files {
            bless_file(file, &Options::local(port))?;
        }
        println!("{} files blessed", files.len());
        server.stop();
        return Ok(());
    }
    let binary = servers::build_gannet(release)?;
    let mut server = servers::start_gannet(&binary, &folder.join("data"), 0, &[])?;
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        let (good, bad) = compare_file(file, &Options::local(server.port))?;
        passed += good;
        failed += bad;
        if let Some(status) = server.ended() {
            return Err(format!("{}: the server ended: {status}", file.display()));
        }
    }
    println!("sqltest: {} files\n{passed} passed, {failed} failed", files.len());
    if !server.stop() {
        return Err("the server did not stop cleanly".into());
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} statements differ")) }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "test") {
            files.push(path);
        }
    }
    Ok(())
}

fn load(file: &Path) -> Result<Vec<Step>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    script::parse(&text).map_err(|e| format!("{}: {e}", file.display()))
}

fn bless_file(file: &Path, options: &Options) -> Outcome {
    let outcomes = script::run(&load(file)?, options, "sqltest")
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let result = file.with_extension("result");
    std::fs::write(&result, script::to_text(&outcomes))
        .map_err(|e| format!("{}: {e}", result.display()))
}

/// Blocks of a result file, one a statement.
fn blocks(text: &str) -> Vec<&str> {
    text.split("\n\n").map(str::trim_end).filter(|b| !b.is_empty()).collect()
}

fn compare_file(file: &Path, options: &Options) -> Result<(usize, usize), String> {
    let steps = load(file)?;
    let read = |extension: &str| std::fs::read_to_string(file.with_extension(extension));
    let expected = read("result").map_err(|_| format!("{}: not blessed", file.display()))?;
    let own = read("gannet").unwrap_or_default();
    let mut own_blocks = blocks(&own).into_iter();
    let expected_blocks = blocks(&expected);
    if expected_blocks.len() != steps.len() {
        return Err(format!("{}: changed since it was blessed", file.display()));
    }
    let outcomes = match script::run(&steps, options, "sqltest") {
        Ok(outcomes) => outcomes,
        Err(error) => {
            println!("{}: {error}", file.display());
            return Ok((0, steps.len()));
        }
    };
    let (mut passed, mut failed) = (0, 0);
    for (outcome, from_mariadb) in outcomes.iter().zip(expected_blocks) {
        let got = script::to_text(std::slice::from_ref(outcome));
        let differs = outcome.step.differs.is_some();
        let wanted = if differs { own_blocks.next().unwrap_or("") } else { from_mariadb };
        let same_as_mariadb = differs && got.trim_end() == from_mariadb;
        if got.trim_end() == wanted && !same_as_mariadb {
            passed += 1;
        } else {
            failed += 1;
            println!("{}:{}: differs", file.display(), outcome.step.line);
            println!("--- expected\n{wanted}\n--- got\n{}", got.trim_end());
        }
    }
    Ok((passed, failed))
}
