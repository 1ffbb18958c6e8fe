//! Constant folding.

use crate::context::{EvalContext, NoColumns};
use crate::expression::{Expr, ExprKind, Literal, LiteralForm};

impl Expr {
    /// Replaces subtrees that are constant by their values. A subtree whose evaluation fails or
    /// warns stays, so that it fails or warns when the statement runs.
    pub fn folded(mut self, context: &EvalContext) -> Self {
        self.for_each_child_mut(&mut |child| {
            let taken = std::mem::replace(child, placeholder());
            *child = taken.folded(context);
        });
        let leaf = matches!(
            self.kind,
            ExprKind::Literal(_)
                | ExprKind::Row(_)
                | ExprKind::Parameter(_)
                | ExprKind::Converted { .. }
        );
        if leaf {
            return self;
        }
        if !self.has_only_literals() {
            return self;
        }
        let before = context.warning_count();
        let value = match self.eval_result(context, &NoColumns) {
            Ok(value) if context.warning_count() == before => value.to_owned(),
            Ok(_) => {
                context.drop_warnings_after(before);
                return self;
            }
            Err(_) => return self,
        };
        let literal = Literal::new(value, LiteralForm::Computed);
        Self { kind: ExprKind::Literal(literal), result: self.result }
    }

    /// Whether all leaves are literals and nothing in it is volatile.
    fn has_only_literals(&self) -> bool {
        let mut only = self.is_constant();
        self.for_each_child(&mut |child| {
            only &= matches!(child.kind, ExprKind::Literal(_))
                || (matches!(child.kind, ExprKind::Row(_)) && child.has_only_literals());
        });
        only
    }
}

fn placeholder() -> Expr {
    let literal = Literal::new(types::Value::Null, LiteralForm::Computed);
    Expr { kind: ExprKind::Literal(literal), result: crate::ResultType::null() }
}
