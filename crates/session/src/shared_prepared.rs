//! What sessions that prepared the same text share: the tree and the plans.
//!
//! Invariants:
//! 1. Statements are shared when text and everything that parsing depends on are the same; a
//!    statement that nobody holds any more is forgotten.
//! 2. A plan is shared only between sessions for which it was made alike
//!    ([`SessionPlan::is_like`]: account, database, settings, types of parameters, versions of
//!    the tables). Whether it may run is checked at every execution, as for a plan of one's own.

use crate::planned::SessionPlan;
use runtime::sync::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use syntax::ParseOptions;
use syntax::ast::Statement;

/// Plans kept for one statement; more kinds of sessions than these plan for themselves.
const PLANS_MAX: usize = 4;
/// Entries of the table before those that nobody holds are looked for.
const SWEEP_MIN: usize = 64;

/// A prepared statement without what belongs to one session.
pub(crate) struct SharedStatement {
    /// The tree, to plan again when a definition has changed.
    pub(crate) statement: Arc<Statement>,
    /// Its text.
    pub(crate) text: Arc<[u8]>,
    /// Number of `?`.
    pub(crate) parameters: usize,
    plans: Mutex<Vec<Arc<SessionPlan>>>,
}

impl SharedStatement {
    /// The plan to use from now on: one made alike by another session, or `plan`, which others
    /// use from now on.
    pub(crate) fn share(&self, plan: Arc<SessionPlan>) -> Arc<SessionPlan> {
        let mut plans = self.plans.lock();
        plans.retain(|known| known.is_current());
        if let Some(same) = plans.iter().find(|known| known.is_like(&plan)) {
            return same.clone();
        }
        if plans.len() == PLANS_MAX {
            plans.remove(0);
        }
        plans.push(plan.clone());
        plan
    }

    /// A plan that was made before the types of parameters were known, if there is one.
    pub(crate) fn plan_for_prepare(&self) -> Option<Arc<SessionPlan>> {
        let plans = self.plans.lock();
        plans.iter().rev().find(|plan| plan.is_for_prepare() && plan.is_current()).cloned()
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    /// One bit for each of the parser's options.
    options: u8,
    text: Arc<[u8]>,
}

fn option_bits(options: &ParseOptions) -> u8 {
    // Named one by one, so that a new one is not forgotten here.
    let ParseOptions {
        ansi_quotes,
        pipes_as_concat,
        no_backslash_escapes,
        high_not_precedence,
        ignore_space,
        parameters,
        latin1_identifiers,
    } = *options;
    let bits = [
        ansi_quotes,
        pipes_as_concat,
        no_backslash_escapes,
        high_not_precedence,
        ignore_space,
        parameters,
        latin1_identifiers,
    ];
    bits.iter().enumerate().map(|(position, bit)| u8::from(*bit) << position).sum()
}

#[derive(Default)]
struct Table {
    statements: HashMap<Key, Weak<SharedStatement>>,
    sweep_at: usize,
}

/// All statements that sessions hold.
#[derive(Default)]
pub(crate) struct SharedStatements {
    table: Mutex<Table>,
}

impl SharedStatements {
    /// The statement of this text, if a session has prepared it.
    pub(crate) fn find(&self, text: &[u8], options: &ParseOptions) -> Option<Arc<SharedStatement>> {
        let key = Key { options: option_bits(options), text: text.into() };
        self.table.lock().statements.get(&key)?.upgrade()
    }

    /// A statement that was just parsed; one that another session added meanwhile wins.
    pub(crate) fn add(
        &self,
        text: &[u8],
        options: &ParseOptions,
        statement: Statement,
        parameters: usize,
    ) -> Arc<SharedStatement> {
        let text: Arc<[u8]> = text.into();
        let key = Key { options: option_bits(options), text: text.clone() };
        let mut table = self.table.lock();
        if let Some(known) = table.statements.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        if table.statements.len() >= table.sweep_at {
            table.statements.retain(|_, statement| statement.strong_count() > 0);
            table.sweep_at = (table.statements.len() * 2).max(SWEEP_MIN);
        }
        let statement = Arc::new(statement);
        let plans = Mutex::new(Vec::new());
        let shared = Arc::new(SharedStatement { statement, text, parameters, plans });
        table.statements.insert(key, Arc::downgrade(&shared));
        shared
    }

    /// How many texts are known, those that nobody holds any more among them.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.table.lock().statements.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(statements: &SharedStatements, text: &str, ansi: bool) -> Arc<SharedStatement> {
        let options = ParseOptions { ansi_quotes: ansi, ..ParseOptions::default() };
        if let Some(known) = statements.find(text.as_bytes(), &options) {
            return known;
        }
        let parsed = syntax::parse(text.as_bytes(), &options).unwrap();
        statements.add(text.as_bytes(), &options, parsed.statement, 0)
    }

    #[test]
    fn the_same_text_is_shared_while_somebody_holds_it() {
        let statements = SharedStatements::default();
        let one = add(&statements, "SELECT \"a\"", false);
        let same = add(&statements, "SELECT \"a\"", false);
        let other_mode = add(&statements, "SELECT \"a\"", true);
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other_mode));
        let weak = Arc::downgrade(&one);
        drop((one, same));
        assert!(weak.upgrade().is_none(), "the table itself holds nothing");
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let statements = SharedStatements::default();
        let kept = add(&statements, "SELECT 0", false);
        for number in 1..1000 {
            drop(add(&statements, &format!("SELECT {number}"), false));
        }
        assert!(statements.len() <= SWEEP_MIN, "{}", statements.len());
        assert!(Arc::ptr_eq(&kept, &add(&statements, "SELECT 0", false)));
    }
}
