//! A connection's bytes, in clear or through TLS.

use super::tls::{Encryption, Layer};
use runtime::net::{Stream, StreamHandle};
use std::io;
use std::time::Duration;

/// A stream, and what encrypts it.
pub(super) struct Link {
    stream: Stream,
    layer: Option<Layer>,
}

impl Link {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, layer: None }
    }

    /// Encrypts everything from now on.
    pub(super) fn encrypt(&mut self, encryption: &Encryption) -> io::Result<()> {
        self.layer = Some(Layer::begin(encryption, &mut self.stream)?);
        Ok(())
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.layer.is_some()
    }

    /// Waits for bytes; false after the timeout.
    pub(super) fn wait_readable(&mut self, timeout: Option<Duration>) -> bool {
        if self.layer.as_ref().is_some_and(Layer::has_more) {
            return true;
        }
        self.stream.wait_readable(timeout)
    }

    /// Reads what is there; 0 at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.layer {
            None => self.stream.read(buffer),
            Some(layer) => layer.read(&mut self.stream, buffer),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.layer {
            None => self.stream.write_all(bytes),
            Some(layer) => layer.write_all(&mut self.stream, bytes),
        }
    }

    pub(super) fn set_timeouts(&mut self, read: Option<Duration>, write: Option<Duration>) {
        self.stream.set_read_timeout(read);
        self.stream.set_write_timeout(write);
    }

    pub(super) fn handle(&self) -> StreamHandle {
        self.stream.handle()
    }
}
