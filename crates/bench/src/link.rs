//! One connection of the client: logged in, statements prepared, then without blocking.

use crate::answers::{Answers, Ended};
use mio::net::TcpStream;
use sqltest::client::{Connection, Options};
use sqltest::template::{Template, Values};
use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

const COM_QUERY: u8 = 3;
const COM_STMT_EXECUTE: u8 = 0x17;

/// What every connection executes.
pub struct Work {
    /// The statement.
    pub sql: String,
    /// Text instead of prepared.
    pub is_text: bool,
    /// Prepared statements that take turns, all of the same text but for a comment.
    pub statements: u32,
    /// Tables `sbtest1`... that connections take turns with.
    pub tables: u32,
}

/// A connection.
pub struct Link {
    /// The socket.
    pub stream: TcpStream,
    /// When the outstanding statement was sent.
    pub sent: Instant,
    template: Template,
    /// Prepared statements and whether the types of their values are known.
    prepared: Vec<(u32, bool)>,
    turn: usize,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
    /// What has arrived of an answer and is not whole.
    partial: Vec<u8>,
    answers: Answers,
}

impl Link {
    /// Connects and prepares.
    pub fn open(options: &Options, work: &Work, number: u32) -> io::Result<Self> {
        let mut connection = Connection::open(options)?;
        let template = Template::parse(&work.sql, number % work.tables.max(1) + 1)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a template has a bad value"))?;
        let mut prepared = Vec::new();
        for turn in 0..if work.is_text { 0 } else { work.statements } {
            let mut sql = template.to_prepare();
            if turn > 0 {
                sql.push_str(&format!(" /* {turn} */"));
            }
            let answer = connection.prepare(&sql)?;
            let answer = answer.map_err(|e| io::Error::other(format!("{}: {sql}", e.message)))?;
            prepared.push((answer.id, false));
        }
        let stream = connection.into_stream();
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            sent: Instant::now(),
            template,
            prepared,
            turn: 0,
            unsent: Vec::new(),
            partial: Vec::new(),
            answers: Answers::default(),
        })
    }

    /// Sends the next statement.
    pub fn send(&mut self, values: &mut Values, now: Instant) -> io::Result<()> {
        self.sent = now;
        values.advance();
        let out = &mut self.unsent;
        out.clear();
        out.extend_from_slice(&[0; 4]);
        if self.prepared.is_empty() {
            out.push(COM_QUERY);
            self.template.put_text(out, values);
        } else {
            self.turn = (self.turn + 1) % self.prepared.len();
            let (id, are_types_known) = &mut self.prepared[self.turn];
            out.push(COM_STMT_EXECUTE);
            self.template.put_execute(*id, !*are_types_known, out, values);
            *are_types_known = true;
        }
        let length = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        self.flush()
    }

    /// Sends what the socket did not take before.
    pub fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) if count == self.unsent.len() => self.unsent.clear(),
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is there; how the outstanding answer ended if it has. The caller calls again
    /// after the next event: everything that was there has been read.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Ended>> {
        let mut ended = None;
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(ended),
                Err(error) => return Err(error),
            };
            ended = ended.or(self.arrived(&buffer[..count]));
            if count < buffer.len() {
                return Ok(ended);
            }
        }
    }

    fn arrived(&mut self, bytes: &[u8]) -> Option<Ended> {
        if self.partial.is_empty() {
            let (taken, ended) = self.answers.take(bytes);
            self.partial.extend_from_slice(&bytes[taken..]);
            return ended;
        }
        self.partial.extend_from_slice(bytes);
        let (taken, ended) = self.answers.take(&self.partial);
        self.partial.drain(..taken);
        ended
    }
}
