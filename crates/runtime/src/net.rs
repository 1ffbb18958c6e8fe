//! Sockets. A served connection is a state object without a stack while it is idle.

mod received;

use crate::Instant;
use crate::real::{ANSWER_BYTES_MAX, Placed, RealListener, RealStream};
use crate::sim::{SimListener, SimStream};
use crate::worker::{self, Twin};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where to listen or to connect.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// TCP; port 0 lets the system choose when listening.
    Tcp(SocketAddr),
    /// A UNIX socket's path.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{}", path.display()),
        }
    }
}

/// Who is at the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The client's address; for a UNIX socket the path it connected to.
    pub address: Address,
    /// The client's user id as the kernel says; UNIX sockets only.
    pub user_id: Option<u32>,
}

/// Connections that may wait to be accepted unless the caller says otherwise.
const DEFAULT_BACK_LOG: u32 = 1024;

/// A listening socket, not yet served.
pub struct Listener {
    twin: ListenerTwin,
}

enum ListenerTwin {
    Real(RealListener),
    Sim(SimListener),
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Listener({})", self.address())
    }
}

impl Listener {
    /// Listens on a TCP address.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        Self::bind(Address::Tcp(address))
    }

    /// Listens on a UNIX socket. A socket file that is there is replaced: callers must hold the
    /// lock that says that no other server uses it.
    pub fn unix(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind(Address::Unix(path.as_ref().to_path_buf()))
    }

    /// Listens on an address.
    pub fn bind(address: Address) -> io::Result<Self> {
        Self::bind_with(address, DEFAULT_BACK_LOG)
    }

    /// Listens on an address; `back_log` connections may wait to be accepted, if the system
    /// permits as many.
    pub fn bind_with(address: Address, back_log: u32) -> io::Result<Self> {
        let twin = match &worker::current().twin {
            Twin::Real(_) => ListenerTwin::Real(RealListener::bind(address, back_log)?),
            Twin::Sim(_) => ListenerTwin::Sim(SimListener::bind(address)?),
        };
        Ok(Self { twin })
    }

    /// The address, with the port that the system chose.
    pub fn address(&self) -> &Address {
        match &self.twin {
            ListenerTwin::Real(listener) => listener.address(),
            ListenerTwin::Sim(listener) => listener.address(),
        }
    }
}

/// What a connection wants after [`Connection::run`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// To be run again when bytes can be read (or the other end closed), or after the timeout,
    /// then with [`Stream::timed_out`].
    WaitReadable {
        /// How long to wait for bytes; `None`: for ever.
        timeout: Option<Duration>,
    },
    /// To be dropped and closed.
    Close,
}

/// The state of one served connection.
pub trait Connection: Send {
    /// Called in a fresh fiber at once after the connection was accepted, and from then on when
    /// [`Next`] says. May park, take as long as it likes, and read and write. Between two calls
    /// there is no stack, and the next call may be on another worker.
    /// A panic closes the connection.
    fn run(&mut self, stream: &mut Stream) -> Next;

    /// Others may wait for what it holds (an open transaction): it goes before those that hold
    /// nothing. Asked at the end of a run.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Its number in lists of those that wait.
    fn id(&self) -> u64 {
        0
    }

    /// It is about to be run: asks for memory that the run will need (see [`crate::prefetch`]).
    /// Called for steps 0 up to [`PREFETCH_STEPS`] in this order, each while another connection
    /// runs, so that a step finds in the cache what those before it have asked for. The object
    /// itself comes before step 0. Steps may be left out and repeated. `received` is what has
    /// come for the run, and is in the cache from step 0 on. Must not park.
    fn prefetch(&self, step: usize, received: &[u8]) {
        let _nothing_known = (step, received);
    }
}

/// How often [`Connection::prefetch`] is called before a run, at most.
pub const PREFETCH_STEPS: usize = 4;

/// Makes the state object of a new connection. The second argument closes it from elsewhere.
pub(crate) type Factory = dyn Fn(&Peer, StreamHandle) -> Box<dyn Connection> + Send + Sync;

/// Serves a listener until the handle's `stop`: for every connection `factory` makes the state
/// object. Returns at once.
pub fn serve(
    listener: Listener,
    factory: impl Fn(&Peer, StreamHandle) -> Box<dyn Connection> + Send + Sync + 'static,
) -> ServeHandle {
    let address = listener.address().clone();
    let factory: Arc<Factory> = Arc::new(factory);
    let stop: Box<dyn Fn() + Send + Sync> = match listener.twin {
        ListenerTwin::Real(listener) => listener.serve(factory),
        ListenerTwin::Sim(listener) => serve_simulated(listener, factory),
    };
    ServeHandle { address, stop }
}

/// As [`serve`], on the reserved worker: connections of this listener share nothing with the
/// others, and no limit holds them back. In a simulation, and without a reserved worker, it is
/// the same as `serve`.
pub fn serve_reserved(
    listener: Listener,
    factory: impl Fn(&Peer, StreamHandle) -> Box<dyn Connection> + Send + Sync + 'static,
) -> ServeHandle {
    let reserved = match &worker::current().twin {
        Twin::Real(real) => real.group.reserved_worker(),
        Twin::Sim(_) => None,
    };
    let Some(number) = reserved else {
        return serve(listener, factory);
    };
    let address = listener.address().clone();
    let stop: Box<dyn Fn() + Send + Sync> = match listener.twin {
        ListenerTwin::Real(listener) => listener.serve_on(number, Some(number), Arc::new(factory)),
        ListenerTwin::Sim(listener) => serve_simulated(listener, Arc::new(factory)),
    };
    ServeHandle { address, stop }
}

/// Stops serving a listener. Dropping it lets the listener be served on.
pub struct ServeHandle {
    address: Address,
    stop: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for ServeHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ServeHandle({})", self.address)
    }
}

impl ServeHandle {
    /// The address served.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Accepts no more connections; those that are open go on.
    pub fn stop(&self) {
        (self.stop)();
    }
}

fn serve_simulated(listener: SimListener, factory: Arc<Factory>) -> Box<dyn Fn() + Send + Sync> {
    let stop = listener.stop_function();
    crate::spawn("listener", move || {
        while let Some(stream) = listener.accept() {
            let factory = factory.clone();
            let peer = Peer { address: listener.address().clone(), user_id: Some(0) };
            crate::spawn("connection", move || {
                let mut stream = Stream::new(StreamTwin::Sim(stream), peer);
                let mut connection = factory(&stream.peer, stream.handle());
                stream.begin_run();
                while let Next::WaitReadable { timeout } = connection.run(&mut stream) {
                    // As in the real twin: a failure shows as the end, at the next run.
                    if stream.send_held().is_err() {
                        stream.handle().close();
                    }
                    stream.timed_out = !stream.wait_readable(timeout);
                }
                // It is closed either way; the client may be gone.
                let _sent = stream.send_held();
                stream.handle().close();
            });
        }
    });
    Box::new(stop)
}

/// Connects to an address; for clients in tests and for replication.
pub fn connect(address: &Address) -> io::Result<Stream> {
    let twin = match &worker::current().twin {
        Twin::Real(_) => StreamTwin::Real(RealStream::connect(address)?),
        Twin::Sim(_) => StreamTwin::Sim(SimStream::connect(address)?),
    };
    Ok(Stream::new(twin, Peer { address: address.clone(), user_id: None }))
}

#[derive(Clone)]
pub(crate) enum StreamTwin {
    Real(RealStream),
    Sim(SimStream),
}

/// A connected socket, owned by one fiber at a time.
pub struct Stream {
    twin: StreamTwin,
    peer: Peer,
    timed_out: bool,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    /// Bytes that came before somebody read.
    received: Vec<u8>,
    /// Those were all that a buffer holds: there may be more in the socket.
    received_full: bool,
    /// Within [`Connection::run`], which ends on the worker on which it began.
    in_run: bool,
    /// The answer to send when the run ends: where it lies (real), or itself (simulated).
    placed: Option<Placed>,
    held: Vec<u8>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stream({})", self.peer.address)
    }
}

impl Stream {
    pub(crate) fn new(twin: StreamTwin, peer: Peer) -> Self {
        Self {
            twin,
            peer,
            timed_out: false,
            read_timeout: None,
            write_timeout: None,
            received: Vec::new(),
            received_full: false,
            in_run: false,
            placed: None,
            held: Vec::new(),
        }
    }

    fn deadline(timeout: Option<Duration>) -> Option<Instant> {
        timeout.map(|timeout| crate::now() + timeout)
    }

    /// Reads what is there, at most the buffer's length, parking until there is something; 0 when
    /// the other end closed, `TimedOut` after the read timeout. Give a large buffer: one call is
    /// one system call at best.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_received() {
            return Ok(self.read_received(buffer));
        }
        self.send_held()?;
        let timeout = self.read_timeout;
        match &self.twin {
            StreamTwin::Real(stream) => stream.read(buffer, || Self::deadline(timeout)),
            StreamTwin::Sim(stream) => stream.read(buffer, Self::deadline(timeout)),
        }
    }

    /// Sends all bytes, with one system call if the kernel takes them at once; `TimedOut` after
    /// the write timeout. Build a whole answer in one buffer.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_held()?;
        self.send_now(bytes)
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<()> {
        let timeout = self.write_timeout;
        match &self.twin {
            StreamTwin::Real(stream) => stream.write_all(bytes, || Self::deadline(timeout)),
            StreamTwin::Sim(stream) => stream.write_all(bytes, Self::deadline(timeout)),
        }
    }

    /// Sends all bytes when this call of [`Connection::run`] ends (or before anything else is sent,
    /// or read from the socket): with the answers of other connections, by one system call for
    /// all. A failure then shows as the end of the stream at the next run.
    /// Large answers, and what finds no room, are sent at once. For the last answer of a run.
    pub fn send_when_done(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send_held()?;
        match &worker::current().twin {
            _ if !self.in_run => {}
            Twin::Real(real) => self.placed = real.event_loop.place_answer(bytes),
            Twin::Sim(_) if bytes.len() <= ANSWER_BYTES_MAX => {
                self.held.extend_from_slice(bytes);
                return Ok(());
            }
            Twin::Sim(_) => {}
        }
        if self.placed.is_some() { Ok(()) } else { self.send_now(bytes) }
    }

    /// Sends what [`Stream::send_when_done`] holds.
    pub(crate) fn send_held(&mut self) -> io::Result<()> {
        let held = match (self.placed.take(), &worker::current().twin) {
            (Some(placed), Twin::Real(real)) => real.event_loop.withdraw_answer(placed),
            _ if self.held.is_empty() => return Ok(()),
            _ => std::mem::take(&mut self.held),
        };
        self.send_now(&held)
    }

    pub(crate) fn begin_run(&mut self) {
        self.in_run = true;
    }

    /// The caller takes what is held.
    pub(crate) fn end_run(&mut self) {
        self.in_run = false;
    }

    /// The answer to be sent now that the run has ended.
    pub(crate) fn take_placed(&mut self) -> Option<Placed> {
        self.placed.take()
    }

    /// Parks until something can be read or the other end closed; false after the timeout.
    pub fn wait_readable(&mut self, timeout: Option<Duration>) -> bool {
        // A failure shows at the next read.
        if self.has_received() || self.send_held().is_err() {
            return true;
        }
        let deadline = Self::deadline(timeout);
        match &self.twin {
            StreamTwin::Real(stream) => stream.wait_readable(deadline),
            StreamTwin::Sim(stream) => stream.wait_readable(deadline),
        }
    }

    /// Whether this call of [`Connection::run`] is because of the timeout.
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }

    pub(crate) fn set_timed_out(&mut self, timed_out: bool) {
        self.timed_out = timed_out;
    }

    /// How long a [`Stream::read`] waits; `None` (at first): for ever.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_timeout = timeout;
    }

    /// How long a [`Stream::write_all`] waits; `None` (at first): for ever.
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_timeout = timeout;
    }

    pub(crate) fn write_timeout(&self) -> Option<Duration> {
        self.write_timeout
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// A handle that closes this connection from elsewhere.
    pub fn handle(&self) -> StreamHandle {
        StreamHandle { twin: self.twin.clone() }
    }

    pub(crate) fn real(&self) -> Option<&RealStream> {
        match &self.twin {
            StreamTwin::Real(stream) => Some(stream),
            StreamTwin::Sim(_) => None,
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        match &self.twin {
            // A handle elsewhere keeps the descriptor open, so say goodbye here.
            StreamTwin::Real(stream) => stream.shutdown(),
            StreamTwin::Sim(stream) => stream.close(),
        }
    }
}

/// Closes a connection from any fiber, for KILL, and asks whether its client is still there.
#[derive(Clone)]
pub struct StreamHandle {
    twin: StreamTwin,
}

impl fmt::Debug for StreamHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StreamHandle")
    }
}

impl StreamHandle {
    /// Whether the other end has closed and nothing but `farewell` is left to read, so
    /// that nobody waits for an answer; does not wait. A system call or two.
    pub fn is_abandoned(&self, farewell: &[u8]) -> bool {
        match &self.twin {
            StreamTwin::Real(stream) => stream.is_abandoned(farewell),
            StreamTwin::Sim(stream) => stream.is_abandoned(farewell),
        }
    }

    /// Shuts the socket down in both directions: the owner's reads return 0, its writes fail, and
    /// an idle connection is run once more.
    pub fn close(&self) {
        match &self.twin {
            StreamTwin::Real(stream) => stream.shutdown(),
            StreamTwin::Sim(stream) => stream.close(),
        }
    }
}
