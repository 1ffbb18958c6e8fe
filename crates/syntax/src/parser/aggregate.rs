//! Aggregates and windows.

use super::*;

impl Parser<'_> {
    /// A call of an aggregate function.
    #[inline(never)]
    pub(super) fn aggregate_call(&mut self, function: AggregateFunction) -> Result<Expression> {
        self.open_call()?;
        let mut call = AggregateCall {
            function,
            distinct: false,
            arguments: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            limit: None,
        };
        if !(function == AggregateFunction::Count && self.eat(Symbol::Star)) {
            call.distinct = self.eat(Keyword::DISTINCT);
            if !call.distinct {
                self.eat(Keyword::ALL);
            }
            let several = matches!(
                function,
                AggregateFunction::GroupConcat
                    | AggregateFunction::JsonArray
                    | AggregateFunction::JsonObject
            ) || (function == AggregateFunction::Count && call.distinct);
            call.arguments.push(self.expression()?);
            while several && self.eat(Symbol::Comma) {
                call.arguments.push(self.expression()?);
            }
        }
        if matches!(function, AggregateFunction::GroupConcat | AggregateFunction::JsonArray) {
            call.order_by = self.order_by()?;
            if self.eat(Keyword::SEPARATOR) {
                call.separator = Some(self.text_literal()?);
            }
            call.limit = self.limit()?;
        }
        self.expect(Symbol::RightParenthesis)?;
        self.over(Expression::Aggregate(Box::new(call)))
    }

    /// OVER behind a call.
    #[inline(never)]
    pub(super) fn over(&mut self, function: Expression) -> Result<Expression> {
        if !self.eat(Keyword::OVER) {
            return Ok(function);
        }
        let (name, window) = if self.at(Symbol::LeftParenthesis) {
            (None, self.window_definition()?)
        } else {
            (Some(self.name()?), WindowDefinition::default())
        };
        Ok(Expression::Window(Box::new(WindowCall { function, name, window })))
    }

    /// `([base] [PARTITION BY ...] [ORDER BY ...] [frame])`.
    #[inline(never)]
    pub(super) fn window_definition(&mut self) -> Result<WindowDefinition> {
        self.expect(Symbol::LeftParenthesis)?;
        let mut window = WindowDefinition::default();
        if self.at_name() {
            window.base = Some(self.name()?);
        }
        if self.eat(Keyword::PARTITION) {
            self.expect(Keyword::BY)?;
            window.partition_by = self.list(Self::expression)?;
        }
        window.order_by = self.order_by()?;
        if self.at_any(&[Keyword::ROWS, Keyword::RANGE]) {
            window.bounds = Some(self.window_frame()?);
        }
        self.expect(Symbol::RightParenthesis)?;
        Ok(window)
    }

    fn window_frame(&mut self) -> Result<WindowFrame> {
        let rows = self.at(Keyword::ROWS);
        self.advance();
        let (start, end) = if self.eat(Keyword::BETWEEN) {
            let start = self.frame_bound()?;
            self.expect(Keyword::AND)?;
            (start, self.frame_bound()?)
        } else {
            (self.frame_bound()?, FrameBound::CurrentRow)
        };
        let exclusion = self.eat(Keyword::EXCLUDE);
        if exclusion {
            while !self.at(Symbol::RightParenthesis) && !self.at(Kind::End) {
                self.advance();
            }
        }
        Ok(WindowFrame { rows, start, end, exclusion })
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.eat(Keyword::CURRENT) {
            self.expect(Keyword::ROW)?;
            return Ok(FrameBound::CurrentRow);
        }
        if self.eat(Keyword::UNBOUNDED) {
            if self.eat(Keyword::FOLLOWING) {
                return Ok(FrameBound::UnboundedFollowing);
            }
            self.expect(Keyword::PRECEDING)?;
            return Ok(FrameBound::UnboundedPreceding);
        }
        let Some(literal) = self.literal()? else { return Err(self.unexpected()) };
        let count = Expression::Literal(literal);
        if self.eat(Keyword::FOLLOWING) {
            return Ok(FrameBound::Following(count));
        }
        self.expect(Keyword::PRECEDING)?;
        Ok(FrameBound::Preceding(count))
    }
}

/// The aggregate function of this name in lower case.
pub(super) fn aggregate(word: &str) -> Option<AggregateFunction> {
    Some(match word {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Average,
        "min" => AggregateFunction::Minimum,
        "max" => AggregateFunction::Maximum,
        "group_concat" => AggregateFunction::GroupConcat,
        "std" | "stddev" | "stddev_pop" => AggregateFunction::StandardDeviation,
        "stddev_samp" => AggregateFunction::SampleStandardDeviation,
        "variance" | "var_pop" => AggregateFunction::Variance,
        "var_samp" => AggregateFunction::SampleVariance,
        "bit_and" => AggregateFunction::BitAnd,
        "bit_or" => AggregateFunction::BitOr,
        "bit_xor" => AggregateFunction::BitXor,
        "json_arrayagg" => AggregateFunction::JsonArray,
        "json_objectagg" => AggregateFunction::JsonObject,
        _ => return None,
    })
}
