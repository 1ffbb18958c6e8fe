//! Constants.

use super::*;

/// Character sets that can introduce a string (`_latin1'x'`).
const CHARSETS: [&str; 40] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb2312", "gbk", "geostd8", "greek",
    "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce",
    "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32", "utf8",
    "utf8mb4",
];

impl Parser<'_> {
    /// A constant, if one follows.
    #[inline(never)]
    pub(super) fn literal(&mut self) -> Result<Option<Literal>> {
        let literal = match self.token.kind {
            Kind::Integer => self.integer(),
            Kind::Decimal => Literal::Decimal(self.number_text()),
            Kind::Float => Literal::Float(self.number_text()),
            Kind::Text => self.string(None)?,
            Kind::NationalText => {
                let token = self.advance();
                let bytes = &self.bytes(token)[1..];
                let mut bytes = unquote(bytes, !self.options.no_backslash_escapes);
                self.append_adjacent(&mut bytes)?;
                Literal::String { bytes, charset: Some("utf8mb3".into()) }
            }
            Kind::HexText | Kind::HexNumber => self.hex(None),
            Kind::BitText | Kind::BitNumber => Literal::Bits(self.bits()),
            Kind::NullEscape | Kind::Word(Keyword::NULL) => {
                self.advance();
                Literal::Null
            }
            Kind::Word(Keyword::TRUE) => {
                self.advance();
                Literal::Boolean(true)
            }
            Kind::Word(Keyword::FALSE) => {
                self.advance();
                Literal::Boolean(false)
            }
            Kind::Word(Keyword::DATE) if self.peek_is(Kind::Text) => {
                self.advance();
                Literal::Date(self.text_string()?)
            }
            Kind::Word(Keyword::TIME) if self.peek_is(Kind::Text) => {
                self.advance();
                Literal::Time(self.text_string()?)
            }
            Kind::Word(Keyword::TIMESTAMP) if self.peek_is(Kind::Text) => {
                self.advance();
                Literal::Timestamp(self.text_string()?)
            }
            Kind::Word(Keyword::NONE) if self.text[self.token.start] == b'_' => {
                return self.introduced();
            }
            _ => return Ok(None),
        };
        Ok(Some(literal))
    }

    fn number_text(&mut self) -> String {
        let token = self.advance();
        self.to_utf8_lossy(self.bytes(token))
    }

    fn integer(&mut self) -> Literal {
        let text = self.number_text();
        text.parse().map_or(Literal::Decimal(text), Literal::Integer)
    }

    fn string(&mut self, charset: Option<String>) -> Result<Literal> {
        let mut bytes = self.text_literal()?;
        self.append_adjacent(&mut bytes)?;
        let charset = charset.or_else(|| self.options.kept.then(|| "utf8mb4".into()));
        Ok(Literal::String { bytes, charset })
    }

    /// `'a' 'b'` is `'ab'`.
    fn append_adjacent(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        while self.at(Kind::Text) {
            bytes.extend(self.text_literal()?);
        }
        Ok(())
    }

    #[inline(never)]
    fn hex(&mut self, charset: Option<String>) -> Literal {
        let token = self.advance();
        let digits = match token.kind {
            Kind::HexText => &self.text[token.start + 2..token.end - 1],
            _ => &self.text[token.start + 2..token.end],
        };
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
        let (odd, even) = digits.split_at(digits.len() % 2);
        bytes.extend(odd.iter().map(|digit| value(*digit)));
        bytes.extend(even.chunks_exact(2).map(|pair| value(pair[0]) << 4 | value(pair[1])));
        Literal::Hex { bytes, number: token.kind == Kind::HexNumber, charset }
    }

    fn bits(&mut self) -> Vec<u8> {
        let token = self.advance();
        let digits = match token.kind {
            Kind::BitText => &self.text[token.start + 2..token.end - 1],
            _ => &self.text[token.start + 2..token.end],
        };
        let mut bytes = vec![0u8; digits.len().div_ceil(8)];
        let last = bytes.len() * 8;
        for (position, digit) in digits.iter().enumerate() {
            let bit = last - digits.len() + position;
            bytes[bit / 8] |= (digit - b'0') << (7 - bit % 8);
        }
        bytes
    }

    /// `_charset'text'`, `_charset x'4142'`, `_charset 0x4142`; nothing is taken when no string
    /// follows, since the word is a name then.
    #[inline(never)]
    fn introduced(&mut self) -> Result<Option<Literal>> {
        let word = self.to_utf8_lossy(&self.bytes(self.token)[1..]).to_ascii_lowercase();
        if word != "utf8mb3" && !CHARSETS.contains(&word.as_str()) {
            return Ok(None);
        }
        let charset = Some(if word == "utf8" { "utf8mb3".to_string() } else { word });
        match self.peek().kind {
            Kind::Text => {
                self.advance();
                self.string(charset).map(Some)
            }
            Kind::HexText | Kind::HexNumber => {
                self.advance();
                Ok(Some(self.hex(charset)))
            }
            Kind::BitText | Kind::BitNumber => {
                self.advance();
                Ok(Some(Literal::Hex { bytes: self.bits(), number: false, charset }))
            }
            _ => Ok(None),
        }
    }
}
