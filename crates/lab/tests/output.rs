//! What the program prints, and for whom.

use std::process::{Command, Stdio};

/// As with `gannet-lab recipes | head -1`.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gannet-lab"));
    let pipe =
        |command: &mut Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = pipe(command.arg("recipes")).expect("it is built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}
