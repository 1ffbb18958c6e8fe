//! Greeting, login and mysql_native_password.
//!
//! States of a login:
//! 1. The server sends [`greeting`] with a scramble of 20 bytes.
//! 2. A client that wants TLS sends the beginning of its login ([`is_tls_request`]); what follows
//!    is TLS, and within it the login.
//! 3. The client answers with [`LoginRequest`]. If it prepared its proof for another plugin than
//!    its account's, the server sends [`auth_switch`] and the client answers with the bare proof.
//! 4. The server checks the proof ([`check_native_password`], [`crate::caching_sha2`]), which may
//!    take further packets ([`auth_more`]), and answers OK or 1045.

use crate::capability::{
    self, CONNECT_ATTRS, CONNECT_WITH_DB, PLUGIN_AUTH, PLUGIN_AUTH_LENENC, PROTOCOL_41,
    SECURE_CONNECTION,
};
use crate::command::{Fields, MalformedPacket};
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

/// The plugin that the greeting names.
pub const NATIVE_PASSWORD: &[u8] = b"mysql_native_password";
/// Random bytes that the client mixes into its proof. None may be zero or `$`.
pub const SCRAMBLE_BYTES: usize = 20;

/// What the server greets with.
pub struct Greeting<'a> {
    /// `5.5.5-10.11...`: the prefix keeps old replicas from thinking of protocol 10 as theirs.
    pub version: &'a str,
    /// Connection id.
    pub connection_id: u32,
    /// Random bytes.
    pub scramble: &'a [u8; SCRAMBLE_BYTES],
    /// Collation number of the server; the protocol has one byte for it.
    pub collation: u8,
    /// Status flags.
    pub status: u16,
    /// What the server offers.
    pub capabilities: u64,
}

/// Writes the greeting's payload.
pub fn greeting(out: &mut Vec<u8>, greeting: &Greeting<'_>) {
    let capabilities = greeting.capabilities.to_le_bytes();
    out.push(10);
    out.extend_from_slice(greeting.version.as_bytes());
    out.push(0);
    out.extend_from_slice(&greeting.connection_id.to_le_bytes());
    out.extend_from_slice(&greeting.scramble[..8]);
    out.push(0);
    out.extend_from_slice(&capabilities[..2]);
    out.push(greeting.collation);
    out.extend_from_slice(&greeting.status.to_le_bytes());
    out.extend_from_slice(&capabilities[2..4]);
    out.push(SCRAMBLE_BYTES as u8 + 1);
    out.extend_from_slice(&[0; 6]);
    out.extend_from_slice(&capabilities[4..8]);
    out.extend_from_slice(&greeting.scramble[8..]);
    out.push(0);
    out.extend_from_slice(NATIVE_PASSWORD);
    out.push(0);
}

/// Makes random bytes usable as a scramble.
pub fn scramble_from_random(random: [u8; SCRAMBLE_BYTES]) -> [u8; SCRAMBLE_BYTES] {
    random.map(|byte| 33 + byte % 93).map(|byte| if byte == b'$' { b'%' } else { byte })
}

/// A client's answer to the greeting.
#[derive(Debug, PartialEq, Eq)]
pub struct LoginRequest<'a> {
    /// Capabilities in force from now on.
    pub capabilities: u64,
    /// Collation number of the client.
    pub collation: u8,
    /// User name.
    pub user: &'a [u8],
    /// Proof of the password; empty without one.
    pub proof: &'a [u8],
    /// Database; empty if none is asked for.
    pub database: &'a [u8],
    /// Plugin for which the proof was made; empty if the client does not say.
    pub plugin: &'a [u8],
    /// Attributes as sent: names and values with lengths.
    pub attributes: &'a [u8],
}

/// Bytes of a login before the user's name.
const LOGIN_HEAD_BYTES: usize = 32;

/// Whether a first packet asks for TLS: the beginning of a login and nothing more.
pub fn is_tls_request(payload: &[u8]) -> bool {
    let flags = payload.first_chunk().map_or(0, |flags| u32::from_le_bytes(*flags));
    payload.len() == LOGIN_HEAD_BYTES && u64::from(flags) & capability::SSL != 0
}

impl<'a> LoginRequest<'a> {
    /// Reads the payload. Fails for clients older than protocol 4.1.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut fields = Fields(payload);
        let low = fields.u32()?;
        let _packet_bytes_max = fields.u32()?;
        let collation = fields.u8()?;
        fields.take(19)?;
        let high = fields.u32()?;
        let client = u64::from(low) | u64::from(high) << 32;
        if client & PROTOCOL_41 == 0 {
            return Err(MalformedPacket);
        }
        let capabilities = capability::negotiate(client);
        let user = fields.zero_ended()?;
        let proof = if capabilities & PLUGIN_AUTH_LENENC != 0 {
            fields.bytes()?
        } else if capabilities & SECURE_CONNECTION != 0 {
            let length = fields.u8()?;
            fields.take(usize::from(length))?
        } else {
            fields.zero_ended()?
        };
        let database = if capabilities & CONNECT_WITH_DB != 0 { fields.zero_or_end() } else { b"" };
        let plugin = if capabilities & PLUGIN_AUTH != 0 { fields.zero_or_end() } else { b"" };
        let attributes = if capabilities & CONNECT_ATTRS != 0 && !fields.0.is_empty() {
            fields.bytes()?
        } else {
            b""
        };
        Ok(Self { capabilities, collation, user, proof, database, plugin, attributes })
    }
}

/// COM_CHANGE_USER.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// Proof made with the scramble of the greeting.
    pub proof: &'a [u8],
    /// Database; empty if none is asked for.
    pub database: &'a [u8],
    /// Collation number, if sent.
    pub collation: Option<u16>,
    /// Plugin for which the proof was made; empty if the client does not say.
    pub plugin: &'a [u8],
    /// Attributes as sent: names and values with lengths.
    pub attributes: &'a [u8],
}

impl<'a> ChangeUser<'a> {
    /// Reads the payload after the command byte.
    pub fn parse(payload: &'a [u8], capabilities: u64) -> Result<Self, MalformedPacket> {
        let mut fields = Fields(payload);
        let user = fields.zero_ended()?;
        let proof = if capabilities & SECURE_CONNECTION != 0 {
            let length = fields.u8()?;
            fields.take(usize::from(length))?
        } else {
            fields.zero_ended()?
        };
        let database = fields.zero_or_end();
        let collation = if fields.0.is_empty() { None } else { Some(fields.u16()?) };
        let plugin = if capabilities & PLUGIN_AUTH != 0 { fields.zero_or_end() } else { b"" };
        let attributes = match capabilities & CONNECT_ATTRS != 0 && !fields.0.is_empty() {
            true => fields.bytes()?,
            false => b"",
        };
        Ok(Self { user, proof, database, collation, plugin, attributes })
    }
}

/// Writes the request to prove oneself again, with another plugin and its random bytes.
pub fn auth_switch(out: &mut Vec<u8>, plugin: &[u8], scramble: &[u8]) {
    out.push(0xfe);
    out.extend_from_slice(plugin);
    out.push(0);
    out.extend_from_slice(scramble);
    out.push(0);
}

/// Writes what a plugin has to tell between two packets of the client.
pub fn auth_more(out: &mut Vec<u8>, data: &[u8]) {
    out.push(0x01);
    out.extend_from_slice(data);
}

/// One connection attribute after the other: name and value. Ends at the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut fields = Fields(bytes);
    std::iter::from_fn(move || {
        let name = fields.bytes().ok()?;
        Some((name, fields.bytes().ok()?))
    })
}

fn sha1(parts: &[&[u8]]) -> [u8; 20] {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// SHA1(SHA1(password)), as an account stores it.
pub fn native_password_hash(password: &[u8]) -> [u8; 20] {
    sha1(&[&sha1(&[password])])
}

/// Checks a proof: SHA1(password) XOR SHA1(scramble, stored hash). Takes the same time
/// wherever it differs.
pub fn check_native_password(
    scramble: &[u8; SCRAMBLE_BYTES],
    hash: &[u8; 20],
    proof: &[u8],
) -> bool {
    let Ok(proof) = <&[u8; 20]>::try_from(proof) else {
        return false;
    };
    let mut stage = sha1(&[scramble, hash]);
    stage.iter_mut().zip(proof).for_each(|(byte, given)| *byte ^= given);
    let candidate = sha1(&[&stage]);
    candidate.ct_eq(hash).into()
}

/// The proof a client makes; for test clients.
pub fn native_password_proof(scramble: &[u8; SCRAMBLE_BYTES], password: &[u8]) -> [u8; 20] {
    let mut proof = sha1(&[scramble, &native_password_hash(password)]);
    proof.iter_mut().zip(sha1(&[password])).for_each(|(byte, stage)| *byte ^= stage);
    proof
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_has_mariadbs_bytes() {
        let mut out = Vec::new();
        let scramble = b"|n3Ou!>UpT5L[gs/.6ez";
        let version = "5.5.5-10.11.19-MariaDB-0+deb12u1";
        greeting(
            &mut out,
            &Greeting {
                version,
                connection_id: 17,
                scramble,
                collation: 8,
                status: 2,
                capabilities: capability::SERVER,
            },
        );
        // As MariaDB 10.11.19 sent it, but for the extended capabilities.
        let expected = [
            &b"\n5.5.5-10.11.19-MariaDB-0+deb12u1\0\x11\0\0\0|n3Ou!>U\0"[..],
            b"\xfe\xf7\x08\x02\0\xff\x01\x15\0\0\0\0\0\0\x14\0\0\0pT5L[gs/.6ez\0",
            b"mysql_native_password\0",
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn proofs_are_checked() {
        let scramble = scramble_from_random(std::array::from_fn(|i| i as u8 * 13));
        let hash = native_password_hash(b"secret");
        assert_eq!(hash[..4], [0x14, 0xe6, 0x55, 0x67]); // PASSWORD('secret')
        let mut proof = native_password_proof(&scramble, b"secret");
        assert!(check_native_password(&scramble, &hash, &proof));
        proof[19] ^= 1;
        assert!(!check_native_password(&scramble, &hash, &proof));
        assert!(!check_native_password(&scramble, &hash, b""));
    }

    fn login(tail: &[u8]) -> Vec<u8> {
        let flags = (PROTOCOL_41 | SECURE_CONNECTION | CONNECT_WITH_DB | PLUGIN_AUTH) as u32;
        [&flags.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23], tail].concat()
    }

    #[test]
    fn a_login_is_read() {
        let payload = login(b"root\0\x03abcdb\0mysql_native_password\0");
        let request = LoginRequest::parse(&payload).unwrap();
        assert_eq!((request.user, request.proof), (&b"root"[..], &b"abc"[..]));
        assert_eq!((request.database, request.plugin), (&b"db"[..], NATIVE_PASSWORD));
        assert_eq!(request.collation, 45);
    }

    #[test]
    fn a_request_for_tls_is_the_beginning_of_a_login() {
        let payload = login(b"root\0\x00db\0mysql_native_password\0");
        assert!(!is_tls_request(&payload) && !is_tls_request(&payload[..32]));
        let mut request = payload[..32].to_vec();
        request[1] |= 0x08;
        assert!(is_tls_request(&request));
        assert!(!is_tls_request(&request[..31]));
    }

    #[test]
    fn attributes_are_read_as_far_as_they_are_whole() {
        let found: Vec<_> = attributes(b"\x04_pid\x0212\x03_os\x05Linux\x09cut").collect();
        assert_eq!(found, [(&b"_pid"[..], &b"12"[..]), (b"_os", b"Linux")]);
    }

    #[test]
    fn truncated_logins_are_malformed_or_shorter() {
        let payload = login(b"root\0\x03abcdb\0mysql_native_password\0");
        for length in 0..payload.len() {
            if let Ok(request) = LoginRequest::parse(&payload[..length]) {
                assert!(length >= 32 + 5 + 4, "{length} {request:?}");
            }
        }
    }
}
