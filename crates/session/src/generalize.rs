//! A statement with parameters in the place of its literals.
//!
//! 1. Only literals in simple places become parameters: operands of comparisons and arithmetic in
//!    WHERE, values of INSERT and SET, numbers of LIMIT. A literal in the select list (which names
//!    and types its column), in ORDER BY or in a function's arguments decides the plan and stays.
//! 2. Which literal of the tree is which of the text is found out by parsing the text once more
//!    with another, telling literal in every place. A place where that does not work (adjacent
//!    strings, lengths of types) makes the statement unfit.

use std::fmt::Write;
use syntax::ast::{Expression, InsertSource, Limit, Literal, QueryBody, Statement};
use syntax::{Fingerprint, LiteralKind, LiteralRange, ParseOptions};
use types::{Decimal, Value};

/// See the head of the file.
pub(crate) struct General {
    /// With parameters in the order in which their literals stand in the text.
    pub(crate) statement: Statement,
    /// For each literal of the text: it is still there.
    pub(crate) stays: Box<[bool]>,
}

/// The general form of a statement, whose text has this fingerprint; none if it has no use.
pub(crate) fn generalize(
    text: &[u8],
    fingerprint: &Fingerprint,
    options: &ParseOptions,
    statement: &Statement,
) -> Option<General> {
    let mut told = syntax::parse(&telling_text(text, fingerprint)?, options).ok()?.statement;
    let mut places = Vec::new();
    parameterize(&mut told, &mut |literal| {
        places.push(place_of(literal)?);
        Some(0)
    })?;
    let mut stays = vec![true; fingerprint.literals.len()].into_boxed_slice();
    for &place in &places {
        // Each once, and no other than there are.
        if !std::mem::replace(stays.get_mut(place)?, false) {
            return None;
        }
    }
    let number = |place: usize| stays[..place].iter().filter(|stays| !**stays).count() as u32;
    let mut numbers = places.iter().map(|&place| number(place));
    let mut general = statement.clone();
    parameterize(&mut general, &mut |_| numbers.next())?;
    let ended = numbers.next().is_none();
    ended.then_some(General { statement: general, stays })
}

/// First digits of literals that tell where they stand.
const TELLING: u64 = 7_100_000_000;

/// The text with literals that tell which they are.
fn telling_text(text: &[u8], fingerprint: &Fingerprint) -> Option<Vec<u8>> {
    let mut told = Vec::with_capacity(text.len() + 16 * fingerprint.literals.len());
    let mut at = 0;
    for (place, literal) in fingerprint.literals.iter().enumerate() {
        told.extend_from_slice(text.get(at..literal.start)?);
        let number = TELLING + place as u64;
        let mut written = String::new();
        let quote = char::from(*text.get(literal.start)?);
        let done = match literal.kind {
            LiteralKind::Integer => write!(written, "{number}"),
            LiteralKind::Decimal => write!(written, "{number}.5"),
            LiteralKind::Float => write!(written, "{number}e0"),
            LiteralKind::Text => write!(written, "{quote}{number}{quote}"),
        };
        done.ok()?;
        told.extend_from_slice(written.as_bytes());
        at = literal.end;
    }
    told.extend_from_slice(text.get(at..)?);
    Some(told)
}

/// Which literal of its text one is.
fn place_of(literal: &Literal) -> Option<usize> {
    let number = match literal {
        Literal::Integer(number) => *number,
        Literal::Decimal(text) => text.strip_suffix(".5")?.parse().ok()?,
        Literal::Float(text) => text.strip_suffix("e0")?.parse().ok()?,
        Literal::String { bytes, charset: None } => {
            std::str::from_utf8(bytes).ok()?.parse().ok()?
        }
        _ => return None,
    };
    usize::try_from(number.checked_sub(TELLING)?).ok()
}

/// Reads a fingerprint's literals into `values`. False if one is written in a way that only the
/// parser reads (escapes, adjacent quotes, numbers beyond 64 bits).
pub(crate) fn read_literals(
    text: &[u8],
    fingerprint: &Fingerprint,
    values: &mut Vec<Value>,
) -> bool {
    values.clear();
    let literals = fingerprint.literals.iter();
    literals.map_while(|literal| literal_value(text, literal)).for_each(|v| values.push(v));
    values.len() == fingerprint.literals.len()
}

fn literal_value(text: &[u8], literal: &LiteralRange) -> Option<Value> {
    let bytes = text.get(literal.start..literal.end)?;
    match literal.kind {
        LiteralKind::Integer => {
            let number: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
            Some(Value::Int(number))
        }
        LiteralKind::Decimal | LiteralKind::Float => number(bytes, literal.kind),
        LiteralKind::Text => {
            let (first, rest) = bytes.split_first()?;
            let (last, inner) = rest.split_last()?;
            let plain = first == last
                && matches!(first, b'\'' | b'"')
                && !inner.iter().any(|byte| *byte == b'\\' || byte == first);
            plain.then(|| Value::Bytes(inner.to_vec()))
        }
    }
}

fn number(bytes: &[u8], kind: LiteralKind) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    if kind == LiteralKind::Float {
        return text.parse().ok().map(Value::Double);
    }
    let parsed = Decimal::parse(bytes);
    let exact = parsed.length == bytes.len() && !parsed.overflow && !parsed.truncated;
    exact.then_some(Value::Decimal(parsed.value))
}

/// Puts parameters in the place of literals where that changes nothing; `number` gives each its
/// number. None if the statement has a shape that is not looked into.
fn parameterize(
    statement: &mut Statement,
    number: &mut dyn FnMut(&Literal) -> Option<u32>,
) -> Option<()> {
    let mut walk = Walk { number };
    match statement {
        Statement::Query(query) => {
            let QueryBody::Select(select) = &mut query.body else {
                return None;
            };
            if query.with.is_some() || query.into.is_some() {
                return None;
            }
            if let Some(filter) = &mut select.filter {
                walk.expression(filter)?;
            }
            walk.limit(&mut query.limit)?;
        }
        Statement::Insert(insert) => {
            let InsertSource::Values(rows) = &mut insert.source else {
                return None;
            };
            for value in rows.iter_mut().flatten() {
                walk.expression(value)?;
            }
            for assignment in &mut insert.on_duplicate {
                walk.expression(&mut assignment.value)?;
            }
        }
        Statement::Update(update) => {
            for assignment in &mut update.assignments {
                walk.expression(&mut assignment.value)?;
            }
            if let Some(filter) = &mut update.filter {
                walk.expression(filter)?;
            }
        }
        Statement::Delete(delete) => {
            if let Some(filter) = &mut delete.filter {
                walk.expression(filter)?;
            }
        }
        _ => return None,
    }
    Some(())
}

struct Walk<'n> {
    number: &'n mut dyn FnMut(&Literal) -> Option<u32>,
}

impl Walk<'_> {
    fn limit(&mut self, limit: &mut Option<Limit>) -> Option<()> {
        let Some(limit) = limit else { return Some(()) };
        let numbers = limit.count.iter_mut().chain(&mut limit.offset);
        numbers.into_iter().try_for_each(|number| self.expression(number))
    }

    /// Replaces the literals of an expression. Expressions of other kinds are left as they are.
    fn expression(&mut self, expression: &mut Expression) -> Option<()> {
        match expression {
            Expression::Literal(
                literal @ (Literal::Integer(_)
                | Literal::Decimal(_)
                | Literal::Float(_)
                | Literal::String { charset: None, .. }),
            ) => *expression = Expression::Parameter((self.number)(literal)?),
            Expression::Unary(_, operand) => self.expression(operand)?,
            // What rows are compared with is named in errors with the type of the literal.
            Expression::Binary(_, left, right) if is_row(left) || is_row(right) => {}
            Expression::In { operand, .. } if is_row(operand) => {}
            Expression::Binary(_, left, right) => {
                self.expression(left)?;
                self.expression(right)?;
            }
            Expression::Logical(_, operands) => {
                operands.iter_mut().try_for_each(|operand| self.expression(operand))?;
            }
            Expression::In { operand, list, .. } => {
                self.expression(operand)?;
                list.iter_mut().try_for_each(|item| self.expression(item))?;
            }
            Expression::Between { operand, low, high, .. } => {
                self.expression(operand)?;
                self.expression(low)?;
                self.expression(high)?;
            }
            Expression::Like { operand, pattern, escape: None, .. } => {
                self.expression(operand)?;
                self.expression(pattern)?;
            }
            Expression::Is { operand, .. } => self.expression(operand)?,
            Expression::Parameter(_) => return None,
            _ => {}
        }
        Some(())
    }
}

fn is_row(expression: &Expression) -> bool {
    matches!(expression, Expression::Row(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The literals that became parameters, and those that stay; none if the text is unfit.
    fn fit(text: &str) -> Option<(String, String)> {
        let options = ParseOptions::default();
        let mut fingerprint = Fingerprint::default();
        assert!(fingerprint.read(text.as_bytes(), &options));
        let statement = syntax::parse(text.as_bytes(), &options).unwrap().statement;
        let general = generalize(text.as_bytes(), &fingerprint, &options, &statement)?;
        let of = |stay: bool| {
            let literals = fingerprint.literals.iter().zip(&general.stays);
            let chosen = literals.filter(|(_, stays)| **stays == stay);
            chosen.map(|(l, _)| &text[l.start..l.end]).collect::<Vec<_>>().join(" ")
        };
        Some((of(false), of(true)))
    }

    #[test]
    fn literals_in_simple_places_become_parameters() {
        for (text, parameters, stay) in [
            ("SELECT c FROM t WHERE id = 5", "5", ""),
            ("SELECT c FROM t WHERE id BETWEEN 1 AND 9 ORDER BY c", "1 9", ""),
            ("SELECT SUM(k) FROM t WHERE a IN (1, 'x') AND b > -2.5", "1 'x' 2.5", ""),
            ("INSERT INTO t (a, b) VALUES (1, 'x'), (2.5, 1e3)", "1 'x' 2.5 1e3", ""),
            ("UPDATE t SET k = k + 1 WHERE id = 7", "1 7", ""),
            ("DELETE FROM t WHERE id = 7", "7", ""),
            ("SELECT c FROM t", "", ""),
            ("SELECT c FROM t WHERE k = 7 ORDER BY c LIMIT 10", "7 10", ""),
            ("SELECT c FROM t WHERE id = 5 LIMIT 1, 2", "5 1 2", ""),
            ("SELECT c FROM t WHERE id = 5 LIMIT 1 OFFSET 2", "5 1 2", ""),
            ("SELECT c, 5 FROM t WHERE id = 5", "5", "5"),
            ("SELECT 'a', c x FROM t WHERE 5 = id ORDER BY 1 LIMIT 3", "5 3", "'a' 1"),
            ("SELECT c FROM t WHERE ROUND(a, 2) = 1", "1", "2"),
            ("SELECT c FROM t WHERE id = (SELECT MAX(id) FROM u WHERE a = 1)", "", "1"),
            ("SELECT c FROM t JOIN u ON t.id = 5 WHERE u.id = 6", "6", "5"),
            ("UPDATE t SET a = 1 ORDER BY id LIMIT 2", "1", "2"),
            ("SELECT c FROM t WHERE d = DATE '2020-01-01' AND a = 3", "3", "'2020-01-01'"),
            ("SELECT c FROM t WHERE (a, b) = (1) AND a = 2", "2", "1"),
            ("SELECT 1", "", "1"),
        ] {
            let expected = (parameters.to_owned(), stay.to_owned());
            assert_eq!(fit(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn parameters_stand_in_the_order_of_the_text() {
        let options = ParseOptions { parameters: true, ..ParseOptions::default() };
        for (text, expected) in [
            ("SELECT c FROM t WHERE a = 9 LIMIT 1, 2", "SELECT c FROM t WHERE a = ? LIMIT ?, ?"),
            ("SELECT c FROM t LIMIT 1 OFFSET 2", "SELECT c FROM t LIMIT ? OFFSET ?"),
            ("SELECT 5 FROM t WHERE a = 5 + b", "SELECT 5 FROM t WHERE a = ? + b"),
        ] {
            let mut fingerprint = Fingerprint::default();
            assert!(fingerprint.read(text.as_bytes(), &options));
            let statement = syntax::parse(text.as_bytes(), &options).unwrap().statement;
            let found = generalize(text.as_bytes(), &fingerprint, &options, &statement).unwrap();
            let expected = syntax::parse(expected.as_bytes(), &options).unwrap().statement;
            assert_eq!(found.statement, expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_unfit() {
        for text in [
            "SELECT a FROM t UNION SELECT b FROM u",
            "INSERT INTO t SELECT * FROM u WHERE a = 1",
            "SELECT c FROM t WHERE a = 'x' 'y'",
            "BEGIN",
        ] {
            assert_eq!(fit(text), None, "{text}");
        }
    }
}
