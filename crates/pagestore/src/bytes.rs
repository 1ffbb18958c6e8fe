//! Bounds-checked little-endian access for decoders: short input reads as zero, so a decoder
//! checks the length once and cannot panic.

/// Reads `N` bytes at `offset`; zeroes where the input ends.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array(bytes, offset))
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array(bytes, offset))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array(bytes, offset))
}

pub(crate) fn u48_at(bytes: &[u8], offset: usize) -> u64 {
    let [a, b, c, d, e, f] = array(bytes, offset);
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

pub(crate) fn uuid_at(bytes: &[u8], offset: usize) -> [u8; 16] {
    array(bytes, offset)
}

/// Writes `value` at `offset`; the buffer is long enough.
pub(crate) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    bytes[offset..offset + value.len()].copy_from_slice(value);
}
