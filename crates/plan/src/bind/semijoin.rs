//! Subqueries of WHERE in other forms: EXISTS and IN, each with NOT.
//!
//! 1. As a *table*: the subquery without the equalities that tie it to the rows around it; its
//!    distinct rows are joined by these equalities (NOT: rows without a partner pass). Each row
//!    around it then matches at most one row, provided that values that are equal to the same
//!    value are equal to each other: integers, strings of one collation, dates of one type.
//! 2. As a *lookup*: IN with its equality inside, asked for every row as EXISTS is.
//! 3. As it stands. Which form is run is decided by cost (`optimize::plan_block`).
//!
//! A conjunct of WHERE counts only when it is true, so NULL may be taken for false: x IN (...)
//! is EXISTS with one more equality. NOT IN is NOT EXISTS only where nothing can be NULL.

use super::from::From;
use super::select::Draft;
use super::set::empty_select;
use super::table::Source;
use super::*;
use crate::physical::{
    Access, ApplyKind, BlockEstimate, LimitPlan, QueryPlan, TableSource, TableStep,
};
use engine_api::{LockMode, ScanDirection};
use expr::{CompareOperator, CompareRule, ExprKind, Test};
use types::Value;

/// Subqueries deeper than this are planned as they stand only.
const FORMS_DEPTH_MAX: usize = 3;
/// Most sources of a block with those that subqueries may become.
const SOURCES_MAX: usize = 60;

/// A subquery that is being bound and for which other forms are wanted.
pub(crate) struct FormsRequest {
    /// What IN compares with the columns, over the block around it; none for EXISTS.
    operands: Vec<Expr>,
}

/// The other forms of a subquery.
#[derive(Clone, Default)]
pub(crate) struct Forms {
    /// Its rows, and for each column what it equals, over the block around it.
    table: Option<(QueryPlan, Vec<Expr>)>,
    /// EXISTS with what it reads of the block around it.
    lookup: Option<(QueryPlan, Vec<usize>)>,
}

/// A conjunct of WHERE that may become a join.
#[derive(Clone, Debug)]
pub(crate) struct SemiJoin {
    /// Position of the subquery.
    pub position: usize,
    /// Rows without a partner pass.
    pub anti: bool,
    /// The subquery's rows as a table, and the equalities that join it.
    pub table: Option<(Source, Vec<Expr>)>,
    /// The first column of that table.
    pub first_column: Option<Expr>,
    /// The subquery as EXISTS.
    pub lookup: Option<Apply>,
}

impl<'q> Binder<'_, '_, 'q> {
    /// Asks for other forms of the subquery that is bound next, if it stands in WHERE.
    pub(super) fn request_forms(&mut self, operands: &[Expr]) {
        let block = self.block();
        let wanted = block.clause == Clause::Where && !block.in_aggregate;
        self.forms = None;
        self.forms_request = (wanted && self.depth <= FORMS_DEPTH_MAX)
            .then(|| FormsRequest { operands: operands.to_vec() });
    }

    /// Keeps the forms of the subquery bound last with its number.
    pub(super) fn keep_forms(&mut self, forms: Option<Forms>) {
        let block = self.block();
        if let Some(forms) = forms {
            let number = block.applies.len() - 1;
            block.forms.push((number, forms));
        }
    }

    /// Makes the forms of a block that has been drafted.
    pub(super) fn make_forms(
        &mut self,
        request: &FormsRequest,
        block: &Block,
        draft: &Draft,
        limit: Option<&ast::Limit>,
    ) -> Result<Option<Forms>> {
        let plain = draft.keys.is_none()
            && block.aggregates.is_empty()
            && block.windows.is_empty()
            && draft.plan.having.is_none()
            && draft.plan.lock == LockMode::None
            && limit.is_none_or(|limit| request.operands.is_empty() && is_one(limit));
        if !plain {
            return Ok(None);
        }
        let table = self.table_form(request, block, draft)?;
        let lookup = self.lookup_form(request, block, draft)?;
        Ok((table.is_some() || lookup.is_some()).then_some(Forms { table, lookup }))
    }

    fn table_form(
        &mut self,
        request: &FormsRequest,
        block: &Block,
        draft: &Draft,
    ) -> Result<Option<(QueryPlan, Vec<Expr>)>> {
        let shown = draft.plan.projection.iter().take(request.operands.len());
        let mut keys: Vec<(Expr, Expr)> =
            request.operands.iter().cloned().zip(shown.cloned()).collect();
        let mut rest = Vec::with_capacity(draft.conjuncts.len());
        for conjunct in &draft.conjuncts {
            if !reads(conjunct).outer {
                rest.push(conjunct.clone());
                continue;
            }
            let Some((mut outer, inner)) = tie(conjunct) else { return Ok(None) };
            outer.map_columns(&mut |p| block.outer.get(p - OUTER).copied().unwrap_or(p));
            keys.push((outer, inner));
        }
        let joinable = |(outer, inner): &(Expr, Expr)| is_joinable(outer, inner);
        let tied = keys.iter().any(|(_, inner)| reads(inner).outer) || reads_outside(block, draft);
        if keys.is_empty() || tied || !keys.iter().all(joinable) {
            return Ok(None);
        }
        let (outer, inner): (Vec<Expr>, Vec<Expr>) = keys.into_iter().unzip();
        let columns = inner.iter().map(|value| block.result_column(String::new(), value)).collect();
        let mut plan = empty_select(inner, columns);
        plan.distinct = true;
        let own = Block::of(block.columns, Vec::new(), block.applies.clone());
        let own_draft = Draft {
            conjuncts: rest,
            plan,
            wanted: None,
            keys: None,
            rollup: None,
            from: draft.from.clone(),
        };
        let plan = self.finish_block(own, own_draft, &mut Vec::new())?;
        Ok((plan.outer_columns == 0).then(|| (QueryPlan::Select(Box::new(plan)), outer)))
    }

    fn lookup_form(
        &mut self,
        request: &FormsRequest,
        block: &Block,
        draft: &Draft,
    ) -> Result<Option<(QueryPlan, Vec<usize>)>> {
        if request.operands.is_empty() {
            return Ok(None);
        }
        let builder = self.builder();
        let mut own = Block::of(block.columns, block.outer.clone(), block.applies.clone());
        let mut conjuncts = draft.conjuncts.clone();
        for (operand, item) in request.operands.iter().zip(&draft.plan.projection) {
            let ExprKind::Column { position, name } = &operand.kind else { return Ok(None) };
            if *position >= APPLY {
                return Ok(None);
            }
            let position = own.outer_position(*position);
            let outer = builder.column(position, operand.result, name.clone());
            // Collations that do not go together are told of the comparison as it is written.
            let equal = builder.compare(CompareOperator::Equal, item.clone(), outer);
            let Ok(equal) = equal else { return Ok(None) };
            conjuncts.push(equal);
        }
        let one = builder.integer(1);
        let columns = vec![block.result_column(String::new(), &one)];
        let mut plan = empty_select(vec![one], columns);
        plan.limit = LimitPlan { count: Some(builder.integer(1)), offset: None };
        let from = draft.from.clone();
        let mut outer = Vec::new();
        let own_draft = Draft { conjuncts, plan, wanted: None, keys: None, rollup: None, from };
        let plan = self.finish_block(own, own_draft, &mut outer)?;
        Ok(Some((QueryPlan::Select(Box::new(plan)), outer)))
    }

    /// Notes which conjuncts are nothing but subqueries that have other forms.
    pub(super) fn note_semijoins(&mut self, from: &mut From, conjuncts: &[Expr]) -> Result<()> {
        if from.sources.is_empty() {
            return Ok(());
        }
        for conjunct in conjuncts {
            let (subquery, negated) = match &conjunct.kind {
                ExprKind::Not(inner) => (&**inner, true),
                _ => (conjunct, false),
            };
            let ExprKind::Column { position, .. } = &subquery.kind else { continue };
            let Some(number) = position.checked_sub(APPLY).filter(|_| *position < AGGREGATE) else {
                continue;
            };
            if from.sources.len() + from.semijoins.len() < SOURCES_MAX {
                let noted = self.semijoin(number, negated, from)?;
                from.semijoins.extend(noted);
            }
        }
        Ok(())
    }

    fn semijoin(&mut self, number: usize, anti: bool, from: &From) -> Result<Option<SemiJoin>> {
        let block = self.block();
        let apply = block.applies[number].clone();
        let known = block.forms.iter().position(|(known, _)| *known == number);
        let known = known.map(|at| block.forms.swap_remove(at).1);
        // NULL on either side makes NOT IN something else than the absence of an equal row.
        let may_be_null = subquery_is_nullable(&apply);
        if anti && may_be_null {
            return Ok(None);
        }
        let whole = || match &apply.kind {
            ApplyKind::In { operand, rules } if apply.outer_positions.is_empty() => {
                let alike = operand.iter().zip(apply.query.columns()).zip(rules);
                let alike = alike.into_iter().all(|((operand, column), rule)| {
                    is_alike(*rule, operand.result, column.result)
                });
                alike.then(|| (distinct(apply.query.clone(), &self.builder()), operand.clone()))
            }
            _ => None,
        };
        let forms = known.unwrap_or_default();
        let reads_subquery = |operand: &Expr| {
            let mut found = false;
            operand.for_each_column(&mut |position| found |= position >= APPLY);
            found
        };
        let table = forms.table.or_else(whole);
        let table = table.filter(|(_, operands)| !operands.iter().any(reads_subquery));
        let lookup = forms.lookup.map(|(query, outer_positions)| Apply {
            position: apply.position,
            kind: ApplyKind::Exists,
            outer_positions,
            query,
            is_late: false,
        });
        let joined = match table {
            Some((query, operands)) => Some(self.semijoin_table(query, operands, from)?),
            None => None,
        };
        if joined.is_none() && lookup.is_none() {
            return Ok(None);
        }
        let first_column = joined.as_ref().map(|(_, _, first)| first.clone());
        let table = joined.map(|(source, on, _)| (source, on));
        Ok(Some(SemiJoin { position: apply.position, anti, table, first_column, lookup }))
    }

    /// The source, the equalities and the first column of a subquery as a table.
    fn semijoin_table(
        &mut self,
        query: QueryPlan,
        operands: Vec<Expr>,
        from: &From,
    ) -> Result<(Source, Vec<Expr>, Expr)> {
        let first = self.block().columns;
        let types: Vec<ResultType> = query.columns().iter().map(|column| column.result).collect();
        self.block().columns += types.len();
        let alias = format!("<subquery{}>", from.sources.len() + from.semijoins.len() + 1);
        let builder = self.builder();
        let column = |offset: usize| {
            builder.column(first + offset, types[offset], format!("`{alias}`.`{offset}`"))
        };
        let mut on = Vec::with_capacity(operands.len());
        for (offset, operand) in operands.into_iter().enumerate() {
            on.push(builder.compare(CompareOperator::Equal, operand, column(offset))?);
        }
        let first_column = column(0);
        let source = Source {
            table: TableSource::Derived(Box::new(query)),
            alias: alias.clone(),
            first,
            width: types.len(),
            left_join: None,
            straight: false,
            hints: Vec::new(),
            unplanned: None,
            branches: Vec::new(),
        };
        Ok((source, on, first_column))
    }
}

impl SemiJoin {
    /// Brings it to other positions; those of the tables are `shift` further on.
    pub(crate) fn map(&mut self, shift: usize, map: &mut dyn FnMut(usize) -> usize) {
        self.position = map(self.position);
        self.first_column.iter_mut().for_each(|it| it.map_columns(map));
        if let Some(lookup) = &mut self.lookup {
            lookup.position = map(lookup.position);
            lookup.map_reads(map);
        }
        if let Some((source, on)) = &mut self.table {
            source.first += shift;
            on.iter_mut().for_each(|on| on.map_columns(map));
        }
    }

    /// Whether a condition is this subquery.
    pub(crate) fn is(&self, conjunct: &Expr) -> bool {
        let inner = match &conjunct.kind {
            ExprKind::Not(inner) if self.anti => inner,
            _ => conjunct,
        };
        crate::optimize::column_position(inner) == Some(self.position)
    }

    /// The condition on rows that have met no partner.
    pub(crate) fn no_partner(&self, builder: &Builder<'_>) -> Result<Option<Expr>> {
        let Some(column) = self.first_column.clone().filter(|_| self.anti) else { return Ok(None) };
        let result = column.result.with_nullable(true);
        builder.is(Expr { result, ..column }, Test::Null, false).map(Some)
    }
}

/// LIMIT of at least one row, without an offset.
fn is_one(limit: &ast::Limit) -> bool {
    let count = match &limit.count {
        Some(ast::Expression::Literal(ast::Literal::Integer(number))) => number.to_string(),
        _ => return false,
    };
    limit.offset.is_none() && limit.rows_examined.is_none() && count != "0"
}

fn subquery_is_nullable(apply: &Apply) -> bool {
    match &apply.kind {
        ApplyKind::In { operand, .. } => operand
            .iter()
            .map(|operand| operand.result.nullable)
            .chain(apply.query.columns().iter().map(|column| column.result.nullable))
            .any(|nullable| nullable),
        _ => false,
    }
}

/// What an expression of a block reads.
#[derive(Default)]
struct Reads {
    /// Columns of the block around it.
    outer: bool,
    /// Its own columns, or subqueries.
    own: bool,
}

fn reads(expr: &Expr) -> Reads {
    let mut reads = Reads::default();
    expr.for_each_column(&mut |position| match (OUTER..APPLY).contains(&position) {
        true => reads.outer = true,
        false => reads.own = true,
    });
    reads
}

/// Whether anything but conjuncts reads the block around it.
fn reads_outside(block: &Block, draft: &Draft) -> bool {
    let is_outer = |position: &usize| (OUTER..APPLY).contains(position);
    let on = draft.from.sources.iter().flat_map(|source| source.left_join.iter().flatten());
    let semijoins = draft.from.semijoins.iter();
    let lookups = semijoins.clone().filter_map(|semijoin| semijoin.lookup.as_ref());
    let equalities = semijoins.filter_map(|semijoin| semijoin.table.as_ref());
    let mut outside = on.chain(equalities.flat_map(|(_, on)| on)).any(|on| reads(on).outer);
    for apply in block.applies.iter().chain(lookups) {
        outside |= apply.outer_positions.iter().any(is_outer);
        apply.for_each_operand(&mut |operand| outside |= reads(operand).outer);
    }
    outside
}

/// The two sides of an equality of which one reads only the block around, the other only its own.
fn tie(conjunct: &Expr) -> Option<(Expr, Expr)> {
    let ExprKind::Compare { operator: CompareOperator::Equal, left, right, .. } = &conjunct.kind
    else {
        return None;
    };
    let (of_left, of_right) = (reads(left), reads(right));
    match ((of_left.outer, of_left.own), (of_right.outer, of_right.own)) {
        ((true, false), (false, true)) => Some(((**left).clone(), (**right).clone())),
        ((false, true), (true, false)) => Some(((**right).clone(), (**left).clone())),
        _ => None,
    }
}

/// Whether all values that equal one value equal each other.
fn is_joinable(outer: &Expr, inner: &Expr) -> bool {
    let (a, b) = (&outer.result.column_type, &inner.result.column_type);
    let is_null = |expr: &Expr| matches!(expr.literal(), Some(Value::Null));
    !is_null(outer)
        && !is_null(inner)
        && ((a.kind.is_integer() && b.kind.is_integer())
            || (a.kind.is_string()
                && b.kind.is_string()
                && a.members.is_none()
                && b.members.is_none()
                && a.collation == b.collation)
            || (a.kind == b.kind && a.kind.is_temporal()))
}

fn is_alike(rule: CompareRule, operand: ResultType, column: ResultType) -> bool {
    let (a, b) = (&operand.column_type, &column.column_type);
    match rule {
        CompareRule::Integer => a.kind.is_integer() && b.kind.is_integer(),
        CompareRule::Text(collation) => {
            a.kind.is_string()
                && b.kind.is_string()
                && a.collation == collation
                && b.collation == collation
        }
        _ => false,
    }
}

/// A query that gives each row of another once.
fn distinct(query: QueryPlan, builder: &Builder<'_>) -> QueryPlan {
    let columns = query.columns().to_vec();
    match query {
        QueryPlan::Select(mut select) if select.limit.count.is_none() => {
            select.distinct = true;
            select.order_by.clear();
            select.projection.truncate(select.columns.len());
            QueryPlan::Select(select)
        }
        query => {
            let projection = columns.iter().enumerate();
            let projection = projection
                .map(|(at, column)| builder.column(at, column.result, column.name.as_str()));
            let rows = crate::optimize::selectivity::query_rows(&query);
            let cost = crate::optimize::selectivity::query_cost(&query) + rows;
            let mut outer = empty_select(projection.collect(), columns.clone());
            outer.estimate = BlockEstimate { rows, cost };
            outer.distinct = true;
            outer.frame_columns = columns.len();
            outer.tables.push(TableStep {
                source: TableSource::Derived(Box::new(query)),
                alias: String::new(),
                first_position: 0,
                access: Access::Scan {
                    index: 0,
                    direction: ScanDirection::Forward,
                    covering: false,
                },
                left_join: false,
                condition: None,
                tested: None,
                late: None,
                applies: Vec::new(),
                filter: None,
                lock: LockMode::None,
                rows_estimate: 1,
                selectivity: 1.0,
                possible_keys: Vec::new(),
            });
            QueryPlan::Select(Box::new(outer))
        }
    }
}
