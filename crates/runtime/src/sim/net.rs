//! The simulated network: pipes within the simulation, with delays and odd chunk sizes.

use super::driver::SimTwin;
use super::namespace::error;
use crate::clock::Instant;
use crate::net::Address;
use crate::park::{WaitClass, Wake};
use crate::sync::{Mutex, WaitQueue};
use crate::worker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Bytes on the way in one direction before the writer must wait.
const PIPE_BYTES: usize = 256 * 1024;
const LATENCY_NANOS: u64 = 20_000;

/// Listening addresses of one simulation.
#[derive(Default)]
pub(crate) struct SimNetwork {
    listeners: BTreeMap<Address, Arc<Backlog>>,
    last_port: u16,
}

#[derive(Default)]
struct Backlog {
    streams: Mutex<(VecDeque<SimStream>, bool)>,
    changed: WaitQueue,
}

fn sim() -> &'static SimTwin {
    worker::current().sim().expect("the simulated network is used inside a simulation")
}

/// A listening address; stops listening when dropped.
pub(crate) struct SimListener {
    address: Address,
    backlog: Arc<Backlog>,
}

impl SimListener {
    pub(crate) fn bind(mut address: Address) -> io::Result<Self> {
        let mut network = sim().network.borrow_mut();
        if let Address::Tcp(address) = &mut address
            && address.port() == 0
        {
            network.last_port += 1;
            address.set_port(40_000 + network.last_port);
        }
        if network.listeners.contains_key(&address) {
            return Err(error(libc::EADDRINUSE));
        }
        let backlog = Arc::new(Backlog::default());
        network.listeners.insert(address.clone(), backlog.clone());
        Ok(Self { address, backlog })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Parks until a client connects; `None` after [`SimListener::stop`].
    pub(crate) fn accept(&self) -> Option<SimStream> {
        let mut accepted = None;
        self.backlog.changed.wait_until_uncancellable(WaitClass::Network, None, || {
            let mut streams = self.backlog.streams.lock();
            accepted = streams.0.pop_front();
            accepted.is_some() || streams.1
        });
        accepted
    }

    pub(crate) fn stop_function(&self) -> impl Fn() + Send + Sync + 'static {
        let (backlog, address) = (self.backlog.clone(), self.address.clone());
        move || {
            sim().network.borrow_mut().listeners.remove(&address);
            backlog.streams.lock().1 = true;
            backlog.changed.wake_all();
        }
    }
}

#[derive(Default)]
struct PipeState {
    chunks: VecDeque<(Instant, VecDeque<u8>)>,
    bytes: usize,
    closed: bool,
}

#[derive(Default)]
struct Pipe {
    state: Mutex<PipeState>,
    changed: WaitQueue,
}

impl Pipe {
    fn close(&self) {
        self.state.lock().closed = true;
        self.changed.wake_all();
    }
}

/// One end of a connection.
#[derive(Clone)]
pub(crate) struct SimStream {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
}

/// What a reader finds.
enum Found {
    Bytes,
    End,
    Later(Instant),
    Nothing,
}

impl SimStream {
    pub(crate) fn connect(address: &Address) -> io::Result<Self> {
        let sim = sim();
        sim.operation(worker::current(), WaitClass::Network, LATENCY_NANOS);
        let backlog = sim.network.borrow().listeners.get(address).cloned();
        let backlog = backlog.ok_or_else(|| error(libc::ECONNREFUSED))?;
        let (here, there) = (Arc::new(Pipe::default()), Arc::new(Pipe::default()));
        let server = Self { incoming: there.clone(), outgoing: here.clone() };
        backlog.streams.lock().0.push_back(server);
        backlog.changed.wake_all();
        Ok(Self { incoming: here, outgoing: there })
    }

    fn look(&self) -> Found {
        let state = self.incoming.state.lock();
        match state.chunks.front() {
            Some((visible, _)) if *visible > worker::current().now() => Found::Later(*visible),
            Some(_) => Found::Bytes,
            None if state.closed => Found::End,
            None => Found::Nothing,
        }
    }

    /// Parks until bytes (or the end) can be read; false when the deadline came first.
    pub(crate) fn wait_readable(&self, deadline: Option<Instant>) -> bool {
        loop {
            let found = self.look();
            let until = match found {
                Found::Bytes | Found::End => return true,
                Found::Later(visible) => Some(deadline.map_or(visible, |it| it.min(visible))),
                Found::Nothing => deadline,
            };
            let was_empty = matches!(found, Found::Nothing);
            if deadline.is_some_and(|deadline| deadline <= worker::current().now()) {
                return false;
            }
            let seen = || match self.look() {
                Found::Bytes | Found::End => true,
                // Something new that is not visible yet: wait again, until it is.
                Found::Later(_) => was_empty,
                Found::Nothing => false,
            };
            let wake =
                self.incoming.changed.wait_until_uncancellable(WaitClass::Network, until, seen);
            if wake == Wake::Cancelled {
                return false;
            }
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8], deadline: Option<Instant>) -> io::Result<usize> {
        if !self.wait_readable(deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut state = self.incoming.state.lock();
        let Some((_, chunk)) = state.chunks.front_mut() else { return Ok(0) };
        let length = chunk.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(chunk.drain(..length)) {
            *place = byte;
        }
        let is_empty = chunk.is_empty();
        if is_empty {
            state.chunks.pop_front();
        }
        state.bytes -= length;
        drop(state);
        self.incoming.changed.wake_all();
        Ok(length)
    }

    pub(crate) fn write_all(&self, bytes: &[u8], deadline: Option<Instant>) -> io::Result<()> {
        let sim = sim();
        if sim.breaks_connection() {
            self.close();
            return Err(error(libc::ECONNRESET));
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut room = 0;
            let wake = self.outgoing.changed.wait_until_uncancellable(
                WaitClass::Network,
                deadline,
                || {
                    let state = self.outgoing.state.lock();
                    room = if state.closed { usize::MAX } else { PIPE_BYTES - state.bytes };
                    room > 0
                },
            );
            if wake != Wake::Unparked {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if self.outgoing.state.lock().closed {
                return Err(error(libc::EPIPE));
            }
            // Mostly one piece, now and then a small one, as real networks do.
            let piece = match sim.random_in(0..4) {
                0 => 1 + sim.random_in(0..rest.len() as u64) as usize,
                _ => rest.len(),
            };
            let (now, later) = rest.split_at(piece.min(room));
            let latency = Duration::from_nanos(sim.latency(LATENCY_NANOS));
            let mut state = self.outgoing.state.lock();
            let earliest = state.chunks.back().map_or(Instant::default(), |chunk| chunk.0);
            let visible = earliest.max(worker::current().now() + latency);
            state.chunks.push_back((visible, now.iter().copied().collect()));
            state.bytes += now.len();
            drop(state);
            self.outgoing.changed.wake_all();
            rest = later;
        }
        Ok(())
    }

    /// Closes both directions; what is on the way can still be read.
    pub(crate) fn close(&self) {
        self.incoming.close();
        self.outgoing.close();
    }

    /// Whether the other end has closed and nothing but `farewell` is left to read.
    pub(crate) fn is_abandoned(&self, farewell: &[u8]) -> bool {
        let state = self.incoming.state.lock();
        let left = || state.chunks.iter().flat_map(|chunk| &chunk.1);
        state.closed && (state.bytes == 0 || left().eq(farewell))
    }
}
