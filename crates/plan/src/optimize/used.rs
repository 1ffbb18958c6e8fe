//! Which columns of each source a block reads, for covering indexes.

use super::WantedOrder;
use super::conjuncts::Conjunct;
use crate::bind::table::Source;
use crate::physical::{Apply, SelectPlan};
use expr::Expr;

/// For every source, for every column, whether it is read.
pub(super) fn columns(
    plan: &SelectPlan,
    sources: &[Source],
    conjuncts: &[Conjunct],
    applies: &[Apply],
    wanted: Option<&WantedOrder>,
) -> Vec<Vec<bool>> {
    let mut frame = vec![false; plan.frame_columns];
    let mut mark = |position: usize| {
        if let Some(read) = frame.get_mut(position) {
            *read = true;
        }
    };
    let mut read = |expr: &Expr| expr.for_each_column(&mut mark);
    conjuncts.iter().for_each(|conjunct| read(&conjunct.expr));
    sources.iter().flat_map(|source| source.left_join.iter().flatten()).for_each(&mut read);
    match &plan.aggregate {
        Some(aggregate) => {
            aggregate.keys.iter().for_each(&mut read);
            for call in &aggregate.calls {
                call.arguments.iter().for_each(&mut read);
                call.concat.order_by.iter().for_each(|(key, _)| read(key));
            }
        }
        None => plan.frame_values().for_each(&mut read),
    }
    wanted.iter().flat_map(|wanted| &wanted.keys).for_each(|(key, _)| read(key));
    for apply in applies {
        apply.for_each_operand(&mut read);
    }
    for position in applies.iter().flat_map(|apply| &apply.outer_positions) {
        mark(*position);
    }
    sources.iter().map(|s| frame[s.first..s.first + s.width].to_vec()).collect()
}
