use super::*;

fn decimal(text: &str) -> Decimal {
    let parsed = Decimal::parse(text.as_bytes());
    assert_eq!(parsed.length, text.len(), "{text}");
    parsed.value
}

#[test]
fn text_round_trip() {
    for text in ["0", "1", "-1", "0.00", "123.450", "-0.001", "99999999999999999999999999.9"] {
        assert_eq!(decimal(text).to_string(), text);
    }
    let long = "9".repeat(65);
    assert_eq!(decimal(&long).to_string(), long);
    assert_eq!(decimal("1e3").to_string(), "1000");
    assert_eq!(decimal("1.5e-3").to_string(), "0.0015");
    assert_eq!(decimal(".5").to_string(), "0.5");
    assert_eq!(decimal("-0").to_string(), "0");
    assert_eq!(Decimal::parse(b"12abc").length, 2);
    assert_eq!(Decimal::parse(b"abc").length, 0);
}

#[test]
fn quotient_has_whole_words_of_digits() {
    let quotient =
        |a: &str, b: &str| decimal(a).divide(&decimal(b), 4).ok().flatten().map(|q| q.to_string());
    assert_eq!(quotient("1", "3").as_deref(), Some("0.333333333"));
    assert_eq!(quotient("1", "0"), None);
    assert_eq!(quotient("-10", "4.0").as_deref(), Some("-2.500000000"));
}
