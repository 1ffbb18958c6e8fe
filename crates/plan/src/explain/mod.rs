//! EXPLAIN in the rows and words of MariaDB.

mod json;
mod step;

pub use json::explain_json;

use crate::optimize::conjuncts::never_true;
use crate::optimize::extreme::EXTREME;
use crate::physical::{
    Apply, ApplyKind, InsertPlan, InsertRows, Plan, QueryPlan, ResultColumn, SelectPlan,
    TableSource, TableStep,
};
use crate::prepared::Prepared;
use crate::profile::{Profile, StepCounts};
use expr::{ResultType, flags};
use types::{CollationId, ColumnType, SqlError, TypeKind, Value};

/// What EXPLAIN shows beside its ten columns.
#[derive(Clone, Copy, Default)]
pub struct ExplainOptions<'a> {
    /// EXTENDED: the share of rows that conditions leave.
    pub extended: bool,
    /// PARTITIONS: a column for partitions, which no table has.
    pub partitions: bool,
    /// ANALYZE: what the execution did.
    pub profile: Option<&'a Profile>,
}

/// Columns and rows of EXPLAIN.
pub fn explain(
    prepared: &Prepared,
    options: ExplainOptions<'_>,
) -> Result<(Vec<ResultColumn>, Vec<Vec<Value>>), SqlError> {
    let mut explain = Explain { profile: options.profile, ..Explain::default() };
    match prepared.plan() {
        Plan::Query(query) => {
            explain.query(query, "SIMPLE");
        }
        Plan::Insert(insert) => explain.insert(insert),
        Plan::Update(update) => {
            explain.change(&update.select);
            if update.collect_first
                && let Some(row) = explain.rows.first_mut()
                && row.key.is_some()
            {
                push_extra(row, vec!["Using buffer"]);
            }
        }
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
    let rows = explain.rows.into_iter().map(|row| row.values(&options));
    Ok((columns(&options), rows.collect()))
}

/// The answer of FORMAT=JSON: one column of one row.
pub fn json_answer(name: &str, document: String) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let utf8 = CollationId::UTF8MB4_GENERAL_CI;
    let column = ResultColumn {
        name: name.to_string(),
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        schema: String::new(),
        result: ResultType::column(ColumnType::text(TypeKind::VarChar, 16_000, utf8), false),
        flags: flags::NOT_NULL,
    };
    (vec![column], vec![vec![Value::text(document)]])
}

fn deletes_all(select: &SelectPlan) -> bool {
    let [step] = &select.tables[..] else { return false };
    step.condition.is_none()
        && step.filter.is_none()
        && select.constant_filter.is_none()
        && select.limit.count.is_none()
}

/// The ten columns and those that the options add.
fn columns(options: &ExplainOptions<'_>) -> Vec<ResultColumn> {
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
    let mut columns = vec![
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
    ];
    let mut percent = ColumnType::double();
    (percent.length, percent.scale) = (4, 2);
    let share = |name: &str| column(name, percent, true);
    let extra = columns.len() - 1;
    if options.profile.is_some() {
        let more = [column("r_rows", text(64), true), share("filtered"), share("r_filtered")];
        columns.splice(extra..extra, more);
    } else if options.extended {
        columns.insert(extra, share("filtered"));
    }
    if options.partitions {
        columns.insert(
            3,
            column("partitions", ColumnType::text(TypeKind::LongText, 1 << 20, utf8), true),
        );
    }
    columns
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
    /// Names of the columns of the key that are used.
    used_parts: Vec<String>,
    /// Percentage of rows that conditions are expected to leave.
    filtered: Option<f64>,
    counts: Option<StepCounts>,
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
            used_parts: Vec::new(),
            filtered: None,
            counts: None,
        }
    }

    fn values(self, options: &ExplainOptions<'_>) -> Vec<Value> {
        let text = |text: Option<String>| text.map_or(Value::Null, Value::text);
        let share = |share: Option<f64>| share.map_or(Value::Null, Value::Double);
        let (filtered, counts) = (self.filtered, self.counts);
        let mut values = vec![
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
        ];
        let extra = values.len() - 1;
        if options.profile.is_some() {
            let rows = counts.and_then(|counts| counts.rows_per_loop());
            let rows = text(rows.map(|rows| format!("{rows:.2}")));
            let passed = share(counts.and_then(|counts| counts.percent_passed()));
            values.splice(extra..extra, [rows, share(filtered), passed]);
        } else if options.extended {
            values.insert(extra, share(filtered));
        }
        if options.partitions {
            values.insert(3, Value::Null);
        }
        values
    }
}

#[derive(Default)]
struct Explain<'a> {
    rows: Vec<Row>,
    last_id: u64,
    profile: Option<&'a Profile>,
}

impl Explain<'_> {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn insert(&mut self, insert: &InsertPlan) {
        match &insert.source {
            InsertRows::Values(_) | InsertRows::Literals(_) | InsertRows::File(_) => {
                let mut row = Row::new(self.next_id(), "INSERT");
                row.table = Some(insert.target.0.definition().name.clone());
                row.kind = Some("ALL");
                row.extra = None;
                row.filtered = Some(100.0);
                self.rows.push(row);
                // MariaDB gives the list of values a number, too.
                self.next_id();
            }
            InsertRows::Query(query) => {
                self.query(query, "SIMPLE");
            }
        }
        for apply in insert.subqueries.iter().flat_map(|it| it.all()) {
            self.query(&apply.query, subquery_word(apply));
        }
    }

    /// The reading part of UPDATE and DELETE, which knows no `const` and `ref`.
    fn change(&mut self, select: &SelectPlan) {
        let id = self.next_id();
        let first = self.rows.len();
        self.block(select, id, if has_inner(select) { "PRIMARY" } else { "SIMPLE" });
        let Some(row) = self.rows.get_mut(first) else { return };
        if matches!(row.kind, Some("const" | "ref")) {
            row.kind = Some("range");
            row.reference = None;
            row.extra = Some("Using where".to_string());
        }
        let scans = row.kind == Some("ALL") && row.extra.as_deref() == Some("");
        if scans && let Some(step) = select.tables.first() {
            step::use_clustered(row, step);
        }
        if let Some(extra) = &mut row.extra {
            let words = extra.replace("Using index condition; Using where", "Using where");
            *extra = words.replace("Using index condition", "Using where");
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
            let mut inner: Vec<(&QueryPlan, bool)> = Vec::new();
            for (number, step) in select.tables.iter().enumerate() {
                let first = number == 0;
                let mut row = step::row(step, id, select_type, select, number);
                row.counts = self.profile.map(|profile| profile.step(step));
                if let TableSource::Derived(query) = &step.source {
                    let before: u64 = inner.iter().map(|(query, _)| blocks(query)).sum();
                    row.table = Some(derived_name(step, self.last_id + 1 + before));
                    inner.push((&**query, is_subquery(step)));
                }
                if first {
                    push_extra(&mut row, sorting_words(select));
                }
                self.rows.push(row);
            }
            for (query, is_subquery) in inner {
                let first = self.rows.len();
                self.query(query, if is_subquery { "MATERIALIZED" } else { "DERIVED" });
                if is_subquery && let Some(row) = self.rows.get_mut(first) {
                    // Making its rows distinct is what materializing means.
                    drop_word(row, "Using temporary");
                }
            }
        }
        for apply in select.applies() {
            self.query(&apply.query, subquery_word(apply));
        }
    }
}

/// Whether a step reads the rows of an IN that has become a join.
fn is_subquery(step: &TableStep) -> bool {
    step.alias.starts_with("<subquery")
}

/// The name of a derived table whose block has this number.
fn derived_name(step: &TableStep, number: u64) -> String {
    format!("<{}{number}>", if is_subquery(step) { "subquery" } else { "derived" })
}

/// How many numbers a query takes.
fn blocks(query: &QueryPlan) -> u64 {
    let select = match query {
        QueryPlan::Select(select) => select,
        QueryPlan::Set(set) => {
            return blocks(&set.first)
                + set.rest.iter().map(|(_, query)| blocks(query)).sum::<u64>();
        }
    };
    let derived = select.tables.iter().map(|step| match &step.source {
        TableSource::Derived(query) if without_tables(select).is_none() => blocks(query),
        _ => 0,
    });
    1 + derived.sum::<u64>() + select.applies().map(|apply| blocks(&apply.query)).sum::<u64>()
}

fn drop_word(row: &mut Row, word: &str) {
    if let Some(extra) = &mut row.extra {
        let words: Vec<&str> = extra.split("; ").filter(|known| *known != word).collect();
        *extra = words.join("; ");
    }
}

fn subquery_word(apply: &Apply) -> &'static str {
    match (&apply.kind, apply.outer_positions.is_empty()) {
        (ApplyKind::In { .. }, true) => "MATERIALIZED",
        (_, true) => "SUBQUERY",
        (_, false) => "DEPENDENT SUBQUERY",
    }
}

fn has_inner(select: &SelectPlan) -> bool {
    let derived =
        |step: &TableStep| matches!(step.source, TableSource::Derived(_)) && step.alias != EXTREME;
    select.applies().next().is_some() || select.tables.iter().any(derived)
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

fn sorting_words(select: &SelectPlan) -> Vec<&'static str> {
    let mut words = Vec::new();
    let groups = select.aggregate.as_ref().is_some_and(|aggregate| !aggregate.keys.is_empty());
    let sorted_groups = select.aggregate.as_ref().is_some_and(|aggregate| aggregate.sorted);
    if (groups && !sorted_groups)
        || (select.window.is_some() && !select.tables.is_empty())
        || (select.distinct && !select.tables.is_empty() && !select.equal_are_neighbours)
    {
        words.push("Using temporary");
    }
    if !select.order_by.is_empty() {
        // Rows of a join, or of a table that is not read first, are kept to be sorted.
        if select.tables.len() > 1 && !groups && !sorts_first_table(select) && words.is_empty() {
            words.push("Using temporary");
        }
        words.push("Using filesort");
    }
    words
}

/// Whether ORDER BY reads nothing but the first table.
fn sorts_first_table(select: &SelectPlan) -> bool {
    let Some(second) = select.tables.get(1) else { return true };
    let Some(first) = select.tables.first() else { return true };
    let mut own = true;
    for key in &select.order_by {
        let Some(value) = select.projection.get(key.position) else { continue };
        value.for_each_column(&mut |position| {
            let end = match second.first_position > first.first_position {
                true => second.first_position,
                false => usize::MAX,
            };
            own &= (first.first_position..end).contains(&position);
        });
    }
    own
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
