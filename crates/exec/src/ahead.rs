//! What is asked for before a statement runs: the memory of the row that it will read.

use crate::key::{Place, place};
use crate::spare;
use expr::{Expr, ExprKind};
use plan::physical::{Access, Plan, QueryPlan, TableSource};
use types::row::RowLayout;
use types::{TimeZone, Value};

/// Asks for the memory of the leaf in which a plan will look for its one row, if the row's key is
/// integers among these parameters. Nothing is opened, read from a file or waited for; see
/// [`runtime::prefetch`].
pub fn prefetch_row(plan: &Plan, parameters: &[Value]) {
    let select = match plan {
        Plan::Query(QueryPlan::Select(select)) => select,
        Plan::Update(update) => &update.select,
        Plan::Delete(delete) => &delete.select,
        _ => return,
    };
    let [step] = select.tables.as_slice() else { return };
    let (TableSource::Base(entry), Access::Point { key: values }) = (&step.source, &step.access)
    else {
        return;
    };
    let Some(table) = entry.0.open_handle() else { return };
    let layout = &entry.0.layouts().row;
    let mut buffers = spare::take_point();
    if point_of_integers(values, layout, parameters, &mut buffers.key) {
        table.prefetch(&buffers.key);
    }
    spare::give_point(buffers);
}

/// The clustered key of a table whose parts are all integers among the parameters: the same that
/// [`crate::key::KeySource::point`] makes of them. False if it is not like that.
fn point_of_integers(
    values: &[Expr],
    layout: &RowLayout,
    parameters: &[Value],
    key: &mut Vec<u8>,
) -> bool {
    key.clear();
    values.iter().zip(layout.clustered_key()).all(|(value, part)| {
        let ExprKind::Parameter(number) = value.kind else { return false };
        let column_type = &layout.columns()[part.column].column_type;
        match parameters.get(number) {
            Some(value @ (Value::Int(_) | Value::UInt(_))) => {
                match place(value.as_ref(), column_type, TimeZone::System) {
                    Place::At(value, true) => part.push(value.as_ref(), key).is_ok(),
                    _ => false,
                }
            }
            _ => false,
        }
    })
}
