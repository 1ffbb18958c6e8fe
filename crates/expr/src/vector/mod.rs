//! Evaluation of many rows at once.
//!
//! A [`Kernel`] computes numbers, a [`Condition`] truth values, for the selected rows of a batch.
//! They are made from an expression for one execution and give what the row evaluator
//! ([`Expr::eval`](crate::Expr::eval)) gives, bit for bit:
//!
//! 1. **Only what cannot warn and cannot fail is compiled.** Constants are literals and
//!    parameters that need no conversion; divisors are constants other than zero. What has no
//!    kernel is left to the row evaluator, so warnings keep their order.
//! 2. **A number that leaves 64 bits is no result.** The kernel says [`Overflow`] and the caller
//!    has the row evaluator do the same rows, which fails or goes on with wider numbers.
//! 3. **A selection is a list of row numbers in ascending order.** Results stand in its order.
//!    A condition that filters takes rows out of it; the order of the others stays.
//! 4. **NULL** is a flag beside the number; the number of a NULL means nothing. Truth is false,
//!    true or unknown; a filter keeps what is true.
//! 5. **Nothing is borrowed from the batch** longer than a call lasts.

mod condition;
mod number;
mod text;

pub use condition::{Condition, Truth};
pub use number::Kernel;

use crate::context::EvalContext;
use types::ValueRef;
use types::row::{Lane, Numbers};

/// What is known of the columns of a batch before there is one.
pub trait Shape {
    /// The lane of the column at a position, if it is a column of the batch and has one.
    fn lane(&self, position: usize) -> Option<Lane>;
    /// Whether the position is a column of the batch.
    fn holds(&self, position: usize) -> bool;
}

/// The columns of a batch.
pub trait Batch {
    /// Reads a column with a lane from the selected rows.
    fn numbers(&self, position: usize, selected: &[u32], out: &mut Numbers);
    /// The texts of a column of strings in the selected rows; none for NULL.
    fn texts<'b>(&'b self, position: usize, selected: &[u32], out: &mut Vec<Option<&'b [u8]>>);
    /// The value of any column.
    fn value(&self, position: usize, row: u32) -> ValueRef<'_>;
}

/// A number does not fit 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// What compiling needs.
#[derive(Clone, Copy)]
pub(crate) struct Compile<'a> {
    pub(crate) context: &'a EvalContext,
    pub(crate) shape: &'a dyn Shape,
}

impl<'a> Compile<'a> {
    /// The value of a literal or parameter, if converting it to what it is compared as neither
    /// loses anything nor makes other text of it.
    pub(crate) fn constant(&self, expr: &'a crate::Expr) -> Option<ValueRef<'a>> {
        match &expr.kind {
            crate::ExprKind::Converted { original, value: None, rule } => {
                rule.converted_cleanly(self.constant(original)?)
            }
            // ASCII is the same in all character sets.
            crate::ExprKind::ConvertText(operand) => self
                .constant(operand)
                .filter(|value| value.is_null() || value.bytes().is_some_and(<[u8]>::is_ascii)),
            crate::ExprKind::Literal(literal) => Some(literal.value.as_ref()),
            crate::ExprKind::Parameter(index) => {
                self.context.parameters.get(*index).map(types::Value::as_ref)
            }
            _ => None,
        }
    }
}
