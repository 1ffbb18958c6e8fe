//! Conditions of a block that go into its derived tables, which are planned anew with them.
//!
//! 1. A condition goes into a grouped or DISTINCT table only if it reads nothing but columns by
//!    which rows are grouped: it then leaves whole groups.
//! 2. It goes into the blocks of a set operation one by one, with their values in the place of the
//!    columns; it stays outside unless all of them have taken it. What comes of set operations of
//!    equal rows does not depend on when others are left out, whatever the operation.
//! 3. What would be evaluated another number of times with another outcome (RAND(), variables,
//!    subqueries) stays where it is, as does everything where rows are locked.

use super::merge::Unplanned;
use super::{BlockParts, plan_block};
use crate::context::PlanContext;
use crate::physical::{QueryPlan, SelectPlan, SetPlan, TableSource};
use engine_api::LockMode;
use expr::{Expr, ExprKind};
use std::ops::Range;
use std::sync::Arc;
use types::SqlError;

/// Plans those derived tables anew that conditions of the block go into.
pub(super) fn push_down(
    context: &PlanContext<'_>,
    plan: &SelectPlan,
    parts: &mut BlockParts,
) -> Result<(), SqlError> {
    if plan.lock != LockMode::None {
        return Ok(());
    }
    for source in &mut parts.sources {
        let Some(inner) = source.unplanned.clone().filter(|_| source.left_join.is_none()) else {
            continue;
        };
        let grouped = inner.plan.aggregate.as_ref().is_none_or(|it| !it.keys.is_empty());
        if !inner.gives_all_rows() || !grouped {
            continue;
        }
        let own = source.first..source.first + source.width;
        let into = |conjunct: &Expr| {
            let (mut reads, mut fits) = (false, true);
            conjunct.for_each_column(&mut |position| {
                reads = true;
                fits &=
                    own.contains(&position) && inner.grouped_column(position - own.start).is_some();
            });
            reads && fits
        };
        if !parts.conjuncts.iter().any(into) {
            continue;
        }
        let all = std::mem::take(&mut parts.conjuncts);
        let (pushed, kept): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(into);
        parts.conjuncts = kept;
        let mut inside = Unplanned::clone(&inner);
        for mut conjunct in pushed {
            conjunct.map_columns(&mut |position| {
                inner.grouped_column(position - own.start).unwrap_or(position)
            });
            inside.parts.conjuncts.push(conjunct);
        }
        source.unplanned = Some(Arc::new(inside.clone()));
        let planned = plan_block(context, inside.plan, inside.parts)?;
        let planned = QueryPlan::Select(Box::new(planned));
        source.table = TableSource::Derived(Box::new(planned));
    }
    Ok(())
}

/// Plans those blocks of set operations anew that conditions of the block go into.
pub(super) fn into_branches(
    context: &PlanContext<'_>,
    plan: &SelectPlan,
    parts: &mut BlockParts,
) -> Result<(), SqlError> {
    if plan.lock != LockMode::None {
        return Ok(());
    }
    let conjuncts = &mut parts.conjuncts;
    for source in &mut parts.sources {
        let own = source.first..source.first + source.width;
        let TableSource::Derived(query) = &mut source.table else { continue };
        let QueryPlan::Set(set) = &mut **query else { continue };
        let takes = set.recursion.is_none() && source.branches.len() == set.rest.len() + 1;
        if !takes || source.left_join.is_some() {
            continue;
        }
        let mut taken = vec![0; conjuncts.len()];
        for (number, branch) in source.branches.iter_mut().enumerate() {
            let Some(inner) = branch else { continue };
            let mut inside = Unplanned::clone(inner);
            let before = inside.parts.conjuncts.len();
            for (conjunct, taken) in conjuncts.iter().zip(&mut taken) {
                if let Some(own) = inside_of(conjunct, &own, inner) {
                    inside.parts.conjuncts.push(own);
                    *taken += 1;
                }
            }
            if inside.parts.conjuncts.len() > before {
                *branch = Some(Arc::new(inside.clone()));
                let planned = plan_block(context, inside.plan, inside.parts)?;
                *query_of(set, number) = QueryPlan::Select(Box::new(planned));
            }
        }
        let mut taken = taken.into_iter();
        conjuncts.retain(|_| taken.next() != Some(source.branches.len()));
    }
    Ok(())
}

fn query_of(set: &mut SetPlan, number: usize) -> &mut QueryPlan {
    match number.checked_sub(1) {
        None => &mut set.first,
        Some(at) => &mut set.rest[at].1,
    }
}

/// A condition on the columns of a set operation as one over a block of it, if it may go there.
fn inside_of(conjunct: &Expr, own: &Range<usize>, inner: &Unplanned) -> Option<Expr> {
    if !inner.gives_all_rows() || !is_repeatable(conjunct) {
        return None;
    }
    let is_grouped = inner.plan.aggregate.is_some();
    if inner.plan.aggregate.as_ref().is_some_and(|it| it.keys.is_empty()) {
        return None;
    }
    let (mut reads, mut fits) = (false, true);
    conjunct.for_each_column(&mut |position| {
        reads = true;
        fits &= own.contains(&position) && {
            let column = position - own.start;
            match is_grouped {
                true => inner.grouped_column(column).is_some(),
                false => inner.plan.projection.get(column).is_some_and(|value| {
                    let mut known = is_repeatable(value);
                    value.for_each_column(&mut |at| known &= inner.of_source(at).is_some());
                    known
                }),
            }
        };
    });
    if !reads || !fits {
        return None;
    }
    let mut condition = conjunct.clone();
    if is_grouped {
        condition.map_columns(&mut |position| {
            inner.grouped_column(position - own.start).unwrap_or(position)
        });
    } else {
        substitute(&mut condition, &|position| &inner.plan.projection[position - own.start]);
    }
    Some(condition)
}

/// Puts values in the place of columns.
fn substitute<'v>(expr: &mut Expr, value: &impl Fn(usize) -> &'v Expr) {
    if let ExprKind::Column { position, .. } = expr.kind {
        *expr = value(position).clone();
        return;
    }
    expr.for_each_child_mut(&mut |child| substitute(child, value));
}

/// Whether it has the same value however often it is evaluated for a row.
fn is_repeatable(expr: &Expr) -> bool {
    let mut repeatable = match &expr.kind {
        ExprKind::External(_) | ExprKind::UserVariable(_) | ExprKind::Assign(..) => false,
        ExprKind::Call { function, .. } => !function.is_volatile(),
        _ => true,
    };
    expr.for_each_child(&mut |child| repeatable &= is_repeatable(child));
    repeatable
}
