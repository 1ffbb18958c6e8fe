//! The data directory: one server at a time.

use runtime::file::{File, OpenOptions};
use runtime::fs;
use std::io;
use thiserror::Error;

/// Name of the file whose lock says that a server uses the directory.
const LOCK_FILE: &str = "gannet.lock";

/// The directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// Another process has it.
    #[error("'{0}' is in use by another server")]
    InUse(String),
    /// The system refuses.
    #[error("'{path}': {error}")]
    System {
        /// Which path.
        path: String,
        /// The system's words.
        error: io::Error,
    },
    /// For `check`: there is nothing.
    #[error("'{0}' is not a data directory")]
    Missing(String),
}

/// A data directory that this process owns until the value is dropped.
pub struct DataDirectory {
    path: String,
    /// Holds the lock.
    _lock: File,
    /// There was nothing in it.
    pub is_new: bool,
}

impl DataDirectory {
    /// Locks the directory, creating it if `create` and it is missing.
    pub fn open(path: &str, create: bool) -> Result<Self, DirectoryError> {
        let system = |error| DirectoryError::System { path: path.to_owned(), error };
        if create {
            fs::create_dir_all(path).map_err(system)?;
        } else if !fs::exists(format!("{path}/data")).map_err(system)? {
            return Err(DirectoryError::Missing(path.to_owned()));
        }
        let names = fs::read_dir(path).map_err(system)?;
        let is_new = names.iter().all(|name| name == LOCK_FILE || name == "lost+found");
        let lock_path = format!("{path}/{LOCK_FILE}");
        let refused = |error| DirectoryError::System { path: lock_path.clone(), error };
        let lock = OpenOptions::new().create(true).open(&lock_path).map_err(refused)?;
        if !lock.try_lock_exclusive().map_err(refused)? {
            return Err(DirectoryError::InUse(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), _lock: lock, is_new })
    }

    /// The path as given.
    pub fn path(&self) -> &str {
        &self.path
    }
}
