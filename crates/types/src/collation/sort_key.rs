//! Sort keys: bytes whose memcmp order is the order of the collation, self-terminating.
//!
//! 1. PAD SPACE: with P the weight of a blank, weights become symbols: `w < P` stays, a blank is
//!    P or P + 2, the end of the text is P + 1, `w > P` becomes w + 2. A blank is P when the
//!    first weight after the run of blanks it belongs to is smaller than P, else P + 2; blanks
//!    at the end of the text are left out. So "a" stands where "a" followed by blanks without
//!    end belongs.
//! 2. NO PAD on weights: the end is symbol 0, a weight becomes w + 1.
//! 3. A symbol is coded as UTF-8 codes a code point (carried on to five bytes), which keeps
//!    order.
//! 4. The binary collation: bytes as they are, 0x00 as 00 FF, the end as 00 00.

use super::Collation;
use super::weights::Rule;

/// The bytes of a symbol, and how many they are.
#[inline]
fn symbol_bytes(symbol: u32) -> ([u8; 5], usize) {
    let tail = |shift: u32| 0x80 | (symbol >> shift & 0x3f) as u8;
    match symbol {
        0..0x80 => ([symbol as u8, 0, 0, 0, 0], 1),
        0x80..0x800 => ([0xc0 | (symbol >> 6) as u8, tail(0), 0, 0, 0], 2),
        0x800..0x1_0000 => ([0xe0 | (symbol >> 12) as u8, tail(6), tail(0), 0, 0], 3),
        0x1_0000..0x20_0000 => ([0xf0 | (symbol >> 18) as u8, tail(12), tail(6), tail(0), 0], 4),
        _ => ([0xf8 | (symbol >> 24) as u8, tail(18), tail(12), tail(6), tail(0)], 5),
    }
}

/// Appends a symbol.
#[inline]
fn push_symbol(symbol: u32, out: &mut Vec<u8>) {
    if symbol < 0x80 {
        return out.push(symbol as u8);
    }
    let (bytes, length) = symbol_bytes(symbol);
    out.extend_from_slice(&bytes[..length]);
}

/// Appends the sort key of a text with its end.
pub fn push_sort_key(collation: &Collation, text: &[u8], out: &mut Vec<u8>) {
    push_prefix_sort_key(collation, text, out);
    if collation.is_binary() {
        out.extend([0, 0]);
    } else if collation.pads {
        push_symbol(collation.rule.pad_weight() + 1, out);
    } else {
        push_symbol(0, out);
    }
}

/// Appends the sort key of a text without its end (and without blanks at its end where they
/// do not count): a prefix of the sort key of every longer text that begins with its weights.
pub fn push_prefix_sort_key(collation: &Collation, text: &[u8], out: &mut Vec<u8>) {
    if collation.is_binary() {
        for &byte in text {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
        return;
    }
    if !collation.pads {
        for weight in collation.weights(text) {
            push_symbol(weight + 1, out);
        }
        return;
    }
    let pad = collation.rule.pad_weight();
    let mut blanks = 0u32;
    let ascii = push_ascii(collation.rule, text, &mut blanks, out);
    for weight in collation.weights(&text[ascii..]) {
        if weight == pad {
            blanks += 1;
            continue;
        }
        push_blanks(&mut blanks, if weight < pad { pad } else { pad + 2 }, out);
        push_symbol(if weight < pad { weight } else { weight + 2 }, out);
    }
}

fn push_blanks(blanks: &mut u32, symbol: u32, out: &mut Vec<u8>) {
    for _ in 0..std::mem::take(blanks) {
        push_symbol(symbol, out);
    }
}

/// Bytes looked at in one step of [`push_ascii`]: what a vector register holds.
const STEP: usize = 16;

/// Whether the character has a weight above the blank's and a symbol of one byte under the rules
/// that fold or keep ASCII.
#[inline]
fn is_plain(byte: u8) -> bool {
    byte.wrapping_sub(0x21) < 0x7e - 0x21
}

/// The symbol of a plain character.
#[inline]
fn plain_symbol(byte: u8, folds: bool) -> u8 {
    let lower = folds && byte.is_ascii_lowercase();
    byte - if lower { 0x20 } else { 0 } + 2
}

/// The symbols of the plain characters and blanks that the text begins with, under the rules for
/// which ASCII needs no table; returns the bytes done. Blanks before what follows are counted.
fn push_ascii(rule: Rule, text: &[u8], blanks: &mut u32, out: &mut Vec<u8>) -> usize {
    let folds = match rule {
        Rule::GeneralCi | Rule::AsciiCi => true,
        Rule::CodePoints | Rule::Bytes => false,
        Rule::Latin1Swedish | Rule::UnicodeCi => return 0,
    };
    let pad = rule.pad_weight();
    out.reserve(text.len() + 1);
    let mut at = 0;
    while at < text.len() {
        if let Some(step) = text[at..].first_chunk::<STEP>()
            && step.iter().fold(true, |plain, &byte| plain & is_plain(byte))
        {
            push_blanks(blanks, pad + 2, out);
            out.extend_from_slice(&step.map(|byte| plain_symbol(byte, folds)));
            at += STEP;
            continue;
        }
        let end = text.len().min(at + STEP);
        for &byte in &text[at..end] {
            if byte == b' ' {
                *blanks += 1;
            } else if is_plain(byte) {
                push_blanks(blanks, pad + 2, out);
                out.push(plain_symbol(byte, folds));
            } else {
                return at;
            }
            at += 1;
        }
    }
    at
}

/// The first eight bytes of a text's sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKeyHead {
    /// They as a number, zeros behind a shorter key: of two texts the one with the smaller number
    /// comes first.
    pub number: u64,
    /// The key is no longer: a text with the same number is equal.
    pub is_whole: bool,
}

/// The head of a text's sort key.
#[inline]
pub fn sort_key_head(collation: &Collation, text: &[u8]) -> SortKeyHead {
    let folds = match collation.rule {
        Rule::GeneralCi | Rule::AsciiCi => true,
        Rule::CodePoints | Rule::Bytes => false,
        Rule::Latin1Swedish | Rule::UnicodeCi => return head_by_weights(collation, text),
    };
    if !collation.pads {
        return head_by_weights(collation, text);
    }
    if let Some(first) = text.first_chunk::<8>() {
        return match plain_symbols(u64::from_be_bytes(*first), folds) {
            Some(number) => SortKeyHead { number, is_whole: false },
            None => head_by_weights(collation, text),
        };
    }
    if text.last() == Some(&b' ') {
        return head_by_weights(collation, text);
    }
    let mut bytes = [b'A'; 8];
    bytes[..text.len()].copy_from_slice(text);
    let Some(symbols) = plain_symbols(u64::from_be_bytes(bytes), folds) else {
        return head_by_weights(collation, text);
    };
    // The end of the text is the symbol behind its last character.
    let unused_bits = 8 * (8 - text.len() as u32);
    let kept = symbols & u64::MAX.checked_shl(unused_bits).unwrap_or(0);
    let end = u64::from(collation.rule.pad_weight() + 1) << (unused_bits - 8);
    SortKeyHead { number: kept | end, is_whole: true }
}

/// A one in each byte.
const ONES: u64 = u64::MAX / 0xff;
/// The highest bit of each byte.
const HIGH: u64 = 0x80 * ONES;

/// The symbols of eight characters if all are plain ([`is_plain`]) or blanks of which the last is
/// no blank, so that all blanks stand before what is greater than them.
#[inline]
fn plain_symbols(bytes: u64, folds: bool) -> Option<u64> {
    if bytes & HIGH != 0 || bytes as u8 == b' ' {
        return None;
    }
    // The highest bit of each byte tells whether it is `first` or above.
    let from = |first: u8| bytes + ONES * u64::from(0x80 - first);
    if from(0x20) & !from(0x7e) & HIGH != HIGH {
        return None;
    }
    let lower = if folds { from(b'a') & !from(b'z' + 1) & HIGH } else { 0 };
    Some(bytes - (lower >> 2) + 2 * ONES)
}

/// Collects the head.
#[derive(Default)]
struct HeadBytes {
    number: u64,
    length: u32,
}

impl HeadBytes {
    #[inline]
    fn push(&mut self, byte: u8) {
        if self.length < 8 {
            self.number |= u64::from(byte) << (56 - 8 * self.length);
        }
        self.length += 1;
    }

    #[inline]
    fn push_symbol(&mut self, symbol: u32) {
        let (bytes, length) = symbol_bytes(symbol);
        bytes[..length].iter().for_each(|&byte| self.push(byte));
    }

    fn is_full(&self) -> bool {
        self.length > 8
    }

    fn head(&self) -> SortKeyHead {
        SortKeyHead { number: self.number, is_whole: !self.is_full() }
    }
}

/// The head of any text, no further than it must be looked at.
fn head_by_weights(collation: &Collation, text: &[u8]) -> SortKeyHead {
    let mut head = HeadBytes::default();
    if collation.is_binary() {
        for &byte in text.iter().take(9) {
            head.push(byte);
            if byte == 0 {
                head.push(0xff);
            }
        }
        head.push(0);
        head.push(0);
        return head.head();
    }
    let pad = collation.rule.pad_weight();
    let mut blanks = 0u32;
    for weight in collation.weights(text) {
        if !collation.pads {
            head.push_symbol(weight + 1);
        } else if weight == pad {
            blanks += 1;
            continue;
        } else {
            let blank = if weight < pad { pad } else { pad + 2 };
            (0..std::mem::take(&mut blanks).min(9)).for_each(|_| head.push_symbol(blank));
            head.push_symbol(if weight < pad { weight } else { weight + 2 });
        }
        if head.is_full() {
            return head.head();
        }
    }
    head.push_symbol(if collation.pads { pad + 1 } else { 0 });
    head.head()
}

/// Length in bytes of the sort key at the start of `key`, its end included; `None` if it does
/// not end. `mask` is 0xff for a key stored inverted (descending), else 0.
pub fn sort_key_end(collation: &Collation, key: &[u8], mask: u8) -> Option<usize> {
    if collation.is_binary() {
        let mut at = 0;
        loop {
            at += key.get(at..)?.iter().position(|&byte| byte == mask)?;
            if *key.get(at + 1)? == mask {
                return Some(at + 2);
            }
            at += 2;
        }
    }
    let mut end = Vec::with_capacity(2);
    push_symbol(if collation.pads { collation.rule.pad_weight() + 1 } else { 0 }, &mut end);
    // Symbols are coded as in UTF-8, so the end's bytes occur only as the end.
    end.iter_mut().for_each(|byte| *byte ^= mask);
    if let [only] = end[..] {
        return key.iter().position(|&byte| byte == only).map(|at| at + 1);
    }
    key.windows(end.len()).position(|window| window == end).map(|at| at + end.len())
}
