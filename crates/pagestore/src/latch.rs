//! The page latch: one word with a version for optimistic readers.
//!
//! ```text
//! bits 0..8   0 free, 1..=252 that many shared holders, 253 held exclusively
//! bits 8..64  version, raised whenever an exclusive holder lets go
//! ```
//!
//! 1. Page bytes and the place word of a page change only while its latch is held exclusively.
//! 2. An optimistic reader that sees the same version before and after its loads, and no exclusive
//!    holder after, has seen one state (the seqlock argument; fences below).
//! 3. A latch is never held while a fiber parks or yields.

use base::planted;
use base::primitives::{AtomicU64, Ordering, fence, spin_loop};

const STATE_MASK: u64 = 0xFF;
const SHARED_MAX: u64 = 252;
const EXCLUSIVE: u64 = 253;
const VERSION_ONE: u64 = 1 << 8;

/// How often a latch is tried before the operation restarts from outside.
const SPINS: u32 = if cfg!(loom) { 1 } else { 96 };

/// See the head of this file.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Latch(AtomicU64);

/// A version seen by an optimistic reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Version(u64);

impl Latch {
    /// The version to validate against later; `None` while held exclusively.
    #[inline]
    pub(crate) fn optimistic(&self) -> Option<Version> {
        let word = self.0.load(Ordering::Acquire);
        if word & STATE_MASK == EXCLUSIVE { None } else { Some(Version(word & !STATE_MASK)) }
    }

    /// Whether nobody changed the page since `version` was taken.
    #[inline]
    pub(crate) fn validate(&self, version: Version) -> bool {
        // Pairs with the release fence in `try_exclusive`: a load that saw a byte of a later
        // writer makes this load see that writer's latch word or a later one.
        if !planted!("latch_reader_without_fence") {
            fence(Ordering::Acquire);
        }
        let word = self.0.load(Ordering::Relaxed);
        word & !STATE_MASK == version.0 && word & STATE_MASK != EXCLUSIVE
    }

    /// One attempt to hold shared.
    #[inline]
    pub(crate) fn try_shared(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & STATE_MASK < SHARED_MAX
            && self.0.compare_exchange(word, word + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// One attempt to hold exclusively.
    #[inline]
    pub(crate) fn try_exclusive(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        word & STATE_MASK == 0 && self.change_to_exclusive(word)
    }

    #[inline]
    fn change_to_exclusive(&self, word: u64) -> bool {
        let taken = self
            .0
            .compare_exchange(word, word | EXCLUSIVE, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        // Orders the latch word before the stores to the page that follow; see `validate`.
        if !planted!("latch_writer_without_fence") {
            fence(Ordering::Release);
        }
        taken
    }

    /// Exclusive, if nothing changed since `version` and nobody holds the latch.
    #[inline]
    pub(crate) fn upgrade(&self, version: Version) -> bool {
        self.change_to_exclusive(version.0)
    }

    /// Holds shared after a few spins, or gives up.
    #[inline]
    pub(crate) fn shared(&self) -> bool {
        self.try_shared() || spin(|| self.try_shared())
    }

    /// Holds exclusively after a few spins, or gives up.
    #[inline]
    pub(crate) fn exclusive(&self) -> bool {
        self.try_exclusive() || spin(|| self.try_exclusive())
    }

    /// Lets go of a shared hold.
    #[inline]
    pub(crate) fn release_shared(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!((1..=SHARED_MAX).contains(&(before & STATE_MASK)));
    }

    /// Lets go of the exclusive hold; optimistic readers since then restart.
    #[inline]
    pub(crate) fn release_exclusive(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & STATE_MASK, EXCLUSIVE);
        let raise = if planted!("latch_version_stays") { 0 } else { VERSION_ONE };
        self.0.store((word & !STATE_MASK).wrapping_add(raise), Ordering::Release);
    }

    /// Lets go of the exclusive hold under which nothing was changed: readers may go on.
    #[inline]
    pub(crate) fn release_unchanged(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & STATE_MASK, EXCLUSIVE);
        self.0.store(word & !STATE_MASK, Ordering::Release);
    }

    /// The raw word. Mapping recovery keeps a page LSN here while nobody else knows the array.
    pub(crate) fn raw(&self) -> &AtomicU64 {
        &self.0
    }
}

#[cold]
fn spin(attempt: impl Fn() -> bool) -> bool {
    for _ in 0..SPINS {
        spin_loop();
        if attempt() {
            return true;
        }
    }
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn exclusive_excludes() {
        let latch = Latch::default();
        let version = latch.optimistic().expect("free");
        assert!(latch.try_exclusive());
        assert!(!latch.try_exclusive() && !latch.try_shared());
        assert!(latch.optimistic().is_none() && !latch.validate(version));
        latch.release_exclusive();
        assert!(!latch.validate(version), "the version moved on");
        assert!(latch.validate(latch.optimistic().expect("free")));
    }

    #[test]
    fn shared_holders_do_not_disturb_readers() {
        let latch = Latch::default();
        let version = latch.optimistic().expect("free");
        assert!(latch.try_shared() && latch.try_shared());
        assert!(latch.validate(version));
        assert!(!latch.try_exclusive() && !latch.upgrade(version));
        latch.release_shared();
        latch.release_shared();
        assert!(latch.upgrade(version));
        latch.release_unchanged();
        assert!(latch.validate(version), "nothing was changed");
    }

    #[test]
    fn shared_holders_are_bounded() {
        let latch = Latch::default();
        assert!((0..SHARED_MAX).all(|_| latch.try_shared()));
        assert!(!latch.try_shared() && latch.optimistic().is_some());
    }

    #[test]
    fn readers_never_see_half_a_change() {
        let latch = Latch::default();
        let pair = [AtomicU64::new(0), AtomicU64::new(0)];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..2000 {
                    while !latch.exclusive() {}
                    pair[0].store(number, Ordering::Relaxed);
                    pair[1].store(number, Ordering::Relaxed);
                    latch.release_exclusive();
                }
            });
            let mut seen = 0;
            while seen < 1999 {
                let Some(version) = latch.optimistic() else { continue };
                let both = [&pair[0], &pair[1]].map(|half| half.load(Ordering::Relaxed));
                if latch.validate(version) {
                    assert_eq!(both[0], both[1]);
                    seen = both[0];
                }
            }
        });
    }
}
