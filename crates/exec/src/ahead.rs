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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeySource;
    use expr::{EvalContext, NoColumns, ResultType};
    use types::row::{KeyPart, LayoutColumn};
    use types::{ColumnType, TypeKind};

    const KINDS: [TypeKind; 5] = [
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::MediumInt,
        TypeKind::Int,
        TypeKind::BigInt,
    ];

    fn column(kind: TypeKind, unsigned: bool) -> LayoutColumn {
        LayoutColumn { column_type: ColumnType::integer(kind, unsigned), nullable: false }
    }

    fn parameter(number: usize) -> Expr {
        Expr { kind: ExprKind::Parameter(number), result: ResultType::bigint(false, false) }
    }

    /// The key that is asked for ahead, and the one by which the execution looks the row up.
    fn keys(layout: &RowLayout, values: &[Expr], parameters: &[Value]) -> [Option<Vec<u8>>; 2] {
        let mut ahead = b"of a former statement".to_vec();
        let is_known = point_of_integers(values, layout, parameters, &mut ahead);
        let mut eval = EvalContext::new();
        eval.parameters = parameters.to_vec();
        let (parts, columns) = (layout.clustered_key(), layout.columns());
        let source = KeySource { eval: &eval, row: &NoColumns, parts, columns };
        let mut key = Vec::new();
        let found = source.point(values, &mut key).expect("values are there");
        [is_known.then_some(ahead), (found == Some(true)).then_some(key)]
    }

    fn integers() -> Vec<Value> {
        let mut all = vec![Value::UInt(u64::MAX), Value::UInt(1 << 63), Value::Int(i64::MIN)];
        for bits in [0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 62] {
            let power = 1i64 << bits;
            for number in [power - 1, power, -power, -power - 1] {
                all.push(Value::Int(number));
                all.extend(u64::try_from(number).map(Value::UInt));
            }
        }
        all
    }

    #[test]
    fn the_key_asked_for_is_the_one_looked_up() {
        let (mut known, mut unknown) = (0, 0);
        for (kind, unsigned) in KINDS.iter().flat_map(|kind| [(*kind, false), (*kind, true)]) {
            for descending in [false, true] {
                let columns = [column(TypeKind::Int, false), column(kind, unsigned)];
                let last = KeyPart { descending, ..KeyPart::ascending(1) };
                let one = RowLayout::new(&columns, &[last], 1);
                let two = RowLayout::new(&columns, &[last, KeyPart::ascending(0)], 1);
                for value in integers() {
                    let alone = std::slice::from_ref(&value);
                    let [ahead, looked_up] = keys(&one, &[parameter(0)], alone);
                    assert_eq!(ahead, looked_up, "{value:?} as {kind:?}, unsigned: {unsigned}");
                    *(if ahead.is_some() { &mut known } else { &mut unknown }) += 1;
                    let values = [parameter(1), parameter(0)];
                    let [ahead, looked_up] = keys(&two, &values, &[Value::Int(-9), value]);
                    assert_eq!(ahead, looked_up, "two parts");
                }
            }
        }
        assert!(known > 500 && unknown > 100, "{known} and {unknown}");
    }

    #[test]
    fn nothing_is_asked_for_where_the_key_is_not_plain_to_see() {
        let columns = [column(TypeKind::Int, false)];
        let layout = RowLayout::new(&columns, &[KeyPart::ascending(0)], 1);
        let mut key = Vec::new();
        for value in [Value::Null, Value::text("5"), Value::Double(5.0)] {
            assert!(!point_of_integers(&[parameter(0)], &layout, &[value], &mut key));
        }
        let values = [Value::Int(5)];
        assert!(!point_of_integers(&[parameter(1)], &layout, &values, &mut key), "no such one");
        assert!(point_of_integers(&[parameter(0)], &layout, &values, &mut key));
    }
}
