//! Running other programs.

use crate::Outcome;
use std::process::{Child, Command, Stdio};

/// Runs a program to its end with its output shown; an unsuccessful end is an error.
pub fn run(program: &str, arguments: &[&str]) -> Outcome {
    println!("+ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .current_dir(crate::root())
        .status()
        .map_err(|e| format!("{program}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{program} {}: {status}", arguments.join(" ")))
    }
}

/// Whether a program is on the path, or a file there if a whole path is given.
pub fn exists(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// A server process that is killed when dropped.
pub struct Server {
    child: Child,
    /// TCP port on the loopback.
    pub port: u16,
}

impl Server {
    /// Wraps a started process.
    pub fn new(child: Child, port: u16) -> Self {
        Self { child, port }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills the process at once (SIGKILL) and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop (SIGTERM) and waits; false if it did not end cleanly.
    pub fn stop(&mut self) -> bool {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().is_ok_and(|s| s.success());
        asked && self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command whose output goes nowhere.
pub fn quiet(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A command that may open as many descriptors as the system permits.
pub fn with_descriptors(program: &std::path::Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n $(ulimit -Hn); exec \"$0\" \"$@\""]).arg(program);
    command
}
