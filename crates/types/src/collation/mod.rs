//! Collations: comparison, hashing and sort keys of text.
//!
//! 1. Text is a sequence of weights. All operations here are defined on the weights, so that
//!    `compare`, `hash_into` and `push_sort_key` always agree.
//! 2. A PAD SPACE collation compares as if the shorter text were followed by blanks without
//!    end; a NO PAD one ends it.
//! 3. Weights never change once an index was made with them
//!    (`IndexDefinition::collation_version`, now 1).

mod like;
mod like_matcher;
mod sort_key;
mod weights;

pub use like::{find, like, like_prefix};
pub use like_matcher::LikeMatcher;
pub use sort_key::{SortKeyHead, push_prefix_sort_key, push_sort_key, sort_key_end, sort_key_head};

use crate::charset::Charset;
use crate::column_type::CollationId;
use std::cmp::Ordering;
use std::hash::Hasher;
use weights::Rule;

/// Version of the weight tables.
pub const COLLATION_VERSION: u16 = 1;

/// A row of the collation table.
#[derive(Debug)]
pub struct Collation {
    /// Number in the protocol.
    pub id: CollationId,
    /// Name.
    pub name: &'static str,
    /// Character set.
    pub charset: Charset,
    /// Default of its character set.
    pub is_default: bool,
    /// Trailing blanks do not count.
    pub pads: bool,
    rule: Rule,
}

const fn row(
    id: u16,
    name: &'static str,
    charset: Charset,
    is_default: bool,
    pads: bool,
    rule: Rule,
) -> Collation {
    Collation { id: CollationId(id), name, charset, is_default, pads, rule }
}

static COLLATIONS: [Collation; 16] = [
    row(8, "latin1_swedish_ci", Charset::Latin1, true, true, Rule::Latin1Swedish),
    row(11, "ascii_general_ci", Charset::Ascii, true, true, Rule::AsciiCi),
    row(33, "utf8mb3_general_ci", Charset::Utf8mb3, true, true, Rule::GeneralCi),
    row(45, "utf8mb4_general_ci", Charset::Utf8mb4, true, true, Rule::GeneralCi),
    row(46, "utf8mb4_bin", Charset::Utf8mb4, false, true, Rule::CodePoints),
    row(47, "latin1_bin", Charset::Latin1, false, true, Rule::Bytes),
    row(63, "binary", Charset::Binary, true, false, Rule::Bytes),
    row(65, "ascii_bin", Charset::Ascii, false, true, Rule::Bytes),
    row(83, "utf8mb3_bin", Charset::Utf8mb3, false, true, Rule::CodePoints),
    row(192, "utf8mb3_unicode_ci", Charset::Utf8mb3, false, true, Rule::UnicodeCi),
    row(224, "utf8mb4_unicode_ci", Charset::Utf8mb4, false, true, Rule::UnicodeCi),
    row(1032, "latin1_swedish_nopad_ci", Charset::Latin1, false, false, Rule::Latin1Swedish),
    row(1069, "utf8mb4_general_nopad_ci", Charset::Utf8mb4, false, false, Rule::GeneralCi),
    row(1070, "utf8mb4_nopad_bin", Charset::Utf8mb4, false, false, Rule::CodePoints),
    row(1071, "latin1_nopad_bin", Charset::Latin1, false, false, Rule::Bytes),
    row(1248, "utf8mb4_unicode_nopad_ci", Charset::Utf8mb4, false, false, Rule::UnicodeCi),
];

/// All collations, by number.
pub fn all() -> &'static [Collation] {
    &COLLATIONS
}

/// A collation by name, case-insensitively; `utf8_...` means `utf8mb3_...`.
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let equal = |collation: &&Collation| {
        collation.name.eq_ignore_ascii_case(name)
            || name.get(..5).is_some_and(|head| {
                head.eq_ignore_ascii_case("utf8_")
                    && collation
                        .name
                        .strip_prefix("utf8mb3_")
                        .is_some_and(|rest| rest.eq_ignore_ascii_case(&name[5..]))
            })
    };
    COLLATIONS.iter().find(equal)
}

/// The default collation of a character set.
pub fn default_of(charset: Charset) -> &'static Collation {
    let found = COLLATIONS.iter().find(|c| c.is_default && c.charset == charset);
    found.unwrap_or(&COLLATIONS[3])
}

/// The `_bin` collation of a character set.
pub fn binary_of(charset: Charset) -> &'static Collation {
    let id = match charset {
        Charset::Binary => 63,
        Charset::Ascii => 65,
        Charset::Latin1 => 47,
        Charset::Utf8mb3 => 83,
        Charset::Utf8mb4 => 46,
    };
    CollationId(id).info()
}

impl CollationId {
    /// The table row; an unknown number is taken for utf8mb4_general_ci.
    pub fn info(self) -> &'static Collation {
        match self.0 {
            45 => &COLLATIONS[3],
            63 => &COLLATIONS[6],
            id => COLLATIONS.iter().find(|c| c.id.0 == id).unwrap_or(&COLLATIONS[3]),
        }
    }

    /// Whether the number is in the table.
    pub fn is_known(self) -> bool {
        COLLATIONS.iter().any(|c| c.id == self)
    }

    /// Character set.
    pub fn charset(self) -> Charset {
        self.info().charset
    }

    /// Name.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl Collation {
    /// The collation of bytes.
    pub fn is_binary(&self) -> bool {
        self.charset == Charset::Binary
    }

    /// A `_bin` collation (or binary itself).
    pub fn compares_code_points(&self) -> bool {
        matches!(self.rule, Rule::Bytes | Rule::CodePoints)
    }

    /// Compares two texts of this collation's character set.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.rule {
            Rule::Bytes | Rule::CodePoints => self.compare_bytes(a, b),
            Rule::GeneralCi => self.compare_general(a, b),
            _ => self.compare_weights(a, b),
        }
    }

    /// Whether two texts are equal.
    #[inline]
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || self.compare(a, b) == Ordering::Equal
    }

    /// Whether two texts are equal when blanks at their ends count.
    pub fn equal_unpadded(&self, a: &[u8], b: &[u8]) -> bool {
        if matches!(self.rule, Rule::Bytes | Rule::CodePoints) {
            return a == b;
        }
        a == b || self.weights(a).eq(self.weights(b))
    }

    /// UTF-8 byte order is code point order.
    fn compare_bytes(&self, a: &[u8], b: &[u8]) -> Ordering {
        let common = a.len().min(b.len());
        let order = a[..common].cmp(&b[..common]);
        if order != Ordering::Equal || a.len() == b.len() {
            return order;
        }
        if !self.pads {
            return a.len().cmp(&b.len());
        }
        let (rest, swapped) =
            if a.len() > b.len() { (&a[common..], false) } else { (&b[common..], true) };
        let order =
            rest.iter().find(|&&byte| byte != b' ').map_or(Ordering::Equal, |byte| byte.cmp(&b' '));
        if swapped { order.reverse() } else { order }
    }

    fn compare_general(&self, a: &[u8], b: &[u8]) -> Ordering {
        let common = a.len().min(b.len());
        let mut at = equal_prefix(a, b);
        while at < common && a[at] < 0x80 && b[at] < 0x80 {
            let (x, y) = (a[at].to_ascii_uppercase(), b[at].to_ascii_uppercase());
            if x != y {
                return x.cmp(&y);
            }
            at += 1;
        }
        if at == a.len() && at == b.len() {
            return Ordering::Equal;
        }
        self.compare_weights(&a[at..], &b[at..])
    }

    fn compare_weights(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (mut x, mut y) = (self.weights(a), self.weights(b));
        let end = if self.pads { Some(self.rule.pad_weight()) } else { None };
        loop {
            let pair = match (x.next(), y.next()) {
                (None, None) => return Ordering::Equal,
                pair => pair,
            };
            let order = pair.0.or(end).cmp(&pair.1.or(end));
            if order != Ordering::Equal {
                return order;
            }
        }
    }

    /// The weights of a text.
    fn weights<'a>(&self, text: &'a [u8]) -> weights::Weights<'a> {
        weights::Weights::new(self.rule, self.charset, text)
    }

    /// Feeds a hasher so that equal texts hash alike.
    pub fn hash_into(&self, text: &[u8], state: &mut impl Hasher) {
        let pad = self.rule.pad_weight();
        let mut blanks = 0u32;
        for weight in self.weights(text) {
            if self.pads && weight == pad {
                blanks += 1;
                continue;
            }
            for _ in 0..blanks {
                state.write_u32(pad);
            }
            blanks = 0;
            state.write_u32(weight);
        }
        state.write_u8(0xff);
    }

    /// Appends the text in upper case.
    pub fn push_upper(&self, text: &[u8], out: &mut Vec<u8>) {
        weights::push_case(self.charset, text, true, out);
    }

    /// Appends the text in lower case.
    pub fn push_lower(&self, text: &[u8], out: &mut Vec<u8>) {
        weights::push_case(self.charset, text, false, out);
    }
}

/// Length of a prefix in which both texts have the same bytes, ending between characters of
/// UTF-8; a multiple of eight bytes, less what is needed for that.
fn equal_prefix(a: &[u8], b: &[u8]) -> usize {
    let same = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(x, y)| x == y).count() * 8;
    let continues = |text: &[u8], at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut at = same;
    while at > 0 && (continues(a, at) || continues(b, at)) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests;
