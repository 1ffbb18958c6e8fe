//! `a = b AND a = 5` also means `b = 5`: an access path for `b` that needs no row of `a`.

use super::column_position;
use crate::bind::order::same;
use expr::{Builder, CompareOperator, CompareRule, Expr, ExprKind};
use types::SqlError;

/// Most conditions that are added.
const ADDED_MAX: usize = 64;

/// Adds what equalities of columns imply for constants.
pub(super) fn equalities(builder: &Builder<'_>, conjuncts: &mut Vec<Expr>) -> Result<(), SqlError> {
    let mut next = 0;
    let first_added = conjuncts.len();
    while next < conjuncts.len() && conjuncts.len() < first_added + ADDED_MAX {
        let implied = implied_by(&conjuncts[next], conjuncts);
        for (column, value) in implied {
            let known = conjuncts.iter().any(|known| match equality(known) {
                Some((left, right)) => {
                    (same(left, &column) && same(unconverted(right), &value))
                        || (same(right, &column) && same(unconverted(left), &value))
                }
                None => false,
            });
            if !known {
                conjuncts.push(builder.compare(CompareOperator::Equal, column, value)?);
            }
        }
        next += 1;
    }
    Ok(())
}

fn equality(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match &expr.kind {
        // Who is near to a number is not near to all that are near to it.
        ExprKind::Compare { rule: CompareRule::Near(_), .. } => None,
        ExprKind::Compare { operator: CompareOperator::Equal, left, right, .. } => {
            Some((left, right))
        }
        _ => None,
    }
}

/// A column and a constant, if the condition equates them.
fn constant_equality(expr: &Expr) -> Option<(&Expr, &Expr)> {
    let (left, right) = equality(expr)?;
    if column_position(left).is_some() {
        Some((left, constant(right)?))
    } else {
        column_position(right)?;
        Some((right, constant(left)?))
    }
}

/// A literal or a parameter.
fn constant(expr: &Expr) -> Option<&Expr> {
    let expr = unconverted(expr);
    matches!(expr.kind, ExprKind::Literal(_) | ExprKind::Parameter(_)).then_some(expr)
}

/// What it was before a comparison converted it, which the next comparison does again.
fn unconverted(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Converted { original, rule: CompareRule::Whole, value: None } => original,
        _ => expr,
    }
}

/// The equalities that a condition `column = constant` implies for columns equal to it.
fn implied_by(expr: &Expr, conjuncts: &[Expr]) -> Vec<(Expr, Expr)> {
    let Some((column, constant)) = constant_equality(expr) else { return Vec::new() };
    let partners = conjuncts.iter().filter_map(|other| {
        let (left, right) = equality(other)?;
        column_position(left)?;
        column_position(right)?;
        let partner = if same(left, column) {
            right
        } else if same(right, column) {
            left
        } else {
            return None;
        };
        let (a, b) = (&partner.result.column_type, &column.result.column_type);
        let alike = a.kind == b.kind && a.collation == b.collation && a.unsigned == b.unsigned;
        alike.then(|| (partner.clone(), constant.clone()))
    });
    partners.collect()
}
