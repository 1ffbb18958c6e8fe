//! WITH RECURSIVE: a table whose definition reads it.
//!
//! 1. The queries of the definition's UNION that do not read the table come first; the first of
//!    them decides names and types of the columns.
//! 2. A query that reads the table does so once, in its own FROM, not on the inner side of an outer
//!    join, and neither groups nor aggregates (error 4008).

use super::from::From;
use super::query::Tail;
use super::*;
use crate::physical::{
    QueryPlan, Recursion, ResultColumn, SetOperation, SetPlan, TableSource, TableStep,
};

/// A recursive table whose definition is being bound.
pub(super) struct Open {
    name: String,
    /// Tables of WITH outside of its definition.
    outside: usize,
    id: usize,
    columns: Vec<ResultColumn>,
    /// How often the query being bound reads it.
    reads: usize,
}

impl<'q> Binder<'_, '_, 'q> {
    /// Binds the definition of a recursive table.
    pub(super) fn bind_recursive(&mut self, table: &'q ast::CommonTable) -> Result<QueryPlan> {
        let no_anchor = || SqlError::new(&codes::RECURSIVE_WITHOUT_ANCHORS, &[&table.name]);
        let query = &table.query;
        let ast::QueryBody::Set { first, rest } = &query.body else { return Err(no_anchor()) };
        if !query.order_by.is_empty() || query.limit.is_some() {
            return Err(unsupported("global ORDER_BY/LIMIT in recursive CTE spec"));
        }
        if query.with.is_some() {
            return Err(unsupported("WITH in the definition of a recursive table"));
        }
        if rest.iter().any(|member| member.operator != ast::SetOperator::Union) {
            return Err(unsupported("EXCEPT and INTERSECT in the definition of a recursive table"));
        }
        if rest.iter().any(|member| member.all != rest[0].all) {
            let feature = "mix of ALL and DISTINCT UNION operations in recursive CTE spec";
            return Err(unsupported(feature));
        }
        let members = std::iter::once(&**first).chain(rest.iter().map(|member| &member.body));
        let (readers, anchors): (Vec<_>, Vec<_>) =
            members.partition(|body| in_body(body, &table.name));
        let Some((first, others)) = anchors.split_first() else { return Err(no_anchor()) };
        let mut outer = Vec::new();
        let first = self.bind_body(first, Tail::NONE, &mut outer)?;
        let mut rest = Vec::with_capacity(rest.len());
        for body in others {
            rest.push((SetOperation::UnionAll, self.bind_body(body, Tail::NONE, &mut outer)?));
        }
        let plan = self.finish_set(first, rest, Tail::NONE)?;
        let QueryPlan::Set(mut set) = plan else { return Err(no_anchor()) };
        self.name_columns(&mut set, table)?;
        self.recursion_count += 1;
        let id = self.recursion_count;
        let distinct = query_is_distinct(&query.body);
        set.recursion = Some(Recursion { id, first: set.rest.len(), distinct });
        for body in readers {
            let (name, columns) = (table.name.clone(), set.columns.clone());
            self.recursions.push(Open { name, outside: self.common.len(), id, columns, reads: 0 });
            let bound = self.bind_reader(body, &set, table);
            self.recursions.pop();
            set.rest.push((SetOperation::UnionAll, bound?));
        }
        self.unplanned = None;
        self.branches.clear();
        Ok(QueryPlan::Set(set))
    }

    fn name_columns(&self, set: &mut SetPlan, table: &ast::CommonTable) -> Result<()> {
        for column in &mut set.columns {
            // A later row may hold what the first ones do not.
            column.result = column.result.with_nullable(true);
            let own = &mut column.result.column_type;
            own.zerofill = false;
            if column.result.is_column && own.kind.is_integer() {
                *own = types::ColumnType::integer(own.kind, own.unsigned);
            }
            column.result.is_date_part = false;
            column.result = column.result.stored_in_column().with_length_of_digits();
            column.org_name.clear();
            column.table.clear();
            column.org_table.clear();
            column.schema.clear();
            column.flags = 0;
        }
        if table.columns.is_empty() {
            return Ok(());
        }
        if table.columns.len() != set.columns.len() {
            return Err(SqlError::new(&codes::WITH_COL_WRONG_LIST, &[]));
        }
        for (column, name) in set.columns.iter_mut().zip(&table.columns) {
            column.name.clone_from(name);
        }
        Ok(())
    }

    fn bind_reader(
        &mut self,
        body: &'q ast::QueryBody,
        set: &SetPlan,
        table: &ast::CommonTable,
    ) -> Result<QueryPlan> {
        let plan = self.bind_body(body, Tail::NONE, &mut Vec::new())?;
        if plan.columns().len() != set.columns.len() {
            return Err(SqlError::new(&codes::WRONG_NUMBER_OF_COLUMNS_IN_SELECT, &[]));
        }
        let reads = self.recursions.last().map_or(0, |open| open.reads);
        let broken = || SqlError::new(&codes::NOT_STANDARD_COMPLIANT_RECURSIVE, &[&table.name]);
        let QueryPlan::Select(select) = &plan else { return Err(broken()) };
        let is_inner = |step: &TableStep| {
            step.left_join && matches!(step.source, TableSource::Recursive { .. })
        };
        if reads != 1 || select.aggregate.is_some() || select.tables.iter().any(is_inner) {
            return Err(broken());
        }
        Ok(plan)
    }

    /// Adds the recursive table to FROM if the name means one whose definition is being bound.
    pub(super) fn bind_recursive_reference(
        &mut self,
        name: &str,
        alias: Option<&str>,
        from: &mut From,
    ) -> Result<bool> {
        // A table of WITH inside of the definition may have the same name.
        let other = self.common_table(name);
        let depth = self.blocks.len();
        let Some(open) = self.recursions.last_mut() else { return Ok(false) };
        if open.name != name || other.is_some_and(|at| at >= open.outside) {
            return Ok(false);
        }
        if depth > 1 {
            return Err(SqlError::new(&codes::NOT_STANDARD_COMPLIANT_RECURSIVE, &[&name]));
        }
        open.reads += 1;
        let mut columns = open.columns.clone();
        columns.iter_mut().for_each(|it| it.result = super::from::kept_type(it.result));
        let source = TableSource::Recursive { id: open.id, columns: columns.len() };
        self.add_listed(source, &columns, alias.unwrap_or(name), from);
        Ok(true)
    }
}

/// UNION without ALL anywhere makes all rows distinct.
fn query_is_distinct(body: &ast::QueryBody) -> bool {
    matches!(body, ast::QueryBody::Set { rest, .. } if rest.iter().any(|member| !member.all))
}

/// Whether a common table's definition names itself in FROM.
pub(super) fn reads_itself(table: &ast::CommonTable) -> bool {
    in_body(&table.query.body, &table.name)
}

fn in_body(body: &ast::QueryBody, name: &str) -> bool {
    match body {
        ast::QueryBody::Select(select) => select.from.iter().any(|r| in_reference(r, name)),
        ast::QueryBody::Set { first, rest } => {
            in_body(first, name) || rest.iter().any(|member| in_body(&member.body, name))
        }
        ast::QueryBody::Nested(query) => in_body(&query.body, name),
        ast::QueryBody::Values(_) => false,
    }
}

fn in_reference(reference: &ast::TableReference, name: &str) -> bool {
    match reference {
        ast::TableReference::Table { name: table, .. } => {
            table.schema.is_none() && table.name == name
        }
        ast::TableReference::Derived { query, .. } => in_body(&query.body, name),
        ast::TableReference::Join { left, right, .. } => {
            in_reference(left, name) || in_reference(right, name)
        }
        ast::TableReference::Nested(inner) => inner.iter().any(|r| in_reference(r, name)),
    }
}
