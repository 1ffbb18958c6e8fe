//! ROUND, TRUNCATE, CEILING and FLOOR of dates and times: a DATE is the number that it is written
//! as, a TIME and a DATETIME stay what they are with fewer digits of their seconds.

use super::Frame;
use super::temporal_typing::{datetime_result, time_result};
use crate::result_type::ResultType;
use crate::temporal;
use types::temporal::{Interval, IntervalUnit, add_interval, fraction_unit};
use types::{ColumnType, DateTime, SqlError, Time, TypeKind, ValueRef};

/// Which way to round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// To the nearest, halves away from zero.
    Nearest,
    /// Towards zero.
    Cut,
    /// CEILING.
    Up,
    /// FLOOR.
    Down,
}

/// The type of a rounded value of a date or time; `None` for other operands. `places` is how
/// many digits are asked for, none if that is not known yet.
pub(super) fn result_of(
    operand: &ResultType,
    places: Option<i64>,
    direction: Direction,
) -> Option<ResultType> {
    let scale = places.map_or(operand.decimals().min(6), |places| places.clamp(0, 6) as u8);
    match operand.column_type.kind {
        TypeKind::Date => {
            let is_longer = direction == Direction::Nearest && places.is_some_and(|it| it < 0);
            let mut column_type = ColumnType::integer(TypeKind::Int, true);
            column_type.precision = 8 + u8::from(is_longer);
            column_type.length = u32::from(column_type.precision);
            Some(ResultType::of(column_type, operand.nullable))
        }
        TypeKind::Time => Some(time_result(scale, operand.nullable)),
        TypeKind::DateTime | TypeKind::Timestamp => {
            let nullable = operand.nullable || direction != Direction::Cut;
            Some(datetime_result(scale, nullable))
        }
        _ => None,
    }
}

/// The value of the first argument, a TIME or DATETIME, with so many digits.
pub(super) fn rounded<'a>(
    frame: &Frame<'a>,
    value: ValueRef<'a>,
    places: i64,
    direction: Direction,
) -> Result<ValueRef<'a>, SqlError> {
    let scale = places.clamp(0, 6) as u8;
    let argument = &frame.arguments[0];
    if frame.expr.result.column_type.kind == TypeKind::Time {
        let time = temporal::to_time(frame.context, value, argument)?;
        return Ok(time.map_or(ValueRef::Null, |it| ValueRef::Time(time_of(it, scale, direction))));
    }
    let rules = temporal::session_rules(frame.context);
    let moment = temporal::to_datetime(frame.context, value, argument, rules)?;
    Ok(moment.map_or(ValueRef::Null, |it| ValueRef::DateTime(moment_of(it, scale, direction))))
}

/// Whether what is cut off makes the rest one unit longer.
fn carries(rest: u32, unit: u32, is_negative: bool, direction: Direction) -> bool {
    match direction {
        Direction::Nearest => rest * 2 >= unit,
        Direction::Cut => false,
        Direction::Up => rest > 0 && !is_negative,
        Direction::Down => rest > 0 && is_negative,
    }
}

/// The longest TIME is as far as it goes.
fn time_of(time: Time, scale: u8, direction: Direction) -> Time {
    let unit = fraction_unit(scale);
    let cut = time.truncated(scale);
    if !carries(time.micros() % unit, unit, time.is_negative(), direction) {
        return cut;
    }
    let step = i64::from(unit) * if time.is_negative() { -1 } else { 1 };
    match cut.0 + step {
        longer if longer.abs() <= Time::MAX.0 => Time(longer),
        _ => cut,
    }
}

/// The last DATETIME is as far as it goes.
fn moment_of(moment: DateTime, scale: u8, direction: Direction) -> DateTime {
    const DAY_MICROS: i64 = 86_400_000_000;
    let unit = fraction_unit(scale);
    let cut = moment.truncated(scale);
    if !carries(moment.micros() % unit, unit, false, direction) {
        return cut;
    }
    let next = cut.time_micros() + i64::from(unit);
    if next < DAY_MICROS {
        return DateTime::from_date_and_micros(cut.date(), next);
    }
    let step = Interval::of(IntervalUnit::Microsecond, i64::from(unit), 0);
    add_interval(cut, step).unwrap_or(cut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Date;

    #[test]
    fn ends_of_the_range_are_as_far_as_it_goes() {
        let longest = Time::MAX;
        assert_eq!(time_of(longest, 0, Direction::Nearest), Time::new(false, 838, 59, 59, 0));
        let shortest = Time(-Time::MAX.0);
        assert_eq!(time_of(shortest, 0, Direction::Down), Time::new(true, 838, 59, 59, 0));
        assert_eq!(time_of(Time(-500_000), 0, Direction::Nearest), Time(-1_000_000));
        let last = DateTime::new(Date::new(9999, 12, 31), 23, 59, 59, 900_000);
        assert_eq!(moment_of(last, 0, Direction::Up), last.truncated(0));
        let zero = DateTime::new(Date(0), 0, 0, 0, 950_000);
        assert_eq!(moment_of(zero, 0, Direction::Nearest), DateTime::new(Date(0), 0, 0, 1, 0));
    }
}
