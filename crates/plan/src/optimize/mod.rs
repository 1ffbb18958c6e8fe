//! From a bound block to steps: join order, access paths, where conditions are tested.

mod access;
pub(crate) mod conjuncts;
mod cost;
mod estimate;
pub(crate) mod extreme;
mod facts;
mod hints;
mod implied;
mod join_order;
mod kept;
pub(crate) mod merge;
mod ordering;
mod outer_join;
mod propagate;
mod push_down;
pub(crate) mod selectivity;
mod sensitive;
mod used;

use crate::bind::order::same;
use crate::bind::semijoin::SemiJoin;
use crate::bind::table::Source;
use crate::context::{PlanContext, StatTables};
use crate::physical::{
    Access, Apply, ApplyKind, BlockEstimate, LateCondition, SelectPlan, TableSource, TableStep,
};
use catalog::{Catalog, KeptStatistics, TableEntry};
use conjuncts::{Conjunct, Positions, and_all};
use engine_api::LockMode;
use expr::{Builder, Expr, ExprKind};
use selectivity::{Numbers, query_cost, query_rows};
pub use sensitive::ValueShare;
use std::cell::OnceCell;
use std::sync::Arc;
use types::{SqlError, Value};

/// An order of rows asked for, over the plain frame; the bool is DESC.
#[derive(Clone, Debug)]
pub(crate) struct WantedOrder {
    /// Keys, most significant first.
    pub keys: Vec<(Expr, bool)>,
}

/// A block being planned: what access choice looks at.
pub(crate) struct Problem<'b> {
    builder: Builder<'b>,
    sources: Vec<Source>,
    positions: Positions,
    conjuncts: Vec<Conjunct>,
    /// ON conditions of each source.
    on: Vec<Vec<Conjunct>>,
    applies: Vec<Apply>,
    wanted: Option<WantedOrder>,
    lock: LockMode,
    /// For every source, the columns that the block reads.
    used: Vec<Vec<bool>>,
    /// LIMIT as a number, offset included, when rows stream to it.
    limit: Option<u64>,
    /// GROUP BY.
    group_keys: Option<Vec<Expr>>,
    /// For every source, the engine's numbers, once they are asked for.
    numbers: Vec<OnceCell<Numbers>>,
    /// What each subquery costs.
    apply_costs: Vec<ApplyCost>,
    /// Values of the parameters, as far as they are bound.
    values: &'b [Value],
    /// Which statistics there are besides the engine's.
    stat_tables: KeptTables<'b>,
}

/// What is to be gone by of `mysql.table_stats` and its kin.
#[derive(Clone, Copy)]
struct KeptTables<'b> {
    catalog: &'b Catalog,
    wanted: StatTables,
}

impl KeptTables<'_> {
    /// What is kept of a table.
    fn of(&self, entry: &TableEntry) -> Option<Arc<KeptStatistics>> {
        if self.wanted == StatTables::default() || !self.catalog.has_kept_statistics() {
            return None;
        }
        let definition = entry.definition();
        let kept = self.catalog.kept_statistics(&definition.schema, &definition.name);
        kept.filter(|_| !entry.is_temporary())
    }

    fn prefers_kept(&self) -> bool {
        self.wanted.counts
    }

    fn knows_columns(&self) -> bool {
        self.wanted.columns
    }
}

/// What a subquery costs.
#[derive(Clone, Copy, Debug)]
struct ApplyCost {
    /// Before the first row.
    once: f64,
    /// For each row.
    each: f64,
}

impl ApplyCost {
    fn of(apply: &Apply) -> Self {
        let cost = query_cost(&apply.query);
        let needs_rows = matches!(apply.kind, ApplyKind::In { .. } | ApplyKind::Quantified { .. });
        match (apply.outer_positions.is_empty(), &apply.kind) {
            (true, _) if needs_rows => {
                // Its rows are kept in memory, so this is what is done where nothing else can be.
                let kept = query_rows(&apply.query) * 2.0;
                Self { once: cost + kept, each: 2.0 * cost::PROBE }
            }
            (true, _) => Self { once: cost, each: 0.0 },
            // The first row ends it.
            (false, ApplyKind::Exists) => {
                Self { once: 0.0, each: cost::DESCENT + cost / query_rows(&apply.query).max(1.0) }
            }
            (false, _) => Self { once: 0.0, each: cost::DESCENT + cost },
        }
    }
}

/// What a block is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockParts {
    /// Tables.
    pub sources: Vec<Source>,
    /// Conditions of WHERE and of inner joins.
    pub conjuncts: Vec<Expr>,
    /// Subqueries.
    pub applies: Vec<Apply>,
    /// Those among them that may be done otherwise.
    pub semijoins: Vec<SemiJoin>,
    /// ORDER BY, or the order of GROUP BY.
    pub wanted: Option<WantedOrder>,
}

/// Fills in `plan.tables` and where its conditions go. Positions are those of the frame.
pub(crate) fn plan_block(
    context: &PlanContext<'_>,
    plan: SelectPlan,
    parts: BlockParts,
) -> Result<SelectPlan, SqlError> {
    let (mut plan, mut parts) = (plan, parts);
    let is_derived = |it: &Source| it.unplanned.is_some() || !it.branches.is_empty();
    if parts.sources.iter().any(is_derived) {
        merge::merge(&mut plan, &mut parts);
        push_down::push_down(context, &plan, &mut parts)?;
        push_down::into_branches(context, &plan, &mut parts)?;
    }
    outer_join::settle(&mut plan, &mut parts);
    if parts.applies.is_empty()
        && plan.window.is_none()
        && let Some(plan) = extreme::plan(context, &plan, &parts.sources, &parts.conjuncts)?
    {
        return Ok(plan);
    }
    let builder = Builder::new(&context.eval.settings);
    let semijoins = std::mem::take(&mut parts.semijoins);
    if semijoins.is_empty() {
        let best = Weighed::of(context, &plan, parts)?;
        return Ok(best.finish(plan));
    }
    let mut best = Weighed::of(context, &plan, parts.clone())?;
    for semijoin in &semijoins {
        let mut chosen = None;
        for form in forms_of(&parts, semijoin, &builder)? {
            let weighed = Weighed::of(context, &plan, form.clone())?;
            if weighed.chosen.cost < best.chosen.cost {
                best = weighed;
                chosen = Some(form);
            }
        }
        parts = chosen.unwrap_or(parts);
    }
    Ok(best.finish(plan))
}

/// The block with one of its subqueries done otherwise.
fn forms_of(
    parts: &BlockParts,
    semijoin: &SemiJoin,
    builder: &Builder<'_>,
) -> Result<Vec<BlockParts>, SqlError> {
    let mut forms = Vec::new();
    if let Some((source, on)) = &semijoin.table {
        let mut form = parts.clone();
        form.applies.retain(|apply| apply.position != semijoin.position);
        form.conjuncts.retain(|conjunct| !semijoin.is(conjunct));
        let mut source = source.clone();
        match semijoin.no_partner(builder)? {
            Some(condition) => {
                source.left_join = Some(on.clone());
                form.conjuncts.push(condition);
            }
            None => form.conjuncts.extend(on.iter().cloned()),
        }
        form.sources.push(source);
        forms.push(form);
    }
    if let Some(lookup) = &semijoin.lookup {
        let mut form = parts.clone();
        let known = form.applies.iter_mut().find(|apply| apply.position == lookup.position);
        if let Some(apply) = known {
            *apply = lookup.clone();
            forms.push(form);
        }
    }
    Ok(forms)
}

/// A block with its best order.
struct Weighed<'b> {
    problem: Problem<'b>,
    chosen: join_order::Chosen,
}

impl<'b> Weighed<'b> {
    fn of(
        context: &'b PlanContext<'_>,
        plan: &SelectPlan,
        parts: BlockParts,
    ) -> Result<Self, SqlError> {
        let builder = Builder::new(&context.eval.settings);
        let BlockParts { mut sources, mut conjuncts, applies, wanted, .. } = parts;
        outer_join::simplify(&mut sources, &mut conjuncts);
        propagate::equalities(&builder, &mut conjuncts)?;
        let positions = Positions::new(plan, &sources, &applies);
        let conjuncts = positions.all(conjuncts);
        let on = sources.iter().map(|s| positions.all(s.left_join.clone().unwrap_or_default()));
        let on = on.collect();
        let used = used::columns(plan, &sources, &conjuncts, &applies, wanted.as_ref());
        let aggregate = plan.aggregate.as_ref();
        let problem = Problem {
            group_keys: aggregate.map(|it| it.keys.clone()).filter(|keys| !keys.is_empty()),
            numbers: sources.iter().map(|_| OnceCell::new()).collect(),
            apply_costs: applies.iter().map(ApplyCost::of).collect(),
            values: &context.eval.parameters,
            stat_tables: KeptTables { catalog: context.catalog, wanted: context.stat_tables },
            limit: streaming_limit(plan, &context.eval.parameters),
            lock: plan.lock,
            builder,
            sources,
            positions,
            conjuncts,
            on,
            applies,
            wanted,
            used,
        };
        let chosen = join_order::choose(&problem)?;
        Ok(Self { problem, chosen })
    }

    /// The plan with its steps.
    fn finish(self, plan: SelectPlan) -> SelectPlan {
        let Self { problem, mut chosen } = self;
        let mut plan = plan;
        for step in &mut chosen.steps {
            step.possible_keys = problem.possible_keys(step.source);
        }
        plan.estimate = problem.estimate(&plan, &chosen);
        plan.value_shares = problem.value_shares(&chosen);
        if chosen.ordered {
            problem.use_order(&mut plan);
        }
        place(problem, chosen, &mut plan);
        plan
    }
}

impl Problem<'_> {
    /// What is expected of an execution.
    fn estimate(&self, plan: &SelectPlan, chosen: &join_order::Chosen) -> BlockEstimate {
        let rows = match (&self.group_keys, &plan.aggregate) {
            (Some(keys), _) => self.groups(keys, chosen.rows),
            (None, Some(_)) => 1.0,
            (None, None) if plan.distinct && plan.window.is_none() => {
                self.groups(&plan.projection, chosen.rows)
            }
            (None, None) => chosen.rows,
        };
        let rows = self.limit.map_or(rows, |limit| rows.min(limit as f64));
        BlockEstimate { rows, cost: chosen.cost }
    }

    /// What subqueries that need rows of some of these sources cost, for each row of them all.
    fn apply_cost(&self, bound: u64) -> f64 {
        if self.apply_costs.is_empty() {
            return 0.0;
        }
        let known = self.positions.constant_applies();
        let ready = self
            .apply_costs
            .iter()
            .enumerate()
            .filter(|(number, _)| self.positions.apply_is_ready(*number, bound, known));
        ready.map(|(_, cost)| cost.each).sum()
    }

    /// The block need not sort: its rows come in the wanted order.
    fn use_order(&self, plan: &mut SelectPlan) {
        match &mut plan.aggregate {
            None => {
                plan.projection.truncate(plan.columns.len());
                plan.equal_are_neighbours = self.order_covers(&plan.projection);
            }
            // Groups whose rows do not come one behind the other are sorted.
            Some(aggregate) if !self.order_covers(&aggregate.keys) => return,
            Some(aggregate) => aggregate.sorted = true,
        }
        plan.order_by.clear();
        plan.in_order = true;
    }

    /// Whether rows in the wanted order have equal values of all `keys` side by side.
    fn order_covers(&self, keys: &[Expr]) -> bool {
        let Some(wanted) = &self.wanted else { return false };
        let wanted = &wanted.keys;
        let first = wanted.iter().take(keys.len());
        wanted.len() >= keys.len()
            && keys.iter().all(|key| first.clone().any(|(known, _)| same(known, key)))
    }
}

/// A LIMIT that is a parameter without a value is taken for this.
const LIMIT_GUESS: u64 = 100;

/// LIMIT plus OFFSET, where every row that passes counts at once.
fn streaming_limit(plan: &SelectPlan, values: &[Value]) -> Option<u64> {
    let is_counted = plan.distinct || plan.calculate_found_rows;
    if plan.aggregate.is_some() || plan.window.is_some() || is_counted {
        return None;
    }
    let number = |expr: &Option<Expr>| match expr {
        None => 0,
        Some(expr) => match estimate::constant(expr, values) {
            Some(types::Value::Int(v)) => u64::try_from(*v).unwrap_or(0),
            Some(types::Value::UInt(v)) => *v,
            _ => LIMIT_GUESS,
        },
    };
    plan.limit.count.as_ref()?;
    Some(number(&plan.limit.count).saturating_add(number(&plan.limit.offset)))
}

/// Puts subqueries and conditions where they can be decided first.
fn place(problem: Problem<'_>, chosen: join_order::Chosen, plan: &mut SelectPlan) {
    let Problem { mut sources, mut conjuncts, mut on, positions, applies, used, .. } = problem;
    let mut applies: Vec<Option<Apply>> = applies.into_iter().map(Some).collect();
    let ready = positions.constant_applies();
    for (number, apply) in applies.iter_mut().enumerate() {
        if ready & (1 << number) != 0 {
            plan.constant_applies.extend(apply.take());
        }
    }
    let constant = conjuncts::take(&mut conjuncts, 0, ready);
    plan.constant_filter = and_all(constant);
    let (mut bound, mut known) = (0u64, ready);
    let mut steps = Vec::with_capacity(sources.len());
    for step in chosen.steps {
        bound |= 1 << step.source;
        let source = &mut sources[step.source];
        let is_left = source.left_join.is_some();
        let mut condition = std::mem::take(&mut on[step.source]);
        if !is_left {
            condition.extend(conjuncts::take(&mut conjuncts, bound, known));
        }
        if !steps.is_empty() && matches!(step.access, Access::Scan { .. }) {
            conjuncts::own_first(&mut condition, step.source);
        }
        let late = take_late(&mut condition, &positions, &mut applies, bound, &mut known);
        let mut own_applies = Vec::new();
        for (number, apply) in applies.iter_mut().enumerate() {
            if apply.is_some() && positions.apply_is_ready(number, bound, known) {
                own_applies.extend(apply.take());
                known |= 1 << number;
            }
        }
        let filter = conjuncts::take(&mut conjuncts, bound, known);
        let mut table = std::mem::replace(&mut source.table, placeholder());
        merge::blank_unused(&mut table, &used[step.source]);
        let mut tested = condition.clone();
        let implied = implied::by_access(&step.access, &table, source.first, plan.lock, &tested);
        implied.map(|place| tested.remove(place));
        steps.push(TableStep {
            source: table,
            alias: std::mem::take(&mut source.alias),
            first_position: source.first,
            access: step.access,
            left_join: is_left,
            condition: and_all(condition),
            tested: and_all(tested),
            late,
            applies: own_applies,
            filter: and_all(filter),
            lock: plan.lock,
            rows_estimate: step.rows,
            selectivity: step.selectivity,
            possible_keys: step.possible_keys,
        });
    }
    plan.tables = steps;
    if !conjuncts.is_empty() {
        // Only a block without tables has conditions left: they read subqueries.
        let rest = and_all(conjuncts);
        plan.constant_filter = match (plan.constant_filter.take(), rest) {
            (Some(one), Some(other)) => Some(conjuncts::and(one, other)),
            (one, other) => one.or(other),
        };
    }
}

/// Takes what of ON reads subqueries that have no value until the source has a row.
fn take_late(
    condition: &mut Vec<Conjunct>,
    positions: &Positions,
    applies: &mut [Option<Apply>],
    bound: u64,
    known: &mut u64,
) -> Option<Box<LateCondition>> {
    let late = condition.iter().filter(|conjunct| !conjunct.is_ready(bound, *known));
    let wanted = late.fold(0, |set, conjunct| set | conjunct.applies) & !*known;
    if wanted == 0 {
        return None;
    }
    let late: Vec<Conjunct> =
        condition.extract_if(.., |conjunct| !conjunct.is_ready(bound, *known)).collect();
    let mut own = Vec::new();
    for (number, apply) in applies.iter_mut().enumerate() {
        let is_wanted = wanted & (1 << number) != 0;
        if is_wanted && positions.apply_is_ready(number, bound, *known) {
            own.extend(apply.take());
            *known |= 1 << number;
        }
    }
    and_all(late).map(|condition| Box::new(LateCondition { applies: own, condition }))
}

fn placeholder() -> TableSource {
    use crate::bind::set::empty_select;
    use crate::physical::QueryPlan;
    TableSource::Derived(Box::new(QueryPlan::Select(Box::new(empty_select(
        Vec::new(),
        Vec::new(),
    )))))
}

/// Whether an UPDATE's scan could come to rows that it has already changed, when these columns
/// change.
pub(crate) fn meets_own_changes(select: &SelectPlan, changed: &[usize]) -> bool {
    if !select.order_by.is_empty() {
        return true;
    }
    let Some(step) = select.tables.first() else { return false };
    let TableSource::Base(entry) = &step.source else { return true };
    let index = match &step.access {
        Access::Point { .. } => return false,
        Access::Scan { index, .. } | Access::Ranges { index, .. } => *index,
        Access::Hash { .. } => return true,
    };
    let definition = entry.0.definition();
    let clustered = &definition.indexes[0];
    let keys = definition.indexes[index].parts.iter().chain(&clustered.parts);
    let mut keys = keys.map(|part| part.column);
    keys.any(|key| changed.contains(&key))
}

/// The position of a bare column.
pub(crate) fn column_position(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Column { position, .. } => Some(*position),
        _ => None,
    }
}
