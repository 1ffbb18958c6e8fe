//! The row of one table: how it is read and what is said of it.

use super::{Row, push_extra};
use crate::physical::{Access, RangePlan, RangeValue, SelectPlan, TableSource, TableStep};
use engine_api::TableDefinition;
use expr::{CompareOperator, Expr, ExprKind};
use types::{ColumnType, TypeKind, Value};

/// The row of one table.
pub(super) fn row(
    step: &TableStep,
    id: u64,
    select_type: &str,
    select: &SelectPlan,
    number: usize,
) -> Row {
    let before = &select.tables[..number];
    let mut row = Row::new(id, select_type);
    row.table = Some(step.alias.clone());
    row.rows = Some(step.rows_estimate);
    row.filtered = Some(step.percent());
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
    if number == 0 {
        describe_order(&mut row, step, select);
    }
    row
}

/// What ORDER BY says of the first table.
fn describe_order(row: &mut Row, step: &TableStep, select: &SelectPlan) {
    let orders = (select.in_order || !select.order_by.is_empty()) && select.aggregate.is_none();
    let is_constant = row.reference.as_deref().is_some_and(|r| r.split(',').all(|p| p == "const"));
    if orders && row.kind == Some("ref") && is_constant {
        let says = |word: &str| row.extra.as_deref().is_some_and(|extra| extra.contains(word));
        if !says("Using where") && !says("Using index condition") {
            let rest = row.extra.take().filter(|extra| !extra.is_empty());
            row.extra = Some("Using where".to_string());
            push_extra(row, rest.iter().map(String::as_str).collect());
        }
    }
    if !select.in_order || select.aggregate.is_some() {
        return;
    }
    if let Access::Scan { index: 0, .. } = step.access {
        use_clustered(row, step);
    }
    let count = select.limit.count.as_ref().and_then(|count| match count.literal() {
        Some(Value::Int(count)) => u64::try_from(*count).ok(),
        Some(Value::UInt(count)) => Some(*count),
        _ => None,
    });
    let limits = count.filter(|_| row.kind == Some("index") && step.condition.is_none());
    if let Some(count) = limits {
        row.rows = row.rows.map(|rows| rows.min(count.max(1)));
    }
}

/// The table is read in the order of its clustered key.
pub(super) fn use_clustered(row: &mut Row, step: &TableStep) {
    let TableSource::Base(entry) = &step.source else { return };
    let definition = entry.0.definition();
    let parts = definition.indexes[0].parts.len();
    if parts > 0 {
        row.kind = Some("index");
        use_key(row, definition, 0, parts);
    }
}

/// Conditions that the access does not make superfluous.
pub(super) fn attached(step: &TableStep) -> Vec<&Expr> {
    let equal = match &step.access {
        Access::Point { key } => key.len(),
        Access::Ranges { ranges, .. } => match &ranges[..] {
            [range] if range.lower.is_none() && range.upper.is_none() => range.equal.len(),
            _ => 0,
        },
        _ => 0,
    };
    let index = match &step.access {
        Access::Ranges { index, .. } => *index,
        _ => 0,
    };
    let enforced = |expr: &Expr| {
        let ExprKind::Compare { operator: CompareOperator::Equal, left, right, .. } = &expr.kind
        else {
            return false;
        };
        let TableSource::Base(entry) = &step.source else { return false };
        let definition = entry.0.definition();
        let parts = definition.indexes[index].parts.iter().take(equal);
        let is_part = |side: &Expr| {
            let ExprKind::Column { position, .. } = &side.kind else { return false };
            parts.clone().any(|part| {
                let column = &definition.columns[part.column].column_type;
                step.first_position + part.column == *position && !column.kind.is_string()
            })
        };
        is_part(left) || is_part(right)
    };
    let conditions = step.condition.iter().chain(&step.filter);
    let conjuncts = conditions.flat_map(|condition| match &condition.kind {
        ExprKind::And(list) => list.iter().collect::<Vec<_>>(),
        _ => vec![condition],
    });
    conjuncts.filter(|expr| !enforced(expr)).collect()
}

/// Whether a condition reads nothing of the table but columns of the index that is used.
pub(super) fn is_of_index(step: &TableStep, condition: &Expr) -> bool {
    let (TableSource::Base(entry), Access::Ranges { index, .. }) = (&step.source, &step.access)
    else {
        return false;
    };
    let definition = entry.0.definition();
    let parts = definition.indexes[*index].parts.iter().chain(&definition.indexes[0].parts);
    let parts: Vec<usize> = parts.map(|part| step.first_position + part.column).collect();
    let own = step.first_position..step.first_position + definition.columns.len();
    let mut inside = true;
    condition.for_each_column(&mut |at| inside &= !own.contains(&at) || parts.contains(&at));
    inside
}

/// Whether the one row of a step is found before any other: its key is constant.
fn is_constant(steps: &[TableStep], number: usize) -> bool {
    let step = &steps[number];
    let TableSource::Base(entry) = &step.source else { return false };
    let before = &steps[..number];
    match &step.access {
        Access::Point { key } => key.iter().all(|value| is_constant_value(value, before)),
        Access::Ranges { index, ranges, .. } => {
            let definition = &entry.0.definition().indexes[*index];
            let [range] = &ranges[..] else { return false };
            definition.unique
                && range.equal.len() == definition.parts.len()
                && range.equal.iter().all(|value| match value {
                    RangeValue::Equal(value) => is_constant_value(value, before),
                    RangeValue::NullSafe(_) | RangeValue::Null => false,
                })
        }
        _ => false,
    }
}

/// Whether a value depends on no row but those of constant tables.
fn is_constant_value(value: &Expr, before: &[TableStep]) -> bool {
    let mut constant = true;
    value.for_each_column(&mut |position| {
        constant &= before.iter().enumerate().any(|(number, step)| {
            let TableSource::Base(entry) = &step.source else { return false };
            let columns = entry.0.definition().columns.len();
            let own = step.first_position..step.first_position + columns;
            own.contains(&position) && !step.left_join && is_constant(before, number)
        });
    });
    constant
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
            let constant = key.iter().all(|value| is_constant_value(value, before));
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
        let constant =
            equal.iter().filter_map(value_of).all(|value| is_constant_value(value, before));
        row.kind = Some(match (full, constant) {
            (true, true) => "const",
            (true, false) => "eq_ref",
            (false, _) => "ref",
        });
        let references = equal.iter().map(|value| match value_of(value) {
            Some(value) => reference(value, before),
            None => "const".to_string(),
        });
        row.reference = Some(references.collect::<Vec<_>>().join(","));
        // A text that is equal may still be another: the condition is kept.
        let parts = definition.indexes[index].parts.iter().take(equal.len());
        let mut parts = parts.map(|part| definition.columns[part.column].column_type.kind);
        let is_kept = parts.any(|kind| kind.is_string())
            || equal.iter().any(|value| matches!(value, RangeValue::Null));
        let has_others = has_other_conditions(step, equal.len());
        if is_kept && !covering && row.kind != Some("const") {
            words.push("Using index condition");
            if has_others && reads_beyond_index(step, definition, index) {
                words.push("Using where");
            }
        } else if has_others || (is_kept && row.kind == Some("ref")) {
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
    let names = index.parts.iter().take(parts);
    row.used_parts = names.map(|part| definition.columns[part.column].name.clone()).collect();
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
    values.map(|value| reference(value, before)).collect::<Vec<_>>().join(",")
}

fn reference(value: &Expr, before: &[TableStep]) -> String {
    match &value.kind {
        _ if is_constant_value(value, before) => "const".to_string(),
        ExprKind::Column { position, name } => column_reference(*position, name, before),
        _ => "func".to_string(),
    }
}

/// `database.alias.column`; of other sources what is known of the column.
fn column_reference(position: usize, name: &str, before: &[TableStep]) -> String {
    for step in before {
        let Some(column) = position.checked_sub(step.first_position) else { continue };
        match &step.source {
            TableSource::Base(entry) => {
                let definition = entry.0.definition();
                if let Some(column) = definition.columns.get(column) {
                    return format!("{}.{}.{}", definition.schema, step.alias, column.name);
                }
            }
            TableSource::Derived(query) => {
                let Some(column) = query.columns().get(column) else { continue };
                let is_subquery = super::is_subquery(step);
                return match (is_subquery, column.org_name.is_empty()) {
                    (false, _) => format!("{}.{}", step.alias, column.name),
                    (true, false) => {
                        format!("{}.{}.{}", column.schema, column.table, column.org_name)
                    }
                    (true, true) => "func".to_string(),
                };
            }
            TableSource::Virtual { .. } | TableSource::Recursive { .. } => {}
        }
    }
    // A column of the enclosing block has the name that it had there.
    match name.starts_with('`') {
        true => name.replace('`', ""),
        false => "func".to_string(),
    }
}
