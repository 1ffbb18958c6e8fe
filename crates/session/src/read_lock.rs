//! FLUSH TABLES WITH READ LOCK: nobody else changes anything until UNLOCK TABLES.
//!
//! 1. A statement that changes rows or definitions, and a commit of changes, announces itself in
//!    its [`Process`](crate::process::Process) before it looks at the counters here; who takes the
//!    lock counts itself before it looks at the processes. So one of them sees the other, and
//!    changing costs a store and a load while nobody takes the lock.
//! 2. Who takes the lock first keeps new changes out and waits for those that have begun; only
//!    then are commits kept out, so that a change which waits for somebody's row comes to its end.
//! 3. Those kept out wait for the gate, which holders have in a kind that is compatible with
//!    itself.
//! 4. The lock goes with its session, however that ends.

use crate::Session;
use crate::server_state::ServerState;
use catalog::{LockKind, MetadataLock, MetadataLockSet};
use runtime::{Instant, WaitClass, Wake};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use syntax::ast::{Flush, LockTables, Statement, TableLock, TableName, TableReference};
use types::{SqlError, codes};

/// How often changes under way are looked at.
const PERIOD: Duration = Duration::from_millis(2);

/// The lock as all sessions see it.
pub(crate) struct GlobalReadLock {
    gate: Arc<MetadataLock>,
    /// Sessions that hold or take it.
    asking: AtomicU32,
    /// Those for whom commits wait, too.
    holding: AtomicU32,
}

impl Default for GlobalReadLock {
    fn default() -> Self {
        Self {
            gate: Arc::new(MetadataLock::new("", "")),
            asking: AtomicU32::new(0),
            holding: AtomicU32::new(0),
        }
    }
}

/// The lock in the hands of a session.
pub(crate) struct HeldReadLock {
    server: Arc<ServerState>,
    holds: bool,
    /// Gives the gate back after the counters.
    _gate: MetadataLockSet,
}

impl Drop for HeldReadLock {
    fn drop(&mut self) {
        let lock = &self.server.read_lock;
        if self.holds {
            lock.holding.fetch_sub(1, Ordering::SeqCst);
        }
        lock.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

fn interrupted() -> SqlError {
    SqlError::new(&codes::QUERY_INTERRUPTED, &[])
}

impl Session {
    /// Before a statement that changes something.
    pub(crate) fn begin_write(&mut self, statement: Option<&Statement>) -> Result<(), SqlError> {
        self.is_writing = true;
        self.process.set_writing();
        if self.server.read_lock.asking.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let passes = statement.is_some_and(|statement| self.changes_only_temporary(statement));
        // Locked tables have errors of their own for what may not be written.
        if passes || self.locked_tables.is_some() {
            return Ok(());
        }
        self.wait_for_writers_turn(|lock| &lock.asking)
    }

    /// Before a commit of changes.
    pub(crate) fn begin_commit(&mut self) -> Result<(), SqlError> {
        if self.is_writing {
            return Ok(());
        }
        self.is_writing = true;
        self.process.set_writing();
        if self.server.read_lock.holding.load(Ordering::SeqCst) == 0 || self.read_lock.is_some() {
            return Ok(());
        }
        self.wait_for_writers_turn(|lock| &lock.holding)
    }

    /// After it. Who has locked tables for writing goes on to write.
    pub(crate) fn end_write(&mut self) {
        if self.is_writing && !self.has_write_locks() {
            self.is_writing = false;
            self.process.end_writing();
        }
    }

    fn has_write_locks(&self) -> bool {
        self.locked_tables.as_ref().is_some_and(|locked| locked.has_writable())
    }

    #[cold]
    fn wait_for_writers_turn(
        &mut self,
        counter: fn(&GlobalReadLock) -> &AtomicU32,
    ) -> Result<(), SqlError> {
        let server = self.server.clone();
        loop {
            self.end_write();
            if self.read_lock.is_some() {
                return Err(SqlError::new(&codes::CANT_UPDATE_WITH_READLOCK, &[]));
            }
            let mut turn = MetadataLockSet::new(self.locks.timeout());
            turn.acquire(&server.read_lock.gate, LockKind::Write)?;
            drop(turn);
            self.is_writing = true;
            self.process.set_writing();
            if counter(&server.read_lock).load(Ordering::SeqCst) == 0 {
                return Ok(());
            }
        }
    }

    /// Temporary tables are nobody else's business.
    pub(crate) fn changes_only_temporary(&self, statement: &Statement) -> bool {
        let is_temporary = |name: &TableName| {
            let schema = name.schema.as_deref().or(self.database()).unwrap_or_default();
            let known = self.temporary.as_ref();
            known.is_some_and(|known| known.find(schema, &name.name).is_some())
        };
        let reads_one = |tables: &[TableReference]| match tables {
            [TableReference::Table { name, .. }] => is_temporary(name),
            _ => false,
        };
        match statement {
            Statement::Insert(insert) => is_temporary(&insert.table.name),
            Statement::Update(update) => reads_one(&update.tables),
            Statement::Delete(delete) => reads_one(&delete.tables),
            Statement::CreateTable(create) => create.temporary,
            Statement::DropTable(drop) => drop.temporary || drop.names.iter().all(is_temporary),
            Statement::AlterTable(alter) => is_temporary(&alter.table),
            Statement::TruncateTable(name) => is_temporary(name),
            _ => false,
        }
    }

    /// FLUSH TABLES ... WITH READ LOCK, FOR EXPORT.
    pub(crate) fn flush_and_lock(&mut self, flush: &Flush) -> Result<(), SqlError> {
        if self.locked_tables.is_some() {
            return Err(SqlError::new(&codes::LOCK_OR_ACTIVE_TRANSACTION, &[]));
        }
        if flush.tables.is_empty() {
            return self.take_read_lock();
        }
        for name in &flush.tables {
            let schema = match &name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            if self.temporary_table(&schema, &name.name).is_some() {
                return Err(SqlError::new(&codes::NO_SUCH_TABLE, &[&schema, &name.name]));
            }
        }
        let table = |name: &TableName| TableLock {
            name: name.clone(),
            alias: None,
            write: false,
            local: false,
        };
        let tables = flush.tables.iter().map(table).collect();
        let locked = self.lock_tables(&LockTables { tables, wait_seconds: None });
        locked.map(|_| ()).map_err(|failure| failure.sql)
    }

    fn take_read_lock(&mut self) -> Result<(), SqlError> {
        self.commit_implicitly()?;
        self.end_write();
        if self.read_lock.is_some() {
            return Ok(());
        }
        let deadline = runtime::now() + self.locks.timeout();
        let mut gate = MetadataLockSet::new(self.locks.timeout());
        gate.acquire(&self.server.read_lock.gate, LockKind::NoWrite)?;
        self.server.read_lock.asking.fetch_add(1, Ordering::SeqCst);
        let server = self.server.clone();
        let mut held = HeldReadLock { server: server.clone(), holds: false, _gate: gate };
        self.wait_for_writers(deadline)?;
        server.read_lock.holding.fetch_add(1, Ordering::SeqCst);
        held.holds = true;
        self.wait_for_writers(deadline)?;
        self.read_lock = Some(Box::new(held));
        Ok(())
    }

    fn wait_for_writers(&self, deadline: Instant) -> Result<(), SqlError> {
        let mut waited_for = self.server.processes.all();
        loop {
            waited_for.retain(|process| process.is_writing());
            if waited_for.is_empty() {
                return Ok(());
            }
            if runtime::now() >= deadline {
                return Err(SqlError::new(&codes::LOCK_WAIT_TIMEOUT, &[]));
            }
            let next = runtime::now() + PERIOD;
            if runtime::park(WaitClass::MetadataLock, Some(next)) == Wake::Cancelled {
                return Err(interrupted());
            }
        }
    }

    /// UNLOCK TABLES, or the end of the session's state.
    pub(crate) fn release_read_lock(&mut self) {
        self.read_lock = None;
    }
}
