//! Disks that fail, are full, rot or lie, and what the engine must make of it:
//!
//! | fault | expected |
//! |---|---|
//! | a sync or write fails | the engine stops; the next start has every acknowledged commit |
//! | a read fails | an error for who reads; later the row is there |
//! | no space | an error for the statement; work goes on when there is space |
//! | a crash and a start without space | the start has every acknowledged commit, reads go on |
//! | rot, stale reads, misdirected and lost writes | an error for who reads, never a wrong row |
//!
//! Where the log is at its end, too, a start without space may wait, or be refused, until there
//! is some.
//!
//! What a lying disk has lost of the log is found by the next start if anything tells of it, so
//! those seeds end with one more start that may refuse.

use crate::campaign::{self, Campaign};
use crate::knobs::Knobs;
use crate::life::work;
use crate::reading::verify_rows;
use crate::session::Session;
use crate::subjects;
use crate::world::{Counts, History, World, options};
use base::Random;
use engine::{Engine, OpenError};
use engine_api::EngineError;
use runtime::JoinHandle;
use runtime::sim::{CrashKind, Disk, Faults, Operation, SimConfig, SimEnd, Simulation};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What the disk does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A sync fails; what it covered is durable or lost.
    SyncError,
    /// A write fails; some of its sectors are done.
    WriteError,
    /// Reads fail.
    ReadError,
    /// No space for a while.
    NoSpace,
    /// No space, a crash meanwhile, and still none for the next start.
    NoSpaceAtStart,
    /// Bits of what is read have rotted.
    BitRot,
    /// Reads give what stood there before.
    StaleRead,
    /// Writes go to another place.
    MisdirectedWrite,
    /// Writes go nowhere.
    LostWrite,
}

const KINDS: [FaultKind; 9] = [
    FaultKind::SyncError,
    FaultKind::WriteError,
    FaultKind::ReadError,
    FaultKind::NoSpace,
    FaultKind::NoSpaceAtStart,
    FaultKind::BitRot,
    FaultKind::StaleRead,
    FaultKind::MisdirectedWrite,
    FaultKind::LostWrite,
];

const EIO: i32 = 5;
/// A start that waits for space gets some after this time.
const RESCUE_AFTER: Duration = Duration::from_secs(60);
/// Rows can be inserted so soon after there is space again.
const SPACE_IS_SEEN_WITHIN: Duration = Duration::from_secs(2);
/// Lives of a seed at most.
const LIVES_MAX: u64 = 40;
/// Faults of a seed whose faults stop the engine.
const STOPS_WANTED: u64 = 4;

impl FaultKind {
    /// Whether the engine may answer this because of the fault.
    pub fn allows(self, error: &EngineError) -> bool {
        match self {
            Self::SyncError | Self::WriteError => matches!(error, EngineError::Failed(_)),
            Self::NoSpace | Self::NoSpaceAtStart => {
                matches!(error, EngineError::DiskFull | EngineError::OutOfMemory(_))
            }
            _ => matches!(
                error,
                EngineError::Corrupt { .. } | EngineError::HalfUndone | EngineError::Failed(_)
            ),
        }
    }

    /// Whether one fault ends the engine's life.
    pub fn stops(self) -> bool {
        matches!(self, Self::SyncError | Self::WriteError)
    }

    /// Whether the disk says that all is well.
    fn is_lie(self) -> bool {
        !self.stops() && !matches!(self, Self::ReadError | Self::NoSpace | Self::NoSpaceAtStart)
    }

    fn chances(self, chance: f64) -> Faults {
        let mut faults = Faults::default();
        match self {
            Self::ReadError => faults.read_error = chance,
            Self::BitRot => faults.bit_rot = chance,
            Self::StaleRead => faults.stale_read = chance,
            Self::MisdirectedWrite => faults.misdirected_write = chance,
            Self::LostWrite => faults.lost_write = chance,
            Self::SyncError | Self::WriteError | Self::NoSpace | Self::NoSpaceAtStart => {}
        }
        faults
    }

    /// Makes the disk do it.
    fn strike(self, disk: &Disk, notes: &Notes, random: &mut Random) {
        let part = *random.pick(&["/db/wal", "/db/data"]);
        let skip = random.below(8);
        match self {
            Self::SyncError => disk.fail_once(Operation::Sync, part, skip, EIO),
            Self::WriteError => disk.fail_once(Operation::Write, part, skip, EIO),
            Self::NoSpace => {
                // Longer than what grows waits for space before it is refused.
                disk.set_quota(Some(disk.used_bytes() + random.below(128 << 10)));
                runtime::sleep(Duration::from_millis(1 + random.below(6_000)));
                disk.set_quota(None);
            }
            Self::NoSpaceAtStart => {
                if !random.one_in(4) {
                    // Not at one gulp: the store sees that space gets less, and gets its reserve.
                    disk.set_quota(Some(disk.used_bytes() + (64 << 20)));
                    runtime::sleep(Duration::from_millis(1_500));
                }
                disk.set_quota(Some(disk.used_bytes() + random.below(128 << 10)));
                runtime::sleep(Duration::from_micros(random.below(600_000)));
                notes.is_full.store(true, Ordering::Relaxed);
                runtime::sim::crash_now();
            }
            _ => disk.set_faults(self.chances(*random.pick(&[0.02, 0.2, 0.5]))),
        }
    }
}

/// What seeds of one kind of fault did.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    seeds: u64,
    injected: u64,
    errors: u64,
    stops: u64,
    refused: u64,
    right: u64,
    commits: u64,
}

impl Report {
    fn add(&mut self, other: &Report) {
        self.seeds += other.seeds;
        self.injected += other.injected;
        self.errors += other.errors;
        self.stops += other.stops;
        self.refused += other.refused;
        self.right += other.right;
        self.commits += other.commits;
    }
}

/// Sums by kind of fault.
#[derive(Debug, Default)]
pub struct FaultSummary([Report; KINDS.len()]);

impl FaultSummary {
    /// Faults of each kind that happened.
    pub fn injected(&self) -> Vec<(FaultKind, u64)> {
        KINDS.iter().zip(&self.0).map(|(&kind, report)| (kind, report.injected)).collect()
    }
}

impl fmt::Display for FaultSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, report) in KINDS.iter().zip(&self.0) {
            let Report { seeds, injected, errors, stops, refused, right, commits } = report;
            writeln!(
                formatter,
                "{kind:?}: {seeds} seeds, {injected} faults, {errors} errors told, {stops} stops, \
                 {refused} starts refused, {right} rows right, {commits} commits"
            )?;
        }
        write!(formatter, "no violation")
    }
}

/// What the lives of a seed share.
#[derive(Debug, Default)]
struct Notes {
    is_ready: AtomicBool,
    stops: AtomicU64,
    refused: AtomicU64,
    right: AtomicU64,
    /// The disk was full when the last life ended, and is.
    is_full: AtomicBool,
    full_starts: AtomicU64,
}

struct Seed {
    number: u64,
    kind: FaultKind,
    knobs: Knobs,
    history: Arc<History>,
    counts: Arc<Counts>,
    notes: Arc<Notes>,
    power_failed: bool,
}

fn run_seed(number: u64, operations: u64) -> Result<Report, String> {
    let mut random = Random::new(number ^ 0xFA_0175);
    let kind = KINDS[number as usize % KINDS.len()];
    let mut knobs = Knobs::new(number, &mut random);
    knobs.definition_pauses = 0;
    (knobs.is_for_log, knobs.is_for_readers) = (false, false);
    knobs.fault = Some(kind);
    if !kind.stops() {
        // Much more than the pool takes.
        for shape in &mut knobs.shapes {
            (shape.ids, shape.body_bytes) = (4_000, 1_500);
        }
    }
    let mut seed = Seed {
        number,
        kind,
        knobs,
        history: History::new(operations as i64),
        counts: Arc::default(),
        notes: Arc::default(),
        power_failed: false,
    };
    let injected = seed.run(&mut random)?;
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let errors = count(&seed.counts.errors);
    Ok(Report {
        seeds: 1,
        injected: match kind {
            FaultKind::NoSpace => errors,
            FaultKind::NoSpaceAtStart => count(&seed.notes.full_starts),
            _ => injected,
        },
        errors,
        stops: count(&seed.notes.stops),
        refused: count(&seed.notes.refused),
        right: count(&seed.notes.right),
        commits: count(&seed.counts.commits),
    })
}

impl Seed {
    /// Returns how many faults the disk counted.
    fn run(&mut self, random: &mut Random) -> Result<u64, String> {
        let mut disk: Option<Disk> = None;
        for life in 0..LIVES_MAX {
            let config = SimConfig::new(self.number.wrapping_mul(1_000) + life);
            let mut simulation = match disk.take() {
                None => Simulation::new(config),
                Some(disk) => Simulation::with_disk(config, disk),
            };
            self.notes.is_ready.store(false, Ordering::Relaxed);
            let last_start = self.kind.is_lie() && life > 0;
            let ended = match last_start {
                true => self.start_once_more(&mut simulation, random.fork()),
                false => self.one_life(&mut simulation, random.fork()),
            };
            match ended {
                Ok(()) => return Ok(simulation.crash(CrashKind::Process).statistics().faults),
                Err(SimEnd::Crashed) => {
                    // A device that has lost what a sync covered will not find it again.
                    let kind = match self.kind {
                        FaultKind::SyncError => CrashKind::Power,
                        kind if kind.is_lie() => CrashKind::Process,
                        _ => *random.pick(&[CrashKind::Power, CrashKind::Process]),
                    };
                    let was_ready = self.notes.is_ready.load(Ordering::Relaxed);
                    self.power_failed =
                        kind == CrashKind::Power || (self.power_failed && !was_ready);
                    disk = Some(simulation.crash(kind));
                }
                Err(other) => {
                    return Err(format!(
                        "seed {} life {life}, {:?}: {other}",
                        self.number, self.kind
                    ));
                }
            }
        }
        Err(format!("seed {}: {LIVES_MAX} lives and no end", self.number))
    }

    fn one_life(&self, simulation: &mut Simulation, mut random: Random) -> Result<(), SimEnd> {
        let (number, kind, knobs) = (self.number, self.kind, self.knobs.clone());
        let (history, counts, notes) =
            (self.history.clone(), self.counts.clone(), self.notes.clone());
        let is_power = self.power_failed;
        let wants_fault = !kind.stops() || notes.stops.load(Ordering::Relaxed) < STOPS_WANTED;
        simulation.run(move || {
            let Some(engine) = start(number, kind, &notes, &mut random) else {
                runtime::sim::crash_now();
            };
            let closed_history = history.clone();
            let (world, _) = World::attach(engine.clone(), knobs, history, counts, is_power, None);
            notes.is_ready.store(true, Ordering::Relaxed);
            if notes.is_full.swap(false, Ordering::Relaxed) {
                // Every row was read and found right; now there is space again.
                notes.full_starts.fetch_add(1, Ordering::Relaxed);
                runtime::sim::disk().expect("this is a simulation").set_quota(None);
                runtime::sleep(Duration::from_secs(2));
                work_goes_on(&world, &mut random);
            } else if kind == FaultKind::NoSpaceAtStart {
                // The start may have waited for the space that there is now.
                runtime::sleep(Duration::from_secs(2));
            }
            let has_work = world.operations_left() > 0;
            let fault = if wants_fault && has_work {
                spawn_fault(&world, kind, &notes, random.fork())
            } else {
                None
            };
            work(&world, &mut random);
            let disk = runtime::sim::disk().expect("this is a simulation");
            if kind.stops() {
                // Whatever writes and syncs by the clock may still meet the fault.
                runtime::sleep(Duration::from_secs(3));
            } else if matches!(kind, FaultKind::NoSpace | FaultKind::NoSpaceAtStart) {
                // The shortage may outlast the work.
                if let Some(fault) = fault {
                    fault.join().unwrap_or_else(|panic| panic.resume());
                }
                runtime::sleep(SPACE_IS_SEEN_WITHIN);
                work_goes_on(&world, &mut random);
            } else if has_work {
                // Once while the disk is as it is, once more when it is sound again.
                notes.right.fetch_add(verify_rows(&world), Ordering::Relaxed);
                disk.set_faults(Faults::default());
                notes.right.fetch_add(verify_rows(&world), Ordering::Relaxed);
                runtime::sim::crash_now();
            }
            world.check_all();
            drop(world);
            let closed = engine.close();
            closed.unwrap_or_else(|error| panic!("violation: the engine does not close: {error}"));
            closed_history.closed();
        })
    }

    /// The disk lied: a start finds it out, or works.
    fn start_once_more(
        &self,
        simulation: &mut Simulation,
        mut random: Random,
    ) -> Result<(), SimEnd> {
        let (number, kind, notes) = (self.number, self.kind, self.notes.clone());
        simulation.run(move || match start(number, kind, &notes, &mut random) {
            Some(engine) => drop(engine.close()),
            None => drop(notes.refused.fetch_add(1, Ordering::Relaxed)),
        })
    }
}

/// Opens the engine; `None` where a fault explains that it does not open.
fn start(
    number: u64,
    kind: FaultKind,
    notes: &Arc<Notes>,
    random: &mut Random,
) -> Option<Arc<Engine>> {
    let mut engine_options = subjects::options(number, random);
    // So that rows leave memory and are read again: eight chunks, so that some may be lent.
    engine_options.buffer_pool_bytes = 272 << 10;
    let noted = notes.clone();
    engine_options.on_fatal = Arc::new(move |detail| {
        assert!(kind.stops() || kind.is_lie(), "violation: fatal without a cause: {detail}");
        noted.stops.fetch_add(1, Ordering::Relaxed);
        runtime::sim::crash_now();
    });
    if kind == FaultKind::NoSpaceAtStart {
        // Files of the log that hold more than its ring, as those of a server.
        engine_options.log_ring_bytes = 512 << 10;
        engine_options.first_log_file_bytes = 4 << 20;
        engine_options.max_log_file_bytes = 4 << 20;
        let noted = notes.clone();
        drop(runtime::spawn("rescue", move || {
            // A start whose log needs another file waits for space, like any writer of the log.
            runtime::sleep(RESCUE_AFTER);
            if noted.is_full.swap(false, Ordering::Relaxed) {
                noted.refused.fetch_add(1, Ordering::Relaxed);
                runtime::sim::disk().expect("this is a simulation").set_quota(None);
            }
        }));
    }
    match Engine::open(engine_options) {
        Ok((engine, _)) => Some(engine),
        // The log has no room left for undoing what was unfinished.
        Err(OpenError::Engine(EngineError::DiskFull))
            if notes.is_full.swap(false, Ordering::Relaxed) =>
        {
            notes.refused.fetch_add(1, Ordering::Relaxed);
            runtime::sim::disk().expect("this is a simulation").set_quota(None);
            None
        }
        Err(_) if kind.stops() || kind.is_lie() => None,
        // What was armed for reads is over when the life is.
        Err(error) => panic!("violation: the engine does not open: {error}"),
    }
}

/// Strikes after some of the operations.
fn spawn_fault(
    world: &Arc<World>,
    kind: FaultKind,
    notes: &Arc<Notes>,
    mut random: Random,
) -> Option<JoinHandle<()>> {
    let left = world.operations_left();
    if left <= 0 {
        return None;
    }
    let at = left - 1 - random.below((left as u64 / 2).max(1)) as i64;
    let (world, notes) = (world.clone(), notes.clone());
    Some(runtime::spawn("fault", move || {
        while world.operations_left() > at {
            runtime::sleep(Duration::from_micros(100));
        }
        let disk = runtime::sim::disk().expect("this is a simulation");
        world.has_faults.store(true, Ordering::Relaxed);
        kind.strike(&disk, &notes, &mut random);
    }))
}

/// With space on the disk a transaction commits again.
fn work_goes_on(world: &Arc<World>, random: &mut Random) {
    world.has_faults.store(false, Ordering::Relaxed);
    let table = world.table(0).expect("the first table stays");
    for _ in 0..50 {
        let promise = crate::model::Promise::Power;
        let mut session = Session::begin(world.clone(), options(), promise);
        if session.insert_small(&table, random) {
            return session.commit();
        }
        session.roll_back();
    }
    panic!("violation: nothing can be inserted though there is space");
}

/// Runs the seeds; the first failure ends it.
pub fn campaign(seeds: &Campaign) -> Result<FaultSummary, String> {
    let run = |seed| campaign::without_panics(seed, || run_seed(seed, seeds.operations));
    seeds.sum(run, |sums: &mut FaultSummary, seed, report| {
        sums.0[seed as usize % KINDS.len()].add(&report);
    })
}
