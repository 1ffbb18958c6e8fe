//! Character sets: how bytes become characters, and conversion between sets.

/// A character set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Charset {
    /// Bytes.
    Binary,
    /// 7 bit.
    Ascii,
    /// cp1252, MySQL's latin1.
    Latin1,
    /// UTF-8 up to three bytes.
    Utf8mb3,
    /// UTF-8.
    Utf8mb4,
}

static LATIN1: &[u8; 768] = include_bytes!("../data/latin1.bin");

/// Unicode code point of a latin1 byte.
fn latin1_code_point(byte: u8) -> u32 {
    let at = 256 + 2 * usize::from(byte);
    u32::from(u16::from_le_bytes([LATIN1[at], LATIN1[at + 1]]))
}

/// latin1 byte of a code point.
fn latin1_byte(code_point: u32) -> Option<u8> {
    let same = u8::try_from(code_point).ok().filter(|&b| latin1_code_point(b) == code_point);
    same.or_else(|| (0x80..=0x9f).find(|&byte| latin1_code_point(byte) == code_point))
}

impl Charset {
    /// Name as SHOW CHARACTER SET has it.
    pub fn name(self) -> &'static str {
        match self {
            Charset::Binary => "binary",
            Charset::Ascii => "ascii",
            Charset::Latin1 => "latin1",
            Charset::Utf8mb3 => "utf8mb3",
            Charset::Utf8mb4 => "utf8mb4",
        }
    }

    /// By name, case-insensitively; `utf8` is utf8mb3.
    pub fn by_name(name: &str) -> Option<Self> {
        let all = [Self::Binary, Self::Ascii, Self::Latin1, Self::Utf8mb3, Self::Utf8mb4];
        if name.eq_ignore_ascii_case("utf8") {
            return Some(Self::Utf8mb3);
        }
        all.into_iter().find(|charset| charset.name().eq_ignore_ascii_case(name))
    }

    /// Longest character in bytes.
    pub fn max_bytes(self) -> u32 {
        match self {
            Charset::Binary | Charset::Ascii | Charset::Latin1 => 1,
            Charset::Utf8mb3 => 3,
            Charset::Utf8mb4 => 4,
        }
    }

    /// Whether every character is one byte.
    pub fn is_single_byte(self) -> bool {
        self.max_bytes() == 1
    }

    /// The first character's code point and length in bytes; `None` if the bytes are not a
    /// character of the set. `text` is not empty.
    #[inline]
    pub fn decode(self, text: &[u8]) -> Option<(u32, usize)> {
        let first = text[0];
        match self {
            Charset::Binary => Some((u32::from(first), 1)),
            Charset::Ascii => first.is_ascii().then_some((u32::from(first), 1)),
            Charset::Latin1 => Some((latin1_code_point(first), 1)),
            Charset::Utf8mb3 => decode_utf8(text).filter(|&(_, length)| length <= 3),
            Charset::Utf8mb4 => decode_utf8(text),
        }
    }

    /// Length in bytes of the first character; 1 for a byte that begins none.
    #[inline]
    pub fn character_bytes(self, text: &[u8]) -> usize {
        if self.is_single_byte() || text[0] < 0x80 {
            return 1;
        }
        self.decode(text).map_or(1, |(_, length)| length)
    }

    /// Appends a code point; false if the set does not have it.
    pub fn encode(self, code_point: u32, out: &mut Vec<u8>) -> bool {
        let byte = match self {
            Charset::Binary => u8::try_from(code_point).ok(),
            Charset::Ascii => u8::try_from(code_point).ok().filter(u8::is_ascii),
            Charset::Latin1 => latin1_byte(code_point),
            Charset::Utf8mb3 if code_point > 0xffff => None,
            Charset::Utf8mb3 | Charset::Utf8mb4 => {
                let Some(character) = char::from_u32(code_point) else { return false };
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return true;
            }
        };
        out.extend(byte);
        byte.is_some()
    }

    /// Number of characters.
    pub fn character_count(self, text: &[u8]) -> usize {
        if self.is_single_byte() {
            return text.len();
        }
        if text.is_ascii() {
            return text.len();
        }
        let (mut count, mut at) = (0, 0);
        while at < text.len() {
            at += self.character_bytes(&text[at..]);
            count += 1;
        }
        count
    }

    /// Byte offset of character `index` (the text's length if it has fewer).
    pub fn byte_offset(self, text: &[u8], index: usize) -> usize {
        // A character takes at least a byte.
        if self.is_single_byte() || text.len() <= index {
            return index.min(text.len());
        }
        let mut at = 0;
        for _ in 0..index {
            if at >= text.len() {
                return text.len();
            }
            at += self.character_bytes(&text[at..]);
        }
        at
    }

    /// Length in bytes of the longest prefix that is valid in the set.
    pub fn valid_prefix(self, text: &[u8]) -> usize {
        match self {
            Charset::Binary | Charset::Latin1 => text.len(),
            Charset::Ascii => text.iter().position(|b| !b.is_ascii()).unwrap_or(text.len()),
            Charset::Utf8mb4 => match std::str::from_utf8(text) {
                Ok(_) => text.len(),
                Err(error) => error.valid_up_to(),
            },
            Charset::Utf8mb3 => {
                let mut at = 0;
                while at < text.len() {
                    match self.decode(&text[at..]) {
                        Some((_, length)) => at += length,
                        None => break,
                    }
                }
                at
            }
        }
    }

    /// Whether bytes of this set are, unchanged, bytes of `target`.
    pub fn is_subset_of(self, target: Charset, text: &[u8]) -> bool {
        self == target
            || target == Charset::Binary
            || (self == Charset::Utf8mb3 && target == Charset::Utf8mb4)
            || (self != Charset::Binary && text.is_ascii())
    }

    /// Appends `text` of this set converted to `target`; the number of characters that it
    /// does not have (each became `?`).
    pub fn convert(self, text: &[u8], target: Charset, out: &mut Vec<u8>) -> usize {
        if self.is_subset_of(target, text) || self == Charset::Binary {
            out.extend_from_slice(text);
            return 0;
        }
        let (mut at, mut lost) = (0, 0);
        while at < text.len() {
            match self.decode(&text[at..]) {
                Some((code_point, length)) => {
                    at += length;
                    if !target.encode(code_point, out) {
                        out.push(b'?');
                        lost += 1;
                    }
                }
                None => {
                    at += 1;
                    lost += 1;
                    out.push(b'?');
                }
            }
        }
        lost
    }
}

/// The first character of UTF-8 text: code point and length. Overlong forms, surrogates and
/// what ends early are no characters.
#[inline]
pub fn decode_utf8(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    if first < 0x80 {
        return Some((u32::from(first), 1));
    }
    let continuation = |i: usize| {
        text.get(i).filter(|&&byte| byte & 0xc0 == 0x80).map(|&byte| u32::from(byte & 0x3f))
    };
    let lead = u32::from(first);
    let (code_point, length) = match first {
        0xc2..=0xdf => ((lead & 0x1f) << 6 | continuation(1)?, 2),
        0xe0..=0xef => {
            let value = (lead & 0x0f) << 12 | continuation(1)? << 6 | continuation(2)?;
            (value, if value >= 0x800 { 3 } else { return None })
        }
        0xf0..=0xf4 => {
            let value = (lead & 0x07) << 18
                | continuation(1)? << 12
                | continuation(2)? << 6
                | continuation(3)?;
            (value, if value >= 0x1_0000 { 4 } else { return None })
        }
        _ => return None,
    };
    char::from_u32(code_point).map(|_| (code_point, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_agrees_with_the_standard_library() {
        for code_point in (0..0x11_0000).filter_map(char::from_u32) {
            let mut buffer = [0; 4];
            let text = code_point.encode_utf8(&mut buffer).as_bytes();
            assert_eq!(decode_utf8(text), Some((u32::from(code_point), text.len())));
        }
        for bad in [&b"\xc0\x80"[..], b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80", b"\xe2\x82"] {
            assert_eq!(decode_utf8(bad), None);
        }
    }

    #[test]
    fn latin1_is_cp1252() {
        let mut out = Vec::new();
        assert_eq!(Charset::Latin1.convert(b"\x80\xe9", Charset::Utf8mb4, &mut out), 0);
        assert_eq!(out, "€é".as_bytes());
        let mut back = Vec::new();
        assert_eq!(Charset::Utf8mb4.convert("€é😀".as_bytes(), Charset::Latin1, &mut back), 1);
        assert_eq!(back, b"\x80\xe9?");
    }
}
