//! DATE, TIME, DATETIME and TIMESTAMP as packed integers whose order is the order of time.
//!
//! 1. A [`Date`] or [`DateTime`] may be zero (`0000-00-00`) or have a zero month or day; whether
//!    such a value is allowed is decided where it is stored (sql_mode), not here.
//! 2. A [`Timestamp`] counts microseconds since 1970-01-01 UTC; zero stands for
//!    `0000-00-00 00:00:00`.
//! 3. Fractions are always microseconds in memory; how many digits are shown or stored is the
//!    static type's scale.

mod by_format;
mod calendar;
mod duration;
mod format;
mod interval;
mod parse;
mod zone;

pub use by_format::parse_by_format;
pub use calendar::{
    DAY_NUMBER_1970, WeekMode, date_from_day_number, day_number, days_in_month, days_in_year,
    is_leap_year, week_number, weekday, weekday_of_day_number,
};
pub use duration::{DurationForm, parse_added_time, parse_duration, parse_time, time_from_number};
pub use format::{
    DAY_NAMES, MONTH_NAMES, write_date_format, write_time_format, write_zero_date_format,
};
pub use interval::{Interval, IntervalUnit, add_interval, add_interval_date};
pub use parse::{DateRules, Parsed, TimeOrDateTime, datetime_from_number, parse_datetime};
pub use zone::TimeZone;

/// Microseconds of a second.
pub const MICROS: i64 = 1_000_000;

/// A calendar day: year << 9 | month << 5 | day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Date(pub u32);

/// A calendar day and a time of day:
/// date << 37 | hour << 32 | minute << 26 | second << 20 | microsecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DateTime(pub u64);

/// A duration between -838:59:59.999999 and 838:59:59.999999, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub i64);

/// An instant: microseconds since 1970-01-01 00:00:00 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Date {
    /// From its fields, unchecked but for their width.
    pub const fn new(year: u32, month: u32, day: u32) -> Self {
        Self((year & 0x3fff) << 9 | (month & 15) << 5 | (day & 31))
    }

    /// Year, 0 to 9999.
    pub const fn year(self) -> u32 {
        self.0 >> 9
    }

    /// Month, 0 to 12.
    pub const fn month(self) -> u32 {
        self.0 >> 5 & 15
    }

    /// Day of the month, 0 to 31.
    pub const fn day(self) -> u32 {
        self.0 & 31
    }

    /// `0000-00-00`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// A day that exists: month and day not zero and within the calendar.
    pub fn is_complete(self) -> bool {
        self.month() >= 1
            && self.month() <= 12
            && self.day() >= 1
            && self.day() <= days_in_month(self.year(), self.month())
    }

    /// At midnight.
    pub const fn at_midnight(self) -> DateTime {
        DateTime((self.0 as u64) << 37)
    }
}

impl DateTime {
    /// From a day and the fields of a time of day.
    pub const fn new(date: Date, hour: u32, minute: u32, second: u32, micros: u32) -> Self {
        Self(
            (date.0 as u64) << 37
                | (hour as u64) << 32
                | (minute as u64) << 26
                | (second as u64) << 20
                | micros as u64,
        )
    }

    /// The day.
    pub const fn date(self) -> Date {
        Date((self.0 >> 37) as u32)
    }

    /// Hour, 0 to 23.
    pub const fn hour(self) -> u32 {
        (self.0 >> 32) as u32 & 31
    }

    /// Minute.
    pub const fn minute(self) -> u32 {
        (self.0 >> 26) as u32 & 63
    }

    /// Second.
    pub const fn second(self) -> u32 {
        (self.0 >> 20) as u32 & 63
    }

    /// Microseconds of the second.
    pub const fn micros(self) -> u32 {
        self.0 as u32 & 0xf_ffff
    }

    /// Microseconds since midnight.
    pub const fn time_micros(self) -> i64 {
        (self.hour() as i64 * 3600 + self.minute() as i64 * 60 + self.second() as i64) * MICROS
            + self.micros() as i64
    }

    /// The time of day.
    pub const fn time(self) -> Time {
        Time(self.time_micros())
    }

    /// From a day and microseconds since midnight (less than a day).
    pub const fn from_date_and_micros(date: Date, micros: i64) -> Self {
        let seconds = micros / MICROS;
        Self::new(
            date,
            (seconds / 3600) as u32,
            (seconds / 60 % 60) as u32,
            (seconds % 60) as u32,
            (micros % MICROS) as u32,
        )
    }

    /// Microseconds since 1970-01-01 00:00:00 of the same clock, for days that exist.
    pub fn to_epoch_micros(self) -> i64 {
        let date = self.date();
        let days = day_number(date.year(), date.month(), date.day()) - DAY_NUMBER_1970;
        days * 86_400 * MICROS + self.time_micros()
    }

    /// The inverse of [`DateTime::to_epoch_micros`]; `None` outside the years 0 to 9999.
    pub fn from_epoch_micros(micros: i64) -> Option<Self> {
        let days = micros.div_euclid(86_400 * MICROS);
        let date = date_from_day_number(days + DAY_NUMBER_1970)?;
        Some(Self::from_date_and_micros(date, micros.rem_euclid(86_400 * MICROS)))
    }

    /// With the fraction cut to `scale` digits.
    pub fn truncated(self, scale: u8) -> Self {
        let micros = self.micros();
        Self(self.0 - u64::from(micros % fraction_unit(scale)))
    }
}

impl Time {
    /// 838:59:59.999999, the longest.
    pub const MAX: Self = Self(3_020_399 * MICROS + 999_999);

    /// From its fields.
    pub fn new(negative: bool, hours: u32, minutes: u32, seconds: u32, micros: u32) -> Self {
        let total = (i64::from(hours) * 3600 + i64::from(minutes) * 60 + i64::from(seconds))
            * MICROS
            + i64::from(micros);
        Self(if negative { -total } else { total })
    }

    /// Below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Hours of the magnitude.
    pub const fn hours(self) -> u32 {
        (self.0.unsigned_abs() / 3_600_000_000) as u32
    }

    /// Minutes of the magnitude.
    pub const fn minutes(self) -> u32 {
        (self.0.unsigned_abs() / 60_000_000 % 60) as u32
    }

    /// Seconds of the magnitude.
    pub const fn seconds(self) -> u32 {
        (self.0.unsigned_abs() / 1_000_000 % 60) as u32
    }

    /// Microseconds of the magnitude.
    pub const fn micros(self) -> u32 {
        (self.0.unsigned_abs() % 1_000_000) as u32
    }

    /// With the fraction cut to `scale` digits.
    pub fn truncated(self, scale: u8) -> Self {
        Self(self.0 - self.0 % i64::from(fraction_unit(scale)))
    }
}

impl Timestamp {
    /// Zero, shown as `0000-00-00 00:00:00`.
    pub const ZERO: Self = Self(0);
    /// 2038-01-19 03:14:07.999999, the largest that a TIMESTAMP column takes.
    pub const MAX: Self = Self(i32::MAX as i64 * MICROS + 999_999);

    /// With the fraction cut to `scale` digits.
    pub fn truncated(self, scale: u8) -> Self {
        Self(self.0 - self.0.rem_euclid(i64::from(fraction_unit(scale))))
    }
}

/// Microseconds of the last of `scale` fractional digits.
pub const fn fraction_unit(scale: u8) -> u32 {
    10u32.pow(6 - if scale > 6 { 6 } else { scale as u32 })
}

#[cfg(test)]
mod tests;
