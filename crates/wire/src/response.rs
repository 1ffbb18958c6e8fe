//! OK, ERR and EOF packets, column definitions and result headers.

use crate::OutputBuffer;
use crate::capability::{CACHE_METADATA, DEPRECATE_EOF, SESSION_TRACK, status};
use crate::output::{put_bytes, put_length};

/// What an OK packet says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ok<'a> {
    /// Rows changed (or found, as the client asked).
    pub affected_rows: u64,
    /// First AUTO_INCREMENT value made by the statement.
    pub last_insert_id: u64,
    /// Status flags.
    pub status: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// `Rows matched: 1  Changed: 1  Warnings: 0`; usually empty.
    pub info: &'a str,
    /// Session state that changed, as [`SessionChange::put`] wrote it; with none the flag that
    /// announces it is not set.
    pub changes: Option<&'a [u8]>,
}

/// A change of session state told in an OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange<'a> {
    /// A variable has a new value.
    Variable(&'a str, &'a str),
    /// The default database is another.
    Schema(&'a str),
    /// Something that a new connection would not have.
    State,
    /// How a transaction like the present one is begun: statements.
    TransactionCharacteristics(&'a str),
    /// What the transaction has done: eight letters.
    TransactionState(&'a str),
}

impl SessionChange<'_> {
    /// Appends the change.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = match self {
            Self::Variable(name, value) => {
                put_bytes(&mut body, name.as_bytes());
                put_bytes(&mut body, value.as_bytes());
                0
            }
            Self::Schema(name) => {
                put_bytes(&mut body, name.as_bytes());
                1
            }
            Self::State => {
                body.push(b'1');
                2
            }
            Self::TransactionCharacteristics(text) => {
                put_bytes(&mut body, text.as_bytes());
                4
            }
            Self::TransactionState(text) => {
                put_bytes(&mut body, text.as_bytes());
                5
            }
        };
        out.push(kind);
        put_bytes(out, &body);
    }
}

fn put_ok(out: &mut Vec<u8>, header: u8, ok: &Ok<'_>, capabilities: u64) {
    let changes = ok.changes.filter(|_| capabilities & SESSION_TRACK != 0);
    let tracked_flag = if changes.is_some() { status::SESSION_STATE_CHANGED } else { 0 };
    out.push(header);
    put_length(out, ok.affected_rows);
    put_length(out, ok.last_insert_id);
    out.extend_from_slice(&(ok.status | tracked_flag).to_le_bytes());
    out.extend_from_slice(&ok.warnings.to_le_bytes());
    if changes.is_some() || !ok.info.is_empty() {
        put_bytes(out, ok.info.as_bytes());
    }
    if let Some(changes) = changes {
        put_bytes(out, changes);
    }
}

/// Writes an OK packet.
pub fn ok(out: &mut OutputBuffer, ok: &Ok<'_>, capabilities: u64) {
    put_ok(out.begin(), 0x00, ok, capabilities);
    out.end();
}

/// Writes an EOF packet.
pub fn eof(out: &mut OutputBuffer, warnings: u16, status: u16) {
    let ([w0, w1], [s0, s1]) = (warnings.to_le_bytes(), status.to_le_bytes());
    out.put_small(&[0xfe, w0, w1, s0, s1]);
}

/// Ends the rows of a result: EOF, or OK for clients that deprecate it.
pub fn end_of_rows(out: &mut OutputBuffer, warnings: u16, status: u16, capabilities: u64) {
    if capabilities & DEPRECATE_EOF == 0 {
        return eof(out, warnings, status);
    }
    put_ok(out.begin(), 0xfe, &Ok { status, warnings, ..Ok::default() }, capabilities);
    out.end();
}

/// Ends the rows of a result whose statement changed the session's state: an EOF packet can only
/// announce it.
pub fn end_of_rows_with_changes(out: &mut OutputBuffer, ok: &Ok<'_>, capabilities: u64) {
    if capabilities & DEPRECATE_EOF == 0 {
        return eof(out, ok.warnings, ok.status | status::SESSION_STATE_CHANGED);
    }
    put_ok(out.begin(), 0xfe, ok, capabilities);
    out.end();
}

/// Writes an ERR packet.
pub fn error(out: &mut OutputBuffer, code: u16, sqlstate: &str, message: &str) {
    let payload = out.begin();
    payload.push(0xff);
    payload.extend_from_slice(&code.to_le_bytes());
    payload.push(b'#');
    payload.extend_from_slice(sqlstate.as_bytes());
    payload.extend_from_slice(truncated(message).as_bytes());
    out.end();
}

/// Writes an ERR packet to a client that has not yet logged in: without an SQLSTATE.
pub fn login_error(out: &mut OutputBuffer, code: u16, message: &str) {
    let payload = out.begin();
    payload.push(0xff);
    payload.extend_from_slice(&code.to_le_bytes());
    payload.extend_from_slice(truncated(message).as_bytes());
    out.end();
}

/// Clients have room for 512 bytes of message.
fn truncated(message: &str) -> &str {
    &message[..message.floor_char_boundary(511)]
}

/// A column of a result, as clients see it; names are in the client's character set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Database of the table, empty for expressions.
    pub schema: Vec<u8>,
    /// Alias of the table.
    pub table: Vec<u8>,
    /// Name of the table.
    pub org_table: Vec<u8>,
    /// Alias of the column.
    pub name: Vec<u8>,
    /// Name of the column, empty for expressions.
    pub org_name: Vec<u8>,
    /// Collation number: the client's for text, 63 for everything else.
    pub collation: u16,
    /// Longest value in bytes of that character set.
    pub length: u32,
    /// Type code.
    pub type_code: u8,
    /// Flags.
    pub flags: u16,
    /// Decimals.
    pub decimals: u8,
}

/// Writes one column definition; `default` is given in answers to COM_FIELD_LIST.
pub fn column(out: &mut OutputBuffer, column: &ColumnDescription, default: Option<Option<&[u8]>>) {
    let payload = out.begin();
    put_bytes(payload, b"def");
    put_bytes(payload, &column.schema);
    put_bytes(payload, &column.table);
    put_bytes(payload, &column.org_table);
    put_bytes(payload, &column.name);
    put_bytes(payload, &column.org_name);
    payload.push(0x0c);
    payload.extend_from_slice(&column.collation.to_le_bytes());
    payload.extend_from_slice(&column.length.to_le_bytes());
    payload.push(column.type_code);
    payload.extend_from_slice(&column.flags.to_le_bytes());
    payload.push(column.decimals);
    payload.extend_from_slice(&[0, 0]);
    match default {
        Some(Some(text)) => put_bytes(payload, text),
        Some(None) => payload.push(0xfb),
        None => {}
    }
    out.end();
}

/// Opens a result: the number of columns and whether their definitions follow.
pub fn result_header(out: &mut OutputBuffer, columns: usize, definitions: bool, capabilities: u64) {
    let payload = out.begin();
    put_length(payload, columns as u64);
    if capabilities & CACHE_METADATA != 0 {
        payload.push(u8::from(definitions));
    }
    out.end();
}

/// Writes header and definitions of a result: `definitions` are `columns` packets of [`column`].
pub fn result_columns(
    out: &mut OutputBuffer,
    columns: usize,
    definitions: &[u8],
    status: u16,
    capabilities: u64,
) {
    result_header(out, columns, true, capabilities);
    out.append_packets(definitions);
    if capabilities & DEPRECATE_EOF == 0 {
        eof(out, 0, status);
    }
}

/// Writes the header of a result whose definitions a client with CACHE_METADATA knows.
pub fn result_columns_known(
    out: &mut OutputBuffer,
    columns: usize,
    status: u16,
    capabilities: u64,
) {
    result_header(out, columns, false, capabilities);
    if capabilities & DEPRECATE_EOF == 0 {
        eof(out, 0, status);
    }
}

/// Answers COM_STMT_PREPARE.
pub fn prepared(
    out: &mut OutputBuffer,
    statement: u32,
    parameters: &[ColumnDescription],
    columns: &[ColumnDescription],
    warnings: u16,
    status: u16,
    capabilities: u64,
) {
    let payload = out.begin();
    payload.push(0);
    payload.extend_from_slice(&statement.to_le_bytes());
    payload.extend_from_slice(&(columns.len() as u16).to_le_bytes());
    payload.extend_from_slice(&(parameters.len() as u16).to_le_bytes());
    payload.push(0);
    payload.extend_from_slice(&warnings.to_le_bytes());
    out.end();
    for list in [parameters, columns] {
        list.iter().for_each(|description| column(out, description, None));
        if !list.is_empty() && capabilities & DEPRECATE_EOF == 0 {
            eof(out, 0, status);
        }
    }
}
