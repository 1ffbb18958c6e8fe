//! Heads: eight bytes of a sort key as a number, which decide nearly always which row comes first.
//!
//! 1. Of two values the one with the smaller head comes first. NULL's head is zero.
//! 2. If every head of a column is exact, values with equal heads are equal.

use types::collation::{self, Collation};
use types::row::Lane;
use types::{ColumnType, ValueRef};

/// The head of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is compared.
    pub number: u64,
    /// Tells the value from all others of its column.
    pub is_exact: bool,
}

/// How the heads of one key are made.
#[derive(Clone, Copy, Debug)]
pub struct HeadRule {
    /// Collation of text.
    pub collation: &'static Collation,
    scale: u8,
    unsigned: bool,
    /// The greatest value comes first: heads are inverted.
    pub descending: bool,
}

const SIGN: u64 = 1 << 63;

impl HeadRule {
    /// For values of this type.
    pub fn new(column_type: &ColumnType, descending: bool) -> Self {
        Self {
            collation: column_type.collation.info(),
            scale: column_type.scale,
            unsigned: column_type.unsigned,
            descending,
        }
    }

    #[inline]
    fn directed(&self, number: u64, is_exact: bool) -> Head {
        Head { number: if self.descending { !number } else { number }, is_exact }
    }

    /// The head of a value.
    #[inline]
    pub fn head(&self, value: ValueRef<'_>) -> Head {
        match value {
            ValueRef::Null => self.directed(0, true),
            ValueRef::Bytes(text) => {
                let head = collation::sort_key_head(self.collation, text);
                self.directed(head.number, head.is_whole && head.number != 0)
            }
            ValueRef::Float(v) => self.directed(float_head(f64::from(v)), true),
            ValueRef::Double(v) => self.directed(float_head(v), true),
            ValueRef::UInt(v) if v > i64::MAX as u64 => {
                let number = if self.unsigned { v.saturating_add(1) } else { u64::MAX };
                self.directed(number, self.unsigned && v < u64::MAX - 1)
            }
            ValueRef::Decimal(v) => match Lane::of(value) {
                Some((lane, number)) if v.scale() == self.scale => self.head_of(lane, Some(number)),
                // All have the digits of the type; should one not, rounding keeps the order.
                _ => match v.with_scale(self.scale).mantissa() {
                    Some(digits) => {
                        let digits = digits.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
                        self.directed(SIGN ^ digits as u64, false)
                    }
                    None => self.directed(if v.is_negative() { 0 } else { u64::MAX }, false),
                },
            },
            other => match Lane::of(other) {
                Some((lane, number)) => self.head_of(lane, Some(number)),
                // A packed moment that is no moment.
                None => self.directed(u64::MAX, false),
            },
        }
    }

    /// The head of a value that is a number in a lane; a DECIMAL has the digits of its type.
    #[inline]
    pub fn head_of(&self, lane: Lane, number: Option<i64>) -> Head {
        let Some(number) = number else { return self.directed(0, true) };
        match lane {
            // Signed and unsigned numbers may meet in one column; zero is NULL's.
            Lane::Int | Lane::UInt if self.unsigned => {
                self.directed(number.max(0) as u64 + 1, number >= 0)
            }
            _ => self.directed(SIGN ^ number as u64, number != i64::MIN),
        }
    }
}

/// IEEE numbers in the order of unsigned integers; the two zeros are one.
fn float_head(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order;
    use types::{CollationId, Decimal, TypeKind};

    fn check(values: &[ValueRef<'_>], column_type: &ColumnType) {
        for descending in [false, true] {
            let rule = HeadRule::new(column_type, descending);
            for &a in values.iter().chain([&ValueRef::Null]) {
                for &b in values.iter().chain([&ValueRef::Null]) {
                    let order = order::compare(a, b, rule.collation);
                    let order = if descending { order.reverse() } else { order };
                    let (x, y) = (rule.head(a), rule.head(b));
                    let heads = x.number.cmp(&y.number);
                    let exact = x.is_exact && y.is_exact;
                    assert!(heads == order || heads.is_eq() && !exact, "{a:?} {b:?}");
                    if let (Some((lane, number)), false) = (Lane::of(a), column_type.scale > 0) {
                        assert_eq!(rule.head_of(lane, Some(number)).number, x.number, "{a:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn heads_never_contradict_the_comparison() {
        let text = ColumnType::text(TypeKind::VarChar, 10, CollationId::UTF8MB4_GENERAL_CI);
        let nopad = ColumnType::text(TypeKind::VarChar, 10, CollationId(1069));
        let binary = ColumnType::text(TypeKind::VarChar, 10, CollationId(63));
        let integers = [i64::MIN, -2, -1, 0, 1, 2, i64::MAX].map(ValueRef::Int);
        let unsigned = [0, 1, 1 << 63, u64::MAX - 2, u64::MAX - 1, u64::MAX].map(ValueRef::UInt);
        let mixed: Vec<_> = integers.into_iter().chain(unsigned).collect();
        check(&mixed, &ColumnType::integer(TypeKind::BigInt, false));
        check(&mixed, &ColumnType::integer(TypeKind::BigInt, true));
        let doubles = [f64::MIN, -1.5, -0.0, 0.0, 1e-300, 7.0, f64::MAX].map(ValueRef::Double);
        check(&doubles, &text);
        let floats = [f32::MIN, -1.5, -0.0, 0.0, 7.0, f32::MAX].map(ValueRef::Float);
        check(&floats, &text);
        let texts = ["", " ", "\0", "a", "B", "b ", "é", "aaaaaaa", "aaaaaaaaa", "aaaaaaaab"];
        let texts = texts.map(|text| ValueRef::Bytes(text.as_bytes()));
        for column_type in [&text, &nopad, &binary] {
            check(&texts, column_type);
        }
        let decimals = [-5i128, -4, 0, 4, 5, i64::MIN.into(), i64::MAX.into(), i128::MAX];
        let decimal = |scale| decimals.map(|v| ValueRef::Decimal(Decimal::new(v, scale)));
        check(&decimal(0), &ColumnType::decimal(38, 0, false));
        check(&decimal(4), &ColumnType::decimal(38, 2, false));
        check(&decimal(2), &ColumnType::decimal(38, 2, false));
    }
}
