//! `cargo xtask test`: the whole test run, from an empty machine on.

use crate::{Outcome, process, sqltest_command, tidy};

/// Debian packages that the tests use, with a program of each.
const PACKAGES: [(&str, &str); 3] =
    [("mariadb-client", "mariadb"), ("mariadb-server", "mariadbd"), ("sysbench", "sysbench")];

/// Installs what is missing, then runs everything; stops at the first failure.
pub fn run() -> Outcome {
    install()?;
    process::run("cargo", &["fmt", "--all", "--check"])?;
    tidy::run(&crate::root())?;
    process::run("cargo", &["test", "--workspace", "--quiet"])?;
    sqltest_command::run(&crate::root(), &[])
}

fn install() -> Outcome {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, program)| !process::exists(program))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    process::run("apt-get", &["update", "-qq"])?;
    let quiet = ["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq"];
    let mut arguments = quiet.to_vec();
    arguments.push("--no-install-recommends");
    arguments.extend(missing);
    process::run("env", &arguments)
}
