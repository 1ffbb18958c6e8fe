//! Walking over parts of plans.

use crate::physical::{Apply, ApplyKind, QueryPlan, ResultColumn, SelectPlan};
use expr::Expr;

impl Apply {
    /// Calls `visit` with the values of the left side.
    pub(crate) fn for_each_operand(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ApplyKind::Scalar | ApplyKind::Exists => {}
            ApplyKind::In { operand, .. } => operand.iter().for_each(visit),
            ApplyKind::Quantified { operand, .. } => visit(operand),
        }
    }

    /// Calls `visit` with the values of the left side for changing them.
    pub(crate) fn for_each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match &mut self.kind {
            ApplyKind::Scalar | ApplyKind::Exists => {}
            ApplyKind::In { operand, .. } => operand.iter_mut().for_each(visit),
            ApplyKind::Quantified { operand, .. } => visit(operand),
        }
    }

    /// Maps the positions of the block around it that it reads.
    pub(crate) fn map_reads(&mut self, map: &mut dyn FnMut(usize) -> usize) {
        self.outer_positions.iter_mut().for_each(|position| *position = map(*position));
        self.for_each_operand_mut(&mut |operand| operand.map_columns(map));
    }
}

impl SelectPlan {
    /// The values over the frame of its rows or groups.
    pub fn frame_values(&self) -> impl Iterator<Item = &Expr> {
        let values = match &self.window {
            Some(window) => &window.inputs,
            None => &self.projection,
        };
        values.iter().chain(&self.having)
    }
}

impl QueryPlan {
    /// The result's columns for changing them.
    pub(crate) fn columns_mut(&mut self) -> &mut [ResultColumn] {
        match self {
            Self::Select(select) => &mut select.columns,
            Self::Set(set) => &mut set.columns,
        }
    }
}
