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

#[test]
fn products_are_rounded_once() {
    let product = |a: &str, b: &str| decimal(a).multiply(&decimal(b)).map(|it| it.to_string());
    let wide = "99999999999999999999999999999999999.999999999999999999999999999999";
    let tiny = "0.00000000000000000000000000001";
    let million = format!("1000000.{}", "0".repeat(38));
    assert_eq!(product(tiny, wide), Ok(million));
    let large = "922337203685477580699999999999077662796.3145224193";
    let exact = "11386878955363490700007386299977964872089346881599992613700.010648248955289628";
    assert_eq!(product("12345678901234567890.123456789", large), Ok(exact.into()));
    // MariaDB cuts words off the factors first and shows ..0010 (COMPAT.md).
    let above_one = "1.0000000000000000000000000000000000001";
    let squared = "1.00000000000000000000000000000000000020";
    assert_eq!(product(above_one, above_one), Ok(squared.into()));
    // Zeros are added as far as there is room.
    assert_eq!(decimal(exact).with_scale(19).to_string(), exact);
    assert_eq!(decimal("-1.5").with_scale(38).to_string(), format!("-1.5{}", "0".repeat(37)));
    assert!(product(wide, &format!("{}0", wide.replace('.', ""))).is_err());
}

/// A number as a signed integer of hundreds of digits: the reference, digit by digit.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Reference {
    negative: bool,
    /// Decimal digits, least significant first.
    digits: Vec<u8>,
    scale: usize,
}

impl Reference {
    fn parse(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let scale = text.find('.').map_or(0, |point| text.len() - point - 1);
        let digits = text.bytes().rev().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        Self { negative, digits, scale }.trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.digits.len() > 1 && self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.iter().all(|&d| d == 0) {
            self.negative = false;
        }
        self
    }

    fn scaled(&self, scale: usize) -> Vec<u8> {
        let mut digits = vec![0; scale - self.scale];
        digits.extend(&self.digits);
        digits
    }

    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        let digit = |digits: &[u8], i: usize| digits.get(i).copied().unwrap_or(0);
        (0..a.len().max(b.len()))
            .rev()
            .map(|i| digit(a, i).cmp(&digit(b, i)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn add(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (a, b) = (self.scaled(scale), other.scaled(scale));
        let digit = |digits: &[u8], i: usize| i32::from(digits.get(i).copied().unwrap_or(0));
        let same = self.negative == other.negative;
        let swap = !same && Self::compare(&a, &b).is_lt();
        let (x, y) = if swap { (&b, &a) } else { (&a, &b) };
        let mut digits = Vec::new();
        let mut carry = 0;
        for i in 0..=x.len().max(y.len()) {
            let sum = digit(x, i) + if same { digit(y, i) } else { -digit(y, i) } + carry;
            digits.push(sum.rem_euclid(10) as u8);
            carry = sum.div_euclid(10);
        }
        let negative = if swap { other.negative } else { self.negative };
        Self { negative, digits, scale }.trimmed()
    }

    fn multiply(&self, other: &Self) -> Self {
        let mut digits = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, &x) in self.digits.iter().enumerate() {
            for (j, &y) in other.digits.iter().enumerate() {
                digits[i + j] += u32::from(x) * u32::from(y);
            }
        }
        let mut carry = 0;
        let digits = digits
            .iter()
            .map(|&digit| {
                let sum = digit + carry;
                carry = sum / 10;
                (sum % 10) as u8
            })
            .collect();
        let negative = self.negative != other.negative;
        Self { negative, digits, scale: self.scale + other.scale }.trimmed()
    }

    fn text(&self) -> String {
        let mut digits = self.digits.clone();
        while digits.len() <= self.scale {
            digits.push(0);
        }
        let mut text: String = digits.iter().rev().map(|d| char::from(b'0' + d)).collect();
        if self.scale > 0 {
            text.insert(text.len() - self.scale, '.');
        }
        if self.negative { format!("-{text}") } else { text }
    }
}

fn random_text(random: &mut base::Random, digits: u64) -> String {
    let count = 1 + random.below(digits) as usize;
    let scale = random.index(count.min(30) + 1);
    let mut text: String = (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
    if scale > 0 {
        text.insert(count - scale, '.');
        if text.starts_with('.') {
            text.insert(0, '0');
        }
    }
    let text = text.trim_start_matches('0').to_string();
    let text = if text.is_empty() || text.starts_with('.') { format!("0{text}") } else { text };
    if random.chance(0.5) { format!("-{text}") } else { text }
}

#[test]
fn sums_products_and_order_agree_with_schoolbook_arithmetic() {
    let mut random = base::Random::new(0x00de);
    for _ in 0..20_000 {
        let digits = if random.chance(0.5) { 12 } else { 60 };
        let (x, y) = (random_text(&mut random, digits), random_text(&mut random, digits));
        let (a, b) = (decimal(&x), decimal(&y));
        let (ra, rb) = (Reference::parse(&x), Reference::parse(&y));
        assert_eq!(a.to_string(), ra.text(), "{x}");
        let words = |digits: usize| digits.div_ceil(9);
        // Sums of more than nine words lose their last digits, as the server's do.
        let integer = (ra.digits.len() - ra.scale.min(ra.digits.len()))
            .max(rb.digits.len() - rb.scale.min(rb.digits.len()));
        if words(integer + 1) + words(ra.scale.max(rb.scale)) > 9 {
            continue;
        }
        let sum = a.add(&b).expect("81 digits");
        assert_eq!(sum.to_string(), ra.add(&rb).text(), "{x} + {y}");
        let minus = Reference { negative: !rb.negative, ..rb.clone() }.trimmed();
        let difference = a.subtract(&b).expect("81 digits");
        assert_eq!(difference.to_string(), ra.add(&minus).text(), "{x} - {y}");
        let sign = ra.add(&minus);
        let order = match (sign.negative, sign.digits.iter().all(|&d| d == 0)) {
            (_, true) => Ordering::Equal,
            (true, _) => Ordering::Less,
            _ => Ordering::Greater,
        };
        assert_eq!(a.cmp(&b), order, "{x} <=> {y}");
        let product = ra.multiply(&rb);
        let integer = ra.digits.len() + rb.digits.len() + 2;
        if product.scale <= 38 && words(integer) + words(product.scale) <= 9 {
            let found = a.multiply(&b).expect("fits");
            assert_eq!(found.to_string(), product.text(), "{x} * {y}");
        }
    }
}

#[test]
fn quotient_and_remainder_belong_together() {
    let mut random = base::Random::new(0x00df);
    for _ in 0..20_000 {
        let (x, y) = (random_text(&mut random, 40), random_text(&mut random, 20));
        let (a, b) = (decimal(&x), decimal(&y));
        if b.is_zero() {
            assert_eq!(a.divide(&b, 4), Ok(None));
            continue;
        }
        let rest = a.remainder(&b).expect("fits").expect("not by zero");
        assert!(rest.abs() < b.abs(), "{x} % {y} = {rest}");
        assert!(rest.is_zero() || rest.is_negative() == a.is_negative());
        // a = q * b + r with a whole q.
        let whole = a.subtract(&rest).expect("fits").divide(&b, 0).expect("fits");
        let whole = whole.expect("not by zero");
        assert_eq!(whole.truncated(0), whole, "{x} / {y}");
        let quotient = a.divide(&b, 4).expect("fits").expect("not by zero");
        let back = quotient.multiply(&b);
        if let Ok(back) = back
            && quotient.scale() <= 18
            && b.scale() <= 18
        {
            let error = a.subtract(&back).expect("fits").abs();
            let unit = Decimal::new(1, quotient.scale()).multiply(&b.abs()).expect("fits");
            assert!(error < unit, "{x} / {y} = {quotient}");
        }
    }
}

#[test]
fn rounding_is_half_away_from_zero() {
    for (text, scale, rounded) in [
        ("2.5", 0, "3"),
        ("-2.5", 0, "-3"),
        ("1.005", 2, "1.01"),
        ("1.004999", 2, "1.00"),
        ("-0.4", 0, "0"),
        ("9.99", 1, "10.0"),
        ("1", 3, "1.000"),
    ] {
        assert_eq!(decimal(text).with_scale(scale).to_string(), rounded);
    }
    assert_eq!(decimal("1234.5").rounded_left(2, false).to_string(), "1200");
    assert_eq!(decimal("1250").rounded_left(2, false).to_string(), "1300");
    assert_eq!(decimal("-1.5").floor().to_string(), "-2");
    assert_eq!(decimal("-1.5").ceiling().to_string(), "-1");
}

#[test]
fn stored_bytes_read_back() {
    let mut random = base::Random::new(0x00e0);
    for _ in 0..20_000 {
        let text = random_text(&mut random, 60);
        let value = decimal(&text);
        let mut bytes = vec![0; storage_bytes(65)];
        value.to_le_bytes(&mut bytes);
        let back = Decimal::from_le_bytes(&bytes, value.scale());
        assert_eq!(back.to_string(), value.to_string());
    }
    for precision in 1..=65 {
        let largest = Decimal::largest(precision, 0, true);
        let mut bytes = vec![0; storage_bytes(precision)];
        largest.to_le_bytes(&mut bytes);
        assert_eq!(Decimal::from_le_bytes(&bytes, 0), largest, "{precision}");
    }
}
