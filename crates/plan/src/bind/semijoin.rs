//! `operand IN (SELECT ...)` as a conjunct of WHERE: a join with the subquery's distinct rows.
//!
//! Each row of the block then matches at most one row of the subquery, provided that values
//! that are equal to the same operand are equal to each other: integers, and strings of one
//! collation.

use super::from::From;
use super::set::empty_select;
use super::*;
use crate::physical::{Access, ApplyKind, QueryPlan, TableSource, TableStep};
use engine_api::{LockMode, ScanDirection};
use expr::{CompareOperator, CompareRule, ExprKind};

impl Binder<'_, '_, '_> {
    /// Turns conjuncts that are nothing but IN over an uncorrelated subquery into joins.
    pub(super) fn join_subqueries(
        &mut self,
        from: &mut From,
        conjuncts: &mut [Expr],
    ) -> Result<()> {
        if from.sources.is_empty() {
            return Ok(());
        }
        for conjunct in conjuncts.iter_mut().rev() {
            let ExprKind::Column { position, .. } = &conjunct.kind else { continue };
            let Some(number) = position.checked_sub(APPLY).filter(|_| *position < AGGREGATE) else {
                continue;
            };
            // Positions of later subqueries follow from their number: only the last can go.
            let last = self.block().applies.len() == number + 1;
            if !last || !is_joinable(&self.block().applies[number]) {
                continue;
            }
            let Some(apply) = self.block().applies.pop() else { continue };
            *conjunct = self.join_apply(apply, from)?;
        }
        Ok(())
    }

    fn join_apply(&mut self, apply: Apply, from: &mut From) -> Result<Expr> {
        let ApplyKind::In { operand, .. } = apply.kind else {
            return Err(unsupported("this subquery"));
        };
        let first = self.block().columns;
        let (query, types) = distinct(apply.query, &self.builder());
        self.block().columns += types.len();
        let alias = format!("<subquery{}>", from.sources.len() + 1);
        from.sources.push(super::table::Source {
            table: TableSource::Derived(Box::new(query)),
            alias: alias.clone(),
            first,
            width: types.len(),
            left_join: None,
            straight: false,
            hints: Vec::new(),
        });
        let builder = self.builder();
        let mut equalities = Vec::with_capacity(operand.len());
        for (offset, (operand, result)) in operand.into_iter().zip(types).enumerate() {
            let column = builder.column(first + offset, result, format!("`{alias}`.`{offset}`"));
            equalities.push(builder.compare(CompareOperator::Equal, operand, column)?);
        }
        let mut equalities = equalities.into_iter();
        let Some(mut all) = equalities.next() else { return Err(unsupported("this subquery")) };
        for equality in equalities {
            all = builder.and(all, equality)?;
        }
        Ok(all)
    }
}

fn is_joinable(apply: &Apply) -> bool {
    let ApplyKind::In { operand, rules } = &apply.kind else { return false };
    let columns = apply.query.columns();
    let alike = operand.iter().zip(columns).zip(rules).all(|((operand, column), rule)| {
        let (a, b) = (&operand.result.column_type, &column.result.column_type);
        match rule {
            CompareRule::Integer => a.kind.is_integer() && b.kind.is_integer(),
            CompareRule::Text(collation) => {
                a.kind.is_string()
                    && b.kind.is_string()
                    && a.collation == *collation
                    && b.collation == *collation
            }
            _ => false,
        }
    });
    alike && apply.outer_positions.is_empty()
}

/// A query that gives each row of another once, and the types of its columns.
fn distinct(query: QueryPlan, builder: &Builder<'_>) -> (QueryPlan, Vec<ResultType>) {
    let columns = query.columns().to_vec();
    let types: Vec<ResultType> = columns.iter().map(|column| column.result).collect();
    let query = match query {
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
            let mut outer = empty_select(projection.collect(), columns.clone());
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
                applies: Vec::new(),
                filter: None,
                lock: LockMode::None,
                rows_estimate: 1,
                selectivity: 1.0,
                possible_keys: Vec::new(),
            });
            QueryPlan::Select(Box::new(outer))
        }
    };
    (query, types)
}
