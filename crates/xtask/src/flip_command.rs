//! `cargo xtask flip`: one flipped byte in a live place of the data directory, a thousand times.
//!
//! `gannet check` must find each. A page's damage must stay with the query that reads the page:
//! it fails with an error, the server lives and answers other queries. A log that has rotted
//! where it was durable must refuse to start, naming the place; so must a dictionary, which every
//! start reads whole.

use crate::process;
use crate::{Outcome, servers};
use sqltest::client::{Answer, Connection, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Rows changed just before the server is killed.
const CHANGES: u32 = 200;

/// A live region of the data directory, as `gannet check --regions` prints it.
#[derive(Clone, Debug)]
struct Region {
    kind: String,
    file: PathBuf,
    offset: u64,
    length: u64,
}

/// What the flips showed.
#[derive(Default)]
struct Tally {
    found_by_check: usize,
    failed_queries: usize,
    refused_starts: usize,
    served: usize,
    by_kind: BTreeMap<String, usize>,
}

/// Runs `--places N` (1000), every `--serve-every N`th (4) also with a running server; with the
/// release or (`--debug`) debug build.
pub fn run(arguments: &[String]) -> Outcome {
    let number = |name: &str, default: u64| {
        let position = arguments.iter().position(|a| a == name);
        position.and_then(|p| arguments.get(p + 1)?.parse().ok()).unwrap_or(default)
    };
    let (places, serve_every) = (number("--places", 1000), number("--serve-every", 4));
    let binary = servers::build_gannet(!arguments.iter().any(|a| a == "--debug"))?;
    let folder = servers::fresh_folder("flip")?;
    let pristine = folder.join("pristine");
    fill(&binary, &pristine)?;
    let regions = regions(&binary, &pristine)?;
    if !check(&binary, &pristine)?.status.success() {
        return Err("gannet check is not clean before any flip".into());
    }
    let damaged = folder.join("damaged");
    copy_folder(&pristine, &damaged)?;
    let mut tally = Tally::default();
    let mut seed = number("--seed", 1);
    for place in 0..places {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Kinds in turn, so that the few superblocks and headers are met as often as the blobs.
        let kinds = kinds(&regions);
        let kind = &kinds[place as usize % kinds.len()];
        let of_kind: Vec<&Region> = regions.iter().filter(|r| r.kind == *kind).collect();
        let region = of_kind[(seed >> 33) as usize % of_kind.len()];
        let offset = region.offset + (seed >> 17) % region.length;
        flip(&damaged.join(&region.file), offset)?;
        let what = format!("{} {} byte {offset}", region.kind, region.file.display());
        judge_check(&binary, &damaged, &what)?;
        tally.found_by_check += 1;
        if place % serve_every == 0 {
            judge_server(&binary, &folder, &damaged, region, &what, &mut tally)?;
        }
        flip(&damaged.join(&region.file), offset)?;
        *tally.by_kind.entry(region.kind.clone()).or_default() += 1;
    }
    println!(
        "flip: {places} places, {} found by gannet check; of the starts {} refused, {} served on, \
         with {} queries failing with an error; by kind {:?}",
        tally.found_by_check,
        tally.refused_starts,
        tally.served,
        tally.failed_queries,
        tally.by_kind
    );
    Ok(())
}

fn kinds(regions: &[Region]) -> Vec<String> {
    let mut kinds: Vec<String> = regions.iter().map(|r| r.kind.clone()).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// Fills a data directory with tables and ends the server by SIGKILL, so that the log is live.
fn fill(binary: &Path, datadir: &Path) -> Outcome {
    let port = process::free_port()?;
    let mut server = servers::start_gannet(binary, datadir, port, &["--buffer-pool-size", "32M"])?;
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    let mut run = |sql: &str| connection.execute(sql).map(|_| ()).map_err(|e| e.to_string());
    run("CREATE DATABASE flip")?;
    for table in 0..4 {
        run(&format!(
            "CREATE TABLE flip.t{table} \
             (id INT PRIMARY KEY, a INT, b VARCHAR(200), t TEXT, KEY (a))"
        ))?;
        for block in 0..10 {
            let rows: Vec<String> = (block * 100..block * 100 + 100)
                .map(|id| format!("({id}, {}, REPEAT('{id} ', 20), REPEAT('x{id}', 50))", id * 7))
                .collect();
            run(&format!("INSERT INTO flip.t{table} VALUES {}", rows.join(", ")))?;
        }
    }
    if !server.stop() {
        return Err("the server did not stop cleanly".into());
    }
    let mut server = servers::start_gannet(binary, datadir, port, &["--buffer-pool-size", "32M"])?;
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    for id in 0..CHANGES {
        let sql = format!("UPDATE flip.t0 SET a = {id} + 1 WHERE id = {id}");
        connection.execute(&sql).map_err(|e| e.to_string())?;
    }
    server.kill();
    Ok(())
}

fn check(binary: &Path, datadir: &Path) -> Result<Output, String> {
    run_check(binary, datadir, &[])
}

fn run_check(binary: &Path, datadir: &Path, more: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(binary);
    command.args(["check", "--datadir"]).arg(datadir).args(more);
    command.output().map_err(|e| format!("{}: {e}", binary.display()))
}

fn regions(binary: &Path, datadir: &Path) -> Result<Vec<Region>, String> {
    let output = run_check(binary, datadir, &["--regions"])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut regions = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, file, offset, length] = words[..] else { continue };
        let (Ok(offset), Ok(length)) = (offset.parse(), length.parse()) else { continue };
        if length > 0 {
            regions.push(Region { kind: kind.into(), file: file.into(), offset, length });
        }
    }
    if regions.is_empty() { Err(format!("no regions: {text}")) } else { Ok(regions) }
}

fn flip(file: &Path, offset: u64) -> Outcome {
    use std::os::unix::fs::FileExt;
    let open = std::fs::File::options().read(true).write(true).open(file);
    let file = open.map_err(|e| format!("{}: {e}", file.display()))?;
    let mut byte = [0u8];
    file.read_exact_at(&mut byte, offset).map_err(|e| e.to_string())?;
    byte[0] ^= 1 << (offset % 8);
    file.write_all_at(&byte, offset).map_err(|e| e.to_string())
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    let status = Command::new("cp").args(["-r", "--sparse=always"]).arg(from).arg(to).status();
    if status.is_ok_and(|s| s.success()) { Ok(()) } else { Err("cp failed".into()) }
}

fn judge_check(binary: &Path, damaged: &Path, what: &str) -> Outcome {
    let output = check(binary, damaged)?;
    match output.status.code() {
        Some(0) => Err(format!("gannet check did not find {what}")),
        Some(_) => Ok(()),
        None => Err(format!("gannet check died of {what}")),
    }
}

/// Whether the start on `datadir` ended because the dictionary is damaged, in this very region.
fn names_dictionary(datadir: &Path, region: &Region) -> Result<bool, String> {
    let log = std::fs::read(datadir.with_extension("log")).map_err(|e| e.to_string())?;
    let log = String::from_utf8_lossy(&log);
    let last = log.lines().next_back().unwrap_or_default();
    let file = region.file.file_name().unwrap_or_default().to_string_lossy();
    let place = format!("({file} at offset {})", region.offset);
    Ok(last.contains("'dictionary' is corrupt") && last.ends_with(&place))
}

/// Starts a server on a copy and reads everything.
fn judge_server(
    binary: &Path,
    folder: &Path,
    damaged: &Path,
    region: &Region,
    what: &str,
    tally: &mut Tally,
) -> Outcome {
    let copy = folder.join("served");
    if copy.exists() {
        std::fs::remove_dir_all(&copy).map_err(|e| e.to_string())?;
    }
    copy_folder(damaged, &copy)?;
    let port = process::free_port()?;
    let options = ["--buffer-pool-size", "32M"];
    let mut server = match servers::start_gannet(binary, &copy, port, &options) {
        Ok(server) => server,
        Err(_) if region.kind != "blob" || names_dictionary(&copy, region)? => {
            tally.refused_starts += 1;
            return Ok(());
        }
        Err(e) => return Err(format!("{what}: a damaged page kept the server from starting: {e}")),
    };
    let mut connection = Connection::open(&Options::local(port)).map_err(|e| e.to_string())?;
    let mut failed = 0;
    for table in 0..4 {
        for hint in ["", "FORCE INDEX (a)"] {
            let sql = format!("SELECT COUNT(b), SUM(a), MAX(t) FROM flip.t{table} {hint}");
            match connection.query_one(&sql).map_err(|e| format!("{what}: {e}"))? {
                Answer::Error(_) => failed += 1,
                _ => tally.served += 1,
            }
        }
    }
    tally.failed_queries += failed;
    // Whoever starts has every change that was acknowledged.
    let sql = format!("SELECT COUNT(*) = {CHANGES} FROM flip.t0 WHERE a = id + 1");
    if let Answer::Rows { rows, .. } =
        connection.query_one(&sql).map_err(|e| format!("{what}: {e}"))?
        && rows != [[Some(b"1".to_vec())]]
    {
        return Err(format!("{what}: acknowledged changes are gone without a word"));
    }
    connection.execute("SELECT 1").map_err(|e| format!("{what}: {e}"))?;
    if server.ended().is_some() {
        return Err(format!("{what}: the server ended"));
    }
    Ok(())
}
