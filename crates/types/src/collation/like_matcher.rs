//! A LIKE pattern that is matched with many texts.

use super::Collation;
use super::like::{Token, like, token};
use super::weights::Rule;

/// A pattern made ready: pieces of ASCII between `%` are looked for as bytes, where that is what
/// the collation says.
#[derive(Clone, Debug)]
pub struct LikeMatcher {
    collation: &'static Collation,
    pattern: Vec<u8>,
    escape: Option<u32>,
    pieces: Option<Pieces>,
}

/// Literal pieces with any text between them.
#[derive(Clone, Debug)]
struct Pieces {
    /// None is empty.
    literals: Vec<Vec<u8>>,
    /// The pattern begins with `%`.
    opens: bool,
    /// The pattern ends with `%`.
    closes: bool,
    /// ASCII letters are equal in either case; only for texts of nothing but ASCII.
    folds: bool,
    start: Start,
}

/// Up to eight bytes that a text begins with; most texts differ there.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    mask: u64,
    /// In lower case, if letters are folded.
    wanted: u64,
}

impl Start {
    fn of(literal: &[u8], folds: bool) -> Self {
        let count = literal.len().min(8);
        let mut bytes = [0; 8];
        bytes[..count].copy_from_slice(&literal[..count]);
        let mask = if count == 0 { 0 } else { u64::MAX >> (64 - 8 * count) };
        let wanted = u64::from_le_bytes(bytes);
        Self { mask, wanted: if folds { lower(wanted) } else { wanted } }
    }

    /// Whether the text surely begins otherwise.
    #[inline]
    fn refuses(self, text: &[u8], folds: bool) -> bool {
        let Some(first) = text.first_chunk::<8>() else { return false };
        let first = u64::from_le_bytes(*first) & self.mask;
        match folds {
            // What is not ASCII may be equal to a letter.
            true => first & HIGH == 0 && lower(first) != self.wanted,
            false => first != self.wanted,
        }
    }
}

const HIGH: u64 = 0x8080_8080_8080_8080;

/// Eight bytes of ASCII in lower case.
#[inline]
fn lower(text: u64) -> u64 {
    // No sum carries into the next byte.
    let at_least = |byte: u8| (text + u64::from_le_bytes([0x80 - byte; 8])) & HIGH;
    text | (at_least(b'A') & !at_least(b'Z' + 1)) >> 2
}

impl LikeMatcher {
    /// See [`like`].
    pub fn new(collation: &'static Collation, pattern: &[u8], escape: Option<u32>) -> Self {
        let pieces = Pieces::of(collation, pattern, escape);
        Self { collation, pattern: pattern.to_vec(), escape, pieces }
    }

    /// Whether the text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match &self.pieces {
            Some(pieces) if pieces.start.refuses(text, pieces.folds) => false,
            Some(pieces) if !pieces.folds || text.is_ascii() => pieces.match_bytes(text),
            _ => like(self.collation, text, &self.pattern, self.escape),
        }
    }
}

impl Pieces {
    fn of(collation: &Collation, pattern: &[u8], escape: Option<u32>) -> Option<Self> {
        let folds = match collation.rule {
            Rule::GeneralCi | Rule::AsciiCi => true,
            Rule::Bytes | Rule::CodePoints => false,
            Rule::Latin1Swedish | Rule::UnicodeCi => return None,
        };
        if !pattern.is_ascii() {
            return None;
        }
        let mut literals: Vec<Vec<u8>> = Vec::new();
        let (mut at, mut opens, mut after_any) = (0, false, true);
        while let Some((next, length)) = token(collation, &pattern[at..], escape) {
            match next {
                Token::One => return None,
                Token::Any => {
                    opens |= at == 0;
                    after_any = true;
                }
                Token::Literal(from) => {
                    if after_any {
                        literals.push(Vec::new());
                    }
                    after_any = false;
                    let literal = &pattern[at + from..at + length];
                    literals.last_mut()?.extend_from_slice(literal);
                }
            }
            at += length;
        }
        let closes = after_any && !pattern.is_empty();
        let first = literals.first().filter(|_| !opens);
        let start = first.map_or(Start::default(), |literal| Start::of(literal, folds));
        Some(Self { literals, opens, closes, folds, start })
    }

    fn same(&self, a: &[u8], b: &[u8]) -> bool {
        if self.folds { a.eq_ignore_ascii_case(b) } else { a == b }
    }

    fn match_bytes(&self, text: &[u8]) -> bool {
        let mut rest = text;
        let mut literals = self.literals.as_slice();
        if !self.opens {
            let Some((first, others)) = literals.split_first() else { return text.is_empty() };
            if rest.len() < first.len() || !self.same(&rest[..first.len()], first) {
                return false;
            }
            rest = &rest[first.len()..];
            literals = others;
            if others.is_empty() && !self.closes {
                return rest.is_empty();
            }
        }
        if !self.closes
            && let Some((last, others)) = literals.split_last()
        {
            let Some(start) = rest.len().checked_sub(last.len()) else { return false };
            if !self.same(&rest[start..], last) {
                return false;
            }
            rest = &rest[..start];
            literals = others;
        }
        for literal in literals {
            match self.find(rest, literal) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        true
    }

    /// End of the first occurrence.
    fn find(&self, text: &[u8], literal: &[u8]) -> Option<usize> {
        let last = text.len().checked_sub(literal.len())?;
        let first = *literal.first()?;
        let other = match (self.folds, first.is_ascii_alphabetic()) {
            (true, true) => first ^ 0x20,
            _ => first,
        };
        let mut at = 0;
        loop {
            let ahead = text.get(at..=last)?;
            at += ahead.iter().position(|&byte| byte == first || byte == other)?;
            let end = at + literal.len();
            if self.same(&text[at..end], literal) {
                return Some(end);
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::all;
    use super::*;

    #[test]
    fn it_matches_what_like_matches() {
        let texts = [
            "",
            "a",
            "A",
            "abc",
            "xABCx",
            "é",
            "abcé",
            "Éabc",
            "aab",
            "abab",
            "a%b",
            "ab ",
            "Name 3abc",
            "NAME 3",
            "name 4abc",
            "Námé 3abc",
            "name[3abc",
            "Name 3abcdefgh",
            "[@`{AZaz",
        ];
        let patterns = [
            "name 3%",
            "Name 3a",
            "Name 3ABC",
            "Name 3abcdef%",
            "[@`{az%",
            "[@`{AZAZ",
            "`%",
            "",
            "%",
            "a",
            "a%",
            "%a",
            "%b%",
            "a%b",
            "%ab%ab%",
            "a\\%b",
            "%é",
            "a_c",
            "ab%ab",
            "%%",
        ];
        let mut matched = 0;
        for collation in all() {
            for text in texts {
                for pattern in patterns {
                    for escape in [Some(u32::from('\\')), None] {
                        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
                        let expected = like(collation, text, pattern, escape);
                        let found = LikeMatcher::new(collation, pattern, escape).matches(text);
                        assert_eq!(found, expected, "{}: {text:?} {pattern:?}", collation.name);
                        matched += u32::from(found);
                    }
                }
            }
        }
        assert!(matched > 100);
    }
}
