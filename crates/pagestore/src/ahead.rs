//! Reading pages ahead: those that lie beside each other on disk by one request.
//!
//! Leaves that were filled in the order of their keys lie so, until they are written in full again;
//! what changed of them lies elsewhere.
//!
//! 1. Who reads pages together is the reader of each (load.rs, invariant 1) from the moment in
//!    which they are asked for: who needs one of them at once, and asked for its neighbours too,
//!    waits for this request and makes none of its own. The reader gives a page up that has no
//!    frame at once: nobody waits for a frame while others wait for his pages.
//! 2. What cannot be read so is left to those who need it: they read it by itself, and are told
//!    what is wrong.

use crate::counters::add;
use crate::load::{DeltaReading, UnderWay};
use crate::location::{Location, Place};
use crate::store::{PageStore, Shared};
use base::{PageId, probe};
use runtime::file::AlignedBuf;

/// Pages being read at most.
const READS_MAX: usize = 64;
/// A request has at most so many bytes.
const SPAN_BYTES_MAX: u64 = 64 << 10;
/// So many bytes between two copies are read and thrown away.
const GAP_BYTES_MAX: u64 = 4096;

/// Copies of pages in the order in which they lie on disk.
type Neighbours = Vec<(PageId, Location)>;
/// A copy that is being read.
type Begun = (UnderWay, PageId, Location);

impl PageStore {
    /// Reads pages in the background so that they are likely in memory soon. Never parks.
    pub fn prefetch(&self, pids: &[PageId]) {
        let on_disk = |&pid: &PageId| {
            let place = self.shared().array.get(pid)?.place();
            let is_on_disk = !place.is_resident() && place != Place::NONE;
            let is_wanted = is_on_disk && !self.shared().loads.is_reading(pid);
            is_wanted.then(|| (pid, place.location()))
        };
        let mut copies: Neighbours = pids.iter().filter_map(on_disk).collect();
        copies.sort_unstable_by_key(|(_, location)| location.offset_bytes());
        copies.dedup_by_key(|(pid, _)| *pid);
        let segment_bytes =
            self.shared().disk.as_ref().map_or(1, |disk| disk.files.segment_bytes());
        for span in spans(copies, segment_bytes) {
            if self.shared().loads.count() >= READS_MAX {
                return;
            }
            let store = self.clone();
            if let [(pid, _)] = span[..] {
                // A page that cannot be read is reported to whoever asks for it.
                drop(runtime::spawn("prefetch", move || drop(store.load(pid))));
                continue;
            }
            let begin = |(pid, location)| Some((self.begin_load(pid).ok()?, pid, location));
            let begun: Vec<_> = span.into_iter().filter_map(begin).collect();
            drop(runtime::spawn("prefetch", move || store.load_together(begun)));
        }
    }

    /// Reads pages that lie beside each other by one request (invariants 1 and 2). Parks.
    fn load_together(&self, begun: Vec<Begun>) {
        let shared = self.shared();
        let deltas: Vec<_> = begun.iter().map(|(_, pid, _)| self.begin_delta(*pid)).collect();
        let (Some(first), Some(last)) = (begun.first(), begun.last()) else { return };
        let start = first.2.offset_bytes();
        let length = (end_of(last.2) - start) as usize;
        let mut buffer = shared.loads.buffer();
        let Some(bytes) = shared.read_span(&mut buffer, start, length) else { return };
        probe!("pagestore_read_together");
        for ((under_way, pid, location), delta) in begun.into_iter().zip(deltas) {
            let from = (location.offset_bytes() - start) as usize;
            let copy = &bytes[from..from + location.length_bytes() as usize];
            self.publish_ahead(pid, location, copy, delta);
            drop(under_way);
        }
        shared.loads.keep(buffer);
    }

    /// Publishes a page that nobody has asked for yet, if there is a frame for it.
    fn publish_ahead(&self, pid: PageId, location: Location, copy: &[u8], delta: DeltaReading) {
        let is_there =
            self.shared().array.get(pid).is_some_and(|it| it.place() == Place::on_disk(location));
        if !is_there {
            return;
        }
        let Some(frame) = self.shared().take_frame(location.class()) else { return };
        drop(self.publish_page(pid, location, frame, (Some(copy), delta)));
    }
}

impl Shared {
    /// Bytes of one segment; none if they cannot be read.
    fn read_span<'a>(
        &self,
        buffer: &'a mut AlignedBuf,
        start: u64,
        length: usize,
    ) -> Option<&'a [u8]> {
        let disk = self.disk.as_ref()?;
        let within = disk.files.read_range(buffer, start, length).ok()?;
        add(&self.counters.reads, 1);
        add(&self.counters.read_bytes, buffer.len() as u64);
        Some(&buffer[within..within + length])
    }
}

fn end_of(copy: Location) -> u64 {
    copy.offset_bytes() + u64::from(copy.length_bytes())
}

/// Cuts copies, sorted by where they lie, into spans that a request each reads.
fn spans(copies: Neighbours, segment_bytes: u64) -> Vec<Neighbours> {
    let mut spans: Vec<Neighbours> = Vec::new();
    for (pid, location) in copies {
        let joins = |span: &&mut Neighbours| {
            let (Some(first), Some(last)) = (span.first(), span.last()) else { return false };
            let (start, end) = (first.1.offset_bytes(), end_of(last.1));
            let next = location.offset_bytes();
            next.checked_sub(end).is_some_and(|gap| gap <= GAP_BYTES_MAX)
                && end_of(location) - start <= SPAN_BYTES_MAX
                && next / segment_bytes == start / segment_bytes
        };
        match spans.last_mut().filter(joins) {
            Some(span) => span.push((pid, location)),
            None => spans.push(vec![(pid, location)]),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_short_and_have_small_gaps() {
        let copy = |pid, offset| (PageId::new(pid), Location::new(offset, 8192, 13, 1));
        let lengths = |offsets: &[u64]| -> Vec<usize> {
            let copies = offsets.iter().zip(1..).map(|(&offset, pid)| copy(pid, offset)).collect();
            spans(copies, 1 << 20).iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(&[64, 8256, 16448]), [3]);
        assert_eq!(lengths(&[64, 8256 + 4096, 30_784]), [2, 1], "a gap above 4,096");
        let many: Vec<u64> = (0..10).map(|number| 64 + 8192 * number).collect();
        assert_eq!(lengths(&many), [8, 2], "64 KiB at a time");
        let border = (1 << 20) - 8192;
        assert_eq!(lengths(&[border, border + 8192]), [1, 1], "another segment");
        assert_eq!(lengths(&[64, 64 + 4096]), [1, 1], "copies that cannot both be there");
        assert!(lengths(&[]).is_empty());
    }
}
