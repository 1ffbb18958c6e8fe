//! XA: a session's transaction branch, and the branches of all sessions.
//!
//! ```text
//! START -> ACTIVE -END-> IDLE -PREPARE-> PREPARED -COMMIT or ROLLBACK-> gone
//!             ^--START RESUME--' '-COMMIT ONE PHASE, ROLLBACK-> gone
//! a deadlock -> ROLLBACK ONLY -COMMIT or ROLLBACK-> gone
//! ```
//!
//! 1. A name is in the registry from START to the end of its branch: no second branch begins under
//!    it. Branches that a former run left prepared are there from the start.
//! 2. A branch outlives its connection only when it is prepared: then the registry has its engine
//!    transaction and its metadata locks, and any connection may end it. Whoever ends it has taken
//!    it out before; if that fails, it is put back.
//! 3. Between END and its end a branch's engine transaction is parked here, so that the session
//!    has none and statements that want one come to [`Session::refuse_in_branch`].
//! 4. FLUSH TABLES WITH READ LOCK keeps PREPARE, ROLLBACK and COMMIT out, but for a COMMIT ONE
//!    PHASE of what changed nothing. Who gives up waiting to prepare or to commit what is not
//!    prepared has it rolled back; otherwise the branch stays as it was.

use crate::statement::Answer;
use crate::xa_name::{decode, encode, sql_text};
use crate::{Failure, ServerState, Session};
use catalog::information_schema::VirtualType;
use catalog::show::ShowAnswer;
use catalog::{LockKind, MetadataLockSet, engine_error};
use engine_api::{PreparedTransaction, Transaction};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::time::Duration;
use syntax::ast::{Begin, Xa, XaStart, Xid};
use types::error::ErrorCode;
use types::{SqlError, Value, codes};

use crate::answer::{Outlet, Protocol};

/// Where a branch stands.
#[derive(Clone, Copy)]
enum Phase {
    Active,
    Idle,
    Prepared,
    /// Rolled back by the engine; the error says why.
    RollbackOnly(&'static ErrorCode),
}

/// The branch of a session.
pub(crate) struct Branch {
    xid: Xid,
    phase: Phase,
    /// Invariant 3.
    parked: Option<Box<dyn Transaction>>,
}

impl Branch {
    /// 1399: not in this state.
    fn refused(&self) -> SqlError {
        let name = match self.phase {
            Phase::Active => "ACTIVE",
            Phase::Idle => "IDLE",
            Phase::Prepared => "PREPARED",
            Phase::RollbackOnly(_) => "ROLLBACK ONLY",
        };
        SqlError::new(&codes::XAER_RMFAIL, &[&name])
    }
}

/// A branch as others see it.
enum Entry {
    /// Its connection works on it.
    Attached,
    /// It is prepared, and its connection is there.
    Prepared,
    /// Somebody is ending it.
    Ending,
    /// Prepared, its connection is gone.
    Left(Left),
    /// It had changed nothing; its connection is gone.
    RolledBack,
}

struct Left {
    transaction: Box<dyn Transaction>,
    locks: MetadataLockSet,
}

/// All branches of a server.
#[derive(Default)]
pub(crate) struct Branches(Mutex<BTreeMap<Xid, Entry>>);

impl Branches {
    /// Takes up what a former run has left. The tables are locked against changes of their
    /// definitions, as they were.
    pub(crate) fn take_up(&self, server: &ServerState, left: Vec<PreparedTransaction>) {
        for PreparedTransaction { name, transaction, trees } in left {
            let Some(xid) = decode(&name) else {
                eprintln!("gannet: [ERROR] a prepared transaction has an unknown name: {name:?}");
                continue;
            };
            let mut locks = MetadataLockSet::new(Duration::from_secs(1));
            for schema in server.catalog.schemas() {
                for table in schema.tables() {
                    let indexes = &table.definition().indexes;
                    if indexes.iter().any(|index| trees.contains(&index.tree)) {
                        let taken = locks.acquire(table.lock(), LockKind::Shared);
                        taken.expect("nobody else is there at the start");
                    }
                }
            }
            self.0.lock().insert(xid, Entry::Left(Left { transaction, locks }));
        }
    }

    /// Gives engine transactions up before the engine is closed; prepared ones stay so.
    pub(crate) fn clear(&self) {
        let branches = std::mem::take(&mut *self.0.lock());
        drop(branches);
    }

    fn begin(&self, xid: &Xid) -> Result<(), SqlError> {
        match self.0.lock().entry(xid.clone()) {
            MapEntry::Occupied(_) => Err(SqlError::new(&codes::XAER_DUPID, &[])),
            MapEntry::Vacant(place) => {
                place.insert(Entry::Attached);
                Ok(())
            }
        }
    }

    fn set(&self, xid: &Xid, entry: Entry) {
        self.0.lock().insert(xid.clone(), entry);
    }

    fn end(&self, xid: &Xid) {
        self.0.lock().remove(xid);
    }

    /// Takes a branch that nobody is attached to, to end it; 1397 if there is none.
    fn take_left(&self, xid: &Xid) -> Result<Option<Left>, SqlError> {
        let mut branches = self.0.lock();
        let unknown = || SqlError::new(&codes::XAER_NOTA, &[]);
        let entry = branches.get_mut(xid).ok_or_else(unknown)?;
        match entry {
            Entry::Attached | Entry::Prepared | Entry::Ending => Err(unknown()),
            Entry::Left(_) | Entry::RolledBack => match std::mem::replace(entry, Entry::Ending) {
                Entry::Left(left) => Ok(Some(left)),
                _ => Ok(None),
            },
        }
    }

    fn prepared(&self) -> Vec<Xid> {
        let branches = self.0.lock();
        let is_prepared = |entry: &Entry| !matches!(entry, Entry::Attached | Entry::Ending);
        branches.iter().filter(|(_, it)| is_prepared(it)).map(|(xid, _)| xid.clone()).collect()
    }
}

impl Session {
    /// XA.
    pub(crate) fn xa(
        &mut self,
        xa: &Xa,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        match xa {
            Xa::Start(xid, start) => self.xa_start(xid, *start)?,
            Xa::End(xid, suspends) => self.xa_end(xid, *suspends)?,
            Xa::Prepare(xid) => self.xa_prepare(xid)?,
            Xa::Commit(xid, is_one_phase) => self.xa_commit(xid, *is_one_phase)?,
            Xa::Rollback(xid) => self.xa_rollback(xid)?,
            Xa::Recover(format) => {
                let answer = self.xa_recover(format.as_deref())?;
                return self.send_show(answer, protocol, outlet);
            }
        }
        Ok(Answer::ok())
    }

    /// 1399 if the session has a branch: the statement would end its transaction.
    pub(crate) fn refuse_in_any_branch(&self) -> Result<(), SqlError> {
        match &self.transaction.branch {
            Some(branch) => Err(branch.refused()),
            None => Ok(()),
        }
    }

    /// 1399 if the session's branch takes no more statements.
    pub(crate) fn refuse_in_branch(&self) -> Result<(), SqlError> {
        match &self.transaction.branch {
            Some(branch) if !matches!(branch.phase, Phase::Active) => Err(branch.refused()),
            _ => Ok(()),
        }
    }

    fn xa_start(&mut self, xid: &Xid, start: XaStart) -> Result<(), SqlError> {
        let invalid = || SqlError::new(&codes::XAER_INVAL, &[]);
        if start == XaStart::Resume
            && let Some(branch) = &mut self.transaction.branch
            && matches!(branch.phase, Phase::Idle)
        {
            if branch.xid != *xid {
                return Err(SqlError::new(&codes::XAER_NOTA, &[]));
            }
            branch.phase = Phase::Active;
            let parked = branch.parked.take();
            self.transaction.resume(parked);
            return Ok(());
        }
        if start != XaStart::New || xid.global.is_empty() {
            return Err(invalid());
        }
        self.refuse_in_any_branch()?;
        if self.transaction.is_open() {
            return Err(SqlError::new(&codes::XAER_OUTSIDE, &[]));
        }
        self.server.branches.begin(xid)?;
        if let Err(error) = self.begin(&Begin::default()) {
            self.server.branches.end(xid);
            return Err(error);
        }
        self.track_begin(&Begin::default(), Some(sql_text(xid)));
        let branch = Branch { xid: xid.clone(), phase: Phase::Active, parked: None };
        self.transaction.branch = Some(Box::new(branch));
        Ok(())
    }

    /// The session's branch in a phase that this statement is for; 1399 otherwise, 1397 if it has
    /// another name.
    fn branch_in(&self, xid: &Xid, is_right: fn(Phase) -> bool) -> Result<(), SqlError> {
        match &self.transaction.branch {
            None => Err(SqlError::new(&codes::XAER_RMFAIL, &[&"NON-EXISTING"])),
            Some(branch) if !is_right(branch.phase) => Err(branch.refused()),
            Some(branch) if branch.xid != *xid => Err(SqlError::new(&codes::XAER_NOTA, &[])),
            Some(_) => Ok(()),
        }
    }

    fn xa_end(&mut self, xid: &Xid, suspends: bool) -> Result<(), SqlError> {
        if suspends {
            return Err(SqlError::new(&codes::XAER_INVAL, &[]));
        }
        self.branch_in(xid, |phase| matches!(phase, Phase::Active))?;
        let parked = self.transaction.park();
        if let Some(branch) = &mut self.transaction.branch {
            branch.phase = Phase::Idle;
            branch.parked = parked;
        }
        Ok(())
    }

    fn xa_prepare(&mut self, xid: &Xid) -> Result<(), SqlError> {
        self.branch_in(xid, |phase| matches!(phase, Phase::Idle))?;
        if self.temporary.as_ref().is_some_and(|tables| !tables.is_unused()) {
            // The branch may outlive the connection, whose temporary tables it may have changed.
            let what = "XA PREPARE by a connection with temporary tables; drop them first";
            return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&what]));
        }
        if let Err(error) = self.begin_commit() {
            let branch = self.end_branch();
            // The first error is what the client must know.
            let _outcome = branch.and_then(|it| it.parked).map(Transaction::rollback);
            return Err(error);
        }
        let Some(branch) = &mut self.transaction.branch else { return Ok(()) };
        let prepared = match &mut branch.parked {
            Some(transaction) => transaction.prepare(&encode(xid)),
            None => Ok(()),
        };
        match prepared {
            Ok(()) => {
                branch.phase = Phase::Prepared;
                self.server.branches.set(xid, Entry::Prepared);
                Ok(())
            }
            Err(error) => {
                let branch = self.end_branch();
                // The first error is what the client must know.
                let _outcome = branch.and_then(|it| it.parked).map(Transaction::rollback);
                Err(engine_error(&error, ""))
            }
        }
    }

    /// The session's branch is over; what is parked is handed out to be ended.
    fn end_branch(&mut self) -> Option<Box<Branch>> {
        let branch = self.transaction.branch.take()?;
        self.server.branches.end(&branch.xid);
        self.transaction.finish(&self.process);
        self.track_end(true);
        self.locks.release_all();
        Some(branch)
    }

    fn has_branch(&self, xid: &Xid) -> bool {
        self.transaction.branch.as_ref().is_some_and(|branch| branch.xid == *xid)
    }

    fn refuse_outside(&self) -> Result<(), SqlError> {
        let is_inside = self.transaction.is_open() || !self.settings.autocommit;
        if is_inside { Err(SqlError::new(&codes::XAER_OUTSIDE, &[])) } else { Ok(()) }
    }

    fn xa_commit(&mut self, xid: &Xid, is_one_phase: bool) -> Result<(), SqlError> {
        if !self.has_branch(xid) {
            self.refuse_outside()?;
            return self.commit_left(xid);
        }
        let Some(branch) = &mut self.transaction.branch else { return Ok(()) };
        match branch.phase {
            Phase::RollbackOnly(reason) => {
                self.end_branch();
                return Err(SqlError::new(reason, &[]));
            }
            Phase::Prepared if is_one_phase => {
                return Err(SqlError::new(&codes::XAER_INVAL, &[]));
            }
            Phase::Prepared => {}
            Phase::Idle if is_one_phase => {}
            Phase::Active | Phase::Idle => return Err(branch.refused()),
        }
        let is_prepared = matches!(branch.phase, Phase::Prepared);
        let has_written = branch.parked.as_ref().is_some_and(|parked| parked.has_written());
        if (is_prepared || has_written)
            && let Err(error) = self.begin_commit()
        {
            if !is_prepared {
                let branch = self.end_branch();
                // The first error is what the client must know.
                let _outcome = branch.and_then(|it| it.parked).map(Transaction::rollback);
            }
            return Err(error);
        }
        let Some(branch) = &mut self.transaction.branch else { return Ok(()) };
        if let Some(transaction) = branch.parked.take() {
            let kept = self.commit_kept(transaction);
            match (kept, &mut self.transaction.branch) {
                (Ok(()), _) => {}
                // It stays prepared, and may be tried again.
                (Err((error, transaction)), Some(branch)) if is_prepared => {
                    branch.parked = Some(transaction);
                    return Err(error);
                }
                (Err((error, _)), _) => {
                    self.end_branch();
                    return Err(error);
                }
            }
        }
        self.end_branch();
        Ok(())
    }

    /// Commits; with an error comes the transaction, which is as before if it was prepared.
    fn commit_kept(
        &mut self,
        mut transaction: Box<dyn Transaction>,
    ) -> Result<(), (SqlError, Box<dyn Transaction>)> {
        let ended = match transaction.end_unchanged() {
            Ok(false) => transaction.commit_and_keep(),
            other => other,
        };
        match ended {
            Ok(true) => {
                self.server.spare_transactions.put(transaction);
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => Err((engine_error(&error, ""), transaction)),
        }
    }

    fn commit_left(&mut self, xid: &Xid) -> Result<(), SqlError> {
        let Some(Left { transaction, locks }) = self.server.branches.take_left(xid)? else {
            self.server.branches.end(xid);
            return Err(SqlError::new(&codes::XA_RBROLLBACK, &[]));
        };
        if let Err(error) = self.begin_commit() {
            self.server.branches.set(xid, Entry::Left(Left { transaction, locks }));
            return Err(error);
        }
        match self.commit_kept(transaction) {
            Ok(()) => {
                self.server.branches.end(xid);
                Ok(())
            }
            Err((error, transaction)) => {
                self.server.branches.set(xid, Entry::Left(Left { transaction, locks }));
                Err(error)
            }
        }
    }

    fn xa_rollback(&mut self, xid: &Xid) -> Result<(), SqlError> {
        let rolled_back = if self.has_branch(xid) {
            if let Some(branch) = &self.transaction.branch
                && matches!(branch.phase, Phase::Active)
            {
                return Err(branch.refused());
            }
            self.begin_commit()?;
            let Some(mut branch) = self.transaction.branch.take() else { return Ok(()) };
            let parked = branch.parked.take();
            self.transaction.branch = Some(branch);
            let rolled_back = parked.map_or(Ok(()), Transaction::rollback);
            self.end_branch();
            rolled_back
        } else {
            self.refuse_outside()?;
            let left = self.server.branches.take_left(xid)?;
            if let Err(error) = self.begin_commit() {
                let entry = left.map_or(Entry::RolledBack, Entry::Left);
                self.server.branches.set(xid, entry);
                return Err(error);
            }
            let (transaction, locks) = left.map(|left| (left.transaction, left.locks)).unzip();
            let rolled_back = transaction.map_or(Ok(()), Transaction::rollback);
            drop(locks);
            self.server.branches.end(xid);
            rolled_back
        };
        rolled_back.map_err(|error| engine_error(&error, ""))
    }

    /// The engine has rolled back the branch's transaction; true if there is a branch.
    pub(crate) fn branch_rolled_back(&mut self) -> bool {
        let Some(branch) = &mut self.transaction.branch else { return false };
        branch.phase = Phase::RollbackOnly(&codes::XA_RBDEADLOCK);
        // The engine's part is over; what is left of it is dropped.
        drop(self.transaction.park());
        self.locks.release_all();
        true
    }

    /// The connection ends or begins anew: a prepared branch is left to others.
    pub(crate) fn leave_branch(&mut self) {
        let Some(mut branch) = self.transaction.branch.take() else { return };
        let parked = branch.parked.take();
        let entry = match (branch.phase, parked) {
            (Phase::Prepared, Some(transaction)) if transaction.has_written() => {
                let locks = self.locks.split_off();
                Some(Entry::Left(Left { transaction, locks }))
            }
            (Phase::Prepared, parked) => {
                drop(parked);
                Some(Entry::RolledBack)
            }
            (_, parked) => {
                drop(parked);
                None
            }
        };
        match entry {
            Some(entry) => self.server.branches.set(&branch.xid, entry),
            None => self.server.branches.end(&branch.xid),
        }
    }

    fn xa_recover(&self, format: Option<&str>) -> Result<ShowAnswer, SqlError> {
        let as_sql = match format {
            Some(name) if name.eq_ignore_ascii_case("SQL") => true,
            Some(name) if !name.eq_ignore_ascii_case("RAW") => {
                return Err(SqlError::new(&codes::UNKNOWN_XA_RECOVER_FORMAT, &[&name]));
            }
            _ => false,
        };
        let data = if as_sql { VirtualType::Varchar(290) } else { VirtualType::VarBinary(128) };
        let number = VirtualType::BigInt(11);
        let columns = vec![
            ("formatID".into(), number, false),
            ("gtrid_length".into(), number, false),
            ("bqual_length".into(), number, false),
            ("data".into(), data, false),
        ];
        let row = |xid: Xid| {
            let data = if as_sql {
                sql_text(&xid).into_bytes()
            } else {
                [&xid.global[..], &xid.branch].concat()
            };
            vec![
                Value::Int(i64::from(xid.format)),
                Value::Int(xid.global.len() as i64),
                Value::Int(xid.branch.len() as i64),
                Value::text(data),
            ]
        };
        let rows = self.server.branches.prepared().into_iter().map(row).collect();
        Ok(ShowAnswer { columns, rows })
    }
}
