//! Admission and the reserved worker.

use crate::{PATIENCE, TemporaryDirectory};
use runtime::net::{Address, Connection, Listener, Next, Stream};
use runtime::{AdmissionSettings, Config, Runtime, WaitClass, park};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the connections of a test share.
#[derive(Default)]
struct Shared {
    /// Ends the statements that are busy.
    released: AtomicBool,
    busy: AtomicU64,
    waiting: AtomicU64,
}

/// "b" works without end until released, yielding; "w" waits until released; anything else is
/// answered at once. "r" releases.
struct Client {
    shared: Arc<Shared>,
    id: u64,
    is_new: bool,
}

impl Connection for Client {
    fn run(&mut self, stream: &mut Stream) -> Next {
        let mut byte = [0];
        if std::mem::take(&mut self.is_new) {
            return Next::WaitReadable { timeout: None };
        }
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return Next::Close;
        }
        let released = || self.shared.released.load(Ordering::SeqCst);
        match byte[0] {
            b'b' => {
                self.shared.busy.fetch_add(1, Ordering::SeqCst);
                while !released() {
                    runtime::yield_if_due();
                }
            }
            b'w' => {
                self.shared.waiting.fetch_add(1, Ordering::SeqCst);
                while !released() {
                    let soon = runtime::now() + Duration::from_millis(1);
                    park(WaitClass::RowLock, Some(soon));
                }
            }
            b'r' => self.shared.released.store(true, Ordering::SeqCst),
            _ => {}
        }
        match stream.write_all(&byte) {
            Ok(()) => Next::WaitReadable { timeout: None },
            Err(_) => Next::Close,
        }
    }

    fn id(&self) -> u64 {
        self.id
    }
}

fn listen(shared: &Arc<Shared>, path: &Path, reserved: bool) {
    let listener = Listener::bind(Address::Unix(path.to_path_buf())).expect("a listener");
    let (shared, ids) = (shared.clone(), AtomicU64::new(1));
    let factory = move |_: &_, _| -> Box<dyn Connection> {
        let id = ids.fetch_add(1, Ordering::SeqCst);
        Box::new(Client { shared: shared.clone(), id, is_new: true })
    };
    match reserved {
        true => runtime::net::serve_reserved(listener, factory),
        false => runtime::net::serve(listener, factory),
    };
}

fn client(path: &Path, message: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(path).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a valid time");
    stream.write_all(message).expect("the server reads");
    stream
}

fn answer(stream: &mut UnixStream) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("an answer");
    byte[0]
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn start(
    name: &str,
    workers: usize,
    statements_max: u32,
) -> (Runtime, Arc<Shared>, TemporaryDirectory) {
    let config = Config { workers, reserved_worker: true, ..Config::default() };
    let runtime = Runtime::start(config).expect("a runtime");
    let (shared, directory) = (Arc::new(Shared::default()), TemporaryDirectory::new(name));
    let (state, socket) = (shared.clone(), directory.0.clone());
    runtime.run(move || {
        runtime::set_admission(&AdmissionSettings {
            statements_max,
            stall_limit: Duration::from_secs(100_000),
            kick_up: Duration::from_secs(1),
            exact_times: true,
        });
        listen(&state, &socket.join("main"), false);
        listen(&state, &socket.join("extra"), true);
    });
    (runtime, shared, directory)
}

/// All slots are taken by statements that never end: new ones wait, are listed as waiting, and
/// those of the reserved worker are answered. When the slots are free, the others go on.
#[test]
fn a_full_server_queues_and_the_reserved_worker_answers() {
    let (runtime, shared, directory) = start("full", 1, 2);
    let (main, extra) = (directory.0.join("main"), directory.0.join("extra"));
    let mut busy: Vec<_> = (0..2).map(|_| client(&main, b"b")).collect();
    wait_until(|| shared.busy.load(Ordering::SeqCst) == 2);
    let mut queued = client(&main, b"q");
    let (mut depth, mut throttles) = (0, 0);
    wait_until(|| {
        (depth, throttles) = runtime.run(|| {
            let figures = runtime::worker_figures();
            let waiting = runtime::queued_connections();
            assert!(waiting.iter().all(|it| it.worker == 0 && it.id == 3 && !it.urgent));
            assert_eq!(figures.len(), 2, "one worker and the reserved one");
            assert!(figures[0].active >= 2 && figures[1].queued == 0);
            (waiting.len(), figures[0].throttles)
        });
        // The figures are of a moment before the list.
        depth == 1 && throttles >= 1
    });
    let mut administrator = client(&extra, b"a");
    assert_eq!(answer(&mut administrator), b'a');
    administrator.write_all(b"r").expect("the server reads");
    assert_eq!(answer(&mut administrator), b'r');
    assert_eq!(answer(&mut queued), b'q');
    busy.iter_mut().for_each(|stream| assert_eq!(answer(stream), b'b'));
    runtime.shutdown();
}

/// Far more statements than slots wait for something, and the one that they wait for comes last:
/// it is let in, since who waits has given its slot back.
#[test]
fn statements_that_wait_keep_nobody_out() {
    let (runtime, shared, directory) = start("waiting", 2, 1);
    let main = directory.0.join("main");
    let mut waiting: Vec<_> = (0..20).map(|_| client(&main, b"w")).collect();
    wait_until(|| shared.waiting.load(Ordering::SeqCst) == 20);
    assert_eq!(answer(&mut client(&main, b"r")), b'r');
    waiting.iter_mut().for_each(|stream| assert_eq!(answer(stream), b'w'));
    wait_until(|| {
        let figures = runtime.run(runtime::worker_figures);
        figures.iter().all(|worker| worker.statements == 0 && worker.active == 0)
    });
    let figures = runtime.run(runtime::worker_figures);
    let begun: u64 = figures.iter().map(|worker| worker.begun).sum();
    assert!(begun >= 21, "{figures:?}");
    runtime.shutdown();
}

/// Long statements on every worker do not keep short ones waiting for their end.
#[test]
fn long_statements_do_not_starve_short_ones() {
    let (runtime, shared, directory) = start("long", 2, 1000);
    let main = directory.0.join("main");
    let mut busy: Vec<_> = (0..8).map(|_| client(&main, b"b")).collect();
    wait_until(|| shared.busy.load(Ordering::SeqCst) == 8);
    let mut short = client(&main, b"s");
    assert_eq!(answer(&mut short), b's');
    for _ in 0..200 {
        short.write_all(b"s").expect("the server reads");
        assert_eq!(answer(&mut short), b's');
    }
    wait_until(|| runtime.run(runtime::worker_figures).iter().any(|worker| worker.slices > 8));
    assert_eq!(answer(&mut client(&main, b"r")), b'r');
    busy.iter_mut().for_each(|stream| assert_eq!(answer(stream), b'b'));
    runtime.shutdown();
}

/// Every worker is stuck in code that never yields; the reserved one still answers.
#[test]
fn the_reserved_worker_answers_while_all_others_are_stuck() {
    let (runtime, shared, directory) = start("stuck", 2, 1000);
    let (stuck, state) = (Arc::new(AtomicU64::new(0)), shared.clone());
    let counted = stuck.clone();
    runtime.run(move || {
        for number in 0..2 {
            let (state, stuck) = (state.clone(), counted.clone());
            runtime::spawn_on(number, "stuck", move || {
                stuck.fetch_add(1, Ordering::SeqCst);
                while !state.released.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            });
        }
    });
    wait_until(|| stuck.load(Ordering::SeqCst) == 2);
    let mut administrator = client(&directory.0.join("extra"), b"a");
    assert_eq!(answer(&mut administrator), b'a');
    administrator.write_all(b"r").expect("the server reads");
    assert_eq!(answer(&mut administrator), b'r');
    runtime.shutdown();
}
