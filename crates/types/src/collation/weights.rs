//! Where weights come from: the code point, or a generated table (see `data/generate.sh`).

use crate::charset::Charset;

/// How characters get their weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Each byte is its own weight.
    Bytes,
    /// Each code point is its own weight.
    CodePoints,
    /// utf8_general_ci: one weight for a character; all above U+FFFF have U+FFFD's.
    GeneralCi,
    /// Letters without case.
    AsciiCi,
    /// latin1_swedish_ci.
    Latin1Swedish,
    /// UCA 4.0.0: any number of weights for a character.
    UnicodeCi,
}

/// A table of `generate.sh` for U+0000..U+FFFF.
struct Table(&'static [u8]);

static GENERAL: Table = Table(include_bytes!("../../data/general_ci.bin"));
static UPPER: Table = Table(include_bytes!("../../data/upper.bin"));
static LOWER: Table = Table(include_bytes!("../../data/lower.bin"));
static UNICODE: Table = Table(include_bytes!("../../data/unicode_ci.bin"));
static LATIN1: &[u8; 768] = include_bytes!("../../data/latin1.bin");

/// Pages of `unicode_ci.bin`.
const UNICODE_PAGES: usize = 59;
/// Start of its pool of weights, in bytes.
const UNICODE_POOL: usize = 256 + 512 * UNICODE_PAGES;
/// Weight of a byte that is no character, plus the byte.
const ILLEGAL: u32 = 0xff_0000;

impl Table {
    fn u16_at(&self, offset_bytes: usize) -> u16 {
        u16::from_le_bytes([self.0[offset_bytes], self.0[offset_bytes + 1]])
    }

    /// The entry of a code point; `None` if its page is not in the table.
    fn entry(&self, code_point: u32) -> Option<u16> {
        let page = usize::from(self.0[(code_point >> 8) as usize & 0xff]);
        let low = (code_point & 0xff) as usize;
        (page > 0).then(|| self.u16_at(256 + 512 * (page - 1) + 2 * low))
    }

    /// The entry of a code point, itself if there is none.
    fn map(&self, code_point: u32) -> u32 {
        if code_point > 0xffff {
            return code_point;
        }
        self.entry(code_point).map_or(code_point, u32::from)
    }
}

impl Rule {
    /// Weight of a blank.
    pub(super) fn pad_weight(self) -> u32 {
        match self {
            Rule::UnicodeCi => 0x0209,
            _ => 0x20,
        }
    }
}

/// Iterator over the weights of a text.
pub(super) struct Weights<'a> {
    rule: Rule,
    charset: Charset,
    text: &'a [u8],
    /// Remaining weights of a character that has several: bytes of the pool, or implicit.
    more: More,
}

enum More {
    None,
    One(u32),
    Pool { at: usize, count: u16 },
}

impl<'a> Weights<'a> {
    pub(super) fn new(rule: Rule, charset: Charset, text: &'a [u8]) -> Self {
        Self { rule, charset, text, more: More::None }
    }

    fn unicode(&mut self, code_point: u32) -> Option<u32> {
        if code_point > 0xffff {
            return Some(0xfffd);
        }
        let Some(entry) = UNICODE.entry(code_point) else {
            let base = match code_point {
                0x4e00..=0x9fa5 => 0xfb40,
                0x3400..=0x4db5 => 0xfb80,
                _ => 0xfbc0,
            };
            self.more = More::One((code_point & 0x7fff) | 0x8000);
            return Some(base + (code_point >> 15));
        };
        let at = UNICODE_POOL + 2 * usize::from(entry);
        self.more = More::Pool { at: at + 2, count: UNICODE.u16_at(at) };
        self.pending()
    }

    fn pending(&mut self) -> Option<u32> {
        match self.more {
            More::None | More::Pool { count: 0, .. } => {
                self.more = More::None;
                None
            }
            More::One(weight) => {
                self.more = More::None;
                Some(weight)
            }
            More::Pool { at, count } => {
                self.more = More::Pool { at: at + 2, count: count - 1 };
                Some(u32::from(UNICODE.u16_at(at)))
            }
        }
    }
}

impl Iterator for Weights<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if !matches!(self.more, More::None)
                && let Some(weight) = self.pending()
            {
                return Some(weight);
            }
            let (&first, rest) = self.text.split_first()?;
            match self.rule {
                Rule::Bytes => {
                    self.text = rest;
                    return Some(u32::from(first));
                }
                Rule::AsciiCi => {
                    self.text = rest;
                    return Some(u32::from(first.to_ascii_uppercase()));
                }
                Rule::Latin1Swedish => {
                    self.text = rest;
                    return Some(u32::from(LATIN1[usize::from(first)]));
                }
                Rule::GeneralCi if first < 0x80 => {
                    self.text = rest;
                    return Some(u32::from(first.to_ascii_uppercase()));
                }
                Rule::CodePoints if first < 0x80 => {
                    self.text = rest;
                    return Some(u32::from(first));
                }
                _ => {}
            }
            let Some((code_point, length)) = self.charset.decode(self.text) else {
                self.text = rest;
                return Some(ILLEGAL + u32::from(first));
            };
            self.text = &self.text[length..];
            match self.rule {
                Rule::GeneralCi if code_point > 0xffff => return Some(0xfffd),
                Rule::GeneralCi => return Some(GENERAL.map(code_point)),
                Rule::UnicodeCi => {
                    if let Some(weight) = self.unicode(code_point) {
                        return Some(weight);
                    }
                }
                _ => return Some(code_point),
            }
        }
    }
}

/// Appends text in upper or lower case.
pub(super) fn push_case(charset: Charset, text: &[u8], upper: bool, out: &mut Vec<u8>) {
    if charset == Charset::Binary {
        out.extend_from_slice(text);
        return;
    }
    let table = if upper { &UPPER } else { &LOWER };
    let mut at = 0;
    while at < text.len() {
        let first = text[at];
        if first < 0x80 {
            out.push(if upper { first.to_ascii_uppercase() } else { first.to_ascii_lowercase() });
            at += 1;
            continue;
        }
        match charset.decode(&text[at..]) {
            Some((code_point, length)) => {
                if !charset.encode(table.map(code_point), out) {
                    out.extend_from_slice(&text[at..at + length]);
                }
                at += length;
            }
            None => {
                out.push(first);
                at += 1;
            }
        }
    }
}
