//! Partitions in ALTER TABLE. Rows of partitions that go are left out while the others are copied.

use super::alter_plan::Work;
use super::partition_values::{self, check_names};
use super::{DdlContext, partition, unsupported};
use crate::ExecError;
use catalog::Partitions;
use engine_api::TableDefinition;
use syntax::ast::{AlterAction, PartitionSpecification};
use types::error::ErrorCode;
use types::{SqlError, codes};

fn refused(code: &'static ErrorCode) -> ExecError {
    SqlError::new(code, &[]).into()
}

/// What one of these actions comes to; `table` gets the new clause.
pub(super) fn plan(
    context: &DdlContext<'_>,
    action: &AlterAction,
    table: &mut TableDefinition,
    work: &mut Work,
) -> Result<(), ExecError> {
    match action {
        AlterAction::PartitionBy(written) => {
            (work.copy, work.reports) = (true, true);
            return partition::apply(context, table, written);
        }
        AlterAction::Other(text) if text.eq_ignore_ascii_case("REMOVE PARTITIONING") => {
            (work.copy, work.reports) = (true, true);
            return partition::remove(table);
        }
        AlterAction::Other(_) => return Err(unsupported(&format!("ALTER TABLE {action:?}"))),
        _ => {}
    }
    let former = Partitions::of(table);
    let former = former.ok_or_else(|| refused(&codes::PARTITION_MGMT_ON_NONPARTITIONED))?;
    match action {
        AlterAction::AddPartitions { count, partitions, .. } => {
            add(context, table, work, former, (*count, partitions))
        }
        AlterAction::DropPartitions { if_exists, names } => {
            drop(context, table, work, former, (names, *if_exists))
        }
        AlterAction::TruncatePartitions(names) => {
            for name in names {
                let found = former.position(name);
                let unknown = SqlError::new(&codes::UNKNOWN_PARTITION, &[name, &table.name]);
                work.leave_out.push(found.ok_or(unknown)?);
            }
            if names.is_empty() {
                work.leave_out = (0..former.names().len()).collect();
            }
            work.copy = true;
            Ok(())
        }
        AlterAction::RebuildPartitions(names) => {
            let missing = || refused(&codes::DROP_PARTITION_NON_EXISTENT);
            let found = names.iter().map(|name| former.position(name).ok_or_else(missing));
            work.counted = found.collect::<Result<_, _>>()?;
            (work.copy, work.reports) = (true, true);
            Ok(())
        }
        AlterAction::ReorganizePartitions { names, partitions } => {
            (work.copy, work.reports) = (true, true);
            work.counted = names.iter().filter_map(|name| former.position(name)).collect();
            reorganize(context, table, former, names, partitions)
        }
        AlterAction::CoalescePartitions(number) => {
            (work.copy, work.reports) = (true, true);
            coalesce(table, former, *number)
        }
        _ => Ok(()),
    }
}

fn is_by_values(partitions: &Partitions) -> bool {
    partitions.is_range() || partitions.is_list()
}

/// Positions of the columns that the clause names.
fn columns_of(table: &TableDefinition, partitions: &Partitions) -> Vec<usize> {
    let text = partitions.method().1;
    let place = |column: &engine_api::ColumnDefinition| {
        text.find(&catalog::describe::quote_name(&column.name))
    };
    let found = table.columns.iter().enumerate();
    let mut found: Vec<(usize, usize)> =
        found.filter_map(|(at, column)| place(column).map(|place| (place, at))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, at)| at).collect()
}

/// The clause with other partitions in place of those in a range; what others say stays.
fn replaced(
    context: &DdlContext<'_>,
    table: &TableDefinition,
    former: &Partitions,
    range: std::ops::Range<usize>,
    written: &[PartitionSpecification],
) -> Result<Partitions, ExecError> {
    let mut made = Partitions { by: former.by.clone(), ..Partitions::default() };
    let columns = columns_of(table, former);
    partition_values::put(context, table, &mut made, &columns, written)?;
    let mut whole = former.clone();
    whole.written = former.names();
    whole.count = None;
    whole.comments.resize(whole.written.len(), String::new());
    whole.written.splice(range.clone(), made.written);
    whole.comments.splice(range.clone(), made.comments);
    if is_by_values(former) {
        whole.values.splice(range, made.values);
    }
    check_names(whole.written.iter().map(String::as_str))?;
    partition_values::check_order(context, table, &whole, &columns)?;
    Ok(whole)
}

fn add(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    former: Partitions,
    (count, written): (u64, &[PartitionSpecification]),
) -> Result<(), ExecError> {
    let end = former.names().len();
    if (end as u64).saturating_add(count) > partition::PARTITIONS_MAX {
        return Err(refused(&codes::TOO_MANY_PARTITIONS_ERROR));
    }
    if written.is_empty() {
        if is_by_values(&former) {
            let method = if former.is_range() { "RANGE" } else { "LIST" };
            let code = &codes::PARTITIONS_MUST_BE_DEFINED_ERROR;
            return Err(SqlError::new(code, &[&method]).into());
        }
        (work.copy, work.reports) = (true, true);
        return resize(table, former, end as u64 + count);
    }
    let made = replaced(context, table, &former, end..end, written)?;
    if !is_by_values(&former) {
        (work.copy, work.reports) = (true, true);
    }
    work.copy = true;
    made.store(table);
    Ok(())
}

/// HASH and KEY with another number of partitions.
fn resize(table: &mut TableDefinition, former: Partitions, count: u64) -> Result<(), ExecError> {
    let mut made = former;
    if !made.written.is_empty() {
        let mut number = made.written.len();
        made.written.truncate(count as usize);
        while (made.written.len() as u64) < count {
            let name = format!("p{number}");
            number += 1;
            if made.position(&name).is_none() {
                made.written.push(name);
            }
        }
        made.comments.resize(made.written.len(), String::new());
    }
    made.count = Some(count);
    made.store(table);
    Ok(())
}

fn coalesce(table: &mut TableDefinition, former: Partitions, number: u64) -> Result<(), ExecError> {
    if is_by_values(&former) {
        return Err(refused(&codes::COALESCE_ONLY_ON_HASH_PARTITION));
    }
    let count = former.names().len() as u64;
    match number {
        0 => Err(refused(&codes::COALESCE_PARTITION_NO_PARTITION)),
        _ if number >= count => Err(refused(&codes::DROP_LAST_PARTITION)),
        _ => resize(table, former, count - number),
    }
}

fn drop(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    work: &mut Work,
    former: Partitions,
    (names, if_exists): (&[String], bool),
) -> Result<(), ExecError> {
    if !is_by_values(&former) {
        let code = &codes::ONLY_ON_RANGE_LIST_PARTITION;
        return Err(SqlError::new(code, &[&"DROP"]).into());
    }
    let mut gone = Vec::with_capacity(names.len());
    for name in names {
        match former.position(name) {
            Some(at) => gone.push(at),
            None if if_exists => {
                context.note_sql(&SqlError::new(&codes::DROP_PARTITION_NON_EXISTENT, &[]));
            }
            None => return Err(refused(&codes::DROP_PARTITION_NON_EXISTENT)),
        }
    }
    gone.sort_unstable();
    gone.dedup();
    if gone.is_empty() {
        return Ok(());
    }
    if gone.len() == former.names().len() {
        return Err(refused(&codes::DROP_LAST_PARTITION));
    }
    let mut made = former;
    for at in gone.iter().rev() {
        made.written.remove(*at);
        made.values.remove(*at);
        if *at < made.comments.len() {
            made.comments.remove(*at);
        }
    }
    made.store(table);
    work.leave_out = gone;
    work.copy = true;
    Ok(())
}

fn reorganize(
    context: &DdlContext<'_>,
    table: &mut TableDefinition,
    former: Partitions,
    names: &[String],
    written: &[PartitionSpecification],
) -> Result<(), ExecError> {
    if !is_by_values(&former) {
        return Err(unsupported("REORGANIZE PARTITION of HASH and KEY"));
    }
    let missing = || refused(&codes::DROP_PARTITION_NON_EXISTENT);
    let found = names.iter().map(|name| former.position(name).ok_or_else(missing));
    let mut found = found.collect::<Result<Vec<usize>, _>>()?;
    found.sort_unstable();
    let (first, end) = (found[0], found[found.len() - 1] + 1);
    if end - first != found.len() {
        return Err(refused(&codes::CONSECUTIVE_REORG_PARTITIONS));
    }
    let made = replaced(context, table, &former, first..end, written)?;
    let (old, new) = (&former.values[end - 1], &made.values[first + written.len() - 1]);
    if former.is_range() && old != new && end < former.values.len() {
        return Err(refused(&codes::REORG_OUTSIDE_RANGE));
    }
    made.store(table);
    Ok(())
}
