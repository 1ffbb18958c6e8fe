//! INTERVAL: reading an amount and adding it to a date, a date and time or a time.

use super::{Date, DateTime, MICROS, date_from_day_number, day_number, days_in_month};

/// Units of INTERVAL, EXTRACT and TIMESTAMPDIFF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names are the units")]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl IntervalUnit {
    /// As written in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Microsecond => "microsecond",
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
            Self::SecondMicrosecond => "second_microsecond",
            Self::MinuteMicrosecond => "minute_microsecond",
            Self::MinuteSecond => "minute_second",
            Self::HourMicrosecond => "hour_microsecond",
            Self::HourSecond => "hour_second",
            Self::HourMinute => "hour_minute",
            Self::DayMicrosecond => "day_microsecond",
            Self::DaySecond => "day_second",
            Self::DayMinute => "day_minute",
            Self::DayHour => "day_hour",
            Self::YearMonth => "year_month",
        }
    }

    /// Counts days or more: the result of adding it to a DATE is a DATE.
    pub fn is_days_or_more(self) -> bool {
        matches!(
            self,
            Self::Day | Self::Week | Self::Month | Self::Quarter | Self::Year | Self::YearMonth
        )
    }

    /// Counts months or years, which a TIME cannot take.
    pub fn is_months_or_more(self) -> bool {
        matches!(self, Self::Month | Self::Quarter | Self::Year | Self::YearMonth)
    }

    /// Has a fraction of a second.
    pub fn has_micros(self) -> bool {
        matches!(
            self,
            Self::Microsecond
                | Self::SecondMicrosecond
                | Self::MinuteMicrosecond
                | Self::HourMicrosecond
                | Self::DayMicrosecond
        )
    }

    /// Number of parts of a compound unit; 1 for a plain one.
    pub fn parts(self) -> usize {
        match self {
            Self::SecondMicrosecond
            | Self::MinuteSecond
            | Self::HourMinute
            | Self::DayHour
            | Self::YearMonth => 2,
            Self::MinuteMicrosecond | Self::HourSecond | Self::DayMinute => 3,
            Self::HourMicrosecond | Self::DaySecond => 4,
            Self::DayMicrosecond => 5,
            _ => 1,
        }
    }
}

/// An amount of time: months and microseconds, which are added separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i64,
    /// Microseconds, days included.
    pub micros: i128,
}

const SECOND: i128 = MICROS as i128;
const DAY: i128 = 86_400 * SECOND;

impl Interval {
    /// `amount` of a plain unit; seconds may bring microseconds.
    pub fn of(unit: IntervalUnit, amount: i64, micros: i64) -> Self {
        let amount_wide = i128::from(amount);
        let time = |unit: i128| Self { months: 0, micros: amount_wide * unit };
        let month = |count: i64| Self { months: amount.saturating_mul(count), micros: 0 };
        match unit {
            IntervalUnit::Microsecond => time(1),
            IntervalUnit::Second => {
                Self { months: 0, micros: amount_wide * SECOND + i128::from(micros) }
            }
            IntervalUnit::Minute => time(60 * SECOND),
            IntervalUnit::Hour => time(3600 * SECOND),
            IntervalUnit::Week => time(7 * DAY),
            IntervalUnit::Month => month(1),
            IntervalUnit::Quarter => month(3),
            IntervalUnit::Year => month(12),
            _ => time(DAY),
        }
    }

    /// Reads a compound amount such as `'1:30'` for MINUTE_SECOND: numbers with anything
    /// between them; missing leading parts are zero. `None` if there are too many numbers.
    pub fn parse(unit: IntervalUnit, text: &[u8]) -> Option<Self> {
        let mut at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let negative = text.get(at) == Some(&b'-');
        at += usize::from(negative);
        while at < text.len() && !text[at].is_ascii_digit() {
            at += 1;
        }
        let (parts, mut values) = (unit.parts(), Vec::with_capacity(5));
        let mut last_digits = 0;
        while at < text.len() && values.len() < parts {
            let start = at;
            let mut value = 0i64;
            while at < text.len() && text[at].is_ascii_digit() {
                value = value.checked_mul(10)?.checked_add(i64::from(text[at] - b'0'))?;
                at += 1;
            }
            last_digits = at - start;
            values.push(value);
            while at < text.len() && !text[at].is_ascii_digit() {
                at += 1;
            }
        }
        if at < text.len() {
            return None;
        }
        // The last part is microseconds, however many come before it: .5 means half a second.
        if unit.has_micros()
            && last_digits < 6
            && let Some(last) = values.last_mut()
        {
            *last = last.checked_mul(10i64.pow(6 - last_digits as u32))?;
        }
        let missing = parts - values.len();
        let mut padded = vec![0i64; missing];
        padded.extend(values);
        let sum = Self::of_parts(unit, &padded);
        Some(if negative { sum.negated() } else { sum })
    }

    fn of_parts(unit: IntervalUnit, parts: &[i64]) -> Self {
        if unit == IntervalUnit::YearMonth {
            let months = parts[0].saturating_mul(12).saturating_add(parts[1]);
            return Self { months, micros: 0 };
        }
        let units: &[i128] = match unit {
            IntervalUnit::SecondMicrosecond => &[SECOND, 1],
            IntervalUnit::MinuteMicrosecond => &[60 * SECOND, SECOND, 1],
            IntervalUnit::MinuteSecond => &[60 * SECOND, SECOND],
            IntervalUnit::HourMicrosecond => &[3600 * SECOND, 60 * SECOND, SECOND, 1],
            IntervalUnit::HourSecond => &[3600 * SECOND, 60 * SECOND, SECOND],
            IntervalUnit::HourMinute => &[3600 * SECOND, 60 * SECOND],
            IntervalUnit::DayMicrosecond => &[DAY, 3600 * SECOND, 60 * SECOND, SECOND, 1],
            IntervalUnit::DaySecond => &[DAY, 3600 * SECOND, 60 * SECOND, SECOND],
            IntervalUnit::DayMinute => &[DAY, 3600 * SECOND, 60 * SECOND],
            _ => &[DAY, 3600 * SECOND],
        };
        let micros = parts.iter().zip(units).map(|(&part, unit)| i128::from(part) * unit).sum();
        Self { months: 0, micros }
    }

    /// The other way.
    pub fn negated(self) -> Self {
        Self { months: self.months.saturating_neg(), micros: -self.micros }
    }
}

/// Adds to a date and time; `None` if the result is outside the years 0 to 9999 or the date
/// is not of the calendar.
pub fn add_interval(value: DateTime, interval: Interval) -> Option<DateTime> {
    let date = add_months(value.date(), interval.months)?;
    if interval.micros == 0 {
        return Some(DateTime::from_date_and_micros(date, value.time_micros()));
    }
    let days = i128::from(day_number(date.year(), date.month(), date.day()));
    let total = days * DAY + i128::from(value.time_micros()) + interval.micros;
    let days = i64::try_from(total.div_euclid(DAY)).ok()?;
    // Days are counted from the year 1.
    let date = date_from_day_number(days).filter(|date| date.year() > 0)?;
    Some(DateTime::from_date_and_micros(date, total.rem_euclid(DAY) as i64))
}

/// Adds months or days to a date.
pub fn add_interval_date(value: Date, interval: Interval) -> Option<Date> {
    add_interval(value.at_midnight(), interval).map(DateTime::date)
}

fn add_months(date: Date, months: i64) -> Option<Date> {
    if months == 0 {
        return Some(date);
    }
    let total = (i64::from(date.year()) * 12 + i64::from(date.month()) - 1).checked_add(months)?;
    if !(0..120_000).contains(&total) {
        return None;
    }
    let (year, month) = ((total / 12) as u32, (total % 12) as u32 + 1);
    Some(Date::new(year, month, date.day().min(days_in_month(year, month))))
}
