//! What the encoder writes against what is written for values, over random rows.

use super::*;
use base::Random;
use types::row::{KeyPart, LayoutColumn};
use types::{CollationId, Date, DateTime, Decimal, Time, Timestamp, TypeKind, Value};

fn column_type(random: &mut Random) -> ColumnType {
    let integers = [
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::MediumInt,
        TypeKind::Int,
        TypeKind::BigInt,
    ];
    let scale = random.below(7) as u8;
    match random.below(13) {
        0..5 => {
            let unsigned = random.chance(0.5);
            let zerofill = unsigned && random.one_in(4);
            let kind = *random.pick(&integers);
            ColumnType { zerofill, ..ColumnType::integer(kind, unsigned) }
        }
        5 => ColumnType::decimal(1 + random.below(40) as u8 + scale, scale, false),
        6 => *random.pick(&[ColumnType::double(), ColumnType::float()]),
        7 => *random.pick(&[ColumnType::date(), ColumnType::year()]),
        8 => {
            let kinds = [TypeKind::DateTime, TypeKind::Timestamp, TypeKind::Time];
            ColumnType::temporal(*random.pick(&kinds), scale)
        }
        9 => ColumnType::binary(TypeKind::Binary, 1 + random.below(40) as u32),
        10 => ColumnType::large(TypeKind::Blob, CollationId::BINARY),
        _ => {
            let collations = [CollationId::UTF8MB4_GENERAL_CI, CollationId(8), CollationId(33)];
            ColumnType::text(TypeKind::VarChar, 400, *random.pick(&collations))
        }
    }
}

fn type_code_of(column_type: &ColumnType) -> u8 {
    match column_type.kind {
        TypeKind::TinyInt => type_code::TINY,
        TypeKind::SmallInt => type_code::SHORT,
        TypeKind::MediumInt => type_code::INT24,
        TypeKind::Int => type_code::LONG,
        TypeKind::BigInt => type_code::LONGLONG,
        TypeKind::Decimal => type_code::NEWDECIMAL,
        TypeKind::Double => type_code::DOUBLE,
        TypeKind::Float => type_code::FLOAT,
        TypeKind::Date => type_code::DATE,
        TypeKind::Year => type_code::YEAR,
        TypeKind::DateTime => type_code::DATETIME,
        TypeKind::Timestamp => type_code::TIMESTAMP,
        TypeKind::Time => type_code::TIME,
        TypeKind::Binary => type_code::STRING,
        TypeKind::Blob => type_code::BLOB,
        _ => type_code::VAR_STRING,
    }
}

fn value(random: &mut Random, column: &LayoutColumn) -> Value {
    let ColumnType { kind, unsigned, scale, precision, length, .. } = column.column_type;
    if column.nullable && random.one_in(4) {
        return Value::Null;
    }
    let unit = 10i64.pow(6 - u32::from(scale.min(6)));
    match kind {
        kind if kind.is_integer() => {
            let bits = 8 * kind.integer_bytes();
            let all = random.next_u64() >> random.below(64);
            let raw = if random.chance(0.5) { all.wrapping_neg() } else { all };
            match unsigned {
                true => Value::UInt(raw & (u64::MAX >> (64 - bits))),
                false => Value::Int((raw as i64) << (64 - bits) >> (64 - bits)),
            }
        }
        TypeKind::Decimal => Value::Decimal(Decimal::largest(precision, scale, random.chance(0.5))),
        TypeKind::Double => Value::Double(*random.pick(&[0.0, -1.5, 1e300, 0.1])),
        TypeKind::Float => Value::Float(*random.pick(&[0.0, -1.5, 1e30, 0.1])),
        TypeKind::Date => Value::Date(Date::new(random.below(9999) as u32, 2, 3)),
        TypeKind::Year => Value::UInt(1901 + random.below(255)),
        TypeKind::DateTime => {
            let micros = random.below(86_400_000_000) as i64;
            Value::DateTime(
                DateTime::from_date_and_micros(Date::new(2024, 5, 6), micros).truncated(scale),
            )
        }
        TypeKind::Timestamp => {
            let micros = random.below(1 << 50) as i64;
            Value::Timestamp(Timestamp(micros - micros % unit))
        }
        TypeKind::Time => {
            let micros = random.below(2 * Time::MAX.0 as u64) as i64 - Time::MAX.0;
            Value::Time(Time(micros - micros % unit))
        }
        TypeKind::Binary => Value::Bytes((0..length).map(|_| random.next_u32() as u8).collect()),
        _ => {
            let length = *random.pick(&[0, 1, 5, 120, 250, 251, 400]);
            let ascii = random.chance(0.5);
            let byte = |random: &mut Random| {
                if ascii { b'a' + random.below(26) as u8 } else { random.next_u32() as u8 }
            };
            Value::Bytes((0..length).map(|_| byte(random)).collect())
        }
    }
}

struct Case {
    layout: Arc<RowLayout>,
    columns: Vec<LayoutColumn>,
    /// Columns shown, in the order of the result.
    shown: Vec<usize>,
    formats: Vec<ColumnFormat>,
    encoder: StoredEncoder,
}

fn case(random: &mut Random) -> Case {
    let count = 1 + random.index(12);
    let columns: Vec<LayoutColumn> = (0..count)
        .map(|_| LayoutColumn { column_type: column_type(random), nullable: random.chance(0.5) })
        .collect();
    let mut parts = Vec::new();
    for (column, definition) in columns.iter().enumerate() {
        if !definition.nullable && parts.len() < 3 && random.one_in(3) {
            parts.push(KeyPart { column, prefix: None, descending: random.one_in(4) });
        }
    }
    let layout = Arc::new(RowLayout::new(&columns, &parts, 3));
    let shown: Vec<usize> = (0..1 + random.index(10)).map(|_| random.index(count)).collect();
    let format = |&column: &usize| {
        let column_type = columns[column].column_type;
        let from = column_type.collation.charset();
        let convert = random.one_in(3) && column_type.kind == TypeKind::VarChar;
        ColumnFormat {
            type_code: type_code_of(&column_type),
            column_type,
            convert: convert.then_some((from, Charset::Latin1)),
        }
    };
    let formats: Vec<ColumnFormat> = shown.iter().map(format).collect();
    let encoder = StoredEncoder::new(&layout, &shown, &formats);
    Case { layout, columns, shown, formats, encoder }
}

impl Case {
    /// Compares the two ways for a row, in both protocols.
    fn check(&self, key: &[u8], payload: &[u8], what: &str) {
        let view = RowView::new(&self.layout, key, payload);
        let shown = self.shown.iter().zip(&self.formats);
        let values: Vec<ValueRef<'_>> =
            shown.map(|(&column, format)| format.with_scale(view.get(column))).collect();
        for protocol in [Protocol::Text, Protocol::Binary] {
            let format = RowFormat { protocol, time_zone: TimeZone::Fixed(3600) };
            let (mut expected, mut written) = (OutputBuffer::new(), OutputBuffer::new());
            let scratch = &mut Vec::new();
            for _ in 0..2 {
                format.put_row(expected.begin(), &values, &self.formats, scratch);
                expected.end();
            }
            let rows = [StoredRow { key, payload }; 3];
            let full_bytes = expected.len();
            let put = self.encoder.put_rows(
                &mut written,
                rows.into_iter(),
                &self.formats,
                format,
                full_bytes,
                scratch,
            );
            assert_eq!(put, 2, "the buffer is full with two of three rows");
            let columns = &self.columns;
            assert_eq!(written.bytes(), expected.bytes(), "{what}, {protocol:?}: {columns:?}");
        }
    }
}

#[test]
fn a_stored_row_is_written_like_its_values() {
    let mut random = Random::new(11);
    for number in 0..400 {
        let case = case(&mut random);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let values: Vec<Value> =
                case.columns.iter().map(|column| value(&mut random, column)).collect();
            let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            case.layout.encode(&values, &mut key, &mut payload).expect("values have the types");
            case.check(&key, &payload, &format!("case {number}"));
        }
    }
}

#[test]
fn damaged_rows_are_written_like_their_values() {
    let mut random = Random::new(12);
    for number in 0..400 {
        let case = case(&mut random);
        if case.columns.iter().any(|column| column.column_type.kind.is_floating()) {
            // Numbers that are none lose their bits on the way through a value.
            continue;
        }
        for _ in 0..10 {
            let bytes = |random: &mut Random| -> Vec<u8> {
                let length = random.below(80);
                (0..length).map(|_| random.next_u32() as u8).collect()
            };
            let (key, payload) = (bytes(&mut random), bytes(&mut random));
            case.check(&key, &payload, &format!("damaged case {number}"));
        }
    }
}

#[test]
fn keys_of_an_index_are_written_like_their_values() {
    let mut random = Random::new(13);
    let int = |kind, unsigned| LayoutColumn {
        column_type: ColumnType::integer(kind, unsigned),
        nullable: unsigned,
    };
    let columns = [int(TypeKind::Int, false), int(TypeKind::BigInt, true)];
    let layout = Arc::new(RowLayout::new(&columns, &[KeyPart::ascending(0)], 1));
    let index = IndexLayout::new(&layout, &[KeyPart::ascending(1)]);
    let formats: Vec<ColumnFormat> = [1, 0]
        .map(|column: usize| ColumnFormat {
            type_code: type_code_of(&columns[column].column_type),
            column_type: columns[column].column_type,
            convert: None,
        })
        .to_vec();
    let encoder = StoredEncoder::new(&layout, &[1, 0], &formats);
    for _ in 0..100 {
        let values = columns.each_ref().map(|column| value(&mut random, column));
        let values = values.each_ref().map(Value::as_ref);
        let (mut key, mut payload, mut entry) = (Vec::new(), Vec::new(), Vec::new());
        layout.encode(&values, &mut key, &mut payload).expect("values have the types");
        let view = RowView::new(&layout, &key, &payload);
        index.push_key(&view, &key, &mut entry).expect("values have the types");
        for protocol in [Protocol::Text, Protocol::Binary] {
            let format = RowFormat { protocol, time_zone: TimeZone::System };
            let (mut expected, mut written) = (Vec::new(), Vec::new());
            format.put_row(&mut expected, &[values[1], values[0]], &formats, &mut Vec::new());
            encoder.put_key(&mut written, (&index, &entry), &formats, format, &mut Vec::new());
            assert_eq!(written, expected);
        }
    }
}
