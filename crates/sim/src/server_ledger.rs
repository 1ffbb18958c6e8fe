//! What the clients of a simulated server know: everything acknowledged, and what may have
//! happened. Outlives crashes.

use std::collections::BTreeMap;

/// Accounts of the bank.
pub const ACCOUNTS: u64 = 10;
/// Balance of each at the beginning.
pub const BALANCE: i64 = 1_000;

/// Money moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Account it left.
    pub source: u64,
    /// Account it went to.
    pub target: u64,
    /// How much.
    pub amount: i64,
}

/// Rows of table `item` that one client owns: id to k and name.
pub type Items = BTreeMap<i64, (i64, String)>;

/// Definitions that come and go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Rows of table `scratch`, if it exists.
    pub scratch: Option<u64>,
    /// Whether `item` has the index `extra`.
    pub extra: bool,
}

/// A value of which a change may be under way.
#[derive(Clone, Debug, Default)]
pub struct Tracked<T> {
    /// As acknowledged.
    pub known: T,
    /// As it is if the change under way happened.
    pub maybe: Option<T>,
}

impl<T: Clone + PartialEq + std::fmt::Debug> Tracked<T> {
    /// The change was acknowledged.
    pub fn acknowledge(&mut self) {
        if let Some(value) = self.maybe.take() {
            self.known = value;
        }
    }

    /// What was found once nothing is under way: it must be one of the two.
    pub fn settle(&mut self, found: T, what: &str) {
        assert!(
            found == self.known || self.maybe.as_ref() == Some(&found),
            "violation: {what} is {found:?}, neither {:?} nor {:?}",
            self.known,
            self.maybe
        );
        self.known = found;
        self.maybe = None;
    }
}

/// Sums over a seed or a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Statements sent.
    pub statements: u64,
    /// Of them with the binary protocol.
    pub executed: u64,
    /// Transactions and statements acknowledged that changed something.
    pub commits: u64,
    /// Changes of definitions acknowledged.
    pub definitions: u64,
    /// Errors 1213 and 1205.
    pub conflicts: u64,
    /// KILL sent.
    pub kills: u64,
    /// Connections that clients left without a word.
    pub dropped: u64,
    /// Connections that were lost under a client.
    pub lost: u64,
    /// Crashes.
    pub crashes: u64,
    /// Of them before clients could connect.
    pub crashes_in_recovery: u64,
    /// Changes under way at a crash or a lost connection that happened.
    pub happened: u64,
    /// Full checks.
    pub checks: u64,
}

impl ServerCounts {
    /// Adds another seed's.
    pub fn add(&mut self, other: &Self) {
        self.statements += other.statements;
        self.executed += other.executed;
        self.commits += other.commits;
        self.definitions += other.definitions;
        self.conflicts += other.conflicts;
        self.kills += other.kills;
        self.dropped += other.dropped;
        self.lost += other.lost;
        self.crashes += other.crashes;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.happened += other.happened;
        self.checks += other.checks;
    }
}

/// Everything the clients know.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The tables and accounts exist.
    pub is_set_up: bool,
    /// Acknowledged transfers by id.
    pub transfers: BTreeMap<u64, Transfer>,
    /// Transfers whose COMMIT was sent.
    pub under_way: BTreeMap<u64, Transfer>,
    /// Client of each transfer under way.
    pub owners: BTreeMap<u64, usize>,
    /// Last transfer id given out.
    pub last_transfer: u64,
    /// By client.
    pub items: Vec<Tracked<Items>>,
    /// Changed by the first client only.
    pub definitions: Tracked<Definitions>,
    /// Connection of each client in this life.
    pub connections: Vec<u32>,
    /// Statements the seed still runs.
    pub statements_left: i64,
    /// What happened.
    pub counts: ServerCounts,
}

impl Ledger {
    /// A ledger before anything happened.
    pub fn new(clients: usize, statements: u64) -> Self {
        Self {
            items: vec![Tracked::default(); clients],
            connections: vec![0; clients],
            statements_left: statements as i64,
            ..Self::default()
        }
    }

    /// A transfer is in the table (or not) and nothing is under way with it.
    pub fn settle_transfer(&mut self, id: u64, is_present: bool) {
        let Some(transfer) = self.under_way.remove(&id) else { return };
        if is_present {
            self.counts.happened += 1;
            self.transfers.insert(id, transfer);
        }
    }

    /// All transfers as a restart found them.
    pub fn settle_transfers(&mut self, found: &BTreeMap<u64, Transfer>) {
        for (id, transfer) in &self.transfers {
            let seen = found.get(id);
            assert!(seen == Some(transfer), "violation: transfer {id} {transfer:?} is {seen:?}");
        }
        for (id, transfer) in found {
            let expected = self.transfers.get(id).or_else(|| self.under_way.get(id));
            assert!(
                expected == Some(transfer),
                "violation: transfer {id} {transfer:?} was never committed"
            );
        }
        let under_way: Vec<u64> = self.under_way.keys().copied().collect();
        for id in under_way {
            self.settle_transfer(id, found.contains_key(&id));
        }
    }

    /// Balances that follow from the acknowledged transfers.
    pub fn balances(&self) -> Vec<i64> {
        let mut balances = vec![BALANCE; ACCOUNTS as usize];
        for transfer in self.transfers.values() {
            balances[transfer.source as usize] -= transfer.amount;
            balances[transfer.target as usize] += transfer.amount;
        }
        balances
    }
}
