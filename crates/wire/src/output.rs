//! The answer as it grows.

use crate::{PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX};

/// Collects the packets of an answer; the session sends [`OutputBuffer::bytes`] in one go.
#[derive(Default)]
pub struct OutputBuffer {
    bytes: Vec<u8>,
    /// Where the open packet's header begins.
    packet: usize,
    /// A packet is open.
    open: bool,
    sequence: u8,
    /// How often everything was sent.
    clears: u64,
}

/// See [`OutputBuffer::mark`].
#[derive(Clone, Copy, Debug)]
pub struct OutputMark {
    length: usize,
    sequence: u8,
    clears: u64,
}

/// Above this the buffer is not kept between answers.
const KEEP_BYTES: usize = 64 * 1024;

impl OutputBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next answer begins with this sequence number.
    pub fn set_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Sequence number of the next packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Opens a packet and returns where its payload is appended.
    #[inline]
    pub fn begin(&mut self) -> &mut Vec<u8> {
        self.packet = self.bytes.len();
        self.open = true;
        self.bytes.extend_from_slice(&[0; PACKET_HEADER_BYTES]);
        &mut self.bytes
    }

    /// Appends packets made before (see [`OutputBuffer::bytes`]); they are numbered anew.
    pub fn append_packets(&mut self, packets: &[u8]) {
        let mut at = self.bytes.len();
        self.bytes.extend_from_slice(packets);
        while let Some(header) = self.bytes.get_mut(at..at + PACKET_HEADER_BYTES) {
            header[3] = self.sequence;
            self.sequence = self.sequence.wrapping_add(1);
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]);
            at += PACKET_HEADER_BYTES + length as usize;
        }
    }

    /// Appends a whole packet of a few bytes.
    #[inline]
    pub fn put_small(&mut self, payload: &[u8]) {
        debug_assert!(payload.len() < PACKET_PAYLOAD_MAX);
        let header = payload.len() as u32 | u32::from(self.sequence) << 24;
        self.bytes.reserve(PACKET_HEADER_BYTES + payload.len());
        self.bytes.extend_from_slice(&header.to_le_bytes());
        self.bytes.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The payload of the open packet is appended here.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Closes the open packet, splitting it if it is too long for one.
    #[inline]
    pub fn end(&mut self) {
        self.open = false;
        let body = self.packet + PACKET_HEADER_BYTES;
        let length = self.bytes.len() - body;
        if length < PACKET_PAYLOAD_MAX {
            self.write_header(self.packet, length);
        } else {
            self.split(body);
        }
    }

    /// The payload of the packet that begins at `body` goes into several.
    #[cold]
    fn split(&mut self, body: usize) {
        let payload = self.bytes.split_off(body);
        self.bytes.truncate(self.packet);
        let mut rest = &payload[..];
        loop {
            let (part, tail) = rest.split_at(rest.len().min(PACKET_PAYLOAD_MAX));
            let header = self.bytes.len();
            self.bytes.extend_from_slice(&[0; PACKET_HEADER_BYTES]);
            self.bytes.extend_from_slice(part);
            self.write_header(header, part.len());
            if part.len() < PACKET_PAYLOAD_MAX {
                return;
            }
            rest = tail;
        }
    }

    /// The present end, to come back to with [`OutputBuffer::rewind`].
    pub fn mark(&self) -> OutputMark {
        OutputMark { length: self.bytes.len(), sequence: self.sequence, clears: self.clears }
    }

    /// Forgets what was written since `mark`, unless some of it has been sent already. An open
    /// packet is forgotten in any case.
    pub fn rewind(&mut self, mark: OutputMark) {
        if self.clears == mark.clears {
            self.bytes.truncate(mark.length);
            self.sequence = mark.sequence;
        } else if self.open {
            self.abandon();
        }
        self.open = false;
    }

    /// Forgets the open packet.
    pub fn abandon(&mut self) {
        self.bytes.truncate(self.packet);
        self.open = false;
    }

    #[inline]
    fn write_header(&mut self, at: usize, length: usize) {
        let header = (length as u32 | u32::from(self.sequence) << 24).to_le_bytes();
        self.bytes[at..at + PACKET_HEADER_BYTES].copy_from_slice(&header);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Takes what is to be sent out; no packet may be open.
    pub fn take(&mut self) -> Vec<u8> {
        self.packet = 0;
        self.clears += 1;
        std::mem::take(&mut self.bytes)
    }

    /// What is to be sent; no packet may be open.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes waiting to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Everything was sent. Memory beyond a usual answer's is given back.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEEP_BYTES);
        self.packet = 0;
        self.clears += 1;
    }

    /// Whether there is memory to write into.
    pub fn has_room(&self) -> bool {
        self.bytes.capacity() > 0
    }

    /// Writes into this memory from now on; nothing may wait.
    pub fn lend_room(&mut self, room: Vec<u8>) {
        debug_assert!(self.bytes.is_empty() && room.is_empty(), "an answer waits");
        self.bytes = room;
    }

    /// Takes the memory out; nothing may wait.
    pub fn take_room(&mut self) -> Vec<u8> {
        debug_assert!(self.bytes.is_empty(), "an answer waits");
        std::mem::take(&mut self.bytes)
    }

    /// Gives all memory back; nothing may wait.
    pub fn shrink(&mut self) {
        self.bytes = Vec::new();
    }
}

/// Appends an integer in the protocol's variable length.
pub fn put_length(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&value.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends bytes with their length before them.
#[inline(always)]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= 250 {
        out.push(bytes.len() as u8);
    } else {
        put_length(out, bytes.len() as u64);
    }
    out.extend_from_slice(bytes);
}

/// Appends what `write` appends with its length before it; cheap for up to 250 bytes, which
/// all formatted numbers and times are.
pub fn put_written(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length <= 250 {
        out[at] = length as u8;
        return;
    }
    let body = out.split_off(at + 1);
    out.truncate(at);
    put_bytes(out, &body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_documented_forms() {
        for (value, expected) in [
            (0u64, vec![0u8]),
            (250, vec![250]),
            (251, vec![0xfc, 251, 0]),
            (0xffff, vec![0xfc, 0xff, 0xff]),
            (0x1_0000, vec![0xfd, 0, 0, 1]),
            (0xff_ffff, vec![0xfd, 0xff, 0xff, 0xff]),
            (0x100_0000, vec![0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            put_length(&mut out, value);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn packets_are_framed_and_numbered() {
        let mut out = OutputBuffer::new();
        out.set_sequence(1);
        out.begin().extend_from_slice(b"abc");
        out.end();
        out.begin().extend_from_slice(b"dropped");
        out.abandon();
        out.begin();
        out.end();
        assert_eq!(out.bytes(), b"\x03\0\0\x01abc\0\0\0\x02");
    }

    #[test]
    fn packets_made_before_are_numbered_anew() {
        let mut made = OutputBuffer::new();
        for payload in [&b"abc"[..], b"", b"de"] {
            made.begin().extend_from_slice(payload);
            made.end();
        }
        let mut out = OutputBuffer::new();
        out.set_sequence(254);
        out.append_packets(made.bytes());
        assert_eq!(out.bytes(), b"\x03\0\0\xfeabc\0\0\0\xff\x02\0\0\0de");
        assert_eq!(out.sequence(), 1);
    }

    #[test]
    fn a_long_payload_is_split() {
        for extra in [0, 1, 10] {
            let mut out = OutputBuffer::new();
            out.begin().resize(PACKET_HEADER_BYTES + PACKET_PAYLOAD_MAX + extra, 9);
            out.end();
            let second = PACKET_HEADER_BYTES + PACKET_PAYLOAD_MAX;
            assert_eq!(out.bytes()[..4], [0xff, 0xff, 0xff, 0]);
            assert_eq!(out.bytes()[second..second + 4], [extra as u8, 0, 0, 1]);
            assert_eq!(out.len(), second + 4 + extra);
        }
    }

    #[test]
    fn written_text_gets_its_length() {
        let mut out = Vec::new();
        put_written(&mut out, |out| out.extend_from_slice(b"12.5"));
        put_written(&mut out, |out| out.resize(out.len() + 300, b'x'));
        assert_eq!(out[..5], *b"\x0412.5");
        assert_eq!(out[5..8], [0xfc, 44, 1]);
        assert_eq!(out.len(), 5 + 3 + 300);
    }
}
