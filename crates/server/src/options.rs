//! The command line: `gannet serve` and `gannet check`, with every spelling mysqld knows.

use crate::option_file::{self, Entry, OptionFileError};
use session::variables::{Scope, VariableValue, registry};
use thiserror::Error;

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub enum CommandLine {
    /// Run the server.
    Serve(ServeOptions),
    /// Verify a data directory.
    Check {
        /// `--datadir`.
        data_directory: String,
        /// `--regions`: list every checked region.
        regions: bool,
    },
    /// `--version`.
    Version,
    /// `--help`.
    Help,
}

/// Options of `gannet serve`.
#[derive(Debug, Default, PartialEq)]
pub struct ServeOptions {
    /// `--datadir`.
    pub data_directory: String,
    /// Global variables to set before the start, in order; later ones win.
    pub variables: Vec<(&'static str, VariableValue)>,
    /// `--skip-networking`: the socket only.
    pub skip_networking: bool,
    /// `--skip-ssl`: no TLS is offered.
    pub skip_tls: bool,
    /// `--port`.
    pub port: u16,
    /// `--bind-address`.
    pub bind_address: String,
    /// `--socket`.
    pub socket: Option<String>,
    /// Sentences for the log.
    pub warnings: Vec<String>,
}

/// The command line or an option file cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum OptionError {
    /// Not a command.
    #[error("'{0}' is not a command; try 'gannet --help'")]
    UnknownCommand(String),
    /// Not an option and not a variable.
    #[error("unknown variable '{0}'")]
    Unknown(String),
    /// A value that the option cannot have.
    #[error("{0}")]
    Value(String),
    /// `--datadir` is missing.
    #[error("--datadir DIR is needed")]
    NoDataDirectory,
    /// An option file is not well-formed.
    #[error(transparent)]
    File(#[from] OptionFileError),
    /// An option file cannot be read.
    #[error("cannot read '{path}': {problem}")]
    Read {
        /// Which file.
        path: String,
        /// The system's words.
        problem: String,
    },
}

/// Text of `gannet --help`.
pub const HELP: &str = "\
Usage:
  gannet serve --datadir DIR [--port 3306] [--bind-address 127.0.0.1] [--socket PATH]
               [--buffer-pool-size 512M] [--config my.cnf] [--set NAME=VALUE]...
      Run the server. An empty DIR is initialised. Every mysqld-style option works too, such as
      --innodb-flush-log-at-trx-commit=1; --config reads the groups [mysqld], [mariadbd] and
      [gannet] of an option file.
  gannet check --datadir DIR [--regions]
      Verify every page, log record and index of a server that does not run.
";

/// Where option files come from; the server reads real ones, tests give texts.
pub trait Files {
    /// The text of a file.
    fn read(&self, path: &str) -> Result<String, String>;
    /// Names of the `*.cnf` files of a directory with the directory, in order.
    fn list(&self, directory: &str) -> Result<Vec<String>, String>;
}

/// No option files at all.
#[derive(Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        Err(format!("there is no {path}"))
    }

    fn list(&self, _directory: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

/// Reads the arguments (without the program's name).
pub fn parse(arguments: &[String], files: &dyn Files) -> Result<CommandLine, OptionError> {
    let Some((command, rest)) = arguments.split_first() else {
        return Ok(CommandLine::Help);
    };
    match command.as_str() {
        "serve" if rest.iter().any(|a| a == "--help" || a == "-?") => Ok(CommandLine::Help),
        "serve" => Ok(CommandLine::Serve(parse_serve(rest, files)?)),
        "check" => parse_check(rest),
        "--version" | "-V" | "version" => Ok(CommandLine::Version),
        "--help" | "-h" | "-?" | "help" => Ok(CommandLine::Help),
        other => Err(OptionError::UnknownCommand(other.to_owned())),
    }
}

fn parse_check(arguments: &[String]) -> Result<CommandLine, OptionError> {
    let mut data_directory = None;
    let mut regions = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match split(argument) {
            ("datadir", Some(value)) => data_directory = Some(value.to_owned()),
            ("datadir", None) => data_directory = rest.next().cloned(),
            ("regions", None) => regions = true,
            ("help", None) => return Ok(CommandLine::Help),
            _ => return Err(OptionError::Unknown(argument.clone())),
        }
    }
    let data_directory = data_directory.ok_or(OptionError::NoDataDirectory)?;
    Ok(CommandLine::Check { data_directory, regions })
}

/// `--name=value` or `--name`; anything else has an empty name.
fn split(argument: &str) -> (&str, Option<&str>) {
    let Some(body) = argument.strip_prefix("--") else {
        return ("", None);
    };
    match body.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (body, None),
    }
}

fn parse_serve(arguments: &[String], files: &dyn Files) -> Result<ServeOptions, OptionError> {
    let mut options = ServeOptions {
        port: 3306,
        bind_address: "127.0.0.1".to_owned(),
        ..ServeOptions::default()
    };
    // Option files first, so that the command line wins wherever it names them.
    let suffix = named_value(arguments, "defaults-group-suffix").unwrap_or_default();
    for name in ["config", "defaults-file", "defaults-extra-file"] {
        if let Some(path) = named_value(arguments, name) {
            options.read_file(&path, &suffix, files, 0)?;
        }
    }
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let argument = match argument.as_str() {
            "-P" => "--port",
            "-S" => "--socket",
            "-u" => "--user",
            "-b" => "--basedir",
            "-h" => "--datadir",
            other => other,
        };
        let (name, value) = split(argument);
        if name.is_empty() {
            return Err(OptionError::Unknown(argument.to_owned()));
        }
        let mut value = value.map(str::to_owned);
        if value.is_none() && needs_value(name) {
            value = rest.next().cloned();
        }
        options.apply(name, value.as_deref())?;
    }
    if options.data_directory.is_empty() {
        return Err(OptionError::NoDataDirectory);
    }
    Ok(options)
}

fn named_value(arguments: &[String], wanted: &str) -> Option<String> {
    let position = arguments.iter().position(|argument| split(argument).0 == wanted)?;
    match split(&arguments[position]).1 {
        Some(value) => Some(value.to_owned()),
        None => arguments.get(position + 1).cloned(),
    }
}

/// Most workers that `--thread-pool-size` starts.
const WORKERS_MAX: usize = 1024;

/// `--thread-pool-size` of the command line, which is needed before anything can be read: the
/// workers to start. In an option file it is too late.
pub fn thread_pool_size(arguments: &[String]) -> Option<usize> {
    let value = ["thread-pool-size", "thread_pool_size"]
        .into_iter()
        .find_map(|name| named_value(arguments, name));
    value?.parse().ok().map(|count: usize| count.clamp(1, WORKERS_MAX))
}

/// Options that are not variables.
const PLAIN: &[&str] = &[
    "config",
    "set",
    "buffer-pool-size",
    "defaults-file",
    "defaults-extra-file",
    "defaults-group-suffix",
    "user",
    "log-error",
    "pid-file",
    "transaction-isolation",
    "character-set-server",
];

fn needs_value(name: &str) -> bool {
    let name = name.replace('_', "-");
    if PLAIN.contains(&name.as_str()) {
        return true;
    }
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let kind = registry().find(name).map(|definition| &definition.kind);
    kind.is_some_and(|kind| *kind != session::variables::Kind::Boolean)
}

/// Variables of MariaDB's past, which it accepts with a warning and so do we.
const REMOVED: &[&str] = &[
    "innodb_adaptive_max_sleep_delay",
    "innodb_additional_mem_pool_size",
    "innodb_background_scrub_data_check_interval",
    "innodb_background_scrub_data_compressed",
    "innodb_background_scrub_data_interval",
    "innodb_background_scrub_data_uncompressed",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_populate",
    "innodb_change_buffer_max_size",
    "innodb_change_buffering",
    "innodb_checksums",
    "innodb_commit_concurrency",
    "innodb_concurrency_tickets",
    "innodb_file_format",
    "innodb_file_format_check",
    "innodb_file_format_max",
    "innodb_flush_neighbors",
    "innodb_instrument_semaphores",
    "innodb_large_prefix",
    "innodb_locks_unsafe_for_binlog",
    "innodb_log_checksums",
    "innodb_log_compressed_pages",
    "innodb_log_files_in_group",
    "innodb_log_optimize_ddl",
    "innodb_mirrored_log_groups",
    "innodb_page_cleaners",
    "innodb_replication_delay",
    "innodb_rollback_segments",
    "innodb_scrub_log",
    "innodb_scrub_log_speed",
    "innodb_stats_sample_pages",
    "innodb_support_xa",
    "innodb_sync_array_size",
    "innodb_thread_concurrency",
    "innodb_thread_sleep_delay",
    "innodb_undo_logs",
    "innodb_use_fallocate",
    "innodb_use_sys_malloc",
    "multi_range_count",
    "thread_concurrency",
    "timed_mutexes",
];

/// Beginnings of names that belong to parts of MariaDB that this server has not.
const FOREIGN: &[&str] = &[
    "aria_",
    "binlog_",
    "connect_conv_",
    "connect_type_",
    "connect_work_",
    "encrypt_",
    "feedback",
    "gtid_",
    "innodb_encrypt",
    "innodb_ft_",
    "log_slave_updates",
    "master_",
    "myisam_",
    "performance_schema_",
    "plugin_",
    "relay_",
    "replicate_",
    "report_",
    "rocksdb_",
    "rpl_",
    "server_audit",
    "skip_slave_start",
    "slave_",
    "wsrep_",
];

/// Switches of mysqld that mean nothing here.
const IGNORED: &[&str] = &[
    "no_defaults",
    "print_defaults",
    "console",
    "standalone",
    "user",
    "log_warnings",
    "symbolic_links",
    "external_locking",
    "skip_external_locking",
    "skip_host_cache",
    "core_file",
    "gdb",
    "debug_gdb",
    "stack_trace",
    "super_large_pages",
    "thread_cache",
];

impl ServeOptions {
    fn read_file(
        &mut self,
        path: &str,
        suffix: &str,
        files: &dyn Files,
        depth: usize,
    ) -> Result<(), OptionError> {
        let unreadable = |problem| OptionError::Read { path: path.to_owned(), problem };
        if depth > 10 {
            return Err(unreadable("includes are nested too deeply".to_owned()));
        }
        let text = files.read(path).map_err(unreadable)?;
        for entry in option_file::parse(path, &text, suffix)? {
            match entry {
                Entry::Option { name, value } => self.apply(&name, value.as_deref())?,
                Entry::Include(path) => self.read_file(&path, suffix, files, depth + 1)?,
                Entry::IncludeDirectory(directory) => {
                    for path in files.list(&directory).map_err(unreadable)? {
                        self.read_file(&path, suffix, files, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes one option; `-` and `_` are the same in names.
    fn apply(&mut self, written: &str, value: Option<&str>) -> Result<(), OptionError> {
        let name = written.to_ascii_lowercase().replace('-', "_");
        match (name.as_str(), value) {
            ("config" | "defaults_file" | "defaults_extra_file" | "defaults_group_suffix", _) => {
                Ok(())
            }
            ("set", Some(pair)) => {
                let problem =
                    || OptionError::Value(format!("--set needs NAME=VALUE, not '{pair}'"));
                let (name, value) = pair.split_once('=').ok_or_else(problem)?;
                self.apply(name.trim(), Some(value.trim()))
            }
            ("datadir", Some(path)) => {
                self.data_directory = path.to_owned();
                Ok(())
            }
            ("buffer_pool_size", value) => self.variable("innodb_buffer_pool_size", value),
            ("character_set_server", Some("utf8mb4")) => Ok(()),
            ("skip_networking", None) => {
                self.skip_networking = true;
                Ok(())
            }
            ("skip_ssl" | "disable_ssl", None) | ("ssl", Some("0" | "OFF" | "off")) => {
                self.skip_tls = true;
                Ok(())
            }
            ("ssl", _) => {
                self.skip_tls = false;
                Ok(())
            }
            ("log_bin", _) | ("skip_log_bin", _) => {
                if name == "log_bin" {
                    self.warn("there is no binary log yet; 'log_bin' is not in effect");
                }
                Ok(())
            }
            _ => self.prefixed(&name, value, written),
        }
    }

    fn prefixed(
        &mut self,
        name: &str,
        value: Option<&str>,
        written: &str,
    ) -> Result<(), OptionError> {
        let bare = name.strip_prefix("skip_").unwrap_or(name);
        let is_foreign = FOREIGN.iter().any(|prefix| bare.starts_with(prefix));
        if registry().find(name).is_some_and(|known| known.has_effect || !is_foreign) {
            return self.variable(name, value);
        }
        if let Some(loose) = name.strip_prefix("loose_") {
            return self.apply(loose, value).or_else(|error| {
                self.warn(&error.to_string());
                Ok(())
            });
        }
        for prefix in ["skip_", "disable_"] {
            if let Some(negated) = name.strip_prefix(prefix)
                && value.is_none()
                && registry().find(negated).is_some()
            {
                return self.variable(negated, Some("OFF"));
            }
        }
        if let Some(enabled) = name.strip_prefix("enable_")
            && registry().find(enabled).is_some()
        {
            return self.variable(enabled, value.or(Some("ON")));
        }
        if REMOVED.contains(&name) {
            self.warn(&format!(
                "'{name}' was removed. It does nothing now and exists only for compatibility \
                 with old my.cnf files."
            ));
            return Ok(());
        }
        if is_foreign {
            self.warn(&format!("'{name}' belongs to a part that this server has not; ignored"));
            return Ok(());
        }
        if IGNORED.contains(&name) {
            return Ok(());
        }
        Err(OptionError::Unknown(match value {
            Some(value) => format!("{written}={value}"),
            None => written.to_owned(),
        }))
    }

    fn variable(&mut self, name: &str, text: Option<&str>) -> Result<(), OptionError> {
        let Some(definition) = registry().find(name) else {
            return Err(OptionError::Unknown(name.to_owned()));
        };
        if definition.scope == Scope::SessionOnly {
            return Err(OptionError::Unknown(name.to_owned()));
        }
        let mut clamped = Vec::new();
        let value = definition.parse_option(text, &mut clamped).map_err(OptionError::Value)?;
        for warning in clamped {
            self.warn(&format!("{}; it is {} now", warning.message, value.show()));
        }
        match definition.name {
            "port" => {
                let problem = |_| OptionError::Value(format!("'{}' is not a port", value.show()));
                self.port = u16::try_from(value.number()).map_err(problem)?;
            }
            "bind_address" => self.bind_address = value.show(),
            "socket" => self.socket = Some(value.show()).filter(|path| !path.is_empty()),
            _ => {}
        }
        self.variables.push((definition.name, value));
        Ok(())
    }

    fn warn(&mut self, sentence: &str) {
        self.warnings.push(sentence.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Texts(&'static [(&'static str, &'static str)]);

    impl Files for Texts {
        fn read(&self, path: &str) -> Result<String, String> {
            let found = self.0.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
        }

        fn list(&self, directory: &str) -> Result<Vec<String>, String> {
            let names = self.0.iter().map(|(name, _)| (*name).to_owned());
            Ok(names.filter(|name| name.starts_with(directory)).collect())
        }
    }

    fn serve(arguments: &str) -> Result<ServeOptions, OptionError> {
        serve_with(arguments, &[])
    }

    fn serve_with(
        arguments: &str,
        files: &'static [(&'static str, &'static str)],
    ) -> Result<ServeOptions, OptionError> {
        let arguments: Vec<_> =
            format!("serve {arguments}").split_whitespace().map(str::to_owned).collect();
        match parse(&arguments, &Texts(files))? {
            CommandLine::Serve(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    fn variable(options: &ServeOptions, name: &str) -> Option<String> {
        let all = options.variables.iter().rev();
        all.filter(|(n, _)| *n == name).map(|(_, v)| v.show()).next()
    }

    #[test]
    fn the_documented_options_work() {
        let options = serve(
            "--datadir /d --port 3307 --bind-address 0.0.0.0 --socket /s \
             --buffer-pool-size 1G --set sql_mode=ANSI --set max_connections=70",
        )
        .unwrap();
        assert_eq!(options.data_directory, "/d");
        assert_eq!((options.port, options.bind_address.as_str()), (3307, "0.0.0.0"));
        assert_eq!(options.socket.as_deref(), Some("/s"));
        assert_eq!(variable(&options, "innodb_buffer_pool_size").unwrap(), "1073741824");
        assert_eq!(variable(&options, "max_connections").unwrap(), "70");
        assert!(variable(&options, "sql_mode").unwrap().starts_with("REAL_AS_FLOAT"));
        assert_eq!(options.warnings, [""; 0]);
    }

    #[test]
    fn mysqld_spellings_work() {
        let options = serve(
            "--no-defaults --datadir=/d --innodb-buffer-pool-size=512M \
             --innodb_flush_log_at_trx_commit=2 --skip-networking --transaction-isolation \
             READ-COMMITTED --max_connections=50 --skip-innodb-doublewrite --user=mysql -P 3310 \
             --innodb-page-cleaners=4 --loose-nonsense=1 --wsrep_provider=none --skip-name-resolve",
        )
        .unwrap();
        assert_eq!(variable(&options, "innodb_buffer_pool_size").unwrap(), "536870912");
        assert_eq!(variable(&options, "innodb_flush_log_at_trx_commit").unwrap(), "2");
        assert_eq!(variable(&options, "tx_isolation").unwrap(), "READ-COMMITTED");
        assert_eq!(variable(&options, "innodb_doublewrite").unwrap(), "OFF");
        assert!(options.skip_networking);
        assert_eq!(options.port, 3310);
        assert_eq!(options.warnings.len(), 2);
    }

    #[test]
    fn unknown_options_stop_the_start() {
        let unknown = |text: &str| Err(OptionError::Unknown(text.to_owned()));
        assert_eq!(serve("--datadir=/d --innodb_use_all=1"), unknown("innodb_use_all=1"));
        assert_eq!(serve("--datadir=/d stray"), unknown("stray"));
        assert_eq!(serve("--port=1"), Err(OptionError::NoDataDirectory));
        let options = serve("--datadir=/d --port=70000").unwrap();
        assert_eq!((options.port, options.warnings.len()), (65535, 1));
        assert!(matches!(serve("--datadir=/d --max-connections=x"), Err(OptionError::Value(_))));
    }

    #[test]
    fn option_files_are_read_before_the_command_line() {
        let files: &[_] = &[
            ("/my.cnf", "[mysqld]\ndatadir=/from-file\nport=1\n!includedir /conf.d\n"),
            ("/conf.d/a.cnf", "[gannet]\nport=2\nsocket=/s\n"),
        ];
        let options = serve_with("--config /my.cnf --port 3", files).unwrap();
        assert_eq!(options.data_directory, "/from-file");
        assert_eq!(options.port, 3);
        assert_eq!(options.socket.as_deref(), Some("/s"));
        assert!(matches!(
            serve_with("--defaults-file=/none --datadir=/d", files),
            Err(OptionError::Read { .. })
        ));
    }

    #[test]
    fn help_is_given_behind_a_command_too() {
        for text in ["", "--help", "help", "serve --help", "check --help", "serve -P 1 -?"] {
            let arguments: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            assert_eq!(parse(&arguments, &Texts(&[])).unwrap(), CommandLine::Help, "{text}");
        }
    }

    #[test]
    fn check_takes_its_own_options() {
        let arguments = ["check", "--datadir", "/d", "--regions"].map(str::to_owned);
        let parsed = parse(&arguments, &Texts(&[])).unwrap();
        let expected = CommandLine::Check { data_directory: "/d".to_owned(), regions: true };
        assert_eq!(parsed, expected);
        assert!(parse(&["check".to_owned()], &Texts(&[])).is_err());
        assert!(parse(&["serf".to_owned()], &Texts(&[])).is_err());
    }
}
