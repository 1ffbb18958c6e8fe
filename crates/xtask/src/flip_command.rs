//! `cargo xtask flip`: flipped bytes in live places of the data directory, ten thousand of them.
//!
//! The data has tables of every codec, and a log that a kill has left live. Places are of two
//! kinds:
//! 1. Pages of tables: many are flipped in one copy of the data. `gannet check` must name each of
//!    them. A server is started on the copy; every row is asked for by its key and by its index.
//!    It answers with the row as it was written, or with the error that says corrupt; nothing
//!    else, and at the end it lives. So no damage is served, and no page suffers for another.
//! 2. Everything else (superblock, headers, directories, log, pages of the dictionary): one at a
//!    time, since the first one found ends the check. A server may refuse to start, naming the
//!    place, or runs and has all that was acknowledged.
//!
//! A blob's checksum is over what is on disk: damage is found before a decoder sees it.

use crate::arguments::Arguments;
use crate::flip_data::{self, Tables};
use crate::random::Random;
use crate::{Outcome, servers};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Trees below this number are the store's and the dictionary's.
const FIRST_TABLE_TREE: u32 = 16;
/// Marks the codec of a blob that holds only what changed of a page.
const DELTA_FLAG: u8 = 0x80;
/// Of ten places so many are in pages of tables.
const BLOBS_OF_TEN: u64 = 7;
const CODECS: [&str; 8] = ["none", "lz4", "zstd", "zlib", "lzo", "lzma", "bzip2", "snappy"];

/// A live region of the data directory, as `gannet check --regions` prints it.
#[derive(Clone, Debug)]
struct Region {
    kind: String,
    file: PathBuf,
    offset: u64,
    length: u64,
    /// Blobs of tables only.
    is_table: bool,
}

/// What the flips showed.
#[derive(Default)]
struct Tally {
    found: usize,
    by_kind: BTreeMap<String, usize>,
    right_rows: usize,
    refused_rows: usize,
    refused_starts: usize,
    starts: usize,
}

/// Runs `--places N` (1000), `--at-once N` (100) pages of tables in one copy, every
/// `--serve-every N`th (20) other place also with a server; release or (`--debug`) debug build.
pub fn run(arguments: &[String]) -> Outcome {
    let options = ["--places", "--seed", "--serve-every", "--at-once"];
    let arguments = Arguments::new(arguments, &["--debug"], &options)?;
    let places = arguments.number("--places", 1000)?;
    let serve_every = arguments.number("--serve-every", 20)?.max(1);
    let at_once = arguments.number("--at-once", 100)?.max(1);
    let binary = servers::build_gannet(!arguments.has("--debug"))?;
    let mut run = Run {
        binary,
        folder: servers::fresh_folder("flip")?,
        random: Random::new(arguments.number("--seed", 1)?),
        tables: Tables::new(&CODECS),
        tally: Tally::default(),
    };
    let pristine = run.folder.join("pristine");
    run.tables.fill(&run.binary, &pristine)?;
    if !run.check(&pristine, &[])?.status.success() {
        return Err("gannet check is not clean before any flip".into());
    }
    let regions = run.regions(&pristine)?;
    let of_tables: Vec<Region> = regions.iter().filter(|r| r.is_table).cloned().collect();
    let others: Vec<Region> = regions.into_iter().filter(|r| !r.is_table).collect();
    println!("flip: {} pages of tables, {} other places", of_tables.len(), others.len());
    let damaged = run.folder.join("damaged");
    copy_folder(&pristine, &damaged)?;
    let mut left = places * BLOBS_OF_TEN / 10;
    while left > 0 {
        let count = left.min(at_once);
        run.flip_pages(&damaged, &of_tables, count as usize)?;
        left -= count;
        println!("flip: pages of tables, {left} left: {}", run.tally.summary());
    }
    for place in 0..places - places * BLOBS_OF_TEN / 10 {
        run.flip_other(&damaged, &others, place, place % serve_every == 0)?;
        if place % 500 == 499 {
            println!("flip: {} other places: {}", place + 1, run.tally.summary());
        }
    }
    println!("flip: {places} places, {}; by kind {:?}", run.tally.summary(), run.tally.by_kind);
    Ok(())
}

impl Tally {
    fn summary(&self) -> String {
        format!(
            "{} found by gannet check; rows asked for: {} right, {} refused as corrupt, none \
             wrong; of {} starts {} refused",
            self.found, self.right_rows, self.refused_rows, self.starts, self.refused_starts
        )
    }
}

struct Run {
    binary: PathBuf,
    folder: PathBuf,
    random: Random,
    tables: Tables,
    tally: Tally,
}

impl Run {
    fn check(&self, datadir: &Path, more: &[&str]) -> Result<Output, String> {
        let mut command = Command::new(&self.binary);
        command.args(["check", "--datadir"]).arg(datadir).args(more);
        command.output().map_err(|e| format!("{}: {e}", self.binary.display()))
    }

    fn regions(&self, datadir: &Path) -> Result<Vec<Region>, String> {
        let output = self.check(datadir, &["--regions"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut regions = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [kind, file, offset, length] = words[..] else { continue };
            let (Ok(offset), Ok(length)) = (offset.parse(), length.parse()) else { continue };
            if length > 0 {
                regions.push(region(datadir, kind, file, offset, length)?);
            }
        }
        if regions.is_empty() { Err(format!("no regions: {text}")) } else { Ok(regions) }
    }

    /// Flips a byte in each of `count` pages of tables, judges all, and puts them back.
    fn flip_pages(&mut self, damaged: &Path, regions: &[Region], count: usize) -> Outcome {
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        while chosen.len() < count.min(regions.len() / 4) {
            chosen.insert(self.random.below(regions.len() as u64) as usize);
        }
        let place = |region: &Region, random: &mut Random| {
            (damaged.join(&region.file), region.offset + random.below(region.length))
        };
        let places: Vec<(PathBuf, u64)> =
            chosen.iter().map(|&index| place(&regions[index], &mut self.random)).collect();
        for (file, offset) in &places {
            flip(file, *offset)?;
        }
        let output = self.check(damaged, &[])?;
        if output.status.code().is_none_or(|code| code == 0) {
            return Err(format!("gannet check ended with {} on {count} flips", output.status));
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let named: BTreeSet<(&str, u64)> = said.lines().filter_map(place_in).collect();
        for (&index, (file, offset)) in chosen.iter().zip(&places) {
            let region = &regions[index];
            let name = region.file.to_string_lossy();
            if !named.contains(&(&*name, region.offset)) {
                return Err(format!("{} byte {offset}: not found: {said}", file.display()));
            }
            self.tally.found += 1;
            *self.tally.by_kind.entry(region.kind.clone()).or_default() += 1;
        }
        let copy = self.copy(damaged)?;
        self.tally.starts += 1;
        let mut server = flip_data::start(&self.binary, &copy)
            .map_err(|e| format!("damaged pages kept the server from starting: {e}"))?;
        let (right, refused) = self.tables.read_every_row(server.port)?;
        if refused == 0 {
            return Err(format!("{count} damaged pages, and no row is refused"));
        }
        self.tally.right_rows += right;
        self.tally.refused_rows += refused;
        if let Some(status) = server.ended() {
            return Err(format!("the server ended: {status}"));
        }
        server.kill();
        places.iter().try_for_each(|(file, offset)| flip(file, *offset))
    }

    /// Flips one byte elsewhere, judges, and puts it back.
    fn flip_other(
        &mut self,
        damaged: &Path,
        regions: &[Region],
        number: u64,
        serve: bool,
    ) -> Outcome {
        // Kinds in turn, so that the few superblocks and headers are met as often as the others.
        let kinds: BTreeSet<&String> = regions.iter().map(|region| &region.kind).collect();
        let kind = kinds.iter().nth(number as usize % kinds.len()).ok_or("no regions")?;
        let of_kind: Vec<&Region> = regions.iter().filter(|r| r.kind == **kind).collect();
        let region = of_kind[self.random.below(of_kind.len() as u64) as usize];
        let offset = region.offset + self.random.below(region.length);
        let file = damaged.join(&region.file);
        let what = format!("{} {} byte {offset}", region.kind, region.file.display());
        flip(&file, offset)?;
        match self.check(damaged, &[])?.status.code() {
            Some(0) => return Err(format!("gannet check did not find {what}")),
            Some(_) => self.tally.found += 1,
            None => return Err(format!("gannet check died of {what}")),
        }
        if serve {
            self.judge_server(damaged, region).map_err(|e| format!("{what}: {e}"))?;
        }
        *self.tally.by_kind.entry(region.kind.clone()).or_default() += 1;
        flip(&file, offset)
    }

    fn copy(&self, damaged: &Path) -> Result<PathBuf, String> {
        let copy = self.folder.join("served");
        if copy.exists() {
            std::fs::remove_dir_all(&copy).map_err(|e| e.to_string())?;
        }
        copy_folder(damaged, &copy)?;
        Ok(copy)
    }

    /// Starts a server on a copy: it refuses, or has everything.
    fn judge_server(&mut self, damaged: &Path, region: &Region) -> Outcome {
        let copy = self.copy(damaged)?;
        self.tally.starts += 1;
        let mut server = match flip_data::start(&self.binary, &copy) {
            Ok(server) => server,
            // A dictionary that cannot be read must be named; the others are named by the check.
            Err(_) if region.kind != "blob" || names_dictionary(&copy, region)? => {
                self.tally.refused_starts += 1;
                return Ok(());
            }
            Err(e) => return Err(format!("a damaged page kept the server from starting: {e}")),
        };
        let (right, refused) = self.tables.read_changed_rows(server.port)?;
        if region.kind != "blob" && refused > 0 {
            return Err(format!("{refused} rows are refused although no page is damaged"));
        }
        self.tally.right_rows += right;
        self.tally.refused_rows += refused;
        match server.ended() {
            Some(status) => Err(format!("the server ended: {status}")),
            None => Ok(()),
        }
    }
}

fn region(
    datadir: &Path,
    kind: &str,
    file: &str,
    offset: u64,
    length: u64,
) -> Result<Region, String> {
    let mut region =
        Region { kind: kind.into(), file: file.into(), offset, length, is_table: false };
    if kind == "blob" {
        // docs/file-format.md: codec and mark of a delta at 14, the tree at 24.
        let mut header = [0; 32];
        let opened = std::fs::File::open(datadir.join(file)).map_err(|e| e.to_string())?;
        opened.read_exact_at(&mut header, offset).map_err(|e| e.to_string())?;
        let tree = u32::from_le_bytes([header[24], header[25], header[26], header[27]]);
        region.is_table = tree >= FIRST_TABLE_TREE;
        if region.is_table {
            let what = if header[14] & DELTA_FLAG == 0 { "blob" } else { "delta" };
            let codec = CODECS.get(usize::from(header[14] & !DELTA_FLAG));
            region.kind = format!("{what} {}", codec.ok_or("an unknown codec")?);
        }
    }
    Ok(region)
}

/// File and offset of a line of `gannet check`: `data/FILE at offset N: what is wrong`.
fn place_in(line: &str) -> Option<(&str, u64)> {
    let (before, after) = line.split_once(" at offset ")?;
    let file = before.rsplit(' ').next()?;
    Some((file, after.split(':').next()?.parse().ok()?))
}

fn flip(file: &Path, offset: u64) -> Outcome {
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

/// Whether the start on `datadir` ended because the dictionary is damaged, in this very region.
fn names_dictionary(datadir: &Path, region: &Region) -> Result<bool, String> {
    let log = std::fs::read(datadir.with_extension("log")).map_err(|e| e.to_string())?;
    let log = String::from_utf8_lossy(&log);
    let last = log.lines().next_back().unwrap_or_default();
    let file = region.file.file_name().unwrap_or_default().to_string_lossy();
    let place = format!("({file} at offset {})", region.offset);
    Ok(last.contains("'dictionary' is corrupt") && last.ends_with(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_findings() {
        let line = "gannet: data/pages-0 at offset 4096: page 7: blob checksum does not agree";
        assert_eq!(place_in(line), Some(("data/pages-0", 4096)));
        assert_eq!(place_in("3 pages checked"), None);
    }
}
