//! MIN and MAX at the end of an index: the aggregate is taken over a derived table of the one
//! row that comes first in the column's order.

use super::{BlockParts, WantedOrder, column_position};
use crate::bind::set::empty_select;
use crate::bind::table::Source;
use crate::context::PlanContext;
use crate::physical::{
    Access, LimitPlan, QueryPlan, ResultColumn, SelectPlan, SortKey, TableSource, TableStep,
};
use engine_api::{LockMode, ScanDirection};
use expr::aggregate::AggregateFunction;
use expr::{Builder, Expr, Test};
use types::SqlError;

/// Alias of the derived table.
pub(crate) const EXTREME: &str = "<extreme>";

/// The block with its one table read only at one end of an index, if that can be done.
pub(super) fn plan(
    context: &PlanContext<'_>,
    plan: &SelectPlan,
    sources: &[Source],
    conjuncts: &[Expr],
) -> Result<Option<SelectPlan>, SqlError> {
    let Some((column, descending)) = extreme_column(plan, sources) else { return Ok(None) };
    let builder = Builder::new(&context.eval.settings);
    let mut inner = empty_select(vec![column.clone()], vec![named(&column)]);
    inner.outer_columns = plan.outer_columns;
    inner.frame_columns = plan.frame_columns;
    inner.limit = LimitPlan { count: Some(builder.integer(1)), offset: None };
    inner.order_by = vec![SortKey { position: 0, descending }];
    let mut conjuncts = conjuncts.to_vec();
    conjuncts.push(builder.is(column.clone(), Test::Null, true)?);
    let wanted = Some(WantedOrder { keys: vec![(column.clone(), descending)] });
    let sources = sources.to_vec();
    let parts = BlockParts { sources, conjuncts, wanted, ..BlockParts::default() };
    let inner = super::plan_block(context, inner, parts)?;
    let in_order = matches!(
        inner.tables.first(),
        Some(TableStep { access: Access::Scan { .. } | Access::Ranges { .. }, .. })
    ) && inner.order_by.is_empty();
    if !in_order || inner.outer_columns != 0 {
        return Ok(None);
    }
    let mut outer = plan.clone();
    if let Some(aggregate) = &mut outer.aggregate {
        for argument in &mut aggregate.calls[0].arguments {
            argument.map_columns(&mut |_| 0);
        }
    }
    outer.frame_columns = 1;
    outer.tables = vec![TableStep {
        source: TableSource::Derived(Box::new(QueryPlan::Select(Box::new(inner)))),
        alias: EXTREME.to_string(),
        first_position: 0,
        access: Access::Scan { index: 0, direction: ScanDirection::Forward, covering: false },
        left_join: false,
        condition: None,
        tested: None,
        late: None,
        applies: Vec::new(),
        filter: None,
        lock: LockMode::None,
        rows_estimate: 1,
        selectivity: 1.0,
        possible_keys: Vec::new(),
    }];
    Ok(Some(outer))
}

/// The column whose extreme is the block's one aggregate, and whether it is the largest.
fn extreme_column(plan: &SelectPlan, sources: &[Source]) -> Option<(Expr, bool)> {
    let aggregate = plan.aggregate.as_ref()?;
    let [source] = sources else { return None };
    let [call] = &aggregate.calls[..] else { return None };
    let plain = aggregate.keys.is_empty()
        && aggregate.carried.is_empty()
        && plan.outer_columns == 0
        && plan.lock == LockMode::None
        && plan.frame_columns == source.width
        && matches!(source.table, TableSource::Base(_));
    let [argument] = &call.arguments[..] else { return None };
    column_position(argument)?;
    // The values of ENUM and SET are compared as text here, their keys are numbers.
    let plain = plain && argument.result.column_type.members.is_none();
    match call.function {
        AggregateFunction::Minimum if plain => Some((argument.clone(), false)),
        AggregateFunction::Maximum if plain => Some((argument.clone(), true)),
        _ => None,
    }
}

fn named(column: &Expr) -> ResultColumn {
    ResultColumn {
        name: "value".to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        schema: String::new(),
        result: column.result,
        flags: 0,
    }
}
