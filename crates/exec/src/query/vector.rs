//! Batches of a scan seen as columns: conditions and arguments of aggregates that have kernels
//! (`expr::vector`) are computed for many rows at once.
//!
//! 1. A batch belongs to its slot of the frame. Rows are chosen by number; whoever needs the row
//!    evaluator lets the frame stand at a row first. Nothing of a batch outlives the next read.
//! 2. What kernels do not compute, the row evaluator does, for the rows that are left and in their
//!    order. So results, warnings and errors are those of the row evaluator alone.
//! 3. A condition of which only the first conjuncts have kernels drops the rows for which these
//!    are false, and is tested as a whole on the others.

use super::block::BlockRun;
use super::heads::HeadRule;
use crate::context::Exec;
use crate::frame::{BatchLayout, Frame};
use crate::spare;
use engine_api::{LockMode, RowBatch};
use expr::vector::{Batch, Condition, Kernel, Shape, Truth};
use expr::{Expr, ExprKind};
use plan::physical::SelectPlan;
use types::ValueRef;
use types::row::{Lane, Numbers, RowLayout, RowView};

/// Batches of fewer rows are left to the row evaluator.
pub const FEW_ROWS: usize = 4;

/// The columns of a table at the frame's positions from `first` on.
#[derive(Clone, Copy)]
pub struct TableShape<'a> {
    layout: &'a RowLayout,
    first: usize,
}

impl Shape for TableShape<'_> {
    fn lane(&self, position: usize) -> Option<Lane> {
        self.layout.lane(position.checked_sub(self.first)?)
    }

    fn holds(&self, position: usize) -> bool {
        position >= self.first && position - self.first < self.layout.columns().len()
    }
}

/// No table with columns.
pub struct NoTable;

impl Shape for NoTable {
    fn lane(&self, _: usize) -> Option<Lane> {
        None
    }

    fn holds(&self, _: usize) -> bool {
        false
    }
}

/// The same with rows.
pub struct Columns<'a> {
    shape: TableShape<'a>,
    rows: &'a RowBatch,
}

impl Batch for Columns<'_> {
    fn numbers(&self, position: usize, selected: &[u32], out: &mut Numbers) {
        let column = position - self.shape.first;
        self.shape.layout.read_numbers(column, self.rows, selected, out);
    }

    fn texts<'b>(&'b self, position: usize, selected: &[u32], out: &mut Vec<Option<&'b [u8]>>) {
        let column = position - self.shape.first;
        self.shape.layout.read_texts(column, self.rows, selected, out);
    }

    fn value(&self, position: usize, row: u32) -> ValueRef<'_> {
        let Some(row) = self.rows.row(row as usize) else { return ValueRef::Null };
        RowView::new(self.shape.layout, row.key, row.payload).get(position - self.shape.first)
    }
}

impl<'a> Columns<'a> {
    /// The batch of a slot whose columns begin at position `first`; none if its rows are keys of
    /// an index.
    pub fn of(frame: &'a Frame, slot: usize, first: usize) -> Option<Self> {
        match frame.rows(slot)? {
            (BatchLayout::Rows(layout), rows) => {
                Some(Self { shape: TableShape { layout, first }, rows })
            }
            (BatchLayout::Keys(_), _) => None,
        }
    }

    /// What is known of them without rows.
    pub fn shape(&self) -> TableShape<'a> {
        self.shape
    }
}

/// A step's condition over batches, and the rows chosen.
#[derive(Default)]
pub struct Filter {
    conditions: Vec<Condition>,
    /// The kernels are the whole condition.
    complete: bool,
    cutoff: Option<Cutoff>,
    truths: Vec<Truth>,
    numbers: Numbers,
}

/// The first key of ORDER BY ... LIMIT: rows that come behind the last row kept are not wanted.
struct Cutoff {
    key: CutoffKey,
    rule: HeadRule,
}

enum CutoffKey {
    Number(Kernel),
    Text { position: usize },
}

/// Rows of a batch that passed.
#[derive(Default)]
pub struct Selection {
    /// Their numbers.
    pub rows: Vec<u32>,
    /// The step's condition holds for them; else it is still to be tested.
    pub tested: bool,
}

impl Drop for Selection {
    fn drop(&mut self) {
        if self.rows.capacity() > 0 {
            spare::give_numbers(std::mem::take(&mut self.rows));
        }
    }
}

/// The conjuncts of a condition.
fn conjuncts(condition: &Option<Expr>) -> &[Expr] {
    match condition {
        None => &[],
        Some(Expr { kind: ExprKind::And(list), .. }) => list,
        Some(other) => std::slice::from_ref(other),
    }
}

impl Filter {
    fn new(exec: &Exec<'_>, plan: &SelectPlan, depth: usize, columns: &Columns<'_>) -> Self {
        let all = conjuncts(&plan.tables[depth].tested);
        let shape = columns.shape();
        let (conditions, length) = Condition::leading(all, exec.eval, &shape);
        let complete = length == all.len();
        let cutoff = Cutoff::of(exec, plan, depth, shape).filter(|_| complete);
        Self { conditions, complete, cutoff, ..Self::default() }
    }

    /// Chooses rows of the batch that was just read into the slot of step `depth`.
    pub fn select(exec: &Exec<'_>, run: &mut BlockRun<'_>, depth: usize, out: &mut Selection) {
        let plan = run.plan;
        let slot = run.steps[depth].slot;
        let count = run.frame.rows(slot).map_or(0, |(_, rows)| rows.len());
        if out.rows.capacity() == 0 {
            out.rows = spare::take_numbers();
        }
        out.rows.clear();
        out.rows.extend(0..count as u32);
        let step = &run.steps[depth];
        if step.builds || plan.lock != LockMode::None {
            out.tested = false;
            return;
        }
        out.tested = plan.tables[depth].tested.is_none();
        if count < FEW_ROWS || out.tested && run.cutoff.is_none() {
            return;
        }
        let first = plan.tables[depth].first_position;
        let Some(columns) = Columns::of(&run.frame, slot, first) else { return };
        let filter = run.steps[depth]
            .filter
            .get_or_insert_with(|| Box::new(Self::new(exec, plan, depth, &columns)));
        out.tested = filter.complete;
        for condition in &mut filter.conditions {
            let truths = &mut filter.truths;
            if condition.filter(&columns, &mut out.rows, !filter.complete, truths).is_err() {
                out.tested = false;
                return;
            }
        }
        if let (Some(last), Some(cutoff)) = (run.cutoff, &mut filter.cutoff) {
            cutoff.apply(last, &columns, &mut out.rows, &mut filter.numbers);
        }
    }
}

impl Cutoff {
    /// Rows can be dropped before their projection is computed if nobody counts them and the
    /// projection neither warns nor fails.
    fn of(exec: &Exec<'_>, plan: &SelectPlan, depth: usize, shape: TableShape<'_>) -> Option<Self> {
        let step = &plan.tables[depth];
        let simple = plan.aggregate.is_none()
            && plan.having.is_none()
            && plan.window.is_none()
            && !plan.distinct
            && !plan.calculate_found_rows
            && depth + 1 == plan.tables.len()
            && !step.left_join
            && step.applies.is_empty()
            && step.filter.is_none();
        if !simple {
            return None;
        }
        let harmless = |expr: &Expr| {
            matches!(expr.kind, ExprKind::Column { .. } | ExprKind::Literal(_))
                || Kernel::of_result(expr, exec.eval, &shape).is_some_and(|k| k.is_exact())
        };
        if !plan.projection.iter().all(harmless) {
            return None;
        }
        let key = plan.order_by.first()?;
        let expr = &plan.projection[key.position];
        let rule = HeadRule::new(&expr.result.column_type, key.descending);
        if let ExprKind::Column { position, .. } = expr.kind
            && shape.holds(position)
            && expr.result.is_string()
        {
            return Some(Self { key: CutoffKey::Text { position }, rule });
        }
        let kernel = Kernel::of_result(expr, exec.eval, &shape)?;
        Some(Self { key: CutoffKey::Number(kernel), rule })
    }

    fn apply(
        &mut self,
        last: u64,
        columns: &Columns<'_>,
        rows: &mut Vec<u32>,
        numbers: &mut Numbers,
    ) {
        let rule = self.rule;
        match &mut self.key {
            CutoffKey::Number(kernel) => {
                if kernel.eval(columns, rows, numbers).is_err() {
                    return;
                }
                let lane = kernel.lane();
                let mut at = 0;
                rows.retain(|_| {
                    let number = (!numbers.is_null(at)).then(|| numbers.values[at]);
                    at += 1;
                    rule.head_of(lane, number).number <= last
                });
            }
            CutoffKey::Text { position } => {
                let mut texts = Vec::with_capacity(rows.len());
                columns.texts(*position, rows, &mut texts);
                let mut texts = texts.into_iter();
                rows.retain(|_| {
                    let text = texts.next().flatten().map_or(ValueRef::Null, ValueRef::Bytes);
                    rule.head(text).number <= last
                });
            }
        }
    }
}
