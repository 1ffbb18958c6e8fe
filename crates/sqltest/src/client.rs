//! A small blocking client: text protocol, prepared statements, warnings, several results.

use crate::binary::binary_row;
use crate::decode::{done_packet, error_packet, read_column, row_end};
use crate::packet::{self, Fields, protocol_error};
use crate::parameter::{self, Parameter};
use crate::password::native_password;
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const CLIENT_LONG_PASSWORD: u32 = 1;
/// Affected rows of an UPDATE count the rows that matched.
pub const CLIENT_FOUND_ROWS: u32 = 1 << 1;
const CLIENT_LONG_FLAG: u32 = 1 << 2;
const CLIENT_CONNECT_WITH_DB: u32 = 1 << 3;
/// The client sends files for LOAD DATA LOCAL.
pub const CLIENT_LOCAL_FILES: u32 = 1 << 7;
/// Bytes of a packet of such a file.
const LOCAL_PACKET_BYTES: usize = 61;
const CLIENT_PROTOCOL_41: u32 = 1 << 9;
const CLIENT_TRANSACTIONS: u32 = 1 << 13;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
/// One command may carry several statements.
pub const CLIENT_MULTI_STATEMENTS: u32 = 1 << 16;
const CLIENT_MULTI_RESULTS: u32 = 1 << 17;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;
/// The client says who it is.
pub const CLIENT_CONNECT_ATTRS: u32 = 1 << 20;
/// OK packets tell what changed in the session.
pub const CLIENT_SESSION_TRACK: u32 = 1 << 23;
/// Results end with an OK packet, and nothing stands between columns and rows.
pub const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;
const SERVER_MORE_RESULTS_EXISTS: u16 = 8;
const SERVER_STATUS_CURSOR_EXISTS: u16 = 64;

/// Where and as whom to connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// IPv4 address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Database, or empty.
    pub database: String,
    /// Capabilities beyond those of every client.
    pub capabilities: u32,
    /// Collation of the handshake.
    pub collation: u8,
    /// Give up reading after this long.
    pub read_timeout: Duration,
}

impl Options {
    /// root without a password on the loopback.
    pub fn local(port: u16) -> Self {
        Self {
            host: "127.0.0.1".into(),
            port,
            user: "root".into(),
            password: String::new(),
            database: String::new(),
            capabilities: CLIENT_MULTI_STATEMENTS | CLIENT_LOCAL_FILES,
            collation: 45,
            read_timeout: Duration::from_secs(300),
        }
    }
}

/// A column of a result as the server described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Database of the table.
    pub schema: String,
    /// Alias of the table.
    pub table: String,
    /// The table's own name.
    pub org_table: String,
    /// Label.
    pub name: String,
    /// The column's own name.
    pub org_name: String,
    /// Collation number.
    pub collation: u16,
    /// Display length in bytes.
    pub length: u32,
    /// Type code of the protocol.
    pub type_code: u8,
    /// Flag bits.
    pub flags: u16,
    /// Decimals.
    pub decimals: u8,
}

/// The OK packet.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Done {
    /// Affected rows.
    pub affected_rows: u64,
    /// First generated key.
    pub last_insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// Text such as `Rows matched: 1  Changed: 1  Warnings: 0`.
    pub info: String,
    /// What changed in the session, such as `variable autocommit=ON`.
    pub changes: Vec<String>,
}

/// The error packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Number.
    pub code: u16,
    /// SQLSTATE.
    pub state: String,
    /// Text.
    pub message: String,
}

/// One field as text, `None` for NULL.
pub type Field = Option<Vec<u8>>;

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No result set.
    Done(Done),
    /// A result set; the status is that of its end.
    Rows {
        /// Columns.
        columns: Vec<Column>,
        /// Rows in order.
        rows: Vec<Vec<Field>>,
        /// Status flags at the end.
        status: u16,
        /// Number of warnings.
        warnings: u16,
        /// What changed in the session.
        changes: Vec<String>,
    },
    /// Refused.
    Error(ServerError),
}

impl Answer {
    fn rows(columns: Vec<Column>, rows: Vec<Vec<Field>>, end: Done) -> Self {
        let Done { status, warnings, changes, .. } = end;
        Self::Rows { columns, rows, status, warnings, changes }
    }
}

/// A connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    sequence: u8,
    capabilities: u32,
    /// What is sent when the server asks for a file.
    local_file: Vec<u8>,
    /// Version text of the greeting.
    pub server_version: String,
    /// Connection id of the greeting.
    pub id: u32,
}

impl Connection {
    /// Connects and logs in.
    pub fn open(options: &Options) -> io::Result<Self> {
        let stream = TcpStream::connect((options.host.as_str(), options.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(options.read_timeout))?;
        let mut connection = Self {
            stream: BufReader::new(stream),
            sequence: 0,
            capabilities: 0,
            local_file: Vec::new(),
            server_version: String::new(),
            id: 0,
        };
        let greeting = connection.read()?;
        if greeting.first() == Some(&0xff) {
            return Err(io::Error::other(error_packet(&greeting)?.message));
        }
        let mut fields = Fields::new(&greeting);
        fields.take(1)?;
        connection.server_version = String::from_utf8_lossy(fields.zero_terminated()?).into_owned();
        connection.id = fields.integer(4)? as u32;
        let mut scramble = fields.take(8)?.to_vec();
        fields.take(1 + 2 + 1 + 2 + 2 + 1 + 10)?;
        scramble.extend_from_slice(fields.zero_terminated()?);
        connection.log_in(options, &scramble)?;
        Ok(connection)
    }

    fn log_in(&mut self, options: &Options, scramble: &[u8]) -> io::Result<()> {
        let mut flags = CLIENT_LONG_PASSWORD
            | CLIENT_LONG_FLAG
            | CLIENT_PROTOCOL_41
            | CLIENT_TRANSACTIONS
            | CLIENT_SECURE_CONNECTION
            | CLIENT_MULTI_RESULTS
            | CLIENT_PLUGIN_AUTH
            | options.capabilities;
        if !options.database.is_empty() {
            flags |= CLIENT_CONNECT_WITH_DB;
        }
        self.capabilities = flags;
        let mut out = Vec::new();
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&(1u32 << 30).to_le_bytes());
        out.push(options.collation);
        out.extend_from_slice(&[0; 23]);
        out.extend_from_slice(options.user.as_bytes());
        out.push(0);
        let proof = native_password(&options.password, scramble);
        out.push(proof.len() as u8);
        out.extend_from_slice(&proof);
        if !options.database.is_empty() {
            out.extend_from_slice(options.database.as_bytes());
            out.push(0);
        }
        out.extend_from_slice(b"mysql_native_password\0");
        if flags & CLIENT_CONNECT_ATTRS != 0 {
            out.extend_from_slice(b"\x15\x0c_client_name\x07sqltest");
        }
        self.write(&out)?;
        let answer = self.read()?;
        match answer.first() {
            Some(0) => Ok(()),
            Some(0xfe) => {
                let mut fields = Fields::new(&answer[1..]);
                let plugin = fields.zero_terminated()?.to_vec();
                // No password is no proof with any plugin.
                if plugin != b"mysql_native_password" && !options.password.is_empty() {
                    return Err(protocol_error("the server asks for another plugin"));
                }
                let fresh = fields.zero_terminated()?.to_vec();
                self.write(&native_password(&options.password, &fresh))?;
                let answer = self.read()?;
                if answer.first() == Some(&0) {
                    return Ok(());
                }
                Err(io::Error::other(error_packet(&answer)?.message))
            }
            _ => Err(io::Error::other(error_packet(&answer)?.message)),
        }
    }

    /// Sends one text statement (or several, separated by `;`) and reads all answers.
    pub fn query(&mut self, sql: &str) -> io::Result<Vec<Answer>> {
        self.command(3, sql.as_bytes())?;
        let mut answers = Vec::new();
        loop {
            let (answer, more) = self.read_answer(false)?;
            answers.push(answer);
            if !more {
                return Ok(answers);
            }
        }
    }

    /// Sends one statement and returns its only answer.
    pub fn query_one(&mut self, sql: &str) -> io::Result<Answer> {
        let mut answers = self.query(sql)?;
        answers.pop().ok_or_else(|| protocol_error("no answer"))
    }

    /// Sends one statement that must succeed; the rows of its answer, if any.
    pub fn execute(&mut self, sql: &str) -> io::Result<Vec<Vec<Field>>> {
        match self.query_one(sql)? {
            Answer::Done(_) => Ok(Vec::new()),
            Answer::Rows { rows, .. } => Ok(rows),
            Answer::Error(e) => Err(io::Error::other(format!("{sql}: {} {}", e.code, e.message))),
        }
    }

    /// The warnings of the last statement: level, code, text.
    pub fn warnings(&mut self) -> io::Result<Vec<[String; 3]>> {
        let rows = self.execute("SHOW WARNINGS")?;
        let text = |f: &Field| String::from_utf8_lossy(f.as_deref().unwrap_or(b"")).into_owned();
        Ok(rows.iter().map(|r| [text(&r[0]), text(&r[1]), text(&r[2])]).collect())
    }

    /// Prepares a statement: id, number of parameters, result columns.
    pub fn prepare(&mut self, sql: &str) -> io::Result<Result<Prepared, ServerError>> {
        self.command(0x16, sql.as_bytes())?;
        let answer = self.read()?;
        if answer.first() == Some(&0xff) {
            return Ok(Err(error_packet(&answer)?));
        }
        let mut fields = Fields::new(&answer[1..]);
        let id = fields.integer(4)? as u32;
        let column_count = fields.integer(2)? as usize;
        let parameter_count = fields.integer(2)? as usize;
        let parameters = self.read_columns(parameter_count)?.0;
        let columns = self.read_columns(column_count)?.0;
        Ok(Ok(Prepared { id, parameter_count, parameters, columns }))
    }

    /// So many column descriptions, and status and warnings of what ends them for a client that
    /// does not deprecate it.
    fn read_columns(&mut self, count: usize) -> io::Result<(Vec<Column>, Option<Done>)> {
        let mut columns = Vec::with_capacity(count);
        for _ in 0..count {
            let packet = self.read()?;
            columns.push(read_column(&packet)?);
        }
        if count == 0 || self.capabilities & CLIENT_DEPRECATE_EOF != 0 {
            return Ok((columns, None));
        }
        let end = row_end(&self.read()?, false)?;
        Ok((columns, end))
    }

    /// Executes a prepared statement; parameters are sent as strings (NULL where `None`).
    pub fn execute_prepared(
        &mut self,
        statement: &Prepared,
        parameters: &[Option<&[u8]>],
    ) -> io::Result<Answer> {
        let parameters: Vec<Parameter> = parameters.iter().map(|p| Parameter::text(*p)).collect();
        self.execute_typed(statement, 0, &parameters)
    }

    /// Executes a prepared statement; `cursor` 1 asks for a cursor that is read by
    /// [`Connection::fetch`].
    pub fn execute_typed(
        &mut self,
        statement: &Prepared,
        cursor: u8,
        parameters: &[Parameter],
    ) -> io::Result<Answer> {
        let mut out = Vec::new();
        out.extend_from_slice(&statement.id.to_le_bytes());
        out.push(cursor);
        out.extend_from_slice(&1u32.to_le_bytes());
        parameter::put(&mut out, parameters);
        self.command(0x17, &out)?;
        Ok(self.read_answer(true)?.0)
    }

    /// The next rows of a cursor.
    pub fn fetch(&mut self, statement: &Prepared, rows: u32) -> io::Result<Answer> {
        let mut out = statement.id.to_le_bytes().to_vec();
        out.extend_from_slice(&rows.to_le_bytes());
        self.command(0x1c, &out)?;
        let first = self.read()?;
        if first.first() == Some(&0xff) {
            return Ok(Answer::Error(error_packet(&first)?));
        }
        Ok(self.read_rows_from(first, statement.columns.clone(), true)?.0)
    }

    /// Closes a prepared statement; the server does not answer.
    pub fn close_prepared(&mut self, statement: &Prepared) -> io::Result<()> {
        self.command(0x19, &statement.id.to_le_bytes())
    }

    /// Sends a raw command without reading an answer.
    pub fn command(&mut self, command: u8, body: &[u8]) -> io::Result<()> {
        let mut out = Vec::with_capacity(body.len() + 1);
        out.push(command);
        out.extend_from_slice(body);
        self.sequence = 0;
        self.write(&out)
    }

    /// A packet that ends something without rows: EOF, OK or an error.
    pub fn read_end(&mut self, packet: &[u8]) -> io::Result<Answer> {
        let deprecate_eof = self.capabilities & CLIENT_DEPRECATE_EOF != 0;
        match row_end(packet, deprecate_eof)? {
            Some(done) => Ok(Answer::Done(done)),
            None if packet.first() == Some(&0) => done_packet(packet).map(Answer::Done),
            None => error_packet(packet).map(Answer::Error),
        }
    }

    /// The socket, for a caller that goes on by itself; no answer may be outstanding.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// Reads one packet as it comes.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let (sequence, payload) = packet::read_packet(&mut self.stream)?;
        self.sequence = sequence.wrapping_add(1);
        Ok(payload)
    }

    /// Writes raw bytes past all framing, for tests of malformed input.
    pub fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads raw bytes until the server closes.
    pub fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What to send when the server asks for a file, whatever its name is.
    pub fn set_local_file(&mut self, bytes: &[u8]) {
        self.local_file = bytes.to_vec();
    }

    /// Small packets, so that lines and fields begin in one and end in another.
    fn send_local_file(&mut self) -> io::Result<()> {
        let file = std::mem::take(&mut self.local_file);
        for part in file.chunks(LOCAL_PACKET_BYTES) {
            self.write(part)?;
            self.sequence = self.sequence.wrapping_add(1);
        }
        self.local_file = file;
        self.write(&[])
    }

    fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        packet::write_packet(self.stream.get_mut(), self.sequence, payload)
    }

    /// Reads one answer and whether another follows.
    pub fn read_answer(&mut self, binary: bool) -> io::Result<(Answer, bool)> {
        let mut first = self.read()?;
        if first.first() == Some(&0xfb) {
            self.send_local_file()?;
            first = self.read()?;
        }
        match first.first() {
            Some(0) => {
                let done = done_packet(&first)?;
                let more = done.status & SERVER_MORE_RESULTS_EXISTS != 0;
                Ok((Answer::Done(done), more))
            }
            Some(0xff) => Ok((Answer::Error(error_packet(&first)?), false)),
            Some(_) => self.read_rows(&first, binary),
            None => Err(protocol_error("empty packet")),
        }
    }

    fn read_rows(&mut self, first: &[u8], binary: bool) -> io::Result<(Answer, bool)> {
        let count = Fields::new(first).length_encoded()?.unwrap_or(0) as usize;
        let (columns, end) = self.read_columns(count)?;
        if let Some(done) = end.filter(|end| end.status & SERVER_STATUS_CURSOR_EXISTS != 0) {
            return Ok((Answer::rows(columns, Vec::new(), done), false));
        }
        let packet = self.read()?;
        self.read_rows_from(packet, columns, binary)
    }

    fn read_rows_from(
        &mut self,
        mut packet: Vec<u8>,
        columns: Vec<Column>,
        binary: bool,
    ) -> io::Result<(Answer, bool)> {
        let deprecate_eof = self.capabilities & CLIENT_DEPRECATE_EOF != 0;
        let mut rows = Vec::new();
        loop {
            if let Some(done) = row_end(&packet, deprecate_eof)? {
                let more = done.status & SERVER_MORE_RESULTS_EXISTS != 0;
                return Ok((Answer::rows(columns, rows, done), more));
            }
            if packet.first() == Some(&0xff) {
                return Ok((Answer::Error(error_packet(&packet)?), false));
            }
            if binary {
                rows.push(binary_row(&packet, &columns)?);
            } else {
                let mut fields = Fields::new(&packet);
                let mut row = Vec::with_capacity(columns.len());
                for _ in 0..columns.len() {
                    row.push(fields.length_encoded_bytes()?.map(<[u8]>::to_vec));
                }
                rows.push(row);
            }
            packet = self.read()?;
        }
    }
}

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Id at the server.
    pub id: u32,
    /// Number of `?`.
    pub parameter_count: usize,
    /// What the server says of them.
    pub parameters: Vec<Column>,
    /// Result columns.
    pub columns: Vec<Column>,
}
