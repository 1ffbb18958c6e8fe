//! TLS by rustls, which takes and gives bytes: waiting is the fiber's.

use runtime::net::Stream;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ciphertext that is read at once.
const RAW_BYTES: usize = 16 * 1024;

/// Whether a connection is encrypted.
#[derive(Clone, Debug, Default)]
pub enum Tls {
    /// No.
    #[default]
    Off,
    /// Yes, or only where the server can.
    On(Encryption),
}

/// How a connection is encrypted.
#[derive(Clone, Debug)]
pub struct Encryption {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    is_required: bool,
}

impl Tls {
    /// Encrypted if the server can; whoever it is.
    pub fn preferred(host: &str) -> Result<Self, String> {
        Self::new(host, None, false)
    }

    /// Encrypted; whoever the server is.
    pub fn required(host: &str) -> Result<Self, String> {
        Self::new(host, None, true)
    }

    /// Encrypted, with a server whose certificate an authority of this file (PEM) vouches for, and
    /// that is of this name.
    pub fn verified(host: &str, authority: &Path) -> Result<Self, String> {
        Self::new(host, Some(authority), true)
    }

    fn new(host: &str, authority: Option<&Path>, is_required: bool) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| format!("'{host}' is no name that a certificate can have"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_details(provider.clone(), Arc::new(Clock))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match authority {
            Some(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
            None => {
                let anybody = Arc::new(Anybody { provider });
                let builder = builder.dangerous().with_custom_certificate_verifier(anybody);
                builder.with_no_client_auth()
            }
        };
        Ok(Self::On(Encryption { config: Arc::new(config), name, is_required }))
    }
}

impl Encryption {
    /// Without it there is no connection.
    pub(super) fn is_required(&self) -> bool {
        self.is_required
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = runtime::fs::read(path).map_err(|error| wrong(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    match roots.is_empty() {
        true => Err(wrong(&"it holds no certificate (PEM)")),
        false => Ok(roots),
    }
}

/// The runtime's wall clock: certificates are judged by the same time as all else.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let micros = u64::try_from(runtime::wall_clock_micros()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_micros(micros)))
    }
}

/// Believes every certificate, and checks that the server has its key.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// An encrypted connection's state.
pub(super) struct Layer {
    connection: Box<ClientConnection>,
    /// Ciphertext that has arrived and was not taken yet.
    raw: Vec<u8>,
    begin: usize,
    end: usize,
    /// Bytes that are decrypted and were not read yet.
    clear: usize,
}

impl Layer {
    /// Agrees with the server.
    pub(super) fn begin(encryption: &Encryption, stream: &mut Stream) -> io::Result<Self> {
        let Encryption { config, name, .. } = encryption;
        let connection =
            ClientConnection::new(config.clone(), name.clone()).map_err(io::Error::other)?;
        let mut layer = Self {
            connection: Box::new(connection),
            raw: vec![0; RAW_BYTES],
            begin: 0,
            end: 0,
            clear: 0,
        };
        layer.flush(stream)?;
        while layer.connection.is_handshaking() {
            layer.fill(stream)?;
            layer.flush(stream)?;
        }
        Ok(layer)
    }

    /// Whether something can be read without waiting.
    pub(super) fn has_more(&self) -> bool {
        self.clear > 0 || self.begin < self.end
    }

    pub(super) fn read(&mut self, stream: &mut Stream, buffer: &mut [u8]) -> io::Result<usize> {
        while self.clear == 0 {
            if !self.fill(stream)? {
                return Ok(0);
            }
            self.flush(stream)?;
        }
        let read = self.connection.reader().read(buffer)?;
        self.clear -= read.min(self.clear);
        Ok(read)
    }

    pub(super) fn write_all(&mut self, stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let taken = self.connection.writer().write(left)?;
            left = &left[taken..];
            self.flush(stream)?;
        }
        Ok(())
    }

    /// Takes what has arrived, waits for it if nothing has; false at the end.
    fn fill(&mut self, stream: &mut Stream) -> io::Result<bool> {
        if self.begin == self.end {
            self.end = stream.read(&mut self.raw)?;
            self.begin = 0;
            if self.end == 0 && self.connection.is_handshaking() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.end == 0 {
                return Ok(false);
            }
        }
        let mut arrived = &self.raw[self.begin..self.end];
        let taken = self.connection.read_tls(&mut arrived)?;
        self.begin += taken;
        let state = self.connection.process_new_packets();
        // What the library says to the server about a failure is worth being sent.
        let state = state.map_err(|error| {
            let _gone = self.flush(stream);
            io::Error::other(format!("TLS: {error}"))
        })?;
        self.clear = state.plaintext_bytes_to_read();
        Ok(self.clear > 0 || !state.peer_has_closed())
    }

    /// Sends what the library has to send.
    fn flush(&mut self, stream: &mut Stream) -> io::Result<()> {
        let mut out = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut out)?;
        }
        if out.is_empty() { Ok(()) } else { stream.write_all(&out) }
    }
}
