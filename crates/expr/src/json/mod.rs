//! JSON texts: parsing, paths, printing.
//!
//! 1. A [`Node`] borrows the text that it was parsed from: scalars and keys are kept as they were
//!    written, so that numbers and escapes come out as they went in.
//! 2. Members of an object stay in order, with their duplicates.
//! 3. Nothing here nests deeper than [`DEPTH_LIMIT`], so recursion over a node is bounded.

mod parse;
mod patch;
mod path;
mod print;

pub(crate) use parse::Parsed;
pub(crate) use patch::{Side, patched};
pub(crate) use path::{Path, Step, place};
pub(crate) use print::{escape, normalized, push_compact, push_detailed, push_loose, quote};

use std::borrow::Cow;

/// Nesting that is too deep to be read.
pub(crate) const DEPTH_LIMIT: usize = 32;

/// Why a text is no JSON or no path. Positions are the bytes that were read: where a character is
/// looked at before it is read, they are one less than its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It ends early.
    End,
    /// Something else should stand here.
    Syntax(usize),
    /// A character that JSON does not allow.
    Character(usize),
    /// A bad escape in a string.
    Escape(usize),
    /// Bytes or an escape of no character.
    Broken(usize),
    /// It nests too deep.
    Depth(usize),
}

/// A value within a text.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    /// The text of a scalar, or of an array or object as it was parsed.
    pub raw: &'a [u8],
    /// What it is.
    pub kind: Kind<'a>,
    /// Its end was read, too: false in what was parsed of a broken text.
    pub whole: bool,
}

/// Kinds of values.
#[derive(Clone, Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Boolean(bool),
    Number,
    /// `raw` has the quotes.
    String,
    Array(Vec<Node<'a>>),
    /// Keys without quotes, as written.
    Object(Vec<(&'a [u8], Node<'a>)>),
}

impl<'a> Node<'a> {
    /// The bytes between the quotes of a string.
    pub fn string_body(&self) -> Option<&'a [u8]> {
        match self.kind {
            Kind::String => self.raw.get(1..self.raw.len().saturating_sub(1)),
            _ => None,
        }
    }

    /// Neither an array nor an object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self.kind, Kind::Array(_) | Kind::Object(_))
    }

    /// The value of a number.
    pub fn number(&self) -> f64 {
        std::str::from_utf8(self.raw).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    /// Levels of nesting, 1 for a scalar.
    pub fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Array(list) => list.iter().map(Node::depth).max().unwrap_or(0),
            Kind::Object(list) => list.iter().map(|(_, node)| node.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether two values are equal: numbers by value, strings by their characters, objects
    /// whatever the order of their members.
    pub fn equals(&self, other: &Node<'_>) -> bool {
        if !self.whole || !other.whole {
            return false;
        }
        match (&self.kind, &other.kind) {
            (Kind::Array(a), Kind::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Kind::Object(a), Kind::Object(_)) => {
                matches!(&other.kind, Kind::Object(b) if a.len() == b.len())
                    && a.iter().all(|(key, a)| other.member(key).is_some_and(|b| a.equals(b)))
            }
            _ => self.scalar_equals(other),
        }
    }

    fn scalar_equals(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Boolean(a), Kind::Boolean(b)) => a == b,
            (Kind::Number, Kind::Number) => self.number() == other.number(),
            (Kind::String, Kind::String) => {
                self.string_body().map(unescape) == other.string_body().map(unescape)
            }
            _ => false,
        }
    }

    /// The first member of an object with this key, given as written in a text.
    pub fn member(&self, key: &[u8]) -> Option<&Node<'a>> {
        let Kind::Object(list) = &self.kind else { return None };
        list.iter().find(|(own, _)| same_key(own, key)).map(|(_, node)| node)
    }

    /// JSON_CONTAINS.
    pub fn contains(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            // Lists within the other are looked for in the whole list, too.
            (Kind::Array(_), Kind::Array(wanted)) => {
                wanted.iter().all(|wanted| self.contains(wanted))
            }
            (Kind::Array(own), _) => own.iter().any(|own| own.contains(other)),
            (Kind::Object(_), Kind::Object(wanted)) => wanted
                .iter()
                .all(|(key, wanted)| self.member(key).is_some_and(|own| own.contains(wanted))),
            _ => self.scalar_equals(other),
        }
    }

    /// Whether an array begins with all that another one has, at any depth; other nodes are equal.
    fn begins_with(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Array(own), Kind::Array(wanted)) => {
                own.len() >= wanted.len()
                    && own.iter().zip(wanted).all(|(own, wanted)| own.begins_with(wanted))
            }
            _ => self.equals(other),
        }
    }

    /// JSON_OVERLAPS.
    pub fn overlaps(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Array(a), Kind::Array(b)) => {
                a.iter().any(|a| b.iter().any(|b| a.begins_with(b)))
            }
            (Kind::Array(list), _) => list.iter().any(|own| own.equals(other)),
            (_, Kind::Array(list)) => list.iter().any(|own| own.equals(self)),
            (Kind::Object(a), Kind::Object(_)) => {
                a.iter().any(|(key, a)| other.member(key).is_some_and(|b| a.begins_with(b)))
            }
            _ => self.scalar_equals(other),
        }
    }
}

/// Whether two keys as written are the same key.
pub(crate) fn same_key(a: &[u8], b: &[u8]) -> bool {
    a == b || ((a.contains(&b'\\') || b.contains(&b'\\')) && unescape(a) == unescape(b))
}

/// The characters of a string as written between its quotes.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        if byte != b'\\' || at >= text.len() {
            out.push(byte);
            continue;
        }
        let escaped = text[at];
        at += 1;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => at += push_unicode(&text[at..], &mut out),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The character of `XXXX`, with the second half of a pair; returns the bytes read.
fn push_unicode(text: &[u8], out: &mut Vec<u8>) -> usize {
    let unit = |text: &[u8]| {
        let digits = std::str::from_utf8(text.get(..4)?).ok()?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(first) = unit(text) else { return 0 };
    let mut used = 4;
    let mut code_point = first;
    if (0xd800..0xdc00).contains(&first)
        && text.get(4..6) == Some(b"\\u")
        && let Some(second) = unit(&text[6..]).filter(|it| (0xdc00..0xe000).contains(it))
    {
        code_point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        used = 10;
    }
    let character = char::from_u32(code_point).unwrap_or('?');
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    used
}

/// Parses a whole text.
pub(crate) fn parse(text: &[u8]) -> Result<Node<'_>, Fault> {
    let parsed = Parsed::of(text);
    match (parsed.node, parsed.fault.or(parsed.tail)) {
        (Some(node), None) => Ok(node),
        (_, fault) => Err(fault.unwrap_or(Fault::End)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_json() {
        for good in ["1", " [1 , 2.5e-3 ] ", r#"{"a":{"b":[null,true,false,"x\u00e4\n"]}}"#, "-0"] {
            assert!(parse(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["", "01", "-", "[1,]", "{a}", "nul", "[1] x", "\"a", "{\"a\" 1}", "+1"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(deep(DEPTH_LIMIT - 1).as_bytes()).is_ok());
        assert_eq!(parse(deep(100_000).as_bytes()).map(|_| ()), Err(Fault::Depth(32)));
    }

    #[test]
    fn escapes_are_read() {
        let text = unescape(br"a\n\u00e4\ud83d\ude00\/");
        assert_eq!(text, "a\nä😀/".as_bytes());
    }
}
