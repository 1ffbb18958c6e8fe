//! Processor time of a process, as exact as the kernel's scheduler has it.

use std::collections::BTreeMap;
use std::fs;

/// Processor time of the threads of a process, nanoseconds.
pub struct Used(BTreeMap<u32, u64>);

impl Used {
    /// Until now.
    pub fn of(id: u32) -> Result<Self, String> {
        let folder = format!("/proc/{id}/task");
        let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let of_thread = |thread: fs::DirEntry| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            // One that has just ended has none.
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((number, text.split_whitespace().next()?.parse().ok()?))
        };
        let found: BTreeMap<u32, u64> = threads.flatten().filter_map(of_thread).collect();
        match found.is_empty() {
            true => Err(format!("{folder}: no processor time of its threads (schedstat)")),
            false => Ok(Self(found)),
        }
    }

    /// What was used since; what a thread used that has ended since is not known.
    pub fn since(&self, before: &Self) -> u64 {
        let of_thread = |(number, nanos): (&u32, &u64)| {
            nanos.saturating_sub(before.0.get(number).copied().unwrap_or(0))
        };
        self.0.iter().map(of_thread).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_come_and_go() {
        let used = |threads: &[(u32, u64)]| Used(threads.iter().copied().collect());
        let (before, after) = (used(&[(1, 100), (2, 50)]), used(&[(1, 130), (3, 7)]));
        assert_eq!(after.since(&before), 37);
    }

    #[test]
    fn a_process_that_is_not_there_has_no_time() {
        assert!(Used::of(u32::MAX).is_err());
    }
}
