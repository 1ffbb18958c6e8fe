//! Who is it? The exchange of packets by which a client proves itself to be an account.
//!
//! Invariants:
//! 1. An unknown user and a wrong password are answered alike, and after the same packets as an
//!    account of the default plugin.
//! 2. An account without a password is open to the loopback and the socket only.
//! 3. A password in clear is taken from TLS and UNIX sockets only.
//! 4. What the fast way of caching_sha2_password remembers belongs to the hash that the account
//!    had then: a changed password is asked for again.

use crate::transport::rsa::RsaKey;
use crate::transport::{TlsFacts, ed25519};
use crate::{Identity, ServerState};
use catalog::{Account, Authentication, TlsRequirement, UserPrivileges};
use runtime::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use types::{SqlError, codes};
use wire::OutputBuffer;
use wire::caching_sha2::{self, FAST_SUCCESS, FULL_AUTHENTICATION, REQUEST_PUBLIC_KEY};
use wire::handshake::{self, NATIVE_PASSWORD, SCRAMBLE_BYTES};

/// What passwords are checked with, for all connections.
#[derive(Default)]
pub(crate) struct PasswordCache {
    /// Of accounts with caching_sha2_password: their hash, and SHA256(SHA256(password)).
    fast: Mutex<HashMap<Account, (String, [u8; 32])>>,
    key: OnceLock<Arc<RsaKey>>,
}

impl PasswordCache {
    /// FLUSH PRIVILEGES: every password is asked for in full again.
    pub(crate) fn forget(&self) {
        self.fast.lock().clear();
    }

    fn fast_hash(&self, account: &Account, hash: &str) -> Option<[u8; 32]> {
        let known = self.fast.lock();
        known.get(account).filter(|(of, _)| of == hash).map(|(_, fast)| *fast)
    }

    /// The server's key, made when it is first asked for; `None` if that fails.
    fn key(&self) -> Option<Arc<RsaKey>> {
        if let Some(key) = self.key.get() {
            return Some(key.clone());
        }
        let made = Arc::new(runtime::blocking(RsaKey::generate).ok()?);
        Some(self.key.get_or_init(|| made).clone())
    }
}

/// How a connection is secured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Security {
    /// TLS, and what was agreed on.
    pub(crate) tls: Option<Box<TlsFacts>>,
    /// A UNIX socket.
    pub(crate) is_socket: bool,
}

impl Security {
    /// Nobody on the way reads along.
    pub(crate) fn is_private(&self) -> bool {
        self.tls.is_some() || self.is_socket
    }

    fn fulfills(&self, requirement: TlsRequirement) -> bool {
        match requirement {
            TlsRequirement::Nothing => true,
            TlsRequirement::Tls => self.tls.is_some(),
            TlsRequirement::Certificate => {
                self.tls.as_ref().is_some_and(|tls| tls.client_certificate)
            }
        }
    }
}

/// What the client's next packet is.
enum Stage {
    /// The plugin's proof.
    Proof,
    /// caching_sha2_password: the password, or a request for the key.
    Password,
    /// ed25519: the nonce, signed.
    Signature([u8; ed25519::NONCE_BYTES]),
}

/// What follows a packet.
pub(crate) enum Progress {
    /// It is this account.
    Proved(Arc<UserPrivileges>),
    /// Another packet is needed; what asks for it is written.
    Again,
}

/// One client on its way.
pub(crate) struct Exchange {
    identity: Identity,
    user: Option<Arc<UserPrivileges>>,
    scramble: [u8; SCRAMBLE_BYTES],
    security: Security,
    stage: Stage,
}

fn plugin_of(user: Option<&UserPrivileges>) -> &'static [u8] {
    match user.map(|user| &user.authentication) {
        Some(Authentication::CachingSha2(_)) => caching_sha2::NAME,
        Some(Authentication::Ed25519(_)) => ed25519::NAME,
        _ => NATIVE_PASSWORD,
    }
}

/// 1045.
fn denied(identity: &Identity, has_password: bool) -> SqlError {
    let using = if has_password { "YES" } else { "NO" };
    let arguments: [&dyn std::fmt::Display; 3] = [&identity.user, &identity.host, &using];
    SqlError::new(&codes::ACCESS_DENIED_ERROR, &arguments)
}

/// Some clients end the proof of an empty password with a zero byte.
fn without_end(proof: &[u8]) -> &[u8] {
    if proof == [0] { &[] } else { proof }
}

impl Exchange {
    /// Begins with what the client sent unasked: a proof for the plugin of its choice.
    pub(crate) fn begin(
        server: &ServerState,
        identity: Identity,
        scramble: &[u8; SCRAMBLE_BYTES],
        security: Security,
    ) -> Self {
        let hosts: Vec<&str> = identity.hosts.iter().map(String::as_str).collect();
        let user = server.catalog.find_user(&identity.user, &hosts);
        Self { identity, user, scramble: *scramble, security, stage: Stage::Proof }
    }

    /// Who it says it is.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The first packet; a proof for another plugin is asked for again.
    pub(crate) fn first(
        &mut self,
        server: &ServerState,
        plugin: &[u8],
        proof: &[u8],
        out: &mut OutputBuffer,
    ) -> Result<Progress, SqlError> {
        let wanted = plugin_of(self.user.as_deref());
        let given = if plugin.is_empty() { NATIVE_PASSWORD } else { plugin };
        if wanted == ed25519::NAME {
            let mut nonce = [0; ed25519::NONCE_BYTES];
            runtime::random_bytes(&mut nonce);
            out.begin().push(0xfe);
            out.payload().extend_from_slice(&[wanted, b"\0", &nonce].concat());
            out.end();
            self.stage = Stage::Signature(nonce);
            return Ok(Progress::Again);
        }
        if given != wanted {
            handshake::auth_switch(out.begin(), wanted, &self.scramble);
            out.end();
            return Ok(Progress::Again);
        }
        self.step(server, proof, out)
    }

    /// The next packet.
    pub(crate) fn step(
        &mut self,
        server: &ServerState,
        payload: &[u8],
        out: &mut OutputBuffer,
    ) -> Result<Progress, SqlError> {
        let Some(user) = self.user.clone() else {
            // The same work as for a known user, so that time does not tell them apart.
            let proof = without_end(payload);
            handshake::check_native_password(&self.scramble, &[0; 20], proof);
            return Err(denied(&self.identity, !proof.is_empty()));
        };
        let (proved, has_password) = match (&self.stage, &user.authentication) {
            (Stage::Proof, Authentication::CachingSha2(hash)) => {
                match self.check_fast(server, &user.account, hash, without_end(payload), out) {
                    Some(proved) => (proved, payload.len() > 1),
                    None => return Ok(Progress::Again),
                }
            }
            (Stage::Password, Authentication::CachingSha2(_))
                if payload == [REQUEST_PUBLIC_KEY] =>
            {
                let key = server.passwords.key().ok_or_else(|| denied(&self.identity, true))?;
                handshake::auth_more(out.begin(), key.public_pem().as_bytes());
                out.end();
                return Ok(Progress::Again);
            }
            (Stage::Password, Authentication::CachingSha2(hash)) => {
                (self.check_full(server, &user.account, hash, payload), true)
            }
            (Stage::Signature(nonce), Authentication::Ed25519(key)) => {
                (ed25519::check(key, nonce, payload), !payload.is_empty())
            }
            (_, authentication) => self.check_native(authentication, without_end(payload)),
        };
        if !proved || !self.security.fulfills(user.attributes.tls) {
            return Err(denied(&self.identity, has_password));
        }
        if user.attributes.locked {
            return Err(SqlError::new(&codes::ACCOUNT_HAS_BEEN_LOCKED, &[]));
        }
        Ok(Progress::Proved(user))
    }

    fn check_native(&self, authentication: &Authentication, proof: &[u8]) -> (bool, bool) {
        let proved = match authentication {
            Authentication::NoPassword => proof.is_empty() && self.identity.is_local,
            Authentication::NativePassword(hash) => {
                handshake::check_native_password(&self.scramble, hash, proof)
            }
            _ => false,
        };
        (proved, !proof.is_empty())
    }

    /// caching_sha2_password's first packet; `None` if the password itself is needed.
    fn check_fast(
        &mut self,
        server: &ServerState,
        account: &Account,
        hash: &str,
        proof: &[u8],
        out: &mut OutputBuffer,
    ) -> Option<bool> {
        if proof.is_empty() || hash.is_empty() {
            return Some(proof.is_empty() && hash.is_empty() && self.identity.is_local);
        }
        if proof.len() != caching_sha2::PROOF_BYTES {
            return Some(false);
        }
        let fast = server.passwords.fast_hash(account, hash);
        let proved =
            fast.is_some_and(|fast| caching_sha2::check_proof(&self.scramble, &fast, proof));
        let tell = if proved { FAST_SUCCESS } else { FULL_AUTHENTICATION };
        handshake::auth_more(out.begin(), &[tell]);
        out.end();
        self.stage = Stage::Password;
        proved.then_some(true)
    }

    /// The password: in clear where nobody reads along, else encrypted for the server's key.
    fn check_full(
        &self,
        server: &ServerState,
        account: &Account,
        hash: &str,
        payload: &[u8],
    ) -> bool {
        let is_private = self.security.is_private();
        let key = if is_private { None } else { server.passwords.key() };
        if !is_private && key.is_none() {
            return false;
        }
        let (scramble, hash, sent) = (self.scramble, hash.to_owned(), payload.to_vec());
        let checked = runtime::blocking(move || {
            let clear = match key {
                Some(key) => key.decrypt(&sent).map(|mut clear| {
                    caching_sha2::mask(&mut clear, &scramble);
                    clear
                }),
                None => Some(sent),
            };
            let ended = clear.as_deref().and_then(|clear| clear.strip_suffix(&[0]));
            // What is no password is compared as well, so that it takes the same time.
            let password = ended.unwrap_or_default();
            let fast = caching_sha2::fast_hash(password);
            let matches = caching_sha2::matches_hash(&hash, password);
            (matches && ended.is_some()).then_some((hash, fast))
        });
        let Some(checked) = checked else {
            return false;
        };
        server.passwords.fast.lock().insert(account.clone(), checked);
        true
    }
}
