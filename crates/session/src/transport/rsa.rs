//! The RSA key by which clients without TLS send a password to caching_sha2_password.
//!
//! Invariants:
//! 1. What depends on the private key takes the same time for every ciphertext: the power by
//!    crypto-bigint's constant-time arithmetic, the padding by code without branches on it. A
//!    ciphertext with wrong padding becomes a wrong password and costs what one costs.
//! 2. The key lives in memory, from its first use to the end of the process.

use super::der::{bit_string, element, integer, pem, sequence, tag};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Limb, NonZero, Odd, U1024, U2048};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

/// Bytes of the modulus, and of every ciphertext.
pub(crate) const MODULUS_BYTES: usize = 256;
const PRIME_BYTES: usize = MODULUS_BYTES / 2;
const EXPONENT: u64 = 65_537;
/// Rounds of Miller and Rabin's test; 5 are enough for random candidates of this size.
const ROUNDS: usize = 8;
const HASH_BYTES: usize = 20;
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];

/// Random bytes from a seed: SHA-256 of seed and counter.
struct Generator {
    seed: [u8; 32],
    counter: u64,
}

impl Generator {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            self.counter += 1;
            let block = [&self.seed[..], &self.counter.to_le_bytes()].concat();
            chunk.copy_from_slice(&digest(&SHA256, &block).as_ref()[..chunk.len()]);
        }
    }
}

/// A key pair.
pub(crate) struct RsaKey {
    modulus: U2048,
    exponent: U2048,
    parameters: FixedMontyParams<{ U2048::LIMBS }>,
    public_pem: String,
}

/// Odd primes below 2000.
fn small_primes() -> Vec<u64> {
    let is_prime = |n: &u64| (3..*n).take_while(|d| d * d <= *n).step_by(2).all(|d| n % d != 0);
    (3..2000).step_by(2).filter(is_prime).collect()
}

fn remainder(number: &U1024, divisor: u64) -> u64 {
    match NonZero::new(Limb(divisor)).into_option() {
        Some(divisor) => number.rem_limb(divisor).0,
        None => 0,
    }
}

/// Miller and Rabin's test of an odd number.
fn is_probably_prime(number: &U1024, generator: &mut Generator) -> bool {
    let Some(modulus) = Odd::new(*number).into_option() else {
        return false;
    };
    let parameters = FixedMontyParams::new_vartime(modulus);
    let less = number.wrapping_sub(&U1024::ONE);
    let twos = less.trailing_zeros_vartime();
    let odd = less.shr_vartime(twos);
    let one = FixedMontyForm::one(&parameters);
    let minus_one = FixedMontyForm::new(&less, &parameters);
    (0..ROUNDS).all(|_| {
        let mut bytes = [0; PRIME_BYTES - 1];
        generator.fill(&mut bytes);
        bytes[0] |= 1;
        let base = U1024::from_be_slice(&[&[0][..], &bytes].concat());
        let mut power = FixedMontyForm::new(&base, &parameters).pow(&odd);
        if power == one || power == minus_one {
            return true;
        }
        for _ in 1..twos {
            power = power.square();
            if power == minus_one {
                return true;
            }
        }
        false
    })
}

fn prime(generator: &mut Generator, small: &[u64]) -> U1024 {
    loop {
        let mut bytes = [0; PRIME_BYTES];
        generator.fill(&mut bytes);
        // The two highest bits make the product of two as long as it should be.
        bytes[0] |= 0xc0;
        bytes[PRIME_BYTES - 1] |= 1;
        let candidate = U1024::from_be_slice(&bytes);
        let fits = remainder(&candidate, EXPONENT) != 1
            && small.iter().all(|prime| remainder(&candidate, *prime) != 0);
        if fits && is_probably_prime(&candidate, generator) {
            return candidate;
        }
    }
}

impl RsaKey {
    /// Makes a key of 2048 bits from a seed that nobody knows. Takes a fraction of a second.
    pub(crate) fn generate(seed: [u8; 32]) -> Self {
        let mut generator = Generator { seed, counter: 0 };
        let small = small_primes();
        loop {
            let (p, q) = (prime(&mut generator, &small), prime(&mut generator, &small));
            if p != q
                && let Some(key) = Self::from_primes(&p, &q)
            {
                return key;
            }
        }
    }

    fn from_primes(p: &U1024, q: &U1024) -> Option<Self> {
        let modulus: U2048 = p.concatenating_mul(q);
        let less = |prime: &U1024| prime.wrapping_sub(&U1024::ONE);
        let totient: U2048 = less(p).concatenating_mul(&less(q));
        let totient = NonZero::new(totient).into_option()?;
        let exponent = U2048::from_u64(EXPONENT).invert_mod(&totient).into_option()?;
        let parameters = FixedMontyParams::new(Odd::new(modulus).into_option()?);
        let public =
            sequence(&[integer(modulus.to_be_bytes().as_ref()), integer(&EXPONENT.to_be_bytes())]);
        let algorithm =
            sequence(&[element(tag::OBJECT_ID, RSA_ENCRYPTION), element(tag::NULL, &[])]);
        let public_pem = pem("PUBLIC KEY", &sequence(&[algorithm, bit_string(&public)]));
        Some(Self { modulus, exponent, parameters, public_pem })
    }

    /// The public half, as clients ask for it.
    pub(crate) fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// What a client encrypted with OAEP (SHA-1). Something that cannot be a password if the
    /// ciphertext is none.
    pub(crate) fn decrypt(&self, ciphertext: &[u8]) -> Vec<u8> {
        let Ok(bytes) = <[u8; MODULUS_BYTES]>::try_from(ciphertext) else {
            return Vec::new();
        };
        let number = U2048::from_be_slice(&bytes);
        if number >= self.modulus {
            return Vec::new();
        }
        let form = FixedMontyForm::new(&number, &self.parameters);
        let plain = form.pow(&self.exponent).retrieve().to_be_bytes();
        let mut message = [0; MODULUS_BYTES];
        message.copy_from_slice(plain.as_ref());
        unpadded(message)
    }
}

/// XORs MGF1 of `seed` over `target`.
fn mask(seed: &[u8], target: &mut [u8]) {
    for (counter, chunk) in (0u32..).zip(target.chunks_mut(HASH_BYTES)) {
        let block = [seed, &counter.to_be_bytes()].concat();
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &block);
        chunk.iter_mut().zip(hash.as_ref()).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// 1 if two bytes are the same, else 0, without a branch.
fn same(a: u8, b: u8) -> u32 {
    (u32::from(a ^ b).wrapping_sub(1) >> 31) & 1
}

/// Takes OAEP's padding off; every message takes the same way.
fn unpadded(mut message: [u8; MODULUS_BYTES]) -> Vec<u8> {
    let (head, block) = message.split_at_mut(1 + HASH_BYTES);
    let (first, seed) = head.split_at_mut(1);
    mask(block, seed);
    mask(seed, block);
    let label = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[]);
    let mut good = same(first[0], 0);
    for (byte, expected) in block.iter().zip(label.as_ref()) {
        good &= same(*byte, *expected);
    }
    // The first byte behind the zeros must be 1; the text follows it.
    let (mut looking, mut start) = (1, 0);
    for (position, byte) in (0u32..).zip(block.iter()).skip(HASH_BYTES) {
        let (is_zero, is_one) = (same(*byte, 0), same(*byte, 1));
        let found = looking & is_one;
        start |= found.wrapping_neg() & (position + 1);
        good &= 1 ^ (looking & (1 ^ is_zero) & (1 ^ is_one));
        looking &= is_zero;
    }
    good &= 1 ^ looking;
    let keep = good.wrapping_neg() as u8;
    // A wrong one becomes zero bytes, behind which no password can begin.
    block[start.min(block.len() as u32) as usize..].iter().map(|byte| byte & keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAEP as a client does it, with a seed of sevens.
    fn padded(text: &[u8]) -> [u8; MODULUS_BYTES] {
        let mut message = [0; MODULUS_BYTES];
        let (head, block) = message.split_at_mut(1 + HASH_BYTES);
        let label = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[]);
        block[..HASH_BYTES].copy_from_slice(label.as_ref());
        let start = block.len() - text.len();
        block[start - 1] = 1;
        block[start..].copy_from_slice(text);
        head[1..].fill(7);
        mask(&head[1..], block);
        mask(block, &mut head[1..]);
        message
    }

    fn encrypted(key: &RsaKey, text: &[u8]) -> Vec<u8> {
        let number = U2048::from_be_slice(&padded(text));
        let form = FixedMontyForm::new(&number, &key.parameters);
        form.pow(&U2048::from_u64(EXPONENT)).retrieve().to_be_bytes().as_ref().to_vec()
    }

    #[test]
    fn what_was_encrypted_is_decrypted() {
        let key = RsaKey::generate([5; 32]);
        assert!(key.public_pem().starts_with("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ"));
        for text in [&b"secret\0"[..], b"", &[0x61; 200]] {
            assert_eq!(key.decrypt(&encrypted(&key, text)), text);
        }
        let mut broken = encrypted(&key, b"secret\0");
        broken[100] ^= 1;
        assert!(key.decrypt(&broken).iter().all(|byte| *byte == 0));
        assert_eq!(key.decrypt(b"short"), b"");
        assert_eq!(key.decrypt(&[0xff; MODULUS_BYTES]), b"");
    }

    #[test]
    fn padding_is_checked_everywhere() {
        assert_eq!(unpadded(padded(b"text")), b"text");
        for position in [0, 1, 30, 100, 254] {
            let mut message = padded(b"text");
            message[position] ^= 0x10;
            assert!(unpadded(message).iter().all(|byte| *byte == 0), "{position}");
        }
    }

    #[test]
    fn primes_are_told_from_products() {
        let mut generator = Generator { seed: [1; 32], counter: 0 };
        let small = small_primes();
        assert_eq!((small[0], small.len()), (3, 302));
        let p = prime(&mut generator, &small);
        assert!(is_probably_prime(&p, &mut generator));
        let composite = U1024::from_u64(2003).wrapping_mul(&U1024::from_u64(2011));
        assert!(!is_probably_prime(&composite, &mut generator));
    }
}
