//! Servers of the tests' own: a process of the `gannet` binary on a port that the system chooses.

#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory for a test's data that is not there yet.
pub fn fresh_directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("gannet-{name}-{}", std::process::id()));
    // Left over from an interrupted run, or not there.
    let _removed = std::fs::remove_dir_all(&path);
    path
}

/// Starts a server and waits for its ready line; the process and its port.
pub fn start(directory: &Path, options: &[&str], errors: Stdio) -> (Child, u16) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gannet"))
        .args(["serve", "--port", "0", "--buffer-pool-size", "32M", "--datadir"])
        .arg(directory)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let Some(address) = line.trim().strip_prefix("ready for connections on ") else {
        let mut problem = String::new();
        if let Some(errors) = &mut child.stderr {
            errors.read_to_string(&mut problem).unwrap();
        }
        panic!("{line}{problem}");
    };
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    (child, port)
}

/// Starts a server whose notes nobody reads, but if it does not start.
pub fn start_quietly(directory: &Path, options: &[&str]) -> (Child, u16) {
    let (mut child, port) = start(directory, options, Stdio::piped());
    let mut notes = child.stderr.take().unwrap();
    std::thread::spawn(move || std::io::copy(&mut notes, &mut std::io::sink()));
    (child, port)
}

/// Ends a server that a test leaves behind, even one that has failed.
pub fn end(child: &mut Child) {
    // It may have ended already.
    let _killed = child.kill();
    let _ended = child.wait();
}

/// Asks a server to end, and sees that it does so without complaint.
pub fn stop(child: &mut Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success(), "a clean end");
}
