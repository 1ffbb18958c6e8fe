//! Columns that are computed from the row that is written.

use expr::Expr;

/// Columns of a table that are computed from the row that is written. The frame of the expressions
/// is that row.
#[derive(Clone, Debug, Default)]
pub struct Computed {
    /// Columns whose default is an expression, in order.
    pub defaults: Vec<(usize, Expr)>,
    /// Generated columns, in order.
    pub generated: Vec<GeneratedColumn>,
    /// What the statement gives generated columns, where that is not said for each row.
    pub refused: Vec<Refused>,
    /// What ON DUPLICATE KEY UPDATE gives generated columns.
    pub refused_on_duplicate: Vec<Refused>,
}

/// A generated column.
#[derive(Clone, Debug)]
pub struct GeneratedColumn {
    /// Position in the table.
    pub column: usize,
    /// Its value.
    pub value: Expr,
    /// VIRTUAL, and nothing that is kept depends on it: a value that does not fit the column is
    /// adjusted without a word.
    pub quiet: bool,
}

/// A value that a statement gives a generated column: not taken, 1906.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// Position in the table.
    pub column: usize,
    /// The parameter that the value is: NULL is not refused.
    pub parameter: Option<usize>,
}
