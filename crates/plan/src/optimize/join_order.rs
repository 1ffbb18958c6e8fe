//! In which order the tables are read: all orders of few tables, the next cheapest of many.
//!
//! How many rows a set of tables gives is the same whatever order they are read in: the least
//! that any way of coming to the set says. So orders of one set are compared by their cost alone.

use super::access::{Candidate, Ways};
use super::{Problem, cost};
use crate::physical::Access;
use types::SqlError;

/// Up to so many tables all orders are weighed.
const ALL_ORDERS_MAX: usize = 8;

/// A table in its place.
#[derive(Clone, Debug)]
pub(super) struct ChosenStep {
    /// Which source.
    pub source: usize,
    /// How it is read.
    pub access: Access,
    /// Rows estimated for one reading.
    pub rows: u64,
    /// Share of them that conditions leave.
    pub selectivity: f64,
    /// Indexes that conditions could have used.
    pub possible_keys: Vec<usize>,
}

/// The steps of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub steps: Vec<ChosenStep>,
    /// Rows come in the wanted order by themselves.
    pub ordered: bool,
    /// Rows that pass all conditions.
    pub rows: f64,
    /// Cost of all, with sorting and what a LIMIT saves.
    pub cost: f64,
}

/// An order of some of the tables with what it costs.
#[derive(Clone)]
struct Partial {
    steps: Vec<ChosenStep>,
    ordered: bool,
    /// Everything.
    cost: f64,
    /// What of it is paid before the first row.
    once: f64,
}

/// Chooses join order and accesses.
pub(super) fn choose(problem: &Problem<'_>) -> Result<Chosen, SqlError> {
    let count = problem.sources.len();
    let once = problem.apply_costs.iter().map(|apply| apply.once).sum();
    let empty = Partial { steps: Vec::new(), ordered: false, cost: once, once };
    let (best, rows) = match count {
        0 => (empty, 1.0),
        n if n <= ALL_ORDERS_MAX => all_orders(problem, empty)?,
        _ => greedy(problem, empty)?,
    };
    let cost = total(problem, &best, rows);
    Ok(Chosen { steps: best.steps, ordered: best.ordered, rows, cost })
}

/// Whether a source may be read next.
fn may_follow(problem: &Problem<'_>, source: usize, bound: u64) -> bool {
    if bound & (1 << source) != 0 {
        return false;
    }
    let before = (1u64 << source) - 1;
    if problem.sources[source].straight && bound & before != before {
        return false;
    }
    if problem.sources[source].left_join.is_none() {
        return true;
    }
    let needed = problem.on[source].iter().fold(0, |set, on| set | on.sources) & !(1 << source);
    bound != 0 && needed & !bound == 0
}

fn all_orders(problem: &Problem<'_>, empty: Partial) -> Result<(Partial, f64), SqlError> {
    let count = problem.sources.len();
    let full = (1u64 << count) - 1;
    // For every set of tables the cheapest order, and the cheapest that keeps the wanted order.
    let mut best: Vec<Vec<Partial>> = vec![Vec::new(); 1 << count];
    let mut rows = vec![f64::INFINITY; 1 << count];
    best[0].push(empty);
    rows[0] = 1.0;
    for set in 0..full {
        let partials = std::mem::take(&mut best[set as usize]);
        if partials.is_empty() {
            continue;
        }
        for source in 0..count {
            if !may_follow(problem, source, set) {
                continue;
            }
            let ways = problem.ways(source, set)?;
            let next = (set | 1 << source) as usize;
            let before = rows[set as usize];
            rows[next] = rows[next].min(rows_with(problem, source, before, &ways));
            for partial in &partials {
                for candidate in &ways.candidates {
                    let extended = extend(problem, partial, source, set, before, candidate);
                    keep(&mut best[next], extended, rows[next]);
                }
            }
        }
    }
    let finished = std::mem::take(&mut best[full as usize]);
    let rows = rows[full as usize];
    pick(problem, finished, rows)
        .map(|best| (best, rows))
        .ok_or_else(|| crate::bind::unsupported("a join whose outer tables cannot be put in order"))
}

/// Keeps the cheapest of those in the wanted order, and of the others.
fn keep(kept: &mut Vec<Partial>, partial: Extended<'_>, rows: f64) {
    let cost = partial.cost + rows * partial.apply_cost;
    let same = kept.iter_mut().find(|known| known.ordered == partial.ordered);
    match same {
        Some(known) if cost < known.cost => *known = partial.finish(cost),
        Some(_) => {}
        None => kept.push(partial.finish(cost)),
    }
}

/// An order with one more table, not yet copied.
struct Extended<'e> {
    before: &'e Partial,
    source: usize,
    candidate: &'e Candidate,
    ordered: bool,
    cost: f64,
    once: f64,
    /// What subqueries cost for each row that has come so far.
    apply_cost: f64,
}

impl Extended<'_> {
    fn finish(self, cost: f64) -> Partial {
        let mut steps = self.before.steps.clone();
        steps.push(step(self.source, self.candidate.clone()));
        Partial { steps, ordered: self.ordered, cost, once: self.once }
    }
}

fn greedy(problem: &Problem<'_>, empty: Partial) -> Result<(Partial, f64), SqlError> {
    let (mut partial, mut rows) = (empty, 1.0);
    let mut bound = 0;
    for _ in 0..problem.sources.len() {
        let mut next: Option<(usize, Partial, f64)> = None;
        for source in 0..problem.sources.len() {
            if !may_follow(problem, source, bound) {
                continue;
            }
            let ways = problem.ways(source, bound)?;
            let after = rows_with(problem, source, rows, &ways);
            let mut kept = Vec::new();
            for candidate in &ways.candidates {
                let extended = extend(problem, &partial, source, bound, rows, candidate);
                keep(&mut kept, extended, after);
            }
            let Some(extended) = pick(problem, kept, after) else { continue };
            // Rows to come are work to come.
            let better = next.as_ref().is_none_or(|(_, known, known_rows)| {
                extended.cost + after < known.cost + known_rows
            });
            if better {
                next = Some((source, extended, after));
            }
        }
        let Some((source, extended, after)) = next else {
            return Err(crate::bind::unsupported("a join that cannot be put in order"));
        };
        bound |= 1 << source;
        (partial, rows) = (extended, after);
    }
    Ok((partial, rows))
}

/// Rows that there are when a source has joined `rows` others.
fn rows_with(problem: &Problem<'_>, source: usize, rows: f64, ways: &Ways) -> f64 {
    let joined = rows * ways.rows;
    let joined =
        if problem.sources[source].left_join.is_some() { joined.max(rows) } else { joined };
    joined.max(1e-3)
}

fn extend<'e>(
    problem: &Problem<'_>,
    before: &'e Partial,
    source: usize,
    bound: u64,
    rows: f64,
    candidate: &'e Candidate,
) -> Extended<'e> {
    let ready = |bound: u64| problem.apply_cost(bound);
    Extended {
        before,
        source,
        candidate,
        ordered: if bound == 0 { candidate.ordered } else { before.ordered },
        cost: before.cost + candidate.once + rows * candidate.cost,
        once: before.once + candidate.once,
        apply_cost: ready(bound | 1 << source) - ready(bound),
    }
}

fn step(source: usize, candidate: Candidate) -> ChosenStep {
    ChosenStep {
        source,
        access: candidate.access,
        rows: candidate.rows.round().max(1.0) as u64,
        selectivity: candidate.selectivity,
        possible_keys: Vec::new(),
    }
}

/// The cheapest, sorting included where the rows do not come in order.
fn pick(problem: &Problem<'_>, partials: Vec<Partial>, rows: f64) -> Option<Partial> {
    let total = |partial: &Partial| total(problem, partial, rows);
    partials.into_iter().min_by(|a, b| total(a).total_cmp(&total(b)))
}

fn total(problem: &Problem<'_>, partial: &Partial, rows: f64) -> f64 {
    if problem.wanted.is_none() || partial.ordered {
        return limited(problem, partial, rows);
    }
    if let Some(keys) = &problem.group_keys {
        // Groups are found by hashing; only they are sorted.
        let groups = problem.groups(keys, rows);
        return partial.cost + rows * cost::HASHED_ROW + cost::sort(groups);
    }
    let kept = problem.limit.map_or(rows, |limit| rows.min(limit as f64).max(1.0));
    partial.cost + rows * kept.max(2.0).log2() * cost::SORTED_ROW
}

/// A LIMIT ends the reading early: only a share of the cost is paid.
fn limited(problem: &Problem<'_>, partial: &Partial, rows: f64) -> f64 {
    match problem.limit {
        Some(limit) if (limit as f64) < rows => {
            let share = (limit as f64).max(1.0) / rows;
            partial.once + (partial.cost - partial.once) * share
        }
        _ => partial.cost,
    }
}
