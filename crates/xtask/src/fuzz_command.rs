//! `cargo xtask fuzz`: libFuzzer on the decoders, built with coverage counters on the ordinary
//! compiler.

use crate::Outcome;
use std::process::Command;

const TARGETS: [&str; 6] = ["packet", "parser", "log", "page", "codec", "delta"];

/// What tells LLVM to count edges and comparisons for libFuzzer.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Runs `fuzz [TARGET] [SECONDS]`: one target or all, 600 seconds each.
pub fn run(arguments: &[String]) -> Outcome {
    let seconds: u64 = arguments.iter().find_map(|a| a.parse().ok()).unwrap_or(600);
    let named = arguments.iter().find(|a| TARGETS.contains(&a.as_str()));
    let folder = crate::root().join("fuzz");
    for target in TARGETS.iter().filter(|t| named.is_none_or(|named| named == *t)) {
        let corpus = folder.join("corpus").join(target);
        std::fs::create_dir_all(&corpus).map_err(|e| e.to_string())?;
        let artifacts = folder.join("artifacts");
        std::fs::create_dir_all(&artifacts).map_err(|e| e.to_string())?;
        println!("+ fuzz {target} for {seconds} s");
        let log = artifacts.join(format!("{target}.log"));
        let errors = std::fs::File::create(&log).map_err(|e| e.to_string())?;
        let status = Command::new("cargo")
            .current_dir(&folder)
            .env("RUSTFLAGS", FLAGS)
            .env("GANNET_FUZZ_CORPUS", &corpus)
            .args(["run", "--quiet", "--release", "--bin", target, "--target", &host()?, "--"])
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args(["-max_len=16384", "-timeout=10", "-print_final_stats=1"])
            .stderr(errors)
            .status()
            .map_err(|e| format!("cargo: {e}"))?;
        let text = std::fs::read_to_string(&log).map_err(|e| e.to_string())?;
        report(&text);
        if !status.success() {
            let end: Vec<&str> = text.lines().rev().take(40).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            return Err(format!("{}\nfuzz target {target}, see fuzz/artifacts", end.join("\n")));
        }
    }
    println!("fuzz: no crash");
    Ok(())
}

/// Coverage with the seeds alone and at the end, and how many inputs were tried.
fn report(text: &str) {
    let wanted = |line: &&str| {
        line.contains("INITED") || line.contains("DONE") || line.contains("executed_units")
    };
    for line in text.lines().filter(wanted) {
        println!("{line}");
    }
}

/// The host's target triple; naming it keeps the flags away from build scripts.
fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or_else(|| "rustc -vV does not name the host".into())
}
