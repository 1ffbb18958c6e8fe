//! SLEEP: the only function that waits.

use super::typing::int;
use super::{Frame, Function};
use crate::builder::Builder;
use crate::expression::Expr;
use crate::result_type::ResultType;
use std::time::Duration;
use types::{SqlError, ValueRef};

pub(crate) static FUNCTIONS: &[Function] =
    &[Function::new("sleep", 1, 1, resolve, sleep).volatile()];

fn resolve(_: &Builder<'_>, _: &'static Function, _: &mut [Expr]) -> Result<ResultType, SqlError> {
    Ok(int(1, false))
}

/// Longest sleep in seconds.
const SLEEP_MAX: f64 = 31_536_000.0;

/// 0 after the time, 1 if the wait was interrupted.
fn sleep(frame: Frame<'_>) -> Result<ValueRef<'_>, SqlError> {
    match frame.double(0)? {
        Some(seconds) if seconds >= 0.0 => {
            let duration = Duration::from_secs_f64(seconds.min(SLEEP_MAX));
            let completed = frame.context.hooks.sleep(duration)?;
            Ok(ValueRef::Int(i64::from(!completed)))
        }
        _ => Ok(ValueRef::Int(0)),
    }
}
