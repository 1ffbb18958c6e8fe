//! What the device itself takes for a write and its sync: a preallocated file, direct writes of
//! one page after the other, each synced, nothing else in the way.

use crate::Outcome;
use crate::histogram::Histogram;
use crate::options::Options;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;
const PAGES: u64 = 4096;
/// `O_DIRECT` of Linux on x86-64 and 64-bit ARM.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200000 } else { 0o40000 };

/// Measures; prints one line.
pub fn run(options: &Options) -> Outcome {
    let path = options.value("--file").ok_or("--file PATH is needed")?;
    let seconds = options.seconds("--seconds", 2.0)?;
    let histogram = measure(path, Duration::from_secs_f64(seconds))
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

fn measure(path: &str, duration: Duration) -> io::Result<Histogram> {
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
    while Instant::now() < end {
        let begin = Instant::now();
        file.write_all_at(page, number % PAGES * PAGE_BYTES as u64)?;
        file.sync_data()?;
        histogram.add(begin.elapsed().as_nanos() as u64);
        number += 1;
    }
    std::fs::remove_file(path)?;
    Ok(histogram)
}
