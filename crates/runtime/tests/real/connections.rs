//! Served connections: many at once, timeouts, clients that go away, moves between workers.

use crate::{PATIENCE, TemporaryDirectory, each_loop};
use runtime::Runtime;
use runtime::net::{Address, Connection, Listener, Next, Stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Echoes lines; "quit" closes, "panic" panics, "idle" waits for a timeout. Counts the timeouts.
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
            return Next::WaitReadable { timeout: Some(Duration::from_secs(1000)) };
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => Next::Close,
            Ok(length) if buffer[..length].starts_with(b"quit") => Next::Close,
            Ok(length) if buffer[..length].starts_with(b"panic") => panic!("planned"),
            Ok(length) if buffer[..length].starts_with(b"idle") => {
                Next::WaitReadable { timeout: Some(Duration::from_millis(50)) }
            }
            Ok(length) => {
                stream.write_all(&buffer[..length]).expect("the client listens");
                Next::WaitReadable { timeout: Some(Duration::from_secs(1000)) }
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
            idle.write_all(b"idle").expect("the server listens");
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
            // The port may have gone to somebody else meanwhile, the path has not.
            let late = runtime::now() + PATIENCE;
            while runtime::net::connect(unix.address()).is_ok() {
                assert!(runtime::now() < late, "nobody should listen");
                runtime::sleep(Duration::from_millis(1));
            }
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

/// Tells when its client is gone, without reading.
struct Watcher {
    handle: runtime::net::StreamHandle,
    gone: Arc<AtomicU64>,
}

impl Connection for Watcher {
    fn run(&mut self, _: &mut Stream) -> Next {
        while !self.handle.is_abandoned(b"bye") {
            runtime::sleep(Duration::from_millis(1));
        }
        self.gone.fetch_add(1, Ordering::SeqCst);
        Next::Close
    }
}

#[test]
fn clients_that_went_away_are_noticed_without_reading() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("gone");
        let socket = directory.0.join("socket");
        runtime.run(move || {
            let gone = Arc::new(AtomicU64::new(0));
            let counted = gone.clone();
            let make = move |_: &runtime::net::Peer, handle| -> Box<dyn Connection> {
                Box::new(Watcher { handle, gone: counted.clone() })
            };
            let tcp = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
            let tcp = runtime::net::serve(tcp, make.clone());
            let unix = Listener::unix(&socket).expect("bound");
            let unix = runtime::net::serve(unix, make);
            let connect = |served: &runtime::net::ServeHandle| {
                runtime::net::connect(served.address()).expect("accepted")
            };
            let wait_for = |count: u64| {
                let late = runtime::now() + PATIENCE;
                while gone.load(Ordering::SeqCst) < count {
                    assert!(runtime::now() < late, "nobody notices");
                    runtime::sleep(Duration::from_millis(1));
                }
            };
            let silent = [connect(&tcp), connect(&unix)];
            let mut talking = [connect(&tcp), connect(&unix)];
            let mut polite = [connect(&tcp), connect(&unix)];
            for stream in &mut talking {
                stream.write_all(b"one more command").expect("sent");
            }
            runtime::sleep(Duration::from_millis(20));
            assert_eq!(gone.load(Ordering::SeqCst), 0, "all are still there");
            drop(silent);
            wait_for(2);
            for stream in &mut polite {
                stream.write_all(b"bye").expect("sent");
            }
            drop(polite);
            wait_for(4);
            drop(connect(&tcp));
            wait_for(5);
            assert_eq!(gone.load(Ordering::SeqCst), 5, "the talking ones are still there");
            drop(talking);
            tcp.stop();
            unix.stop();
        });
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
