//! One file: what certainly survives, in a real file behind; and what was written since.
//!
//! 1. Reads see every write that has returned.
//! 2. `unsynced` has, for each sector written since its last covering sync, all versions in order.
//!    A power failure leaves the durable content or any of the versions, for each sector on its
//!    own; so a write of several sectors is torn between them, and writes change their order.
//! 3. A sync makes the newest version of the sectors it covers durable, in the file behind, and
//!    the length; a durable write covers its own range and no other.

use base::{Random, Survival};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// What a device writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;
const SECTOR: u64 = SECTOR_BYTES as u64;

type Sector = [u8; SECTOR_BYTES];

#[derive(Debug)]
struct Version {
    sequence: u64,
    /// `None`: zeroes (truncated or punched).
    content: Option<Box<Sector>>,
}

/// What a power failure did to a file, or to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Sectors of which an unsynced version survived.
    pub kept_sectors: u64,
    /// Sectors that went back to their durable content.
    pub dropped_sectors: u64,
    /// Writes of which some sectors survived and others did not.
    pub torn_writes: u64,
    /// Files that had unsynced sectors or another length.
    pub files: u64,
    /// Changes of directories that are gone.
    pub dropped_names: u64,
}

impl Loss {
    /// Adds another file's.
    pub fn add(&mut self, other: &Loss) {
        self.kept_sectors += other.kept_sectors;
        self.dropped_sectors += other.dropped_sectors;
        self.torn_writes += other.torn_writes;
        self.files += other.files;
        self.dropped_names += other.dropped_names;
    }
}

/// How a power failure treats a file; drawn once per file.
fn draw_survival(random: &mut Random, sequence: u64) -> Survival {
    match random.below(8) {
        0 => Survival::Nothing,
        1 => Survival::Everything,
        2..5 => Survival::Until(random.below(sequence + 1)),
        _ => Survival::Each(*random.pick(&[0.1, 0.5, 0.9])),
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Image {
    behind: File,
    durable_length: u64,
    length: u64,
    unsynced: BTreeMap<u64, Vec<Version>>,
    unsynced_lengths: Vec<(u64, u64)>,
    /// Number of the last change since the last sync of everything.
    sequence: u64,
}

impl Image {
    /// An empty file whose durable content goes into `behind`.
    pub fn new(behind: File) -> Image {
        Image {
            behind,
            durable_length: 0,
            length: 0,
            unsynced: BTreeMap::new(),
            unsynced_lengths: Vec::new(),
            sequence: 0,
        }
    }

    /// Its length as a reader sees it.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Sectors with a version that is not durable.
    pub fn unsynced_sectors(&self) -> u64 {
        self.unsynced.len() as u64
    }

    /// Bytes at an offset, fewer at the end of the file.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let length = (length as u64).min(self.length.saturating_sub(offset));
        let mut bytes = vec![0; length as usize];
        self.read_durable(offset, &mut bytes)?;
        for (number, versions) in self.unsynced.range(sectors(offset, length)) {
            let Some(newest) = versions.last() else { continue };
            let start = number * SECTOR;
            let from = start.max(offset);
            let to = (start + SECTOR).min(offset + length);
            let part = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            match &newest.content {
                Some(content) => {
                    part.copy_from_slice(&content[(from - start) as usize..(to - start) as usize]);
                }
                None => part.fill(0),
            }
        }
        Ok(bytes)
    }

    /// Fills what the file behind has; the rest stays zero.
    fn read_durable(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let there = (bytes.len() as u64).min(self.durable_length.saturating_sub(offset));
        self.behind.read_exact_at(&mut bytes[..there as usize], offset)
    }

    fn newest(&self, number: u64) -> io::Result<Sector> {
        let mut sector = [0; SECTOR_BYTES];
        match self.unsynced.get(&number).and_then(|versions| versions.last()) {
            Some(Version { content: Some(content), .. }) => sector = **content,
            Some(Version { content: None, .. }) => {}
            None => self.read_durable(number * SECTOR, &mut sector)?,
        }
        Ok(sector)
    }

    /// Writes; nothing of it is durable.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.sequence += 1;
        let end = offset + bytes.len() as u64;
        for number in sectors(offset, bytes.len() as u64) {
            let start = number * SECTOR;
            let from = start.max(offset);
            let to = (start + SECTOR).min(end);
            let part = &bytes[(from - offset) as usize..(to - offset) as usize];
            let mut content = Box::new([0; SECTOR_BYTES]);
            if part.len() < SECTOR_BYTES {
                *content = self.newest(number)?;
            }
            content[(from - start) as usize..(to - start) as usize].copy_from_slice(part);
            self.push(number, Some(content));
        }
        if end > self.length {
            self.set_length(end);
        }
        Ok(())
    }

    fn push(&mut self, number: u64, content: Option<Box<Sector>>) {
        let version = Version { sequence: self.sequence, content };
        self.unsynced.entry(number).or_default().push(version);
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        self.unsynced_lengths.push((self.sequence, length));
    }

    /// Makes the file shorter or longer; what comes into being is zero.
    pub fn truncate(&mut self, length: u64) -> io::Result<()> {
        if length == self.length {
            return Ok(());
        }
        if length < self.length {
            self.zero(length, self.length - length)?;
        }
        self.sequence += 1;
        self.set_length(length);
        Ok(())
    }

    /// Makes a range zero, within the file.
    pub fn zero(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let end = (offset + length).min(self.length);
        if end <= offset {
            return Ok(());
        }
        self.sequence += 1;
        for number in sectors(offset, end - offset) {
            let start = number * SECTOR;
            let (from, to) = (start.max(offset), (start + SECTOR).min(end));
            // A partial last sector of the file is zero behind its end anyway.
            if from == start && (to == start + SECTOR || to == self.length) {
                self.push(number, None);
                continue;
            }
            let mut content = Box::new(self.newest(number)?);
            content[(from - start) as usize..(to - start) as usize].fill(0);
            self.push(number, Some(content));
        }
        Ok(())
    }

    /// Makes the file at least so long, as allocation does.
    pub fn extend(&mut self, length: u64) {
        if length > self.length {
            self.sequence += 1;
            self.set_length(length);
        }
    }

    /// fsync or fdatasync: everything is durable when it returns.
    pub fn sync(&mut self) -> io::Result<()> {
        let all = std::mem::take(&mut self.unsynced);
        self.settle(all.into_iter().filter_map(|(number, versions)| {
            versions.into_iter().next_back().map(|newest| (number, newest.content))
        }))?;
        self.set_durable_length(self.length)?;
        self.unsynced_lengths.clear();
        self.sequence = 0;
        Ok(())
    }

    /// The end of a durable write: its range is durable, and as much of the length as it needs.
    pub fn sync_range(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let numbers: Vec<u64> =
            self.unsynced.range(sectors(offset, length)).map(|(number, _)| *number).collect();
        let mut newest = Vec::new();
        for number in numbers {
            let versions = self.unsynced.remove(&number).unwrap_or_default();
            newest.extend(versions.into_iter().next_back().map(|last| (number, last.content)));
        }
        self.settle(newest.into_iter())?;
        // Sectors are durable as a whole, so the length covers the last one.
        let end = (offset + length).next_multiple_of(SECTOR).min(self.length);
        self.set_durable_length(self.durable_length.max(end))
    }

    /// Puts sectors into the file behind, those in a row in one write.
    fn settle(
        &mut self,
        sectors: impl Iterator<Item = (u64, Option<Box<Sector>>)>,
    ) -> io::Result<()> {
        let (mut start, mut run) = (0, Vec::new());
        for (number, content) in sectors {
            if start + run.len() as u64 != number * SECTOR {
                self.behind.write_all_at(&run, start)?;
                run.clear();
                start = number * SECTOR;
            }
            match content {
                Some(content) => run.extend_from_slice(&*content),
                None => run.resize(run.len() + SECTOR_BYTES, 0),
            }
        }
        self.behind.write_all_at(&run, start)
    }

    fn set_durable_length(&mut self, length: u64) -> io::Result<()> {
        // What lies behind the end of the file is zero should it become longer again.
        self.behind.set_len(length)?;
        self.durable_length = length;
        Ok(())
    }

    /// The power fails: what of the unsynced survives is durable now, the rest never was.
    pub fn power_failure(&mut self, random: &mut Random) -> io::Result<Loss> {
        let survival = draw_survival(random, self.sequence);
        let has_changed = !self.unsynced.is_empty() || self.length != self.durable_length;
        let mut loss = Loss { files: u64::from(has_changed), ..Loss::default() };
        let (mut kept, mut dropped) = (BTreeSet::new(), BTreeSet::new());
        let mut survivors = Vec::new();
        for (number, mut versions) in std::mem::take(&mut self.unsynced) {
            let chosen = survival.choose(&versions, |it| it.sequence, random);
            for (place, version) in versions.iter().enumerate() {
                if chosen == Some(place) { &mut kept } else { &mut dropped }
                    .insert(version.sequence);
            }
            match chosen {
                Some(place) => survivors.push((number, versions.swap_remove(place).content)),
                None => loss.dropped_sectors += 1,
            }
        }
        loss.kept_sectors = survivors.len() as u64;
        loss.torn_writes = kept.intersection(&dropped).count() as u64;
        let lengths = std::mem::take(&mut self.unsynced_lengths);
        let chosen = match survival {
            Survival::Nothing => None,
            Survival::Everything => lengths.last(),
            Survival::Until(limit) => lengths.iter().rfind(|(sequence, _)| *sequence <= limit),
            Survival::Each(chance) if random.chance(chance) && !lengths.is_empty() => {
                lengths.get(random.index(lengths.len()))
            }
            Survival::Each(_) => None,
        };
        let length = chosen.map_or(self.durable_length, |(_, length)| *length);
        // A length at the time of a later durable write is at least what that write needed.
        self.settle(survivors.into_iter())?;
        self.set_durable_length(length.max(self.least_length(&lengths)))?;
        self.length = self.durable_length;
        self.sequence = 0;
        Ok(loss)
    }

    /// The durable length unless the file was made shorter since.
    fn least_length(&self, lengths: &[(u64, u64)]) -> u64 {
        let shortest = lengths.iter().map(|(_, length)| *length).min().unwrap_or(u64::MAX);
        if shortest < self.durable_length { 0 } else { self.durable_length }
    }
}

/// Numbers of the sectors that a range touches.
fn sectors(offset: u64, length: u64) -> RangeInclusive<u64> {
    match length {
        // An empty range, which inclusive ones only have backwards; for maps it must not be that.
        0 => u64::MAX..=u64::MAX,
        _ => offset / SECTOR..=(offset + length - 1) / SECTOR,
    }
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
