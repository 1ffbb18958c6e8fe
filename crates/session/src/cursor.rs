//! Cursors of the protocol: COM_STMT_EXECUTE with a cursor asked for, COM_STMT_FETCH.
//!
//! Invariants:
//! 1. A cursor's rows are those of the execution: the statement runs to its end and its rows, as
//!    packets, wait in the session's memory, charged to its account (MariaDB keeps them in a
//!    temporary table). Its transaction and its locks end as without a cursor.
//! 2. A cursor belongs to one prepared statement and ends with its last row, the next execution,
//!    COM_STMT_RESET or COM_STMT_CLOSE.

use crate::Session;
use crate::answer::{Outlet, Protocol};
use crate::bound::Bound;
use crate::prepared::{PreparedStatement, unknown_handler};
use crate::statement::Run;
use base::MemoryAccount;
use std::io;
use std::sync::Arc;
use types::error::ErrorCode;
use types::{SqlError, codes};
use wire::capability::{CACHE_METADATA, DEPRECATE_EOF, status};
use wire::{PACKET_HEADER_BYTES, PACKET_PAYLOAD_MAX, response};

/// 1421.
static NO_OPEN_CURSOR: ErrorCode = ErrorCode {
    number: 1421,
    sqlstate: "HY000",
    name: "STMT_HAS_NO_OPEN_CURSOR",
    template: "The statement ({}) has no open cursor",
};

/// The rows of one execution that nobody has fetched yet.
pub(crate) struct Cursor {
    packets: Vec<u8>,
    /// Where the next row begins.
    next: usize,
    /// What the packets are charged to.
    memory: Arc<MemoryAccount>,
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.memory.release_all();
    }
}

/// Takes an answer as it grows.
struct Collector {
    packets: Vec<u8>,
    memory: Arc<MemoryAccount>,
    /// There was no room for more.
    is_full: bool,
}

impl Outlet for Collector {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.memory.charge(bytes.len() as u64).is_err() {
            self.is_full = true;
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        self.packets.extend_from_slice(bytes);
        Ok(())
    }
}

/// Length of a packet's payload and where it begins; `None` at the end.
fn packet_at(packets: &[u8], at: usize) -> Option<(usize, usize)> {
    let header: &[u8; PACKET_HEADER_BYTES] = packets.get(at..)?.first_chunk()?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    Some((length, at + PACKET_HEADER_BYTES))
}

/// Where the row (or anything else) that begins at `at` ends: it may take several packets.
fn end_of(packets: &[u8], mut at: usize) -> usize {
    while let Some((length, body)) = packet_at(packets, at) {
        at = body + length;
        if length < PACKET_PAYLOAD_MAX {
            break;
        }
    }
    at
}

/// An answer taken apart: where the definitions end, the rows begin and the rows end.
struct Parts {
    definitions_end: usize,
    rows: usize,
    rows_end: usize,
}

/// Takes the answer to a query apart; `None` if it is an error or has no rows.
fn parts(packets: &[u8], capabilities: u64) -> Option<Parts> {
    let (length, body) = packet_at(packets, 0)?;
    let header = packets.get(body..body + length)?;
    if matches!(header.first(), None | Some(0x00 | 0xff)) {
        return None;
    }
    let columns = wire::Fields(header).length().ok()?;
    let known = capabilities & CACHE_METADATA != 0 && header.last() == Some(&0);
    let mut at = body + length;
    if !known {
        for _ in 0..columns {
            at = end_of(packets, at);
        }
    }
    let definitions_end = at;
    if capabilities & DEPRECATE_EOF == 0 {
        at = end_of(packets, at);
    }
    let rows = at;
    loop {
        let (length, body) = packet_at(packets, at)?;
        // Rows begin with a zero byte; the end and an error do not.
        match packets.get(body..body + length)?.first() {
            Some(0x00) => at = end_of(packets, at),
            Some(0xfe) => return Some(Parts { definitions_end, rows, rows_end: at }),
            _ => return None,
        }
    }
}

impl Session {
    /// Executes a query whose parameters are bound and keeps its rows for COM_STMT_FETCH.
    pub(crate) fn open_cursor(&mut self, prepared: &mut PreparedStatement) {
        let memory = self.server.memory.child(self.memory.limit_bytes());
        let mut collector = Collector { packets: Vec::new(), memory, is_full: false };
        let sequence = self.out.sequence();
        let own = std::mem::take(&mut self.out);
        let mut made = None;
        self.running("Execute", &prepared.text, |session| {
            let run = Run {
                protocol: Protocol::Binary,
                plan: prepared.plan.as_ref(),
                // As MariaDB, whose temporary table has columns of its own.
                definitions_known: false,
                bound: Bound::Codes(&prepared.types),
            };
            made = session.run_statement(&prepared.statement, run, &mut collector);
        });
        let rest = std::mem::replace(&mut self.out, own);
        self.out.set_sequence(sequence);
        if let Some(plan) = made {
            prepared.keep(plan);
            prepared.definitions_sent = true;
        }
        if collector.send(rest.bytes()).is_err() || collector.is_full {
            return self.put_error(&SqlError::new(&codes::OUT_OF_RESOURCES, &[]));
        }
        self.put_cursor(prepared, collector);
    }

    fn put_cursor(&mut self, prepared: &mut PreparedStatement, collector: Collector) {
        let Collector { mut packets, memory, .. } = collector;
        let Some(Parts { definitions_end, rows, rows_end }) = parts(&packets, self.capabilities)
        else {
            // An error, perhaps behind rows that nobody is going to see.
            let mut last = 0;
            while packet_at(&packets, end_of(&packets, last)).is_some() {
                last = end_of(&packets, last);
            }
            self.out.append_packets(&packets[last..]);
            return;
        };
        self.out.append_packets(&packets[..definitions_end]);
        let flags = self.status_flags() | status::CURSOR_EXISTS;
        response::end_of_rows(&mut self.out, 0, flags, self.capabilities);
        packets.truncate(rows_end);
        packets.drain(..rows);
        packets.shrink_to_fit();
        prepared.cursor = Some(Box::new(Cursor { packets, next: 0, memory }));
    }

    /// COM_STMT_FETCH.
    pub(crate) fn fetch(
        &mut self,
        id: u32,
        rows: u32,
        outlet: &mut dyn Outlet,
    ) -> Result<(), SqlError> {
        let unknown = || unknown_handler(id, "mysqld_stmt_fetch");
        let mut prepared = self.prepared.take(id).ok_or_else(unknown)?;
        let result = match &mut prepared.cursor {
            Some(cursor) => self.put_rows(cursor, rows, outlet),
            None => Err(SqlError::new(&NO_OPEN_CURSOR, &[&id])),
        };
        if let Ok(true) = result {
            prepared.cursor = None;
        }
        self.prepared.put_back(id, prepared);
        result.map(|_ended| ())
    }

    /// Writes up to `rows` rows; true if there were fewer, so that the cursor has ended.
    fn put_rows(
        &mut self,
        cursor: &mut Cursor,
        rows: u32,
        outlet: &mut dyn Outlet,
    ) -> Result<bool, SqlError> {
        let mut put = 0;
        while put < rows && cursor.next < cursor.packets.len() {
            let end = end_of(&cursor.packets, cursor.next);
            self.out.append_packets(&cursor.packets[cursor.next..end]);
            cursor.next = end;
            put += 1;
            self.send_if_large(outlet)?;
        }
        let ended = put < rows;
        let flag = if ended { status::LAST_ROW_SENT } else { status::CURSOR_EXISTS };
        let flags = self.status_flags() | flag;
        response::end_of_rows(&mut self.out, 0, flags, self.capabilities);
        Ok(ended)
    }

    /// Sends what is collected once it is much.
    fn send_if_large(&mut self, outlet: &mut dyn Outlet) -> Result<(), SqlError> {
        const SEND_BYTES: usize = 64 * 1024;
        if self.out.len() < SEND_BYTES {
            return Ok(());
        }
        let sent = outlet.send(self.out.bytes());
        self.out.clear();
        sent.map_err(|_| SqlError::new(&codes::NET_ERROR_ON_WRITE, &[]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::OutputBuffer;

    fn answer(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = OutputBuffer::new();
        for payload in payloads {
            out.begin().extend_from_slice(payload);
            out.end();
        }
        out.bytes().to_vec()
    }

    #[test]
    fn an_answer_is_taken_apart() {
        let packets = answer(&[b"\x01", b"\x03def", b"\xfe....", b"\0a", b"\0b", b"\xfe...."]);
        let found = parts(&packets, 0).unwrap();
        assert_eq!(packets[found.rows..found.rows_end], answer_from(3, &[b"\0a", b"\0b"]));
        assert_eq!(found.definitions_end, 5 + 8);
        let packets = answer(&[b"\x01\0", b"\0a", b"\xfe......"]);
        let found = parts(&packets, DEPRECATE_EOF | CACHE_METADATA).unwrap();
        assert_eq!((found.definitions_end, found.rows, found.rows_end), (6, 6, 12));
    }

    fn answer_from(sequence: u8, payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = OutputBuffer::new();
        out.set_sequence(sequence);
        out.append_packets(&answer(payloads));
        out.bytes().to_vec()
    }

    #[test]
    fn errors_have_no_rows() {
        assert!(parts(&answer(&[b"\xff12"]), 0).is_none());
        assert!(parts(&answer(&[b"\0\0\0"]), 0).is_none());
        let broken = answer(&[b"\x01", b"\x03def", b"\xfe....", b"\0a", b"\xff12"]);
        assert!(parts(&broken, 0).is_none());
        assert!(parts(b"", 0).is_none());
    }
}
