//! Servers that the lab starts itself, on the loopback.
//!
//! 1. One description of settings ([`Settings`]) makes the command line of every kind; what a kind
//!    cannot keep of it is said ([`Started::notes`]). What is in effect is read from the servers
//!    (the `parity` room), not believed from here.
//! 2. A server does not outlive the lab, however the lab ends: a watchdog of its own kills it.
//! 3. A server is ready when it answers a statement, not when it says so.
//! 4. Its log, its command line and its notes stay with the results. Its data go with the run,
//!    unless the description says where they are.

mod cold;
mod engine;
mod folder;
mod install;
mod kind;
mod options;
mod program;
mod running;
mod settings;
mod started;
mod watchdog;

pub use cold::{Beginning, drop_caches};
pub use engine::{Engine, MYROCKS};
pub use kind::{Kind, Version};
pub use options::{Options, options, table_options, variant};
pub use program::Program;
pub(crate) use running::{Running, signal, spawned};
pub use settings::{Compression, Isolation, Settings, Size, Threads, Variables, Word};
pub use started::Started;

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The database that is made in every started server.
pub const DATABASE: &str = "lab";
/// The account that is made in every started server; it may do everything and has no password.
pub const USER: &str = "lab";

/// A server to be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Which kind.
    pub kind: Kind,
    /// Its program, or the folder of an unpacked archive; else the one that is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// Its data. A folder that is filled is used as it is, and it is kept; without one the data
    /// are below the results and go when the server has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Its port; else a free one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Processors it may run on, as `taskset` writes them: "0", "0-3,8".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// An account that filled data have, in place of the one that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Settings.
    #[serde(default)]
    pub settings: Settings,
}

impl Description {
    /// A kind of server with everything as it is without further words.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            program: None,
            data: None,
            port: None,
            cpus: None,
            user: None,
            password: None,
            settings: Settings::default(),
        }
    }
}

/// Whether a server of this description could be started, as far as its program and its plugins go.
pub fn is_available(description: &Description) -> Result<(), String> {
    let program = Program::find(description.kind, description.program.as_deref())?;
    install::check(&program, &description.settings)
}

/// Starts a server, initialises its data if there are none, and waits until it answers. What it
/// leaves is in the folder `servers/NAME` of the results. Call it in a fiber.
pub fn start(
    description: &Description,
    name: &str,
    results: &Path,
) -> Result<Arc<Started>, String> {
    let with_name = |error| format!("{name}: {error}");
    Started::start(description, name, results).map(Arc::new).map_err(with_name)
}
