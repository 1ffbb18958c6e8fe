//! The rows of a subquery on the right side of IN, ANY and ALL.
//!
//! 1. Rows of a subquery that reads the frame are compared as they come, until one decides.
//! 2. Those of another are kept. Where there are many, a table finds those that may be equal to
//!    an operand of IN.
//! 3. Rows that do not fit into the budget lie in a file. For IN there is also a table of their
//!    keys in files; only rows without a key, as with a NULL, are compared one by one then. For
//!    ANY and ALL the least and the greatest value decide, and no row is kept.

use super::derived::{DerivedRows, RowKeeper};
use super::keys::{KEY_OVERHEAD_BYTES, Keys};
use super::{Flow, row_bytes, run_query};
use crate::ExecError;
use crate::context::Exec;
use crate::spill::{Charged, KeyTable};
use expr::{Columns, CompareOperator, CompareRule, EvalContext, Expr, compare_values};
use plan::physical::{Apply, ApplyKind, ResultColumn};
use smallvec::SmallVec;
use std::cmp::Ordering;
use types::{Decimal, Value, ValueRef, collation};

/// See the head of the file.
pub enum InRows {
    /// They are in memory.
    Kept {
        /// The rows.
        rows: Vec<Vec<Value>>,
        /// Those that may be equal to an operand, where there are many.
        table: Option<InTable>,
        /// Their memory.
        _charged: Charged,
    },
    /// They lie in files.
    Spilled {
        /// Keys of those that have one.
        keys: Box<KeyTable>,
        /// Those that have none.
        keyless: DerivedRows,
        /// All of them.
        rows: DerivedRows,
    },
    /// All that matters of them.
    Extremes(Extremes),
}

/// Finds the rows that may be equal to an operand.
pub struct InTable {
    keys: Keys,
    /// Rows of key number N.
    rows: Vec<Vec<u32>>,
    /// Rows with a NULL, which may be equal to anything.
    unknown: Vec<u32>,
}

/// The least and the greatest of values.
pub struct Extremes {
    /// None if all values are NULL.
    ends: Option<[Value; 2]>,
    has_null: bool,
}

/// Fewer rows are compared one by one.
const TABLE_ROWS: usize = 16;

/// The key of values that are compared by these rules, if they have one: values that compare as
/// equal have the same, and others have others.
fn key_of<'v>(
    values: impl Iterator<Item = ValueRef<'v>>,
    rules: &[CompareRule],
) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for (value, rule) in values.zip(rules) {
        match (rule, value) {
            (CompareRule::Text(collation), ValueRef::Bytes(text)) => {
                let start = key.len();
                key.extend_from_slice(&[0; 4]);
                collation::push_sort_key(collation.info(), text, &mut key);
                let length = (key.len() - start - 4) as u32;
                key[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }
            (CompareRule::Integer, ValueRef::Int(number)) => {
                key.extend_from_slice(&i128::from(number).to_le_bytes());
            }
            (CompareRule::Integer, ValueRef::UInt(number)) => {
                key.extend_from_slice(&i128::from(number).to_le_bytes());
            }
            (CompareRule::Decimal, ValueRef::Decimal(number)) => push_decimal(&number, &mut key),
            (CompareRule::Decimal, ValueRef::Int(number)) => {
                push_decimal(&Decimal::from(number), &mut key);
            }
            (CompareRule::Double, ValueRef::Double(number)) => {
                key.extend_from_slice(&(number + 0.0).to_bits().to_le_bytes());
            }
            (CompareRule::DateTime, ValueRef::DateTime(moment)) => {
                key.extend_from_slice(&moment.0.to_le_bytes());
            }
            (CompareRule::DateTime, ValueRef::Date(date)) => {
                key.extend_from_slice(&date.at_midnight().0.to_le_bytes());
            }
            (CompareRule::Time, ValueRef::Time(time)) => {
                key.extend_from_slice(&time.0.to_le_bytes());
            }
            _ => return None,
        }
    }
    Some(key)
}

fn push_decimal(number: &Decimal, key: &mut Vec<u8>) {
    let start = key.len();
    number.write_text(key);
    if number.scale() > 0 {
        let zeros = key[start..].iter().rev().take_while(|byte| **byte == b'0').count();
        key.truncate(key.len() - zeros);
        if key.last() == Some(&b'.') {
            key.pop();
        }
    }
    key.push(0);
}

impl InTable {
    fn new(
        exec: &Exec<'_>,
        rows: &[Vec<Value>],
        rules: &[CompareRule],
        charged: &mut Charged,
    ) -> Result<Option<Self>, ExecError> {
        let mut table = Self { keys: Keys::default(), rows: Vec::new(), unknown: Vec::new() };
        for (number, row) in rows.iter().enumerate() {
            runtime::yield_if_due();
            if row.iter().any(Value::is_null) {
                table.unknown.push(number as u32);
                continue;
            }
            let Some(key) = key_of(row.iter().map(Value::as_ref), rules) else { return Ok(None) };
            let (place, is_new) = table.keys.insert(&key);
            if is_new {
                if !charged.add(key.len() + KEY_OVERHEAD_BYTES + 32) {
                    return Err(super::refused());
                }
                table.rows.push(Vec::new());
            }
            table.rows[place].push(number as u32);
        }
        exec.check_cancelled()?;
        Ok(Some(table))
    }

    /// The rows with which values without NULL must be compared.
    fn candidates(&self, values: &[ValueRef<'_>], rules: &[CompareRule]) -> Option<Vec<u32>> {
        if values.iter().any(|value| value.is_null()) {
            return None;
        }
        let key = key_of(values.iter().copied(), rules)?;
        let equal = self.keys.find(&key).map_or(&[][..], |place| &self.rows[place]);
        // Of one column a NULL says all that any of them can.
        let most = if values.len() == 1 { 1 } else { self.unknown.len() };
        Some(equal.iter().chain(self.unknown.iter().take(most)).copied().collect())
    }
}

/// What becomes of rows that do not fit.
enum Rest {
    Files { keys: Box<KeyTable>, keyless: RowKeeper, rows: RowKeeper },
    Extremes(Extremes),
}

struct Keeper<'p> {
    apply: &'p Apply,
    columns: &'p [ResultColumn],
    rows: Vec<Vec<Value>>,
    charged: Charged,
    rest: Option<Rest>,
}

impl InRows {
    /// The rows of a subquery that does not read the frame.
    pub fn collect(exec: &mut Exec<'_>, apply: &Apply) -> Result<Self, ExecError> {
        let (spill, memory) = (exec.spill.clone(), exec.memory.clone());
        let budget = spill.budgets().table;
        let columns = apply.query.columns();
        let charged = Charged::none(&memory);
        let mut keeper = Keeper { apply, columns, rows: Vec::new(), charged, rest: None };
        let width = columns.len();
        run_query(exec, &apply.query, &[], &mut |eval, row| {
            if keeper.rest.is_none() {
                let row: Vec<Value> = row.iter().map(|&value| value.to_owned()).collect();
                let bytes = row_bytes(&row);
                if keeper.charged.bytes() + bytes as u64 <= budget && keeper.charged.add(bytes) {
                    keeper.rows.push(row);
                    return Ok(Flow::Continue(()));
                }
                keeper.charged.clear();
                keeper.rest = Some(if keeper.extremes_decide() {
                    Rest::Extremes(Extremes { ends: None, has_null: false })
                } else {
                    let keeper = || RowKeeper::in_file(&memory, &spill, width);
                    let keys = Box::new(KeyTable::new(&spill, &memory, budget)?);
                    Rest::Files { keys, keyless: keeper()?, rows: keeper()? }
                });
                for row in std::mem::take(&mut keeper.rows) {
                    let row: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
                    keeper.put(eval, &row)?;
                }
            }
            keeper.put(eval, row)?;
            Ok(Flow::Continue(()))
        })?;
        keeper.finish(exec)
    }
}

impl Keeper<'_> {
    /// Whether the least and the greatest value decide.
    fn extremes_decide(&self) -> bool {
        match &self.apply.kind {
            ApplyKind::Quantified { operator, all, .. } => match operator {
                CompareOperator::Equal => *all,
                CompareOperator::NotEqual => !*all,
                _ => true,
            },
            _ => false,
        }
    }

    fn put(&mut self, eval: &EvalContext, row: &[ValueRef<'_>]) -> Result<(), ExecError> {
        match (&mut self.rest, &self.apply.kind) {
            (Some(Rest::Extremes(extremes)), ApplyKind::Quantified { rule, .. }) => {
                let value = row.first().copied().unwrap_or(ValueRef::Null);
                extremes.add(eval, *rule, value, &self.columns[0])
            }
            (Some(Rest::Files { keys, keyless, rows }), kind) => {
                let rules = match kind {
                    ApplyKind::In { rules, .. } => rules.as_slice(),
                    _ => &[],
                };
                rows.push(row)?;
                match key_of(row.iter().copied(), rules).filter(|_| !rules.is_empty()) {
                    Some(key) => keys.insert(&key).map(|_| ()),
                    None => keyless.push(row),
                }
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self, exec: &Exec<'_>) -> Result<InRows, ExecError> {
        Ok(match self.rest {
            Some(Rest::Extremes(extremes)) => InRows::Extremes(extremes),
            Some(Rest::Files { keys, keyless, rows }) => {
                InRows::Spilled { keys, keyless: keyless.finish()?, rows: rows.finish()? }
            }
            None => {
                let table = match &self.apply.kind {
                    ApplyKind::In { rules, .. } if self.rows.len() >= TABLE_ROWS => {
                        InTable::new(exec, &self.rows, rules, &mut self.charged)?
                    }
                    _ => None,
                };
                InRows::Kept { rows: self.rows, table, _charged: self.charged }
            }
        })
    }
}

impl Extremes {
    fn add(
        &mut self,
        eval: &EvalContext,
        rule: CompareRule,
        value: ValueRef<'_>,
        column: &ResultColumn,
    ) -> Result<(), ExecError> {
        if value.is_null() {
            self.has_null = true;
            return Ok(());
        }
        let Some(ends) = &mut self.ends else {
            self.ends = Some([value.to_owned(), value.to_owned()]);
            return Ok(());
        };
        for (end, is_beyond) in
            ends.iter_mut().zip([Ordering::is_lt as fn(Ordering) -> bool, Ordering::is_gt])
        {
            let known = (end.as_ref(), &column.result);
            let order = compare_values(eval, rule.exact(), (value, &column.result), known)?;
            if order.is_some_and(is_beyond) {
                *end = value.to_owned();
            }
        }
        Ok(())
    }
}

/// What a comparison with rows has come to.
struct Verdict<'a> {
    apply: &'a Apply,
    columns: &'a [ResultColumn],
    /// A comparison was neither true nor false.
    unknown: bool,
}

impl Verdict<'_> {
    /// What a row decides, if it does.
    fn of_row(
        &mut self,
        eval: &EvalContext,
        values: &[ValueRef<'_>],
        row: &[ValueRef<'_>],
    ) -> Result<Option<bool>, ExecError> {
        match &self.apply.kind {
            ApplyKind::In { operand, rules } => self.is_equal(eval, (operand, rules), values, row),
            ApplyKind::Quantified { operand, operator, rule, all } => {
                let left = (values[0], &operand.result);
                let right = row.first().copied().unwrap_or(ValueRef::Null);
                let right = (right, &self.columns[0].result);
                match compare_values(eval, *rule, left, right)? {
                    None => self.unknown = true,
                    Some(order) if operator.accepts(order) != *all => return Ok(Some(!*all)),
                    Some(_) => {}
                }
                Ok(None)
            }
            ApplyKind::Scalar | ApplyKind::Exists => Ok(None),
        }
    }

    fn is_equal(
        &mut self,
        eval: &EvalContext,
        (operand, rules): (&[Expr], &[CompareRule]),
        values: &[ValueRef<'_>],
        row: &[ValueRef<'_>],
    ) -> Result<Option<bool>, ExecError> {
        let mut equal = Some(true);
        for (place, right) in row.iter().enumerate().take(values.len()) {
            let left = (values[place], &operand[place].result);
            let right = (*right, &self.columns[place].result);
            match compare_values(eval, rules[place], left, right)? {
                Some(order) if order.is_eq() => {}
                Some(_) => return Ok(None),
                None => equal = None,
            }
        }
        self.unknown |= equal.is_none();
        Ok(equal)
    }

    /// The truth when no row has decided.
    fn finish(self) -> Option<bool> {
        let all = matches!(self.apply.kind, ApplyKind::Quantified { all: true, .. });
        if self.unknown { None } else { Some(all) }
    }
}

/// The operands of a comparison.
fn operands<'v>(
    eval: &'v EvalContext,
    frame: &'v dyn Columns,
    kind: &'v ApplyKind,
) -> Result<SmallVec<[ValueRef<'v>; 2]>, ExecError> {
    let mut values = SmallVec::new();
    match kind {
        ApplyKind::In { operand, rules } => {
            for (expr, rule) in operand.iter().zip(rules) {
                values.push(expr.eval_compared(*rule, eval, frame)?);
            }
        }
        ApplyKind::Quantified { operand, rule, .. } => {
            values.push(operand.eval_compared(*rule, eval, frame)?);
        }
        ApplyKind::Scalar | ApplyKind::Exists => {}
    }
    Ok(values)
}

/// Compares with the rows of a subquery that reads the frame.
pub fn compare_as_they_come(
    exec: &mut Exec<'_>,
    frame: &dyn Columns,
    apply: &Apply,
    outer: &[Value],
) -> Result<Option<bool>, ExecError> {
    let mut verdict = Verdict { apply, columns: apply.query.columns(), unknown: false };
    let owned = |found: SmallVec<[ValueRef<'_>; 2]>| -> Vec<Value> {
        found.iter().map(|&value| value.to_owned()).collect()
    };
    let is_in = matches!(apply.kind, ApplyKind::In { .. });
    // The left side of IN is not looked at without a row.
    let mut values: Option<Vec<Value>> = match is_in {
        true => None,
        false => Some(owned(operands(exec.eval, frame, &apply.kind)?)),
    };
    let mut decided = None;
    run_query(exec, &apply.query, outer, &mut |eval, row| {
        let values = match &mut values {
            Some(values) => values,
            none => none.insert(owned(operands(eval, frame, &apply.kind)?)),
        };
        let values: SmallVec<[ValueRef<'_>; 2]> = values.iter().map(Value::as_ref).collect();
        if let ([ValueRef::Null], true) = (&values[..], is_in) {
            verdict.unknown = true;
            return Ok(Flow::Break(()));
        }
        decided = verdict.of_row(eval, &values, row)?;
        Ok(if decided.is_some() { Flow::Break(()) } else { Flow::Continue(()) })
    })?;
    Ok(decided.or_else(|| verdict.finish()))
}

/// Compares with rows that were collected.
pub fn compare(
    exec: &mut Exec<'_>,
    frame: &dyn Columns,
    apply: &Apply,
    rows: &mut InRows,
) -> Result<Option<bool>, ExecError> {
    let mut verdict = Verdict { apply, columns: apply.query.columns(), unknown: false };
    let is_in = matches!(apply.kind, ApplyKind::In { .. });
    match rows {
        InRows::Kept { rows, .. } if rows.is_empty() && is_in => Ok(verdict.finish()),
        InRows::Kept { rows, table, .. } => {
            let values = operands(exec.eval, frame, &apply.kind)?;
            if let ([ValueRef::Null], true) = (&values[..], is_in) {
                return Ok(None);
            }
            let candidates = match (&apply.kind, table) {
                (ApplyKind::In { rules, .. }, Some(table)) => table.candidates(&values, rules),
                _ => None,
            };
            let chosen = candidates.as_deref().unwrap_or(&[]).iter();
            let chosen = chosen.filter_map(|&number| rows.get(number as usize));
            let all = if candidates.is_some() { &[] } else { rows.as_slice() };
            for row in chosen.chain(all) {
                let row: SmallVec<[ValueRef<'_>; 4]> = row.iter().map(Value::as_ref).collect();
                let decided = verdict.of_row(exec.eval, &values, &row)?;
                if decided.is_some() {
                    return Ok(decided);
                }
            }
            Ok(verdict.finish())
        }
        InRows::Extremes(extremes) => {
            let values = operands(exec.eval, frame, &apply.kind)?;
            verdict.unknown = extremes.has_null;
            for end in extremes.ends.iter().flatten() {
                let decided = verdict.of_row(exec.eval, &values, &[end.as_ref()])?;
                if decided.is_some() {
                    return Ok(decided);
                }
            }
            Ok(verdict.finish())
        }
        InRows::Spilled { keys, keyless, rows } => {
            let values: Vec<Value> = {
                let values = operands(exec.eval, frame, &apply.kind)?;
                values.iter().map(|&value| value.to_owned()).collect()
            };
            if let ([Value::Null], true) = (&values[..], is_in) {
                return Ok(None);
            }
            compare_spilled(exec, verdict, &values, keys, [&*keyless, &*rows])
        }
    }
}

/// Compares with rows that lie in files: those without a key, and all of them.
fn compare_spilled(
    exec: &mut Exec<'_>,
    mut verdict: Verdict<'_>,
    values: &[Value],
    keys: &mut KeyTable,
    [keyless, rows]: [&DerivedRows; 2],
) -> Result<Option<bool>, ExecError> {
    let values: SmallVec<[ValueRef<'_>; 2]> = values.iter().map(Value::as_ref).collect();
    let key = match &verdict.apply.kind {
        ApplyKind::In { rules, .. } => key_of(values.iter().copied(), rules),
        _ => None,
    };
    let compared = match key {
        Some(key) if keys.contains(&key)? => return Ok(Some(true)),
        Some(_) => keyless,
        None => rows,
    };
    let (width, mut decided) = (verdict.columns.len(), None);
    let _ = compared.each_part(exec, |exec, part| {
        for number in 0..part.len() {
            exec.tick()?;
            let mut row = part.row(number);
            let row: SmallVec<[ValueRef<'_>; 4]> = (0..width).map(|_| row.next_value()).collect();
            decided = verdict.of_row(exec.eval, &values, &row)?;
            if decided.is_some() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    })?;
    Ok(decided.or_else(|| verdict.finish()))
}
