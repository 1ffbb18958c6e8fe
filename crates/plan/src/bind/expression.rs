//! Expressions: from syntax to bound trees.

use super::*;
use ast::Expression as E;
use expr::{ArithmeticOperator, BitOperator, CompareOperator, ExprKind, Test};
use syntax::ast::BinaryOperator as B;

impl<'q> Binder<'_, '_, 'q> {
    /// An expression of one column (1241 for a row).
    pub(super) fn bind_scalar(&mut self, expression: &'q E) -> Result<Expr> {
        let bound = self.bind(expression)?;
        match bound.kind {
            ExprKind::Row(_) => Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1])),
            _ => Ok(bound),
        }
    }

    /// An expression of one column or a row.
    pub(super) fn bind(&mut self, expression: &'q E) -> Result<Expr> {
        match expression {
            E::Literal(literal) => self.bind_literal(literal),
            E::Column(name) => self.bind_column(name),
            E::Parameter(number) => {
                let parameter = self.bind_parameter(*number);
                Ok(Expr { result: parameter.result.with_nullable(true), ..parameter })
            }
            E::UserVariable(name) => Ok(self.bind_user_variable(name)),
            E::AssignUserVariable(name, value) => {
                self.reusable = false;
                let value = self.bind_scalar(value)?;
                self.assigned.insert(name.to_lowercase());
                self.builder().assign(name, value)
            }
            E::SystemVariable(variable) => {
                self.reusable = false;
                let (value, result) = self.context.variables.read(variable)?;
                let mut read = self.builder().computed(value, result);
                read.result = read.result.with_nullable(result.nullable);
                Ok(read)
            }
            E::Unary(operator, operand) => self.bind_unary(*operator, operand),
            E::Binary(..) => self.bind_chain(expression),
            E::Logical(operator, operands) => self.bind_logical(*operator, operands, false),
            E::Case { operand, branches, otherwise } => {
                self.bind_case(operand.as_deref(), branches, otherwise.as_deref())
            }
            E::Cast { operand, target } => {
                let operand = self.bind_scalar(operand)?;
                let target = self.cast_target(target)?;
                self.builder().cast(operand, target)
            }
            E::ConvertUsing { operand, charset } => {
                let operand = self.bind_scalar(operand)?;
                self.builder().convert_using(operand, charset)
            }
            E::Collate { operand, collation } => {
                let operand = self.bind_scalar(operand)?;
                self.builder().collate(operand, collation)
            }
            E::Function(call) => self.bind_function(call),
            E::Aggregate(call) => self.bind_aggregate(call),
            E::Window(call) => self.bind_window(call),
            E::DateArithmetic { base, amount, unit, subtract } => {
                let (base, amount) = (self.bind_scalar(base)?, self.bind_scalar(amount)?);
                self.builder().date_arithmetic(base, amount, interval_unit(*unit), *subtract)
            }
            E::Unit(_) => Err(unsupported("a unit outside of its functions")),
            E::Row(items) => {
                let items = items.iter().map(|item| self.bind(item)).collect::<Result<_>>()?;
                Ok(self.builder().row(items))
            }
            E::Default(column) => self.bind_default(column.as_ref()),
            E::Values(column) => self.bind_values(column),
            E::Match { .. } => Err(unsupported("MATCH ... AGAINST")),
            E::SequenceValue { .. } => Err(unsupported("sequences")),
            predicate => self.bind_predicate(predicate),
        }
    }

    fn bind_predicate(&mut self, predicate: &'q E) -> Result<Expr> {
        match predicate {
            E::In { operand, list, negated } => {
                let operand = self.bind(operand)?;
                let list = list.iter().map(|item| self.bind(item)).collect::<Result<_>>()?;
                self.builder().in_list(operand, list, *negated)
            }
            E::Between { operand, low, high, negated } => {
                let operand = self.bind_scalar(operand)?;
                let (low, high) = (self.bind_scalar(low)?, self.bind_scalar(high)?);
                self.builder().between(operand, low, high, *negated)
            }
            E::Like { operand, pattern, escape, negated } => {
                let operand = self.bind_scalar(operand)?;
                let pattern = self.bind_scalar(pattern)?;
                let escape = escape.as_deref().map(|e| self.bind_scalar(e)).transpose()?;
                self.builder().like(operand, pattern, escape, *negated)
            }
            E::Regexp { operand, pattern, negated } => {
                let arguments = vec![self.bind_scalar(operand)?, self.bind_scalar(pattern)?];
                let call = self.builder().call("regexp", arguments)?;
                if *negated { self.builder().not(call) } else { Ok(call) }
            }
            E::Is { operand, test, negated } => {
                let operand = self.bind_scalar(operand)?;
                let test = match test {
                    ast::IsTest::Null | ast::IsTest::Unknown => Test::Null,
                    ast::IsTest::True => Test::True,
                    ast::IsTest::False => Test::False,
                };
                self.builder().is(operand, test, *negated)
            }
            E::InSubquery { operand, query, negated } => {
                self.bind_in_subquery(operand, query, *negated)
            }
            E::Subquery(query) => self.bind_scalar_subquery(query),
            E::Exists(query) => self.bind_exists(query),
            E::Quantified { operand, operator, all, query } => {
                self.bind_quantified(operand, *operator, *all, query)
            }
            _ => Err(unsupported("this expression")),
        }
    }

    fn bind_literal(&mut self, literal: &ast::Literal) -> Result<Expr> {
        let builder = self.builder();
        match literal {
            ast::Literal::Null => Ok(builder.null()),
            ast::Literal::Boolean(value) => Ok(builder.boolean(*value)),
            ast::Literal::Integer(value) => Ok(builder.integer(*value)),
            ast::Literal::Decimal(text) => builder.decimal(text),
            ast::Literal::Float(text) => builder.float(text),
            ast::Literal::String { bytes, charset } => {
                builder.text(bytes.clone(), charset.as_deref())
            }
            ast::Literal::Hex { bytes, number, charset } => {
                builder.hex(bytes.clone(), *number, charset.as_deref())
            }
            ast::Literal::Bits(bytes) => builder.hex(bytes.clone(), true, None),
            ast::Literal::Date(text) => builder.date(text),
            ast::Literal::Time(text) => builder.time(text),
            ast::Literal::Timestamp(text) => builder.timestamp(text),
            ast::Literal::Escaped(escape, text) => {
                let read = match escape {
                    ast::OdbcEscape::Date => builder.date(text),
                    ast::OdbcEscape::Time => builder.time(text),
                    ast::OdbcEscape::Timestamp => builder.timestamp(text),
                };
                read.or_else(|_| builder.text(text.clone().into_bytes(), None))
            }
        }
    }

    /// A parameter, or its value where the plan is for that alone. As something to be selected
    /// it is NULL only if its value is; in an expression it may be, as when it was prepared.
    pub(super) fn bind_parameter(&mut self, number: u32) -> Expr {
        let number = number as usize;
        self.described |= self.block().clause == Clause::Select;
        let result = self.context.parameters.get(number).copied();
        let result = result.unwrap_or_else(ResultType::null);
        match self.context.values.get(number) {
            Some(value) => self.builder().value(value.clone(), result),
            None => self.builder().parameter(number, result),
        }
    }

    fn bind_user_variable(&mut self, name: &str) -> Expr {
        self.reusable = false;
        let variables = self.context.eval.variables.borrow();
        let known = variables.get(&name.to_lowercase());
        let mut result = known.map(|variable| variable_type(variable.result));
        drop(variables);
        if result.is_none() && self.assigned.contains(&name.to_lowercase()) {
            // It is text as long as nobody knows what it will be.
            let collation = self.builder().connection_collation();
            let text = expr::Coercibility::Implicit;
            result = Some(variable_type(ResultType::string(1, collation, text, false, true)));
        }
        self.builder().user_variable(name, result)
    }

    fn bind_unary(&mut self, operator: ast::UnaryOperator, operand: &'q E) -> Result<Expr> {
        if operator == ast::UnaryOperator::Not {
            return self.bind_negated(operand, false);
        }
        let operand = self.bind_scalar(operand)?;
        match operator {
            ast::UnaryOperator::Minus => self.builder().negate(operand),
            ast::UnaryOperator::BitNot => self.builder().bit_not(operand),
            ast::UnaryOperator::Plus | ast::UnaryOperator::Not => Ok(operand),
        }
    }

    /// `NOT operand`. Comparisons within it are turned round, and their messages name what they
    /// are then. Of a `condition` only whether it is true is asked for.
    fn bind_negated(&mut self, operand: &'q E, condition: bool) -> Result<Expr> {
        use ast::LogicalOperator::{And, Or};
        match operand {
            E::Binary(compared, left, right)
                if let Some(negated) =
                    compare_operator(*compared).and_then(CompareOperator::negated) =>
            {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                self.builder().compare(negated, left, right)
            }
            E::Logical(And, operands) => self.bind_logical(Or, operands, true),
            E::Logical(Or, operands) => self.bind_logical(And, operands, true),
            E::Unary(ast::UnaryOperator::Not, twice) => {
                let value = self.bind_scalar(twice)?;
                let is_condition = condition
                    || has_opposite(twice)
                    || value.result.is_truth
                    || matches!(self.block().clause, Clause::Where | Clause::Having);
                if is_condition {
                    return Ok(value);
                }
                let builder = self.builder();
                builder.compare(CompareOperator::NotEqual, value, builder.integer(0))
            }
            E::Binary(B::Xor, left, right) => {
                let at_right = !has_opposite(left) && has_opposite(right);
                let mut side = |side: &'q E, negated: bool| match negated {
                    true => self.bind_negated(side, true),
                    false => self.bind_scalar(side),
                };
                let (left, right) = (side(left, !at_right)?, side(right, at_right)?);
                self.builder().xor(left, right)
            }
            _ => {
                let operand = self.bind_scalar(operand)?;
                self.builder().not(operand)
            }
        }
    }

    /// Operators lean to the left: their chains are followed without recursion.
    fn bind_chain(&mut self, expression: &'q E) -> Result<Expr> {
        let mut chain = Vec::new();
        let mut first = expression;
        while let E::Binary(operator, left, right) = first {
            chain.push((*operator, &**right));
            first = left;
        }
        let mut bound = self.bind(first)?;
        while let Some((operator, right)) = chain.pop() {
            bound = self.bind_binary(operator, bound, right)?;
        }
        Ok(bound)
    }

    fn bind_binary(&mut self, operator: B, left: Expr, right: &'q E) -> Result<Expr> {
        let right = self.bind(right)?;
        let builder = self.builder();
        if let Some(operator) = compare_operator(operator) {
            return builder.compare(operator, left, right);
        }
        if let Some(operator) = arithmetic_operator(operator) {
            return builder.arithmetic(operator, left, right);
        }
        if [&left, &right].iter().any(|side| matches!(side.kind, ExprKind::Row(_))) {
            return Err(SqlError::new(&codes::OPERAND_COLUMNS, &[&1]));
        }
        match operator {
            B::Xor => builder.xor(left, right),
            B::Concat => builder.call("concat", vec![left, right]),
            B::SoundsLike => {
                let left = builder.call("soundex", vec![left])?;
                let right = builder.call("soundex", vec![right])?;
                builder.compare(CompareOperator::Equal, left, right)
            }
            B::BitOr => builder.bit(BitOperator::Or, left, right),
            B::BitAnd => builder.bit(BitOperator::And, left, right),
            B::BitXor => builder.bit(BitOperator::Xor, left, right),
            B::ShiftLeft => builder.bit(BitOperator::ShiftLeft, left, right),
            _ => builder.bit(BitOperator::ShiftRight, left, right),
        }
    }

    /// Conditions joined, each of them negated if that is said.
    fn bind_logical(
        &mut self,
        operator: ast::LogicalOperator,
        operands: &'q [E],
        negated: bool,
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(operands.len());
        for operand in operands {
            let operand = match negated {
                true => self.bind_negated(operand, true)?,
                false => self.bind_scalar(operand)?,
            };
            let operand = expr::text_as_double(operand);
            match (operator, operand.kind) {
                (ast::LogicalOperator::And, ExprKind::And(inner))
                | (ast::LogicalOperator::Or, ExprKind::Or(inner)) => bound.extend(inner),
                (_, kind) => bound.push(Expr { kind, result: operand.result }),
            }
        }
        let nullable = bound.iter().any(|operand| operand.result.nullable);
        let kind = match operator {
            ast::LogicalOperator::And => ExprKind::And(bound),
            ast::LogicalOperator::Or => ExprKind::Or(bound),
        };
        Ok(Expr { kind, result: ResultType::boolean(nullable) })
    }

    fn bind_case(
        &mut self,
        operand: Option<&'q E>,
        branches: &'q [(E, E)],
        otherwise: Option<&'q E>,
    ) -> Result<Expr> {
        let operand = operand.map(|operand| self.bind_scalar(operand)).transpose()?;
        let mut bound = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            bound.push((self.bind_scalar(when)?, self.bind_scalar(then)?));
        }
        let otherwise = otherwise.map(|otherwise| self.bind_scalar(otherwise)).transpose()?;
        self.builder().case(operand, bound, otherwise)
    }

    /// `DEFAULT(column)`: the column's constant default.
    fn bind_default(&mut self, column: Option<&ast::ColumnName>) -> Result<Expr> {
        let Some(column) = column else {
            return Err(unsupported("DEFAULT outside of INSERT and UPDATE"));
        };
        let bound = self.bind_column(column)?;
        self.default_of(&bound, column)
    }

    /// `VALUES(column)`: the column of the row that was to be inserted, NULL elsewhere.
    fn bind_values(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let bound = self.bind_column(name)?;
        let ExprKind::Column { position, name } = bound.kind else {
            return Ok(self.builder().null());
        };
        match self.block().inserted_row {
            Some(first) => Ok(self.builder().column(first + position, bound.result, name)),
            None => Ok(self.builder().computed(types::Value::Null, bound.result)),
        }
    }
}

/// Whether NOT of a condition is another condition without NOT.
fn has_opposite(condition: &E) -> bool {
    match condition {
        E::Binary(B::NullSafeEqual, ..) => false,
        E::Binary(operator, ..) => *operator == B::Xor || compare_operator(*operator).is_some(),
        E::Is { test, .. } => matches!(test, ast::IsTest::Null | ast::IsTest::Unknown),
        E::Unary(operator, _) => *operator == ast::UnaryOperator::Not,
        E::Logical(..) | E::In { .. } | E::Between { .. } | E::Like { .. } => true,
        _ => false,
    }
}

/// A variable has the widest type of its value's family.
fn variable_type(result: ResultType) -> ResultType {
    const TEXT_CHARACTERS: u32 = 16_777_215;
    let kind = result.column_type.kind;
    if kind.is_string() {
        let mut text = result.with_nullable(true);
        text.column_type.unsigned = false;
        text.column_type.kind = match text.collation() {
            types::CollationId::BINARY => types::TypeKind::LongBlob,
            _ => types::TypeKind::LongText,
        };
        text.column_type.length = TEXT_CHARACTERS;
        return text;
    }
    match kind {
        kind if kind.is_integer() => {
            let mut integer = ResultType::bigint(result.column_type.unsigned, true);
            integer.column_type.length = 20;
            integer
        }
        kind if kind.is_floating() => ResultType::double(true),
        types::TypeKind::Decimal => {
            let mut decimal = ResultType::decimal(65, 38, false, true);
            decimal.column_type.length = 83;
            decimal
        }
        _ => result,
    }
}

/// The comparison that an operator is.
pub(super) fn compare_operator(operator: B) -> Option<CompareOperator> {
    Some(match operator {
        B::Equal => CompareOperator::Equal,
        B::NullSafeEqual => CompareOperator::NullSafeEqual,
        B::NotEqual => CompareOperator::NotEqual,
        B::Less => CompareOperator::Less,
        B::LessOrEqual => CompareOperator::LessOrEqual,
        B::Greater => CompareOperator::Greater,
        B::GreaterOrEqual => CompareOperator::GreaterOrEqual,
        _ => return None,
    })
}

fn arithmetic_operator(operator: B) -> Option<ArithmeticOperator> {
    Some(match operator {
        B::Add => ArithmeticOperator::Add,
        B::Subtract => ArithmeticOperator::Subtract,
        B::Multiply => ArithmeticOperator::Multiply,
        B::Divide => ArithmeticOperator::Divide,
        B::IntegerDivide => ArithmeticOperator::IntegerDivide,
        B::Modulo => ArithmeticOperator::Modulo,
        _ => return None,
    })
}

/// A unit of the syntax as a unit of dates.
pub(super) fn interval_unit(unit: ast::IntervalUnit) -> types::temporal::IntervalUnit {
    use ast::IntervalUnit as A;
    use types::temporal::IntervalUnit as T;
    match unit {
        A::Microsecond => T::Microsecond,
        A::Second => T::Second,
        A::Minute => T::Minute,
        A::Hour => T::Hour,
        A::Day => T::Day,
        A::Week => T::Week,
        A::Month => T::Month,
        A::Quarter => T::Quarter,
        A::Year => T::Year,
        A::SecondMicrosecond => T::SecondMicrosecond,
        A::MinuteMicrosecond => T::MinuteMicrosecond,
        A::MinuteSecond => T::MinuteSecond,
        A::HourMicrosecond => T::HourMicrosecond,
        A::HourSecond => T::HourSecond,
        A::HourMinute => T::HourMinute,
        A::DayMicrosecond => T::DayMicrosecond,
        A::DaySecond => T::DaySecond,
        A::DayMinute => T::DayMinute,
        A::DayHour => T::DayHour,
        A::YearMonth => T::YearMonth,
    }
}
