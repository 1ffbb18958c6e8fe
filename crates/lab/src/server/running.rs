//! A process that ends with the lab.

use super::program::answer;
use super::watchdog::Watchdog;
use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Time between two looks at a process.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running process with what ends it.
pub(crate) struct Running {
    child: Child,
    watchdog: Option<Watchdog>,
}

/// Starts a command in a group of its own, watched over together with a folder.
pub(crate) fn spawned(mut command: Command, folder: Option<&Path>) -> Result<Running, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.process_group(0).spawn().map_err(|error| format!("{name}: {error}"))?;
    let mut running = Running { child, watchdog: None };
    running.watchdog = Some(Watchdog::over(running.child.id(), folder)?);
    Ok(running)
}

/// Sends a signal to a process, by name or number.
pub(crate) fn signal(id: u32, signal: impl Display) -> Result<(), String> {
    answer(Command::new("kill").arg(format!("-{signal}")).arg(id.to_string())).map(|_| ())
}

impl Running {
    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills it, if it has not ended by itself.
    pub(super) fn kill(&mut self) {
        let _ended = self.child.kill();
    }

    /// Waits as a fiber.
    pub(super) fn wait_at_most(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = runtime::now();
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if runtime::now() - begin > limit {
                return None;
            }
            runtime::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.release();
        }
        let _status = self.child.wait();
    }
}
