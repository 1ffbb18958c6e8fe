//! The proof of a password.

use sha1::{Digest, Sha1};

/// SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password))), as mysql_native_password wants.
pub(crate) fn native_password(password: &str, scramble: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let mut mixed = Sha1::new();
    mixed.update(&scramble[..scramble.len().min(20)]);
    mixed.update(twice);
    once.iter().zip(mixed.finalize()).map(|(a, b)| a ^ b).collect()
}
