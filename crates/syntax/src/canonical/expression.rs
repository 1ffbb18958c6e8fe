//! Expressions, with parentheses where an operand binds less than its place asks for.

use super::{Done, Printer};
use crate::ast::*;
use std::fmt::Write;

/// How strongly what an expression is made of binds; more is stronger.
mod rank {
    pub const OR: u8 = 1;
    pub const XOR: u8 = 2;
    pub const AND: u8 = 3;
    pub const NOT: u8 = 4;
    pub const COMPARE: u8 = 6;
    pub const BIT_OR: u8 = 7;
    pub const BIT_AND: u8 = 8;
    pub const SHIFT: u8 = 9;
    pub const ADD: u8 = 10;
    pub const MULTIPLY: u8 = 11;
    pub const BIT_XOR: u8 = 12;
    pub const UNARY: u8 = 13;
    pub const ATOM: u8 = 20;
}

fn binary_rank(operator: BinaryOperator) -> u8 {
    use BinaryOperator as B;
    match operator {
        B::Xor => rank::XOR,
        B::Equal
        | B::NullSafeEqual
        | B::NotEqual
        | B::Less
        | B::LessOrEqual
        | B::Greater
        | B::GreaterOrEqual
        | B::SoundsLike => rank::COMPARE,
        B::BitOr => rank::BIT_OR,
        B::BitAnd => rank::BIT_AND,
        B::ShiftLeft | B::ShiftRight => rank::SHIFT,
        B::Add | B::Subtract | B::Concat => rank::ADD,
        B::Multiply | B::Divide | B::IntegerDivide | B::Modulo => rank::MULTIPLY,
        B::BitXor => rank::BIT_XOR,
    }
}

fn rank_of(expression: &Expression) -> u8 {
    match expression {
        Expression::Binary(operator, ..) => binary_rank(*operator),
        Expression::Logical(LogicalOperator::And, _) => rank::AND,
        Expression::Logical(LogicalOperator::Or, _) => rank::OR,
        Expression::Unary(UnaryOperator::Not, _) => rank::NOT,
        Expression::Unary(..) | Expression::Collate { .. } => rank::UNARY,
        Expression::In { .. }
        | Expression::InSubquery { .. }
        | Expression::Between { .. }
        | Expression::Like { .. }
        | Expression::Regexp { .. }
        | Expression::Is { .. }
        | Expression::Quantified { .. } => rank::COMPARE,
        Expression::DateArithmetic { .. } => rank::ADD,
        _ => rank::ATOM,
    }
}

/// MariaDB's name of a function that has several.
fn function_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "upper" => "ucase",
        "lower" => "lcase",
        "now" | "localtime" | "localtimestamp" => "current_timestamp",
        "current_date" => "curdate",
        "current_time" => "curtime",
        "substring" | "mid" => "substr",
        "length" => "octet_length",
        "character_length" => "char_length",
        "day" => "dayofmonth",
        "power" => "pow",
        "schema" => "database",
        _ => return name,
    }
    .to_string()
}
impl Printer<'_> {
    pub(super) fn expression(&mut self, expression: &Expression, least: u8) -> Done {
        let parentheses = rank_of(expression) < least;
        self.push(if parentheses { "(" } else { "" });
        self.bare(expression)?;
        self.push(if parentheses { ")" } else { "" });
        Ok(())
    }

    fn bare(&mut self, expression: &Expression) -> Done {
        match expression {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Column(column) => self.column(column),
            Expression::Unary(UnaryOperator::Not, operand) => return self.negated(operand),
            Expression::Unary(operator, operand) => {
                self.push(operator.symbol());
                return self.expression(operand, rank::UNARY);
            }
            Expression::Binary(operator, left, right) => {
                let own = binary_rank(*operator);
                self.expression(left, own)?;
                self.push(&match operator {
                    BinaryOperator::Modulo => " MOD ".to_string(),
                    BinaryOperator::Xor => " xor ".to_string(),
                    other => format!(" {} ", other.symbol()),
                });
                return self.expression(right, own + 1);
            }
            Expression::Logical(operator, operands) => {
                let (own, word) = match operator {
                    LogicalOperator::And => (rank::AND, " and "),
                    LogicalOperator::Or => (rank::OR, " or "),
                };
                return self.list(operands, word, |printer, o| printer.expression(o, own + 1));
            }
            Expression::Case { operand, branches, otherwise } => {
                return self.case(operand.as_deref(), branches, otherwise.as_deref());
            }
            Expression::Cast { operand, target } => {
                self.push("cast(");
                self.expression(operand, 0)?;
                self.push(" as ");
                self.cast_type(target)?;
                self.push(")");
            }
            Expression::ConvertUsing { operand, charset } => {
                self.push("convert(");
                self.expression(operand, 0)?;
                let _ = write!(self.out, " using {charset})");
            }
            Expression::Collate { operand, collation } => {
                self.expression(operand, rank::UNARY)?;
                let _ = write!(self.out, " collate {collation}");
            }
            Expression::Function(call) => return self.function(call),
            Expression::Aggregate(call) => return self.aggregate(call),
            Expression::DateArithmetic { base, amount, unit, subtract } => {
                self.expression(base, rank::ADD)?;
                self.push(if *subtract { " - interval " } else { " + interval " });
                self.expression(amount, rank::ADD + 1)?;
                let _ = write!(self.out, " {}", unit.word().to_ascii_lowercase());
            }
            Expression::Unit(unit) => self.push(&unit.word().to_ascii_lowercase()),
            Expression::Row(_) | Expression::Subquery(_) | Expression::Exists(_) => {
                return self.enclosed(expression);
            }
            Expression::Parameter(_)
            | Expression::UserVariable(_)
            | Expression::AssignUserVariable(..)
            | Expression::SystemVariable(_) => return Err("a variable or parameter"),
            Expression::Window(_) => return Err("a window function"),
            Expression::Match { .. } => return Err("MATCH"),
            Expression::SequenceValue { .. } => return Err("a sequence"),
            Expression::Default(_) | Expression::Values(_) => return Err("DEFAULT or VALUES"),
            predicate => return self.predicate(predicate),
        }
        Ok(())
    }

    fn case(
        &mut self,
        operand: Option<&Expression>,
        branches: &[(Expression, Expression)],
        otherwise: Option<&Expression>,
    ) -> Done {
        self.push("case ");
        if let Some(operand) = operand {
            self.expression(operand, 0)?;
            self.push(" ");
        }
        for (condition, value) in branches {
            self.push("when ");
            self.expression(condition, 0)?;
            self.push(" then ");
            self.expression(value, 0)?;
            self.push(" ");
        }
        if let Some(otherwise) = otherwise {
            self.push("else ");
            self.expression(otherwise, 0)?;
            self.push(" ");
        }
        self.push("end");
        Ok(())
    }

    /// What has parentheses of its own.
    fn enclosed(&mut self, expression: &Expression) -> Done {
        self.push(if matches!(expression, Expression::Exists(_)) { "exists(" } else { "(" });
        match expression {
            Expression::Row(items) => {
                self.list(items, ",", |printer, item| printer.expression(item, 0))?;
            }
            Expression::Subquery(query) => self.query(query, false)?,
            Expression::Exists(query) => {
                self.query(query, false)?;
                let is_select = matches!(query.body, QueryBody::Select(_));
                self.push(if query.limit.is_none() && is_select { " limit 1" } else { "" });
            }
            _ => return Err("this expression"),
        }
        self.push(")");
        Ok(())
    }

    fn predicate(&mut self, expression: &Expression) -> Done {
        let not = |negated: bool| if negated { " not" } else { "" };
        match expression {
            Expression::In { operand, list, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} in (", not(*negated));
                self.list(list, ",", |printer, item| printer.expression(item, 0))?;
                self.push(")");
            }
            Expression::InSubquery { operand, query, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} in (", not(*negated));
                self.query(query, false)?;
                self.push(")");
            }
            Expression::Between { operand, low, high, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} between ", not(*negated));
                self.expression(low, rank::COMPARE + 1)?;
                self.push(" and ");
                self.expression(high, rank::COMPARE + 1)?;
            }
            Expression::Like { operand, pattern, escape, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} like ", not(*negated));
                self.expression(pattern, rank::COMPARE + 1)?;
                if let Some(escape) = escape {
                    self.push(" escape ");
                    self.expression(escape, rank::COMPARE + 1)?;
                }
            }
            Expression::Regexp { operand, pattern, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let _ = write!(self.out, "{} regexp ", not(*negated));
                self.expression(pattern, rank::COMPARE + 1)?;
            }
            Expression::Is { operand, test, negated } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let word = test.word().to_ascii_lowercase();
                let _ = write!(self.out, " is{} {word}", not(*negated));
            }
            Expression::Quantified { operand, operator, all, query } => {
                self.expression(operand, rank::COMPARE + 1)?;
                let word = if *all { "all" } else { "any" };
                let _ = write!(self.out, " {} {word} (", operator.symbol());
                self.query(query, false)?;
                self.push(")");
            }
            _ => return Err("this expression"),
        }
        Ok(())
    }

    /// NOT, moved into what it stands before where MariaDB does so.
    fn negated(&mut self, operand: &Expression) -> Done {
        use BinaryOperator as B;
        if let Expression::Binary(operator, left, right) = operand {
            let opposite = match operator {
                B::Equal => Some(B::NotEqual),
                B::NotEqual => Some(B::Equal),
                B::Less => Some(B::GreaterOrEqual),
                B::LessOrEqual => Some(B::Greater),
                B::Greater => Some(B::LessOrEqual),
                B::GreaterOrEqual => Some(B::Less),
                _ => None,
            };
            if let Some(opposite) = opposite {
                return self.bare(&Expression::Binary(opposite, left.clone(), right.clone()));
            }
        }
        if let Expression::Column(column) = operand {
            self.column(column);
            self.push(" = 0");
            return Ok(());
        }
        self.push("!");
        self.expression(operand, rank::ATOM)
    }

    fn function(&mut self, call: &FunctionCall) -> Done {
        if call.schema.is_some() {
            return Err("a stored function");
        }
        let name = function_name(&call.name);
        if let ("mod", [left, right]) = (name.as_str(), call.arguments.as_slice()) {
            self.expression(left, rank::MULTIPLY)?;
            self.push(" MOD ");
            return self.expression(right, rank::MULTIPLY + 1);
        }
        self.push(&name);
        self.push("(");
        self.list(&call.arguments, ",", |printer, argument| printer.expression(argument, 0))?;
        self.push(")");
        Ok(())
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Done {
        self.push(call.function.name());
        self.push(if call.distinct { "(distinct " } else { "(" });
        if call.arguments.is_empty() {
            self.push("0");
        }
        self.list(&call.arguments, ",", |printer, argument| printer.expression(argument, 0))?;
        if call.function == AggregateFunction::GroupConcat {
            for (position, item) in call.order_by.iter().enumerate() {
                self.push(if position == 0 { " order by " } else { "," });
                self.expression(&item.expression, 0)?;
                self.push(if item.descending { " DESC" } else { " ASC" });
            }
            self.push(" separator ");
            self.text(call.separator.as_deref().unwrap_or(b","));
            if let Some(limit) = &call.limit {
                self.limit(limit)?;
            }
        }
        self.push(")");
        Ok(())
    }
}
