//! What ends a server when the lab is gone.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A shell that waits for a word. The end of its input without one is the end of the lab, by
/// whatever cause, and it kills the server and removes a folder. It is in a group of its own, so
/// that an interrupt at the terminal does not reach it.
///
/// The kernel has a signal for the death of a parent, but it is forgotten when a program changes
/// its user, as servers do, and asking for it needs code between fork and exec.
pub(super) struct Watchdog {
    shell: Child,
}

const SCRIPT: &str = "read -r word || { kill -KILL \"$0\"; [ -z \"$1\" ] || rm -rf -- \"$1\"; }";

impl Watchdog {
    /// Watches over a process, and over a folder that goes with it.
    pub(super) fn over(id: u32, folder: Option<&Path>) -> Result<Self, String> {
        let shell = Command::new("sh")
            .args(["-c", SCRIPT, &id.to_string()])
            .arg(folder.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        shell.map(|shell| Self { shell }).map_err(|error| format!("sh: {error}"))
    }

    /// The server has ended, or will: nobody is to be killed.
    pub(super) fn release(mut self) {
        if let Some(mut input) = self.shell.stdin.take() {
            // It has ended if the word cannot be written.
            let _ended = input.write_all(b"over\n");
        }
        let _status = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().expect("coreutils")
    }

    #[test]
    fn the_end_of_the_lab_is_the_end_of_the_server() {
        let mut server = sleeper();
        let folder = std::env::temp_dir().join(format!("lab-watchdog {}", std::process::id()));
        std::fs::create_dir(&folder).expect("made");
        let mut watchdog = Watchdog::over(server.id(), Some(&folder)).expect("a shell");
        // As if the lab were gone: its end of the pipe is closed by the kernel.
        drop(watchdog.shell.stdin.take());
        assert_eq!(server.wait().expect("ours").signal(), Some(9));
        watchdog.shell.wait().expect("ours");
        assert!(!folder.exists());
    }

    #[test]
    fn a_released_server_lives() {
        let mut server = sleeper();
        Watchdog::over(server.id(), None).expect("a shell").release();
        assert!(server.try_wait().expect("ours").is_none());
        server.kill().expect("ours");
        server.wait().expect("ours");
    }
}
