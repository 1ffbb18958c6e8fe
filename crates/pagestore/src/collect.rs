//! Collection: emptying segments that are mostly dead, and giving space back.
//!
//! 1. Copies are moved compressed, as they are, and verified by checksum; only those that wait for
//!    being compressed anew are, if cores are not short (catch_up.rs).
//! 2. A moved copy replaces the old one only where the old one still is the page's newest
//!    (compare and exchange on the location), so a page flushed meanwhile is not set back. Its
//!    page LSN is unchanged: recovery takes it only if nothing newer exists. A full copy and its
//!    delta are moved each for itself; they know each other by page LSN, not by place.
//! 3. The emptied segment is used again under the rules of segments.rs like any other.
//! 4. A copy that is damaged stays where it is, and so does its segment: reading it reports the
//!    damage for that page only.
//!
//! 5. The collector never waits for space; on a full disk it moves copies into its reserve.
//!
//! Victims are chosen while live bytes fill less than the target share of the closed segments:
//! under load by cost and benefit, which keeps what lives long from being moved again and again;
//! when space is wanted back, those with the fewest live bytes. Target and pace are debt.rs's.

use crate::array::PageEntry;
use crate::background::REST_AFTER;
use crate::blob;
use crate::catch_up::{self, CatchUp};
use crate::counters::add;
use crate::debt::{self, Load, Pace};
use crate::delta::{Base, SinceBase};
use crate::disk::{Disk, Stream, WrittenGroup};
use crate::error::StoreError;
use crate::group::DirectoryEntry;
use crate::location::{Location, Place};
use crate::outgoing::Outgoing;
use crate::scan::{NoGroup, ScannedGroup, Scanner, verify_entry};
use crate::segment::Found;
use crate::segments::Death;
use crate::store::Shared;
use base::probe;
use runtime::WaitClass;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Between two looks while there is something to do.
const PERIOD: Duration = Duration::from_millis(100);
/// Between two looks whether more may be moved.
const PACE_PERIOD: Duration = Duration::from_millis(10);
/// Between two looks otherwise.
const IDLE_PERIOD: Duration = Duration::from_millis(500);
/// Fewer closed segments than this are not worth collecting.
const SEGMENTS_MIN: usize = 3;
/// A segment fuller than this is no victim, unless the target is higher ...
const VICTIM_LIVE_MAX: f64 = 0.9;
/// ... and none is that has more than so much of what a segment of moved copies holds: moving it
/// would take as much as it gives.
const VICTIM_LIVE_MOST: f64 = 0.97;
/// The same for victims on credit (debt.rs): a byte gained costs at most a dozen moved.
const VICTIM_LIVE_REST: f64 = 0.92;
/// The end of a segment is used if a page of this class has room there.
const CLASS_LEAST: u8 = 13;
/// While pages are written one free segment in so many that take space is kept for them, at least
/// one and at most what the options say: making space anew costs little, but it is done twice.
const SPARE_PARTS: usize = 16;
/// Pages are compressed anew for so long at most until garbage and space are looked at again.
const CATCH_UP_SPAN: Duration = Duration::from_secs(1);
/// A sync for the sake of reuse comes at most this often, unless space is short.
const SYNC_PERIODS: u32 = 10;

/// What a copy in the collector's group comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) location: Location,
    /// What deltas call it, if it was compressed anew; what was moved as it is has its name.
    pub(crate) former: Option<Base>,
}

/// The fiber that collects, with its writer and buffers.
pub(crate) struct Collector {
    pub(crate) pace: Pace,
    pub(crate) catch_up: CatchUp,
    busy_utilisation: f64,
    spare_segments: usize,
    /// Copies on their way, and where they come from.
    pub(crate) group: Outgoing<Origin>,
    periods_since_sync: u32,
    /// Space is so near its end that it is looked at often.
    is_near_end: bool,
}

impl Collector {
    pub(crate) fn new(target_utilisation: f64, spare_segments: usize) -> Collector {
        Collector {
            pace: Pace::new(target_utilisation),
            catch_up: CatchUp::new(),
            busy_utilisation: target_utilisation,
            spare_segments,
            group: Outgoing::new(Stream::Moved),
            periods_since_sync: 0,
            is_near_end: false,
        }
    }

    /// Runs until the store stops.
    pub(crate) fn run(mut self, shared: &Shared) {
        let Some(disk) = &shared.disk else { return };
        if let Ok(size) = runtime::fs::file_system_size(&disk.dir) {
            shared.fit_log_cap(disk, size.available_bytes);
        }
        let mut has_collected = false;
        let mut moved = Some(runtime::now());
        while !shared.background.is_stopping() && disk.check_poison().is_ok() {
            let is_full = disk.is_full.load(Ordering::Relaxed);
            let spare = self.spare(disk);
            let soon = has_collected
                || disk.table.lock().most_deferred().is_some()
                || is_full
                || self.is_near_end
                || disk.table.lock().has_dead_segments(spare);
            let deadline = runtime::now() + if soon { PERIOD } else { IDLE_PERIOD };
            shared.background.collector_work.take(WaitClass::Idle, Some(deadline));
            if shared.background.is_recovered.load(Ordering::Relaxed) {
                // Poison and a full disk are seen by the loop and at the next look.
                has_collected = self.look(shared, disk).unwrap_or(false);
                if has_collected {
                    moved = Some(runtime::now());
                } else if moved.is_some_and(|at| at.elapsed() >= REST_AFTER) {
                    moved = None;
                    let _ = self.group.writer().rest(disk);
                }
            }
        }
        let _ = self.group.writer().close(disk);
    }

    /// One look: collect, sync if that frees something, give space back. Returns whether anything
    /// was collected.
    fn look(&mut self, shared: &Shared, disk: &Disk) -> Result<bool, StoreError> {
        self.is_near_end = shared.look_at_space(disk);
        let load = Load::of(&disk.table.lock());
        let percent = debt::debt_percent(&load, self.busy_utilisation);
        disk.debt_percent.store(percent, Ordering::Relaxed);
        self.pace.look(shared, disk, load.victim_share());
        // Before anything is cut off: after a start nobody knows what is allocated already.
        disk.keep_reserve()?;
        self.give_back(disk)?;
        let mut has_collected = false;
        while self.pace.allows(disk)
            && let Some(victim) = self.choose_victim(disk)
        {
            let outcome = self.collect(shared, disk, victim);
            disk.table.lock().segments[victim as usize].is_collected = false;
            if let Err(StoreError::DiskFull) = outcome {
                // The copies that could not be moved are where they were.
                break;
            }
            outcome?;
            has_collected = true;
            if shared.background.is_stopping() {
                return Ok(true);
            }
            self.give_back(disk)?;
        }
        let until = runtime::now() + CATCH_UP_SPAN;
        while self.catch_up(shared, disk, until)? {
            has_collected = true;
            self.give_back(disk)?;
            if shared.background.is_stopping() || !self.pace.is_idle() || runtime::now() >= until {
                break;
            }
        }
        Ok(has_collected)
    }

    /// Free segments that stay allocated: what writers will soon take, or the reserve only.
    fn spare(&self, disk: &Disk) -> usize {
        let (reserve, allocated) = {
            let table = disk.table.lock();
            (table.reserve_wanted(), table.allocated())
        };
        if disk.is_short.load(Ordering::Relaxed) {
            reserve.max(self.spare_segments)
        } else if self.pace.is_idle() {
            reserve
        } else {
            reserve.max((allocated / SPARE_PARTS).clamp(1, self.spare_segments.max(1)))
        }
    }

    /// Makes dead segments reusable by a sync, if it is time, and gives back what is spare.
    fn give_back(&mut self, disk: &Disk) -> Result<(), StoreError> {
        self.periods_since_sync += 1;
        let is_full = disk.is_full.load(Ordering::Relaxed);
        if (self.periods_since_sync >= SYNC_PERIODS || is_full) && disk.table.lock().wants_sync() {
            self.periods_since_sync = 0;
            disk.wal.flush_kick(disk.wal.end());
            disk.sync_data()?;
        }
        disk.release(self.spare(disk)).map(drop)
    }

    fn choose_victim(&mut self, disk: &Disk) -> Option<u32> {
        let mut table = disk.table.lock();
        let (live, all, count) = table.utilisation();
        if count < SEGMENTS_MIN {
            return None;
        }
        let target = self.pace.target(disk, live as f64 / all as f64)?;
        let fullest = match self.pace.is_on_credit() {
            true => VICTIM_LIVE_REST * disk.last_fill(),
            false => VICTIM_LIVE_MAX.max(target).min(VICTIM_LIVE_MOST * disk.fill(Stream::Moved)),
        };
        let victim = table.victim(fullest, self.pace.is_under_load(disk))?;
        table.segments[victim as usize].is_collected = true;
        Some(victim)
    }

    /// Waits until a group may be moved; `share`: what of the victim was live when its collection
    /// began. What is left of it falls to nothing meanwhile, and the pace would with it.
    fn keep_pace(&mut self, shared: &Shared, disk: &Disk, share: f64) {
        self.pace.look(shared, disk, share);
        while !self.pace.allows(disk) && !shared.background.is_stopping() {
            runtime::sleep(PACE_PERIOD);
            self.pace.look(shared, disk, share);
        }
    }

    /// Moves every live copy out of a segment.
    fn collect(&mut self, shared: &Shared, disk: &Disk, victim: u32) -> Result<(), StoreError> {
        let _under_way = base::under_way::begin("pagestore.collection");
        let mut scanner = Scanner::new(&disk.files);
        let groups = match read_directory(disk, &mut scanner, victim) {
            Ok(groups) => groups,
            Err(error) => return leave_alone(disk, victim, error),
        };
        let share = {
            let table = disk.table.lock();
            let segment = &table.segments[victim as usize];
            segment.live_bytes as f64 / table.capacity(segment) as f64
        };
        self.clear(disk);
        for scanned in &groups {
            if !scanned.entries.iter().any(|entry| is_newest(shared, entry, scanned)) {
                continue;
            }
            let bytes = match scanner.read_group(scanned) {
                Ok(bytes) => bytes,
                Err(error) => return leave_alone(disk, victim, error),
            };
            for entry in &scanned.entries {
                if !is_newest(shared, entry, scanned) {
                    continue;
                }
                if verify_entry(bytes, entry).is_err() {
                    disk.table.lock().segments[victim as usize].is_damaged = true;
                    probe!("pagestore_damaged_copy_not_moved");
                    continue;
                }
                let length = entry.length_bytes as usize;
                if !self.group.has_room(length) {
                    self.move_group(shared, disk)?;
                    self.keep_pace(shared, disk, share);
                }
                if !self.group.has_room(length) {
                    // Not at the end of this segment: at the begin of the next.
                    self.group.widen();
                }
                self.take(shared, entry, scanned, bytes);
                runtime::yield_if_due();
            }
        }
        self.move_group(shared, disk)?;
        add(&shared.counters.collections, 1);
        probe!("pagestore_collected");
        Ok(())
    }

    /// Puts a copy into the group, which has room for it. `bytes` are those of its group.
    fn take(
        &mut self,
        shared: &Shared,
        entry: &DirectoryEntry,
        scanned: &ScannedGroup,
        bytes: &[u8],
    ) {
        let may_be_anew = catch_up::is_deferred(shared, entry, scanned)
            && shared.background.catches_up()
            && shared.governor.have_cores_rested(runtime::now())
            && self.group.has_room(blob::blob_bytes_max(entry.class));
        if may_be_anew && self.take_anew(shared, entry, scanned, bytes) {
            return;
        }
        let start = entry.offset_bytes as usize;
        let copy = &bytes[start..start + entry.length_bytes as usize];
        let origin = Origin { location: scanned.location_of(entry), former: None };
        self.group.take(copy, entry, origin);
    }

    pub(crate) fn clear(&mut self, disk: &Disk) {
        let least = blob::blob_bytes_max(CLASS_LEAST);
        self.group.begin(disk, most_entries(disk), disk.group_bytes, least);
    }

    /// Writes the gathered copies and makes them the newest of their pages.
    pub(crate) fn move_group(&mut self, shared: &Shared, disk: &Disk) -> Result<(), StoreError> {
        if !self.group.is_empty() {
            if self.group.copies().iter().any(|(_, origin)| origin.former.is_some()) {
                catch_up::announce(disk)?;
            }
            let (written, bytes) = self.group.write(disk)?;
            for &(ref entry, origin) in self.group.copies() {
                relocate(shared, disk, entry, origin, written);
            }
            add(&shared.counters.moved_pages, self.group.copies().len() as u64);
            add(&shared.counters.moved_bytes, bytes as u64);
            self.pace.moved(bytes);
        }
        self.clear(disk);
        Ok(())
    }
}

/// Entries that fit into a group's directory, bounded so that the directory stays small.
fn most_entries(disk: &Disk) -> usize {
    (disk.group_bytes / 2048).max(8)
}

/// The segment cannot be collected: it is left alone from now on, unless the store is stopping.
pub(crate) fn leave_alone(disk: &Disk, victim: u32, error: StoreError) -> Result<(), StoreError> {
    if matches!(error, StoreError::Poisoned(_)) {
        return Err(error);
    }
    disk.table.lock().segments[victim as usize].is_damaged = true;
    Ok(())
}

/// The groups of a closed segment.
pub(crate) fn read_directory(
    disk: &Disk,
    scanner: &mut Scanner<'_>,
    number: u32,
) -> Result<Vec<ScannedGroup>, StoreError> {
    let (file, offset) = disk.files.describe(disk.start_of(number));
    let damaged = |detail: &str| StoreError::Damaged {
        file: file.clone(),
        offset,
        detail: detail.to_owned(),
    };
    let seq = disk.table.lock().segments[number as usize].seq;
    let Found::Good(trailer, _) = scanner.trailer(number)? else {
        return Err(damaged("the trailer is unreadable"));
    };
    if trailer.seq != seq {
        return Err(damaged("the trailer of another use of the segment"));
    }
    scanner.footer(number, &trailer).map_err(|problem| match problem {
        NoGroup::Store(error) => error,
        NoGroup::Ends(detail) => damaged(detail),
    })
}

/// Whether the copy is the newest of its page, by a look without the latch: a hint.
pub(crate) fn is_newest(shared: &Shared, entry: &DirectoryEntry, group: &ScannedGroup) -> bool {
    let location = group.location_of(entry);
    let Some(page) = shared.array.get(entry.pid) else { return false };
    if entry.is_delta() {
        return shared.array.delta(entry.pid).location() == location;
    }
    let place = page.place();
    if place.is_resident() {
        let descriptor = shared.frames.descriptor(place.frame());
        descriptor.location.load(Ordering::Relaxed) == location.word()
    } else {
        place == Place::on_disk(location)
    }
}

/// Points the page to the moved copy if the original still is its newest.
fn relocate(
    shared: &Shared,
    disk: &Disk,
    entry: &DirectoryEntry,
    origin: Origin,
    written: WrittenGroup,
) {
    let moved = written.location_of(entry);
    let page = shared.array.entry(entry.pid);
    while !page.latch.exclusive() {
        runtime::yield_now();
    }
    let is_newest = if entry.is_delta() {
        probe!("pagestore_delta_moved");
        let is_newest = shared.array.delta(entry.pid).exchange(origin.location, moved);
        if is_newest {
            let places = [origin.location, moved];
            shared.recent_deltas.relocate(&shared.frames, entry.pid, places);
        }
        is_newest
    } else {
        let has_delta = !shared.array.delta(entry.pid).location().is_none();
        let may_be_anew = origin.former.is_none() || !has_delta || base::mutant!("anew_with_delta");
        may_be_anew && relocate_copy(shared, page, entry, origin, moved)
    };
    if is_newest {
        let mut table = disk.table.lock();
        table.born(moved);
        if entry.is_deferred() {
            table.defer(moved);
        }
        table.die(origin.location, Death::Superseded(written.group_seq));
    } else {
        probe!("pagestore_page_changed_while_moved");
    }
    page.latch.release_unchanged();
}

/// The same for a full copy. The page's latch is held exclusively.
fn relocate_copy(
    shared: &Shared,
    page: &PageEntry,
    entry: &DirectoryEntry,
    Origin { location, former }: Origin,
    moved: Location,
) -> bool {
    let place = page.place();
    if !place.is_resident() {
        let is_there = place == Place::on_disk(location);
        if is_there {
            page.set_place(Place::on_disk(moved));
        }
        return is_there;
    }
    let descriptor = shared.frames.descriptor(place.frame());
    let is_on_its_way = descriptor.flush_ticket.load(Ordering::Relaxed) != 0;
    if former.is_some() && is_on_its_way && !base::mutant!("anew_on_its_way") {
        return false;
    }
    let (from, to) = (location.word(), moved.word());
    let exchanged =
        descriptor.location.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    let since = shared.frames.since_base(place.frame());
    if exchanged.is_ok() && former == Some(since.base) && !base::mutant!("anew_by_former_name") {
        probe!("pagestore_base_compressed_anew");
        let since = SinceBase { base: entry.as_base(), ..since };
        shared.frames.set_since_base(place.frame(), since);
    }
    exchanged.is_ok()
}
