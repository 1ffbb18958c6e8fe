//! The compression dictionaries of trees: which there are, those made ready, and their end; and
//! what else a training has found of a tree: how it is searched, which of its pages LZ4 writes.
//!
//! 1. A dictionary is durable before the first page that needs it is written (dictionary_file.rs),
//!    and the superblock says before that that there may be some.
//! 2. It is never changed, and its name never given to another one while pages may name it: the
//!    numbers of a tree go up.
//! 3. It is removed when no page can name it any more, not in a crash recovery either: its tree
//!    owned no page number at some moment, the log has gone on since, and a durable superblock says
//!    that redo begins behind that moment. From that moment on nothing is written with it.
//! 4. A start lists names only. What is needed is read and made ready when a page first asks, and
//!    of that so many bytes are kept; a dictionary that cannot be read makes its pages corrupt.

use crate::counters::add;
use crate::dictionary_file::{self, Content, DictionaryName};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::header::class_bytes;
use crate::options::DictionaryOptions;
use crate::store::{PageStore, Shared};
use crate::training::Lz4Pages;
use base::{Lsn, TreeId, probe};
use codec::{Codec, Dictionary, Search};
use runtime::sync::{Event, Mutex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Of the bytes of the pool, one of so many may be taken by dictionaries that are kept ready ...
const READY_OF_POOL: usize = 32;
/// ... but not fewer than these, and not more.
const READY_BYTES_LEAST: usize = 4 << 20;
const READY_BYTES_MOST: usize = 64 << 20;
/// One counts for this much at least, so that there are never too many to look through.
const ENTRY_BYTES: usize = 4 << 10;
/// Dictionaries of a tree at most, those of its old pages included.
const OF_A_TREE_MAX: usize = 8;
/// After a training a tree is asked again when so many times as much has been written ...
const GROWTH: u64 = 4;
/// ... and after one that gave no dictionary, when so many times that has: rows that have nothing
/// in common seldom get it.
const GROWTH_REFUSED: u64 = 4;
/// Reads of a file before it counts as damaged.
const READS: usize = 2;
/// One page in so many is compressed without its dictionary, too, to know what that saves.
const COMPARED_EVERY: u64 = 64;

/// The dictionaries of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DictionaryUsage {
    /// How many there are.
    pub count: u64,
    /// Bytes of their files.
    pub file_bytes: u64,
    /// Memory of those that are kept ready.
    pub ready_bytes: u64,
}

/// Why there is none.
pub(crate) type Detail = Arc<str>;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    pub(crate) options: DictionaryOptions,
    state: Mutex<State>,
    /// Set when a tree waits for a training.
    pub(crate) work: Event,
}

#[derive(Debug, Default)]
struct State {
    trees: BTreeMap<TreeId, OfTree>,
    /// The highest number ever given, by tree.
    given: BTreeMap<TreeId, u16>,
    ready: BTreeMap<DictionaryName, Ready>,
    /// What those may take.
    ready_bytes_max: usize,
    /// Trees to train a dictionary for.
    waiting: VecDeque<TreeId>,
    /// Raised by every use of one that is ready.
    uses: u64,
}

/// What is known of a tree.
#[derive(Debug, Default)]
struct OfTree {
    /// Dictionaries whose files are there, with the bytes of these.
    files: BTreeMap<u16, u64>,
    /// Bytes of pages written in full since the start.
    written: u64,
    /// When it is asked for a training.
    asked_at: u64,
    /// What a training has found best without a dictionary; not known behind a restart.
    search: Option<Search>,
    /// What a training has found, if that is known: behind a restart with the dictionary.
    lz4_pages: Option<Lz4Pages>,
    /// It owned no page number when the log ended here.
    gone_since: Option<Lsn>,
}

impl OfTree {
    fn forget(&mut self) {
        (self.search, self.lz4_pages, self.asked_at) = (None, None, 0);
    }
}

/// A dictionary that was read.
#[derive(Debug)]
struct Ready {
    reader: Result<Arc<Dictionary>, Detail>,
    /// With the level that it was made for.
    writer: Option<Writer>,
    used: u64,
}

impl Ready {
    /// The memory that it takes.
    fn bytes(&self) -> usize {
        let reader = self.reader.as_ref().map_or(0, |reader| reader.bytes());
        let codec = self.writer.as_ref().and_then(|(_, codec)| codec.as_ref());
        (reader + codec.map_or(0, |codec| codec.held_bytes())).max(ENTRY_BYTES)
    }
}

/// A level, and the codec of that level with the dictionary, if it can be made.
type Writer = (i32, Option<Arc<dyn Codec>>);

impl Dictionaries {
    /// `pool_bytes`: memory for pages.
    pub(crate) fn new(options: DictionaryOptions, pool_bytes: usize) -> Dictionaries {
        let ready_bytes_max =
            (pool_bytes / READY_OF_POOL).clamp(READY_BYTES_LEAST, READY_BYTES_MOST);
        let state = State { ready_bytes_max, ..State::default() };
        Dictionaries { options, state: Mutex::new(state), work: Event::new() }
    }

    /// Finds what a former run has left. Parks.
    pub(crate) fn find(&self, dir: &Path) -> Result<(), StoreError> {
        dictionary_file::remove_unfinished(dir)?;
        for name in dictionary_file::list(dir)? {
            self.add(name, dictionary_file::length(dir, name)?);
        }
        Ok(())
    }

    /// A dictionary's file is there and durable: pages of its tree are written with it from now on.
    pub(crate) fn add(&self, name: DictionaryName, file_bytes: u64) {
        let mut state = self.state.lock();
        let older = DictionaryName { number: 0, ..name }..name;
        state.ready.range_mut(older).for_each(|(_, ready)| ready.writer = None);
        state.trees.entry(name.tree).or_default().files.insert(name.number, file_bytes);
        let given = state.given.entry(name.tree).or_default();
        *given = name.number.max(*given);
    }

    /// How many there are and what they take.
    fn usage(&self) -> DictionaryUsage {
        let state = self.state.lock();
        let lengths = || state.trees.values().flat_map(|of_tree| of_tree.files.values());
        DictionaryUsage {
            count: lengths().count() as u64,
            file_bytes: lengths().sum(),
            ready_bytes: state.ready_bytes() as u64,
        }
    }

    /// For reading pages that name it. The error says what is wrong with its file. Parks.
    pub(crate) fn reader(
        &self,
        disk: &Disk,
        name: DictionaryName,
    ) -> Result<Arc<Dictionary>, Detail> {
        if let Some(reader) = self.state.lock().get(name).map(|ready| ready.reader.clone()) {
            return reader;
        }
        let reader = read(disk, name)?.and_then(|content| prepare(name, &content));
        self.state.lock().keep(name, reader.clone(), None);
        reader
    }

    /// The codec for pages of the tree with its newest dictionary or, if it has none, with the
    /// search that was found for it. Parks.
    pub(crate) fn writer(&self, disk: &Disk, tree: TreeId, level: i32) -> Option<Arc<dyn Codec>> {
        let name = {
            let mut state = self.state.lock();
            let of_tree = state.trees.get(&tree)?;
            if of_tree.gone_since.is_some() {
                return None;
            }
            let Some((&number, _)) = of_tree.files.last_key_value() else {
                return of_tree.search.map(|search| codec::searching(level, search));
            };
            let name = DictionaryName { tree, number };
            match state.get(name) {
                Some(Ready { reader: Err(_), .. }) => return None,
                Some(Ready { writer: Some((made_for, codec)), .. }) if *made_for == level => {
                    return codec.clone();
                }
                _ => name,
            }
        };
        let content = read(disk, name).ok()?;
        let read = content.and_then(|content| Ok((prepare(name, &content)?, content)));
        let codec = read.as_ref().ok().and_then(|(reader, content)| {
            let Content { bytes, search, .. } = content;
            codec::with_dictionary(level, *search, name.number, bytes, reader.clone())
        });
        let lz4_pages = read.as_ref().ok().map(|(_, content)| content.lz4_pages);
        let reader = read.map(|(reader, _)| reader);
        let mut state = self.state.lock();
        state.keep(name, reader, Some((level, codec.clone())));
        if let Some(of_tree) = state.trees.get_mut(&tree) {
            of_tree.lz4_pages = of_tree.lz4_pages.or(lz4_pages);
        }
        codec
    }

    /// A training gave no dictionary.
    pub(crate) fn refused(&self, tree: TreeId) {
        if let Some(of_tree) = self.state.lock().trees.get_mut(&tree) {
            of_tree.asked_at = of_tree.asked_at.saturating_mul(GROWTH_REFUSED);
        }
    }

    /// Pages of the tree are searched so while it has no dictionary.
    pub(crate) fn search_by(&self, tree: TreeId, search: Search) {
        self.state.lock().trees.entry(tree).or_default().search = Some(search);
    }

    /// The tree asks for something else from now on: what was found does not count, and it is
    /// looked at when the next page of it has been written.
    pub(crate) fn forget(&self, tree: TreeId) {
        if let Some(of_tree) = self.state.lock().trees.get_mut(&tree) {
            of_tree.forget();
        }
    }

    /// The same of all trees.
    pub(crate) fn forget_all(&self) {
        self.state.lock().trees.values_mut().for_each(OfTree::forget);
    }

    /// These pages of the tree are written with LZ4 from now on.
    pub(crate) fn write_with_lz4(&self, tree: TreeId, pages: Lz4Pages) {
        self.state.lock().trees.entry(tree).or_default().lz4_pages = Some(pages);
    }

    /// Whether a page of the tree is written with LZ4; `is_rewritten`: it has a copy on disk.
    pub(crate) fn is_for_lz4(&self, tree: TreeId, is_rewritten: bool) -> bool {
        let state = self.state.lock();
        let found = state.trees.get(&tree).and_then(|of_tree| of_tree.lz4_pages);
        found.is_some_and(|pages| pages.has(is_rewritten))
    }

    /// A page of the tree was written in full as it asks for, and gained.
    pub(crate) fn note_written(&self, tree: TreeId, bytes: usize) {
        if self.options.after_bytes == 0 {
            return;
        }
        let mut state = self.state.lock();
        let of_tree = state.trees.entry(tree).or_default();
        of_tree.written += bytes as u64;
        let asked_at = of_tree.asked_at.max(self.options.after_bytes);
        if of_tree.written < asked_at || of_tree.files.len() >= OF_A_TREE_MAX {
            return;
        }
        of_tree.asked_at = of_tree.written.saturating_mul(GROWTH);
        state.waiting.push_back(tree);
        drop(state);
        self.work.set();
    }

    /// The next tree to train for.
    pub(crate) fn next_waiting(&self) -> Option<TreeId> {
        self.state.lock().waiting.pop_front()
    }

    /// What the next dictionary of the tree is called; `None` if there can be none.
    pub(crate) fn next_name(&self, tree: TreeId) -> Option<DictionaryName> {
        let state = self.state.lock();
        state.trees.get(&tree).filter(|of_tree| of_tree.gone_since.is_none())?;
        let given = state.given.get(&tree).copied().unwrap_or(0);
        Some(DictionaryName { tree, number: given.checked_add(1)? })
    }

    /// Looks for trees that own nothing; returns the dictionaries that may be removed, which are
    /// forgotten (invariant 3). `redo` is where a redo would begin, `end` the end of the log.
    /// Of some trees, `owners` are those that own page numbers, if that is known.
    fn take_unused(
        &self,
        redo: Lsn,
        end: impl FnOnce() -> Lsn,
        owners: impl FnOnce(BTreeSet<TreeId>) -> Option<BTreeSet<TreeId>>,
    ) -> Vec<DictionaryName> {
        let mut state = self.state.lock();
        if state.trees.is_empty() {
            return Vec::new();
        }
        // Within the lock: who asks for a writer from here on sees what is found.
        let trees = state.trees.keys().copied().collect();
        let Some(owners) = owners(trees) else { return Vec::new() };
        let end = end();
        let mut unused = Vec::new();
        state.trees.retain(|&tree, of_tree| {
            if owners.contains(&tree) {
                of_tree.gone_since = None;
                return true;
            }
            let since = *of_tree.gone_since.get_or_insert(end);
            let is_unused = since <= redo || base::mutant!("dictionary_removed_early");
            if is_unused {
                let name = |number: &u16| DictionaryName { tree, number: *number };
                unused.extend(of_tree.files.keys().map(name));
            }
            !is_unused
        });
        unused.iter().for_each(|name| drop(state.ready.remove(name)));
        unused
    }
}

impl State {
    /// One that is ready, which counts as used.
    fn get(&mut self, name: DictionaryName) -> Option<&Ready> {
        self.uses += 1;
        let ready = self.ready.get_mut(&name)?;
        ready.used = self.uses;
        Some(ready)
    }

    /// What all that are ready take.
    fn ready_bytes(&self) -> usize {
        self.ready.values().map(Ready::bytes).sum()
    }

    /// Keeps one ready in place of those that were not used for longest.
    fn keep(
        &mut self,
        name: DictionaryName,
        reader: Result<Arc<Dictionary>, Detail>,
        writer: Option<Writer>,
    ) {
        self.uses += 1;
        let writer = writer.or_else(|| self.ready.remove(&name)?.writer);
        self.ready.insert(name, Ready { reader, writer, used: self.uses });
        let mut bytes = self.ready_bytes();
        while bytes > self.ready_bytes_max && self.ready.len() > 1 {
            let oldest = self.ready.iter().min_by_key(|(_, ready)| ready.used);
            let Some((&oldest, ready)) = oldest else { break };
            probe!("pagestore_dictionary_put_away");
            bytes -= ready.bytes();
            self.ready.remove(&oldest);
        }
    }
}

/// The content of a dictionary or, within, what is wrong with its file for good: damage is looked
/// at once more. Parks.
fn read(disk: &Disk, name: DictionaryName) -> Result<Result<Content, Detail>, Detail> {
    let mut outcome = Err("");
    for _ in 0..READS {
        let stored = dictionary_file::read(&disk.dir, disk.uuid, name)
            .map_err(|error| format!("{name}, which it needs, cannot be read: {error}"))?;
        if stored.copies.iter().any(Result::is_err) {
            probe!("pagestore_dictionary_copy_damaged");
        }
        outcome = stored.content();
        if outcome.is_ok() {
            break;
        }
    }
    Ok(outcome.map_err(|detail| format!("{name}, which it needs, is damaged: {detail}").into()))
}

fn prepare(name: DictionaryName, content: &Content) -> Result<Arc<Dictionary>, Detail> {
    let prepared = Dictionary::new(&content.bytes).map(Arc::new);
    prepared.ok_or_else(|| format!("{name}, which it needs, is no dictionary").into())
}

impl Shared {
    /// What a blob needs beside its bytes. Parks.
    pub(crate) fn dictionary_of(
        &self,
        blob: &crate::blob::BlobHeader,
    ) -> Result<Option<Arc<Dictionary>>, Detail> {
        match &self.disk {
            Some(disk) if blob.dictionary != 0 => {
                let name = DictionaryName { tree: blob.tree, number: blob.dictionary };
                self.dictionaries.reader(disk, name).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A page of `page.len()` bytes was written with a dictionary, as `stored_bytes`: now and then,
    /// what it would take without is looked at, as a page of a tree that was not tried.
    pub(crate) fn compare_dictionary(&self, page: &[u8], without: &dyn Codec, stored_bytes: u64) {
        let counters = &self.counters;
        add(&counters.dictionary_bytes, stored_bytes);
        let count = counters.dictionary_pages.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(COMPARED_EVERY) {
            let mut target = vec![0; class_bytes(crate::header::class(page))];
            let plain = crate::blob::pack(page, without, &mut target);
            add(&counters.dictionary_compared_bytes, stored_bytes);
            let plain_bytes = crate::blob::blob_bytes(plain.bytes) as u64;
            add(&counters.dictionary_plain_bytes, plain_bytes);
        }
    }
}

impl PageStore {
    /// Removes dictionaries of trees that are gone. To be called when a superblock is durable by
    /// which redo begins at `redo`. Parks.
    pub fn remove_unused_dictionaries(&self, redo: Lsn) {
        let shared = self.shared();
        let Some(disk) = &shared.disk else { return };
        if !shared.background.is_recovered.load(Ordering::Relaxed) {
            return;
        }
        let owners = |trees: BTreeSet<TreeId>| {
            let mirror = shared.space.mirror.lock();
            let all_have_pages = trees.iter().all(|&tree| mirror.pages_of(tree) > 0);
            match mirror.unreadable_map() {
                Some(_) => None,
                None if all_have_pages => Some(trees),
                // A tree that is being built may own numbers that no page has yet.
                None => Some(mirror.trees()),
            }
        };
        let unused = shared.dictionaries.take_unused(redo, || disk.wal.end(), owners);
        for name in unused {
            probe!("pagestore_dictionary_removed");
            // What stays is found and tried again by the next start.
            let _ = dictionary_file::remove(&disk.dir, name);
        }
    }

    /// The dictionaries that there are.
    pub fn dictionaries(&self) -> DictionaryUsage {
        self.shared().dictionaries.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dictionaries() -> Dictionaries {
        Dictionaries::new(
            DictionaryOptions { after_bytes: 1000, least_gain: 0.0, least_gain_first: 0.0 },
            0,
        )
    }

    fn name(tree: u32, number: u16) -> DictionaryName {
        DictionaryName { tree: TreeId::new(tree), number }
    }

    #[test]
    fn dictionaries_go_when_redo_begins_behind_the_end_of_their_tree() {
        let all = dictionaries();
        [name(20, 1), name(20, 2), name(21, 1)].into_iter().for_each(|name| all.add(name, 8192));
        let look = |redo: u64, end: u64, owners: Option<&[u32]>| {
            let owners = owners.map(|trees| trees.iter().map(|&tree| TreeId::new(tree)).collect());
            all.take_unused(Lsn::new(redo), || Lsn::new(end), |_| owners)
        };
        assert_eq!(look(100, 500, Some(&[20, 21])), []);
        assert_eq!(look(900, 950, None), [], "not known");
        assert_eq!(look(900, 1000, Some(&[21])), [], "gone at 1000");
        assert_eq!(look(999, 1200, Some(&[21])), []);
        assert!(all.next_name(TreeId::new(20)).is_none(), "nothing is made for what is gone");
        assert_eq!(look(999, 1300, Some(&[20, 21])), [], "it was only empty");
        assert_eq!(look(1100, 1400, Some(&[21])), [], "gone at 1400");
        assert_eq!(look(1400, 1500, Some(&[21])), [name(20, 1), name(20, 2)]);
        assert_eq!(all.usage(), DictionaryUsage { count: 1, file_bytes: 8192, ready_bytes: 0 });
        assert_eq!(look(1600, 1700, Some(&[21])), []);
        // A number is never given again, even if the tree should be.
        all.note_written(TreeId::new(20), 1);
        assert_eq!(all.next_name(TreeId::new(20)), Some(name(20, 3)));
    }

    #[test]
    fn trees_are_asked_after_so_much_and_then_four_times_as_much_or_sixteen() {
        let all = dictionaries();
        let tree = TreeId::new(30);
        let mut asked = Vec::new();
        for written in 1..=200_000 {
            all.note_written(tree, 1);
            if let Some(tree) = all.next_waiting() {
                asked.push(written);
                all.add(all.next_name(tree).expect("a name"), 8192);
            }
        }
        assert_eq!(asked, [1000, 4000, 16_000, 64_000]);
        for number in 5..=8 {
            all.add(name(30, number), 8192);
        }
        all.note_written(tree, 1 << 40);
        assert_eq!(all.next_waiting(), None, "it has as many as may be");
        let other = TreeId::new(31);
        let is_asked = |written: u64| {
            all.note_written(other, written as usize);
            all.next_waiting() == Some(other)
        };
        assert!(is_asked(1000));
        all.refused(other);
        assert!(!is_asked(14_999) && is_asked(1), "it gained nothing: not before 16,000");
        all.write_with_lz4(other, Lz4Pages::All);
        assert!(all.is_for_lz4(other, false) && !all.is_for_lz4(tree, true));
        all.forget(other);
        assert!(is_asked(1) && !all.is_for_lz4(other, true), "it asks for something else");
        let off = Dictionaries::new(
            DictionaryOptions { after_bytes: 0, least_gain: 0.0, least_gain_first: 0.0 },
            0,
        );
        off.note_written(tree, 1 << 40);
        assert_eq!(off.next_waiting(), None);
    }

    #[test]
    fn only_so_many_bytes_are_kept_ready() {
        for (pool_bytes, max) in [(64 << 20, 4 << 20), (512 << 20, 16 << 20), (8 << 30, 64 << 20)] {
            let all = Dictionaries::new(DictionaryOptions::default(), pool_bytes);
            let mut state = all.state.lock();
            for tree in 0..20_000 {
                state.keep(name(tree, 1), Err("unreadable".into()), Some((0, None)));
                assert!(state.get(name(0, 1)).is_some(), "used all the time");
            }
            assert_eq!((state.ready.len(), state.ready_bytes()), (max / ENTRY_BYTES, max));
            let oldest = 20_000 - state.ready.len() as u32 + 1;
            assert!(state.get(name(oldest - 1, 1)).is_none());
            assert!(state.get(name(oldest, 1)).is_some());
            state.keep(name(oldest, 1), Err("unreadable".into()), None);
            assert!(state.get(name(oldest, 1)).is_some_and(|ready| ready.writer.is_some()));
        }
    }

    /// A dictionary as they are made, for reading and, at a level, for writing.
    fn ready(level: i32) -> (Arc<Dictionary>, Option<Writer>) {
        let text = |number: usize| format!("the row number {number} has words, {}. ", number % 77);
        let samples: Vec<String> =
            (0..200).map(|page| (page..page + 100).map(text).collect()).collect();
        let lengths: Vec<usize> = samples.iter().map(String::len).collect();
        let content = codec::train(samples.concat().as_bytes(), &lengths, 16 << 10);
        let content = content.expect("samples with much in common");
        let reader = Arc::new(Dictionary::new(&content).expect("a dictionary"));
        let codec = codec::with_dictionary(level, Search::ByLevel, 1, &content, reader.clone());
        (reader, Some((level, codec)))
    }

    #[test]
    fn what_is_kept_ready_is_counted_and_an_older_dictionary_is_only_read() {
        let all = Dictionaries::new(DictionaryOptions::default(), 0);
        let (reader, writer) = ready(6);
        let reading = reader.bytes() as u64;
        let codec = writer.as_ref().and_then(|(_, codec)| codec.as_ref());
        let both = reading + codec.expect("a dictionary").held_bytes() as u64;
        assert!(reading > 16 << 10 && both > reading + (64 << 10), "{reading} and {both}");
        [name(20, 1), name(21, 1)].into_iter().for_each(|name| all.add(name, 8192));
        all.state.lock().keep(name(20, 1), Ok(reader.clone()), writer.clone());
        all.state.lock().keep(name(21, 1), Ok(reader.clone()), None);
        assert_eq!(all.usage().ready_bytes, both + reading);
        all.add(name(20, 2), 8192);
        assert_eq!(all.usage().ready_bytes, 2 * reading);
        for tree in 100..200 {
            all.state.lock().keep(name(tree, 1), Ok(reader.clone()), writer.clone());
        }
        let bytes = all.usage().ready_bytes;
        assert!(bytes <= READY_BYTES_LEAST as u64 && bytes + both > READY_BYTES_LEAST as u64);
    }
}
