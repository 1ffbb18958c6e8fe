//! What a full disk makes wait, or refuses, is told with what helps: otherwise a start on a full
//! disk looks like one that hangs, and a commit that waits looks like a lock.

use crate::files::LogFiles;
use crate::types::OnDiskFull;
use base::probe;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Told once in so long, however many wait.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Tells the operator of a full disk, once a minute at most.
pub struct SpaceNotice {
    on_disk_full: OnDiskFull,
    /// From then on it may be told again.
    due_nanos: AtomicU64,
}

impl SpaceNotice {
    /// One that has told nothing yet.
    pub fn new(on_disk_full: OnDiskFull) -> SpaceNotice {
        SpaceNotice { on_disk_full, due_nanos: AtomicU64::new(0) }
    }

    /// Tells it, unless something was told within the last minute.
    pub fn tell(&self, sentence: impl FnOnce() -> String) {
        let now = runtime::now().as_nanos();
        let due = self.due_nanos.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        let next = now + TOLD_EVERY.as_nanos() as u64;
        let ours = self.due_nanos.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if ours.is_ok() {
            (self.on_disk_full)(&sentence());
        }
    }
}

impl fmt::Debug for SpaceNotice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SpaceNotice").field("due_nanos", &self.due_nanos).finish()
    }
}

impl LogFiles {
    /// Tells that something that cannot be refused has waited for the next file for seconds, and
    /// goes on waiting.
    #[cold]
    pub(crate) fn tell_of_wait(&self) {
        self.space_notice.tell(|| {
            probe!("wal.told_of_wait_for_space");
            let (least_bytes, _) = self.file_bytes_bounds();
            format!(
                "the disk is full and the log waits: its next file takes {} KiB, the file system \
                 of {} has {} KiB left; make room there, and the server goes on by itself",
                least_bytes >> 10,
                self.dir().display(),
                self.available_bytes() >> 10,
            )
        });
    }
}
