//! A file of LOAD DATA as lines and fields.
//!
//! 1. Bytes come in pieces and are looked at one by one; a piece is given back to memory when the
//!    next one comes, a field when the next field begins.
//! 2. What was read to see whether a terminator follows is put back if none does.
//! 3. Terminators end a field only outside of its enclosing character; that character ends it only
//!    before a terminator, and doubled it stands for itself.
//! 4. A file that ends within a field ends this field too.

use crate::ExecError;
use crate::query::refused;
use crate::spill::Charged;
use base::memory::MemoryAccount;
use plan::physical::LineFormat;
use std::sync::Arc;
use types::SqlError;

/// Gives the bytes of a file.
pub trait FileInput {
    /// Replaces the bytes by those that follow; false at the end of the file.
    fn read(&mut self, bytes: &mut Vec<u8>) -> Result<bool, SqlError>;
}

/// See the head of the file.
pub struct Fields<'i, 'f> {
    input: &'i mut dyn FileInput,
    format: &'f LineFormat,
    piece: Vec<u8>,
    at: usize,
    /// Bytes put back, the next one last.
    back: Vec<u8>,
    /// The field as far as it is read, its enclosing character included.
    data: Vec<u8>,
    /// Where the field begins in `data`.
    start: usize,
    /// The field was enclosed.
    enclosed: bool,
    /// The field has `\N` in it.
    found_null: bool,
    line_ended: bool,
    ended: bool,
    at_line_start: bool,
    charged: Charged,
}

/// Memory charged at least at once.
const CHARGE_BYTES: usize = 64 << 10;

impl<'i, 'f> Fields<'i, 'f> {
    /// At the beginning of a file.
    pub fn new(
        input: &'i mut dyn FileInput,
        format: &'f LineFormat,
        memory: &Arc<MemoryAccount>,
    ) -> Self {
        Self {
            input,
            format,
            piece: Vec::new(),
            at: 0,
            back: Vec::new(),
            data: Vec::new(),
            start: 0,
            enclosed: false,
            found_null: false,
            line_ended: false,
            ended: false,
            at_line_start: !format.line_start.is_empty(),
            charged: Charged::none(memory),
        }
    }

    /// The field that was read last.
    pub fn field(&self) -> &[u8] {
        &self.data[self.start..]
    }

    /// Whether it stands for NULL.
    pub fn is_null(&self) -> bool {
        let field = self.field();
        let word = !self.enclosed && self.format.enclosed.is_some() && field == b"NULL";
        word || field.len() == 1 && self.found_null
    }

    #[inline]
    fn get(&mut self) -> Result<Option<u8>, ExecError> {
        if let Some(byte) = self.back.pop() {
            return Ok(Some(byte));
        }
        loop {
            if let Some(byte) = self.piece.get(self.at) {
                self.at += 1;
                return Ok(Some(*byte));
            }
            self.at = 0;
            if !self.input.read(&mut self.piece)? {
                self.piece.clear();
                return Ok(None);
            }
        }
    }

    /// Whether the rest of a terminator follows, whose first byte was read; then it is read.
    fn follows(&mut self, terminator: &[u8]) -> Result<bool, ExecError> {
        for (read, wanted) in terminator.iter().enumerate().skip(1) {
            let byte = self.get()?;
            if byte == Some(*wanted) {
                continue;
            }
            self.back.extend(byte);
            self.back.extend(terminator[1..read].iter().rev());
            return Ok(false);
        }
        Ok(true)
    }

    /// Whether a terminator stands here, beginning with this byte; then it is read.
    fn is_at(&mut self, byte: u8, terminator: &[u8]) -> Result<bool, ExecError> {
        Ok(terminator.first() == Some(&byte) && self.follows(terminator)?)
    }

    fn push(&mut self, byte: u8) -> Result<(), ExecError> {
        if self.data.len() == self.data.capacity() {
            let more = self.data.capacity().max(CHARGE_BYTES);
            if !self.charged.add(more) {
                return Err(refused());
            }
            self.data.reserve_exact(more);
        }
        self.data.push(byte);
        Ok(())
    }

    fn end_field(&mut self, start: usize, enclosed: bool) -> bool {
        self.start = start;
        self.enclosed = enclosed;
        true
    }

    fn end_file(&mut self) -> bool {
        (self.line_ended, self.ended) = (true, true);
        self.end_field(0, false)
    }

    /// Reads the next field of the line; false if the line has no more.
    pub fn next_field(&mut self) -> Result<bool, ExecError> {
        self.found_null = false;
        if self.line_ended || !self.find_line_start()? {
            return Ok(false);
        }
        let format = self.format;
        let Some(first) = self.get()? else {
            (self.line_ended, self.ended) = (true, true);
            return Ok(false);
        };
        self.data.clear();
        let mut enclosing = None;
        if format.enclosed == Some(first) {
            enclosing = Some(first);
            self.push(first)?;
        } else {
            self.back.push(first);
        }
        loop {
            let Some(mut byte) = self.get()? else { return Ok(self.end_file()) };
            if format.escape == Some(byte) {
                let Some(escaped) = self.get()? else {
                    self.push(byte)?;
                    return Ok(self.end_file());
                };
                if format.escape != format.enclosed || format.escape == Some(escaped) {
                    let meant = self.unescape(escaped);
                    self.push(meant)?;
                    continue;
                }
                self.back.push(escaped);
            }
            if enclosing.is_none() {
                if self.is_at(byte, &format.line_end)? {
                    self.line_ended = true;
                    return Ok(self.end_field(0, false));
                }
                if self.is_at(byte, &format.field_end)? {
                    return Ok(self.end_field(0, false));
                }
            } else if enclosing == Some(byte) {
                match self.get()? {
                    Some(next) if next == byte => {}
                    None => {
                        self.line_ended = true;
                        return Ok(self.end_field(1, true));
                    }
                    Some(next) if self.is_at(next, &format.line_end)? => {
                        self.line_ended = true;
                        return Ok(self.end_field(1, true));
                    }
                    Some(next) if self.is_at(next, &format.field_end)? => {
                        return Ok(self.end_field(1, true));
                    }
                    Some(next) => self.back.push(next),
                }
                byte = enclosing.unwrap_or(byte);
            }
            self.push(byte)?;
        }
    }

    fn unescape(&mut self, byte: u8) -> u8 {
        match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'0' => 0,
            b'Z' => 26,
            b'N' => {
                self.found_null = true;
                byte
            }
            _ => byte,
        }
    }

    /// Skips what stands before LINES STARTING BY; false at the end of the file.
    fn find_line_start(&mut self) -> Result<bool, ExecError> {
        if !std::mem::take(&mut self.at_line_start) {
            return Ok(true);
        }
        let format = self.format;
        while let Some(byte) = self.get()? {
            if self.is_at(byte, &format.line_start)? {
                return Ok(true);
            }
        }
        (self.line_ended, self.ended) = (true, true);
        Ok(false)
    }

    /// Goes to the next line; none at the end of the file, else whether the line had more than
    /// was read of it.
    pub fn next_line(&mut self) -> Result<Option<bool>, ExecError> {
        let format = self.format;
        self.at_line_start = !format.line_start.is_empty();
        if self.line_ended || self.ended {
            self.line_ended = false;
            return Ok((!self.ended).then_some(false));
        }
        let mut cut = false;
        if format.line_end.is_empty() {
            return Ok(Some(cut));
        }
        loop {
            let Some(byte) = self.get()? else { return Ok(None) };
            if format.escape == Some(byte) {
                cut = true;
                if self.get()?.is_none() {
                    return Ok(None);
                }
                continue;
            }
            if self.is_at(byte, &format.line_end)? {
                return Ok(Some(cut));
            }
            cut = true;
        }
    }
}
