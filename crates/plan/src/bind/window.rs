//! Window functions: each stands in the expressions as a column from [`WINDOW`] on.

use super::*;
use crate::physical::{
    FrameEdge, FramePlan, SelectPlan, SortKey, WindowFunction, WindowKind, WindowPlan, WindowStep,
};
use ast::{FrameBound, WindowFrame};
use expr::aggregate::{AggregateFunction, ConcatOptions};
use expr::{ArithmeticOperator, ExprKind};

/// First virtual position of window functions.
pub(crate) const WINDOW: usize = 1 << 28;

/// A window function, over virtual positions.
pub(crate) struct BoundWindow {
    kind: WindowKind,
    arguments: Vec<Expr>,
    partition: Vec<Expr>,
    order: Vec<(Expr, bool)>,
    rows: bool,
    start: Edge,
    end: Edge,
    /// What edges of RANGE are compared with.
    range_key: Option<Expr>,
    result: ResultType,
}

enum Edge {
    Unbounded,
    Current,
    Rows { count: Expr, following: bool },
    Range(Expr),
}

/// The parts of a window after its base was looked up.
struct Parts<'q> {
    partition: &'q [ast::Expression],
    order: &'q [ast::OrderItem],
    frame: Option<&'q WindowFrame>,
}

impl BoundWindow {
    /// Visits every expression.
    pub(super) fn for_each_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        if let WindowKind::Aggregate(call) = &mut self.kind {
            call.arguments.iter_mut().for_each(&mut *visit);
        }
        self.arguments.iter_mut().for_each(&mut *visit);
        self.partition.iter_mut().for_each(&mut *visit);
        self.order.iter_mut().for_each(|(key, _)| visit(key));
        self.range_key.iter_mut().for_each(&mut *visit);
        for edge in [&mut self.start, &mut self.end] {
            if let Edge::Range(bound) | Edge::Rows { count: bound, .. } = edge {
                visit(bound);
            }
        }
    }
}

/// Visits the values behind a block's rows or groups: its items, HAVING, its windows.
pub(super) fn each_value(
    plan: &mut SelectPlan,
    windows: &mut [BoundWindow],
    visit: &mut dyn FnMut(&mut Expr),
) {
    plan.projection.iter_mut().chain(&mut plan.having).for_each(&mut *visit);
    windows.iter_mut().for_each(|window| window.for_each_mut(visit));
}

impl<'q> Binder<'_, '_, 'q> {
    /// Error 4010 for names that stand twice.
    pub(super) fn check_window_names(&self, select: &'q ast::Select) -> Result<()> {
        for (number, (name, _)) in select.windows.iter().enumerate() {
            let mut before = select.windows[..number].iter();
            if before.any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                return Err(SqlError::new(&codes::DUP_WINDOW_NAME, &[name]));
            }
        }
        Ok(())
    }

    pub(super) fn bind_window(&mut self, call: &'q ast::WindowCall) -> Result<Expr> {
        let block = self.block();
        if block.in_aggregate {
            return Err(SqlError::new(&codes::SUM_FUNC_WITH_WINDOW_FUNC_AS_ARG, &[]));
        }
        if block.in_window || !matches!(block.clause, Clause::Select | Clause::OrderBy) {
            return Err(SqlError::new(&codes::WRONG_PLACEMENT_OF_WINDOW_FUNCTION, &[]));
        }
        block.in_window = true;
        let clause = block.clause;
        let bound = self.window_of(call);
        let block = self.block();
        (block.in_window, block.clause) = (false, clause);
        let bound = bound?;
        let (result, builder) = (bound.result, self.builder());
        let windows = &mut self.block().windows;
        windows.push(bound);
        let number = windows.len() - 1;
        Ok(builder.column(WINDOW + number, result, format!("window#{number}")))
    }

    fn window_of(&mut self, call: &'q ast::WindowCall) -> Result<BoundWindow> {
        let parts = self.window_parts(call)?;
        let (kind, arguments, name) = self.window_function(&call.function)?;
        check_function(&kind, &name, &parts)?;
        let clause = std::mem::replace(&mut self.block().clause, Clause::GroupBy);
        let mut partition = Vec::with_capacity(parts.partition.len());
        for expression in parts.partition {
            partition.push(self.bind_scalar(expression)?);
        }
        self.block().clause = Clause::OrderBy;
        let mut order = Vec::with_capacity(parts.order.len());
        for item in parts.order {
            let key = self.bind_scalar(&item.expression)?;
            let key = match key.result.column_type.members {
                Some(_) => self.builder().member_number(key)?,
                None => key,
            };
            order.push((key, item.descending));
        }
        self.block().clause = clause;
        let result = result_of(&kind, &arguments);
        let mut bound = BoundWindow {
            kind,
            arguments,
            partition,
            rows: false,
            start: Edge::Unbounded,
            end: if order.is_empty() { Edge::Unbounded } else { Edge::Current },
            order,
            range_key: None,
            result,
        };
        if let Some(frame) = parts.frame {
            self.bind_frame(frame, &mut bound)?;
        }
        Ok(bound)
    }

    fn named_window(&self, name: &str) -> Result<&'q ast::WindowDefinition> {
        let depth = self.blocks.len();
        let here = self.named_windows.iter().rev().find(|(at, _)| *at == depth);
        let mut named = here.into_iter().flat_map(|(_, windows)| windows.iter());
        let found = named.find(|(known, _)| known.eq_ignore_ascii_case(name));
        let unknown = || SqlError::new(&codes::WRONG_WINDOW_SPEC_NAME, &[&name]);
        found.map(|(_, definition)| definition).ok_or_else(unknown)
    }

    fn window_parts(&self, call: &'q ast::WindowCall) -> Result<Parts<'q>> {
        match &call.name {
            Some(name) => self.parts_of(self.named_window(name)?, 0),
            None => self.parts_of(&call.window, 0),
        }
    }

    fn parts_of(&self, window: &'q ast::WindowDefinition, depth: usize) -> Result<Parts<'q>> {
        let own = Parts {
            partition: &window.partition_by,
            order: &window.order_by,
            frame: window.bounds.as_ref(),
        };
        let Some(name) = &window.base else { return Ok(own) };
        if depth > 32 {
            return Err(SqlError::new(&codes::WRONG_WINDOW_SPEC_NAME, &[name]));
        }
        let base = self.parts_of(self.named_window(name)?, depth + 1)?;
        if !own.partition.is_empty() {
            let code = &codes::PARTITION_LIST_IN_REFERENCING_WINDOW_SPEC;
            return Err(SqlError::new(code, &[name]));
        }
        if !own.order.is_empty() && !base.order.is_empty() {
            return Err(SqlError::new(&codes::ORDER_LIST_IN_REFERENCING_WINDOW_SPEC, &[name]));
        }
        if base.frame.is_some() {
            return Err(SqlError::new(&codes::WINDOW_FRAME_IN_REFERENCED_WINDOW_SPEC, &[name]));
        }
        let order = if own.order.is_empty() { base.order } else { own.order };
        Ok(Parts { partition: base.partition, order, frame: own.frame })
    }

    fn window_function(
        &mut self,
        function: &'q ast::Expression,
    ) -> Result<(WindowKind, Vec<Expr>, String)> {
        match function {
            ast::Expression::Aggregate(call) => {
                let kind = WindowKind::Aggregate(self.window_aggregate(call)?);
                Ok((kind, Vec::new(), String::new()))
            }
            ast::Expression::Function(call) => {
                let name = call.name.to_lowercase();
                let (kind, least, most) = match name.as_str() {
                    "row_number" => (WindowKind::RowNumber, 0, 0),
                    "rank" => (WindowKind::Rank, 0, 0),
                    "dense_rank" => (WindowKind::DenseRank, 0, 0),
                    "percent_rank" => (WindowKind::PercentRank, 0, 0),
                    "cume_dist" => (WindowKind::CumeDist, 0, 0),
                    "ntile" => (WindowKind::Ntile, 1, 1),
                    "lag" => (WindowKind::Lag, 1, 2),
                    "lead" => (WindowKind::Lead, 1, 2),
                    "first_value" => (WindowKind::FirstValue, 1, 1),
                    "last_value" => (WindowKind::LastValue, 1, 1),
                    "nth_value" => (WindowKind::NthValue, 2, 2),
                    _ => return Err(unsupported("this window function")),
                };
                if !(least..=most).contains(&call.arguments.len()) {
                    let code = &codes::WRONG_PARAMCOUNT_TO_NATIVE_FCT;
                    return Err(SqlError::new(code, &[&call.name]));
                }
                let arguments =
                    call.arguments.iter().map(|a| self.bind_scalar(a)).collect::<Result<_>>()?;
                Ok((kind, arguments, name))
            }
            _ => Err(unsupported("this window function")),
        }
    }

    fn window_aggregate(&mut self, call: &'q ast::AggregateCall) -> Result<Aggregate> {
        use ast::AggregateFunction as A;
        let refused = match call.function {
            A::Count if call.distinct => Some("COUNT(DISTINCT)"),
            A::Sum if call.distinct => Some("SUM(DISTINCT)"),
            A::Average if call.distinct => Some("AVG(DISTINCT)"),
            A::GroupConcat => Some("GROUP_CONCAT()"),
            A::JsonArray => Some("JSON_ARRAYAGG()"),
            A::JsonObject => Some("JSON_OBJECTAGG()"),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(unsupported(&format!("{refused} aggregate as window function")));
        }
        let function = match super::aggregate::aggregate_function(call.function)? {
            AggregateFunction::Count if call.arguments.is_empty() => AggregateFunction::CountRows,
            function => function,
        };
        let arguments =
            call.arguments.iter().map(|a| self.bind_scalar(a)).collect::<Result<Vec<_>>>()?;
        self.builder().aggregate(function, false, arguments, ConcatOptions::default())
    }

    fn bind_frame(&mut self, frame: &'q WindowFrame, bound: &mut BoundWindow) -> Result<()> {
        use FrameBound as B;
        if frame.exclusion {
            return Err(SqlError::new(&codes::FRAME_EXCLUSION_NOT_SUPPORTED, &[]));
        }
        let place = |bound: &FrameBound| match bound {
            B::UnboundedPreceding => 0,
            B::Preceding(_) => 1,
            B::CurrentRow => 2,
            B::Following(_) => 3,
            B::UnboundedFollowing => 4,
        };
        let (start, end) = (place(&frame.start), place(&frame.end));
        if start == 4 || end == 0 || start > end {
            let code = &codes::BAD_COMBINATION_OF_WINDOW_FRAME_BOUND_SPECS;
            return Err(SqlError::new(code, &[]));
        }
        bound.rows = frame.rows;
        bound.start = self.bind_edge(&frame.start, bound)?;
        bound.end = self.bind_edge(&frame.end, bound)?;
        Ok(())
    }

    fn bind_edge(&mut self, edge: &'q FrameBound, bound: &mut BoundWindow) -> Result<Edge> {
        let (count, following) = match edge {
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => {
                return Ok(Edge::Unbounded);
            }
            FrameBound::CurrentRow => return Ok(Edge::Current),
            FrameBound::Preceding(count) => (count, false),
            FrameBound::Following(count) => (count, true),
        };
        let count = self.bind_scalar(count)?;
        if bound.rows {
            let is_parameter = matches!(count.kind, ExprKind::Parameter(_));
            if !is_parameter && !count.result.column_type.kind.is_integer() {
                return Err(SqlError::new(&codes::WRONG_TYPE_FOR_ROWS_FRAME, &[]));
            }
            return Ok(Edge::Rows { count, following });
        }
        let [(key, descending)] = bound.order.as_slice() else {
            return Err(SqlError::new(&codes::RANGE_FRAME_NEEDS_SIMPLE_ORDERBY, &[]));
        };
        if !is_number(key) || !is_number(&count) && !matches!(count.kind, ExprKind::Parameter(_)) {
            return Err(SqlError::new(&codes::WRONG_TYPE_FOR_RANGE_FRAME, &[]));
        }
        use ArithmeticOperator::{Add, Subtract};
        let builder = self.builder();
        // The key as a value of the type that the edges have.
        let zero = builder.arithmetic(Subtract, count.clone(), count.clone())?;
        bound.range_key = Some(builder.arithmetic(Add, key.clone(), zero)?);
        let operator = if following != *descending { Add } else { Subtract };
        Ok(Edge::Range(builder.arithmetic(operator, key.clone(), count)?))
    }
}

fn is_number(expr: &Expr) -> bool {
    let kind = expr.result.column_type.kind;
    use types::TypeKind as T;
    kind.is_integer() || matches!(kind, T::Decimal | T::Float | T::Double | T::Year | T::Bit)
}

/// Errors 4017 and 4018.
fn check_function(kind: &WindowKind, name: &str, parts: &Parts<'_>) -> Result<()> {
    use WindowKind as K;
    let is_place = matches!(kind, K::RowNumber | K::Rank | K::DenseRank | K::PercentRank)
        || matches!(kind, K::CumeDist | K::Ntile);
    let needs_order = matches!(kind, K::Rank | K::DenseRank | K::PercentRank)
        || matches!(kind, K::CumeDist | K::Lag | K::Lead);
    if needs_order && parts.order.is_empty() {
        return Err(SqlError::new(&codes::NO_ORDER_LIST_IN_WINDOW_SPEC, &[&name]));
    }
    if is_place && parts.frame.is_some() {
        return Err(SqlError::new(&codes::NOT_ALLOWED_WINDOW_FRAME, &[&name]));
    }
    Ok(())
}

fn result_of(kind: &WindowKind, arguments: &[Expr]) -> ResultType {
    use WindowKind as K;
    match kind {
        K::RowNumber | K::Rank | K::DenseRank | K::Ntile => {
            ResultType::integer_of_length(21, false, false)
        }
        K::PercentRank | K::CumeDist => {
            let mut result = ResultType::double_of_scale(10, true);
            result.column_type.length = 17;
            result
        }
        K::Aggregate(call) => call.result,
        _ => arguments.first().map_or(ResultType::null(), result_of_value),
    }
}

/// The type of a value of another row: whole numbers that are computed are BIGINT, but for what is
/// true or false.
fn result_of_value(value: &Expr) -> ResultType {
    let is_column = matches!(value.kind, ExprKind::Column { position, .. } if position < APPLY);
    let mut column_type = value.result.column_type;
    if column_type.kind.is_integer() && !is_column && !value.result.is_truth {
        column_type = value.result.stored_in_column().column_type;
        column_type.kind = types::TypeKind::BigInt;
    }
    ResultType::of(column_type, true)
}

/// Puts the functions between a block's frame and its projection, all over final positions.
pub(super) fn attach(builder: &Builder<'_>, plan: &mut SelectPlan, windows: Vec<BoundWindow>) {
    let mut inputs: Vec<Expr> = Vec::new();
    let mut projection = std::mem::take(&mut plan.projection);
    projection.iter_mut().for_each(|value| rebase(value, &mut inputs));
    let results = windows.iter().map(|window| window.result).collect();
    let mut steps: Vec<WindowStep> = Vec::new();
    for (result, window) in windows.into_iter().enumerate() {
        let mut place = |expr: Expr| place_of(expr, &mut inputs);
        let partition: Vec<usize> = window.partition.into_iter().map(&mut place).collect();
        let order = window.order.into_iter();
        let order: Vec<SortKey> =
            order.map(|(key, descending)| SortKey { position: place(key), descending }).collect();
        let mut edge = |edge| match edge {
            Edge::Unbounded => FrameEdge::Unbounded,
            Edge::Current => FrameEdge::Current,
            Edge::Rows { count, following } => FrameEdge::Rows { count, following },
            Edge::Range(bound) => FrameEdge::Range { bound: place(bound) },
        };
        let (start, end) = (edge(window.start), edge(window.end));
        let range_key = window.range_key.map(&mut place);
        let frame = FramePlan { rows: window.rows, start, end, range_key };
        let mut kind = window.kind;
        let mut as_column = |expr: &mut Expr| {
            let (result, taken) = (expr.result, std::mem::replace(expr, builder.null()));
            *expr = match taken.kind {
                ExprKind::Literal(_) | ExprKind::Parameter(_) => taken,
                _ => builder.column(place(taken), result, ""),
            };
        };
        if let WindowKind::Aggregate(call) = &mut kind {
            call.arguments.iter_mut().for_each(&mut as_column);
        }
        let mut arguments = window.arguments;
        arguments.iter_mut().for_each(&mut as_column);
        let function = WindowFunction { result, kind, arguments, frame };
        let found = steps.iter_mut().find(|s| s.partition == partition && s.order == order);
        match found {
            Some(step) => step.functions.push(function),
            None => steps.push(WindowStep { partition, order, functions: vec![function] }),
        }
    }
    let first = inputs.len();
    for value in &mut projection {
        value.map_columns(&mut |position| match position.checked_sub(WINDOW) {
            Some(number) => first + number,
            None => position,
        });
    }
    plan.projection = projection;
    plan.window = Some(Box::new(WindowPlan { inputs, results, steps }));
}

/// The position of a value among the inputs.
fn place_of(expr: Expr, inputs: &mut Vec<Expr>) -> usize {
    let found = inputs.iter().position(|known| super::order::same(known, &expr));
    found.unwrap_or_else(|| {
        inputs.push(expr);
        inputs.len() - 1
    })
}

/// Makes the columns that an expression reads inputs.
fn rebase(expr: &mut Expr, inputs: &mut Vec<Expr>) {
    if let ExprKind::Column { position, name } = &expr.kind {
        if *position >= WINDOW {
            return;
        }
        let found = inputs.iter().position(|known| super::order::same(known, expr));
        let name = name.clone();
        let position = found.unwrap_or_else(|| {
            inputs.push(expr.clone());
            inputs.len() - 1
        });
        expr.kind = ExprKind::Column { position, name };
        return;
    }
    expr.for_each_child_mut(&mut |child| rebase(child, inputs));
}
