//! A delta: what changed of a page since its newest full copy, the *base*.
//!
//! A blob with bit 7 of its codec set. Its payload:
//!
//! ```text
//! offset size field                                    (offsets within the blob)
//!     32    8 page_lsn of the base
//!     40    8 set of the chunks that follow, first half: bit n is the nth 128th of the page
//!     48    4 CRC-32C of the whole page as base and delta give it
//!     52    4 CRC-32C of the base's blob
//!     56    2 deltas written since the base, this one included
//!     58    2 layout (1)
//!     60    8 set of the chunks, second half: bit n is 128th 64 + n
//!     68      the bytes of these chunks, one behind the other, after the codec
//! ```
//!
//! Layout 0 has 64ths of the page, one word for their set, and the chunks from offset 60 on. It is
//! read and not written any more.
//!
//! 1. A delta is cumulative: it holds every chunk that differs from the base, so a page on disk is
//!    a base and at most one delta, the one with the highest page LSN.
//! 2. It belongs to the full copy of its page with exactly that page LSN and checksum, wherever
//!    that lies; the collector moves both independently. Without it a delta means nothing: one that
//!    outlived a base lost in a crash is not put on what recovery wrote in its stead.
//! 3. The checksum is over the page, not over the delta: whatever was applied to a wrong base, or
//!    lacks a change, is found when it is read, never served.

use crate::blob::{
    BLOB_HEADER_BYTES, BlobHeader, Payload, blob_bytes, pack, payload, seal, unpack,
};
use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::chunks::{CHUNKS, chunk_bytes, chunks_of};
use crate::counters::Counters;
use crate::header;
use base::Lsn;
use base::checksum::crc32c;
use codec::{Codec, CodecId, Dictionary};
use std::sync::atomic::Ordering;

/// Bytes of the payload before the chunks.
pub(crate) const FIXED_BYTES: usize = 36;
/// As [`FIXED_BYTES`], of layout 0.
pub(crate) const FIXED_BYTES_FORMER: usize = 28;
/// The layout that is written.
const LAYOUT: u16 = 1;
/// A delta that takes more than this share of its base is not worth a second read.
const BASE_SHARE: u64 = 3;
/// With fewer bytes of chunks written nothing is expected of their compression.
const EXPERIENCE_BYTES: u64 = 16 << 10;

/// A full copy of a page, as its delta names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) lsn: Lsn,
    /// Checksum of its blob.
    pub(crate) crc: u32,
}

impl Base {
    /// Both in a word, for directories. Two copies of a page with the same word are the same.
    pub(crate) fn word(self) -> u64 {
        self.lsn.get() ^ u64::from(self.crc) << 32
    }
}

/// What a delta says of its page beside its bytes, and what a page in memory knows of its copies
/// on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinceBase {
    /// The base; its LSN is zero if the page has none that a delta may refer to.
    pub(crate) base: Base,
    /// Chunks that may differ from the base.
    pub(crate) changed: u128,
    /// Deltas written since the base.
    pub(crate) count: u16,
}

/// The base in a verified delta.
pub(crate) fn base(bytes: &[u8]) -> Base {
    Base { lsn: Lsn::new(u64_at(bytes, 32)), crc: u32_at(bytes, 52) }
}

/// Most bytes that a delta with these chunks takes as a blob.
pub(crate) fn delta_bytes_max(class: u8, changed: u128) -> usize {
    blob_bytes(FIXED_BYTES + changed.count_ones() as usize * chunk_bytes(class))
}

/// Whether a page should be written as the `count`th delta since a base of `stored_bytes`, if that
/// is expected to take `bytes`. With chunks changing at a steady pace, fewest bytes are written if
/// the deltas of one base together take as much as it does: the cost of the deltas rises with the
/// square of their number, that of the base is shared by them.
pub(crate) fn is_worthwhile(bytes: u64, count: u16, stored_bytes: u32) -> bool {
    let base = u64::from(stored_bytes);
    let so_far = bytes * (u64::from(count) + 1) / 2;
    bytes * BASE_SHARE <= base && so_far <= base
}

/// Bytes of these chunks as their base was compressed, which takes `stored_bytes`.
pub(crate) fn bytes_as_base(class: u8, changed: u128, stored_bytes: u32) -> u64 {
    let chunks = (changed.count_ones() as usize * chunk_bytes(class)) as u64;
    (chunks * u64::from(stored_bytes) / header::class_bytes(class) as u64).min(chunks)
}

/// What the chunks of earlier deltas took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Experience {
    /// As their bases were compressed ([`bytes_as_base`]).
    pub(crate) as_base_bytes: u64,
    /// As they were written.
    pub(crate) packed_bytes: u64,
}

impl Experience {
    /// What a store has learned so far.
    pub(crate) fn of(counters: &Counters) -> Experience {
        Experience {
            as_base_bytes: counters.delta_as_base_bytes.load(Ordering::Relaxed),
            packed_bytes: counters.delta_packed_bytes.load(Ordering::Relaxed),
        }
    }

    /// Bytes that a delta is expected to take as a blob. Chunks compress less well than their page,
    /// but pages that compress well have chunks that do: what is learned is how much worse.
    pub(crate) fn expected_bytes(self, class: u8, changed: u128, stored_bytes: u32) -> u64 {
        let most = delta_bytes_max(class, changed) as u64;
        if self.as_base_bytes < EXPERIENCE_BYTES {
            return most;
        }
        let as_base = u128::from(bytes_as_base(class, changed, stored_bytes));
        let packed = as_base * u128::from(self.packed_bytes) / u128::from(self.as_base_bytes);
        (blob_bytes(FIXED_BYTES + packed as usize) as u64).min(most)
    }
}

/// Writes the delta of a page to the start of `target`, which has room for it uncompressed.
/// `scratch` is for the chunks.
pub(crate) fn encode(
    page: &[u8],
    since: &SinceBase,
    codec: &dyn Codec,
    scratch: &mut Vec<u8>,
    target: &mut [u8],
) -> BlobHeader {
    let size = page.len() / CHUNKS;
    scratch.clear();
    for number in chunks_of(since.changed) {
        scratch.extend_from_slice(&page[number * size..(number + 1) * size]);
    }
    let start = BLOB_HEADER_BYTES + FIXED_BYTES;
    let packed = pack(scratch, codec, &mut target[start..]);
    put(target, 32, &since.base.lsn.get().to_le_bytes());
    let [first, second] = halves(since.changed);
    put(target, 40, &first.to_le_bytes());
    put(target, 48, &crc32c(page).to_le_bytes());
    put(target, 52, &since.base.crc.to_le_bytes());
    put(target, 56, &since.count.to_le_bytes());
    put(target, 58, &LAYOUT.to_le_bytes());
    put(target, 60, &second.to_le_bytes());
    let payload = Payload { bytes: FIXED_BYTES + packed.bytes, ..packed };
    seal(page, payload, Some(since.base), target)
}

/// Makes the page of the full copy `base`, which stands in `page`, and a verified delta.
/// `dictionary` is the one that the delta names.
pub(crate) fn apply(
    blob: &BlobHeader,
    bytes: &[u8],
    base: Base,
    dictionary: Option<&Dictionary>,
    page: &mut [u8],
) -> Result<SinceBase, &'static str> {
    let named = blob.base.ok_or("a full copy where a delta should be")?;
    let payload = payload(blob, bytes)?;
    let (changed, packed) = set_and_chunks(payload)?;
    if named != base && !::base::mutant!("delta_of_another_base") {
        return Err("a delta of another copy of the page");
    }
    if header::class(page) != blob.class {
        return Err("a delta of another page");
    }
    let size = page.len() / CHUNKS;
    let length = changed.count_ones() as usize * size;
    let mut unpacked = Vec::new();
    let chunks = match blob.codec {
        CodecId::None => packed,
        _ => {
            unpacked.resize(length, 0);
            unpack(blob, packed, dictionary, &mut unpacked)?;
            &unpacked
        }
    };
    if chunks.len() != length {
        return Err("a delta of another length");
    }
    for (number, chunk) in chunks_of(changed).zip(chunks.chunks_exact(size)) {
        page[number * size..(number + 1) * size].copy_from_slice(chunk);
    }
    header::set_page_lsn(page, blob.page_lsn);
    if crc32c(page) != u32_at(payload, 16) && !::base::mutant!("delta_of_another_base") {
        return Err("base and delta do not give the page that was written");
    }
    if !blob.agrees(page) {
        return Err("page header does not agree with the delta");
    }
    Ok(SinceBase { base, changed, count: u16_at(payload, 24) })
}

/// The two words of a set of chunks.
pub(crate) fn halves(set: u128) -> [u64; 2] {
    [set as u64, (set >> 64) as u64]
}

/// The set of chunks of two words.
pub(crate) fn joined([first, second]: [u64; 2]) -> u128 {
    u128::from(first) | u128::from(second) << 64
}

/// The set of the chunks in a payload, and their bytes.
fn set_and_chunks(payload: &[u8]) -> Result<(u128, &[u8]), &'static str> {
    let cut_off = "a delta that is cut off";
    let former = payload.get(FIXED_BYTES_FORMER..).ok_or(cut_off)?;
    let first = u64_at(payload, 8);
    match u16_at(payload, 26) {
        // Each 64th is two 128ths, side by side.
        0 => {
            let pairs = chunks_of(first.into()).map(|number| 0b11 << (2 * number));
            Ok((pairs.fold(0, |set, pair| set | pair), former))
        }
        LAYOUT => {
            let packed = payload.get(FIXED_BYTES..).ok_or(cut_off)?;
            Ok((joined([first, u64_at(payload, FIXED_BYTES_FORMER)]), packed))
        }
        _ => Err("a delta of a layout that this version does not know"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::blob::tests::sample_page;
    use crate::blob::{decode, verify};
    use crate::chunks::Fingerprints;
    use base::Random;

    /// A delta of `page` as it is written, cut to its length.
    fn encoded(page: &[u8], since: &SinceBase, id: CodecId) -> (BlobHeader, Vec<u8>) {
        let class = header::class(page);
        let mut bytes = vec![0xEE; delta_bytes_max(class, since.changed)];
        let codec = codec::codec(id, 0);
        let blob = encode(page, since, &*codec, &mut Vec::new(), &mut bytes);
        bytes.truncate(blob_bytes(blob.payload_bytes as usize));
        (blob, bytes)
    }

    /// A page of any class, what became of it, and what a delta would have to say.
    pub(crate) fn changed_page(random: &mut Random) -> (Vec<u8>, Vec<u8>, SinceBase) {
        let class = 12 + random.below(4) as u8;
        let base = sample_page(77, class, 9000, random.next_u64());
        let prints = Fingerprints::new(1 << 20, random.next_u64()).expect("memory");
        let slot = prints.take().expect("room");
        prints.record(slot, &base);
        let mut page = base.clone();
        for _ in 0..random.index(12) {
            let length = 1 + random.index(300);
            let room = page.len() - header::HEADER_BYTES - length;
            let start = header::HEADER_BYTES + random.index(room);
            random.fill(&mut page[start..start + length]);
        }
        header::set_page_lsn(&mut page, Lsn::new(9500));
        let name = Base { lsn: Lsn::new(9000), crc: random.next_u32() };
        let count = random.below(1 << 16) as u16;
        let since = SinceBase { base: name, changed: prints.changed(slot, &page), count };
        (base, page, since)
    }

    #[test]
    fn any_changes_come_back() {
        let mut random = Random::new(11);
        for _ in 0..400 {
            let (base, page, since) = changed_page(&mut random);
            let (class, changed, name) = (header::class(&page), since.changed, since.base);
            let id = *random.pick(&codec::ALL);
            let (blob, bytes) = encoded(&page, &since, id);
            assert_eq!(verify(&bytes), Ok(blob));
            assert!(bytes.len() <= delta_bytes_max(class, changed));
            let mut back = base.clone();
            assert_eq!(apply(&blob, &bytes, name, None, &mut back), Ok(since));
            assert!(back == page);
            let mut target = vec![0; page.len()];
            assert!(decode(&blob, &bytes, None, &mut target).is_err(), "no full copy");
        }
    }

    #[test]
    fn a_wrong_base_or_a_missing_change_is_found() {
        let base = sample_page(3, 13, 5000, 4);
        let mut page = base.clone();
        page[5000..5300].fill(9);
        header::set_page_lsn(&mut page, Lsn::new(6000));
        let name = Base { lsn: Lsn::new(5000), crc: 77 };
        let since = SinceBase { base: name, changed: 0b111111 << 78, count: 1 };
        let (blob, bytes) = encoded(&page, &since, CodecId::Lz4);
        assert_eq!(apply(&blob, &bytes, name, None, &mut base.clone()), Ok(since));
        for other in [Base { lsn: Lsn::new(4999), ..name }, Base { crc: 78, ..name }] {
            assert!(apply(&blob, &bytes, other, None, &mut base.clone()).is_err(), "another copy");
        }
        let mut same_name = base.clone();
        same_name[100] ^= 1;
        assert!(apply(&blob, &bytes, name, None, &mut same_name).is_err(), "other content");
        let less = SinceBase { changed: 0b001111 << 78, ..since };
        let (blob, bytes) = encoded(&page, &less, CodecId::Lz4);
        assert!(
            apply(&blob, &bytes, name, None, &mut base.clone()).is_err(),
            "a chunk was left out"
        );
    }

    /// A delta of 64ths as they were written before there were 128ths.
    #[test]
    fn the_former_layout_is_read() {
        for id in codec::ALL {
            let base = sample_page(3, 13, 5000, 4);
            let mut page = base.clone();
            page[256..384].fill(9);
            page[8064..8192].fill(7);
            header::set_page_lsn(&mut page, Lsn::new(6000));
            let name = Base { lsn: Lsn::new(5000), crc: 77 };
            let mut bytes = vec![0; 1024];
            let start = BLOB_HEADER_BYTES + FIXED_BYTES_FORMER;
            let chunks = [&page[256..384], &page[8064..8192]].concat();
            let packed = pack(&chunks, &*codec::codec(id, 0), &mut bytes[start..]);
            put(&mut bytes, 32, &name.lsn.get().to_le_bytes());
            put(&mut bytes, 40, &(1u64 << 2 | 1 << 63).to_le_bytes());
            put(&mut bytes, 48, &crc32c(&page).to_le_bytes());
            put(&mut bytes, 52, &name.crc.to_le_bytes());
            put(&mut bytes, 56, &5u16.to_le_bytes());
            let payload = Payload { bytes: FIXED_BYTES_FORMER + packed.bytes, ..packed };
            let blob = seal(&page, payload, Some(name), &mut bytes);
            bytes.truncate(blob_bytes(blob.payload_bytes as usize));
            assert_eq!(verify(&bytes), Ok(blob));
            let mut back = base.clone();
            let changed = 0b11 << 4 | 0b11 << 126;
            let since = SinceBase { base: name, changed, count: 5 };
            assert_eq!(apply(&blob, &bytes, name, None, &mut back), Ok(since));
            assert!(back == page);
            put(&mut bytes, 58, &2u16.to_le_bytes());
            let blob = seal(&page, payload, Some(name), &mut bytes);
            let outcome = apply(&blob, &bytes, name, None, &mut base.clone());
            let unknown = "a delta of a layout that this version does not know";
            assert_eq!(outcome, Err(unknown));
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut page = sample_page(3, 12, 5000, 8);
        header::set_page_lsn(&mut page, Lsn::new(6000));
        let name = Base { lsn: Lsn::new(5000), crc: 77 };
        let since = SinceBase { base: name, changed: 0b11 << 20, count: 2 };
        let (blob, mut bytes) = encoded(&page, &since, CodecId::None);
        for place in 0..BLOB_HEADER_BYTES + blob.payload_bytes as usize {
            for bit in 0..8 {
                bytes[place] ^= 1 << bit;
                assert!(verify(&bytes).is_err(), "byte {place} bit {bit}");
                bytes[place] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn the_deltas_of_a_base_take_about_as_much_as_it_does() {
        // Four more chunks of 64 bytes each time, a base stored raw: full copies every so often.
        let (mut total, mut full, mut count, mut changed) = (0, 0, 0u16, 0u128);
        let base = 8192 + 64;
        for _ in 0..1000 {
            changed = changed << 4 | 0b1111;
            let bytes = delta_bytes_max(13, changed);
            if is_worthwhile(bytes as u64, count + 1, base) {
                count += 1;
                total += bytes;
            } else {
                (count, changed) = (0, 0);
                full += 1;
                total += base as usize;
            }
        }
        assert!((110..180).contains(&full), "{full} full copies");
        assert!(total * 3 < 1000 * base as usize, "{total} bytes");
        let is_worthwhile = |changed, stored_bytes| {
            is_worthwhile(delta_bytes_max(13, changed) as u64, 1, stored_bytes)
        };
        assert!(!is_worthwhile(u128::MAX, base), "nearly all of it changed");
        assert!(!is_worthwhile(0b1111, 640), "a base that compresses well");
        assert!(is_worthwhile(0, 640), "nothing changed but the LSN");
    }

    #[test]
    fn chunks_are_expected_to_compress_as_others_did() {
        let (class, changed, stored_bytes) = (13, 0xFFFF, 2048);
        let most = delta_bytes_max(class, changed) as u64;
        let nothing = Experience::default();
        assert_eq!(nothing.expected_bytes(class, changed, stored_bytes), most, "no experience");
        let as_base = bytes_as_base(class, changed, stored_bytes);
        assert_eq!(as_base, 256, "a quarter of sixteen chunks of 64 bytes");
        let double = Experience { as_base_bytes: 1 << 20, packed_bytes: 2 << 20 };
        let expected = double.expected_bytes(class, changed, stored_bytes);
        assert_eq!(expected, blob_bytes(FIXED_BYTES + 512) as u64);
        let ten = Experience { packed_bytes: 10 << 20, ..double };
        assert_eq!(ten.expected_bytes(class, changed, stored_bytes), most, "at most as it is");
        assert_eq!(bytes_as_base(class, changed, 9000), 1024, "a base that was stored raw");
    }
}
