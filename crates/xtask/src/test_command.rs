//! `cargo xtask test`: the whole test run, from an empty machine on.

use crate::{Outcome, packages, plans, process, sqltest_command, tidy, tpcc};

/// Installs what is missing, then runs everything; stops at the first failure.
pub fn run() -> Outcome {
    packages::install(&packages::SERVERS)?;
    process::run("cargo", &["fmt", "--all", "--check"])?;
    tidy::run(&crate::root())?;
    process::run("cargo", &["test", "--workspace", "--quiet"])?;
    sqltest_command::run(&crate::root(), &[])?;
    plans::run(&crate::root(), &[])?;
    tpcc::run(&["--seconds", "5", "--crash"].map(String::from))
}
