//! Coverage marks: `probe!("wal.wrapped")` counts that a rare branch was reached, and a test (or
//! the simulator's summary) asks for the counts. After FoundationDB's CODE_PROBE.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One marked place; made by [`crate::probe!`].
#[derive(Debug)]
pub struct Probe {
    name: &'static str,
    hits: AtomicU64,
    listed: AtomicBool,
}

static PROBES: Mutex<Vec<&'static Probe>> = Mutex::new(Vec::new());

impl Probe {
    /// A place that was not reached yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, hits: AtomicU64::new(0), listed: AtomicBool::new(false) }
    }

    /// Counts one visit.
    #[inline]
    pub fn hit(&'static self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        if !self.listed.load(Ordering::Relaxed) {
            self.list();
        }
    }

    #[cold]
    fn list(&'static self) {
        if !self.listed.swap(true, Ordering::Relaxed) {
            lock().push(self);
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<&'static Probe>> {
    PROBES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Visits of all marks reached since the process began, over all threads, by name.
pub fn counts() -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for probe in lock().iter() {
        *counts.entry(probe.name).or_insert(0) += probe.hits.load(Ordering::Relaxed);
    }
    counts
}

/// Visits of the marks with this name.
pub fn count(name: &str) -> u64 {
    counts().get(name).copied().unwrap_or(0)
}

/// Counts a visit of this place under a name such as `"wal.wrapped"`.
#[macro_export]
macro_rules! probe {
    ($name:literal) => {{
        static PROBE: $crate::probe::Probe = $crate::probe::Probe::new($name);
        PROBE.hit();
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_by_name() {
        assert_eq!(super::count("base.test.mark"), 0);
        for _ in 0..3 {
            probe!("base.test.mark");
        }
        probe!("base.test.mark");
        assert_eq!(super::count("base.test.mark"), 4);
    }
}
