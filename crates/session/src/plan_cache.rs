//! Plans of text statements, kept by fingerprint.
//!
//! The statements of an application differ by their literals only. A statement whose literals
//! all stand in simple places (operands of comparisons and arithmetic, values of INSERT and SET)
//! is planned with parameters in their stead, and the plan is kept for all statements with the
//! same tokens. A later one is lexed, its literals become the parameters' values, and parsing
//! and planning are left out.
//!
//! Invariants:
//! 1. A statement is kept only if every literal of its fingerprint became a parameter, in the
//!    order of the text; LIMIT 10, ORDER BY 1 or a literal in the select list (which names its
//!    column) keep it out.
//! 2. The key holds everything that changes what the text means: sql_mode, the client's
//!    character set and the default database. Definitions, types and settings are compared as
//!    for prepared statements.
//! 3. A user who may not read and change all rows uses only plans that were made, and so
//!    checked, for him with the privileges he has now.

use crate::Session;
use crate::answer::Outlet;
use crate::planned::SessionPlan;
use crate::statement::Run;
use runtime::sync::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use syntax::ast::{Expression, InsertSource, Literal, QueryBody, Statement};
use syntax::{Fingerprint, LiteralKind, LiteralRange};
use types::{Decimal, Value};

/// Longest text that is looked up; longer ones (bulk inserts) are not worth it.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// Entries kept; when there are more the cache starts anew.
const ENTRIES_MAX: usize = 4096;

/// What is known of a fingerprint.
#[derive(Clone)]
pub(crate) enum Entry {
    /// Its statements are planned each time.
    Unfit,
    /// The statement with parameters, and its latest plan.
    Fit(Arc<Statement>, Arc<SessionPlan>),
}

/// The server's cache.
#[derive(Default)]
pub(crate) struct PlanCache {
    entries: RwLock<HashMap<Vec<u8>, Entry>>,
}

impl PlanCache {
    pub(crate) fn find(&self, key: &[u8]) -> Option<Entry> {
        self.entries.read().get(key).cloned()
    }

    pub(crate) fn keep(&self, key: &[u8], entry: Entry) {
        let mut entries = self.entries.write();
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key.to_vec(), entry);
    }
}

/// A session's buffers for looking up; reused from statement to statement.
#[derive(Default)]
pub(crate) struct Lookup {
    fingerprint: Fingerprint,
    key: Vec<u8>,
}

/// What a look-up found.
pub(crate) enum Found {
    /// Not a text that is looked up, or one known to be unfit.
    No,
    /// Not known yet: [`Session::learn`] may keep it.
    New,
    /// A statement with its plan, the values of its parameters and where its text ends.
    Known { statement: Arc<Statement>, plan: Arc<SessionPlan>, values: Vec<Value>, end: usize },
}

impl Session {
    /// Looks for a plan of the first statement of `text`.
    pub(crate) fn look_up(&mut self, text: &[u8]) -> Found {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let likely = first.is_some_and(|byte| b"SsIiUuDdRr".contains(byte));
        if !likely || text.len() > TEXT_BYTES_MAX {
            return Found::No;
        }
        let shares = self.may_change_all_rows();
        let lookup = &mut self.lookup;
        if !lookup.fingerprint.read(text, &self.settings.parse) {
            return Found::No;
        }
        lookup.key.clear();
        lookup.key.extend_from_slice(&self.settings.sql_mode.0.to_le_bytes());
        lookup.key.push(self.settings.client as u8);
        let database = self.eval.facts.database.as_deref().unwrap_or_default();
        lookup.key.extend_from_slice(database.as_bytes());
        lookup.key.push(0);
        if !shares {
            lookup.key.extend_from_slice(self.user.account.to_string().as_bytes());
        }
        lookup.key.push(0);
        lookup.key.extend_from_slice(&lookup.fingerprint.text);
        match self.server.plan_cache.find(&lookup.key) {
            None => Found::New,
            Some(Entry::Unfit) => Found::No,
            Some(Entry::Fit(statement, plan)) => match literal_values(text, &lookup.fingerprint) {
                Some(values) => {
                    let end = lookup.fingerprint.end.min(text.len());
                    Found::Known { statement, plan, values, end }
                }
                None => Found::No,
            },
        }
    }

    /// The statement with parameters and their values, if its plan may be kept. Called after
    /// [`Found::New`] for the same text.
    pub(crate) fn learn(
        &mut self,
        text: &[u8],
        statement: &Statement,
    ) -> Option<(Arc<Statement>, Vec<Value>)> {
        let fingerprint = &self.lookup.fingerprint;
        let mut generalized = statement.clone();
        let fits = parameterize(&mut generalized) == Some(fingerprint.literals.len());
        if !fits {
            self.server.plan_cache.keep(&self.lookup.key, Entry::Unfit);
            return None;
        }
        let values = literal_values(text, fingerprint)?;
        Some((Arc::new(generalized), values))
    }

    /// Runs a statement with parameters for literals; a new plan is kept.
    pub(crate) fn run_with_values(
        &mut self,
        statement: &Arc<Statement>,
        plan: Option<Arc<SessionPlan>>,
        values: Vec<Value>,
        outlet: &mut dyn Outlet,
    ) {
        let learning = plan.is_none();
        let key = std::mem::take(&mut self.lookup.key);
        self.eval.parameters = values;
        let made =
            self.run_statement(statement, Run { plan: plan.as_ref(), ..Run::text() }, outlet);
        self.eval.parameters.clear();
        match made {
            Some(plan) => {
                self.server.plan_cache.keep(&key, Entry::Fit(statement.clone(), plan));
            }
            None if learning && self.eval.error_count() == 0 => {
                self.server.plan_cache.keep(&key, Entry::Unfit);
            }
            None => {}
        }
        self.lookup.key = key;
    }
}

/// The values of a fingerprint's literals; none if one is written in a way that only the parser
/// reads (escapes, adjacent quotes, numbers beyond 64 bits).
pub(crate) fn literal_values(text: &[u8], fingerprint: &Fingerprint) -> Option<Vec<Value>> {
    fingerprint.literals.iter().map(|literal| literal_value(text, literal)).collect()
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

/// Puts parameters in the place of literals where that changes nothing; how many there are now.
/// None if the statement has a shape that is not looked into.
pub(crate) fn parameterize(statement: &mut Statement) -> Option<usize> {
    let mut walk = Walk { count: 0 };
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
    Some(walk.count)
}

struct Walk {
    count: usize,
}

impl Walk {
    /// Replaces the literals of an expression from left to right. Expressions of other kinds are
    /// left as they are: a literal in them makes the count differ from the fingerprint's.
    fn expression(&mut self, expression: &mut Expression) -> Option<()> {
        match expression {
            Expression::Literal(
                Literal::Integer(_)
                | Literal::Decimal(_)
                | Literal::Float(_)
                | Literal::String { charset: None, .. },
            ) => {
                *expression = Expression::Parameter(u32::try_from(self.count).ok()?);
                self.count += 1;
            }
            Expression::Unary(_, operand) => self.expression(operand)?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use syntax::ParseOptions;

    /// Whether the statement may be kept, and the values of its literals.
    fn fit(text: &str) -> Option<Vec<Value>> {
        let options = ParseOptions::default();
        let mut fingerprint = Fingerprint::default();
        assert!(fingerprint.read(text.as_bytes(), &options));
        let mut statement = syntax::parse(text.as_bytes(), &options).unwrap().statement;
        let count = parameterize(&mut statement)?;
        (count == fingerprint.literals.len())
            .then(|| literal_values(text.as_bytes(), &fingerprint))
            .flatten()
    }

    #[test]
    fn literals_in_simple_places_become_parameters() {
        let int = Value::Int;
        assert_eq!(fit("SELECT c FROM t WHERE id = 5"), Some(vec![int(5)]));
        assert_eq!(
            fit("SELECT c FROM t WHERE id BETWEEN 1 AND 9 ORDER BY c"),
            Some(vec![int(1), int(9)])
        );
        assert_eq!(
            fit("SELECT SUM(k) FROM t WHERE a IN (1, 'x') AND b > -2 AND c LIKE 'y%'"),
            Some(vec![int(1), Value::text("x"), int(2), Value::text("y%")])
        );
        assert_eq!(fit("INSERT INTO t (a, b) VALUES (1, 'x'), (2.5, 1e3)").unwrap().len(), 4);
        assert_eq!(fit("UPDATE t SET k = k + 1 WHERE id = 7"), Some(vec![int(1), int(7)]));
        assert_eq!(fit("DELETE FROM t WHERE id = 7"), Some(vec![int(7)]));
        assert_eq!(fit("SELECT c FROM t"), Some(vec![]));
    }

    #[test]
    fn literals_that_decide_the_plan_keep_a_statement_out() {
        for text in [
            "SELECT 1",
            "SELECT c, 1 FROM t WHERE id = 5",
            "SELECT c FROM t WHERE id = 5 LIMIT 1",
            "SELECT c FROM t WHERE id = 5 ORDER BY 1",
            "SELECT c FROM t WHERE ROUND(a, 2) = 1",
            "SELECT c FROM t WHERE a LIKE 'x' ESCAPE '!'",
            "SELECT c FROM t WHERE id = (SELECT MAX(id) FROM u WHERE a = 1)",
            "SELECT c FROM t JOIN u ON t.id = 5 WHERE u.id = 6",
            "SELECT a FROM t UNION SELECT b FROM u",
            "UPDATE t SET a = 1 ORDER BY id LIMIT 2",
            "INSERT INTO t SELECT * FROM u WHERE a = 1",
            "SELECT c FROM t WHERE a = 'x' 'y'",
            "SELECT c FROM t WHERE a = 'it''s'",
            "SELECT c FROM t WHERE a = 99999999999999999999",
            "SELECT c FROM t WHERE d = DATE '2020-01-01'",
            "BEGIN",
        ] {
            assert_eq!(fit(text), None, "{text}");
        }
    }
}
