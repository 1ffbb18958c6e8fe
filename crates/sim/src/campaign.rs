//! Many seeds, and the sums over them.

use crate::life::{Failure, SeedReport, Subject, run_seed};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Instant;

/// Which seeds to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// First seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// Operations of each.
    pub operations: u64,
    /// Threads; each runs whole simulations of its own.
    pub threads: u64,
}

impl Campaign {
    /// Runs the seeds on threads of their own and adds up their reports; the first failure ends it.
    pub fn sum<Total, Report, Failure>(
        &self,
        run: impl Fn(u64) -> Result<Report, Failure> + Sync,
        add: impl Fn(&mut Total, u64, Report) + Sync,
    ) -> Result<Total, Failure>
    where
        Total: Default + Send,
        Failure: Send,
    {
        let next = AtomicU64::new(self.first);
        let end = self.first + self.seeds;
        let total = Mutex::new(Ok(Total::default()));
        let run_some = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end {
                    return;
                }
                let result = run(seed);
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                match (&mut *total, result) {
                    (Ok(total), Ok(report)) => add(total, seed, report),
                    (Ok(_), Err(failure)) => *total = Err(failure),
                    (Err(_), _) => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(run_some);
            }
        });
        total.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sums over all seeds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Seeds run.
    pub seeds: u64,
    /// Sums of the reports.
    pub total: SeedReport,
    /// What the rooms counted, by the names below.
    pub events: Vec<(&'static str, u64)>,
    /// Times recovery met an intact batch of a former run where the log ends.
    pub stale_tails: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// Events that must all have happened in a campaign: printed name, and the metrics or probes
/// that count it.
const EVENTS: [(&str, &[&str]); 25] = [
    ("collections", &["pagestore_collected"]),
    ("segment reuses", &["pagestore_segment_reused"]),
    ("evictions", &["pagestore_evicted"]),
    ("splits", &["btree_splits"]),
    ("merges", &["btree_merges"]),
    ("torn groups", &["pagestore_torn_group"]),
    ("log wraps", &["wal_files_recycled"]),
    ("log file switches", &["wal_file_switches"]),
    ("changes of codecs", &["sim.codec_changed"]),
    ("crashes in collections", &["sim.crash_in_collection"]),
    ("crashes in checkpoints", &["sim.crash_in_checkpoint"]),
    ("crashes before the end of redo", &["sim.crash_in_redo"]),
    ("crashes before the end of undo", &["sim.crash_in_undo"]),
    ("pages checked: none", &["pagestore.checked.none"]),
    ("pages checked: lz4", &["pagestore.checked.lz4"]),
    ("pages checked: zstd", &["pagestore.checked.zstd"]),
    ("pages checked: zlib", &["pagestore.checked.zlib"]),
    ("pages checked: lzo", &["pagestore.checked.lzo"]),
    ("pages checked: lzma", &["pagestore.checked.lzma"]),
    ("pages checked: bzip2", &["pagestore.checked.bzip2"]),
    ("pages checked: snappy", &["pagestore.checked.snappy"]),
    ("pages checked: with a dictionary", &["pagestore.checked.dictionary"]),
    ("dictionaries made", &["pagestore_dictionary_made"]),
    ("copies compressed anew", &["pagestore_compressed_anew"]),
    ("copies by LZ4 in place of zstd", &["pagestore_lz4_for_zstandard"]),
];

/// Events of [`EVENTS`] that say what a crash has cut off.
const CUT_OFF: [&str; 4] = [
    "crashes in collections",
    "crashes in checkpoints",
    "crashes before the end of redo",
    "crashes before the end of undo",
];

/// Fewer seeds than this need not have met everything.
const SEEDS_FOR_ALL_EVENTS: u64 = 50;

fn events() -> Vec<(&'static str, u64)> {
    let probes = base::probe::counts();
    let value = |name: &str| {
        let metric = base::metrics::value(name).unwrap_or(0).max(0) as u64;
        metric + probes.get(name).copied().unwrap_or(0)
    };
    let sum = |names: &[&str]| names.iter().map(|name| value(name)).sum();
    EVENTS.iter().map(|&(event, names)| (event, sum(names))).collect()
}

/// Runs the seeds; the first failure ends it.
pub fn run(subject: &Arc<dyn Subject>, campaign: &Campaign) -> Result<Summary, String> {
    let started = Instant::now();
    let before = events();
    let stale_before = base::probe::count("wal.stale_tail");
    let run = |seed| run_caught(subject, seed, campaign.operations);
    let total = campaign.sum(run, |total: &mut SeedReport, _, report| total.add(&report));
    let total = total.map_err(|failure| {
        let operations = campaign.operations;
        format!("{failure}\nreplay with --seed {} --operations {operations}", failure.seed)
    })?;
    let after = events();
    let events = after.iter().zip(&before).map(|(after, before)| (after.0, after.1 - before.1));
    let seconds = started.elapsed().as_secs_f64();
    let stale_tails = base::probe::count("wal.stale_tail") - stale_before;
    let seeds = campaign.seeds;
    Ok(Summary { seeds, total, events: events.collect(), stale_tails, seconds })
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
    /// Panics since that seed began.
    static PANICS: Cell<u64> = const { Cell::new(0) };
}

/// Makes every panic name its seed first: not all of them come back as a failure (a panic under a
/// latch ends the process).
pub fn name_seed_in_panics() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            eprintln!("seed {}:", SEED.get());
            usual(panic);
        }));
    });
}

/// Runs a seed, which fails if any of its fibers panics: of those in the background nobody may ask
/// how they ended before the simulated crash.
pub fn without_panics<T>(seed: u64, run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    name_seed_in_panics();
    SEED.set(seed);
    PANICS.set(0);
    let report = run()?;
    match PANICS.get() {
        0 => Ok(report),
        panics => Err(format!("seed {seed}: violation: {panics} fibers panicked")),
    }
}

/// A seed that panics outside a fiber has failed, too.
pub fn run_caught(
    subject: &Arc<dyn Subject>,
    seed: u64,
    operations: u64,
) -> Result<SeedReport, Failure> {
    SEED.set(seed);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_seed(subject, seed, operations)
    }));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Failure { seed, life: 0, message: text.unwrap_or_default() })
    })
}

impl SeedReport {
    /// Adds the numbers of another seed.
    pub fn add(&mut self, other: &SeedReport) {
        self.operations += other.operations;
        self.commits += other.commits;
        self.definition_changes += other.definition_changes;
        self.crashes += other.crashes;
        self.crashes_during_recovery += other.crashes_during_recovery;
        self.survived += other.survived;
        self.lost += other.lost;
        self.undone += other.undone;
        self.disk.torn_writes += other.disk.torn_writes;
        self.disk.dropped_sectors += other.disk.dropped_sectors;
        self.disk.kept_sectors += other.disk.kept_sectors;
        self.disk.writes += other.disk.writes;
        self.disk.syncs += other.disk.syncs;
        self.disk.reads += other.disk.reads;
        self.trace ^= other.trace;
    }
}

impl Summary {
    /// Everything that must have happened, with how often.
    fn required(&self) -> Vec<(&'static str, u64)> {
        let mut required = self.events.clone();
        required.extend([
            ("torn writes", self.total.disk.torn_writes),
            ("crashes during recovery", self.total.crashes_during_recovery),
        ]);
        required
    }

    /// Fails if one of the events that must happen never did. What a crash cut off is known where
    /// there are debug assertions only (`base::under_way`).
    pub fn require(&self, subject: &Arc<dyn Subject>, seeds: u64) -> Result<(), String> {
        if !subject.is_durable() || seeds < SEEDS_FOR_ALL_EVENTS {
            return Ok(());
        }
        let is_known = |name: &str| cfg!(debug_assertions) || !CUT_OFF.contains(&name);
        let mut required = self.required().into_iter();
        let missing = required.find(|&(name, count)| count == 0 && is_known(name));
        missing.map_or(Ok(()), |(name, _)| Err(format!("no {name} in {seeds} seeds")))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SeedReport { operations, commits, definition_changes, crashes, .. } = self.total;
        let SeedReport { survived, lost, undone, disk, .. } = self.total;
        let (seeds, seconds) = (self.seeds, self.seconds);
        writeln!(formatter, "{seeds} seeds, {operations} operations, {seconds:.1} s")?;
        writeln!(formatter, "  commits {commits}, changes of definitions {definition_changes}")?;
        writeln!(formatter, "  crashes {crashes}: commits under way that survived {survived},")?;
        writeln!(formatter, "    that did not {lost}, open transactions undone {undone}")?;
        writeln!(
            formatter,
            "  disk: {} reads, {} writes, {} syncs, sectors dropped {}",
            disk.reads, disk.writes, disk.syncs, disk.dropped_sectors
        )?;
        writeln!(formatter, "  stale log tails met: {}", self.stale_tails)?;
        for (name, count) in self.required() {
            writeln!(formatter, "  {name}: {count}")?;
        }
        write!(formatter, "no violation")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::sim::{SimConfig, SimEnd, Simulation};

    #[test]
    fn a_panic_that_nobody_asks_for_fails_the_seed() {
        let seed = |panics: bool| {
            without_panics(7, || {
                let ran = Simulation::new(SimConfig::new(7)).run(move || {
                    let _background = runtime::spawn("background", move || assert!(!panics));
                    runtime::sleep(std::time::Duration::from_secs(1));
                    runtime::sim::crash_now()
                });
                match ran {
                    Err(SimEnd::Crashed) => Ok(()),
                    other => other.map_err(|end| end.to_string()),
                }
            })
        };
        assert_eq!(seed(false), Ok(()));
        assert!(seed(true).is_err_and(|told| told.contains("seed 7")), "the fiber panicked");
        assert_eq!(seed(false), Ok(()), "it is forgotten with its seed");
    }
}
