//! UPDATE, DELETE, and what they share with INSERT.

use super::from::From;
use super::set::empty_select;
use super::view::MappedColumns;
use super::*;
use crate::foreign::Effect;
use crate::physical::{
    Computed, DeletePlan, Plan, ResultColumn, SelectPlan, TableSource, UpdatePlan, ViewCheck,
};
use catalog::{Privilege, PrivilegeSet, TableEntry};
use engine_api::{ColumnDefault, LockMode};

impl<'q> Binder<'_, '_, 'q> {
    /// Fails with 1142 unless all of these are held on a table or some of its columns.
    pub(super) fn require_all(&self, wanted: PrivilegeSet, name: &ast::TableName) -> Result<()> {
        if self.context.user.global.contains(wanted) {
            return Ok(());
        }
        let schema = self.schema_of(name)?;
        let temporary = self.context.temporary.and_then(|known| known.find(&schema, &name.name));
        let missing = self.context.user.missing(wanted, &schema, &name.name);
        let is_virtual = schema.eq_ignore_ascii_case(catalog::information_schema::SCHEMA_NAME);
        if temporary.is_some() || is_virtual || missing.is_empty() {
            return Ok(());
        }
        Err(self.denied_all(missing, &schema, &name.name))
    }

    /// Binds something in a block whose only table is the target, from position 0.
    pub(super) fn in_target_block<T>(
        &mut self,
        target: &Arc<TableEntry>,
        alias: &str,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.push_block()?;
        self.add_target(target, alias);
        let bound = bind(self);
        self.pop_block();
        bound
    }

    /// What WITH CHECK OPTION asks of the rows that come in through a view.
    pub(super) fn view_check(
        &mut self,
        target: &Arc<TableEntry>,
        alias: &str,
    ) -> Result<Option<Box<ViewCheck>>> {
        let Some(view) = self.target_view.clone() else { return Ok(None) };
        let bound =
            self.in_target_block(target, alias, |binder| binder.check_condition(&view, 0))?;
        let (schema, name) = (view.schema.clone(), view.name.clone());
        Ok(bound.map(|conditions| Box::new(ViewCheck { conditions, schema, name })))
    }

    pub(super) fn add_target(&mut self, target: &Arc<TableEntry>, alias: &str) -> From {
        let definition = target.definition();
        let mut from = From::default();
        let handle = EntryHandle(target.clone());
        let (columns, schema) = match &self.target_view {
            None => (ColumnList::Base(handle.clone()), definition.schema.clone()),
            Some(view) => {
                let (entry, columns) = (view.base.clone(), view.columns.clone());
                (ColumnList::Mapped(MappedColumns { entry, columns }), view.schema.clone())
            }
        };
        let source = TableSource::Base(handle);
        let guard = match &self.target_view {
            _ if target.is_temporary() => None,
            None => self.guard_of(&definition.schema, &definition.name),
            Some(view) => self.guard_of(&view.schema, &view.name),
        };
        self.add_source(source, alias.to_string(), schema, columns, Vec::new(), &mut from);
        self.guard_last(guard);
        from
    }

    pub(super) fn no_subqueries(&mut self, feature: &str) -> Result<()> {
        let block = self.block();
        if !block.aggregates.is_empty() {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        if block.applies.is_empty() { Ok(()) } else { Err(unsupported(feature)) }
    }

    /// The position of a column of the target (1054).
    pub(super) fn target_column(
        &self,
        target: &TableEntry,
        alias: &str,
        name: &ast::ColumnName,
        clause: Clause,
    ) -> Result<usize> {
        let definition = target.definition();
        if let Some(view) = &self.target_view {
            let own_table = name.table.as_ref().is_none_or(|table| table == alias);
            let columns = view.columns.iter().filter(|_| own_table);
            let mut found = columns.filter(|(known, _)| known.eq_ignore_ascii_case(&name.name));
            let (_, at) =
                found.next().ok_or_else(|| super::table::unqualified_error(name, clause))?;
            return Ok(*at);
        }
        let own_table = name.table.as_ref().is_none_or(|table| table == alias);
        let own_schema = name.schema.as_ref().is_none_or(|schema| *schema == definition.schema);
        let found = definition.column_position(&name.name).filter(|_| own_table && own_schema);
        found.ok_or_else(|| SqlError::new(&codes::BAD_FIELD_ERROR, &[name, &clause.name()]))
    }

    /// A value that is stored into a column.
    pub(super) fn bind_for_column(
        &mut self,
        value: &'q ast::Expression,
        target: &TableEntry,
        column: usize,
    ) -> Result<Expr> {
        let value = self.bind_scalar(value)?;
        let column_type = &target.definition().columns[column].column_type;
        Ok(self.builder().for_column(value, column_type))
    }

    /// A column that something is assigned to.
    pub(super) fn bind_assigned(&mut self, name: &'q ast::ColumnName) -> Result<Expr> {
        self.assigns = true;
        let column = self.bind_column(name);
        self.assigns = false;
        column
    }

    pub(crate) fn bind_update(&mut self, update: &'q ast::Update) -> Result<Plan> {
        let [ast::TableReference::Table { name, alias, hints, partitions }] = &update.tables[..]
        else {
            let change = self.bind_update_join(update)?;
            return Ok(Plan::UpdateJoin(Box::new(change)));
        };
        let target = match self.open_for_change(
            name,
            alias.as_deref().unwrap_or(&name.name),
            Privilege::Update,
        ) {
            Err(_) if self.wants_merge => {
                let change = self.bind_update_join(update)?;
                return Ok(Plan::UpdateJoin(Box::new(change)));
            }
            opened => opened?,
        };
        let alias = alias.clone().unwrap_or_else(|| name.name.clone());
        self.push_block()?;
        let mut from = self.add_target(&target, &alias);
        if let Err(error) = super::from::check_hints(target.definition(), hints) {
            self.pop_block();
            return Err(error);
        }
        from.sources[0].hints = hints.clone();
        let drafted = self.draft_update(update, &target, &alias);
        let restricted = self.partition_conditions(&EntryHandle(target.clone()), partitions, 0);
        let block = self.pop_block();
        let (columns, mut values, mut conjuncts, plan) = drafted?;
        if self.is_read_inside(&target) {
            let change = self.bind_update_join(update)?;
            return Ok(Plan::UpdateJoin(Box::new(change)));
        }
        conjuncts.extend(restricted?);
        let mut expressions: Vec<Expr> = values.iter_mut().filter_map(Option::take).collect();
        let defaults: Vec<bool> = columns.iter().map(|(_, is_default)| *is_default).collect();
        let mut select = self.finish_change(block, from, conjuncts, plan, &mut expressions)?;
        let mut expressions = expressions.into_iter();
        let assignments: Vec<(usize, Option<Expr>)> = columns
            .iter()
            .zip(&defaults)
            .map(|((column, _), is_default)| {
                (*column, if *is_default { None } else { expressions.next() })
            })
            .collect();
        let computed = self.computed_of_update(update, &target, &alias)?;
        let assigned: Vec<usize> = assignments.iter().map(|(column, _)| *column).collect();
        let late = late_subqueries(&mut select, &assignments, &assigned);
        let assigned = changed_columns(target.definition(), &assigned);
        let collect_first = crate::optimize::meets_own_changes(&select, &assigned);
        let foreign_keys = self.foreign_keys(&target, Effect::Change, Some(&assigned))?;
        let check = self.view_check(&target, &alias)?;
        let mut checks = crate::check::checks(self.context, target.definition())?;
        self.partition_check(target.definition(), partitions, &mut checks)?;
        Ok(Plan::Update(Box::new(UpdatePlan {
            check,
            foreign_keys,
            checks,
            computed,
            target: EntryHandle(target),
            select,
            assignments,
            late,
            ignore: update.ignore,
            collect_first,
        })))
    }

    /// What the rows that are written compute, and which of their values are not taken.
    fn computed_of_update(
        &mut self,
        update: &ast::Update,
        target: &TableEntry,
        alias: &str,
    ) -> Result<Option<Box<Computed>>> {
        let mut computed = crate::computed::computed(self.context, target.definition())?;
        if let Some(computed) = &mut computed {
            for assignment in &update.assignments {
                let at = self.target_column(target, alias, &assignment.column, Clause::Set)?;
                let refused = crate::computed::refused(target.definition(), at, &assignment.value);
                computed.refused.extend(refused);
            }
        }
        Ok(computed)
    }

    /// Whether a subquery reads the table that is changed: then all rows are found, and what is
    /// assigned to them, before the first is changed.
    pub(super) fn is_read_inside(&self, target: &Arc<TableEntry>) -> bool {
        self.inner_entries.iter().any(|inner| Arc::ptr_eq(&inner.0, target))
    }

    /// The condition and order are bound first, then the columns that are assigned, then the
    /// values: of several errors the first in this order is told.
    #[allow(clippy::type_complexity, reason = "the parts of one statement, used once")]
    fn draft_update(
        &mut self,
        update: &'q ast::Update,
        target: &TableEntry,
        alias: &str,
    ) -> Result<(Vec<(usize, bool)>, Vec<Option<Expr>>, Vec<Expr>, SelectPlan)> {
        let (conjuncts, plan) =
            self.draft_change(&update.filter, &update.order_by, update.limit.as_ref())?;
        let mut positions = Vec::with_capacity(update.assignments.len());
        for assignment in &update.assignments {
            let position = self.target_column(target, alias, &assignment.column, Clause::Set)?;
            self.check_written(Privilege::Update, target, std::iter::once(position))?;
            positions.push(position);
        }
        let mut columns = Vec::with_capacity(positions.len());
        let mut values = Vec::with_capacity(positions.len());
        for (assignment, position) in update.assignments.iter().zip(positions) {
            self.block().clause = Clause::Set;
            let default = &target.definition().columns[position].default;
            if let ColumnDefault::Generated { .. } = default {
                continue;
            }
            let is_default = assignment.value == ast::Expression::Default(None);
            if let (true, ColumnDefault::Expression(text)) = (is_default, default) {
                let context = &mut *self.context;
                let value =
                    crate::computed::default_expression(context, target.definition(), text)?;
                columns.push((position, false));
                values.push(Some(value));
            } else if is_default {
                columns.push((position, true));
                values.push(None);
            } else {
                columns.push((position, false));
                let value = self.bind_for_column(&assignment.value, target, position)?;
                values.push(Some(value));
            }
        }
        Ok((columns, values, conjuncts, plan))
    }

    /// WHERE, ORDER BY and LIMIT of UPDATE and DELETE.
    pub(super) fn draft_change(
        &mut self,
        filter: &'q Option<ast::Expression>,
        order_by: &'q [ast::OrderItem],
        limit: Option<&'q ast::Limit>,
    ) -> Result<(Vec<Expr>, SelectPlan)> {
        let conjuncts = match filter {
            Some(filter) => self.bind_conjuncts(filter, Clause::Where)?,
            None => Vec::new(),
        };
        let mut conjuncts = conjuncts;
        if let Some(view) = self.target_view.clone() {
            conjuncts.extend(self.view_conditions(&view, 0, |_| true)?);
        }
        let mut plan = empty_select(Vec::new(), Vec::new());
        plan.lock = LockMode::Exclusive;
        self.bind_change_order(order_by, &mut plan)?;
        plan.limit = self.bind_limit(limit)?;
        Ok((conjuncts, plan))
    }

    pub(crate) fn bind_delete(&mut self, delete: &'q ast::Delete) -> Result<Plan> {
        if !delete.targets.is_empty() {
            let change = self.bind_delete_join(delete)?;
            return Ok(Plan::DeleteJoin(Box::new(change)));
        }
        let [ast::TableReference::Table { name, alias, hints, partitions }] = &delete.tables[..]
        else {
            return Err(unsupported("multi-table DELETE"));
        };
        let target = match self.open_for_change(
            name,
            alias.as_deref().unwrap_or(&name.name),
            Privilege::Delete,
        ) {
            Err(_) if self.wants_merge => {
                let change = self.bind_delete_view(delete)?;
                return Ok(Plan::DeleteJoin(Box::new(change)));
            }
            opened => opened?,
        };
        let alias = alias.clone().unwrap_or_else(|| name.name.clone());
        self.push_block()?;
        let mut from = self.add_target(&target, &alias);
        if let Err(error) = super::from::check_hints(target.definition(), hints) {
            self.pop_block();
            return Err(error);
        }
        from.sources[0].hints = hints.clone();
        let drafted = self.draft_delete(delete);
        let restricted = self.partition_conditions(&EntryHandle(target.clone()), partitions, 0);
        let block = self.pop_block();
        let (mut returning, returning_columns, mut conjuncts, plan) = drafted?;
        conjuncts.extend(restricted?);
        let select = self.finish_change(block, from, conjuncts, plan, &mut returning)?;
        let foreign_keys = self.foreign_keys(&target, Effect::Delete, None)?;
        Ok(Plan::Delete(Box::new(DeletePlan {
            target: EntryHandle(target),
            select,
            ignore: delete.ignore,
            returning,
            returning_columns,
            foreign_keys,
        })))
    }

    #[allow(clippy::type_complexity, reason = "the parts of one statement, used once")]
    fn draft_delete(
        &mut self,
        delete: &'q ast::Delete,
    ) -> Result<(Vec<Expr>, Vec<ResultColumn>, Vec<Expr>, SelectPlan)> {
        let (returning, columns) = if delete.returning.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            self.block().clause = Clause::Returning;
            self.bind_items(&delete.returning)?
        };
        self.block().aliases.clear();
        let (conjuncts, plan) =
            self.draft_change(&delete.filter, &delete.order_by, delete.limit.as_ref())?;
        Ok((returning, columns, conjuncts, plan))
    }
}

/// For each assignment the subqueries that read what those before it have assigned.
fn late_subqueries(
    select: &mut SelectPlan,
    assignments: &[(usize, Option<Expr>)],
    assigned: &[usize],
) -> Vec<Vec<usize>> {
    let mut late = Vec::new();
    if !select.has_subqueries() {
        return late;
    }
    for (number, (_, value)) in assignments.iter().enumerate() {
        let value = value.as_ref();
        late.push(value.map_or_else(Vec::new, |it| select.mark_late(it, &assigned[..number])));
    }
    if late.iter().all(Vec::is_empty) { Vec::new() } else { late }
}

/// Columns that an update changes: those assigned, and those that follow every change.
pub(super) fn changed_columns(
    table: &engine_api::TableDefinition,
    assigned: &[usize],
) -> Vec<usize> {
    let follows =
        |column: &engine_api::ColumnDefinition| column.on_update_now || column.is_generated();
    let follows = table.columns.iter().enumerate().filter(|(_, column)| follows(column));
    assigned.iter().copied().chain(follows.map(|(position, _)| position)).collect()
}
