//! A left join whose NULL rows WHERE refuses is an inner join.

use super::conjuncts::never_true;
use super::{BlockParts, column_position};
use crate::bind::table::Source;
use crate::physical::{SelectPlan, TableSource};
use expr::{CompareOperator, Expr, ExprKind, Test};

/// Marks such joins inner, and describes the columns of their tables as the tables do; not beside
/// a condition that no row meets, as MariaDB, which no longer looks at the others then.
pub(super) fn settle(plan: &mut SelectPlan, parts: &mut BlockParts) {
    let is_left: Vec<bool> = parts.sources.iter().map(|it| it.left_join.is_some()).collect();
    if !is_left.contains(&true) {
        return;
    }
    let is_empty = parts.conjuncts.iter().any(never_true);
    simplify(&mut parts.sources, &mut parts.conjuncts);
    if is_empty || plan.aggregate.is_some() || plan.window.is_some() {
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
        | ExprKind::In { operand, negated: false, .. } => is_null(operand),
        ExprKind::Like { operand, pattern, .. } => is_null(operand) || is_null(pattern),
        ExprKind::Is { operand, test: Test::Null, negated: true }
        | ExprKind::Is { operand, test: Test::True, negated: false } => is_null(operand),
        ExprKind::Or(list) => {
            list.iter().all(|branch| never_true(branch) || refuses_nulls(branch, first, end))
        }
        ExprKind::And(list) => list.iter().any(|branch| refuses_nulls(branch, first, end)),
        ExprKind::Column { .. }
        | ExprKind::Arithmetic { .. }
        | ExprKind::Cast { .. }
        | ExprKind::DateArithmetic { .. }
        | ExprKind::UnitCall { .. }
        | ExprKind::Call { .. } => is_null(condition),
        ExprKind::Not(operand) => is_null(operand),
        _ => false,
    }
}

/// Functions that are NULL when any of their arguments is.
const STRICT: &[&str] = &[
    "&",
    "-",
    "<<",
    ">>",
    "^",
    "abs",
    "addtime",
    "ascii",
    "atan",
    "atan2",
    "bin",
    "bit_count",
    "bit_length",
    "ceiling",
    "char_length",
    "concat",
    "conv",
    "cos",
    "crc32",
    "date",
    "date_format",
    "datediff",
    "day",
    "dayname",
    "dayofweek",
    "dayofyear",
    "degrees",
    "exp",
    "find_in_set",
    "floor",
    "format",
    "from_base64",
    "from_days",
    "from_unixtime",
    "greatest",
    "hex",
    "hour",
    "inet_aton",
    "inet_ntoa",
    "insert",
    "instr",
    "json_compact",
    "json_contains",
    "json_depth",
    "json_detailed",
    "json_keys",
    "json_length",
    "json_loose",
    "json_merge_patch",
    "json_merge_preserve",
    "json_normalize",
    "json_quote",
    "json_search",
    "json_type",
    "json_unquote",
    "json_valid",
    "last_day",
    "least",
    "left",
    "length",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "makedate",
    "maketime",
    "md5",
    "microsecond",
    "minute",
    "month",
    "monthname",
    "oct",
    "ord",
    "period_add",
    "period_diff",
    "pow",
    "quarter",
    "radians",
    "regexp",
    "regexp_instr",
    "regexp_replace",
    "regexp_substr",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
    "rtrim",
    "sec_to_time",
    "second",
    "sha1",
    "sha2",
    "sign",
    "sin",
    "soundex",
    "space",
    "sqrt",
    "strcmp",
    "substring",
    "substring_index",
    "subtime",
    "tan",
    "time_format",
    "time_to_sec",
    "timediff",
    "to_base64",
    "to_days",
    "to_seconds",
    "trim",
    "truncate",
    "unhex",
    "upper",
    "week",
    "weekday",
    "weekofyear",
    "year",
    "yearweek",
    "|",
    "~",
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
        ExprKind::DateArithmetic { base, amount, .. } => {
            is_null_then(base, first, end) || is_null_then(amount, first, end)
        }
        ExprKind::UnitCall { arguments, .. } => {
            arguments.iter().any(|argument| is_null_then(argument, first, end))
        }
        ExprKind::Call { function, arguments } if STRICT.contains(&function.name()) => {
            arguments.iter().any(|argument| is_null_then(argument, first, end))
        }
        _ => false,
    }
}
