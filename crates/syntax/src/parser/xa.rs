//! XA statements.

use super::*;
use Keyword as K;

/// Bytes of each part of a name.
const PART_BYTES_MAX: usize = 64;
/// Largest format id.
const FORMAT_MAX: u64 = i32::MAX as u64;

impl Parser<'_> {
    pub(super) fn xa_statement(&mut self) -> Result<Statement> {
        self.advance();
        let xa = if self.eat(K::START) || self.eat(K::BEGIN) {
            let xid = self.xid()?;
            let start = if self.eat(K::JOIN) {
                XaStart::Join
            } else if self.eat(K::RESUME) {
                XaStart::Resume
            } else {
                XaStart::New
            };
            Xa::Start(xid, start)
        } else if self.eat(K::END) {
            let xid = self.xid()?;
            let suspends = self.eat(K::SUSPEND);
            if suspends && self.eat(K::FOR) {
                self.expect(K::MIGRATE)?;
            }
            Xa::End(xid, suspends)
        } else if self.eat(K::PREPARE) {
            Xa::Prepare(self.xid()?)
        } else if self.eat(K::COMMIT) {
            let xid = self.xid()?;
            let is_one_phase = self.eat(K::ONE);
            if is_one_phase {
                self.expect(K::PHASE)?;
            }
            Xa::Commit(xid, is_one_phase)
        } else if self.eat(K::ROLLBACK) {
            Xa::Rollback(self.xid()?)
        } else if self.eat(K::RECOVER) {
            Xa::Recover(self.xa_format()?)
        } else {
            return Err(self.unexpected());
        };
        Ok(Statement::Xa(xa))
    }

    fn xa_format(&mut self) -> Result<Option<String>> {
        if !self.eat(K::FORMAT) {
            return Ok(None);
        }
        self.expect(Symbol::Equal)?;
        match self.at(Kind::Text) {
            true => self.text_string().map(Some),
            false => self.name().map(Some),
        }
    }

    /// `'global' [, 'branch' [, format]]`.
    fn xid(&mut self) -> Result<Xid> {
        let mut xid = Xid { format: 1, global: self.xid_part()?, branch: Vec::new() };
        if self.eat(Symbol::Comma) {
            xid.branch = self.xid_part()?;
            if self.eat(Symbol::Comma) {
                xid.format = self.xid_format()?;
            }
        }
        Ok(xid)
    }

    fn xid_format(&mut self) -> Result<u32> {
        let token = self.token;
        let number = match token.kind {
            Kind::HexNumber | Kind::HexText => match self.literal()? {
                Some(Literal::Hex { bytes, .. }) if bytes.len() <= 8 => {
                    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
                }
                _ => return Err(self.unexpected_at(token)),
            },
            _ => self.number()?,
        };
        match number <= FORMAT_MAX {
            true => Ok(number as u32),
            false => Err(self.unexpected_at(token)),
        }
    }

    fn xid_part(&mut self) -> Result<Vec<u8>> {
        let bytes = match self.token.kind {
            Kind::Text => self.text_literal()?,
            Kind::HexText | Kind::HexNumber | Kind::BitText | Kind::BitNumber => {
                match self.literal()? {
                    Some(Literal::Hex { bytes, .. } | Literal::Bits(bytes)) => bytes,
                    _ => return Err(self.unexpected()),
                }
            }
            _ => return Err(self.unexpected()),
        };
        // As in MariaDB the error is at what follows.
        if bytes.len() > PART_BYTES_MAX { Err(self.unexpected()) } else { Ok(bytes) }
    }
}
