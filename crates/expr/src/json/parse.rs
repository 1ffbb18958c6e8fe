//! Reading JSON, broken JSON included: what was read before the fault, and where the fault is.
//!
//! 1. A fault's position is that of the server's reader, which reads some characters before it
//!    looks at them and others not. So each place says which of the two it does.
//! 2. A number ends at the first character that is no part of one; what comes before that may be
//!    only the beginning of a number, such as `-` in `[-]`.
//! 3. Nodes that were begun and not ended are there, with `whole` unset.

use super::{DEPTH_LIMIT, Fault, Kind, Node};

/// What could be read of a text.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    /// The value, as far as it goes.
    pub node: Option<Node<'a>>,
    /// What ended the value early.
    pub fault: Option<Fault>,
    /// What stands behind a whole value.
    pub tail: Option<Fault>,
}

impl<'a> Parsed<'a> {
    /// Reads a text.
    pub fn of(text: &'a [u8]) -> Self {
        let mut parser = Parser { text, at: 0, fault: None };
        let node = parser.value(0);
        let mut tail = None;
        if parser.fault.is_none() {
            parser.blanks();
            tail = parser.peek().map(|_| parser.unexpected());
        }
        Self { node, fault: parser.fault, tail }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    fault: Option<Fault>,
}

/// Where a number stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Digits {
    Sign,
    Zero,
    Whole,
    Fraction,
    Exponent,
    AfterExponent,
}

impl Digits {
    /// After one more character; none if that is no part of the number.
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Digits::Sign, b'0') => Digits::Zero,
            (Digits::Sign, b'1'..=b'9') => Digits::Whole,
            (Digits::Zero | Digits::Whole, b'.') => Digits::Fraction,
            (Digits::Whole | Digits::Fraction, b'0'..=b'9') => self,
            (Digits::Whole | Digits::Fraction, b'e' | b'E') => Digits::Exponent,
            (Digits::Exponent, b'+' | b'-') => self,
            (Digits::Exponent | Digits::AfterExponent, b'0'..=b'9') => Digits::AfterExponent,
            _ => return None,
        })
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Bytes of the character here.
    fn width(&self) -> usize {
        types::charset::decode_utf8(&self.text[self.at..]).map_or(1, |(_, length)| length)
    }

    /// The fault of a character that was read.
    fn unexpected(&self) -> Fault {
        match self.peek() {
            None => Fault::End,
            Some(0..0x20) => Fault::Character(self.at + 1),
            Some(_) => Fault::Syntax(self.at + self.width()),
        }
    }

    /// The fault of a character that was only looked at.
    fn unwanted(&self) -> Fault {
        if self.at < self.text.len() { Fault::Syntax(self.at) } else { Fault::End }
    }

    fn fail<T>(&mut self, fault: Fault) -> Option<T> {
        self.fault = Some(fault);
        None
    }

    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b'"') => {
                self.at += 1;
                self.string()?;
                Kind::String
            }
            Some(byte @ (b'-' | b'0'..=b'9')) => self.number(byte)?,
            Some(b't') => self.word(b"rue", Kind::Boolean(true))?,
            Some(b'f') => self.word(b"alse", Kind::Boolean(false))?,
            Some(b'n') => self.word(b"ull", Kind::Null)?,
            _ => {
                let fault = self.unexpected();
                return self.fail(fault);
            }
        };
        Some(Node { raw: &self.text[start..self.at], kind, whole: self.fault.is_none() })
    }

    fn word(&mut self, rest: &[u8], kind: Kind<'a>) -> Option<Kind<'a>> {
        self.at += 1;
        for byte in rest {
            if self.peek() != Some(*byte) {
                let fault = self.unwanted();
                return self.fail(fault);
            }
            self.at += 1;
        }
        Some(kind)
    }

    fn number(&mut self, first: u8) -> Option<Kind<'a>> {
        let mut digits = match first {
            b'-' => Digits::Sign,
            b'0' => Digits::Zero,
            _ => Digits::Whole,
        };
        self.at += 1;
        while let Some(byte) = self.peek() {
            if byte >= 0x80 {
                return self.fail(Fault::Broken(self.at));
            }
            let Some(next) = digits.next(byte) else { return Some(Kind::Number) };
            digits = next;
            self.at += 1;
        }
        if matches!(digits, Digits::Sign | Digits::Exponent) {
            return self.fail(Fault::Syntax(self.at));
        }
        Some(Kind::Number)
    }

    /// The rest of a string.
    fn string(&mut self) -> Option<()> {
        loop {
            let Some(byte) = self.peek() else { return self.fail(Fault::End) };
            self.at += 1;
            match byte {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..0x20 => return self.fail(Fault::Character(self.at)),
                _ => {}
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Option<()> {
        match self.peek() {
            None => self.fail(Fault::End),
            Some(0..0x20) => self.fail(Fault::Escape(self.at)),
            Some(b'u') => {
                self.at += 1;
                self.unicode()
            }
            Some(_) => {
                self.at += self.width();
                Some(())
            }
        }
    }

    /// Four digits; twice four for what UTF-16 makes of two.
    fn unicode(&mut self) -> Option<()> {
        match self.hexadecimal()? {
            0xd800..0xdc00 => {
                for byte in *b"\\u" {
                    if self.peek() != Some(byte) {
                        let fault = self.unwanted();
                        return self.fail(fault);
                    }
                    self.at += 1;
                }
                match self.hexadecimal()? {
                    0xdc00..0xe000 => Some(()),
                    _ => self.fail(Fault::Broken(self.at)),
                }
            }
            0xdc00..0xe000 => self.fail(Fault::Broken(self.at)),
            _ => Some(()),
        }
    }

    fn hexadecimal(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                let fault = self.unwanted();
                return self.fail(fault);
            };
            number = number << 4 | digit;
            self.at += 1;
        }
        Some(number)
    }

    /// A key behind its first quote, and the colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        loop {
            match self.peek() {
                None => return self.fail(Fault::End),
                Some(0..0x20) if self.at == start => {
                    return self.fail(Fault::Character(self.at + 1));
                }
                Some(0..0x20) => return self.fail(Fault::Syntax(self.at)),
                Some(byte) => {
                    self.at += 1;
                    match byte {
                        b'"' => break,
                        b'\\' => self.escape()?,
                        _ => {}
                    }
                }
            }
        }
        let key = &self.text[start..self.at - 1];
        self.blanks();
        if self.peek() != Some(b':') {
            let fault = self.unwanted();
            return self.fail(fault);
        }
        self.at += 1;
        Some(key)
    }

    fn deeper(&mut self, depth: usize) -> bool {
        self.at += 1;
        if depth >= DEPTH_LIMIT {
            self.fault = Some(Fault::Depth(self.at));
        }
        self.fault.is_none()
    }

    fn array(&mut self, depth: usize) -> Option<Kind<'a>> {
        let mut list = Vec::new();
        if !self.deeper(depth) {
            return Some(Kind::Array(list));
        }
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(Kind::Array(list));
        }
        loop {
            list.extend(self.value(depth));
            if self.fault.is_some() || self.ends(b']') {
                return Some(Kind::Array(list));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Kind<'a>> {
        let mut list = Vec::new();
        if !self.deeper(depth) {
            return Some(Kind::Object(list));
        }
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(Kind::Object(list));
        }
        let mut first = true;
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                // Behind a comma nothing else is looked at.
                self.fault = Some(match self.unexpected() {
                    Fault::Character(at) if !first => Fault::Syntax(at),
                    fault => fault,
                });
                return Some(Kind::Object(list));
            }
            first = false;
            self.at += 1;
            if let Some(key) = self.key()
                && let Some(value) = self.value(depth)
            {
                list.push((key, value));
            }
            if self.fault.is_some() || self.ends(b'}') {
                return Some(Kind::Object(list));
            }
        }
    }

    /// Whether a list ends here, or by a fault; a comma goes on.
    fn ends(&mut self, end: u8) -> bool {
        self.blanks();
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                true
            }
            Some(b',') => {
                self.at += 1;
                false
            }
            _ => {
                self.fault = Some(self.unexpected());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn fault(text: &str) -> Fault {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn positions_of_faults() {
        for (text, expected) in [
            ("1e", Fault::Syntax(2)),
            ("-", Fault::Syntax(1)),
            ("12abc", Fault::Syntax(3)),
            ("tru", Fault::End),
            ("trux", Fault::Syntax(3)),
            ("{\"a\" 1}", Fault::Syntax(5)),
            ("{a", Fault::Syntax(2)),
            ("{\"a\":1,}", Fault::Syntax(8)),
            ("[1,]", Fault::Syntax(4)),
            ("1\u{e4}", Fault::Broken(1)),
            ("\u{e4}", Fault::Syntax(2)),
            ("\"\\u12x4\"", Fault::Syntax(5)),
            ("\"\\ud800\"", Fault::Syntax(7)),
            ("\"\\udc00\"", Fault::Broken(7)),
            ("\"\t\"", Fault::Character(2)),
            ("[1 2]", Fault::Syntax(4)),
        ] {
            assert_eq!(fault(text), expected, "{text}");
        }
        assert!(parse(b"[-]").is_ok() && parse(b"[1e+-3]").is_ok() && parse(b"[1e]").is_ok());
    }

    #[test]
    fn what_was_read_before_a_fault() {
        let parsed = Parsed::of(b"[1, {\"a\": [2");
        assert_eq!(parsed.fault, Some(Fault::End));
        let node = parsed.node.unwrap();
        let Kind::Array(list) = &node.kind else { panic!("no array") };
        assert!(!node.whole && list[0].whole && !list[1].whole);
        assert_eq!(list[1].member(b"a").unwrap().depth(), 2);
    }
}
