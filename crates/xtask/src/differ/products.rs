//! Whether products and remainders of DECIMAL are exact here, where MariaDB cuts digits off before
//! it multiplies.
//!
//! 1. Each product of a statement is asked for alone, with its factors, row by row; Gannet's is
//!    computed again, digit by digit.
//! 2. With Gannet's products in their place, chosen by the ids of the rows, both servers must
//!    answer the same, and Gannet the same values as before.

use super::compare::{self, Reply};
use super::parts;
use super::proofs::{Judge, Servers};
use super::statements::{Kind, Statement};
use super::tree::{Node, Role};
use std::cmp::Ordering;

/// Digits of a DECIMAL: nine words of nine.
const WORDS: usize = 9;

/// Digits that a DECIMAL literal has at most.
const LITERAL_DIGITS: usize = 65;

/// More rows than can be told apart by a CASE of reasonable length.
const ROWS_MAX: usize = 729;

/// A number as its digits, the last one first.
#[derive(Clone, Debug)]
struct Digits {
    is_negative: bool,
    digits: Vec<u8>,
    scale: usize,
}

impl Digits {
    /// The number of a text without an exponent.
    fn parse(text: &str) -> Option<Self> {
        let number = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let all = fraction.bytes().rev().chain(whole.bytes().rev());
        let digit = |byte: u8| byte.is_ascii_digit().then(|| byte - b'0');
        let digits: Vec<u8> = all.map(digit).collect::<Option<_>>()?;
        let is_negative = number.len() < text.len();
        (!digits.is_empty()).then_some(Self { is_negative, digits, scale: fraction.len() })
    }

    /// Without zeros in front.
    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        self
    }

    /// With more zeros at the end.
    fn with_scale(mut self, scale: usize) -> Self {
        let zeros = scale.saturating_sub(self.scale);
        self.digits.splice(..0, vec![0; zeros]);
        self.scale += zeros;
        self
    }

    /// Digits before the point.
    fn whole(&self) -> usize {
        self.clone().trimmed().digits.len().saturating_sub(self.scale)
    }

    fn product(&self, other: &Self) -> Self {
        let mut digits = vec![0u8; self.digits.len() + other.digits.len()];
        for (place, a) in self.digits.iter().enumerate() {
            let mut carry = 0;
            for (b, sum) in other.digits.iter().chain(&[0]).zip(&mut digits[place..]) {
                let all = a * b + *sum + carry;
                (*sum, carry) = (all % 10, all / 10);
            }
        }
        let is_negative = self.is_negative != other.is_negative;
        Self { is_negative, digits, scale: self.scale + other.scale }
    }

    /// The remainder, with the sign of the dividend; none by zero.
    fn remainder(&self, other: &Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let dividend = self.clone().with_scale(scale);
        let divisor = other.clone().with_scale(scale).trimmed().digits;
        if divisor.is_empty() {
            return None;
        }
        let mut rest: Vec<u8> = Vec::new();
        for digit in dividend.digits.iter().rev() {
            rest.insert(0, *digit);
            while compared(&rest, &divisor) != Ordering::Less {
                rest = difference(&rest, &divisor);
            }
        }
        Some(Self { is_negative: self.is_negative, digits: rest, scale })
    }

    /// Whether another number is this one, rounded or cut to the digits that it has, or that nine
    /// words have.
    fn is_shown_as(&self, shown: &Self) -> bool {
        let room = WORDS.saturating_sub(self.whole().div_ceil(9)) * 9;
        let kept = shown.scale.min(room);
        let scale = self.scale.max(shown.scale);
        let [exact, near] = [self, shown].map(|it| it.clone().with_scale(scale).trimmed());
        let is_zero = exact.digits.is_empty() || near.digits.is_empty();
        if exact.is_negative != near.is_negative && !is_zero {
            return false;
        }
        let off = match compared(&exact.digits, &near.digits) {
            Ordering::Less => difference(&near.digits, &exact.digits),
            _ => difference(&exact.digits, &near.digits),
        };
        // Less than one of the last digit.
        off.iter().rposition(|digit| *digit > 0).is_none_or(|place| place < scale - kept)
    }
}

fn compared(a: &[u8], b: &[u8]) -> Ordering {
    let length = a.len().max(b.len());
    let digit = |digits: &[u8], place: usize| digits.get(place).copied().unwrap_or(0);
    let mut places = (0..length).rev();
    let differing = places.find(|place| digit(a, *place) != digit(b, *place));
    differing.map_or(Ordering::Equal, |place| digit(a, place).cmp(&digit(b, place)))
}

/// The digits of the difference of a number and a smaller one.
fn difference(more: &[u8], less: &[u8]) -> Vec<u8> {
    let mut borrowed = 0;
    let of = |(place, digit): (usize, &u8)| {
        let taken = less.get(place).copied().unwrap_or(0) + borrowed;
        borrowed = u8::from(*digit < taken);
        digit + 10 * borrowed - taken
    };
    more.iter().enumerate().map(of).collect()
}

/// Whether a product of two numbers is shown as a third one; of a remainder the remainder.
fn is_exact(operator: &str, [left, right, shown]: &[Digits; 3]) -> bool {
    match operator {
        " * " => left.product(right).is_shown_as(shown),
        _ => left.remainder(right).is_some_and(|rest| rest.is_shown_as(shown)),
    }
}

/// Whether MariaDB has no room for all digits of a product of two numbers.
fn exceeds([left, right, _]: &[Digits; 3]) -> bool {
    let words = |it: &Digits| it.whole().div_ceil(9) + it.scale.div_ceil(9);
    words(left) + words(right) > WORDS
}

/// The products of a statement, each with its place.
fn products(root: &Node) -> Vec<(Vec<usize>, &Node)> {
    let nodes = root.paths().into_iter().filter_map(|path| Some((path.clone(), root.at(&path)?)));
    let operator = |node: &Node| node.texts.get(1).cloned().unwrap_or_default();
    let is_product = |node: &Node| matches!(operator(node).as_str(), " * " | " % " | " MOD ");
    nodes.filter(|(_, node)| is_product(node) && node.children.len() == 2).collect()
}

/// The query of a product and its factors, behind the ids of the rows that they are of.
fn asked_alone(statement: &Statement, product: &Node, aliases: &[String]) -> Statement {
    let ids = aliases.iter().map(|alias| Node::leaf(Role::Expression, format!("{alias}.id")));
    let factors = product.children.iter().cloned().chain([product.clone()]);
    let items: Vec<Node> = ids.chain(factors).collect();
    let mut texts = vec![", ".to_string(); items.len() + 1];
    (texts[0], texts[items.len()]) = ("CONCAT_WS('|', ".into(), ")".into());
    let value = parts::flattened(&Node::new(Role::Expression, &texts, items));
    let root = parts::selected(&statement.root, &["SELECT ", ""], "", value);
    Statement { kind: Kind::Query, root, prepared: false }
}

/// What a product is in rows, by the ids of these.
struct Known {
    ids: Vec<String>,
    value: String,
}

/// A choice of values by the ids of rows; of texts where one has more digits than a literal can
/// have.
fn tabulated(aliases: &[String], known: &[Known]) -> Node {
    let digits = |row: &Known| row.value.bytes().filter(u8::is_ascii_digit).count();
    let quote = if known.iter().any(|row| digits(row) > LITERAL_DIGITS) { "'" } else { "" };
    let text = match (aliases, known) {
        ([], [only, ..]) => format!("({quote}{}{quote})", only.value),
        _ => {
            let case = |row: &Known| {
                let ids = aliases.iter().zip(&row.ids);
                let tests: Vec<_> = ids.map(|(alias, id)| format!("{alias}.id = {id}")).collect();
                format!("WHEN {} THEN {quote}{}{quote}", tests.join(" AND "), row.value)
            };
            let cases: Vec<String> = known.iter().map(case).collect();
            format!("CASE {} END", cases.join(" "))
        }
    };
    Node::leaf(Role::Expression, text)
}

/// What a function gets in place of a product: one that makes documents has texts in quotes, so
/// that it gets the number as a part of a document.
fn beside(function: Option<&Node>, value: Node) -> Node {
    let name = function.map_or("", |function| function.texts[0].as_str());
    let is_document = name.starts_with("JSON_ARRAY(") || name.starts_with("JSON_OBJECT(");
    match is_document && value.texts[0].contains('\'') {
        true => Node::new(Role::Expression, &["JSON_EXTRACT(", ", '$')"], vec![value]),
        false => value,
    }
}

impl<S: Servers> Judge<'_, S> {
    /// Whether all products are exact here, one of them has too many digits for MariaDB, and with
    /// these products in their place both answer the same, and Gannet the same values as before.
    pub(super) fn is_exactly_multiplied(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let (mut form, mut is_cut) = (small.root.clone(), false);
        let mut replaced: Vec<Vec<usize>> = Vec::new();
        for (path, product) in products(&small.root) {
            let aliases = parts::aliases(&product.sql());
            let Some((known, exceeds)) = self.exact_rows(small, product, &aliases, mode)? else {
                return Ok(false);
            };
            is_cut |= exceeds;
            // Those within others are replaced with these.
            if !known.is_empty() && !replaced.iter().any(|outer| path.starts_with(outer)) {
                let above = path.split_last().and_then(|(_, above)| small.root.at(above));
                form = form.with(&path, beside(above, tabulated(&aliases, &known)));
                replaced.push(path);
            }
        }
        let form = Statement { kind: small.kind, root: form, prepared: false };
        Ok(is_cut && self.is_answered(Some(form), mode, answered)?)
    }

    /// A product in all rows that it may be of, if Gannet's are exact, and whether one has too many
    /// digits for MariaDB.
    fn exact_rows(
        &mut self,
        small: &Statement,
        product: &Node,
        aliases: &[String],
        mode: &'static str,
    ) -> Result<Option<(Vec<Known>, bool)>, String> {
        let (ours, _) = self.servers.ask(&asked_alone(small, product, aliases), mode)?;
        let Some(rows) = compare::rows_of(&ours).filter(|rows| rows.len() <= ROWS_MAX) else {
            return Ok(None);
        };
        let (mut known, mut is_cut) = (Vec::new(), false);
        for cell in rows.iter().filter_map(|row| row.first()?.as_ref()) {
            let text = String::from_utf8_lossy(cell);
            let items: Vec<&str> = text.split('|').collect();
            // Where one is NULL there is nothing to be shown.
            let Some((ids, [left, right, shown])) = items.split_last_chunk::<3>() else { continue };
            if ids.len() != aliases.len() {
                continue;
            }
            let numbers = [left, right, shown].map(|text| Digits::parse(text));
            let [Some(left), Some(right), Some(number)] = numbers else { return Ok(None) };
            let numbers = [left, right, number];
            if !is_exact(&product.texts[1], &numbers) {
                return Ok(None);
            }
            is_cut |= exceeds(&numbers);
            let ids = ids.iter().map(ToString::to_string).collect();
            known.push(Known { ids, value: shown.to_string() });
        }
        Ok(Some((known, is_cut)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted_tests::{leaf, number, row, rule_of};
    use super::*;

    fn numbers(texts: [&str; 3]) -> [Digits; 3] {
        texts.map(|text| Digits::parse(text).unwrap())
    }

    #[test]
    fn products_are_computed_digit_by_digit() {
        for exact in [
            ["1.5", "-1.5", "-2.25"],
            ["99", "0.005", "0.495"],
            ["99", "0.005", "0.50"],
            ["0.001", "0.001", "0.00"],
            ["0", "-7", "0"],
            ["12345678901234567890.123456789", "1.1", "13580246791358024679.1358024679"],
        ] {
            assert!(is_exact(" * ", &numbers(exact)), "{exact:?}");
        }
        for wrong in [["1.5", "1.5", "-2.25"], ["1.5", "1.5", "2.26"], ["99", "0.005", "0.48"]] {
            assert!(!is_exact(" * ", &numbers(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn remainders_are_computed_digit_by_digit() {
        for exact in [["7", "3", "1"], ["-7.5", "2", "-1.5"], ["0.5", "0.15", "0.05"]] {
            assert!(is_exact(" % ", &numbers(exact)), "{exact:?}");
        }
        for wrong in [["7", "3", "2"], ["-7.5", "2", "1.5"], ["7", "0", "0"]] {
            assert!(!is_exact(" % ", &numbers(wrong)), "{wrong:?}");
        }
    }

    #[test]
    fn numbers_beyond_literals_are_parts_of_documents() {
        let within = |name: &str, value: &str| {
            let function = Node::new(Role::Expression, &[name, ")"], vec![leaf("(a1.x * 2)")]);
            beside(Some(&function), leaf(value)).sql()
        };
        assert_eq!(within("JSON_ARRAY(", "('1.50')"), "JSON_EXTRACT(('1.50'), '$')");
        assert_eq!(within("JSON_ARRAY(", "(1.50)"), "(1.50)");
        assert_eq!(within("CONCAT(", "('1.50')"), "('1.50')");
    }

    #[test]
    fn numbers_beyond_literals_are_chosen_as_texts() {
        let known = |values: [&str; 2]| {
            let known = ["1", "2"].into_iter().zip(values);
            let known: Vec<Known> = known
                .map(|(id, value)| Known { ids: vec![id.into()], value: value.into() })
                .collect();
            tabulated(&["a1".into()], &known).sql()
        };
        let short = "CASE WHEN a1.id = 1 THEN 1.5 WHEN a1.id = 2 THEN 0 END";
        assert_eq!(known(["1.5", "0"]), short);
        let long = format!("{}.5", "9".repeat(65));
        let texts = format!("CASE WHEN a1.id = 1 THEN '{long}' WHEN a1.id = 2 THEN '0' END");
        assert_eq!(known([&long, "0"]), texts);
    }

    #[test]
    fn products_of_too_many_digits_hide_no_other_value() {
        let wide = "99999999999999999999999999999999999.999999999999999999999999999999";
        let product = "999999999999999999999999999999999999.9999999999999999999999999999900";
        let factors = vec![leaf("a1.wide"), leaf("10.0")];
        let value = Node::new(Role::Expression, &["(", " * ", ")"], factors);
        let call = Node::new(Role::Expression, &["F(", ")"], vec![value]);
        let from = Node::leaf(Role::Source, "t1 AS a1");
        let children = vec![Node::list(vec![call]), from];
        let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], children);
        let with = |own: &'static str, product: &'static str, both: [&'static str; 2]| {
            rule_of(&query, &move |text: &str| match text {
                _ if text.contains("CONCAT_WS") => {
                    let alone = format!("5|{wide}|10.0|{product}");
                    [row(253, 45, &[&alone]), row(253, 45, &[&alone])]
                }
                _ if text.contains("WHEN a1.id = 5 THEN") => both.map(|it| number(&[it])),
                _ if text.contains("dec10") || text.contains("AS DOUBLE") => {
                    ["8", "9"].map(|it| number(&[it]))
                }
                _ if text.contains("kept") || text.contains("USE INDEX") => {
                    ["8", "9"].map(|it| number(&[it]))
                }
                _ => [number(&[own]), number(&["6"])],
            })
        };
        let name = "products of DECIMAL with too many digits, multiplied";
        assert_eq!(with("7", product, ["7", "7"]), Some(name));
        assert_eq!(with("7", product, ["7", "6"]), None);
        assert_eq!(with("5", product, ["7", "7"]), None);
        let wrong = "999999999999999999999999999999999999.9999999999999999999999999998900";
        assert_eq!(with("7", wrong, ["7", "7"]), None);
    }
}
