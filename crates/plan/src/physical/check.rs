//! What rows must fulfil that are written.

use expr::Expr;

/// What a row must fulfil that is written.
#[derive(Clone, Debug)]
pub struct RowCheck {
    /// Refuses a row when it is false, not when it is NULL.
    pub condition: Expr,
    /// What the row breaks then.
    pub kind: RowCheckKind,
}

/// Kinds of [`RowCheck`].
#[derive(Clone, Debug)]
pub enum RowCheckKind {
    /// A CHECK constraint of this name.
    Constraint(String),
    /// No partition takes the row; the value that an error shows.
    NoPartition(Option<Expr>),
    /// It does not belong into the partitions that the statement names.
    PartitionSet,
}

/// WITH CHECK OPTION: conditions over the table's columns.
#[derive(Clone, Debug)]
pub struct ViewCheck {
    /// All must be true.
    pub conditions: Vec<Expr>,
    /// The view's database.
    pub schema: String,
    /// The view.
    pub name: String,
}
