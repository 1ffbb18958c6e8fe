//! ANALYZE TABLE ... PERSISTENT FOR: engine-independent statistics as MariaDB collects them.
//!
//! 1. All rows are read once. Their values are kept in key form, those of every n-th row where
//!    the budget does not hold all: a row's number decides, so what is kept is spread evenly.
//! 2. The histogram is height-balanced: so many values, at equal distances in the order of all,
//!    each as its place between the least and the greatest.
//! 3. The planner reads what is collected here where `use_stat_tables` says so; else it has samples
//!    of its own that are never old (`engine_api::ColumnStatistics`).

use crate::Session;
use catalog::{KeptColumn, KeptStatistics, TableEntry};
use engine_api::{
    ColumnStatistics, KeyRange, LockMode, LockWait, RowBatch, ScanDirection, ScanOptions, Table,
    Transaction,
};
use types::row::{KeyColumn, KeyPart, RowView};
use types::{ColumnType, SqlError, TypeKind, Value, ValueRef, codes};

/// Bytes of values that are kept at once, roughly.
const BUDGET_BYTES: usize = 32 << 20;
/// What a kept value takes, roughly.
const VALUE_BYTES: usize = 80;
/// Bytes of a value that count; extremes are cut to so many, too.
const KEY_BYTES: usize = 255;

/// What the statement asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Names of columns; none for all.
    columns: Option<Vec<String>>,
    /// Names of indexes; none for all.
    indexes: Option<Vec<String>>,
}

impl Wishes {
    /// Everything.
    pub(crate) const ALL: Self = Self { columns: None, indexes: None };

    /// Reads the words behind the tables' names; none if they ask for nothing of the kind.
    pub(crate) fn of(options: &[String]) -> Option<Self> {
        let at = options.iter().position(|word| word == "PERSISTENT")?;
        let list = |name: &str| -> Option<Vec<String>> {
            let place = options[at..].iter().position(|word| word == name)? + at;
            let inside = options.get(place + 1)?.strip_prefix('(')?.strip_suffix(')')?;
            let names = inside.split(',').map(|word| word.trim().trim_matches('`').to_owned());
            Some(names.filter(|name| !name.is_empty()).collect())
        };
        Some(Self { columns: list("COLUMNS"), indexes: list("INDEXES") })
    }

    fn wants(list: &Option<Vec<String>>, name: &str) -> bool {
        list.as_ref().is_none_or(|names| names.iter().any(|it| it.eq_ignore_ascii_case(name)))
    }

    /// A name in a list that the table does not have.
    fn unknown(&self, entry: &TableEntry) -> Option<&String> {
        let definition = entry.definition();
        let column = |name: &&String| {
            !definition.columns.iter().any(|known| known.name.eq_ignore_ascii_case(name))
        };
        let index = |name: &&String| {
            !definition.indexes.iter().any(|known| known.name.eq_ignore_ascii_case(name))
        };
        let columns = self.columns.iter().flatten().find(column);
        columns.or_else(|| self.indexes.iter().flatten().find(index))
    }
}

/// What the session's variables say of histograms.
struct HistogramWish {
    size: u8,
    kind: String,
}

/// Values of a column while rows are read.
struct Gathered {
    column: usize,
    part: KeyColumn,
    keys: Vec<Box<[u8]>>,
    nulls: u64,
    values: u64,
    bytes: u64,
    extremes: Option<[(Box<[u8]>, Value); 2]>,
}

impl Session {
    /// Lines about a table whose engine-independent statistics are collected.
    pub(crate) fn collect_statistics(
        &mut self,
        entry: &TableEntry,
        wishes: &Wishes,
    ) -> Result<Vec<(&'static str, String)>, SqlError> {
        if let Some(name) = wishes.unknown(entry) {
            let message = format!("Table has no column or index '{name}'");
            return Ok(vec![("error", message)]);
        }
        let definition = entry.definition();
        let known = self.server.catalog.kept_statistics(&definition.schema, &definition.name);
        let mut kept = known.map_or_else(KeptStatistics::default, |known| (*known).clone());
        let mut lines = vec![("status", "Engine-independent statistics collected".to_owned())];
        let mut transaction = self.passing_transaction();
        let gathered = self.gather(entry, wishes, &mut *transaction, &mut lines)?;
        kept.cardinality = Some(match gathered.first() {
            Some(it) => it.nulls + it.values,
            None => entry.handle()?.statistics().rows,
        });
        let wish = HistogramWish {
            size: self.variables.value("histogram_size").number().min(255) as u8,
            kind: self.variables.value("histogram_type").show().to_ascii_uppercase(),
        };
        for it in gathered {
            let column = &definition.columns[it.column];
            let is_key = definition.indexes[0].parts.len() == 1
                && definition.indexes[0].parts[0].column == it.column;
            kept.columns.insert(column.name.clone(), it.finish(&column.column_type, is_key, &wish));
        }
        for (number, index) in definition.indexes.iter().enumerate() {
            if !index.parts.is_empty() && Wishes::wants(&wishes.indexes, &index.name) {
                let parts = self.index_frequencies(entry, number, &mut *transaction)?;
                kept.indexes.insert(index.name.clone(), parts);
            }
        }
        self.server.catalog.keep_statistics(&definition.schema, &definition.name, kept)?;
        Ok(lines)
    }

    fn gather(
        &mut self,
        entry: &TableEntry,
        wishes: &Wishes,
        transaction: &mut dyn Transaction,
        lines: &mut Vec<(&'static str, String)>,
    ) -> Result<Vec<Gathered>, SqlError> {
        let layout = &entry.layouts().row;
        let mut gathered = Vec::new();
        for (at, column) in entry.definition().columns.iter().enumerate() {
            if !Wishes::wants(&wishes.columns, &column.name) {
                continue;
            }
            if is_large(column.column_type.kind) {
                let name = &column.name;
                let text = "Engine-independent statistics are not collected for column";
                lines.push(("Warning", format!("{text} '{name}'")));
                continue;
            }
            let part = KeyColumn::new(layout.columns(), &KeyPart::ascending(at));
            gathered.extend(part.map(|part| Gathered::new(at, part)));
        }
        let table = entry.handle()?;
        let most = (BUDGET_BYTES / VALUE_BYTES / gathered.len().max(1)).max(1000) as u64;
        let step = (table.statistics().rows / most).max(1);
        let mut rows = Rows::open(&**table, 0, transaction)?;
        let mut number = 0u64;
        while rows.next(self, transaction)? {
            for row in 0..rows.batch.len() {
                let Some(stored) = rows.batch.row(row) else { continue };
                let view = RowView::new(layout, stored.key, stored.payload);
                let keeps = number.is_multiple_of(step);
                for it in &mut gathered {
                    let column_type = &entry.definition().columns[it.column].column_type;
                    it.add(view.get(it.column), column_type, keeps);
                }
                number += 1;
            }
        }
        Ok(gathered)
    }

    /// Rows for each value of the leading parts of an index, its neighbours compared in order.
    fn index_frequencies(
        &mut self,
        entry: &TableEntry,
        number: usize,
        transaction: &mut dyn Transaction,
    ) -> Result<Vec<Option<f64>>, SqlError> {
        let layouts = entry.layouts();
        let index = &entry.definition().indexes[number];
        let own = layouts.indexes[number].parts();
        let own = if number == 0 { layouts.row.clustered_key() } else { own };
        let whole = own.iter().take_while(|part| part.prefix.is_none()).count();
        let mut parts: Vec<KeyColumn> = own[..whole].to_vec();
        let is_key = index.unique && !own.iter().any(|part| part.nullable);
        if number != 0 && whole == own.len() && !is_key {
            // Columns that are there already say nothing more, nor does what is behind them.
            let more = layouts.indexes[number].entry_parts()[own.len()..].iter();
            let is_new = |part: &&KeyColumn| own.iter().all(|it| it.column != part.column);
            parts.extend(more.take_while(is_new).copied());
        }
        let mut counts = vec![(0u64, 0u64); parts.len()];
        let mut before: Vec<u8> = Vec::new();
        let mut rows = Rows::open(&**entry.handle()?, number, transaction)?;
        while rows.next(self, transaction)? {
            for row in 0..rows.batch.len() {
                let Some(stored) = rows.batch.row(row) else { continue };
                count_parts(&parts, &before, stored.key, &mut counts);
                before.clear();
                before.extend_from_slice(stored.key);
            }
        }
        let frequency = |(at, (rows, distinct)): (usize, (u64, u64))| match distinct {
            0 => (is_key && at + 1 == own.len()).then_some(1.0),
            distinct => Some(rows as f64 / distinct as f64),
        };
        let counts = counts.into_iter().enumerate();
        let mut frequencies: Vec<Option<f64>> = counts.map(frequency).collect();
        if whole < own.len() {
            frequencies.push(None);
        }
        Ok(frequencies)
    }
}

/// Counts a key's leading parts: rows without NULL, and those that are not as in the key before.
fn count_parts(parts: &[KeyColumn], before: &[u8], key: &[u8], counts: &mut [(u64, u64)]) {
    let (mut at, mut is_new) = (0, before.is_empty());
    for (part, count) in parts.iter().zip(counts) {
        let Some(length) = key.get(at..).and_then(|rest| part.length(rest)) else { return };
        let marker = if part.descending { 0xff } else { 0 };
        if part.nullable && key.get(at) == Some(&marker) {
            return;
        }
        at += length;
        is_new |= before.get(..at) != key.get(..at);
        count.0 += 1;
        count.1 += u64::from(is_new);
    }
}

/// A scan of a whole index.
struct Rows {
    cursor: Box<dyn engine_api::Cursor>,
    batch: RowBatch,
}

impl Rows {
    fn open(
        table: &dyn Table,
        index: usize,
        transaction: &mut dyn Transaction,
    ) -> Result<Self, SqlError> {
        let options = ScanOptions {
            index,
            range: KeyRange::all(),
            direction: ScanDirection::Forward,
            lock: LockMode::None,
            lock_wait: LockWait::Wait,
            covering: index != 0,
        };
        let cursor = table.scan(transaction, options);
        let cursor = cursor.map_err(|error| catalog::engine_error(&error, ""))?;
        Ok(Self { cursor, batch: RowBatch::default() })
    }

    fn next(
        &mut self,
        session: &Session,
        transaction: &mut dyn Transaction,
    ) -> Result<bool, SqlError> {
        runtime::yield_if_due();
        if session.process.cancel_token().is_cancelled() {
            return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]));
        }
        let found = self.cursor.next_rows(transaction, &mut self.batch);
        found.map_err(|error| catalog::engine_error(&error, ""))
    }
}

impl Gathered {
    fn new(column: usize, part: KeyColumn) -> Self {
        Self { column, part, keys: Vec::new(), nulls: 0, values: 0, bytes: 0, extremes: None }
    }

    fn add(&mut self, value: ValueRef<'_>, column_type: &ColumnType, keeps: bool) {
        let mut key = Vec::new();
        if value.is_null() || self.part.push(value, &mut key).is_err() {
            self.nulls += 1;
            return;
        }
        key.truncate(KEY_BYTES);
        let key: Box<[u8]> = key.into();
        self.values += 1;
        self.bytes += stored_bytes(value, column_type);
        match &mut self.extremes {
            None => {
                let both = (key.clone(), value.to_owned());
                self.extremes = Some([both.clone(), both]);
            }
            Some([least, _]) if key < least.0 => *least = (key.clone(), value.to_owned()),
            Some([_, greatest]) if key > greatest.0 => {
                *greatest = (key.clone(), value.to_owned());
            }
            Some(_) => {}
        }
        if keeps {
            self.keys.push(key);
        }
    }

    fn finish(self, column_type: &ColumnType, is_key: bool, wish: &HistogramWish) -> KeptColumn {
        let rows = self.nulls + self.values;
        let sample = self.keys.iter().map(|key| (key.clone(), 0)).collect();
        let distinct = match self.keys.len() as u64 == self.values {
            true => count_distinct(&self.keys),
            false => ColumnStatistics::of_sample(sample, 0, self.values as f64).distinct,
        };
        let frequency = match (self.values, is_key) {
            (0, true) => Some(1.0),
            (0, false) => None,
            (values, _) => Some(values as f64 / distinct.max(1.0)),
        };
        let shape = (rows > 0).then(|| {
            let length = self.bytes as f64 / (self.values as f64).max(1.0);
            (self.nulls as f64 / rows as f64, length)
        });
        let text = |value: &Value| shown(value.as_ref(), column_type);
        let extremes = self.extremes.as_ref();
        let extremes = extremes.map(|[least, greatest]| (text(&least.1), text(&greatest.1)));
        let wanted = !is_key && wish.size > 0 && self.values > 0;
        let histogram = if wanted { self.histogram(column_type, wish) } else { None };
        let size = if is_key { None } else { Some(if wanted { wish.size } else { 0 }) };
        KeptColumn { extremes, shape, frequency, histogram_size: size, histogram }
    }

    /// The number that a kept value of a numeric or temporal column counts as.
    fn number_of(&self, key: &[u8], column_type: &ColumnType) -> Option<f64> {
        self.part.codec.filter(|_| !column_type.kind.is_string())?;
        match column_type.kind {
            TypeKind::Double => {
                let bits = u64::from_be_bytes(*key.last_chunk::<8>()?);
                let sign = 1 << 63;
                Some(f64::from_bits(if bits & sign == 0 { !bits } else { bits & !sign }))
            }
            TypeKind::Float => {
                let bits = u32::from_be_bytes(*key.last_chunk::<4>()?);
                let sign = 1 << 31;
                let bits = if bits & sign == 0 { !bits } else { bits & !sign };
                Some(f64::from(f32::from_bits(bits)))
            }
            _ => parsed(&shown(self.part.read(key), column_type), column_type),
        }
    }

    fn histogram(
        mut self,
        column_type: &ColumnType,
        wish: &HistogramWish,
    ) -> Option<(String, Vec<u8>)> {
        self.keys.sort_unstable();
        let [least, greatest] = self.extremes.as_ref()?;
        if wish.kind == "JSON_HB" {
            let bytes = json_histogram(&self, column_type, usize::from(wish.size));
            return Some((wish.kind.clone(), bytes));
        }
        let is_single = wish.kind == "SINGLE_PREC_HB";
        let width = usize::from(wish.size) / if is_single { 1 } else { 2 };
        let number = |value: &Value| parsed(&shown(value.as_ref(), column_type), column_type);
        let ends = (number(&least.1), number(&greatest.1));
        let mut bytes = Vec::with_capacity(usize::from(wish.size));
        for bucket in 1..=width {
            let at = self.keys.len() * bucket / (width + 1);
            let key = &self.keys[at.min(self.keys.len() - 1)];
            let place = match (self.number_of(key, column_type), ends) {
                (Some(value), (Some(low), Some(high))) => {
                    if high > low {
                        (value - low) / (high - low)
                    } else {
                        1.0
                    }
                }
                _ => engine_api::place_between(&least.0, &greatest.0, key),
            };
            let place = place.clamp(0.0, 1.0);
            match is_single {
                true => bytes.push((place * 255.0) as u8),
                false => bytes.extend(((place * 65_535.0) as u16).to_le_bytes()),
            }
        }
        Some((wish.kind.clone(), bytes))
    }
}

/// Ranges of about equal numbers of rows, as MariaDB writes them.
fn json_histogram(gathered: &Gathered, column_type: &ColumnType, buckets: usize) -> Vec<u8> {
    let keys = &gathered.keys;
    let text = |key: &[u8]| {
        let value = gathered.part.is_readable().then(|| gathered.part.read(key));
        let bytes = value.map_or_else(|| key.to_vec(), |value| shown(value, column_type));
        String::from_utf8_lossy(&bytes).replace(['"', '\\'], "")
    };
    let mut json = format!("{{\n  \"target_histogram_size\": {buckets},\n  \"histogram_hb\": [");
    let capacity = keys.len().div_ceil(buckets.max(1)).max(1);
    let mut at = 0;
    while at < keys.len() {
        let mut end = (at + capacity).min(keys.len());
        end += keys[end..].iter().take_while(|key| **key == keys[end - 1]).count();
        let size = (end - at) as f64 / keys.len() as f64;
        let distinct = 1 + keys[at..end].windows(2).filter(|pair| pair[0] != pair[1]).count();
        json += if at == 0 { "\n" } else { ",\n" };
        json += &format!(
            "    {{\n      \"start\": \"{}\",\n      \"size\": {size},\n      \"ndv\": {distinct}",
            text(&keys[at])
        );
        if end == keys.len() {
            json += &format!(",\n      \"end\": \"{}\"", text(&keys[end - 1]));
        }
        json += "\n    }";
        at = end;
    }
    json += "\n  ]\n}";
    json.into_bytes()
}

fn count_distinct(keys: &[Box<[u8]>]) -> f64 {
    let mut sorted: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() as f64
}

/// A value as text.
fn shown(value: ValueRef<'_>, column_type: &ColumnType) -> Vec<u8> {
    let mut text = Vec::new();
    types::text::write_text(value, column_type, types::TimeZone::Fixed(0), &mut text);
    text.truncate(KEY_BYTES);
    text
}

/// The number that a value of a numeric or temporal column counts as.
fn parsed(text: &[u8], column_type: &ColumnType) -> Option<f64> {
    if column_type.kind.is_string() {
        return None;
    }
    let digits = |byte: &u8| !column_type.kind.is_temporal() || !matches!(byte, b'-' | b':' | b' ');
    let plain: Vec<u8> = text.iter().copied().filter(digits).collect();
    Some(types::number::parse_double(&plain).value)
}

/// Bytes of a value as MariaDB stores it.
fn stored_bytes(value: ValueRef<'_>, column_type: &ColumnType) -> u64 {
    let decimal = |digits: u32| digits / 9 * 4 + (digits % 9).div_ceil(2);
    let fraction = u32::from(column_type.scale).div_ceil(2);
    let bytes = match (column_type.kind, value) {
        (TypeKind::TinyInt | TypeKind::Year | TypeKind::Enum, _) => 1,
        (TypeKind::SmallInt, _) => 2,
        (TypeKind::MediumInt | TypeKind::Date, _) => 3,
        (TypeKind::Int | TypeKind::Float, _) => 4,
        (TypeKind::BigInt | TypeKind::Double, _) => 8,
        (TypeKind::Time, _) => 3 + fraction,
        (TypeKind::Timestamp, _) => 4 + fraction,
        (TypeKind::DateTime, _) => 5 + fraction,
        (TypeKind::Decimal, _) => {
            let (precision, scale) = (column_type.precision, column_type.scale);
            decimal(u32::from(precision - scale.min(precision))) + decimal(u32::from(scale))
        }
        (_, ValueRef::Bytes(text)) => text.len() as u32,
        _ => 8,
    };
    u64::from(bytes)
}

/// Columns of which nothing is collected.
fn is_large(kind: TypeKind) -> bool {
    use TypeKind::{Blob, LongBlob, LongText, MediumBlob, MediumText, Text, TinyBlob, TinyText};
    matches!(
        kind,
        TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob
    )
}

/// Whether ANALYZE TABLE without PERSISTENT collects, too.
pub(crate) fn collects_always(use_stat_tables: &str) -> bool {
    matches!(use_stat_tables, "COMPLEMENTARY" | "PREFERABLY")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    #[test]
    fn wishes_are_read_off_the_words() {
        assert_eq!(Wishes::of(&words("QUICK")), None);
        assert_eq!(Wishes::of(&words("PERSISTENT FOR ALL")), Some(Wishes::ALL));
        let some = Wishes::of(&words("PERSISTENT FOR COLUMNS (a,`b`) INDEXES ()")).unwrap();
        assert_eq!(some.columns, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(some.indexes, Some(Vec::new()));
        let all = Wishes::of(&words("PERSISTENT FOR COLUMNS ALL INDEXES ALL"));
        assert_eq!(all, Some(Wishes::ALL));
    }
}
