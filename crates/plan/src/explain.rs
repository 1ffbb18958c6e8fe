//! EXPLAIN in the rows and words of MariaDB.

use crate::optimize::extreme::EXTREME;
use crate::physical::{
    Access, Apply, Plan, QueryPlan, RangePlan, RangeValue, ResultColumn, SelectPlan, TableSource,
    TableStep,
};
use crate::prepared::Prepared;
use engine_api::TableDefinition;
use expr::{CompareOperator, EvalContext, Expr, ExprKind, ResultType, flags};
use types::{CollationId, ColumnType, SqlError, TypeKind, Value};

/// Columns and rows of EXPLAIN.
pub fn explain(
    prepared: &Prepared,
    _: &EvalContext,
) -> Result<(Vec<ResultColumn>, Vec<Vec<Value>>), SqlError> {
    let mut explain = Explain::default();
    match prepared.plan() {
        Plan::Query(query) => {
            explain.query(query, "SIMPLE");
        }
        Plan::Insert(insert) => match &insert.source {
            crate::physical::InsertRows::Values(_) => {
                let mut row = Row::new(1, "INSERT");
                row.table = Some(insert.target.0.definition().name.clone());
                row.kind = Some("ALL");
                row.extra = None;
                explain.rows.push(row);
            }
            crate::physical::InsertRows::Query(query) => {
                explain.query(query, "SIMPLE");
            }
        },
        Plan::Update(update) => explain.change(&update.select),
        Plan::Delete(delete) if deletes_all(&delete.select) => {
            let mut row = Row::new(1, "SIMPLE");
            row.rows = delete.select.tables.first().map(|step| step.rows_estimate);
            row.extra = Some("Deleting all rows".to_string());
            explain.rows.push(row);
        }
        Plan::Delete(delete) => explain.change(&delete.select),
    }
    Ok((columns(), explain.rows.into_iter().map(Row::values).collect()))
}

fn deletes_all(select: &SelectPlan) -> bool {
    let [step] = &select.tables[..] else { return false };
    step.condition.is_none()
        && step.filter.is_none()
        && select.constant_filter.is_none()
        && select.limit.count.is_none()
}

/// The ten columns.
fn columns() -> Vec<ResultColumn> {
    let utf8 = CollationId::UTF8MB4_GENERAL_CI;
    let text = |length| ColumnType::text(TypeKind::VarChar, length, utf8);
    let mut number = ColumnType::integer(TypeKind::BigInt, true);
    number.length = 3;
    let column = |name: &str, column_type, nullable| ResultColumn {
        name: name.to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        schema: String::new(),
        result: ResultType::column(column_type, nullable),
        flags: if nullable { 0 } else { flags::NOT_NULL },
    };
    vec![
        column("id", number, true),
        column("select_type", text(19), false),
        column("table", text(64), true),
        column("type", text(10), true),
        column("possible_keys", text(4096), true),
        column("key", text(64), true),
        column("key_len", text(4096), true),
        column("ref", text(2048), true),
        column("rows", text(64), true),
        column("Extra", text(255), false),
    ]
}

/// A row before it becomes values.
struct Row {
    id: Option<u64>,
    select_type: String,
    table: Option<String>,
    kind: Option<&'static str>,
    possible_keys: Option<String>,
    key: Option<String>,
    key_length: Option<String>,
    reference: Option<String>,
    rows: Option<u64>,
    extra: Option<String>,
}

impl Row {
    fn new(id: u64, select_type: &str) -> Self {
        Self {
            id: Some(id),
            select_type: select_type.to_string(),
            table: None,
            kind: None,
            possible_keys: None,
            key: None,
            key_length: None,
            reference: None,
            rows: None,
            extra: Some(String::new()),
        }
    }

    fn values(self) -> Vec<Value> {
        let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
        vec![
            self.id.map_or(Value::Null, Value::UInt),
            Value::text(self.select_type),
            text(self.table),
            text(self.kind.map(str::to_string)),
            text(self.possible_keys),
            text(self.key),
            text(self.key_length),
            text(self.reference),
            text(self.rows.map(|rows| rows.to_string())),
            text(self.extra),
        ]
    }
}

#[derive(Default)]
struct Explain {
    rows: Vec<Row>,
    last_id: u64,
}

impl Explain {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The reading part of UPDATE and DELETE, which knows no `const` and `ref`.
    fn change(&mut self, select: &SelectPlan) {
        let id = self.next_id();
        let first = self.rows.len();
        self.block(select, id, if has_inner(select) { "PRIMARY" } else { "SIMPLE" });
        if let Some(row) = self.rows.get_mut(first)
            && matches!(row.kind, Some("const" | "ref"))
        {
            row.kind = Some("range");
            row.reference = None;
            row.extra = Some("Using where".to_string());
        }
    }

    /// A query; `simple` is what it is called when nothing else is in it. Returns its id.
    fn query(&mut self, query: &QueryPlan, simple: &str) -> u64 {
        let id = self.next_id();
        match query {
            QueryPlan::Select(select) => {
                let outermost = simple == "SIMPLE" && has_inner(select);
                self.block(select, id, if outermost { "PRIMARY" } else { simple });
            }
            QueryPlan::Set(set) => {
                let first = if simple == "SIMPLE" { "PRIMARY" } else { simple };
                self.member(&set.first, id, first);
                let mut ids = vec![id.to_string()];
                for (_, query) in &set.rest {
                    let id = self.next_id();
                    self.member(query, id, "UNION");
                    ids.push(id.to_string());
                }
                let mut row = Row::new(0, "UNION RESULT");
                row.id = None;
                row.table = Some(format!("<union{}>", ids.join(",")));
                row.kind = Some("ALL");
                if !set.order_by.is_empty() {
                    row.extra = Some("Using filesort".to_string());
                }
                self.rows.push(row);
            }
        }
        id
    }

    fn member(&mut self, query: &QueryPlan, id: u64, select_type: &str) {
        match query {
            QueryPlan::Select(select) => self.block(select, id, select_type),
            QueryPlan::Set(_) => {
                self.query(query, select_type);
            }
        }
    }

    fn block(&mut self, select: &SelectPlan, id: u64, select_type: &str) {
        if let Some(text) = without_tables(select) {
            let mut row = Row::new(id, select_type);
            row.extra = Some(text.to_string());
            self.rows.push(row);
        } else {
            let mut inner = Vec::new();
            for (number, step) in select.tables.iter().enumerate() {
                let first = number == 0;
                let mut row = step_row(step, id, select_type, &select.tables[..number]);
                if let TableSource::Derived(query) = &step.source {
                    let derived = self.last_id + 1 + inner.len() as u64;
                    row.table = Some(format!("<derived{derived}>"));
                    inner.push(&**query);
                }
                if first {
                    push_extra(&mut row, sorting_words(select));
                }
                self.rows.push(row);
            }
            for query in inner {
                self.query(query, "DERIVED");
            }
        }
        let steps = select.tables.iter().flat_map(|step| &step.applies);
        for apply in select.constant_applies.iter().chain(steps) {
            self.query(&apply.query, subquery_word(apply));
        }
    }
}

fn subquery_word(apply: &Apply) -> &'static str {
    if apply.outer_positions.is_empty() { "SUBQUERY" } else { "DEPENDENT SUBQUERY" }
}

fn has_inner(select: &SelectPlan) -> bool {
    let derived =
        |step: &TableStep| matches!(step.source, TableSource::Derived(_)) && step.alias != EXTREME;
    !select.constant_applies.is_empty()
        || select.tables.iter().any(|step| derived(step) || !step.applies.is_empty())
}

/// What is said of a block that reads no table.
fn without_tables(select: &SelectPlan) -> Option<&'static str> {
    if select.tables.is_empty() {
        return Some("No tables used");
    }
    if select.tables.iter().any(|step| step.alias == EXTREME) {
        return Some("Select tables optimized away");
    }
    let is_false = select.constant_filter.as_ref().is_some_and(|filter| match filter.literal() {
        Some(Value::Int(0) | Value::UInt(0) | Value::Null) => true,
        Some(_) => false,
        None => never_true(filter),
    });
    is_false.then_some("Impossible WHERE")
}

/// Whether a condition over constants is false, told without evaluating it in a session.
fn never_true(filter: &Expr) -> bool {
    let context = EvalContext::new();
    filter.is_constant()
        && !has_parameter(filter)
        && filter.eval_bool(&context, &expr::NoColumns).is_ok_and(|truth| truth != Some(true))
}

fn has_parameter(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Parameter(_));
    expr.for_each_child(&mut |child| found |= has_parameter(child));
    found
}

fn sorting_words(select: &SelectPlan) -> Vec<&'static str> {
    let mut words = Vec::new();
    let groups = select.aggregate.as_ref().is_some_and(|aggregate| !aggregate.keys.is_empty());
    let sorted_groups = select.aggregate.as_ref().is_some_and(|aggregate| aggregate.sorted);
    if (groups && !sorted_groups) || (select.distinct && !select.tables.is_empty()) {
        words.push("Using temporary");
    }
    if !select.order_by.is_empty() {
        words.push("Using filesort");
    }
    words
}

fn push_extra(row: &mut Row, words: Vec<&str>) {
    let extra = row.extra.get_or_insert_default();
    for word in words {
        if !extra.is_empty() {
            extra.push_str("; ");
        }
        extra.push_str(word);
    }
}

fn step_row(step: &TableStep, id: u64, select_type: &str, before: &[TableStep]) -> Row {
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
    for condition in &step.condition {
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
