//! The model: what the engine may answer and what a crash may leave, without a second engine.
//!
//! Every key has a chain of versions in the order in which they were written. Because a row stays
//! locked until its writer's commit record is in the log, the order of a chain is the order of
//! commits, and only its end can belong to a transaction that is still active. All checks follow
//! from that:
//!
//! 1. A snapshot sees whole transactions: for each other transaction it is "seen" or "unseen" on
//!    every key alike, never half. A commit that returned before the snapshot was taken is seen,
//!    one that was called after is not, those in between are found out by what is read.
//! 2. What is seen is a prefix of the commit order: if V is seen and U had returned before V's
//!    commit was called, U is seen.
//! 3. A locking read gives the newest version that is not of another active transaction.
//! 4. After a crash each transaction is there as a whole or not at all; acknowledged ones (and
//!    those that somebody saw and was allowed to tell) are there, rolled back ones and those whose
//!    commit was never called are not, and the survivors are a prefix as in 2.
//! 5. Who was allowed to tell what it saw has told of the writers of just that. A covering scan
//!    sees a key of the index, not the row: it tells of whoever put that key there, and not of
//!    those who have changed the row since and left the key as it was. They may still be lost.
//!
//! Nothing in here knows how the engine works.

mod crash;
mod snapshot;

pub use crash::Resolution;
pub use snapshot::Snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// A transaction of the present life; 0 stands for everything before.
pub type Trx = usize;
/// A moment in the order of events.
pub type Moment = u64;
/// A key or a row's bytes.
pub type Bytes = Arc<[u8]>;

const NEVER: Moment = Moment::MAX;

/// What has become of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Neither commit nor rollback was called.
    Active,
    /// Commit was called and has not returned.
    Committing,
    /// Commit has returned.
    Committed,
    /// Rolled back, or rollback was called.
    Aborted,
}

/// What a returned commit promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Survives everything.
    Power,
    /// Survives the end of the process.
    Process,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Debug)]
struct TrxState {
    status: Status,
    promise: Promise,
    /// A call of the engine is under way for it, in which it may be rolled back.
    in_call: bool,
    /// Somebody got past one of its locks: it must turn out to be rolled back, or to be unable to
    /// do anything else.
    presumed_aborted: bool,
    /// A reader saw it and was allowed to answer its client.
    told: bool,
    called: Moment,
    returned: Moment,
    /// Table and key of each version written, in order.
    writes: Vec<(usize, Bytes)>,
}

#[derive(Clone, Debug)]
struct Version {
    trx: Trx,
    /// `None`: no row.
    row: Option<Bytes>,
    written: Moment,
}

/// The versions of one key; the first one is of transaction 0.
#[derive(Clone, Debug)]
struct Chain {
    versions: Vec<Version>,
}

/// See the module text.
#[derive(Clone, Debug, Default)]
pub struct Model {
    tables: Vec<BTreeMap<Bytes, Chain>>,
    trxs: Vec<TrxState>,
    moment: Moment,
}

/// What is wrong, in words.
pub type Violation = String;

fn show(bytes: Option<&[u8]>) -> String {
    match bytes {
        None => "no row".to_owned(),
        Some(bytes) if bytes.len() <= 40 => format!("{bytes:02x?}"),
        Some(bytes) => format!("{:02x?}.. ({} bytes)", &bytes[..40], bytes.len()),
    }
}

impl Model {
    /// A model of `tables` empty tables.
    pub fn new(tables: usize) -> Model {
        let mut model = Model { tables: vec![BTreeMap::new(); tables], ..Model::default() };
        model.start_life();
        model
    }

    fn start_life(&mut self) {
        self.moment = 1;
        self.trxs = vec![TrxState {
            status: Status::Committed,
            promise: Promise::Power,
            in_call: false,
            presumed_aborted: false,
            told: true,
            called: 0,
            returned: 0,
            writes: Vec::new(),
        }];
    }

    /// The next moment.
    pub fn tick(&mut self) -> Moment {
        self.moment += 1;
        self.moment
    }

    /// A transaction begins.
    pub fn begin(&mut self, promise: Promise) -> Trx {
        self.trxs.push(TrxState {
            status: Status::Active,
            promise,
            in_call: false,
            presumed_aborted: false,
            told: false,
            called: NEVER,
            returned: NEVER,
            writes: Vec::new(),
        });
        self.trxs.len() - 1
    }

    /// A call of the engine begins for `trx`.
    pub fn enter_call(&mut self, trx: Trx) -> Moment {
        self.trxs[trx].in_call = true;
        self.tick()
    }

    /// The call has returned without the transaction being rolled back.
    pub fn leave_call(&mut self, trx: Trx) -> Result<(), Violation> {
        self.leave_failed_call(trx);
        self.expect_alive(trx)
    }

    /// A fault has ended the call. The engine may have begun to roll the transaction back (it met
    /// a conflict, say) and come to a page that cannot be read: what was undone by then is free,
    /// and whatever is called next must fail.
    pub fn leave_failed_call(&mut self, trx: Trx) {
        self.trxs[trx].in_call = false;
    }

    fn expect_alive(&self, trx: Trx) -> Result<(), Violation> {
        match self.trxs[trx].presumed_aborted {
            true => Err(format!("transaction {trx} lives, but a lock it held was passed")),
            false => Ok(()),
        }
    }

    /// `trx` has written a row (or deleted it: `None`).
    pub fn write(&mut self, trx: Trx, table: usize, key: &[u8], row: Option<&[u8]>) {
        let written = self.tick();
        let key: Bytes = key.into();
        let chain = self.tables[table].entry(key.clone()).or_insert_with(Chain::empty);
        chain.versions.push(Version { trx, row: row.map(Bytes::from), written });
        self.trxs[trx].writes.push((table, key));
    }

    /// A point to roll back to.
    pub fn savepoint(&self, trx: Trx) -> usize {
        self.trxs[trx].writes.len()
    }

    /// Everything written after the savepoint is undone.
    pub fn rollback_to(&mut self, trx: Trx, savepoint: usize) {
        for (table, key) in self.trxs[trx].writes.split_off(savepoint).into_iter().rev() {
            let chain = self.tables[table].get_mut(&key).expect("a written key has a chain");
            let newest = chain.versions.iter().rposition(|version| version.trx == trx);
            chain.versions.remove(newest.expect("a write is one version"));
        }
    }

    /// Rollback is called, or the engine has rolled the transaction back.
    pub fn abort(&mut self, trx: Trx) {
        self.rollback_to(trx, 0);
        self.trxs[trx].status = Status::Aborted;
        self.trxs[trx].in_call = false;
    }

    /// Commit is called.
    pub fn commit_called(&mut self, trx: Trx) {
        let moment = self.tick();
        self.trxs[trx].status = Status::Committing;
        self.trxs[trx].called = moment;
    }

    /// Commit has returned well.
    pub fn commit_returned(&mut self, trx: Trx) -> Result<(), Violation> {
        let moment = self.tick();
        self.trxs[trx].status = Status::Committed;
        self.trxs[trx].returned = moment;
        self.expect_alive(trx)
    }

    /// Whether anything was written in `trx`.
    pub fn has_written(&self, trx: Trx) -> bool {
        !self.trxs[trx].writes.is_empty()
    }

    /// Rule 3: `trx` has read the newest row of a key under a lock, in a call since `begin`
    /// ([`Moment::MAX`]: nothing may have changed in between). Returns who wrote it.
    pub fn observe_locked(
        &mut self,
        trx: Trx,
        begin: Moment,
        table: usize,
        key: &[u8],
        row: Option<&[u8]>,
    ) -> Result<Trx, Violation> {
        let Some(chain) = self.tables[table].get(key) else {
            return match row {
                None => Ok(0),
                Some(_) => Err(self.never(table, key, &show(row))),
            };
        };
        let mut passed = BTreeSet::new();
        let mut next_written = NEVER;
        for version in chain.versions.iter().rev() {
            let state = &self.trxs[version.trx];
            let is_other = version.trx != trx && state.status == Status::Active;
            if !is_other {
                if version.row.as_deref() == row {
                    passed.iter().for_each(|&trx: &Trx| self.trxs[trx].presumed_aborted = true);
                    return Ok(version.trx);
                }
                // A row that is not there cannot be locked: it may have appeared since.
                if row.is_some() || next_written.min(version.written) <= begin {
                    break;
                }
            } else if state.in_call || version.written > begin {
                passed.insert(version.trx);
            } else {
                break;
            }
            next_written = version.written;
        }
        Err(format!(
            "transaction {trx} since {begin} read under a lock {} in table {table} key {key:02x?} \
             of {}",
            show(row),
            self.describe(chain)
        ))
    }

    /// A transaction was told that the key is taken: a row must have been there since `begin`.
    /// One that another had deleted counts if that one is in a call, which is then undoing it.
    pub fn observe_duplicate(
        &mut self,
        begin: Moment,
        table: usize,
        key: &[u8],
        is_match: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), Violation> {
        let Some(chain) = self.tables[table].get(key) else {
            return Err(format!("duplicate reported for key {key:02x?}, which was never written"));
        };
        let mut undoing = BTreeSet::new();
        let mut replaced = NEVER;
        for version in chain.versions.iter().rev() {
            if version.row.as_deref().is_some_and(is_match) && replaced > begin {
                undoing.iter().for_each(|&trx: &Trx| self.trxs[trx].presumed_aborted = true);
                return Ok(());
            }
            let state = &self.trxs[version.trx];
            if state.status == Status::Active && state.in_call && version.written <= begin {
                undoing.insert(version.trx);
            } else {
                replaced = version.written;
            }
        }
        Err(format!(
            "duplicate reported since {begin} for table {table} key {key:02x?} of {}",
            self.describe(chain)
        ))
    }

    /// A row of another key that `is_match` accepts and that `trx` could not have passed by:
    /// committed, or its own.
    pub fn find_newest(
        &self,
        trx: Trx,
        table: usize,
        but: &[u8],
        is_match: &dyn Fn(&[u8]) -> bool,
    ) -> Option<Bytes> {
        let is_settled = |version: &&Version| {
            version.trx == trx || self.trxs[version.trx].status != Status::Active
        };
        let mut chains = self.tables[table].iter().filter(|(key, _)| key[..] != *but);
        let found = chains.find(|(_, chain)| {
            let newest = chain.versions.iter().rfind(is_settled);
            newest.and_then(|version| version.row.as_deref()).is_some_and(is_match)
        });
        found.map(|(key, _)| key.clone())
    }

    /// A new, empty table; returns its number.
    pub fn add_table(&mut self) -> usize {
        self.tables.push(BTreeMap::new());
        self.tables.len() - 1
    }

    /// Number of tables.
    pub fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Keys of a table that ever had a row in this life, in a range.
    pub fn keys(&self, table: usize, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Vec<Bytes> {
        self.tables[table].range::<[u8], _>((lower, upper)).map(|(key, _)| key.clone()).collect()
    }
}

impl Chain {
    fn empty() -> Chain {
        Chain { versions: vec![Version { trx: 0, row: None, written: 0 }] }
    }
}

#[cfg(test)]
mod tests;
