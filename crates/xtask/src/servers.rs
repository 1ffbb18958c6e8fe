//! Starting the two servers that are compared: Gannet, and a throw-away MariaDB.

use crate::process::{self, Server};
use sqltest::client::{Connection, Options};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder below `target/` for one run, emptied.
pub fn fresh_folder(name: &str) -> Result<PathBuf, String> {
    let folder = crate::root().join("target/run").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// Builds the server in the given profile and returns the path of the binary.
pub fn build_gannet(release: bool) -> Result<PathBuf, String> {
    let mut arguments = vec!["build", "--package", "gannet-server", "--bin", "gannet"];
    if release {
        arguments.push("--release");
    }
    process::run("cargo", &arguments)?;
    let profile = if release { "release" } else { "debug" };
    Ok(crate::root().join("target").join(profile).join("gannet"))
}

/// Starts Gannet on `datadir` and waits until it accepts connections.
pub fn start_gannet(
    binary: &Path,
    datadir: &Path,
    port: u16,
    options: &[&str],
) -> Result<Server, String> {
    let log = datadir.with_extension("log");
    let file = File::options().create(true).append(true).open(&log).map_err(|e| e.to_string())?;
    let errors = file.try_clone().map_err(|e| e.to_string())?;
    let child = Command::new(binary)
        .args(["serve", "--datadir"])
        .arg(datadir)
        .args(["--port", &port.to_string()])
        .args(options)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    let mut server = Server::new(child, port);
    wait_until_ready(&mut server, Duration::from_secs(120))
        .map_err(|e| format!("{e}; see {}", log.display()))?;
    Ok(server)
}

/// Starts a durable MariaDB with an empty data directory below `folder`.
pub fn start_mariadb(folder: &Path, port: u16, options: &[&str]) -> Result<Server, String> {
    let data = folder.join("data");
    let user = user_name()?;
    let installed = process::quiet("mariadb-install-db")
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .arg(format!("--user={user}"))
        .arg(format!("--datadir={}", data.display()))
        .status()
        .map_err(|e| format!("mariadb-install-db: {e}"))?;
    if !installed.success() {
        return Err("mariadb-install-db failed".into());
    }
    let child = process::quiet("mariadbd")
        .arg("--no-defaults")
        .arg(format!("--user={user}"))
        .arg(format!("--datadir={}", data.display()))
        .arg(format!("--socket={}", folder.join("sock").display()))
        .arg(format!("--pid-file={}", folder.join("pid").display()))
        .arg(format!("--log-error={}", folder.join("error.log").display()))
        .arg(format!("--port={port}"))
        .args(["--bind-address=127.0.0.1", "--skip-name-resolve", "--performance-schema=0"])
        .args(["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1"])
        .args(["--innodb-snapshot-isolation=ON", "--max-connections=5000"])
        .args(["--max-prepared-stmt-count=1048576", "--character-set-server=utf8mb4"])
        .args(["--collation-server=utf8mb4_general_ci"])
        .args(options)
        .spawn()
        .map_err(|e| format!("mariadbd: {e}"))?;
    let mut server = Server::new(child, port);
    wait_until_ready(&mut server, Duration::from_secs(120))?;
    Ok(server)
}

fn user_name() -> Result<String, String> {
    let output = Command::new("id").arg("-un").output().map_err(|e| format!("id: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Connects until a statement is answered.
fn wait_until_ready(server: &mut Server, limit: Duration) -> Result<(), String> {
    let options = Options::local(server.port);
    let start = Instant::now();
    let mut last = String::new();
    while start.elapsed() < limit {
        if let Some(status) = server.ended() {
            return Err(format!("the server ended at its start: {status}"));
        }
        match Connection::open(&options).and_then(|mut c| c.execute("SELECT 1")) {
            Ok(_) => return Ok(()),
            Err(e) => last = e.to_string(),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the server did not answer within {} s: {last}", limit.as_secs()))
}
