//! Sectors that vouch for themselves.
//!
//! The device writes sectors whole or not at all; what a write of several was torn into is a
//! mixture of sectors as they were and as they should be. So every sector that the log ever
//! writes ends with its own checksum, files are zeroed before they hold log, and
//!
//! 1. at any time, whatever the power did, every sector of a log file is empty or sealed.
//!
//! A sector that is neither has rotted. That is how damage to the last batch, of which no later
//! one can say that it was durable, is told from a torn write: see `reader`.

use base::checksum::crc32c;

/// What the device writes whole or not at all.
pub(crate) use runtime::file::SECTOR_BYTES;

/// Bytes of a sector before its seal. A multiple of 8, so that words of records are not split.
pub(crate) const CONTENT_BYTES: usize = SECTOR_BYTES - 8;
/// Where the checksum of all before it lies.
const SEAL_AT: usize = SECTOR_BYTES - 4;

/// Puts the checksum behind the content of a sector; returns it.
pub(crate) fn seal(sector: &mut [u8]) -> u32 {
    sector[CONTENT_BYTES..SEAL_AT].fill(0);
    let seal = crc32c(&sector[..SEAL_AT]);
    sector[SEAL_AT..].copy_from_slice(&seal.to_le_bytes());
    seal
}

/// The checksum a sector names.
pub(crate) fn seal_of(sector: &[u8]) -> u32 {
    let bytes = &sector[SEAL_AT..SECTOR_BYTES];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Whether the content is what it was when the sector was sealed.
pub(crate) fn is_sealed(sector: &[u8]) -> bool {
    crc32c(&sector[..SEAL_AT]) == seal_of(sector)
}

/// Whether the sector is neither empty nor sealed: invariant 1 is broken, it has rotted.
pub(crate) fn is_damaged(sector: &[u8]) -> bool {
    !is_sealed(sector) && sector.iter().any(|&byte| byte != 0)
}
