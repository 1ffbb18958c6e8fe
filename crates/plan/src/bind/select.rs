//! One SELECT: clauses in the order in which they see each other, then positions.

use super::from::From;
use super::grouping::Grouping;
use super::items::item_name;
use super::order::{Ordered, same};
use super::query::{Tail, lock_of};
use super::semijoin::FormsRequest;
use super::set::empty_select;
use super::window::{self, WINDOW};
use super::*;
use crate::optimize::merge::Unplanned;
use crate::optimize::{self, BlockParts, WantedOrder};
use crate::physical::{QueryPlan, ResultColumn, SelectPlan, SortKey};
use expr::ExprKind;

/// What the clauses of a block came to, over virtual positions.
pub(super) struct Draft {
    pub from: From,
    pub conjuncts: Vec<Expr>,
    pub plan: SelectPlan,
    /// GROUP BY values; none without grouping.
    pub keys: Option<Vec<Expr>>,
    /// WITH ROLLUP: for each key, DESC.
    pub rollup: Option<Vec<bool>>,
    /// ORDER BY as values over the plain frame, where all of it can be said so.
    pub wanted: Option<WantedOrder>,
}

impl<'q> Binder<'_, '_, 'q> {
    pub(super) fn bind_select(
        &mut self,
        select: &'q ast::Select,
        tail: Tail<'q>,
        outer: &mut Vec<usize>,
        request: Option<FormsRequest>,
    ) -> Result<SelectPlan> {
        self.push_block()?;
        let depth = self.blocks.len();
        self.named_windows.push((depth, &select.windows));
        let draft = self.draft(select, tail);
        self.named_windows.pop();
        let block = self.pop_block();
        let draft = draft?;
        let forms = match request {
            Some(request) if block.aggregates.is_empty() => {
                self.make_forms(&request, &block, &draft, tail.limit)?
            }
            _ => None,
        };
        let plan = self.finish_block(block, draft, outer);
        self.forms = forms;
        plan
    }

    /// A query of one row with the values of expressions.
    pub(crate) fn bind_row_query(&mut self, row: &'q [ast::Expression]) -> Result<QueryPlan> {
        let plan = self.bind_row(row, &mut Vec::new())?;
        Ok(QueryPlan::Select(Box::new(plan)))
    }

    /// An expression in the block being bound.
    pub(crate) fn bind_value(&mut self, expression: &'q ast::Expression) -> Result<Expr> {
        self.bind_scalar(expression)
    }

    /// A row of VALUES as a block without tables.
    pub(super) fn bind_row(
        &mut self,
        row: &'q [ast::Expression],
        outer: &mut Vec<usize>,
    ) -> Result<SelectPlan> {
        self.push_block()?;
        let values = row.iter().map(|value| self.bind_scalar(value)).collect::<Result<Vec<_>>>();
        let block = self.pop_block();
        let values = values?;
        let named = row.iter().zip(&values);
        let name = |expression: &ast::Expression| item_name(expression, &expression.to_string());
        let columns = named.map(|(item, value)| expression_column(name(item), value)).collect();
        let draft = Draft {
            from: From::default(),
            conjuncts: Vec::new(),
            plan: empty_select(values, columns),
            keys: None,
            rollup: None,
            wanted: None,
        };
        self.finish_block(block, draft, outer)
    }

    fn draft(&mut self, select: &'q ast::Select, tail: Tail<'q>) -> Result<Draft> {
        if select.into.is_some() {
            return Err(unsupported("SELECT ... INTO"));
        }
        if select.procedure.is_some() {
            return Err(unsupported("PROCEDURE"));
        }
        self.check_window_names(select)?;
        let mut from = self.bind_from(&select.from)?;
        self.block().clause = Clause::Select;
        let outside = self.make_keys_nullable(select.rollup, &[]);
        let (items, columns) = self.bind_items(&select.items)?;
        if select.rollup {
            self.restore_nullable(&outside);
        }
        let mut conjuncts = std::mem::take(&mut from.conjuncts);
        if let Some(filter) = &select.filter {
            let filter = self.bind_conjuncts(filter, Clause::Where)?;
            let filter: Vec<Expr> = filter.into_iter().map(Expr::with_kept_constants).collect();
            self.note_semijoins(&mut from, &filter)?;
            filter.into_iter().for_each(|f| optimize::conjuncts::flatten(f, &mut conjuncts));
        }
        self.make_keys_nullable(select.rollup, &outside);
        let mut keys = self.bind_group_by(&select.group_by, &items)?;
        let having = match &select.having {
            Some(having) => {
                let selected = items.iter().chain(&keys).filter_map(|value| match value.kind {
                    ExprKind::Column { position, .. } => Some(position),
                    _ => None,
                });
                self.block().having = selected.collect();
                self.block().clause = Clause::Having;
                Some(self.bind_scalar(having)?)
            }
            None => None,
        };
        let mut plan = empty_select(items, columns);
        plan.having = having;
        set_distinct(&mut plan, select.options.distinct);
        plan.calculate_found_rows = select.options.calculate_found_rows;
        let implied = self.implied_order(select, tail, &keys);
        let mut wanted = self.bind_order_by(tail.order_by, &mut plan, implied)?;
        if !self.block().windows.is_empty() {
            // Their order is what the rows have in the end.
            wanted = None;
            if tail.order_by.is_empty() {
                plan.order_by.clear();
                plan.projection.truncate(plan.columns.len());
            }
        }
        let is_one_row = select.group_by.is_empty() && !self.block().aggregates.is_empty();
        if is_one_row && self.block().windows.is_empty() {
            // One row has no order, and what it would be ordered by is not computed.
            wanted = None;
            plan.order_by.clear();
            plan.projection.truncate(plan.columns.len());
        }
        plan.limit = self.bind_limit(tail.limit)?;
        (plan.lock, plan.lock_wait) = lock_of(tail.locking);
        let grouped = !select.group_by.is_empty() || !self.block().aggregates.is_empty();
        if !grouped {
            keys.clear();
        }
        if select.options.straight_join {
            from.sources.iter_mut().for_each(|source| source.straight = true);
        }
        let descending = || select.group_by.iter().map(|item| item.descending).collect();
        let rollup = (select.rollup && grouped).then(descending);
        Ok(Draft { from, conjuncts, plan, keys: grouped.then_some(keys), rollup, wanted })
    }

    /// Behind WITH ROLLUP every key can be NULL. `known` is what the tables were before, empty at
    /// first; the result is that.
    fn make_keys_nullable(&mut self, rollup: bool, known: &[bool]) -> Vec<bool> {
        if !rollup {
            return Vec::new();
        }
        let tables = &mut self.block().tables;
        let before = tables.iter().map(|table| table.nullable).collect();
        tables.iter_mut().for_each(|table| table.nullable = true);
        if known.is_empty() { before } else { known.to_vec() }
    }

    fn restore_nullable(&mut self, known: &[bool]) {
        for (table, nullable) in self.block().tables.iter_mut().zip(known) {
            table.nullable = *nullable;
        }
    }

    /// MariaDB gives groups in the order of their keys when no other is asked for.
    fn implied_order(
        &self,
        select: &ast::Select,
        tail: Tail<'q>,
        keys: &[Expr],
    ) -> Vec<(Expr, bool)> {
        let is_other = !tail.order_by.is_empty() || select.rollup;
        if is_other || select.group_by.len() != keys.len() {
            return Vec::new();
        }
        let descending = select.group_by.iter().map(|item| item.descending);
        keys.iter().cloned().zip(descending).collect()
    }

    fn bind_group_by(&mut self, items: &'q [ast::OrderItem], values: &[Expr]) -> Result<Vec<Expr>> {
        let mut keys: Vec<Expr> = Vec::with_capacity(items.len());
        for item in items {
            let key = match self.bind_order_item(&item.expression, Clause::GroupBy, values)? {
                Ordered::Item(position) => values[position].clone(),
                Ordered::Value(value) => value,
                Ordered::Nothing => self.builder().boolean(true),
            };
            if self.block().is_of_groups(&key) {
                // A position, or a parameter that is one, is told as the item's name.
                let named = match self.position(&item.expression) {
                    Some(position) => self.block().aliases.get(position as usize - 1),
                    None => None,
                };
                let name = named.map_or_else(|| item.expression.to_string(), |it| it.name.clone());
                return Err(SqlError::new(&codes::WRONG_GROUP_FIELD, &[&name]));
            }
            keys.push(key);
        }
        Ok(keys)
    }

    /// ORDER BY: sort keys as positions of the projection, to which what is not selected is
    /// added. The result is the order as values, if no key is an aggregate.
    fn bind_order_by(
        &mut self,
        items: &'q [ast::OrderItem],
        plan: &mut SelectPlan,
        implied: Vec<(Expr, bool)>,
    ) -> Result<Option<WantedOrder>> {
        let shown = plan.columns.len();
        let mut wanted = Vec::new();
        for item in items {
            let ordered =
                self.bind_order_item(&item.expression, Clause::OrderBy, &plan.projection[..shown])?;
            let value = match ordered {
                Ordered::Nothing => continue,
                Ordered::Item(position) => plan.projection[position].clone(),
                Ordered::Value(value) => value,
            };
            wanted.push((value, item.descending));
        }
        if items.is_empty() {
            wanted = implied;
        }
        for (value, descending) in &wanted {
            let found = plan.projection.iter().position(|known| same(known, value));
            let position = found.unwrap_or_else(|| {
                plan.projection.push(value.clone());
                plan.projection.len() - 1
            });
            if !plan.order_by.iter().any(|key| key.position == position) {
                plan.order_by.push(SortKey { position, descending: *descending });
            }
        }
        let block = self.block();
        let has_aggregate = wanted.iter().any(|(value, _)| block.is_of_groups(value));
        Ok((!wanted.is_empty() && !has_aggregate).then_some(WantedOrder { keys: wanted }))
    }

    /// Brings a drafted block to the frame's positions and chooses how its tables are read.
    pub(super) fn finish_block(
        &mut self,
        block: Block,
        draft: Draft,
        outer: &mut Vec<usize>,
    ) -> Result<SelectPlan> {
        let Draft { mut from, mut conjuncts, mut plan, keys, rollup, wanted } = draft;
        let mut block = block;
        let mut windows = std::mem::take(&mut block.windows);
        if !windows.is_empty() && block.applies.iter().any(reads_windows) {
            return Err(unsupported("a window function on the left side of a subquery"));
        }
        let applies = block.applies.len();
        let full = self.has_mode(SqlMode::ONLY_FULL_GROUP_BY);
        let mut grouping = keys.map(|keys| Grouping::new(self.builder(), keys, &mut block, full));
        if let Some(grouping) = &mut grouping {
            grouping.map_block(&mut plan, &mut windows)?;
        }
        let outer_columns: Vec<usize> = block.outer.iter().map(|p| share(outer, *p)).collect();
        plan.outer_columns = outer.len();
        let first_apply = plan.outer_columns + block.columns;
        plan.frame_columns = first_apply + applies;
        let shift = plan.outer_columns;
        let mut position = |virtual_position: usize| match virtual_position {
            p if p >= WINDOW => p,
            p if p >= APPLY => first_apply + (p - APPLY),
            p if p >= OUTER => outer_columns[p - OUTER],
            p => shift + p,
        };
        if grouping.is_none() {
            window::each_value(&mut plan, &mut windows, &mut |v| v.map_columns(&mut position));
        }
        if !windows.is_empty() {
            window::attach(&self.builder(), &mut plan, windows);
        }
        conjuncts.iter_mut().for_each(|conjunct| conjunct.map_columns(&mut position));
        for source in &mut from.sources {
            source.first += shift;
            source.left_join.iter_mut().flatten().for_each(|on| on.map_columns(&mut position));
        }
        for apply in &mut block.applies {
            apply.position = position(apply.position);
            apply.map_reads(&mut position);
        }
        from.semijoins.iter_mut().for_each(|it| it.map(shift, &mut position));
        let mut wanted = wanted;
        let keys = wanted.iter_mut().flat_map(|wanted| &mut wanted.keys);
        keys.for_each(|(key, _)| key.map_columns(&mut position));
        plan.aggregate = grouping.map(|grouping| grouping.finish(&mut position));
        if let (Some(aggregate), Some(descending)) = (&mut plan.aggregate, rollup) {
            aggregate.roll_up(&self.builder(), descending);
        }
        let parts = BlockParts {
            sources: from.sources,
            conjuncts,
            applies: block.applies,
            semijoins: from.semijoins,
            wanted,
        };
        self.unplanned = (self.depth > 0)
            .then(|| Arc::new(Unplanned { plan: plan.clone(), parts: parts.clone() }));
        optimize::plan_block(self.context, plan, parts)
    }

    /// A block over one table whose rows are changed. `values` are further expressions over the
    /// same frame; they come back with the frame's positions.
    pub(super) fn finish_change(
        &mut self,
        block: Block,
        from: From,
        conjuncts: Vec<Expr>,
        plan: SelectPlan,
        values: &mut [Expr],
    ) -> Result<SelectPlan> {
        if !block.aggregates.is_empty() {
            return Err(SqlError::new(&codes::INVALID_GROUP_FUNC_USE, &[]));
        }
        let first_apply = block.columns;
        for value in values.iter_mut() {
            value.map_columns(&mut |p| if p >= APPLY { first_apply + (p - APPLY) } else { p });
        }
        let wanted = wanted_of(&plan);
        let draft = Draft { from, conjuncts, plan, keys: None, rollup: None, wanted };
        self.finish_block(block, draft, &mut Vec::new())
    }

    /// ORDER BY of UPDATE and DELETE.
    pub(super) fn bind_change_order(
        &mut self,
        items: &'q [ast::OrderItem],
        plan: &mut SelectPlan,
    ) -> Result<()> {
        self.bind_order_by(items, plan, Vec::new()).map(|_| ())
    }
}

impl Block {
    /// What the client is told of a value over the block's tables.
    pub(super) fn result_column(&self, name: String, value: &Expr) -> ResultColumn {
        if let ExprKind::Column { position, .. } = &value.kind
            && let Some((table, column)) = self.column_at(*position)
        {
            return ResultColumn {
                name,
                org_name: column.org_name,
                table: table.alias.clone(),
                org_table: column.org_table,
                schema: column.schema,
                result: value.result,
                flags: column.flags,
            };
        }
        expression_column(name, value)
    }
}

fn reads_windows(apply: &Apply) -> bool {
    let mut found = false;
    apply.for_each_read(&mut |position| found |= position >= WINDOW);
    found
}

fn wanted_of(plan: &SelectPlan) -> Option<WantedOrder> {
    let keys = plan.order_by.iter();
    let keys: Vec<(Expr, bool)> =
        keys.map(|key| (plan.projection[key.position].clone(), key.descending)).collect();
    (!keys.is_empty()).then_some(WantedOrder { keys })
}

/// The position of the enclosing block's `position` among those that a query reads.
fn share(outer: &mut Vec<usize>, position: usize) -> usize {
    outer.iter().position(|known| *known == position).unwrap_or_else(|| {
        outer.push(position);
        outer.len() - 1
    })
}

fn expression_column(name: String, value: &Expr) -> ResultColumn {
    ResultColumn {
        name,
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        schema: String::new(),
        result: value.result,
        flags: 0,
    }
}

fn set_distinct(plan: &mut SelectPlan, distinct: bool) {
    plan.distinct = distinct;
    if distinct {
        plan.columns.iter_mut().for_each(describe_as_kept);
    }
}

/// Describes a column whose rows are put into a table to find those that are equal: there a
/// TIMESTAMP is unsigned, and a YEAR has its zeros.
pub(super) fn describe_as_kept(column: &mut ResultColumn) {
    column.flags |= match column.result.column_type.kind {
        types::TypeKind::Timestamp => expr::flags::UNSIGNED,
        types::TypeKind::Year => expr::flags::ZEROFILL,
        _ => 0,
    };
}
