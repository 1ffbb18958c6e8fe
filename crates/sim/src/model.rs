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

pub use crash::Resolution;

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
    /// Somebody got past one of its locks: it must turn out to be rolled back.
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

/// A snapshot of one transaction, as far as it is known.
#[derive(Clone, Debug)]
pub struct Snapshot {
    own: Trx,
    begin: Moment,
    end: Moment,
    seen: BTreeMap<Trx, bool>,
    /// Writers of what was actually read (rule 5).
    met: BTreeSet<Trx>,
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
        self.trxs[trx].in_call = false;
        if self.trxs[trx].presumed_aborted {
            return Err(format!("transaction {trx} lives, but a lock it held was passed"));
        }
        Ok(())
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
    pub fn commit_returned(&mut self, trx: Trx) {
        let moment = self.tick();
        self.trxs[trx].status = Status::Committed;
        self.trxs[trx].returned = moment;
    }

    /// Whether anything was written in `trx`.
    pub fn has_written(&self, trx: Trx) -> bool {
        !self.trxs[trx].writes.is_empty()
    }

    /// A snapshot of `trx`, taken between `begin` and now.
    pub fn snapshot(&mut self, own: Trx, begin: Moment) -> Snapshot {
        let end = self.tick();
        Snapshot { own, begin, end, seen: BTreeMap::new(), met: BTreeSet::new() }
    }

    /// Whether `snapshot` sees `trx`; `None`: not known (yet).
    fn sees(&self, snapshot: &Snapshot, trx: Trx) -> Option<bool> {
        let state = &self.trxs[trx];
        if trx == 0 {
            return Some(true);
        }
        if let Some(&seen) = snapshot.seen.get(&trx) {
            return Some(seen);
        }
        match state.status {
            Status::Active | Status::Aborted => Some(false),
            _ if state.returned < snapshot.begin => Some(true),
            _ if state.called > snapshot.end => Some(false),
            _ => None,
        }
    }

    /// Indexes of the versions of a chain that the snapshot may see.
    fn visible(&self, snapshot: &Snapshot, chain: &Chain) -> Vec<usize> {
        if let Some(own) = chain.versions.iter().rposition(|version| version.trx == snapshot.own) {
            return vec![own];
        }
        let mut indexes = Vec::new();
        for (index, version) in chain.versions.iter().enumerate() {
            match self.sees(snapshot, version.trx) {
                Some(true) => indexes.clear(),
                Some(false) => continue,
                None => {}
            }
            // Of several versions of one transaction only the last one is ever visible.
            let next = chain.versions.get(index + 1);
            if next.is_none_or(|next| next.trx != version.trx) {
                indexes.push(index);
            }
        }
        indexes
    }

    /// The snapshot has read `row` under `key`.
    pub fn observe(
        &self,
        snapshot: &mut Snapshot,
        table: usize,
        key: &[u8],
        row: Option<&[u8]>,
    ) -> Result<(), Violation> {
        let is_row = |candidate: Option<&[u8]>| candidate == row;
        let index = self.judge_read(snapshot, table, key, &show(row), is_row)?;
        if let Some((index, chain)) = index.zip(self.tables[table].get(key)) {
            snapshot.met.insert(chain.versions[index].trx);
        }
        Ok(())
    }

    /// The snapshot has met the row `key` in a covering scan: all it saw is a key of the index,
    /// that of a row that `has_key` accepts. It has met who put that key there (rule 5).
    pub fn observe_index_key(
        &self,
        snapshot: &mut Snapshot,
        table: usize,
        key: &[u8],
        has_key: impl Fn(&[u8]) -> bool,
    ) -> Result<(), Violation> {
        let is_match = |candidate: Option<&[u8]>| candidate.is_some_and(&has_key);
        let index = self.judge_read(snapshot, table, key, "a key of an index", is_match)?;
        if let Some((index, chain)) = index.zip(self.tables[table].get(key)) {
            let before = chain.versions[..index].iter().rev();
            let alike = before.take_while(|version| is_match(version.row.as_deref())).count();
            snapshot.met.insert(chain.versions[index - alike].trx);
        }
        Ok(())
    }

    /// The snapshot has not met the key in a scan; `is_out` accepts what the scan had to leave
    /// out.
    pub fn observe_left_out(
        &self,
        snapshot: &mut Snapshot,
        table: usize,
        key: &[u8],
        is_out: impl Fn(Option<&[u8]>) -> bool,
    ) -> Result<(), Violation> {
        self.judge_read(snapshot, table, key, "nothing in a scan", is_out).map(|_| ())
    }

    /// The version read, if it is certain which; notes who is seen and who is not.
    fn judge_read(
        &self,
        snapshot: &mut Snapshot,
        table: usize,
        key: &[u8],
        what: &str,
        is_match: impl Fn(Option<&[u8]>) -> bool,
    ) -> Result<Option<usize>, Violation> {
        let Some(chain) = self.tables[table].get(key) else {
            return if is_match(None) { Ok(None) } else { Err(self.never(table, key, what)) };
        };
        let row_at = |index: usize| chain.versions[index].row.as_deref();
        let candidates = self.visible(snapshot, chain);
        let mut matching = candidates.iter().copied().filter(|&index| is_match(row_at(index)));
        let Some(first) = matching.next() else {
            return Err(format!(
                "snapshot of transaction {} at {}..{} read {what} in table {table} key {key:02x?}, \
                 allowed are versions {candidates:?} of {}",
                snapshot.own,
                snapshot.begin,
                snapshot.end,
                self.describe(chain)
            ));
        };
        let last = matching.last().unwrap_or(first);
        if chain.versions[first].trx == snapshot.own {
            // Its own row says nothing of others.
            return Ok(None);
        }
        for (index, version) in chain.versions.iter().enumerate() {
            let trx = version.trx;
            if trx == 0 || self.sees(snapshot, trx).is_some() {
                continue;
            }
            if index <= first {
                snapshot.seen.insert(trx, true);
            } else if index > last && trx != chain.versions[last].trx {
                snapshot.seen.insert(trx, false);
            }
        }
        Ok((first == last).then_some(first))
    }

    fn never(&self, table: usize, key: &[u8], what: &str) -> Violation {
        format!("table {table} key {key:02x?} was never written, but read was {what}")
    }

    fn describe(&self, chain: &Chain) -> String {
        let describe = |version: &Version| {
            let state = &self.trxs[version.trx];
            let row = show(version.row.as_deref());
            let (called, returned) = (state.called, state.returned);
            let status = state.status;
            let trx = version.trx;
            format!("\n    trx {trx} {status:?} called {called} returned {returned}: {row}")
        };
        chain.versions.iter().map(describe).collect()
    }

    /// The snapshot will not be read from any more: rule 2.
    pub fn finish_snapshot(&self, snapshot: &Snapshot) -> Result<(), Violation> {
        let seen = snapshot.seen.iter().filter(|&(_, &seen)| seen).map(|(&trx, _)| trx);
        let last_called = seen.map(|trx| (self.trxs[trx].called, trx)).max();
        let Some((called, later)) = last_called else { return Ok(()) };
        for (&trx, &seen) in &snapshot.seen {
            if !seen && self.trxs[trx].returned < called {
                return Err(format!(
                    "a snapshot sees transaction {later} but not {trx}, whose commit had returned \
                     before"
                ));
            }
        }
        Ok(())
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
