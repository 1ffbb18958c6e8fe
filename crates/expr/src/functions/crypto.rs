//! Encryption, compression and passwords.

use super::hash::checksum;
use super::typing::{any_text, argument_bytes, bytes, int};
use super::{Frame, Function, any_nullable};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use aes::Aes128;
use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use sha1::{Digest, Sha1};
use types::{SqlError, ValueRef, Warning, codes};

pub(crate) static FUNCTIONS: &[Function] = &[
    Function::new("aes_encrypt", 2, 2, resolve_encrypt, aes_encrypt),
    Function::new("aes_decrypt", 2, 2, resolve_same_bytes, aes_decrypt),
    Function::new("compress", 1, 1, resolve_compress, compress),
    Function::new("uncompress", 1, 1, resolve_uncompress, uncompress),
    Function::new("uncompressed_length", 1, 1, resolve_length, uncompressed_length),
    Function::new("password", 1, 1, resolve_password, password),
    Function::new("crc32c", 1, 2, resolve_crc32c, crc32c),
];

type Resolved = Result<ResultType, SqlError>;

const BLOCK: usize = 16;
/// Level of zlib's default.
const LEVEL: u8 = 6;

fn resolve_encrypt(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(bytes((argument_bytes(&arguments[0]) / BLOCK as u64 + 1) * BLOCK as u64))
}

fn resolve_same_bytes(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    Ok(bytes(argument_bytes(&arguments[0])))
}

/// A key of any length folded to 128 bits.
fn cipher(key: &[u8]) -> Aes128 {
    let mut folded = [0u8; BLOCK];
    for (at, byte) in key.iter().enumerate() {
        folded[at % BLOCK] ^= byte;
    }
    Aes128::new(&folded.into())
}

/// AES-128 in ECB mode with PKCS#7 padding, as the default `block_encryption_mode` has it.
fn aes_encrypt(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let (Some(text), Some(key)) = (frame.text(0)?, frame.text(1)?) else {
        return Ok(ValueRef::Null);
    };
    let cipher = cipher(key);
    let padding = BLOCK - text.len() % BLOCK;
    let mut out = text.to_vec();
    out.resize(text.len() + padding, padding as u8);
    for chunk in out.as_chunks_mut::<BLOCK>().0 {
        let mut block: Block<Aes128> = (*chunk).into();
        cipher.encrypt_block(&mut block);
        *chunk = block.into();
    }
    Ok(frame.keep(&out))
}

fn aes_decrypt(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let (Some(text), Some(key)) = (frame.text(0)?, frame.text(1)?) else {
        return Ok(ValueRef::Null);
    };
    let cipher = cipher(key);
    let mut out = text.to_vec();
    let (chunks, rest) = out.as_chunks_mut::<BLOCK>();
    if !rest.is_empty() || chunks.is_empty() {
        return Ok(ValueRef::Null);
    }
    for chunk in chunks {
        let mut block: Block<Aes128> = (*chunk).into();
        cipher.decrypt_block(&mut block);
        *chunk = block.into();
    }
    let padding = usize::from(out.last().copied().unwrap_or(0));
    let whole = out.len();
    let is_padded = (1..=BLOCK).contains(&padding)
        && out[whole - padding..].iter().all(|byte| usize::from(*byte) == padding);
    Ok(if is_padded { frame.keep(&out[..whole - padding]) } else { ValueRef::Null })
}

fn resolve_compress(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let length = argument_bytes(&arguments[0]);
    Ok(bytes(length.saturating_mul(120) / 100 + 12))
}

fn resolve_uncompress(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(bytes(u64::from(u32::MAX)))
}

fn resolve_length(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(int(10, true))
}

/// The length in four bytes, then zlib's format; a point after it if it would end in a blank.
fn compress(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if text.is_empty() {
        return Ok(ValueRef::Bytes(text));
    }
    let mut out = ((text.len() & 0x3fff_ffff) as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&compress_to_vec_zlib(text, LEVEL));
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    frame.keep_limited(&out)
}

fn length_of(text: &[u8]) -> Option<usize> {
    let head = text.first_chunk::<4>().filter(|_| text.len() > 4)?;
    Some((u32::from_le_bytes(*head) & 0x3fff_ffff) as usize)
}

fn uncompress(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if text.is_empty() {
        return Ok(ValueRef::Bytes(text));
    }
    let warn = |code, arguments: &[&dyn std::fmt::Display]| {
        frame.context.push_warning(Warning::new(code, arguments));
        Ok(ValueRef::Null)
    };
    let Some(length) = length_of(text) else { return warn(&codes::ZLIB_Z_DATA_ERROR, &[]) };
    let limit = frame.context.settings.max_allowed_packet;
    if length > limit {
        return warn(&codes::TOO_BIG_FOR_UNCOMPRESS, &[&limit]);
    }
    match decompress_to_vec_zlib_with_limit(&text[4..], length) {
        Ok(out) => Ok(frame.keep(&out)),
        Err(_) => warn(&codes::ZLIB_Z_DATA_ERROR, &[]),
    }
}

fn uncompressed_length(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let Some(text) = frame.text(0)? else { return Ok(ValueRef::Null) };
    if text.is_empty() {
        return Ok(ValueRef::Int(0));
    }
    match length_of(text) {
        Some(length) => Ok(ValueRef::Int(length as i64)),
        None => {
            frame.context.push_warning(Warning::new(&codes::ZLIB_Z_DATA_ERROR, &[]));
            Ok(ValueRef::Null)
        }
    }
}

fn resolve_password(builder: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Resolved {
    Ok(any_text(builder, 41))
}

/// `mysql_native_password`: SHA1 of SHA1.
fn password(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let text = frame.text(0)?.unwrap_or_default();
    if text.is_empty() {
        return Ok(ValueRef::Bytes(b""));
    }
    let digest = Sha1::digest(Sha1::digest(text));
    let hexadecimal: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    Ok(frame.keep(format!("*{hexadecimal}").as_bytes()))
}

fn resolve_crc32c(_: &Builder<'_>, _: &'static Function, arguments: &mut [Expr]) -> Resolved {
    let mut result = ResultType::integer_of_length(10, true, any_nullable(arguments));
    result.column_type.kind = types::TypeKind::Int;
    Ok(result)
}

/// CRC-32C (Castagnoli, reflected), bit by bit.
fn crc32c(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    checksum(&frame, crc32c_of)
}

fn crc32c_of(before: u32, text: &[u8]) -> u32 {
    !text.iter().fold(!before, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ 0x82f6_3b78 & (crc & 1).wrapping_neg()
        })
    })
}
