//! The `gannet` binary's inside: options, start, listeners, shutdown, the offline check.
//!
//! `main` starts the runtime and calls [`run`] in a fiber; everything else happens here.

pub mod check;
pub mod engine_start;
pub mod log;
pub mod option_file;
pub mod options;
pub mod serve;
mod test_switches;

use options::{CommandLine, Files, HELP, OptionError};

/// Option files of the real file system.
struct SystemFiles;

impl Files for SystemFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        let bytes = runtime::fs::read(path).map_err(|error| error.to_string())?;
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        let names = runtime::fs::read_dir(directory).map_err(|error| error.to_string())?;
        let wanted = names.into_iter().filter(|name| name.ends_with(".cnf"));
        Ok(wanted.map(|name| format!("{}/{name}", directory.trim_end_matches('/'))).collect())
    }
}

/// Runs the command that the arguments (without the program's name) ask for; the exit code of
/// the process. Called in a fiber.
pub fn run(arguments: &[String]) -> i32 {
    match options::parse(arguments, &SystemFiles) {
        Ok(CommandLine::Help) => {
            print!("{HELP}");
            if arguments.is_empty() { 2 } else { 0 }
        }
        Ok(CommandLine::Version) => {
            log::print(&format!("gannet  Ver {}", session::version_text()));
            0
        }
        Ok(CommandLine::Check { data_directory, regions }) => check::run(&data_directory, regions),
        Ok(CommandLine::Serve(options)) => match serve::run(&options) {
            Ok(()) => 0,
            Err(error) => {
                log::error(&error.to_string());
                1
            }
        },
        Err(error) => {
            log::error(&error.to_string());
            if matches!(error, OptionError::UnknownCommand(_) | OptionError::NoDataDirectory) {
                eprint!("{HELP}");
            }
            2
        }
    }
}
