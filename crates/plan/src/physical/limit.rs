//! LIMIT.

use expr::Expr;

/// LIMIT; expressions without columns, evaluated once.
#[derive(Clone, Debug, Default)]
pub struct LimitPlan {
    /// Most rows.
    pub count: Option<Expr>,
    /// Rows skipped.
    pub offset: Option<Expr>,
}
