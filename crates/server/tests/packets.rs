//! Malformed, truncated and oversized packets of every command, before and after login: each is
//! answered or refused, nobody else notices, nothing is lost.

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const CHANGE_USER: u8 = 0x11;
const PREPARE: u8 = 0x16;
/// A server that has not answered after this long does not answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// `max_allowed_packet` of the server under test.
const PACKET_BYTES_MAX: usize = 1 << 20;
const PACKET_TOO_LARGE: u16 = 1153;
const PACKETS_OUT_OF_ORDER: u16 = 1156;

struct Server {
    child: Child,
    port: u16,
    directory: PathBuf,
}

impl Server {
    fn start(directory: PathBuf) -> Self {
        let errors = directory.with_extension("log");
        let errors = std::fs::File::options().create(true).append(true).open(errors).unwrap();
        let limit = format!("max_allowed_packet={PACKET_BYTES_MAX}");
        let (child, port) = common::start(&directory, &["--set", &limit], errors.into());
        Self { child, port, directory }
    }

    fn stop(mut self) -> PathBuf {
        common::stop(&mut self.child);
        self.directory.clone()
    }

    fn connect(&self) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Client { stream };
        assert_eq!(client.read().first(), Some(&10), "the greeting");
        client
    }

    fn log_in(&self, user: &str) -> Client {
        let mut client = self.connect();
        client.send(1, &login(user));
        assert_eq!(client.read().first(), Some(&0), "{user} logs in");
        client
    }
}

/// A login without a password and without a database.
fn login(user: &str) -> Vec<u8> {
    // Long flags, protocol 4.1, transactions, secure connection, plugin authentication.
    let mut bytes = vec![0x05, 0xa2, 0x08, 0x00, 0, 0, 0, 1, 45];
    bytes.extend_from_slice(&[0; 23]);
    bytes.extend_from_slice(user.as_bytes());
    bytes.extend_from_slice(b"\0\0mysql_native_password\0");
    bytes
}

struct Client {
    stream: TcpStream,
}

impl Client {
    fn send(&mut self, sequence: u8, payload: &[u8]) {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(sequence);
        bytes.extend_from_slice(payload);
        self.send_raw(&bytes);
    }

    /// The server may have closed already, which is an answer too.
    fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("an answer in time");
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload).expect("an answer in time");
        payload
    }

    /// Everything up to the end of the connection, which must come.
    fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(e) => panic!("the server neither answers nor closes: {e}"),
        }
        bytes
    }

    /// Runs a statement and returns the values of its last row, or what it answers else.
    fn answer(&mut self, sql: &str) -> String {
        self.send(0, &[&[QUERY][..], sql.as_bytes()].concat());
        let first = self.read();
        match first[0] {
            0 => return "OK".to_owned(),
            0xff => return format!("error {}", u16::from_le_bytes([first[1], first[2]])),
            columns => (0..=columns).for_each(|_| {
                self.read();
            }),
        }
        let mut last = Vec::new();
        loop {
            let packet = self.read();
            if packet[0] == 0xfe && packet.len() < 9 {
                let printable = last.iter().map(|byte| match byte {
                    0x20..0x7f => char::from(*byte),
                    _ => ' ',
                });
                return printable.collect::<String>().trim().to_owned();
            }
            last = packet;
        }
    }
}

/// The code of the last error packet in a stream of packets.
fn last_error(bytes: &[u8]) -> Option<u16> {
    let (mut rest, mut code) = (bytes, None);
    while let Some((header, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let (payload, tail) = tail.split_at_checked(length)?;
        if let [0xff, low, high, ..] = payload {
            code = Some(u16::from_le_bytes([*low, *high]));
        }
        rest = tail;
    }
    code
}

/// A sound body of a command, to be damaged.
fn sound_body(command: u8) -> Vec<u8> {
    match command {
        0x02 => b"p".to_vec(),
        QUERY => b"SELECT COUNT(*), 'a\\'b' FROM p.t WHERE id IN (1, 2) -- end".to_vec(),
        0x04 => b"t\0i%".to_vec(),
        0x05 | 0x06 => b"other".to_vec(),
        CHANGE_USER => b"plain\0\0p\0\x2d\0mysql_native_password\0".to_vec(),
        PREPARE => b"SELECT a, ? FROM p.t WHERE id = ?".to_vec(),
        0x17 => {
            let mut body = vec![1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0xfd, 0, 8, 0, 4];
            body.extend_from_slice(b"text");
            body.extend_from_slice(&7u64.to_le_bytes());
            body
        }
        0x18 => b"\x01\0\0\0\0\0piece".to_vec(),
        0x1c => vec![1, 0, 0, 0, 5, 0, 0, 0],
        _ => vec![1, 0, 0, 0],
    }
}

/// The body cut at every place, with trailing bytes, with extreme bytes, and noise.
fn bodies(command: u8) -> Vec<Vec<u8>> {
    let sound = sound_body(command);
    let mut all: Vec<Vec<u8>> = (0..=sound.len()).map(|length| sound[..length].to_vec()).collect();
    for at in 0..sound.len() {
        for byte in [0, 0xfb, 0xfc, 0xfe, 0xff] {
            let mut damaged = sound.clone();
            damaged[at] = byte;
            all.push(damaged);
        }
    }
    all.push([&sound[..], &sound[..]].concat());
    all.push(vec![0; 5000]);
    all.push(vec![0xff; 5000]);
    let mut state = u64::from(command) + 1;
    for length in [3, 17, 200] {
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        });
        all.push(noise.take(length).collect());
    }
    all
}

/// Sends every body of a command, each followed by a question; every question is answered unless
/// the command closes the connection.
fn damage_command(server: &Server, command: u8) {
    let prepare = [&[PREPARE][..], &sound_body(PREPARE)].concat();
    let closes = matches!(command, QUIT | CHANGE_USER);
    let all = bodies(command);
    let connections: Vec<&[Vec<u8>]> = all.chunks(if closes { 1 } else { 64 }).collect();
    for bodies in connections {
        let mut client = server.log_in("plain");
        client.send(0, &prepare);
        for (number, body) in bodies.iter().enumerate() {
            client.send(0, &[&[command][..], body].concat());
            let question = format!("SELECT 'question {number} after'");
            client.send(0, &[&[QUERY][..], question.as_bytes()].concat());
        }
        client.send(0, &[QUIT]);
        let answers = client.rest();
        let mut from = 0;
        for (number, body) in bodies.iter().enumerate() {
            let wanted = format!("question {number} after");
            let wanted = wanted.as_bytes();
            let found = answers[from..].windows(wanted.len()).rposition(|part| part == wanted);
            match found {
                Some(at) => from += at,
                None => assert!(closes, "command {command:#04x} with {body:?} ends the answers"),
            }
        }
    }
}

/// Framing that cannot be followed is refused, after login.
fn damage_framing(server: &Server) {
    let refused = |bytes: &[u8], code: u16| {
        let mut client = server.log_in("plain");
        client.send_raw(bytes);
        assert_eq!(last_error(&client.rest()), Some(code), "{bytes:?}");
    };
    refused(b"\x01\0\0\x05\x0e", PACKETS_OUT_OF_ORDER);
    refused(b"\xff\xff\xff\0\x03SELECT", PACKET_TOO_LARGE);
    let too_large = PACKET_BYTES_MAX as u32 + 1;
    refused(&[&too_large.to_le_bytes()[..3], &[0, QUERY]].concat(), PACKET_TOO_LARGE);
    // The largest packet there may be is answered.
    let mut client = server.log_in("plain");
    let text = format!("SELECT 1 -- {}", "x".repeat(PACKET_BYTES_MAX - 13));
    assert_eq!(client.answer(&text), "1");
    // An empty packet names no command; then a packet that never arrives whole.
    client.send(0, &[]);
    assert_eq!(client.read().first(), Some(&0xff));
    assert_eq!(client.answer("SELECT 2"), "2");
    client.send_raw(b"\x40\0\0\0\x03DELETE FROM p.t");
    drop(client);
}

/// What a stranger sends instead of a login.
fn damage_logins(server: &Server) {
    let sound = login("plain");
    let mut packets: Vec<Vec<u8>> = (0..sound.len()).map(|at| sound[..at].to_vec()).collect();
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] = 0xff;
        packets.push(damaged);
    }
    packets.extend((0..=255).map(|command| [&[command][..], &sound_body(command)].concat()));
    packets.push(b"\x03DELETE FROM p.t".to_vec());
    packets.push(vec![0xff; 65_536]);
    for packet in packets {
        let mut client = server.connect();
        client.send(1, &packet);
        // If it was accepted as a login, the connection ends here; if not, it has ended.
        client.send(0, &[QUIT]);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        client.rest();
    }
    let mut client = server.connect();
    client.send_raw(b"\x01\0\x01\x01");
    assert_eq!(last_error(&client.rest()), Some(PACKET_TOO_LARGE));
    let mut client = server.connect();
    client.send(7, &sound);
    assert_eq!(last_error(&client.rest()), Some(PACKETS_OUT_OF_ORDER));
}

/// A stranger who says nothing, and one who says very little at a time, are sent away.
fn dawdle(server: &Server) -> Vec<std::thread::JoinHandle<Vec<u8>>> {
    let silent = server.connect();
    let slow = server.connect();
    let mut feeder = slow.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        for byte in [64u8, 0, 0, 1].into_iter().chain(std::iter::repeat_n(1, 60)) {
            if feeder.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    [silent, slow].map(|client| std::thread::spawn(move || client.rest())).into()
}

#[test]
fn damaged_packets_of_every_command_are_answered_or_refused() {
    let directory = std::env::temp_dir().join(format!("gannet-packets-{}", std::process::id()));
    // Left over from an interrupted run, or not there.
    let _ = std::fs::remove_dir_all(&directory);
    let log = directory.with_extension("log");
    let _ = std::fs::remove_file(&log);
    let server = Server::start(directory);
    let dawdlers = dawdle(&server);
    let mut root = server.log_in("root");
    for statement in [
        "CREATE DATABASE p",
        "CREATE TABLE p.t (id INT PRIMARY KEY, a VARCHAR(50), KEY a_key (a))",
        "INSERT INTO p.t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        "CREATE USER plain@localhost",
        "GRANT SELECT ON p.* TO plain@localhost",
    ] {
        assert_eq!(root.answer(statement), "OK", "{statement}");
    }
    // Somebody in the middle of a transaction, all the time.
    let mut bystander = server.log_in("root");
    assert_eq!(bystander.answer("BEGIN"), "OK");
    assert_eq!(bystander.answer("INSERT INTO p.t VALUES (4, 'four')"), "OK");
    for command in 0..=255 {
        damage_command(&server, command);
    }
    damage_framing(&server);
    damage_logins(&server);
    for dawdler in dawdlers {
        dawdler.join().expect("sent away");
    }
    assert_eq!(bystander.answer("COMMIT"), "OK");
    let state = "SELECT CONCAT_WS(',', COUNT(*), SUM(id), MIN(a), MAX(a)) FROM p.t";
    assert_eq!(root.answer(state), "4,10,four,two");
    assert!(root.answer("CHECK TABLE p.t").contains("OK"));
    let directory = server.stop();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(!said.contains("internal error") && !said.contains("panicked"), "{said}");

    let server = Server::start(directory);
    assert_eq!(server.log_in("plain").answer(state), "4,10,four,two");
    let directory = server.stop();
    let mut check = Command::new(env!("CARGO_BIN_EXE_gannet"));
    let found = check.args(["check", "--datadir"]).arg(&directory).output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stdout));
    std::fs::remove_dir_all(directory).unwrap();
    std::fs::remove_file(log).unwrap();
}
