//! Histories of a small store that keeps a level, and of the same store with a fault: the first are
//! clean, the second are not.

use history::{Anomaly, History, Level, Operation, Outcome, Transaction, judge};
use std::collections::BTreeMap;

const KEYS: u64 = 4;
const CLIENTS: usize = 5;
const STEPS: u64 = 1500;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Reads show what others have not committed.
    DirtyRead,
    /// A write does not wait for others that have written.
    NoLock,
    /// A write replaces the snapshot's version, whatever came later.
    NoConflict,
    /// Each statement has its own snapshot.
    SnapshotPerStatement,
    /// A commit now and then is answered and forgotten.
    ForgottenCommit,
    /// Snapshots are of a while ago.
    OldSnapshot,
    /// A rollback leaves one of its writes.
    HalfRollback,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A transaction in the store.
struct Open {
    began: u64,
    snapshot: usize,
    written: BTreeMap<u64, Vec<u64>>,
    operations: Vec<Operation>,
}

struct Store {
    level: Level,
    fault: Fault,
    random: Random,
    /// The lists after each commit.
    states: Vec<BTreeMap<u64, Vec<u64>>>,
    open: Vec<Option<Open>>,
    locks: BTreeMap<u64, usize>,
    now: u64,
    next_element: u64,
    done: Vec<Transaction>,
}

impl Store {
    fn run(level: Level, fault: Fault, seed: u64) -> History {
        let mut store = Store {
            level,
            fault,
            random: Random(seed + 1),
            states: vec![BTreeMap::new()],
            open: (0..CLIENTS).map(|_| None).collect(),
            locks: BTreeMap::new(),
            now: 0,
            next_element: 1,
            done: Vec::new(),
        };
        for _ in 0..STEPS {
            let client = store.random.below(CLIENTS as u64) as usize;
            store.step(client);
        }
        for client in 0..CLIENTS {
            store.end(client, Outcome::Aborted);
        }
        store.begin(0);
        for key in 0..KEYS {
            store.read(0, key);
        }
        store.end(0, Outcome::Committed);
        History { transactions: store.done }
    }

    fn step(&mut self, client: usize) {
        let key = self.random.below(KEYS);
        match (self.open[client].is_some(), self.random.below(10)) {
            (false, _) => self.begin(client),
            (true, 0..4) => {
                if !self.read(client, key) {
                    self.end(client, Outcome::Aborted);
                }
            }
            (true, 4..7) => {
                if !self.append(client, key) {
                    self.end(client, Outcome::Aborted);
                }
            }
            (true, 7) => self.end(client, Outcome::Aborted),
            (true, _) => self.end(client, Outcome::Committed),
        }
    }

    fn begin(&mut self, client: usize) {
        self.now += 1;
        let mut snapshot = self.states.len() - 1;
        if self.fault == Fault::OldSnapshot {
            snapshot -= self.random.below(4).min(snapshot as u64) as usize;
        }
        let (began, written) = (self.now, BTreeMap::new());
        self.open[client] = Some(Open { began, snapshot, written, operations: Vec::new() });
    }

    /// False when another transaction holds the list.
    fn lock(&mut self, client: usize, key: u64) -> bool {
        *self.locks.entry(key).or_insert(client) == client || self.fault == Fault::NoLock
    }

    fn has_snapshot(&self) -> bool {
        self.level == Level::SnapshotIsolation && self.fault != Fault::SnapshotPerStatement
    }

    fn visible(&self, client: usize, key: u64) -> Vec<u64> {
        let open = self.open[client].as_ref().expect("it has begun");
        if let Some(own) = open.written.get(&key) {
            return own.clone();
        }
        if matches!(self.fault, Fault::DirtyRead | Fault::NoLock) {
            let others = self.open.iter().flatten();
            if let Some(dirty) = others.filter_map(|other| other.written.get(&key)).next_back() {
                return dirty.clone();
            }
        }
        let state = if self.has_snapshot() { open.snapshot } else { self.states.len() - 1 };
        self.states[state].get(&key).cloned().unwrap_or_default()
    }

    fn read(&mut self, client: usize, key: u64) -> bool {
        if self.level == Level::Serializable && !self.lock(client, key) {
            return false;
        }
        let elements = self.visible(client, key);
        let open = self.open[client].as_mut().expect("it has begun");
        open.operations.push(Operation::List { key, elements });
        true
    }

    fn append(&mut self, client: usize, key: u64) -> bool {
        if !self.lock(client, key) {
            return false;
        }
        let newest = self.states.last().and_then(|state| state.get(&key)).cloned();
        let newest = newest.unwrap_or_default();
        let open = self.open[client].as_ref().expect("it has begun");
        let is_own = open.written.contains_key(&key);
        let base = self.states[open.snapshot].get(&key).cloned().unwrap_or_default();
        let mut list = match self.fault {
            Fault::NoConflict if !is_own => base,
            _ if !is_own && self.level == Level::SnapshotIsolation && base != newest => {
                return false;
            }
            Fault::NoLock | Fault::DirtyRead => self.visible(client, key),
            _ if is_own => self.visible(client, key),
            _ => newest,
        };
        let element = self.next_element;
        self.next_element += 1;
        list.push(element);
        let open = self.open[client].as_mut().expect("it has begun");
        open.written.insert(key, list);
        open.operations.push(Operation::Append { key, element });
        true
    }

    fn end(&mut self, client: usize, outcome: Outcome) {
        let Some(open) = self.open[client].take() else { return };
        self.now += 1;
        self.locks.retain(|_, holder| *holder != client);
        let mut state = self.states.last().cloned().unwrap_or_default();
        let is_forgotten = self.fault == Fault::ForgottenCommit && self.random.below(20) == 0;
        if outcome == Outcome::Committed && !is_forgotten {
            state.extend(open.written);
        } else if self.fault == Fault::HalfRollback {
            state.extend(open.written.into_iter().take(1));
        }
        self.states.push(state);
        self.done.push(Transaction {
            client: client as u32,
            outcome,
            begin_nanos: open.began,
            end_nanos: self.now,
            operations: open.operations,
        });
    }
}

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable];

#[test]
fn a_store_without_fault_is_clean() {
    for level in LEVELS {
        for seed in 0..20 {
            let history = Store::run(level, Fault::None, seed);
            let committed = |it: &&Transaction| it.outcome == Outcome::Committed;
            assert!(history.transactions.iter().filter(committed).count() > 50);
            let findings = judge(&history);
            let forbidden: Vec<_> = findings.forbidden_at(level).collect();
            assert!(forbidden.is_empty(), "{level:?} {seed}: {forbidden:#?}");
        }
    }
}

/// Snapshots allow write skew, single statements much more: the judge sees that too.
#[test]
fn what_weaker_levels_allow_happens() {
    for (level, anomaly) in [
        (Level::SnapshotIsolation, Anomaly::G2Item),
        (Level::ReadCommitted, Anomaly::GSingle),
        (Level::ReadCommitted, Anomaly::NonRepeatableRead),
    ] {
        let histories = (0..20).map(|seed| Store::run(level, Fault::None, seed));
        let found = histories.flat_map(|it| judge(&it).counts().collect::<Vec<_>>());
        let found: Vec<_> = found.map(|(kind, _)| kind).collect();
        assert!(found.contains(&anomaly), "{level:?} {anomaly}");
    }
}

#[test]
fn faults_are_found() {
    for (level, fault, wanted) in [
        (Level::ReadCommitted, Fault::DirtyRead, Anomaly::G1a),
        (Level::ReadCommitted, Fault::DirtyRead, Anomaly::G1b),
        (Level::ReadCommitted, Fault::DirtyRead, Anomaly::G1c),
        (Level::ReadCommitted, Fault::NoLock, Anomaly::IncompatibleOrder),
        (Level::SnapshotIsolation, Fault::NoConflict, Anomaly::LostWrite),
        (Level::SnapshotIsolation, Fault::SnapshotPerStatement, Anomaly::GSingle),
        (Level::SnapshotIsolation, Fault::SnapshotPerStatement, Anomaly::NonRepeatableRead),
        (Level::SnapshotIsolation, Fault::OldSnapshot, Anomaly::StaleRead),
        (Level::Serializable, Fault::ForgottenCommit, Anomaly::LostWrite),
        (Level::Serializable, Fault::HalfRollback, Anomaly::G1a),
        (Level::Serializable, Fault::NoLock, Anomaly::G2Item),
    ] {
        assert!(level.forbids(wanted), "{level:?} {wanted}");
        let found = (0..30).any(|seed| {
            let findings = judge(&Store::run(level, fault, seed));
            findings.counts().any(|(kind, _)| kind == wanted)
        });
        assert!(found, "{level:?} {fault:?} {wanted}");
    }
}
