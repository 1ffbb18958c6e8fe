use super::*;

#[test]
fn day_numbers_and_dates_are_inverse_over_all_days() {
    let mut expected = 1;
    for year in 0..10_000u32 {
        for month in 1..=12 {
            for day in 1..=days_in_month(year, month) {
                assert_eq!(day_number(year, month, day), expected, "{year}-{month}-{day}");
                if year % 37 == 0 || day == 1 {
                    let date = date_from_day_number(expected);
                    assert_eq!(date, Some(Date::new(year, month, day)));
                }
                expected += 1;
            }
        }
    }
    assert_eq!(date_from_day_number(expected), None);
    assert_eq!(day_number(1970, 1, 1), DAY_NUMBER_1970);
    assert_eq!(weekday(Date::new(1970, 1, 1)), 3);
}

#[test]
fn epoch_microseconds_round_trip() {
    for micros in
        [0, 1, -1, 1_600_000_000_123_456, -62_135_596_800_000_000, 253_402_300_799_999_999]
    {
        let moment = DateTime::from_epoch_micros(micros).expect("a year from 0 to 9999");
        assert_eq!(moment.to_epoch_micros(), micros);
    }
    assert_eq!(DateTime::from_epoch_micros(253_402_300_800_000_000), None);
}

#[test]
fn zones_are_offsets() {
    assert_eq!(TimeZone::parse("+05:30"), Some(TimeZone::Fixed(19_800)));
    assert_eq!(TimeZone::parse("-12:59"), Some(TimeZone::Fixed(-46_740)));
    assert_eq!(TimeZone::parse("system"), Some(TimeZone::System));
    for bad in ["+14:01", "-13:00", "5:00", "+5", "Europe/Berlin", "+00:60", "", "+a:00"] {
        assert_eq!(TimeZone::parse(bad), None, "{bad}");
    }
    assert_eq!(TimeZone::Fixed(-19_800).to_string(), "-05:30");
    let zone = TimeZone::Fixed(7_200);
    let local = zone.to_local(Timestamp(1_600_000_000_000_000));
    assert_eq!(local.to_string(), "2020-09-13 14:26:40");
    assert_eq!(zone.to_instant(local), Timestamp(1_600_000_000_000_000));
}
