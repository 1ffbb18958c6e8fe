//! One seed of the whole server: it is started as `gannet serve` starts it, on the simulated disk
//! and network; clients work through the protocol; the power fails, also in recovery; the next
//! life is checked through the protocol.

use crate::campaign::Campaign;
use crate::server_check::{check_all, set_up, shut_down};
use crate::server_client::{ServerClient, SharedLedger, lock};
use crate::server_ledger::{Ledger, ServerCounts};
use base::Random;
use engine::EngineOptions;
use runtime::WaitClass;
use runtime::net::{Address, ServeHandle};
use runtime::sim::{CrashKind, Disk, SimConfig, SimEnd, Simulation};
use runtime::sync::{Event, Semaphore};
use server::options::{self, CommandLine, NoFiles, ServeOptions};
use server::serve::{self, Surroundings};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Statements of a seed unless the command line says otherwise.
pub const STATEMENTS: u64 = 1_200;
/// Clients of a seed, at least.
const CLIENTS_MIN: usize = 8;
const ARGUMENTS: [&str; 7] =
    ["serve", "--datadir", "/db", "--port", "3306", "--bind-address", "127.0.0.1"];

fn serve_options() -> ServeOptions {
    match options::parse(&ARGUMENTS.map(str::to_owned), &NoFiles) {
        Ok(CommandLine::Serve(options)) => options,
        other => panic!("the arguments ask for {other:?}"),
    }
}

/// The surroundings of a simulated server: tiny engine knobs, and the address told to clients.
struct Simulated {
    seed: u64,
    random: Mutex<Random>,
    address: Arc<Mutex<Option<Address>>>,
    ready: Arc<Event>,
    is_ready: Arc<AtomicBool>,
}

impl Surroundings for Simulated {
    /// What counts at creation hangs on the seed alone, the rest changes from life to life.
    fn tune(&self, options: &mut EngineOptions) {
        let mut fixed = Random::new(self.seed ^ 0x0F1E_D000);
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        options.buffer_pool_bytes = *random.pick(&[1, 2, 4]) << 20;
        options.undo_budget_bytes = *random.pick(&[0, 64 << 10, 64 << 20]);
        options.undo_chunk_bytes = *random.pick(&[4, 16, 64]) << 10;
        options.sort_buffer_bytes = *random.pick(&[16, 256]) << 10;
        options.log_ring_bytes = *random.pick(&[512, 1024]) << 10;
        options.first_log_file_bytes = *random.pick(&[64, 256]) << 10;
        options.max_log_file_bytes = *random.pick(&[128, 512]) << 10;
        options.recovery_window_bytes = *random.pick(&[4, 32, 1024]) << 10;
        options.segment_bytes = *fixed.pick(&[128, 256, 512]) << 10;
        options.segments_per_file = *fixed.pick(&[2, 16]);
        options.group_bytes = *random.pick(&[16, 32, 64]) << 10;
        options.max_pages = 1 << 16;
        options.huge_pages = false;
        options.page_class = *fixed.pick(&[12, 12, 13]);
        options.checkpoint_interval = Duration::from_millis(*random.pick(&[2, 20, 200]));
        options.purge_interval = Duration::from_millis(*random.pick(&[1, 20]));
        options.on_fatal = Arc::new(|detail| panic!("violation: fatal without a fault: {detail}"));
    }

    fn ready(&self, listeners: &[ServeHandle], _created: bool) {
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        *address = listeners.first().map(|listener| listener.address().clone());
        drop(address);
        self.is_ready.store(true, Ordering::Relaxed);
        self.ready.set();
    }
}

/// How a life ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Clean,
    /// The power fails at this step.
    AtStep(u64),
    /// The power fails when so many statements are left, and a moment later.
    InWork(i64),
}

/// Runs one seed; what it did and its trace, or the violation.
pub fn run_seed(seed: u64, statements: u64) -> Result<(ServerCounts, u64), String> {
    let mut random = Random::new(seed ^ 0x5E4F_0000);
    let clients = CLIENTS_MIN + random.index(5);
    let ledger: SharedLedger = Arc::new(Mutex::new(Ledger::new(clients, statements)));
    let (mut disk, mut trace, mut is_last) = (None, 0u64, false);
    for life in 0u64.. {
        let left = lock(&ledger).statements_left;
        let ending = match left {
            ..=0 => Ending::Clean,
            _ if life > 0 && random.one_in(3) => {
                Ending::AtStep(1 + random.below(*random.clone().pick(&[100, 1_000, 8_000])))
            }
            _ => Ending::InWork(left - left.min(1 + random.below(statements / 2 + 1) as i64)),
        };
        let config = SimConfig {
            crash_at_step: if let Ending::AtStep(step) = ending { Some(step) } else { None },
            ..SimConfig::new(seed.wrapping_mul(1_000) + life)
        };
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let is_ready = Arc::new(AtomicBool::new(false));
        let ended = one_life(&mut simulation, seed, ending, &ledger, &is_ready, random.fork());
        trace = trace.rotate_left(7) ^ simulation.trace_hash();
        let kind = match ended {
            // A clean end has synced everything: the power may go, and one more life looks.
            Ok(()) if is_last => break,
            Ok(()) => {
                is_last = true;
                CrashKind::Power
            }
            Err(SimEnd::Crashed) => {
                let mut ledger = lock(&ledger);
                ledger.counts.crashes += 1;
                let in_recovery = life > 0 && !is_ready.load(Ordering::Relaxed);
                ledger.counts.crashes_in_recovery += u64::from(in_recovery);
                *random.pick(&[CrashKind::Power, CrashKind::Power, CrashKind::Process])
            }
            Err(other) => return Err(format!("seed {seed} life {life}: {other}")),
        };
        disk = Some::<Disk>(simulation.crash(kind));
    }
    let counts = lock(&ledger).counts;
    Ok((counts, trace))
}

/// Starts the server of a seed in the running simulation; its address once it answers, and the
/// event of its end.
pub(crate) fn start_server(
    seed: u64,
    random: Random,
    is_ready: Arc<AtomicBool>,
) -> (Address, Arc<Event>) {
    let (address, ready) = (Arc::new(Mutex::new(None)), Arc::new(Event::new()));
    let surroundings = Simulated {
        seed,
        random: Mutex::new(random),
        address: address.clone(),
        ready: ready.clone(),
        is_ready,
    };
    let ended = Arc::new(Event::new());
    let told = ended.clone();
    drop(runtime::spawn("server", move || {
        if let Err(error) = serve::run_in(&serve_options(), &surroundings) {
            panic!("violation: the server does not start: {error}");
        }
        told.set();
    }));
    ready.wait(WaitClass::Other, None);
    let address = address.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (address.expect("the server listens"), ended)
}

fn one_life(
    simulation: &mut Simulation,
    seed: u64,
    ending: Ending,
    ledger: &SharedLedger,
    is_ready: &Arc<AtomicBool>,
    mut random: Random,
) -> Result<(), SimEnd> {
    let (ledger, is_ready) = (ledger.clone(), is_ready.clone());
    simulation.run(move || {
        let (address, ended) = start_server(seed, random.fork(), is_ready);
        check_all(&address, &ledger);
        set_up(&address, &ledger);
        if let Ending::InWork(left) = ending {
            let (ledger, delay) = (ledger.clone(), Duration::from_micros(random.below(3_000)));
            drop(runtime::spawn("power", move || {
                while lock(&ledger).statements_left > left {
                    runtime::sleep(Duration::from_micros(200));
                }
                runtime::sleep(delay);
                runtime::sim::crash_now();
            }));
        }
        work(&address, &ledger, &mut random);
        if !matches!(ending, Ending::Clean) {
            // The power fails while the server is idle.
            runtime::sleep(Duration::from_millis(20));
        }
        check_all(&address, &ledger);
        shut_down(&address);
        ended.wait(WaitClass::Other, None);
    })
}

/// The clients, to their end. Nobody joins their fibers, so a violation ends the simulation.
fn work(address: &Address, ledger: &SharedLedger, random: &mut Random) {
    let finished = Arc::new(Semaphore::new(0, WaitClass::Join));
    let clients = lock(ledger).items.len();
    for number in 0..clients {
        let (address, ledger) = (address.clone(), ledger.clone());
        let (random, finished) = (random.fork(), finished.clone());
        drop(runtime::spawn("client", move || {
            ServerClient::new(number, address, ledger, random).run();
            finished.release(1);
        }));
    }
    drop(finished.acquire(clients as u64, None));
}

/// Runs seeds on threads of their own and prints the sums; the first violation ends it.
pub fn campaign(first: u64, seeds: u64, statements: u64, threads: u64) -> Result<(), String> {
    server::log::only_errors();
    let started = Instant::now();
    let campaign = Campaign { first, seeds, operations: statements, threads };
    let run = |seed| run_seed(seed, statements);
    let total = campaign.sum(run, |total: &mut ServerCounts, _, (counts, _)| total.add(&counts))?;
    println!("{seeds} seeds of the whole server, {:.1} s", started.elapsed().as_secs_f64());
    println!("{total:#?}\nno violation");
    let missing = total.crashes_in_recovery == 0 || total.lost == 0 || total.dropped == 0;
    match seeds >= 50 && missing {
        true => Err("something that must happen never did".to_owned()),
        false => Ok(()),
    }
}

/// Runs a seed twice: the second time must be like the first.
pub fn replay(seed: u64, statements: u64) -> Result<(), String> {
    server::log::only_errors();
    let first = run_seed(seed, statements)?;
    println!("{:#?}", first.0);
    if run_seed(seed, statements)? != first {
        return Err(format!("seed {seed} is not reproducible: two runs differ"));
    }
    Ok(())
}

/// `gannet-sim --server [--seeds N] [--first SEED] [--operations N] [--threads N]`, or with
/// `--seed SEED`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    let (mut first, mut seeds, mut statements, mut threads) = (0, 200, STATEMENTS, 2);
    let mut only = None;
    let mut rest = arguments.iter().filter(|argument| *argument != "--server");
    while let Some(argument) = rest.next() {
        let value = rest.next().and_then(|text| text.parse::<u64>().ok());
        let value = value.ok_or_else(|| format!("{argument} wants a number"))?;
        match argument.as_str() {
            "--seeds" => seeds = value,
            "--first" => first = value,
            "--operations" => statements = value,
            "--threads" => threads = value.max(1),
            "--seed" => only = Some(value),
            _ => return Err(format!("unknown argument '{argument}' of --server")),
        }
    }
    match only {
        Some(seed) => replay(seed, statements),
        None => campaign(first, seeds, statements, threads),
    }
}
