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

impl<T> Parsed<T> {
    /// A value that needed no reading, or was read whole.
    pub fn whole(value: T, has_time: bool) -> Self {
        Self { value, has_time, digits: 0, truncated: false, out_of_range: false, rounds_up: false }
    }

    /// Whether digits behind the sixth were dropped, and nothing else.
    pub fn is_shortened(&self) -> bool {
        self.digits > 6 && !self.truncated && !self.out_of_range
    }

    /// The same for a value made of this one.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Parsed<U> {
        let Self { value, has_time, digits, truncated, out_of_range, rounds_up } = self;
        Parsed { value: make(value), has_time, digits, truncated, out_of_range, rounds_up }
    }
}

/// A text read for a TIME may be a whole date and time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeOrDateTime {
    /// A duration.
    Time(Time),
    /// A date and time; its time of day is meant.
    DateTime(DateTime),
}

/// A text without what stands around a value.
pub(super) struct Body<'a> {
    pub text: &'a [u8],
    pub negative: bool,
    /// Something other than blanks stood behind it.
    pub garbage: bool,
}

impl<'a> Body<'a> {
    /// Takes blanks, a sign and blanks off the front, and what can be no part of a value off the
    /// end; `None` if no digit is left in front.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let blanks = |text: &[u8]| text.iter().take_while(|b| is_blank(**b)).count();
        let mut text = &text[blanks(text)..];
        let negative = text.first() == Some(&b'-');
        if matches!(text.first(), Some(b'-' | b'+')) {
            text = &text[1..];
        }
        text = &text[blanks(text)..];
        let mut garbage = false;
        while let Some((&last, rest)) = text.split_last() {
            let follows_digit = rest.last().is_some_and(u8::is_ascii_digit);
            if last.is_ascii_digit() || is_punctuation(last) || (last == b'T' && follows_digit) {
                break;
            }
            garbage |= !is_blank(last);
            text = rest;
        }
        let starts = text.first().is_some_and(u8::is_ascii_digit);
        starts.then_some(Self { text, negative, garbage })
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, 0x0b | 0xa0)
}

/// Whether a byte is punctuation in latin1, by which MariaDB reads texts of all character sets: so
/// are most of the bytes that end a character of UTF-8.
pub(super) fn is_punctuation(byte: u8) -> bool {
    match byte {
        0x81 | 0x83 | 0x8a | 0x8c..=0x90 | 0x9a | 0x9c..=0xa0 => false,
        0x80..=0xbf | 0xd7 | 0xf7 => true,
        _ => byte.is_ascii_punctuation(),
    }
}

/// A position in a text.
pub(super) struct Scanner<'a> {
    pub text: &'a [u8],
    pub at: usize,
    pub fields: u32,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, fields: 0 }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub fn is_digit_at(&self, offset: usize) -> bool {
        self.text.get(self.at + offset).is_some_and(u8::is_ascii_digit)
    }

    pub fn remaining(&self) -> usize {
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
    pub fn digits(&mut self, length: usize) -> u64 {
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
            Some(byte) if is_punctuation(byte) => {
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
            Some(byte) if is_punctuation(byte) => {
                if strict {
                    self.fields = 0;
                    return None;
                }
                self.at += 1;
                Some(())
            }
            Some(byte) if is_blank(byte) => {
                self.skip_blanks();
                Some(())
            }
            Some(_) => None,
        }
    }

    pub fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    /// Digits after a point: microseconds, number of digits, whether the seventh rounds up.
    pub fn fraction(&mut self) -> (u32, u8, bool) {
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
}

/// Reads a date or a date and time; `None` if the text is neither, or one that the rules
/// refuse.
pub fn parse_datetime(text: &[u8], rules: DateRules) -> Option<Parsed<DateTime>> {
    let body = Body::of(text)?;
    match read_datetime(body.text, rules, false).0 {
        Read::Found(parsed) if !body.negative => {
            Some(Parsed { truncated: parsed.truncated || body.garbage, ..parsed })
        }
        _ => None,
    }
}

/// What a text is as a date and time.
pub(super) enum Read {
    /// One that the rules allow.
    Found(Parsed<DateTime>),
    /// One that does not exist, of so many fields.
    NoSuchDate(u32),
    /// None at all.
    Other,
}

/// Also tells where reading ended.
pub(super) fn read_datetime(text: &[u8], rules: DateRules, datetime_only: bool) -> (Read, usize) {
    let mut scanner = Scanner::new(text);
    let mut fields = [0u32; 6];
    let (complete, year_digits) = match compact_digits(text) {
        Some(run) => {
            let year_digits = if run == 4 || run == 8 || run >= 14 { 4 } else { 2 };
            (read_compact(&mut scanner, &mut fields, year_digits).is_some(), year_digits)
        }
        None => {
            let complete = read_separated(&mut scanner, &mut fields, datetime_only).is_some();
            (complete, text.iter().take_while(|b| b.is_ascii_digit()).count())
        }
    };
    if scanner.fields < 3 {
        return (Read::Other, scanner.at);
    }
    let (mut micros, mut digits, mut rounds_up, mut whole) = (0, 0, false, complete);
    if complete && scanner.peek() == Some(b'.') {
        scanner.at += 1;
        whole = scanner.remaining() == 0 || scanner.is_digit_at(0);
        scanner.fields += u32::from(scanner.is_digit_at(0));
        (micros, digits, rounds_up) = scanner.fraction();
    }
    let [mut year, month, day, hour, minute, second] = fields;
    let is_zero = fields.iter().all(|&field| field == 0) && micros == 0;
    if year_digits == 2 && !is_zero {
        year = year.saturating_add(if year < 70 { 2000 } else { 1900 });
    }
    if year > 9999 || month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
        return (Read::NoSuchDate(scanner.fields), scanner.at);
    }
    let date = Date::new(year, month, day);
    if !rules.allow(date, is_zero) {
        return (Read::NoSuchDate(scanner.fields), scanner.at);
    }
    let parsed = Parsed {
        value: DateTime::new(date, hour, minute, second, micros),
        has_time: scanner.fields > 3,
        digits,
        truncated: !whole || scanner.remaining() > 0,
        out_of_range: false,
        rounds_up,
    };
    (Read::Found(parsed), scanner.at)
}

/// How many digits a text has that is digits alone, but for a `T` and, behind twelve digits or
/// more, a fraction; `None` if it has anything else.
fn compact_digits(text: &[u8]) -> Option<usize> {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mut count = digits(text);
    let mut at = count;
    if text.get(at) == Some(&b'T') {
        let more = digits(&text[at + 1..]);
        count += more;
        at += 1 + more;
    }
    if text.get(at) == Some(&b'.') && count >= 12 {
        at += 1 + digits(&text[at + 1..]);
    }
    (at == text.len()).then_some(count)
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

/// A date and time from a number: YYMMDD, YYYYMMDD, YYMMDDhhmmss, YYYYMMDDhhmmss.
pub fn datetime_from_number(
    number: u64,
    micros: u32,
    rules: DateRules,
) -> Option<Parsed<DateTime>> {
    const DAY: u64 = 1_000_000;
    let (number, has_time) = match number {
        0 => (0, true),
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
