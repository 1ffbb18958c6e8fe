//! What lies between a connection's packets and its socket: TLS, compression, or both.
//!
//! A plain connection has no [`Transport`] and pays one look at an empty `Option` for that.
//!
//! Invariants:
//! 1. Both layers are without I/O of their own: bytes that came from the socket go in, packets
//!    come out, and the other way round. Every wait is one of the [`Stream`]'s.
//! 2. Bytes that a client sent in clear before TLS began are never taken for packets within it:
//!    what came behind the request for TLS is fed to TLS.
//! 3. Everything that arrived is decrypted before the connection waits for more.
//! 4. Whatever bytes a client sends, the worst is that its connection ends.

pub(crate) mod certificate;
mod compression;
pub(crate) mod ed25519;
mod exchange;
pub(crate) mod rsa;
mod tls;

use crate::answer::Outlet;
use compression::Compression;
pub(crate) use exchange::{Exchange, send};
use runtime::net::Stream;
use std::io;
pub(crate) use tls::TlsFacts;
use tls::TlsLayer;
pub use tls::{TlsError, TlsFiles, TlsServer};
use wire::InputBuffer;

/// Bytes read from the socket at once.
const READ_BYTES: usize = 16 * 1024;

/// The layers of one connection.
#[derive(Default)]
pub(crate) struct Transport {
    tls: Option<TlsLayer>,
    compression: Option<Compression>,
    /// Bytes for the socket; empty between two calls.
    outgoing: Vec<u8>,
}

/// The way of answers through the layers.
pub(crate) struct SecureOutlet<'a> {
    pub(crate) transport: &'a mut Transport,
    pub(crate) stream: &'a mut Stream,
}

impl Outlet for SecureOutlet<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.transport.send(self.stream, bytes)
    }
}

impl Transport {
    /// TLS begins; `early` are bytes that came behind the request.
    pub(crate) fn begin_tls(
        &mut self,
        server: &TlsServer,
        early: &[u8],
        stream: &mut Stream,
        input: &mut InputBuffer,
    ) -> io::Result<()> {
        self.tls = Some(server.accept()?);
        self.take(early, stream, input).map(|_open| ())
    }

    /// From the next packet on both sides compress.
    pub(crate) fn begin_compression(&mut self) {
        self.compression = Some(Compression::default());
    }

    /// What was agreed on, once the handshake is over.
    pub(crate) fn tls_facts(&self) -> Option<TlsFacts> {
        self.tls.as_ref().and_then(TlsLayer::facts)
    }

    /// Takes what the socket has; false at its end.
    pub(crate) fn receive(
        &mut self,
        stream: &mut Stream,
        input: &mut InputBuffer,
    ) -> io::Result<bool> {
        let mut bytes = Vec::new();
        if !stream.swap_received(&mut bytes) {
            bytes.resize(READ_BYTES, 0);
            let count = stream.read(&mut bytes)?;
            bytes.truncate(count);
        }
        if bytes.is_empty() {
            return Ok(false);
        }
        self.take(&bytes, stream, input)
    }

    /// Bytes of the socket become packets; false if the other end has said goodbye.
    fn take(
        &mut self,
        bytes: &[u8],
        stream: &mut Stream,
        input: &mut InputBuffer,
    ) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            return self.take_clear(bytes, input).map(|()| true);
        };
        let mut clear = Vec::new();
        let taken = tls.take(bytes, &mut clear);
        // Handshakes, and the alert that tells the other side what is wrong.
        tls.flush(&mut self.outgoing)?;
        if !self.outgoing.is_empty() {
            let sent = stream.write_all(&self.outgoing);
            self.outgoing = Vec::new();
            sent?;
        }
        let open = taken?;
        if !clear.is_empty() {
            self.take_clear(&clear, input)?;
        }
        Ok(open)
    }

    fn take_clear(&mut self, bytes: &[u8], input: &mut InputBuffer) -> io::Result<()> {
        match &mut self.compression {
            Some(compression) => compression.take(bytes, input),
            None => {
                input.append(bytes);
                Ok(())
            }
        }
    }

    /// Sends an answer's packets.
    pub(crate) fn send(&mut self, stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
        let mut frames = Vec::new();
        let bytes = match &mut self.compression {
            Some(compression) => {
                compression.put(bytes, &mut frames);
                &frames[..]
            }
            None => bytes,
        };
        let Some(tls) = &mut self.tls else {
            return stream.write_all(bytes);
        };
        for part in bytes.chunks(READ_BYTES * 4) {
            tls.put(part, &mut self.outgoing)?;
            let sent = stream.write_all(&self.outgoing);
            self.outgoing.clear();
            sent?;
        }
        self.outgoing = Vec::new();
        Ok(())
    }

    /// Says goodbye, if that makes sense; the socket is closed either way.
    pub(crate) fn close(&mut self, stream: &mut Stream) {
        if let Some(tls) = &mut self.tls
            && tls.farewell(&mut self.outgoing).is_ok()
        {
            // The client may be gone already.
            let _sent = stream.write_all(&self.outgoing);
        }
    }
}
