//! Reading a date and time by a DATE_FORMAT format (STR_TO_DATE).

use super::{
    DAY_NAMES, Date, DateTime, MONTH_NAMES, date_from_day_number, day_number, days_in_year,
};

/// What has been read so far.
#[derive(Default)]
struct Fields {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
    day_of_year: u32,
    afternoon: Option<bool>,
    twelve_hours: bool,
    /// Week number, which weekday weeks begin with and the weekday asked for (Sunday is 0).
    week: Option<(u32, bool)>,
    weekday: Option<u32>,
    week_year: Option<u32>,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn number(&mut self, most: usize) -> Option<u32> {
        let start = self.at;
        let mut value = 0u32;
        while self.at < self.text.len()
            && self.at - start < most
            && self.text[self.at].is_ascii_digit()
        {
            value = value * 10 + u32::from(self.text[self.at] - b'0');
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }

    /// The letters here as one of the names, in full or cut to three letters, or as the beginning
    /// of only one of them; its position.
    fn name(&mut self, names: &[&str], short: bool) -> Option<u32> {
        let rest = &self.text[self.at..];
        let word = &rest[..rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()];
        let begins = |name: &str| {
            name.len() >= word.len() && name.as_bytes()[..word.len()].eq_ignore_ascii_case(word)
        };
        let names = names.iter().map(|name| if short { &name[..3] } else { name });
        let mut found = names.enumerate().filter(|(_, name)| begins(name));
        let first = found.next()?;
        let exact = std::iter::once(first).chain(found.clone()).find(|it| it.1.len() == word.len());
        let chosen = match exact {
            Some(exact) => exact,
            None if found.next().is_none() && !word.is_empty() => first,
            None => return None,
        };
        self.at += word.len();
        Some(chosen.0 as u32)
    }

    fn skip_blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }
}

/// Reads `text` by `format`; whether all of the text was used. `None` if it does not fit. A day
/// is only checked to be at most 31.
pub fn parse_by_format(text: &[u8], format: &[u8]) -> Option<(DateTime, bool)> {
    let mut reader = Reader { text, at: 0 };
    let mut fields = Fields::default();
    let mut at = 0;
    while at < format.len() {
        reader.skip_blanks();
        if reader.at >= text.len() {
            break;
        }
        let byte = format[at];
        at += 1;
        if byte == b'%' && at < format.len() {
            let letter = format[at];
            at += 1;
            read_specifier(&mut reader, &mut fields, letter)?;
        } else if !byte.is_ascii_whitespace() {
            if reader.text.get(reader.at) != Some(&byte) {
                return None;
            }
            reader.at += 1;
        }
    }
    let moment = assemble(&mut fields)?;
    reader.skip_blanks();
    Some((moment, reader.at == text.len()))
}

fn read_specifier(reader: &mut Reader<'_>, fields: &mut Fields, letter: u8) -> Option<()> {
    match letter {
        b'Y' => {
            let start = reader.at;
            let year = reader.number(4)?;
            fields.year = if reader.at - start <= 2 { two_digit_year(year) } else { year };
        }
        b'y' => fields.year = two_digit_year(reader.number(2)?),
        b'm' | b'c' => fields.month = reader.number(2)?,
        b'M' => fields.month = reader.name(&MONTH_NAMES, false)? + 1,
        b'b' => fields.month = reader.name(&MONTH_NAMES, true)? + 1,
        b'd' | b'e' => fields.day = reader.number(2)?,
        b'D' => {
            fields.day = reader.number(2)?;
            reader.at = (reader.at + 2).min(reader.text.len());
        }
        b'h' | b'I' | b'l' => {
            fields.twelve_hours = true;
            fields.hour = reader.number(2)?;
        }
        b'H' | b'k' => fields.hour = reader.number(2)?,
        b'i' => fields.minute = reader.number(2)?,
        b'S' | b's' => fields.second = reader.number(2)?,
        b'f' => {
            let start = reader.at;
            let value = reader.number(6)?;
            fields.micros = value * 10u32.pow(6 - (reader.at - start) as u32);
        }
        b'p' => {
            let word = reader.text.get(reader.at..reader.at + 2)?;
            fields.afternoon = match word.to_ascii_uppercase().as_slice() {
                b"AM" => Some(false),
                b"PM" => Some(true),
                _ => return None,
            };
            reader.at += 2;
        }
        b'W' => fields.weekday = Some((reader.name(&DAY_NAMES, false)? + 1) % 7),
        b'a' => fields.weekday = Some((reader.name(&DAY_NAMES, true)? + 1) % 7),
        b'w' => fields.weekday = Some(reader.number(1)?),
        b'j' => fields.day_of_year = reader.number(3)?,
        b'u' | b'v' => fields.week = Some((reader.number(2)?, true)),
        b'U' | b'V' => fields.week = Some((reader.number(2)?, false)),
        b'x' | b'X' => fields.week_year = Some(reader.number(4)?),
        b'T' | b'r' => read_clock(reader, fields, letter == b'r')?,
        _ => return None,
    }
    Some(())
}

/// `%T` and `%r`.
fn read_clock(reader: &mut Reader<'_>, fields: &mut Fields, twelve: bool) -> Option<()> {
    for letter in if twelve { &b"h:i:s p"[..] } else { b"H:i:s" } {
        match letter {
            b':' => {
                if reader.text.get(reader.at) != Some(&b':') {
                    return None;
                }
                reader.at += 1;
            }
            b' ' => reader.skip_blanks(),
            letter => read_specifier(reader, fields, *letter)?,
        }
    }
    Some(())
}

fn two_digit_year(year: u32) -> u32 {
    year + if year < 70 { 2000 } else { 1900 }
}

fn assemble(fields: &mut Fields) -> Option<DateTime> {
    if fields.twelve_hours {
        if !(1..=12).contains(&fields.hour) {
            return None;
        }
        fields.hour %= 12;
        if fields.afternoon == Some(true) {
            fields.hour += 12;
        }
    }
    if fields.day_of_year > 0 {
        if fields.day_of_year > days_in_year(fields.year) {
            return None;
        }
        let number = day_number(fields.year, 1, 1) + i64::from(fields.day_of_year) - 1;
        set_date(fields, number)?;
    }
    if let (Some((week, monday_first)), Some(weekday)) = (fields.week, fields.weekday) {
        let year = fields.week_year.unwrap_or(fields.year);
        let first = day_number(year, 1, 1);
        let weekday_of_first = (first + 6).rem_euclid(7);
        let number = if monday_first {
            let shift = if weekday_of_first <= 4 { 0 } else { 7 };
            let from_monday = (weekday + 6) % 7;
            first - (weekday_of_first + 6) % 7
                + shift
                + (i64::from(week) - 1) * 7
                + i64::from(from_monday)
        } else {
            let shift = if weekday_of_first == 0 { 0 } else { 7 };
            first - weekday_of_first + shift + (i64::from(week) - 1) * 7 + i64::from(weekday)
        };
        set_date(fields, number)?;
    }
    if fields.month > 12
        || fields.day > 31
        || fields.hour > 23
        || fields.minute > 59
        || fields.second > 59
    {
        return None;
    }
    let date = Date::new(fields.year, fields.month, fields.day);
    Some(DateTime::new(date, fields.hour, fields.minute, fields.second, fields.micros))
}

fn set_date(fields: &mut Fields, number: i64) -> Option<()> {
    let date = date_from_day_number(number)?;
    (fields.year, fields.month, fields.day) = (date.year(), date.month(), date.day());
    Some(())
}
