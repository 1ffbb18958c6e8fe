//! INSERT and REPLACE.

use super::*;
use crate::computed;
use crate::foreign::Effect;
use crate::physical::QueryPlan;
use crate::physical::{
    Apply, Computed, InsertPlan, InsertRows, InsertSubqueries, InsertValue, ResultColumn,
    packed_literal,
};
use catalog::{Privilege, PrivilegeSet, TableEntry};
use engine_api::ColumnDefault;
use expr::{ArithmeticOperator, ExprKind};
use types::TypeKind;

/// Hexadecimal literals that a query selects for columns of numbers are numbers.
fn numbers_of_hex(plan: &mut QueryPlan, target: &TableEntry, columns: &[usize]) {
    let QueryPlan::Select(select) = plan else { return };
    if select.distinct || select.aggregate.is_some() {
        return;
    }
    let types = columns.iter().map(|at| target.definition().columns[*at].column_type);
    for ((value, shown), wanted) in
        select.projection.iter_mut().zip(select.columns.iter_mut()).zip(types)
    {
        if wanted.kind.is_number() && value.is_hex_literal() {
            *value = expr::number_of_hex(value.clone());
            shown.result = value.result;
        }
    }
}

/// Whether a value is a quotient, or made of one.
fn has_quotient(value: &Expr) -> bool {
    let mut found =
        matches!(value.kind, ExprKind::Arithmetic { operator: ArithmeticOperator::Divide, .. });
    value.for_each_child(&mut |child| found = found || has_quotient(child));
    found
}

/// Quotients that a query selects for columns of numbers are stored with all their digits, not with
/// those that are shown.
fn whole_quotients(plan: &mut QueryPlan, target: &TableEntry, columns: &[usize]) {
    let QueryPlan::Select(select) = plan else { return };
    if select.distinct || select.aggregate.is_some() {
        return;
    }
    let types = columns.iter().map(|at| target.definition().columns[*at].column_type);
    for (value, wanted) in select.projection.iter_mut().zip(types) {
        let is_cast = matches!(value.kind, ExprKind::Cast { .. });
        let is_computed = value.result.column_type.kind == TypeKind::Decimal && !is_cast;
        if wanted.kind.is_number() && is_computed && has_quotient(value) {
            value.result.column_type.scale = types::decimal::SCALE_MAX;
        }
    }
}

impl<'q> Binder<'_, '_, 'q> {
    pub(crate) fn bind_insert(&mut self, insert: &'q ast::Insert) -> Result<InsertPlan> {
        let wanted = PrivilegeSet::from(Privilege::Insert);
        let wanted = if insert.replace { wanted.with(Privilege::Delete) } else { wanted };
        let updates = !insert.on_duplicate.is_empty();
        let wanted = if updates { wanted.with(Privilege::Update) } else { wanted };
        self.require_all(wanted, &insert.table.name)?;
        let target = match self.open_for_change(
            &insert.table.name,
            &insert.table.name.name,
            Privilege::Insert,
        ) {
            Err(_) if self.wants_merge => self.open_joined_target(insert)?,
            opened => opened?,
        };
        let name = match &self.target_view {
            None => target.definition().name.clone(),
            Some(view) => view.name.clone(),
        };
        let columns = self.insert_columns(insert, &target, &name)?;
        let written = columns.iter().copied();
        let written = self.check_written(Privilege::Insert, &target, written);
        if insert.columns.is_none() && written.is_err() {
            let schema = self.schema_of(&insert.table.name)?;
            return Err(self.denied(Privilege::Insert, &schema, &insert.table.name.name));
        }
        written?;
        let source = self.insert_source(insert, &target, &columns, &name)?;
        let mut subqueries = InsertSubqueries::default();
        let on_duplicate = self.on_duplicate(insert, &target, &name, &mut subqueries)?;
        let changed = on_duplicate.iter().map(|(column, _)| *column);
        self.check_written(Privilege::Update, &target, changed)?;
        let (returning, returning_columns) =
            self.bind_returning(insert, &target, &name, &mut subqueries)?;
        let changes = insert.replace || !on_duplicate.is_empty();
        let effect = if changes { Effect::Change } else { Effect::Insert };
        let foreign_keys = self.foreign_keys(&target, effect, None)?;
        let check = self.view_check(&target, &name)?;
        let mut checks = crate::check::checks(self.context, target.definition())?;
        self.partition_check(target.definition(), &insert.table.partitions, &mut checks)?;
        let view = self.target_view.as_ref();
        let view = view.map(|view| Box::new((view.schema.clone(), view.name.clone())));
        let computed =
            self.computed_of_insert(insert, target.definition(), &columns, &on_duplicate, &source)?;
        Ok(InsertPlan {
            check,
            view,
            computed,
            foreign_keys,
            checks,
            target: EntryHandle(target),
            columns,
            source,
            replace: insert.replace,
            ignore: insert.ignore,
            on_duplicate,
            returning,
            returning_columns,
            subqueries: subqueries.if_any(),
        })
    }

    fn bind_returning(
        &mut self,
        insert: &'q ast::Insert,
        target: &Arc<TableEntry>,
        name: &str,
        subqueries: &mut InsertSubqueries,
    ) -> Result<(Vec<Expr>, Vec<ResultColumn>)> {
        if insert.returning.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        self.inserted = Some((target.clone(), name.to_owned()));
        let bound = self.in_target_block(target, name, |binder| {
            binder.block().clause = Clause::Returning;
            let mut items = binder.bind_items(&insert.returning)?;
            let first = target.definition().columns.len();
            subqueries.returning = binder.take_subqueries(first, items.0.iter_mut())?;
            Ok(items)
        });
        self.inserted = None;
        bound
    }

    /// Takes the subqueries of the block of the target; their positions begin at `first`, also in
    /// the values that read them.
    fn take_subqueries<'v>(
        &mut self,
        first: usize,
        values: impl Iterator<Item = &'v mut Expr>,
    ) -> Result<Vec<Apply>> {
        let block = self.block();
        if !block.aggregates.is_empty() {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        let mut applies = std::mem::take(&mut block.applies);
        let mut place = |position| match position {
            APPLY.. => first + (position - APPLY),
            _ => position,
        };
        values.for_each(|value| value.map_columns(&mut place));
        for apply in &mut applies {
            apply.position = place(apply.position);
            apply.map_reads(&mut place);
        }
        Ok(applies)
    }

    fn insert_columns(
        &self,
        insert: &ast::Insert,
        target: &TableEntry,
        alias: &str,
    ) -> Result<Vec<usize>> {
        let Some(names) = &insert.columns else {
            if let Some(view) = &self.target_view {
                return Ok(view.columns.iter().map(|(_, at)| *at).collect());
            }
            let all = target.definition().columns.len();
            let empty_row = matches!(&insert.source, ast::InsertSource::Values(rows)
                if rows.iter().all(Vec::is_empty));
            return Ok(if empty_row { Vec::new() } else { (0..all).collect() });
        };
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let position = self.target_column(target, alias, name, Clause::InsertInto)?;
            if columns.contains(&position) {
                return Err(SqlError::new(&codes::FIELD_SPECIFIED_TWICE, &[&name.name]));
            }
            columns.push(position);
        }
        Ok(columns)
    }

    fn insert_source(
        &mut self,
        insert: &'q ast::Insert,
        target: &Arc<TableEntry>,
        columns: &[usize],
        alias: &str,
    ) -> Result<InsertRows> {
        match &insert.source {
            ast::InsertSource::Query(query) => {
                let mut plan = self.bind_query(query)?;
                numbers_of_hex(&mut plan, target, columns);
                whole_quotients(&mut plan, target, columns);
                if plan.columns().len() != columns.len() + self.source.len() {
                    return Err(SqlError::new(&codes::WRONG_VALUE_COUNT_ON_ROW, &[&1]));
                }
                self.source.settle(&plan, columns.len(), 2 * target.definition().columns.len());
                Ok(InsertRows::Query(plan))
            }
            ast::InsertSource::Values(rows) => {
                for (number, row) in rows.iter().enumerate() {
                    if row.len() != columns.len() {
                        let number = number + 1;
                        return Err(SqlError::new(&codes::WRONG_VALUE_COUNT_ON_ROW, &[&number]));
                    }
                }
                self.insert_values(rows, target, columns, alias)
            }
            ast::InsertSource::Literals(rows) => {
                if rows.width() != columns.len() {
                    return Err(SqlError::new(&codes::WRONG_VALUE_COUNT_ON_ROW, &[&1]));
                }
                self.insert_literals(rows, target, columns)
            }
        }
    }

    fn insert_literals(
        &mut self,
        rows: &Arc<ast::LiteralRows>,
        target: &TableEntry,
        columns: &[usize],
    ) -> Result<InsertRows> {
        let definition = target.definition();
        if !columns.iter().any(|&column| definition.columns[column].is_generated()) {
            return Ok(InsertRows::Literals(rows.clone()));
        }
        let mut bound = Vec::with_capacity(rows.count());
        let mut literals = rows.values();
        for _ in 0..rows.count() {
            let mut values = Vec::with_capacity(columns.len());
            for (&column, literal) in columns.iter().zip(literals.by_ref()) {
                let definition_of = &definition.columns[column];
                values.push(if definition_of.is_generated() {
                    let refused = computed::refused(definition, column, &literal.expression());
                    refused.map_or(InsertValue::Default, InsertValue::Refused)
                } else {
                    let value =
                        packed_literal(&self.builder(), literal, &definition_of.column_type);
                    InsertValue::Expr(value?)
                });
            }
            bound.push(values);
        }
        Ok(InsertRows::Values(bound))
    }

    fn insert_values(
        &mut self,
        rows: &'q [Vec<ast::Expression>],
        target: &Arc<TableEntry>,
        columns: &[usize],
        alias: &str,
    ) -> Result<InsertRows> {
        self.push_block()?;
        self.add_target(target, alias);
        // Columns of the row that is inserted may be named by who inserts it.
        self.block().tables.iter_mut().for_each(|table| table.guard = None);
        self.block().clause = Clause::Values;
        let bound = self.bind_insert_rows(rows, target, columns);
        let block = self.pop_block();
        let bound = bound?;
        if !block.aggregates.is_empty() {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        if block.applies.is_empty() {
            return Ok(InsertRows::Values(bound));
        }
        // With subqueries the rows are those of a query without tables.
        let tail = super::query::Tail::NONE;
        self.bind_values_rows(rows, tail, &mut Vec::new()).map(InsertRows::Query)
    }

    fn bind_insert_rows(
        &mut self,
        rows: &'q [Vec<ast::Expression>],
        target: &TableEntry,
        columns: &[usize],
    ) -> Result<Vec<Vec<InsertValue>>> {
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(row.len());
            for (value, column) in row.iter().zip(columns) {
                let definition = target.definition();
                values.push(match (value, &definition.columns[*column].default) {
                    (value, ColumnDefault::Generated { .. }) => {
                        let refused = computed::refused(definition, *column, value);
                        refused.map_or(InsertValue::Default, InsertValue::Refused)
                    }
                    (ast::Expression::Default(None), ColumnDefault::Expression(text)) => {
                        let context = &mut *self.context;
                        let value = computed::default_expression(context, definition, text)?;
                        InsertValue::Expr(value)
                    }
                    (ast::Expression::Default(None), _) => InsertValue::Default,
                    (value, _) => InsertValue::Expr(self.bind_for_column(value, target, *column)?),
                });
            }
            bound.push(values);
        }
        Ok(bound)
    }

    fn on_duplicate(
        &mut self,
        insert: &'q ast::Insert,
        target: &Arc<TableEntry>,
        alias: &str,
        subqueries: &mut InsertSubqueries,
    ) -> Result<Vec<(usize, Expr)>> {
        if insert.on_duplicate.is_empty() {
            return Ok(Vec::new());
        }
        self.in_target_block(target, alias, |binder| {
            binder.block().clause = Clause::OnDuplicate;
            binder.block().inserted_row = Some(target.definition().columns.len());
            let mut assignments = Vec::with_capacity(insert.on_duplicate.len());
            let mut ends = Vec::with_capacity(insert.on_duplicate.len());
            for assignment in &insert.on_duplicate {
                let position = {
                    let clause = Clause::OnDuplicate;
                    binder.target_column(target, alias, &assignment.column, clause)?
                };
                let is_generated = target.definition().columns[position].is_generated();
                let value = match &assignment.value {
                    // It stays, until it is computed.
                    _ if is_generated => binder.bind_assigned(&assignment.column)?,
                    ast::Expression::Default(None) => {
                        let column = binder.bind_assigned(&assignment.column)?;
                        binder.default_of(&column, &assignment.column)?
                    }
                    value => binder.bind_for_column(value, target, position)?,
                };
                assignments.push((position, value));
                ends.push(binder.block().applies.len());
            }
            let first = 2 * target.definition().columns.len() + binder.source.len();
            let values = assignments.iter_mut().map(|(_, value)| value);
            let mut applies = binder.take_subqueries(first, values)?;
            if !applies.is_empty() {
                let mut lists: Vec<Vec<Apply>> =
                    ends.iter().rev().skip(1).map(|end| applies.split_off(*end)).collect();
                lists.push(applies);
                lists.reverse();
                subqueries.on_duplicate = lists;
            }
            Ok(assignments)
        })
    }

    /// What the rows of an INSERT compute, and which of their values are not taken.
    fn computed_of_insert(
        &mut self,
        insert: &ast::Insert,
        table: &engine_api::TableDefinition,
        columns: &[usize],
        on_duplicate: &[(usize, Expr)],
        source: &InsertRows,
    ) -> Result<Option<Box<Computed>>> {
        let mut made = computed::computed(self.context, table)?;
        if let Some(made) = &mut made {
            if let InsertRows::Query(_) = source {
                made.refused = computed::refused_columns(table, columns);
            }
            let given = on_duplicate.iter().zip(&insert.on_duplicate);
            let refused = given.filter_map(|((column, _), assignment)| {
                computed::refused(table, *column, &assignment.value)
            });
            made.refused_on_duplicate = refused.collect();
        }
        Ok(made)
    }
}
