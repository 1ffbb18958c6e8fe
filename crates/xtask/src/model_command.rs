//! `cargo xtask model`: the lock-free protocols under `loom`, which runs each model in every
//! order and with every visibility of stores that the memory model allows. The code under test is
//! that of the server, compiled with `--cfg loom` into a folder of its own.

use crate::Outcome;
use std::process::Command;

/// Rooms with models.
const ROOMS: [&str; 3] = ["gannet-runtime", "gannet-wal", "gannet-pagestore"];

/// Runs all models, or those whose names contain one of `names`.
pub fn run(names: &[String]) -> Outcome {
    let every = ["model::".to_string()];
    let status = Command::new("cargo")
        .args(["test", "--quiet", "--lib", "--no-fail-fast"])
        .arg("--target-dir")
        .arg(crate::root().join("target/model"))
        .args(ROOMS.iter().flat_map(|room| ["--package", room]))
        .arg("--")
        .args(if names.is_empty() { &every } else { names })
        .env("RUSTFLAGS", "--cfg loom")
        .env("RUST_BACKTRACE", "0")
        .current_dir(crate::root())
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err("a model failed".into()) }
}
