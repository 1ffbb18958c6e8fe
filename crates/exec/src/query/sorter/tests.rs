use super::*;
use crate::order;
use crate::spill::SpillReader;
use base::Random;
use runtime::sim::{SimConfig, Simulation};
use std::cmp::Ordering;
use types::{CollationId, Date, DateTime, Decimal, Time, Timestamp, TypeKind, Value};

const MEMORY_BYTES: u64 = 64 << 20;

fn text_type(collation: u16) -> ColumnType {
    ColumnType::text(TypeKind::VarChar, 30, CollationId(collation))
}

/// Types with values that are often equal, or have equal heads.
fn column_types() -> Vec<ColumnType> {
    let mut types: Vec<ColumnType> =
        [8, 33, 45, 46, 47, 63, 192, 224, 1069, 1070, 1248].into_iter().map(text_type).collect();
    types.extend([
        ColumnType::integer(TypeKind::Int, false),
        ColumnType::integer(TypeKind::BigInt, false),
        ColumnType::integer(TypeKind::BigInt, true),
        ColumnType::decimal(12, 2, false),
        ColumnType::decimal(60, 20, false),
        ColumnType::date(),
        ColumnType::temporal(TypeKind::DateTime, 6),
        ColumnType::temporal(TypeKind::Timestamp, 0),
        ColumnType::temporal(TypeKind::Time, 0),
        ColumnType::double(),
        ColumnType::float(),
    ]);
    types
}

fn text(random: &mut Random) -> Vec<u8> {
    let starts = ["", "", "same start of ", "SAME start of ", "é", "a ", " ", "\u{1f600}"];
    let mut text = starts[random.below(8) as usize].as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let pieces = ["a", "A", "b", " ", "\0", "ß", "0", "12345678"];
        text.extend_from_slice(pieces[random.below(8) as usize].as_bytes());
    }
    text
}

fn value(column_type: &ColumnType, random: &mut Random) -> Value {
    if random.below(8) == 0 {
        return Value::Null;
    }
    let small = random.below(40) as i64 - 20;
    let extreme = random.below(16) == 0;
    match column_type.kind {
        TypeKind::BigInt if column_type.unsigned => Value::UInt(match (extreme, small) {
            (true, _) => u64::MAX - random.below(4),
            (false, ..0) => (1 << 63) + small.unsigned_abs(),
            (false, _) => small as u64,
        }),
        TypeKind::BigInt if extreme => Value::Int(if small < 0 { i64::MIN } else { i64::MAX }),
        TypeKind::Int | TypeKind::BigInt => Value::Int(small),
        TypeKind::Decimal if column_type.precision > 18 => {
            Value::Decimal(Decimal::new(i128::from(small) << random.below(100), 20))
        }
        TypeKind::Decimal => Value::Decimal(Decimal::new(small.into(), 2)),
        TypeKind::Date => Value::Date(Date(small.unsigned_abs() as u32)),
        TypeKind::DateTime => Value::DateTime(DateTime(small.unsigned_abs() << 40)),
        TypeKind::Timestamp => Value::Timestamp(Timestamp(small)),
        TypeKind::Time => Value::Time(Time(small)),
        TypeKind::Double => Value::Double(small as f64 / 4.0 * if extreme { 1e300 } else { 1.0 }),
        TypeKind::Float => Value::Float(small as f32 / 4.0),
        _ => Value::Bytes(text(random)),
    }
}

fn compare(keys: &[(usize, bool, ColumnType)], a: &[Value], b: &[Value]) -> Ordering {
    for (position, descending, column_type) in keys {
        let collation = column_type.collation.info();
        let order = order::compare(a[*position].as_ref(), b[*position].as_ref(), collation);
        if order.is_ne() {
            return if *descending { order.reverse() } else { order };
        }
    }
    Ordering::Equal
}

/// One sort against the stable sort of the standard library.
fn one(seed: u64) {
    let mut random = Random::new(seed);
    let all = column_types();
    let types: Vec<ColumnType> =
        (0..1 + random.below(3)).map(|_| all[random.below(all.len() as u64) as usize]).collect();
    let keys: Vec<(usize, bool, ColumnType)> = (0..1 + random.below(3))
        .map(|_| {
            let position = random.below(types.len() as u64) as usize;
            (position, random.below(2) == 0, types[position])
        })
        .collect();
    let count = [0, 1, 3, 100, 700, 5_000][random.below(6) as usize];
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for number in 0..count {
        let mut row: Vec<Value> = types.iter().map(|of| value(of, &mut random)).collect();
        row.push(Value::Int(number));
        rows.push(row);
    }
    let needed = if random.below(2) == 0 { u64::MAX } else { random.below(600) };
    let offset = if random.below(2) == 0 { 0 } else { random.below(20) as usize };
    let is_unique = random.below(3) == 0;

    let memory = MemoryAccount::new(MEMORY_BYTES);
    let sort_keys: Vec<SortKey> =
        keys.iter().map(|&(position, descending, _)| SortKey { position, descending }).collect();
    let spill = spill();
    let type_of = |position: usize| types[position];
    let mut sorter = Sorter::new(&sort_keys, type_of, types.len() + 1, needed, &memory, &spill);
    let spills = random.below(2) == 0;
    if spills {
        sorter.room = [500, 3_000, 20_000][random.below(3) as usize];
    }
    if is_unique {
        sorter.set_unique();
    }
    for row in &rows {
        let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        sorter.add(&row).expect("within the limit");
    }
    rows.sort_by(|a, b| compare(&keys, a, b));
    let kept = sorter.sort().expect("within the limit");
    if is_unique {
        rows.dedup_by(|later, earlier| compare(&keys, later, earlier).is_eq());
        assert_eq!(kept, rows.len(), "seed {seed}");
    }
    rows.truncate(usize::try_from(needed).unwrap_or(usize::MAX));
    let expected: Vec<Vec<Value>> = rows.into_iter().skip(offset).collect();
    let mut given: Vec<Vec<Value>> = Vec::new();
    let gave = sorter.give(offset, |row| {
        given.push(row.iter().map(|&value| value.to_owned()).collect());
        Ok(true)
    });
    gave.expect("within the limit");
    assert!(given == expected, "seed {seed} {keys:?}");
    let has_runs = !sorter.runs.is_empty();
    assert!(spills || !has_runs);
    let mut given: Vec<Vec<Value>> = Vec::new();
    match sorter.into_rows(offset).expect("within the limit") {
        DerivedRows::Memory { rows, .. } => {
            for number in 0..rows.len() {
                let columns = 0..=types.len();
                let value = |column| rows.value_at(number, column).to_owned();
                given.push(columns.map(value).collect());
            }
        }
        DerivedRows::Spilled { file, skip } => {
            let mut reader = SpillReader::new(file, &memory).expect("within the limit");
            while reader.advance().expect("it was just written") {
                let mut values = Values::new(reader.record().unwrap_or(&[]));
                given.push((0..=types.len()).map(|_| values.next_value().to_owned()).collect());
            }
            given.drain(..given.len().min(skip as usize));
            given.truncate(expected.len());
        }
    }
    assert!(given == expected, "seed {seed} {keys:?}");
    assert_eq!(memory.used_bytes(), 0, "seed {seed}");
}

fn spill() -> Arc<Spill> {
    Spill::new(Arc::from(std::path::Path::new("/data/tmp")), crate::Budgets::UNLIMITED)
}

#[test]
fn what_does_not_fit_is_merged_from_files_within_the_budget() {
    in_runtime(|| {
        let memory = MemoryAccount::new(u64::MAX);
        let budgets = crate::Budgets { sort: 1 << 20, ..crate::Budgets::UNLIMITED };
        let spill = Spill::new(Arc::from(std::path::Path::new("/data/tmp")), budgets);
        let keys = [SortKey { position: 0, descending: false }];
        let mut sorter = Sorter::new(&keys, |_| text_type(45), 2, u64::MAX, &memory, &spill);
        let rows = 100_000i64;
        for number in 0..rows {
            let text = format!("{:0100}", number * 7919 % rows);
            let row = [ValueRef::Bytes(text.as_bytes()), ValueRef::Int(number)];
            sorter.add(&row).expect("what does not fit goes to files");
        }
        sorter.sort().expect("runs are merged within the budget");
        let mut next = 0;
        let gave = sorter.give(0, |row| {
            let text = format!("{next:0100}");
            assert_eq!(row[0], ValueRef::Bytes(text.as_bytes()));
            next += 1;
            Ok(true)
        });
        gave.expect("runs are merged within the budget");
        assert_eq!(next, rows);
        assert!(memory.high_water_bytes() <= 1 << 20, "{}", memory.high_water_bytes());
        let counts = spill.take_counts().expect("files were made");
        assert!(counts.temporary_files > 10 && counts.sort_merge_passes > 0, "{counts:?}");
        let left = runtime::fs::read_dir("/data/tmp").expect("the directory was made");
        assert!(left.is_empty(), "files have no names: {left:?}");
    });
}

/// Sorts yield, which they can do only inside a runtime.
fn in_runtime(test: fn()) {
    Simulation::new(SimConfig::new(1)).run(test).expect("the simulation ends by itself");
}

#[test]
fn rows_are_sorted_as_a_simple_sort_does() {
    in_runtime(|| (0..400).for_each(one));
}

#[test]
fn the_best_rows_are_kept_in_the_order_in_which_equal_ones_came() {
    in_runtime(|| {
        for descending in [false, true] {
            let memory = MemoryAccount::new(1 << 20);
            let keys = [SortKey { position: 0, descending }];
            let mut sorter = Sorter::new(&keys, |_| text_type(45), 2, 300, &memory, &spill());
            for number in 0..5_000i64 {
                let text = format!("same start of all {:03}", number * 7 % 100);
                let row = [ValueRef::Bytes(text.as_bytes()), ValueRef::Int(number)];
                sorter.add(&row).expect("within the limit");
            }
            // Rows that LIMIT does not show were forgotten.
            assert!(memory.used_bytes() < 100_000, "{}", memory.used_bytes());
            assert!(sorter.cutoff().is_some());
            let mut expected: Vec<_> = (0..5_000i64).map(|n| (n * 7 % 100, n)).collect();
            expected.sort_by_key(|(key, number)| (if descending { -key } else { *key }, *number));
            sorter.sort().expect("within the limit");
            let mut given = Vec::new();
            let gave = sorter.give(10, |row| {
                given.push(row[1].to_owned());
                Ok(true)
            });
            gave.expect("within the limit");
            let expected: Vec<_> = expected[10..300].iter().map(|(_, n)| Value::Int(*n)).collect();
            assert_eq!(given, expected);
            drop(sorter);
            assert_eq!(memory.used_bytes(), 0);
        }
    });
}

#[test]
fn rows_beyond_the_limit_of_memory_go_to_files() {
    in_runtime(|| {
        let memory = MemoryAccount::new(200_000);
        let keys = [SortKey { position: 0, descending: false }];
        let mut sorter = Sorter::new(&keys, |_| text_type(45), 1, u64::MAX, &memory, &spill());
        for _ in 0..10_000 {
            sorter.add(&[ValueRef::Bytes(&[b'a'; 84])]).expect("it goes to a file");
        }
        assert!(sorter.runs.len() > 3);
        drop(sorter);
        assert_eq!(memory.used_bytes(), 0);
    });
}

#[test]
fn a_unique_sorter_hands_over_what_it_has() {
    in_runtime(|| {
        let memory = MemoryAccount::new(1 << 20);
        let keys = [SortKey { position: 0, descending: false }];
        let mut sorter = Sorter::new(&keys, |_| text_type(45), 1, u64::MAX, &memory, &spill());
        sorter.set_unique();
        for text in ["b", "B", "a", "b ", "c", "A"] {
            sorter.add(&[ValueRef::Bytes(text.as_bytes())]).expect("within the limit");
        }
        let mut given = Vec::new();
        let gave = sorter.end_unique(|row| {
            given.push(row[0].to_owned());
            Ok::<_, ExecError>(())
        });
        gave.expect("within the limit");
        assert_eq!(given, ["a", "b", "c"].map(|text| Value::Bytes(text.into())));
        sorter.add(&[ValueRef::Bytes(b"a")]).expect("within the limit");
        assert_eq!(sorter.sort().expect("within the limit"), 4);
    });
}
