//! Generated columns and defaults that are expressions: kept as text, bound for each plan that
//! writes into their table.
//!
//! 1. The text of a definition is what SHOW CREATE TABLE shows; its names are the table's columns.
//! 2. Defaults are computed before generated columns, each kind in the order of the columns, and
//!    none reads a column that is computed later (4029).
//! 3. A text is put into a definition only if it reads as what it was made of.

use crate::bind::{Result, unsupported};
use crate::check::{parse_kept, result_columns};
use crate::context::PlanContext;
use crate::physical::{Computed, GeneratedColumn, Refused, ResultColumn};
use crate::prepared::filter;
use catalog::describe::quote_name;
use engine_api::{ColumnDefault, ColumnDefinition, TableDefinition};
use expr::{Expr, ExprKind};
use syntax::ast::{self, Expression};
use types::{SqlError, codes};

/// An expression as it is kept in a definition, bound to the columns of a row.
fn bind_text(context: &mut PlanContext<'_>, columns: &[ResultColumn], text: &str) -> Result<Expr> {
    filter(&parse_kept(&format!("({text})"))?, columns, context)
}

/// The default of a column that is an expression, over the row's columns by position.
pub(crate) fn default_expression(
    context: &mut PlanContext<'_>,
    table: &TableDefinition,
    text: &str,
) -> Result<Expr> {
    bind_text(context, &result_columns(&table.columns), text)
}

/// What rows of a table compute when they are written; none if they compute nothing.
pub fn computed(
    context: &mut PlanContext<'_>,
    table: &TableDefinition,
) -> Result<Option<Box<Computed>>> {
    if table.columns.iter().all(|column| column.computed_by().is_none()) {
        return Ok(None);
    }
    let is_indexed = |position: usize| {
        let mut parts = table.indexes.iter().flat_map(|index| &index.parts);
        parts.any(|part| part.column == position)
    };
    let checks = table.checks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    computed_columns(context, &table.columns, &is_indexed, &checks)
}

/// The same by parts of a definition: whether an index is over a column, the texts of CHECK
/// constraints.
pub fn computed_columns(
    context: &mut PlanContext<'_>,
    columns: &[ColumnDefinition],
    is_indexed: &dyn Fn(usize) -> bool,
    checks: &[&str],
) -> Result<Option<Box<Computed>>> {
    let bound_to = result_columns(columns);
    let mut made = Computed::default();
    // Those that are kept, or that something which is kept reads. What reads one comes behind it.
    let mut read: Vec<&str> = checks.to_vec();
    for (position, column) in columns.iter().enumerate().rev() {
        let (text, clause) = match &column.default {
            ColumnDefault::Expression(text) => (text, ComputedClause::Default),
            ColumnDefault::Generated { expression, .. } => (expression, ComputedClause::Generated),
            _ => continue,
        };
        let value = bind_text(context, &bound_to, text).map_err(|error| clause.named(error))?;
        let ColumnDefault::Generated { stored, .. } = &column.default else {
            made.defaults.insert(0, (position, value));
            continue;
        };
        let name = quote_name(&column.name);
        let is_read = read.iter().any(|text| text.contains(&name));
        let quiet = !*stored && !is_read && !is_indexed(position);
        if !quiet {
            read.push(text);
        }
        made.generated.insert(0, GeneratedColumn { column: position, value, quiet });
    }
    let is_empty = made.defaults.is_empty() && made.generated.is_empty();
    Ok((!is_empty).then(|| Box::new(made)))
}

/// Whether a value that is written for a generated column is one that it cannot have: all but
/// DEFAULT and NULL.
pub(crate) fn refused(
    table: &TableDefinition,
    column: usize,
    value: &Expression,
) -> Option<Refused> {
    let parameter = match value {
        Expression::Default(None) | Expression::Literal(ast::Literal::Null) => return None,
        Expression::Parameter(number) => Some(*number as usize),
        _ => None,
    };
    table.columns[column].is_generated().then_some(Refused { column, parameter })
}

/// Which of the columns of a query's rows are generated, so that their values are not taken.
pub fn refused_columns(table: &TableDefinition, columns: &[usize]) -> Vec<Refused> {
    let generated = columns.iter().filter(|column| table.columns[**column].is_generated());
    generated.map(|column| Refused { column: *column, parameter: None }).collect()
}

/// Which clause of a definition an expression stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputedClause {
    /// DEFAULT.
    Default,
    /// GENERATED ALWAYS AS.
    Generated,
}

impl ComputedClause {
    /// An error about a name, with the clause in it.
    fn named(self, mut error: SqlError) -> SqlError {
        let place = format!("in '{}'", self.name());
        error.message = error.message.replace("in 'WHERE'", &place);
        error
    }

    fn name(self) -> &'static str {
        match self {
            ComputedClause::Default => "DEFAULT",
            ComputedClause::Generated => "GENERATED ALWAYS AS",
        }
    }

    /// Error 1901.
    fn refuses(self, shown: &str, column: &str) -> SqlError {
        let arguments: [&dyn std::fmt::Display; 3] = [&shown, &self.name(), &column];
        SqlError::new(&codes::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED, &arguments)
    }

    /// The error for an expression that could not be bound.
    fn unbound(self, error: SqlError, expression: &Expression, column: &str) -> SqlError {
        if error.is(&codes::NOT_SUPPORTED_YET) {
            return self.refuses("select ...", column);
        }
        if error.is(&codes::UNKNOWN_SYSTEM_VARIABLE) {
            return self.refuses("@@...", column);
        }
        if error.is(&codes::INVALID_GROUP_FUNC_USE) {
            let text = expression.to_string().to_ascii_lowercase();
            let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
            return self.refuses(&format!("{name}()"), column);
        }
        if error.is(&codes::SP_DOES_NOT_EXIST)
            && let Some((_, rest)) = error.message.split_once('.')
            && let Some((name, _)) = rest.split_once(" does not")
        {
            return self.refuses(&format!("{}()", quote_name(name)), column);
        }
        self.named(error)
    }
}

/// The expression of the column at `position` as SHOW CREATE TABLE has it: 1901 for what cannot
/// stand there, 4029 for a column that is computed later.
pub fn computed_text(
    context: &mut PlanContext<'_>,
    columns: &[ColumnDefinition],
    position: usize,
    clause: ComputedClause,
    expression: &Expression,
) -> Result<String> {
    let own = &columns[position];
    if matches!(expression, Expression::Row(_)) {
        return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1]));
    }
    let bound_to = result_columns(columns);
    let bound = filter(expression, &bound_to, context);
    let bound = bound.map_err(|error| clause.unbound(error, expression, &own.name))?;
    if let Some(shown) = unfit(&bound, clause) {
        return Err(clause.refuses(&shown, &own.name));
    }
    let mut reads = Vec::new();
    bound.for_each_column(&mut |column| reads.push(column));
    for column in reads {
        check_read(columns, position, clause, column)?;
    }
    let text = bound.to_string();
    if bind_text(context, &bound_to, &text).map(|again| again.to_string()).as_ref() != Ok(&text) {
        return Err(unsupported(&format!("{} ({text})", clause.name())));
    }
    let parentheses = clause == ComputedClause::Default && bound.is_infix();
    Ok(if parentheses { format!("({text})") } else { text })
}

/// Whether the column at `position` may read the one at `column`.
fn check_read(
    columns: &[ColumnDefinition],
    position: usize,
    clause: ComputedClause,
    column: usize,
) -> Result<()> {
    let (own, read) = (&columns[position], &columns[column]);
    let is_stored = matches!(own.default, ColumnDefault::Generated { stored, .. } if stored);
    if read.auto_increment && (is_stored || clause == ComputedClause::Default) {
        return Err(clause.refuses("AUTO_INCREMENT", &read.name));
    }
    let is_later = match clause {
        ComputedClause::Generated => read.is_generated() && column >= position,
        ComputedClause::Default => {
            read.is_generated() || read.computed_by().is_some() && column >= position
        }
    };
    if is_later {
        let arguments: [&dyn std::fmt::Display; 2] = [&own.name, &read.name];
        return Err(SqlError::new(&codes::EXPRESSION_REFERS_TO_UNINIT_FIELD, &arguments));
    }
    Ok(())
}

/// What of an expression cannot stand in a definition.
fn unfit(expr: &Expr, clause: ComputedClause) -> Option<String> {
    let own = match &expr.kind {
        ExprKind::External(_) => Some("select ...".to_owned()),
        ExprKind::Parameter(_) => Some("?".to_owned()),
        ExprKind::Assign(..) => Some(expr.to_string()),
        ExprKind::UserVariable(name) if clause == ComputedClause::Generated => {
            Some(format!("@`{name}`"))
        }
        ExprKind::Call { function, .. }
            if clause == ComputedClause::Generated && DEPENDENT.contains(&function.name()) =>
        {
            let text = expr.to_string();
            Some(format!("{}()", text.split('(').next().unwrap_or_default()))
        }
        _ => None,
    };
    let mut found = own;
    expr.for_each_child(&mut |child| {
        if found.is_none() {
            found = unfit(child, clause);
        }
    });
    found
}

/// Functions whose value is another one each time, or depends on the session.
const DEPENDENT: &[&str] = &[
    "rand",
    "uuid",
    "uuid_short",
    "now",
    "current_timestamp",
    "localtime",
    "localtimestamp",
    "curdate",
    "current_date",
    "curtime",
    "current_time",
    "sysdate",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "connection_id",
    "user",
    "current_user",
    "current_role",
    "session_user",
    "system_user",
    "database",
    "schema",
    "version",
    "last_insert_id",
    "row_count",
    "found_rows",
    "sleep",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
    "benchmark",
    "load_file",
    "unix_timestamp",
    "from_unixtime",
    "random_bytes",
];
