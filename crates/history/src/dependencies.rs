//! From versions and reads to the graph of dependencies.

use crate::anomaly::{Anomaly, Findings};
use crate::graph::{Graph, RT, RW, WR, WW};
use crate::transaction::{History, Outcome, Transaction};
use std::collections::BTreeSet;

/// What reads have shown of a kind of objects.
#[derive(Default)]
pub(crate) struct Observed {
    /// For each object the writers of its versions, in the order of the versions.
    pub(crate) writers: Vec<Vec<u32>>,
    /// What committed transactions read of others.
    pub(crate) reads: Vec<Read>,
}

/// A read of an object.
pub(crate) struct Read {
    pub(crate) reader: u32,
    /// Which of [`Observed::writers`].
    pub(crate) object: usize,
    /// How many of its versions there were for the reader, its own not counted.
    pub(crate) versions: usize,
}

/// All dependencies. Reads of what was old in real time are found on the way.
pub(crate) fn graph(history: &History, observed: &[Observed], findings: &mut Findings) -> Graph {
    let mut graph = Graph::new(history.transactions.len());
    let mut seen = BTreeSet::new();
    for part in observed {
        for writers in &part.writers {
            seen.extend(writers.iter().copied());
            writers.windows(2).for_each(|pair| graph.add(pair[0], pair[1], WW));
        }
        for read in &part.reads {
            let writers = &part.writers[read.object];
            if let Some(last) = read.versions.checked_sub(1) {
                graph.add(writers[last], read.reader, WR);
            }
            let Some(&next) = writers.get(read.versions) else { continue };
            graph.add(read.reader, next, RW);
            if next != read.reader && is_before(history.get(next), history.get(read.reader)) {
                findings.add(Anomaly::StaleRead, || {
                    format!("t{} does not see t{next}, which had ended before", read.reader)
                });
            }
        }
    }
    add_real_time(history, &seen, &mut graph);
    graph.settle();
    graph
}

fn is_before(first: &Transaction, second: &Transaction) -> bool {
    first.outcome == Outcome::Committed && first.end_nanos < second.begin_nanos
}

/// Adds what had ended before what began, without the edges that follow from others: a transaction
/// stands for those that had ended before it began.
fn add_real_time(history: &History, seen: &BTreeSet<u32>, graph: &mut Graph) {
    let mut events = Vec::new();
    for (number, transaction) in history.numbered() {
        let is_known = transaction.outcome == Outcome::Committed;
        if is_known || seen.contains(&number) {
            events.push((transaction.begin_nanos, false, number));
        }
        if is_known {
            events.push((transaction.end_nanos, true, number));
        }
    }
    // At the same moment beginnings come first: nothing is said of the two.
    events.sort_unstable();
    let mut ended: Vec<u32> = Vec::new();
    for (_, is_end, number) in events {
        if is_end {
            let begin = history.get(number).begin_nanos;
            ended.retain(|&it| history.get(it).end_nanos >= begin);
            ended.push(number);
        } else {
            ended.iter().for_each(|&it| graph.add(it, number, RT));
        }
    }
}
