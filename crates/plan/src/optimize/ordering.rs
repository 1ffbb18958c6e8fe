//! Whether an index gives rows in the order that is asked for.

use super::{WantedOrder, column_position};
use engine_api::{ScanDirection, TableDefinition};

/// The direction in which to read the index, if it gives the order.
///
/// Parts that equal one value in the whole range order nothing and are passed over. Behind the
/// parts of a secondary index stand those of the clustered one.
pub(super) fn direction(
    table: &TableDefinition,
    index: usize,
    equal_parts: usize,
    is_point: bool,
    first: usize,
    width: usize,
    wanted: &WantedOrder,
) -> Option<ScanDirection> {
    let definition = &table.indexes[index];
    let mut parts: Vec<(usize, bool, bool)> = Vec::new();
    let mut push = |part: &engine_api::IndexPart| {
        parts.push((part.column, part.descending, part.prefix.is_some()));
    };
    definition.parts.iter().for_each(&mut push);
    if index != 0 {
        table.indexes[0].parts.iter().for_each(&mut push);
    }
    let fixed: Vec<usize> = parts.iter().take(equal_parts).map(|(column, ..)| *column).collect();
    let mut rest = parts.iter().skip(equal_parts);
    let mut direction = None;
    for (key, descending) in &wanted.keys {
        let column = column_position(key)?.checked_sub(first).filter(|column| *column < width)?;
        if is_point || fixed.contains(&column) {
            continue;
        }
        let (part, part_descending, is_prefix) = rest.next()?;
        if *part != column || *is_prefix {
            return None;
        }
        let needed = if descending == part_descending {
            ScanDirection::Forward
        } else {
            ScanDirection::Backward
        };
        if *direction.get_or_insert(needed) != needed {
            return None;
        }
    }
    Some(direction.unwrap_or(ScanDirection::Forward))
}
