//! Which copy of each page is the newest, by the directories of all groups that count (mapping.rs).
//!
//! 1. Of full copies the one with the highest page LSN; among equal ones (a copy moved by the
//!    collector) that in the segment with the higher sequence, because the other may be used again.
//! 2. Of the deltas that belong to that full copy, by the same rule the newest. Others are dead: a
//!    delta may have survived a crash that its base did not, or its page was written in full since.
//! 3. A copy that was compressed anew (catch_up.rs) and its original are of one LSN, and a delta
//!    belongs to one of them only. The newest delta of both decides which of them counts; without
//!    one either will do, since both give the same page. They differ in length, and what was moved
//!    as it is has its length and checksum: so two copies are known to be of other bytes.

use crate::error::StoreError;
use crate::files::DataFiles;
use crate::group::DirectoryEntry;
use crate::location::{Location, Place};
use crate::mapping::{Survey, damaged};
use crate::scan::ScannedGroup;
use base::{PageId, probe};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

impl Survey {
    /// In three rounds: the best full copies, what deltas call them, the deltas. Meanwhile
    /// the latch word of a page holds the rank of its best full copy, then that name; nobody else
    /// knows the array.
    pub(crate) fn build_mapping(&mut self, files: &DataFiles) -> Result<(), StoreError> {
        let (mut deltas, mut twins) = (HashMap::new(), Twins::default());
        for round in [Round::Copies, Round::Names, Round::Deltas] {
            for accepted in self.segments.iter().flatten() {
                for group in &accepted.groups {
                    self.max_page_lsn = self.max_page_lsn.max(group.header.max_page_lsn);
                    let entries = group.entries.iter();
                    for entry in entries.filter(|it| it.is_delta() == (round == Round::Deltas)) {
                        if self.array.get(entry.pid).is_none() {
                            let detail = format!("page {} is beyond the page limit", entry.pid);
                            return Err(damaged(files, group.offset, &detail));
                        }
                        let copy = ListedCopy::new(entry, group);
                        match round {
                            Round::Copies => self.offer(&copy, files, &mut twins),
                            Round::Names => self.name(&copy, &mut twins),
                            Round::Deltas => self.offer_delta(&copy, &twins, &mut deltas),
                        }
                    }
                    runtime::yield_if_due();
                }
            }
        }
        for number in 0..self.array.high_water() {
            let entry = self.array.entry(PageId::new(number));
            entry.latch.raw().store(0, Ordering::Relaxed);
            self.page_count += u64::from(entry.place() != Place::NONE);
        }
        Ok(())
    }

    fn offer(&self, copy: &ListedCopy, files: &DataFiles, twins: &mut Twins) {
        let entry = self.array.entry(copy.pid);
        let best = entry.latch.raw().load(Ordering::Relaxed);
        let place = entry.place();
        if place != Place::NONE && copy.rank == best {
            twins.met(copy, place.location());
        }
        let is_better = place == Place::NONE || copy.rank > best || {
            let number = place.location().offset_bytes() / files.segment_bytes();
            let known = self.segments[number as usize].as_ref();
            copy.rank == best && known.is_none_or(|known| copy.seq >= known.header.seq)
        };
        if place == Place::NONE || copy.rank > best {
            twins.forget(copy.pid);
        }
        if is_better {
            entry.latch.raw().store(copy.rank, Ordering::Relaxed);
            entry.set_place(Place::on_disk(copy.location));
            self.array.raise_high_water(copy.pid);
        }
    }

    fn name(&self, copy: &ListedCopy, twins: &mut Twins) {
        let entry = self.array.entry(copy.pid);
        if entry.place() == Place::on_disk(copy.location) {
            entry.latch.raw().store(copy.base, Ordering::Relaxed);
        }
        twins.name(copy);
    }

    /// `best` has rank and segment sequence of the best delta of each page so far.
    fn offer_delta(
        &self,
        copy: &ListedCopy,
        twins: &Twins,
        best: &mut HashMap<PageId, (u64, u64)>,
    ) {
        let entry = self.array.entry(copy.pid);
        let base = entry.latch.raw().load(Ordering::Relaxed);
        let twin = if copy.base == base { None } else { twins.base_of(copy) };
        let belongs = copy.base == base || twin.is_some() || base::mutant!("delta_of_another_base");
        if entry.place() == Place::NONE || !belongs {
            probe!("pagestore_delta_without_base");
            return;
        }
        let known = best.entry(copy.pid).or_default();
        if (copy.rank, copy.seq) < *known {
            return;
        }
        *known = (copy.rank, copy.seq);
        self.array.delta(copy.pid).replace(copy.location);
        if let Some(location) = twin {
            probe!("pagestore_delta_chooses_its_base");
            entry.set_place(Place::on_disk(location));
            entry.latch.raw().store(copy.base, Ordering::Relaxed);
        }
    }
}

/// What is done with the directories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Round {
    Copies,
    Names,
    Deltas,
}

/// A full copy or a delta that a directory lists.
struct ListedCopy {
    pid: PageId,
    location: Location,
    /// The word that names it, or of a delta, its base.
    base: u64,
    /// The page LSN.
    rank: u64,
    /// Sequence of its segment.
    seq: u64,
}

impl ListedCopy {
    fn new(entry: &DirectoryEntry, group: &ScannedGroup) -> ListedCopy {
        let by_group = base::mutant!("mapping_by_group_order") && !entry.is_delta();
        ListedCopy {
            pid: entry.pid,
            location: group.location_of(entry),
            base: entry.base().unwrap_or(entry.as_base().word()),
            rank: if by_group { group.header.group_seq } else { entry.page_lsn.get() },
            seq: group.header.segment_seq,
        }
    }
}

/// Full copies of one page with one LSN that are not the same bytes (invariant 3). They are few:
/// the original of one that was compressed anew is dead, and its segment soon used again.
#[derive(Debug, Default)]
struct Twins {
    of_page: HashMap<PageId, OfPage>,
}

#[derive(Debug)]
struct OfPage {
    /// Their LSN.
    rank: u64,
    copies: Vec<Twin>,
}

#[derive(Clone, Copy, Debug)]
struct Twin {
    /// What deltas call it.
    name: u64,
    location: Location,
    /// Sequence of its segment.
    seq: u64,
}

impl Twins {
    /// A copy has the LSN of one at another place, the best so far. What was compressed anew is
    /// shorter than its original; what was moved as it is, is as long and has its checksum.
    fn met(&mut self, copy: &ListedCopy, other: Location) {
        if copy.location.is_of_other_bytes(other) {
            self.of_page.insert(copy.pid, OfPage { rank: copy.rank, copies: Vec::new() });
        }
    }

    /// There is a better copy of the page than any so far.
    fn forget(&mut self, pid: PageId) {
        self.of_page.remove(&pid);
    }

    /// Takes note of a copy, if it is one of those that were met.
    fn name(&mut self, copy: &ListedCopy) {
        if let Some(of_page) = self.of_page.get_mut(&copy.pid)
            && of_page.rank == copy.rank
        {
            let &ListedCopy { base: name, location, seq, .. } = copy;
            of_page.copies.push(Twin { name, location, seq });
        }
    }

    /// The full copy that a delta belongs to, if it is one of them.
    fn base_of(&self, delta: &ListedCopy) -> Option<Location> {
        if base::mutant!("delta_finds_no_twin") {
            return None;
        }
        let copies = self.of_page.get(&delta.pid)?.copies.iter();
        let named = copies.filter(|twin| twin.name == delta.base);
        named.max_by_key(|twin| twin.seq).map(|twin| twin.location)
    }
}
