//! Which codec a page is really written with: the one its tree asks for, LZ4 or none while cores
//! are short, or none where compression gains nothing.
//!
//! 1. A page that has a copy on disk is written as it is asked for as long as flushers keep up.
//!    Busy cores alone are no shortage: somebody who asks for a small store does not ask for it
//!    only at night. Short are cores for it when pages wait to be written and most of that time
//!    goes into compression.
//! 2. While that is so, a growing share of the pages is written with LZ4 instead, page by page;
//!    when it is not any more, the share falls more slowly than it grew.
//! 3. A new page, as of a load, is written as it is, whatever is asked for, as soon as workers wait
//!    for cores ([`WAIT_SHORT`]), or fibers for workers ([`CROWDED_SHORT`]), if there is room
//!    (`is_roomy` of disk.rs). So is a page again that was written so and is written in full before
//!    it was compressed. A load takes no longer by that because its tables are compressed.
//! 4. All of these are *deferred*: compressed as asked when cores are not short (catch_up.rs).
//! 5. A tree whose pages gain nothing is left uncompressed, but for one page in
//!    [`PROBE_EVERY`]: when that gains, attempts begin again.
//!
//! Every copy names its codec, so nothing of this shows to who reads.

use base::{TreeId, buggify_with};
use codec::{Codec, CodecId};
use runtime::sync::Mutex;
use runtime::{Instant, Pressure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Cores are short when workers spend this share of the time waiting for one ...
const WAIT_SHORT: f64 = 0.08;
/// ... or this share of it with fibers that wait for others ...
const CROWDED_SHORT: f64 = 0.5;
/// ... and not any more when it is less than this.
const WAIT_ENOUGH: f64 = 0.03;
const CROWDED_ENOUGH: f64 = 0.3;
/// Time over which these shares are smoothed.
const WAIT_SMOOTHING: Duration = Duration::from_millis(500);
/// Compression may take this share of the flushers' time before it counts as what holds them up.
const COMPRESSION_SHARE: f64 = 0.5;
/// How often the share changes.
const PERIOD: Duration = Duration::from_millis(100);
/// Pages of [`SHARE_ALL`] that fall back more, or fewer, after a period.
const SHARE_UP: u32 = 8;
const SHARE_DOWN: u32 = 1;
const SHARE_ALL: u32 = 64;

/// Trees share so many estimates, by number.
const ESTIMATES: usize = 1024;
/// A rate of gains of 1.
const RATE_ONE: u32 = 1024;
/// Weight of the last page in it.
const RATE_SHIFT: u32 = 4;
/// Below this rate pages are not tried any more. A probe that gains lifts it to just this.
const RATE_MIN: u32 = RATE_ONE >> RATE_SHIFT;
/// Invariant 5.
const PROBE_EVERY: u32 = 64;

/// What is decided for a page.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// As its tree asks for.
    Asked,
    /// LZ4 in its place.
    Fallback(Arc<dyn Codec>),
    /// As it is, to be compressed later.
    Deferred,
    /// Not tried: the tree's pages gain nothing.
    Skip,
}

/// What the controller sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Since the look before.
    pub(crate) passed: Duration,
    /// Pages wait to be written: commits or frames do, or are about to.
    pub(crate) is_behind: bool,
    /// Time that flushers have spent compressing, and writing, since the start.
    pub(crate) compress_nanos: u64,
    pub(crate) write_nanos: u64,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Governor {
    lz4: Arc<dyn Codec>,
    /// Of [`SHARE_ALL`] pages so many fall back.
    share: AtomicU32,
    turn: AtomicU32,
    estimates: Box<[Estimate]>,
    seen: Mutex<Seen>,
    waiting: Mutex<Waiting>,
    catch_up_after: Duration,
    /// Invariant 3.
    are_cores_short: AtomicBool,
}

/// What share of the time workers wait for cores, and fibers for workers.
#[derive(Debug, Default)]
struct Waiting {
    /// When that was looked at last, and how long they had waited until then.
    seen: Option<(Instant, Pressure)>,
    wait_share: f64,
    crowded_share: f64,
    /// When cores were short last.
    short_at: Option<Instant>,
}

#[derive(Debug, Default)]
struct Seen {
    passed: Duration,
    was_behind: bool,
    compress_nanos: u64,
    write_nanos: u64,
}

/// Whether the pages of a tree gain.
#[derive(Debug)]
struct Estimate {
    rate: AtomicU32,
    skipped: AtomicU32,
}

impl Governor {
    pub(crate) fn new(catch_up_after: Duration) -> Governor {
        let estimate = |_| Estimate { rate: AtomicU32::new(RATE_ONE), skipped: AtomicU32::new(0) };
        Governor {
            lz4: Arc::from(codec::codec(CodecId::Lz4, 0)),
            share: AtomicU32::new(0),
            turn: AtomicU32::new(0),
            estimates: (0..ESTIMATES).map(estimate).collect(),
            seen: Mutex::default(),
            waiting: Mutex::default(),
            catch_up_after,
            are_cores_short: AtomicBool::new(false),
        }
    }

    /// What is used in the place of dearer codecs.
    pub(crate) fn lz4(&self) -> Arc<dyn Codec> {
        self.lz4.clone()
    }

    /// What to do with a page of a tree that asks for this codec. `may_wait`: it is new or its copy
    /// waits already, and there is room for it larger than it is to be.
    pub(crate) fn choose(&self, tree: TreeId, asked: CodecId, may_wait: bool) -> Choice {
        if asked != CodecId::None && self.of_tree(tree).is_hopeless() {
            return Choice::Skip;
        }
        if may_wait && asked != CodecId::None && (self.are_cores_short() || buggify_with!(0.3)) {
            return Choice::Deferred;
        }
        let share = self.share.load(Ordering::Relaxed);
        if share > 0 && is_dear(asked) {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed);
            // Spread over the pages, not the first ones of every 64.
            if turn.wrapping_mul(37) % SHARE_ALL < share {
                return Choice::Fallback(self.lz4.clone());
            }
        }
        Choice::Asked
    }

    /// A page of the tree was tried.
    pub(crate) fn note(&self, tree: TreeId, has_gained: bool) {
        self.of_tree(tree).note(has_gained);
    }

    /// The tree asks for something else from now on.
    pub(crate) fn forget(&self, tree: TreeId) {
        self.of_tree(tree).rate.store(RATE_ONE, Ordering::Relaxed);
    }

    fn of_tree(&self, tree: TreeId) -> &Estimate {
        &self.estimates[tree.get() as usize % ESTIMATES]
    }

    /// All trees may ask for something else.
    pub(crate) fn forget_all(&self) {
        self.estimates.iter().for_each(|one| one.rate.store(RATE_ONE, Ordering::Relaxed));
    }

    /// Of a thousand pages with a dear codec so many fall back.
    pub(crate) fn share_permille(&self) -> u64 {
        u64::from(self.share.load(Ordering::Relaxed)) * 1000 / u64::from(SHARE_ALL)
    }

    /// Whether there is more work than cores.
    pub(crate) fn are_cores_short(&self) -> bool {
        self.are_cores_short.load(Ordering::Relaxed)
    }

    /// Whether cores have not been short for the time that is asked for before pages are
    /// compressed anew.
    pub(crate) fn have_cores_rested(&self, now: Instant) -> bool {
        self.waiting.lock().short_at.is_none_or(|at| now - at >= self.catch_up_after)
    }

    /// A look at how scarce cores were since the start; as often as anybody likes.
    pub(crate) fn look_at_cores(&self, now: Instant, pressure: impl FnOnce() -> Pressure) {
        let mut waiting = self.waiting.lock();
        let passed = waiting.seen.map_or(PERIOD, |(before, _)| now - before);
        if passed < PERIOD {
            return;
        }
        let now_is = pressure();
        if let Some((_, before)) = waiting.seen.replace((now, now_is)) {
            let weight = (passed.as_secs_f64() / WAIT_SMOOTHING.as_secs_f64()).min(1.0);
            let smooth = |share: &mut f64, before: Duration, since: Duration| {
                let last = since.saturating_sub(before).as_secs_f64() / passed.as_secs_f64();
                *share += (last - *share) * weight;
            };
            smooth(&mut waiting.wait_share, before.core_wait, now_is.core_wait);
            smooth(&mut waiting.crowded_share, before.crowded, now_is.crowded);
        }
        let (wait, crowded) = match self.are_cores_short() {
            true => (WAIT_ENOUGH, CROWDED_ENOUGH),
            false => (WAIT_SHORT, CROWDED_SHORT),
        };
        let is_short = waiting.wait_share > wait || waiting.crowded_share > crowded;
        if is_short {
            waiting.short_at = Some(now);
        }
        self.are_cores_short.store(is_short, Ordering::Relaxed);
    }

    /// A look of the controller; every few milliseconds.
    pub(crate) fn look(&self, load: &Load) {
        let mut seen = self.seen.lock();
        seen.passed += load.passed;
        seen.was_behind |= load.is_behind;
        if seen.passed < PERIOD {
            return;
        }
        let compress = load.compress_nanos.saturating_sub(seen.compress_nanos) as f64;
        let write = load.write_nanos.saturating_sub(seen.write_nanos) as f64;
        let is_compression = compress > 0.0 && compress >= COMPRESSION_SHARE * (compress + write);
        let is_short = seen.was_behind && is_compression;
        *seen = Seen {
            compress_nanos: load.compress_nanos,
            write_nanos: load.write_nanos,
            ..Seen::default()
        };
        drop(seen);
        let share = self.share.load(Ordering::Relaxed);
        let next = match is_short {
            true => (share + SHARE_UP).min(SHARE_ALL),
            false => share.saturating_sub(SHARE_DOWN),
        };
        self.share.store(next, Ordering::Relaxed);
    }
}

impl Estimate {
    fn note(&self, has_gained: bool) {
        let rate = self.rate.load(Ordering::Relaxed);
        let gained = if has_gained { RATE_MIN } else { 0 };
        // Of several flushers one may be forgotten.
        self.rate.store(rate - (rate >> RATE_SHIFT) + gained, Ordering::Relaxed);
    }

    /// Whether the next page need not be tried.
    fn is_hopeless(&self) -> bool {
        if self.rate.load(Ordering::Relaxed) >= RATE_MIN {
            return false;
        }
        let skipped = self.skipped.fetch_add(1, Ordering::Relaxed) + 1;
        !skipped.is_multiple_of(PROBE_EVERY)
    }
}

/// Whether the codec takes much more time than LZ4.
fn is_dear(id: CodecId) -> bool {
    matches!(id, CodecId::Zstd | CodecId::Zlib | CodecId::Lzma | CodecId::Bzip2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZLIB: CodecId = CodecId::Zlib;

    fn fallbacks(governor: &Governor, id: CodecId) -> usize {
        let choose = |_| governor.choose(TreeId::new(7), id, false);
        (0..640).map(choose).filter(|choice| matches!(choice, Choice::Fallback(_))).count()
    }

    fn waits(core_wait: Duration) -> Pressure {
        Pressure { core_wait, ..Pressure::default() }
    }

    fn quiet() -> Load {
        Load { passed: PERIOD, is_behind: false, compress_nanos: 0, write_nanos: 0 }
    }

    #[test]
    fn busy_flushers_that_keep_up_compress_as_they_are_asked() {
        let governor = Governor::new(Duration::from_secs(10));
        for period in 1..50 {
            let compress_nanos = period * 90_000_000;
            governor.look(&Load { compress_nanos, ..quiet() });
        }
        assert_eq!(fallbacks(&governor, ZLIB), 0);
        // Behind, but it is the device that is slow.
        for period in 1..50 {
            let write_nanos = period * 90_000_000;
            governor.look(&Load { is_behind: true, write_nanos, ..quiet() });
        }
        assert_eq!(fallbacks(&governor, ZLIB), 0);
    }

    #[test]
    fn pages_fall_back_by_and_by_and_return_more_slowly() {
        let governor = Governor::new(Duration::from_secs(10));
        let mut compress_nanos = 0;
        let mut behind = |governor: &Governor| {
            compress_nanos += 90_000_000;
            governor.look(&Load { is_behind: true, compress_nanos, ..quiet() });
        };
        behind(&governor);
        assert_eq!(fallbacks(&governor, ZLIB), 80, "an eighth");
        assert_eq!(fallbacks(&governor, CodecId::Lz4), 0, "nothing to be gained");
        (0..10).for_each(|_| behind(&governor));
        assert_eq!(fallbacks(&governor, ZLIB), 640);
        (0..32).for_each(|_| governor.look(&quiet()));
        assert_eq!(fallbacks(&governor, ZLIB), 320);
        (0..32).for_each(|_| governor.look(&quiet()));
        assert_eq!(fallbacks(&governor, ZLIB), 0);
    }

    /// Cores are looked at every tenth of a second in which workers have waited so many ms.
    #[test]
    fn new_pages_wait_while_workers_wait_for_cores() {
        let governor = Governor::new(Duration::from_secs(10));
        let is_deferred = |may_wait: bool, id: CodecId| {
            let choice = governor.choose(TreeId::new(7), id, may_wait);
            matches!(choice, Choice::Deferred)
        };
        let (mut tenths, mut waited) = (0, Duration::ZERO);
        let mut wait = |periods: u64, millis: u64| {
            for _ in 0..periods {
                tenths += 1;
                waited += Duration::from_millis(millis);
                let now = Instant::from_nanos(tenths * 100_000_000);
                governor.look_at_cores(now, || waits(waited));
            }
        };
        wait(50, 5);
        assert!(!is_deferred(true, ZLIB), "a twentieth is not short");
        wait(1, 14);
        assert!(!is_deferred(true, ZLIB), "nor is a moment");
        wait(10, 14);
        assert!(is_deferred(true, ZLIB), "a seventh of the time");
        assert!(!is_deferred(false, ZLIB), "a page that has a copy, or no room");
        assert!(is_deferred(true, CodecId::Lz4), "it takes a tenth of a load");
        assert!(!is_deferred(true, CodecId::None));
        wait(50, 5);
        assert!(is_deferred(true, ZLIB), "not so soon back");
        wait(10, 1);
        assert!(!is_deferred(true, ZLIB));
        let now = |tenths: u64| Instant::from_nanos(tenths * 100_000_000);
        assert!(!governor.have_cores_rested(now(200)) && governor.have_cores_rested(now(230)));
    }

    #[test]
    fn cores_are_short_too_when_fibers_wait_for_workers() {
        let governor = Governor::new(Duration::from_secs(10));
        let mut crowded = Duration::ZERO;
        let mut second = |at: u64, share: f64| {
            crowded += Duration::from_secs_f64(share);
            let pressure = Pressure { crowded, ..Pressure::default() };
            governor.look_at_cores(Instant::from_nanos(at * 1_000_000_000), || pressure);
            governor.are_cores_short()
        };
        assert!(!second(1, 0.0) && !second(2, 0.4) && second(3, 0.6));
        assert!(second(4, 0.4), "not so soon back");
        assert!(!second(5, 0.2));
    }

    #[test]
    fn trees_that_gain_nothing_are_probed_now_and_then() {
        let governor = Governor::new(Duration::from_secs(10));
        let tree = TreeId::new(9);
        let tried = |count: usize, gains: bool| {
            let mut tried = 0;
            for _ in 0..count {
                if let Choice::Asked = governor.choose(tree, ZLIB, false) {
                    tried += 1;
                    governor.note(tree, gains);
                }
            }
            tried
        };
        assert!((30..60).contains(&tried(100, false)), "it takes some pages to know");
        assert_eq!(tried(6400, false), 100);
        let other = governor.choose(TreeId::new(10), ZLIB, false);
        assert!(matches!(other, Choice::Asked), "others are not concerned");
        assert!(tried(6400, true) > 6300, "the first probe that gains is enough");
        (0..100).for_each(|_| governor.note(tree, false));
        governor.forget(tree);
        assert_eq!(tried(1, true), 1, "another codec, another chance");
    }
}
