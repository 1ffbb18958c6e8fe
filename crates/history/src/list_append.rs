//! Lists to which unique elements are appended.
//!
//! 1. The elements of a list that aborted transactions appended are no versions; a read that shows
//!    one is an anomaly by itself, and is then looked at as if it did not.
//! 2. The versions of a list are the elements of its longest read. All reads are beginnings of it.
//! 3. Once a transaction has appended to a list, nobody else does until it ends; so its own
//!    elements are the end of whatever it reads.

use crate::anomaly::{Anomaly, Findings};
use crate::dependencies::{Observed, Read};
use crate::transaction::{History, Operation, Outcome};
use crate::writers::{Writers, writers};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A read of a committed transaction, without elements of aborted ones and without its own.
struct View {
    reader: u32,
    key: u64,
    elements: Vec<u64>,
}

pub(crate) fn observe(history: &History, findings: &mut Findings) -> Observed {
    let appends = writers(history, |operation| match operation {
        Operation::Append { key, element } => Some((*key, *element)),
        _ => None,
    });
    let mut orders = BTreeMap::new();
    let mut views = Vec::new();
    for (reader, transaction) in history.committed() {
        let mut own: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut former: HashMap<u64, Vec<u64>> = HashMap::new();
        for operation in &transaction.operations {
            match operation {
                Operation::Append { key, element } => own.entry(*key).or_default().push(*element),
                Operation::List { key, elements } => {
                    let mut judge =
                        Judge { history, appends: &appends, reader, key: *key, findings };
                    let others = judge.versions(elements, &mut orders, own.get(key));
                    judge.repeat(&others, &mut former);
                    views.push(View { reader, key: *key, elements: others });
                }
                Operation::Write { .. } | Operation::Register { .. } => {}
            }
        }
    }
    lost(history, &appends, findings);
    assemble(&appends, orders, &views, findings)
}

/// Looks at one read.
struct Judge<'a> {
    history: &'a History,
    appends: &'a Writers,
    reader: u32,
    key: u64,
    findings: &'a mut Findings,
}

impl Judge<'_> {
    fn note(&mut self, anomaly: Anomaly, elements: &[u64], what: &str) {
        let (reader, key) = (self.reader, self.key);
        self.findings.add(anomaly, || format!("t{reader} read list {key} as {elements:?}: {what}"));
    }

    /// What the read shows by itself. Gives the elements of others that are versions, and keeps
    /// the longest list in `orders`.
    fn versions(
        &mut self,
        elements: &[u64],
        orders: &mut BTreeMap<u64, Vec<u64>>,
        own: Option<&Vec<u64>>,
    ) -> Vec<u64> {
        let mut seen = BTreeSet::new();
        let mut versions = Vec::with_capacity(elements.len());
        for element in elements {
            let append = self.appends.get(&(self.key, *element));
            match append.map(|append| self.history.get(append.writer).outcome) {
                None => self.note(Anomaly::Garbage, elements, &format!("nobody wrote {element}")),
                Some(_) if !seen.insert(*element) => {
                    self.note(Anomaly::Duplicate, elements, &format!("{element} is there twice"));
                }
                Some(Outcome::Aborted) => {
                    let what = format!("{element} was rolled back");
                    self.note(Anomaly::G1a, elements, &what);
                }
                Some(_) => versions.push(*element),
            }
        }
        if let Some(last) = versions.last() {
            let append = &self.appends[&(self.key, *last)];
            if !append.is_final && append.writer != self.reader {
                let what = format!("{last} is not the last that t{} appended", append.writer);
                self.note(Anomaly::G1b, elements, &what);
            }
        }
        let order = orders.entry(self.key).or_default();
        if versions.len() > order.len() {
            order.clone_from(&versions);
        }
        let own = own.map_or(&[][..], Vec::as_slice);
        if !versions.ends_with(own) {
            self.note(Anomaly::Internal, elements, &format!("it had appended {own:?}"));
        }
        versions.retain(|element| !own.contains(element));
        versions
    }

    /// A second read of the same list shows the same of others.
    fn repeat(&mut self, others: &[u64], former: &mut HashMap<u64, Vec<u64>>) {
        let Some(first) = former.insert(self.key, others.to_vec()) else { return };
        if first != others {
            self.note(Anomaly::NonRepeatableRead, others, &format!("before it was {first:?}"));
        }
    }
}

/// The last read of a list by a committed transaction.
struct LastRead {
    begin_nanos: u64,
    reader: u32,
    elements: BTreeSet<u64>,
}

fn last_reads(history: &History) -> BTreeMap<u64, LastRead> {
    let mut last: BTreeMap<u64, (u64, u32, &Vec<u64>)> = BTreeMap::new();
    for (reader, transaction) in history.committed() {
        for operation in &transaction.operations {
            let Operation::List { key, elements } = operation else { continue };
            let entry = last.entry(*key).or_insert((0, reader, elements));
            if transaction.begin_nanos >= entry.0 {
                *entry = (transaction.begin_nanos, reader, elements);
            }
        }
    }
    last.into_iter()
        .map(|(key, (begin_nanos, reader, elements))| {
            (key, LastRead { begin_nanos, reader, elements: elements.iter().copied().collect() })
        })
        .collect()
}

/// The history with those transactions as rolled back whose COMMIT was not answered and whose
/// elements somebody who began later does not see.
pub(crate) fn settle(history: &History) -> History {
    let last = last_reads(history);
    let mut settled = history.clone();
    for transaction in &mut settled.transactions {
        let is_missing = |operation: &Operation| match operation {
            Operation::Append { key, element } => last.get(key).is_some_and(|read| {
                transaction.end_nanos < read.begin_nanos && !read.elements.contains(element)
            }),
            _ => false,
        };
        if transaction.outcome == Outcome::Unknown && transaction.operations.iter().any(is_missing)
        {
            transaction.outcome = Outcome::Aborted;
        }
    }
    settled
}

/// What the last reader of each list should have seen and did not.
fn lost(history: &History, appends: &Writers, findings: &mut Findings) {
    let last = last_reads(history);
    for ((key, element), append) in appends {
        let writer = history.get(append.writer);
        let Some(LastRead { begin_nanos, reader, elements }) = last.get(key) else { continue };
        let is_due = writer.outcome == Outcome::Committed && writer.end_nanos < *begin_nanos;
        if is_due && !elements.contains(element) {
            findings.add(Anomaly::LostWrite, || {
                format!(
                    "t{reader} reads list {key} without {element}, which t{} had appended",
                    append.writer
                )
            });
        }
    }
}

fn assemble(
    appends: &Writers,
    orders: BTreeMap<u64, Vec<u64>>,
    views: &[View],
    findings: &mut Findings,
) -> Observed {
    let places: HashMap<u64, usize> =
        orders.keys().enumerate().map(|(place, key)| (*key, place)).collect();
    let mut observed = Observed::default();
    let mut elements = Vec::new();
    for (key, order) in orders {
        observed.writers.push(order.iter().map(|it| appends[&(key, *it)].writer).collect());
        elements.push(order);
    }
    for view in views {
        let object = places[&view.key];
        let order = &elements[object];
        if order.starts_with(&view.elements) {
            let (reader, versions) = (view.reader, view.elements.len());
            observed.reads.push(Read { reader, object, versions });
        } else {
            findings.add(Anomaly::IncompatibleOrder, || {
                let (reader, key, seen) = (view.reader, view.key, &view.elements);
                format!("t{reader} read list {key} as {seen:?}, another read shows {order:?}")
            });
        }
    }
    observed
}
