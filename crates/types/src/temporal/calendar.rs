//! Day numbers, weekdays and weeks of the proleptic Gregorian calendar, counted as MySQL does:
//! day 1 is 0000-01-01.

use super::Date;

/// Day number of 1970-01-01.
pub const DAY_NUMBER_1970: i64 = 719_528;

/// Whether February has 29 days. Year 0 is no leap year for MySQL.
pub const fn is_leap_year(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || (year.is_multiple_of(400) && year != 0))
}

/// Days of a year.
pub const fn days_in_year(year: u32) -> u32 {
    if is_leap_year(year) { 366 } else { 365 }
}

/// Days of a month; 31 for a month out of range.
pub const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// TO_DAYS of a date, fields unchecked: a day past the month's end counts on. Zero for
/// `0000-00-00`.
pub fn day_number(year: u32, month: u32, day: u32) -> i64 {
    if year == 0 && month == 0 {
        return 0;
    }
    let mut year = i64::from(year);
    let month = i64::from(month);
    let mut days = 365 * year + 31 * (month - 1) + i64::from(day);
    if month <= 2 {
        year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    days + year / 4 - ((year / 100 + 1) * 3) / 4
}

/// The date of a day number; `None` outside 0000-01-01 .. 9999-12-31.
pub fn date_from_day_number(number: i64) -> Option<Date> {
    if !(1..=3_652_424).contains(&number) {
        return None;
    }
    let mut year = (number * 100 / 36_525) as u32;
    let start = |year: u32| day_number(year, 1, 1);
    while start(year) > number {
        year -= 1;
    }
    while year < 9999 && start(year + 1) <= number {
        year += 1;
    }
    let mut day = (number - start(year)) as u32;
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    Some(Date::new(year, month, day + 1))
}

/// Weekday of a day number, 0 = Monday.
pub fn weekday_of_day_number(number: i64) -> u32 {
    (number + 5).rem_euclid(7) as u32
}

/// Weekday of a date, 0 = Monday.
pub fn weekday(date: Date) -> u32 {
    weekday_of_day_number(day_number(date.year(), date.month(), date.day()))
}

/// How weeks are counted: the bits of WEEK()'s mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeekMode {
    /// Weeks begin on Monday.
    pub monday_first: bool,
    /// The week belongs to the year it began in (range 1 to 53).
    pub week_year: bool,
    /// Week 1 is the first that begins with a full week's first weekday.
    pub first_weekday: bool,
}

impl WeekMode {
    /// From the number given to WEEK(), 0 to 7.
    pub fn from_number(mode: u32) -> Self {
        let monday_first = mode & 1 != 0;
        let first_weekday = (mode & 4 != 0) == monday_first;
        Self { monday_first, week_year: mode & 2 != 0, first_weekday }
    }
}

/// Week number and the year it belongs to.
pub fn week_number(date: Date, mode: WeekMode) -> (u32, u32) {
    let mut year = date.year();
    let day = day_number(year, date.month(), date.day());
    let mut first = day_number(year, 1, 1);
    let mut week_year = mode.week_year;
    let start_of = |first: i64| {
        let number = if mode.monday_first { first + 5 } else { first + 6 };
        number.rem_euclid(7) as u32
    };
    let mut weekday = start_of(first);
    let late = |weekday: u32| {
        (mode.first_weekday && weekday != 0) || (!mode.first_weekday && weekday >= 4)
    };
    if date.month() == 1 && date.day() <= 7 - weekday {
        if !week_year && late(weekday) {
            return (0, year);
        }
        week_year = true;
        if late(weekday) {
            year = year.wrapping_sub(1);
            let days = i64::from(days_in_year(year));
            first -= days;
            weekday = (i64::from(weekday) + 53 * 7 - days).rem_euclid(7) as u32;
        }
    }
    // Of a date that is zero that is below zero, and counted without a sign.
    let days = if late(weekday) {
        day - (first + i64::from(7 - weekday))
    } else {
        day - (first - i64::from(weekday))
    } as u32;
    if week_year && days >= 52 * 7 {
        let weekday = (i64::from(weekday) + i64::from(days_in_year(year))).rem_euclid(7) as u32;
        if (!mode.first_weekday && weekday < 4) || (mode.first_weekday && weekday == 0) {
            return (1, year + 1);
        }
    }
    (days / 7 + 1, year)
}
