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
        self.table.acquire(&self.owner, &mut self.held, (TREE, key), mode, rule)
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
        let table = Arc::new(LockTable::default());
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
        let table = Arc::new(LockTable::default());
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
        let table = Arc::new(LockTable::default());
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
        let table = Arc::new(LockTable::default());
        let mut one = Holder::new(&table, 1);
        one.lock(b"a", LockMode::Exclusive).unwrap();
        let mut two = Holder::new(&table, 2);
        let begun = runtime::now();
        let result = two.lock_within(b"a", LockMode::Shared, Duration::from_secs(3));
        assert_eq!(result, Err(LockError::Timeout));
        assert!(begun.elapsed() >= Duration::from_secs(3));
        let never = WaitRule::Never;
        let result =
            table.acquire(&two.owner, &mut two.held, (TREE, b"a"), LockMode::Shared, never);
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
        let table = Arc::new(LockTable::default());
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
        let table = Arc::new(LockTable::default());
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

/// One finds a row written by three, which waits for two, which waits for one: when the lock of
/// three becomes explicit there are two cycles, of which only one passes through who looked.
#[test]
fn a_cycle_beside_who_makes_a_lock_explicit_is_found() {
    for heavy in [2, 3] {
        simulate(6, move || {
            let table = Arc::new(LockTable::default());
            let (mut one, mut two) = (Holder::new(&table, 1), Holder::new(&table, 2));
            let mut three = Holder::new(&table, 3);
            let three_owner = three.owner.clone();
            let weight = |number| if number == heavy { 10 } else { 5 };
            two.owner.add_weight(weight(2));
            three.owner.add_weight(weight(3));
            two.lock(b"b", LockMode::Exclusive).unwrap();
            // Three has written r; one gets the explicit lock and has not read the word yet.
            one.lock(b"r", LockMode::Exclusive).unwrap();
            let two = runtime::spawn("two", move || {
                let result = two.lock(b"r", LockMode::Exclusive);
                two.end();
                result
            });
            let three = runtime::spawn("three", move || {
                runtime::sleep(Duration::from_millis(1));
                let result = three.lock(b"b", LockMode::Exclusive);
                three.end();
                result
            });
            runtime::sleep(Duration::from_millis(2));
            let rule = WaitRule::Until(runtime::now() + Duration::from_secs(50));
            let at = (TREE, &b"r"[..]);
            let waited = table.wait_behind(&one.owner, &mut one.held, &three_owner, at, rule);
            assert_eq!(waited, Ok(Acquired::AfterWait), "it need not give up");
            one.end();
            let (two, three) = (two.join().unwrap(), three.join().unwrap());
            let (lost, won) = if heavy == 3 { (two, three) } else { (three, two) };
            assert_eq!((lost, won), (Err(LockError::Deadlock), Ok(Acquired::AfterWait)));
            assert!(table.is_empty());
        });
    }
}

/// The victim of a cycle is told in the wait that was part of it.
#[test]
fn a_wait_that_came_later_is_not_decided() {
    simulate(7, || {
        let owner = Owner::new(1, Label::default());
        let point = |key: &[u8]| WaitPoint::Gap { tree: TREE, key: KeyBytes::from_slice(key) };
        owner.begin_wait(point(b"a"));
        let first = owner.wait_number().unwrap();
        assert_eq!(owner.end_wait(), crate::owner::WAITING);
        assert_eq!(owner.wait_number(), None);
        owner.begin_wait(point(b"b"));
        assert!(!owner.decide_wait(first, crate::owner::VICTIM), "that wait is over");
        let second = owner.wait_number().unwrap();
        assert!(owner.decide_wait(second, crate::owner::VICTIM));
        assert!(!owner.decide(crate::owner::GRANTED), "a wait is decided once");
        assert_eq!(owner.end_wait(), crate::owner::VICTIM);
    });
}

#[test]
fn a_writer_keeps_its_row_ahead_of_all_who_have_not_read_its_word() {
    simulate(8, || {
        let table = Arc::new(LockTable::default());
        let mut writer = Holder::new(&table, 1);
        writer.owner.add_weight(1);
        let writer_owner = writer.owner.clone();
        let order = Arc::new(runtime::sync::Mutex::new(Vec::new()));
        // Two hold the row shared and will find the word after a while, a third waits.
        let fibers: Vec<_> =
            [(2, LockMode::Shared), (3, LockMode::Shared), (4, LockMode::Exclusive)]
                .into_iter()
                .map(|(number, mode)| {
                    let (table, order) = (table.clone(), order.clone());
                    let holder = writer_owner.clone();
                    let fiber = runtime::spawn("reader", move || {
                        let mut it = Holder::new(&table, number);
                        it.lock(b"r", mode).unwrap();
                        if number < 4 {
                            runtime::sleep(Duration::from_secs(number));
                            let rule = WaitRule::Until(runtime::now() + Duration::from_secs(50));
                            let at = (TREE, &b"r"[..]);
                            table.wait_behind(&it.owner, &mut it.held, &holder, at, rule).unwrap();
                        }
                        order.lock().push(number);
                        it.end();
                    });
                    runtime::sleep(Duration::from_millis(1));
                    fiber
                })
                .collect();
        let begun = runtime::now();
        table.keep(&writer.owner, &mut writer.held, (TREE, b"r")).unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(2), "until the last one has read the word");
        assert!(order.lock().is_empty(), "nobody came in between");
        writer.end();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
        assert_eq!(order.lock().len(), 3);
        assert!(table.is_empty());
    });
}

/// A row of the storm below: who has written it and not ended, and who is in it.
#[derive(Default)]
struct Row {
    writer: runtime::sync::Mutex<Option<Arc<Owner>>>,
    inside: AtomicI64,
}

/// Locks a row as the engine does: the explicit lock first, then, after a moment, a look at who
/// has written it, behind whom it waits. A writer gives the explicit lock back when it can.
fn change_row(it: &mut Holder, rows: &[Row], at: usize, random: &mut Random) -> LockResult {
    let key = [at as u8];
    loop {
        it.lock(&key, LockMode::Exclusive)?;
        if random.chance(0.5) {
            runtime::sleep(Duration::from_micros(random.below(40)));
        }
        let writer = rows[at].writer.lock().clone();
        match writer {
            Some(writer) if Arc::ptr_eq(&writer, &it.owner) => return Ok(()),
            Some(writer) => {
                let rule = WaitRule::Until(runtime::now() + Duration::from_secs(50));
                let place = (TREE, &key[..]);
                let table = it.table.clone();
                table.wait_behind(&it.owner, &mut it.held, &writer, place, rule)?;
            }
            None => {
                *rows[at].writer.lock() = Some(it.owner.clone());
                assert_eq!(rows[at].inside.fetch_add(1, Ordering::SeqCst), 0, "one writer");
                it.owner.add_change();
                it.table.release_last_if_alone(&it.owner, &mut it.held, TREE, &key);
                return Ok(());
            }
        }
    }
}

type LockResult = Result<(), LockError>;

fn storm_of_words(seed: u64) -> u64 {
    const ROWS: usize = 4;
    simulate(seed, move || {
        let table = Arc::new(LockTable::default());
        let rows: Arc<[Row]> = (0..ROWS).map(|_| Row::default()).collect();
        let victims = Arc::new(AtomicU64::new(0));
        let fibers: Vec<_> = (0..6)
            .map(|fiber| {
                let (table, rows, victims) = (table.clone(), rows.clone(), victims.clone());
                runtime::spawn("storm", move || {
                    let mut random = Random::new(seed * 1000 + fiber);
                    for round in 0..25 {
                        let mut it = Holder::new(&table, fiber + 6 * round + 1);
                        let mut changed = Vec::new();
                        for _ in 0..random.below(3) + 1 {
                            let at = random.below(ROWS as u64) as usize;
                            match change_row(&mut it, &rows, at, &mut random) {
                                Ok(()) => changed.push(at),
                                Err(LockError::Deadlock) => {
                                    victims.fetch_add(1, Ordering::Relaxed);
                                    break;
                                }
                                Err(error) => panic!("{error}: a wait that nobody ended"),
                            }
                            // Now and then a change is undone and the row stays locked.
                            if random.chance(0.2)
                                && changed.iter().filter(|it| **it == at).count() == 1
                            {
                                it.table
                                    .keep(&it.owner, &mut it.held, (TREE, &[at as u8]))
                                    .unwrap();
                                rows[at].inside.fetch_sub(1, Ordering::SeqCst);
                                *rows[at].writer.lock() = None;
                                changed.pop();
                            }
                        }
                        changed.sort_unstable();
                        changed.dedup();
                        for at in changed {
                            rows[at].inside.fetch_sub(1, Ordering::SeqCst);
                            *rows[at].writer.lock() = None;
                        }
                        it.end();
                    }
                })
            })
            .collect();
        fibers.into_iter().for_each(|fiber| fiber.join().unwrap());
        assert!(table.is_empty());
        assert_eq!(table.waiting(), 0);
        victims.load(Ordering::Relaxed)
    })
}

#[test]
fn storms_of_rows_held_by_their_words_do_not_hang() {
    let seeds = std::env::var("GANNET_SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(60);
    let victims: u64 = (0..seeds).map(storm_of_words).sum();
    println!("{seeds} seeds: {victims} deadlock victims");
    assert!(victims > 0);
}

#[test]
fn giving_back_a_raised_lock_keeps_the_one_before_it() {
    simulate(2, || {
        let table = Arc::new(LockTable::default());
        let (mut first, mut other) = (Holder::new(&table, 1), Holder::new(&table, 2));
        let soon = Duration::from_millis(1);
        assert_eq!(first.lock(b"k", LockMode::Shared), Ok(Acquired::Now));
        assert_eq!(first.lock(b"k", LockMode::Exclusive), Ok(Acquired::Now));
        table.release_newest(&first.owner, &mut first.held, TREE, b"k");
        assert_eq!(other.lock_within(b"k", LockMode::Shared, soon), Ok(Acquired::Now));
        assert_eq!(
            other.lock_within(b"k", LockMode::Exclusive, soon),
            Err(LockError::Timeout),
            "the shared one was held before"
        );
        table.release_newest(&first.owner, &mut first.held, TREE, b"k");
        assert_eq!(other.lock_within(b"k", LockMode::Exclusive, soon), Ok(Acquired::Now));
        other.end();
        first.end();
    });
}
