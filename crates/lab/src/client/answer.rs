//! Answers to commands.

use super::{Connection, Failure, Prepared, Row, server_error};
use wire::Fields;
use wire::capability::{CACHE_METADATA, DEPRECATE_EOF, status};

/// What came of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Rows changed, of the last result.
    pub affected_rows: u64,
    /// The generated key, or 0.
    pub last_insert_id: u64,
    /// Rows shown, of all results.
    pub rows: u64,
    /// Warnings of the last result.
    pub warnings: u16,
}

/// The header of a result's answer.
enum Header {
    Ok,
    /// So many columns are described.
    Columns(usize),
    /// They are those that were described before.
    KnownColumns(usize),
}

impl Connection {
    pub(super) fn read_answer(
        &mut self,
        binary: bool,
        mut each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        let mut done = Done::default();
        // An error of the caller is told when the answer is read to its end.
        let mut told = Ok(());
        loop {
            let status = match self.read_header(&mut done)? {
                (Header::Ok, status) => status,
                (header, _) => {
                    self.read_columns(header)?;
                    self.read_rows(binary, &mut done, &mut |row| {
                        if told.is_ok() {
                            told = each(row);
                        }
                    })?
                }
            };
            if status & status::MORE_RESULTS == 0 {
                return told.map(|()| done);
            }
        }
    }

    fn read_header(&mut self, done: &mut Done) -> Result<(Header, u16), Failure> {
        let packet = self.packet()?;
        let payload = &self.input.bytes()[packet];
        match payload {
            [0, rest @ ..] => Ok((Header::Ok, read_ok(rest, done)?)),
            [0xff, rest @ ..] => Err(server_error(rest)),
            [0xfb, ..] => Err(Failure::malformed("LOAD DATA LOCAL is not supported")),
            _ => {
                let mut fields = Fields(payload);
                let count = usize::try_from(fields.length()?).ok().filter(|count| *count <= 4096);
                let count = count.ok_or_else(|| Failure::malformed("a result without columns"))?;
                let are_known = self.capabilities & CACHE_METADATA != 0 && fields.u8()? == 0;
                let header = if are_known { Header::KnownColumns } else { Header::Columns };
                Ok((header(count), 0))
            }
        }
    }

    /// Keeps the columns' types.
    fn read_columns(&mut self, header: Header) -> Result<(), Failure> {
        match header {
            Header::Ok => return Ok(()),
            Header::Columns(count) => {
                self.types.clear();
                for _ in 0..count {
                    let kind = self.read_column()?;
                    self.types.push(kind);
                }
            }
            Header::KnownColumns(count) if count == self.types.len() => {}
            Header::KnownColumns(_) => {
                return Err(Failure::malformed("other columns than were described"));
            }
        }
        self.end_of_columns()
    }

    /// What stands behind descriptions of columns.
    fn end_of_columns(&mut self) -> Result<(), Failure> {
        if self.capabilities & DEPRECATE_EOF == 0 {
            self.packet()?;
        }
        Ok(())
    }

    /// A column's type.
    fn read_column(&mut self) -> Result<u8, Failure> {
        let packet = self.packet()?;
        let mut fields = Fields(&self.input.bytes()[packet]);
        for _name in 0..6 {
            fields.bytes()?;
        }
        // Length of the rest, collation, length of values; then the type.
        fields.take(1 + 2 + 4)?;
        Ok(fields.u8()?)
    }

    fn read_rows(
        &mut self,
        binary: bool,
        done: &mut Done,
        each: &mut dyn FnMut(&Row<'_>),
    ) -> Result<u16, Failure> {
        loop {
            let packet = self.packet()?;
            let payload = &self.input.bytes()[packet];
            match payload {
                [0xff, rest @ ..] => return Err(server_error(rest)),
                [0xfe, rest @ ..] if is_end(payload, self.capabilities) => {
                    if self.capabilities & DEPRECATE_EOF != 0 {
                        return read_ok(rest, done);
                    }
                    let mut fields = Fields(rest);
                    done.warnings = fields.u16()?;
                    return Ok(fields.u16()?);
                }
                _ => {}
            }
            done.rows += 1;
            each(&Row::new(payload, &self.types, binary));
        }
    }

    pub(super) fn read_prepared(&mut self) -> Result<Prepared, Failure> {
        let packet = self.packet()?;
        let payload = &self.input.bytes()[packet];
        if let [0xff, rest @ ..] = payload {
            return Err(server_error(rest));
        }
        let mut fields = Fields(payload);
        fields.u8()?;
        let (id, columns, parameters) = (fields.u32()?, fields.u16()?, fields.u16()?);
        if parameters > 0 {
            for _ in 0..parameters {
                self.packet()?;
            }
            self.end_of_columns()?;
        }
        let mut types = Vec::with_capacity(usize::from(columns));
        if columns > 0 {
            for _ in 0..columns {
                types.push(self.read_column()?);
            }
            self.end_of_columns()?;
        }
        Ok(Prepared { id, parameters, columns: types, told: Vec::new() })
    }
}

/// Whether a packet that begins with 0xfe ends the rows: a row that begins so has a first value
/// of 16 MiB or more.
fn is_end(payload: &[u8], capabilities: u64) -> bool {
    capabilities & DEPRECATE_EOF != 0 || payload.len() < 9
}

/// An OK packet after its first byte; returns the status flags.
fn read_ok(payload: &[u8], done: &mut Done) -> Result<u16, Failure> {
    let mut fields = Fields(payload);
    done.affected_rows = fields.length()?;
    done.last_insert_id = fields.length()?;
    let status = fields.u16()?;
    done.warnings = fields.u16()?;
    Ok(status)
}
