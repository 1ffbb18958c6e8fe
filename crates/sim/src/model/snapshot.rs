//! What snapshots read: rules 1, 2 and 5 of the model.

use super::{Chain, Model, Moment, Status, Trx, Version, Violation, show};
use std::collections::{BTreeMap, BTreeSet};

/// A snapshot of one transaction, as far as it is known.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) own: Trx,
    pub(super) begin: Moment,
    pub(super) end: Moment,
    pub(super) seen: BTreeMap<Trx, bool>,
    /// Writers of what was actually read (rule 5).
    pub(super) met: BTreeSet<Trx>,
}

impl Model {
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

    pub(super) fn never(&self, table: usize, key: &[u8], what: &str) -> Violation {
        format!("table {table} key {key:02x?} was never written, but read was {what}")
    }

    pub(super) fn describe(&self, chain: &Chain) -> String {
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
}
