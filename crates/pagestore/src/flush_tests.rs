use super::*;
use crate::dictionary_file::{self, Content, DictionaryName};
use crate::recent::Reads;
use crate::redo::{self, OP_FORMAT};
use crate::training::Lz4Pages;
use crate::{Compression, PageStore, StoreOptions, Superblock};
use base::{TreeId, TrxId};
use codec::CodecId;
use runtime::sim::{SimConfig, Simulation};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wal::{LsnRange, RecordBuilder, RecordKind, Wal, WalOptions};

const UUID: [u8; 16] = *b"flushed in tests";
const PID: PageId = PageId::new(300);
const CLASS: u8 = 13;
/// The tree that the page is of.
const TREE: TreeId = TreeId::new(9);

/// Runs a test in a simulation, on a new store that is closed behind it.
fn on_a_store(test: impl FnOnce(&PageStore, &Wal) + Send + 'static) {
    let mut simulation = Simulation::new(SimConfig { buggify: false, ..SimConfig::new(1) });
    let ended = simulation.run(|| {
        let (store, wal) = open();
        test(&store, &wal);
        store.close().expect("no faults");
        wal.close().expect("no faults");
    });
    ended.expect("no crash");
}

fn open() -> (PageStore, Arc<Wal>) {
    for dir in ["/data", "/wal"] {
        runtime::fs::create_dir_all(dir).expect("a directory");
    }
    let options = WalOptions { ring_bytes: 64 << 10, ..WalOptions::new(UUID) };
    let wal = Wal::create(Path::new("/wal"), options, 1).expect("a log");
    let mut superblock = Superblock::new(UUID, 256 << 10, 8);
    superblock.redo_lsn = wal::FIRST_LSN;
    superblock.store(Path::new("/data")).expect("a superblock");
    let options =
        StoreOptions { pool_bytes: 1 << 20, huge_pages: false, ..StoreOptions::new("/data") };
    let store = PageStore::create(options, wal.clone(), superblock).expect("a store");
    (store, wal)
}

fn log(wal: &Wal, kind: RecordKind, payload: &[u8]) -> LsnRange {
    let mut record = RecordBuilder::new(kind, TrxId::ZERO);
    record.page_op(PID, OP_FORMAT, Lsn::ZERO, |out| out.extend_from_slice(payload));
    let permit = wal.admit(payload.len() + 64).expect("room");
    wal.append(&permit, &record)
}

/// Makes the page with this byte in it. Returns what the dirty queue has of it.
fn make(store: &PageStore, wal: &Wal, byte: u8) -> DirtyPage {
    let format = redo::Format {
        class: CLASS,
        page_type: 7,
        format_version: 1,
        flags: 0,
        tree: TREE,
        head: &[byte; 100],
        tail: b"",
    };
    let mut payload = Vec::new();
    format.encode(&mut payload);
    let mut page = store.new_page(PID, CLASS).expect("a frame");
    redo::apply(&mut page, OP_FORMAT, &payload).expect("our own op");
    let range = log(wal, RecordKind::Structure, &payload);
    page.mark_dirty(range);
    drop(page);
    let frame = store.shared().array.entry(PID).place().frame();
    DirtyPage { frame, pid: PID, rec_lsn: range.start }
}

/// Invariant 2: between two looks at the same page of a batch (dirty.rs, invariant 3) the page is
/// freed and made anew in the frame that it left.
#[test]
fn a_page_made_anew_within_a_batch_is_not_taken_for_its_former_copy() {
    on_a_store(|store, wal| {
        let shared = store.shared().clone();
        let disk = shared.disk.as_ref().expect("a store on disk");
        let dirty = make(store, wal, 1);
        let batch = shared.dirty.take(vec![dirty], 8, Lsn::MAX).expect("it is dirty");
        assert_eq!(batch.pages, [dirty, dirty], "found, and in the queue");
        let mut flusher = Flusher::new();
        flusher.begin(disk, &batch);
        let staged = flusher.stage(&shared, batch.pages[0], batch.ticket);
        assert!(matches!(staged, Outcome::Staged));

        let page = store.exclusive(PID).expect("in memory");
        page.discard(log(wal, RecordKind::Structure, b""));
        let anew = make(store, wal, 2);
        assert_eq!(anew.frame, dirty.frame, "the frame that was given back last");
        let staged = flusher.stage(&shared, batch.pages[1], batch.ticket);
        assert!(matches!(staged, Outcome::Staged));
        flusher.write(&shared, disk, &mut Vec::new()).expect("no faults");
        shared.dirty.finish(&batch, &[], &[]);

        let descriptor = shared.frames.descriptor(anew.frame);
        assert!(!descriptor.is_dirty(), "its newest copy is on disk");
        let copy = Location::from_word(descriptor.location.load(Ordering::Relaxed));
        let mut buffer = AlignedBuf::zeroed(0);
        let bytes = disk.read_copy(copy, &mut buffer).expect("a copy");
        let blob = blob::verify(bytes).expect("an intact copy");
        let mut on_disk = vec![0; class_bytes(CLASS)];
        blob::decode(&blob, bytes, None, &mut on_disk).expect("a page");
        let in_memory = store.shared_page(PID).expect("in memory").to_vec();
        assert!(on_disk == in_memory, "the copy of the page that was freed counts");
        flusher.close(disk).expect("no faults");
    });
}

/// Changes bytes of the page. Returns what the dirty queue would have of it, were it clean before.
fn patch(store: &PageStore, wal: &Wal, dirty: DirtyPage, bytes: &[u8]) -> DirtyPage {
    let mut payload = Vec::new();
    redo::encode_patch(100, bytes, &mut payload);
    let mut page = store.exclusive(PID).expect("in memory");
    let mut record = RecordBuilder::new(RecordKind::Change, TrxId::ZERO);
    record.page_op(PID, redo::OP_PATCH, page.page_lsn(), |out| out.extend_from_slice(&payload));
    let permit = wal.admit(payload.len() + 64).expect("room");
    let range = wal.append(&permit, &record);
    redo::apply(&mut page, redo::OP_PATCH, &payload).expect("our own op");
    page.mark_dirty(range);
    DirtyPage { rec_lsn: range.start, ..dirty }
}

/// Writes the page and returns where its full copy and its delta lie.
fn written(store: &PageStore, flusher: &mut Flusher, dirty: DirtyPage) -> [Location; 2] {
    let shared = store.shared().clone();
    let disk = shared.disk.as_ref().expect("a store on disk");
    let batch = shared.dirty.take(vec![dirty], 64, Lsn::MAX).expect("it is dirty");
    let count = flusher.flush_batch(&shared, disk, &batch).expect("no faults");
    assert_eq!(count, 1, "of two entries in the queue one is stale");
    let word = shared.frames.descriptor(dirty.frame).location.load(Ordering::Relaxed);
    [Location::from_word(word), shared.array.delta(PID).location()]
}

/// The queue is not to grow with the log (dirty.rs, invariant 1).
#[test]
fn stale_entries_go_and_what_is_dirty_stays() {
    on_a_store(|store, wal| {
        let shared = store.shared().clone();
        let dirty = make(store, wal, 1);
        for lsn in 10_000..20_000 {
            shared.dirty.push(dirty.frame, PID, Lsn::new(lsn));
        }
        shared.sweep_dirty();
        assert_eq!((shared.dirty.length(), shared.dirty.oldest()), (1, Some(dirty.rec_lsn)));
        for lsn in 10_000..13_999 {
            shared.dirty.push(dirty.frame, PID, Lsn::new(lsn));
        }
        shared.sweep_dirty();
        assert_eq!(shared.dirty.length(), 4000, "so few are not worth a look");
    });
}

/// A checkpoint takes a batch for no older than its entries (dirty.rs, invariant 4).
#[test]
fn a_page_that_is_older_than_its_entry_is_not_staged() {
    on_a_store(|store, wal| {
        let shared = store.shared().clone();
        let disk = shared.disk.as_ref().expect("a store on disk");
        let dirty = make(store, wal, 1);
        let younger = DirtyPage { rec_lsn: Lsn::new(dirty.rec_lsn.get() + 1), ..dirty };
        let mut flusher = Flusher::new();
        for (page, is_staged) in [(younger, false), (dirty, true)] {
            let batch = shared.dirty.take(vec![page], 1, Lsn::MAX).expect("one page");
            flusher.begin(disk, &batch);
            let staged = flusher.stage(&shared, page, batch.ticket);
            assert_eq!(matches!(staged, Outcome::Staged), is_staged);
            shared.dirty.finish(&batch, &[], &[]);
        }
        flusher.write(&shared, disk, &mut Vec::new()).expect("no faults");
        flusher.close(disk).expect("no faults");
    });
}

/// What lives for a short time lies apart from what lives long, and behind a directory that is no
/// longer than it must be.
#[test]
fn deltas_go_to_a_segment_of_their_own() {
    on_a_store(|store, wal| {
        let shared = store.shared().clone();
        let disk = shared.disk.as_ref().expect("a store on disk");
        let dirty = make(store, wal, 1);
        let mut incompressible = vec![0; 6000];
        base::Random::new(1).fill(&mut incompressible);
        patch(store, wal, dirty, &incompressible);
        let mut flusher = Flusher::new();
        let [full, none] = written(store, &mut flusher, dirty);
        assert!(none.is_none(), "its first copy is a full one");

        let changed = patch(store, wal, dirty, &[3; 10]);
        let [base, delta] = written(store, &mut flusher, changed);
        assert_eq!(base, full, "the base stays where it is");
        assert!(!delta.is_none());

        let segment_bytes = disk.files.segment_bytes();
        let places = [full, delta].map(|copy| copy.offset_bytes() / segment_bytes);
        assert_ne!(places[0], places[1]);
        let first = crate::segment::BLOCK_BYTES as u64 + group::blobs_offset(1) as u64;
        for copy in [full, delta] {
            assert_eq!(copy.offset_bytes() % segment_bytes, first, "right behind its directory");
        }

        // Nothing may grow now, and there is no room but in the segment of the deltas.
        flusher.pages.writer().close(disk).expect("no faults");
        disk.table.lock().segments[places[1] as usize].is_whole = true;
        disk.is_full.store(true, Ordering::Relaxed);
        let changed = patch(store, wal, dirty, &[4; 10]);
        let [full, none] = written(store, &mut flusher, changed);
        assert!(none.is_none(), "a delta would add to what lives");
        assert_eq!(full.offset_bytes() / segment_bytes, places[1]);
        flusher.close(disk).expect("no faults");
    });
}

/// The codec of a copy.
fn codec_of(disk: &Disk, copy: Location) -> CodecId {
    let mut buffer = AlignedBuf::zeroed(0);
    let bytes = disk.read_copy(copy, &mut buffer).expect("a copy");
    blob::verify(bytes).expect("an intact copy").codec
}

/// Runs a test of how pages of the tree of [`make`] are written that asks for a codec.
fn on_a_tree(
    codec: CodecId,
    test: impl FnOnce(&PageStore, &Wal, &Disk, &mut Flusher) + Send + 'static,
) {
    on_a_store(move |store, wal| {
        let shared = store.shared().clone();
        let disk = shared.disk.as_ref().expect("a store on disk");
        store.set_compression(TREE, Compression::Fixed { codec, level: 6 });
        let mut flusher = Flusher::new();
        test(store, wal, disk, &mut flusher);
        flusher.close(disk).expect("no faults");
    });
}

/// So that a page that is written several times while a load goes on is compressed once, behind it
/// (governor.rs, invariant 3).
#[test]
fn a_page_that_waits_for_being_compressed_may_wait_again() {
    on_a_tree(CodecId::Zstd, |store, wal, disk, flusher| {
        let governor = &store.shared().governor;
        let mut dirty = make(store, wal, 1);
        let mut written_as = |core_wait: u32, crowded: u32, byte: u8| {
            runtime::sim::set_pressure(core_wait, crowded);
            runtime::sleep(Duration::from_secs(2));
            assert_eq!(governor.are_cores_short(), core_wait + crowded > 0);
            dirty = patch(store, wal, dirty, &[byte; 4000]);
            let [full, none] = written(store, flusher, dirty);
            assert!(none.is_none(), "a delta is another matter");
            codec_of(disk, full)
        };
        assert_eq!(written_as(500, 0, b'a'), CodecId::None, "new");
        assert_eq!(written_as(0, 900, b'b'), CodecId::None, "its copy waits");
        assert_eq!(written_as(0, 0, b'c'), CodecId::Zstd);
        for byte in b'd'..b'g' {
            written_as(0, 0, byte);
        }
        assert_eq!(written_as(500, 0, b'g'), CodecId::Zstd, "its copy does not wait");
    });
}

/// Whatever is asked for, a load takes no longer for it (governor.rs, invariant 3).
#[test]
fn a_new_page_waits_whatever_is_asked_for() {
    for codec in [CodecId::Lz4, CodecId::Snappy, CodecId::Lzo, CodecId::Zlib, CodecId::Zstd] {
        on_a_tree(codec, move |store, wal, disk, flusher| {
            store.shared().dictionaries.write_with_lz4(TREE, Lz4Pages::All);
            let mut write = |core_wait: u32| {
                runtime::sim::set_pressure(core_wait, 0);
                runtime::sleep(Duration::from_secs(2));
                let copy = written(store, flusher, make(store, wal, 1))[0];
                let page = store.exclusive(PID).expect("in memory");
                page.discard(log(wal, RecordKind::Structure, b""));
                codec_of(disk, copy)
            };
            assert_eq!(write(500), CodecId::None);
            assert_eq!(write(0), if codec == CodecId::Zstd { CodecId::Lz4 } else { codec });
            let counters = &store.shared().counters;
            assert_eq!(counters.compression_fallbacks.load(Ordering::Relaxed), 1, "it waits");
        });
    }
}

/// A page with a copy on disk is one that changes (training.rs, invariant 4).
#[test]
fn what_changes_is_written_with_lz4_where_it_may() {
    on_a_tree(CodecId::Zstd, |store, wal, disk, flusher| {
        let shared = store.shared();
        let mut dirty = make(store, wal, 1);
        let mut written_as = |pages: Lz4Pages, byte: u8| {
            shared.dictionaries.write_with_lz4(TREE, pages);
            dirty = patch(store, wal, dirty, &[byte; 4000]);
            codec_of(disk, written(store, flusher, dirty)[0])
        };
        assert_eq!(written_as(Lz4Pages::Rewritten, b'a'), CodecId::Zstd, "new");
        assert_eq!(written_as(Lz4Pages::Rewritten, b'b'), CodecId::Lz4, "changed");
        assert_eq!(written_as(Lz4Pages::None, b'c'), CodecId::Zstd, "too large");
        assert_eq!(written_as(Lz4Pages::All, b'd'), CodecId::Lz4);
        assert_eq!(shared.counters.compression_lz4_pages.load(Ordering::Relaxed), 2);
    });
}

/// What a training has found stands in the dictionary's file, so that a start need not train again.
#[test]
fn what_lz4_writes_is_known_from_the_dictionary() {
    on_a_tree(CodecId::Zstd, |store, wal, disk, flusher| {
        let row = |number: usize| format!("the row number {number} has words, {}. ", number % 77);
        let samples: Vec<String> = (0..200).map(|at| (at..at + 100).map(row).collect()).collect();
        let lengths: Vec<usize> = samples.iter().map(String::len).collect();
        let bytes = codec::train(samples.concat().as_bytes(), &lengths, 16 << 10);
        let content = Content {
            bytes: bytes.expect("samples with much in common"),
            search: codec::Search::ByLevel,
            lz4_pages: Lz4Pages::Rewritten,
        };
        let name = DictionaryName { tree: TREE, number: 1 };
        dictionary_file::write(&disk.dir, disk.uuid, name, &content).expect("no faults");
        let file_bytes = dictionary_file::file_bytes(content.bytes.len()) as u64;
        store.shared().dictionaries.add(name, file_bytes);
        let mut dirty = make(store, wal, 1);
        let mut written_as = |byte: u8| {
            dirty = patch(store, wal, dirty, &[byte; 4000]);
            codec_of(disk, written(store, flusher, dirty)[0])
        };
        assert_eq!(written_as(b'a'), CodecId::Zstd, "new");
        assert_eq!(written_as(b'b'), CodecId::Lz4);
        store.set_compression(TREE, Compression::Fixed { codec: CodecId::Zstd, level: 9 });
        assert_eq!(written_as(b'c'), CodecId::Zstd, "small before fast");
        store.shared().dictionaries.write_with_lz4(TREE, Lz4Pages::All);
        assert_eq!(written_as(b'd'), CodecId::Zstd, "known, but for another level");
    });
}

/// Has some of the pool lent for deltas.
fn lend_memory(shared: &Shared) {
    let taken: Vec<u32> = std::iter::from_fn(|| shared.frames.take_free(CLASS)).collect();
    taken.into_iter().for_each(|frame| shared.frames.give_back(frame, CLASS));
    for reads in 1..=2 {
        let reads = Reads { pages: 1000 * reads, deltas: 1000 * reads, found: 0 };
        shared.recent_deltas.look(&shared.frames, reads);
        let draining = shared.frames.draining.lock().clone();
        draining.into_iter().for_each(|chunk| shared.frames.finish_drain(chunk));
    }
    assert!(shared.recent_deltas.has_memory());
}

/// See short_delta.rs.
#[test]
fn what_a_delta_shares_with_its_base_is_left_out_of_memory_once_it_was_read() {
    on_a_store(|store, wal| {
        let shared = store.shared().clone();
        let dirty = make(store, wal, 1);
        let mut incompressible = vec![0; 6000];
        base::Random::new(1).fill(&mut incompressible);
        patch(store, wal, dirty, &incompressible);
        let mut flusher = Flusher::new();
        written(store, &mut flusher, dirty);
        // What is pinned keeps its chunk.
        let pin = store.load(PID).expect("in memory");
        lend_memory(&shared);
        drop(pin);
        let changed = patch(store, wal, dirty, &[3; 10]);
        let [_, delta] = written(store, &mut flusher, changed);
        let find = || shared.recent_deltas.find(&shared.frames, PID, delta);
        assert!(matches!(find(), Some(Remembered::Written(blob)) if blob.len() == 128));
        let page = store.shared_page(PID).expect("in memory").to_vec();
        for _ in 0..2 {
            shared.evict(CLASS, usize::MAX);
            assert!(store.shared_page(PID).is_err(), "it left");
            let pin = store.load(PID).expect("a page");
            assert!(page == store.shared_page(PID).expect("in memory").to_vec());
            drop(pin);
            assert!(matches!(find(), Some(Remembered::Short(bytes)) if bytes.len() < 64));
        }
        assert_eq!(shared.counters.delta_hits.load(Ordering::Relaxed), 2);
        flusher.close(shared.disk.as_ref().expect("a store on disk")).expect("no faults");
    });
}
