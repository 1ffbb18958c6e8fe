//! DECIMAL: exact numbers of up to 81 digits (65 in a column), as MySQL computes with them.
//!
//! 1. The value is `± magnitude / 10^scale`; the magnitude is a binary integer of 288 bits.
//!    Arithmetic on what fits 128 bits takes a short way.
//! 2. MySQL holds numbers in nine words of nine digits. Where that shows (how many digits a
//!    quotient gets, which digits are cut when a result is too wide), results are the same.
//! 3. Zero is never negative.

mod arithmetic;
mod storage;
mod text;
mod wide;

pub use storage::storage_bytes;
pub use text::ParsedDecimal;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use wide::LIMBS;

/// Most digits of a column.
pub const PRECISION_MAX: u8 = 65;
/// Most digits after the point of a column or result.
pub const SCALE_MAX: u8 = 38;

/// An exact number.
#[derive(Clone, Copy)]
pub struct Decimal {
    limbs: [u32; LIMBS],
    scale: u8,
    negative: bool,
}

/// The result has more than 81 digits before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalOverflow;

impl Decimal {
    /// Zero without digits after the point.
    pub const ZERO: Self = Self { limbs: [0; LIMBS], scale: 0, negative: false };

    /// `mantissa / 10^scale`.
    pub fn new(mantissa: i128, scale: u8) -> Self {
        Self { limbs: wide::from_u128(mantissa.unsigned_abs()), scale, negative: mantissa < 0 }
    }

    /// From parts; a negative zero becomes zero.
    fn from_limbs(limbs: [u32; LIMBS], scale: u8, negative: bool) -> Self {
        Self { negative: negative && !wide::is_zero(&limbs), limbs, scale }
    }

    /// Digits after the point.
    #[inline]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Below zero.
    #[inline]
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Equal to zero.
    pub fn is_zero(&self) -> bool {
        wide::is_zero(&self.limbs)
    }

    /// The mantissa if it fits.
    #[inline]
    pub fn mantissa(&self) -> Option<i128> {
        let magnitude = i128::try_from(self.magnitude()?).ok()?;
        Some(if self.negative { -magnitude } else { magnitude })
    }

    /// Digits before the point, without leading zeros.
    pub fn integer_digits(&self) -> u32 {
        wide::digits(&self.limbs).saturating_sub(u32::from(self.scale))
    }

    /// Digits in all, as MySQL counts the precision of a constant: at least the scale, and at
    /// least one.
    pub fn precision(&self) -> u32 {
        wide::digits(&self.limbs).max(u32::from(self.scale)).max(1)
    }

    /// With the opposite sign.
    pub fn negated(self) -> Self {
        Self::from_limbs(self.limbs, self.scale, !self.negative)
    }

    /// Without its sign.
    pub fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    /// The largest number of a DECIMAL(precision, scale), with the sign asked for.
    pub fn largest(precision: u8, scale: u8, negative: bool) -> Self {
        let mut limbs = [0u32; LIMBS];
        limbs[0] = 1;
        wide::scale_up(&mut limbs, u32::from(precision));
        wide::subtract(&mut limbs, &[1]);
        Self::from_limbs(limbs, scale, negative)
    }

    /// The magnitude if it fits.
    #[inline]
    fn magnitude(&self) -> Option<u128> {
        (self.limbs[4..] == [0; LIMBS - 4]).then(|| wide::low_u128(&self.limbs))
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (self.magnitude(), other.magnitude()) {
            if self.scale == other.scale {
                return a.cmp(&b);
            }
            let power = |digits: u8| 10u128.checked_pow(u32::from(digits));
            let a = power(other.scale.saturating_sub(self.scale)).and_then(|p| a.checked_mul(p));
            let b = power(self.scale.saturating_sub(other.scale)).and_then(|p| b.checked_mul(p));
            if let (Some(a), Some(b)) = (a, b) {
                return a.cmp(&b);
            }
        }
        if self.scale == other.scale {
            return wide::compare(&self.limbs, &other.limbs);
        }
        let (low, high, swapped) =
            if self.scale < other.scale { (self, other, false) } else { (other, self, true) };
        let mut scaled = [0u32; wide::WIDE];
        scaled[..LIMBS].copy_from_slice(&low.limbs);
        wide::scale_up(&mut scaled, u32::from(high.scale - low.scale));
        let order = wide::compare(&scaled, &high.limbs);
        if swapped { order.reverse() } else { order }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(i128::from(value), 0)
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Self::new(i128::from(value), 0)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By value: 1.0 and 1.00 are equal.
impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// Equal numbers hash alike whatever their scale.
impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut limbs = self.limbs;
        let mut scale = self.scale;
        while scale > 0 {
            let mut shorter = limbs;
            if wide::divide_small(&mut shorter, 10) != 0 {
                break;
            }
            limbs = shorter;
            scale -= 1;
        }
        if wide::is_zero(&limbs) {
            scale = 0;
        }
        (limbs, scale, self.negative).hash(state);
    }
}

#[cfg(test)]
mod tests;
