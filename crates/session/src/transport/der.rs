//! As much of ASN.1's distinguished encoding as certificates and public keys need, and PEM.

/// Tags.
pub(super) mod tag {
    pub(crate) const BOOLEAN: u8 = 1;
    pub(crate) const INTEGER: u8 = 2;
    pub(crate) const BIT_STRING: u8 = 3;
    pub(crate) const OCTET_STRING: u8 = 4;
    pub(crate) const NULL: u8 = 5;
    pub(crate) const OBJECT_ID: u8 = 6;
    pub(crate) const UTF8_STRING: u8 = 12;
    pub(crate) const UTC_TIME: u8 = 23;
    pub(crate) const GENERALIZED_TIME: u8 = 24;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;
}

/// One element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        short @ 0..=127 => out.push(short as u8),
        middle @ 128..=255 => out.extend([0x81, middle as u8]),
        long => {
            out.push(0x82);
            out.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}

/// Elements one after the other within one.
pub(super) fn nested(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    element(tag, &parts.concat())
}

/// SEQUENCE.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    nested(tag::SEQUENCE, parts)
}

/// A positive INTEGER from its bytes, the most significant first.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let significant = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let mut content = bytes[significant..].to_vec();
    if content.first().is_none_or(|byte| byte & 0x80 != 0) {
        content.insert(0, 0);
    }
    element(tag::INTEGER, &content)
}

/// A BIT STRING of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(tag::BIT_STRING, &[&[0], bytes].concat())
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base 64 with `=` at the end.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for position in 0..4 {
            let index = bits >> (18 - 6 * position) & 63;
            let used = position <= group.len();
            out.push(if used { char::from(ALPHABET[index as usize]) } else { '=' });
        }
    }
    out
}

/// The bytes of base 64 without `=` at the end; `None` if it is none.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == character)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0).then_some(out)
}

/// A PEM block.
pub(super) fn pem(label: &str, bytes: &[u8]) -> String {
    let mut out = format!("-----BEGIN {label}-----\n");
    let text = base64(bytes);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = tail;
    }
    out.push_str(&format!("-----END {label}-----\n"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_signs_are_ders() {
        assert_eq!(integer(&[0, 0, 5]), [2, 1, 5]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(integer(&[]), [2, 1, 0]);
        assert_eq!(element(4, &[1; 130])[..3], [4, 0x81, 130]);
        assert_eq!(element(4, &[1; 300])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn base64_has_its_padding() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in cases {
            assert_eq!(base64(plain.as_bytes()), encoded);
            let back = from_base64(encoded.trim_end_matches('='));
            assert_eq!(back.as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(from_base64("Z*"), None);
        assert!(pem("X", &[0; 60]).starts_with("-----BEGIN X-----\nAAAA"));
    }
}
