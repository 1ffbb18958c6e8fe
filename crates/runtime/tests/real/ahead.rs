//! What is done ahead of a run: bytes handed over whole, memory asked for in steps.

use crate::each_loop;
use runtime::net::{Address, Connection, Listener, Next, PREFETCH_STEPS, Stream};
use runtime::{Config, Ring, Runtime};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn serve(
    runtime: &Runtime,
    make: impl Fn() -> Box<dyn Connection> + Send + Sync + 'static,
) -> SocketAddr {
    let address = runtime.run(move || {
        let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"));
        runtime::net::serve(listener.expect("bound"), move |_, _| make()).address().clone()
    });
    let Address::Tcp(address) = address else { panic!("a TCP address was bound") };
    address
}

/// Echoes what it takes over whole, and what it has to read.
#[derive(Default)]
struct WholeEcho {
    is_greeted: bool,
    buffer: Vec<u8>,
}

impl Connection for WholeEcho {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !std::mem::replace(&mut self.is_greeted, true) {
            return Next::WaitReadable { timeout: None };
        }
        if !stream.swap_received(&mut self.buffer) {
            self.buffer.resize(8192, 0);
            match stream.read(&mut self.buffer) {
                Ok(0) | Err(_) => return Next::Close,
                Ok(count) => self.buffer.truncate(count),
            }
        }
        match stream.send_when_done(&self.buffer) {
            Ok(()) => Next::WaitReadable { timeout: None },
            Err(_) => Next::Close,
        }
    }
}

#[test]
fn bytes_taken_over_whole_are_all_and_in_order() {
    each_loop(|runtime| {
        let address = serve(runtime, || Box::new(WholeEcho::default()));
        let mut client = TcpStream::connect(address).expect("accepted");
        // Around the room that is kept, the length of a received piece, and several pieces.
        for length in [1, 7, 255, 256, 257, 2047, 2048, 2049, 4096, 9000, 3] {
            let sent: Vec<u8> = (0..length).map(|n| (n * 7 + length) as u8).collect();
            client.write_all(&sent).expect("the server reads");
            let mut answer = vec![0; length];
            client.read_exact(&mut answer).expect("an answer");
            assert_eq!(answer, sent, "{length} bytes");
        }
    });
}

/// The first keeps the worker until it is told to go on; all note the steps.
struct Watched {
    is_greeted: bool,
    steps: AtomicU64,
    seen: Arc<AtomicU64>,
    gate: Arc<AtomicU64>,
}

impl Connection for Watched {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !std::mem::replace(&mut self.is_greeted, true) {
            return Next::WaitReadable { timeout: None };
        }
        let mut request = [0; 16];
        match stream.read(&mut request) {
            Ok(0) | Err(_) => return Next::Close,
            Ok(_) => {}
        }
        if request[0] == b'h' {
            self.gate.fetch_add(1, Ordering::SeqCst);
            while self.gate.load(Ordering::SeqCst) < 2 {
                std::hint::spin_loop();
            }
        }
        if self.steps.swap(0, Ordering::Relaxed) == PREFETCH_STEPS as u64 {
            self.seen.fetch_add(1, Ordering::SeqCst);
        }
        match stream.write_all(b"x") {
            Ok(()) => Next::WaitReadable { timeout: None },
            Err(_) => Next::Close,
        }
    }

    fn prefetch(&self, step: usize, _received: &[u8]) {
        assert!(step < PREFETCH_STEPS);
        // One that comes when few wait begins with a later step.
        let next = step as u64 + 1;
        let _left_out =
            self.steps.compare_exchange(next - 1, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// While the only worker is kept busy 40 requests arrive. Those that are far enough behind are
/// prepared in all steps before they run. (The kernel may tell of a few later than of the rest.)
#[test]
fn waiting_connections_are_prepared_in_steps() {
    for ring in [Ring::Uring, Ring::Fallback] {
        let config = Config { workers: 1, ring, ..Config::default() };
        let runtime = Runtime::start(config).expect("the loop is permitted here");
        let (seen, gate) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (their_seen, their_gate) = (seen.clone(), gate.clone());
        let address = serve(&runtime, move || {
            let (seen, gate) = (their_seen.clone(), their_gate.clone());
            Box::new(Watched { is_greeted: false, steps: AtomicU64::new(0), seen, gate })
        });
        let connect = || TcpStream::connect(address).expect("accepted");
        let mut first = connect();
        let mut others: Vec<_> = (0..40).map(|_| connect()).collect();
        let mut one = [0];
        for client in &mut others {
            client.write_all(b"r").expect("the server reads");
            client.read_exact(&mut one).expect("an answer");
        }
        first.write_all(b"h").expect("the server reads");
        while gate.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        others.iter_mut().for_each(|client| client.write_all(b"r").expect("the server reads"));
        gate.fetch_add(1, Ordering::SeqCst);
        others.iter_mut().for_each(|client| client.read_exact(&mut one).expect("an answer"));
        first.read_exact(&mut one).expect("an answer");
        let seen = seen.load(Ordering::SeqCst);
        assert!(seen > 0, "none of 40 was prepared in all steps");
        runtime.shutdown();
    }
}
