//! One seed: several lives of one computer, each ended by a crash but the last.

use crate::client;
use crate::knobs::{Knobs, UNDO};
use crate::model::Resolution;
use crate::tail::{self, Place};
use crate::world::{Counts, History, World, wait_until_under_way};
use base::Random;
use engine_api::Engine;
use runtime::WaitClass;
use runtime::sim::{CrashKind, Disk, DiskStatistics, SimConfig, SimEnd, Simulation};
use runtime::sync::Semaphore;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An engine as the simulation starts and stops it. Called inside a simulation.
pub trait Subject: Send + Sync {
    /// Opens the engine on the simulated disk, creating it if there is none. Knobs that count at
    /// creation are chosen by `seed`, the others by `random`.
    fn open(
        &self,
        seed: u64,
        knobs: &Knobs,
        random: &mut Random,
    ) -> Result<Box<dyn Running>, String>;
    /// Looks through everything on the disk while the engine is closed; what is wrong.
    fn check(&self) -> Result<Vec<String>, String>;
    /// Where the last batch of its log lies, if it has any.
    fn last_log_batch(&self) -> Option<Place>;
    /// Whether it would open; whatever it writes then never reaches the disk.
    fn opens_in_memory(&self, seed: u64, knobs: &Knobs, random: &mut Random) -> bool;
    /// Whether it keeps anything over a crash.
    fn is_durable(&self) -> bool;
    /// Takes back what this engine cannot do from the seed's choices.
    fn limit(&self, knobs: &mut Knobs);
}

/// An engine that runs.
pub trait Running: Send {
    /// Its front.
    fn engine(&self) -> Arc<dyn Engine>;
    /// Shuts it down cleanly.
    fn close(self: Box<Self>) -> Result<(), String>;
}

/// After every so manieth life the end of the log rots for a while.
const TAIL_EVERY: u64 = 3;
/// In seeds that want undo cut off, one life in so many is.
const UNDO_EVERY: u64 = 3;
/// A recovery comes to its undo within this time, or there is nothing to undo.
const UNDO_MAX: Duration = Duration::from_millis(500);
/// Tells the numbers for that from those of the lives.
const TAIL_STREAM: u64 = 0x7A11 << 32;

/// What a seed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeedReport {
    /// Operations done.
    pub operations: u64,
    /// Commits that returned.
    pub commits: u64,
    /// Changes of definitions that committed.
    pub definition_changes: u64,
    /// Crashes.
    pub crashes: u64,
    /// Crashes before recovery had ended.
    pub crashes_during_recovery: u64,
    /// Commits under way at a crash that survived it.
    pub survived: u64,
    /// Commits under way at a crash that did not.
    pub lost: u64,
    /// Transactions open at a crash.
    pub undone: u64,
    /// What the disk counted.
    pub disk: DiskStatistics,
    /// Equal for two runs of a seed.
    pub trace: u64,
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Replay it.
    pub seed: u64,
    /// Which life, from 0.
    pub life: u64,
    /// What happened.
    pub message: String,
}

/// A disk that no life fills, and that never has plenty.
const SMALL_DISK_BYTES: u64 = 1 << 30;

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {} life {}: {}", self.seed, self.life, self.message)
    }
}

/// How a life ends: by the first of these, or cleanly.
#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    /// The power fails at this step, often before recovery has ended.
    at_step: Option<u64>,
    /// The power fails after the operation that leaves so many to do.
    at_operation: Option<i64>,
}

struct Seed {
    subject: Arc<dyn Subject>,
    number: u64,
    random: Random,
    knobs: Knobs,
    history: Arc<History>,
    counts: Arc<Counts>,
    report: SeedReport,
    life: u64,
    /// The power has failed since the last recovery that came to its end.
    power_failed: bool,
    /// The present life has begun to close the engine.
    is_closing: Arc<AtomicBool>,
}

/// Runs a seed with about so many operations.
pub fn run_seed(
    subject: &Arc<dyn Subject>,
    number: u64,
    operations: u64,
) -> Result<SeedReport, Failure> {
    let mut random = Random::new(number);
    let mut knobs = Knobs::new(number, &mut random);
    subject.limit(&mut knobs);
    let mut seed = Seed {
        subject: subject.clone(),
        number,
        random,
        knobs,
        history: History::new(operations as i64),
        counts: Arc::default(),
        report: SeedReport { operations, ..SeedReport::default() },
        life: 0,
        power_failed: false,
        is_closing: Arc::default(),
    };
    let result = seed.run();
    result.map_err(|message| Failure { seed: number, life: seed.life, message })?;
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    seed.report.commits = count(&seed.counts.commits);
    seed.report.definition_changes = count(&seed.counts.definition_changes);
    Ok(seed.report)
}

impl Seed {
    fn run(&mut self) -> Result<(), String> {
        let mut disk: Option<Disk> = None;
        loop {
            let ending = self.choose_ending();
            let mut simulation = self.simulation(disk.take(), ending);
            let is_ready = Arc::new(AtomicBool::new(false));
            self.trace(|| format!("life {}: to end {ending:?}", self.life));
            // What fibers of former simulations had begun is gone with them.
            base::under_way::forget_all();
            let ended = self.one_life(&mut simulation, ending, &is_ready);
            self.report.trace = self.report.trace.rotate_left(7) ^ simulation.trace_hash();
            match ended {
                Ok(()) => {
                    // A clean end has synced everything: the power may go.
                    let disk = simulation.crash(CrashKind::Power);
                    self.report.disk = disk.statistics();
                    return self.final_check(disk);
                }
                Err(SimEnd::Crashed) => {
                    self.report.crashes += 1;
                    note_interrupted();
                    if !is_ready.load(Ordering::Relaxed) {
                        self.report.crashes_during_recovery += 1;
                    }
                    let kinds = [CrashKind::Power, CrashKind::Power, CrashKind::Process];
                    let kind = *self.random.pick(&kinds);
                    // What the death of the process left, a power failure can still lose until
                    // a recovery has come to its end.
                    let was_resolved = is_ready.load(Ordering::Relaxed);
                    self.power_failed =
                        kind == CrashKind::Power || (self.power_failed && !was_resolved);
                    let (life, steps) = (self.life, simulation.steps());
                    self.trace(|| {
                        format!("life {life}: {kind:?} crash, ready {was_resolved}, step {steps}")
                    });
                    let crashed = simulation.crash(kind);
                    // What a clean shutdown has settled needs no log.
                    let was_closing = self.is_closing.load(Ordering::Relaxed);
                    let has_tail = was_resolved && !was_closing;
                    disk = Some(match has_tail && self.life.is_multiple_of(TAIL_EVERY) {
                        true => self.rot_the_tail(crashed)?,
                        false => crashed,
                    });
                }
                Err(other) => return Err(other.to_string()),
            }
            self.life += 1;
        }
    }

    /// Draws nothing from the seed's numbers and leaves the disk as it is: the lives that follow
    /// are the same with it and without.
    fn rot_the_tail(&self, disk: Disk) -> Result<Disk, String> {
        let random = Random::new(self.number.wrapping_mul(1_000) + self.life + TAIL_STREAM);
        tail::rot(&self.subject, self.number, &self.knobs, disk, random)
    }

    fn trace(&self, line: impl FnOnce() -> String) {
        if std::env::var_os("GANNET_SIM_TRACE").is_some() {
            eprintln!("{}", line());
        }
    }

    fn choose_ending(&mut self) -> Ending {
        let left = self.history.operations_left();
        if !self.subject.is_durable() || left <= 0 {
            return Ending::default();
        }
        let mut ending = Ending::default();
        if self.life > 0 && self.random.one_in(3) {
            let scale = *self.random.pick(&[50, 500, 5_000]);
            ending.at_step = Some(1 + self.random.below(scale));
        }
        // Each life takes a share; what is left then goes to the next.
        let share = (self.report.operations / self.knobs.parts()).max(2);
        let taken = 1 + self.random.below(share) as i64;
        if taken < left {
            ending.at_operation = Some(left - taken);
        }
        ending
    }

    fn simulation(&mut self, disk: Option<Disk>, ending: Ending) -> Simulation {
        let mut config = SimConfig::new(self.number.wrapping_mul(1_000) + self.life);
        config.crash_at_step = ending.at_step;
        match disk {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        }
    }

    fn one_life(
        &mut self,
        simulation: &mut Simulation,
        ending: Ending,
        is_ready: &Arc<AtomicBool>,
    ) -> Result<(), SimEnd> {
        let subject = self.subject.clone();
        let (history, counts) = (self.history.clone(), self.counts.clone());
        let (number, knobs, is_ready) = (self.number, self.knobs.clone(), is_ready.clone());
        let (is_power, is_closing) = (self.power_failed, self.is_closing.clone());
        is_closing.store(false, Ordering::Relaxed);
        let mut random = self.random.fork();
        let delay = Duration::from_micros(random.below(3_000));
        let crash = ending.at_operation.map(|left| (left, delay));
        let resolved = Arc::new(Mutex::new(Resolution::default()));
        let note = resolved.clone();
        let has_crashed = self.report.crashes > 0;
        let wants_undo = self.knobs.crash_within == Some(UNDO) && self.life % UNDO_EVERY == 1;
        let is_for_undo = wants_undo && has_crashed && self.history.operations_left() > 0;
        let has_plenty = (self.number + self.life).is_multiple_of(2);
        let ended = simulation.run(move || {
            // Every other life holds a reserve (pagestore/src/reserve.rs).
            let disk = runtime::sim::disk().expect("this is a simulation");
            disk.set_quota((!has_plenty).then_some(SMALL_DISK_BYTES));
            if has_crashed && random.one_in(4) {
                check_offline(&*subject, "after a crash");
            }
            if is_for_undo {
                drop(runtime::spawn("power-failure", || {
                    wait_until_under_way(UNDO, UNDO_MAX);
                    if base::under_way::names().contains(&UNDO) {
                        runtime::sim::crash_now();
                    }
                }));
            }
            let running = subject
                .open(number, &knobs, &mut random)
                .unwrap_or_else(|error| panic!("violation: the engine does not open: {error}"));
            let closed_history = history.clone();
            let (world, resolution) =
                World::attach(running.engine(), knobs, history, counts, is_power, crash);
            *note.lock().unwrap_or_else(PoisonError::into_inner) = resolution;
            is_ready.store(true, Ordering::Relaxed);
            work(&world, &mut random);
            if crash.is_some() {
                runtime::sleep(Duration::from_secs(1));
            }
            world.check_all();
            drop(world);
            is_closing.store(true, Ordering::Relaxed);
            let closed = running.close();
            closed.unwrap_or_else(|error| panic!("violation: the engine does not close: {error}"));
            closed_history.closed();
        });
        let resolution = *resolved.lock().unwrap_or_else(PoisonError::into_inner);
        self.report.survived += resolution.survived;
        self.report.lost += resolution.lost;
        self.report.undone += resolution.undone;
        ended
    }

    /// After the clean end: nothing is wrong on the disk, and a new start finds everything.
    fn final_check(&mut self, disk: Disk) -> Result<(), String> {
        if !self.subject.is_durable() {
            return Ok(());
        }
        self.life += 1;
        let mut simulation = self.simulation(Some(disk), Ending::default());
        let subject = self.subject.clone();
        let (history, counts) = (self.history.clone(), self.counts.clone());
        let number = self.number;
        let (knobs, mut random) = (self.knobs.clone(), self.random.fork());
        let ended = simulation.run(move || {
            check_offline(&*subject, "after a clean end");
            let running = subject
                .open(number, &knobs, &mut random)
                .unwrap_or_else(|error| panic!("violation: the engine does not open: {error}"));
            World::attach(running.engine(), knobs, history, counts, false, None);
            let closed = running.close();
            closed.unwrap_or_else(|error| panic!("violation: the engine does not close: {error}"));
        });
        self.report.trace = self.report.trace.rotate_left(7) ^ simulation.trace_hash();
        ended.map_err(|end| end.to_string())
    }
}

/// Counts what a crash has cut off.
fn note_interrupted() {
    for name in base::under_way::names() {
        match name {
            "pagestore.collection" => base::probe!("sim.crash_in_collection"),
            "engine.checkpoint" => base::probe!("sim.crash_in_checkpoint"),
            "engine.redo" => base::probe!("sim.crash_in_redo"),
            "engine.undo" => base::probe!("sim.crash_in_undo"),
            _ => {}
        }
    }
}

/// Looks through everything while the engine is closed; that changes nothing on the disk.
fn check_offline(subject: &dyn Subject, when: &str) {
    let contents = || {
        let disk = runtime::sim::disk().expect("this is a simulation");
        let paths = disk.paths().into_iter();
        paths.map(|path| (disk.content(&path), path)).collect::<Vec<_>>()
    };
    let before = contents();
    let findings = subject.check().unwrap_or_else(|error| panic!("violation: {error}"));
    assert!(findings.is_empty(), "violation: the offline check {when} found {findings:#?}");
    assert!(contents() == before, "violation: the offline check {when} changed the disk");
}

/// The clients and the changes of definitions, to their end. Nobody joins their fibers, so the
/// first violation ends the simulation at once.
pub fn work(world: &Arc<World>, random: &mut Random) {
    let finished = Arc::new(Semaphore::new(0, WaitClass::Join));
    let mut fibers = 0;
    for _ in 0..world.knobs.clients {
        let (world, random, finished) = (world.clone(), random.fork(), finished.clone());
        fibers += 1;
        drop(runtime::spawn("client", move || {
            client::run(&world, random);
            drop(world);
            finished.release(1);
        }));
    }
    if world.knobs.definition_pauses > 0 {
        let (world, mut random, finished) = (world.clone(), random.fork(), finished.clone());
        fibers += 1;
        drop(runtime::spawn("definitions", move || {
            while world.take_operation() {
                let pause = world.knobs.pause(&mut random);
                runtime::sleep(pause * world.knobs.definition_pauses);
                world.change_definition(&mut random);
            }
            drop(world);
            finished.release(1);
        }));
    }
    drop(finished.acquire(fibers, None));
}
