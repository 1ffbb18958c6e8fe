//! LIKE and substring search under a collation.

use super::Collation;
use super::weights::Rule;

/// Matches `text` against a LIKE pattern. `escape` is the escape character's code point
/// (`None` for ESCAPE '').
///
/// Backtracks only to the last `%`, which is enough because an earlier `%` cannot match better
/// once a later one was reached: time is at most the product of the lengths.
pub fn like(collation: &Collation, text: &[u8], pattern: &[u8], escape: Option<u32>) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    loop {
        match token(collation, &pattern[p..], escape) {
            Some((Token::Any, length)) => {
                p += length;
                resume = Some((p, t));
                continue;
            }
            Some((Token::One, length)) if t < text.len() => {
                t += collation.charset.character_bytes(&text[t..]);
                p += length;
                continue;
            }
            Some((Token::Literal(from), length)) if t < text.len() => {
                let size = collation.charset.character_bytes(&text[t..]);
                if same(collation, &text[t..t + size], &pattern[p + from..p + length]) {
                    t += size;
                    p += length;
                    continue;
                }
            }
            None if t == text.len() => return true,
            _ => {}
        }
        let Some((after, start)) = resume else { return false };
        if start >= text.len() {
            return false;
        }
        t = start + collation.charset.character_bytes(&text[start..]);
        p = after;
        resume = Some((after, t));
    }
}

pub(super) enum Token {
    /// `%`
    Any,
    /// `_`
    One,
    /// A character that begins at this offset.
    Literal(usize),
}

/// The first element of a pattern and its length in bytes.
pub(super) fn token(
    collation: &Collation,
    pattern: &[u8],
    escape: Option<u32>,
) -> Option<(Token, usize)> {
    let first = *pattern.first()?;
    let charset = collation.charset;
    let length = charset.character_bytes(pattern);
    let is_escape = escape.is_some_and(|escape| {
        (length == 1 && u32::from(first) == escape)
            || (length > 1 && charset.decode(pattern).is_some_and(|(c, _)| c == escape))
    });
    if is_escape && pattern.len() > length {
        let next = charset.character_bytes(&pattern[length..]);
        return Some((Token::Literal(length), length + next));
    }
    Some(match first {
        b'%' => (Token::Any, 1),
        b'_' => (Token::One, 1),
        _ => (Token::Literal(0), length),
    })
}

/// Whether two characters are equal; LIKE compares character by character, blanks count.
fn same(collation: &Collation, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    match collation.rule {
        Rule::Bytes | Rule::CodePoints => false,
        _ => collation.weights(a).eq(collation.weights(b)),
    }
}

/// The literal characters that every match of the pattern begins with, and whether the
/// pattern is exactly these followed by one `%`.
pub fn like_prefix(collation: &Collation, pattern: &[u8], escape: Option<u32>) -> (Vec<u8>, bool) {
    let (mut prefix, mut p) = (Vec::new(), 0);
    while let Some((token, length)) = token(collation, &pattern[p..], escape) {
        let Token::Literal(from) = token else {
            return (prefix, &pattern[p..] == b"%");
        };
        prefix.extend_from_slice(&pattern[p + from..p + length]);
        p += length;
    }
    (prefix, false)
}

/// Byte offset of the first occurrence of `needle` at or after byte `from`.
pub fn find(collation: &Collation, text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    if needle.is_empty() {
        return (from <= text.len()).then_some(from);
    }
    let charset = collation.charset;
    let mut at = from;
    while at < text.len() {
        if starts_with(collation, &text[at..], needle) {
            return Some(at);
        }
        at += charset.character_bytes(&text[at..]);
    }
    None
}

fn starts_with(collation: &Collation, text: &[u8], needle: &[u8]) -> bool {
    if collation.compares_code_points() {
        return text.starts_with(needle);
    }
    // The server compares as many bytes as the needle has: 'é' is not found in 'e'.
    text.get(..needle.len()).is_some_and(|text| collation.equal_unpadded(text, needle))
}
