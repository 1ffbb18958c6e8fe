//! How long the device itself takes, beside the server: a small write and its sync, again and
//! again, in a file next to the server's data.

use crate::results::DeviceProbe;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between the end of a sync and the next write.
const PAUSE: Duration = Duration::from_millis(10);
const BYTES: usize = 4096;
/// A write and sync that takes longer holds up whoever waits for one, so it is told one by one.
const SLOW: Duration = Duration::from_millis(20);
/// The file is written over from its begin after so many.
const BLOCKS: u64 = 256;

/// A running probe.
pub struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(Instant, Duration)>>,
    path: PathBuf,
}

impl Probe {
    /// Probes the device below `data`, with a file beside it.
    pub fn begin(data: &Path) -> std::io::Result<Self> {
        let name = format!("device-probe-{}", std::process::id());
        let path = data.parent().unwrap_or(data).join(name);
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        file.write_all_at(&vec![0; BYTES * BLOCKS as usize], 0)?;
        file.sync_all()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut found = Vec::new();
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                if write(&file, found.len() as u64).is_err() {
                    break;
                }
                found.push((begun, begun.elapsed()));
                std::thread::sleep(PAUSE);
            }
            found
        });
        Ok(Self { stop, thread, path })
    }

    /// Ends it. `length` is that of the measured time, which ended now.
    pub fn end(self, length: Duration) -> DeviceProbe {
        let now = Instant::now();
        self.stop.store(true, Ordering::Relaxed);
        let found = self.thread.join().unwrap_or_default();
        // It is only in the way.
        let _removed = std::fs::remove_file(&self.path);
        summary(&found, now, length)
    }
}

fn write(file: &File, number: u64) -> std::io::Result<()> {
    file.write_all_at(&[number as u8; BYTES], number % BLOCKS * BYTES as u64)?;
    file.sync_data()
}

fn summary(found: &[(Instant, Duration)], end: Instant, length: Duration) -> DeviceProbe {
    let is_within = |at: Instant| end.saturating_duration_since(at) <= length;
    let measured = found.iter().filter(|(at, taken)| is_within(*at + *taken));
    let second = |at: Instant| length.as_secs_f64() - (end - at).as_secs_f64();
    let is_slow = |(_, taken): &&(Instant, Duration)| *taken > SLOW;
    let told = |&(at, taken): &(Instant, Duration)| (second(at), taken.as_micros() as u64);
    let slow = measured.clone().filter(is_slow).map(told).collect();
    let mut micros: Vec<u64> = measured.map(|(_, taken)| taken.as_micros() as u64).collect();
    micros.sort_unstable();
    let at = |share: f64| {
        let place = ((micros.len() as f64 * share) as usize).min(micros.len().saturating_sub(1));
        micros.get(place).copied().unwrap_or(0)
    };
    DeviceProbe { writes: micros.len() as u64, micros: [at(0.5), at(0.99), at(1.0)], slow }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_the_measured_time_are_summed_up() {
        let end = Instant::now();
        let ago = |millis: u64| end - Duration::from_millis(millis);
        let taken = |micros: u64| Duration::from_micros(micros);
        let found = [
            (ago(5000), taken(900_000)),
            (ago(900), taken(200)),
            (ago(500), taken(70_000)),
            (ago(100), taken(300)),
        ];
        let probe = summary(&found, end, Duration::from_secs(1));
        let slow = vec![(0.5, 70_000)];
        assert_eq!(probe, DeviceProbe { writes: 3, micros: [300, 70_000, 70_000], slow });
        assert_eq!(summary(&[], end, Duration::from_secs(1)).writes, 0);
    }

    #[test]
    fn a_probe_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("lab-probe-{}", std::process::id()));
        let data = folder.join("data");
        std::fs::create_dir_all(&data).expect("a folder");
        let probe = Probe::begin(&data).expect("a file");
        std::thread::sleep(Duration::from_millis(50));
        let found = probe.end(Duration::from_secs(10));
        assert!(found.writes > 0 && found.micros[2] >= found.micros[0], "{found:?}");
        let left = std::fs::read_dir(&folder).expect("it is there").count();
        assert_eq!(left, 1, "the data alone");
        std::fs::remove_dir_all(&folder).expect("ours");
    }
}
