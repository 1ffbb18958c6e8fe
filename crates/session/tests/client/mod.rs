//! A small client of the protocol over the runtime's sockets, for tests. It prints what it
//! receives; it does not interpret more than it must.

use runtime::net::{Address, Stream};
use std::fmt::Write as _;
use wire::Fields;
use wire::binary::type_code;
use wire::capability::{self, status};
use wire::handshake::{SCRAMBLE_BYTES, native_password_proof};

/// A connection.
pub struct Client {
    stream: Stream,
    buffer: Vec<u8>,
    sequence: u8,
    /// Bytes were sent as they are: the server's sequence numbers are not checked.
    raw: bool,
    pub capabilities: u64,
    pub statement: u32,
}

/// What the client says it can, unless a test says otherwise.
pub const CAPABILITIES: u64 = capability::PROTOCOL_41
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | 1;

impl Client {
    /// Connects and takes the greeting; the text is what a refused client sees.
    pub fn connect(address: &Address) -> (Self, Result<[u8; SCRAMBLE_BYTES], String>) {
        let stream = runtime::net::connect(address).expect("the listener is there");
        let buffer = Vec::new();
        let mut client = Self {
            stream,
            buffer,
            sequence: 0,
            raw: true,
            capabilities: CAPABILITIES,
            statement: 0,
        };
        let greeting = match client.packet() {
            Some(payload) if payload[0] == 10 => Ok(scramble(&payload)),
            Some(payload) => Err(client.render_error(&payload)),
            None => Err("closed\n".to_owned()),
        };
        (client, greeting)
    }

    /// Logs in; what the server answers.
    pub fn login(
        &mut self,
        scramble: &[u8; SCRAMBLE_BYTES],
        user: &str,
        password: &str,
        database: &str,
    ) -> String {
        let mut capabilities = self.capabilities;
        if !database.is_empty() {
            capabilities |= capability::CONNECT_WITH_DB;
        }
        let mut payload = (capabilities as u32).to_le_bytes().to_vec();
        payload.extend_from_slice(&(1u32 << 24).to_le_bytes());
        payload.push(45);
        payload.extend_from_slice(&[0; 19]);
        payload.extend_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
        payload.extend_from_slice(user.as_bytes());
        payload.push(0);
        let proof = match password {
            "" => Vec::new(),
            password => native_password_proof(scramble, password.as_bytes()).to_vec(),
        };
        payload.push(proof.len() as u8);
        payload.extend_from_slice(&proof);
        if !database.is_empty() {
            payload.extend_from_slice(database.as_bytes());
            payload.push(0);
        }
        payload.extend_from_slice(b"mysql_native_password\0");
        self.sequence = 1;
        self.send_packet(&payload);
        self.capabilities = capability::negotiate(capabilities);
        self.read_answer()
    }

    /// Sends a command and reads its answer.
    pub fn command(&mut self, payload: &[u8]) -> String {
        self.sequence = 0;
        self.send_packet(payload);
        self.read_answer()
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.raw = true;
        // A server that has closed is seen by the next read.
        let _sent = self.stream.write_all(bytes);
    }

    /// Sends a command that has no answer.
    pub fn send_command(&mut self, payload: &[u8]) {
        self.sequence = 0;
        self.send_packet(payload);
    }

    fn send_packet(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        let mut parts = payload.chunks(wire::PACKET_PAYLOAD_MAX).collect::<Vec<_>>();
        if payload.len().is_multiple_of(wire::PACKET_PAYLOAD_MAX) {
            parts.push(&[]);
        }
        for part in parts {
            let header = part.len() as u32 | u32::from(self.sequence) << 24;
            bytes.extend_from_slice(&header.to_le_bytes());
            bytes.extend_from_slice(part);
            self.sequence = self.sequence.wrapping_add(1);
        }
        self.send(&bytes);
        self.raw = false;
    }

    /// The next packet's payload; none if the server has closed.
    fn packet(&mut self) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            while self.buffer.len() < 4 {
                self.receive()?;
            }
            let length =
                u32::from_le_bytes([self.buffer[0], self.buffer[1], self.buffer[2], 0]) as usize;
            while self.buffer.len() < 4 + length {
                self.receive()?;
            }
            if !self.raw {
                assert_eq!(self.buffer[3], self.sequence, "the server's sequence number");
            }
            self.sequence = self.buffer[3].wrapping_add(1);
            whole.extend(self.buffer.drain(..4 + length).skip(4));
            if length < wire::PACKET_PAYLOAD_MAX {
                return Some(whole);
            }
        }
    }

    fn receive(&mut self) -> Option<()> {
        let mut chunk = vec![0; 65_536];
        match self.stream.read(&mut chunk) {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Some(())
            }
        }
    }

    /// Reads a whole answer, with all its results, and prints it.
    pub fn read_answer(&mut self) -> String {
        let mut text = String::new();
        loop {
            let Some(payload) = self.packet() else {
                return text + "closed\n";
            };
            let more = match payload.first() {
                Some(0x00) => self.render_ok(&payload, &mut text),
                Some(0xff) => {
                    text += &self.render_error(&payload);
                    0
                }
                Some(0xfe) if payload.len() < 9 => self.render_eof(&payload, &mut text),
                Some(0xfe) => {
                    text += "auth switch\n";
                    0
                }
                _ => self.read_result(&payload, false, &mut text),
            };
            if more & status::MORE_RESULTS == 0 {
                return text;
            }
        }
    }

    /// Reads the answer to COM_STMT_PREPARE.
    pub fn read_prepared(&mut self) -> String {
        let Some(payload) = self.packet() else {
            return "closed\n".to_owned();
        };
        if payload[0] == 0xff {
            return self.render_error(&payload);
        }
        let mut fields = Fields(&payload[1..]);
        self.statement = fields.u32().unwrap();
        let (columns, parameters) = (fields.u16().unwrap(), fields.u16().unwrap());
        let mut text = format!("prepared: {parameters} parameters, {columns} columns\n");
        for count in [parameters, columns] {
            for _ in 0..count {
                let column = self.packet().unwrap();
                text += &format!("  {}\n", Column::read(&column).text());
            }
            if count > 0 && self.capabilities & capability::DEPRECATE_EOF == 0 {
                self.packet().unwrap();
            }
        }
        text
    }

    /// Reads the answer to COM_STMT_EXECUTE.
    pub fn read_executed(&mut self) -> String {
        let mut text = String::new();
        let Some(payload) = self.packet() else {
            return "closed\n".to_owned();
        };
        match payload[0] {
            0x00 => {
                self.render_ok(&payload, &mut text);
            }
            0xff => text += &self.render_error(&payload),
            _ => {
                self.read_result(&payload, true, &mut text);
            }
        }
        text
    }

    /// Reads the columns of COM_FIELD_LIST.
    pub fn read_fields(&mut self) -> String {
        let mut text = String::new();
        loop {
            let payload = match self.packet() {
                Some(payload) => payload,
                None => return text + "closed\n",
            };
            match payload[0] {
                0xff => return text + &self.render_error(&payload),
                0xfe if payload.len() < 9 => return text,
                _ => text += &format!("  {}\n", Column::read(&payload).text()),
            }
        }
    }

    /// Reads one packet as it is.
    pub fn read_text(&mut self) -> String {
        self.packet().map_or("closed\n".to_owned(), |p| String::from_utf8_lossy(&p).into_owned())
    }

    /// Reads packets and prints their bytes.
    pub fn read_packets(&mut self, count: usize) -> String {
        let packet = |_| match self.packet() {
            Some(payload) => format!("{}\n", payload.escape_ascii()),
            None => "closed\n".to_owned(),
        };
        (0..count).map(packet).collect()
    }

    fn render_ok(&self, payload: &[u8], text: &mut String) -> u16 {
        let mut fields = Fields(&payload[1..]);
        let (affected, id) = (fields.length().unwrap(), fields.length().unwrap());
        let (flags, warnings) = (fields.u16().unwrap(), fields.u16().unwrap());
        let _ = write!(text, "ok");
        for (name, value) in [("affected", affected), ("id", id), ("warnings", warnings.into())] {
            if value != 0 {
                let _ = write!(text, " {name} {value}");
            }
        }
        if let Ok(info) = fields.bytes()
            && !info.is_empty()
        {
            let _ = write!(text, " '{}'", String::from_utf8_lossy(info));
        }
        if flags & status::SESSION_STATE_CHANGED != 0 {
            let changes = String::from_utf8_lossy(fields.bytes().unwrap()).into_owned();
            let _ = write!(text, " changes {changes:?}");
        }
        let _ = writeln!(text, "{}", flags_text(flags));
        flags
    }

    fn render_eof(&self, payload: &[u8], text: &mut String) -> u16 {
        let mut fields = Fields(&payload[1..]);
        let (warnings, flags) = (fields.u16().unwrap(), fields.u16().unwrap());
        let _ = writeln!(text, "eof warnings {warnings}{}", flags_text(flags));
        flags
    }

    fn render_error(&self, payload: &[u8]) -> String {
        let code = u16::from_le_bytes([payload[1], payload[2]]);
        format!("error {code} {}\n", String::from_utf8_lossy(&payload[3..]))
    }

    fn read_result(&mut self, header: &[u8], binary: bool, text: &mut String) -> u16 {
        let mut fields = Fields(header);
        let count = fields.length().unwrap() as usize;
        let known = fields.u8() == Ok(0);
        let mut columns = Vec::new();
        if known {
            text.push_str("| definitions as before\n");
        } else {
            for _ in 0..count {
                columns.push(Column::read(&self.packet().unwrap()));
            }
            let names: Vec<_> = columns.iter().map(Column::text).collect();
            let _ = writeln!(text, "| {}", names.join(" | "));
        }
        if self.capabilities & capability::DEPRECATE_EOF == 0 {
            self.packet().unwrap();
        }
        loop {
            let row = self.packet().unwrap();
            if row[0] == 0xff {
                *text += &self.render_error(&row);
                return 0;
            }
            if row[0] == 0xfe && row.len() < 0xff_ffff {
                let end = match self.capabilities & capability::DEPRECATE_EOF {
                    0 if row.len() < 9 => self.render_eof(&row, text),
                    0 => 0,
                    _ => {
                        let mut ok = row.clone();
                        ok[0] = 0;
                        self.render_ok(&ok, text)
                    }
                };
                return end;
            }
            let values = if binary { binary_row(&row, &columns) } else { text_row(&row, count) };
            let _ = writeln!(text, "{}", values.join("\t"));
        }
    }
}

fn flags_text(flags: u16) -> String {
    let names = [
        (status::IN_TRANS, "trans"),
        (status::AUTOCOMMIT, "auto"),
        (status::MORE_RESULTS, "more"),
        (status::IN_TRANS_READONLY, "readonly"),
        (status::NO_BACKSLASH_ESCAPES, "nobackslash"),
    ];
    let set: Vec<_> = names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, n)| *n).collect();
    format!(" [{}]", set.join(" "))
}

fn scramble(greeting: &[u8]) -> [u8; SCRAMBLE_BYTES] {
    let version = greeting.iter().position(|byte| *byte == 0).unwrap();
    let first = version + 1 + 4;
    let mut scramble = [0; SCRAMBLE_BYTES];
    scramble[..8].copy_from_slice(&greeting[first..first + 8]);
    let second = first + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 10;
    scramble[8..].copy_from_slice(&greeting[second..second + 12]);
    scramble
}

struct Column {
    name: String,
    code: u8,
    flags: u16,
}

impl Column {
    fn read(payload: &[u8]) -> Self {
        let mut fields = Fields(payload);
        for _ in 0..4 {
            fields.bytes().unwrap();
        }
        let name = String::from_utf8_lossy(fields.bytes().unwrap()).into_owned();
        fields.bytes().unwrap();
        fields.u8().unwrap();
        fields.u16().unwrap();
        fields.u32().unwrap();
        let code = fields.u8().unwrap();
        Self { name, code, flags: fields.u16().unwrap() }
    }

    fn text(&self) -> String {
        format!("{}:{}", self.name, self.code)
    }
}

fn text_row(row: &[u8], count: usize) -> Vec<String> {
    let mut fields = Fields(row);
    (0..count)
        .map(|_| match fields.0.first() {
            Some(0xfb) => {
                fields.u8().unwrap();
                "NULL".to_owned()
            }
            _ => String::from_utf8_lossy(fields.bytes().unwrap()).into_owned(),
        })
        .collect()
}

fn binary_row(row: &[u8], columns: &[Column]) -> Vec<String> {
    let mut fields = Fields(&row[1..]);
    let nulls = fields.take((columns.len() + 9) / 8).unwrap();
    let mut values = Vec::new();
    for (position, column) in columns.iter().enumerate() {
        let bit = position + 2;
        if nulls[bit / 8] & 1 << (bit % 8) != 0 {
            values.push("NULL".to_owned());
            continue;
        }
        let unsigned = column.flags & 32 != 0;
        values.push(match column.code {
            type_code::TINY => (fields.u8().unwrap() as i8).to_string(),
            type_code::SHORT => (fields.u16().unwrap() as i16).to_string(),
            type_code::LONG if unsigned => fields.u32().unwrap().to_string(),
            type_code::LONG => (fields.u32().unwrap() as i32).to_string(),
            type_code::LONGLONG if unsigned => fields.u64().unwrap().to_string(),
            type_code::LONGLONG => (fields.u64().unwrap() as i64).to_string(),
            type_code::DOUBLE => f64::from_le_bytes(fields.array().unwrap()).to_string(),
            type_code::FLOAT => f32::from_le_bytes(fields.array().unwrap()).to_string(),
            _ => String::from_utf8_lossy(fields.bytes().unwrap()).into_owned(),
        });
    }
    values
}
