//! Bytes to a client, and from it in the middle of a command.

use super::Transport;
use crate::answer::Outlet;
use runtime::net::Stream;
use std::io;
use wire::InputBuffer;

/// Sends bytes at once, through whatever lies between.
pub(crate) fn send(
    transport: &mut Option<Box<Transport>>,
    stream: &mut Stream,
    bytes: &[u8],
) -> io::Result<()> {
    match transport {
        None => stream.write_all(bytes),
        Some(transport) => transport.send(stream, bytes),
    }
}

/// A connection in the middle of a command whose client sends more.
pub(crate) struct Exchange<'a> {
    pub(crate) input: &'a mut InputBuffer,
    pub(crate) transport: &'a mut Option<Box<Transport>>,
    pub(crate) stream: &'a mut Stream,
    /// Most bytes of a packet.
    pub(crate) limit: usize,
}

impl Exchange<'_> {
    /// Waits for more bytes.
    fn read(&mut self) -> io::Result<()> {
        let open = match self.transport {
            Some(transport) => transport.receive(self.stream, self.input)?,
            None if self.input.receive_whole(|bytes| self.stream.swap_received(bytes)) => true,
            None => {
                let count = self.stream.read(self.input.room())?;
                self.input.received(count);
                count > 0
            }
        };
        if open { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Outlet for Exchange<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        send(self.transport, self.stream, bytes)
    }

    fn can_receive(&self) -> bool {
        true
    }

    fn receive(&mut self, sequence: &mut u8, bytes: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let packet = self.input.next_packet(sequence, self.limit);
            if let Some(payload) = packet.map_err(|error| io::Error::other(error.to_string()))? {
                bytes.clear();
                bytes.extend_from_slice(payload);
                return Ok(());
            }
            self.read()?;
        }
    }
}
