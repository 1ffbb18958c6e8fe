//! Durations from text and from numbers, as MariaDB reads them.

use super::Time;
use super::parse::{Body, DateRules, Parsed, Read, Scanner, TimeOrDateTime};
use super::parse::{datetime_from_number, is_punctuation, read_datetime};

/// How a text is read that may be a duration or a date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DurationForm {
    /// As a TIME: up to 838:59:59, or a date and time.
    Time,
    /// As EXTRACT takes hours and less: longer durations, and dates.
    Interval,
    /// As EXTRACT takes days: digits alone are a date, too.
    DayInterval,
}

/// The longest interval's hours: from the first to the last day.
const INTERVAL_HOURS: u64 = 87_649_415;

/// The longest TIME's hours.
const TIME_HOURS: u64 = 838;

/// Reads a duration: `[-][days ]hh:mm:ss.ffffff`, `hhmmss`, or a whole date and time. `None` if
/// it is neither, or minutes or seconds are over 59.
pub fn parse_time(text: &[u8], rules: DateRules) -> Option<Parsed<TimeOrDateTime>> {
    parse_duration(text, rules, DurationForm::Time)
}

/// The same for the other forms.
pub fn parse_duration(
    text: &[u8],
    rules: DateRules,
    form: DurationForm,
) -> Option<Parsed<TimeOrDateTime>> {
    let body = Body::of(text)?;
    let found = |parsed: Parsed<TimeOrDateTime>| {
        let is_date = matches!(parsed.value, TimeOrDateTime::DateTime(_));
        let truncated = parsed.truncated || body.garbage;
        (!is_date || !body.negative).then_some(Parsed { truncated, ..parsed })
    };
    if may_be_datetime(body.text, form) {
        let (read, end) = read_datetime(body.text, rules, true);
        let used = &body.text[..end];
        let like_a_date = used.contains(&b'T') || !used.contains(&b':');
        match read {
            Read::Found(parsed) if parsed.has_time || like_a_date => {
                return found(parsed.map(TimeOrDateTime::DateTime));
            }
            Read::NoSuchDate(fields) if fields > 3 || like_a_date => return None,
            Read::Other
                if form == DurationForm::DayInterval
                    && end >= body.text.len()
                    && like_a_date
                    && !used.iter().any(|b| *b == b'T' || is_punctuation(*b)) =>
            {
                return None;
            }
            _ => {}
        }
    }
    let limit = if form == DurationForm::Time { TIME_HOURS } else { INTERVAL_HOURS };
    let (parsed, _) = read_hours(body.text, limit)?;
    found(parsed.map(|time| TimeOrDateTime::Time(if body.negative { Time(-time.0) } else { time })))
}

/// Reads what ADDTIME and TIMESTAMP add: a duration of any length, but nothing like a date.
pub fn parse_added_time(text: &[u8]) -> Option<Parsed<Time>> {
    let body = Body::of(text)?;
    if may_be_datetime(body.text, DurationForm::Time)
        && matches!(read_datetime(body.text, DateRules::default(), true).0, Read::Found(_))
    {
        return None;
    }
    let (parsed, end) = read_hours(body.text, INTERVAL_HOURS)?;
    if body.text.get(end) == Some(&b'-') {
        return None;
    }
    let truncated = parsed.truncated || body.garbage;
    let sign = if body.negative { -1 } else { 1 };
    Some(Parsed { value: Time(sign * parsed.value.0), truncated, ..parsed })
}

/// Whether a text that may be a duration is first tried as a date and time.
fn may_be_datetime(text: &[u8], form: DurationForm) -> bool {
    let delimited = form != DurationForm::Time;
    let numeric = form == DurationForm::DayInterval;
    if text.len() >= 12 {
        return true;
    }
    if text.len() < 5 + usize::from(!delimited) && !numeric {
        return false;
    }
    let mut separators = 0;
    for &byte in text {
        match byte {
            b'T' => return true,
            b' ' => return separators > 0,
            _ if is_punctuation(byte) => {
                if delimited && byte != b':' {
                    return true;
                }
                separators += 1;
            }
            _ => {}
        }
    }
    numeric && separators == 0
}

/// A duration without a sign of at most so many hours; also tells where reading ended.
fn read_hours(text: &[u8], hours_max: u64) -> Option<(Parsed<Time>, usize)> {
    const FIELD_MAX: u64 = u32::MAX as u64;
    let mut scanner = Scanner::new(text);
    let [days, hours, minutes, seconds] = read_duration(&mut scanner)?;
    let (mut micros, mut digits, mut rounds_up, mut whole) = (0, 0, false, true);
    if scanner.peek() == Some(b'.') {
        scanner.at += 1;
        whole = scanner.remaining() == 0 || scanner.is_digit_at(0);
        (micros, digits, rounds_up) = scanner.fraction();
    }
    if has_exponent(&text[scanner.at..]) {
        return None;
    }
    let fits = [days, hours, minutes, seconds].iter().all(|field| *field <= FIELD_MAX);
    let total = if fits { days * 24 + hours } else { u64::MAX };
    if total > FIELD_MAX || minutes > 59 || seconds > 59 {
        return None;
    }
    let out_of_range = total > hours_max;
    let value = match out_of_range {
        true => Time::new(false, hours_max as u32, 59, 59, 999_999),
        false => Time::new(false, total as u32, minutes as u32, seconds as u32, micros),
    };
    let truncated = !whole || scanner.remaining() > 0;
    let parsed = Parsed { value, has_time: true, digits, truncated, out_of_range, rounds_up };
    Some((parsed, scanner.at))
}

/// Whether the rest of a duration is an exponent, with which it is none.
fn has_exponent(rest: &[u8]) -> bool {
    match rest {
        [b'e' | b'E', b'-' | b'+', digit, ..] | [b'e' | b'E', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// Days, hours, minutes and seconds; `None` if the first number is too long.
fn read_duration(scanner: &mut Scanner<'_>) -> Option<[u64; 4]> {
    let first = scanner.digits(usize::MAX);
    if first >= u64::from(u32::MAX) * 10_000 + 5959 {
        return None;
    }
    let end_of_first = scanner.at;
    scanner.skip_blanks();
    let mut fields = [0u64; 4];
    let mut next;
    if scanner.at > end_of_first && scanner.is_digit_at(0) && scanner.remaining() > 1 {
        fields[0] = first;
        next = 1;
    } else if scanner.peek() == Some(b':') && scanner.is_digit_at(1) {
        if first >= u64::from(u32::MAX) {
            return None;
        }
        fields[1] = first;
        scanner.at += 1;
        next = 2;
    } else {
        return Some([0, first / 10_000, first / 100 % 100, first % 100]);
    }
    loop {
        fields[next] = scanner.digits(usize::MAX);
        next += 1;
        if next == 4 || scanner.peek() != Some(b':') || !scanner.is_digit_at(1) {
            return Some(fields);
        }
        scanner.at += 1;
    }
}

/// A duration from a number: hhmmss; over 838:59:59 the limit. A number of eight digits or more
/// that can be one is a date and time. `None` if minutes or seconds are over 59.
pub fn time_from_number(
    negative: bool,
    number: u64,
    micros: u32,
    rules: DateRules,
) -> Option<Parsed<TimeOrDateTime>> {
    if !negative && (10_000_000..=99_991_231_235_959).contains(&number) {
        let found = datetime_from_number(number, micros, rules)?;
        return Some(found.map(TimeOrDateTime::DateTime));
    }
    let (hours, minutes, seconds) = (number / 10_000, number / 100 % 100, number % 100);
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let out_of_range = number > TIME_HOURS * 10_000 + 5959;
    let time = if out_of_range {
        if negative { Time(-Time::MAX.0) } else { Time::MAX }
    } else {
        Time::new(negative, hours as u32, minutes as u32, seconds as u32, micros)
    };
    Some(Parsed { out_of_range, ..Parsed::whole(TimeOrDateTime::Time(time), true) })
}
