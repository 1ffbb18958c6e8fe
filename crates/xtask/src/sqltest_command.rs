//! `cargo xtask sqltest`: every file of `tests/sql` and `tests/isolation` against Gannet, compared
//! with what MariaDB answered; `--bless` asks a live MariaDB for the expectations, `--own` records
//! which interleavings Gannet plays otherwise.

use crate::interleaving_command::{self as interleavings, is_spec};
use crate::{Outcome, servers};
use sqltest::client::Options;
use sqltest::script::{self, Step};
use std::path::{Path, PathBuf};

/// Runs or blesses the files whose path contains the given name.
pub fn run(root: &Path, arguments: &[String]) -> Outcome {
    let bless = arguments.iter().any(|a| a == "--bless");
    let release = arguments.iter().any(|a| a == "--release");
    let name = arguments.iter().find(|a| !a.starts_with("--")).cloned().unwrap_or_default();
    let mut files = Vec::new();
    for folder in ["tests/sql", "tests/isolation"] {
        collect(&root.join(folder), &mut files)?;
    }
    files.retain(|f| f.to_string_lossy().contains(&name));
    files.sort();
    if files.is_empty() {
        return Err(format!("no test file has '{name}' in its path"));
    }
    let folder = servers::fresh_folder("sqltest")?;
    if bless {
        return bless_files(&files, &folder);
    }
    let records_own = arguments.iter().any(|a| a == "--own");
    let binary = servers::build_gannet(release)?;
    let mut server = servers::start_gannet(&binary, &folder.join("data"), 0, &[])?;
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        let options = Options::local(server.port);
        let (good, bad) = match is_spec(file) {
            true => interleavings::compare(file, &options, records_own)?,
            false => compare_file(file, &options)?,
        };
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
        } else if path.extension().is_some_and(|e| e == "test" || e == "spec") {
            files.push(path);
        }
    }
    Ok(())
}

fn load(file: &Path) -> Result<Vec<Step>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    script::parse(&text).map_err(|e| format!("{}: {e}", file.display()))
}

fn bless_files(files: &[PathBuf], folder: &Path) -> Outcome {
    // Its pool, so that its tables have rows; answers are the same otherwise. But its list of
    // processes, by which interleavings see who waits, may crash it then.
    for (specs, handling) in [(false, "pool-of-threads"), (true, "one-thread-per-connection")] {
        let chosen: Vec<_> = files.iter().filter(|file| is_spec(file) == specs).collect();
        if chosen.is_empty() {
            continue;
        }
        let port = sqltest::port::free_port()?;
        // With names of hosts: Gannet calls the loopback localhost.
        let options =
            [format!("--thread-handling={handling}"), "--skip-name-resolve=OFF".to_owned()];
        let own = folder.join(handling);
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
        let mut server =
            servers::start_mariadb(&own, port, &options.each_ref().map(String::as_str))?;
        for file in chosen {
            match specs {
                true => interleavings::bless(file, &Options::local(port))?,
                false => bless_file(file, &Options::local(port))?,
            }
        }
        server.stop();
    }
    println!("{} files blessed", files.len());
    Ok(())
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
