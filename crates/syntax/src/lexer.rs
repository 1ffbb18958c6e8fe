//! Bytes to tokens. Tokens are ranges of the text; nothing is copied or unescaped here, so
//! looking ahead and going back cost nothing but the scan.

use crate::ParseOptions;
use crate::keyword::Keyword;

/// Version that comments such as `/*!100100 ... */` are compared with.
const SERVER_VERSION: u32 = 101_119;

/// Operators and punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    LeftParenthesis,
    RightParenthesis,
    LeftBrace,
    RightBrace,
    Comma,
    Dot,
    Semicolon,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Tilde,
    Exclamation,
    Ampersand,
    DoubleAmpersand,
    Bar,
    DoubleBar,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Assign,
    At,
    DoubleAt,
}

/// Kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// End of the text.
    End,
    /// An unquoted word.
    Word(Keyword),
    /// A name between backquotes (or double quotes under ANSI_QUOTES).
    QuotedName,
    /// A string between quotes.
    Text,
    /// `N'...'`.
    NationalText,
    /// `x'...'`.
    HexText,
    /// `0x...`.
    HexNumber,
    /// `b'...'`.
    BitText,
    /// `0b...`.
    BitNumber,
    /// Digits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// With an exponent.
    Float,
    /// `?`.
    Parameter,
    /// `\N`.
    NullEscape,
    /// Operator or punctuation.
    Symbol(Symbol),
    /// A byte or an unfinished literal or comment that no token begins with.
    Invalid,
}

/// A token: `text[start..end]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// The scanner; a copy of it is a place to come back to.
#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    position: usize,
    in_version_comment: bool,
    /// A name must follow (the last token was a point), so that digits may begin it.
    after_dot: bool,
    ansi_quotes: bool,
    no_backslash_escapes: bool,
    /// All words are names: nobody asks which of them are keywords.
    without_keywords: bool,
}

/// Bytes that unquoted names are made of.
static NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let own = byte as u8;
        bytes[byte] = own.is_ascii_alphanumeric() || own == b'_' || own == b'$' || own >= 0x80;
        byte += 1;
    }
    bytes
};

/// Whether unquoted names are made of such bytes.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES[usize::from(byte)]
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8], options: &ParseOptions) -> Self {
        Self {
            text,
            position: 0,
            in_version_comment: false,
            after_dot: false,
            ansi_quotes: options.ansi_quotes,
            no_backslash_escapes: options.no_backslash_escapes,
            without_keywords: false,
        }
    }

    /// As [`Lexer::new`], but every word is a name.
    pub(crate) fn without_keywords(text: &'a [u8], options: &ParseOptions) -> Self {
        Self { without_keywords: true, ..Self::new(text, options) }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.text.get(self.position + offset).copied().unwrap_or(0)
    }

    /// Goes on at `position`, which the caller has scanned to by itself.
    pub(crate) fn seek(&mut self, position: usize) {
        self.position = position;
        self.after_dot = false;
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Token {
        let after_dot = std::mem::take(&mut self.after_dot);
        if let Err(start) = self.skip_blanks() {
            return Token { kind: Kind::Invalid, start, end: self.text.len() };
        }
        let start = self.position;
        let kind = if start >= self.text.len() { Kind::End } else { self.scan(after_dot) };
        Token { kind, start, end: self.position }
    }

    /// Skips blanks and comments and opens version comments. `Err` is the start of a comment
    /// that does not end.
    fn skip_blanks(&mut self) -> Result<(), usize> {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.position += 1,
                b'#' => self.skip_line(),
                b'-' if self.byte(1) == b'-' && self.begins_line_comment() => self.skip_line(),
                b'/' if self.byte(1) == b'*' => self.open_comment()?,
                b'*' if self.in_version_comment && self.byte(1) == b'/' => {
                    self.in_version_comment = false;
                    self.position += 2;
                }
                _ => break,
            }
            if self.position >= self.text.len() {
                break;
            }
        }
        if self.position >= self.text.len() && self.in_version_comment {
            return Err(self.text.len());
        }
        Ok(())
    }

    fn begins_line_comment(&self) -> bool {
        self.position + 2 >= self.text.len() || self.byte(2) <= b' ' || self.byte(2) == 0x7f
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.position..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.position += length;
    }

    fn open_comment(&mut self) -> Result<(), usize> {
        let start = self.position;
        let maria = self.byte(2) == b'M' && self.byte(3) == b'!';
        if !(maria || self.byte(2) == b'!') || self.in_version_comment {
            return self.skip_comment(start, 2, 1);
        }
        let digits_at = if maria { 4 } else { 3 };
        let digits = (0..6).take_while(|n| self.byte(digits_at + n).is_ascii_digit()).count();
        if digits >= 5 {
            let version = (0..digits)
                .fold(0u32, |value, n| value * 10 + u32::from(self.byte(digits_at + n) - b'0'));
            let known =
                version <= SERVER_VERSION && (maria || !(50_700..=99_999).contains(&version));
            if !known {
                return self.skip_comment(start, digits_at + digits, 1);
            }
            self.position += digits_at + digits;
        } else {
            self.position += digits_at;
        }
        self.in_version_comment = true;
        Ok(())
    }

    /// Skips a comment whose inside begins `inside` bytes on; a comment that is not executed
    /// may hold others.
    fn skip_comment(&mut self, start: usize, inside: usize, depth: usize) -> Result<(), usize> {
        let nests = inside > 2;
        let mut depth = depth;
        self.position += inside;
        while self.position < self.text.len() {
            if self.byte(0) == b'*' && self.byte(1) == b'/' {
                self.position += 2;
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            } else if nests && self.byte(0) == b'/' && self.byte(1) == b'*' {
                self.position += 2;
                depth += 1;
            } else {
                self.position += 1;
            }
        }
        self.position = self.text.len();
        Err(start)
    }

    fn scan(&mut self, after_dot: bool) -> Kind {
        let byte = self.byte(0);
        match byte {
            b'0'..=b'9' if after_dot => self.name(),
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() && !self.follows_name() => self.number(),
            b'x' | b'X' if self.byte(1) == b'\'' => self.quoted_digits(Kind::HexText),
            b'b' | b'B' if self.byte(1) == b'\'' => self.quoted_digits(Kind::BitText),
            b'n' | b'N' if self.byte(1) == b'\'' => {
                self.position += 1;
                self.quoted(b'\'', Kind::NationalText)
            }
            b'\'' => self.quoted(b'\'', Kind::Text),
            b'"' if self.ansi_quotes => self.quoted(b'"', Kind::QuotedName),
            b'"' => self.quoted(b'"', Kind::Text),
            b'`' => self.quoted(b'`', Kind::QuotedName),
            b'?' => self.take(1, Kind::Parameter),
            b'\\' if self.byte(1) == b'N' => self.take(2, Kind::NullEscape),
            _ if is_name_byte(byte) => self.name(),
            _ => self.symbol(),
        }
    }

    /// Whether the byte before is part of a name: `t.1` is a qualified name, not a number.
    fn follows_name(&self) -> bool {
        self.position > 0
            && (is_name_byte(self.text[self.position - 1]) || self.text[self.position - 1] == b'`')
    }

    fn take(&mut self, length: usize, kind: Kind) -> Kind {
        self.position += length;
        kind
    }

    fn name(&mut self) -> Kind {
        let rest = self.text.get(self.position..).unwrap_or(&[]);
        let length = rest.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(rest.len());
        self.position += length;
        Kind::Word(if self.without_keywords {
            Keyword::NONE
        } else {
            Keyword::lookup(&rest[..length])
        })
    }

    fn number(&mut self) -> Kind {
        if self.byte(0) == b'0' && self.byte(1) == b'x' && self.byte(2).is_ascii_hexdigit() {
            if let Some(kind) = self.prefixed(|b| b.is_ascii_hexdigit(), Kind::HexNumber) {
                return kind;
            }
        } else if self.byte(0) == b'0'
            && self.byte(1) == b'b'
            && matches!(self.byte(2), b'0' | b'1')
            && let Some(kind) = self.prefixed(|b| matches!(b, b'0' | b'1'), Kind::BitNumber)
        {
            return kind;
        }
        let start = self.position;
        while self.byte(0).is_ascii_digit() {
            self.position += 1;
        }
        if self.byte(0) == b'.' {
            self.position += 1;
            while self.byte(0).is_ascii_digit() {
                self.position += 1;
            }
            return if self.exponent() { Kind::Float } else { Kind::Decimal };
        }
        if self.exponent() {
            return Kind::Float;
        }
        if is_name_byte(self.byte(0)) {
            self.position = start;
            return self.name();
        }
        Kind::Integer
    }

    /// `0x` or `0b` with digits up to a byte that is not part of a name.
    fn prefixed(&mut self, is_digit: impl Fn(u8) -> bool, kind: Kind) -> Option<Kind> {
        let mut length = 2;
        while is_digit(self.byte(length)) {
            length += 1;
        }
        if is_name_byte(self.byte(length)) {
            return None;
        }
        self.position += length;
        Some(kind)
    }

    /// Takes `e5`, `E-5`; false and nothing taken if there is none.
    fn exponent(&mut self) -> bool {
        if !matches!(self.byte(0), b'e' | b'E') {
            return false;
        }
        let sign = usize::from(matches!(self.byte(1), b'+' | b'-'));
        if !self.byte(1 + sign).is_ascii_digit() {
            return false;
        }
        self.position += 1 + sign;
        while self.byte(0).is_ascii_digit() {
            self.position += 1;
        }
        true
    }

    fn quoted_digits(&mut self, kind: Kind) -> Kind {
        let start = self.position;
        let hex = kind == Kind::HexText;
        self.position += 2;
        while matches!(self.byte(0), b'0' | b'1') || (hex && self.byte(0).is_ascii_hexdigit()) {
            self.position += 1;
        }
        let digits = self.position - start - 2;
        if self.byte(0) != b'\'' || (hex && digits % 2 == 1) {
            return Kind::Invalid;
        }
        self.take(1, kind)
    }

    fn quoted(&mut self, quote: u8, kind: Kind) -> Kind {
        let escapes = kind != Kind::QuotedName && !self.no_backslash_escapes;
        let mut position = self.position + 1;
        loop {
            let rest = self.text.get(position..).unwrap_or(&[]);
            let Some(length) = rest.iter().position(|b| *b == quote || (*b == b'\\' && escapes))
            else {
                self.position = self.text.len();
                return Kind::Invalid;
            };
            position += length;
            let is_quote = self.text[position] == quote;
            if !is_quote || self.text.get(position + 1) == Some(&quote) {
                position += 2;
            } else {
                self.position = position + 1;
                return kind;
            }
        }
    }

    fn symbol(&mut self) -> Kind {
        use Symbol::*;
        let (length, symbol) = match (self.byte(0), self.byte(1), self.byte(2)) {
            (b'(', ..) => (1, LeftParenthesis),
            (b')', ..) => (1, RightParenthesis),
            (b'{', ..) => (1, LeftBrace),
            (b'}', ..) => (1, RightBrace),
            (b',', ..) => (1, Comma),
            (b'.', ..) => {
                self.after_dot = true;
                (1, Dot)
            }
            (b';', ..) => (1, Semicolon),
            (b'+', ..) => (1, Plus),
            (b'-', ..) => (1, Minus),
            (b'*', ..) => (1, Star),
            (b'/', ..) => (1, Slash),
            (b'%', ..) => (1, Percent),
            (b'^', ..) => (1, Caret),
            (b'~', ..) => (1, Tilde),
            (b'!', b'=', _) => (2, NotEqual),
            (b'!', ..) => (1, Exclamation),
            (b'&', b'&', _) => (2, DoubleAmpersand),
            (b'&', ..) => (1, Ampersand),
            (b'|', b'|', _) => (2, DoubleBar),
            (b'|', ..) => (1, Bar),
            (b'=', ..) => (1, Equal),
            (b'<', b'=', b'>') => (3, NullSafeEqual),
            (b'<', b'=', _) => (2, LessOrEqual),
            (b'<', b'>', _) => (2, NotEqual),
            (b'<', b'<', _) => (2, ShiftLeft),
            (b'<', ..) => (1, Less),
            (b'>', b'=', _) => (2, GreaterOrEqual),
            (b'>', b'>', _) => (2, ShiftRight),
            (b'>', ..) => (1, Greater),
            (b':', b'=', _) => (2, Assign),
            (b'@', b'@', _) => (2, DoubleAt),
            (b'@', ..) => (1, At),
            _ => return self.take(1, Kind::Invalid),
        };
        self.take(length, Kind::Symbol(symbol))
    }
}

/// The inside of a quoted token with doubled quotes and backslashes resolved.
pub(crate) fn unquote(token: &[u8], backslashes: bool) -> Vec<u8> {
    let Some((&quote, rest)) = token.split_first() else { return Vec::new() };
    let inside = &rest[..rest.len().saturating_sub(1)];
    if !inside.iter().any(|byte| *byte == quote || (*byte == b'\\' && backslashes)) {
        return inside.to_vec();
    }
    let mut bytes = Vec::with_capacity(inside.len());
    let mut input = inside.iter().copied();
    while let Some(byte) = input.next() {
        if byte == quote {
            input.next();
            bytes.push(quote);
        } else if byte == b'\\' && backslashes {
            match input.next() {
                Some(b'n') => bytes.push(b'\n'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'r') => bytes.push(b'\r'),
                Some(b'b') => bytes.push(0x08),
                Some(b'0') => bytes.push(0),
                Some(b'Z') => bytes.push(0x1a),
                Some(escaped @ (b'%' | b'_')) => bytes.extend([b'\\', escaped]),
                Some(escaped) => bytes.push(escaped),
                None => bytes.push(b'\\'),
            }
        } else {
            bytes.push(byte);
        }
    }
    bytes
}
