//! FIELDS and LINES of LOAD DATA and INTO OUTFILE.

use super::*;
use Keyword as K;

impl Parser<'_> {
    /// CHARACTER SET, FIELDS and LINES of files.
    pub(super) fn file_format(&mut self) -> Result<FileFormat> {
        let mut format = FileFormat::default();
        if self.at_charset_words() {
            self.advance_charset_words()?;
            format.charset = Some(self.charset_name()?);
        }
        if self.eat(K::FIELDS) || self.eat(K::COLUMNS) {
            self.field_format(&mut format)?;
        }
        if self.eat(K::LINES) {
            loop {
                if self.eat(K::STARTING) {
                    self.expect(K::BY)?;
                    format.lines_starting = Some(self.format_text()?);
                } else if self.eat(K::TERMINATED) {
                    self.expect(K::BY)?;
                    format.lines_terminated = Some(self.format_text()?);
                } else if format.lines_starting.is_none() && format.lines_terminated.is_none() {
                    return Err(self.unexpected());
                } else {
                    break;
                }
            }
        }
        Ok(format)
    }

    fn field_format(&mut self, format: &mut FileFormat) -> Result<()> {
        let mut found = false;
        loop {
            if self.eat(K::TERMINATED) {
                self.expect(K::BY)?;
                format.fields_terminated = Some(self.format_text()?);
            } else if self.eat(K::OPTIONALLY) {
                format.optionally_enclosed = true;
                self.expect(K::ENCLOSED)?;
                self.expect(K::BY)?;
                format.fields_enclosed = Some(self.format_text()?);
            } else if self.eat(K::ENCLOSED) {
                self.expect(K::BY)?;
                format.fields_enclosed = Some(self.format_text()?);
            } else if self.eat(K::ESCAPED) {
                self.expect(K::BY)?;
                format.fields_escaped = Some(self.format_text()?);
            } else if found {
                return Ok(());
            } else {
                return Err(self.unexpected());
            }
            found = true;
        }
    }

    fn format_text(&mut self) -> Result<Vec<u8>> {
        match self.literal()? {
            Some(
                Literal::String { bytes, .. } | Literal::Hex { bytes, .. } | Literal::Bits(bytes),
            ) => Ok(bytes),
            _ => Err(self.unexpected()),
        }
    }
}
