//! Batches of a scan (`vector.rs`) into a sorter, without a frame or an evaluation for each row.
//! This is done where each value of a row is a column or has a kernel that cannot fail.

use super::sorter::Sorter;
use super::vector::Columns;
use crate::ExecError;
use crate::context::Exec;
use expr::vector::{Batch, Kernel, Shape};
use expr::{Expr, ExprKind};
use types::ValueRef;
use types::row::Numbers;

enum Source {
    Number(Kernel, Numbers),
    /// The column of texts at a position.
    Text(usize),
    /// Any other column.
    Column(usize),
}

/// Room made ahead for a value.
const VALUE_BYTES: usize = 16;

/// How the values of a row come out of a batch.
pub struct SortBatch(Option<Vec<Source>>);

impl SortBatch {
    /// For the values of a projection.
    pub fn new(exec: &Exec<'_>, projection: &[Expr], shape: &dyn Shape) -> Self {
        let source = |expr: &Expr| match (Kernel::of_result(expr, exec.eval, shape), &expr.kind) {
            (Some(kernel), _) if kernel.is_exact() => {
                Some(Source::Number(kernel, Numbers::default()))
            }
            (_, ExprKind::Column { position, .. })
                if shape.holds(*position) && shape.lane(*position).is_none() =>
            {
                Some(match expr.result.is_string() {
                    true => Source::Text(*position),
                    false => Source::Column(*position),
                })
            }
            _ => None,
        };
        Self(projection.iter().map(source).collect())
    }

    /// Adds the selected rows. False, and nothing is added, if they must come one by one.
    pub fn add(
        &mut self,
        batch: &Columns<'_>,
        selected: &[u32],
        sorter: &mut Sorter,
    ) -> Result<bool, ExecError> {
        let Some(sources) = &mut self.0 else { return Ok(false) };
        let Some((first, rule)) = sorter.first_key() else { return Ok(false) };
        for source in sources.iter_mut() {
            if let Source::Number(kernel, numbers) = source
                && kernel.eval(batch, selected, numbers).is_err()
            {
                return Ok(false);
            }
        }
        let texts: Vec<Vec<Option<&[u8]>>> = sources
            .iter()
            .map(|source| {
                let mut texts = Vec::new();
                if let Source::Text(position) = source {
                    batch.texts(*position, selected, &mut texts);
                }
                texts
            })
            .collect();
        let number = |numbers: &Numbers, at: usize| {
            if numbers.is_null(at) { None } else { Some(numbers.values[at]) }
        };
        let value = |place: usize, position: usize, at: usize| match texts[place].get(at) {
            Some(text) => text.map_or(ValueRef::Null, ValueRef::Bytes),
            None => batch.value(position, selected[at]),
        };
        sorter.expect(selected.len(), sources.len() * VALUE_BYTES);
        for at in 0..selected.len() {
            let head = match &sources[first] {
                Source::Number(kernel, numbers) => rule.head_of(kernel.lane(), number(numbers, at)),
                Source::Text(position) | Source::Column(position) => {
                    rule.head(value(first, *position, at))
                }
            };
            sorter.add_with(head, |new| {
                for (place, source) in sources.iter().enumerate() {
                    match source {
                        Source::Number(kernel, numbers) => {
                            new.push_number(kernel.lane(), number(numbers, at));
                        }
                        Source::Text(position) | Source::Column(position) => {
                            new.push(value(place, *position, at));
                        }
                    }
                }
            })?;
        }
        Ok(true)
    }
}
