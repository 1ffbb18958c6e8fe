//! What all sessions share.

use crate::account_connections::AccountConnections;
use crate::authenticate::PasswordCache;
use crate::plan_cache::PlanCache;
use crate::process::{Door, ProcessList};
use crate::spare::SpareTransactions;
use crate::transport::{TlsFiles, TlsServer};
use crate::variables::{GlobalVariables, VariableValue};
use crate::xa::Branches;
use base::MemoryAccount;
use catalog::Catalog;
use runtime::sync::Mutex;
use runtime::{AdmissionSettings, Instant};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use wire::capability;

/// The server as sessions see it.
pub struct ServerState {
    /// Definitions and accounts.
    pub catalog: Arc<Catalog>,
    /// Global variables.
    pub globals: GlobalVariables,
    /// Connections.
    pub processes: ProcessList,
    /// Memory of all statements.
    pub memory: Arc<MemoryAccount>,
    /// Where statements keep what does not fit into memory: `tmpdir`.
    pub(crate) temporary_directory: Arc<Path>,
    /// `10.11.19-MariaDB-gannet-0.1.0`.
    pub version: String,
    started: Instant,
    /// Prepared statements of all sessions.
    pub(crate) prepared_count: AtomicU64,
    pub(crate) plan_cache: PlanCache,
    pub(crate) account_connections: AccountConnections,
    pub(crate) spare_transactions: SpareTransactions,
    pub(crate) branches: Branches,
    pub(crate) named_locks: crate::named_locks::NamedLocks,
    pub(crate) read_lock: crate::read_lock::GlobalReadLock,
    /// Connections that the process has descriptors for.
    connections_possible: usize,
    pub(crate) passwords: PasswordCache,
    tls: OnceLock<TlsServer>,
    stopping: AtomicBool,
    on_shutdown: Mutex<Option<Box<dyn Fn() + Send>>>,
}

/// Descriptors kept for files and listeners; what is above serves connections.
pub const DESCRIPTORS_FOR_FILES: u64 = 256;

/// How often running statements are looked at for clients that went away.
const CLIENT_WATCH_PERIOD: Duration = Duration::from_millis(200);
/// A statement is looked at once it has run for this long.
const CLIENT_WATCH_AGE: Duration = Duration::from_millis(100);

/// The version that VERSION() gives.
pub fn version_text() -> String {
    format!("10.11.19-MariaDB-gannet-{}", env!("CARGO_PKG_VERSION"))
}

impl ServerState {
    /// A server over an opened catalog. Runs in a fiber.
    pub fn new(catalog: Arc<Catalog>, globals: GlobalVariables, memory_bytes: u64) -> Arc<Self> {
        let version = version_text();
        globals.set_known("version", VariableValue::text(&version));
        let descriptors = globals.value("open_files_limit").number();
        let connections_possible = match descriptors {
            0 => usize::MAX,
            limit => limit.saturating_sub(DESCRIPTORS_FOR_FILES).max(1) as usize,
        };
        let temporary_directory = match globals.value("tmpdir").show() {
            unset if unset.is_empty() => Arc::from(Path::new("/tmp")),
            directory => Arc::from(Path::new(&directory)),
        };
        let server = Arc::new(Self {
            catalog,
            globals,
            temporary_directory,
            processes: ProcessList::new(),
            memory: MemoryAccount::new(memory_bytes),
            version,
            started: runtime::now(),
            prepared_count: AtomicU64::new(0),
            plan_cache: PlanCache::default(),
            account_connections: AccountConnections::default(),
            spare_transactions: SpareTransactions::new(),
            branches: Branches::default(),
            named_locks: Default::default(),
            read_lock: Default::default(),
            connections_possible,
            passwords: PasswordCache::default(),
            tls: OnceLock::new(),
            stopping: AtomicBool::new(false),
            on_shutdown: Mutex::new(None),
        });
        server.branches.take_up(&server, server.catalog.engine().take_prepared());
        let known = Arc::downgrade(&server);
        server.catalog.engine().set_statement_source(Arc::new(move |connection| {
            let server = known.upgrade();
            let process = server.and_then(|it| it.processes.find(u64::from(connection)));
            process.map(|process| process.info().query).unwrap_or_default()
        }));
        server
    }

    /// How many connections may come through a door, and one more: on the main one it is for
    /// administrators.
    pub(crate) fn connection_limit(&self, door: Door) -> usize {
        let number = |name| self.globals.value(name).number() as usize;
        match door {
            // Without descriptors left nobody would even get an error.
            Door::Main => number("max_connections").min(self.connections_possible),
            Door::Extra => number("extra_max_connections"),
        }
    }

    /// The thread_pool_* variables: what they mean here is in COMPAT.md.
    pub fn apply_admission(&self) {
        let number = |name| self.globals.value(name).number();
        runtime::set_admission(&AdmissionSettings {
            statements_max: u32::try_from(number("thread_pool_max_threads")).unwrap_or(u32::MAX),
            stall_limit: Duration::from_millis(number("thread_pool_stall_limit")),
            kick_up: Duration::from_millis(number("thread_pool_prio_kickup_timer")),
            exact_times: self.globals.value("thread_pool_exact_stats").is_on(),
        });
    }

    /// innodb_compression_algorithm and its level, for tables that name none.
    pub fn apply_compression(&self) {
        let algorithm = self.globals.value("innodb_compression_algorithm").show();
        let level = self.globals.value("innodb_compression_level").number();
        self.catalog.engine().set_compressed(&algorithm, level as i32);
    }

    /// innodb_read_only_compressed.
    pub fn apply_read_only_compressed(&self) {
        let is_on = self.globals.value("innodb_read_only_compressed").is_on();
        self.catalog.engine().set_compressed_rows_read_only(is_on);
    }

    /// innodb_max_dirty_pages_pct.
    pub fn apply_flushing(&self) {
        if let VariableValue::Double(percent) = self.globals.value("innodb_max_dirty_pages_pct") {
            self.catalog.engine().set_dirty_share_max(percent / 100.0);
        }
    }

    /// Seconds since the start.
    pub fn uptime_seconds(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// TLS is offered from now on, with this certificate; the variables tell of it.
    pub fn offer_tls(&self, tls: TlsServer, files: &TlsFiles) {
        let text = VariableValue::text;
        self.globals.set_known("have_ssl", text("YES"));
        self.globals.set_known("have_openssl", text("YES"));
        self.globals.set_known("ssl_cert", text(&files.certificate));
        self.globals.set_known("ssl_key", text(&files.key));
        // The first one stays: nobody offers a second.
        let _first = self.tls.set(tls);
    }

    /// What TLS connections begin with, if TLS is offered.
    pub(crate) fn tls(&self) -> Option<&TlsServer> {
        self.tls.get()
    }

    /// What the greeting offers.
    pub(crate) fn capabilities(&self) -> u64 {
        let tls = if self.tls.get().is_some() { capability::SSL } else { 0 };
        let refused = match self.globals.value("local_infile").is_on() {
            true => 0,
            false => capability::LOCAL_FILES,
        };
        (capability::SERVER | tls) & !refused
    }

    /// What SHUTDOWN calls.
    pub fn set_on_shutdown(&self, call: impl Fn() + Send + 'static) {
        *self.on_shutdown.lock() = Some(Box::new(call));
    }

    /// SHUTDOWN: asks the process to stop.
    pub fn request_shutdown(&self) {
        if let Some(call) = &*self.on_shutdown.lock() {
            call();
        }
    }

    /// New connections are refused from now on (1053).
    pub fn stop_accepting(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether the server is stopping.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Starts the fiber that notices clients which went away while their statement runs. It ends
    /// with the server.
    pub fn watch_clients(self: &Arc<Self>) {
        let server = Arc::downgrade(self);
        runtime::spawn("client watch", move || {
            loop {
                runtime::sleep(CLIENT_WATCH_PERIOD);
                let Some(server) = server.upgrade().filter(|server| !server.is_stopping()) else {
                    return;
                };
                for process in server.processes.all() {
                    process.interrupt_if_abandoned(CLIENT_WATCH_AGE);
                }
            }
        });
    }

    /// Closes every connection; running statements are interrupted.
    pub fn close_connections(&self) {
        for process in self.processes.all() {
            process.kill_connection();
        }
    }

    /// Gives back what is kept for sessions, once they have ended.
    pub fn forget_spares(&self) {
        self.spare_transactions.clear();
        self.branches.clear();
    }
}
