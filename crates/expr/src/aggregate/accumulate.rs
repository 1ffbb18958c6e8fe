//! Accumulators.

use super::list::{Item, concat_item, json_item, list_value};
use super::{Aggregate, AggregateFunction};
use crate::builder::Domain;
use crate::coerce;
use crate::compare::{CompareRule, compare_values};
use crate::context::{Columns, EvalContext};
use crate::result_type::ResultType;
use std::cmp::Ordering;
use std::collections::HashSet;
use types::row::{KeyColumn, KeyPart, Lane, LayoutColumn};
use types::{Decimal, SqlError, TypeKind, Value, ValueRef, codes};

/// The state of one aggregate for one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    state: State,
    /// Keys of the values seen, for DISTINCT.
    seen: Option<HashSet<Vec<u8>>>,
    /// Bytes of values that are kept.
    kept_bytes: usize,
}

/// What a kept value takes beside its bytes.
pub(super) const KEPT_OVERHEAD_BYTES: usize = 56;

#[derive(Clone, Debug)]
enum State {
    Count(i64),
    /// `whole` is what came as integers: no count of rows carries it out of its range.
    Decimal {
        sum: Decimal,
        whole: i128,
        count: i64,
    },
    Double {
        sum: f64,
        count: i64,
    },
    Extreme {
        best: Value,
        wanted: Ordering,
    },
    Bits {
        bits: u64,
    },
    Deviation {
        count: i64,
        mean: f64,
        squares: f64,
    },
    Concat {
        items: Vec<Item>,
        bytes: usize,
    },
    First(Option<Value>),
}

/// What an accumulator would have to keep: see [`Accumulator::update_or_defer`].
#[derive(Clone, Debug)]
pub struct Deferred {
    /// What tells it apart, for DISTINCT.
    pub identity: Option<Vec<u8>>,
    /// What counts, if it is the first of its kind.
    pub value: DeferredValue,
}

/// See [`Deferred`].
#[derive(Clone, Debug)]
pub enum DeferredValue {
    /// A value for [`Accumulator::add_value`].
    Value(Value),
    /// An item of a list.
    Item(Item),
}

/// What an accumulator has kept.
#[derive(Debug, Default)]
pub struct KeptValues {
    /// What tells the values of DISTINCT apart that have been counted.
    pub identities: HashSet<Vec<u8>>,
    /// Items of a list, as they came.
    pub items: Vec<Item>,
}

/// Appends memcmp bytes by which values of an expression's type are ordered and told apart.
pub(super) fn push_order_key(
    result: &ResultType,
    descending: bool,
    value: ValueRef<'_>,
    out: &mut Vec<u8>,
) {
    let column = result.sort_column();
    let part = KeyPart { column: 0, prefix: None, descending };
    if let Some(key) = KeyColumn::new(&[column], &part) {
        // The sort column is nullable and of the expression's type: nothing can be refused.
        let _ = key.push(value, out);
    }
}

impl ResultType {
    /// A column that holds any value of an expression of this type, for sort keys.
    pub fn sort_column(&self) -> LayoutColumn {
        let mut column_type = self.column_type;
        match column_type.kind {
            TypeKind::Decimal => column_type.precision = types::decimal::PRECISION_MAX,
            TypeKind::Null => column_type = types::ColumnType::integer(TypeKind::TinyInt, false),
            kind if kind.is_integer() => column_type.kind = TypeKind::BigInt,
            TypeKind::Binary => column_type.kind = TypeKind::VarBinary,
            kind if kind.is_temporal() => column_type.scale = 6,
            _ => {}
        }
        LayoutColumn { column_type, nullable: true }
    }
}

impl Aggregate {
    /// A fresh accumulator.
    pub fn accumulator(&self) -> Accumulator {
        use AggregateFunction as F;
        let state = match self.function {
            F::CountRows | F::Count => State::Count(0),
            F::Sum | F::Average => match Domain::of(&self.arguments[0].result) {
                Domain::Double => State::Double { sum: 0.0, count: 0 },
                _ => State::Decimal { sum: Decimal::ZERO, whole: 0, count: 0 },
            },
            F::Minimum => State::Extreme { best: Value::Null, wanted: Ordering::Less },
            F::Maximum => State::Extreme { best: Value::Null, wanted: Ordering::Greater },
            F::BitAnd => State::Bits { bits: u64::MAX },
            F::BitOr | F::BitXor => State::Bits { bits: 0 },
            F::StandardDeviation | F::SampleStandardDeviation | F::Variance | F::SampleVariance => {
                State::Deviation { count: 0, mean: 0.0, squares: 0.0 }
            }
            F::GroupConcat | F::JsonArray | F::JsonObject => {
                State::Concat { items: Vec::new(), bytes: 0 }
            }
            F::AnyValue => State::First(None),
        };
        Accumulator { state, seen: self.distinct.then(HashSet::new), kept_bytes: 0 }
    }

    /// Whether the value is a list of all values.
    pub fn is_list(&self) -> bool {
        use AggregateFunction as F;
        matches!(self.function, F::GroupConcat | F::JsonArray | F::JsonObject)
    }

    /// Of items with equal keys the server gives the later first.
    pub fn gives_later_first(&self) -> bool {
        self.function == AggregateFunction::GroupConcat && !self.concat.order_by.is_empty()
    }

    /// Whether items behind the greatest length of a list are never seen.
    fn is_plain_list(&self) -> bool {
        let concat = &self.concat;
        let plain = concat.order_by.is_empty() && concat.limit.is_none() && !self.distinct;
        plain && self.function == AggregateFunction::GroupConcat
    }

    /// What tells a value of the first argument apart for DISTINCT.
    pub fn identity(&self, value: ValueRef<'_>, out: &mut Vec<u8>) {
        use AggregateFunction as F;
        match (self.function, value) {
            // Sums of texts are of their numbers.
            (F::Sum | F::Average, ValueRef::Double(number)) => {
                out.extend_from_slice(&number.to_bits().to_be_bytes());
            }
            _ => push_order_key(&self.arguments[0].result, false, value, out),
        }
    }
}

impl Accumulator {
    /// Takes a row of the group into account.
    pub fn update(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<(), SqlError> {
        self.step(aggregate, context, row, None)
    }

    /// The same without keeping anything more: what would have to be kept is given to the caller,
    /// who knows which values came before.
    pub fn update_or_defer(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<Option<Deferred>, SqlError> {
        let mut deferred = None;
        self.step(aggregate, context, row, Some(&mut deferred))?;
        Ok(deferred)
    }

    fn step(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        row: &dyn Columns,
        deferred: Option<&mut Option<Deferred>>,
    ) -> Result<(), SqlError> {
        if aggregate.function == AggregateFunction::CountRows {
            if let State::Count(count) = &mut self.state {
                *count += 1;
            }
            return Ok(());
        }
        let argument = &aggregate.arguments[0];
        let value = match self.state {
            // Sums take the digits that the type does not show.
            State::Decimal { .. } if !aggregate.distinct => argument.eval(context, row)?,
            State::Extreme { .. } if argument.result.column_type.kind.is_temporal() => {
                argument.eval_compared(CompareRule::of_type(&argument.result), context, row)?
            }
            _ => argument.eval_result(context, row)?,
        };
        let value = match self.state {
            // Distinct are the numbers, not the texts, which do not warn.
            State::Double { .. } if aggregate.distinct && !value.is_null() => {
                let number = match value {
                    ValueRef::Bytes(text) if argument.result.column_type.members.is_none() => {
                        types::number::parse_double(text).value
                    }
                    _ => coerce::to_double(context, value, &argument.result)?,
                };
                ValueRef::Double(number + 0.0)
            }
            _ => value,
        };
        if let State::First(first) = &mut self.state {
            first.get_or_insert_with(|| value.to_owned());
            return Ok(());
        }
        let takes_null = aggregate.function == AggregateFunction::JsonArray;
        if value.is_null() && !takes_null {
            return Ok(());
        }
        if self.seen.is_none() && aggregate.arguments.len() == 1 && !aggregate.is_list() {
            return self.take(aggregate, context, value);
        }
        self.keep(aggregate, context, (value, row), deferred)
    }

    /// Takes a value of a list or of DISTINCT into account.
    fn keep(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        (value, row): (ValueRef<'_>, &dyn Columns),
        deferred: Option<&mut Option<Deferred>>,
    ) -> Result<(), SqlError> {
        let mut identity = None;
        let reads_all = self.seen.is_some() || aggregate.arguments.len() > 1;
        if reads_all && aggregate.function != AggregateFunction::JsonObject {
            let Some(key) = identity_of_row(aggregate, value, context, row)? else {
                return Ok(());
            };
            identity = self.seen.is_some().then_some(key);
        }
        if deferred.is_none()
            && let (Some(seen), Some(key)) = (&mut self.seen, identity.take())
        {
            let bytes = key.len() + KEPT_OVERHEAD_BYTES;
            if !seen.insert(key) {
                return Ok(());
            }
            self.kept_bytes += bytes;
        }
        let State::Concat { items, bytes } = &mut self.state else {
            match (deferred, identity) {
                (Some(slot), Some(identity)) => {
                    let value = DeferredValue::Value(value.to_owned());
                    *slot = Some(Deferred { identity: Some(identity), value });
                }
                _ => self.take(aggregate, context, value)?,
            }
            return Ok(());
        };
        let item = match aggregate.function {
            AggregateFunction::GroupConcat => concat_item(aggregate, context, row)?,
            _ => Some(json_item(aggregate, context, row)?),
        };
        let Some(item) = item else { return Ok(()) };
        let separator = aggregate.concat.separator.as_deref().unwrap_or(b",");
        if aggregate.is_plain_list()
            && *bytes > context.settings.group_concat_max_len.saturating_add(separator.len())
        {
            return Ok(());
        }
        *bytes += item.text.len() + separator.len();
        match deferred {
            Some(slot) => {
                *slot = Some(Deferred { identity, value: DeferredValue::Item(item) });
            }
            None => {
                self.kept_bytes += item.bytes();
                items.push(item);
            }
        }
        Ok(())
    }

    /// Takes a value of the argument into account that is not NULL and, for DISTINCT, new.
    fn take(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        value: ValueRef<'_>,
    ) -> Result<(), SqlError> {
        let from = &aggregate.arguments[0].result;
        match &mut self.state {
            State::Count(count) => *count += 1,
            State::Decimal { sum, whole, count } => {
                match value {
                    ValueRef::Int(value) => *whole += i128::from(value),
                    ValueRef::UInt(value) if !from.is_variable || aggregate.distinct => {
                        *whole += i128::from(value);
                    }
                    _ => {
                        let addend = coerce::to_decimal(context, value, from)?;
                        *sum = sum.add(&addend).map_err(|_| overflow())?;
                    }
                }
                *count += 1;
            }
            State::Double { sum, count } => {
                *sum += coerce::to_double(context, value, from)?;
                *count += 1;
            }
            State::Extreme { best, wanted } => {
                if best.is_null() || order(context, from, value, best.as_ref())? == *wanted {
                    *best = value.to_owned();
                }
            }
            State::Bits { bits } => {
                let operand = match value {
                    // That of a variable is cut; of a FLOAT out of range nothing is said.
                    ValueRef::Double(number) if from.is_variable => number as i64 as u64,
                    ValueRef::Float(number) => number.round_ties_even() as i64 as u64,
                    _ => coerce::to_val_int(context, value, &aggregate.arguments[0])?,
                };
                match aggregate.function {
                    AggregateFunction::BitAnd => *bits &= operand,
                    AggregateFunction::BitOr => *bits |= operand,
                    _ => *bits ^= operand,
                }
            }
            State::Deviation { count, mean, squares } => {
                let x = coerce::to_double(context, value, from)?;
                *count += 1;
                let delta = x - *mean;
                *mean += delta / *count as f64;
                *squares += delta * (x - *mean);
            }
            State::First(_) | State::Concat { .. } => {}
        }
        Ok(())
    }

    /// COUNT: so many rows more.
    pub fn add_count(&mut self, rows: i64) {
        if let State::Count(count) = &mut self.state {
            *count += rows;
        }
    }

    /// SUM and AVG of exact numbers: `rows` rows more, whose numbers in `lane` make this sum.
    pub fn add_sum(&mut self, lane: Lane, numbers: i128, rows: i64) -> Result<(), SqlError> {
        if let State::Decimal { sum, whole, count } = &mut self.state {
            match lane {
                Lane::Decimal { scale } => {
                    *sum = sum.add(&Decimal::new(numbers, scale)).map_err(|_| overflow())?;
                }
                _ => *whole += numbers,
            }
            *count += rows;
        }
        Ok(())
    }

    /// MIN and MAX: the best value of some rows more. DISTINCT: a value that did not come before.
    pub fn add_value(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        value: ValueRef<'_>,
    ) -> Result<(), SqlError> {
        self.take(aggregate, context, value)
    }

    /// Gives away all that is kept. From now on rows must go through
    /// [`Accumulator::update_or_defer`], and a list's value is made by [`ListText`].
    pub fn take_kept(&mut self) -> KeptValues {
        self.kept_bytes = 0;
        let items = match &mut self.state {
            State::Concat { items, .. } => std::mem::take(items),
            _ => Vec::new(),
        };
        let identities = self.seen.as_mut().map(std::mem::take).unwrap_or_default();
        KeptValues { identities, items }
    }

    /// Bytes of the values kept for DISTINCT and for lists, as they grow.
    pub fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// The value for the rows so far.
    pub fn value(&self, aggregate: &Aggregate, context: &EvalContext) -> Result<Value, SqlError> {
        use AggregateFunction as F;
        Ok(match &self.state {
            State::Count(count) => Value::Int(*count),
            State::Decimal { count: 0, .. } | State::Double { count: 0, .. } => Value::Null,
            State::Decimal { sum, whole, count } => {
                let sum = sum.add(&Decimal::new(*whole, 0)).map_err(|_| overflow())?;
                let scale = aggregate.result.column_type.scale;
                if aggregate.function == F::Sum {
                    return Ok(Value::Decimal(sum.with_scale(scale)));
                }
                let increment = context.settings.div_precision_increment;
                let quotient = sum.divide(&Decimal::from(*count), increment);
                let quotient = quotient.map_err(|_| overflow())?;
                quotient.map_or(Value::Null, |q| Value::Decimal(q.with_scale(scale)))
            }
            State::Double { sum, count } => match aggregate.function {
                F::Sum => Value::Double(*sum),
                _ => Value::Double(*sum / *count as f64),
            },
            State::Extreme { best, .. } => match (best, aggregate.result.column_type.kind) {
                // One that is computed has all digits that its bits make.
                (Value::Float(number), TypeKind::Double) => Value::Double(f64::from(*number)),
                _ => best.clone(),
            },
            State::Bits { bits } => Value::UInt(*bits),
            State::Deviation { count, squares, .. } => {
                let sample =
                    matches!(aggregate.function, F::SampleVariance | F::SampleStandardDeviation);
                let divisor = count - i64::from(sample);
                if divisor <= 0 {
                    return Ok(Value::Null);
                }
                let variance = squares / divisor as f64;
                match aggregate.function {
                    F::Variance | F::SampleVariance => Value::Double(variance),
                    _ => Value::Double(variance.sqrt()),
                }
            }
            State::First(first) => first.clone().unwrap_or_default(),
            State::Concat { items, .. } => list_value(aggregate, items, context)?,
        })
    }
}

fn overflow() -> SqlError {
    SqlError::new(&codes::DATA_OUT_OF_RANGE, &[&"DECIMAL", &"sum"])
}

fn order(
    context: &EvalContext,
    result: &ResultType,
    a: ValueRef<'_>,
    b: ValueRef<'_>,
) -> Result<Ordering, SqlError> {
    let rule = CompareRule::of_type(result);
    Ok(compare_values(context, rule, (a, result), (b, result))?.unwrap_or(Ordering::Equal))
}

/// What tells the arguments of DISTINCT apart; none if one of several is NULL.
fn identity_of_row(
    aggregate: &Aggregate,
    first: ValueRef<'_>,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<Vec<u8>>, SqlError> {
    let mut key = Vec::new();
    aggregate.identity(first, &mut key);
    for argument in &aggregate.arguments[1..] {
        let value = argument.eval_result(context, row)?;
        if value.is_null() {
            return Ok(None);
        }
        push_order_key(&argument.result, false, value, &mut key);
    }
    Ok(Some(key))
}
