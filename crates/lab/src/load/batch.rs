//! Rows gathered to INSERTs of many.

use crate::client::{Connection, Failure, Value, put_literal};

/// Rows of a statement at most, and bytes after which it is sent.
const ROWS_MAX: u64 = 1024;
const BYTES_MAX: usize = 512 * 1024;

/// Inserts into one table after the other. A statement is sent when it is long enough, and when
/// rows of another table follow.
pub struct Batch<'a> {
    connection: &'a mut Connection,
    into: &'static str,
    sql: Vec<u8>,
    rows: u64,
    rows_sent: u64,
    bytes_sent: u64,
}

impl<'a> Batch<'a> {
    pub(super) fn new(connection: &'a mut Connection) -> Self {
        Self { connection, into: "", sql: Vec::new(), rows: 0, rows_sent: 0, bytes_sent: 0 }
    }

    /// A row; `into` is everything before `VALUES`.
    pub fn row(&mut self, into: &'static str, values: &[Value<'_>]) -> Result<(), Failure> {
        self.row_into(into, "", values)
    }

    /// A row of one of several tables of the same shape: `into` has the table's number in place of
    /// its `#`.
    pub fn row_into(
        &mut self,
        into: &'static str,
        number: &str,
        values: &[Value<'_>],
    ) -> Result<(), Failure> {
        if self.into != into || self.rows == ROWS_MAX || self.sql.len() >= BYTES_MAX {
            self.send()?;
        }
        if self.rows == 0 {
            self.into = into;
            self.sql.extend_from_slice(into.replace('#', number).as_bytes());
            self.sql.extend_from_slice(b" VALUES ");
        }
        for (place, value) in values.iter().enumerate() {
            let before: &[u8] = match (place, self.rows) {
                (0, 0) => b"(",
                (0, _) => b",(",
                _ => b",",
            };
            self.sql.extend_from_slice(before);
            put_literal(&mut self.sql, value);
        }
        self.sql.push(b')');
        self.rows += 1;
        Ok(())
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.rows > 0 {
            self.connection.command_bytes(&self.sql)?;
            self.rows_sent += self.rows;
            self.bytes_sent += self.sql.len() as u64;
        }
        self.sql.clear();
        self.rows = 0;
        Ok(())
    }

    /// Sends what is left; rows and bytes of all.
    pub(super) fn finish(mut self) -> Result<(u64, u64), Failure> {
        self.send()?;
        Ok((self.rows_sent, self.bytes_sent))
    }
}
