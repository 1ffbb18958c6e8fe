//! A store on the simulated disk with everything a server does around it, in small: superblock,
//! log, checkpoints, recovery. Changes count as committed when their record is durable.

use super::UUID;
use base::{Lsn, PageId, Random, TreeId};
use btree::Tree;
use pagestore::{PageStore, StoreOptions, Superblock, recover, redo, space};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wal::{FIRST_LSN, LsnRange, Reader, RecordView, Wal, WalOptions};

/// Tiny sizes, chosen by the seed, so that everything rare happens soon.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Directory of the database.
    pub root: PathBuf,
    pub pool_bytes: usize,
    pub segment_bytes: u64,
    pub group_bytes: usize,
    pub class: u8,
}

impl Shape {
    pub fn of(seed: u64) -> Shape {
        let mut random = Random::new(seed ^ 0x5EED);
        Shape {
            root: PathBuf::from("db"),
            pool_bytes: *random.pick(&[512 << 10, 1 << 20, 2 << 20]),
            segment_bytes: *random.pick(&[256 << 10, 512 << 10, 1 << 20]),
            group_bytes: *random.pick(&[16 << 10, 64 << 10]),
            class: *random.pick(&[12, 12, 13]),
        }
    }

    fn store_options(&self) -> StoreOptions {
        StoreOptions {
            pool_bytes: self.pool_bytes,
            huge_pages: false,
            max_pages: 1 << 18,
            segment_bytes: self.segment_bytes,
            segments_per_file: 8,
            group_bytes: self.group_bytes,
            log_cap_bytes: 4 << 20,
            page_check: Some(btree::check_page),
            page_order: Some(btree::page_order),
            ..StoreOptions::new(self.root.join("data"))
        }
    }

    fn log_options(&self) -> WalOptions {
        WalOptions {
            ring_bytes: 1 << 20,
            first_file_bytes: 1 << 20,
            max_file_bytes: 2 << 20,
            max_batch_bytes: 64 << 10,
            ..WalOptions::new(UUID)
        }
    }
}

/// The one tree, its store and its log.
#[derive(Clone)]
pub struct Database {
    pub tree: Tree,
    pub store: PageStore,
    pub wal: Arc<Wal>,
}

const TREE: TreeId = TreeId::new(5);

impl Database {
    /// A new database with an empty tree, durable.
    pub fn create(shape: &Shape) -> Database {
        let options = shape.store_options();
        runtime::fs::create_dir_all(&options.dir).expect("folder");
        let mut superblock = Superblock::new(UUID, shape.segment_bytes, 8);
        superblock.redo_lsn = FIRST_LSN;
        superblock.durable_lsn = FIRST_LSN;
        let wal = Wal::create(&shape.root.join("wal"), shape.log_options(), 1).expect("log");
        superblock.store(&options.dir).expect("superblock");
        for folder in [&*shape.root, shape.root.parent().unwrap_or(Path::new("/"))] {
            let folder = if folder == Path::new("") { Path::new("/") } else { folder };
            runtime::fs::sync_dir(folder).expect("sync");
        }
        let store = PageStore::create(options, wal.clone(), superblock).expect("store");
        let tree = Tree::create(store.clone(), wal.clone(), TREE, shape.class).expect("tree");
        wal.wait_durable(wal.end()).expect("durable");
        let root = tree.root().get();
        let database = Database { tree, store, wal };
        database.checkpoint_with(|superblock| superblock.engine = root.to_le_bytes().to_vec());
        database
    }

    pub fn checkpoint(&self) {
        self.checkpoint_with(|_| {});
    }

    fn checkpoint_with(&self, change: impl FnOnce(&mut Superblock)) {
        let redo_lsn = self.store.checkpoint_barrier().expect("no faults");
        self.store.sync_data().expect("sync");
        // A page freed by a record that is not durable yet is no longer among the dirty ones: until
        // that record is durable the page's own changes must stay in the log.
        self.wal.wait_durable(self.wal.end()).expect("durable");
        let durable = self.wal.durable();
        let written = self.store.write_superblock(|superblock| {
            superblock.redo_lsn = redo_lsn;
            superblock.durable_lsn = durable;
            change(superblock);
        });
        written.expect("superblock");
        self.wal.recycle_before(redo_lsn).expect("recycle");
        base::probe!("test.checkpoint");
    }

    /// Recovers what a crash left. `None` if the database was never completely created. The LSN is
    /// where the log ended.
    pub fn recover(shape: &Shape) -> Option<(Database, Lsn)> {
        let options = shape.store_options();
        if !runtime::fs::exists(&options.dir).expect("look") {
            return None;
        }
        let mut superblock = Superblock::load(&options.dir).expect("superblock")?;
        let root: [u8; 8] = superblock.engine[..].try_into().ok()?;
        superblock.epoch += 1;
        superblock.store(&options.dir).expect("superblock");
        let recovered = recover(&options, &superblock).expect("mapping");
        let known = superblock.durable_lsn.max(recovered.max_page_lsn());
        let directory = shape.root.join("wal");
        let mut reader =
            Reader::open(&directory, UUID, superblock.redo_lsn, known).expect("reader");
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().expect("intact log") {
            let range = LsnRange { start: record.start, end: record.end };
            records.push((range, record.bytes.to_vec()));
        }
        let end = reader.end().expect("the log was read to its end");
        let wal = Wal::open(&directory, shape.log_options(), superblock.epoch, end).expect("log");
        let store = PageStore::open(options, wal.clone(), recovered).expect("store");
        redo_all(&store, &records);
        store.finish_recovery().expect("allocation map");
        let root = PageId::new(u64::from_le_bytes(root));
        let tree = Tree::open(store.clone(), wal.clone(), TREE, root, shape.class);
        Some((Database { tree, store, wal }, end.lsn))
    }
}

/// Redo as the contract says: nothing below a page's last format or free, and then every op finds
/// its page exactly as it left it.
fn redo_all(store: &PageStore, records: &[(LsnRange, Vec<u8>)]) {
    let mut begins: BTreeMap<PageId, Lsn> = BTreeMap::new();
    for (LsnRange { end, .. }, bytes) in records {
        for op in RecordView::parse(bytes).expect("record").page_ops() {
            if redo::is_format(op.op) || btree::is_format(op.op) {
                begins.insert(op.pid, *end);
            }
            if (0x10..0x20).contains(&op.op) {
                for freed in space::freed_by(op.pid, op.op, op.payload).expect("map op") {
                    for pid in freed.start.get()..freed.end.get() {
                        begins.insert(PageId::new(pid), end.advance(1));
                    }
                }
            }
        }
    }
    for (LsnRange { start, end }, bytes) in records {
        for op in RecordView::parse(bytes).expect("record").page_ops() {
            if begins.get(&op.pid).is_some_and(|begin| end < begin) {
                continue;
            }
            let class = btree::format_class(op.op, op.payload)
                .or_else(|| redo::format_class(op.op, op.payload));
            if class.is_some() && is_newer(store, op.pid, *end) {
                continue;
            }
            let mut page = store.redo_page(op.pid, class).expect("page for redo");
            if page.page_lsn() >= *end {
                continue;
            }
            let continues = class.is_some() || page.page_lsn() == op.prev_lsn;
            assert!(continues, "{op:?} does not continue page LSN {}", page.page_lsn());
            match op.op {
                0x20..0x50 => btree::apply(&mut page, op.op, op.payload).expect("tree op"),
                _ => redo::apply(&mut page, op.op, op.payload).expect("store op"),
            }
            page.mark_dirty(LsnRange { start: *start, end: *end });
            base::probe!("test.redone");
        }
    }
}

/// Whether the page on disk already holds the format record or something later.
fn is_newer(store: &PageStore, pid: PageId, end: Lsn) -> bool {
    match store.load(pid) {
        Ok(_pin) => {
            let lsn = store.run_with_retry(|_| Ok(store.shared_page(pid)?.page_lsn()));
            lsn.expect("pinned page") >= end
        }
        Err(_) => false,
    }
}
