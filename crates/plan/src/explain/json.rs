//! EXPLAIN FORMAT=JSON: the rows of EXPLAIN as a tree, in MariaDB's words and layout.

use super::{Explain, Row, step};
use crate::physical::{
    Access, Apply, InsertRows, JoinChangePlan, Plan, QueryPlan, SelectPlan, TableSource, TableStep,
};
use crate::prepared::Prepared;
use crate::profile::Profile;
use expr::Expr;

/// A value of JSON.
enum Node {
    /// Text as it stands: numbers, `null`, `true`.
    Raw(String),
    Text(String),
    /// Scalars on one line.
    List(Vec<String>),
    Array(Vec<Node>),
    Object(Vec<(&'static str, Node)>),
}

impl Node {
    fn number(value: u64) -> Self {
        Self::Raw(value.to_string())
    }

    /// A number of at most ten digits, as MariaDB prints doubles.
    fn double(value: Option<f64>) -> Self {
        let Some(value) = value else { return Self::Raw("null".to_string()) };
        let whole = value.abs().max(1.0).log10() as usize + 1;
        let text = format!("{value:.*}", 10usize.saturating_sub(whole));
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        };
        Self::Raw(text)
    }

    fn write(&self, depth: usize, out: &mut String) {
        let indent = |out: &mut String, depth: usize| {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        };
        match self {
            Self::Raw(text) => out.push_str(text),
            Self::Text(text) => quote(text, out),
            Self::List(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number > 0 { ", " } else { "" });
                    quote(item, out);
                }
                out.push(']');
            }
            Self::Array(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    item.write(depth + 1, out);
                }
                indent(out, depth);
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (number, (name, value)) in members.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    indent(out, depth + 1);
                    quote(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                indent(out, depth);
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if (control as u32) < 32 => {
                out.push_str(&format!("\\u{:04x}", control as u32));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The plan of a statement as a JSON document; with what its execution did, if it was run.
pub fn explain_json(prepared: &Prepared, profile: Option<&Profile>) -> String {
    let mut json = Json { last_id: 0, profile };
    let block = match prepared.plan() {
        Plan::Query(query) => json.query(query, None),
        Plan::Insert(insert) => match &insert.source {
            InsertRows::Values(_) | InsertRows::Literals(_) | InsertRows::File(_) => {
                let name = insert.target.0.definition().name.clone();
                json.message(("table_name", Node::Text(name)))
            }
            InsertRows::Query(query) => json.query(query, None),
        },
        Plan::Update(update) => json.change(&update.select, "update"),
        Plan::Delete(delete) if super::deletes_all(&delete.select) => {
            json.message(("message", Node::Text("Deleting all rows".to_string())))
        }
        Plan::Delete(delete) => json.change(&delete.select, "delete"),
        Plan::UpdateJoin(change) | Plan::DeleteJoin(change) => json.join_change(change),
    };
    let document = Node::Object(vec![("query_block", block)]);
    let mut out = String::new();
    document.write(0, &mut out);
    out
}

struct Json<'a> {
    last_id: u64,
    profile: Option<&'a Profile>,
}

type Members = Vec<(&'static str, Node)>;

impl Json<'_> {
    fn begin(&mut self) -> Members {
        self.last_id += 1;
        let mut members = vec![("select_id", Node::number(self.last_id))];
        if self.last_id == 1
            && let Some(profile) = self.profile
        {
            members.push(("r_loops", Node::number(1)));
            let milliseconds = profile.total_us as f64 / 1000.0;
            members.push(("r_total_time_ms", Node::double(Some(milliseconds))));
        }
        members
    }

    fn message(&mut self, member: (&'static str, Node)) -> Node {
        let mut members = self.begin();
        members.push(("table", Node::Object(vec![member])));
        Node::Object(members)
    }

    fn query(&mut self, query: &QueryPlan, operation: Option<&'static str>) -> Node {
        let set = match query {
            QueryPlan::Select(select) => return self.block(select, operation),
            QueryPlan::Set(set) => set,
        };
        let mut ids = vec![(self.last_id + 1).to_string()];
        let first = self.query(&set.first, None);
        let mut members = vec![Node::Object(vec![("query_block", first)])];
        for (_, query) in &set.rest {
            ids.push((self.last_id + 1).to_string());
            let block = self.query(query, Some("UNION"));
            members.push(Node::Object(vec![("query_block", block)]));
        }
        let result = Node::Object(vec![
            ("table_name", Node::Text(format!("<union{}>", ids.join(",")))),
            ("access_type", Node::Text("ALL".to_string())),
            ("query_specifications", Node::Array(members)),
        ]);
        Node::Object(vec![("union_result", result)])
    }

    fn block(&mut self, select: &SelectPlan, operation: Option<&'static str>) -> Node {
        let mut members = self.begin();
        members.extend(operation.map(|word| ("operation", Node::Text(word.to_string()))));
        if let Some(text) = super::without_tables(select) {
            let message = Node::Object(vec![("message", Node::Text(text.to_string()))]);
            members.push(("table", message));
        } else {
            if let Some(having) = &select.having {
                members.push(("having_condition", Node::Text(shown(having))));
            }
            self.tables(select, &mut members);
        }
        self.subqueries(select, &mut members);
        Node::Object(members)
    }

    fn tables(&mut self, select: &SelectPlan, members: &mut Members) {
        let words = super::sorting_words(select);
        let temporary = words.contains(&"Using temporary");
        let sorts = words.contains(&"Using filesort");
        let mut steps: Vec<Node> = Vec::with_capacity(select.tables.len());
        for number in 0..select.tables.len() {
            let table = self.table(select, number);
            let table = if number == 0 && sorts && !temporary {
                let file = vec![("sort_key", Node::Text(sort_key(select))), ("table", table)];
                let file = Node::Object(vec![("filesort", Node::Object(file))]);
                ("read_sorted_file", file)
            } else {
                ("table", table)
            };
            steps.push(Node::Object(vec![table]));
        }
        let mut inner = ("nested_loop", Node::Array(steps));
        if temporary {
            inner = ("temporary_table", Node::Object(vec![inner]));
            if sorts {
                let file = vec![("sort_key", Node::Text(sort_key(select))), inner];
                inner = ("filesort", Node::Object(file));
            }
        }
        members.push(inner);
    }

    fn subqueries(&mut self, select: &SelectPlan, members: &mut Members) {
        let applies: Vec<&Apply> = select.applies().collect();
        if applies.is_empty() {
            return;
        }
        let blocks = applies.into_iter().map(|apply| {
            let block = self.query(&apply.query, None);
            Node::Object(vec![("query_block", block)])
        });
        members.push(("subqueries", Node::Array(blocks.collect())));
    }

    /// One table and what is said of it.
    fn table(&mut self, select: &SelectPlan, number: usize) -> Node {
        let step = &select.tables[number];
        let row = step::row(step, 0, "", select, number);
        let inner = match &step.source {
            TableSource::Derived(query) => {
                let name = super::derived_name(step, self.last_id + 1);
                let block = self.query(query, None);
                Some((name, Node::Object(vec![("query_block", block)])))
            }
            _ => None,
        };
        let name = inner.as_ref().map_or_else(|| row.table.clone(), |inner| Some(inner.0.clone()));
        let mut members = vec![("table_name", Node::Text(name.unwrap_or_default()))];
        self.access(step, &row, &mut members);
        attach_conditions(step, &row, &mut members);
        let says = |word: &str| row.extra.as_deref().is_some_and(|extra| extra.contains(word));
        if says("Using index") && !says("Using index condition") {
            members.push(("using_index", Node::Raw("true".to_string())));
        }
        members.extend(inner.map(|(_, block)| ("materialized", block)));
        Node::Object(members)
    }

    fn access(&self, step: &TableStep, row: &Row, members: &mut Members) {
        let text = |text: &str| Node::Text(text.to_string());
        let list = |text: &str| Node::List(text.split(',').map(str::to_string).collect());
        members.extend(row.kind.map(|kind| ("access_type", text(kind))));
        members.extend(row.possible_keys.as_deref().map(|keys| ("possible_keys", list(keys))));
        members.extend(row.key.as_deref().map(|key| ("key", text(key))));
        members.extend(row.key_length.as_deref().map(|length| ("key_length", text(length))));
        if !row.used_parts.is_empty() {
            members.push(("used_key_parts", Node::List(row.used_parts.clone())));
        }
        members.extend(row.reference.as_deref().map(|parts| ("ref", list(parts))));
        let counts = self.profile.map(|profile| profile.step(step));
        members.extend(counts.map(|counts| ("r_loops", Node::number(counts.loops))));
        members.extend(row.rows.map(|rows| ("rows", Node::number(rows))));
        members.extend(counts.map(|counts| ("r_rows", Node::double(counts.rows_per_loop()))));
        if let (Access::Hash { .. }, Some(counts)) = (&step.access, counts) {
            members.push(("r_hashed_rows", Node::number(counts.built)));
        }
        members.push(("filtered", Node::double(Some(step.percent()))));
        members.extend(counts.map(|counts| ("r_filtered", Node::double(counts.percent_passed()))));
    }

    /// The reading part of UPDATE and DELETE of one table.
    fn change(&mut self, select: &SelectPlan, word: &'static str) -> Node {
        let mut explain = Explain::default();
        explain.change(select);
        let Some(row) = explain.rows.into_iter().next() else {
            return self.message(("message", Node::Text(String::new())));
        };
        let mut members = self.begin();
        let mut table = vec![(word, Node::number(1))];
        match (&row.table, select.tables.first()) {
            (Some(name), Some(step)) => {
                table.push(("table_name", Node::Text(name.clone())));
                self.access(step, &row, &mut table);
                table.retain(|(name, _)| *name != "filtered" || self.profile.is_some());
                let condition = step.condition.iter().chain(&step.filter).map(shown);
                let condition: Vec<String> = condition.collect();
                if !condition.is_empty() {
                    table.push(("attached_condition", Node::Text(condition.join(" and "))));
                }
            }
            _ => {
                table = vec![("message", Node::Text(row.extra.unwrap_or_default()))];
            }
        }
        members.push(("table", Node::Object(table)));
        self.subqueries(select, &mut members);
        Node::Object(members)
    }

    fn join_change(&mut self, change: &JoinChangePlan) -> Node {
        self.block(&change.select, None)
    }
}

fn attach_conditions(step: &TableStep, row: &Row, members: &mut Members) {
    let extra = row.extra.as_deref().unwrap_or("");
    let conditions = step::attached(step);
    let by_index = extra.contains("Using index condition");
    let (of_index, attached): (Vec<&Expr>, Vec<&Expr>) =
        conditions.into_iter().partition(|c| by_index && step::is_of_index(step, c));
    let mut add = |name, list: Vec<&Expr>| {
        if !list.is_empty() {
            let texts: Vec<String> = list.into_iter().map(shown).collect();
            members.push((name, Node::Text(texts.join(" and "))));
        }
    };
    add("index_condition", of_index);
    add("attached_condition", attached);
}

fn sort_key(select: &SelectPlan) -> String {
    let keys = select.order_by.iter().map(|key| {
        let text = select.projection.get(key.position).map(shown).unwrap_or_default();
        if key.descending { format!("{text} desc") } else { text }
    });
    keys.collect::<Vec<_>>().join(", ")
}

/// An expression with the names of columns as JSON has them: `table.column`, without quotes.
fn shown(expr: &Expr) -> String {
    let text = expr.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(character) = rest.chars().next() {
        match character {
            '`' => rest = push_name(rest, &mut out),
            '\'' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let ends = *c == '\'' && !escaped;
                    escaped = *c == '\\' && !escaped;
                    ends
                });
                let end = end.map_or(rest.len(), |(at, _)| at + 1);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            other => {
                out.push(other);
                rest = &rest[other.len_utf8()..];
            }
        }
    }
    out
}

/// Pushes the name at the beginning of a text without its database; returns what follows it.
fn push_name<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(quoted) = rest.strip_prefix('`') {
        let end = quoted.find('`').unwrap_or(quoted.len());
        parts.push(&quoted[..end]);
        rest = quoted.get(end + 1..).unwrap_or("");
        match rest.strip_prefix(".`") {
            Some(_) => rest = &rest[1..],
            None => break,
        }
    }
    let known = parts.len().saturating_sub(2);
    out.push_str(&parts[known..].join("."));
    rest
}
