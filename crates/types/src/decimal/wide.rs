//! Unsigned integers of a fixed number of 32 bit limbs, least significant first: just what
//! DECIMAL needs. All functions keep to the slice they get and report what does not fit.

use std::cmp::Ordering;

/// Number of limbs of a DECIMAL's magnitude: 288 bits, enough for 81 digits.
pub const LIMBS: usize = 9;
/// Number of limbs of an intermediate result (a product, a scaled dividend).
pub const WIDE: usize = 2 * LIMBS;

/// 10^k for k up to 9.
pub const POWERS: [u32; 10] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Number of limbs in use.
pub fn used(limbs: &[u32]) -> usize {
    limbs.iter().rposition(|&limb| limb != 0).map_or(0, |i| i + 1)
}

/// Whether all limbs are zero.
pub fn is_zero(limbs: &[u32]) -> bool {
    limbs.iter().all(|&limb| limb == 0)
}

/// Multiplies in place by a small number and adds another; the carry out.
pub fn multiply_add_small(limbs: &mut [u32], factor: u32, addend: u32) -> u32 {
    let mut carry = u64::from(addend);
    for limb in limbs {
        let product = u64::from(*limb) * u64::from(factor) + carry;
        *limb = product as u32;
        carry = product >> 32;
    }
    carry as u32
}

/// Divides in place by a small number; the remainder.
pub fn divide_small(limbs: &mut [u32], divisor: u32) -> u32 {
    let mut remainder = 0u64;
    for limb in limbs.iter_mut().rev() {
        let current = (remainder << 32) | u64::from(*limb);
        *limb = (current / u64::from(divisor)) as u32;
        remainder = current % u64::from(divisor);
    }
    remainder as u32
}

/// Multiplies in place by 10^k; false if it does not fit (the value is then meaningless).
pub fn scale_up(limbs: &mut [u32], mut k: u32) -> bool {
    if is_zero(limbs) {
        return true;
    }
    while k > 0 {
        let step = k.min(9);
        if multiply_add_small(limbs, POWERS[step as usize], 0) != 0 {
            return false;
        }
        k -= step;
    }
    true
}

/// Divides in place by 10^k, dropping the rest; whether the rest was zero.
pub fn scale_down(limbs: &mut [u32], mut k: u32) -> bool {
    let mut exact = true;
    while k > 0 {
        if is_zero(limbs) {
            break;
        }
        let step = k.min(9);
        exact &= divide_small(limbs, POWERS[step as usize]) == 0;
        k -= step;
    }
    exact
}

/// Adds `other` in place; false on overflow of the slice.
pub fn add(limbs: &mut [u32], other: &[u32]) -> bool {
    let mut carry = 0u64;
    for (i, limb) in limbs.iter_mut().enumerate() {
        let sum = u64::from(*limb) + u64::from(other.get(i).copied().unwrap_or(0)) + carry;
        *limb = sum as u32;
        carry = sum >> 32;
    }
    carry == 0 && is_zero(other.get(limbs.len()..).unwrap_or(&[]))
}

/// Subtracts `other` in place; the caller knows that it is not the larger.
pub fn subtract(limbs: &mut [u32], other: &[u32]) {
    let mut borrow = 0i64;
    for (i, limb) in limbs.iter_mut().enumerate() {
        let difference = i64::from(*limb) - i64::from(other.get(i).copied().unwrap_or(0)) - borrow;
        *limb = difference as u32;
        borrow = i64::from(difference < 0);
    }
}

/// Compares by value; the slices may differ in length.
pub fn compare(a: &[u32], b: &[u32]) -> Ordering {
    let (used_a, used_b) = (used(a), used(b));
    used_a.cmp(&used_b).then_with(|| a[..used_a].iter().rev().cmp(b[..used_b].iter().rev()))
}

/// Product of two magnitudes; always fits.
pub fn multiply(a: &[u32; LIMBS], b: &[u32; LIMBS]) -> [u32; WIDE] {
    let mut product = [0u32; WIDE];
    let used_b = used(b);
    for (i, &x) in a[..used(a)].iter().enumerate() {
        let mut carry = 0u64;
        for (j, &y) in b[..used_b].iter().enumerate() {
            let sum = u64::from(x) * u64::from(y) + u64::from(product[i + j]) + carry;
            product[i + j] = sum as u32;
            carry = sum >> 32;
        }
        product[i + used_b] = carry as u32;
    }
    product
}

/// Quotient and remainder of `dividend / divisor`; the divisor is not zero.
/// Schoolbook division (Knuth, volume 2, algorithm D).
pub fn divide(dividend: &[u32; WIDE], divisor: &[u32; WIDE]) -> ([u32; WIDE], [u32; WIDE]) {
    let (n, mut quotient) = (used(divisor), [0u32; WIDE]);
    if compare(dividend, divisor) == Ordering::Less {
        return (quotient, *dividend);
    }
    if n == 1 {
        quotient = *dividend;
        let rest = divide_small(&mut quotient, divisor[0]);
        let mut remainder = [0u32; WIDE];
        remainder[0] = rest;
        return (quotient, remainder);
    }
    let m = used(dividend) - n;
    let shift = divisor[n - 1].leading_zeros();
    let v = shifted_left(divisor, shift);
    let mut u = [0u32; WIDE + 1];
    u[..WIDE].copy_from_slice(&shifted_left(dividend, shift)[..WIDE]);
    if shift > 0 {
        u[WIDE] = dividend[WIDE - 1] >> (32 - shift);
    }
    for j in (0..=m).rev() {
        let digit = quotient_digit(&mut u[j..], &v[..n]);
        if j < WIDE {
            quotient[j] = digit;
        }
    }
    let mut remainder = [0u32; WIDE];
    for i in 0..n {
        let high = if shift > 0 { u[i + 1] << (32 - shift) } else { 0 };
        remainder[i] = (u[i] >> shift) | high;
    }
    (quotient, remainder)
}

/// One step of algorithm D: subtracts `digit * v` from the top of `u` and returns the digit.
fn quotient_digit(u: &mut [u32], v: &[u32]) -> u32 {
    let n = v.len();
    let top = (u64::from(u[n]) << 32) | u64::from(u[n - 1]);
    let (mut guess, mut rest) = (top / u64::from(v[n - 1]), top % u64::from(v[n - 1]));
    while guess >> 32 != 0 || guess * u64::from(v[n - 2]) > ((rest << 32) | u64::from(u[n - 2])) {
        guess -= 1;
        rest += u64::from(v[n - 1]);
        if rest >> 32 != 0 {
            break;
        }
    }
    let (mut borrow, mut carry) = (0i64, 0u64);
    for i in 0..n {
        let product = guess * u64::from(v[i]) + carry;
        carry = product >> 32;
        let difference = i64::from(u[i]) - borrow - i64::from(product as u32);
        u[i] = difference as u32;
        borrow = i64::from(difference < 0);
    }
    let difference = i64::from(u[n]) - borrow - carry as i64;
    u[n] = difference as u32;
    if difference < 0 {
        guess -= 1;
        let mut carry = 0u64;
        for i in 0..n {
            let sum = u64::from(u[i]) + u64::from(v[i]) + carry;
            u[i] = sum as u32;
            carry = sum >> 32;
        }
        u[n] = u[n].wrapping_add(carry as u32);
    }
    guess as u32
}

fn shifted_left(limbs: &[u32; WIDE], shift: u32) -> [u32; WIDE] {
    if shift == 0 {
        return *limbs;
    }
    let mut result = [0u32; WIDE];
    let mut carry = 0;
    for (target, &limb) in result.iter_mut().zip(limbs) {
        *target = (limb << shift) | carry;
        carry = limb >> (32 - shift);
    }
    result
}

/// Number of decimal digits of the value; zero has none.
pub fn digits(limbs: &[u32]) -> u32 {
    let used_limbs = used(limbs);
    if used_limbs <= 4 {
        let value = low_u128(limbs);
        return if value == 0 { 0 } else { value.ilog10() + 1 };
    }
    let mut rest = [0u32; WIDE];
    rest[..used_limbs].copy_from_slice(&limbs[..used_limbs]);
    let mut count = 0;
    while used(&rest) > 4 {
        scale_down(&mut rest[..used_limbs], 9);
        count += 9;
    }
    count + low_u128(&rest).ilog10() + 1
}

/// The low 128 bits.
#[inline]
pub fn low_u128(limbs: &[u32]) -> u128 {
    limbs.iter().take(4).rev().fold(0, |value, &limb| (value << 32) | u128::from(limb))
}

/// Limbs of a 128 bit number.
pub fn from_u128(value: u128) -> [u32; LIMBS] {
    let mut limbs = [0u32; LIMBS];
    for (i, limb) in limbs.iter_mut().take(4).enumerate() {
        *limb = (value >> (32 * i)) as u32;
    }
    limbs
}
