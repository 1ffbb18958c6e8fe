//! A delta as memory has it (recent.rs): of the chunks that changed only the bytes that are not
//! those of the base. Made when a page was read, which is when both are there.
//!
//! ```text
//! offset size field
//!      0    8 page LSN
//!      8    8 page LSN of the base
//!     16   16 set of the chunks that the delta has
//!     32    4 CRC-32C of the whole page as base and delta give it
//!     36    4 CRC-32C of the base's blob
//!     40    2 deltas written since the base
//!     42      runs, one behind the other: where in the page (2), how many bytes (2), these
//! ```
//!
//! 1. It never leaves memory. Nothing but the page's checksum tells that it is right, so that is
//!    compared whenever it is used.

use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::chunks::{CHUNKS, chunks_of};
use crate::delta::{Base, SinceBase, halves, joined};
use crate::header::{self, PID_OFFSET};
use base::Lsn;
use base::checksum::crc32c;

/// Bytes before the runs.
const HEAD_BYTES: usize = 42;
/// Bytes before those of a run.
const RUN_HEAD_BYTES: usize = 4;
/// So many bytes that are the base's end a run: a new one would have a head as long.
const GAP_BYTES: usize = 2 * RUN_HEAD_BYTES;

/// The delta that made `page` of its full copy `base`.
pub(crate) fn encode(base: &[u8], page: &[u8], since: &SinceBase) -> Vec<u8> {
    let mut delta = vec![0; HEAD_BYTES];
    let [first, second] = halves(since.changed);
    put(&mut delta, 0, &header::page_lsn(page).get().to_le_bytes());
    put(&mut delta, 8, &since.base.lsn.get().to_le_bytes());
    put(&mut delta, 16, &first.to_le_bytes());
    put(&mut delta, 24, &second.to_le_bytes());
    put(&mut delta, 32, &crc32c(page).to_le_bytes());
    put(&mut delta, 36, &since.base.crc.to_le_bytes());
    put(&mut delta, 40, &since.count.to_le_bytes());
    let size = page.len() / CHUNKS;
    // The LSN stands in front.
    let starts = chunks_of(since.changed).map(|number| (number * size).max(PID_OFFSET));
    let mut run: Option<(usize, usize)> = None;
    for start in starts {
        let end = start / size * size + size;
        for at in (start..end).filter(|&at| base[at] != page[at]) {
            run = match run {
                Some((start, end)) if at - end < GAP_BYTES => Some((start, at + 1)),
                former => {
                    append(&mut delta, page, former);
                    Some((at, at + 1))
                }
            };
        }
    }
    append(&mut delta, page, run);
    delta
}

/// Appends the bytes of a page from one place up to another.
fn append(delta: &mut Vec<u8>, page: &[u8], run: Option<(usize, usize)>) {
    let Some((start, end)) = run else { return };
    delta.extend_from_slice(&(start as u16).to_le_bytes());
    delta.extend_from_slice(&((end - start) as u16).to_le_bytes());
    delta.extend_from_slice(&page[start..end]);
}

/// Makes the page of its full copy `base`, which stands in `page`.
pub(crate) fn apply(delta: &[u8], base: Base, page: &mut [u8]) -> Result<SinceBase, &'static str> {
    let cut_off = "a delta in memory that is cut off";
    let mut runs = delta.get(HEAD_BYTES..).ok_or(cut_off)?;
    if base != (Base { lsn: Lsn::new(u64_at(delta, 8)), crc: u32_at(delta, 36) }) {
        return Err("a delta in memory of another copy of the page");
    }
    while !runs.is_empty() {
        let (head, rest) = runs.split_at_checked(RUN_HEAD_BYTES).ok_or(cut_off)?;
        let [start, length] = [0, 2].map(|at| usize::from(u16_at(head, at)));
        let (bytes, rest) = rest.split_at_checked(length).ok_or(cut_off)?;
        page.get_mut(start..start + length).ok_or(cut_off)?.copy_from_slice(bytes);
        runs = rest;
    }
    header::set_page_lsn(page, Lsn::new(u64_at(delta, 0)));
    if crc32c(page) != u32_at(delta, 32) {
        return Err("base and delta in memory do not give the page that was written");
    }
    let changed = joined([16, 24].map(|at| u64_at(delta, at)));
    Ok(SinceBase { base, changed, count: u16_at(delta, 40) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blob::tests::sample_page;
    use crate::delta::tests::changed_page;
    use base::Random;

    #[test]
    fn any_changes_come_back() {
        let mut random = Random::new(21);
        for _ in 0..400 {
            let (base, page, since) = changed_page(&mut random);
            let delta = encode(&base, &page, &since);
            let mut back = base.clone();
            assert_eq!(apply(&delta, since.base, &mut back), Ok(since));
            assert!(back == page);
        }
    }

    #[test]
    fn it_has_what_differs_and_no_more() {
        let base = sample_page(3, 13, 5000, 4);
        let mut page = base.clone();
        let places = [1000, 1001, 1009, 1018, 5000];
        places.into_iter().for_each(|at| page[at] ^= 1);
        let changed = places.into_iter().fold(0, |set, at| set | 1 << (at / 64));
        let since = SinceBase { changed, ..SinceBase::default() };
        let delta = encode(&base, &page, &since);
        // Three runs: a gap of seven bytes is bridged, one of eight is not.
        assert_eq!(delta.len(), HEAD_BYTES + 3 * RUN_HEAD_BYTES + 10 + 1 + 1);
        assert_eq!(encode(&base, &base, &since).len(), HEAD_BYTES, "nothing differs");
    }

    #[test]
    fn a_wrong_base_and_damage_are_found() {
        let mut random = Random::new(22);
        for _ in 0..200 {
            let (base, page, since) = changed_page(&mut random);
            let delta = encode(&base, &page, &since);
            let other = Base { crc: since.base.crc ^ 1, ..since.base };
            assert!(apply(&delta, other, &mut base.clone()).is_err());
            let mut other = base.clone();
            other[header::HEADER_BYTES + random.index(60)] ^= 1;
            let outcome = apply(&delta, since.base, &mut other);
            assert!(outcome.is_err() || other == page, "a base of other content");
            let mut damaged = delta.clone();
            random.damage(&mut damaged);
            let mut back = base.clone();
            if apply(&damaged, since.base, &mut back).is_ok() {
                assert!(back == page);
            }
        }
    }
}
