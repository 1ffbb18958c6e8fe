//! Accumulators.

use super::{Aggregate, AggregateFunction};
use crate::builder::Domain;
use crate::coerce;
use crate::compare::{CompareRule, compare_values};
use crate::context::{Columns, EvalContext};
use crate::expression::Expr;
use crate::result_type::ResultType;
use std::cmp::Ordering;
use std::collections::HashSet;
use types::row::{KeyColumn, KeyPart, Lane, LayoutColumn};
use types::{Decimal, SqlError, Value, ValueRef, Warning, codes};

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
const KEPT_OVERHEAD_BYTES: usize = 56;

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

/// One value of GROUP_CONCAT with its sort key.
#[derive(Clone, Debug)]
struct Item {
    key: Vec<u8>,
    text: Vec<u8>,
}

/// Appends memcmp bytes by which values of an expression's type are ordered and told apart.
fn push_order_key(result: &ResultType, descending: bool, value: ValueRef<'_>, out: &mut Vec<u8>) {
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
            types::TypeKind::Decimal => column_type.precision = types::decimal::PRECISION_MAX,
            types::TypeKind::Null => {
                column_type = types::ColumnType::integer(types::TypeKind::TinyInt, false)
            }
            kind if kind.is_integer() => column_type.kind = types::TypeKind::BigInt,
            types::TypeKind::Binary => column_type.kind = types::TypeKind::VarBinary,
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
}

impl Accumulator {
    /// Takes a row of the group into account.
    pub fn update(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        row: &dyn Columns,
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
        let takes_null = match aggregate.function {
            AggregateFunction::JsonArray => self.is_new(aggregate, value, context, row)?,
            AggregateFunction::JsonObject => !value.is_null(),
            _ => false,
        };
        if let (true, State::Concat { items, bytes }) = (takes_null, &mut self.state) {
            let item = json_item(aggregate, context, row)?;
            *bytes += item.text.len();
            self.kept_bytes += item.bytes();
            items.push(item);
            return Ok(());
        }
        if value.is_null() || !self.is_new(aggregate, value, context, row)? {
            return Ok(());
        }
        if let State::Concat { items, bytes } = &mut self.state {
            if let Some(item) = concat_item(aggregate, context, row)? {
                *bytes += item.text.len();
                self.kept_bytes += item.bytes();
                items.push(item);
            }
            return Ok(());
        }
        self.take(aggregate, context, value)
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
                let operand = coerce::to_val_int(context, value, &aggregate.arguments[0])?;
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

    /// MIN and MAX: the best value of some rows more.
    pub fn add_extreme(
        &mut self,
        aggregate: &Aggregate,
        context: &EvalContext,
        value: ValueRef<'_>,
    ) -> Result<(), SqlError> {
        self.take(aggregate, context, value)
    }

    /// For DISTINCT: whether the arguments were not seen before. Rows with a NULL among
    /// several arguments are left out.
    fn is_new(
        &mut self,
        aggregate: &Aggregate,
        first: ValueRef<'_>,
        context: &EvalContext,
        row: &dyn Columns,
    ) -> Result<bool, SqlError> {
        let several = aggregate.arguments.len() > 1;
        if self.seen.is_none() && !several {
            return Ok(true);
        }
        let mut key = Vec::new();
        match (first, &self.state) {
            (ValueRef::Double(number), State::Double { .. }) => {
                key.extend_from_slice(&number.to_bits().to_be_bytes());
            }
            _ => push_order_key(&aggregate.arguments[0].result, false, first, &mut key),
        }
        for argument in &aggregate.arguments[1..] {
            let value = argument.eval_result(context, row)?;
            if value.is_null() {
                return Ok(false);
            }
            push_order_key(&argument.result, false, value, &mut key);
        }
        let Some(seen) = &mut self.seen else { return Ok(true) };
        let bytes = key.len() + KEPT_OVERHEAD_BYTES;
        let is_new = seen.insert(key);
        self.kept_bytes += if is_new { bytes } else { 0 };
        Ok(is_new)
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
            State::Extreme { best, .. } => best.clone(),
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
            State::Concat { items, .. } if aggregate.function == F::JsonArray => {
                json_value(items, aggregate, [b'[', b']'], b",")
            }
            State::Concat { items, .. } if aggregate.function == F::JsonObject => {
                json_value(items, aggregate, [b'{', b'}'], b", ")
            }
            State::Concat { items, bytes } => concat_value(aggregate, items, *bytes, context),
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

impl Item {
    fn bytes(&self) -> usize {
        self.key.len() + self.text.len() + KEPT_OVERHEAD_BYTES
    }
}

fn concat_item(
    aggregate: &Aggregate,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Option<Item>, SqlError> {
    let mut text = Vec::new();
    for argument in &aggregate.arguments {
        match argument.eval_text(context, row)? {
            Some(part) => text.extend_from_slice(&part),
            None => return Ok(None),
        }
    }
    let mut key = Vec::new();
    for (expr, descending) in &aggregate.concat.order_by {
        let expr: &Expr = expr;
        let value = expr.eval_result(context, row)?;
        push_order_key(&expr.result, *descending, value, &mut key);
    }
    if aggregate.distinct && key.is_empty() {
        // DISTINCT alone gives the values in their order.
        for argument in &aggregate.arguments {
            let value = argument.eval_result(context, row)?;
            push_order_key(&argument.result, false, value, &mut key);
        }
    }
    Ok(Some(Item { key, text }))
}

/// An element of JSON_ARRAYAGG, a member of JSON_OBJECTAGG.
fn json_item(
    aggregate: &Aggregate,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Item, SqlError> {
    let mut text = Vec::new();
    let mut value = &aggregate.arguments[0];
    if let [name, of_name] = &aggregate.arguments[..] {
        crate::json::quote(&name.eval_text(context, row)?.unwrap_or_default(), &mut text);
        text.push(b':');
        value = of_name;
    }
    crate::functions::json_make::push_value(context, row, value, &mut text)?;
    let mut key = Vec::new();
    for (expr, descending) in &aggregate.concat.order_by {
        let value = expr.eval_result(context, row)?;
        push_order_key(&expr.result, *descending, value, &mut key);
    }
    Ok(Item { key, text })
}

fn json_value(
    items: &[Item],
    aggregate: &Aggregate,
    [open, close]: [u8; 2],
    comma: &[u8],
) -> Value {
    if items.is_empty() {
        return Value::Null;
    }
    let mut ordered: Vec<&Item> = items.iter().collect();
    ordered.sort_by(|a, b| a.key.cmp(&b.key));
    let (skip, take) = aggregate.concat.limit.unwrap_or((0, u64::MAX));
    let take = usize::try_from(take).unwrap_or(usize::MAX);
    let mut text = vec![open];
    for (number, item) in ordered.iter().skip(skip as usize).take(take).enumerate() {
        if number > 0 {
            text.extend_from_slice(comma);
        }
        text.extend_from_slice(&item.text);
    }
    text.push(close);
    Value::Bytes(text)
}

fn concat_value(
    aggregate: &Aggregate,
    items: &[Item],
    bytes: usize,
    context: &EvalContext,
) -> Value {
    if items.is_empty() {
        return Value::Null;
    }
    let mut ordered: Vec<&Item> = items.iter().collect();
    if !aggregate.concat.order_by.is_empty() {
        // Of equal keys the server gives the later first.
        ordered.reverse();
    }
    ordered.sort_by(|a, b| a.key.cmp(&b.key));
    let separator: &[u8] = aggregate.concat.separator.as_deref().unwrap_or(b",");
    let (skip, take) = aggregate.concat.limit.unwrap_or((0, u64::MAX));
    let chosen =
        ordered.iter().skip(skip as usize).take(usize::try_from(take).unwrap_or(usize::MAX));
    let mut text = Vec::with_capacity(bytes + separator.len() * items.len());
    let limit = context.settings.group_concat_max_len;
    for (i, item) in chosen.enumerate() {
        if i > 0 {
            text.extend_from_slice(separator);
        }
        text.extend_from_slice(&item.text);
        if text.len() > limit {
            let charset = aggregate.result.collation().charset();
            let mut end = limit;
            while end > 0 && charset.valid_prefix(&text[..end]) < end {
                end -= 1;
            }
            text.truncate(end);
            let row = i + 1;
            let warning = Warning::new(&codes::CUT_VALUE_GROUP_CONCAT, &[&row, &"group_concat()"]);
            context.push_warning(warning);
            break;
        }
    }
    Value::Bytes(text)
}
