//! The lock table under many fibers in the simulated runtime.

use super::*;
use crate::owner::{Label, Owner};
use base::Random;
use runtime::sim::{SimConfig, Simulation};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

const TREE: TreeId = TreeId::new(9);

/// A transaction of these tests: an owner and what it holds.
struct Holder {
    table: Arc<LockTable>,
    owner: Arc<Owner>,
    held: HeldLocks,
}

impl Holder {
    fn new(table: &Arc<LockTable>, number: u64) -> Self {
        Self {
            table: table.clone(),
            owner: Owner::new(number, Label::default()),
            held: HeldLocks::new(),
        }
    }

    fn lock(&mut self, key: &[u8], mode: LockMode) -> Result<Acquired, LockError> {
        self.lock_within(key, mode, Duration::from_secs(50))
    }

    fn lock_within(
        &mut self,
        key: &[u8],
        mode: LockMode,
        limit: Duration,
    ) -> Result<Acquired, LockError> {
        let rule = WaitRule::Until(runtime::now() + limit);
        let wish = (mode, LockKind::Record);
        self.table.acquire(&self.owner, &mut self.held, (TREE, key), wish, rule)
    }

    fn end(mut self) {
        self.table.release_all(&self.owner, &mut self.held);
        self.owner.end();
    }
}

fn simulate<T: 'static>(seed: u64, f: impl FnOnce() -> T + 'static) -> T {
    Simulation::new(SimConfig::new(seed)).run(f).expect("the simulation ends well")
}

#[test]
fn first_come_first_served_and_no_overtaking_by_readers() {
    simulate(1, || {
        let table = Arc::new(LockTable::new());
        let mut first = Holder::new(&table, 1);
        assert_eq!(first.lock(b"k", LockMode::Shared), Ok(Acquired::Now));
        assert_eq!(first.lock(b"k", LockMode::Shared), Ok(Acquired::Already));
        let order = Arc::new(runtime::sync::Mutex::new(Vec::new()));
        let fibers: Vec<_> = [LockMode::Exclusive, LockMode::Shared, LockMode::Shared]
            .into_iter()
            .enumerate()
            .map(|(at, mode)| {
                let (table, order) = (table.clone(), order.clone());
                let fiber = runtime::spawn("waiter", move || {
                    let mut it = Holder::new(&table, 2 + at as u64);
                    assert_eq!(it.lock(b"k", mode), Ok(Acquired::AfterWait));
                    order.lock().push(at);
                    runtime::sleep(Duration::from_millis(1));
                    it.end();
                });
                runtime::sleep(Duration::from_millis(1));
                fiber
            })
            .collect();
        assert_eq!(table.waiting(), 3, "the shared ones wait behind the exclusive one");
        first.end();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
        assert_eq!(order.lock()[0], 0);
        assert!(table.is_empty());
    });
}

#[test]
fn a_cycle_through_any_blocker_is_found() {
    simulate(2, || {
        // 1 and 2 both hold S on a; 3 waits for X on a with b held; then 2 wants b. An edge
        // remembered from 3 to 1 only would miss the cycle 3 -> 2 -> 3.
        let table = Arc::new(LockTable::new());
        let mut one = Holder::new(&table, 1);
        let mut two = Holder::new(&table, 2);
        one.lock(b"a", LockMode::Shared).unwrap();
        two.lock(b"a", LockMode::Shared).unwrap();
        two.owner.add_weight(10);
        let shared = table.clone();
        let three = runtime::spawn("three", move || {
            let mut three = Holder::new(&shared, 3);
            three.lock(b"b", LockMode::Exclusive).unwrap();
            let result = three.lock(b"a", LockMode::Exclusive);
            three.end();
            result
        });
        runtime::sleep(Duration::from_millis(1));
        assert_eq!(two.lock(b"b", LockMode::Exclusive), Ok(Acquired::AfterWait));
        assert_eq!(three.join().unwrap(), Err(LockError::Deadlock), "the lighter one gives up");
        one.end();
        two.end();
        assert!(table.is_empty());
    });
}

#[test]
fn two_readers_that_both_want_to_write() {
    simulate(3, || {
        let table = Arc::new(LockTable::new());
        let mut one = Holder::new(&table, 1);
        one.lock(b"a", LockMode::Shared).unwrap();
        let shared = table.clone();
        let other = runtime::spawn("other", move || {
            let mut two = Holder::new(&shared, 2);
            two.lock(b"a", LockMode::Shared).unwrap();
            two.owner.add_weight(5);
            let result = two.lock(b"a", LockMode::Exclusive);
            two.end();
            result
        });
        runtime::sleep(Duration::from_millis(1));
        assert_eq!(one.lock(b"a", LockMode::Exclusive), Err(LockError::Deadlock));
        one.end();
        assert_eq!(other.join().unwrap(), Ok(Acquired::AfterWait));
        assert!(table.is_empty());
    });
}

#[test]
fn waits_end_by_time_and_by_cancellation() {
    simulate(4, || {
        let table = Arc::new(LockTable::new());
        let mut one = Holder::new(&table, 1);
        one.lock(b"a", LockMode::Exclusive).unwrap();
        let mut two = Holder::new(&table, 2);
        let begun = runtime::now();
        let result = two.lock_within(b"a", LockMode::Shared, Duration::from_secs(3));
        assert_eq!(result, Err(LockError::Timeout));
        assert!(begun.elapsed() >= Duration::from_secs(3));
        let never = WaitRule::Never;
        let wish = (LockMode::Shared, LockKind::Record);
        let result = table.acquire(&two.owner, &mut two.held, (TREE, b"a"), wish, never);
        assert_eq!(result, Err(LockError::Unavailable));

        let token = runtime::CancelToken::new();
        let killer = token.clone();
        let fiber = runtime::spawn("killer", move || {
            runtime::sleep(Duration::from_millis(5));
            killer.cancel(runtime::CancelReason::KillQuery);
        });
        let result = runtime::with_cancel(&token, || two.lock(b"a", LockMode::Shared));
        assert_eq!(result, Err(LockError::Cancelled));
        fiber.join().unwrap();
        assert_eq!(table.len(), 1, "requests that gave up are gone");
        one.end();
        two.end();
        assert!(table.is_empty());
    });
}

#[test]
fn a_row_held_by_its_word_becomes_an_explicit_lock() {
    simulate(5, || {
        let table = Arc::new(LockTable::new());
        let writer = Holder::new(&table, 1);
        let writer_owner = writer.owner.clone();
        let shared = table.clone();
        let waiter = runtime::spawn("waiter", move || {
            let mut two = Holder::new(&shared, 2);
            assert_eq!(two.lock(b"r", LockMode::Exclusive), Ok(Acquired::Now));
            // It reads the row and finds the writer's word.
            let rule = WaitRule::Until(runtime::now() + Duration::from_secs(9));
            let held = &mut two.held;
            let at = (TREE, &b"r"[..]);
            let waited = shared.wait_behind(&two.owner, held, &writer_owner, at, rule);
            assert_eq!(waited, Ok(Acquired::AfterWait));
            assert_eq!(two.lock(b"r", LockMode::Exclusive), Ok(Acquired::Already));
            two.end();
        });
        runtime::sleep(Duration::from_millis(1));
        let mut writer = writer;
        // The writer comes again: it holds the lock already and does not queue behind the waiter.
        assert_eq!(writer.lock(b"r", LockMode::Exclusive), Ok(Acquired::Already));
        writer.end();
        waiter.join().unwrap();
        assert!(table.is_empty());
        let late = Owner::new(7, Label::default());
        assert!(late.end_inheritance().is_empty());
        let mut two = Holder::new(&table, 2);
        two.lock(b"r", LockMode::Exclusive).unwrap();
        let rule = WaitRule::Until(runtime::now() + Duration::from_secs(9));
        let waited = table.wait_behind(&two.owner, &mut two.held, &late, (TREE, b"r"), rule);
        assert_eq!(waited, Ok(Acquired::AfterWait), "it has ended: look again at once");
        two.end();
    });
}

/// Fibers lock random keys in random modes and check that nobody else is where they are.
fn storm(seed: u64) -> (u64, u64) {
    const KEYS: usize = 6;
    const FIBERS: u64 = 12;
    simulate(seed, move || {
        let table = Arc::new(LockTable::new());
        let users: Arc<[AtomicI64]> = (0..KEYS).map(|_| AtomicI64::new(0)).collect();
        let (granted, victims) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let fibers: Vec<_> = (0..FIBERS)
            .map(|fiber| {
                let (table, users) = (table.clone(), users.clone());
                let (granted, victims) = (granted.clone(), victims.clone());
                runtime::spawn("storm", move || {
                    let mut random = Random::new(seed * 1000 + fiber);
                    for round in 0..30 {
                        let mut it = Holder::new(&table, fiber + FIBERS * round + 1);
                        let mut inside: Vec<(usize, i64)> = Vec::new();
                        for _ in 0..random.below(4) + 1 {
                            let key = random.below(KEYS as u64) as usize;
                            let exclusive = random.chance(0.5);
                            let mode =
                                if exclusive { LockMode::Exclusive } else { LockMode::Shared };
                            if inside.iter().any(|(other, _)| *other == key) {
                                continue;
                            }
                            match it.lock(&[key as u8], mode) {
                                Ok(_) => {}
                                Err(LockError::Deadlock) => {
                                    victims.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                                Err(error) => panic!("{error}"),
                            }
                            granted.fetch_add(1, Ordering::Relaxed);
                            let amount = if exclusive { 1000 } else { 1 };
                            let now = users[key].fetch_add(amount, Ordering::SeqCst) + amount;
                            assert!(now <= 1000, "key {key}: {now}");
                            inside.push((key, amount));
                            if random.chance(0.5) {
                                runtime::sleep(Duration::from_micros(random.below(50)));
                            }
                        }
                        for (key, amount) in inside {
                            users[key].fetch_sub(amount, Ordering::SeqCst);
                        }
                        it.end();
                    }
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
        assert!(table.is_empty());
        assert_eq!(table.waiting(), 0);
        (granted.load(Ordering::Relaxed), victims.load(Ordering::Relaxed))
    })
}

#[test]
fn storms_neither_hang_nor_let_two_in() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(40);
    let (mut granted, mut victims) = (0, 0);
    for seed in 0..seeds {
        let (g, v) = storm(seed);
        granted += g;
        victims += v;
    }
    println!("{seeds} seeds: {granted} locks granted, {victims} deadlock victims");
    assert!(victims > 0 && granted > victims);
}
