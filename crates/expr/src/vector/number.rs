//! Kernels that give numbers.

use super::condition::{Condition, Truth};
use super::{Batch, Compile, Overflow, Shape};
use crate::builder::Domain;
use crate::context::EvalContext;
use crate::expression::{ArithmeticOperator, Expr, ExprKind};
use types::row::{Lane, Numbers};
use types::{DateTime, TypeKind};

/// Most digits after the point that a kernel computes with: within them DECIMAL drops none.
const SCALE_MAX: u8 = 18;

/// A part of a packed day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayPart {
    Year,
    Month,
    Day,
}

#[derive(Clone, Debug)]
enum Kind {
    Column(usize),
    /// NULL or a number.
    Constant(Option<i64>),
    Add(Pair),
    Subtract(Pair),
    Multiply(Pair),
    /// `a * factor / divisor`, the rest cut off.
    Divide {
        operand: Box<Kernel>,
        factor: i128,
        divisor: i128,
    },
    /// Signed remainder.
    Modulo {
        operand: Box<Kernel>,
        divisor: i64,
    },
    /// More digits after the point.
    Extend {
        operand: Box<Kernel>,
        factor: i64,
    },
    /// Fewer digits after the point, rounded half away from zero.
    Round {
        operand: Box<Kernel>,
        divisor: i64,
    },
    /// A day at midnight.
    Midnight(Box<Kernel>),
    Part {
        operand: Box<Kernel>,
        part: DayPart,
        moment: bool,
    },
    Case {
        branches: Vec<(Condition, Kernel)>,
        otherwise: Option<Box<Kernel>>,
    },
}

type Pair = Box<(Kernel, Kernel)>;

/// See the head of the room.
#[derive(Clone, Debug)]
pub struct Kernel {
    lane: Lane,
    kind: Kind,
}

/// 10^digits.
fn power(digits: u8) -> i64 {
    10i64.pow(digits.min(SCALE_MAX).into())
}

impl Kernel {
    /// A kernel for the value of an expression with the digits that its type fixes (as
    /// [`Expr::eval_result`]).
    pub fn of_result(expr: &Expr, context: &EvalContext, shape: &dyn Shape) -> Option<Self> {
        let kernel = Self::compile(expr, Compile { context, shape }, true)?;
        match kernel.lane {
            Lane::Decimal { .. } => kernel.rescaled(expr.result.column_type.scale),
            _ => Some(kernel),
        }
    }

    /// A kernel for the value of an expression as [`Expr::eval`] gives it, or with more zeros
    /// behind the point.
    pub fn of_value(expr: &Expr, context: &EvalContext, shape: &dyn Shape) -> Option<Self> {
        Self::compile(expr, Compile { context, shape }, true)
    }

    /// What its numbers stand for.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether it reads a column as it is, which cannot overflow.
    pub fn is_column(&self) -> bool {
        matches!(self.kind, Kind::Column(_))
    }

    /// Whether no row can overflow, now or in the row evaluator.
    pub fn is_exact(&self) -> bool {
        match &self.kind {
            Kind::Column(_) | Kind::Constant(_) => true,
            Kind::Modulo { operand, .. } | Kind::Round { operand, .. } => operand.is_exact(),
            Kind::Midnight(operand) => operand.is_exact(),
            _ => false,
        }
    }

    /// The number, if it is the same for all rows.
    pub(super) fn constant(&self) -> Option<Option<i64>> {
        match self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn new(lane: Lane, kind: Kind) -> Option<Self> {
        match lane {
            Lane::Decimal { scale } if scale > SCALE_MAX => None,
            _ => Some(Self { lane, kind }),
        }
    }

    /// With other digits after the point.
    pub(super) fn rescaled(self, scale: u8) -> Option<Self> {
        let own = self.scale()?;
        if scale > SCALE_MAX {
            return None;
        }
        let lane = Lane::Decimal { scale };
        if own == scale {
            return Some(Self { lane, ..self });
        }
        if let (Kind::Constant(value), true) = (&self.kind, scale > own) {
            let value = match value {
                None => None,
                Some(value) => Some(value.checked_mul(power(scale - own))?),
            };
            return Self::new(lane, Kind::Constant(value));
        }
        let operand = Box::new(self);
        if scale > own {
            Self::new(lane, Kind::Extend { operand, factor: power(scale - own) })
        } else {
            Self::new(lane, Kind::Round { operand, divisor: power(own - scale) })
        }
    }

    /// A day as the moment at its beginning.
    pub(super) fn at_midnight(self) -> Self {
        let kind = match self.kind {
            Kind::Constant(value) => {
                Kind::Constant(value.map(|day| types::Date(day as u32).at_midnight().0 as i64))
            }
            _ => Kind::Midnight(Box::new(self)),
        };
        Self { lane: Lane::DateTime, kind }
    }

    /// Digits after the point of an exact number.
    pub(super) fn scale(&self) -> Option<u8> {
        match self.lane {
            Lane::Int | Lane::UInt => Some(0),
            Lane::Decimal { scale } => Some(scale),
            _ => None,
        }
    }

    /// A kernel for what `eval` gives. `outermost`: a CASE may give fewer digits than its type.
    pub(super) fn compile(expr: &Expr, compile: Compile<'_>, outermost: bool) -> Option<Self> {
        if let Some(value) = compile.constant(expr) {
            if value.is_null() {
                return Self::new(Lane::Int, Kind::Constant(None));
            }
            let (lane, number) = Lane::of(value)?;
            return Self::new(lane, Kind::Constant(Some(number)));
        }
        match &expr.kind {
            ExprKind::Column { position, .. } => {
                Self::new(compile.shape.lane(*position)?, Kind::Column(*position))
            }
            ExprKind::Arithmetic { operator, left, right } => {
                let a = Self::compile(left, compile, false)?;
                let b = Self::compile(right, compile, false)?;
                Self::arithmetic(expr, *operator, a, b, compile.context)
            }
            ExprKind::Case { operand: None, branches, otherwise } => {
                Self::case(expr, branches, otherwise.as_deref(), compile, outermost)
            }
            ExprKind::Call { function, arguments } => {
                let part = match function.name() {
                    "year" => DayPart::Year,
                    "month" => DayPart::Month,
                    "day" | "dayofmonth" => DayPart::Day,
                    _ => return None,
                };
                let operand = Box::new(Self::compile(arguments.first()?, compile, false)?);
                let moment = match operand.lane {
                    Lane::Date => false,
                    Lane::DateTime => true,
                    _ => return None,
                };
                Self::new(Lane::Int, Kind::Part { operand, part, moment })
            }
            _ => None,
        }
    }

    fn arithmetic(
        expr: &Expr,
        operator: ArithmeticOperator,
        a: Self,
        b: Self,
        context: &EvalContext,
    ) -> Option<Self> {
        match Domain::of(&expr.result) {
            Domain::Integer => {
                let signed = a.lane == Lane::Int && b.lane == Lane::Int;
                if !signed || expr.result.column_type.unsigned {
                    return None;
                }
                let kind = match operator {
                    ArithmeticOperator::Add => Kind::Add(Box::new((a, b))),
                    ArithmeticOperator::Subtract => Kind::Subtract(Box::new((a, b))),
                    ArithmeticOperator::Multiply => Kind::Multiply(Box::new((a, b))),
                    ArithmeticOperator::Modulo => {
                        let divisor = b.constant()??;
                        if divisor == 0 {
                            return None;
                        }
                        Kind::Modulo { operand: Box::new(a), divisor }
                    }
                    ArithmeticOperator::Divide | ArithmeticOperator::IntegerDivide => return None,
                };
                Self::new(Lane::Int, kind)
            }
            Domain::Decimal => Self::decimal(operator, a, b, context),
            Domain::Double => None,
        }
    }

    /// Exact numbers as [`types::Decimal`] computes them.
    fn decimal(
        operator: ArithmeticOperator,
        a: Self,
        b: Self,
        context: &EvalContext,
    ) -> Option<Self> {
        let (scale_a, scale_b) = (a.scale()?, b.scale()?);
        match operator {
            ArithmeticOperator::Add | ArithmeticOperator::Subtract => {
                let scale = scale_a.max(scale_b);
                let pair = Box::new((a.rescaled(scale)?, b.rescaled(scale)?));
                let kind = match operator {
                    ArithmeticOperator::Add => Kind::Add(pair),
                    _ => Kind::Subtract(pair),
                };
                Self::new(Lane::Decimal { scale }, kind)
            }
            ArithmeticOperator::Multiply => {
                let lane = Lane::Decimal { scale: scale_a + scale_b };
                Self::new(lane, Kind::Multiply(Box::new((a, b))))
            }
            ArithmeticOperator::Divide => {
                let divisor = b.constant()??;
                if divisor == 0 {
                    return None;
                }
                let increment = context.settings.div_precision_increment;
                let digits = types::Decimal::quotient_digits(scale_a, scale_b, increment);
                let scale = u8::try_from(digits).ok().filter(|scale| *scale <= SCALE_MAX)?;
                let shift = digits + u32::from(scale_b) - u32::from(scale_a);
                let factor = 10i128.checked_pow(shift).filter(|_| shift <= 18)?;
                let (operand, divisor) = (Box::new(a), divisor.into());
                Self::new(Lane::Decimal { scale }, Kind::Divide { operand, factor, divisor })
            }
            ArithmeticOperator::Modulo | ArithmeticOperator::IntegerDivide => None,
        }
    }

    fn case(
        expr: &Expr,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        compile: Compile<'_>,
        outermost: bool,
    ) -> Option<Self> {
        let target = &expr.result.column_type;
        let lane = match target.kind {
            TypeKind::Decimal => Lane::Decimal { scale: target.scale },
            kind if kind.is_integer() && !target.unsigned => Lane::Int,
            _ => return None,
        };
        let value = |value: &Expr| {
            let kernel = Self::compile(value, compile, false)?;
            match lane {
                Lane::Decimal { scale } => {
                    let own = kernel.scale().filter(|own| *own <= scale)?;
                    if own < scale && !outermost && kernel.constant() != Some(None) {
                        return None;
                    }
                    kernel.rescaled(scale)
                }
                _ => (kernel.lane == lane).then_some(kernel),
            }
        };
        let mut compiled = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            compiled.push((Condition::compile_all(when, compile)?, value(then)?));
        }
        let otherwise = match otherwise {
            None => None,
            Some(otherwise) => Some(Box::new(value(otherwise)?)),
        };
        Self::new(lane, Kind::Case { branches: compiled, otherwise })
    }

    /// Computes the number of every selected row.
    pub fn eval(
        &mut self,
        batch: &dyn Batch,
        selected: &[u32],
        out: &mut Numbers,
    ) -> Result<(), Overflow> {
        match &mut self.kind {
            Kind::Column(position) => batch.numbers(*position, selected, out),
            Kind::Constant(value) => {
                out.clear();
                out.values.resize(selected.len(), value.unwrap_or(0));
                if value.is_none() {
                    out.nulls.resize(selected.len(), true);
                }
            }
            Kind::Add(pair) => both(pair, batch, selected, out, i64::checked_add)?,
            Kind::Subtract(pair) => both(pair, batch, selected, out, i64::checked_sub)?,
            Kind::Multiply(pair) => both(pair, batch, selected, out, i64::checked_mul)?,
            Kind::Divide { operand, factor, divisor } => {
                operand.eval(batch, selected, out)?;
                let (factor, divisor) = (*factor, *divisor);
                each(out, |v| i64::try_from(i128::from(v) * factor / divisor).ok())?;
            }
            Kind::Modulo { operand, divisor } => {
                operand.eval(batch, selected, out)?;
                let divisor = *divisor;
                each(out, |v| Some(v.wrapping_rem(divisor)))?;
            }
            Kind::Extend { operand, factor } => {
                operand.eval(batch, selected, out)?;
                let factor = *factor;
                each(out, |v| v.checked_mul(factor))?;
            }
            Kind::Round { operand, divisor } => {
                operand.eval(batch, selected, out)?;
                let divisor = *divisor;
                each(out, |v| Some(rounded(v, divisor)))?;
            }
            Kind::Midnight(operand) => {
                operand.eval(batch, selected, out)?;
                each(out, |v| Some(types::Date(v as u32).at_midnight().0 as i64))?;
            }
            Kind::Part { operand, part, moment } => {
                operand.eval(batch, selected, out)?;
                let moment = *moment;
                // A day that the calendar does not have is left to the row evaluator.
                let day = |v: i64| {
                    let day = match moment {
                        true => DateTime(v as u64).date(),
                        false => types::Date(v as u32),
                    };
                    (day.day() <= 28 || day.is_complete()).then_some(day)
                };
                match part {
                    DayPart::Year => each(out, |v| Some(day(v)?.year().into()))?,
                    DayPart::Month => each(out, |v| Some(day(v)?.month().into()))?,
                    DayPart::Day => each(out, |v| Some(day(v)?.day().into()))?,
                }
            }
            Kind::Case { branches, otherwise } => {
                eval_case(branches, otherwise.as_deref_mut(), batch, selected, out)?;
            }
        }
        Ok(())
    }
}

/// Half away from zero.
fn rounded(value: i64, divisor: i64) -> i64 {
    let (whole, rest) = (value / divisor, value % divisor);
    let up = i128::from(rest.unsigned_abs()) * 2 >= i128::from(divisor);
    whole + if up { rest.signum() } else { 0 }
}

fn each(out: &mut Numbers, f: impl Fn(i64) -> Option<i64>) -> Result<(), Overflow> {
    for value in &mut out.values {
        *value = f(*value).ok_or(Overflow)?;
    }
    Ok(())
}

fn both(
    pair: &mut (Kernel, Kernel),
    batch: &dyn Batch,
    selected: &[u32],
    out: &mut Numbers,
    f: impl Fn(i64, i64) -> Option<i64>,
) -> Result<(), Overflow> {
    let (left, right) = pair;
    if let Some(Some(constant)) = right.constant() {
        left.eval(batch, selected, out)?;
        return each(out, |value| f(value, constant));
    }
    if let Some(Some(constant)) = left.constant() {
        right.eval(batch, selected, out)?;
        return each(out, |value| f(constant, value));
    }
    left.eval(batch, selected, out)?;
    let mut other = Numbers::default();
    right.eval(batch, selected, &mut other)?;
    for (value, with) in out.values.iter_mut().zip(&other.values) {
        *value = f(*value, *with).ok_or(Overflow)?;
    }
    if out.nulls.is_empty() {
        std::mem::swap(&mut out.nulls, &mut other.nulls);
    } else {
        for (null, with) in out.nulls.iter_mut().zip(&other.nulls) {
            *null |= *with;
        }
    }
    Ok(())
}

/// Every row gets the value of its first branch; values are computed for these rows alone.
fn eval_case(
    branches: &mut [(Condition, Kernel)],
    otherwise: Option<&mut Kernel>,
    batch: &dyn Batch,
    selected: &[u32],
    out: &mut Numbers,
) -> Result<(), Overflow> {
    out.clear();
    out.values.resize(selected.len(), 0);
    out.nulls.resize(selected.len(), true);
    let mut rest: Vec<u32> = selected.to_vec();
    // Where in `out` the rows of `rest` are.
    let mut places: Vec<usize> = (0..selected.len()).collect();
    let mut found = Numbers::default();
    let mut truths: Vec<Truth> = Vec::new();
    let put = |out: &mut Numbers, places: &[usize], found: &Numbers| {
        for (at, &place) in places.iter().enumerate() {
            out.values[place] = found.values[at];
            out.nulls[place] = found.is_null(at);
        }
    };
    for (when, then) in branches {
        when.eval(batch, &rest, &mut truths)?;
        let is_true = |at: usize| truths[at] == Truth::True;
        let chosen: Vec<u32> =
            rest.iter().enumerate().filter(|(at, _)| is_true(*at)).map(|(_, row)| *row).collect();
        let here: Vec<usize> =
            places.iter().enumerate().filter(|(at, _)| is_true(*at)).map(|(_, p)| *p).collect();
        then.eval(batch, &chosen, &mut found)?;
        put(out, &here, &found);
        let mut at = 0;
        rest.retain(|_| (!is_true(at), at += 1).0);
        at = 0;
        places.retain(|_| (!is_true(at), at += 1).0);
    }
    if let Some(otherwise) = otherwise {
        otherwise.eval(batch, &rest, &mut found)?;
        put(out, &places, &found);
    }
    Ok(())
}
