//! What the device itself takes for a write and its sync: a preallocated file, direct writes of
//! one page after the other, each synced, nothing else in the way.
//!
//! `--exchange` has a message go to another thread and back over the loopback between two writes,
//! as between the commits of one client: a processor that has slept and run something else
//! takes longer to hand a write to the device and to go on after it.

use crate::Outcome;
use crate::histogram::Histogram;
use crate::options::Options;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;
const PAGES: u64 = 4096;
/// Bytes of a message and its answer: an update, executed as a prepared statement, and its OK.
const MESSAGE_BYTES: usize = 150;
/// `O_DIRECT` of Linux on x86-64 and 64-bit ARM.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200000 } else { 0o40000 };

/// Measures; prints one line.
pub fn run(options: &Options) -> Outcome {
    let path = options.value("--file").ok_or("--file PATH is needed")?;
    let seconds = options.seconds("--seconds", 2.0)?;
    let peer = match options.has("--exchange") {
        true => Some(peer().map_err(|error| format!("exchange: {error}"))?),
        false => None,
    };
    let histogram = measure(path, Duration::from_secs_f64(seconds), peer)
        .map_err(|error| format!("{path}: {error}"))?;
    let micros = |nanos: u64| nanos as f64 / 1000.0;
    println!(
        "device writes={} mean_us={:.1} p50_us={:.1} p95_us={:.1} p99_us={:.1}",
        histogram.count(),
        histogram.mean() / 1000.0,
        micros(histogram.quantile(0.5)),
        micros(histogram.quantile(0.95)),
        micros(histogram.quantile(0.99))
    );
    Ok(())
}

/// A connection to a thread that sends back what it gets.
fn peer() -> io::Result<TcpStream> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut answering = TcpStream::connect(listener.local_addr()?)?;
    let (asking, _) = listener.accept()?;
    asking.set_nodelay(true)?;
    answering.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut message = [0; MESSAGE_BYTES];
        // Ends when the other end is closed.
        while answering.read_exact(&mut message).is_ok() && answering.write_all(&message).is_ok() {}
    });
    Ok(asking)
}

fn measure(path: &str, duration: Duration, mut peer: Option<TcpStream>) -> io::Result<Histogram> {
    let buffer = vec![0x55u8; 2 * PAGE_BYTES];
    let start = buffer.as_ptr().align_offset(PAGE_BYTES);
    let page = &buffer[start..start + PAGE_BYTES];
    let file = File::create(path)?;
    for number in 0..PAGES {
        file.write_all_at(page, number * PAGE_BYTES as u64)?;
    }
    file.sync_all()?;
    let file = File::options().write(true).custom_flags(O_DIRECT).open(path)?;
    let mut histogram = Histogram::default();
    let end = Instant::now() + duration;
    let mut number = 0;
    let mut message = [0; MESSAGE_BYTES];
    while Instant::now() < end {
        if let Some(peer) = &mut peer {
            peer.write_all(&message)?;
            peer.read_exact(&mut message)?;
        }
        let begin = Instant::now();
        file.write_all_at(page, number % PAGES * PAGE_BYTES as u64)?;
        file.sync_data()?;
        histogram.add(begin.elapsed().as_nanos() as u64);
        number += 1;
    }
    std::fs::remove_file(path)?;
    Ok(histogram)
}
