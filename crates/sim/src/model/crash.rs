//! What a crash may leave: rules 4 and 5 of the model.

use super::{
    Bytes, Chain, Model, Promise, Snapshot, Status, Trx, TrxState, Version, Violation, show,
};
use std::collections::BTreeMap;

/// What came out of a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Transactions whose commit was called before the crash and that are there.
    pub survived: u64,
    /// Transactions whose commit was called and that are gone.
    pub lost: u64,
    /// Transactions that were active or being rolled back.
    pub undone: u64,
    /// Rows found.
    pub rows: u64,
}

impl Model {
    /// The reader with this snapshot was allowed to answer its client: what it saw is durable.
    pub fn tell(&mut self, snapshot: &Snapshot) {
        for &trx in &snapshot.met {
            self.trxs[trx].told = true;
        }
    }

    /// Everything committed so far must be there from now on: a clean end loses nothing.
    pub fn tell_all(&mut self) {
        for state in &mut self.trxs {
            state.told |= state.status == Status::Committed;
        }
    }

    /// Whoever wrote what was met under a lock is told of, as by [`Model::tell`].
    pub fn tell_of(&mut self, met: &[Trx]) {
        for &trx in met {
            self.trxs[trx].told |= self.trxs[trx].status != Status::Active;
        }
    }

    /// Resolves the crash: `found` has the rows of each table (`None`: the table is not there).
    /// `is_power` tells a power failure from the end of a process. The model goes on from there.
    pub fn recovered(
        &mut self,
        found: &[Option<BTreeMap<Vec<u8>, Vec<u8>>>],
        is_power: bool,
    ) -> Result<Resolution, Violation> {
        let mut fates = self.known_fates(is_power);
        let no_row = BTreeMap::new();
        for (table, rows) in found.iter().enumerate() {
            let rows = rows.as_ref().unwrap_or(&no_row);
            let unknown = rows.keys().find(|key| !self.tables[table].contains_key(&key[..]));
            if let Some(key) = unknown {
                return Err(format!("table {table} key {key:02x?} was found but never written"));
            }
        }
        loop {
            let before = fates.iter().filter(|fate| fate.is_none()).count();
            for (table, rows) in found.iter().enumerate() {
                let Some(rows) = rows else { continue };
                for (key, chain) in &self.tables[table] {
                    let row = rows.get(&key[..]).map(|row| &row[..]);
                    self.narrow(&mut fates, table, key, chain, row)?;
                }
            }
            if fates.iter().filter(|fate| fate.is_none()).count() == before {
                break;
            }
        }
        let resolution = self.judge(&fates)?;
        let mut rows_found = 0;
        for (table, rows) in found.iter().enumerate() {
            let rows = rows.as_ref().unwrap_or(&no_row);
            rows_found += rows.len() as u64;
            for (key, chain) in &mut self.tables[table] {
                let row = rows.get(&key[..]).map(|row| Bytes::from(&row[..]));
                chain.versions = vec![Version { trx: 0, row, written: 0 }];
            }
        }
        self.start_life();
        Ok(Resolution { rows: rows_found, ..resolution })
    }

    /// What the crash must have done to each transaction; `None`: either.
    fn known_fates(&self, is_power: bool) -> Vec<Option<bool>> {
        let fate = |state: &TrxState| match (state.status, state.promise) {
            (Status::Active | Status::Aborted, _) => Some(false),
            // Without changes there is nothing to survive.
            _ if state.writes.is_empty() => None,
            _ if state.told => Some(true),
            (Status::Committed, Promise::Power) => Some(true),
            (Status::Committed, Promise::Process) if !is_power => Some(true),
            _ => None,
        };
        self.trxs.iter().map(fate).collect()
    }

    /// Finds out more about who survived from one key.
    fn narrow(
        &self,
        fates: &mut [Option<bool>],
        table: usize,
        key: &[u8],
        chain: &Chain,
        row: Option<&[u8]>,
    ) -> Result<(), Violation> {
        let mut candidates = Vec::new();
        for (index, version) in chain.versions.iter().enumerate() {
            match fates[version.trx] {
                Some(true) => candidates.clear(),
                Some(false) => continue,
                None => {}
            }
            let next = chain.versions.get(index + 1);
            if next.is_none_or(|next| next.trx != version.trx) {
                candidates.push(index);
            }
        }
        candidates.retain(|&index| chain.versions[index].row.as_deref() == row);
        let (Some(&first), Some(&last)) = (candidates.first(), candidates.last()) else {
            return Err(format!(
                "after the crash table {table} key {key:02x?} has {}, of {}\n  fates: {:?}",
                show(row),
                self.describe(chain),
                chain.versions.iter().map(|it| (it.trx, fates[it.trx])).collect::<Vec<_>>(),
            ));
        };
        for (index, version) in chain.versions.iter().enumerate() {
            let fate = &mut fates[version.trx];
            if fate.is_none() && index <= first {
                *fate = Some(true);
            } else if fate.is_none() && index > last && version.trx != chain.versions[last].trx {
                *fate = Some(false);
            }
        }
        Ok(())
    }

    /// Counts, and checks that the survivors are a prefix.
    fn judge(&self, fates: &[Option<bool>]) -> Result<Resolution, Violation> {
        let mut resolution = Resolution::default();
        let survivors = fates.iter().enumerate().filter(|&(_, &fate)| fate == Some(true));
        let last_called = survivors.map(|(trx, _)| (self.trxs[trx].called, trx)).max();
        let (called, later) = last_called.unwrap_or((0, 0));
        for (trx, &fate) in fates.iter().enumerate().skip(1) {
            let state = &self.trxs[trx];
            if matches!(state.status, Status::Active | Status::Aborted) {
                resolution.undone += 1;
                continue;
            }
            match fate {
                Some(true) => resolution.survived += 1,
                Some(false) if state.returned < called => {
                    return Err(format!(
                        "transaction {later} survived the crash but {trx} did not, whose commit \
                         had returned before the other's was called"
                    ));
                }
                Some(false) => resolution.lost += 1,
                None => {}
            }
        }
        Ok(resolution)
    }
}
