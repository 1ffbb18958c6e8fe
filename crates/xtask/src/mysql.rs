//! MySQL as a peer. Debian has it in its unstable distribution only, for later libraries than those
//! of a stable one: so it is unpacked below `target/mysql` with all libraries that it needs, and
//! started by their loader. Nothing is installed.

use crate::process::{self, Server};
use crate::{Outcome, servers};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const PACKAGE: &str = "mysql-server-core";

/// Starts the server that is unpacked beside; what chooses option files has to be said first.
const STARTER: &str = r#"#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/files/usr
libraries=$root/lib/x86_64-linux-gnu
case "$1" in --no-defaults|--defaults-*) first=$1; shift;; esac
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" --argv0 "$root/sbin/mysqld" \
    "$root/sbin/mysqld" $first --basedir="$root" --lc-messages-dir="$root/share/mysql" \
    --plugin-dir="$root/lib/mysql/plugin" --secure-file-priv=NULL "$@"
"#;

/// `cargo xtask mysql`: unpacks it and says where its program is.
pub fn run() -> Outcome {
    let program = program()?;
    process::run(&program.display().to_string(), &["--version"])?;
    println!("{}", program.display());
    Ok(())
}

/// What starts the server as `mysqld` would; unpacked if it is not there.
pub fn program() -> Result<PathBuf, String> {
    let folder = crate::root().join("target/mysql");
    let starter = folder.join("mysqld");
    if !starter.is_file() {
        unpack(&folder)?;
        std::fs::write(&starter, STARTER)
            .and_then(|()| std::fs::set_permissions(&starter, PermissionsExt::from_mode(0o755)))
            .map_err(|error| format!("{}: {error}", starter.display()))?;
    }
    Ok(starter)
}

/// apt finds out what is needed where nothing is installed, and checks the signatures.
fn unpack(folder: &Path) -> Outcome {
    let of = |error: std::io::Error| format!("{}: {error}", folder.display());
    for name in ["lists/partial", "cache/archives/partial", "files"] {
        std::fs::create_dir_all(folder.join(name)).map_err(of)?;
    }
    let source = format!("deb [signed-by={KEYS}] {} sid main\n", mirror()?);
    std::fs::write(folder.join("sources.list"), source).map_err(of)?;
    std::fs::write(folder.join("status"), "").map_err(of)?;
    let options = [
        ("Dir::Etc::SourceList", "sources.list"),
        ("Dir::State::Lists", "lists"),
        ("Dir::State::status", "status"),
        ("Dir::Cache", "cache"),
    ];
    let options = options.map(|(name, file)| format!("{name}={}", folder.join(file).display()));
    let mut words = vec!["-qq", "-o", "Dir::Etc::SourceParts=/dev/null"];
    words.extend(options.iter().flat_map(|option| ["-o", option.as_str()]));
    process::run("apt-get", &[&words[..], &["update"]].concat())?;
    let get = ["-y", "--download-only", "--no-install-recommends", "install", PACKAGE];
    process::run("apt-get", &[&words[..], &get].concat())?;
    let root = folder.join("files");
    for entry in std::fs::read_dir(folder.join("cache/archives")).map_err(of)?.flatten() {
        let package = entry.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            let status = Command::new("dpkg").arg("-x").arg(&package).arg(&root).status();
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => return Err(format!("{}: {status}", package.display())),
                Err(error) => return Err(format!("dpkg: {error}")),
            }
        }
    }
    Ok(())
}

/// Where this machine has its Debian packages from.
fn mirror() -> Result<String, String> {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"])
        .output()
        .map_err(|error| format!("apt-get: {error}"))?;
    let found = String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string);
    found.ok_or_else(|| "apt knows no Debian: this needs Debian's packages".to_string())
}

/// Starts it, as durable as [`servers::start_mariadb`] does MariaDB, with an empty data directory
/// below `folder`.
pub fn start(folder: &Path, port: u16, options: &[&str]) -> Result<Server, String> {
    let program = program()?;
    let user = format!("--user={}", servers::user_name()?);
    let data = format!("--datadir={}", folder.join("data").display());
    let log = folder.join("error.log").display().to_string();
    let told = format!("--log-error={log}");
    let common = ["--no-defaults", user.as_str(), data.as_str(), told.as_str()];
    let program = program.display().to_string();
    let of = |error: std::io::Error| format!("{program}: {error}");
    let made = process::quiet(&program).args(common).arg("--initialize-insecure").status();
    if !made.map_err(of)?.success() {
        return Err(format!("{program} --initialize-insecure failed; see {log}"));
    }
    let child = process::quiet(&program)
        .args(common)
        .arg(format!("--socket={}", folder.join("sock").display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--port={port}"))
        // Its root may come from localhost only: names are resolved.
        .args(["--bind-address=127.0.0.1", "--performance-schema=0"])
        .args(["--mysqlx=0", "--skip-log-bin", "--innodb-doublewrite=1"])
        .args(["--innodb-flush-log-at-trx-commit=1", "--max-connections=5000"])
        .args(["--max-prepared-stmt-count=1048576", "--character-set-server=utf8mb4"])
        .args(["--collation-server=utf8mb4_general_ci"])
        .args(options)
        .spawn()
        .map_err(of)?;
    let mut server = Server::new(child, port);
    servers::wait_until_ready(&mut server)?;
    Ok(server)
}
