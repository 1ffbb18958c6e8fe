//! Time: the monotonic clock, the wall clock and a cheap cycle counter for time slices.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on the monotonic clock (virtual in a simulation), in nanoseconds since an
/// arbitrary start. Comparable only within one runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment this many nanoseconds after the clock's start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time passed since this moment.
    pub fn elapsed(self) -> Duration {
        crate::now().since(self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

fn read_clock(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; the clocks used exist on every Linux.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    debug_assert_eq!(status, 0);
    time
}

/// Nanoseconds of CPU that the calling thread has used.
pub(crate) fn thread_cpu_nanos() -> u64 {
    let time = read_clock(libc::CLOCK_THREAD_CPUTIME_ID);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds of the kernel's monotonic clock.
pub(crate) fn monotonic_nanos() -> u64 {
    let time = read_clock(libc::CLOCK_MONOTONIC);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Microseconds of the wall clock since 1970, UTC.
pub(crate) fn wall_micros() -> i64 {
    let time = read_clock(libc::CLOCK_REALTIME);
    time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
}

/// The cycle counter: a few nanoseconds to read, used only to measure time slices.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: the instruction exists on every x86-64 and has no other effect.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Without a cycle counter the monotonic clock serves.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(crate) fn ticks() -> u64 {
    monotonic_nanos()
}

/// The clock and the counter at one moment: of a few readings the one that was interrupted least.
fn clock_and_ticks() -> (u64, u64) {
    let reading = || {
        let (before, counter) = (monotonic_nanos(), ticks());
        (monotonic_nanos() - before, before, counter)
    };
    let (_, clock, counter) = (0..8).map(|_| reading()).min().unwrap_or_default();
    (clock, counter)
}

/// How many [`ticks`] a microsecond has, measured once over 200 us.
pub(crate) fn ticks_per_microsecond() -> u64 {
    static RATE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *RATE.get_or_init(|| {
        let (clock, counter) = clock_and_ticks();
        loop {
            let now = clock_and_ticks();
            if now.0 - clock >= 200_000 {
                return (now.1.saturating_sub(counter) * 1_000 / (now.0 - clock)).max(1);
            }
            std::hint::spin_loop();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let start = Instant::from_nanos(5);
        assert_eq!((start + Duration::from_nanos(7)).as_nanos(), 12);
        assert_eq!(start - Instant::from_nanos(9), Duration::ZERO);
        assert_eq!((start + Duration::MAX).as_nanos(), u64::MAX);
    }

    #[test]
    fn ticks_run_with_the_clock() {
        let rate = ticks_per_microsecond();
        let (clock, counter) = clock_and_ticks();
        while monotonic_nanos() - clock < 2_000_000 {}
        let now = clock_and_ticks();
        let (passed, measured) = ((now.0 - clock) / 1_000, (now.1 - counter) / rate);
        let allowed = passed / 2..passed * 2;
        assert!(allowed.contains(&measured), "{measured} us instead of {passed}");
    }
}
