//! Directed graphs with kinds of edges, and their cycles.

use std::collections::VecDeque;

/// Write-write: the later of two neighbouring versions was written by the target.
pub(crate) const WW: u8 = 1;
/// Write-read: the target read what the source wrote.
pub(crate) const WR: u8 = 2;
/// Read-write: the target wrote the version after the one that the source read.
pub(crate) const RW: u8 = 4;
/// Real time: the source had ended before the target began.
pub(crate) const RT: u8 = 8;

/// Edges of transactions, by source. Between two nodes is one edge at most, of several kinds.
#[derive(Default)]
pub(crate) struct Graph {
    edges: Vec<Vec<(u32, u8)>>,
}

impl Graph {
    pub(crate) fn new(nodes: usize) -> Self {
        Self { edges: vec![Vec::new(); nodes] }
    }

    /// No edge leads from a node to itself.
    pub(crate) fn add(&mut self, source: u32, target: u32, kind: u8) {
        if source != target {
            self.edges[source as usize].push((target, kind));
        }
    }

    /// Makes one of several edges between the same nodes.
    pub(crate) fn settle(&mut self) {
        for edges in &mut self.edges {
            edges.sort_unstable();
            edges.dedup_by(|later, first| {
                let is_same = later.0 == first.0;
                if is_same {
                    first.1 |= later.1;
                }
                is_same
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    pub(crate) fn from(&self, node: u32) -> &[(u32, u8)] {
        &self.edges[node as usize]
    }

    /// The kinds of the edge between two nodes; 0 without one.
    pub(crate) fn kinds(&self, source: u32, target: u32) -> u8 {
        let edges = self.from(source);
        edges.binary_search_by_key(&target, |edge| edge.0).map_or(0, |place| edges[place].1)
    }
}

/// Strongly connected components of more than one node (Tarjan 1972, without recursion).
/// `successors` fills its second argument.
pub(crate) fn components(
    nodes: usize,
    mut successors: impl FnMut(u32, &mut Vec<u32>),
) -> Vec<Vec<u32>> {
    const NEW: u32 = u32::MAX;
    let (mut index, mut low) = (vec![NEW; nodes], vec![0; nodes]);
    let (mut is_open, mut open, mut found) = (vec![false; nodes], Vec::new(), Vec::new());
    let mut next = 0;
    for root in 0..nodes as u32 {
        if index[root as usize] != NEW {
            continue;
        }
        let mut path: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut entered = Some(root);
        loop {
            if let Some(node) = entered.take() {
                (index[node as usize], low[node as usize]) = (next, next);
                next += 1;
                is_open[node as usize] = true;
                open.push(node);
                let mut targets = Vec::new();
                successors(node, &mut targets);
                path.push((node, targets));
            }
            let Some((node, targets)) = path.last_mut() else { break };
            let node = *node as usize;
            if let Some(target) = targets.pop() {
                match index[target as usize] {
                    NEW => entered = Some(target),
                    seen if is_open[target as usize] => low[node] = low[node].min(seen),
                    _ => {}
                }
                continue;
            }
            path.pop();
            if let Some((parent, _)) = path.last() {
                low[*parent as usize] = low[*parent as usize].min(low[node]);
            }
            if low[node] == index[node] {
                let begin = open.iter().rposition(|&it| it as usize == node).unwrap_or(0);
                let component = open.split_off(begin);
                component.iter().for_each(|&it| is_open[it as usize] = false);
                if component.len() > 1 {
                    found.push(component);
                }
            }
        }
    }
    found
}

/// A shortest path, both ends included (breadth first).
pub(crate) fn path(
    nodes: usize,
    source: u32,
    target: u32,
    mut successors: impl FnMut(u32, &mut Vec<u32>),
) -> Option<Vec<u32>> {
    let mut from = vec![u32::MAX; nodes];
    let mut queue = VecDeque::from([source]);
    let mut targets = Vec::new();
    while let Some(node) = queue.pop_front() {
        targets.clear();
        successors(node, &mut targets);
        for &next in &targets {
            if next == target {
                let mut path = vec![target, node];
                let mut place = node;
                while place != source {
                    place = from[place as usize];
                    path.push(place);
                }
                path.reverse();
                return Some(path);
            }
            if next != source && from[next as usize] == u32::MAX {
                from[next as usize] = node;
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [(u32, u32); 8] = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (6, 6)];

    fn successors(node: u32, targets: &mut Vec<u32>) {
        targets.extend(EDGES.iter().filter(|edge| edge.0 == node).map(|edge| edge.1));
    }

    #[test]
    fn components_of_two_rings() {
        let mut found = components(7, successors);
        found.iter_mut().for_each(|component| component.sort_unstable());
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn the_shortest_way() {
        assert_eq!(path(7, 1, 5, successors), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(path(7, 3, 3, successors), Some(vec![3, 4, 5, 3]));
        assert_eq!(path(7, 5, 0, successors), None);
    }

    /// Against reachability both ways, on random graphs.
    #[test]
    fn components_are_what_reaches_each_other() {
        let mut random: u32 = 1;
        let mut below = |limit: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % limit
        };
        for _ in 0..200 {
            let nodes = 1 + below(12);
            let edges: Vec<_> = (0..below(30)).map(|_| (below(nodes), below(nodes))).collect();
            let mut reach = vec![vec![false; nodes as usize]; nodes as usize];
            edges.iter().for_each(|&(a, b)| reach[a as usize][b as usize] = true);
            for middle in 0..nodes as usize {
                for a in 0..nodes as usize {
                    for b in 0..nodes as usize {
                        reach[a][b] |= reach[a][middle] && reach[middle][b];
                    }
                }
            }
            let found = components(nodes as usize, |node, targets| {
                targets.extend(edges.iter().filter(|edge| edge.0 == node).map(|edge| edge.1));
            });
            for a in 0..nodes {
                for b in 0..a {
                    let together = found.iter().any(|it| it.contains(&a) && it.contains(&b));
                    let mutual = reach[a as usize][b as usize] && reach[b as usize][a as usize];
                    assert_eq!(together, mutual, "{a} {b} {edges:?}");
                }
            }
        }
    }
}
