//! A blob: one page, compressed, with everything needed to know it again; or what changed of a
//! page (delta.rs), under the same header.
//!
//! ```text
//! offset size field
//!      0    4 CRC-32C of bytes 4 up to the end of the payload
//!      4    4 payload length in bytes
//!      8    6 pid
//!     14    1 codec (codec::CodecId); bit 7 set: a delta
//!     15    1 class (log2 of the page's size)
//!     16    8 page_lsn
//!     24    4 tree
//!     28    2 number of the dictionary that the payload needs, of those of the tree (0: none)
//!     30    2 encryption key id (0)
//!     32      payload: the page after the codec; then zeroes up to a multiple of 64
//! ```
//!
//! The number, class and LSN stand in the blob, in the directory and in the page itself, so a
//! misdirected or stale read is noticed even if its checksum is right.

use crate::bytes::{put, u16_at, u32_at, u48_at, u64_at};
use crate::delta::{self, Base};
use crate::header::{self, class_bytes, class_is_valid};
use crate::location::BLOB_UNIT_BYTES;
use base::checksum::crc32c;
use base::{Lsn, PageId, TreeId};
use codec::{Codec, CodecId, Dictionary};

/// Bytes before the payload.
pub(crate) const BLOB_HEADER_BYTES: usize = 32;
/// A codec must save this much, in tenths of the bytes, or they are stored as they are.
const WORTHWHILE_TENTHS: usize = 9;
/// Added to the codec of a delta.
pub(crate) const DELTA_FLAG: u8 = 0x80;

/// The fields of a blob's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobHeader {
    pub(crate) crc: u32,
    pub(crate) payload_bytes: u32,
    pub(crate) pid: PageId,
    pub(crate) codec: CodecId,
    pub(crate) class: u8,
    pub(crate) page_lsn: Lsn,
    pub(crate) tree: TreeId,
    /// The dictionary that the payload needs; 0: none.
    pub(crate) dictionary: u16,
    /// A delta: the full copy that it belongs to.
    pub(crate) base: Option<Base>,
}

/// Bytes that a blob of this payload takes, with header and padding.
pub(crate) fn blob_bytes(payload_bytes: usize) -> usize {
    (BLOB_HEADER_BYTES + payload_bytes).next_multiple_of(BLOB_UNIT_BYTES as usize)
}

/// A blob without the zeroes behind its payload.
pub(crate) fn without_padding(bytes: &[u8]) -> &[u8] {
    let end = BLOB_HEADER_BYTES + u32_at(bytes, 4) as usize;
    bytes.get(..end).unwrap_or(bytes)
}

/// Most bytes that a page of the class can take as a blob.
pub(crate) fn blob_bytes_max(class: u8) -> usize {
    blob_bytes(class_bytes(class))
}

/// Writes the blob of a page to the start of `target`, which has room for the worst case.
/// Returns its header; the blob's length is `blob_bytes(payload_bytes)`.
pub(crate) fn encode(page: &[u8], codec: &dyn Codec, target: &mut [u8]) -> BlobHeader {
    let payload = pack(page, codec, &mut target[BLOB_HEADER_BYTES..]);
    seal(page, payload, None, target)
}

/// How the bytes of a blob were packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload {
    pub(crate) codec: CodecId,
    pub(crate) dictionary: u16,
    /// How many bytes that gave.
    pub(crate) bytes: usize,
}

/// Puts bytes into `target`, compressed if that is worth while.
pub(crate) fn pack(bytes: &[u8], codec: &dyn Codec, target: &mut [u8]) -> Payload {
    let room = &mut target[..bytes.len() / 10 * WORTHWHILE_TENTHS];
    let packed = match codec.id() {
        CodecId::None => None,
        _ => codec.compress(bytes, room),
    };
    match packed {
        Some(size) => Payload { codec: codec.id(), dictionary: codec.dictionary(), bytes: size },
        None => {
            put(target, 0, bytes);
            Payload { codec: CodecId::None, dictionary: 0, bytes: bytes.len() }
        }
    }
}

/// Writes the header in front of a payload, and zeroes behind it. `page` is the page as the blob
/// gives it.
pub(crate) fn seal(
    page: &[u8],
    payload: Payload,
    base: Option<Base>,
    target: &mut [u8],
) -> BlobHeader {
    let end = BLOB_HEADER_BYTES + payload.bytes;
    target[end..blob_bytes(payload.bytes)].fill(0);
    let pid = PageId::checked(header::raw_pid(page));
    base::invariant!(pid.is_some(), "a page in memory has lost its number");
    let mut blob = BlobHeader {
        crc: 0,
        payload_bytes: payload.bytes as u32,
        pid: pid.unwrap_or_default(),
        codec: payload.codec,
        class: header::class(page),
        page_lsn: header::page_lsn(page),
        tree: header::tree(page),
        dictionary: payload.dictionary,
        base,
    };
    put(target, 4, &blob.payload_bytes.to_le_bytes());
    put(target, 8, &blob.pid.get().to_le_bytes()[..6]);
    put(target, 14, &[blob.codec_byte(), blob.class]);
    put(target, 16, &blob.page_lsn.get().to_le_bytes());
    put(target, 24, &blob.tree.get().to_le_bytes());
    put(target, 28, &blob.dictionary.to_le_bytes());
    put(target, 30, &[0; 2]);
    blob.crc = crc32c(&target[4..end]);
    put(target, 0, &blob.crc.to_le_bytes());
    blob
}

impl BlobHeader {
    /// Bytes that the blob takes, with header and padding.
    pub(crate) fn stored_bytes(&self) -> u64 {
        blob_bytes(self.payload_bytes as usize) as u64
    }

    /// What a delta calls this full copy.
    pub(crate) fn as_base(&self) -> Base {
        Base { lsn: self.page_lsn, crc: self.crc }
    }

    /// The codec as it stands on disk, which tells a delta from a full copy.
    pub(crate) fn codec_byte(&self) -> u8 {
        self.codec as u8 | if self.base.is_some() { DELTA_FLAG } else { 0 }
    }

    /// Whether a page's own header says what the blob's does.
    pub(crate) fn agrees(&self, page: &[u8]) -> bool {
        header::raw_pid(page) == self.pid.get()
            && header::page_lsn(page) == self.page_lsn
            && header::class(page) == self.class
            && header::tree(page) == self.tree
    }
}

/// Reads and verifies the header and checksum of a blob that fills `bytes`.
pub(crate) fn verify(bytes: &[u8]) -> Result<BlobHeader, &'static str> {
    if bytes.len() < BLOB_HEADER_BYTES {
        return Err("blob shorter than its header");
    }
    let payload_bytes = u32_at(bytes, 4);
    let end = BLOB_HEADER_BYTES as u64 + u64::from(payload_bytes);
    if end.next_multiple_of(BLOB_UNIT_BYTES) != bytes.len() as u64 {
        return Err("blob length does not agree");
    }
    let crc = u32_at(bytes, 0);
    if crc32c(&bytes[4..end as usize]) != crc {
        return Err("blob checksum does not agree");
    }
    let codec = CodecId::from_number(bytes[14] & !DELTA_FLAG).ok_or("unknown codec")?;
    let is_delta = bytes[14] & DELTA_FLAG != 0;
    if is_delta && (payload_bytes as usize) < delta::FIXED_BYTES_FORMER {
        return Err("a delta that is cut off");
    }
    let class = bytes[15];
    if !class_is_valid(class) || payload_bytes as usize > class_bytes(class) {
        return Err("blob of an unknown size class");
    }
    let dictionary = u16_at(bytes, 28);
    if dictionary != 0 && codec != CodecId::Zstd {
        return Err("blob needs a dictionary for a codec that has none");
    }
    if u16_at(bytes, 30) != 0 {
        return Err("blob needs a key that this version does not know");
    }
    Ok(BlobHeader {
        crc,
        payload_bytes,
        pid: PageId::new(u48_at(bytes, 8)),
        codec,
        class,
        page_lsn: Lsn::new(u64_at(bytes, 16)),
        tree: TreeId::new(u32_at(bytes, 24)),
        dictionary,
        base: is_delta.then(|| delta::base(bytes)),
    })
}

/// The payload of a verified blob.
pub(crate) fn payload<'a>(blob: &BlobHeader, bytes: &'a [u8]) -> Result<&'a [u8], &'static str> {
    let end = BLOB_HEADER_BYTES + blob.payload_bytes as usize;
    bytes.get(BLOB_HEADER_BYTES..end).ok_or("blob shorter than its payload")
}

/// Unpacks what [`pack`] made for this blob. `dictionary` is the one that its header names.
pub(crate) fn unpack(
    blob: &BlobHeader,
    packed: &[u8],
    dictionary: Option<&Dictionary>,
    target: &mut [u8],
) -> Result<(), &'static str> {
    let unpacked = match (blob.dictionary, dictionary) {
        (0, _) => codec::decompress(blob.codec, packed, target),
        (_, Some(dictionary)) => dictionary.decompress(packed, target),
        (_, None) => return Err("its dictionary is not at hand"),
    };
    unpacked.map_err(|error| error.0)
}

/// Fills `page` (exactly the class's size) from a verified blob, which must be a full copy, and
/// compares the page's own header with the blob's. `dictionary` is the one that it names.
pub(crate) fn decode(
    blob: &BlobHeader,
    bytes: &[u8],
    dictionary: Option<&Dictionary>,
    page: &mut [u8],
) -> Result<(), &'static str> {
    if blob.base.is_some() {
        return Err("a delta where a full copy should be");
    }
    unpack(blob, payload(blob, bytes)?, dictionary, page)?;
    if blob.agrees(page) { Ok(()) } else { Err("page header does not agree with the blob") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A page with some structure.
    pub(crate) fn sample_page(pid: u64, class: u8, lsn: u64, seed: u64) -> Vec<u8> {
        let mut random = base::Random::new(seed);
        let mut page = vec![0; class_bytes(class)];
        let noise = page.len() / 3;
        random.fill(&mut page[64..64 + noise]);
        header::set_pid(&mut page, PageId::new(pid));
        header::set_class(&mut page, class);
        header::set_page_lsn(&mut page, Lsn::new(lsn));
        header::set_tree(&mut page, TreeId::new(5));
        page
    }

    #[test]
    fn round_trip() {
        for class in 12..=15 {
            for id in [CodecId::None, CodecId::Lz4, CodecId::Zstd] {
                let page = sample_page(77, class, 9000, 4);
                let mut target = vec![0xEE; blob_bytes_max(class)];
                let blob = encode(&page, &*codec::codec(id, 0), &mut target);
                let bytes = &target[..blob_bytes(blob.payload_bytes as usize)];
                assert_eq!(bytes.len() % 64, 0);
                assert_eq!(verify(bytes), Ok(blob));
                assert_eq!((blob.pid, blob.class), (PageId::new(77), class));
                assert_eq!((blob.page_lsn, blob.tree), (Lsn::new(9000), TreeId::new(5)));
                assert_eq!(blob.codec, id);
                let mut back = vec![0; page.len()];
                decode(&blob, bytes, None, &mut back).expect("our own blob");
                assert!(back == page);
            }
        }
    }

    #[test]
    fn noise_is_stored_raw() {
        let mut page = sample_page(1, 13, 5000, 4);
        base::Random::new(9).fill(&mut page[32..]);
        let mut target = vec![0; blob_bytes_max(13)];
        let blob = encode(&page, &*codec::codec(CodecId::Lz4, 0), &mut target);
        assert_eq!((blob.codec, blob.payload_bytes), (CodecId::None, 8192));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let page = sample_page(3, 12, 5000, 8);
        let mut target = vec![0; blob_bytes_max(12)];
        let blob = encode(&page, &*codec::codec(CodecId::Lz4, 0), &mut target);
        let used = BLOB_HEADER_BYTES + blob.payload_bytes as usize;
        let bytes = &mut target[..blob_bytes(blob.payload_bytes as usize)];
        for place in 0..used {
            for bit in 0..8 {
                bytes[place] ^= 1 << bit;
                assert!(verify(bytes).is_err(), "byte {place} bit {bit}");
                bytes[place] ^= 1 << bit;
            }
        }
        assert!(verify(bytes).is_ok());
    }

    #[test]
    fn noise_with_a_right_checksum_never_panics() {
        let mut random = base::Random::new(21);
        for _ in 0..20_000 {
            let mut bytes = vec![0; 64 * (1 + random.index(4))];
            random.fill(&mut bytes);
            let payload = (bytes.len() - 32 - random.index(64).min(bytes.len() - 33)) as u32;
            put(&mut bytes, 4, &payload.to_le_bytes());
            let codec = random.below(3) as u8 | if random.one_in(2) { DELTA_FLAG } else { 0 };
            put(&mut bytes, 14, &[codec, 12 + random.below(4) as u8, 0, 0]);
            put(&mut bytes, 28, &[0; 4]);
            let crc = crc32c(&bytes[4..32 + payload as usize]);
            put(&mut bytes, 0, &crc.to_le_bytes());
            let Ok(blob) = verify(&bytes) else { continue };
            let mut page = vec![0; class_bytes(blob.class)];
            assert!(decode(&blob, &bytes, None, &mut page).is_err(), "noise is no page");
            header::set_class(&mut page, blob.class);
            let base = blob.base.unwrap_or_default();
            header::set_page_lsn(&mut page, base.lsn);
            assert!(delta::apply(&blob, &bytes, base, None, &mut page).is_err(), "nor a delta");
        }
    }
}
