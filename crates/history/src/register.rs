//! Registers that are replaced: each write has a unique value and the version number after the one
//! that its transaction read.
//!
//! 1. A version number with two committed values is an update that got lost.
//! 2. Versions that nobody read are skipped: what is known of the others holds across them.

use crate::anomaly::{Anomaly, Findings};
use crate::dependencies::{Observed, Read};
use crate::transaction::{History, Operation, Outcome};
use crate::writers::{Writers, writers};
use std::collections::{BTreeMap, HashMap};

/// The values of a register, by version.
type Versions = BTreeMap<u64, u64>;

/// A read of a committed transaction.
struct View {
    reader: u32,
    key: u64,
    version: u64,
}

pub(crate) fn observe(history: &History, findings: &mut Findings) -> Observed {
    let writes = writers(history, |operation| match operation {
        Operation::Write { key, value } => Some((*key, *value)),
        _ => None,
    });
    let mut judge =
        Judge { history, writes: &writes, orders: BTreeMap::new(), views: Vec::new(), findings };
    for (reader, transaction) in history.committed() {
        let mut own = HashMap::new();
        let mut former = HashMap::new();
        for operation in &transaction.operations {
            match operation {
                Operation::Write { key, value } => {
                    own.insert(*key, *value);
                }
                Operation::Register { key, version, value } => {
                    let own = own.get(key).copied();
                    judge.read(reader, *key, (*version, *value), own, &mut former);
                }
                Operation::Append { .. } | Operation::List { .. } => {}
            }
        }
    }
    judge.assemble()
}

/// Looks at all reads.
struct Judge<'a> {
    history: &'a History,
    writes: &'a Writers,
    orders: BTreeMap<u64, Versions>,
    views: Vec<View>,
    findings: &'a mut Findings,
}

impl Judge<'_> {
    fn read(
        &mut self,
        reader: u32,
        key: u64,
        (version, value): (u64, u64),
        own: Option<u64>,
        former: &mut HashMap<u64, (u64, u64)>,
    ) {
        let seen = format!("t{reader} read register {key} as {value} in version {version}");
        if let Some(own) = own {
            // Who has written a register reads what it wrote.
            if own != value {
                self.findings.add(Anomaly::Internal, || format!("{seen}: it had written {own}"));
            } else {
                self.place(&seen, key, version, value);
            }
            return;
        }
        match former.insert(key, (version, value)) {
            Some(first) if first != (version, value) => self
                .findings
                .add(Anomaly::NonRepeatableRead, || format!("{seen}: before it was {first:?}")),
            _ => {}
        }
        if version == 0 {
            self.orders.entry(key).or_default();
            self.views.push(View { reader, key, version });
            return;
        }
        let Some(write) = self.writes.get(&(key, value)) else {
            return self.findings.add(Anomaly::Garbage, || format!("{seen}: nobody wrote that"));
        };
        if self.history.get(write.writer).outcome == Outcome::Aborted {
            let what = || format!("{seen}: t{} was rolled back", write.writer);
            return self.findings.add(Anomaly::G1a, what);
        }
        if !write.is_final {
            let what = || format!("{seen}: not the last that t{} wrote", write.writer);
            self.findings.add(Anomaly::G1b, what);
        }
        if self.place(&seen, key, version, value) {
            self.views.push(View { reader, key, version });
        }
    }

    /// Notes the value of a version; false when it contradicts another read.
    fn place(&mut self, seen: &str, key: u64, version: u64, value: u64) -> bool {
        let versions = self.orders.entry(key).or_default();
        let known = *versions.entry(version).or_insert(value);
        if known != value {
            let what = || format!("{seen}: another transaction replaced the same, with {known}");
            self.findings.add(Anomaly::LostUpdate, what);
        }
        known == value
    }

    fn assemble(mut self) -> Observed {
        self.count_writes();
        let places: HashMap<u64, usize> =
            self.orders.keys().enumerate().map(|(place, key)| (*key, place)).collect();
        let mut observed = Observed::default();
        for (key, versions) in &self.orders {
            let writer = |value: &u64| self.writes[&(*key, *value)].writer;
            observed.writers.push(versions.values().map(writer).collect());
        }
        for View { reader, key, version } in self.views {
            let versions = self.orders[&key].range(..=version).count();
            observed.reads.push(Read { reader, object: places[&key], versions });
        }
        observed
    }

    /// Every committed write made a version, so the last version is at least their number.
    fn count_writes(&mut self) {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (key, _) in self.writes.iter().filter_map(|((key, _), write)| {
            let writer = self.history.get(write.writer);
            (writer.outcome == Outcome::Committed).then_some((key, writer))
        }) {
            *counts.entry(*key).or_default() += 1;
        }
        let end = self.history.committed().map(|(_, it)| it.end_nanos).max().unwrap_or(0);
        for (reader, transaction) in self.history.committed() {
            // Only a reader after whom nobody wrote can say that something is missing.
            if transaction.end_nanos != end {
                continue;
            }
            for operation in &transaction.operations {
                let Operation::Register { key, version, .. } = operation else { continue };
                let written = counts.get(key).copied().unwrap_or(0);
                if *version < written {
                    self.findings.add(Anomaly::LostUpdate, || {
                        format!(
                            "t{reader} read register {key} last, in version {version} after \
                             {written} writes"
                        )
                    });
                }
            }
        }
    }
}
