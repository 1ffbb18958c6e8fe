//! Tests of one text column against constants.
//!
//! Columns of few different texts meet the same ones again and again: what a text was found to be
//! is remembered in a small table, as long as that helps.

use super::condition::{Truth, text};
use super::{Batch, Compile};
use crate::compare::CompareRule;
use crate::expression::{CompareOperator, Expr, ExprKind};
use types::collation::LikeMatcher;
use types::{CollationId, ValueRef};

#[derive(Clone, Debug)]
enum Kind {
    Compare { operator: CompareOperator, collation: CollationId, constant: Vec<u8> },
    In { list: Vec<(CollationId, Vec<u8>)>, unknown: bool },
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
        Some(Self::new(position, Kind::In { list: candidates, unknown }, negated))
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
        for &row in selected {
            let Some(text) = text(batch, *position, row) else {
                out.push(Truth::Unknown);
                continue;
            };
            out.push(memory.find(text, || judge(kind, *negated, text)));
        }
    }
}

fn judge(kind: &Kind, negated: bool, text: &[u8]) -> Truth {
    let (found, missing) = match kind {
        Kind::Compare { operator, collation, constant } => {
            (operator.accepts(collation.info().compare(text, constant)), Truth::False)
        }
        Kind::In { list, unknown } => {
            let equal =
                |(collation, other): &(CollationId, Vec<u8>)| collation.info().equal(text, other);
            (list.iter().any(equal), if *unknown { Truth::Unknown } else { Truth::False })
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

/// Longest text that is remembered.
const TEXT_BYTES: usize = 23;
/// Texts that are remembered.
const SLOTS: usize = 64;
/// After so many texts it is looked whether half of them were known.
const TRIAL: u32 = 256;

#[derive(Clone, Copy, Debug)]
struct Known {
    bytes: [u8; TEXT_BYTES],
    length: u8,
    truth: Truth,
}

/// Answers by text.
#[derive(Clone, Debug, Default)]
struct Memory {
    known: Vec<Option<Known>>,
    asked: u32,
    found: u32,
    useless: bool,
}

impl Memory {
    #[inline]
    fn find(&mut self, text: &[u8], judge: impl FnOnce() -> Truth) -> Truth {
        if self.useless || text.len() > TEXT_BYTES {
            return judge();
        }
        if self.known.is_empty() {
            self.known.resize(SLOTS, None);
        }
        self.asked += 1;
        if self.asked == TRIAL {
            self.useless = self.found < TRIAL / 2;
            (self.asked, self.found) = (0, 0);
        }
        let slot = &mut self.known[slot_of(text)];
        if let Some(known) = slot
            && known.bytes[..known.length.into()] == *text
        {
            self.found += 1;
            return known.truth;
        }
        let truth = judge();
        let mut bytes = [0; TEXT_BYTES];
        bytes[..text.len()].copy_from_slice(text);
        *slot = Some(Known { bytes, length: text.len() as u8, truth });
        truth
    }
}

/// A slot by the last eight bytes and the length.
#[inline]
fn slot_of(text: &[u8]) -> usize {
    let tail = match text.last_chunk::<8>() {
        Some(tail) => u64::from_le_bytes(*tail),
        None => text.iter().fold(0, |tail, &byte| tail << 8 | u64::from(byte)),
    };
    let mixed = (tail ^ (text.len() as u64) << 59).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 58) as usize % SLOTS
}
