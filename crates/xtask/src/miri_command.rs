//! `cargo xtask miri`: tests of unsafe code that needs neither fibers nor files, under Miri, which
//! checks every pointer. Needs a nightly toolchain with the components `miri` and `rust-src`.

use crate::Outcome;
use std::process::Command;

/// Package, target, and names of tests.
const TESTS: [(&str, &[&str], &[&str]); 3] = [
    ("gannet-pagestore", &["--test", "memory"], &[]),
    ("gannet-pagestore", &["--lib"], &["array::", "latch::tests::e", "latch::tests::s", "bytes::"]),
    (
        "gannet-runtime",
        &["--lib"],
        &["file::", "mapping::tests::zeroed", "backlog::", "timer::", "outbox::"],
    ),
];

/// Runs all of them.
pub fn run() -> Outcome {
    for (package, target, names) in TESTS {
        let status = Command::new("cargo")
            .args(["+nightly", "miri", "test", "--quiet", "--package", package])
            .args(target)
            .arg("--target-dir")
            .arg(crate::root().join("target/miri"))
            .args(["--", "--test-threads=1"])
            .args(names)
            .env("MIRIFLAGS", "-Zmiri-strict-provenance")
            .current_dir(crate::root())
            .status()
            .map_err(|e| format!("cargo: {e}"))?;
        if !status.success() {
            return Err(format!("{package} {}: Miri found something", target.join(" ")));
        }
    }
    Ok(())
}
