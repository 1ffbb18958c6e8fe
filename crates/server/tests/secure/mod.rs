//! A server of its own, and a client that logs in by every plugin, through TLS and compression.
//! The client keeps a trace of what was asked of it.

use crate::common;
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use aws_lc_rs::signature::Ed25519KeyPair;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls::{SupportedProtocolVersion, crypto::aws_lc_rs::default_provider};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;
use wire::caching_sha2;
use wire::handshake::{SCRAMBLE_BYTES, native_password_proof};

/// Only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(120);
const PAYLOAD_MAX: usize = 0xff_ffff;
/// Content of the frames that the client sends: no divisor of anything.
const FRAME_BYTES: usize = 3_000_017;

pub const NATIVE: &str = "mysql_native_password";
pub const SHA2: &str = "caching_sha2_password";
pub const ED25519: &str = "client_ed25519";

pub struct Server {
    child: Child,
    pub port: u16,
    pub directory: PathBuf,
}

impl Server {
    pub fn start(name: &str, options: &[&str]) -> Self {
        let directory = common::fresh_directory(name);
        let (child, port) = common::start_quietly(&directory, options);
        Self { child, port, directory }
    }

    /// The certificate that the server made for itself.
    pub fn certificate(&self) -> PathBuf {
        self.directory.join("server-cert.pem")
    }

    /// Runs statements as root.
    pub fn run(&self, statements: &[&str]) {
        let mut root = Client::log_in(self, &Login::of("root", "")).unwrap();
        for statement in statements {
            assert_eq!(root.answer(statement), "OK", "{statement}");
        }
    }

    pub fn stop(mut self) {
        common::stop(&mut self.child);
        std::fs::remove_dir_all(&self.directory).unwrap();
    }
}

impl Drop for Server {
    /// A test that failed leaves no server behind.
    fn drop(&mut self) {
        common::end(&mut self.child);
    }
}

/// What the client sends where the server asks for the password itself.
#[derive(Clone)]
pub enum Full {
    /// The password: in clear within TLS, else under the server's key.
    Right,
    /// The password under the server's key without its end, which is a zero byte.
    Endless,
    /// These bytes, whatever the server said.
    Bytes(Vec<u8>),
}

/// How a client logs in.
#[derive(Clone)]
pub struct Login {
    pub user: &'static str,
    pub password: &'static str,
    /// The plugin that it begins with.
    pub plugin: &'static str,
    /// A proof in place of the right one.
    pub proof: Option<Vec<u8>>,
    pub full: Full,
    pub tls: Option<Arc<ClientConfig>>,
    pub compress: bool,
}

impl Login {
    pub fn of(user: &'static str, password: &'static str) -> Self {
        let (plugin, proof, full) = (NATIVE, None, Full::Right);
        Self { user, password, plugin, proof, full, tls: None, compress: false }
    }

    pub fn plugin(mut self, plugin: &'static str) -> Self {
        self.plugin = plugin;
        self
    }

    pub fn proof(mut self, proof: Vec<u8>) -> Self {
        self.proof = Some(proof);
        self
    }

    pub fn full(mut self, full: Full) -> Self {
        self.full = full;
        self
    }

    pub fn tls(mut self, tls: &Arc<ClientConfig>) -> Self {
        self.tls = Some(tls.clone());
        self
    }

    pub fn compressed(mut self) -> Self {
        self.compress = true;
        self
    }
}

/// A client's side of TLS that trusts one certificate, and may show one.
pub fn tls_client(
    trusted: &Path,
    versions: &[&'static SupportedProtocolVersion],
    shown: Option<(&Path, &Path)>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
                .unwrap()
        }
    })
}

enum Link {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ClientConnection, TcpStream>>),
    Gone,
}

impl Link {
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        let read = match self {
            Self::Plain(stream) => stream.read_exact(bytes),
            Self::Secure(stream) => stream.read_exact(bytes),
            Self::Gone => panic!("the connection is gone"),
        };
        read.map_err(|error| {
            assert!(error.kind() != std::io::ErrorKind::WouldBlock, "no answer in time");
            format!("closed: {error}")
        })
    }

    /// The server may have closed already; the next read says so.
    fn write(&mut self, bytes: &[u8]) {
        let _written = match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Secure(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Self::Gone => panic!("the connection is gone"),
        };
    }
}

/// The compressed protocol, the client's side.
#[derive(Default)]
struct Frames {
    sequence: u8,
    received: Vec<u8>,
    consumed: usize,
}

pub struct Client {
    link: Link,
    frames: Option<Frames>,
    sequence: u8,
    scramble: [u8; SCRAMBLE_BYTES],
    /// What the server asked for on the way in.
    pub trace: Vec<String>,
}

impl Client {
    /// Connects and logs in; fails with the server's number and text.
    pub fn log_in(server: &Server, login: &Login) -> Result<Self, String> {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let (link, frames, sequence, trace) = (Link::Plain(stream), None, 0, Vec::new());
        let mut client = Self { link, frames, sequence, scramble: [0; SCRAMBLE_BYTES], trace };
        let greeting = client.read()?;
        let after_version = 2 + greeting[1..].iter().position(|byte| *byte == 0).unwrap();
        let fields = &greeting[after_version + 4..];
        client.scramble[..8].copy_from_slice(&fields[..8]);
        client.scramble[8..].copy_from_slice(&fields[27..39]);
        // Protocol 4.1, transactions, secure connection, several results, plugins.
        let mut flags: u32 = 0x000b_a205;
        flags |= if login.compress { 1 << 5 } else { 0 };
        flags |= if login.tls.is_some() { 1 << 11 } else { 0 };
        let mut payload = [flags.to_le_bytes(), (1u32 << 30).to_le_bytes()].concat();
        payload.push(45);
        payload.resize(32, 0);
        if let Some(tls) = &login.tls {
            client.send(&payload);
            client.begin_tls(tls)?;
        }
        let proof = client.proof(login, login.plugin);
        payload.extend_from_slice(login.user.as_bytes());
        payload.extend_from_slice(&[0, proof.len() as u8]);
        payload.extend_from_slice(&proof);
        payload.extend_from_slice(login.plugin.as_bytes());
        payload.push(0);
        client.send(&payload);
        client.authenticate(login)?;
        if login.compress {
            client.frames = Some(Frames::default());
        }
        Ok(client)
    }

    fn begin_tls(&mut self, config: &Arc<ClientConfig>) -> Result<(), String> {
        let Link::Plain(stream) = std::mem::replace(&mut self.link, Link::Gone) else {
            panic!("TLS begins once");
        };
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(config.clone(), name).unwrap();
        let mut secure = StreamOwned::new(connection, stream);
        while secure.conn.is_handshaking() {
            secure.conn.complete_io(&mut secure.sock).map_err(|error| format!("TLS: {error}"))?;
        }
        self.link = Link::Secure(Box::new(secure));
        Ok(())
    }

    fn proof(&self, login: &Login, plugin: &str) -> Vec<u8> {
        if let Some(proof) = &login.proof {
            return proof.clone();
        }
        match (plugin, login.password.as_bytes()) {
            (ED25519, _) | (_, b"") => Vec::new(),
            (NATIVE, password) => native_password_proof(&self.scramble, password).to_vec(),
            (SHA2, password) => caching_sha2::make_proof(&self.scramble, password).to_vec(),
            (other, _) => panic!("unknown plugin {other}"),
        }
    }

    /// Everything between the first proof and OK.
    fn authenticate(&mut self, login: &Login) -> Result<(), String> {
        loop {
            let packet = self.read()?;
            let answer = match packet.split_first().expect("a packet") {
                (0, _) => return Ok(()),
                (0xff, rest) => return Err(error_text(rest)),
                (0xfe, rest) => self.switch(login, rest),
                (1, [caching_sha2::FAST_SUCCESS]) => {
                    self.trace.push("fast".to_owned());
                    continue;
                }
                (1, [caching_sha2::FULL_AUTHENTICATION]) => {
                    self.trace.push("full".to_owned());
                    self.password_in_full(login)
                }
                (1, key) => {
                    self.trace.push("key".to_owned());
                    self.encrypted(login, key)
                }
                (other, _) => panic!("unexpected packet {other:#04x}"),
            };
            self.send(&answer);
        }
    }

    fn switch(&mut self, login: &Login, request: &[u8]) -> Vec<u8> {
        let end = request.iter().position(|byte| *byte == 0).unwrap();
        let plugin = String::from_utf8(request[..end].to_vec()).unwrap();
        let data = &request[end + 1..];
        self.trace.push(plugin.clone());
        if plugin == ED25519 {
            let nonce: &[u8; 32] = data.try_into().expect("a nonce and nothing more");
            return login.proof.clone().unwrap_or_else(|| signature(login.password, nonce));
        }
        self.scramble.copy_from_slice(&data[..SCRAMBLE_BYTES]);
        self.proof(login, &plugin)
    }

    fn password_in_full(&self, login: &Login) -> Vec<u8> {
        match (&login.full, &self.link) {
            (Full::Bytes(bytes), _) => bytes.clone(),
            (Full::Right, Link::Secure(_)) => [login.password.as_bytes(), b"\0"].concat(),
            _ => vec![caching_sha2::REQUEST_PUBLIC_KEY],
        }
    }

    fn encrypted(&self, login: &Login, key: &[u8]) -> Vec<u8> {
        let mut text = login.password.as_bytes().to_vec();
        if !matches!(login.full, Full::Endless) {
            text.push(0);
        }
        caching_sha2::mask(&mut text, &self.scramble);
        let block = pem::parse(key).expect("a key in PEM");
        assert_eq!(block.tag(), "PUBLIC KEY");
        let public = PublicEncryptingKey::from_der(block.contents()).unwrap();
        let public = OaepPublicEncryptingKey::new(public).unwrap();
        let mut room = vec![0; public.ciphertext_size()];
        public.encrypt(&OAEP_SHA1_MGF1SHA1, &text, &mut room, None).unwrap().to_vec()
    }

    /// COM_CHANGE_USER; the proof is made with the greeting's scramble.
    pub fn change_user(&mut self, login: &Login) -> Result<(), String> {
        self.trace.clear();
        let proof = self.proof(login, login.plugin);
        let mut payload = vec![0x11];
        payload.extend_from_slice(login.user.as_bytes());
        payload.extend_from_slice(&[0, proof.len() as u8]);
        payload.extend_from_slice(&proof);
        payload.extend_from_slice(&[0, 45, 0]);
        payload.extend_from_slice(login.plugin.as_bytes());
        payload.push(0);
        self.begin_command();
        self.send(&payload);
        self.authenticate(login)
    }

    fn begin_command(&mut self) {
        self.sequence = 0;
        if let Some(frames) = &mut self.frames {
            assert_eq!(frames.received.len(), frames.consumed, "everything was read");
            *frames = Frames::default();
        }
    }

    fn send(&mut self, payload: &[u8]) {
        let mut packets = Vec::new();
        let mut rest = payload;
        loop {
            let (part, tail) = rest.split_at(rest.len().min(PAYLOAD_MAX));
            packets.extend_from_slice(&part.len().to_le_bytes()[..3]);
            packets.push(self.sequence);
            packets.extend_from_slice(part);
            self.sequence = self.sequence.wrapping_add(1);
            rest = tail;
            if part.len() < PAYLOAD_MAX {
                break;
            }
        }
        match &mut self.frames {
            None => self.link.write(&packets),
            Some(frames) => {
                let framed = frames.put(&packets);
                self.link.write(&framed);
            }
        }
    }

    /// The next packet, put together.
    fn read(&mut self) -> Result<Vec<u8>, String> {
        let mut whole = Vec::new();
        loop {
            let mut header = [0; 4];
            self.receive(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            assert_eq!(header[3], self.sequence, "the server's sequence number");
            self.sequence = self.sequence.wrapping_add(1);
            let start = whole.len();
            whole.resize(start + length, 0);
            self.receive(&mut whole[start..])?;
            if length < PAYLOAD_MAX {
                return Ok(whole);
            }
        }
    }

    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        let Some(frames) = &mut self.frames else {
            return self.link.read(bytes);
        };
        while frames.received.len() - frames.consumed < bytes.len() {
            frames.take(&mut self.link)?;
        }
        let end = frames.consumed + bytes.len();
        bytes.copy_from_slice(&frames.received[frames.consumed..end]);
        frames.consumed = end;
        Ok(())
    }

    /// Runs a statement: the first value of its last row, OK, or the error.
    pub fn answer(&mut self, sql: &str) -> String {
        let value = self.value(sql.as_bytes());
        String::from_utf8(value).unwrap()
    }

    /// Like [`Client::answer`], for statements and values of any size.
    pub fn value(&mut self, sql: &[u8]) -> Vec<u8> {
        self.begin_command();
        self.send(&[&[3][..], sql].concat());
        let first = match self.read() {
            Ok(first) => first,
            Err(closed) => return closed.into_bytes(),
        };
        match first[0] {
            0 => return b"OK".to_vec(),
            0xff => return error_text(&first[1..]).into_bytes(),
            columns => (0..=columns).for_each(|_| drop(self.read().unwrap())),
        }
        let mut last = Vec::new();
        loop {
            let packet = self.read().unwrap();
            if packet[0] == 0xfe && packet.len() < 9 {
                return first_field(&last);
            }
            last = packet;
        }
    }
}

impl Frames {
    /// Frames for packets; every second one goes as it is.
    fn put(&mut self, packets: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, content) in packets.chunks(FRAME_BYTES).enumerate() {
            let as_it_is = number % 2 == 1 || content.len() < 50;
            let shorter = miniz_oxide::deflate::compress_to_vec_zlib(content, 1);
            let (body, length) =
                if as_it_is { (content, 0) } else { (&shorter[..], content.len()) };
            out.extend_from_slice(&body.len().to_le_bytes()[..3]);
            out.push(self.sequence);
            out.extend_from_slice(&length.to_le_bytes()[..3]);
            out.extend_from_slice(body);
            self.sequence = self.sequence.wrapping_add(1);
        }
        out
    }

    fn take(&mut self, link: &mut Link) -> Result<(), String> {
        let mut header = [0; 7];
        link.read(&mut header)?;
        assert_eq!(header[3], self.sequence, "the number of the server's frame");
        self.sequence = self.sequence.wrapping_add(1);
        let three = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]) as usize
        };
        let mut body = vec![0; three(0)];
        link.read(&mut body)?;
        self.received.drain(..self.consumed);
        self.consumed = 0;
        match three(4) {
            0 => self.received.extend_from_slice(&body),
            length => {
                let content = miniz_oxide::inflate::decompress_to_vec_zlib(&body).unwrap();
                assert_eq!(content.len(), length, "the content's length");
                self.received.extend_from_slice(&content);
            }
        }
        Ok(())
    }
}

/// MariaDB's signature: Ed25519's if the password is as long as a seed.
fn signature(password: &str, nonce: &[u8; 32]) -> Vec<u8> {
    let pair = Ed25519KeyPair::from_seed_unchecked(password.as_bytes());
    pair.expect("a password of 32 bytes").sign(nonce).as_ref().to_vec()
}

/// Number and text of an error packet.
fn error_text(packet: &[u8]) -> String {
    let code = u16::from_le_bytes([packet[0], packet[1]]);
    let text = &packet[2..];
    let text = if text.first() == Some(&b'#') { &text[6..] } else { text };
    format!("{code} {}", String::from_utf8_lossy(text))
}

fn first_field(row: &[u8]) -> Vec<u8> {
    let (start, length) = match row[0] {
        0xfb => return b"NULL".to_vec(),
        0xfc => (3, u64::from_le_bytes([row[1], row[2], 0, 0, 0, 0, 0, 0])),
        0xfd => (4, u64::from_le_bytes([row[1], row[2], row[3], 0, 0, 0, 0, 0])),
        0xfe => (9, u64::from_le_bytes(row[1..9].try_into().unwrap())),
        short => (1, u64::from(short)),
    };
    row[start..start + length as usize].to_vec()
}
