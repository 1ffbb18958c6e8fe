//! UPDATE and DELETE of the rows of a join.

use super::from::From;
use super::merge::ViewSource;
use super::*;
use crate::foreign::Effect;
use crate::physical::{
    Access, Computed, JoinChangePlan, JoinTarget, Refused, SelectPlan, TableSource, TableStep,
    ViewCheck,
};
use catalog::Privilege;
use engine_api::{ColumnDefault, LockMode};

/// A table to be changed: the position of its first column, and what is assigned to it.
struct Target {
    alias: String,
    first: usize,
    entry: EntryHandle,
    partitions: Vec<String>,
    assignments: Vec<(usize, Option<Expr>)>,
    refused: Vec<Refused>,
}

/// What the clauses came to.
struct Draft {
    from: From,
    conjuncts: Vec<Expr>,
    targets: Vec<Target>,
    plan: SelectPlan,
}

impl<'q> Binder<'_, '_, 'q> {
    pub(super) fn bind_update_join(&mut self, update: &'q ast::Update) -> Result<JoinChangePlan> {
        self.push_block()?;
        self.merges_views = true;
        let drafted = self.draft_update_join(update);
        let block = self.pop_block();
        let draft = drafted?;
        self.finish_join(block, draft, update.ignore)
    }

    pub(super) fn bind_delete_join(&mut self, delete: &'q ast::Delete) -> Result<JoinChangePlan> {
        self.push_block()?;
        self.merges_views = true;
        let drafted = self.draft_delete_join(delete);
        let block = self.pop_block();
        let draft = drafted?;
        for target in &draft.targets {
            if self.is_read_inside(&target.entry.0) {
                let arguments: [&dyn std::fmt::Display; 2] = [&target.alias, &"DELETE"];
                return Err(SqlError::new(&codes::UPDATE_TABLE_USED, &arguments));
            }
        }
        self.finish_join(block, draft, delete.ignore)
    }

    fn draft_update_join(&mut self, update: &'q ast::Update) -> Result<Draft> {
        self.reads_targets = true;
        let bound = self.bind_from(&update.tables);
        self.reads_targets = false;
        let mut from = bound?;
        let mut targets: Vec<Target> = Vec::new();
        let mut columns = Vec::with_capacity(update.assignments.len());
        self.block().clause = Clause::Set;
        for assignment in &update.assignments {
            columns.push(self.assigned_column(&assignment.column, &mut targets)?);
        }
        self.check_one_table_a_view(&targets)?;
        // Of several errors the first in this order is told.
        let (mut conjuncts, plan) =
            self.draft_change(&update.filter, &update.order_by, update.limit.as_ref())?;
        self.block().clause = Clause::Set;
        for (assignment, (first, column)) in update.assignments.iter().zip(columns) {
            let found = targets.iter().position(|target| target.first == first);
            let Some(found) = found else { continue };
            let entry = targets[found].entry.0.clone();
            let (definition, value) = (entry.definition(), &assignment.value);
            let value = match (value, &definition.columns[column].default) {
                // It stays, until it is computed.
                (_, ColumnDefault::Generated { .. }) => {
                    Some(self.bind_assigned(&assignment.column)?)
                }
                (ast::Expression::Default(None), ColumnDefault::Expression(_)) => {
                    let own = self.bind_assigned(&assignment.column)?;
                    Some(self.default_of(&own, &assignment.column)?)
                }
                (ast::Expression::Default(None), _) => None,
                (value, _) => Some(self.bind_for_column(value, &entry, column)?),
            };
            let refused = crate::computed::refused(definition, column, &assignment.value);
            targets[found].refused.extend(refused);
            targets[found].assignments.push((column, value));
        }
        targets.sort_by_key(|target| target.first);
        conjuncts.extend(std::mem::take(&mut from.conjuncts));
        Ok(Draft { from, conjuncts, targets, plan })
    }

    /// The table (which becomes a target) and the column that a name in SET means.
    fn assigned_column(
        &mut self,
        name: &ast::ColumnName,
        targets: &mut Vec<Target>,
    ) -> Result<(usize, usize)> {
        self.assigns = true;
        let bound = self.bind_column(name);
        self.assigns = false;
        let bound = bound?;
        let Some(position) = crate::optimize::column_position(&bound) else {
            return Err(SqlError::new(&codes::NONUPDATEABLE_COLUMN, &[&name.name]));
        };
        let unknown = || SqlError::new(&codes::BAD_FIELD_ERROR, &[name, &Clause::Set.name()]);
        let table = self.table_at(position).ok_or_else(unknown)?;
        if !targets.iter().any(|target| target.first == table.first) {
            targets.push(self.target(&table, Privilege::Update)?);
        }
        let column = position - table.first;
        if let Some(view) = self.view_at(table.first) {
            let seen_as = (view.schema.as_str(), view.name.as_str());
            self.check_column(Privilege::Update, seen_as, &name.name)?;
        } else if let Some(target) = targets.iter().find(|target| target.first == table.first) {
            let entry = target.entry.0.clone();
            self.check_written(Privilege::Update, &entry, std::iter::once(column))?;
        }
        Ok((table.first, column))
    }

    /// Error 1393 if two tables of one view are to be changed.
    fn check_one_table_a_view(&mut self, targets: &[Target]) -> Result<()> {
        for view in &self.block().views {
            let own = targets.iter().filter(|target| view.positions.contains(&target.first));
            if own.count() > 1 {
                return Err(SqlError::new(&codes::VIEW_MULTIUPDATE, &[&view.schema, &view.name]));
            }
        }
        Ok(())
    }

    /// A table of the block as one to be changed; 1288 if it cannot be.
    fn target(&mut self, table: &NamedTable, privilege: Privilege) -> Result<Target> {
        let alias = table.alias.clone();
        let Some(entry) = table.entry() else {
            let command = privilege.name().to_ascii_uppercase();
            return Err(SqlError::new(&codes::NON_UPDATABLE_TABLE, &[&alias, &command]));
        };
        let definition = entry.0.definition();
        let (schema, name) = (&definition.schema, &definition.name);
        let view = self.view_at(table.first);
        if let Some(view) = &view
            && !self.may_open(privilege, &view.schema, &view.name)
        {
            return Err(self.denied(privilege, &view.schema, &view.name));
        }
        let rights = view.as_ref().and_then(|view| view.rights.as_deref());
        let user = rights.unwrap_or(self.context.user);
        let allowed = entry.0.is_temporary()
            || user.may(privilege, schema, name)
            || (view.is_none()
                && privilege == Privilege::Update
                && self.may_open(privilege, schema, name));
        if !allowed {
            return Err(match &view {
                Some(view) => SqlError::new(&codes::VIEW_INVALID, &[&view.schema, &view.name]),
                None => self.denied(privilege, schema, name),
            });
        }
        Ok(Target {
            alias,
            first: table.first,
            entry,
            partitions: table.partitions.clone(),
            assignments: Vec::new(),
            refused: Vec::new(),
        })
    }

    /// The target that a table of a DELETE's FROM is; 1395 for a view of several tables.
    fn delete_target(&mut self, table: &NamedTable) -> Result<Target> {
        let ColumnList::Merged(_) = &table.columns else {
            return self.target(table, Privilege::Delete);
        };
        let view = self.block().views.iter().find(|view| view.positions.start == table.first);
        let Some(view) = view.cloned() else { return self.target(table, Privilege::Delete) };
        let tables = self.block().merged_tables.iter();
        let own: Vec<NamedTable> =
            tables.filter(|table| view.positions.contains(&table.first)).cloned().collect();
        let [own] = &own[..] else {
            return Err(SqlError::new(&codes::VIEW_DELETE_MERGE_VIEW, &[&view.schema, &view.name]));
        };
        self.target(own, Privilege::Delete)
    }

    /// DELETE through a view that is more than a part of its table.
    pub(super) fn bind_delete_view(&mut self, delete: &'q ast::Delete) -> Result<JoinChangePlan> {
        if !delete.returning.is_empty() || !delete.order_by.is_empty() {
            return Err(unsupported("RETURNING or ORDER BY of DELETE through this view"));
        }
        self.push_block()?;
        self.merges_views = true;
        let drafted = self.draft_delete_view(delete);
        let block = self.pop_block();
        self.finish_join(block, drafted?, delete.ignore)
    }

    fn draft_delete_view(&mut self, delete: &'q ast::Delete) -> Result<Draft> {
        let mut from = self.bind_from(&delete.tables)?;
        let tables = self.block().tables.clone();
        let mut targets = Vec::with_capacity(tables.len());
        for table in &tables {
            targets.push(self.delete_target(table)?);
        }
        let (mut conjuncts, plan) =
            self.draft_change(&delete.filter, &[], delete.limit.as_ref())?;
        conjuncts.extend(std::mem::take(&mut from.conjuncts));
        Ok(Draft { from, conjuncts, targets, plan })
    }

    fn draft_delete_join(&mut self, delete: &'q ast::Delete) -> Result<Draft> {
        for (number, name) in delete.targets.iter().enumerate() {
            if delete.targets[..number].contains(name) {
                return Err(SqlError::new(&codes::NONUNIQ_TABLE, &[&name.name]));
            }
        }
        self.check_delete_targets(delete)?;
        let mut from = self.bind_from(&delete.tables)?;
        let mut targets = Vec::with_capacity(delete.targets.len());
        for name in &delete.targets {
            let means = |table: &NamedTable| {
                table.alias == name.name
                    && name.schema.as_ref().is_none_or(|schema| *schema == table.schema)
            };
            let Some(table) = self.block().tables.iter().find(|table| means(table)).cloned() else {
                return Err(unknown_target(name));
            };
            targets.push(self.delete_target(&table)?);
        }
        targets.sort_by_key(|target| target.first);
        let (mut conjuncts, plan) = self.draft_change(&delete.filter, &[], None)?;
        conjuncts.extend(std::mem::take(&mut from.conjuncts));
        Ok(Draft { from, conjuncts, targets, plan })
    }

    /// Error 1109 for targets that FROM does not name, which comes before anything is opened.
    fn check_delete_targets(&self, delete: &ast::Delete) -> Result<()> {
        let mut names = Vec::new();
        delete.tables.iter().for_each(|reference| collect_names(reference, &mut names));
        for target in &delete.targets {
            if !names.contains(&target.name.as_str()) {
                return Err(unknown_target(target));
            }
        }
        Ok(())
    }

    /// What the rows of a target compute when they are changed.
    fn computed_of_target(&mut self, target: &Target) -> Result<Option<Box<Computed>>> {
        if target.assignments.is_empty() {
            return Ok(None);
        }
        let mut computed = crate::computed::computed(self.context, target.entry.0.definition())?;
        if let Some(computed) = &mut computed {
            computed.refused.clone_from(&target.refused);
        }
        Ok(computed)
    }

    fn finish_join(&mut self, block: Block, draft: Draft, ignore: bool) -> Result<JoinChangePlan> {
        let Draft { from, conjuncts, mut targets, plan } = draft;
        let all = targets.iter_mut().flat_map(|target| &mut target.assignments);
        let mut values: Vec<Expr> = Vec::new();
        let mut given = Vec::new();
        for (_, value) in all {
            given.push(value.is_some());
            values.extend(value.take());
        }
        let assigned = values.len();
        let mut checks: Vec<Option<Box<ViewCheck>>> = Vec::with_capacity(targets.len());
        for target in &targets {
            let is_own = |view: &&ViewSource| view.positions.contains(&target.first);
            let view = block.views.iter().find(is_own).filter(|_| !target.assignments.is_empty());
            let check = view.and_then(ViewSource::check);
            values.extend(check.iter().flat_map(|check| check.conditions.iter().cloned()));
            checks.push(check.map(Box::new));
        }
        let mut select = self.finish_change(block, from, conjuncts, plan, &mut values)?;
        let mut conditions = values.split_off(assigned).into_iter();
        for condition in checks.iter_mut().flatten().flat_map(|check| &mut check.conditions) {
            *condition = conditions.next().expect("all conditions were among the values");
        }
        let (mut values, mut given) = (values.into_iter(), given.into_iter());
        select.tables.iter_mut().for_each(|step| step.lock = LockMode::None);
        let mut made = Vec::with_capacity(targets.len());
        for (target, check) in targets.iter().zip(checks) {
            let is_step = |step: &TableStep| {
                step.first_position == target.first && matches!(step.source, TableSource::Base(_))
            };
            let step = select.tables.iter().position(is_step);
            let step = step.ok_or_else(|| {
                unsupported("a change of a table inside of the right side of an outer join")
            })?;
            select.tables[step].lock = LockMode::Exclusive;
            let same = |other: &&Target| Arc::ptr_eq(&other.entry.0, &target.entry.0);
            let value = |_: &usize| if given.next() == Some(true) { values.next() } else { None };
            let columns: Vec<usize> = target.assignments.iter().map(|(c, _)| *c).collect();
            let assigned: Vec<Option<Expr>> = columns.iter().map(value).collect();
            let effect = if columns.is_empty() { Effect::Delete } else { Effect::Change };
            let assigned_columns =
                super::change::changed_columns(target.entry.0.definition(), &columns);
            let assigned_columns = (!columns.is_empty()).then_some(assigned_columns);
            let foreign_keys =
                self.foreign_keys(&target.entry.0, effect, assigned_columns.as_deref())?;
            let (definition, mut checks) = (target.entry.0.definition(), Vec::new());
            if effect != Effect::Delete {
                checks = crate::check::checks(self.context, definition)?;
                self.partition_check(definition, &target.partitions, &mut checks)?;
            }
            let computed = self.computed_of_target(target)?;
            made.push(JoinTarget {
                computed,
                foreign_keys,
                checks,
                check,
                table: target.entry.clone(),
                step,
                assignments: columns.into_iter().zip(assigned).collect(),
                late: Vec::new(),
                sees_assigned: false,
                shared: targets.iter().filter(same).count() > 1,
            });
        }
        self.mark_seen(&mut select, &mut made);
        if made.len() > 1 && made.iter().any(|target| target.foreign_keys.is_some()) {
            made.iter_mut().for_each(|target| target.shared = true);
        }
        Ok(JoinChangePlan { select, targets: made, ignore })
    }

    /// Finds out which target sees what is assigned, and which subqueries do. A table that a
    /// subquery reads, too, does not.
    fn mark_seen(&self, select: &mut SelectPlan, targets: &mut [JoinTarget]) {
        mark_first(select, targets);
        for target in targets.iter_mut() {
            target.sees_assigned &= !self.is_read_inside(&target.table.0);
        }
        mark_late(select, targets);
    }
}

/// Finds out whether the first table of the join order is changed while it is read.
fn mark_first(select: &SelectPlan, targets: &mut [JoinTarget]) {
    let mut read = vec![false; select.frame_columns];
    for (_, value) in targets.iter().flat_map(|target| &target.assignments) {
        for position in value.iter().flat_map(|value| select.positions_read(value)) {
            if let Some(read) = read.get_mut(position) {
                *read = true;
            }
        }
    }
    let first = select.tables.iter().position(is_one_row).unwrap_or(0);
    let Some(target) = targets.iter_mut().find(|target| target.step == first) else { return };
    let step = &select.tables[first];
    let definition = target.table.0.definition();
    let assigned: Vec<usize> = target.assignments.iter().map(|(column, _)| *column).collect();
    let changed = super::change::changed_columns(definition, &assigned);
    let is_assigned = |column: usize| changed.contains(&column);
    let changes_index = |index: usize| {
        let parts = definition.indexes[index].parts.iter();
        parts.chain(&definition.indexes[0].parts).any(|part| is_assigned(part.column))
    };
    let reads_assigned =
        target.assignments.iter().any(|(column, _)| read[step.first_position + column]);
    target.sees_assigned = !target.shared
        && match &step.access {
            Access::Point { .. } => true,
            Access::Ranges { index, ranges, .. } => {
                let equal = ranges.iter().all(|r| {
                    !r.equal.is_empty() && r.lower.is_none() && r.upper.is_none() && !r.not_null
                });
                !changes_index(*index) && (equal || !reads_assigned)
            }
            Access::Scan { index, .. } => !changes_index(*index) && !reads_assigned,
            Access::Hash { .. } => false,
        };
}

/// Marks the subqueries that read what is assigned to the table that is changed while it is read.
fn mark_late(select: &mut SelectPlan, targets: &mut [JoinTarget]) {
    let Some(target) = targets.iter().find(|target| target.sees_assigned) else { return };
    if !select.has_subqueries() {
        return;
    }
    let first = select.tables[target.step].first_position;
    let assigned: Vec<usize> =
        target.assignments.iter().map(|(column, _)| first + column).collect();
    for target in targets {
        let values = target.assignments.iter().map(|(_, value)| value.as_ref());
        let late = values.map(|value| match value {
            Some(value) => select.mark_late(value, &assigned),
            None => Vec::new(),
        });
        target.late = late.collect();
    }
}

/// Whether a step gives the same row, if any, whatever the other tables have: MariaDB reads such
/// tables first.
fn is_one_row(step: &TableStep) -> bool {
    let Access::Point { key } = &step.access else { return false };
    let mut reads = false;
    key.iter().for_each(|value| value.for_each_column(&mut |_| reads = true));
    !reads
}

fn unknown_target(name: &ast::TableName) -> SqlError {
    SqlError::new(&codes::UNKNOWN_TABLE, &[&name.name, &"MULTI DELETE"])
}

/// The names under which the tables of a FROM are known.
fn collect_names<'r>(reference: &'r ast::TableReference, names: &mut Vec<&'r str>) {
    match reference {
        ast::TableReference::Table { name, alias, .. } => {
            names.push(alias.as_deref().unwrap_or(&name.name));
        }
        ast::TableReference::Derived { alias, .. } => names.push(alias),
        ast::TableReference::Join { left, right, .. } => {
            collect_names(left, names);
            collect_names(right, names);
        }
        ast::TableReference::Nested(inner) => {
            inner.iter().for_each(|reference| collect_names(reference, names));
        }
    }
}
