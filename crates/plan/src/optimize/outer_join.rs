//! A left join whose NULL rows WHERE refuses is an inner join.

use super::{BlockParts, column_position};
use crate::bind::table::Source;
use crate::physical::{SelectPlan, TableSource};
use expr::{CompareOperator, Expr, ExprKind, Test};

/// Marks such joins inner, and describes the columns of their tables as the tables do.
pub(super) fn settle(plan: &mut SelectPlan, parts: &mut BlockParts) {
    let is_left: Vec<bool> = parts.sources.iter().map(|it| it.left_join.is_some()).collect();
    if !is_left.contains(&true) {
        return;
    }
    simplify(&mut parts.sources, &mut parts.conjuncts);
    if plan.aggregate.is_some() || plan.window.is_some() {
        return;
    }
    let is_inner = parts
        .sources
        .iter()
        .zip(is_left)
        .filter(|(source, was_left)| *was_left && source.left_join.is_none());
    for (source, _) in is_inner {
        let TableSource::Base(table) = &source.table else { continue };
        let columns = &table.0.definition().columns;
        for (shown, value) in plan.columns.iter_mut().zip(&plan.projection) {
            let own = column_position(value).and_then(|it| it.checked_sub(source.first));
            if let Some(column) = own.and_then(|own| columns.get(own)) {
                shown.result.nullable = column.nullable;
            }
        }
    }
}

/// Marks such joins inner; their conditions are added to `conjuncts`.
pub(super) fn simplify(sources: &mut [Source], conjuncts: &mut Vec<Expr>) {
    loop {
        let found = sources.iter_mut().find(|source| {
            source.left_join.is_some()
                && conjuncts.iter().any(|conjunct| {
                    refuses_nulls(conjunct, source.first, source.first + source.width)
                })
        });
        let Some(source) = found else { return };
        conjuncts.extend(source.left_join.take().unwrap_or_default());
    }
}

/// Whether a condition cannot be true when all columns in `first..end` are NULL.
fn refuses_nulls(condition: &Expr, first: usize, end: usize) -> bool {
    let is_null = |expr: &Expr| is_null_then(expr, first, end);
    match &condition.kind {
        ExprKind::Compare { operator, left, right, .. } => {
            *operator != CompareOperator::NullSafeEqual && (is_null(left) || is_null(right))
        }
        ExprKind::Between { operand, negated: false, .. }
        | ExprKind::In { operand, negated: false, .. }
        | ExprKind::Like { operand, .. } => is_null(operand),
        ExprKind::Is { operand, test: Test::Null, negated: true }
        | ExprKind::Is { operand, test: Test::True, negated: false } => is_null(operand),
        ExprKind::Or(list) => list.iter().all(|branch| refuses_nulls(branch, first, end)),
        ExprKind::And(list) => list.iter().any(|branch| refuses_nulls(branch, first, end)),
        ExprKind::Column { .. }
        | ExprKind::Arithmetic { .. }
        | ExprKind::Cast { .. }
        | ExprKind::Call { .. } => is_null(condition),
        ExprKind::Not(operand) => is_null(operand),
        _ => false,
    }
}

/// Functions that are NULL when any of their arguments is.
const STRICT: &[&str] = &[
    "-",
    "~",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "abs",
    "sign",
    "ceiling",
    "floor",
    "round",
    "truncate",
    "sqrt",
    "bit_count",
    "concat",
    "length",
    "char_length",
    "bit_length",
    "ascii",
    "ord",
    "lower",
    "upper",
    "left",
    "right",
    "substring",
    "substring_index",
    "trim",
    "ltrim",
    "rtrim",
    "lpad",
    "rpad",
    "repeat",
    "space",
    "reverse",
    "replace",
    "instr",
    "strcmp",
    "hex",
    "unhex",
    "to_base64",
    "from_base64",
    "md5",
    "sha1",
    "crc32",
    "soundex",
    "regexp",
    "year",
    "quarter",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "microsecond",
    "date",
    "last_day",
    "to_days",
    "dayofweek",
    "dayofyear",
    "weekday",
    "time_to_sec",
    "sec_to_time",
];

/// Whether an expression is NULL when all columns in `first..end` are.
fn is_null_then(expr: &Expr, first: usize, end: usize) -> bool {
    if let Some(position) = column_position(expr) {
        return (first..end).contains(&position);
    }
    match &expr.kind {
        ExprKind::Arithmetic { left, right, .. } => {
            is_null_then(left, first, end) || is_null_then(right, first, end)
        }
        ExprKind::Cast { operand, .. } | ExprKind::ConvertText(operand) => {
            is_null_then(operand, first, end)
        }
        ExprKind::Call { function, arguments } if STRICT.contains(&function.name()) => {
            arguments.iter().any(|argument| is_null_then(argument, first, end))
        }
        _ => false,
    }
}
