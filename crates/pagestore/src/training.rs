//! Making dictionaries, choosing how a tree's pages are searched, and which of them LZ4 writes in
//! Zstandard's place: from pages spread over the tree.
//!
//! 1. One tree at a time, by one fiber; the work of it is done by a helper thread (amendment 20).
//!    While cores are short it comes later: a load makes its pages without dictionaries.
//!    Pages are looked at when it is a tree's turn: nothing is collected while they are written.
//! 2. A dictionary is used only if it saves enough against what the tree is written with now, on
//!    pages that it was not made from: much if that is another dictionary; little if there is none,
//!    because pages that do without tables of their own are read faster, too. A tree that has none
//!    is then written by the search that is best without one.
//! 3. A tree is asked again when four times as much of it has been written (dictionaries.rs), since
//!    its pages may not be any more what they were; one that gained nothing after sixteen times.
//! 4. At usual levels LZ4 writes what hardly gets larger by it, and those pages that change, and so
//!    are read and written again and again, if they get larger by two thirds at most: a page by LZ4
//!    is read in a quarter of the time. What was found stands in the file of the tree's dictionary.

use crate::blob;
use crate::counters::add;
use crate::dictionary_file::{self, Content};
use crate::disk::Disk;
use crate::error::{Retry, StoreError};
use crate::files::WriteError;
use crate::guard::SharedPage;
use crate::header::class_bytes;
use crate::location::Place;
use crate::space::EXTENT_PAGES;
use crate::store::Shared;
use crate::superblock::Superblock;
use base::{PageId, TreeId, probe};
use codec::{Codec, CodecId, Dictionary, Search};
use runtime::WaitClass;
use std::sync::Arc;
use std::time::Duration;

/// Longest dictionary. More brings little for pages of 8 KiB (compression.md among the designs).
const DICTIONARY_BYTES: usize = 16 << 10;
const _: () = assert!(DICTIONARY_BYTES <= dictionary_file::CONTENT_BYTES_MAX);
/// While cores are short each training waits so long, and looks so often whether they still are.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Pages looked at, at most, and their bytes.
const SAMPLE_PAGES: usize = 132;
const SAMPLE_BYTES: usize = 1100 << 10;
/// Fewer pages than this say nothing.
const SAMPLE_PAGES_MIN: usize = 12;
/// A prime.
const STRIDE: usize = 61;
/// One page in so many is not trained on, but tried.
const TRIED_OF: usize = 4;
/// All pages of a tree are written with LZ4 if it makes at most so many times the bytes ...
const LZ4_FACTOR_ALL: f64 = 1.12;
/// ... and those that were written before if it makes at most so many times the bytes: they take a
/// third of the time to be written and a quarter to be read, and larger ones get fewer full copies.
const LZ4_FACTOR_REWRITTEN: f64 = 1.65;

/// Which pages of a tree that asks for Zstandard are written with LZ4 (invariant 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lz4Pages {
    /// None.
    #[default]
    None,
    /// Those that have a copy on disk already, and what changed of pages (delta.rs).
    Rewritten,
    /// All.
    All,
}

impl Lz4Pages {
    /// Where LZ4 makes `lz4_bytes` of pages of which Zstandard makes `bytes` at this level.
    fn choose(level: i32, lz4_bytes: usize, bytes: usize) -> Lz4Pages {
        let is_within = |factor: f64| lz4_bytes as f64 <= bytes as f64 * factor;
        if Search::is_small_before_fast(level) || !is_within(LZ4_FACTOR_REWRITTEN) {
            return Lz4Pages::None;
        }
        if is_within(LZ4_FACTOR_ALL) { Lz4Pages::All } else { Lz4Pages::Rewritten }
    }

    /// The number that stands for it on disk.
    pub(crate) fn number(self) -> u8 {
        match self {
            Lz4Pages::None => 0,
            Lz4Pages::Rewritten => 1,
            Lz4Pages::All => 2,
        }
    }

    /// What a number stands for; none for one that is not known, as any codec writes any page.
    pub(crate) fn from_number(number: u8) -> Lz4Pages {
        let all = [Lz4Pages::Rewritten, Lz4Pages::All];
        all.into_iter().find(|pages| pages.number() == number).unwrap_or_default()
    }

    /// Whether a page is among them.
    pub(crate) fn has(self, is_rewritten: bool) -> bool {
        match self {
            Lz4Pages::None => false,
            Lz4Pages::Rewritten => is_rewritten,
            Lz4Pages::All => true,
        }
    }
}

/// Pages of a tree.
#[derive(Debug, Default)]
struct Sample {
    trained_on: Vec<u8>,
    /// Length of each.
    lengths: Vec<usize>,
    tried: Vec<Vec<u8>>,
}

/// Runs until the store stops.
pub(crate) fn run(shared: &Shared) {
    let Some(disk) = &shared.disk else { return };
    while !shared.background.is_stopping() && disk.check_poison().is_ok() {
        match shared.dictionaries.next_waiting() {
            Some(tree) => {
                wait_for_cores(shared);
                // A failed write has stopped the store; the loop's condition sees it.
                drop(train(shared, disk, tree));
            }
            None => {
                shared.dictionaries.work.take(WaitClass::Idle, None);
            }
        }
    }
}

/// Waits until cores are not short, but not for ever: a server may always be short of them. Parks.
fn wait_for_cores(shared: &Shared) {
    let begun = runtime::now();
    let is_over = || begun.elapsed() >= PATIENCE || shared.background.is_stopping();
    while !shared.governor.have_cores_rested(runtime::now()) && !is_over() {
        runtime::sleep(LOOK_EVERY);
        shared.governor.look_at_cores(runtime::now(), runtime::pressure);
    }
}

/// Makes a dictionary for the tree if that is worth while. Parks.
fn train(shared: &Shared, disk: &Disk, tree: TreeId) -> Result<(), StoreError> {
    let asked = shared.codecs.of(tree);
    let Some(level) = asked.dictionary_level else { return Ok(()) };
    let now = shared.dictionaries.writer(disk, tree, level).unwrap_or(asked.codec);
    let has_one = now.dictionary() != 0;
    let sample = sample(shared, tree);
    if sample.lengths.len() + sample.tried.len() < SAMPLE_PAGES_MIN {
        return Ok(());
    }
    let begun = runtime::now();
    let options = shared.dictionaries.options;
    let least_gain = if has_one { options.least_gain } else { options.least_gain_first };
    let (content, search, lz4_pages) = runtime::blocking(move || {
        let plain = (!has_one).then(|| sample.best_without(level));
        let before = plain.map_or_else(|| sample.bytes(&*now), |(_, bytes)| bytes);
        let found = worthwhile(&sample, level, before, least_gain);
        let bytes = found.as_ref().map_or(before, |(_, after)| *after);
        let lz4_bytes = sample.bytes(&*codec::codec(CodecId::Lz4, 0));
        let lz4_pages = Lz4Pages::choose(level, lz4_bytes, bytes);
        let content = found.map(|(content, _)| Content { lz4_pages, ..content });
        (content, plain.map(|(search, _)| search), lz4_pages)
    });
    add(&shared.counters.dictionary_nanos, begun.elapsed().as_nanos() as u64);
    if shared.codecs.of(tree).dictionary_level != Some(level) {
        // What it asks for now is another thing; it will be looked at for that.
        return Ok(());
    }
    shared.dictionaries.write_with_lz4(tree, lz4_pages);
    // Of a tree that LZ4 writes it would never be used.
    if let Some(content) = content.filter(|_| lz4_pages != Lz4Pages::All) {
        return give_birth(shared, disk, tree, &content);
    }
    if let Some(search) = search {
        shared.dictionaries.search_by(tree, search);
    }
    shared.dictionaries.refused(tree);
    add(&shared.counters.dictionaries_refused, 1);
    Ok(())
}

/// A dictionary from the sample, if its other pages take enough less than `before` with it, and
/// what they take. Which of them LZ4 writes is another question.
fn worthwhile(
    sample: &Sample,
    level: i32,
    before: usize,
    least_gain: f64,
) -> Option<(Content, usize)> {
    // A small sample is no better than its own pages.
    let bytes_max = DICTIONARY_BYTES.min(sample.trained_on.len() / 4);
    let content = codec::train(&sample.trained_on, &sample.lengths, bytes_max)?;
    let reader = Arc::new(Dictionary::new(&content)?);
    let (search, after) = Search::choose(level, |search| {
        let with = codec::with_dictionary(level, search, 1, &content, reader.clone());
        with.map_or(usize::MAX, |with| sample.bytes(&*with))
    });
    let saves_enough = after as f64 <= before as f64 * (1.0 - least_gain);
    let content = Content { bytes: content, search, lz4_pages: Lz4Pages::None };
    saves_enough.then_some((content, after))
}

impl Sample {
    /// What the pages take on disk that are not trained on.
    fn bytes(&self, codec: &dyn Codec) -> usize {
        let mut target = vec![0; class_bytes(crate::header::CLASS_MAX)];
        let packed = self.tried.iter().map(|page| blob::pack(page, codec, &mut target).bytes);
        packed.map(blob::blob_bytes).sum()
    }

    /// The best search without a dictionary, and what these pages take by it.
    fn best_without(&self, level: i32) -> (Search, usize) {
        Search::choose(level, |search| self.bytes(&*codec::searching(level, search)))
    }
}

/// The dictionary becomes durable, then known (dictionaries.rs, invariant 1). Parks.
fn give_birth(
    shared: &Shared,
    disk: &Disk,
    tree: TreeId,
    content: &Content,
) -> Result<(), StoreError> {
    // The tree's number is given for good once the log that says so is durable.
    let durable = disk.wal.wait_durable(disk.wal.end());
    durable.map_err(|error| disk.fatal(&error.to_string()))?;
    let Some(name) = shared.dictionaries.next_name(tree) else { return Ok(()) };
    if disk.superblock().incompatible & Superblock::DICTIONARIES == 0 {
        disk.write_superblock(|superblock| superblock.incompatible |= Superblock::DICTIONARIES)?;
    }
    match dictionary_file::write(&disk.dir, disk.uuid, name, content) {
        Ok(()) => {}
        Err(WriteError::Full) => return dictionary_file::remove_unfinished(&disk.dir),
        Err(WriteError::Failed(reason)) => return Err(disk.fatal(&reason)),
    }
    probe!("pagestore_dictionary_made");
    shared.dictionaries.add(name, dictionary_file::file_bytes(content.bytes.len()) as u64);
    // With it, pages may gain that did not.
    shared.governor.forget(tree);
    add(&shared.counters.dictionaries_made, 1);
    Ok(())
}

/// Pages spread over all of the tree's. Parks.
fn sample(shared: &Shared, tree: TreeId) -> Sample {
    let extents = shared.space.mirror.lock().allocated_of(tree);
    let mut pids = Vec::new();
    for (first, allocated) in extents {
        let is_set = |bit: &u64| allocated[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
        pids.extend((0..EXTENT_PAGES).filter(is_set).map(|bit| PageId::new(first.get() + bit)));
    }
    let count = match pids.len().min(SAMPLE_PAGES) {
        count if count > 0 && count.is_multiple_of(STRIDE) => count - 1,
        count => count,
    };
    let mut sample = Sample::default();
    let mut bytes = 0;
    for number in 0..count {
        // In such an order that the first ones, if large pages leave room for no more, are spread.
        let place = number * STRIDE % count;
        let Some(page) = page(shared, pids[place * pids.len() / count]) else { continue };
        bytes += page.len();
        if number % TRIED_OF == TRIED_OF - 1 {
            sample.tried.push(page);
        } else {
            sample.trained_on.extend_from_slice(&page);
            sample.lengths.push(page.len());
        }
        if bytes >= SAMPLE_BYTES {
            break;
        }
        runtime::yield_if_due();
    }
    sample
}

/// The bytes of a page as it is in memory or was written in full last; none that is changing or
/// cannot be read. Parks.
fn page(shared: &Shared, pid: PageId) -> Option<Vec<u8>> {
    match SharedPage::unmarked(shared, pid) {
        Ok(page) => return Some(page.to_vec()),
        Err(Retry::Miss(_)) => {}
        Err(_) => return None,
    }
    let place = shared.array.get(pid)?.place();
    if place.is_resident() || place == Place::NONE {
        return None;
    }
    let read = shared.with_blob(pid, place.location(), |blob, bytes| {
        let dictionary = shared.dictionary_of(blob)?;
        let mut page = vec![0; class_bytes(blob.class)];
        blob::decode(blob, bytes, dictionary.as_deref(), &mut page)?;
        Ok(page)
    });
    read.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    /// Pages of which so many tenths are bytes by chance and the rest digits by chance.
    fn pages(noise_tenths: usize) -> Sample {
        let mut random = Random::new(7);
        let mut byte = |at: usize| match at % 1000 < noise_tenths * 100 {
            true => random.next_u64() as u8,
            false => b'0' + random.below(10) as u8,
        };
        let tried = (0..24).map(|_| (0..8192).map(&mut byte).collect()).collect();
        Sample { tried, ..Sample::default() }
    }

    #[test]
    fn lz4_takes_a_trees_pages_by_what_they_would_get_larger() {
        let choose = |level: i32, noise_tenths: usize| {
            let sample = pages(noise_tenths);
            let lz4_bytes = sample.bytes(&*codec::codec(CodecId::Lz4, 0));
            Lz4Pages::choose(level, lz4_bytes, sample.best_without(level).1)
        };
        assert_eq!(choose(6, 9), Lz4Pages::All, "hardly");
        assert_eq!(choose(6, 6), Lz4Pages::Rewritten, "by a third");
        assert_eq!(choose(6, 0), Lz4Pages::None, "by much");
        assert_eq!(choose(7, 9), Lz4Pages::None, "small before fast");
        assert!(Lz4Pages::All.has(false) && Lz4Pages::Rewritten.has(true));
        assert!(!Lz4Pages::Rewritten.has(false) && !Lz4Pages::None.has(true));
        for pages in [Lz4Pages::None, Lz4Pages::Rewritten, Lz4Pages::All] {
            assert_eq!(Lz4Pages::from_number(pages.number()), pages);
        }
        assert_eq!(Lz4Pages::from_number(9), Lz4Pages::None);
    }
}
