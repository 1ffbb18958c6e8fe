//! The RSA key by which clients without TLS send a password to caching_sha2_password.
//!
//! Invariants:
//! 1. Key, power and padding are AWS-LC's, which takes the same time for every ciphertext. One
//!    that it refuses becomes a wrong password, and the caller makes it cost what one costs.
//! 2. The key lives in memory, from its first use to the end of the process.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use pem::{EncodeConfig, LineEnding, Pem};

/// A key pair of 2048 bits.
pub(crate) struct RsaKey {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl RsaKey {
    /// Makes a key; takes a fraction of a second. Fails if the library has no memory for one.
    pub(crate) fn generate() -> Result<Self, Unspecified> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048)?;
        let public: PublicKeyX509Der<'_> = private.public_key().as_der()?;
        let block = Pem::new("PUBLIC KEY", public.as_ref());
        let form = EncodeConfig::new().set_line_ending(LineEnding::LF);
        let public_pem = pem::encode_config(&block, form);
        Ok(Self { private: OaepPrivateDecryptingKey::new(private)?, public_pem })
    }

    /// The public half, as clients ask for it.
    pub(crate) fn public_pem(&self) -> &str {
        &self.public_pem
    }

    /// What a client encrypted with OAEP (SHA-1); `None` if the ciphertext is none.
    pub(crate) fn decrypt(&self, ciphertext: &[u8]) -> Option<Vec<u8>> {
        let mut room = vec![0; self.private.min_output_size()];
        let algorithm = &OAEP_SHA1_MGF1SHA1;
        let clear = self.private.decrypt(algorithm, ciphertext, &mut room, None).ok()?;
        Some(clear.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rsa::{OaepPublicEncryptingKey, PublicEncryptingKey};

    /// As a client does it with what [`RsaKey::public_pem`] says.
    fn encrypted(key: &RsaKey, text: &[u8]) -> Vec<u8> {
        let block = pem::parse(key.public_pem()).unwrap();
        let public = PublicEncryptingKey::from_der(block.contents()).unwrap();
        let public = OaepPublicEncryptingKey::new(public).unwrap();
        let mut room = vec![0; public.ciphertext_size()];
        public.encrypt(&OAEP_SHA1_MGF1SHA1, text, &mut room, None).unwrap().to_vec()
    }

    #[test]
    fn what_was_encrypted_is_decrypted() {
        let key = RsaKey::generate().unwrap();
        assert!(key.public_pem().starts_with("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ"));
        for text in [&b"secret\0"[..], b"", &[0x61; 200]] {
            assert_eq!(key.decrypt(&encrypted(&key, text)).unwrap(), text);
        }
    }

    #[test]
    fn what_was_not_encrypted_for_the_key_is_nothing() {
        let (key, other) = (RsaKey::generate().unwrap(), RsaKey::generate().unwrap());
        let good = encrypted(&key, b"secret\0");
        for position in [0, 1, 100, 255] {
            let mut broken = good.clone();
            broken[position] ^= 1;
            assert_eq!(key.decrypt(&broken), None, "{position}");
        }
        assert_eq!(other.decrypt(&good), None);
        for length in [0, 1, 32, 255, 257, 1000] {
            assert_eq!(key.decrypt(&vec![0xff; length]), None, "{length}");
        }
        assert_eq!(key.decrypt(&[0xff; 256]), None, "above the modulus");
        assert_eq!(key.decrypt(&[0; 256]), None);
    }
}
