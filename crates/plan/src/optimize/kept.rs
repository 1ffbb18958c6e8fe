//! What `mysql.column_stats` says of the values of a column.
//!
//! A histogram, whatever its format, is a line of points: so large a share of the values other than
//! NULL lies below a place between the least and the greatest value. Between two points the line
//! is straight.

use catalog::{KeptColumn, KeptStatistics};
use engine_api::place_between;
use types::row::KeyColumn;
use types::{ColumnType, TypeKind, Value, ValueRef};

/// A place between the ends, 0 to 1, and the share of values below.
type Point = (f64, f64);

/// What is known of a column.
pub(super) struct KeptValues {
    /// Share of rows with NULL.
    pub nulls: f64,
    /// Share of rows with one value, on average.
    equal: Option<f64>,
    ends: Option<Ends>,
    /// Empty without a histogram.
    points: Vec<Point>,
}

/// The least and the greatest value.
enum Ends {
    Numbers(ColumnType, f64, f64),
    Keys(KeyColumn, Vec<u8>, Vec<u8>),
}

impl Ends {
    fn of(column: &KeptColumn, column_type: &ColumnType, part: Option<KeyColumn>) -> Option<Self> {
        let (least, greatest) = column.extremes.as_ref()?;
        if !column_type.kind.is_string() {
            let number = |text: &[u8]| number_of_text(text, column_type.kind);
            return Some(Self::Numbers(*column_type, number(least), number(greatest)));
        }
        let part = part?;
        let key = |text: &[u8]| {
            let mut key = Vec::new();
            part.push(ValueRef::Bytes(text), &mut key).ok().map(|()| key)
        };
        let (least, greatest) = (key(least)?, key(greatest)?);
        Some(Self::Keys(part, least, greatest))
    }

    /// Where a value lies: below 0 and above 1 outside of the ends.
    fn place(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Numbers(column_type, low, high) => {
                let number = number_of(value, column_type)?;
                let place = (number - low) / (high - low);
                Some(if high > low { place } else { number - low })
            }
            Self::Keys(part, low, high) => {
                let mut key = Vec::new();
                part.push(value.as_ref(), &mut key).ok()?;
                match (key < *low, key > *high) {
                    (true, _) => Some(-1.0),
                    (_, true) => Some(2.0),
                    _ => Some(place_between(low, high, &key)),
                }
            }
        }
    }
}

/// A number, or the digits of a date or time as one.
fn number_of_text(text: &[u8], kind: TypeKind) -> f64 {
    let digits = |byte: &u8| !kind.is_temporal() || !matches!(byte, b'-' | b':' | b' ');
    let plain: Vec<u8> = text.iter().copied().filter(digits).collect();
    types::number::parse_double(&plain).value
}

fn number_of(value: &Value, column_type: &ColumnType) -> Option<f64> {
    Some(match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Float(number) => f64::from(*number),
        Value::Decimal(number) => number.to_f64(),
        Value::Bytes(text) => number_of_text(text, column_type.kind),
        Value::Date(_) if column_type.kind == TypeKind::Date => shown(value, column_type),
        Value::DateTime(_) if column_type.kind == TypeKind::DateTime => shown(value, column_type),
        Value::Time(_) if column_type.kind == TypeKind::Time => shown(value, column_type),
        _ => return None,
    })
}

fn shown(value: &Value, column_type: &ColumnType) -> f64 {
    let mut text = Vec::new();
    types::text::write_text(value.as_ref(), column_type, types::TimeZone::Fixed(0), &mut text);
    number_of_text(&text, column_type.kind)
}

impl KeptValues {
    /// What is kept of a column of a table that has so many rows.
    pub fn of(
        kept: &KeptStatistics,
        name: &str,
        column_type: &ColumnType,
        part: Option<KeyColumn>,
        rows: f64,
    ) -> Option<Self> {
        let column = kept.columns.get(name)?;
        let ends = Ends::of(column, column_type, part);
        let points = match (&column.histogram, &ends) {
            (Some((kind, bytes)), Some(ends)) => points_of(kind, bytes, ends),
            _ => Vec::new(),
        };
        Some(Self {
            nulls: column.shape.map_or(0.0, |shape| shape.0).clamp(0.0, 1.0),
            equal: column.frequency.filter(|it| *it > 0.0).map(|it| (it / rows).min(1.0)),
            ends,
            points,
        })
    }

    /// Different values out of `rows`.
    pub fn distinct(&self, rows: f64) -> Option<f64> {
        let equal = self.equal?;
        Some(((1.0 - self.nulls) / equal).clamp(1.0, rows.max(1.0)))
    }

    /// Share of rows that equal a value; none if nothing is known.
    pub fn equal(&self, value: Option<&Value>) -> Option<f64> {
        let equal = self.equal?;
        let place = value.and_then(|value| self.ends.as_ref()?.place(value));
        let Some(place) = place else { return Some(equal) };
        if !(0.0..=1.0).contains(&place) {
            return Some(0.0);
        }
        if self.points.is_empty() {
            return Some(equal);
        }
        let below = self.points.partition_point(|(at, _)| *at < place);
        let up_to = self.points.partition_point(|(at, _)| *at <= place);
        if up_to > below + 1 {
            // It fills ranges of its own.
            let share = self.points[up_to - 1].1 - self.points[below].1;
            return Some(share * (1.0 - self.nulls));
        }
        // Where values lie close to each other each has more rows.
        let from = self.points[below.saturating_sub(1)];
        let to = self.points[below.min(self.points.len() - 1)];
        let (width, share) = (to.0 - from.0, to.1 - from.1);
        if width <= 0.0 || share <= 0.0 {
            return Some(equal);
        }
        Some((equal * share / width).min(share * (1.0 - self.nulls)))
    }

    /// Share of rows between two values; none if nothing is known.
    pub fn between(&self, lower: Option<&Value>, upper: Option<&Value>) -> Option<f64> {
        let ends = self.ends.as_ref()?;
        let below = |value: &Value| ends.place(value).map(|place| self.below(place));
        let from = lower.map_or(Some(0.0), below)?;
        let to = upper.map_or(Some(1.0), below)?;
        let share = (to - from).max(0.0) * (1.0 - self.nulls);
        // A range holds a value at least.
        Some(share.max(self.equal.unwrap_or(0.0)).min(1.0 - self.nulls))
    }

    fn below(&self, place: f64) -> f64 {
        let place = place.clamp(0.0, 1.0);
        let next = self.points.partition_point(|(at, _)| *at <= place);
        let from = if next == 0 { (0.0, 0.0) } else { self.points[next - 1] };
        let to = self.points.get(next).copied().unwrap_or((1.0, 1.0));
        match to.0 > from.0 {
            true => from.1 + (to.1 - from.1) * (place - from.0) / (to.0 - from.0),
            false => to.1,
        }
    }
}

fn points_of(kind: &str, bytes: &[u8], ends: &Ends) -> Vec<Point> {
    let bounds: Vec<f64> = match kind {
        "SINGLE_PREC_HB" => bytes.iter().map(|byte| f64::from(*byte) / 255.0).collect(),
        "DOUBLE_PREC_HB" => {
            let words = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            words.map(|word| f64::from(word) / 65_535.0).collect()
        }
        _ => return points_of_json(&String::from_utf8_lossy(bytes), ends),
    };
    let ranges = (bounds.len() + 1) as f64;
    let inner = bounds.into_iter().enumerate();
    let inner = inner.map(|(number, place)| (place, (number + 1) as f64 / ranges));
    let mut points = vec![(0.0, 0.0)];
    points.extend(inner);
    points.push((1.0, 1.0));
    ascending(points)
}

/// Ranges as a JSON_HB histogram has them: each with its first value and its share of the values.
fn points_of_json(json: &str, ends: &Ends) -> Vec<Point> {
    let place = |text: &str| {
        let text = text.trim().trim_start_matches(':').trim_start().strip_prefix('"')?;
        let value = Value::Bytes(text.split('"').next()?.as_bytes().to_vec());
        ends.place(&value)
    };
    let mut points = Vec::new();
    let mut below = 0.0;
    for range in json.split("\"start\"").skip(1) {
        let Some(start) = place(range) else { return Vec::new() };
        points.push((start.clamp(0.0, 1.0), below));
        let size = range.split("\"size\"").nth(1).map(|rest| rest.trim_start_matches([':', ' ']));
        below += size.map_or(0.0, |size| types::number::parse_double(size.as_bytes()).value);
        if let Some(end) = range.split("\"end\"").nth(1).and_then(place) {
            points.push((end.clamp(0.0, 1.0), 1.0));
        }
    }
    ascending(points)
}

/// Nothing of a line that goes backward: somebody has written it by hand.
fn ascending(points: Vec<Point>) -> Vec<Point> {
    let is_sound = points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
    if is_sound { points } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::CollationId;

    fn integer() -> ColumnType {
        ColumnType {
            kind: TypeKind::Int,
            unsigned: false,
            zerofill: false,
            length: 11,
            precision: 10,
            scale: 0,
            collation: CollationId::BINARY,
            members: None,
        }
    }

    fn values(histogram: Option<(&str, &[u8])>) -> KeptValues {
        let column = KeptColumn {
            extremes: Some((b"0".to_vec(), b"1000".to_vec())),
            shape: Some((0.2, 4.0)),
            frequency: Some(2.0),
            histogram_size: Some(4),
            histogram: histogram.map(|(kind, bytes)| (kind.to_owned(), bytes.to_vec())),
        };
        let mut kept = KeptStatistics::default();
        kept.columns.insert("a".to_owned(), column);
        KeptValues::of(&kept, "a", &integer(), None, 1000.0).unwrap()
    }

    fn near(got: Option<f64>, wanted: f64) {
        let got = got.unwrap();
        assert!((got - wanted).abs() < 0.005, "{got} is not {wanted}");
    }

    #[test]
    fn without_a_histogram_values_are_spread_evenly() {
        let known = values(None);
        near(known.equal(Some(&Value::Int(7))), 0.002);
        near(known.equal(Some(&Value::Int(-7))), 0.0);
        near(known.between(None, Some(&Value::Int(250))), 0.2);
        near(known.between(Some(&Value::Int(250)), Some(&Value::Int(750))), 0.4);
        near(known.distinct(1000.0), 400.0);
    }

    #[test]
    fn histograms_of_bytes_say_where_values_lie() {
        // Half of the values up to 51, a quarter of them 51 itself.
        let known = values(Some(("SINGLE_PREC_HB", &[5, 13, 13])));
        near(known.between(None, Some(&Value::Int(50))), 0.8 * 0.492);
        near(known.equal(Some(&Value::Double(1000.0 * 13.0 / 255.0))), 0.8 * 0.25);
        near(known.between(Some(&Value::Int(525)), None), 0.8 * 0.125);
        let known = values(Some(("DOUBLE_PREC_HB", &[0xff, 0x7f])));
        near(known.between(None, Some(&Value::Int(250))), 0.2);
    }

    #[test]
    fn histograms_of_json_say_the_same() {
        let json = br#"{"histogram_hb": [{"start": "0", "size": 0.75, "ndv": 3},
            {"start": "100", "size": 0.25, "ndv": 9, "end": "1000"}]}"#;
        let known = values(Some(("JSON_HB", json)));
        near(known.between(None, Some(&Value::Int(100))), 0.8 * 0.75);
        near(known.between(Some(&Value::Int(550)), None), 0.8 * 0.125);
    }

    #[test]
    fn what_was_written_wrongly_by_hand_is_left_out() {
        let known = values(Some(("SINGLE_PREC_HB", &[200, 13])));
        near(known.between(None, Some(&Value::Int(250))), 0.2);
        near(values(Some(("JSON_HB", b"{"))).equal(Some(&Value::Int(1))), 0.002);
    }
}
