//! Derived tables and views: merged into the block around them where they are plain joins with
//! conditions. Into others go the conditions on them: see `push_down.rs`.
//!
//! 1. A merged table's sources join those of the block, in a part of the frame of their own; the
//!    columns of the derived table become the columns that they are, or their expressions. So
//!    what nothing reads is not computed, and what is read twice is computed twice. An expression
//!    must not stand where only a position can: a subquery of the block may not read it.
//! 2. On the inner side of an outer join only a derived table of one table is merged, and only if
//!    all its columns are plain, since a row of NULLs stands for the whole side.
//! 3. Blocks that lock rows are left as they are: what is locked should not depend on this.

use super::{BlockParts, column_position};
use crate::bind::semijoin::SemiJoin;
use crate::bind::table::Source;
use crate::physical::{QueryPlan, SelectPlan, TableSource};
use engine_api::LockMode;
use expr::{Expr, ExprKind, Literal, LiteralForm};
use types::Value;

/// Most sources that a block has after merging: their sets are 64 bit masks.
const SOURCES_MAX: usize = 56;

/// A block before its tables were put in order.
#[derive(Clone, Debug)]
pub(crate) struct Unplanned {
    /// What its clauses came to.
    pub plan: SelectPlan,
    /// What it is made of.
    pub parts: BlockParts,
}

impl Unplanned {
    /// Whether its rows are those of its tables that pass its conditions.
    pub(crate) fn is_plain(&self) -> bool {
        let (plan, parts) = (&self.plan, &self.parts);
        self.gives_all_rows()
            && plan.aggregate.is_none()
            && !plan.distinct
            && !parts.sources.is_empty()
            && parts.sources.iter().all(|source| !source.straight)
    }

    /// Whether all columns are plain.
    fn has_plain_columns(&self) -> bool {
        (0..self.plan.columns.len()).all(|column| self.plain_column(column).is_some())
    }

    /// The columns that are expressions; `None` if it matters how often one of them is computed.
    /// Variables are read where the block reads them, as in MariaDB.
    fn computed_columns(&self) -> Option<Vec<usize>> {
        let columns = 0..self.plan.columns.len();
        let computed: Vec<usize> =
            columns.filter(|&column| self.plain_column(column).is_none()).collect();
        let values = computed.iter().map(|&column| self.plan.projection.get(column));
        values.flatten().all(Expr::has_no_effect).then_some(computed)
    }

    /// Whether nothing but its conditions keeps rows from its result.
    pub(super) fn gives_all_rows(&self) -> bool {
        let plan = &self.plan;
        plan.outer_columns == 0
            && plan.having.is_none()
            && plan.window.is_none()
            && plan.aggregate.as_ref().is_none_or(|it| it.rollup.is_none())
            && plan.limit.count.is_none()
            && plan.limit.offset.is_none()
            && plan.lock == LockMode::None
            && !plan.calculate_found_rows
    }

    /// The position of a table's column that a column of the result is.
    fn plain_column(&self, column: usize) -> Option<usize> {
        let position = column_position(self.plan.projection.get(column)?)?;
        self.of_source(position)
    }

    pub(super) fn of_source(&self, position: usize) -> Option<usize> {
        let holds =
            |source: &Source| (source.first..source.first + source.width).contains(&position);
        self.parts.sources.iter().any(holds).then_some(position)
    }

    /// The position of the column by which rows are kept apart that a column of the result is.
    pub(super) fn grouped_column(&self, column: usize) -> Option<usize> {
        let Some(aggregate) = &self.plan.aggregate else { return self.plain_column(column) };
        let key = column_position(self.plan.projection.get(column)?)?;
        self.of_source(column_position(aggregate.keys.get(key)?)?)
    }
}

/// Merges what can be merged.
pub(super) fn merge(plan: &mut SelectPlan, parts: &mut BlockParts) {
    if plan.lock != LockMode::None {
        return;
    }
    let mut number = 0;
    while let Some(source) = parts.sources.get(number) {
        let inner = source.unplanned.clone();
        let Some(inner) = inner.filter(|it| may_merge(it, source, plan, parts)) else {
            number += 1;
            continue;
        };
        merge_one(plan, parts, number, &inner);
    }
}

fn may_merge(inner: &Unplanned, source: &Source, plan: &SelectPlan, parts: &BlockParts) -> bool {
    let straight = parts.sources.iter().any(|source| source.straight);
    let is_inner_side = source.left_join.is_some();
    if !inner.has_plain_columns() && (is_inner_side || reads_computed(inner, source, plan, parts)) {
        return false;
    }
    let [one] = &inner.parts.sources[..] else {
        return !straight
            && !is_inner_side
            && inner.is_plain()
            && parts.sources.len() + inner.parts.sources.len() <= SOURCES_MAX;
    };
    let fits = !is_inner_side || (one.left_join.is_none() && inner.parts.applies.is_empty());
    !straight && fits && inner.is_plain()
}

/// Whether something reads a computed column of a derived table that can read positions only.
fn reads_computed(
    inner: &Unplanned,
    source: &Source,
    plan: &SelectPlan,
    parts: &BlockParts,
) -> bool {
    let Some(computed) = inner.computed_columns() else { return true };
    let is_computed = |position: &usize| {
        position.checked_sub(source.first).is_some_and(|column| computed.contains(&column))
    };
    let lookups = parts.semijoins.iter().filter_map(|semijoin| semijoin.lookup.as_ref());
    let mut applies = parts.applies.iter().chain(lookups);
    let carried = plan.aggregate.iter().flat_map(|aggregate| &aggregate.carried);
    applies.any(|apply| apply.outer_positions.iter().any(is_computed))
        || carried.into_iter().any(is_computed)
}

/// Puts the expressions of a derived table's columns where they are read; its frame will begin at
/// `base`.
fn put_computed(
    plan: &mut SelectPlan,
    parts: &mut BlockParts,
    (outside, base): (&Source, usize),
    inner: &Unplanned,
) {
    if inner.has_plain_columns() {
        return;
    }
    let value_at = |position: usize| {
        let column = position.checked_sub(outside.first).filter(|&it| it < outside.width)?;
        if inner.plain_column(column).is_some() {
            return None;
        }
        let mut value = inner.plan.projection.get(column)?.clone();
        value.map_columns(&mut |position| base + position);
        Some(value.as_printed())
    };
    let mut put = |expr: &mut Expr| substitute(expr, &value_at);
    each_value(plan, &mut put);
    each_condition(parts, &mut put);
}

/// Puts expressions in the place of columns.
fn substitute(expr: &mut Expr, value_at: &dyn Fn(usize) -> Option<Expr>) {
    match column_position(expr) {
        Some(position) => {
            if let Some(value) = value_at(position) {
                *expr = value;
            }
        }
        None => expr.for_each_child_mut(&mut |child| substitute(child, value_at)),
    }
}

fn merge_one(plan: &mut SelectPlan, parts: &mut BlockParts, number: usize, inner: &Unplanned) {
    let outside = parts.sources.remove(number);
    let base = plan.frame_columns;
    plan.frame_columns += inner.plan.frame_columns;
    put_computed(plan, parts, (&outside, base), inner);
    let map = |position: usize| match position.checked_sub(outside.first) {
        Some(column) if column < outside.width => {
            inner.plain_column(column).map_or(position, |at| base + at)
        }
        _ => position,
    };
    let mut left_join = outside.left_join.clone();
    left_join.iter_mut().flatten().for_each(|on| on.map_columns(&mut { map }));
    map_plan(plan, &mut { map });
    map_parts(parts, &mut { map });
    let mut own = inner.parts.clone();
    let mut shift = |position: usize| base + position;
    map_parts(&mut own, &mut shift);
    for source in &mut own.sources {
        source.first += base;
    }
    for apply in &mut own.applies {
        apply.position += base;
    }
    for semijoin in &mut own.semijoins {
        shift_semijoin(semijoin, base);
    }
    match (&mut left_join, &mut own.sources[..]) {
        (Some(on), [one]) => {
            on.append(&mut own.conjuncts);
            one.left_join = left_join;
        }
        _ => parts.conjuncts.append(&mut own.conjuncts),
    }
    parts.applies.append(&mut own.applies);
    parts.semijoins.append(&mut own.semijoins);
    parts.sources.splice(number..number, own.sources);
}

fn shift_semijoin(semijoin: &mut SemiJoin, base: usize) {
    semijoin.position += base;
    semijoin.lookup.iter_mut().for_each(|lookup| lookup.position += base);
    semijoin.first_column.iter_mut().for_each(|it| it.map_columns(&mut |at| base + at));
    semijoin.table.iter_mut().for_each(|(source, _)| source.first += base);
}

/// Maps the positions that the clauses read.
fn map_plan(plan: &mut SelectPlan, map: &mut dyn FnMut(usize) -> usize) {
    each_value(plan, &mut |value| value.map_columns(map));
}

/// Visits the expressions over the frame that the clauses have.
fn each_value(plan: &mut SelectPlan, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut plan.aggregate {
        Some(aggregate) => {
            aggregate.keys.iter_mut().for_each(&mut *visit);
            for call in &mut aggregate.calls {
                call.arguments.iter_mut().for_each(&mut *visit);
                call.concat.order_by.iter_mut().for_each(|(key, _)| visit(key));
            }
            let inputs = aggregate.rollup.iter_mut().flat_map(|rollup| &mut rollup.inputs);
            inputs.for_each(visit);
        }
        None => {
            let values = match &mut plan.window {
                Some(window) => &mut window.inputs,
                None => &mut plan.projection,
            };
            values.iter_mut().chain(&mut plan.having).for_each(visit);
        }
    }
}

/// Maps the positions that conditions, subqueries and the wanted order read.
fn map_parts(parts: &mut BlockParts, map: &mut dyn FnMut(usize) -> usize) {
    each_condition(parts, &mut |condition| condition.map_columns(map));
    let lookups = parts.semijoins.iter_mut().filter_map(|semijoin| semijoin.lookup.as_mut());
    for apply in parts.applies.iter_mut().chain(lookups) {
        apply.outer_positions.iter_mut().for_each(|position| *position = map(*position));
    }
}

/// Visits the expressions of conditions, subqueries and the wanted order.
fn each_condition(parts: &mut BlockParts, visit: &mut dyn FnMut(&mut Expr)) {
    parts.conjuncts.iter_mut().for_each(&mut *visit);
    for source in &mut parts.sources {
        source.left_join.iter_mut().flatten().for_each(&mut *visit);
    }
    let lookups = parts.semijoins.iter_mut().filter_map(|semijoin| semijoin.lookup.as_mut());
    for apply in parts.applies.iter_mut().chain(lookups) {
        apply.kind.for_each_operand_mut(visit);
    }
    for (_, on) in parts.semijoins.iter_mut().filter_map(|semijoin| semijoin.table.as_mut()) {
        on.iter_mut().for_each(&mut *visit);
    }
    let keys = parts.wanted.iter_mut().flat_map(|wanted| &mut wanted.keys);
    keys.for_each(|(key, _)| visit(key));
}

/// Leaves out what nothing reads of a derived table that could not be merged, but whose rows are
/// those of its tables.
pub(super) fn blank_unused(table: &mut TableSource, used: &[bool]) {
    let TableSource::Derived(query) = table else { return };
    let QueryPlan::Select(plan) = &mut **query else { return };
    let limited = plan.limit.count.is_some() || plan.limit.offset.is_some();
    let sorted = !plan.order_by.is_empty();
    if plan.distinct || limited || sorted || plan.aggregate.is_some() || plan.window.is_some() {
        return;
    }
    for (value, used) in plan.projection.iter_mut().zip(used) {
        if !used && value.has_no_effect() && column_position(value).is_none() {
            let null = Literal::new(Value::Null, LiteralForm::Computed);
            value.kind = ExprKind::Literal(null);
        }
    }
}
