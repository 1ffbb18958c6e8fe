//! Dates and times that are computed once and kept: constants within conditions, and the values
//! of scalar subqueries.
//!
//! 1. A kept value is read as the operand of a comparison is (see [`crate::compared`]): what
//!    cannot be read is zero, not NULL.
//! 2. Variables that the expression does not set are constants.
//! 3. Of a condition the largest constant parts are kept; a condition that is constant as a
//!    whole, and one that is joined to others by AND or OR, is not.

use crate::builder::is_known_at_start;
use crate::compare::CompareRule;
use crate::compared;
use crate::expression::{Expr, ExprKind};
use crate::functions::{Frame, Function, resolve_as_first};
use types::{SqlError, ValueRef};

/// No name finds it, and it is not printed.
static KEPT: Function = Function::new("", 1, 1, resolve_as_first, eval);

fn eval(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    let value = &frame.arguments[0];
    compared::compared(value, CompareRule::of_type(&value.result), frame.context, frame.row)
}

impl Expr {
    /// The value of a scalar subquery; other than as it is only of dates and times.
    pub fn kept(self) -> Self {
        if !can_be_zero(&self) {
            return self;
        }
        let result = self.result;
        let kind = ExprKind::Call { function: &KEPT, arguments: vec![self] };
        Self { kind, result }
    }

    /// A condition whose constant dates and times are kept.
    pub fn with_kept_constants(mut self) -> Self {
        keep_within(&mut self);
        self
    }
}

/// Whether a value of dates or times may be NULL where a comparison reads it as zero.
fn can_be_zero(expr: &Expr) -> bool {
    expr.result.column_type.kind.is_temporal()
        && match &expr.kind {
            ExprKind::Cast { .. } | ExprKind::Case { .. } => true,
            ExprKind::Call { function, .. } => function.compared().is_some(),
            _ => false,
        }
}

fn keep_within(expr: &mut Expr) {
    let is_condition = matches!(
        expr.kind,
        ExprKind::And(_)
            | ExprKind::Or(_)
            | ExprKind::Row(_)
            | ExprKind::Compare { .. }
            | ExprKind::CompareRows { .. }
            | ExprKind::Between { .. }
            | ExprKind::In { .. }
    );
    if is_known_at_start(expr) {
        return;
    }
    expr.for_each_child_mut(&mut |child| {
        if !is_condition && can_be_zero(child) && is_known_at_start(child) {
            let empty = Expr::null_of(&child.result);
            *child = std::mem::replace(child, empty).kept();
        } else {
            keep_within(child);
        }
    });
}
