//! Rows of the binary protocol, rendered as the text protocol would send them.

use crate::client::{Column, Field};
use crate::packet::Fields;
use std::io;

/// A row of the binary protocol, its values rendered as the text protocol would.
pub fn binary_row(packet: &[u8], columns: &[Column]) -> io::Result<Vec<Field>> {
    let mut fields = Fields::new(&packet[1..]);
    let bitmap = fields.take((columns.len() + 9) / 8)?.to_vec();
    let mut row = Vec::with_capacity(columns.len());
    for (position, column) in columns.iter().enumerate() {
        let bit = position + 2;
        if bitmap[bit / 8] & (1 << (bit % 8)) != 0 {
            row.push(None);
        } else {
            row.push(Some(binary_field(&mut fields, column)?));
        }
    }
    Ok(row)
}

fn binary_field(fields: &mut Fields<'_>, column: &Column) -> io::Result<Vec<u8>> {
    let unsigned = column.flags & 32 != 0;
    let mut integer = |width: usize| -> io::Result<Vec<u8>> {
        let value = fields.integer(width)?;
        let shift = 64 - 8 * width as u32;
        let signed = ((value << shift) as i64) >> shift;
        Ok(if unsigned { value.to_string() } else { signed.to_string() }.into_bytes())
    };
    match column.type_code {
        1 => integer(1),
        2 | 13 => integer(2),
        3 | 9 => integer(4),
        8 => integer(8),
        4 => {
            let bits = fields.integer(4)? as u32;
            Ok(format!("{}", f32::from_bits(bits)).into_bytes())
        }
        5 => {
            let bits = fields.integer(8)?;
            Ok(format!("{}", f64::from_bits(bits)).into_bytes())
        }
        7 | 10 | 12 => binary_datetime(fields, column),
        11 => binary_time(fields, column),
        _ => Ok(fields.length_encoded_bytes()?.unwrap_or(b"").to_vec()),
    }
}

fn fraction(micros: u64, decimals: u8) -> String {
    match decimals {
        1..=6 => format!(".{:06}", micros)[..1 + usize::from(decimals)].to_string(),
        _ => String::new(),
    }
}

fn binary_datetime(fields: &mut Fields<'_>, column: &Column) -> io::Result<Vec<u8>> {
    let length = fields.integer(1)?;
    let (mut date, mut time, mut micros) = ([0; 3], [0; 3], 0);
    if length >= 4 {
        date = [fields.integer(2)?, fields.integer(1)?, fields.integer(1)?];
    }
    if length >= 7 {
        time = [fields.integer(1)?, fields.integer(1)?, fields.integer(1)?];
    }
    if length >= 11 {
        micros = fields.integer(4)?;
    }
    let mut text = format!("{:04}-{:02}-{:02}", date[0], date[1], date[2]);
    if column.type_code != 10 {
        text += &format!(" {:02}:{:02}:{:02}", time[0], time[1], time[2]);
        text += &fraction(micros, column.decimals);
    }
    Ok(text.into_bytes())
}

fn binary_time(fields: &mut Fields<'_>, column: &Column) -> io::Result<Vec<u8>> {
    let length = fields.integer(1)?;
    let (mut negative, mut hours, mut minutes, mut seconds, mut micros) = (0, 0, 0, 0, 0);
    if length >= 8 {
        negative = fields.integer(1)?;
        hours = fields.integer(4)? * 24 + fields.integer(1)?;
        minutes = fields.integer(1)?;
        seconds = fields.integer(1)?;
    }
    if length >= 12 {
        micros = fields.integer(4)?;
    }
    let sign = if negative != 0 { "-" } else { "" };
    let text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    Ok((text + &fraction(micros, column.decimals)).into_bytes())
}
