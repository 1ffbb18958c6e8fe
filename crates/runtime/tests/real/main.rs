//! The real twin, with both event loops: io_uring and the fall-back.

mod admission;
mod ahead;
mod answers;
mod connections;
mod pressure;

use runtime::file::{AlignedBuf, OpenOptions};
use runtime::net::Listener;
use runtime::sync::{Event, FiberMutex, Semaphore, WaitQueue};
use runtime::{CancelReason, CancelToken, Config, Ring, Runtime, WaitClass, Wake};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long a test waits for what must happen at some time; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn each_loop(test: impl Fn(&Runtime)) {
    for ring in [Ring::Uring, Ring::Fallback] {
        let config = Config { workers: 2, ring, ..Config::default() };
        let runtime = Runtime::start(config).expect("the loop is permitted here");
        assert_eq!(runtime.uses_uring(), ring == Ring::Uring);
        test(&runtime);
        runtime.shutdown();
    }
}

struct TemporaryDirectory(std::path::PathBuf);

impl TemporaryDirectory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_wall_clock_is_nearly_the_kernels() {
    let kernel = || {
        let passed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        passed.expect("after 1970").as_micros() as i64
    };
    each_loop(move |runtime| {
        let late_most = runtime.run(move || {
            let (mut last, mut late_most) = (0, 0);
            for round in 0..3_000 {
                let (before, now, after) = (kernel(), runtime::wall_clock_micros(), kernel());
                assert!(now >= last, "round {round}: {now} after {last}");
                // The rate of the counter is measured, not known.
                assert!(now <= after + 20, "round {round}: {now} at {after}");
                late_most = late_most.max(before - now);
                last = now;
                match round % 50 {
                    0 => runtime::yield_now(),
                    few => (0..few * 20).for_each(|_| std::hint::spin_loop()),
                }
            }
            late_most
        });
        // An interruption between two readings makes it late for the rest of a turn.
        assert!(late_most < 1_000_000, "{late_most} us late");
    });
}

#[test]
fn spawn_join_and_panic_containment() {
    each_loop(|runtime| {
        let total = runtime.run(|| {
            let fibers: Vec<_> =
                (0..100usize).map(|n| runtime::spawn_on(n, "add", move || n)).collect();
            let sum: usize = fibers.into_iter().map(|fiber| fiber.join().expect("no panic")).sum();
            let panicking = runtime::spawn_on(1, "bad", || panic!("planned"));
            let panic = panicking.join().expect_err("it panics");
            assert_eq!(panic.message(), "planned");
            let caught = runtime::catch_panic(|| panic!("{}", "also planned"));
            assert_eq!(caught.expect_err("it panics").message(), "also planned");
            sum
        });
        assert_eq!(total, 4950);
    });
}

#[test]
fn parking_across_workers() {
    each_loop(|runtime| {
        runtime.run(|| {
            let (ping, pong) = (Arc::new(Event::new()), Arc::new(Event::new()));
            let (their_ping, their_pong) = (ping.clone(), pong.clone());
            let other = runtime::spawn_on(1, "pong", move || {
                for _ in 0..2_000 {
                    their_ping.take(WaitClass::Other, None);
                    their_pong.set();
                }
            });
            for _ in 0..2_000 {
                ping.set();
                assert_eq!(pong.take(WaitClass::Other, None), Wake::Unparked);
            }
            other.join().expect("no panic");
        });
    });
}

#[test]
fn unpark_before_park_is_not_lost_and_threads_may_unpark() {
    each_loop(|runtime| {
        runtime.run(|| {
            runtime::current_unparker().unpark();
            assert_eq!(runtime::park(WaitClass::Other, None), Wake::Unparked);
            let unparker = runtime::current_unparker();
            let thread = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(5));
                unparker.unpark();
            });
            assert_eq!(runtime::park(WaitClass::Other, None), Wake::Unparked);
            thread.join().expect("no panic");
        });
    });
}

#[test]
fn timers_and_cancellation() {
    each_loop(|runtime| {
        runtime.run(|| {
            let start = runtime::now();
            let sleepers: Vec<_> = (1..50u64)
                .map(|n| {
                    runtime::spawn_on(n as usize, "sleeper", move || {
                        runtime::sleep(Duration::from_micros(n * 300));
                        runtime::now()
                    })
                })
                .collect();
            for (n, sleeper) in (1..50u64).zip(sleepers) {
                let slept = sleeper.join().expect("no panic") - start;
                assert!(slept >= Duration::from_micros(n * 300), "{slept:?} for {n}");
            }
            let token = CancelToken::new();
            let seen = token.clone();
            let waiter = runtime::spawn_on(1, "cancelled", move || {
                let wake = runtime::with_cancel(&seen, || {
                    let first = runtime::sleep(Duration::from_secs(1000));
                    let again = runtime::park(WaitClass::Other, None);
                    assert_eq!(again, Wake::Cancelled, "cancellation stays");
                    let soon = runtime::now() + Duration::from_millis(2);
                    let firm = runtime::park_uncancellable(WaitClass::Other, Some(soon));
                    assert_eq!(firm, Wake::TimedOut);
                    first
                });
                let soon = runtime::now() + Duration::from_millis(1);
                assert_eq!(runtime::park(WaitClass::Other, Some(soon)), Wake::TimedOut);
                wake
            });
            runtime::sleep(Duration::from_millis(3));
            token.cancel(CancelReason::KillQuery);
            assert_eq!(waiter.join().expect("no panic"), Wake::Cancelled);
            assert_eq!(token.reason(), Some(CancelReason::KillQuery));
            assert!(token.rearm() && !token.is_cancelled());
            token.cancel(CancelReason::KillConnection);
            assert!(!token.rearm());
        });
    });
}

#[test]
fn a_timer_that_is_no_longer_wanted_delays_and_hastens_nothing() {
    each_loop(|runtime| {
        runtime.run(|| {
            // The first timer is given up after a millisecond, far before it or just about then.
            for (given_up_ms, wanted_ms) in [(600_000, 5), (5, 20), (1, 40)] {
                let unparker = runtime::current_unparker();
                let thread = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(1));
                    unparker.unpark();
                });
                let given_up = runtime::now() + Duration::from_millis(given_up_ms);
                runtime::park(WaitClass::Other, Some(given_up));
                thread.join().expect("no panic");
                let (begun, wanted) = (runtime::now(), Duration::from_millis(wanted_ms));
                assert_eq!(runtime::sleep(wanted), Wake::TimedOut);
                let slept = runtime::now() - begun;
                assert!(slept >= wanted && slept < PATIENCE, "{slept:?} for {wanted:?}");
            }
        });
    });
}

#[test]
fn locks_and_queues_between_workers() {
    each_loop(|runtime| {
        runtime.run(|| {
            let counter = Arc::new(FiberMutex::new(0u64));
            let semaphore = Arc::new(Semaphore::new(3, WaitClass::Admission));
            let inside = Arc::new(AtomicU64::new(0));
            let fibers: Vec<_> = (0..16)
                .map(|n| {
                    let (counter, semaphore, inside) =
                        (counter.clone(), semaphore.clone(), inside.clone());
                    runtime::spawn_on(n, "worker", move || {
                        for _ in 0..100 {
                            let permit = semaphore.acquire(1, None).expect("nobody cancels");
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < 3);
                            let mut guard = counter.lock();
                            let seen = *guard;
                            runtime::yield_now();
                            *guard = seen + 1;
                            drop(guard);
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(permit);
                        }
                    })
                })
                .collect();
            fibers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
            assert_eq!(*counter.lock(), 1600);
            assert_eq!(semaphore.free(), 3);
        });
    });
}

#[test]
fn wait_queue_passes_on_unused_wake_ups() {
    each_loop(|runtime| {
        runtime.run(|| {
            let queue = Arc::new(WaitQueue::new());
            let stop = Arc::new(AtomicBool::new(false));
            let taken = Arc::new(AtomicU64::new(0));
            let available = Arc::new(AtomicU64::new(0));
            let consumers: Vec<_> = (0..8)
                .map(|n| {
                    let (queue, stop) = (queue.clone(), stop.clone());
                    let (taken, available) = (taken.clone(), available.clone());
                    runtime::spawn_on(n, "consumer", move || {
                        while !stop.load(Ordering::SeqCst) {
                            let deadline = runtime::now() + Duration::from_micros(300);
                            let take = |left: u64| left.checked_sub(1);
                            let wake = queue.wait_until(WaitClass::Other, Some(deadline), || {
                                available
                                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                                    .is_ok()
                            });
                            taken.fetch_add(u64::from(wake == Wake::Unparked), Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            for _ in 0..3_000 {
                available.fetch_add(1, Ordering::SeqCst);
                queue.wake_one();
                runtime::yield_now();
            }
            while taken.load(Ordering::SeqCst) < 3_000 {
                runtime::sleep(Duration::from_micros(100));
            }
            stop.store(true, Ordering::SeqCst);
            consumers.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
        });
    });
}

#[test]
fn files() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("files");
        let path = directory.0.join("sub/file");
        runtime.run(move || {
            let parent = path.parent().expect("has one").to_path_buf();
            runtime::fs::create_dir_all(&parent).expect("permitted");
            let missing = OpenOptions::new().open(&path).expect_err("not there");
            assert_eq!(missing.raw_os_error(), Some(libc_enoent()));
            let file = OpenOptions::new().create(true).direct(true).open(&path).expect("opens");
            file.allocate_zeroed(0, 1 << 20).expect("space");
            assert_eq!(file.len().expect("open"), 1 << 20);
            let mut block = AlignedBuf::zeroed(8192);
            block.fill(7);
            file.write_and_sync(&block, 4096).expect("written");
            file.write_at(&block, 65536).expect("written");
            file.sync_data().expect("synced");
            // Some by the event loop, some while the worker waits, whichever it chooses.
            for n in 0..60u64 {
                block.fill(n as u8);
                file.write_durable(&block, 131_072 + n * 8192).expect("written");
            }
            for n in 0..60u64 {
                file.read_at(&mut block, 131_072 + n * 8192).expect("read");
                assert!(block.iter().all(|&byte| byte == n as u8), "block {n}");
            }
            let mut seen = AlignedBuf::zeroed(16384);
            file.read_at(&mut seen, 0).expect("read");
            assert!(seen[..4096].iter().all(|&byte| byte == 0));
            assert!(seen[4096..12288].iter().all(|&byte| byte == 7));
            let readers: Vec<_> = (0..32usize)
                .map(|n| {
                    let file = file.clone();
                    runtime::spawn_on(n, "reader", move || {
                        let mut page = AlignedBuf::zeroed(4096);
                        file.read_at(&mut page, 65536 + (n as u64 % 2) * 4096).expect("read");
                        page.iter().all(|&byte| byte == 7)
                    })
                })
                .collect();
            assert!(readers.into_iter().all(|reader| reader.join().expect("no panic")));
            let end = file.read_at(&mut seen, (1 << 20) - 4096).expect_err("beyond the end");
            assert_eq!(end.kind(), std::io::ErrorKind::UnexpectedEof);
            assert_eq!(file.read_up_to(&mut seen, (1 << 20) - 4096).expect("read"), 4096);
            let mut by_device_blocks = file.clone();
            let block_bytes = by_device_blocks.use_device_blocks();
            assert!((512..=4096).contains(&block_bytes) && block_bytes.is_power_of_two());
            let part = AlignedBuf::zeroed(block_bytes);
            by_device_blocks.write_durable(&part, 4096 + block_bytes as u64).expect("written");
            file.read_at(&mut seen, 0).expect("read");
            let zeroes: Vec<_> = (0..16384).filter(|&at| seen[at] == 0).collect();
            let written = 4096 + block_bytes..4096 + 2 * block_bytes;
            assert!(zeroes.into_iter().eq((0..4096).chain(written).chain(12288..16384)));
            file.set_len(4096).expect("cut");
            assert_eq!(file.len().expect("open"), 4096);
            let other = OpenOptions::new().open(&path).expect("opens");
            assert!(other.try_lock_exclusive().expect("a lock"));
            assert!(!file.try_lock_exclusive().expect("no lock"));
            assert!(OpenOptions::new().create_new(true).open(&path).is_err());
            let renamed = parent.join("renamed");
            runtime::fs::rename(&path, &renamed).expect("renamed");
            runtime::fs::sync_dir(&parent).expect("synced");
            assert_eq!(runtime::fs::read_dir(&parent).expect("listed"), ["renamed"]);
            assert!(!runtime::fs::exists(&path).expect("asked"));
            runtime::fs::remove_file(&renamed).expect("removed");
        });
    });
}

fn libc_enoent() -> i32 {
    2
}

#[test]
fn deferred_functions_wait_for_all_workers() {
    each_loop(|runtime| {
        runtime.run(|| {
            struct Cell(std::sync::atomic::AtomicPtr<u64>);
            const ALIVE: u64 = 0x5AFE;
            let cell = Arc::new(Cell(Box::into_raw(Box::new(ALIVE)).into()));
            let freed = Arc::new(AtomicU64::new(0));
            let running = Arc::new(AtomicU64::new(0));
            let stop = Arc::new(AtomicBool::new(false));
            let readers: Vec<_> = (0..6)
                .map(|n| {
                    let (cell, stop, running) = (cell.clone(), stop.clone(), running.clone());
                    runtime::spawn_on(n, "reader", move || {
                        running.fetch_add(1, Ordering::SeqCst);
                        let mut reads = 0u64;
                        while !stop.load(Ordering::Relaxed) {
                            let pointer = cell.0.load(Ordering::Acquire);
                            for _ in 0..20 {
                                // SAFETY: freed only after this worker's next scheduling point.
                                assert_eq!(unsafe { pointer.read_volatile() }, ALIVE);
                            }
                            reads += 1;
                            runtime::yield_now();
                        }
                        reads
                    })
                })
                .collect();
            while running.load(Ordering::SeqCst) < 6 {
                runtime::yield_now();
            }
            const ROUNDS: u64 = 5_000;
            for _ in 0..ROUNDS {
                let new = Box::into_raw(Box::new(ALIVE));
                let old = cell.0.swap(new, Ordering::AcqRel) as usize;
                let freed = freed.clone();
                runtime::quiescent::defer(move || {
                    // SAFETY: unlinked, and every worker has passed a scheduling point since.
                    unsafe {
                        (old as *mut u64).write_volatile(0xDEAD);
                        drop(Box::from_raw(old as *mut u64));
                    }
                    freed.fetch_add(1, Ordering::Relaxed);
                });
                runtime::yield_if_due();
            }
            while runtime::quiescent::pending() > 0 {
                runtime::sleep(Duration::from_millis(1));
            }
            assert_eq!(freed.load(Ordering::Relaxed), ROUNDS);
            stop.store(true, Ordering::Relaxed);
            for reader in readers {
                assert!(reader.join().expect("no panic") > 0);
            }
        });
    });
}

#[test]
fn helper_threads_and_shutdown_with_parked_fibers() {
    each_loop(|runtime| {
        let dropped = Arc::new(AtomicU64::new(0));
        struct Counted(Arc<AtomicU64>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let own = Runtime::start(Config {
            workers: 2,
            ring: if runtime.uses_uring() { Ring::Uring } else { Ring::Fallback },
            ..Config::default()
        });
        let own = own.expect("started");
        let counted = dropped.clone();
        own.run(move || {
            let started = Arc::new(AtomicU64::new(0));
            for n in 0..10 {
                let (counted, told) = (Counted(counted.clone()), started.clone());
                runtime::spawn_on(n, "for ever", move || {
                    let _counted = counted;
                    told.fetch_add(1, Ordering::SeqCst);
                    let caught = runtime::catch_panic(|| {
                        runtime::park_uncancellable(WaitClass::Other, None);
                    });
                    drop(caught);
                });
            }
            let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"));
            let listener = listener.expect("bound");
            let address = listener.address().clone();
            let counted = Counted(counted.clone());
            runtime::spawn("reader for ever", move || {
                let _counted = counted;
                let mut stream = runtime::net::connect(&address).expect("accepted");
                let _ = stream.read(&mut [0; 10]);
            });
            while started.load(Ordering::SeqCst) < 10 {
                runtime::sleep(Duration::from_millis(1));
            }
            std::mem::forget(listener);
            let sum = runtime::blocking(|| (0..1000u64).sum::<u64>());
            assert_eq!(sum, 499_500);
            runtime::sleep(Duration::from_millis(5));
        });
        own.shutdown();
        assert_eq!(dropped.load(Ordering::SeqCst), 11);
    });
}
