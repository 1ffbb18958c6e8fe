//! Dates and times from text and from numbers, as MariaDB reads them.

use super::{Date, DateTime, Time, days_in_month};
use crate::sql_mode::SqlMode;

/// Which unusual dates are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateRules {
    /// `0000-00-00` is refused.
    pub no_zero_date: bool,
    /// A zero month or day is refused.
    pub no_zero_in_date: bool,
    /// Days up to 31 are taken in every month.
    pub allow_invalid: bool,
}

impl DateRules {
    /// The rules of a sql_mode.
    pub fn of(mode: SqlMode) -> Self {
        Self {
            no_zero_date: mode.contains(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.contains(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid: mode.contains(SqlMode::ALLOW_INVALID_DATES),
        }
    }

    /// Only days of the calendar.
    pub fn complete() -> Self {
        Self { no_zero_date: true, no_zero_in_date: true, allow_invalid: false }
    }

    /// Whether a date with fields in range is allowed. `is_zero`: every field is zero, those
    /// of the time included.
    pub fn allow(self, date: Date, is_zero: bool) -> bool {
        if is_zero {
            return !self.no_zero_date;
        }
        if date.month() == 0 || date.day() == 0 {
            return !self.no_zero_in_date
                && (self.allow_invalid
                    || date.month() == 0
                    || date.day() <= days_in_month(date.year(), date.month()));
        }
        self.allow_invalid || date.day() <= days_in_month(date.year(), date.month())
    }
}

/// A date or time read from text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<T> {
    /// The value.
    pub value: T,
    /// The text had more than a date.
    pub has_time: bool,
    /// Fractional digits written.
    pub digits: u8,
    /// Text after the value was ignored.
    pub truncated: bool,
    /// The value was moved to the nearest in range.
    pub out_of_range: bool,
    /// The seventh fractional digit is 5 or more (for TIME_ROUND_FRACTIONAL).
    pub rounds_up: bool,
}

/// A text read for a TIME may be a whole date and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeOrDateTime {
    /// A duration.
    Time(Time),
    /// A date and time; its time of day is meant.
    DateTime(DateTime),
}

/// A position in a text.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    fields: u32,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8]) -> Self {
        let at = text.iter().take_while(|b| b.is_ascii_whitespace()).count();
        Self { text, at, fields: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn is_digit_at(&self, offset: usize) -> bool {
        self.text.get(self.at + offset).is_some_and(u8::is_ascii_digit)
    }

    fn remaining(&self) -> usize {
        self.text.len() - self.at
    }

    /// A number of at most `length` digits; 0 at the end of the text, `None` at another
    /// character.
    fn number(&mut self, length: usize) -> Option<u32> {
        if self.remaining() == 0 {
            return Some(0);
        }
        if !self.is_digit_at(0) {
            return None;
        }
        self.fields += 1;
        Some(self.digits(length).min(u64::from(u32::MAX)) as u32)
    }

    /// The digits here, at most `length`.
    fn digits(&mut self, length: usize) -> u64 {
        let mut value = 0u64;
        let end = self.text.len().min(self.at.saturating_add(length));
        while self.at < end && self.is_digit_at(0) {
            value = value.saturating_mul(10).saturating_add(u64::from(self.text[self.at] - b'0'));
            self.at += 1;
        }
        value
    }

    fn punctuation(&mut self) -> Option<()> {
        match self.peek() {
            None => Some(()),
            Some(byte) if byte.is_ascii_punctuation() => {
                self.at += 1;
                Some(())
            }
            Some(_) => None,
        }
    }

    /// Between date and time: `T`, blanks, or punctuation unless that could be part of a TIME.
    fn date_time_separator(&mut self, strict: bool) -> Option<()> {
        match self.peek() {
            None => Some(()),
            Some(b'T') => {
                self.at += 1;
                Some(())
            }
            Some(byte) if byte.is_ascii_punctuation() => {
                if strict {
                    self.fields = 0;
                    return None;
                }
                self.at += 1;
                Some(())
            }
            Some(byte) if byte.is_ascii_whitespace() => {
                self.skip_blanks();
                Some(())
            }
            Some(_) => None,
        }
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Digits after a point: microseconds, number of digits, whether the seventh rounds up.
    fn fraction(&mut self) -> (u32, u8, bool) {
        let start = self.at;
        let (mut micros, mut rounds_up) = (0, false);
        while self.is_digit_at(0) {
            let digit = u32::from(self.text[self.at] - b'0');
            match self.at - start {
                0..6 => micros = micros * 10 + digit,
                6 => rounds_up = digit >= 5,
                _ => {}
            }
            self.at += 1;
        }
        let digits = (self.at - start).min(255) as u8;
        for _ in digits..6 {
            micros *= 10;
        }
        (micros, digits, rounds_up)
    }

    fn at_end_after_blanks(&mut self) -> bool {
        self.skip_blanks();
        self.remaining() == 0
    }
}

/// Reads a date or a date and time; `None` if the text is neither, or one that the rules
/// refuse.
pub fn parse_datetime(text: &[u8], rules: DateRules) -> Option<Parsed<DateTime>> {
    parse_datetime_with(text, rules, false).ok().flatten()
}

/// The text is a date and time, but not one that exists.
struct NoSuchDate;

fn parse_datetime_with(
    text: &[u8],
    rules: DateRules,
    datetime_only: bool,
) -> Result<Option<Parsed<DateTime>>, NoSuchDate> {
    let mut scanner = Scanner::new(text);
    if !scanner.is_digit_at(0) {
        return Ok(None);
    }
    let run = scanner.text[scanner.at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'T')
        .count();
    let internal = match scanner.text.get(scanner.at + run) {
        None => true,
        Some(b'.') => run >= 12,
        Some(_) => false,
    };
    let mut fields = [0u32; 6];
    let (complete, year_digits) = if internal {
        let year_digits = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
        (read_compact(&mut scanner, &mut fields, year_digits).is_some(), year_digits)
    } else {
        let start = scanner.at;
        let complete = read_separated(&mut scanner, &mut fields, datetime_only).is_some();
        let year_digits = scanner.text[start..].iter().take_while(|b| b.is_ascii_digit()).count();
        (complete, year_digits)
    };
    if scanner.fields < 3 {
        return Ok(None);
    }
    let (mut micros, mut digits, mut rounds_up) = (0, 0, false);
    if complete && scanner.peek() == Some(b'.') && scanner.fields >= 6 {
        scanner.at += 1;
        (micros, digits, rounds_up) = scanner.fraction();
    }
    let [mut year, month, day, hour, minute, second] = fields;
    let is_zero = fields.iter().all(|&field| field == 0) && micros == 0;
    if year_digits == 2 && !is_zero {
        year += if year < 70 { 2000 } else { 1900 };
    }
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return Err(NoSuchDate);
    }
    let date = Date::new(year, month, day);
    if !rules.allow(date, is_zero) {
        return Err(NoSuchDate);
    }
    Ok(Some(Parsed {
        value: DateTime::new(date, hour, minute, second, micros),
        has_time: scanner.fields > 3,
        digits,
        truncated: !complete || !scanner.at_end_after_blanks(),
        out_of_range: false,
        rounds_up,
    }))
}

/// YYYYMMDDhhmmss and its shorter forms.
fn read_compact(
    scanner: &mut Scanner<'_>,
    fields: &mut [u32; 6],
    year_digits: usize,
) -> Option<()> {
    fields[0] = scanner.number(year_digits)?;
    fields[1] = scanner.number(2)?;
    fields[2] = scanner.number(2)?;
    if scanner.peek() == Some(b'T') {
        scanner.at += 1;
    }
    for field in &mut fields[3..] {
        *field = scanner.number(2)?;
    }
    Some(())
}

/// Fields with any punctuation between them.
fn read_separated(
    scanner: &mut Scanner<'_>,
    fields: &mut [u32; 6],
    datetime_only: bool,
) -> Option<()> {
    for (i, field) in fields.iter_mut().enumerate() {
        match i {
            0 => {}
            3 => scanner.date_time_separator(datetime_only)?,
            _ => scanner.punctuation()?,
        }
        *field = scanner.number(usize::MAX)?;
    }
    Some(())
}

/// Reads a duration: `[-][days ]hh:mm:ss.ffffff`, `hhmmss`, or a whole date and time. `None` if
/// it is neither, or minutes or seconds are over 59.
pub fn parse_time(text: &[u8], rules: DateRules) -> Option<Parsed<TimeOrDateTime>> {
    let mut scanner = Scanner::new(text);
    let negative = scanner.peek() == Some(b'-');
    if negative {
        scanner.at += 1;
    }
    if scanner.remaining() == 0 || (!scanner.is_digit_at(0) && scanner.peek() != Some(b'.')) {
        return None;
    }
    if !negative && scanner.remaining() >= 12 {
        match parse_datetime_with(&text[scanner.at..], rules, true) {
            Ok(Some(found)) if found.has_time => {
                return Some(Parsed {
                    value: TimeOrDateTime::DateTime(found.value),
                    has_time: true,
                    digits: found.digits,
                    truncated: found.truncated,
                    out_of_range: false,
                    rounds_up: found.rounds_up,
                });
            }
            Err(NoSuchDate) => return None,
            Ok(_) => {}
        }
    }
    let [days, hours, minutes, seconds] = read_duration(&mut scanner);
    let (mut micros, mut digits, mut rounds_up) = (0, 0, false);
    if scanner.peek() == Some(b'.') {
        scanner.at += 1;
        (micros, digits, rounds_up) = scanner.fraction();
    }
    if minutes > 59 || seconds > 59 || has_exponent(&text[scanner.at..]) {
        return None;
    }
    let truncated = !scanner.at_end_after_blanks();
    let total_hours = days.saturating_mul(24).saturating_add(hours).min(100_000);
    let time = Time::new(false, total_hours as u32, minutes as u32, seconds as u32, micros);
    let limit = Time::MAX;
    let out_of_range = time.0 > limit.0;
    let magnitude = if out_of_range { limit.0 } else { time.0 };
    Some(Parsed {
        value: TimeOrDateTime::Time(Time(if negative { -magnitude } else { magnitude })),
        has_time: true,
        digits,
        truncated,
        out_of_range,
        rounds_up,
    })
}

/// Whether the rest of a duration is an exponent, with which it is none.
fn has_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'-' | b'+', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// Days, hours, minutes and seconds.
fn read_duration(scanner: &mut Scanner<'_>) -> [u64; 4] {
    let first = scanner.digits(usize::MAX);
    let end_of_first = scanner.at;
    scanner.skip_blanks();
    let mut fields = [0u64; 4];
    let mut next;
    if scanner.at > end_of_first && scanner.is_digit_at(0) {
        fields[0] = first;
        next = 1;
    } else if scanner.peek() == Some(b':') && scanner.is_digit_at(1) {
        fields[1] = first;
        scanner.at += 1;
        next = 2;
    } else {
        scanner.at = end_of_first;
        return [0, first / 10_000, first / 100 % 100, first % 100];
    }
    loop {
        fields[next] = scanner.digits(usize::MAX);
        next += 1;
        if next == 4 || scanner.peek() != Some(b':') || !scanner.is_digit_at(1) {
            return fields;
        }
        scanner.at += 1;
    }
}

/// A date and time from a number: YYMMDD, YYYYMMDD, YYMMDDhhmmss, YYYYMMDDhhmmss.
pub fn datetime_from_number(
    number: u64,
    micros: u32,
    rules: DateRules,
) -> Option<Parsed<DateTime>> {
    const DAY: u64 = 1_000_000;
    let (number, has_time) = match number {
        0 => (0, false),
        1..101 => return None,
        101..=691_231 => ((number + 20_000_000) * DAY, false),
        691_232..700_101 => return None,
        700_101..=991_231 => ((number + 19_000_000) * DAY, false),
        991_232..10_000_101 => {
            return None;
        }
        10_000_101..=99_991_231 => (number * DAY, false),
        99_991_232..101_000_000 => return None,
        101_000_000..=691_231_235_959 => (number + 20_000_000 * DAY, true),
        691_231_235_960..700_101_000_000 => return None,
        700_101_000_000..=991_231_235_959 => (number + 19_000_000 * DAY, true),
        _ => (number, true),
    };
    let (day, time) = (number / DAY, number % DAY);
    let (year, month, date) = (day / 10_000, day / 100 % 100, day % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    if year > 9999 || month > 12 || date > 31 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let date = Date::new(year as u32, month as u32, date as u32);
    let is_zero = number == 0 && micros == 0;
    if !rules.allow(date, is_zero) {
        return None;
    }
    let micros_kept = if has_time { micros } else { 0 };
    Some(Parsed {
        value: DateTime::new(date, hour as u32, minute as u32, second as u32, micros_kept),
        has_time,
        digits: 0,
        truncated: !has_time && micros > 0,
        out_of_range: false,
        rounds_up: false,
    })
}

/// A duration from a number: hhmmss; over 838:59:59 the limit. A number of ten digits or more is
/// taken for a date and time. `None` if minutes or seconds are over 59.
pub fn time_from_number(
    negative: bool,
    number: u64,
    micros: u32,
    rules: DateRules,
) -> Option<Parsed<TimeOrDateTime>> {
    let parsed = |value, out_of_range| Parsed {
        value,
        has_time: true,
        digits: 0,
        truncated: false,
        out_of_range,
        rounds_up: false,
    };
    if number > 9_999_999 {
        if !negative {
            let found = datetime_from_number(number, micros, rules)?;
            return Some(parsed(TimeOrDateTime::DateTime(found.value), false));
        }
        let limit = if negative { Time(-Time::MAX.0) } else { Time::MAX };
        return Some(parsed(TimeOrDateTime::Time(limit), true));
    }
    let (hours, minutes, seconds) = (number / 10_000, number / 100 % 100, number % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let out_of_range = hours > 838;
    let time = if out_of_range {
        if negative { Time(-Time::MAX.0) } else { Time::MAX }
    } else {
        Time::new(negative, hours as u32, minutes as u32, seconds as u32, micros)
    };
    Some(parsed(TimeOrDateTime::Time(time), out_of_range))
}
