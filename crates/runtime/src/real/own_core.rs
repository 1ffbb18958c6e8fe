//! When a worker keeps to a core of its own.
//!
//! The kernel wakes a worker where the device's interrupt comes in, or where its client runs. A
//! device with one queue, or a kernel that gathers what it wakes, so has several workers stand on
//! one core behind each other while another core is idle: each read then waits for the core longer
//! than for a fast device. A worker that keeps to a core of its own waits half as long; but where
//! another program has that core it would wait for ever so long, and where no files are read the
//! kernel knows better. So:
//! 1. A worker takes its own core, for a try, when its fibers read files and it has waited for a
//!    core long enough to care.
//! 2. It leaves it when it waits clearly more there than it did before, by what it runs, and rests
//!    before the next try, longer with each try in vain. As long as before is no reason: what the
//!    kernel has spread by chance it gathers again.
//! 3. It leaves it when its fibers read no more, and now and then, to see anew what waiting is like
//!    without.
//! 4. Cores are taken only where there are as many workers as cores that the process may use (each
//!    worker has its own), and by a thread that may still use all of these: who gave a thread fewer
//!    has a reason.
//! 5. A thread that a worker starts must not inherit its core: see [`Cores::use_all`].

use super::group::Group;
use crate::clock::thread_cpu_nanos;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

/// What is compared is what was in a period of so long, or the first window behind it.
const PERIOD_NANOS: u64 = 100_000_000;

/// Files are read if there are so many reads in a period.
const READS_MANY: u32 = 100;

/// Who has waited for less, by a thousandth of what it ran, does not care.
const WAIT_PERMILLE: u64 = 250;

/// Waits on the own core are more if they are so many thousandths of what they were elsewhere.
const MORE_PERMILLE: u64 = 1250;

/// The first rest after a try in vain, and the longest.
const REST_NANOS: [u64; 2] = [1_000_000_000, 64_000_000_000];

/// A core that was kept for so long was no try in vain.
const KEPT_NANOS: u64 = 5_000_000_000;

/// How long a core is kept before the worker looks what it is like without.
const ANEW_NANOS: u64 = 30_000_000_000;

/// The cores that this process could use when it started.
#[derive(Debug, Default)]
pub(super) struct Cores {
    /// What the kernel was asked for; none where it did not say.
    all: Option<libc::cpu_set_t>,
    /// Which core is whose: by the worker's number. Empty: nobody's (rule 4).
    owned: Vec<usize>,
}

impl Cores {
    /// Of so many workers.
    pub(super) fn of_process(workers: usize) -> Self {
        let all = allowed();
        // Two hardware threads of one core disturb each other: the first workers, which get work
        // first, have the first of each.
        let mut owned: Vec<_> =
            all.iter().flat_map(members).map(|it| (sibling_number(it), it)).collect();
        owned.sort_unstable();
        let owned = owned.into_iter().map(|(_, core)| core).collect::<Vec<_>>();
        Self { all, owned: if owned.len() == workers { owned } else { Vec::new() } }
    }

    /// Whether the current thread has it now.
    fn take(&self, number: usize) -> bool {
        let Some(core) = self.owned.get(number) else { return false };
        let may = allowed().iter().flat_map(members).eq(self.all.iter().flat_map(members));
        may && allow(&only(*core))
    }

    /// The thread of a worker, or one that a worker started, may use all cores again if it has
    /// nothing but a worker's own.
    pub(super) fn use_all(&self) {
        let has = allowed().map(|it| members(&it).collect::<Vec<_>>()).unwrap_or_default();
        if let (Some(all), [core]) = (&self.all, &has[..])
            && self.owned.contains(core)
        {
            // Without it the thread is slower, and as right.
            allow(all);
        }
    }
}

/// The cores that the current thread may use. None if there are more than the C library's set
/// holds.
fn allowed() -> Option<libc::cpu_set_t> {
    let mut set = no_core();
    // SAFETY: a valid place of this size.
    let status = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    (status == 0).then_some(set)
}

/// Sets what [`allowed`] gives.
fn allow(set: &libc::cpu_set_t) -> bool {
    // SAFETY: a valid set of this size.
    unsafe { libc::sched_setaffinity(0, size_of_val(set), set) == 0 }
}

fn no_core() -> libc::cpu_set_t {
    // SAFETY: bits, of which none is set.
    unsafe { std::mem::zeroed() }
}

fn only(core: usize) -> libc::cpu_set_t {
    let mut set = no_core();
    // SAFETY: `core` came from a set of this size.
    unsafe { libc::CPU_SET(core, &mut set) };
    set
}

fn members(set: &libc::cpu_set_t) -> impl Iterator<Item = usize> {
    // SAFETY: numbers below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, set) })
}

/// Which one of its core's hardware threads the kernel's "cpu" of this number is; the first where
/// the kernel does not say.
fn sibling_number(cpu: usize) -> usize {
    let directory = Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}"));
    let text = std::fs::read_to_string(directory.join("topology/thread_siblings_list"));
    cpu_list(&text.unwrap_or_default()).iter().position(|it| *it == cpu).unwrap_or(0)
}

/// The kernel's format of lists: `0,32` or `0-3,8`.
fn cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// A worker's own account.
#[derive(Default)]
pub(crate) struct OwnCore {
    begin: Cell<Reading>,
    /// Reads of files begun since the period began.
    reads: Cell<u32>,
    judge: Judge,
}

/// What the kernel has counted for a thread until some time.
#[derive(Clone, Copy, Default)]
struct Reading {
    at_nanos: u64,
    ran_nanos: u64,
    waited: Duration,
}

impl OwnCore {
    /// A window with so many reads of files has ended.
    pub(super) fn close_window(&self, number: usize, group: &Group, now_nanos: u64, reads: u32) {
        self.reads.set(self.reads.get().saturating_add(reads));
        let begin = self.begin.get();
        if now_nanos.saturating_sub(begin.at_nanos) < PERIOD_NANOS {
            return;
        }
        let Some(waited) = group.core_wait(number) else { return };
        let end = Reading { at_nanos: now_nanos, ran_nanos: thread_cpu_nanos(), waited };
        self.begin.set(end);
        let waited_nanos = end.waited.saturating_sub(begin.waited).as_nanos() as u64;
        let wait_permille = waited_nanos * 1000 / (end.ran_nanos - begin.ran_nanos).max(1);
        match self.judge.judge(now_nanos, self.reads.replace(0), wait_permille) {
            Verdict::Stay => {}
            Verdict::Take => self.judge.has.set(group.cores.take(number)),
            Verdict::Leave => group.cores.use_all(),
        }
        group.note_own_core(number, self.judge.has.get());
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Stay,
    Take,
    Leave,
}

/// Rules 1 to 3.
#[derive(Default)]
struct Judge {
    /// The worker has its own core.
    has: Cell<bool>,
    since_nanos: Cell<u64>,
    /// What it waited for a core when it had none of its own, by what it ran: the mean of the last
    /// periods. None before a first one in which it read files.
    without_permille: Cell<Option<u64>>,
    /// The same since it has one.
    with_permille: Cell<u64>,
    rest_nanos: Cell<u64>,
    rests_until_nanos: Cell<u64>,
}

impl Judge {
    /// A period has ended.
    fn judge(&self, now_nanos: u64, reads: u32, wait_permille: u64) -> Verdict {
        if self.has.get() {
            self.leaves(now_nanos, reads, wait_permille)
        } else {
            self.takes(now_nanos, reads, wait_permille)
        }
    }

    fn takes(&self, now_nanos: u64, reads: u32, wait_permille: u64) -> Verdict {
        let is_reading = reads >= READS_MANY;
        let mean = mean(self.without_permille.get().unwrap_or(wait_permille), wait_permille);
        self.without_permille.set(is_reading.then_some(mean));
        let cares = is_reading && wait_permille >= WAIT_PERMILLE;
        if !cares || now_nanos < self.rests_until_nanos.get() {
            return Verdict::Stay;
        }
        self.has.set(true);
        self.since_nanos.set(now_nanos);
        self.with_permille.set(mean);
        Verdict::Take
    }

    fn leaves(&self, now_nanos: u64, reads: u32, wait_permille: u64) -> Verdict {
        self.with_permille.set(mean(self.with_permille.get(), wait_permille));
        let bearable_permille = self.without_permille.get().unwrap_or(0) * MORE_PERMILLE / 1000;
        let is_in_vain = self.with_permille.get() > bearable_permille.max(WAIT_PERMILLE);
        let kept_nanos = now_nanos.saturating_sub(self.since_nanos.get());
        if reads >= READS_MANY && !is_in_vain && kept_nanos < ANEW_NANOS {
            return Verdict::Stay;
        }
        self.has.set(false);
        let [first, longest] = REST_NANOS;
        if kept_nanos >= KEPT_NANOS {
            self.rest_nanos.set(0);
        }
        if is_in_vain {
            self.rest_nanos.set((2 * self.rest_nanos.get()).clamp(first, longest));
            self.rests_until_nanos.set(now_nanos + self.rest_nanos.get());
        }
        Verdict::Leave
    }
}

/// Of the last periods, from what it was.
fn mean(former: u64, last: u64) -> u64 {
    former - former / 4 + last / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIODS_PER_SECOND: u64 = 10;

    /// Judges periods, of which every one has so many reads and waits (without and with an own
    /// core); how many of them were on the own core.
    fn owned(judge: &Judge, from_seconds: u64, seconds: u64, reads: u32, waits: [u64; 2]) -> u64 {
        let periods =
            from_seconds * PERIODS_PER_SECOND..(from_seconds + seconds) * PERIODS_PER_SECOND;
        let count = |period: u64| {
            let has = judge.has.get();
            judge.judge(period * PERIOD_NANOS, reads, waits[usize::from(has)]);
            u64::from(has)
        };
        periods.map(count).sum()
    }

    #[test]
    fn a_core_that_helps_is_kept() {
        let owned = owned(&Judge::default(), 0, 100, 1000, [880, 470]);
        assert!((990..1000).contains(&owned), "{owned} of a thousand periods");
    }

    #[test]
    fn who_reads_little_or_waits_little_takes_none() {
        assert_eq!(owned(&Judge::default(), 0, 100, READS_MANY - 1, [880, 0]), 0);
        assert_eq!(owned(&Judge::default(), 0, 100, 1000, [WAIT_PERMILLE - 1, 0]), 0);
    }

    #[test]
    fn a_core_where_another_program_runs_is_tried_ever_less_often() {
        let judge = Judge::default();
        let first_minute = owned(&judge, 0, 64, 1000, [1300, 11_000]);
        assert!((5..=7).contains(&first_minute), "{first_minute} periods");
        assert!(owned(&judge, 64, 640, 1000, [1300, 11_000]) <= 11);
        // When it has gone the core is taken within the longest rest, and kept.
        owned(&judge, 704, 65, 1000, [880, 470]);
        assert_eq!(owned(&judge, 769, 10, 1000, [880, 470]), 100);
        // It comes back, and goes.
        assert_eq!(owned(&judge, 779, 1, 1000, [1300, 11_000]), 1);
        assert!(owned(&judge, 780, 10, 1000, [880, 470]) >= 90);
    }

    #[test]
    fn what_is_no_better_and_a_bad_period_are_no_reasons_to_leave() {
        let judge = Judge::default();
        assert!(owned(&judge, 0, 20, 1000, [500, 500]) > 190);
        assert_eq!(judge.judge(PERIOD_NANOS * 200, 1000, 900), Verdict::Stay);
        assert_eq!(judge.judge(PERIOD_NANOS * 201, 1000, 500), Verdict::Stay);
    }

    #[test]
    fn who_stops_reading_leaves_and_may_come_back() {
        let judge = Judge::default();
        owned(&judge, 0, 1, 1000, [880, 470]);
        assert_eq!(judge.judge(PERIOD_NANOS * 10, 0, 0), Verdict::Leave);
        assert_eq!(judge.judge(PERIOD_NANOS * 11, 1000, 880), Verdict::Take);
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(cpu_list("0,32\n"), [0, 32]);
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpu_list(""), [0; 0]);
    }

    /// A thread has its own core until it may use all again; what it starts may too.
    #[test]
    fn a_core_is_taken_and_left() {
        let count = allowed().iter().flat_map(members).count();
        let cores = Cores::of_process(count);
        let has = || allowed().iter().flat_map(members).collect::<Vec<_>>();
        let in_thread = || {
            let all = has();
            assert!(cores.take(count - 1));
            assert_eq!(has(), [cores.owned[count - 1]]);
            // Rule 4: it may not use all.
            assert!(count == 1 || !cores.take(0));
            let inherits = || {
                cores.use_all();
                assert_eq!(has(), all);
            };
            std::thread::scope(|scope| scope.spawn(inherits).join()).expect("no panic");
            cores.use_all();
            assert_eq!(has(), all);
        };
        std::thread::scope(|scope| scope.spawn(in_thread).join()).expect("no panic");
        assert!(!Cores::of_process(count + 1).take(0), "more workers than cores");
    }
}
