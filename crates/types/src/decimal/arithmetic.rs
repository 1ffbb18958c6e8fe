//! Addition to remainder and rounding, with the digit counts of MySQL's nine-digit words.

use super::wide::{self, LIMBS, WIDE};
use super::{Decimal, DecimalOverflow};

/// Words of nine digits that hold `digits` digits.
fn words(digits: u32) -> u32 {
    digits.div_ceil(9)
}

/// Words of a whole number.
const WORDS: u32 = 9;

impl Decimal {
    /// Cuts a wide result to nine words: digits after the point go first, without rounding.
    fn from_wide(
        mut limbs: [u32; WIDE],
        scale: u32,
        negative: bool,
    ) -> Result<Self, DecimalOverflow> {
        let integer = wide::digits(&limbs).saturating_sub(scale);
        let room = WORDS.checked_sub(words(integer)).ok_or(DecimalOverflow)?;
        let mut kept = scale;
        if words(scale) > room {
            kept = room * 9;
        }
        wide::scale_down(&mut limbs, scale - kept);
        let mut narrow = [0u32; LIMBS];
        narrow.copy_from_slice(&limbs[..LIMBS]);
        Ok(Self::from_limbs(narrow, kept as u8, negative))
    }

    fn widened(&self, extra_scale: u32) -> [u32; WIDE] {
        let mut limbs = [0u32; WIDE];
        limbs[..LIMBS].copy_from_slice(&self.limbs);
        wide::scale_up(&mut limbs, extra_scale);
        limbs
    }

    /// Sum.
    pub fn add(&self, other: &Self) -> Result<Self, DecimalOverflow> {
        if self.scale == other.scale
            && let (Some(a), Some(b)) = (self.mantissa(), other.mantissa())
            && let Some(sum) = a.checked_add(b)
        {
            return Ok(Self::new(sum, self.scale));
        }
        let scale = u32::from(self.scale.max(other.scale));
        let mut a = self.widened(scale - u32::from(self.scale));
        let mut b = other.widened(scale - u32::from(other.scale));
        if self.negative == other.negative {
            wide::add(&mut a, &b);
            return Self::from_wide(a, scale, self.negative);
        }
        if wide::compare(&a, &b).is_ge() {
            wide::subtract(&mut a, &b);
            Self::from_wide(a, scale, self.negative)
        } else {
            wide::subtract(&mut b, &a);
            Self::from_wide(b, scale, other.negative)
        }
    }

    /// Difference.
    pub fn subtract(&self, other: &Self) -> Result<Self, DecimalOverflow> {
        self.add(&other.negated())
    }

    /// Product; its scale is the sum of the scales, at most 38, and as many words as are left
    /// beside the digits before the point. The exact product is rounded once.
    pub fn multiply(&self, other: &Self) -> Result<Self, DecimalOverflow> {
        let negative = self.negative != other.negative;
        let scale = u32::from(self.scale) + u32::from(other.scale);
        let mut product = wide::multiply(&self.limbs, &other.limbs);
        let integer = wide::digits(&product).saturating_sub(scale);
        let room = WORDS.checked_sub(words(integer)).ok_or(DecimalOverflow)?;
        let kept = scale.min(u32::from(super::SCALE_MAX)).min(room * 9);
        if scale > kept {
            let mut half = [0; WIDE];
            half[0] = 5;
            wide::scale_up(&mut half, scale - kept - 1);
            wide::add(&mut product, &half);
        }
        wide::scale_down(&mut product, scale - kept);
        Self::from_wide(product, kept, negative)
    }

    /// Digits after the point that a quotient of numbers with these scales gets, if it has room
    /// for them: whole words.
    pub fn quotient_digits(scale_a: u8, scale_b: u8, extra_digits: u8) -> u32 {
        let (scale_a, scale_b) = (u32::from(scale_a), u32::from(scale_b));
        let (full_a, full_b) = (words(scale_a) * 9, words(scale_b) * 9);
        let slack = (full_a - scale_a) + (full_b - scale_b);
        let extra = u32::from(extra_digits).saturating_sub(slack);
        words(full_a + full_b + extra) * 9
    }

    /// Quotient, `None` for a division by zero. It carries at least `extra_digits`
    /// (div_precision_increment) more digits after the point than the dividend, rounded up to
    /// whole words; the rest is cut off.
    pub fn divide(&self, other: &Self, extra_digits: u8) -> Result<Option<Self>, DecimalOverflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let (scale_a, scale_b) = (u32::from(self.scale), u32::from(other.scale));
        let digits = Self::quotient_digits(self.scale, other.scale, extra_digits);
        // The quotient of the magnitudes has scale_a - scale_b digits after the point.
        let shift = digits + scale_b - scale_a;
        let (mut scaled, mut applied) = (self.widened(0), 0);
        while applied < shift {
            let mut next = scaled;
            if !wide::scale_up(&mut next, (shift - applied).min(9)) {
                break;
            }
            applied += (shift - applied).min(9);
            scaled = next;
        }
        let scale = digits.saturating_sub(shift - applied);
        let (quotient, _) = wide::divide(&scaled, &other.widened(0));
        Self::from_wide(quotient, scale, self.negative != other.negative).map(Some)
    }

    /// Remainder with the sign of the dividend, `None` for a division by zero.
    pub fn remainder(&self, other: &Self) -> Result<Option<Self>, DecimalOverflow> {
        if other.is_zero() {
            return Ok(None);
        }
        let scale = u32::from(self.scale.max(other.scale));
        let a = self.widened(scale - u32::from(self.scale));
        let b = other.widened(scale - u32::from(other.scale));
        let (_, rest) = wide::divide(&a, &b);
        Self::from_wide(rest, scale, self.negative).map(Some)
    }

    /// Rounded half away from zero to `scale` digits after the point (zeros are added when it
    /// has fewer, as many as nine words have room for); `None` when the zeros do not fit.
    pub fn rounded(&self, scale: u8) -> Option<Self> {
        if scale == self.scale {
            return Some(*self);
        }
        let mut limbs = self.limbs;
        if scale > self.scale {
            let scale = scale.min(self.room_for(scale)).max(self.scale);
            return wide::scale_up(&mut limbs, u32::from(scale - self.scale))
                .then(|| Self::from_limbs(limbs, scale, self.negative));
        }
        wide::scale_down(&mut limbs, u32::from(self.scale - scale) - 1);
        if wide::divide_small(&mut limbs, 10) >= 5 {
            wide::multiply_add_small(&mut limbs, 1, 1);
        }
        Some(Self::from_limbs(limbs, scale, self.negative))
    }

    /// Digits after the point, of so many at most, that there is room for.
    fn room_for(&self, scale: u8) -> u8 {
        // Four limbs have at most five words of digits, beside which there are four more.
        const FOUR_WORDS: u8 = 36;
        if scale <= FOUR_WORDS && wide::used(&self.limbs) <= 4 {
            return scale;
        }
        (WORDS.saturating_sub(words(self.integer_digits())) * 9) as u8
    }

    /// Rounded like [`Decimal::rounded`]; where zeros would not fit it stays as it is.
    pub fn with_scale(&self, scale: u8) -> Self {
        self.rounded(scale).unwrap_or(*self)
    }

    /// Cut to `scale` digits after the point.
    pub fn truncated(&self, scale: u8) -> Self {
        if scale >= self.scale {
            return *self;
        }
        let mut limbs = self.limbs;
        wide::scale_down(&mut limbs, u32::from(self.scale - scale));
        Self::from_limbs(limbs, scale, self.negative)
    }

    /// Rounded (or cut) at a place left of the point: `places` zeros.
    pub fn rounded_left(&self, places: u32, cut: bool) -> Self {
        let mut limbs = self.limbs;
        if places >= 82 {
            return Self::ZERO;
        }
        wide::scale_down(&mut limbs, u32::from(self.scale) + places - 1);
        let digit = wide::divide_small(&mut limbs, 10);
        if digit >= 5 && !cut {
            wide::multiply_add_small(&mut limbs, 1, 1);
        }
        wide::scale_up(&mut limbs, places);
        Self::from_limbs(limbs, 0, self.negative)
    }

    /// Largest whole number not above it.
    pub fn floor(&self) -> Self {
        self.whole(self.negative)
    }

    /// Smallest whole number not below it.
    pub fn ceiling(&self) -> Self {
        self.whole(!self.negative)
    }

    fn whole(&self, away_from_zero: bool) -> Self {
        let mut limbs = self.limbs;
        let exact = wide::scale_down(&mut limbs, u32::from(self.scale));
        if !exact && away_from_zero {
            wide::multiply_add_small(&mut limbs, 1, 1);
        }
        Self::from_limbs(limbs, 0, self.negative)
    }

    /// Rounded to a whole number as `i64`, the nearest bound with `false` if out of range.
    pub fn to_i64(&self) -> (i64, bool) {
        match self.with_scale(0).mantissa().map(i64::try_from) {
            Some(Ok(value)) => (value, true),
            _ if self.negative => (i64::MIN, false),
            _ => (i64::MAX, false),
        }
    }

    /// Rounded to a whole number as `u64`, the nearest bound with `false` if out of range.
    pub fn to_u64(&self) -> (u64, bool) {
        match self.with_scale(0).mantissa().map(u64::try_from) {
            Some(Ok(value)) => (value, true),
            _ if self.negative => (0, false),
            _ => (u64::MAX, false),
        }
    }

    /// Nearest double.
    pub fn to_f64(&self) -> f64 {
        if let Some(mantissa) = self.mantissa()
            && mantissa.unsigned_abs() < 1 << 53
            && self.scale <= 22
        {
            return mantissa as f64 / 10f64.powi(i32::from(self.scale));
        }
        self.to_string().parse().unwrap_or(f64::INFINITY)
    }
}
