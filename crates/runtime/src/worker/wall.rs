//! A worker's wall clock. Every statement asks for the time, and reading the kernel's clock waits
//! for all memory that was asked for before; so a reading is continued by the cycle counter.
//!
//! 1. A reading is continued within its turn, and for [`CONTINUED_MICROS_MAX`] at most: so long a
//!    clock that was set is not seen, and so long the measured rate of the counter counts.
//! 2. It is continued a little too slowly, by a tick too many to the microsecond, and from where
//!    the counter stands after it: a thread that is interrupted in between is late, not ahead.
//! 3. So the next reading is behind what was given only where the rate was measured too low, or
//!    the kernel slows its clock down. Then what was given stands until the clock has come there.
//!    A clock that is behind by more than [`JITTER_MICROS_MAX`] was set back, and is followed.

use std::cell::Cell;

/// Rule 1.
const CONTINUED_MICROS_MAX: u64 = 1000;
/// Rule 3. The kernel slows its clock by a two-thousandth at most, and the rate is measured to a
/// thousandth: together less than two microseconds of those that are continued.
const JITTER_MICROS_MAX: i64 = 5;

/// See the head of the file.
#[derive(Default)]
pub(super) struct WallClock {
    /// Turn of the reading.
    turn: Cell<u32>,
    /// The cycle counter at the reading.
    at_ticks: Cell<u64>,
    /// The reading, in microseconds.
    read_micros: Cell<i64>,
    /// What was given last.
    given_micros: Cell<i64>,
}

impl WallClock {
    /// Microseconds since 1970 in a turn. `ticks` reads the cycle counter, of which a microsecond
    /// has `ticks_per_microsecond`, and `read` the kernel's clock.
    #[inline]
    pub(super) fn micros(
        &self,
        turn: u32,
        ticks_per_microsecond: u64,
        ticks: impl Fn() -> u64,
        read: impl FnOnce() -> i64,
    ) -> i64 {
        let passed = ticks().saturating_sub(self.at_ticks.get()) / (ticks_per_microsecond + 1);
        let mut now = self.read_micros.get() + passed as i64;
        if turn != self.turn.get() || passed > CONTINUED_MICROS_MAX {
            now = read();
            self.turn.set(turn);
            self.at_ticks.set(ticks());
            self.read_micros.set(now);
        }
        let given = self.given_micros.get();
        if (1..=JITTER_MICROS_MAX).contains(&given.wrapping_sub(now)) {
            return given;
        }
        self.given_micros.set(now);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    const START_MICROS: i64 = 1_767_225_600_000_000;

    /// A kernel's clock and a cycle counter, both of one passing time.
    #[derive(Default)]
    struct World {
        nanos: Cell<u64>,
        /// Ticks of the counter in a second.
        frequency: u64,
        /// What the kernel's clock was set ahead by, microseconds.
        set_micros: i64,
        /// Parts of a million by which the kernel slows its clock.
        slowed: u64,
        /// For how long a reading is interrupted, before it and after it.
        interrupted_nanos: u64,
        /// For how long the last one was.
        last_interrupted_nanos: Cell<u64>,
        readings: Cell<u64>,
    }

    impl World {
        fn new(frequency: u64) -> Self {
            Self { nanos: Cell::new(1_000_000_000), frequency, ..Self::default() }
        }

        fn pass(&self, nanos: u64) {
            self.nanos.set(self.nanos.get() + nanos);
        }

        fn wall(&self) -> i64 {
            let passed = u128::from(self.nanos.get()) * u128::from(1_000_000 - self.slowed);
            START_MICROS + (passed / 1_000_000_000) as i64 + self.set_micros
        }

        fn ask(&self, clock: &WallClock, turn: u32, rate: u64) -> i64 {
            let frequency = u128::from(self.frequency);
            let ticks = || (u128::from(self.nanos.get()) * frequency / 1_000_000_000) as u64;
            clock.micros(turn, rate, ticks, || {
                self.readings.set(self.readings.get() + 1);
                self.last_interrupted_nanos.set(self.interrupted_nanos);
                self.pass(self.interrupted_nanos);
                let reading = self.wall();
                self.pass(self.interrupted_nanos);
                reading
            })
        }
    }

    /// Frequencies of the counter with the rate measured: right, cut off, a thousandth too low.
    const RATES: [(u64, u64); 6] = [
        (24_900_000, 24),
        (24_000_000, 24),
        (1_999_999_999, 1_999),
        (2_899_999_999, 2_899),
        (2_900_000_000, 2_897),
        (5_000_000_000, 4_995),
    ];

    #[test]
    fn time_never_goes_backward_and_is_nearly_right() {
        for ((frequency, rate), slowed) in RATES.into_iter().flat_map(|it| [(it, 0), (it, 500)]) {
            let mut world = World { slowed, ..World::new(frequency) };
            let (mut random, clock) = (Random::new(frequency), WallClock::default());
            let (mut turn, mut last) = (1, 0);
            for step in 0..20_000 {
                let most = *random.pick(&[30, 3_000, 300_000, 3_000_000]);
                world.pass(random.below(most));
                let most = *random.pick(&[1, 1, 900_000]);
                world.interrupted_nanos = random.below(most);
                turn += u32::from(random.one_in(50));
                let (now, right) = (world.ask(&clock, turn, rate), world.wall());
                assert!(now >= last, "{frequency} step {step}: {now} after {last}");
                last = now;
                let slowness = (CONTINUED_MICROS_MAX + 1) / rate;
                let late = 3 + slowness + world.last_interrupted_nanos.get() / 1_000;
                let allowed = right - late as i64..=right + JITTER_MICROS_MAX;
                assert!(allowed.contains(&now), "{frequency} step {step}: {now} at {right}");
            }
        }
    }

    #[test]
    fn the_clock_is_read_once_a_turn() {
        let (world, clock) = (World::new(3_000_000_000), WallClock::default());
        for turn in 1..=10 {
            for _ in 0..100 {
                world.pass(9_000);
                world.ask(&clock, turn, 3_000);
            }
            assert_eq!(world.readings.get(), u64::from(turn));
        }
        for long in 1..=3 {
            world.pass(1_200_000);
            world.ask(&clock, 10, 3_000);
            assert_eq!(world.readings.get(), 10 + long, "nor is a long turn without one");
        }
    }

    #[test]
    fn a_clock_that_is_set_is_followed() {
        for by_micros in [-3_600_000_000, -1_000, -6, 6, 1_000, 3_600_000_000] {
            for (turn, after_nanos) in [(1, 1_002_000), (2, 10)] {
                let mut world = World::new(3_000_000_000);
                let clock = WallClock::default();
                let before = world.ask(&clock, 1, 3_000);
                world.set_micros = by_micros;
                world.pass(after_nanos);
                let now = world.ask(&clock, turn, 3_000);
                assert_eq!(now, world.wall(), "from {before} by {by_micros} us");
            }
        }
    }

    #[test]
    fn what_was_given_stands_until_the_clock_has_come_there() {
        let (mut world, clock) = (World::new(3_000_000_000), WallClock::default());
        let given = world.ask(&clock, 1, 3_000);
        world.set_micros = -3;
        for turn in 2..6 {
            assert_eq!(world.ask(&clock, turn, 3_000), given.max(world.wall()));
            world.pass(1_000);
        }
        assert_eq!(world.ask(&clock, 6, 3_000), given + 1, "and no longer");
    }
}
