//! An engine in miniature over bare page numbers: starts and recovers a store as the real engine
//! does, changes pages with logged ops, takes checkpoints.

use crate::model::{Allocated, SharedModel, lock};
use base::{Lsn, PageId, Random, TreeId, TrxId};
use codec::CodecId;
use pagestore::redo::{self, Format, OP_FORMAT, OP_PATCH};
use pagestore::{PageStore, StoreError, StoreOptions, Superblock, header, space};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use wal::{LsnRange, Permit, Reader, RecordBuilder, RecordKind, RecordView, Wal, WalOptions};

/// More than the map pages of a tiny store take.
const MAP_BYTES_MAX: u64 = 64 << 10;

pub const DATA: &str = "/db/data";
pub const LOG: &str = "/db/wal";
const UUID: [u8; 16] = *b"simulated pages1";

/// Sizes of one seed; they must not change between its lives.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub segment_bytes: u64,
    pub segments_per_file: u32,
}

impl Sizes {
    pub fn random(random: &mut Random) -> Sizes {
        Sizes {
            segment_bytes: *random.pick(&[64 << 10, 128 << 10, 256 << 10]),
            segments_per_file: *random.pick(&[2, 5, 64]),
        }
    }
}

/// Options of one life.
pub fn options(random: &mut Random) -> StoreOptions {
    let codecs = [(CodecId::None, 0), (CodecId::Lz4, 0), (CodecId::Lz4, 0), (CodecId::Zstd, 1)];
    StoreOptions {
        pool_bytes: *random.pick(&[272 << 10, 384 << 10, 1 << 20]),
        huge_pages: false,
        max_pages: 2 * space::MAP_PAGES,
        group_bytes: *random.pick(&[64 << 10, 128 << 10]),
        flushers: 1 + random.index(3),
        codec: *random.pick(&codecs),
        writes_deltas: random.chance(0.9),
        log_cap_bytes: *random.pick(&[32 << 10, 256 << 10, 4 << 20]),
        spare_segments: random.index(4),
        target_utilisation: *random.pick(&[0.5, 0.7, 0.85]),
        on_fatal: Arc::new(|reason| match std::thread::panicking() {
            true => eprintln!("fatal: {reason}"),
            false => panic!("fatal: {reason}"),
        }),
        ..StoreOptions::new(DATA)
    }
}

fn wal_options() -> WalOptions {
    WalOptions {
        ring_bytes: 64 << 10,
        first_file_bytes: 64 << 10,
        max_file_bytes: 128 << 10,
        ..WalOptions::new(UUID)
    }
}

/// A file system that is never full here and never has plenty.
pub const SMALL_BYTES: u64 = 1 << 30;

#[derive(Clone)]
pub struct Miniature {
    pub store: PageStore,
    pub wal: Arc<Wal>,
    pub model: SharedModel,
}

/// What the analysis before redo found.
#[derive(Default)]
struct Analysis {
    /// End of the last record that freed or formatted a page: what came before is void.
    last_fresh: BTreeMap<PageId, Lsn>,
}

/// Makes the simulated file system one that has plenty, or one so small that the store holds its
/// reserve.
pub fn set_plenty(has_plenty: bool) {
    let disk = runtime::sim::disk().expect("this is a simulation");
    disk.set_quota((!has_plenty).then_some(SMALL_BYTES));
}

impl Miniature {
    /// Starts the store, recovering it if it exists, and compares it with the model.
    pub fn start(
        model: &SharedModel,
        options: StoreOptions,
        sizes: Sizes,
    ) -> Result<Miniature, StoreError> {
        for dir in [DATA, LOG] {
            runtime::fs::create_dir_all(dir).expect("no faults in names");
        }
        for dir in ["/", "/db"] {
            runtime::fs::sync_dir(dir).expect("no faults in names");
        }
        let loaded = match Superblock::load_durably(Path::new(DATA)) {
            // A creation that was cut short: nothing was promised yet.
            Err(StoreError::Damaged { .. }) if !lock(model).is_created => {
                let path = Path::new(DATA).join(pagestore::SUPERBLOCK_FILE);
                runtime::fs::remove_file(path).expect("no faults in names");
                None
            }
            other => other?,
        };
        match loaded {
            None => Ok(Self::create(model, options, sizes)?),
            Some(superblock) => Self::recover(model, options, superblock),
        }
    }

    fn create(
        model: &SharedModel,
        options: StoreOptions,
        sizes: Sizes,
    ) -> Result<Miniature, StoreError> {
        // A creation that was cut short left nothing anybody counts on.
        for name in runtime::fs::read_dir(LOG).expect("no faults in names") {
            runtime::fs::remove_file(Path::new(LOG).join(name)).expect("no faults in names");
        }
        let wal = Wal::create(Path::new(LOG), wal_options(), 1).expect("an empty directory");
        let mut superblock = Superblock::new(UUID, sizes.segment_bytes, sizes.segments_per_file);
        superblock.redo_lsn = wal::FIRST_LSN;
        superblock.store(Path::new(DATA))?;
        lock(model).is_created = true;
        let store = PageStore::create(options, wal.clone(), superblock)?;
        Ok(Miniature { store, wal, model: model.clone() })
    }

    fn recover(
        model: &SharedModel,
        options: StoreOptions,
        mut superblock: Superblock,
    ) -> Result<Miniature, StoreError> {
        superblock.epoch += 1;
        superblock.store(Path::new(DATA))?;
        let recovered = pagestore::recover(&options, &superblock)?;
        let known = superblock.durable_lsn.max(recovered.max_page_lsn());
        let from = superblock.redo_lsn;
        let reader = Reader::open(Path::new(LOG), UUID, from, known);
        let mut reader = reader.expect("the log opens");
        let mut analysis = Analysis::default();
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().expect("the log is intact") {
            analysis.look_at(record.end, record.bytes);
            let range = LsnRange { start: record.start, end: record.end };
            records.push((range, record.bytes.to_vec()));
        }
        let end = reader.end().expect("read to the end");
        let wal = Wal::open(Path::new(LOG), wal_options(), superblock.epoch, end);
        let wal = wal.expect("the log continues");
        let store = PageStore::open(options, wal.clone(), recovered)?;
        let mini = Miniature { store, wal, model: model.clone() };
        for (range, bytes) in records {
            mini.redo(&analysis, range, &bytes)?;
        }
        mini.store.finish_recovery()?;
        mini.compare(end.lsn.get())?;
        lock(&mini.model).lives += 1;
        Ok(mini)
    }

    fn redo(&self, analysis: &Analysis, range: LsnRange, bytes: &[u8]) -> Result<(), StoreError> {
        let view = RecordView::parse(bytes).expect("an intact record");
        for op in view.page_ops() {
            let is_format = redo::is_format(op.op);
            let void = analysis.last_fresh.get(&op.pid).is_some_and(|&last| range.end < last);
            if void {
                continue;
            }
            // An old copy whose dictionary went with its tree is read as damaged.
            let existing = self.store.redo_page(op.pid, None);
            match &existing {
                Ok(page) if page.page_lsn() >= range.end => continue,
                Ok(_) => {}
                Err(StoreError::NoSuchPage(_) | StoreError::Corrupt { .. }) if is_format => {}
                Err(error) => return Err(error.clone()),
            }
            let mut page = match existing {
                Ok(page) if !is_format => page,
                other => {
                    drop(other);
                    self.store.redo_page(op.pid, redo::format_class(op.op, op.payload))?
                }
            };
            if !is_format {
                assert_eq!(page.page_lsn(), op.prev_lsn, "page {} before {range:?}", op.pid);
            }
            redo::apply(&mut page, op.op, op.payload).expect("the op applies");
            page.mark_dirty(range);
        }
        runtime::yield_if_due();
        Ok(())
    }

    /// After recovery: exactly the acknowledged state, every page with its last image.
    fn compare(&self, end: u64) -> Result<(), StoreError> {
        let pids: Vec<u64> = {
            let mut model = lock(&self.model);
            assert!(
                end >= model.durable || model.tolerates_corrupt,
                "log ends at {end}, durable was {}",
                model.durable
            );
            model.forget_after(end);
            model.durable = end;
            model.live.clear();
            model.allocated.keys().copied().collect()
        };
        for number in pids {
            let pid = PageId::new(number);
            let is_there = self.store.space().is_allocated(pid);
            let (expected, crc) = {
                let model = lock(&self.model);
                (model.is_allocated(number), model.current(number))
            };
            match expected {
                Allocated::Yes => assert!(is_there, "page {pid} should be allocated"),
                Allocated::No if lock(&self.model).tolerates_corrupt && is_there => continue,
                Allocated::No => assert!(!is_there, "page {pid} should be free"),
                Allocated::Perhaps => {
                    let known = if is_there { Allocated::Yes } else { Allocated::No };
                    lock(&self.model).set_allocated(number, end, known);
                }
            }
            if is_there {
                let page = match self.read(pid) {
                    Err(StoreError::Corrupt { .. }) if lock(&self.model).tolerates_corrupt => {
                        lock(&self.model).corrupt.push(number);
                        continue;
                    }
                    other => other?,
                };
                assert_eq!(Some(base::checksum::crc32c(&page)), crc, "content of page {pid}");
                let entry = (header::tree(&page).get(), header::class(&page));
                lock(&self.model).live.insert(number, entry);
            } else {
                let gone = self.store.load(pid);
                assert!(matches!(gone, Err(StoreError::NoSuchPage(_))), "page {pid} {gone:?}");
            }
        }
        Ok(())
    }

    /// The bytes of a page, read optimistically or under a latch.
    pub fn read(&self, pid: PageId) -> Result<Vec<u8>, StoreError> {
        self.store.run_with_retry(|tries| {
            if tries % 2 == 0 {
                let page = self.store.optimistic(pid)?;
                let mut bytes = vec![0; page.page_bytes()];
                page.copy_bytes(0, &mut bytes);
                page.validate()?;
                Ok(bytes)
            } else {
                Ok(self.store.shared_page(pid)?.to_vec())
            }
        })
    }

    /// Room in the log for a record of these operations.
    pub fn admit(&self, bytes: usize) -> Permit<'_> {
        self.wal.admit(bytes).expect("no faults in the log")
    }

    /// Notes what is durable, for the model.
    pub fn note_durable(&self) {
        let mut model = lock(&self.model);
        model.durable = model.durable.max(self.wal.durable().get());
    }

    /// A checkpoint as the engine takes it.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        let redo = self.store.checkpoint_barrier()?;
        self.store.sync_data()?;
        let durable = self.wal.durable();
        self.store.write_superblock(|superblock| {
            superblock.redo_lsn = redo.max(superblock.redo_lsn);
            superblock.durable_lsn = durable;
        })?;
        self.note_durable();
        self.store.remove_unused_dictionaries(redo);
        self.wal.recycle_before(redo).expect("no faults in the log");
        Ok(())
    }

    /// Makes pages of a tree, one record for all, its allocation included.
    pub fn allocate(&self, random: &mut Random, tree: u32, class: u8) -> Result<(), StoreError> {
        let count = 1 + random.index(3);
        let reservation = self.store.space().reserve(TreeId::new(tree), class, count)?;
        let payloads: Vec<Vec<u8>> =
            reservation.pids().iter().map(|_| format_payload(random, tree, class)).collect();
        let permit = self.admit(64 + count * 600 + payloads.iter().map(Vec::len).sum::<usize>());
        self.store.reserve_frames(class, count)?;
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        self.store.run_with_retry(|_| {
            record.reset(RecordKind::Structure, TrxId::ZERO);
            let mut pages = Vec::new();
            for (&pid, payload) in reservation.pids().iter().zip(&payloads) {
                let mut page = self.store.new_page(pid, class)?;
                record.page_op(pid, OP_FORMAT, Lsn::ZERO, |out| out.extend_from_slice(payload));
                redo::apply(&mut page, OP_FORMAT, payload).expect("our own op");
                pages.push(page);
            }
            let change = self.store.space().log_change(reservation.pids(), &[], &mut record)?;
            let range = self.wal.append(&permit, &record);
            let mut model = lock(&self.model);
            for page in &mut pages {
                page.mark_dirty(range);
                let pid = page.pid().get();
                model.image(pid, range.end.get(), page);
                model.set_allocated(pid, range.end.get(), Allocated::Yes);
                model.live.insert(pid, (tree, class));
            }
            change.mark_dirty(range);
            Ok(())
        })
    }

    /// Makes a page whose number is allocated only by a second record, if at all.
    pub fn allocate_late(&self, random: &mut Random, tree: u32) -> Result<(), StoreError> {
        let class = 13;
        let reservation = self.store.space().reserve(TreeId::new(tree), class, 1)?;
        let pid = reservation.pids()[0];
        let payload = format_payload(random, tree, class);
        let mut record = RecordBuilder::new(RecordKind::Load, TrxId::ZERO);
        let permit = self.admit(1200 + payload.len());
        let formatted = self.store.run_with_retry(|_| {
            record.reset(RecordKind::Load, TrxId::ZERO);
            let mut page = self.store.new_page(pid, class)?;
            record.page_op(pid, OP_FORMAT, Lsn::ZERO, |out| out.extend_from_slice(&payload));
            redo::apply(&mut page, OP_FORMAT, &payload).expect("our own op");
            let range = self.wal.append(&permit, &record);
            page.mark_dirty(range);
            lock(&self.model).image(pid.get(), range.end.get(), &page);
            Ok(range)
        })?;
        if random.one_in(3) {
            self.store.discard(pid, formatted.end);
            return Ok(());
        }
        if random.one_in(2) {
            runtime::sleep(std::time::Duration::from_millis(random.below(30)));
        }
        self.store.run_with_retry(|_| {
            record.reset(RecordKind::Structure, TrxId::ZERO);
            let change = self.store.space().log_change(&[pid], &[], &mut record)?;
            let range = self.wal.append(&permit, &record);
            let mut model = lock(&self.model);
            model.set_allocated(pid.get(), range.end.get(), Allocated::Yes);
            model.live.insert(pid.get(), (tree, class));
            change.mark_dirty(range);
            Ok(())
        })
    }

    /// Changes one or two pages in one record.
    pub fn patch(&self, random: &mut Random, pids: &[u64]) -> Result<(), StoreError> {
        let patches = pids.iter().map(|_| patch_payload(random)).collect();
        self.apply_patches(pids, patches)
    }

    /// Changes pages by these payloads of patches, one for each, in one record.
    pub fn apply_patches(&self, pids: &[u64], patches: Vec<Vec<u8>>) -> Result<(), StoreError> {
        let permit = self.admit(64 + patches.iter().map(|patch| patch.len() + 32).sum::<usize>());
        let mut record = RecordBuilder::new(RecordKind::Change, TrxId::new(1));
        let outcome = self.store.run_with_retry(|_| {
            record.reset(RecordKind::Change, TrxId::new(1));
            let mut pages = Vec::new();
            for (&number, patch) in pids.iter().zip(&patches) {
                let page = self.store.exclusive(PageId::new(number))?;
                if !lock(&self.model).live.contains_key(&number) {
                    return Ok(());
                }
                record.page_op(page.pid(), OP_PATCH, page.page_lsn(), |out| {
                    out.extend_from_slice(patch);
                });
                pages.push(page);
            }
            let range = self.wal.append(&permit, &record);
            for (page, patch) in pages.iter_mut().zip(&patches) {
                redo::apply(page, OP_PATCH, patch).expect("our own op");
                page.mark_dirty(range);
                lock(&self.model).image(page.pid().get(), range.end.get(), page);
            }
            Ok(())
        });
        ignore_freed(outcome)
    }

    /// Frees a page.
    pub fn free(&self, random: &mut Random, number: u64) -> Result<(), StoreError> {
        let pid = PageId::new(number);
        let discard_first = random.one_in(2);
        let permit = self.admit(256);
        let mut record = RecordBuilder::new(RecordKind::Structure, TrxId::ZERO);
        let outcome = self.store.run_with_retry(|_| {
            record.reset(RecordKind::Structure, TrxId::ZERO);
            let page = self.store.exclusive(pid)?;
            if !lock(&self.model).live.contains_key(&number) {
                return Ok(());
            }
            let change = self.store.space().log_change(&[], &[pid], &mut record)?;
            let range = self.wal.append(&permit, &record);
            let mut model = lock(&self.model);
            model.set_allocated(number, range.end.get(), Allocated::No);
            model.live.remove(&number);
            if discard_first {
                page.discard(range);
                change.mark_dirty(range);
            } else {
                change.mark_dirty(range);
                page.discard(range);
            }
            Ok(())
        });
        ignore_freed(outcome)
    }

    /// Drops every page of a tree.
    pub fn drop_tree(&self, tree: u32) -> Result<(), StoreError> {
        let pids: Vec<u64> = {
            let mut model = lock(&self.model);
            let pids: Vec<u64> =
                model.live.iter().filter(|(_, it)| it.0 == tree).map(|(&pid, _)| pid).collect();
            let now = self.wal.end().get();
            for &pid in &pids {
                model.live.remove(&pid);
                model.set_allocated(pid, now + 1, Allocated::Perhaps);
            }
            pids
        };
        self.store.space().drop_tree(TreeId::new(tree))?;
        let after = self.wal.end().get();
        let mut model = lock(&self.model);
        for pid in pids {
            // Unless the number was given to somebody else meanwhile, by a later record.
            if model.is_allocated(pid) == Allocated::Perhaps {
                model.set_allocated(pid, after, Allocated::No);
            }
        }
        Ok(())
    }

    /// Reads a page and compares it with the model.
    pub fn verify(&self, number: u64) -> Result<(), StoreError> {
        let pid = PageId::new(number);
        let outcome = self.store.run_with_retry(|_| {
            let page = self.store.shared_page(pid)?;
            let model = lock(&self.model);
            if model.live.contains_key(&number) {
                let expected = model.current(number);
                assert_eq!(Some(base::checksum::crc32c(&page)), expected, "page {pid}");
            }
            Ok(())
        });
        ignore_freed(outcome)
    }

    /// With all pages written, what trees say they take up is what the segments hold alive, but
    /// for the pages of the map, which are no tree's.
    fn compare_usage(&self) {
        let space = self.store.space();
        let usages: Vec<_> = space.trees().into_iter().map(|tree| space.usage(tree)).collect();
        let stored: u64 = usages.iter().map(|usage| usage.stored_bytes).sum();
        let (live, _) = self.store.space_in_use();
        assert!(stored <= live && live - stored < MAP_BYTES_MAX, "{stored} of {live} live bytes");
        let pages: u64 = space.trees().into_iter().map(|tree| space.pages_of(tree)).sum();
        assert_eq!(usages.iter().map(|usage| usage.pages).sum::<u64>(), pages);
    }

    /// A clean end: everything on disk, a last checkpoint.
    pub fn stop(&self) -> Result<(), StoreError> {
        self.store.flush_until(Lsn::MAX)?;
        self.checkpoint()?;
        self.compare_usage();
        lock(&self.model).add_counters(self.store.counters());
        self.store.close()?;
        let end = self.wal.close().expect("no faults in the log");
        self.note_durable();
        lock(&self.model).stopped_at = end.get();
        Ok(())
    }
}

impl Analysis {
    fn look_at(&mut self, end: Lsn, bytes: &[u8]) {
        let view = RecordView::parse(bytes).expect("an intact record");
        for op in view.page_ops() {
            if redo::is_format(op.op) {
                self.last_fresh.insert(op.pid, end);
            }
            for range in space::freed_by(op.pid, op.op, op.payload).expect("our own op") {
                for number in range.start.get()..range.end.get() {
                    self.last_fresh.insert(PageId::new(number), end);
                }
            }
        }
    }
}

/// Another fiber freed the page first.
fn ignore_freed(outcome: Result<(), StoreError>) -> Result<(), StoreError> {
    match outcome {
        Err(StoreError::NoSuchPage(_)) => Ok(()),
        other => other,
    }
}

fn format_payload(random: &mut Random, tree: u32, class: u8) -> Vec<u8> {
    let mut head = vec![random.next_u64() as u8; random.index(1500)];
    let noise = random.index(400);
    let at = head.len();
    head.resize(at + noise, 0);
    random.fill(&mut head[at..]);
    let format = Format {
        class,
        page_type: 7,
        format_version: 1,
        flags: 0,
        tree: TreeId::new(tree),
        head: &head,
        tail: b"the end of the page",
    };
    let mut payload = Vec::new();
    format.encode(&mut payload);
    payload
}

fn patch_payload(random: &mut Random) -> Vec<u8> {
    let mut payload = Vec::new();
    for _ in 0..=random.index(3) {
        let mut bytes = vec![random.next_u64() as u8; 1 + random.index(300)];
        if random.one_in(2) {
            random.fill(&mut bytes);
        }
        let offset = 32 + random.index(4096 - 32 - bytes.len());
        redo::encode_patch(offset, &bytes, &mut payload);
    }
    payload
}
