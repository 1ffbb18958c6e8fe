//! The store on real files with several workers: every page carries the same count in many
//! places; readers without latches must never see two different ones, and no increment is lost.

use base::{Lsn, PageId, Random, TreeId, TrxId};
use pagestore::redo::{self, Format, OP_FORMAT, OP_PATCH};
use pagestore::{PageStore, StoreOptions, Superblock};
use runtime::{Config, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wal::{FIRST_LSN, Reader, RecordBuilder, RecordKind, Wal, WalOptions};

const UUID: [u8; 16] = *b"real pages on fs";
const TREE: TreeId = TreeId::new(9);
const CLASS: u8 = 13;
const PAGES: usize = 1500;
const FIBERS: u64 = 8;
const STEPS: u64 = 2500;
/// What does not compress, so that segments fill.
const NOISE: [u8; 1900] = {
    let mut noise = [0; 1900];
    let (mut state, mut place) = (7u32, 16);
    while place < noise.len() {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        noise[place] = (state >> 24) as u8;
        place += 1;
    }
    noise
};
/// Where a page carries its count.
const PLACES: [usize; 4] = [40, 2001, 4096, 8184];

fn options(dir: &Path) -> StoreOptions {
    StoreOptions {
        pool_bytes: 2 << 20,
        huge_pages: false,
        max_pages: 1 << 16,
        log_cap_bytes: 2 << 20,
        spare_segments: 2,
        on_fatal: Arc::new(|reason| eprintln!("fatal: {reason}")),
        ..StoreOptions::new(dir.join("data"))
    }
}

fn create(dir: &Path) -> (PageStore, Arc<Wal>) {
    runtime::fs::create_dir_all(dir.join("data")).expect("folder");
    let wal = Wal::create(&dir.join("wal"), WalOptions::new(UUID), 1).expect("log");
    let mut superblock = Superblock::new(UUID, 1 << 20, 16);
    superblock.redo_lsn = FIRST_LSN;
    superblock.store(&dir.join("data")).expect("superblock");
    let store = PageStore::create(options(dir), wal.clone(), superblock).expect("store");
    (store, wal)
}

fn allocate(store: &PageStore, wal: &Wal) -> Vec<PageId> {
    let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
    let mut payload = Vec::new();
    let format = Format {
        class: CLASS,
        page_type: 1,
        format_version: 1,
        flags: 0,
        tree: TREE,
        head: &NOISE,
        tail: &[],
    };
    format.encode(&mut payload);
    (0..PAGES)
        .map(|_| {
            let reservation = store.space().reserve(TREE, CLASS, 1).expect("numbers");
            let pid = reservation.pids()[0];
            let permit = wal.admit(4096).expect("log");
            store
                .run_with_retry(|_| {
                    record.reset(RecordKind::Structure, TrxId::ZERO);
                    let mut page = store.new_page(pid, CLASS)?;
                    record
                        .page_op(pid, OP_FORMAT, Lsn::ZERO, |out| out.extend_from_slice(&payload));
                    let change = store.space().log_change(&[pid], &[], &mut record)?;
                    let range = wal.append(&permit, &record);
                    redo::apply(&mut page, OP_FORMAT, &payload).expect("our own op");
                    page.mark_dirty(range);
                    change.mark_dirty(range);
                    Ok(())
                })
                .expect("a page");
            pid
        })
        .collect()
}

fn increment(store: &PageStore, wal: &Wal, record: &mut RecordBuilder, pid: PageId) {
    let permit = wal.admit(256).expect("log");
    store
        .run_with_retry(|tries| {
            record.reset(RecordKind::Change, TrxId::new(1));
            let mut page = match tries % 2 {
                0 => store.optimistic(pid)?.upgrade()?,
                _ => store.exclusive(pid)?,
            };
            let count = u64::from_le_bytes(page[40..48].try_into().expect("eight bytes")) + 1;
            let mut payload = Vec::new();
            for place in PLACES {
                redo::encode_patch(place, &count.to_le_bytes(), &mut payload);
            }
            record.page_op(pid, OP_PATCH, page.page_lsn(), |out| out.extend_from_slice(&payload));
            let range = wal.append(&permit, record);
            redo::apply(&mut page, OP_PATCH, &payload).expect("our own op");
            page.mark_dirty(range);
            Ok(())
        })
        .expect("an increment");
}

fn count_of(store: &PageStore, pid: PageId) -> u64 {
    store
        .run_with_retry(|_| {
            let page = store.optimistic(pid)?;
            let counts = PLACES.map(|place| page.u64_at(place));
            let mut copied = [0; 8];
            page.copy_bytes(PLACES[1], &mut copied);
            page.validate()?;
            assert!(counts.iter().all(|&count| count == counts[0]), "{counts:?}");
            assert_eq!(u64::from_le_bytes(copied), counts[0]);
            Ok(counts[0])
        })
        .expect("a count")
}

fn checkpoint(store: &PageStore, wal: &Wal) {
    let redo = store.checkpoint_barrier().expect("barrier");
    store.sync_data().expect("sync");
    let durable = wal.durable();
    let written = store.write_superblock(|superblock| {
        superblock.redo_lsn = redo;
        superblock.durable_lsn = durable;
    });
    written.expect("superblock");
    wal.recycle_before(redo).expect("recycled");
}

fn stress(store: &PageStore, wal: &Arc<Wal>, pids: &Arc<Vec<PageId>>) {
    let stop = Arc::new(AtomicBool::new(false));
    let checkpoints = {
        let (store, wal, stop) = (store.clone(), wal.clone(), stop.clone());
        runtime::spawn("checkpoints", move || {
            while !stop.load(Ordering::Relaxed) {
                runtime::sleep(Duration::from_millis(50));
                checkpoint(&store, &wal);
            }
        })
    };
    let reads = Arc::new(AtomicU64::new(0));
    let fibers: Vec<_> = (0..FIBERS)
        .map(|fiber| {
            let (store, wal, pids, reads) =
                (store.clone(), wal.clone(), pids.clone(), reads.clone());
            runtime::spawn_on(fiber as usize, "worker", move || {
                let mut random = Random::new(fiber);
                let mut record = RecordBuilder::new(RecordKind::Change, TrxId::new(1));
                for _ in 0..STEPS {
                    // A few pages are hot.
                    let limit = if random.one_in(3) { 20 } else { pids.len() };
                    increment(&store, &wal, &mut record, pids[random.index(limit)]);
                    for _ in 0..3 {
                        let limit = if random.one_in(2) { 20 } else { pids.len() };
                        count_of(&store, pids[random.index(limit)]);
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                    runtime::yield_if_due();
                }
            })
        })
        .collect();
    for fiber in fibers {
        fiber.join().expect("fiber");
    }
    stop.store(true, Ordering::Relaxed);
    checkpoints.join().expect("fiber");
}

fn sum(store: &PageStore, pids: &[PageId]) -> u64 {
    pids.iter().map(|&pid| count_of(store, pid)).sum()
}

fn reopen(dir: &Path) -> (PageStore, Arc<Wal>) {
    let data = dir.join("data");
    let mut superblock = Superblock::load(&data).expect("readable").expect("there");
    superblock.epoch += 1;
    superblock.store(&data).expect("superblock");
    let recovered = pagestore::recover(&options(dir), &superblock).expect("recovers");
    let known = superblock.durable_lsn.max(recovered.max_page_lsn());
    let log = dir.join("wal");
    let mut reader = Reader::open(&log, UUID, superblock.redo_lsn, known).expect("log");
    while reader.next_record().expect("intact").is_some() {}
    let end = reader.end().expect("read to the end");
    let wal = Wal::open(&log, WalOptions::new(UUID), superblock.epoch, end).expect("log");
    let store = PageStore::open(options(dir), wal.clone(), recovered).expect("store");
    store.finish_recovery().expect("map");
    (store, wal)
}

#[test]
fn workers_share_a_small_pool_over_real_files() {
    let dir: PathBuf =
        std::env::temp_dir().join(format!("gannet-pagestore-{}", std::process::id()));
    let runtime = Runtime::start(Config { workers: 2, ..Config::default() }).expect("runtime");
    let folder = dir.clone();
    runtime.run(move || {
        let (store, wal) = create(&folder);
        let pids = Arc::new(allocate(&store, &wal));
        stress(&store, &wal, &pids);
        assert_eq!(sum(&store, &pids), FIBERS * STEPS);
        store.flush_until(Lsn::MAX).expect("flushed");
        checkpoint(&store, &wal);
        // Collection follows within its period; only a failure takes so long.
        let late = runtime::now() + Duration::from_secs(120);
        let has_collected = || {
            let counters = store.counters();
            counters.collections > 0 && counters.segment_reuses > 0
        };
        while !has_collected() {
            assert!(runtime::now() < late, "nothing was collected: {:?}", store.counters());
            runtime::sleep(Duration::from_millis(100));
            checkpoint(&store, &wal);
        }
        let counters = store.counters();
        println!("{counters:?}");
        assert!(counters.evictions > 0 && counters.misses > 0 && counters.flushed_pages > 0);
        store.close().expect("closed");
        wal.close().expect("closed");
        let report = pagestore::check(&folder.join("data"), None).expect("readable");
        assert_eq!(report.findings, []);
        assert!(report.pages as usize > PAGES);
        let (store, wal) = reopen(&folder);
        assert_eq!(sum(&store, &pids), FIBERS * STEPS);
        store.close().expect("closed");
        wal.close().expect("closed");
    });
    runtime.shutdown();
    std::fs::remove_dir_all(dir).expect("folder");
}
