//! How long workers were ready to run and had no core.
//!
//! The kernel counts that for each thread, in the file `schedstat` (the kernel's documentation,
//! scheduler/sched-stats): nanoseconds on a core, nanoseconds waiting for one, times that it ran.
//! Where others run on the machine, too, it is the one figure that tells that cores are short from
//! that they are busy: neither the load of the machine nor how late a timer wakes does.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::time::Duration;

/// Where the kernel counts for one worker.
#[derive(Debug, Default)]
pub(super) struct CoreWait {
    file: OnceLock<File>,
}

impl CoreWait {
    /// Called by the worker's thread when it starts. Without these files (another kernel) nothing
    /// is known.
    pub(super) fn begin(&self) {
        if let Ok(file) = File::open("/proc/thread-self/schedstat") {
            // A worker begins once.
            let _ = self.file.set(file);
        }
    }

    /// How long the worker has waited since it started.
    pub(super) fn waited(&self) -> Option<Duration> {
        let mut bytes = [0; 80];
        let length = self.file.get()?.read_at(&mut bytes, 0).ok()?;
        parse(std::str::from_utf8(&bytes[..length]).ok()?)
    }
}

fn parse(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(1)?.parse().map(Duration::from_nanos).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_counts() {
        assert_eq!(parse("646183197 392459866 108\n"), Some(Duration::from_nanos(392_459_866)));
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 3"), None);
    }

    /// More threads than cores, all busy, have to wait, wherever the kernel counts.
    #[test]
    fn busy_threads_wait_for_cores() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let count = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
        let end = std::time::Instant::now() + Duration::from_millis(300);
        let busy = || {
            let wait = CoreWait::default();
            wait.begin();
            while std::time::Instant::now() < end {
                std::hint::spin_loop();
            }
            wait.waited().unwrap_or_default()
        };
        let waited = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(busy)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum::<Duration>()
        });
        assert!(waited > Duration::from_millis(100), "{waited:?} of {count} threads");
    }
}
