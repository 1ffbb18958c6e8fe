//! Several lives of one store that end by crashes at any step, recovery included.

use crate::miniature::{Miniature, Sizes, options};
use crate::model::{Model, SharedModel, lock};
use base::Random;
use pagestore::{StoreError, StoreOptions};
use runtime::sim::{CrashKind, SimConfig, SimEnd, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Trees that the fibers fill, with the size class of their pages.
const TREES: [(u32, u8); 5] = [(2, 13), (3, 13), (4, 12), (5, 15), (6, 14)];
/// Beyond this many pages, fibers rather free than allocate.
const PAGES_MAX: usize = 160;

fn one_fiber(mini: &Miniature, mut random: Random, operations: u64) -> Result<(), StoreError> {
    for _ in 0..operations {
        let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
        let any = |random: &mut Random| live[random.index(live.len())];
        lock(&mini.model).operations += 1;
        match random.below(100) {
            _ if live.len() < 4 => {
                let (tree, class) = *random.pick(&TREES);
                mini.allocate(&mut random, tree, class)?;
            }
            0..12 if live.len() < PAGES_MAX => {
                let (tree, class) = *random.pick(&TREES);
                mini.allocate(&mut random, tree, class)?;
            }
            12..15 if live.len() < PAGES_MAX => mini.allocate_late(&mut random, 2)?,
            0..20 => {
                let pid = any(&mut random);
                mini.free(&mut random, pid)?;
            }
            20 => {
                // A tree of this fiber's own: nobody allocates in a tree that is being dropped.
                let tree = lock(&mini.model).next_tree();
                for _ in 0..=random.index(4) {
                    let class = *random.pick(&[12, 13, 15]);
                    mini.allocate(&mut random, tree, class)?;
                }
                runtime::sleep(Duration::from_micros(random.below(50_000)));
                mini.drop_tree(tree)?;
            }
            21..65 => {
                let mut pids = vec![any(&mut random)];
                let second = any(&mut random);
                if random.one_in(3) && !pids.contains(&second) {
                    pids.push(second);
                }
                mini.patch(&mut random, &pids)?;
            }
            65..85 => mini.verify(any(&mut random))?,
            85..88 => {
                let pids: Vec<_> = (0..4).map(|_| base::PageId::new(any(&mut random))).collect();
                mini.store.prefetch(&pids);
            }
            88..91 => {
                let end = mini.wal.end();
                mini.wal.wait_durable(end).expect("no faults in the log");
                mini.note_durable();
            }
            91..93 => {
                runtime::sleep(Duration::from_micros(random.below(20_000)));
            }
            93 => {
                let pin = mini.store.load(base::PageId::new(any(&mut random)));
                runtime::sleep(Duration::from_micros(random.below(2_000)));
                drop(pin);
            }
            94 => {
                runtime::sleep(mini.store.throttle_delay(random.below(100_000)));
            }
            _ => runtime::yield_now(),
        }
    }
    Ok(())
}

/// Checkpoints now and then until told to stop.
///
/// With `may_crash`, the power fails now and then right behind a checkpoint that came right behind
/// the freeing of a changed page: what the checkpoint relied on must be durable by then.
fn checkpoints(mini: &Miniature, mut random: Random, stop: &AtomicBool, may_crash: bool) {
    let pause = *random.pick(&[3, 30, 300]);
    while !stop.load(Ordering::Relaxed) {
        runtime::sleep(Duration::from_millis(random.below(pause)));
        if random.one_in(4) {
            mini.store.flush_until(mini.wal.end()).expect("no faults");
        }
        let live: Vec<u64> = lock(&mini.model).live.keys().copied().collect();
        let crashes = may_crash && !live.is_empty() && random.one_in(12);
        if crashes {
            let pid = live[random.index(live.len())];
            mini.patch(&mut random, &[pid]).expect("no faults");
            mini.patch(&mut random, &[live[0]]).expect("no faults");
            mini.free(&mut random, pid).expect("no faults");
        }
        mini.checkpoint().expect("no faults");
        if crashes {
            runtime::sim::crash_now();
        }
    }
}

fn life(
    model: &SharedModel,
    options: StoreOptions,
    sizes: Sizes,
    mut random: Random,
    may_crash: bool,
) {
    let mini = Miniature::start(model, options, sizes).expect("no faults");
    let stop = Arc::new(AtomicBool::new(false));
    let checkpointer = {
        let (mini, random, stop) = (mini.clone(), random.fork(), stop.clone());
        runtime::spawn("checkpoints", move || checkpoints(&mini, random, &stop, may_crash))
    };
    let operations = 20 + random.below(150);
    let fibers: Vec<_> = (0..8 + random.index(4))
        .map(|_| {
            let (mini, random) = (mini.clone(), random.fork());
            runtime::spawn("worker", move || {
                one_fiber(&mini, random, operations).expect("no faults");
            })
        })
        .collect();
    for fiber in fibers {
        fiber.join().unwrap_or_else(|panic| panic.resume());
    }
    stop.store(true, Ordering::Relaxed);
    checkpointer.join().unwrap_or_else(|panic| panic.resume());
    mini.stop().expect("no faults");
}

pub fn run_seed(seed: u64) -> Model {
    let model = SharedModel::default();
    let mut random = Random::new(seed);
    let sizes = Sizes::random(&mut random);
    let mut disk = None;
    for number in 0.. {
        let mut config = SimConfig::new(seed.wrapping_mul(1000) + number);
        let is_last = number >= 4;
        if !is_last {
            let steps = *random.pick(&[100, 1000, 6000, 12_000]);
            config.crash_at_step = Some(1 + random.below(steps));
        }
        let mut simulation = match disk.take() {
            None => Simulation::new(config),
            Some(disk) => Simulation::with_disk(config, disk),
        };
        let (options, random_of_life) = (options(&mut random), random.fork());
        let shared = model.clone();
        let ended = simulation.run(move || {
            crate::miniature::set_plenty((seed + number).is_multiple_of(2));
            life(&shared, options, sizes, random_of_life, !is_last);
        });
        match ended {
            Ok(()) | Err(SimEnd::Crashed) => {}
            Err(other) => panic!("life {number}: {other}"),
        }
        let kind = *random.pick(&[CrashKind::Power, CrashKind::Power, CrashKind::Process]);
        disk = Some(simulation.crash(kind));
        if ended.is_ok() && is_last {
            break;
        }
    }
    Arc::into_inner(model)
        .expect("all fibers are gone")
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
