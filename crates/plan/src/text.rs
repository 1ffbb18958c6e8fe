//! A plan as a tree of text: for tests, and for people who want more than EXPLAIN's rows.

use crate::physical::{
    Access, Apply, ApplyKind, InsertRows, InsertValue, Plan, QueryPlan, RangeEnd, RangePlan,
    RangeValue, SelectPlan, SetOperation, SortKey, TableSource, TableStep,
};
use engine_api::{LockMode, ScanDirection};
use expr::Expr;
use std::fmt::Write;

/// The plan, one line a part, indented by two blanks a level.
pub fn plan_text(plan: &Plan) -> String {
    let mut text = Text::default();
    match plan {
        Plan::Query(query) => text.query(query),
        Plan::Insert(insert) => {
            let word = if insert.replace { "replace" } else { "insert" };
            text.line(format!("{word} {:?} columns {:?}", insert.target, insert.columns));
            text.deeper(|text| {
                match &insert.source {
                    InsertRows::Values(rows) => rows.iter().for_each(|row| text.values(row)),
                    InsertRows::Literals(rows) => {
                        text.line(format!("{} rows of literals", rows.count()));
                    }
                    InsertRows::Query(query) => text.query(query),
                    InsertRows::File(file) => text.line(format!("file to {:?}", file.fields)),
                }
                for (column, value) in &insert.on_duplicate {
                    text.line(format!("on duplicate {column} = {value}"));
                }
                let subqueries = insert.subqueries.iter().flat_map(|it| it.all());
                subqueries.for_each(|apply| text.apply(apply));
            });
        }
        Plan::Update(update) => {
            let collect = if update.collect_first { " after collecting" } else { "" };
            text.line(format!("update {:?}{collect}", update.target));
            text.deeper(|text| {
                text.assignments(&update.assignments);
                text.select(&update.select);
            });
        }
        Plan::Delete(delete) => {
            text.line(format!("delete {:?}", delete.target));
            text.deeper(|text| text.select(&delete.select));
        }
        Plan::UpdateJoin(change) | Plan::DeleteJoin(change) => {
            let word = if matches!(plan, Plan::UpdateJoin(_)) { "update" } else { "delete" };
            for target in &change.targets {
                let sees = if target.sees_assigned { " one by one" } else { "" };
                text.line(format!("{word} {:?} of step {}{sees}", target.table, target.step));
                text.deeper(|text| text.assignments(&target.assignments));
            }
            text.deeper(|text| text.select(&change.select));
        }
    }
    text.out
}

#[derive(Default)]
struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: String) {
        let _ = writeln!(self.out, "{:width$}{line}", "", width = self.depth * 2);
    }

    fn deeper(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }

    fn assignments(&mut self, assignments: &[(usize, Option<Expr>)]) {
        for (column, value) in assignments {
            let value = value.as_ref().map_or("DEFAULT".to_string(), Expr::to_string);
            self.line(format!("set {column} = {value}"));
        }
    }

    fn values(&mut self, row: &[InsertValue]) {
        let values = row.iter().map(|value| match value {
            InsertValue::Expr(value) => value.to_string(),
            InsertValue::Default | InsertValue::Refused(_) => "DEFAULT".to_string(),
        });
        let values: Vec<String> = values.collect();
        self.line(format!("row {}", values.join(", ")));
    }

    fn query(&mut self, query: &QueryPlan) {
        match query {
            QueryPlan::Select(select) => self.select(select),
            QueryPlan::Set(set) => {
                self.line(format!("set{}", order(&set.order_by)));
                self.deeper(|text| {
                    text.query(&set.first);
                    for (operation, query) in &set.rest {
                        text.line(set_word(*operation).to_string());
                        text.query(query);
                    }
                });
            }
        }
    }

    fn select(&mut self, select: &SelectPlan) {
        let mut head = String::from("select");
        if select.distinct {
            head.push_str(" distinct");
        }
        let values: Vec<String> = select.projection.iter().map(Expr::to_string).collect();
        if !values.is_empty() {
            let _ = write!(head, " {}", values.join(", "));
        }
        head.push_str(&order(&select.order_by));
        for (word, value) in [("limit", &select.limit.count), ("offset", &select.limit.offset)] {
            if let Some(value) = value {
                let _ = write!(head, " {word} {value}");
            }
        }
        match select.lock {
            LockMode::None => {}
            LockMode::Shared => head.push_str(" lock shared"),
            LockMode::Exclusive => head.push_str(" lock exclusive"),
        }
        self.line(head);
        self.deeper(|text| text.select_parts(select));
    }

    fn select_parts(&mut self, select: &SelectPlan) {
        if let Some(having) = &select.having {
            self.line(format!("having {having}"));
        }
        if let Some(aggregate) = &select.aggregate {
            let keys: Vec<String> = aggregate.keys.iter().map(Expr::to_string).collect();
            let calls: Vec<String> = aggregate
                .calls
                .iter()
                .map(|call| {
                    let arguments: Vec<String> =
                        call.arguments.iter().map(Expr::to_string).collect();
                    let distinct = if call.distinct { "distinct " } else { "" };
                    format!("{:?}({distinct}{})", call.function, arguments.join(", "))
                })
                .collect();
            let sorted = if aggregate.sorted { " sorted" } else { "" };
            let carried = match aggregate.carried.len() {
                0 => String::new(),
                _ => format!(" carried {:?}", aggregate.carried),
            };
            let (keys, calls) = (keys.join(", "), calls.join(", "));
            self.line(format!("group [{keys}] calls [{calls}]{sorted}{carried}"));
            aggregate.applies.iter().for_each(|apply| self.apply(apply));
        }
        if let Some(filter) = &select.constant_filter {
            self.line(format!("if {filter}"));
        }
        select.constant_applies.iter().for_each(|apply| self.apply(apply));
        select.tables.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &TableStep) {
        let join = if step.left_join { "left " } else { "" };
        let (alias, rows) = (&step.alias, step.rows_estimate);
        self.line(format!("{join}{alias}: {} rows {rows}", access(&step.access, &step.source)));
        self.deeper(|text| {
            if let Access::Hash { build, build_condition, keys } = &step.access {
                for (outer, inner) in keys {
                    text.line(format!("key {outer} = {inner}"));
                }
                text.line(format!("build {}", access(build, &step.source)));
                if let Some(condition) = build_condition {
                    text.line(format!("build where {condition}"));
                }
            }
            if let Some(condition) = &step.condition {
                text.line(format!("where {condition}"));
                let tested = step.tested.as_ref().map_or("nothing".to_owned(), Expr::to_string);
                if tested != condition.to_string() {
                    text.line(format!("tested {tested}"));
                }
            }
            if let TableSource::Derived(query) = &step.source {
                text.query(query);
            }
            step.all_applies().for_each(|apply| text.apply(apply));
            if let Some(filter) = &step.filter {
                text.line(format!("filter {filter}"));
            }
        });
    }

    fn apply(&mut self, apply: &Apply) {
        let kind = match &apply.kind {
            ApplyKind::Scalar => "scalar".to_string(),
            ApplyKind::Exists => "exists".to_string(),
            ApplyKind::In { operand, .. } => {
                let operand: Vec<String> = operand.iter().map(Expr::to_string).collect();
                format!("({}) in", operand.join(", "))
            }
            ApplyKind::Quantified { operand, operator, all, .. } => {
                let word = if *all { "all" } else { "any" };
                format!("{operand} {} {word}", operator.symbol())
            }
        };
        let outer = &apply.outer_positions;
        self.line(format!("apply {} = {kind} of {outer:?}", apply.position));
        self.deeper(|text| text.query(&apply.query));
    }
}

fn order(keys: &[SortKey]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let keys = keys
        .iter()
        .map(|key| format!("{}{}", key.position, if key.descending { " desc" } else { "" }));
    format!(" sort [{}]", keys.collect::<Vec<_>>().join(", "))
}

fn set_word(operation: SetOperation) -> &'static str {
    match operation {
        SetOperation::UnionAll => "union all",
        SetOperation::Union => "union",
        SetOperation::Except => "except",
        SetOperation::Intersect => "intersect",
        SetOperation::ExceptAll => "except all",
        SetOperation::IntersectAll => "intersect all",
    }
}

fn index_name(source: &TableSource, index: usize) -> String {
    match source {
        TableSource::Base(entry) => {
            let indexes = &entry.0.definition().indexes;
            indexes.get(index).map_or(String::new(), |index| index.name.clone())
        }
        TableSource::Virtual { .. } | TableSource::Derived(_) | TableSource::Recursive { .. } => {
            String::new()
        }
    }
}

fn access(access: &Access, source: &TableSource) -> String {
    let flags = |direction: &ScanDirection, covering: &bool| {
        let backward = if *direction == ScanDirection::Backward { " backward" } else { "" };
        format!("{backward}{}", if *covering { " covering" } else { "" })
    };
    match access {
        Access::Scan { index, direction, covering } => {
            format!("scan {}{}", index_name(source, *index), flags(direction, covering))
        }
        Access::Point { key } => {
            let key: Vec<String> = key.iter().map(Expr::to_string).collect();
            format!("point ({})", key.join(", "))
        }
        Access::Ranges { index, ranges, direction, covering } => {
            let name = index_name(source, *index);
            let ranges: Vec<String> = ranges.iter().map(range).collect();
            format!("range {name} {}{}", ranges.join(" "), flags(direction, covering))
        }
        Access::Hash { .. } => "hash".to_string(),
    }
}

fn range(range: &RangePlan) -> String {
    let mut parts: Vec<String> = range
        .equal
        .iter()
        .map(|value| match value {
            RangeValue::Equal(value) => format!("= {value}"),
            RangeValue::NullSafe(value) => format!("<=> {value}"),
            RangeValue::Null => "is null".to_string(),
        })
        .collect();
    let end = |end: &RangeEnd, lower: bool| match (end, lower) {
        (RangeEnd::Value { value, inclusive: true }, true) => format!(">= {value}"),
        (RangeEnd::Value { value, inclusive: false }, true) => format!("> {value}"),
        (RangeEnd::Value { value, inclusive: true }, false) => format!("<= {value}"),
        (RangeEnd::Value { value, inclusive: false }, false) => format!("< {value}"),
        (RangeEnd::LikePrefix { pattern, .. }, _) => format!("like {pattern}"),
    };
    parts.extend(range.lower.iter().map(|lower| end(lower, true)));
    parts.extend(range.upper.iter().map(|upper| end(upper, false)));
    if range.not_null && range.lower.is_none() && range.upper.is_none() {
        parts.push("not null".to_string());
    }
    format!("({})", parts.join(", "))
}
