//! MariaDB's `ed25519` plugin: a signature with a key made of the password.
//!
//! The key is that of Ed25519 with SHA-512 of the password (of any length) in place of SHA-512 of
//! a seed. The account keeps the public half, as 43 characters of base 64. Signatures are checked
//! by ring; the public key is computed here, once for each CREATE USER.

use super::der::{base64, from_base64};
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U256};
use ring::digest::{SHA512, digest};
use ring::signature::{ED25519, UnparsedPublicKey};

/// Name of the plugin, and of the client's half.
pub(crate) const NAME: &[u8] = b"client_ed25519";
/// Random bytes that a client signs.
pub(crate) const NONCE_BYTES: usize = 32;

type Form = FixedMontyForm<{ U256::LIMBS }>;

/// A point of the curve in extended coordinates: x = X/Z, y = Y/Z, XY = ZT.
#[derive(Clone, Copy)]
struct Point {
    x: Form,
    y: Form,
    z: Form,
    t: Form,
}

/// The field and what of the curve is needed.
struct Curve {
    parameters: FixedMontyParams<{ U256::LIMBS }>,
    twice_d: Form,
}

fn number(text: &str) -> U256 {
    U256::from_be_hex(text)
}

impl Curve {
    fn new() -> Option<Self> {
        let p = number("7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed");
        let parameters = FixedMontyParams::new(Odd::new(p).into_option()?);
        let d = number("52036cee2b6ffe738cc740797779e89800700a4d4141d8ab75eb4dca135978a3");
        let d = Form::new(&d, &parameters);
        Some(Self { parameters, twice_d: d.add(&d) })
    }

    fn base(&self) -> Point {
        let x = number("216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a");
        let y = number("6666666666666666666666666666666666666666666666666666666666666658");
        let (x, y) = (Form::new(&x, &self.parameters), Form::new(&y, &self.parameters));
        Point { x, y, z: Form::one(&self.parameters), t: x.mul(&y) }
    }

    /// The sum of two points; the formula holds for equal ones too.
    fn add(&self, one: &Point, other: &Point) -> Point {
        let a = one.y.sub(&one.x).mul(&other.y.sub(&other.x));
        let b = one.y.add(&one.x).mul(&other.y.add(&other.x));
        let c = one.t.mul(&self.twice_d).mul(&other.t);
        let d = one.z.add(&one.z).mul(&other.z);
        let (e, f, g, h) = (b.sub(&a), d.sub(&c), d.add(&c), b.add(&a));
        Point { x: e.mul(&f), y: g.mul(&h), z: f.mul(&g), t: e.mul(&h) }
    }

    /// The base point times a number of 32 bytes, the least significant first.
    fn multiple_of_base(&self, scalar: &[u8]) -> Point {
        let (zero, one) = (Form::zero(&self.parameters), Form::one(&self.parameters));
        let mut sum = Point { x: zero, y: one, z: one, t: zero };
        let base = self.base();
        for byte in scalar.iter().rev() {
            for bit in (0..8).rev() {
                sum = self.add(&sum, &sum);
                if byte >> bit & 1 != 0 {
                    sum = self.add(&sum, &base);
                }
            }
        }
        sum
    }

    /// y, and the sign of x in the highest bit.
    fn encoded(&self, point: &Point) -> [u8; 32] {
        let two = U256::from_u64(2);
        let inverse = point.z.pow(&self.parameters.modulus().as_ref().wrapping_sub(&two));
        let x = point.x.mul(&inverse).retrieve().to_le_bytes();
        let y = point.y.mul(&inverse).retrieve().to_le_bytes();
        let mut bytes = [0; 32];
        bytes.copy_from_slice(y.as_ref());
        bytes[31] |= (x.as_ref()[0] & 1) << 7;
        bytes
    }
}

/// The public key of a password.
pub(crate) fn public_key(password: &[u8]) -> Option<[u8; 32]> {
    let hash = digest(&SHA512, password);
    let mut scalar = [0; 32];
    scalar.copy_from_slice(&hash.as_ref()[..32]);
    scalar[0] &= 248;
    scalar[31] = scalar[31] & 63 | 64;
    let curve = Curve::new()?;
    Some(curve.encoded(&curve.multiple_of_base(&scalar)))
}

/// As accounts keep it.
pub(crate) fn text(key: &[u8; 32]) -> String {
    base64(key).trim_end_matches('=').to_owned()
}

/// The key of an account's text.
pub(crate) fn from_text(text: &str) -> Option<[u8; 32]> {
    from_base64(text)?.try_into().ok()
}

/// Whether `signature` is the nonce signed with the password's key.
pub(crate) fn check(key: &[u8; 32], nonce: &[u8; NONCE_BYTES], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(nonce, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_mariadbs() {
        // SELECT ed25519_password(...) of MariaDB.
        for (password, expected) in [
            ("secret", "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"),
            ("foo", "vubFBzIrapbfHct1/J72dnUryz5VS7lA6XHH8sIx4TI"),
        ] {
            assert_eq!(text(&public_key(password.as_bytes()).unwrap()), expected);
            assert_eq!(from_text(expected), public_key(password.as_bytes()));
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        assert_eq!(from_text("short"), None);
        assert_eq!(from_text(""), None);
        assert!(!check(&public_key(b"x").unwrap(), &[1; 32], &[0; 64]));
    }
}
