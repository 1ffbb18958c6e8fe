//! Logins over TLS and with caching_sha2_password, at a server of which everything is known.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use lab::client::{Connection, Failure, Target, Tls};
use runtime::net::{self, Address, Listener, Next, Stream};
use runtime::sim::{SimConfig, Simulation};
use rustls::crypto::aws_lc_rs as crypto;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::capability::{CONNECT_WITH_DB, PLUGIN_AUTH, PROTOCOL_41, SECURE_CONNECTION, SSL};
use wire::handshake::{self, Greeting};
use wire::{OutputBuffer, caching_sha2, response};

const SCRAMBLE: &[u8; 20] = b"abcdefghijklmnopqrst";
const CAPABILITIES: u64 = PROTOCOL_41 | PLUGIN_AUTH | SECURE_CONNECTION | CONNECT_WITH_DB;
const AUTHORITY: &str = "/authority.pem";
/// Longer than a record of TLS.
const LONG: usize = 100_000;

/// What the server is.
#[derive(Clone)]
struct Behaviour {
    tls: Option<Arc<ServerConfig>>,
    /// Asks for the password itself, as caching_sha2_password does at the first login.
    wants_password: bool,
    key: Arc<PrivateDecryptingKey>,
}

/// A served connection.
struct Served {
    behaviour: Behaviour,
}

/// Bytes of a connection, in clear or not.
struct Pipe<'a> {
    stream: &'a mut Stream,
    tls: Option<ServerConnection>,
    clear: Vec<u8>,
}

impl Pipe<'_> {
    fn flush(&mut self) -> Option<()> {
        let mut out = Vec::new();
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut out).ok()?;
            }
        }
        if out.is_empty() { Some(()) } else { self.stream.write_all(&out).ok() }
    }

    fn fill(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let count = self.stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        let mut arrived = &buffer[..count];
        let Some(tls) = &mut self.tls else {
            self.clear.extend_from_slice(arrived);
            return Some(());
        };
        while !arrived.is_empty() {
            tls.read_tls(&mut arrived).ok()?;
            let state = tls.process_new_packets().ok()?;
            let begin = self.clear.len();
            self.clear.resize(begin + state.plaintext_bytes_to_read(), 0);
            tls.reader().read_exact(&mut self.clear[begin..]).ok()?;
        }
        self.flush()
    }

    /// The next packet without its header.
    fn packet(&mut self) -> Option<Vec<u8>> {
        loop {
            if let [a, b, c, _, ..] = self.clear[..] {
                let end = 4 + usize::from(a) + (usize::from(b) << 8) + (usize::from(c) << 16);
                if self.clear.len() >= end {
                    let packet: Vec<u8> = self.clear.drain(..end).collect();
                    return Some(packet[4..].to_vec());
                }
            }
            self.fill()?;
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        if self.tls.is_none() {
            return self.stream.write_all(bytes).ok();
        }
        let mut left = bytes;
        while !left.is_empty() {
            let count = self.tls.as_mut()?.writer().write(left).ok()?;
            left = &left[count..];
            self.flush()?;
        }
        Some(())
    }

    fn put_packet(&mut self, sequence: u8, payload: &[u8]) -> Option<()> {
        let mut out = OutputBuffer::new();
        out.set_sequence(sequence);
        out.begin().extend_from_slice(payload);
        out.end();
        self.put(out.bytes())
    }
}

impl net::Connection for Served {
    fn run(&mut self, stream: &mut Stream) -> Next {
        let _ended = self.serve(stream);
        Next::Close
    }
}

impl Served {
    fn serve(&mut self, stream: &mut Stream) -> Option<()> {
        let Behaviour { tls, wants_password, key } = self.behaviour.clone();
        let ssl = if tls.is_some() { SSL } else { 0 };
        let mut out = OutputBuffer::new();
        let greeting = Greeting {
            version: "8.0.0-fake",
            connection_id: 1,
            scramble: SCRAMBLE,
            collation: 45,
            status: 2,
            capabilities: CAPABILITIES | ssl,
        };
        handshake::greeting(out.begin(), &greeting);
        out.end();
        let mut pipe = Pipe { stream, tls: None, clear: Vec::new() };
        pipe.put(out.bytes())?;
        let mut login = pipe.packet()?;
        let mut sequence = 2;
        if login.len() == 32 {
            let config = tls.expect("nobody asks for what is not offered");
            pipe.tls = Some(ServerConnection::new(config).expect("a state"));
            login = pipe.packet()?;
            sequence += 1;
        }
        assert!(login.windows(5).any(|name| name == b"bench"), "the login names the user");
        let mut switch = vec![0xfe];
        switch.extend_from_slice(caching_sha2::NAME);
        switch.push(0);
        switch.extend_from_slice(SCRAMBLE);
        switch.push(0);
        pipe.put_packet(sequence, &switch)?;
        let mut proof = pipe.packet()?;
        sequence += 2;
        if wants_password {
            pipe.put_packet(sequence, &[1, caching_sha2::FULL_AUTHENTICATION])?;
            proof = pipe.packet()?;
            sequence += 2;
            if pipe.tls.is_none() {
                assert_eq!(proof, [caching_sha2::REQUEST_PUBLIC_KEY], "never in clear");
                proof = password_by_key(&mut pipe, &mut sequence, &key)?;
            }
            assert_eq!(proof, b"secret\0");
        } else {
            let hash = caching_sha2::fast_hash(b"secret");
            assert!(caching_sha2::check_proof(SCRAMBLE, &hash, &proof));
            pipe.put_packet(sequence, &[1, caching_sha2::FAST_SUCCESS])?;
            sequence += 1;
        }
        let mut out = OutputBuffer::new();
        out.set_sequence(sequence);
        response::ok(&mut out, &response::Ok::default(), CAPABILITIES);
        pipe.put(out.bytes())?;
        // Statements: OK with as many bytes behind it as the statement has.
        loop {
            let statement = pipe.packet()?;
            assert_eq!(statement.len(), LONG + 1);
            let mut out = OutputBuffer::new();
            out.set_sequence(1);
            response::ok(&mut out, &response::Ok::default(), CAPABILITIES);
            pipe.put(out.bytes())?;
        }
    }
}

/// Shows the key; the password that comes back.
fn password_by_key(
    pipe: &mut Pipe<'_>,
    sequence: &mut u8,
    key: &PrivateDecryptingKey,
) -> Option<Vec<u8>> {
    let der: PublicKeyX509Der<'_> = key.public_key().as_der().expect("a key");
    let text = pem::encode(&pem::Pem::new("PUBLIC KEY", der.as_ref()));
    pipe.put_packet(*sequence, &[&[1], text.as_bytes()].concat())?;
    let hidden = pipe.packet()?;
    *sequence += 2;
    let private = OaepPrivateDecryptingKey::new(key.clone()).expect("a key for OAEP");
    let mut room = vec![0; private.min_output_size()];
    let clear = private.decrypt(&OAEP_SHA1_MGF1SHA1, &hidden, &mut room, None).expect("ours");
    let mut password = clear.to_vec();
    caching_sha2::mask(&mut password, SCRAMBLE);
    Some(password)
}

/// A certificate for these names, as a server's configuration and as PEM.
fn certificate(names: &[&str]) -> (Arc<ServerConfig>, String) {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they belong together");
    (Arc::new(config), made.cert.pem())
}

/// Opens a connection to a server and sends it a long statement.
fn open(
    offers_tls: bool,
    wants_password: bool,
    tls: impl FnOnce() -> Result<Tls, String> + Send + 'static,
) -> Result<(), Failure> {
    let mut simulation = Simulation::new(SimConfig::new(1));
    let ended = simulation.run(move || {
        let (config, text) = certificate(&["localhost"]);
        let options = runtime::file::OpenOptions::new().create(true).truncate(true);
        let file = options.open(AUTHORITY).expect("a simulated file");
        file.write_at(text.as_bytes(), 0).expect("written");
        let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).expect("a key");
        let behaviour =
            Behaviour { tls: offers_tls.then_some(config), wants_password, key: Arc::new(key) };
        let address = Address::Tcp(([127, 0, 0, 1], 3306).into());
        let listener = Listener::bind(address.clone()).expect("free");
        let handle =
            net::serve(listener, move |_, _| Box::new(Served { behaviour: behaviour.clone() }));
        let target = Target {
            address,
            user: "bench".into(),
            password: "secret".into(),
            database: "test".into(),
            read_timeout: Duration::from_secs(60),
            tls: tls().expect("a valid wish"),
        };
        let outcome = Connection::open(&target).and_then(|mut connection| {
            connection.command(&"x".repeat(LONG))?;
            connection.command(&"y".repeat(LONG)).map(drop)
        });
        handle.stop();
        outcome
    });
    ended.expect("the simulation ends")
}

#[test]
fn connections_are_encrypted_as_they_are_asked_to_be() {
    open(true, false, || Tls::required("localhost")).expect("encrypted");
    open(true, false, || Tls::preferred("localhost")).expect("encrypted");
    open(false, false, || Tls::preferred("localhost")).expect("in clear");
    open(true, false, || Tls::verified("localhost", Path::new(AUTHORITY))).expect("verified");
    let failure = open(false, false, || Tls::required("localhost")).expect_err("no TLS");
    assert!(failure.to_string().contains("the server offers no TLS"), "{failure}");
}

#[test]
fn a_server_of_another_name_is_refused() {
    let other = || Tls::verified("db.example", Path::new(AUTHORITY));
    let failure = open(true, false, other).expect_err("not this name");
    assert!(failure.to_string().contains("TLS"), "{failure}");
}

#[test]
fn a_password_itself_goes_through_tls_or_hidden_by_the_servers_key() {
    open(true, true, || Tls::required("localhost")).expect("through TLS");
    open(false, true, || Ok(Tls::Off)).expect("hidden");
}
