//! Defining views.

use crate::bind::Binder;
use crate::bind::view_text::Qualifier;
use crate::context::PlanContext;
use crate::physical::ResultColumn;
use catalog::{CheckOption, TableEntry, ViewAlgorithm};
use std::sync::Arc;
use syntax::ast::{CreateView, QueryBody, SelectItem, TableReference};
use syntax::canonical::{self, Style};
use types::{SqlError, codes};

/// What a CREATE VIEW comes to.
pub struct DefinedView {
    /// Its columns, under their names in the view.
    pub columns: Vec<ResultColumn>,
    /// Its query, every name written out.
    pub query: String,
    /// Rows can be changed through it.
    pub is_updatable: bool,
}

/// Checks the query of a view to be made and brings it to the form in which it is kept.
pub fn define_view(
    create: &CreateView,
    (schema, name): (&str, &str),
    (algorithm, check_option): (ViewAlgorithm, CheckOption),
    context: &mut PlanContext<'_>,
) -> Result<DefinedView, SqlError> {
    let mut binder = Binder::new(context);
    binder.define_view(schema, name);
    let plan = binder.bind_query(&create.query)?;
    let mut query = (*create.query).clone();
    Qualifier::new(binder.context.catalog, binder.context.database).query(&mut query)?;
    let mut columns = plan.columns().to_vec();
    if names_merged_columns(&create.query.body) {
        let mut binder = Binder::new(context);
        binder.define_view(schema, name);
        columns = binder.bind_query(&query)?.columns().to_vec();
    }
    if !create.columns.is_empty() {
        if create.columns.len() != columns.len() {
            return Err(SqlError::new(&codes::VIEW_WRONG_LIST, &[]));
        }
        for (column, name) in columns.iter_mut().zip(&create.columns) {
            column.name.clone_from(name);
        }
    }
    for (position, column) in columns.iter().enumerate() {
        let same = |other: &ResultColumn| other.name.eq_ignore_ascii_case(&column.name);
        if columns[..position].iter().any(same) {
            return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&column.name]));
        }
    }
    name_items(&mut query.body, &columns);
    let is_updatable = algorithm != ViewAlgorithm::TemporaryTable
        && query.limit.is_none()
        && query.with.is_none()
        && is_updatable(&query.body, context);
    if check_option != CheckOption::None && !is_updatable {
        return Err(SqlError::new(&codes::VIEW_NONUPD_CHECK, &[&schema, &name]));
    }
    let printed = canonical::query(&query, Style::default());
    let query = printed.map_err(|what| match what {
        "a variable or parameter" => SqlError::new(&codes::VIEW_SELECT_VARIABLE, &[]),
        what => crate::bind::unsupported(&format!("{what} in a view")),
    })?;
    Ok(DefinedView { columns, query, is_updatable })
}

/// Whether `*` may stand for columns that USING or NATURAL puts into another order.
fn names_merged_columns(body: &QueryBody) -> bool {
    let QueryBody::Select(select) = body else { return false };
    select.from.iter().any(|reference| matches!(reference, TableReference::Join { .. }))
        && select.items.iter().any(|item| matches!(item, SelectItem::Wildcard))
}

/// The columns of a view as they are now. Fails with 1356 if it no longer fits its tables.
pub fn view_columns(
    entry: &Arc<TableEntry>,
    context: &mut PlanContext<'_>,
) -> Result<Vec<ResultColumn>, SqlError> {
    let plan = Binder::new(context).bind_view_query(entry)?;
    Ok(plan.columns().to_vec())
}

/// The items of the first block have the view's names.
fn name_items(body: &mut QueryBody, columns: &[ResultColumn]) {
    match body {
        QueryBody::Select(select) => {
            for (item, column) in select.items.iter_mut().zip(columns) {
                if let SelectItem::Expression { alias, .. } = item {
                    *alias = Some(column.name.clone());
                }
            }
        }
        QueryBody::Nested(query) => name_items(&mut query.body, columns),
        QueryBody::Set { first, .. } => name_items(first, columns),
        QueryBody::Values(_) => {}
    }
}

/// MariaDB's rule: one block over tables, without groups.
fn is_updatable(body: &QueryBody, context: &PlanContext<'_>) -> bool {
    let QueryBody::Select(select) = body else { return false };
    let plain = !select.options.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && !select.from.is_empty();
    let has_aggregate = select.items.iter().any(|item| {
        let mut found = false;
        if let SelectItem::Expression { expression, .. } = item {
            crate::bind::view_text::walk(expression, &mut |inner| {
                found |= matches!(inner, syntax::ast::Expression::Aggregate(_));
            });
        }
        found
    });
    let is_column = |item: &SelectItem| match item {
        SelectItem::Expression { expression, .. } => {
            matches!(expression, syntax::ast::Expression::Column(_))
        }
        _ => false,
    };
    plain
        && !has_aggregate
        && select.items.iter().any(is_column)
        && select.from.iter().any(|reference| has_table(reference, context))
}

fn has_table(reference: &TableReference, context: &PlanContext<'_>) -> bool {
    match reference {
        TableReference::Table { name, .. } => {
            let schema = name.schema.as_deref().or(context.database).unwrap_or_default();
            match context.catalog.find(schema, &name.name) {
                Ok(catalog::TableRef::Base(_)) => true,
                Ok(catalog::TableRef::View(entry)) => {
                    entry.view().is_some_and(|view| view.is_updatable)
                }
                _ => false,
            }
        }
        TableReference::Derived { .. } => false,
        TableReference::Nested(inner) => inner.iter().any(|r| has_table(r, context)),
        TableReference::Join { left, right, .. } => {
            has_table(left, context) || has_table(right, context)
        }
    }
}

/// A kept query as it is shown in a database: that database's name is left out; where the view
/// is broken, only before tables.
pub fn shown_query(query: &str, database: Option<&str>, is_broken: bool) -> String {
    let parsed = syntax::parse(query.as_bytes(), &syntax::ParseOptions::default());
    let Ok(syntax::ast::Statement::Query(tree)) = parsed.map(|parsed| parsed.statement) else {
        return query.to_string();
    };
    let style = Style { hidden_schema: database, shows_schema_of_columns: is_broken };
    canonical::query(&tree, style).unwrap_or_else(|_| query.to_string())
}
