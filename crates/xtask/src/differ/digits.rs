//! Whether Gannet's own answer is right where the two servers make other digits or bytes of a value
//! on purpose. A form of the statement in which both agree does not say so: its values are others.
//!
//! 1. A product of more digits than DECIMAL has is near to that of the same numbers as DOUBLE, and
//!    what else the statement answers is the same.
//! 2. The bytes of a BIT are those of the number that both answer for it. Where it is read as text
//!    that is its text for both, where as a number its number.
//! 3. A sum or an average of what has few digits after the point is rounded once, from that of
//!    summands with 20 of them.

use super::compare::{self, Reply, Row, Told};
use super::executed;
use super::proofs::{Judge, Servers};
use super::replaced;
use super::statements::Statement;
use super::tree::Node;
use sqltest::client::{Answer, Field};

/// Code of the type DECIMAL.
const DECIMAL: u8 = 246;

/// Code of the type BIT.
const BIT: u8 = 16;

/// The statement with products and remainders of DOUBLE in place of those of what it multiplies;
/// none where it multiplies nothing.
pub fn as_double(statement: &Statement) -> Option<Statement> {
    replaced::replaced(statement, &with_doubles)
}

fn with_doubles(node: &Node) -> Option<Node> {
    let is_product = matches!(node.texts.get(1)?.as_str(), " * " | " % " | " MOD ");
    let of = |child: &Node| {
        let inner = replaced::with(child, &with_doubles).unwrap_or_else(|| child.clone());
        Node::new(child.role, &["CAST(", " AS DOUBLE)"], vec![inner])
    };
    is_product.then(|| Node { children: node.children.iter().map(of).collect(), ..node.clone() })
}

/// Rows whose BIT cells are the numbers that their bytes are.
fn with_numbers(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for one in &mut told {
        let Answer::Rows { rows, columns, .. } = &mut one.answer else { continue };
        for row in rows {
            for (cell, column) in row.iter_mut().zip(columns.iter()) {
                let is_short = cell.as_ref().is_some_and(|bytes| bytes.len() <= 8);
                if column.type_code == BIT && is_short {
                    *cell = cell.take().map(number_of_bytes);
                }
            }
        }
    }
    told
}

fn number_of_bytes(bytes: Vec<u8>) -> Vec<u8> {
    let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    number.to_string().into_bytes()
}

/// A number with so many digits after the point, rounded half up as DECIMAL is.
fn rounded(text: &str, digits: usize) -> Option<String> {
    let (sign, number) = text.strip_prefix('-').map_or(("", text), |number| ("-", number));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if whole.is_empty() || !all.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let kept = whole.len() + digits;
    let mut rounded: Vec<u8> =
        all.iter().copied().chain(std::iter::repeat(b'0')).take(kept).collect();
    let mut carries = all.get(kept).is_some_and(|digit| *digit >= b'5');
    for digit in rounded.iter_mut().rev() {
        if !carries {
            break;
        }
        carries = *digit == b'9';
        *digit = if carries { b'0' } else { *digit + 1 };
    }
    let head = if carries { "1" } else { "" };
    let (whole, fraction) = rounded.split_at(whole.len());
    let [whole, fraction] = [whole, fraction].map(|digits| String::from_utf8_lossy(digits));
    let point = if digits == 0 { "" } else { "." };
    Some(format!("{sign}{head}{whole}{point}{fraction}"))
}

/// Rows whose DECIMAL cells have no more digits after the point than the columns of others have.
fn with_digits_of(told: &[Told], others: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for (one, other) in told.iter_mut().zip(others) {
        let (Answer::Rows { rows, .. }, Answer::Rows { columns, .. }) =
            (&mut one.answer, &other.answer)
        else {
            continue;
        };
        for row in rows {
            for (cell, column) in row.iter_mut().zip(columns) {
                let text = cell.as_ref().and_then(|cell| std::str::from_utf8(cell).ok());
                let digits = usize::from(column.decimals);
                let text = text.filter(|_| column.type_code == DECIMAL);
                if let Some(text) = text.and_then(|text| rounded(text, digits)) {
                    *cell = Some(text.into_bytes());
                }
            }
        }
    }
    told
}

/// Whether a cell is another one, or a number with something behind it that is the other one with
/// fewer digits after the point.
fn is_cut_of(own: &Field, long: &Field) -> bool {
    let cut = |own: &Field, long: &Field| {
        let (number, rest) = executed::numeral(own.as_deref()?)?;
        let (other, behind) = executed::numeral(long.as_deref()?)?;
        let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len());
        (!rest.is_empty() && rest == behind && rounded(other, digits)? == number).then_some(())
    };
    own == long || cut(own, long).is_some()
}

impl<S: Servers> Judge<'_, S> {
    /// Whether both answer the same with summands of 20 digits after the point, and Gannet answered
    /// that with the digits that it shows.
    pub(super) fn is_rounded(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(summed) = replaced::summed(small) else { return Ok(false) };
        let (found, ours, _) = self.ask(&summed, mode)?;
        let (Ok(answered), Ok(here)) = (answered, &ours) else { return Ok(false) };
        let is_error = |told: &Told| matches!(told.answer, Answer::Error(_));
        let shown = compare::sorted_rows(&with_digits_of(here, answered));
        let is_answered = !answered.iter().chain(here).any(is_error);
        let rows = compare::sorted_rows(answered);
        let is_shown = |(own, long): (&Row, &Row)| {
            own.len() == long.len() && own.iter().zip(long).all(|(own, long)| is_cut_of(own, long))
        };
        let is_same = rows.len() == shown.len() && rows.iter().zip(&shown).all(is_shown);
        Ok(found.is_none() && is_answered && is_same)
    }

    /// Whether products are exact (see `products.rs`); or both answer the same with fewer digits,
    /// and Gannet's rows are near to those that both answer where DOUBLEs are multiplied.
    pub(super) fn is_multiplied(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(doubled) = as_double(small) else { return Ok(false) };
        if self.is_exactly_multiplied(small, mode, answered)? {
            return Ok(true);
        }
        if !self.agree_on(replaced::narrow(small), mode)? {
            return Ok(false);
        }
        let (ours, theirs) = self.servers.ask(&doubled, mode)?;
        let is_same = compare::has_same_values(&doubled, &ours, &theirs);
        Ok(is_same && executed::are_near(answered, &ours))
    }

    /// Whether both answer the same numbers in place of BIT columns, and these are the numbers that
    /// Gannet's bytes are.
    pub(super) fn is_of_bytes(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        let Some(numbered) = replaced::numbered(small) else { return Ok(false) };
        let (ours, theirs) = self.servers.ask(&numbered, mode)?;
        let (Ok(answered), Ok(here)) = (answered, &ours) else { return Ok(false) };
        let rows = |told: &[Told]| compare::sorted_rows(&with_numbers(told));
        let is_same = compare::has_same_values(&numbered, &ours, &theirs);
        Ok(is_same && rows(answered) == rows(here))
    }

    /// Whether a query computes a BIT, and Gannet answers its bytes or its number.
    pub(super) fn is_bit_computed(
        &mut self,
        query: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        Ok(self.is_of_bits(query, mode, answered)? || self.is_of_bytes(query, mode, answered)?)
    }

    /// Whether both answer the same with the number or the text of each BIT column in its place,
    /// and Gannet the same values as before.
    pub(super) fn is_of_bits(
        &mut self,
        small: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        for form in replaced::bits_chosen(small) {
            if self.is_in_order(&form, mode, answered)?
                && self.is_answered(Some(form), mode, answered)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether Gannet answers an ordered query with the rows of an answer in their order.
    fn is_in_order(
        &mut self,
        query: &Statement,
        mode: &'static str,
        answered: &Reply,
    ) -> Result<bool, String> {
        if !query.is_ordered() {
            return Ok(true);
        }
        let (ours, _) = self.servers.ask(query, mode)?;
        Ok(compare::rows_of(&ours) == compare::rows_of(answered))
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted_tests::{INT, leaf, number, row, rule_of, warned_of};
    use super::super::statements::Kind;
    use super::super::tree::Role;
    use super::*;

    fn pair(operator: &str, left: Node, right: Node) -> Node {
        Node::new(Role::Expression, &["(", operator, ")"], vec![left, right])
    }

    #[test]
    fn products_within_products_are_of_doubles() {
        let of = |root| as_double(&Statement { kind: Kind::Query, root, prepared: false });
        let inner = pair(" * ", leaf("a1.wide"), leaf("2"));
        let sum = pair(" + ", pair(" % ", inner, leaf("3")), leaf("1"));
        let wanted = "((CAST((CAST(a1.wide AS DOUBLE) * CAST(2 AS DOUBLE)) AS DOUBLE) % \
                      CAST(3 AS DOUBLE)) + 1)";
        assert_eq!(of(sum).map(|it| it.root.sql()).as_deref(), Some(wanted));
        assert!(of(pair(" + ", leaf("a1.wide"), leaf("2"))).is_none());
    }

    #[test]
    fn numbers_are_rounded_half_up() {
        let cases = [
            ("1.25", 1, "1.3"),
            ("-1.25", 1, "-1.3"),
            ("1.2499", 1, "1.2"),
            ("9.96", 1, "10.0"),
            ("99.5", 0, "100"),
            ("7", 2, "7.00"),
            ("306.298074862253966730", 5, "306.29807"),
        ];
        for (text, digits, wanted) in cases {
            assert_eq!(rounded(text, digits).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(rounded("a1.5", 1), None);
    }

    #[test]
    fn sums_of_quotients_hide_no_other_sum() {
        let quotient = pair(" / ", leaf("1.5"), leaf("a1.dec2n"));
        let children = vec![
            Node::list(vec![Node::new(Role::Aggregate, &["SUM(", ")"], vec![quotient])]),
            Node::leaf(Role::Source, "(t1 AS a1 JOIN t3 AS a2 ON TRUE)"),
            Node::clause(" GROUP BY ", Some(leaf("F(a2.js)")), ""),
        ];
        let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
        let sums = |cells: [&'static str; 2], decimals: u8| {
            cells.map(|cell| {
                let mut told = row(DECIMAL, 0, &[cell]);
                if let Answer::Rows { columns, .. } = &mut told.answer {
                    columns[0].decimals = decimals;
                }
                told
            })
        };
        let with = |own: &'static str, long: [&'static str; 2]| {
            rule_of(&query, &move |text: &str| match text {
                _ if text.contains("ROUND((1.5 / a1.dec2n), 20)") => sums(long, 20),
                _ if text.contains("kept") || text.contains("BIG_RESULT") => sums(["8", "9"], 5),
                _ if text.contains("CONCAT") => sums(["8", "9"], 5),
                _ => sums([own, "306.29808"], 5),
            })
        };
        let long = "306.29807486225396673000";
        let name = "sums of quotients in groups of a join";
        assert_eq!(with("306.29807", [long, long]), Some(name));
        assert_eq!(with("306.29806", [long, long]), None);
        assert_eq!(with("306.29807", [long, "306.29807486225396673001"]), None);
    }

    #[test]
    fn numbers_within_texts_are_cut_where_they_are_shown_so() {
        let is_cut = |own: &str, long: &str| {
            let cell = |text: &str| Some(text.as_bytes().to_vec());
            is_cut_of(&cell(own), &cell(long))
        };
        assert!(is_cut("306.29807x", "306.29807486x"));
        assert!(!is_cut("306.29806x", "306.29807486x"));
        assert!(!is_cut("306.29807x", "306.29807486y"));
        assert!(!is_cut("306.29807", "306.29807486"));
        assert!(!is_cut("x", "306.2x"));
    }

    #[test]
    fn each_bit_is_a_number_or_a_text() {
        let root = pair(" = ", leaf("a1.bits"), pair(" + ", leaf("a1.bit1"), leaf("a1.id")));
        let statement = Statement { kind: Kind::Query, root, prepared: false };
        let forms = replaced::bits_chosen(&statement);
        let texts: Vec<String> = forms.iter().map(|form| form.root.sql()).collect();
        assert_eq!(texts.len(), 9);
        let wanted = [
            "((a1.bits + 0) = ((a1.bit1 + 0) + a1.id))",
            "(CONCAT(a1.bits) = ((a1.bit1 + 0) + a1.id))",
            "((a1.bits + 0) = (CONCAT(a1.bit1) + a1.id))",
            "(CONCAT(a1.bits) = (UNHEX(LPAD(HEX(a1.bit1 + 0), 4, '0')) + a1.id))",
        ];
        for text in wanted {
            assert!(texts.iter().any(|it| it == text), "{text} of {texts:?}");
        }
        let without = Statement { root: leaf("a1.id"), ..statement };
        assert!(replaced::bits_chosen(&without).is_empty());
    }

    #[test]
    fn bytes_of_bits_hide_no_other_number() {
        let item = Node::new(Role::Expression, &["COALESCE(", ")"], vec![leaf("a1.bits")]);
        let source = Node::leaf(Role::Source, "t3 AS a1");
        let items = Node::list(vec![item]);
        let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", ""], vec![items, source]);
        let with = |own: &'static str, numbered: [&'static str; 2]| {
            rule_of(&query, &move |text: &str| match text {
                _ if text.contains("(a1.bits + 0)") => numbered.map(|it| row(INT, 0, &[it])),
                _ if text.contains("kept") => ["8", "9"].map(|it| row(INT, 0, &[it])),
                _ => [row(BIT, 0, &[own]), row(BIT, 0, &["321"])],
            })
        };
        assert_eq!(with("\u{1}A", ["321", "321"]), Some("BIT that is computed"));
        assert_eq!(with("\u{1}B", ["321", "321"]), None);
        assert_eq!(with("\u{1}A", ["321", "322"]), None);
        assert_eq!(with("\u{1}A", ["322", "322"]), None);
    }

    #[test]
    fn bits_among_the_parts_hide_no_other_value() {
        let children = vec![leaf("F('')"), leaf("a1.bits"), leaf("a1.bit1")];
        let choice = Node::new(Role::Expression, &["IF(", ", ", ", ", ")"], children);
        let order = Node::clause(" ORDER BY ", Some(choice), "");
        let children =
            vec![Node::list(vec![leaf("1")]), Node::leaf(Role::Source, "t3 AS a1"), order];
        let query = Node::new(Role::Fixed, &["SELECT ", " FROM ", "", ""], children);
        let with = |as_text: [&'static str; 2]| {
            rule_of(&query, &move |text: &str| {
                let part = text.starts_with("SELECT IF(F(''), ");
                match text {
                    _ if text.contains("ORDER BY") => {
                        [number(&["1"]), warned_of(number(&["1"]), "9")]
                    }
                    _ if text.starts_with("SELECT (F('') IS TRUE)") => {
                        [warned_of(number(&["1"]), "9"), warned_of(number(&["1"]), "9")]
                    }
                    _ if part && text.contains("CONCAT(a1.bits), CONCAT(a1.bit1)") => {
                        as_text.map(|cell| row(INT, 0, &[cell]))
                    }
                    _ if part && !text.contains("+ 0") && !text.contains("CONCAT") => {
                        ["\u{1}", "1"].map(|cell| row(INT, 0, &[cell]))
                    }
                    _ => [number(&["1"]), number(&["1"])],
                }
            })
        };
        let name = "parts that one of the servers does not look at, warnings there";
        assert_eq!(with(["\u{1}", "\u{1}"]), Some(name));
        assert_eq!(with(["\u{1}", "1"]), None);
        assert_eq!(with(["\u{2}", "\u{2}"]), None);
    }
}
