//! Values as prepared statements send and receive them.

use crate::command::{Fields, MalformedPacket};
use crate::output::{put_bytes, put_written};
use crate::text::push_text;
use types::{ColumnType, Date, DateTime, Time, TimeZone, Value, ValueRef};

/// Type codes of the protocol.
#[allow(missing_docs, reason = "the names are the protocol's")]
pub mod type_code {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Writes the values of one binary row; see [`BinaryRow::begin`].
pub struct BinaryRow {
    bitmap: usize,
    position: usize,
}

impl BinaryRow {
    /// Begins a row of `columns` values at the end of `out`.
    #[inline]
    pub fn begin(out: &mut Vec<u8>, columns: usize) -> Self {
        let bitmap = out.len() + 1;
        if columns <= 6 {
            out.extend_from_slice(&[0; 2]);
        } else {
            out.resize(bitmap + (columns + 9) / 8, 0);
        }
        Self { bitmap, position: 0 }
    }

    /// The next value is NULL, or was appended by other means.
    #[inline]
    pub(crate) fn note(&mut self, out: &mut [u8], is_null: bool) {
        let bit = self.position + 2;
        self.position += 1;
        if is_null {
            out[self.bitmap + bit / 8] |= 1 << (bit % 8);
        }
    }

    /// Appends the next value, as `code` (the type code of the column's definition) has it.
    pub fn put(
        &mut self,
        out: &mut Vec<u8>,
        value: ValueRef<'_>,
        code: u8,
        column: &ColumnType,
        zone: TimeZone,
    ) {
        self.note(out, value.is_null());
        if !value.is_null() {
            put_value(out, value, code, column, zone);
        }
    }
}

fn put_value(
    out: &mut Vec<u8>,
    value: ValueRef<'_>,
    code: u8,
    column: &ColumnType,
    zone: TimeZone,
) {
    match code {
        type_code::TINY => out.push(integer(value) as u8),
        type_code::SHORT | type_code::YEAR => {
            out.extend_from_slice(&(integer(value) as u16).to_le_bytes());
        }
        type_code::LONG | type_code::INT24 => {
            out.extend_from_slice(&(integer(value) as u32).to_le_bytes());
        }
        type_code::LONGLONG => out.extend_from_slice(&integer(value).to_le_bytes()),
        type_code::FLOAT => out.extend_from_slice(&(double(value) as f32).to_le_bytes()),
        type_code::DOUBLE => out.extend_from_slice(&double(value).to_le_bytes()),
        type_code::DATE => put_date(out, date_time(value, zone).date()),
        type_code::DATETIME | type_code::TIMESTAMP => put_date_time(out, date_time(value, zone)),
        type_code::TIME => put_time(out, value),
        _ => match value {
            ValueRef::Bytes(bytes) => put_bytes(out, bytes),
            other => put_written(out, |out| push_text(out, other, column, zone)),
        },
    }
}

/// The integer that a column of an integer type sends; other values occur only if an
/// expression's static type was less than its value, and are rounded to it.
fn integer(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Int(number) => number as u64,
        ValueRef::UInt(number) => number,
        ValueRef::Double(number) => number as i64 as u64,
        ValueRef::Float(number) => number as i64 as u64,
        ValueRef::Decimal(number) => number.to_i64().0 as u64,
        ValueRef::Bytes(text) => {
            std::str::from_utf8(text).ok().and_then(|t| t.trim().parse::<i64>().ok()).unwrap_or(0)
                as u64
        }
        _ => 0,
    }
}

fn double(value: ValueRef<'_>) -> f64 {
    match value {
        // Zero has no sign.
        ValueRef::Double(number) => number + 0.0,
        ValueRef::Float(number) => f64::from(number) + 0.0,
        ValueRef::Int(number) => number as f64,
        ValueRef::UInt(number) => number as f64,
        ValueRef::Decimal(number) => number.to_f64(),
        ValueRef::Bytes(text) => {
            std::str::from_utf8(text).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0.0)
        }
        _ => 0.0,
    }
}

fn date_time(value: ValueRef<'_>, zone: TimeZone) -> DateTime {
    match value {
        ValueRef::Date(date) => date.at_midnight(),
        ValueRef::DateTime(time) => time,
        ValueRef::Timestamp(time) => zone.to_local(time),
        _ => DateTime::default(),
    }
}

fn put_date(out: &mut Vec<u8>, date: Date) {
    if date.is_zero() {
        out.push(0);
        return;
    }
    out.push(4);
    push_date(out, date);
}

fn push_date(out: &mut Vec<u8>, date: Date) {
    out.extend_from_slice(&(date.year() as u16).to_le_bytes());
    out.extend_from_slice(&[date.month() as u8, date.day() as u8]);
}

fn put_date_time(out: &mut Vec<u8>, time: DateTime) {
    let length = match (time == DateTime::default(), time.time_micros(), time.micros()) {
        (true, ..) => 0,
        (_, 0, _) => 4,
        (_, _, 0) => 7,
        _ => 11,
    };
    out.push(length);
    if length >= 4 {
        push_date(out, time.date());
    }
    if length >= 7 {
        out.extend_from_slice(&[time.hour() as u8, time.minute() as u8, time.second() as u8]);
    }
    if length == 11 {
        out.extend_from_slice(&time.micros().to_le_bytes());
    }
}

fn put_time(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let time = match value {
        ValueRef::Time(time) => time,
        ValueRef::DateTime(time) => time.time(),
        _ => Time::default(),
    };
    if time == Time::default() {
        out.push(0);
        return;
    }
    let micros = time.micros();
    out.push(if micros == 0 { 8 } else { 12 });
    out.push(u8::from(time.is_negative()));
    out.extend_from_slice(&(time.hours() / 24).to_le_bytes());
    out.extend_from_slice(&[(time.hours() % 24) as u8, time.minutes() as u8, time.seconds() as u8]);
    if micros != 0 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

/// Type of a parameter as the client bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// Type code.
    pub code: u8,
    /// Integers are unsigned.
    pub unsigned: bool,
}

/// Types of a statement's parameters; a few need no memory of their own.
pub type ParameterTypes = smallvec::SmallVec<[ParameterType; 8]>;

/// Reads the parameters of COM_STMT_EXECUTE. `types` are those of the last execution; they are
/// replaced if the client sends new ones. `long_data[i]` is what COM_STMT_SEND_LONG_DATA gave
/// for parameter i and takes the place of a value. The content of `values` is replaced.
pub fn read_parameters(
    payload: &[u8],
    count: usize,
    types: &mut ParameterTypes,
    long_data: &[Option<Vec<u8>>],
    values: &mut Vec<Value>,
) -> Result<(), MalformedPacket> {
    values.clear();
    if count == 0 {
        return Ok(());
    }
    let mut fields = Fields(payload);
    let nulls = fields.take(count.div_ceil(8))?;
    if fields.u8()? == 1 {
        read_types(&mut fields, count, types)?;
    }
    if types.len() != count {
        return Err(MalformedPacket);
    }
    for (position, bound) in types.iter().enumerate() {
        let value = match long_data.get(position) {
            Some(Some(data)) => Value::Bytes(data.clone()),
            _ if nulls[position / 8] & 1 << (position % 8) != 0 => Value::Null,
            _ => read_value(&mut fields, *bound)?,
        };
        values.push(value);
    }
    // Bytes behind the last value are nobody's: mysql2 sends one for each NULL.
    Ok(())
}

/// Reads the types of `count` parameters in place of those known.
pub(crate) fn read_types(
    fields: &mut Fields<'_>,
    count: usize,
    types: &mut ParameterTypes,
) -> Result<(), MalformedPacket> {
    let bound = fields.take(count * 2)?.chunks_exact(2);
    types.clear();
    types.extend(bound.map(|pair| ParameterType { code: pair[0], unsigned: pair[1] & 0x80 != 0 }));
    Ok(())
}

/// Reads one value of a parameter.
#[inline]
pub(crate) fn read_value(
    fields: &mut Fields<'_>,
    bound: ParameterType,
) -> Result<Value, MalformedPacket> {
    let integer = |signed: i64, unsigned: u64| match bound.unsigned {
        true => Value::UInt(unsigned),
        false => Value::Int(signed),
    };
    Ok(match bound.code {
        type_code::NULL => Value::Null,
        type_code::TINY => {
            let byte = fields.u8()?;
            integer(i64::from(byte as i8), u64::from(byte))
        }
        type_code::SHORT | type_code::YEAR => {
            let short = fields.u16()?;
            integer(i64::from(short as i16), u64::from(short))
        }
        type_code::LONG | type_code::INT24 => {
            let long = fields.u32()?;
            integer(i64::from(long as i32), u64::from(long))
        }
        type_code::LONGLONG => {
            let long = fields.u64()?;
            integer(long as i64, long)
        }
        type_code::FLOAT => Value::Float(f32::from_le_bytes(fields.array()?)),
        type_code::DOUBLE => Value::Double(f64::from_le_bytes(fields.array()?)),
        type_code::DATE => Value::Date(read_date_time(fields)?.date()),
        type_code::DATETIME | type_code::TIMESTAMP => Value::DateTime(read_date_time(fields)?),
        type_code::TIME => Value::Time(read_time(fields)?),
        type_code::DECIMAL
        | type_code::NEWDECIMAL
        | type_code::VARCHAR
        | type_code::BIT
        | type_code::JSON
        | type_code::ENUM
        | type_code::SET
        | type_code::TINY_BLOB..=type_code::STRING => Value::Bytes(fields.bytes()?.to_vec()),
        _ => return Err(MalformedPacket),
    })
}

fn read_date_time(fields: &mut Fields<'_>) -> Result<DateTime, MalformedPacket> {
    let mut body = Fields(fields.bytes()?);
    if body.0.is_empty() {
        return Ok(DateTime::default());
    }
    let (year, month, day) = (body.u16()?, body.u8()?, body.u8()?);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    if !body.0.is_empty() {
        (hour, minute, second) = (body.u8()?, body.u8()?, body.u8()?);
    }
    if !body.0.is_empty() {
        micros = body.u32()?;
    }
    let fits = year <= 9999
        && month <= 12
        && day <= 31
        && hour <= 23
        && minute <= 59
        && second <= 59
        && micros <= 999_999
        && body.0.is_empty();
    if !fits {
        return Err(MalformedPacket);
    }
    let date = Date::new(year.into(), month.into(), day.into());
    Ok(DateTime::new(date, hour.into(), minute.into(), second.into(), micros))
}

fn read_time(fields: &mut Fields<'_>) -> Result<Time, MalformedPacket> {
    let mut body = Fields(fields.bytes()?);
    if body.0.is_empty() {
        return Ok(Time::default());
    }
    let (negative, days) = (body.u8()? != 0, body.u32()?);
    let (hour, minute, second) = (body.u8()?, body.u8()?, body.u8()?);
    let micros = if body.0.is_empty() { 0 } else { body.u32()? };
    if hour > 23 || minute > 59 || second > 59 || micros > 999_999 || !body.0.is_empty() {
        return Err(MalformedPacket);
    }
    // More than the longest TIME is cut to it, as a text would be.
    let hours = days.saturating_mul(24).saturating_add(hour.into());
    if hours > 838 {
        return Ok(if negative { Time(-Time::MAX.0) } else { Time::MAX });
    }
    Ok(Time::new(negative, hours, minute.into(), second.into(), micros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::{CollationId, TypeKind};

    fn column(kind: TypeKind) -> ColumnType {
        ColumnType {
            kind,
            unsigned: false,
            zerofill: false,
            length: 10,
            precision: 0,
            scale: 0,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    fn row(values: &[(ValueRef<'_>, u8)]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut row = BinaryRow::begin(&mut out, values.len());
        for (value, code) in values {
            row.put(&mut out, *value, *code, &column(TypeKind::VarChar), TimeZone::System);
        }
        out
    }

    #[test]
    fn a_row_has_its_null_bitmap_shifted_by_two() {
        let values = [
            (ValueRef::Int(-2), type_code::LONG),
            (ValueRef::Null, type_code::LONG),
            (ValueRef::Bytes(b"ab"), type_code::VAR_STRING),
            (ValueRef::Int(5), type_code::TINY),
            (ValueRef::Int(6), type_code::SHORT),
            (ValueRef::Double(1.5), type_code::DOUBLE),
            (ValueRef::Null, type_code::STRING),
        ];
        let expected = [
            &[0, 0b0000_1000, 0b0000_0001][..],
            &[0xfe, 0xff, 0xff, 0xff],
            &[2, b'a', b'b', 5, 6, 0],
            &1.5f64.to_le_bytes(),
        ];
        assert_eq!(row(&values), expected.concat());
    }

    #[test]
    fn times_are_as_short_as_they_can_be() {
        let date = Date::new(2024, 3, 4);
        let at = |micros| DateTime::new(date, 1, 2, 3, micros);
        let date_time = |value| row(&[(ValueRef::DateTime(value), type_code::DATETIME)]);
        assert_eq!(date_time(DateTime::default()), [0, 0, 0]);
        assert_eq!(date_time(date.at_midnight()), [0, 0, 4, 0xe8, 7, 3, 4]);
        assert_eq!(date_time(at(0)), [0, 0, 7, 0xe8, 7, 3, 4, 1, 2, 3]);
        assert_eq!(date_time(at(9)), [0, 0, 11, 0xe8, 7, 3, 4, 1, 2, 3, 9, 0, 0, 0]);
        let time = Time::new(true, 49, 2, 3, 0);
        assert_eq!(
            row(&[(ValueRef::Time(time), type_code::TIME)]),
            [0, 0, 8, 1, 2, 0, 0, 0, 1, 2, 3]
        );
    }

    fn parameters(payload: &[u8], count: usize) -> Result<Vec<Value>, MalformedPacket> {
        let mut values = vec![Value::Null];
        read_parameters(payload, count, &mut ParameterTypes::new(), &[], &mut values)
            .map(|()| values)
    }

    #[test]
    fn parameters_are_read_by_their_types() {
        let payload = [
            &[0b0000_0010, 1][..],
            &[type_code::LONG, 0, type_code::LONG, 0, type_code::TINY, 0x80],
            &[type_code::VAR_STRING, 0, type_code::DATETIME, 0],
            &[0xff, 0xff, 0xff, 0xff, 0xfe, 2, b'h', b'i', 4, 0xe8, 7, 1, 2],
        ]
        .concat();
        let values = parameters(&payload, 5).unwrap();
        let midnight = Date::new(2024, 1, 2).at_midnight();
        assert_eq!(
            values,
            [
                Value::Int(-1),
                Value::Null,
                Value::UInt(254),
                Value::text("hi"),
                Value::DateTime(midnight)
            ]
        );
        for length in 0..payload.len() {
            assert!(parameters(&payload[..length], 5).is_err(), "{length} bytes were enough");
        }
        let longer = [&payload[..], &[0]].concat();
        assert_eq!(parameters(&longer, 5).unwrap().len(), 5);
    }

    #[test]
    fn types_are_kept_from_the_last_execution() {
        let bound = ParameterType { code: type_code::TINY, unsigned: false };
        let mut types = ParameterTypes::from_elem(bound, 1);
        let mut values = Vec::new();
        assert_eq!(read_parameters(&[0, 0, 7], 1, &mut types, &[], &mut values), Ok(()));
        assert_eq!(values, [Value::Int(7)]);
        let long = [Some(b"long".to_vec())];
        assert_eq!(read_parameters(&[0, 0], 1, &mut types, &long, &mut values), Ok(()));
        assert_eq!(values, [Value::text("long")]);
        assert!(parameters(&[0, 0, 7], 1).is_err());
        assert!(parameters(&[0, 1, 99, 0, 7], 1).is_err());
    }

    #[test]
    fn impossible_times_are_malformed() {
        let with = |body: &[u8], code| {
            let payload = [&[0, 1, code, 0][..], body].concat();
            parameters(&payload, 1)
        };
        assert!(with(&[4, 0xe8, 7, 13, 1], type_code::DATE).is_err());
        assert!(with(&[3, 0xe8, 7, 12], type_code::DATE).is_err());
        assert!(with(&[8, 0, 0, 0, 0, 0, 24, 0, 0], type_code::TIME).is_err());
        let longest = with(&[8, 1, 0xff, 0, 0, 0, 23, 0, 0], type_code::TIME).unwrap();
        assert_eq!(longest, [Value::Time(Time(-Time::MAX.0))]);
    }
}
