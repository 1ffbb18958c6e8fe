//! Walking over parts of plans.

use crate::physical::{Apply, ApplyKind, QueryPlan, ResultColumn, SelectPlan, TableStep};
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

    /// Calls `visit` with the positions of the block around it that it reads.
    pub(crate) fn for_each_read(&self, visit: &mut dyn FnMut(usize)) {
        self.outer_positions.iter().for_each(|&position| visit(position));
        self.for_each_operand(&mut |operand| operand.for_each_column(visit));
    }

    /// Maps the positions of the block around it that it reads.
    pub(crate) fn map_reads(&mut self, map: &mut dyn FnMut(usize) -> usize) {
        self.outer_positions.iter_mut().for_each(|position| *position = map(*position));
        self.kind.for_each_operand_mut(&mut |operand| operand.map_columns(map));
    }
}

impl ApplyKind {
    /// Calls `visit` with the values of the left side for changing them.
    pub(crate) fn for_each_operand_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        match self {
            Self::Scalar | Self::Exists => {}
            Self::In { operand, .. } => operand.iter_mut().for_each(visit),
            Self::Quantified { operand, .. } => visit(operand),
        }
    }
}

impl SelectPlan {
    /// Its subqueries in the order in which they can be run.
    pub(crate) fn applies(&self) -> impl Iterator<Item = &Apply> {
        let steps = self.tables.iter().flat_map(TableStep::all_applies);
        let grouped = self.aggregate.iter().flat_map(|aggregate| &aggregate.applies);
        self.constant_applies.iter().chain(steps).chain(grouped)
    }

    /// It has subqueries outside of FROM.
    pub fn has_subqueries(&self) -> bool {
        self.applies().next().is_some()
    }

    /// The values over the frame of its rows or groups.
    pub fn frame_values(&self) -> impl Iterator<Item = &Expr> {
        let values = match &self.window {
            Some(window) => &window.inputs,
            None => &self.projection,
        };
        values.iter().chain(&self.having)
    }
}

impl TableStep {
    /// Its subqueries in the order in which they are run.
    pub(crate) fn all_applies(&self) -> impl Iterator<Item = &Apply> {
        self.late.iter().flat_map(|late| &late.applies).chain(&self.applies)
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
