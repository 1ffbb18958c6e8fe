//! Making files: the next one of the log from a spare or anew, and the reserve.

use super::{LogFiles, Next, Prepared, is_out_of_space};
use crate::counters::{FILES_CREATED, ZEROED_BYTES};
use crate::listing::{log_name, open_file};
use crate::spares::Spare;
use base::probe;
use runtime::file::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A file that is made ahead of need is filled with zeroes in pieces of so many bytes ...
const PIECE_BYTES: u64 = 1 << 20;
/// ... with so many times the time that a piece took between them, so that commits and reads have
/// most of the device.
const PIECE_PAUSES: u32 = 3;
/// A piece that took longer has waited for something else.
const PIECE_MAX: Duration = Duration::from_millis(10);

/// How a file is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Somebody cannot go on without it.
    Now,
    /// Ahead of need, and given up when the log is closed.
    Soon,
    /// As `Soon`, with pauses as long as nobody waits.
    Unhurried,
}

/// The state is `Next::Preparing` as long as this lives. Who waits is woken even if a panic ends
/// it: nobody else would do it.
pub(super) struct Preparation<'a> {
    files: &'a LogFiles,
    /// What the state is when it has ended.
    next: Next,
}

impl<'a> Preparation<'a> {
    pub(super) fn new(files: &'a LogFiles) -> Preparation<'a> {
        Preparation { files, next: Next::None }
    }

    pub(super) fn end(mut self, made: io::Result<Prepared>, pace: Pace) -> io::Result<()> {
        let was_out = self.files.out_of_space();
        let is_out = match &made {
            // A leader that has to go on in the reserve has found no space. Nobody else says so
            // with a file that is ready: as long as one is, nobody asks for space again.
            Ok(made) => pace == Pace::Now && made.is_last_spare && was_out,
            // What was given up has found out nothing.
            Err(error) => is_out_of_space(error) || was_out && is_given_up(error),
        };
        self.files.out_of_space.store(is_out, Ordering::Relaxed);
        self.next = Next::Ready(made?);
        Ok(())
    }
}

impl Drop for Preparation<'_> {
    fn drop(&mut self) {
        let next = std::mem::replace(&mut self.next, Next::None);
        let former = std::mem::replace(&mut self.files.state.lock().next, next);
        if let Next::Preparing(waiters) = former {
            waiters.iter().for_each(runtime::Unparker::unpark);
        }
    }
}

fn given_up() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the log is being closed")
}

fn is_given_up(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Interrupted
}

impl LogFiles {
    /// Makes the next file, leaving so many spares as they are.
    pub(super) fn make_next(
        &self,
        need_bytes: u64,
        kept: usize,
        pace: Pace,
    ) -> io::Result<Prepared> {
        let longest = self.longest_bytes(self.available_bytes());
        let (sequence, wanted, spare, had_spares) = {
            let mut state = self.state.lock();
            let had_spares = !state.spares.is_empty();
            let current = state.live.back().map_or((0, 0), |file| (file.sequence, file.len));
            let wanted = match current.1 {
                0 => self.first_file_bytes,
                len => (len * 2).clamp(self.first_file_bytes, longest),
            };
            let wanted = wanted.max(need_bytes).next_multiple_of(self.block_bytes_max as u64);
            let spare = state.take_spare(need_bytes.max(wanted / 4), kept);
            (current.0.max(state.taken) + 1, wanted, spare, had_spares)
        };
        let path = self.dir.join(log_name(sequence));
        let len = match spare {
            Some(spare) => self.rename_spare(spare, &path)?,
            None => {
                let bytes = (need_bytes, wanted);
                self.create_what_fits(&path, (sequence, kept), bytes, pace)?
            }
        };
        runtime::fs::sync_dir(&self.dir)?;
        let is_last_spare = had_spares && self.state.lock().spares.is_empty();
        let file = open_file(&path)?;
        Ok(Prepared { file, path, sequence, len, is_last_spare })
    }

    /// Gives a spare its name as the next file; returns its length.
    fn rename_spare(&self, spare: Spare, path: &Path) -> io::Result<u64> {
        probe!("wal.file_reused");
        if spare.0 != path {
            runtime::fs::rename(&spare.0, path)?;
        }
        Ok(spare.1)
    }

    /// Creates a file of the wanted length. Where the disk has no space for it a spare that is
    /// shorter than one would like will do, or a shorter file: a log that goes on in small files
    /// is better than one that stops. Returns the length.
    fn create_what_fits(
        &self,
        path: &Path,
        (sequence, kept): (u64, usize),
        (need_bytes, wanted): (u64, u64),
        pace: Pace,
    ) -> io::Result<u64> {
        let least = need_bytes.max(self.first_file_bytes);
        let mut len = wanted;
        loop {
            match self.create_file(path, sequence, len, pace) {
                Ok(()) => return Ok(len),
                Err(error) if !is_out_of_space(&error) => return Err(error),
                Err(error) => {
                    let spare = self.state.lock().take_spare(need_bytes, kept);
                    if let Some(spare) = spare {
                        return self.rename_spare(spare, path);
                    }
                    let shorter = (len / 2).next_multiple_of(self.block_bytes_max as u64);
                    if shorter < least || shorter >= len {
                        return Err(error);
                    }
                    probe!("wal.shorter_file_on_a_full_disk");
                    len = shorter;
                }
            }
        }
    }

    /// Creates the file under another name, allocates all of it, then renames it.
    fn create_file(&self, path: &Path, sequence: u64, len: u64, pace: Pace) -> io::Result<()> {
        let unfinished = self.dir.join(format!("new-{sequence:010}.log"));
        self.create_as(&unfinished, path, len, pace)
    }

    /// Creates a file under a name that the next start removes, then renames it.
    pub(crate) fn create_as(
        &self,
        unfinished: &Path,
        path: &Path,
        len: u64,
        pace: Pace,
    ) -> io::Result<()> {
        let made = (|| {
            let file =
                OpenOptions::new().create(true).truncate(true).direct(true).open(unfinished)?;
            self.fill(&file, len, pace)?;
            file.sync_data()
        })();
        if let Err(error) = made {
            // The space goes back; if even that fails the next start removes the file.
            runtime::fs::remove_file(unfinished).ok();
            return Err(error);
        }
        FILES_CREATED.add(1);
        runtime::fs::rename(unfinished, path)
    }

    /// Allocates the file and writes zeroes; with pauses, if it may, as long as nobody waits.
    /// Fails when the log is closed before its end (invariant 4).
    fn fill(&self, file: &File, len: u64, pace: Pace) -> io::Result<()> {
        let mut done = 0;
        while done < len {
            if pace != Pace::Now && self.state.lock().is_ending {
                return Err(given_up());
            }
            let piece = PIECE_BYTES.min(len - done);
            let begun = runtime::now();
            file.allocate_zeroed(done, piece)?;
            ZEROED_BYTES.add(piece);
            done += piece;
            if pace == Pace::Unhurried && done < len && !self.is_next_awaited() {
                runtime::sleep(begun.elapsed().min(PIECE_MAX) * PIECE_PAUSES);
            }
        }
        Ok(())
    }

    /// Whether somebody waits for the next file.
    fn is_next_awaited(&self) -> bool {
        match &self.state.lock().next {
            Next::Preparing(waiters) => !waiters.is_empty(),
            Next::None | Next::Ready(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::WalOptions;
    use runtime::sim::{SimConfig, Simulation};

    #[test]
    fn a_file_that_is_made_while_the_one_before_is_not_yet_in_the_log_has_its_own_name() {
        let run = || {
            runtime::fs::create_dir_all(Path::new("/wal")).unwrap();
            let files = LogFiles::new(Path::new("/wal"), &WalOptions::new([7; 16]));
            let taken = files.take_next(0).unwrap();
            files.prepare_next();
            assert!(files.has_next());
            files.began(taken.sequence, 0, taken.len);
            let next = files.take_next(0).unwrap();
            assert_eq!((taken.sequence, next.sequence), (1, 2));
            assert_ne!(taken.path, next.path);
        };
        Simulation::new(SimConfig::new(1)).run(run).expect("it ends well");
    }
}
