//! A statement without its literals: the key of a plan cache.
//!
//! 1. Two statements with equal fingerprints have the same tokens, except for the values of
//!    their literals; the kinds of literals in corresponding places are equal.
//! 2. What stands between two tokens is part of it, since columns are named by the text of their
//!    expression; what stands before the first and behind the last is not.
//! 3. Words keep their case, since names of tables can differ by it.
//!
//! A literal in the text is not always a parameter of the plan (`LIMIT 10`, `ORDER BY 1`, the
//! length of a CAST): whoever caches a plan must check that each literal became one.

use crate::ParseOptions;
use crate::lexer::{Kind, Lexer, Symbol};

/// Kind of a literal that was stripped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralKind {
    /// Digits.
    Integer,
    /// Digits with a point.
    Decimal,
    /// With an exponent.
    Float,
    /// Between quotes.
    Text,
}

/// Where a literal stands in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralRange {
    /// Its kind.
    pub kind: LiteralKind,
    /// Offset of its first byte.
    pub start: usize,
    /// Offset behind its last byte.
    pub end: usize,
}

/// A statement's tokens with literals replaced; reused from statement to statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// The text with marks in the place of literals.
    pub text: Vec<u8>,
    /// The literals in text order.
    pub literals: Vec<LiteralRange>,
    /// Offset in bytes behind the statement and its `;`.
    pub end: usize,
}

impl Fingerprint {
    /// Takes the first statement of `text`. False if it has a token that cannot be read; the
    /// parser gives the error then.
    pub fn read(&mut self, text: &[u8], options: &ParseOptions) -> bool {
        self.text.clear();
        self.literals.clear();
        let mut lexer = Lexer::without_keywords(text, options);
        // End of the token before.
        let mut last = None;
        loop {
            let token = lexer.next();
            let (kind, mark) = match token.kind {
                Kind::End | Kind::Symbol(Symbol::Semicolon) => {
                    self.end = token.end;
                    return true;
                }
                Kind::Invalid => return false,
                Kind::Integer => (LiteralKind::Integer, b"?i "),
                Kind::Decimal => (LiteralKind::Decimal, b"?d "),
                Kind::Float => (LiteralKind::Float, b"?f "),
                Kind::Text => (LiteralKind::Text, b"?t "),
                _ => {
                    self.text.extend_from_slice(&text[last.unwrap_or(token.start)..token.end]);
                    last = Some(token.end);
                    continue;
                }
            };
            self.text.extend_from_slice(&text[last.unwrap_or(token.start)..token.start]);
            self.text.extend_from_slice(mark);
            last = Some(token.end);
            self.literals.push(LiteralRange { kind, start: token.start, end: token.end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut fingerprint = Fingerprint::default();
        if !fingerprint.read(text.as_bytes(), &ParseOptions::default()) {
            return "unreadable".into();
        }
        let literals: Vec<&str> =
            fingerprint.literals.iter().map(|l| &text[l.start..l.end]).collect();
        format!("{}| {}", String::from_utf8_lossy(&fingerprint.text), literals.join(" "))
    }

    #[test]
    fn literals_are_stripped_and_nothing_else_within_the_statement() {
        assert_eq!(
            read(" /* 7 */ SELECT c  FROM\tsbtest1 WHERE id=42 -- x"),
            "SELECT c  FROM\tsbtest1 WHERE id=?i | 42"
        );
        assert_eq!(
            read("INSERT INTO t VALUES (1, 'a''b', 1.5, 2e3, NULL)"),
            "INSERT INTO t VALUES (?i , ?t , ?d , ?f , NULL)| 1 'a''b' 1.5 2e3"
        );
        assert_eq!(read("SELECT `a 1`, x'41', b1 FROM t2"), "SELECT `a 1`, x'41', b1 FROM t2| ");
        assert_ne!(read("SELECT a + a FROM t"), read("SELECT a  + a FROM t"));
    }

    #[test]
    fn comments_within_the_statement_count() {
        assert_eq!(read("SELECT /* 1 */ 2"), "SELECT /* 1 */ ?i | 2");
        assert_eq!(read("SELECT /*!40000 1 + */ 2"), "SELECT /*!40000 ?i  + */ ?i | 1 2");
        assert_eq!(read("/* 1 */ SELECT 2 -- 3"), read("SELECT 2"));
    }

    #[test]
    fn statements_end_at_their_semicolon() {
        let mut fingerprint = Fingerprint::default();
        assert!(fingerprint.read(b"SELECT 1 ; SELECT 2", &ParseOptions::default()));
        assert_eq!((fingerprint.end, fingerprint.literals.len()), (10, 1));
        assert_eq!(read("SELECT 'abc"), "unreadable");
    }
}
