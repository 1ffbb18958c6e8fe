//! Subqueries of an INSERT beside those of its source, those of ON, and those in SET of an UPDATE.

use super::{Apply, SelectPlan};
use expr::Expr;

/// Subqueries whose values stand behind the other columns of a frame, in their order.
#[derive(Clone, Debug, Default)]
pub struct InsertSubqueries {
    /// For each assignment of ON DUPLICATE KEY UPDATE those that it reads: they are run when it is
    /// its turn, over the row as changed so far.
    pub on_duplicate: Vec<Vec<Apply>>,
    /// Those of RETURNING, over the row as inserted.
    pub returning: Vec<Apply>,
}

/// Conditions of ON with their subqueries.
#[derive(Clone, Debug)]
pub struct LateCondition {
    /// Subqueries that read the row, filled in when it has passed the other conditions.
    pub applies: Vec<Apply>,
    /// What it must then pass.
    pub condition: Expr,
}

impl InsertSubqueries {
    /// None if there are none.
    pub(crate) fn if_any(self) -> Option<Box<Self>> {
        let is_empty = self.on_duplicate.is_empty() && self.returning.is_empty();
        (!is_empty).then(|| Box::new(self))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Apply> {
        self.on_duplicate.iter().flatten().chain(&self.returning)
    }
}

impl SelectPlan {
    /// Marks the subqueries that `value` needs and that read one of the positions in `assigned`
    /// ([`Apply::is_late`]); their positions, in the order in which they can be run.
    pub(crate) fn mark_late(&mut self, value: &Expr, assigned: &[usize]) -> Vec<usize> {
        let needed = self.positions_read(value);
        let mut late = Vec::new();
        if assigned.is_empty() {
            return late;
        }
        let applies = self.tables.iter_mut().flat_map(|step| &mut step.applies);
        for apply in applies.filter(|apply| needed.contains(&apply.position)) {
            let mut is_late = false;
            apply.for_each_read(&mut |at| is_late |= assigned.contains(&at) || late.contains(&at));
            if is_late {
                apply.is_late = true;
                late.push(apply.position);
            }
        }
        late
    }

    /// The positions of the frame that a value reads, also through subqueries.
    pub(crate) fn positions_read(&self, value: &Expr) -> Vec<usize> {
        let mut read = Vec::new();
        value.for_each_column(&mut |position| read.push(position));
        let applies: Vec<&Apply> = self.applies().collect();
        // A subquery is read by the values, and by those that can be run behind it.
        for apply in applies.into_iter().rev() {
            if read.contains(&apply.position) {
                apply.for_each_read(&mut |position| read.push(position));
            }
        }
        read
    }

    /// For each list of positions ([`super::UpdatePlan::late`]) the subqueries that they are of.
    pub fn late_subqueries(&self, late: &[Vec<usize>]) -> Vec<Vec<&Apply>> {
        let of = |&position: &usize| self.applies().find(|apply| apply.position == position);
        late.iter().map(|positions| positions.iter().filter_map(of).collect()).collect()
    }
}
