//! Fault points in production code, after FoundationDB's BUGGIFY.
//!
//! `if buggify!() { take the rare path }` is false unless the simulator switched fault points on
//! for this thread. In one simulation only some places are active (decided by the seed and the
//! place), and an active place fires with the given probability, so that every seed explores
//! another mixture.

use crate::Random;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads have fault points switched on; zero makes [`fires`] one load.
static THREADS_ON: AtomicU64 = AtomicU64::new(0);

/// Share of the places that are active in one simulation.
const ACTIVE_SHARE: f64 = 0.25;

struct State {
    seed: u64,
    random: Random,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// Switches fault points on for the current thread until the returned guard is dropped.
pub fn switch_on(seed: u64) -> SwitchedOn {
    let before = STATE.replace(Some(State { seed, random: Random::new(seed ^ 0xB066) }));
    if before.is_none() {
        THREADS_ON.fetch_add(1, Ordering::Relaxed);
    }
    SwitchedOn { _not_send: std::marker::PhantomData }
}

/// Keeps fault points switched on, see [`switch_on`].
#[derive(Debug)]
pub struct SwitchedOn {
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Drop for SwitchedOn {
    fn drop(&mut self) {
        if STATE.take().is_some() {
            THREADS_ON.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether the place fires now; called through [`crate::buggify!`].
#[inline]
pub fn fires(file: &str, line: u32, probability: f64) -> bool {
    THREADS_ON.load(Ordering::Relaxed) != 0 && fires_slowly(file, line, probability)
}

#[cold]
#[inline(never)]
fn fires_slowly(file: &str, line: u32, probability: f64) -> bool {
    STATE.with_borrow_mut(|state| {
        let Some(state) = state else { return false };
        let place = u64::from(crate::checksum::crc32c(file.as_bytes())) << 32 | u64::from(line);
        let active = Random::new(state.seed ^ place.rotate_left(17)).chance(ACTIVE_SHARE);
        active && state.random.chance(probability)
    })
}

/// True now and then in a simulation (a quarter of the times at a quarter of the places), never
/// outside. See [`crate::buggify`](mod@crate::buggify).
#[macro_export]
macro_rules! buggify {
    () => {
        $crate::buggify::fires(::core::file!(), ::core::line!(), 0.25)
    };
}

/// As [`buggify!`] with the probability of an active place given.
#[macro_export]
macro_rules! buggify_with {
    ($probability:expr) => {
        $crate::buggify::fires(::core::file!(), ::core::line!(), $probability)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_unless_switched_on() {
        assert!(!(0..1000).any(|_| buggify_with!(1.0)));
        let on = (0..64).filter(|&seed| {
            let _guard = switch_on(seed);
            buggify_with!(1.0)
        });
        assert!(
            (4..40).contains(&on.count()),
            "about a quarter of the seeds have the place active"
        );
        assert!(!buggify_with!(1.0));
    }

    #[test]
    fn same_seed_same_faults() {
        let run = |seed| {
            let _guard = switch_on(seed);
            (0..200).map(|line| fires("a.rs", line % 20, 0.5)).collect::<Vec<_>>()
        };
        assert_eq!(run(3), run(3));
        assert_ne!(run(3), run(4));
    }
}
