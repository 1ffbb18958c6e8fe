//! What sessions that prepared the same text share: the tree and the plans.
//!
//! Invariants:
//! 1. Statements are shared when text and everything that parsing depends on are the same; how
//!    long they are kept is the cache's affair (`plan_cache.rs`).
//! 2. A plan is shared only between sessions for which it was made alike
//!    ([`SessionPlan::is_like`]: account, database, settings, types of parameters, versions of
//!    the tables, and about the same shares of rows for the values, see
//!    `plan::Prepared::fits_values`). Whether it may run is checked at every execution, as for a
//!    plan of one's own.

use crate::planned::SessionPlan;
use runtime::sync::Mutex;
use std::sync::Arc;
use syntax::ParseOptions;
use syntax::ast::Statement;

/// Plans kept for one statement; more kinds of sessions than these plan for themselves.
const PLANS_MAX: usize = 4;

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
    /// A statement without a plan.
    pub(crate) fn new(text: &[u8], statement: Statement, parameters: usize) -> Self {
        let (statement, text) = (Arc::new(statement), text.into());
        Self { statement, text, parameters, plans: Mutex::new(Vec::new()) }
    }

    /// Its plans are still what would be made, as far as it has any.
    pub(crate) fn is_current(&self) -> bool {
        let plans = self.plans.lock();
        plans.is_empty() || plans.iter().any(|plan| plan.is_current())
    }

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

    /// A plan that was chosen for values like these. Whether it may run is for the session to say.
    pub(crate) fn plan_for(&self, values: &[types::Value]) -> Option<Arc<SessionPlan>> {
        let plans = self.plans.lock().clone();
        let mut made = plans.into_iter().filter(|plan| !plan.is_for_prepare());
        made.find(|plan| plan.prepared.fits_values(values))
    }

    /// A plan that was made before the types of parameters were known, if there is one.
    pub(crate) fn plan_for_prepare(&self) -> Option<Arc<SessionPlan>> {
        let plans = self.plans.lock();
        plans.iter().rev().find(|plan| plan.is_for_prepare() && plan.is_current()).cloned()
    }
}

/// The key of a prepared statement. A text's key begins with a token, so never with this byte.
pub(crate) fn prepared_key(text: &[u8], options: &ParseOptions) -> Vec<u8> {
    let mut key = Vec::with_capacity(text.len() + 2);
    key.extend([1, option_bits(options)]);
    key.extend_from_slice(text);
    key
}

/// One bit for each of the parser's options.
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
        kept,
    } = *options;
    let bits = [
        ansi_quotes,
        pipes_as_concat,
        no_backslash_escapes,
        high_not_precedence,
        ignore_space,
        parameters,
        latin1_identifiers,
        kept,
    ];
    bits.iter().enumerate().map(|(position, bit)| u8::from(*bit) << position).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_options_and_texts_keep_prepared_statements_apart() {
        let options = ParseOptions::default();
        let ansi = ParseOptions { ansi_quotes: true, ..options };
        assert_eq!(prepared_key(b"SELECT 1", &options), prepared_key(b"SELECT 1", &options));
        assert_ne!(prepared_key(b"SELECT 1", &options), prepared_key(b"SELECT 1", &ansi));
        assert_ne!(prepared_key(b"SELECT 1", &options), prepared_key(b"SELECT 2", &options));
    }
}
