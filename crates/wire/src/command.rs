//! Commands of a logged-in client.

use crate::handshake::ChangeUser;
use thiserror::Error;

/// A packet whose bytes are not what its command says (1835).
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("Malformed communication packet")]
pub struct MalformedPacket;

/// A command; texts are the client's bytes in its character set.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Close the connection; not answered.
    Quit,
    /// USE.
    InitDatabase(&'a [u8]),
    /// One or more statements.
    Query(&'a [u8]),
    /// Columns of a table whose names match a pattern.
    FieldList {
        /// Table.
        table: &'a [u8],
        /// Pattern of column names; empty for all.
        pattern: &'a [u8],
    },
    /// FLUSH, by bits.
    Refresh(u8),
    /// SHUTDOWN.
    Shutdown,
    /// One line of statistics.
    Statistics,
    /// SHOW PROCESSLIST.
    ProcessInfo,
    /// KILL CONNECTION.
    ProcessKill(u32),
    /// Dump debugging information.
    Debug,
    /// Answer OK.
    Ping,
    /// Log in anew.
    ChangeUser(ChangeUser<'a>),
    /// Prepare a statement.
    Prepare(&'a [u8]),
    /// Execute a prepared statement.
    Execute(Execute<'a>),
    /// MariaDB: execute a prepared statement once for each of many sets of parameters.
    BulkExecute {
        /// Statement.
        statement: u32,
        /// Bits of [`crate::bulk`].
        flags: u16,
        /// Types, if the flags say so, then the sets.
        parameters: &'a [u8],
    },
    /// A piece of a parameter; not answered.
    SendLongData {
        /// Statement.
        statement: u32,
        /// Parameter from 0.
        parameter: u16,
        /// Piece to append.
        data: &'a [u8],
    },
    /// Forget a prepared statement; not answered.
    CloseStatement(u32),
    /// Forget long data and the cursor of a statement.
    ResetStatement(u32),
    /// Multi-statements on (0) or off (1).
    SetOption(u16),
    /// Rows from a cursor.
    Fetch {
        /// Statement.
        statement: u32,
        /// Rows wanted.
        rows: u32,
    },
    /// Session back to its state after login.
    ResetConnection,
    /// A command this server has not (1047).
    Unknown(u8),
}

/// COM_STMT_EXECUTE.
#[derive(Debug, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Statement.
    pub statement: u32,
    /// Kind of cursor asked for; 0 is none.
    pub cursor: u8,
    /// Null bitmap, types and values; their shape depends on the statement.
    pub parameters: &'a [u8],
}

/// Takes fields off a packet; every method fails rather than read past the end.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], MalformedPacket> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(MalformedPacket)?;
        self.0 = tail;
        Ok(head)
    }

    /// A fixed number of bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedPacket> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(MalformedPacket)?;
        self.0 = tail;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, MalformedPacket> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, MalformedPacket> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, MalformedPacket> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, MalformedPacket> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An integer of variable length; the codes for NULL and errors are malformed here.
    pub fn length(&mut self) -> Result<u64, MalformedPacket> {
        Ok(match self.u8()? {
            small @ 0..=250 => u64::from(small),
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xfe => self.u64()?,
            _ => return Err(MalformedPacket),
        })
    }

    /// Bytes with their length before them.
    pub fn bytes(&mut self) -> Result<&'a [u8], MalformedPacket> {
        let length = usize::try_from(self.length()?).map_err(|_| MalformedPacket)?;
        self.take(length)
    }

    /// Bytes up to a zero byte, which is consumed.
    pub fn zero_ended(&mut self) -> Result<&'a [u8], MalformedPacket> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(MalformedPacket)?;
        let text = self.take(end)?;
        self.u8()?;
        Ok(text)
    }

    /// Bytes up to a zero byte or the end.
    pub fn zero_or_end(&mut self) -> &'a [u8] {
        if let Ok(text) = self.zero_ended() {
            return text;
        }
        std::mem::take(&mut self.0)
    }

    /// Everything left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

impl<'a> Command<'a> {
    /// Reads a packet's payload. `capabilities` are those in force.
    pub fn parse(payload: &'a [u8], capabilities: u64) -> Result<Self, MalformedPacket> {
        let mut fields = Fields(payload);
        Ok(match fields.u8()? {
            0x01 => Self::Quit,
            0x02 => Self::InitDatabase(fields.rest()),
            0x03 => Self::Query(fields.rest()),
            0x04 => Self::FieldList { table: fields.zero_ended()?, pattern: fields.zero_or_end() },
            0x07 => Self::Refresh(fields.u8()?),
            0x08 => Self::Shutdown,
            0x09 => Self::Statistics,
            0x0a => Self::ProcessInfo,
            0x0c => Self::ProcessKill(fields.u32()?),
            0x0d => Self::Debug,
            0x0e => Self::Ping,
            0x11 => Self::ChangeUser(ChangeUser::parse(fields.rest(), capabilities)?),
            0x16 => Self::Prepare(fields.rest()),
            0x17 => {
                let (statement, cursor) = (fields.u32()?, fields.u8()?);
                fields.u32()?; // iteration count, always 1
                Self::Execute(Execute { statement, cursor, parameters: fields.rest() })
            }
            0x18 => Self::SendLongData {
                statement: fields.u32()?,
                parameter: fields.u16()?,
                data: fields.rest(),
            },
            0x19 => Self::CloseStatement(fields.u32()?),
            0x1a => Self::ResetStatement(fields.u32()?),
            0x1b => Self::SetOption(fields.u16()?),
            0x1c => Self::Fetch { statement: fields.u32()?, rows: fields.u32()? },
            0x1f => Self::ResetConnection,
            0xfa => Self::BulkExecute {
                statement: fields.u32()?,
                flags: fields.u16()?,
                parameters: fields.rest(),
            },
            other => Self::Unknown(other),
        })
    }
}
