//! FROM: tables, derived tables, joins.
//!
//! Inner joins are flattened into a list of sources and a list of conditions. The right side of
//! a left join is one source; where it is a join itself it becomes a derived table whose
//! columns are those of its tables one after the other, so that positions need no change.

use super::join_tree::visible_names;
use super::table::Source;
use super::*;
use crate::physical::{LimitPlan, QueryPlan, ResultColumn, TableSource};
use catalog::{Privilege, TableRef};
use expr::ExprKind;
use types::{CollationId, ColumnType, TypeKind};

/// Most tables of a block: their sets are 64 bit masks.
const TABLES_MAX: usize = 61;

/// FROM with its joins taken apart.
#[derive(Clone, Default)]
pub(crate) struct From {
    /// What is read.
    pub sources: Vec<Source>,
    /// Conditions of inner joins, conjunct by conjunct.
    pub conjuncts: Vec<Expr>,
    /// Subqueries of WHERE that may become joins.
    pub semijoins: Vec<super::semijoin::SemiJoin>,
}

impl<'q> Binder<'_, '_, 'q> {
    /// Binds FROM into the block being bound.
    pub(super) fn bind_from(&mut self, references: &'q [ast::TableReference]) -> Result<From> {
        let mut from = From::default();
        for reference in references {
            self.bind_reference(reference, &mut from)?;
        }
        if from.sources.len() > TABLES_MAX {
            return Err(SqlError::new(&codes::TOO_MANY_TABLES, &[&TABLES_MAX]));
        }
        self.check_unique_aliases()?;
        Ok(from)
    }

    pub(super) fn check_unique_aliases(&mut self) -> Result<()> {
        let tables = &self.block().tables;
        for (position, table) in tables.iter().enumerate() {
            let twice = tables[..position]
                .iter()
                .any(|other| other.alias == table.alias && other.schema == table.schema);
            if twice {
                return Err(SqlError::new(&codes::NONUNIQ_TABLE, &[&table.alias]));
            }
        }
        Ok(())
    }

    pub(super) fn bind_reference(
        &mut self,
        reference: &'q ast::TableReference,
        from: &mut From,
    ) -> Result<()> {
        match reference {
            ast::TableReference::Table { name, partitions, alias, hints } => {
                let first = self.block().columns;
                self.bind_table(name, alias.as_deref(), hints, from)?;
                if !partitions.is_empty() {
                    let named = self.block().tables.last_mut();
                    let table = named.and_then(|table| match &table.columns {
                        ColumnList::Base(entry) => {
                            table.partitions.clone_from(partitions);
                            Some(entry.clone())
                        }
                        _ => None,
                    });
                    let none = || SqlError::new(&codes::PARTITION_CLAUSE_ON_NONPARTITIONED, &[]);
                    let table = table.ok_or_else(none)?;
                    let conditions = self.partition_conditions(&table, partitions, first)?;
                    from.conjuncts.extend(conditions);
                }
                Ok(())
            }
            ast::TableReference::Derived { query, alias } => {
                let mut plan = self.bind_derived(query)?;
                drop_order(&mut plan);
                self.add_derived(plan, alias, from);
                Ok(())
            }
            ast::TableReference::Nested(inner) => {
                inner.iter().try_for_each(|reference| self.bind_reference(reference, from))
            }
            ast::TableReference::Join { kind, left, right, condition } => {
                self.bind_join(*kind, left, right, condition, from)
            }
        }
    }

    fn bind_table(
        &mut self,
        name: &'q ast::TableName,
        alias: Option<&str>,
        hints: &[ast::IndexHint],
        from: &mut From,
    ) -> Result<()> {
        if name.schema.is_none() && self.bind_recursive_reference(&name.name, alias, from)? {
            return Ok(());
        }
        if name.schema.is_none()
            && let Some(plan) = self.bind_common_table(&name.name)?
        {
            self.add_derived(plan, alias.unwrap_or(&name.name), from);
            return Ok(());
        }
        let alias = alias.unwrap_or(&name.name).to_string();
        let opened = self.open(name, &alias, Privilege::Select)?;
        let guard = self.guard.take();
        let (schema, columns, table) = match opened {
            TableRef::Base(entry) => {
                let definition = entry.definition();
                check_hints(definition, hints)?;
                let schema = definition.schema.clone();
                let handle = EntryHandle(entry);
                (schema, ColumnList::Base(handle.clone()), TableSource::Base(handle))
            }
            TableRef::View(entry) => {
                self.bind_view(&entry, &alias, from)?;
                self.guard_last(guard);
                return Ok(());
            }
            TableRef::Virtual(table) => {
                let source = TableSource::Virtual { table, schema: None, name: None };
                let schema = table.schema.to_string();
                (schema, ColumnList::Virtual(table), source)
            }
        };
        let hints = hints.to_vec();
        self.add_source(table, alias, schema, columns, hints, from);
        self.guard_last(guard);
        Ok(())
    }

    /// The table added last is guarded.
    pub(super) fn guard_last(&mut self, guard: Option<Arc<super::guard::Guard>>) {
        if guard.is_some()
            && let Some(table) = self.block().tables.last_mut()
        {
            table.guard = guard;
        }
    }

    /// Adds a table to the block and to FROM.
    pub(super) fn add_source(
        &mut self,
        table: TableSource,
        alias: String,
        schema: String,
        columns: ColumnList,
        hints: Vec<ast::IndexHint>,
        from: &mut From,
    ) {
        let block = self.block();
        let first = block.columns;
        let named = NamedTable::new(alias.clone(), schema, first, columns);
        let width = named.source_width();
        block.columns += width;
        block.tables.push(named);
        from.sources.push(Source {
            table,
            alias,
            first,
            width,
            left_join: None,
            straight: false,
            hints,
            unplanned: None,
            branches: Vec::new(),
        });
    }

    pub(super) fn add_derived(&mut self, plan: QueryPlan, alias: &str, from: &mut From) {
        let mut columns = plan.columns().to_vec();
        for (number, column) in columns.iter_mut().enumerate() {
            column.result.is_computed = match &plan {
                QueryPlan::Select(select) => !select.projection[number].is_constant(),
                QueryPlan::Set(_) => true,
            };
        }
        let unplanned = self.unplanned.take();
        let is_merged = unplanned.as_ref().is_some_and(|unplanned| unplanned.is_plain());
        for column in &mut columns {
            column.result = match &plan {
                QueryPlan::Select(_) if is_merged => merged_type(column.result),
                QueryPlan::Select(_) => kept_type(column.result),
                QueryPlan::Set(_) => kept_type(column.result.with_room_for_sign()),
            };
        }
        let branches = std::mem::take(&mut self.branches);
        self.add_listed(TableSource::Derived(Box::new(plan)), &columns, alias, from);
        if let Some(source) = from.sources.last_mut() {
            source.unplanned = unplanned;
            source.branches = branches;
        }
    }

    /// Adds a table without a definition to the block and to FROM.
    pub(super) fn add_listed(
        &mut self,
        source: TableSource,
        columns: &[ResultColumn],
        alias: &str,
        from: &mut From,
    ) {
        let columns = columns
            .iter()
            .map(|column| NamedColumn {
                name: column.name.clone(),
                result: column.result,
                printed: format!("`{alias}`.`{}`", column.name).into(),
                org_name: column.org_name.clone(),
                org_table: column.org_table.clone(),
                schema: column.schema.clone(),
                flags: column.flags,
            })
            .collect();
        let columns = ColumnList::Listed(columns);
        self.add_source(source, alias.to_string(), String::new(), columns, Vec::new(), from);
    }

    /// A derived table sees the blocks outside of the one it stands in, which are none of its
    /// business here: correlated derived tables (LATERAL) are not in the dialect.
    fn bind_derived(&mut self, query: &'q ast::Query) -> Result<QueryPlan> {
        let outside = std::mem::take(&mut self.blocks);
        let plan = self.bind_query(query);
        self.blocks = outside;
        let plan = plan?;
        let columns = plan.columns();
        for (position, column) in columns.iter().enumerate() {
            let twice = columns[..position]
                .iter()
                .any(|other| other.name.eq_ignore_ascii_case(&column.name));
            if twice {
                return Err(SqlError::new(&codes::DUP_FIELDNAME, &[&column.name]));
            }
        }
        Ok(plan)
    }

    fn bind_join(
        &mut self,
        kind: ast::JoinKind,
        left: &'q ast::TableReference,
        right: &'q ast::TableReference,
        condition: &'q ast::JoinCondition,
        from: &mut From,
    ) -> Result<()> {
        use ast::JoinKind as J;
        let (first_table, first_source) = (self.block().tables.len(), from.sources.len());
        let first_conjunct = from.conjuncts.len();
        self.bind_reference(left, from)?;
        let (right_table, right_source) = (self.block().tables.len(), from.sources.len());
        let right_conjunct = from.conjuncts.len();
        self.bind_reference(right, from)?;
        let natural = matches!(kind, J::NaturalInner | J::NaturalLeft | J::NaturalRight);
        let left_outer = matches!(kind, J::Left | J::NaturalLeft);
        let right_outer = matches!(kind, J::Right | J::NaturalRight);
        if left_outer {
            let end = self.block().tables.len();
            self.make_computed(right_table..end);
        } else if right_outer {
            self.make_computed(first_table..right_table);
        }
        let on = match condition {
            ast::JoinCondition::On(on) => {
                let outside = self.hide_tables_before(first_table);
                let conjuncts = self.bind_conjuncts(on, Clause::On);
                self.show_tables_before(outside);
                conjuncts?.into_iter().map(Expr::with_kept_constants).collect()
            }
            ast::JoinCondition::Using(names) => {
                self.bind_using(names, first_table, right_table, right_outer)?
            }
            ast::JoinCondition::None if natural => {
                let names = self.common_names(first_table, right_table);
                self.bind_using(&names, first_table, right_table, right_outer)?
            }
            ast::JoinCondition::None => Vec::new(),
        };
        if left_outer {
            self.make_outer(right_source..from.sources.len(), right_conjunct, right_table, on, from)
        } else if right_outer {
            let inner = first_source..right_source;
            let conjuncts: Vec<Expr> =
                from.conjuncts.drain(first_conjunct..right_conjunct).collect();
            let kept = from.conjuncts.split_off(first_conjunct);
            from.conjuncts.extend(conjuncts);
            self.make_outer(inner, first_conjunct, first_table, on, from)?;
            from.conjuncts.extend(kept);
            Ok(())
        } else {
            from.conjuncts.extend(on);
            if kind == J::Straight {
                from.sources[right_source..].iter_mut().for_each(|source| source.straight = true);
            }
            Ok(())
        }
    }

    /// Literals of derived tables on the inner side of an outer join are no constants: they may be
    /// NULL.
    fn make_computed(&mut self, tables: std::ops::Range<usize>) {
        for table in &mut self.block().tables[tables] {
            if let ColumnList::Listed(columns) = &mut table.columns {
                columns.iter_mut().for_each(|column| column.result.is_computed = true);
            }
        }
    }

    /// Makes a run of sources (with the conjuncts from `conjunct` on) the inner side of an outer
    /// join with the condition `on`.
    fn make_outer(
        &mut self,
        inner: std::ops::Range<usize>,
        conjunct: usize,
        table: usize,
        mut on: Vec<Expr>,
        from: &mut From,
    ) -> Result<()> {
        let inner_columns = from.sources[inner.clone()].iter().map(|s| s.width).sum::<usize>();
        let first = from.sources[inner.start].first;
        let block = self.block();
        for table in block.tables[table..].iter_mut().chain(&mut block.merged_tables) {
            if (first..first + inner_columns).contains(&table.first) {
                table.nullable = true;
            }
        }
        if inner.len() > 1 || from.sources[inner.start].left_join.is_some() {
            let conjuncts = from.conjuncts.split_off(conjunct);
            let sources: Vec<Source> = from.sources.splice(inner.clone(), []).collect();
            let (source, above) = self.join_as_derived(sources, conjuncts)?;
            on.extend(above);
            from.sources.insert(inner.start, source);
        } else {
            // The conditions of a view that became its table.
            let own = from.conjuncts.split_off(conjunct);
            on.extend(own);
        }
        on.iter_mut().for_each(|condition| make_nullable(condition, first, inner_columns));
        from.sources[inner.start].left_join = Some(on);
        Ok(())
    }

    /// Binds a condition and takes it apart at its ANDs.
    pub(super) fn bind_conjuncts(
        &mut self,
        condition: &'q ast::Expression,
        clause: Clause,
    ) -> Result<Vec<Expr>> {
        self.block().clause = clause;
        let mut conjuncts = Vec::new();
        self.collect_conjuncts(condition, &mut conjuncts)?;
        Ok(conjuncts)
    }

    fn collect_conjuncts(
        &mut self,
        condition: &'q ast::Expression,
        conjuncts: &mut Vec<Expr>,
    ) -> Result<()> {
        if let ast::Expression::Logical(ast::LogicalOperator::And, operands) = condition {
            return operands.iter().try_for_each(|o| self.collect_conjuncts(o, conjuncts));
        }
        let bound = self.bind_scalar(condition)?;
        let bound = expr::text_as_double(bound);
        crate::optimize::conjuncts::flatten(bound, conjuncts);
        Ok(())
    }

    /// ON sees only the tables of its join.
    fn hide_tables_before(&mut self, first: usize) -> Vec<NamedTable> {
        let tables = &mut self.block().tables;
        let rest = tables.split_off(first);
        std::mem::replace(tables, rest)
    }

    fn show_tables_before(&mut self, mut outside: Vec<NamedTable>) {
        let tables = &mut self.block().tables;
        outside.append(tables);
        *tables = outside;
    }

    /// Names of columns that both sides of a NATURAL join have.
    fn common_names(&mut self, first: usize, right: usize) -> Vec<String> {
        let block = self.block();
        let left = visible_names(&block.tables[first..right]);
        let right = visible_names(&block.tables[right..]);
        let is_common = |name: &&str| right.iter().any(|other| other.eq_ignore_ascii_case(name));
        left.into_iter().filter(is_common).map(str::to_string).collect()
    }
}

/// The rows of a derived table have no order; only LIMIT makes its ORDER BY count.
fn drop_order(plan: &mut QueryPlan) {
    let unlimited = |limit: &LimitPlan| limit.count.is_none() && limit.offset.is_none();
    match plan {
        QueryPlan::Select(select) if unlimited(&select.limit) => select.order_by.clear(),
        QueryPlan::Set(set) if unlimited(&set.limit) => set.order_by.clear(),
        _ => {}
    }
}

/// The type of a derived table's column whose rows are kept: a column like any other.
pub(super) fn kept_type(result: ResultType) -> ResultType {
    let mut column = derived_type(result.stored_in_column());
    if column.column_type.kind == TypeKind::Null {
        column.column_type = ColumnType::text(TypeKind::Binary, 0, CollationId::BINARY);
    }
    if column.column_type.kind.is_integer() && !column.is_column {
        let column_type = &mut column.column_type;
        let usual = ColumnType::integer(column_type.kind, column_type.unsigned);
        let digits = column_type.length.saturating_sub(u32::from(!column_type.unsigned));
        column_type.precision = usual.precision.max(digits.min(u32::from(u8::MAX)) as u8);
        column.is_column = true;
    }
    column
}

/// The type of a derived table's column that stands for a value in the query around it.
fn merged_type(result: ResultType) -> ResultType {
    let mut column = derived_type(result);
    column.is_column = result.is_column;
    column.is_date_part = result.is_date_part;
    column.is_truth = result.is_truth;
    column.is_hex = result.is_hex;
    // A computed number is as wide as it is said to be.
    if result.is_column { column } else { column.with_digits_of_length() }
}

fn derived_type(result: ResultType) -> ResultType {
    let mut column = ResultType::column(result.column_type, result.nullable);
    column.ascii = result.ascii;
    if result.is_string() {
        column.coercibility = result.coercibility;
    }
    column.is_json = result.is_json;
    column.is_computed = result.is_computed;
    column.is_column = result.is_column || !result.column_type.kind.is_integer();
    column
}

/// The columns of a run of positions can be NULL from here on.
fn make_nullable(condition: &mut Expr, first: usize, count: usize) {
    if let ExprKind::Column { position, .. } = &condition.kind
        && (first..first + count).contains(position)
    {
        condition.result.nullable = true;
    }
    condition.for_each_child_mut(&mut |child| make_nullable(child, first, count));
}

/// Error 1176 for a hint that names no index, 1221 for USE beside FORCE.
pub(super) fn check_hints(
    definition: &engine_api::TableDefinition,
    hints: &[ast::IndexHint],
) -> Result<()> {
    for name in hints.iter().flat_map(|hint| &hint.indexes) {
        if !definition.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name)) {
            return Err(SqlError::new(&codes::KEY_DOES_NOT_EXISTS, &[name, &definition.name]));
        }
    }
    let has = |kind| hints.iter().any(|hint| hint.kind == kind);
    if has(ast::IndexHintKind::Use) && has(ast::IndexHintKind::Force) {
        return Err(SqlError::new(&codes::WRONG_USAGE, &[&"USE INDEX", &"FORCE INDEX"]));
    }
    Ok(())
}
