//! Login with mysql_native_password or caching_sha2_password; a password itself goes over TLS or a
//! UNIX socket as it is, and else encrypted with the key that the server shows.

use super::{Connection, Failure, Target, Tls, rsa, server_error};
use runtime::net::Address;
use wire::Fields;
use wire::caching_sha2;
use wire::capability::{
    CACHE_METADATA, CONNECT_WITH_DB, DEPRECATE_EOF, MULTI_RESULTS, MULTI_STATEMENTS, PLUGIN_AUTH,
    PROTOCOL_41, SECURE_CONNECTION, SSL,
};
use wire::handshake::{NATIVE_PASSWORD, SCRAMBLE_BYTES, native_password_proof};

const CACHING_SHA2: &[u8] = b"caching_sha2_password";
/// What MySQL offers and MariaDB does not: its absence says that there are flags above 32.
const LONG_PASSWORD: u64 = 1;
const LONG_FLAG: u64 = 1 << 2;
const TRANSACTIONS: u64 = 1 << 13;
const WANTED: u64 = LONG_PASSWORD
    | LONG_FLAG
    | TRANSACTIONS
    | PROTOCOL_41
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PLUGIN_AUTH
    | DEPRECATE_EOF
    | CACHE_METADATA;
const PACKET_MAX_BYTES: u32 = 1 << 24;
const UTF8MB4_GENERAL_CI: u8 = 45;
/// caching_sha2_password: the proof was right; the password itself is wanted; the server's key is.
const FAST_LOGIN: u8 = caching_sha2::FAST_SUCCESS;
const WHOLE_LOGIN: u8 = caching_sha2::FULL_AUTHENTICATION;
const KEY_BEGIN: u8 = b'-';

struct Greeting {
    scramble: [u8; SCRAMBLE_BYTES],
    capabilities: u64,
    plugin: Vec<u8>,
}

pub(super) fn login(connection: &mut Connection, target: &Target) -> Result<(), Failure> {
    let packet = connection.packet()?;
    let greeting = read_greeting(&connection.input.bytes()[packet])?;
    let mut capabilities = WANTED & greeting.capabilities;
    if !target.database.is_empty() {
        capabilities |= CONNECT_WITH_DB;
    }
    let mut sequence = 1;
    if let Tls::On(encryption) = &target.tls {
        if greeting.capabilities & SSL != 0 {
            capabilities |= SSL;
            begin(&mut connection.output, capabilities);
            connection.send_numbered(sequence)?;
            connection.link.encrypt(encryption)?;
            sequence += 1;
        } else if encryption.is_required() {
            return Err(Failure::malformed(
                "the server offers no TLS: give it a certificate, or leave out tls= in the DSN",
            ));
        }
    }
    connection.capabilities = capabilities;
    let plugin =
        if greeting.plugin == CACHING_SHA2 { CACHING_SHA2 } else { NATIVE_PASSWORD }.to_vec();
    let proof = proof(&plugin, &greeting.scramble, target.password.as_bytes())?;
    let out = &mut connection.output;
    begin(out, capabilities);
    out.extend_from_slice(target.user.as_bytes());
    out.push(0);
    out.push(proof.len() as u8);
    out.extend_from_slice(&proof);
    if !target.database.is_empty() {
        out.extend_from_slice(target.database.as_bytes());
        out.push(0);
    }
    out.extend_from_slice(&plugin);
    out.push(0);
    connection.send_numbered(sequence)?;
    finish(connection, target, greeting.scramble)
}

/// What a login and the wish for TLS begin with.
fn begin(out: &mut Vec<u8>, capabilities: u64) {
    out.clear();
    out.extend_from_slice(&[0; wire::PACKET_HEADER_BYTES]);
    out.extend_from_slice(&(capabilities as u32).to_le_bytes());
    out.extend_from_slice(&PACKET_MAX_BYTES.to_le_bytes());
    out.push(UTF8MB4_GENERAL_CI);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&((capabilities >> 32) as u32).to_le_bytes());
}

/// Answers what the server still asks, until it agrees.
fn finish(
    connection: &mut Connection,
    target: &Target,
    mut scramble: [u8; SCRAMBLE_BYTES],
) -> Result<(), Failure> {
    let is_private = connection.link.is_encrypted() || matches!(target.address, Address::Unix(_));
    loop {
        let packet = connection.packet()?;
        let sequence = connection.input.sequence(&packet).wrapping_add(1);
        let payload = &connection.input.bytes()[packet];
        match payload {
            [0, ..] => return Ok(()),
            [0xff, rest @ ..] => return Err(server_error(rest)),
            [0xfe, rest @ ..] => {
                let mut fields = Fields(rest);
                let plugin = fields.zero_ended()?;
                scramble = fields.array::<SCRAMBLE_BYTES>()?;
                let proof = proof(plugin, &scramble, target.password.as_bytes())?;
                answer(connection, sequence, &proof)?;
            }
            [1, FAST_LOGIN] => {}
            [1, WHOLE_LOGIN] if is_private => {
                let password = [target.password.as_bytes(), &[0]].concat();
                answer(connection, sequence, &password)?;
            }
            [1, WHOLE_LOGIN] => {
                answer(connection, sequence, &[caching_sha2::REQUEST_PUBLIC_KEY])?;
            }
            [1, key @ ..] if key.first() == Some(&KEY_BEGIN) => {
                let mut password = [target.password.as_bytes(), &[0]].concat();
                caching_sha2::mask(&mut password, &scramble);
                let hidden = rsa::encrypted(key, &password).map_err(|why| {
                    Failure::malformed(&format!("the server's key for passwords: {why}"))
                })?;
                answer(connection, sequence, &hidden)?;
            }
            _ => return Err(Failure::malformed("a login that goes on in an unknown way")),
        }
    }
}

fn answer(connection: &mut Connection, sequence: u8, bytes: &[u8]) -> Result<(), Failure> {
    connection.output.clear();
    connection.output.extend_from_slice(&[0; wire::PACKET_HEADER_BYTES]);
    connection.output.extend_from_slice(bytes);
    connection.send_numbered(sequence)
}

fn read_greeting(payload: &[u8]) -> Result<Greeting, Failure> {
    if let [0xff, rest @ ..] = payload {
        return Err(server_error(rest));
    }
    let mut fields = Fields(payload);
    if fields.u8()? != 10 {
        return Err(Failure::malformed("not the greeting of a MySQL server"));
    }
    let _version = fields.zero_ended()?;
    fields.u32()?;
    let mut scramble = [0; SCRAMBLE_BYTES];
    scramble[..8].copy_from_slice(fields.take(8)?);
    fields.u8()?;
    let low = fields.u16()?;
    fields.take(3)?;
    let mut capabilities = u64::from(low) | u64::from(fields.u16()?) << 16;
    fields.take(7)?;
    let above = u64::from(fields.u32()?) << 32;
    if capabilities & LONG_PASSWORD == 0 {
        capabilities |= above;
    }
    scramble[8..].copy_from_slice(fields.take(SCRAMBLE_BYTES - 8)?);
    fields.u8()?;
    Ok(Greeting { scramble, capabilities, plugin: fields.zero_or_end().to_vec() })
}

fn proof(
    plugin: &[u8],
    scramble: &[u8; SCRAMBLE_BYTES],
    password: &[u8],
) -> Result<Vec<u8>, Failure> {
    if password.is_empty() {
        return Ok(Vec::new());
    }
    match plugin {
        NATIVE_PASSWORD => Ok(native_password_proof(scramble, password).to_vec()),
        CACHING_SHA2 => Ok(caching_sha2::make_proof(scramble, password).to_vec()),
        other => {
            let name = String::from_utf8_lossy(other);
            Err(Failure::malformed(&format!("the account's plugin {name} is not supported")))
        }
    }
}
