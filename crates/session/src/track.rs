//! What the ends of answers tell a client of its session: variables, the default database, that
//! anything has changed, and the state of its transaction.
//!
//! 1. Nothing is kept for a client that does not listen, and nothing before the first change.
//! 2. What happens between two ends of answers is told once, with the next one; only a client
//!    that deprecates EOF hears it at the end of rows, others with the next OK.
//! 3. The state of a transaction is what it was told to be at the last end of an answer, or it is
//!    told now. It grows with what statements ask for, whether they fail or not.

use crate::Session;
use engine_api::{Isolation, LockMode};
use plan::physical::{Plan, QueryPlan, SelectPlan, TableSource};
use syntax::ast::Begin;
use wire::response::SessionChange;

/// What is still to be told.
#[derive(Default)]
pub(crate) struct Changes {
    told: Vec<u8>,
    /// Something that a new connection would not have.
    state: bool,
    /// session_track_transaction_info.
    transaction: Option<Tracked>,
}

/// BEGIN was given.
const EXPLICIT: u16 = 1;
/// A statement has begun it, without autocommit.
const IMPLICIT: u16 = 2;
/// Rows were read.
const READ: u16 = 4;
/// Rows were written, or locked for it.
const WRITE: u16 = 8;
/// The client got rows.
const RESULT: u16 = 16;
/// WITH CONSISTENT SNAPSHOT.
const SNAPSHOT: u16 = 32;
/// LOCK TABLES.
const LOCKED: u16 = 64;

/// A transaction as the client knows it.
struct Tracked {
    /// How it could be begun again is told, too.
    with_characteristics: bool,
    now: u16,
    told: u16,
    /// Told although it is the same.
    state_anew: bool,
    characteristics_changed: bool,
    /// The flag is set although there is nothing to tell.
    flagged: bool,
    /// For this transaction only.
    isolation: Option<Isolation>,
    read_only: Option<bool>,
    /// The branch of XA, as XA START has it.
    branch: Option<String>,
}

impl Tracked {
    fn new() -> Self {
        Self {
            with_characteristics: false,
            now: 0,
            told: 0,
            state_anew: false,
            characteristics_changed: false,
            flagged: false,
            isolation: None,
            read_only: None,
            branch: None,
        }
    }

    fn add(&mut self, bits: u16, autocommit: bool) {
        if self.now & (EXPLICIT | IMPLICIT) == 0 && !autocommit && bits & (READ | WRITE) != 0 {
            self.now |= IMPLICIT;
        }
        if self.now & (EXPLICIT | IMPLICIT) != 0 || bits & LOCKED != 0 {
            self.now |= bits;
        }
    }

    /// The transaction is over; `ran` if statements took part in it.
    fn end(&mut self, ran: bool) {
        let was_explicit = self.now & EXPLICIT != 0;
        self.characteristics_changed |= was_explicit;
        self.now &= LOCKED;
        self.branch = None;
        if ran || was_explicit {
            self.set_once(None, None);
        }
    }

    /// Characteristics of one transaction only.
    fn set_once(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        self.characteristics_changed |= self.isolation != isolation || self.read_only != read_only;
        (self.isolation, self.read_only) = (isolation, read_only);
    }

    fn state_text(&self) -> String {
        let bit = |bits: u16, letter: char| if self.now & bits != 0 { letter } else { '_' };
        let kind = if self.now & EXPLICIT != 0 { 'T' } else { bit(IMPLICIT, 'I') };
        let (read, write) = (bit(READ | SNAPSHOT, 'R'), bit(WRITE, 'W'));
        // Tables without transactions, and statements unsafe for a binary log, are not known.
        format!("{kind}_{read}_{write}_{}{}", bit(RESULT, 'S'), bit(LOCKED, 'L'))
    }

    /// The statements that begin such a transaction.
    fn characteristics_text(&self) -> String {
        let mut text = Vec::new();
        if let Some(level) = self.isolation {
            let level = crate::settings::isolation_text(level).replace('-', " ");
            text.push(format!("SET TRANSACTION ISOLATION LEVEL {level};"));
        }
        let access = self.read_only.map(|only| if only { "READ ONLY" } else { "READ WRITE" });
        let begun = self.now & EXPLICIT != 0;
        if begun && self.branch.is_none() {
            let snapshot = (self.now & SNAPSHOT != 0).then_some("WITH CONSISTENT SNAPSHOT");
            let how: Vec<&str> = snapshot.into_iter().chain(access).collect();
            let space = if how.is_empty() { "" } else { " " };
            text.push(format!("START TRANSACTION{space}{};", how.join(", ")));
        } else if let Some(access) = access {
            text.push(format!("SET TRANSACTION {access};"));
        }
        if let (true, Some(branch)) = (begun, &self.branch) {
            text.push(format!("XA START {branch};"));
        }
        text.join(" ")
    }

    /// Appends what is to be told; whether the flag is set.
    fn put(&mut self, out: &mut Vec<u8>) -> bool {
        let state = std::mem::take(&mut self.state_anew) || self.now != self.told;
        let characteristics = std::mem::take(&mut self.characteristics_changed);
        if state {
            SessionChange::TransactionState(&self.state_text()).put(out);
        }
        if characteristics && self.with_characteristics {
            let text = self.characteristics_text();
            SessionChange::TransactionCharacteristics(&text).put(out);
        }
        self.told = self.now;
        state | characteristics | std::mem::take(&mut self.flagged)
    }
}

/// What a plan does with rows: bits of a transaction's state.
fn bits_of(plan: &Plan, has_tables: bool) -> u16 {
    let read = |reads: bool| if reads { READ } else { 0 };
    match plan {
        Plan::Query(query) if locks_exclusively(query) => WRITE,
        Plan::Query(_) => read(has_tables),
        Plan::Insert(insert) => match &insert.source {
            plan::physical::InsertRows::Query(query) => WRITE | read(reads_tables(query)),
            _ => WRITE,
        },
        Plan::Update(update) => WRITE | read(reads_more(&update.select, 1)),
        Plan::Delete(delete) => WRITE | read(reads_more(&delete.select, 1)),
        Plan::UpdateJoin(join) | Plan::DeleteJoin(join) => {
            WRITE | read(reads_more(&join.select, join.targets.len()))
        }
    }
}

fn steps(query: &QueryPlan) -> Option<&SelectPlan> {
    match query {
        QueryPlan::Select(select) => Some(select),
        QueryPlan::Set(_) => None,
    }
}

fn locks_exclusively(query: &QueryPlan) -> bool {
    let locked =
        |select: &SelectPlan| select.tables.iter().any(|step| step.lock == LockMode::Exclusive);
    steps(query).is_some_and(locked)
}

fn reads_tables(query: &QueryPlan) -> bool {
    let reads = |select: &SelectPlan| {
        let is_read = |source: &TableSource| !matches!(source, TableSource::Virtual { .. });
        select.has_subqueries() || select.tables.iter().any(|step| is_read(&step.source))
    };
    steps(query).is_none_or(reads)
}

/// Whether it reads more than the tables that it changes.
fn reads_more(select: &SelectPlan, targets: usize) -> bool {
    select.tables.len() > targets || select.has_subqueries()
}

impl Session {
    fn listens(&self) -> bool {
        self.capabilities & wire::capability::SESSION_TRACK != 0
    }

    fn changes(&mut self) -> &mut Changes {
        self.changes.get_or_insert_default()
    }

    fn tracked(&mut self) -> Option<&mut Tracked> {
        self.changes.as_mut()?.transaction.as_mut()
    }

    /// Tells a client that wants to know that the session is not as it was after the login.
    pub(crate) fn tell_state(&mut self) {
        if self.settings.track_state && self.listens() {
            self.changes().state = true;
        }
    }

    /// A change of state to be told in the next OK packet, if the client listens.
    pub(crate) fn tell(&mut self, change: SessionChange<'_>) {
        if self.listens() {
            change.put(&mut self.changes().told);
        }
    }

    /// What happened until now is not told: the session is as it was after the login.
    pub(crate) fn forget_changes(&mut self) {
        self.changes = None;
        let level = self.variables.value("session_track_transaction_info").show();
        if level != "OFF" && self.listens() {
            let tracked = Tracked { with_characteristics: level != "STATE", ..Tracked::new() };
            self.changes().transaction = Some(tracked);
        }
    }

    /// session_track_transaction_info was set.
    pub(crate) fn track_transactions(&mut self) {
        let level = self.variables.value("session_track_transaction_info").show();
        if !self.listens() {
            return;
        }
        let transaction = &mut self.changes().transaction;
        if level == "OFF" {
            *transaction = None;
            return;
        }
        let tracked =
            transaction.get_or_insert_with(|| Tracked { state_anew: true, ..Tracked::new() });
        tracked.with_characteristics = level != "STATE";
        tracked.characteristics_changed |= tracked.with_characteristics;
        tracked.flagged = true;
    }

    /// The end of an answer: what is to be told, if there is anything; of what waits, `keeps`
    /// tells nothing and only looks whether there is something new.
    #[cold]
    pub(crate) fn take_changes(&mut self, keeps: bool) -> Option<Vec<u8>> {
        let changes = self.changes.as_mut()?;
        let mut told = std::mem::take(&mut changes.told);
        if std::mem::take(&mut changes.state) {
            SessionChange::State.put(&mut told);
        }
        let flagged = changes.transaction.as_mut().is_some_and(|tracked| tracked.put(&mut told));
        let is_new = flagged || !told.is_empty();
        if keeps {
            changes.told = told;
            return is_new.then(Vec::new);
        }
        is_new.then_some(told)
    }

    /// START TRANSACTION, or XA START with the name of its branch.
    pub(crate) fn track_begin(&mut self, begin: &Begin, branch: Option<String>) {
        let Some(tracked) = self.tracked() else { return };
        tracked.now = EXPLICIT | if begin.consistent_snapshot { SNAPSHOT } else { 0 };
        tracked.characteristics_changed = true;
        tracked.branch = branch;
        if begin.read_only.is_some() {
            tracked.set_once(tracked.isolation, begin.read_only);
        }
    }

    /// The transaction has ended.
    #[cold]
    pub(crate) fn track_end(&mut self, ran: bool) {
        if let Some(tracked) = self.tracked() {
            tracked.end(ran);
        }
    }

    /// SET TRANSACTION without a scope, or what it said is over (none).
    pub(crate) fn track_once(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        if let Some(tracked) = self.tracked() {
            tracked.set_once(isolation, read_only);
        }
    }

    /// What SET TRANSACTION said of the present transaction.
    pub(crate) fn tracked_once(&mut self) -> (Option<Isolation>, Option<bool>) {
        self.tracked().map_or((None, None), |tracked| (tracked.isolation, tracked.read_only))
    }

    /// LOCK TABLES, UNLOCK TABLES.
    pub(crate) fn track_locked(&mut self, locked: bool) {
        match self.tracked() {
            Some(tracked) if locked => tracked.add(LOCKED, true),
            Some(tracked) => tracked.now &= !LOCKED,
            None => {}
        }
    }

    /// A plan is run.
    #[cold]
    pub(crate) fn track_plan(&mut self, prepared: &plan::Prepared) {
        let autocommit = self.settings.autocommit;
        if let Some(tracked) = self.tracked() {
            tracked.add(bits_of(prepared.plan(), !prepared.uses_no_table()), autocommit);
        }
    }

    /// Rows were sent.
    #[cold]
    pub(crate) fn track_result(&mut self) {
        let autocommit = self.settings.autocommit;
        if let Some(tracked) = self.tracked() {
            tracked.add(RESULT, autocommit);
        }
    }
}
