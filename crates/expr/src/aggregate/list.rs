//! GROUP_CONCAT, JSON_ARRAYAGG and JSON_OBJECTAGG: their items, and their text made of these.

use super::accumulate::{KEPT_OVERHEAD_BYTES, push_order_key};
use super::{Aggregate, AggregateFunction};
use crate::context::{Columns, EvalContext, NoColumns};
use crate::expression::Expr;
use types::{SqlError, Value, ValueRef, Warning, codes};

/// One value of a list (GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG) with its sort key.
#[derive(Clone, Debug)]
pub struct Item {
    /// Bytes by which items are ordered; equal ones stay as they came, or the other way round
    /// ([`Aggregate::gives_later_first`]).
    pub key: Vec<u8>,
    /// What stands in the list.
    pub text: Vec<u8>,
}

/// The text of a list, made item by item in the list's order.
pub struct ListText<'a> {
    aggregate: &'a Aggregate,
    separator: &'a [u8],
    text: Vec<u8>,
    /// Items left out, and most that are taken.
    limit: (u64, u64),
    /// Items that came.
    items: u64,
    ended: bool,
}

impl<'a> ListText<'a> {
    /// Without items.
    pub fn new(aggregate: &'a Aggregate, context: &EvalContext) -> Result<Self, SqlError> {
        let (open, separator): (&[u8], &[u8]) = match aggregate.function {
            AggregateFunction::JsonArray => (b"[", b","),
            AggregateFunction::JsonObject => (b"{", b", "),
            _ => (b"", aggregate.concat.separator.as_deref().unwrap_or(b",")),
        };
        let number = |expr: &Option<Expr>, other: u64| match expr {
            None => Ok(other),
            Some(expr) => Ok(match expr.eval(context, &NoColumns)? {
                ValueRef::UInt(number) => number,
                ValueRef::Int(number) => number.max(0) as u64,
                _ => other,
            }),
        };
        let limit = match &aggregate.concat.limit {
            None => (0, u64::MAX),
            Some((skip, take)) => (number(skip, 0)?, number(take, u64::MAX)?),
        };
        Ok(Self { aggregate, separator, text: open.to_vec(), limit, items: 0, ended: false })
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Adds an item, the next in the list's order; false if no more are wanted.
    pub fn push(&mut self, item: &[u8], context: &EvalContext) -> bool {
        self.items += 1;
        let (skip, take) = self.limit;
        if self.items <= skip {
            return true;
        }
        let number = self.items - skip;
        self.ended |= number > take;
        if self.ended {
            return false;
        }
        if number > 1 {
            self.text.extend_from_slice(self.separator);
        }
        self.text.extend_from_slice(item);
        let limit = context.settings.group_concat_max_len;
        if self.aggregate.function == AggregateFunction::GroupConcat && self.text.len() > limit {
            self.cut(limit, context);
        }
        !self.ended
    }

    fn cut(&mut self, limit: usize, context: &EvalContext) {
        let charset = self.aggregate.result.collation().charset();
        let mut end = limit;
        while end > 0 && charset.valid_prefix(&self.text[..end]) < end {
            end -= 1;
        }
        self.text.truncate(end);
        self.ended = true;
        let shown: [&dyn std::fmt::Display; 2] = [&self.items, &"GROUP_CONCAT("];
        let warning = Warning::new(&codes::CUT_VALUE_GROUP_CONCAT, &shown);
        context.push_warning(warning);
    }

    /// The list; NULL if no item came.
    pub fn finish(mut self) -> Value {
        if self.items == 0 {
            return Value::Null;
        }
        match self.aggregate.function {
            AggregateFunction::JsonArray => self.text.push(b']'),
            AggregateFunction::JsonObject => self.text.push(b'}'),
            _ => {}
        }
        Value::Bytes(self.text)
    }
}

impl Item {
    /// Memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.key.len() + self.text.len() + KEPT_OVERHEAD_BYTES
    }
}

/// The item of a row; none if one of the arguments is NULL.
pub(super) fn concat_item(
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
pub(super) fn json_item(
    aggregate: &Aggregate,
    context: &EvalContext,
    row: &dyn Columns,
) -> Result<Item, SqlError> {
    let mut text = Vec::new();
    let mut value = &aggregate.arguments[0];
    let charset = aggregate.result.collation().charset();
    if let [name, of_name] = &aggregate.arguments[..] {
        let way = (name.result.collation().charset(), charset);
        crate::json::quote(&name.eval_text(context, row)?.unwrap_or_default(), way, &mut text);
        text.push(b':');
        value = of_name;
    }
    crate::functions::json_make::push_value(context, row, value, charset, &mut text)?;
    let mut key = Vec::new();
    for (expr, descending) in &aggregate.concat.order_by {
        let value = expr.eval_result(context, row)?;
        push_order_key(&expr.result, *descending, value, &mut key);
    }
    Ok(Item { key, text })
}

/// The list of items as they came.
pub(super) fn list_value(
    aggregate: &Aggregate,
    items: &[Item],
    context: &EvalContext,
) -> Result<Value, SqlError> {
    let mut ordered: Vec<&Item> = items.iter().collect();
    if aggregate.gives_later_first() {
        ordered.reverse();
    }
    ordered.sort_by(|a, b| a.key.cmp(&b.key));
    let mut list = ListText::new(aggregate, context)?;
    for item in ordered {
        if !list.push(&item.text, context) {
            break;
        }
    }
    Ok(list.finish())
}
