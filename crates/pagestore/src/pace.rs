//! How fast changed pages are written: the arithmetic, without clock, store or device.
//!
//! The log since the oldest change that is not on disk (its age A) is to stay near half of the cap
//! (A*). So the point below which changes are to be on disk advances through the log by
//!
//! ```text
//! v = W * (1 + 2 * (A - A*) / A*), within 0 and 4 W      W: bytes of log a second, smoothed
//! ```
//!
//! and what is written is exactly the pages whose oldest change lies below that point.
//!
//! 1. The point never lies further ahead of the oldest change than v advances in [`LEAD`]: who
//!    could not keep up is not made to hurry later for what was asked for meanwhile.
//! 2. Without new log everything becomes due, over [`IDLE_DRAIN`], not at once.
//! 3. Below 0.8 of the cap nobody waits. Above it each byte of log costs its writer time, by a
//!    parabola without a step ([`delay`]), which goes on beyond the cap: the log may grow past it,
//!    ever more slowly, and nothing ever waits for a flush to end.
//! 4. The cap is of records. Commits that come one at a time fill a block each and take many times
//!    as much in files; there the cap is as much less as keeps the files within [`FILES_MAX`] caps,
//!    and within one where the file system bounds it.
//! 5. The cap follows what the file system can give ([`wanted_cap`]). It falls with the age only
//!    ([`fitted_cap`]): nobody waits because somebody else has filled the disk.
//!
//! All of this is fed with times, so that it does the same in a simulation.

use std::time::Duration;

/// W follows the log in about this time.
const SMOOTHING: Duration = Duration::from_secs(1);
/// Invariant 1.
const LEAD: Duration = Duration::from_millis(500);
/// Without any log for so long, the rest is written too.
const IDLE_AFTER: Duration = Duration::from_secs(2);
/// Invariant 2.
const IDLE_DRAIN: Duration = Duration::from_secs(4);
/// The least log that is due at a time once anything is: shorter steps make tiny groups.
const STEP_BYTES: f64 = 4096.0;

/// Where back-pressure begins, as a share of the cap.
const DELAY_FROM: f64 = 0.8;
/// Invariant 4.
pub(crate) const FILES_MAX: u64 = 4;
/// What a commit of [`DELAY_BYTES`] waits at the cap.
const DELAY_AT_CAP: Duration = Duration::from_millis(10);
/// Log of an ordinary transaction, bytes.
const DELAY_BYTES: u64 = 4096;
/// Nobody waits longer at a time.
const DELAY_MAX: Duration = Duration::from_millis(100);

/// The log may grow to one of so many parts of what it and the file system have together.
const ROOM_PARTS: u64 = 8;
/// A cap that falls keeps the age at this share of it at most.
const FALL_SHARE: f64 = 0.7;

/// What the controller sees at a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Since the tick before.
    pub(crate) passed: Duration,
    /// End of the log.
    pub(crate) end: u64,
    /// Oldest change that is not on disk.
    pub(crate) oldest: Option<u64>,
    /// Cap of the log, bytes.
    pub(crate) cap: u64,
}

/// The controller's memory from tick to tick.
#[derive(Debug)]
pub(crate) struct Pace {
    end: u64,
    /// W.
    rate: f64,
    idle: Duration,
    point: f64,
}

impl Pace {
    pub(crate) fn new(end: u64) -> Pace {
        Pace { end, rate: 0.0, idle: Duration::ZERO, point: 0.0 }
    }

    /// One tick: changes below the position returned are to be written; 0 for none.
    pub(crate) fn tick(&mut self, look: &Look) -> u64 {
        let seconds = look.passed.as_secs_f64().max(1e-6);
        let grown = look.end.saturating_sub(self.end) as f64;
        self.end = look.end;
        let share = (seconds / SMOOTHING.as_secs_f64()).min(1.0);
        self.rate += (grown / seconds - self.rate) * share;
        self.idle = if grown == 0.0 { self.idle + look.passed } else { Duration::ZERO };
        let Some(oldest) = look.oldest else {
            self.point = look.end as f64;
            return 0;
        };
        let age = look.end.saturating_sub(oldest) as f64;
        let mut speed = self.rate * factor(age, look.cap);
        if self.idle >= IDLE_AFTER {
            speed = speed.max(age / IDLE_DRAIN.as_secs_f64()).max(STEP_BYTES / seconds);
        }
        let (oldest, end) = (oldest as f64, look.end as f64);
        let ahead = (speed * LEAD.as_secs_f64()).max(STEP_BYTES);
        self.point = (self.point.max(oldest) + speed * seconds).min(oldest + ahead).min(end);
        self.point.ceil() as u64
    }
}

/// v / W.
fn factor(age: f64, cap: u64) -> f64 {
    let goal = (cap as f64 / 2.0).max(1.0);
    (1.0 + 2.0 * (age - goal) / goal).clamp(0.0, 4.0)
}

/// What the cap means in bytes of records where `records` bytes of them lie in `files` bytes of
/// log files: the cap itself, as long as the files are not more than `files_max` at the cap
/// (invariant 4).
pub(crate) fn record_cap(cap: u64, records: u64, files: u64, files_max: u64) -> u64 {
    let most = u128::from(files_max) * u128::from(records) / u128::from(files.max(1));
    if files == 0 { cap } else { most.min(u128::from(cap)) as u64 }
}

/// How long a writer waits that has logged so many bytes, at this age (invariant 3).
pub(crate) fn delay(age: u64, cap: u64, logged_bytes: u64) -> Duration {
    let over = over(age, cap);
    if over <= 0.0 {
        return Duration::ZERO;
    }
    let share = logged_bytes as f64 / DELAY_BYTES as f64;
    let wait = DELAY_AT_CAP.as_secs_f64() * over * over * share;
    Duration::from_secs_f64(wait.min(DELAY_MAX.as_secs_f64()))
}

/// How far the age is above the begin of back-pressure: 0 there, 1 at the cap.
pub(crate) fn over(age: u64, cap: u64) -> f64 {
    let cap = (cap as f64).max(1.0);
    (age as f64 - DELAY_FROM * cap) / ((1.0 - DELAY_FROM) * cap)
}

/// What the log may grow to where its files take `taken` bytes and the file system can still give
/// `available`: a small part, not below `least`, not above the cap that was `set`.
pub(crate) fn wanted_cap(set: u64, least: u64, taken: u64, available: u64) -> u64 {
    (taken.saturating_add(available) / ROOM_PARTS).max(least).min(set)
}

/// The cap on its way to the wanted one, at this age in bytes of files (invariant 5).
pub(crate) fn fitted_cap(present: u64, wanted: u64, age: u64) -> u64 {
    if wanted >= present {
        return wanted;
    }
    present.min((age as f64 / FALL_SHARE) as u64).max(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(10);
    const MB: f64 = 1e6;

    /// A load that wants `wanted` bytes of log a second from `writers` writers, each commit
    /// of 4 KiB, against a device that can bring the oldest change forward by `device` bytes a
    /// second. The ages of all ticks, and the bytes logged in each.
    struct Model {
        pace: Pace,
        cap: u64,
        end: f64,
        oldest: f64,
        ages: Vec<f64>,
        logged: Vec<f64>,
        flushed: Vec<f64>,
    }

    impl Model {
        fn new(cap: u64) -> Model {
            let (ages, logged, flushed) = (Vec::new(), Vec::new(), Vec::new());
            Model { pace: Pace::new(0), cap, end: 0.0, oldest: 0.0, ages, logged, flushed }
        }

        fn run(&mut self, seconds: f64, wanted: f64, writers: f64, device: f64) {
            for _ in 0..(seconds / TICK.as_secs_f64()) as usize {
                let age = self.end - self.oldest;
                // Each writer takes its own time for a commit, and waits.
                let own = DELAY_BYTES as f64 * writers / wanted.max(1.0);
                let wait = delay(age as u64, self.cap, DELAY_BYTES).as_secs_f64();
                let rate =
                    if wanted == 0.0 { 0.0 } else { DELAY_BYTES as f64 * writers / (own + wait) };
                let grown = rate * TICK.as_secs_f64();
                self.end += grown;
                let oldest = (self.oldest < self.end).then_some(self.oldest as u64);
                let look = Look { passed: TICK, end: self.end as u64, oldest, cap: self.cap };
                let point = self.pace.tick(&look) as f64;
                let done = (point - self.oldest).clamp(0.0, device * TICK.as_secs_f64());
                self.oldest = (self.oldest + done).min(self.end);
                self.ages.push(self.end - self.oldest);
                self.logged.push(grown);
                self.flushed.push(done);
            }
        }

        fn age_share(&self) -> f64 {
            self.ages[self.ages.len() - 1] / self.cap as f64
        }
    }

    #[test]
    fn a_steady_load_comes_to_rest_at_half_of_the_cap_with_steady_writes() {
        let mut model = Model::new(64_000_000);
        model.run(120.0, 8.0 * MB, 16.0, 100.0 * MB);
        assert!((0.45..0.55).contains(&model.age_share()), "{}", model.age_share());
        let last = &model.flushed[model.flushed.len() - 3000..];
        let (least, most) = last.iter().fold((f64::MAX, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
        let mean = 8.0 * MB * TICK.as_secs_f64();
        assert!(least > 0.9 * mean && most < 1.1 * mean, "{least} to {most}, mean {mean}");
    }

    #[test]
    fn a_load_beyond_the_device_is_slowed_to_it_without_a_step() {
        let mut model = Model::new(64_000_000);
        model.run(120.0, 40.0 * MB, 16.0, 10.0 * MB);
        assert!((0.8..1.3).contains(&model.age_share()), "{}", model.age_share());
        let second = |at: usize| model.logged[at * 100..(at + 1) * 100].iter().sum::<f64>();
        let seconds: Vec<f64> = (0..120).map(second).collect();
        let (last, tail) = (seconds[119], &seconds[60..]);
        assert!((9.0 * MB..11.0 * MB).contains(&last), "the device's pace: {last}");
        assert!(tail.iter().all(|&bytes| bytes > 0.5 * last), "{tail:?}");
        // Nobody ever waits for a flush to end: there is log in every tick of a hundredth second.
        assert!(model.logged.iter().all(|&bytes| bytes > 0.0));
    }

    #[test]
    fn a_device_that_stands_still_lets_the_log_grow_past_the_cap_and_comes_back() {
        let mut model = Model::new(64_000_000);
        model.run(30.0, 8.0 * MB, 16.0, 100.0 * MB);
        model.run(20.0, 8.0 * MB, 16.0, 0.0);
        let grown = model.age_share();
        assert!(grown > 1.0, "soft: {grown}");
        model.run(10.0, 8.0 * MB, 16.0, 100.0 * MB);
        assert!(model.age_share() < 0.8, "{}", model.age_share());
        // Four times the log's rate at most, and what had been asked for already, although the
        // device could do a dozen times that.
        let most = model.flushed.windows(100).map(|ticks| ticks.iter().sum::<f64>());
        let most = most.fold(0.0, f64::max);
        let allowed = 4.0 * 8.1 * MB * (1.0 + LEAD.as_secs_f64());
        assert!(most <= allowed, "{most} of {allowed}");
    }

    #[test]
    fn late_ticks_do_not_matter() {
        for tick in [1, 10, 50] {
            let mut pace = Pace::new(0);
            let (mut end, mut oldest) = (0u64, 0u64);
            for _ in 0..60_000 / tick {
                end += 8_000 * tick;
                let passed = Duration::from_millis(tick);
                oldest = pace
                    .tick(&Look { passed, end, oldest: Some(oldest), cap: 64_000_000 })
                    .max(oldest);
            }
            let share = (end - oldest) as f64 / 64e6;
            assert!((0.4..0.6).contains(&share), "{tick} ms: {share}");
        }
    }

    #[test]
    fn without_log_the_rest_is_written_within_seconds_but_not_at_once() {
        let mut model = Model::new(64_000_000);
        model.run(10.0, 8.0 * MB, 16.0, 1000.0 * MB);
        let before = model.ages[model.ages.len() - 1];
        assert!(before > 10.0 * MB);
        model.run(2.5, 0.0, 16.0, 1000.0 * MB);
        assert!(model.ages[model.ages.len() - 1] > before / 2.0, "not at once");
        model.run(60.0, 0.0, 16.0, 1000.0 * MB);
        assert_eq!(model.ages[model.ages.len() - 1], 0.0);
    }

    #[test]
    fn files_take_a_few_caps_at_most_however_little_each_block_holds() {
        let cap = 96 << 20;
        let record_cap = |records, files| record_cap(cap, records, files, FILES_MAX * cap);
        assert_eq!(record_cap(0, 0), cap);
        assert_eq!(record_cap(1 << 20, 4 << 20), cap, "commits in groups");
        // Of each block of 4 KiB 214 bytes are used.
        let (records, files) = (214_000, 4_096_000);
        let lone = record_cap(records, files);
        let files_at_cap = lone as f64 * files as f64 / records as f64;
        let share = files_at_cap / cap as f64;
        assert!((3.99..4.01).contains(&share), "{share}");
        let huge = super::record_cap(u64::MAX / 8, 1 << 40, 1 << 50, u64::MAX / 2);
        assert_eq!(huge, u64::MAX / 2 / 1024);
        let bounded = super::record_cap(cap, records, files, cap) as f64;
        assert!((0.99..1.01).contains(&(bounded * files as f64 / records as f64 / cap as f64)));
    }

    #[test]
    fn delays_grow_with_the_age_and_with_the_bytes() {
        let at = |share: f64, bytes| delay((share * 1e9) as u64, 1_000_000_000, bytes);
        assert_eq!(at(0.8, 4096), Duration::ZERO);
        assert!((2.4..2.6).contains(&(at(0.9, 4096).as_secs_f64() * 1e3)));
        assert!((9.9..10.1).contains(&(at(1.0, 4096).as_secs_f64() * 1e3)));
        assert!(at(1.0, 1024) < at(1.0, 4096) / 3);
        assert_eq!(at(1.0, 1 << 20), DELAY_MAX);
        assert!(at(1.2, 4096) > at(1.0, 4096) * 3, "it goes on beyond the cap");
        assert!(at(0.801, 4096) < Duration::from_micros(1), "no step");
    }

    #[test]
    fn the_cap_is_a_small_part_of_what_there_is() {
        let mib = |n: u64| n << 20;
        let wanted =
            |taken, available| wanted_cap(mib(512), mib(32), mib(taken), mib(available)) >> 20;
        assert_eq!(wanted(48, 100_000), 512);
        assert_eq!(wanted(48, 500), 68);
        assert_eq!(wanted(300, 500), 100, "what the log has counts as well");
        assert_eq!(wanted(48, 0), 32);
        assert_eq!(wanted_cap(mib(4), mib(32), 0, mib(500)), mib(4), "never above what was set");
        assert_eq!(wanted_cap(u64::MAX, 1, u64::MAX, u64::MAX), u64::MAX / 8);
    }

    #[test]
    fn a_cap_that_falls_makes_nobody_wait() {
        let mut model = Model::new(64_000_000);
        model.run(60.0, 8.0 * MB, 16.0, 100.0 * MB);
        let age = |model: &Model| (model.end - model.oldest) as u64;
        let wanted = 8_000_000;
        let (mut ticks, mut former) = (0, model.cap);
        while model.cap > wanted && ticks < 6000 {
            model.cap = fitted_cap(model.cap, wanted, age(&model));
            assert!(model.cap <= former, "it only falls");
            former = model.cap;
            assert_eq!(delay(age(&model), model.cap, 1 << 20), Duration::ZERO);
            model.run(0.01, 8.0 * MB, 16.0, 100.0 * MB);
            ticks += 1;
        }
        assert_eq!(model.cap, wanted, "within a minute");
        assert_eq!(fitted_cap(wanted, 2 * wanted, age(&model)), 2 * wanted, "it grows at once");
    }
}
