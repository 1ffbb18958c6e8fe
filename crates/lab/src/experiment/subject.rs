//! Servers under test.

use crate::account::server_of;
use crate::client::Target;
use runtime::net::Address;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A server that the lab has started. All calls are made in a fiber.
pub trait Process: Send + Sync {
    /// Where it answers.
    fn target(&self) -> Target;

    /// The id of its process, while it runs.
    fn id(&self) -> Option<u32>;

    /// Its data.
    fn data(&self) -> Option<PathBuf>;

    /// Its program with all arguments.
    fn command(&self) -> Vec<String>;

    /// What is appended to every CREATE TABLE, so that the tables are of the variant that its
    /// description names.
    fn table_options(&self) -> String {
        String::new()
    }

    /// Its kind, such as mariadb.
    fn kind(&self) -> String;

    /// What tells its program from another build.
    fn facts(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Ends it as a loss of power would (SIGKILL); returns when it is gone.
    fn kill(&self) -> Result<(), String>;

    /// Starts it again on the data that are there; returns when it answers.
    fn start(&self) -> Result<(), String>;

    /// Ends it in order and starts it with nothing in memory; says how far that was possible.
    fn cold_start(&self) -> Result<String, String>;

    /// Sends a signal, such as SIGSTOP.
    fn signal(&self, number: i32) -> Result<(), String>;

    /// Ends it in order; returns when it is gone.
    fn stop(&self) -> Result<(), String>;
}

/// A server under test: one that runs, or one that the lab has started.
#[derive(Clone)]
pub struct Subject {
    /// How it is called in the report.
    pub name: String,
    /// Where it answers.
    pub target: Target,
    /// The process, if the lab has started it.
    pub process: Option<Arc<dyn Process>>,
    /// What is appended to every CREATE TABLE, after what the process says.
    pub table_options: String,
}

impl Subject {
    /// A server that runs.
    pub fn running(name: &str, target: Target) -> Self {
        Self { name: name.into(), target, process: None, table_options: String::new() }
    }

    /// A server that the lab has started.
    pub fn started(name: &str, process: Arc<dyn Process>) -> Self {
        Self {
            name: name.into(),
            target: process.target(),
            table_options: process.table_options(),
            process: Some(process),
        }
    }

    /// The id of the server's process, if it runs on this machine.
    pub fn id(&self) -> Option<u32> {
        match (&self.process, &self.target.address) {
            (Some(process), _) => process.id(),
            (None, Address::Tcp(address)) => server_of(address),
            (None, Address::Unix(_)) => None,
        }
    }

    /// Its data directory, if the lab knows it.
    pub fn data(&self) -> Option<PathBuf> {
        self.process.as_ref().and_then(|process| process.data())
    }
}
