//! What a served request costs: `cargo run --release -p gannet-runtime --example echo_bench`.
//! One server worker answers 40-byte requests with 100 bytes; the clients are fibers of a second
//! runtime with one worker. Prints requests per second and the server's CPU time per request.

use runtime::net::{Address, Connection, Listener, Next, Stream};
use runtime::{Config, Ring, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Answer {
    buffer: Vec<u8>,
    is_new: bool,
}

impl Connection for Answer {
    fn run(&mut self, stream: &mut Stream) -> Next {
        if !std::mem::take(&mut self.is_new) {
            match stream.read(&mut self.buffer) {
                Ok(0) | Err(_) => return Next::Close,
                Ok(_) if stream.write_all(&[7; 100]).is_err() => return Next::Close,
                Ok(_) => {}
            }
        }
        Next::WaitReadable { timeout: Some(Duration::from_secs(28_800)) }
    }
}

/// Nanoseconds that a thread has run, from the scheduler.
fn cpu_nanos(thread: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn measure(ring: Ring, connections: usize) {
    let config = Config { workers: 1, ring, ..Config::default() };
    let server = Runtime::start(config.clone()).expect("started");
    let clients = Runtime::start(config).expect("started");
    let (address, thread) = server.run(|| {
        let listener = Listener::tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let served = runtime::net::serve(listener, |_, _| {
            Box::new(Answer { buffer: vec![0; 4096], is_new: true })
        });
        let thread = std::fs::read_link("/proc/thread-self").expect("procfs");
        (served.address().clone(), thread.to_string_lossy().into_owned())
    });
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (stopping, counted) = (stop.clone(), count.clone());
    clients.run(move || {
        for _ in 0..connections {
            let (address, stop, count) = (address.clone(), stopping.clone(), counted.clone());
            runtime::spawn("client", move || request(&address, &stop, &count));
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    let (cpu, requests, start) =
        (cpu_nanos(&thread), count.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(Duration::from_millis(1500));
    let cpu = cpu_nanos(&thread) - cpu;
    let requests = count.load(Ordering::Relaxed) - requests;
    println!(
        "{ring:?} {connections:>5} connections: {:>8.0} requests/s, {:>6.2} us server CPU each",
        requests as f64 / start.elapsed().as_secs_f64(),
        cpu as f64 / 1000.0 / requests as f64
    );
    stop.store(true, Ordering::Relaxed);
}

fn request(address: &Address, stop: &AtomicBool, count: &AtomicU64) {
    let mut stream = runtime::net::connect(address).expect("accepted");
    let mut answer = [0; 4096];
    while !stop.load(Ordering::Relaxed) {
        stream.write_all(&[1; 40]).expect("the server listens");
        let mut read = 0;
        while read < 100 {
            read += stream.read(&mut answer).expect("an answer");
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    for connections in [1, 8, 64, 512] {
        for ring in [Ring::Uring, Ring::Fallback] {
            measure(ring, connections);
        }
    }
}
