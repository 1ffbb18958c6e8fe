//! Time zones of a session: a fixed offset from UTC.

use super::{DateTime, MICROS, Timestamp};
use std::fmt;

/// A session's time zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeZone {
    /// The machine's zone, which the server takes for UTC; shown as `SYSTEM`.
    #[default]
    System,
    /// So many seconds east of UTC; shown as `+hh:mm`.
    Fixed(i32),
}

impl TimeZone {
    /// Reads `SYSTEM`, `UTC` or an offset from -12:59 to +13:00; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Some(Self::System);
        }
        if text.eq_ignore_ascii_case("UTC") {
            return Some(Self::Fixed(0));
        }
        let (sign, rest) = match text.as_bytes().first()? {
            b'+' => (1, &text[1..]),
            b'-' => (-1, &text[1..]),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let digits =
            |t: &str| !t.is_empty() && t.len() <= 2 && t.bytes().all(|b| b.is_ascii_digit());
        if !digits(hours) || !digits(minutes) {
            return None;
        }
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let seconds = sign * (hours * 3600 + minutes * 60);
        let in_range = minutes < 60 && (-46_740..=46_800).contains(&seconds);
        in_range.then_some(Self::Fixed(seconds))
    }

    /// Seconds east of UTC.
    pub fn offset_seconds(self) -> i32 {
        match self {
            TimeZone::System => 0,
            TimeZone::Fixed(seconds) => seconds,
        }
    }

    /// What the clocks of this zone show at an instant.
    pub fn to_local(self, instant: Timestamp) -> DateTime {
        if instant == Timestamp::ZERO {
            return DateTime::default();
        }
        let micros = instant.0 + i64::from(self.offset_seconds()) * MICROS;
        DateTime::from_epoch_micros(micros).unwrap_or_default()
    }

    /// The instant at which the clocks of this zone show a date and time that exists. No check
    /// of TIMESTAMP's range.
    pub fn to_instant(self, local: DateTime) -> Timestamp {
        Timestamp(local.to_epoch_micros() - i64::from(self.offset_seconds()) * MICROS)
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TimeZone::System => formatter.write_str("SYSTEM"),
            TimeZone::Fixed(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let minutes = seconds.unsigned_abs() / 60;
                write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}
