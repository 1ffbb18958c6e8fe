//! Packets of the server, decoded.

use crate::client::{Column, Done, ServerError};
use crate::packet::{Fields, protocol_error};
use std::io;

const SERVER_SESSION_STATE_CHANGED: u16 = 1 << 14;

/// The OK packet.
pub fn done_packet(packet: &[u8]) -> io::Result<Done> {
    let mut fields = Fields::new(&packet[1..]);
    let mut done = Done {
        affected_rows: fields.length_encoded()?.unwrap_or(0),
        last_insert_id: fields.length_encoded()?.unwrap_or(0),
        status: fields.integer(2)? as u16,
        warnings: fields.integer(2)? as u16,
        info: String::new(),
        changes: Vec::new(),
    };
    if !fields.is_empty() {
        done.info = text(&mut fields)?;
    }
    if done.status & SERVER_SESSION_STATE_CHANGED != 0 && !fields.is_empty() {
        done.changes = session_changes(fields.length_encoded_bytes()?.unwrap_or(b""))?;
    }
    Ok(done)
}

/// What an OK packet tells of the session, as words.
fn session_changes(bytes: &[u8]) -> io::Result<Vec<String>> {
    let mut fields = Fields::new(bytes);
    let mut changes = Vec::new();
    while !fields.is_empty() {
        let kind = fields.integer(1)?;
        let body = fields.length_encoded_bytes()?.unwrap_or(b"");
        if kind == 2 {
            // MariaDB sends it without a length of its own.
            changes.push(format!("state {}", String::from_utf8_lossy(body)));
            continue;
        }
        let mut change = Fields::new(body);
        while !change.is_empty() {
            let first = text(&mut change)?;
            changes.push(match kind {
                0 => format!("variable {first}={}", text(&mut change)?),
                1 => format!("schema {first}"),
                4 => format!("characteristics {first}"),
                5 => format!("transaction {first}"),
                other => format!("kind {other}: {first}"),
            });
        }
    }
    Ok(changes)
}

fn text(fields: &mut Fields<'_>) -> io::Result<String> {
    let bytes = fields.length_encoded_bytes()?.unwrap_or(b"");
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// What this packet says if it ends a result: an EOF packet, or an OK packet with its first byte
/// for a client that deprecates EOF.
pub fn row_end(packet: &[u8], deprecate_eof: bool) -> io::Result<Option<Done>> {
    // A row may begin with the same byte: the length of a field of 16 MiB or more.
    let length_max = if deprecate_eof { 0xff_ffff } else { 9 };
    if packet.first() != Some(&0xfe) || packet.len() >= length_max {
        return Ok(None);
    }
    if deprecate_eof {
        return done_packet(packet).map(Some);
    }
    let mut fields = Fields::new(&packet[1..]);
    let warnings = fields.integer(2)? as u16;
    Ok(Some(Done { status: fields.integer(2)? as u16, warnings, ..Done::default() }))
}

/// The error packet.
pub fn error_packet(packet: &[u8]) -> io::Result<ServerError> {
    if packet.first() != Some(&0xff) {
        return Err(protocol_error("an error packet was expected"));
    }
    let mut fields = Fields::new(&packet[1..]);
    let code = fields.integer(2)? as u16;
    let rest = fields.rest();
    let (state, message) = match rest.split_first() {
        Some((b'#', rest)) if rest.len() >= 5 => rest.split_at(5),
        _ => (&b"HY000"[..], rest),
    };
    Ok(ServerError {
        code,
        state: String::from_utf8_lossy(state).into_owned(),
        message: String::from_utf8_lossy(message).into_owned(),
    })
}

/// A column description.
pub fn read_column(packet: &[u8]) -> io::Result<Column> {
    let mut fields = Fields::new(packet);
    let mut next = || text(&mut fields);
    let (_catalog, schema, table, org_table) = (next()?, next()?, next()?, next()?);
    let (name, org_name) = (next()?, next()?);
    fields.length_encoded()?;
    Ok(Column {
        schema,
        table,
        org_table,
        name,
        org_name,
        collation: fields.integer(2)? as u16,
        length: fields.integer(4)? as u32,
        type_code: fields.integer(1)? as u8,
        flags: fields.integer(2)? as u16,
        decimals: fields.integer(1)? as u8,
    })
}
