//! USING, NATURAL, and joins inside of outer joins.

use super::set::empty_select;
use super::table::Source;
use super::*;
use crate::optimize::{self, BlockParts};
use crate::physical::{QueryPlan, ResultColumn, TableSource};
use expr::CompareOperator;

/// The names of columns that an unqualified name or `*` finds.
pub(super) fn visible_names(tables: &[NamedTable]) -> Vec<&str> {
    let names = tables.iter().flat_map(|table| {
        let visible = (0..table.width()).filter(|offset| !table.hidden.contains(offset));
        visible.map(|offset| table.name(offset))
    });
    names.collect()
}

impl Block {
    /// The columns of some of its tables that `*` gives, in that order.
    pub(super) fn shown(&self, tables: std::ops::Range<usize>) -> Vec<Place> {
        let mut places = Vec::new();
        let mut number = tables.start;
        while number < tables.end {
            if let Some((run, order)) = self.orders.iter().find(|(run, _)| run.start == number) {
                places.extend_from_slice(order);
                number = run.end;
                continue;
            }
            let table = &self.tables[number];
            let visible = (0..table.width()).filter(|offset| !table.hidden.contains(offset));
            places.extend(visible.map(|offset| (number, offset)));
            number += 1;
        }
        places
    }
}

impl Binder<'_, '_, '_> {
    /// The equalities of USING; the merged columns of the inner side are hidden.
    pub(super) fn bind_using(
        &mut self,
        names: &[String],
        first: usize,
        right: usize,
        right_outer: bool,
    ) -> Result<Vec<Expr>> {
        let tables = self.block().tables.len();
        let mut sides = [self.block().shown(first..right), self.block().shown(right..tables)];
        if right_outer {
            sides.reverse();
        }
        let mut conjuncts = Vec::with_capacity(names.len());
        let mut common = Vec::with_capacity(2 * names.len());
        for name in names {
            let left_place = self.find_using(name, first..right)?;
            let right_place = self.find_using(name, right..tables)?;
            let (left, right) = (self.place(left_place), self.place(right_place));
            conjuncts.push(self.builder().compare(CompareOperator::Equal, left, right)?);
            let (table, offset) = if right_outer { left_place } else { right_place };
            self.block().tables[table].hidden.push(offset);
            common.extend([left_place, right_place]);
        }
        let is_common = |place: &Place| common.contains(place);
        let mut order = sides[0].clone();
        order.retain(is_common);
        order.extend(sides.into_iter().flatten().filter(|place| !is_common(place)));
        let orders = &mut self.block().orders;
        orders.retain(|(run, _)| run.start < first);
        orders.push((first..tables, order));
        Ok(conjuncts)
    }

    /// The column at a place.
    fn place(&mut self, (table, offset): Place) -> Expr {
        let builder = self.builder();
        let table = &self.block().tables[table];
        let column = table.column(offset);
        builder.column(table.position(offset), column.result, column.printed)
    }

    fn find_using(&mut self, name: &str, tables: std::ops::Range<usize>) -> Result<Place> {
        let mut found = None;
        let Some(block) = self.blocks.last() else { return Err(unsupported("USING")) };
        for number in tables {
            let table = &block.tables[number];
            let mut next = 0;
            while let Some(offset) = table.find(name, next) {
                next = offset + 1;
                if table.hidden.contains(&offset) {
                    continue;
                }
                if found.is_some() {
                    let clause = Clause::From.name();
                    return Err(SqlError::new(&codes::NON_UNIQ_ERROR, &[&name, &clause]));
                }
                self.check_readable(table, offset)?;
                if table.position(offset) == super::merge::NO_POSITION {
                    return Err(unsupported("a column of this view in USING"));
                }
                found = Some((number, offset));
            }
        }
        found.ok_or_else(|| SqlError::new(&codes::BAD_FIELD_ERROR, &[&name, &Clause::From.name()]))
    }

    /// A join inside of an outer join as one source that gives the columns of all its tables; with
    /// it the conditions that read more than these: they belong to ON of the join around it, which
    /// asks the same of a pair of rows.
    pub(super) fn join_as_derived(
        &mut self,
        sources: Vec<Source>,
        conjuncts: Vec<Expr>,
    ) -> Result<(Source, Vec<Expr>)> {
        let first = sources.first().map_or(0, |source| source.first);
        let width: usize = sources.iter().map(|source| source.width).sum();
        let reads_more = |conjunct: &Expr| {
            let mut outside = false;
            conjunct.for_each_column(&mut |position| {
                outside |= !(first..first + width).contains(&position);
            });
            outside
        };
        let (above, conjuncts) = conjuncts.into_iter().partition::<Vec<_>, _>(reads_more);
        let mut outside = false;
        let mut inward = |expr: &mut Expr| {
            expr.map_columns(&mut |position| {
                outside |= !(first..first + width).contains(&position);
                position.wrapping_sub(first)
            });
        };
        let (mut sources, mut conjuncts) = (sources, conjuncts);
        conjuncts.iter_mut().for_each(&mut inward);
        for source in &mut sources {
            source.left_join.iter_mut().flatten().for_each(&mut inward);
            source.first -= first;
        }
        if outside {
            return Err(unsupported(
                "a subquery or outer column in ON of an outer join in another",
            ));
        }
        let alias = sources.iter().map(|s| s.alias.as_str()).collect::<Vec<_>>().join(",");
        let (projection, columns) = self.columns_of_run(first, width);
        let mut plan = empty_select(projection, columns);
        plan.frame_columns = width;
        let plan = {
            let parts = BlockParts { sources, conjuncts, ..BlockParts::default() };
            optimize::plan_block(self.context, plan, parts)?
        };
        let source = Source {
            table: TableSource::Derived(Box::new(QueryPlan::Select(Box::new(plan)))),
            alias,
            first,
            width,
            left_join: None,
            straight: false,
            hints: Vec::new(),
            unplanned: None,
            branches: Vec::new(),
        };
        Ok((source, above))
    }

    /// The columns of the tables in a run of positions, over a frame of just these.
    fn columns_of_run(&mut self, first: usize, width: usize) -> (Vec<Expr>, Vec<ResultColumn>) {
        let builder = self.builder();
        let mut projection = Vec::with_capacity(width);
        let mut columns = Vec::with_capacity(width);
        let block = self.block();
        for table in block.tables.iter().chain(&block.merged_tables) {
            let merged = matches!(table.columns, ColumnList::Merged(_));
            if merged || !(first..first + width).contains(&table.first) {
                continue;
            }
            // Of a view that became its table all of the table's columns have their places.
            let whole;
            let table = match &table.columns {
                ColumnList::Mapped(mapped) => {
                    let columns = ColumnList::Base(mapped.entry.clone());
                    let (alias, schema) = (table.alias.clone(), table.schema.clone());
                    whole = NamedTable::new(alias, schema, table.first, columns);
                    &whole
                }
                _ => table,
            };
            for offset in 0..table.width() {
                let column = table.column(offset);
                let position = table.first + offset - first;
                projection.push(builder.column(position, column.result, column.printed));
                columns.push(ResultColumn {
                    name: column.name,
                    org_name: column.org_name,
                    table: table.alias.clone(),
                    org_table: column.org_table,
                    schema: column.schema,
                    result: column.result,
                    flags: column.flags,
                });
            }
        }
        (projection, columns)
    }
}
