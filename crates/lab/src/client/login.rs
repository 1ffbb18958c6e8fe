//! Login with mysql_native_password or, over a connection that needs no encryption, with what the
//! server has in memory of caching_sha2_password.

use super::{Connection, Failure, Target, server_error};
use wire::Fields;
use wire::caching_sha2;
use wire::capability::{
    CONNECT_WITH_DB, DEPRECATE_EOF, MULTI_RESULTS, MULTI_STATEMENTS, PLUGIN_AUTH, PROTOCOL_41,
    SECURE_CONNECTION,
};
use wire::handshake::{NATIVE_PASSWORD, SCRAMBLE_BYTES, native_password_proof};

const CACHING_SHA2: &[u8] = b"caching_sha2_password";
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
    | DEPRECATE_EOF;
const PACKET_MAX_BYTES: u32 = 1 << 24;
const UTF8MB4_GENERAL_CI: u8 = 45;
/// caching_sha2_password: the proof was right.
const FAST_LOGIN: u8 = 3;

struct Greeting {
    version: String,
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
    connection.capabilities = capabilities;
    let plugin =
        if greeting.plugin == CACHING_SHA2 { CACHING_SHA2 } else { NATIVE_PASSWORD }.to_vec();
    let proof = proof(&plugin, &greeting.scramble, target.password.as_bytes())?;
    let out = &mut connection.output;
    out.clear();
    out.extend_from_slice(&[0; wire::PACKET_HEADER_BYTES]);
    out.extend_from_slice(&(capabilities as u32).to_le_bytes());
    out.extend_from_slice(&PACKET_MAX_BYTES.to_le_bytes());
    out.push(UTF8MB4_GENERAL_CI);
    out.extend_from_slice(&[0; 23]);
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
    connection.send_numbered(1)?;
    connection.version = greeting.version;
    finish(connection, target)
}

/// Answers what the server still asks, until it agrees.
fn finish(connection: &mut Connection, target: &Target) -> Result<(), Failure> {
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
                let scramble = fields.array::<SCRAMBLE_BYTES>()?;
                let proof = proof(plugin, &scramble, target.password.as_bytes())?;
                connection.output.clear();
                connection.output.extend_from_slice(&[0; wire::PACKET_HEADER_BYTES]);
                connection.output.extend_from_slice(&proof);
                connection.send_numbered(sequence)?;
            }
            [1, FAST_LOGIN] => {}
            _ => {
                let text = "the server wants the password itself, which needs TLS: log in once \
                            with another client, or use an account with mysql_native_password";
                return Err(Failure::malformed(text));
            }
        }
    }
}

fn read_greeting(payload: &[u8]) -> Result<Greeting, Failure> {
    if let [0xff, rest @ ..] = payload {
        return Err(server_error(rest));
    }
    let mut fields = Fields(payload);
    if fields.u8()? != 10 {
        return Err(Failure::malformed("not the greeting of a MySQL server"));
    }
    let version = String::from_utf8_lossy(fields.zero_ended()?).into_owned();
    fields.u32()?;
    let mut scramble = [0; SCRAMBLE_BYTES];
    scramble[..8].copy_from_slice(fields.take(8)?);
    fields.u8()?;
    let low = fields.u16()?;
    fields.take(3)?;
    let capabilities = u64::from(low) | u64::from(fields.u16()?) << 16;
    fields.take(11)?;
    scramble[8..].copy_from_slice(fields.take(SCRAMBLE_BYTES - 8)?);
    fields.u8()?;
    Ok(Greeting { version, scramble, capabilities, plugin: fields.zero_or_end().to_vec() })
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
