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

/// Appends a symbol.
#[inline]
fn push_symbol(symbol: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (symbol >> shift & 0x3f) as u8;
    match symbol {
        0..0x80 => out.push(symbol as u8),
        0x80..0x800 => out.extend([0xc0 | (symbol >> 6) as u8, tail(0)]),
        0x800..0x1_0000 => out.extend([0xe0 | (symbol >> 12) as u8, tail(6), tail(0)]),
        0x1_0000..0x20_0000 => {
            out.extend([0xf0 | (symbol >> 18) as u8, tail(12), tail(6), tail(0)]);
        }
        _ => {
            out.extend([0xf8 | (symbol >> 24) as u8, tail(18), tail(12), tail(6), tail(0)]);
        }
    }
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
    for weight in collation.weights(text) {
        if weight == pad {
            blanks += 1;
            continue;
        }
        let blank = if weight < pad { pad } else { pad + 2 };
        while blanks > 0 {
            push_symbol(blank, out);
            blanks -= 1;
        }
        push_symbol(if weight < pad { weight } else { weight + 2 }, out);
    }
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
