//! Properties of row layouts and keys over random columns and values from a seed.

use super::*;
use crate::charset::Charset;
use crate::collation;
use crate::column_type::{CollationId, ColumnType, TypeKind};
use crate::decimal::Decimal;
use crate::temporal::{Date, DateTime, Time, Timestamp};
use crate::value::{Value, ValueRef};
use base::Random;
use std::cmp::Ordering;

const TEXT_PIECES: &[&str] = &[
    "", " ", "  ", "\0", "a", "A", "b", "B", "z", "\t", "é", "E", "ß", "ss", "中", "😀", "\u{7f}",
    "\u{ffff}", "~", "!",
];

fn random_type(random: &mut Random) -> ColumnType {
    let integers = [
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::MediumInt,
        TypeKind::Int,
        TypeKind::BigInt,
    ];
    let texts: Vec<CollationId> =
        collation::all().iter().filter(|c| c.charset == Charset::Utf8mb4).map(|c| c.id).collect();
    let scale = random.below(7) as u8;
    match random.below(13) {
        0..3 => ColumnType::integer(*random.pick(&integers), random.chance(0.5)),
        3 => {
            let precision = 1 + random.below(65) as u8;
            let scale = random.below(u64::from(precision.min(38)) + 1) as u8;
            ColumnType::decimal(precision, scale, false)
        }
        4 => ColumnType::double(),
        5 => ColumnType::float(),
        6 => ColumnType::date(),
        7 => ColumnType::temporal(TypeKind::DateTime, scale),
        8 => ColumnType::temporal(TypeKind::Timestamp, scale),
        9 => ColumnType::temporal(TypeKind::Time, scale),
        10 => ColumnType::binary(TypeKind::Binary, 1 + random.below(20) as u32),
        11 => ColumnType::binary(TypeKind::VarBinary, 100),
        _ => ColumnType::text(TypeKind::VarChar, 100, *random.pick(&texts)),
    }
}

fn random_value(random: &mut Random, column_type: &ColumnType) -> Value {
    let unit = |scale: u8| 10i64.pow(6 - u32::from(scale.min(6)));
    let small = random.chance(0.5);
    match column_type.kind {
        kind if kind.is_integer() => {
            let bits = 8 * kind.integer_bytes();
            let raw = if small { random.below(5) } else { random.next_u64() };
            if column_type.unsigned {
                Value::UInt(raw & (u64::MAX >> (64 - bits)))
            } else {
                let signed = if small { raw as i64 - 2 } else { raw as i64 };
                Value::Int(signed << (64 - bits) >> (64 - bits))
            }
        }
        TypeKind::Decimal => {
            let count = 1 + random.below(u64::from(column_type.precision));
            let digits: String =
                (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
            let sign = if random.chance(0.5) { "-" } else { "" };
            let text = format!("{sign}{digits}e-{}", column_type.scale);
            let parsed = Decimal::parse(text.as_bytes()).value;
            Value::Decimal(parsed.with_scale(column_type.scale))
        }
        TypeKind::Double => Value::Double(*random.pick(&[
            0.0,
            -0.0,
            1.5,
            -1.5,
            1e300,
            -1e300,
            1e-300,
            -1e-300,
            f64::MAX,
            f64::MIN,
        ])),
        TypeKind::Float => {
            Value::Float(*random.pick(&[0.0, -0.0, 1.5, -1.5, 1e30, -1e-30, f32::MAX]))
        }
        TypeKind::Date => Value::Date(Date::new(
            random.below(10_000) as u32,
            random.below(13) as u32,
            random.below(32) as u32,
        )),
        TypeKind::DateTime => {
            let date = Date::new(random.below(10_000) as u32, random.below(13) as u32, 1);
            let micros = random.below(86_400_000_000) as i64;
            let moment = DateTime::from_date_and_micros(date, micros);
            Value::DateTime(moment.truncated(column_type.scale))
        }
        TypeKind::Timestamp => {
            let micros = random.below(i64::from(i32::MAX).unsigned_abs() * 1_000_000) as i64;
            Value::Timestamp(Timestamp(micros - micros % unit(column_type.scale)))
        }
        TypeKind::Time => {
            let micros = random.below(2 * Time::MAX.0 as u64) as i64 - Time::MAX.0;
            Value::Time(Time(micros - micros % unit(column_type.scale)))
        }
        TypeKind::Binary | TypeKind::VarBinary => {
            let length = if column_type.kind == TypeKind::Binary {
                column_type.length as usize
            } else {
                random.index(6)
            };
            Value::Bytes((0..length).map(|_| *random.pick(&[0u8, 1, 0xfe, 0xff, b'a'])).collect())
        }
        _ => {
            let count = random.below(5);
            let text: String = (0..count).map(|_| *random.pick(TEXT_PIECES)).collect();
            Value::text(text)
        }
    }
}

/// The order of two values of one type, NULL first.
fn order(column_type: &ColumnType, a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Null, ValueRef::Null) => Ordering::Equal,
        (ValueRef::Null, _) => Ordering::Less,
        (_, ValueRef::Null) => Ordering::Greater,
        (ValueRef::Int(a), ValueRef::Int(b)) => a.cmp(&b),
        (ValueRef::UInt(a), ValueRef::UInt(b)) => a.cmp(&b),
        (ValueRef::Double(a), ValueRef::Double(b)) => a.partial_cmp(&b).expect("no NaN"),
        (ValueRef::Float(a), ValueRef::Float(b)) => a.partial_cmp(&b).expect("no NaN"),
        (ValueRef::Decimal(a), ValueRef::Decimal(b)) => a.cmp(&b),
        (ValueRef::Date(a), ValueRef::Date(b)) => a.cmp(&b),
        (ValueRef::DateTime(a), ValueRef::DateTime(b)) => a.cmp(&b),
        (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
        (ValueRef::Time(a), ValueRef::Time(b)) => a.cmp(&b),
        (ValueRef::Bytes(a), ValueRef::Bytes(b)) => column_type.collation.info().compare(a, b),
        other => panic!("values of different types: {other:?}"),
    }
}

struct Table {
    columns: Vec<LayoutColumn>,
    key: Vec<KeyPart>,
    secondary: Vec<KeyPart>,
}

fn random_parts(random: &mut Random, columns: &[LayoutColumn], nullable: bool) -> Vec<KeyPart> {
    let mut positions: Vec<usize> =
        (0..columns.len()).filter(|&i| nullable || !columns[i].nullable).collect();
    random.shuffle(&mut positions);
    positions.truncate(random.index(4));
    positions
        .into_iter()
        .map(|column| KeyPart { column, prefix: None, descending: random.chance(0.3) })
        .collect()
}

fn random_table(random: &mut Random) -> Table {
    let count = 1 + random.index(8);
    let columns: Vec<LayoutColumn> = (0..count)
        .map(|_| LayoutColumn { column_type: random_type(random), nullable: random.chance(0.5) })
        .collect();
    let key = random_parts(random, &columns, false);
    let secondary = random_parts(random, &columns, true);
    Table { columns, key, secondary }
}

fn random_row(random: &mut Random, columns: &[LayoutColumn]) -> Vec<Value> {
    columns
        .iter()
        .map(|column| {
            if column.nullable && random.chance(0.3) {
                Value::Null
            } else {
                random_value(random, &column.column_type)
            }
        })
        .collect()
}

fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

/// -0 is stored, but a key gives 0 back; such columns are never read from keys.
#[test]
fn rows_read_back_what_was_stored() {
    let mut random = Random::new(0x0060);
    for _ in 0..3_000 {
        let table = random_table(&mut random);
        let layout = RowLayout::new(&table.columns, &table.key, 7);
        let row = random_row(&mut random, &table.columns);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        layout.encode(&refs(&row), &mut key, &mut payload).expect("values fit their types");
        layout.verify(&key, &payload).expect("what was written is well formed");
        let view = RowView::new(&layout, &key, &payload);
        for (i, value) in row.iter().enumerate() {
            assert_eq!(view.get(i), value.as_ref(), "column {i} {:?}", table.columns[i]);
        }
        let mut longer = payload.clone();
        longer.push(0);
        assert!(layout.verify(&key, &longer).is_err());
    }
}

#[test]
fn a_patched_row_is_the_row_encoded_anew() {
    let mut random = Random::new(0x0063);
    let mut patched = 0;
    for _ in 0..3_000 {
        let table = random_table(&mut random);
        let layout = RowLayout::new(&table.columns, &table.key, 7);
        let mut row = random_row(&mut random, &table.columns);
        let other = random_row(&mut random, &table.columns);
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        layout.encode(&refs(&row), &mut key, &mut payload).expect("values fit their types");
        for (column, value) in other.into_iter().enumerate() {
            let value = match (&row[column], value) {
                // Of the same length, as far as the length allows it.
                (Value::Bytes(old), Value::Bytes(mut new)) if random.chance(0.5) => {
                    new.resize(old.len(), b'x');
                    Value::Bytes(new)
                }
                (_, value) => value,
            };
            let before = payload.clone();
            let done = layout.patch(column, value.as_ref(), &mut payload).expect("of its type");
            row[column] = value;
            if done {
                patched += 1;
            } else {
                assert_eq!(payload, before, "left alone");
            }
            let (mut expected_key, mut expected) = (Vec::new(), Vec::new());
            layout.encode(&refs(&row), &mut expected_key, &mut expected).expect("values fit");
            if done {
                assert_eq!((&key, &payload), (&expected_key, &expected), "column {column}");
            }
            (key, payload) = (expected_key, expected);
        }
    }
    assert!(patched > 3_000, "{patched} patches were tried");
}

#[test]
fn memcmp_order_of_keys_is_the_order_of_values() {
    let mut random = Random::new(0x0061);
    for _ in 0..2_000 {
        let table = random_table(&mut random);
        let layout = RowLayout::new(&table.columns, &table.key, 0);
        let index = IndexLayout::new(&layout, &table.secondary);
        let rows: Vec<Vec<Value>> =
            (0..8).map(|_| random_row(&mut random, &table.columns)).collect();
        let encode = |row: &[Value]| {
            let mut key = Vec::new();
            let values: Vec<_> =
                table.secondary.iter().map(|part| row[part.column].as_ref()).collect();
            index.push_values(&values, &mut key).expect("values fit their types");
            key
        };
        for a in &rows {
            for b in &rows {
                let expected = table
                    .secondary
                    .iter()
                    .map(|part| {
                        let column_type = &table.columns[part.column].column_type;
                        let (x, y) = (a[part.column].as_ref(), b[part.column].as_ref());
                        let order = order(column_type, x, y);
                        if part.descending { order.reverse() } else { order }
                    })
                    .find(|order| order.is_ne())
                    .unwrap_or(Ordering::Equal);
                assert_eq!(encode(a).cmp(&encode(b)), expected, "{a:?} {b:?}");
            }
        }
    }
}

/// Lets some parts be of prefixes, and the secondary index have parts of the clustered key, as they
/// are there or in another way.
fn overlap(random: &mut Random, table: &mut Table) {
    let columns = &table.columns;
    for part in table.key.iter_mut().chain(&mut table.secondary) {
        let is_string = columns[part.column].column_type.kind.is_string();
        part.prefix = (is_string && random.chance(0.3)).then(|| 1 + random.below(4) as u32);
    }
    for part in &table.key {
        table.secondary.retain(|own| own.column != part.column || random.chance(0.5));
        let is_there = table.secondary.iter().any(|own| own.column == part.column);
        if is_there || random.chance(0.4) {
            continue;
        }
        let mut own = *part;
        own.descending ^= random.chance(0.2);
        own.prefix = own.prefix.filter(|_| random.chance(0.8));
        table.secondary.insert(random.index(table.secondary.len() + 1), own);
    }
}

#[test]
fn index_keys_give_back_what_they_hold() {
    let mut random = Random::new(0x0062);
    let mut saved = 0;
    for _ in 0..6_000 {
        let mut table = random_table(&mut random);
        overlap(&mut random, &mut table);
        let layout = RowLayout::new(&table.columns, &table.key, 1);
        let index = IndexLayout::new(&layout, &table.secondary);
        let repeating = IndexLayout::repeating(&layout, &table.secondary);
        let mut entries = Vec::new();
        // Few rows are alike by chance alone.
        let rows = [0, 1].map(|_| random_row(&mut random, &table.columns));
        let mixed: Vec<Value> =
            (0..rows[0].len()).map(|i| rows[random.index(2)][i].clone()).collect();
        for row in rows.iter().chain([&mixed]) {
            let (mut clustered, mut payload) = (Vec::new(), Vec::new());
            layout.encode(&refs(row), &mut clustered, &mut payload).expect("values fit");
            if table.key.is_empty() {
                clustered = random.next_u64().to_be_bytes().to_vec();
            }
            let view = RowView::new(&layout, &clustered, &payload);
            let both = [&index, &repeating].map(|index| {
                let mut key = Vec::new();
                index.push_key(&view, &clustered, &mut key).expect("values fit");
                check_entry(&mut random, index, &key, row, &clustered);
                key
            });
            assert!(both[1].ends_with(&clustered));
            saved += both[1].len() - both[0].len();
            entries.push(both);
        }
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let orders = [0, 1].map(|layout| entries[a][layout].cmp(&entries[b][layout]));
            assert_eq!(orders[0], orders[1], "both are in the same order: {:?}", table.secondary);
        }
        for (column, _) in table.columns.iter().enumerate() {
            assert_eq!(index.covers(column), repeating.covers(column));
        }
    }
    assert!(saved > 50_000, "{saved} bytes");
}

fn check_entry(
    random: &mut Random,
    index: &IndexLayout,
    entry: &[u8],
    row: &[Value],
    clustered: &[u8],
) {
    let mut rebuilt = b"before".to_vec();
    index.push_clustered_key(entry, &mut rebuilt).expect("well formed");
    assert_eq!(&rebuilt[6..], clustered, "{:?}", index.parts());
    let mut read = vec![ValueRef::Int(-99); row.len()];
    index.read_columns(entry, &mut read).expect("well formed");
    for (i, value) in row.iter().enumerate() {
        if index.covers(i) {
            assert_eq!(read[i], value.as_ref(), "column {i}");
            assert_eq!(index.column(entry, i), value.as_ref(), "column {i}");
        }
    }
    // Nothing that is cut short or changed makes reading fail in another way.
    let cut = &entry[..random.index(entry.len() + 1)];
    let _ = index.parts_length(cut);
    let _ = index.push_clustered_key(cut, &mut rebuilt);
    let _ = index.values(cut);
}

#[test]
fn an_entry_leaves_out_what_its_own_parts_say() {
    let big =
        LayoutColumn { column_type: ColumnType::integer(TypeKind::BigInt, false), nullable: false };
    let text = LayoutColumn {
        column_type: ColumnType::text(TypeKind::VarChar, 9, CollationId::UTF8MB4_GENERAL_CI),
        nullable: false,
    };
    let part = KeyPart::ascending;
    let descending = |column| KeyPart { descending: true, ..part(column) };
    let prefix = |column| KeyPart { prefix: Some(1), ..part(column) };
    let row = [Value::Int(1), Value::Int(2), Value::text("Ab"), Value::Int(3)];
    // Columns 0 and 1 are numbers, 2 is a text, 3 is a number: what follows the own parts.
    let cases: &[(&[KeyPart], &[KeyPart], &[usize])] = &[
        (&[part(0), part(1)], &[part(1), part(3), part(0)], &[]),
        (&[part(0), part(1)], &[part(3), part(1)], &[0]),
        (&[part(0), part(1)], &[part(3), part(0)], &[1]),
        (&[part(0), part(1)], &[descending(1)], &[0, 1]),
        (&[descending(1)], &[descending(1), part(3)], &[]),
        // Both have the bytes of the sort key, whatever it loses of the text.
        (&[part(2), part(0)], &[part(3), part(2)], &[0]),
        (&[part(2), part(0)], &[prefix(2), part(3)], &[2, 0]),
        (&[prefix(2), part(0)], &[part(2)], &[2, 0]),
        (&[prefix(2), part(0)], &[prefix(2)], &[0]),
    ];
    for (key, secondary, followed) in cases {
        let layout = RowLayout::new(&[big, big, text, big], key, 0);
        let (mut clustered, mut payload) = (Vec::new(), Vec::new());
        layout.encode(&refs(&row), &mut clustered, &mut payload).expect("values fit");
        let index = IndexLayout::new(&layout, secondary);
        let columns = index.entry_parts()[secondary.len()..].iter().map(|part| part.column);
        assert_eq!(columns.collect::<Vec<_>>(), *followed, "{key:?} {secondary:?}");
        let (mut entry, mut rebuilt) = (Vec::new(), Vec::new());
        let view = RowView::new(&layout, &clustered, &payload);
        index.push_key(&view, &clustered, &mut entry).expect("values fit");
        index.push_clustered_key(&entry, &mut rebuilt).expect("well formed");
        assert_eq!(rebuilt, clustered, "{key:?} {secondary:?}");
    }
}

#[test]
fn a_text_prefix_is_a_prefix_of_the_keys_of_longer_texts() {
    let mut random = Random::new(0x0063);
    let column = LayoutColumn {
        column_type: ColumnType::text(TypeKind::VarChar, 100, CollationId::UTF8MB4_GENERAL_CI),
        nullable: true,
    };
    let part = KeyColumn::new(&[column], &KeyPart::ascending(0)).expect("one column");
    for _ in 0..2_000 {
        let Value::Bytes(head) = random_value(&mut random, &column.column_type) else { continue };
        let Value::Bytes(tail) = random_value(&mut random, &column.column_type) else { continue };
        let head = head.trim_ascii_end();
        let whole = [head, &tail[..]].concat();
        let (mut prefix, mut key) = (Vec::new(), Vec::new());
        assert!(part.push_text_prefix(head, &mut prefix));
        part.push(ValueRef::Bytes(&whole), &mut key).expect("text");
        assert!(key.starts_with(&prefix), "{head:?} {whole:?}");
    }
}

#[test]
fn wide_rows_use_four_byte_ends() {
    let text = ColumnType::large(TypeKind::LongText, CollationId::UTF8MB4_GENERAL_CI);
    let columns = [LayoutColumn { column_type: text, nullable: false }; 2];
    let layout = RowLayout::new(&columns, &[], 3);
    let long = Value::Bytes(vec![b'x'; 70_000]);
    let short = Value::text("end");
    let (mut key, mut payload) = (Vec::new(), Vec::new());
    layout.encode(&[long.as_ref(), short.as_ref()], &mut key, &mut payload).expect("fits");
    assert_eq!(payload[0], 0x83);
    layout.verify(&key, &payload).expect("well formed");
    let view = RowView::new(&layout, &key, &payload);
    assert_eq!(view.get(0), long.as_ref());
    assert_eq!(view.get(1), short.as_ref());
}
