//! The row of one table: how it is read and what is said of it.

use super::{Row, push_extra};
use crate::physical::{Access, RangePlan, RangeValue, TableSource, TableStep};
use engine_api::TableDefinition;
use expr::{CompareOperator, Expr, ExprKind};
use types::{ColumnType, TypeKind};

/// The row of one table.
pub(super) fn row(step: &TableStep, id: u64, select_type: &str, before: &[TableStep]) -> Row {
    let mut row = Row::new(id, select_type);
    row.table = Some(step.alias.clone());
    row.rows = Some(step.rows_estimate);
    let TableSource::Base(entry) = &step.source else {
        row.kind = Some("ALL");
        if step.condition.is_some() || step.filter.is_some() {
            push_extra(&mut row, vec!["Using where"]);
        }
        if matches!(step.access, Access::Hash { .. }) {
            push_extra(&mut row, vec!["Using join buffer (flat, BNLH join)"]);
            row.kind = Some("hash_ALL");
        }
        return row;
    };
    let definition = entry.0.definition();
    let possible: Vec<&str> =
        step.possible_keys.iter().map(|index| definition.indexes[*index].name.as_str()).collect();
    row.possible_keys = (!possible.is_empty()).then(|| possible.join(","));
    describe_access(&mut row, step, &step.access, definition, before);
    row
}

fn describe_access(
    row: &mut Row,
    step: &TableStep,
    access: &Access,
    definition: &TableDefinition,
    before: &[TableStep],
) {
    match access {
        Access::Scan { index, covering, .. } => {
            let ordered = *index != 0 || !step.possible_keys.is_empty();
            row.kind = Some(if *covering || (ordered && *index != 0) { "index" } else { "ALL" });
            if row.kind == Some("index") {
                use_key(row, definition, *index, definition.indexes[*index].parts.len());
            }
            let mut words = Vec::new();
            if step.condition.is_some() || step.filter.is_some() {
                words.push("Using where");
            }
            if *covering {
                words.push("Using index");
            }
            push_extra(row, words);
        }
        Access::Point { key } => {
            let constant = key.iter().all(is_free_of_columns);
            row.kind = Some(if constant { "const" } else { "eq_ref" });
            use_key(row, definition, 0, key.len());
            row.reference = Some(references(key.iter(), before));
            if has_other_conditions(step, key.len()) {
                push_extra(row, vec!["Using where"]);
            }
        }
        Access::Ranges { index, ranges, covering, .. } => {
            describe_ranges(row, step, definition, before, *index, ranges, *covering);
        }
        Access::Hash { keys, .. } => {
            row.kind = Some("hash_ALL");
            row.key = Some("#hash#$hj".to_string());
            let length: u32 = keys
                .iter()
                .map(|(_, inner)| {
                    part_length(&inner.result.column_type, inner.result.nullable, None)
                })
                .sum();
            row.key_length = Some(length.to_string());
            row.reference = Some(references(keys.iter().map(|(outer, _)| outer), before));
            push_extra(row, vec!["Using where", "Using join buffer (flat, BNLH join)"]);
        }
    }
}

fn describe_ranges(
    row: &mut Row,
    step: &TableStep,
    definition: &TableDefinition,
    before: &[TableStep],
    index: usize,
    ranges: &[RangePlan],
    covering: bool,
) {
    let parts = ranges.iter().map(used_parts).max().unwrap_or(0);
    use_key(row, definition, index, parts);
    let mut words = Vec::new();
    let equalities = match ranges {
        [range] if range.lower.is_none() && range.upper.is_none() && !range.not_null => {
            Some(&range.equal)
        }
        _ => None,
    };
    if let Some(equal) = equalities {
        let full = definition.indexes[index].unique
            && equal.len() == definition.indexes[index].parts.len();
        let constant = equal.iter().filter_map(value_of).all(is_free_of_columns);
        row.kind = Some(match (full, constant) {
            (true, true) => "const",
            (true, false) => "eq_ref",
            (false, _) => "ref",
        });
        row.reference = Some(references(equal.iter().filter_map(value_of), before));
        if row.reference.as_deref() == Some("") {
            row.reference = Some("const".to_string());
        }
        let has_null_test = equal.iter().any(|value| matches!(value, RangeValue::Null));
        if has_null_test && !covering {
            words.push("Using index condition");
        }
        if has_other_conditions(step, equal.len()) {
            words.push("Using where");
        }
    } else {
        row.kind = Some("range");
        if covering || index == 0 {
            words.push("Using where");
        } else {
            words.push("Using index condition");
            if reads_beyond_index(step, definition, index) {
                words.push("Using where");
            }
        }
    }
    if covering {
        words.push("Using index");
    }
    push_extra(row, words);
}

fn used_parts(range: &RangePlan) -> usize {
    let bounded = range.lower.is_some() || range.upper.is_some() || range.not_null;
    range.equal.len() + usize::from(bounded)
}

fn value_of(value: &RangeValue) -> Option<&Expr> {
    match value {
        RangeValue::Equal(value) | RangeValue::NullSafe(value) => Some(value),
        RangeValue::Null => None,
    }
}

fn is_free_of_columns(expr: &Expr) -> bool {
    let mut free = true;
    expr.for_each_column(&mut |_| free = false);
    free
}

/// Whether a step has conditions beside the equalities that its access enforces.
fn has_other_conditions(step: &TableStep, enforced: usize) -> bool {
    let count = |condition: &Option<Expr>| match condition {
        None => 0,
        Some(Expr { kind: ExprKind::And(list), .. }) => list.len(),
        Some(_) => 1,
    };
    let is_equality = |expr: &Expr| {
        matches!(
            &expr.kind,
            ExprKind::Compare { operator: CompareOperator::Equal, .. } | ExprKind::Is { .. }
        )
    };
    let equalities = match &step.condition {
        Some(Expr { kind: ExprKind::And(list), .. }) => {
            list.iter().filter(|condition| is_equality(condition)).count()
        }
        Some(condition) => usize::from(is_equality(condition)),
        None => 0,
    };
    count(&step.filter) > 0 || count(&step.condition) > equalities.min(enforced)
}

/// Whether a condition reads columns of the table that the index does not have.
fn reads_beyond_index(step: &TableStep, definition: &TableDefinition, index: usize) -> bool {
    let parts = definition.indexes[index].parts.iter().chain(&definition.indexes[0].parts);
    let parts: Vec<usize> = parts.map(|part| step.first_position + part.column).collect();
    let own = step.first_position..step.first_position + definition.columns.len();
    let mut beyond = step.filter.is_some();
    if let Some(condition) = &step.condition {
        condition.for_each_column(&mut |position| {
            beyond |= own.contains(&position) && !parts.contains(&position);
        });
    }
    beyond
}

fn use_key(row: &mut Row, definition: &TableDefinition, index: usize, parts: usize) {
    let index = &definition.indexes[index];
    row.key = Some(index.name.clone());
    let lengths = index.parts.iter().take(parts).map(|part| {
        let column = &definition.columns[part.column];
        part_length(&column.column_type, column.nullable, part.prefix)
    });
    row.key_length = Some(lengths.sum::<u32>().to_string());
}

/// Bytes of an index part as MariaDB counts them.
fn part_length(column: &ColumnType, nullable: bool, prefix: Option<u32>) -> u32 {
    let characters = prefix.unwrap_or(column.length);
    let bytes = match column.kind {
        TypeKind::TinyInt | TypeKind::Year => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Time => 3 + u32::from(column.scale.div_ceil(2)),
        TypeKind::Timestamp => 4 + u32::from(column.scale.div_ceil(2)),
        TypeKind::DateTime => 5 + u32::from(column.scale.div_ceil(2)),
        TypeKind::Decimal => decimal_bytes(column.precision, column.scale),
        TypeKind::Null => 0,
        TypeKind::Bit => column.length.div_ceil(8),
        TypeKind::Enum => {
            1 + u32::from(column.members.is_some_and(|members| members.names().len() > 255))
        }
        TypeKind::Set => match column.members.map_or(0, |it| it.names().len().div_ceil(8)) {
            bytes @ 0..=4 => bytes as u32,
            _ => 8,
        },
        TypeKind::Char | TypeKind::Binary => characters * column.collation.charset().max_bytes(),
        _ => characters * column.collation.charset().max_bytes() + 2,
    };
    bytes + u32::from(nullable)
}

fn decimal_bytes(precision: u8, scale: u8) -> u32 {
    let digits = |count: u32| count / 9 * 4 + (count % 9).div_ceil(2);
    digits(u32::from(precision - scale.min(precision))) + digits(u32::from(scale))
}

/// What an access compares its key with.
fn references<'e>(values: impl Iterator<Item = &'e Expr>, before: &[TableStep]) -> String {
    let words = values.map(|value| match &value.kind {
        ExprKind::Column { position, .. } => column_reference(*position, before),
        _ if is_free_of_columns(value) => "const".to_string(),
        _ => "func".to_string(),
    });
    words.collect::<Vec<_>>().join(",")
}

fn column_reference(position: usize, before: &[TableStep]) -> String {
    for step in before {
        let TableSource::Base(entry) = &step.source else { continue };
        let definition = entry.0.definition();
        let column = position.checked_sub(step.first_position);
        if let Some(column) = column.and_then(|column| definition.columns.get(column)) {
            return format!("{}.{}.{}", definition.schema, step.alias, column.name);
        }
    }
    "func".to_string()
}
