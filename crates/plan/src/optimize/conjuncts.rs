//! Conditions taken apart at their ANDs, with what each of them reads.

use crate::bind::table::Source;
use crate::physical::{Apply, SelectPlan};
use expr::{CompareOperator, EvalContext, Expr, ExprKind, ResultType};
use std::cell::OnceCell;

/// A condition with what it reads.
#[derive(Clone, Debug)]
pub(crate) struct Conjunct {
    /// The condition.
    pub expr: Expr,
    /// Sources read, a bit each; those behind subqueries included.
    pub sources: u64,
    /// Subqueries read, a bit each.
    pub applies: u64,
    /// Share of rows that it leaves, once somebody asked.
    pub share: OnceCell<f64>,
}

/// Whether a condition over constants is false, told without evaluating it in a session.
pub(crate) fn never_true(filter: &Expr) -> bool {
    let context = EvalContext::new();
    filter.is_known_everywhere()
        && filter.eval_bool(&context, &expr::NoColumns).is_ok_and(|truth| truth != Some(true))
}

/// What a position of the frame belongs to.
#[derive(Clone, Copy)]
enum Owner {
    /// A column of the enclosing block.
    Outer,
    /// A source.
    Source(usize),
    /// A subquery.
    Apply(usize),
}

/// The frame's positions.
pub(crate) struct Positions {
    owners: Vec<Owner>,
    /// For every subquery, what it reads: sources and other subqueries.
    reads: Vec<(u64, u64)>,
}

impl Positions {
    pub(crate) fn new(plan: &SelectPlan, sources: &[Source], applies: &[Apply]) -> Self {
        let mut owners = vec![Owner::Outer; plan.frame_columns];
        for (number, source) in sources.iter().enumerate() {
            let end = source.first + source.width;
            owners[source.first..end].fill(Owner::Source(number));
        }
        for (number, apply) in applies.iter().enumerate() {
            owners[apply.position] = Owner::Apply(number);
        }
        let mut positions = Self { owners, reads: Vec::with_capacity(applies.len()) };
        for apply in applies {
            let mut reads = (0, 0);
            for position in &apply.outer_positions {
                positions.add(*position, &mut reads);
            }
            apply.for_each_operand(&mut |operand| {
                operand.for_each_column(&mut |position| positions.add(position, &mut reads));
            });
            positions.reads.push(reads);
        }
        positions
    }

    fn add(&self, position: usize, reads: &mut (u64, u64)) {
        match self.owners.get(position) {
            Some(Owner::Source(number)) => reads.0 |= 1 << number,
            Some(Owner::Apply(number)) => {
                reads.1 |= 1 << number;
                if let Some((sources, applies)) = self.reads.get(*number) {
                    reads.0 |= sources;
                    reads.1 |= applies;
                }
            }
            Some(Owner::Outer) | None => {}
        }
    }

    /// The sources and subqueries that an expression reads.
    pub(crate) fn reads(&self, expr: &Expr) -> (u64, u64) {
        let mut reads = (0, 0);
        expr.for_each_column(&mut |position| self.add(position, &mut reads));
        reads
    }

    /// Conditions with what they read.
    pub(crate) fn all(&self, exprs: Vec<Expr>) -> Vec<Conjunct> {
        exprs
            .into_iter()
            .map(|expr| {
                let (sources, applies) = self.reads(&expr);
                Conjunct { expr, sources, applies, share: OnceCell::new() }
            })
            .collect()
    }

    /// Subqueries that read no source.
    pub(crate) fn constant_applies(&self) -> u64 {
        let constant = self.reads.iter().enumerate().filter(|(_, reads)| reads.0 == 0);
        constant.fold(0, |set, (number, _)| set | 1 << number)
    }

    /// Whether a subquery can be run when these sources have rows.
    pub(crate) fn apply_is_ready(&self, number: usize, bound: u64, known: u64) -> bool {
        let (sources, applies) = self.reads[number];
        sources & !bound == 0 && applies & !known & !(1 << number) == 0
    }
}

impl Conjunct {
    /// Whether it can be decided when these sources have rows and these subqueries values.
    pub(crate) fn is_ready(&self, bound: u64, known: u64) -> bool {
        self.sources & !bound == 0 && self.applies & !known == 0
    }
}

/// Takes the conditions that can be decided, in order.
pub(crate) fn take(conjuncts: &mut Vec<Conjunct>, bound: u64, known: u64) -> Vec<Conjunct> {
    let all = std::mem::take(conjuncts);
    let (ready, rest) = all.into_iter().partition(|conjunct| conjunct.is_ready(bound, known));
    *conjuncts = rest;
    ready
}

/// Puts the conditions of a source alone first: a row that they refuse meets no others.
pub(crate) fn own_first(conjuncts: &mut [Conjunct], source: usize) {
    conjuncts.sort_by_key(|it| it.sources & !(1 << source) != 0 || it.applies != 0);
}

/// The elements of a row.
fn elements(row: Expr) -> Vec<Expr> {
    match row.kind {
        ExprKind::Row(elements) => elements,
        kind => vec![Expr { kind, result: row.result }],
    }
}

/// Takes a condition apart at its ANDs, and equalities of rows at their elements.
pub(crate) fn flatten(expr: Expr, conjuncts: &mut Vec<Expr>) {
    match expr.kind {
        ExprKind::And(list) => list.into_iter().for_each(|inner| flatten(inner, conjuncts)),
        ExprKind::CompareRows { operator: CompareOperator::Equal, rules, left, right } => {
            for ((left, right), rule) in
                elements(*left).into_iter().zip(elements(*right)).zip(rules)
            {
                let (left, right) = (Box::new(left), Box::new(right));
                let kind =
                    ExprKind::Compare { operator: CompareOperator::Equal, rule, left, right };
                conjuncts.push(Expr { kind, result: expr.result });
            }
        }
        kind => conjuncts.push(Expr { kind, result: expr.result }),
    }
}

/// The conjunction of conditions; none of none.
pub(crate) fn and_all(conjuncts: Vec<Conjunct>) -> Option<Expr> {
    let mut list: Vec<Expr> = conjuncts.into_iter().map(|conjunct| conjunct.expr).collect();
    if list.len() < 2 {
        return list.pop();
    }
    let nullable = list.iter().any(|expr| expr.result.nullable);
    Some(Expr { kind: ExprKind::And(list), result: ResultType::boolean(nullable) })
}

/// `one AND other`.
pub(crate) fn and(one: Expr, other: Expr) -> Expr {
    let mut list = Vec::new();
    flatten(one, &mut list);
    flatten(other, &mut list);
    let nullable = list.iter().any(|expr| expr.result.nullable);
    Expr { kind: ExprKind::And(list), result: ResultType::boolean(nullable) }
}
