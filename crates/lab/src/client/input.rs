//! Bytes that arrived, as packets.

use super::link::Link;
use std::io;
use std::ops::Range;
use std::time::Duration;
use wire::{PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX};

const FIRST_BYTES: usize = 4 * 1024;

/// The buffer of a connection. It grows to the largest packet.
#[derive(Default)]
pub(super) struct Input {
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    /// The payload of the next packet, as a range of [`Input::bytes`] that is valid until the next
    /// call. Waits for it.
    pub(super) fn packet(
        &mut self,
        link: &mut Link,
        timeout: Option<Duration>,
    ) -> io::Result<Range<usize>> {
        self.need(PACKET_HEADER_BYTES, link, timeout)?;
        let head = &self.buffer[self.begin..];
        let length = usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16;
        if length == PACKET_PAYLOAD_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a packet of 16 MiB or more"));
        }
        self.need(PACKET_HEADER_BYTES + length, link, timeout)?;
        let begin = self.begin + PACKET_HEADER_BYTES;
        self.begin = begin + length;
        Ok(begin..begin + length)
    }

    /// Where ranges of packets lie.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// The sequence number of the packet that was taken last, by its payload.
    pub(super) fn sequence(&self, packet: &Range<usize>) -> u8 {
        self.buffer[packet.start - 1]
    }

    /// Waits until so many bytes are there.
    fn need(&mut self, bytes: usize, link: &mut Link, timeout: Option<Duration>) -> io::Result<()> {
        while self.end - self.begin < bytes {
            self.make_room(bytes);
            // Asking first costs a call of the system that nearly always says "not yet".
            if !link.wait_readable(timeout) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match link.read(&mut self.buffer[self.end..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.end += read,
            }
        }
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.buffer.len() - self.begin < bytes || self.end == self.buffer.len() {
            self.buffer.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
            let wanted = bytes.next_power_of_two().max(FIRST_BYTES);
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
        }
    }
}
