//! A call in evaluation: its arguments converted on demand.

use super::read_number;
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use crate::temporal;
use types::{Collation, Decimal, SqlError, Time, ValueRef, codes};

/// A call with what it needs.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// The call itself.
    pub expr: &'a Expr,
    /// Its arguments.
    pub arguments: &'a [Expr],
    /// Session.
    pub context: &'a EvalContext,
    /// Row.
    pub row: &'a dyn Columns,
}

impl<'a> Frame<'a> {
    /// Number of arguments.
    pub fn count(&self) -> usize {
        self.arguments.len()
    }

    /// Static type of an argument.
    pub fn result(&self, index: usize) -> &'a ResultType {
        &self.arguments[index].result
    }

    /// Value of an argument.
    pub fn value(&self, index: usize) -> Result<ValueRef<'a>, SqlError> {
        self.arguments[index].eval(self.context, self.row)
    }

    /// Value of an argument that is read as a number.
    pub fn number(&self, index: usize) -> Result<ValueRef<'a>, SqlError> {
        read_number::value(&self.arguments[index], self.context, self.row)
    }

    /// Collation of the result.
    pub fn collation(&self) -> &'static Collation {
        self.expr.result.collation().info()
    }

    /// An argument as text.
    pub fn text(&self, index: usize) -> Result<Option<&'a [u8]>, SqlError> {
        let value = self.value(index)?;
        if value.is_null() {
            return Ok(None);
        }
        Ok(Some(coerce::to_text(self.context, value, self.result(index))))
    }

    /// An argument as a rounded integer.
    pub fn wide(&self, index: usize) -> Result<Option<i128>, SqlError> {
        read_number::whole(&self.arguments[index], self.context, self.row)
    }

    /// An argument as an integer, the nearest bound if out of range.
    pub fn integer(&self, index: usize) -> Result<Option<i64>, SqlError> {
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        Ok(self.wide(index)?.map(clamp))
    }

    /// An argument as DOUBLE.
    pub fn double(&self, index: usize) -> Result<Option<f64>, SqlError> {
        read_number::double(&self.arguments[index], self.context, self.row)
    }

    /// An argument as DECIMAL.
    pub fn decimal(&self, index: usize) -> Result<Option<Decimal>, SqlError> {
        read_number::decimal(&self.arguments[index], self.context, self.row)
    }

    /// An argument as a duration.
    pub fn time(&self, index: usize) -> Result<Option<Time>, SqlError> {
        let value =
            super::temporal_make::eval_moment(&self.arguments[index], self.context, self.row)?;
        if value.is_null() {
            return Ok(None);
        }
        temporal::to_time(self.context, value, &self.arguments[index])
    }

    /// A text result, kept in the arena.
    pub fn keep(&self, bytes: &[u8]) -> ValueRef<'a> {
        ValueRef::Bytes(self.context.keep(bytes))
    }

    /// A text result, NULL with a warning if it is longer than a packet may be.
    pub fn keep_limited(&self, bytes: &[u8]) -> Result<ValueRef<'a>, SqlError> {
        let limit = self.context.settings.max_allowed_packet;
        if bytes.len() <= limit {
            return Ok(self.keep(bytes));
        }
        let name = match &self.expr.kind {
            ExprKind::Call { function, .. } => function.name(),
            _ => "",
        };
        self.context.warn(&codes::WARN_ALLOWED_PACKET_OVERFLOWED, &[&name, &limit])?;
        Ok(ValueRef::Null)
    }
}
