//! Answers that leave at the end of a turn: order, clients that do not read, clients that go away,
//! requests that come at the moment of a timeout.

use crate::{PATIENCE, TemporaryDirectory, each_loop};
use runtime::net::{Address, Connection, Listener, Next, ServeHandle, Stream};
use runtime::{Config, Ring, Runtime};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ANSWER_BYTES: usize = 12_000;

/// Answers every byte with many of it.
struct Repeater {
    timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    /// Bytes taken by one run.
    take: usize,
    ended: Arc<AtomicU64>,
}

impl Connection for Repeater {
    fn run(&mut self, stream: &mut Stream) -> Next {
        let next = Next::WaitReadable { timeout: self.timeout };
        if stream.timed_out() {
            return next;
        }
        if let Some(timeout) = self.write_timeout {
            stream.set_write_timeout(Some(timeout));
        }
        if !stream.wait_readable(Some(Duration::from_millis(1))) {
            return next;
        }
        let mut requests = vec![0; self.take];
        let Ok(count @ 1..) = stream.read(&mut requests) else { return Next::Close };
        for request in &requests[..count] {
            let length = if request.is_ascii_digit() { 3 } else { ANSWER_BYTES };
            if stream.send_when_done(&vec![*request; length]).is_err() {
                return Next::Close;
            }
        }
        if requests[..count].contains(&b'q') { Next::Close } else { next }
    }
}

impl Drop for Repeater {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// Serves repeaters on a TCP and on a UNIX socket.
fn repeaters(
    directory: &TemporaryDirectory,
    make: impl Fn() -> Repeater + Clone + Send + Sync + 'static,
) -> [ServeHandle; 2] {
    let tcp = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let unix = Listener::unix(directory.0.join("socket")).expect("bound");
    [tcp, unix].map(|listener| {
        let make = make.clone();
        runtime::net::serve(listener, move |_, _| Box::new(make()))
    })
}

fn expect_answer(stream: &mut Stream, request: u8, length: usize) {
    let mut answer = vec![0; length];
    let mut done = 0;
    while done < length {
        let read = stream.read(&mut answer[done..]).expect("an answer");
        assert!(read > 0, "the server closed after {done} bytes");
        done += read;
    }
    assert!(answer.iter().all(|&byte| byte == request), "the answers are in order");
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let late = runtime::now() + PATIENCE;
    while !is_so() {
        assert!(runtime::now() < late, "{what}");
        runtime::sleep(Duration::from_millis(1));
    }
}

#[test]
fn answers_come_whole_and_in_order_however_slowly_they_are_read() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("answers");
        runtime.run(move || {
            for take in [1, 4, 64] {
                let (timeout, write_timeout) = (Some(Duration::from_secs(1000)), None);
                let ended = Arc::default();
                let make = move || {
                    let ended = Arc::clone(&ended);
                    Repeater { timeout, write_timeout, take, ended }
                };
                for served in repeaters(&directory, make) {
                    let mut stream = runtime::net::connect(served.address()).expect("accepted");
                    // More than any socket takes, asked for one by one.
                    let count = match served.address() {
                        Address::Tcp(_) => 800,
                        Address::Unix(_) => 100,
                    };
                    let request = |n: u32| b'a' + (n % 16) as u8;
                    for n in 0..count {
                        stream.write_all(&[request(n)]).expect("the server listens");
                        runtime::yield_now();
                    }
                    stream.write_all(b"q").expect("the server listens");
                    (0..count).for_each(|n| expect_answer(&mut stream, request(n), ANSWER_BYTES));
                    expect_answer(&mut stream, b'q', ANSWER_BYTES);
                    assert_eq!(stream.read(&mut [0; 10]).expect("closed in order"), 0);
                    served.stop();
                }
            }
        });
    });
}

#[test]
fn connections_end_whose_clients_do_not_read_or_have_gone() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("silent");
        runtime.run(move || {
            let ended = Arc::new(AtomicU64::new(0));
            let counted = ended.clone();
            let write_timeout = Some(Duration::from_millis(20));
            let served = repeaters(&directory, move || {
                let ended = counted.clone();
                Repeater { timeout: None, write_timeout, take: 4, ended }
            });
            let ask_for_much = |address: &Address| {
                let mut stream = runtime::net::connect(address).expect("accepted");
                // The server may close while this goes on.
                let asked = (0..1500).try_for_each(|_| stream.write_all(b"abcd"));
                (stream, asked.is_ok())
            };
            let unread = served.each_ref().map(|served| ask_for_much(served.address()));
            wait_until("a write times out", || ended.load(Ordering::SeqCst) == 2);
            drop(unread);
            for served in &served {
                drop(ask_for_much(served.address()));
            }
            wait_until("a broken connection ends", || ended.load(Ordering::SeqCst) == 4);
            served.iter().for_each(ServeHandle::stop);
        });
    });
}

/// The timeout is about as long as the pauses between requests.
#[test]
fn requests_that_come_with_a_timeout_are_answered() {
    each_loop(|runtime| {
        let directory = TemporaryDirectory::new("timeouts");
        runtime.run(move || {
            let timeout = Some(Duration::from_micros(500));
            let ended = Arc::default();
            let served = repeaters(&directory, move || {
                let ended = Arc::clone(&ended);
                Repeater { timeout, write_timeout: None, take: 64, ended }
            });
            let clients: Vec<_> = (0..8usize)
                .map(|n| {
                    let address = served[n % 2].address().clone();
                    runtime::spawn_on(n, "client", move || {
                        let mut stream = runtime::net::connect(&address).expect("accepted");
                        for round in 0..100u64 {
                            let request = b'0' + (round % 10) as u8;
                            stream.write_all(&[request]).expect("the server listens");
                            expect_answer(&mut stream, request, 3);
                            runtime::sleep(Duration::from_micros(450 + round));
                        }
                    })
                })
                .collect();
            clients.into_iter().for_each(|client| client.join().expect("no panic"));
            served.iter().for_each(ServeHandle::stop);
        });
    });
}

/// More requests than a worker has buffers come while it is busy.
#[test]
fn a_crowd_of_requests_is_answered() {
    for ring in [Ring::Uring, Ring::Fallback] {
        let runtime = Runtime::start(Config { workers: 1, ring, ..Config::default() });
        let runtime = runtime.expect("the loop is permitted here");
        let directory = TemporaryDirectory::new("crowd");
        let ended = Arc::default();
        let make = move || {
            let ended = Arc::clone(&ended);
            Repeater { timeout: None, write_timeout: None, take: 64, ended }
        };
        let served = runtime.run(move || repeaters(&directory, make));
        let Address::Tcp(address) = served[0].address().clone() else { panic!("bound to TCP") };
        let connect = |_| std::net::TcpStream::connect(address).expect("accepted");
        let mut clients: Vec<_> = (0..400).map(connect).collect();
        for round in 0..3u8 {
            let (busy, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let sender = {
                let (busy, sent) = (busy.clone(), sent.clone());
                let mut clients: Vec<_> =
                    clients.iter().map(|client| client.try_clone().expect("a copy")).collect();
                std::thread::spawn(move || {
                    while !busy.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                    for client in &mut clients {
                        client.write_all(&[b'0' + round]).expect("the server listens");
                    }
                    sent.store(true, Ordering::SeqCst);
                })
            };
            runtime.run(move || {
                busy.store(true, Ordering::SeqCst);
                while !sent.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            });
            sender.join().expect("no panic");
            for client in &mut clients {
                let mut answer = [0; 3];
                client.set_read_timeout(Some(PATIENCE)).expect("it is open");
                client.read_exact(&mut answer).expect("an answer");
                assert_eq!(answer, [b'0' + round; 3]);
            }
        }
        runtime.run(move || served.iter().for_each(ServeHandle::stop));
        runtime.shutdown();
    }
}
