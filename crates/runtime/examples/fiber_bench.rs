//! What fibers cost: `cargo run --release -p gannet-runtime --example fiber_bench`.
//! Prints nanoseconds of wall-clock time per operation, the best of several rounds.

use runtime::file::{AlignedBuf, OpenOptions};
use runtime::sync::{Event, FiberMutex};
use runtime::{Config, Ring, Runtime, WaitClass};
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: usize = 20;

fn best(name: &str, operations: u64, mut run: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_nanos() as f64 / operations as f64);
    }
    println!("{name:<44} {best:9.1} ns");
}

fn on_one_worker() {
    const MANY: u64 = 10_000;
    best("spawn, run, join (handle, result)", MANY, || {
        for _ in 0..MANY / 100 {
            let fibers: Vec<_> = (0..100u64).map(|n| runtime::spawn("b", move || n)).collect();
            fibers.into_iter().for_each(|fiber| drop(fiber.join()));
        }
    });
    best("spawn and forget", MANY, || {
        for _ in 0..MANY / 100 {
            (0..100).for_each(|_| drop(runtime::spawn("b", || ())));
            runtime::yield_now();
        }
    });
    let others: Vec<_> = (0..7)
        .map(|_| {
            runtime::spawn("yielder", || {
                (0..ROUNDS as u64 * MANY).for_each(|_| runtime::yield_now());
            })
        })
        .collect();
    best("yield with 8 fibers", 8 * MANY, || {
        (0..MANY).for_each(|_| runtime::yield_now());
    });
    others.into_iter().for_each(|other| drop(other.join()));
    ping_pong(MANY);
    best("yield_if_due (not due)", 100 * MANY, || {
        (0..100 * MANY).for_each(|_| runtime::yield_if_due());
    });
    best("now", MANY, || {
        (0..MANY).for_each(|_| {
            std::hint::black_box(runtime::now());
        })
    });
    let mutex = FiberMutex::new(0);
    best("FiberMutex lock and unlock", MANY, || (0..MANY).for_each(|_| *mutex.lock() += 1));
    let mutex = runtime::sync::Mutex::new(0);
    best("Mutex lock and unlock", MANY, || (0..MANY).for_each(|_| *mutex.lock() += 1));
}

/// Two fibers that unpark each other and park.
fn ping_pong(rounds: u64) {
    let total = rounds * ROUNDS as u64;
    let parent = runtime::current_unparker();
    let place = Arc::new(std::sync::OnceLock::new());
    let told = place.clone();
    let other = runtime::spawn("other", move || {
        told.set(runtime::current_unparker()).expect("set once");
        for _ in 0..total {
            runtime::park(WaitClass::Other, None);
            parent.unpark();
        }
    });
    while place.get().is_none() {
        runtime::yield_now();
    }
    let other_unparker = *place.get().expect("just seen");
    best("park and unpark, one worker, per hand-over", 2 * rounds, || {
        for _ in 0..rounds {
            other_unparker.unpark();
            runtime::park(WaitClass::Other, None);
        }
    });
    drop(other.join());
}

fn between_workers() {
    const MANY: u64 = 2_000;
    let (ping, pong) = (Arc::new(Event::new()), Arc::new(Event::new()));
    let (their_ping, their_pong) = (ping.clone(), pong.clone());
    let other = runtime::spawn_on(1, "other", move || {
        for _ in 0..MANY * ROUNDS as u64 {
            their_ping.take(WaitClass::Other, None);
            their_pong.set();
        }
    });
    best("Event between two workers, per hand-over", 2 * MANY, || {
        for _ in 0..MANY {
            ping.set();
            pong.take(WaitClass::Other, None);
        }
    });
    drop(other.join());
}

/// One linked direct write and sync of 4 KiB at a time, as the log does.
fn log_writes(ring: Ring) {
    let config = Config { workers: 1, ring, ..Config::default() };
    let runtime = Runtime::start(config).expect("started");
    runtime.run(move || {
        let path = std::env::temp_dir().join("gannet-fiber-bench");
        let options = OpenOptions::new().create(true).truncate(true).direct(true);
        let file = options.open(&path).expect("a temporary file");
        file.allocate_zeroed(0, 1 << 20).expect("space");
        file.sync_data().expect("synced");
        let block = AlignedBuf::zeroed(4096);
        best(&format!("write and sync 4 KiB, {ring:?}"), 100, || {
            for place in 0..100u64 {
                file.write_and_sync(&block, place * 4096).expect("written");
            }
        });
        let mut page = AlignedBuf::zeroed(4096);
        best(&format!("read 4 KiB directly, {ring:?}"), 100, || {
            for place in 0..100u64 {
                file.read_at(&mut page, place * 4096).expect("read");
            }
        });
        runtime::fs::remove_file(&path).expect("removed");
    });
}

fn main() {
    let one = Runtime::start(Config { workers: 1, ..Config::default() }).expect("started");
    one.run(on_one_worker);
    one.shutdown();
    let two = Runtime::start(Config { workers: 2, ..Config::default() }).expect("started");
    two.run(between_workers);
    two.shutdown();
    log_writes(Ring::Uring);
    log_writes(Ring::Fallback);
}
