//! A call in evaluation: its arguments converted on demand.

use super::Nature;
use crate::coerce;
use crate::context::{Columns, EvalContext};
use crate::expression::{Expr, ExprKind};
use crate::result_type::ResultType;
use crate::temporal;
use types::temporal::DateRules;
use types::{Collation, DateTime, Decimal, SqlError, Time, TypeKind, ValueRef, codes};

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

/// STR_TO_DATE in a conversion to a date: it judges the date by the rules that hold outside.
fn converted_date(expr: &Expr) -> Option<&Expr> {
    let operand = match &expr.kind {
        ExprKind::Cast { operand, .. } => &**operand,
        ExprKind::Call { arguments, .. } if arguments.len() == 1 => &arguments[0],
        _ => return None,
    };
    let converts = || match &expr.kind {
        ExprKind::Call { function, .. } => {
            matches!(function.name(), "timestamp" | "date" | "last_day")
        }
        _ => true,
    };
    (operand.nature() == Nature::ReadDate && converts()).then_some(operand)
}

/// The text or number that conversions to a date read: they do so by the rules that hold outside,
/// and name it where these do not allow the date.
fn read_value(expr: &Expr) -> Option<&Expr> {
    let operand = match &expr.kind {
        ExprKind::Cast { operand, .. } => &**operand,
        ExprKind::Call { function, arguments } if arguments.len() == 1 => match function.name() {
            "timestamp" | "date" => &arguments[0],
            _ => return None,
        },
        _ => return None,
    };
    let is_date =
        |expr: &Expr| matches!(expr.result.column_type.kind, TypeKind::Date | TypeKind::DateTime);
    match operand.result.column_type.kind.is_temporal() {
        true => read_value(operand),
        false => is_date(expr).then_some(operand),
    }
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
        let value = self.value(index)?;
        if value.is_null() {
            return Ok(None);
        }
        if let ValueRef::Decimal(_) = value {
            let bits = coerce::to_val_int(self.context, value, &self.arguments[index])?;
            let unsigned = self.result(index).column_type.unsigned;
            return Ok(Some(if unsigned { i128::from(bits) } else { i128::from(bits as i64) }));
        }
        coerce::to_integer(self.context, value, self.result(index)).map(Some)
    }

    /// An argument as an integer, the nearest bound if out of range.
    pub fn integer(&self, index: usize) -> Result<Option<i64>, SqlError> {
        let clamp = |v: i128| v.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        Ok(self.wide(index)?.map(clamp))
    }

    /// An argument as DOUBLE.
    pub fn double(&self, index: usize) -> Result<Option<f64>, SqlError> {
        let value = self.value(index)?;
        if value.is_null() {
            return Ok(None);
        }
        coerce::to_double(self.context, value, self.result(index)).map(Some)
    }

    /// An argument as DECIMAL.
    pub fn decimal(&self, index: usize) -> Result<Option<Decimal>, SqlError> {
        let value = self.value(index)?;
        if value.is_null() {
            return Ok(None);
        }
        coerce::to_decimal(self.context, value, self.result(index)).map(Some)
    }

    /// An argument as a date and time under rules; `None` for NULL and for what is none.
    pub fn datetime(&self, index: usize, rules: DateRules) -> Result<Option<DateTime>, SqlError> {
        if let Some(operand) = converted_date(&self.arguments[index])
            && let ExprKind::Call { arguments, .. } = &operand.kind
        {
            let frame = Frame { expr: operand, arguments, ..*self };
            if super::temporal_text::str_to_date_by(frame, rules)?.is_null() {
                return Ok(None);
            }
        }
        let value = match &self.arguments[index] {
            // It judges the date itself.
            expr @ Expr { kind: ExprKind::Call { arguments, .. }, .. }
                if expr.nature() == Nature::ReadDate =>
            {
                super::temporal_text::str_to_date_by(Frame { expr, arguments, ..*self }, rules)?
            }
            argument => super::temporal_make::eval_moment(argument, self.context, self.row)?,
        };
        if let Some(operand) = read_value(&self.arguments[index])
            && temporal::is_refused(value, rules)
        {
            let value = operand.eval(self.context, self.row)?;
            temporal::warn_of_refused(self.context, value, operand)?;
            return Ok(None);
        }
        temporal::to_datetime(self.context, value, &self.arguments[index], rules)
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
