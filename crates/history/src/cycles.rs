//! Cycles of dependencies, by what they need at least.

use crate::anomaly::{Anomaly, Findings};
use crate::graph::{Graph, RT, RW, WR, WW, components, path};
use crate::transaction::History;
use std::collections::HashSet;

/// Edges of a component that are tried for a cycle with one read-write dependency.
const TRIED_MAX: usize = 300;

const DEPENDENCIES: u8 = WW | WR | RT;

pub(crate) fn search(history: &History, graph: &Graph, findings: &mut Findings) {
    let search = Search { history, graph };
    search.among(WW | RT, WW, Anomaly::G0, findings);
    let mut explained = search.among(DEPENDENCIES, WR, Anomaly::G1c, findings);
    search.snapshot_violations(&mut explained, findings);
    search.write_skews(&explained, findings);
}

struct Search<'a> {
    history: &'a History,
    graph: &'a Graph,
}

impl Search<'_> {
    fn successors(&self, kinds: u8) -> impl FnMut(u32, &mut Vec<u32>) {
        move |node, targets| {
            let edges = self.graph.from(node).iter();
            targets.extend(edges.filter(|edge| edge.1 & kinds != 0).map(|edge| edge.0));
        }
    }

    /// Cycles of edges of these kinds that have one of kind `needed`. Gives the transactions that
    /// are in any cycle of these kinds.
    fn among(
        &self,
        kinds: u8,
        needed: u8,
        anomaly: Anomaly,
        findings: &mut Findings,
    ) -> HashSet<u32> {
        let mut all = HashSet::new();
        for component in components(self.graph.len(), self.successors(kinds)) {
            let members: HashSet<u32> = component.iter().copied().collect();
            all.extend(component);
            let found = self.edges_within(&members, needed).find_map(|(source, target)| {
                // An edge that is of the other kinds as well is not what the cycle needs.
                let back = self.within(&members, target, source, kinds)?;
                (self.graph.kinds(source, target) & kinds & !needed == 0 || needed == WW)
                    .then_some((source, back))
            });
            if let Some((source, back)) = found {
                findings.add(anomaly, || self.tell(source, &back, kinds));
            }
        }
        all
    }

    fn edges_within<'b>(
        &'b self,
        members: &'b HashSet<u32>,
        kind: u8,
    ) -> impl Iterator<Item = (u32, u32)> + 'b {
        members.iter().flat_map(move |&source| {
            let edges = self.graph.from(source).iter();
            let edges = edges.filter(move |it| it.1 & kind != 0 && members.contains(&it.0));
            edges.map(move |edge| (source, edge.0))
        })
    }

    fn within(&self, members: &HashSet<u32>, from: u32, to: u32, kinds: u8) -> Option<Vec<u32>> {
        path(self.graph.len(), from, to, |node, targets| {
            let edges = self.graph.from(node).iter();
            let edges = edges.filter(|it| it.1 & kinds != 0 && members.contains(&it.0));
            targets.extend(edges.map(|edge| edge.0));
        })
    }

    /// Cycles with read-write dependencies, no two in a row: every transaction is there twice,
    /// the second time as reached by such a dependency. What worse cycles explain is left out, and
    /// what is found is added to that.
    fn snapshot_violations(&self, explained: &mut HashSet<u32>, findings: &mut Findings) {
        for component in components(2 * self.graph.len(), |state, out| self.doubled(state, out)) {
            let members: HashSet<u32> = component.iter().map(|state| state / 2).collect();
            if members.iter().any(|it| explained.contains(it)) {
                continue;
            }
            explained.extend(members.iter().copied());
            let tried = self.edges_within(&members, RW).take(TRIED_MAX);
            let mut without_other = tried
                .filter(|&(source, target)| self.graph.kinds(source, target) & DEPENDENCIES == 0);
            let single = without_other.find_map(|(source, target)| {
                Some((source, self.within(&members, target, source, DEPENDENCIES)?))
            });
            if let Some((source, back)) = single {
                findings.add(Anomaly::GSingle, || self.tell(source, &back, DEPENDENCIES));
                continue;
            }
            let Some(&state) = component.iter().find(|state| *state % 2 == 1) else { continue };
            let states: HashSet<u32> = component.iter().copied().collect();
            let around = path(2 * self.graph.len(), state, state, |state, out| {
                let begin = out.len();
                self.doubled(state, out);
                let kept: Vec<u32> = out.drain(begin..).filter(|it| states.contains(it)).collect();
                out.extend(kept);
            });
            if let Some(around) = around {
                let around: Vec<u32> = around.iter().map(|state| state / 2).collect();
                findings.add(Anomaly::GNonadjacent, || {
                    self.tell(around[0], &around[1..], DEPENDENCIES)
                });
            }
        }
    }

    fn doubled(&self, state: u32, out: &mut Vec<u32>) {
        for &(target, kinds) in self.graph.from(state / 2) {
            if kinds & DEPENDENCIES != 0 {
                out.push(2 * target);
            }
            if kinds & RW != 0 && state.is_multiple_of(2) {
                out.push(2 * target + 1);
            }
        }
    }

    /// Cycles with read-write dependencies in a row, where no other cycle explains them.
    fn write_skews(&self, explained: &HashSet<u32>, findings: &mut Findings) {
        for component in components(self.graph.len(), self.successors(DEPENDENCIES | RW)) {
            let members: HashSet<u32> =
                component.iter().copied().filter(|it| !explained.contains(it)).collect();
            let found = self.edges_within(&members, RW).take(TRIED_MAX).find_map(|edge| {
                let back = self.within(&members, edge.1, edge.0, DEPENDENCIES | RW)?;
                Some((edge.0, back))
            });
            if let Some((source, back)) = found {
                findings.add(Anomaly::G2Item, || self.tell(source, &back, DEPENDENCIES));
            }
        }
    }

    /// A cycle in words: `t1 -rw-> t2 -wr-> t1`, and its transactions. Of several kinds of an edge
    /// it names one of the `preferred`.
    fn tell(&self, source: u32, back: &[u32], preferred: u8) -> String {
        let mut text = format!("t{source}");
        let mut from = source;
        for &node in back {
            let all = self.graph.kinds(from, node);
            let kinds = if all & preferred != 0 { all & preferred } else { all };
            let names = [(WW, "ww"), (WR, "wr"), (RW, "rw"), (RT, "rt")];
            let name = names.iter().find(|(kind, _)| kinds & kind != 0).map_or("?", |it| it.1);
            text += &format!(" -{name}-> t{node}");
            from = node;
        }
        let mut told = HashSet::new();
        for &node in std::iter::once(&source).chain(back).filter(|node| told.insert(**node)) {
            text += &format!("\n    {}", crate::text::line(node, self.history.get(node)));
        }
        text
    }
}
