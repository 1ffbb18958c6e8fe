//! Two words that say where a page is.
//!
//! A *location word* (63 bits) names a blob on disk:
//!
//! ```text
//! bits  0..40  offset in the segment space, in units of 64 bytes (64 TiB)
//! bits 40..50  length of the blob in units of 64 bytes, minus one (up to 64 KiB)
//! bits 50..52  size class of the page, minus 12 (4 to 32 KiB; amendment 11)
//! bits 52..63  the lowest 11 bits of the blob's CRC-32C
//! ```
//!
//! Zero means "never written". A *place word* (64 bits) is what the translation array holds:
//! bit 63 clear: a location word (or zero, no page); bit 63 set: resident,
//!
//! ```text
//! bits  0..32  frame number (units of 4 KiB in the frame memory)
//! bits 32..34  size class of the frame, minus 12
//! bit  62      referenced since the clock hand passed
//! bit  63      resident
//! ```

use crate::header::{CLASS_MIN, class_bytes};

/// Blobs start and end at multiples of this many bytes.
pub const BLOB_UNIT_BYTES: u64 = 64;
/// Longest blob, in units.
pub const BLOB_UNITS_MAX: u32 = 1 << 10;
/// End of the addressable segment space, in bytes.
pub const SPACE_END_BYTES: u64 = (1 << 40) * BLOB_UNIT_BYTES;

const OFFSET_BITS: u32 = 40;
const LENGTH_SHIFT: u32 = OFFSET_BITS;
const CLASS_SHIFT: u32 = LENGTH_SHIFT + 10;
const FRAGMENT_SHIFT: u32 = CLASS_SHIFT + 2;
const FRAGMENT_MASK: u32 = (1 << 11) - 1;

/// Where a blob lies on disk; see the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Location(u64);

impl Location {
    /// No location: the page was never written.
    pub const NONE: Location = Location(0);

    /// The location of a blob. `offset_bytes` and `length_bytes` are multiples of 64, the offset
    /// is never 0 (segment 0 starts with its header) and the blob has 64 bytes to 64 KiB.
    pub fn new(offset_bytes: u64, length_bytes: u32, class: u8, crc: u32) -> Location {
        let units = u64::from(length_bytes) / BLOB_UNIT_BYTES;
        base::invariant!(
            offset_bytes.is_multiple_of(BLOB_UNIT_BYTES)
                && offset_bytes > 0
                && offset_bytes < SPACE_END_BYTES,
            "blob offset {offset_bytes}"
        );
        base::invariant!(
            u64::from(length_bytes).is_multiple_of(BLOB_UNIT_BYTES)
                && units >= 1
                && units <= u64::from(BLOB_UNITS_MAX),
            "blob length {length_bytes}"
        );
        base::invariant!(crate::header::class_is_valid(class), "page class {class}");
        Location(
            (offset_bytes / BLOB_UNIT_BYTES)
                | ((units - 1) << LENGTH_SHIFT)
                | u64::from(class - CLASS_MIN) << CLASS_SHIFT
                | u64::from(crc & FRAGMENT_MASK) << FRAGMENT_SHIFT,
        )
    }

    /// The location in a word from memory; bit 63 is ignored.
    pub(crate) fn from_word(word: u64) -> Location {
        Location(word & !RESIDENT)
    }

    /// The plain word.
    pub fn word(self) -> u64 {
        self.0
    }

    /// Whether there is no location.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Offset in the segment space, in bytes.
    pub fn offset_bytes(self) -> u64 {
        (self.0 & ((1 << OFFSET_BITS) - 1)) * BLOB_UNIT_BYTES
    }

    /// Length of the blob with its header and padding, in bytes.
    pub fn length_bytes(self) -> u32 {
        (((self.0 >> LENGTH_SHIFT) as u32 & (BLOB_UNITS_MAX - 1)) + 1) * BLOB_UNIT_BYTES as u32
    }

    /// Size class of the page.
    pub fn class(self) -> u8 {
        (self.0 >> CLASS_SHIFT) as u8 & 3 | CLASS_MIN
    }

    /// Whether the blobs at two places certainly are not the same: of another length or checksum.
    pub(crate) fn is_of_other_bytes(self, other: Location) -> bool {
        (self.0 ^ other.0) >> OFFSET_BITS != 0
    }

    /// Whether `crc` may be the blob's checksum: its lowest 11 bits agree.
    pub fn matches_crc(self, crc: u32) -> bool {
        (self.0 >> FRAGMENT_SHIFT) as u32 & FRAGMENT_MASK == crc & FRAGMENT_MASK
    }
}

const RESIDENT: u64 = 1 << 63;
const REFERENCED: u64 = 1 << 62;

/// What the translation array says about a page; see the head of this file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place(pub(crate) u64);

impl Place {
    /// Neither resident nor on disk.
    pub(crate) const NONE: Place = Place(0);

    /// Resident in a frame of the class.
    #[inline]
    pub(crate) fn resident(frame: u32, class: u8) -> Place {
        Place(RESIDENT | REFERENCED | u64::from(class - CLASS_MIN) << 32 | u64::from(frame))
    }

    /// On disk only.
    #[inline]
    pub(crate) fn on_disk(location: Location) -> Place {
        Place(location.0)
    }

    #[inline]
    pub(crate) fn is_resident(self) -> bool {
        self.0 & RESIDENT != 0
    }

    #[inline]
    pub(crate) fn is_referenced(self) -> bool {
        self.0 & REFERENCED != 0
    }

    #[inline]
    pub(crate) fn with_reference(self) -> Place {
        Place(self.0 | REFERENCED)
    }

    #[inline]
    pub(crate) fn without_reference(self) -> Place {
        Place(self.0 & !REFERENCED)
    }

    /// Frame number of a resident page.
    #[inline]
    pub(crate) fn frame(self) -> u32 {
        self.0 as u32
    }

    /// Size class of a resident page.
    #[inline]
    pub(crate) fn class(self) -> u8 {
        (self.0 >> 32) as u8 & 3 | CLASS_MIN
    }

    /// Size in bytes of a resident page.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        class_bytes(self.class())
    }

    /// Location of a page that is not resident.
    #[inline]
    pub(crate) fn location(self) -> Location {
        Location::from_word(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_round_trip() {
        let mut random = base::Random::new(7);
        for _ in 0..2000 {
            let offset = (random.next_u64() % ((1 << 40) - 1) + 1) * 64;
            let length = (random.next_u64() % 1024 + 1) as u32 * 64;
            let class = 12 + (random.next_u64() % 4) as u8;
            let crc = random.next_u64() as u32;
            let location = Location::new(offset, length, class, crc);
            assert_eq!(location.word() >> 63, 0, "63 bits");
            assert_eq!(location.offset_bytes(), offset);
            assert_eq!(location.length_bytes(), length);
            assert_eq!(location.class(), class);
            assert!(location.matches_crc(crc) && !location.matches_crc(!crc));
            assert_eq!(Place::on_disk(location).location(), location);
            assert!(!Place::on_disk(location).is_resident());
        }
    }

    #[test]
    fn a_raw_page_of_the_largest_class_fits() {
        let raw = Location::new(4096, 32 * 1024 + 64, 15, 0);
        assert_eq!((raw.length_bytes(), raw.class()), (32 * 1024 + 64, 15));
    }

    #[test]
    fn place_round_trip() {
        for class in 12..=15 {
            let place = Place::resident(0xFFFF_FFF0, class);
            assert!(place.is_resident() && place.is_referenced());
            assert_eq!((place.frame(), place.class()), (0xFFFF_FFF0, class));
            assert_eq!(place.bytes(), 1 << class);
            let cold = place.without_reference();
            assert!(cold.is_resident() && !cold.is_referenced());
            assert_eq!(cold.with_reference(), place);
        }
    }

    #[test]
    fn bad_blobs_are_refused() {
        for (offset, length) in [(0, 64), (65, 64), (64, 0), (64, 65), (64, 65 * 1024)] {
            let attempt = std::panic::catch_unwind(|| Location::new(offset, length, 13, 0));
            assert!(attempt.is_err(), "{offset} {length}");
        }
    }
}
