//! EXPLAIN in the rows and words of MariaDB.

mod step;

use crate::optimize::extreme::EXTREME;
use crate::physical::{Apply, Plan, QueryPlan, ResultColumn, SelectPlan, TableSource, TableStep};
use crate::prepared::Prepared;
use expr::{EvalContext, Expr, ExprKind, ResultType, flags};
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
        Plan::UpdateJoin(change) | Plan::DeleteJoin(change) => {
            let id = explain.next_id();
            let name = if has_inner(&change.select) { "PRIMARY" } else { "SIMPLE" };
            explain.block(&change.select, id, name);
        }
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
                let mut row = step::row(step, id, select_type, &select.tables[..number]);
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
