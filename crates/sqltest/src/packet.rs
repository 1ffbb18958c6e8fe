//! Packets of the MySQL protocol as a client reads and writes them.

use std::io::{self, Read, Write};

/// Payload length at which a packet continues in the next one.
const PACKET_BYTES_MAX: usize = 0xff_ffff;

/// Reads one logical packet (joined from its parts) and returns it with its sequence number.
pub fn read_packet(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut payload = Vec::new();
    loop {
        let mut header = [0u8; 4];
        stream.read_exact(&mut header)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let start = payload.len();
        payload.resize(start + length, 0);
        stream.read_exact(&mut payload[start..])?;
        if length < PACKET_BYTES_MAX {
            return Ok((header[3], payload));
        }
    }
}

/// Writes one logical packet, split at 16 MiB, beginning with `sequence`.
pub fn write_packet(stream: &mut impl Write, mut sequence: u8, payload: &[u8]) -> io::Result<()> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    let mut rest = payload;
    loop {
        let (part, next) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
        out.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend_from_slice(part);
        sequence = sequence.wrapping_add(1);
        rest = next;
        if part.len() < PACKET_BYTES_MAX {
            break;
        }
    }
    stream.write_all(&out)
}

/// Reads fields of one packet; a short packet is an error, never a panic.
pub struct Fields<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Whether all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.position >= self.bytes.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let end = self.position.checked_add(count).filter(|&e| e <= self.bytes.len());
        let end = end.ok_or_else(|| protocol_error("packet is shorter than its fields"))?;
        let taken = &self.bytes[self.position..end];
        self.position = end;
        Ok(taken)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.position.min(self.bytes.len())..];
        self.position = self.bytes.len();
        rest
    }

    /// Little-endian integer of `width` bytes.
    pub fn integer(&mut self, width: usize) -> io::Result<u64> {
        Ok(self.take(width)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Length-encoded integer; `None` is the NULL marker.
    pub fn length_encoded(&mut self) -> io::Result<Option<u64>> {
        match self.integer(1)? {
            0xfb => Ok(None),
            0xfc => self.integer(2).map(Some),
            0xfd => self.integer(3).map(Some),
            0xfe => self.integer(8).map(Some),
            small => Ok(Some(small)),
        }
    }

    /// Length-encoded bytes; `None` is NULL.
    pub fn length_encoded_bytes(&mut self) -> io::Result<Option<&'a [u8]>> {
        match self.length_encoded()? {
            None => Ok(None),
            Some(length) => self.take(length as usize).map(Some),
        }
    }

    /// Bytes up to a zero byte, which is skipped.
    pub fn zero_terminated(&mut self) -> io::Result<&'a [u8]> {
        let rest = &self.bytes[self.position.min(self.bytes.len())..];
        let length = rest.iter().position(|&b| b == 0);
        let length = length.ok_or_else(|| protocol_error("string without its end"))?;
        let taken = self.take(length)?;
        self.take(1)?;
        Ok(taken)
    }
}

/// An `io::Error` that says what the peer did wrong.
pub fn protocol_error(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_string())
}

/// Appends a length-encoded integer.
pub fn put_length_encoded(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_round_trip_at_the_split() {
        for length in [0, 1, PACKET_BYTES_MAX - 1, PACKET_BYTES_MAX, PACKET_BYTES_MAX + 1] {
            let payload = vec![7u8; length];
            let mut bytes = Vec::new();
            write_packet(&mut bytes, 3, &payload).unwrap();
            let (sequence, read) = read_packet(&mut bytes.as_slice()).unwrap();
            assert_eq!(read.len(), length);
            assert_eq!(sequence, if length >= PACKET_BYTES_MAX { 4 } else { 3 });
        }
    }

    #[test]
    fn length_encoded_round_trips() {
        for value in [0, 250, 251, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut bytes = Vec::new();
            put_length_encoded(&mut bytes, value);
            assert_eq!(Fields::new(&bytes).length_encoded().unwrap(), Some(value));
        }
    }
}
