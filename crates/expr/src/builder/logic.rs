//! NOT, AND, OR and XOR.

use super::{Builder, scalar, text_as_double};
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};
use crate::result_type::ResultType;
use types::{SqlError, Value};

impl Builder<'_> {
    /// `NOT operand`. A comparison is turned round instead, and TRUE and FALSE are each other.
    pub fn not(&self, operand: Expr) -> Result<Expr, SqlError> {
        if let ExprKind::Literal(Literal { value: Value::Int(truth), form, .. }) = &operand.kind
            && matches!(form, LiteralForm::Boolean)
        {
            return Ok(self.boolean(*truth == 0));
        }
        let operand = text_as_double(scalar(operand)?);
        let result = ResultType::boolean(operand.result.nullable);
        Ok(Expr { kind: ExprKind::Not(Box::new(operand)), result })
    }

    /// `left AND right`; nested conjunctions become one list.
    pub fn and(&self, left: Expr, right: Expr) -> Result<Expr, SqlError> {
        let mut list = Vec::new();
        for side in [scalar(left)?, scalar(right)?] {
            match side.kind {
                ExprKind::And(inner) => list.extend(inner),
                _ => list.push(text_as_double(side)),
            }
        }
        let nullable = list.iter().any(|e| e.result.nullable);
        Ok(Expr { kind: ExprKind::And(list), result: ResultType::boolean(nullable) })
    }

    /// `left OR right`; nested disjunctions become one list.
    pub fn or(&self, left: Expr, right: Expr) -> Result<Expr, SqlError> {
        let mut list = Vec::new();
        for side in [scalar(left)?, scalar(right)?] {
            match side.kind {
                ExprKind::Or(inner) => list.extend(inner),
                _ => list.push(text_as_double(side)),
            }
        }
        let nullable = list.iter().any(|e| e.result.nullable);
        Ok(Expr { kind: ExprKind::Or(list), result: ResultType::boolean(nullable) })
    }

    /// `left XOR right`.
    pub fn xor(&self, left: Expr, right: Expr) -> Result<Expr, SqlError> {
        let [left, right] = [left, right].map(|side| scalar(side).map(text_as_double));
        let (left, right) = (left?, right?);
        let result = ResultType::boolean(left.result.nullable || right.result.nullable);
        Ok(Expr { kind: ExprKind::Xor(Box::new(left), Box::new(right)), result })
    }
}
