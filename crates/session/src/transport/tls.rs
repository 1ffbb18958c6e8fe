//! TLS by rustls: the server's certificate, and one connection's state.

use super::certificate;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::io::{self, Read, Write};
use std::sync::Arc;
use thiserror::Error;

/// The certificate or the key cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("'{path}': {error}")]
    File {
        /// Which.
        path: String,
        /// The system's words.
        error: io::Error,
    },
    /// A file has not what it should have.
    #[error("'{path}' holds no {what}")]
    Content {
        /// Which.
        path: String,
        /// A certificate, a key.
        what: &'static str,
    },
    /// The library refuses the combination.
    #[error("{0}")]
    Refused(String),
}

/// Where certificate and key come from.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// `ssl_cert`: the server's certificate and those between it and the root.
    pub certificate: String,
    /// `ssl_key`.
    pub key: String,
    /// `ssl_ca`: who signs clients' certificates; empty for nobody.
    pub authority: String,
    /// `tls_version`, a list.
    pub versions: String,
}

/// What all TLS connections share.
pub struct TlsServer {
    config: Arc<ServerConfig>,
}

/// What two ends agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFacts {
    /// `TLSv1.3`.
    pub(crate) version: &'static str,
    /// Name of the cipher suite as OpenSSL writes it.
    pub(crate) cipher: String,
    /// The client has shown a certificate that `ssl_ca` vouches for.
    pub(crate) client_certificate: bool,
}

fn read(path: &str) -> Result<Vec<u8>, TlsError> {
    runtime::fs::read(path).map_err(|error| TlsError::File { path: path.to_owned(), error })
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let lacking = || TlsError::Content { path: path.to_owned(), what: "certificate" };
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    found.ok().filter(|list| !list.is_empty()).ok_or_else(lacking)
}

impl TlsServer {
    /// Reads certificate and key.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let refused = |error: &dyn std::fmt::Display| TlsError::Refused(error.to_string());
        let chain = certificates(&files.certificate)?;
        let lacking = |_| TlsError::Content { path: files.key.clone(), what: "key" };
        let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(lacking)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
        for (name, version) in [("TLSv1.2", &TLS12), ("TLSv1.3", &TLS13)] {
            if files.versions.split(',').any(|wanted| wanted.trim().eq_ignore_ascii_case(name)) {
                versions.push(version);
            }
        }
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|error| refused(&error))?;
        let builder = match files.authority.as_str() {
            "" => builder.with_no_client_auth(),
            path => {
                let mut roots = RootCertStore::empty();
                for root in certificates(path)? {
                    roots.add(root).map_err(|error| refused(&error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .allow_unauthenticated()
                    .build()
                    .map_err(|error| refused(&error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| refused(&error))?;
        Ok(Self { config: Arc::new(config) })
    }

    /// The files in a data directory, made if they are not there.
    pub fn generate(directory: &str, host: &str) -> Result<TlsFiles, TlsError> {
        certificate::find_or_make(directory, host)
    }

    pub(super) fn accept(&self) -> io::Result<TlsLayer> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        Ok(TlsLayer { connection: Box::new(connection) })
    }
}

/// One connection.
pub(super) struct TlsLayer {
    connection: Box<ServerConnection>,
}

impl TlsLayer {
    /// Decrypts what came; false if the other side has ended the session.
    pub(super) fn take(&mut self, mut bytes: &[u8], clear: &mut Vec<u8>) -> io::Result<bool> {
        let mut open = true;
        while !bytes.is_empty() {
            if self.connection.read_tls(&mut bytes)? == 0 {
                break;
            }
            let state = self.connection.process_new_packets().map_err(io::Error::other)?;
            let start = clear.len();
            clear.resize(start + state.plaintext_bytes_to_read(), 0);
            self.connection.reader().read_exact(&mut clear[start..])?;
            open &= !state.peer_has_closed();
        }
        Ok(open)
    }

    /// Appends what the library itself has to send.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(out)?;
        }
        Ok(())
    }

    /// Encrypts.
    pub(super) fn put(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.connection.writer().write(bytes)?;
            bytes = &bytes[count..];
            self.flush(out)?;
        }
        Ok(())
    }

    /// Ends the session.
    pub(super) fn farewell(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.connection.send_close_notify();
        self.flush(out)
    }

    pub(super) fn facts(&self) -> Option<TlsFacts> {
        let suite = self.connection.negotiated_cipher_suite()?.suite();
        let version = match self.connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            _ => "TLSv1.3",
        };
        Some(TlsFacts {
            version,
            cipher: cipher_name(suite.as_str().unwrap_or_default()),
            client_certificate: self.connection.peer_certificates().is_some(),
        })
    }
}

/// OpenSSL's name of a suite: those of TLS 1.3 are called as in the standard, those of 1.2 by
/// their parts with hyphens.
fn cipher_name(standard: &str) -> String {
    match standard.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => standard
            .trim_start_matches("TLS_")
            .replace("_WITH_", "-")
            .replace("AES_128", "AES128")
            .replace("AES_256", "AES256")
            .replace("POLY1305_SHA256", "POLY1305")
            .replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_are_named_as_openssl_does() {
        for (standard, name) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(cipher_name(standard), name);
        }
    }
}
