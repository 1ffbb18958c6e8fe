//! Reading system variables and status, for expressions, SHOW and information_schema.

use crate::ServerState;
use crate::authenticate::Security;
use crate::flushing;
use crate::process::ProcessInfo;
use crate::status::{self, SessionStatus};
use crate::variables::{Definition, Scope, SessionVariables, VariableValue, registry};
use catalog::information_schema::{Process, SessionTables};
use catalog::{Privilege, ShownLocks, UserPrivileges};
use expr::{Coercibility, ResultType};
use plan::SystemVariables;
use std::collections::HashSet;
use std::sync::Arc;
use syntax::ast::{SystemVariable, VariableScope};
use types::{SqlError, TimeZone, Timestamp, Value, codes};

/// What information_schema and the planner see of a session; a copy of what is small, so that
/// the rest of the session can be borrowed meanwhile. Made by `session_view!`.
pub(crate) struct SessionView<'a> {
    pub(crate) server: &'a ServerState,
    pub(crate) variables: &'a SessionVariables,
    pub(crate) status: &'a SessionStatus,
    pub(crate) user: &'a UserPrivileges,
    pub(crate) security: &'a Security,
    pub(crate) compresses: bool,
    pub(crate) now: Timestamp,
    pub(crate) last_insert_id: u64,
    pub(crate) insert_id: u64,
    pub(crate) warnings: u64,
    pub(crate) errors: u64,
    pub(crate) connection_id: u64,
    pub(crate) in_transaction: bool,
    pub(crate) time_zone: TimeZone,
    pub(crate) role: Option<&'a str>,
}

/// Borrows of a session only what a [`SessionView`] needs.
macro_rules! session_view {
    ($session:ident, $server:expr) => {
        crate::system_variables::SessionView {
            server: $server,
            variables: &$session.variables,
            status: &$session.status,
            user: &$session.user,
            security: &$session.security,
            compresses: $session.capabilities & wire::capability::COMPRESS != 0,
            now: $session.eval.now,
            last_insert_id: $session.eval.facts.last_insert_id,
            insert_id: $session.insert_id,
            warnings: $session.diagnostics.warnings,
            errors: $session.diagnostics.errors,
            connection_id: $session.eval.facts.connection_id,
            in_transaction: $session.transaction.is_open(),
            time_zone: $session.settings.time_zone,
            role: $session.role.as_deref(),
        }
    };
}
pub(crate) use session_view;

impl SessionTables for SessionView<'_> {
    fn processes(&self) -> Vec<Process> {
        let all = self.user.global.has(Privilege::Process);
        let queued: HashSet<u64> =
            runtime::queued_connections().iter().map(|waiting| waiting.id).collect();
        let infos = self.server.processes.all().into_iter().map(|process| {
            let mut info = process.info();
            if queued.contains(&u64::from(info.id)) && !process.is_running() {
                info.state = "Waiting in queue";
            }
            info
        });
        let visible = infos.filter(|info| all || info.user == self.user.account.user);
        visible.map(process_row).collect()
    }

    fn metadata_locks(&self) -> Vec<(u64, Arc<ShownLocks>)> {
        let all = self.user.global.has(Privilege::Process);
        let visible = self.server.processes.all().into_iter();
        let visible = visible.filter(|it| all || it.info().user == self.user.account.user);
        visible.map(|it| (u64::from(it.id()), it.metadata_locks().clone())).collect()
    }

    fn named_locks(&self) -> Vec<(String, u64)> {
        let mut locks = self.server.named_locks.all();
        if !self.user.global.has(Privilege::Process) {
            locks.retain(|(_, owner)| *owner == self.connection_id);
        }
        locks
    }

    fn wall_clock_micros(&self) -> i64 {
        runtime::wall_clock_micros()
    }

    fn time_zone(&self) -> TimeZone {
        self.time_zone
    }

    fn role(&self) -> Option<String> {
        self.role.map(str::to_owned)
    }

    fn version_number(&self) -> u32 {
        let mut parts = self.server.version.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        let mut part = || parts.next().unwrap_or(0);
        part() * 10_000 + part() * 100 + part()
    }

    fn variables(&self, global: bool) -> Vec<(String, String)> {
        let listed = registry().iter().filter(|d| !global || d.scope != Scope::SessionOnly);
        let value = |definition: &Definition| match global || definition.scope == Scope::Global {
            true => self.server.globals.get(definition).show(),
            false => self.variables.get(definition).show(),
        };
        listed.map(|definition| (definition.name.to_owned(), value(definition))).collect()
    }

    fn system_variables(&self) -> Vec<Vec<Value>> {
        registry().iter().map(|definition| self.described(definition)).collect()
    }

    fn status(&self, global: bool) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: u64| pairs.push((name.to_owned(), value.to_string()));
        if global {
            status::server().for_each(|(name, value)| add(name, value));
        } else {
            self.status.session().for_each(|(name, value)| add(name, value));
        }
        server_status(self.server).into_iter().for_each(|(name, value)| add(name, value));
        worker_status().into_iter().for_each(|(name, value)| add(name, value));
        for (name, value) in self.server.catalog.engine().status() {
            add(name, value);
        }
        let tls = self.security.tls.as_ref().filter(|_| !global);
        let (version, cipher) = tls.map_or(("", ""), |tls| (tls.version, tls.cipher.as_str()));
        pairs.push(("Ssl_version".to_owned(), version.to_owned()));
        pairs.push(("Ssl_cipher".to_owned(), cipher.to_owned()));
        pairs.push(("Ssl_cipher_list".to_owned(), cipher.to_owned()));
        let compression = if self.compresses && !global { "ON" } else { "OFF" };
        pairs.push(("Compression".to_owned(), compression.to_owned()));
        let since = Timestamp(self.server.processes.most_since_micros());
        let since = types::TimeZone::default().to_local(since).to_string();
        pairs.push(("Max_used_connections_time".to_owned(), since));
        let absent = status::of_absent_parts();
        pairs.extend(absent.map(|(name, value)| (name.to_owned(), value.to_owned())));
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
        pairs.dedup_by(|a, b| a.0 == b.0);
        pairs
    }
}

/// What the workers say.
fn worker_status() -> [(&'static str, u64); 4] {
    let workers = runtime::worker_figures();
    let count = |wanted: fn(&runtime::WorkerFigures) -> bool| {
        workers.iter().filter(|worker| wanted(worker)).count() as u64
    };
    [
        ("Gannet_workers_on_own_core", count(|worker| worker.has_own_core)),
        ("Threadpool_idle_threads", count(|worker| worker.is_asleep)),
        ("Threadpool_threads", count(|_| true)),
        ("Threads_created", count(|_| true)),
    ]
}

fn server_status(server: &ServerState) -> [(&'static str, u64); 20] {
    let tables: usize = server.catalog.schemas().iter().map(|s| s.tables().count()).sum();
    let prepared = server.prepared_count.load(std::sync::atomic::Ordering::Relaxed);
    let connected = server.processes.count() as u64;
    [
        ("Aborted_clients", status::ABORTED_CLIENTS.value()),
        ("Aborted_connects", status::ABORTED_CONNECTS.value()),
        ("Connection_errors_accept", 0),
        ("Connection_errors_internal", 0),
        ("Connection_errors_max_connections", status::REFUSED_CONNECTIONS.value()),
        ("Connection_errors_peer_address", 0),
        ("Connection_errors_select", 0),
        ("Connection_errors_tcpwrap", 0),
        ("Connections", server.processes.connections()),
        ("Max_used_connections", server.processes.most()),
        ("Memory_used", server.memory.used_bytes()),
        ("Open_table_definitions", tables as u64),
        ("Open_tables", tables as u64),
        ("Gannet_plan_cache_entries", server.plan_cache.len() as u64),
        ("Prepared_stmt_count", prepared),
        ("Threads_cached", 0),
        ("Threads_connected", connected),
        ("Threads_running", server.processes.running() as u64),
        ("Uptime", server.uptime_seconds()),
        // FLUSH STATUS leaves the server's counters as they are.
        ("Uptime_since_flush_status", server.uptime_seconds()),
    ]
}

fn process_row(info: ProcessInfo) -> Process {
    Process {
        id: u64::from(info.id),
        user: info.user,
        host: info.host,
        schema: info.database,
        command: info.command.to_owned(),
        time_ms: info.since.elapsed().as_millis() as u64,
        state: info.state.to_owned(),
        info: match info.query.is_empty() {
            true => None,
            false => Some(String::from_utf8_lossy(&info.query).into_owned()),
        },
        query_id: info.query_id,
        memory_bytes: 0,
        transaction: info.transaction,
    }
}

impl SessionView<'_> {
    /// The row of information_schema.SYSTEM_VARIABLES.
    fn described(&self, definition: &Definition) -> Vec<Value> {
        let globals = &self.server.globals;
        let value = |value: VariableValue| match value {
            VariableValue::Null => Value::Null,
            value => Value::text(value.show()),
        };
        let given = |text: &str| if text.is_empty() { Value::Null } else { Value::text(text) };
        let is_global = definition.scope != Scope::SessionOnly;
        let is_session = definition.scope != Scope::Global;
        let has_default = definition.default != VariableValue::text("")
            && !(definition.read_only && definition.option_argument.is_none());
        let default = match has_default {
            true => Value::text(definition.default.show()),
            false => Value::Null,
        };
        let [minimum, maximum, block] = definition.written_range.map(given);
        vec![
            Value::text(definition.name.to_ascii_uppercase()),
            if is_session { value(self.session_value(definition)) } else { Value::Null },
            if is_global { value(globals.get(definition)) } else { Value::Null },
            Value::text(globals.origin(definition).name()),
            default,
            Value::text(match definition.scope {
                Scope::Global => "GLOBAL",
                Scope::Session => "SESSION",
                Scope::SessionOnly => "SESSION ONLY",
            }),
            Value::text(definition.type_name),
            Value::text(comment(definition)),
            minimum,
            maximum,
            block,
            given(&definition.words.join(",")),
            Value::text(if definition.read_only { "YES" } else { "NO" }),
            definition.option_argument.map_or(Value::Null, Value::text),
            Value::Null,
        ]
    }

    /// A session variable, of which some are computed.
    fn session_value(&self, definition: &Definition) -> VariableValue {
        match definition.name {
            "timestamp" => VariableValue::Double(self.now.0 as f64 / 1e6),
            "last_insert_id" | "identity" => VariableValue::Unsigned(self.last_insert_id),
            "insert_id" => VariableValue::Unsigned(self.insert_id),
            "warning_count" => VariableValue::Unsigned(self.warnings),
            "error_count" => VariableValue::Unsigned(self.errors),
            "pseudo_thread_id" => VariableValue::Unsigned(self.connection_id),
            "in_transaction" => VariableValue::Unsigned(u64::from(self.in_transaction)),
            _ => self.variables.get(definition).clone(),
        }
    }
}

/// What `@@name` is now. Fails with 1193 and 1238.
impl SystemVariables for SessionView<'_> {
    fn read(&self, variable: &SystemVariable) -> Result<(Value, ResultType), SqlError> {
        let unknown = || SqlError::new(&codes::UNKNOWN_SYSTEM_VARIABLE, &[&variable.name]);
        let found = registry().find(&variable.name).filter(|_| variable.instance.is_none());
        let definition = found.ok_or_else(unknown)?;
        let wrong_scope = |kind: &str| {
            SqlError::new(&codes::INCORRECT_GLOBAL_LOCAL_VAR, &[&definition.name, &kind])
        };
        let value = match (variable.scope, definition.scope) {
            (VariableScope::Global, Scope::SessionOnly) => return Err(wrong_scope("SESSION")),
            (VariableScope::Session, Scope::Global) => return Err(wrong_scope("GLOBAL")),
            (VariableScope::Global, _) | (_, Scope::Global) => self.server.globals.get(definition),
            _ => self.session_value(definition),
        };
        let mut column_type = value.column_type();
        let is_text = column_type.kind.is_string();
        if is_text {
            column_type.scale = expr::STRING_DECIMALS;
            // Names and values are in the server's own character set.
            column_type.collation = types::collation::default_of(types::Charset::Utf8mb3).id;
        }
        let result = match is_text {
            true => ResultType {
                coercibility: Coercibility::SystemConstant,
                ..ResultType::column(column_type, true)
            },
            false => ResultType::of(column_type, true),
        };
        Ok((value.to_value(), result))
    }
}

/// What information_schema.SYSTEM_VARIABLES says of a variable.
fn comment(definition: &Definition) -> String {
    if let Some(why) = flushing::why_without_effect(definition.name) {
        return format!("Accepted and shown, without effect: {why}.");
    }
    match (definition.has_effect, definition.read_only, definition.is_fixed) {
        (true, ..) => "Takes effect.",
        (_, true, _) => "Shown only.",
        (_, _, true) => "Shown only; no other value is accepted.",
        _ => "Accepted and shown, without effect.",
    }
    .to_owned()
}
