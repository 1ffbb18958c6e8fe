//! Dates and times as text, and DATE_FORMAT.

use super::{Date, DateTime, Time, WeekMode, day_number, week_number, weekday};
use std::fmt;

/// Names of the months, January first.
pub const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Names of the days, Monday first.
pub const DAY_NAMES: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn push_two(value: u32, out: &mut Vec<u8>) {
    out.extend([b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

fn push_four(value: u32, out: &mut Vec<u8>) {
    push_two(value / 100, out);
    push_two(value % 100, out);
}

/// Appends a point and `scale` digits, nothing for scale 0.
fn push_fraction(micros: u32, scale: u8, out: &mut Vec<u8>) {
    if scale == 0 {
        return;
    }
    out.push(b'.');
    let mut unit = 100_000;
    for _ in 0..scale.min(6) {
        out.push(b'0' + (micros / unit % 10) as u8);
        unit /= 10;
    }
}

impl Date {
    /// Appends `YYYY-MM-DD`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        push_four(self.year(), out);
        out.push(b'-');
        push_two(self.month(), out);
        out.push(b'-');
        push_two(self.day(), out);
    }

    /// YYYYMMDD.
    pub fn to_number(self) -> u64 {
        u64::from(self.year()) * 10_000 + u64::from(self.month()) * 100 + u64::from(self.day())
    }
}

impl DateTime {
    /// Appends `YYYY-MM-DD hh:mm:ss` and `scale` fractional digits.
    pub fn write_text(self, scale: u8, out: &mut Vec<u8>) {
        self.date().write_text(out);
        out.push(b' ');
        push_two(self.hour(), out);
        out.push(b':');
        push_two(self.minute(), out);
        out.push(b':');
        push_two(self.second(), out);
        push_fraction(self.micros(), scale, out);
    }

    /// YYYYMMDDhhmmss.
    pub fn to_number(self) -> u64 {
        self.date().to_number() * 1_000_000
            + u64::from(self.hour()) * 10_000
            + u64::from(self.minute()) * 100
            + u64::from(self.second())
    }
}

impl Time {
    /// Appends `[-]hh:mm:ss` and `scale` fractional digits; hours may have three digits.
    pub fn write_text(self, scale: u8, out: &mut Vec<u8>) {
        if self.is_negative() {
            out.push(b'-');
        }
        let hours = self.hours();
        if hours > 99 {
            out.push(b'0' + (hours / 100) as u8);
        }
        push_two(hours % 100, out);
        out.push(b':');
        push_two(self.minutes(), out);
        out.push(b':');
        push_two(self.seconds(), out);
        push_fraction(self.micros(), scale, out);
    }

    /// hhmmss with its sign.
    pub fn to_number(self) -> i64 {
        let magnitude = self.hours() * 10_000 + self.minutes() * 100 + self.seconds();
        if self.is_negative() { -i64::from(magnitude) } else { i64::from(magnitude) }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(10);
        self.write_text(&mut text);
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// With as many fractional digits as the formatter's precision says (none by default).
impl fmt::Display for DateTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(26);
        self.write_text(formatter.precision().unwrap_or(0).min(6) as u8, &mut text);
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// With as many fractional digits as the formatter's precision says (none by default).
impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(17);
        self.write_text(formatter.precision().unwrap_or(0).min(6) as u8, &mut text);
        formatter.write_str(&String::from_utf8_lossy(&text))
    }
}

/// What DATE_FORMAT or TIME_FORMAT formats.
#[derive(Clone, Copy, Debug)]
struct Moment {
    date: Date,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

/// Appends a date and time in a DATE_FORMAT format; false if the format asks for something that
/// the value does not have (the result is then NULL).
pub fn write_date_format(value: DateTime, format: &[u8], out: &mut Vec<u8>) -> bool {
    let moment = Moment {
        date: value.date(),
        hour: value.hour(),
        minute: value.minute(),
        second: value.second(),
        micros: value.micros(),
    };
    write_moment(&moment, format, out)
}

/// The same for TIME_FORMAT: hours may be over 23, date parts are zero.
pub fn write_time_format(value: Time, format: &[u8], out: &mut Vec<u8>) -> bool {
    !asks_for_date(format) && write_zero_date_format(value, format, out)
}

/// The same with a format that may ask for a date: a time has a date of zeros.
pub fn write_zero_date_format(value: Time, format: &[u8], out: &mut Vec<u8>) -> bool {
    let moment = Moment {
        date: Date::default(),
        hour: value.hours(),
        minute: value.minutes(),
        second: value.seconds(),
        micros: value.micros(),
    };
    if value.is_negative() {
        out.push(b'-');
    }
    write_moment(&moment, format, out)
}

/// Whether a format has a part of a date in it.
fn asks_for_date(format: &[u8]) -> bool {
    let mut letters = format.iter();
    while let Some(byte) = letters.next() {
        if *byte == b'%' && letters.next().is_some_and(|letter| DATE_LETTERS.contains(letter)) {
            return true;
        }
    }
    false
}

const DATE_LETTERS: &[u8] = b"MbWaDYymcdejUuVvXxw";

fn write_moment(moment: &Moment, format: &[u8], out: &mut Vec<u8>) -> bool {
    let mut at = 0;
    while at < format.len() {
        let byte = format[at];
        at += 1;
        if byte != b'%' || at == format.len() {
            out.push(byte);
            continue;
        }
        let letter = format[at];
        at += 1;
        if !write_specifier(moment, letter, out) {
            return false;
        }
    }
    true
}

/// One `%letter`.
fn write_specifier(moment: &Moment, letter: u8, out: &mut Vec<u8>) -> bool {
    let date = moment.date;
    let (month, day) = (date.month(), date.day());
    let hour12 = (moment.hour % 24 + 11) % 12 + 1;
    match letter {
        b'M' | b'b' => {
            let Some(name) = MONTH_NAMES.get((month as usize).wrapping_sub(1)) else {
                return false;
            };
            let length = if letter == b'b' { 3 } else { name.len() };
            out.extend_from_slice(&name.as_bytes()[..length]);
        }
        b'W' | b'a' => {
            if month == 0 && date.year() == 0 {
                return false;
            }
            let name = DAY_NAMES[weekday(date) as usize];
            let length = if letter == b'a' { 3 } else { name.len() };
            out.extend_from_slice(&name.as_bytes()[..length]);
        }
        b'D' => {
            push_number(day, out);
            let suffix = match (day, day % 10) {
                (10..=19, _) => "th",
                (_, 1) => "st",
                (_, 2) => "nd",
                (_, 3) => "rd",
                _ => "th",
            };
            out.extend_from_slice(suffix.as_bytes());
        }
        b'Y' => push_four(date.year(), out),
        b'y' => push_two(date.year() % 100, out),
        b'm' => push_two(month, out),
        b'c' => push_number(month, out),
        b'd' => push_two(day, out),
        b'e' => push_number(day, out),
        b'f' => {
            for unit in [100_000, 10_000, 1_000, 100, 10, 1] {
                out.push(b'0' + (moment.micros / unit % 10) as u8);
            }
        }
        b'H' => push_padded(moment.hour, out),
        b'k' => push_number(moment.hour, out),
        b'h' | b'I' => push_two(hour12, out),
        b'l' => push_number(hour12, out),
        b'i' => push_two(moment.minute, out),
        b'S' | b's' => push_two(moment.second, out),
        b'p' => out.extend_from_slice(if moment.hour % 24 < 12 { b"AM" } else { b"PM" }),
        b'r' | b'T' => push_clock(moment, letter == b'r', hour12, out),
        _ => return write_calendar_specifier(date, letter, out),
    }
    true
}

/// `%r` and `%T`.
fn push_clock(moment: &Moment, twelve: bool, hour12: u32, out: &mut Vec<u8>) {
    if twelve {
        push_two(hour12, out);
    } else {
        push_padded(moment.hour, out);
    }
    out.push(b':');
    push_two(moment.minute, out);
    out.push(b':');
    push_two(moment.second, out);
    if twelve {
        out.extend_from_slice(if moment.hour % 24 < 12 { b" AM" } else { b" PM" });
    }
}

/// Specifiers that count days and weeks.
fn write_calendar_specifier(date: Date, letter: u8, out: &mut Vec<u8>) -> bool {
    let number = |date: Date| day_number(date.year(), date.month(), date.day());
    match letter {
        b'j' => {
            if date.month() == 0 || date.year() == 0 {
                return false;
            }
            let day = number(date) - day_number(date.year(), 1, 1) + 1;
            let day = day.clamp(0, 999) as u32;
            out.push(b'0' + (day / 100) as u8);
            push_two(day % 100, out);
        }
        b'w' => {
            if date.month() == 0 && date.year() == 0 {
                return false;
            }
            push_number((weekday(date) + 1) % 7, out);
        }
        b'U' | b'u' | b'V' | b'v' => {
            let mode = WeekMode {
                monday_first: letter == b'u' || letter == b'v',
                week_year: letter == b'V' || letter == b'v',
                first_weekday: letter == b'U' || letter == b'V',
            };
            // Of dates that are zero it has more digits.
            push_padded(week_number(date, mode).0, out);
        }
        b'X' | b'x' => {
            let mode = WeekMode {
                monday_first: letter == b'x',
                week_year: true,
                first_weekday: letter == b'X',
            };
            match week_number(date, mode).1 {
                // The year before year 0.
                year @ 10_000.. => push_number(year, out),
                year => push_four(year, out),
            }
        }
        other => out.push(other),
    }
    true
}

fn push_number(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// At least two digits.
fn push_padded(value: u32, out: &mut Vec<u8>) {
    if value > 99 {
        push_number(value, out);
    } else {
        push_two(value, out);
    }
}
