//! A password encrypted with the key that a server shows (RSA, OAEP with SHA-1), as
//! caching_sha2_password wants it over a connection in clear.

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};

/// Encrypts with a public key in PEM; the error says what is wrong with the key.
pub(super) fn encrypted(key: &[u8], clear: &[u8]) -> Result<Vec<u8>, String> {
    let block = pem::parse(key).map_err(|error| error.to_string())?;
    let key = PublicEncryptingKey::from_der(block.contents()).map_err(|_| "it is no RSA key")?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| "it is no RSA key for OAEP")?;
    let mut room = vec![0; key.ciphertext_size()];
    let hidden = key.encrypt(&OAEP_SHA1_MGF1SHA1, clear, &mut room, None);
    hidden.map(|hidden| hidden.to_vec()).map_err(|_| "the password is too long for it".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(encrypted(b"-----BEGIN x", b"secret").is_err());
        let block = pem::encode(&pem::Pem::new("PUBLIC KEY", [1, 2, 3]));
        assert_eq!(encrypted(block.as_bytes(), b"secret").expect_err("none"), "it is no RSA key");
    }
}
