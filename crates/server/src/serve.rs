//! `gannet serve`: start, wait, stop.
//!
//! Order of a start: engine (which locks the data directory and recovers it), catalog, listeners,
//! the ready line. Order of a stop: listeners, connections (running statements are interrupted,
//! their transactions rolled back), engine. A failure of storage stops the process at once:
//! recovery is the repair.

use crate::log;
use crate::options::ServeOptions;
use catalog::{Catalog, CatalogError};
use engine::EngineOptions;
use runtime::net::{Address, Listener, ServeHandle};
use runtime::sync::Event;
use runtime::{WaitClass, fs};
use session::variables::{GlobalVariables, VariableValue};
use session::{
    ClientConnection, DESCRIPTORS_FOR_FILES, Door, ServerState, TlsError, TlsFiles, TlsServer,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The server could not start or did not stop well.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The storage engine.
    #[error("the storage engine cannot start: {0}")]
    Engine(String),
    /// The dictionary.
    #[error("the dictionary cannot be read: {0}")]
    Catalog(#[from] CatalogError),
    /// Certificate and key.
    #[error("TLS cannot be offered: {0}")]
    Tls(#[from] TlsError),
    /// An address that is none.
    #[error("'{0}' is not an address to listen on")]
    Address(String),
    /// A listener.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Where.
        address: Address,
        /// The system's words.
        error: io::Error,
    },
}

/// Longest path that a UNIX socket can have, in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// How long connections get to end when the server stops.
const FAREWELL_LIMIT: Duration = Duration::from_secs(5);
/// Memory that statements may use in all beside the buffer pool, in bytes.
const STATEMENT_MEMORY_BYTES: u64 = 4 << 30;

/// What differs between the `gannet` binary and a simulation of the server.
pub trait Surroundings {
    /// Changes the engine's options before it is opened.
    fn tune(&self, _options: &mut EngineOptions) {}
    /// TLS is offered. A simulation does without: keys are random.
    fn offers_tls(&self) -> bool {
        false
    }
    /// Clients may come; `created` says that the database is new.
    fn ready(&self, listeners: &[ServeHandle], created: bool);
}

/// The binary: only tests tune it, the first login and the ready line are printed.
struct Process;

impl Surroundings for Process {
    fn tune(&self, options: &mut EngineOptions) {
        crate::test_switches::tune(options);
    }

    fn offers_tls(&self) -> bool {
        true
    }

    fn ready(&self, listeners: &[ServeHandle], created: bool) {
        if created {
            print_first_login(listeners);
        }
        announce(listeners);
    }
}

/// Runs the server until it is asked to stop.
pub fn run(options: &ServeOptions) -> Result<(), ServeError> {
    crate::test_switches::switch_mutant();
    run_in(options, &Process)
}

/// Runs the server in surroundings of the caller's until it is asked to stop.
pub fn run_in(options: &ServeOptions, surroundings: &dyn Surroundings) -> Result<(), ServeError> {
    for warning in &options.warnings {
        log::warning(warning);
    }
    let globals = globals(options);
    limit_connections(&globals);
    let opened = crate::engine_start::open(&options.data_directory, &globals, surroundings)?;
    let catalog = Catalog::open(opened.engine())?;
    let state = ServerState::new(catalog, globals, STATEMENT_MEMORY_BYTES);
    state.apply_admission();
    state.apply_compression();
    state.apply_read_only_compressed();
    state.apply_flushing();
    state.apply_monitors();
    state.watch_clients();
    if surroundings.offers_tls() && !options.skip_tls {
        offer_tls(options, &state)?;
    }
    let stop = Arc::new(Event::default());
    let event = stop.clone();
    state.set_on_shutdown(move || event.set());
    let listeners = listen(options, &state)?;
    surroundings.ready(&listeners, opened.created);
    wait_for_the_end(&stop);
    log::note("shutting down");
    for listener in &listeners {
        listener.stop();
    }
    close_connections(&state);
    remove_socket_files(&listeners);
    opened.close();
    log::note("shutdown complete");
    Ok(())
}

fn globals(options: &ServeOptions) -> GlobalVariables {
    let globals = GlobalVariables::default();
    let text = VariableValue::text;
    for (name, value) in &options.variables {
        globals.set_option(name, value.clone());
    }
    let hostname = fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    globals.set_known("hostname", text(String::from_utf8_lossy(&hostname).trim()));
    globals.set_known("datadir", text(&format!("{}/", options.data_directory)));
    if globals.value("tmpdir").show().is_empty() {
        globals.set_known("tmpdir", text(&format!("{}/tmp", options.data_directory)));
    }
    globals.set_known("port", VariableValue::Unsigned(u64::from(options.port)));
    globals.set_known("version_compile_machine", text(std::env::consts::ARCH));
    let workers = runtime::worker_count() as u64;
    globals.set_known("thread_pool_size", VariableValue::Unsigned(workers));
    if globals.value("thread_handling").show() != "pool-of-threads" {
        globals.set_known("thread_handling", text("pool-of-threads"));
        log::warning("thread_handling is always pool-of-threads");
    }
    globals
}

/// TLS with the certificate of `ssl_cert` and `ssl_key`, else with one in the data directory, made
/// at the first start. Only files that somebody named are a reason not to start.
fn offer_tls(options: &ServeOptions, state: &ServerState) -> Result<(), ServeError> {
    let text = |name| state.globals.value(name).show();
    let (certificate, key) = (text("ssl_cert"), text("ssl_key"));
    let is_named = !certificate.is_empty() || !key.is_empty();
    let files = match is_named {
        true => Ok(TlsFiles { certificate, key, ..TlsFiles::default() }),
        false => TlsServer::generate(&options.data_directory, &text("hostname")),
    };
    let offered = files.and_then(|files| {
        let versions = text("tls_version");
        let files = TlsFiles { authority: text("ssl_ca"), versions, ..files };
        TlsServer::load(&files).map(|tls| state.offer_tls(tls, &files))
    });
    match offered {
        Err(error) if !is_named => {
            log::warning(&format!("TLS is not offered: {error}"));
            Ok(())
        }
        offered => Ok(offered?),
    }
}

/// Every connection needs a descriptor: the process takes as many as it may have, and says so if
/// `max_connections` asks for more.
fn limit_connections(globals: &GlobalVariables) {
    let descriptors = runtime::raise_descriptor_limit();
    globals.set_known("open_files_limit", VariableValue::Unsigned(descriptors));
    let wanted = globals.value("max_connections").number();
    let possible = descriptors.saturating_sub(DESCRIPTORS_FOR_FILES).max(1);
    if wanted > possible {
        globals.set_known("max_connections", VariableValue::Unsigned(possible));
        log::warning(&format!(
            "Changed limits: max_open_files: {descriptors}  max_connections: {possible}  \
             (was {wanted})"
        ));
    }
}

/// The addresses that `--bind-address` names: a list of addresses, `*`, `localhost`.
fn tcp_addresses(options: &ServeOptions) -> Result<Vec<SocketAddr>, ServeError> {
    let parse = |name: &str| match name {
        "*" | "::" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        "localhost" | "" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse().map_err(|_| ServeError::Address(other.to_owned())),
    };
    let names = options.bind_address.split(',').map(str::trim);
    names.map(|name| parse(name).map(|ip| SocketAddr::new(ip, options.port))).collect()
}

fn listen(
    options: &ServeOptions,
    state: &Arc<ServerState>,
) -> Result<Vec<ServeHandle>, ServeError> {
    let mut addresses = Vec::new();
    if !options.skip_networking {
        addresses.extend(tcp_addresses(options)?.into_iter().map(Address::Tcp));
    }
    let default = format!("{}/gannet.sock", options.data_directory);
    let socket = options.socket.clone().unwrap_or(default);
    if socket.len() <= SOCKET_PATH_BYTES_MAX {
        addresses.push(Address::Unix(socket.clone().into()));
        state.globals.set_known("socket", VariableValue::text(&socket));
    } else {
        log::warning(&format!("'{socket}' is too long for a socket; there is none"));
    }
    let back_log = state.globals.value("back_log").number() as u32;
    let mut listeners = Vec::new();
    for address in addresses {
        let refused = |error| ServeError::Listen { address: address.clone(), error };
        let listener = Listener::bind_with(address.clone(), back_log).map_err(refused)?;
        let state = state.clone();
        listeners.push(runtime::net::serve(listener, move |peer, handle| {
            Box::new(ClientConnection::new(state.clone(), peer, handle, Door::Main))
        }));
    }
    listeners.extend(listen_extra(options, state, back_log)?);
    if let Some(Address::Tcp(address)) = listeners.iter().map(ServeHandle::address).next() {
        state.globals.set_known("port", VariableValue::Unsigned(u64::from(address.port())));
    }
    Ok(listeners)
}

/// `extra_port`: a way in that no limit and no busy worker closes, on the reserved worker.
fn listen_extra(
    options: &ServeOptions,
    state: &Arc<ServerState>,
    back_log: u32,
) -> Result<Vec<ServeHandle>, ServeError> {
    let port = state.globals.value("extra_port").number() as u16;
    if port == 0 || options.skip_networking {
        return Ok(Vec::new());
    }
    let mut listeners = Vec::new();
    for mut address in tcp_addresses(options)? {
        address.set_port(port);
        let address = Address::Tcp(address);
        let refused = |error| ServeError::Listen { address: address.clone(), error };
        let listener = Listener::bind_with(address.clone(), back_log).map_err(refused)?;
        let state = state.clone();
        listeners.push(runtime::net::serve_reserved(listener, move |peer, handle| {
            Box::new(ClientConnection::new(state.clone(), peer, handle, Door::Extra))
        }));
    }
    Ok(listeners)
}

/// How to log in to a server that was just initialised.
fn print_first_login(listeners: &[ServeHandle]) {
    log::complain(
        "A new server was initialised. Log in as root without a password, from here only:",
    );
    for listener in listeners {
        match listener.address() {
            Address::Tcp(address) => {
                let host = match address.ip() {
                    ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
                    ip => ip,
                };
                log::complain(&format!("  mariadb -u root -h {host} -P {}", address.port()));
            }
            Address::Unix(path) => {
                log::complain(&format!("  mariadb -u root -S {}", path.display()));
            }
        }
    }
    log::complain("Then set one:  ALTER USER root@localhost IDENTIFIED BY '...';");
}

/// The line that says that clients may come.
fn announce(listeners: &[ServeHandle]) {
    let tcp = listeners.iter().find(|l| matches!(l.address(), Address::Tcp(_)));
    if let Some(listener) = tcp.or(listeners.first()) {
        log::print(&format!("ready for connections on {}", listener.address()));
    }
}

/// SIGTERM, SIGINT or SHUTDOWN.
fn wait_for_the_end(stop: &Arc<Event>) {
    let signalled = stop.clone();
    runtime::spawn("signals", move || {
        while let Some(signal) = runtime::signal::wait() {
            match signal {
                runtime::signal::Signal::HangUp => {}
                runtime::signal::Signal::Terminate | runtime::signal::Signal::Interrupt => {
                    signalled.set();
                }
            }
        }
    });
    stop.wait(WaitClass::Idle, None);
}

fn close_connections(state: &ServerState) {
    state.stop_accepting();
    state.close_connections();
    let deadline = runtime::now() + FAREWELL_LIMIT;
    while state.processes.count() > 0 && runtime::now() < deadline {
        runtime::sleep(Duration::from_millis(10));
    }
    state.forget_spares();
    let left = state.processes.count();
    if left > 0 {
        log::warning(&format!("{left} connections did not end in time"));
    }
}

fn remove_socket_files(listeners: &[ServeHandle]) {
    for listener in listeners {
        if let Address::Unix(path) = listener.address()
            && let Err(error) = fs::remove_file(path)
        {
            log::warning(&format!("'{}' cannot be removed: {error}", path.display()));
        }
    }
}
