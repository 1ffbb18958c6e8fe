//! Digests and checksums.

use super::typing::{any_text, bytes, constant_integer};
use super::{Frame, Function, any_nullable};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};
use types::{ColumnType, SqlError, TypeKind, Value, ValueRef, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("md5", 1, 1, resolve_md5, md5),
    Function::new("sha1", 1, 1, resolve_sha1, sha1_digest),
    Function::new("sha", 1, 1, resolve_sha1, sha1_digest),
    Function::new("sha2", 2, 2, resolve_sha2, sha2_digest),
    Function::new("crc32", 1, 2, resolve_crc32, crc32),
];

type Resolved = Result<ResultType, SqlError>;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}

fn resolve_md5(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 32))
}

fn md5(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    Ok(frame.keep(hexadecimal(&md5_of(text)).as_bytes()))
}

/// Shifts of MD5's four rounds.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// MD5 (RFC 1321).
fn md5_of(text: &[u8]) -> [u8; 16] {
    let mut message = text.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(8 * text.len() as u64).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in message.chunks_exact(64) {
        let mut words = [0u32; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let [mut a, mut b, mut c, mut d] = state;
        for i in 0..64 {
            let (mix, index) = match i / 16 {
                0 => ((b & c) | (!b & d), i),
                1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
                2 => (b ^ c ^ d, (3 * i + 5) % 16),
                _ => (c ^ (b | !d), 7 * i % 16),
            };
            let sine = ((i as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a.wrapping_add(mix).wrapping_add(sine).wrapping_add(words[index]);
            let rotated = sum.rotate_left(SHIFTS[i / 16][i % 4]);
            (a, b, c, d) = (d, b.wrapping_add(rotated), b, c);
        }
        for (word, added) in state.iter_mut().zip([a, b, c, d]) {
            *word = word.wrapping_add(added);
        }
    }
    let mut digest = [0u8; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

fn resolve_sha1(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 40))
}

fn sha1_digest(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    Ok(frame.keep(hexadecimal(&Sha1::digest(text)).as_bytes()))
}

fn resolve_sha2(builder: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let bits = match arguments[1].literal() {
        Some(Value::Null) => Some(256),
        _ => constant_integer(builder, arguments.get(1)),
    };
    Ok(match bits {
        Some(0 | 256) => any_text(builder, 64),
        Some(224) => any_text(builder, 56),
        Some(384) => any_text(builder, 96),
        Some(_) if arguments[1].literal().is_some() && !is_512(builder, arguments) => bytes(0),
        _ => any_text(builder, 128),
    })
}

fn is_512(builder: &Builder<'_>, arguments: &[Expr]) -> bool {
    constant_integer(builder, arguments.get(1)) == Some(512)
}

fn sha2_digest(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    let digest = match frame.integer(1)?.unwrap_or(0) {
        0 | 256 => Sha256::digest(text).to_vec(),
        224 => Sha224::digest(text).to_vec(),
        384 => Sha384::digest(text).to_vec(),
        512 => Sha512::digest(text).to_vec(),
        _ => {
            frame.context.warn(&codes::WRONG_PARAMETERS_TO_NATIVE_FCT, &[&"sha2"])?;
            return Ok(ValueRef::Null);
        }
    };
    Ok(frame.keep(hexadecimal(&digest).as_bytes()))
}

fn resolve_crc32(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let mut column_type = ColumnType::integer(TypeKind::Int, true);
    column_type.length = 10;
    Ok(ResultType::of(column_type, any_nullable(arguments)))
}

/// For each byte, what it does to a CRC-32 when 0 to 7 more bytes follow ("slicing by 8").
static CRC32_TABLES: [[u32; 256]; 8] = crc32_tables();

const fn crc32_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg();
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut more = 1;
    while more < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[more - 1][byte];
            tables[more][byte] = crc >> 8 ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        more += 1;
    }
    tables
}

/// CRC-32 (IEEE 802.3, reflected), eight bytes at a time.
fn crc32_of(before: u32, text: &[u8]) -> u32 {
    let (chunks, rest) = text.as_chunks::<8>();
    let tables = &CRC32_TABLES;
    let at = |table: usize, byte: u32| tables[table][(byte & 0xff) as usize];
    let by_eight = chunks.iter().fold(!before, |crc, chunk| {
        let [a, b, c, d, e, f, g, h] = *chunk;
        let low = crc ^ u32::from_le_bytes([a, b, c, d]);
        let high = u32::from_le_bytes([e, f, g, h]);
        at(7, low)
            ^ at(6, low >> 8)
            ^ at(5, low >> 16)
            ^ at(4, low >> 24)
            ^ at(3, high)
            ^ at(2, high >> 8)
            ^ at(1, high >> 16)
            ^ at(0, high >> 24)
    });
    !rest.iter().fold(by_eight, |crc, &byte| crc >> 8 ^ at(0, crc ^ u32::from(byte)))
}

fn crc32(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    checksum(&frame, crc32_of)
}

/// A checksum of the last argument, going on from the one before it.
pub(super) fn checksum<'a>(
    frame: &Frame<'a>,
    of: fn(u32, &[u8]) -> u32,
) -> Result<ValueRef<'a>, SqlError> {
    let last = frame.count() - 1;
    let before = match last {
        0 => 0,
        _ => match frame.wide(0)? {
            Some(before) => before as u32,
            None => return Ok(ValueRef::Null),
        },
    };
    let text = frame.text(last)?;
    Ok(text.map_or(ValueRef::Null, |text| ValueRef::UInt(u64::from(of(before, text)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_known_texts() {
        assert_eq!(hexadecimal(&md5_of(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hexadecimal(&md5_of(&[b'a'; 100])), "36a92cc94a9e0fa21f625f8bfb007adf");
        assert_eq!(crc32_of(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32_of(0, b""), 0);
        assert_eq!(crc32_of(0, b"The quick brown fox jumps over the lazy dog"), 0x414f_a339);
    }
}
