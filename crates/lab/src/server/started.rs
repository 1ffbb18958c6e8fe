//! A server that the lab has started.

use super::cold::{self, Beginning};
use super::folder::{Folder, free_port};
use super::kind::Kind;
use super::program::Program;
use super::running::{LOOK_EVERY, Running, spawned};
use super::{
    DATABASE, Description, Options, USER, engine, install, options, table_options, variant,
};
use crate::client::{Connection, Failure, Target};
use runtime::net::Address;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a server may take until it answers: it may have a crash to recover from.
const START_LIMIT: Duration = Duration::from_secs(1800);
/// How long it may take to stop in order: it may have much to write.
const STOP_LIMIT: Duration = Duration::from_secs(600);
const READ_TIMEOUT: Duration = Duration::from_secs(600);
/// Lines of the log in an error.
const LOG_LINES: usize = 8;

/// A started server. It is killed when this goes; [`Started::stop`] ends it in order.
pub struct Started {
    description: Description,
    program: Program,
    options: Options,
    folder: Folder,
    port: u16,
    running: Mutex<Option<Running>>,
}

impl Started {
    pub(super) fn start(
        description: &Description,
        name: &str,
        results: &Path,
    ) -> Result<Self, String> {
        description.settings.check()?;
        engine::check(description.kind, &description.settings)?;
        let program = Program::find(description.kind, description.program.as_deref())?;
        install::check_plugins(&program, &description.settings)?;
        let mut options = options(program.kind, program.version, &description.settings);
        let folder = Folder::make(description, name, results)?;
        if folder.is_filled {
            options.notes.push(format!("the data in {} were there", folder.data.display()));
        }
        let port = description.port.map_or_else(free_port, Ok)?;
        let started = Self {
            description: description.clone(),
            program,
            options,
            folder,
            port,
            running: Mutex::new(None),
        };
        started.keep_words()?;
        // What a server of an earlier run said is not this one's.
        let _none = fs::remove_file(started.folder.log());
        if !started.folder.is_filled {
            let (folder, log) = (&started.folder, started.folder.log());
            install::install(&started.program, &folder.data, &folder.private, &log)
                .map_err(|error| started.with_log(error))?;
        }
        started.launch()?;
        if started.description.user.is_none() {
            started.make_account().map_err(|failure| format!("its account: {failure}"))?;
        }
        Ok(started)
    }

    /// The command line and the notes stay with the results.
    fn keep_words(&self) -> Result<(), String> {
        let path = self.folder.results.join("command.txt");
        let mut text = self.command().join(" \\\n    ");
        for note in &self.options.notes {
            text.push_str(&format!("\n# {note}"));
        }
        fs::write(&path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The words of its command line.
    pub fn command(&self) -> Vec<String> {
        let path = self.program.path.display().to_string();
        let mut words = match &self.description.cpus {
            Some(cpus) => vec!["taskset".into(), "-c".into(), cpus.clone(), path],
            None => vec![path],
        };
        words
            .push(if self.program.kind == Kind::Gannet { "serve" } else { "--no-defaults" }.into());
        words.push(format!("--datadir={}", self.folder.data.display()));
        words.push(format!("--port={}", self.port));
        words.push("--bind-address=127.0.0.1".into());
        words.push(format!("--socket={}", self.folder.socket().display()));
        if self.program.kind != Kind::Gannet {
            words.push("--skip-name-resolve".into());
            words.push(format!(
                "--pid-file={}",
                self.folder.socket().with_extension("pid").display()
            ));
        }
        if self.program.kind == Kind::Mysql && self.program.version.0 >= 8 {
            words.push("--mysqlx=OFF".into());
        }
        words.extend(install::common(&self.program));
        words.extend(self.options.words.iter().cloned());
        words
    }

    /// What the kind of server cannot keep of its settings, and what else should be known.
    pub fn notes(&self) -> &[String] {
        &self.options.notes
    }

    /// What tells its program from another build.
    pub fn facts(&self) -> BTreeMap<String, String> {
        self.program.facts()
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.program.kind
    }

    /// Options of CREATE TABLE for the engine and the compression that its settings ask for.
    pub fn table_options(&self) -> String {
        table_options(self.program.kind, &self.description.settings)
    }

    /// Their engine and compression in a word or two, for a report; empty for the server's default.
    pub fn variant(&self) -> String {
        variant(&self.description.settings)
    }

    /// Where and as whom to connect.
    pub fn target(&self) -> Target {
        let Description { user, password, .. } = &self.description;
        Target {
            address: Address::Tcp(([127, 0, 0, 1], self.port).into()),
            user: user.clone().unwrap_or_else(|| USER.into()),
            password: password.clone().unwrap_or_default(),
            database: DATABASE.into(),
            read_timeout: READ_TIMEOUT,
            tls: crate::client::Tls::Off,
        }
    }

    /// Its process, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.running.lock().as_ref().map(Running::id)
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.data.clone()
    }

    /// What it says.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// How it ended, if nobody ended it here.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.running.lock().as_mut().and_then(Running::ended)
    }

    /// Starts it again on its data; returns when it answers.
    pub fn restart(&self) -> Result<(), String> {
        match self.id() {
            Some(id) => Err(format!("it runs already, as process {id}")),
            None => self.launch(),
        }
    }

    /// Kills it at once, as a loss of power of the process alone would; returns when it is gone.
    pub fn kill(&self) -> Result<(), String> {
        let mut running = self.running.lock().take().ok_or("it does not run")?;
        // Its memory is given back before it is gone; clients of others go on meanwhile.
        running.kill();
        running.wait_at_most(STOP_LIMIT);
        Ok(())
    }

    /// Asks it to end and waits. An error if it had to be killed, or did not end in order.
    pub fn stop(&self) -> Result<(), String> {
        self.signal("TERM")?;
        let Some(mut running) = self.running.lock().take() else { return Ok(()) };
        match running.wait_at_most(STOP_LIMIT) {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.with_log(format!("it ended badly: {status}"))),
            None => Err(self.with_log(format!("it did not end in {} s", STOP_LIMIT.as_secs()))),
        }
    }

    /// Sends it a signal, by name or number.
    pub fn signal(&self, signal: impl std::fmt::Display) -> Result<(), String> {
        super::running::signal(self.id().ok_or("it does not run")?, signal)
    }

    /// Ends it in order, empties the caches of the operating system as far as that is permitted,
    /// and starts it again.
    pub fn cold_start(&self) -> Result<Beginning, String> {
        self.stop()?;
        let beginning = cold::drop_caches(&self.folder.data);
        self.launch()?;
        Ok(beginning)
    }

    fn launch(&self) -> Result<(), String> {
        let log = self.folder.log();
        let open = || File::options().create(true).append(true).open(&log);
        let with_path = |error: std::io::Error| format!("{}: {error}", log.display());
        let (output, errors) = (open().map_err(with_path)?, open().map_err(with_path)?);
        // Thousands of clients need as many descriptors.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -n \"$(ulimit -Hn)\" 2>/dev/null; exec \"$@\"", "sh"])
            .args(self.command())
            .current_dir(&self.folder.data)
            .env(install::TEMPORARY, &self.folder.private)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        *self.running.lock() = Some(spawned(command, Some(&self.folder.private))?);
        let answered = self.wait_until_it_answers();
        if answered.is_err() {
            drop(self.running.lock().take());
        }
        answered.map_err(|error| self.with_log(error))
    }

    fn wait_until_it_answers(&self) -> Result<(), String> {
        let target = match &self.description.user {
            Some(_) => Target { database: String::new(), ..self.target() },
            None => self.root(),
        };
        let begin = runtime::now();
        loop {
            if let Some(status) = self.ended() {
                return Err(format!("it ended at its start: {status}"));
            }
            let asked = Connection::open(&target).and_then(|mut server| server.single("SELECT 1"));
            match asked {
                Ok(_) => return Ok(()),
                // It will not become another answer by waiting.
                Err(error @ Failure::Server { number: 1045, .. }) => return Err(error.to_string()),
                Err(error) if runtime::now() - begin > START_LIMIT => {
                    return Err(format!("no answer in {} s: {error}", START_LIMIT.as_secs()));
                }
                Err(_) => runtime::sleep(LOOK_EVERY),
            };
        }
    }

    /// Through the socket, as whom new data have.
    fn root(&self) -> Target {
        let address = Address::Unix(self.folder.socket());
        let (user, password, database) = ("root".into(), String::new(), String::new());
        Target { address, user, password, database, ..self.target() }
    }

    fn make_account(&self) -> Result<(), Failure> {
        let mut connection = Connection::open(&self.root())?;
        let collation = self.description.settings.collation();
        let charset = match self.program.kind {
            Kind::Gannet => String::new(),
            _ if self.description.settings.defaults => String::new(),
            _ => format!(
                " CHARACTER SET {} COLLATE {collation}",
                self.description.settings.character_set
            ),
        };
        connection.command(&format!("CREATE DATABASE IF NOT EXISTS {DATABASE}{charset}"))?;
        connection.command(&format!("CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY ''"))?;
        connection.command(&format!("GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION"))?;
        drop(connection);
        Connection::open(&self.target()).map(|_| ())
    }

    /// An error with the last lines of the log.
    fn with_log(&self, error: String) -> String {
        let log = self.folder.log();
        let text = fs::read(&log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
        format!("{error}; {} ends with\n    {}", log.display(), last.join("\n    "))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.running.lock().take());
        self.folder.clean();
    }
}
