//! Bytes that came before somebody read.

use super::{Stream, StreamTwin};
use crate::real::BUFFER_BYTES;

/// Room for received bytes that a connection keeps while it is idle.
const RECEIVED_BYTES_KEPT: usize = 256;

impl Stream {
    /// Bytes have come, for the next read.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        self.received_full = bytes.len() == BUFFER_BYTES;
    }

    /// Whether bytes have come that nobody has read.
    pub(crate) fn has_received(&self) -> bool {
        !self.received.is_empty()
    }

    /// Exchanges `buffer`, whose content is lost, for the bytes that have come, when they are all
    /// there is to read. False, and nothing changes, if not: then [`Stream::read`].
    pub fn swap_received(&mut self, buffer: &mut Vec<u8>) -> bool {
        if !self.has_received() || self.received_full {
            return false;
        }
        if buffer.capacity() > RECEIVED_BYTES_KEPT {
            *buffer = Vec::new();
        }
        buffer.clear();
        std::mem::swap(buffer, &mut self.received);
        true
    }

    /// What has come.
    pub(crate) fn received(&self) -> &[u8] {
        &self.received
    }

    /// Asks for the memory of what has come.
    pub(crate) fn prefetch(&self) {
        crate::prefetch::prefetch(&self.received[..]);
    }

    /// Asks for the memory into which bytes will be received.
    pub(crate) fn prefetch_room(&self) {
        crate::prefetch::lines(self.received.as_ptr(), 1);
    }

    pub(super) fn read_received(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.received.len().min(buffer.len());
        let (now, later) = buffer.split_at_mut(count);
        now.copy_from_slice(&self.received[..count]);
        self.received.drain(..count);
        if self.received.capacity() > RECEIVED_BYTES_KEPT {
            self.received.shrink_to_fit();
        }
        let goes_on = self.received_full && !later.is_empty();
        match &self.twin {
            // A failure shows again at the next read.
            StreamTwin::Real(stream) if goes_on => count + stream.read_now(later).unwrap_or(0),
            _ => count,
        }
    }
}
