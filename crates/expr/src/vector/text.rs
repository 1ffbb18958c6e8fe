//! Tests of one text column against constants.
//!
//! Columns of few different texts meet the same ones again and again: what a text was found to be
//! is remembered in a small table, as long as that helps.

use super::condition::Truth;
use super::{Batch, Compile};
use crate::compare::CompareRule;
use crate::expression::{CompareOperator, Expr, ExprKind};
use types::collation::LikeMatcher;
use types::{CollationId, ValueRef, collation};

#[derive(Clone, Debug)]
enum Kind {
    Compare {
        operator: CompareOperator,
        collation: CollationId,
        constant: Vec<u8>,
    },
    /// `unknown`: the list has a NULL, so nothing is surely not in it.
    In {
        list: TextList,
        unknown: bool,
    },
    Like(LikeMatcher),
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub(super) struct TextTest {
    position: usize,
    kind: Kind,
    negated: bool,
    memory: Memory,
}

impl TextTest {
    fn new(position: usize, kind: Kind, negated: bool) -> Self {
        Self { position, kind, negated, memory: Memory::default() }
    }

    pub(super) fn compare(
        operator: CompareOperator,
        collation: CollationId,
        left: &Expr,
        right: &Expr,
        compile: Compile<'_>,
    ) -> Option<Self> {
        let (column, constant, operator) = match compile.constant(left) {
            Some(constant) => (right, constant, operator.swapped()),
            None => (left, compile.constant(right)?, operator),
        };
        let constant = constant.bytes()?.to_vec();
        let kind = Kind::Compare { operator, collation, constant };
        Some(Self::new(text_column(column, compile)?, kind, false))
    }

    pub(super) fn in_list(
        operand: &Expr,
        list: &[(Expr, Vec<CompareRule>)],
        negated: bool,
        compile: Compile<'_>,
    ) -> Option<Self> {
        let position = text_column(operand, compile)?;
        let mut unknown = false;
        let mut candidates = Vec::with_capacity(list.len());
        for (candidate, rules) in list {
            match (compile.constant(candidate)?, rules.as_slice()) {
                (ValueRef::Null, _) => unknown = true,
                (ValueRef::Bytes(text), [CompareRule::Text(collation)]) => {
                    candidates.push((*collation, text.to_vec()));
                }
                _ => return None,
            }
        }
        let list = TextList::new(candidates);
        Some(Self::new(position, Kind::In { list, unknown }, negated))
    }

    pub(super) fn like(
        operand: &Expr,
        pattern: &Expr,
        escape: Option<u32>,
        collation: CollationId,
        negated: bool,
        compile: Compile<'_>,
    ) -> Option<Self> {
        let position = text_column(operand, compile)?;
        let pattern = compile.constant(pattern)?.bytes()?;
        let matcher = LikeMatcher::new(collation.info(), pattern, escape);
        Some(Self::new(position, Kind::Like(matcher), negated))
    }

    pub(super) fn eval(&mut self, batch: &dyn Batch, selected: &[u32], out: &mut Vec<Truth>) {
        let Self { position, kind, negated, memory } = self;
        let mut texts = Vec::with_capacity(selected.len());
        batch.texts(*position, selected, &mut texts);
        out.extend(texts.into_iter().map(|text| match text {
            Some(text) => memory.find(text, |text| judge(kind, *negated, text)),
            None => Truth::Unknown,
        }));
    }
}

fn judge(kind: &mut Kind, negated: bool, text: &[u8]) -> Truth {
    let (found, missing) = match kind {
        Kind::Compare { operator, collation, constant } => {
            (operator.accepts(collation.info().compare(text, constant)), Truth::False)
        }
        Kind::In { list, unknown } => {
            (list.holds(text), if *unknown { Truth::Unknown } else { Truth::False })
        }
        Kind::Like(matcher) => (matcher.matches(text), Truth::False),
    };
    match (if found { Truth::True } else { missing }, negated) {
        (Truth::True, true) => Truth::False,
        (Truth::False, true) => Truth::True,
        (truth, _) => truth,
    }
}

/// The position of a text column of the batch.
fn text_column(expr: &Expr, compile: Compile<'_>) -> Option<usize> {
    match &expr.kind {
        ExprKind::Column { position, .. }
            if compile.shape.holds(*position) && expr.result.is_string() =>
        {
            Some(*position)
        }
        _ => None,
    }
}

/// Up to so many candidates are compared one after the other.
const FEW: usize = 4;

/// The candidates of an IN.
#[derive(Clone, Debug)]
struct TextList {
    candidates: Vec<(CollationId, Vec<u8>)>,
    /// The sort key of each candidate with its position, in order; empty if there are few or
    /// they are not all compared by one collation.
    keys: Vec<(Vec<u8>, usize)>,
    key: Vec<u8>,
}

impl TextList {
    fn new(candidates: Vec<(CollationId, Vec<u8>)>) -> Self {
        let one_collation = candidates.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let mut keys = Vec::new();
        if candidates.len() > FEW && one_collation {
            keys.extend(candidates.iter().enumerate().map(|(at, (collation, text))| {
                let mut key = Vec::new();
                collation::push_sort_key(collation.info(), text, &mut key);
                (key, at)
            }));
            keys.sort_unstable();
        }
        Self { candidates, keys, key: Vec::new() }
    }

    fn holds(&mut self, text: &[u8]) -> bool {
        let Self { candidates, keys, key, .. } = self;
        let equal =
            |(collation, other): &(CollationId, Vec<u8>)| collation.info().equal(text, other);
        let Some((collation, _)) = candidates.first().filter(|_| !keys.is_empty()) else {
            return candidates.iter().any(equal);
        };
        key.clear();
        collation::push_sort_key(collation.info(), text, key);
        // Equal texts have equal keys; the comparison has the last word.
        let from = keys.partition_point(|(other, _)| *other < *key);
        let same = keys[from..].iter().take_while(|(other, _)| *other == *key);
        same.into_iter().any(|&(_, at)| equal(&candidates[at]))
    }
}

/// Texts that are remembered, in pairs of places.
const SLOTS: usize = 128;
/// After so many texts it is looked whether half of them were known.
const TRIAL: u32 = 256;

/// A text of at most 24 bytes: what of it tells it apart from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Short {
    /// The first, the next and the last eight bytes.
    words: [u64; 3],
    length: u8,
}

impl Short {
    #[inline]
    fn of(text: &[u8]) -> Option<Self> {
        let length = text.len();
        let words = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                let middle = match length {
                    17..=24 => text[8..].first_chunk::<8>().map_or(0, |it| u64::from_le_bytes(*it)),
                    8..=16 => 0,
                    _ => return None,
                };
                [u64::from_le_bytes(*first), middle, u64::from_le_bytes(*last)]
            }
            _ => [text.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0, 0],
        };
        Some(Self { words, length: length as u8 })
    }

    /// The first of the two places that it can be remembered at.
    #[inline]
    fn slot(&self) -> usize {
        let [first, middle, last] = self.words;
        let mixed = first ^ middle.rotate_left(21) ^ last.rotate_left(42) ^ u64::from(self.length);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize & (SLOTS - 2)
    }
}

/// Answers by text.
#[derive(Clone, Debug, Default)]
struct Memory {
    known: Vec<Option<(Short, Truth)>>,
    asked: u32,
    found: u32,
    useless: bool,
}

impl Memory {
    #[inline]
    fn find(&mut self, text: &[u8], judge: impl FnOnce(&[u8]) -> Truth) -> Truth {
        if self.useless {
            return judge(text);
        }
        let Some(short) = Short::of(text) else { return judge(text) };
        if self.known.is_empty() {
            self.known.resize(SLOTS, None);
        }
        self.asked += 1;
        if self.asked == TRIAL {
            self.useless = self.found < TRIAL / 2;
            (self.asked, self.found) = (0, 0);
        }
        let pair = short.slot();
        for known in &self.known[pair..pair + 2] {
            if let Some((known, truth)) = known
                && *known == short
            {
                self.found += 1;
                return *truth;
            }
        }
        let truth = judge(text);
        self.known.swap(pair, pair + 1);
        self.known[pair] = Some((short, truth));
        truth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that differ in one byte only, of all lengths.
    fn texts() -> impl Iterator<Item = Vec<u8>> {
        let changed = |length: usize, at: usize, byte: u8| {
            let mut text = vec![b'a'; length];
            text.get_mut(at).into_iter().for_each(|it| *it = byte);
            text
        };
        (0..30).flat_map(move |length| {
            (0..length.max(1)).flat_map(move |at| [0, b'b', 255].map(|b| changed(length, at, b)))
        })
    }

    #[test]
    fn what_is_remembered_of_a_text_tells_it_apart() {
        let mut seen = std::collections::HashMap::new();
        for text in texts() {
            if let Some(short) = Short::of(&text) {
                let key = (short.words, short.length);
                assert_eq!(*seen.entry(key).or_insert_with(|| text.clone()), text);
            } else {
                assert!(text.len() > 24);
            }
        }
        assert!(seen.len() > 500);
    }

    #[test]
    fn a_list_holds_what_is_equal_to_one_of_its_texts() {
        let words = ["a", "A ", "é", "E", "ss", "ß", "b", "region 7", "REGION 7", "", " ", "x\0"];
        for collation in types::collation::all() {
            for length in 0..words.len() {
                let id = collation.id;
                let of = |word: &&str| (id, word.as_bytes().to_vec());
                let mut list = TextList::new(words[..length].iter().map(of).collect());
                for word in words.iter().chain(&["aa", "Region 7", "e"]) {
                    let text = word.as_bytes();
                    let equal = |other: &&str| collation.equal(text, other.as_bytes());
                    assert_eq!(list.holds(text), words[..length].iter().any(equal), "{word}");
                }
            }
        }
    }
}
