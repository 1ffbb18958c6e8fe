//! What tells that cores are short (`runtime::pressure`).

use runtime::{Config, Ring, Runtime};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(300);

/// Computes for a time, as a long statement or the compression of pages does.
fn compute() {
    let end = runtime::now() + TIME;
    while runtime::now() < end {
        (0..100).for_each(|_| std::hint::spin_loop());
        runtime::yield_if_due();
    }
}

/// For how long a worker is crowded on which so many fibers compute.
fn crowded(count: usize) -> Duration {
    let config = Config { workers: 1, ring: Ring::Uring, ..Config::default() };
    let runtime = Runtime::start(config).expect("the loop is permitted here");
    let crowded = runtime.run(move || {
        let before = runtime::pressure().crowded;
        let fibers: Vec<_> = (0..count).map(|_| runtime::spawn("compute", compute)).collect();
        fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
        runtime::pressure().crowded - before
    });
    runtime.shutdown();
    crowded
}

#[test]
fn a_worker_is_crowded_when_fibers_wait_for_others() {
    let alone = crowded(1);
    assert!(alone < TIME / 4, "{alone:?} with nobody else");
    let together = crowded(3);
    assert!(together > TIME / 2, "{together:?} of {TIME:?}");
}
