//! MariaDB's `ed25519` plugin: a signature with a key made of the password.
//!
//! The key is that of Ed25519 with SHA-512 of the password (of any length) in place of SHA-512 of
//! a seed of 32 bytes. So no library of signatures makes the public half of it: it is the curve's
//! base point times the hash, by curve25519-dalek. The account keeps it as 43 characters of base
//! 64. The signatures are Ed25519's.

use aws_lc_rs::digest::{SHA512, digest};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use curve25519_dalek::edwards::EdwardsPoint;

/// Name of the plugin, and of the client's half.
pub(crate) const NAME: &[u8] = b"client_ed25519";
/// Random bytes that a client signs.
pub(crate) const NONCE_BYTES: usize = 32;

/// The public key of a password.
pub(crate) fn public_key(password: &[u8]) -> [u8; 32] {
    let hash = digest(&SHA512, password);
    let mut scalar = [0; 32];
    scalar.copy_from_slice(&hash.as_ref()[..32]);
    EdwardsPoint::mul_base_clamped(scalar).compress().to_bytes()
}

/// As accounts keep it.
pub(crate) fn text(key: &[u8; 32]) -> String {
    STANDARD_NO_PAD.encode(key)
}

/// The key of an account's text.
pub(crate) fn from_text(text: &str) -> Option<[u8; 32]> {
    STANDARD_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Whether `signature` is the nonce signed with the password's key.
pub(crate) fn check(key: &[u8; 32], nonce: &[u8; NONCE_BYTES], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(nonce, signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::Ed25519KeyPair;

    #[test]
    fn keys_are_mariadbs() {
        // SELECT ed25519_password(...) of MariaDB.
        for (password, expected) in [
            ("secret", "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY"),
            ("foo", "vubFBzIrapbfHct1/J72dnUryz5VS7lA6XHH8sIx4TI"),
        ] {
            assert_eq!(text(&public_key(password.as_bytes())), expected);
            assert_eq!(from_text(expected), Some(public_key(password.as_bytes())));
        }
    }

    #[test]
    fn a_password_of_32_bytes_is_a_seed() {
        let (password, nonce) = (b"a password of exactly 32 bytes..", [5; NONCE_BYTES]);
        let pair = Ed25519KeyPair::from_seed_unchecked(password).unwrap();
        let signature = pair.sign(&nonce);
        assert!(check(&public_key(password), &nonce, signature.as_ref()));
        assert!(!check(&public_key(password), &[6; NONCE_BYTES], signature.as_ref()));
        assert!(!check(&public_key(b"another"), &nonce, signature.as_ref()));
        assert!(!check(&public_key(password), &nonce, &signature.as_ref()[..63]));
    }

    #[test]
    fn what_is_no_key_is_none() {
        assert_eq!(from_text("short"), None);
        assert_eq!(from_text(""), None);
        // One bit more than 32 bytes have.
        assert_eq!(from_text("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJZ"), None);
        assert!(!check(&public_key(b"x"), &[1; 32], &[0; 64]));
        assert!(!check(&[0xff; 32], &[1; 32], &[0; 64]));
    }
}
