//! The connection object that the runtime drives: greeting, login, commands, farewell.
//!
//! States: [`State::New`] → greet → [`State::LoggingIn`] → [`State::Ready`], from which
//! [`State::Changing`] leads back. Between two calls of
//! `run` there is no stack; an idle connection holds its session and no buffers.
//!
//! Invariants:
//! 1. All answers to the commands that have arrived are collected and sent in one go, in order.
//! 2. A packet that cannot be followed is answered with an error and the connection closes;
//!    nothing of what came before is lost.
//! 3. However the connection ends, its transaction is rolled back and its locks are given back.

use crate::answer::Outlet;
use crate::authenticate::Security;
use crate::login::{Arrival, ChangingUser, Login, Step};
use crate::process::{Door, Process};
use crate::settings::Priority;
use crate::status::{ABORTED_CLIENTS, ABORTED_CONNECTS, REFUSED_CONNECTIONS, StatusCounter};
use crate::transport::{self, Exchange, SecureOutlet, Transport};
use crate::{Identity, ServerState, Session};
use runtime::net::{Address, Connection, Next, Peer, Stream, StreamHandle};
use runtime::{CancelReason, Instant, catch_panic, with_cancel};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use wire::capability::{COMPRESS, INTERACTIVE};
use wire::handshake::is_tls_request;
use wire::{InputBuffer, LOGIN_PACKET_BYTES_MAX, OutputBuffer, PacketError, response};

/// Longest time from the connection to the end of the login.
const LOGIN_LIMIT: Duration = Duration::from_secs(10);

enum State {
    New,
    LoggingIn(Login),
    Ready {
        session: Box<Session>,
        login: Login,
    },
    /// COM_CHANGE_USER took more than one packet: the next one belongs to it.
    Changing {
        session: Box<Session>,
        login: Login,
        changing: Box<ChangingUser>,
    },
    Closed,
}

/// A served connection.
pub struct ClientConnection {
    server: Arc<ServerState>,
    process: Arc<Process>,
    identity: Identity,
    state: State,
    input: InputBuffer,
    /// Sequence number expected of the next packet of a login.
    sequence: u8,
    /// Output before there is a session.
    out: OutputBuffer,
    connected: Instant,
    /// There were too many connections when this one came.
    refused: bool,
    /// It came through a UNIX socket.
    is_socket: bool,
    /// TLS and compression, if there are any.
    transport: Option<Box<Transport>>,
}

impl Outlet for Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
}

impl ClientConnection {
    /// A connection that was just accepted through a door.
    pub fn new(server: Arc<ServerState>, peer: &Peer, handle: StreamHandle, door: Door) -> Self {
        let (process, count) = server.processes.connect(&crate::login::process_host(peer), door);
        process.set_handle(handle);
        let refused = count > server.connection_limit(door).saturating_add(1);
        if !refused {
            server.processes.admitted();
        }
        Self {
            identity: crate::login::identity(peer),
            state: State::New,
            input: InputBuffer::new(),
            sequence: 0,
            out: OutputBuffer::new(),
            connected: runtime::now(),
            refused,
            is_socket: matches!(peer.address, Address::Unix(_)),
            transport: None,
            process,
            server,
        }
    }

    fn greet(&mut self, stream: &mut Stream) -> Next {
        if self.refused || self.server.is_stopping() {
            let (code, text) = match self.refused {
                true => (1040, "Too many connections"),
                false => (1053, "Server shutdown in progress"),
            };
            response::login_error(&mut self.out, code, text);
            ABORTED_CONNECTS.add(1);
            REFUSED_CONNECTIONS.add(u64::from(self.refused));
            // The client may be gone already; it is closed either way.
            let _sent = stream.write_all(self.out.bytes());
            return Next::Close;
        }
        let login = Login::greet(&self.server, &self.process, &mut self.out);
        self.sequence = 1;
        self.state = State::LoggingIn(login);
        match stream.write_all(self.out.bytes()) {
            Ok(()) => {
                self.out.clear();
                self.wait()
            }
            Err(_) => self.farewell(stream, false),
        }
    }

    /// The client asked for TLS: what follows is its handshake.
    fn begin_tls(&mut self, stream: &mut Stream) -> io::Result<()> {
        let early = self.input.take_rest();
        let refused = || io::Error::other("TLS is not offered");
        let tls = self.server.tls().ok_or_else(refused)?;
        let transport = self.transport.insert(Box::default());
        transport.begin_tls(tls, &early, stream, &mut self.input)
    }

    fn security(&self) -> Security {
        let tls = self.transport.as_ref().and_then(|transport| transport.tls_facts());
        Security { tls: tls.map(Box::new), is_socket: self.is_socket }
    }

    /// Waits for more bytes, with the limit of the present state.
    fn wait(&mut self) -> Next {
        let timeout = match &self.state {
            State::Ready { session, .. } => session.idle_limit(self.input.is_empty()),
            _ => LOGIN_LIMIT.saturating_sub(self.connected.elapsed()),
        };
        Next::WaitReadable { timeout: Some(timeout) }
    }

    fn farewell(&mut self, stream: &mut Stream, polite: bool) -> Next {
        if let Some(mut transport) = self.transport.take() {
            transport.close(stream);
        }
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Ready { mut session, .. } | State::Changing { mut session, .. } => {
                if !polite {
                    ABORTED_CLIENTS.add(1);
                }
                session.close();
            }
            State::LoggingIn(_) => ABORTED_CONNECTS.add(1),
            State::New | State::Closed => {}
        }
        Next::Close
    }

    fn log_in(&mut self, stream: &mut Stream) -> Next {
        loop {
            let security = self.security();
            let State::LoggingIn(login) = &mut self.state else {
                return self.serve(stream);
            };
            // A later packet may look like a request by chance: proofs are random bytes.
            let may_ask = self.transport.is_none() && login.is_new();
            let packet = self.input.next_packet(&mut self.sequence, LOGIN_PACKET_BYTES_MAX);
            let step = match packet {
                Ok(None) => return self.wait(),
                Ok(Some(payload)) if may_ask && is_tls_request(payload) => {
                    match self.begin_tls(stream) {
                        Ok(()) => continue,
                        Err(_) => return self.farewell(stream, false),
                    }
                }
                Ok(Some(payload)) => {
                    self.out.set_sequence(self.sequence);
                    let (server, process) = (&self.server, &self.process);
                    let identity = &self.identity;
                    let arrival = Arrival { server, process, identity, security };
                    login.step(&arrival, payload, &mut self.out)
                }
                Err(error) => {
                    self.out.set_sequence(self.sequence);
                    response::login_error(&mut self.out, code_of(error), &error.to_string());
                    Step::Refused
                }
            };
            self.sequence = self.out.sequence();
            let (session, close) = match step {
                Step::Again => (None, false),
                Step::Refused => (None, true),
                Step::Done(session) => (Some(session), false),
            };
            let sent = match session {
                None => transport::send(&mut self.transport, stream, self.out.bytes()),
                Some(session) => self.welcome(session, stream),
            };
            self.out.clear();
            if sent.is_err() || close {
                return self.farewell(stream, false);
            }
        }
    }

    /// The login has succeeded.
    fn welcome(&mut self, mut session: Box<Session>, stream: &mut Stream) -> io::Result<()> {
        let sent = transport::send(&mut self.transport, stream, session.out.bytes());
        session.out.clear();
        session.process.end();
        if session.capabilities & COMPRESS != 0 {
            self.transport.get_or_insert_default().begin_compression();
        }
        if let State::LoggingIn(login) = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Ready { session, login };
        }
        sent
    }

    /// A further packet of COM_CHANGE_USER.
    fn change_user(&mut self, stream: &mut Stream) -> Next {
        let packet = self.input.next_packet(&mut self.sequence, LOGIN_PACKET_BYTES_MAX);
        let payload = match packet {
            Ok(None) => return self.wait(),
            Ok(Some(payload)) => payload.to_vec(),
            Err(_) => return self.farewell(stream, false),
        };
        let state = std::mem::replace(&mut self.state, State::Closed);
        let State::Changing { mut session, login, changing } = state else {
            return Next::Close;
        };
        session.out.set_sequence(self.sequence);
        match session.continue_change_user(changing, &payload) {
            Ok(true) => session.put_ok(&exec::Outcome::default()),
            Ok(false) => {}
            Err(error) => session.put_error(&error),
        }
        let closing = session.closing;
        self.state = State::Ready { session, login };
        match self.after_change_user(stream) {
            Ok(()) if !closing => self.serve(stream),
            _ => self.farewell(stream, false),
        }
    }

    /// Sends what COM_CHANGE_USER wrote; if it goes on, the next packet belongs to it.
    fn after_change_user(&mut self, stream: &mut Stream) -> io::Result<()> {
        let State::Ready { session, .. } = &mut self.state else {
            return Ok(());
        };
        let sent = transport::send(&mut self.transport, stream, session.out.bytes());
        self.sequence = session.out.sequence();
        session.out.clear();
        if let Some(changing) = session.changing.take()
            && let State::Ready { session, login } =
                std::mem::replace(&mut self.state, State::Closed)
        {
            self.state = State::Changing { session, login, changing };
        }
        sent
    }

    /// Executes the commands that have arrived.
    fn serve(&mut self, stream: &mut Stream) -> Next {
        loop {
            let State::Ready { session, login } = &mut self.state else {
                return match self.state {
                    State::Changing { .. } => self.change_user(stream),
                    _ => Next::Close,
                };
            };
            let mut sequence = 0;
            let limit = session.settings.packet_bytes_max;
            let closing = match self.input.next_packet(&mut sequence, limit) {
                Ok(None) => {
                    if let Err(next) = self.send_and_wait(stream) {
                        return next;
                    }
                    return self.wait();
                }
                Ok(Some(payload)) => {
                    session.out.set_sequence(sequence);
                    session.status.add(StatusCounter::BytesReceived, payload.len() as u64 + 4);
                    let token = self.process.cancel_token();
                    let mut secure;
                    let outlet: &mut dyn Outlet = match &mut self.transport {
                        None => stream,
                        Some(transport) => {
                            secure = SecureOutlet { transport, stream };
                            &mut secure
                        }
                    };
                    let run = || session.command(payload, login.scramble(), outlet);
                    match catch_panic(|| with_cancel(token, run)) {
                        Ok(control) => control,
                        Err(panic) => {
                            session.panicked(panic.message());
                            true
                        }
                    }
                }
                Err(error) => {
                    session.out.set_sequence(sequence.wrapping_add(1));
                    let text = error.to_string();
                    response::error(&mut session.out, code_of(error), "08S01", &text);
                    true
                }
            };
            let closing = match session.loading.take() {
                Some(text) => self.load(&text, stream),
                None => closing,
            };
            let State::Ready { session, .. } = &mut self.state else {
                return Next::Close;
            };
            let polite = session.closing;
            let killed = !self.process.cancel_token().rearm();
            if closing && !killed && session.changing.is_some() {
                if self.after_change_user(stream).is_err() {
                    return self.farewell(stream, false);
                }
                continue;
            }
            if closing || killed {
                // Closed either way; the client may be gone.
                let _sent = transport::send(&mut self.transport, stream, session.out.bytes());
                if session.asks_shutdown {
                    self.server.request_shutdown();
                }
                return self.farewell(stream, polite);
            }
        }
    }

    /// Runs a statement that receives a file of the client's, and what follows it. True if the
    /// connection is to be closed.
    fn load(&mut self, text: &[u8], stream: &mut Stream) -> bool {
        let State::Ready { session, .. } = &mut self.state else {
            return true;
        };
        let token = self.process.cancel_token().clone();
        let limit = session.settings.packet_bytes_max;
        stream.set_read_timeout(Some(session.settings.read_timeout));
        let (input, transport) = (&mut self.input, &mut self.transport);
        let mut outlet = Exchange { input, transport, stream, limit };
        let run = || session.resume(text, &mut outlet);
        let closing = catch_panic(|| with_cancel(&token, run)).unwrap_or_else(|panic| {
            session.panicked(panic.message());
            true
        });
        stream.set_read_timeout(None);
        closing
    }

    fn send_and_wait(&mut self, stream: &mut Stream) -> Result<(), Next> {
        let State::Ready { session, .. } = &mut self.state else {
            return Ok(());
        };
        if !session.out.is_empty() {
            session.status.add(StatusCounter::BytesSent, session.out.len() as u64);
            let sent = match (&mut self.transport, session.asks_shutdown) {
                (None, false) => stream.send_when_done(session.out.bytes()),
                // The server closes all connections soon: this answer goes before.
                (None, true) => stream.write_all(session.out.bytes()),
                (Some(transport), _) => transport.send(stream, session.out.bytes()),
            };
            session.out.clear();
            if std::mem::take(&mut session.asks_shutdown) {
                self.server.request_shutdown();
            }
            if sent.is_err() {
                return Err(self.farewell(stream, false));
            }
        }
        session.trim();
        self.input.trim();
        Ok(())
    }

    /// The wait for a command ended without one.
    fn timed_out(&mut self, stream: &mut Stream) -> Next {
        if let State::LoggingIn(_) = &self.state {
            self.out.set_sequence(self.sequence);
            response::login_error(&mut self.out, 1159, "Got timeout reading communication packets");
            // Closed either way.
            let _sent = transport::send(&mut self.transport, stream, self.out.bytes());
        }
        self.farewell(stream, false)
    }
}

fn code_of(error: PacketError) -> u16 {
    match error {
        PacketError::TooLarge => 1153,
        PacketError::OutOfOrder => 1156,
    }
}

impl Connection for ClientConnection {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if let State::New = self.state {
            return self.greet(stream);
        }
        if stream.timed_out() {
            return self.timed_out(stream);
        }
        if self.process.cancel_token().reason() == Some(CancelReason::KillConnection) {
            return self.farewell(stream, false);
        }
        if let Some(transport) = &mut self.transport {
            match transport.receive(stream, &mut self.input) {
                Ok(true) => {}
                Ok(false) | Err(_) => return self.farewell(stream, false),
            }
        } else if !self.input.receive_whole(|buffer| stream.swap_received(buffer)) {
            match stream.read(self.input.room()) {
                Ok(0) | Err(_) => return self.farewell(stream, false),
                Ok(count) => self.input.received(count),
            }
        }
        match &mut self.state {
            State::LoggingIn(_) => return self.log_in(stream),
            State::Ready { session, .. } => session.take_room(),
            _ => {}
        }
        self.serve(stream)
    }

    fn is_urgent(&self) -> bool {
        match &self.state {
            State::Ready { session, .. } => match session.settings.priority {
                Priority::High => true,
                Priority::Low => false,
                Priority::Auto => session.transaction.is_open(),
            },
            _ => false,
        }
    }

    fn id(&self) -> u64 {
        u64::from(self.process.id())
    }

    fn prefetch(&self, step: usize, received: &[u8]) {
        let State::Ready { session, .. } = &self.state else { return };
        match step {
            0 => {
                runtime::prefetch(&*self.process);
                runtime::prefetch(&**session);
            }
            1 => {
                self.process.cancel_token().prefetch();
                session.prefetch_parts();
            }
            2 => session.prepared.prefetch_last(),
            _ if self.transport.is_none() => session.prefetch_row(received),
            _ => {}
        }
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        self.server.processes.disconnect(self.process.id());
    }
}

impl Session {
    /// How long the connection may wait for the next command, or for the rest of one.
    fn idle_limit(&self, between_commands: bool) -> Duration {
        match (between_commands, self.capabilities & INTERACTIVE != 0) {
            (false, _) => self.settings.read_timeout,
            (true, true) => self.settings.interactive_timeout,
            (true, false) => self.settings.wait_timeout,
        }
    }
}
