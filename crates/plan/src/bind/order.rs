//! ORDER BY and GROUP BY items.

use super::*;
use expr::{Expr, ExprKind};

/// An item of ORDER BY or GROUP BY, bound.
pub(super) enum Ordered {
    /// A position in the select list, from 0.
    Item(usize),
    /// An expression.
    Value(Expr),
    /// A constant: orders nothing.
    Nothing,
}

impl<'q> Binder<'_, '_, 'q> {
    /// Binds an item; `items` are the select list's values.
    pub(super) fn bind_order_item(
        &mut self,
        expression: &'q ast::Expression,
        clause: Clause,
        items: &[Expr],
    ) -> Result<Ordered> {
        let ordered = self.bind_item(expression, clause, items)?;
        if clause != Clause::OrderBy {
            return Ok(ordered);
        }
        let bound = match &ordered {
            Ordered::Item(position) => &items[*position],
            Ordered::Value(bound) => bound,
            Ordered::Nothing => return Ok(ordered),
        };
        if bound.result.column_type.members.is_none() {
            return Ok(ordered);
        }
        Ok(Ordered::Value(self.builder().member_number(bound.clone())?))
    }

    fn bind_item(
        &mut self,
        expression: &'q ast::Expression,
        clause: Clause,
        items: &[Expr],
    ) -> Result<Ordered> {
        self.block().clause = clause;
        if let Some(number) = self.position(expression) {
            let position = (number as u32 as usize).wrapping_sub(1);
            if position < items.len() {
                return Ok(Ordered::Item(position));
            }
            return Err(SqlError::new(&codes::BAD_FIELD_ERROR, &[&number, &clause.name()]));
        }
        match expression {
            ast::Expression::Column(name) if clause == Clause::OrderBy => {
                match self.bind_alias(name) {
                    Some(bound) => Ok(item_or_value(bound, items)),
                    None => Ok(item_or_value(self.bind_column(name)?, items)),
                }
            }
            expression => {
                let bound = self.bind_scalar(expression)?;
                if matches!(bound.kind, ExprKind::Literal(_)) {
                    return Ok(Ordered::Nothing);
                }
                Ok(item_or_value(bound, items))
            }
        }
    }
}

impl Binder<'_, '_, '_> {
    /// The position of an item that a whole number means; a parameter with such a value counts.
    pub(super) fn position(&mut self, expression: &ast::Expression) -> Option<i32> {
        let ast::Expression::Parameter(number) = expression else {
            return position(expression);
        };
        self.described = true;
        match self.bind_parameter(*number).kind {
            ExprKind::Literal(expr::Literal { value: types::Value::Int(number), .. }) => {
                Some(number as i32)
            }
            _ => None,
        }
    }
}

/// The position of an item that a whole number means, of which the server takes 32 bits.
fn position(expression: &ast::Expression) -> Option<i32> {
    use ast::{Expression as E, Literal as L};
    match expression {
        E::Literal(L::Integer(number)) => Some(*number as i32),
        E::Literal(L::Boolean(truth)) => Some(i32::from(*truth)),
        E::Unary(ast::UnaryOperator::Minus, inner) => match &**inner {
            E::Literal(L::Integer(number)) => Some((*number as i32).wrapping_neg()),
            _ => None,
        },
        _ => None,
    }
}

fn item_or_value(bound: Expr, items: &[Expr]) -> Ordered {
    match items.iter().position(|item| same(item, &bound)) {
        Some(position) => Ordered::Item(position),
        None => Ordered::Value(bound),
    }
}

/// Whether two expressions are written the same way over the same columns.
pub(crate) fn same(one: &Expr, other: &Expr) -> bool {
    match (&one.kind, &other.kind) {
        (ExprKind::Column { position: a, .. }, ExprKind::Column { position: b, .. }) => a == b,
        (ExprKind::Column { .. }, _) | (_, ExprKind::Column { .. }) => false,
        (a, b) if std::mem::discriminant(a) != std::mem::discriminant(b) => false,
        (a, b) => format!("{a:?}") == format!("{b:?}"),
    }
}
