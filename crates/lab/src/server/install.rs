//! An empty data directory becomes one that a server starts on.

use super::engine;
use super::kind::{Kind, Version};
use super::program::{Program, answer};
use super::running::spawned;
use super::settings::Settings;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MARIADB_NAMES: [&str; 2] = ["mariadb-install-db", "mysql_install_db"];
/// Only a failure takes so long.
const LIMIT: Duration = Duration::from_secs(300);

/// Names the folder of a server's temporary files.
pub(super) const TEMPORARY: &str = "TMPDIR";

/// Whether what is needed is there.
pub(super) fn check(program: &Program, settings: &Settings) -> Result<(), String> {
    match program.kind {
        Kind::Mariadb => {
            program.helper(&MARIADB_NAMES)?;
            check_plugins(program, settings)
        }
        Kind::Mysql if program.version < Version(5, 7, 6) => {
            Err(format!("MySQL {} cannot initialise data by itself", program.version))
        }
        Kind::Mysql | Kind::Gannet => Ok(()),
    }
}

/// A server goes on without a plugin that it does not find, and would be measured as another.
pub(super) fn check_plugins(program: &Program, settings: &Settings) -> Result<(), String> {
    let plugins = engine::plugins(program.kind, program.version, settings);
    if plugins.is_empty() {
        return Ok(());
    }
    let folder = plugin_folder(program)?;
    for plugin in plugins {
        let file = folder.join(&plugin.name).with_extension("so");
        if !file.is_file() {
            return Err(format!(
                "{} is not there: install it (Debian: {})",
                file.display(),
                plugin.package
            ));
        }
    }
    Ok(())
}

/// Where a MariaDB looks for plugins, as it says itself.
fn plugin_folder(program: &Program) -> Result<PathBuf, String> {
    let mut command = Command::new(&program.path);
    let text =
        answer(command.args(["--no-defaults", "--verbose", "--help"]).args(common(program)))?;
    let folder = text.lines().find_map(|line| line.strip_prefix("plugin-dir "));
    let folder = folder.map(|folder| PathBuf::from(folder.trim()));
    folder.ok_or_else(|| format!("{} does not say its plugin-dir", program.path.display()))
}

/// Makes the tables of the system. Gannet makes its own at its first start. Temporary files are
/// those of the server alone: one that starts removes what it takes for left over in the folder.
pub(super) fn install(
    program: &Program,
    data: &Path,
    temporary: &Path,
    log: &Path,
) -> Result<(), String> {
    let mut command = match program.kind {
        Kind::Gannet => return Ok(()),
        Kind::Mariadb => {
            let mut command = Command::new(program.helper(&MARIADB_NAMES)?);
            command.args(["--no-defaults", "--skip-test-db", "--skip-name-resolve"]);
            // The server that makes the tables is the one that is measured, not one on the path.
            if program.version >= Version(10, 4, 0) {
                command.arg("--auth-root-authentication-method=normal");
            }
            command
        }
        Kind::Mysql => {
            let mut command = Command::new(&program.path);
            command.args(["--no-defaults", "--initialize-insecure"]);
            command
        }
    };
    command.arg(format!("--datadir={}", data.display()));
    command.args(common(program));
    let file = File::options().create(true).append(true).open(log);
    let file = file.map_err(|error| format!("{}: {error}", log.display()))?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    command.env(TEMPORARY, temporary);
    command.stdin(Stdio::null()).stdout(file).stderr(errors);
    let mut running = spawned(command, None)?;
    match running.wait_at_most(LIMIT) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(format!("making the system's tables: {status}; see {}", log.display())),
        None => Err(format!("making the system's tables took over {} s", LIMIT.as_secs())),
    }
}

/// What the maker of the tables and the server are told alike.
pub(super) fn common(program: &Program) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(base) = &program.base {
        words.push(format!("--basedir={}", base.display()));
    }
    // They do not run as root unless they are told to.
    if program.kind != Kind::Gannet && is_root() {
        words.push("--user=root".into());
    }
    words
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|line| line.split_whitespace().nth(1)) == Some("0")
}
