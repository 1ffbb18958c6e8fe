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
        Some(Self { literals, opens, closes, folds })
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
        let texts =
            ["", "a", "A", "abc", "xABCx", "é", "abcé", "Éabc", "aab", "abab", "a%b", "ab "];
        let patterns = [
            "", "%", "a", "a%", "%a", "%b%", "a%b", "%ab%ab%", "a\\%b", "%é", "a_c", "ab%ab", "%%",
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
