//! A client of the MySQL protocol that waits as a fiber: thousands of connections in one thread,
//! straight code in every one.
//!
//! 1. One command is on its way at a time; its answer is read to the end before the next is sent.
//! 2. A command leaves in one call of the system, and an answer is read where it arrived: rows are
//!    shown to the caller in the buffer, nothing is copied out of it.
//! 3. After [`Failure::Connection`] the connection is of no more use. After [`Failure::Server`] it
//!    is as it was.
//! 4. Affected rows are those changed, not those found: LinkBench's logic rests on 0, 1 and 2.
//!
//! Not supported: compression, results of cursors, LOAD DATA LOCAL.

mod advice;
mod answer;
mod input;
mod link;
mod login;
mod row;
mod rsa;
mod tls;
mod value;

pub use answer::Done;
pub use link::Handle;
pub use row::Row;
pub use tls::{Encryption, Tls};
pub use value::{Value, put_literal};

use input::Input;
use link::Link;
use runtime::net::Address;
use std::fmt::Write;
use std::io;
use std::time::Duration;
use thiserror::Error;
use wire::Fields;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub address: Address,
    /// User name.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Database, or empty.
    pub database: String,
    /// How long an answer may take before the connection is given up.
    pub read_timeout: Duration,
    /// Whether the connection is encrypted.
    pub tls: Tls,
}

/// Why a command has no result.
#[derive(Debug, Error)]
pub enum Failure {
    /// The server's answer is an error.
    #[error("error {number} ({state}): {message}")]
    Server {
        /// Error number.
        number: u16,
        /// SQLSTATE.
        state: String,
        /// Its text.
        message: String,
    },
    /// The connection is broken, or the server does not keep to the protocol.
    #[error("connection: {0}")]
    Connection(#[from] io::Error),
}

impl Failure {
    fn malformed(what: &str) -> Self {
        Self::Connection(io::Error::new(io::ErrorKind::InvalidData, what.to_string()))
    }

    /// Whether the transaction may be tried again: a deadlock or conflict, or a wait for a lock
    /// that took too long.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Server { number: 1205 | 1213 | 1020, .. })
    }
}

impl From<wire::MalformedPacket> for Failure {
    fn from(_: wire::MalformedPacket) -> Self {
        Self::malformed("a packet ends within a field")
    }
}

/// A statement that the server has prepared for one connection, and what both sides know of it.
#[derive(Debug)]
pub struct Prepared {
    id: u32,
    parameters: u16,
    /// Types of the columns of its result, as the server has described them last.
    columns: Vec<u8>,
    /// Types of the values, as the server was told last.
    told: Vec<u8>,
}

/// A logged-in connection.
pub struct Connection {
    link: Link,
    input: Input,
    output: Vec<u8>,
    capabilities: u64,
    /// Types of the columns of the result that is being read; of a prepared statement those that
    /// were known before, until the server describes others.
    types: Vec<u8>,
    read_timeout: Option<Duration>,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(target: &Target) -> Result<Self, Failure> {
        Self::over(Link::open(&target.address)?, target)
    }

    /// The same, but who waits for an answer holds the thread, as in a program with a thread for
    /// each connection. Others of the thread's worker run when nothing comes for some
    /// milliseconds. Over TCP in clear.
    pub fn open_holding(target: &Target) -> Result<Self, Failure> {
        Self::over(Link::open_holding(&target.address)?, target)
    }

    fn over(mut link: Link, target: &Target) -> Result<Self, Failure> {
        let timeout = Some(target.read_timeout);
        link.set_timeouts(timeout, timeout);
        let mut connection = Self {
            link,
            input: Input::default(),
            output: Vec::new(),
            capabilities: 0,
            types: Vec::new(),
            read_timeout: timeout,
        };
        login::login(&mut connection, target)?;
        Ok(connection)
    }

    /// Waits for answers without an end from now on, whatever the target says: who calls this
    /// closes the connection from elsewhere.
    pub fn wait_for_ever(&mut self) {
        self.link.set_timeouts(None, self.read_timeout);
        self.read_timeout = None;
    }

    /// Closes the connection from elsewhere.
    pub fn handle(&self) -> Handle {
        self.link.handle()
    }

    /// Executes a text. Rows of all its results are shown to `each`.
    pub fn query(
        &mut self,
        sql: &str,
        each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        self.begin(COM_QUERY);
        self.output.extend_from_slice(sql.as_bytes());
        self.send()?;
        self.read_answer(false, each)
    }

    /// Executes a text whose rows do not matter.
    pub fn command(&mut self, sql: &str) -> Result<Done, Failure> {
        self.command_bytes(sql.as_bytes())
    }

    /// The same of a text that may hold bytes of no character set.
    pub fn command_bytes(&mut self, sql: &[u8]) -> Result<Done, Failure> {
        self.begin(COM_QUERY);
        self.output.extend_from_slice(sql);
        self.send()?;
        self.read_answer(false, |_| Ok(()))
    }

    /// The first column of the only row of a query, as text.
    pub fn single(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let mut found = None;
        self.query(sql, |row| {
            found = row.text(0).map(|text| String::from_utf8_lossy(&text).into_owned());
            Ok(())
        })?;
        Ok(found)
    }

    /// Prepares a text with `?` for values.
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, Failure> {
        self.begin(COM_STMT_PREPARE);
        self.output.extend_from_slice(sql.as_bytes());
        self.send()?;
        self.read_prepared()
    }

    /// Executes a prepared statement.
    pub fn execute(
        &mut self,
        statement: &mut Prepared,
        values: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        if values.len() != usize::from(statement.parameters) {
            let mut text = String::new();
            let _infallible =
                write!(text, "{} values for {} parameters", values.len(), statement.parameters);
            return Err(Failure::malformed(&text));
        }
        self.begin(COM_STMT_EXECUTE);
        self.output.extend_from_slice(&statement.id.to_le_bytes());
        self.output.push(0);
        self.output.extend_from_slice(&1u32.to_le_bytes());
        value::put_parameters(&mut self.output, values, &mut statement.told);
        self.send()?;
        std::mem::swap(&mut self.types, &mut statement.columns);
        let answered = self.read_answer(true, each);
        std::mem::swap(&mut self.types, &mut statement.columns);
        if answered.is_err() {
            // It may have failed before the server took the types.
            statement.told.clear();
        }
        answered
    }

    /// Executes a text with `?` for values, with the values written into it.
    pub fn execute_text(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        self.begin(COM_QUERY);
        value::put_text(&mut self.output, sql, values)
            .ok_or_else(|| Failure::malformed("as many values as question marks"))?;
        self.send()?;
        self.read_answer(false, each)
    }

    fn begin(&mut self, command: u8) {
        self.output.clear();
        self.output.extend_from_slice(&[0, 0, 0, 0, command]);
    }

    /// Sends what was written after the header's place.
    fn send(&mut self) -> Result<(), Failure> {
        self.send_numbered(0)
    }

    fn send_numbered(&mut self, sequence: u8) -> Result<(), Failure> {
        let length = self.output.len() - wire::PACKET_HEADER_BYTES;
        if length >= wire::PACKET_PAYLOAD_MAX {
            return Err(Failure::malformed("a command of 16 MiB or more"));
        }
        let header = (length as u32 | u32::from(sequence) << 24).to_le_bytes();
        self.output[..wire::PACKET_HEADER_BYTES].copy_from_slice(&header);
        Ok(self.link.write_all(&self.output)?)
    }

    /// The next packet, where it lies.
    fn packet(&mut self) -> Result<std::ops::Range<usize>, Failure> {
        Ok(self.input.packet(&mut self.link, self.read_timeout)?)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.begin(COM_QUIT);
        // The server notices the end of the stream as well.
        let _gone = self.send();
    }
}

/// An error packet's content, after its first byte.
fn server_error(payload: &[u8]) -> Failure {
    let mut fields = Fields(payload);
    let number = fields.u16().unwrap_or(0);
    let mut state = "HY000".to_string();
    if let Some((state_bytes, message)) =
        fields.0.strip_prefix(b"#").and_then(|r| r.split_at_checked(5))
    {
        state = String::from_utf8_lossy(state_bytes).into_owned();
        fields.0 = message;
    }
    Failure::Server { number, state, message: String::from_utf8_lossy(fields.rest()).into_owned() }
}
