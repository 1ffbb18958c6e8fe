//! A connection's bytes, in clear or through TLS.

use super::tls::{Encryption, Layer};
use runtime::net::{Address, Stream, StreamHandle, connect};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// A link that holds its thread gives way to others this often.
const HELD: Duration = Duration::from_millis(5);

/// A stream, and what encrypts it.
pub(super) struct Link {
    line: Line,
    layer: Option<Layer>,
    read_timeout: Option<Duration>,
}

/// How who reads waits.
enum Line {
    /// As a fiber.
    Parking(Stream),
    /// As a thread, in a call of the system.
    Holding(Arc<TcpStream>),
}

/// Closes a connection from elsewhere.
#[derive(Clone)]
pub struct Handle(Closing);

#[derive(Clone)]
enum Closing {
    Parking(StreamHandle),
    Holding(Arc<TcpStream>),
}

impl Handle {
    /// Ends the connection in both directions.
    pub fn close(&self) {
        match &self.0 {
            Closing::Parking(handle) => handle.close(),
            Closing::Holding(stream) => {
                // One that is not connected any more is closed.
                let _closed = stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Link {
    /// Connects; who reads waits as a fiber.
    pub(super) fn open(address: &Address) -> io::Result<Self> {
        Ok(Self::new(Line::Parking(connect(address)?)))
    }

    /// Connects; who reads holds the thread.
    pub(super) fn open_holding(address: &Address) -> io::Result<Self> {
        let Address::Tcp(address) = address else { return Err(ErrorKind::Unsupported.into()) };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HELD))?;
        Ok(Self::new(Line::Holding(Arc::new(stream))))
    }

    fn new(line: Line) -> Self {
        Self { line, layer: None, read_timeout: None }
    }

    /// Encrypts everything from now on.
    pub(super) fn encrypt(&mut self, encryption: &Encryption) -> io::Result<()> {
        let Line::Parking(stream) = &mut self.line else {
            return Err(ErrorKind::Unsupported.into());
        };
        self.layer = Some(Layer::begin(encryption, stream)?);
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
        match &mut self.line {
            Line::Parking(stream) => stream.wait_readable(timeout),
            // The read itself waits, in one call instead of two.
            Line::Holding(_) => true,
        }
    }

    /// Reads what is there; 0 at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&mut self.line, &mut self.layer) {
            (Line::Parking(stream), None) => stream.read(buffer),
            (Line::Parking(stream), Some(layer)) => layer.read(stream, buffer),
            (Line::Holding(stream), _) => read_holding(stream, buffer, self.read_timeout),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match (&mut self.line, &mut self.layer) {
            (Line::Parking(stream), None) => stream.write_all(bytes),
            (Line::Parking(stream), Some(layer)) => layer.write_all(stream, bytes),
            (Line::Holding(stream), _) => (&**stream).write_all(bytes),
        }
    }

    pub(super) fn set_timeouts(&mut self, read: Option<Duration>, write: Option<Duration>) {
        self.read_timeout = read;
        match &mut self.line {
            Line::Parking(stream) => {
                stream.set_read_timeout(read);
                stream.set_write_timeout(write);
            }
            Line::Holding(stream) => {
                // Only a timeout of 0 is refused; then a write waits as long as it takes.
                let _refused = stream.set_write_timeout(write);
            }
        }
    }

    pub(super) fn handle(&self) -> Handle {
        Handle(match &self.line {
            Line::Parking(stream) => Closing::Parking(stream.handle()),
            Line::Holding(stream) => Closing::Holding(stream.clone()),
        })
    }
}

/// Reads what is there. Others of this thread run when nothing has come for [`HELD`].
fn read_holding(
    mut stream: &TcpStream,
    buffer: &mut [u8],
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let mut waited = Duration::ZERO;
    loop {
        match stream.read(buffer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                waited += HELD;
                if timeout.is_some_and(|timeout| waited >= timeout) {
                    return Err(ErrorKind::TimedOut.into());
                }
                runtime::yield_now();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
