//! The real twin, with both event loops: io_uring and the fall-back.

use runtime::file::{AlignedBuf, OpenOptions};
use runtime::net::{Address, Connection, Listener, Next, Stream};
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

/// Echoes lines; "quit" closes, "panic" panics. Counts the idle timeouts.
struct Echo {
    timeouts: Arc<AtomicU64>,
}

impl Connection for Echo {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if stream.timed_out() {
            self.timeouts.fetch_add(1, Ordering::SeqCst);
            stream.write_all(b"tick\n").expect("the client listens");
            return Next::WaitReadable { timeout: None };
        }
        let mut buffer = [0; 65536];
        if !stream.wait_readable(Some(Duration::from_millis(1))) {
            return Next::WaitReadable { timeout: Some(Duration::from_millis(200)) };
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => Next::Close,
            Ok(length) if buffer[..length].starts_with(b"quit") => Next::Close,
            Ok(length) if buffer[..length].starts_with(b"panic") => panic!("planned"),
            Ok(length) => {
                stream.write_all(&buffer[..length]).expect("the client listens");
                Next::WaitReadable { timeout: Some(Duration::from_secs(100)) }
            }
        }
    }
}

fn exchange(stream: &mut Stream, message: &[u8]) {
    stream.write_all(message).expect("the server listens");
    let mut answer = vec![0; message.len()];
    let mut done = 0;
    while done < answer.len() {
        let read = stream.read(&mut answer[done..]).expect("an answer");
        assert!(read > 0, "the server closed");
        done += read;
    }
    assert_eq!(answer, message);
}

#[test]
fn two_hundred_connections() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("sockets");
        let socket = directory.0.join("socket");
        runtime.run(move || {
            let timeouts = Arc::new(AtomicU64::new(0));
            let counted = timeouts.clone();
            let tcp = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
            let unix = Listener::unix(&socket).expect("bound");
            let make = move |peer: &runtime::net::Peer, _| -> Box<dyn Connection> {
                assert_eq!(peer.user_id.is_some(), matches!(peer.address, Address::Unix(_)));
                Box::new(Echo { timeouts: counted.clone() })
            };
            let tcp = runtime::net::serve(tcp, make.clone());
            let unix = runtime::net::serve(unix, make);
            let clients: Vec<_> = (0..200usize)
                .map(|n| {
                    let address = if n % 4 == 0 { unix.address() } else { tcp.address() }.clone();
                    runtime::spawn_on(n, "client", move || {
                        let mut stream = runtime::net::connect(&address).expect("accepted");
                        for round in 0..20usize {
                            let length = if round == 10 { 300_000 } else { 1 + round * n % 200 };
                            if round == 10 && n % 20 != 0 {
                                continue;
                            }
                            let message: Vec<u8> =
                                (0..length).map(|place| b'a' + (place % 26) as u8).collect();
                            if length > 100_000 {
                                exchange_large(&mut stream, message);
                            } else {
                                exchange(&mut stream, &message);
                            }
                        }
                        let goodbye: &[u8] = if n % 50 == 0 { b"panic" } else { b"quit" };
                        stream.write_all(goodbye).expect("the server listens");
                        assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0);
                    })
                })
                .collect();
            for client in clients {
                client.join().expect("no panic");
            }
            let mut idle = runtime::net::connect(tcp.address()).expect("accepted");
            let mut tick = [0; 5];
            assert_eq!(idle.read(&mut tick).expect("the timeout's message"), 5);
            assert_eq!((&tick, timeouts.load(Ordering::SeqCst)), (b"tick\n", 1));
            idle.set_read_timeout(Some(Duration::from_millis(5)));
            let late = idle.read(&mut tick).expect_err("nothing comes");
            assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
            let handle = idle.handle();
            let closer = runtime::spawn_on(1, "closer", move || {
                runtime::sleep(Duration::from_millis(5));
                handle.close();
            });
            idle.set_read_timeout(None);
            assert_eq!(idle.read(&mut tick).expect("closed"), 0);
            closer.join().expect("no panic");
            tcp.stop();
            unix.stop();
            runtime::sleep(Duration::from_millis(20));
            assert!(runtime::net::connect(tcp.address()).is_err(), "nobody listens");
        });
    });
}

/// Sends more than the socket takes at once, while another fiber reads the echo.
fn exchange_large(stream: &mut Stream, message: Vec<u8>) {
    let mut sent = 0;
    let mut received = Vec::new();
    let mut buffer = vec![0; 65536];
    while received.len() < message.len() {
        let piece = (message.len() - sent).min(60_000);
        stream.write_all(&message[sent..sent + piece]).expect("the server listens");
        sent += piece;
        while received.len() < sent {
            let read = stream.read(&mut buffer).expect("an answer");
            assert!(read > 0, "the server closed");
            received.extend_from_slice(&buffer[..read]);
        }
    }
    assert_eq!(received, message);
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

/// Computes for a while at every request and tells on which worker.
struct Burner {
    is_new: bool,
}

impl Connection for Burner {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !std::mem::take(&mut self.is_new) {
            match stream.read(&mut [0; 16]) {
                Ok(0) | Err(_) => return Next::Close,
                Ok(_) => {}
            }
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_micros(300) {
                std::hint::spin_loop();
            }
            if stream.write_all(&[runtime::current_worker() as u8]).is_err() {
                return Next::Close;
            }
        }
        Next::WaitReadable { timeout: None }
    }
}

/// Connections go to the workers in turn; all but every second one stay idle, so one worker has
/// everything to do until the other takes over some. How soon depends on the machine, so the
/// clients go on until it has happened.
#[test]
fn connections_move_to_a_worker_with_less_to_do() {
    const ENOUGH: u64 = 20;
    each_loop(|runtime| {
        runtime.run(|| {
            let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"));
            let served = runtime::net::serve(listener.expect("bound"), |_, _| {
                Box::new(Burner { is_new: true })
            });
            let runs = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            let streams: Vec<_> = (0..48)
                .map(|_| runtime::net::connect(served.address()).expect("accepted"))
                .collect();
            let late = runtime::now() + PATIENCE;
            let mut idle = Vec::new();
            let mut clients = Vec::new();
            for (n, mut stream) in streams.into_iter().enumerate() {
                if n % 2 == 1 {
                    idle.push(stream);
                    continue;
                }
                let runs = runs.clone();
                clients.push(runtime::spawn("client", move || {
                    let is_enough = |k: usize| runs[k].load(Ordering::Relaxed) >= ENOUGH;
                    while !(is_enough(0) && is_enough(1)) && runtime::now() < late {
                        stream.write_all(b"request").expect("the server listens");
                        let mut worker = [0];
                        assert_eq!(stream.read(&mut worker).expect("an answer"), 1);
                        runs[worker[0] as usize].fetch_add(1, Ordering::Relaxed);
                    }
                }));
            }
            clients.into_iter().for_each(|client| client.join().expect("no panic"));
            let runs = [0, 1].map(|k| runs[k].load(Ordering::Relaxed));
            assert!(runs.iter().all(|&runs| runs >= ENOUGH), "both work: {runs:?}");
            drop(idle);
            served.stop();
        });
    });
}

/// Greets with the number of its worker, and then keeps its worker busy, without any call of the
/// runtime, until another connection was served too or it is tired of waiting.
struct Dependent {
    is_new: bool,
    served: Arc<AtomicU64>,
}

impl Connection for Dependent {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !std::mem::take(&mut self.is_new) {
            match stream.read(&mut [0; 16]) {
                Ok(0) | Err(_) => return Next::Close,
                Ok(_) => {}
            }
            let start = std::time::Instant::now();
            let former = self.served.fetch_add(1, Ordering::SeqCst);
            while self.served.load(Ordering::SeqCst) < former / 2 * 2 + 2
                && start.elapsed() < Duration::from_millis(100)
            {
                std::hint::spin_loop();
            }
        }
        stream.write_all(&[runtime::current_worker() as u8]).expect("the client reads");
        Next::WaitReadable { timeout: None }
    }
}

/// Two connections of one worker have something to read at once, and the first one run keeps the
/// worker busy: the other worker, which sleeps, takes over the second one. The kernel may tell of
/// the two requests one after the other, so this is tried until it happens.
#[test]
fn a_sleeping_worker_takes_over_what_stands_behind_a_busy_fiber() {
    each_loop(|runtime| {
        let served = Arc::new(AtomicU64::new(0));
        let address = runtime.run(move || {
            let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"));
            let handle = runtime::net::serve(listener.expect("bound"), move |_, _| {
                Box::new(Dependent { is_new: true, served: served.clone() })
            });
            handle.address().clone()
        });
        let Address::Tcp(address) = address else { panic!("a TCP address was bound") };
        let start = std::time::Instant::now();
        while !both_workers_serve(runtime, address) {
            assert!(start.elapsed() < PATIENCE, "nobody took over the other connection");
        }
    });
}

/// One try; true when each worker served one of the two requests.
fn both_workers_serve(runtime: &Runtime, address: std::net::SocketAddr) -> bool {
    use std::io::{Read, Write};
    let answer = |stream: &mut std::net::TcpStream| {
        let mut worker = [0];
        stream.read_exact(&mut worker).expect("an answer");
        usize::from(worker[0])
    };
    // Of three connections two are on the same worker.
    let mut streams = [(); 3].map(|()| {
        let mut stream = std::net::TcpStream::connect(address).expect("accepted");
        (answer(&mut stream), stream)
    });
    streams.sort_by_key(|(worker, _)| *worker);
    let first = usize::from(streams[0].0 != streams[1].0);
    let (home, pair) = (streams[first].0, &mut streams[first..first + 2]);
    let (started, starts) = std::sync::mpsc::channel();
    let (sent, send) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            runtime.run(move || {
                let busy = runtime::spawn_on(home, "busy", move || {
                    runtime::sleep(Duration::from_millis(1));
                    started.send(()).expect("the test waits");
                    send.recv_timeout(PATIENCE).expect("the test sends");
                    std::thread::sleep(Duration::from_millis(5));
                });
                busy.join().expect("no panic");
            });
        });
        starts.recv_timeout(PATIENCE).expect("the worker runs");
        for (_, stream) in pair.iter_mut() {
            stream.write_all(b"request").expect("the server listens");
        }
        sent.send(()).expect("the worker waits");
        let workers = [0, 1].map(|n| answer(&mut pair[n].1));
        workers[0] != workers[1]
    })
}
