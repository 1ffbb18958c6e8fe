//! Catching up: pages that were written with LZ4, or as they are, as cores were short
//! (governor.rs), are compressed as their trees ask for when cores have not been short for a while.
//!
//! 1. The new copy is of the same page with the same page LSN. It replaces the old one like a moved
//!    one, under the rules of collect.rs, and recovery takes it for one, but for what follows.
//! 2. A delta names its base by checksum, so a page with a delta keeps its copy: such a page is
//!    written again soon. Of a page in memory no copy may be on its way, and what it calls its base
//!    is the new copy from then on. All of this is looked at under the page's latch.
//! 3. So of the two copies with one LSN a delta belongs to one at most that was published as the
//!    newest, and recovery takes the one that the newest delta belongs to (newest.rs, invariant 3).
//! 4. The new copy is shorter, or it is not written: recovery tells the two apart by that.
//! 5. A copy that stays as it is, is not looked at again in this run.
//! 6. A store that never rests catches up all the same, after [`PATIENCE`], by [`LEAST_RATE`] or
//!    [`LONGEST`]. Until then nothing is done: a load has its cores for itself.
//! 7. Collection does not wait for it: after a second at most the collector looks at garbage and
//!    space again, and goes on here afterwards.

use crate::blob;
use crate::collect::{Collector, Origin, is_newest, leave_alone, read_directory};
use crate::counters::add;
use crate::debt::{IDLE_RATE, must_not_grow, wants_space};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::group::DirectoryEntry;
use crate::header::class_bytes;
use crate::location::Location;
use crate::packing;
use crate::scan::{ScannedGroup, Scanner, verify_entry};
use crate::store::{PageStore, Shared};
use crate::superblock::Superblock;
use base::{buggify_with, probe};
use runtime::Instant;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of copies that are compressed anew in a second while pages are written but cores have not
/// been short for a while ...
const BUSY_RATE: f64 = 64e6;
/// ... and none while they have, for so long at a stretch ...
const PATIENCE: Duration = Duration::from_secs(600);
/// ... but then these, a hundred pages, which take a hundredth of a core ...
const LEAST_RATE: f64 = 1e6;
/// ... or as many as would do what waits within this time, if that is more.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// Bytes that may be compressed at once after a time without work.
const BURST_BYTES: f64 = 1e6;

/// How far catching up has come, and how fast it may go on.
#[derive(Debug)]
pub(crate) struct CatchUp {
    at: Instant,
    /// Bytes of copies that may be compressed anew.
    allowance: f64,
    /// See [`least_rate`].
    least_rate: f64,
    /// Since when cores have been short again and again.
    restless_since: Option<Instant>,
    /// The segment that is gone through, its sequence, and its next group.
    under_way: Option<(u32, u64, usize)>,
    /// A page as it was read.
    page: Vec<u8>,
}

impl CatchUp {
    pub(crate) fn new() -> CatchUp {
        let page = vec![0; class_bytes(crate::header::CLASS_MAX)];
        CatchUp {
            at: runtime::now(),
            allowance: 0.0,
            least_rate: LEAST_RATE,
            restless_since: None,
            under_way: None,
            page,
        }
    }

    /// Takes note of the time that has passed; whether something may be done now.
    fn may_go_on(&mut self, shared: &Shared, disk: &Disk, is_idle: bool) -> bool {
        let now = runtime::now();
        shared.governor.look_at_cores(now, runtime::pressure);
        let rate = match shared.governor.have_cores_rested(now) {
            true => self.rate_at_rest(is_idle),
            false => self.rate_without_rest(now),
        };
        let earned = rate * (now - self.at).as_secs_f64();
        self.at = now;
        self.allowance = (self.allowance + earned).min(earned.max(BURST_BYTES));
        // On a short disk it gives space back.
        self.allowance > 0.0 || wants_space(disk)
    }

    fn rate_at_rest(&mut self, is_idle: bool) -> f64 {
        self.restless_since = None;
        if is_idle { IDLE_RATE } else { BUSY_RATE }
    }

    fn rate_without_rest(&mut self, now: Instant) -> f64 {
        let since = *self.restless_since.get_or_insert(now);
        if now - since < PATIENCE { 0.0 } else { self.least_rate }
    }
}

impl Collector {
    /// Compresses some deferred copies anew, if it is time, but no further group after `until`;
    /// returns whether any were looked at.
    pub(crate) fn catch_up(
        &mut self,
        shared: &Shared,
        disk: &Disk,
        until: Instant,
    ) -> Result<bool, StoreError> {
        let is_idle = self.pace.is_idle();
        if !shared.background.catches_up() || !self.catch_up.may_go_on(shared, disk, is_idle) {
            return Ok(false);
        }
        let Some((number, group)) = self.next_deferred(disk) else { return Ok(false) };
        let outcome = self.compress_segment(shared, disk, (number, group), until);
        let mut table = disk.table.lock();
        let segment = &mut table.segments[number as usize];
        segment.is_collected = false;
        self.catch_up.under_way = None;
        match outcome {
            Ok(Some(next)) => self.catch_up.under_way = Some((number, segment.seq, next)),
            Ok(None) => segment.deferred_bytes = 0,
            Err(StoreError::DiskFull) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// The segment to go on with and its group, marked as taken.
    fn next_deferred(&mut self, disk: &Disk) -> Option<(u32, usize)> {
        let mut table = disk.table.lock();
        self.catch_up.least_rate = least_rate(table.deferred_bytes());
        let (number, group) = match self.catch_up.under_way {
            Some((number, seq, group)) if table.has_deferred(number, seq) => (number, group),
            _ => (table.most_deferred()?, 0),
        };
        table.segments[number as usize].is_collected = true;
        Some((number, group))
    }

    /// Goes through the deferred copies of a segment from a group on. Returns the group to go on
    /// with, if it has to wait.
    fn compress_segment(
        &mut self,
        shared: &Shared,
        disk: &Disk,
        (number, first): (u32, usize),
        until: Instant,
    ) -> Result<Option<usize>, StoreError> {
        let _under_way = base::under_way::begin("pagestore.collection");
        let mut scanner = Scanner::new(&disk.files);
        let groups = match read_directory(disk, &mut scanner, number) {
            Ok(groups) => groups,
            Err(error) => return leave_alone(disk, number, error).map(|()| None),
        };
        self.clear(disk);
        for (place, scanned) in groups.iter().enumerate().skip(first) {
            let waits = |entry: &&DirectoryEntry| is_deferred(shared, entry, scanned);
            if !scanned.entries.iter().any(|entry| waits(&entry)) {
                continue;
            }
            let bytes = match scanner.read_group(scanned) {
                Ok(bytes) => bytes,
                Err(error) => return leave_alone(disk, number, error).map(|()| None),
            };
            for entry in scanned.entries.iter().filter(waits) {
                if verify_entry(bytes, entry).is_err() {
                    disk.table.lock().segments[number as usize].is_damaged = true;
                    continue;
                }
                if !self.group.has_room(blob::blob_bytes_max(entry.class)) {
                    self.move_group(shared, disk)?;
                    self.group.widen();
                }
                self.catch_up.allowance -= f64::from(entry.length_bytes);
                self.take_anew(shared, entry, scanned, bytes);
                runtime::yield_if_due();
            }
            if !self.may_go_on_with_groups(shared, disk, until) {
                self.move_group(shared, disk)?;
                return Ok(Some(place + 1));
            }
        }
        self.move_group(shared, disk)?;
        Ok(None)
    }

    fn may_go_on_with_groups(&mut self, shared: &Shared, disk: &Disk, until: Instant) -> bool {
        let is_idle = self.pace.is_idle();
        !shared.background.is_stopping()
            && runtime::now() < until
            && self.catch_up.may_go_on(shared, disk, is_idle)
            && !buggify_with!(0.2)
    }

    /// Puts a copy into the group as its tree asks for it; `false` if it is not to be, or gains
    /// nothing by that. `bytes` are those of its group; the group of the collector has room.
    pub(crate) fn take_anew(
        &mut self,
        shared: &Shared,
        entry: &DirectoryEntry,
        scanned: &ScannedGroup,
        bytes: &[u8],
    ) -> bool {
        let start = entry.offset_bytes as usize;
        let copy = &bytes[start..start + entry.length_bytes as usize];
        let page = &mut self.catch_up.page[..class_bytes(entry.class)];
        let Some(blob) = packing::encode_anew(shared, copy, page, self.group.rest()) else {
            return false;
        };
        probe!("pagestore_compressed_anew");
        add(&shared.counters.anew_pages, 1);
        add(&shared.counters.anew_former_bytes, u64::from(entry.length_bytes));
        add(&shared.counters.anew_bytes, blob.stored_bytes());
        let anew = DirectoryEntry::new(&blob, 0, page, false);
        let origin = Origin { location: scanned.location_of(entry), former: Some(entry.as_base()) };
        self.group.push(anew, origin);
        true
    }
}

/// Bytes a second of so many that wait, while cores are short.
fn least_rate(deferred_bytes: u64) -> f64 {
    (deferred_bytes as f64 / LONGEST.as_secs_f64()).max(LEAST_RATE)
}

/// Before the first copy is written that was compressed anew: what does not know of them must not
/// recover the store from then on. Parks.
pub(crate) fn announce(disk: &Disk) -> Result<(), StoreError> {
    if disk.superblock().incompatible & Superblock::COPIES_ANEW == 0 {
        disk.write_superblock(|superblock| superblock.incompatible |= Superblock::COPIES_ANEW)?;
    }
    Ok(())
}

/// Whether the copy waits for being compressed anew and may be (invariant 2), by a look without the
/// latch: a hint.
pub(crate) fn is_deferred(shared: &Shared, entry: &DirectoryEntry, scanned: &ScannedGroup) -> bool {
    entry.is_deferred()
        && is_newest(shared, entry, scanned)
        && shared.array.delta(entry.pid).location().is_none()
}

impl Shared {
    /// Whether pages may be written larger than they are to be in the end.
    pub(crate) fn has_room_to_defer(&self) -> bool {
        let is_roomy = |disk: &Disk| disk.is_roomy.load(Ordering::Relaxed) && !must_not_grow(disk);
        self.disk.as_ref().is_some_and(is_roomy)
    }

    /// Whether a full copy on disk lies among such.
    pub(crate) fn is_among_deferred(&self, location: Location) -> bool {
        let is_among = |disk: &Disk| disk.table.lock().is_among_deferred(location);
        self.disk.as_ref().is_some_and(is_among)
    }
}

impl PageStore {
    /// What every tree asks for is known from now on, so that what was deferred may be compressed.
    pub fn start_catching_up(&self) {
        self.shared().background.start_catching_up();
    }

    /// Bytes of copies that wait for being compressed as their trees ask for.
    pub fn deferred_bytes(&self) -> u64 {
        let Some(disk) = &self.shared().disk else { return 0 };
        disk.table.lock().deferred_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_never_rests_begins_after_ten_minutes() {
        runtime::sim::Simulation::new(runtime::sim::SimConfig::new(1))
            .run(|| {
                let mut catch_up = CatchUp::new();
                let begun = runtime::now();
                let mut at =
                    |seconds: u64| catch_up.rate_without_rest(begun + Duration::from_secs(seconds));
                assert_eq!(
                    [at(0), at(599), at(600), at(9_000)],
                    [0.0, 0.0, LEAST_RATE, LEAST_RATE]
                );
                assert_eq!(catch_up.rate_at_rest(true), IDLE_RATE);
                assert_eq!(catch_up.rate_without_rest(begun), 0.0, "anew");
            })
            .expect("it ends");
    }

    #[test]
    fn a_large_store_that_never_rests_does_not_wait_for_days() {
        assert_eq!(least_rate(0), LEAST_RATE);
        assert_eq!(least_rate(4 << 30), LEAST_RATE, "it takes an hour");
        assert_eq!(least_rate(LONGEST.as_secs() * 35_000_000), 35e6);
    }
}
