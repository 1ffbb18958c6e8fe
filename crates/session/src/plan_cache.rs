//! Plans of text statements, kept by fingerprint.
//!
//! The statements of an application differ by their literals only. A statement whose literals
//! all stand in simple places (operands of comparisons and arithmetic, values of INSERT and SET,
//! the number of LIMIT) is planned with parameters in their stead, and the plan is kept for all
//! statements with the same tokens. A later one is lexed, its literals become the parameters'
//! values, and parsing and planning are left out.
//!
//! Invariants:
//! 1. A statement is kept only if every literal of its fingerprint became a parameter, in the
//!    order of the text; ORDER BY 1 or a literal in the select list (which names its column) keep
//!    it out.
//! 2. The key holds everything that changes what the text means or what its plan is: all settings
//!    that parsing, planning and the columns of the result depend on, the default database, the
//!    types of the literals. It is compared as a whole; a hash only finds it. Definitions and
//!    statistics are compared when a plan is used, as for prepared statements.
//! 3. A user who may not read and change all rows uses only plans that were made, and so
//!    checked, for him with the privileges he has now.
//! 4. Entries do not change: a new plan is a new entry. So sessions remember the entries that
//!    they met last, and find them again without touching anything that another core writes.

use crate::Session;
use crate::answer::Outlet;
use crate::planned::SessionPlan;
use crate::statement::Run;
use crate::status::StatusCounter;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use runtime::sync::{Mutex, RwLock};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use syntax::ast::{Expression, InsertSource, Limit, Literal, QueryBody, Statement};
use syntax::{Fingerprint, LiteralKind, LiteralRange};
use types::{Decimal, Value};

/// Longest text that is looked up; longer ones (bulk inserts) are not worth it.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// Entries kept, and bytes of their keys.
const ENTRIES_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = 1 << 20;
/// Entries that a session remembers.
const RECENT: usize = 16;
/// Contexts that have a number.
const CONTEXTS_MAX: usize = 4096;

/// What is known of the statements with one key.
pub(crate) struct Entry {
    key: Box<[u8]>,
    hash: u64,
    /// The statement with parameters, and its plan; none if such statements are planned each
    /// time.
    fit: Option<(Arc<Statement>, Arc<SessionPlan>)>,
    /// Looked up since the last eviction.
    used: AtomicBool,
}

impl Entry {
    /// Its plan, if it has one, is still what would be made.
    fn is_current(&self) -> bool {
        self.fit.as_ref().is_none_or(|(_, plan)| plan.is_current())
    }
}

#[derive(Default)]
struct Kept {
    entries: HashTable<Arc<Entry>>,
    key_bytes: usize,
}

impl Kept {
    fn forget_all_but(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(|entry| keep(entry));
        self.key_bytes = self.entries.iter().map(|entry| entry.key.len()).sum();
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= ENTRIES_MAX || self.key_bytes >= KEY_BYTES_MAX
    }

    /// Forgets what was not looked up since the last time; if that is too little, every second
    /// entry. How many are gone.
    fn evict(&mut self) -> usize {
        let before = self.entries.len();
        self.forget_all_but(|entry| entry.used.swap(false, Ordering::Relaxed));
        if self.entries.len() > before / 2 {
            let mut number = 0;
            self.forget_all_but(|_| {
                number += 1;
                number % 2 == 0
            });
        }
        before - self.entries.len()
    }
}

/// The server's cache.
#[derive(Default)]
pub(crate) struct PlanCache {
    hasher: DefaultHashBuilder,
    kept: RwLock<Kept>,
    contexts: Mutex<HashMap<String, u64>>,
    last_context: AtomicU64,
}

impl PlanCache {
    fn find(&self, hash: u64, key: &[u8]) -> Option<Arc<Entry>> {
        let kept = self.kept.read();
        let found = kept.entries.find(hash, |entry| entry.hash == hash && *entry.key == *key)?;
        if !found.used.load(Ordering::Relaxed) {
            found.used.store(true, Ordering::Relaxed);
        }
        Some(found.clone())
    }

    /// Keeps an entry, in place of the one with its key. How many others had to go.
    fn keep(&self, entry: Arc<Entry>) -> usize {
        let mut kept = self.kept.write();
        let same = |other: &Arc<Entry>| other.hash == entry.hash && other.key == entry.key;
        if let Some(place) = kept.entries.find_mut(entry.hash, same) {
            *place = entry;
            return 0;
        }
        let evicted = if kept.is_full() { kept.evict() } else { 0 };
        kept.key_bytes += entry.key.len();
        kept.entries.insert_unique(entry.hash, entry, |entry| entry.hash);
        evicted
    }

    /// Entries kept.
    pub(crate) fn len(&self) -> usize {
        self.kept.read().entries.len()
    }

    /// The number of a context; two different ones never have the same.
    pub(crate) fn context(&self, context: String) -> u64 {
        let mut contexts = self.contexts.lock();
        if contexts.len() >= CONTEXTS_MAX {
            contexts.clear();
        }
        let next = || self.last_context.fetch_add(1, Ordering::Relaxed) + 1;
        *contexts.entry(context).or_insert_with(next)
    }
}

/// A session's side of the cache.
#[derive(Default)]
pub(crate) struct Lookup {
    /// Number of the settings that the key depends on; follows them.
    pub(crate) context: u64,
    fingerprint: Fingerprint,
    key: Vec<u8>,
    hash: u64,
    /// Entries met last, by their hash.
    recent: [Option<Arc<Entry>>; RECENT],
}

impl Lookup {
    fn place(&mut self) -> &mut Option<Arc<Entry>> {
        &mut self.recent[self.hash as usize % RECENT]
    }

    /// Takes the entry of the key out of the recent ones, if it is still current.
    fn take_recent(&mut self) -> Option<Arc<Entry>> {
        let place = &mut self.recent[self.hash as usize % RECENT];
        let fits = place.as_ref().is_some_and(|entry| {
            entry.hash == self.hash && *entry.key == *self.key && entry.is_current()
        });
        if fits { place.take() } else { None }
    }

    /// Gives back what an unusually long statement left.
    pub(crate) fn trim(&mut self) {
        self.fingerprint.text.shrink_to(1024);
        self.fingerprint.literals.shrink_to(32);
        self.key.shrink_to(1024);
    }
}

/// What a look-up found.
pub(crate) enum Found {
    /// Not a text that is looked up, or one known to be unfit.
    No,
    /// Not known yet: [`Session::learn`] may keep it.
    New,
    /// A statement with its plan and where its text ends. The values of its literals are bound.
    Known { entry: Arc<Entry>, end: usize },
}

impl Session {
    /// Looks for a plan of the first statement of `text`.
    pub(crate) fn look_up(&mut self, text: &[u8]) -> Found {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let likely = first.is_some_and(|byte| b"SsIiUuDdRr".contains(byte));
        if !likely || text.len() > TEXT_BYTES_MAX {
            return Found::No;
        }
        let found = self.look_up_likely(text);
        if !matches!(found, Found::Known { .. }) {
            self.eval.parameters.clear();
        }
        found
    }

    fn look_up_likely(&mut self, text: &[u8]) -> Found {
        let shares = self.may_change_all_rows();
        let (lookup, values) = (&mut self.lookup, &mut self.eval.parameters);
        if !lookup.fingerprint.read(text, &self.settings.parse)
            || !read_literals(text, &lookup.fingerprint, values)
        {
            return Found::No;
        }
        let key = &mut lookup.key;
        key.clear();
        key.extend_from_slice(&lookup.fingerprint.text);
        key.push(0);
        key.extend_from_slice(&lookup.context.to_le_bytes());
        values.iter().for_each(|value| push_type(value, key));
        key.extend_from_slice(self.eval.facts.database.as_deref().unwrap_or_default().as_bytes());
        key.push(0);
        if !shares {
            key.extend_from_slice(self.user.account.to_string().as_bytes());
        }
        let cache = &self.server.plan_cache;
        lookup.hash = cache.hasher.hash_one(&key[..]);
        let recent = lookup.take_recent();
        let Some(entry) = recent.or_else(|| cache.find(lookup.hash, &lookup.key)) else {
            return Found::New;
        };
        if entry.fit.is_none() {
            *lookup.place() = Some(entry);
            return Found::No;
        }
        self.status.add(StatusCounter::GannetPlanCacheHits, 1);
        Found::Known { entry, end: lookup.fingerprint.end.min(text.len()) }
    }

    /// The statement with parameters, their values bound, if its plan may be kept. Called after
    /// [`Found::New`] for the same text.
    pub(crate) fn learn(&mut self, text: &[u8], statement: &Statement) -> Option<Arc<Statement>> {
        self.status.add(StatusCounter::GannetPlanCacheMisses, 1);
        let fingerprint = &self.lookup.fingerprint;
        let mut generalized = statement.clone();
        let fits = parameterize(&mut generalized) == Some(fingerprint.literals.len());
        if !fits {
            self.keep_entry(None);
            return None;
        }
        let values = &mut self.eval.parameters;
        read_literals(text, fingerprint, values).then(|| Arc::new(generalized))
    }

    /// Runs a statement of the cache, whose parameters are bound.
    pub(crate) fn run_known(&mut self, entry: Arc<Entry>, outlet: &mut dyn Outlet) {
        let Some((statement, plan)) = &entry.fit else { return };
        let run = Run { plan: Some(plan), ..Run::text() };
        let made = self.run_statement(statement, run, outlet);
        self.eval.parameters.clear();
        match made {
            Some(plan) => self.keep_entry(Some((statement.clone(), plan))),
            None => *self.lookup.place() = Some(entry),
        }
    }

    /// Runs a statement that was learned; its plan is kept.
    pub(crate) fn run_learned(&mut self, statement: Arc<Statement>, outlet: &mut dyn Outlet) {
        let made = self.run_statement(&statement, Run::text(), outlet);
        self.eval.parameters.clear();
        match made {
            Some(plan) => self.keep_entry(Some((statement, plan))),
            None if self.eval.error_count() == 0 => self.keep_entry(None),
            None => {}
        }
    }

    /// Keeps what was found out about the key that was looked up last.
    fn keep_entry(&mut self, fit: Option<(Arc<Statement>, Arc<SessionPlan>)>) {
        let lookup = &mut self.lookup;
        let key = lookup.key.clone().into_boxed_slice();
        let used = AtomicBool::new(true);
        let entry = Arc::new(Entry { key, hash: lookup.hash, fit, used });
        *lookup.place() = Some(entry.clone());
        let evicted = self.server.plan_cache.keep(entry);
        self.status.add(StatusCounter::GannetPlanCacheEvictions, evicted as u64);
    }
}

/// Appends what of a value decides the type of its parameter, beyond its kind, which the
/// fingerprint has.
fn push_type(value: &Value, key: &mut Vec<u8>) {
    match value {
        Value::Decimal(number) => key.extend([number.precision() as u8, number.scale()]),
        Value::Bytes(text) if text.len() > 256 => {
            key.push(text.len().next_power_of_two().trailing_zeros() as u8);
        }
        _ => {}
    }
}

/// Reads a fingerprint's literals into `values`. False if one is written in a way that only the
/// parser reads (escapes, adjacent quotes, numbers beyond 64 bits).
fn read_literals(text: &[u8], fingerprint: &Fingerprint, values: &mut Vec<Value>) -> bool {
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
    Some(walk.count)
}

struct Walk {
    count: usize,
}

impl Walk {
    /// LIMIT with one number. Of two the syntax tree does not say which comes first in the text.
    fn limit(&mut self, limit: &mut Option<Limit>) -> Option<()> {
        match limit {
            Some(Limit { count: Some(count), offset: None, rows_examined: None, .. }) => {
                self.expression(count)
            }
            _ => Some(()),
        }
    }

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
        let mut values = Vec::new();
        let is_read = read_literals(text.as_bytes(), &fingerprint, &mut values);
        (is_read && count == fingerprint.literals.len()).then_some(values)
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
        assert_eq!(
            fit("SELECT c FROM t WHERE k = 7 ORDER BY c LIMIT 10"),
            Some(vec![int(7), int(10)])
        );
    }

    #[test]
    fn literals_that_decide_the_plan_keep_a_statement_out() {
        for text in [
            "SELECT 1",
            "SELECT c, 1 FROM t WHERE id = 5",
            "SELECT c FROM t WHERE id = 5 LIMIT 1, 2",
            "SELECT c FROM t WHERE id = 5 LIMIT 1 OFFSET 2",
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

    fn entry(number: usize, cache: &PlanCache) -> Arc<Entry> {
        let key = format!("{number:0>300}").into_bytes().into_boxed_slice();
        let hash = cache.hasher.hash_one(&key);
        Arc::new(Entry { key, hash, fit: None, used: AtomicBool::new(false) })
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let cache = PlanCache::default();
        let hot = entry(0, &cache);
        let mut evicted = cache.keep(hot.clone());
        for number in 1..3 * ENTRIES_MAX {
            evicted += cache.keep(entry(number, &cache));
            assert!(cache.find(hot.hash, &hot.key).is_some(), "{number}");
            assert!(cache.len() <= ENTRIES_MAX);
        }
        let kept = cache.kept.read();
        let key_bytes: usize = kept.entries.iter().map(|entry| entry.key.len()).sum();
        assert_eq!(kept.key_bytes, key_bytes);
        assert!(key_bytes <= KEY_BYTES_MAX);
        assert_eq!(evicted + kept.entries.len(), 3 * ENTRIES_MAX);
    }

    #[test]
    fn contexts_keep_their_numbers() {
        let cache = PlanCache::default();
        let first = cache.context("a".to_owned());
        assert_ne!(first, cache.context("b".to_owned()));
        assert_eq!(first, cache.context("a".to_owned()));
    }
}
