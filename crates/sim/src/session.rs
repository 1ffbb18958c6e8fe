//! One transaction in two worlds: every call goes to the engine, and the model hears of it.

use crate::faults::FaultKind;
use crate::model::{Moment, Promise, Snapshot, Trx, Violation};
use crate::world::{OpenTable, World};
use engine_api::{EngineError, Isolation, Savepoint, Transaction, TransactionOptions};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Why a statement did not end well; both are expected.
pub enum Stop {
    /// The statement alone failed and is undone.
    Statement,
    /// The engine has rolled the transaction back.
    Transaction,
}

/// What a step of a statement gives.
pub type Step<T> = Result<T, Stop>;

/// A violation ends the simulation; the seed replays it.
pub fn check<T>(result: Result<T, Violation>) -> T {
    result.unwrap_or_else(|violation| panic!("violation: {violation}"))
}

/// One running transaction.
pub struct Session {
    /// Shared by all.
    pub world: Arc<World>,
    /// The engine's.
    pub trx: Option<Box<dyn Transaction>>,
    /// The model's.
    pub number: Trx,
    /// Level.
    pub isolation: Isolation,
    /// What its commit promises.
    pub promise: Promise,
    /// Snapshot isolation.
    pub detects_conflicts: bool,
    /// Of the present statement or transaction.
    pub snapshot: Option<Snapshot>,
    /// A call that a fault has ended may have taken the snapshot since then.
    unsure_since: Option<Moment>,
    /// Snapshots of former statements.
    pub former: Vec<Snapshot>,
    /// Writers of rows met under locks.
    pub met: Vec<Trx>,
    /// The last SAVEPOINT, for engine and model.
    pub savepoint: Option<(Savepoint, usize)>,
}

impl Session {
    /// Begins in both worlds.
    pub fn begin(world: Arc<World>, options: TransactionOptions, promise: Promise) -> Session {
        let number = world.model().begin(promise);
        let (isolation, detects_conflicts) = (options.isolation, options.snapshot_isolation);
        let trx = Some(world.engine.begin(options));
        Session {
            world,
            trx,
            number,
            isolation,
            promise,
            detects_conflicts,
            snapshot: None,
            unsure_since: None,
            former: Vec::new(),
            met: Vec::new(),
            savepoint: None,
        }
    }

    /// Calls the engine and sorts its answer; also gives the moment before.
    pub fn call<T>(
        &mut self,
        f: impl FnOnce(&mut dyn Transaction) -> engine_api::Result<T>,
    ) -> Step<(Moment, T)> {
        let begin = self.world.model().enter_call(self.number);
        let trx = self.trx.as_deref_mut().expect("present until the end");
        let result = f(trx);
        if let Err(error) = &result {
            self.world.trace(|| format!("trx {}: {error}", self.number));
        }
        let stop = match result {
            Ok(value) => {
                check(self.world.model().leave_call(self.number));
                return Ok((begin, value));
            }
            Err(EngineError::Deadlock | EngineError::WriteConflict) => {
                self.world.model().abort(self.number);
                return Err(Stop::Transaction);
            }
            Err(EngineError::LockWaitTimeout | EngineError::LockNotAvailable) => {
                check(self.world.model().leave_call(self.number));
                Stop::Statement
            }
            Err(error) if self.world.expects(&error) => {
                self.world.model().leave_failed_call(self.number);
                self.unsure_since.get_or_insert(begin);
                Stop::Statement
            }
            Err(error) => panic!("violation: the engine failed without a fault: {error}"),
        };
        Err(stop)
    }

    /// The call that a fault has ended belongs to a statement that began at `begin`: the calls
    /// before it, which worked, may have taken the snapshot.
    pub fn unsure_from(&mut self, begin: Moment) {
        if let Some(since) = &mut self.unsure_since {
            *since = begin.min(*since);
        }
    }

    /// Back to a savepoint.
    pub fn roll_back_to(&mut self, (savepoint, mark): (Savepoint, usize)) -> Step<()> {
        self.world.trace(|| format!("trx {}: rollback to {mark} writes", self.number));
        // The lock of an inserted row goes with the row, while the call is still under way.
        self.world.model().rollback_to(self.number, mark);
        match self.call(|trx| trx.rollback_to(savepoint)) {
            Ok(_) => Ok(()),
            // Half of the way back: nothing can be done with it but give it up.
            Err(_) => Err(Stop::Transaction),
        }
    }

    /// Everything seen so far was told to the client.
    pub fn note_told(&mut self) {
        self.world.trace(|| {
            let snapshots: Vec<_> = self.former.iter().chain(&self.snapshot).collect();
            format!("trx {}: told of {:?} and {snapshots:?}", self.number, self.met)
        });
        let mut model = self.world.model();
        self.former.iter().chain(&self.snapshot).for_each(|snapshot| model.tell(snapshot));
        model.tell_of(&self.met);
    }

    /// The snapshot that a plain read since `begin` used.
    pub fn snapshot(&mut self, begin: Moment) -> &mut Snapshot {
        let number = self.number;
        let begin = self.unsure_since.unwrap_or(begin);
        self.snapshot.get_or_insert_with(|| self.world.model().snapshot(number, begin))
    }

    /// The statement or the transaction with this snapshot is over.
    pub fn end_snapshot(&mut self) {
        self.unsure_since = None;
        if let Some(snapshot) = self.snapshot.take() {
            check(self.world.model().finish_snapshot(&snapshot));
            self.former.push(snapshot);
        }
    }

    /// A row was read under a lock.
    pub fn met_locked(&mut self, table: &OpenTable, begin: Moment, key: &[u8], row: Option<&[u8]>) {
        let mut model = self.world.model();
        let number = self.number;
        let writer = check(model.observe_locked(number, begin, table.model_table, key, row));
        self.met.push(writer);
        // Under snapshot isolation a locked row is one that the snapshot sees, or it is refused.
        let is_checked = self.detects_conflicts && self.isolation == Isolation::RepeatableRead;
        if let Some(snapshot) = self.snapshot.as_mut().filter(|_| is_checked && row.is_some()) {
            check(model.observe(snapshot, table.model_table, key, row));
        }
    }

    /// Commits; without a fault that works.
    pub fn commit(mut self) {
        self.end_snapshot();
        self.world.trace(|| format!("trx {}: commit {:?}", self.number, self.promise));
        self.world.model().commit_called(self.number);
        let trx = self.trx.take().expect("present until the end");
        if let Err(error) = trx.commit() {
            if self.world.expects(&error) {
                // It is rolled back, unless the engine stops: then nobody knows.
                if !self.world.knobs.fault.is_some_and(FaultKind::stops) {
                    self.world.model().abort(self.number);
                }
                return;
            }
            panic!("violation: a commit failed without a fault: {error}");
        }
        check(self.world.model().commit_returned(self.number));
        if self.promise == Promise::Power && self.world.model().has_written(self.number) {
            // What it saw lies before it in the log.
            self.note_told();
        }
        self.world.trace(|| format!("trx {}: committed", self.number));
        self.world.counts.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Rolls back; without a fault that works.
    pub fn roll_back(mut self) {
        self.end_snapshot();
        self.world.trace(|| format!("trx {}: rollback", self.number));
        self.world.model().abort(self.number);
        let trx = self.trx.take().expect("present until the end");
        if let Err(error) = trx.rollback()
            && !self.world.expects(&error)
        {
            panic!("violation: a rollback failed without a fault: {error}");
        }
    }

    /// Drops the transaction, as a lost connection does.
    pub fn abandon(mut self) {
        self.world.model().abort(self.number);
        drop(self.trx.take());
    }

    /// The engine has rolled back; its handle is given back.
    pub fn give_back(mut self) {
        // It may be here because going back to the start of its statement has failed.
        self.world.model().abort(self.number);
        let trx = self.trx.take().expect("present until the end");
        if let Err(error) = trx.rollback()
            && !self.world.expects(&error)
        {
            panic!("violation: giving back a victim failed: {error}");
        }
    }
}
