//! A session's transaction: autocommit, BEGIN, savepoints, levels.
//!
//! States:
//! 1. Idle: no engine transaction. The first statement that needs one begins it.
//! 2. Autocommit: it lasts for one statement, [`Session::end_statement`] ends it.
//! 3. Open: after BEGIN, or with autocommit off once a statement has read or written. COMMIT,
//!    ROLLBACK, a statement with an implicit commit, or an error 1213 ends it.
//!
//! Metadata locks are given back when the engine transaction ends, never before.

use crate::Session;
use crate::process::Process;
use crate::settings::CompletionType;
use crate::status::StatusCounter;
use crate::xa::Branch;
use catalog::engine_error;
use engine_api::{Isolation, Savepoint, Transaction, TransactionOptions};
use syntax::ast::{Begin, Completion};
use types::{SqlError, codes};

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct TransactionState {
    open: Option<Box<dyn Transaction>>,
    explicit: bool,
    /// The process list shows it.
    is_announced: bool,
    read_only: bool,
    savepoints: Vec<NamedSavepoint>,
    /// XA.
    pub(crate) branch: Option<Box<Branch>>,
    /// Level of a transaction that BEGIN has begun: settled then, whatever is set afterwards.
    begun_isolation: Option<Isolation>,
    next_isolation: Option<Isolation>,
    next_read_only: Option<bool>,
}

struct NamedSavepoint {
    name: String,
    /// None if the engine had no transaction then: rolling back to it ends the engine's.
    savepoint: Option<Savepoint>,
    locks: usize,
}

impl TransactionState {
    /// BEGIN was given, or a statement has begun a transaction that did not end with it.
    pub(crate) fn is_open(&self) -> bool {
        self.explicit || self.open.is_some()
    }

    /// There is nothing that the end of a transaction would change.
    fn is_idle(&self) -> bool {
        !self.is_open() && self.savepoints.is_empty() && self.begun_isolation.is_none()
    }

    /// BEGIN was given.
    pub(crate) fn is_explicit(&self) -> bool {
        self.explicit
    }

    /// START TRANSACTION READ ONLY, or tx_read_only, is in force.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only && self.is_open()
    }

    /// XA END: the engine transaction is handed out; nothing else changes.
    pub(crate) fn park(&mut self) -> Option<Box<dyn Transaction>> {
        self.open.take()
    }

    /// XA START RESUME: what [`TransactionState::park`] has handed out comes back.
    pub(crate) fn resume(&mut self, parked: Option<Box<dyn Transaction>>) {
        self.open = parked;
    }

    /// Back to the idle state; the engine transaction is handed out.
    pub(crate) fn finish(&mut self, process: &Process) -> Option<Box<dyn Transaction>> {
        if std::mem::take(&mut self.is_announced) {
            process.set_transaction(None);
        }
        self.explicit = false;
        self.begun_isolation = None;
        self.read_only = false;
        self.savepoints.clear();
        self.open.take()
    }

    /// The engine transaction, if one has begun.
    pub(crate) fn engine(&mut self) -> Option<&mut dyn Transaction> {
        self.open.as_deref_mut().map(|open| open as &mut dyn Transaction)
    }
}

impl Session {
    /// Makes sure that there is an engine transaction. Fails with 1399 where XA has none.
    pub(crate) fn ensure_transaction(&mut self) -> Result<(), SqlError> {
        if self.transaction.open.is_some() {
            return Ok(());
        }
        self.refuse_in_branch()?;
        let isolation = match self.transaction.begun_isolation {
            None => self.transaction.next_isolation.take(),
            settled => settled,
        };
        let read_only = match self.transaction.explicit {
            true => self.transaction.read_only,
            false => self.transaction.next_read_only.take().unwrap_or(self.settings.read_only),
        };
        self.transaction.read_only = read_only;
        let lasts = self.transaction.explicit || !self.settings.autocommit;
        let (isolation, snapshot) = match isolation.unwrap_or(self.settings.isolation) {
            // As in InnoDB: the reads of one statement need no locks to be serializable, unless
            // changes depend on them.
            Isolation::Serializable if !lasts => (Isolation::RepeatableRead, false),
            level => (level, self.settings.snapshot_isolation),
        };
        let options = TransactionOptions {
            isolation,
            snapshot_isolation: snapshot,
            read_only,
            lock_wait_timeout: self.settings.row_lock_timeout,
            flush_policy: self.server.globals.flush_policy(),
            connection: self.process.id(),
            ends_with_statement: !lasts,
        };
        if lasts {
            self.process.set_transaction(Some(options.isolation));
            self.transaction.is_announced = true;
        }
        self.transaction.open = Some(self.begin_engine(options));
        Ok(())
    }

    /// An engine transaction, a spare one if there is one.
    pub(crate) fn begin_engine(&mut self, options: TransactionOptions) -> Box<dyn Transaction> {
        match self.server.spare_transactions.take() {
            Some(mut spare) => {
                spare.set_options(options);
                spare
            }
            None => self.server.catalog.engine().begin(options),
        }
    }

    /// Commits an engine transaction; the value is kept for the next.
    pub(crate) fn end_engine(
        &mut self,
        mut open: Box<dyn Transaction>,
    ) -> Result<(), engine_api::EngineError> {
        // What was read is durable when the commit is: waiting before it would keep the locks
        // for a sync longer.
        if open.end_unchanged()? || open.commit_and_keep()? {
            self.server.spare_transactions.put(open);
        }
        Ok(())
    }

    /// BEGIN, START TRANSACTION: commits what is open.
    pub(crate) fn begin(&mut self, begin: &Begin) -> Result<(), SqlError> {
        self.unlock_tables()?;
        let default = self.transaction.next_read_only.take().unwrap_or(self.settings.read_only);
        self.transaction.explicit = true;
        let isolation = self.transaction.next_isolation.take();
        self.transaction.begun_isolation = Some(isolation.unwrap_or(self.settings.isolation));
        self.transaction.read_only = begin.read_only.unwrap_or(default);
        if begin.consistent_snapshot {
            self.ensure_transaction()?;
            if let Some(open) = self.transaction.engine() {
                open.open_snapshot();
            }
        }
        Ok(())
    }

    /// As [`Session::commit`], before a statement that ends a transaction unasked: refused in XA.
    /// What SET TRANSACTION said of the next transaction is over, too.
    pub(crate) fn commit_implicitly(&mut self) -> Result<(), SqlError> {
        self.commit_before_begin()?;
        self.forget_next();
        Ok(())
    }

    /// As [`Session::commit_implicitly`]; what SET TRANSACTION said stays.
    pub(crate) fn commit_before_begin(&mut self) -> Result<(), SqlError> {
        self.refuse_in_any_branch()?;
        self.commit()
    }

    /// The session's own characteristics were set: what SET TRANSACTION said of them for the
    /// next transaction is over.
    pub(crate) fn replace_next(&mut self, isolation: bool, read_only: bool) {
        let next = &mut self.transaction;
        if next.is_open() {
            return;
        }
        next.next_isolation = next.next_isolation.filter(|_| !isolation);
        next.next_read_only = next.next_read_only.filter(|_| !read_only);
        let (isolation, read_only) = (next.next_isolation, next.next_read_only);
        self.track_once(isolation, read_only);
    }

    /// What SET TRANSACTION said of the next transaction is over.
    fn forget_next(&mut self) {
        self.transaction.next_isolation = None;
        self.transaction.next_read_only = None;
        self.track_once(None, None);
    }

    /// Commits what is open and gives the metadata locks back. On an error the engine has
    /// rolled back.
    pub(crate) fn commit(&mut self) -> Result<(), SqlError> {
        if self.transaction.is_idle() {
            self.locks.release_all();
            return Ok(());
        }
        if self.transaction.open.as_ref().is_some_and(|open| open.has_written()) {
            if let Err(error) = self.begin_commit() {
                self.rollback()?;
                return Err(error);
            }
            self.status.add(StatusCounter::HandlerCommit, 1);
        }
        let result = match self.finish_transaction() {
            Some(open) => self.end_engine(open),
            None => Ok(()),
        };
        self.locks.release_all();
        result.map_err(|error| engine_error(&error, ""))
    }

    /// Rolls back what is open and gives the metadata locks back.
    pub(crate) fn rollback(&mut self) -> Result<(), SqlError> {
        let open = self.finish_transaction();
        let result = match open {
            Some(open) => {
                self.status.add(StatusCounter::HandlerRollback, 1);
                open.rollback()
            }
            None => Ok(()),
        };
        self.locks.release_all();
        result.map_err(|error| engine_error(&error, ""))
    }

    fn finish_transaction(&mut self) -> Option<Box<dyn Transaction>> {
        let open = self.transaction.finish(&self.process);
        if self.changes.is_some() {
            self.track_end(open.is_some());
        }
        open
    }

    /// The engine has rolled back the whole transaction (1213).
    pub(crate) fn transaction_ended(&mut self) {
        if self.branch_rolled_back() {
            return;
        }
        // The engine's part is over; rolling back what is left of it cannot fail in a new way.
        let _outcome = self.rollback();
    }

    /// Waits until everything that was read is durable: before an answer, errors included
    /// ("Duplicate entry" tells of a committed row).
    pub(crate) fn wait_read_durable(&mut self) -> Result<(), SqlError> {
        match self.transaction.engine() {
            Some(open) => open.wait_read_durable().map_err(|error| engine_error(&error, "")),
            None => Ok(()),
        }
    }

    /// After a statement: in autocommit mode its transaction ends. `failed` undoes it.
    pub(crate) fn end_statement(&mut self, failed: bool) -> Result<(), SqlError> {
        if self.transaction.explicit || !self.settings.autocommit {
            if !failed {
                self.wait_read_durable()?;
            }
            if self.transaction.open.is_none() && !self.transaction.explicit {
                self.locks.release_all();
            }
            return Ok(());
        }
        if failed { self.rollback() } else { self.commit() }
    }

    /// COMMIT and ROLLBACK with what follows them. True if the connection is to be closed.
    pub(crate) fn complete(
        &mut self,
        commit: bool,
        completion: Completion,
    ) -> Result<bool, SqlError> {
        self.refuse_in_any_branch()?;
        let (read_only, isolation) = (self.transaction.read_only, self.transaction.begun_isolation);
        let default = self.settings.completion;
        let chain = completion.chain.unwrap_or(default == CompletionType::Chain);
        let release = completion.release.unwrap_or(default == CompletionType::Release);
        let once = self.tracked_once();
        if commit {
            self.commit()?
        } else {
            self.rollback()?
        }
        self.forget_next();
        if chain {
            self.begin(&Begin { consistent_snapshot: false, read_only: Some(read_only) })?;
            // The same characteristics go on.
            self.transaction.begun_isolation = isolation.or(self.transaction.begun_isolation);
            self.track_begin(&Begin::default(), None);
            self.track_once(once.0, once.1);
        }
        Ok(release)
    }

    /// SET TRANSACTION without a scope: for the next transaction only.
    pub(crate) fn set_next_transaction(
        &mut self,
        isolation: Option<Isolation>,
        read_only: Option<bool>,
    ) -> Result<(), SqlError> {
        if self.transaction.is_open() {
            return Err(SqlError::new(&codes::CANT_CHANGE_TX_CHARACTERISTICS, &[]));
        }
        self.transaction.next_isolation = isolation.or(self.transaction.next_isolation);
        self.transaction.next_read_only = read_only.or(self.transaction.next_read_only);
        self.track_once(self.transaction.next_isolation, self.transaction.next_read_only);
        Ok(())
    }

    /// SAVEPOINT name; one of the same name is replaced.
    pub(crate) fn savepoint(&mut self, name: &str) -> Result<(), SqlError> {
        if !self.transaction.explicit && self.settings.autocommit {
            return Ok(());
        }
        self.refuse_in_branch()?;
        self.transaction.savepoints.retain(|s| !s.name.eq_ignore_ascii_case(name));
        let locks = self.locks.len();
        let savepoint = self.transaction.open.as_mut().map(|open| open.savepoint());
        let name = name.to_owned();
        self.transaction.savepoints.push(NamedSavepoint { name, savepoint, locks });
        self.status.add(StatusCounter::HandlerSavepoint, 1);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize, SqlError> {
        let named = |s: &NamedSavepoint| s.name.eq_ignore_ascii_case(name);
        let position = self.transaction.savepoints.iter().position(named);
        position.ok_or_else(|| SqlError::new(&codes::SP_DOES_NOT_EXIST, &[&"SAVEPOINT", &name]))
    }

    /// ROLLBACK TO name; later savepoints are gone, this one stays.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<(), SqlError> {
        let position = self.find_savepoint(name)?;
        self.transaction.savepoints.truncate(position + 1);
        let NamedSavepoint { savepoint, locks, .. } = self.transaction.savepoints[position];
        let result = match (self.transaction.open.as_mut(), savepoint) {
            (Some(_), None) => {
                let open = self.transaction.open.take();
                let result = open.map_or(Ok(()), Transaction::rollback);
                self.locks.release_after(locks);
                result
            }
            (Some(open), Some(savepoint)) => {
                let written = open.has_written();
                let result = open.rollback_to(savepoint);
                if !written {
                    // Nothing was changed since: later tables need not stay locked.
                    self.locks.release_after(locks);
                }
                result
            }
            (None, _) => Ok(()),
        };
        self.status.add(StatusCounter::HandlerSavepointRollback, 1);
        result.map_err(|error| engine_error(&error, ""))
    }

    /// RELEASE SAVEPOINT name: it and later ones are forgotten.
    pub(crate) fn release_savepoint(&mut self, name: &str) -> Result<(), SqlError> {
        let position = self.find_savepoint(name)?;
        self.transaction.savepoints.truncate(position);
        Ok(())
    }

    /// A read-only transaction refuses changes.
    pub(crate) fn check_may_write(&self) -> Result<(), SqlError> {
        let read_only = match self.transaction.is_open() {
            true => self.transaction.read_only,
            false => self.transaction.next_read_only.unwrap_or(self.settings.read_only),
        };
        if read_only {
            return Err(SqlError::new(&codes::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[]));
        }
        Ok(())
    }
}
