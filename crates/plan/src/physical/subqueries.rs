//! Subqueries of an INSERT beside those of its source, and those of ON.

use super::Apply;
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
