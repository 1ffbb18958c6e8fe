//! Debian packages that commands use, installed when they are missing.

use crate::{Outcome, process};

/// A package, and what of it shows that it is there: a program on the path, or a whole path.
pub type Package = (&'static str, &'static str);

/// The server that is compared with, and the benchmark.
pub const SERVERS: [Package; 3] =
    [("mariadb-client", "mariadb"), ("mariadb-server", "mariadbd"), ("sysbench", "sysbench")];
/// Engine and page compression of MariaDB that tables on the device are compared with.
pub const STORAGE: [Package; 2] = [
    ("mariadb-plugin-rocksdb", "mariadb-ldb"),
    ("mariadb-plugin-provider-lz4", "/usr/lib/mysql/plugin/provider_lz4.so"),
];
/// The instruction counter, and the names of the C library's functions for it.
pub const VALGRIND: [Package; 2] = [("valgrind", "valgrind"), ("libc6-dbg", "valgrind")];

/// Installs the packages that are not there.
pub fn install(packages: &[Package]) -> Outcome {
    let missing: Vec<&str> = packages
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
