//! From a stream of bytes to packets.

use crate::{PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX};
use std::ops::Range;
use thiserror::Error;

/// The stream cannot be followed any more: answer and close.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum PacketError {
    /// 1153: larger than the limit (`max_allowed_packet`).
    #[error("Got a packet bigger than 'max_allowed_packet' bytes")]
    TooLarge,
    /// 1156: a sequence number is not the expected one.
    #[error("Got packets out of order")]
    OutOfOrder,
}

/// Bytes received and not yet consumed. Holds no memory while empty after
/// [`InputBuffer::shrink`].
#[derive(Default)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    /// Start of the bytes not consumed.
    start: usize,
    /// End of the bytes received.
    end: usize,
    /// Sequence numbers are those of frames around the packets.
    unnumbered: bool,
}

/// Fresh room offered to the socket when the buffer is empty.
const ROOM_BYTES: usize = 4096;
/// Above this the buffer is not kept between commands.
const KEEP_BYTES: usize = 16 * 1024;

impl InputBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room to receive into; report what came with [`InputBuffer::received`]. The room doubles
    /// with what has arrived, whatever lengths the client announces, but it need not reach beyond
    /// the packet.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.start > 0 && self.bytes.len() - self.end < ROOM_BYTES {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let missing = self.missing_bytes();
        if self.bytes.len() - self.end < ROOM_BYTES.min(missing) {
            let doubled = (self.end * 2).max(self.end + ROOM_BYTES);
            let grown = doubled.min(self.end.saturating_add(missing.max(ROOM_BYTES)));
            self.bytes.reserve_exact(grown - self.bytes.len());
            self.bytes.resize(grown, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Bytes that the first packet still lacks, if it has announced itself and has not arrived.
    fn missing_bytes(&self) -> usize {
        let Some(header) = self.bytes[self.start..self.end].first_chunk::<4>() else {
            return usize::MAX;
        };
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let whole = PACKET_HEADER_BYTES + length;
        match whole.saturating_sub(self.end - self.start) {
            0 => usize::MAX,
            missing => missing,
        }
    }

    /// `count` bytes were received into the room.
    pub fn received(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Receives from somebody who exchanges whole buffers: `exchange` swaps one with the bytes that
    /// have come, or leaves it alone and returns false. False if nothing was received: then into
    /// [`InputBuffer::room`].
    pub fn receive_whole(&mut self, exchange: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        if !self.is_empty() || !exchange(&mut self.bytes) {
            return false;
        }
        self.start = 0;
        self.end = self.bytes.len();
        true
    }

    /// Appends bytes that came through another layer.
    pub fn append(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.room();
            let count = room.len().min(rest.len());
            room[..count].copy_from_slice(&rest[..count]);
            self.received(count);
            rest = &rest[count..];
        }
    }

    /// Appends bytes from within compressed frames, which have the sequence numbers that count:
    /// from now on those of packets are not looked at.
    pub fn append_unnumbered(&mut self, bytes: &[u8]) {
        self.unnumbered = true;
        self.append(bytes);
    }

    /// Takes out what was received and not yet consumed: it turned out to be something else than
    /// packets.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.bytes[self.start..self.end].to_vec();
        (self.start, self.end) = (0, 0);
        rest
    }

    /// Nothing is buffered.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Gives memory back when nothing is buffered.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            let unnumbered = self.unnumbered;
            *self = Self { unnumbered, ..Self::default() };
        }
    }

    /// Gives memory back if a large packet made the buffer grow and nothing is buffered.
    pub fn trim(&mut self) {
        if self.bytes.len() > KEEP_BYTES {
            self.shrink();
        }
    }

    /// The payload of the next packet, joined if it came in parts, or `None` if it has not
    /// arrived whole. `sequence` is the number expected next and is advanced. The bytes stay
    /// until the next call of [`InputBuffer::room`].
    pub fn next_packet(
        &mut self,
        sequence: &mut u8,
        limit_bytes: usize,
    ) -> Result<Option<&[u8]>, PacketError> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut position = self.start;
        let mut expected = *sequence;
        let mut total = 0usize;
        let first = loop {
            let Some(header) = self.bytes[position..self.end].first_chunk::<4>() else {
                return Ok(None);
            };
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            if header[3] != expected && !self.unnumbered {
                return Err(PacketError::OutOfOrder);
            }
            total += length;
            if total > limit_bytes {
                return Err(PacketError::TooLarge);
            }
            let body = position + PACKET_HEADER_BYTES;
            if self.end - body < length {
                return Ok(None);
            }
            expected = expected.wrapping_add(1);
            position = body + length;
            if length < PACKET_PAYLOAD_MAX {
                if parts.is_empty() {
                    break body..position;
                }
                parts.push(body..position);
                break self.join(&parts);
            }
            parts.push(body..position);
        };
        self.start = position;
        *sequence = expected;
        Ok(Some(&self.bytes[first]))
    }

    /// Moves the parts together behind the first one.
    fn join(&mut self, parts: &[Range<usize>]) -> Range<usize> {
        let start = parts[0].start;
        let mut end = parts[0].end;
        for part in &parts[1..] {
            self.bytes.copy_within(part.clone(), end);
            end += part.len();
        }
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(buffer: &mut InputBuffer, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = buffer.room();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            buffer.received(count);
            bytes = &bytes[count..];
        }
    }

    fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(sequence);
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn packets_are_cut_at_any_chunking() {
        let stream = [packet(0, b"\x0e"), packet(0, b"\x03select 1"), packet(0, b"")].concat();
        for chunk in 1..stream.len() {
            let mut buffer = InputBuffer::new();
            let mut found = Vec::new();
            for part in stream.chunks(chunk) {
                feed(&mut buffer, part);
                while let Some(payload) = buffer.next_packet(&mut 0, 100).unwrap() {
                    found.push(payload.to_vec());
                }
            }
            assert_eq!(found, [b"\x0e".to_vec(), b"\x03select 1".to_vec(), Vec::new()]);
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn whole_buffers_are_taken_over_only_when_nothing_is_left() {
        let mut buffer = InputBuffer::new();
        assert!(!buffer.receive_whole(|_| false), "nothing to take over");
        let stream = [packet(0, b"one"), packet(0, b"two")].concat();
        let (first, rest) = stream.split_at(9);
        assert!(buffer.receive_whole(|bytes| {
            *bytes = first.to_vec();
            true
        }));
        assert_eq!(buffer.next_packet(&mut 0, 100), Ok(Some(&b"one"[..])));
        assert_eq!(buffer.next_packet(&mut 0, 100), Ok(None));
        assert!(!buffer.receive_whole(|_| panic!("there is a part of a packet")));
        feed(&mut buffer, rest);
        assert_eq!(buffer.next_packet(&mut 0, 100), Ok(Some(&b"two"[..])));
        assert!(buffer.is_empty());
    }

    #[test]
    fn long_packets_are_joined() {
        let body: Vec<u8> = (0..PACKET_PAYLOAD_MAX + 5).map(|i| i as u8).collect();
        let (head, tail) = body.split_at(PACKET_PAYLOAD_MAX);
        let stream = [packet(0, head), packet(1, tail), packet(0, b"next")].concat();
        let mut buffer = InputBuffer::new();
        feed(&mut buffer, &stream);
        let mut sequence = 0;
        assert_eq!(buffer.next_packet(&mut sequence, 1 << 25), Ok(Some(&body[..])));
        assert_eq!(sequence, 2);
        assert_eq!(buffer.next_packet(&mut 0, 1 << 25), Ok(Some(&b"next"[..])));
        buffer.trim();
        assert_eq!(buffer.bytes.len(), 0);
    }

    #[test]
    fn the_buffer_of_a_large_packet_is_hardly_larger_than_it() {
        let mut buffer = InputBuffer::new();
        let body = vec![7; 1_000_000];
        feed(&mut buffer, &packet(0, &body));
        assert_eq!(buffer.next_packet(&mut 0, 1 << 25).unwrap().map(<[u8]>::len), Some(body.len()));
        assert!(buffer.bytes.capacity() < body.len() + 4 * ROOM_BYTES, "{}", buffer.bytes.len());
    }

    #[test]
    fn an_exact_maximum_is_followed_by_an_empty_packet() {
        let body = vec![7; PACKET_PAYLOAD_MAX];
        let mut buffer = InputBuffer::new();
        feed(&mut buffer, &packet(0, &body));
        assert_eq!(buffer.next_packet(&mut 0, 1 << 25), Ok(None));
        feed(&mut buffer, &packet(1, b""));
        assert_eq!(buffer.next_packet(&mut 0, 1 << 25).unwrap().map(<[u8]>::len), Some(body.len()));
    }

    #[test]
    fn the_header_alone_gets_an_oversized_packet_refused() {
        let mut buffer = InputBuffer::new();
        feed(&mut buffer, &[0x01, 0x00, 0x01, 0x00]);
        assert_eq!(buffer.next_packet(&mut 0, 65_536), Err(PacketError::TooLarge));
    }

    #[test]
    fn a_wrong_sequence_number_is_refused() {
        let mut buffer = InputBuffer::new();
        feed(&mut buffer, &packet(3, b"x"));
        assert_eq!(buffer.next_packet(&mut 0, 100), Err(PacketError::OutOfOrder));
    }
}
