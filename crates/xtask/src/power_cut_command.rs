//! `cargo xtask power-cut`: the real server on a file system that loses what was not synced.
//!
//! The data directory lies on a [`lossy`] disk behind FUSE. A round lets clients work, cuts the
//! power at some operation, kills the server, decides by the seed what of the unsynced is left
//! (dropped, torn between sectors, later writes kept and earlier ones not), starts the server
//! again and has the bank verify every row. The cuts come:
//! * anywhere under the load,
//! * in a checkpoint: before or after writes and syncs of the superblock,
//! * while segments are collected,
//! * in the recovery from a former cut.
//!
//! `--mutants`: builds with a planted defect in the order of syncs must fail a round.

use crate::arguments::Arguments;
use crate::bank::Bank;
use crate::crash_command::{StoreWork, check_offline, codecs, small_units};
use crate::process::Server;
use crate::random::Random;
use crate::{Outcome, servers};
use lossy::disk::{Abilities, Cut, Disk, Kind};
use lossy::image::Loss;
use lossy::mount::{Mounted, SharedDisk, lock, mount};
use sqltest::client::{Connection, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Memory for pages; the items take about three times as much.
const POOL: &str = "8M";
const ITEMS: u64 = 20_000;
/// Longest time under load before the power is cut in any case.
const LOAD_MAX: Duration = Duration::from_secs(4);
/// Every so manieth round the data directory is verified offline, too.
const CHECK_EVERY: u64 = 10;
/// Every so manieth round the file system has no `O_DIRECT`, and no allocation and holes.
const PLAIN_EVERY: u64 = 6;

/// Defects in the order of writes and syncs that a power cut must show, and the milliseconds
/// between checkpoints under which it does: each checkpoint syncs what others forgot.
const MUTANTS: [(&str, u64); 3] = [
    ("skip_wal_sync", CHECKPOINT_MS),
    ("checkpoint_before_data_sync", CHECKPOINT_MS),
    ("reuse_without_sync", 5000),
];
const CHECKPOINT_MS: u64 = 100;

/// Where the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Load,
    Checkpoint,
    Collection,
    Recovery,
}

const PLACES: [Place; 4] = [Place::Load, Place::Checkpoint, Place::Collection, Place::Recovery];

/// What all rounds showed.
#[derive(Default)]
struct Tally {
    /// Cuts by their places.
    cuts: BTreeMap<Place, u64>,
    loss: Loss,
    work: StoreWork,
    rows: usize,
    recovery_max: Duration,
}

/// Runs `--rounds N` (40) for each `--codec` (all; a name, `mixed`, several with commas) from
/// `--seed S` (1), with the release or (`--debug`, where segments are small) debug build.
pub fn run(arguments: &[String]) -> Outcome {
    let options = ["--rounds", "--seed", "--codec", "--only"];
    let arguments = Arguments::new(arguments, &["--debug", "--mutants"], &options)?;
    let is_hunt = arguments.has("--mutants");
    let binary = servers::build_gannet(!arguments.has("--debug") && !is_hunt)?;
    let (rounds, seed) = (arguments.number("--rounds", 40)?, arguments.number("--seed", 1)?);
    if is_hunt {
        return hunt(&binary, rounds, seed, arguments.value("--only"));
    }
    for codec in codecs(arguments.value("--codec").unwrap_or("all")) {
        let tally = run_rounds(&binary, codec, rounds, seed, None)?;
        println!(
            "power-cut: {codec}, {rounds} rounds, nothing lost, nothing partial; {} rows at the \
             end; cuts {:?}; of unsynced sectors {} dropped, {} kept, {} writes torn, {} names \
             lost; longest recovery {} ms; in all {}",
            tally.rows,
            tally.cuts,
            tally.loss.dropped_sectors,
            tally.loss.kept_sectors,
            tally.loss.torn_writes,
            tally.loss.dropped_names,
            tally.recovery_max.as_millis(),
            tally.work,
        );
    }
    Ok(())
}

/// Each defect must make a round fail.
fn hunt(binary: &Path, rounds: u64, seed: u64, only: Option<&str>) -> Outcome {
    let mut missed = Vec::new();
    for defect in MUTANTS.into_iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        let mutant = defect.0;
        match run_rounds(binary, "lz4", rounds, seed, Some(defect)) {
            Err(told) => println!("found   {mutant}: {}", told.lines().next().unwrap_or_default()),
            Ok(_) => {
                println!("MISSED  {mutant} in {rounds} rounds");
                missed.push(mutant);
            }
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

/// A server on a lossy disk.
struct Subject<'a> {
    binary: &'a Path,
    mutant: Option<(&'a str, u64)>,
    place: PathBuf,
    disk: SharedDisk,
    mounted: Option<Mounted>,
    server: Option<Server>,
}

fn run_rounds(
    binary: &Path,
    codec: &str,
    rounds: u64,
    seed: u64,
    mutant: Option<(&str, u64)>,
) -> Result<Tally, String> {
    let bank = Bank::new(ITEMS, codec)?;
    let folder = servers::fresh_folder("power-cut")?;
    let (behind, place) = (folder.join("behind"), folder.join("seen"));
    for folder in [&behind, &place] {
        std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    }
    let disk = Arc::new(Mutex::new(Disk::new(behind)));
    let mut subject = Subject { binary, mutant, place, disk, mounted: None, server: None };
    let mut random = Random::new(seed);
    let mut losses = base::Random::new(seed ^ 0x1055);
    let mut tally = Tally::default();
    subject.mount()?;
    subject.start()?;
    bank.create(subject.port())?;
    for round in 0..rounds {
        let place = PLACES[round as usize % PLACES.len()];
        let failed = |told: String| format!("{codec} round {round}: {told}");
        let begin = Instant::now();
        let said =
            one_round(&mut subject, &bank, (round, place), &mut random, &mut losses, &mut tally)
                .map_err(failed)?;
        println!("{codec} round {round}: {said}; {} ms", begin.elapsed().as_millis());
    }
    subject.end()?;
    Ok(tally)
}

/// One cut and the look afterwards; a sentence about it.
fn one_round(
    subject: &mut Subject<'_>,
    bank: &Bank,
    (round, place): (u64, Place),
    random: &mut Random,
    losses: &mut base::Random,
    tally: &mut Tally,
) -> Result<String, String> {
    let load = bank.start_load(subject.port(), round, random.next());
    let work = subject.cut_under_load(place, random);
    subject.kill();
    load.end();
    let work = work?;
    tally.work.add(&work);
    let mut cut_at = subject.cut_at();
    let mut met = place;
    let mut loss = subject.lose(losses, round)?;
    if place == Place::Recovery {
        met = Place::Load;
        // Once more in the recovery, wherever that is then.
        let scale = *pick(random, &[8, 40, 200]);
        let skip = random.below(scale);
        lock(&subject.disk).plan(Some(cut("", skip, random.below(2) == 0)));
        let started = subject.start();
        let off_at = lock(&subject.disk).off_at().map(str::to_owned);
        if let Some(at) = off_at {
            met = Place::Recovery;
            cut_at = format!("{cut_at}, then {at}");
            subject.kill();
            loss.add(&subject.lose(losses, round)?);
        } else {
            started?;
            lock(&subject.disk).plan(None);
        }
    }
    let recovery = match &subject.server {
        Some(_) => Duration::ZERO,
        None => subject.start()?,
    };
    *tally.cuts.entry(met).or_default() += 1;
    tally.loss.add(&loss);
    tally.recovery_max = tally.recovery_max.max(recovery);
    let seen = bank.verify(subject.port())?;
    tally.rows = seen.rows;
    if (round + 1) % CHECK_EVERY == 0 {
        subject.check_offline()?;
    }
    Ok(format!(
        "{met:?}: cut {cut_at}, {} sectors dropped, {} kept, {} writes torn; recovered in {} ms, \
         {} rows right, {} acknowledged; {work}",
        loss.dropped_sectors,
        loss.kept_sectors,
        loss.torn_writes,
        recovery.as_millis(),
        seen.rows,
        seen.acknowledged
    ))
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u64) as usize]
}

/// A cut at the next operation but so many.
fn cut(path_part: &str, skip: u64, is_done: bool) -> Cut {
    let kinds = vec![Kind::Write, Kind::DurableWrite, Kind::Sync, Kind::Name];
    Cut { kinds, path_part: path_part.to_owned(), skip, is_done }
}

impl Subject<'_> {
    fn port(&self) -> u16 {
        self.server.as_ref().map_or(0, |server| server.port)
    }

    fn datadir(&self) -> PathBuf {
        self.place.join("data")
    }

    fn mount(&mut self) -> Outcome {
        let mounted = mount(&self.disk, &self.place).map_err(|e| format!("mounting: {e}"))?;
        self.mounted = Some(mounted);
        Ok(())
    }

    /// Starts the server; how long that took.
    fn start(&mut self) -> Result<Duration, String> {
        let begin = Instant::now();
        let mut command = Command::new(self.binary);
        small_units(&mut command);
        if let Some((mutant, checkpoint_ms)) = self.mutant {
            command.env("GANNET_MUTANT", mutant);
            command.env("GANNET_CHECKPOINT_MS", checkpoint_ms.to_string());
        }
        // The layer has no sockets.
        let socket = self.place.with_extension("sock").display().to_string();
        let options = ["--buffer-pool-size", POOL, "--socket", &socket];
        let (datadir, port) = (self.datadir(), sqltest::port::free_port()?);
        // What the server says must not be lost with its disk.
        let log = self.place.with_extension("log");
        let server = servers::start_gannet_logging(command, &datadir, &log, port, &options)?;
        self.server = Some(server);
        Ok(begin.elapsed())
    }

    fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill();
        }
    }

    fn cut_at(&self) -> String {
        lock(&self.disk).off_at().unwrap_or("never").to_owned()
    }

    /// Waits under the load until the power is cut where it should be; what the store did.
    fn cut_under_load(&self, place: Place, random: &mut Random) -> Result<StoreWork, String> {
        let begin = Instant::now();
        std::thread::sleep(Duration::from_millis(100 + random.below(600)));
        let is_done = random.below(2) == 0;
        let planned = match place {
            Place::Load | Place::Recovery => Some(cut("", random.below(400), is_done)),
            Place::Checkpoint => Some(cut("superblock", random.below(6), is_done)),
            Place::Collection => None,
        };
        let mut is_planned = planned.is_some();
        lock(&self.disk).plan(planned);
        let mut work = StoreWork::default();
        let mut connection = Connection::open(&Options::local(self.port())).ok();
        while lock(&self.disk).off_at().is_none() {
            let asked = connection.as_mut().and_then(|it| StoreWork::ask(it).ok());
            let Some(now) = asked else {
                // It ends by itself when its disk is gone, and only then.
                let is_off = lock(&self.disk).off_at().is_some();
                return if is_off { Ok(work) } else { Err("the server ended uncut".into()) };
            };
            let is_collecting = work.flushed > 0 && now.collections > work.collections;
            work = now;
            if !is_planned && is_collecting {
                lock(&self.disk).plan(Some(cut("/data/", random.below(12), is_done)));
                is_planned = true;
            }
            if begin.elapsed() > LOAD_MAX {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        lock(&self.disk).power_off("at no operation in particular");
        Ok(work)
    }

    /// The power has failed: what was not synced is lost, torn or kept; the disk is there again.
    fn lose(&mut self, losses: &mut base::Random, round: u64) -> Result<Loss, String> {
        let mounted = self.mounted.take().ok_or("it is mounted")?;
        mounted.unmount().map_err(|e| format!("unmounting: {e}"))?;
        let mut disk = lock(&self.disk);
        let loss = disk.restore(losses).map_err(|e| e.to_string())?;
        let is_plain = round % PLAIN_EVERY == PLAIN_EVERY - 1;
        disk.abilities = Abilities { direct: !is_plain, allocation: !is_plain };
        drop(disk);
        self.mount()?;
        Ok(loss)
    }

    /// A clean stop, `gannet check`, and another start.
    fn check_offline(&mut self) -> Outcome {
        let stopped = self.server.take().is_some_and(|mut server| server.stop());
        if !stopped {
            return Err("the server did not stop cleanly".into());
        }
        check_offline(self.binary, &self.datadir())?;
        self.start().map(drop)
    }

    fn end(mut self) -> Outcome {
        self.check_offline()?;
        self.kill();
        let mounted = self.mounted.take().ok_or("it is mounted")?;
        mounted.unmount().map_err(|e| format!("unmounting: {e}"))
    }
}

impl Drop for Subject<'_> {
    fn drop(&mut self) {
        self.kill();
        if let Some(mounted) = self.mounted.take() {
            let _ = mounted.unmount();
        }
    }
}
