//! A small client of the MySQL protocol over the runtime's sockets: login, text queries,
//! prepared statements with the binary protocol.
//!
//! It knows the server only through its socket and is written apart from the `wire` room, so a
//! mistake there does not hide behind its own mirror image.

use runtime::net::{Address, Stream};
use std::io;
use std::time::Duration;

/// LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH.
const CAPABILITIES: u32 = 1 | 1 << 2 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
/// Results end with an OK packet.
const DEPRECATE_EOF: u32 = 1 << 24;
/// An answer that takes longer is a fault: virtual time, far beyond every lock wait.
const ANSWER_LIMIT: Duration = Duration::from_secs(200);

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// The server's error packet.
    Server {
        /// Number.
        code: u16,
        /// Text.
        message: String,
    },
    /// The connection is gone.
    Lost,
    /// The server did not answer, or not in the protocol.
    Broken(String),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Broken("no answer in time".to_owned()),
            _ => Self::Lost,
        }
    }
}

fn broken<T>(what: &str, packet: &[u8]) -> Result<T, ClientError> {
    Err(ClientError::Broken(format!("{what}: {packet:02x?}")))
}

/// One row; every value as text, `None` for NULL.
pub type Row = Vec<Option<String>>;

/// What a statement gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows changed.
    pub affected_rows: u64,
    /// Rows of a result.
    pub rows: Vec<Row>,
}

/// A value for a parameter.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// BIGINT.
    Number(i64),
    /// VARCHAR.
    Text(String),
}

/// A prepared statement.
#[derive(Clone, Copy, Debug)]
pub struct Statement {
    id: u32,
    /// How many `?`.
    pub parameters: usize,
}

/// A connection that is logged in as root.
#[derive(Debug)]
pub struct WireClient {
    stream: Stream,
    input: Vec<u8>,
    sequence: u8,
    deprecate_eof: bool,
    /// Number of the connection, for KILL.
    pub id: u32,
}

/// Reads the fields of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ClientError> {
        if self.0.len() < length {
            return broken("a short packet", self.0);
        }
        let (head, tail) = self.0.split_at(length);
        self.0 = tail;
        Ok(head)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, ClientError> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    fn signed(&mut self, bytes: usize) -> Result<i64, ClientError> {
        let shift = 64 - 8 * bytes as u32;
        Ok(((self.number(bytes)? << shift) as i64) >> shift)
    }

    /// A length-encoded number; `None` for NULL.
    fn length(&mut self) -> Result<Option<u64>, ClientError> {
        Ok(Some(match self.number(1)? {
            0xfb => return Ok(None),
            0xfc => self.number(2)?,
            0xfd => self.number(3)?,
            0xfe => self.number(8)?,
            small => small,
        }))
    }

    fn text(&mut self) -> Result<Option<String>, ClientError> {
        let Some(length) = self.length()? else { return Ok(None) };
        let bytes = self.take(length as usize)?;
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }
}

impl WireClient {
    /// Connects and logs in as root without a password. `deprecate_eof` chooses between the two
    /// ways in which a result can end.
    pub fn connect(address: &Address, deprecate_eof: bool) -> Result<Self, ClientError> {
        let mut stream = runtime::net::connect(address)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT));
        let input = Vec::new();
        let mut client = Self { stream, input, sequence: 0, deprecate_eof, id: 0 };
        let greeting = client.packet()?;
        check_error(&greeting)?;
        let mut fields = Fields(&greeting);
        fields.take(1)?;
        let zero = fields.0.iter().position(|&byte| byte == 0).unwrap_or(0);
        fields.take(zero + 1)?;
        client.id = fields.number(4)? as u32;
        let mut request = Vec::new();
        let flags = CAPABILITIES | if deprecate_eof { DEPRECATE_EOF } else { 0 };
        request.extend_from_slice(&flags.to_le_bytes());
        request.extend_from_slice(&(1u32 << 24).to_le_bytes());
        request.push(45);
        request.extend_from_slice(&[0; 23]);
        request.extend_from_slice(b"root\0\0mysql_native_password\0");
        client.send(&request)?;
        let answer = client.packet()?;
        check_error(&answer)?;
        match answer.first() {
            Some(0) => Ok(client),
            _ => broken("no OK to the login", &answer),
        }
    }

    /// Sends one packet with the next sequence number.
    fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let header = payload.len() as u32 | u32::from(self.sequence) << 24;
        let mut bytes = header.to_le_bytes().to_vec();
        bytes.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        Ok(self.stream.write_all(&bytes)?)
    }

    /// The next packet's payload.
    fn packet(&mut self) -> Result<Vec<u8>, ClientError> {
        loop {
            if let Some(header) = self.input.first_chunk::<4>() {
                let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
                if header[3] != self.sequence {
                    return broken("packets out of order", header);
                }
                if self.input.len() >= 4 + length {
                    self.sequence = self.sequence.wrapping_add(1);
                    let payload = self.input[4..4 + length].to_vec();
                    self.input.drain(..4 + length);
                    return Ok(payload);
                }
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer)? {
                0 => return Err(ClientError::Lost),
                count => self.input.extend_from_slice(&buffer[..count]),
            }
        }
    }

    fn command(&mut self, code: u8, body: &[u8]) -> Result<(), ClientError> {
        if !self.input.is_empty() {
            return broken("bytes behind an answer", &self.input);
        }
        self.sequence = 0;
        self.send(&[&[code], body].concat())
    }

    /// Sends a statement and does not wait for the answer: the connection is dropped after it.
    pub fn send_only(&mut self, sql: &str) -> Result<(), ClientError> {
        self.command(3, sql.as_bytes())
    }

    /// Runs a statement with the text protocol.
    pub fn query(&mut self, sql: &str) -> Result<Answer, ClientError> {
        self.command(3, sql.as_bytes())?;
        self.answer(false)
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement, ClientError> {
        self.command(0x16, sql.as_bytes())?;
        let packet = self.packet()?;
        check_error(&packet)?;
        let mut fields = Fields(&packet);
        fields.take(1)?;
        let id = fields.number(4)? as u32;
        let (columns, parameters) = (fields.number(2)?, fields.number(2)? as usize);
        for definitions in [parameters as u64, columns] {
            for _ in 0..definitions {
                self.packet()?;
            }
            if definitions > 0 && !self.deprecate_eof {
                self.packet()?;
            }
        }
        Ok(Statement { id, parameters })
    }

    /// Runs a prepared statement with the binary protocol.
    pub fn execute(
        &mut self,
        statement: Statement,
        parameters: &[Parameter],
    ) -> Result<Answer, ClientError> {
        let mut body = statement.id.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !parameters.is_empty() {
            body.resize(body.len() + parameters.len().div_ceil(8), 0);
            body.push(1);
            for parameter in parameters {
                let code = if let Parameter::Number(_) = parameter { 8 } else { 253 };
                body.extend_from_slice(&[code, 0]);
            }
        }
        for parameter in parameters {
            match parameter {
                Parameter::Number(number) => body.extend_from_slice(&number.to_le_bytes()),
                Parameter::Text(text) => {
                    body.push(0xfc);
                    body.extend_from_slice(&(text.len() as u16).to_le_bytes());
                    body.extend_from_slice(text.as_bytes());
                }
            }
        }
        self.command(0x17, &body)?;
        self.answer(true)
    }

    /// Runs a statement with the text protocol and hands out each row as it comes.
    pub fn query_each(
        &mut self,
        sql: &str,
        each: &mut dyn FnMut(Row),
    ) -> Result<Answer, ClientError> {
        self.command(3, sql.as_bytes())?;
        self.answer_each(false, each)
    }

    fn answer(&mut self, is_binary: bool) -> Result<Answer, ClientError> {
        let mut rows = Vec::new();
        let answer = self.answer_each(is_binary, &mut |row| rows.push(row))?;
        Ok(Answer { rows, ..answer })
    }

    fn answer_each(
        &mut self,
        is_binary: bool,
        each: &mut dyn FnMut(Row),
    ) -> Result<Answer, ClientError> {
        let first = self.packet()?;
        check_error(&first)?;
        let mut fields = Fields(&first);
        if first.first() == Some(&0) {
            fields.take(1)?;
            let affected_rows = fields.length()?.unwrap_or(0);
            return Ok(Answer { affected_rows, rows: Vec::new() });
        }
        let columns = fields.length()?.unwrap_or(0) as usize;
        let mut types = Vec::with_capacity(columns);
        for _ in 0..columns {
            types.push(column_type(&self.packet()?)?);
        }
        if !self.deprecate_eof {
            self.packet()?;
        }
        loop {
            let packet = self.packet()?;
            check_error(&packet)?;
            // A row longer than 16 MiB does not exist here, so 0xfe always ends the result.
            if packet.first() == Some(&0xfe) {
                return Ok(Answer::default());
            }
            let mut fields = Fields(&packet);
            let row = match is_binary {
                true => binary_row(&mut fields, &types)?,
                false => types.iter().map(|_| fields.text()).collect::<Result<_, _>>()?,
            };
            if !fields.0.is_empty() {
                return broken("bytes behind a row", &packet);
            }
            each(row);
        }
    }
}

fn check_error(packet: &[u8]) -> Result<(), ClientError> {
    if packet.first() != Some(&0xff) {
        return Ok(());
    }
    let mut fields = Fields(&packet[1..]);
    let code = fields.number(2)? as u16;
    let message = String::from_utf8_lossy(fields.0).into_owned();
    Err(ClientError::Server { code, message })
}

/// The type byte of a column definition and its UNSIGNED flag.
fn column_type(packet: &[u8]) -> Result<(u8, bool), ClientError> {
    let mut fields = Fields(packet);
    for _ in 0..6 {
        fields.text()?;
    }
    fields.take(1 + 2 + 4)?;
    let code = fields.number(1)? as u8;
    Ok((code, fields.number(2)? & 32 != 0))
}

fn binary_row(fields: &mut Fields<'_>, types: &[(u8, bool)]) -> Result<Row, ClientError> {
    fields.take(1)?;
    let nulls = fields.take((types.len() + 9) / 8)?;
    let mut row = Row::new();
    for (place, &(code, unsigned)) in types.iter().enumerate() {
        if nulls[(place + 2) / 8] >> ((place + 2) % 8) & 1 == 1 {
            row.push(None);
            continue;
        }
        let bytes = match code {
            1 => 1,
            2 | 13 => 2,
            3 | 9 => 4,
            8 => 8,
            _ => 0,
        };
        row.push(match (bytes, unsigned) {
            (0, _) => fields.text()?,
            (bytes, true) => Some(fields.number(bytes)?.to_string()),
            (bytes, false) => Some(fields.signed(bytes)?.to_string()),
        });
    }
    Ok(row)
}
