//! The simulated twin: determinism, crashes, faults, network, deadlocks.

use base::Random;
use runtime::file::{File, OpenOptions};
use runtime::net::{Address, Connection, Listener, Next, Stream};
use runtime::sim::{CrashKind, Disk, DiskConfig, Faults, Operation, SimConfig, SimEnd, Simulation};
use runtime::sync::{Event, FiberMutex};
use runtime::{WaitClass, Wake};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Seeds to run; more with `GANNET_SIM_SEEDS`.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|text| text.parse().ok());
    0..asked.unwrap_or(usual)
}

/// Fibers that compute, wait, lock, write files and talk, all at random.
fn busy_program() -> u64 {
    let shared = Arc::new(FiberMutex::new(0u64));
    runtime::fs::create_dir_all("/data").expect("no faults");
    let file = OpenOptions::new().create(true).open("/data/file").expect("no faults");
    let fibers: Vec<_> = (0..8u64)
        .map(|n| {
            let (shared, file) = (shared.clone(), file.clone());
            runtime::spawn("busy", move || {
                for round in 0..20u64 {
                    match runtime::random_u64() % 5 {
                        0 => runtime::yield_now(),
                        1 => drop(runtime::sleep(Duration::from_micros(round * 7))),
                        2 => file.write_at(&[n as u8; 700], n * 4096).expect("no faults"),
                        3 => file.sync_data().expect("no faults"),
                        _ => {
                            let mut guard = shared.lock();
                            let seen = *guard;
                            runtime::yield_if_due();
                            *guard = seen.wrapping_mul(31).wrapping_add(n + round);
                        }
                    }
                }
            })
        })
        .collect();
    fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
    *shared.lock()
}

#[test]
fn one_seed_one_history() {
    let run = |seed| {
        let mut simulation = Simulation::new(SimConfig::new(seed));
        let result = simulation.run(busy_program).expect("no crash");
        (result, simulation.trace_hash(), simulation.steps(), simulation.elapsed())
    };
    let mut histories = std::collections::BTreeSet::new();
    for seed in seeds(40) {
        let first = run(seed);
        assert_eq!(first, run(seed), "seed {seed}");
        histories.insert(first);
    }
    assert_eq!(histories.len() as u64, seeds(40).end, "every seed has a history of its own");
}

#[test]
fn deadlock_panic_and_length_are_reported() {
    let mut simulation = Simulation::new(SimConfig::new(1));
    let end = simulation.run(|| runtime::park(WaitClass::RowLock, None));
    match end {
        Err(SimEnd::Deadlock(report)) => assert!(report.contains("RowLock"), "{report}"),
        other => panic!("{other:?}"),
    }
    let mut simulation = Simulation::new(SimConfig::new(1));
    let end = simulation.run(|| {
        runtime::spawn("alone", || panic!("nobody looks"));
        runtime::sleep(Duration::from_secs(1));
    });
    assert!(matches!(end, Err(SimEnd::Panicked(message)) if message.contains("nobody looks")));
    let mut simulation = Simulation::new(SimConfig { steps_max: 100, ..SimConfig::new(1) });
    let end: Result<(), _> = simulation.run(|| {
        runtime::spawn("asleep", || runtime::park(WaitClass::LogSpace, None));
        loop {
            runtime::yield_now()
        }
    });
    match end {
        Err(SimEnd::TooLong(report)) => assert!(report.contains("LogSpace"), "{report}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn virtual_time_passes_at_once() {
    let started = std::time::Instant::now();
    let mut simulation = Simulation::new(SimConfig::new(3));
    let slept = simulation.run(|| {
        let start = runtime::now();
        let wall = runtime::wall_clock_micros();
        assert_eq!(runtime::sleep(Duration::from_secs(86_400)), Wake::TimedOut);
        assert!(runtime::wall_clock_micros() - wall >= 86_400_000_000);
        start.elapsed()
    });
    assert!(slept.expect("no crash") >= Duration::from_secs(86_400));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn locks_held_across_waits_are_found() {
    let mut simulation = Simulation::new(SimConfig::new(3));
    let end = simulation.run(|| {
        let lock = runtime::sync::Mutex::new(());
        let _guard = lock.lock();
        runtime::yield_now();
    });
    assert!(matches!(end, Err(SimEnd::Panicked(_))), "{end:?}");
}

const SECTOR: usize = 512;
const SECTORS: usize = 64;

/// What a test knows about one sector: the last synced value, and those written since.
#[derive(Clone, Default)]
struct Sector {
    durable: u8,
    since: Vec<u8>,
}

/// Writes and syncs at random; `model` always says what a crash may leave.
fn write_until_crash(file: &File, model: &Arc<runtime::sync::Mutex<Vec<Sector>>>, seed: u64) {
    let mut random = Random::new(seed);
    for value in 1..200u8 {
        let first = random.index(SECTORS);
        let count = 1 + random.index((SECTORS - first).min(12));
        let mut locked = model.lock();
        locked[first..first + count].iter_mut().for_each(|sector| sector.since.push(value));
        drop(locked);
        let bytes = vec![value; count * SECTOR];
        file.write_at(&bytes, (first * SECTOR) as u64).expect("no faults");
        if random.one_in(6) {
            let written: Vec<usize> =
                model.lock().iter().map(|sector| sector.since.len()).collect();
            file.sync_data().expect("no faults");
            for (sector, count) in model.lock().iter_mut().zip(written) {
                if count > 0 {
                    sector.durable = sector.since[count - 1];
                    sector.since.drain(..count);
                }
            }
        }
    }
    runtime::sim::crash_now();
}

#[test]
fn a_power_failure_keeps_what_was_synced_and_any_of_the_rest() {
    let mut statistics = (0, 0, 0);
    for seed in seeds(150) {
        let model = Arc::new(runtime::sync::Mutex::new(vec![Sector::default(); SECTORS]));
        let shared = model.clone();
        let crash_at_step = Some(Random::new(seed).range(50..900));
        let mut simulation = Simulation::new(SimConfig { crash_at_step, ..SimConfig::new(seed) });
        let end = simulation.run(move || {
            let file = OpenOptions::new().create(true).open("file").expect("no faults");
            runtime::fs::sync_dir("/").expect("no faults");
            file.set_len((SECTORS * SECTOR) as u64).expect("no faults");
            file.sync_data().expect("no faults");
            write_until_crash(&file, &shared, seed);
        });
        assert_eq!(end, Err(SimEnd::Crashed));
        let disk = simulation.crash(CrashKind::Power);
        let Some(content) = disk.content("file").filter(|content| !content.is_empty()) else {
            continue;
        };
        for (place, sector) in model.lock().iter().enumerate() {
            let bytes = &content[place * SECTOR..(place + 1) * SECTOR];
            assert!(bytes.iter().all(|&byte| byte == bytes[0]), "sectors are not torn");
            assert!(
                bytes[0] == sector.durable || sector.since.contains(&bytes[0]),
                "seed {seed} sector {place}: {} is neither {} nor one of {:?}",
                bytes[0],
                sector.durable,
                sector.since
            );
        }
        let counts = disk.statistics();
        statistics.0 += counts.kept_sectors;
        statistics.1 += counts.dropped_sectors;
        statistics.2 += counts.torn_writes;
    }
    println!("kept, dropped sectors, torn writes: {statistics:?}");
    assert!(statistics.0 > 100 && statistics.1 > 100 && statistics.2 > 10, "{statistics:?}");
}

#[test]
fn a_killed_process_loses_nothing_that_was_written() {
    for seed in seeds(40) {
        let written = Arc::new(AtomicU64::new(0));
        let counted = written.clone();
        let crash_at_step = Some(Random::new(seed).range(20..400));
        let mut simulation = Simulation::new(SimConfig { crash_at_step, ..SimConfig::new(seed) });
        let end = simulation.run(move || {
            let file = OpenOptions::new().create(true).open("file").expect("no faults");
            for number in 1..=1000u64 {
                file.write_at(&number.to_le_bytes(), number * 8).expect("no faults");
                counted.store(number, Ordering::SeqCst);
            }
        });
        assert_eq!(end, Err(SimEnd::Crashed));
        let disk = simulation.crash(CrashKind::Process);
        let content = disk.content("file").unwrap_or_default();
        for number in 1..=written.load(Ordering::SeqCst) as usize {
            assert_eq!(content[number * 8..number * 8 + 8], (number as u64).to_le_bytes());
        }
    }
}

#[test]
fn a_sync_does_not_cover_writes_in_flight() {
    // A write that has not returned when the sync begins may be lost after the sync returned.
    let mut lost = 0;
    for seed in 0..200 {
        let mut simulation = Simulation::new(SimConfig::new(seed));
        simulation
            .run(|| {
                let file = OpenOptions::new().create(true).open("file").expect("no faults");
                runtime::fs::sync_dir("/").expect("no faults");
                let (writer, begun) = (file.clone(), Arc::new(Event::new()));
                let told = begun.clone();
                runtime::spawn("writer", move || {
                    told.set();
                    writer.write_at(&[1; 512], 0).expect("no faults");
                    runtime::park(WaitClass::Other, None);
                });
                begun.wait(WaitClass::Other, None);
                file.sync_data().expect("no faults");
            })
            .expect("no crash");
        let disk = simulation.crash(CrashKind::Power);
        let content = disk.content("file").expect("its name is durable");
        lost += u64::from(content.first() != Some(&1));
    }
    assert!((10..190).contains(&lost), "{lost} of 200");
}

#[test]
fn names_are_durable_after_sync_dir_only() {
    let mut outcomes = std::collections::BTreeMap::new();
    for seed in seeds(100) {
        let mut simulation = Simulation::new(SimConfig::new(seed));
        simulation
            .run(|| {
                runtime::fs::create_dir_all("/data").expect("no faults");
                runtime::fs::sync_dir("/").expect("no faults");
                let file = OpenOptions::new().create(true).open("/data/old").expect("opens");
                file.write_and_sync(b"content", 0).expect("no faults");
                runtime::fs::sync_dir("/data").expect("no faults");
                runtime::fs::rename("/data/old", "/data/new").expect("no faults");
                let extra = OpenOptions::new().create(true).open("/data/extra").expect("opens");
                extra.write_and_sync(b"extra", 0).expect("no faults");
            })
            .expect("no crash");
        let disk = simulation.crash(CrashKind::Power);
        let paths = disk.paths();
        for path in paths.iter().filter(|path| *path != "/data/extra") {
            assert_eq!(disk.content(path).as_deref(), Some(&b"content"[..]));
        }
        *outcomes.entry(paths.join(" ")).or_insert(0) += 1;
    }
    let seen: Vec<_> = outcomes.keys().map(String::as_str).collect();
    assert_eq!(seen, ["/data/extra /data/new", "/data/new", "/data/old"], "{outcomes:?}");
}

fn fault_run(faults: Faults) -> (u64, u64, u64) {
    let disk = Disk::new(DiskConfig { quota_bytes: None, faults }, 5);
    let mut simulation = Simulation::with_disk(SimConfig::new(5), disk.clone());
    let wrong = simulation.run(|| {
        let file = OpenOptions::new().create(true).open("file").expect("no faults on names");
        let (mut errors, mut wrong) = (0u64, 0u64);
        for round in 0..400u64 {
            let place = round % 40 * 512;
            let written = file.write_at(&[round as u8; 512], place);
            errors += u64::from(written.is_err());
            let mut seen = [0; 512];
            match file.read_at(&mut seen, place) {
                Err(_) => errors += 1,
                Ok(()) => wrong += u64::from(written.is_ok() && seen != [round as u8; 512]),
            }
            errors += u64::from(round % 10 == 0 && file.sync_data().is_err());
        }
        (errors, wrong)
    });
    let (errors, wrong) = wrong.expect("no crash");
    (errors, wrong, disk.statistics().faults)
}

#[test]
fn faults_happen_as_often_as_asked_and_show() {
    let none = Faults::default();
    assert_eq!(fault_run(none), (0, 0, 0));
    let (errors, wrong, faults) = fault_run(Faults { read_error: 0.1, ..none });
    assert!(errors > 20 && wrong == 0 && errors == faults, "{errors} {wrong} {faults}");
    let (errors, ..) = fault_run(Faults { write_error: 0.1, sync_error: 0.2, ..none });
    assert!(errors > 20, "{errors}");
    for silent in [
        Faults { bit_rot: 0.1, ..none },
        Faults { stale_read: 0.1, ..none },
        Faults { lost_write: 0.1, ..none },
        Faults { misdirected_write: 0.1, ..none },
    ] {
        let (errors, wrong, faults) = fault_run(silent);
        assert!(wrong > 10 && faults >= wrong, "{silent:?}: {errors} {wrong} {faults}");
    }
}

#[test]
fn faults_once_quota_and_failed_syncs() {
    let mut simulation = Simulation::new(SimConfig::new(9));
    let disk = simulation.disk();
    disk.set_quota(Some(16 * 4096));
    disk.fail_once(Operation::Sync, "fi", 1, 5);
    simulation
        .run(|| {
            let file = OpenOptions::new().create(true).open("file").expect("opens");
            file.write_at(&[1; 4096], 0).expect("space");
            file.sync_data().expect("the first is skipped");
            file.write_at(&[2; 4096], 0).expect("space");
            let failed = file.sync_data().expect_err("the second fails");
            assert_eq!(failed.raw_os_error(), Some(5));
            file.sync_data().expect("but makes nothing durable");
            let full = file.write_at(&[3; 17 * 4096], 0).expect_err("no space");
            assert_eq!(full.raw_os_error(), Some(28));
            file.write_at(&[3; 15 * 4096], 4096).expect("space");
            file.punch_hole(4096, 14 * 4096).expect("punched");
            let mut seen = vec![9; 8192];
            file.read_at(&mut seen, 4096).expect("read");
            assert!(seen.iter().all(|&byte| byte == 0));
            file.write_at(&[4; 8 * 4096], 20 * 4096).expect("space came back");
        })
        .expect("no crash");
    assert!(disk.used_bytes() <= 16 * 4096);
    assert!(disk.flip_bit("file", 3, 0) && !disk.flip_bit("file", 1 << 40, 0));
}

struct Upper;

impl Connection for Upper {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if stream.timed_out() {
            return Next::Close;
        }
        let mut buffer = [0; 100];
        if !stream.wait_readable(Some(Duration::ZERO)) {
            return Next::WaitReadable { timeout: Some(Duration::from_secs(5)) };
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => Next::Close,
            Ok(length) => {
                buffer[..length].make_ascii_uppercase();
                stream.write_all(&buffer[..length]).expect("the client listens");
                Next::WaitReadable { timeout: Some(Duration::from_secs(5)) }
            }
        }
    }
}

#[test]
fn simulated_sockets() {
    for seed in seeds(20) {
        let mut simulation = Simulation::new(SimConfig::new(seed));
        let run = simulation.run(|| {
            let listener = Listener::tcp("127.0.0.1:3306".parse().expect("an address"));
            let served = runtime::net::serve(listener.expect("free"), |_, _| Box::new(Upper));
            let clients: Vec<_> = (0..10usize)
                .map(|n| {
                    let address = served.address().clone();
                    runtime::spawn("client", move || {
                        let mut stream = runtime::net::connect(&address).expect("accepted");
                        let message = vec![b'a' + n as u8; 1000 * n + 1];
                        stream.write_all(&message).expect("the server listens");
                        let (mut answer, mut buffer) = (Vec::new(), [0; 777]);
                        while answer.len() < message.len() {
                            let read = stream.read(&mut buffer).expect("an answer");
                            assert!(read > 0);
                            answer.extend_from_slice(&buffer[..read]);
                        }
                        assert_eq!(answer, message.to_ascii_uppercase());
                        if n % 2 == 0 {
                            let start = runtime::now();
                            assert_eq!(stream.read(&mut buffer).expect("the timeout closes"), 0);
                            let waited = start.elapsed();
                            assert!(waited >= Duration::from_secs(4), "{n} {waited:?}");
                        }
                    })
                })
                .collect();
            clients.into_iter().for_each(|client| client.join().expect("no panic"));
            served.stop();
            let nobody = Address::Tcp("127.0.0.1:1".parse().expect("an address"));
            assert!(runtime::net::connect(&nobody).is_err());
            assert!(runtime::net::connect(served.address()).is_err());
        });
        run.unwrap_or_else(|end| panic!("seed {seed}: {end}"));
    }
}

/// Parks until its client is gone, without reading; tells what it did not read.
struct Watcher {
    handle: runtime::net::StreamHandle,
    left: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
}

impl Connection for Watcher {
    fn run(&mut self, stream: &mut Stream) -> Next {
        while !self.handle.is_abandoned(b"bye") {
            runtime::sleep(Duration::from_millis(1));
        }
        let (mut left, mut piece) = (Vec::new(), [0; 10]);
        loop {
            match stream.read(&mut piece).expect("what is left, or the end") {
                0 => break,
                count => left.extend_from_slice(&piece[..count]),
            }
        }
        self.left.lock().expect("no panic").push(left);
        Next::Close
    }
}

#[test]
fn clients_that_went_away_are_noticed_without_reading() {
    for seed in seeds(20) {
        let left = Arc::new(std::sync::Mutex::new(Vec::new()));
        let found = left.clone();
        let run = Simulation::new(SimConfig::new(seed)).run(move || {
            let listener = Listener::tcp("127.0.0.1:3306".parse().expect("an address"));
            let served = runtime::net::serve(listener.expect("free"), move |_, handle| {
                Box::new(Watcher { handle, left: left.clone() })
            });
            for farewell in [&b""[..], b"bye", b"more"] {
                let mut stream = runtime::net::connect(served.address()).expect("accepted");
                if !farewell.is_empty() {
                    stream.write_all(farewell).expect("the server listens");
                }
                drop(stream);
                runtime::sleep(Duration::from_secs(1));
            }
        });
        run.unwrap_or_else(|end| panic!("seed {seed}: {end}"));
        let found = found.lock().expect("no panic");
        assert_eq!(*found, [b"".to_vec(), b"bye".to_vec()], "seed {seed}");
    }
}

#[test]
fn connections_break_when_asked() {
    let mut simulation = Simulation::new(SimConfig { connection_reset: 0.1, ..SimConfig::new(4) });
    let broken = simulation.run(|| {
        let listener = Listener::tcp("127.0.0.1:3306".parse().expect("an address"));
        let served = runtime::net::serve(listener.expect("free"), |_, _| Box::new(Patient));
        let mut broken = 0u64;
        for _ in 0..50 {
            let mut stream = runtime::net::connect(served.address()).expect("accepted");
            let is_whole = (0..5).all(|_| {
                stream.write_all(b"x").is_ok() && matches!(stream.read(&mut [0; 8]), Ok(1..))
            });
            broken += u64::from(!is_whole);
        }
        broken
    });
    assert!((10..50).contains(&broken.expect("no crash")));
}

/// Answers every byte and takes broken connections as they come.
struct Patient;

impl Connection for Patient {
    fn run(&mut self, stream: &mut Stream) -> Next {
        match stream.read(&mut [0; 8]) {
            Ok(1..) if stream.write_all(b"y").is_ok() => Next::WaitReadable { timeout: None },
            _ => Next::Close,
        }
    }
}

#[test]
fn deferred_functions_run_after_the_next_scheduling_point() {
    let mut simulation = Simulation::new(SimConfig::new(2));
    let order = simulation.run(|| {
        let ran = Arc::new(AtomicU64::new(0));
        let counted = ran.clone();
        runtime::quiescent::defer(move || counted.store(1, Ordering::SeqCst));
        let before = ran.load(Ordering::SeqCst);
        runtime::yield_now();
        (before, ran.load(Ordering::SeqCst))
    });
    assert_eq!(order, Ok((0, 1)));
}

#[test]
fn a_disk_lives_through_many_simulations() {
    let mut disk = Disk::new(DiskConfig::default(), 77);
    for life in 0..10u64 {
        let mut simulation = Simulation::with_disk(SimConfig::new(life), disk);
        let found = simulation.run(move || {
            let file = OpenOptions::new().create(true).open("lives").expect("opens");
            runtime::fs::sync_dir("/").expect("no faults");
            assert!(file.try_lock_exclusive().expect("asked"), "the former life's lock is gone");
            let length = file.len().expect("open");
            file.write_and_sync(&[life as u8], length).expect("no faults");
            length
        });
        assert_eq!(found, Ok(life));
        let kind = if life % 2 == 0 { CrashKind::Power } else { CrashKind::Process };
        disk = simulation.crash(kind);
    }
}
