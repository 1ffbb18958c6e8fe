//! The compressed protocol: packets travel in frames, each compressed by itself.
//!
//! A frame: length of its body (3 bytes), sequence number (1), length of the content before
//! compression (3; 0 if the body is the content as it is), body. Frames know nothing of packets:
//! one may hold several, or a part of one.

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::io;
use wire::InputBuffer;

const HEADER_BYTES: usize = 7;
/// Content below this is not compressed.
const COMPRESSED_BYTES_MIN: usize = 50;
/// Content of one frame; the protocol would permit 2^24 - 1.
const FRAME_BYTES_MAX: usize = 1 << 20;
/// zlib's usual one.
const LEVEL: u8 = 6;

/// One connection's state.
#[derive(Default)]
pub(super) struct Compression {
    /// Bytes that do not make a frame yet.
    partial: Vec<u8>,
    /// Sequence number of the next frame.
    sequence: u8,
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a compressed frame is malformed")
}

fn three(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16
}

impl Compression {
    /// Bytes from the client; whole frames become packets.
    pub(super) fn take(&mut self, bytes: &[u8], input: &mut InputBuffer) -> io::Result<()> {
        self.partial.extend_from_slice(bytes);
        let mut rest = &self.partial[..];
        while let Some((header, tail)) = rest.split_at_checked(HEADER_BYTES) {
            let (length, content) = (three(header), three(&header[4..]));
            let Some((body, tail)) = tail.split_at_checked(length) else {
                break;
            };
            self.sequence = header[3].wrapping_add(1);
            match content {
                0 => input.append_unnumbered(body),
                _ => input.append_unnumbered(&expanded(body, content)?),
            }
            rest = tail;
        }
        let done = self.partial.len() - rest.len();
        self.partial.drain(..done);
        if self.partial.is_empty() {
            self.partial = Vec::new();
        }
        Ok(())
    }

    /// Packets for the client; frames are appended to `out`.
    pub(super) fn put(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        for content in packets.chunks(FRAME_BYTES_MAX) {
            let shorter = compressed(content);
            let (body, length_before) = match &shorter {
                Some(body) => (&body[..], content.len()),
                None => (content, 0),
            };
            out.extend_from_slice(&body.len().to_le_bytes()[..3]);
            out.push(self.sequence);
            out.extend_from_slice(&length_before.to_le_bytes()[..3]);
            out.extend_from_slice(body);
            self.sequence = self.sequence.wrapping_add(1);
        }
    }
}

/// The content of a body that says how long it is; not a byte more is made of it.
fn expanded(body: &[u8], length: usize) -> io::Result<Vec<u8>> {
    let content = decompress_to_vec_zlib_with_limit(body, length).map_err(|_| broken())?;
    if content.len() == length { Ok(content) } else { Err(broken()) }
}

/// The compressed content, if it is shorter.
fn compressed(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < COMPRESSED_BYTES_MIN {
        return None;
    }
    Some(compress_to_vec_zlib(content, LEVEL)).filter(|body| body.len() < content.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(content: &[u8]) -> Vec<u8> {
        let mut packet = content.len().to_le_bytes()[..3].to_vec();
        packet.push(0);
        packet.extend_from_slice(content);
        packet
    }

    fn taken(input: &mut InputBuffer) -> Option<Vec<u8>> {
        let mut sequence = 0;
        input.next_packet(&mut sequence, 1 << 30).unwrap().map(<[u8]>::to_vec)
    }

    #[test]
    fn short_packets_are_sent_as_they_are() {
        let mut out = Vec::new();
        Compression::default().put(&packet(b"\x0e"), &mut out);
        assert_eq!(out, b"\x05\0\0\0\0\0\0\x01\0\0\0\x0e");
    }

    #[test]
    fn what_is_put_can_be_taken_in_any_pieces() {
        let content: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7 % 251) as u8).collect();
        let mut out = Vec::new();
        let mut sender = Compression::default();
        sender.put(&packet(&content), &mut out);
        assert!(out.len() < content.len() / 4, "{}", out.len());
        assert_eq!(sender.sequence, 3, "three frames");
        let (mut receiver, mut input) = (Compression::default(), InputBuffer::new());
        for piece in out.chunks(1013) {
            assert_eq!(taken(&mut input), None);
            receiver.take(piece, &mut input).unwrap();
        }
        assert_eq!(taken(&mut input), Some(content));
        assert!(receiver.partial.is_empty());
        assert_eq!(receiver.sequence, 3, "the answer goes on");
    }

    #[test]
    fn frames_that_lie_about_their_content_are_refused() {
        let mut out = Vec::new();
        Compression::default().put(&packet(&[b'x'; 500]), &mut out);
        for change in [1, 255] {
            let mut lying = out.clone();
            lying[4] = lying[4].wrapping_add(change);
            let mut input = InputBuffer::new();
            assert!(Compression::default().take(&lying, &mut input).is_err());
        }
        let mut broken = out.clone();
        broken[9] ^= 0x55;
        assert!(Compression::default().take(&broken, &mut InputBuffer::new()).is_err());
    }
}
