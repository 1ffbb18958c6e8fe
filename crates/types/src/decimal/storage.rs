//! DECIMAL(precision, scale) as bytes: the scaled integer in two's complement.
//!
//! Width: the fewest bytes that hold `±(10^precision - 1)`. Payload form: little-endian. Key
//! form: big-endian with the sign bit flipped, so that memcmp order is numeric order.

use super::Decimal;
use super::wide::LIMBS;

/// Bytes of a DECIMAL of so many digits (1 to 65).
pub fn storage_bytes(precision: u8) -> usize {
    // Bits of 10^p - 1 plus a sign bit; 3.3219281 > log2(10).
    let bits = (u64::from(precision) * 33_219_281).div_ceil(10_000_000) + 1;
    bits.div_ceil(8) as usize
}

impl Decimal {
    /// Two's complement of the mantissa, least significant byte first; the number must have
    /// the column's scale and fit its precision.
    pub fn to_le_bytes(&self, out: &mut [u8]) {
        let mut carry = u64::from(self.negative);
        for (chunk, limb) in
            out.chunks_mut(4).zip(self.limbs.iter().copied().chain(std::iter::repeat(0)))
        {
            let word = if self.negative { !limb } else { limb };
            let sum = u64::from(word) + carry;
            carry = sum >> 32;
            chunk.copy_from_slice(&(sum as u32).to_le_bytes()[..chunk.len()]);
        }
    }

    /// Reads what [`Decimal::to_le_bytes`] wrote. At most 36 bytes are looked at.
    #[inline]
    pub fn from_le_bytes(bytes: &[u8], scale: u8) -> Self {
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        if bytes.len() <= 16 {
            let mut buffer = [fill; 16];
            buffer[..bytes.len()].copy_from_slice(bytes);
            return Self::new(i128::from_le_bytes(buffer), scale);
        }
        let mut limbs = [0u32; LIMBS];
        let mut carry = u64::from(negative);
        for (i, limb) in limbs.iter_mut().enumerate() {
            let mut word = [fill; 4];
            let rest = bytes.get(4 * i..).unwrap_or(&[]);
            let length = rest.len().min(4);
            word[..length].copy_from_slice(&rest[..length]);
            let word = u32::from_le_bytes(word);
            let sum = u64::from(if negative { !word } else { word }) + carry;
            carry = sum >> 32;
            *limb = sum as u32;
        }
        Self::from_limbs(limbs, scale, negative)
    }
}
