//! The plans of the server: one cache, one rule for what has to go, one set of counters.
//!
//! A statement of the text protocol is found by its fingerprint: the statements of an application
//! differ by their literals only. It is planned with parameters in the place of literals
//! (`generalize.rs`), and the plan is kept for all statements with the same tokens. A later one is
//! lexed, its literals become the parameters' values, and parsing and planning are left out. A
//! statement that is prepared is found by its text (`shared_prepared.rs`); sessions hold what they
//! have prepared, whether the cache still has it or not.
//!
//! Invariants:
//! 1. The literals that became parameters are bound in the order of the text. Those that did not
//!    are part of the key: an entry under the key without them says which they are.
//! 2. The key holds everything that changes what the text means or what its plan is: all settings
//!    that parsing, planning and the columns of the result depend on, the default database, the
//!    types of the literals. It is compared as a whole; a hash only finds it. Definitions and
//!    statistics are compared when a plan is used, as for prepared statements.
//! 3. A user who may not read and change all rows uses only plans that were made, and so
//!    checked, for him with the privileges he has now.
//! 4. Entries do not change what they say: a new plan of a text is a new entry. So sessions
//!    remember the entries that they met last, and find them again without touching anything that
//!    another core writes.
//! 5. What was not looked up since the last eviction, or whose tables are no longer what they
//!    were, goes first; then every second entry.

use crate::Session;
use crate::answer::Outlet;
use crate::generalize::{generalize, read_literals};
use crate::planned::SessionPlan;
use crate::shared_prepared::{SharedStatement, prepared_key};
use crate::statement::Run;
use crate::status::StatusCounter;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use runtime::sync::{Mutex, RwLock};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use syntax::ast::Statement;
use syntax::{Fingerprint, ParseOptions};
use types::{SqlError, Value};

/// Longest text that is looked up; longer ones (bulk inserts) are not worth it.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;
/// Longest text of a prepared statement that sessions share.
const PREPARED_BYTES_MAX: usize = 1 << 16;
/// Entries kept, and bytes of their keys.
const ENTRIES_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = 1 << 20;
/// So many statements that differ in literals that stay are kept before it is asked whether any
/// came again.
const STAYS_TRIAL: u32 = 64;
/// Entries that a session remembers.
const RECENT: usize = 16;
/// Contexts that have a number.
const CONTEXTS_MAX: usize = 4096;

/// What is known of the statements with one key.
enum Known {
    /// A statement with parameters, and its plan.
    Plan(Arc<Statement>, Arc<SessionPlan>),
    /// These literals stay: the plan is found by a key that has them.
    Stays(Stays),
    /// Such statements are planned each time.
    Nothing,
    /// A statement that was prepared.
    Prepared(Arc<SharedStatement>),
}

/// See [`Known::Stays`].
struct Stays {
    literals: Box<[bool]>,
    /// Plans made, and times that one made before was found by a session that did not remember it.
    made: AtomicU32,
    found: AtomicU32,
}

impl Stays {
    /// Hardly one of these statements comes again.
    fn is_useless(&self) -> bool {
        let made = self.made.load(Ordering::Relaxed);
        made >= STAYS_TRIAL && made / 2 > self.found.load(Ordering::Relaxed)
    }
}

/// One place of the cache.
pub(crate) struct Entry {
    key: Box<[u8]>,
    hash: u64,
    known: Known,
    /// Looked up since the last eviction.
    used: AtomicBool,
}

impl Entry {
    /// Its plan, if it has one, is still what would be made.
    fn is_current(&self) -> bool {
        match &self.known {
            Known::Plan(_, plan) => plan.is_current(),
            Known::Prepared(shared) => shared.is_current(),
            Known::Stays(_) | Known::Nothing => true,
        }
    }

    fn stays(&self) -> Option<&Stays> {
        match &self.known {
            Known::Stays(stays) => Some(stays),
            _ => None,
        }
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

    /// Forgets what was not looked up since the last time and what is outdated; if that is too
    /// little, every second entry. How many are gone.
    fn evict(&mut self) -> usize {
        let before = self.entries.len();
        let is_used = |entry: &Entry| entry.used.swap(false, Ordering::Relaxed);
        self.forget_all_but(|entry| is_used(entry) && entry.is_current());
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

    /// The statement of this text, if one was prepared.
    fn find_prepared(&self, key: &[u8]) -> Option<Arc<SharedStatement>> {
        match &self.find(self.hasher.hash_one(key), key)?.known {
            Known::Prepared(shared) => Some(shared.clone()),
            _ => None,
        }
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
    /// What says which literals stay, if the key has them.
    stays: Option<Arc<Entry>>,
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

    /// Puts the literals that stay into the key.
    fn push_literals(&mut self, text: &[u8], entry: &Arc<Entry>, cache: &PlanCache) -> Option<()> {
        let stays = entry.stays()?;
        for (literal, _) in self.fingerprint.literals.iter().zip(&stays.literals).filter(|it| *it.1)
        {
            let bytes = text.get(literal.start..literal.end)?;
            self.key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            self.key.extend_from_slice(bytes);
        }
        self.hash = cache.hasher.hash_one(&self.key[..]);
        self.stays = Some(entry.clone());
        Some(())
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
        lookup.stays = None;
        let recent = lookup.take_recent();
        let Some(mut entry) = recent.or_else(|| cache.find(lookup.hash, &lookup.key)) else {
            return Found::New;
        };
        if entry.stays().is_some() {
            match find_with_literals(lookup, text, entry, cache) {
                Ok(found) => entry = found,
                Err(found) => return found,
            }
        }
        if !matches!(entry.known, Known::Plan(..)) {
            *lookup.place() = Some(entry);
            return Found::No;
        }
        if let Some(stays) = lookup.stays.as_ref().and_then(|entry| entry.stays()) {
            keep_parameters(values, &stays.literals);
        }
        self.status.add(StatusCounter::GannetPlanCacheHits, 1);
        Found::Known { entry, end: lookup.fingerprint.end.min(text.len()) }
    }

    /// The statement with parameters, their values bound, if its plan may be kept. Called after
    /// [`Found::New`] for the same text.
    pub(crate) fn learn(&mut self, text: &[u8], statement: &Statement) -> Option<Arc<Statement>> {
        self.status.add(StatusCounter::GannetPlanCacheMisses, 1);
        let options = &self.settings.parse;
        let general = generalize(text, &self.lookup.fingerprint, options, statement);
        let some_stay = |stays: &[bool]| stays.contains(&true);
        let known = self.lookup.stays.clone();
        let general = general.filter(|general| match known.as_ref().and_then(|it| it.stays()) {
            Some(stays) => stays.literals == general.stays,
            None => true,
        });
        let Some(general) = general else {
            self.keep_entry(Known::Nothing);
            return None;
        };
        if some_stay(&general.stays) && known.is_none() {
            let (made, found) = (AtomicU32::new(0), AtomicU32::new(0));
            let literals = general.stays.clone();
            let entry = self.keep_entry(Known::Stays(Stays { literals, made, found }));
            let server = self.server.clone();
            self.lookup.push_literals(text, &entry, &server.plan_cache)?;
        }
        if let Some(stays) = self.lookup.stays.as_ref().and_then(|entry| entry.stays()) {
            stays.made.fetch_add(1, Ordering::Relaxed);
        }
        let values = &mut self.eval.parameters;
        let is_read = read_literals(text, &self.lookup.fingerprint, values);
        keep_parameters(values, &general.stays);
        is_read.then(|| Arc::new(general.statement))
    }

    /// Runs a statement of the cache, whose parameters are bound.
    pub(crate) fn run_known(&mut self, entry: Arc<Entry>, outlet: &mut dyn Outlet) {
        let Known::Plan(statement, plan) = &entry.known else { return };
        let run = Run { plan: Some(plan), ..Run::text() };
        let made = self.run_statement(statement, run, outlet);
        self.eval.parameters.clear();
        match made {
            Some(plan) => {
                self.keep_entry(Known::Plan(statement.clone(), plan));
            }
            None => *self.lookup.place() = Some(entry),
        }
    }

    /// Runs a statement that was learned; its plan is kept.
    pub(crate) fn run_learned(&mut self, statement: Arc<Statement>, outlet: &mut dyn Outlet) {
        let has_values = !self.eval.parameters.is_empty();
        let made = self.run_statement(&statement, Run::text(), outlet);
        self.eval.parameters.clear();
        match made {
            // What it costs is much more than planning, and the values decide how it is done.
            Some(plan) if has_values && plan.prepared.depends_on_values() => {
                self.keep_entry(Known::Nothing);
            }
            Some(plan) => {
                self.keep_entry(Known::Plan(statement, plan));
            }
            None if self.eval.error_count() == 0 => {
                self.keep_entry(Known::Nothing);
            }
            None => {}
        }
    }

    /// Keeps what was found out about the key that was looked up last.
    fn keep_entry(&mut self, known: Known) -> Arc<Entry> {
        let lookup = &mut self.lookup;
        let key = lookup.key.clone().into_boxed_slice();
        let used = AtomicBool::new(true);
        let entry = Arc::new(Entry { key, hash: lookup.hash, known, used });
        *lookup.place() = Some(entry.clone());
        let evicted = self.server.plan_cache.keep(entry.clone());
        self.status.add(StatusCounter::GannetPlanCacheEvictions, evicted as u64);
        entry
    }

    /// What sessions share of a statement that is being prepared; `parse` gives its tree and the
    /// number of its parameters, if that is not known.
    pub(crate) fn share_prepared(
        &mut self,
        text: &[u8],
        options: &ParseOptions,
        parse: impl FnOnce() -> Result<(Statement, usize), SqlError>,
    ) -> Result<Arc<SharedStatement>, SqlError> {
        let key = prepared_key(text, options);
        let server = self.server.clone();
        if let Some(known) = server.plan_cache.find_prepared(&key) {
            self.status.add(StatusCounter::GannetPlanCacheHits, 1);
            return Ok(known);
        }
        let (statement, parameters) = parse()?;
        self.status.add(StatusCounter::GannetPlanCacheMisses, 1);
        let shared = Arc::new(SharedStatement::new(text, statement, parameters));
        if text.len() <= PREPARED_BYTES_MAX {
            let hash = server.plan_cache.hasher.hash_one(&key[..]);
            let (key, used) = (key.into_boxed_slice(), AtomicBool::new(true));
            let known = Known::Prepared(shared.clone());
            let evicted = server.plan_cache.keep(Arc::new(Entry { key, hash, known, used }));
            self.status.add(StatusCounter::GannetPlanCacheEvictions, evicted as u64);
        }
        Ok(shared)
    }
}

/// The entry of the key with the literals that stay, which `stays` says; else what was found.
fn find_with_literals(
    lookup: &mut Lookup,
    text: &[u8],
    stays: Arc<Entry>,
    cache: &PlanCache,
) -> Result<Arc<Entry>, Found> {
    *lookup.place() = Some(stays.clone());
    lookup.push_literals(text, &stays, cache).ok_or(Found::No)?;
    if let Some(entry) = lookup.take_recent() {
        return Ok(entry);
    }
    let Some(stays) = stays.stays() else { return Err(Found::No) };
    match cache.find(lookup.hash, &lookup.key) {
        Some(entry) => {
            stays.found.fetch_add(1, Ordering::Relaxed);
            Ok(entry)
        }
        None if stays.is_useless() => Err(Found::No),
        None => Err(Found::New),
    }
}

/// Leaves the values of parameters.
fn keep_parameters(values: &mut Vec<Value>, stays: &[bool]) {
    let mut stays = stays.iter();
    values.retain(|_| !stays.next().copied().unwrap_or(false));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: usize, cache: &PlanCache) -> Arc<Entry> {
        let key = format!("{number:0>300}").into_bytes().into_boxed_slice();
        let hash = cache.hasher.hash_one(&key);
        Arc::new(Entry { key, hash, known: Known::Nothing, used: AtomicBool::new(false) })
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

    #[test]
    fn statements_that_never_come_again_are_given_up() {
        let (made, found) = (AtomicU32::new(STAYS_TRIAL), AtomicU32::new(STAYS_TRIAL / 2));
        let stays = Stays { literals: Box::new([true]), made, found };
        assert!(!stays.is_useless());
        stays.found.store(STAYS_TRIAL / 4, Ordering::Relaxed);
        assert!(stays.is_useless());
        stays.made.store(STAYS_TRIAL - 1, Ordering::Relaxed);
        assert!(!stays.is_useless());
    }
}
