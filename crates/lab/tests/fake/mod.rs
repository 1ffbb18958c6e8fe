//! A server that answers every statement with OK after a fixed time, except while it pauses.

use runtime::Instant;
use runtime::net::{Address, Connection, Listener, Next, ServeHandle, Stream};
use std::time::Duration;
use wire::capability::{self, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION};
use wire::handshake::{self, Greeting};
use wire::{Command, InputBuffer, OutputBuffer, response};

/// How it behaves.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Time of a statement.
    pub service: Duration,
    /// Nothing is answered from the first moment to the second.
    pub pause: Option<(Instant, Instant)>,
    /// Connections end from this moment on, and there are no new ones.
    pub dies: Option<Instant>,
    /// From this moment on nobody who connects hears anything.
    pub is_mute: Option<Instant>,
    /// Every so many statements one fails with a deadlock.
    pub conflict_every: u64,
    /// From this moment on every statement fails so: number, SQLSTATE, text.
    pub fails: Option<(Instant, u16, &'static str, &'static str)>,
    /// Nobody may log in: number, SQLSTATE, text.
    pub refuses: Option<(u16, &'static str, &'static str)>,
}

impl Behaviour {
    /// Statements take so long, and that is all.
    pub fn new(service: Duration) -> Self {
        let conflict_every = u64::MAX;
        Self {
            service,
            pause: None,
            dies: None,
            is_mute: None,
            conflict_every,
            fails: None,
            refuses: None,
        }
    }
}

struct Fake {
    behaviour: Behaviour,
    input: InputBuffer,
    logged_in: bool,
    statements: u64,
}

/// Serves on the loopback.
pub fn serve_at(port: u16, behaviour: Behaviour) -> ServeHandle {
    let listener = Listener::bind(Address::Tcp(([127, 0, 0, 1], port).into())).expect("free");
    runtime::net::serve(listener, move |_, _| {
        let input = InputBuffer::new();
        Box::new(Fake { behaviour, input, logged_in: false, statements: 0 })
    })
}

const CAPABILITIES: u64 = PROTOCOL_41 | PLUGIN_AUTH | SECURE_CONNECTION;

impl Connection for Fake {
    fn run(&mut self, stream: &mut Stream) -> Next {
        match self.answer(stream) {
            Some(()) => Next::WaitReadable { timeout: None },
            None => Next::Close,
        }
    }
}

impl Fake {
    fn answer(&mut self, stream: &mut Stream) -> Option<()> {
        if self.is_dead() {
            return None;
        }
        if !self.logged_in {
            return self.log_in(stream);
        }
        let mut sequence = 0;
        let packet = self.packet(stream, &mut sequence)?;
        let mut out = OutputBuffer::new();
        out.set_sequence(sequence);
        match Command::parse(&packet, CAPABILITIES).ok()? {
            Command::Prepare(sql) => {
                let parameters = sql.iter().filter(|byte| **byte == b'?').count() as u16;
                let payload = out.begin();
                payload.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0]);
                payload.extend_from_slice(&parameters.to_le_bytes());
                payload.extend_from_slice(&[0, 0, 0]);
                out.end();
                for _ in 0..parameters {
                    out.begin().extend_from_slice(b"described");
                    out.end();
                }
                if parameters > 0 {
                    response::eof(&mut out, 0, 2);
                }
            }
            Command::Quit => return None,
            _ => {
                self.serve_statement()?;
                self.statements += 1;
                let failing = self.behaviour.fails.filter(|(from, ..)| runtime::now() >= *from);
                if let Some((_, number, state, text)) = failing {
                    response::error(&mut out, number, state, text);
                } else if self.statements.is_multiple_of(self.behaviour.conflict_every) {
                    response::error(&mut out, 1213, "40001", "Deadlock found");
                } else {
                    response::ok(&mut out, &response::Ok::default(), CAPABILITIES);
                }
            }
        }
        stream.write_all(out.bytes()).ok()
    }

    /// The next packet, which may come in pieces.
    fn packet(&mut self, stream: &mut Stream, sequence: &mut u8) -> Option<Vec<u8>> {
        loop {
            if let Some(packet) = self.input.next_packet(sequence, 1 << 20).ok()? {
                return Some(packet.to_vec());
            }
            let count = stream.read(self.input.room()).ok().filter(|count| *count > 0)?;
            self.input.received(count);
        }
    }

    fn is_dead(&self) -> bool {
        self.behaviour.dies.is_some_and(|dies| runtime::now() >= dies)
    }

    fn serve_statement(&self) -> Option<()> {
        runtime::sleep(self.behaviour.service);
        if let Some((from, to)) = self.behaviour.pause {
            let now = runtime::now();
            if now >= from && now < to {
                runtime::sleep(to - now);
            }
        }
        (!self.is_dead()).then_some(())
    }

    fn log_in(&mut self, stream: &mut Stream) -> Option<()> {
        if self.behaviour.is_mute.is_some_and(|from| runtime::now() >= from) {
            // Until the client has gone.
            self.packet(stream, &mut 0)?;
        }
        let mut out = OutputBuffer::new();
        let greeting = Greeting {
            version: "5.5.5-10.11.0-fake",
            connection_id: 1,
            scramble: &[7; 20],
            collation: 45,
            status: 2,
            capabilities: CAPABILITIES | capability::CONNECT_WITH_DB,
        };
        handshake::greeting(out.begin(), &greeting);
        out.end();
        stream.write_all(out.bytes()).ok()?;
        self.packet(stream, &mut 1)?;
        out.clear();
        out.set_sequence(2);
        if let Some((number, state, text)) = self.behaviour.refuses {
            response::error(&mut out, number, state, text);
            let _told = stream.write_all(out.bytes());
            return None;
        }
        response::ok(&mut out, &response::Ok::default(), CAPABILITIES);
        stream.write_all(out.bytes()).ok()?;
        self.logged_in = true;
        Some(())
    }
}
