//! Creating, opening and checkpointing a store.
//!
//! The order of a start (the engine drives it):
//!
//! ```text
//! superblock = Superblock::load(dir)?, epoch + 1, store
//! recovered  = recover(&options, &superblock)?            mapping; before the log is opened
//! log        = read from redo_lsn, known durable = max(superblock.durable_lsn, max_page_lsn)
//! store      = PageStore::open(options, wal, recovered)?  flushers run from here on
//! redo       : store.redo_page(..), redo::apply(..)
//! store.finish_recovery()?                                allocation map, unallocated pages
//! store.start_catching_up()                               as soon as compression is known by tree
//! ```
//!
//! The order of a checkpoint (amendment 9):
//!
//! ```text
//! redo = store.checkpoint_barrier()?       every change below is in a complete group
//! store.sync_data()?                       ... and durable
//! store.write_superblock(|s| s.redo_lsn = redo, ..)?
//! wal.recycle_before(..)
//! ```

use crate::array::TranslationArray;
use crate::counters::{Counters, add};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::mapping::{Recovered, open_files};
use crate::options::StoreOptions;
use crate::segments::SegmentTable;
use crate::space::MAP_PAGES;
use crate::store::PageStore;
use crate::superblock::Superblock;
use base::Lsn;
use runtime::WaitClass;
use runtime::sync::Event;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wal::Wal;

impl PageStore {
    /// Starts an empty store in a directory that holds nothing but this superblock. Parks.
    pub fn create(
        options: StoreOptions,
        wal: Arc<Wal>,
        superblock: Superblock,
    ) -> Result<PageStore, StoreError> {
        let files = open_files(&options, &superblock)?;
        runtime::fs::sync_dir(&options.dir)
            .map_err(|error| StoreError::io(&options.dir.display().to_string(), &error))?;
        let array = TranslationArray::new(options.max_pages.next_multiple_of(MAP_PAGES))?;
        let counters = Arc::new(Counters::default());
        let table = SegmentTable::new(superblock.segment_bytes);
        let disk = Disk::new(&options, superblock, files, table, wal, counters.clone());
        let store = PageStore::assemble(&options, array, counters, disk)?;
        store.shared().background.is_recovered.store(true, Ordering::Relaxed);
        store.start_catching_up();
        Ok(store)
    }

    /// Continues with what [`crate::recover`] found. Redo follows, then
    /// [`PageStore::finish_recovery`] and, when the compression of all trees has been set,
    /// [`PageStore::start_catching_up`]. Parks.
    pub fn open(
        options: StoreOptions,
        wal: Arc<Wal>,
        recovered: Recovered,
    ) -> Result<PageStore, StoreError> {
        let newest = recovered.max_page_lsn();
        if newest > wal.durable() {
            return Err(StoreError::Damaged {
                file: "log".to_owned(),
                offset: 0,
                detail: format!("pages know LSN {newest}, the log ends at {}", wal.durable()),
            });
        }
        let Recovered { superblock, files, array, table, torn_groups, .. } = recovered;
        let counters = Arc::new(Counters::default());
        add(&counters.torn_groups, torn_groups);
        let disk = Disk::new(&options, superblock, files, table, wal, counters.clone());
        PageStore::assemble(&options, array, counters, disk)
    }

    /// After redo: reads the allocation map, drops pages that are not allocated (freed, or
    /// created by operations that the crash cut short) and lets collection begin. Returns how
    /// many pages were dropped. Parks.
    pub fn finish_recovery(&self) -> Result<u64, StoreError> {
        let dropped = self.space().rebuild()?;
        let background = &self.shared().background;
        background.is_recovered.store(true, Ordering::Relaxed);
        background.collector_work.set();
        Ok(dropped)
    }

    /// The LSN from which redo would repeat every change that is not in a complete group: the
    /// lowest first change of dirty pages and of copies on their way.
    ///
    /// Changes whose record is appended while their page is still latched are covered: the end of
    /// the log is taken first, then every latch that was held at that time is waited for. And a
    /// dirty page that was freed no longer counts, so the record that freed it must be durable
    /// before anybody relies on the answer: this returns only then. Parks.
    pub fn checkpoint_barrier(&self) -> Result<Lsn, StoreError> {
        let Some(disk) = &self.shared().disk else { return Ok(Lsn::ZERO) };
        let end = disk.wal.end();
        // No latch is held across a scheduling point, so when every worker has passed one, all
        // changes logged below `end` have been declared by `mark_dirty`.
        let passed = Arc::new(Event::new());
        let signal = passed.clone();
        runtime::quiescent::defer(move || signal.set());
        passed.wait_uncancellable(WaitClass::Other, None);
        let oldest = self.shared().dirty.oldest().map_or(end, |oldest| oldest.min(end));
        if !base::mutant!("barrier_before_log") {
            let durable = disk.wal.wait_durable(disk.wal.end());
            durable.map_err(|error| disk.fatal(&error.to_string()))?;
        }
        Ok(oldest)
    }

    /// What [`PageStore::checkpoint_barrier`] would roughly return, without waiting: good for
    /// deciding whether a checkpoint is worth while, not for taking one.
    pub fn oldest_unwritten(&self) -> Lsn {
        let Some(disk) = &self.shared().disk else { return Lsn::ZERO };
        self.shared().dirty.oldest().unwrap_or(disk.wal.end())
    }

    /// Makes every complete group durable. Returns the sequence of the last one. Parks.
    pub fn sync_data(&self) -> Result<u64, StoreError> {
        self.shared().disk.as_ref().map_or(Ok(0), Disk::sync_data)
    }

    /// Changes the superblock and writes it durably. Parks.
    pub fn write_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<(), StoreError> {
        self.shared().disk.as_ref().map_or(Ok(()), |disk| disk.write_superblock(change))
    }

    /// The superblock as last written; `None` in a volatile store. Parks.
    pub fn superblock(&self) -> Option<Superblock> {
        self.shared().disk.as_ref().map(Disk::superblock)
    }

    /// Why the store has stopped, if it has.
    pub fn check_poison(&self) -> Result<(), StoreError> {
        self.shared().disk.as_ref().map_or(Ok(()), Disk::check_poison)
    }

    /// Whether the last write met a full disk.
    pub fn is_disk_full(&self) -> bool {
        self.shared().disk.as_ref().is_some_and(|disk| disk.is_full.load(Ordering::Relaxed))
    }

    /// Bytes of live copies, and bytes that segments take in the file system.
    pub fn space_in_use(&self) -> (u64, u64) {
        let Some(disk) = &self.shared().disk else { return (0, 0) };
        let table = disk.table.lock();
        (table.live_bytes(), table.allocated_bytes())
    }

    /// Of these the bytes of segments that writers have open, and of those without live copies.
    pub fn space_open_and_free(&self) -> (u64, u64) {
        let Some(disk) = &self.shared().disk else { return (0, 0) };
        disk.table.lock().open_and_free_bytes()
    }
}
