//! A session: what a connection is between and during its commands.

use crate::account_connections::AccountSlot;
use crate::authenticate::Security;
use crate::gate::GATED;
use crate::login::ChangingUser;
use crate::plan_cache::Lookup;
use crate::process::Process;
use crate::room::{self, Room};
use crate::settings::Settings;
use crate::status::SessionStatus;
use crate::track::Changes;
use crate::transaction::TransactionState;
use crate::variables::SessionVariables;
use crate::{PreparedStatements, ServerState};
use base::MemoryAccount;
use catalog::{MetadataLockSet, TableEntry, TemporaryTables, UserPrivileges};
use expr::{EvalContext, Hooks};
use std::sync::Arc;
use std::time::Duration;
use types::{SqlError, Timestamp, Warning};
use wire::capability::status;
use wire::response::SessionChange;
use wire::{Command, OutputBuffer};

/// Who is connected, and from where.
#[derive(Clone, Debug)]
pub struct Identity {
    /// User name as given.
    pub user: String,
    /// `localhost` or the address; in USER() and messages.
    pub host: String,
    /// Names and addresses that account patterns are compared with.
    pub hosts: Vec<String>,
    /// From the loopback or the socket.
    pub is_local: bool,
}

/// See the module's documentation.
pub struct Session {
    pub(crate) server: Arc<ServerState>,
    pub(crate) process: Arc<Process>,
    pub(crate) identity: Identity,
    pub(crate) user: Arc<UserPrivileges>,
    /// The role that is enabled; its privileges are among the user's.
    pub(crate) role: Option<String>,
    /// The password had expired at the login, and is still the same.
    pub(crate) must_change_password: bool,
    pub(crate) login_micros: i64,
    /// Version of the catalog at which `user` was looked up.
    pub(crate) user_version: u64,
    pub(crate) variables: SessionVariables,
    pub(crate) settings: Settings,
    pub(crate) eval: EvalContext,
    pub(crate) transaction: TransactionState,
    pub(crate) locks: MetadataLockSet,
    /// What LOCK TABLES has locked.
    pub(crate) locked_tables: Option<Box<plan::LockedTables>>,
    /// FLUSH TABLES WITH READ LOCK.
    pub(crate) read_lock: Option<Box<crate::read_lock::HeldReadLock>>,
    /// Those who want to take that lock wait for this session.
    pub(crate) is_writing: bool,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) prepared: PreparedStatements,
    pub(crate) lookup: Lookup,
    /// Temporary tables; most sessions have none.
    pub(crate) temporary: Option<Box<TemporaryTables>>,
    pub(crate) status: SessionStatus,
    pub(crate) memory: Arc<MemoryAccount>,
    /// What its memory does not hold.
    pub(crate) spill: Arc<exec::Spill>,
    pub(crate) out: OutputBuffer,
    pub(crate) capabilities: u64,
    /// Counts this connection as one of its account's.
    pub(crate) account_slot: Option<AccountSlot>,
    /// How the connection is secured.
    pub(crate) security: Security,
    /// Times that COM_CHANGE_USER failed.
    pub(crate) failed_changes: u8,
    /// COM_CHANGE_USER, while the client proves itself.
    pub(crate) changing: Option<Box<ChangingUser>>,
    /// LOAD DATA LOCAL and what follows it in the text of a command, for the connection to run.
    pub(crate) loading: Option<Vec<u8>>,
    /// Changes of state to be told at the end of an answer; none if there never was any.
    pub(crate) changes: Option<Box<Changes>>,
    /// Collation of the handshake; 0 before it.
    login_collation: u16,
    /// Status flags of the present answer alone.
    pub(crate) passing_status: u16,
    /// Another result of the same command follows.
    pub(crate) more_results: bool,
    /// Whether the plan that was executed last reads tables.
    pub(crate) reads_tables: bool,
    /// `timestamp` was set: NOW() stands still.
    pub(crate) fixed_time: Option<Timestamp>,
    /// `insert_id`: the next AUTO_INCREMENT value.
    pub(crate) insert_id: u64,
    /// The connection is to be closed after this answer.
    pub(crate) closing: bool,
    /// The server is to stop after this answer.
    pub(crate) asks_shutdown: bool,
}

/// Time and named locks as functions see them.
struct WorldHooks {
    server: Arc<ServerState>,
    connection: u64,
}

impl std::fmt::Debug for WorldHooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("WorldHooks")
    }
}

impl Drop for WorldHooks {
    fn drop(&mut self) {
        self.server.named_locks.release_all(self.connection);
    }
}

impl Hooks for WorldHooks {
    fn now(&self) -> Timestamp {
        Timestamp(runtime::wall_clock_micros())
    }

    fn sleep(&self, duration: Duration) -> Result<bool, SqlError> {
        match runtime::sleep(duration) {
            runtime::Wake::Cancelled => Err(SqlError::new(&types::codes::QUERY_INTERRUPTED, &[])),
            runtime::Wake::TimedOut | runtime::Wake::Unparked => Ok(true),
        }
    }

    fn get_lock(&self, name: &str, timeout: Duration) -> Result<bool, SqlError> {
        self.server.named_locks.take(name, self.connection, timeout)
    }

    fn release_lock(&self, name: &str) -> Option<bool> {
        self.server.named_locks.release(name, self.connection)
    }

    fn lock_owner(&self, name: &str) -> Option<u64> {
        self.server.named_locks.owner(name)
    }

    fn release_all_locks(&self) -> u64 {
        self.server.named_locks.release_all(self.connection)
    }

    fn breathe(&self) -> Result<(), SqlError> {
        runtime::yield_if_due();
        match runtime::is_current_cancelled() {
            true => Err(SqlError::new(&types::codes::QUERY_INTERRUPTED, &[])),
            false => Ok(()),
        }
    }
}

/// What SHOW WARNINGS shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diagnostics {
    pub(crate) list: Vec<Warning>,
    pub(crate) warnings: u64,
    pub(crate) errors: u64,
}

impl Session {
    /// A session for somebody who has logged in.
    pub fn new(
        server: Arc<ServerState>,
        process: Arc<Process>,
        identity: Identity,
        user: Arc<UserPrivileges>,
        capabilities: u64,
    ) -> Self {
        let variables = server.globals.session();
        let settings = Settings::decode(&variables);
        let mut locks = MetadataLockSet::new(settings.metadata_lock_timeout);
        locks.show_in(process.metadata_locks().clone());
        let memory = server.memory.child(u64::MAX);
        let spill = exec::Spill::new(server.temporary_directory.clone(), settings.budgets);
        let mut session = Self {
            user_version: server.catalog.version(),
            process,
            identity,
            user,
            role: None,
            must_change_password: false,
            login_micros: runtime::wall_clock_micros(),
            variables,
            eval: context(),
            transaction: TransactionState::default(),
            locks,
            locked_tables: None,
            read_lock: None,
            is_writing: false,
            settings,
            diagnostics: Diagnostics::default(),
            prepared: PreparedStatements::default(),
            lookup: Lookup::default(),
            temporary: None,
            status: SessionStatus::default(),
            memory,
            spill,
            out: OutputBuffer::new(),
            capabilities,
            account_slot: None,
            security: Security::default(),
            changing: None,
            failed_changes: 0,
            loading: None,
            changes: None,
            login_collation: 0,
            passing_status: 0,
            more_results: false,
            reads_tables: false,
            fixed_time: None,
            insert_id: 0,
            closing: false,
            asks_shutdown: false,
            server,
        };
        session.init_facts();
        session
    }

    fn init_facts(&mut self) {
        let connection = u64::from(self.process.id());
        self.eval.hooks = Box::new(WorldHooks { server: self.server.clone(), connection });
        let facts = &mut self.eval.facts;
        facts.connection_id = u64::from(self.process.id());
        facts.version = self.server.version.clone();
        facts.user = format!("{}@{}", self.identity.user, self.identity.host);
        let account = &self.user.account;
        facts.current_user = format!("{}@{}", account.user, account.host.0);
        self.enable_default_role();
        self.apply_settings();
    }

    /// The variables have changed: what is derived from them follows.
    pub(crate) fn apply_settings(&mut self) {
        self.settings = Settings::decode(&self.variables);
        self.eval.settings = self.settings.for_expressions(&self.variables);
        let Settings { results, client, stat_tables, .. } = self.settings;
        let context = format!("{:?} {results:?} {client:?} {stat_tables:?}", self.eval.settings);
        self.lookup.context = self.server.plan_cache.context(context);
        self.locks.set_timeout(self.settings.metadata_lock_timeout);
        let limit = self.variables.value("max_session_mem_used").number();
        self.memory.set_limit_bytes(limit);
        self.spill.set_budgets(self.settings.budgets);
        if let Some(open) = self.transaction.engine() {
            open.set_lock_wait_timeout(self.settings.row_lock_timeout);
        }
    }

    /// The collation that a client asked for at login.
    pub(crate) fn set_login_collation(&mut self, collation: u16) {
        self.login_collation = collation;
        let id = types::CollationId(collation);
        if id.is_known() && id != types::CollationId::BINARY {
            let info = id.info();
            self.set_names(info.charset, id);
        }
    }

    /// Default database.
    pub fn database(&self) -> Option<&str> {
        self.eval.facts.database.as_deref()
    }

    /// Changes the default database without a check.
    pub(crate) fn set_database(&mut self, name: Option<&str>) {
        self.eval.facts.database = name.map(str::to_owned);
        self.process.set_database(name);
        let collation = name
            .and_then(|name| self.server.catalog.schema(name))
            .map_or(types::CollationId::UTF8MB4_GENERAL_CI, |schema| schema.options.collation);
        let info = collation.info();
        let text = crate::variables::VariableValue::text;
        self.variables.set_known("character_set_database", text(info.charset.name()));
        self.variables.set_known("collation_database", text(info.name));
        if self.settings.track_schema {
            self.tell(SessionChange::Schema(name.unwrap_or_default()));
        }
        self.tell_state();
    }

    /// Status flags as they are now.
    pub(crate) fn status_flags(&self) -> u16 {
        let flag = |on: bool, flag: u16| if on { flag } else { 0 };
        flag(self.transaction.is_open(), status::IN_TRANS)
            | flag(self.settings.autocommit, status::AUTOCOMMIT)
            | flag(self.more_results, status::MORE_RESULTS)
            | flag(self.transaction.is_read_only(), status::IN_TRANS_READONLY)
            | flag(self.settings.parse.no_backslash_escapes, status::NO_BACKSLASH_ESCAPES)
            | flag(self.settings.parse.ansi_quotes, status::ANSI_QUOTES)
            | self.passing_status
    }

    /// Status flags of the EOF behind column definitions: what the statement will leave is not
    /// known yet, so an autocommit transaction is not shown.
    pub(crate) fn status_flags_before_rows(&self) -> u16 {
        let hidden = if self.settings.autocommit && !self.transaction.is_explicit() {
            status::IN_TRANS
        } else {
            0
        };
        self.status_flags() & !hidden
    }

    /// The account's present privileges; looked up again when a GRANT may have changed them.
    pub(crate) fn refresh_user(&mut self) {
        let version = self.server.catalog.version();
        if version != self.user_version {
            self.take_privileges();
            self.user_version = if self.needs_gate() { GATED } else { version };
        }
    }

    /// What the account and its enabled role hold now.
    #[cold]
    pub(crate) fn take_privileges(&mut self) {
        let role = self.role.as_deref();
        if let Some(user) = self.server.catalog.enabled(&self.user.account, role) {
            self.user = user;
        }
        self.must_change_password &= self.user.attributes.password_set_micros <= self.login_micros
            || self.user.attributes.expired;
    }

    /// The time that NOW() gives in a statement that begins now.
    pub(crate) fn statement_time(&self) -> Timestamp {
        self.fixed_time.unwrap_or_else(|| Timestamp(runtime::wall_clock_micros()))
    }

    /// The database a name without one belongs to (1046).
    pub(crate) fn current_database(&self) -> Result<String, SqlError> {
        let database = self.database().map(str::to_owned);
        database.ok_or_else(|| SqlError::new(&types::codes::NO_DB_ERROR, &[]))
    }

    /// COM_RESET_CONNECTION, COM_CHANGE_USER: everything but the connection and the default
    /// database begins anew.
    pub(crate) fn reset(&mut self) -> Result<(), SqlError> {
        self.leave_branch();
        let result = self.rollback();
        self.locked_tables = None;
        self.release_read_lock();
        self.end_write();
        self.locks.unpin();
        self.drop_temporary();
        let database = self.eval.facts.database.take();
        self.prepared.close_all(&self.server);
        self.variables = self.server.globals.session();
        self.eval = context();
        self.diagnostics = Diagnostics::default();
        self.fixed_time = None;
        self.insert_id = 0;
        self.init_facts();
        self.set_database(database.as_deref());
        self.forget_changes();
        result
    }

    /// COM_RESET_CONNECTION: as after the login, in the same database.
    pub(crate) fn reset_connection(&mut self) -> Result<(), SqlError> {
        let database = self.database().map(str::to_owned);
        let result = self.reset();
        self.set_database(database.as_deref());
        self.set_login_collation(self.login_collation);
        self.forget_changes();
        result
    }

    /// The connection ends: what is open is rolled back, locks and statements are given up.
    pub fn close(&mut self) {
        // The client is gone: there is nobody to tell about a failure.
        self.leave_branch();
        let _outcome = self.rollback();
        self.locked_tables = None;
        self.release_read_lock();
        self.end_write();
        self.locks.unpin();
        self.drop_temporary();
        self.prepared.close_all(&self.server);
    }

    /// The session's temporary table of that name.
    pub(crate) fn temporary_table(&self, schema: &str, name: &str) -> Option<&Arc<TableEntry>> {
        self.temporary.as_ref().and_then(|temporary| temporary.find(schema, name))
    }

    /// Drops all temporary tables. No transaction is open.
    fn drop_temporary(&mut self) {
        if let Some(mut temporary) = self.temporary.take() {
            temporary.leave_all();
            // What cannot be dropped now is dropped when the server starts again.
            let _outcome = self.server.catalog.drop_left(&mut temporary);
        }
    }

    /// Asks for the memory of what its parts point to before it executes a command; its own is in
    /// the cache by then. See [`runtime::prefetch`].
    pub(crate) fn prefetch_parts(&self) {
        self.prepared.prefetch();
        self.status.prefetch();
        runtime::prefetch(&*self.memory);
        runtime::prefetch(&*self.spill);
        if let Some(database) = self.database() {
            runtime::prefetch(database);
        }
    }

    /// Asks for the row that the command in these bytes will read, if that is plain to see: it
    /// executes the prepared statement that ran last.
    pub(crate) fn prefetch_row(&self, received: &[u8]) {
        if let Some(payload) = received.get(wire::PACKET_HEADER_BYTES..)
            && let Ok(Command::Execute(execute)) = Command::parse(payload, self.capabilities)
        {
            self.prepared.prefetch_row(&execute);
        }
    }

    /// Before a command: borrows memory for its answer and its parameters from the worker.
    pub(crate) fn take_room(&mut self) {
        let room = room::take();
        if !self.out.has_room() {
            self.out.lend_room(room.answer);
        }
        if self.eval.parameters.capacity() == 0 {
            self.eval.parameters = room.parameters;
        }
    }

    /// The answer is out: borrowed memory goes back to the worker, and so does what a large
    /// statement left.
    pub(crate) fn trim(&mut self) {
        let parameters = std::mem::take(&mut self.eval.parameters);
        room::give(Room { answer: self.out.take_room(), parameters });
        if self.eval.arena.allocated_bytes() > 16 * 1024 {
            self.eval.arena = Default::default();
        }
        self.lookup.trim();
    }
}

/// A context whose random numbers are no other session's.
fn context() -> EvalContext {
    let mut context = EvalContext::new();
    let (seed1, seed2) = (runtime::random_u64(), runtime::random_u64());
    context.random.get_mut().session = expr::RandomGenerator::new(seed1, seed2);
    context
}
