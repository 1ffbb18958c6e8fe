//! Starting the two servers that are compared: Gannet, and a throw-away MariaDB.

use crate::arguments::Arguments;
use crate::process::{self, Server};
use sqltest::client::{Connection, Options};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
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

/// Builds the server in the given profile and returns the path of the binary: for tests out of what
/// `cargo test --workspace` has compiled (features are those of the packages that are asked for
/// together), for measurements as users build it.
pub fn build_gannet(release: bool) -> Result<PathBuf, String> {
    let choice: &[&str] =
        if release { &["--release", "--package", "gannet-server"] } else { &["--workspace"] };
    process::run("cargo", &[&["build", "--bin", "gannet"], choice].concat())?;
    let profile = if release { "release" } else { "debug" };
    Ok(crate::root().join("target").join(profile).join("gannet"))
}

/// The server that `--binary` names, or one built as `--release` says.
pub fn chosen_gannet(arguments: &Arguments) -> Result<PathBuf, String> {
    match arguments.value("--binary") {
        Some(path) => std::path::absolute(path).map_err(|error| format!("{path}: {error}")),
        None => build_gannet(arguments.has("--release")),
    }
}

/// Bytes that a file, or the files of a folder, take in the file system.
pub fn allocated_bytes(path: &Path) -> u64 {
    allocated_bytes_of(path, "")
}

/// The same of those files whose names end so.
pub fn allocated_bytes_of(path: &Path, ending: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        let is_one = path.to_string_lossy().ends_with(ending);
        let found = std::fs::metadata(path).ok().filter(|_| is_one);
        return found.map_or(0, |found| found.blocks() * 512);
    };
    entries.flatten().map(|entry| allocated_bytes_of(&entry.path(), ending)).sum()
}

/// How long a server may take to start; only a failure takes so long.
const START_LIMIT: Duration = Duration::from_secs(300);

/// Starts Gannet on `datadir` and waits until it accepts connections. With port 0 the system
/// chooses one that nobody else can take meanwhile.
pub fn start_gannet(
    binary: &Path,
    datadir: &Path,
    port: u16,
    options: &[&str],
) -> Result<Server, String> {
    start_gannet_as(Command::new(binary), datadir, port, options)
}

/// The same by a command that ends with the binary, such as one that watches it.
pub fn start_gannet_as(
    command: Command,
    datadir: &Path,
    port: u16,
    options: &[&str],
) -> Result<Server, String> {
    start_gannet_logging(command, datadir, &datadir.with_extension("log"), port, options)
}

/// The same with what the server says in a file of the caller's choice.
pub fn start_gannet_logging(
    mut command: Command,
    datadir: &Path,
    log: &Path,
    port: u16,
    options: &[&str],
) -> Result<Server, String> {
    let file = File::options().create(true).append(true).open(log).map_err(|e| e.to_string())?;
    let errors = file.try_clone().map_err(|e| e.to_string())?;
    let said_before = file.metadata().map_err(|e| e.to_string())?.len() as usize;
    let child = command
        .args(["serve", "--datadir"])
        .arg(datadir)
        .args(["--port", &port.to_string()])
        .args(options)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .spawn()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    let mut server = Server::new(child, port);
    let with_log = |e: String| format!("{e}; see {}", log.display());
    if port == 0 {
        server.port = announced_port(&mut server, log, said_before).map_err(with_log)?;
    }
    wait_until_ready(&mut server).map_err(with_log)?;
    Ok(server)
}

/// The port in the line by which the server says that it is ready.
fn announced_port(server: &mut Server, log: &Path, said_before: usize) -> Result<u16, String> {
    let start = Instant::now();
    while start.elapsed() < START_LIMIT {
        let said = std::fs::read(log).map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(said.get(said_before..).unwrap_or_default());
        let whole_lines = said.rsplit_once('\n').map_or("", |(lines, _)| lines).lines();
        let address = whole_lines
            .filter_map(|line| line.split_once("ready for connections on "))
            .filter_map(|(_, address)| address.trim().rsplit_once(':')?.1.parse().ok())
            .next();
        if let Some(port) = address {
            return Ok(port);
        }
        if let Some(status) = server.ended() {
            return Err(format!("the server ended at its start: {status}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the server was not ready within {} s", START_LIMIT.as_secs()))
}

/// Starts a durable MariaDB with an empty data directory below `folder`.
pub fn start_mariadb(folder: &Path, port: u16, options: &[&str]) -> Result<Server, String> {
    let data = folder.join("data");
    let user = user_name()?;
    // A MariaDB that starts removes what it takes for left over in the folder of temporary files,
    // also another one's.
    let made = std::fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    let temporary = made.map_err(|e| format!("{}: {e}", folder.display()))?;
    let installed = process::quiet("mariadb-install-db")
        .args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"])
        .arg(format!("--user={user}"))
        .arg(format!("--datadir={}", data.display()))
        .env("TMPDIR", &temporary)
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
        .env("TMPDIR", &temporary)
        .spawn()
        .map_err(|e| format!("mariadbd: {e}"))?;
    let mut server = Server::new(child, port);
    wait_until_ready(&mut server)?;
    Ok(server)
}

/// Who runs this: servers that refuse to run as root unless told to are told so.
pub fn user_name() -> Result<String, String> {
    let output = Command::new("id").arg("-un").output().map_err(|e| format!("id: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Connects until a statement is answered.
pub fn wait_until_ready(server: &mut Server) -> Result<(), String> {
    let options = Options::local(server.port);
    let start = Instant::now();
    let mut last = String::new();
    while start.elapsed() < START_LIMIT {
        if let Some(status) = server.ended() {
            return Err(format!("the server ended at its start: {status}"));
        }
        match Connection::open(&options).and_then(|mut c| c.execute("SELECT 1")) {
            Ok(_) => return Ok(()),
            Err(e) => last = e.to_string(),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the server did not answer within {} s: {last}", START_LIMIT.as_secs()))
}
