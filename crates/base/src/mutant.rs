//! Deliberate defects for testing the tests: `if mutant!("skip_wal_sync") { .. }` is false unless
//! that defect was switched on by name, and always false in release builds.
//!
//! The simulation must find every one of them; see `cargo run -p gannet-sim -- --mutants`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static ANY: AtomicBool = AtomicBool::new(false);
static ACTIVE: Mutex<Option<String>> = Mutex::new(None);

/// Switches the named defect on for the whole process, or all of them off.
pub fn switch(name: Option<&str>) {
    let mut active = ACTIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *active = name.map(str::to_owned);
    ANY.store(name.is_some(), Ordering::SeqCst);
}

/// Whether the defect is on; called through [`crate::mutant!`].
#[inline]
pub fn is_on(name: &str) -> bool {
    ANY.load(Ordering::Relaxed) && is_on_slowly(name)
}

#[cold]
#[inline(never)]
fn is_on_slowly(name: &str) -> bool {
    let active = ACTIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    active.as_deref() == Some(name)
}

/// Whether the named defect is switched on. Costs nothing in release builds.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        ::core::cfg!(debug_assertions) && $crate::mutant::is_on($name)
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_named_one_is_on() {
        let on = || (mutant!("base_test_one"), mutant!("base_test_two"));
        assert_eq!(on(), (false, false));
        super::switch(Some("base_test_two"));
        assert_eq!(on(), (false, true));
        super::switch(None);
        assert_eq!(on(), (false, false));
    }
}
