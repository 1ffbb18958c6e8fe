//! caching_sha2_password: SHA-256 in place of SHA-1, with a slow hash on disk.
//!
//! 1. The account keeps `$A$005$`, a salt of 20 bytes and 43 characters of SHA-256 crypt with
//!    5000 rounds ([`make_hash`]). From it nobody can log in.
//! 2. The client's proof is SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble)
//!    ([`check_proof`]). It can be checked only by a server that knows SHA256(SHA256(password)),
//!    which it keeps in memory after a login by rule 3.
//! 3. Otherwise the server asks for the password itself ([`FULL_AUTHENTICATION`]): as clear text
//!    over TLS and UNIX sockets, encrypted for the server's RSA key elsewhere, and compares by
//!    [`matches_hash`].

use crate::handshake::SCRAMBLE_BYTES;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Name of the plugin.
pub const NAME: &[u8] = b"caching_sha2_password";
/// The client asks for the server's public key.
pub const REQUEST_PUBLIC_KEY: u8 = 2;
/// The proof was right; OK follows.
pub const FAST_SUCCESS: u8 = 3;
/// The server needs the password itself.
pub const FULL_AUTHENTICATION: u8 = 4;

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 32;
/// Bytes of the salt.
pub const SALT_BYTES: usize = 20;
const PREFIX: &str = "$A$005$";
const ROUNDS: usize = 5000;
const DIGEST_CHARACTERS: usize = 43;

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// What a server keeps in memory of a password: SHA256(SHA256(password)).
pub fn fast_hash(password: &[u8]) -> [u8; 32] {
    sha256(&[&sha256(&[password])])
}

/// Checks a proof by the hash in memory. Takes the same time wherever it differs.
pub fn check_proof(scramble: &[u8; SCRAMBLE_BYTES], fast_hash: &[u8; 32], proof: &[u8]) -> bool {
    let Ok(proof) = <&[u8; 32]>::try_from(proof) else {
        return false;
    };
    let mut stage = sha256(&[fast_hash, scramble]);
    stage.iter_mut().zip(proof).for_each(|(byte, given)| *byte ^= given);
    sha256(&[&stage]).ct_eq(fast_hash).into()
}

/// The proof a client makes; for test clients.
pub fn make_proof(scramble: &[u8; SCRAMBLE_BYTES], password: &[u8]) -> [u8; 32] {
    let mut proof = sha256(&[&fast_hash(password), scramble]);
    proof.iter_mut().zip(sha256(&[password])).for_each(|(byte, stage)| *byte ^= stage);
    proof
}

/// A password as clients hide it within an encrypted packet: XOR with the scramble, again and
/// again. The same brings it back.
pub fn mask(password: &mut [u8], scramble: &[u8; SCRAMBLE_BYTES]) {
    password.iter_mut().zip(scramble.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

/// What an account keeps. `salt` must be made of printable characters without `$`, as
/// [`crate::handshake::scramble_from_random`] makes them. Takes milliseconds on purpose.
pub fn make_hash(password: &[u8], salt: &[u8; SALT_BYTES]) -> String {
    let salt_text: String = salt.iter().map(|byte| char::from(*byte)).collect();
    format!("{PREFIX}{salt_text}{}", crypt(password, salt))
}

/// Whether `text` has the form of [`make_hash`].
pub fn is_hash(text: &str) -> bool {
    let rest = text.strip_prefix(PREFIX).filter(|_| text.is_ascii());
    rest.is_some_and(|rest| rest.len() == SALT_BYTES + DIGEST_CHARACTERS)
}

/// Whether a password is the one that `text` was made of. Takes milliseconds on purpose.
pub fn matches_hash(text: &str, password: &[u8]) -> bool {
    let parts = text.strip_prefix(PREFIX).and_then(|rest| rest.split_at_checked(SALT_BYTES));
    let Some((salt, digest)) = parts else {
        return false;
    };
    crypt(password, salt.as_bytes()).as_bytes().ct_eq(digest.as_bytes()).into()
}

/// Repeats a digest to a length.
fn stretched(digest: &[u8; 32], length: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(length).collect()
}

/// Ulrich Drepper's SHA-256 crypt with the whole salt. MySQL takes all 20 bytes of it, where crypt
/// and the libraries of it (`sha-crypt` too) take the first 16: the same password has another hash.
fn crypt(key: &[u8], salt: &[u8]) -> String {
    let alternate = sha256(&[key, salt, key]);
    let mut hash = Sha256::new();
    hash.update(key);
    hash.update(salt);
    hash.update(stretched(&alternate, key.len()));
    let mut bits = key.len();
    while bits > 0 {
        if bits & 1 != 0 {
            hash.update(alternate)
        } else {
            hash.update(key)
        }
        bits >>= 1;
    }
    let mut digest: [u8; 32] = hash.finalize().into();
    let mut key_hash = Sha256::new();
    (0..key.len()).for_each(|_| key_hash.update(key));
    let keys = stretched(&key_hash.finalize().into(), key.len());
    let mut salt_hash = Sha256::new();
    (0..16 + usize::from(digest[0])).for_each(|_| salt_hash.update(salt));
    let salts = stretched(&salt_hash.finalize().into(), salt.len());
    for round in 0..ROUNDS {
        let mut hash = Sha256::new();
        if round % 2 != 0 {
            hash.update(&keys)
        } else {
            hash.update(digest)
        }
        if round % 3 != 0 {
            hash.update(&salts);
        }
        if round % 7 != 0 {
            hash.update(&keys);
        }
        if round % 2 != 0 {
            hash.update(digest)
        } else {
            hash.update(&keys)
        }
        digest = hash.finalize().into();
    }
    encoded(&digest)
}

/// crypt's own base 64, three bytes of the digest in its order at a time.
fn encoded(digest: &[u8; 32]) -> String {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(DIGEST_CHARACTERS);
    let mut put = |bytes: [u8; 3], characters: usize| {
        let mut bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for _ in 0..characters {
            text.push(char::from(ALPHABET[(bits & 63) as usize]));
            bits >>= 6;
        }
    };
    let (mut a, mut b, mut c) = (0, 10, 20);
    for _ in 0..10 {
        put([digest[a], digest[b], digest[c]], 4);
        (a, b, c) = ((c + 1) % 30, (a + 1) % 30, (b + 1) % 30);
    }
    put([0, digest[31], digest[30]], 3);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crypt_is_drepperss() {
        // `openssl passwd -5 -salt saltstringsaltst` says the same; lengths around a block.
        for (password, expected) in [
            ("a", "37CelltD6iMn9nFf.xJrAnACdAdHwtWz5Z4YML7HKcB"),
            ("0123456789012345678901234567890", "v7RzKDWZvwGLrXjwmjKW2ARjKSqb.KPuvBlnkw05k00"),
            ("01234567890123456789012345678901", "tU7SuJqmeRwx81OKisynEJDjFQA4/G4UlipsTGXzvA3"),
            ("012345678901234567890123456789012", "ZxGPm0Whe0VAtFPaFgl.OcthFn.v0SRvYAKFCT19Ph8"),
            (
                "a password that is much longer than one block of the hash, sixty-four bytes",
                "6rP9WCk3OR0wWMI12nRNhCA8DMIZa8oLjigC6qem2U2",
            ),
        ] {
            assert_eq!(crypt(password.as_bytes(), b"saltstringsaltst"), expected, "{password}");
        }
    }

    #[test]
    fn hashes_of_mysql_are_matched() {
        // authentication_string of an account of MySQL 8 with the password foobar: its salt has 20
        // bytes, and with the first 16 of them the hash would be another one.
        let text = "$A$005$\u{3}\u{1a}i%\u{1c}4)\\K5\u{16}|\u{7f}\u{1e}Z{c\t\u{13}IP9tbM4PKZBFy5HV3\
                    hhhoRHZsnJs3hxnBuuQlsDdiIe7";
        assert!(is_hash(text) && matches_hash(text, b"foobar"));
        assert!(!matches_hash(text, b"foobaz") && !matches_hash(text, b""));
    }

    #[test]
    fn hashes_are_recognised_and_compared() {
        let salt = b"abcdefghijklmnopqrst";
        let text = make_hash(b"secret", salt);
        assert!(is_hash(&text) && text.starts_with("$A$005$abcdefghijklmnopqrst"));
        assert!(matches_hash(&text, b"secret"));
        assert!(!matches_hash(&text, b"Secret") && !matches_hash("", b"secret"));
        assert!(!is_hash("$A$005$short") && !is_hash("*7B9EBEED26AA52ED10C0F549FA863F13C39E0209"));
    }

    #[test]
    fn proofs_are_checked() {
        let scramble = crate::handshake::scramble_from_random([7; SCRAMBLE_BYTES]);
        let mut proof = make_proof(&scramble, b"secret");
        assert!(check_proof(&scramble, &fast_hash(b"secret"), &proof));
        proof[31] ^= 1;
        assert!(!check_proof(&scramble, &fast_hash(b"secret"), &proof));
        assert!(!check_proof(&scramble, &fast_hash(b"secret"), b""));
    }

    #[test]
    fn a_mask_is_its_own_opposite() {
        let scramble = [9; SCRAMBLE_BYTES];
        let mut password = *b"a password longer than the scramble is";
        mask(&mut password, &scramble);
        assert_ne!(&password[..4], b"a pa");
        mask(&mut password, &scramble);
        assert_eq!(&password[..4], b"a pa");
    }
}
