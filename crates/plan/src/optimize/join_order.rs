//! In which order the tables are read: all orders of few tables, the next cheapest of many.

use super::access::Candidate;
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
}

/// An order of some of the tables with what it costs.
#[derive(Clone)]
struct Partial {
    steps: Vec<ChosenStep>,
    ordered: bool,
    cost: f64,
    rows: f64,
}

/// Chooses join order and accesses.
pub(super) fn choose(problem: &Problem<'_>) -> Result<Chosen, SqlError> {
    let count = problem.sources.len();
    let empty = Partial { steps: Vec::new(), ordered: false, cost: 0.0, rows: 1.0 };
    let best = match count {
        0 => empty,
        1 => extend_best(problem, &empty, 0, 0)?,
        n if n <= ALL_ORDERS_MAX => all_orders(problem, empty)?,
        _ => greedy(problem, empty)?,
    };
    Ok(Chosen { steps: best.steps, ordered: best.ordered })
}

/// Whether a source may be read next.
fn may_follow(problem: &Problem<'_>, source: usize, bound: u64) -> bool {
    if bound & (1 << source) != 0 {
        return false;
    }
    if problem.sources[source].straight && bound != (1 << source) - 1 {
        return false;
    }
    if problem.sources[source].left_join.is_none() {
        return true;
    }
    let needed = problem.on[source].iter().fold(0, |set, on| set | on.sources) & !(1 << source);
    bound != 0 && needed & !bound == 0
}

fn all_orders(problem: &Problem<'_>, empty: Partial) -> Result<Partial, SqlError> {
    let count = problem.sources.len();
    let full = (1u64 << count) - 1;
    // For every set of tables the cheapest order, and the cheapest that keeps the wanted order.
    let mut best: Vec<Vec<Partial>> = vec![Vec::new(); 1 << count];
    best[0].push(empty);
    for set in 0..full {
        let partials = std::mem::take(&mut best[set as usize]);
        for partial in &partials {
            for source in 0..count {
                if !may_follow(problem, source, set) {
                    continue;
                }
                let next = (set | 1 << source) as usize;
                for extended in extensions(problem, partial, source, set)? {
                    keep(&mut best[next], extended);
                }
            }
        }
    }
    let finished = std::mem::take(&mut best[full as usize]);
    pick(problem, finished)
        .ok_or_else(|| crate::bind::unsupported("a join whose outer tables cannot be put in order"))
}

fn keep(kept: &mut Vec<Partial>, partial: Partial) {
    let same = kept.iter_mut().find(|known| known.ordered == partial.ordered);
    match same {
        Some(known) if partial.cost < known.cost => *known = partial,
        Some(_) => {}
        None => kept.push(partial),
    }
}

fn greedy(problem: &Problem<'_>, empty: Partial) -> Result<Partial, SqlError> {
    let mut partial = empty;
    let mut bound = 0;
    for _ in 0..problem.sources.len() {
        let mut next: Option<(usize, Partial)> = None;
        for source in 0..problem.sources.len() {
            if !may_follow(problem, source, bound) {
                continue;
            }
            let extended = extend_best(problem, &partial, source, bound)?;
            let better = next.as_ref().is_none_or(|(_, known)| extended.cost < known.cost);
            if better {
                next = Some((source, extended));
            }
        }
        let Some((source, extended)) = next else {
            return Err(crate::bind::unsupported("a join that cannot be put in order"));
        };
        bound |= 1 << source;
        partial = extended;
    }
    Ok(partial)
}

fn extensions(
    problem: &Problem<'_>,
    partial: &Partial,
    source: usize,
    bound: u64,
) -> Result<Vec<Partial>, SqlError> {
    let candidates = problem.candidates(source, bound)?;
    let is_left = problem.sources[source].left_join.is_some();
    let extended = candidates.into_iter().map(|candidate| {
        let rows = partial.rows * candidate.rows * candidate.selectivity;
        let rows = if is_left { rows.max(partial.rows) } else { rows };
        let cost = partial.cost + candidate.once + partial.rows * candidate.cost;
        let ordered = if bound == 0 { candidate.ordered } else { partial.ordered };
        let mut steps = partial.steps.clone();
        steps.push(step(source, candidate));
        Partial { steps, ordered, cost, rows: rows.max(1e-3) }
    });
    Ok(extended.collect())
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

fn extend_best(
    problem: &Problem<'_>,
    partial: &Partial,
    source: usize,
    bound: u64,
) -> Result<Partial, SqlError> {
    let extended = extensions(problem, partial, source, bound)?;
    pick(problem, extended)
        .ok_or_else(|| crate::bind::unsupported("a table that cannot be read this way"))
}

/// The cheapest, sorting included where the rows do not come in order.
fn pick(problem: &Problem<'_>, partials: Vec<Partial>) -> Option<Partial> {
    let total = |partial: &Partial| {
        if problem.wanted.is_none() {
            return limited(problem, partial, partial.cost);
        }
        if partial.ordered {
            limited(problem, partial, partial.cost)
        } else {
            partial.cost + cost::sort(partial.rows)
        }
    };
    partials.into_iter().min_by(|a, b| total(a).total_cmp(&total(b)))
}

/// A LIMIT ends the reading early: only a share of the cost is paid.
fn limited(problem: &Problem<'_>, partial: &Partial, cost: f64) -> f64 {
    match problem.limit {
        Some(limit) if (limit as f64) < partial.rows => {
            cost * (limit as f64).max(1.0) / partial.rows
        }
        _ => cost,
    }
}
